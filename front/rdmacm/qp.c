/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair of an id: its creation, the attributes of each change of state
 * that a connection needs, and the shared receive queue beside it. */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <fcntl.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"

#define FULL_MEMBER 0x8000 /* the membership bit of a P_Key */

/* The highest bit of a P_Key tells a full member from a limited one. The port's
 * table decides which of the two the port is, and not the path's record; if the
 * table has both P_Keys, use the full membership (IBA 10.9.1.2). */
int rcm_pkey_index(const struct rcm_id *id, uint8_t port)
{
	const uint16_t full = id->path.pkey | FULL_MEMBER;
	const uint16_t limited = id->path.pkey & (FULL_MEMBER - 1);
	int index = ibv_get_pkey_index(id->pub.verbs, port, htobe16(full));

	return index < 0 ? ibv_get_pkey_index(id->pub.verbs, port,
					      htobe16(limited))
			 : index;
}

/* Returns the index of the path's P_Key. The port's table may have changed
 * since the path was found; then the verbs call refuses the state. */
static uint16_t index_of_pkey(const struct rcm_id *id)
{
	int index = rcm_is_ib(id) ? rcm_pkey_index(id, id->pub.port_num) : 0;

	return index < 0 ? UINT16_MAX : (uint16_t)index;
}

/* Fills in the attributes of INIT. They permit the peer to write, and also to
 * read and use atomics if this side granted responder resources and the service
 * is not UC, which has neither. */
static void fill_init(const struct rcm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		IBV_QP_ACCESS_FLAGS;
	a->port_num = id->pub.port_num;
	a->pkey_index = index_of_pkey(id);
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources && id->pub.qp_type != IBV_QPT_UC)
		a->qp_access_flags |=
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

/* Fills in the attributes of a datagram queue pair, which passes INIT, RTR and
 * RTS without a peer's numbers. */
static void qp_fill_datagram(const struct rcm_id *id, struct ibv_qp_attr *a,
			     int *mask)
{
	*mask = IBV_QP_STATE;
	if (a->qp_state == IBV_QPS_INIT)
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (a->qp_state == IBV_QPS_RTS)
		*mask |= IBV_QP_SQ_PSN;
	a->port_num = id->pub.port_num;
	a->pkey_index = index_of_pkey(id);
	a->qkey = id->qkey;
}

void rcm_fill_way(const struct vb_ipc_cm *w, uint8_t port, uint8_t gid_index,
		  struct ibv_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = port;
	if (w->place) {
		/* Within a subnet the LID alone leads to the destination, so
		 * packets need no GRH. */
		ah->is_global = w->hop_limit > 1;
		ah->dlid = w->dlid;
		ah->sl = w->sl;
		ah->src_path_bits = w->path_bits;
		ah->static_rate = w->rate;
	}
	if (!ah->is_global)
		return;
	memcpy(ah->grh.dgid.raw, w->dst.raw, sizeof(ah->grh.dgid.raw));
	ah->grh.sgid_index = gid_index;
	ah->grh.hop_limit = w->hop_limit;
	ah->grh.traffic_class = w->tclass;
	ah->grh.flow_label = w->flow_label;
}

void rcm_fill_ah(const struct rcm_id *id, struct ibv_ah_attr *ah,
		 const struct vb_gid *dgid)
{
	struct vb_ipc_cm w = id->path;

	w.dst = *dgid;
	rcm_fill_way(&w, id->pub.port_num, id->gid_index, ah);
}

/* Returns the mask of the RTR attributes that only a responder has: empty if
 * the transport does not acknowledge (IBA 10.2.5.2). */
static int answers(const struct rcm_id *id)
{
	enum ibv_qp_type type = id->pub.qp_type;

	return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV
		       ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		       : 0;
}

/* Returns the mask of the RTS attributes that only a requester has. They are
 * all about retransmission, so it is 0 for a transport that does not
 * retransmit. */
static int repeats(const struct rcm_id *id)
{
	const int all = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;

	switch (id->pub.qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return all;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_TIMEOUT;
	default:
		return 0;
	}
}

/* Fills in attributes for iWARP. rcm_iw_establish() hands over the socket, and
 * that brings an iWARP queue pair to RTS. So the masks for RTR and RTS are
 * empty: a program that changes the state itself has nothing left to change. A
 * program that creates its queue pair itself may ask for INIT even after the
 * hand-over, as `rping -c -q` does: then the mask has the access rights, and
 * not the state. */
static int fill_iwarp(const struct rcm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const enum ibv_qp_state to = a->qp_state;

	*mask = 0;
	if (to != IBV_QPS_INIT && to != IBV_QPS_RTR && to != IBV_QPS_RTS)
		return -EINVAL;
	a->port_num = id->pub.port_num;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_ATOMIC;
	if (to == IBV_QPS_INIT)
		*mask = rcm_iw_is_handed_over(id)
				? IBV_QP_ACCESS_FLAGS
				: IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
					  IBV_QP_PORT;
	return 0;
}

static void fill_rtr(const struct rcm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | answers(id);
	a->path_mtu = id->path.mtu ? (enum ibv_mtu)id->path.mtu : IBV_MTU_1024;
	a->dest_qp_num = id->peer.qpn;
	/* the starting PSN that this side sent (IBA 12.7) */
	a->rq_psn = id->psn;
	a->max_dest_rd_atomic = id->responder_resources;
	rcm_fill_ah(id, &a->ah_attr, &id->path.dst);
	rcm_alternate_fill(id, a, mask);
}

static void fill_rts(const struct rcm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN | repeats(id);
	a->sq_psn = id->peer.psn;
	a->timeout = id->timeout_set ? id->ack_timeout : id->path.ack_timeout;
	a->retry_cnt = id->path.retry_count;
	a->rnr_retry = id->peer.rnr_retry;
	a->max_rd_atomic = id->initiator_depth;
	rcm_alternate_fill(id, a, mask);
}

#define NO_DEVICE                                                              \
	"the id has no device yet (rdma_bind_addr to an address of one, or "   \
	"rdma_resolve_addr)"
#define NO_STATE "qp_state must be INIT, RTR or RTS"

VB_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *a,
				int *mask)
{
	struct rcm_id *id = rcm_id_of(pub);
	enum ibv_qp_state to;

	if (!a || !mask)
		return rcm_why_refuse(id, __func__,
				      "there is no place for the attributes");
	to = a->qp_state;
	memset(a, 0, sizeof(*a));
	a->qp_state = to;
	if (!id->device)
		return rcm_why_refuse(id, __func__, NO_DEVICE);
	if (rcm_is_ud(id)) {
		qp_fill_datagram(id, a, mask);
		return 0;
	}
	if (rcm_is_iwarp(id)) {
		int rc = fill_iwarp(id, a, mask);

		return rc ? rcm_why_refuse(id, __func__, NO_STATE) : 0;
	}
	if (to != IBV_QPS_INIT && id->state != RCM_CONNECTING)
		return rcm_why_call(id, __func__, EINVAL);
	switch (to) {
	case IBV_QPS_INIT:
		fill_init(id, a, mask);
		return 0;
	case IBV_QPS_RTR:
		fill_rtr(id, a, mask);
		return 0;
	case IBV_QPS_RTS:
		fill_rts(id, a, mask);
		return 0;
	default:
		return rcm_why_refuse(id, __func__, NO_STATE);
	}
}

/* Moves the queue pair of @id to the state @to. 0 or -errno. */
static int move(struct rcm_id *id, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = { .qp_state = to };
	int mask, rc;

	if (rdma_init_qp_attr(&id->pub, &a, &mask))
		return -errno;
	rc = ibv_modify_qp(id->pub.qp, &a, mask);
	return rc > 0 ? -rc : rc;
}

int rcm_qp_init(struct rcm_id *id)
{
	int rc = move(id, IBV_QPS_INIT);

	if (rc == 0 && rcm_is_ud(id))
		rc = move(id, IBV_QPS_RTR);
	if (rc == 0 && rcm_is_ud(id))
		rc = move(id, IBV_QPS_RTS);
	return rc;
}

static uint8_t least(uint8_t wanted, uint8_t limit)
{
	return VB_MIN(wanted, limit);
}

/* Connects the queue pair. It is moved to INIT once more, because only the
 * depths of the connection decide whether the peer may read. */
int rcm_qp_connect(struct rcm_id *id)
{
	static const enum ibv_qp_state moves[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS };
	int rc = 0;

	if (rcm_is_ud(id))
		return 0;
	if (!(id->number & VB_IPC_CM_INCOMING)) {
		id->responder_resources = least(id->peer.responder_resources,
						id->device->max_resources);
		id->initiator_depth =
			least(id->peer.initiator_depth, id->device->max_depth);
	}
	for (unsigned i = 0; rc == 0 && i < VB_COUNT(moves); i++)
		rc = move(id, moves[i]);
	return rc;
}

void rcm_qp_fail(struct rcm_id *id)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	if (id->pub.qp)
		(void)!ibv_modify_qp(id->pub.qp, &a, IBV_QP_STATE);
}

static int make_cq(struct rcm_id *id, uint32_t depth,
		   struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->pub.verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->pub.verbs, (int)VB_MAX(depth, 1u), &id->pub,
			    *channel, 0);
	if (*cq)
		return 0;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return -1;
}

static void drop_cqs(struct rcm_id *id)
{
	struct rdma_cm_id *p = &id->pub;

	if (p->recv_cq)
		ibv_destroy_cq(p->recv_cq);
	if (p->recv_cq_channel)
		ibv_destroy_comp_channel(p->recv_cq_channel);
	if (p->send_cq)
		ibv_destroy_cq(p->send_cq);
	if (p->send_cq_channel)
		ibv_destroy_comp_channel(p->send_cq_channel);
	p->send_cq = p->recv_cq = NULL;
	p->send_cq_channel = p->recv_cq_channel = NULL;
	id->made_qp_cqs = false;
}

/* Finds the XRC domain that this process keeps for the device, for programs
 * that give none. 0 or -errno. */
static int default_xrcd(struct rcm_id *id, struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr none = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct rcm_device *d = id->device;

	pthread_mutex_lock(&rcm.lock);
	if (!d->xrcd)
		d->xrcd = ibv_open_xrcd(d->verbs, &none);
	*xrcd = d->xrcd;
	pthread_mutex_unlock(&rcm.lock);
	return *xrcd ? 0 : -errno;
}

/* Makes the completion queues that the program does not give. An XRC target has
 * no completion queue of its own: its shared receive queue names one. */
static int make_cqs(struct rcm_id *id, struct ibv_qp_init_attr_ex *a)
{
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	id->made_qp_cqs = !a->send_cq || !a->recv_cq;
	if (!a->recv_cq && make_cq(id, a->cap.max_recv_wr,
				   &id->pub.recv_cq_channel, &id->pub.recv_cq))
		return -1;
	if (!a->send_cq && make_cq(id, a->cap.max_send_wr,
				   &id->pub.send_cq_channel, &id->pub.send_cq))
		return -1;
	a->send_cq = a->send_cq ? a->send_cq : id->pub.send_cq;
	a->recv_cq = a->recv_cq ? a->recv_cq : id->pub.recv_cq;
	return 0;
}

static int take_xrcd(struct rcm_id *id, struct ibv_qp_init_attr_ex *a)
{
	if (a->qp_type != IBV_QPT_XRC_RECV ||
	    (a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd))
		return 0;
	a->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return default_xrcd(id, &a->xrcd);
}

#define OTHER_CONTEXT                                                          \
	"its protection domain must be of the id's context (id->verbs)"

VB_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *pub,
				struct ibv_qp_init_attr_ex *attr)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc;

	if (pub->qp || !attr)
		return rcm_why_refuse(id, "rdma_create_qp",
				      pub->qp ? "the id has a queue pair"
					      : "there are no attributes");
	if (!id->device)
		return rcm_why_refuse(id, "rdma_create_qp", NO_DEVICE);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (attr->pd && attr->pd->context != pub->verbs)
		return rcm_why_refuse(id, "rdma_create_qp", OTHER_CONTEXT);
	rc = take_xrcd(id, attr);
	if (rc)
		return rcm_pass(-rc);
	if (make_cqs(id, attr)) {
		drop_cqs(id);
		return -1;
	}
	if (!attr->srq)
		attr->srq = pub->srq;
	pub->qp = ibv_create_qp_ex(pub->verbs, attr);
	rc = pub->qp ? rcm_qp_init(id) : -errno;
	if (rc) {
		rdma_destroy_qp(pub);
		return rcm_pass(-rc);
	}
	pub->pd = attr->pd;
	return 0;
}

VB_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd ? pd : id->pd,
	};

	if (rdma_create_qp_ex(id, &ex))
		return -1;
	attr->cap = ex.cap;
	return 0;
}

VB_EXPORT void rdma_destroy_qp(struct rdma_cm_id *pub)
{
	struct rcm_id *id = rcm_id_of(pub);

	if (pub->qp)
		ibv_destroy_qp(pub->qp);
	pub->qp = NULL;
	if (id->made_qp_cqs)
		drop_cqs(id);
}

/* Functions for shared receive queues. */

/* Fills in the XRC domain and the completion queue if the program gives
 * none. */
static int prepare_xrc(struct rcm_id *id, struct ibv_srq_init_attr_ex *a)
{
	int rc = 0;

	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !a->xrcd)
		rc = default_xrcd(id, &a->xrcd);
	a->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	if (rc || (a->comp_mask & IBV_SRQ_INIT_ATTR_CQ && a->cq))
		return rc;
	/* the id's queue pair has made this completion queue */
	if (id->pub.recv_cq) {
		(void)rcm_why_refuse(id, "rdma_create_srq",
				     "the id's queue pair has made its "
				     "completion queue: give one in cq");
		return -EINVAL;
	}
	if (make_cq(id, a->attr.max_wr, &id->pub.recv_cq_channel,
		    &id->pub.recv_cq))
		return -errno;
	id->made_srq_cq = true;
	a->cq = id->pub.recv_cq;
	a->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

VB_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *pub,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct rcm_id *id = rcm_id_of(pub);
	int rc = 0;

	if (!attr || pub->srq)
		return rcm_why_refuse(id, "rdma_create_srq",
				      pub->srq ? "the id has a shared receive "
						 "queue"
					       : "there are no attributes");
	if (!id->device)
		return rcm_why_refuse(id, "rdma_create_srq", NO_DEVICE);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (!attr->pd || attr->pd->context != pub->verbs)
		return rcm_why_refuse(id, "rdma_create_srq", OTHER_CONTEXT);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	    attr->srq_type == IBV_SRQT_XRC)
		rc = prepare_xrc(id, attr);
	if (rc == 0) {
		pub->srq = ibv_create_srq_ex(pub->verbs, attr);
		rc = pub->srq ? 0 : -errno;
	}
	if (rc) {
		rdma_destroy_srq(pub);
		return rcm_pass(-rc);
	}
	pub->pd = attr->pd;
	return 0;
}

VB_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { .comp_mask = IBV_SRQ_INIT_ATTR_PD,
					   .pd = pd ? pd : id->pd };

	if (!attr)
		return rcm_why_refuse(rcm_id_of(id), __func__,
				      "there are no attributes");
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	if (id->qp_type == IBV_QPT_XRC_RECV)
		ex.srq_type = IBV_SRQT_XRC;
	else
		ex.srq_type = IBV_SRQT_BASIC;
	ex.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	if (rdma_create_srq_ex(id, &ex))
		return -1;
	attr->attr = ex.attr;
	return 0;
}

VB_EXPORT void rdma_destroy_srq(struct rdma_cm_id *pub)
{
	struct rcm_id *id = rcm_id_of(pub);

	if (pub->srq)
		ibv_destroy_srq(pub->srq);
	pub->srq = NULL;
	if (!id->made_srq_cq)
		return;
	ibv_destroy_cq(pub->recv_cq);
	ibv_destroy_comp_channel(pub->recv_cq_channel);
	pub->recv_cq = NULL;
	pub->recv_cq_channel = NULL;
	id->made_srq_cq = false;
}
