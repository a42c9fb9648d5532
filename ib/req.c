/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: work requests become packets. A packet is rebuilt from its
 * WQE and its PSN alone, so that sending again needs no memory. UC and UD make
 * theirs here, too.
 */
#include "core/mw.h"
#include "core/sge.h"
#include "ib/rc.h"

enum request_traits {
	ASKS = 1 << 0,	   /* wants an answer with data */
	HAS_IMM = 1 << 1,  /* on its last packet */
	HAS_INV = 1 << 2,  /* on its last packet */
	CONSUMES = 1 << 3, /* a receive of the peer: may be solicited */
	LOCAL = 1 << 4,	   /* sends nothing */
};

struct request_row {
	bool valid;
	uint8_t kind;	/* enum vb_ib_kind */
	uint8_t code;	/* enum vb_ib_code, of an atomic */
	uint8_t traits; /* enum request_traits */
};

// clang-format off
#define ROW(op, kind, code, traits) [WR_##op] = { true, KIND_##kind, code, traits }
static const struct request_row requests[] = {
/*  work request | kind   | code           | traits */
ROW(WRITE,        WRITE,   0,               0),
ROW(WRITE_IMM,    WRITE,   0,               HAS_IMM | CONSUMES),
ROW(SEND,         SEND,    0,               CONSUMES),
ROW(SEND_IMM,     SEND,    0,               HAS_IMM | CONSUMES),
ROW(SEND_INV,     SEND,    0,               HAS_INV | CONSUMES),
ROW(READ,         READ,    0,               ASKS),
ROW(CMP_SWAP,     ATOMIC,  CODE_CMP_SWAP,   ASKS),
ROW(FETCH_ADD,    ATOMIC,  CODE_FETCH_ADD,  ASKS),
ROW(ATOMIC_WRITE, ATOMIC_WRITE, CODE_ATOMIC_WRITE, ASKS),
ROW(BIND_MW,      SEND,    0,               LOCAL),
ROW(LOCAL_INV,    SEND,    0,               LOCAL),
};
#undef ROW
// clang-format on

#define ATOMIC_BYTES  8
#define TIMEOUT_SLACK (250 * VB_MSEC)

/* With so many packets under way, small messages gather into trains. */
#define STREAM_PKTS  8
#define STREAM_LASTS (100 * VB_USEC)
#define WAIT_LEAST   64u
#define WAIT_MOST    128u
#define WAIT_SHORT   2048u	 /* of one that is shorter many make a batch */
#define WAIT_LENGTH  (16u << 10) /* a longer one is a train by itself */
#define WAIT_BYTES   (128u << 10)
_Static_assert(WAIT_LEAST *VB_QUIET_BYTES <= WAIT_LENGTH,
	       "who may post without asking posts no more than that");

static const struct request_row *ib_row_of(const struct vb_send_wqe *wqe)
{
	return &requests[wqe->op];
}

static struct vb_send_wqe *wqe_at(const struct vb_qp *qp, uint32_t index)
{
	return vb_sq_at(&qp->sq, index);
}

bool vb_req_asks(const struct vb_send_wqe *wqe)
{
	return ib_row_of(wqe)->traits & ASKS;
}

bool vb_req_is_local(const struct vb_send_wqe *wqe)
{
	return ib_row_of(wqe)->traits & LOCAL;
}

const struct vb_asked *vb_req_asked(const struct vb_req *req)
{
	if (req->asked_head == req->asked_tail)
		return NULL;
	return &req->asked[req->asked_head % VB_MAX_RD_ATOM];
}

static bool stopped_at(const struct vb_req *req, uint32_t index)
{
	return req->stop_status != WC_SUCCESS && req->stop == index;
}

static void ib_stop(struct vb_req *req, enum vb_wc_status status)
{
	req->stop = req->cur;
	req->stop_status = status;
}

/*
 * Before the first packet.
 */

/* All of its memory, so that a bad key never sends half a message. One of a
 * single packet is asked for when it is gathered, by which it is all or nothing
 * as well. */
static bool ib_keys_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	bool fetches = vb_req_asks(wqe) && wqe->op != WR_ATOMIC_WRITE;
	uint32_t need = fetches ? ACCESS_LOCAL_WRITE : 0;

	if (wqe->flags & SEND_INLINE ||
	    (!vb_req_asks(wqe) && wqe->length <= qp->mtu))
		return true;
	return vb_sge_is_allowed(qp->pd, wqe->sge, wqe->num_sge, need);
}

enum vb_wc_status vb_req_judge(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
{
	const struct request_row *row;

	if (wqe->op >= VB_COUNT(requests) || !ib_row_of(wqe)->valid)
		return WC_LOC_QP_OP_ERR;
	row = ib_row_of(wqe);
	/* What is answered, or names a key, is RC's (IBA 9.2, table 38). */
	if (row->traits & (ASKS | HAS_INV) && !vb_qp_type_is_reliable(qp->type))
		return WC_LOC_QP_OP_ERR;
	if (row->traits & LOCAL && qp->type == QPT_UD)
		return WC_LOC_QP_OP_ERR;
	if (row->traits & ASKS && qp->attr.max_rd_atomic == 0)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length > VB_MAX_MSG)
		return WC_LOC_LEN_ERR;
	if (row->kind == KIND_ATOMIC &&
	    vb_sge_total(wqe->sge, wqe->num_sge) < ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (row->traits & LOCAL)
		return WC_SUCCESS;
	return ib_keys_allow(qp, wqe) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

uint32_t vb_req_psns(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (vb_req_is_local(wqe))
		return 0;
	if (ib_row_of(wqe)->kind == KIND_ATOMIC ||
	    ib_row_of(wqe)->kind == KIND_ATOMIC_WRITE || wqe->length == 0)
		return 1;
	return (wqe->length + qp->mtu - 1) / qp->mtu;
}

/* The word of an ATOMIC WRITE is read once, and sent again as it was. */
static enum vb_wc_status fetch_word(const struct vb_qp *qp,
				    struct vb_send_wqe *wqe)
{
	if (wqe->length != ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (wqe->flags & SEND_INLINE) /* it is there */
		return WC_SUCCESS;
	return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, 0, &wqe->swap,
			     ATOMIC_BYTES)
		       ? WC_LOC_PROT_ERR
		       : WC_SUCCESS;
}

/* Give the next WQE its PSNs. False: there is none, or it must wait. */
static bool ib_begin_next(struct vb_qp *qp)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_send_wqe *wqe = wqe_at(qp, req->begun);
	enum vb_wc_status status;

	if (req->begun == vb_sq_end(&qp->sq) || vb_rc_state(qp) != QPS_RTS)
		return false;
	/* IBA 10.8.3.3: behind every READ and atomic before it. */
	if (wqe->flags & SEND_FENCE && vb_req_asked(req))
		return false;
	status = vb_req_judge(qp, wqe);
	/* Windows (IBA 10.8.3.3): before what follows begins, and not to be
	 * taken back when what came before fails. */
	if (status == WC_SUCCESS && vb_req_is_local(wqe)) {
		enum vb_mw_end end = vb_mw_run(qp, wqe);

		if (end == MW_BUSY)
			return false;
		if (end == MW_REFUSED)
			status = WC_MW_BIND_ERR;
	}
	if (status == WC_SUCCESS && wqe->op == WR_ATOMIC_WRITE)
		status = fetch_word(qp, wqe);
	if (status != WC_SUCCESS) {
		ib_stop(req, status);
		return false;
	}
	wqe->first_psn = req->next;
	wqe->psn_count = vb_req_psns(qp, wqe);
	req->begun++;
	return true;
}

/*
 * Packets.
 */

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

static uint8_t data_opcode(const struct vb_qp *qp,
			   const struct request_row *row,
			   enum vb_ib_place place)
{
	bool last = place & PLACE_LAST;

	return opcode_of(qp, vb_ib_code_pick(row->kind, place,
					     last && row->traits & HAS_IMM,
					     last && row->traits & HAS_INV));
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
			 const struct vb_part *part, struct vb_ib_pkt *pkt,
			 struct vb_txq *out)
{
	const struct request_row *row = ib_row_of(wqe);
	uint8_t *bytes = vb_txq_begin(out);
	uint32_t len = part->len;
	enum vb_fault fault;
	size_t hdr;

	pkt->bth.opcode = data_opcode(qp, row, part->place);
	pkt->bth.pad = -len & 3;
	pkt->bth.solicited = part->place & PLACE_LAST &&
			     row->traits & CONSUMES &&
			     wqe->flags & SEND_SOLICITED;
	pkt->imm = pkt->ieth_rkey = wqe->imm;
	pkt->xrc_srqn = wqe->srqn;
	hdr = vb_ib_put_headers(bytes, pkt);
	fault = put_payload(qp, wqe, part->offset, bytes + hdr, len);
	if (fault)
		return fault;
	/* The pad, and perhaps some of the room for the ICRC. */
	vb_store_le32(bytes + hdr + len, 0);
	vb_txq_commit(out, (uint32_t)hdr + len + pkt->bth.pad, part->route);
	return FAULT_NONE;
}

enum vb_fault vb_req_put_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint32_t psn, bool ack_req, struct vb_txq *out)
{
	uint32_t nth = (psn - wqe->first_psn) & VB_PSN_MASK;
	uint32_t offset = nth * qp->mtu;
	const struct vb_part part = {
		.offset = offset,
		.len = VB_MIN(qp->mtu, wqe->length - offset),
		.place = (nth == 0 ? PLACE_FIRST : 0) |
			 (nth + 1 == wqe->psn_count ? PLACE_LAST : 0),
		.route = &qp->route,
	};
	struct vb_ib_pkt pkt; /* most of which is others' */

	pkt.bth = vb_rc_bth(qp, 0, psn);
	pkt.bth.ack_req = ack_req;
	pkt.reth = (struct vb_reth){ wqe->remote_addr, wqe->rkey, wqe->length };
	return vb_req_put(qp, wqe, &part, &pkt, out);
}

static void ib_put_atomic(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			  struct vb_txq *out)
{
	const struct request_row *row = ib_row_of(wqe);
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

/* Ask for the @count responses from @psn on. */
static void ib_put_read(struct vb_qp *qp, const struct vb_send_wqe *wqe,
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

static void put_atomic_write(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			     struct vb_txq *out)
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

static void put_ask(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    const struct vb_asked *asked, uint32_t psn,
		    struct vb_txq *out)
{
	uint32_t done = (psn - asked->psn) & VB_PSN_MASK;

	if (ib_row_of(wqe)->kind == KIND_ATOMIC)
		ib_put_atomic(qp, wqe, out);
	else if (ib_row_of(wqe)->kind == KIND_ATOMIC_WRITE)
		put_atomic_write(qp, wqe, out);
	else
		ib_put_read(qp, wqe, psn, asked->count - done, out);
}

/*
 * The send cursor.
 */

static uint32_t ib_req_in_flight(const struct vb_req *req)
{
	return (req->send - req->una) & VB_PSN_MASK;
}

/* How many PSNs from una on may be sent. What the peer has, though not all
 * before it, is not under way any more. */
static uint32_t ib_reach(const struct vb_req *req)
{
	return VB_MIN(req->window.pkts + req->sack.held, VB_OOO_PSNS);
}

uint32_t vb_req_room(const struct vb_req *req)
{
	uint32_t most = ib_reach(req), now = ib_req_in_flight(req);

	return most > now ? most - now : 0;
}

void vb_req_sent(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (ib_req_in_flight(req) >= STREAM_PKTS) {
		req->streaming = true;
		req->stream_at = now;
	}
	if (req->ack_at == VB_NEVER && req->probe_at == VB_NEVER)
		vb_req_rearm(qp, now);
}

/* Step over @count PSNs of @wqe that were sent. */
static void ib_step(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    uint32_t count, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);

	if (req->send == req->next)
		req->next = vb_psn_add(req->next, count);
	else
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	req->send = vb_psn_add(req->send, count);
	if (req->send == end)
		req->cur++;
	vb_req_sent(qp, now);
}

/* Note the next request of a READ or atomic. NULL: it must wait. */
static const struct vb_asked *ask_more(struct vb_qp *qp,
				       const struct vb_send_wqe *wqe)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_window *w = &req->window;
	uint32_t limit = VB_MIN(qp->attr.max_rd_atomic, VB_MAX_RD_ATOM);
	uint32_t left = vb_psn_add(wqe->first_psn, wqe->psn_count) - req->next;
	uint32_t count =
		VB_MIN(left & VB_PSN_MASK, vb_window_chunk(w, qp->mtu));
	struct vb_asked *asked;

	if (req->asked_tail - req->asked_head >= limit)
		return NULL;
	/* The responses use the window: a READ waits rather than ask for a
	 * packet at a time. */
	if (ib_req_in_flight(req) && ib_req_in_flight(req) + count > w->pkts) {
		w->limited = true;
		return NULL;
	}
	asked = &req->asked[req->asked_tail++ % VB_MAX_RD_ATOM];
	*asked = (struct vb_asked){ req->next, count };
	return asked;
}

static bool send_ask(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked;
	uint32_t done;

	if (req->send == req->next) {
		asked = ask_more(qp, wqe);
		if (!asked)
			return false;
		vb_window_time(&req->window, req->send, now);
	} else {
		asked = &req->asked[req->asked_at % VB_MAX_RD_ATOM];
	}
	req->asked_at++;
	put_ask(qp, wqe, asked, req->send, out);
	req->since_ack_req = 0;
	done = (req->send - asked->psn) & VB_PSN_MASK;
	ib_step(qp, wqe, asked->count - done, now);
	return true;
}

static bool wants_ack(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_window *w = &req->window;
	uint32_t after = vb_psn_add(req->send, 1);

	return after == vb_psn_add(wqe->first_psn, wqe->psn_count) ||
	       req->since_ack_req + 1 >= vb_window_ack_every(w) ||
	       ib_req_in_flight(req) + 1 >= ib_reach(req);
}

static bool send_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		      vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	bool ack_req = wants_ack(qp, wqe);

	if (vb_req_put_data(qp, wqe, req->send, ack_req, out) != FAULT_NONE) {
		ib_stop(req, WC_LOC_PROT_ERR);
		return false;
	}
	if (ack_req && req->send == req->next)
		vb_window_time(&req->window, req->send, now);
	req->since_ack_req = ack_req ? 0 : req->since_ack_req + 1;
	ib_step(qp, wqe, 1, now);
	return true;
}

/* One packet where the cursor stands. False: none may go now. */
static bool send_next(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *wqe;

	if (stopped_at(req, req->cur))
		return false;
	if (req->cur == req->begun && !ib_begin_next(qp))
		return false;
	if (vb_req_is_local(wqe_at(qp, req->cur))) {
		req->cur++;
		vb_comp_retire(qp);
		return true;
	}
	if (ib_req_in_flight(req) >= ib_reach(req)) {
		req->window.limited = true;
		return false;
	}
	wqe = wqe_at(qp, req->cur);
	if (vb_req_asks(wqe))
		return send_ask(qp, wqe, now, out);
	return send_data(qp, wqe, now, out);
}

/*
 * Time.
 */

/*
 * IBA 9.7.6.1.3 lets the timer run for T to 4 T. A peer in software waits for
 * its processor, on a busy host for hundreds of ms together, so short ones
 * run long here; probes find out about losses earlier.
 */
static vb_time ack_timeout(const struct vb_qp *qp)
{
	vb_time t = vb_ack_timeout_ns(qp->attr.timeout);

	return t == VB_NEVER ? t : VB_MIN(4 * t, t + TIMEOUT_SLACK);
}

void vb_req_rearm(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;
	vb_time timeout = ack_timeout(qp);

	req->ack_at = req->probe_at = VB_NEVER;
	req->probe_acked = false;
	if (req->una == req->next)
		return;
	if (timeout != VB_NEVER)
		req->ack_at = now + timeout;
	req->probe_at = now + vb_window_patience(&req->window, req->probes);
}

static void forget_gap(struct vb_req *req)
{
	req->gap_due = false;
	req->gap_at = vb_psn_add(req->una, VB_PSN_MASK);
}

void vb_req_go_back(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	req->send = req->una;
	req->cur = qp->sq.done;
	req->asked_at = req->asked_head;
	req->since_ack_req = 0;
	vb_rc(qp)->offers = true;
	vb_sack_reset(&req->sack, req->una);
	vb_ooo_clear(qp->adapter, &req->early);
	forget_gap(req);
	vb_window_untime(&req->window);
	vb_req_rearm(qp, now);
}

void vb_req_sack(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->repairing || req->rnr_at != VB_NEVER)
		return;
	vb_window_lost(&req->window, req->next);
	vb_req_go_back(qp, now);
	req->repairing = true;
}

void vb_req_mend(struct vb_qp *qp, const struct vb_ib_pkt *nak, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return;
	vb_sack_told(&req->sack, nak->bth.psn, nak->payload, nak->payload_bytes,
		     req->next);
	vb_window_lost_some(&req->window, vb_sack_missing(&req->sack),
			    req->next);
	vb_window_untime(&req->window);
	vb_req_heard(qp, now);
}

void vb_req_ask_again(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (req->gap_due || req->gap_at == req->una)
		return;
	req->gap_due = true;
	vb_window_lost_some(&req->window, vb_ooo_gap(&req->early, req->una),
			    req->next);
	vb_window_untime(&req->window);
}

void vb_req_probe_acked(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->una == req->next)
		return;
	req->probe_acked = true;
	req->probe_at = now + vb_window_grace(&req->window);
}

void vb_req_heard(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (req->probe_at != VB_NEVER && !req->probe_acked)
		req->probe_at =
			now + vb_window_patience(&req->window, req->probes);
}

/* IBA 9.7.6.1.3. */
static void time_out(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	vb_count(qp->adapter, CNT_TIMEOUTS, 1);
	if (req->retries >= qp->attr.retry_cnt) {
		vb_count(qp->adapter, CNT_RETRY_EXCEEDED, 1);
		vb_comp_fail(qp, WC_RETRY_EXC_ERR);
		return;
	}
	req->retries++;
	vb_window_collapse(&req->window, req->next);
	vb_req_go_back(qp, now);
}

/*
 * Nothing was heard for longer than is normal: the end of what was sent, or
 * the answer, is lost. Send the oldest packet again, which makes any receiver
 * say where it stands: it is either what is missing, or a duplicate.
 */
static void probe(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *wqe = wqe_at(qp, qp->sq.done);

	req->probes += req->probes < UINT8_MAX;
	req->probe_at = now + vb_window_patience(&req->window, req->probes);
	if (req->send == req->una || stopped_at(req, qp->sq.done))
		return; /* it is to go anyway, or cannot */
	vb_window_untime(&req->window);
	vb_sack_restart(&req->sack);
	forget_gap(req);
	vb_rc(qp)->offers = true;
	if (vb_req_asks(wqe))
		put_ask(qp, wqe, vb_req_asked(req), req->una, out);
	else if (vb_req_put_data(qp, wqe, req->una, true, out) != FAULT_NONE)
		return; /* the cursor will find it, if that ever matters */
	vb_count(qp->adapter, CNT_RETRANSMITS, 1);
}

/*
 * Repeats.
 */

/* The request of which @psn is a part. */
static const struct vb_asked *asked_at(const struct vb_req *req, uint32_t psn)
{
	uint32_t i = req->asked_head;

	while (i != req->asked_tail) {
		const struct vb_asked *a = &req->asked[i++ % VB_MAX_RD_ATOM];

		if (((psn - a->psn) & VB_PSN_MASK) < a->count)
			return a;
	}
	return NULL;
}

/* The packet at @psn once more. Returns how many PSNs are seen to by it; 0:
 * it cannot be sent. */
static uint32_t repeat(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		       uint32_t psn, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked;

	vb_sack_sent(&req->sack, psn, req->next);
	if (!vb_req_asks(wqe)) {
		if (vb_req_put_data(qp, wqe, psn, true, out) != FAULT_NONE)
			return 0;
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
		return 1;
	}
	asked = asked_at(req, psn);
	if (!asked)
		return 0;
	if (psn == asked->psn) {
		put_ask(qp, wqe, asked, psn, out);
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	}
	return asked->count - ((psn - asked->psn) & VB_PSN_MASK);
}

/* What the peer lacks of what is before others that it has. True: there is
 * more. */
static bool send_repeats(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_sack *r = &req->sack;
	uint32_t psn = r->from, cur = qp->sq.done, count = 1;

	for (; vb_psn_diff(psn, r->top) < 0; psn = vb_psn_add(psn, count)) {
		const struct vb_send_wqe *wqe = wqe_at(qp, cur);

		count = 1;
		if (!vb_sack_wants(r, psn))
			continue;
		while (cur != req->begun &&
		       ((psn - wqe->first_psn) & VB_PSN_MASK) >= wqe->psn_count)
			wqe = wqe_at(qp, ++cur);
		if (cur == req->begun)
			break;
		if (!vb_txq_has_room(out))
			return true;
		count = repeat(qp, wqe, psn, out);
		if (count == 0) { /* the cursor will find out why */
			vb_req_go_back(qp, now);
			break;
		}
	}
	r->due = false;
	return false;
}

/* The answers that are missing before the first that is there. */
static void send_gap(struct vb_qp *qp, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked = vb_req_asked(req);
	const struct vb_send_wqe *wqe = wqe_at(qp, qp->sq.done);
	uint32_t gap = vb_ooo_gap(&req->early, req->una), done;

	req->gap_due = false;
	if (!asked || !gap || !vb_req_asks(wqe))
		return;
	done = (req->una - asked->psn) & VB_PSN_MASK;
	if (done >= asked->count)
		return;
	req->gap_at = req->una;
	vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	if (wqe->op == WR_READ)
		ib_put_read(qp, wqe, req->una, VB_MIN(gap, asked->count - done),
			    out);
	else
		put_ask(qp, wqe, asked, req->una, out);
}

/* True: there is more. */
static bool mend(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return false;
	if (!vb_txq_has_room(out))
		return true;
	if (req->gap_due)
		send_gap(qp, out);
	return req->sack.due && send_repeats(qp, now, out);
}

static void ib_check_time(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (now >= req->rnr_at)
		req->rnr_at = VB_NEVER;
	if (now >= req->ack_at)
		time_out(qp, now);
	else if (now >= req->probe_at && req->probe_acked)
		vb_req_sack(qp, now);
	else if (now >= req->probe_at && vb_txq_has_room(out))
		probe(qp, now, out);
}

vb_time vb_req_deadline(const struct vb_qp *qp)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return VB_MIN(req->rnr_at, VB_MIN(req->ack_at, req->probe_at));
}

/*
 * Doors.
 */

void vb_req_reset(struct vb_qp *qp)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t psn = qp->attr.sq_psn & VB_PSN_MASK;

	vb_ooo_clear(qp->adapter, &req->early);
	*req = (struct vb_req){
		.una = psn,
		.send = psn,
		.next = psn,
		.cur = qp->sq.done,
		.begun = qp->sq.done,
		.ack_at = VB_NEVER,
		.probe_at = VB_NEVER,
		.rnr_at = VB_NEVER,
	};
	forget_gap(req);
	vb_sack_reset(&req->sack, psn);
	vb_window_init(&req->window, qp->mtu);
}

void vb_req_drain(struct vb_qp *qp)
{
	if (vb_rc_state(qp) == QPS_SQD && qp->way != WAY_NEAR &&
	    qp->sq.done == vb_rc(qp)->req.begun)
		vb_qp_drained(qp);
}

/*
 * Do the messages from req->cur to @end make a batch? A signalled one, for
 * which the program will wait, ends it: with what comes behind, its answer
 * would come when nothing is under way any more. And so would the answer to a
 * batch larger than what is under way; but of short ones it takes more than
 * that to be worth a call.
 */
static bool is_batch(const struct vb_qp *qp, uint32_t end)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *last = wqe_at(qp, end - 1);
	uint32_t count = end - req->cur, bytes = count * last->length;

	if (last->length >= WAIT_LENGTH || bytes >= WAIT_BYTES)
		return true;
	if (last->length >= WAIT_SHORT && bytes >= WAIT_LENGTH &&
	    count * vb_req_psns(qp, last) >= ib_req_in_flight(req))
		return true;
	return count >= WAIT_MOST ||
	       (count >= WAIT_LEAST && vb_sq_signals(&qp->sq, last));
}

/*
 * A packet a call costs several times what a packet in a train does, so small
 * messages of a program that has many under way gather until they are a batch,
 * or nothing is under way any more (RFC 896 has it for TCP). One that has few
 * under way waits for each answer, and is not kept waiting; nor is one whose
 * peer is far, nor what stands behind a long one that the window has cut.
 */
bool vb_req_can_wait(const struct vb_qp *qp)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_sq_end(&qp->sq);

	if (!req->streaming || !ib_req_in_flight(req) ||
	    req->send != req->next || req->cur != req->begun ||
	    req->rnr_at != VB_NEVER || req->sack.due || req->gap_due ||
	    req->probe_acked || !vb_window_is_near(&req->window))
		return false;
	return end == req->cur || !is_batch(qp, end);
}

/* From there on each is asked for, as it may be a signalled one. */
uint32_t vb_req_waits_until(const struct vb_qp *qp)
{
	return vb_rc(qp)->req.cur + WAIT_LEAST - 1;
}

bool vb_req_is_idle(const struct vb_qp *qp)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return req->cur == vb_sq_end(&qp->sq) && req->send == req->next &&
	       req->rnr_at == VB_NEVER && !req->probe_acked && !req->sack.due &&
	       !req->gap_due && req->stop_status == WC_SUCCESS;
}

bool vb_req_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (now - req->stream_at > VB_MAX(STREAM_LASTS, req->window.best_rtt))
		req->streaming = false;
	ib_check_time(qp, now, out);
	if (VB_UNLIKELY(req->sack.due || req->gap_due) && mend(qp, now, out))
		return true;
	while (vb_rc_sends(qp) && req->rnr_at == VB_NEVER) {
		if (!vb_txq_has_room(out))
			return true;
		if (!vb_req_fast_send(qp, now, out) && !send_next(qp, now, out))
			break;
	}
	if (vb_rc_sends(qp) && stopped_at(req, qp->sq.done))
		vb_comp_fail(qp, req->stop_status);
	return false;
}
