/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs ibv_poll_cq() and ibv_req_notify_cq(). */
#include "front/verbs/poll.h"

#define POLL_BATCH 16

static void wc_out(const struct vb_cqe *e, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = e->wr_id,
		.status = (enum ibv_wc_status)e->status,
		.opcode = (enum ibv_wc_opcode)e->opcode,
		.byte_len = e->byte_len,
		.imm_data = e->imm,
		.qp_num = e->qpn,
		.src_qp = e->src_qp,
		.wc_flags = e->wc_flags,
		.pkey_index = e->pkey_index,
		.slid = e->slid,
		.sl = e->sl,
		.dlid_path_bits = e->path_bits,
	};
	if (VB_UNLIKELY(vb_cqe_failed(e)))
		wc->vendor_err = e->why;
}

int vb_front_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct vb_cq *cq = vb_front_cq(ibv)->core;
	struct vb_cqe batch[POLL_BATCH];
	int done = 0;

	while (done < count) {
		int want = VB_MIN(count - done, POLL_BATCH);
		int got = done ? vb_cq_poll(cq, want, batch)
			       : vb_front_poll_core(cq, want, batch);

		if (VB_UNLIKELY(got < 0))
			return done ? done : got;
		for (int i = 0; i < got; i++)
			wc_out(&batch[i], &wc[done + i]);
		vb_tools_wrote(&wc[done], (size_t)got * sizeof(*wc));
		done += got;
		if (got < want)
			break;
	}
	return done;
}

int vb_front_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct vb_cq *cq = vb_front_cq(ibv)->core;

	vb_cq_arm(cq, solicited_only != 0);
	vb_engine_armed(cq->channel);
	return 0;
}
