/* SPDX-License-Identifier: BSD-2-Clause */
/* Two programs of one host, in one process and in virtual time. */
#include "tests/support/near_sim.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mr.h"
#include "ib/ib.h"
#include "near/session_priv.h"
#include "near/shm.h"
#include "near/world.h"
#include "tests/support/must.h"

#define GRANTS	 64
#define PIECE	 8192 /* bytes of a copy between two steps, at most */
#define TURNS	 16   /* of one queue pair in a row */
#define ENDLESS	 400000
#define READ_NS	 1000	 /* reading the clock takes half of it, on average */
#define NOTICED	 VB_MSEC /* the end of a session, at the latest */
#define OWED_FOR (50 * VB_USEC)
#define A_PID	 1000
#define SWITCHES 2500 /* of 10000 steps, how many lose the processor */

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

/* The program that this thread is; NULL: the test. */
static __thread struct near_end *me;

static struct near_net *net_of(const struct sim *s)
{
	return s->way;
}

static struct near_end *other(const struct near_end *e)
{
	return &e->net->end[!e->number];
}

static struct near_end *end_of(const struct vb_adapter *a)
{
	const struct sim_side *side =
		VB_CONTAINER_OF(a, const struct sim_side, adapter);

	return &net_of(side->sim)->end[side->number];
}

static void note_crime(struct near_net *net, const char *what)
{
	if (!net->crime && !net->resting)
		net->crime = what;
}

/*
 * Harm.
 */

static _Atomic uint32_t *alive_word(const struct near_end *e)
{
	return (_Atomic uint32_t *)&e->near->registry->alive;
}

/* Both kernels' ends of the session say that it is over. */
static void shut_session(struct near_net *net)
{
	net->shut = true;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (net->end[i].drop_at == VB_NEVER)
			net->end[i].drop_at =
				net->sim->now + sim_below(&net->rand, NOTICED);
}

static void halt(struct near_end *e, vb_time for_so_long)
{
	e->state = END_STOPPED;
	e->until = for_so_long == VB_NEVER ? VB_NEVER
					   : e->net->sim->now + for_so_long;
}

/* What the kernel does with a program that ends. */
static void kill_end(struct near_end *e)
{
	e->state = END_DEAD;
	atomic_fetch_or(alive_word(e), FUTEX_OWNER_DIED);
	shut_session(e->net);
}

static void look_at_plan(struct near_net *net)
{
	struct near_end *e = &net->end[net->plan.victim];

	if (net->harmed || net->plan.harm == HARM_NONE ||
	    net->steps < net->plan.at)
		return;
	if (net->plan.harm == HARM_STOP && e->in_copy)
		return;
	net->harmed = true;
	net->harmed_at = net->sim->now;
	if (net->plan.harm == HARM_DIE)
		kill_end(e);
	if (net->plan.harm == HARM_STOP || net->plan.harm == HARM_FREEZE)
		halt(e, net->plan.stop_for);
}

static bool is_scribbling(const struct near_net *net)
{
	return net->harmed && net->plan.harm == HARM_SCRIBBLE && !net->resting;
}

static uint32_t draw_word(struct near_net *net)
{
	static const uint32_t edges[] = {
		0,	 1,	  72,	     73,	255,   256,
		257,	 4095,	  4096,	     4097,	65535, 65536,
		1 << 20, 1 << 30, INT32_MAX, UINT32_MAX
	};

	return sim_below(&net->rand, 3)
		       ? edges[sim_below(&net->rand, VB_COUNT(edges))]
		       : sim_rand32(&net->rand);
}

/* Spoil a request that the other side is about to read. */
static void spoil_request(struct near_net *net, const struct near_end *seen)
{
	const struct vb_ring_reader *rd = &seen->peer->reader;
	uint32_t at = rd->head + sim_below(&net->rand, 3);
	struct vb_request_slot *slot = &rd->ring->requests[at % VB_RING_SLOTS];
	uint32_t *words = (uint32_t *)&slot->r;

	switch (sim_below(&net->rand, 6)) {
	case 0:
		slot->r.op = (uint8_t)sim_below(&net->rand, NEAR_OPS + 2);
		break;
	case 1:
		slot->r.bytes = (uint16_t)draw_word(net);
		break;
	case 2:
		slot->data_at = draw_word(net);
		break;
	case 3:
		atomic_store(&slot->stamp, at + 1);
		break;
	default:
		words[sim_below(&net->rand, sizeof(slot->r) / 4)] =
			draw_word(net);
	}
}

static void spoil_answer(struct near_net *net, const struct near_end *seen)
{
	const struct vb_ring_reader *rd = &seen->peer->reader;
	uint32_t at = rd->answer_head + sim_below(&net->rand, 2);
	struct vb_answer_slot *slot = &rd->ring->answers[at % VB_RING_SLOTS];

	switch (sim_below(&net->rand, 6)) {
	case 0:
		slot->a.kind = (uint8_t)sim_below(&net->rand, ANSWER_LATER + 2);
		break;
	case 1:
		slot->a.seq += sim_below(&net->rand, 5) - 2;
		break;
	case 2:
		slot->a.count = (uint16_t)draw_word(net);
		break;
	case 3:
		slot->a.syndrome = (uint8_t)draw_word(net);
		break;
	case 4:
		slot->a.qpn = draw_word(net);
		break;
	default:
		atomic_store(&slot->stamp, at + 1);
	}
}

static void spoil_words(struct near_net *net, void *at, size_t bytes)
{
	uint32_t *words = at;

	words[sim_below(&net->rand, (uint32_t)(bytes / 4))] = draw_word(net);
}

static void spoil_registry(struct near_net *net, const struct near_end *by)
{
	struct vb_registry *reg = by->near->registry;
	const struct granted *g =
		&by->grants[sim_below(&net->rand, by->grant_count)];
	const struct vb_adapter *a = &by->side->adapter;
	const struct vb_qp *qp = by->side->qps[0];

	switch (sim_below(&net->rand, 4)) {
	case 0:
		atomic_store(&reg->attends, sim_below(&net->rand, 2));
		atomic_store(&reg->asleep, sim_below(&net->rand, 2));
		break;
	case 1:
		spoil_words(net, reg->adapters, sizeof(reg->adapters));
		break;
	case 2:
		if (by->side->qp_count)
			spoil_words(net, &reg->qps[qp->index],
				    sizeof(reg->qps[0]));
		break;
	default:
		if (by->grant_count)
			spoil_words(net,
				    &reg->keys[0][vb_key_index(
					    a->key_mask, a->key_inv, g->key)],
				    sizeof(reg->keys[0][0]));
	}
}

static void scribble(struct near_net *net)
{
	struct near_end *by = &net->end[net->plan.victim], *seen = other(by);
	struct vb_lane *lane = by->peer->lane;

	switch (sim_below(&net->rand, 9)) {
	case 0:
	case 1:
		spoil_request(net, seen);
		break;
	case 2:
		spoil_answer(net, seen);
		break;
	case 3:
		spoil_words(net,
			    &lane->half[sim_below(&net->rand, 2)].ring.head, 4);
		break;
	case 4:
		spoil_words(net, lane->half[sim_below(&net->rand, 2)].hazards,
			    sizeof(lane->half[0].hazards));
		break;
	case 5:
		spoil_words(net, &lane->half[sim_below(&net->rand, 2)].offer,
			    sizeof(lane->half[0].offer));
		break;
	case 6:
		spoil_registry(net, by);
		break;
	case 7:
		spoil_words(net, seen->near->bell, 4);
		atomic_store(by->peer->our_calls, 1);
		break;
	default:
		spoil_words(net, lane, sizeof(*lane));
	}
}

/*
 * The threads. The test's thread resumes one, which comes back at some step.
 */

static void resume(struct near_end *e)
{
	sem_post(&e->go);
	while (sem_wait(&e->back) != 0)
		;
}

/* Let it go on to its next step, or begin a turn. */
static void run_on(struct near_end *e);

static void come_back(struct near_end *e)
{
	sem_post(&e->back);
	while (sem_wait(&e->go) != 0)
		;
}

/* A step of @e is over: it may lose its processor here. */
static void one_step(struct near_end *e)
{
	struct near_net *net = e->net;

	net->steps++;
	look_at_plan(net);
	if (is_scribbling(net) && sim_maybe(&net->rand, 1000))
		scribble(net);
	if (me == e && !net->resting &&
	    (e->state != END_RUNS || sim_maybe(&net->rand, SWITCHES)))
		come_back(e);
}

/*
 * The world of each program.
 */

static bool is_runnable(const struct near_end *e)
{
	return e->state == END_RUNS ||
	       (e->state == END_STOPPED && e->until <= e->net->sim->now);
}

static vb_time sim_near_now(void *arg)
{
	struct near_end *e = arg;

	e->net->sim->now += sim_below(&e->net->rand, READ_NS);
	one_step(e);
	return e->net->sim->now;
}

/* The test's thread acts for a program that waits: let the other one run. */
static void sim_near_pause(void *arg, vb_time ns)
{
	struct near_end *e = arg, *o = other(e);

	e->net->sim->now += ns ? ns : READ_NS;
	if (me == e) {
		one_step(e);
	} else if (me == NULL && is_runnable(o)) {
		run_on(o);
	}
}

static uint32_t sim_near_random(void *arg)
{
	struct near_end *e = arg;

	return sim_rand32(&e->net->rand);
}

static bool holds(const struct vb_permit *p)
{
	for (unsigned i = 0; i < VB_COUNT(p->word); i++)
		if (atomic_load(p->word[i]) != p->is[i])
			return false;
	return true;
}

/* Is the byte mapped in @owner? Then *@left is how many from there on are;
 * *@live: a key opens it. */
static bool is_mapped(const struct near_end *owner, uint64_t at, uint64_t *left,
		      bool *live)
{
	*live = false;
	*left = 0;
	for (unsigned i = 0; i < owner->grant_count; i++) {
		const struct granted *g = &owner->grants[i];

		if (at < g->base || at - g->base >= g->length)
			continue;
		*left = g->length - (at - g->base);
		*live |= g->live;
	}
	return *left > 0;
}

/* A walk along a list of pieces. */
struct cursor {
	const struct iovec *at;
	unsigned count;
	size_t done;
};

static size_t room_at(struct cursor *c)
{
	while (c->count && c->done == c->at->iov_len) {
		c->at++;
		c->count--;
		c->done = 0;
	}
	return c->count ? c->at->iov_len - c->done : 0;
}

static char *address(const struct cursor *c)
{
	return (char *)c->at->iov_base + c->done;
}

/* What the kernel does once the call has begun. */
static ssize_t carry_bytes(struct near_end *e, struct near_end *owner, bool put,
			   struct cursor near, struct cursor far)
{
	ssize_t sum = 0;
	size_t part;

	while ((part = VB_MIN(room_at(&near), room_at(&far)))) {
		size_t most = 1 + sim_below(&e->net->rand, PIECE);
		uint64_t left;
		bool live;

		if (!is_mapped(owner, (uintptr_t)address(&far), &left, &live))
			return sum ? sum : -EFAULT;
		/* Nobody waits for a frozen program for ever. */
		if (!live && !(e->net->plan.harm == HARM_FREEZE &&
			       e->net->plan.stop_for == VB_NEVER))
			note_crime(e->net, "a copy after deregistration");
		part = VB_MIN(part, left);
		part = VB_MIN(part, most);
		if (put)
			memcpy(address(&far), address(&near), part);
		else
			memcpy(address(&near), address(&far), part);
		near.done += part;
		far.done += part;
		sum += (ssize_t)part;
		one_step(e);
	}
	return sum;
}

static ssize_t sim_near_copy(void *arg, const struct vb_permit *permit,
			     pid_t pid, bool put, const struct iovec *near,
			     unsigned count, const struct iovec *far,
			     unsigned far_count)
{
	struct near_end *e = arg, *owner = &e->net->end[(pid - A_PID) % 2];
	ssize_t n;

	one_step(e);
	if (!holds(permit))
		return -ECANCELED;
	if (owner->state == END_DEAD) {
		/* By now its number may be another process's. */
		note_crime(e->net, "a copy by a dead process's number");
		return -ESRCH;
	}
	if (e->net->harmed && e->net->plan.harm == HARM_DENY &&
	    e->number == e->net->plan.victim)
		return -EPERM;
	e->in_copy = true;
	e->net->copies++;
	n = carry_bytes(e, owner, put, (struct cursor){ near, count, 0 },
			(struct cursor){ far, far_count, 0 });
	e->in_copy = false;
	e->net->bytes += n > 0 ? (uint64_t)n : 0;
	one_step(e);
	return n;
}

static enum vb_whereabouts sim_near_find(void *arg, pid_t pid)
{
	struct near_end *e = arg;
	const struct near_end *o = &e->net->end[(pid - A_PID) % 2];

	if (o->state == END_DEAD)
		return IS_ELSEWHERE;
	if (o->state == END_STOPPED)
		return o->in_copy ? IS_UNSEEN : IS_ELSEWHERE;
	return o->in_step ? MAY_COPY : IS_ELSEWHERE;
}

static bool sim_near_has_hung_up(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	return !p->is_self && (e->net->shut || other(e)->state == END_DEAD);
}

static void sim_near_hang_up(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	MUST(!p->is_self);
	other(e)->expelled = true;
	shut_session(e->net);
}

static void sim_near_wake(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	(p->is_self ? e : other(e))->rung = true;
	one_step(e);
}

/*
 * One step of a program: what its engine does.
 */

static bool send_both_ways(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct near_end *e = end_of(qp->adapter);
	enum vb_qp_way way = qp->way;
	bool more = vb_near_send(e->near, qp, now);

	if (vb_near_has_left(qp, way))
		vb_ib_transport.enter(qp, QPS_RTR, QPS_RTS, now);
	return vb_rc_ops.send(qp, now, out) || more;
}

/* True: there is more to do. */
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

static void notice_end(struct near_end *e)
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

/* The program drives its queue pairs when it posts, while the engine's thread
 * may sleep on. */
static void drive_posted(struct near_end *e)
{
	e->posted = false;
	for (unsigned i = 0; i < e->side->qp_count; i++) {
		one_step(e);
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
	one_step(e);
	notice_end(e);
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
	one_step(e);
	sleep_or_not(e);
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

/*
 * What runs, and when.
 */

/* It reads deadlines without qp->drive: no program runs meanwhile. */
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

static bool is_woken(struct near_end *e)
{
	if (e->wants || next_of(e) <= e->net->sim->now)
		return true;
	return e->asleep ? e->rung : vb_near_has_something(e->near);
}

static void run_on(struct near_end *e)
{
	e->state = END_RUNS;
	if (!e->in_step)
		e->wakes = is_woken(e);
	resume(e);
}

static bool has_work(struct near_end *e)
{
	if (!is_runnable(e))
		return false;
	return e->in_step || e->posted || is_woken(e);
}

static void near_sim_drive(struct sim *s)
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
		look_at_plan(net);
		i = works[i] ? i : !i;
		if (!has_work(&net->end[i]))
			continue;
		run_on(&net->end[i]);
	}
}

static vb_time near_sim_next(const struct sim *s)
{
	const struct near_net *net = net_of(s);
	vb_time next = VB_NEVER;

	for (unsigned i = 0; i < SIM_SIDES; i++)
		next = VB_MIN(next, next_of(&net->end[i]));
	return next;
}

static void near_sim_rest(struct sim *s)
{
	struct near_net *net = net_of(s);

	net->resting = true;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		while (net->end[i].in_step)
			resume(&net->end[i]);
	net->plan.harm = HARM_NONE;
}

/*
 * Keys and queue pairs.
 */

static void grant_key(struct vb_adapter *a, const struct vb_grant *g)
{
	struct near_end *e = end_of(a);

	MUST(e->grant_count < GRANTS);
	e->grants[e->grant_count++] =
		(struct granted){ g->key, g->base, g->length, true };
	vb_near_grant(e->near, a, g);
}

static void revoke_key(struct vb_adapter *a, uint32_t index, uint32_t key)
{
	vb_near_revoke(end_of(a)->near, a, index);
}

static bool key_is_quiet(struct vb_adapter *a, uint32_t key, vb_time age)
{
	return vb_near_is_quiet(end_of(a)->near, key, age);
}

static void await_key(struct vb_adapter *a, uint32_t key)
{
	struct near_end *e = end_of(a);

	vb_near_await(e->near, key);
	for (unsigned i = 0; i < e->grant_count; i++)
		if (e->grants[i].key == key)
			e->grants[i].live = false;
}

static const struct vb_key_ops sim_near_keys = {
	.grant = grant_key,
	.revoke = revoke_key,
	.is_quiet = key_is_quiet,
	.await = await_key,
};

static int attach_both(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	MUST(vb_ib_transport.attach(qp) == 0);
	return vb_near_attach(qp);
}

static void detach_both(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_near_detach(end_of(qp->adapter)->near, qp);
	vb_ib_transport.detach(qp);
}

static bool can_wait_near(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return vb_near_can_wait(qp);
	return qp->way == WAY_PACKETS && vb_rc_ops.can_wait(qp);
}

static vb_time deadline_near(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return VB_MIN(vb_rc_ops.deadline(qp), vb_near_deadline(qp));
}

static void recv_request(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			 vb_time now) VB_REQUIRES(qp->drive)
{
	vb_rc_ops.recv[false](qp, pkt, now);
}

static void recv_response(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			  vb_time now) VB_REQUIRES(qp->drive)
{
	vb_rc_ops.recv[true](qp, pkt, now);
}

static const struct vb_transport_ops near_sim_ops = {
	.name = "near",
	.recv = { recv_request, recv_response },
	.send = send_both_ways,
	.can_wait = can_wait_near,
	.deadline = deadline_near,
};

static void enter_both(struct vb_qp *qp, enum vb_qp_state from,
		       enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	vb_ib_transport.enter(qp, from, to, now);
	vb_near_enter(end_of(qp->adapter)->near, qp, from, to, true);
	qp->ops = &near_sim_ops;
}

static void settle_near(struct vb_adapter *a, uint32_t index)
{
	vb_near_settle_qp(end_of(a)->near, a, index);
}

static const struct vb_transport near_sim_transport = {
	.name = "near",
	.attach = attach_both,
	.detach = detach_both,
	.enter = enter_both,
	.settle = settle_near,
};

/*
 * Beginning and end.
 */

static void make_end(struct near_net *net, unsigned number)
{
	struct near_end *e = &net->end[number];
	struct vb_adapter *a = &net->sim->side[number].adapter;
	struct vb_near_config c = { .world = &e->world,
				    .slot = 1 + number,
				    .name_fd = -1,
				    .wake_fd = -1,
				    .qps = a->qps,
				    .step = take_step,
				    .soon = be_reminded,
				    .release = give_back_drive,
				    .arg = e };

	e->net = net;
	e->number = number;
	e->side = &net->sim->side[number];
	e->drop_at = e->due = e->owed_at = VB_NEVER;
	e->sleeps = sim_below(&net->rand, 2);
	e->unhurried = sim_below(&net->rand, 2);
	e->world = (struct vb_near_world){ .now = sim_near_now,
					   .pause = sim_near_pause,
					   .random = sim_near_random,
					   .copy = sim_near_copy,
					   .find = sim_near_find,
					   .has_hung_up = sim_near_has_hung_up,
					   .hang_up = sim_near_hang_up,
					   .wake = sim_near_wake,
					   .arg = e };
	vb_txq_reset(&e->batch);
	MUST(vb_near_create(&c, &e->near) == 0);
	e->near->self->pid = A_PID + (int)number;
	e->near->registry->is_exact = 1;
	vb_near_begin(e->near);
	a->qpn_base = c.slot << VB_QPN_BITS;
	a->key_ops = &sim_near_keys;
	if (!e->sleeps)
		vb_near_awake(e->near);
	vb_near_stand_by(e->near, sim_below(&net->rand, 3) == 0);
}

static void acquaint(struct near_end *e, struct vb_lane *lane)
{
	const struct near_end *o = other(e);
	struct vb_peer *p = vb_peer_create(1 + o->number, &e->world, NULL);
	void *bell;

	MUST(p);
	p->pid = A_PID + (int)o->number;
	MUST(vb_registry_map(o->near->registry_fd, p->slot, &p->registry) == 0);
	MUST(vb_shm_map(o->near->bell_fd, sizeof(*p->bell), true, &bell) == 0);
	p->bell = bell;
	vb_peer_join(p, lane, e->number);
	vb_session_enter(e->near, p);
	vb_near_add(e->near, p);
	vb_session_set_state(e->near, p, PEER_UP);
	e->peer = vb_peer_get(p);
	e->knows = true;
}

static void near_sim_open(struct sim *s)
{
	struct near_net *net = calloc(1, sizeof(*net));
	void *lane[SIM_SIDES];
	int fd;

	MUST(net);
	s->way = net;
	net->sim = s;
	net->rand.state = s->rand.state ^ 0x0ea2;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		make_end(net, i);
	MUST(vb_shm_create("verbena-lane", sizeof(struct vb_lane), &fd,
			   &lane[0]) == 0);
	MUST(vb_shm_map(fd, sizeof(struct vb_lane), true, &lane[1]) == 0);
	close(fd);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		struct near_end *e = &net->end[i];

		acquaint(e, lane[i]);
		MUST(sem_init(&e->go, 0, 0) == 0);
		MUST(sem_init(&e->back, 0, 0) == 0);
		MUST(pthread_create(&e->thread, NULL, live, e) == 0);
	}
}

static void end_end(struct near_end *e)
{
	e->quits = true;
	sem_post(&e->go);
	pthread_join(e->thread, NULL);
	sem_destroy(&e->go);
	sem_destroy(&e->back);
	e->drop_at = 0;
	notice_end(e);
	vb_peer_put(e->peer);
	atomic_fetch_and(alive_word(e), ~FUTEX_OWNER_DIED);
	vb_near_end(e->near);
	vb_near_destroy(e->near);
	e->near = NULL;
}

/* What all runs together came to: tells whether they tried anything. */
static struct {
	uint64_t steps, copies, bytes, harmed, expelled;
} all_runs;

static void near_sim_tell(void)
{
	printf("near: %llu steps, %llu copies of %llu bytes, %llu harmed, "
	       "%llu expelled\n",
	       (unsigned long long)all_runs.steps,
	       (unsigned long long)all_runs.copies,
	       (unsigned long long)all_runs.bytes,
	       (unsigned long long)all_runs.harmed,
	       (unsigned long long)all_runs.expelled);
}

static void near_sim_close(struct sim *s)
{
	struct near_net *net = net_of(s);

	all_runs.steps += net->steps;
	all_runs.copies += net->copies;
	all_runs.bytes += net->bytes;
	all_runs.harmed += net->harmed;
	all_runs.expelled += net->end[0].expelled || net->end[1].expelled;

	for (unsigned i = 0; i < SIM_SIDES; i++)
		end_end(&net->end[i]);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		s->side[i].adapter.key_ops = NULL;
	free(net);
}

/*
 * For tests.
 */

void near_sim_plan(struct sim *s, const struct near_plan *plan)
{
	net_of(s)->plan = *plan;
}

static vb_time near_sim_harmed_at(const struct sim *s)
{
	return net_of(s)->harmed ? net_of(s)->harmed_at : VB_NEVER;
}

bool near_sim_is_harmed(const struct sim *s)
{
	return net_of(s)->harmed;
}

bool near_sim_is_away(const struct sim *s, unsigned side)
{
	return net_of(s)->end[side].state != END_RUNS;
}

void near_sim_stop(struct sim *s, unsigned side)
{
	halt(&net_of(s)->end[side], VB_NEVER);
}

void near_sim_go_on(struct sim *s, unsigned side)
{
	MUST(net_of(s)->end[side].state == END_STOPPED);
	net_of(s)->end[side].state = END_RUNS;
}

void near_sim_step(struct sim *s, unsigned side, uint64_t steps)
{
	struct near_net *net = net_of(s);

	net->harmed = false;
	net->plan = (struct near_plan){ HARM_STOP, side, net->steps + steps,
					VB_NEVER };
}

void near_sim_stand_by(struct sim *s, unsigned side, bool yes)
{
	struct near_end *e = &net_of(s)->end[side];

	vb_near_stand_by(e->near, yes);
	if (yes)
		e->sleeps = e->asleep = false;
}

uint64_t near_sim_steps(const struct sim *s)
{
	return net_of(s)->steps;
}

const char *near_sim_crime(const struct sim *s)
{
	return net_of(s)->crime;
}

struct vb_near *near_sim_near(const struct sim *s, unsigned side)
{
	return net_of(s)->end[side].near;
}

struct vb_peer *near_sim_peer(const struct sim *s, unsigned side)
{
	return net_of(s)->end[side].peer;
}

bool near_sim_is_expelled(const struct sim *s, unsigned side)
{
	return net_of(s)->end[side].expelled;
}

const struct sim_path near_sim_path = {
	.transport = &near_sim_transport,
	.open = near_sim_open,
	.close = near_sim_close,
	.drive = near_sim_drive,
	.next = near_sim_next,
	.is_away = near_sim_is_away,
	.rest = near_sim_rest,
	.crime = near_sim_crime,
	.harmed_at = near_sim_harmed_at,
	.tell = near_sim_tell,
};
