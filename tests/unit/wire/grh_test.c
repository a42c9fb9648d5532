/* SPDX-License-Identifier: BSD-2-Clause */
/* The global route header (GRH) in front of a UD datagram. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wire/grh.h"

static const struct vb_grh v4 = {
	.sgid = { { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
	.dgid = { { [10] = 0xff, 0xff, 192, 0, 2, 2 } },
	.ip_id = 0xabcd,
	.udp_bytes = 0x118,
	.tclass = 0x2a,
	.hop_limit = 64,
};

static const struct vb_grh v6 = {
	.sgid = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
	.dgid = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } },
	.flow_label = 0xfedcb,
	.udp_bytes = 0x1018,
	.tclass = 0xa5,
	.hop_limit = 255,
};

static void assert_same(const struct vb_grh *a, const struct vb_grh *b)
{
	assert_true(vb_gid_equal(&a->sgid, &b->sgid));
	assert_true(vb_gid_equal(&a->dgid, &b->dgid));
	assert_int_equal(a->flow_label, b->flow_label);
	assert_int_equal(a->ip_id, b->ip_id);
	assert_int_equal(a->udp_bytes, b->udp_bytes);
	assert_int_equal(a->tclass, b->tclass);
	assert_int_equal(a->hop_limit, b->hop_limit);
}

static void grh__ipv4_in_the_last_20_bytes(void **state)
{
	/* The fields of RFC 791; another program computed the checksum. */
	static const uint8_t want[VB_GRH_BYTES] = {
		[20] = 0x45, 0x2a, 0x01, 0x34, 0xab, 0xcd, 0x40,
		0x00,	     0x40, 0x11, 0x09, 0xbe, 192,  0,
		2,	     1,	   192,	 0,    2,    2,
	};
	uint8_t bytes[VB_GRH_BYTES];
	struct vb_grh back;

	memset(bytes, 0xee, sizeof(bytes));
	vb_grh_put(bytes, &v4);
	assert_memory_equal(bytes, want, sizeof(want));
	assert_true(vb_grh_get(bytes, &back));
	assert_same(&v4, &back);
}

static void grh__ipv6_as_it_is(void **state)
{
	static const uint8_t head[] = { 0x6a, 0x5f, 0xed, 0xcb,
					0x10, 0x20, 0x11, 0xff };
	uint8_t bytes[VB_GRH_BYTES];
	struct vb_grh back;

	vb_grh_put(bytes, &v6);
	assert_memory_equal(bytes, head, sizeof(head));
	assert_true(vb_grh_get(bytes, &back));
	assert_same(&v6, &back);
}

/* Bytes of an IPv4 header with one wrong bit are neither an IPv4 nor an IPv6
 * header. */
static void grh__ipv4_checksum_decides(void **state)
{
	uint8_t bytes[VB_GRH_BYTES];
	struct vb_grh back;

	for (unsigned bit = 0; bit < 160; bit++) {
		vb_grh_put(bytes, &v4);
		bytes[20 + bit / 8] ^= 1u << bit % 8;
		assert_false(vb_grh_get(bytes, &back));
	}
}

static void grh__nonsense(void **state)
{
	uint8_t bytes[VB_GRH_BYTES] = { 0 };
	struct vb_grh back;

	assert_false(vb_grh_get(bytes, &back));
	memset(bytes, 0xff, sizeof(bytes));
	assert_false(vb_grh_get(bytes, &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grh__ipv4_in_the_last_20_bytes),
		cmocka_unit_test(grh__ipv6_as_it_is),
		cmocka_unit_test(grh__ipv4_checksum_decides),
		cmocka_unit_test(grh__nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
