/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays the operations of a scenario and compares the results with the model.
 * The final contents of memory are known when the operations are drawn
 * (tests/support/scenario_draw.c).
 */
#include "tests/support/scenario_priv.h"
#include "tests/support/seeds.h"

/* Twice the time until the timeouts of scenario_ends_soon() end the requests,
 * plus a margin. */
#define MOURNS	    (700 * VB_MSEC)
/* Limit of time for all requests to end when the peer sends wrong packets or is
 * gone. */
#define SHORT_LIMIT (5 * VB_SEC)

static unsigned fill_sge(const struct play *p, unsigned side,
			 const struct pieces *pcs, struct vb_sge *sge)
{
	for (unsigned i = 0; i < pcs->count; i++)
		sge[i] = (struct vb_sge){ (uintptr_t)(scenario_arena(p, side) +
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
		scenario_copy_out(scenario_arena(p, f->from), &op->local,
				  scenario_scratch);
		sim_post_inline(qp, &wqe, scenario_scratch);
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

/* Returns when flow @f posts next. Its delays count from the last post. */
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
		if (memcmp(scenario_arena(p, side) + pcs->at[i],
			   p->want[side] + pcs->at[i], pcs->len[i]))
			scenario_fail(p, what, n, i);
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
		scenario_fail(p, "completion of nothing", (long)e->wr_id,
			      f->op_posted);
		return;
	}
	if (!good && p->kind == SCENARIO_HONEST)
		scenario_fail(p, "send status", (long)e->wr_id, e->status);
	if (p->kind == SCENARIO_DEATH && !good &&
	    e->status != (f->op_failed ? WC_FLUSH_ERR : WC_RETRY_EXC_ERR))
		scenario_fail(p, "status after the peer's death", (long)e->wr_id,
		     e->status);
	if (p->kind == SCENARIO_DEATH && e->status == WC_RETRY_EXC_ERR &&
	    p->sim.now - p->what->path->harmed_at(&p->sim) > MOURNS)
		scenario_fail(p, "the peer's death is noticed late", (long)e->wr_id, 0);
	if (vb_cqe_is_recv(e) || (good && f->op_failed))
		scenario_fail(p, "send completion", (long)e->wr_id, e->status);
	/* Unsignaled requests before this one succeeded, because after a
	 * failure every request makes a completion. */
	while (!f->op_failed && f->op_seen < e->wr_id &&
	       !(f->ops[f->op_seen].flags & SEND_SIGNALED))
		check_op_data(p, f, f->op_seen++);
	if (e->wr_id != f->op_seen)
		scenario_fail(p, "send order", (long)e->wr_id, f->op_seen);
	if (good && e->opcode != op_of_wr[f->ops[e->wr_id].op])
		scenario_fail(p, "send opcode", (long)e->wr_id, e->opcode);
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
	struct pieces filled = scenario_cut(&r->room, r->write ? 0 : r->len);

	if (e->opcode != op || e->byte_len != r->len)
		scenario_fail(p, "receive opcode, length", e->opcode,
			      e->byte_len);
	if (!!(e->wc_flags & WC_WITH_IMM) != r->has_imm ||
	    (r->has_imm && e->imm != r->imm))
		scenario_fail(p, "immediate", (long)e->wr_id, e->imm);
	check_pieces(p, !f->from, &filled, "received bytes differ",
		     (long)e->wr_id);
}

static void check_recv_cqe(struct play *p, struct flow *f,
			   const struct vb_cqe *e)
{
	bool good = e->status == WC_SUCCESS;

	if (e->wr_id >= f->recv_posted) {
		scenario_fail(p, "receipt of nothing", (long)e->wr_id,
			      f->recv_posted);
		return;
	}
	if (!vb_cqe_is_recv(e) || (good && f->recv_failed) ||
	    (!good && p->kind == SCENARIO_HONEST))
		scenario_fail(p, "receive status", (long)e->wr_id, e->status);
	if (p->kind == SCENARIO_DEATH && !good && e->status != WC_FLUSH_ERR)
		scenario_fail(p, "receive after the peer's death", (long)e->wr_id,
		     e->status);
	if (e->wr_id != f->recv_seen++)
		scenario_fail(p, "receive order", (long)e->wr_id, f->recv_seen);
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

/* Move queue pairs to ERR or RESET when their time has come. Returns the time
 * of the next such move. */
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
		/* The queue pair may already be in ERR: then only RESET is
		 * possible. */
		if (p->pair.qp[i]->state == QPS_RTS || p->doom[i] == QPS_RESET)
			sim_modify(&p->sim, p->pair.qp[i], p->doom[i], 0, NULL);
		p->doom[i] = QPS_RTS;
	}
	return next;
}

/* Check that a queue pair in ERR has reported every posted request. */
static void check_flushed(struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		const struct flow *out = &p->flow[i], *in = &p->flow[!i];

		if (p->pair.qp[i]->state != QPS_ERR || sim_is_away(&p->sim, i))
			continue;
		if (out->op_failed && out->op_seen != out->op_posted)
			scenario_fail(p, "not flushed", out->op_seen,
				      out->op_posted);
		if (!p->pair.srq[i] && in->recv_seen != in->recv_posted)
			scenario_fail(p, "receives not flushed", in->recv_seen,
				      in->recv_posted);
	}
}

/*
 * Check that a living side waits for nothing. Because its timeouts end, every
 * request that it sent is over, with success or an error, and in order. (A
 * queue pair in SQD begins no request, and this test does not move it back to
 * RTS.)
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
			scenario_fail(p, "stuck, and alive", f->op_seen,
				      f->op_posted);
	}
}

static unsigned away_sides(const struct play *p)
{
	return sim_is_away(&p->sim, 0) | sim_is_away(&p->sim, 1) << 1;
}

/* The transport does not give up a peer that lives and gives meaningless
 * answers. So the program moves its queue pair to ERR, and must get completions
 * for all that it posted. */
static void take_down(struct play *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		vb_time then = p->sim.now;

		sim_modify(&p->sim, p->pair.qp[i], QPS_ERR, 0, NULL);
		if (p->sim.now - then > VB_SEC)
			scenario_fail(p, "waited for a peer too long", i, 0);
	}
	poll_all(p);
}

static void perform(struct play *p)
{
	vb_time since = p->sim.now,
		end = since + (p->what->path && scenario_ends_soon(p) ? SHORT_LIMIT
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
		scenario_fail(p, "stuck", p->flow[0].op_seen,
			      p->flow[1].op_seen);
	p->busy = p->sim.now - since;
	/* Packets that the wire delivers late must not change any memory. */
	sim_settle(&p->sim, p->sim.now + VB_SEC);
	if (poll_all(p) && p->kind == SCENARIO_HONEST)
		scenario_fail(p, "a completion too many", 0, 0);
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
	    memcmp(before + guard, scenario_arena(p, side) + ARENA, guard))
		scenario_fail(p, "memory outside the region changed", side, 0);
	if (p->kind == SCENARIO_HONEST &&
	    memcmp(p->want[side], scenario_arena(p, side), ARENA))
		scenario_fail(p, "memory differs in the end", side, 0);
}

static void close_play(struct play *p)
{
	sim_disconnect(&p->sim, &p->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		if (vb_mr_deregister(p->local[i]) ||
		    vb_mr_deregister(p->remote[i]))
			scenario_fail(p, "a region is still in use", i, 0);
		free(p->mem[i]);
		free(p->want[i]);
	}
	sim_close(&p->sim);
}

/* The sums of all plays, which show whether they tested anything. */
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
	scenario_draw(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		memcpy(guards[i], p->mem[i], GUARD);
		memcpy(guards[i] + GUARD, scenario_arena(p, i) + ARENA, GUARD);
	}
	if (what->plan)
		what->plan(&p->sim, &p->rand);
	perform(p);
	add_up(p);
	if (what->no_packets && p->sim.sent)
		scenario_fail(p, "packets", (long)p->sim.sent, 0);
	if (p->sim.path && p->sim.path->crime(&p->sim))
		scenario_fail(p, p->sim.path->crime(&p->sim), 0, 0);
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
	unsigned count = VB_MAX(what->count / seeds_divisor(), 1u);
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
