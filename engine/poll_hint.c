/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polls that look for the answer to an iWARP WRITE. TCP completes a WRITE when
 * it takes the bytes, so a program gets its completion with its first poll.
 * When it then spins on memory until the peer has written there, only the
 * engine thread looks at the socket, and waking it on a processor that the
 * program keeps busy takes 50 to 70 us. (RoCE completes a WRITE with the peer's
 * answer, so the program keeps polling.)
 *
 * So, when a queue pair's answers reached the engine thread soon after this
 * process had sent, several times in a row, a poll that would only return such
 * completions looks for the answer first (rule 6 in engine/policy_program.c).
 *
 * All fields of struct vb_poll_hint are hints: threads read and write them
 * without a lock, and they are not exact where many threads poll. They lie in
 * the queue pair's memory, which is type-stable.
 */
#include "engine/engine_priv.h"

#include <sched.h>

static vb_time sent_at(struct vb_poll_hint *a)
{
	return atomic_load_explicit(&a->sent, memory_order_relaxed);
}

static bool is_answered(struct vb_poll_hint *a)
{
	return atomic_load_explicit(&a->came, memory_order_relaxed) >=
	       sent_at(a);
}

static unsigned wary_of(struct vb_poll_hint *a)
{
	return atomic_load_explicit(&a->wary, memory_order_relaxed);
}

static void look_for(struct vb_engine *e, struct vb_poll_hint *a, bool yes)
{
	if (atomic_exchange(&a->looks, yes) == yes)
		return;
	if (yes)
		atomic_fetch_add(&e->awaiting, 1);
	else
		atomic_fetch_sub(&e->awaiting, 1);
}

void vb_poll_hint_sent(struct vb_engine *e, struct vb_poll_hint *a, vb_time now)
{
	if (!vb_service_is_me(e))
		atomic_store_explicit(&a->sent, now, memory_order_relaxed);
}

/* Count the bytes that arrived at @now as an answer. The caller has checked
 * that nothing else arrived since the last send. */
static void count_answer(struct vb_engine *e, struct vb_poll_hint *a,
			 vb_time now)
{
	unsigned answers = vb_answer_counts(
		vb_engine_slowdown(e), sent_at(a), now,
		atomic_load_explicit(&a->answers, memory_order_relaxed));

	atomic_store_explicit(&a->answers, answers, memory_order_relaxed);
	if (vb_answer_is_worth(answers, wary_of(a)))
		look_for(e, a, true);
}

void vb_poll_hint_came(struct vb_engine *e, struct vb_poll_hint *a, vb_time now)
{
	if (vb_service_is_me(e) && !is_answered(a))
		count_answer(e, a, now);
	atomic_store_explicit(&a->came, now, memory_order_relaxed);
}

void vb_poll_hint_begin(struct vb_engine *e, struct vb_poll_hint *a)
{
	look_for(e, a, false);
	atomic_store_explicit(&a->sent, 0, memory_order_relaxed);
	atomic_store_explicit(&a->came, 0, memory_order_relaxed);
	atomic_store_explicit(&a->answers, 0, memory_order_relaxed);
	atomic_store_explicit(&a->wary, 0, memory_order_relaxed);
}

/* Look at the streams once. If another thread holds rx, that thread looks at
 * them now and may find the answer, so this thread need not wait. */
static void eng_poll_hint_look(struct vb_engine *e, vb_time now)
{
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	vb_stream_pass_lanes(e, now);
	if (!vb_mutex_trylock(&e->rx))
		return;
	(void)vb_stream_drain(e, now);
	vb_mutex_unlock(&e->rx);
}

static void eng_note(struct vb_engine *e, struct vb_poll_hint *a, bool found)
{
	atomic_store_explicit(&a->wary, vb_answer_wary(wary_of(a), found),
			      memory_order_relaxed);
	if (found)
		return;
	atomic_store_explicit(&a->answers, 0, memory_order_relaxed);
	look_for(e, a, false);
}

static uint32_t eng_waiting(struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed);
}

/* Look until the answer has come, @cq has more completions for the program, or
 * the policy gives up. */
static void eng_await(struct vb_engine *e, struct vb_poll_hint *a,
		      struct vb_cq *cq)
{
	unsigned slowdown = vb_engine_slowdown(e);
	vb_time from = vb_now(), now = from;
	uint32_t there = eng_waiting(cq);

	while (vb_answer_looks_on(slowdown, from, now) && !is_answered(a) &&
	       eng_waiting(cq) == there) {
		eng_poll_hint_look(e, now);
		if (vb_answer_yields(slowdown, from, now))
			sched_yield();
		now = vb_now();
	}
	eng_note(e, a, vb_answer_looks_on(slowdown, from, now));
	vb_engine_at_work(e, now);
}

void vb_engine_poll_hint(struct vb_cq *cq)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_qp *qp;
	int cancel;

	if (!e || !atomic_load_explicit(&e->awaiting, memory_order_relaxed))
		return;
	qp = vb_cq_sender(cq);
	if (!qp || !atomic_load(&vb_eq(qp)->await.looks) ||
	    is_answered(&vb_eq(qp)->await))
		return;
	cancel = vb_cancel_off();
	eng_await(e, &vb_eq(qp)->await, cq);
	vb_cancel_back(cancel);
}
