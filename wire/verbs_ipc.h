/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between a fabric's process and programs that use verbs on an adapter
 * of the fabric, over the same sockets as wire/umad_ipc.h. Frames do not go
 * over the socket but through two rings in shared memory (base/shring.h): each
 * record of a ring is a frame, from LRH to ICRC. The program writes the whole
 * frame; the fabric's process replaces its VL, and refuses frames whose source
 * or P_Key is not the program's.
 */
#ifndef WIRE_VERBS_IPC_H
#define WIRE_VERBS_IPC_H

#include "wire/umad_ipc.h"

#define VB_VERBS_RING  (1u << 20) /* bytes of each of the two rings */
#define VB_VERBS_PKEYS 128
#define VB_VERBS_GUIDS 128
/* most bytes of a frame, from LRH to ICRC, in a ring */
#define VB_VERBS_FRAME 4224

enum vb_verbs_kind {
	/* The program sends a struct vb_umad_where to attach to a port. The
	 * fabric's process answers with a struct vb_verbs_port and the
	 * descriptors of enum vb_verbs_fd, or with a head that has an error,
	 * which is -EADDRINUSE if another program of the adapter has the slot.
	 * The kinds below are sent only after this one. */
	VERBS_ATTACH = 64,
	/* The fabric's process sends a struct vb_verbs_port when the port has
	 * changed. */
	VERBS_PORT,
	/* The program sends a struct vb_verbs_group, and with it a socket to
	 * which the fabric's process sends the answer, a head. After the answer
	 * to VERBS_JOIN the program receives a copy of each frame to this
	 * multicast LID, until it has sent VERBS_LEAVE as often as
	 * VERBS_JOIN. */
	VERBS_JOIN,
	VERBS_LEAVE,
};

/* The order of the descriptors in the answer to VERBS_ATTACH. */
enum vb_verbs_fd {
	VERBS_FD_PROGRAM, /* the memory that the program writes */
	VERBS_FD_FABRIC,  /* the memory that the fabric's process writes */
	VERBS_FD_BELL,	  /* a socket: a byte wakes the other side */
	VERBS_FDS
};

/* The state of an adapter's port, as the fabric's process tells it to programs.
 * Codes are those of PortInfo (IBA 14.2.5.6). */
struct vb_verbs_port {
	struct vb_umad_head head;
	/* The top bits of the numbers of this program's queue pairs (VB_SLOTS
	 * in wire/ipc.h). A program keeps its slot while it is attached. */
	uint32_t slot;
	/* how often a subnet manager has asked the port's clients to register
	 * again */
	uint32_t reregisters;
	uint64_t node_guid, sys_guid;
	uint8_t state, phys, lmc, sm_sl;
	uint8_t mtu, mtu_cap; /* codes of NeighborMTU and MTUCap */
	uint8_t vl_cap, init_type, subnet_timeout;
	uint8_t width; /* code of LinkWidthActive */
	/* code of LinkSpeedActive; if an extended speed is active, 16 times the
	 * code of LinkSpeedExtActive */
	uint8_t speed;
	/* takes the place of padding, whose value would be undefined: such
	 * structs are compared byte by byte */
	uint8_t zero;
	uint16_t lid, sm_lid;
	/* numbers of valid entries of @pkey and of @guid */
	uint16_t pkeys, guids;
	uint16_t pkey_violations, qkey_violations;
	uint32_t cap_mask;
	uint32_t vendor_id, device_id, revision;
	uint64_t gid_prefix;
	/* A random number of the adapter, which it keeps until its fabric ends:
	 * no adapter of another fabric has it. Never 0. */
	uint64_t place;
	/* GUIDs of the port; 0: the entry is empty */
	uint64_t guid[VB_VERBS_GUIDS];
	uint16_t pkey[VB_VERBS_PKEYS];
};

struct vb_verbs_group {
	struct vb_umad_head head;
	uint16_t mlid;
};

#endif
