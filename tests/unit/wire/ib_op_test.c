/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "wire/ib_op.h"

/*
 * All 256 opcodes as the specification lists them (IBA 9.2, table 38; XRC:
 * Annex A14): one line each, apart from the table under test.
 */
static const struct expected {
	uint8_t opcode;
	const char *name;
	unsigned headers;
} specified[] = {
	// clang-format off
	/* Opcodes of RC, their names and headers: */
	{ 0x00, "SEND_FIRST", 0 },	{ 0x01, "SEND_MIDDLE", 0 },
	{ 0x02, "SEND_LAST", 0 },	{ 0x03, "SEND_LAST_IMM", HDR_IMM },
	{ 0x04, "SEND_ONLY", 0 },	{ 0x05, "SEND_ONLY_IMM", HDR_IMM },
	{ 0x06, "WRITE_FIRST", HDR_RETH }, { 0x07, "WRITE_MIDDLE", 0 },
	{ 0x08, "WRITE_LAST", 0 },	{ 0x09, "WRITE_LAST_IMM", HDR_IMM },
	{ 0x0a, "WRITE_ONLY", HDR_RETH },
	{ 0x0b, "WRITE_ONLY_IMM", HDR_RETH | HDR_IMM },
	{ 0x0c, "READ_REQUEST", HDR_RETH },
	{ 0x0d, "READ_RESP_FIRST", HDR_AETH }, { 0x0e, "READ_RESP_MIDDLE", 0 },
	{ 0x0f, "READ_RESP_LAST", HDR_AETH },
	{ 0x10, "READ_RESP_ONLY", HDR_AETH },
	{ 0x11, "ACK", HDR_AETH },
	{ 0x12, "ATOMIC_ACK", HDR_AETH | HDR_ATOMIC_ACK },
	{ 0x13, "CMP_SWAP", HDR_ATOMIC }, { 0x14, "FETCH_ADD", HDR_ATOMIC },
	{ 0x16, "SEND_LAST_INV", HDR_IETH },
	{ 0x17, "SEND_ONLY_INV", HDR_IETH },
	/* Opcodes of UC, their names and headers: */
	{ 0x20, "SEND_FIRST", 0 },	{ 0x21, "SEND_MIDDLE", 0 },
	{ 0x22, "SEND_LAST", 0 },	{ 0x23, "SEND_LAST_IMM", HDR_IMM },
	{ 0x24, "SEND_ONLY", 0 },	{ 0x25, "SEND_ONLY_IMM", HDR_IMM },
	{ 0x26, "WRITE_FIRST", HDR_RETH }, { 0x27, "WRITE_MIDDLE", 0 },
	{ 0x28, "WRITE_LAST", 0 },	{ 0x29, "WRITE_LAST_IMM", HDR_IMM },
	{ 0x2a, "WRITE_ONLY", HDR_RETH },
	{ 0x2b, "WRITE_ONLY_IMM", HDR_RETH | HDR_IMM },
	/* Opcodes of UD: */
	{ 0x64, "SEND_ONLY", 0 },	{ 0x65, "SEND_ONLY_IMM", HDR_IMM },
	/* Opcodes of XRC: */
	{ 0xa0, "SEND_FIRST", 0 },	{ 0xa1, "SEND_MIDDLE", 0 },
	{ 0xa2, "SEND_LAST", 0 },	{ 0xa3, "SEND_LAST_IMM", HDR_IMM },
	{ 0xa4, "SEND_ONLY", 0 },	{ 0xa5, "SEND_ONLY_IMM", HDR_IMM },
	{ 0xa6, "WRITE_FIRST", HDR_RETH }, { 0xa7, "WRITE_MIDDLE", 0 },
	{ 0xa8, "WRITE_LAST", 0 },	{ 0xa9, "WRITE_LAST_IMM", HDR_IMM },
	{ 0xaa, "WRITE_ONLY", HDR_RETH },
	{ 0xab, "WRITE_ONLY_IMM", HDR_RETH | HDR_IMM },
	{ 0xac, "READ_REQUEST", HDR_RETH },
	{ 0xad, "READ_RESP_FIRST", HDR_AETH }, { 0xae, "READ_RESP_MIDDLE", 0 },
	{ 0xaf, "READ_RESP_LAST", HDR_AETH },
	{ 0xb0, "READ_RESP_ONLY", HDR_AETH },
	{ 0xb1, "ACK", HDR_AETH },
	{ 0xb2, "ATOMIC_ACK", HDR_AETH | HDR_ATOMIC_ACK },
	{ 0xb3, "CMP_SWAP", HDR_ATOMIC }, { 0xb4, "FETCH_ADD", HDR_ATOMIC },
	{ 0xb6, "SEND_LAST_INV", HDR_IETH },
	{ 0xb7, "SEND_ONLY_INV", HDR_IETH },
	{ 0x1d, "ATOMIC_WRITE", HDR_RETH }, { 0xbd, "ATOMIC_WRITE", HDR_RETH },
	/* Verbena's own feedback opcode, from the manufacturers' range: */
	{ 0xc0, "HEARD_ACK", 0 },
	// clang-format on
};

static const struct expected *expected(unsigned opcode)
{
	for (size_t i = 0; i < VB_COUNT(specified); i++)
		if (specified[i].opcode == opcode)
			return &specified[i];
	return NULL;
}

static void check_row(const struct vb_ib_op *op, const struct expected *want)
{
	bool last = strstr(want->name, "LAST") != NULL;
	bool first = strstr(want->name, "FIRST") != NULL;
	bool middle = strstr(want->name, "MIDDLE") != NULL;
	bool response = strstr(want->name, "RESP") || strstr(want->name, "ACK");

	assert_string_equal(op->name, want->name);
	assert_int_equal(op->headers, want->headers);
	assert_int_equal(op->response, response);
	assert_int_equal(!!(op->place & PLACE_FIRST), !last && !middle);
	assert_int_equal(!!(op->place & PLACE_LAST), !first && !middle);
}

static void op__every_opcode(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct expected *want = expected(opcode);
		const struct vb_ib_op *op = vb_ib_op((uint8_t)opcode);

		if (want) {
			assert_non_null(op);
			check_row(op, want);
		} else {
			assert_null(op);
		}
	}
}

static void op__kinds(void **state)
{
	static const struct {
		const char *begin;
		enum vb_ib_kind kind;
	} kinds[] = {
		{ "SEND_", KIND_SEND },
		{ "WRITE_", KIND_WRITE },
		{ "READ_REQUEST", KIND_READ },
		{ "READ_RESP", KIND_READ_RESP },
		{ "ATOMIC_ACK", KIND_ATOMIC_ACK },
		{ "ACK", KIND_ACK },
		{ "CMP_SWAP", KIND_ATOMIC },
		{ "FETCH_ADD", KIND_ATOMIC },
		{ "ATOMIC_WRITE", KIND_ATOMIC_WRITE },
	};

	for (uint8_t code = 0; code < 32; code++) {
		const struct vb_ib_op *op = vb_ib_op(code);
		unsigned found = 0;

		for (size_t i = 0; op && i < VB_COUNT(kinds); i++)
			if (!strncmp(op->name, kinds[i].begin,
				     strlen(kinds[i].begin))) {
				assert_int_equal(op->kind, kinds[i].kind);
				found++;
			}
		assert_int_equal(found, op ? 1 : 0);
	}
}

static void code_pick__finds_the_row_asked_for(void **state)
{
	for (unsigned kind = KIND_SEND; kind <= KIND_WRITE; kind++)
		for (unsigned place = 0; place < 4; place++)
			for (unsigned extra = 0; extra < 3; extra++) {
				bool imm = extra == 1, inv = extra == 2;
				bool last = place & PLACE_LAST;
				const struct vb_ib_op *op = vb_ib_op(
					vb_ib_code_pick(kind, place, imm, inv));

				assert_non_null(op);
				assert_int_equal(op->kind, kind);
				assert_int_equal(op->place, place);
				assert_int_equal(!!(op->headers & HDR_IMM),
						 imm && last);
				assert_int_equal(!!(op->headers & HDR_IETH),
						 inv && last &&
							 kind == KIND_SEND);
			}
}

static void code_read_resp__finds_the_row(void **state)
{
	for (unsigned place = 0; place < 4; place++) {
		const struct vb_ib_op *op =
			vb_ib_op(vb_ib_code_read_resp(place));

		assert_int_equal(op->kind, KIND_READ_RESP);
		assert_int_equal(op->place, place);
	}
}

/* The order of a message's opcodes, in the words of IBA 9.7.4.1.2 and
 * 9.8.2.2.1. */
static enum vb_ib_order slow_order(const struct vb_ib_op *prev,
				   const struct vb_ib_op *next)
{
	bool open = prev &&
		    (prev->place == PLACE_FIRST || prev->place == PLACE_MIDDLE);
	bool goes_on = next->place == PLACE_MIDDLE || next->place == PLACE_LAST;

	if (open)
		return goes_on && prev->kind == next->kind ? ORDER_OK
							   : ORDER_NO_LAST;
	return goes_on ? ORDER_NO_FIRST : ORDER_OK;
}

static void order__every_pair_of_requests(void **state)
{
	for (uint8_t a = 0; a < 33; a++)
		for (uint8_t b = 0; b < 32; b++) {
			const struct vb_ib_op *prev =
				a ? vb_ib_op(a - 1) : NULL;
			const struct vb_ib_op *next = vb_ib_op(b);

			if (!next || next->response)
				continue;
			if (a && (!prev || prev->response))
				continue;
			assert_int_equal(vb_ib_op_order(prev, next),
					 slow_order(prev, next));
		}
}

static void order__examples(void **state)
{
	const struct vb_ib_op *first = vb_ib_op(CODE_WRITE_FIRST);
	const struct vb_ib_op *middle = vb_ib_op(CODE_WRITE_MIDDLE);
	const struct vb_ib_op *last = vb_ib_op(CODE_WRITE_LAST_IMM);
	const struct vb_ib_op *read = vb_ib_op(CODE_READ_REQUEST);
	const struct vb_ib_op *send = vb_ib_op(CODE_SEND_LAST);
	const struct vb_ib_op *ack = vb_ib_op(CODE_ACK);

	assert_int_equal(vb_ib_op_order(NULL, first), ORDER_OK);
	assert_int_equal(vb_ib_op_order(NULL, middle), ORDER_NO_FIRST);
	assert_int_equal(vb_ib_op_order(first, last), ORDER_OK);
	assert_int_equal(vb_ib_op_order(middle, first), ORDER_NO_LAST);
	assert_int_equal(vb_ib_op_order(middle, send), ORDER_NO_LAST);
	assert_int_equal(vb_ib_op_order(middle, read), ORDER_NO_LAST);
	assert_int_equal(vb_ib_op_order(last, read), ORDER_OK);
	assert_int_equal(vb_ib_op_order(read, middle), ORDER_NO_FIRST);
	assert_int_equal(vb_ib_op_order(middle, ack), ORDER_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op__every_opcode),
		cmocka_unit_test(op__kinds),
		cmocka_unit_test(code_pick__finds_the_row_asked_for),
		cmocka_unit_test(code_read_resp__finds_the_row),
		cmocka_unit_test(order__every_pair_of_requests),
		cmocka_unit_test(order__examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
