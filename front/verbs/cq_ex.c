/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended completion queues (ibv_start_poll(3)). The program looks at one
 * completion at a time, which lies in cq->at; cq->poll is locked from
 * start_poll to end_poll, so that only one thread uses cq->at.
 */
#include "base/clock.h"
#include "front/verbs/poll.h"

static struct vb_front_cq *cq_of(struct ibv_cq_ex *ex)
{
	return VB_CONTAINER_OF(ex, struct vb_front_cq, ex);
}

static int next_entry(struct vb_front_cq *cq, bool look_at_link)
{
	int got = look_at_link ? vb_front_poll_core(cq->core, 1, &cq->at)
			       : vb_cq_poll(cq->core, 1, &cq->at);

	if (got <= 0)
		return got ? -got : ENOENT;
	cq->ex.wr_id = cq->at.wr_id;
	cq->ex.status = (enum ibv_wc_status)cq->at.status;
	return 0;
}

static int VB_UNCHECKED cq_start_poll(struct ibv_cq_ex *ex,
				      struct ibv_poll_cq_attr *attr)
{
	struct vb_front_cq *cq = cq_of(ex);
	int rc;

	if (attr->comp_mask)
		return vb_front_errno_of(-EINVAL, "ibv_start_poll");
	vb_mutex_lock(&cq->poll);
	rc = next_entry(cq, true);
	if (rc)
		vb_mutex_unlock(&cq->poll);
	return rc;
}

static int cq_next_poll(struct ibv_cq_ex *ex)
{
	return next_entry(cq_of(ex), false);
}

static void VB_UNCHECKED cq_end_poll(struct ibv_cq_ex *ex)
{
	vb_mutex_unlock(&cq_of(ex)->poll);
}

static enum ibv_wc_opcode cq_read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cq_of(ex)->at.opcode;
}

static uint32_t cq_read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.byte_len;
}

static __be32 cq_read_imm_data(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.imm;
}

static uint32_t cq_read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.qpn;
}

static uint32_t cq_read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.src_qp;
}

static unsigned int cq_read_wc_flags(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.wc_flags;
}

static uint8_t cq_read_sl(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.sl;
}

static uint32_t cq_read_slid(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.slid;
}

static uint8_t cq_read_path_bits(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.path_bits;
}

static uint32_t cq_read_flow_tag(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.flow_tag;
}

/* The cause of an error, which docs/ERRORS.md explains. */
static uint32_t cq_read_vendor_err(struct ibv_cq_ex *ex)
{
	const struct vb_cqe *e = &cq_of(ex)->at;

	return vb_cqe_failed(e) ? e->why : 0;
}

/* The VLAN tag is always 0, since the adapter removes none. */
static uint16_t cq_read_zero16(struct ibv_cq_ex *ex)
{
	return 0;
}

static void cq_read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	const struct vb_cqe *e = &cq_of(ex)->at;

	*info = (struct ibv_wc_tm_info){ e->tm_tag,
					 vb_cqe_failed(e) ? 0 : e->tm_app_ctx };
}

static uint64_t cq_read_completion_ts(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.timestamp;
}

static uint64_t cq_read_wallclock(struct ibv_cq_ex *ex)
{
	return vb_clock_wall(cq_of(ex)->at.timestamp);
}

void vb_front_cq_ex_init(struct vb_front_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = cq_start_poll;
	ex->next_poll = cq_next_poll;
	ex->end_poll = cq_end_poll;
	ex->read_opcode = cq_read_opcode;
	ex->read_vendor_err = cq_read_vendor_err;
	ex->read_byte_len = cq_read_byte_len;
	ex->read_imm_data = cq_read_imm_data;
	ex->read_qp_num = cq_read_qp_num;
	ex->read_src_qp = cq_read_src_qp;
	ex->read_wc_flags = cq_read_wc_flags;
	ex->read_slid = cq_read_slid;
	ex->read_sl = cq_read_sl;
	ex->read_dlid_path_bits = cq_read_path_bits;
	ex->read_completion_ts = cq_read_completion_ts;
	ex->read_cvlan = cq_read_zero16;
	ex->read_flow_tag = cq_read_flow_tag;
	ex->read_tm_info = cq_read_tm_info;
	ex->read_completion_wallclock_ns = cq_read_wallclock;
}
