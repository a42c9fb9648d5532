/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the state of the interface that a port needs. */
#ifndef ENGINE_PORT_UPDATE_H
#define ENGINE_PORT_UPDATE_H

#include "core/port.h"
#include "engine/devices.h"
#include "link/netif.h"

/* Fill @update with the state of @n, the interface of the port @d. @n is NULL
 * when the interface does not exist: the port is then down and has no address.
 */
void vb_port_update_gather(const struct vb_device_port *d,
			   const struct vb_netif *n,
			   struct vb_port_update *update);

#endif
