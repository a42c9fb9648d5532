/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between programs and the broker, over SOCK_SEQPACKET UNIX
 * sockets in the abstract namespace. There is one broker in each network
 * namespace, as there is one UDP port 4791.
 */
#ifndef WIRE_IPC_H
#define WIRE_IPC_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/bytes.h"

/* Slot 0 belongs to the broker, slots 1 to VB_SLOTS - 1 to programs. The slot
 * is the top VB_SLOT_BITS of a QPN. */
#define VB_SLOT_BITS	9
#define VB_SLOTS	(1u << VB_SLOT_BITS)
#define VB_MAX_PROGRAMS 256
#define VB_QPN_BITS	(24 - VB_SLOT_BITS)

enum vb_ipc_kind {
	/* program to broker: asks for a slot, which is a range of QPNs */
	IPC_CLAIM = 1,
	/* broker to program: the slot, with descriptors (enum vb_ipc_fd) */
	IPC_GRANT,
	IPC_REFUSE, /* broker to program: error number and reason */
	/* Program to a new broker: the program has this slot already, and
	 * proves it by the slot's descriptors, which accompany the message. */
	IPC_REJOIN,
	IPC_WELCOME, /* broker to program: IPC_REJOIN is accepted */
	IPC_STATUS,  /* any process to broker: asks for a report */
	IPC_REPORT,  /* broker's answer to IPC_STATUS: its counters */
};

/* The descriptors that the broker sends with a slot. */
enum vb_ipc_fd {
	IPC_FD_SOCKET, /* the slot's socket of UDP port 4791 */
	/* a socket bound to the slot's name, which shows that it is taken */
	IPC_FD_NAME,
	/* The vault: a socket that keeps all slots' sockets open. The broker
	 * gives it only to programs of its own user and of root. */
	IPC_FD_VAULT,
	IPC_FDS
};

#define VB_IPC_VERSION 1
#define VB_IPC_TEXT    120
#define VB_IPC_BYTES   160

struct vb_ipc {
	uint8_t kind, version;
	uint16_t slot;
	int32_t error;	   /* of IPC_REFUSE: a positive errno */
	uint32_t programs; /* of IPC_REPORT: number of programs with a slot */
	uint32_t pid;
	/* of IPC_REFUSE: the reason; of IPC_REPORT: counters; ends with NUL */
	char text[VB_IPC_TEXT];
};

size_t vb_ipc_put(uint8_t bytes[VB_IPC_BYTES], const struct vb_ipc *m);
/* Parse a message of @len bytes. False: the message is too short, has an
 * unknown kind or version, a slot out of range, or a text without NUL.
 * Unprintable characters of the text become question marks, since the text
 * comes from another process and goes to a terminal. */
bool vb_ipc_get(const uint8_t *bytes, size_t len, struct vb_ipc *m);

/* Make the address of the abstract name @name, such as VB_IPC_BROKER. Returns
 * its length. */
#define VB_IPC_BROKER "verbena/broker"
socklen_t vb_ipc_address(struct sockaddr_un *a, const char *name);

/*
 * The process that holds a slot has a socket bound to the slot's name. The
 * broker grants the slots up to VB_MAX_PROGRAMS, each with a socket of port
 * 4791. A program without a RoCE device does not ask the broker: it takes a
 * free slot at or above VB_SLOT_ALONE, so that other programs of the host find
 * it.
 */
#define VB_SLOT_ALONE (VB_MAX_PROGRAMS + 1)
socklen_t vb_ipc_slot_address(struct sockaddr_un *a, unsigned slot);

#endif
