/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports with an interface of the devices that a program would see, for
 * `verbena devices` and `verbena doctor`. */
#ifndef CLI_PORTS_H
#define CLI_PORTS_H

#include "engine/port_update.h"

struct vb_cli_port {
	struct vb_device device;
	unsigned number; /* number of the port at the device, from 1 */
	struct vb_device_port at;
	struct vb_port port; /* the port as a program would see it */
	bool is_loopback;
};

struct vb_cli_ports {
	struct vb_cli_port **ports;
	unsigned count;
};

/* List the ports with an interface of the devices of @specs (see
 * vb_devices_list()), those of a device one after the other. The caller ends it with vb_cli_ports_free(). 0 or -errno. */
VB_MUST_CHECK int vb_cli_ports_list(const char *specs, struct vb_cli_ports *p);
void vb_cli_ports_free(struct vb_cli_ports *p);

/* Returns the index of the GID that a user most likely wants: that of the first
 * IPv4 address, or of the first IPv6 one, or 0. RoCEv2's, where there are
 * both. -1: the port has no GID. */
int vb_cli_best_gid(const struct vb_port *p);
/* Returns the index of RoCEv2's GID of the address @gid; -1: there is none. */
int vb_cli_gid_index(const struct vb_port *p, const struct vb_gid *gid);
/* Writes the IP address of a GID as people write it: IPv4 without ::ffff:.
 * Returns @text. */
const char *vb_cli_address_text(const struct vb_gid *gid,
				char text[VB_GID_TEXT]);
/* The GID of an InfiniBand port: its subnet's prefix and a GUID. */
struct vb_gid vb_cli_make_gid(uint64_t prefix, uint64_t guid);
const char *vb_cli_gid_type(const struct vb_gid_entry *e);

#endif
