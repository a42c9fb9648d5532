/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of iwarp_test share: the two sides of a connection, what is
 * expected of them, and the cases. */
#ifndef TESTS_PROGRAMS_IWARP_TEST_H
#define TESTS_PROGRAMS_IWARP_TEST_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define BYTES (1u << 20)
#define PORT  7479
#define WAIT  10.0

extern struct sockaddr_in address;
extern struct rdma_event_channel *channel;
extern struct rdma_cm_id *listener;
extern struct ibv_context *verbs;
extern struct ibv_pd *pd;
extern char problem[256];
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct side {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	bool over; /* DISCONNECTED was heard */
};
extern struct side a, b; /* who connects, who accepts */

/* The next event within @seconds_left, its status and private data kept. */
struct event {
	enum rdma_cm_event_type what;
	int status;
	struct rdma_cm_id *id;
	uint8_t bytes, data[256];
	uint8_t responder_resources, initiator_depth;
};
extern struct event event;
bool next_event(double seconds_left);
bool expect_event(enum rdma_cm_event_type what);
void equip(struct side *s);
void drop(struct side *s);
void begin_connect(struct side *s, const struct sockaddr_in *to,
		   struct rdma_conn_param *p);
struct rdma_conn_param params(const char *data);

/* Both sides stand; each has heard so. */
void connected(void);
void post_from(struct side *s, struct ibv_send_wr wr, uint64_t id,
	       uint32_t lkey);
void post(struct side *s, struct ibv_send_wr wr, uint64_t id);
struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, uint32_t rkey);
void post_recv(struct side *s, uint32_t bytes);
void expect_status(struct side *s, uint64_t id, enum ibv_wc_status status,
		   enum ibv_wc_status or);
void expect_error_state(struct side *s, const char *who);

/* Each side hears once, in whichever order. */
void expect_end(void);

/* What is sent over TCP is complete when it has left: nobody has looked at its
 * key. What goes without is complete when it is done. */
bool goes_near(void);
void write_with_a_wrong_key(void);
void read_with_a_wrong_key(void);

/* Of revision 1, in which nobody says how many READs he bears: none here. */
void read_where_none_is_taken(void);
void send_without_a_receive(void);

/* The peer hears at once, and not when it is waited for no longer. */
void write_from_a_wrong_key(void);
void send_too_long(void);

/* What was sent before arrives: a disconnect is not a reset. */
void disconnect_after_sends(void);
void destroyed_without_a_word(void);
void private_data_and_depths(void);
void rejected(void);

/* Each connects to the other while it is connected to. */
void connects_that_cross(void);
void memory_that_changes(void);

/* A caller that says nothing, and one that talks nonsense. */
void callers_that_are_no_mpa(void);
struct rdma_cm_id *listen_at(uint16_t port, int backlog);
void ids_inherited_by_fork(void);
void ports_inherited_by_fork(void);
void more_callers_than_backlog(void);

/* Whoever has something to say has its turn within a second. Of too many that
 * say nothing the first are hung up on, and the last are not. */
void silent_callers(void);

/* Whoever calls and says no more is heard to its end, and not waited for. */
void callers_that_close_half(void);

/* Who is called and hangs up, and who never says a word: 10 seconds, as siw,
 * and they pass here. */
int listen_without_mpa(struct sockaddr_in *at);
void called_without_an_answer(void);
void listener_that_comes_back(void);
void peer_that_reads_nothing(void);

/*
 * A peer of this host that is no Verbena, and replies with the bits that it
 * was asked with, as Linux's siw does: all goes over TCP, and nothing that
 * only a Verbena understands.
 */
void stranger_of_this_host(void);

/* And one that says that it is a Verbena, and never who. */
void stranger_that_pretends(void);

/* A RoCE device that is opened when iWARP is at work. */
void roce_device_opened_later(void);
void what_an_rnic_has_not(void);

/* The same by librdmacm: what ids of a connection make for themselves. */
void what_ids_have_not(void);
void datagrams_by_librdmacm(void);

/* They are InfiniBand's. */
void addresses_of_infiniband(void);

#endif
