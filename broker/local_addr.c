/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the addresses of this host. It asks the kernel's routes first
 * (vb_udp_owns()), and not bind(), which accepts every address if
 * net.ipv4.ip_nonlocal_bind is set. Three kinds of address that a program can
 * have are not in the routes, so they are searched among the interfaces: GID 0,
 * made from the MAC, which AF_IB uses and which may be no address of the
 * interface; a link-local address without its interface; and addresses of
 * another routing table (VRF).
 */
#include "broker/local_addr.h"

#include "link/udp.h"

static bool is_any(const struct vb_gid *gid)
{
	static const struct vb_gid any4 = { { [10] = 0xff, [11] = 0xff } };

	return vb_gid_is_zero(gid) || vb_gid_equal(gid, &any4);
}

static void forget(struct vb_local_addrs *p)
{
	if (p->list)
		vb_netif_free(p->list, p->count);
	p->list = NULL;
	p->count = 0;
	p->listed = false;
	p->known = (struct vb_gid){ { 0 } };
}

void vb_local_addrs_fini(struct vb_local_addrs *p)
{
	forget(p);
	if (p->watch)
		vb_netif_watch_close(p->watch);
	p->watch = NULL;
}

/* Drops the stored addresses and interfaces if addresses of the host have
 * changed, and only then: listing a thousand interfaces at each of a thousand
 * binds would take too long. */
static void notice_changes(struct vb_local_addrs *p)
{
	bool first = !p->watch;

	if (first && vb_netif_watch_open(&p->watch))
		/* netlink is denied, so changes are not reported */
		p->watch = NULL;
	if (first || vb_netif_watch_drain(p->watch))
		forget(p);
}

static bool is_routed_here(struct vb_local_addrs *p, const struct vb_gid *gid,
			   uint32_t ifindex)
{
	if (vb_gid_equal(&p->known, gid) && p->known_ifindex == ifindex)
		return true;
	if (!vb_udp_owns(gid, ifindex))
		return false;
	p->known = *gid;
	p->known_ifindex = ifindex;
	return true;
}

static bool local_addr_has_address(const struct vb_netif *i,
				   const struct vb_gid *gid)
{
	const struct vb_gid first = vb_gid_from_mac(i->mac);

	for (unsigned k = 0; k < i->count; k++)
		if (vb_gid_equal(&i->addresses[k], gid))
			return true;
	return vb_gid_equal(&first, gid);
}

bool vb_local_addrs_has(struct vb_local_addrs *p, const struct vb_gid *gid,
			uint32_t ifindex)
{
	if (is_any(gid))
		return true;
	notice_changes(p);
	if (is_routed_here(p, gid, ifindex))
		return true;
	if (!p->listed)
		p->listed = vb_netif_list(&p->list, &p->count) == 0;
	for (unsigned i = 0; i < p->count; i++)
		if (local_addr_has_address(&p->list[i], gid))
			return true;
	return false;
}
