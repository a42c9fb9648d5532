/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between programs that use verbs on an adapter of a fabric and the
 * fabric's process, over the same sockets as wire/umad_ipc.h. Frames do not go
 * by the socket, but by two rings in shared memory (base/shring.h): a record of
 * a ring is a frame, LRH to ICRC. The program chooses all of it but the VL, and
 * the fabric's process checks what it does not let programs choose.
 */
#ifndef WIRE_VERBS_IPC_H
#define WIRE_VERBS_IPC_H

#include "wire/umad_ipc.h"

#define VB_VERBS_RING  (1u << 20) /* bytes of the ring in each direction */
#define VB_VERBS_PKEYS 128
#define VB_VERBS_GUIDS 128
/* Bytes of a frame, LRH to ICRC, that a ring may hold. */
#define VB_VERBS_FRAME 4224

enum vb_verbs_kind {
	/* program: struct vb_umad_where. Fabric: struct vb_verbs_port, with
	 * descriptors; or a head with an error. From then on: */
	VERBS_ATTACH = 64,
	/* fabric: struct vb_verbs_port, whenever the port has changed */
	VERBS_PORT,
	/* program: struct vb_verbs_group, with a socket for the answer, a head.
	 * When the answer has come, the program receives a copy of frames to
	 * this multicast LID, until it has left as often as it has joined. */
	VERBS_JOIN,
	VERBS_LEAVE,
};

/* The descriptors of the answer. */
enum vb_verbs_fd {
	VERBS_FD_PROGRAM, /* the memory that the program writes */
	VERBS_FD_FABRIC,  /* the memory that the fabric's process writes */
	VERBS_FD_BELL,	  /* a socket: a byte wakes the other side */
	VERBS_FDS
};

/* What the port of an adapter has, as its fabric knows it. Codes are those of
 * PortInfo (IBA 14.2.5.6). */
struct vb_verbs_port {
	struct vb_umad_head head;
	/* The top bits of the numbers of this program's queue pairs (VB_SLOTS
	 * in wire/ipc.h). The same in all messages. */
	uint32_t slot;
	/* how often a manager has asked clients to register again */
	uint32_t reregisters;
	uint64_t node_guid, sys_guid;
	uint8_t state, phys, lmc, sm_sl;
	uint8_t mtu, mtu_cap; /* NeighborMTU, MTUCap */
	uint8_t vl_cap, init_type, subnet_timeout;
	uint8_t width; /* LinkWidthActive */
	/* LinkSpeedActive; with an extended speed that times 16 */
	uint8_t speed;
	uint8_t zero; /* the struct has no padding, which would have no value */
	uint16_t lid, sm_lid;
	uint16_t pkeys, guids; /* entries that follow */
	uint16_t pkey_violations, qkey_violations;
	uint32_t cap_mask;
	uint32_t vendor_id, device_id, revision;
	uint64_t gid_prefix;
	uint64_t guid[VB_VERBS_GUIDS]; /* 0: no such entry */
	uint16_t pkey[VB_VERBS_PKEYS];
};

struct vb_verbs_group {
	struct vb_umad_head head;
	uint16_t mlid;
};

#endif
