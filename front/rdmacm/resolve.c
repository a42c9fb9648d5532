/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_bind_addr(), rdma_resolve_addr() and rdma_resolve_route(): an id gets
 * its port, its source address and the path to its peer.
 */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define HOP_LIMIT    64
#define DEFAULT_PKEY 0xffff
/* The timeout code for 4.096 us << n: a packet lifetime of 18, plus one, as in
 * Linux's rdma_cm (docs/WIRE.md 3.2). */
#define ACK_TIMEOUT 19
/* The UDP socket that asks the routing needs a port, on which the answer does
 * not depend. */
#define ANY_UDP_PORT 4791

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

/* Binds in the broker. @port: on entry the port that the program wants, on
 * return the port that the broker gave. */
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
	m.guid = id->secret;
	m.ifindex = id->path.ifindex;
	rc = rcm_session_ask(&m, &answer);
	/* The broker may still bind the port after this time-out, so a CLOSE
	 * makes it free the port. */
	if (rc == -ETIMEDOUT)
		(void)!rcm_session_tell(&close);
	if (rc == -ENOBUFS)
		vb_log(LOG_WARN,
		       "rdmacm: this user's programs hold all that the broker "
		       "grants one user: %u ports or %u ids",
		       VB_IPC_CM_USER_PORTS, VB_IPC_CM_USER_IDS);
	if (rc)
		return rc;
	id->in_broker = true;
	*port = answer.src_port;
	return 0;
}

/* Binds the port where the id's device needs it: as a TCP socket for iWARP, in
 * the broker for RoCE and InfiniBand. An id that has no device yet binds it for
 * every kind of device that this process has. */
static int take_port(struct rcm_id *id, const struct sockaddr *a)
{
	bool tcp = id->device ? id->device->iwarp
			      : rcm.has_iwarp && a->sa_family != AF_IB &&
					id->pub.qp_type == IBV_QPT_RC;
	bool broker =
		id->device ? !id->device->iwarp : rcm.has_roce || rcm.has_ib;
	int rc = tcp ? rcm_iw_bind(id, a, &id->port) : 0;

	if (rc == 0 && broker)
		rc = bind_in_broker(id, a, &id->port);
	if (rc && id->tcp >= 0) {
		close(id->tcp);
		id->tcp = -1;
	}
	return rc;
}

/* Returns the kind of device that may serve the address @a. AF_IB addresses are
 * for the InfiniBand connection manager, which iWARP does not use. */
static enum rcm_kind kind_of(const struct sockaddr *a)
{
	return a->sa_family == AF_IB ? RCM_CM : RCM_ANY;
}

/* Returns the error for an id that no device serves. -EOPNOTSUPP: there are
 * only iWARP devices, and these lack the id's type of queue pair. -ENODEV: an
 * AF_IB address, or no device at all. */
static int unserved_error(const struct sockaddr *a)
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
		return unserved_error(a);
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

/* Asks the host's routing for the local address of packets to @dst, by a UDP
 * socket that sends nothing. @src gets port 0. 0 or -errno. */
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

/* Finds the local address as find_source() does, for AF_IB. An adapter of a
 * fabric reaches the GIDs of its subnet. A RoCE GID is an IP address, so the
 * host's routing knows it. If a link-local GID has no scope, uses the link of
 * the first device. */
static int find_source_of_gid(const struct sockaddr_ib *dst,
			      struct sockaddr_storage *src)
{
	struct vb_gid gid = rcm_gid_of((const struct sockaddr *)dst);
	struct sockaddr_storage ip;
	uint32_t link = (uint32_t)dst->sib_scope_id;
	struct ibv_gid_entry e;
	struct vb_gid own;
	int rc;

	if (!link && rcm_device_source(&gid, &own)) {
		rcm_address_of_ib((struct sockaddr *)src, &own, 0, 0);
		return 0;
	}
	/* A child of fork() has no device before it opens one. */
	if (!link && rcm.device_count &&
	    rcm_device_first_gid(&rcm.devices[0], &e))
		link = e.ndev_ifindex;
	rcm_address_of((struct sockaddr *)&ip, &gid, ANY_UDP_PORT, link);
	rc = find_source((struct sockaddr *)&ip, src);
	if (rc)
		return rc;
	gid = rcm_gid_of((struct sockaddr *)src);
	rcm_address_of_ib((struct sockaddr *)src, &gid, 0, 0);
	return 0;
}

/* Returns the local address of packets to @dst in *@src. 0 or -errno. */
static int route_to(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_storage to = { 0 };

	if (dst->sa_family == AF_IB)
		return find_source_of_gid((const struct sockaddr_ib *)dst, src);
	memcpy(&to, dst, rcm_address_bytes(dst));
	rcm_port_set((struct sockaddr *)&to, ANY_UDP_PORT);
	return find_source((struct sockaddr *)&to, src);
}

/* True if @a is not an address of this host. Routing decides, because bind()
 * accepts any address where net.ipv4.ip_nonlocal_bind is set: only a path to an
 * address of this host begins at that address. */
static bool is_foreign(const struct sockaddr *a)
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

/* Chooses the device that has the address @a. -EADDRNOTAVAIL: this host does
 * not have the address; -ENODEV: no device has it; -EAGAIN, -ETIMEDOUT: as of
 * rcm_ipoib_choose(). */
static int choose_at(struct rcm_id *id, const struct sockaddr *a,
		     enum rcm_kind kind)
{
	const struct vb_gid gid = rcm_gid_of(a);
	int rc = rcm_device_choose(id, &gid, kind);

	if (rc == -ENODEV && kind == RCM_ANY)
		rc = rcm_ipoib_choose(id, &gid);
	return rc == -ENODEV && is_foreign(a) ? -EADDRNOTAVAIL : rc;
}

/*
 * Chooses the device for the address that the program binds to. As in Linux,
 * the wildcard address chooses none, and neither does a loopback address:
 * libfabric binds to "localhost" and expects to find all devices then. If the
 * only device is the one on the loopback interface, as in a container without a
 * network, a loopback address does choose it, because libfabric looks for no
 * other addresses there and would find no device.
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

#define FAMILIES "the address must be of family AF_INET, AF_INET6 or AF_IB"

VB_EXPORT int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (rcm_address_bytes(addr) == 0)
		return rcm_why_refuse(id, __func__, FAMILIES);
	if (id->state != RCM_NEW)
		return rcm_why_call(id, __func__, EINVAL);
	rc = choose_for(id, addr);
	if (rc == 0)
		rc = rcm_bind(id, addr);
	if (rc == 0)
		id->traffic_class = rcm_address_class(addr);
	else if (rc == -EADDRNOTAVAIL || rc == -ENODEV ||
		 rc == -EPROTONOSUPPORT)
		rcm_why_bind(addr, rc);
	return rc ? rcm_why_call(id, "rdma_bind_addr", -rc) : 0;
}

/* Finds the local address: the address that the id is bound to, else @src. If
 * both are missing or the wildcard, routing decides. -EINVAL: the address
 * families differ. */
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
 * Chooses the device for the path from @from to @dst. As in Linux, a path from
 * a loopback address that no device has ends at this host: if @dst is an
 * address of a device, that device carries the path, and if @dst is a loopback
 * address too, any device does.
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

/* Fills in the addresses of the path; the caller has chosen the device. The
 * program may have named an end by an address that is not in the GID table (a
 * loopback address; on InfiniBand, any IP address). Such a name is sent beside
 * the GID, so that the peer's program sees the addresses that this program
 * uses. */
static void name_ends(struct rcm_id *id, const struct vb_gid *from,
		      const struct vb_gid *to, const struct vb_gid *peer)
{
	static const struct vb_gid none;
	struct vb_ipc_cm *w = &id->path;

	w->src_name = w->dst_name = none;
	w->dst = *peer;
	if (id->device->iwarp)
		return;
	if (vb_gid_is_loopback(to))
		w->dst = w->src;
	if (!vb_gid_equal(to, &w->dst))
		w->dst_name = *to;
	if (!vb_gid_equal(from, &w->src))
		w->src_name = *from;
}

/* RoCEv1's frames need the neighbour's MAC address. Asking the neighbour may
 * take 3 s, and the broker, which serves other programs, does not wait. */
static int meet_neighbour(const struct rcm_id *id)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = id->pub.port_num };
	uint8_t mac[6];
	uint16_t vlan;

	if (!id->v1 || vb_gid_is_link_local(&id->path.dst))
		return 0;
	memcpy(attr.grh.dgid.raw, id->path.dst.raw, 16);
	attr.grh.sgid_index = id->gid_index;
	return -ibv_resolve_eth_l2_from_gid(id->pub.verbs, &attr, mac, &vlan);
}

/* Returns the P_Key of the path to @dst. An AF_IB address contains it, as the
 * program or rdma_getaddrinfo() chose it. If it is 0, this is the P_Key of the
 * default partition. */
static uint16_t pkey_to(const struct sockaddr *dst)
{
	uint16_t pkey = 0;

	if (dst->sa_family == AF_IB)
		pkey = be16toh(((const struct sockaddr_ib *)dst)->sib_pkey);
	return pkey ? pkey : DEFAULT_PKEY;
}

/* Fills in the members of the path that do not depend on the peer's GID. */
static void begin_path(struct rcm_id *id, const struct sockaddr *dst)
{
	struct vb_ipc_cm *w = &id->path;

	w->dst_port = rcm_port_of(dst);
	w->mtu = id->device->mtu;
	/* the IPoIB interface's P_Key is known already */
	if (!rcm_is_ib(id) || dst->sa_family == AF_IB)
		w->pkey = pkey_to(dst);
	if (rcm_is_ib(id))
		return;
	w->hop_limit = HOP_LIMIT;
	w->flow_label = (id->port * 31u + w->dst_port) & 0xfffff;
}

/* Completes the path, whose other end has the GID @peer. 0 or -errno. */
static int finish_path(struct rcm_id *id, const struct vb_gid *peer)
{
	struct rdma_addr *a = &id->pub.route.addr;
	const struct vb_gid from = rcm_gid_of(&a->src_addr);
	const struct vb_gid to = rcm_gid_of(&a->dst_addr);
	int rc;

	name_ends(id, &from, &to, peer);
	begin_path(id, &a->dst_addr);
	memcpy(a->addr.ibaddr.sgid.raw, id->path.src.raw, 16);
	memcpy(a->addr.ibaddr.dgid.raw, id->path.dst.raw, 16);
	a->addr.ibaddr.pkey = htobe16(id->path.pkey);
	rc = meet_neighbour(id);
	id->state = rc ? RCM_BOUND : RCM_RESOLVED;
	return rc;
}

/* Queues the event that ends rdma_resolve_addr() with the result @rc, 0 or
 * -errno. */
static int tell_resolved(struct rcm_id *id, int rc)
{
	return rcm_event_local(
		id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
		rc);
}

/* Takes the answer of rcm_ipoib_ask(): the GID of the peer, or an error. May
 * run in a thread of this library. */
static void take_peer(struct rcm_id *id, int error, const struct vb_gid *gid)
{
	if (error == 0)
		error = finish_path(id, gid);
	else
		id->state = RCM_BOUND;
	/* Read dst_addr before the event is queued: after that the program may
	 * resolve another address. */
	if (error)
		rcm_why_address(&id->pub.route.addr.dst_addr, error);
	if (tell_resolved(id, error))
		vb_log(LOG_WARN,
		       "rdmacm: the end of rdma_resolve_addr() was not reported: out of memory");
}

/* Finds the GID of the peer at the other end of the path and completes the
 * path. On InfiniBand an IPoIB interface is asked for it; another thread then
 * waits for the answer. Returns 0: an event comes; or -errno. */
static int meet_peer(struct rcm_id *id, int timeout_ms)
{
	const struct sockaddr *dst = &id->pub.route.addr.dst_addr;
	const struct vb_gid from = rcm_gid_of(&id->pub.route.addr.src_addr);
	struct vb_gid to = rcm_gid_of(dst);
	int rc;

	if (rcm_is_ib(id) && dst->sa_family != AF_IB &&
	    !vb_gid_is_loopback(&to)) {
		if (!vb_gid_is_multicast(&to)) {
			id->state = RCM_RESOLVING;
			rc = rcm_ipoib_ask(id, &from, &to, timeout_ms,
					   take_peer);
			if (rc)
				id->state = RCM_BOUND;
			return rc;
		}
		to = rcm_mgid_of(id, dst);
	}
	rc = finish_path(id, &to);
	return rc ? rc : tell_resolved(id, 0);
}

/* Does what rdma_resolve_addr() does. Returns 0: an event comes; or -errno. */
static int resolve(struct rcm_id *id, const struct sockaddr *src,
		   const struct sockaddr *dst, int timeout_ms)
{
	struct sockaddr_storage from;
	struct vb_gid gid;
	int rc = rcm_space_of(dst, id->pub.ps);

	if (rc < 0)
		return rc;
	id->path.space = (uint16_t)rc;
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
			       id->path.ifindex);
	memcpy(&id->pub.route.addr.dst_storage, dst, rcm_address_bytes(dst));
	id->path.flags = (uint8_t)((id->flags & IPC_CM_PLAIN) |
				   (id->v1 ? IPC_CM_V1 : 0));
	return meet_peer(id, timeout_ms);
}

VB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *pub,
				struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (!dst_addr || rcm_address_bytes(dst_addr) == 0)
		return rcm_why_refuse(id, __func__, FAMILIES);
	if (id->state != RCM_NEW && id->state != RCM_BOUND)
		return rcm_why_call(id, "rdma_resolve_addr", EINVAL);
	if (src_addr && id->state == RCM_NEW)
		id->traffic_class = rcm_address_class(src_addr);
	rc = resolve(id, src_addr, dst_addr, timeout_ms);
	if (rc < 0)
		rcm_why_address(dst_addr, rc);
	if (rc == -EADDRINUSE || rc == -EINVAL || rc == -EPROTONOSUPPORT)
		return rcm_fail(-rc);
	if (rc)
		rc = tell_resolved(id, rc);
	return rc ? rcm_fail(-rc) : rcm_event_complete(id);
}

/* Completes the path of @id and queues ROUTE_RESOLVED. 0 or -errno. */
static int take_route(struct rcm_id *id)
{
	id->path.ack_timeout = id->timeout_set ? id->ack_timeout : ACK_TIMEOUT;
	/* as on Linux, a TCP connection has no path record */
	if (!rcm_is_iwarp(id))
		rcm_route_describe(id);
	id->state = RCM_ROUTED;
	return rcm_event_local(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

VB_EXPORT int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (id->state != RCM_RESOLVED)
		return rcm_why_call(id, "rdma_resolve_route", EINVAL);
	id->path.tclass = id->tos;
	rc = rcm_is_ib(id) ? rcm_route_ask(id, timeout_ms) : take_route(id);
	return rc ? rcm_fail(-rc) : rcm_event_complete(id);
}

/* the flags of the path to be used: for management, primary, and both
 * directions, as Linux demands */
#define PRIMARY                                                                \
	(IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |                           \
	 IBV_PATH_FLAG_BIDIRECTIONAL)
/* an alternate path; whether it is one for management does not matter */
#define ALTERNATE (IBV_PATH_FLAG_ALTERNATE | IBV_PATH_FLAG_BIDIRECTIONAL)

/* Finds the path record that has the flags @wanted and none but @allowed
 * besides. @value: @len bytes of struct ibv_path_data. */
static bool choose_path(const void *value, size_t len, uint32_t wanted,
			uint32_t allowed, struct ibv_path_data *d)
{
	const uint8_t *at = value;

	if (!value || len % sizeof(*d))
		return false;
	for (; len; len -= sizeof(*d), at += sizeof(*d)) {
		memcpy(d, at, sizeof(*d));
		if ((d->flags & ~allowed) == wanted)
			return true;
	}
	return false;
}

/* Sets the path. RoCE uses flow label and traffic class of the record. The
 * addresses are resolved already, so the record must have equal ones. */
int rcm_path_set(struct rcm_id *id, const void *value, size_t len)
{
	struct ibv_path_data d, other;
	uint32_t label;

	if (id->state != RCM_RESOLVED || rcm_is_iwarp(id) ||
	    !choose_path(value, len, PRIMARY, 0, &d))
		return -EINVAL;
	if (memcmp(d.path.dgid.raw, id->path.dst.raw, 16) != 0 ||
	    memcmp(d.path.sgid.raw, id->path.src.raw, 16) != 0)
		return -EINVAL;
	if (rcm_is_ib(id)) {
		bool two = choose_path(value, len, ALTERNATE, IBV_PATH_FLAG_GMP,
				       &other);
		int rc = rcm_route_set(id, &d.path, two ? &other.path : NULL);

		return rc ? rc
			  : rcm_event_local(id, RDMA_CM_EVENT_ROUTE_RESOLVED,
					    0);
	}
	label = be32toh(d.path.flowlabel_hoplimit);
	id->path.flow_label = label >> 8 & 0xfffff;
	id->path.tclass = d.path.tclass;
	return take_route(id);
}
