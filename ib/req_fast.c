/* SPDX-License-Identifier: BSD-2-Clause */
/* The fast path for runs of small messages: SENDs and WRITEs of one packet
 * whose data is inline or in one piece. The checks that ib/req.c makes for each
 * message are made here once for the run. An unusual WQE ends the run and is
 * left to ib/req.c, which also handles every error. */
#include "base/guard.h"
#include "core/mr.h"
#include "ib/req_priv.h"

struct run {
	struct vb_qp *qp;
	struct vb_txq *out;
	struct vb_bth bth;
	struct vb_mr_use use; /* the access to the last message's memory */
};

static bool is_plain(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if ((wqe->op != WR_WRITE && wqe->op != WR_SEND) ||
	    wqe->flags & SEND_FENCE || wqe->length == 0 ||
	    wqe->length > qp->mtu)
		return false;
	return wqe->flags & SEND_INLINE ||
	       (wqe->num_sge == 1 && wqe->sge[0].length == wqe->length);
}

static bool ib_fetch(struct run *r, const struct vb_send_wqe *wqe, uint8_t *to)
{
	const struct vb_sge *from = wqe->sge;

	if (wqe->flags & SEND_INLINE) {
		memcpy(to, wqe->inline_data, wqe->length);
		return true;
	}
	return vb_mr_begin_next(r->qp->adapter, r->qp->pd, 0, from->lkey,
				from->addr, wqe->length, 0, &r->use) &&
	       vb_guard_fetch(to, r->use.at, wqe->length) == 0;
}

/* One packet is also the last of its message, hence it asks for an ACK. */
static size_t put_headers(struct run *r, const struct vb_send_wqe *wqe,
			  uint8_t *bytes)
{
	const struct vb_reth reth = { wqe->remote_addr, wqe->rkey,
				      wqe->length };
	bool writes = wqe->op == WR_WRITE;

	r->bth.opcode =
		CLASS_RC << 5 | (writes ? CODE_WRITE_ONLY : CODE_SEND_ONLY);
	r->bth.solicited = !writes && wqe->flags & SEND_SOLICITED;
	r->bth.pad = -wqe->length & 3;
	r->bth.psn = wqe->first_psn;
	return vb_ib_put_fast(bytes, &r->bth, writes ? &reth : NULL);
}

static bool send_one(struct run *r, struct vb_req *req)
{
	struct vb_send_wqe *wqe = vb_sq_at(&r->qp->sq, req->begun);
	uint8_t *bytes = vb_txq_begin(r->out);
	size_t hdr;

	if (!is_plain(r->qp, wqe))
		return false;
	wqe->first_psn = req->next;
	wqe->psn_count = 1;
	hdr = put_headers(r, wqe, bytes);
	if (!ib_fetch(r, wqe, bytes + hdr))
		return false;
	/* Zero the pad; the rest of the word is overwritten by the ICRC. */
	vb_store_le32(bytes + hdr + wqe->length, 0);
	vb_txq_commit(r->out, (uint32_t)hdr + wqe->length + r->bth.pad,
		      &r->qp->route);
	req->next = req->send = vb_psn_add(req->next, 1);
	req->cur = ++req->begun;
	return true;
}

bool vb_req_fast_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_sq_end(&qp->sq), first = req->next;
	uint32_t room = vb_req_room(req);
	struct run run = { .qp = qp, .out = out };

	if (qp->type != QPT_RC || vb_rc_state(qp) != QPS_RTS ||
	    req->cur != req->begun || req->stop_status != WC_SUCCESS)
		return false;
	run.bth = vb_rc_bth(qp, 0, 0);
	run.bth.ack_req = true;
	for (; req->begun != end && room && vb_txq_has_room(out); room--)
		if (!send_one(&run, req))
			break;
	vb_mr_end(&run.use);
	if (req->next == first)
		return false;
	req->since_ack_req = 0;
	vb_window_time(&req->window, first, now);
	vb_req_sent(qp, now);
	return true;
}
