/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids find their device, their GID, their port, and the way to a peer. */
#include "front/rdmacm/rdmacm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define HOP_LIMIT 64
#define ACK_TIMEOUT                                                            \
	19 /* packet life time 18, and one more (docs/WIRE.md 3.2) */
#define ANY_UDP_PORT 4791

static void describe(struct rcm_device *d)
{
	struct ibv_device_attr a = { 0 };
	struct ibv_port_attr p = { 0 };

	if (ibv_query_device(d->verbs, &a) == 0) {
		d->max_resources = (uint8_t)VB_MIN(a.max_qp_rd_atom, 255);
		d->max_depth = (uint8_t)VB_MIN(a.max_qp_init_rd_atom, 255);
	}
	d->mtu = ibv_query_port(d->verbs, 1, &p) == 0 ? (uint8_t)p.active_mtu
						      : IBV_MTU_1024;
	d->guid = be64toh(ibv_get_device_guid(d->verbs->device));
	d->iwarp = d->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	rcm.has_iwarp |= d->iwarp;
	rcm.has_roce |= !d->iwarp;
}

/* Kept for the life of the process, as programs hold pointers to them. */
int rcm_devices_open(void)
{
	int count = 0, rc = 0;
	struct ibv_device **list;

	if (rcm.devices)
		return 0;
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	rcm.devices = calloc((size_t)count + 1, sizeof(*rcm.devices));
	for (int i = 0; rcm.devices && i < count; i++) {
		struct rcm_device *d = &rcm.devices[rcm.device_count];

		d->verbs = ibv_open_device(list[i]);
		if (!d->verbs)
			continue;
		describe(d);
		rcm.device_count++;
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

static bool has_gid(struct rcm_device *d, const struct vb_gid *gid,
		    struct ibv_gid_entry *found)
{
	struct ibv_port_attr p;

	if (ibv_query_port(d->verbs, 1, &p))
		return false;
	for (uint32_t i = 0; i < (uint32_t)p.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(d->verbs, 1, i, found, 0))
			continue;
		if (memcmp(found->gid.raw, gid->raw, 16) == 0) {
			d->mtu = (uint8_t)p.active_mtu;
			return true;
		}
	}
	return false;
}

static bool is_address(const struct ifaddrs *i, const struct vb_gid *address)
{
	struct vb_gid gid;

	if (!i->ifa_addr || rcm_address_bytes(i->ifa_addr) == 0)
		return false;
	gid = rcm_gid_of(i->ifa_addr);
	return vb_gid_equal(&gid, address);
}

/* It says which interface is the device's; that may have been made anew. */
static bool has_first_gid(const struct rcm_device *d, struct ibv_gid_entry *e)
{
	return ibv_query_gid_ex(d->verbs, 1, 0, e, 0) == 0;
}

/* An RNIC's GIDs say nothing of addresses: its interface does. */
static bool has_interface(const struct rcm_device *d, const struct vb_gid *gid,
			  struct ibv_gid_entry *found)
{
	struct ifaddrs *list, *i;

	if (!has_first_gid(d, found) || getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (is_address(i, gid) &&
		    if_nametoindex(i->ifa_name) == found->ndev_ifindex)
			break;
	freeifaddrs(list);
	return i;
}

static bool has_address(struct rcm_device *d, const struct vb_gid *gid,
			enum rcm_kind kind, struct ibv_gid_entry *found)
{
	if (kind != RCM_ANY && d->iwarp != (kind == RCM_IWARP))
		return false;
	return d->iwarp ? has_interface(d, gid, found) : has_gid(d, gid, found);
}

/* An RNIC has connections only. */
static bool serves(const struct rcm_device *d, const struct rcm_id *id)
{
	return !d->iwarp || id->pub.qp_type == IBV_QPT_RC;
}

/* Whoever chooses a device hears of its going, or does not choose it: it may
 * have gone (removal.c) since its addresses were looked at. */
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

/*
 * What address of a device's a way to this host itself is to have: one that
 * the interface has, as GID 0 may be none; one that needs no interface beside
 * it; one of the family that was asked for.
 */
static unsigned rate_gid(const struct ibv_gid_entry *e,
			 const struct vb_gid *wanted)
{
	struct vb_gid gid;

	memcpy(gid.raw, e->gid.raw, sizeof(gid.raw));
	return 1u + 4u * (e->gid_index > 0) + 2u * !vb_gid_is_link_local(&gid) +
	       (vb_gid_is_ipv4(&gid) == vb_gid_is_ipv4(wanted));
}

static bool leads_home(struct rcm_device *d, const struct vb_gid *wanted,
		       enum rcm_kind kind, struct ibv_gid_entry *found)
{
	struct ibv_gid_entry e;
	struct ibv_port_attr p;
	unsigned best = 0, rate;

	if ((kind != RCM_ANY && d->iwarp != (kind == RCM_IWARP)) ||
	    ibv_query_port(d->verbs, 1, &p) || p.state != IBV_PORT_ACTIVE)
		return false;
	if (d->iwarp)
		return has_first_gid(d, found);
	for (uint32_t i = 0; i < (uint32_t)p.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(d->verbs, 1, i, &e, 0))
			continue;
		rate = rate_gid(&e, wanted);
		if (rate <= best)
			continue;
		best = rate;
		*found = e;
	}
	d->mtu = (uint8_t)p.active_mtu;
	return best > 0;
}

static void settle(struct rcm_id *id, const struct ibv_gid_entry *e,
		   const struct vb_gid *src)
{
	struct rcm_device *d = id->device;

	if (!rcm.has_roce) /* there is no session, which would hear */
		rcm_iw_watch();
	if (!d->pd)
		d->pd = ibv_alloc_pd(d->verbs);
	id->gid_index = (uint8_t)e->gid_index;
	id->way.ifindex = e->ndev_ifindex;
	id->way.src = *src;
	if (!d->iwarp) /* whose GIDs are no addresses */
		memcpy(id->way.src.raw, e->gid.raw, sizeof(id->way.src.raw));
	id->pub.verbs = d->verbs;
	id->pub.port_num = 1;
	if (!id->pub.pd)
		id->pub.pd = d->pd;
}

typedef bool (*fitness)(struct rcm_device *d, const struct vb_gid *src,
			enum rcm_kind kind, struct ibv_gid_entry *found);

/* Of two devices on one interface the first is taken: the program's user says
 * which that is. */
static int choose(struct rcm_id *id, const struct vb_gid *src,
		  enum rcm_kind kind, fitness fits)
{
	struct ibv_gid_entry e;
	int rc = -ENODEV;

	for (unsigned i = 0; i < rcm.device_count; i++) {
		struct rcm_device *d = &rcm.devices[i];
		unsigned removals = atomic_load(&d->removals);

		if (!fits(d, src, kind, &e))
			continue;
		if (!serves(d, id)) {
			rc = -EOPNOTSUPP;
			continue;
		}
		if (!take_device(id, d, removals))
			continue;
		settle(id, &e, src);
		return 0;
	}
	return rc;
}

int rcm_device_choose(struct rcm_id *id, const struct vb_gid *src,
		      enum rcm_kind kind)
{
	return choose(id, src, kind, has_address);
}

int rcm_device_choose_home(struct rcm_id *id, const struct vb_gid *src,
			   enum rcm_kind kind)
{
	return choose(id, src, kind, leads_home);
}

static uint8_t type_of(const struct rcm_id *id)
{
	switch (id->pub.qp_type) {
	case IBV_QPT_UD:
		return IPC_CM_UD;
	case IBV_QPT_UC:
		return IPC_CM_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return IPC_CM_XRC;
	default:
		return IPC_CM_RC;
	}
}

static int bind_in_broker(struct rcm_id *id, const struct sockaddr *a,
			  uint16_t *port)
{
	const struct vb_ipc_cm close = rcm_message(id, IPC_CM_CLOSE);
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_BIND), answer;
	int rc;

	m.space = id->space;
	m.type = type_of(id);
	m.src = rcm_gid_of(a);
	m.src_port = *port;
	m.flags = id->flags;
	m.guid = id->ticket;
	m.ifindex = id->way.ifindex;
	rc = rcm_session_ask(&m, &answer);
	if (rc == -ETIMEDOUT) /* the broker may bind it yet */
		(void)!rcm_session_tell(&close);
	if (rc == -ENOBUFS)
		vb_log(LOG_WARN,
		       "rdmacm: this user's programs have all that the broker "
		       "gives one user: %u ports or %u ids",
		       VB_IPC_CM_USER_PORTS, VB_IPC_CM_USER_IDS);
	if (rc)
		return rc;
	id->in_broker = true;
	*port = answer.src_port;
	return 0;
}

/* A device that is known says where the port is; else it is wherever there are
 * devices. */
static int take_port(struct rcm_id *id, const struct sockaddr *a)
{
	bool tcp = id->device ? id->device->iwarp
			      : rcm.has_iwarp && a->sa_family != AF_IB &&
					id->pub.qp_type == IBV_QPT_RC;
	bool broker = id->device ? !id->device->iwarp : rcm.has_roce;
	int rc = tcp ? rcm_iw_bind(id, a, &id->port) : 0;

	if (rc == 0 && broker)
		rc = bind_in_broker(id, a, &id->port);
	if (rc && id->tcp >= 0) {
		close(id->tcp);
		id->tcp = -1;
	}
	return rc;
}

/* What AF_IB's have to do with is the InfiniBand connection manager's. */
static enum rcm_kind kind_of(const struct sockaddr *a)
{
	return a->sa_family == AF_IB ? RCM_ROCE : RCM_ANY;
}

/* Datagrams at any address of an RNIC's, which has connections only; or what
 * AF_IB wants, for which there is no device at all. */
static int nowhere(const struct sockaddr *a)
{
	return rcm.has_iwarp && kind_of(a) == RCM_ANY ? -EOPNOTSUPP : -ENODEV;
}

int rcm_bind(struct rcm_id *id, const struct sockaddr *a)
{
	int rc = rcm_space_of(a, id->pub.ps);

	if (rc < 0)
		return rc;
	id->space = (uint16_t)rc;
	id->flags =
		(uint8_t)(a->sa_family == AF_IB ? id->flags | IPC_CM_PLAIN
						: id->flags & ~IPC_CM_PLAIN);
	id->port = rcm_port_of(a);
	rc = take_port(id, a);
	if (rc)
		return rc;
	if (!id->in_broker && id->tcp < 0 && !id->stream)
		return nowhere(a);
	id->state = RCM_BOUND;
	memcpy(&id->pub.route.addr.src_storage, a, rcm_address_bytes(a));
	if (a->sa_family == AF_IB) {
		const struct vb_gid gid = rcm_gid_of(a);

		rcm_address_of_ib(&id->pub.route.addr.src_addr, &gid, id->space,
				  id->port);
	}
	rcm_port_set(&id->pub.route.addr.src_addr, id->port);
	return 0;
}

/* What the host's routing says: the address to send from. -errno */
static int find_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	socklen_t len = sizeof(*src);
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, dst, rcm_address_bytes(dst)) < 0 ||
	    getsockname(fd, (struct sockaddr *)src, &len) < 0)
		rc = -errno;
	close(fd);
	rcm_port_set((struct sockaddr *)src, 0);
	return rc;
}

/* A GID is an IP address, and so has a way. One of the link says with its
 * scope which link that is; else it is the first device's. */
static int find_source_of_gid(const struct sockaddr_ib *dst,
			      struct sockaddr_storage *src)
{
	struct vb_gid gid = rcm_gid_of((const struct sockaddr *)dst);
	struct sockaddr_storage ip;
	uint32_t link = (uint32_t)dst->sib_scope_id;
	struct ibv_gid_entry e;
	int rc;

	/* A child of fork has no device. */
	if (!link && rcm.device_count && has_first_gid(&rcm.devices[0], &e))
		link = e.ndev_ifindex;
	rcm_address_of((struct sockaddr *)&ip, &gid, ANY_UDP_PORT, link);
	rc = find_source((struct sockaddr *)&ip, src);
	if (rc)
		return rc;
	gid = rcm_gid_of((struct sockaddr *)src);
	rcm_address_of_ib((struct sockaddr *)src, &gid, 0, 0);
	return 0;
}

static int route_to(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_storage to = { 0 };

	if (dst->sa_family == AF_IB)
		return find_source_of_gid((const struct sockaddr_ib *)dst, src);
	memcpy(&to, dst, rcm_address_bytes(dst));
	rcm_port_set((struct sockaddr *)&to, ANY_UDP_PORT);
	return find_source((struct sockaddr *)&to, src);
}

/* Is it no address of this host's? The routes know: bind() takes any address
 * where net.ipv4.ip_nonlocal_bind is set. */
static bool is_strange(const struct sockaddr *a)
{
	const struct vb_gid gid = rcm_gid_of(a);
	struct sockaddr_storage own;
	struct vb_gid from;

	if (a->sa_family == AF_IB)
		return false;
	if (route_to(a, &own))
		return true;
	from = rcm_gid_of((struct sockaddr *)&own);
	return !vb_gid_equal(&from, &gid);
}

/* -EADDRNOTAVAIL: there is no such address here; -ENODEV: no device has it. */
static int choose_at(struct rcm_id *id, const struct sockaddr *a,
		     enum rcm_kind kind)
{
	const struct vb_gid gid = rcm_gid_of(a);
	int rc = rcm_device_choose(id, &gid, kind);

	return rc == -ENODEV && is_strange(a) ? -EADDRNOTAVAIL : rc;
}

/*
 * As in Linux, a loopback address chooses no device: libfabric binds to
 * "localhost" to be told of all devices. Where loopback's is the only one, as
 * in a container without a network, it is chosen: libfabric looks for no
 * addresses on such an interface and would find none.
 */
static int choose_for(struct rcm_id *id, const struct sockaddr *a)
{
	const struct vb_gid gid = rcm_gid_of(a);

	if (rcm_address_is_any(a))
		return 0;
	if (!rcm_address_is_loopback(a))
		return choose_at(id, a, kind_of(a));
	if (rcm.device_count == 1)
		(void)rcm_device_choose(id, &gid, kind_of(a));
	return 0;
}

VB_EXPORT int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (rcm_address_bytes(addr) == 0 || id->state != RCM_NEW)
		return rcm_fail(EINVAL);
	rc = choose_for(id, addr);
	if (rc == 0)
		rc = rcm_bind(id, addr);
	return rc ? rcm_fail(-rc) : 0;
}

/* Where we send from: as the caller says, as bound before, or as routing
 * says. */
static int choose_source(struct rcm_id *id, const struct sockaddr *src,
			 const struct sockaddr *dst,
			 struct sockaddr_storage *from)
{
	const struct sockaddr *bound = &id->pub.route.addr.src_addr;

	memset(from, 0, sizeof(*from));
	if (id->state == RCM_BOUND && bound->sa_family != dst->sa_family)
		return -EINVAL;
	if (id->state == RCM_BOUND && !rcm_address_is_any(bound))
		src = bound;
	if (!src || rcm_address_is_any(src))
		return route_to(dst, from);
	if (src->sa_family != dst->sa_family)
		return -EINVAL;
	memcpy(from, src, rcm_address_bytes(src));
	return 0;
}

/*
 * As in Linux: a loopback address that no device has leads through a device
 * all the same, to this host and nowhere else. To an address of a device it
 * leads through that one.
 */
static int choose_way(struct rcm_id *id, const struct sockaddr *from,
		      const struct sockaddr *dst)
{
	const struct vb_gid own = rcm_gid_of(from), to = rcm_gid_of(dst);
	const enum rcm_kind kind = kind_of(dst);
	int rc;

	if (!vb_gid_is_loopback(&own))
		return choose_at(id, from, kind);
	rc = rcm_device_choose(id, &own, kind);
	if (rc != -ENODEV)
		return rc;
	return vb_gid_is_loopback(&to) ? rcm_device_choose_home(id, &own, kind)
				       : rcm_device_choose(id, &to, kind);
}

/* The device has been chosen. What the program calls the ends, the other's
 * program shall call them, too. */
static void name_ends(struct rcm_id *id, const struct vb_gid *from,
		      const struct vb_gid *to)
{
	static const struct vb_gid none;
	struct vb_ipc_cm *w = &id->way;

	w->src_name = w->dst_name = none;
	w->dst = *to;
	if (id->device->iwarp)
		return;
	if (vb_gid_is_loopback(to))
		w->dst = w->src;
	if (!vb_gid_equal(to, &w->dst))
		w->dst_name = *to;
	if (!vb_gid_equal(from, &w->src))
		w->src_name = *from;
}

static int resolve(struct rcm_id *id, const struct sockaddr *src,
		   const struct sockaddr *dst)
{
	struct sockaddr_storage from;
	struct vb_gid gid, to;
	int rc = rcm_space_of(dst, id->pub.ps);

	if (rc < 0)
		return rc;
	id->way.space = (uint16_t)rc;
	rc = choose_source(id, src, dst, &from);
	if (rc)
		return rc;
	gid = rcm_gid_of((struct sockaddr *)&from);
	rc = choose_way(id, (struct sockaddr *)&from, dst);
	if (rc == 0 && id->state == RCM_NEW)
		rc = rcm_bind(id, (struct sockaddr *)&from);
	if (rc)
		return rc;
	if (dst->sa_family == AF_IB)
		rcm_address_of_ib(&id->pub.route.addr.src_addr, &gid, id->space,
				  id->port);
	else
		rcm_address_of(&id->pub.route.addr.src_addr, &gid, id->port,
			       id->way.ifindex);
	memcpy(&id->pub.route.addr.dst_storage, dst, rcm_address_bytes(dst));
	id->way.flags = id->flags & IPC_CM_PLAIN;
	to = rcm_gid_of(dst);
	name_ends(id, &gid, &to);
	id->way.dst_port = rcm_port_of(dst);
	id->way.hop_limit = HOP_LIMIT;
	id->way.flow_label = (id->port * 31u + id->way.dst_port) & 0xfffff;
	id->way.mtu = id->device->mtu;
	memcpy(id->pub.route.addr.addr.ibaddr.sgid.raw, id->way.src.raw, 16);
	memcpy(id->pub.route.addr.addr.ibaddr.dgid.raw, id->way.dst.raw, 16);
	id->pub.route.addr.addr.ibaddr.pkey = htobe16(0xffff);
	id->state = RCM_RESOLVED;
	return 0;
}

VB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *pub,
				struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (!dst_addr || rcm_address_bytes(dst_addr) == 0)
		return rcm_fail(EINVAL);
	if (id->state != RCM_NEW && id->state != RCM_BOUND)
		return rcm_fail(EINVAL);
	rc = resolve(id, src_addr, dst_addr);
	if (rc == -EADDRINUSE || rc == -EINVAL || rc == -EPROTONOSUPPORT)
		return rcm_fail(-rc);
	rc = rcm_event_local(
		id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
		rc);
	return rc ? rcm_fail(-rc) : rcm_event_complete(id);
}

/* What a subnet administrator would say of the path. */
static void describe_path(struct rcm_id *id)
{
	struct ibv_sa_path_rec *p = calloc(1, sizeof(*p));

	if (!p)
		return;
	memcpy(p->dgid.raw, id->way.dst.raw, 16);
	memcpy(p->sgid.raw, id->way.src.raw, 16);
	p->flow_label = htobe32(id->way.flow_label);
	p->hop_limit = id->way.hop_limit;
	p->traffic_class = id->way.tclass;
	p->reversible = 1;
	p->numb_path = 1;
	p->pkey = htobe16(0xffff);
	p->mtu = id->way.mtu;
	p->packet_life_time = id->way.ack_timeout ? id->way.ack_timeout - 1 : 0;
	free(id->pub.route.path_rec);
	id->pub.route.path_rec = p;
	id->pub.route.num_paths = 1;
}

static int take_route(struct rcm_id *id)
{
	id->way.ack_timeout = id->timeout_set ? id->ack_timeout : ACK_TIMEOUT;
	if (!rcm_is_iwarp(id)) /* as on Linux: TCP finds its way */
		describe_path(id);
	id->state = RCM_ROUTED;
	return rcm_event_local(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

VB_EXPORT int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (id->state != RCM_RESOLVED)
		return rcm_fail(EINVAL);
	id->way.tclass = id->tos;
	rc = take_route(id);
	return rc ? rcm_fail(-rc) : rcm_event_complete(id);
}

/* As Linux: of all that are given, the one that serves for everything. */
static bool choose_path(const void *value, size_t len, struct ibv_path_data *d)
{
	const uint32_t all = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			     IBV_PATH_FLAG_BIDIRECTIONAL;
	const uint8_t *at = value;

	if (!value || len % sizeof(*d))
		return false;
	for (; len; len -= sizeof(*d), at += sizeof(*d)) {
		memcpy(d, at, sizeof(*d));
		if (d->flags == all)
			return true;
	}
	return false;
}

/* What of a path there is a choice in: where it leads is settled. */
int rcm_path_set(struct rcm_id *id, const void *value, size_t len)
{
	struct ibv_path_data d;
	uint32_t label;

	if (id->state != RCM_RESOLVED || rcm_is_iwarp(id) ||
	    !choose_path(value, len, &d))
		return -EINVAL;
	if (memcmp(d.path.dgid.raw, id->way.dst.raw, 16) != 0 ||
	    memcmp(d.path.sgid.raw, id->way.src.raw, 16) != 0)
		return -EINVAL;
	label = be32toh(d.path.flowlabel_hoplimit);
	id->way.flow_label = label >> 8 & 0xfffff;
	id->way.tclass = d.path.tclass;
	return take_route(id);
}

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int rc = rcm_session_start();

	if (rc == 0)
		list = calloc(rcm.device_count + 1, sizeof(*list));
	for (unsigned i = 0; list && i < rcm.device_count; i++)
		list[i] = rcm.devices[i].verbs;
	if (!list)
		errno = rc ? -rc : ENOMEM;
	if (num_devices)
		*num_devices = list ? (int)rcm.device_count : 0;
	return list;
}

VB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
