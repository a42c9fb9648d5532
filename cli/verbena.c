/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command: the table of its subcommands, and the short
 * subcommands. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "engine/devices.h"
#include "engine/fabric_places.h"
#include "engine/lease.h"
#include "link/netif.h"

/* The environment variable that chooses devices, for programs and this command.
 */
#define DEVICES_VARIABLE "VERBENA_DEVICES"

static int cli_fail(const char *command, const char *what, int rc)
{
	fprintf(stderr, "verbena %s: %s: %s\n", command, what, strerror(-rc));
	return EXIT_FAILURE;
}

static int show_status(int argc, char **argv)
{
	struct vb_ipc report;
	int rc = vb_lease_status(&report);

	if (rc == -ECONNREFUSED) {
		puts("no broker is running in this network namespace; the "
		     "first program with a RoCE device starts one");
		return EXIT_SUCCESS;
	}
	if (rc)
		return cli_fail("status", "cannot ask the broker", rc);
	printf("broker (PID %u): %u program%s with RoCE devices (%s)\n",
	       report.pid, report.programs, report.programs == 1 ? "" : "s",
	       report.text);
	return EXIT_SUCCESS;
}

static void print_port(const struct vb_device_port *d,
		       const struct vb_netif *list, unsigned count)
{
	char text[VB_GID_TEXT];

	if (d->kind == DEVICE_IB)
		printf("\tport %u of node %s of fabric \"%s\"\n", d->place.port,
		       d->place.node, d->place.fabric);
	for (unsigned i = 0; d->kind != DEVICE_IB && i < count; i++) {
		if (list[i].ifindex != d->ifindex)
			continue;
		printf("\tinterface %s, MTU %u\n", list[i].name, list[i].mtu);
		for (unsigned k = 0; k < list[i].count; k++)
			printf("\t%s\n",
			       vb_gid_text(&list[i].addresses[k], text));
	}
}

/* show_places() prints nodes of fabrics. */
static void print_device(const struct vb_device *d, const struct vb_netif *list,
			 unsigned count)
{
	if (d->kind == DEVICE_IB)
		return;
	printf("%s\n", d->name);
	for (unsigned i = 0; i < d->port_count; i++)
		print_port(&d->port[i], list, count);
}

/* Read the options --device. *@which: the specs, or NULL for all devices. */
static bool choose(int argc, char **argv, char **which)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "d:", options, NULL)) != -1)
		if (o != 'd' || !vb_cli_add_device(which, optarg))
			return false;
	return optind == argc;
}

/* Print the adapters that are nodes of fabrics. Returns how many there are. */
static unsigned show_places(void)
{
	const char *specs = getenv(DEVICES_VARIABLE);
	struct vb_fabric_adapter a;
	struct vb_umad_info info;
	unsigned count, i, shown = 0;

	for (i = 0; vb_fabric_adapter_nth(specs, i, &a, &count); i++) {
		const struct vb_fabric_place *p = &a.place[0];
		int rc;

		if (a.ports) /* print_device() shows it */
			continue;
		shown++;
		rc = vb_fabric_query(p, 0, &info);
		printf("%s\n\tnode %s of fabric \"%s\"%s%s\n", a.name, p->node,
		       p->fabric, rc ? ": " : "", rc ? strerror(-rc) : "");
		if (!rc)
			printf("\tGUID 0x%016jx, %u port%s\n",
			       (uintmax_t)info.guid, info.ports,
			       info.ports == 1 ? "" : "s");
	}
	return shown;
}

static int show_devices(int argc, char **argv)
{
	struct vb_device *devices;
	struct vb_netif *list;
	unsigned count, links;
	char *which = NULL;
	int rc;

	if (!choose(argc, argv, &which)) {
		fprintf(stderr, "usage: verbena devices [--device SPEC]...\n");
		free(which);
		return EXIT_USAGE;
	}
	if (which && setenv(DEVICES_VARIABLE, which, 1))
		return cli_fail("devices", "cannot list the devices", -errno);
	free(which);
	rc = vb_devices_list(getenv(DEVICES_VARIABLE), &devices, &count);
	if (rc)
		return cli_fail("devices", "cannot list the devices", rc);
	rc = vb_netif_list(&list, &links);
	if (rc) {
		free(devices);
		return cli_fail("devices", "cannot list the network interfaces",
				rc);
	}
	if (show_places() == 0 && count == 0)
		puts("no device: no network interface is up and has an IP "
		     "address");
	for (unsigned i = 0; i < count; i++)
		print_device(&devices[i], list, links);
	vb_netif_free(list, links);
	free(devices);
	return EXIT_SUCCESS;
}

static int show_version(int argc, char **argv)
{
	puts("verbena " VB_VERSION);
	return EXIT_SUCCESS;
}

static int show_help(int argc, char **argv);

// clang-format off
static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *arguments, *summary;
} commands[] = {
	{ "run", vb_cli_run,
	  "[--device SPEC]... [--rsockets[=all]] [--namespace] [--]\n"
	  "\tPROGRAM [ARG]...",
	  "run a program with this adapter" },
	{ "devices", show_devices, "[--device SPEC]...",
	  "list the devices and their addresses" },
	{ "counters", vb_cli_counters, "[DEVICE]",
	  "print your programs' counters: packets, errors, drops" },
	{ "status", show_status, "", "say how many programs use RoCE devices" },
	{ "broker", vb_cli_broker, "[--daemon] [--linger SECONDS]",
	  "share the adapter among programs (starts by itself)" },
	{ "fabric", vb_cli_fabric,
	  "[--name NAME] [--sm] TOPOLOGY | --make KIND | ctl ... | show",
	  "run an InfiniBand fabric (`verbena fabric` alone says more)" },
	{ "ipoib", vb_cli_ipoib,
	  "--device ib[:NODE] [--name NAME] [--pkey PKEY] [--daemon]\n"
	  "\t[ADDRESS/LENGTH]...",
	  "make a network interface on an InfiniBand fabric" },
	{ "eoib", vb_cli_eoib,
	  "--device ib[:NODE] [--name NAME] [--pkey PKEY] [--daemon]\n"
	  "\t[--network NUMBER] [ADDRESS/LENGTH]...",
	  "make an Ethernet interface on an InfiniBand fabric" },
	{ "--version", show_version, "", "print the version" },
	{ "--help", show_help, "", "print this text" },
};
// clang-format on

static void list_commands(FILE *to)
{
	fprintf(to, "usage:\n");
	for (unsigned i = 0; i < VB_COUNT(commands); i++)
		fprintf(to, "  verbena %s %s\n\t%s\n", commands[i].name,
			commands[i].arguments, commands[i].summary);
	fprintf(to,
		"\nA SPEC is an interface (eth0) or roce:INTERFACE for RoCE, "
		"rocev1:INTERFACE\nfor RoCE of both versions (RoCEv1 needs "
		"CAP_NET_RAW), iwarp:INTERFACE for iWARP,\nor a device's "
		"name (roce_eth0, rocev1_eth0, iw_eth0), or ib:NODE or "
		"ib:FABRIC/NODE\nfor a place in an InfiniBand fabric, or ib "
		"for an adapter in a fabric of your own,\nwhich starts by "
		"itself, or vpi:PORT,PORT for one adapter with two ports, of "
		"which\neach is ib, ib:NODE, ib:FABRIC/NODE/PORT, "
		"eth=INTERFACE or rocev1=INTERFACE.\nWithout any there is a "
		"RoCE device for each interface, and no other device.\n"
		"Environment variables:\n"
		"  " DEVICES_VARIABLE "  comma-separated specs; "
		"`run --device` sets it\n"
		"  VERBENA_LOG      off, error, warn, info or debug\n"
		"  VERBENA_CM_GID_TYPE  v1: connections by librdmacm use "
		"RoCEv1 where a device\n                   has it; v2 (the "
		"default): RoCEv2\n"
		"  VERBENA_BROKER   the path of this command, with which "
		"programs start the\n                   broker; `run` sets "
		"it\n"
		"`run --rsockets` turns the program's TCP sockets into "
		"rsockets, with =all its\nUDP sockets, too.\n"
		"`run --namespace` puts the adapter's files at their real "
		"paths, for programs\nthat make system calls without the C "
		"library (Go, static ones).\n"
		"For a setuid program the loader ignores the library path "
		"that `run` sets.\n");
}

static int show_help(int argc, char **argv)
{
	list_commands(stdout);
	return EXIT_SUCCESS;
}

/* The command's name is what getopt_long() puts before its errors. */
static int run_command(unsigned i, int argc, char **argv)
{
	static char name[32];

	snprintf(name, sizeof(name), "verbena %s", commands[i].name);
	argv[0] = name;
	return commands[i].main(argc, argv);
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < VB_COUNT(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return run_command(i, argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "verbena: unknown command \"%s\"\n", argv[1]);
	list_commands(stderr);
	return EXIT_USAGE;
}
