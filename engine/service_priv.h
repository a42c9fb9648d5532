/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the engine's thread, shared by its three files: the loop
 * (engine/service.c), whether the thread or a polling program takes packets
 * (engine/service_rest.c), and standing by for peers of this host
 * (engine/service_attend.c). Only the engine's thread touches it.
 */
#ifndef ENGINE_SERVICE_PRIV_H
#define ENGINE_SERVICE_PRIV_H

#include <poll.h>

#include "engine/engine_priv.h"
#include "link/netif.h"

/* Times are for a machine of usual speed: vb_engine_span() scales them. */
#define NAP	       (20 * VB_USEC) /* a short look away from the sockets */
#define REST_MIN       (50 * VB_USEC) /* the first rest in a row... */
#define REST_MAX       (1 * VB_MSEC)  /* ...and the longest */
#define POLL_IS_RECENT (50 * VB_USEC)
#define REST_AFTER     8 /* needless wake-ups in a row before a rest */
#define TRUST_LOST     4 /* what a nap that was wrong takes from the trust */

/* What the thread sleeps on: places in struct vb_service's @fds. */
enum {
	FD_WAKE,    /* vb_engine_wake() */
	FD_LINK,    /* the port 4791 socket */
	FD_BROKER,  /* the session with the broker */
	FD_WATCH,   /* changes of interfaces and addresses */
	FD_NEAR,    /* introductions and rings of peers of this host (near/) */
	FD_RAW,	    /* raw packet queue pairs */
	FD_STREAM,  /* iWARP's TCP sockets */
	FD_SOON,    /* the timer of vb_wait_soon() */
	FD_FORWARD, /* XRC requests of other processes */
	FD_COUNT
};

struct vb_service {
	struct vb_engine *e;
	struct vb_netif_watch *watch; /* NULL: the host denies netlink */
	struct pollfd fds[FD_COUNT];

	/* service_rest.c. @rest: how long the thread leaves the packet sockets
	 * unwatched, until @rest_until; 0: it watches them. */
	vb_time rest, rest_until;
	/* Wake-ups in a row that were not needed, and how many of them send
	 * the thread to rest. */
	unsigned idle_wakes, rest_after;
	/* How often in a row it was right to leave packets to a program. */
	unsigned trust;
	/* How often packets came just after the thread had gone to sleep. */
	unsigned eager;
	/* The thread does not linger before @crowded_until; @crowd is how long
	 * the last such pause was. */
	vb_time crowd, crowded_until;

	/* service_attend.c */
	bool attends;		  /* stands by for peers' small messages */
	vb_time away_until, away; /* does not stand by; how long last time */

	/* service.c */
	vb_time rejoin_at;  /* the next step towards a broker, or VB_NEVER */
	vb_time near_rest;  /* how long peers' lanes were left to a program */
	vb_time refresh_at; /* when to list the interfaces, or VB_NEVER */
};

/* When a program's thread last polled, or until when it is at work: a hint. */
static inline vb_time vb_service_last_poll(struct vb_engine *e)
{
	return atomic_load_explicit(&e->last_poll, memory_order_relaxed);
}

static inline bool vb_service_program_polls(struct vb_engine *e, vb_time now)
{
	return vb_service_last_poll(e) + vb_engine_span(e, POLL_IS_RECENT) >
	       now;
}

/* engine/service_rest.c */
/* A packet socket was readable: serve it, or leave it to a program. */
void vb_rest_on_packets(struct vb_service *s, vb_time now);
/* @rest_until has come. */
void vb_rest_on_timeout(struct vb_service *s, vb_time now);
/* A program that is about to sleep has ended a rest of REST_MIN or more. */
bool vb_rest_is_called_back(const struct vb_service *s);
/* Watch the packet sockets from now on. */
void vb_rest_end(struct vb_service *s);
/* How often the kernel has put this thread to sleep so far. 0: needless
 * wake-ups are not counted now. */
long vb_rest_count_sleeps(const struct vb_service *s);
/* After one sleep in ppoll(): @before is what the function above returned. */
void vb_rest_note_sleeps(struct vb_service *s, long before);
/* Rest if enough of these sleeps were needless. */
void vb_rest_if_unheard(struct vb_service *s, vb_time now);
/* The thread went to sleep at @then, and ppoll() has returned @ready. */
void vb_rest_note_packets(struct vb_service *s, vb_time then, int ready);

/* engine/service_attend.c: begin, go on or stop standing by. @woken: something
 * woke the thread. */
void vb_service_attend(struct vb_service *s, bool woken, vb_time now);

#endif
