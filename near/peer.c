/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys peers, and wakes them. */
#include "near/peer.h"

#include <stdlib.h>

#include "base/apart.h"
#include "base/log.h"
#include "base/shm.h"

struct vb_peer *vb_peer_create(unsigned slot, const struct vb_near_world *world,
			       struct vb_copy_helper *helper)
{
	struct vb_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->slot = slot;
	p->world = world;
	p->helper = helper;
	p->session = p->wake_fd = -1;
	atomic_store(&p->refs, 1);
	vb_mutex_init(&p->tx, VB_RANK_LEAF);
	vb_mutex_init(&p->ears, VB_RANK_LEAF);
	return p;
}

void vb_peer_join(struct vb_peer *p, struct vb_lane *lane, unsigned end)
{
	unsigned other = p->is_self ? end : !end;

	p->lane = lane;
	p->ours.hazards = lane->half[end].hazards;
	p->peer_hazards = lane->half[other].hazards;
	p->writer = (struct vb_ring_writer){ .ring = &lane->half[end].ring };
	p->reader = (struct vb_ring_reader){ .ring = &lane->half[other].ring };
	p->our_calls = &lane->half[end].calls;
	p->their_calls = &lane->half[other].calls;
	p->bell = &lane->half[other].bell;
	p->our_bell = &lane->half[end].bell;
	p->our_expels = &lane->half[end].expels;
	p->their_expels = &lane->half[other].expels;
	p->offered = &lane->half[other].offer;
	p->split = (struct vb_split_copy){ .offer = &lane->half[end].offer,
					   .world = p->world };
}

struct vb_peer *vb_peer_get(struct vb_peer *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void vb_peer_put(struct vb_peer *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	if (p->lane)
		vb_shm_unmap(p->lane, sizeof(*p->lane));
	if (p->registry && !p->is_self)
		vb_registry_unmap(p->registry);
	if (p->session >= 0)
		vb_apart_hang_up(p->session);
	vb_mutex_fini(&p->tx);
	vb_mutex_fini(&p->ears);
	free(p);
}

void vb_peer_ring(struct vb_peer *p)
{
	if (atomic_load_explicit(&p->owed, memory_order_relaxed))
		atomic_store_explicit(&p->owed, false, memory_order_relaxed);
	/* A peer sets "asleep" and then reads the lane; this program writes to
	 * the lane and then reads "asleep". So either the peer sees the
	 * message, or this program sees "asleep". The bell, which is for a
	 * thread of the peer's program, does not decide whether the peer's
	 * engine thread is woken. */
	(void)vb_bell_ring(p->bell);
	if (atomic_load_explicit(&p->registry->asleep, memory_order_relaxed))
		p->world->wake(p->world->arg, p);
}

/* Sequentially consistent: the caller looks at the hazards afterwards. The peer
 * looks at this word after it has announced a key, and again after its copy. */
void vb_peer_disown(struct vb_peer *p)
{
	if (p->our_expels && !p->is_self)
		atomic_store(p->our_expels, 1);
}

void vb_peer_expel(struct vb_peer *p, const char *cause)
{
	vb_peer_disown(p);
	if (atomic_exchange(&p->expelled, true))
		return;
	vb_log(LOG_WARN,
	       "near: slot %u: process %d %s: the session ends, using packets",
	       p->slot, p->pid, cause);
	p->world->hang_up(p->world->arg, p);
}

bool vb_peer_is_honest(struct vb_peer *p)
{
	bool intact;

	vb_mutex_lock(&p->tx);
	intact = vb_ring_is_intact(&p->writer);
	vb_mutex_unlock(&p->tx);
	if (!intact)
		vb_peer_expel(p, "changed what this program wrote to the lane");
	return intact;
}

void vb_peer_call(struct vb_peer *p)
{
	atomic_store(p->our_calls, 1);
	p->world->wake(p->world->arg, p);
}
