/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between programs (libibumad.so.3) and the process of a fabric, over
 * a SOCK_SEQPACKET socket within one machine, so in that machine's byte order.
 *
 * A connection begins with one message of the program and its answer. After
 * UMAD_QUERY it ends; after UMAD_COMMAND the program may begin again. After
 * UMAD_ATTACH the connection is a port: it carries MADs in both directions, one
 * in each message, so that a program learns by poll() that a MAD has come.
 * UMAD_REGISTER and UMAD_UNREGISTER carry a socket for their answer, so that
 * the answer does not wait behind MADs.
 */
#ifndef WIRE_UMAD_IPC_H
#define WIRE_UMAD_IPC_H

#include "base/defs.h"

/* first word of each message; its last byte is the version of the protocol */
#define VB_UMAD_MAGIC 0x756d4104u
#define VB_UMAD_NAME  65
/* most bytes of data in a message; longer data are passed in a memfd */
#define VB_UMAD_INLINE 32768
#define VB_UMAD_MOST   (32u << 20)
#define VB_UMAD_TEXT   400
#define VB_UMAD_PKEYS  256
#define VB_UMAD_GUIDS  32
#define VB_UMAD_PATH   256
#define VB_UMAD_DONE   1 /* the result in the last message of a capture */

enum vb_umad_kind {
	/* asks for the state of a node and of one of its ports; the answer is a
	 * struct vb_umad_info */
	UMAD_QUERY = 1,
	/* asks to send and receive MADs at a port; the answer is a head (struct
	 * vb_umad_head) */
	UMAD_ATTACH,
	/* registers a management agent; the answer is a head whose result is
	 * the agent's number */
	UMAD_REGISTER,
	/* unregisters a management agent; the answer is a head */
	UMAD_UNREGISTER,
	UMAD_MAD, /* a MAD in either direction */
	/* A command in text. The answer is several heads, each with a part of
	 * the text; the last one has no text. With the command "attach" comes a
	 * descriptor, which the fabric's process connects to an Ethernet port
	 * of a switch. */
	UMAD_COMMAND,
	/* The command "capture": the answer is several heads with bytes of the
	 * capture, which come until the program sends a further UMAD_COMMAND.
	 * The last head has the result VB_UMAD_DONE and a text for people. */
	/* asks, on a connection that is a port, for the port's state; the
	 * message is only a head. The fabric answers with struct vb_verbs_port
	 * (wire/verbs_ipc.h), whose slot is 0, and sends another one whenever
	 * the port has changed. */
	UMAD_WATCH,
};

struct vb_umad_head {
	uint32_t magic;
	uint32_t kind;	/* kind of the message, an enum vb_umad_kind */
	int32_t result; /* result of a request: 0 or more, or -errno */
	/* bytes of the MAD (UMAD_MAD) or of the text (UMAD_COMMAND) */
	uint32_t length;
};

/* The message UMAD_QUERY or UMAD_ATTACH: a node of the fabric, and one of its
 * ports. */
struct vb_umad_where {
	struct vb_umad_head head;
	char node[VB_UMAD_NAME];
	uint8_t port;
	/* of VERBS_ATTACH (wire/verbs_ipc.h): the slot that the program wants;
	 * 0: any */
	uint16_t slot;
};

/* A port's counters, in the order in which /sys names them. */
enum vb_umad_count {
	UMAD_COUNT_SYMBOL_ERROR,
	UMAD_COUNT_LINK_ERROR_RECOVERY,
	UMAD_COUNT_LINK_DOWNED,
	UMAD_COUNT_PORT_RCV_ERRORS,
	UMAD_COUNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS,
	UMAD_COUNT_PORT_RCV_SWITCH_RELAY_ERRORS,
	UMAD_COUNT_PORT_XMIT_DISCARDS,
	UMAD_COUNT_PORT_XMIT_CONSTRAINT_ERRORS,
	UMAD_COUNT_PORT_RCV_CONSTRAINT_ERRORS,
	UMAD_COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
	UMAD_COUNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	UMAD_COUNT_VL15_DROPPED,
	UMAD_COUNT_PORT_XMIT_WAIT,
	UMAD_COUNT_PORT_XMIT_DATA,
	UMAD_COUNT_PORT_RCV_DATA,
	UMAD_COUNT_PORT_XMIT_PACKETS,
	UMAD_COUNT_PORT_RCV_PACKETS,
	UMAD_COUNT_MULTICAST_XMIT_PACKETS,
	UMAD_COUNT_MULTICAST_RCV_PACKETS,
	VB_UMAD_COUNTS
};

struct vb_umad_info {
	struct vb_umad_head head;
	/* kind of the node, as in NodeInfo, and number of its ports */
	uint8_t kind, ports;
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id, revision;
	/* the node's NodeDescription, with a NUL at the end */
	char desc[VB_UMAD_NAME];
	/* The fields below describe the port, if the node has it
	 * (@has_port). */
	uint8_t has_port;
	uint8_t state, phys, lmc, sm_sl;
	uint16_t lid, sm_lid, pkeys;
	uint32_t rate; /* data rate in Gbit/s */
	/* PortInfo's codes of the active width, speed and extended speed */
	uint8_t width, speed, speed_ext;
	uint32_t cap_mask;
	uint64_t gid_prefix, port_guid;
	uint16_t pkey[VB_UMAD_PKEYS];
	uint8_t guids; /* number of valid entries of @guid_table */
	uint64_t guid_table[VB_UMAD_GUIDS];
	uint64_t count[VB_UMAD_COUNTS];
	/* name of the file that a subnet manager holds open while it runs;
	 * empty: there is none */
	char issm[VB_UMAD_PATH];
};

struct vb_umad_wish {
	struct vb_umad_head head;
	uint8_t class, class_version, rmpp_version;
	uint32_t oui;
	uint64_t methods[2];
};

struct vb_umad_agent {
	struct vb_umad_head head;
	uint32_t agent;
};

/* The message UMAD_MAD: this struct, whose @header is the public interface's
 * struct ib_user_mad, and then the MAD. If the MAD is longer than
 * VB_UMAD_INLINE, it is in a memfd that comes with the message; a program must
 * seal its memfd. */
#define VB_UMAD_HEADER 64
struct vb_umad_mad {
	struct vb_umad_head head;
	uint8_t header[VB_UMAD_HEADER];
};

#endif
