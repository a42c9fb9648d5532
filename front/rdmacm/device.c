/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of the process, and the choice of a device for a local
 * address. */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Fills in the limits and the kind of a port, of a device with the limits
 * @a. */
static void describe(struct rcm_device *d, const struct ibv_device_attr *a)
{
	struct ibv_port_attr p = { 0 };

	d->max_resources = (uint8_t)VB_MIN(a->max_qp_rd_atom, 255);
	d->max_depth = (uint8_t)VB_MIN(a->max_qp_init_rd_atom, 255);
	d->mtu = ibv_query_port(d->verbs, d->port, &p) == 0
			 ? (uint8_t)p.active_mtu
			 : IBV_MTU_1024;
	d->guid = be64toh(ibv_get_device_guid(d->verbs->device));
	d->iwarp = d->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	d->ib = p.link_layer == IBV_LINK_LAYER_INFINIBAND;
	rcm.has_iwarp |= d->iwarp;
	rcm.has_ib |= d->ib;
	/* An adapter of a fabric does not count: has_roce makes the broker take
	 * UDP port 4791, which such an adapter does not need. */
	rcm.has_roce |= !d->iwarp && !d->ib;
}

/* Reads which version of RoCE connections use where a device has both, as
 * default_roce_mode of Linux's configfs says. */
static uint8_t default_rule(void)
{
	const char *type = getenv("VERBENA_CM_GID_TYPE");

	if (type && strcmp(type, "v1") == 0)
		return RCM_GID_PREFERS_V1;
	if (type && *type && strcmp(type, "v2") != 0)
		vb_log(LOG_WARN,
		       "rdmacm: VERBENA_CM_GID_TYPE is \"%s\", and neither v1 "
		       "nor v2; connections use RoCEv2",
		       type);
	return RCM_GID_V2;
}

/* Adds the ports of an open device. False: no memory. */
static bool add_ports(struct ibv_context *verbs)
{
	struct ibv_device_attr a = { 0 };
	struct rcm_device *more;

	if (ibv_query_device(verbs, &a) || a.phys_port_cnt == 0)
		a.phys_port_cnt = 1;
	more = reallocarray(rcm.devices, rcm.device_count + a.phys_port_cnt,
			    sizeof(*more));
	if (!more)
		return false;
	rcm.devices = more;
	for (uint8_t port = 1; port <= a.phys_port_cnt; port++) {
		struct rcm_device *d = &more[rcm.device_count++];

		*d = (struct rcm_device){ .verbs = verbs, .port = port };
		describe(d, &a);
	}
	return true;
}

/* The devices stay open for the life of the process, because programs keep the
 * pointers that rdma_get_devices() returns. */
int rcm_devices_open(void)
{
	int count = 0, rc = 0;
	struct ibv_device **list;

	if (rcm.devices)
		return 0;
	rcm.gid_rule = default_rule();
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	for (int i = 0; i < count; i++) {
		struct ibv_context *verbs = ibv_open_device(list[i]);

		if (verbs && !add_ports(verbs))
			ibv_close_device(verbs);
	}
	ibv_free_device_list(list);
	rcm_removals_watch();
	if (rcm.device_count == 0) {
		free(rcm.devices);
		rcm.devices = NULL;
		rc = -ENODEV;
	}
	return rc;
}

/* Rates the type of a GID for connections under the rule @rule: 0: it is not to
 * be used; else more is better. */
static unsigned rate_type(const struct ibv_gid_entry *e, uint8_t rule)
{
	static const uint8_t rates[][2] = {
		/* columns: every other type of GID, and that of RoCEv1 */
		[RCM_GID_V2] = { 1, 0 },
		[RCM_GID_PREFERS_V1] = { 1, 2 },
		[RCM_GID_V1] = { 0, 1 },
	};

	return rates[rule][e->gid_type == IBV_GID_TYPE_ROCE_V1];
}

/* True if @gid is in the GID table of the port with a type that @rule permits.
 * Then this function has set *@found to the best entry and has read the path
 * MTU of the device again. */
static bool has_gid(struct rcm_device *d, const struct vb_gid *gid,
		    uint8_t rule, struct ibv_gid_entry *found)
{
	struct ibv_gid_entry e;
	struct ibv_port_attr p;
	unsigned best = 0;

	if (ibv_query_port(d->verbs, d->port, &p))
		return false;
	for (uint32_t i = 0; i < (uint32_t)p.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(d->verbs, d->port, i, &e, 0) ||
		    memcmp(e.gid.raw, gid->raw, 16) != 0 ||
		    rate_type(&e, rule) <= best)
			continue;
		best = rate_type(&e, rule);
		*found = e;
	}
	d->mtu = (uint8_t)p.active_mtu;
	return best > 0;
}

static bool is_address(const struct ifaddrs *i, const struct vb_gid *address)
{
	struct vb_gid gid;

	if (!i->ifa_addr || rcm_address_bytes(i->ifa_addr) == 0)
		return false;
	gid = rcm_gid_of(i->ifa_addr);
	return vb_gid_equal(&gid, address);
}

bool rcm_device_first_gid(const struct rcm_device *d, struct ibv_gid_entry *e)
{
	return ibv_query_gid_ex(d->verbs, d->port, 0, e, 0) == 0;
}

/* Looks for @gid among the IP addresses of an iWARP device's interface, because
 * the GID of such a device is made of its MAC address. */
static bool has_interface(const struct rcm_device *d, const struct vb_gid *gid,
			  struct ibv_gid_entry *found)
{
	struct ifaddrs *list, *i;

	if (!rcm_device_first_gid(d, found) || getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (is_address(i, gid) &&
		    if_nametoindex(i->ifa_name) == found->ndev_ifindex)
			break;
	freeifaddrs(list);
	return i;
}

static bool is_of_kind(const struct rcm_device *d, enum rcm_kind kind)
{
	switch (kind) {
	case RCM_ROCE:
		return !d->iwarp && !d->ib;
	case RCM_IWARP:
		return d->iwarp;
	case RCM_IB:
		return d->ib;
	case RCM_CM:
		return !d->iwarp;
	default:
		return true;
	}
}

/* Can this process make connections by @d? The adapter of a fabric must also be
 * known to the broker, which is its connection manager. */
static bool is_connectable(const struct rcm_device *d)
{
	return !d->ib || d->place;
}

static bool has_address(struct rcm_device *d, const struct vb_gid *gid,
			enum rcm_kind kind, uint8_t rule,
			struct ibv_gid_entry *found)
{
	if (!is_of_kind(d, kind) || !is_connectable(d))
		return false;
	return d->iwarp ? has_interface(d, gid, found)
			: has_gid(d, gid, rule, found);
}

/* Does @d have queue pairs of the type of @id? An iWARP device has only
 * reliable connections. */
static bool serves(const struct rcm_device *d, const struct rcm_id *id)
{
	return !d->iwarp || id->pub.qp_type == IBV_QPT_RC;
}

/* Sets the device of @id, unless the device has been removed since the caller
 * read @removals. removal.c tells all ids of a device under the same lock, so
 * each id either gets DEVICE_REMOVAL or does not get the device. */
static bool take_device(struct rcm_id *id, struct rcm_device *d,
			unsigned removals)
{
	bool stays;

	pthread_mutex_lock(&rcm.lock);
	stays = atomic_load(&d->removals) == removals;
	if (stays)
		id->device = d;
	pthread_mutex_unlock(&rcm.lock);
	return stays;
}

/* More than rate_gid() returns: the type of a GID counts more. */
#define TYPE_COUNTS 16

/*
 * Rates a GID as the local address of a path to this host itself; more is
 * better. What counts most is that it is an IP address of the interface, which
 * GID 0, @first, need not be; then that it is not link-local, because such an
 * address needs an interface index beside it; and last that it has the address
 * family of @wanted.
 */
static unsigned rate_gid(const struct ibv_gid_entry *e,
			 const struct ibv_gid_entry *first,
			 const struct vb_gid *wanted)
{
	bool is_address = memcmp(&e->gid, &first->gid, sizeof(e->gid)) != 0;
	struct vb_gid gid;

	memcpy(gid.raw, e->gid.raw, sizeof(gid.raw));
	return 1u + 4u * is_address + 2u * !vb_gid_is_link_local(&gid) +
	       (vb_gid_is_ipv4(&gid) == vb_gid_is_ipv4(wanted));
}

/* True if the device can carry a path to this host itself; then *@found is the
 * GID that both ends of the path use. */
static bool leads_home(struct rcm_device *d, const struct vb_gid *wanted,
		       enum rcm_kind kind, uint8_t rule,
		       struct ibv_gid_entry *found)
{
	struct ibv_gid_entry e, first;
	struct ibv_port_attr p;
	unsigned best = 0, rate, type;

	if (!is_of_kind(d, kind) || !is_connectable(d) ||
	    ibv_query_port(d->verbs, d->port, &p) || p.state != IBV_PORT_ACTIVE)
		return false;
	if (d->iwarp)
		return rcm_device_first_gid(d, found);
	if (!rcm_device_first_gid(d, &first))
		return false;
	for (uint32_t i = 0; i < (uint32_t)p.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(d->verbs, d->port, i, &e, 0))
			continue;
		type = rate_type(&e, rule);
		if (type == 0)
			continue;
		rate = TYPE_COUNTS * type + rate_gid(&e, &first, wanted);
		if (rate <= best)
			continue;
		best = rate;
		*found = e;
	}
	d->mtu = (uint8_t)p.active_mtu;
	return best > 0;
}

/* Returns the entry of the device's first port. */
static struct rcm_device *first_port(const struct rcm_device *d)
{
	unsigned i = 0;

	while (rcm.devices[i].verbs != d->verbs)
		i++;
	return &rcm.devices[i];
}

/* Returns the protection domain of all ports of the device; NULL: it could not
 * be made. */
static struct ibv_pd *device_pd(const struct rcm_device *d)
{
	struct rcm_device *first = first_port(d);

	if (!first->pd)
		first->pd = ibv_alloc_pd(first->verbs);
	return first->pd;
}

/* Fills in the fields of @id that follow from its device: GID, interface,
 * context and protection domain. */
static void use_gid(struct rcm_id *id, const struct ibv_gid_entry *e,
		    const struct vb_gid *src)
{
	struct rcm_device *d = id->device;

	rcm_why_served();
	/* there is no session whose thread watches removals */
	if (!rcm.has_roce && !rcm.has_ib)
		rcm_iw_watch();
	if (!d->pd)
		d->pd = device_pd(d);
	id->gid_index = (uint8_t)e->gid_index;
	id->v1 = e->gid_type == IBV_GID_TYPE_ROCE_V1;
	id->path.place = d->place;
	id->path.ifindex = e->ndev_ifindex;
	id->path.src = *src;
	if (!d->iwarp) /* the GID of an iWARP device is not an address */
		memcpy(id->path.src.raw, e->gid.raw, sizeof(id->path.src.raw));
	id->pub.verbs = d->verbs;
	id->pub.port_num = d->port;
	if (!id->pub.pd)
		id->pub.pd = d->pd;
}

typedef bool (*fitness)(struct rcm_device *d, const struct vb_gid *src,
			enum rcm_kind kind, uint8_t rule,
			struct ibv_gid_entry *found);

/* Chooses for @id the first device in the list for which @fits is true. So a
 * user who has two devices on one interface can choose by their order in
 * VERBENA_DEVICES. */
static int choose(struct rcm_id *id, const struct vb_gid *src,
		  enum rcm_kind kind, fitness fits)
{
	struct ibv_gid_entry e;
	int rc = -ENODEV;

	for (unsigned i = 0; i < rcm.device_count; i++) {
		struct rcm_device *d = &rcm.devices[i];
		unsigned removals = atomic_load(&d->removals);

		if (!fits(d, src, kind, id->gid_rule, &e))
			continue;
		if (!serves(d, id)) {
			rc = -EOPNOTSUPP;
			continue;
		}
		if (!take_device(id, d, removals))
			continue;
		use_gid(id, &e, src);
		return 0;
	}
	return rc;
}

int rcm_device_choose(struct rcm_id *id, const struct vb_gid *src,
		      enum rcm_kind kind)
{
	return choose(id, src, kind, has_address);
}

bool rcm_device_is_ib(const struct vb_gid *gid)
{
	struct ibv_gid_entry e;

	for (unsigned i = 0; i < rcm.device_count; i++)
		if (has_address(&rcm.devices[i], gid, RCM_IB, RCM_GID_V2, &e))
			return true;
	return false;
}

int rcm_device_choose_home(struct rcm_id *id, const struct vb_gid *src,
			   enum rcm_kind kind)
{
	return choose(id, src, kind, leads_home);
}

int rcm_device_choose_place(struct rcm_id *id, const struct vb_gid *src,
			    uint8_t place)
{
	for (unsigned i = 0; i < rcm.device_count; i++) {
		struct rcm_device *d = &rcm.devices[i];
		unsigned removals = atomic_load(&d->removals);
		struct ibv_gid_entry e;

		if (!d->ib || d->place != place ||
		    !has_gid(d, src, RCM_GID_V2, &e) ||
		    !take_device(id, d, removals))
			continue;
		use_gid(id, &e, src);
		return 0;
	}
	return -ENODEV;
}

struct rcm_device *rcm_device_sibling(const struct rcm_id *id,
				      const struct vb_gid *gid, uint8_t place,
				      struct ibv_gid_entry *e)
{
	for (unsigned i = 0; i < rcm.device_count; i++) {
		struct rcm_device *d = &rcm.devices[i];

		if (d->ib && d->place && d->verbs == id->pub.verbs &&
		    (!place || d->place == place) &&
		    has_gid(d, gid, RCM_GID_V2, e))
			return d;
	}
	return NULL;
}

/* Rates @gid of an active port as the source of a path to @dst: 2 if it is @dst
 * itself, 1 if it has the same subnet prefix, else 0. */
static unsigned rate_source(const union ibv_gid *gid, const struct vb_gid *dst)
{
	if (memcmp(gid->raw, dst->raw, sizeof(dst->raw)) == 0)
		return 2;
	return memcmp(gid->raw, dst->raw, sizeof(dst->raw) / 2) == 0;
}

/* Finds the best GID of @d for a path to @dst that is better than *@best. */
static void improve_source(const struct rcm_device *d, const struct vb_gid *dst,
			   struct vb_gid *src, unsigned *best)
{
	struct ibv_port_attr p;
	struct ibv_gid_entry e;

	if (ibv_query_port(d->verbs, d->port, &p) || p.state != IBV_PORT_ACTIVE)
		return;
	for (uint32_t i = 0; i < (uint32_t)p.gid_tbl_len; i++) {
		unsigned rate;

		if (ibv_query_gid_ex(d->verbs, d->port, i, &e, 0))
			continue;
		rate = rate_source(&e.gid, dst);
		if (rate <= *best)
			continue;
		*best = rate;
		memcpy(src->raw, e.gid.raw, sizeof(src->raw));
	}
}

bool rcm_device_source(const struct vb_gid *dst, struct vb_gid *src)
{
	unsigned best = 0;

	for (unsigned i = 0; i < rcm.device_count; i++)
		if (rcm.devices[i].ib && rcm.devices[i].place)
			improve_source(&rcm.devices[i], dst, src, &best);
	return best > 0;
}

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int rc = rcm_session_start(), count = 0;

	if (rc == 0)
		list = calloc(rcm.device_count + 1, sizeof(*list));
	for (unsigned i = 0; list && i < rcm.device_count; i++)
		if (rcm.devices[i].port == 1)
			list[count++] = rcm.devices[i].verbs;
	if (!list)
		(void)rcm_fail(rc ? -rc : ENOMEM);
	if (num_devices)
		*num_devices = count;
	return list;
}

VB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
