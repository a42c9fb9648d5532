/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random program on both sides of a random wire, and the model that knows
 * every byte and every completion it must come to.
 */
#ifndef TESTS_SUPPORT_SCENARIO_H
#define TESTS_SUPPORT_SCENARIO_H

#include "tests/support/sim.h"

enum scenario_kind {
	SCENARIO_HONEST, /* whatever the wire does: all completes, all right */
	/* Queue pairs are taken to ERR or RESET at any moment: what completed
	 * is right, what did not is flushed, all of it once. */
	SCENARIO_CHAOS,
	SCENARIO_HOSTILE, /* packets lie: memory outside the regions is safe */
	/* A side dies: what the other one has begun ends, with these statuses:
	 * success, then one of silence, then flushed. */
	SCENARIO_DEATH,
};

/* What is played. */
struct scenario {
	enum scenario_kind kind;
	unsigned count; /* of seeds, unless the command line says how many */
	const struct sim_path *path; /* NULL: the wire */
	bool no_packets;	     /* all goes by the path */
	/* Draws what the path has to bear from the play's own generator, before
	 * anything is posted; or NULL. */
	void (*plan)(struct sim *s, struct sim_rand *rand);
};

/* Play it. False: it failed; the reason, the seed and the last packets are on
 * standard error. */
bool scenario_play(uint64_t seed, const struct scenario *what);

/* The main of a test: NAME [-n COUNT] [SEED]. */
int scenario_main(int argc, char **argv, const struct scenario *what);

#endif
