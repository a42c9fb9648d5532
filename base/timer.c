/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap of deadlines. Each timer stores its position in the heap, so
 * that it can be removed before it expires. */
#include "base/timer.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 16

static void place(struct vb_timers *ts, uint32_t pos, struct vb_timer *t)
{
	ts->heap[pos] = t;
	t->pos = pos;
}

static void sift_up(struct vb_timers *ts, uint32_t pos, struct vb_timer *t)
{
	while (pos > 0) {
		uint32_t up = (pos - 1) / 2;

		if (ts->heap[up]->at <= t->at)
			break;
		place(ts, pos, ts->heap[up]);
		pos = up;
	}
	place(ts, pos, t);
}

static void sift_down(struct vb_timers *ts, uint32_t pos, struct vb_timer *t)
{
	for (;;) {
		uint32_t down = 2 * pos + 1;

		if (down >= ts->used)
			break;
		if (down + 1 < ts->used &&
		    ts->heap[down + 1]->at < ts->heap[down]->at)
			down++;
		if (t->at <= ts->heap[down]->at)
			break;
		place(ts, pos, ts->heap[down]);
		pos = down;
	}
	place(ts, pos, t);
}

/* Put @t at position @pos, and restore the order of the heap from there. */
static void restore_order(struct vb_timers *ts, uint32_t pos,
			  struct vb_timer *t)
{
	if (pos > 0 && t->at < ts->heap[(pos - 1) / 2]->at)
		sift_up(ts, pos, t);
	else
		sift_down(ts, pos, t);
}

int vb_timers_reserve(struct vb_timers *ts, uint32_t count)
{
	uint32_t room = VB_MAX(count, ts->room * 2);
	struct vb_timer **heap;

	if (count <= ts->room)
		return 0;
	heap = reallocarray(ts->heap, room, sizeof(struct vb_timer *));
	if (!heap)
		return -ENOMEM;
	ts->heap = heap;
	ts->room = room;
	return 0;
}

static int make_room(struct vb_timers *ts)
{
	if (ts->used < ts->room)
		return 0;
	return vb_timers_reserve(ts, ts->room ? ts->room + 1 : FIRST_ROOM);
}

void vb_timers_init(struct vb_timers *ts)
{
	*ts = (struct vb_timers){ 0 };
}

void vb_timers_fini(struct vb_timers *ts)
{
	free(ts->heap);
	*ts = (struct vb_timers){ 0 };
}

void vb_timer_init(struct vb_timer *t)
{
	*t = (struct vb_timer){ .at = VB_NEVER };
}

int vb_timer_set(struct vb_timers *ts, struct vb_timer *t, vb_time at)
{
	int err;

	if (at == VB_NEVER) {
		vb_timer_cancel(ts, t);
		return 0;
	}
	if (t->at != VB_NEVER) {
		t->at = at;
		restore_order(ts, t->pos, t);
		return 0;
	}
	err = make_room(ts);
	if (err)
		return err;
	t->at = at;
	sift_up(ts, ts->used++, t);
	return 0;
}

void vb_timer_cancel(struct vb_timers *ts, struct vb_timer *t)
{
	uint32_t pos = t->pos;

	if (t->at == VB_NEVER)
		return;
	t->at = VB_NEVER;
	if (pos != --ts->used)
		restore_order(ts, pos, ts->heap[ts->used]);
}

vb_time vb_timers_next(const struct vb_timers *ts)
{
	return ts->used ? ts->heap[0]->at : VB_NEVER;
}

struct vb_timer *vb_timers_pop(struct vb_timers *ts, vb_time now)
{
	struct vb_timer *t;

	if (!ts->used || ts->heap[0]->at > now)
		return NULL;
	t = ts->heap[0];
	vb_timer_cancel(ts, t);
	return t;
}
