/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulates two programs of one host, as threads of one process and in virtual
 * time. */
#include "tests/support/near_sim_priv.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/shm.h"
#include "near/session_priv.h"
#include "tests/support/must.h"

/* Creating and destroying simulations. */

static void make_end(struct near_net *net, unsigned number)
{
	struct near_end *e = &net->end[number];
	struct vb_adapter *a = &net->sim->side[number].adapter;
	struct vb_near_config c = { .world = &e->world,
				    .slot = 1 + number,
				    .name_fd = -1,
				    .wake_fd = -1,
				    .qps = a->qps };

	e->net = net;
	e->number = number;
	e->side = &net->sim->side[number];
	e->drop_at = e->due = e->owed_at = VB_NEVER;
	e->sleeps = sim_below(&net->rand, 2);
	e->unhurried = sim_below(&net->rand, 2);
	near_sim_set_world(e);
	near_sim_set_engine(e, &c);
	vb_txq_reset(&e->batch);
	MUST(vb_near_create(&c, &e->near) == 0);
	e->near->self->pid = A_PID + (int)number;
	e->near->registry->is_exact = 1;
	vb_near_begin(e->near);
	a->qpn_base = c.slot << VB_QPN_BITS;
	a->key_ops = &near_sim_keys;
	if (!e->sleeps)
		vb_near_awake(e->near);
	vb_near_stand_by(e->near, sim_below(&net->rand, 3) == 0);
}

static void acquaint(struct near_end *e, struct vb_lane *lane)
{
	const struct near_end *o = other(e);
	struct vb_peer *p = vb_peer_create(1 + o->number, &e->world, NULL);

	MUST(p);
	p->pid = A_PID + (int)o->number;
	MUST(vb_registry_map(o->near->registry_fd, p->slot, &p->registry) == 0);
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
		acquaint(&net->end[i], lane[i]);
		near_sim_start_thread(&net->end[i]);
	}
}

static void end_end(struct near_end *e)
{
	near_sim_join_thread(e);
	e->drop_at = 0;
	near_sim_notice_end(e);
	vb_peer_put(e->peer);
	atomic_fetch_and(alive_word(e), ~FUTEX_OWNER_DIED);
	vb_near_end(e->near);
	vb_near_destroy(e->near);
	e->near = NULL;
}

/* The sums of all runs, which show whether they tested anything. */
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

/* Functions for tests. */

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
	near_sim_halt(&net_of(s)->end[side], VB_NEVER);
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

bool near_sim_is_in_copy(const struct sim *s, unsigned side)
{
	return net_of(s)->end[side].in_copy;
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
