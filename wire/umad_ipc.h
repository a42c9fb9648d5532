/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between programs (libibumad.so.3) and the process of a fabric, over
 * a SOCK_SEQPACKET socket within one machine, so in that machine's byte order.
 *
 * A connection begins with one message of the program and its answer. After
 * UMAD_QUERY it ends; after UMAD_COMMAND the program may begin again. After
 * UMAD_ATTACH it is a port: it carries MADs both ways, each a message, so that
 * whoever polls it learns that one has come. UMAD_REGISTER and UMAD_UNREGISTER
 * bring along a socket for their answer, which so does not wait behind MADs.
 */
#ifndef WIRE_UMAD_IPC_H
#define WIRE_UMAD_IPC_H

#include "base/defs.h"

#define VB_UMAD_MAGIC  0x756d4101u /* the last byte is the version */
#define VB_UMAD_NAME   65
#define VB_UMAD_INLINE 32768 /* longer data come in a memfd */
#define VB_UMAD_MOST   (32u << 20)
#define VB_UMAD_TEXT   400
#define VB_UMAD_PKEYS  256
#define VB_UMAD_PATH   256
#define VB_UMAD_DONE   1 /* a result */

enum vb_umad_kind {
	UMAD_QUERY = 1,	 /* where; answer: head, info */
	UMAD_ATTACH,	 /* where; answer: head */
	UMAD_REGISTER,	 /* wish; answer: head, its result the agent */
	UMAD_UNREGISTER, /* agent; answer: head */
	UMAD_MAD,	 /* mad */
	UMAD_COMMAND,	 /* text; answer: heads with text; the last has none */
	/* The command "capture" is answered by heads with bytes, for as long as
	 * the program likes; a further UMAD_COMMAND ends it. The last head has
	 * the result VB_UMAD_DONE and text for people. */
};

struct vb_umad_head {
	uint32_t magic;
	uint32_t kind;	 /* enum vb_umad_kind */
	int32_t result;	 /* 0 or more, or -errno */
	uint32_t length; /* UMAD_MAD: bytes of the MAD; UMAD_COMMAND: of text */
};

/* UMAD_QUERY, UMAD_ATTACH: a node of the fabric, and one of its ports. */
struct vb_umad_where {
	struct vb_umad_head head;
	char node[VB_UMAD_NAME];
	uint8_t port;
};

struct vb_umad_info {
	struct vb_umad_head head;
	uint8_t kind, ports; /* of the node: NodeInfo's type */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id, revision;
	/* of the port, if the node has it (@has_port) */
	uint8_t has_port;
	uint8_t state, phys, lmc, sm_sl;
	uint16_t lid, sm_lid, pkeys;
	uint32_t rate; /* Gbit/s */
	uint32_t cap_mask;
	uint64_t gid_prefix, port_guid;
	uint16_t pkey[VB_UMAD_PKEYS];
	char issm[VB_UMAD_PATH]; /* open it to be a subnet manager */
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

/* UMAD_MAD: the public interface's struct ib_user_mad follows, then the data,
 * unless they are too long: then a memfd comes along, which a program must have
 * sealed. */
#define VB_UMAD_HEADER 64
struct vb_umad_mad {
	struct vb_umad_head head;
	uint8_t header[VB_UMAD_HEADER];
};

#endif
