/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The echo that `verbena doctor PEER` asks of the peer's broker (docs/WIRE.md
 * 5.6): the payload of a UD SEND ONLY from a slot's queue pair to queue pair 1,
 * and back. Numbers are big-endian. A payload never has the 256 bytes of a MAD.
 */
#ifndef WIRE_ECHO_H
#define WIRE_ECHO_H

#include "base/defs.h"

#define VB_ECHO_BYTES 32 /* the least bytes of a payload */
/* the most bytes of a payload: the packet is then as long as the longest packet
 * of an RC request */
#define VB_ECHO_MOST (4096 + 8)

enum vb_echo_kind { ECHO_ASK = 1, ECHO_ANSWER = 2 };

struct vb_echo {
	uint8_t kind;
	/* a random number that the answer repeats, so that only a host that
	 * received the question can answer */
	uint64_t token;
	uint32_t number; /* number of the question, which the answer repeats */
	/* ECHO_ASK: bytes of payload that the answer shall have;
	 * ECHO_ANSWER: bytes of payload that the question had */
	uint32_t bytes;
	/* ECHO_ANSWER: MTU of the interface to which the question came; 0: not
	 * known */
	uint32_t mtu;
};

/* Write the payload, of @len bytes, VB_ECHO_BYTES at least: zeros follow. */
void vb_echo_put(uint8_t *bytes, size_t len, const struct vb_echo *e);
/* Read a payload. False: the bytes are no echo of this version, or ask for an
 * answer that is longer than the question. */
bool vb_echo_get(const uint8_t *bytes, size_t len, struct vb_echo *e);

#endif
