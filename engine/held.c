/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches that the kernel has no room for. The queue pair holds such a batch
 * and makes no other before the batch is sent. No thread waits for room with a
 * lock held: a timer tries the batch again after 100 us, later after up to 1
 * ms. If no packet of a batch could be sent for VB_HELD_LASTS, the rest is
 * lost, as on a wire, and the protocol repeats it.
 */
#include "engine/engine_priv.h"

#include <stdlib.h>
#include <time.h>

#define HELD_LATE VB_MSEC

struct vb_held {
	struct vb_txq *q;
	/* of the port that the queue pair had when it made the batch: the
	 * routes are that link's, and the port may change */
	struct vb_link *link;
	vb_time at, nap; /* the time of the next try, and the pause before it */
	vb_time until;
	/* Copies of the routes, since the owners of the routes can free the
	 * originals. */
	struct vb_route routes[];
};

static void keep_routes(struct vb_held *h)
{
	const struct vb_route *last = NULL;
	unsigned kept = 0;

	for (unsigned i = h->q->first; i < h->q->count; i++) {
		struct vb_tx_frame *f = &h->q->frames[i];

		if (f->route != last) {
			last = f->route;
			h->routes[kept++] = *last;
		}
		f->route = &h->routes[kept - 1];
	}
}

bool vb_held_keep(struct vb_engine *e, struct vb_qp *qp, struct vb_txq *q,
		  vb_time now)
{
	struct vb_held *h = NULL;

	if (atomic_fetch_add(&e->held, 1) < VB_HELD_MOST)
		h = malloc(sizeof(*h) +
			   (q->count - q->first) * sizeof(*h->routes));
	if (!h) {
		atomic_fetch_sub(&e->held, 1);
		return false;
	}
	*h = (struct vb_held){ .q = q,
			       .link = vb_held_link(e, qp),
			       .at = now + VB_HELD_SOON,
			       .nap = VB_HELD_SOON,
			       .until = now + VB_HELD_LASTS };
	keep_routes(h);
	vb_eq(qp)->held = h;
	return true;
}

static void eng_let_go(struct vb_engine *e, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_held *h = vb_eq(qp)->held;

	vb_eq(qp)->held = NULL;
	free(h->q);
	free(h);
	atomic_fetch_sub(&e->held, 1);
}

bool vb_held_send(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	struct vb_held *h = vb_eq(qp)->held;
	unsigned first = h->q->first;

	if (now < h->at)
		return false;
	if (!h->link->ops->send(h->link, h->q)) {
		bool some = h->q->first != first;

		if (some)
			h->until = now + VB_HELD_LASTS;
		h->nap = some ? VB_HELD_SOON : VB_MIN(2 * h->nap, HELD_LATE);
		h->at = now + h->nap;
		if (now < h->until)
			return false;
		h->link->ops->drop(h->link, h->q);
	}
	eng_let_go(e, qp);
	return true;
}

vb_time vb_held_at(const struct vb_qp *qp)
{
	return vb_eq(qp)->held->at;
}

void vb_held_drop(struct vb_engine *e, struct vb_qp *qp)
{
	struct vb_held *h = vb_eq(qp)->held;

	if (!h)
		return;
	h->link->ops->drop(h->link, h->q);
	eng_let_go(e, qp);
}

void vb_held_follow(struct vb_engine *e, struct vb_qp *qp)
{
	const struct vb_held *h = vb_eq(qp)->held;

	if (h && h->link != vb_held_link(e, qp))
		vb_held_drop(e, qp);
}

static bool has_settled(struct vb_engine *e, struct vb_qp *qp)
{
	bool settled;

	vb_mutex_lock(&qp->drive);
	settled = !vb_eq(qp)->held || vb_held_send(e, qp, vb_now());
	vb_mutex_unlock(&qp->drive);
	return settled;
}

static void eng_held_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = VB_HELD_SOON }, NULL);
}

void vb_held_settle(struct vb_engine *e, struct vb_qp *qp)
{
	vb_time until = vb_now() + VB_HELD_LASTS;

	while (!has_settled(e, qp) && vb_now() < until)
		eng_held_nap();
}

void vb_held_settle_all(struct vb_engine *e)
{
	vb_time until = vb_now() + VB_HELD_LASTS;

	while (atomic_load(&e->held) && vb_now() < until)
		eng_held_nap();
}
