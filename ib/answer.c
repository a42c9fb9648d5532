/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a responder's answers. They leave in the order of the requests: READ
 * responses and atomic results first, then one ACK or NAK for everything before
 * it. If an ACK overtook a READ response, the requester would take the response
 * for lost. */
#include "core/mr.h"
#include "ib/rc.h"

static uint8_t opcode(const struct vb_qp *qp, uint8_t code)
{
	return vb_ib_class(qp->type) << 5 | code;
}

static void put_aeth(struct vb_qp *qp, uint8_t syndrome, uint32_t psn,
		     struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	const struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode(qp, CODE_ACK), psn),
		.aeth = { syndrome, vb_rc(qp)->resp.msn },
	};
	size_t len = vb_ib_put_headers(vb_txq_begin(out), &pkt);

	vb_txq_commit(out, (uint32_t)len, &qp->route);
}

static void put_atomic_ack(struct vb_qp *qp, const struct vb_answer *a,
			   struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	const struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode(qp, CODE_ATOMIC_ACK), a->psn),
		.aeth = { VB_SYN_ACK, a->msn },
		.atomic_ack = a->value,
	};
	size_t len = vb_ib_put_headers(vb_txq_begin(out), &pkt);

	vb_txq_commit(out, (uint32_t)len, &qp->route);
}

static enum vb_fault read_memory(struct vb_qp *qp, const struct vb_answer *a,
				 uint32_t offset, uint8_t *to, uint32_t len)
	VB_REQUIRES(qp->drive)
{
	bool xrc = qp->type == QPT_XRC_RECV;
	enum vb_fault fault;

	if (len == 0)
		return FAULT_NONE;
	if (vb_xrc_read_is_forwarded(qp, a))
		return vb_xrc_read_take(qp, to, len);
	fault = xrc ? vb_xrc_enter(qp, a->srqn) : FAULT_NONE;
	if (fault == FAULT_NONE)
		fault = vb_mr_read(qp->adapter, qp->pd, vb_rc_qpn(qp), a->rkey,
				   a->run_va + offset, to, len);
	if (xrc)
		vb_xrc_leave(qp);
	return fault;
}

/* Send the next packet of a READ response. The key is checked for each packet,
 * since the program may have deregistered the region after the previous
 * packet. */
static enum vb_fault put_response(struct vb_qp *qp, const struct vb_answer *a,
				  struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	uint32_t offset = a->sent * qp->mtu;
	uint32_t len = VB_MIN(qp->mtu, a->run_length - offset);
	uint8_t place = (a->sent == 0 ? PLACE_FIRST : 0) |
			(a->sent + 1 == a->run_count ? PLACE_LAST : 0);
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode(qp, vb_ib_code_read_resp(place)),
				 vb_psn_add(a->run_psn, a->sent)),
		.aeth = { VB_SYN_ACK, a->msn },
	};
	uint8_t *bytes = vb_txq_begin(out);
	enum vb_fault fault;
	size_t hdr;

	pkt.bth.pad = -len & 3;
	hdr = vb_ib_put_headers(bytes, &pkt);
	fault = read_memory(qp, a, offset, bytes + hdr, len);
	if (fault)
		return fault;
	memset(bytes + hdr + len, 0, pkt.bth.pad);
	vb_txq_commit(out, (uint32_t)hdr + len + pkt.bth.pad, &qp->route);
	return FAULT_NONE;
}

static void ib_finish(struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	uint32_t end = vb_psn_add(a->run_psn, a->run_count);

	/* The last response acknowledges all requests before it, so no ACK
	 * needs to follow. */
	if (vb_psn_diff(end, resp->ack_psn) > 0) {
		resp->ack_due = false;
		resp->unacked = 0;
	}
	vb_replay_done(&resp->replay);
}

/*
 * The memory to be read is gone. A requester that still needs it must get a
 * NAK. But if the request is a duplicate, its requester may have received
 * everything and told its program; then this side's program has rightfully
 * deregistered the region. Such a requester ignores a NAK for a PSN that it has
 * passed, and this side does not move to ERR.
 */
static void ib_answer_give_up(struct vb_qp *qp, const struct vb_answer *a,
			      enum vb_fault fault) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	uint32_t psn = vb_psn_add(a->run_psn, a->sent);

	/* With XRC: the process that has the memory cannot be asked now, so
	 * drop this answer. The requester will repeat its request. */
	if (fault == FAULT_NO_RQE) {
		vb_replay_done(&resp->replay);
		return;
	}
	if (a->due == DUE_NEW) {
		vb_replay_cancel(&resp->replay);
		vb_resp_die(qp, fault, psn);
		return;
	}
	vb_replay_done(&resp->replay);
	if (resp->nak_due)
		return;
	resp->nak_due = true;
	resp->nak_syndrome = vb_fault_rc(fault)->syndrome;
	resp->nak_psn = psn;
}

/* Send one packet of the oldest answer that is due. */
static void answer_next(struct vb_qp *qp, struct vb_answer *a,
			struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	enum vb_fault fault = FAULT_NONE;

	if (a->kind == KIND_ATOMIC)
		put_atomic_ack(qp, a, out);
	else
		fault = put_response(qp, a, out);
	if (fault)
		ib_answer_give_up(qp, a, fault);
	else if (++a->sent == a->run_count)
		ib_finish(qp, a);
}

/* Send a NAK for a gap. If the peer repeats selectively, add the bitmap of the
 * packets that have arrived after the gap. */
static void put_gap(struct vb_qp *qp, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_rc *rc = vb_rc(qp);
	uint8_t *bytes = vb_txq_begin(out);
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, opcode(qp, CODE_ACK), rc->resp.epsn),
		.aeth = { VB_SYN_NAK_PSN, rc->resp.msn },
	};
	uint32_t len = 0;
	size_t hdr;

	rc->offers = pkt.bth.selective = true;
	hdr = vb_ib_put_headers(bytes, &pkt);
	if (rc->selective)
		len = vb_ooo_map(&rc->resp.ooo, rc->resp.epsn, bytes + hdr);
	/* The bitmap is zeroed behind its end, so the length may be rounded up
	 * to whole words. */
	vb_txq_commit(out, (uint32_t)hdr + ((len + 3) & ~3u), &qp->route);
}

static void put_nak(struct vb_qp *qp, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	resp->nak_due = false;
	if (resp->nak_syndrome == VB_SYN_NAK_PSN) {
		/* While the NAK waited, the gap may have closed or moved. */
		if (vb_psn_diff(resp->gap_psn, resp->epsn) < 0)
			return;
		resp->ack_due = false;
		put_gap(qp, out);
		return;
	}
	if (resp->nak_psn == resp->epsn)
		resp->ack_due = false;
	put_aeth(qp, resp->nak_syndrome, resp->nak_psn, out);
}

/* Acknowledge up to the last SEND or WRITE, even if a READ or atomic was
 * accepted after it: only a response completes READs and atomics (IBA
 * 9.7.5.1.2), and some requesters (Linux rxe) treat a plain ACK of a READ as
 * its end and never notice that the data is missing. */
static void put_ack(struct vb_qp *qp, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	resp->ack_due = resp->repeated = false;
	resp->unacked = 0;
	if (resp->deferred)
		vb_count(qp->adapter, CNT_ACK_DEFERRED, resp->deferred);
	resp->deferred = 0;
	put_aeth(qp, VB_SYN_ACK, resp->ack_psn, out);
}

bool vb_answer_send(struct vb_qp *qp, struct vb_txq *out)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	struct vb_answer *a;

	while ((a = vb_replay_due(&resp->replay))) {
		if (!vb_txq_has_room(out))
			return true;
		if (VB_UNLIKELY(vb_xrc_read_is_forwarded(qp, a)) &&
		    !vb_xrc_read_has(qp, a))
			return false;
		answer_next(qp, a, out);
	}
	if (resp->nak_due) {
		if (!vb_txq_has_room(out))
			return true;
		put_nak(qp, out);
	}
	if (resp->ack_due) {
		if (!vb_txq_has_room(out))
			return true;
		put_ack(qp, out);
	}
	return false;
}
