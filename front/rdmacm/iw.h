/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP's connections: TCP's, with MPA's request and reply before the stream is
 * the queue pair's (iwarp/setup.h). Ports are TCP's, so that programs share
 * them as they share TCP's, and there is no broker.
 */
#ifndef FRONT_RDMACM_IW_H
#define FRONT_RDMACM_IW_H

#include <stdatomic.h>

#include "engine/stream.h"
#include "front/rdmacm/rdmacm.h"
#include "iwarp/setup.h"

enum step {
	LISTENING,
	LINGERING, /* a listener that the program has left */
	CONNECTING,
	AWAIT_REPLY,
	AWAIT_REQUEST,
	ASKED,	 /* the program may accept */
	REPLIED, /* the program is to hear of it, and then it is the queue's */
	OPEN,	 /* the queue pair has the socket */
	OVER,
};

struct rcm_stream {
	/* iw.lock */
	int fd; /* -1: it is the queue pair's, or closed */
	enum step step;
	bool watched;
	uint32_t serial; /* not 0; differs from all others' */
	uint32_t number; /* its id's; a request's: the listener's */
	bool adopted;
	vb_time until;		      /* VB_NEVER */
	struct sockaddr_storage peer; /* of who connects */
	bool again;		      /* it was refused, and is to ask again */
	vb_time patient_until;	      /* so long */
	struct ibv_context *verbs;
	uint32_t qpn;
	struct vb_mpa_setup setup;
	struct rcm_stream *next, **at;
	/* Of who called, until it is adopted. A listener lives longer. */
	struct rcm_stream *listener;
	bool counted;		/* ...among its callers, or with the silent */
	unsigned callers, most; /* a listener's */
	unsigned silent;
	_Atomic uint32_t said; /* by the engine, and not told yet */
	struct rcm_stream *next_said;
	bool live, over; /* told */
};

struct iw {
	pthread_mutex_t lock;
	/* lock */
	struct rcm_stream *first; /* looked at, all of them, at every turn */
	struct rcm_stream *open;  /* thousands, maybe: only when they say so */
	struct rcm_stream *dead;
	uint32_t serial;
	int set, bell; /* -1: there is no thread */
	/* The last peer that replied, and when. */
	struct sockaddr_storage reached;
	vb_time reached_at;
	struct rcm_stream *_Atomic said;
};
extern struct iw iw;

/* iw_offer.c */
struct vb_mpa_offer iw_offer(void);

/* iw_stream.c: with the lock; but for iw_now(), iw_ring() */
vb_time iw_now(void);
void iw_ring(void);
void iw_link(struct rcm_stream *s, struct rcm_stream **list);
void iw_unlink(struct rcm_stream *s);
struct rcm_stream *iw_make(int fd, uint32_t number);
void iw_watch(struct rcm_stream *s, uint32_t events);
void iw_close_fd(struct rcm_stream *s);
void iw_attend(struct rcm_stream *listener);
void iw_leave_caller(struct rcm_stream *s);
void iw_bury(struct rcm_stream *s);
/* One that is not open. */
struct rcm_stream *iw_find(uint32_t serial);
/* NULL: no memory. */
struct rcm_private *iw_private(const struct rcm_stream *s);
struct vb_ipc_cm iw_cm_event(const struct rcm_stream *s,
			     enum vb_ipc_cm_event event, int status);
void iw_say(const struct rcm_stream *s, enum vb_ipc_cm_event event, int status);
void iw_fill_depths(struct vb_ipc_cm *m, uint16_t ird, uint16_t ord);
void iw_say_failed(struct rcm_stream *s, int error);

/* iw_setup.c: with the lock */
/* 0, or errno. */
int iw_send_frame(struct rcm_stream *s);
/* Its socket is bound; for the first time, or again. */
void iw_connect(struct rcm_stream *s);
void iw_on_connected(struct rcm_stream *s);
void iw_on_reply(struct rcm_stream *s);
void iw_on_request(struct rcm_stream *s);
void iw_say_request(const struct rcm_stream *s);

/* iw_listen.c: with the lock */
void iw_on_listener(struct rcm_stream *s);
/* @s, which has called, is one of the silent no longer; or has become one. */
void iw_count_caller(struct rcm_stream *s);
void iw_count_silent(struct rcm_stream *s);
void iw_end_listener(struct rcm_stream *listener);
void iw_leave_listener(struct rcm_stream *s);
struct rcm_stream *iw_find_lingering(const struct sockaddr *a);
void iw_take_up(struct rcm_stream *s, uint32_t number);
void iw_hear_again(const struct rcm_stream *listener);

/* iw.c: with the lock; but for iw_hear() */
/* The thread, if there is none. -errno */
int iw_begin(void);
/* A listener (engine/stream.h): under the engine's locks, and only noted. */
void iw_hear(void *arg, enum vb_stream_event news);

#endif
