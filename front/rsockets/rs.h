/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsockets: sockets whose bytes are sent by RDMA, built on the public
 * interfaces of librdmacm and libibverbs. A socket's descriptor is an epoll
 * descriptor that becomes readable when the connection manager or a completion
 * queue has an event. It does not tell whether the socket is readable or
 * writable to the program; rpoll() finds that out.
 *
 * Each socket has one lock. A thread holds it while it works on the socket and
 * releases it before it sleeps. A thread that changed the socket's state wakes
 * the threads that sleep on the socket (rs_ring()).
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

/* Number of socket options that are integers: options.c. */
enum { RS_NUMBERS = 17 };

enum rs_state {
	RS_NEW,
	RS_BOUND,
	RS_LISTENING,
	/* the first of three steps of connecting: the address is being
	 * resolved */
	RS_ADDRESS,
	RS_ROUTE,
	RS_CONNECTING,
	RS_CONNECTED,
	RS_GONE, /* was connected; one of the sides has closed the connection */
	/* failed while it connected or later; the field `error` has the
	 * cause */
	RS_FAILED,
};

/* A thread or an epoll set that waits for one socket to change. */
struct rs_waiter {
	int bell; /* an eventfd that wakes the waiter */
	_Atomic bool rung;
	struct rs_waiter *next, **link; /* links in the list rs->waiters */
	/* A lock-free stack of the rung waiters of one epoll set; or NULL. */
	_Atomic(struct rs_waiter *) *all_rung;
	struct rs_waiter *rung_next;
};

/* Sizes that the program may set until it connects; sends, receives and iomaps
 * are counts, the others are bytes. */
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
	/* number of events not yet passed to ibv_ack_cq_events() */
	unsigned unacked;
};

struct rs_sock {
	/* descriptor of the socket; rs_move() may change it at any time */
	_Atomic int fd;
	_Atomic unsigned refs;
	/* the next in table.c's list of sockets that are closing; the last one
	 * points to itself */
	struct rs_sock *departing;
	pthread_mutex_t lock;
	_Atomic unsigned callers; /* number of threads that wait for the lock */
	/* `lock` guards the fields below. */
	enum rs_state state;
	/* false: the socket is shut down in that direction */
	bool reads, writes;
	int error; /* a positive errno, which SO_ERROR returns */
	int domain;
	int file_flags; /* O_NONBLOCK or 0 */
	int timeout[2]; /* timeouts in ms for receiving and sending; 0: none */
	/* values of the socket options that are integers (options.c) */
	int numbers[RS_NUMBERS];
	struct linger linger;
	struct rs_wishes wishes;
	uint64_t secret; /* the value of RS_PORT_SECRET (private_options.h) */
	/* the program set @secret in order to share the port that has it */
	bool joins;
	struct rs_waiter *waiters;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	/* the destination while the socket is connecting */
	struct sockaddr_storage peer;
	/* ns: when the event channel, or a datagram socket's UDP socket, was
	 * last read; 0: read it now */
	uint64_t looked;
	/* The fields below are for a listener. */
	int backlog, waiting; /* @waiting: number of connections to accept */
	/* later: the program set RS_LISTEN_LATER, so the first accept or poll,
	 * and not rlisten(), calls rdma_listen() (private_options.h);
	 * announced: rdma_listen() has been called */
	bool later, announced;
	struct rs_sock *first, **last; /* list of the connections to accept */
	struct rs_sock *next; /* the next socket in its listener's list */
	/* The fields below are for a connection. */
	struct rs_stream stream;
	struct rs_room room;
	struct rs_queue queue;
	uint8_t *out;
	struct ibv_mr *out_mr, *in_mr, *slots_mr;
	/* receive buffers of an iWARP connection, one for each posted
	 * receive */
	uint32_t *words;
	struct ibv_mr *words_mr;
	unsigned receives, next_receive;
	struct rs_iomapping *iomappings;
	/* the peer must be told of some mappings before more bytes are sent */
	bool iomaps_wait;
	/* ns: when the peer last showed life; 0: the socket has no keepalive */
	uint64_t heard;
	unsigned probes; /* number of keepalive messages sent since @heard */
	uint64_t probed; /* ns: when the last keepalive was sent */
	/* A datagram socket's state; such a socket does not use the fields of a
	 * connection. */
	struct rs_dgram *dgram;
};

static inline bool rs_connecting(const struct rs_sock *rs)
{
	return rs->state >= RS_ADDRESS && rs->state <= RS_CONNECTING;
}

/* Functions of table.c, which has a lock of its own: from descriptors to
 * sockets. */

/* Returns the socket of @fd with a reference, which rs_put() releases. NULL:
 * errno is EBADF. */
struct rs_sock *rs_find(int fd);
/* Most calls of the program begin with rs_take(), which is rs_find() and
 * rs_lock(), and end with rs_done(), which unlocks and drops the reference. For
 * an @rc of -errno rs_done() sets errno and returns -1, else it returns @rc. */
struct rs_sock *rs_take(int fd);
ssize_t rs_done(struct rs_sock *rs, ssize_t rc);
/* Locks rs->lock. Every thread uses this function, because a thread that spins
 * with the lock held (rs_wait()) releases it as soon as another thread is
 * counted as waiting. */
void rs_lock(struct rs_sock *rs);
/* Puts the socket into the table under rs->fd. 0, -EMFILE or another -errno. */
int rs_enter(struct rs_sock *rs);
/* Removes a socket from the table to close it. Its number still counts as used
 * (rs_is_taken()) until rs_departed() returns it for close(). False: another
 * thread closes the socket already. */
bool rs_depart(struct rs_sock *rs);
int rs_departed(struct rs_sock *rs);
/* Drops a reference; the last one destroys the socket. */
void rs_put(struct rs_sock *rs);
/* Gives the socket another number, @to, or a free one if @to is -1 (RS_MOVE,
 * RS_MOVE_TO: private_options.h). The caller holds rs->lock. Returns the
 * number, or -errno. */
int rs_move(struct rs_sock *rs, int to);
/* Does RS_MOVE for a socket that another thread is closing. -1: failed, with
 * errno. */
int rs_move_departing(int fd);
/* True if an open or closing socket has the number @fd. */
bool rs_is_taken(int fd);
/* Calls @visit for every socket, without its lock, with a reference held. */
void rs_for_each(void (*visit)(struct rs_sock *rs));
static inline int rs_fail(int error)
{
	errno = error;
	return -1;
}

/* Functions of socket.c. */

/* Makes a socket that is in no table yet. NULL: failed, with errno. rs_unmake()
 * frees the socket. */
struct rs_sock *rs_make(int domain, int type, const struct rs_wishes *wishes);
void rs_unmake(struct rs_sock *rs);
/* Does what rclose() does; with @number false the descriptor itself stays open
 * (RS_FORGET). */
int rs_close(int fd, bool number);

/* Functions of connect.c; the caller holds rs->lock. */

/* Calls rdma_listen() unless an earlier call has done so. 0 or -errno. */
int rs_announce(struct rs_sock *rs);
/* Reads and handles all events of the socket's event channel. */
void rs_connection_take_events(struct rs_sock *rs);
/* Starts to connect to rs->peer. 0 or -errno. */
int rs_connection_begin(struct rs_sock *rs);
/* Ends the connection, which has failed. @error: a positive errno. */
void rs_connection_end(struct rs_sock *rs, int error);

/* A condition that a thread waits for; it is tested with rs->lock held. */
typedef bool rs_test(struct rs_sock *rs);

/* Functions of queue.c: a completion queue and its channel. */

/* Opens the queue. @epoll: the socket's descriptor, which becomes readable when
 * the channel does. 0; -errno: the caller calls rs_queue_close(). */
int rs_queue_open(struct rs_queue *q, int epoll, struct ibv_context *verbs,
		  int depth);
void rs_queue_close(struct rs_queue *q);
/* Do what rs_qp_arm() and rs_qp_woken() do, for this queue. */
bool rs_queue_arm(struct rs_queue *q);
bool rs_queue_woken(struct rs_queue *q);

/* Functions of dgram.c: a datagram socket. The caller holds rs->lock. Functions
 * that return int or ssize_t return -errno on failure. */
int rs_dgram_make(struct rs_sock *rs);
void rs_dgram_unmake(struct rs_sock *rs);
int rs_dgram_bind(struct rs_sock *rs, const struct sockaddr *a, socklen_t n);
int rs_dgram_connect(struct rs_sock *rs, const struct sockaddr *a, socklen_t n);
int rs_dgram_shut(struct rs_sock *rs, int how);
int rs_dgram_name(struct rs_sock *rs, bool peer, struct sockaddr *a,
		  socklen_t *n);
int rs_dgram_option(struct rs_sock *rs, int level, int name, int value);
/* Handles the datagrams that have come and the sends that have completed. */
void rs_dgram_work(struct rs_sock *rs);
/* Do what rs_qp_arm() and rs_qp_woken() do, for all queue pairs of the
 * socket. */
bool rs_dgram_arm(struct rs_dgram *d);
bool rs_dgram_woken(struct rs_dgram *d);
/* Return the number of datagrams that the program can read, and of sends that
 * have not completed. */
unsigned rs_dgram_waiting(const struct rs_dgram *d);
unsigned rs_dgram_leaving(const struct rs_dgram *d);
rs_test rs_dgram_can_write;
/* Send and receive. @timeout as for rs_wait(). They return the number of
 * bytes. */
ssize_t rs_dgram_send(struct rs_sock *rs, const struct msghdr *msg, int flags,
		      int timeout);
/* Receives a datagram and sets the fields in @msg that recvmsg() sets. */
ssize_t rs_dgram_receive(struct rs_sock *rs, struct msghdr *msg, int flags,
			 int timeout);

/* Functions of rs_qp.c: a connection's queue pair and memory. The caller holds
 * rs->lock. Those that return int return 0 or -errno. */
int rs_qp_open(struct rs_sock *rs);
void rs_qp_close(struct rs_sock *rs);
/* Handles completions, and sends the peer credits and free ring space. */
void rs_qp_work(struct rs_sock *rs);
/* True: the queue was armed just now. The caller looks for completions once
 * more before it sleeps, because one may have come before the arming. */
bool rs_qp_arm(struct rs_sock *rs);
/* Reads the event of the completion channel, and arms the queue again for other
 * waiters. */
void rs_qp_woken(struct rs_sock *rs);
/* Sends @length <= rs_stream_room() bytes of the stream, which are copied. */
int rs_qp_send(struct rs_sock *rs, const void *bytes, uint32_t length);
/* Does riowrite(): copies @length bytes and writes them to @addr at the peer.
 * The caller has checked that the ring and the send queue have room. */
int rs_qp_place(struct rs_sock *rs, const void *bytes, uint32_t length,
		uint64_t addr, uint32_t key);
int rs_qp_control(struct rs_sock *rs, enum rs_control what);
/* Sends a message or READ that the peer's adapter must acknowledge
 * (keepalive.c). */
int rs_qp_probe(struct rs_sock *rs);
/* Writes entry number @i of the peer's table of mappings. */
int rs_qp_iomap(struct rs_sock *rs, unsigned i, const struct rs_iomap *entry);

/* Functions of wait.c. The caller holds rs->lock, except for rs_until(). */

/* Handles all events of the socket, and wakes its waiters if its state
 * changed. */
void rs_look(struct rs_sock *rs);
/*
 * Waits until @test is true. Releases rs->lock while the thread sleeps.
 * @timeout: ms; 0: test only once; -1: no limit. 0, -EAGAIN (the time is over)
 * or -EINTR.
 */
int rs_wait(struct rs_sock *rs, rs_test *test, int timeout);
/* Wakes all waiters of the socket. */
void rs_ring(struct rs_sock *rs);
/* Adds @me as a waiter of the socket: a change writes to the eventfd @bell.
 * @all_rung: the stack on which rung waiters are collected, or NULL. @me must
 * stay valid until rs_waiter_remove(). */
void rs_waiter_add(struct rs_sock *rs, struct rs_waiter *me, int bell,
		   _Atomic(struct rs_waiter *) *all_rung);
void rs_waiter_remove(struct rs_waiter *me);
/* Returns the revents that poll() would set now for @events. */
short rs_ready(struct rs_sock *rs, short events);
/* Returns the ms from now to @deadline (ns), rounded up; -1 for UINT64_MAX. */
int rs_until(uint64_t deadline);
rs_test rs_can_read, rs_can_write, rs_all_sent, rs_can_control, rs_is_decided;

/* Functions of options.c; the caller holds rs->lock. */

/* Sets on rs->id, which is new, the options that the program had set on the old
 * id. */
void rs_options_again(struct rs_sock *rs);
/* Returns the value of an integer option, or its default if the program set
 * none. */
int rs_number(const struct rs_sock *rs, int level, int name);

/* Functions of keepalive.c. */

/* Restarts the watch over the peer if the socket is connected and has
 * SO_KEEPALIVE: the caller has changed one of the two. The caller holds
 * rs->lock. */
void rs_keep_alive(struct rs_sock *rs);
/* Runs in a child of fork(), which has no copy of the thread. */
void rs_keeper_forget(void);

/* Functions of epoll.c: sets of repoll_create(). */

/* Runs in a child of fork(): drops the parent's sets. */
void rs_forget_sets(void);
/* Closes the set @fd; with @number false its descriptor stays open. False: @fd
 * is no set. */
bool rs_close_set(int fd, bool number);
/* Removes the socket @fd from all sets. */
void rs_leave_sets(int fd);

/* Functions of iomap.c; the caller holds rs->lock. */

/* Tells the peer of new mappings. @timeout as for rs_wait(). 0 or -errno. */
int rs_iomaps_send(struct rs_sock *rs, int timeout);
void rs_iomaps_forget(struct rs_sock *rs);

#endif
