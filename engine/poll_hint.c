/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to iWARP's WRITEs. A WRITE is complete when TCP has it, so a program
 * has its completion with the first poll; if it then spins on its memory until
 * the peer has written there, nobody looks at the socket but the engine's
 * thread, which is to be woken on a processor that the program keeps busy: 50
 * to 70 us. RoCE has not that, as the completion comes with the answer.
 *
 * So, where a queue pair's answers came to the thread soon after what was sent,
 * many times in a row, a poll that would only return such completions looks for
 * the answer first. For as long as such answers may take: as long as the peer
 * does not look, too, its thread has to be woken. Looking in vain makes wary:
 * twice as many are asked for the next time.
 *
 * All in struct vb_poll_hint is hints, ordered by nothing, and not exact where
 * many threads poll. It lies in a queue pair's memory, which stays.
 */
#include "engine/engine_priv.h"

#include <sched.h>

#define IS_SOON	   (200 * VB_USEC) /* with what both threads take to wake */
#define SPIN	   (30 * VB_USEC)  /* then others may want the processor */
#define WARY_LEAST 4
#define WARY_MOST  256

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

/* What comes when nothing was asked is no answer. */
static void count_answer(struct vb_engine *e, struct vb_poll_hint *a,
			 vb_time now)
{
	unsigned answers;

	if (now > sent_at(a) + vb_engine_span(e, IS_SOON)) {
		atomic_store_explicit(&a->answers, 0, memory_order_relaxed);
		return;
	}
	answers =
		atomic_fetch_add_explicit(&a->answers, 1, memory_order_relaxed);
	if (answers + 1 >= VB_MAX(wary_of(a), WARY_LEAST))
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

/* Another thread that has the lock may be the one that finds it. */
static void eng_poll_hint_look(struct vb_engine *e, vb_time now)
{
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	if (!vb_mutex_trylock(&e->rx))
		return;
	(void)vb_stream_drain(e, now);
	vb_mutex_unlock(&e->rx);
}

static void eng_note(struct vb_engine *e, struct vb_poll_hint *a, bool found)
{
	unsigned wary = wary_of(a);

	if (found) {
		wary -= wary > 0;
	} else {
		wary = VB_MIN(VB_MAX(wary, WARY_LEAST) * 2, WARY_MOST);
		atomic_store_explicit(&a->answers, 0, memory_order_relaxed);
		look_for(e, a, false);
	}
	atomic_store_explicit(&a->wary, wary, memory_order_relaxed);
}

static uint32_t eng_waiting(struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed);
}

/* Until there is more for the program than its completions. */
static void eng_await(struct vb_engine *e, struct vb_poll_hint *a,
		      struct vb_cq *cq)
{
	vb_time from = vb_now(), now = from;
	vb_time until = from + vb_engine_span(e, IS_SOON);
	uint32_t there = eng_waiting(cq);

	while (now < until && !is_answered(a) && eng_waiting(cq) == there) {
		eng_poll_hint_look(e, now);
		if (now - from > vb_engine_span(e, SPIN))
			sched_yield();
		now = vb_now();
	}
	eng_note(e, a, now < until);
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
	if (!qp || !atomic_load(&qp->await.looks) || is_answered(&qp->await))
		return;
	cancel = vb_cancel_off();
	eng_await(e, &qp->await, cq);
	vb_cancel_back(cancel);
}
