/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers of the fabric's process itself; the network and the management
 * have others. When a timer expires, its function is called. */
#include "fabricd/fabricd_priv.h"

void vb_fabricd_later_init(struct fd_later *l,
			   void (*fire)(struct fd_later *l, vb_time now))
{
	vb_timer_init(&l->timer);
	l->fire = fire;
}

/* This cannot fail: vb_fabricd_create() has reserved room for all timers. */
void vb_fabricd_later(struct vb_fabricd *f, struct fd_later *l, vb_time at)
{
	(void)!vb_timer_set(&f->due, &l->timer, at);
}

void vb_fabricd_never(struct vb_fabricd *f, struct fd_later *l)
{
	vb_timer_cancel(&f->due, &l->timer);
}

vb_time vb_fabricd_fire(struct vb_fabricd *f, vb_time now)
{
	struct vb_timer *t;
	vb_time next;

	while ((t = vb_timers_pop(&f->due, now))) {
		struct fd_later *l = VB_CONTAINER_OF(t, struct fd_later, timer);

		l->fire(l, now);
	}
	next = vb_timers_next(&f->due);
	return next == VB_NEVER ? VB_NEVER : next - now;
}
