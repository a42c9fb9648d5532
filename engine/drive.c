/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entrance for work: decides which thread drives a queue pair, what it
 * sends, and when its timer is due.
 *
 * A post (vb_drive()) tries qp->drive. The thread that gets the lock steps the
 * queue pair: the transport fills batches and the thread sends them. A poster
 * that does not get the lock sets @kick, and the thread that has the lock
 * serves the post after releasing it, so that no poster waits while another
 * thread processes packets.
 *
 * The engine delays two things. Doorbells: while the transport gathers posts
 * for a batch, vb_sq_defer_doorbell() tells posters up to which index they need
 * not call vb_drive(); every step resumes the doorbell. ACKs: an ACK may wait
 * to travel with the program's reply; @delayed_ack_qp names the queue pair, and
 * send_delayed_acks() sends the ACK when no reply comes.
 */
#include "engine/static_rate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"

/*
 * The most batches that one step may send before other queue pairs have their
 * turn. A peer that is not Verbena can ask for a gigabyte with one READ; after
 * each step the engine thread does its other work before it sends more.
 */
#define STEP_BATCHES 6

#define POST_TURNS 16

/* Bytes in one batch after which a program that sends counts as being at work
 * (vb_engine_at_work()). */
#define MUCH_BYTES (32u << 10)

/* The time until the next step of a stream that has more to send, or whose
 * deadline has passed. */
#define SOON (200 * VB_USEC)
/* Deadlines at least COARSE ahead are rounded up to a multiple of GRAIN, which
 * is about half a millisecond and a power of two. */
#define COARSE (2 * VB_MSEC)
#define GRAIN  ((vb_time)1 << 19)
/* The time until the next try to drive a queue pair that another thread is
 * driving. */
#define BUSY (100 * VB_USEC)

static pthread_key_t txq_key;
static bool have_txq_key;
static pthread_once_t txq_once = PTHREAD_ONCE_INIT;
static __thread struct vb_txq *thread_txq;

/* Free the thread's batch when the thread ends. If a destructor of another
 * library runs later and posts, the thread gets a new batch. */
static void eng_drive_drop_txq(void *q)
{
	thread_txq = NULL;
	free(q);
}

static void eng_drive_make_txq_key(void)
{
	have_txq_key = pthread_key_create(&txq_key, eng_drive_drop_txq) == 0;
	if (!have_txq_key)
		vb_log(LOG_WARN, "engine: no key for per-thread batches: they "
				 "stay until the process ends");
}

/* Returns the thread's own batch. Each thread that sends keeps one, so that no
 * thread waits for another's and no packet needs an allocation. NULL: no memory
 * now. */
static struct vb_txq *eng_drive_my_txq(void)
{
	if (VB_LIKELY(thread_txq))
		return thread_txq;
	pthread_once(&txq_once, eng_drive_make_txq_key);
	thread_txq = malloc(sizeof(*thread_txq));
	if (!thread_txq)
		return NULL;
	vb_txq_reset(thread_txq);
	if (have_txq_key)
		pthread_setspecific(txq_key, thread_txq);
	return thread_txq;
}

/* Give up the thread's batch, which now belongs to a queue pair that holds it
 * (engine/held.c). */
static void give_txq(void)
{
	thread_txq = NULL;
	if (have_txq_key)
		pthread_setspecific(txq_key, NULL);
}

/* Send the batch @q. False: the kernel had no room, and @qp holds the rest now;
 * @qp sends no other batch before that rest. */
static bool eng_drive_send_batch(struct vb_engine *e, struct vb_qp *qp,
				 struct vb_txq *q, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_link *link = vb_held_link(e, qp);

	if (q->count == 0 || VB_LIKELY(link->ops->send(link, q)))
		return true;
	if (vb_held_keep(e, qp, q, now)) {
		give_txq();
		return false;
	}
	link->ops->drop(link, q);
	return true;
}

/* Round a distant deadline up so that several deadlines fall together: the
 * engine thread then wakes once for many queue pairs, and not once for each of
 * thousands. */
static vb_time coarse(vb_time at, vb_time now)
{
	if (at == VB_NEVER || at < now + COARSE)
		return at;
	return (at | (GRAIN - 1)) + 1;
}

bool vb_drive_wakes(struct vb_engine *e, vb_time at)
{
	if (at >= e->sleep_until)
		return false;
	e->sleep_until = at;
	return true;
}

static void note_due(struct vb_engine *e) VB_REQUIRES(e->timer_lock)
{
	atomic_store_explicit(&e->due, vb_timers_next(&e->timers),
			      memory_order_relaxed);
}

/* Returns the deadline of a queue pair that has more to do at once. It is 1 ns
 * after @now: with a deadline at @now, vb_drive_due() would pop the queue
 * pair's timer for ever. */
static vb_time at_once(vb_time now)
{
	return now + 1;
}

static bool is_for_polls(const struct vb_engine *e, vb_time at, vb_time now)
	VB_REQUIRES(e->timer_lock)
{
	bool attentive =
		atomic_load_explicit(&e->attentive, memory_order_relaxed);

	return vb_program_gets_timer(vb_engine_program(e), attentive, at, now);
}

static void arm_timer(struct vb_engine *e, struct vb_qp *qp, vb_time at,
		      vb_time now)
{
	const uint64_t one = 1;
	bool wake;

	/* A later deadline is left to the timer that is already queued: when it
	 * expires, the step that it causes computes the deadline again. So an
	 * ACK costs no heap operation. */
	if (at >= vb_eq(qp)->timer_at)
		return;
	vb_mutex_lock(&e->timer_lock);
	if (VB_UNLIKELY(atomic_load(&vb_eq(qp)->port_news)))
		at = VB_MIN(at, now + BUSY); /* see vb_port_walk() */
	if (vb_timer_set(&e->timers, &vb_eq(qp)->timer, at) != 0) {
		vb_mutex_unlock(&e->timer_lock);
		vb_log(LOG_ERROR, "qp 0x%x: no memory for its timer",
		       atomic_load(&qp->qpn));
		return;
	}
	vb_eq(qp)->timer_at = at;
	note_due(e);
	wake = !is_for_polls(e, at, now) && vb_drive_wakes(e, at);
	vb_mutex_unlock(&e->timer_lock);
	if (wake && write(e->wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_DEBUG, "engine: cannot wake the engine thread");
}

/* Does a program's thread send so much that the engine thread should stay away
 * from the sockets meanwhile? */
static bool is_work(const struct vb_engine *e, const struct vb_txq *q)
{
	return q->used >= MUCH_BYTES && !vb_service_is_me(e);
}

static bool eng_drive_program_polls(struct vb_engine *e, vb_time now)
{
	return !vb_service_is_me(e) &&
	       vb_program_polled(vb_engine_program(e), VB_TIMER_SOON, now);
}

/* Returns the deadline of a stream that has just been stepped. It must not be
 * in the past: the engine thread would step the stream again and do nothing
 * else. */
static vb_time eng_drive_stream_deadline(const struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	vb_time at;

	if (vb_stream_is_blocked(qp) && qp->way == WAY_PACKETS)
		/* The engine thread wakes when the socket has room, so no
		 * deadline is needed. */
		return VB_NEVER;
	at = coarse(vb_transport_deadline(qp), now);
	return at > now ? at : now + SOON;
}

static bool step_stream(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	bool more = vb_stream_step(e, qp, now);

	/* No deadline is needed: the polls of a program step the stream
	 * again. */
	if (more && qp->way != WAY_NEAR && eng_drive_program_polls(e, now)) {
		arm_timer(e, qp, now + SOON, now);
		return false;
	}
	if (!more)
		arm_timer(e, qp, eng_drive_stream_deadline(qp, now), now);
	return more;
}

/* Send up to STEP_BATCHES batches of packets. True: there is more to send at
 * once. */
static bool step_packets(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_txq *q;
	bool more = true, work = false;

	if (VB_UNLIKELY(vb_eq(qp)->held != NULL) && !vb_held_send(e, qp, now)) {
		arm_timer(e, qp, vb_held_at(qp), now);
		return false;
	}
	q = eng_drive_my_txq();
	if (!q) { /* no memory for a batch: try again soon */
		arm_timer(e, qp, now + 10 * VB_MSEC, now);
		return false;
	}
	for (unsigned i = 0;
	     more && i < STEP_BATCHES && !vb_rate_waits(qp, now); i++) {
		vb_rate_begin(qp, q);
		more = vb_transport_send(qp, now, q);
		vb_rate_sent(qp, q, more, now);
		if (!work && is_work(e, q)) {
			vb_engine_at_work(
				e, now + vb_engine_span(e, VB_WORK_LASTS));
			work = true;
		}
		if (VB_UNLIKELY(!eng_drive_send_batch(e, qp, q, now)))
			break;
	}
	if (VB_UNLIKELY(vb_eq(qp)->held != NULL)) {
		arm_timer(e, qp, vb_held_at(qp), now);
		more = false;
	} else if (more && vb_rate_waits(qp, now)) {
		arm_timer(e, qp, vb_eq(qp)->rate_at, now);
		more = false;
	} else if (!more) {
		arm_timer(e, qp, coarse(vb_transport_deadline(qp), now), now);
	}
	if (work)
		vb_engine_at_work(e, vb_now());
	return more;
}

/* Step the queue pair, by packets or by a stream, and resume its doorbell.
 * True: there is more to do at once, for which the caller arranges. */
static bool eng_drive_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	qp->local_at = VB_NEVER;
	vb_sq_resume_doorbell(&qp->sq);
	return qp->adapter->rnic ? step_stream(e, qp, now)
				 : step_packets(e, qp, now);
}

void vb_drive_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	now = vb_qp_advance(qp, now);
	if (eng_drive_step(e, qp, now))
		arm_timer(e, qp, at_once(now), now);
}

/*
 * A poster sets @kick before it tries the lock (take_or_kick()): either the
 * poster gets the lock, or this function sees @kick. It is a read-modify-write
 * because a plain load could be executed before the unlock is visible.
 */
bool vb_drive_is_kicked(struct vb_qp *qp)
{
	return atomic_fetch_or(&vb_eq(qp)->kick, 0);
}

void vb_drive_release(struct vb_engine *e, struct vb_qp *qp)
{
	vb_mutex_unlock(&qp->drive);
	if (VB_UNLIKELY(vb_drive_is_kicked(qp)))
		vb_drive(qp);
}

/* Remember the queue pair that gathers messages, for vb_drive_gathered(). */
static void note_gathers(struct vb_engine *e, struct vb_qp *qp)
{
	if (atomic_load_explicit(&e->gathers, memory_order_relaxed) != qp)
		atomic_store_explicit(&e->gathers, qp, memory_order_relaxed);
}

bool vb_drive_can_wait(struct vb_qp *qp)
{
	if (!vb_transport_can_wait(qp))
		return false;
	if (qp->ops->waits_until)
		vb_sq_defer_doorbell(&qp->sq, qp->ops->waits_until(qp));
	return true;
}

/*
 * The queue pairs on which this thread posted lately without sending, because
 * another thread was to send or the messages gather: see
 * vb_engine_begin_posted(). Some programs post and deregister the memory at
 * once (Gloo); a hardware adapter has most often read the memory by then.
 */
#define LEFT_MOST    8
#define BEGIN_WITHIN (2 * VB_MSEC)
/* How long a verb waits for another thread that holds drive of a queue pair:
 * BEGIN_NAPS naps of 200 us and more, about 0.1 s. If that thread does not
 * copy, it has most likely lost its processor, and the verb waits up to
 * BEGIN_TRIES times as long, for all queue pairs of the list together.
 * BEGIN_PKTS: see begin_queued(). */
#define BEGIN_NAPS  200
#define BEGIN_TRIES 100
#define BEGIN_PKTS  64

static __thread struct {
	/* A queue pair in this list may have been destroyed. Its memory is
	 * type-stable, so a reader locks drive and then looks at qpn. */
	struct vb_qp *at[LEFT_MOST];
	unsigned next, tries;
} left;

static void note_left(struct vb_qp *qp)
{
	if (VB_LIKELY(left.at[left.next] == qp))
		return;
	left.next = (left.next + 1) % LEFT_MOST;
	left.at[left.next] = qp;
}

/* Begin the posted requests of @qp. The congestion window may be too small for
 * them; but a hardware adapter has none, and begins requests at once. So up to
 * BEGIN_PKTS packets leave in spite of the window. */
static void begin_queued(struct vb_engine *e, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = qp->ops;
	uint32_t window = ops->widen ? ops->widen(qp, BEGIN_PKTS) : 0;
	unsigned turn = 0;
	vb_time now;
	bool more;

	if (qp->way == WAY_NEAR)
		vb_near_hurry(qp);
	do {
		now = vb_qp_advance(qp, vb_now());
		more = eng_drive_step(e, qp, now);
	} while (more && qp->way == WAY_NEAR && ++turn < POST_TURNS);
	if (ops->narrow)
		ops->narrow(qp, window);
	if (more)
		arm_timer(e, qp, at_once(now), now);
}

/* Lock drive of @qp to begin its requests. False: another thread keeps it
 * locked. If that thread copies, it may wait for memory of the peer, which may
 * never come: leave the requests to that thread. */
static bool take_to_begin(struct vb_qp *qp) VB_TRY_ACQUIRE(true, qp->drive)
{
	do {
		if (vb_mutex_lock_briefly(&qp->drive, BEGIN_NAPS))
			return true;
	} while (!vb_near_copies(qp) && ++left.tries < BEGIN_TRIES);
	return false;
}

/* Begin the requests that are posted on @qp, on a path to the peer's program
 * that must be decided by @by. True: the decision is still open, so the
 * requests wait. */
static bool begin_by(struct vb_engine *e, struct vb_qp *qp, vb_time by)
{
	bool waits = false;

	if (!take_to_begin(qp))
		return false;
	if (atomic_load(&qp->qpn) && qp->sq.done != vb_sq_end(&qp->sq)) {
		/* Decide the path first, because no request can begin without a
		 * path. */
		if (vb_near_decide_by(qp, by))
			begin_queued(e, qp);
		waits = vb_near_decide_by(qp, by);
		if (!waits)
			begin_queued(e, qp);
	}
	vb_drive_release(e, qp);
	return waits;
}

/* Begin the posted requests of @qp. A peer of this host introduces itself
 * within a moment, unless the host is busy. After BEGIN_WITHIN the requests go
 * by packets, because the caller must not wait for another program. */
static void begin_left(struct vb_engine *e, struct vb_qp *qp)
{
	const struct timespec moment = { .tv_nsec = 50000 };
	vb_time by = vb_now() + BEGIN_WITHIN;

	while (begin_by(e, qp, by) && vb_now() < by + BEGIN_WITHIN)
		nanosleep(&moment, NULL);
}

/* Runs in the child of a fork: forget the queue pairs, which belong to the
 * parent. */
static void forget_left(void)
{
	memset(&left, 0, sizeof(left));
}
VB_FORGET_AT_FORK(forget_left)

void vb_engine_begin_posted(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel = vb_cancel_off();

	left.tries = 0;
	for (unsigned i = 0; i < LEFT_MOST; i++) {
		if (e && left.at[i])
			begin_left(e, left.at[i]);
		left.at[i] = NULL;
	}
	vb_cancel_back(cancel);
}

/* Step @qp, unless its posted requests may wait for more. True: there is more
 * to do at once. */
static bool step_or_gather(struct vb_engine *e, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = qp->ops;
	int cancel;
	bool more;

	/* Do not read the clock, which takes as long as the rest of a quick
	 * post. The timer that is queued handles everything that depends on
	 * time. */
	if (ops->quick && vb_eq(qp)->timer_at != VB_NEVER && ops->quick(qp))
		return false;
	if (vb_drive_can_wait(qp)) {
		note_gathers(e, qp);
		note_left(qp);
		return false;
	}
	cancel = vb_cancel_off();
	more = eng_drive_step(e, qp, vb_qp_advance(qp, vb_now()));
	vb_cancel_back(cancel);
	if (VB_UNLIKELY(qp->way == WAY_OPEN) ||
	    (ops->has_unsent && ops->has_unsent(qp)))
		note_left(qp);
	return more;
}

/*
 * Does the poster continue to drive @qp? It copies the bytes that it sends to
 * another program of this host itself, but in turns, between which other
 * threads get the queue pair. When another thread waits for the queue pair, or
 * after POST_TURNS turns, the poster leaves the rest to polls and the engine
 * thread.
 */
static bool goes_on(struct vb_engine *e, struct vb_qp *qp, unsigned turn)
	VB_REQUIRES(qp->drive)
{
	vb_time now;
	int cancel;

	if (qp->way == WAY_NEAR && turn < POST_TURNS && !vb_near_is_awaited(qp))
		return true;
	note_left(qp);
	cancel = vb_cancel_off();
	now = vb_qp_advance(qp, vb_now());
	arm_timer(e, qp, at_once(now), now);
	vb_cancel_back(cancel);
	return false;
}

/* Try to lock qp->drive, which is most often free. Otherwise set @kick and try
 * once more: either this thread gets the lock, or the holder sees @kick when it
 * releases the lock. */
static bool take_or_kick(struct vb_qp *qp) VB_TRY_ACQUIRE(true, qp->drive)
{
	if (VB_LIKELY(vb_mutex_trylock(&qp->drive)))
		return true;
	/* pairs with the read-modify-write in vb_drive_is_kicked() */
	(void)atomic_exchange(&vb_eq(qp)->kick, 1);
	if (vb_mutex_trylock(&qp->drive))
		return true;
	note_left(qp);
	return false;
}

void vb_drive(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();
	unsigned turn = 0;
	bool more;

	while (take_or_kick(qp)) {
		/* Acquire: the posts before @kick was set are visible. */
		if (VB_UNLIKELY(atomic_load_explicit(&vb_eq(qp)->kick,
						     memory_order_acquire)))
			atomic_store(&vb_eq(qp)->kick, 0);
		more = e && atomic_load(&qp->qpn) && step_or_gather(e, qp) &&
		       goes_on(e, qp, turn++);
		vb_mutex_unlock(&qp->drive);
		if (VB_LIKELY(!vb_drive_is_kicked(qp) && !more))
			return;
	}
}

/* After this many turns a timer continues the work, because other peers
 * wait. */
#define LIGHT_TURNS 8

static void step_light(struct vb_engine *e, struct vb_qp *qp, unsigned turn)
	VB_REQUIRES(qp->drive)
{
	vb_time now = vb_qp_advance(qp, vb_now());

	if (!atomic_load(&qp->qpn) || vb_drive_can_wait(qp))
		return;
	if (turn >= LIGHT_TURNS) {
		arm_timer(e, qp, at_once(now), now);
		return;
	}
	vb_near_limit(qp, NEAR_LIGHT);
	vb_drive_step(e, qp, now);
	vb_near_limit(qp, NEAR_STEP);
}

/* Release qp->drive, and serve posters that found it held, in turns of which
 * this is number @turn. */
static void release_in_turns(struct vb_engine *e, struct vb_qp *qp,
			     unsigned turn) VB_RELEASE(qp->drive)
{
	vb_mutex_unlock(&qp->drive);
	while (VB_UNLIKELY(vb_drive_is_kicked(qp)) && take_or_kick(qp)) {
		atomic_store(&vb_eq(qp)->kick, 0);
		step_light(e, qp, turn++);
		vb_mutex_unlock(&qp->drive);
	}
}

void vb_drive_release_light(struct vb_engine *e, struct vb_qp *qp)
{
	release_in_turns(e, qp, 0);
}

/* (Unchecked: vb_drive_step() excludes rx because of requests that go near, and
 * this function carries out none.) */
void VB_UNCHECKED vb_drive_step_rx(struct vb_engine *e, struct vb_qp *qp,
				   vb_time now)
{
	bool near = qp->way != WAY_PACKETS;

	if (VB_UNLIKELY(near))
		vb_near_limit(qp, NEAR_NOTHING);
	vb_drive_step(e, qp, now);
	if (VB_UNLIKELY(near))
		vb_near_limit(qp, NEAR_STEP);
}

/* The holder of drive may copy, and wait for a page for as long as the peer
 * likes. If this thread waited for it, all polls of the program would wait,
 * too, because this thread has rx. */
bool vb_drive_take_rx(struct vb_qp *qp)
{
	bool *is_late = &vb_eq(qp)->is_late;

	if (VB_LIKELY(vb_mutex_trylock(&qp->drive))) {
		*is_late = false;
		return true;
	}
	if (*is_late && vb_near_copies(qp))
		return false;
	while (!vb_near_lock_briefly(qp))
		if ((*is_late = vb_near_copies(qp)))
			return false;
	*is_late = false;
	return true;
}

/* (Unchecked: see vb_drive_step_rx().) */
void VB_UNCHECKED vb_drive_release_rx(struct vb_engine *e, struct vb_qp *qp)
{
	if (VB_UNLIKELY(qp->way != WAY_PACKETS))
		release_in_turns(e, qp, LIGHT_TURNS);
	else
		vb_drive_release(e, qp);
}

/* Drive @qp after a short post. While the doorbell is deferred, the post is
 * only recorded. In states other than RTS it can happen that no packet arrives
 * which would make a thread look at the queue, so the poster steps the queue
 * pair. */
void vb_drive_short(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();

	if (e && vb_sq_is_deferred(&qp->sq) &&
	    atomic_load_explicit(&qp->state, memory_order_relaxed) == QPS_RTS) {
		note_gathers(e, qp);
		note_left(qp);
	} else {
		vb_drive(qp);
	}
}

/*
 * Lock qp->drive for the due timer. True: the lock is held. The lock is only
 * tried: a program that sends much holds it most of the time, and the engine
 * thread must not sleep for it while other timers expire; it tries again soon.
 * Until then timer_at is in the past, so that no thread queues the timer a
 * second time. All this happens under timer_lock, so that vb_drive_forget()
 * always finds the timer queued or the lock taken.
 */
static bool take_due(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(e->timer_lock) VB_TRY_ACQUIRE(true, qp->drive)
{
	if (vb_mutex_trylock(&qp->drive))
		return true;
	if (vb_timer_set(&e->timers, &vb_eq(qp)->timer, now + BUSY) != 0)
		vb_log(LOG_ERROR, "qp 0x%x: no memory for its timer",
		       atomic_load(&qp->qpn));
	return false;
}

/* Returns the next queue pair that is due, with its drive lock held; NULL: none
 * is due. */
static struct vb_qp *VB_UNCHECKED eng_drive_next_due(struct vb_engine *e,
						     vb_time now)
{
	struct vb_qp *qp = NULL;
	struct vb_timer *t;

	vb_mutex_lock(&e->timer_lock);
	while (!qp && (t = vb_timers_pop(&e->timers, now))) {
		qp = VB_CONTAINER_OF(t, struct vb_engine_qp, timer)->qp;
		if (!take_due(e, qp, now))
			qp = NULL;
	}
	note_due(e);
	vb_mutex_unlock(&e->timer_lock);
	return qp;
}

void VB_UNCHECKED vb_drive_due(struct vb_engine *e, vb_time now, unsigned most)
{
	struct vb_qp *qp;

	while (most-- > 0 && (qp = eng_drive_next_due(e, now))) {
		vb_eq(qp)->timer_at = VB_NEVER;
		if (VB_UNLIKELY(atomic_load(&vb_eq(qp)->port_news)))
			vb_port_walk_hear(e, qp, now);
		/* Queue pairs are type-stable: a timer that outlived its queue
		 * pair finds qpn 0, or steps the successor, which does no
		 * harm. */
		if (atomic_load(&qp->qpn))
			vb_drive_step(e, qp, now);
		if (VB_UNLIKELY(qp->way == WAY_NEAR))
			vb_drive_release_light(e, qp);
		else
			vb_drive_release(e, qp);
	}
}
