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

/* the last byte is the protocol's version */
#define VB_UMAD_MAGIC  0x756d4103u
#define VB_UMAD_NAME   65
#define VB_UMAD_INLINE 32768 /* longer data are passed in a memfd */
#define VB_UMAD_MOST   (32u << 20)
#define VB_UMAD_TEXT   400
#define VB_UMAD_PKEYS  256
#define VB_UMAD_GUIDS  32
#define VB_UMAD_PATH   256
#define VB_UMAD_DONE   1 /* a result */

enum vb_umad_kind {
	/* asks for a place's node and port; the answer is a head and an info */
	UMAD_QUERY = 1,
	UMAD_ATTACH, /* asks for a place; the answer is a head */
	/* registers an agent; the answer is a head whose result is the agent's
	 * number */
	UMAD_REGISTER,
	UMAD_UNREGISTER, /* unregisters an agent; the answer is a head */
	UMAD_MAD,	 /* a MAD in either direction */
	/* a text; the answer is several heads with text, of which the last has
	 * none */
	UMAD_COMMAND,
	/* The command "capture" is answered by heads with bytes, for as long as
	 * the program likes; a further UMAD_COMMAND ends it. The last head has
	 * the result VB_UMAD_DONE and text for people. */
};

struct vb_umad_head {
	uint32_t magic;
	uint32_t kind;	/* kind of the message, an enum vb_umad_kind */
	int32_t result; /* result of a request: 0 or more, or -errno */
	/* of UMAD_MAD: bytes of the MAD; of UMAD_COMMAND: bytes of the text */
	uint32_t length;
};

/* The contents of UMAD_QUERY and UMAD_ATTACH: a node of the fabric, and one of
 * its ports. */
struct vb_umad_where {
	struct vb_umad_head head;
	char node[VB_UMAD_NAME];
	uint8_t port;
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
	/* type and number of ports of the node; @kind as in NodeInfo */
	uint8_t kind, ports;
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id, revision;
	char desc[VB_UMAD_NAME]; /* NodeDescription, and a NUL */
	/* The fields below describe the port, if the node has it
	 * (@has_port). */
	uint8_t has_port;
	uint8_t state, phys, lmc, sm_sl;
	uint16_t lid, sm_lid, pkeys;
	uint32_t rate;			 /* data rate in Gbit/s */
	uint8_t width, speed, speed_ext; /* active, as PortInfo has them */
	uint32_t cap_mask;
	uint64_t gid_prefix, port_guid;
	uint16_t pkey[VB_UMAD_PKEYS];
	uint8_t guids; /* entries of the GUID table */
	uint64_t guid_table[VB_UMAD_GUIDS];
	uint64_t count[VB_UMAD_COUNTS];
	char issm[VB_UMAD_PATH]; /* the file that a subnet manager holds open */
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

/* The contents of UMAD_MAD: behind this struct come the public interface's
 * struct ib_user_mad and then the data. If they are too long, they are in a
 * memfd that accompanies the message; a program must seal its memfd. */
#define VB_UMAD_HEADER 64
struct vb_umad_mad {
	struct vb_umad_head head;
	uint8_t header[VB_UMAD_HEADER];
};

#endif
