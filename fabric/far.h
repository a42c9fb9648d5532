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

#define VB_FAR_HELLO_NS (100 * VB_MSEC) /* time between two hellos */
#define VB_FAR_SILENCE	(2 * VB_SEC)
#define VB_FAR_MESSAGE	16384 /* length of the longest message in bytes */

struct vb_far;

struct vb_far_spec {
	struct vb_fab_net *net;
	/* the node of this process at which the link ends */
	struct vb_fab_node *node;
	uint8_t port;
	struct vb_far_id far; /* the end of the link in the other process */
	/* Most bytes of a message that has several frames, at most
	 * VB_FAR_MESSAGE; a longer frame is alone in its message. */
	size_t room;
	/* Send a message of @len bytes to the other process; it may be lost. */
	void (*send)(void *arg, const uint8_t *bytes, size_t len);
	/* Returns a random number that no other process can guess. */
	uint64_t (*random)(void *arg);
	void *arg;
};

/* The state of a link to another process, for people to read. */
enum vb_far_state {
	/* no message has come from the other end yet, or for VB_FAR_SILENCE */
	FAR_IS_SILENT,
	FAR_IS_UP, /* this end and the other end are in a session */
	/* the link is unplugged or disabled at the other end or at this one */
	FAR_IS_DOWN,
	/* the messages come from another end than the wanted one */
	FAR_IS_OTHER,
	FAR_IS_CREDITS, /* only one of the two ends has 24-bit credits */
	/* the other end speaks another version of the protocol */
	FAR_IS_VERSION,
};

struct vb_far_status {
	enum vb_far_state state;
	/* with FAR_IS_OTHER: the hello of the unwanted end */
	struct vb_far_hello hello;
	/* with FAR_IS_VERSION: the version that the other end speaks */
	unsigned version;
	/* number of data messages sent and taken, in all sessions of this
	 * end */
	uint64_t sent, got;
	/* number of messages dropped as repeated, or overtaken by later ones */
	uint64_t late;
	/* number of messages that did not come in order: lost, or overtaken */
	uint64_t lost;
	/* number of messages with a wrong nonce or malformed content */
	uint64_t forged;
};

/* Make the protocol's state for one link, which vb_fab_link_far() has made.
 * NULL: no memory. */
struct vb_far *vb_far_create(const struct vb_far_spec *spec, vb_time now);
void vb_far_destroy(struct vb_far *f);

/* Call this when the network has raised FAB_EV_FAR for the port. */
void vb_far_changed(struct vb_far *f, vb_time now);
/* Call this when the network calls on_far(): takes the frame @bytes. */
void vb_far_carry(struct vb_far *f, const uint8_t *bytes, size_t len);
/* Send what vb_far_carry() has gathered. The owner calls this before it
 * sleeps. */
void vb_far_flush(struct vb_far *f);
/* Handles a message that has come. Afterwards the owner runs the network. */
void vb_far_hear(struct vb_far *f, const uint8_t *bytes, size_t len,
		 vb_time now);
/* Returns the time at which the owner must call vb_far_run(). */
vb_time vb_far_next(const struct vb_far *f);
void vb_far_run(struct vb_far *f, vb_time now);

const struct vb_far_status *vb_far_status(const struct vb_far *f);

#endif
