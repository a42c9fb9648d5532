/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs and the broker say to each other about connections, over a
 * session of its own (wire/ipc.h). A program numbers what it makes, below
 * VB_IPC_CM_INCOMING; the broker numbers what others' requests make, above.
 */
#ifndef WIRE_IPC_CM_H
#define WIRE_IPC_CM_H

#include "base/bytes.h"
#include "wire/gid.h"

#define VB_IPC_CM_INCOMING 0x80000000u

/* What the broker gives all programs of one user together, but for root's and
 * those of the user whose broker it is. Beyond: ENOBUFS. */
#define VB_IPC_CM_USER_IDS   65536
#define VB_IPC_CM_USER_PORTS 16384

enum vb_ipc_cm_kind {			/* behind enum vb_ipc_kind's */
		      IPC_CM_NONE = 0,	/* never sent */
		      IPC_CM_BIND = 32, /* space, src, port (0: any), flags; to
					   be answered */
		      IPC_CM_LISTEN,	/* backlog; to be answered */
		      IPC_CM_CONNECT,	/* what is bound: all the rest; space:
					   the peer's */
		      IPC_CM_ACCEPT,	/* queue pair, depths, private data */
		      IPC_CM_REJECT,	/* reason, private data */
		      IPC_CM_ESTABLISH, /* the reply is taken, or data came */
		      IPC_CM_DISCONNECT,
		      IPC_CM_CLOSE,  /* the number is free again */
		      IPC_CM_HELLO,  /* qpn: is it known whose it is? To be
					answered: EAGAIN: not yet */
		      IPC_CM_RESUME, /* a connection of a broker before this:
					status: enum vb_ipc_cm_stage */
		      IPC_CM_DONE,   /* broker: the answer: error, port, tid */
		      IPC_CM_EVENT, /* broker: event, status and what belongs to
				       it */
};
#define IPC_CM_LAST IPC_CM_EVENT

enum vb_ipc_cm_event {
	IPC_CM_REQUEST = 1, /* a peer asks: id is a new connection, listener is
			       the id that it came to */
	IPC_CM_REPLY,
	IPC_CM_ESTABLISHED,
	IPC_CM_REJECTED,    /* status: the reason */
	IPC_CM_UNREACHABLE, /* status: -errno */
	IPC_CM_DISCONNECTED,
	IPC_CM_OVER,
	IPC_CM_FAILED,	/* status: positive errno: it did not even begin */
	IPC_CM_ADDRESS, /* status: of a SIDR REP; qpn and qkey if it is 0 */
};

/* What is listened for and connected. */
enum vb_ipc_cm_type {
	IPC_CM_RC,
	IPC_CM_UD,
	IPC_CM_UC,
	IPC_CM_XRC,
	IPC_CM_TYPES
};

enum vb_ipc_cm_flag {
	IPC_CM_REUSE = 1,
	IPC_CM_V6ONLY = 2,
	IPC_CM_JOIN = 4,  /* BIND: beside who listens there under this ticket */
	IPC_CM_AGAIN = 8, /* CONNECT: an earlier broker may have begun it */
	IPC_CM_PLAIN = 16, /* AF_IB: requests without rdma_cm's header */
};

/* How far a connection had come. */
enum vb_ipc_cm_stage {
	IPC_CM_AT_END,
	IPC_CM_AT_REQUEST,
	IPC_CM_AT_REPLY,
	IPC_CM_AT_STAGES
};

#define VB_IPC_CM_VERSION 4
#define VB_IPC_CM_PRIVATE 224
#define VB_IPC_CM_BYTES	  384

struct vb_ipc_cm {
	uint8_t kind, version;
	uint8_t event, flags;
	uint16_t space, src_port, dst_port; /* a port space of rdma_cm */
	uint32_t id, listener;
	int32_t status;
	struct vb_gid src, dst; /* the receiver's, the peer's */
	/* Loopback addresses that the programs know these by, where the way
	 * has others; zero: no other name. */
	struct vb_gid src_name, dst_name;
	uint32_t ifindex;
	uint64_t guid; /* BIND: a ticket for those who may join; 0: none */
	uint32_t qpn, psn, flow_label, backlog;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry;
	bool flow_control, srq;
	uint8_t mtu, tclass, hop_limit, ack_timeout;
	uint8_t type; /* enum vb_ipc_cm_type */
	uint32_t qkey;
	uint32_t vendor_id, vendor_options; /* ECE: 24 bits, 32 bits */
	/* By these a connection outlives its broker: events say them, RESUME
	 * says them again. */
	uint32_t local_id, remote_id, peer_qpn;
	uint64_t tid; /* of a question: its number, which DONE says again */
	uint8_t private_bytes;
	uint8_t private_data[VB_IPC_CM_PRIVATE];
};

size_t vb_ipc_cm_put(uint8_t bytes[VB_IPC_CM_BYTES], const struct vb_ipc_cm *m);
/* False: another length, kind or version; more private data than there is
 * room for; numbers that do not fit their field on the wire. */
bool vb_ipc_cm_get(const uint8_t *bytes, size_t len, struct vb_ipc_cm *m);

#endif
