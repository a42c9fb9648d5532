/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between two processes that hold one end of an InfiniBand link
 * each (docs/WIRE.md, "Links of a fabric between processes"). Over UDP a
 * message is a datagram. Numbers are big-endian.
 */
#ifndef WIRE_FAR_H
#define WIRE_FAR_H

#include "base/defs.h"

#define VB_FAR_MAGIC	   0x56664cu /* 24 bits; a byte with the version follows */
#define VB_FAR_VERSION	   1
#define VB_FAR_HELLO_BYTES 48
#define VB_FAR_DATA_BYTES  24 /* of the header; records follow */
#define VB_FAR_REC_BYTES   2  /* a record's length, before its bytes */

enum vb_far_kind { FAR_HELLO = 1, FAR_DATA = 2 };

/* What the sender of a hello does. */
enum vb_far_phase {
	FAR_DOWN,  /* its end is unplugged or disabled */
	FAR_TRAIN, /* it waits for the other process */
	FAR_UP,	   /* it is in a session with the receiver */
	FAR_ASK,   /* it is in a session, and the receiver is not known there */
};

struct vb_far_id {
	uint64_t guid; /* of the node */
	uint8_t port;
};

struct vb_far_hello {
	uint64_t to;   /* the receiver's nonce, as the sender knows; 0: not */
	uint64_t mine; /* the sender's nonce; not 0 */
	struct vb_far_id from, want; /* the sender's end; the one it wants */
	uint8_t phase;		     /* enum vb_far_phase */
	bool extended;		     /* its link packets have 24 bits */
	/* of its port: supported and enabled */
	uint8_t width, speed, speed_ext;
};

struct vb_far_data {
	uint64_t to;  /* the receiver's nonce */
	uint64_t seq; /* from 1, in each session */
};

enum vb_far_verdict {
	FAR_GOOD,
	FAR_ALIEN,   /* no message of this protocol, too short, or a changed
			header */
	FAR_VERSION, /* of another version, which *@version is */
};

/* Which message is this? *@kind: only if FAR_GOOD, and then the message has at
 * least the bytes of its kind. */
enum vb_far_verdict vb_far_look(const uint8_t *bytes, size_t len,
				enum vb_far_kind *kind, unsigned *version);
/* Write the check of a header of @len bytes, VB_FAR_HELLO_BYTES or
 * VB_FAR_DATA_BYTES, whose other fields are complete. vb_far_hello_put() and
 * vb_far_data_put() call this. */
void vb_far_check_put(uint8_t *bytes, size_t len);
/* @bytes: VB_FAR_HELLO_BYTES. False: a value is out of range. */
VB_MUST_CHECK bool vb_far_hello_get(const uint8_t *bytes,
				    struct vb_far_hello *h);
void vb_far_hello_put(uint8_t *bytes, const struct vb_far_hello *h);
/* @bytes: VB_FAR_DATA_BYTES. */
void vb_far_data_get(const uint8_t *bytes, struct vb_far_data *d);
void vb_far_data_put(uint8_t *bytes, const struct vb_far_data *d);

#endif
