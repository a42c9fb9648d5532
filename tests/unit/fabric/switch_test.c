/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/switch.h"

static struct vb_fab_node *sw;
static uint8_t bytes[VB_LRH_FRAME_MAX];
static struct vb_fab_view view;

/* A switch of 70 ports, all Active with 4 VLs and MTU 1024; LIDs 1..70 by the
 * ports of these numbers, its own LID 100. */
static int set_up(void **state)
{
	struct vb_fab_node_spec spec = {
		.kind = FAB_SWITCH, .ports = 70, .guid = 1, .mcast_cap = 4
	};

	sw = vb_fab_node_create(&spec);
	for (unsigned p = 1; p <= 70; p++) {
		sw->port[p].state = FAB_ACTIVE;
		sw->port[p].oper_vls = 3;
		sw->port[p].mtu = 3;
		sw->sw.linear[p] = (uint8_t)p;
	}
	sw->port[0].lid = 100;
	sw->sw.linear_top = 90;
	return 0;
}

static int tear_down(void **state)
{
	vb_fab_node_destroy(sw);
	return 0;
}

/* Make a frame of @len bytes with P_Key 0x8005 in @bytes. */
static void frame(uint16_t dlid, uint8_t vl, uint8_t sl, size_t len)
{
	view.bytes = bytes;
	view.len = len;
	view.lrh = (struct vb_lrh){ .vl = vl,
				    .sl = sl,
				    .lnh = LNH_LOCAL,
				    .dlid = dlid,
				    .words = (uint16_t)(len / 4) };
	vb_lrh_put(bytes, &view.lrh);
	vb_store_be(bytes + 10, 0x8005, 2);
}

static struct vb_fab_route route(uint16_t dlid, uint8_t in)
{
	struct vb_fab_route r;

	frame(dlid, 0, 0, 256);
	vb_fab_route(sw, in, &view, &r);
	return r;
}

static void in__what_is_checked(void **state)
{
	frame(5, 0, 0, 256);
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
	view.len = 260;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_MALFORMED);
	frame(5, 4, 0, 256);
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_LANE);
	frame(5, 0, 0, 256);
	sw->port[1].state = FAB_INIT;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_STATE);
	frame(5, 15, 0, 256);
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
	view.lrh.lnh = LNH_RAW;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_MALFORMED);
}

static void unicast__by_the_linear_table(void **state)
{
	struct vb_fab_route r = route(7, 1);

	assert_int_equal(r.drop, DROP_NOT);
	assert_int_equal(r.port, 7);
	assert_int_equal(route(7, 7).drop, DROP_LOOP);
	/* the linear table's entry of LID 80 is 255: no port */
	assert_int_equal(route(80, 7).drop, DROP_NO_ROUTE);
	sw->sw.linear[91] = 3;
	/* LID 91 is above linear_top, the table's last valid entry */
	assert_int_equal(route(91, 7).drop, DROP_NO_ROUTE);
	assert_int_equal(route(0, 7).drop, DROP_NO_ROUTE);
	sw->sw.linear[8] = 71;
	/* the linear table leads to a port that the switch does not have */
	assert_int_equal(route(8, 7).drop, DROP_NO_ROUTE);
}

static void unicast__to_the_switch_itself(void **state)
{
	assert_int_equal(route(100, 7).port, 0);
	assert_int_equal(route(100, 7).drop, DROP_NOT);
	assert_int_equal(route(0xffff, 7).port, 0);
	assert_int_equal(route(101, 7).drop, DROP_NO_ROUTE);
	sw->port[0].lmc = 1;
	assert_int_equal(route(101, 7).drop, DROP_NO_ROUTE);
	sw->sw.enhanced_port0 = true;
	assert_int_equal(route(101, 7).drop, DROP_NOT);
	assert_int_equal(route(102, 7).drop, DROP_NO_ROUTE);
}

static void unicast__by_a_random_table(void **state)
{
	struct vb_fab_random table[3] = {
		{ .lid = 8, .lmc = 2, .port = 5, .valid = true },
		{ .lid = 20, .port = 6 },
		{ .lid = 21, .port = 7, .valid = true },
	};
	struct vb_fab_random *own = sw->sw.random;

	sw->sw.random = table;
	sw->sw.random_cap = 3;
	sw->sw.linear_cap = 0;
	assert_int_equal(route(8, 1).port, 5);
	assert_int_equal(route(11, 1).port, 5);
	assert_int_equal(route(12, 1).drop, DROP_NO_ROUTE);
	assert_int_equal(route(20, 1).drop, DROP_NO_ROUTE);
	assert_int_equal(route(21, 1).port, 7);
	sw->sw.default_port = 9;
	assert_int_equal(route(12, 1).port, 9);
	sw->sw.random = own;
}

static void multicast__without_where_it_came_from(void **state)
{
	struct vb_fab_route r;

	sw->sw.mcast[1].ports[0] = 1 | 1u << 3 | 1u << 9;
	sw->sw.mcast[1].ports[1] = 1u << 5; /* bit 5 of word 1 is port 69 */
	r = route(0xc001, 3);
	assert_true(r.mcast && r.drop == DROP_NOT);
	assert_true(r.mask.ports[0] == (1 | 1u << 9));
	assert_true(r.mask.ports[1] == 1u << 5);
	r = route(0xc001, 69);
	assert_true(r.mask.ports[1] == 0);
	assert_int_equal(route(0xc002, 3).drop, DROP_NO_ROUTE);
	/* multicast LID 0xc004 has no table entry */
	assert_int_equal(route(0xc004, 3).drop, DROP_NO_ROUTE);
	sw->sw.mcast_top = 0xc000;
	assert_int_equal(route(0xc001, 3).drop, DROP_NO_ROUTE);
}

static void multicast__without_an_entry(void **state)
{
	sw->sw.default_mcast_primary = 2;
	sw->sw.default_mcast_other = 4;
	assert_true(route(0xc002, 3).mask.ports[0] == 1u << 2);
	assert_true(route(0xc002, 2).mask.ports[0] == 1u << 4);
}

static void out__lane_state_and_mtu(void **state)
{
	uint8_t vl = 99;

	frame(5, 0, 6, 1024 + 124);
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_SL);
	vb_fab_sl2vl(sw, 1, 5)[6] = 3;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_NOT);
	assert_int_equal(vl, 3);
	assert_int_equal(vb_fab_check_out(sw, 2, 5, &view, &vl), DROP_SL);
	vb_fab_sl2vl(sw, 1, 5)[6] = 15;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_SL);
	frame(5, 0, 0, 1024 + 128);
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_MTU);
	sw->port[5].state = FAB_ARMED;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_INACTIVE);
	frame(5, 15, 9, 256);
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_NOT);
	assert_int_equal(vl, 15);
	sw->port[5].state = FAB_DOWN;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_INACTIVE);
}

static void partitions__are_enforced(void **state)
{
	uint8_t vl;

	frame(5, 0, 0, 256);
	sw->port[1].pkey[0] = 0x7fff;
	sw->port[1].pkey[3] = 0x0005;
	sw->port[1].pkey_in = sw->port[5].pkey_out = true;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
	/* a limited member that sends to a limited member, and to a full one */
	vb_store_be(bytes + 10, 0x0005, 2);
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
	sw->port[5].pkey[30] = 0x0005;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_PKEY_OUT);
	sw->port[5].pkey[31] = 0x8005;
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_NOT);
	vb_store_be(bytes + 10, 0x8006, 2);
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_PKEY_IN);
	sw->port[1].pkey_in = false;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
}

static void raw_frames__are_filtered(void **state)
{
	uint8_t vl;

	frame(5, 0, 0, 256);
	view.lrh.lnh = LNH_RAW;
	sw->port[1].pkey_in = sw->port[5].pkey_out = true;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_NOT);
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_NOT);
	sw->port[1].raw_in = sw->port[5].raw_out = true;
	assert_int_equal(vb_fab_check_in(sw, 1, &view), DROP_RAW_IN);
	assert_int_equal(vb_fab_check_out(sw, 1, 5, &view, &vl), DROP_RAW_OUT);
}

static void pkeys__match(void **state)
{
	assert_true(vb_fab_pkeys_match(0xffff, 0x7fff));
	assert_true(vb_fab_pkeys_match(0xffff, 0xffff));
	assert_false(vb_fab_pkeys_match(0x7fff, 0x7fff));
	assert_false(vb_fab_pkeys_match(0x8000, 0x8000));
	assert_false(vb_fab_pkeys_match(0x8001, 0x8002));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		T(in__what_is_checked),
		T(unicast__by_the_linear_table),
		T(unicast__to_the_switch_itself),
		T(unicast__by_a_random_table),
		T(multicast__without_where_it_came_from),
		T(multicast__without_an_entry),
		T(out__lane_state_and_mtu),
		T(partitions__are_enforced),
		T(raw_frames__are_filtered),
		T(pkeys__match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
