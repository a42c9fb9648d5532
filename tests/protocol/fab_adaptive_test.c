/* SPDX-License-Identifier: BSD-2-Clause */
/* Adaptive routing: a hot trunk spreads, no flow is reordered, and routes that
 * are no shortest paths are left alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fabric/net_priv.h"
#include "tests/support/fabric.h"
#include "tests/support/seeds.h"

#define GB     1000000000u
#define FRAME  (4096 + 48)
#define SPINES 4
#define HOSTS  4

static const struct vb_fab_link_spec gb1 = { .bytes_per_sec = GB };

/* Two leaves with four hosts each, four spines, and tables that lead all
 * traffic from the first leaf through the first spine. */
struct tree {
	struct fabt t;
	struct vb_fab_node *leaf[2], *spine[SPINES], *host[2][HOSTS];
	/* routers of another subnet, which are the first nodes of the net */
	struct vb_fab_node *foreign[HOSTS];
};

static void plant(struct tree *w, bool adaptive)
{
	const struct vb_fab_node_spec router = { .kind = FAB_ROUTER,
						 .ports = 2 };

	fabt_init(&w->t, 1);
	for (unsigned h = 0; h < HOSTS; h++)
		w->foreign[h] = fabt_add(&w->t, &router);
	for (unsigned i = 0; i < 2; i++)
		w->leaf[i] = fabt_switch(&w->t, HOSTS + SPINES);
	for (unsigned s = 0; s < SPINES; s++)
		w->spine[s] = fabt_switch(&w->t, 2);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned h = 0; h < HOSTS; h++) {
			w->host[i][h] = fabt_adapter(&w->t);
			fabt_link(&w->t, w->host[i][h], 1, w->leaf[i], 1 + h,
				  &gb1);
		}
		for (unsigned s = 0; s < SPINES; s++)
			fabt_link(&w->t, w->spine[s], 1 + i, w->leaf[i],
				  HOSTS + 1 + s, &gb1);
	}
	fabt_up(&w->t, FABT_SHORTEST, 1);
	for (unsigned h = 0; h < HOSTS; h++)
		w->leaf[0]->sw.linear[fabt_lid(w->host[1][h])] = HOSTS + 1;
	if (adaptive)
		assert_int_equal(vb_fab_set_adaptive(w->leaf[0], true), 0);
}

static uint64_t moved(const struct tree *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->t.streams; i++)
		sum += w->t.stream[i].got_bytes;
	return sum;
}

static void send_across(struct tree *w)
{
	for (unsigned h = 0; h < HOSTS; h++)
		fabt_stream(&w->t, w->host[0][h], w->host[1][h], FRAME);
}

/* Returns the total throughput, in GB/s, of four flows whose forwarding tables
 * all lead to one trunk. */
static double throughput(struct tree *w)
{
	uint64_t before;

	fabt_run(&w->t, w->t.now + 2 * VB_MSEC);
	before = moved(w);
	fabt_run(&w->t, w->t.now + 10 * VB_MSEC);
	return (double)(moved(w) - before) / (10 * VB_MSEC);
}

static void trunk__that_is_hot_spreads(void **state)
{
	double rate[2];

	for (unsigned on = 0; on < 2; on++) {
		struct tree w;

		plant(&w, on);
		send_across(&w);
		rate[on] = throughput(&w);
		for (unsigned s = 0; s < SPINES; s++)
			assert_true((w.spine[s]->port[1].count[FAB_RCV_PKTS] >
				     100) == (on || s == 0));
		assert_int_equal(w.t.disordered, 0);
		assert_int_equal(fabt_sum(&w.t, FAB_XMIT_DISCARDS), 0);
		fabt_fini(&w.t);
	}
	print_message("four flows over four trunks: %.2f GB/s by the table, "
		      "%.2f GB/s adaptively\n",
		      rate[0], rate[1]);
	assert_true(rate[0] < 1.01);
	assert_true(rate[1] > 3.8);
}

/* The net has ports of another subnet with the same LIDs. Adaptive routing must
 * still spread this subnet's flows over the trunks. */
static void trunk__spreads_where_lids_are_not_unique(void **state)
{
	struct tree w;
	double rate;

	plant(&w, true);
	for (unsigned h = 0; h < HOSTS; h++)
		w.foreign[h]->port[1].lid = fabt_lid(w.host[1][h]);
	send_across(&w);
	rate = throughput(&w);
	print_message("with equal LIDs in another subnet: %.2f GB/s\n", rate);
	assert_true(rate > 3.8);
	assert_int_equal(w.t.disordered, 0);
	fabt_fini(&w.t);
}

/* Adaptive routing moves a flow to an empty trunk only after the flow was
 * silent for longer than a frame can live, so that no frame overtakes another
 * one. */
static void flow__moves_only_after_silence(void **state)
{
	struct stream *s;
	struct tree w;
	unsigned first;

	plant(&w, true);
	w.leaf[0]->sw.life = 3; /* 33 us */
	s = fabt_stream(&w.t, w.host[0][0], w.host[1][0], FRAME);
	s->most = 20;
	fabt_run(&w.t, w.t.now + VB_MSEC);
	for (first = 0; first < SPINES; first++)
		if (w.spine[first]->port[1].count[FAB_RCV_PKTS])
			break;
	assert_int_equal(w.spine[first]->port[1].count[FAB_RCV_PKTS], 20);
	/* Make the flow's trunk look busy, as a slow link would. */
	w.leaf[0]->port[HOSTS + 1 + first].end->lane[0].blocks += 1000;
	s = &w.t.stream[0];
	s->most = 21;
	s->next = w.t.now;
	fabt_run(&w.t, w.t.now + 20 * VB_USEC);
	w.leaf[0]->port[HOSTS + 1 + first].end->lane[0].blocks -= 1000;
	assert_int_equal(w.spine[first]->port[1].count[FAB_RCV_PKTS], 20);
	assert_int_equal(s->got, 21);
	/* A flow without a pause keeps its trunk, however busy. */
	for (first = 0; first < SPINES; first++)
		if (w.spine[first]->port[1].count[FAB_RCV_PKTS] == 1)
			break;
	w.leaf[0]->port[HOSTS + 1 + first].end->lane[0].blocks += 1000;
	s->most = 22;
	s->next = w.t.now;
	fabt_run(&w.t, w.t.now + 20 * VB_USEC);
	w.leaf[0]->port[HOSTS + 1 + first].end->lane[0].blocks -= 1000;
	assert_int_equal(w.spine[first]->port[1].count[FAB_RCV_PKTS], 2);
	fabt_fini(&w.t);
}

static void flows__leave_a_trunk_that_is_cut(void **state)
{
	struct tree w;
	uint64_t before;

	plant(&w, true);
	send_across(&w);
	fabt_run(&w.t, w.t.now + VB_MSEC);
	/* The linear forwarding table names the first spine, whose trunk is cut
	 * here. */
	assert_int_equal(
		vb_fab_plug(w.t.net, w.leaf[0], HOSTS + 2, false, w.t.now), 0);
	fabt_run(&w.t, w.t.now + VB_MSEC);
	before = moved(&w);
	fabt_run(&w.t, w.t.now + 10 * VB_MSEC);
	assert_true((double)(moved(&w) - before) / (10 * VB_MSEC) > 2.8);
	fabt_fini(&w.t);
}

/* A forwarding table may lead along a detour, for instance to avoid deadlocks.
 * Adaptive routing must follow that table. */
static void detour__is_obeyed(void **state)
{
	struct vb_fab_node *sw[3], *a, *b;
	struct stream *s;
	struct fabt t;

	fabt_init(&t, 1);
	for (unsigned i = 0; i < 3; i++)
		sw[i] = fabt_switch(&t, 3);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, sw[0], 1, sw[1], 1, &gb1);
	fabt_link(&t, sw[1], 2, sw[2], 2, &gb1);
	fabt_link(&t, sw[0], 2, sw[2], 1, &gb1);
	fabt_link(&t, a, 1, sw[0], 3, &gb1);
	fabt_link(&t, b, 1, sw[2], 3, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	sw[0]->sw.linear[fabt_lid(b)] = 1;
	sw[1]->sw.linear[fabt_lid(b)] = 2;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vb_fab_set_adaptive(sw[i], true), 0);
	s = fabt_stream(&t, a, b, FRAME);
	s->most = 100;
	fabt_run(&t, t.now + VB_MSEC);
	assert_int_equal(t.stream[0].got, 100);
	assert_int_equal(sw[1]->port[2].count[FAB_XMIT_PKTS], 100);
	fabt_fini(&t);
}

#define SEEDS	40
#define STREAMS 24

/* Random streams through a tree whose leaves all route adaptively, with slow
 * receivers and lost link packets: every frame arrives, in order. */
static void trees__keep_the_order_under_random_load(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / seeds_divisor(); seed++) {
		struct tree w;
		struct fabt *t = &w.t;

		plant(&w, false);
		t->random = seed * 0x9e3779b97f4a7c15ull | 1;
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(vb_fab_set_adaptive(w.leaf[i], true),
					 0);
		for (uint32_t i = 0; seed % 2 && i < t->net->links; i++) {
			struct link *l = t->net->link[i];
			struct vb_fab_link_spec s = l->spec;

			s.lose_flow = fabt_random(t) / 8;
			assert_int_equal(vb_fab_tune(t->net, l->a->node,
						     l->a->no, &s, t->now),
					 0);
		}
		t->hold_of_2_32 = seed % 3 ? fabt_random(t) / 8 : 0;
		for (unsigned i = 0; i < STREAMS; i++) {
			unsigned side = i % 2;
			struct stream *s = fabt_stream(
				t, w.host[side][fabt_random(t) % HOSTS],
				w.host[!side][fabt_random(t) % HOSTS],
				48 + 4 * (fabt_random(t) % 1000));

			s->period = fabt_random(t) % 20000;
			s->most = 100;
		}
		fabt_run(t, t->now + 50 * VB_MSEC);
		for (unsigned i = 0; i < STREAMS; i++)
			assert_int_equal(t->stream[i].got, 100);
		assert_int_equal(t->disordered, 0);
		fabt_fini(t);
	}
}

static void adaptive__only_switches_with_a_linear_table(void **state)
{
	struct vb_fab_node *ca, *sw;
	struct fabt t;

	fabt_init(&t, 1);
	ca = fabt_adapter(&t);
	sw = fabt_add(&t, &(struct vb_fab_node_spec){ .kind = FAB_SWITCH,
						      .ports = 2,
						      .random_cap = 8 });
	assert_int_equal(vb_fab_set_adaptive(ca, true), -EINVAL);
	assert_int_equal(vb_fab_set_adaptive(ca, false), -EINVAL);
	assert_int_equal(vb_fab_set_adaptive(sw, true), -EINVAL);
	/* Switching adaptive routing off where it is off is no error, because
	 * the command "node" does so with each change of another value. */
	assert_int_equal(vb_fab_set_adaptive(sw, false), 0);
	sw = fabt_switch(&t, 2);
	assert_int_equal(vb_fab_set_adaptive(sw, true), 0);
	assert_int_equal(vb_fab_set_adaptive(sw, true), 0);
	assert_int_equal(vb_fab_set_adaptive(sw, false), 0);
	assert_null(sw->sw.adaptive);
	fabt_fini(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(trunk__that_is_hot_spreads),
		cmocka_unit_test(trunk__spreads_where_lids_are_not_unique),
		cmocka_unit_test(flow__moves_only_after_silence),
		cmocka_unit_test(flows__leave_a_trunk_that_is_cut),
		cmocka_unit_test(detour__is_obeyed),
		cmocka_unit_test(trees__keep_the_order_under_random_load),
		cmocka_unit_test(adaptive__only_switches_with_a_linear_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
