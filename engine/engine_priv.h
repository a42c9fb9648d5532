/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's inside, shared by its files only. docs/LOCKING.md has the lock
 * order.
 */
#ifndef ENGINE_ENGINE_PRIV_H
#define ENGINE_ENGINE_PRIV_H

#include <stdatomic.h>

#include "core/transport.h"
#include "engine/engine.h"
#include "engine/lease.h"
#include "engine/stream.h"
#include "near/near.h"

struct vb_watcher { /* a context that hears an adapter's port events */
	struct vb_async *async;
	struct vb_watcher *next;
};

struct vb_open_adapter {
	struct vb_adapter adapter;
	struct vb_device device;
	unsigned refs;
	struct vb_watcher *watchers;
	struct vb_open_adapter *next;
};

/* Who sent datagrams lately, by IPv4 address: IPv6 has no Identification. */
#define VB_SENDER_BITS 8
struct vb_sender {
	uint32_t ipv4;
	struct vb_peer_id id;
};

/* A queue pair in a multicast group. */
struct vb_group {
	struct vb_gid gid;
	uint32_t ifindex;
	struct vb_qp *qp;
	uint32_t qpn; /* it is still this one */
	int member;   /* the link's */
	struct vb_group *next;
};

struct vb_stream;
struct vb_iw_rxq;

struct vb_engine {
	/* immutable while the thread runs */
	struct vb_lease lease;
	struct vb_link *link;
	/* NULL: packets to everybody. It may come while a program polls for
	 * its iWARP device. */
	struct vb_near *_Atomic near;
	int slot_fd; /* a slot of our own making (engine/transport_mux.c); -1 */
	struct vb_forward
		*_Atomic forward; /* made with the first inode's domain */
	struct vb_idtab *qps;
	int wake_fd;
	_Atomic unsigned pace;	  /* see vb_engine_span() */
	_Atomic pthread_t thread; /* another one when a network is joined */
	bool serving;		  /* there is a thread; open_lock */

	struct vb_mutex list_lock;
	struct vb_open_adapter *adapters; /* list_lock */

	struct vb_mutex rx;
	struct vb_rxq rxq;	 /* rx */
	uint64_t strays;	 /* rx: frames for no queue pair of ours */
	struct vb_group *groups; /* rx */
	struct vb_raw *raws; /* rx: queue pairs with a socket of their own */
	_Atomic int raw_fd;  /* readable while theirs are; -1: never any */
	struct vb_chain *streams;	/* rx: iWARP's sockets */
	unsigned stream_count;		/* rx */
	struct vb_iw_rxq *stream_rxq;	/* rx: where bytes arrive */
	_Atomic int stream_fd;		/* as raw_fd */
	_Atomic unsigned stream_ending; /* that a time-out waits for */
	_Atomic unsigned stream_near;	/* whose peers are of this host */
	vb_time stream_look;		/* rx: at those, not before */
	_Atomic unsigned
		awaiting; /* queue pairs whose answers are looked for */
	struct vb_sender senders[1u << VB_SENDER_BITS]; /* rx */
	vb_time found_at; /* rx: when it last found something */
	/* When a program's thread last drained the link, or sent much; while
	 * it does, a time to come. A hint, ordered by nothing. */
	_Atomic vb_time last_poll;
	_Atomic bool unbooked; /* a poll found something and hurried back */
	_Atomic bool looping;  /* its last poll found nothing: it will again */
	vb_time polled_at;     /* rx: the end of a program's last poll */
	_Atomic vb_time back_at; /* from giving way after one; a hint */
	vb_time patience;	 /* rx: how long to spin before yielding */
	bool yielded;		 /* rx: and just did */
	/* rx: the queue pair whose packets' completions the program has yet to
	 * see, or to answer. */
	struct vb_qp *delayed_ack_qp;
	vb_time owing_at;     /* rx */
	bool polled;	      /* rx: it is a program that drains */
	_Atomic bool awaited; /* one that polls sleeps for rx; a hint */
	/* The queue pair whose messages a post has left to gather; and, rx,
	 * the one that an empty poll has seen since. */
	struct vb_qp *_Atomic gathers;
	struct vb_qp *gathered;
	/* The thread will look within a millisecond (times pace): ACKs may
	 * wait for replies. To set, it is the thread; to clear, it holds
	 * rx. */
	_Atomic bool attentive;
	/* The thread looks at the clock instead of the link, for long. */
	_Atomic bool resting;
	vb_time near_at;   /* rx: when peers of this host last had something */
	vb_time looked_at; /* rx: at the link */
	unsigned streak;   /* rx: polls, each close behind the last */
	/* A program polls all the time: it serves the lanes, and peers need
	 * not ring. The thread looks whether that is still so. */
	_Atomic bool spinning;
	/* Another sleeps in vb_engine_wait(), and serves them meanwhile. */
	_Atomic bool watched;
	int soon_fd;	   /* a timer: vb_wait_soon(); -1: none */
	_Atomic bool soon; /* it is set */
	_Atomic vb_time soon_set;
	/* Who watches: when it last went, how often it was soon back. */
	vb_time left_at;
	unsigned prompt;
	/* How many sleeps in a row were short, and how many must have been for
	 * it to look before it sleeps. */
	unsigned short_sleeps, wary;

	struct vb_mutex timer_lock;
	struct vb_timers timers;    /* timer_lock */
	struct vb_mutex moderation; /* who signals what is due; outside cq */
	struct vb_timers cq_timers; /* timer_lock */
	vb_time sleep_until; /* timer_lock: when the thread wakes anyway */
	bool polls_look;     /* timer_lock: it leaves @timers to who polls */
	/* When the first of @timers is due, a hint: who polls sees to it. */
	_Atomic vb_time due;

	_Atomic unsigned held; /* batches that the kernel had no room for */
	_Atomic bool stop;
};

/* engine/engine.c */
struct vb_engine *vb_engine_running(void);
void vb_engine_wake(struct vb_engine *e); /* its thread */

/* As long here as @t is on a processor of today. */
static inline vb_time vb_engine_span(const struct vb_engine *e, vb_time t)
{
	return t * atomic_load_explicit(&e->pace, memory_order_relaxed);
}

/* A program's thread works, for as long at most: the engine's would only wait
 * for its locks, and take the processor and the caches from it. */
#define VB_WORK_LASTS (500 * VB_USEC)
static inline void vb_engine_at_work(struct vb_engine *e, vb_time at)
{
	atomic_store_explicit(&e->last_poll, at, memory_order_relaxed);
}

/* A queue pair's time never runs back, though who drives it next may have read
 * the clock before who drove it last. With drive. */
static inline vb_time vb_engine_time(const struct vb_qp *qp, vb_time now)
{
	return VB_MAX(now, qp->now);
}

/* How long a program's poll looks in vain before it yields its processor: a
 * round trip on a good network. struct vb_engine's @patience begins with it. */
#define VB_SPIN_MOST (30 * VB_USEC)

/* engine/adapters.c. With list_lock held. */
VB_MUST_CHECK int vb_adapters_open(struct vb_engine *e,
				   const struct vb_device *device,
				   struct vb_async *async,
				   struct vb_adapter **adapter);
void vb_adapters_close(struct vb_engine *e, struct vb_adapter *adapter,
		       struct vb_async *async);

/* engine/drive.c */
/* Send what @qp may send and arm its timer. */
void vb_drive_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* Need it not be stepped yet? Then short posts need not ask, for a while. */
bool vb_drive_can_wait(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Give up qp->drive, and serve who asked meanwhile. */
void vb_drive_release(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive);
/* The same for who serves the lanes of peers: it copies little, and leaves the
 * rest to a step of its own. */
void vb_drive_release_light(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive);
/* The program has not replied to what it saw: see to the ACK. */
void vb_drive_owing(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
/* The same at the program's end, without waiting for anybody. */
void vb_drive_last(struct vb_engine *e) VB_REQUIRES(e->rx);
/* A poll found nothing: what gathers on a queue pair leaves with the second
 * in a row, as the program waits. */
void vb_drive_gathered(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
/* With timer_lock held: is what is due @at left to a program that polls? */
bool vb_drive_is_for_polls(struct vb_engine *e, vb_time at, vb_time now);
/* Step queue pairs whose deadline has come, so many at most. */
void vb_drive_due(struct vb_engine *e, vb_time now, unsigned most);
static inline bool vb_drive_is_due(struct vb_engine *e, vb_time now)
{
	return atomic_load_explicit(&e->due, memory_order_relaxed) <= now;
}

/* With timer_lock held: the thread is to wake at @at. True: wake it now. */
bool vb_drive_wakes(struct vb_engine *e, vb_time at);

/* engine/room.c: what the kernel has no room for. */
#define VB_HELD_MOST  64 /* batches: each has the memory of a whole one */
#define VB_HELD_LASTS (20 * VB_MSEC)
#define VB_ROOM_SOON  (100 * VB_USEC) /* when it is looked for again, first */
static inline struct vb_link *vb_room_link(struct vb_engine *e,
					   const struct vb_qp *qp)
{
	return qp->link ? qp->link : e->link;
}
/* Takes @q, of which the link has left something; false: there is no memory. */
bool vb_room_hold(struct vb_engine *e, struct vb_qp *qp, struct vb_txq *q,
		  vb_time now) VB_REQUIRES(qp->drive);
/* What @qp holds, if its time has come: true when it holds nothing any more. */
bool vb_room_send(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* When that is to be called again. */
vb_time vb_room_at(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_room_drop(struct vb_engine *e, struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Wait for it to leave, VB_HELD_LASTS at most. Takes drive. */
void vb_room_settle(struct vb_engine *e, struct vb_qp *qp);
/* The program exits: the same for all, which the thread sees to. */
void vb_room_settle_all(struct vb_engine *e);

/* engine/moderate.c: events that were put off. */
void vb_moderate_due(struct vb_engine *e, vb_time now);

/* engine/transport_mux.c: packets, or a stream, or neither. */
extern const struct vb_transport_ops vb_mux_transport;
extern const struct vb_transport_ops vb_mux_stream_transport;
extern const struct vb_key_ops vb_mux_keys;
void vb_mux_open(struct vb_engine *e);
/* There is a slot now. */
void vb_mux_join(struct vb_engine *e);
void vb_mux_close(struct vb_engine *e);

/* engine/xrc_forward.c: XRC between processes. serve: the thread; and destroy,
 * when it has ended. */
extern const struct vb_forward_ops vb_engine_forward_ops;
VB_MUST_CHECK int vb_forward_create(struct vb_engine *e,
				    struct vb_forward **forward);
void vb_forward_destroy(struct vb_forward *forward);
int vb_forward_fd(const struct vb_forward *forward);
void vb_forward_serve(struct vb_forward *forward);

/* engine/dispatch.c: hand over what rxq holds. */
void vb_dispatch(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);

/* engine/raw.c: hand over what came to raw packet queue pairs. */
bool vb_raw_drain(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
void vb_raw_close(struct vb_engine *e);

/* engine/stream.c: read what has come, answer, and go on writing. */
bool vb_stream_drain(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
/* True: more is to be sent, at once. With drive. */
bool vb_stream_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* The socket is full: no time changes anything before it has room. */
bool vb_stream_is_blocked(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_stream_orphan(struct vb_engine *e, struct vb_qp *qp);
/* Close what nobody else does. */
void vb_stream_sweep(struct vb_engine *e, vb_time now);
void vb_stream_close_all(struct vb_engine *e);
/* The program ends: let what was sent arrive, for a while. */
void vb_stream_settle(struct vb_engine *e);

/* engine/poll_hint.c: on a stream that begins, or ends; something was sent on
 * it; something came. */
void vb_poll_hint_begin(struct vb_engine *e, struct vb_poll_hint *a);
void vb_poll_hint_sent(struct vb_engine *e, struct vb_poll_hint *a,
		       vb_time now);
void vb_poll_hint_came(struct vb_engine *e, struct vb_poll_hint *a,
		       vb_time now);

/* engine/wait.c: in a moment the thread calls vb_near_settle(). */
void vb_wait_soon(struct vb_engine *e);
/* By the thread: the moment is over. */
void vb_wait_over(struct vb_engine *e);
/* A program's thread looks after the lanes, or will in a moment. */
static inline bool vb_wait_attends(struct vb_engine *e)
{
	return atomic_load(&e->watched) || atomic_load(&e->soon);
}
/* Nobody watches any more, nor will. The thread is gone. */
void vb_wait_stop(struct vb_engine *e);

/* engine/service.c: the thread. */
VB_MUST_CHECK int vb_service_start(struct vb_engine *e);
void vb_service_stop(struct vb_engine *e);
static inline bool vb_service_is_me(const struct vb_engine *e)
{
	return pthread_equal(
		pthread_self(),
		atomic_load_explicit(&e->thread, memory_order_relaxed));
}
/* engine/ports.c: bring an adapter's port to what the system says. */
void vb_ports_refresh(struct vb_engine *e);
VB_MUST_CHECK int vb_ports_setup(struct vb_open_adapter *oa);
/* engine/adapters.c: run @f with the list of adapters locked. */
void vb_engine_with_adapters(struct vb_engine *e,
			     void (*f)(struct vb_open_adapter *oa, void *arg),
			     void *arg);

#endif
