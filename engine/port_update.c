/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/port_update.h"

#include <string.h>

#include "base/bytes.h"

/* The only GID of an iWARP port is the interface's MAC address (or the device's
 * GUID, if there is none), followed by zeros, as on Linux. Its IP addresses
 * belong to TCP and are no GIDs. */
static struct vb_gid rnic_gid(const struct vb_device_port *d,
			      const struct vb_netif *n)
{
	static const uint8_t none[6];
	struct vb_gid gid = { { 0 } };

	if (n && memcmp(n->mac, none, sizeof(none)) != 0)
		memcpy(gid.raw, n->mac, sizeof(n->mac));
	else
		vb_store_be(gid.raw, d->guid & 0xffffffffffffull, 6);
	return gid;
}

void vb_port_update_gather(const struct vb_device_port *d,
			   const struct vb_netif *n,
			   struct vb_port_update *update)
{
	memset(update, 0, sizeof(*update));
	if (d->kind == DEVICE_IWARP)
		update->only = rnic_gid(d, n);
	update->both_types = d->kind == DEVICE_ROCEV1;
	if (!n)
		return;
	update->ifindex = n->ifindex;
	memcpy(update->mac, n->mac, sizeof(update->mac));
	update->up = n->up;
	update->mtu = n->mtu;
	update->mbits = n->mbits;
	update->count = VB_MIN(n->count, VB_COUNT(update->addresses));
	memcpy(update->addresses, n->addresses,
	       update->count * sizeof(update->addresses[0]));
}
