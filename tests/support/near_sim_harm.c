/* SPDX-License-Identifier: BSD-2-Clause */
/* Harms a program of a simulation: it is stopped, dies, or writes arbitrary
 * bytes into the memory that it shares. */
#include "tests/support/near_sim_priv.h"

#include <linux/futex.h>

#include "near/session_priv.h"

/* The latest time at which a program notices the end of a session. */
#define NOTICED VB_MSEC

void near_sim_shut(struct near_net *net)
{
	net->shut = true;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (net->end[i].drop_at == VB_NEVER)
			net->end[i].drop_at =
				net->sim->now + sim_below(&net->rand, NOTICED);
}

void near_sim_halt(struct near_end *e, vb_time for_so_long)
{
	e->state = END_STOPPED;
	e->until = for_so_long == VB_NEVER ? VB_NEVER
					   : e->net->sim->now + for_so_long;
}

/* Do what the kernel does when a program ends: mark the program as dead, and
 * end its session. */
static void kill_end(struct near_end *e)
{
	e->state = END_DEAD;
	atomic_fetch_or(alive_word(e), FUTEX_OWNER_DIED);
	near_sim_shut(e->net);
}

void near_sim_follow_plan(struct near_net *net)
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
	if (net->plan.harm == HARM_LEAVE) {
		vb_peer_disown(e->peer);
		near_sim_shut(net);
	}
	if (net->plan.harm == HARM_STOP || net->plan.harm == HARM_FREEZE ||
	    net->plan.harm == HARM_LEAVE)
		near_sim_halt(e, net->plan.stop_for);
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

/* Change a request in the lane's ring that the reader has yet to read. */
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
		spoil_words(net, &lane->half[sim_below(&net->rand, 2)].bell, 4);
		atomic_store(by->peer->our_calls, 1);
		break;
	default:
		spoil_words(net, lane, sizeof(*lane));
	}
}

void near_sim_may_scribble(struct near_net *net)
{
	if (is_scribbling(net) && sim_maybe(&net->rand, 1000))
		scribble(net);
}
