/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port is told of its interface. */
#ifndef ENGINE_PORT_UPDATE_H
#define ENGINE_PORT_UPDATE_H

#include "core/port.h"
#include "engine/devices.h"
#include "link/netif.h"

/* Of @d's interface. @n: NULL for one that is gone, which is down and has no
 * address. */
void vb_port_update_gather(const struct vb_device *d, const struct vb_netif *n,
			   struct vb_port_update *news);

#endif
