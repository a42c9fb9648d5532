/* SPDX-License-Identifier: BSD-2-Clause */
/* The READ and atomic requests that a responder remembers (ib/replay.h). */
#include "ib/replay.h"

#include <stdlib.h>

#include "wire/ib_hdr.h"

static struct vb_answer *at(struct vb_replay *r, uint32_t index)
{
	return &r->ring[index & (r->cap - 1)];
}

static void skip_done(struct vb_replay *r)
{
	while (r->due != r->end && at(r, r->due)->due == DUE_NOT)
		r->due++;
}

static void forget_oldest(struct vb_replay *r)
{
	if (r->due == r->end - r->held)
		vb_replay_done(r);
}

void vb_replay_fini(struct vb_replay *r)
{
	free(r->ring);
	r->ring = NULL;
	r->cap = 0;
}

void vb_replay_reset(struct vb_replay *r, unsigned max_dest_rd_atomic)
{
	vb_replay_fini(r);
	r->held = 0;
	r->end = r->due = 0;
	vb_replay_resize(r, max_dest_rd_atomic);
}

void vb_replay_resize(struct vb_replay *r, unsigned max_dest_rd_atomic)
{
	r->slots = max_dest_rd_atomic ? 1 : 0;
	/* A peer may round its number of outstanding requests up to a power of
	 * two. */
	while (r->slots && r->slots < max_dest_rd_atomic &&
	       r->slots < VB_MAX_RD_ATOM)
		r->slots *= 2;
	for (; r->held > r->slots; r->held--)
		forget_oldest(r);
}

/* Make the ring large enough for all slots. False: memory is exhausted. */
static bool make_ring(struct vb_replay *r)
{
	struct vb_answer *ring, *old = r->ring;

	if (VB_LIKELY(r->cap >= r->slots))
		return true;
	ring = calloc(r->slots, sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = r->end - r->held; i != r->end; i++)
		ring[i & (r->slots - 1)] = *at(r, i);
	r->ring = ring;
	r->cap = r->slots;
	free(old);
	return true;
}

bool vb_replay_has_room(struct vb_replay *r)
{
	if (r->slots == 0 || !make_ring(r))
		return false;
	return r->held < r->slots || at(r, r->end - r->slots)->due != DUE_NEW;
}

struct vb_answer *vb_replay_add(struct vb_replay *r)
{
	struct vb_answer *a = at(r, r->end);

	/* The oldest entry is dropped. If its answer is due once more, no
	 * requester needs it: one that sends a further request has received the
	 * answer. */
	if (r->held == r->slots)
		forget_oldest(r);
	else
		r->held++;
	*a = (struct vb_answer){ .due = DUE_NEW };
	r->end++;
	return a;
}

struct vb_answer *vb_replay_find(struct vb_replay *r, uint32_t psn)
{
	for (uint32_t i = 1; i <= r->held; i++) {
		struct vb_answer *a = at(r, r->end - i);
		int32_t off = vb_psn_diff(psn, a->psn);

		if (off >= 0)
			return (uint32_t)off < a->count ? a : NULL;
	}
	return NULL;
}

void vb_replay_again(struct vb_replay *r, struct vb_answer *a)
{
	uint32_t slot = (uint32_t)(a - r->ring);
	uint32_t back = (r->end - 1 - slot) & (r->cap - 1);
	uint32_t index = r->end - 1 - back;

	if (a->due == DUE_NOT)
		a->due = DUE_AGAIN;
	a->sent = 0;
	if ((int32_t)(index - r->due) < 0)
		r->due = index;
}

struct vb_answer *vb_replay_due(struct vb_replay *r)
{
	return r->due == r->end ? NULL : at(r, r->due);
}

void vb_replay_done(struct vb_replay *r)
{
	at(r, r->due)->due = DUE_NOT;
	skip_done(r);
}

void vb_replay_cancel(struct vb_replay *r)
{
	while (r->due != r->end)
		vb_replay_done(r);
}
