/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of iwarp_test: the two sides of a connection, functions
 * that check them, and the cases. */
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
	bool over; /* true: the event DISCONNECTED has come */
};
/* the sides of the connection: a connects, b accepts */
extern struct side a, b;

/* The next event within @seconds_left, with its status and private data. */
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

/* Connect a to b, and expect the event ESTABLISHED at both. */
void connected(void);
void post_from(struct side *s, struct ibv_send_wr wr, uint64_t id,
	       uint32_t lkey);
void post(struct side *s, struct ibv_send_wr wr, uint64_t id);
struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, uint32_t rkey);
void post_recv(struct side *s, uint32_t bytes);
void expect_status(struct side *s, uint64_t id, enum ibv_wc_status status,
		   enum ibv_wc_status or);
void expect_error_state(struct side *s, const char *who);

/* Expect the event DISCONNECTED at both sides, in any order. */
void expect_end(void);

/* Returns whether the connection goes near. A request over TCP is complete when
 * its bytes were sent, before its key is checked; a near request is complete
 * when it is carried out. */
bool goes_near(void);
void write_with_a_wrong_key(void);
void read_with_a_wrong_key(void);

/* MPA revision 1 does not negotiate the number of READs: this side permits
 * none. */
void read_where_none_is_taken(void);
void send_without_a_receive(void);

/* The peer must get the error at once, and not after a timeout. */
void write_from_a_wrong_key(void);
void send_too_long(void);

/* Bytes that were sent before a disconnect still arrive: it is not a reset. */
void disconnect_after_sends(void);
void destroyed_without_a_word(void);
void private_data_and_depths(void);
void rejected(void);

/* Two connections between the same addresses begin at the same time. */
void connects_that_cross(void);
void memory_that_changes(void);

/* One TCP client sends nothing to the listener, another sends nonsense. */
void callers_that_are_no_mpa(void);
struct rdma_cm_id *listen_at(uint16_t port, int backlog);
/* Run @does in a child of fork, for at most 10 seconds, and report its
 * failure. */
pid_t child_of(void (*does)(void));
void expect_child(pid_t pid);
void ids_inherited_by_fork(void);
void ports_inherited_by_fork(void);
void more_callers_than_backlog(void);

/* A caller that sends a request is served within a second. Of too many callers
 * that send nothing, the first are hung up on, and the last are not. */
void silent_callers(void);

/* A caller that sends its request and a FIN is served, and nothing waits for
 * more bytes. */
void callers_that_close_half(void);

/* Two kinds of listeners that do not speak MPA: one closes the connection, the
 * other never replies. A client waits 10 seconds for a reply, like siw; the
 * test shortens this time. */
int listen_without_mpa(struct sockaddr_in *at);
void called_without_an_answer(void);
void listener_that_comes_back(void);
void peer_that_reads_nothing(void);

/*
 * A peer of this host that is no Verbena, and copies the request's bits into
 * its reply, as Linux's siw does: the connection must use TCP, and no message
 * that only a Verbena understands.
 */
void stranger_of_this_host(void);

/* A peer that claims to be a Verbena, but never sends its card. */
void stranger_that_pretends(void);

/* A RoCE device that is opened after an iWARP device is in use. */
void roce_device_opened_later(void);
void what_an_rnic_has_not(void);

/* Calls of librdmacm that an iWARP device does not support. */
void what_ids_have_not(void);
void datagrams_by_librdmacm(void);

/* Another program of this host owns memory whose pages come late. */
void others_beside_a_late_page(void);

/* An iWARP device has no AF_IB addresses, which are for InfiniBand. */
void addresses_of_infiniband(void);

#endif
