/* SPDX-License-Identifier: BSD-2-Clause */
/* An InfiniBand port: what the subnet manager has set, as the fabric's process
 * reports it. */
#include <string.h>

#include "core/port.h"
#include "core/why.h"

#define PHYS_DISABLED 3 /* PortPhysicalState (IBA 14.2.5.6) */

static unsigned note_state(struct vb_port *p, enum vb_port_state state)
{
	bool was = p->state == PORT_ACTIVE, is = state == PORT_ACTIVE;

	p->state = state;
	if (was == is)
		return PORT_SAME;
	return is ? PORT_UP : PORT_WENT_DOWN;
}

static unsigned take_gids(struct vb_port *p,
			  const struct vb_port_ib_update *update)
{
	unsigned count = VB_MIN(update->gids, VB_MAX_GIDS);
	bool changed = count != p->gid_count;

	for (unsigned i = 0; i < count; i++) {
		changed |= !vb_gid_equal(&p->gids[i].gid, &update->gid[i]);
		p->gids[i] = (struct vb_gid_entry){ .gid = update->gid[i] };
	}
	for (unsigned i = count; i < p->gid_count; i++)
		p->gids[i] = (struct vb_gid_entry){ .ifindex = 0 };
	p->gid_count = count;
	return changed ? PORT_GIDS : PORT_SAME;
}

static unsigned take_pkeys(struct vb_port *p,
			   const struct vb_port_ib_update *update)
{
	unsigned count = VB_MIN(update->pkeys, VB_MAX_PKEYS);
	bool changed = count != atomic_load(&p->pkey_count);

	for (unsigned i = 0; i < VB_MAX_PKEYS; i++) {
		uint16_t pkey = i < count ? update->pkey[i] : 0;

		changed |= atomic_exchange(&p->pkeys[i], pkey) != pkey;
	}
	atomic_store(&p->pkey_count, (uint16_t)count);
	return changed ? PORT_PKEYS : PORT_SAME;
}

static unsigned compare_ports(const struct vb_port_ib *was,
			      const struct vb_port_ib *is)
{
	unsigned change = PORT_SAME;

	if (was->lid != is->lid || was->lmc != is->lmc)
		change |= PORT_LID;
	if (was->sm_lid != is->sm_lid || was->sm_sl != is->sm_sl)
		change |= PORT_SM;
	if (was->reregisters != is->reregisters)
		change |= PORT_REREGISTER;
	return change;
}

unsigned vb_port_ib_update(struct vb_port *p,
			   const struct vb_port_ib_update *update)
{
	unsigned change;
	bool first;

	vb_mutex_lock(&p->lock);
	first = !p->ib.present;
	change = compare_ports(&p->ib, &update->ib);
	p->ib = update->ib;
	atomic_store(&p->lmc, update->ib.lmc);
	change |= note_state(p, update->state) | take_gids(p, update) |
		  take_pkeys(p, update);
	if (p->active_mtu != update->active_mtu)
		change |= PORT_MTU;
	p->active_mtu = update->active_mtu;
	p->max_mtu = update->max_mtu;
	vb_mutex_unlock(&p->lock);
	return first ? PORT_SAME : change;
}

bool vb_port_is_active(struct vb_port *p)
{
	bool active;

	vb_mutex_lock(&p->lock);
	active = p->state == PORT_ACTIVE;
	vb_mutex_unlock(&p->lock);
	return active;
}

unsigned vb_port_ib_end(struct vb_port *p)
{
	unsigned change;

	vb_mutex_lock(&p->lock);
	p->ib.phys = PHYS_DISABLED;
	/* No log message need tell that the port is down: the caller logs that
	 * the fabric has ended. */
	atomic_fetch_or(&p->known, 1u << PORT_DOWN);
	change = note_state(p, PORT_DOWN);
	vb_mutex_unlock(&p->lock);
	return change | PORT_GONE;
}

static const char *const phys_names[] = {
	[1] = "sleeps",	     [2] = "polls for a peer",
	[3] = "is disabled", [4] = "trains",
	[5] = "is up",	     [6] = "recovers from errors",
	[7] = "is tested",
};

void vb_port_ib_tell(struct vb_port *p, const char *name)
{
	enum vb_port_state state;
	const char *link;
	bool is_ib;

	vb_mutex_lock(&p->lock);
	is_ib = p->ib.present;
	state = p->state;
	link = p->ib.phys < VB_COUNT(phys_names) ? phys_names[p->ib.phys]
						 : NULL;
	vb_mutex_unlock(&p->lock);
	if (!is_ib || state == PORT_ACTIVE ||
	    atomic_fetch_or(&p->known, 1u << state) & 1u << state)
		return;
	if (state == PORT_DOWN)
		vb_why(WHY_PORT_DOWN, (uintptr_t)p,
		       "%s, port %u: DOWN: its link %s, and carries no data",
		       name, p->number, link ? link : "is down");
	else
		vb_why(WHY_NO_SM, (uintptr_t)p,
		       "%s, port %u: %s: no subnet manager has configured it, "
		       "and it carries no data",
		       name, p->number, state == PORT_ARMED ? "ARMED" : "INIT");
}
