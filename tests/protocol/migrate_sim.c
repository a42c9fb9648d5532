/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration in virtual time: two ends are joined by two paths on
 * which frames are lost, copied and reordered. In each round the two programs
 * load the unused path as their alternate path and exchange messages. Then the
 * path in use breaks, or one or both programs force a migration, or one does so
 * while the other end is not armed yet. Some connections are XRC connections,
 * where one side sends and the other one receives. Every message arrives, whole
 * and in order; both ends get PATH_MIG, and both use the other path.
 *
 * migrate_sim SEED replays one run; migrate_sim -n COUNT [FIRST] plays many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/migrate.h"
#include "tests/support/must.h"
#include "tests/support/seeds.h"
#include "tests/support/sim.h"

#define ROUNDS 6
#define BYTES  20000
#define SLOTS  8 /* messages on their way from one side */
/* Limit of virtual time for each step, with all retries on a broken path. */
#define LONG (20 * VB_SEC)

struct run {
	struct sim sim;
	struct sim_pair pair;
	struct vb_mr *mr[SIM_SIDES];
	/* by side: the memory that is sent from, and the memory for arriving
	 * messages */
	uint8_t mem[SIM_SIDES][2][SLOTS][BYTES];
	/* by sender: number of messages that were posted, that are complete,
	 * and that have arrived */
	uint32_t posted[SIM_SIDES], done[SIM_SIDES], came[SIM_SIDES];
	uint32_t length[SIM_SIDES][SLOTS];
	unsigned migrated[SIM_SIDES], failed[SIM_SIDES];
	unsigned way; /* number of the path in use */
};

#define MUST_RUN(r, truth)                                                     \
	do {                                                                   \
		if (!(truth)) {                                                \
			sim_print_trace(&(r)->sim);                            \
			MUST(truth);                                           \
		}                                                              \
	} while (0)

static uint8_t state_of(const struct run *r, unsigned side)
{
	return r->pair.qp[side]->attr.path_mig_state;
}

/* --- messages --- */

static uint8_t byte_of(unsigned side, uint32_t number, uint32_t at)
{
	return (uint8_t)(side * 101 + number * 7 + at * 3 + at / 251);
}

static void post_recv(struct run *r, unsigned side, uint32_t number)
{
	struct vb_sge sge = {
		(uintptr_t)r->mem[side][1][number % SLOTS],
		BYTES,
		r->mr[side]->key,
	};

	if (r->pair.srq[side])
		MUST(!vb_rq_post(&r->pair.srq[side]->rq, number, &sge, 1));
	else
		sim_post_recv(r->pair.qp[side], number, &sge, 1);
}

/* Post one message from @side: a SEND, or a WRITE with immediate data. */
static void post(struct run *r, unsigned side)
{
	uint32_t number = r->posted[side]++, slot = number % SLOTS;
	uint32_t len = 1 + sim_below(&r->sim.rand, BYTES);
	struct vb_sge sge = { (uintptr_t)r->mem[side][0][slot], len,
			      r->mr[side]->key };
	struct vb_send_wqe wqe = {
		.wr_id = number,
		.op = WR_SEND,
		.flags = SEND_SIGNALED,
		.length = len,
		.num_sge = 1,
	};

	if (r->pair.xrcd)
		wqe.srqn = r->pair.srq[1]->number;
	if (sim_maybe(&r->sim.rand, 5000)) {
		wqe.op = WR_WRITE_IMM;
		wqe.remote_addr = (uintptr_t)r->mem[!side][1][slot];
		wqe.rkey = r->mr[!side]->key;
	}
	r->length[side][slot] = len;
	for (uint32_t i = 0; i < len; i++)
		r->mem[side][0][slot][i] = byte_of(side, number, i);
	sim_post_send(r->pair.qp[side], &wqe, &sge);
}

static void check_arrival(struct run *r, unsigned from, const struct vb_cqe *e)
{
	uint32_t number = r->came[from]++, slot = number % SLOTS;

	MUST_RUN(r, e->status == WC_SUCCESS && e->wr_id == number);
	for (uint32_t i = 0; i < r->length[from][slot]; i++)
		MUST_RUN(r,
			 r->mem[!from][1][slot][i] == byte_of(from, number, i));
	memset(r->mem[!from][1][slot], 0xee, BYTES);
	post_recv(r, !from, number + SLOTS);
}

static void take_events(struct run *r, unsigned side)
{
	int event;

	while ((event = sim_event(&r->sim, side)) >= 0) {
		r->migrated[side] += event == EVENT_PATH_MIG;
		r->failed[side] += event == EVENT_PATH_MIG_ERR;
	}
}

static void take_completions(struct run *r)
{
	struct vb_cqe e;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		while (sim_poll(r->pair.send_cq[i], &e)) {
			MUST_RUN(r, e.status == WC_SUCCESS);
			MUST_RUN(r, e.wr_id == r->done[i]++);
		}
		while (sim_poll(r->pair.recv_cq[i], &e))
			check_arrival(r, !i, &e);
		take_events(r, i);
	}
}

/* Returns whether @side can post one more message. A slot is free when the
 * sender has its completion and the receiver has the message. */
static bool has_slot(const struct run *r, unsigned side)
{
	return r->posted[side] - r->done[side] < SLOTS &&
	       r->posted[side] - r->came[side] < SLOTS;
}

/* Let time pass while both sides exchange messages. */
static void talk(struct run *r, unsigned turns)
{
	while (turns--) {
		unsigned side = sim_below(&r->sim.rand, SIM_SIDES);

		side = r->pair.xrcd ? 0 : side;
		if (has_slot(r, side))
			post(r, side);
		sim_run(&r->sim,
			r->sim.now + sim_below(&r->sim.rand, 300 * VB_USEC));
		take_completions(r);
	}
}

/* Wait until everything posted is complete. */
static void finish(struct run *r)
{
	vb_time until = r->sim.now + LONG;

	take_completions(r);
	while (r->sim.now < until &&
	       (r->done[0] != r->posted[0] || r->done[1] != r->posted[1] ||
		r->came[0] != r->posted[0] || r->came[1] != r->posted[1])) {
		sim_run(&r->sim, r->sim.now + VB_MSEC);
		take_completions(r);
	}
	MUST_RUN(r, r->done[0] == r->posted[0] && r->came[0] == r->posted[0]);
	MUST_RUN(r, r->done[1] == r->posted[1] && r->came[1] == r->posted[1]);
}

/* --- rounds --- */

static int modify(struct run *r, unsigned side, uint32_t mask,
		  const struct vb_qp_attr *attr)
{
	return vb_qp_modify(r->pair.qp[side], attr, mask, r->sim.now);
}

static void rearm(struct run *r, unsigned side)
{
	struct vb_qp_attr attr = {
		.alt_av = sim_ib_av(!side, !r->way),
		.alt_port_num = 1,
		.alt_timeout = 12,
		.path_mig_state = MIG_REARM,
	};

	MUST(!modify(r, side, QPM_ALT_PATH | QPM_PATH_MIG_STATE, &attr));
}

static void force(struct run *r, unsigned side)
{
	const struct vb_qp_attr attr = { .path_mig_state = MIG_MIGRATED };

	/* The peer may have migrated first. Then this end has followed, and is
	 * no longer armed. */
	if (state_of(r, side) == MIG_ARMED)
		MUST(!modify(r, side, QPM_PATH_MIG_STATE, &attr));
}

static unsigned armed_ends(const struct run *r)
{
	return (state_of(r, 0) == MIG_ARMED) + (state_of(r, 1) == MIG_ARMED);
}

/* Both programs rearm their ends, in any order and with messages in between,
 * until @ends ends are armed. */
static void arm(struct run *r, unsigned ends)
{
	unsigned first = sim_below(&r->sim.rand, SIM_SIDES);

	rearm(r, first);
	talk(r, sim_below(&r->sim.rand, 20));
	rearm(r, !first);
	for (unsigned i = 0; armed_ends(r) < ends; i++) {
		MUST_RUN(r, i < 1000);
		talk(r, 1);
	}
}

/* Make the ends leave the path in use. The path may break only if both ends are
 * armed, because an end that is not armed would not leave it. */
static void leave_way(struct run *r)
{
	unsigned how = sim_below(&r->sim.rand, armed_ends(r) == 2 ? 4 : 3);

	switch (how) {
	case 0:
	case 1:
		force(r, state_of(r, how) == MIG_ARMED ? how : !how);
		break;
	case 2:
		force(r, 0);
		talk(r, sim_below(&r->sim.rand, 3));
		force(r, 1);
		break;
	default:
		r->sim.cut = 1u << r->way;
		break;
	}
	/* The path in use may break while the ends migrate. */
	talk(r, sim_below(&r->sim.rand, 4));
	if (armed_ends(r) + (state_of(r, 0) == MIG_MIGRATED) +
			    (state_of(r, 1) == MIG_MIGRATED) ==
		    SIM_SIDES &&
	    sim_maybe(&r->sim.rand, 5000))
		r->sim.cut = 1u << r->way;
}

static bool has_left(const struct run *r, unsigned side)
{
	return state_of(r, side) == MIG_MIGRATED &&
	       r->pair.qp[side]->route.ib.dlid % SIM_WAYS != r->way;
}

static void play_round(struct run *r, unsigned number)
{
	unsigned ends = 1 + sim_maybe(&r->sim.rand, 7000);

	arm(r, ends);
	if (ends == SIM_SIDES)
		talk(r, sim_below(&r->sim.rand, 20));
	leave_way(r);
	for (unsigned i = 0; !has_left(r, 0) || !has_left(r, 1); i++) {
		MUST_RUN(r, i < 100000);
		talk(r, 1);
	}
	talk(r, sim_below(&r->sim.rand, 20));
	finish(r);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		MUST_RUN(r, r->migrated[i] == number + 1);
		MUST_RUN(r, r->failed[i] == 0);
	}
	r->way = !r->way;
	r->sim.cut = 0;
}

/* --- a run --- */

static void draw_wire(struct run *r)
{
	struct sim_rand *rand = &r->sim.rand;
	struct sim_wire *w = &r->sim.wire;

	w->lose = sim_maybe(rand, 5000) ? sim_below(rand, 500) : 0;
	w->damage = sim_maybe(rand, 3000) ? sim_below(rand, 300) : 0;
	w->copy = sim_maybe(rand, 3000) ? sim_below(rand, 300) : 0;
	w->swap = sim_maybe(rand, 3000) ? sim_below(rand, 1000) : 0;
	w->jitter = 50 * VB_USEC;
}

static void begin(struct run *r, uint64_t seed)
{
	struct vb_qp_attr attr = sim_attr;
	struct sim_caps caps = sim_caps;

	sim_open(&r->sim, seed);
	sim_make_ib(&r->sim);
	draw_wire(r);
	attr.timeout = 12;
	attr.retry_cnt = (uint8_t)(4 + sim_below(&r->sim.rand, 4));
	if (sim_maybe(&r->sim.rand, 2500))
		caps.type = QPT_XRC_SEND;
	sim_connect(&r->sim, &r->pair, &attr, &caps);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		MUST(!vb_mr_register(r->sim.side[i].pd, r->mem[i],
				     sizeof(r->mem[i]), (uintptr_t)r->mem[i],
				     attr.access_flags, &r->mr[i]));
		for (uint32_t n = 0; n < SLOTS && (i || !r->pair.xrcd); n++)
			post_recv(r, i, n);
	}
}

static void end(struct run *r)
{
	sim_disconnect(&r->sim, &r->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		MUST(!vb_mr_deregister(r->mr[i]));
	sim_close(&r->sim);
}

static void play(uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));

	MUST(r);
	begin(r, seed);
	for (unsigned i = 0; i < ROUNDS; i++)
		play_round(r, i);
	end(r);
	free(r);
}

int main(int argc, char **argv)
{
	return seeds_main(argc, argv, 400, play);
}
