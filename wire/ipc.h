/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs and the broker say to each other, over SOCK_SEQPACKET UNIX
 * sockets in the abstract namespace: one broker a network namespace, as there
 * is one UDP port 4791.
 */
#ifndef WIRE_IPC_H
#define WIRE_IPC_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/bytes.h"

/* Slot 0 is the broker's; programs have 1..VB_SLOTS-1. A slot is the top
 * VB_SLOT_BITS of a QPN. */
#define VB_SLOT_BITS	9
#define VB_SLOTS	(1u << VB_SLOT_BITS)
#define VB_MAX_PROGRAMS 256
#define VB_QPN_BITS	(24 - VB_SLOT_BITS)

enum vb_ipc_kind {
	IPC_CLAIM = 1, /* program: give me a slot */
	IPC_GRANT,     /* broker: slot; enum vb_ipc_fd */
	IPC_REFUSE,    /* broker: error number and why */
	IPC_REJOIN,    /* program, to a new broker: I hold slot; the
			* descriptors that came with it */
	IPC_WELCOME,   /* broker: rejoined */
	IPC_STATUS,    /* anybody: how are you */
	IPC_REPORT,    /* broker: counts */
};

/* What a program has with its slot. */
enum vb_ipc_fd {
	IPC_FD_SOCKET, /* of port 4791 */
	IPC_FD_NAME,   /* bound to the slot's name */
	IPC_FD_VAULT,  /* for who is trusted with it */
	IPC_FDS
};

#define VB_IPC_VERSION 1
#define VB_IPC_TEXT    120
#define VB_IPC_BYTES   160

struct vb_ipc {
	uint8_t kind, version;
	uint16_t slot;
	int32_t error;	   /* IPC_REFUSE: positive errno */
	uint32_t programs; /* IPC_REPORT */
	uint32_t pid;
	char text[VB_IPC_TEXT]; /* NUL-terminated */
};

size_t vb_ipc_put(uint8_t bytes[VB_IPC_BYTES], const struct vb_ipc *m);
/* False: too short, unknown kind or version, slot out of range, text without
 * end. What cannot be printed in the text is a question mark: it comes from
 * another process, and goes to a terminal. */
bool vb_ipc_get(const uint8_t *bytes, size_t len, struct vb_ipc *m);

/* The abstract name @name, like VB_IPC_BROKER: its address and length. */
#define VB_IPC_BROKER "verbena/broker"
socklen_t vb_ipc_address(struct sockaddr_un *a, const char *name);

/*
 * Who holds a slot has its name bound. The broker gives slots up to
 * VB_MAX_PROGRAMS, with a socket of port 4791; those behind, programs that have
 * iWARP devices only take themselves, to be found by others of their host.
 */
#define VB_SLOT_ALONE (VB_MAX_PROGRAMS + 1)
socklen_t vb_ipc_slot_address(struct sockaddr_un *a, unsigned slot);

#endif
