/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of what a port reports of a link that damages packets, and of link
 * packets that leave early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/fabric.h"

#define FRAME (4096 + 48)

/* Two adapters behind one switch. */
struct star {
	struct fabt t;
	struct vb_fab_node *a, *b, *sw;
};

static void make_star(struct star *p)
{
	struct vb_fab_link_spec edge = { 0 };

	fabt_init(&p->t, 1);
	p->sw = fabt_switch(&p->t, 2);
	p->a = fabt_adapter(&p->t);
	p->b = fabt_adapter(&p->t);
	fabt_link(&p->t, p->a, 1, p->sw, 1, &edge);
	fabt_link(&p->t, p->b, 1, p->sw, 2, &edge);
	fabt_up(&p->t, FABT_SHORTEST, 1);
}

/* The port behind a link that damages frames reports this once for each nine
 * damaged frames, by its threshold of 8; but not where the good frames are in
 * the majority. Behind the switch frames end in EBP, which says nothing of the
 * last link. */
static void damage__of_frames_beyond_the_threshold_is_an_event(void **state)
{
	static const struct {
		uint32_t corrupt;
		uint8_t most;
		unsigned least_events, most_events;
	} cases[] = {
		{ ~0u, 8, 22, 22 },
		{ ~0u, 15, 12, 12 },
		{ 3u << 30, 8, 5, 20 },
		{ 1u << 30, 8, 0, 0 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_link_spec bad = { .corrupt = cases[i].corrupt };
		struct vb_fab_port *port;
		struct stream *s;
		struct star p;

		make_star(&p);
		port = &p.sw->port[1];
		assert_int_equal(port->local_phy_errors, 8);
		port->local_phy_errors = cases[i].most;
		assert_int_equal(vb_fab_tune(p.t.net, p.a, 1, &bad, p.t.now),
				 0);
		s = fabt_stream(&p.t, p.a, p.b, FRAME);
		s->period = 10 * VB_USEC;
		s->most = 200;
		fabt_run(&p.t, p.t.now + 5 * VB_MSEC);
		print_message("damaged with odds %08x: %u events\n",
			      cases[i].corrupt,
			      (unsigned)p.t.events[FAB_EV_INTEGRITY]);
		assert_in_range(p.t.events[FAB_EV_INTEGRITY],
				cases[i].least_events, cases[i].most_events);
		assert_int_equal(port->count[FAB_LINK_INTEGRITY],
				 p.t.events[FAB_EV_INTEGRITY]);
		fabt_fini(&p.t);
	}
}

/* Damaged link packets count by themselves: no frame passes. */
static void damage__of_link_packets_is_an_event(void **state)
{
	struct vb_fab_link_spec bad = { .corrupt_flow = ~0u };
	struct star p;

	make_star(&p);
	assert_int_equal(vb_fab_tune(p.t.net, p.a, 1, &bad, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 150 * VB_USEC);
	assert_true(p.sw->port[1].count[FAB_SYMBOL_ERRORS] > 8);
	assert_true(p.sw->port[1].count[FAB_LINK_INTEGRITY] > 0);
	assert_int_equal(p.sw->port[2].count[FAB_LINK_INTEGRITY], 0);
	fabt_fini(&p.t);
}

/* A caller that is about to sleep makes the port send its link packets early,
 * and then needs no timer for them. Links that repeat link packets still send
 * them at the planned time. */
static void flow__leaves_before_its_time(void **state)
{
	struct vb_fab_link_spec noisy = { .lose_flow = 1 };
	struct star p;
	struct stream *s;
	vb_time due;

	make_star(&p);
	fabt_run(&p.t, p.t.now + 2 * VB_MSEC);
	s = fabt_stream(&p.t, p.a, p.b, FRAME);
	s->most = 1;
	fabt_run(&p.t, p.t.now + 20 * VB_USEC);
	assert_int_equal(s->got, 1);
	assert_true(vb_fab_next_frame(p.t.net) == VB_NEVER);
	assert_true(vb_fab_next(p.t.net) != VB_NEVER);
	assert_true(vb_fab_tell_early(p.t.net, p.t.now));
	fabt_run(&p.t, p.t.now + VB_USEC);
	assert_true(vb_fab_next(p.t.net) == VB_NEVER);
	assert_false(vb_fab_tell_early(p.t.net, p.t.now));
	assert_int_equal(vb_fab_tune(p.t.net, p.a, 1, &noisy, p.t.now), 0);
	fabt_run(&p.t, p.t.now + 10 * VB_USEC);
	due = vb_fab_next(p.t.net);
	assert_false(vb_fab_tell_early(p.t.net, p.t.now));
	assert_true(vb_fab_next(p.t.net) == due && due != VB_NEVER);
	fabt_fini(&p.t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			damage__of_frames_beyond_the_threshold_is_an_event),
		cmocka_unit_test(damage__of_link_packets_is_an_event),
		cmocka_unit_test(flow__leaves_before_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
