/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport headers: for each header the function that reads it and the one
 * that writes it, then whole packets. */
#include "wire/ib_hdr.h"

/* IBA 9.2: TVer must be 0. A sender sets reserved bits to 0 and a receiver
 * ignores them, except for the bit by which two Verbenas recognize each
 * other. */
bool vb_bth_get(struct vb_reader *r, struct vb_bth *h)
{
	const uint8_t *at = vb_take(r, VB_BTH_BYTES);
	uint32_t what, to, which;

	if (!at)
		return false;
	what = (uint32_t)vb_load_be(at, 4);
	to = (uint32_t)vb_load_be(at + 4, 4);
	which = (uint32_t)vb_load_be(at + 8, 4);
	*h = (struct vb_bth){
		.opcode = (uint8_t)(what >> 24),
		.solicited = what >> 23 & 1,
		.migrated = what >> 22 & 1,
		.pad = what >> 20 & 3,
		.pkey = (uint16_t)what,
		.fecn = to >> 31,
		.becn = to >> 30 & 1,
		.dqpn = to & 0xffffff,
		.ack_req = which >> 31,
		.selective = which >> 24 & 1,
		.psn = which & 0xffffff,
	};
	return (what >> 16 & 0x0f) == 0;
}

void vb_bth_put(struct vb_writer *w, const struct vb_bth *h)
{
	uint32_t bits =
		h->solicited << 7 | h->migrated << 6 | (h->pad & 3) << 4;
	uint32_t congestion = h->fecn << 7 | h->becn << 6;
	uint32_t ask = h->ack_req << 7 | h->selective;

	vb_put_be(w, (uint32_t)h->opcode << 24 | bits << 16 | h->pkey, 4);
	vb_put_be(w, congestion << 24 | (h->dqpn & 0xffffff), 4);
	vb_put_be(w, ask << 24 | (h->psn & 0xffffff), 4);
}

bool vb_reth_get(struct vb_reader *r, struct vb_reth *h)
{
	const uint8_t *at = vb_take(r, VB_RETH_BYTES);

	if (!at)
		return false;
	h->va = vb_load_be(at, 8);
	h->rkey = (uint32_t)vb_load_be(at + 8, 4);
	h->length = (uint32_t)vb_load_be(at + 12, 4);
	return true;
}

void vb_reth_put(struct vb_writer *w, const struct vb_reth *h)
{
	vb_put_be(w, h->va, 8);
	vb_put_be(w, h->rkey, 4);
	vb_put_be(w, h->length, 4);
}

bool vb_atomic_eth_get(struct vb_reader *r, struct vb_atomic_eth *h)
{
	h->va = vb_get_be64(r);
	h->rkey = vb_get_be32(r);
	h->swap_add = vb_get_be64(r);
	h->compare = vb_get_be64(r);
	return !r->overrun;
}

void vb_atomic_eth_put(struct vb_writer *w, const struct vb_atomic_eth *h)
{
	vb_put_be(w, h->va, 8);
	vb_put_be(w, h->rkey, 4);
	vb_put_be(w, h->swap_add, 8);
	vb_put_be(w, h->compare, 8);
}

bool vb_aeth_get(struct vb_reader *r, struct vb_aeth *h)
{
	h->syndrome = vb_get_u8(r);
	h->msn = vb_get_be24(r);
	return !r->overrun;
}

void vb_aeth_put(struct vb_writer *w, const struct vb_aeth *h)
{
	vb_put_be(w, h->syndrome, 1);
	vb_put_be(w, h->msn, 3);
}

bool vb_deth_get(struct vb_reader *r, struct vb_deth *h)
{
	h->qkey = vb_get_be32(r);
	h->sqpn = vb_get_be32(r) & 0xffffff;
	return !r->overrun;
}

void vb_deth_put(struct vb_writer *w, const struct vb_deth *h)
{
	vb_put_be(w, h->qkey, 4);
	vb_put_be(w, h->sqpn & 0xffffff, 4);
}

/* Returns the headers of a packet (bits of enum vb_ib_header): those of the
 * operation's row and those that its class adds. */
static unsigned headers_of(const struct vb_ib_op *op, uint8_t opcode)
{
	unsigned class = opcode >> 5;

	if (class == CLASS_UD)
		return op->headers | HDR_DETH;
	if (class == CLASS_XRC && !op->response)
		return op->headers | HDR_XRCETH;
	return op->headers;
}

/* A header that is cut short makes the reader fail for good (base/bytes.h), so
 * the caller checks once, after the last header. */
static void get_extended(struct vb_reader *r, unsigned headers,
			 struct vb_ib_pkt *pkt)
{
	const uint8_t *imm;

	/* fast path: most packets have at most a RETH */
	if (!(headers & ~HDR_RETH)) {
		if (headers)
			(void)vb_reth_get(r, &pkt->reth);
		return;
	}
	if (headers & HDR_DETH)
		(void)vb_deth_get(r, &pkt->deth);
	if (headers & HDR_XRCETH)
		pkt->xrc_srqn = vb_get_be32(r) & 0xffffff;
	if (headers & HDR_RETH)
		(void)vb_reth_get(r, &pkt->reth);
	if (headers & HDR_ATOMIC)
		(void)vb_atomic_eth_get(r, &pkt->atomic);
	if (headers & HDR_AETH)
		(void)vb_aeth_get(r, &pkt->aeth);
	if (headers & HDR_ATOMIC_ACK)
		pkt->atomic_ack = vb_get_be64(r);
	if (headers & HDR_IMM) {
		imm = vb_take(r, 4);
		if (imm)
			memcpy(&pkt->imm, imm, 4);
	}
	if (headers & HDR_IETH)
		pkt->ieth_rkey = vb_get_be32(r);
}

static void put_extended(struct vb_writer *w, unsigned headers,
			 const struct vb_ib_pkt *pkt)
{
	/* fast path: most packets have at most a RETH */
	if (!(headers & ~HDR_RETH)) {
		if (headers)
			vb_reth_put(w, &pkt->reth);
		return;
	}
	if (headers & HDR_DETH)
		vb_deth_put(w, &pkt->deth);
	if (headers & HDR_XRCETH)
		vb_put_be(w, pkt->xrc_srqn & 0xffffff, 4);
	if (headers & HDR_RETH)
		vb_reth_put(w, &pkt->reth);
	if (headers & HDR_ATOMIC)
		vb_atomic_eth_put(w, &pkt->atomic);
	if (headers & HDR_AETH)
		vb_aeth_put(w, &pkt->aeth);
	if (headers & HDR_ATOMIC_ACK)
		vb_put_be(w, pkt->atomic_ack, 8);
	if (headers & HDR_IMM) {
		memcpy(w->at, &pkt->imm, 4);
		w->at += 4;
	}
	if (headers & HDR_IETH)
		vb_put_be(w, pkt->ieth_rkey, 4);
}

enum vb_parse vb_ib_parse(const uint8_t *bytes, size_t len,
			  struct vb_ib_pkt *pkt)
{
	struct vb_reader r = vb_reader(bytes, len);
	const struct vb_ib_op *op;

	*pkt = (struct vb_ib_pkt){ 0 };
	/* IBA 9.2: with the pad, a packet is a multiple of 4 bytes. */
	if (len < VB_BTH_BYTES || len % 4 != 0)
		return PARSE_SHORT;
	if (!vb_bth_get(&r, &pkt->bth))
		return PARSE_VERSION;
	op = vb_ib_op(pkt->bth.opcode);
	if (!op)
		return PARSE_OPCODE;
	get_extended(&r, headers_of(op, pkt->bth.opcode), pkt);
	if (r.overrun || vb_reader_left(&r) < pkt->bth.pad)
		return PARSE_SHORT;
	pkt->payload = r.at;
	pkt->payload_bytes = (uint32_t)(vb_reader_left(&r) - pkt->bth.pad);
	pkt->op = op;
	return PARSE_OK;
}

size_t vb_ib_put_headers(uint8_t *bytes, const struct vb_ib_pkt *pkt)
{
	const struct vb_ib_op *op = vb_ib_op(pkt->bth.opcode);
	struct vb_writer w = { bytes };

	vb_bth_put(&w, &pkt->bth);
	if (op)
		put_extended(&w, headers_of(op, pkt->bth.opcode), pkt);
	return (size_t)(w.at - bytes);
}

size_t vb_ib_put_fast(uint8_t *bytes, const struct vb_bth *bth,
		      const struct vb_reth *reth)
{
	struct vb_writer w = { bytes };

	vb_bth_put(&w, bth);
	if (reth)
		vb_reth_put(&w, reth);
	return (size_t)(w.at - bytes);
}

vb_time vb_rnr_ns(uint8_t code)
{
	static const uint32_t units[32] = {
		/* The times of the RNR timer codes, in units of 10 us. */
		65536, 1,    2,	   3,	  4,	 6,	8,     12,
		16,    24,   32,   48,	  64,	 96,	128,   192,
		256,   384,  512,  768,	  1024,	 1536,	2048,  3072,
		4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return units[code & 31] * 10 * VB_USEC;
}

vb_time vb_ack_timeout_ns(uint8_t code)
{
	code &= 31;
	return code ? (vb_time)4096 << code : VB_NEVER;
}
