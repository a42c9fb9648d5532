/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames around management datagrams. */
#include "wire/mad_frame.h"

#include "base/crc.h"
#include "wire/ib_hdr.h"

#define LRH_BYTES	8
#define GRH_BYTES	40
#define DETH_BYTES	8
#define LNH_LOCAL	2 /* LRH's next header: BTH */
#define LNH_GLOBAL	3 /* GRH */
#define NEXT_BTH	0x1b
#define OP_UD_SEND_ONLY 0x64

static void put_lrh(struct vb_writer *w, const struct vb_mad_frame *f,
		    size_t len)
{
	vb_put_be(w, (unsigned)f->vl << 4, 1);
	vb_put_be(w,
		  (unsigned)f->sl << 4 | (f->global ? LNH_GLOBAL : LNH_LOCAL),
		  1);
	vb_put_be(w, f->dlid, 2);
	vb_put_be(w, len / 4, 2);
	vb_put_be(w, f->slid, 2);
}

static void put_grh(struct vb_writer *w, const struct vb_mad_frame *f,
		    size_t behind)
{
	vb_put_be(w, 6u << 28 | (uint32_t)f->tclass << 20 | f->flow_label, 4);
	vb_put_be(w, behind, 2);
	vb_put_be(w, NEXT_BTH, 1);
	vb_put_be(w, f->hop_limit, 1);
	memcpy(w->at, f->sgid.raw, sizeof(f->sgid.raw));
	memcpy(w->at + 16, f->dgid.raw, sizeof(f->dgid.raw));
	w->at += 32;
}

size_t vb_mad_frame_put(uint8_t *bytes, const struct vb_mad_frame *f,
			const uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_bth bth = { .opcode = OP_UD_SEND_ONLY,
				    .migrated = true,
				    .pkey = f->pkey,
				    .dqpn = f->dqpn,
				    .psn = f->psn };
	const struct vb_deth deth = { .qkey = f->qkey, .sqpn = f->sqpn };
	size_t behind =
		VB_BTH_BYTES + DETH_BYTES + VB_MAD_BYTES + VB_ICRC_BYTES;
	size_t len = LRH_BYTES + (f->global ? GRH_BYTES : 0) + behind;
	struct vb_writer w = { bytes };

	put_lrh(&w, f, len);
	if (f->global)
		put_grh(&w, f, behind);
	vb_bth_put(&w, &bth);
	vb_deth_put(&w, &deth);
	memcpy(w.at, mad, VB_MAD_BYTES);
	w.at += VB_MAD_BYTES;
	vb_store_le32(w.at, vb_ib_icrc(bytes, len - VB_ICRC_BYTES));
	return len;
}

uint32_t vb_ib_icrc(const uint8_t *bytes, size_t len)
{
	uint8_t head[LRH_BYTES + GRH_BYTES + VB_BTH_BYTES];
	bool global = (bytes[1] & 3) == LNH_GLOBAL;
	size_t bth = LRH_BYTES + (global ? GRH_BYTES : 0);
	size_t covered = bth + VB_BTH_BYTES;
	uint32_t crc;

	memcpy(head, bytes, covered);
	if (global) {
		memset(head, 0xff, LRH_BYTES);
		head[8] |= 0x0f; /* traffic class and flow label */
		memset(head + 9, 0xff, 3);
		head[15] = 0xff; /* hop limit */
	} else {
		head[0] |= 0xf0; /* VL */
	}
	head[bth + 4] = 0xff; /* FECN, BECN and what is reserved */
	crc = vb_crc32(0, head, covered);
	return vb_crc32(crc, bytes + covered, len - covered);
}

static void get_grh(struct vb_reader *r, struct vb_mad_frame *f)
{
	uint32_t word = vb_get_be32(r);
	const uint8_t *gids;

	f->tclass = (uint8_t)(word >> 20);
	f->flow_label = word & 0xfffff;
	(void)vb_take(r, 3);
	f->hop_limit = vb_get_u8(r);
	gids = vb_take(r, 32);
	if (!gids)
		return;
	memcpy(f->sgid.raw, gids, 16);
	memcpy(f->dgid.raw, gids + 16, 16);
}

/* False: LNH says that it is raw. */
static bool get_lrh(struct vb_reader *r, struct vb_mad_frame *f, size_t len,
		    bool *agrees)
{
	uint8_t vl = vb_get_u8(r), sl = vb_get_u8(r);

	f->vl = vl >> 4;
	f->sl = sl >> 4;
	f->global = (sl & 3) == LNH_GLOBAL;
	f->dlid = vb_get_be16(r);
	*agrees = (vb_get_be16(r) & 0x7ff) * 4u == len;
	f->slid = vb_get_be16(r);
	return sl & 2;
}

enum vb_mad_frame_fault vb_mad_frame_get(const uint8_t *bytes, size_t len,
					 struct vb_mad_frame *f,
					 const uint8_t **mad)
{
	struct vb_reader r = vb_reader(bytes, len);
	struct vb_bth bth;
	struct vb_deth deth;
	bool agrees;

	memset(f, 0, sizeof(*f));
	if (!get_lrh(&r, f, len, &agrees))
		return r.overrun ? MAD_FRAME_SHORT : MAD_FRAME_OTHER;
	if (!agrees)
		return MAD_FRAME_SHORT;
	if (f->global)
		get_grh(&r, f);
	if (!vb_bth_get(&r, &bth) || !vb_deth_get(&r, &deth) ||
	    bth.opcode != OP_UD_SEND_ONLY ||
	    vb_reader_left(&r) != VB_MAD_BYTES + VB_ICRC_BYTES)
		return r.overrun ? MAD_FRAME_SHORT : MAD_FRAME_OTHER;
	f->pkey = bth.pkey;
	f->dqpn = bth.dqpn;
	f->psn = bth.psn;
	f->sqpn = deth.sqpn;
	f->qkey = deth.qkey;
	*mad = vb_take(&r, VB_MAD_BYTES);
	if (vb_load_le32(r.at) != vb_ib_icrc(bytes, len - VB_ICRC_BYTES))
		return MAD_FRAME_ICRC;
	return MAD_FRAME_GOOD;
}
