/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of rdma_cm: IPv4, IPv6 and AF_IB. An AF_IB address consists of
 * a GID and a service ID. The low 16 bits of the service ID are the port and
 * the bits above are the port space (IBA A11.4), unless the service ID is one
 * of IPoIB's connected mode.
 */
#include "front/rdmacm/rdmacm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#define DEFAULT_PKEY 0xffff
#define CLASS_AT     20 /* the traffic class in the flow information (RFC 3542) */

static const struct sockaddr_ib *ib(const struct sockaddr *a)
{
	return (const struct sockaddr_ib *)a;
}

struct vb_gid rcm_gid_of(const struct sockaddr *a)
{
	struct vb_gid gid = { { 0 } };

	if (a->sa_family == AF_INET)
		return vb_gid_from_ipv4(
			(const uint8_t *)&((const struct sockaddr_in *)a)
				->sin_addr);
	if (a->sa_family == AF_INET6)
		memcpy(gid.raw, &((const struct sockaddr_in6 *)a)->sin6_addr,
		       sizeof(gid.raw));
	if (a->sa_family == AF_IB)
		memcpy(gid.raw, ib(a)->sib_addr.sib_raw, sizeof(gid.raw));
	return gid;
}

socklen_t rcm_address_bytes(const struct sockaddr *a)
{
	switch (a->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

void rcm_address_of(struct sockaddr *a, const struct vb_gid *gid, uint16_t port,
		    uint32_t ifindex)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;

	if (vb_gid_is_ipv4(gid)) {
		memset(v4, 0, sizeof(*v4));
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, gid->raw + 12, 4);
		return;
	}
	memset(v6, 0, sizeof(*v6));
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, gid->raw, sizeof(gid->raw));
	if (vb_gid_is_link_local(gid))
		v6->sin6_scope_id = ifindex;
}

void rcm_address_of_ib(struct sockaddr *a, const struct vb_gid *gid,
		       uint16_t space, uint16_t port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)a;

	memset(sib, 0, sizeof(*sib));
	sib->sib_family = AF_IB;
	sib->sib_pkey = htobe16(DEFAULT_PKEY);
	memcpy(sib->sib_addr.sib_raw, gid->raw, sizeof(gid->raw));
	sib->sib_sid = htobe64(vb_ipc_cm_service(space, port));
	sib->sib_sid_mask = htobe64(UINT64_MAX);
}

/* Splits the service ID in the AF_IB address @a into its port space and its
 * port. Bits that the address's mask does not name count as 0. False: ids do
 * not have such a service ID. */
static bool split_service(const struct sockaddr *a, uint16_t *space,
			  uint16_t *port)
{
	return vb_ipc_cm_service_split(
		be64toh(ib(a)->sib_sid & ib(a)->sib_sid_mask), space, port);
}

uint16_t rcm_port_of(const struct sockaddr *a)
{
	uint16_t space, port;

	if (a->sa_family == AF_IB && split_service(a, &space, &port) &&
	    space >= VB_IPC_CM_IETF_SPACE)
		return port;
	if (a->sa_family == AF_IB)
		return (uint16_t)be64toh(ib(a)->sib_sid);
	/* The offset is right for IPv6 as well: sin6_port is where sin_port
	 * is. */
	return ntohs(((const struct sockaddr_in *)a)->sin_port);
}

void rcm_port_set(struct sockaddr *a, uint16_t port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)a;
	uint16_t space, old;

	if (a->sa_family != AF_IB) {
		((struct sockaddr_in *)a)->sin_port = htons(port);
		return;
	}
	/* IPoIB's service ID has no port that could change. */
	if (split_service(a, &space, &old) && space >= VB_IPC_CM_IETF_SPACE)
		return;
	sib->sib_sid =
		htobe64((be64toh(sib->sib_sid) & ~UINT64_C(0xffff)) | port);
	sib->sib_sid_mask |= htobe64(UINT16_MAX);
}

bool rcm_address_is_any(const struct sockaddr *a)
{
	static const struct vb_gid any4 = { { [10] = 0xff, [11] = 0xff } };
	struct vb_gid gid = rcm_gid_of(a);

	return vb_gid_is_zero(&gid) ||
	       (a->sa_family != AF_INET6 && vb_gid_equal(&gid, &any4));
}

bool rcm_address_is_loopback(const struct sockaddr *a)
{
	struct vb_gid gid = rcm_gid_of(a);

	return vb_gid_is_loopback(&gid);
}

/* Returns the port space of an address. The program may use an id of RDMA_PS_IB
 * with ports of TCP and UDP and with service IDs of IPoIB as well, and any
 * other id only with ports of its own space. Only the bits of the service ID
 * that the mask of @a names are used. */
int rcm_space_of(const struct sockaddr *a, enum rdma_port_space own)
{
	uint16_t space, port;

	if (a->sa_family != AF_IB)
		return own;
	if (!split_service(a, &space, &port))
		return -EPROTONOSUPPORT;
	if (space == 0 || space == own)
		return own;
	if (own == RDMA_PS_IB &&
	    (space == RDMA_PS_TCP || space == RDMA_PS_UDP ||
	     space >= VB_IPC_CM_IETF_SPACE))
		return space;
	return -EPROTONOSUPPORT;
}

uint8_t rcm_address_class(const struct sockaddr *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->sa_family == AF_INET6)
		return (uint8_t)(be32toh(v6->sin6_flowinfo) >> CLASS_AT);
	if (a->sa_family == AF_IB)
		return (uint8_t)(be32toh(ib(a)->sib_flowinfo) >> CLASS_AT);
	return 0;
}

VB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(rcm_port_of(&id->route.addr.src_addr));
}

VB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htons(rcm_port_of(&id->route.addr.dst_addr));
}
