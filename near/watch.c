/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program sleeps until a peer puts something on a lane
 * (engine/wait.c). A peer can write any value to a bell that it maps, so each
 * lane has a bell of its own, and the thread sleeps on all of them at once. The
 * bell of this program's lane to itself is in private memory; threads of this
 * program ring that one.
 */
#include "near/near_priv.h"

struct vb_bell *vb_near_bell(const struct vb_near *n)
{
	return n->self->bell;
}

/* Take a reference to each peer with a lane. False: there are too many. */
static bool watch_lanes(struct vb_near *n)
{
	bool fit;

	vb_mutex_lock(&n->lanes_lock);
	fit = n->active_count <= VB_COUNT(n->watch.peers);
	for (unsigned i = 0; fit && i < n->active_count; i++)
		n->watch.peers[n->watch.count++] = vb_peer_get(n->active[i]);
	vb_mutex_unlock(&n->lanes_lock);
	return fit;
}

/* The private bell comes first: a lane that is added later than this thread
 * looks rings that bell (come_up() in near/session.c). */
bool vb_near_set_bells(struct vb_near *n)
{
	/* Does the kernel have the call? 1: yes, -1: no, 0: not known yet. */
	static _Atomic int can;

	if (atomic_load(&can) == 0)
		atomic_store(&can, vb_bell_can_wait_any() ? 1 : -1);
	vb_near_clear_bells(n);
	if (atomic_load(&can) < 0)
		return false;
	vb_bell_set(vb_near_bell(n));
	if (!watch_lanes(n))
		return false;
	for (unsigned i = 0; i < n->watch.count; i++) {
		struct vb_peer *p = n->watch.peers[i];

		vb_bell_list(&n->watch.bells[i], p->our_bell);
		if (!p->is_self)
			vb_bell_set(p->our_bell);
	}
	return true;
}

int vb_near_wait(struct vb_near *n)
{
	return vb_bell_wait_any(n->watch.bells, n->watch.count);
}

void vb_near_clear_bells(struct vb_near *n)
{
	vb_bell_clear(vb_near_bell(n));
	while (n->watch.count) {
		struct vb_peer *p = n->watch.peers[--n->watch.count];

		vb_bell_clear(p->our_bell);
		vb_peer_put(p);
	}
}
