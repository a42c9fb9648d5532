/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet ports of VPI adapters. As in rdma-core's library, the values
 * come from files in /sys, for which Verbena has a tree of its own. No MAD
 * leaves by such a port.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "front/umad/umad.h"

#define CLASS "/sys/class/infiniband"

/* Read the first line of the port's file @file. False: there is none. */
static bool read_line(const char *ca, unsigned number, const char *file,
		      char *text, int room)
{
	char path[160];
	FILE *f;
	bool read;

	snprintf(path, sizeof(path), CLASS "/%s/ports/%u/%s", ca, number, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	read = fgets(text, room, f);
	fclose(f);
	return read;
}

static unsigned read_number(const char *ca, unsigned number, const char *file)
{
	char text[64] = "";

	(void)read_line(ca, number, file, text, sizeof(text));
	return (unsigned)strtoul(text, NULL, 0);
}

/* Read GID 0 into the port's prefix and GUID. */
static void read_gid(const char *ca, umad_port_t *port)
{
	unsigned short w[8] = { 0 };
	uint64_t half[2] = { 0 };
	char text[64] = "";

	(void)read_line(ca, (unsigned)port->portnum, "gids/0", text,
			sizeof(text));
	if (sscanf(text, "%4hx:%4hx:%4hx:%4hx:%4hx:%4hx:%4hx:%4hx", &w[0],
		   &w[1], &w[2], &w[3], &w[4], &w[5], &w[6], &w[7]) != 8)
		return;
	for (unsigned i = 0; i < 8; i++)
		half[i / 4] = half[i / 4] << 16 | w[i];
	port->gid_prefix = htobe64(half[0]);
	port->port_guid = htobe64(half[1]);
}

int umad_ethernet_port(const char *ca, unsigned number, umad_port_t *port)
{
	char layer[sizeof(port->link_layer)] = "";

	memset(port, 0, sizeof(*port));
	if (!read_line(ca, number, "link_layer", layer, sizeof(layer)) ||
	    strcmp(layer, "Ethernet\n") != 0)
		return -ENODEV;
	port->pkeys = calloc(1, sizeof(*port->pkeys));
	if (!port->pkeys)
		return -ENOMEM;
	port->pkeys[0] = (uint16_t)read_number(ca, number, "pkeys/0");
	port->pkeys_size = 1;
	snprintf(port->ca_name, sizeof(port->ca_name), "%s", ca);
	snprintf(port->link_layer, sizeof(port->link_layer), "Ethernet");
	port->portnum = (int)number;
	port->state = read_number(ca, number, "state");
	port->phys_state = read_number(ca, number, "phys_state");
	port->rate = read_number(ca, number, "rate");
	port->capmask = htobe32(read_number(ca, number, "cap_mask"));
	read_gid(ca, port);
	return 0;
}
