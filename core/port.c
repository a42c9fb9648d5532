/* SPDX-License-Identifier: BSD-2-Clause */
/* A port: its GID table, state and MTU, which follow the network interface. */
#include "core/port.h"

#include <string.h>

/* Headers of the largest kind, bytes: IPv6 40, UDP 8, BTH 12, RETH or atomic
 * header 28, immediate data 4, ICRC 4. */
#define HEADER_BYTES 96

// clang-format off
static const struct vb_port_rate rates[] = {
	{ 1000,       1, 1,  "2.5 Gb/sec (1X SDR)" },
	{ 10000,      1, 8,  "10 Gb/sec (1X FDR10)" },
	{ 20000,      2, 2,  "20 Gb/sec (4X DDR)" },
	{ 25000,      1, 32, "25 Gb/sec (1X EDR)" },
	{ 40000,      2, 8,  "40 Gb/sec (4X FDR10)" },
	{ UINT32_MAX, 2, 32, "100 Gb/sec (4X EDR)" },
};
// clang-format on

const struct vb_port_rate *vb_port_rate(uint32_t mbits)
{
	const struct vb_port_rate *r = rates;

	while (mbits > r->up_to_mbits)
		r++;
	return r;
}

uint8_t vb_mtu_for_netdev(uint32_t netdev_mtu)
{
	uint8_t code = 5;

	while (code > 1 && vb_mtu_bytes(code) + HEADER_BYTES > netdev_mtu)
		code--;
	return code;
}

void vb_port_init(struct vb_port *p)
{
	memset(p, 0, sizeof(*p));
	p->number = 1;
	vb_mutex_init(&p->lock, VB_RANK_LEAF);
	p->state = PORT_DOWN;
	p->max_mtu = 5;
	p->active_mtu = vb_mtu_for_netdev(0);
	atomic_init(&p->pkeys[0], VB_PKEY_ALL);
	atomic_init(&p->pkey_count, 1);
}

void vb_port_fini(struct vb_port *p)
{
	vb_mutex_fini(&p->lock);
}

static int core_find(const struct vb_port *p, const struct vb_gid *gid,
		     enum vb_gid_type type)
{
	for (unsigned i = 0; i < p->gid_count; i++)
		if (p->gids[i].type == type &&
		    vb_gid_equal(&p->gids[i].gid, gid))
			return (int)i;
	return -1;
}

static bool is_listed(const struct vb_port_update *update, unsigned count,
		      const struct vb_gid *gid)
{
	for (unsigned i = 0; i < count; i++)
		if (vb_gid_equal(&update->addresses[i], gid))
			return true;
	return false;
}

static bool core_put_gid(struct vb_port *p, unsigned index,
			 const struct vb_gid *gid, enum vb_gid_type type)
{
	struct vb_gid_entry *e = &p->gids[index];

	if (vb_gid_equal(&e->gid, gid) && e->ifindex == p->ifindex)
		return false;
	*e = (struct vb_gid_entry){ *gid, p->ifindex, type };
	p->gid_count = VB_MAX(p->gid_count, index + 1);
	return true;
}

/* Returns the number of GID table entries that each address gets. */
static unsigned entries_each(const struct vb_port_update *update)
{
	return update->both_types ? 2 : 1;
}

/* Write the one or two GID table entries of the address @gid, from @index on.
 * Returns whether the table has changed. */
static bool put_gids_of(struct vb_port *p, const struct vb_port_update *update,
			unsigned index, const struct vb_gid *gid)
{
	bool changed = false;

	if (update->both_types)
		changed = core_put_gid(p, index++, gid, GID_ROCE_V1);
	return core_put_gid(p, index, gid, GID_ROCE_V2) || changed;
}

static bool put_default_gid(struct vb_port *p,
			    const struct vb_port_update *update)
{
	struct vb_gid gid = vb_gid_from_mac(p->mac);

	return put_gids_of(p, update, 0, &gid);
}

static bool drop_gone(struct vb_port *p, const struct vb_port_update *update,
		      unsigned count)
{
	unsigned first = entries_each(update);
	bool changed = false;

	for (unsigned i = first; i < p->gid_count; i++) {
		struct vb_gid_entry *e = &p->gids[i];

		if (vb_gid_is_zero(&e->gid))
			continue;
		if (is_listed(update, count, &e->gid)) {
			changed |= e->ifindex != p->ifindex;
			e->ifindex = p->ifindex;
			continue;
		}
		memset(e, 0, sizeof(*e));
		changed = true;
	}
	while (p->gid_count > first &&
	       vb_gid_is_zero(&p->gids[p->gid_count - 1].gid))
		p->gid_count--;
	return changed;
}

/* Add an address at the lowest unused index. The table has room for every
 * address that an update can hold, but for half of them when each has two
 * entries. */
static bool enter_address(struct vb_port *p,
			  const struct vb_port_update *update,
			  const struct vb_gid *gid)
{
	unsigned step = entries_each(update), hole = step;

	if (vb_gid_is_zero(gid) || core_find(p, gid, GID_ROCE_V2) >= 0)
		return false;
	while (hole < VB_MAX_GIDS && !vb_gid_is_zero(&p->gids[hole].gid))
		hole += step;
	return hole < VB_MAX_GIDS && put_gids_of(p, update, hole, gid);
}

static bool update_gids(struct vb_port *p, const struct vb_port_update *update)
{
	unsigned count = VB_MIN(update->count, VB_COUNT(update->addresses));
	bool changed;

	if (!vb_gid_is_zero(&update->only))
		return core_put_gid(p, 0, &update->only, GID_IB);
	changed = put_default_gid(p, update);
	changed |= drop_gone(p, update, count);
	for (unsigned i = 0; i < count; i++)
		changed |= enter_address(p, update, &update->addresses[i]);
	return changed;
}

static unsigned update_state(struct vb_port *p, bool up)
{
	enum vb_port_state state = up ? PORT_ACTIVE : PORT_DOWN;

	if (p->state == state)
		return PORT_SAME;
	p->state = state;
	return up ? PORT_UP : PORT_WENT_DOWN;
}

/* Copy what @update reports of the port's interface, which may have been
 * deleted and created again. Returns bits of enum vb_port_change. */
static unsigned update_interface(struct vb_port *p,
				 const struct vb_port_update *update)
{
	bool gone =
		p->present && p->ifindex != update->ifindex && !update->stays;

	p->present = update->ifindex || (p->present && update->stays);
	if (update->ifindex) {
		p->ifindex = update->ifindex;
		memcpy(p->mac, update->mac, sizeof(p->mac));
	}
	return gone ? PORT_GONE : PORT_SAME;
}

unsigned vb_port_update(struct vb_port *p, const struct vb_port_update *update)
{
	unsigned change;

	vb_mutex_lock(&p->lock);
	change = update_interface(p, update);
	change |= update_state(p, update->up);
	if (update_gids(p, update))
		change |= PORT_GIDS;
	if (p->netdev_mtu != update->mtu)
		change |= PORT_MTU;
	p->netdev_mtu = update->mtu;
	p->active_mtu = vb_mtu_for_netdev(update->mtu);
	p->mbits = update->mbits;
	vb_mutex_unlock(&p->lock);
	return change;
}

bool vb_port_gid(struct vb_port *p, unsigned index, struct vb_gid_entry *out)
{
	bool found;

	if (index >= VB_MAX_GIDS)
		return false;
	vb_mutex_lock(&p->lock);
	found = !vb_gid_is_zero(&p->gids[index].gid);
	if (found)
		*out = p->gids[index];
	vb_mutex_unlock(&p->lock);
	return found;
}

int vb_port_find_gid(struct vb_port *p, const struct vb_gid *gid,
		     enum vb_gid_type type)
{
	int index;

	if (vb_gid_is_zero(gid))
		return -1;
	vb_mutex_lock(&p->lock);
	index = core_find(p, gid, type);
	vb_mutex_unlock(&p->lock);
	return index;
}
