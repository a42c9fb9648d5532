/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults, the Terminate message, and the completion statuses that follow. */
#include "iwarp/term.h"

#include "core/why_qp.h"
#include "iwarp/stream.h"

#define NONE (-1)

/* The only table of the consequences of a fault. Where InfiniBand has an equal
 * fault, programs see the statuses of core/fault.c. If no receive is posted,
 * the requester sees receiver-not-ready; with iWARP it does not retry. */
// clang-format off
#define ROW(fault, layer, etype, code, told, status, event, counter) \
	[IWF_##fault] = { #fault, layer, etype, code, WC_##told, WC_##status, event, counter }
static const struct vb_iw_fault_row rows[IWF_COUNT] = {
/*  fault         | layer    | e | code | the peer's status    | ours           | event             | counter */
ROW(LOCAL,          TERM_RDMAP, 0, 0x00, REM_OP_ERR,            LOC_QP_OP_ERR,   NONE,               CNT_NAK_OP),
ROW(RQE_LKEY,       TERM_RDMAP, 0, 0x00, REM_OP_ERR,            LOC_PROT_ERR,    NONE,               CNT_NAK_OP),
ROW(READ_STAG,      TERM_RDMAP, 1, 0x00, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(READ_BOUNDS,    TERM_RDMAP, 1, 0x01, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(RIGHTS,         TERM_RDMAP, 1, 0x02, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(READ_DOMAIN,    TERM_RDMAP, 1, 0x03, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(READ_WRAP,      TERM_RDMAP, 1, 0x04, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(MEMORY,         TERM_RDMAP, 1, 0xff, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(INVALIDATE,     TERM_RDMAP, 1, 0x09, REM_ACCESS_ERR,        REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_ACCESS),
ROW(RDMAP_VERSION,  TERM_RDMAP, 2, 0x05, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(OPCODE,         TERM_RDMAP, 2, 0x06, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(STREAM,         TERM_RDMAP, 2, 0x07, REM_OP_ERR,            LOC_QP_OP_ERR,   EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(GLOBAL,         TERM_RDMAP, 2, 0x08, REM_OP_ERR,            LOC_QP_OP_ERR,   EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(UNSPECIFIED,    TERM_RDMAP, 2, 0xff, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(DDP,            TERM_DDP,   0, 0x00, REM_OP_ERR,            LOC_QP_OP_ERR,   EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(WRITE_STAG,     TERM_DDP,   1, 0x00, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(WRITE_BOUNDS,   TERM_DDP,   1, 0x01, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(WRITE_DOMAIN,   TERM_DDP,   1, 0x02, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(WRITE_WRAP,     TERM_DDP,   1, 0x03, REM_ACCESS_ERR,        LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(TAGGED_VERSION, TERM_DDP,   1, 0x04, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(QUEUE,          TERM_DDP,   2, 0x01, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(NO_BUFFER,      TERM_DDP,   2, 0x02, RNR_RETRY_EXC_ERR,     REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_SEND_RNR_ERR),
/* The queue for READ and atomic requests is full: the peer exceeded the agreed
 * depth. */
ROW(TOO_MANY_READS, TERM_DDP,   2, 0x02, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(MSN,            TERM_DDP,   2, 0x03, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(MO,             TERM_DDP,   2, 0x04, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(TOO_LONG,       TERM_DDP,   2, 0x05, REM_INV_REQ_ERR,       LOC_LEN_ERR,     EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(UNTAGGED_VERSION, TERM_DDP, 2, 0x06, REM_INV_REQ_ERR,       REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,    CNT_NAK_INVALID),
ROW(LOST,           TERM_LLP,   0, 0x01, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(CRC,            TERM_LLP,   0, 0x02, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_DROP_MALFORMED),
ROW(MARKER,         TERM_LLP,   0, 0x03, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_DROP_MALFORMED),
ROW(FRAME,          TERM_LLP,   0, 0x04, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(MPA_LOCAL,      TERM_LLP,   0, 0x05, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(IRD,            TERM_LLP,   0, 0x06, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_NAK_OP),
ROW(RTR,            TERM_LLP,   0, 0x07, RETRY_EXC_ERR,         FLUSH_ERR,       EVENT_QP_FATAL,      CNT_NAK_OP),
};
#undef ROW
// clang-format on

const struct vb_iw_fault_row *vb_iw_fault_row(enum vb_iw_fault fault)
{
	return &rows[fault];
}

static bool is_of_requests(const struct vb_term *t)
{
	return t->has_segment && !t->segment.tagged &&
	       t->segment.queue == DDP_QUEUE_REQUEST;
}

static const struct vb_iw_fault_row *find_row(const struct vb_term *t)
{
	const struct vb_iw_fault_row *many = &rows[IWF_TOO_MANY_READS];

	if (is_of_requests(t) && t->layer == many->layer &&
	    t->etype == many->etype && t->code == many->code)
		return many;
	for (unsigned i = IWF_NONE + 1; i < IWF_COUNT; i++)
		if (rows[i].layer == t->layer && rows[i].etype == t->etype &&
		    rows[i].code == t->code)
			return &rows[i];
	return NULL;
}

enum vb_wc_status vb_iw_told(const struct vb_term *t)
{
	const struct vb_iw_fault_row *row = find_row(t);

	/* A reserved code must not count as success. */
	return row ? row->told : WC_REM_OP_ERR;
}

/* Returns the Terminate for a fault. It has the header of the segment at fault
 * as it came, and, for a READ request, also the request. */
static struct vb_term term_for(const struct vb_iw_fault_row *row,
			       const struct vb_ddp_seg *seg)
{
	struct vb_term t = { .layer = row->layer,
			     .etype = row->etype,
			     .code = row->code };
	struct vb_reader r;

	if (!seg)
		return t;
	t.has_segment = true;
	t.segment = *seg;
	t.segment_bytes = (uint16_t)(seg->payload_bytes +
				     (seg->tagged ? VB_DDP_TAGGED_BYTES
						  : VB_DDP_UNTAGGED_BYTES));
	r = vb_reader(seg->payload, seg->payload_bytes);
	if (!seg->tagged && seg->opcode == RDMAP_READ_REQUEST)
		t.has_read = vb_rdmap_read_get(&r, &t.read);
	return t;
}

/* For a fault of iWARP, the fault of InfiniBand (enum vb_fault) with the same
 * meaning, whose sentence the log uses; 0: there is none. */
static const uint8_t equals[IWF_COUNT] = {
	[IWF_RQE_LKEY] = FAULT_RQE_LKEY,
	[IWF_RIGHTS] = FAULT_ACCESS_FLAGS,
	[IWF_MEMORY] = FAULT_REMOTE_MEMORY,
	[IWF_INVALIDATE] = FAULT_INV_RKEY,
	[IWF_NO_BUFFER] = FAULT_NO_RQE,
	[IWF_TOO_MANY_READS] = FAULT_TOO_MANY_READS,
	[IWF_TOO_LONG] = FAULT_RQE_TOO_SMALL,
};

/* Log why this end ends the stream. Nothing is logged if the connection was
 * merely lost, since programs end connections in this way, too, or if the fault
 * is one of this side. */
static void iw_explain(struct vb_qp *qp, enum vb_iw_fault fault)
	VB_REQUIRES(qp->drive)
{
	const struct vb_iw_fault_row *row = &rows[fault];

	if (fault == IWF_LOCAL || fault == IWF_LOST)
		return;
	if (equals[fault])
		(void)vb_qp_why_fault(qp, (enum vb_fault)equals[fault], NULL);
	else
		vb_qp_why(qp, WHY_STREAM,
			  "the stream ends, since the peer broke a rule: %s "
			  "(layer %u, type %u, code %u)",
			  row->name, row->layer, row->etype, row->code);
}

void vb_iw_refuse(struct vb_qp *qp, enum vb_iw_fault fault,
		  const struct vb_ddp_seg *seg)
{
	const struct vb_iw_fault_row *row = &rows[fault];
	struct vb_iw *s = vb_iw(qp);
	struct vb_recv_done done = {
		.status = (enum vb_wc_status)row->status,
		.opcode = WC_OP_RECV,
	};
	int event = row->event;

	if (s->phase != IW_OPEN)
		return;
	iw_explain(qp, fault);
	done.why = qp->why;
	vb_count(qp->adapter, row->counter, 1);
	s->phase = IW_DYING;
	s->term = term_for(row, seg);
	if (qp->recv_busy) {
		vb_qp_recv_done(qp, &done);
		event = NONE;
	}
	vb_qp_fail(qp, event);
}

void vb_iw_give_up(struct vb_qp *qp)
{
	struct vb_iw *s = vb_iw(qp);

	if (s->phase != IW_OPEN)
		return;
	s->phase = IW_DYING;
	s->term = term_for(&rows[IWF_LOCAL], NULL);
	vb_qp_fail(qp, NONE);
}

/* Flush the WQEs before the READ or atomic that the peer's Terminate names,
 * because their responses will not arrive. */
static void flush_before(struct vb_qp *qp, const struct vb_term *t)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	uint32_t i = s->asked_head;

	if (!is_of_requests(t))
		return;
	while (i != s->tx.asked &&
	       s->asked[i % VB_MAX_RD_ATOM].msn != t->segment.msn)
		i++;
	if (i == s->tx.asked || s->asked[i % VB_MAX_RD_ATOM].rtr)
		return;
	while (vb_iw_sends(qp) &&
	       qp->sq.done != s->asked[i % VB_MAX_RD_ATOM].index)
		vb_qp_send_done(qp, WC_FLUSH_ERR);
}

void vb_iw_terminated(struct vb_qp *qp, const struct vb_term *t)
{
	const struct vb_iw_fault_row *row = find_row(t);
	struct vb_iw *s = vb_iw(qp);
	int event = EVENT_QP_FATAL;

	if (s->phase != IW_OPEN)
		return;
	vb_count(qp->adapter, CNT_SEND_ERR, 1);
	s->phase = IW_ENDING;
	/* The peer reads no further bytes, so drop the rest of the cut FPDU. */
	s->cut_at = s->cut_end;
	flush_before(qp, t);
	if (vb_iw_sends(qp) && vb_iw_has_begun(qp)) {
		vb_qp_send_done(qp, vb_iw_told(t));
		event = NONE;
	} else {
		vb_qp_why(qp, WHY_STREAM,
			  "the peer ended the stream: %s (layer %u, type %u, "
			  "code %u%s)",
			  !row			 ? "for no known reason"
			  : row == &rows[IWF_LOCAL] ? "it made a mistake itself"
						 : row->name, t->layer, t->etype,
			  t->code, t->mirrored ? ", mirrored" : "");
	}
	vb_qp_fail(qp, event);
}
