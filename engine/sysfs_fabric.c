/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the files of /sys that describe an InfiniBand adapter of a fabric.
 * Names and formats are those of Linux 6. */
#include "engine/sysfs_fabric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/devices.h"
#include "engine/sysfs_text_priv.h"

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define NODE_SWITCH 2
#define FILE_BYTES  96

/* --- what the files of a port say --- */

static const char *say_code(const char *const *words, unsigned count,
			    unsigned i)
{
	return i < count && words[i] ? words[i] : "<unknown>";
}

static int put_lid(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "0x%x\n", p->lid);
}

static int put_lmc(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "%u\n", p->lmc);
}

static int put_sm_lid(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "0x%x\n", p->sm_lid);
}

static int put_sm_sl(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "%u\n", p->sm_sl);
}

static int put_state(char *to, size_t room, const struct vb_umad_info *p)
{
	static const char *const names[] = { "NOP", "DOWN", "INIT", "ARMED",
					     "ACTIVE" };

	return snprintf(to, room, "%u: %s\n", p->state,
			say_code(names, VB_COUNT(names), p->state));
}

static int put_phys(char *to, size_t room, const struct vb_umad_info *p)
{
	static const char *const names[] = {
		NULL,
		"Sleep",
		"Polling",
		"Disabled",
		"PortConfigurationTraining",
		"LinkUp",
		"LinkErrorRecovery",
	};

	return snprintf(to, room, "%u: %s\n", p->phys,
			say_code(names, VB_COUNT(names), p->phys));
}

static int put_caps(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "0x%08x\n", p->cap_mask);
}

static int put_layer(char *to, size_t room, const struct vb_umad_info *p)
{
	return snprintf(to, room, "InfiniBand\n");
}

/* Write the rate of the port. A port without a link reports the lowest rate, as
 * on Linux. */
static int put_rate(char *to, size_t room, const struct vb_umad_info *p)
{
	static const struct {
		uint8_t ext, speed;
		unsigned tenths; /* rate of one lane in tenths of a Gbit/s */
		const char *name;
	} speeds[] = {
		{ 8, 0, 1000, "NDR" }, { 4, 0, 500, "HDR" },
		{ 2, 0, 250, "EDR" },  { 1, 0, 140, "FDR" },
		{ 0, 4, 100, "QDR" },  { 0, 2, 50, "DDR" },
		{ 0, 0, 25, "SDR" },
	};
	/* by the number of the bit in LinkWidthActive: how many lanes the link
	 * has */
	static const uint8_t lanes_of[] = { 1, 4, 8, 12, 2 };
	unsigned lanes = 1, i = 0, tenths;

	for (unsigned bit = 0; bit < VB_COUNT(lanes_of); bit++)
		if (p->width == 1u << bit)
			lanes = lanes_of[bit];
	while (speeds[i].ext ? speeds[i].ext != p->speed_ext
			     : speeds[i].speed && speeds[i].speed != p->speed)
		i++;
	tenths = lanes * speeds[i].tenths;
	return snprintf(to, room, "%u%s Gb/sec (%uX %s)\n", tenths / 10,
			tenths % 10 ? ".5" : "", lanes, speeds[i].name);
}

static const struct {
	const char *name;
	int (*put)(char *to, size_t room, const struct vb_umad_info *p);
} files[] = {
	{ "lid", put_lid },	     { "lid_mask_count", put_lmc },
	{ "sm_lid", put_sm_lid },    { "sm_sl", put_sm_sl },
	{ "state", put_state },	     { "phys_state", put_phys },
	{ "rate", put_rate },	     { "cap_mask", put_caps },
	{ "link_layer", put_layer },
};

/* by enum vb_umad_count: the name of the counter's file */
static const char *const counters[VB_UMAD_COUNTS] = {
	[UMAD_COUNT_SYMBOL_ERROR] = "symbol_error",
	[UMAD_COUNT_LINK_ERROR_RECOVERY] = "link_error_recovery",
	[UMAD_COUNT_LINK_DOWNED] = "link_downed",
	[UMAD_COUNT_PORT_RCV_ERRORS] = "port_rcv_errors",
	[UMAD_COUNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS] =
		"port_rcv_remote_physical_errors",
	[UMAD_COUNT_PORT_RCV_SWITCH_RELAY_ERRORS] =
		"port_rcv_switch_relay_errors",
	[UMAD_COUNT_PORT_XMIT_DISCARDS] = "port_xmit_discards",
	[UMAD_COUNT_PORT_XMIT_CONSTRAINT_ERRORS] =
		"port_xmit_constraint_errors",
	[UMAD_COUNT_PORT_RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[UMAD_COUNT_LOCAL_LINK_INTEGRITY_ERRORS] =
		"local_link_integrity_errors",
	[UMAD_COUNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] =
		"excessive_buffer_overrun_errors",
	[UMAD_COUNT_VL15_DROPPED] = "VL15_dropped",
	[UMAD_COUNT_PORT_XMIT_WAIT] = "port_xmit_wait",
	[UMAD_COUNT_PORT_XMIT_DATA] = "port_xmit_data",
	[UMAD_COUNT_PORT_RCV_DATA] = "port_rcv_data",
	[UMAD_COUNT_PORT_XMIT_PACKETS] = "port_xmit_packets",
	[UMAD_COUNT_PORT_RCV_PACKETS] = "port_rcv_packets",
	[UMAD_COUNT_MULTICAST_XMIT_PACKETS] = "multicast_xmit_packets",
	[UMAD_COUNT_MULTICAST_RCV_PACKETS] = "multicast_rcv_packets",
};

/* Write a GID as text: eight groups of two bytes, and a newline. Returns its
 * length. */
static int say_gid(char *to, size_t room, uint64_t prefix, uint64_t guid)
{
	const uint64_t half[] = { prefix, guid };
	int len = 0;

	for (unsigned i = 0; i < 8 && (size_t)len < room; i++)
		len += snprintf(
			to + len, room - (size_t)len, "%04x%c",
			(unsigned)(half[i / 4] >> (48 - i % 4 * 16) & 0xffff),
			i < 7 ? ':' : '\n');
	return len;
}

/* Read the number in @file behind @directory into *@index. False: @file is in
 * another directory, or the number is not below @count. */
static bool take_index(const char *file, const char *directory, unsigned count,
		       unsigned *index)
{
	size_t len = strlen(directory);
	unsigned long v;
	char *end;

	if (strncmp(file, directory, len) != 0 || file[len] < '0' ||
	    file[len] > '9')
		return false;
	v = strtoul(file + len, &end, 10);
	*index = (unsigned)v;
	return !*end && v < count;
}

static int put_entry(const struct vb_umad_info *p, const char *file, char *to,
		     size_t room)
{
	unsigned i;

	if (take_index(file, "gids/", VB_MIN(p->guids, VB_UMAD_GUIDS), &i))
		return say_gid(to, room, p->guid_table[i] ? p->gid_prefix : 0,
			       p->guid_table[i]);
	if (take_index(file, "pkeys/", VB_MIN(p->pkeys, VB_UMAD_PKEYS), &i))
		return snprintf(to, room, "0x%04x\n", p->pkey[i]);
	for (i = 0; i < VB_UMAD_COUNTS; i++)
		if (strncmp(file, "counters/", 9) == 0 &&
		    strcmp(file + 9, counters[i]) == 0)
			return snprintf(to, room, "%" PRIu64 "\n", p->count[i]);
	return 0;
}

size_t vb_sysfs_fabric_value(const struct vb_umad_info *p, const char *file,
			     char *text, size_t room)
{
	int n = -1;

	for (unsigned i = 0; i < VB_COUNT(files) && n < 0; i++)
		if (strcmp(file, files[i].name) == 0)
			n = files[i].put(text, room, p);
	if (n < 0)
		n = put_entry(p, file, text, room);
	return n > 0 && (size_t)n < room ? (size_t)n : 0;
}

/* --- the tree --- */

struct adapter {
	FILE *f;
	const char *name;
	char parent[96]; /* the directory that contains infiniband/NAME */
	/* the adapter's own directory in @parent, with @parent in front */
	char at[192];
};

static void name_adapter(struct adapter *a, FILE *f, const char *name)
{
	a->f = f;
	a->name = name;
	snprintf(a->parent, sizeof(a->parent), SYSFS_TEXT_DEVICES "/%s", name);
	snprintf(a->at, sizeof(a->at), "%s/infiniband/%s", a->parent, name);
}

static void put_file(const struct adapter *a, const char *at,
		     const struct vb_umad_info *p, const char *file)
{
	char text[FILE_BYTES];
	size_t len = vb_sysfs_fabric_value(p, file, text, sizeof(text));

	if (len)
		fprintf(a->f, "%s/%s\t%s", at, file, text);
}

/* Put the files of a port into the tree. The files of counters are empty there,
 * since a number in the tree would soon be outdated; they are read from the
 * fabric's process. */
static void put_port_files(const struct adapter *a, unsigned number,
			   const struct vb_umad_info *p)
{
	const unsigned guids = VB_MIN(p->guids, VB_UMAD_GUIDS);
	const unsigned pkeys = VB_MIN(p->pkeys, VB_UMAD_PKEYS);
	char at[256], file[32];

	snprintf(at, sizeof(at), "%s/ports/%u", a->at, number);
	for (unsigned i = 0; i < VB_COUNT(files); i++)
		put_file(a, at, p, files[i].name);
	for (unsigned i = 0; i < guids; i++) {
		snprintf(file, sizeof(file), "gids/%u", i);
		put_file(a, at, p, file);
		if (p->guid_table[i])
			eng_sysfs_text_put(a->f, at,
					   "gid_attrs/types/%u\tIB/RoCE v1", i);
	}
	for (unsigned i = 0; i < pkeys; i++) {
		snprintf(file, sizeof(file), "pkeys/%u", i);
		put_file(a, at, p, file);
	}
	for (unsigned i = 0; i < VB_UMAD_COUNTS; i++)
		eng_sysfs_text_put(a->f, at, "counters/%s\t", counters[i]);
}

static void put_adapter_guid(const struct adapter *a, const char *file,
			     uint64_t guid)
{
	eng_sysfs_text_put(
		a->f, a->at, "%s\t%04x:%04x:%04x:%04x", file,
		(unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
		(unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

static void put_adapter_files(const struct adapter *a,
			      const struct vb_umad_info *n)
{
	static const char *const types[] = { NULL, "CA", "switch", "router" };

	eng_sysfs_text_put(a->f, a->at, "node_type\t%u: %s", n->kind,
			   say_code(types, VB_COUNT(types), n->kind));
	eng_sysfs_text_put(a->f, a->at, "node_desc\t%.64s", n->desc);
	eng_sysfs_text_put(a->f, a->at, "fw_ver\t%s", VB_VERSION);
	eng_sysfs_text_put(a->f, a->at, "hca_type\tVerbena");
	eng_sysfs_text_put(a->f, a->at, "hw_rev\t%x", n->revision);
	eng_sysfs_text_put(a->f, a->at, "uevent\tNAME=%s", a->name);
	put_adapter_guid(a, "node_guid", n->guid);
	put_adapter_guid(a, "sys_image_guid", n->sys_guid);
}

void vb_sysfs_fabric_port(FILE *f, const char *name, unsigned number,
			  const struct vb_fabric_place *place, unsigned *umads)
{
	struct vb_umad_info port;
	struct adapter a;

	if (vb_fabric_query(place, place->port, &port))
		return;
	name_adapter(&a, f, name);
	put_port_files(&a, number, &port);
	eng_sysfs_text_mad(f, a.parent, name, (*umads)++, number);
}

void vb_sysfs_fabric_put(FILE *f, const struct vb_fabric_adapter *from,
			 unsigned *umads)
{
	struct vb_fabric_place place = from->place[0];
	struct vb_umad_info node;
	unsigned first, last;
	struct adapter a;

	if (vb_fabric_query(&place, 0, &node))
		return;
	name_adapter(&a, f, from->name);
	eng_sysfs_text_parent(f, a.parent, a.name);
	eng_sysfs_text_class(f, a.parent, a.name, "infiniband", a.name);
	put_adapter_files(&a, &node);
	first = node.kind == NODE_SWITCH ? 0 : 1;
	last = node.kind == NODE_SWITCH ? 0 : node.ports;
	for (unsigned p = first; p <= last; p++) {
		place.port = (uint8_t)p;
		vb_sysfs_fabric_port(f, a.name, p, &place, umads);
	}
	if (node.kind != NODE_SWITCH)
		eng_sysfs_text_verbs(f, a.parent, a.name,
				     vb_device_number(DEVICE_IB, from->number));
}
