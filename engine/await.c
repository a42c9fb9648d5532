/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to iWARP's WRITEs. A WRITE is complete when TCP has it, so a program
 * has its completion with the first poll; if it then spins on its memory until
 * the peer has written there, nobody looks at the socket but the engine's
 * thread, which is to be woken on a processor that the program keeps busy: 50
 * to 70 us. RoCE has not that, as the completion comes with the answer.
 *
 * So, where answers came to the thread soon after what a program had sent, many
 * times in a row, a poll that has a completion looks for the answer first. For
 * as long as such answers may take: as long as the peer does not look, too, its
 * thread has to be woken. Looking in vain makes wary: twice as many are asked
 * for the next time.
 */
#include "engine/engine_priv.h"

#define IS_SOON	   (200 * VB_USEC) /* with what both threads take to wake */
#define WARY_LEAST 4
#define WARY_MOST  256

/* Hints, ordered by nothing. */
static vb_time sent_at(struct vb_engine *e)
{
	return atomic_load_explicit(&e->stream_sent, memory_order_relaxed);
}

static bool is_answered(struct vb_engine *e)
{
	return atomic_load_explicit(&e->stream_came, memory_order_relaxed) >=
	       sent_at(e);
}

static bool is_thread(const struct vb_engine *e)
{
	return pthread_equal(pthread_self(), e->thread);
}

void vb_await_sent(struct vb_engine *e, vb_time now)
{
	if (!is_thread(e))
		atomic_store_explicit(&e->stream_sent, now,
				      memory_order_relaxed);
}

void vb_await_came(struct vb_engine *e, vb_time now)
{
	atomic_store_explicit(&e->stream_came, now, memory_order_relaxed);
	if (!is_thread(e))
		return;
	if (now - sent_at(e) > vb_engine_span(e, IS_SOON))
		e->answers = 0;
	else if (++e->answers >= VB_MAX(e->answers_wary, WARY_LEAST))
		atomic_store_explicit(&e->awaits, true, memory_order_relaxed);
}

/* Another thread that has the lock may be the one that finds it. */
static void look(struct vb_engine *e, vb_time now)
{
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	if (!vb_mutex_trylock(&e->rx))
		return;
	(void)vb_stream_drain(e, now);
	vb_mutex_unlock(&e->rx);
}

/* What is written to here is not exact where many threads poll, and need not
 * be. */
static void note(struct vb_engine *e, bool found)
{
	unsigned wary =
		atomic_load_explicit(&e->answers_wary, memory_order_relaxed);

	if (found) {
		wary /= 2;
	} else {
		wary = VB_MIN(VB_MAX(wary, WARY_LEAST) * 2, WARY_MOST);
		atomic_store_explicit(&e->answers, 0, memory_order_relaxed);
		atomic_store_explicit(&e->awaits, false, memory_order_relaxed);
	}
	atomic_store_explicit(&e->answers_wary, wary, memory_order_relaxed);
}

static void await(struct vb_engine *e)
{
	vb_time now = vb_now(), until = now + vb_engine_span(e, IS_SOON);

	for (; now < until && !is_answered(e); now = vb_now())
		look(e, now);
	note(e, now < until);
	vb_engine_at_work(e, now);
}

void vb_engine_await(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e || !atomic_load_explicit(&e->awaits, memory_order_relaxed))
		return;
	cancel = vb_cancel_off();
	await(e);
	vb_cancel_back(cancel);
}
