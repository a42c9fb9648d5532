/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What memory will hold in the end is known when the operations are drawn:
 * each has bytes of its own, and those of one direction happen in order.
 */
#include "tests/support/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mr.h"
#include "tests/support/sim.h"

#define MAX_OPS	     48
#define MAX_PIECES   8
#define ARENA	     (3u << 20)
#define GUARD	     (64u << 10) /* not registered, on both ends */
#define LONGEST	     (200u << 10)
#define IOVA	     0x123456789000u
#define SQ_SLOTS     16
#define SIGNAL_EVERY 6
#define TIME_LIMIT   (600 * VB_SEC)
/* Twice the patience of ends_soon()'s timeouts, and some slack. */
#define MOURNS	    (700 * VB_MSEC)
#define SHORT_LIMIT (5 * VB_SEC) /* to a peer that lies or is gone */

struct pieces {
	unsigned count;
	uint32_t total;
	uint32_t at[MAX_PIECES], len[MAX_PIECES]; /* in the arena */
};

struct op {
	vb_time post_at;
	uint8_t op, flags;
	uint32_t imm;
	struct pieces local;
	uint32_t remote_at;
	uint64_t compare_add, swap;
	int recv; /* number of the receive it takes, or -1 */
};

struct receive {
	vb_time post_at;
	struct pieces room;
	uint32_t len; /* of the message that will come */
	bool write, has_imm;
	uint32_t imm;
};

/* One direction: from side @from to the other. */
struct flow {
	unsigned from;
	struct op ops[MAX_OPS];
	struct receive recvs[MAX_OPS];
	unsigned op_count, recv_count;
	unsigned op_posted, recv_posted;
	unsigned op_seen, recv_seen; /* all before it have been reported */
	bool op_failed, recv_failed;
	uint32_t counter_at;
};

struct play {
	uint64_t seed;
	const struct scenario *what;
	enum scenario_kind kind;
	struct sim_rand rand;
	struct sim sim;
	struct sim_pair pair;
	struct flow flow[SIM_SIDES];
	uint8_t *mem[SIM_SIDES], *want[SIM_SIDES];
	uint32_t used[SIM_SIDES];
	struct vb_mr *local[SIM_SIDES], *remote[SIM_SIDES];
	uint32_t mtu;
	/* Chaos: which state a side is taken to, and when; RTS: none. */
	enum vb_qp_state doom[SIM_SIDES];
	vb_time doom_at[SIM_SIDES];
	bool streams; /* of small WRITEs */
	vb_time busy; /* until the last completion */
	bool failed;
};

static uint8_t *arena(const struct play *p, unsigned side)
{
	return p->mem[side] + GUARD;
}

static void fail(struct play *p, const char *what, long a, long b)
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

/*
 * Drawing.
 */

/* @len bytes of @side's arena, UINT32_MAX when it is full. */
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
	case 3: /* on the edges of packets */
		return p->mtu * (1 + below(p, 4)) + below(p, 3) - 1;
	case 4:
	case 5:
	case 6:
		return below(p, 6 * p->mtu);
	default:
		return below(p, LONGEST);
	}
}

/* The model's memcpy, between lists of pieces and arenas. */
static void copy_in(const uint8_t *from, uint8_t *to, const struct pieces *pcs)
{
	for (unsigned i = 0; i < pcs->count; i++) {
		memcpy(to + pcs->at[i], from, pcs->len[i]);
		from += pcs->len[i];
	}
}

static void copy_out(const uint8_t *from, const struct pieces *pcs, uint8_t *to)
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

static struct pieces cut(const struct pieces *from, uint32_t len)
{
	struct pieces out = *from;

	out.total = len;
	for (unsigned i = 0; i < out.count; i++) {
		out.len[i] = VB_MIN(out.len[i], len);
		len -= out.len[i];
	}
	return out;
}

static uint8_t scratch[LONGEST + 8];

static bool draw_message(struct play *p, struct flow *f, struct op *op)
{
	bool write = op->op == WR_WRITE || op->op == WR_WRITE_IMM;
	struct pieces whole = { .count = 1, .total = op->local.total };

	if (op->op != WR_WRITE && !draw_recv(p, f, op, write))
		return false;
	copy_out(p->want[f->from], &op->local, scratch);
	if (write) {
		op->remote_at = take(p, !f->from, op->local.total);
		if (op->remote_at == UINT32_MAX)
			return false;
		whole.at[0] = op->remote_at;
		whole.len[0] = op->local.total;
	} else {
		whole = cut(&f->recvs[op->recv].room, op->local.total);
	}
	copy_in(scratch, p->want[!f->from], &whole);
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

/* A small WRITE, one of many that are posted at once. */
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
		/* Passes on what the READ brings. */
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
	memcpy(p->want[side], arena(p, side), ARENA);
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

/* Are there ends of connections that only a timeout notices? */
static bool ends_soon(const struct play *p)
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
	if (ends_soon(p)) {
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

static void draw(struct play *p)
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
		uint8_t *at = arena(p, i);

		if (vb_mr_register(p->sim.side[i].pd, at, ARENA, (uintptr_t)at,
				   all, &p->local[i]) ||
		    vb_mr_register(p->sim.side[i].pd, at, ARENA, IOVA, all,
				   &p->remote[i]))
			abort();
	}
}

/*
 * Playing.
 */

static unsigned fill_sge(const struct play *p, unsigned side,
			 const struct pieces *pcs, struct vb_sge *sge)
{
	for (unsigned i = 0; i < pcs->count; i++)
		sge[i] = (struct vb_sge){ (uintptr_t)(arena(p, side) +
						      pcs->at[i]),
					  pcs->len[i], p->local[side]->key };
	return pcs->count;
}

static void post_op(struct play *p, struct flow *f)
{
	unsigned n = f->op_posted++;
	const struct op *op = &f->ops[n];
	struct vb_qp *qp = p->pair.qp[f->from];
	struct vb_sge sge[MAX_PIECES];
	struct vb_send_wqe wqe = {
		.wr_id = n,
		.op = op->op,
		.flags = op->flags,
		.imm = op->imm,
		.length = op->local.total,
		.remote_addr = IOVA + op->remote_at,
		.rkey = p->remote[!f->from]->key,
		.compare_add = op->compare_add,
		.swap = op->swap,
		.num_sge = (uint8_t)op->local.count,
	};

	if (op->flags & SEND_INLINE) {
		copy_out(arena(p, f->from), &op->local, scratch);
		sim_post_inline(qp, &wqe, scratch);
		return;
	}
	fill_sge(p, f->from, &op->local, sge);
	sim_post_send(qp, &wqe, sge);
}

static void post_recv(struct play *p, struct flow *f)
{
	unsigned n = f->recv_posted++;
	struct vb_sge sge[MAX_PIECES];
	unsigned count = fill_sge(p, !f->from, &f->recvs[n].room, sge);

	sim_post_recv(p->pair.qp[!f->from], n, sge, count);
}

static bool send_has_room(const struct play *p, const struct flow *f)
{
	const struct vb_qp *qp = p->pair.qp[f->from];
	const struct vb_sq *sq = &qp->sq;

	return !sim_is_away(&p->sim, f->from) && qp->state >= QPS_RTS &&
	       atomic_load(&sq->posted) - atomic_load(&sq->released) < sq->cap;
}

static bool recv_has_room(const struct play *p, const struct flow *f)
{
	const struct vb_qp *qp = p->pair.qp[!f->from];
	const struct vb_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;

	return !sim_is_away(&p->sim, !f->from) && qp->state != QPS_RESET &&
	       atomic_load(&rq->posted) - atomic_load(&rq->released) < rq->cap;
}

/* The times to post count from when the last was posted. */
static vb_time post_due(struct play *p, struct flow *f, vb_time since)
{
	vb_time next = VB_NEVER;

	while (f->recv_posted < f->recv_count && recv_has_room(p, f)) {
		vb_time at = since + f->recvs[f->recv_posted].post_at;

		next = at;
		if (at > p->sim.now)
			break;
		post_recv(p, f);
		next = VB_NEVER;
	}
	while (f->op_posted < f->op_count && send_has_room(p, f)) {
		vb_time at = since + f->ops[f->op_posted].post_at;

		if (at > p->sim.now)
			return VB_MIN(next, at);
		post_op(p, f);
	}
	return next;
}

static void check_pieces(struct play *p, unsigned side,
			 const struct pieces *pcs, const char *what, long n)
{
	for (unsigned i = 0; i < pcs->count; i++)
		if (memcmp(arena(p, side) + pcs->at[i],
			   p->want[side] + pcs->at[i], pcs->len[i]))
			fail(p, what, n, i);
}

static void check_op_data(struct play *p, struct flow *f, unsigned n)
{
	const struct op *op = &f->ops[n];
	struct pieces there = {
		1, op->local.total, { op->remote_at }, { op->local.total }
	};

	if (p->kind == SCENARIO_HOSTILE)
		return;
	if (op->op == WR_WRITE || op->op == WR_WRITE_IMM)
		check_pieces(p, !f->from, &there, "written bytes differ", n);
	else
		check_pieces(p, f->from, &op->local, "read bytes differ", n);
}

static const uint8_t op_of_wr[] = {
	[WR_WRITE] = WC_OP_WRITE,	  [WR_WRITE_IMM] = WC_OP_WRITE,
	[WR_SEND] = WC_OP_SEND,		  [WR_SEND_IMM] = WC_OP_SEND,
	[WR_READ] = WC_OP_READ,		  [WR_CMP_SWAP] = WC_OP_CMP_SWAP,
	[WR_FETCH_ADD] = WC_OP_FETCH_ADD,
};

static void check_send_cqe(struct play *p, struct flow *f,
			   const struct vb_cqe *e)
{
	bool good = e->status == WC_SUCCESS;

	if (e->wr_id >= f->op_posted) {
		fail(p, "completion of nothing", (long)e->wr_id, f->op_posted);
		return;
	}
	if (!good && p->kind == SCENARIO_HONEST)
		fail(p, "send status", (long)e->wr_id, e->status);
	if (p->kind == SCENARIO_DEATH && !good &&
	    e->status != (f->op_failed ? WC_FLUSH_ERR : WC_RETRY_EXC_ERR))
		fail(p, "status after the peer's death", (long)e->wr_id,
		     e->status);
	if (p->kind == SCENARIO_DEATH && e->status == WC_RETRY_EXC_ERR &&
	    p->sim.now - p->what->path->harmed_at(&p->sim) > MOURNS)
		fail(p, "the peer's death is noticed late", (long)e->wr_id, 0);
	if (e->is_recv || (good && f->op_failed))
		fail(p, "send completion", (long)e->wr_id, e->status);
	/* Silent ones succeeded: after a failure nothing is silent. */
	while (!f->op_failed && f->op_seen < e->wr_id &&
	       !(f->ops[f->op_seen].flags & SEND_SIGNALED))
		check_op_data(p, f, f->op_seen++);
	if (e->wr_id != f->op_seen)
		fail(p, "send order", (long)e->wr_id, f->op_seen);
	if (good && e->opcode != op_of_wr[f->ops[e->wr_id].op])
		fail(p, "send opcode", (long)e->wr_id, e->opcode);
	if (good)
		check_op_data(p, f, f->op_seen);
	f->op_failed = !good;
	f->op_seen++;
}

static void check_message(struct play *p, struct flow *f,
			  const struct vb_cqe *e)
{
	const struct receive *r = &f->recvs[e->wr_id];
	uint8_t op = r->write ? WC_OP_RECV_WRITE_IMM : WC_OP_RECV;
	struct pieces filled = cut(&r->room, r->write ? 0 : r->len);

	if (e->opcode != op || e->byte_len != r->len)
		fail(p, "receive opcode, length", e->opcode, e->byte_len);
	if (!!(e->wc_flags & WC_WITH_IMM) != r->has_imm ||
	    (r->has_imm && e->imm != r->imm))
		fail(p, "immediate", (long)e->wr_id, e->imm);
	check_pieces(p, !f->from, &filled, "received bytes differ",
		     (long)e->wr_id);
}

static void check_recv_cqe(struct play *p, struct flow *f,
			   const struct vb_cqe *e)
{
	bool good = e->status == WC_SUCCESS;

	if (e->wr_id >= f->recv_posted) {
		fail(p, "receipt of nothing", (long)e->wr_id, f->recv_posted);
		return;
	}
	if (!e->is_recv || (good && f->recv_failed) ||
	    (!good && p->kind == SCENARIO_HONEST))
		fail(p, "receive status", (long)e->wr_id, e->status);
	if (p->kind == SCENARIO_DEATH && !good && e->status != WC_FLUSH_ERR)
		fail(p, "receive after the peer's death", (long)e->wr_id,
		     e->status);
	if (e->wr_id != f->recv_seen++)
		fail(p, "receive order", (long)e->wr_id, f->recv_seen);
	if (good && p->kind != SCENARIO_HOSTILE)
		check_message(p, f, e);
	f->recv_failed = !good;
}

static bool poll_all(struct play *p)
{
	struct vb_cqe e;
	bool any = false;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		if (sim_is_away(&p->sim, i))
			continue;
		for (; sim_poll(p->pair.recv_cq[i], &e); any = true)
			check_recv_cqe(p, &p->flow[!i], &e);
		for (; sim_poll(p->pair.send_cq[i], &e); any = true)
			check_send_cqe(p, &p->flow[i], &e);
	}
	return any;
}

static bool all_seen(const struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (p->flow[i].op_seen < p->flow[i].op_count ||
		    p->flow[i].recv_seen < p->flow[i].recv_count)
			return false;
	return true;
}

static bool dead(const struct play *p)
{
	return p->pair.qp[0]->state == QPS_ERR &&
	       p->pair.qp[1]->state == QPS_ERR;
}

/* Takes sides out, when it is time. Returns when it is time next. */
static vb_time meet_doom(struct play *p)
{
	vb_time next = VB_NEVER;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		if (p->doom[i] == QPS_RTS)
			continue;
		if (p->doom_at[i] > p->sim.now) {
			next = VB_MIN(next, p->doom_at[i]);
			continue;
		}
		poll_all(p);
		/* It may be in ERR by itself: then only RESET is left. */
		if (p->pair.qp[i]->state == QPS_RTS || p->doom[i] == QPS_RESET)
			sim_modify(&p->sim, p->pair.qp[i], p->doom[i], 0, NULL);
		p->doom[i] = QPS_RTS;
	}
	return next;
}

/* In ERR everything that was posted has been reported. */
static void check_flushed(struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		const struct flow *out = &p->flow[i], *in = &p->flow[!i];

		if (p->pair.qp[i]->state != QPS_ERR || sim_is_away(&p->sim, i))
			continue;
		if (out->op_failed && out->op_seen != out->op_posted)
			fail(p, "not flushed", out->op_seen, out->op_posted);
		if (!p->pair.srq[i] && in->recv_seen != in->recv_posted)
			fail(p, "receives not flushed", in->recv_seen,
			     in->recv_posted);
	}
}

/*
 * Whoever lives has nothing left to wait for: with timeouts that end, every
 * request it sent is over, well or badly, and in order. (SQD begins nothing
 * new, and nobody takes it back to RTS here.)
 */
static void check_over(struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		const struct vb_qp *qp = p->pair.qp[i];
		const struct flow *f = &p->flow[i];

		if (sim_is_away(&p->sim, i) || qp->state != QPS_RTS ||
		    !qp->attr.timeout)
			continue;
		if (f->op_seen != f->op_posted)
			fail(p, "stuck, and alive", f->op_seen, f->op_posted);
	}
}

static unsigned away_sides(const struct play *p)
{
	return sim_is_away(&p->sim, 0) | sim_is_away(&p->sim, 1) << 1;
}

/* A peer that lives and gives senseless answers is not given up: the program
 * gives up, and is told of all that it has posted. */
static void take_down(struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		vb_time then = p->sim.now;

		sim_modify(&p->sim, p->pair.qp[i], QPS_ERR, 0, NULL);
		if (p->sim.now - then > VB_SEC)
			fail(p, "waited for a peer too long", i, 0);
	}
	poll_all(p);
}

static void perform(struct play *p)
{
	vb_time since = p->sim.now,
		end = since + (p->what->path && ends_soon(p) ? SHORT_LIMIT
							     : TIME_LIMIT);

	while (!p->failed && !all_seen(p) && !dead(p)) {
		vb_time next = meet_doom(p);

		unsigned away = away_sides(p);

		for (unsigned i = 0; i < SIM_SIDES; i++)
			next = VB_MIN(next, post_due(p, &p->flow[i], since));
		sim_drive(&p->sim);
		if (away != away_sides(p))
			continue;
		next = VB_MIN(next, sim_next(&p->sim));
		if (poll_all(p))
			continue;
		if (next == VB_NEVER || next > end)
			break;
		sim_run(&p->sim, next);
	}
	if (!all_seen(p) && p->kind == SCENARIO_HONEST)
		fail(p, "stuck", p->flow[0].op_seen, p->flow[1].op_seen);
	p->busy = p->sim.now - since;
	/* Late copies change nothing. */
	sim_settle(&p->sim, p->sim.now + VB_SEC);
	if (poll_all(p) && p->kind == SCENARIO_HONEST)
		fail(p, "a completion too many", 0, 0);
	if (p->kind == SCENARIO_HOSTILE && p->what->path)
		take_down(p);
	check_flushed(p);
	if (p->kind != SCENARIO_HONEST)
		check_over(p);
}

static void check_end(struct play *p, const uint8_t *before, unsigned side)
{
	size_t guard = GUARD;

	if (memcmp(before, p->mem[side], guard) ||
	    memcmp(before + guard, arena(p, side) + ARENA, guard))
		fail(p, "memory outside the region changed", side, 0);
	if (p->kind == SCENARIO_HONEST &&
	    memcmp(p->want[side], arena(p, side), ARENA))
		fail(p, "memory differs in the end", side, 0);
}

static void close_play(struct play *p)
{
	sim_disconnect(&p->sim, &p->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		if (vb_mr_deregister(p->local[i]) ||
		    vb_mr_deregister(p->remote[i]))
			fail(p, "a region is still in use", i, 0);
		free(p->mem[i]);
		free(p->want[i]);
	}
	sim_close(&p->sim);
}

/* What all plays together came to: tells whether they tried anything. */
static struct {
	uint64_t packets, repeats, timeouts, rnr, duplicates, dead;
	vb_time time;
} sum;

static void add_up(const struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		const _Atomic uint64_t *c = p->sim.side[i].adapter.counters;

		sum.repeats += c[CNT_RETRANSMITS];
		sum.timeouts += c[CNT_TIMEOUTS];
		sum.rnr += c[CNT_SEND_RNR_ERR];
		sum.duplicates += c[CNT_DUPLICATE_REQUEST];
	}
	sum.packets += p->sim.sent;
	sum.dead += dead(p);
	sum.time += p->busy;
}

static void print_sum(unsigned count)
{
	printf("%u runs, %.1f s of their time: %llu packets, %llu repeats, "
	       "%llu timeouts, %llu rnr, %llu duplicates, %llu dead\n",
	       count, (double)sum.time / VB_SEC,
	       (unsigned long long)sum.packets, (unsigned long long)sum.repeats,
	       (unsigned long long)sum.timeouts, (unsigned long long)sum.rnr,
	       (unsigned long long)sum.duplicates,
	       (unsigned long long)sum.dead);
}

bool scenario_play(uint64_t seed, const struct scenario *what)
{
	static uint8_t guards[SIM_SIDES][2 * GUARD];
	struct play *p = calloc(1, sizeof(*p));
	bool failed;

	if (!p)
		abort();
	p->seed = seed;
	p->what = what;
	p->kind = what->kind;
	p->rand.state = seed;
	draw(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		memcpy(guards[i], p->mem[i], GUARD);
		memcpy(guards[i] + GUARD, arena(p, i) + ARENA, GUARD);
	}
	if (what->plan)
		what->plan(&p->sim, &p->rand);
	perform(p);
	add_up(p);
	if (what->no_packets && p->sim.sent)
		fail(p, "packets", (long)p->sim.sent, 0);
	if (p->sim.path && p->sim.path->crime(&p->sim))
		fail(p, p->sim.path->crime(&p->sim), 0, 0);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		check_end(p, guards[i], i);
	if (p->failed)
		sim_print_trace(&p->sim);
	failed = p->failed;
	close_play(p);
	free(p);
	return !failed;
}

int scenario_main(int argc, char **argv, const struct scenario *what)
{
	unsigned count = what->count;
	uint64_t first = 1;
	int i = 1;

	if (i + 1 < argc && strcmp(argv[i], "-n") == 0) {
		count = (unsigned)strtoul(argv[i + 1], NULL, 0);
		i += 2;
	} else if (i < argc) {
		count = 1;
	}
	if (i < argc)
		first = strtoull(argv[i], NULL, 0);
	for (uint64_t seed = first; seed < first + count; seed++)
		if (!scenario_play(seed, what))
			return 1;
	print_sum(count);
	if (what->path)
		what->path->tell();
	return 0;
}
