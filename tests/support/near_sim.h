/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of a simulation (sim.h) as two programs of one host: they share
 * a lane and read each other's registries, and copies are memcpy(). Each
 * program is a thread, and one of them runs at a time. It may lose the
 * processor wherever near/ asks the kernel for something (near/world.h),
 * between the pieces of a copy, and between its steps. Which one runs next, and
 * how often one is interrupted, follows from the seed.
 */
#ifndef TESTS_SUPPORT_NEAR_SIM_H
#define TESTS_SUPPORT_NEAR_SIM_H

#include "near/near_priv.h"
#include "tests/support/sim.h"

/* What happens to one side when it has come to its step @at. */
enum near_harm {
	HARM_NONE,
	/* It is stopped, as by SIGSTOP: in no copy, because a thread stops on
	 * its way out of the kernel. */
	HARM_STOP,
	/* It is stopped wherever it is, as by a freezer. */
	HARM_FREEZE,
	HARM_DIE, /* as by SIGKILL */
	/* From then on it writes anything anywhere into what it shares. */
	HARM_SCRIBBLE,
	/* The kernel refuses its copies from then on. */
	HARM_DENY,
};

struct near_plan {
	enum near_harm harm;
	unsigned victim;
	uint64_t at;	  /* counts the steps of both sides */
	vb_time stop_for; /* how long it is stopped; VB_NEVER: to the end */
};

/* The path that sim_open_as() takes. */
extern const struct sim_path near_sim_path;

/* Call it before anything is driven. */
void near_sim_plan(struct sim *s, const struct near_plan *plan);
/* Has the plan's moment come? */
bool near_sim_is_harmed(const struct sim *s);
/* Is the side stopped or dead? Its objects must not be touched then, because it
 * may hold their locks. */
bool near_sim_is_away(const struct sim *s, unsigned side);
/* Stop the side where it stands, and let it go on. */
void near_sim_stop(struct sim *s, unsigned side);
void near_sim_go_on(struct sim *s, unsigned side);
/* Let the side do @steps steps, and stop it then. */
void near_sim_step(struct sim *s, unsigned side, uint64_t steps);
/* The side stands by for streams of small WRITEs, or does not. */
void near_sim_stand_by(struct sim *s, unsigned side, bool yes);
/* All steps of both sides so far. */
uint64_t near_sim_steps(const struct sim *s);
/* What has been done that must not be, or NULL: copies to a dead program, to
 * memory whose key is gone, and endless loops. */
const char *near_sim_crime(const struct sim *s);
struct vb_near *near_sim_near(const struct sim *s, unsigned side);
/* The program that the side knows as its peer. */
struct vb_peer *near_sim_peer(const struct sim *s, unsigned side);
/* Was the side told to end its session with the other? */
bool near_sim_is_expelled(const struct sim *s, unsigned side);

#endif
