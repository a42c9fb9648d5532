/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/node.h"

static void create__as_a_manager_finds_it(void **state)
{
	struct vb_fab_node_spec spec = {
		.kind = FAB_SWITCH, .ports = 36, .guid = 0x1000, .desc = "leaf"
	};
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	assert_non_null(n);
	assert_int_equal(n->port[0].state, FAB_ACTIVE);
	assert_int_equal(n->port[0].phys, FAB_LINK_UP);
	assert_int_equal(n->port[0].guid, 0x1000);
	assert_int_equal(n->port[36].state, FAB_DOWN);
	assert_int_equal(n->port[36].phys, FAB_POLLING);
	assert_int_equal(n->port[36].pkey[0], 0xffff);
	assert_int_equal(n->port[36].pkey[1], 0);
	assert_int_equal(n->sw.linear[1], VB_FAB_NO_PORT);
	assert_int_equal(n->sw.linear_cap, 0xc000);
	assert_int_equal(vb_fab_sl2vl(n, 36, 36)[15], 7);
	assert_int_equal(vb_fab_sl2vl(n, 0, 1)[3], 3);
	assert_string_equal(n->desc, "leaf");
	vb_fab_node_destroy(n);
}

static void create__an_adapter_has_a_guid_for_each_port(void **state)
{
	struct vb_fab_node_spec spec = {
		.kind = FAB_CA,
		.ports = 2,
		.guid = 0x2000,
		.desc = "0123456789012345678901234567890123456789"
			"0123456789012345678901234567890123456789",
	};
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	assert_non_null(n);
	assert_int_equal(n->port[1].guid, 0x2001);
	assert_int_equal(n->port[2].guids[0], 0x2002);
	assert_null(n->sw.linear);
	assert_memory_equal(n->desc, spec.desc, 64);
	vb_fab_node_destroy(n);
}

static void create__refuses(void **state)
{
	static const struct vb_fab_node_spec bad[] = {
		{ .kind = 0, .ports = 1, .guid = 1 },
		{ .kind = 4, .ports = 1, .guid = 1 },
		{ .kind = FAB_CA, .ports = 0, .guid = 1 },
		{ .kind = FAB_SWITCH, .ports = 255, .guid = 1 },
		{ .kind = FAB_CA, .ports = 1 },
		{ .kind = FAB_CA, .ports = 1, .guid = 1, .vl_cap = 6 },
		{ .kind = FAB_CA, .ports = 1, .guid = 1, .mtu_cap = 6 },
		{ .kind = FAB_SWITCH,
		  .ports = 1,
		  .guid = 1,
		  .linear_cap = 0xc001 },
		{ .kind = FAB_SWITCH,
		  .ports = 1,
		  .guid = 1,
		  .mcast_cap = 0x4000 },
	};

	for (size_t i = 0; i < VB_COUNT(bad); i++)
		assert_null(vb_fab_node_create(&bad[i]));
}

static void codes__are_translated(void **state)
{
	assert_int_equal(vb_fab_vls(0), 1);
	assert_int_equal(vb_fab_vls(4), 8);
	assert_int_equal(vb_fab_vls(5), 15);
	assert_int_equal(vb_fab_vls(200), 1);
	assert_int_equal(vb_fab_mtu_bytes(1), 256);
	assert_int_equal(vb_fab_mtu_bytes(5), 4096);
	assert_int_equal(vb_fab_mtu_bytes(6), 0);
	assert_int_equal(vb_fab_life_ns(0), 4096);
	assert_int_equal(vb_fab_life_ns(19), 4096ull << 19);
	assert_true(vb_fab_life_ns(20) == VB_NEVER);
	assert_true(vb_fab_life_ns(255) == VB_NEVER);
}

static void rates__of_width_and_speed(void **state)
{
	static const struct {
		uint8_t width, speed, ext;
		uint64_t rate;
	} cases[] = {
		{ FAB_1X, FAB_SDR, 0, 250000000 },
		{ FAB_4X, FAB_QDR, 0, 4000000000 },
		{ FAB_4X, FAB_QDR, FAB_EDR, 12500000000 },
		{ FAB_2X, 0, FAB_HDR, 12500000000 },
		{ FAB_12X, FAB_DDR, 0, 6000000000 },
		{ 0, FAB_QDR, 0, 0 },
		{ FAB_4X, 0, 0, 0 },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		struct vb_fab_port p = { .width_active = cases[i].width,
					 .speed_active = cases[i].speed,
					 .speed_ext_active = cases[i].ext };

		assert_int_equal(vb_fab_bytes_per_sec(&p), cases[i].rate);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(create__as_a_manager_finds_it),
		cmocka_unit_test(create__an_adapter_has_a_guid_for_each_port),
		cmocka_unit_test(create__refuses),
		cmocka_unit_test(codes__are_translated),
		cmocka_unit_test(rates__of_width_and_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
