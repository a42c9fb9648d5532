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

/* How far the setup of a stream has come. */
enum step {
	LISTENING,
	LINGERING, /* the program closed the listener less than 500 ms ago */
	CONNECTING,
	AWAIT_REPLY,   /* we sent the MPA request */
	AWAIT_REQUEST, /* we accepted the TCP connection */
	ASKED,	       /* the MPA request came; the program may accept */
	REPLIED, /* the MPA reply came; the program has not read the event */
	OPEN,	 /* the queue pair owns the socket */
	OVER,
};

struct rcm_stream {
	/* iw.lock guards all members but `said`. */
	int fd; /* -1: the queue pair owns it, or it is closed */
	enum step step;
	bool watched;	 /* fd is in the epoll set iw.set */
	uint32_t serial; /* never 0; differs from every other stream's */
	uint32_t number; /* of its id; before adoption: of the listener's id */
	bool adopted;	 /* an id stands for it */
	vb_time until;	 /* when time_out() acts on it; VB_NEVER: not at all */
	struct sockaddr_storage peer; /* an active stream's destination */
	bool again;	       /* the peer refused; connect again at `until` */
	vb_time patient_until; /* after this, a refusal is final; 0: not set */
	struct ibv_context *verbs; /* with qpn: the queue pair it serves */
	uint32_t qpn;
	struct vb_mpa_setup setup;
	struct rcm_stream *next, **at; /* in iw.first or iw.open */
	/* Of an accepted connection until an id adopts it. The listener always
	 * outlives this pointer: iw_end_listener() buries its callers first. */
	struct rcm_stream *listener;
	bool counted; /* in listener->callers; false: in listener->silent */
	unsigned callers, most; /* of a listener; most: the backlog */
	unsigned silent;	/* callers that sent no MPA request in time */
	_Atomic uint32_t said;	/* bits 1 << enum vb_stream_event, set by the
				   engine, not yet passed on to the program */
	struct rcm_stream *next_said; /* in iw.said */
	bool live, over;	      /* the program knows it by an event */
};

struct iw {
	pthread_mutex_t lock;
	/* `lock` guards all members but `said`. */
	/* Streams that are being set up: the thread visits all at each turn. */
	struct rcm_stream *first;
	/* Streams in OPEN, maybe thousands: visited only when listed in said.
	 */
	struct rcm_stream *open;
	struct rcm_stream *dead; /* the thread frees them at its next turn */
	uint32_t serial;	 /* the last one given out */
	int set, bell;		 /* epoll, eventfd; -1: there is no thread */
	/* The last peer that sent an MPA reply, and when. */
	struct sockaddr_storage reached;
	vb_time reached_at;
	/* Streams of which the engine has news; a lock-free stack. */
	struct rcm_stream *_Atomic said;
};
extern struct iw iw;

/* iw_offer.c: the MPA options we ask a peer for. Needs no lock. */
struct vb_mpa_offer iw_offer(void);

/* iw_stream.c: the caller holds iw.lock, except for iw_now() and iw_ring(). */

/* The time of CLOCK_MONOTONIC, in ns. */
vb_time iw_now(void);
/* Wakes the thread of iw.c, so that it looks at its lists again. */
void iw_ring(void);
void iw_link(struct rcm_stream *s, struct rcm_stream **list);
void iw_unlink(struct rcm_stream *s);
/* A new stream in iw.first that owns @fd and belongs to id @number. NULL: no
 * memory, and the caller keeps @fd. iw_bury() ends it. */
struct rcm_stream *iw_make(int fd, uint32_t number);
/* Makes the thread wait for the EPOLL* @events of the socket; 0: for none. */
void iw_watch(struct rcm_stream *s, uint32_t events);
void iw_close_fd(struct rcm_stream *s);
/* Makes the thread accept further connections exactly while the backlog of
 * @listener has room. */
void iw_attend(struct rcm_stream *listener);
/* Takes an accepted connection out of its listener's counts. */
void iw_leave_caller(struct rcm_stream *s);
/* Closes @s and takes it out of its list. The thread frees it at its next
 * turn, because it may still hold an epoll event that points to it. */
void iw_bury(struct rcm_stream *s);
/* The stream with the number @serial among those that are not OPEN; or NULL. */
struct rcm_stream *iw_find(uint32_t serial);
/* A copy of the peer's private data, which the caller frees. NULL: no memory.
 */
struct rcm_private *iw_private(const struct rcm_stream *s);
/* The message that a broker would send to report @event with @status: iWARP has
 * no broker. */
struct vb_ipc_cm iw_cm_event(const struct rcm_stream *s,
			     enum vb_ipc_cm_event event, int status);
/* Queues the event @event about @s for the program, without private data. */
void iw_say(const struct rcm_stream *s, enum vb_ipc_cm_event event, int status);
/* Puts the RDMA READ depths of RFC 6581 into @m, at most 255 each: rdma_cm has
 * 8 bits for each. */
void iw_fill_depths(struct vb_ipc_cm *m, uint16_t ird, uint16_t ord);
/* Closes @s and reports that its connection failed. @error: positive errno. */
void iw_say_failed(struct rcm_stream *s, int error);

/* iw_setup.c: the caller holds iw.lock. The iw_on_...() functions handle what
 * epoll reported and move s->step on. */

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

/* iw_listen.c: the caller holds iw.lock. */

void iw_on_listener(struct rcm_stream *s);
/* The accepted connection @s counts in the backlog from now on (caller), or no
 * longer, because it has sent no MPA request (silent). */
void iw_count_caller(struct rcm_stream *s);
void iw_count_silent(struct rcm_stream *s);
/* Closes the listener and every connection that no id has adopted. */
void iw_end_listener(struct rcm_stream *listener);
/* The program closed the listener: it lingers for 500 ms. */
void iw_leave_listener(struct rcm_stream *s);
/* The lingering listener that is bound to @a, port included; or NULL. */
struct rcm_stream *iw_find_lingering(const struct sockaddr *a);
/* Gives a lingering listener and its connections to id @number. */
void iw_take_up(struct rcm_stream *s, uint32_t number);
/* Reports again, now for the id that took up @listener, the requests whose
 * events went to the id before it. */
void iw_hear_again(const struct rcm_stream *listener);

/* iw.c */

/* Starts the thread unless it runs. The caller holds iw.lock. -errno */
int iw_begin(void);
/* The engine calls it (engine/stream.h) with its own locks held: it takes no
 * lock, and only notes the news of stream @arg for the thread. */
void iw_hear(void *arg, enum vb_stream_event news);

#endif
