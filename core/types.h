/* SPDX-License-Identifier: BSD-2-Clause */
/* The vocabulary of verbs: types, operations, statuses. The values equal those
 * of the ABI (infiniband/verbs.h); front/verbs asserts it, so that no
 * translation tables are needed. */
#ifndef CORE_TYPES_H
#define CORE_TYPES_H

#include "base/defs.h"
#include "wire/gid.h"

enum vb_qp_type {
	QPT_RC = 2,
	QPT_UC = 3,
	QPT_UD = 4,
	QPT_RAW_PACKET = 8,
	QPT_XRC_SEND = 9,
	QPT_XRC_RECV = 10,
	/* a work queue (core/rss.h), which the ABI does not know as a type */
	QPT_WQ = 16
};

/* Is the type's transport reliable, that is, does the responder acknowledge? */
static inline bool vb_qp_type_is_reliable(enum vb_qp_type type)
{
	return type == QPT_RC || type == QPT_XRC_SEND || type == QPT_XRC_RECV;
}

enum vb_qp_state {
	QPS_RESET,
	QPS_INIT,
	QPS_RTR,
	QPS_RTS,
	QPS_SQD,
	QPS_SQE,
	QPS_ERR
};
#define QPS_COUNT 7

enum vb_wr_op {
	WR_WRITE = 0,
	WR_WRITE_IMM = 1,
	WR_SEND = 2,
	WR_SEND_IMM = 3,
	WR_READ = 4,
	WR_CMP_SWAP = 5,
	WR_FETCH_ADD = 6,
	WR_LOCAL_INV = 7,
	WR_BIND_MW = 8,
	WR_SEND_INV = 9,
	WR_ATOMIC_WRITE = 15,
};

enum vb_send_flags {
	SEND_FENCE = 1 << 0,
	SEND_SIGNALED = 1 << 1,
	SEND_SOLICITED = 1 << 2,
	SEND_INLINE = 1 << 3,
};

enum vb_wc_status {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	WC_FLUSH_ERR = 5,
	WC_MW_BIND_ERR = 6,
	WC_BAD_RESP_ERR = 7,
	WC_LOC_ACCESS_ERR = 8,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_REM_INV_RD_REQ_ERR = 15,
	WC_FATAL_ERR = 19,
	WC_GENERAL_ERR = 21,
	WC_TM_ERR = 22,
	WC_TM_RNDV_INCOMPLETE = 23,
};

enum vb_wc_op {
	WC_OP_SEND = 0,
	WC_OP_WRITE = 1,
	WC_OP_READ = 2,
	WC_OP_CMP_SWAP = 3,
	WC_OP_FETCH_ADD = 4,
	WC_OP_BIND_MW = 5,
	WC_OP_LOCAL_INV = 6,
	WC_OP_ATOMIC_WRITE = 9,
	WC_OP_RECV = 128,
	WC_OP_RECV_WRITE_IMM = 129,
	WC_OP_TM_ADD = 130,
	WC_OP_TM_DEL = 131,
	WC_OP_TM_SYNC = 132,
	WC_OP_TM_RECV = 133,
	WC_OP_TM_NO_TAG = 134,
};

enum vb_wc_flags {
	WC_GRH = 1 << 0,
	WC_WITH_IMM = 1 << 1,
	WC_WITH_INV = 1 << 3,
	WC_TM_SYNC_REQ = 1 << 4,
	WC_TM_MATCH = 1 << 5,
	WC_TM_DATA_VALID = 1 << 6,
};

/* How a datagram was encapsulated. RoCE packets carry no service level, and
 * like mlx5 Verbena reports this in its place: bit 3 says UDP, the low bits
 * which IP version. Programs use it to find the network header. */
enum vb_wc_l3 {
	WC_L3_GRH = 0, /* RoCEv1 */
	WC_L3_UDP_IPV6 = 0x9,
	WC_L3_UDP_IPV4 = 0xa,
};

/* The source of a datagram, as far as its GRH does not tell it. */
struct vb_wc_from {
	/* LID of the sender; 0: the network is not InfiniBand */
	uint16_t slid;
	/* service level; on RoCE an enum vb_wc_l3 in its place */
	uint8_t sl;
	/* low bits of the LID to which the datagram was sent */
	uint8_t path_bits;
	uint8_t pkey_index;
	/* RoCEv1: the source address of the frame; zero: this host sent it */
	uint8_t mac[6];
};

enum vb_access {
	ACCESS_LOCAL_WRITE = 1,
	ACCESS_REMOTE_WRITE = 2,
	ACCESS_REMOTE_READ = 4,
	ACCESS_REMOTE_ATOMIC = 8,
	ACCESS_MW_BIND = 0x10,
	ACCESS_ZERO_BASED = 0x20,
	ACCESS_ON_DEMAND = 0x40,
	ACCESS_HUGETLB = 0x80,
	ACCESS_RELAXED_ORDERING = 1 << 20,
};

/* Bits 29:20 are optional in the ABI: unknown bits among them are ignored. */
#define ACCESS_OPTIONAL 0x3ff00000u
#define ACCESS_KNOWN                                                           \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND | ACCESS_ZERO_BASED |           \
	 ACCESS_ON_DEMAND | ACCESS_HUGETLB | ACCESS_OPTIONAL)

enum vb_event_type {
	EVENT_CQ_ERR = 0,
	EVENT_QP_FATAL = 1,
	EVENT_QP_REQ_ERR = 2,
	EVENT_QP_ACCESS_ERR = 3,
	EVENT_COMM_EST = 4,
	EVENT_SQ_DRAINED = 5,
	EVENT_PATH_MIG = 6,
	EVENT_PATH_MIG_ERR = 7,
	EVENT_DEVICE_FATAL = 8,
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_LID_CHANGE = 11,
	EVENT_PKEY_CHANGE = 12,
	EVENT_SM_CHANGE = 13,
	EVENT_SRQ_ERR = 14,
	EVENT_SRQ_LIMIT = 15,
	EVENT_LAST_WQE = 16,
	EVENT_CLIENT_REREGISTER = 17,
	EVENT_GID_CHANGE = 18,
	EVENT_WQ_FATAL = 19,
};

/* What is wrong with an access or a packet. Checks return these values; the
 * table in core/fault.c says what follows from each. */
enum vb_fault {
	FAULT_NONE = 0,
	/* lkey unknown, of another PD, out of range, or without the right */
	FAULT_LKEY,
	FAULT_LOCAL_MEMORY, /* the lkey permits it, but a page is missing */
	/* rkey unknown, of another PD, out of range, or without the right */
	FAULT_RKEY,
	FAULT_REMOTE_MEMORY, /* the rkey permits it, but a page is missing */
	FAULT_PSN_GAP,
	/* a middle packet without a first one, or a first one too early */
	FAULT_ORDER,
	FAULT_ACCESS_FLAGS, /* qp_access_flags forbid the operation */
	/* the payload's length does not fit its place in the message */
	FAULT_LENGTH,
	FAULT_ALIGNMENT, /* the address of an atomic is not aligned */
	FAULT_NO_RQE,	 /* no receive is posted */
	FAULT_RQE_TOO_SMALL,
	FAULT_RQE_LKEY, /* the receive's own lkey or memory is at fault */
	FAULT_TOO_MANY_READS,
	/* SEND with Invalidate names a key that must not be invalidated */
	FAULT_INV_RKEY,
	FAULT_XRC_SRQ,	  /* the shared receive queue does not exist */
	FAULT_XRC_DOMAIN, /* the SRQ belongs to another XRC domain */
	/* the SRQ belongs to another process, to which the request cannot be
	 * forwarded */
	FAULT_XRC_FORWARD,
	FAULT_COUNT,
};

#define VB_MAX_SGE     32
#define VB_MAX_INLINE  1024
#define VB_MAX_MSG     (1u << 30) /* longest message in bytes: 1 GiB */
#define VB_MAX_RD_ATOM 128

struct vb_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* Returns the bytes of an MTU code (enum ibv_mtu): codes 1..5 stand for
 * 256..4096. */
static inline uint32_t vb_mtu_bytes(unsigned code)
{
	return 128u << code;
}

#endif
