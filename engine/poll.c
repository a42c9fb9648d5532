/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's poll (vb_engine_poll(), below ibv_poll_cq): the program's own
 * thread takes the frames that have arrived and serves them.
 *
 * Only one thread drains the link at a time, with the receive lock (rx).
 * engine/policy.h decides when a poll looks, yields, sleeps and steps timers.
 */
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <sched.h>

/* While the program reads its streams, the engine thread stays away from
 * them. */
static bool drain_streams(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	bool found;

	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	found = vb_stream_drain(e, now) == DRAINED_SOME;
	if (found)
		vb_poll_near(&e->poll, now);
	return found;
}

/* Serve the frames of links beside the engine's own. */
static bool drain_others(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	bool found = e->fabrics && vb_fabric_drain(e);

	if (VB_UNLIKELY(e->roce.v1 != NULL) && vb_engine_roce1_drain(e))
		found = true;
	return found;
}

/* Serve the frames of the engine's own link. */
static bool drain_frames(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	if (e->link->ops->recv(e->link, &e->rxq) < 0 || e->rxq.count == 0)
		return false;
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	e->polled = true;
	/* Read the clock again: the time of arrival must not be before a time
	 * at which other threads have sent meanwhile. */
	vb_dispatch(e, vb_now());
	e->polled = false;
	return true;
}

/* @before: the program's activity before this poll. A program that has armed a
 * queue polls once more before it sleeps; that poll most often finds nothing,
 * and the program may reply after it. If the link is lent to a channel, a
 * packet that comes from now on nudges the channel, so this poll need not look
 * at the link. */
static bool eng_drain_link(struct vb_engine *e, enum vb_program before,
			   vb_time now) VB_REQUIRES(e->rx)
{
	bool found = VB_UNLIKELY(e->raws != NULL) && vb_raw_drain(e, now);

	if (VB_UNLIKELY(e->streams != NULL) && drain_streams(e, now))
		found = true;
	if (before == PROGRAM_AWAY && atomic_load(&e->watched) == WATCHES_LENT)
		return found;
	if (!vb_poll_looks(&e->poll, now))
		return found;
	if (before != PROGRAM_AWAY)
		vb_drive_unreplied(e, now);
	e->polled = true;
	if (drain_others(e)) {
		vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
		found = true;
	}
	e->polled = false;
	return drain_frames(e, now) || found;
}

/* The program polls all the time: from now on it serves the lanes of peers of
 * this host. */
static void begin_spinning(struct vb_engine *e)
{
	atomic_fetch_or(&e->program, VB_PROGRAM_SPINS);
	vb_near_awake(e->near);
	vb_engine_wake(e);
}

/* Account for a poll that began at @from and ends @now. @before: the program's
 * activity until then. */
static enum vb_poll_next note_poll(struct vb_engine *e, enum vb_program before,
				   bool found, vb_time from, vb_time now)
	VB_REQUIRES(e->rx)
{
	vb_time back = atomic_load_explicit(&e->back_at, memory_order_relaxed);
	bool spins = vb_poll_spins(&e->poll, before, from, back, now);
	enum vb_poll_next next;
	uint64_t word =
		vb_engine_note(e, now, found ? PROGRAM_WORKS : PROGRAM_LOOPS);

	if (spins && e->near && VB_UNLIKELY(!vb_program_spins(word)))
		begin_spinning(e);
	next = vb_poll_ends(
		&e->poll, found || before <= PROGRAM_TOOK,
		atomic_load_explicit(&e->yield_took, memory_order_relaxed),
		now);
	if (VB_UNLIKELY(next == POLL_WAITS) && !vb_poll_can_wait(e))
		next = vb_poll_cannot_wait(&e->poll, now);
	return next;
}

/* Step timers after a poll that found nothing. A poll that found a message does
 * not do so, because the program's reply should go first. Without rx, since a
 * step copies up to 1 MiB to or from a peer of this host; and only one step
 * that takes long. */
static void step_due(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->rx)
{
	for (unsigned i = 0; i < VB_DUE_A_POLL; i++) {
		if (VB_LIKELY(!vb_drive_is_due(e, now)))
			return;
		vb_drive_due(e, now, 1);
		if (vb_now() - now > VB_DUE_LASTS)
			return;
	}
}

/* Drain the link. The caller holds rx, which this function releases. @near: the
 * lanes had a message; @from: when the poll began. */
static enum vb_poll_next drain_locked(struct vb_engine *e, bool near,
				      vb_time from) VB_RELEASE(e->rx)
{
	vb_time now = from;
	enum vb_program before = vb_program_does(vb_engine_program(e));
	enum vb_poll_next next;
	bool found;

	if (near || before == PROGRAM_TOOK)
		vb_poll_near(&e->poll, now);
	found = eng_drain_link(e, before, now) || near;
	if (found)
		now = vb_now();
	next = note_poll(e, before, found, from, now);
	vb_mutex_unlock(&e->rx);
	if (!found) {
		/* The program waits: send messages that gather for a batch. */
		vb_drive_gathered(e, now);
		step_due(e, now);
	}
	return next;
}

/* Another thread drains the link: most often the engine thread, which took over
 * while this program did not have its processor. @near: the lanes had a
 * message, which the program gets at once. */
static enum vb_poll_next await_turn(struct vb_engine *e, bool near,
				    vb_time from)
{
	uint64_t program = vb_engine_program(e);

	if (vb_program_loops(program))
		vb_engine_at_work(e, from);
	if (near)
		return POLL_RETURNS;
	sched_yield();
	if (vb_poll_found_taken(vb_engine_slowdown(e), vb_now() - from) ==
	    POLL_RETURNS)
		return POLL_RETURNS;
	vb_engine_note(e, vb_program_at(vb_engine_program(e)), PROGRAM_AWAITS);
	vb_mutex_lock(&e->rx);
	return drain_locked(e, false, vb_now());
}

static bool look_at_lanes_of(struct vb_engine *e, vb_time now)
{
	if (VB_UNLIKELY(
		    atomic_load_explicit(&e->watched, memory_order_relaxed) ==
		    WATCHES_LENT))
		return vb_lend_poll(e, now);
	return vb_near_poll(e->near, now);
}

/* Look at the lanes, then at the link. A poll returns at once with a message of
 * a peer of this host, and leaves its bookkeeping to the next poll, which most
 * often only waits. It does the bookkeeping itself if the previous poll left it
 * as well. */
static enum vb_poll_next drain_for_program(struct vb_engine *e)
{
	vb_time now = vb_now();
	bool near = e->near && look_at_lanes_of(e, now);

	if (near && vb_program_does(vb_engine_program(e)) != PROGRAM_TOOK) {
		vb_engine_note(e, now, PROGRAM_TOOK);
		return POLL_RETURNS;
	}
	if (VB_UNLIKELY(!vb_mutex_trylock(&e->rx)))
		return await_turn(e, near, now);
	return drain_locked(e, near, now);
}

bool vb_poll_for_waiter(struct vb_engine *e)
{
	vb_time now = vb_now();
	bool found;

	vb_mutex_lock(&e->rx);
	vb_drive_delayed_acks(e, now);
	found = drain_frames(e, now);
	if (found)
		vb_engine_note(e, vb_now(), PROGRAM_WORKS);
	vb_mutex_unlock(&e->rx);
	return found;
}

/* If another thread has rx, it drains the link now, which sends the ACK too, or
 * the engine thread sends the ACK within a millisecond. */
void vb_poll_before_sleep(struct vb_engine *e)
{
	if (!atomic_load_explicit(&e->attentive, memory_order_relaxed) ||
	    !vb_mutex_trylock(&e->rx))
		return;
	vb_drive_delayed_acks(e, vb_now());
	vb_mutex_unlock(&e->rx);
}

static bool ends_rest(struct vb_engine *e)
{
	enum vb_thread rests = THREAD_RESTS;

	return atomic_load(&e->thread_does) == rests &&
	       atomic_compare_exchange_strong(&e->thread_does, &rests,
					      THREAD_WATCHES);
}

static void armed(struct vb_engine *e, struct vb_channel *ch)
{
	uint64_t before = atomic_fetch_and(&e->program, ~VB_PROGRAM_BITS);

	vb_poll_waits_no_more(e);
	/* The program is about to sleep, so the engine thread must serve the
	 * packets. A delayed ACK can still leave with the reply to what the
	 * program has just been told of; vb_engine_wait(), the next poll, or
	 * the engine thread sends it otherwise. */
	if (!(ch && vb_lend_begin(e, ch)) && ends_rest(e))
		vb_engine_wake(e);
	/* Ask peers to ring. The program polls once more after arming, and
	 * finds what peers sent before this. */
	if (e->near && vb_program_spins(before))
		(void)vb_near_sleep(e->near);
}

void vb_engine_armed(struct vb_channel *ch)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e)
		return;
	cancel = vb_cancel_off();
	armed(e, ch);
	vb_cancel_back(cancel);
}

static void let_others_run(struct vb_engine *e)
{
	vb_time then = vb_now(), now;

	sched_yield();
	now = vb_now();
	atomic_store_explicit(&e->yield_took, now - then, memory_order_relaxed);
	atomic_store_explicit(&e->back_at, now, memory_order_relaxed);
}

/* A poll has found nothing: let others run, as @next says. */
static void eng_poll_in_vain(struct vb_engine *e, enum vb_poll_next next)
{
	if (next == POLL_WAITS && vb_poll_wait(e))
		next = drain_for_program(e);
	if (next == POLL_YIELDS)
		let_others_run(e);
}

void vb_engine_poll(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel = vb_cancel_off();

	enum vb_poll_next next = e ? drain_for_program(e) : POLL_RETURNS;

	if (VB_UNLIKELY(next != POLL_RETURNS))
		eng_poll_in_vain(e, next);
	vb_cancel_back(cancel);
}
