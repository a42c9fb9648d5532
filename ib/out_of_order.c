/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps packets that came before their turn, by PSN, within limits for each
 * queue pair and adapter. */
#include "ib/out_of_order.h"

#include <string.h>

/* the most bytes kept for all queue pairs of an adapter together */
#define BYTES_MAX (64u << 20)

#define SLOTS_BYTES (VB_OOO_PSNS * sizeof(struct vb_ooo_pkt *))

static struct vb_ooo_pkt **slot(const struct vb_ooo *e, uint32_t psn)
{
	return &e->slots[psn % VB_OOO_PSNS];
}

static bool is_there(const struct vb_ooo *e, uint32_t psn)
{
	const struct vb_ooo_pkt *p = *slot(e, psn);

	return p && p->pkt.bth.psn == psn;
}

static size_t size_of(const struct vb_ib_pkt *pkt)
{
	return sizeof(struct vb_ooo_pkt) + pkt->payload_bytes;
}

/* Relaxed: the number of kept bytes orders no other memory access. */
static void give_budget(struct vb_adapter *a, size_t bytes)
{
	atomic_fetch_sub_explicit(&a->ooo_bytes, bytes, memory_order_relaxed);
}

static bool take_budget(struct vb_adapter *a, size_t bytes)
{
	if (atomic_fetch_add_explicit(&a->ooo_bytes, bytes,
				      memory_order_relaxed) +
		    bytes <=
	    BYTES_MAX)
		return true;
	give_budget(a, bytes);
	return false;
}

static struct vb_ooo_pkt *copy_of(struct vb_adapter *a,
				  const struct vb_ib_pkt *pkt)
{
	size_t room = vb_stash_room(size_of(pkt));
	struct vb_ooo_pkt *p;

	if (!take_budget(a, room))
		return NULL;
	p = vb_stash_take(&a->ooo_stash, size_of(pkt));
	if (!p) {
		give_budget(a, room);
		return NULL;
	}
	p->pkt = *pkt;
	p->pkt.payload = p->payload;
	memcpy(p->payload, pkt->payload, pkt->payload_bytes);
	return p;
}

void vb_ooo_free(struct vb_adapter *a, struct vb_ooo_pkt *p)
{
	size_t bytes = size_of(&p->pkt);

	give_budget(a, vb_stash_room(bytes));
	vb_stash_give(&a->ooo_stash, p, bytes);
}

static void ib_drop(struct vb_adapter *a, struct vb_ooo *e, uint32_t psn)
{
	struct vb_ooo_pkt **at = slot(e, psn);

	if (!*at)
		return;
	vb_ooo_free(a, *at);
	*at = NULL;
	e->count--;
}

static bool ib_make_slots(struct vb_adapter *a, struct vb_ooo *e)
{
	e->slots = vb_stash_take(&a->ooo_stash, SLOTS_BYTES);
	if (e->slots)
		memset(e->slots, 0, SLOTS_BYTES);
	return e->slots;
}

bool vb_ooo_keep(struct vb_adapter *a, struct vb_ooo *e,
		 const struct vb_ib_pkt *pkt)
{
	uint32_t psn = pkt->bth.psn;
	struct vb_ooo_pkt *p;

	if (!e->slots && !ib_make_slots(a, e))
		return false;
	if (is_there(e, psn))
		return true;
	/* The slot may still have a packet with an earlier PSN. */
	ib_drop(a, e, psn);
	p = copy_of(a, pkt);
	if (!p)
		return false;
	*slot(e, psn) = p;
	e->count++;
	return true;
}

struct vb_ooo_pkt *vb_ooo_take(struct vb_ooo *e, uint32_t psn)
{
	struct vb_ooo_pkt *p;

	if (e->count == 0 || !is_there(e, psn))
		return NULL;
	p = *slot(e, psn);
	*slot(e, psn) = NULL;
	e->count--;
	return p;
}

uint32_t vb_ooo_gap(const struct vb_ooo *e, uint32_t psn)
{
	for (uint32_t i = 0; e->count && i < VB_OOO_PSNS; i++)
		if (is_there(e, vb_psn_add(psn, i)))
			return i;
	return 0;
}

uint32_t vb_ooo_map(const struct vb_ooo *e, uint32_t psn, uint8_t *bits)
{
	uint32_t bytes = 0, left = e->count;

	memset(bits, 0, VB_OOO_BYTES);
	for (uint32_t i = 0; left && i < VB_OOO_PSNS; i++) {
		if (!is_there(e, vb_psn_add(psn, 1 + i)))
			continue;
		bits[i / 8] |= (uint8_t)(0x80 >> i % 8);
		bytes = i / 8 + 1;
		left--;
	}
	return bytes;
}

void vb_ooo_clear(struct vb_adapter *a, struct vb_ooo *e)
{
	for (uint32_t i = 0; e->count && i < VB_OOO_PSNS; i++)
		ib_drop(a, e, i);
	if (e->slots)
		vb_stash_give(&a->ooo_stash, e->slots, SLOTS_BYTES);
	e->slots = NULL;
}
