/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's poll (vb_engine_poll(), below ibv_poll_cq): the program's own
 * thread takes the frames that have arrived and serves them.
 *
 * Only one thread drains the link at a time, with the receive lock (rx). A poll
 * that finds the lock taken does not spin for it: see await_turn(). A poll that
 * finds nothing for long yields the processor: see has_spun_long().
 */
#include "engine/engine_priv.h"

#include <sched.h>

#define SPIN_LEAST (2 * VB_USEC)
/* A yield takes less if no other thread runs. */
#define ALONE (3 * VB_USEC)

#define NEAR_IS_RECENT	(100 * VB_USEC)
#define LOOK_AT_LINK	(4 * VB_USEC)
#define POLLS_ARE_CLOSE (20 * VB_USEC)
#define SPINS		32 /* so many polls close together: the program spins */
#define DUE_A_POLL	4  /* due queue pairs that one empty poll steps */

/*
 * True: nothing came for long, so the caller yields the processor. When there
 * are more spinning programs than processors, the peer that is to answer may be
 * waiting for this one; a program alone on its processor loses nothing by
 * yielding. When a yield was followed by what the program waited for, the next
 * one comes after half the time (2 us at least), otherwise after twice the time
 * (30 us at most).
 */
static bool has_spun_long(struct vb_engine *e, bool found, vb_time now)
{
	if (e->yielded)
		e->patience = found ? VB_MAX(e->patience / 2,
					     vb_engine_span(e, SPIN_LEAST))
				    : VB_MIN(e->patience * 2,
					     vb_engine_span(e, VB_SPIN_MOST));
	if (found)
		e->found_at = now;
	e->yielded = now > e->found_at + e->patience;
	return e->yielded;
}

/* While peers of this host send, the link is looked at only every 4 us, because
 * each look costs a system call. */
static bool leaves_link_alone(const struct vb_engine *e, vb_time now)
{
	return now - e->near_at < vb_engine_span(e, NEAR_IS_RECENT) &&
	       now - e->looked_at < vb_engine_span(e, LOOK_AT_LINK);
}

/* While the program reads its streams, the engine thread stays away from
 * them. */
static bool drain_streams(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	bool found;

	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	found = vb_stream_drain(e, now);
	if (found)
		e->near_at = now; /* look at the link less often */
	return found;
}

static bool eng_drain_link(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	bool found = VB_UNLIKELY(e->raws != NULL) && vb_raw_drain(e, now);

	if (VB_UNLIKELY(e->streams != NULL) && drain_streams(e, now))
		found = true;
	if (leaves_link_alone(e, now))
		return found;
	e->looked_at = now;
	vb_drive_delayed_acks(e, now);
	if (e->link->ops->recv(e->link, &e->rxq) < 0 || e->rxq.count == 0)
		return found;
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	e->polled = true;
	/* The time of arrival must not lie before the time at which other
	 * threads sent meanwhile. */
	vb_dispatch(e, vb_now());
	e->polled = false;
	return true;
}

/* Notes a poll that began at @from and ends @now. @late: the poll before this
 * one left its bookkeeping to this one. A program that polls SPINS times in a
 * row, each soon after the last, spins: it serves the lanes of peers of this
 * host from now on. */
static void note_spinning(struct vb_engine *e, bool found, vb_time from,
			  vb_time now, bool late)
{
	/* Time in which the program had yielded does not count. */
	vb_time back =
		VB_MAX(e->polled_at,
		       atomic_load_explicit(&e->back_at, memory_order_relaxed));
	bool close = from < back + vb_engine_span(e, POLLS_ARE_CLOSE);

	vb_engine_at_work(e, now);
	atomic_store_explicit(&e->looping, !found, memory_order_relaxed);
	if (!late) /* the streak is not known: a poll between was not noted */
		e->streak = close ? e->streak + 1 : 0;
	e->polled_at = now;
	if (VB_LIKELY(e->streak < SPINS || !e->near ||
		      atomic_load_explicit(&e->spinning, memory_order_relaxed)))
		return;
	atomic_store(&e->spinning, true);
	vb_near_awake(e->near);
	vb_engine_wake(e);
}

/* A poll returns at once with what a peer of this host sent, and leaves its
 * bookkeeping to the next poll, which most often only waits. False: the poll
 * before did so already. */
static bool can_be_booked_later(struct vb_engine *e)
{
	if (atomic_load_explicit(&e->unbooked, memory_order_relaxed))
		return false;
	atomic_store_explicit(&e->unbooked, true, memory_order_relaxed);
	return true;
}

/* This poll found nothing, so the program waits: messages that gather for a
 * batch and timers have their turn. A poll that found something does not come
 * here, because the program's reply should go first. */
static void wait_for_more(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	vb_drive_gathered(e, now);
	if (VB_UNLIKELY(vb_drive_is_due(e, now)))
		vb_drive_due(e, now, DUE_A_POLL);
}

/* Drain the link; the caller has rx, which is released here. @near: lanes had
 * something; @from: when the poll began. True: nothing came for long, so the
 * caller yields the processor. */
static bool drain_locked(struct vb_engine *e, bool near, vb_time from)
	VB_RELEASE(e->rx)
{
	vb_time now = from;
	bool late = atomic_load_explicit(&e->unbooked, memory_order_relaxed);
	bool found, yield;

	if (VB_UNLIKELY(late))
		atomic_store_explicit(&e->unbooked, false,
				      memory_order_relaxed);
	if (near || late)
		e->near_at = now;
	found = eng_drain_link(e, now) || near;
	if (found)
		now = vb_now();
	else
		wait_for_more(e, now);
	note_spinning(e, found, from, now, late);
	yield = has_spun_long(e, found || late, now);
	vb_mutex_unlock(&e->rx);
	return yield;
}

/*
 * Another thread drains the link, most often the engine thread, which took over
 * while this program was kept from its processor. Spinning would keep that
 * thread from the processor, so this one yields. A yield that takes 3 us or
 * more ran another thread: there are more threads than processors here, and the
 * poll sleeps for the lock, which that thread gives up after its batch. @near:
 * lanes had something, which the program gets at once.
 */
static bool await_turn(struct vb_engine *e, bool near, vb_time from)
{
	if (atomic_load_explicit(&e->looping, memory_order_relaxed))
		vb_engine_at_work(e, from);
	if (near)
		return false;
	sched_yield();
	if (vb_now() - from < vb_engine_span(e, ALONE))
		return false;
	atomic_store_explicit(&e->awaited, true, memory_order_relaxed);
	vb_mutex_lock(&e->rx);
	atomic_store_explicit(&e->awaited, false, memory_order_relaxed);
	return drain_locked(e, false, vb_now());
}

/* Looks at lanes, then at the link. True: nothing came for long, so the caller
 * yields the processor. */
static bool drain_for_program(struct vb_engine *e)
{
	vb_time now = vb_now();
	bool near = e->near && vb_near_poll(e->near, now);

	if (near && can_be_booked_later(e)) {
		vb_engine_at_work(e, now);
		atomic_store_explicit(&e->looping, false, memory_order_relaxed);
		return false;
	}
	if (VB_UNLIKELY(!vb_mutex_trylock(&e->rx)))
		return await_turn(e, near, now);
	return drain_locked(e, near, now);
}

/* Send the delayed ACK: the program may sleep for long. */
static void eng_settle(struct vb_engine *e)
{
	if (!vb_mutex_trylock(&e->rx))
		return;
	vb_drive_delayed_acks(e, vb_now());
	vb_mutex_unlock(&e->rx);
}

static void armed(struct vb_engine *e)
{
	atomic_store_explicit(&e->looping, false, memory_order_relaxed);
	if (atomic_load_explicit(&e->attentive, memory_order_relaxed))
		eng_settle(e);
	/* The program is about to sleep and polls no more. */
	if (atomic_load(&e->resting) && atomic_exchange(&e->resting, false))
		vb_engine_wake(e);
	if (!e->near || !atomic_load(&e->spinning))
		return;
	atomic_store(&e->spinning, false);
	(void)vb_near_sleep(
		e->near); /* a program polls once more after arming */
}

void vb_engine_armed(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e)
		return;
	cancel = vb_cancel_off();
	armed(e);
	vb_cancel_back(cancel);
}

static void let_others_run(struct vb_engine *e)
{
	sched_yield();
	atomic_store_explicit(&e->back_at, vb_now(), memory_order_relaxed);
}

void vb_engine_poll(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel = vb_cancel_off();

	if (e && drain_for_program(e))
		let_others_run(e);
	vb_cancel_back(cancel);
}
