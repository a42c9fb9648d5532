/* SPDX-License-Identifier: BSD-2-Clause */
/* The roster of an adapter (core/roster.h): adding, changing and removing
 * rows. */
#include "core/roster.h"

/* Find a free row. The bitmap of free rows is private to this process, since
 * other processes may write to the shared memory. */
static uint32_t take_row(struct vb_roster *r)
{
	for (; r->first < VB_COUNT(r->taken); r->first++) {
		uint64_t *word = &r->taken[r->first];

		if (*word != UINT64_MAX) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~*word);

			*word |= UINT64_C(1) << bit;
			return r->first * 64 + bit + 1;
		}
	}
	return 0;
}

static void give_row(struct vb_roster *r, uint32_t row)
{
	uint32_t word = (row - 1) / 64;

	r->taken[word] &= ~(UINT64_C(1) << (row - 1) % 64);
	r->first = VB_MIN(r->first, word);
}

/* A reader that sees the same even version before and after copying the row has
 * a consistent copy (engine/census.c). */
static void write_row(struct vb_roster *r, uint32_t row,
		      const struct vb_roster_row *what)
{
	struct vb_roster_row *to = &r->sheet->rows[row - 1];
	uint32_t version =
		atomic_load_explicit(&to->version, memory_order_relaxed);

	/* set bit 0, so that the version is odd whatever value was there */
	version |= 1;
	atomic_store_explicit(&to->version, version, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	to->kind = what->kind;
	to->type = what->type;
	to->state = what->state;
	to->port = what->port;
	to->number = what->number;
	to->peer = what->peer;
	to->sq_psn = what->sq_psn;
	to->rq_psn = what->rq_psn;
	to->pd = what->pd;
	to->ctx = what->ctx;
	to->send_cq = what->send_cq;
	to->recv_cq = what->recv_cq;
	to->srq = what->srq;
	to->size = what->size;
	to->iova = what->iova;
	atomic_store_explicit(&to->version, version + 1, memory_order_release);
}

void vb_roster_use(struct vb_roster *r, struct vb_roster_sheet *sheet)
{
	vb_mutex_lock(&r->lock);
	r->sheet = sheet;
	vb_mutex_unlock(&r->lock);
}

uint32_t vb_roster_add(struct vb_roster *r, const struct vb_roster_row *what)
{
	uint32_t row = 0;

	vb_mutex_lock(&r->lock);
	if (r->sheet) {
		atomic_fetch_add(&r->sheet->alive[what->kind], 1);
		row = take_row(r);
	}
	if (row) {
		write_row(r, row, what);
		if (row > atomic_load(&r->sheet->end))
			atomic_store(&r->sheet->end, row);
	}
	vb_mutex_unlock(&r->lock);
	return row;
}

void vb_roster_set(struct vb_roster *r, uint32_t row,
		   const struct vb_roster_row *what)
{
	if (row == 0)
		return;
	vb_mutex_lock(&r->lock);
	if (r->sheet)
		write_row(r, row, what);
	vb_mutex_unlock(&r->lock);
}

/* One aligned word is written, so the row's version stays: a reader sees either
 * the old size or the new one. */
void vb_roster_resize(struct vb_roster *r, uint32_t row, uint64_t size)
{
	vb_mutex_lock(&r->lock);
	if (r->sheet && row)
		r->sheet->rows[row - 1].size = size;
	vb_mutex_unlock(&r->lock);
}

void vb_roster_own(struct vb_roster *r, uint32_t row, uint32_t ctx)
{
	vb_mutex_lock(&r->lock);
	if (r->sheet && row)
		r->sheet->rows[row - 1].ctx = ctx;
	vb_mutex_unlock(&r->lock);
}

void vb_roster_del(struct vb_roster *r, enum vb_roster_kind kind, uint32_t row)
{
	static const struct vb_roster_row none;

	vb_mutex_lock(&r->lock);
	if (r->sheet) {
		atomic_fetch_sub(&r->sheet->alive[kind], 1);
		if (row)
			write_row(r, row, &none);
	}
	if (row)
		give_row(r, row);
	vb_mutex_unlock(&r->lock);
}
