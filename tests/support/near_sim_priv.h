/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of near_sim: the two programs, and what connects them.
 * near_sim.c creates and destroys the programs and has the functions that tests
 * call. near_sim_run.c decides which program runs, and does one turn.
 * near_sim_world.c stands for a program's kernel, near_sim_qp.c has its keys
 * and queue pairs, and near_sim_harm.c harms it. */
#ifndef TESTS_SUPPORT_NEAR_SIM_PRIV_H
#define TESTS_SUPPORT_NEAR_SIM_PRIV_H

#include "tests/support/near_sim.h"

#include <pthread.h>
#include <semaphore.h>

#include "near/world.h"

#define GRANTS 64
#define A_PID  1000

enum end_state { END_RUNS, END_STOPPED, END_DEAD };

/* A memory region that a program has registered: the key and its range. */
struct granted {
	uint32_t key;
	uint64_t base, length;
	bool live;
};

struct near_net;
struct near_end {
	struct near_net *net;
	struct sim_side *side;
	unsigned number;
	struct vb_near_world world;
	struct vb_near *near;
	struct vb_peer *peer; /* the other program, with a reference */
	bool knows;	      /* this program's table of peers has the other
			       * program */
	struct granted grants[GRANTS];
	unsigned grant_count;
	struct vb_txq batch;
	/* The program's thread runs after a post of @go, until it posts
	 * @back. */
	pthread_t thread;
	sem_t go, back;
	bool quits, in_step, in_copy;
	enum end_state state;
	vb_time until; /* virtual time until which the program is stopped */
	/* virtual time at which the program notices that the session ended */
	vb_time drop_at;
	vb_time due; /* virtual time at which the program has more work */
	/* virtual time at which the program wakes peers that it left asleep */
	vb_time owed_at;
	bool wants, asleep, rung, expelled;
	/* @posted: the program has posted requests; @wakes: its engine's thread
	 * wakes in this turn. */
	bool posted, wakes;
	/* Drawn at random. @sleeps: the program sleeps when it has nothing to
	 * do. @unhurried: it answers requests without waking the peer. */
	bool sleeps, unhurried;
};

struct near_net {
	struct sim *sim;
	struct sim_rand rand;
	struct near_end end[SIM_SIDES];
	struct near_plan plan;
	bool harmed, resting;
	vb_time harmed_at;
	uint64_t steps;
	bool shut; /* the session between the two programs is shut down */
	uint64_t copies, bytes;
	const char *crime;
};

static inline struct near_net *net_of(const struct sim *s)
{
	return s->way;
}

static inline struct near_end *other(const struct near_end *e)
{
	return &e->net->end[!e->number];
}

static inline struct near_end *end_of(const struct vb_adapter *a)
{
	const struct sim_side *side =
		VB_CONTAINER_OF(a, const struct sim_side, adapter);

	return &net_of(side->sim)->end[side->number];
}

static inline void note_crime(struct near_net *net, const char *what)
{
	if (!net->crime && !net->resting)
		net->crime = what;
}

static inline _Atomic uint32_t *alive_word(const struct near_end *e)
{
	return (_Atomic uint32_t *)&e->near->registry->alive;
}

/* Functions of near_sim_harm.c. */

/* Shut the session between the two programs down, as the kernel would at both
 * ends. */
void near_sim_shut(struct near_net *net);
/* Stop program @e where it is for a while; VB_NEVER: for ever. */
void near_sim_halt(struct near_end *e, vb_time for_so_long);
/* Do the planned harm of the simulation if its time has come. */
void near_sim_follow_plan(struct near_net *net);
/* The victim of HARM_SCRIBBLE may write arbitrary bytes. */
void near_sim_may_scribble(struct near_net *net);

/* Functions of near_sim_run.c. */

/* Program @e has finished a step: it may lose its processor here. */
void near_sim_step_done(struct near_end *e);
/* Program @e waits for the other program. If the test's own thread runs for @e
 * at that time, it lets the other program run. */
void near_sim_let_other_run(struct near_end *e);
/* Tell program @e that its session ended, if the time to notice that has
 * come. */
void near_sim_notice_end(struct near_end *e);
/* Set the functions of @c that near/ calls in the engine. */
void near_sim_set_engine(struct near_end *e, struct vb_near_config *c);
/* Start the program's thread, and end it. */
void near_sim_start_thread(struct near_end *e);
void near_sim_join_thread(struct near_end *e);
/* A function for near_sim_path (struct sim_path). */
void near_sim_drive(struct sim *s);
vb_time near_sim_next(const struct sim *s);
void near_sim_rest(struct sim *s);

/* A function of near_sim_world.c. */
void near_sim_set_world(struct near_end *e);

/* Variables of near_sim_qp.c. */
extern const struct vb_key_ops near_sim_keys;
extern const struct vb_transport near_sim_transport;

#endif
