/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet over InfiniBand, in a form of Verbena's own: whole Ethernet frames
 * behind a header of 4 bytes. An Ethernet network is a multicast group, whose
 * members exchange frames. The interface learns from which queue pair the
 * frames of a MAC address come, and sends frames for that address there; it
 * sends all other frames to the group.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "ipoib/iface_priv.h"

#define ETH_BYTES 14 /* a frame's two addresses and its type */
/* "EtherType for bridged Ethernet": a whole Ethernet frame follows */
#define TYPE_ETHERNET 0x6558
#define MGID_SCOPE    0x12 /* not permanent, link-local */
#define SIGNATURE     0xe01b
/* The numbers in the table of MAC addresses (vb_mac.at): queue pair in the low
 * 24 bits, LID above them, service level above that. */
#define QPN_MASK  0xffffffu
#define LID_SHIFT 24
#define SL_SHIFT  40

static bool mac_prepare(void *arg, struct vb_mac *m)
{
	const struct vb_ipoib_path path = {
		.dlid = (uint16_t)(m->at >> LID_SHIFT),
		.sl = (uint8_t)(m->at >> SL_SHIFT),
	};
	static const struct vb_gid none;
	struct iface *f = arg;

	m->handle = ipoib_port_aim(&f->port, &path, &none);
	return m->handle;
}

static void mac_release(void *arg, struct vb_mac *m)
{
	struct iface *f = arg;

	ipoib_port_forget(&f->port, m->handle);
}

static const struct vb_mac_ops mac_ops = {
	.prepare = mac_prepare,
	.release = mac_release,
};

/* Returns the GID of the network's group, which has the P_Key and the network's
 * number. */
static struct vb_gid eth_mgid(const struct iface *f)
{
	struct vb_gid mgid = { { 0xff, MGID_SCOPE } };

	vb_store_be(mgid.raw + 2, SIGNATURE, 2);
	vb_store_be(mgid.raw + 4, f->pkey, 2);
	vb_store_be(mgid.raw + 14, (unsigned)f->network, 2);
	return mgid;
}

static void eth_enter(struct iface *f)
{
	struct vb_gid mgid = eth_mgid(f);

	vb_groups_enter(f->groups, &mgid, f->now);
}

static void eth_send(struct iface *f, uint8_t *frame, size_t len)
{
	const uint8_t *to = frame + VB_IPOIB_HEADER;
	struct vb_gid mgid = eth_mgid(f);
	const struct vb_mac *m;

	if (!f->groups || len < VB_IPOIB_HEADER + ETH_BYTES || len > f->longest)
		return;
	vb_store_be(frame, (uint32_t)TYPE_ETHERNET << 16, VB_IPOIB_HEADER);
	m = vb_macs_find(f->macs, to, f->now);
	if (m)
		ipoib_port_send(&f->port, m->handle, m->at & QPN_MASK, frame,
				len);
	else
		vb_groups_send(f->groups, &mgid, frame, len, f->now);
}

static void eth_take(struct iface *f, const struct ibv_wc *wc, unsigned type,
		     const uint8_t *frame, size_t len)
{
	uint64_t from = wc->src_qp & QPN_MASK;

	if (type != TYPE_ETHERNET || len < ETH_BYTES)
		return;
	from |= (uint64_t)wc->slid << LID_SHIFT;
	from |= (uint64_t)wc->sl << SL_SHIFT;
	vb_macs_learn(f->macs, frame + 6, from, f->now);
	iface_to_host(f, frame, len);
}

/* The interface's MAC address consists of the last 40 bits of the port's GUID,
 * and of a first byte whose bit says: locally administered (IEEE 802, 8.2). */
void iface_eth_mac(const struct iface *f, uint8_t mac[6])
{
	mac[0] = 0x02;
	memcpy(mac + 1, f->port.gid.raw + 11, 5);
}

/* There is no socket for programs' questions about neighbours (ipoib/lookup.h):
 * on an Ethernet the kernel resolves addresses. */
static int eth_open(struct iface *f, const char *name, uint64_t seed,
		    const char **what)
{
	int rc;

	*what = "the network interface";
	rc = tun_open(&f->tun, name, true);
	if (rc)
		return rc;
	*what = "memory";
	f->macs = vb_macs_create(&mac_ops, f, seed);
	return f->macs ? 0 : -ENOMEM;
}

/* The Ethernet header and a VLAN tag take 18 bytes of IPoIB's MTU. */
static int eth_bring_up(struct iface *f, unsigned mtu)
{
	return iface_bring_up(f, mtu - ETH_BYTES - 4);
}

static void eth_moved(struct iface *f)
{
	vb_macs_forget(f->macs);
}

/* Does nothing: an Ethernet interface does not look for IP neighbours. */
static void eth_told(struct iface *f, const struct vb_gid *ip,
		     const struct vb_ipoib_hw *hw)
{
}

const struct iface_kind iface_eth = {
	.open = eth_open,
	.send = eth_send,
	.take = eth_take,
	.bring_up = eth_bring_up,
	.enter = eth_enter,
	.moved = eth_moved,
	.told = eth_told,
	.hears_no_broadcast = true,
};
