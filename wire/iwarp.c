/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP's bytes: for each header the function that reads it, with the one that
 * writes it below. */
#include "wire/iwarp.h"

#include "base/crc.h"

#define KEY_BYTES 16
static const char request_key[] = "MPA ID Req Frame";
static const char reply_key[] = "MPA ID Rep Frame";

#define MPA_MARKERS  0x80
#define MPA_CRC	     0x40
#define MPA_REJECT   0x20
#define MPA_ENHANCED 0x10

/* in IRD: peer-to-peer mode; in ORD: the first message may be a WRITE */
#define DEPTH_A 0x8000
/* in IRD: the first message may be a SEND; in ORD: it may be a READ */
#define DEPTH_B 0x4000

#define DDP_TAGGED 0x80
#define DDP_LAST   0x40

/* The Terminate has the length of the segment at fault. */
#define TERM_M 0x80
/* The Terminate has the DDP header of the segment at fault. */
#define TERM_D 0x40
/* The Terminate has the RDMAP header of the message at fault. */
#define TERM_R	      0x20
#define TERM_HDRS     (TERM_M | TERM_D | TERM_R)
#define TERM_MIRRORED 0x07

#define MIN_MULPDU 128 /* the smallest MULPDU (RFC 5044 s4.1) */

bool vb_mpa_frame_get(struct vb_reader *r, struct vb_mpa_frame *f)
{
	const uint8_t *key = vb_take(r, KEY_BYTES);
	uint8_t bits = vb_get_u8(r);

	f->markers = bits & MPA_MARKERS;
	f->crc = bits & MPA_CRC;
	f->reject = bits & MPA_REJECT;
	f->enhanced = bits & MPA_ENHANCED;
	f->revision = vb_get_u8(r);
	f->private_bytes = vb_get_be16(r);
	if (r->overrun)
		return false;
	f->reply = memcmp(key, reply_key, KEY_BYTES) == 0;
	f->near = bits & (f->reply ? VB_MPA_NEAR_GIVEN : VB_MPA_NEAR_ASKED);
	return f->reply || memcmp(key, request_key, KEY_BYTES) == 0;
}

void vb_mpa_frame_put(struct vb_writer *w, const struct vb_mpa_frame *f)
{
	uint8_t near = f->reply ? VB_MPA_NEAR_GIVEN : VB_MPA_NEAR_ASKED;

	memcpy(w->at, f->reply ? reply_key : request_key, KEY_BYTES);
	w->at += KEY_BYTES;
	vb_put_be(w,
		  (f->markers ? MPA_MARKERS : 0) | (f->crc ? MPA_CRC : 0) |
			  (f->reject ? MPA_REJECT : 0) |
			  (f->enhanced ? MPA_ENHANCED : 0) |
			  (f->near ? near : 0),
		  1);
	vb_put_be(w, f->revision, 1);
	vb_put_be(w, f->private_bytes, 2);
}

bool vb_mpa_depths_get(struct vb_reader *r, struct vb_mpa_depths *d)
{
	uint16_t ird = vb_get_be16(r), ord = vb_get_be16(r);

	d->peer_to_peer = ird & DEPTH_A;
	d->rtr_send = ird & DEPTH_B;
	d->rtr_write = ord & DEPTH_A;
	d->rtr_read = ord & DEPTH_B;
	d->ird = ird & VB_MPA_DEPTH_MAX;
	d->ord = ord & VB_MPA_DEPTH_MAX;
	return !r->overrun;
}

void vb_mpa_depths_put(struct vb_writer *w, const struct vb_mpa_depths *d)
{
	vb_put_be(w,
		  (d->peer_to_peer ? DEPTH_A : 0) |
			  (d->rtr_send ? DEPTH_B : 0) |
			  (d->ird & VB_MPA_DEPTH_MAX),
		  2);
	vb_put_be(w,
		  (d->rtr_write ? DEPTH_A : 0) | (d->rtr_read ? DEPTH_B : 0) |
			  (d->ord & VB_MPA_DEPTH_MAX),
		  2);
}

uint32_t vb_mpa_seal(uint8_t *fpdu, uint32_t ulpdu, bool crc)
{
	uint32_t pad = vb_mpa_pad(ulpdu);
	uint32_t covered = VB_MPA_LEN_BYTES + ulpdu + pad;

	vb_store_be(fpdu, ulpdu, VB_MPA_LEN_BYTES);
	memset(fpdu + covered - pad, 0, pad);
	vb_store_le32(fpdu + covered, crc ? vb_crc32c(0, fpdu, covered) : 0);
	return covered + VB_MPA_CRC_BYTES;
}

uint32_t vb_mpa_mulpdu(uint32_t mss, bool markers)
{
	uint32_t around = VB_MPA_LEN_BYTES + VB_MPA_CRC_BYTES + mss % 4;

	if (markers)
		around += VB_MPA_MARKER_BYTES *
			  ((mss + VB_MPA_MARKER_INTERVAL - 1) /
			   VB_MPA_MARKER_INTERVAL);
	if (mss < around + MIN_MULPDU)
		return MIN_MULPDU;
	/* Limit the ULPDU so that its FPDU, which is a multiple of 4 bytes, is
	 * not too long. */
	return VB_MIN(mss - around, VB_MPA_ULPDU_MAX - 3);
}

bool vb_ddp_seg_get(struct vb_reader *r, struct vb_ddp_seg *s)
{
	uint8_t ddp = vb_get_u8(r), rdmap = vb_get_u8(r);

	*s = (struct vb_ddp_seg){
		.tagged = ddp & DDP_TAGGED,
		.last = ddp & DDP_LAST,
		.ddp_version = ddp & 3,
		.rdmap_version = rdmap >> 6,
		.opcode = rdmap & 0xf,
	};
	if (s->tagged) {
		s->stag = vb_get_be32(r);
		s->to = vb_get_be64(r);
	} else {
		s->word = vb_get_be32(r);
		s->queue = vb_get_be32(r);
		s->msn = vb_get_be32(r);
		s->mo = vb_get_be32(r);
	}
	s->payload = r->at;
	s->payload_bytes = (uint32_t)vb_reader_left(r);
	return !r->overrun;
}

void vb_ddp_seg_put(struct vb_writer *w, const struct vb_ddp_seg *s)
{
	vb_put_be(w,
		  (s->tagged ? DDP_TAGGED : 0) | (s->last ? DDP_LAST : 0) |
			  (s->ddp_version & 3),
		  1);
	vb_put_be(w, (s->rdmap_version & 3) << 6 | (s->opcode & 0xf), 1);
	if (s->tagged) {
		vb_put_be(w, s->stag, 4);
		vb_put_be(w, s->to, 8);
	} else {
		vb_put_be(w, s->word, 4);
		vb_put_be(w, s->queue, 4);
		vb_put_be(w, s->msn, 4);
		vb_put_be(w, s->mo, 4);
	}
}

bool vb_rdmap_read_get(struct vb_reader *r, struct vb_rdmap_read *q)
{
	q->sink_stag = vb_get_be32(r);
	q->sink_to = vb_get_be64(r);
	q->length = vb_get_be32(r);
	q->source_stag = vb_get_be32(r);
	q->source_to = vb_get_be64(r);
	return !r->overrun;
}

void vb_rdmap_read_put(struct vb_writer *w, const struct vb_rdmap_read *q)
{
	vb_put_be(w, q->sink_stag, 4);
	vb_put_be(w, q->sink_to, 8);
	vb_put_be(w, q->length, 4);
	vb_put_be(w, q->source_stag, 4);
	vb_put_be(w, q->source_to, 8);
}

bool vb_rdmap_card_get(struct vb_reader *r, struct vb_rdmap_card *c)
{
	c->number = vb_get_be32(r);
	c->life = vb_get_be32(r);
	return !r->overrun;
}

void vb_rdmap_card_put(struct vb_writer *w, const struct vb_rdmap_card *c)
{
	vb_put_be(w, c->number, 4);
	vb_put_be(w, c->life, 4);
}

bool vb_rdmap_atomic_get(struct vb_reader *r, struct vb_rdmap_atomic *a)
{
	a->op = vb_get_be32(r) & 0xf;
	a->id = vb_get_be32(r);
	a->stag = vb_get_be32(r);
	a->to = vb_get_be64(r);
	a->add_swap = vb_get_be64(r);
	a->add_swap_mask = vb_get_be64(r);
	a->compare = vb_get_be64(r);
	a->compare_mask = vb_get_be64(r);
	return !r->overrun;
}

void vb_rdmap_atomic_put(struct vb_writer *w, const struct vb_rdmap_atomic *a)
{
	vb_put_be(w, a->op & 0xf, 4);
	vb_put_be(w, a->id, 4);
	vb_put_be(w, a->stag, 4);
	vb_put_be(w, a->to, 8);
	vb_put_be(w, a->add_swap, 8);
	vb_put_be(w, a->add_swap_mask, 8);
	vb_put_be(w, a->compare, 8);
	vb_put_be(w, a->compare_mask, 8);
}

bool vb_rdmap_atomic_rsp_get(struct vb_reader *r, struct vb_rdmap_atomic_rsp *a)
{
	a->id = vb_get_be32(r);
	a->value = vb_get_be64(r);
	return !r->overrun;
}

void vb_rdmap_atomic_rsp_put(struct vb_writer *w,
			     const struct vb_rdmap_atomic_rsp *a)
{
	vb_put_be(w, a->id, 4);
	vb_put_be(w, a->value, 8);
}

/* Read the bits M, D and R. Soft-iWARP puts them into the three low bits of the
 * third byte, where the RFC has none, and swaps layer and type. */
static uint8_t mirror(struct vb_term *t, uint8_t bits)
{
	uint8_t layer = t->layer;

	if (bits & TERM_HDRS || !(bits & TERM_MIRRORED))
		return bits & TERM_HDRS;
	t->mirrored = true;
	t->layer = t->etype;
	t->etype = layer;
	return (bits & 1 ? TERM_M : 0) | (bits & 2 ? TERM_D : 0) |
	       (bits & 4 ? TERM_R : 0);
}

/* Read the description of the segment that caused the message. A description
 * that is cut off or makes no sense is ignored. */
static void get_offender(struct vb_reader *r, struct vb_term *t, uint8_t hdrs)
{
	if (hdrs & TERM_M)
		t->segment_bytes = vb_get_be16(r);
	if (hdrs & TERM_D)
		t->has_segment = vb_ddp_seg_get(r, &t->segment);
	t->segment.payload = NULL;
	t->segment.payload_bytes = 0;
	if (hdrs & TERM_R && t->has_segment &&
	    vb_reader_left(r) >= VB_RDMAP_READ_BYTES)
		t->has_read = vb_rdmap_read_get(r, &t->read);
}

bool vb_term_get(struct vb_reader *r, struct vb_term *t)
{
	uint8_t kind = vb_get_u8(r), hdrs;

	*t = (struct vb_term){ .layer = kind >> 4, .etype = kind & 0xf };
	t->code = vb_get_u8(r);
	hdrs = mirror(t, vb_get_u8(r));
	(void)vb_get_u8(r);
	if (r->overrun)
		return false;
	get_offender(r, t, hdrs);
	return true;
}

void vb_term_put(struct vb_writer *w, const struct vb_term *t)
{
	vb_put_be(w, (t->layer & 0xf) << 4 | (t->etype & 0xf), 1);
	vb_put_be(w, t->code, 1);
	vb_put_be(w,
		  (t->has_segment ? TERM_M | TERM_D : 0) |
			  (t->has_read ? TERM_R : 0),
		  1);
	vb_put_be(w, 0, 1);
	if (t->has_segment) {
		vb_put_be(w, t->segment_bytes, 2);
		vb_ddp_seg_put(w, &t->segment);
	}
	if (t->has_read)
		vb_rdmap_read_put(w, &t->read);
}
