/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "ipoib/sa.h"

static const struct vb_gid port = { { 0xfe, 0x80, [15] = 3 } };
static const struct vb_gid peer = { { 0xfe, 0x80, [15] = 4 } };
static const struct vb_gid mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff,
				      0xff, [12] = 0xff, 0xff, 0xff, 0xff } };

static const struct vb_sa_mcmember broadcast = {
	.qkey = 0xb1b,
	.mlid = 0xc000,
	.pkey = 0xffff,
	.mtu = 4,
	.rate = 3,
	.sl = 2,
	.tclass = 7,
	.flow_label = 0xabcde,
	.hop_limit = 9,
};

static void join__of_the_broadcast_group(void **state)
{
	const struct vb_sa_mcmember g = { .mgid = mgid,
					  .port_gid = port,
					  .pkey = 0xffff,
					  .join_state = SA_FULL_MEMBER };
	uint8_t mad[VB_MAD_BYTES];

	ipoib_sa_put_join(mad, 0x1122334455667788, &g, NULL);
	assert_memory_equal(mad, "\1\3\2\2", 4);
	assert_int_equal(vb_load_be(mad + 8, 8), 0x1122334455667788);
	assert_int_equal(vb_load_be(mad + 16, 2), 0x38);
	/* MGID, PortGID, P_Key, JoinState */
	assert_int_equal(vb_load_be(mad + 48, 8), 0x10083);
	assert_memory_equal(mad + 56, mgid.raw, 16);
	assert_memory_equal(mad + 72, port.raw, 16);
	assert_int_equal(vb_load_be(mad + 96, 2), 0xffff);
	assert_int_equal(mad[56 + 48], 1);
}

/* A join request has the parameters with which the administrator creates a
 * missing group: Q_Key, MTU, TClass, rate, SL, FlowLabel and HopLimit, with
 * their selectors. */
static void join__like_another_group(void **state)
{
	const struct vb_sa_mcmember g = { .mgid = mgid,
					  .port_gid = port,
					  .pkey = 0xffff,
					  .join_state =
						  SA_SEND_ONLY_NON_MEMBER };
	uint8_t mad[VB_MAD_BYTES];
	struct ipoib_sa_answer a;

	ipoib_sa_put_join(mad, 5, &g, &broadcast);
	assert_int_equal(vb_load_be(mad + 48, 8), 0x173f7);
	assert_int_equal(mad[56 + 38], 0x84);
	assert_int_equal(mad[56 + 42], 0x83);
	assert_int_equal(mad[56 + 48], 4);
	/* The administrator's answer has the same layout as the request. */
	mad[3] = 0x81;
	vb_store_be(mad + 56 + 36, 0xc001, 2);
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_int_equal(a.attr_id, SA_MCMEMBER);
	assert_true(a.good);
	assert_false(a.left);
	assert_int_equal(a.tid, 5);
	assert_int_equal(a.group.qkey, 0xb1b);
	assert_int_equal(a.group.mtu, 4);
	assert_int_equal(a.group.rate, 3);
	assert_int_equal(a.group.sl, 2);
	assert_int_equal(a.group.tclass, 7);
	assert_int_equal(a.group.flow_label, 0xabcde);
	assert_int_equal(a.group.hop_limit, 9);
	assert_int_equal(a.group.pkey, 0xffff);
	assert_int_equal(a.group.join_state, 4);
}

static void leave__names_the_member(void **state)
{
	const struct vb_sa_mcmember g = { .mgid = mgid,
					  .port_gid = port,
					  .join_state = SA_FULL_MEMBER };
	uint8_t mad[VB_MAD_BYTES];
	struct ipoib_sa_answer a;

	ipoib_sa_put_leave(mad, 6, &g);
	assert_int_equal(mad[3], 0x15);
	assert_int_equal(vb_load_be(mad + 48, 8), 0x10003);
	mad[3] |= 0x80;
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_true(a.left);
}

static void path__question_and_answer(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct ipoib_sa_answer a;

	ipoib_sa_put_path(mad, 7, &port, &peer, 0x8001);
	assert_int_equal(mad[3], 1);
	assert_int_equal(vb_load_be(mad + 16, 2), 0x35);
	/* DGID, SGID, Reversible, NumbPath, P_Key */
	assert_int_equal(vb_load_be(mad + 48, 8), 0x380c);
	assert_memory_equal(mad + 56 + 8, peer.raw, 16);
	assert_memory_equal(mad + 56 + 24, port.raw, 16);
	assert_int_equal(mad[56 + 49], 0x81);
	assert_int_equal(vb_load_be(mad + 56 + 50, 2), 0x8001);
	mad[3] = 0x81;
	vb_store_be(mad + 56 + 40, 6, 2);
	vb_store_be(mad + 56 + 42, 5, 2);
	mad[56 + 54] = 0x85;
	vb_store_be(mad + 56 + 44, 0xabcde << 8 | 64, 4);
	mad[56 + 48] = 5;
	mad[56 + 53] = 3;
	mad[56 + 55] = 0x86;
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_int_equal(a.attr_id, SA_PATH);
	assert_true(a.good);
	assert_int_equal(a.path.dlid, 6);
	assert_int_equal(a.path.sl, 3);
	assert_int_equal(a.path.rate, 6);
	assert_int_equal(a.path.tclass, 5);
	assert_int_equal(a.path.flow_label, 0xabcde);
	assert_true(a.path.global && a.path.hop_limit == 64);
	mad[56 + 47] = 0;
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_false(a.path.global);
	/* a multicast LID, which no port has */
	vb_store_be(mad + 56 + 40, 0xc000, 2);
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_false(a.good);
	vb_store_be(mad + 56 + 40, 6, 2);
	vb_store_be(mad + 4, 0x0200, 2);
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_false(a.good);
}

static void answer__that_is_none(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct ipoib_sa_answer a;

	ipoib_sa_put_path(mad, 7, &port, &peer, 0x8001);
	assert_false(ipoib_sa_get(mad, sizeof(mad), &a));
	mad[3] = 0x81;
	assert_false(ipoib_sa_get(mad, sizeof(mad) - 1, &a));
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	mad[1] = 4;
	assert_false(ipoib_sa_get(mad, sizeof(mad), &a));
	mad[1] = 3;
	mad[17] = 0x11;
	assert_true(ipoib_sa_get(mad, sizeof(mad), &a));
	assert_int_equal(a.attr_id, 0x11);
	assert_false(a.good);
}

static void mtu__codes(void **state)
{
	assert_int_equal(vb_sa_mtu_bytes(1), 256);
	assert_int_equal(vb_sa_mtu_bytes(4), 2048);
	assert_int_equal(vb_sa_mtu_bytes(5), 4096);
	assert_int_equal(vb_sa_mtu_bytes(0), 0);
	assert_int_equal(vb_sa_mtu_bytes(6), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join__of_the_broadcast_group),
		cmocka_unit_test(join__like_another_group),
		cmocka_unit_test(leave__names_the_member),
		cmocka_unit_test(path__question_and_answer),
		cmocka_unit_test(answer__that_is_none),
		cmocka_unit_test(mtu__codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
