/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what a port needs to know of its interface. */
#ifndef ENGINE_PORT_UPDATE_H
#define ENGINE_PORT_UPDATE_H

#include "core/port.h"
#include "engine/devices.h"
#include "link/netif.h"

/* Fill @news with the state of @d's interface @n. @n is NULL when the interface
 * is gone: the port is then down and has no address. */
void vb_port_update_gather(const struct vb_device *d, const struct vb_netif *n,
			   struct vb_port_update *news);

#endif
