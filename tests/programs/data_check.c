/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the expected contents of memory, and compares them. */
#include "data_test.h"

bool mine(const struct op *op)
{
	return op->by_client == run.client;
}

/* Returns the bytes that the operation @op moves, in the order of the wire. */
const uint8_t *content(const struct op *op)
{
	struct rng r = { op->content };

	rng_fill(&r, run.scratch, op->len);
	return run.scratch;
}

static void scatter(uint8_t *area, const struct pieces *p, const uint8_t *from)
{
	for (unsigned i = 0; i < p->count; i++) {
		memcpy(area + p->piece[i].at, from, p->piece[i].len);
		from += p->piece[i].len;
	}
}

static void put_word(struct area *a, const struct pieces *p, uint64_t word)
{
	memcpy(a->is + p->piece[0].at, &word, 8);
	memcpy(a->must_be + p->piece[0].at, &word, 8);
}

/* Before an operation starts, write the bytes that it will read or change. */
void prepare(const struct op *op)
{
	const uint8_t *bytes;

	if (kinds[op->kind].atomic) {
		if (!mine(op))
			put_word(&run.in, &op->remote, op->before);
		return;
	}
	if (mine(op) == (op->kind == READ))
		return;
	bytes = content(op);
	if (op->kind == READ) {
		scatter(run.in.is, &op->remote, bytes);
		scatter(run.in.must_be, &op->remote, bytes);
	} else {
		scatter(run.out.is, &op->local, bytes);
		scatter(run.out.must_be, &op->local, bytes);
	}
}

/* Change the model of the memory as @op will change the memory. */
void expect(const struct op *op)
{
	uint64_t after = op->before;

	if (op->kind == ADD)
		after += op->operand;
	else if (op->before == op->compare)
		after = op->operand;
	if (kinds[op->kind].atomic)
		scatter(mine(op) ? run.out.must_be : run.in.must_be,
			mine(op) ? &op->local : &op->remote,
			(void *)(mine(op) ? &op->before : &after));
	else if (op->kind == READ && mine(op))
		scatter(run.out.must_be, &op->local, content(op));
	else if (op->kind != READ && !mine(op))
		scatter(run.in.must_be, &op->remote, content(op));
}

void fail(const struct op *op, const char *what)
{
	die("seed %#llx step %u: %s of %u bytes in %u SGEs, by the %s: %s",
	    (unsigned long long)run.seed, run.number, kinds[op->kind].name,
	    op->len, op->local.count, mine(op) ? "this side" : "other side",
	    what);
}

void compare(const struct op *op, const struct area *a, uint32_t from,
	     uint32_t to)
{
	char what[160];

	if (!memcmp(a->is + from, a->must_be + from, to - from))
		return;
	while (a->is[from] == a->must_be[from])
		from++;
	snprintf(what, sizeof(what),
		 "offset %u of the %s area is %#04x, must be %#04x", from,
		 a == &run.in ? "in" : "out", a->is[from], a->must_be[from]);
	fail(op, what);
}

void check(const struct op *op)
{
	const struct area *a = mine(op) ? &run.out : &run.in;
	const struct pieces *p = mine(op) ? &op->local : &op->remote;
	uint32_t at, to;

	for (unsigned i = 0; i < p->count; i++) {
		at = p->piece[i].at;
		to = at + p->piece[i].len + AROUND;
		compare(op, a, at > AROUND ? at - AROUND : 0,
			to < AREA ? to : AREA);
	}
}
