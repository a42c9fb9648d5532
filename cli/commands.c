/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of subcommands, options and environment variables. */
#include "cli/commands.h"

#include <string.h>

#include "cli/cli.h"
#include "fabricd/fabricd.h"

#define SPECS                                                                  \
	"SPEC is an interface (eth0) or roce:INTERFACE for RoCE, "             \
	"rocev1:INTERFACE for\nRoCE of both versions (needs CAP_NET_RAW), "    \
	"iwarp:INTERFACE for iWARP, a device's\nname (roce_eth0, "             \
	"rocev1_eth0, iw_eth0), ib:NODE or ib:FABRIC/NODE for a place\nin an " \
	"InfiniBand fabric, or ib for an adapter in a fabric of your own, "    \
	"which\nstarts by itself, or vpi:PORT,PORT for one adapter with "      \
	"two ports, of which each\nis ib, ib:NODE, ib:FABRIC/NODE/PORT, "      \
	"eth=INTERFACE or rocev1=INTERFACE.\nWithout --device there is a "     \
	"RoCE device for each interface that is up and\nhas an address.\n"
#define DEVICE_OPTION                                                          \
	{                                                                      \
		"device", 'd', true, "SPEC",                                   \
			"use this device; may be repeated"                     \
	}
#define NAME_OPTION                                                            \
	{                                                                      \
		"name", 'n', false, "NAME", "the fabric's name (default)"      \
	}

// clang-format off
static const struct vb_cli_option run_options[] = {
	DEVICE_OPTION,
	{ "rsockets", 'r', false, "[all]", "turn the program's TCP sockets into rsockets; with =all its UDP sockets, too" },
	{ "namespace", 'n', false, NULL, "put the adapter's files at their real paths, for programs that make system calls without the C library (Go, static ones)" },
	{ 0 },
};
static const struct vb_cli_option device_options[] = {
	DEVICE_OPTION,
	{ 0 },
};
static const struct vb_cli_option doctor_options[] = {
	DEVICE_OPTION,
	{ "json", 'j', false, NULL, "print JSON" },
	{ "answer", 'a', false, "SECONDS", "examine nothing, and answer the doctor of another host for so long" },
	{ 0 },
};
static const struct vb_cli_option broker_options[] = {
	{ "daemon", 'b', false, NULL, "go to the background when programs can connect" },
	{ "linger", 'l', false, "SECONDS", "end when no program has used the broker for so long (3)" },
	{ 0 },
};
static const struct vb_cli_option fabric_options[] = {
	NAME_OPTION,
	{ "make", 'm', false, "KIND", "make a topology instead of reading one" },
	{ "part", 'p', false, "NODE", "run only these nodes; may be repeated" },
	{ "write", 'w', false, NULL, "print the topology and end" },
	{ "sm", 's', false, NULL, "start a subnet manager (opensm) in the fabric" },
	{ "daemon", 'b', false, NULL, "run in the background" },
	{ "linger", 'l', false, "SECONDS", "end when no program has used the fabric for so long" },
	{ 0 },
};
static const struct vb_cli_option ctl_options[] = {
	NAME_OPTION,
	{ "json", 'j', false, NULL, "print the result as one line of JSON" },
	{ 0 },
};
static const struct vb_cli_option show_options[] = {
	NAME_OPTION,
	{ "json", 'j', false, NULL, "print JSON" },
	{ "html", 't', false, "FILE", "write a picture with the use of links in half a second; - is standard output" },
	{ "svg", 's', false, "FILE", "the same as SVG" },
	{ "path", 'p', false, "FROM:LID", "the way from a LID or a node to a LID, alone or in the picture" },
	{ 0 },
};
static const struct vb_cli_option capture_options[] = {
	NAME_OPTION,
	{ "flow", 'f', false, NULL, "link packets, too (tshark -X lua_script:" VB_DATADIR "/ib_link.lua shows them)" },
	{ "bytes", 'b', false, "N[K|M|G]", "end after so many bytes (1G)" },
	{ "seconds", 's', false, "N", "end after so many seconds" },
	{ 0 },
};
static const struct vb_cli_option ipoib_options[] = {
	{ "device", 'd', true, "ib[:NODE]", "the fabric's adapter" },
	{ "name", 'n', false, "NAME", "the interface's name (ib0)" },
	{ "pkey", 'p', false, "PKEY", "the partition (0xffff); with another one the interface is NAME.PKEY" },
	{ "mode", 'M', false, "datagram|connected", "connected: packets of up to 65520 bytes, by reliable connections (datagram)" },
	{ "daemon", 'b', false, NULL, "run in the background" },
	{ 0 },
};
static const struct vb_cli_option eoib_options[] = {
	{ "device", 'd', true, "ib[:NODE]", "the fabric's adapter" },
	{ "name", 'n', false, "NAME", "the interface's name (eib0)" },
	{ "pkey", 'p', false, "PKEY", "the partition (0xffff); with another one the interface is NAME.PKEY" },
	{ "network", 'w', false, "NUMBER", "the Ethernet's number (0)" },
	{ "daemon", 'b', false, NULL, "run in the background" },
	{ 0 },
};
static const struct vb_cli_option gateway_options[] = {
	{ "device", 'd', true, "ib[:NODE]", "the fabric's adapter, for the IPoIB side" },
	{ "switch", 's', false, "ib:SWITCH", "the switch, for the Ethernet side" },
	{ "port", 'o', false, "PORT", "its Ethernet port: E1, E2 ... (the first free one)" },
	{ "mtu", 'm', false, "BYTES", "the Ethernet's MTU (1500)" },
	{ "router", 'r', false, "ADDRESS", "where packets for other networks go; once for IPv4, once for IPv6" },
	{ "pkey", 'p', false, "PKEY", "the partition (0xffff)" },
	{ "name", 'n', false, "NAME", "what `verbena fabric show` calls it (gateway)" },
	{ "daemon", 'b', false, NULL, "run in the background" },
	{ 0 },
};
static const struct vb_cli_option ether_options[] = {
	{ "device", 'd', true, "ib:SWITCH", "the switch" },
	{ "port", 'o', false, "PORT", "its Ethernet port: E1, E2 ... (the first free one)" },
	{ "name", 'n', false, "NAME", "the interface's name (eth0, eth1 ...)" },
	{ "mtu", 'm', false, "BYTES", "the interface's MTU (1500)" },
	{ 0 },
};
static const struct vb_cli_option help_options[] = {
	{ "all", 'a', false, NULL, "print all tables as tab-separated lines" },
	{ 0 },
};

const struct vb_cli_command vb_cli_commands[] = {
	{ "run", "[--] PROGRAM [ARG]...",
	  "run a program with this adapter", run_options, true,
	  SPECS
	  "Exit status: the program's; 2: the command line is wrong; 125: the "
	  "program was not\nstarted; 126: it cannot be executed; 127: it was "
	  "not found.\n",
	  vb_cli_run },
	{ "devices", "",
	  "list devices, ports, and GID indices for -g and -x",
	  device_options, false, SPECS, vb_cli_devices },
	{ "doctor", "[PEER] [-- PROGRAM]",
	  "say what works here, what does not, and what mends it",
	  doctor_options, false,
	  "PEER is a host's name or address: packets of each size go there "
	  "and back. PROGRAM\nis a program, or a directory of a Python "
	  "package: which libraries it would load.\nExit status: 0: nothing "
	  "stands in the way; 1: a problem was found.\n",
	  vb_cli_doctor },
	{ "counters", "[DEVICE]",
	  "print your programs' counters: packets, one-host requests, errors",
	  NULL, false, NULL, vb_cli_counters },
	{ "status", "",
	  "say how many programs use RoCE devices", NULL, false, NULL,
	  vb_cli_status },
	{ "broker", "",
	  "share the adapter among programs (starts by itself)",
	  broker_options, false, NULL, vb_cli_broker },
	{ "fabric", "TOPOLOGY | --make KIND",
	  "run an InfiniBand fabric", fabric_options, true,
	  "TOPOLOGY is a file as ibnetdiscover prints it. See also `verbena "
	  "help fabric ctl`,\n`fabric show` and `fabric capture`. KIND is one "
	  "of\n",
	  vb_cli_fabric },
	{ "fabric ctl", "COMMAND...",
	  "change a fabric that runs", ctl_options, true,
	  "COMMAND is one of\n"
	  "  unlink NODE PORT           pull a cable\n"
	  "  link NODE PORT             plug it in again\n"
	  "  adaptive NODE on|off       spread flows over shortest paths\n"
	  "  tune NODE PORT P=VALUE...  delay, rate, buf, credits, ber, lose, "
	  "corrupt\n"
	  "                             (also lose_flow, corrupt_flow)\n"
	  "  node NODE P=VALUE...       latency, forward, adaptive, target, "
	  "service\n"
	  "  macs NODE                  addresses behind its Ethernet ports\n"
	  "  detach NODE PORT           take an interface off an Ethernet port\n"
	  "  topology                   print the topology as a file\n"
	  "An Ethernet port is E1, E2 and so on, in unlink and link, too.\n",
	  NULL },
	{ "fabric show", "",
	  "show a fabric that runs as text, JSON or a picture", show_options,
	  true, NULL, NULL },
	{ "fabric capture", "NODE PORT|all FILE",
	  "write what passes a port to a file for Wireshark",
	  capture_options, true,
	  "Frames that pass the port, both ways, go to FILE as pcapng; - is "
	  "standard output.\nIt ends with Ctrl-C.\n",
	  NULL },
	{ "ipoib", "[ADDRESS/LENGTH]...",
	  "make a network interface on an InfiniBand fabric", ipoib_options,
	  false, NULL, vb_cli_ipoib },
	{ "eoib", "[ADDRESS/LENGTH]...",
	  "make an Ethernet interface on an InfiniBand fabric", eoib_options,
	  false, NULL, vb_cli_eoib },
	{ "ether", "[ADDRESS/LENGTH]...",
	  "make an interface at an Ethernet port of a fabric's switch",
	  ether_options, false,
	  "The command ends at once; the fabric holds the interface, until "
	  "`verbena fabric ctl\ndetach SWITCH PORT`.\n",
	  vb_cli_ether },
	{ "gateway", "ADDRESS/LENGTH...",
	  "make one IP subnet of IPoIB and a switch's Ethernet ports",
	  gateway_options, false,
	  "The addresses are the gateway's own, and say which network it "
	  "passes.\n",
	  vb_cli_gateway },
	{ "help", "[COMMAND]",
	  "print this text, or that of a command", help_options, false, NULL,
	  vb_cli_help },
	{ "version", "",
	  "print the version", NULL, false, NULL, vb_cli_version },
};
const unsigned vb_cli_command_count = VB_COUNT(vb_cli_commands);

const struct vb_cli_variable vb_cli_variables[] = {
	{ "VERBENA_DEVICES", "SPEC[,SPEC]...",
	  "the devices; `run --device` sets it", SETTER_USER },
	{ "VERBENA_LOG", "off|error|warn|info|debug",
	  "how much programs write to standard error (warn)", SETTER_USER },
	{ "VERBENA_NEAR", "on|off",
	  "off: programs of one host exchange packets instead of copying "
	  "directly",
	  SETTER_USER },
	{ "VERBENA_CM_GID_TYPE", "v1|v2",
	  "the version of RoCE by which librdmacm connects where a device has "
	  "both (v2)", SETTER_USER },
	{ "VERBENA_IWARP", "WORDS",
	  "what iWARP offers to its peer, to try peers of other kinds; "
	  "docs/IWARP.md", SETTER_USER },
	{ "VERBENA_BROKER", "PATH",
	  "this command, with which programs start the broker", SETTER_RUN },
	{ "VERBENA_TREE", "DIRECTORY",
	  "where the devices' files of /sys and /dev are", SETTER_RUN },
	{ "VERBENA_RSOCKETS", "tcp|all",
	  "which sockets `run --rsockets` turns into rsockets", SETTER_RUN },
};
const unsigned vb_cli_variable_count = VB_COUNT(vb_cli_variables);
// clang-format on

const struct vb_cli_command *vb_cli_find_command(const char *name)
{
	for (unsigned i = 0; i < vb_cli_command_count; i++)
		if (strcmp(vb_cli_commands[i].name, name) == 0)
			return &vb_cli_commands[i];
	return NULL;
}
