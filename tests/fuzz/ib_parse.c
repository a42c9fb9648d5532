/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the packet parser: an accepted packet's fields are within the bytes,
 * and are written back equal. */
#include "tests/fuzz/fuzz.h"

#include "wire/ib_hdr.h"

/* Clear the bits that a sender must set to 0 and a receiver ignores. */
static void clear_reserved(uint8_t *bytes, const struct vb_ib_pkt *pkt)
{
	unsigned class = pkt->bth.opcode >> 5;

	bytes[4] &= 0xc0;
	bytes[8] &= 0x81;
	if (class == CLASS_UD)
		bytes[VB_BTH_BYTES + 4] = 0;
	if (class == CLASS_XRC && !pkt->op->response)
		bytes[VB_BTH_BYTES] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t was[VB_IB_MAX_HDR_BYTES], again[VB_IB_MAX_HDR_BYTES];
	struct vb_ib_pkt pkt;
	size_t head;

	if (vb_ib_parse(bytes, len, &pkt) != PARSE_OK) {
		MUST(!pkt.op);
		return 0;
	}
	MUST(pkt.op == vb_ib_op(bytes[0]));
	MUST(pkt.payload >= bytes + VB_BTH_BYTES);
	head = (size_t)(pkt.payload - bytes);
	MUST(head <= VB_IB_MAX_HDR_BYTES);
	MUST(head + pkt.payload_bytes + pkt.bth.pad == len);

	memcpy(was, bytes, head);
	clear_reserved(was, &pkt);
	MUST(vb_ib_put_headers(again, &pkt) == head);
	MUST(memcmp(was, again, head) == 0);
	return 0;
}
