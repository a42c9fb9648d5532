/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of a simulation (sim.h) as two programs of one host: they share
 * a lane and read each other's registries, and copies are memcpy(). Each
 * program is a thread, and only one of them runs at a time. It may lose the
 * processor wherever near/ calls the kernel (near/world.h), between the pieces
 * of a copy, and between its steps. The seed decides which program runs next,
 * and how often it is interrupted.
 */
#ifndef TESTS_SUPPORT_NEAR_SIM_H
#define TESTS_SUPPORT_NEAR_SIM_H

#include "near/near_priv.h"
#include "tests/support/sim.h"

/* The harm that one side suffers when it reaches its step @at. */
enum near_harm {
	HARM_NONE,
	/* The side is stopped, as by SIGSTOP: not within a copy, because a
	 * thread stops on its way out of the kernel. */
	HARM_STOP,
	/* The side is stopped wherever it is, as by a freezer. */
	HARM_FREEZE,
	/* As HARM_FREEZE; besides, the side has ended its session. */
	HARM_LEAVE,
	HARM_DIE, /* the side is killed, as by SIGKILL */
	/* After this harm the side writes arbitrary bytes into the memory that
	 * it shares. */
	HARM_SCRIBBLE,
	/* After this harm the kernel refuses the side's copies. */
	HARM_DENY,
};

struct near_plan {
	enum near_harm harm;
	unsigned victim;
	uint64_t at; /* the step of the harm; the steps of both sides count */
	/* how long the side is stopped; VB_NEVER: to the end */
	vb_time stop_for;
};

/* The shared-memory path, an argument of sim_open_as(). */
extern const struct sim_path near_sim_path;

/* Set the plan of a simulation, before anything is driven. */
void near_sim_plan(struct sim *s, const struct near_plan *plan);
/* Has the plan's harm been done? */
bool near_sim_is_harmed(const struct sim *s);
/* Is the side stopped or dead? Then its objects must not be used, because it
 * may hold their locks. */
bool near_sim_is_away(const struct sim *s, unsigned side);
/* Stop the side where it is, and let it continue. */
void near_sim_stop(struct sim *s, unsigned side);
void near_sim_go_on(struct sim *s, unsigned side);
/* Let the side do @steps steps, and stop it then. */
void near_sim_step(struct sim *s, unsigned side, uint64_t steps);
/* Let the side's engine thread stand by for streams of small WRITEs (@yes), or
 * let it stop that. */
void near_sim_stand_by(struct sim *s, unsigned side, bool yes);
/* Returns the number of steps of both sides so far. */
uint64_t near_sim_steps(const struct sim *s);
/* Returns a description of something forbidden that a program has done, or
 * NULL. Forbidden are copies to a dead program, copies to memory whose key is
 * invalid, and endless loops. */
const char *near_sim_crime(const struct sim *s);
struct vb_near *near_sim_near(const struct sim *s, unsigned side);
/* Returns the peer by which the program of this side knows the other
 * program. */
struct vb_peer *near_sim_peer(const struct sim *s, unsigned side);
/* Does the side stand inside a copy? */
bool near_sim_is_in_copy(const struct sim *s, unsigned side);
/* Was side @side told to end its session with the other side? */
bool near_sim_is_expelled(const struct sim *s, unsigned side);

#endif
