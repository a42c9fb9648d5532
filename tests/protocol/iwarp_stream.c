/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream between two iWARP queue pairs is cut at every byte, damaged at every
 * byte, and lost; then random programs run on random streams. In every case
 * each work request completes once, a successful one has moved the right data,
 * and no other byte of memory changes.
 *
 * 	iwarp_stream SEED	replays one random run
 * 	iwarp_stream -n COUNT [FIRST]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pipe.h"
#include "tests/support/seeds.h"

/* Losing the stream is like cutting it, except for the end: test every fifth
 * byte only. */
#define LOSE_STEP 5

#define OPS  16
#define SLOT 1024u
#define AREA (OPS * SLOT)

#define BAD_KEY 0x12345600u

/* The parts of each side's memory, AREA bytes each. */
enum area { SOURCE, SINK, TARGET, INBOX, WORDS };
_Static_assert(4 * AREA + OPS * 8 <= PIPE_MEM, "it fits");

struct op {
	unsigned side;
	struct vb_send_wqe wqe;
	uint32_t slot;
	bool bad; /* true: the request's remote key is invalid */
	unsigned done;
	enum vb_wc_status status;
};

struct run {
	struct pipe *p;
	/* the requests of both sides; each wr_id is an index into this array */
	struct op ops[2 * OPS];
	unsigned count, inbox[SIM_SIDES], recv_done[SIM_SIDES];
	unsigned atomics[SIM_SIDES];
	/* By side: the requests that consume a RECV of the peer, in order. */
	struct op *sent[SIM_SIDES][OPS];
	unsigned sent_count[SIM_SIDES];
	uint64_t seed;
	/* Damage: flips one bit of the byte at offset @at behind the first byte
	 * of side @from. */
	bool damages;
	unsigned from;
	size_t at;
	uint8_t bit;
	/* Sizes of the pieces into which a stream is cut: @first bytes, then at
	 * most @most bytes each. */
	size_t first, most;
	bool random, faulty;
	struct sim_rand rand;
};

#define MUST(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: %s (seed %llu, byte %zu)\n",   \
				__FILE__, __LINE__, #what,                     \
				(unsigned long long)r->seed, r->at);           \
			abort();                                               \
		}                                                              \
	} while (0)

static uint8_t *at_slot(const struct run *r, unsigned side, enum area area,
			uint32_t slot)
{
	return r->p->mem[side] + area * AREA + slot * SLOT;
}

static uint8_t byte_of(unsigned side, enum area area, size_t i)
{
	return (uint8_t)(i * 31 + i / 253 + side * 97 + area * 53 + 1);
}

static void fill(struct run *r)
{
	for (unsigned s = 0; s < SIM_SIDES; s++)
		for (unsigned a = SOURCE; a <= INBOX; a++)
			for (size_t i = 0; i < AREA; i++)
				at_slot(r, s, a, 0)[i] = byte_of(s, a, i);
}

static bool takes_receive(const struct op *op)
{
	return op->wqe.op == WR_SEND || op->wqe.op == WR_SEND_IMM ||
	       op->wqe.op == WR_WRITE_IMM;
}

static void post_op(struct run *r, unsigned side, enum vb_wr_op kind,
		    uint32_t len, uint8_t flags)
{
	struct op *op = &r->ops[r->count];
	struct pipe *p = r->p;
	enum area local = SOURCE, remote = TARGET;
	bool atomic = kind == WR_FETCH_ADD;
	uint32_t slot = r->count % OPS;

	op->side = side;
	op->slot = slot;
	op->wqe = (struct vb_send_wqe){ .op = (uint8_t)kind,
					.flags = SEND_SIGNALED | flags,
					.length = atomic ? 8 : len,
					.imm = 0x1000 + r->count,
					.compare_add = 1 };
	if (kind == WR_READ)
		remote = SOURCE;
	if (kind == WR_READ || atomic)
		local = SINK;
	op->wqe.remote_addr = (uintptr_t)at_slot(r, !side, remote, slot);
	if (atomic) {
		op->wqe.remote_addr = (uintptr_t)at_slot(r, !side, WORDS, 0);
		r->atomics[side]++;
	}
	if (takes_receive(op)) {
		uint32_t in = r->inbox[!side]++;

		r->sent[side][r->sent_count[side]++] = op;
		pipe_post_recv(p, !side, INBOX * AREA + in * SLOT, SLOT);
	}
	p->wr_ids = r->count++;
	pipe_post(p, side, op->wqe, local * AREA + slot * SLOT,
		  len > 100 ? 3 : 1);
}

/* Post requests of every kind from both sides. */
static void post_usual(struct run *r)
{
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		post_op(r, side, WR_SEND, 130, 0);
		post_op(r, side, WR_WRITE, 301, 0);
		post_op(r, side, WR_READ, 155, 0);
		post_op(r, side, WR_FETCH_ADD, 8, 0);
		post_op(r, side, WR_WRITE_IMM, 33, SEND_SOLICITED);
		post_op(r, side, WR_SEND_IMM, 7, SEND_FENCE);
		post_op(r, side, WR_READ, 0, 0);
		post_op(r, side, WR_SEND, 0, 0);
	}
}

/* Post a request that the peer must refuse. The first such request ends the
 * stream. */
static void post_bad(struct run *r, unsigned side, enum vb_wr_op kind,
		     uint32_t len)
{
	uint32_t key = r->p->key[side];

	r->p->key[side] = BAD_KEY;
	r->ops[r->count].bad = true;
	post_op(r, side, kind, len, 0);
	r->p->key[side] = key;
}

static void post_random(struct run *r)
{
	static const enum vb_wr_op kinds[] = { WR_SEND,	     WR_WRITE,
					       WR_READ,	     WR_FETCH_ADD,
					       WR_WRITE_IMM, WR_SEND_IMM };
	unsigned count = 1 + sim_below(&r->rand, OPS);

	r->faulty = sim_maybe(&r->rand, 3000);
	for (unsigned i = 0; i < count; i++) {
		unsigned side = sim_below(&r->rand, SIM_SIDES);
		enum vb_wr_op kind =
			kinds[sim_below(&r->rand, VB_COUNT(kinds))];
		uint32_t len = sim_below(&r->rand,
					 sim_maybe(&r->rand, 5000) ? 40 : SLOT);

		if (r->faulty && i == count / 2)
			post_bad(r, side, kind, len | 1);
		else
			post_op(r, side, kind, len,
				sim_maybe(&r->rand, 1000) ? SEND_FENCE : 0);
	}
}

static void damage(struct run *r, unsigned from, size_t have)
{
	struct pipe_stream *w = &r->p->wire[from];

	if (!r->damages || from != r->from || r->at < w->got ||
	    r->at >= w->got + have)
		return;
	w->bytes[r->at] ^= r->bit;
	r->damages = false;
}

static size_t cut(struct pipe *p, unsigned side, bool sends, size_t have)
{
	struct run *r = p->arg;
	size_t done = sends ? p->wire[side].put : p->wire[!side].got;

	if (!sends)
		damage(r, !side, have);
	if (r->random)
		return sim_maybe(&r->rand, 3000)
			       ? sim_below(&r->rand, 30)
			       : 1 + sim_below(&r->rand, 6000);
	if (r->first > done)
		return r->first - done;
	return r->most;
}

static void check_receive(struct run *r, unsigned side, const struct vb_cqe *e)
{
	const struct op *op = r->sent[!side][r->recv_done[side]];
	uint32_t slot = r->recv_done[side]++;
	const uint8_t *to, *from;

	if (e->status != WC_SUCCESS)
		return;
	from = at_slot(r, !side, SOURCE, op->slot);
	to = op->wqe.op == WR_WRITE_IMM ? at_slot(r, side, TARGET, op->slot)
					: at_slot(r, side, INBOX, slot);
	MUST(e->byte_len == op->wqe.length);
	MUST(memcmp(to, from, op->wqe.length) == 0);
	MUST(e->opcode ==
	     (op->wqe.op == WR_WRITE_IMM ? WC_OP_RECV_WRITE_IMM : WC_OP_RECV));
	MUST((op->wqe.op == WR_SEND) == (e->wc_flags == 0));
	MUST(e->wc_flags == 0 || e->imm == op->wqe.imm);
}

static void check_request(struct run *r, unsigned side, const struct vb_cqe *e)
{
	struct op *op = &r->ops[e->wr_id];

	MUST(e->wr_id < r->count && op->side == side && op->done++ == 0);
	op->status = (enum vb_wc_status)e->status;
	if (e->status != WC_SUCCESS || op->wqe.op != WR_READ)
		return;
	MUST(memcmp(at_slot(r, side, SINK, op->slot),
		    at_slot(r, !side, SOURCE, op->slot), op->wqe.length) == 0);
}

static void poll_all(struct run *r)
{
	struct vb_cqe e;

	for (unsigned side = 0; side < SIM_SIDES; side++) {
		while (sim_poll(r->p->pair.recv_cq[side], &e))
			check_receive(r, side, &e);
		while (sim_poll(r->p->pair.send_cq[side], &e))
			check_request(r, side, &e);
	}
}

/* Check that each byte of the request's target is the old one or the written
 * one. */
static void check_target(const struct run *r, const struct op *op)
{
	const uint8_t *from = at_slot(r, op->side, SOURCE, op->slot);
	const uint8_t *to = at_slot(r, !op->side, TARGET, op->slot);
	bool writes = op->wqe.op == WR_WRITE || op->wqe.op == WR_WRITE_IMM;

	for (uint32_t i = 0; i < SLOT; i++) {
		uint8_t old = byte_of(!op->side, TARGET, op->slot * SLOT + i);

		MUST(to[i] == old ||
		     (writes && i < op->wqe.length && to[i] == from[i]));
	}
}

static void check_all(struct run *r, bool good)
{
	uint64_t sum = 0;

	poll_all(r);
	for (unsigned i = 0; i < r->count; i++) {
		MUST(r->ops[i].done == 1);
		MUST(!good || r->ops[i].status == WC_SUCCESS);
		MUST(!r->ops[i].bad || r->ops[i].status != WC_SUCCESS);
	}
	/* otherwise requests share slots of the memory areas */
	if (r->count <= OPS)
		for (unsigned i = 0; i < r->count; i++)
			check_target(r, &r->ops[i]);
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		MUST(r->recv_done[side] == r->inbox[side]);
		memcpy(&sum, at_slot(r, !side, WORDS, 0), sizeof(sum));
		MUST(sum <= r->atomics[side]);
		MUST(!good || sum == r->atomics[side]);
	}
}

static struct run *begin(const struct vb_mpa_terms *terms, uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->seed = seed;
	r->rand.state = seed;
	r->most = SIZE_MAX;
	r->p = pipe_open(terms);
	r->p->arg = r;
	r->p->cut = cut;
	fill(r);
	return r;
}

static void end(struct run *r)
{
	pipe_close(r->p);
	free(r);
}

/* Both sides lose their connection (@lost), or the peer closes it. */
static void VB_UNCHECKED hang_up(struct run *r, bool lost)
{
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		struct vb_qp *qp = r->p->pair.qp[side];

		vb_mutex_lock(&qp->drive);
		if (lost)
			vb_iw_lost(qp, r->p->sim.now);
		else
			vb_iw_eof(qp, r->p->sim.now);
		vb_mutex_unlock(&qp->drive);
		MUST(lost == false || vb_iw_wants_close(qp));
	}
	pipe_settle(r->p);
}

static const struct vb_mpa_terms manners[] = {
	{ .initiator = true, .crc = true, .ird = 2, .ord = 2, .mss = 160 },
	{ .initiator = true,
	  .crc = true,
	  .ird = 4,
	  .ord = 1,
	  .mss = 1460,
	  .tx_markers = true,
	  .rx_markers = true,
	  .rtr = RTR_SEND },
	{ .initiator = true,
	  .ird = 1,
	  .ord = 4,
	  .mss = 9000,
	  .rx_markers = true,
	  .rtr = RTR_READ },
	{ .initiator = true,
	  .ird = 4,
	  .ord = 4,
	  .mss = 2000,
	  .rtr = RTR_WRITE },
};

/* Returns the length of the longer stream of the usual program. */
static size_t play_usual(const struct vb_mpa_terms *terms, size_t first,
			 size_t most)
{
	struct run *r = begin(terms, 0);
	size_t len;

	r->first = first;
	r->most = most;
	r->at = first;
	post_usual(r);
	pipe_settle(r->p);
	check_all(r, true);
	len = VB_MAX(r->p->wire[0].put, r->p->wire[1].put);
	end(r);
	return len;
}

static void cut_everywhere(const struct vb_mpa_terms *terms)
{
	size_t len = play_usual(terms, 0, SIZE_MAX);

	for (size_t at = 1; at < len; at += seeds_stride())
		play_usual(terms, at, SIZE_MAX);
	for (size_t most = 1; most < 600; most = most * 4 / 3 + 1)
		play_usual(terms, 0, most);
}

static void damage_at(const struct vb_mpa_terms *terms, unsigned from,
		      size_t at)
{
	struct run *r = begin(terms, 0);
	bool reached;

	r->damages = true;
	r->from = from;
	r->at = at;
	r->bit = (uint8_t)(1u << at % 8);
	post_usual(r);
	pipe_settle(r->p);
	reached = !r->damages;
	hang_up(r, false);
	check_all(r, !reached);
	end(r);
}

static void lose_at(const struct vb_mpa_terms *terms, unsigned from, size_t at)
{
	struct run *r = begin(terms, 0);

	r->p->limit[from] = r->at = at;
	post_usual(r);
	pipe_settle(r->p);
	hang_up(r, true);
	check_all(r, false);
	end(r);
}

static void harm_everywhere(const struct vb_mpa_terms *terms)
{
	size_t len = play_usual(terms, 0, SIZE_MAX);

	for (unsigned from = 0; from < SIM_SIDES; from++)
		for (size_t at = 0; at < len; at += seeds_stride()) {
			if (terms->crc)
				damage_at(terms, from, at);
			if (at % LOSE_STEP == 0)
				lose_at(terms, from, at);
		}
}

static void play_random(uint64_t seed)
{
	struct sim_rand pick = { seed };
	struct vb_mpa_terms t = manners[sim_below(&pick, VB_COUNT(manners))];
	struct run *r;

	t.mss = (uint16_t)(150 + sim_below(&pick, 9000));
	r = begin(&t, seed);
	r->random = true;
	post_random(r);
	pipe_settle(r->p);
	/* Let the responder's wait expire. Repeat, since a cut of no bytes
	 * looks like an idle stream. */
	r->p->sim.now += VB_SEC;
	for (unsigned i = 0; i < 20; i++)
		pipe_settle(r->p);
	check_all(r, !r->faulty);
	end(r);
}

static void play_many(uint64_t first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		play_random(first + i);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		play_many(argc > 3 ? strtoull(argv[3], NULL, 0) : 1,
			  (unsigned)atoi(argv[2]));
		return 0;
	}
	if (argc > 1) {
		play_random(strtoull(argv[1], NULL, 0));
		return 0;
	}
	for (unsigned i = 0; i < VB_COUNT(manners); i++) {
		cut_everywhere(&manners[i]);
		harm_everywhere(&manners[i]);
	}
	play_many(1, 1000 / seeds_divisor());
	return 0;
}
