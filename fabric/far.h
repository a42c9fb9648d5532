/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between two processes that hold one end of a link each. It does
 * no I/O and reads no clock. Messages may be lost, repeated and disordered, and
 * may come from a forger; vb_fab_arrive() judges the frames in them.
 *
 * Each end has a nonce, which nobody else can guess, and chooses a new one
 * whenever its link goes down. A *session* is a pair of nonces. An end believes
 * a hello about its sender's nonce only if the hello repeats the end's own
 * present nonce: so the sender is the one who gets this end's messages. Data
 * carry the receiver's nonce, and a number: an end takes only what is newer
 * than all that it took before. So nothing of an earlier session, and nothing
 * twice or out of order, reaches the port; what is missing is lost, as on any
 * link, and link packets, which repeat, make up for credits.
 *
 * A link comes up when both ends have heard each other's hello with their own
 * nonce. It goes down when the other end is silent for VB_FAR_SILENCE, is
 * unplugged or disabled, or begins anew.
 */
#ifndef FABRIC_FAR_H
#define FABRIC_FAR_H

#include "fabric/net.h"
#include "wire/far.h"

#define VB_FAR_HELLO_NS (100 * VB_MSEC) /* between two hellos */
#define VB_FAR_SILENCE	(2 * VB_SEC)
#define VB_FAR_MESSAGE	16384 /* bytes of the longest message */

struct vb_far;

struct vb_far_spec {
	struct vb_fab_net *net;
	struct vb_fab_node *node; /* the near end */
	uint8_t port;
	struct vb_far_id far; /* the other end */
	/* Frames share a message up to so many bytes; a longer frame is alone
	 * in one. At most VB_FAR_MESSAGE. */
	size_t room;
	/* Send a message of @len bytes to the other process; it may be lost. */
	void (*send)(void *arg, const uint8_t *bytes, size_t len);
	/* A random number that nobody can guess. */
	uint64_t (*random)(void *arg);
	void *arg;
};

/* What a link's other end does, for people. */
enum vb_far_state {
	FAR_IS_SILENT,	/* nothing was heard yet, or for VB_FAR_SILENCE */
	FAR_IS_UP,	/* in a session */
	FAR_IS_DOWN,	/* unplugged or disabled there, or here */
	FAR_IS_OTHER,	/* it is another end than the one wanted */
	FAR_IS_CREDITS, /* only one of the ends has 24-bit credits */
	FAR_IS_VERSION, /* it speaks another version of the protocol */
};

struct vb_far_status {
	enum vb_far_state state;
	struct vb_far_hello hello; /* FAR_IS_OTHER: what it says */
	unsigned version;	   /* FAR_IS_VERSION */
	/* Messages of this end's sessions, and records in them. */
	uint64_t sent, got;
	uint64_t late;	 /* repeated, or overtaken by others; passed over */
	uint64_t lost;	 /* numbers that never came, or came late */
	uint64_t forged; /* messages with a wrong nonce, or malformed */
};

/* The protocol of one link, which vb_fab_link_far() has made. NULL: no memory.
 */
struct vb_far *vb_far_create(const struct vb_far_spec *spec, vb_time now);
void vb_far_destroy(struct vb_far *f);

/* The network raised FAB_EV_FAR for the port. */
void vb_far_changed(struct vb_far *f, vb_time now);
/* The network called on_far() for the port. */
void vb_far_carry(struct vb_far *f, const uint8_t *bytes, size_t len);
/* Send what vb_far_carry() has gathered. The owner calls this before it
 * sleeps. */
void vb_far_flush(struct vb_far *f);
/* A message has come. The owner runs the network after it. */
void vb_far_hear(struct vb_far *f, const uint8_t *bytes, size_t len,
		 vb_time now);
/* When the owner must call vb_far_run(). */
vb_time vb_far_next(const struct vb_far *f);
void vb_far_run(struct vb_far *f, vb_time now);

const struct vb_far_status *vb_far_status(const struct vb_far *f);

#endif
