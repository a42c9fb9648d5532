/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table with one row for each operation of the InfiniBand transport (IBA 9.2,
 * table 38). The low five bits of a BTH opcode select the row, the high three
 * bits the transport.
 */
#ifndef WIRE_IB_OP_H
#define WIRE_IB_OP_H

#include "base/defs.h"

enum vb_ib_class { /* bits 7:5 of the opcode: the transport */
		   CLASS_RC = 0,
		   CLASS_UC = 1,
		   CLASS_RD = 2,
		   CLASS_UD = 3,
		   CLASS_CNP = 4,
		   CLASS_XRC = 5,
		   CLASS_OWN = 6,  /* opcodes that the manufacturer defines */
		   CLASS_NONE = 8, /* a value that no packet has */
};

enum vb_ib_code { /* bits 4:0 of the opcode: the operation */
		  CODE_SEND_FIRST = 0x00,
		  CODE_SEND_MIDDLE = 0x01,
		  CODE_SEND_LAST = 0x02,
		  CODE_SEND_LAST_IMM = 0x03,
		  CODE_SEND_ONLY = 0x04,
		  CODE_SEND_ONLY_IMM = 0x05,
		  CODE_WRITE_FIRST = 0x06,
		  CODE_WRITE_MIDDLE = 0x07,
		  CODE_WRITE_LAST = 0x08,
		  CODE_WRITE_LAST_IMM = 0x09,
		  CODE_WRITE_ONLY = 0x0a,
		  CODE_WRITE_ONLY_IMM = 0x0b,
		  CODE_READ_REQUEST = 0x0c,
		  CODE_READ_RESP_FIRST = 0x0d,
		  CODE_READ_RESP_MIDDLE = 0x0e,
		  CODE_READ_RESP_LAST = 0x0f,
		  CODE_READ_RESP_ONLY = 0x10,
		  CODE_ACK = 0x11,
		  CODE_ATOMIC_ACK = 0x12,
		  CODE_CMP_SWAP = 0x13,
		  CODE_FETCH_ADD = 0x14,
		  CODE_SEND_LAST_INV = 0x16,
		  CODE_SEND_ONLY_INV = 0x17,
		  CODE_ATOMIC_WRITE = 0x1d, /* IBA annex A19 */
};

/* Verbena's own opcode: "a UC or UD packet with AckReq has arrived". The packet
 * has only a BTH, with the PSN of the packet that arrived (ib/pace.h). Other
 * implementations drop a packet of a class that they do not know. */
#define VB_OP_HEARD (CLASS_OWN << 5)

enum vb_ib_kind {
	KIND_SEND,
	KIND_WRITE,
	KIND_READ,
	KIND_ATOMIC,
	/* ATOMIC WRITE; its answer is a READ response without payload */
	KIND_ATOMIC_WRITE,
	KIND_READ_RESP,
	KIND_ACK,
	KIND_ATOMIC_ACK,
};

enum vb_ib_place {
	PLACE_MIDDLE = 0,
	PLACE_FIRST = 1,
	PLACE_LAST = 2,
	PLACE_ONLY = 3
};

/* extended headers after the BTH, in the order on the wire */
enum vb_ib_header {
	HDR_RETH = 1 << 0,
	HDR_ATOMIC = 1 << 1,
	HDR_AETH = 1 << 2,
	HDR_ATOMIC_ACK = 1 << 3,
	HDR_IMM = 1 << 4,
	HDR_IETH = 1 << 5,
	/* every packet of CLASS_UD has it, so rows do not name
	 * it */
	HDR_DETH = 1 << 6,
	/* every request of CLASS_XRC has it, so rows do not name
	 * it */
	HDR_XRCETH = 1 << 7,
};

struct vb_ib_op {
	/* for example "WRITE_FIRST"; NULL: no such operation */
	const char *name;
	uint8_t kind; /* the operation, an enum vb_ib_kind */
	/* place of the packet in its message, an enum vb_ib_place */
	uint8_t place;
	uint8_t headers; /* extended headers, bits of enum vb_ib_header */
	/* bit (1 << CLASS_x) for each class that has this operation */
	uint8_t classes;
	bool response; /* true: the responder sends this packet */
};

/* Returns the row of a BTH opcode; NULL: its class has no such operation. */
const struct vb_ib_op *vb_ib_op(uint8_t opcode);

/* Returns the opcode bits 4:0 of a SEND or WRITE packet at @place of its
 * message, with immediate data (@imm), or with a key to invalidate (@inv; SEND
 * only). */
uint8_t vb_ib_code_pick(enum vb_ib_kind kind, enum vb_ib_place place, bool imm,
			bool inv);
uint8_t vb_ib_code_read_resp(enum vb_ib_place place);

enum vb_ib_order { ORDER_OK, ORDER_NO_FIRST, ORDER_NO_LAST };

/* May the request @next follow the request @prev (NULL: none yet) on a queue
 * pair (IBA 9.7.4.1)? */
enum vb_ib_order vb_ib_op_order(const struct vb_ib_op *prev,
				const struct vb_ib_op *next);

#endif
