/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that only the files of engine/ share. docs/LOCKING.md has the
 * lock order. The engine thread never takes open_lock, because the caller that
 * stops the engine holds it while it waits for that thread to end.
 *
 * "A hint" below is an atomic field that its readers use without any lock or
 * memory order: a stale value costs time and never correctness. A comment that
 * begins with the name of a lock says which lock guards the field.
 */
#ifndef ENGINE_ENGINE_PRIV_H
#define ENGINE_ENGINE_PRIV_H

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/nudge.h"
#include "base/timer.h"
#include "core/transport.h"
#include "engine/engine.h"
#include "engine/lease.h"
#include "engine/policy.h"
#include "engine/stream.h"
#include "near/near.h"

struct vb_watcher { /* a context that gets the port events of an adapter */
	struct vb_async *async;
	struct vb_watcher *next;
};

struct vb_open_adapter {
	struct vb_adapter adapter;
	struct vb_device device;
	unsigned refs;
	/* guarded by list_lock: the bit 1 << i is set while port i + 1 has no
	 * interface, or its fabric has ended (engine/ports.c) */
	unsigned gone;
	struct vb_watcher *watchers;
	struct vb_open_adapter *next;
};

/* IPv4 Identifications of a peer's packets. The ICRC covers this field, but a
 * UDP socket does not report it: the link infers it, and the dispatcher checks
 * that the value is plausible (engine/dispatch.c). */
struct vb_peer_id {
	uint16_t last, rejected;
	/* plus 1 for each packet refused, minus 1 for each good one */
	uint8_t doubts;
	vb_time at;
	bool known, has_rejected, any;
};

/* iWARP (engine/poll_hint.c): when the stream last sent and received; whether a
 * poll that finds completions shall look for an answer first; how many answers
 * in a row came soon, and how many a poll wants first. A queue pair that reuses
 * the memory resets nothing; vb_poll_hint_begin() does. */
struct vb_poll_hint {
	_Atomic vb_time sent, came;
	_Atomic bool looks;
	_Atomic unsigned answers, wary;
};

struct vb_held;
struct vb_stream;

/* What the engine keeps of a queue pair (PRIV_ENGINE). It is made when the
 * queue pair's memory is first attached and lives as long as that memory, for
 * ever: a thread that found the queue pair in the table can use it even after
 * the queue pair was destroyed. */
struct vb_engine_qp {
	/* another thread posted work while drive was held */
	_Atomic uint32_t kick;
	/* bits of enum vb_port_news that the queue pair has not heard yet */
	_Atomic unsigned port_news;
	/* True: a thread that had rx has waited for drive, and did not get it,
	 * because the thread with drive copies. From then on threads with rx
	 * only try the lock, until one gets it. Guarded by rx. */
	bool is_late;
	/* The fields below are protected by drive. */

	/* the deadline for which the timer is queued, or VB_NEVER */
	vb_time timer_at;
	/* when the next batch may leave, if a static rate slows the queue pair
	 * down (engine/static_rate.h); else in the past */
	vb_time rate_at;
	/* If the next batch leaves late, up to this much of the delay does not
	 * postpone the batches after it. */
	vb_time rate_credit;
	struct vb_held *held; /* packets for which the link had no room */
	/* the stream of an iWARP queue pair; or NULL */
	struct vb_stream *stream;
	/* IPv4 Identifications of the connection's peer */
	struct vb_peer_id peer_id;
	/* state of the poll hint of an iWARP queue pair */
	struct vb_poll_hint await;
	struct vb_timer timer; /* protected by timer_lock; initialized once */
	struct vb_qp *qp;      /* the queue pair, which never changes */
};

static inline struct vb_engine_qp *vb_eq(const struct vb_qp *qp)
{
	return qp->priv[PRIV_ENGINE];
}

/* The senders of recent datagrams, by IPv4 address. IPv6 has no Identification
 * and needs no entry. */
#define VB_SENDER_BITS 8
struct vb_sender {
	uint32_t ipv4;
	struct vb_peer_id id;
};

/* The membership of a queue pair in a multicast group. */
struct vb_group {
	struct vb_link_group to;
	struct vb_link *link; /* of the port where the queue pair has joined */
	struct vb_qp *qp;
	/* the queue pair's number, which shows whether @qp was destroyed and
	 * reused */
	uint32_t qpn;
	int member; /* the number that the link's join() returned */
	struct vb_group *next;
};

struct vb_iw_rxq;

/* What the program watches in place of the engine thread, while it waits for an
 * event. */
enum vb_watch {
	WATCHES_NOTHING, /* no thread waits */
	WATCHES_LANES,	 /* the lanes of peers of this host */
	WATCHES_LINK,	 /* the engine's own link */
	/* the same, but the program sleeps by the channel's descriptor
	 * (engine/lend.c) */
	WATCHES_LENT
};

/* What the engine thread does if a thread of the program is not back in time:
 * it sleeps by the timer @fd. */
struct vb_owed {
	int fd;		     /* a timerfd; -1: none */
	_Atomic bool is_set; /* the timer runs */
	_Atomic vb_time set_at;
};

struct vb_engine {
	/* The fields below do not change while the engine thread runs. */
	struct vb_lease lease;
	struct vb_link *link;
	_Atomic int link_fd; /* readable while frames have arrived; or -1 */
	/* The lanes to peers of this host; NULL: all peers get packets. Opening
	 * a RoCE device can set this while the program polls an iWARP
	 * device. */
	struct vb_near *_Atomic near;
	/* A slot that this process chose without the broker, and a socket bound
	 * to its name (engine/host_slot.c); 0 and -1: none. Writers hold
	 * open_lock; other threads read the slot only. */
	_Atomic unsigned slot;
	int slot_fd;
	/* forwards XRC requests; made when the program opens its first XRC
	 * domain with an inode */
	struct vb_forward *_Atomic forward;
	struct vb_idtab *qps;
	int wake_fd;
	/* factor by which this machine is slow: vb_engine_span() */
	_Atomic unsigned slowdown;
	_Atomic pthread_t
		/* the engine thread, restarted when the first RoCE device
		 * opens */
		thread;
	bool serving; /* guarded by open_lock: the thread exists */

	struct vb_mutex list_lock;
	/* list of open adapters; guarded by list_lock */
	struct vb_open_adapter *adapters;

	/* Adapters of InfiniBand fabrics (engine/fabric.c). Changed with
	 * list_lock, rx and fabric_lock; read with any of them. */
	struct vb_fabric *fabrics;
	struct vb_mutex fabric_lock;
	/* RoCEv1 (engine/roce1.c). Both links are NULL until an adapter needs
	 * them. Changed with list_lock and rx; read with any of them. */
	struct {
		struct vb_link *v1;
		/* by which such adapters send packets of either version */
		struct vb_link *both;
		/* readable while frames have arrived; -1: no link yet */
		_Atomic int fd;
	} roce;
	/* epoll descriptors over their bells, and over their connections; -1:
	 * none yet */
	_Atomic int fabric_fd;
	int control_fd;

	/* held while a queue pair joins or leaves a group */
	struct vb_mutex group_lock;

	struct vb_mutex rx;
	/* guarded by rx: the frames read from a link, and that link */
	struct vb_rxq rxq;
	const struct vb_link *rx_link;
	/* guarded by rx: number of frames for no queue pair of this process */
	uint64_t strays;
	/* Memberships in multicast groups. Changed with group_lock and rx. */
	struct vb_group *groups;
	/* guarded by rx: list of the raw packet queue pairs */
	struct vb_raw *raws;
	/* epoll descriptor for the sockets of the raw packet queue pairs; -1:
	 * none yet */
	_Atomic int raw_fd;
	struct vb_chain *streams; /* guarded by rx: list of iWARP's sockets */
	unsigned stream_count;	  /* guarded by rx: length of @streams */
	/* guarded by rx: buffer for the bytes of a stream */
	struct vb_iw_rxq *stream_rxq;
	_Atomic int stream_fd; /* epoll descriptor for @streams; -1: none yet */
	_Atomic unsigned
		/* number of streams that are closing, with a deadline */
		stream_ending;
	/* number of streams whose peer is on this host */
	_Atomic unsigned stream_near;
	/* guarded by rx: when to look at the streams of peers on this host
	 * again */
	vb_time stream_look;
	/* number of streams with bytes that wait for their peer's lane */
	_Atomic unsigned stream_waits;
	/* number of queue pairs whose answers polls look for
	 * (engine/poll_hint.c) */
	_Atomic unsigned awaiting;
	/* guarded by rx: the senders of recent datagrams */
	struct vb_sender senders[1u << VB_SENDER_BITS];
	/* A hint, packed into one word by vb_program_word(): what the program
	 * does, and since when. Its polls and long sends write it. */
	_Atomic uint64_t program;
	struct vb_poll_policy poll; /* guarded by rx: the policy of polls */
	/* the time when the program's last yield after a poll ended, and how
	 * long it lasted; hints */
	_Atomic vb_time back_at, yield_took;
	/* number of polls that have slept until something arrived
	 * (engine/poll_wait.c); a hint */
	_Atomic unsigned waits;
	/* Polls of the program sleep until something arrives
	 * (engine/poll_wait.c). True: until the timer of @back expires the
	 * program serves link and lanes, and the engine thread does not. */
	_Atomic bool polls_wait;
	/* Guarded by rx: the queue pair with a delayed ACK, whose program has
	 * not yet replied to what arrived there. NULL: none. */
	struct vb_qp *delayed_ack_qp;
	/* guarded by rx: the time since when that ACK is delayed */
	vb_time delayed_ack_at;
	/* guarded by rx: a program, and not the engine thread, drains the
	 * link */
	bool polled;
	/* @gathers: the queue pair on which a post has left messages to gather
	 * into a batch. @gathered: the value of @gathers that the last empty
	 * poll saw. */
	struct vb_qp *_Atomic gathers, *_Atomic gathered;
	/* True: ACKs may be delayed and timers be left to polls, because the
	 * engine thread looks within a millisecond (times slowdown) for ACKs
	 * that waited too long and timers that no poll has stepped. Only the
	 * engine thread sets it; it clears it with rx held, before it plans its
	 * sleep with timer_lock. */
	_Atomic bool attentive;
	/* The activity of the engine thread; other threads only need to know
	 * whether it rests. A program that is about to sleep ends the rest by
	 * storing THREAD_WATCHES, and wakes the thread. */
	_Atomic enum vb_thread thread_does;
	/* What the program watches in place of the engine thread: a thread in
	 * vb_engine_wait() does so, or the program that sleeps by a channel to
	 * which the link is lent. */
	_Atomic enum vb_watch watched;
	struct vb_owed soon; /* rings: vb_wait_soon() */
	/* The timer for a thread of the program that has watched the link and
	 * left it. The thread most often comes back before the timer expires;
	 * if it does not, the engine thread watches the link again. */
	struct vb_owed back;
	/* The fields below belong to the thread that has set @watched. */
	struct vb_wait_policy wait;
	struct vb_nudge nudge; /* by which packets wake that thread */
	bool no_nudges;	       /* the host denies them */
	struct {
		struct vb_mutex lock;
		/* The fields below are protected by lock. */
		struct vb_channel *channel; /* has the link; or NULL */
		struct vb_lend_policy policy;
		struct vb_nudge lanes; /* by which peers of this host wake it */
		bool no_lanes;	       /* the host denies a second nudge */
		/* Since the engine last asked the kernel for a nudge, the
		 * program has read the channel, found no event, and was not
		 * blocked. So the channel's descriptor is non-blocking, and
		 * is_polled() need not ask the kernel. */
		bool was_empty;
		/* True: peers of this host, too, wake the program by the
		 * channel, and the engine thread does not watch the lanes.
		 * Other threads read this without the lock. */
		_Atomic bool has_lanes;
	} lend;

	struct vb_mutex timer_lock;
	/* timers of queue pairs; guarded by timer_lock */
	struct vb_timers timers;
	/* A thread holds this lock while it signals due events; it takes the
	 * lock before cq->lock. */
	struct vb_mutex moderation;
	/* timers of completion queues; guarded by timer_lock */
	struct vb_timers cq_timers;
	/* guarded by timer_lock: the time when the engine thread wakes by
	 * itself */
	vb_time sleep_until;
	/* The time when the first of @timers is due: a hint, from which polls
	 * decide whether to step timers. */
	_Atomic vb_time due;

	/* number of batches that the kernel had no room for (engine/held.c) */
	_Atomic unsigned held;
	_Atomic bool stop;
};

/* A variable of engine/engine.c. */
extern struct vb_engine *_Atomic vb_engine_now;
/* Returns the engine of this process; NULL: no device is open. */
static inline struct vb_engine *vb_engine_running(void)
{
	/* Acquire: pairs with the release in start_engine(). */
	return atomic_load_explicit(&vb_engine_now, memory_order_acquire);
}
/* Wakes the engine thread from its sleep. */
void vb_engine_wake(struct vb_engine *e);

static inline unsigned vb_engine_slowdown(const struct vb_engine *e)
{
	return atomic_load_explicit(&e->slowdown, memory_order_relaxed);
}

/* Returns the time @t multiplied by the slowdown of this machine. */
static inline vb_time vb_engine_span(const struct vb_engine *e, vb_time t)
{
	return vb_span(vb_engine_slowdown(e), t);
}

/* Returns the program's activity (vb_program_word()), which is only a hint. */
static inline uint64_t vb_engine_program(const struct vb_engine *e)
{
	return atomic_load_explicit(&e->program, memory_order_relaxed);
}

/* Publish that the program does @does since @at. The flag that it spins does
 * not change. Returns the new word. */
static inline uint64_t vb_engine_note(struct vb_engine *e, vb_time at,
				      enum vb_program does)
{
	uint64_t word = vb_program_word(at, does, vb_engine_program(e));

	atomic_store_explicit(&e->program, word, memory_order_relaxed);
	return word;
}

/* Publish that a program's thread is at work until @at, at most VB_WORK_LASTS
 * from now. The engine thread stays away until then: it would only wait for the
 * program's locks and use the processor and its caches. */
static inline void vb_engine_at_work(struct vb_engine *e, vb_time at)
{
	atomic_store_explicit(&e->program,
			      vb_program_at_work(vb_engine_program(e), at),
			      memory_order_relaxed);
}

/* Does a program poll all the time, and so serve the lanes of peers of this
 * host, which then need not ring? The engine thread checks now and then whether
 * the program still polls. */
static inline bool vb_engine_spins(const struct vb_engine *e)
{
	return vb_program_spins(vb_engine_program(e));
}

/* Publish that the program no longer polls all the time. True: until now it
 * did. */
static inline bool vb_engine_spins_no_more(struct vb_engine *e)
{
	return vb_engine_spins(e) && vb_program_spins(atomic_fetch_and(
					     &e->program, ~VB_PROGRAM_SPINS));
}

/* Functions of engine/adapters.c. The caller holds list_lock. */
VB_MUST_CHECK int
vb_adapters_open(struct vb_engine *e, const struct vb_device *device,
		 struct vb_async *async, struct vb_adapter **adapter)
	VB_REQUIRES(e->list_lock);
void vb_adapters_close(struct vb_engine *e, struct vb_adapter *adapter,
		       struct vb_async *async) VB_REQUIRES(e->list_lock);

/* Functions of engine/drive.c. */
/* Send what @qp may send now and arm its timer. The step may copy memory of a
 * peer of this host, which waits for pages that come late. */
void vb_drive_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive) VB_EXCLUDES(e->rx);
/* Can the requests on @qp wait for others, to leave in one batch with them? If
 * so, the doorbell is deferred: short posts need not call vb_drive() for a
 * while. */
bool vb_drive_can_wait(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Release qp->drive, and then serve posters that found the lock held. */
void vb_drive_release(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive) VB_EXCLUDES(e->rx);
/* Called after releasing qp->drive: has a poster left work to the thread that
 * held the lock? */
bool vb_drive_is_kicked(struct vb_qp *qp) VB_EXCLUDES(qp->drive);
/* Like vb_drive_release(), for a thread that serves the lanes of peers of this
 * host or steps many queue pairs: it copies little for each poster, and leaves
 * the rest to a later step, since other peers wait. */
void vb_drive_release_light(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive) VB_EXCLUDES(e->rx);
/* Like vb_drive_step() and vb_drive_release(), for a thread that holds rx: it
 * leaves all requests that go near to a later step, by the timer. */
void vb_drive_step_rx(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
void vb_drive_release_rx(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive);
/* Lock qp->drive for a thread that holds rx, and that has packets for @qp.
 * False: another thread holds the lock, and copies to or from the memory of a
 * program of this host. The first such call waits for 2 ms; further ones during
 * the same copy do not wait. */
VB_MUST_CHECK bool vb_drive_take_rx(struct vb_qp *qp)
	VB_TRY_ACQUIRE(true, qp->drive);
/* Functions of engine/unsent.c. */
/* Send the delayed ACK now, because the program has not replied to what
 * arrived, so that no reply will carry the ACK. */
void vb_drive_delayed_acks(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
/* The same, unless the ACK was delayed after the program's last poll had ended:
 * in that case the program has not yet seen the message to which it might
 * reply. */
void vb_drive_unreplied(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
/* Send the delayed ACK when the program exits, without waiting for any lock. */
void vb_drive_last(struct vb_engine *e) VB_REQUIRES(e->rx);
/* A poll that found nothing calls this. The second such poll in a row shows
 * that the program waits: then messages that gather for a batch are sent. */
void vb_drive_gathered(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->rx);
/* A function of engine/drive.c: step queue pairs whose deadline has come, at
 * most @most of them. Each may copy 1 MiB, so the caller does not hold rx. */
void vb_drive_due(struct vb_engine *e, vb_time now, unsigned most)
	VB_EXCLUDES(e->rx, e->timer_lock);
static inline bool vb_drive_is_due(struct vb_engine *e, vb_time now)
{
	return atomic_load_explicit(&e->due, memory_order_relaxed) <= now;
}

/* A timer is due @at; the caller holds timer_lock. True: the engine thread
 * would sleep longer, so the caller must wake it. */
bool vb_drive_wakes(struct vb_engine *e, vb_time at) VB_REQUIRES(e->timer_lock);

/* Functions of engine/held.c: batches that the kernel has no room for. */
/* The most batches that all queue pairs together hold; each is a whole struct
 * vb_txq. */
#define VB_HELD_MOST  64
#define VB_HELD_LASTS (20 * VB_MSEC)
/* The pause before the first new try. */
#define VB_HELD_SOON (100 * VB_USEC)
static inline struct vb_link *vb_held_link(struct vb_engine *e,
					   const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return qp->link ? qp->link : vb_qp_port(qp)->link;
}
/* Let @qp hold the batch @q, of which the link has sent only a part. False: too
 * many batches are held, or there is no memory; the caller still owns @q. */
bool vb_held_keep(struct vb_engine *e, struct vb_qp *qp, struct vb_txq *q,
		  vb_time now) VB_REQUIRES(qp->drive);
/* Send the batch that @qp holds, if it is time for a new try. True: @qp holds
 * no batch any more. */
bool vb_held_send(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* Returns the time for the next vb_held_send() of @qp, which holds a batch. */
vb_time vb_held_at(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_held_drop(struct vb_engine *e, struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The port of @qp may have changed: drop a batch for the link of the old port,
 * so that packets of the new port need not wait. The transport repeats what was
 * in the batch. */
void vb_held_follow(struct vb_engine *e, struct vb_qp *qp)
	VB_REQUIRES(qp->drive);
/* Wait until the batch that @qp holds has been sent, for at most VB_HELD_LASTS.
 * Takes qp->drive. */
void vb_held_settle(struct vb_engine *e, struct vb_qp *qp)
	VB_EXCLUDES(qp->drive);
/* The program exits: wait until the engine thread has sent the batches that all
 * queue pairs hold, for at most VB_HELD_LASTS. */
void vb_held_settle_all(struct vb_engine *e);

/* A function of engine/moderate.c: signal the completion events that were
 * delayed until @now. */
void vb_moderate_due(struct vb_engine *e, vb_time now)
	VB_EXCLUDES(e->moderation, e->timer_lock);

/* Declarations of engine/transport_mux.c: a queue pair's path is packets, a
 * stream, or, to peers of this host, lanes. */
extern const struct vb_transport vb_mux_transport;
extern const struct vb_transport vb_mux_stream_transport;
/* Call vb_near_expect() for @qp, which has just got its stream. False: there is
 * no @card, and all requests go by the stream. */
bool vb_mux_expect(struct vb_near *n, struct vb_qp *qp,
		   struct vb_near_card *card) VB_REQUIRES(qp->drive);
extern const struct vb_key_ops vb_mux_keys;
void vb_mux_open(struct vb_engine *e);
/* Join the network: the broker has granted a slot after vb_mux_open() was
 * called without one. */
void vb_mux_join(struct vb_engine *e);
void vb_mux_close(struct vb_engine *e);
/* Requests of @qp, a reliable connection of an InfiniBand adapter, reach peers
 * of this host if packets would, by the present LID, P_Keys and state of the
 * port. */
void vb_mux_follow(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of engine/host_slot.c, which engine/engine.c calls, or has others
 * call, while it opens or closes devices: one call at a time. */
/* Returns the slot by which programs of this host find this process, or -errno:
 * no slot is free. The answer does not change: a process that opens a RoCE
 * device later keeps the slot that it has chosen before, because peers know it
 * by that one. */
VB_MUST_CHECK int vb_host_slot(struct vb_engine *e);
/* Is @slot one of this process's, which has two if it opens its first RoCE
 * device later? Any thread, at any time. */
bool vb_host_slot_is_own(const struct vb_engine *e, unsigned slot);
void vb_host_slot_close(struct vb_engine *e);

/* Functions of engine/xrc_forward.c: XRC between processes of a host. Only the
 * engine thread calls vb_forward_serve(), and vb_forward_destroy() is called
 * after that thread has ended. */
extern const struct vb_forward_ops vb_engine_forward_ops;
VB_MUST_CHECK int vb_forward_create(struct vb_engine *e,
				    struct vb_forward **forward);
/* The process has got the slot of the broker as its second one. The engine
 * thread does not run. */
void vb_forward_join(struct vb_forward *forward);
void vb_forward_destroy(struct vb_forward *forward);
int vb_forward_fd(const struct vb_forward *forward);
void vb_forward_serve(struct vb_forward *forward);

/* Functions of engine/dispatch.c: hand the frames in e->rxq to their queue
 * pairs. The frames came by the engine's own link; or by @link, whose adapter
 * has @slot. */
void vb_dispatch(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
void vb_dispatch_from(struct vb_engine *e, const struct vb_link *link,
		      unsigned slot, vb_time now) VB_REQUIRES(e->rx);

/* Functions of engine/port_walk.c. */
/* Move @qp to the error state, as ibv_modify_qp() does. */
void vb_engine_fail(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
enum vb_port_news {
	PORT_HAS_CHANGED = 1, /* its LID, its P_Keys, or its state */
	/* the queue pairs go to ERR, except those in RESET */
	FABRIC_HAS_ENDED = 2,
};
/* Tell @news to each queue pair of @a, an InfiniBand adapter, now or as soon as
 * its lock is free. Waits for no queue pair. */
void vb_port_walk(struct vb_engine *e, const struct vb_adapter *a,
		  enum vb_port_news news, vb_time now) VB_REQUIRES(e->list_lock)
	VB_EXCLUDES(e->rx, e->timer_lock);
/* Let @qp hear what vb_port_walk() left for it. */
void vb_port_walk_hear(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);

/* Functions of engine/fabric.c: adapters of InfiniBand fabrics. */
/* Attach port @i of @oa, from 0, to its fabric, and set what it has from there:
 * link, numbers, addressing, GUIDs, state. 0 or -errno, which is logged. */
VB_MUST_CHECK int vb_fabric_open(struct vb_engine *e,
				 struct vb_open_adapter *oa, unsigned i)
	VB_REQUIRES(e->list_lock) VB_EXCLUDES(e->rx);
/* Detach all ports of @oa that are in fabrics. */
void vb_fabric_close(struct vb_engine *e, const struct vb_open_adapter *oa)
	VB_REQUIRES(e->list_lock) VB_EXCLUDES(e->rx);
/* Dispatch the frames that have arrived from fabrics. True: some had
 * arrived. */
bool vb_fabric_drain(struct vb_engine *e) VB_REQUIRES(e->rx);
/* The engine thread is about to sleep until fabric_fd is readable. False:
 * frames have arrived already, so it must not sleep. */
VB_MUST_CHECK bool vb_fabric_sleep(struct vb_engine *e)
	VB_EXCLUDES(e->fabric_lock);
/* The engine thread has slept. @rung: fabric_fd was readable. */
void vb_fabric_wake(struct vb_engine *e, bool rung) VB_EXCLUDES(e->fabric_lock);
/* Read and apply the messages in which fabrics tell how their ports have
 * changed. */
void vb_fabric_take_updates(struct vb_engine *e) VB_EXCLUDES(e->list_lock);

/* Functions of engine/roce1.c. */
/* Give port @i of @oa, from 0, a link for both versions of RoCE. -EPERM:
 * CAP_NET_RAW is missing; or another -errno. The reason is logged. */
VB_MUST_CHECK int vb_engine_roce1_enter(struct vb_engine *e,
					struct vb_open_adapter *oa, unsigned i)
	VB_REQUIRES(e->list_lock) VB_EXCLUDES(e->rx);
/* Tell the RoCEv1 link what the interface of port @i of @oa is now. */
void vb_engine_roce1_learn(struct vb_engine *e, struct vb_open_adapter *oa,
			   unsigned i) VB_REQUIRES(e->list_lock);
/* Dispatch the frames that have arrived. True: there were some. */
bool vb_engine_roce1_drain(struct vb_engine *e) VB_REQUIRES(e->rx);
void vb_engine_roce1_close(struct vb_engine *e);

/* A function of engine/raw.c: hand over the frames of raw packet queue pairs.
 * True: there were some. */
bool vb_raw_drain(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx);
void vb_raw_close(struct vb_engine *e);

/* Functions of engine/stream.c: read what arrived on the streams, answer it,
 * and continue writing. DRAINED_SOME: something arrived; DRAINED_BUSY: what
 * arrived waits for a lane of its peer, or for a queue pair that another thread
 * drives. */
enum vb_drained vb_stream_drain(struct vb_engine *e, vb_time now)
	VB_REQUIRES(e->rx);
/* Call this before vb_stream_drain(), unless the thread has just processed the
 * lanes: process them if a stream waits for one. */
void vb_stream_pass_lanes(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->rx);
/* Send the messages that @qp may send now. True: @qp has more to send, so the
 * caller must call this again at once. */
bool vb_stream_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* True if the socket of @qp is full: no byte can be sent before it has room,
 * whatever the time. */
bool vb_stream_is_blocked(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_stream_orphan(struct vb_engine *e, struct vb_qp *qp)
	VB_EXCLUDES(e->rx, qp->drive);
/* Close streams whose deadline for closing has passed. */
void vb_stream_sweep(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->rx);
void vb_stream_close_all(struct vb_engine *e) VB_EXCLUDES(e->rx);
/* The program exits: wait for up to 5 s until peers have received what was
 * sent. */
void vb_stream_settle(struct vb_engine *e) VB_EXCLUDES(e->rx);

/* Functions of engine/poll_hint.c. The caller reports that a stream begins or
 * ends, that it sent something on it, or that something arrived on it. */
void vb_poll_hint_begin(struct vb_engine *e, struct vb_poll_hint *a);
void vb_poll_hint_sent(struct vb_engine *e, struct vb_poll_hint *a,
		       vb_time now);
void vb_poll_hint_came(struct vb_engine *e, struct vb_poll_hint *a,
		       vb_time now);

/* Functions of engine/poll.c. */
/* Take the frames that have arrived at the link, for a thread that waits for an
 * event. Waits for rx. True: there were some. */
VB_MUST_CHECK bool vb_poll_for_waiter(struct vb_engine *e) VB_EXCLUDES(e->rx);
/* The program is about to sleep, perhaps for long, so no reply will take the
 * delayed ACK along: send it. */
void vb_poll_before_sleep(struct vb_engine *e) VB_EXCLUDES(e->rx);

/* Functions of engine/service.c: the engine thread. */
VB_MUST_CHECK int vb_service_start(struct vb_engine *e);
void vb_service_stop(struct vb_engine *e);
static inline bool vb_service_is_me(const struct vb_engine *e)
{
	return pthread_equal(
		pthread_self(),
		atomic_load_explicit(&e->thread, memory_order_relaxed));
}
/* A function of engine/ports.c: update the ports of all adapters from the
 * host's interfaces. */
void vb_ports_refresh(struct vb_engine *e) VB_EXCLUDES(e->list_lock);
/* Set up port @i of @oa, from 0, which has an interface. */
VB_MUST_CHECK int vb_ports_setup(struct vb_engine *e,
				 struct vb_open_adapter *oa, unsigned i)
	VB_REQUIRES(e->list_lock);
/* Post the events for @changes of port @p, bits of enum vb_port_change, to the
 * contexts of the adapter, whose list of contexts does not change meanwhile.
 * The device is lost when a port is gone while all others are. */
void vb_ports_tell(struct vb_open_adapter *oa, const struct vb_port *p,
		   unsigned changes);
/* A function of engine/adapters.c: call @f with the list of adapters locked. */
void vb_engine_with_adapters(struct vb_engine *e,
			     void (*f)(struct vb_open_adapter *oa, void *arg),
			     void *arg) VB_EXCLUDES(e->list_lock);

#endif
