/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations (IBA 9.2, table 38), and functions that search it. */
#include "wire/ib_op.h"

#define CLASSES(rc, uc, ud, xrc)                                               \
	((rc) << CLASS_RC | (uc) << CLASS_UC | (ud) << CLASS_UD |              \
	 (xrc) << CLASS_XRC)
#define NONE 0
#define RETH HDR_RETH
#define ATOM HDR_ATOMIC
#define AETH HDR_AETH
#define AACK HDR_ATOMIC_ACK
#define IMM  HDR_IMM
#define IETH HDR_IETH
#define ROW(name, kind, place, headers, rc, uc, ud, xrc, response)             \
	[CODE_##name] = { #name,                                               \
			  KIND_##kind,                                         \
			  PLACE_##place,                                       \
			  headers,                                             \
			  CLASSES(rc, uc, ud, xrc),                            \
			  response }

// clang-format off
static const struct vb_ib_op ops[32] = {
	/*  operation         kind        place   headers     RC UC UD XRC  response */
	ROW(SEND_FIRST,       SEND,       FIRST,  NONE,        1, 1, 0, 1,  false),
	ROW(SEND_MIDDLE,      SEND,       MIDDLE, NONE,        1, 1, 0, 1,  false),
	ROW(SEND_LAST,        SEND,       LAST,   NONE,        1, 1, 0, 1,  false),
	ROW(SEND_LAST_IMM,    SEND,       LAST,   IMM,         1, 1, 0, 1,  false),
	ROW(SEND_ONLY,        SEND,       ONLY,   NONE,        1, 1, 1, 1,  false),
	ROW(SEND_ONLY_IMM,    SEND,       ONLY,   IMM,         1, 1, 1, 1,  false),
	ROW(WRITE_FIRST,      WRITE,      FIRST,  RETH,        1, 1, 0, 1,  false),
	ROW(WRITE_MIDDLE,     WRITE,      MIDDLE, NONE,        1, 1, 0, 1,  false),
	ROW(WRITE_LAST,       WRITE,      LAST,   NONE,        1, 1, 0, 1,  false),
	ROW(WRITE_LAST_IMM,   WRITE,      LAST,   IMM,         1, 1, 0, 1,  false),
	ROW(WRITE_ONLY,       WRITE,      ONLY,   RETH,        1, 1, 0, 1,  false),
	ROW(WRITE_ONLY_IMM,   WRITE,      ONLY,   RETH | IMM,  1, 1, 0, 1,  false),
	ROW(READ_REQUEST,     READ,       ONLY,   RETH,        1, 0, 0, 1,  false),
	ROW(READ_RESP_FIRST,  READ_RESP,  FIRST,  AETH,        1, 0, 0, 1,  true),
	ROW(READ_RESP_MIDDLE, READ_RESP,  MIDDLE, NONE,        1, 0, 0, 1,  true),
	ROW(READ_RESP_LAST,   READ_RESP,  LAST,   AETH,        1, 0, 0, 1,  true),
	ROW(READ_RESP_ONLY,   READ_RESP,  ONLY,   AETH,        1, 0, 0, 1,  true),
	ROW(ACK,              ACK,        ONLY,   AETH,        1, 0, 0, 1,  true),
	ROW(ATOMIC_ACK,       ATOMIC_ACK, ONLY,   AETH | AACK, 1, 0, 0, 1,  true),
	ROW(CMP_SWAP,         ATOMIC,     ONLY,   ATOM,        1, 0, 0, 1,  false),
	ROW(FETCH_ADD,        ATOMIC,     ONLY,   ATOM,        1, 0, 0, 1,  false),
	ROW(SEND_LAST_INV,    SEND,       LAST,   IETH,        1, 0, 0, 1,  false),
	ROW(SEND_ONLY_INV,    SEND,       ONLY,   IETH,        1, 0, 0, 1,  false),
	ROW(ATOMIC_WRITE,     ATOMIC_WRITE, ONLY, RETH,        1, 0, 0, 1,  false),
};
// clang-format on
#undef ROW
#undef CLASSES
#undef NONE
#undef RETH
#undef ATOM
#undef AETH
#undef AACK
#undef IMM
#undef IETH

_Static_assert(PLACE_ONLY == (PLACE_FIRST | PLACE_LAST), "places are bits");

const struct vb_ib_op *vb_ib_op(uint8_t opcode)
{
	static const struct vb_ib_op heard = {
		.name = "HEARD_ACK",
		.kind = KIND_ACK,
		.place = PLACE_ONLY,
		.classes = 1u << CLASS_OWN,
		.response = true,
	};
	const struct vb_ib_op *op = &ops[opcode & 0x1f];

	if (opcode == VB_OP_HEARD)
		return &heard;
	/* An opcode without a row has no class, so this returns NULL. */
	return op->classes & 1u << (opcode >> 5) ? op : NULL;
}

uint8_t vb_ib_code_pick(enum vb_ib_kind kind, enum vb_ib_place place, bool imm,
			bool inv)
{
	static const uint8_t sends[4] = {
		[PLACE_FIRST] = CODE_SEND_FIRST,
		[PLACE_MIDDLE] = CODE_SEND_MIDDLE,
		[PLACE_LAST] = CODE_SEND_LAST,
		[PLACE_ONLY] = CODE_SEND_ONLY,
	};
	uint8_t code = sends[place & PLACE_ONLY];

	if (place & PLACE_LAST) {
		if (inv && kind == KIND_SEND)
			return place == PLACE_ONLY ? CODE_SEND_ONLY_INV
						   : CODE_SEND_LAST_INV;
		/* The _IMM code of each operation follows the code without
		 * immediate data. */
		code += imm;
	}
	/* The six WRITE opcodes are in the order of the SEND opcodes. */
	return kind == KIND_WRITE ? code + CODE_WRITE_FIRST : code;
}

uint8_t vb_ib_code_read_resp(enum vb_ib_place place)
{
	static const uint8_t codes[4] = {
		[PLACE_FIRST] = CODE_READ_RESP_FIRST,
		[PLACE_MIDDLE] = CODE_READ_RESP_MIDDLE,
		[PLACE_LAST] = CODE_READ_RESP_LAST,
		[PLACE_ONLY] = CODE_READ_RESP_ONLY,
	};

	return codes[place & PLACE_ONLY];
}

/* Requests are legal in the order of their places. A READ or ATOMIC has the
 * place PLACE_ONLY: it may come exactly when no message is unfinished. */
enum vb_ib_order vb_ib_op_order(const struct vb_ib_op *prev,
				const struct vb_ib_op *next)
{
	bool inside = prev && !prev->response && !(prev->place & PLACE_LAST);

	if (next->response)
		/* The order of packets in a message is a rule for requests
		 * only. */
		return ORDER_OK;
	if (!inside)
		return next->place & PLACE_FIRST ? ORDER_OK : ORDER_NO_FIRST;
	if (next->kind != prev->kind || next->place & PLACE_FIRST)
		return ORDER_NO_LAST;
	return ORDER_OK;
}
