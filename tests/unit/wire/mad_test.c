/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/mad.h"

/* Each byte contains its own offset: a field that was read must be written back
 * to its place. */
static void fill(uint8_t mad[VB_MAD_BYTES], unsigned attr, uint8_t step)
{
	struct vb_writer w = { mad };
	const struct vb_mad_hdr h = {
		1, 7, 2, 3, 0, 0, 0x1122334455667788, (uint16_t)attr, 0
	};

	for (unsigned i = 0; i < VB_MAD_BYTES; i++)
		mad[i] = (uint8_t)(i * step + 1);
	vb_mad_hdr_put(&w, &h);
}

static void mad__put_and_get_agree(void **state)
{
	for (unsigned attr = CM_REQ; attr <= CM_LAST; attr++)
		for (unsigned step = 1; step < 255; step += 2) {
			uint8_t a[VB_MAD_BYTES], b[VB_MAD_BYTES + 1];
			struct vb_cm_msg m, n;

			fill(a, attr, (uint8_t)step);
			assert_true(vb_cm_get(a, sizeof(a), &m));
			memset(b, 0xa5, sizeof(b));
			vb_cm_put(b, &m);
			assert_int_equal(b[VB_MAD_BYTES], 0xa5);
			assert_true(vb_cm_get(b, VB_MAD_BYTES, &n));
			assert_memory_equal(&m, &n, sizeof(m));
			/* Private data fill the last bytes of a CM MAD. */
			assert_memory_equal(m.private_data,
					    a + VB_MAD_BYTES -
						    vb_cm_private_bytes(attr),
					    vb_cm_private_bytes(attr));
		}
}

/* Offsets of the specification's tables, from the start of the MAD. */
static void mad__req_fields_are_in_place(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REQ,
			       .tid = 7,
			       .local_id = 0x01020304,
			       .req = { .service_id = 0x1061d2f,
					.qpn = 0x123456,
					.psn = 0x654321,
					.mtu = 5,
					.retry_count = 7,
					.rnr_retry = 6,
					.remote_timeout = 20,
					.local_timeout = 21,
					.max_cm_retries = 15,
					.flow_control = true,
					.pkey = 0xffff,
					.path = { .flow_label = 0xabcde,
						  .ack_timeout = 19 } } };
	uint8_t mad[VB_MAD_BYTES];
	const uint8_t *body = mad + VB_MAD_HDR_BYTES;

	memset(m.req.path.remote_gid.raw, 0x77, 16);
	vb_cm_put(mad, &m);
	assert_int_equal(mad[1], 7);
	assert_int_equal(vb_load_be(mad + 16, 2), CM_REQ);
	assert_int_equal(vb_load_be(body, 4), 0x01020304);
	assert_int_equal(vb_load_be(body + 8, 8), 0x1061d2f);
	assert_int_equal(vb_load_be(body + 32, 3), 0x123456);
	assert_int_equal(body[43], 20 << 3 | 1);
	assert_int_equal(vb_load_be(body + 44, 3), 0x654321);
	assert_int_equal(body[47], 21 << 3 | 7);
	assert_int_equal(body[50], 5 << 4 | 6);
	assert_int_equal(body[51], 15 << 4);
	assert_int_equal(body[72], 0x77);
	assert_int_equal(vb_load_be(body + 88, 3), 0xabcde0);
	assert_int_equal(body[95], 19 << 3);
}

static void mad__others_are_in_place(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .local_id = 1, .remote_id = 2 };
	uint8_t mad[VB_MAD_BYTES];
	const uint8_t *body = mad + VB_MAD_HDR_BYTES;

	m.answer.message = CM_ANSWERS_OTHER;
	m.answer.reason = 28;
	m.private_data[0] = 0xee;
	vb_cm_put(mad, &m);
	assert_int_equal(body[8], 2 << 6);
	assert_int_equal(vb_load_be(body + 10, 2), 28);
	assert_int_equal(body[84], 0xee);

	m = (struct vb_cm_msg){ .attr = CM_REP };
	m.rep.qpn = 0x123456;
	m.rep.rnr_retry = 5;
	m.rep.ca_guid = 0x1122334455667788;
	vb_cm_put(mad, &m);
	assert_int_equal(vb_load_be(body + 12, 3), 0x123456);
	assert_int_equal(body[27], 5 << 5);
	assert_int_equal(vb_load_be(body + 28, 8), 0x1122334455667788);

	m = (struct vb_cm_msg){ .attr = CM_SIDR_REP };
	m.sidr.qkey = 0x1234567;
	m.private_data[0] = 0xdd;
	vb_cm_put(mad, &m);
	assert_int_equal(vb_load_be(body + 20, 4), 0x1234567);
	assert_int_equal(body[96], 0xdd);
}

/* A REQ has the alternate path behind the primary one. In a LAP the rate stands
 * behind the hop limit. */
static void mad__alternate_paths_are_in_place(void **state)
{
	const struct vb_cm_path path = {
		.local_lid = 0x1234,
		.remote_lid = 0x5678,
		.local_gid = { { 0xfe, 0x80, [15] = 1 } },
		.remote_gid = { { 0xfe, 0x80, [15] = 2 } },
		.flow_label = 0xabcde,
		.rate = 0x2a,
		.tclass = 0x77,
		.hop_limit = 0x42,
		.sl = 9,
		.subnet_local = true,
		.ack_timeout = 19,
	};
	struct vb_cm_msg m = { .attr = CM_REQ, .req = { .alternate = path } };
	uint8_t mad[VB_MAD_BYTES];
	const uint8_t *body = mad + VB_MAD_HDR_BYTES;

	vb_cm_put(mad, &m);
	assert_int_equal(vb_load_be(body + 96, 2), 0x1234);
	assert_int_equal(vb_load_be(body + 98, 2), 0x5678);
	assert_int_equal(body[115], 1);
	assert_int_equal(body[131], 2);
	assert_int_equal(vb_load_be(body + 132, 3), 0xabcde0);
	assert_int_equal(body[135], 0x2a);
	assert_int_equal(body[136], 0x77);
	assert_int_equal(body[137], 0x42);
	assert_int_equal(body[138], 9 << 4 | 8);
	assert_int_equal(body[139], 19 << 3);

	m = (struct vb_cm_msg){ .attr = CM_LAP,
				.local_id = 0x01020304,
				.remote_id = 0x05060708,
				.lap = { .remote_qpn = 0x123456,
					 .remote_timeout = 21,
					 .alternate = path } };
	vb_cm_put(mad, &m);
	assert_int_equal(vb_load_be(mad + 16, 2), 0x19);
	assert_int_equal(vb_load_be(body, 8), 0x0102030405060708);
	assert_int_equal(vb_load_be(body + 12, 3), 0x123456);
	assert_int_equal(body[15], 21 << 3);
	assert_int_equal(vb_load_be(body + 20, 2), 0x1234);
	assert_int_equal(vb_load_be(body + 22, 2), 0x5678);
	assert_int_equal(body[39], 1);
	assert_int_equal(body[55], 2);
	assert_int_equal(vb_load_be(body + 56, 3), 0xabcde0);
	assert_int_equal(body[59], 0x77);
	assert_int_equal(body[60], 0x42);
	assert_int_equal(body[61], 0x2a);
	assert_int_equal(body[62], 9 << 4 | 8);
	assert_int_equal(body[63], 19 << 3);

	m = (struct vb_cm_msg){ .attr = CM_APR,
				.apr = { .status = 2, .info_bytes = 3 } };
	m.apr.info[0] = 0xcc;
	m.private_data[0] = 0xdd;
	vb_cm_put(mad, &m);
	assert_int_equal(vb_load_be(mad + 16, 2), 0x1a);
	assert_int_equal(body[8], 3);
	assert_int_equal(body[9], 2);
	assert_int_equal(body[12], 0xcc);
	assert_int_equal(body[84], 0xdd);
}

static void mad__refuses(void **state)
{
	// clang-format off
	static const struct { unsigned at; uint8_t value; } bad[] = {
		{ 0, 2 }, { 1, 3 }, { 2, 1 }, { 3, 0x81 },
		{ 17, CM_REQ - 1 }, { 17, CM_LAST + 1 }, { 16, 1 },
	};
	// clang-format on
	uint8_t mad[VB_MAD_BYTES];
	struct vb_cm_msg m;

	for (unsigned i = 0; i < VB_COUNT(bad); i++) {
		fill(mad, CM_REQ, 1);
		mad[bad[i].at] = bad[i].value;
		assert_false(vb_cm_get(mad, sizeof(mad), &m));
	}
	fill(mad, CM_REQ, 1);
	for (size_t len = 0; len < sizeof(mad); len++) {
		uint8_t *exact = malloc(len ? len : 1);

		memcpy(exact, mad, len);
		assert_false(vb_cm_get(exact, len, &m));
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mad__put_and_get_agree),
		cmocka_unit_test(mad__req_fields_are_in_place),
		cmocka_unit_test(mad__others_are_in_place),
		cmocka_unit_test(mad__alternate_paths_are_in_place),
		cmocka_unit_test(mad__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
