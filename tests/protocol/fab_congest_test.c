/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control from end to end: switches mark frames, adapters notify the
 * sources, the sources slow down, and flows that cause no congestion keep their
 * share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fabric/net_priv.h"
#include "tests/support/fabric.h"

#define GB    1000000000u
#define FRAME (4096 + 48)

static const struct vb_fab_link_spec gb1 = { .bytes_per_sec = GB };

#define SOURCES 8

/* Congestion control settings that a manager might write: each entry of the
 * congestion control table adds a quarter of a frame's time, and the recovery
 * timer takes one step back after 41 us. */
static void control(struct vb_fab_node *n)
{
	struct vb_fab_cc *cc = n->port[1].cc;

	cc->control_map = 1;
	cc->limit = VB_FAB_CCT - 1;
	cc->sl[0] = (struct vb_fab_cc_sl){ .increase = 1, .timer = 40 };
	for (unsigned i = 0; i < VB_FAB_CCT; i++)
		cc->cct[i] = (uint16_t)(2u << 14 | i);
}

/* Eight sources send to one adapter (hot), and a ninth source (the victim)
 * sends to another one, over a trunk that has room for all. Returns the
 * victim's share of its link. */
static double victim(struct fabt *t, uint32_t threshold, bool controlled,
		     double *hot_share)
{
	struct vb_fab_link_spec trunk = { .bytes_per_sec = 10ull * GB };
	struct vb_fab_node *s1, *s2, *hot, *cold, *a[SOURCES + 1];
	struct stream *v = NULL;
	uint64_t before, hot_before;

	fabt_init(t, 1);
	s1 = fabt_switch(t, SOURCES + 2);
	s2 = fabt_switch(t, 3);
	hot = fabt_adapter(t);
	cold = fabt_adapter(t);
	fabt_link(t, hot, 1, s2, 1, &gb1);
	fabt_link(t, cold, 1, s2, 2, &gb1);
	fabt_link(t, s1, SOURCES + 2, s2, 3, &trunk);
	for (unsigned i = 0; i <= SOURCES; i++) {
		a[i] = fabt_adapter(t);
		fabt_link(t, a[i], 1, s1, 1 + i, &gb1);
	}
	fabt_up(t, FABT_SHORTEST, 1);
	s2->port[1].marking.threshold = threshold;
	for (unsigned i = 0; i <= SOURCES; i++) {
		v = fabt_stream(t, a[i], i < SOURCES ? hot : cold, FRAME);
		if (controlled)
			control(a[i]);
	}
	fabt_run(t, t->now + 10 * VB_MSEC);
	before = v->got_bytes;
	hot_before = s2->port[1].count[FAB_XMIT_WORDS];
	fabt_run(t, t->now + 10 * VB_MSEC);
	*hot_share = 4 *
		     (double)(s2->port[1].count[FAB_XMIT_WORDS] - hot_before) /
		     (10 * VB_MSEC);
	return (double)(v->got_bytes - before) / (10 * VB_MSEC);
}

static void incast__starves_a_victim(void **state)
{
	struct fabt t;
	double hot, share = victim(&t, 0, false, &hot);

	print_message("incast without congestion control: the victim has "
		      "%.1f %% of its link\n",
		      share * 100);
	assert_true(share < 0.2);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_FECN), 0);
	assert_int_equal(fabt_sum(&t, FAB_XMIT_DISCARDS), 0);
	fabt_fini(&t);
}

/* The port that is the root of the congestion marks the frames of the eight
 * sources, and not the victim's. */
static void incast__marks_who_causes_it(void **state)
{
	struct fabt t;
	double hot;

	victim(&t, 200, false, &hot);
	assert_int_equal(t.stream[SOURCES].marked, 0);
	for (unsigned i = 0; i < SOURCES; i++)
		assert_true(t.stream[i].marked > 100);
	assert_int_equal(t.bad_icrc, 0);
	fabt_fini(&t);
}

/* A port that only waits for credits is a victim of congestion. It marks frames
 * only if its Victim_Mask says so. */
static void marks__of_a_victim_are_optional(void **state)
{
	for (unsigned victim_too = 0; victim_too < 2; victim_too++) {
		struct vb_fab_node *sw, *a, *b;
		struct fabt t;

		fabt_init(&t, 1);
		sw = fabt_switch(&t, 2);
		a = fabt_adapter(&t);
		b = fabt_adapter(&t);
		fabt_link(&t, a, 1, sw, 1, &gb1);
		fabt_link(&t, b, 1, sw, 2, &gb1);
		fabt_up(&t, FABT_SHORTEST, 1);
		sw->port[2].marking.threshold = 200;
		sw->port[2].marking.victim = victim_too;
		t.hold_of_2_32 = ~0u;
		fabt_stream(&t, a, b, FRAME);
		fabt_run(&t, t.now + VB_MSEC);
		assert_true((sw->port[2].count[FAB_XMIT_FECN] > 10) ==
			    victim_too);
		assert_true(victim_too ||
			    sw->port[2].count[FAB_XMIT_FECN] == 0);
		fabt_fini(&t);
	}
}

/* With congestion control the victim uses its whole link, and the link to the
 * hot adapter is still used. */
static void incast__with_control_leaves_the_victim_its_share(void **state)
{
	struct fabt t;
	double hot, share = victim(&t, 200, true, &hot);

	print_message("incast with congestion control: the victim has %.1f %% "
		      "of its link, the eight use %.1f %% of theirs; %llu "
		      "frames marked, %llu notifications\n",
		      share * 100, hot * 100,
		      (unsigned long long)fabt_sum(&t, FAB_RCV_FECN),
		      (unsigned long long)fabt_sum(&t, FAB_RCV_BECN));
	assert_true(fabt_sum(&t, FAB_RCV_BECN) > 100);
	assert_int_equal(t.stream[SOURCES].marked, 0);
	assert_true(share >= 0.9);
	assert_true(hot >= 0.8);
	assert_int_equal(t.disordered, 0);
	fabt_fini(&t);
}

/* One adapter sends to a hot receiver and to an idle one: only the flow to the
 * hot receiver slows down, and the flow to the idle one is not delayed. */
static void flows__of_one_adapter_are_apart(void **state)
{
	struct vb_fab_link_spec fast = { .bytes_per_sec = 4ull * GB };
	struct vb_fab_node *sw, *hot, *cold, *a;
	struct stream *s;
	uint64_t to_hot, to_cold;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 3);
	hot = fabt_adapter(&t);
	cold = fabt_adapter(&t);
	a = fabt_adapter(&t);
	fabt_link(&t, hot, 1, sw, 1, &gb1);
	fabt_link(&t, cold, 1, sw, 2, &gb1);
	fabt_link(&t, a, 1, sw, 3, &fast);
	fabt_up(&t, FABT_SHORTEST, 1);
	sw->port[1].marking.threshold = 200;
	control(a);
	a->port[1].cc->sl[0].trigger = 3;
	s = fabt_stream(&t, a, hot, FRAME);
	/* the stream sends twice as fast as the receiver's link carries */
	s->period = FRAME / 2;
	s = fabt_stream(&t, a, cold, FRAME);
	s->period = FRAME + FRAME / 8;
	fabt_run(&t, t.now + 10 * VB_MSEC);
	to_hot = t.stream[0].got_bytes;
	to_cold = t.stream[1].got_bytes;
	fabt_run(&t, t.now + 10 * VB_MSEC);
	to_hot = t.stream[0].got_bytes - to_hot;
	to_cold = t.stream[1].got_bytes - to_cold;
	print_message("to the hot receiver %.2f GB/s, to the idle one %.2f\n",
		      (double)to_hot / (10 * VB_MSEC),
		      (double)to_cold / (10 * VB_MSEC));
	assert_in_range(to_cold, GB / 1000 * 8, GB / 1000 * 10);
	assert_in_range(to_hot, GB / 1000 * 7, GB / 1000 * 10);
	assert_int_equal(t.disordered, 0);
	/* Check the congestion logs and counters of the fabric's nodes. */
	assert_true(sw->sw.cc_log.count > 0);
	assert_int_equal(sw->sw.cc_log.ports[0], 1u << 1);
	assert_int_equal(sw->sw.cc_log.event[0].dlid, fabt_lid(hot));
	assert_int_equal(sw->sw.cc_log.event[0].slid, fabt_lid(a));
	assert_int_equal(a->port[1].cc->log.event[0].slid, fabt_lid(hot));
	assert_int_equal(a->port[1].cc->log.sls, 1);
	assert_true(sw->port[1].vl[0].time_cong > 0);
	assert_int_equal(sw->port[1].vl[0].time_cong,
			 sw->port[1].count[FAB_XMIT_TIME_CONG]);
	assert_int_equal(sw->port[2].count[FAB_XMIT_TIME_CONG], 0);
	assert_int_equal(a->port[1].sl[0].rcv_becn,
			 a->port[1].count[FAB_RCV_BECN]);
	fabt_fini(&t);
}

/* A BECN for @peer arrives at the adapter @a. */
static void notify(struct fabt *t, struct vb_fab_node *a, uint16_t peer)
{
	const struct vb_lrh h = { .lnh = LNH_LOCAL,
				  .dlid = fabt_lid(a),
				  .slid = peer,
				  .words = 24 / 4 };
	uint8_t bytes[24 + VB_VCRC_BYTES] = { 0 };
	uint16_t crc;

	vb_lrh_put(bytes, &h);
	bytes[8] = 0x80; /* a CN packet */
	bytes[12] = 0x40;
	bytes[10] = bytes[11] = 0xff;
	vb_lrh_put_icrc(bytes, 24);
	crc = vb_vcrc(bytes, 24);
	bytes[24] = (uint8_t)crc;
	bytes[25] = (uint8_t)(crc >> 8);
	assert_int_equal(
		vb_fab_arrive(t->net, a, 1, bytes, sizeof(bytes), t->now), 0);
}

/* Make one switch and @count adapters. The first adapter gets LID 1. */
static void make_star(struct fabt *t, struct vb_fab_node **a, unsigned count)
{
	struct vb_fab_node *sw;

	fabt_init(t, 1);
	sw = fabt_switch(t, count);
	for (unsigned i = 0; i < count; i++) {
		a[i] = fabt_adapter(t);
		fabt_link(t, a[i], 1, sw, 1 + i, &gb1);
	}
	fabt_up(t, FABT_SHORTEST, 1);
	control(a[0]);
	a[0]->port[1].cc->sl[0].increase = 100;
	a[0]->port[1].cc->sl[0].timer = 65535;
}

/* The flow to one LID is slowed down, and no other one of 200 is, whatever
 * their LIDs have in common. */
static void flows__are_apart_whatever_their_lids(void **state)
{
	struct vb_fab_node *a[201];
	struct fabt t;

	make_star(&t, a, VB_COUNT(a));
	notify(&t, a[0], fabt_lid(a[7]));
	fabt_run(&t, t.now + VB_USEC);
	assert_int_equal(a[0]->port[1].count[FAB_RCV_BECN], 1);
	for (unsigned i = 1; i < VB_COUNT(a); i++) {
		struct stream *s = fabt_stream(&t, a[0], a[i], FRAME);

		/* A slowed adapter waits 25 frames' time after each frame. */
		s->most = 4;
		fabt_run(&t, t.now + 12 * FRAME);
		assert_int_equal(s->got, i == 7 ? 1 : 4);
		s->most = 0;
	}
	fabt_fini(&t);
}

/* A port remembers the flows that were notified, but not more than some
 * thousands, and forgets those that have recovered. */
static void flows__of_ever_more_peers_are_bounded(void **state)
{
	struct vb_fab_node *a[3];
	struct stream *s;
	struct fabt t;

	make_star(&t, a, VB_COUNT(a));
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned lid = 100; lid < 10100; lid++) {
			notify(&t, a[0], (uint16_t)lid);
			fabt_run(&t, t.now + 10);
		}
		/* The port already remembers the most flows, so this flow is
		 * not slowed down. */
		notify(&t, a[0], fabt_lid(a[1]));
		fabt_run(&t, t.now + VB_USEC);
		s = fabt_stream(&t, a[0], a[1], FRAME);
		s->most = 4;
		fabt_run(&t, t.now + 12 * FRAME);
		assert_int_equal(s->got, 4);
		s->most = 0;
		/* An index of 100 needs 100 recovery steps of 67 ms to become
		 * 0. */
		fabt_run(&t, t.now + 7 * VB_SEC);
		notify(&t, a[0], fabt_lid(a[2]));
		fabt_run(&t, t.now + VB_USEC);
		s = fabt_stream(&t, a[0], a[2], FRAME);
		s->most = 4;
		fabt_run(&t, t.now + 12 * FRAME);
		assert_int_equal(s->got, 1);
		fabt_run(&t, t.now + 30 * VB_SEC);
		assert_int_equal(s->got, 4);
		s->most = 0;
	}
	fabt_fini(&t);
}

/* A BECN in a frame of a program, such as the ACK of a connection: the program
 * gets the frame, and the flow to the frame's source slows down. A program does
 * not get a CN packet, and a CN packet with a wrong ICRC has no effect. */
static void becn__in_any_frame(void **state)
{
	static const struct {
		uint8_t opcode, flags;
		bool damaged;
		unsigned handed_out, slows;
	} cases[] = {
		{ 0x11, 0x40, false, 1, 1 }, { 0x11, 0, false, 1, 0 },
		{ 0x80, 0x40, false, 0, 1 }, { 0x80, 0, false, 0, 0 },
		{ 0x80, 0x40, true, 0, 0 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_node *sw, *a, *b;
		uint8_t bytes[64];
		struct stream back;
		struct fabt t;

		fabt_init(&t, 1);
		sw = fabt_switch(&t, 2);
		a = fabt_adapter(&t);
		b = fabt_adapter(&t);
		fabt_link(&t, a, 1, sw, 1, &gb1);
		fabt_link(&t, b, 1, sw, 2, &gb1);
		fabt_up(&t, FABT_SHORTEST, 1);
		control(a);
		a->port[1].cc->sl[0].increase = 100;
		a->port[1].cc->sl[0].timer = 65535;
		back = *fabt_stream(&t, b, a, sizeof(bytes));
		t.stream[0].most = 0;
		fabt_frame(&back, 0, t.now, bytes);
		bytes[8] = cases[i].opcode;
		bytes[12] = cases[i].flags;
		vb_lrh_put_icrc(bytes, sizeof(bytes));
		bytes[60] ^= cases[i].damaged;
		assert_int_equal(
			vb_fab_send(t.net, b, 1, bytes, sizeof(bytes), t.now),
			0);
		fabt_run(&t, t.now + VB_USEC);
		assert_int_equal(t.stream[0].got + t.bad_icrc,
				 cases[i].handed_out);
		assert_int_equal(a->port[1].count[FAB_RCV_BECN],
				 cases[i].slows);
		/* A slowed adapter waits 25 frames' time after each frame. */
		fabt_stream(&t, a, b, FRAME);
		fabt_run(&t, t.now + 30 * FRAME);
		if (cases[i].slows)
			assert_in_range(t.stream[1].got, 1, 2);
		else
			assert_in_range(t.stream[1].got, 27, 30);
		fabt_fini(&t);
	}
}

/* When a link goes down, the frames that wait in its flows are discarded and
 * counted, and the sender gets the event that there is room. */
static void flows__end_with_their_link(void **state)
{
	struct vb_fab_node *sw, *b, *a;
	struct stream *s;
	struct fabt t;

	fabt_init(&t, 1);
	sw = fabt_switch(&t, 2);
	a = fabt_adapter(&t);
	b = fabt_adapter(&t);
	fabt_link(&t, a, 1, sw, 1, &gb1);
	fabt_link(&t, b, 1, sw, 2, &gb1);
	fabt_up(&t, FABT_SHORTEST, 1);
	control(a);
	a->port[1].cc->sl[0].min = VB_FAB_CCT - 1;
	s = fabt_stream(&t, a, b, FRAME);
	s->most = 10;
	fabt_run(&t, t.now + 5 * VB_USEC);
	/* A flow takes 512 blocks: more frames than eight have to wait. */
	assert_in_range(s->sent, 8, 9);
	assert_int_equal(vb_fab_plug(t.net, a, 1, false, t.now), 0);
	assert_in_range(a->port[1].count[FAB_XMIT_INACTIVE], 7, 9);
	assert_true(t.events[FAB_EV_ROOM] > 0);
	fabt_run(&t, t.now + VB_SEC);
	assert_true(s->got <= 1);
	fabt_fini(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(incast__starves_a_victim),
		cmocka_unit_test(incast__marks_who_causes_it),
		cmocka_unit_test(marks__of_a_victim_are_optional),
		cmocka_unit_test(
			incast__with_control_leaves_the_victim_its_share),
		cmocka_unit_test(flows__of_one_adapter_are_apart),
		cmocka_unit_test(flows__end_with_their_link),
		cmocka_unit_test(becn__in_any_frame),
		cmocka_unit_test(flows__are_apart_whatever_their_lids),
		cmocka_unit_test(flows__of_ever_more_peers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
