/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of bad_input_test: the two sides, what the tests expect
 * of them, and the cases. */
#ifndef TESTS_PROGRAMS_BAD_INPUT_H
#define TESTS_PROGRAMS_BAD_INPUT_H

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"
#include "stream.h"

#define BYTES 8192
#define SGES  4
#define WAIT  10.0
extern struct rc_options options;
extern struct rc_device device;
/* text of the first error that the running case found; NULL: none */
extern const char *problem;

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};
extern struct side a, b;
extern bool rnic;
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_side(struct side *s, unsigned access);
void drop_side(struct side *s);
void connect_with(unsigned b_access, unsigned retry, unsigned rnr);
void connected(void);
uint64_t at(const struct side *s, long offset);
struct ibv_sge piece(const struct side *s, long offset, uint32_t len);
struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			uint64_t remote, uint32_t rkey);
struct ibv_send_wr atomic(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			  uint64_t remote, uint32_t rkey);
int post(struct side *s, struct ibv_send_wr *wr);
int receive(struct side *s, struct ibv_sge *sge, int count);
void ends_in(struct side *s, enum ibv_wc_status status);
void is_in(struct side *s, enum ibv_qp_state state);

/* Wait until the queue pair of @s is in @state: the end of a stream may still
 * be on its way. */
void becomes(struct side *s, enum ibv_qp_state state);

/* Returns whether a request may have this status although the peer refuses it.
 * Over TCP a request succeeds as soon as its bytes were sent. */
bool may_have_left(const struct ibv_send_wr *wr, enum ibv_wc_status status);
void untouched(const struct side *s);
void refused(int err, int wanted, const char *what);

/* Post one request of side a, whose target is side b, and expect the completion
 * status @status, which b's answer causes. */
void answered(struct ibv_send_wr *wr, enum ibv_wc_status status);
void send_in_wrong_state(void);
void receive_in_reset(void);
void post_in_error_is_flushed(void);
void too_many_sges(void);
void too_much_inline(void);
void unknown_operation(void);
void too_many_requests(void);
void lkey_of_another_pd(void);
void rkey_of_another_pd(void);
void lkey_of_nothing(void);
void local_range(void);
void address_that_wraps(void);
void read_into_read_only(void);
void rkey_after_deregistration(void);
void write_one_past(void);
void write_one_before(void);

/* A WRITE of many packets, of which only the last is outside the region. */
void long_write_one_past(void);
void read_one_past(void);
void remote_address_that_wraps(void);
void unaligned_atomic(void);
void atomic_outside(void);
void region_without_write(void);
void region_without_read(void);
void region_without_atomic(void);
void qp_without_write(void);
void qp_without_read(void);
void qp_without_atomic(void);
void remote_write_needs_local_write(void);
void receive_too_small(void);
void receive_with_bad_lkey(void);
void nobody_receives(void);
void peer_is_gone(void);
void rest_is_flushed(void);

/* Registered memory that is not mapped (any more) must not crash the
 * program. */
void unmapped_source(void);
void unmapped_inline_source(void);
void unmapped_sink(void);
void unmapped_receive(void);
void unmapped_write_target(void);
void unmapped_read_target(void);
void unmapped_atomic_target(void);
void read_only_page_as_target(void);
void destroying_what_is_in_use(void);
void bad_moves(void);
void impossible_creations(void);

/* The SGEs of a READ may add up to more than the longest message (2^31 bytes),
 * but such a READ must not succeed. */
void longest_message(void);

/* A queue pair may move to RTS even if its program only receives. */
void receive_only(void);
void child_tidies_up(void);
void child_opens_its_own(void);

/* Verbs are no cancellation points: a thread that is cancelled during a poll
 * must leave the adapter in working order. */
void cancelled_poller(void);
void cancelled_poster(void);
void child_and_xrc_domain(void);
void cancelled_in_any_verb(void);

/* Of two threads that destroy one object at once, one is refused. */
void destroyed_by_two_threads(void);

/* After a refused call, other queue pairs must still exchange messages. */
void still_works(void);
void in_fresh_sides(void (*run)(void));

#endif
