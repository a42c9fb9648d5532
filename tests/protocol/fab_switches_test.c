/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches under load: how lanes share a link, latency over several hops, rings
 * that deadlock, frames whose lifetime ends, multicast groups, and slow
 * receivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/net_priv.h"
#include "tests/support/fabric.h"

#define GB    1000000000u
#define FRAME (4096 + 48)

static const struct vb_fab_link_spec gb1 = { .bytes_per_sec = GB };
static const struct vb_fab_link_spec gb4 = { .bytes_per_sec = 4ull * GB };

static void low_weights(struct vb_fab_node *n, unsigned port, uint8_t w0,
			uint8_t w1)
{
	struct vb_fab_port *p = &n->port[port];

	for (unsigned i = 0; i < VB_FAB_VLARB_MAX; i++)
		p->arb_low[i].weight = p->arb_high[i].weight = 0;
	p->arb_low[0] = (struct vb_fab_vlarb){ 0, w0 };
	p->arb_low[1] = (struct vb_fab_vlarb){ 1, w1 };
}

/* Two flows on SL 0 and 1 share a trunk as the weights demand, within 5 %,
 * whatever the sizes of their frames. */
static void lanes__share_a_trunk_by_weight(void **state)
{
	static const struct {
		uint8_t w0, w1;
		uint32_t len0, len1;
	} cases[] = {
		{ 1, 1, FRAME, FRAME },	  { 1, 3, FRAME, FRAME },
		{ 32, 64, FRAME, FRAME }, { 200, 50, 1024, FRAME },
		{ 2, 10, FRAME, 512 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_node *s1, *s2, *a[2], *b[2];
		struct stream *s;
		struct fabt t;
		uint64_t from[2];
		double ratio, want = (double)cases[i].w1 / cases[i].w0;

		fabt_init(&t, 1);
		s1 = fabt_switch(&t, 4);
		s2 = fabt_switch(&t, 4);
		for (unsigned k = 0; k < 2; k++) {
			a[k] = fabt_adapter(&t);
			b[k] = fabt_adapter(&t);
			fabt_link(&t, a[k], 1, s1, 1 + k, &gb1);
			fabt_link(&t, b[k], 1, s2, 1 + k, &gb1);
		}
		fabt_link(&t, s1, 4, s2, 4, &gb1);
		fabt_up(&t, FABT_SHORTEST, 2);
		low_weights(s1, 4, cases[i].w0, cases[i].w1);
		for (unsigned k = 0; k < 2; k++) {
			s = fabt_stream(&t, a[k], b[k],
					k ? cases[i].len1 : cases[i].len0);
			s->sl = (uint8_t)k;
		}
		fabt_run(&t, t.now + 2 * VB_MSEC);
		from[0] = t.stream[0].got_bytes;
		from[1] = t.stream[1].got_bytes;
		fabt_run(&t, t.now + 20 * VB_MSEC);
		ratio = (double)(t.stream[1].got_bytes - from[1]) /
			(double)(t.stream[0].got_bytes - from[0]);
		print_message("weights %u:%u, frames of %u and %u bytes: "
			      "1:%.3f, wanted 1:%.3f\n",
			      cases[i].w0, cases[i].w1, cases[i].len0,
			      cases[i].len1, ratio, want);
		assert_true(ratio > want * 0.95 && ratio < want * 1.05);
		fabt_fini(&t);
	}
}

/* Returns how many ns a frame of 4144 bytes needs through three switches. */
static vb_time three_hops(bool store, uint64_t first, uint64_t others)
{
	struct vb_fab_link_spec l = { .delay = 50 };
	struct vb_fab_node *sw[3], *a, *b;
	struct stream *s;
	struct fabt t;
	vb_time ns;

	fabt_init(&t, 1);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	for (unsigned i = 0; i < 3; i++) {
		sw[i] = fabt_switch(&t, 2);
		sw[i]->sw.store_and_forward = store;
	}
	l.bytes_per_sec = first;
	fabt_link(&t, a, 1, sw[0], 1, &l);
	l.bytes_per_sec = others;
	fabt_link(&t, sw[0], 2, sw[1], 1, &l);
	fabt_link(&t, sw[1], 2, sw[2], 1, &l);
	fabt_link(&t, sw[2], 2, b, 1, &l);
	fabt_up(&t, FABT_SHORTEST, 1);
	fabt_run(&t, t.now + VB_MSEC);
	s = fabt_stream(&t, a, b, FRAME);
	s->most = 1;
	fabt_run(&t, t.now + VB_MSEC);
	assert_int_equal(s->got, 1);
	ns = s->last_latency;
	fabt_fini(&t);
	return ns;
}

static void hops__cut_through_and_store_and_forward(void **state)
{
	/* The expected time: 4 links of 50 ns and 3 switches of 100 ns; LRH to
	 * VCRC and two delimiters once, or once for each link. */
	vb_time frame = FRAME + 4, fixed = 4 * 50 + 3 * 100;
	vb_time cut = three_hops(false, GB, GB);
	vb_time store = three_hops(true, GB, GB);

	print_message("3 hops at 1 GB/s: %llu ns cut-through, %llu ns stored\n",
		      (unsigned long long)cut, (unsigned long long)store);
	assert_int_equal(cut, fixed + frame);
	assert_int_equal(store, fixed + 4 * frame);
	/* If the output is faster than the input, a cut-through frame would run
	 * out of bytes. So this switch stores the whole frame first. */
	assert_int_equal(three_hops(false, GB, 2ull * GB),
			 fixed + frame + frame / 2);
	assert_int_equal(three_hops(false, 2ull * GB, GB), fixed + frame);
}

#define RING 5

/*
 * Make a ring of switches, in which each adapter sends to the one two switches
 * further. With @layers, flows that pass the link between the last switch and
 * the first have a lane of their own, as opensm's dfsssp and lash do it: no
 * lane has a cycle of waiting frames then. Returns how many frames arrived in
 * the last part of @span.
 */
static uint64_t ring_of(struct fabt *t, enum fabt_routes routes, bool layers,
			uint8_t life, vb_time span)
{
	struct vb_fab_link_spec l = { .bytes_per_sec = GB,
				      .delay = VB_USEC,
				      .buffer = 200 };
	struct vb_fab_node *sw[RING], *a[RING];
	uint64_t before = 0, after = 0;

	fabt_init(t, 1);
	for (unsigned i = 0; i < RING; i++) {
		sw[i] = fabt_switch(t, 3);
		sw[i]->sw.life = life;
	}
	for (unsigned i = 0; i < RING; i++) {
		a[i] = fabt_adapter(t);
		fabt_link(t, sw[i], 1, sw[(i + 1) % RING], 2, &l);
		fabt_link(t, a[i], 1, sw[i], 3, &gb1);
	}
	fabt_up(t, routes, 1);
	for (unsigned i = 0; i < RING; i++)
		fabt_stream(t, a[i], a[(i + 2) % RING], FRAME)->sl =
			layers && i + 2 >= RING;
	fabt_run(t, t->now + span);
	for (unsigned i = 0; i < RING; i++)
		before += t->stream[i].got;
	fabt_run(t, t->now + span);
	for (unsigned i = 0; i < RING; i++)
		after += t->stream[i].got;
	return after - before;
}

static uint64_t ring(struct fabt *t, enum fabt_routes routes, uint8_t life,
		     vb_time span)
{
	return ring_of(t, routes, false, life, span);
}

static void ring__deadlocks_with_shortest_routes(void **state)
{
	struct fabt t;

	assert_int_equal(ring(&t, FABT_SHORTEST, 20, 10 * VB_MSEC), 0);
	assert_true(fabt_sum(&t, FAB_XMIT_WAIT) > 0);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_DISCARDS), 0);
	fabt_fini(&t);
}

/* The switches' frame lifetime, 4.096 us * 2^6, ends the deadlock of the ring.
 * While all adapters send as much as they can, the ring deadlocks again. When
 * they send less, every frame arrives. */
static void ring__recovers_by_lifetime(void **state)
{
	struct fabt t;
	uint64_t moved = ring(&t, FABT_SHORTEST, 6, 10 * VB_MSEC);

	print_message("a ring with lifetimes: %llu frames in 10 ms\n",
		      (unsigned long long)moved);
	assert_true(moved > 30);
	assert_true(fabt_sum(&t, FAB_XMIT_LIFETIME) > 0);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_LIFETIME),
			 fabt_sum(&t, FAB_XMIT_DISCARDS));
	assert_int_equal(fabt_sum(&t, FAB_RCV_OVERRUN), 0);
	for (unsigned i = 0; i < RING; i++)
		t.stream[i].most = 0;
	fabt_run(&t, t.now + 20 * VB_MSEC);
	for (unsigned i = 0; i < RING; i++) {
		struct stream *s = &t.stream[i];

		s->lost = 0;
		s->got = 0;
		s->next_seq = s->sent;
		s->most = s->sent + 100;
		s->period = 20 * VB_USEC;
		s->next = t.now;
	}
	fabt_run(&t, t.now + 5 * VB_MSEC);
	for (unsigned i = 0; i < RING; i++)
		assert_int_equal(t.stream[i].got, 100);
	fabt_fini(&t);
}

static void ring__up_and_down_does_not_deadlock(void **state)
{
	struct fabt t;

	/* The ring carries at least one flow's rate, 2.4 frames in 10 us. */
	assert_true(ring(&t, FABT_UP_DOWN, 20, 10 * VB_MSEC) > 2400);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_DISCARDS), 0);
	fabt_fini(&t);
}

/* With these shortest routes and only one lane the ring would deadlock. */
static void ring__with_layers_does_not_deadlock(void **state)
{
	struct fabt t;

	assert_true(ring_of(&t, FABT_SHORTEST, true, 20, 10 * VB_MSEC) > 2400);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_DISCARDS), 0);
	fabt_fini(&t);
}

/* A handler of frames for an adapter that accepts no frame. */
static bool hold_all(struct fabt *t, struct vb_fab_node *node, uint8_t port,
		     const uint8_t *bytes, size_t len)
{
	return false;
}

static void hoq__limits_who_waits_for_a_slow_receiver(void **state)
{
	struct vb_fab_node *sw, *a, *b;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 2);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, a, 1, sw, 1, &gb1);
	fabt_link(&t, b, 1, sw, 2, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	/* a frame may wait 131 us at the head of the switch's queue */
	sw->port[2].hoq_life = 5;
	t.on_local = hold_all;
	t.hold_of_2_32 = ~0u;
	fabt_stream(&t, a, b, FRAME);
	for (unsigned i = 0; i < 20; i++)
		fabt_run(&t, t.now + VB_MSEC);
	/* The switch discards one frame every 131 us. */
	assert_in_range(sw->port[2].count[FAB_XMIT_HOQ], 130, 160);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_DISCARDS),
			 sw->port[2].count[FAB_XMIT_HOQ]);
	/* After three discarded frames in a row the lane discards everything
	 * for 8 times as long. */
	sw->port[2].vl_stall = 3;
	fabt_run(&t, t.now + 2 * VB_MSEC);
	assert_true(sw->port[2].count[FAB_XMIT_HOQ] > 500);
	fabt_fini(&t);
}

/* A receiver that does not accept frames keeps their credits. No frame is lost,
 * and their order is kept, when it accepts them later. */
static void hold__keeps_frames_and_order(void **state)
{
	struct vb_fab_node *sw, *a, *b;
	struct stream *s;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 2);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, a, 1, sw, 1, &gb1);
	fabt_link(&t, b, 1, sw, 2, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	t.hold_of_2_32 = ~0u;
	s = fabt_stream(&t, a, b, FRAME);
	fabt_run(&t, t.now + VB_MSEC);
	assert_int_equal(s->got, 0);
	/* The receiver's buffer is full: 31 frames of 65 blocks, and one on the
	 * way. */
	assert_in_range(b->port[1].count[FAB_RCV_PKTS], 31, 31);
	t.hold_of_2_32 = 0;
	s->most = s->sent;
	vb_fab_resume(t.net, b, 1, t.now);
	fabt_run(&t, t.now + VB_MSEC);
	assert_int_equal(s->got, s->sent);
	assert_int_equal(s->lost + t.disordered, 0);
	fabt_fini(&t);
}

static uint64_t got_by[8];

static bool count_by_node(struct fabt *t, struct vb_fab_node *node,
			  uint8_t port, const uint8_t *bytes, size_t len)
{
	got_by[node->index]++;
	assert_true(vb_lrh_icrc_good(bytes, len));
	return true;
}

/* A multicast group over two switches: each member except the sender gets each
 * frame once, and so does the switch that is a member; buffers are free
 * afterwards. */
static void multicast__reaches_every_member_once(void **state)
{
	struct vb_fab_node *s1, *s2, *a[4];
	struct stream *s;
	struct fabt t;

	fabt_init(&t, 1);
	s1 = fabt_switch(&t, 4);
	s2 = fabt_switch(&t, 4);
	for (unsigned i = 0; i < 4; i++) {
		a[i] = fabt_adapter(&t);
		fabt_link(&t, a[i], 1, i < 2 ? s1 : s2, 1 + i % 2, &gb1);
	}
	fabt_link(&t, s1, 4, s2, 4, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	s1->sw.mcast[7].ports[0] = 1u << 1 | 1u << 2 | 1u << 4;
	s2->sw.mcast[7].ports[0] = 1u << 0 | 1u << 1 | 1u << 4;
	t.on_local = count_by_node;
	s = fabt_stream(&t, a[0], a[1], FRAME);
	s->dlid = 0xc007;
	s->most = 300;
	fabt_run(&t, t.now + 5 * VB_MSEC);
	assert_int_equal(got_by[a[0]->index], 0);
	assert_int_equal(got_by[a[1]->index], 300);
	assert_int_equal(got_by[a[2]->index], 300);
	assert_int_equal(got_by[a[3]->index], 0);
	assert_int_equal(got_by[s2->index], 300);
	assert_int_equal(got_by[s1->index], 0);
	assert_int_equal(s1->port[4].count[FAB_XMIT_MCAST_PKTS], 300);
	assert_int_equal(s2->port[4].count[FAB_RCV_MCAST_PKTS], 300);
	assert_int_equal(s1->port[1].end->flow[0].used, 0);
	assert_int_equal(s2->port[4].end->flow[0].used, 0);
	fabt_fini(&t);
}

static void partitions__make_an_event(void **state)
{
	struct vb_fab_node *sw, *a, *b;
	struct stream *s;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 2);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, a, 1, sw, 1, &gb1);
	fabt_link(&t, b, 1, sw, 2, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	sw->port[1].pkey_in = true;
	sw->port[1].pkey[0] = 0x8001;
	s = fabt_stream(&t, a, b, FRAME);
	s->most = 100;
	fabt_run(&t, t.now + 2 * VB_MSEC);
	assert_int_equal(sw->port[1].count[FAB_RCV_CONSTRAINT], 100);
	assert_int_equal(t.events[FAB_EV_PKEY], 100);
	assert_int_equal(s->got, 0);
	sw->port[1].pkey_in = false;
	sw->port[2].pkey_out = true;
	sw->port[2].pkey[0] = 0x8001;
	s->most = 150;
	s->next = t.now;
	fabt_run(&t, t.now + 2 * VB_MSEC);
	assert_int_equal(sw->port[2].count[FAB_XMIT_CONSTRAINT], 50);
	/* port 2 has the default partition as a limited member */
	sw->port[2].pkey[9] = 0x7fff;
	s->most = 170;
	s->next = t.now;
	fabt_run(&t, t.now + 2 * VB_MSEC);
	assert_int_equal(s->got, 20);
	fabt_fini(&t);
}

/* The counters of single VLs add up to the counters of the port; counters of
 * words are bytes divided by 4. */
static void counters__agree(void **state)
{
	struct vb_fab_node *sw, *a, *b;
	struct vb_fab_port *in, *out;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 2);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, a, 1, sw, 1, &gb4);
	fabt_link(&t, b, 1, sw, 2, &gb1);
	fabt_up(&t, FABT_SHORTEST, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct stream *s = fabt_stream(&t, a, b, i ? 512 : FRAME);

		s->sl = (uint8_t)i;
		s->most = 500 + i;
	}
	fabt_run(&t, t.now + 10 * VB_MSEC);
	in = &sw->port[1];
	out = &sw->port[2];
	assert_int_equal(out->count[FAB_XMIT_PKTS], 1001);
	assert_int_equal(out->vl[0].xmit_pkts, 500);
	assert_int_equal(out->vl[1].xmit_pkts, 501);
	assert_int_equal(out->vl[1].xmit_words, 501 * 512 / 4);
	assert_int_equal(out->count[FAB_XMIT_WORDS],
			 (500 * FRAME + 501 * 512) / 4);
	assert_int_equal(b->port[1].count[FAB_RCV_WORDS],
			 out->count[FAB_XMIT_WORDS]);
	assert_int_equal(in->count[FAB_RCV_PKTS], 1001);
	assert_int_equal(in->vl[1].rcv_pkts, 501);
	/* The adapter has data and no credits for most of the time. */
	assert_true(a->port[1].count[FAB_XMIT_WAIT] > 1000);
	assert_true(a->port[1].vl[0].xmit_wait > 1000);
	fabt_fini(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes__share_a_trunk_by_weight),
		cmocka_unit_test(hops__cut_through_and_store_and_forward),
		cmocka_unit_test(ring__deadlocks_with_shortest_routes),
		cmocka_unit_test(ring__recovers_by_lifetime),
		cmocka_unit_test(ring__up_and_down_does_not_deadlock),
		cmocka_unit_test(ring__with_layers_does_not_deadlock),
		cmocka_unit_test(hoq__limits_who_waits_for_a_slow_receiver),
		cmocka_unit_test(hold__keeps_frames_and_order),
		cmocka_unit_test(multicast__reaches_every_member_once),
		cmocka_unit_test(partitions__make_an_event),
		cmocka_unit_test(counters__agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
