/* SPDX-License-Identifier: BSD-2-Clause */
/* Each fault of a request, and its effect on requester and responder. */
#include "conformance.h"

// clang-format off
static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE, IBV_WR_SEND,
	IBV_WR_SEND_WITH_INV,
};

#define OK(s)	IBV_WC_SUCCESS, IBV_QPS_##s
#define END(s)	IBV_WC_##s, IBV_QPS_ERR
#define STOP(s)	IBV_WC_##s, IBV_QPS_SQE
#define NONE	NO_STATUS
#define EVENT(e) IBV_EVENT_QP_##e
#define DONE	IBV_WC_SUCCESS
static const struct row {
	unsigned type;
	enum op op;
	unsigned wrong; /* what is wrong with the request: bits of enum wrong */
	/* expected completion status and state of the requester */
	int a_status, a_state;
	/* status of the responder's receive, if it completes, and state of the
	 * responder */
	int b_status, b_state;
	/* asynchronous event that the responder must get */
	int event;
	const char *name;
} rows[] = {
/* columns: type, op, wrong, requester, responder, event and name */
{ RC | XRC, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ RC | XRC, WRITE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, no such rkey" },
{ RC | XRC, READ,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, no such rkey" },
{ RC | XRC, ATOMIC,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, no such rkey" },
{ RC | XRC, WRITE,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE beyond the region" },
{ RC | XRC, READ,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ beyond the region" },
{ RC | XRC, WRITE,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a read-only region" },
{ RC | XRC, ATOMIC,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a read-only region" },
{ RC | XRC, WRITE,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a page that is gone" },
{ RC | XRC, READ,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ of a page that is gone" },
{ RC | XRC, WRITE,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE, not for this queue pair" },
{ RC | XRC, READ,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, not for this queue pair" },
{ RC | XRC, ATOMIC,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not for this queue pair" },
{ RC | XRC, ATOMIC,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned" },
{ RC | XRC, READ,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, none were promised" },
{ RC | XRC, SEND,	 MTU,		 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, packet beyond the path MTU" },
{ RC | XRC, SEND,	 SHORT,		 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive" },
{ RC | XRC, SEND,	 RECV_KEY,	 END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ RC, SEND_INV,	 INV_KEY,	 END(RETRY_EXC_ERR),	IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, invalidates nothing" },
{ RC | XRC, SEND,	 NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no receive" },
{ RC | XRC, WRITE_IMM, NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive" },
{ RC | XRC, SEND,	 PSN_AHEAD,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, PSN ahead" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_RESET, NO_EVENT, "SEND to one in RESET" },
{ RC | XRC, STORE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "atomic WRITE" },
{ RC | XRC, STORE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic WRITE, no such rkey" },
{ RC | XRC, STORE,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not for this queue pair" },
{ RC | XRC, STORE,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not aligned" },
{ RC | XRC, STORE,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, none were promised" },
{ RC | XRC, ATOMIC,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, none were promised" },
{ RC | XRC, ATOMIC,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a page that is gone" },
/* A receive is consumed before the key is checked (IBA 9.7.4), but only by the
 * packet that says that there is immediate data: the last one. */
{ RC | XRC, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ RC | XRC, WRITE_IMM, RECV_KEY,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, receive without a key" },
{ RC | XRC, WRITE_IMM, RKEY,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate, no such rkey" },
{ RC | XRC, WRITE_IMM, RANGE,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate beyond the region" },
{ RC | XRC, WRITE_IMM, RIGHT,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate to a read-only region" },
{ RC | XRC, WRITE_IMM, REMOTE_PAGE, END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate to a page that is gone" },
{ RC | XRC, WRITE_IMM, QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, not for this queue pair" },
{ RC | XRC, WRITE_IMM, RKEY | NO_RECV, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive nor such rkey" },
{ RC | XRC, WRITE_IMM, QP_RIGHT | NO_RECV, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, no receive, not for this queue pair" },
{ RC | XRC, WRITE_IMM, RKEY | MANY, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate of some packets, no such rkey" },
{ RC | XRC, WRITE_IMM, RKEY | LONG, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate of many packets, no such rkey" },
{ RC | XRC, WRITE_IMM, NO_RECV | MANY, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate of some packets, no receive" },
{ RC | XRC, WRITE_IMM, NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate of many packets, no receive" },
/* Two faults at a time: these rows show which one is checked first. */
{ RC | XRC, ATOMIC,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, no such rkey" },
{ RC | XRC, ATOMIC,	 ALIGNMENT | RIGHT, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, on a read-only region" },
{ RC | XRC, STORE,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not aligned, no such rkey" },
{ RC | XRC, WRITE,	 QP_RIGHT | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE, not for this queue pair, no such rkey" },
{ RC | XRC, READ,	 QP_RIGHT | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, not for this queue pair, no such rkey" },
{ RC | XRC, READ,	 NO_READS | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, none were promised, no such rkey" },
{ RC | XRC, ATOMIC,	 NO_READS | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, none were promised, no such rkey" },
{ RC | XRC, SEND,	 SHORT | RECV_KEY, END(REM_INV_REQ_ERR), IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive, without a key" },
{ RC | XRC, SEND,	 SHORT | LONG,	 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND longer than the receive" },
{ RC | XRC, SEND,	 RECV_KEY | LONG, END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND, receive without a key" },
{ RC | XRC, SEND,	 NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "long SEND, no receive" },
{ RC | XRC, WRITE,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE, no such rkey" },
{ RC | XRC, READ,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long READ, no such rkey" },
{ XRC, SEND,	 NO_SRQ,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, no such shared queue" },
{ XRC, SEND,	 OTHER_XRCD,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND to a shared queue of another domain" },
/* The next 8 rows: no fault, but the responder's queue pair is not in RTS. */
{ RC | XRC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "SEND to one in RTR" },
{ RC | XRC, WRITE,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "WRITE to one in RTR" },
{ RC | XRC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_SQD, NO_EVENT, "SEND to one in SQD" },
{ RC | XRC, READ,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_SQD, NO_EVENT, "READ from one in SQD" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_INIT, NO_EVENT, "SEND to one in INIT" },
{ RC | XRC, WRITE,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_INIT, NO_EVENT, "WRITE to one in INIT" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_ERR, NO_EVENT, "SEND to one in ERR" },
{ RC | XRC, WRITE,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_ERR, NO_EVENT, "WRITE to one in ERR" },
{ RC | XRC, SEND,	 LKEY,		 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no such lkey" },
{ RC | XRC, SEND,	 LOCAL_RANGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND from beyond the region" },
{ RC | XRC, SEND,	 LOCAL_PAGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND of a page that is gone" },
{ RC | XRC, READ,	 LOCAL_RIGHT,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "READ to a read-only region" },

/* iWARP: a fault at one end ends the stream, and so the other end. */
{ IW, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ IW, WRITE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, no such rkey" },
{ IW, READ,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, no such rkey" },
{ IW, ATOMIC,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, no such rkey" },
{ IW, WRITE,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE beyond the region" },
{ IW, READ,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ beyond the region" },
{ IW, WRITE,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a read-only region" },
{ IW, ATOMIC,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a read-only region" },
{ IW, WRITE,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a page that is gone" },
{ IW, READ,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ of a page that is gone" },
{ IW, WRITE,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, not for this queue pair" },
{ IW, READ,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, not for this queue pair" },
{ IW, ATOMIC,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, not for this queue pair" },
{ IW, ATOMIC,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned" },
{ IW, READ,	 NO_READS,	 END(LOC_QP_OP_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "READ, none were promised" },
{ IW, SEND,	 SHORT,		 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive" },
{ IW, SEND,	 RECV_KEY,	 END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ IW, SEND_INV,	 INV_KEY,	 END(REM_ACCESS_ERR),	IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, invalidates nothing" },
{ IW, SEND,	 NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, no receive" },
{ IW, WRITE_IMM, NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, no receive" },
{ IW, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ IW, WRITE_IMM, RECV_KEY,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, receive without a key" },
/* RFC 7306: a WRITE with immediate is a WRITE, followed by a message that
 * consumes the receive. */
{ IW, WRITE_IMM, RKEY,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, no such rkey" },
{ IW, WRITE_IMM, RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate to a read-only region" },
{ IW, WRITE_IMM, REMOTE_PAGE, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate to a page that is gone" },
{ IW, WRITE_IMM, QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, not for this queue pair" },
{ IW, WRITE_IMM, RKEY | NO_RECV, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, no receive nor such rkey" },
{ IW, WRITE_IMM, RKEY | LONG, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE with immediate, no such rkey" },
{ IW, ATOMIC,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, no such rkey" },
{ IW, ATOMIC,	 ALIGNMENT | RIGHT, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, on a read-only region" },
{ IW, ATOMIC,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a page that is gone" },
{ IW, ATOMIC,	 NO_READS,	 END(LOC_QP_OP_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "atomic, none were promised" },
{ IW, SEND,	 SHORT | RECV_KEY, END(REM_INV_REQ_ERR), IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive, without a key" },
{ IW, SEND,	 SHORT | LONG,	 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND longer than the receive" },
{ IW, SEND,	 RECV_KEY | LONG, END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND, receive without a key" },
{ IW, SEND,	 NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "long SEND, no receive" },
{ IW, WRITE,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE, no such rkey" },
{ IW, READ,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long READ, no such rkey" },
{ IW, SEND,	 LKEY,		 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND, no such lkey" },
{ IW, SEND,	 LOCAL_RANGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND from beyond the region" },
{ IW, SEND,	 LOCAL_PAGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND of a page that is gone" },
{ IW, READ,	 LOCAL_RIGHT,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "READ to a read-only region" },

{ UC, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ UC, WRITE,	 RKEY,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE, no such rkey" },
{ UC, WRITE,	 RANGE,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE beyond the region" },
{ UC, WRITE,	 RIGHT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE to a read-only region" },
{ UC, WRITE,	 REMOTE_PAGE,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE to a page that is gone" },
{ UC, WRITE,	 QP_RIGHT,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE, not for this queue pair" },
{ UC, SEND,	 MTU,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND, packet beyond the path MTU" },
{ UC, SEND,	 SHORT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND longer than the receive" },
{ UC, SEND,	 NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no receive" },
{ UC, WRITE_IMM, NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive" },
{ UC, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ UC, WRITE_IMM, RKEY,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no such rkey" },
{ UC, WRITE_IMM, QP_RIGHT,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, not for this queue pair" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "SEND to one in RTR" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_INIT, NO_EVENT, "SEND to one in INIT" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_ERR, NO_EVENT, "SEND to one in ERR" },
{ UC, SEND,	 RECV_KEY,	 OK(RTS),		IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RESET, NO_EVENT, "SEND to one in RESET" },
{ UC, SEND,	 LKEY,		 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no such lkey" },
{ UC, SEND,	 LOCAL_RANGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND from beyond the region" },
{ UC, SEND,	 LOCAL_PAGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND of a page that is gone" },

{ UD, SEND,	 WRONG_QKEY,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "another Q_Key" },
{ UD, SEND,	 SHORT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "longer than the receive" },
{ UD, SEND,	 NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "no receive" },
{ UD, SEND,	 RECV_KEY,	 OK(RTS),		IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "receive without a key" },
{ UD, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RESET, NO_EVENT, "to one in RESET" },
{ UD, SEND,	 LKEY,		 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "no such lkey" },
{ UD, SEND,	 LOCAL_PAGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "a page that is gone" },
{ UD, SEND,	 TOO_LONG,	 STOP(LOC_LEN_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "beyond the MTU" },
};
// clang-format on

static void move_to(struct ibv_qp *qp, const struct type *t,
		    struct ibv_qp_attr *attr, int from, int to)
{
	attr->qp_state = (enum ibv_qp_state)to;
	must(!ibv_modify_qp(qp, attr,
			    IBV_QP_STATE | find_move(t, from, to)->need),
	     "ibv_modify_qp");
}

/* Move the queue pair from RESET to @state, through the states in between. */
static void bring_along(struct ibv_qp *qp, const struct type *t,
			struct ibv_qp_attr attr, int state)
{
	int last = state == IBV_QPS_ERR ? IBV_QPS_RTS : state;

	for (int from = IBV_QPS_RESET; from < last; from++)
		move_to(qp, t, &attr, from, from + 1);
	if (state == IBV_QPS_ERR)
		must(!try_move(qp, last, state, 0), "to ERR");
}

void connect_to(struct ibv_qp *qp, const struct type *t,
		struct ibv_qp_attr attr)
{
	bring_along(qp, t, attr, IBV_QPS_RTS);
}

static void connect_streams(const struct row *r, struct ibv_qp *a,
			    struct ibv_qp *b)
{
	must(!rc_to_init(a, RC_ALL_ACCESS) &&
		     !rc_to_init(b, r->wrong & QP_RIGHT ? IBV_ACCESS_LOCAL_WRITE
							: RC_ALL_ACCESS),
	     "to INIT");
	stream_connect(a, b, r->wrong & NO_READS ? 0 : 4);
}

static void connect_a(const struct row *r, const struct type *t,
		      struct ibv_qp *a, const struct end *b)
{
	struct ibv_qp_attr attr = good_values(b->qpn);

	if (r->wrong & PSN_AHEAD)
		attr.sq_psn = 5;
	/* On a busy machine the responder's thread may get no processor for
	 * longer than all retries of 4 ms last. */
	if (r->a_status != IBV_WC_RETRY_EXC_ERR) {
		attr.timeout = 16; /* time-out code for 268 ms */
		attr.retry_cnt = 7;
	}
	connect_to(a, t, attr);
}

static void connect_b(const struct row *r, const struct type *t,
		      struct ibv_qp *b, const struct end *a)
{
	struct ibv_qp_attr attr = good_values(a->qpn);

	if (r->wrong & QP_RIGHT)
		attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
	if (r->wrong & NO_READS)
		attr.max_dest_rd_atomic = 0;
	if (r->wrong & MTU)
		attr.path_mtu = IBV_MTU_512;
	if (!(r->wrong & PEER_THERE))
		connect_to(b, t, attr);
	else
		bring_along(b, t, attr, r->b_state);
}

static bool has_recv(const struct row *r)
{
	return !(r->wrong & NO_RECV) && r->b_state != IBV_QPS_RESET;
}

static void post_recv(struct ibv_qp *b, const struct row *r)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	if (r->wrong & SHORT)
		sge.length = GRH;
	if (r->wrong & RECV_KEY)
		sge.lkey = 0;
	must(!(b->qp_type == IBV_QPT_XRC_RECV
		       ? ibv_post_srq_recv(srq, &wr, &bad)
		       : ibv_post_recv(b, &wr, &bad)),
	     "a receive");
}

/* Each row of the table gets an empty SRQ for XRC. */
static void make_srq(const struct row *r)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 16, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = device.pd,
		.xrcd = r->wrong & OTHER_XRCD ? other_xrcd : xrcd,
		.cq = cq_b,
	};

	srq = ibv_create_srq_ex(device.context, &init);
	must(srq, "ibv_create_srq_ex");
}

/* Returns the place of the data at this end, behind the place of the
 * receive. */
static struct ibv_sge local_piece(const struct row *r)
{
	struct ibv_sge sge = { (uintptr_t)memory + BYTES, 64, mr->lkey };

	if (r->op == ATOMIC || r->op == STORE)
		sge.length = 8;
	if (r->wrong & MTU)
		sge.length = 1024;
	if (r->wrong & MANY)
		sge.length = 3000;
	if (r->wrong & LONG)
		sge.length = 8000;
	if (r->wrong & LKEY)
		sge.lkey = 0;
	if (r->wrong & LOCAL_RANGE)
		sge.addr = (uintptr_t)memory + 2 * BYTES - 8;
	if (r->wrong & LOCAL_RIGHT)
		sge.lkey = read_only->lkey;
	if (r->wrong & LOCAL_PAGE)
		sge = (struct ibv_sge){ (uintptr_t)gone->addr, 64, gone->lkey };
	if (r->wrong & TOO_LONG)
		sge.length = 8192;
	return sge;
}

static void remote_place(const struct row *r, uint64_t *addr, uint32_t *rkey)
{
	*addr = far.memory;
	*rkey = far.rkey;
	if (r->wrong & RKEY)
		*rkey = 0;
	if (r->wrong & RANGE)
		*addr = far.memory + 2 * BYTES - 8;
	if (r->wrong & RIGHT)
		*rkey = far.read_only;
	if (r->wrong & ALIGNMENT)
		*addr += 4;
	if (r->wrong & REMOTE_PAGE) {
		*addr = far.gone;
		*rkey = far.gone_rkey;
	}
}

static void ask(struct ibv_qp *a, const struct end *b, const struct row *r)
{
	struct ibv_sge sge = local_piece(r);
	struct ibv_send_wr *bad, wr = { .wr_id = 2,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = opcodes[r->op],
					.send_flags = IBV_SEND_SIGNALED };
	uint64_t addr;
	uint32_t rkey;

	remote_place(r, &addr, &rkey);
	if (a->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b->qpn;
		wr.wr.ud.remote_qkey = QKEY + (r->wrong & WRONG_QKEY);
	} else if (r->op == ATOMIC) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (r->op == SEND_INV)
		wr.invalidate_rkey = 0;
	if (a->qp_type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn =
			b->srqn ^ (r->wrong & NO_SRQ ? 1 : 0);
	must(!ibv_post_send(a, &wr, &bad), "ibv_post_send");
}

/* Returns the event about @qp that waits, if there is one. Other events are
 * skipped, and so is COMM_EST, unless it is @wanted. */
static int event_of(const struct ibv_qp *qp, int wanted)
{
	struct ibv_async_event e;
	int found = NO_EVENT;

	while (ibv_get_async_event(device.context, &e) == 0) {
		if (e.element.qp == qp &&
		    e.event_type != IBV_EVENT_QP_LAST_WQE_REACHED &&
		    (e.event_type != IBV_EVENT_COMM_EST ||
		     wanted == IBV_EVENT_COMM_EST))
			found = e.event_type;
		ibv_ack_async_event(&e);
	}
	return found;
}

int status_within(struct ibv_cq *cq, double limit)
{
	struct ibv_wc wc;

	return rc_wait(cq, limit, &wc) ? (int)wc.status : NO_STATUS;
}

/* Wait at a barrier until both programs have come to the same point. */
static void meet(void)
{
	if (wire >= 0)
		tcp_barrier(wire);
}

/* Give side a the value @of_b that side b observed, since side a judges both.
 * Returns the value. */
static int heard(int of_b)
{
	if (wire < 0)
		return of_b;
	if (is_b)
		tcp_send(wire, &of_b, sizeof(of_b));
	else
		tcp_recv(wire, &of_b, sizeof(of_b));
	return of_b;
}

static int status_at_b(double limit)
{
	return heard(is_b ? status_within(cq_b, limit) : 0);
}

/* If the fault leaves both sides unchanged, another message must arrive, in the
 * same receive if the first one consumed none. */
static void judge_next(const struct row *r, struct ibv_qp *a, struct ibv_qp *b,
		       const struct end *to)
{
	static const struct row good = { .op = SEND };
	bool had =
		has_recv(r) && !(r->wrong & SHORT) && r->b_status == NO_STATUS;
	/* The receive that was too small for the first message is still
	 * posted. */
	bool is_short = r->wrong & SHORT;
	int a_status = IBV_WC_SUCCESS, b_status;

	if (r->a_state != IBV_QPS_RTS || r->b_state != IBV_QPS_RTS)
		return;
	if (r->wrong & MTU)
		return;
	if (!had && is_b)
		post_recv(b, is_short ? r : &good);
	meet();
	if (is_a) {
		ask(a, to, &good);
		a_status = status_within(cq_a, WAIT);
	}
	meet();
	b_status = status_at_b(is_short ? QUIET : WAIT);
	verdict(a_status == IBV_WC_SUCCESS &&
			b_status == (is_short ? NO_STATUS : IBV_WC_SUCCESS),
		is_short ? "%s: the receive was used up"
			 : "%s: the next message does not arrive",
		r->name);
}

/* Each of the two processes makes its queue pair for row @r; they exchange the
 * numbers. */
static void set_up_row(const struct row *r, const struct type *ta,
		       const struct type *tb, struct ibv_qp **a,
		       struct ibv_qp **b, struct end *to)
{
	struct end from = { 0 };

	*a = is_a ? make_qp(ta->type, cq_a) : NULL;
	*b = is_b ? make_qp(tb->type, cq_b) : NULL;
	must((*a || !is_a) && (*b || !is_b), "two queue pairs");
	*to = (struct end){ 0 };
	if (is_a)
		from.qpn = (*a)->qp_num;
	if (is_b)
		to->qpn = (*b)->qp_num;
	if (is_b && tb->bit == TGT) {
		make_srq(r);
		must(!ibv_get_srq_num(srq, &to->srqn), "ibv_get_srq_num");
	}
	if (ta->bit == IW) {
		connect_streams(r, *a, *b);
		return;
	}
	if (wire >= 0 && is_a)
		tcp_swap(wire, &from, to, sizeof(*to));
	else if (wire >= 0)
		tcp_swap(wire, to, &from, sizeof(from));
	if (is_a)
		connect_a(r, ta, *a, to);
	if (is_b)
		connect_b(r, tb, *b, &from);
}

static bool has_packets(void)
{
	const char *near = getenv("VERBENA_NEAR");

	return wire >= 0 || (near && !strcmp(near, "off"));
}

/* Returns the requester's status. Over TCP a request is complete when its bytes
 * were sent; then only an event reports the end of the stream. */
static int asked_status(const struct row *r, const struct type *t)
{
	bool leaves = r->op != READ && r->op != ATOMIC;

	if (t->bit == IW && has_packets() && leaves &&
	    r->a_status != IBV_WC_LOC_PROT_ERR)
		return IBV_WC_SUCCESS;
	return r->a_status;
}

/* Wait for the state, since the end of a stream takes time to reach both
 * ends. */
static void await_state(struct ibv_qp *qp, int state)
{
	double until = seconds() + WAIT;

	while (state_of(qp) != state && seconds() < until)
		usleep(1000);
}

static int event_within(const struct ibv_qp *qp, int wanted)
{
	double until = seconds() + (wanted == NO_EVENT ? 0 : 1);
	int event;

	while ((event = event_of(qp, wanted)) == NO_EVENT && seconds() < until)
		usleep(1000);
	return event;
}

static void judge_row(const struct row *r, const struct type *ta,
		      const struct type *tb)
{
	bool flushed, receives = has_recv(r);
	int a_status = r->a_status, a_state = r->a_state;
	int b_status, b_state, event, asked = asked_status(r, ta);
	struct ibv_qp *a, *b;
	struct end to;

	set_up_row(r, ta, tb, &a, &b, &to);
	if (receives && is_b)
		post_recv(b, r);
	meet();
	if (is_a) {
		ask(a, &to, r);
		a_status = status_within(cq_a, WAIT);
	}
	meet();
	/* In ERR, a receive that the fault did not complete is flushed, but
	 * receives of a shared queue are not. */
	flushed = receives && tb->bit != TGT && r->b_status == NO_STATUS &&
		  r->b_state == IBV_QPS_ERR;
	b_status =
		status_at_b(flushed || r->b_status != NO_STATUS ? WAIT : QUIET);
	if (ta->bit == IW) {
		await_state(a, r->a_state);
		await_state(b, r->b_state);
	}
	if (is_a)
		a_state = state_of(a);
	b_state = heard(is_b ? state_of(b) : 0);
	event = heard(is_b ? event_within(b, r->event) : 0);
	verdict(a_status == asked && a_state == r->a_state,
		"%s: requester: %s, in %s", r->name,
		a_status < 0 ? "nothing" : ibv_wc_status_str(a_status),
		state_names[a_state]);
	verdict(b_status == (flushed ? IBV_WC_WR_FLUSH_ERR : r->b_status) &&
			b_state == r->b_state && event == r->event,
		"%s: responder: %s, in %s, event %d", r->name,
		b_status < 0 ? "nothing" : ibv_wc_status_str(b_status),
		state_names[b_state], event);
	judge_next(r, a, b, &to);
	stream_drop();
	must((!a || !ibv_destroy_qp(a)) && (!b || !ibv_destroy_qp(b)),
	     "ibv_destroy_qp");
	must(!is_b || tb->bit != TGT || !ibv_destroy_srq(srq),
	     "ibv_destroy_srq");
}

void judge_faults(const struct type *ta, const struct type *tb,
		  const char *name)
{
	bool packets = has_packets();

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].type & ta->bit &&
		    /* Only packets have an MTU; RC on one host has none. */
		    (packets || !(rows[i].wrong & MTU) || ta->bit != RC))
			judge_row(&rows[i], ta, tb);
	line("faults of", name);
}
