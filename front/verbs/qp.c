/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: create, modify, query and destroy. Attributes are converted
 * between the public structs and those of core. */
#include "front/verbs/front.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

/* The operations that the ibv_wr_* calls of this device support. */
#define SEND_OPS                                                               \
	((uint64_t)IBV_QP_EX_WITH_RDMA_WRITE |                                 \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |            \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |             \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                                   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |      \
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |               \
	 IBV_QP_EX_WITH_ATOMIC_WRITE)
#define SEND_OPS_UD                                                            \
	((uint64_t)IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define SEND_OPS_UC                                                            \
	(SEND_OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE |                             \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |       \
	 IBV_QP_EX_WITH_BIND_MW)

static uint64_t front_ops_of(struct ibv_context *context, enum ibv_qp_type type)
{
	if (vb_front_is_rnic(context)) /* RFC 7306 has no ATOMIC WRITE */
		return type == IBV_QPT_RC
			       ? SEND_OPS &
					 ~(uint64_t)IBV_QP_EX_WITH_ATOMIC_WRITE
			       : 0;
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return SEND_OPS;
	case IBV_QPT_UC:
		return SEND_OPS_UC;
	case IBV_QPT_UD:
		return SEND_OPS_UD;
	case IBV_QPT_RAW_PACKET:
		return IBV_QP_EX_WITH_SEND;
	default:
		return 0;
	}
}

#define RSS_ATTRS (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)

/* Has the program named all objects that a queue pair of this type needs? */
static bool parts_are_there(const struct ibv_qp_init_attr_ex *a)
{
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd;
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd)
		return false;
	/* With an RSS table, completions go to the CQs of the table's
	 * queues. */
	if (a->comp_mask & RSS_ATTRS)
		return true;
	if (!a->send_cq)
		return false;
	return a->qp_type == IBV_QPT_XRC_SEND || a->recv_cq;
}

static int known(enum vb_front_kind kind, const void *object)
{
	return object ? vb_front_live(kind, object) : 0;
}

/* Do the objects that the program has named exist? A member whose bit is not in
 * comp_mask may have any value. Returns 0 or -errno. */
static int check_parts(const struct ibv_qp_init_attr_ex *a)
{
	int rc = known(FRONT_CQ, a->send_cq);

	if (rc == 0)
		rc = known(FRONT_CQ, a->recv_cq);
	if (rc == 0)
		rc = known(FRONT_SRQ, a->srq);
	if (rc == 0 && a->comp_mask & IBV_QP_INIT_ATTR_PD)
		rc = known(FRONT_PD, a->pd);
	if (rc == 0 && a->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		rc = known(FRONT_XRCD, a->xrcd);
	if (rc == 0 && a->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		rc = known(FRONT_TABLE, a->rwq_ind_tbl);
	return rc;
}

static int front_check_init(struct ibv_context *context,
			    const struct ibv_qp_init_attr_ex *a)
{
	const uint32_t masks = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | RSS_ATTRS;
	const uint64_t ops = front_ops_of(context, a->qp_type);
	int rc;

	if (a->comp_mask & ~masks)
		return -EOPNOTSUPP;
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && a->create_flags)
		return -EOPNOTSUPP;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    a->send_ops_flags & ~ops)
		return -EOPNOTSUPP;
	if (!ops &&
	    (a->qp_type != IBV_QPT_XRC_RECV || vb_front_is_rnic(context)))
		return -EOPNOTSUPP;
	if (!parts_are_there(a))
		return -EINVAL;
	rc = check_parts(a);
	if (rc)
		return rc;
	return a->comp_mask & RSS_ATTRS ? vb_front_rss_check(a) : 0;
}

static void take_caps(struct ibv_qp_cap *cap, const struct vb_qp_init *init)
{
	cap->max_send_wr = init->max_send_wr;
	cap->max_recv_wr = init->max_recv_wr;
	cap->max_send_sge = init->max_send_sge;
	cap->max_recv_sge = init->max_recv_sge;
	cap->max_inline_data = init->max_inline;
}

/* Set the completion queues of the queue pair. Returns 0 or -errno. */
static int take_queues(const struct ibv_qp_init_attr_ex *a,
		       struct vb_qp_init *init)
{
	if (a->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return vb_front_rss_take(a, init);
	init->send_cq = a->send_cq ? vb_front_cq(a->send_cq)->core : NULL;
	init->recv_cq = a->recv_cq ? vb_front_cq(a->recv_cq)->core : NULL;
	return 0;
}

static int create_core_qp(struct vb_front_qp *qp, struct ibv_context *context,
			  struct ibv_qp_init_attr_ex *a)
{
	struct vb_front_context *c = vb_front_context(context);
	/* A member whose bit is not in comp_mask may have any value. */
	bool has_pd = a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd;
	bool has_xrcd = a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd;
	struct vb_qp_init init = {
		.type = (enum vb_qp_type)a->qp_type,
		.pd = has_pd ? vb_front_pd(a->pd)->core : NULL,
		.srq = a->srq ? vb_front_srq(a->srq)->core : NULL,
		.share = &qp->share,
		.max_send_wr = a->cap.max_send_wr,
		.max_recv_wr = a->srq ? 0 : a->cap.max_recv_wr,
		.max_send_sge = a->cap.max_send_sge,
		.max_recv_sge = a->srq ? 0 : a->cap.max_recv_sge,
		.max_inline = a->cap.max_inline_data,
		.memory = has_pd ? vb_front_memory(a->pd) : NULL,
		.sig_all = a->sq_sig_all != 0,
		.async = &c->async,
		.owner = qp,
	};
	int rc;

	qp->share = (struct vb_qp_share){
		.async = &c->async,
		.owner = qp,
		.xrcd = has_xrcd ? vb_front_xrcd(a->xrcd)->core : NULL,
	};
	rc = take_queues(a, &init);

	if (rc)
		return rc;
	rc = a->qp_type == IBV_QPT_RAW_PACKET
		     ? vb_engine_raw_create(c->adapter, &init, &qp->core)
		     : vb_qp_create(c->adapter, &init, &qp->core);
	if (rc)
		free(init.rss);
	else
		take_caps(&a->cap, &init);
	return rc;
}

static void fill_qp(struct vb_front_qp *qp, struct ibv_context *context,
		    const struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *ibv = &qp->ibv;

	ibv->context = context;
	ibv->qp_context = a->qp_context;
	ibv->pd = a->qp_type == IBV_QPT_XRC_RECV ? NULL : a->pd;
	ibv->send_cq = a->send_cq;
	ibv->recv_cq = a->recv_cq;
	ibv->srq = a->srq;
	ibv->handle = vb_front_handle();
	ibv->qp_num = atomic_load(&qp->core->qpn);
	ibv->state = IBV_QPS_RESET;
	ibv->qp_type = a->qp_type;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	qp->sig_all = a->sq_sig_all != 0;
	if (a->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) {
		qp->table = a->rwq_ind_tbl;
		vb_front_rss_hold(qp->table, 1);
	}
	qp->extended = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (qp->extended)
		vb_front_builder_init(qp);
}

/* Does the program search for the largest max_inline_data that a queue pair
 * accepts, as libfabric does? Such a program asks again with the same
 * attributes, except that max_inline_data differs. */
static bool is_probe(const struct ibv_qp_init_attr_ex *a)
{
	static _Atomic uint64_t last;
	uint64_t shape = (uintptr_t)a->send_cq;

	shape = shape * 31 + (uintptr_t)a->recv_cq;
	shape = shape * 31 + a->cap.max_send_wr;
	shape = shape * 31 + a->cap.max_recv_wr;
	shape = shape * 31 + a->cap.max_send_sge;
	shape = shape * 31 + a->cap.max_recv_sge;
	return atomic_exchange(&last, shape) == shape &&
	       a->cap.max_inline_data > vb_limits.max_inline;
}

/* Do verbs define the queue pair type @type? A program may test whether the
 * device supports a type that verbs define; any other number is a mistake. */
static bool is_type(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ||
	       type == IBV_QPT_RAW_PACKET || type == IBV_QPT_XRC_SEND ||
	       type == IBV_QPT_XRC_RECV || type == IBV_QPT_DRIVER;
}

/* Returns which object the program must add to create the queue pair, or the
 * text of the errno. */
static const char *missing_part(const struct ibv_qp_init_attr_ex *a, int rc)
{
	if (!is_type(a->qp_type))
		return "there is no such qp_type (IBV_QPT_RC is 2, IBV_QPT_UD 4)";
	if (rc != -EINVAL || parts_are_there(a))
		return strerror(-rc);
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return "it needs xrcd, and its bit in comp_mask";
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd)
		return "it needs pd, and its bit in comp_mask";
	return a->send_cq ? "it needs recv_cq" : "it needs send_cq";
}

/* Write to @text which capacity exceeds its limit, or another reason why the
 * queue pair cannot be created. */
static void put_excess(const struct ibv_qp_init_attr_ex *a, int rc, char *text,
		       size_t room)
{
	const struct ibv_qp_cap *c = &a->cap;
	const struct {
		const char *name;
		uint32_t asked, most;
	} caps[] = {
		{ "max_send_wr", c->max_send_wr, vb_limits.max_qp_wr },
		{ "max_recv_wr", c->max_recv_wr, vb_limits.max_qp_wr },
		{ "max_send_sge", c->max_send_sge, vb_limits.max_sge },
		{ "max_recv_sge", c->max_recv_sge, vb_limits.max_sge },
		{ "max_inline_data", c->max_inline_data, vb_limits.max_inline },
	};

	snprintf(text, room, "%s", missing_part(a, rc));
	for (size_t i = 0; i < VB_COUNT(caps); i++)
		if (caps[i].asked > caps[i].most)
			snprintf(text, room, "%s is %u, at most %u is possible",
				 caps[i].name, caps[i].asked, caps[i].most);
}

static void refuse_qp(struct ibv_context *context,
		      const struct ibv_qp_init_attr_ex *a, int rc, bool probe)
{
	char text[120];

	put_excess(a, rc, text, sizeof(text));
	if (probe)
		rc = -EOPNOTSUPP;
	else if (!is_type(a->qp_type))
		rc = -EINVAL;
	VB_FRONT_TELL(rc, WHY_CREATE, context,
		      "%s: cannot create a queue pair of type %d with a send "
		      "queue of %u entries of %u SGEs, a receive queue of %u "
		      "entries of %u SGEs and %u inline bytes: %s",
		      context->device->name, (int)a->qp_type,
		      a->cap.max_send_wr, a->cap.max_send_sge,
		      a->cap.max_recv_wr, a->cap.max_recv_sge,
		      a->cap.max_inline_data, text);
}

struct ibv_qp *vb_front_create_qp_ex(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *a)
{
	struct vb_front_qp *qp;
	int rc = front_check_init(context, a);
	bool probe = is_probe(a);

	if (rc)
		goto refuse;
	rc = -ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto refuse;
	rc = create_core_qp(qp, context, a);
	if (rc) {
		free(qp);
		goto refuse;
	}
	fill_qp(qp, context, a);
	vb_front_live_add(&qp->live, FRONT_QP, &qp->ibv, &qp->ibv.handle);
	vb_front_context_get(qp->ibv.context);
	return &qp->ibv;

refuse:
	refuse_qp(context, a, rc, probe);
	return vb_front_null(rc);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex a = { .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = pd };
	struct ibv_qp *qp;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	/* The extended struct begins with the members of the old one. */
	memcpy(&a, init, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	qp = vb_front_create_qp_ex(pd->context, &a);
	if (qp)
		init->cap = a.cap;
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vb_front_qp(qp)->extended ? &vb_front_qp(qp)->ex : NULL;
}

struct vb_av vb_front_av_in(const struct ibv_ah_attr *a)
{
	struct vb_av av = {
		.flow_label = a->grh.flow_label,
		.dlid = a->dlid,
		.sgid_index = a->grh.sgid_index,
		.hop_limit = a->grh.hop_limit,
		.traffic_class = a->grh.traffic_class,
		.sl = a->sl,
		.src_path_bits = a->src_path_bits,
		.static_rate = a->static_rate,
		.port_num = a->port_num,
		.is_global = a->is_global != 0,
	};

	memcpy(av.dgid.raw, a->grh.dgid.raw, sizeof(av.dgid.raw));
	return av;
}

struct ibv_ah_attr vb_front_av_out(const struct vb_av *av)
{
	struct ibv_ah_attr a = {
		.grh = {
			.flow_label = av->flow_label,
			.sgid_index = av->sgid_index,
			.hop_limit = av->hop_limit,
			.traffic_class = av->traffic_class,
		},
		.dlid = av->dlid,
		.sl = av->sl,
		.src_path_bits = av->src_path_bits,
		.static_rate = av->static_rate,
		.is_global = av->is_global,
		.port_num = av->port_num,
	};

	memcpy(a.grh.dgid.raw, av->dgid.raw, sizeof(av->dgid.raw));
	return a;
}

/* Convert attributes. The program sets only the members that its mask names;
 * the others may have any value, so no conversion here may fail. */
static struct vb_qp_attr attr_in(const struct ibv_qp_attr *a)
{
	return (struct vb_qp_attr){
		.qp_state = (enum vb_qp_state)a->qp_state,
		.cur_qp_state = (enum vb_qp_state)a->cur_qp_state,
		.path_mtu = (uint8_t)VB_MIN((unsigned)a->path_mtu, 255u),
		.path_mig_state =
			(uint8_t)VB_MIN((unsigned)a->path_mig_state, 255u),
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.access_flags = a->qp_access_flags,
		.av = vb_front_av_in(&a->ah_attr),
		.alt_av = vb_front_av_in(&a->alt_ah_attr),
		.pkey_index = a->pkey_index,
		.port_num = a->port_num,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_pkey_index = a->alt_pkey_index,
		.alt_port_num = a->alt_port_num,
		.alt_timeout = a->alt_timeout,
		.sqd_async_notify = a->en_sqd_async_notify != 0,
		.rate_limit = a->rate_limit,
	};
}

static void attr_out(const struct vb_qp_attr *from, struct ibv_qp_attr *a)
{
	*a = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)from->qp_state,
		.cur_qp_state = (enum ibv_qp_state)from->qp_state,
		.path_mtu = (enum ibv_mtu)from->path_mtu,
		.path_mig_state = (enum ibv_mig_state)from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qp_num,
		.qp_access_flags = from->access_flags,
		.ah_attr = vb_front_av_out(&from->av),
		.alt_ah_attr = vb_front_av_out(&from->alt_av),
		.pkey_index = from->pkey_index,
		.en_sqd_async_notify = from->sqd_async_notify,
		.sq_draining = from->sq_draining,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.alt_pkey_index = from->alt_pkey_index,
		.alt_port_num = from->alt_port_num,
		.alt_timeout = from->alt_timeout,
		.rate_limit = from->rate_limit,
	};
}

/* Remove from the mask the attributes that the type lacks: an XRC initiator has
 * no responder's attributes, and a target no requester's. Programs (perftest)
 * set all attributes of RC, and adapters ignore those that do not apply. */
static uint32_t mask_in(enum ibv_qp_type type, uint32_t mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(uint32_t)(IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(uint32_t)(IBV_QP_MAX_QP_RD_ATOMIC |
					  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vb_qp_attr a = attr_in(attr);
	int cancel, rc = vb_front_unknown(FRONT_QP, ibv);
	struct vb_qp *core;

	if (rc)
		return rc;
	core = vb_front_qp(ibv)->core;
	/* A queue pair over a table has no state; only its work queues have
	 * one. */
	if (core->rss) {
		vb_why(WHY_NO_SUPPORT, ibv->qp_num,
		       "qp 0x%x: ibv_modify_qp of a queue pair over a table of "
		       "work queues: ibv_modify_wq moves those",
		       ibv->qp_num);
		return vb_front_errno(-EOPNOTSUPP);
	}
	cancel = vb_cancel_off();
	/* Send the ACK that waits for the program's next reply before the state
	 * changes. */
	vb_drive_settle(core);
	rc = vb_qp_modify(core, &a, mask_in(ibv->qp_type, (uint32_t)attr_mask),
			  vb_now());
	/* Drive the queue pair even after a failure: a poster that found
	 * `drive` held meanwhile relies on this thread to send its work
	 * request. */
	vb_drive(core);
	vb_cancel_back(cancel);
	if (rc)
		return vb_front_errno(rc);
	if (attr_mask & IBV_QP_STATE)
		ibv->state = attr->qp_state;
	return 0;
}

static void query_caps(const struct vb_qp *core, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = core->sq.open;
	cap->max_send_sge = core->sq.max_sge;
	cap->max_inline_data = core->sq.max_inline;
	/* The field is 0 when receives come from a shared queue. */
	cap->max_recv_wr = core->rq.cap;
	cap->max_recv_sge = core->rq.max_sge;
}

/* The first state of an iWARP queue pair is idle, which the ABI lacks. Report
 * it as INIT, since iWARP has no RESET state. */
static void tell_idle(const struct ibv_qp *ibv, struct ibv_qp_attr *attr)
{
	if (attr->qp_state == IBV_QPS_RESET &&
	    ibv->context->device->transport_type == IBV_TRANSPORT_IWARP)
		attr->qp_state = attr->cur_qp_state = IBV_QPS_INIT;
}

/* Query a queue pair. Fills in every attribute, because the mask is only a hint
 * (ibv_query_qp(3)). */
int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	int rc = vb_front_unknown(FRONT_QP, ibv);
	struct vb_qp_attr a;

	if (rc)
		return rc;
	vb_qp_query(qp->core, &a);
	/* A poster that found `drive` held meanwhile relies on this thread to
	 * send its work request. */
	vb_drive(qp->core);
	attr_out(&a, attr);
	query_caps(qp->core, &attr->cap);
	ibv->state = attr->qp_state;
	tell_idle(ibv, attr);
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = attr->cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->sig_all,
	};
	vb_tools_wrote(attr, sizeof(*attr));
	vb_tools_wrote(init_attr, sizeof(*init_attr));
	return 0;
}

static int destroy_core_qp(struct vb_front_qp *qp)
{
	struct vb_rss *rss;
	int rc;

	if (qp->ibv.qp_type == IBV_QPT_XRC_RECV &&
	    !vb_qp_unshare(qp->core, &qp->share)) {
		/* As in ibv_query_qp(), a poster may rely on this thread to
		 * send its work request. */
		vb_drive(qp->core);
		return 0;
	}
	if (qp->ibv.qp_type != IBV_QPT_RAW_PACKET) {
		vb_drive_forget(qp->core);
		vb_qp_destroy(qp->core);
		return 0;
	}
	rss = qp->core->rss;
	rc = vb_engine_raw_destroy(qp->core);
	if (rc) {
		vb_why(WHY_BUSY, (uintptr_t)qp, "qp 0x%x: not destroyed: it still has flows",
		       qp->ibv.qp_num);
		return rc;
	}
	if (qp->table)
		vb_front_rss_hold(qp->table, -1);
	free(rss);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	int cancel, rc = vb_front_claim(FRONT_QP, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&qp->live, 0);
	if (ibv->qp_type == IBV_QPT_UD && vb_engine_is_attached(qp->core)) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "qp 0x%x: not destroyed: it is attached to a multicast group",
		       ibv->qp_num);
		return vb_front_keep(&qp->live, -EBUSY);
	}
	cancel = vb_cancel_off();
	rc = destroy_core_qp(qp);
	vb_cancel_back(cancel);
	if (rc)
		return vb_front_keep(&qp->live, rc);
	vb_front_live_del(&qp->live);
	vb_front_drain_async(ibv->context, qp, &qp->async_taken, &ibv->mutex,
			     &ibv->cond, &ibv->events_completed);
	vb_front_context_put(ibv->context);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(qp);
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	return 0; /* packets are placed in order, but that is not promised */
}

/*
 * Set the options of enhanced connection establishment. They are exchanged
 * between adapters of one vendor, and this adapter has none. EOPNOTSUPP for
 * vendor 0 tells a program so.
 */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return vb_front_errno(ece->vendor_id ? -EINVAL : -EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){ 0 };
	return 0;
}
