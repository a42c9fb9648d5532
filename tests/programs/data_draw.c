/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the operations of each step from the test's seed. */
#include "data_test.h"

static uint32_t pick_len(struct rng *r, uint32_t max)
{
	uint32_t mtu = 128u << run.device.mtu, len;

	switch (rng_below(r, 4)) {
	case 0: /* a length below 64 bytes */
		len = (uint32_t)rng_below(r, 64);
		break;
	case 1: /* a length near a whole number of packets */
		len = mtu * (uint32_t)(1 + rng_below(r, 20)) +
		      (uint32_t)rng_below(r, 5) - 2;
		break;
	default: /* a length of any order of magnitude */
		len = (uint32_t)rng_next(r) >> (7 + rng_below(r, 24));
		break;
	}
	return len > max ? max - len % 7 : len;
}

/* Spread @len bytes over @count pieces within [from, from + room). */
static void spread(struct rng *r, uint32_t len, unsigned count, uint32_t from,
		   uint32_t room, struct pieces *p)
{
	uint32_t spare = room - len, left = len, piece, gap;

	p->count = 0;
	p->total = len;
	while (left && p->count < count) {
		gap = (uint32_t)rng_below(r, spare < 3000 ? spare : 3000);
		piece = p->count + 1 == count
				? left
				: 1 + (uint32_t)rng_below(r, left);
		from += gap;
		spare -= gap;
		p->piece[p->count].at = from;
		p->piece[p->count++].len = piece;
		from += piece;
		left -= piece;
	}
	/* Shuffle the pieces, because the addresses of an SGE list need not
	 * ascend. */
	for (unsigned i = p->count; i > 1; i--) {
		unsigned j = (unsigned)rng_below(r, i);
		uint32_t at = p->piece[j].at, n = p->piece[j].len;

		p->piece[j] = p->piece[i - 1];
		p->piece[i - 1].at = at;
		p->piece[i - 1].len = n;
	}
}

unsigned most_sges(void)
{
	return run.with_siw ? SIW_SGES : MAX_SGES;
}

static void siw_can(enum kind *kind, unsigned *sges)
{
	static const enum kind instead[KINDS] = {
		[WRITE] = WRITE,   [WRITE_IMM] = WRITE, [SEND] = SEND,
		[SEND_IMM] = SEND, [READ] = READ,	[SWAP] = READ,
		[ADD] = SEND,
	};

	*kind = instead[*kind];
	*sges = *kind == READ ? 1 : 1 + *sges % SIW_SGES;
}

static void draw_op(struct rng *r, struct op *op, uint32_t from, uint32_t room)
{
	unsigned sges = rng_below(r, 2) ? 1 : 1 + rng_below(r, MAX_SGES);
	unsigned remote_sges;
	uint32_t max = room - 4096 < run.max_len ? room - 4096 : run.max_len;

	op->kind = (enum kind)rng_below(r, KINDS);
	if (run.with_siw)
		siw_can(&op->kind, &sges);
	op->by_client = rng_below(r, 2);
	op->signaled = rng_below(r, 2);
	op->fence = !rng_below(r, 4) && (!run.with_siw || op->kind != READ);
	op->len = kinds[op->kind].atomic ? 8 : pick_len(r, max);
	if (run.with_siw && op->kind != WRITE && !op->len)
		op->len = 1;
	op->inlined = !run.with_siw && op->len <= INLINE && rng_below(r, 2) &&
		      !kinds[op->kind].atomic && op->kind != READ;
	op->imm = (uint32_t)rng_next(r);
	op->operand = rng_next(r);
	op->before = rng_next(r);
	op->compare = rng_below(r, 2) ? op->before : rng_next(r);
	op->content = rng_next(r);
	spread(r, op->len, kinds[op->kind].atomic ? 1 : sges, from, room,
	       &op->local);
	/* The target of a SEND is a list of pieces, too; every other operation
	 * has one range as its target. */
	remote_sges = op->kind == SEND || op->kind == SEND_IMM
			      ? 1 + (unsigned)rng_below(r, most_sges())
			      : 1;
	spread(r, op->len, remote_sges, from, room - 8, &op->remote);
	if (kinds[op->kind].atomic)
		op->remote.piece[0].at = (op->remote.piece[0].at + 7) & ~7u;
}

/* Draw the operations of a step. They use disjoint slices of the areas. */
void draw_step(struct step *s)
{
	struct rng r = { run.seed + run.number * 0x10001 };
	uint32_t slice;

	rng_next(&r);
	s->count = rng_below(&r, 2) ? 1 : 1 + (unsigned)rng_below(&r, MAX_OPS);
	s->sleeps = !rng_below(&r, 4);
	s->late_receives = !rng_below(&r, 8);
	slice = AREA / s->count;
	for (unsigned i = 0; i < s->count; i++) {
		s->op[i] = (struct op){ 0 };
		draw_op(&r, &s->op[i], i * slice, slice);
	}
}
