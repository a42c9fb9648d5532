/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of iWARP devices. A connection is a TCP connection on which both
 * ends exchange the MPA request and reply frames (RFC 5044 s7.1;
 * iwarp/setup.h) before the socket passes to the queue pair. Ports are TCP
 * ports of the kernel, so the kernel shares them between programs and no
 * broker takes part.
 *
 * struct rcm_stream is one listening socket or one connection. iw.lock guards
 * all of its fields except `said`. Functions that take the lock themselves say
 * so; the others expect the caller to hold it.
 */
#ifndef FRONT_RDMACM_IW_H
#define FRONT_RDMACM_IW_H

#include <stdatomic.h>

#include "engine/stream.h"
#include "front/rdmacm/rdmacm.h"
#include "iwarp/setup.h"

/* The state of a stream's setup. */
enum step {
	LISTENING,
	LINGERING, /* the program closed the listener less than 500 ms ago */
	CONNECTING,
	AWAIT_REPLY,   /* this side has sent the MPA request */
	AWAIT_REQUEST, /* this side has accepted the TCP connection */
	ASKED,	       /* the MPA request came; the program may accept */
	/* the MPA reply came, and the program has not read the event yet */
	REPLIED,
	OPEN, /* the queue pair owns the socket */
	OVER,
};

struct rcm_stream {
	/* iw.lock guards all fields but `said`. */
	int fd; /* socket; -1: the queue pair owns it, or it is closed */
	enum step step;
	bool watched; /* the socket is in the epoll set iw.set */
	/* number of the stream; never 0, and different from every other
	 * stream's */
	uint32_t serial;
	/* number of the stream's id; before adoption, of the listener's id */
	uint32_t number;
	bool adopted; /* an id has adopted the stream */
	/* the time when time_out() acts on the stream; VB_NEVER: not at all */
	vb_time until;
	struct sockaddr_storage peer; /* destination of an active stream */
	bool again; /* the peer refused: connect again at the time `until` */
	/* the time after which a refusal by the peer is final; 0: not set */
	vb_time patient_until;
	struct ibv_context *verbs; /* with @qpn: the stream's queue pair */
	uint32_t qpn;
	struct vb_mpa_setup setup;
	struct rcm_stream *next, **at; /* links in iw.first or iw.open */
	/* Of an accepted connection: the listener that accepted it, until an id
	 * adopts it. The listener always outlives this pointer:
	 * iw_end_listener() ends its callers first. */
	struct rcm_stream *listener;
	/* the connection counts in listener->callers; false: in
	 * listener->silent */
	bool counted;
	/* of a listener: its connections without an id, and the backlog */
	unsigned callers, most;
	/* of a listener: connections that sent no MPA request in time */
	unsigned silent;
	/* bits 1 << enum vb_stream_event, which the engine set and which were
	 * not yet passed on to the program */
	_Atomic uint32_t said;
	struct rcm_stream *next_said; /* the next stream on the stack iw.said */
	/* the program has got the event that the stream is live, or over */
	bool live, over;
};

struct iw {
	pthread_mutex_t lock;
	/* `lock` guards all fields but `said`. */
	/* Streams that are being set up: the thread visits all of them in each
	 * turn. */
	struct rcm_stream *first;
	/* Streams in state OPEN, which may be thousands: the thread visits them
	 * only when they are listed in said. */
	struct rcm_stream *open;
	/* streams that iw_end_stream() ended, which the thread frees next
	 * time */
	struct rcm_stream *dead;
	uint32_t serial; /* the last serial number given to a stream */
	/* epoll descriptor and eventfd; -1: there is no thread */
	int set, bell;
	/* address of the last peer that sent an MPA reply, and the time of that
	 * reply */
	struct sockaddr_storage reached;
	vb_time reached_at;
	/* Streams about which the engine has reported; a lock-free stack. */
	struct rcm_stream *_Atomic said;
};
extern struct iw iw;

/* A function of iw_offer.c: returns the MPA options that this side asks a peer
 * for. Needs no lock. */
struct vb_mpa_offer iw_offer(void);

/* Functions of iw_stream.c: the caller holds iw.lock, except for iw_now() and
 * iw_ring(). */

vb_time iw_now(void);
/* Wakes the thread of iw.c, so that it looks at its lists again. */
void iw_ring(void);
void iw_link(struct rcm_stream *s, struct rcm_stream **list);
void iw_unlink(struct rcm_stream *s);
/* Makes a stream in iw.first that owns @fd and belongs to id @number. NULL: no
 * memory, and the caller still owns @fd. iw_end_stream() ends the stream. */
struct rcm_stream *iw_make(int fd, uint32_t number);
/* Makes the thread wait for the EPOLL* @events of the socket; 0: for no
 * events. */
void iw_watch(struct rcm_stream *s, uint32_t events);
void iw_close_fd(struct rcm_stream *s);
/* Makes the thread accept further connections exactly while the backlog of
 * @listener has room. */
void iw_attend(struct rcm_stream *listener);
/* Removes an accepted connection from its listener's counts. */
void iw_leave_caller(struct rcm_stream *s);
/* Closes @s and removes it from its list. The thread frees it in its next turn,
 * because the thread may still have an epoll event that points to it. */
void iw_end_stream(struct rcm_stream *s);
/* Returns the stream with the number @serial among those that are not OPEN; or
 * NULL. */
struct rcm_stream *iw_find(uint32_t serial);
/* Returns a copy of the peer's private data, which the caller frees. NULL: no
 * memory. */
struct rcm_private *iw_private(const struct rcm_stream *s);
/* Returns the message that a broker would send to report @event with @status:
 * iWARP has no broker. */
struct vb_ipc_cm iw_cm_event(const struct rcm_stream *s,
			     enum vb_ipc_cm_event event, int status);
/* Queues the event @event about @s for the program, without private data. */
void iw_say(const struct rcm_stream *s, enum vb_ipc_cm_event event, int status);
/* Puts the RDMA READ depths of RFC 6581 into @m, at most 255 each: rdma_cm has
 * 8 bits for each. */
void iw_fill_depths(struct vb_ipc_cm *m, uint16_t ird, uint16_t ord);
/* Closes @s and reports that its connection failed. @error: positive errno. */
void iw_say_failed(struct rcm_stream *s, int error);

/* Functions of iw_setup.c: the caller holds iw.lock. The iw_on_...() functions
 * handle what epoll reported and advance s->step. */

/* Sends the MPA frame of s->setup. 0, or a positive errno. */
int iw_send_frame(struct rcm_stream *s);
/* Starts connect() of the bound socket to s->peer: the first time, or again
 * after a refusal. */
void iw_connect(struct rcm_stream *s);
void iw_on_connected(struct rcm_stream *s);
void iw_on_reply(struct rcm_stream *s);
void iw_on_request(struct rcm_stream *s);
/* Queues the connection request event for the listener's program. */
void iw_say_request(const struct rcm_stream *s);

/* Functions of iw_listen.c: the caller holds iw.lock. */

void iw_on_listener(struct rcm_stream *s);
/* iw_count_caller(): counts the accepted connection @s in the backlog.
 * iw_count_silent(): takes @s out of that count, because it has sent no MPA
 * request in time. */
void iw_count_caller(struct rcm_stream *s);
void iw_count_silent(struct rcm_stream *s);
/* Closes the listener and every connection that no id has adopted. */
void iw_end_listener(struct rcm_stream *listener);
/* Makes a listener that the program has closed linger for 500 ms. */
void iw_leave_listener(struct rcm_stream *s);
/* Returns the lingering listener that is bound to @a, port included; or
 * NULL. */
struct rcm_stream *iw_find_lingering(const struct sockaddr *a);
/* Gives a lingering listener and its connections to id @number. */
void iw_take_up(struct rcm_stream *s, uint32_t number);
/* Reports again, for the id that took up @listener, the requests whose events
 * went to the id before it. */
void iw_hear_again(const struct rcm_stream *listener);

/* Functions of iw.c. */

/* Starts the thread unless it runs. The caller holds iw.lock. 0 or -errno. */
int iw_begin(void);
/* The engine calls this (engine/stream.h) with its own locks held. So the
 * function takes no lock, and only records the event of stream @arg for the
 * thread. */
void iw_hear(void *arg, enum vb_stream_event event);

#endif
