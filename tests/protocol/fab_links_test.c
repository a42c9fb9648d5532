/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of links: what they transport, how they come up and go down, and the
 * effects of their errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/fabric.h"
#include "wire/lrh.h"

#define GB    1000000000u
#define FRAME (4096 + 48)

/* Two adapters, each behind a switch, and a trunk between the switches, from
 * port 3 to port 3. */
struct pair {
	struct fabt t;
	struct vb_fab_node *a, *b, *s1, *s2;
};

static void make_pair(struct pair *p, uint64_t rate,
		      const struct vb_fab_link_spec *trunk)
{
	struct vb_fab_link_spec edge = { .bytes_per_sec = rate };

	fabt_init(&p->t, 1);
	p->s1 = fabt_switch(&p->t, 4);
	p->s2 = fabt_switch(&p->t, 4);
	p->a = fabt_adapter(&p->t);
	p->b = fabt_adapter(&p->t);
	fabt_link(&p->t, p->a, 1, p->s1, 1, &edge);
	fabt_link(&p->t, p->b, 1, p->s2, 1, &edge);
	fabt_link(&p->t, p->s1, 3, p->s2, 3, trunk);
	fabt_up(&p->t, FABT_SHORTEST, 1);
	/* By now the first link packets have crossed the longest trunk of a
	 * test. */
	fabt_run(&p->t, p->t.now + 2 * VB_MSEC);
}

/* Returns the throughput, in bytes per ns, of a stream that always has more to
 * send. It is measured for @span, after @warm. */
static double goodput(struct pair *p, vb_time warm, vb_time span)
{
	struct stream *s = fabt_stream(&p->t, p->a, p->b, FRAME);
	uint64_t before;

	fabt_run(&p->t, p->t.now + warm);
	before = s->got_bytes;
	fabt_run(&p->t, p->t.now + span);
	assert_int_equal(s->lost, 0);
	return (double)(s->got_bytes - before) / (double)span;
}

/* A buffer of 2048 blocks holds 128 KiB, so at most 128 KiB are on the link. A
 * link therefore carries at most 128 KiB in the round trip plus the time for
 * which the receiver collects freed blocks before it sends credits. */
static void credits__of_12_and_24_bits_on_a_long_link(void **state)
{
	static const struct {
		uint64_t rate;
		vb_time delay;
		bool extended;
		double low, high;
	} cases[] = {
		{ 1 * (uint64_t)GB, 50 * VB_USEC, false, 0.985, 1.0 },
		{ 4 * (uint64_t)GB, 50 * VB_USEC, false, 1.10, 1.311 },
		{ 1 * (uint64_t)GB, 500 * VB_USEC, false, 0.115, 0.1311 },
		{ 4 * (uint64_t)GB, 500 * VB_USEC, false, 0.115, 0.1311 },
		{ 1 * (uint64_t)GB, 500 * VB_USEC, true, 0.945, 1.0 },
		{ 4 * (uint64_t)GB, 500 * VB_USEC, true, 3.58, 4.0 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_link_spec trunk = {
			.bytes_per_sec = cases[i].rate,
			.delay = cases[i].delay,
			.extended = cases[i].extended,
			.buffer = cases[i].extended ? 65536 : 2048,
		};
		struct pair p;
		double got;
		bool waits;

		make_pair(&p, cases[i].rate, &trunk);
		got = goodput(&p, 10 * VB_MSEC, 40 * VB_MSEC);
		print_message("%.0f GB/s, %3.0f us%s: %.3f GB/s\n",
			      (double)cases[i].rate / GB,
			      (double)cases[i].delay / VB_USEC,
			      cases[i].extended ? ", extender" : "", got);
		assert_true(got > cases[i].low && got < cases[i].high);
		waits = p.s1->port[3].count[FAB_XMIT_WAIT] > 1000000;
		if (!cases[i].extended)
			assert_true(waits ==
				    (got * GB < (double)cases[i].rate * 0.9));
		assert_int_equal(fabt_sum(&p.t, FAB_XMIT_DISCARDS), 0);
		assert_int_equal(fabt_sum(&p.t, FAB_RCV_OVERRUN), 0);
		fabt_fini(&p.t);
	}
}

static void rate__of_width_and_speed(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct pair p;
	double got;

	make_pair(&p, 0, &trunk);
	assert_int_equal(p.s1->port[3].width_active, FAB_4X);
	assert_int_equal(p.s1->port[3].speed_active, FAB_QDR);
	got = goodput(&p, VB_MSEC, 10 * VB_MSEC);
	assert_true(got > 3.98 && got < 4.0);
	fabt_fini(&p.t);
}

static void width__is_the_best_of_both(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct pair p;

	make_pair(&p, 0, &trunk);
	p.s1->port[3].width_enabled = FAB_1X;
	p.s2->port[3].speed_enabled = FAB_SDR | FAB_DDR;
	assert_int_equal(
		vb_fab_set_phys(p.t.net, p.s1, 3, FAB_POLLING, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(p.s2->port[3].state, FAB_INIT);
	assert_int_equal(p.s2->port[3].width_active, FAB_1X);
	assert_int_equal(p.s1->port[3].speed_active, FAB_DDR);
	/* With no common width the link stays down until a width is common. */
	p.s2->port[3].width_enabled = FAB_4X;
	assert_int_equal(
		vb_fab_set_phys(p.t.net, p.s1, 3, FAB_POLLING, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(p.s2->port[3].state, FAB_DOWN);
	assert_int_equal(p.s2->port[3].phys, FAB_POLLING);
	p.s1->port[3].width_enabled = FAB_4X;
	assert_int_equal(
		vb_fab_set_phys(p.t.net, p.s2, 3, FAB_POLLING, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(p.s2->port[3].state, FAB_INIT);
	fabt_fini(&p.t);
}

static void states__move_as_the_table_says(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct pair p;
	struct vb_fab_port *near, *far;

	make_pair(&p, 0, &trunk);
	near = &p.s1->port[3];
	far = &p.s2->port[3];
	p.s1->sw.state_change = p.s2->sw.state_change = false;
#define SET(state) vb_fab_set_state(p.t.net, p.s1, 3, state, p.t.now)
	assert_int_equal(near->state, FAB_ACTIVE);
	assert_int_equal(SET(FAB_ACTIVE), 0);
	assert_int_equal(SET(FAB_ARMED), -EINVAL);
	assert_int_equal(SET(FAB_INIT), -EINVAL);
	assert_int_equal(SET(FAB_DOWN), 0);
	/* The far end counts a lost link. The near end does not, because a Set
	 * of its manager took the link down. */
	assert_int_equal(far->state, FAB_DOWN);
	assert_false(p.s1->sw.state_change);
	assert_true(p.s2->sw.state_change);
	assert_int_equal(near->count[FAB_LINK_DOWNED], 0);
	assert_int_equal(far->count[FAB_LINK_DOWNED], 1);
	assert_int_equal(near->phys, FAB_TRAINING);
	assert_int_equal(SET(FAB_ARMED), -EINVAL);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(near->state, FAB_INIT);
	/* A change from Down to Init sets the switch's PortStateChange. */
	assert_true(p.s1->sw.state_change);
	assert_int_equal(SET(FAB_ACTIVE), -EINVAL);
	assert_int_equal(SET(FAB_ARMED), 0);
	assert_int_equal(SET(FAB_ACTIVE), 0);
	assert_int_equal(vb_fab_set_state(p.t.net, p.s1, 0, FAB_DOWN, 0),
			 -EINVAL);
	assert_int_equal(vb_fab_set_state(p.t.net, p.s1, 9, FAB_DOWN, 0),
			 -EINVAL);
	fabt_fini(&p.t);
}

/* A port in Armed becomes Active by its first data packet. A port in Init
 * accepts no data packet. */
static void armed__becomes_active_by_data(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct stream *s;
	struct pair p;

	make_pair(&p, 0, &trunk);
	assert_int_equal(SET(FAB_DOWN), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(SET(FAB_ARMED), 0);
	assert_int_equal(SET(FAB_ACTIVE), 0);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->most = 1;
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.s2->port[3].state, FAB_INIT);
	assert_int_equal(s->got, 0);
	assert_int_equal(vb_fab_set_state(p.t.net, p.s2, 3, FAB_ARMED, p.t.now),
			 0);
	s->most = 3;
	s->next = p.t.now;
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.s2->port[3].state, FAB_ACTIVE);
	assert_int_equal(s->got, 2);
	fabt_fini(&p.t);
}

static void cable__is_pulled_and_comes_back(void **state)
{
	struct vb_fab_link_spec trunk = { .delay = 10 * VB_USEC };
	struct stream *s;
	struct pair p;
	uint64_t got;

	make_pair(&p, 0, &trunk);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	got = s->got;
	assert_true(got > 500);
	assert_int_equal(vb_fab_plug(p.t.net, p.s2, 3, false, p.t.now), 0);
	assert_int_equal(p.s1->port[3].state, FAB_DOWN);
	assert_int_equal(p.s1->port[3].count[FAB_LINK_DOWNED], 1);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_true(s->got < got + 40);
	/* While its port is down, the switch discards that port's frames. */
	assert_true(p.s1->port[3].count[FAB_XMIT_INACTIVE] > 500);
	assert_int_equal(vb_fab_plug(p.t.net, p.s1, 3, true, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	fabt_activate(&p.t);
	got = s->got;
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_true(s->got > got + 900);
	assert_int_equal(p.t.disordered + p.t.bad_icrc, 0);
	fabt_fini(&p.t);
}

static void disabled__stays_down(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct pair p;

	make_pair(&p, 0, &trunk);
#define PHYS(phys) vb_fab_set_phys(p.t.net, p.s1, 3, phys, p.t.now)
	assert_int_equal(PHYS(FAB_DISABLED), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.s1->port[3].phys, FAB_DISABLED);
	assert_int_equal(p.s2->port[3].phys, FAB_POLLING);
	assert_int_equal(p.s2->port[3].state, FAB_DOWN);
	assert_int_equal(PHYS(FAB_LINK_UP), -EINVAL);
	assert_int_equal(PHYS(FAB_POLLING), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	assert_int_equal(p.s2->port[3].state, FAB_INIT);
	fabt_fini(&p.t);
}

/* All link packets are lost: the watchdog retrains the link, whose logical
 * state stays. */
static void watchdog__retrains(void **state)
{
	struct vb_fab_link_spec trunk = { 0 }, deaf = { .lose_flow = ~0u };
	struct stream *s;
	struct pair p;

	make_pair(&p, 0, &trunk);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(vb_fab_tune(p.t.net, p.s1, 3, &deaf, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_MSEC);
	assert_true(p.t.events[FAB_EV_WATCHDOG] >= 3);
	assert_true(p.s1->port[3].count[FAB_LINK_RECOVERIES] >= 3);
	assert_int_equal(p.s1->port[3].state, FAB_ACTIVE);
	assert_int_equal(p.s1->port[3].count[FAB_LINK_DOWNED], 0);
	assert_int_equal(vb_fab_tune(p.t.net, p.s1, 3, &trunk, p.t.now), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	s->got = 0;
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_true(s->got > 900);
	fabt_fini(&p.t);
}

/* A subnet manager makes lanes operational at one end long before the other:
 * the watchdog must not expire for that, and the lanes have credits. */
static void watchdog__waits_for_lanes_that_come_late(void **state)
{
	struct vb_fab_link_spec noisy = { .lose_flow = 1 };
	struct stream *s;
	struct pair p;

	make_pair(&p, 0, &noisy);
	fabt_run(&p.t, p.t.now + 5 * VB_MSEC);
	p.s1->port[3].oper_vls = 4;
	fabt_run(&p.t, p.t.now + 5 * VB_MSEC);
	p.s2->port[3].oper_vls = 4;
	fabt_run(&p.t, p.t.now + 5 * VB_MSEC);
	assert_int_equal(fabt_sum(&p.t, FAB_LINK_RECOVERIES), 0);
	vb_fab_sl2vl(p.s1, 1, 3)[0] = 7;
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->most = 100;
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(s->got, 100);
	assert_int_equal(p.s1->port[3].vl[7].xmit_pkts, 100);
	fabt_fini(&p.t);
}

/* A link whose training fails after a recovery goes Down. */
static void watchdog__that_cannot_train_goes_down(void **state)
{
	struct vb_fab_link_spec trunk = { 0 }, deaf = { .lose_flow = ~0u };
	struct pair p;

	make_pair(&p, 0, &trunk);
	p.s1->port[3].width_enabled = FAB_1X;
	p.s2->port[3].width_enabled = FAB_4X;
	assert_int_equal(vb_fab_tune(p.t.net, p.s1, 3, &deaf, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 2 * VB_MSEC);
	assert_int_equal(p.t.events[FAB_EV_WATCHDOG], 1);
	assert_int_equal(p.s1->port[3].state, FAB_DOWN);
	assert_int_equal(p.s2->port[3].state, FAB_DOWN);
	assert_int_equal(p.s2->port[3].phys, FAB_POLLING);
	assert_int_equal(p.s2->port[3].count[FAB_LINK_DOWNED], 1);
	fabt_fini(&p.t);
}

/* Reading XmitWait while a port waits for credits includes the waiting time so
 * far. */
static void wait__is_counted(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	struct vb_fab_port *port;
	struct pair p;

	make_pair(&p, 0, &trunk);
	p.t.hold_of_2_32 = ~0u;
	fabt_stream(&p.t, p.a, p.b, FRAME);
	fabt_run(&p.t, p.t.now + 2 * VB_MSEC);
	port = &p.s2->port[1];
	assert_int_equal(port->count[FAB_XMIT_WAIT], 0);
	vb_fab_count_waits(p.t.net, p.s2, 1, p.t.now);
	assert_in_range(port->count[FAB_XMIT_WAIT], 490000, 500000);
	assert_in_range(port->vl[0].xmit_wait, 490000, 500000);
	vb_fab_count_waits(p.t.net, p.s2, 1, p.t.now + 4000);
	vb_fab_count_waits(p.t.net, p.s2, 1, p.t.now + 4000);
	assert_in_range(port->count[FAB_XMIT_WAIT], 491000, 501000);
	fabt_fini(&p.t);
}

/* Bytes that arrive from another process: whole frames are forwarded, and the
 * others are counted. */
static void arrive__judges_bytes_from_elsewhere(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct stream *s;
	struct pair p;
	uint16_t crc;

	make_pair(&p, 0, &trunk);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->most = 0;
	s->next = VB_NEVER;
	fabt_frame(s, 0, p.t.now, bytes);
	crc = vb_vcrc(bytes, FRAME);
#define ARRIVE(len)                                                            \
	vb_fab_arrive(p.t.net, p.s2, 3, bytes, len, p.t.now);                  \
	fabt_run(&p.t, p.t.now + VB_MSEC)
	bytes[FRAME] = (uint8_t)crc;
	bytes[FRAME + 1] = (uint8_t)(crc >> 8);
	assert_int_equal(vb_fab_arrive(p.t.net, p.s2, 3, bytes, 9, p.t.now),
			 -EMSGSIZE);
	assert_int_equal(vb_fab_arrive(p.t.net, p.s2, 0, bytes, 99, p.t.now),
			 -EINVAL);
	assert_int_equal(vb_fab_arrive(p.t.net, p.s2, 4, bytes, 99, p.t.now),
			 -EINVAL);
	assert_int_equal(
		vb_fab_arrive(p.t.net, p.s2, 3, bytes, FRAME + 2, p.t.now), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(s->got, 1);
	bytes[FRAME] ^= 0xff;
	/* an inverted VCRC makes the frame end with EBP (bad packet) */
	bytes[FRAME + 1] ^= 0xff;
	assert_int_equal(
		vb_fab_arrive(p.t.net, p.s2, 3, bytes, FRAME + 2, p.t.now), 0);
	bytes[FRAME] ^= 1;
	assert_int_equal(
		vb_fab_arrive(p.t.net, p.s2, 3, bytes, FRAME + 2, p.t.now), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.s2->port[3].count[FAB_RCV_REMOTE_PHYSICAL], 1);
	assert_int_equal(p.s2->port[3].count[FAB_RCV_LOCAL_PHYSICAL], 1);
	assert_int_equal(s->got, 1);
	fabt_fini(&p.t);
}

/* Idle links repeat link packets once in 65,536 symbol times if packets may be
 * lost. Otherwise they repeat none, which saves events. */
static void idle__repeats_only_where_needed(void **state)
{
	struct vb_fab_link_spec quiet = { 0 }, noisy = { .lose_flow = 1 };
	struct pair p;
	uint64_t before;

	make_pair(&p, 0, &quiet);
	assert_true(vb_fab_next(p.t.net) == VB_NEVER);
	assert_int_equal(vb_fab_tune(p.t.net, p.s1, 3, &noisy, p.t.now), 0);
	before = p.s1->port[3].count[FAB_XMIT_FLOW_PKTS];
	fabt_run(&p.t, p.t.now + 65536 * 100);
	before = p.s1->port[3].count[FAB_XMIT_FLOW_PKTS] - before;
	assert_in_range(before, 800, 816); /* link packets of 8 VLs */
	assert_int_equal(vb_fab_tune(p.t.net, p.s1, 3, &quiet, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 10 * VB_MSEC);
	assert_true(vb_fab_next(p.t.net) == VB_NEVER);
	fabt_fini(&p.t);
}

static uint64_t seen_frames, seen_flow, seen_inverted, seen_wrong;

static void look(struct fabt *t, struct vb_fab_node *node, uint8_t port,
		 const uint8_t *bytes, size_t len)
{
	struct vb_fc_pkt f;
	uint16_t crc, good;

	if (len <= VB_FC_WIDE_BYTES) {
		seen_flow++;
		seen_wrong += vb_fc_get(bytes, len, &f) != FC_GOOD;
		return;
	}
	seen_frames++;
	crc = (uint16_t)(bytes[len - 2] | bytes[len - 1] << 8);
	good = vb_vcrc(bytes, len - 2);
	if ((crc ^ good) == 0xffff)
		seen_inverted++;
	else
		seen_wrong += crc != good;
}

/* @sf1, @sf2: the two switches store and forward. Every frame is damaged on the
 * link into the first switch. */
static void damage(struct pair *p, bool sf1, bool sf2)
{
	struct vb_fab_link_spec trunk = { 0 }, bad = { .corrupt = ~0u };
	struct stream *s;

	make_pair(p, 0, &trunk);
	p->s1->sw.store_and_forward = sf1;
	p->s2->sw.store_and_forward = sf2;
	assert_int_equal(vb_fab_tune(p->t.net, p->a, 1, &bad, p->t.now), 0);
	seen_frames = seen_flow = seen_inverted = seen_wrong = 0;
	fabt_watch(&p->t, look);
	s = fabt_stream(&p->t, p->a, p->b, FRAME);
	s->period = 10 * VB_USEC;
	s->most = 200;
	fabt_run(&p->t, p->t.now + 5 * VB_MSEC);
	assert_int_equal(s->got, 0);
	assert_int_equal(p->t.bad_icrc + p->t.foreign, 0);
	assert_int_equal(seen_wrong, 0);
	assert_true(seen_flow > 0);
}

/* A damaged frame that a switch began to forward ends in EBP. A switch that
 * stores frames drops it. Only the first switch counts it as an error of its
 * own link. */
static void damage__travels_through_cut_through_only(void **state)
{
	struct pair p;
	uint64_t first, second, third;

	damage(&p, false, false);
	first = p.s1->port[1].count[FAB_RCV_ERRORS];
	second = p.s2->port[3].count[FAB_RCV_REMOTE_PHYSICAL];
	third = p.b->port[1].count[FAB_RCV_REMOTE_PHYSICAL];
	assert_int_equal(p.s1->port[1].count[FAB_RCV_PKTS], 200);
	/* The first switch could not route frames whose header was damaged. */
	assert_int_equal(first, 200);
	assert_in_range(second, 190, 200);
	assert_in_range(third, 180, second);
	assert_int_equal(seen_inverted, second + third);
	assert_int_equal(p.s2->port[3].count[FAB_RCV_ERRORS], 0);
	fabt_fini(&p.t);

	damage(&p, false, true);
	assert_in_range(p.s2->port[3].count[FAB_RCV_REMOTE_PHYSICAL], 190, 200);
	assert_int_equal(p.s2->port[1].count[FAB_XMIT_PKTS], 0);
	fabt_fini(&p.t);

	damage(&p, true, false);
	assert_int_equal(p.s1->port[1].count[FAB_RCV_ERRORS], 200);
	assert_int_equal(p.s1->port[1].count[FAB_RCV_LOCAL_PHYSICAL], 200);
	assert_int_equal(p.s1->port[3].count[FAB_XMIT_PKTS], 0);
	assert_int_equal(seen_inverted, 0);
	fabt_fini(&p.t);
}

/* A frame that still waits in the switch when its damaged end arrives is not
 * forwarded. */
static void damage__that_is_found_in_time_is_dropped(void **state)
{
	struct vb_fab_link_spec slow = { .bytes_per_sec = GB / 10 };
	struct vb_fab_link_spec bad = { .corrupt = ~0u, .bytes_per_sec = GB };
	struct stream *s;
	struct pair p;

	make_pair(&p, GB, &slow);
	assert_int_equal(vb_fab_tune(p.t.net, p.a, 1, &bad, p.t.now), 0);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->most = 20;
	fabt_run(&p.t, p.t.now + 5 * VB_MSEC);
	assert_int_equal(p.s1->port[1].count[FAB_RCV_ERRORS], 20);
	assert_in_range(p.s1->port[3].count[FAB_XMIT_PKTS], 1, 2);
	assert_int_equal(s->got, 0);
	fabt_fini(&p.t);
}

static void send__says_what_is_wrong(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct stream *s;
	struct pair p;
	int err = 0;

	make_pair(&p, 0, &trunk);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->next = VB_NEVER;
	s->most = 0;
	fabt_frame(s, 0, p.t.now, bytes);
#define SEND(node, port, len)                                                  \
	vb_fab_send(p.t.net, node, port, bytes, len, p.t.now)
	assert_int_equal(SEND(p.a, 0, FRAME), -EINVAL);
	assert_int_equal(SEND(p.a, 2, FRAME), -EINVAL);
	assert_int_equal(SEND(p.a, 1, 7), -EMSGSIZE);
	assert_int_equal(SEND(p.a, 1, FRAME - 4), -EMSGSIZE);
	p.a->port[1].mtu = 4;
	assert_int_equal(SEND(p.a, 1, FRAME), -EMSGSIZE);
	p.a->port[1].mtu = 5;
	p.a->port[1].sl2vl[0] = 15;
	assert_int_equal(SEND(p.a, 1, FRAME), -EHOSTUNREACH);
	p.a->port[1].sl2vl[0] = 0;
	while (!err)
		err = SEND(p.a, 1, FRAME);
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(p.t.events[FAB_EV_ROOM], 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.t.events[FAB_EV_ROOM], 1);
	assert_int_equal(vb_fab_plug(p.t.net, p.a, 1, false, p.t.now), 0);
	assert_int_equal(SEND(p.a, 1, FRAME), -ENETDOWN);
	vb_lrh_set_vl(bytes, 15);
	assert_int_equal(SEND(p.a, 1, FRAME), -ENETDOWN);
	/* Port 0 of a switch sends by the switch's linear forwarding table. */
	vb_lrh_set_vl(bytes, 0);
	assert_int_equal(SEND(p.s1, 0, FRAME), 0);
	vb_store_be(bytes + 2, 999, 2);
	assert_int_equal(SEND(p.s1, 0, FRAME), -EHOSTUNREACH);
	fabt_fini(&p.t);
}

/* A sender waits for room in a lane. When the cable is pulled, the lane's
 * frames are discarded, and the sender gets the event that there is room. */
static void send__pulled_cable_makes_room(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct stream *s;
	struct pair p;

	make_pair(&p, 0, &trunk);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->next = VB_NEVER;
	s->most = 0;
	fabt_frame(s, 0, p.t.now, bytes);
	while (SEND(p.a, 1, FRAME) == 0)
		;
	assert_int_equal(SEND(p.a, 1, FRAME), -EAGAIN);
	assert_int_equal(vb_fab_plug(p.t.net, p.a, 1, false, p.t.now), 0);
	assert_int_equal(p.t.events[FAB_EV_ROOM], 1);
	assert_int_equal(SEND(p.a, 1, FRAME), -ENETDOWN);
	fabt_fini(&p.t);
}

/* Directed routes end at every node, even before the link is Active. */
static void vl15__ends_at_every_node(void **state)
{
	struct vb_fab_link_spec trunk = { 0 };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct vb_lrh h = { .vl = 15,
			    .lnh = LNH_LOCAL,
			    .dlid = 0xffff,
			    .slid = 0xffff,
			    .words = 70 };
	struct pair p;

	make_pair(&p, 0, &trunk);
	assert_int_equal(vb_fab_set_state(p.t.net, p.a, 1, FAB_DOWN, p.t.now),
			 0);
	fabt_run(&p.t, p.t.now + 2 * VB_FAB_TRAIN_NS);
	vb_lrh_put(bytes, &h);
	assert_int_equal(p.a->port[1].state, FAB_INIT);
	assert_int_equal(SEND(p.a, 1, 280), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.t.local_vl15, 1);
	assert_int_equal(p.s1->port[1].count[FAB_RCV_PKTS], 1);
	/* The switch itself sends a frame out of its port 3. */
	assert_int_equal(SEND(p.s1, 3, 280), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.s2->port[3].count[FAB_RCV_PKTS], 1);
	/* The frame's destination LID leads through both switches. */
	h.dlid = fabt_lid(p.b);
	vb_lrh_put(bytes, &h);
	assert_int_equal(SEND(p.a, 1, 280), 0);
	fabt_run(&p.t, p.t.now + VB_MSEC);
	assert_int_equal(p.b->port[1].count[FAB_RCV_PKTS], 1);
	assert_int_equal(p.t.local_vl15, 3);
	fabt_fini(&p.t);
}

/* Management is told when the last of its frames at a port has reached the
 * other end, however slow, long and busy the link is, and not much later. */
static void vl15__is_through_when_it_has_arrived(void **state)
{
	static const struct {
		uint64_t rate;
		vb_time delay;
		unsigned frames;
	} cases[] = {
		{ GB, 0, 1 },
		{ GB, 5 * VB_MSEC, 1 },
		{ GB / 1000, VB_MSEC, 20 },
		{ GB / 10, 20 * VB_USEC, 100 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_link_spec slow = { .bytes_per_sec = cases[i].rate,
						 .delay = cases[i].delay };
		struct vb_fab_link_spec trunk = { .bytes_per_sec = GB };
		struct vb_lrh h = { .vl = 15,
				    .lnh = LNH_LOCAL,
				    .words = 280 / 4 };
		uint8_t bytes[280] = { 0 };
		struct pair p;
		vb_time at;

		make_pair(&p, GB, &trunk);
		assert_int_equal(vb_fab_tune(p.t.net, p.a, 1, &slow, p.t.now),
				 0);
		h.dlid = fabt_lid(p.s1);
		vb_lrh_put(bytes, &h);
		/* A stream of 3 frames shares the link with this frame. */
		fabt_stream(&p.t, p.a, p.b, FRAME)->most = 3;
		fabt_run(&p.t, p.t.now + VB_USEC);
		for (unsigned k = 0; k < cases[i].frames; k++)
			assert_int_equal(SEND(p.a, 1, 280), 0);
		at = vb_fab_mgmt_through(p.t.net, p.a, 1, p.t.now);
		fabt_run(&p.t, p.t.now + (at - p.t.now) / 3);
		assert_true(p.t.local_vl15 < cases[i].frames);
		assert_true(vb_fab_mgmt_through(p.t.net, p.a, 1, p.t.now) >
			    p.t.now);
		fabt_run(&p.t, at);
		assert_int_equal(p.t.local_vl15, cases[i].frames);
		fabt_fini(&p.t);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(credits__of_12_and_24_bits_on_a_long_link),
		cmocka_unit_test(rate__of_width_and_speed),
		cmocka_unit_test(width__is_the_best_of_both),
		cmocka_unit_test(states__move_as_the_table_says),
		cmocka_unit_test(armed__becomes_active_by_data),
		cmocka_unit_test(cable__is_pulled_and_comes_back),
		cmocka_unit_test(disabled__stays_down),
		cmocka_unit_test(watchdog__retrains),
		cmocka_unit_test(watchdog__waits_for_lanes_that_come_late),
		cmocka_unit_test(watchdog__that_cannot_train_goes_down),
		cmocka_unit_test(wait__is_counted),
		cmocka_unit_test(arrive__judges_bytes_from_elsewhere),
		cmocka_unit_test(idle__repeats_only_where_needed),
		cmocka_unit_test(damage__travels_through_cut_through_only),
		cmocka_unit_test(damage__that_is_found_in_time_is_dropped),
		cmocka_unit_test(send__says_what_is_wrong),
		cmocka_unit_test(send__pulled_cable_makes_room),
		cmocka_unit_test(vl15__ends_at_every_node),
		cmocka_unit_test(vl15__is_through_when_it_has_arrived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
