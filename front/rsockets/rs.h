/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsockets: sockets whose bytes go by RDMA, over the public faces of
 * librdmacm and libibverbs. A socket's descriptor is an epoll descriptor that
 * is readable when its connection or its completions want attention; what
 * that means to the program, only rpoll() can say.
 *
 * One lock a socket, held while it is worked on, never while somebody sleeps.
 * Whoever changed something rings those who sleep on that socket.
 */
#ifndef FRONT_RSOCKETS_RS_H
#define FRONT_RSOCKETS_RS_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "front/rsockets/stream.h"

#define RS_EXPORT __attribute__((visibility("default")))

enum { RS_NUMBERS = 17 }; /* options that are whole numbers */

enum rs_state {
	RS_NEW,
	RS_BOUND,
	RS_LISTENING,
	RS_ADDRESS, /* asked for; the first of those that connect */
	RS_ROUTE,
	RS_CONNECTING,
	RS_CONNECTED,
	RS_GONE,   /* was connected */
	RS_FAILED, /* to connect, or later: error says how */
};

/* Somebody who sleeps until one of several sockets changes. */
struct rs_sleeper {
	int bell; /* an eventfd */
	_Atomic bool rung;
	struct rs_sleeper *next, **link;
	/* Where those who were rung gather, or NULL. */
	_Atomic(struct rs_sleeper *) *all_rung;
	struct rs_sleeper *rung_next;
};

/* What a program may ask for before there is a connection. */
struct rs_wishes {
	uint32_t send_bytes, receive_bytes;
	uint16_t sends, receives, inline_bytes;
	uint16_t iomaps;
};

struct rs_iomapping;
struct rs_dgram;

struct rs_queue {
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	bool armed;
	unsigned unacked;
};

struct rs_sock {
	_Atomic int fd; /* others may move it: table.c */
	_Atomic unsigned refs;
	struct rs_sock *departing; /* table.c's; &this at the end */
	pthread_mutex_t lock;
	_Atomic unsigned callers; /* who wait for it */
	/* lock */
	enum rs_state state;
	bool reads, writes; /* what is still open */
	int error;	    /* SO_ERROR's, positive */
	int domain;
	int file_flags;		 /* O_NONBLOCK */
	int timeout[2];		 /* ms; receiving, sending; 0: none */
	int numbers[RS_NUMBERS]; /* options.c */
	struct linger linger;
	struct rs_wishes wishes;
	uint64_t ticket; /* ticket.h */
	bool joins;
	struct rs_sleeper *sleepers;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage peer; /* of a connection that is being made */
	uint64_t looked;	      /* for news of the connection, ns */
	/* A listener's. */
	int backlog, waiting;
	bool later, announced; /* ticket.h: RS_LATER */
	struct rs_sock *first, **last;
	struct rs_sock *next;
	/* A connection's. */
	struct rs_stream stream;
	struct rs_room room;
	struct rs_queue queue;
	uint8_t *out;
	struct ibv_mr *out_mr, *in_mr, *slots_mr;
	uint32_t *words; /* by SEND: messages that come, one a receive */
	struct ibv_mr *words_mr;
	unsigned receives, next_receive;
	struct rs_iomapping *iomappings;
	bool iomaps_wait;
	uint64_t heard;	 /* when something last completed, ns */
	unsigned probes; /* of keepalive.c since then */
	/* Of datagrams: then nothing of a connection's is used. */
	struct rs_dgram *dgram;
};

static inline bool rs_connecting(const struct rs_sock *rs)
{
	return rs->state >= RS_ADDRESS && rs->state <= RS_CONNECTING;
}

/* table.c. NULL: EBADF in errno. */
struct rs_sock *rs_find(int fd);
/* Most doors: take, which finds and locks it, work, done, which lets it go and
 * gives the program -1 and errno for a -errno. */
struct rs_sock *rs_take(int fd);
/* Always by this: who looks for long, with the lock, gives way to who waits for
 * it. */
void rs_lock(struct rs_sock *rs);
ssize_t rs_done(struct rs_sock *rs, ssize_t rc);
int rs_enter(struct rs_sock *rs);
bool rs_leave(struct rs_sock *rs);
/* As that, for good; its number is its own until rs_departed() tells it to who
 * closes it. */
bool rs_depart(struct rs_sock *rs);
int rs_departed(struct rs_sock *rs);
void rs_put(struct rs_sock *rs);
/* ticket.h; with the lock. @to: -1: any */
int rs_move(struct rs_sock *rs, int to);
int rs_move_departing(int fd);
bool rs_is_taken(int fd);
void rs_for_each(void (*visit)(struct rs_sock *rs));
static inline int rs_fail(int error)
{
	errno = error;
	return -1;
}

/* socket.c */
struct rs_sock *rs_make(int domain, int type, const struct rs_wishes *wishes);
void rs_unmake(struct rs_sock *rs);
const struct rs_wishes *rs_wishes(void);
int rs_close(int fd, bool number); /* as rclose(); or all but its number */

/* connect.c; with the lock. */
int rs_announce(struct rs_sock *rs);
/* What the connection manager says. */
void rs_connection_news(struct rs_sock *rs);
int rs_connection_begin(struct rs_sock *rs);
void rs_connection_end(struct rs_sock *rs, int error);

typedef bool rs_test(struct rs_sock *rs);

/* queue.c; -errno. */
int rs_queue_open(struct rs_queue *q, int epoll, struct ibv_context *verbs,
		  int depth);
void rs_queue_close(struct rs_queue *q);
bool rs_queue_arm(struct rs_queue *q); /* as rs_qp_arm() */
bool rs_queue_woken(struct rs_queue *q);

/* dgram.c: a socket of datagrams; with the lock, -errno. */
int rs_dgram_make(struct rs_sock *rs);
void rs_dgram_unmake(struct rs_sock *rs);
int rs_dgram_bind(struct rs_sock *rs, const struct sockaddr *a, socklen_t n);
int rs_dgram_connect(struct rs_sock *rs, const struct sockaddr *a, socklen_t n);
int rs_dgram_shut(struct rs_sock *rs, int how);
int rs_dgram_name(struct rs_sock *rs, bool peer, struct sockaddr *a,
		  socklen_t *n);
int rs_dgram_option(struct rs_sock *rs, int level, int name, int value);
void rs_dgram_work(struct rs_sock *rs);
bool rs_dgram_arm(struct rs_dgram *d);
bool rs_dgram_woken(struct rs_dgram *d);
unsigned rs_dgram_waiting(const struct rs_dgram *d); /* to be read */
unsigned rs_dgram_leaving(const struct rs_dgram *d); /* under way */
rs_test rs_dgram_can_write;
ssize_t rs_dgram_send(struct rs_sock *rs, const struct msghdr *msg, int flags,
		      int timeout);
/* Sets what recvmsg() sets. */
ssize_t rs_dgram_receive(struct rs_sock *rs, struct msghdr *msg, int flags,
			 int timeout);

/* rs_qp.c: a connection's queue pair and memory; with the lock. */
int rs_qp_open(struct rs_sock *rs);
void rs_qp_close(struct rs_sock *rs);
/* Work off what has completed, and give the peer what it is due. */
void rs_qp_work(struct rs_sock *rs);
/* True: armed just now, so look once more before sleeping. */
bool rs_qp_arm(struct rs_sock *rs);
void rs_qp_woken(struct rs_sock *rs);
/* -errno. Up to rs_stream_room() bytes. */
int rs_qp_send(struct rs_sock *rs, const void *bytes, uint32_t length);
int rs_qp_place(struct rs_sock *rs, const void *bytes, uint32_t length,
		uint64_t addr, uint32_t key);
int rs_qp_control(struct rs_sock *rs, enum rs_control what);
/* Does the peer answer? */
int rs_qp_probe(struct rs_sock *rs);
int rs_qp_iomap(struct rs_sock *rs, unsigned i, const struct rs_iomap *entry);

/* wait.c */
/* Whatever has happened to it; with the lock. */
void rs_look(struct rs_sock *rs);
/*
 * Until @test, with the lock, which is given up while asleep. @timeout: ms;
 * 0: look only; -1: for ever. -EAGAIN, -EINTR.
 */
int rs_wait(struct rs_sock *rs, rs_test *test, int timeout);
/* Wake who sleeps on it; with the lock, as to lie down there and get up. */
void rs_ring(struct rs_sock *rs);
void rs_lie_down(struct rs_sock *rs, struct rs_sleeper *me, int bell,
		 _Atomic(struct rs_sleeper *) *all_rung);
void rs_get_up(struct rs_sleeper *me);
/* poll()'s answer for @events, now. */
short rs_ready(struct rs_sock *rs, short events);
/* ms from now, for poll(); -1: UINT64_MAX, for ever. */
int rs_until(uint64_t deadline);
rs_test rs_can_read, rs_can_write, rs_all_sent, rs_can_control, rs_settled;

/* options.c; with the lock */
void rs_options_again(struct rs_sock *rs);
/* Of one that is a whole number: as set, or as it is for who sets none. */
int rs_number(const struct rs_sock *rs, int level, int name);

/* keepalive.c: the socket is connected now, or its options are others; with
 * the lock. */
void rs_keep_alive(struct rs_sock *rs);
void rs_keeper_forget(void);

/* epoll.c: sets of repoll_create(). */
void rs_forget_sets(void);
bool rs_close_set(int fd, bool number);
void rs_leave_sets(int fd);

/* iomap.c */
int rs_iomaps_send(struct rs_sock *rs, int timeout);
void rs_iomaps_forget(struct rs_sock *rs);

#endif
