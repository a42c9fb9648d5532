/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate paths of connections on InfiniBand (IBA 17.2.8): the program's own,
 * by RDMA_OPTION_IB_PATH, and those in requests of peers. The queue pair gets
 * the path at its move to RTR, and is in Rearm from RTS on, as with Linux's
 * rdma_cm.
 */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <string.h>

#include "wire/lrh.h"

#define MOST_TIMEOUT 31 /* the largest Local ACK Timeout code */

/* Returns the port of the id's adapter from which the alternate path @a leads,
 * and the port's GID in *@e. NULL: the adapter has no such port, or the port
 * lacks the MTU or the P_Key of the connection. */
static struct rcm_device *port_of(const struct rcm_id *id,
				  const struct vb_ipc_cm_alternate *a,
				  struct ibv_gid_entry *e)
{
	struct rcm_device *d = rcm_device_sibling(id, &a->src, a->place, e);

	return d && d->mtu >= id->path.mtu && rcm_pkey_index(id, d->port) >= 0
		       ? d
		       : NULL;
}

uint8_t rcm_alternate_port(const struct rcm_id *id)
{
	const struct vb_ipc_cm_alternate *a = &id->path.alternate;
	const struct rcm_device *d;
	struct ibv_gid_entry e;

	d = a->place ? port_of(id, a, &e) : NULL;
	return d ? d->port : 0;
}

int rcm_alternate_set(struct rcm_id *id, const struct ibv_path_record *path)
{
	const uint32_t label = be32toh(path->flowlabel_hoplimit);
	const uint16_t dlid = be16toh(path->dlid), slid = be16toh(path->slid);
	struct vb_ipc_cm_alternate a = {
		.sl = be16toh(path->qosclass_sl) & 15,
		.rate = path->rate & 0x3f,
		.tclass = path->tclass,
		.hop_limit = (uint8_t)label,
		.ack_timeout = (uint8_t)VB_MIN(
			(path->packetlifetime & 0x3f) + 1, MOST_TIMEOUT),
		.dlid = dlid,
		.flow_label = label >> 8 & 0xfffff,
	};
	const struct rcm_device *d;
	struct ibv_port_attr p;
	struct ibv_gid_entry e;

	memcpy(a.src.raw, path->sgid.raw, sizeof(a.src.raw));
	memcpy(a.dst.raw, path->dgid.raw, sizeof(a.dst.raw));
	d = port_of(id, &a, &e);
	if (!d || !dlid || dlid >= VB_LID_MCAST ||
	    be16toh(path->pkey) != id->path.pkey ||
	    (path->mtu & 0x3f) < id->path.mtu ||
	    ibv_query_port(d->verbs, d->port, &p) || slid < p.lid ||
	    slid - p.lid >= 1 << p.lmc)
		return -EINVAL;
	a.place = d->place;
	a.path_bits = (uint8_t)(slid - p.lid);
	if (id->timeout_set)
		a.ack_timeout = id->ack_timeout;
	id->path.alternate = a;
	return 0;
}

struct vb_ipc_cm rcm_alternate_path(const struct rcm_id *id)
{
	const struct vb_ipc_cm_alternate *a = &id->path.alternate;
	struct vb_ipc_cm w = id->path;

	w.place = a->place;
	w.src = a->src;
	w.dst = a->dst;
	w.sl = a->sl;
	w.path_bits = a->path_bits;
	w.rate = a->rate;
	w.tclass = a->tclass;
	w.hop_limit = a->hop_limit;
	w.flow_label = a->flow_label;
	w.ack_timeout = a->ack_timeout;
	w.dlid = a->dlid;
	return w;
}

void rcm_alternate_fill(const struct rcm_id *id, struct ibv_qp_attr *a,
			int *mask)
{
	const struct vb_ipc_cm w = rcm_alternate_path(id);
	const struct rcm_device *d;
	struct ibv_gid_entry e;

	if (!w.place)
		return;
	d = port_of(id, &id->path.alternate, &e);
	if (!d)
		return;
	if (a->qp_state == IBV_QPS_RTS) {
		*mask |= IBV_QP_PATH_MIG_STATE;
		a->path_mig_state = IBV_MIG_REARM;
		return;
	}
	*mask |= IBV_QP_ALT_PATH;
	a->alt_port_num = d->port;
	a->alt_pkey_index = (uint16_t)rcm_pkey_index(id, d->port);
	a->alt_timeout = w.ack_timeout;
	rcm_fill_way(&w, d->port, (uint8_t)e.gid_index, &a->alt_ah_attr);
}
