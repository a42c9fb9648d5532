/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the sysfs tree as text. Names, formats and numbers are those that
 * Linux 6 shows for an adapter whose parent is a virtual device. */
#include "engine/sysfs_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/adapter.h"
#include "core/port.h"
#include "engine/devices.h"
#include "engine/fabric_places.h"
#include "engine/port_update.h"
#include "engine/sysfs_fabric.h"
#include "engine/sysfs_text_priv.h"
#include "link/netif.h"

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define CLASS "sys/class"
#define BUS   "sys/bus/verbena"
/* The environment variable that chooses devices: @specs of
 * vb_devices_list(). */
#define DEVICES_VARIABLE "VERBENA_DEVICES"

/* The ABI numbers of include/uapi/rdma, with which programs compare the
 * files. */
#define VERBS_ABI	 6
#define VERBS_DRIVER_ABI 1
#define MAD_ABI		 5
#define CM_ABI		 4

/* Linux's numbers of /dev/infiniband's nodes. Linux gives later nodes another
 * major; here each kind stays in one range. */
#define MAJOR_IB   231
#define FIRST_UMAD 0
#define MAX_UMAD   64
#define MORE_UMADS (1u << 19)
#define FIRST_VERB 192

/* The device number of rdma_cm, a misc device, whose minor number Linux chooses
 * when it starts. */
#define MAJOR_MISC 10
#define MINOR_CM   58

/* The words in Linux's files for each kind of device. */
static const struct kind {
	const char *node_type, *capabilities;
	bool has_pkeys, has_mads;
} kinds[] = {
	[DEVICE_ROCE] = { "1: CA", "0x04010000", true, true },
	[DEVICE_IWARP] = { "4: RNIC", "0x00010000", false, false },
	[DEVICE_ROCEV1] = { "1: CA", "0x04010000", true, true },
	[DEVICE_VPI] = { "1: CA", "0x04010000", true, true },
};

static const char *const gid_types[] = {
	[GID_IB] = "IB/RoCE v1",
	[GID_ROCE_V1] = "IB/RoCE v1",
	[GID_ROCE_V2] = "RoCE v2",
};

/* A device, and the stream and directories for its lines. */
struct page {
	FILE *f;
	const struct vb_device *device;
	const struct kind *kind;
	const struct vb_port *port; /* of the lines of a port */
	/* the device's directory, which contains infiniband/NAME */
	char parent[96];
	char at[192]; /* the directory infiniband/NAME */
};

void eng_sysfs_text_put(FILE *f, const char *directory, const char *format, ...)
{
	va_list ap;

	fprintf(f, "%s/", directory);
	va_start(ap, format);
	vfprintf(f, format, ap);
	va_end(ap);
	fputc('\n', f);
}

static void put_gids(struct page *g, const char *at)
{
	const struct vb_port *p = g->port;

	for (unsigned i = 0; i < p->gid_count; i++) {
		const uint8_t *raw = p->gids[i].gid.raw;

		if (vb_gid_is_zero(&p->gids[i].gid))
			continue;
		fprintf(g->f, "%s/gids/%u\t", at, i);
		for (unsigned k = 0; k < 16; k += 2)
			fprintf(g->f, "%s%02x%02x", k ? ":" : "", raw[k],
				raw[k + 1]);
		fputc('\n', g->f);
		eng_sysfs_text_put(g->f, at, "gid_attrs/types/%u\t%s", i,
				   gid_types[p->gids[i].type]);
		eng_sysfs_text_put(g->f, at, "gid_attrs/ndevs/%u\t%s", i,
				   p->netdev);
	}
}

/* Write empty files for the counters: a number written now would be old when a
 * program reads it. front/files fills them in when a program opens them. */
static void put_counters(const struct page *g, const char *at)
{
	for (unsigned i = 0; i < CNT_COUNT; i++)
		eng_sysfs_text_put(g->f, at, "hw_counters/%s\t",
				   vb_counter_name(i));
}

static void sysfs_put_port(struct page *g)
{
	bool up = g->port->state == PORT_ACTIVE;
	char at[256];

	snprintf(at, sizeof(at), "%s/ports/%u", g->at, g->port->number);
	eng_sysfs_text_put(g->f, at, "state\t%s", up ? "4: ACTIVE" : "1: DOWN");
	eng_sysfs_text_put(g->f, at, "phys_state\t%s",
			   up ? "5: LinkUp" : "3: Disabled");
	eng_sysfs_text_put(g->f, at, "link_layer\tEthernet");
	eng_sysfs_text_put(g->f, at, "rate\t%s",
			   vb_port_rate(g->port->mbits)->text);
	eng_sysfs_text_put(g->f, at, "lid\t0x0");
	eng_sysfs_text_put(g->f, at, "lid_mask_count\t0");
	eng_sysfs_text_put(g->f, at, "sm_lid\t0x0");
	eng_sysfs_text_put(g->f, at, "sm_sl\t0");
	eng_sysfs_text_put(g->f, at, "cap_mask\t%s", g->kind->capabilities);
	if (g->kind->has_pkeys)
		eng_sysfs_text_put(g->f, at, "pkeys/0\t0xffff");
	put_gids(g, at);
	/* An adapter counts all its ports together. */
	if (g->device->port_count == 1)
		put_counters(g, at);
}

static void put_guid(struct page *g, const char *name)
{
	uint64_t guid = g->device->guid;

	eng_sysfs_text_put(
		g->f, g->at, "%s\t%04x:%04x:%04x:%04x", name,
		(unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
		(unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

/* Make a directory for the interface and not a link: /sys may show another
 * network namespace. */
static void put_netdev(struct page *g)
{
	const struct vb_port *p = g->port;
	const uint8_t *m = p->mac;
	char at[160];

	snprintf(at, sizeof(at), "%s/net/%.15s", g->parent, p->netdev);
	eng_sysfs_text_put(g->f, at, "ifindex\t%u", p->ifindex);
	eng_sysfs_text_put(g->f, at, "mtu\t%u", p->netdev_mtu);
	eng_sysfs_text_put(g->f, at, "address\t%02x:%02x:%02x:%02x:%02x:%02x",
			   m[0], m[1], m[2], m[3], m[4], m[5]);
	eng_sysfs_text_put(g->f, at, "operstate\t%s",
			   p->state == PORT_ACTIVE ? "up" : "down");
	eng_sysfs_text_put(g->f, at, "dev_id\t0x0");
	eng_sysfs_text_put(g->f, at, "dev_port\t%u", p->number - 1u);
	eng_sysfs_text_put(g->f, at, "device" SYSFS_TEXT_LINK "../../../%s",
			   g->device->name);
}

/* Write the processors as the kernel prints bitmaps: in groups of 32 bits, the
 * highest first. */
static void put_processors(FILE *f, const char *parent)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);
	unsigned last = count > 1 ? (unsigned)count - 1 : 0;

	fprintf(f, "%s/local_cpus\t%x", parent,
		0xffffffffu >> (31 - last % 32));
	for (unsigned i = 0; i < last / 32; i++)
		fprintf(f, ",ffffffff");
	fputc('\n', f);
	eng_sysfs_text_put(f, parent,
			   last ? "local_cpulist\t0-%u" : "local_cpulist\t%u",
			   last);
}

/* Describe the parent device, which Linux would show on a bus. */
void eng_sysfs_text_parent(FILE *f, const char *parent, const char *name)
{
	eng_sysfs_text_put(f, parent,
			   "driver" SYSFS_TEXT_LINK
			   "../../../../bus/verbena/drivers/verbena");
	eng_sysfs_text_put(f, parent,
			   "subsystem" SYSFS_TEXT_LINK
			   "../../../../bus/verbena");
	eng_sysfs_text_put(f, parent, "uevent\tDRIVER=verbena");
	eng_sysfs_text_put(f, parent, "numa_node\t-1");
	put_processors(f, parent);
	eng_sysfs_text_put(f, BUS,
			   "devices/%s" SYSFS_TEXT_LINK
			   "../../../devices/virtual/verbena/%s",
			   name, name);
	eng_sysfs_text_put(f, BUS,
			   "drivers/verbena/%s" SYSFS_TEXT_LINK
			   "../../../../devices/virtual/verbena/%s",
			   name, name);
}

void eng_sysfs_text_class(FILE *f, const char *parent, const char *name,
			  const char *class, const char *entry)
{
	char at[256];

	snprintf(at, sizeof(at), "%s/%s/%s", parent, class, entry);
	eng_sysfs_text_put(f, at, "device" SYSFS_TEXT_LINK "../../../%s", name);
	eng_sysfs_text_put(
		f, at, "subsystem" SYSFS_TEXT_LINK "../../../../../../class/%s",
		class);
	eng_sysfs_text_put(f, CLASS,
			   "%s/%s" SYSFS_TEXT_LINK
			   "../../devices/virtual/verbena/%s/%s/%s",
			   class, entry, name, class, entry);
}

/* Write a character device's number: @at is its directory, @name its name in
 * /dev. */
static void put_number(FILE *f, const char *at, const char *name,
		       unsigned major, unsigned minor)
{
	eng_sysfs_text_put(f, at, "dev\t%u:%u", major, minor);
	eng_sysfs_text_put(f, at, "uevent\tMAJOR=%u", major);
	eng_sysfs_text_put(f, at, "uevent\tMINOR=%u", minor);
	eng_sysfs_text_put(f, at, "uevent\tDEVNAME=infiniband/%s", name);
	eng_sysfs_text_put(f, at, "uevent\tDEVMODE=0666");
}

/* Write a device file. Only a privileged program can make a character device,
 * so the file is a link to /dev/null, and front/files reports the number in its
 * file "dev". */
static void put_node(FILE *f, const char *name)
{
	eng_sysfs_text_put(f, "dev/infiniband",
			   "%s" SYSFS_TEXT_LINK "/dev/null", name);
}

void eng_sysfs_text_verbs(FILE *f, const char *parent, const char *device,
			  unsigned number)
{
	char name[32], at[256];

	snprintf(name, sizeof(name), "uverbs%u", number);
	snprintf(at, sizeof(at), "%s/infiniband_verbs/%s", parent, name);
	eng_sysfs_text_put(f, at, "ibdev\t%s", device);
	eng_sysfs_text_put(f, at, "abi_version\t%u", VERBS_DRIVER_ABI);
	put_number(f, at, name, MAJOR_IB, FIRST_VERB + number);
	put_node(f, name);
	eng_sysfs_text_class(f, parent, device, "infiniband_verbs", name);
}

/* @number counts up from 0, because libibumad does not try high numbers. */
void eng_sysfs_text_mad(FILE *f, const char *parent, const char *device,
			unsigned number, unsigned port)
{
	unsigned first = number < MAX_UMAD ? FIRST_UMAD : MORE_UMADS;
	char name[32], at[256];

	snprintf(name, sizeof(name), "umad%u", number);
	snprintf(at, sizeof(at), "%s/infiniband_mad/%s", parent, name);
	eng_sysfs_text_put(f, at, "ibdev\t%s", device);
	eng_sysfs_text_put(f, at, "port\t%u", port);
	put_number(f, at, name, MAJOR_IB, first + number);
	put_node(f, name);
	eng_sysfs_text_class(f, parent, device, "infiniband_mad", name);
}

static void put_device(struct page *g)
{
	const struct vb_device *d = g->device;

	snprintf(g->parent, sizeof(g->parent), SYSFS_TEXT_DEVICES "/%s",
		 d->name);
	snprintf(g->at, sizeof(g->at), "%s/infiniband/%s", g->parent, d->name);
	eng_sysfs_text_parent(g->f, g->parent, d->name);
	eng_sysfs_text_class(g->f, g->parent, d->name, "infiniband", d->name);
	eng_sysfs_text_put(g->f, g->at, "node_type\t%s", g->kind->node_type);
	eng_sysfs_text_put(g->f, g->at, "node_desc\t%s", d->name);
	eng_sysfs_text_put(g->f, g->at, "fw_ver\t%s", VB_VERSION);
	if (d->port_count == 1)
		eng_sysfs_text_put(g->f, g->at, "parent\t%s",
				   d->port[0].netdev);
	else
		put_counters(g, g->at);
	eng_sysfs_text_put(g->f, g->at, "uevent\tNAME=%s", d->name);
	put_guid(g, "node_guid");
	put_guid(g, "sys_image_guid");
}

/* Write an Ethernet port's table as it is when the port is opened now; a table
 * that other programs have may have unused entries in between. */
static void sysfs_put_ethernet(struct page *g, unsigned i,
			       const struct vb_netif *n, unsigned *umads)
{
	const struct vb_device_port *d = &g->device->port[i];
	struct vb_port_update update;
	struct vb_port p;

	vb_port_update_gather(d, n, &update);
	vb_port_init(&p);
	p.number = (uint8_t)(i + 1);
	(void)vb_port_update(&p, &update);
	snprintf(p.netdev, sizeof(p.netdev), "%s", d->netdev);
	g->port = &p;
	put_netdev(g);
	sysfs_put_port(g);
	if (g->kind->has_mads)
		eng_sysfs_text_mad(g->f, g->parent, g->device->name, (*umads)++,
				   i + 1);
	g->port = NULL;
	vb_port_fini(&p);
}

static const struct vb_netif *sysfs_find_netif(const struct vb_netif *list,
					       unsigned links, uint32_t ifindex)
{
	for (unsigned i = 0; i < links; i++)
		if (list[i].ifindex == ifindex)
			return &list[i];
	return NULL;
}

static void eng_sysfs_text_describe(FILE *f, const struct vb_device *d,
				    const struct vb_netif *list, unsigned links,
				    unsigned *umads)
{
	struct page page = { .f = f, .device = d, .kind = &kinds[d->kind] };

	put_device(&page);
	for (unsigned i = 0; i < d->port_count; i++) {
		const struct vb_device_port *p = &d->port[i];

		if (p->kind == DEVICE_IB)
			vb_sysfs_fabric_port(f, d->name, i + 1, &p->place,
					     umads);
		else
			sysfs_put_ethernet(
				&page, i,
				sysfs_find_netif(list, links, p->ifindex),
				umads);
	}
	eng_sysfs_text_verbs(f, page.parent, d->name,
			     vb_device_number(d->kind, d->ifindex));
}

static void put_manager(FILE *f)
{
	const char *at = "sys/devices/virtual/misc/rdma_cm";

	eng_sysfs_text_put(f, CLASS,
			   "misc/rdma_cm" SYSFS_TEXT_LINK
			   "../../devices/virtual/misc/rdma_cm");
	eng_sysfs_text_put(f, at, "abi_version\t%u", CM_ABI);
	eng_sysfs_text_put(
		f, at, "subsystem" SYSFS_TEXT_LINK "../../../../class/misc");
	put_number(f, at, "rdma_cm", MAJOR_MISC, MINOR_CM);
	put_node(f, "rdma_cm");
}

/* Write the files that exist even without a device. */
static void put_host(FILE *f)
{
	eng_sysfs_text_put(f, CLASS, "infiniband/");
	eng_sysfs_text_put(f, BUS, "devices/");
	eng_sysfs_text_put(f, BUS, "drivers/verbena/");
	eng_sysfs_text_put(f, "sys/devices/virtual", "verbena/");
	eng_sysfs_text_put(f, CLASS, "infiniband_verbs/abi_version\t%u",
			   VERBS_ABI);
	eng_sysfs_text_put(f, CLASS, "infiniband_mad/abi_version\t%u", MAD_ABI);
	put_manager(f);
}

/* Write the adapters that are nodes of fabrics. Initiators of storage look
 * among the hosts of SCSI for targets that are connected already; without that
 * directory, which only a kernel with SCSI has, they give up. */
static void put_places(FILE *f, unsigned *umads)
{
	const char *specs = getenv(DEVICES_VARIABLE);
	struct vb_fabric_adapter a;
	unsigned count, i = 0;

	for (; vb_fabric_adapter_nth(specs, i, &a, &count); i++)
		if (!a.ports)
			vb_sysfs_fabric_put(f, &a, umads);
	if (i > 0)
		eng_sysfs_text_put(f, CLASS, "scsi_host/");
}

static char *write_down(const struct vb_device *devices, unsigned count,
			const struct vb_netif *list, unsigned links)
{
	unsigned umads = 0;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_host(f);
	for (unsigned i = 0; i < count; i++)
		/* put_places() writes the nodes of fabrics: it knows adapters,
		 * which are devices, and switches, which are not */
		if (devices[i].kind != DEVICE_IB)
			eng_sysfs_text_describe(f, &devices[i], list, links,
						&umads);
	put_places(f, &umads);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int vb_sysfs_text(char **text)
{
	struct vb_device *devices;
	struct vb_netif *list;
	unsigned count, links;
	int rc = vb_devices_list(getenv(DEVICES_VARIABLE), &devices, &count);

	if (rc)
		return rc;
	rc = vb_netif_list(&list, &links);
	if (rc == 0) {
		*text = write_down(devices, count, list, links);
		vb_netif_free(list, links);
		rc = *text ? 0 : -ENOMEM;
	}
	free(devices);
	return rc;
}
