/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random work requests on both sides of a random wire, and a model that knows
 * every byte and every completion that they must produce.
 */
#ifndef TESTS_SUPPORT_SCENARIO_H
#define TESTS_SUPPORT_SCENARIO_H

#include "tests/support/sim.h"

enum scenario_kind {
	/* All requests must complete with success, whatever the wire loses. */
	SCENARIO_HONEST,
	/* Queue pairs are taken to ERR or RESET at any time: completed requests
	 * are right, the others are flushed, and all are reported once. */
	SCENARIO_CHAOS,
	/* Forged packets must not change memory outside of regions. */
	SCENARIO_HOSTILE,
	/* A side dies. Each request that the other side has begun ends with
	 * success, with a status that says that the peer is silent, or flushed,
	 * in this order. */
	SCENARIO_DEATH,
};

/* One randomly drawn test: its kind, and the path between the two sides. */
struct scenario {
	enum scenario_kind kind;
	/* number of seeds to play, unless the command line says another */
	unsigned count;
	const struct sim_path *path;
	/* true: all requests go by @path, and none as packets */
	bool no_packets;
	/* Draws the events of the path (such as harms) from the play's own
	 * random numbers, before any request is posted; or NULL. */
	void (*plan)(struct sim *s, struct sim_rand *rand);
};

/* Play one scenario. Returns false if it failed; then the reason, the seed and
 * the last packets are on standard error. */
bool scenario_play(uint64_t seed, const struct scenario *what);

/* The main function of a test: NAME [-n COUNT] [SEED]. */
int scenario_main(int argc, char **argv, const struct scenario *what);

#endif
