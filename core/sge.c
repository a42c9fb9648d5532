/* SPDX-License-Identifier: BSD-2-Clause */
/* Walking a scatter/gather list: gather into a packet, place from a packet. */
#include "core/sge.h"

#include "base/guard.h"

/* A contiguous part of the list, with its address and key. */
struct piece {
	uint64_t addr;
	uint32_t len, lkey;
};

/* The position of a walk: an entry and an offset in it. */
struct walk {
	const struct vb_sge *at, *end;
	uint64_t offset;
};

/* The next piece, of at most @most bytes. False: the list has ended. */
static bool next_piece(struct walk *w, uint32_t most, struct piece *p)
{
	while (w->at < w->end && w->offset >= w->at->length) {
		w->offset -= w->at->length;
		w->at++;
	}
	if (w->at == w->end)
		return false;
	p->addr = w->at->addr + w->offset;
	p->lkey = w->at->lkey;
	p->len = (uint32_t)VB_MIN(most, w->at->length - w->offset);
	w->offset += p->len;
	return true;
}

/* Are all the bytes in the first entry? */
static bool is_one_piece(const struct vb_sge *sge, unsigned count,
			 uint64_t offset, uint32_t len)
{
	return count && len && offset <= sge->length &&
	       len <= sge->length - offset;
}

static enum vb_fault begin_piece(struct vb_pd *pd, const struct piece *p,
				 uint32_t need, struct vb_mr_use *use)
{
	return vb_mr_begin(pd->adapter, pd, 0, p->lkey, p->addr, p->len, need,
			   use) == FAULT_NONE
		       ? FAULT_NONE
		       : FAULT_LKEY;
}

/* Access through a key that only the process knows which made the domain. */
static enum vb_fault reach_piece(const struct vb_pd *pd, const struct piece *p,
				 uint32_t need, void *bytes, bool put)
{
	const struct vb_mr_range r = { p->lkey, need, p->addr, p->len };

	switch (vb_mr_reach(pd, &r, bytes, put)) {
	case FAULT_NONE:
		return FAULT_NONE;
	case FAULT_RKEY:
		return FAULT_LKEY;
	default:
		return FAULT_LOCAL_MEMORY;
	}
}

static enum vb_fault gather_piece(struct vb_pd *pd, const struct piece *p,
				  void *dst)
{
	struct vb_mr_use use;
	size_t missing;

	if (begin_piece(pd, p, 0, &use))
		return reach_piece(pd, p, 0, dst, false);
	missing = vb_guard_copy(dst, use.at, p->len);
	vb_mr_end(&use);
	return missing ? FAULT_LOCAL_MEMORY : FAULT_NONE;
}

static enum vb_fault place_piece(struct vb_pd *pd, const struct piece *p,
				 const void *src)
{
	struct vb_mr_use use;
	size_t missing;

	if (begin_piece(pd, p, ACCESS_LOCAL_WRITE, &use))
		return reach_piece(pd, p, ACCESS_LOCAL_WRITE, (void *)src,
				   true);
	missing = vb_guard_copy(use.at, src, p->len);
	vb_mr_end(&use);
	return missing ? FAULT_LOCAL_MEMORY : FAULT_NONE;
}

enum vb_fault vb_sge_gather(struct vb_pd *pd, const struct vb_sge *sge,
			    unsigned count, uint64_t offset, void *dst,
			    uint32_t len)
{
	struct walk w = { sge, sge + count, offset };
	enum vb_fault fault = FAULT_NONE;
	uint8_t *to = dst;
	struct piece p;

	if (VB_LIKELY(is_one_piece(sge, count, offset, len))) {
		p = (struct piece){ sge->addr + offset, len, sge->lkey };
		return gather_piece(pd, &p, dst);
	}
	for (; len && !fault; len -= p.len, to += p.len) {
		if (!next_piece(&w, len, &p))
			return FAULT_LKEY; /* the total the caller relied on was
					      wrong */
		fault = gather_piece(pd, &p, to);
	}
	return fault;
}

enum vb_fault vb_sge_place(struct vb_pd *pd, const struct vb_sge *sge,
			   unsigned count, uint64_t offset, const void *src,
			   uint32_t len)
{
	struct walk w = { sge, sge + count, offset };
	enum vb_fault fault = FAULT_NONE;
	const uint8_t *from = src;
	struct piece p;

	if (VB_LIKELY(is_one_piece(sge, count, offset, len))) {
		p = (struct piece){ sge->addr + offset, len, sge->lkey };
		return place_piece(pd, &p, src);
	}
	for (; len && !fault; len -= p.len, from += p.len) {
		if (!next_piece(&w, len, &p))
			return FAULT_LKEY; /* the total the caller relied on was
					      wrong */
		fault = place_piece(pd, &p, from);
	}
	return fault;
}

bool vb_sge_is_allowed(const struct vb_pd *pd, const struct vb_sge *sge,
		       unsigned count, uint32_t need)
{
	for (unsigned i = 0; i < count; i++)
		if (sge[i].length &&
		    vb_mr_check(pd->adapter, pd, 0, sge[i].lkey, sge[i].addr,
				sge[i].length, need) != FAULT_NONE)
			return false;
	return true;
}

uint64_t vb_sge_total(const struct vb_sge *sge, unsigned count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < count; i++)
		total += sge[i].length;
	return total;
}
