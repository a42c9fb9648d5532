/* SPDX-License-Identifier: BSD-2-Clause */
/* Traps: their bytes (tables of IBA 14.2.5.1), and how often they are sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mgmt/trap.h"

static struct world {
	struct vb_fab_node *sw;
	struct vb_traps traps;
	struct vb_timers timers;
	struct vb_trap t;
	uint8_t mad[VB_MAD_BYTES];
} w;

static const uint8_t *const notice = w.mad + VB_SMP_DATA_AT;
static const uint8_t *const details =
	w.mad + VB_SMP_DATA_AT + VB_NOTICE_DETAILS_AT;

static int begin(void **state)
{
	const struct vb_fab_node_spec spec = { .kind = FAB_SWITCH,
					       .ports = 8,
					       .guid = 0x200 };

	memset(&w, 0, sizeof(w));
	w.sw = vb_fab_node_create(&spec);
	w.sw->port[0].lid = 9;
	w.sw->port[0].sm_lid = 5;
	vb_traps_init(&w.traps);
	vb_timers_init(&w.timers);
	return 0;
}

static int end(void **state)
{
	vb_traps_fini(&w.traps, &w.timers);
	vb_timers_fini(&w.timers);
	vb_fab_node_destroy(w.sw);
	return 0;
}

static bool send_trap(vb_time now)
{
	return vb_traps_begin(&w.traps, &w.timers, w.sw, 0, &w.t, w.mad, now);
}

static void check_head(unsigned number, unsigned type)
{
	assert_int_equal(vb_load_be(w.mad, 4), 0x01010105);
	assert_int_equal(vb_load_be(w.mad + 16, 2), SMP_NOTICE);
	assert_int_equal(notice[0], 0x80 | type);
	assert_int_equal(vb_load_be(notice + 1, 3), NODE_SWITCH);
	assert_int_equal(vb_load_be(notice + 4, 2), number);
	assert_int_equal(vb_load_be(notice + 6, 2), 9);
}

/* Traps 129 to 131: details of 16 bits reserved, LID and port. */
static void trap__of_a_link(void **state)
{
	for (unsigned n = TRAP_INTEGRITY; n <= TRAP_WATCHDOG; n++) {
		vb_trap_link_error(&w.t, w.sw, 0, n, 6);
		assert_true(send_trap(0));
		check_head(n, VB_NOTICE_URGENT);
		assert_int_equal(vb_load_be(details, 2), 0);
		assert_int_equal(vb_load_be(details + 2, 2), 9);
		assert_int_equal(details[4], 6);
		for (unsigned i = 5; i < 54; i++)
			assert_int_equal(details[i], 0);
	}
}

/* Details of traps 257 and 258: 16 bits reserved, two LIDs, key, SL and queue
 * pairs, two GIDs. */
static void trap__of_a_key(void **state)
{
	struct vb_mad_frame f = { .slid = 0x11,
				  .dlid = 9,
				  .sl = 3,
				  .sqpn = 0xabcdef,
				  .dqpn = 1,
				  .pkey = 0x8007,
				  .qkey = 0x80020000 };

	for (unsigned i = 0; i < 16; i++) {
		f.sgid.raw[i] = (uint8_t)(0x20 + i);
		f.dgid.raw[i] = (uint8_t)(0x40 + i);
	}
	for (unsigned n = TRAP_BAD_PKEY; n <= TRAP_BAD_QKEY; n++) {
		vb_trap_bad_key(&w.t, n, &f);
		assert_true(send_trap(0));
		check_head(n, VB_NOTICE_SECURITY);
		assert_int_equal(vb_load_be(details, 4), 0x11);
		assert_int_equal(vb_load_be(details + 4, 2), 9);
		assert_int_equal(vb_load_be(details + 6, 4),
				 n == TRAP_BAD_PKEY ? 0x8007 : 0x80020000);
		assert_int_equal(vb_load_be(details + 10, 4), 0x30abcdef);
		assert_int_equal(vb_load_be(details + 14, 4), 1);
		assert_memory_equal(details + 18, f.sgid.raw, 16);
		assert_memory_equal(details + 34, f.dgid.raw, 16);
	}
}

/* Details of trap 259: valid fields, two LIDs, P_Key, SL, queue pairs; at the
 * end the switch and the port. */
static void trap__of_a_switch_that_enforces(void **state)
{
	const uint8_t frame[] = {
		/* LRH of the bad frame, with SL 3 */
		0x00, 0x32, 0,	  9,	0, 7, 0, 0x11, 0x64, 0x40, 0x80, 0x07,
		0,    0x12, 0x34, 0x56, 0, 0, 0, 1,    0,    0,	   0,	 0,
	};

	vb_trap_switch_pkey(&w.t, w.sw, 6, frame, sizeof(frame));
	assert_true(send_trap(0));
	check_head(TRAP_SWITCH_PKEY, VB_NOTICE_SECURITY);
	assert_int_equal(vb_load_be(details, 2), 0x1 | 0x2 | 0x4 | 0x8 | 0x20);
	assert_int_equal(vb_load_be(details + 2, 2), 0x11);
	assert_int_equal(vb_load_be(details + 4, 2), 9);
	assert_int_equal(vb_load_be(details + 6, 2), 0x8007);
	assert_int_equal(details[8], 0x30);
	assert_int_equal(vb_load_be(details + 12, 4), 0x123456);
	assert_int_equal(vb_load_be(details + 48, 2), 9);
	assert_int_equal(details[50], 6);
}

/* A link that changes a thousand times in a second causes a trap at once, and
 * then one trap in each SubnetTimeout. The last trap comes after the last
 * change. */
static void trap__of_a_link_that_flaps(void **state)
{
	vb_time pause, now, last = 0;
	unsigned sent = 0;
	bool quiet = false;

	/* SubnetTimeout 15: 134 ms between two traps */
	w.sw->port[0].subnet_timeout = 15;
	pause = vb_trap_pause(&w.sw->port[0]);
	assert_int_equal(pause, 4096ull << 15);
	for (now = 0; now < VB_SEC; now += VB_MSEC) {
		struct vb_timer *t = vb_timers_pop(&w.timers, now);
		bool repeat = false;

		if (t)
			repeat = vb_traps_repeat(
				VB_CONTAINER_OF(t, struct vb_trap_pending,
						timer),
				&w.timers, w.sw, now);
		vb_trap_link_state(&w.t, w.sw);
		if (send_trap(now) || repeat) {
			assert_true(!sent || now - last >= pause);
			last = now;
			sent++;
			/* The subnet manager answers each trap at once. */
			assert_true(vb_traps_repress(&w.traps, &w.timers,
						     w.traps.last_tid));
			quiet = true;
		} else {
			quiet = false;
		}
	}
	assert_in_range(sent, 7, 8);
	assert_false(quiet); /* the last change was not sent yet */
	assert_in_range(vb_timers_next(&w.timers), now - VB_MSEC, last + pause);
}

/* A trap does not delay traps with another number. */
static void trap__each_number_for_itself(void **state)
{
	vb_trap_link_state(&w.t, w.sw);
	assert_true(send_trap(0));
	assert_false(send_trap(1));
	vb_trap_link_error(&w.t, w.sw, 0, TRAP_OVERRUN, 1);
	assert_true(send_trap(1));
	vb_trap_link_state(&w.t, w.sw);
	assert_true(send_trap(VB_SEC));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(trap__of_a_link),
		CASE(trap__of_a_key),
		CASE(trap__of_a_switch_that_enforces),
		CASE(trap__of_a_link_that_flaps),
		CASE(trap__each_number_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
