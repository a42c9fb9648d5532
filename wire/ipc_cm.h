/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs and the broker say to each other about connections, over a
 * session of its own (wire/ipc.h). A program numbers the ids that it makes,
 * below VB_IPC_CM_INCOMING; the broker numbers those that other programs'
 * requests make, from there on.
 */
#ifndef WIRE_IPC_CM_H
#define WIRE_IPC_CM_H

#include "base/bytes.h"
#include "wire/gid.h"

#define VB_IPC_CM_INCOMING 0x80000000u

/* At most so much the broker gives all programs of one user together; beyond
 * that they get ENOBUFS. Root and the broker's own user have no limit. */
#define VB_IPC_CM_USER_IDS   65536
#define VB_IPC_CM_USER_PORTS 16384

enum vb_ipc_cm_kind {			/* behind enum vb_ipc_kind's */
		      IPC_CM_NONE = 0,	/* nobody sends it */
		      IPC_CM_BIND = 32, /* space, src, port (0: any), flags; the
					   broker answers */
		      IPC_CM_LISTEN,	/* backlog; the broker answers */
		      IPC_CM_CONNECT,	/* what is bound: all the rest; space:
					   the peer's */
		      IPC_CM_ACCEPT,	/* queue pair, depths, private data */
		      IPC_CM_REJECT,	/* reason, private data */
		      /* the program took the reply, or data came */
		      IPC_CM_ESTABLISH,
		      IPC_CM_DISCONNECT,
		      IPC_CM_CLOSE,  /* the number is free again */
		      IPC_CM_HELLO,  /* qpn: does the broker know its owner? It
					answers; EAGAIN: not yet */
		      IPC_CM_RESUME, /* a connection from an earlier broker;
					status: enum vb_ipc_cm_stage */
		      IPC_CM_DONE,   /* broker: the answer: error, port, tid */
		      IPC_CM_EVENT, /* broker: event, status and what belongs to
				       it */
};
#define IPC_CM_LAST IPC_CM_EVENT

enum vb_ipc_cm_event {
	IPC_CM_REQUEST = 1, /* a peer asks: id is a new connection, listener the
			       id at which it arrived */
	IPC_CM_REPLY,
	IPC_CM_ESTABLISHED,
	IPC_CM_REJECTED,    /* status: the reason */
	IPC_CM_UNREACHABLE, /* status: -errno */
	IPC_CM_DISCONNECTED,
	IPC_CM_OVER,
	IPC_CM_FAILED,	/* status: positive errno: it did not begin */
	IPC_CM_ADDRESS, /* status: of a SIDR REP; qpn and qkey if it is 0 */
};

/* What kind of thing an id listens for or connects. */
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
	IPC_CM_JOIN = 4,  /* BIND: join those who listen there by this ticket */
	IPC_CM_AGAIN = 8, /* CONNECT: an earlier broker perhaps began it */
	IPC_CM_PLAIN = 16, /* AF_IB: requests without rdma_cm's header */
};

/* How far a connection had come when its broker ended. */
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
	/* The loopback addresses by which the programs know @src and @dst,
	 * where packets use others; zero: there is none. */
	struct vb_gid src_name, dst_name;
	uint32_t ifindex;
	uint64_t guid; /* BIND: a ticket by which others join; 0: none */
	uint32_t qpn, psn, flow_label, backlog;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry;
	bool flow_control, srq;
	uint8_t mtu, tclass, hop_limit, ack_timeout;
	uint8_t type; /* enum vb_ipc_cm_type */
	uint32_t qkey;
	uint32_t vendor_id, vendor_options; /* ECE: 24 bits, 32 bits */
	/* By these a connection outlives its broker: events bring them, and
	 * RESUME returns them to the next broker. */
	uint32_t local_id, remote_id, peer_qpn;
	uint64_t tid; /* of a question: its number, which DONE repeats */
	uint8_t private_bytes;
	uint8_t private_data[VB_IPC_CM_PRIVATE];
};

size_t vb_ipc_cm_put(uint8_t bytes[VB_IPC_CM_BYTES], const struct vb_ipc_cm *m);
/* Parse a message. False: wrong length, kind or version; more private data than
 * it has room for; numbers that do not fit their field on the wire. */
bool vb_ipc_cm_get(const uint8_t *bytes, size_t len, struct vb_ipc_cm *m);

#endif
