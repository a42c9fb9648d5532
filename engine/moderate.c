/* SPDX-License-Identifier: BSD-2-Clause */
/* Moderated completion events (ibv_modify_cq()): the timers that signal delayed
 * events. */
#include "engine/engine_priv.h"

/* Set the alarm of @cq. core/ calls this with the completion queue's lock
 * held. */
static bool set_alarm(struct vb_cq *cq, vb_time at)
{
	struct vb_engine *e = vb_engine_running();
	bool wake = false, set;

	if (!e)
		return false;
	vb_mutex_lock(&e->timer_lock);
	set = vb_timer_set(&e->cq_timers, &cq->timer, at) == 0;
	if (set)
		wake = vb_drive_wakes(e, at);
	vb_mutex_unlock(&e->timer_lock);
	if (wake)
		vb_engine_wake(e);
	return set;
}

void vb_engine_moderate(struct vb_cq *cq, uint32_t count, vb_time period)
{
	int cancel = vb_cancel_off();

	vb_cq_moderate(cq, count, period, set_alarm);
	vb_cancel_back(cancel);
}

void vb_engine_forget_cq(struct vb_cq *cq)
{
	struct vb_engine *e = vb_engine_running();

	if (!e || !cq->alarm)
		return;
	/* A thread that has popped the timer can be about to access @cq: wait
	 * for that thread. */
	vb_mutex_lock(&e->moderation);
	vb_mutex_lock(&e->timer_lock);
	vb_timer_cancel(&e->cq_timers, &cq->timer);
	vb_mutex_unlock(&e->timer_lock);
	vb_mutex_unlock(&e->moderation);
}

static struct vb_cq *eng_moderate_next_due(struct vb_engine *e, vb_time now)
{
	struct vb_timer *t;

	vb_mutex_lock(&e->timer_lock);
	t = vb_timers_pop(&e->cq_timers, now);
	vb_mutex_unlock(&e->timer_lock);
	return t ? VB_CONTAINER_OF(t, struct vb_cq, timer) : NULL;
}

void vb_moderate_due(struct vb_engine *e, vb_time now)
{
	struct vb_cq *cq;

	vb_mutex_lock(&e->moderation);
	while ((cq = eng_moderate_next_due(e, now)))
		vb_cq_due(cq);
	vb_mutex_unlock(&e->moderation);
}
