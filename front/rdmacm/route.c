/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of InfiniBand: the broker asks the subnet administrator of the
 * adapter's fabric (IPC_CM_PATH), and the path arrives with an event. This file
 * also makes the path records that programs see.
 */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "wire/lrh.h"

#define MOST_MTU     5	/* the largest code of enum ibv_mtu */
#define MOST_TIMEOUT 31 /* the largest Local ACK Timeout code */
#define DEFAULT_MS   2000

int rcm_route_ask(struct rcm_id *id, int timeout_ms)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_PATH);
	int rc;

	m.place = id->path.place;
	m.src = id->path.src;
	m.dst = id->path.dst;
	m.pkey = id->path.pkey;
	/* As Linux does: the TOS of IPv4 is the class of quality of service,
	 * and other addresses have a traffic class in them. */
	if (id->pub.route.addr.src_addr.sa_family == AF_INET) {
		m.flags |= IPC_CM_QOS_CLASS;
		m.tclass = id->tos;
	} else {
		m.tclass = id->traffic_class;
	}
	m.space = id->path.space;
	m.dst_port = id->path.dst_port;
	m.timeout_ms = timeout_ms > 0 ? (uint32_t)timeout_ms : DEFAULT_MS;
	/* The event may be read before this thread continues. */
	id->state = RCM_ROUTING;
	rc = rcm_session_tell(&m);
	if (rc)
		id->state = RCM_RESOLVED;
	return rc;
}

bool rcm_route_take(struct rcm_id *id, const struct vb_ipc_cm *m)
{
	struct vb_ipc_cm *w = &id->path;

	if (id->state != RCM_ROUTING)
		return false;
	if (m->status) {
		id->state = RCM_RESOLVED;
		return true;
	}
	w->dlid = m->dlid;
	w->path_bits = m->path_bits;
	w->sl = m->sl;
	w->rate = m->rate;
	w->mtu = m->mtu;
	w->pkey = m->pkey;
	w->tclass = m->tclass;
	w->hop_limit = m->hop_limit;
	w->flow_label = m->flow_label;
	w->ack_timeout = id->timeout_set ? id->ack_timeout : m->ack_timeout;
	rcm_route_describe(id);
	id->state = RCM_ROUTED;
	return true;
}

/* Returns the LID of the port from which the path @w leads; 0: RoCE. */
static uint16_t source_lid(const struct rcm_id *id, uint8_t port,
			   const struct vb_ipc_cm *w)
{
	struct ibv_port_attr p;

	if (!rcm_is_ib(id) || ibv_query_port(id->pub.verbs, port, &p))
		return 0;
	return (uint16_t)(p.lid | w->path_bits);
}

/* Makes the record of the path @w by the port @port of the id's adapter. */
static void describe_way(const struct rcm_id *id, uint8_t port,
			 const struct vb_ipc_cm *w, struct ibv_sa_path_rec *p)
{
	memcpy(p->dgid.raw, w->dst.raw, 16);
	memcpy(p->sgid.raw, w->src.raw, 16);
	p->dlid = htobe16(w->dlid);
	p->slid = htobe16(source_lid(id, port, w));
	p->flow_label = htobe32(w->flow_label);
	p->hop_limit = w->hop_limit;
	p->traffic_class = w->tclass;
	p->reversible = 1;
	p->numb_path = 1;
	p->pkey = htobe16(w->pkey);
	p->sl = w->sl;
	p->mtu = w->mtu;
	p->rate = w->rate;
	p->packet_life_time = w->ack_timeout ? w->ack_timeout - 1 : 0;
}

/* For RoCE this is the record that a subnet administrator would return (IBA
 * 15.2.5.16). */
void rcm_route_describe(struct rcm_id *id)
{
	const struct vb_ipc_cm alternate = rcm_alternate_path(id);
	uint8_t other = rcm_alternate_port(id);
	int count = other ? 2 : 1;
	struct ibv_sa_path_rec *p = calloc((size_t)count, sizeof(*p));

	if (!p)
		return;
	describe_way(id, id->pub.port_num, &id->path, p);
	if (other)
		describe_way(id, other, &alternate, p + 1);
	free(id->pub.route.path_rec);
	id->pub.route.path_rec = p;
	id->pub.route.num_paths = count;
}

static int set_primary(struct rcm_id *id, const struct ibv_path_record *path)
{
	const uint32_t label = be32toh(path->flowlabel_hoplimit);
	const uint16_t dlid = be16toh(path->dlid), slid = be16toh(path->slid);
	const uint8_t mtu = path->mtu & 0x3f;
	const uint8_t life = path->packetlifetime & 0x3f;
	struct vb_ipc_cm *w = &id->path;
	struct ibv_port_attr p;

	if (!dlid || dlid >= VB_LID_MCAST || mtu < 1 || mtu > MOST_MTU ||
	    ibv_query_port(id->pub.verbs, id->pub.port_num, &p) ||
	    slid < p.lid || slid - p.lid >= 1 << p.lmc)
		return -EINVAL;
	w->dlid = dlid;
	w->path_bits = (uint8_t)(slid - p.lid);
	w->sl = be16toh(path->qosclass_sl) & 15;
	w->rate = path->rate & 0x3f;
	w->mtu = mtu;
	w->pkey = be16toh(path->pkey);
	w->tclass = path->tclass;
	w->hop_limit = (uint8_t)label;
	w->flow_label = label >> 8 & 0xfffff;
	w->ack_timeout = id->timeout_set
				 ? id->ack_timeout
				 : (uint8_t)VB_MIN(life + 1, MOST_TIMEOUT);
	return 0;
}

int rcm_route_set(struct rcm_id *id, const struct ibv_path_record *path,
		  const struct ibv_path_record *alternate)
{
	const struct vb_ipc_cm was = id->path;
	int rc = set_primary(id, path);

	if (rc == 0 && alternate)
		rc = rcm_alternate_set(id, alternate);
	if (rc) {
		id->path = was;
		return rc;
	}
	rcm_route_describe(id);
	id->state = RCM_ROUTED;
	return 0;
}
