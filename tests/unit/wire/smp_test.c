/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/field.h"
#include "wire/rmpp.h"
#include "wire/smp.h"

struct three {
	uint8_t a, b;
	uint64_t c;
};

static const struct vb_field three_fields[] = {
	VB_FIELD(three, a, 0, 0, 3),
	/* field b begins at bit 5 of byte 0 and continues in byte 1 */
	VB_FIELD(three, b, 0, 5, 6),
	VB_FIELD(three, c, 2, 0, 64),
};

static void field__lies_where_its_row_says(void **state)
{
	const struct three s = { 5, 0x2a, 0x0102030405060708 };
	const uint8_t want[] = { 0xbd, 0x5f, 1, 2, 3, 4, 5, 6, 7, 8 };
	uint8_t bytes[10];
	struct three t;

	memset(bytes, 0xff, sizeof(bytes));
	vb_fields_put(three_fields, VB_COUNT(three_fields), bytes, &s);
	assert_memory_equal(bytes, want, sizeof(want));
	memset(&t, 0, sizeof(t));
	vb_fields_get(three_fields, VB_COUNT(three_fields), bytes, &t);
	assert_int_equal(t.a, s.a);
	assert_int_equal(t.b, s.b);
	assert_int_equal(t.c, s.c);
}

static void field__value_that_is_too_large_spares_its_neighbours(void **state)
{
	const struct three s = { 0xff, 0xff, 0 };
	uint8_t bytes[10] = { 0 };

	vb_fields_put(three_fields, VB_COUNT(three_fields), bytes, &s);
	assert_int_equal(bytes[0], 0xe7);
	assert_int_equal(bytes[1], 0xe0);
}

/* The bytes of PortInfo, written down independently of the tables under test.
 * Each member has a value of its own, so that a member in the wrong place is
 * found. */
static const uint8_t port_info_want[] = {
	/* bytes from offset 0 */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xfe, 0x80, 0, 0, 0, 0,
	0, 0, /* bytes from offset 8 */
	/* bytes from offset 16 */
	0x01, 0x02, 0x03, 0x04, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xc1, 0xc2,
	7, 3, 11, 2,				     /* bytes from offset 24 */
	0x74, 0x52, 0x85, 0x1f, 0x59, 0x41, 0xd1, 8, /* bytes from offset 32 */
	/* bytes from offset 40 */
	16, 0x35, 0xd2, 0x4a, 0xe1, 0xe2, 0xe3, 0xe4,
	/* bytes from offset 48 */
	0xe5, 0xe6, 32, 0x92, 19, 0x89, 0xf1, 0xf2, 0, 0x31, 0x32, 0x33, 0x41,
	0x42, 0x23, 31, /* bytes from offset 56 */
};

static void port_info__bytes(void **state)
{
	const struct vb_port_info p = {
		.mkey = 0x1112131415161718,
		.gid_prefix = 0xfe80000000000000,
		.lid = 0x0102,
		.sm_lid = 0x0304,
		.cap_mask = 0xa1a2a3a4,
		.diag_code = 0xb1b2,
		.mkey_lease = 0xc1c2,
		.local_port = 7,
		.width_enabled = 3,
		.width_supported = 11,
		.width_active = 2,
		.speed_supported = 7,
		.state = 4,
		.phys_state = 5,
		.down_default = 2,
		.mkey_protect = 2,
		.lmc = 5,
		.speed_active = 1,
		.speed_enabled = 15,
		.neighbor_mtu = 5,
		.sm_sl = 9,
		.vl_cap = 4,
		.init_type = 1,
		.high_limit = 0xd1,
		.vlarb_high_cap = 8,
		.vlarb_low_cap = 16,
		.init_reply = 3,
		.mtu_cap = 5,
		.vl_stall = 6,
		.hoq_life = 18,
		.oper_vls = 4,
		.pkey_enforce_in = 1,
		.raw_in = 1,
		.mkey_violations = 0xe1e2,
		.pkey_violations = 0xe3e4,
		.qkey_violations = 0xe5e6,
		.guid_cap = 32,
		.client_reregister = 1,
		.subnet_timeout = 18,
		.resp_time = 19,
		.local_phys_errors = 8,
		.overrun_errors = 9,
		.max_credit_hint = 0xf1f2,
		.round_trip = 0x313233,
		.cap_mask2 = 0x4142,
		.ext_speed_active = 2,
		.ext_speed_supported = 3,
		.ext_speed_enabled = 31,
	};
	uint8_t bytes[64] = { 0 };

	vb_port_info_put(bytes, &p);
	assert_memory_equal(bytes, port_info_want, sizeof(port_info_want));
}

static void switch_info__bytes(void **state)
{
	const struct vb_switch_info s = {
		.linear_cap = 0xc000,
		.multicast_cap = 0x400,
		.linear_top = 0x0102,
		.default_port = 0xff,
		.life_time = 18,
		.port_state_change = 1,
		.sl_to_vl_optimized = 2,
		.partition_cap = 32,
		.inbound_enforcement = 1,
		.enhanced_port0 = 1,
		.multicast_top = 0xc0ff,
	};
	const uint8_t want[20] = {
		0xc0, 0,    0, 0, 4, 0,	 1,    2, 0xff, 0,
		0,    0x96, 0, 0, 0, 32, 0x88, 0, 0xc0, 0xff
	};
	uint8_t bytes[20] = { 0 };

	vb_switch_info_put(bytes, &s);
	assert_memory_equal(bytes, want, sizeof(want));
}

static void smp__header_bytes(void **state)
{
	const struct vb_smp_hdr h = { 1,
				      0x81,
				      1,
				      2,
				      VB_SMP_DIRECTION,
				      3,
				      4,
				      0x0102030405060708,
				      17,
				      0x1234,
				      5,
				      6,
				      0xfffe };
	uint8_t mad[VB_MAD_BYTES] = { 0 };
	struct vb_smp_hdr g;

	vb_smp_hdr_put(mad, &h);
	assert_int_equal(mad[4], 0x80);
	assert_int_equal(mad[6], 3);
	assert_int_equal(mad[7], 4);
	assert_int_equal(mad[15], 8);
	assert_int_equal(mad[17], 17);
	assert_int_equal(mad[31], 5);
	assert_int_equal(mad[33], 6);
	assert_int_equal(mad[35], 0xfe);
	memset(&g, 0, sizeof(g));
	vb_smp_hdr_get(mad, &g);
	assert_int_equal(g.mkey, h.mkey);
	assert_int_equal(g.attr_mod, h.attr_mod);
	assert_int_equal(g.dr_dlid, h.dr_dlid);
}

static void notice__bytes(void **state)
{
	const struct vb_notice n = { 1, 3, NODE_SWITCH, 128, 7, 1, 0x123 };
	const uint8_t want[10] = { 0x83, 0, 0, 2, 0, 128, 0, 7, 0x81, 0x23 };
	uint8_t bytes[10] = { 0 };

	vb_notice_put(bytes, &n);
	assert_memory_equal(bytes, want, sizeof(want));
}

static void rmpp__classes(void **state)
{
	assert_int_equal(vb_rmpp_data_at(MAD_CLASS_SA), 56);
	assert_int_equal(vb_rmpp_data_at(MAD_CLASS_VENDOR2), 40);
	assert_int_equal(vb_rmpp_data_at(MAD_CLASS_VENDOR2_LAST), 40);
	assert_int_equal(vb_rmpp_data_at(MAD_CLASS_PERF), 24);
	assert_false(vb_rmpp_has_header(MAD_CLASS_SMP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(field__lies_where_its_row_says),
		cmocka_unit_test(
			field__value_that_is_too_large_spares_its_neighbours),
		cmocka_unit_test(port_info__bytes),
		cmocka_unit_test(switch_info__bytes),
		cmocka_unit_test(smp__header_bytes),
		cmocka_unit_test(notice__bytes),
		cmocka_unit_test(rmpp__classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
