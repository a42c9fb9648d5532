/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the data right? Two processes write to, read from and send to each other
 * random patterns of awkward sizes and offsets, and compare every byte, those
 * around the target included.
 *
 *	data_test [options]		wait for the other
 *	data_test [options] HOST	go
 *
 *	-d DEVICE  -4 | -6  -m MTU (bytes)  -p PORT
 *	-s SEED    replay: the two sides do the same steps for the same seed
 *	-n STEPS   -t SECONDS   what comes first ends the run
 *	-x BYTES   the largest message
 *	-f	   this side fences nothing
 *	-a CODE    the ACK timeout (ibv_modify_qp's), for slow peers
 *	-R	   connect by librdmacm: an iWARP device
 *	-k	   with -R, at both ends: no more than Linux's siw can do, which
 *		   is WRITE, SEND and READ, of 6 SGEs, a READ's of one and
 *		   never fenced; none of them in a list of none
 *
 * A step is a list of operations, posted at once; some by this side and some
 * by the other. Both sides draw the step from the seed, so each knows what
 * must arrive, and keeps a copy of what its memory must hold.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define AREA	 (20u << 20)
#define MAX_OPS	 16
#define MAX_SGES 32
#define SIW_SGES 6
#define INLINE	 256
#define AROUND	 4096 /* bytes compared before and after a target */
#define PATIENCE 30.0 /* seconds for one completion */

enum kind { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, SWAP, ADD, KINDS };

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	bool receives, atomic;
} kinds[KINDS] = {
	// clang-format off
	[WRITE]     = { "WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
	[WRITE_IMM] = { "WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM,
			IBV_WC_RDMA_WRITE, .receives = true },
	[SEND]      = { "SEND", IBV_WR_SEND, IBV_WC_SEND, .receives = true },
	[SEND_IMM]  = { "SEND_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND,
			.receives = true },
	[READ]      = { "READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
	[SWAP]      = { "CMP_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP,
			IBV_WC_COMP_SWAP, .atomic = true },
	[ADD]       = { "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD,
			IBV_WC_FETCH_ADD, .atomic = true },
	// clang-format on
};

/* Some bytes of an area, in order or not. */
struct pieces {
	unsigned count;
	uint32_t total;
	struct {
		uint32_t at, len;
	} piece[MAX_SGES];
};

struct op {
	enum kind kind;
	bool by_client; /* who posts it */
	bool signaled, fence, inlined;
	uint32_t len;
	struct pieces local;  /* in the initiator's "out" area */
	struct pieces remote; /* in the target's "in" area */
	uint32_t imm;
	uint64_t operand, compare, before;
	uint64_t content; /* seed of the bytes that move */
};

struct step {
	unsigned count;
	bool sleeps;	    /* wait for completions by channel */
	bool late_receives; /* post them when the peer is sending already */
	struct op op[MAX_OPS];
};

/* Memory that a peer or a local operation changes, and what it must hold. */
struct area {
	uint8_t *is, *must_be;
	struct ibv_mr *mr;
};

static struct run {
	struct rc_options rc;
	bool client, never_fenced, by_cm, with_siw;
	uint64_t seed;
	unsigned steps;
	double limit;
	uint32_t max_len;
	struct rc_device device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int tcp;
	struct area in, out;
	uint64_t peer_in;
	uint32_t peer_rkey;
	unsigned number;  /* of the step */
	unsigned unacked; /* channel events */
	uint64_t moved, done[KINDS];
	uint8_t *scratch;
	/* -R */
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *flush;
	uint64_t flushed;
} run = { .rc = RC_OPTIONS, .steps = 2000, .limit = 20, .max_len = 16u << 20 };

static uint32_t pick_len(struct rng *r, uint32_t max)
{
	uint32_t mtu = 128u << run.device.mtu, len;

	switch (rng_below(r, 4)) {
	case 0: /* small */
		len = (uint32_t)rng_below(r, 64);
		break;
	case 1: /* about a whole number of packets */
		len = mtu * (uint32_t)(1 + rng_below(r, 20)) +
		      (uint32_t)rng_below(r, 5) - 2;
		break;
	default: /* any magnitude */
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
	/* An SGE list need not go upward. */
	for (unsigned i = p->count; i > 1; i--) {
		unsigned j = (unsigned)rng_below(r, i);
		uint32_t at = p->piece[j].at, n = p->piece[j].len;

		p->piece[j] = p->piece[i - 1];
		p->piece[i - 1].at = at;
		p->piece[i - 1].len = n;
	}
}

static unsigned most_sges(void)
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
	/* A SEND's target is a list too; of the others, a range. */
	remote_sges = op->kind == SEND || op->kind == SEND_IMM
			      ? 1 + (unsigned)rng_below(r, most_sges())
			      : 1;
	spread(r, op->len, remote_sges, from, room - 8, &op->remote);
	if (kinds[op->kind].atomic)
		op->remote.piece[0].at = (op->remote.piece[0].at + 7) & ~7u;
}

/* Operations of a step use slices of the areas that do not meet. */
static void draw_step(struct step *s)
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

static bool mine(const struct op *op)
{
	return op->by_client == run.client;
}

/* The bytes that op moves, as a stream. */
static const uint8_t *content(const struct op *op)
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

/* Before anything moves: what is to be read or changed is put in place. */
static void prepare(const struct op *op)
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

/* What memory must hold once op is done. */
static void expect(const struct op *op)
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

static void fail(const struct op *op, const char *what)
{
	die("seed %#llx step %u: %s of %u bytes in %u SGEs, by the %s: %s",
	    (unsigned long long)run.seed, run.number, kinds[op->kind].name,
	    op->len, op->local.count, mine(op) ? "this side" : "other side",
	    what);
}

static void compare(const struct op *op, const struct area *a, uint32_t from,
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

static void check(const struct op *op)
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

static int sge_list(const struct area *a, const struct pieces *p, uint32_t lkey,
		    struct ibv_sge *sge)
{
	for (unsigned i = 0; i < p->count; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a->is + p->piece[i].at,
					   p->piece[i].len, lkey };
	return (int)p->count;
}

static void post_receive(const struct op *op, unsigned id)
{
	struct ibv_sge sge[MAX_SGES];
	struct ibv_recv_wr *bad, wr = { .wr_id = 1000 + id, .sg_list = sge };

	if (op->kind != WRITE_IMM)
		wr.num_sge =
			sge_list(&run.in, &op->remote, run.in.mr->lkey, sge);
	if (ibv_post_recv(run.qp, &wr, &bad))
		fail(op, "ibv_post_recv");
}

static void post_send(const struct op *op, unsigned id, bool last)
{
	struct ibv_sge sge[MAX_SGES];
	uint64_t remote =
		run.peer_in + (op->remote.count ? op->remote.piece[0].at : 0);
	struct ibv_send_wr *bad, wr = {
		.wr_id = id,
		.sg_list = sge,
		.opcode = kinds[op->kind].opcode,
		.imm_data = htobe32(op->imm),
	};

	/* The key of inline data is not looked at: give none. */
	wr.num_sge = sge_list(&run.out, &op->local,
			      op->inlined ? 0 : run.out.mr->lkey, sge);
	wr.send_flags = (op->signaled || last ? IBV_SEND_SIGNALED : 0) |
			(op->fence && !run.never_fenced ? IBV_SEND_FENCE : 0) |
			(op->inlined ? IBV_SEND_INLINE : 0) |
			IBV_SEND_SOLICITED;
	if (kinds[op->kind].atomic) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = run.peer_rkey;
		wr.wr.atomic.compare_add =
			op->kind == ADD ? op->operand : op->compare;
		wr.wr.atomic.swap = op->operand;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = run.peer_rkey;
	}
	if (ibv_post_send(run.qp, &wr, &bad))
		fail(op, "ibv_post_send");
}

static void await_channel(const struct op *op)
{
	struct pollfd fd = { run.channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *cookie;

	if (poll(&fd, 1, (int)(PATIENCE * 1000)) != 1)
		fail(op, "no completion event came");
	must(!ibv_get_cq_event(run.channel, &cq, &cookie), "ibv_get_cq_event");
	if (++run.unacked == 64) {
		ibv_ack_cq_events(run.cq, run.unacked);
		run.unacked = 0;
	}
}

/* The next completion, by polling or by sleeping on the channel. */
static void next_completion(const struct op *op, bool sleeps, struct ibv_wc *wc)
{
	if (!sleeps) {
		if (!rc_wait(run.cq, PATIENCE, wc))
			fail(op, "no completion came");
		return;
	}
	while (ibv_poll_cq(run.cq, 1, wc) != 1) {
		must(!ibv_req_notify_cq(run.cq, 0), "ibv_req_notify_cq");
		/* One may have come before the arming. */
		if (ibv_poll_cq(run.cq, 1, wc) == 1)
			return;
		await_channel(op);
	}
}

static void check_received(const struct op *op, const struct ibv_wc *wc)
{
	bool imm = op->kind != SEND;

	if (wc->opcode !=
	    (op->kind == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		fail(op, "the receive's opcode");
	if (wc->byte_len != op->len)
		fail(op, "the receive's byte_len");
	if (imm != !!(wc->wc_flags & IBV_WC_WITH_IMM))
		fail(op, "the receive's immediate flag");
	if (imm && be32toh(wc->imm_data) != op->imm)
		fail(op, "the receive's immediate data");
}

static void take(const struct step *s, bool *seen)
{
	const struct op *op = s->op;
	struct ibv_wc wc;
	unsigned id;

	next_completion(op, s->sleeps, &wc);
	id = (unsigned)(wc.wr_id % 1000);
	if (id >= s->count)
		fail(op, "a completion of nothing that was posted");
	op = &s->op[id];
	if (wc.status)
		fail(op, ibv_wc_status_str(wc.status));
	if (seen[id])
		fail(op, "completed twice");
	seen[id] = true;
	if (wc.wr_id >= 1000)
		check_received(op, &wc);
	else if (wc.opcode != kinds[op->kind].sent)
		fail(op, "the completion's opcode");
}

static void post_receives(const struct step *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!mine(&s->op[i]) && kinds[s->op[i].kind].receives)
			post_receive(&s->op[i], i);
}

/* With iWARP a WRITE is complete when it has left; it is there when a READ
 * behind it is answered (RFC 5040 s5.5). */
static void flush(const struct step *s)
{
	struct ibv_sge sge = { (uintptr_t)&run.flushed, 1, run.flush->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 999,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { run.peer_in, run.peer_rkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(run.qp, &wr, &bad))
		fail(s->op, "ibv_post_send of the last READ");
	next_completion(s->op, s->sleeps, &wc);
	if (wc.wr_id != 999 || wc.status)
		fail(s->op, "the last READ");
}

static void do_step(const struct step *s)
{
	bool seen[MAX_OPS] = { false }, late;
	unsigned wanted = 0, last = MAX_OPS;

	for (unsigned i = 0; i < s->count; i++) {
		prepare(&s->op[i]);
		if (mine(&s->op[i]))
			last = i;
	}
	late = s->late_receives && !run.by_cm; /* no RNR */
	if (!late)
		post_receives(s);
	tcp_barrier(run.tcp);
	for (unsigned i = 0; i < s->count; i++) {
		const struct op *op = &s->op[i];

		if (mine(op))
			post_send(op, i, i == last);
		wanted += mine(op) ? op->signaled || i == last
				   : kinds[op->kind].receives;
	}
	if (late) {
		usleep(3000);
		post_receives(s);
	}
	while (wanted--)
		take(s, seen);
	if (run.by_cm)
		flush(s);
	tcp_barrier(run.tcp);
	for (unsigned i = 0; i < s->count; i++)
		expect(&s->op[i]);
	for (unsigned i = 0; i < s->count; i++) {
		check(&s->op[i]);
		run.done[s->op[i].kind]++;
		run.moved += s->op[i].len;
	}
}

static void check_everything(void)
{
	static const struct op whole = { .len = AREA };

	compare(&whole, &run.in, 0, AREA);
	compare(&whole, &run.out, 0, AREA);
}

/* The client says whether there is another step. */
static bool go_on(double start)
{
	uint8_t more = run.number < run.steps && seconds() - start < run.limit;

	if (run.client)
		tcp_send(run.tcp, &more, 1);
	else
		tcp_recv(run.tcp, &more, 1);
	return more;
}

static void make_area(struct area *a)
{
	struct rng r = { run.seed };

	a->is = aligned_alloc(4096, AREA);
	a->must_be = aligned_alloc(4096, AREA);
	must(a->is && a->must_be, "memory");
	rng_fill(&r, a->is, AREA);
	memcpy(a->must_be, a->is, AREA);
	a->mr = ibv_reg_mr(run.device.pd, a->is, AREA, RC_ALL_ACCESS);
	must(a->mr, "ibv_reg_mr");
}

static struct sockaddr_storage cm_address(void)
{
	struct sockaddr_storage a = { .ss_family = AF_INET6 };
	struct addrinfo *to;

	if (run.client) {
		if (getaddrinfo(run.rc.host, NULL, NULL, &to))
			die("no host %s", run.rc.host);
		memcpy(&a, to->ai_addr, to->ai_addrlen);
		freeaddrinfo(to);
	}
	/* The same place in both. */
	((struct sockaddr_in *)&a)->sin_port =
		htons((uint16_t)(run.rc.port + 1));
	return a;
}

static void listen_for_peer(void)
{
	struct sockaddr_storage a = cm_address();

	must(!rdma_create_id(NULL, &run.listener, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_bind_addr(run.listener, (struct sockaddr *)&a),
	     "rdma_bind_addr");
	must(!rdma_listen(run.listener, 1), "rdma_listen");
}

/* The queue pair is ours, and not the id's: it is told its number. */
static void connect_by_cm(void)
{
	struct rdma_conn_param p = { .qp_num = run.qp->qp_num,
				     .responder_resources = 16,
				     .initiator_depth = 16 };
	struct sockaddr_storage a = cm_address();

	must(!rc_to_init(run.qp, RC_ALL_ACCESS), "RESET to INIT");
	if (!run.client) {
		must(!rdma_get_request(run.listener, &run.id),
		     "rdma_get_request");
		must(!rdma_accept(run.id, &p), "rdma_accept");
		return;
	}
	must(!rdma_create_id(NULL, &run.id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(run.id, NULL, (struct sockaddr *)&a, 2000) &&
		     !rdma_resolve_route(run.id, 2000),
	     "rdma_resolve");
	must(!rdma_connect(run.id, &p), "rdma_connect");
}

static void agree(void)
{
	struct hello {
		uint64_t seed, in;
		uint32_t rkey, max_len;
		struct rc_address address;
	} me, peer;
	/* Near the end of the PSNs, which are 24 bits: it is crossed. */
	uint32_t psn =
		~(uint32_t)((run.seed ^ (uint64_t)getpid() * 7919) & 0x3ff) &
		0xffffff;

	if (run.client) {
		tcp_send(run.tcp, &run.seed, sizeof(run.seed));
		tcp_send(run.tcp, &run.max_len, sizeof(run.max_len));
	} else {
		tcp_recv(run.tcp, &run.seed, sizeof(run.seed));
		tcp_recv(run.tcp, &run.max_len, sizeof(run.max_len));
	}
	make_area(&run.in);
	make_area(&run.out);
	me = (struct hello){ .in = (uintptr_t)run.in.is,
			     .rkey = run.in.mr->rkey,
			     .address = rc_address(&run.device, run.qp, psn) };
	tcp_swap(run.tcp, &me, &peer, sizeof(me));
	run.peer_in = peer.in;
	run.peer_rkey = peer.rkey;
	if (peer.address.mtu < run.device.mtu)
		run.device.mtu = peer.address.mtu;
	if (run.by_cm)
		connect_by_cm();
	else
		rc_connect(&run.device, run.qp, &run.rc, psn, &peer.address);
	tcp_barrier(run.tcp);
}

static void set_up(void)
{
	rc_open(&run.device, &run.rc);
	run.channel = ibv_create_comp_channel(run.device.context);
	must(run.channel, "ibv_create_comp_channel");
	run.cq = ibv_create_cq(run.device.context, 4 * MAX_OPS, NULL,
			       run.channel, 0);
	must(run.cq, "ibv_create_cq");
	run.qp = rc_qp(&run.device, run.cq, 2 * MAX_OPS, most_sges(),
		       run.with_siw ? 0 : INLINE);
	run.scratch = malloc(AREA);
	must(run.scratch, "memory");
	if (run.by_cm) {
		run.flush = ibv_reg_mr(run.device.pd, &run.flushed,
				       sizeof(run.flushed), RC_ALL_ACCESS);
		must(run.flush, "ibv_reg_mr");
	}
	if (run.by_cm && !run.client)
		listen_for_peer();
	run.tcp = tcp_meet(&run.rc);
	agree();
}

static void tear_down(void)
{
	ibv_ack_cq_events(run.cq, run.unacked);
	if (run.by_cm) {
		must(!rdma_destroy_id(run.id), "rdma_destroy_id");
		if (run.listener)
			must(!rdma_destroy_id(run.listener), "rdma_destroy_id");
		must(!ibv_dereg_mr(run.flush), "ibv_dereg_mr");
	}
	must(!ibv_destroy_qp(run.qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(run.cq), "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(run.channel), "destroy channel");
	must(!ibv_dereg_mr(run.in.mr), "ibv_dereg_mr");
	must(!ibv_dereg_mr(run.out.mr), "ibv_dereg_mr");
	rc_close(&run.device);
}

static enum ibv_mtu mtu_of(unsigned bytes)
{
	for (unsigned code = IBV_MTU_256; code <= IBV_MTU_4096; code++)
		if (128u << code == bytes)
			return (enum ibv_mtu)code;
	die("no such MTU: %u", bytes);
}

static void read_options(int argc, char **argv)
{
	int c;

	run.seed = (uint64_t)(seconds() * 1e9);
	while ((c = getopt(argc, argv, "a:d:46fkm:p:Rs:n:t:x:")) != -1) {
		switch (c) {
		case 'a':
			run.rc.timeout = (unsigned)atoi(optarg);
			break;
		case 'd':
			run.rc.device = optarg;
			break;
		case '4':
		case '6':
			run.rc.family = c - '0';
			break;
		case 'f':
			run.never_fenced = true;
			break;
		case 'k':
			run.with_siw = true;
			break;
		case 'm':
			run.rc.mtu = mtu_of((unsigned)atoi(optarg));
			break;
		case 'p':
			run.rc.port = atoi(optarg);
			break;
		case 'R':
			run.by_cm = true;
			break;
		case 's':
			run.seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			run.steps = (unsigned)atoi(optarg);
			break;
		case 't':
			run.limit = atof(optarg);
			break;
		case 'x':
			run.max_len = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		default:
			exit(2);
		}
	}
	if (run.max_len > 16u << 20)
		run.max_len = 16u << 20;
	run.rc.host = argv[optind];
	run.client = run.rc.host;
}

int main(int argc, char **argv)
{
	struct step step;
	double start;

	read_options(argc, argv);
	set_up();
	printf("seed %#llx\n", (unsigned long long)run.seed);
	fflush(stdout);
	for (start = seconds(); go_on(start); run.number++) {
		draw_step(&step);
		do_step(&step);
		if (run.number % 64 == 63)
			check_everything();
	}
	check_everything();
	printf("%u steps, %llu bytes:", run.number,
	       (unsigned long long)run.moved);
	for (int k = 0; k < KINDS; k++)
		printf(" %s %llu", kinds[k].name,
		       (unsigned long long)run.done[k]);
	putchar('\n');
	tear_down();
	return 0;
}
