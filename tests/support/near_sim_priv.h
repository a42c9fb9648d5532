/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of near_sim share: the two programs, and what there is between
 * them. near_sim.c has their beginning and end and what tests call,
 * near_sim_run.c says which program runs and what one turn of it is,
 * near_sim_world.c is what it asks of its kernel, near_sim_qp.c its keys and
 * queue pairs, near_sim_harm.c what is done to it. */
#ifndef TESTS_SUPPORT_NEAR_SIM_PRIV_H
#define TESTS_SUPPORT_NEAR_SIM_PRIV_H

#include "tests/support/near_sim.h"

#include <pthread.h>
#include <semaphore.h>

#include "near/world.h"

#define GRANTS 64
#define A_PID  1000

enum end_state { END_RUNS, END_STOPPED, END_DEAD };

/* Memory that one side has registered. */
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
	struct vb_peer *peer; /* a reference */
	bool knows;	      /* the peer is in its table */
	struct granted grants[GRANTS];
	unsigned grant_count;
	struct vb_txq batch;
	/* The program: a thread that runs between go and back. */
	pthread_t thread;
	sem_t go, back;
	bool quits, in_step, in_copy;
	enum end_state state;
	vb_time until;	 /* it is stopped */
	vb_time drop_at; /* it notices that the session is over */
	vb_time due;	 /* there is more to do */
	vb_time owed_at; /* it wakes those that it left asleep */
	bool wants, asleep, rung, expelled;
	/* The program has posted; its engine's thread wakes in this turn. */
	bool posted, wakes;
	/* Drawn: it sleeps when there is nothing to do; it owes answers. */
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
	bool shut; /* the session */
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

/* near_sim_harm.c */

/* Both kernels' ends of the session say that it is over. */
void near_sim_shut(struct near_net *net);
/* Stop the program where it stands; VB_NEVER: to the end. */
void near_sim_halt(struct near_end *e, vb_time for_so_long);
/* Carry out the plan when its moment has come. */
void near_sim_follow_plan(struct near_net *net);
/* The victim of HARM_SCRIBBLE may write something. */
void near_sim_may_scribble(struct near_net *net);

/* near_sim_run.c */

/* A step of @e is over: it may lose its processor here. */
void near_sim_step_done(struct near_end *e);
/* @e waits for the other program. The test's thread, which acts for @e then,
 * lets the other one run. */
void near_sim_let_other_run(struct near_end *e);
/* The program learns that its session is over, if that is due. */
void near_sim_notice_end(struct near_end *e);
/* What near/ calls the engine for. */
void near_sim_set_engine(struct near_end *e, struct vb_near_config *c);
/* The program's thread. After the second call there is none. */
void near_sim_start_thread(struct near_end *e);
void near_sim_join_thread(struct near_end *e);
/* Of near_sim_path (struct sim_path). */
void near_sim_drive(struct sim *s);
vb_time near_sim_next(const struct sim *s);
void near_sim_rest(struct sim *s);

/* near_sim_world.c */
void near_sim_set_world(struct near_end *e);

/* near_sim_qp.c */
extern const struct vb_key_ops near_sim_keys;
extern const struct vb_transport near_sim_transport;

#endif
