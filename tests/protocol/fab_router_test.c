/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two subnets with a router between them, in virtual time. In each one two
 * adapters, with LIDs 1 and 2, and the router, with LID 3, are at the ports of
 * these numbers of a switch. The test answers the router's questions, as a
 * subnet administrator would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/net_priv.h"
#include "fabric/router.h"
#include "tests/support/fab_run.h"
#include "tests/support/seeds.h"
#include "wire/grh.h"

#define PREFIX	   0xfec0000000000000u
#define LEN	   512
#define SEQ_AT	   (8 + 40 + 12)
#define QUESTIONS  256
#define ROUTER_LID 3

struct question {
	struct vb_fab_node *node;
	uint8_t port;
	struct vb_gid dgid;
	uint32_t number;
	vb_time due; /* the time when the test answers the question */
};

static struct world {
	struct vb_fab_net *net;
	struct vb_fab_node *sw[2], *ca[2][2], *rt;
	vb_time now;
	struct question question[QUESTIONS];
	unsigned questions;
	/* got: number of frames that arrived, by subnet and adapter; next_seq:
	 * sequence number that the next frame must have */
	unsigned got[2][2];
	uint32_t next_seq[2][2][2];
	unsigned disordered, slow;
	uint8_t last[LEN * 16];
	uint32_t random;
} w;

static uint32_t draw(uint32_t below)
{
	w.random ^= w.random << 13;
	w.random ^= w.random >> 17;
	w.random ^= w.random << 5;
	return w.random % below;
}

static struct vb_gid gid(unsigned subnet, uint64_t id)
{
	struct vb_gid g;

	vb_store_be(g.raw, PREFIX + subnet, 8);
	vb_store_be(g.raw + 8, id, 8);
	return g;
}

static uint64_t id_of(unsigned side, unsigned i)
{
	return w.ca[side][i]->port[1].guid;
}

static enum vb_fab_taken arrives(void *arg, struct vb_fab_node *node,
				 uint8_t port, const uint8_t *bytes, size_t len,
				 vb_time now)
{
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < 2; i++) {
			uint32_t seq = (uint32_t)vb_load_be(bytes + SEQ_AT, 4);
			uint32_t from = seq >> 31, *next;

			if (node != w.ca[side][i])
				continue;
			if (w.slow && draw(w.slow) == 0)
				return FAB_HELD;
			next = &w.next_seq[side][i][from];
			assert_true(vb_lrh_icrc_good(bytes, len));
			w.disordered += (seq & 0x7fffffff) < *next;
			*next = (seq & 0x7fffffff) + 1;
			w.got[side][i]++;
			memcpy(w.last, bytes, VB_MIN(len, sizeof(w.last)));
		}
	return FAB_TAKEN;
}

static void happens(void *arg, struct vb_fab_node *node, uint8_t port,
		    const struct vb_fab_event_info *i, vb_time now)
{
	if (i->event != FAB_EV_PATH)
		return;
	assert_true(w.questions < QUESTIONS);
	w.question[w.questions++] = (struct question){
		.node = node,
		.port = port,
		.dgid = i->dgid,
		.number = i->question,
	};
}

static void answer(const struct question *q, uint16_t lid)
{
	const struct vb_fab_path path = { .dlid = lid, .sl = 1, .mtu = 5 };

	vb_fab_path_is(w.net, q->node, q->number, lid ? PATH_KNOWN : PATH_NONE,
		       &path);
}

static struct vb_fab_node *add(uint8_t kind, uint8_t ports, uint64_t guid)
{
	const struct vb_fab_node_spec spec = {
		.kind = kind, .ports = ports, .guid = guid, .linear_cap = 16
	};
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	assert_non_null(n);
	assert_int_equal(vb_fab_add(w.net, n), 0);
	for (unsigned p = 0; p <= ports; p++) {
		n->port[p].mtu = 5;
		n->port[p].oper_vls = 2;
	}
	return n;
}

static void join(unsigned side, unsigned at, struct vb_fab_node *n,
		 uint8_t port, const struct vb_fab_link_spec *spec)
{
	assert_int_equal(vb_fab_link(w.net, w.sw[side], (uint8_t)at, n, port,
				     spec, w.now),
			 0);
	n->port[port].lid = (uint16_t)at;
	n->port[port].gid_prefix = PREFIX + side;
	w.sw[side]->sw.linear[at] = (uint8_t)at;
	w.sw[side]->sw.linear_top = 15;
}

static void activate(void)
{
	fab_run(w.net, w.now += VB_MSEC);
	for (uint32_t i = 0; i < vb_fab_nodes(w.net); i++) {
		struct vb_fab_node *n = vb_fab_node(w.net, i);

		for (unsigned p = 1; p <= n->ports; p++)
			for (unsigned s = FAB_ARMED;
			     n->port[p].state >= FAB_INIT && s <= FAB_ACTIVE;
			     s++)
				(void)!vb_fab_set_state(w.net, n, (uint8_t)p,
							(enum vb_fab_state)s,
							w.now);
	}
}

static void begin(const struct vb_fab_link_spec *spec)
{
	const struct vb_fab_ops ops = { .on_local = arrives,
					.on_event = happens };

	memset(&w, 0, sizeof(w));
	w.random = 1;
	w.net = vb_fab_net_create(&ops, 1);
	assert_non_null(w.net);
	w.rt = add(FAB_ROUTER, 2, 0x700);
	for (unsigned side = 0; side < 2; side++) {
		w.sw[side] = add(FAB_SWITCH, 4, 0x500 + (side << 4));
		for (unsigned i = 0; i < 2; i++) {
			w.ca[side][i] =
				add(FAB_CA, 1, 0xa00 + (side << 8) + (i << 4));
			join(side, i + 1, w.ca[side][i], 1, spec);
		}
		join(side, ROUTER_LID, w.rt, (uint8_t)(side + 1), spec);
	}
	activate();
}

static void end(void)
{
	vb_fab_net_destroy(w.net);
}

/* Send a frame from adapter @i of @side to @to by the router. */
static int send_frame(unsigned side, unsigned i, const struct vb_gid *to,
		      uint8_t hops, uint32_t seq, uint16_t len)
{
	uint8_t bytes[VB_LRH_FRAME_MAX] = { 0 };
	const struct vb_lrh h = { .lnh = LNH_GLOBAL,
				  .dlid = ROUTER_LID,
				  .slid = (uint16_t)(i + 1),
				  .words = len / 4 };
	const struct vb_grh g = { .sgid = gid(side, id_of(side, i)),
				  .dgid = *to,
				  .udp_bytes = (uint16_t)(len - 48),
				  .iba = true,
				  .hop_limit = hops };

	vb_lrh_put(bytes, &h);
	vb_grh_put(bytes + VB_LRH_BYTES, &g);
	vb_store_be(bytes + SEQ_AT, seq, 4);
	vb_lrh_put_icrc(bytes, len);
	return vb_fab_send(w.net, w.ca[side][i], 1, bytes, len, w.now);
}

static void sends(unsigned count, const struct vb_gid *to, uint8_t hops)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(send_frame(0, 0, to, hops, i, LEN), 0);
	fab_run(w.net, w.now += VB_MSEC);
}

static uint64_t dropped(enum vb_fab_drop why)
{
	return w.rt->router->dropped[why];
}

/* The router asks its subnet administrator once. The frames that waited for the
 * answer arrive in order, with new LIDs and a hop limit that is smaller by
 * one. */
static void forward__after_one_question(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;
	struct vb_lrh h;
	struct vb_grh g;

	begin(&link);
	to = gid(1, id_of(1, 0));
	sends(5, &to, 64);
	assert_int_equal(w.questions, 1);
	assert_ptr_equal(w.question[0].node, w.rt);
	assert_int_equal(w.question[0].port, 2);
	assert_true(vb_gid_equal(&w.question[0].dgid, &to));
	assert_int_equal(w.got[1][0], 0);
	answer(&w.question[0], 1);
	fab_run(w.net, w.now += VB_MSEC);
	assert_int_equal(w.got[1][0], 5);
	assert_int_equal(w.disordered, 0);
	vb_lrh_get(w.last, &h);
	assert_int_equal(h.dlid, 1);
	assert_int_equal(h.slid, ROUTER_LID);
	assert_int_equal(h.sl, 1);
	assert_int_equal(h.vl, 1);
	assert_true(vb_grh_get_iba(w.last + VB_LRH_BYTES, &g));
	assert_int_equal(g.hop_limit, 63);
	w.next_seq[1][0][0] = 0;
	sends(3, &to, 2);
	assert_int_equal(w.got[1][0], 8);
	assert_int_equal(w.questions, 1);
	assert_int_equal(w.rt->router->routed, 8);
	assert_int_equal(w.rt->port[1].count[FAB_RCV_PKTS], 8);
	assert_int_equal(w.rt->port[2].count[FAB_XMIT_PKTS], 8);
	/* a late or false answer of the administrator changes nothing */
	answer(&w.question[0], 2);
	w.question[0].number += 1024;
	answer(&w.question[0], 2);
	sends(1, &to, 2);
	assert_int_equal(w.got[1][0], 9);
	end();
}

static void forward__not_what_has_no_hop_left(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;

	begin(&link);
	to = gid(1, id_of(1, 0));
	sends(3, &to, 1);
	assert_int_equal(w.questions, 0);
	assert_int_equal(dropped(DROP_HOP_LIMIT), 3);
	assert_int_equal(w.rt->port[1].count[FAB_RCV_SWITCH_RELAY], 3);
	end();
}

/* For a while after the answer "none", frames to the destination are dropped,
 * and the router does not ask again. */
static void path__none(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;

	begin(&link);
	to = gid(1, 0x12345);
	sends(2, &to, 64);
	answer(&w.question[0], 0);
	assert_int_equal(dropped(DROP_NO_PATH), 2);
	sends(2, &to, 64);
	assert_int_equal(w.questions, 1);
	assert_int_equal(dropped(DROP_NO_PATH), 4);
	w.now += VB_SEC;
	sends(1, &to, 64);
	assert_int_equal(w.questions, 2);
	vb_fab_path_is(w.net, w.rt, w.question[1].number, PATH_UNANSWERED,
		       NULL);
	assert_int_equal(dropped(DROP_NO_PATH), 5);
	w.now += VB_SEC;
	sends(1, &to, 64);
	assert_int_equal(w.questions, 3);
	answer(&w.question[2], 1);
	fab_run(w.net, w.now += VB_MSEC);
	assert_int_equal(w.got[1][0], 1);
	end();
}

/* After 4 s the router asks again for a path that is in use, and uses the old
 * path meanwhile. */
static void path__is_renewed(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;

	begin(&link);
	to = gid(1, id_of(1, 0));
	sends(1, &to, 64);
	answer(&w.question[0], 1);
	w.now += 4 * VB_SEC;
	sends(2, &to, 64);
	assert_int_equal(w.questions, 2);
	assert_int_equal(w.got[1][0], 3);
	/* the answer: the destination has moved to another LID */
	answer(&w.question[1], 2);
	sends(2, &to, 64);
	assert_int_equal(w.got[1][1], 2);
	/* if there is no answer, the known path stays in use, and the router
	 * asks again later */
	w.now += 4 * VB_SEC;
	sends(1, &to, 64);
	vb_fab_path_is(w.net, w.rt, w.question[2].number, PATH_UNANSWERED,
		       NULL);
	sends(2, &to, 64);
	assert_int_equal(w.got[1][1], 5);
	assert_int_equal(w.questions, 3);
	w.now += 4 * VB_SEC;
	sends(1, &to, 64);
	assert_int_equal(w.questions, 4);
	answer(&w.question[3], 0);
	sends(1, &to, 64);
	assert_int_equal(dropped(DROP_NO_PATH), 1);
	end();
}

/* Frames to a destination for which no answer comes must not use the credits of
 * other frames. The router keeps at most 1024 such frames. */
static void wait__takes_no_credits(void **state)
{
	const struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_gid known, silent;

	begin(&link);
	known = gid(1, id_of(1, 0));
	silent = gid(1, 0x12345);
	for (unsigned i = 0; i < 1100; i++) {
		assert_int_equal(send_frame(0, 0, &silent, 64, i, LEN), 0);
		fab_run(w.net, w.now += 10 * VB_USEC);
	}
	assert_int_equal(dropped(DROP_UNASKED), 1100 - 1024);
	sends(3, &known, 64);
	answer(&w.question[1], 1);
	fab_run(w.net, w.now += VB_MSEC);
	assert_int_equal(w.got[1][0], 3);
	end();
}

/* A sender of frames to ever new destinations causes at most 64 open questions
 * at a time. Other senders' questions follow when some of these are
 * answered. */
static void questions__have_an_end(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;

	begin(&link);
	for (unsigned i = 0; i < 2000; i++) {
		to = gid(1, 0x10000 + i);
		sends(1, &to, 64);
	}
	assert_int_equal(w.questions, 64);
	assert_int_equal(dropped(DROP_UNASKED), 2000 - 64);
	for (unsigned i = 0; i < 64; i++)
		answer(&w.question[i], 0);
	to = gid(1, id_of(1, 1));
	sends(1, &to, 64);
	assert_int_equal(w.questions, 65);
	answer(&w.question[64], 2);
	fab_run(w.net, w.now += VB_MSEC);
	assert_int_equal(w.got[1][1], 1);
	end();
}

/* Two routers with wrong routes send a frame to each other until its hop limit
 * is used up. */
static void loop__ends_by_the_hop_limit(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_fab_node *other;
	struct vb_gid to = gid(9, 1);

	begin(&link);
	other = add(FAB_ROUTER, 2, 0x800);
	for (unsigned side = 0; side < 2; side++)
		join(side, 4, other, (uint8_t)(side + 1), &link);
	activate();
	w.rt->router->route[0] =
		(struct vb_fab_prefix){ .any = true, .port = 2 };
	other->router->route[0] =
		(struct vb_fab_prefix){ .any = true, .port = 1 };
	w.rt->router->routes = other->router->routes = 1;
	sends(1, &to, 8);
	answer(&w.question[0], 4);
	fab_run(w.net, w.now += VB_MSEC);
	assert_ptr_equal(w.question[1].node, other);
	answer(&w.question[1], ROUTER_LID);
	fab_run(w.net, w.now += VB_MSEC);
	assert_int_equal(w.rt->router->routed + other->router->routed, 7);
	assert_int_equal(w.rt->router->dropped[DROP_HOP_LIMIT] +
				 other->router->dropped[DROP_HOP_LIMIT],
			 1);
	end();
}

/* When the subnet manager takes a port down, the router drops the frames that
 * wait for that port. */
static void port__goes_down(void **state)
{
	const struct vb_fab_link_spec link = { 0 };
	struct vb_gid to;

	begin(&link);
	to = gid(1, id_of(1, 0));
	sends(2, &to, 64);
	assert_int_equal(vb_fab_plug(w.net, w.rt, 2, false, w.now), 0);
	answer(&w.question[0], 1);
	assert_int_equal(dropped(DROP_INACTIVE), 2);
	sends(1, &to, 64);
	assert_int_equal(dropped(DROP_NO_PREFIX), 1);
	end();
}

/* opensm sets HOQLife at routers: frames that a slow receiver does not accept
 * in that time are discarded. */
static void hoq__discards(void **state)
{
	const struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_gid to;

	begin(&link);
	w.rt->port[2].hoq_life = 4; /* 65 us */
	w.slow = 1;
	to = gid(1, id_of(1, 0));
	sends(1, &to, 64);
	answer(&w.question[0], 1);
	for (unsigned i = 0; i < 40; i++)
		sends(1, &to, 64);
	assert_true(w.rt->port[2].count[FAB_XMIT_HOQ] > 0);
	end();
}

/* --- random runs --- */

static void answer_due(void)
{
	for (unsigned i = 0; i < w.questions; i++) {
		struct question *q = &w.question[i];
		uint64_t id = vb_load_be(q->dgid.raw + 8, 8);
		unsigned side = q->port - 1u;

		if (!q->due)
			q->due = w.now + draw(200) * VB_USEC;
		if (q->due > w.now)
			continue;
		answer(q, id == id_of(side, 0)	 ? 1
			  : id == id_of(side, 1) ? 2
						 : 0);
		w.question[i--] = w.question[--w.questions];
	}
}

static void no_buffer_is_used(void)
{
	for (uint32_t i = 0; i < vb_fab_nodes(w.net); i++) {
		struct vb_fab_node *n = vb_fab_node(w.net, i);

		for (unsigned p = 1; p <= n->ports; p++) {
			struct vb_fab_end *e = n->port[p].end;

			assert_int_equal(n->port[p].count[FAB_RCV_OVERRUN], 0);
			for (unsigned vl = 0; vl < DATA_VLS; vl++)
				assert_int_equal(e->flow[vl].used, 0);
		}
	}
}

static struct vb_gid some_gid(unsigned from)
{
	unsigned what = draw(8);

	if (what == 0)
		return gid(1 - from, 0x5000 + draw(300));
	if (what == 1)
		return gid(7 + draw(3), 5);
	if (what == 2)
		return gid(from, id_of(from, draw(2)));
	return gid(1 - from, id_of(1 - from, draw(2)));
}

/* Frames from both sides to known and unknown destinations, over links that
 * lose and damage, with slow receivers and slow answers: what arrives is whole,
 * no buffer overruns, and all room is free again at the end. */
static void play_run(uint32_t seed)
{
	const struct vb_fab_link_spec link = {
		.buffer = 70 + seed % 200,
		.lose = seed % 3 ? 0 : 1u << 26,
		.corrupt = seed % 4 ? 0 : 1u << 26,
	};
	uint64_t all, sent = 0;

	begin(&link);
	w.random = seed * 2654435761u | 1;
	w.slow = seed % 2 ? 20 : 0;
	for (unsigned i = 0; i < 600; i++) {
		unsigned side = draw(2);
		struct vb_gid to = some_gid(side);
		uint16_t len = (uint16_t)(72 + 4 * draw(1000));

		sent += send_frame(side, draw(2), &to, (uint8_t)(1 + draw(8)),
				   i | side << 31, len) == 0;
		fab_run(w.net, w.now += draw(20) * VB_USEC);
		answer_due();
		for (unsigned k = 0; k < 4; k++)
			vb_fab_resume(w.net, w.ca[k / 2][k % 2], 1, w.now);
	}
	w.slow = 0;
	for (unsigned i = 0; i < 200; i++) {
		fab_run(w.net, w.now += VB_MSEC);
		answer_due();
		for (unsigned k = 0; k < 4; k++)
			vb_fab_resume(w.net, w.ca[k / 2][k % 2], 1, w.now);
	}
	no_buffer_is_used();
	all = w.rt->router->routed;
	for (unsigned i = 0; i < DROPS; i++)
		all += w.rt->router->dropped[i];
	assert_true(sent > 0 && w.rt->router->routed > 0);
	if (!link.lose && !link.corrupt)
		assert_int_equal(all, sent);
	end();
}

static void random__runs(void **state)
{
	unsigned seeds = 200 / seeds_divisor();

	for (uint32_t seed = 1; seed <= seeds; seed++) {
		print_message("seed %u\n", seed);
		play_run(seed);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward__after_one_question),
		cmocka_unit_test(forward__not_what_has_no_hop_left),
		cmocka_unit_test(path__none),
		cmocka_unit_test(path__is_renewed),
		cmocka_unit_test(wait__takes_no_credits),
		cmocka_unit_test(questions__have_an_end),
		cmocka_unit_test(loop__ends_by_the_hop_limit),
		cmocka_unit_test(port__goes_down),
		cmocka_unit_test(hoq__discards),
		cmocka_unit_test(random__runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
