/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport between two programs of one host: their reliable connections
 * exchange no packets. The requester checks the peer's keys and writes or reads
 * the peer's memory itself (process_vm_writev, process_vm_readv). Requests that
 * consume a receive or must be atomic go through a ring in memory that both
 * programs map (the lane), and the peer's program carries them out. Where the
 * kernel forbids any of this, that pair of programs uses packets.
 *
 * Terms: a request goes near when it takes the way of this room (WAY_NEAR)
 * instead of packets or a stream; a slot is the number that the broker gave a
 * program (broker/slots.c); a session is the UNIX socket between the engine
 * threads of two programs (near/session.c); the engine thread is the one thread
 * that the library starts in each program.
 */
#ifndef NEAR_NEAR_H
#define NEAR_NEAR_H

#include "base/bell.h"
#include "core/mr.h"
#include "core/qp.h"

struct vb_near;
struct vb_near_world;

/* What the engine provides. All of it outlives the struct vb_near. */
struct vb_near_config {
	/* NULL: the kernel of this host. Otherwise no session is made: the
	 * caller introduces the programs (near/world.h), and name_fd and
	 * wake_fd are not used. */
	const struct vb_near_world *world;
	unsigned slot;
	/* A UNIX socket that is bound to the slot's name; near/ listens on it.
	 */
	int name_fd;
	/* An eventfd. Writing to it wakes the engine thread. */
	int wake_fd;
	/* The program's queue pairs by the low VB_QPN_BITS of their numbers. */
	struct vb_idtab *qps;
	/* near/ calls this with qp->drive held after a request or an answer was
	 * processed for @qp: the engine sends packets that are due and arms
	 * timers. */
	void (*step)(void *arg, struct vb_qp *qp, vb_time now);
	/* near/ calls this when a peer has not been woken for its answers yet:
	 * the engine thread must call vb_near_wake_peers() soon. */
	void (*soon)(void *arg);
	/* near/ calls this to release qp->drive. */
	void (*release)(void *arg, struct vb_qp *qp);
	void *arg;
};

/* Create the transport of this process. -errno: it cannot work here; this call
 * has logged the reason, and the program uses packets for everything.
 * vb_near_destroy() ends it. */
VB_MUST_CHECK int vb_near_create(const struct vb_near_config *c,
				 struct vb_near **n);
/* Give the program a second slot, for good, for the queue pairs that it creates
 * after this call. @name_fd: as in struct vb_near_config. The engine thread
 * must not run. -EEXIST: there is a second slot already; other -errno: the
 * kernel refused to listen on @name_fd. */
VB_MUST_CHECK int vb_near_also(struct vb_near *n, unsigned slot, int name_fd);
/* Free @n, after the engine thread has ended and the caller has destroyed all
 * queue pairs and keys. */
void vb_near_destroy(struct vb_near *n);

/*
 * For the engine thread only.
 */
/* The engine thread calls these when it begins and before it ends. Peers see in
 * the registry whether it runs, and expect no answers when it does not. */
void vb_near_begin(struct vb_near *n);
void vb_near_end(struct vb_near *n);
int vb_near_fd(const struct vb_near *n); /* readable when vb_near_meet() has
					    something to do */
/* Process messages of sessions, and connect to the programs that queue pairs
 * asked for. Never blocks. */
void vb_near_meet(struct vb_near *n, vb_time now);
/* The caller is about to sleep: from now on peers wake the engine thread.
 * False: a lane has something to process, so the caller must not sleep. */
bool vb_near_sleep(struct vb_near *n);
/* A thread polls the lanes and will poll again: peers need not wake it. */
void vb_near_awake(struct vb_near *n);

/* Has a peer that sends a stream of small messages asked since the last call
 * that a thread of this program stands by (polls the lanes all the time)? */
bool vb_near_is_wanted(struct vb_near *n);
/* Tell peers that a thread stands by (@yes), or no longer does; in the second
 * case the caller calls vb_near_sleep() before it sleeps. */
void vb_near_stand_by(struct vb_near *n, bool yes);

/*
 * A thread of the program that waits for a completion can take over the lanes
 * from the engine thread: it calls vb_bell_set(vb_near_bell()), then
 * vb_near_awake() so that peers do not wake the engine thread, then
 * vb_near_attend() in a loop, sleeping by the bell in between. In the end
 * vb_near_sleep() hands the lanes back.
 */
struct vb_bell *vb_near_bell(const struct vb_near *n);
/* Process each lane once. @unhurried: do not wake sleeping peers for answers
 * alone; the caller calls vb_near_wake_peers() later. Returns whether there was
 * anything to process. Takes near->rx. */
bool vb_near_attend(struct vb_near *n, vb_time now, bool unhurried);
/* Does any lane have something to process? Takes near->rx. */
bool vb_near_has_something(struct vb_near *n);
/* Wake the peers that vb_near_attend() left asleep though it answered them. */
void vb_near_wake_peers(struct vb_near *n);

/* Process what peers have put on their lanes, unless another thread is doing
 * so. Returns whether anything was done. Any thread, without locks. */
bool vb_near_poll(struct vb_near *n, vb_time now);

/*
 * Keys, as struct vb_key_ops (core/mr.h) describes them. Peers read the keys
 * from this program's registry (near/registry.h).
 */
void vb_near_grant(struct vb_near *n, const struct vb_adapter *a,
		   const struct vb_grant *g);
void vb_near_revoke(struct vb_near *n, const struct vb_adapter *a,
		    uint32_t index);
bool vb_near_is_quiet(struct vb_near *n, uint32_t key, vb_time age);
void vb_near_await(struct vb_near *n, uint32_t key);

/*
 * Protection domains that this process imported from another process:
 * vb_pd.origin says from which. As struct vb_key_ops (core/mr.h) describes it.
 */
/* Meet the program that has @slot, whose memory this process wants to access.
 * 0: the session is up. -EAGAIN: not yet, call again with the same *@since,
 * which is 0 at the first call. -EACCES: this process has no right to access
 * that program's memory, or @slot is its own, or no program has it. */
VB_MUST_CHECK int vb_near_imported_pd_meet(struct vb_near *n, unsigned slot,
					   uint32_t *since);
bool vb_near_imported_pd_find(struct vb_near *n, const struct vb_pd *pd,
			      uint32_t key, struct vb_grant *g);
enum vb_fault vb_near_imported_pd_copy(struct vb_near *n,
				       const struct vb_pd *pd,
				       const struct vb_mr_range *r, void *bytes,
				       bool put);

/*
 * Queue pairs, beside the transport for packets. The caller holds qp->drive,
 * unless a function says otherwise. The first request of a queue pair decides
 * which way all its requests take until RESET: qp->way says it.
 */
/* Allocate what near/ keeps of @qp. -ENOMEM. */
VB_MUST_CHECK int vb_near_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Free what vb_near_attach() allocated. @n NULL: this process has no near/. */
void vb_near_detach(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The engine calls this after the state of @qp has changed. @here: the
 * destination of @qp is an address of this host. */
void vb_near_enter(struct vb_near *n, struct vb_qp *qp, enum vb_qp_state from,
		   enum vb_qp_state to, bool here) VB_REQUIRES(qp->drive);
/* As vb_transport.settle (core/transport.h): waits until no peer accesses
 * memory through the queue pair that had @index. Called without locks. */
void vb_near_settle_qp(struct vb_near *n, const struct vb_adapter *a,
		       uint32_t index);
/*
 * The two ends of an iWARP stream do not know each other's queue pair numbers.
 * Each end sends a card over the stream, and its requests wait for the peer's
 * card. Then the requests go near if the peer is a program of this host that
 * near/ can reach, and over the stream otherwise.
 */
struct vb_near_card {
	/* The queue pair's number, with this program's slot in its upper bits
	 * (struct vb_near_qp). */
	uint32_t number;
	uint32_t life;
};
/* @qp has just got its stream (TCP). Fills in the card that the caller sends.
 * False: there is no card, and all requests go over the stream. */
bool vb_near_expect(struct vb_near *n, struct vb_qp *qp,
		    struct vb_near_card *card) VB_REQUIRES(qp->drive);
/* The peer's card has come: the requests of @qp are for that queue pair, and
 * the engine thread opens a session with its program. Ignores an invalid
 * card. */
void vb_near_recognize(struct vb_near *n, struct vb_qp *qp,
		       const struct vb_near_card *peer) VB_REQUIRES(qp->drive);
/* Can the peer be a program of this host? Then that program can access memory
 * through @qp, whatever way the requests of @qp take. Only vb_near_enter() and
 * vb_near_expect() change the answer. */
bool vb_near_may_be_here(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Has a request of the peer arrived by the lane? (Requests of @qp itself can
 * still go by packets or the stream.) */
bool vb_near_is_heard(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Process all lanes once. If this thread has seen something that a peer did,
 * then all that the peer had put on its lane before is processed when this
 * returns. False: nothing was done, because another thread is processing the
 * lanes. */
bool vb_near_catch_up(struct vb_near *n, vb_time now);

/* @yes: from now on a step of @qp copies LIGHT_BYTES (64 KiB) at most, since
 * the caller holds near->rx and other lanes wait. */
void vb_near_set_light(struct vb_qp *qp, bool yes) VB_REQUIRES(qp->drive);
/* Does the thread that processes the lanes wait for qp->drive? Then the caller
 * should release it soon. */
bool vb_near_is_awaited(struct vb_near *n, const struct vb_qp *qp)
	VB_REQUIRES(qp->drive);
/* Carry out the next requests of @qp. True: more can be done at once, in
 * another call. */
bool vb_near_send(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* @before: qp->way before a call of vb_near_send(). Do all requests take the
 * other way (packets or the stream) since that call? It may have carried out
 * some before, so the caller tells the other transport to begin at sq.done. */
static inline bool vb_near_has_left(const struct vb_qp *qp,
				    enum vb_qp_way before)
	VB_REQUIRES(qp->drive)
{
	return VB_UNLIKELY(before != WAY_PACKETS && qp->way == WAY_PACKETS);
}
/* vb_transport_ops.quick (core/transport.h) for a queue pair with WAY_NEAR. */
bool vb_near_quick(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The next vb_near_send() carries out the small WRITEs that gather. */
void vb_near_hurry(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* While the introduction to the peer's program is under way, the requests of
 * @qp wait for it; they go by packets unless it ends before @by. Returns
 * whether they still wait. */
bool vb_near_decide_by(struct vb_qp *qp, vb_time by) VB_REQUIRES(qp->drive);
/* vb_transport_ops.can_wait (core/transport.h) for a queue pair with WAY_NEAR.
 */
bool vb_near_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* When to call vb_near_send() though nothing arrives; VB_NEVER: not needed. */
vb_time vb_near_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

#endif
