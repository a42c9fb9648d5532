/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses one of two links for each frame. */
#include "link/roce.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sync.h"

/* A multicast group that is joined; the number of the membership is the index
 * in the table. */
struct membership {
	bool used;
	/* the numbers that join() of the two links returned; below 0: not
	 * joined there */
	int v1, v2;
};

struct roce {
	struct vb_link link;
	struct vb_link *v1, *v2; /* the two links, which do not change */
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct membership *members;
	unsigned room; /* length of @members */
};

static struct roce *roce_of(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct roce, link);
}

static struct vb_link *link_for(const struct vb_link *l,
				const struct vb_route *r)
{
	return r->v1 ? roce_of(l)->v1 : roce_of(l)->v2;
}

static int roce_link_route(struct vb_link *l, struct vb_route *r)
{
	struct vb_link *to = link_for(l, r);

	return to->ops->route(to, r);
}

static int roce_aim(struct vb_link *l, struct vb_route *r)
{
	struct vb_link *to = link_for(l, r);

	return to->ops->aim(to, r);
}

/* Functions that join and leave multicast groups. */

/* Returns the index of an unused entry, or -ENOMEM. */
static int unused_member(struct roce *r) VB_REQUIRES(r->lock)
{
	struct membership *more;
	unsigned i = 0;

	while (i < r->room && r->members[i].used)
		i++;
	if (i < r->room)
		return (int)i;
	more = realloc(r->members, (r->room + 8) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (unsigned k = r->room; k < r->room + 8; k++)
		more[k] = (struct membership){ .used = false };
	r->members = more;
	r->room += 8;
	return (int)i;
}

static int note_member(struct roce *r, int v1, int v2)
{
	int i;

	vb_mutex_lock(&r->lock);
	i = unused_member(r);
	if (i >= 0)
		r->members[i] = (struct membership){ true, v1, v2 };
	vb_mutex_unlock(&r->lock);
	return i;
}

static void leave_both(struct roce *r, int v1, int v2)
{
	if (v1 >= 0)
		r->v1->ops->leave(r->v1, v1);
	if (v2 >= 0)
		r->v2->ops->leave(r->v2, v2);
}

/* Nothing says whether the group is one of RoCEv1 or of RoCEv2, so join it by
 * both. A group that is no IP address, or whose IP version the host does not
 * have, is joined only by RoCEv1. */
static int roce_join(struct vb_link *l, const struct vb_link_group *group)
{
	struct roce *r = roce_of(l);
	int v1 = r->v1->ops->join(r->v1, group), v2, i;

	if (v1 < 0)
		return v1;
	v2 = r->v2->ops->join(r->v2, group);
	i = note_member(r, v1, v2);
	if (i < 0)
		leave_both(r, v1, v2);
	return i;
}

static void roce_leave(struct vb_link *l, int member)
{
	struct roce *r = roce_of(l);
	struct membership m;

	vb_mutex_lock(&r->lock);
	m = r->members[member];
	r->members[member].used = false;
	vb_mutex_unlock(&r->lock);
	leave_both(r, m.v1, m.v2);
}

/* Functions that pass frames and routes to one of the two links. */

/* Returns the index behind the last of the frames in a row, from @q->first on,
 * that leave by one link. */
static unsigned end_of_run(const struct vb_txq *q)
{
	bool v1 = q->frames[q->first].route->v1;
	unsigned end = q->first + 1;

	while (end < q->count && q->frames[end].route->v1 == v1)
		end++;
	return end;
}

/* Let one of the two links send the first frames of the batch @q, or drop them.
 * That link sees a batch that ends with its own frames; @q keeps the other
 * frames. */
static bool pass_run(struct vb_link *l, struct vb_txq *q, bool drops)
{
	struct vb_link *to = link_for(l, q->frames[q->first].route);
	unsigned end = end_of_run(q), count = q->count;
	bool done = true;

	q->count = end;
	if (drops)
		to->ops->drop(to, q);
	else
		done = to->ops->send(to, q);
	q->count = count;
	if (done)
		q->first = end;
	return done;
}

static bool roce_send(struct vb_link *l, struct vb_txq *q)
{
	while (q->first < q->count)
		if (!pass_run(l, q, false))
			return false;
	vb_txq_reset(q);
	return true;
}

static void roce_drop(struct vb_link *l, struct vb_txq *q)
{
	while (q->first < q->count)
		(void)pass_run(l, q, true);
	vb_txq_reset(q);
}

/* Functions that open and close the link. */

static void add_stats(const struct vb_link *l, struct vb_link_stats *sum)
{
	struct vb_link_stats s;

	l->ops->stats(l, &s);
	sum->tx_frames += s.tx_frames;
	sum->tx_calls += s.tx_calls;
	sum->tx_bytes += s.tx_bytes;
	sum->tx_lost += s.tx_lost;
	sum->rx_frames += s.rx_frames;
	sum->rx_calls += s.rx_calls;
	sum->rx_bytes += s.rx_bytes;
	sum->rx_icrc_errors += s.rx_icrc_errors;
	sum->rx_malformed += s.rx_malformed;
}

static void roce_link_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	*out = (struct vb_link_stats){ 0 };
	add_stats(roce_of(l)->v1, out);
	add_stats(roce_of(l)->v2, out);
}

static void roce_close(struct vb_link *l)
{
	struct roce *r = roce_of(l);

	vb_mutex_fini(&r->lock);
	free(r->members);
	free(r);
}

static const struct vb_link_ops roce_ops = {
	.name = "roce",
	.route = roce_link_route,
	.aim = roce_aim,
	.join = roce_join,
	.leave = roce_leave,
	.send = roce_send,
	.drop = roce_drop,
	.stats = roce_link_stats,
	.close = roce_close,
};

int vb_roce_open(struct vb_link *v1, struct vb_link *v2, struct vb_link **link)
{
	struct roce *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->link.ops = &roce_ops;
	r->v1 = v1;
	r->v2 = v2;
	vb_mutex_init(&r->lock, VB_RANK_LEAF);
	*link = &r->link;
	return 0;
}
