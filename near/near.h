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

#include "base/age.h"
#include "base/bell.h"
#include "core/mr.h"
#include "core/qp.h"

struct vb_near;
struct vb_near_world;

/* Functions and descriptors that the engine provides. All of them outlive the
 * struct vb_near. */
struct vb_near_config {
	/* Functions that stand for the kernel (near/world.h); NULL: the kernel
	 * of this host. If not NULL, no session is made: the caller introduces
	 * the programs, and name_fd and wake_fd are not used. */
	const struct vb_near_world *world;
	unsigned slot;
	/* A UNIX socket that is bound to the slot's name, on which near/
	 * listens. */
	int name_fd;
	/* An eventfd that wakes the engine thread when it is written to. near/
	 * shares it with no other program. */
	int wake_fd;
	/* The program's queue pairs by the low VB_QPN_BITS of their numbers. */
	struct vb_idtab *qps;
	/* near/ calls this with qp->drive held after it has processed a request
	 * or an answer for @qp: the engine sends packets that are due and arms
	 * timers. */
	void (*step)(void *arg, struct vb_qp *qp, vb_time now);
	/* near/ calls this when a peer has not been woken for its answers yet:
	 * the engine thread must call vb_near_wake_peers() soon. */
	void (*soon)(void *arg);
	/* near/ calls this to release qp->drive. */
	void (*release)(void *arg, struct vb_qp *qp);
	void *arg;
};

/* Create the transport of this process. -errno: the transport cannot work here;
 * this call has logged the reason, and the program uses packets for everything.
 * vb_near_destroy() frees the transport. */
VB_MUST_CHECK int vb_near_create(const struct vb_near_config *c,
				 struct vb_near **n);
/* Give the program a second slot, for ever, for the queue pairs that it creates
 * after this call. @name_fd: as in struct vb_near_config. The engine thread
 * must not run. -EEXIST: the program already has a second slot; other -errno:
 * the kernel refused to listen on @name_fd. */
VB_MUST_CHECK int vb_near_also(struct vb_near *n, unsigned slot, int name_fd);
/* Free @n, after the engine thread has ended and the caller has destroyed all
 * queue pairs and keys. */
void vb_near_destroy(struct vb_near *n);

/* Functions that only the engine thread calls. */
/* The engine thread calls these when it begins and before it ends. Peers see in
 * the registry whether the thread runs, and expect no answers while it does
 * not. */
void vb_near_begin(struct vb_near *n);
void vb_near_end(struct vb_near *n);
/* Returns a descriptor that is readable when vb_near_meet() has work to do. */
int vb_near_fd(const struct vb_near *n);
/* Any thread may call this: take the rings that peers have sent by their
 * sessions, so that they do not make vb_near_fd() readable. False: it may be
 * readable for another reason, and the engine thread must call
 * vb_near_meet(). */
VB_MUST_CHECK bool vb_near_hear_rings(struct vb_near *n);
/* Returns how many requests this program has put on lanes; a hint. */
uint32_t vb_near_requests(struct vb_near *n);
/* Process messages of sessions, and connect to the programs that queue pairs
 * asked for. Never blocks. */
void vb_near_meet(struct vb_near *n, vb_time now);
/* Has a session ended whose peer still copies? Or do callers, or proofs of
 * callers, wait because this program lacks descriptors or threads? Then the
 * caller of this function calls vb_near_meet() every few milliseconds, though
 * vb_near_fd() is not readable. */
bool vb_near_sees_off(const struct vb_near *n);
/* The caller is about to sleep: from now on peers wake the engine thread.
 * False: a lane has a request or an answer, so the caller must not sleep. */
bool vb_near_sleep(struct vb_near *n);
/* A thread polls the lanes and will poll again: peers need not wake it. */
void vb_near_awake(struct vb_near *n);

/* Since the last call, has a peer that sends a stream of small messages asked a
 * thread of this program to stand by (to poll the lanes all the time)? */
bool vb_near_is_wanted(struct vb_near *n);
/* Tell peers that a thread stands by (@yes), or no longer stands by; in the
 * second case the caller calls vb_near_sleep() before it sleeps. */
void vb_near_stand_by(struct vb_near *n, bool yes);

/*
 * A thread of the program that waits for a completion can watch the lanes in
 * place of the engine thread, one thread at a time. In a loop it calls
 * vb_near_set_bells(), then vb_near_awake() so that peers do not wake the
 * engine thread, then vb_near_attend(), and vb_near_wait() when it has found
 * nothing. At the end it calls vb_near_clear_bells(), and vb_near_sleep()
 * returns the lanes to the engine thread. Each peer has a bell of its own, so
 * that no peer can keep the thread asleep when another one rings.
 */
/* Peers ring from now on. False: the thread cannot watch the lanes, because the
 * kernel has no call for it, or there are more peers than VB_BELLS_MOST - 1. */
VB_MUST_CHECK bool vb_near_set_bells(struct vb_near *n);
/* Sleep until a peer, or a thread of this program, rings: as
 * vb_bell_wait_any(). */
VB_MUST_CHECK int vb_near_wait(struct vb_near *n);
/* Peers need not ring any more. */
void vb_near_clear_bells(struct vb_near *n);
/* Returns the bell by which threads of this program wake the thread that
 * watches the lanes. No other process can write it. */
struct vb_bell *vb_near_bell(const struct vb_near *n);
/* Process each lane once. @unhurried: do not wake sleeping peers only for
 * answers; the caller calls vb_near_wake_peers() later. Returns whether a lane
 * had a request or an answer. */
bool vb_near_attend(struct vb_near *n, vb_time now, bool unhurried);
/* Does any lane have a request or an answer that this thread could process?
 * While another thread processes a lane, that thread wakes the sleeping threads
 * of this program if it leaves something behind. */
bool vb_near_has_something(struct vb_near *n);
/* Wake the peers that vb_near_attend() has answered but not woken. */
void vb_near_wake_peers(struct vb_near *n);

/* Process the requests and answers that peers have put on their lanes, unless
 * another thread is doing so. Returns whether there were any. Any thread may
 * call this, without locks, and above all without rx: the thread waits for
 * pages of a peer that come late. */
bool vb_near_poll(struct vb_near *n, vb_time now);

/*
 * Functions for keys, as struct vb_key_ops (core/mr.h) describes them. Peers
 * read the keys from this program's registry (near/registry.h).
 */
void vb_near_grant(struct vb_near *n, const struct vb_adapter *a,
		   const struct vb_grant *g);
void vb_near_revoke(struct vb_near *n, const struct vb_adapter *a,
		    uint32_t index);
bool vb_near_is_drained(struct vb_near *n, uint32_t key, struct vb_age *age);
void vb_near_await(struct vb_near *n, uint32_t key);
bool vb_near_lies(struct vb_near *n, struct vb_qp *qp, uint32_t key)
	VB_REQUIRES(qp->drive);

/*
 * Functions for protection domains that this process imported from another
 * process (vb_pd.origin says from which), as struct vb_key_ops (core/mr.h)
 * describes them.
 */
/* Open a session with the program that has @slot, whose memory this process
 * wants to access. 0: the session is complete. -EAGAIN: not yet; call again
 * with *@since unchanged, which is 0 at the first call. -EACCES: this process
 * has no right to access that program's memory, or @slot is its own, or no
 * program has it. */
VB_MUST_CHECK int vb_near_imported_pd_meet(struct vb_near *n, unsigned slot,
					   uint32_t *since);
bool vb_near_imported_pd_find(struct vb_near *n, const struct vb_pd *pd,
			      uint32_t key, struct vb_grant *g);
enum vb_fault vb_near_imported_pd_copy(struct vb_near *n,
				       const struct vb_pd *pd,
				       const struct vb_mr_range *r, void *bytes,
				       bool put);

/*
 * Functions for queue pairs, beside the transport for packets. The caller holds
 * qp->drive, unless a comment says otherwise. The first request of a queue pair
 * decides which way all its requests go until RESET; qp->way has the result.
 */
/* Allocate the state that near/ keeps for @qp, unless an earlier queue pair in
 * the same memory has left it. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_near_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Clear that state, which stays, because a thread that processes a lane reads
 * it without drive. @n NULL: this process has no near/. */
void vb_near_detach(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The engine calls this after the state of @qp has changed. @here: the
 * destination address of @qp belongs to this host. */
void vb_near_enter(struct vb_near *n, struct vb_qp *qp, enum vb_qp_state from,
		   enum vb_qp_state to, bool here) VB_REQUIRES(qp->drive);
/* The port of @qp has changed. @reaches: packets of @qp can leave by the port,
 * and their destination is this port. As long as they cannot, the requests of
 * both ends are tried again until the local ACK timeouts are over, as packets
 * would be. P_Keys are compared anew. */
void vb_near_follow(struct vb_near *n, struct vb_qp *qp, bool reaches)
	VB_REQUIRES(qp->drive);
/* The function settle() of struct vb_transport (core/transport.h): waits until
 * no peer accesses memory through the queue pair that had @index. The caller
 * holds no lock. */
void vb_near_settle_qp(struct vb_near *n, const struct vb_adapter *a,
		       uint32_t index);
/*
 * The card of an end of an iWARP stream. The two ends do not know each other's
 * queue pair numbers. Each end sends a card over the stream, and its requests
 * wait for the peer's card. Then the requests go near if the peer is a program
 * of this host that near/ can reach, and over the stream otherwise.
 */
struct vb_near_card {
	/* The queue pair's number, with this program's slot in its upper bits
	 * (struct vb_near_qp). */
	uint32_t number;
	uint32_t life;
};
/* @qp has just got its stream (TCP). Fills in the card that the caller sends.
 * False: no card is needed, and all requests go over the stream. */
bool vb_near_expect(struct vb_near *n, struct vb_qp *qp,
		    struct vb_near_card *card) VB_REQUIRES(qp->drive);
/* The peer's card has come: the requests of @qp are for that queue pair, and
 * the engine thread opens a session with its program. Ignores an invalid
 * card. */
void vb_near_recognize(struct vb_near *n, struct vb_qp *qp,
		       const struct vb_near_card *peer) VB_REQUIRES(qp->drive);
/* May the peer be a program of this host? Then that program can access memory
 * through @qp, whichever way the requests of @qp go. Only vb_near_enter() and
 * vb_near_expect() change the answer. */
bool vb_near_may_be_here(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Has a request of the peer arrived on the lane? (Requests of @qp itself can
 * still go by packets or the stream.) */
bool vb_near_is_heard(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/*
 * The order between a peer's lane and what the same peer sends by another way
 * (the stream of an iWARP queue pair). A caller that sees something come by the
 * other way takes a mark, and uses what it saw when vb_near_is_past() says so:
 * then everything is processed that the peer had put on its lane before. These
 * functions process no lane; vb_near_poll() does, in any thread.
 */
struct vb_near_mark {
	unsigned slot; /* the first or second slot of the peer */
	/* The fields below are for near/ only. */
	uint64_t pass, moves;
	struct vb_age waited;
};
void vb_near_mark(struct vb_near *n, unsigned slot, struct vb_near_mark *m);
/* Is everything processed that the peer had put on its lane before the mark?
 * True also if the lane has not moved for a second of the caller's looks: then
 * it waits for memory of the peer, perhaps for ever. True if there is no such
 * lane, because the rest of a lane is processed when the session ends. False
 * while the peer may write to a lane that this program does not process yet. */
bool vb_near_is_past(struct vb_near *n, struct vb_near_mark *m, vb_time now);

/* How much a step of a queue pair carries out. */
enum vb_near_limit {
	NEAR_STEP,  /* copies at most 1 MiB */
	NEAR_LIGHT, /* 64 KiB: the caller processes a lane, and others wait */
	/* nothing: the caller holds rx, for which all polls of the program
	 * wait, and a copy may wait for a page of the peer */
	NEAR_NOTHING,
};
void vb_near_limit(struct vb_qp *qp, enum vb_near_limit limit)
	VB_REQUIRES(qp->drive);
/* Does a thread that processes a lane wait for qp->drive of @qp? Then the
 * caller should release the lock soon. */
bool vb_near_is_awaited(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Lock qp->drive for a thread for which others wait. A posting thread that
 * copies much for @qp is asked to release the lock. False: another thread has
 * held it for 2 ms. The caller may hold rx, or the claim of a lane. */
bool vb_near_lock_briefly(struct vb_qp *qp) VB_TRY_ACQUIRE(true, qp->drive);
/* Does the thread that holds qp->drive copy between this program's memory and
 * a peer's? Then it may wait for a page for as long as either program likes. A
 * hint, which any thread may ask for without a lock. */
bool vb_near_copies(const struct vb_qp *qp) VB_EXCLUDES(qp->drive);
/* Carry out the next requests of @qp, as much as its limit allows. True: more
 * can be done at once, in another call. */
bool vb_near_send(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* @before: the value of qp->way before a call of vb_near_send(). Do all
 * requests go the other way (packets or the stream) since that call? The call
 * may have carried out some requests before, so the caller tells the other
 * transport to begin at sq.done. */
static inline bool vb_near_has_left(const struct vb_qp *qp,
				    enum vb_qp_way before)
	VB_REQUIRES(qp->drive)
{
	return VB_UNLIKELY(before != WAY_PACKETS && qp->way == WAY_PACKETS);
}
/* The function quick() of vb_transport_ops (core/transport.h) for a queue pair
 * with WAY_NEAR. */
bool vb_near_quick(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Let the next vb_near_send() carry out the small WRITEs that gather. */
void vb_near_hurry(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* While the introduction to the peer's program is under way, the requests of
 * @qp wait for its result; they go by packets unless the introduction ends
 * before @by. Returns whether they still wait. */
bool vb_near_decide_by(struct vb_qp *qp, vb_time by) VB_REQUIRES(qp->drive);
/* The function can_wait() of vb_transport_ops (core/transport.h) for a queue
 * pair with WAY_NEAR. */
bool vb_near_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Returns the time at which to call vb_near_send() even if no answer arrives;
 * VB_NEVER: no such time. */
vb_time vb_near_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

#endif
