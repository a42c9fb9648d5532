/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two switches with an adapter each, as if in two processes: the link between
 * them (port 3 of each) is a pair of protocols (fabric/far.h), and a carrier
 * that delays, loses, repeats, disorders and changes messages, by a seed.
 */
#ifndef TESTS_SUPPORT_FAR_H
#define TESTS_SUPPORT_FAR_H

#include "fabric/far.h"
#include "tests/support/fabric.h"

struct letter {
	vb_time at;
	unsigned to; /* side */
	size_t len;
	uint8_t *bytes;
};

struct side {
	struct far_world *w;
	struct vb_fab_node *sw, *ca;
	struct vb_far *far; /* NULL: the process does not run */
	uint64_t sent;	    /* messages */
};

struct far_world {
	struct fabt t;
	struct side side[2];
	struct letter *letter;
	size_t letters, room;
	/* the carrier */
	vb_time delay, jitter;	     /* one way; jitter disorders */
	uint32_t lose, twice, wrong; /* of 2^32 */
	bool cut;		     /* it carries nothing */
	uint8_t last[64];	     /* a message that passed, for forgers */
	size_t last_len;
};

void farw_init(struct far_world *w, uint64_t seed,
	       const struct vb_fab_link_spec *spec, uint64_t edge_rate);
void farw_fini(struct far_world *w);
/* Run the protocol of a side: a process that starts. */
void farw_start(struct far_world *w, unsigned side);
/* kill -9: its protocol forgets everything, and its port is down. */
void farw_kill(struct far_world *w, unsigned side);
void farw_run(struct far_world *w, vb_time span);
/* Take the ports of the link, and all others, from Init to Active. */
void farw_activate(struct far_world *w);
bool farw_is_up(const struct far_world *w); /* in Init or above at both ends */
/* Give a message to a side, as from the other end's address. */
void farw_forge(struct far_world *w, unsigned to, const uint8_t *bytes,
		size_t len);

#endif
