/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the records of the subnet administrator against bytes that are written
 * down by hand, and what of an answer is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/rmpp.h"
#include "wire/sa.h"

static const uint8_t header_want[56] = {
	/* MAD header: version, class, class version, method, status */
	1, 3, 2, 0x01, 0, 0, 0, 0,
	/* transaction ID */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	/* attribute */
	0, 0x35, 0, 0, 0, 0, 0, 0,
	/* RMPP header: its version and nothing else */
	1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* SM_Key, AttributeOffset, reserved */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* ComponentMask: DGID, SGID, Reversible, NumbPath, P_Key */
	0, 0, 0, 0, 0, 0, 0x38, 0x0c
};

static const uint8_t path_want[64] = {
	/* ServiceID */
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
	/* DGID */
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
	/* SGID */
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1,
	/* DLID, SLID */
	0x01, 0x02, 0x03, 0x04,
	/* RawTraffic, FlowLabel, HopLimit */
	0x0a, 0xbc, 0xde, 0x11,
	/* TClass, Reversible and NumbPath, P_Key */
	0x22, 0x81, 0x80, 0x02,
	/* QoS class, SL */
	0x12, 0x3e,
	/* selectors and values of MTU, rate and life time */
	0x84, 0x83, 0x92,
	/* preference */
	0x07, 0, 0, 0, 0, 0, 0
};

static const uint8_t group_want[52] = {
	/* MGID */
	0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x0f, 1, 1, 1,
	/* PortGID */
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1,
	/* Q_Key, MLID */
	0x01, 0x23, 0x45, 0x67, 0xc0, 0x05,
	/* MTU, TClass, P_Key, rate, life time */
	0x84, 0x33, 0xff, 0xff, 0x83, 0x92,
	/* SL, FlowLabel, HopLimit */
	0x5a, 0xbc, 0xde, 0x40,
	/* Scope and JoinState, ProxyJoin */
	0x21, 0x80, 0, 0
};

static const struct vb_sa_path a_path = {
	.service_id = 0xa0a1a2a3a4a5a6a7,
	.dgid = { { 0xfe, 0x80, [8] = 1, 2, 3, 4, 5, 6, 7, 8 } },
	.sgid = { { 0xfe, 0x80, [8] = 8, 7, 6, 5, 4, 3, 2, 1 } },
	.dlid = 0x0102,
	.slid = 0x0304,
	.flow_label = 0xabcde,
	.hop_limit = 0x11,
	.tclass = 0x22,
	.reversible = 1,
	.numb_path = 1,
	.pkey = 0x8002,
	.qos_class = 0x123,
	.sl = 14,
	.mtu_selector = 2,
	.mtu = 4,
	.rate_selector = 2,
	.rate = 3,
	.life_selector = 2,
	.life = 18,
	.preference = 7,
};

static const struct vb_sa_mcmember a_group = {
	.mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 15, 1, 1, 1 } },
	.port_gid = { { 0xfe, 0x80, [8] = 8, 7, 6, 5, 4, 3, 2, 1 } },
	.qkey = 0x01234567,
	.mlid = 0xc005,
	.mtu_selector = 2,
	.mtu = 4,
	.tclass = 0x33,
	.pkey = 0xffff,
	.rate_selector = 2,
	.rate = 3,
	.life_selector = 2,
	.life = 18,
	.sl = 5,
	.flow_label = 0xabcde,
	.hop_limit = 0x40,
	.scope = 2,
	.join_state = SA_FULL_MEMBER,
	.proxy_join = 1,
};

static const struct vb_sa_hdr asks = {
	.method = SA_GET,
	.attr_id = SA_PATH,
	.tid = 0x1112131415161718,
	.mask = SA_PATH_DGID | SA_PATH_SGID | SA_PATH_REVERSIBLE |
		SA_PATH_NUMB_PATH | SA_PATH_PKEY,
};

static void path__has_the_bytes_of_the_drawing(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct vb_sa_path back;
	struct vb_sa_hdr h;

	(void)state;
	vb_sa_path_put(mad, &asks, &a_path);
	assert_int_equal(vb_rmpp_data_at(MAD_CLASS_SA), sizeof(header_want));
	assert_memory_equal(mad, header_want, sizeof(header_want));
	assert_memory_equal(mad + 56, path_want, sizeof(path_want));
	for (unsigned i = 56 + sizeof(path_want); i < sizeof(mad); i++)
		assert_int_equal(mad[i], 0);
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &h));
	assert_int_equal(h.tid, asks.tid);
	assert_int_equal(h.mask, asks.mask);
	assert_true(vb_sa_path_get(mad, &back));
	assert_memory_equal(&back, &a_path, sizeof(back));
}

static void group__has_the_bytes_of_the_drawing(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct vb_sa_mcmember back;

	(void)state;
	vb_sa_mcmember_put(mad, &asks, &a_group);
	assert_memory_equal(mad + 56, group_want, sizeof(group_want));
	assert_true(vb_sa_mcmember_get(mad, &back));
	assert_memory_equal(&back, &a_group, sizeof(back));
}

static bool path_passes(struct vb_sa_path p)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_sa_path_put(mad, &asks, &p);
	return vb_sa_path_get(mad, &p);
}

static void path__of_no_port_is_refused(void **state)
{
	struct vb_sa_path p = a_path;

	(void)state;
	p.dlid = 0;
	assert_false(path_passes(p));
	p.dlid = 0xc000;
	assert_false(path_passes(p));
	p.dlid = 0xbfff;
	assert_true(path_passes(p));
	p.slid = 0xffff;
	assert_false(path_passes(p));
	p.slid = 1;
	p.mtu = 0;
	assert_false(path_passes(p));
	p.mtu = 6;
	assert_false(path_passes(p));
}

static bool group_passes(struct vb_sa_mcmember m)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_sa_mcmember_put(mad, &asks, &m);
	return vb_sa_mcmember_get(mad, &m);
}

static void group__that_is_none_is_refused(void **state)
{
	struct vb_sa_mcmember m = a_group;

	(void)state;
	m.mlid = 0xbfff;
	assert_false(group_passes(m));
	m.mlid = 0xffff;
	assert_false(group_passes(m));
	m.mlid = 0xc000;
	assert_true(group_passes(m));
	m.mgid.raw[0] = 0xfe;
	assert_false(group_passes(m));
}

static void header__of_another_class_or_version_is_refused(void **state)
{
	static const unsigned bytes[] = { 0, 1, 2 };
	uint8_t mad[VB_MAD_BYTES];
	struct vb_sa_hdr h;

	(void)state;
	vb_sa_path_put(mad, &asks, &a_path);
	assert_false(vb_sa_hdr_get(mad, sizeof(mad) - 1, &h));
	for (unsigned i = 0; i < VB_COUNT(bytes); i++) {
		mad[bytes[i]] ^= 4;
		assert_false(vb_sa_hdr_get(mad, sizeof(mad), &h));
		mad[bytes[i]] ^= 4;
	}
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &h));
	/* Only a table may be shorter than a MAD. */
	mad[3] = SA_GET_TABLE_RESP;
	assert_true(vb_sa_hdr_get(mad, 56, &h));
	assert_false(vb_sa_hdr_get(mad, 55, &h));
}

/* --- services --- */

static const struct vb_sa_service service = {
	.id = 0xa0a1a2a3a4a5a6a7,
	.gid = { { 0xfe, 0x80, [15] = 4 } },
	.pkey = 0x8001,
	.lease = 0x01020304,
	.name = "verbena",
};

static void service__is_in_place(void **state)
{
	const struct vb_sa_hdr h = { .method = SA_GET_TABLE,
				     .attr_id = SA_SERVICE,
				     .mask = SA_SERVICE_NAME };
	uint8_t mad[VB_MAD_BYTES];
	const uint8_t *record = mad + 56;
	struct vb_sa_service s;
	struct vb_sa_hdr got;

	vb_sa_service_put(mad, &h, &service);
	assert_int_equal(mad[3], 0x12);
	assert_int_equal(vb_load_be(mad + 16, 2), 0x31);
	assert_int_equal(vb_load_be(mad + 48, 8), 0x40);
	assert_int_equal(vb_load_be(record, 8), 0xa0a1a2a3a4a5a6a7);
	assert_int_equal(record[8], 0xfe);
	assert_int_equal(record[23], 4);
	assert_int_equal(vb_load_be(record + 24, 2), 0x8001);
	assert_int_equal(vb_load_be(record + 28, 4), 0x01020304);
	assert_string_equal((const char *)record + 48, "verbena");
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &got));
	assert_int_equal(vb_sa_service_count(&got, sizeof(mad)), 1);
	assert_true(vb_sa_service_get(mad, &got, 0, &s));
	assert_memory_equal(&s, &service, sizeof(s));
}

/* Answers with several records; a field of the answer says how far apart they
 * are. */
static void service__tables(void **state)
{
	static const struct {
		size_t len;
		uint16_t method, offset;
		unsigned count;
	} rows[] = {
		{ 56 + 3 * 176, 0x92, 22, 3 },
		{ 56 + 3 * 176 - 1, 0x92, 22, 2 },
		{ 56 + 3 * 176, 0x92, 0, 3 },
		{ 56 + 3 * 184, 0x92, 23, 3 },
		{ 56 + 3 * 176, 0x92, 21, 0 },
		{ 56 + 3 * 176, 0x92, 0xffff, 1 },
		{ 56 + 175, 0x92, 22, 0 },
		{ 56, 0x92, 22, 0 },
		{ 256, 0x81, 0, 1 },
		{ 56 + 3 * 176, 0x81, 22, 1 },
	};
	uint8_t mad[1024] = { 0 };
	struct vb_sa_service s;

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const struct vb_sa_hdr h = {
			.method = (uint8_t)rows[i].method,
			.attr_offset = rows[i].offset,
		};

		assert_int_equal(vb_sa_service_count(&h, rows[i].len),
				 rows[i].count);
	}
	/* A GID of no port is refused. */
	assert_false(vb_sa_service_get(mad, &(struct vb_sa_hdr){ 0 }, 0, &s));
	mad[56 + 8] = 0xff;
	assert_false(vb_sa_service_get(mad, &(struct vb_sa_hdr){ 0 }, 0, &s));
	mad[56 + 184 + 8] = 0xfe;
	assert_true(vb_sa_service_get(
		mad, &(struct vb_sa_hdr){ .attr_offset = 23 }, 1, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__has_the_bytes_of_the_drawing),
		cmocka_unit_test(group__has_the_bytes_of_the_drawing),
		cmocka_unit_test(path__of_no_port_is_refused),
		cmocka_unit_test(group__that_is_none_is_refused),
		cmocka_unit_test(
			header__of_another_class_or_version_is_refused),
		cmocka_unit_test(service__is_in_place),
		cmocka_unit_test(service__tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
