/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/ib_hdr.h"

static void random_fill(void *p, size_t len)
{
	uint8_t *at = p;

	while (len--)
		*at++ = (uint8_t)(rand() >> 7);
}

static struct vb_bth random_bth(uint8_t opcode)
{
	return (struct vb_bth){
		.opcode = opcode,
		.solicited = rand() & 1,
		.migrated = rand() & 1,
		.fecn = rand() & 1,
		.becn = rand() & 1,
		.ack_req = rand() & 1,
		.selective = rand() & 1,
		.pad = rand() & 3,
		.pkey = (uint16_t)rand(),
		.dqpn = (uint32_t)rand() & 0xffffff,
		.psn = (uint32_t)rand() & 0xffffff,
	};
}

static void check_bth(const struct vb_bth *a, const struct vb_bth *b)
{
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->solicited, b->solicited);
	assert_int_equal(a->migrated, b->migrated);
	assert_int_equal(a->fecn, b->fecn);
	assert_int_equal(a->becn, b->becn);
	assert_int_equal(a->ack_req, b->ack_req);
	assert_int_equal(a->selective, b->selective);
	assert_int_equal(a->pad, b->pad);
	assert_int_equal(a->pkey, b->pkey);
	assert_int_equal(a->dqpn, b->dqpn);
	assert_int_equal(a->psn, b->psn);
}

static void bth__bytes(void **state)
{
	static const uint8_t want[VB_BTH_BYTES] = {
		0x0a, 0xe0, 0xff, 0xff, 0x40, 0x12,
		0x34, 0x56, 0x80, 0xab, 0xcd, 0xef,
	};
	const struct vb_bth h = {
		.opcode = 0x0a,
		.solicited = true,
		.migrated = true,
		.pad = 2,
		.pkey = 0xffff,
		.becn = true,
		.dqpn = 0x123456,
		.ack_req = true,
		.psn = 0xabcdef,
	};
	uint8_t bytes[VB_BTH_BYTES];
	struct vb_writer w = { bytes };

	vb_bth_put(&w, &h);
	assert_ptr_equal(w.at, bytes + sizeof(bytes));
	assert_memory_equal(bytes, want, sizeof(want));
}

static void bth__round_trip_truncation_version(void **state)
{
	uint8_t bytes[VB_BTH_BYTES];

	for (int i = 0; i < 2000; i++) {
		struct vb_bth a = random_bth((uint8_t)rand()), b;
		struct vb_reader r = vb_reader(bytes, sizeof(bytes));
		struct vb_writer w = { bytes };

		vb_bth_put(&w, &a);
		assert_true(vb_bth_get(&r, &b));
		check_bth(&a, &b);
		for (size_t len = 0; len < sizeof(bytes); len++) {
			r = vb_reader(bytes, len);
			assert_false(vb_bth_get(&r, &b));
		}
		bytes[1] |= 1 << i % 4;
		r = vb_reader(bytes, sizeof(bytes));
		assert_false(vb_bth_get(&r, &b));
	}
}

#define CHECK_PAIR(type, name, size, ...)                                      \
	static void name##__round_trip_and_truncation(void **state)            \
	{                                                                      \
		struct type a = __VA_ARGS__, b;                                \
		uint8_t bytes[size];                                           \
		struct vb_writer w = { bytes };                                \
		struct vb_reader r;                                            \
                                                                               \
		memset(&b, 0, sizeof(b));                                      \
		vb_##name##_put(&w, &a);                                       \
		assert_ptr_equal(w.at, bytes + (size));                        \
		for (size_t len = 0; len < (size); len++) {                    \
			r = vb_reader(bytes, len);                             \
			assert_false(vb_##name##_get(&r, &b));                 \
		}                                                              \
		r = vb_reader(bytes, size);                                    \
		memset(&b, 0, sizeof(b));                                      \
		assert_true(vb_##name##_get(&r, &b));                          \
		assert_memory_equal(&a, &b, sizeof(a));                        \
	}

CHECK_PAIR(vb_reth, reth, 16, { 0x0123456789abcdef, 0xfedcba98, 0x80000000 })
CHECK_PAIR(vb_deth, deth, 8, { 0x80010000, 0xfffffe })

static void aeth__round_trip_and_truncation(void **state)
{
	const struct vb_aeth a = { 0x1f, 0xfedcba };
	uint8_t bytes[4] = { 0 };
	struct vb_writer w = { bytes };
	struct vb_reader r = vb_reader(bytes, 4);
	struct vb_aeth b;

	vb_aeth_put(&w, &a);
	assert_int_equal(vb_load_be(bytes, 4), 0x1ffedcba);
	assert_true(vb_aeth_get(&r, &b));
	assert_int_equal(b.syndrome, a.syndrome);
	assert_int_equal(b.msn, a.msn);
	for (size_t len = 0; len < 4; len++) {
		r = vb_reader(bytes, len);
		assert_false(vb_aeth_get(&r, &b));
	}
}

static void atomic_eth__round_trip_and_truncation(void **state)
{
	const struct vb_atomic_eth a = { 0x1122334455667788, 0x99aabbcc,
					 0x0102030405060708,
					 0xf1f2f3f4f5f6f7f8 };
	uint8_t bytes[28] = { 0 };
	struct vb_writer w = { bytes };
	struct vb_reader r = vb_reader(bytes, 28);
	struct vb_atomic_eth b;

	vb_atomic_eth_put(&w, &a);
	assert_int_equal(vb_load_be(bytes + 8, 4), 0x99aabbcc);
	assert_true(vb_load_be(bytes + 12, 8) == a.swap_add);
	assert_true(vb_atomic_eth_get(&r, &b));
	assert_true(a.va == b.va && a.rkey == b.rkey);
	assert_true(a.swap_add == b.swap_add && a.compare == b.compare);
	for (size_t len = 0; len < 28; len++) {
		r = vb_reader(bytes, len);
		assert_false(vb_atomic_eth_get(&r, &b));
	}
}

/* Returns the length of the headers between BTH and payload, by class and
 * row. */
static size_t header_bytes(uint8_t opcode)
{
	const struct vb_ib_op *op = vb_ib_op(opcode);
	size_t len = VB_BTH_BYTES;

	len += op->headers & HDR_RETH ? 16 : 0;
	len += op->headers & HDR_ATOMIC ? 28 : 0;
	len += op->headers & HDR_AETH ? 4 : 0;
	len += op->headers & HDR_ATOMIC_ACK ? 8 : 0;
	len += op->headers & HDR_IMM ? 4 : 0;
	len += op->headers & HDR_IETH ? 4 : 0;
	len += opcode >> 5 == CLASS_UD ? 8 : 0;
	len += opcode >> 5 == CLASS_XRC && !op->response ? 4 : 0;
	return len;
}

static void check_extended(const struct vb_ib_pkt *a, const struct vb_ib_pkt *b)
{
	unsigned headers = b->op->headers;

	if (headers & HDR_RETH) {
		assert_true(a->reth.va == b->reth.va);
		assert_int_equal(a->reth.rkey, b->reth.rkey);
		assert_int_equal(a->reth.length, b->reth.length);
	}
	if (headers & HDR_ATOMIC) {
		assert_true(a->atomic.va == b->atomic.va);
		assert_int_equal(a->atomic.rkey, b->atomic.rkey);
		assert_true(a->atomic.swap_add == b->atomic.swap_add);
		assert_true(a->atomic.compare == b->atomic.compare);
	}
	if (headers & HDR_AETH) {
		assert_int_equal(a->aeth.syndrome, b->aeth.syndrome);
		assert_int_equal(a->aeth.msn, b->aeth.msn);
	}
	if (headers & HDR_ATOMIC_ACK)
		assert_true(a->atomic_ack == b->atomic_ack);
	if (headers & HDR_IMM)
		assert_int_equal(a->imm, b->imm);
	if (headers & HDR_IETH)
		assert_int_equal(a->ieth_rkey, b->ieth_rkey);
}

static void check_class_headers(const struct vb_ib_pkt *a,
				const struct vb_ib_pkt *b)
{
	if (b->bth.opcode >> 5 == CLASS_UD) {
		assert_int_equal(a->deth.qkey, b->deth.qkey);
		assert_int_equal(a->deth.sqpn, b->deth.sqpn);
	}
	if (b->bth.opcode >> 5 == CLASS_XRC && !b->op->response)
		assert_int_equal(a->xrc_srqn, b->xrc_srqn);
}

static void check_one_opcode(uint8_t opcode)
{
	uint8_t bytes[VB_IB_MAX_HDR_BYTES + 64];
	struct vb_ib_pkt a, b;
	size_t head, len;

	random_fill(&a, sizeof(a));
	random_fill(bytes, sizeof(bytes));
	a.bth = random_bth(opcode);
	a.aeth.msn &= 0xffffff;
	a.deth.sqpn &= 0xffffff;
	a.xrc_srqn &= 0xffffff;
	head = vb_ib_put_headers(bytes, &a);
	assert_int_equal(head, header_bytes(opcode));
	assert_in_range(head, VB_BTH_BYTES, VB_IB_MAX_HDR_BYTES);

	len = head + (size_t)(rand() % 16) * 4;
	if (len < head + a.bth.pad)
		len += 4;
	assert_int_equal(vb_ib_parse(bytes, len, &b), PARSE_OK);
	check_bth(&a.bth, &b.bth);
	check_extended(&a, &b);
	check_class_headers(&a, &b);
	assert_ptr_equal(b.payload, bytes + head);
	assert_int_equal(b.payload_bytes, len - head - a.bth.pad);

	/* Parse each shortened packet from memory of exactly its length. */
	for (size_t cut = 0; cut < head + a.bth.pad; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);

		memcpy(exact, bytes, cut);
		assert_int_equal(vb_ib_parse(exact, cut, &b), PARSE_SHORT);
		assert_null(b.op);
		free(exact);
	}
	assert_int_equal(vb_ib_parse(bytes, len + 1, &b), PARSE_SHORT);
}

static void parse__every_opcode(void **state)
{
	uint8_t bytes[64] = { 0 };
	struct vb_ib_pkt pkt;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bytes[0] = (uint8_t)opcode;
		if (!vb_ib_op((uint8_t)opcode)) {
			assert_int_equal(vb_ib_parse(bytes, 64, &pkt),
					 PARSE_OPCODE);
			assert_null(pkt.op);
			continue;
		}
		for (int i = 0; i < 50; i++)
			check_one_opcode((uint8_t)opcode);
	}
}

static void parse__version(void **state)
{
	uint8_t bytes[12] = { 0x04 };
	struct vb_ib_pkt pkt;

	assert_int_equal(vb_ib_parse(bytes, 12, &pkt), PARSE_OK);
	for (uint8_t v = 1; v < 16; v++) {
		bytes[1] = v;
		assert_int_equal(vb_ib_parse(bytes, 12, &pkt), PARSE_VERSION);
	}
}

/* The order on the wire is XRCETH, RETH, ImmDt; the immediate's bytes are not
 * swapped. */
static void put_headers__bytes_of_an_xrc_write_imm(void **state)
{
	static const uint8_t ext[] = {
		0,    0x00, 0xab, 0xcd, 1, 2, 3, 4, 5,	 6,   7,   8,
		0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 9, 'i', 'm', 'm', '!',
	};
	struct vb_ib_pkt pkt = {
		.bth.opcode = CLASS_XRC << 5 | CODE_WRITE_ONLY_IMM,
		.reth = { 0x0102030405060708, 0xaabbccdd, 9 },
		.xrc_srqn = 0xabcd,
	};
	uint8_t bytes[VB_IB_MAX_HDR_BYTES];

	memcpy(&pkt.imm, "imm!", 4);
	assert_int_equal(vb_ib_put_headers(bytes, &pkt), 12 + sizeof(ext));
	assert_memory_equal(bytes + 12, ext, sizeof(ext));
}

static void psn__arithmetic(void **state)
{
	assert_int_equal(vb_psn_add(0xffffff, 1), 0);
	assert_int_equal(vb_psn_diff(0, 0xffffff), 1);
	assert_int_equal(vb_psn_diff(0xffffff, 0), -1);
	assert_int_equal(vb_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(vb_psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(vb_psn_diff(5, 5), 0);
}

static void rnr__every_code(void **state)
{
	static const double ms[32] = {
		655.36, .01,   .02,   .03,    .04,    .06,    .08,    .12,
		.16,	.24,   .32,   .48,    .64,    .96,    1.28,   1.92,
		2.56,	3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
		40.96,	61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
	};

	for (uint8_t code = 0; code < 32; code++)
		assert_int_equal(vb_rnr_ns(code),
				 (vb_time)(ms[code] * 1e6 + 0.5));
	assert_int_equal(vb_rnr_ns(32), vb_rnr_ns(0));
}

static void ack_timeout__every_code(void **state)
{
	assert_true(vb_ack_timeout_ns(0) == VB_NEVER);
	assert_int_equal(vb_ack_timeout_ns(1), 8192);
	assert_int_equal(vb_ack_timeout_ns(14), 67108864);
	assert_int_equal(vb_ack_timeout_ns(31), 4096ull << 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bth__bytes),
		cmocka_unit_test(bth__round_trip_truncation_version),
		cmocka_unit_test(reth__round_trip_and_truncation),
		cmocka_unit_test(atomic_eth__round_trip_and_truncation),
		cmocka_unit_test(aeth__round_trip_and_truncation),
		cmocka_unit_test(deth__round_trip_and_truncation),
		cmocka_unit_test(parse__every_opcode),
		cmocka_unit_test(parse__version),
		cmocka_unit_test(put_headers__bytes_of_an_xrc_write_imm),
		cmocka_unit_test(psn__arithmetic),
		cmocka_unit_test(rnr__every_code),
		cmocka_unit_test(ack_timeout__every_code),
	};

	srand(11);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
