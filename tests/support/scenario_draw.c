/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the operations of a play, and computes the final contents of memory.
 * These are known because each operation has its own bytes, and the operations
 * of one direction happen in order. */
#include "tests/support/scenario_priv.h"

#define SQ_SLOTS     16
#define SIGNAL_EVERY 6

uint8_t *scenario_arena(const struct play *p, unsigned side)
{
	return p->mem[side] + GUARD;
}

void scenario_fail(struct play *p, const char *what, long a, long b)
{
	if (!p->failed)
		fprintf(stderr, "seed %llu at %.3f us: %s (%ld, %ld)\n",
			(unsigned long long)p->seed, (double)p->sim.now / 1000,
			what, a, b);
	p->failed = true;
}

static uint32_t below(struct play *p, uint32_t n)
{
	return sim_below(&p->rand, n);
}

/* Allocate @len bytes of @side's arena; UINT32_MAX if it is full. */
static uint32_t take(struct play *p, unsigned side, uint32_t len)
{
	uint32_t at = p->used[side] + 1 + below(p, 40);

	if (at + len > ARENA)
		return UINT32_MAX;
	p->used[side] = at + len;
	return at;
}

static bool draw_pieces(struct play *p, unsigned side, uint32_t len,
			struct pieces *out)
{
	unsigned n = below(p, 3) ? 1 : 1 + below(p, MAX_PIECES);

	out->count = len ? n : below(p, 2);
	out->total = len;
	for (unsigned i = 0; i < out->count; i++) {
		bool last = i + 1 == out->count;

		out->len[i] = last ? len : below(p, len + 1);
		out->at[i] = take(p, side, out->len[i]);
		if (out->at[i] == UINT32_MAX)
			return false;
		len -= out->len[i];
	}
	return true;
}

static uint32_t draw_length(struct play *p)
{
	switch (below(p, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 1 + below(p, 64);
	/* a message length one byte around a multiple of the path MTU */
	case 3:
		return p->mtu * (1 + below(p, 4)) + below(p, 3) - 1;
	case 4:
	case 5:
	case 6:
		return below(p, 6 * p->mtu);
	default:
		return below(p, LONGEST);
	}
}

/* In the model: copy contiguous bytes to the pieces of an arena. */
static void copy_in(const uint8_t *from, uint8_t *to, const struct pieces *pcs)
{
	for (unsigned i = 0; i < pcs->count; i++) {
		memcpy(to + pcs->at[i], from, pcs->len[i]);
		from += pcs->len[i];
	}
}

void scenario_copy_out(const uint8_t *from, const struct pieces *pcs,
		       uint8_t *to)
{
	for (unsigned i = 0; i < pcs->count; i++) {
		memcpy(to, from + pcs->at[i], pcs->len[i]);
		to += pcs->len[i];
	}
}

static bool draw_recv(struct play *p, struct flow *f, struct op *op, bool write)
{
	struct receive *r = &f->recvs[f->recv_count];
	uint32_t room = write ? below(p, 20)
			      : op->local.total + below(p, 2) * below(p, 99);

	r->len = op->local.total;
	r->write = write;
	r->imm = op->imm;
	r->has_imm = op->op == WR_SEND_IMM || op->op == WR_WRITE_IMM;
	r->post_at = below(p, 2) ? 0 : below(p, 3 * VB_MSEC);
	if (!draw_pieces(p, !f->from, room, &r->room))
		return false;
	op->recv = (int)f->recv_count++;
	return true;
}

struct pieces scenario_cut(const struct pieces *from, uint32_t len)
{
	struct pieces out = *from;

	out.total = len;
	for (unsigned i = 0; i < out.count; i++) {
		out.len[i] = VB_MIN(out.len[i], len);
		len -= out.len[i];
	}
	return out;
}

uint8_t scenario_scratch[LONGEST + 8];

static bool draw_message(struct play *p, struct flow *f, struct op *op)
{
	bool write = op->op == WR_WRITE || op->op == WR_WRITE_IMM;
	struct pieces whole = { .count = 1, .total = op->local.total };

	if (op->op != WR_WRITE && !draw_recv(p, f, op, write))
		return false;
	scenario_copy_out(p->want[f->from], &op->local, scenario_scratch);
	if (write) {
		op->remote_at = take(p, !f->from, op->local.total);
		if (op->remote_at == UINT32_MAX)
			return false;
		whole.at[0] = op->remote_at;
		whole.len[0] = op->local.total;
	} else {
		whole = scenario_cut(&f->recvs[op->recv].room, op->local.total);
	}
	copy_in(scenario_scratch, p->want[!f->from], &whole);
	return true;
}

static bool draw_read(struct play *p, struct flow *f, struct op *op)
{
	op->remote_at = take(p, !f->from, op->local.total);
	if (op->remote_at == UINT32_MAX)
		return false;
	copy_in(p->want[!f->from] + op->remote_at, p->want[f->from],
		&op->local);
	return true;
}

static bool draw_atomic(struct play *p, struct flow *f, struct op *op)
{
	uint8_t *counter = p->want[!f->from] + f->counter_at;
	uint64_t old, new;

	memcpy(&old, counter, 8);
	op->remote_at = f->counter_at;
	if (op->op == WR_FETCH_ADD) {
		op->compare_add = sim_rand32(&p->rand);
		new = old + op->compare_add;
	} else {
		op->compare_add = old + below(p, 2);
		op->swap = sim_rand32(&p->rand);
		new = old == op->compare_add ? op->swap : old;
	}
	memcpy(counter, &new, 8);
	copy_in((const uint8_t *)&old, p->want[f->from], &op->local);
	return true;
}

static const uint8_t op_choice[] = {
	WR_SEND,      WR_SEND, WR_SEND_IMM, WR_WRITE,	 WR_WRITE,
	WR_WRITE_IMM, WR_READ, WR_READ,	    WR_CMP_SWAP, WR_FETCH_ADD,
};

/* Draw a small WRITE, one of many that the test posts in quick succession. */
static bool draw_small(struct play *p, struct flow *f)
{
	struct op *op = &f->ops[f->op_count];
	uint32_t len = 1 + below(p, 200);

	*op = (struct op){ .op = WR_WRITE, .recv = -1 };
	if (f->op_count % SIGNAL_EVERY == 0)
		op->flags |= SEND_SIGNALED;
	if (below(p, 2))
		op->flags |= SEND_INLINE;
	op->local = (struct pieces){ .count = 1,
				     .total = len,
				     .at = { take(p, f->from, len) },
				     .len = { len } };
	return op->local.at[0] != UINT32_MAX && draw_message(p, f, op);
}

static bool draw_op(struct play *p, struct flow *f, const struct op *before)
{
	struct op *op = &f->ops[f->op_count];
	bool atomic, asks;
	uint32_t len;

	if (p->streams && below(p, 16))
		return draw_small(p, f);
	*op = (struct op){ .op = op_choice[below(p, VB_COUNT(op_choice))],
			   .imm = sim_rand32(&p->rand),
			   .recv = -1 };
	atomic = op->op == WR_CMP_SWAP || op->op == WR_FETCH_ADD;
	asks = atomic || op->op == WR_READ;
	op->post_at = below(p, 3) ? 0 : below(p, 300 * VB_USEC);
	op->flags = below(p, 2) ? SEND_SIGNALED : 0;
	if (f->op_count % SIGNAL_EVERY == 0)
		op->flags |= SEND_SIGNALED;
	if (below(p, 8) == 0)
		op->flags |= SEND_FENCE;
	len = atomic ? 8 : draw_length(p);
	if (before && before->op == WR_READ && !asks && below(p, 2)) {
		/* Draw a WRITE that sends the bytes which the READ before it
		 * fetched. */
		op->local = before->local;
		op->flags |= SEND_FENCE;
	} else if (!draw_pieces(p, f->from, len, &op->local)) {
		return false;
	}
	if (!asks && op->local.total <= sim_caps.inline_bytes &&
	    !(op->flags & SEND_FENCE) && below(p, 2))
		op->flags |= SEND_INLINE;
	if (atomic)
		return draw_atomic(p, f, op);
	if (op->op == WR_READ)
		return draw_read(p, f, op);
	return draw_message(p, f, op);
}

static void draw_flow(struct play *p, unsigned from)
{
	struct flow *f = &p->flow[from];
	unsigned count = 1 + below(p, MAX_OPS);

	f->from = from;
	f->counter_at = (take(p, !from, 16) + 7) & ~7u;
	while (f->op_count < count &&
	       draw_op(p, f, f->op_count ? &f->ops[f->op_count - 1] : NULL))
		f->op_count++;
	if (f->op_count)
		f->ops[f->op_count - 1].flags |= SEND_SIGNALED;
}

static void draw_memory(struct play *p, unsigned side)
{
	size_t size = ARENA + 2 * GUARD;
	uint64_t *words = aligned_alloc(64, size);

	if (!words)
		abort();
	for (size_t i = 0; i < size / 8; i++)
		words[i] = (p->rand.state += 0x9e3779b97f4a7c15u) *
			   0xbf58476d1ce4e5b9u;
	p->mem[side] = (uint8_t *)words;
	p->want[side] = malloc(ARENA);
	if (!p->want[side])
		abort();
	memcpy(p->want[side], scenario_arena(p, side), ARENA);
}

static void draw_wire(struct play *p)
{
	static const unsigned losses[] = { 0, 0, 30, 100, 500, 1000 };
	struct sim_wire *w = &p->sim.wire;

	w->lose = losses[below(p, VB_COUNT(losses))];
	w->damage = below(p, 3) ? 0 : below(p, 100);
	w->copy = below(p, 3) ? 0 : below(p, 1000);
	w->swap = below(p, 3) ? 0 : below(p, 1000);
	w->delay = 1 + below(p, 100 * VB_USEC);
	w->jitter = below(p, 4 * (uint32_t)w->delay);
	w->room = below(p, 3) ? 0 : 8 + below(p, 64);
	if (p->kind != SCENARIO_HOSTILE)
		return;
	w->hostile = true;
	w->damage = 20 + below(p, 400);
	w->lose = 0;
}

bool scenario_ends_soon(const struct play *p)
{
	return p->kind == SCENARIO_CHAOS || p->kind == SCENARIO_DEATH ||
	       (p->kind == SCENARIO_HOSTILE && p->what->path);
}

static void draw_pair(struct play *p)
{
	struct vb_qp_attr attr = sim_attr;
	struct sim_caps caps = sim_caps;

	caps.wr = SQ_SLOTS;
	caps.sge = MAX_PIECES;
	caps.srq = below(p, 4) == 0;
	attr.path_mtu = (uint8_t)(1 + below(p, 5));
	attr.sq_psn = attr.rq_psn = sim_rand32(&p->rand) & VB_PSN_MASK;
	attr.max_rd_atomic = (uint8_t)(1 + below(p, 6));
	attr.max_dest_rd_atomic = attr.max_rd_atomic;
	attr.min_rnr_timer = (uint8_t)(1 + below(p, 12));
	attr.timeout = (uint8_t)(below(p, 8) ? 10 + below(p, 6) : 0);
	if (scenario_ends_soon(p)) {
		attr.timeout = 12;
		attr.retry_cnt = 3;
	}
	p->mtu = vb_mtu_bytes(attr.path_mtu);
	sim_connect(&p->sim, &p->pair, &attr, &caps);
}

static void draw_doom(struct play *p)
{
	static const enum vb_qp_state choice[] = { QPS_RTS, QPS_ERR, QPS_RESET,
						   QPS_SQD };

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		p->doom[i] = QPS_RTS;
		if (p->kind == SCENARIO_CHAOS)
			p->doom[i] = choice[below(p, VB_COUNT(choice))];
		p->doom_at[i] = p->sim.now + below(p, 3 * VB_MSEC);
	}
}

void scenario_draw(struct play *p)
{
	sim_open_as(&p->sim, p->seed ^ 0x5eed, p->what->path);
	draw_wire(p);
	p->streams = p->what->path && below(p, 4) == 0;
	draw_pair(p);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		draw_memory(p, i);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		draw_flow(p, i);
	draw_doom(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			       ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
		uint8_t *at = scenario_arena(p, i);

		if (vb_mr_register(p->sim.side[i].pd, at, ARENA, (uintptr_t)at,
				   all, &p->local[i]) ||
		    vb_mr_register(p->sim.side[i].pd, at, ARENA, IOVA, all,
				   &p->remote[i]))
			abort();
	}
}
