/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between two processes that hold one end of an InfiniBand link
 * each (docs/WIRE.md 7). Over UDP a message is a datagram. Numbers are
 * big-endian.
 */
#ifndef WIRE_FAR_H
#define WIRE_FAR_H

#include "base/defs.h"

/* the first 24 bits of a message; a byte with the version follows */
#define VB_FAR_MAGIC	   0x56664cu
#define VB_FAR_VERSION	   1
#define VB_FAR_HELLO_BYTES 48
/* length of the header of FAR_DATA in bytes; records follow */
#define VB_FAR_DATA_BYTES 24
/* bytes of the length field in front of each record */
#define VB_FAR_REC_BYTES 2

enum vb_far_kind { FAR_HELLO = 1, FAR_DATA = 2 };

/* The phase of the link protocol in which the sender of a hello is. */
enum vb_far_phase {
	FAR_DOWN,  /* the sender's end of the link is unplugged or disabled */
	FAR_TRAIN, /* the sender waits for the other process */
	FAR_UP,	   /* the sender is in a session with the receiver */
	/* the sender is in a session, and does not know the receiver's nonce */
	FAR_ASK,
};

struct vb_far_id {
	uint64_t guid; /* GUID of the node whose port is the end of the link */
	uint8_t port;
};

struct vb_far_hello {
	/* the receiver's nonce; 0: the sender does not know it */
	uint64_t to;
	uint64_t mine; /* the sender's nonce, which is not 0 */
	/* the sender's end of the link, and the end that it wants to talk to */
	struct vb_far_id from, want;
	uint8_t phase; /* state of the sender, an enum vb_far_phase */
	bool extended; /* the sender's link packets have credits of 24 bits */
	/* masks of link widths and speeds that the sender's port has enabled */
	uint8_t width, speed, speed_ext;
};

struct vb_far_data {
	/* The receiver's nonce. It shows that the sender has received a hello
	 * of the receiver: nothing else tells the nonce. */
	uint64_t to;
	uint64_t seq; /* number of the message in its session, from 1 */
};

enum vb_far_verdict {
	FAR_GOOD,
	/* the message is of another protocol, too short, or has a changed
	 * header */
	FAR_ALIEN,
	/* the message is of another version, which is stored in *@version */
	FAR_VERSION,
};

/* Decide which message the bytes are. *@kind is set only if FAR_GOOD, and then
 * the message has at least the bytes of its kind. */
enum vb_far_verdict vb_far_look(const uint8_t *bytes, size_t len,
				enum vb_far_kind *kind, unsigned *version);
/* Write the check of a header of @len bytes, VB_FAR_HELLO_BYTES or
 * VB_FAR_DATA_BYTES, whose other fields are complete. vb_far_hello_put() and
 * vb_far_data_put() call this. */
void vb_far_check_put(uint8_t *bytes, size_t len);
/* Reads a hello of VB_FAR_HELLO_BYTES. False: a value is out of range. */
VB_MUST_CHECK bool vb_far_hello_get(const uint8_t *bytes,
				    struct vb_far_hello *h);
void vb_far_hello_put(uint8_t *bytes, const struct vb_far_hello *h);
/* Reads the header of a data message, VB_FAR_DATA_BYTES long. */
void vb_far_data_get(const uint8_t *bytes, struct vb_far_data *d);
void vb_far_data_put(uint8_t *bytes, const struct vb_far_data *d);

#endif
