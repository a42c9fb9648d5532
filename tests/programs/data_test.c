/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do all bytes arrive where they should? Two processes write to, read from and
 * send to each other random patterns of awkward sizes and offsets, and compare
 * every byte, also those around the target.
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
 *		   never fenced; no request has an empty list of SGEs
 *
 * In each step both sides post a list of operations at once. Both draw the step
 * from the seed, so each side knows what must arrive, and computes what its
 * memory must contain.
 */
#include "data_test.h"

#define PATIENCE 30.0 /* seconds to wait for one completion */
const struct kind_row kinds[KINDS] = {
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
struct run run = {
	.rc = RC_OPTIONS, .steps = 2000, .limit = 20, .max_len = 16u << 20
};

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

	/* Inline data need no lkey, so the request has lkey 0. */
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

/* Wait for the next completion, by polling or by sleeping on the channel. */
static void next_completion(const struct op *op, bool sleeps, struct ibv_wc *wc)
{
	if (!sleeps) {
		if (!rc_wait(run.cq, PATIENCE, wc))
			fail(op, "no completion came");
		return;
	}
	while (ibv_poll_cq(run.cq, 1, wc) != 1) {
		must(!ibv_req_notify_cq(run.cq, 0), "ibv_req_notify_cq");
		/* A completion may have come before the queue was armed. */
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

/* Wait until WRITEs have arrived. With iWARP a WRITE is complete when it was
 * sent; its bytes have arrived when a READ behind it is answered (RFC 5040
 * s5.5). */
void flush(const struct step *s)
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
	/* iWARP has no RNR NAK, so no message may come before its RECV. */
	late = s->late_receives && !run.by_cm;
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

/* Returns whether to play another step, as the client decides. */
static bool go_on(double start)
{
	uint8_t more = run.number < run.steps && seconds() - start < run.limit;

	if (run.client)
		tcp_send(run.tcp, &more, 1);
	else
		tcp_recv(run.tcp, &more, 1);
	return more;
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
