/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the error behaviour of a responder (IBA 9.9.3) and a requester (IBA
 * 9.9.2). */
#include "core/fault.h"
#include "wire/ib_hdr.h"

#define NO_NAK 0
#define NONE   (-1)

/* The receive in progress completes with the status; if there is none, the
 * event reports the fault (IBA 11.6.3.2). LKEY and LOCAL_MEMORY have no row: a
 * requester completes its own request with LOC_PROT_ERR, and a responder
 * reports RQE_LKEY. */
// clang-format off
#define ROW(fault, action, syndrome, status, event, counter) \
	[FAULT_##fault] = { ACT_##action, syndrome, WC_##status, event, counter }
static const struct vb_fault_row rows[FAULT_COUNT] = {
/*  fault          | action     | syndrome          | local status  | event             | counter */
/* Class C (IBA 9.9.3): NAK with the cause, then ERR. */
ROW(RKEY,           NAK_AND_DIE, VB_SYN_NAK_ACCESS,  LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(REMOTE_MEMORY,  NAK_AND_DIE, VB_SYN_NAK_ACCESS,  LOC_ACCESS_ERR,  EVENT_QP_ACCESS_ERR, CNT_NAK_ACCESS),
ROW(ORDER,          NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(ACCESS_FLAGS,   NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(LENGTH,         NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(ALIGNMENT,      NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(TOO_MANY_READS, NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(RQE_TOO_SMALL,  NAK_AND_DIE, VB_SYN_NAK_INVALID, LOC_LEN_ERR,     EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
/* XRC (IBA annex A14): invalid XRCETH, XRC domain violation. */
ROW(XRC_SRQ,        NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
ROW(XRC_DOMAIN,     NAK_AND_DIE, VB_SYN_NAK_INVALID, REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   CNT_NAK_INVALID),
/* Class A: the responder is at fault, and not the request. */
ROW(RQE_LKEY,       NAK_AND_DIE, VB_SYN_NAK_OP,      LOC_PROT_ERR,    NONE,               CNT_NAK_OP),
ROW(XRC_FORWARD,    NAK_AND_DIE, VB_SYN_NAK_OP,      LOC_QP_OP_ERR,   EVENT_QP_FATAL,     CNT_NAK_OP),
/* Class B: the responder does not execute the request, and the requester
 * repeats it. ib/ adds min_rnr_timer to the RNR syndrome. */
ROW(PSN_GAP,        NAK_ONCE,    VB_SYN_NAK_PSN,     SUCCESS,         NONE,               CNT_OUT_OF_SEQUENCE),
ROW(NO_RQE,         NAK_ONCE,    VB_SYN_RNR,         SUCCESS,         NONE,               CNT_SEND_RNR_ERR),
/* Class J: the data was placed, but the key must not be invalidated; no NAK is
 * sent. */
ROW(INV_RKEY,       DIE,         NO_NAK,             REM_INV_REQ_ERR, EVENT_QP_REQ_ERR,   NONE),
};

/* UC and UD, classes D and E: the message is dropped, and the next message uses
 * the receive it had taken. Only a fault of the responder's own receive moves
 * the queue pair to ERR. A UD message is one packet, so it has neither order
 * nor PSN. */
static const struct vb_fault_row unreliable[FAULT_COUNT] = {
/*  fault          | action     | syndrome          | local status  | event             | counter */
ROW(RKEY,           DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_REFUSED),
ROW(REMOTE_MEMORY,  DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_REFUSED),
ROW(ORDER,          DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_BROKEN),
ROW(ACCESS_FLAGS,   DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_REFUSED),
ROW(LENGTH,         DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_MALFORMED),
ROW(RQE_TOO_SMALL,  DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_TOO_LONG),
ROW(NO_RQE,         DROP,        NO_NAK,             SUCCESS,         NONE,               CNT_DROP_NO_RECV),
ROW(RQE_LKEY,       DIE,         NO_NAK,             LOC_PROT_ERR,    NONE,               NONE),
};
#undef ROW
// clang-format on

/* Completion status by NAK code (IBA 9.7.5.2.4). */
static const uint8_t nak_status[] = {
	[VB_SYN_NAK_INVALID & 0x1f] = WC_REM_INV_REQ_ERR,
	[VB_SYN_NAK_ACCESS & 0x1f] = WC_REM_ACCESS_ERR,
	[VB_SYN_NAK_OP & 0x1f] = WC_REM_OP_ERR,
	[VB_SYN_NAK_INV_RD & 0x1f] = WC_REM_INV_RD_REQ_ERR,
};

const struct vb_fault_row *vb_fault_rc(enum vb_fault fault)
{
	return &rows[fault];
}

const struct vb_fault_row *vb_fault_unreliable(enum vb_fault fault)
{
	return &unreliable[fault];
}

enum vb_wc_status vb_fault_nak_status(uint8_t syndrome)
{
	unsigned code = syndrome & 0x1f;

	/* A reserved NAK code must not count as success. */
	if (code >= VB_COUNT(nak_status) || nak_status[code] == WC_SUCCESS)
		return WC_REM_OP_ERR;
	return nak_status[code];
}
