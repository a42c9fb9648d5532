/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs of a simulation as threads: decides which one runs, and what its
 * engine does in one turn. */
#include "tests/support/near_sim_priv.h"

#include <sched.h>

#include "near/session_priv.h"
#include "tests/support/must.h"

#define TURNS	 16 /* the most turns that one queue pair gets in a row */
#define ENDLESS	 400000
#define OWED_FOR (50 * VB_USEC)
/* Number of steps, of 10000, at which a program loses its processor. */
#define SWITCHES 2500

/* the program whose thread runs; NULL in the test's own thread */
static __thread struct near_end *me;

/*
 * Switching between the programs' threads. The test's thread resumes one of
 * them, which returns to the test's thread at some step.
 */

static void resume(struct near_end *e)
{
	sem_post(&e->go);
	while (sem_wait(&e->back) != 0)
		;
}

static void come_back(struct near_end *e)
{
	sem_post(&e->back);
	while (sem_wait(&e->go) != 0)
		;
}

void near_sim_step_done(struct near_end *e)
{
	struct near_net *net = e->net;

	net->steps++;
	near_sim_follow_plan(net);
	near_sim_may_scribble(net);
	if (me == e && !net->resting &&
	    (e->state != END_RUNS || sim_maybe(&net->rand, SWITCHES)))
		come_back(e);
}

/* Let the transport send for queue pair @qp. True: more is left to send. */
static bool turn_qp(struct near_end *e, struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	bool more = vb_transport_send(qp, e->net->sim->now, &e->batch);

	sim_transmit(e->net->sim, e->number, &e->batch);
	return more;
}

static void work_on(struct near_end *e, struct vb_qp *qp)
{
	bool more;

	vb_mutex_lock(&qp->drive);
	more = vb_transport_deadline(qp) <= e->net->sim->now ||
	       !vb_transport_can_wait(qp);
	for (unsigned i = 0; more && i < TURNS; i++) {
		more = turn_qp(e, qp);
		e->net->sim->now++;
	}
	if (more)
		e->due = e->net->sim->now;
	vb_mutex_unlock(&qp->drive);
}

void near_sim_notice_end(struct near_end *e)
{
	if (!e->knows || e->drop_at > e->net->sim->now)
		return;
	e->knows = false;
	vb_session_end(e->near, e->peer, e->net->sim->now);
	vb_peer_put(e->peer);
}

static void sleep_or_not(struct near_end *e)
{
	if (!e->sleeps)
		return;
	e->rung = false;
	e->asleep = vb_near_sleep(e->near);
	if (!e->asleep)
		e->wants = true;
}

static void be_awake(struct near_end *e)
{
	if (e->asleep)
		vb_near_awake(e->near);
	e->asleep = e->rung = e->wants = false;
	if (e->due <= e->net->sim->now)
		e->due = VB_NEVER;
}

/* A program drives its queue pairs itself when it posts, while the engine's
 * thread may still sleep. */
static void drive_posted(struct near_end *e)
{
	e->posted = false;
	for (unsigned i = 0; i < e->side->qp_count; i++) {
		near_sim_step_done(e);
		work_on(e, e->side->qps[i]);
	}
}

static void one_turn(struct near_end *e)
{
	struct sim *s = e->net->sim;

	if (!e->wakes) {
		drive_posted(e);
		return;
	}
	be_awake(e);
	near_sim_step_done(e);
	near_sim_notice_end(e);
	if (e->owed_at <= s->now) {
		e->owed_at = VB_NEVER;
		vb_near_wake_peers(e->near);
	}
	if (e->unhurried && sim_maybe(&e->net->rand, 5000))
		(void)vb_near_attend(e->near, s->now, true);
	else
		(void)vb_near_poll(e->near, s->now);
	drive_posted(e);
	if (vb_near_is_wanted(e->near))
		vb_near_stand_by(e->near, sim_maybe(&e->net->rand, 8000));
	near_sim_step_done(e);
	sleep_or_not(e);
}

static void take_step(void *arg, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct near_end *e = arg;

	if (turn_qp(e, qp))
		e->due = now + 1;
}

static void give_back_drive(void *arg, struct vb_qp *qp) VB_UNCHECKED
{
	vb_mutex_unlock(&qp->drive);
}

static void be_reminded(void *arg)
{
	struct near_end *e = arg;

	e->owed_at = VB_MIN(e->owed_at, e->net->sim->now + OWED_FOR);
}

void near_sim_set_engine(struct near_end *e, struct vb_near_config *c)
{
	c->step = take_step;
	c->soon = be_reminded;
	c->release = give_back_drive;
	c->arg = e;
}

static void *live(void *arg)
{
	struct near_end *e = arg;

	me = e;
	for (;;) {
		while (sem_wait(&e->go) != 0)
			;
		if (e->quits)
			return NULL;
		e->in_step = true;
		one_turn(e);
		e->in_step = false;
		sem_post(&e->back);
	}
}

/* Keep this thread, and the threads that it starts, on the processor that runs
 * it: one of them runs at a time, and a hand-over between two processors takes
 * four times as long. */
static void stay_on_one_processor(void)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

void near_sim_start_thread(struct near_end *e)
{
	stay_on_one_processor();
	MUST(sem_init(&e->go, 0, 0) == 0);
	MUST(sem_init(&e->back, 0, 0) == 0);
	MUST(pthread_create(&e->thread, NULL, live, e) == 0);
}

void near_sim_join_thread(struct near_end *e)
{
	e->quits = true;
	sem_post(&e->go);
	pthread_join(e->thread, NULL);
	sem_destroy(&e->go);
	sem_destroy(&e->back);
}

static bool is_runnable(const struct near_end *e)
{
	return e->state == END_RUNS ||
	       (e->state == END_STOPPED && e->until <= e->net->sim->now);
}

/* Returns the next deadline of the program. It is read without qp->drive,
 * because no program runs meanwhile. */
static vb_time VB_UNCHECKED next_of(const struct near_end *e)
{
	const struct sim_side *side = e->side;
	vb_time next = VB_MIN(VB_MIN(e->due, e->owed_at),
			      e->knows ? e->drop_at : VB_NEVER);

	if (e->state == END_DEAD)
		return VB_NEVER;
	if (e->state == END_STOPPED)
		return e->until;
	if (e->in_step)
		return e->net->sim->now;
	for (unsigned i = 0; i < side->qp_count; i++)
		next = VB_MIN(next, vb_transport_deadline(side->qps[i]));
	return next;
}

/* Returns whether the program, which polls, finds a part of a copy that its
 * peer offers to it. */
static bool finds_offer(const struct near_end *e)
{
	return e->knows && !e->net->shut &&
	       vb_offer_is_there(e->peer->offered);
}

static bool is_woken(struct near_end *e)
{
	if (e->wants || next_of(e) <= e->net->sim->now)
		return true;
	return e->asleep ? e->rung
			 : vb_near_has_something(e->near) || finds_offer(e);
}

/* Let program @e run to its next step: go on in a turn or begin one. */
static void run_on(struct near_end *e)
{
	e->state = END_RUNS;
	if (!e->in_step)
		e->wakes = is_woken(e);
	resume(e);
}

void near_sim_let_other_run(struct near_end *e)
{
	struct near_end *o = other(e);

	if (me == e)
		near_sim_step_done(e);
	else if (me == NULL && is_runnable(o))
		run_on(o);
}

static bool has_work(struct near_end *e)
{
	if (!is_runnable(e))
		return false;
	return e->in_step || e->posted || is_woken(e);
}

void near_sim_drive(struct sim *s)
{
	struct near_net *net = net_of(s);
	uint64_t most = net->steps + ENDLESS;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		net->end[i].posted = true;
		net->end[i].wants |= !net->end[i].asleep;
	}
	for (;;) {
		bool works[SIM_SIDES] = { has_work(&net->end[0]),
					  has_work(&net->end[1]) };
		unsigned i = sim_below(&net->rand, 2);

		if (!works[0] && !works[1])
			return;
		if (net->steps > most) {
			note_crime(net, "an endless loop");
			return;
		}
		net->steps++;
		near_sim_follow_plan(net);
		i = works[i] ? i : !i;
		if (!has_work(&net->end[i]))
			continue;
		run_on(&net->end[i]);
	}
}

vb_time near_sim_next(const struct sim *s)
{
	const struct near_net *net = net_of(s);
	vb_time next = VB_NEVER;

	for (unsigned i = 0; i < SIM_SIDES; i++)
		next = VB_MIN(next, next_of(&net->end[i]));
	return next;
}

void near_sim_rest(struct sim *s)
{
	struct near_net *net = net_of(s);

	net->resting = true;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		while (net->end[i].in_step)
			resume(&net->end[i]);
	net->plan.harm = HARM_NONE;
}
