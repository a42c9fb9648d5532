/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes devices of the host's interfaces: of all, or of those that the caller
 * names. */
#include "engine/devices.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "link/netif.h"
#include "wire/smp.h"

#define SPEC_BYTES 400
/* no interface and no device has a name as long as this */
#define NAME_BYTES  159
#define DEVICE_NAME sizeof(((struct vb_device *)0)->name)

/* For each kind of device, the first letters of a spec and of the device's
 * name. */
static const struct {
	const char *spec, *name;
} kinds[] = {
	[DEVICE_ROCE] = { "roce:", "roce_" },
	[DEVICE_IWARP] = { "iwarp:", "iw_" },
	[DEVICE_ROCEV1] = { "rocev1:", "rocev1_" },
};

struct interfaces {
	struct vb_netif *list;
	unsigned count;
};

static uint64_t stir(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	/* The hash function FNV-1a. */
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

/* Mix a value that tells this host from others into @h: its number, or its
 * name. */
static uint64_t stir_host(uint64_t h)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	char text[65] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		gethostname(text, sizeof(text) - 1);
	return stir(h, text, strlen(text));
}

/* Mix the network namespace into @h, because each container of a host has an
 * interface 1. */
static uint64_t stir_namespace(uint64_t h)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st) < 0)
		return h;
	return stir(h, &st.st_ino, sizeof(st.st_ino));
}

/* Returns a GUID that stays equal while the namespace lives. Two bits of the
 * modified EUI-64 say that it was not assigned by an authority, and is no
 * group's. */
static uint64_t guid_without_mac(uint32_t ifindex)
{
	uint64_t h = stir(0xcbf29ce484222325ull, &ifindex, sizeof(ifindex));

	h = stir_namespace(stir_host(h));
	return (h & ~(3ull << 56)) | 1;
}

/* Returns the EUI-64 of a MAC address: the interface half of its link-local
 * address. */
static uint64_t guid_of(const struct vb_netif *n)
{
	static const uint8_t none[6];
	struct vb_gid gid = vb_gid_from_mac(n->mac);
	uint64_t guid = 0;

	if (memcmp(n->mac, none, sizeof(none)) == 0)
		return guid_without_mac(n->ifindex);
	for (int i = 8; i < 16; i++)
		guid = guid << 8 | gid.raw[i];
	return guid;
}

/* Make a device's name that programs can put into paths and command lines. */
static void make_name(char name[DEVICE_NAME], enum vb_device_kind kind,
		      const struct vb_netif *n)
{
	snprintf(name, DEVICE_NAME, "%s%s", kinds[kind].name, n->name);
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-')
			*p = '_';
}

/* Give the device @d its name. make_name() turns the interfaces "a@b" and "a#b"
 * into one name. The first device keeps that name; each later one gets its
 * ifindex appended. */
static void name_device(struct vb_device *d, const struct interfaces *h,
			const struct vb_netif *n)
{
	char other[DEVICE_NAME];
	size_t len;

	make_name(d->name, d->kind, n);
	for (const struct vb_netif *o = h->list; o < n; o++) {
		make_name(other, d->kind, o);
		if (strcmp(other, d->name) != 0)
			continue;
		len = strlen(d->name);
		snprintf(d->name + len, DEVICE_NAME - len, "_%u", n->ifindex);
		return;
	}
}

static void eng_devices_port(struct vb_device_port *p, const struct vb_netif *n,
			     enum vb_device_kind kind)
{
	p->kind = kind;
	memcpy(p->netdev, n->name, sizeof(p->netdev));
	p->ifindex = n->ifindex;
	p->guid = guid_of(n);
}

/* Fill in @d, the device of interface @n, which is one of the host's interfaces
 * @h. */
static void eng_devices_describe(struct vb_device *d,
				 const struct interfaces *h,
				 const struct vb_netif *n,
				 enum vb_device_kind kind)
{
	memset(d, 0, sizeof(*d));
	d->kind = kind;
	d->port_count = 1;
	eng_devices_port(&d->port[0], n, kind);
	d->ifindex = n->ifindex;
	d->guid = d->port[0].guid;
	name_device(d, h, n);
}

/* Returns why the interface is no device, as the end of a sentence that begins
 * with its name; NULL: it is one. */
static const char *unfit(const struct vb_netif *n)
{
	if (n->infiniband)
		return "carries IP over InfiniBand; its adapter is a place in "
		       "a fabric (ib:NODE)";
	if (!n->up)
		return "is down";
	return n->count == 0 ? "has no address" : NULL;
}

/*
 * Add a device for each interface, but for loopback only if there is no other.
 * Beside others it would lead to no other host, which programs do not expect of
 * an adapter: UCX spreads messages over every device it sees. A user who wants
 * loopback's device names it.
 */
static unsigned eng_devices_add_all(const struct interfaces *h,
				    struct vb_device *list)
{
	unsigned count = 0;

	for (unsigned i = 0; i < h->count; i++) {
		const struct vb_netif *n = &h->list[i];

		if (!unfit(n) && (!n->loopback || count == 0))
			eng_devices_describe(&list[count++], h, n, DEVICE_ROCE);
	}
	return count;
}

/* Returns the interface's name in "roce:eth0" or "iwarp:eth0", and sets *@kind;
 * NULL: @spec has neither form. */
static const char *cut_kind(const char *spec, enum vb_device_kind *kind)
{
	for (unsigned i = 0; i < VB_COUNT(kinds); i++) {
		size_t len = strlen(kinds[i].spec);

		if (strncmp(spec, kinds[i].spec, len) != 0)
			continue;
		*kind = (enum vb_device_kind)i;
		return spec + len;
	}
	return NULL;
}

static const struct vb_netif *find_name(const struct interfaces *h,
					const char *name,
					enum vb_device_kind kind)
{
	struct vb_device d;

	for (unsigned i = 0; i < h->count; i++) {
		eng_devices_describe(&d, h, &h->list[i], kind);
		if (strcmp(d.name, name) == 0)
			return &h->list[i];
	}
	return NULL;
}

/* Find the interface that a spec names. An interface that is really called
 * roce_something is found before a device of that name. */
static const struct vb_netif *eng_find_spec(const struct interfaces *h,
					    const char *spec,
					    enum vb_device_kind *kind)
{
	const struct vb_netif *n = NULL;
	const char *name;

	*kind = DEVICE_ROCE;
	name = cut_kind(spec, kind);
	if (!name)
		name = spec;
	for (unsigned i = 0; i < h->count; i++)
		if (strcmp(h->list[i].name, name) == 0)
			return &h->list[i];
	for (unsigned i = 0; name == spec && !n && i < VB_COUNT(kinds); i++) {
		*kind = (enum vb_device_kind)i;
		n = find_name(h, name, *kind);
	}
	return n;
}

static bool has_device(const struct vb_device *list, unsigned count,
		       uint32_t ifindex, enum vb_device_kind kind)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i].ifindex == ifindex && list[i].kind == kind)
			return true;
	return false;
}

/* Returns what is missing behind a word that only begins a SPEC; else "". */
static const char *lacks_interface(const char *spec)
{
	if (strcmp(spec, "iwarp") == 0)
		return "; iWARP takes one: iwarp:eth0";
	if (strcmp(spec, "rocev1") == 0)
		return "; RoCEv1 takes one: rocev1:eth0";
	return "";
}

static int add_spec(const struct interfaces *h, const char *spec,
		    struct vb_device *list, unsigned *count)
{
	enum vb_device_kind kind;
	const struct vb_netif *n = eng_find_spec(h, spec, &kind);

	if (!n) {
		vb_log(LOG_ERROR, "device %s: there is no such interface%s",
		       spec, lacks_interface(spec));
		return -ENODEV;
	}
	if (unfit(n)) {
		vb_log(LOG_ERROR, "device %s: interface %s %s", spec, n->name,
		       unfit(n));
		return -ENODEV;
	}
	if (!has_device(list, *count, n->ifindex, kind))
		eng_devices_describe(&list[(*count)++], h, n, kind);
	return 0;
}

/* Copy the first spec of @specs to @spec. Returns the rest, or NULL at the
 * end. */
static const char *cut_spec(const char *specs, char spec[SPEC_BYTES])
{
	size_t len = vb_spec_length(specs);

	snprintf(spec, SPEC_BYTES, "%.*s", (int)VB_MIN(len, SPEC_BYTES - 1u),
		 specs);
	return specs[len] ? specs + len + 1 : NULL;
}

static bool is_readable_spec(const char *spec)
{
	enum vb_device_kind kind;
	const char *name = cut_kind(spec, &kind);

	if (!name)
		name = spec;
	if (!*name || strlen(spec) >= NAME_BYTES)
		return false;
	for (; *name; name++)
		if (!isgraph((unsigned char)*name) || *name == '/' ||
		    *name == ':')
			return false;
	return true;
}

static bool is_place(const char *spec)
{
	return strncmp(spec, VB_FABRIC_PREFIX, strlen(VB_FABRIC_PREFIX)) == 0;
}

static unsigned count_specs(const char *specs)
{
	char spec[SPEC_BYTES];
	unsigned count = 0;

	for (; specs; count++)
		specs = cut_spec(specs, spec);
	return count;
}

/* Ask the fabric about the place. *@has_port: it is an adapter; switches and
 * routers have no queue pairs for programs. @spec: the device, for the log. 0;
 * -ENODEV: there is no such place (logged). */
static int find_place(const char *spec, struct vb_device_port *p,
		      bool *has_port)
{
	struct vb_umad_info info;
	int rc = vb_fabric_query(&p->place, p->place.port, &info);

	if (rc) {
		vb_log(LOG_ERROR, "device %s: %s", spec,
		       rc == -ECONNREFUSED ? "no such fabric runs"
		       : rc == -ENODEV	   ? "the fabric has no such node"
					   : strerror(-rc));
		return -ENODEV;
	}
	*has_port = info.has_port && info.kind == NODE_CA;
	p->kind = DEVICE_IB;
	p->guid = info.guid;
	return 0;
}

/* Add the adapter at a place in a fabric. The name has the place's @number, as
 * libibumad.so.3 counts. */
static int add_place(const char *spec, unsigned number, struct vb_device *list,
		     unsigned *count)
{
	struct vb_device *d = &list[*count];
	struct vb_device_port *p = &d->port[0];
	bool has_port;
	int rc;

	memset(d, 0, sizeof(*d));
	if (!vb_fabric_place_get(spec, strlen(spec), &p->place)) {
		vb_log(LOG_ERROR, "device %s: %s", spec, strerror(EINVAL));
		return -EINVAL;
	}
	p->place.port = 1;
	rc = find_place(spec, p, &has_port);
	if (rc || !has_port)
		return rc;
	d->kind = DEVICE_IB;
	d->port_count = 1;
	d->ifindex = number;
	d->guid = p->guid;
	snprintf(d->name, sizeof(d->name), "ib%u", number);
	++*count;
	return 0;
}

/* Fill in the Ethernet port of a VPI adapter. The interface may be down and
 * without an address, because the adapter has another port. */
static int find_vpi_interface(const struct interfaces *h, const char *spec,
			      const struct vb_vpi_port *from,
			      struct vb_device_port *p)
{
	for (unsigned i = 0; i < h->count; i++) {
		if (strcmp(h->list[i].name, from->netdev) != 0)
			continue;
		if (h->list[i].infiniband)
			break;
		eng_devices_port(p, &h->list[i],
				 from->kind == VPI_ROCEV1 ? DEVICE_ROCEV1
							  : DEVICE_ROCE);
		return 0;
	}
	vb_log(LOG_ERROR, "device %s: there is no Ethernet interface %s", spec,
	       from->netdev);
	return -ENODEV;
}

static int find_vpi_place(const char *spec, const struct vb_vpi_port *from,
			  struct vb_device_port *p)
{
	bool has_port;
	int rc;

	if (!from->place.node[0]) {
		vb_log(LOG_ERROR,
		       "device %s: only `verbena run` can join the fabric of "
		       "your own; name a node: ib:NODE",
		       spec);
		return -EINVAL;
	}
	p->place = from->place;
	rc = find_place(spec, p, &has_port);
	if (rc || has_port)
		return rc;
	vb_log(LOG_ERROR, "device %s: node %s has no port %u for programs",
	       spec, p->place.node, p->place.port);
	return -ENODEV;
}

/* Add a VPI adapter. Its GUID is that of its first InfiniBand port's node,
 * because a subnet manager knows the adapter by it; else that of its first
 * interface. */
static int add_vpi(const struct interfaces *h, const char *spec,
		   unsigned number, struct vb_device *list, unsigned *count)
{
	struct vb_device *d = &list[*count];
	char why[VB_VPI_WHY];
	struct vb_vpi vpi;
	int rc = 0;

	if (!vb_vpi_get(spec, strlen(spec), &vpi, why)) {
		vb_log(LOG_ERROR, "device %s: %s", spec, why);
		return -EINVAL;
	}
	memset(d, 0, sizeof(*d));
	for (unsigned i = 0; rc == 0 && i < VB_VPI_PORTS; i++)
		rc = vpi.port[i].kind == VPI_IB
			     ? find_vpi_place(spec, &vpi.port[i], &d->port[i])
			     : find_vpi_interface(h, spec, &vpi.port[i],
						  &d->port[i]);
	if (rc)
		return rc;
	d->kind = DEVICE_VPI;
	d->port_count = VB_VPI_PORTS;
	d->ifindex = number;
	d->guid = d->port[vpi.port[0].kind != VPI_IB &&
			  vpi.port[1].kind == VPI_IB]
			  .guid;
	snprintf(d->name, sizeof(d->name), "vpi%u", number);
	++*count;
	return 0;
}

static int add_interface(const struct interfaces *h, const char *spec,
			 struct vb_device *list, unsigned *count)
{
	if (is_readable_spec(spec))
		return add_spec(h, spec, list, count);
	vb_log(LOG_ERROR,
	       "device spec \"%s\": not an interface, roce:INTERFACE, "
	       "rocev1:INTERFACE, iwarp:INTERFACE, ib:NODE, vpi:PORT,PORT, or "
	       "a device's name",
	       spec);
	return -EINVAL;
}

static int add_specs(const struct interfaces *h, const char *specs,
		     struct vb_device *list, unsigned *count)
{
	unsigned places = 0, vpis = 0;
	char spec[SPEC_BYTES];
	int rc = 0;

	while (rc == 0 && specs) {
		specs = cut_spec(specs, spec);
		if (vb_vpi_is(spec, strlen(spec)))
			rc = add_vpi(h, spec, vpis++, list, count);
		else if (is_place(spec))
			rc = add_place(spec, places++, list, count);
		else
			rc = add_interface(h, spec, list, count);
	}
	return rc;
}

static int build_devices(const struct interfaces *h, const char *specs,
			 struct vb_device **list, unsigned *count)
{
	struct vb_device *l = calloc((size_t)h->count * VB_COUNT(kinds) + 1 +
					     count_specs(specs),
				     sizeof(*l));
	unsigned used = 0;
	int rc = 0;

	if (!l)
		return -ENOMEM;
	if (specs && *specs)
		rc = add_specs(h, specs, l, &used);
	else
		used = eng_devices_add_all(h, l);
	if (rc) {
		free(l);
		return rc;
	}
	*list = l;
	*count = used;
	return 0;
}

int vb_devices_list(const char *specs, struct vb_device **list, unsigned *count)
{
	struct interfaces h;
	int rc = vb_netif_list(&h.list, &h.count);

	if (rc)
		return rc;
	rc = build_devices(&h, specs, list, count);
	vb_netif_free(h.list, h.count);
	return rc;
}
