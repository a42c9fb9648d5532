/* SPDX-License-Identifier: BSD-2-Clause */
/* Credits of one virtual lane. */
#include "fabric/flow.h"

#define MASK_STANDARD 0xfffu
#define MASK_WIDE     0xffffffu
#define PART_TO_TELL  8

/* Returns the most blocks by which a credit limit can be ahead of the total
 * that was sent: half of the numbers. A larger difference means that the limit
 * is behind. */
static uint32_t window(const struct vb_fc *f)
{
	return (f->mask + 1) / 2;
}

static uint32_t limit_of(const struct vb_fc *f)
{
	uint32_t room = f->size > f->used ? f->size - f->used : 0;

	return (f->arrived + VB_MIN(room, window(f))) & f->mask;
}

void vb_fc_init(struct vb_fc *f, bool wide, uint32_t blocks)
{
	*f = (struct vb_fc){
		.mask = wide ? MASK_WIDE : MASK_STANDARD,
		.size = blocks,
		.used = f->used,
	};
}

bool vb_fc_take(struct vb_fc *f, uint32_t blocks)
{
	if (f->used + blocks > f->size)
		return false;
	f->used += blocks;
	f->arrived = (f->arrived + blocks) & f->mask;
	return true;
}

bool vb_fc_give(struct vb_fc *f, uint32_t blocks)
{
	uint32_t part = VB_MIN(f->size, window(f)) / PART_TO_TELL;

	f->used -= blocks;
	return ((limit_of(f) - f->told) & f->mask) >= VB_MAX(part, 1u);
}

bool vb_fc_is_told(const struct vb_fc *f)
{
	return f->told == limit_of(f);
}

void vb_fc_tell(struct vb_fc *f, enum vb_fc_op op, uint8_t vl,
		struct vb_fc_pkt *p)
{
	f->told = limit_of(f);
	*p = (struct vb_fc_pkt){
		.op = (uint8_t)op,
		.vl = vl,
		.wide = f->mask == MASK_WIDE,
		.fctbs = f->sent,
		.fccl = f->told,
	};
}

bool vb_fc_hear(struct vb_fc *f, const struct vb_fc_pkt *p)
{
	if (p->wide != (f->mask == MASK_WIDE))
		return false;
	f->limit = p->fccl & f->mask;
	f->arrived = p->fctbs & f->mask;
	return true;
}
