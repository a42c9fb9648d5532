/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The questions that programs put to the process of an IPoIB interface
 * (`verbena ipoib`): which adapter it uses, and which GID a neighbour has. They
 * go over a SOCK_SEQPACKET UNIX socket (engine/ipoib_path.h). Only programs of
 * the same user with the same XDG_RUNTIME_DIR find that socket: root's programs
 * do not find a user's process. Each question gets one answer of the same kind,
 * in order. A process that has no place for one more program that waits for a
 * neighbour closes the connection: the program asks again.
 */
#ifndef WIRE_IPOIB_H
#define WIRE_IPOIB_H

#include "wire/gid.h"

enum vb_ipoib_op {
	/* Asks which adapter the interface uses. The answer has guid, port,
	 * pkey, mtu, qpn, qkey and gid. */
	IPOIB_OWN = 1,
	/* Asks for the GID of the neighbour @ip. The answer has gid and qpn; or
	 * error -EHOSTUNREACH: nobody has answered for @ip. It comes after up
	 * to 3 s. */
	IPOIB_ASK,
};

#define VB_IPOIB_VERSION 2
#define VB_IPOIB_BYTES	 64

struct vb_ipoib {
	uint8_t op, version; /* the question, an enum vb_ipoib_op */
	uint8_t port;	     /* of an answer: the adapter's port */
	uint16_t pkey;	     /* of an answer: P_Key with its membership bit */
	int32_t error;	     /* of an answer: 0 or -errno */
	uint32_t mtu;	     /* of an answer: the interface's MTU, in bytes */
	uint32_t qpn;	     /* of an answer: number of the IPoIB queue pair */
	uint32_t qkey; /* of the answer to IPOIB_OWN: the interface's Q_Key */
	uint64_t guid; /* of an answer: the adapter's node GUID */
	/* of IPOIB_ASK: an IPv6 address, or an IPv4 address mapped into one */
	struct vb_gid ip;
	/* of an answer: GID of the interface's port, or of the neighbour */
	struct vb_gid gid;
};

/* Write a message. Returns its length. */
size_t vb_ipoib_put(uint8_t bytes[VB_IPOIB_BYTES], const struct vb_ipoib *m);
/* Parse a message of @len bytes. False: it has another length, an unknown
 * question or another version, or an error that is no -errno. */
bool vb_ipoib_get(const uint8_t *bytes, size_t len, struct vb_ipoib *m);

#endif
