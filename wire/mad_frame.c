/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the frames around management datagrams. */
#include "wire/mad_frame.h"

#include "wire/ib_hdr.h"
#include "wire/lrh.h"

#define GRH_BYTES	40
#define DETH_BYTES	8
#define NEXT_BTH	0x1b
#define OP_UD_SEND_ONLY 0x64

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
	size_t len = VB_LRH_BYTES + (f->global ? GRH_BYTES : 0) + behind;
	const struct vb_lrh lrh = { .vl = f->vl,
				    .sl = f->sl,
				    .lnh = f->global ? LNH_GLOBAL : LNH_LOCAL,
				    .dlid = f->dlid,
				    .slid = f->slid,
				    .words = (uint16_t)(len / 4) };
	struct vb_writer w = { bytes + VB_LRH_BYTES };

	vb_lrh_put(bytes, &lrh);
	if (f->global)
		put_grh(&w, f, behind);
	vb_bth_put(&w, &bth);
	vb_deth_put(&w, &deth);
	memcpy(w.at, mad, VB_MAD_BYTES);
	w.at += VB_MAD_BYTES;
	vb_lrh_put_icrc(bytes, len);
	return len;
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

static void get_lrh(const struct vb_lrh *h, struct vb_mad_frame *f)
{
	f->vl = h->vl;
	f->sl = h->sl;
	f->global = h->lnh == LNH_GLOBAL;
	f->dlid = h->dlid;
	f->slid = h->slid;
}

static bool is_datagram(const struct vb_bth *bth, const struct vb_reader *r)
{
	return bth->opcode == OP_UD_SEND_ONLY &&
	       vb_reader_left(r) == VB_MAD_BYTES + VB_ICRC_BYTES;
}

enum vb_mad_frame_fault vb_mad_frame_get(const uint8_t *bytes, size_t len,
					 struct vb_mad_frame *f,
					 const uint8_t **mad)
{
	struct vb_reader r = vb_reader(bytes, len);
	struct vb_deth deth;
	struct vb_lrh lrh;
	struct vb_bth bth;

	memset(f, 0, sizeof(*f));
	if (len < VB_LRH_BYTES)
		return MAD_FRAME_SHORT;
	vb_lrh_get(vb_take(&r, VB_LRH_BYTES), &lrh);
	if (vb_lrh_check(&lrh, len, 4096) != LRH_GOOD)
		return MAD_FRAME_SHORT;
	get_lrh(&lrh, f);
	if (lrh.lnh < LNH_LOCAL)
		return MAD_FRAME_OTHER;
	if (f->global)
		get_grh(&r, f);
	if (!vb_bth_get(&r, &bth) || !vb_deth_get(&r, &deth) ||
	    !is_datagram(&bth, &r))
		return MAD_FRAME_OTHER;
	f->pkey = bth.pkey;
	f->dqpn = bth.dqpn;
	f->psn = bth.psn;
	f->sqpn = deth.sqpn;
	f->qkey = deth.qkey;
	*mad = r.at;
	return vb_lrh_icrc_good(bytes, len) ? MAD_FRAME_GOOD : MAD_FRAME_ICRC;
}
