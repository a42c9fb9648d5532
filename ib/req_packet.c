/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds packets from a work request and a PSN (ib/req_packet.h). */
#include "core/sge.h"
#include "ib/rc.h"

// clang-format off
#define ROW(op, kind, code, traits) [WR_##op] = { true, KIND_##kind, code, traits }
const struct vb_req_row vb_req_rows[VB_REQ_ROWS] = {
/*  work request | kind   | code           | traits */
ROW(WRITE,        WRITE,   0,               0),
ROW(WRITE_IMM,    WRITE,   0,               REQ_HAS_IMM | REQ_CONSUMES),
ROW(SEND,         SEND,    0,               REQ_CONSUMES),
ROW(SEND_IMM,     SEND,    0,               REQ_HAS_IMM | REQ_CONSUMES),
ROW(SEND_INV,     SEND,    0,               REQ_HAS_INV | REQ_CONSUMES),
ROW(READ,         READ,    0,               REQ_ASKS),
ROW(CMP_SWAP,     ATOMIC,  CODE_CMP_SWAP,   REQ_ASKS),
ROW(FETCH_ADD,    ATOMIC,  CODE_FETCH_ADD,  REQ_ASKS),
ROW(ATOMIC_WRITE, ATOMIC_WRITE, CODE_ATOMIC_WRITE, REQ_ASKS),
ROW(BIND_MW,      SEND,    0,               REQ_LOCAL),
ROW(LOCAL_INV,    SEND,    0,               REQ_LOCAL),
};
#undef ROW
// clang-format on

#define ATOMIC_BYTES 8

/* Check the keys of the whole message before its first packet, so that a
 * message with a bad key is never sent in part. A message of one packet is
 * checked when its bytes are gathered. */
static bool ib_keys_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	bool returns_data = vb_req_asks(wqe) && wqe->op != WR_ATOMIC_WRITE;
	uint32_t need = returns_data ? ACCESS_LOCAL_WRITE : 0;

	if (wqe->flags & SEND_INLINE ||
	    (!vb_req_asks(wqe) && wqe->length <= qp->mtu))
		return true;
	return vb_sge_is_allowed(qp->pd, wqe->sge, wqe->num_sge, need);
}

enum vb_wc_status vb_req_judge(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
{
	const struct vb_req_row *row;

	if (wqe->op >= VB_REQ_ROWS || !vb_req_row_of(wqe)->valid)
		return WC_LOC_QP_OP_ERR;
	row = vb_req_row_of(wqe);
	/* Only reliable transports have READs, atomics and SEND with Invalidate
	 * (IBA 9.2, table 38). */
	if (row->traits & (REQ_ASKS | REQ_HAS_INV) &&
	    !vb_qp_type_is_reliable(qp->type))
		return WC_LOC_QP_OP_ERR;
	if (row->traits & REQ_LOCAL && qp->type == QPT_UD)
		return WC_LOC_QP_OP_ERR;
	if (row->traits & REQ_ASKS && qp->attr.max_rd_atomic == 0)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length > VB_MAX_MSG)
		return WC_LOC_LEN_ERR;
	if (row->kind == KIND_ATOMIC &&
	    vb_sge_total(wqe->sge, wqe->num_sge) < ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (row->traits & REQ_LOCAL)
		return WC_SUCCESS;
	return ib_keys_allow(qp, wqe) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

uint32_t vb_req_psns(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (vb_req_is_local(wqe))
		return 0;
	if (vb_req_row_of(wqe)->kind == KIND_ATOMIC ||
	    vb_req_row_of(wqe)->kind == KIND_ATOMIC_WRITE || wqe->length == 0)
		return 1;
	return (wqe->length + qp->mtu - 1) / qp->mtu;
}

static void ib_put(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		   struct vb_txq *out)
{
	size_t len = vb_ib_put_headers(vb_txq_begin(out), pkt);

	vb_txq_commit(out, (uint32_t)len, &qp->route);
}

static uint8_t opcode_of(const struct vb_qp *qp, uint8_t code)
{
	return vb_ib_class(qp->type) << 5 | code;
}

static uint8_t data_opcode(const struct vb_qp *qp, const struct vb_req_row *row,
			   enum vb_ib_place place)
{
	bool last = place & PLACE_LAST;

	return opcode_of(qp,
			 vb_ib_code_pick(row->kind, place,
					 last && row->traits & REQ_HAS_IMM,
					 last && row->traits & REQ_HAS_INV));
}

static enum vb_fault put_payload(const struct vb_qp *qp,
				 const struct vb_send_wqe *wqe, uint32_t offset,
				 uint8_t *to, uint32_t len)
{
	if (wqe->flags & SEND_INLINE) {
		memcpy(to, wqe->inline_data + offset, len);
		return FAULT_NONE;
	}
	return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, offset, to, len);
}

enum vb_fault vb_req_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 const struct vb_req_segment *seg,
			 struct vb_ib_pkt *pkt, struct vb_txq *out)
{
	const struct vb_req_row *row = vb_req_row_of(wqe);
	uint8_t *bytes = vb_txq_begin(out);
	uint32_t len = seg->len;
	enum vb_fault fault;
	size_t hdr;

	pkt->bth.opcode = data_opcode(qp, row, seg->place);
	pkt->bth.pad = -len & 3;
	pkt->bth.solicited = seg->place & PLACE_LAST &&
			     row->traits & REQ_CONSUMES &&
			     wqe->flags & SEND_SOLICITED;
	pkt->imm = pkt->ieth_rkey = wqe->imm;
	pkt->xrc_srqn = wqe->srqn;
	hdr = vb_ib_put_headers(bytes, pkt);
	fault = put_payload(qp, wqe, seg->offset, bytes + hdr, len);
	if (fault)
		return fault;
	/* Zero the pad bytes; the ICRC overwrites the rest of this word. */
	vb_store_le32(bytes + hdr + len, 0);
	vb_txq_commit(out, (uint32_t)hdr + len + pkt->bth.pad, seg->route);
	return FAULT_NONE;
}

enum vb_fault vb_req_put_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint32_t psn, bool ack_req, struct vb_txq *out)
{
	uint32_t nth = (psn - wqe->first_psn) & VB_PSN_MASK;
	uint32_t offset = nth * qp->mtu;
	const struct vb_req_segment seg = {
		.offset = offset,
		.len = VB_MIN(qp->mtu, wqe->length - offset),
		.place = (nth == 0 ? PLACE_FIRST : 0) |
			 (nth + 1 == wqe->psn_count ? PLACE_LAST : 0),
		.route = &qp->route,
	};
	/* This struct is not zeroed: vb_ib_put_headers() reads only the headers
	 * that the opcode has, and zeroing would cost time for each packet. */
	struct vb_ib_pkt pkt;

	pkt.bth = vb_rc_bth(qp, 0, psn);
	pkt.bth.ack_req = ack_req;
	pkt.reth = (struct vb_reth){ wqe->remote_addr, wqe->rkey, wqe->length };
	return vb_req_put(qp, wqe, &seg, &pkt, out);
}

static void put_fetching_atomic(struct vb_qp *qp, const struct vb_send_wqe *wqe,
				struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	const struct vb_req_row *row = vb_req_row_of(wqe);
	bool swap = row->code == CODE_CMP_SWAP;
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode_of(qp, row->code), wqe->first_psn),
		.xrc_srqn = wqe->srqn,
		.atomic = {
			.va = wqe->remote_addr,
			.rkey = wqe->rkey,
			.swap_add = swap ? wqe->swap : wqe->compare_add,
			.compare = swap ? wqe->compare_add : 0,
		},
	};

	pkt.bth.ack_req = true;
	ib_put(qp, &pkt, out);
}

static void put_atomic_write(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			     struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode_of(qp, CODE_ATOMIC_WRITE),
				 wqe->first_psn),
		.xrc_srqn = wqe->srqn,
		.reth = { wqe->remote_addr, wqe->rkey, ATOMIC_BYTES },
	};
	uint8_t *bytes = vb_txq_begin(out);
	size_t hdr;

	pkt.bth.ack_req = true;
	hdr = vb_ib_put_headers(bytes, &pkt);
	memcpy(bytes + hdr, &wqe->swap, ATOMIC_BYTES);
	vb_txq_commit(out, (uint32_t)hdr + ATOMIC_BYTES, &qp->route);
}

void vb_req_put_atomic(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		       struct vb_txq *out)
{
	if (vb_req_row_of(wqe)->kind == KIND_ATOMIC)
		put_fetching_atomic(qp, wqe, out);
	else
		put_atomic_write(qp, wqe, out);
}

void vb_req_put_read(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     uint32_t psn, uint32_t count, struct vb_txq *out)
{
	uint32_t offset = ((psn - wqe->first_psn) & VB_PSN_MASK) * qp->mtu;
	uint64_t room = (uint64_t)count * qp->mtu;
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode_of(qp, CODE_READ_REQUEST), psn),
		.xrc_srqn = wqe->srqn,
		.reth = {
			.va = wqe->remote_addr + offset,
			.rkey = wqe->rkey,
			.length = VB_MIN(wqe->length - offset, room),
		},
	};

	pkt.bth.ack_req = true;
	ib_put(qp, &pkt, out);
}
