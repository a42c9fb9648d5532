/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two switches with an adapter each, as if in two processes. At each end of the
 * link between them (port 3) runs the protocol of fabric/far.h. A carrier
 * delays, loses, repeats, reorders and changes the messages, as a seed decides.
 */
#ifndef TESTS_SUPPORT_FAR_H
#define TESTS_SUPPORT_FAR_H

#include "fabric/far.h"
#include "tests/support/fabric.h"

struct far_message {
	vb_time at;
	unsigned to; /* the side that gets the message */
	size_t len;
	uint8_t *bytes;
};

struct side {
	struct far_world *w;
	struct vb_fab_node *sw, *ca;
	/* the side's end of the link; NULL: the process does not run */
	struct vb_far *far;
	/* number of messages that the side sent over the link */
	uint64_t sent;
};

struct far_world {
	struct fabt t;
	struct side side[2];
	struct far_message *message;
	size_t messages, room;
	/* The carrier of messages between the two processes: */
	/* delay in one direction; jitter changes the order of messages */
	vb_time delay, jitter;
	/* chances in 2^32 for each message: lost, sent twice, changed */
	uint32_t lose, twice, wrong;
	bool cut; /* true: the carrier delivers no message */
	/* a message that was delivered, from which tests forge others */
	uint8_t last[64];
	size_t last_len;
};

void farw_init(struct far_world *w, uint64_t seed,
	       const struct vb_fab_link_spec *spec, uint64_t edge_rate);
void farw_fini(struct far_world *w);
/* Start a side's process: it begins the protocol of the link. */
void farw_start(struct far_world *w, unsigned side);
/* Kill a side's process, as kill -9 does: its protocol forgets everything, and
 * its port goes down. */
void farw_kill(struct far_world *w, unsigned side);
void farw_run(struct far_world *w, vb_time span);
/* Take the ports of the link, and all others, from Init to Active. */
void farw_activate(struct far_world *w);
/* Is the link in Init, Armed or Active at both ends? */
bool farw_is_up(const struct far_world *w);
/* Give side @to a message as if the other side had sent it. */
void farw_forge(struct far_world *w, unsigned to, const uint8_t *bytes,
		size_t len);

#endif
