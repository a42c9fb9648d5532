/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena devices`: devices, the state of their ports, and GIDs with the index
 * that programs want. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/ports.h"
#include "engine/fabric_places.h"

#define DEVICES_VARIABLE "VERBENA_DEVICES"
#define MTU_BYTES(code)	 (128u << (code))

static const char *const port_states[] = {
	[PORT_DOWN] = "DOWN",
	[PORT_INIT] = "INIT",
	[PORT_ARMED] = "ARMED",
	[PORT_ACTIVE] = "ACTIVE",
};

static int devices_fail(const char *what, int rc)
{
	fprintf(stderr, "verbena devices: cannot list %s: %s\n", what,
		strerror(-rc));
	return EXIT_FAILURE;
}

static const char *state_name(unsigned state)
{
	return state < VB_COUNT(port_states) && port_states[state]
		       ? port_states[state]
		       : "unknown";
}

/* Print the line that says which index to give to programs. */
static void print_advice(const struct vb_cli_port *p)
{
	int best = vb_cli_best_gid(&p->port);

	if (p->device.kind == DEVICE_IWARP)
		printf("\tprograms connect by librdmacm (perftest: -R)\n");
	else if (best >= 0)
		printf("\tgive -g %d to ibv_*_pingpong and ucx, -x %d to "
		       "perftest\n",
		       best, best);
}

static void print_device(const struct vb_cli_port *p)
{
	const struct vb_port *port = &p->port;
	char text[VB_GID_TEXT];

	printf("%s\n\tport %u: %s, link layer Ethernet, %s\n", p->device.name,
	       p->number, state_name(port->state),
	       vb_port_rate(port->mbits)->text);
	printf("\tinterface %s, MTU %u (path MTU %u)\n", p->at.netdev,
	       port->netdev_mtu, MTU_BYTES(port->active_mtu));
	for (unsigned i = 0; i < port->gid_count; i++)
		if (!vb_gid_is_zero(&port->gids[i].gid))
			printf("\tGID %u: %s, %s\n", i,
			       vb_gid_text(&port->gids[i].gid, text),
			       vb_cli_gid_type(&port->gids[i]));
	print_advice(p);
}

/* Print port @port of the node @p, which is port @number of the adapter. */
static void print_place_port(const struct vb_fabric_place *p, unsigned port,
			     unsigned number)
{
	struct vb_umad_info info;
	char text[VB_GID_TEXT];

	if (vb_fabric_query(p, port, &info) || !info.has_port)
		return;
	printf("\tport %u: %s, link layer InfiniBand, %u Gb/sec\n", number,
	       state_name(info.state), info.rate);
	printf("\tLID 0x%x, subnet manager's LID 0x%x\n", info.lid,
	       info.sm_lid);
	for (unsigned i = 0; i < info.guids && i < VB_UMAD_GUIDS; i++) {
		struct vb_gid gid;

		if (!info.guid_table[i])
			continue;
		gid = vb_cli_make_gid(info.gid_prefix, info.guid_table[i]);
		printf("\tGID %u: %s, InfiniBand\n", i,
		       vb_gid_text(&gid, text));
	}
}

static void print_node(const struct vb_fabric_adapter *a)
{
	const struct vb_fabric_place *p = &a->place[0];
	struct vb_umad_info info;
	int rc = vb_fabric_query(p, 0, &info);

	printf("%s\n\tnode %s of fabric \"%s\"%s%s\n", a->name, p->node,
	       p->fabric, rc ? ": " : "", rc ? strerror(-rc) : "");
	if (rc)
		return;
	printf("\tGUID 0x%016jx, %u port%s\n", (uintmax_t)info.guid, info.ports,
	       info.ports == 1 ? "" : "s");
	for (unsigned k = 1; k <= info.ports; k++)
		print_place_port(p, k, k);
}

/* Print those ports of a VPI adapter that are ports of nodes of a fabric.
 * print_device() prints the others. */
static void print_vpi_places(const struct vb_fabric_adapter *a)
{
	for (unsigned i = 0; i < a->ports; i++) {
		const struct vb_fabric_place *p = &a->place[i];

		if (!p->node[0])
			continue;
		printf("%s\n\tport %u of node %s of fabric \"%s\"\n", a->name,
		       p->port, p->node, p->fabric);
		print_place_port(p, p->port, i + 1);
	}
}

/* Print the ports of adapters that are places in fabrics. Returns how many
 * adapters there are. */
static unsigned print_places(void)
{
	const char *specs = getenv(DEVICES_VARIABLE);
	struct vb_fabric_adapter a;
	unsigned count, i;

	for (i = 0; vb_fabric_adapter_nth(specs, i, &a, &count); i++)
		if (a.ports)
			print_vpi_places(&a);
		else
			print_node(&a);
	return i;
}

/* Reads the options, and sets VERBENA_DEVICES to the devices that they name, if
 * they name any. Returns an exit status that is not 0 if that fails. */
static int choose_listed(int argc, char **argv)
{
	char *which = NULL;
	int o, rc = 0;

	while (!rc && (o = vb_cli_next_option("devices", argc, argv)) != -1) {
		if (o == '?')
			rc = EXIT_USAGE;
		else if (!vb_cli_add_device(&which, optarg))
			rc = EXIT_FAILURE;
	}
	if (!rc && which && setenv(DEVICES_VARIABLE, which, 1))
		rc = EXIT_FAILURE;
	free(which);
	return rc;
}

int vb_cli_devices(int argc, char **argv)
{
	struct vb_cli_ports p;
	int rc = choose_listed(argc, argv);

	if (rc)
		return rc;
	if (optind < argc)
		return vb_cli_refuse("devices",
				     "\"%s\" is too much: name a "
				     "device by --device SPEC",
				     argv[optind]);
	rc = vb_cli_ports_list(getenv(DEVICES_VARIABLE), &p);
	if (rc)
		return devices_fail("the devices", rc);
	if (print_places() == 0 && p.count == 0)
		puts("no device: no network interface is up and has an IP "
		     "address");
	for (unsigned i = 0; i < p.count; i++)
		print_device(p.ports[i]);
	vb_cli_ports_free(&p);
	return EXIT_SUCCESS;
}
