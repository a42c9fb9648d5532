/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages about connections between programs and the broker, over a
 * session of their own (wire/ipc.h). A program assigns the numbers of the ids
 * that it makes, below VB_IPC_CM_INCOMING; the broker assigns those of ids that
 * other programs' requests make, from there on.
 */
#ifndef WIRE_IPC_CM_H
#define WIRE_IPC_CM_H

#include "base/bytes.h"
#include "wire/gid.h"

#define VB_IPC_CM_INCOMING 0x80000000u

/* The most ids of all programs of one user together; beyond that number the
 * broker answers ENOBUFS. Root and the broker's own user have no limit. */
#define VB_IPC_CM_USER_IDS   65536
#define VB_IPC_CM_USER_PORTS 16384

/* The values follow those of enum vb_ipc_kind. */
enum vb_ipc_cm_kind {
	IPC_CM_NONE = 0, /* no process sends this kind */
	/* fields: space, src, port (0: any), flags; the broker
	 * answers */
	IPC_CM_BIND = 32,
	/* program to broker; field: backlog; the broker answers */
	IPC_CM_LISTEN,
	/* fields: those of BIND, and all others; @space is that of the peer */
	IPC_CM_CONNECT,

	/* program to broker: accepts; fields: queue pair, depths, private
	 * data */
	IPC_CM_ACCEPT,
	/* program to broker: rejects; fields: reason, private data */
	IPC_CM_REJECT,
	/* program to broker: the program accepted the REP, or data came */
	IPC_CM_ESTABLISH,
	IPC_CM_DISCONNECT,
	/* program to broker: the program no longer uses the id's number */
	IPC_CM_CLOSE,
	/* Program to broker; field: qpn. Asks whether the broker knows that the
	 * queue pair qpn belongs to this program. The broker answers; EAGAIN:
	 * it does not know yet. */
	IPC_CM_HELLO,
	/* a connection from an earlier broker; field status: enum
	 * vb_ipc_cm_stage */
	IPC_CM_RESUME,
	/* Program to broker, with a descriptor: a connection to the process of
	 * a fabric that is a port (UMAD_ATTACH, wire/umad_ipc.h). Fields: guid,
	 * the adapter's node; dst_port, the port; place, the number that is
	 * wanted. The broker answers with the place's number. ENOENT: no
	 * process has given that port yet. Then the program watches the port
	 * (UMAD_WATCH), waits until it can read the answer, which it leaves to
	 * the broker, registers agents, and sends the message again with
	 * IPC_CM_AGENTS: backlog is the agent for connections, listener that
	 * for the subnet administrator. */
	IPC_CM_PLACE,
	/* Program to broker: asks the subnet administrator for a path. Fields:
	 * place, src, dst, pkey, tclass, space and dst_port of the service,
	 * flags (IPC_CM_QOS_CLASS) and timeout_ms. The event ROUTE follows. */
	IPC_CM_PATH,
	/* Program to broker: joins the group dst. Fields: place, src, space,
	 * pkey, qkey, tclass, flags (IPC_CM_SENDS_ONLY), timeout_ms. In the
	 * port space IPoIB a new group has qkey, tclass and all else of the
	 * broadcast group of pkey. The event GROUP follows. */
	IPC_CM_GROUP_JOIN,
	/* program to broker: the id leaves the group dst of place */
	IPC_CM_GROUP_LEAVE,
	/* program to broker: the connection has migrated to its alternate
	 * path */
	IPC_CM_MIGRATED,
	/* Program to broker: asks the subnet administrator for the ports that
	 * have a service. Fields: place, src, timeout_ms; guid, the service's
	 * ID, or in the private data its name, without a final 0. The event
	 * SERVICES follows. */
	IPC_CM_SERVICE,

	/* broker's answer to a question; fields: error, port, tid */
	IPC_CM_DONE,
	/* broker to program: an event, with its status and fields */
	IPC_CM_EVENT,
};
#define IPC_CM_LAST IPC_CM_EVENT

enum vb_ipc_cm_event {
	/* a peer asks to connect; id: the new connection, listener: the id
	 * where the request arrived */
	IPC_CM_REQUEST = 1,
	IPC_CM_REPLY,
	IPC_CM_ESTABLISHED,
	/* the peer rejected the connection; status: the reason */
	IPC_CM_REJECTED,
	IPC_CM_UNREACHABLE, /* the peer did not answer; status: -errno */
	IPC_CM_DISCONNECTED,
	IPC_CM_OVER,
	/* the operation did not begin; status: a positive errno */
	IPC_CM_FAILED,
	/* status of a SIDR REP; if it is 0, qpn and qkey are valid */
	IPC_CM_ADDRESS,
	/* The subnet administrator's path, or status: a positive errno.
	 * ETIMEDOUT: no answer came; EINVAL: there is no such path. */
	IPC_CM_ROUTE,
	/* the group dst is joined, and dlid is its multicast LID; or status, as
	 * of IPC_CM_ROUTE */
	IPC_CM_GROUP,
	/* The services, each in VB_IPC_CM_SERVICE_BYTES bytes of the private
	 * data: its ID, P_Key and GID; or status, as of IPC_CM_ROUTE. */
	IPC_CM_SERVICES,
};

/* bytes of a service in IPC_CM_SERVICES, and the most of them in one event */
#define VB_IPC_CM_SERVICE_BYTES 26
#define VB_IPC_CM_SERVICES	8

/* The kind of connection for which an id listens, or which it makes. */
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
	/* flag of BIND: share the port with the ids that listen there under
	 * this secret */
	IPC_CM_JOIN = 4,
	/* flag of CONNECT: an earlier broker may have begun this connection */
	IPC_CM_AGAIN = 8,
	/* flag for AF_IB: requests carry no header of rdma_cm */
	IPC_CM_PLAIN = 16,
	/* flag of CONNECT, RESUME and of the event REQUEST: the connection is
	 * one of RoCEv1 */
	IPC_CM_V1 = 32,
	/* flag of PLACE: the program has registered the agents that the message
	 * names */
	IPC_CM_AGENTS = 32,
	/* flag of PATH: @tclass is a class of quality of service, not the
	 * path's traffic class */
	IPC_CM_QOS_CLASS = 64,
	/* flag of PLACE: the program has adapters of fabrics only, so the
	 * broker needs no UDP port for it */
	IPC_CM_ONLY_PLACES = 64,
	/* flag of the event REPLY: the peer has not taken the alternate path */
	IPC_CM_NO_ALTERNATE = 64,
	/* flag of GROUP_JOIN: the program only sends to the group */
	IPC_CM_SENDS_ONLY = 128,
};

/* The state of a connection at the time when its broker ended. */
enum vb_ipc_cm_stage {
	IPC_CM_AT_END,
	IPC_CM_AT_REQUEST,
	IPC_CM_AT_REPLY,
	IPC_CM_AT_STAGES
};

#define VB_IPC_CM_VERSION 6
#define VB_IPC_CM_PRIVATE 224
#define VB_IPC_CM_BYTES	  448
/* the port space IPoIB of rdma_cm */
#define VB_IPC_CM_IPOIB 0x0002
/* Places are ports of fabrics' adapters, numbered from 1; 0 is RoCEv2. */
#define VB_IPC_CM_PLACES 64

/* The alternate path of a connection on InfiniBand (IBA 17.2.8), with the P_Key
 * of the primary path. @place may be another port of the same adapter; 0: there
 * is no such path. The other fields are as those of struct vb_ipc_cm. */
struct vb_ipc_cm_alternate {
	uint8_t place, sl, path_bits, rate, tclass, hop_limit, ack_timeout;
	uint16_t dlid;
	uint32_t flow_label;
	struct vb_gid src, dst;
};

struct vb_ipc_cm {
	uint8_t kind, version;
	uint8_t event, flags;
	/* @space: a port space of rdma_cm */
	uint16_t space, src_port, dst_port;
	uint32_t id, listener;
	int32_t status;
	/* addresses of the receiver of the message and of its peer */
	struct vb_gid src, dst;
	/* The addresses by which the programs know @src and @dst, if packets
	 * use other ones: loopback addresses, and any IP addresses on
	 * InfiniBand; zero: there is no such address. */
	struct vb_gid src_name, dst_name;
	uint32_t ifindex;
	/* of BIND: a secret by which other ids can share the port; 0: none */
	uint64_t guid;
	uint32_t qpn, psn, flow_label, backlog;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry;
	bool flow_control, srq;
	uint8_t mtu, tclass, hop_limit, ack_timeout;
	uint8_t type; /* kind of the connection, an enum vb_ipc_cm_type */
	uint32_t qkey;
	/* vendor ID (24 bits) and options (32 bits) of ECE */
	uint32_t vendor_id, vendor_options;
	/* The numbers by which a connection outlives its broker: events bring
	 * them to the program, and RESUME returns them to the next broker. */
	uint32_t local_id, remote_id, peer_qpn;
	uint64_t tid; /* number of a question, which the answer DONE repeats */
	/* The path on InfiniBand; @place 0: the path is one of RoCEv2. @dlid is
	 * the LID of the peer, or of a router to it; @rate the code of the
	 * static rate, 0: none. */
	uint8_t place, sl, path_bits, rate;
	uint16_t dlid, pkey;
	/* of CONNECT, ACCEPT and the event REQUEST */
	struct vb_ipc_cm_alternate alternate;
	uint32_t timeout_ms;
	uint8_t private_bytes;
	uint8_t private_data[VB_IPC_CM_PRIVATE];
};

/*
 * A service ID of InfiniBand is told by @space and a port. Those of rdma_cm are
 * @space << 16 + port (IBA A11.4). The others that programs can use are those
 * of IPoIB's connected mode, 0x1000000000000000 + the number of a queue pair
 * (RFC 4755, 3.5): the port space 0xf000 and more has the upper 12 bits of that
 * number, and the port the lower 12 below VB_IPC_CM_IETF_PORT, so that no port
 * is 0 or needs a privilege.
 */
#define VB_IPC_CM_IETF_SPACE 0xf000
#define VB_IPC_CM_IETF_PORT  0x8000
uint64_t vb_ipc_cm_service(uint16_t space, uint16_t port);
/* Set *@space and *@port to those of @service. False: @service is neither of
 * rdma_cm nor of IPoIB. */
bool vb_ipc_cm_service_split(uint64_t service, uint16_t *space, uint16_t *port);

size_t vb_ipc_cm_put(uint8_t bytes[VB_IPC_CM_BYTES], const struct vb_ipc_cm *m);
/* Parse a message. False: its length, kind or version is wrong; it has too much
 * private data; or a number does not fit its field on the wire, or is no number
 * of a place. */
bool vb_ipc_cm_get(const uint8_t *bytes, size_t len, struct vb_ipc_cm *m);

#endif
