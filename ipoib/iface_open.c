/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes an IPoIB interface, and brings it up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "ipoib/iface_priv.h"

static void tell_own(void *arg, struct vb_ipoib *m)
{
	struct iface *f = arg;

	*m = (struct vb_ipoib){ .op = IPOIB_OWN,
				.version = VB_IPOIB_VERSION,
				.port = PORT_NUMBER,
				.pkey = f->pkey,
				.error = f->mtu ? 0 : -ENETDOWN,
				.mtu = f->mtu,
				.qpn = f->port.qp->qp_num,
				.qkey = f->port.qkey,
				.guid = f->port.guid,
				.gid = f->port.gid };
}

/* Find out the link-layer address of @ip. If @ip is an address of this
 * interface itself, the result is the link-layer address of its own port. */
static void want_neighbour(void *arg, const struct vb_gid *ip)
{
	struct iface *f = arg;
	const struct vb_ipoib_hw own = { .qpn = f->port.qp->qp_num,
					 .gid = f->port.gid };

	if (vb_ip_nets_have(&f->tun.nets, ip))
		lookup_told(&f->lookup, ip, &own);
	else if (!f->mtu || vb_gid_is_multicast(ip))
		lookup_told(&f->lookup, ip, NULL);
	else
		vb_nbrs_want(f->nbrs, ip, f->now);
}

int iface_ip_open(struct iface *f, const char *name, uint64_t seed,
		  const char **what)
{
	int rc;

	*what = "the network interface";
	rc = tun_open(&f->tun, name, false);
	if (rc)
		return rc;
	*what = "the socket for questions about neighbours";
	return lookup_open(&f->lookup, f->tun.name);
}

int iface_open(struct iface *f, const char *name, const char **what)
{
	uint64_t seed = (uint64_t)vb_rand32() << 32 | vb_rand32();
	int rc;

	f->lookup = (struct lookup){ .listener = -1,
				     .own = tell_own,
				     .want = want_neighbour,
				     .arg = f };
	f->tun = (struct tun){ .fd = -1, .netlink = -1 };
	f->shared = ipoib_share_open(getenv("VERBENA_DEVICES"));
	f->news = true;
	*what = "memory";
	f->nbrs = vb_nbrs_create(&iface_nbr_ops, f, seed);
	if (!f->nbrs)
		return -ENOMEM;
	rc = f->kind->open(f, name, seed, what);
	if (rc)
		return rc;
	rc = ipoib_port_open(&f->port, what);
	if (rc)
		return rc;
	*what = "reliable connections";
	rc = f->connected ? ipoib_cm_open(&f->cm, &f->port) : 0;
	if (rc)
		return rc;
	*what = "the socket for questions about routes";
	return route_open(&f->routes, f->tun.name, seed);
}

void iface_close(struct iface *f)
{
	if (f->gw)
		vb_gw_destroy(f->gw);
	if (f->nbrs)
		vb_nbrs_destroy(f->nbrs);
	if (f->macs)
		vb_macs_destroy(f->macs);
	if (f->groups)
		vb_groups_destroy(f->groups);
	if (f->shared >= 0)
		close(f->shared);
	ipoib_cm_close(&f->cm);
	lookup_close(&f->lookup);
	route_close(&f->routes);
	if (f->port.memory || f->port.context)
		ipoib_port_close(&f->port);
	tun_close(&f->tun);
}

/* The link-local address of RFC 4391, 8: the port's GUID with the bit that says
 * that it is unique (RFC 4291, appendix A). */
struct vb_ip_net iface_link_local(const struct iface *f)
{
	struct vb_ip_net a = { .ip = { { 0xfe, 0x80 } }, .prefix = 64 };

	memcpy(a.ip.raw + 8, f->port.gid.raw + 8, 8);
	a.ip.raw[8] |= 0x02;
	return a;
}

static int add_addresses(struct iface *f)
{
	struct vb_ip_net local = iface_link_local(f);

	/* Adding this address fails on a host without IPv6, which does not
	 * matter. An Ethernet interface gets a link-local address from the
	 * kernel. */
	if (!f->macs)
		(void)tun_add_address(&f->tun, &local);
	for (unsigned i = 0; i < f->wanted_count; i++) {
		int rc = tun_add_address(&f->tun, &f->wanted[i]);

		if (rc && rc != -EEXIST)
			return rc;
	}
	return 0;
}

int iface_bring_up(struct iface *f, unsigned mtu)
{
	bool first = !f->mtu;
	uint8_t mac[6];
	int rc = 0;

	iface_eth_mac(f, mac);
	if (mtu != f->mtu)
		rc = tun_up(&f->tun, mtu, first && f->macs ? mac : NULL);
	if (rc) {
		f->failure = "the interface cannot be brought up";
		return rc;
	}
	f->mtu = mtu;
	rc = first ? add_addresses(f) : 0;
	if (rc) {
		f->failure = "the kernel refuses an address";
		return rc;
	}
	tun_carrier(&f->tun, true);
	tun_refresh(&f->tun);
	return 0;
}
