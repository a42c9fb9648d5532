/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that cross the wire. In each case, on new queue pairs, the client
 * sends a request that the server must refuse. The program prints one line for
 * each case: how the request ended, and the request behind it; and at the
 * server, how a receive ended, the state of the queue pair, whether memory
 * changed that must not change, and the asynchronous event. The calling script
 * knows the expected lines.
 *
 *	border_test [-d DEVICE] [-6] [HOST]
 *	border_test ... -g [HOST]	only "gone": waits until the server's
 *					machine is gone, then writes to it
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define BYTES 8192
/* bytes on each side of the region that must not change */
#define BORDER 4096
#define DEPTH  8
#define WAIT   20.0
#define SETTLE 0.3
#define FILL   0xb5

/* What the server does so that the client's request fails. */
enum trick {
	NOTHING,
	/* the access flags of the server's queue pair permit no operation */
	NO_RIGHTS,
	NO_WRITES, /* the server's region permits no remote writes */
	/* the server's RECV is one byte shorter than the message */
	SMALL_RECEIVE,
	STALE_RECEIVE, /* the region of the server's RECV is deregistered */
	LEAVE,	       /* the server's process ends */
};

static const struct one {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t length, key_off;
	/* offset of the remote address from the region's start, in bytes */
	long remote;
	bool receive; /* true: the server posts a RECV */
	enum trick trick;
} cases[] = {
	{ "write_rkey", IBV_WR_RDMA_WRITE, 64, 0x100, 0, true, NOTHING },
	{ "read_rkey", IBV_WR_RDMA_READ, 64, 0x100, 0, true, NOTHING },
	{ "imm_rkey", IBV_WR_RDMA_WRITE_WITH_IMM, 64, 0x100, 0, true, NOTHING },
	{ "atomic_rkey", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0x100, 0, true,
	  NOTHING },
	{ "write_beyond", IBV_WR_RDMA_WRITE, 6000, 0, BYTES - 5999, true,
	  NOTHING },
	{ "read_before", IBV_WR_RDMA_READ, 6000, 0, -1, true, NOTHING },
	{ "write_no_rights", IBV_WR_RDMA_WRITE, 64, 0, 0, true, NO_RIGHTS },
	{ "write_read_only", IBV_WR_RDMA_WRITE, 64, 0, 0, true, NO_WRITES },
	{ "atomic_misaligned", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 4, true,
	  NOTHING },
	{ "send_oversized", IBV_WR_SEND, 6001, 0, 0, true, SMALL_RECEIVE },
	{ "send_stale_receive", IBV_WR_SEND, 64, 0, 0, true, STALE_RECEIVE },
	{ "send_rnr", IBV_WR_SEND, 64, 0, 0, false, NOTHING },
	{ "imm_rnr", IBV_WR_RDMA_WRITE_WITH_IMM, 64, 0, 0, false, NOTHING },
	{ "left", IBV_WR_RDMA_WRITE, 64, 0, 0, false, LEAVE },
};
#define CASES (sizeof(cases) / sizeof(*cases))
static const struct one gone = { "gone", IBV_WR_RDMA_WRITE, 64, 0, 0, false,
				 NOTHING };

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;
static int tcp;

struct hello {
	uint64_t address;
	uint32_t rkey;
	struct rc_address at;
};

struct outcome { /* what the server observed, as words to compare and print */
	char receive[32], state[8], memory[8], event[32];
};

static void make_ends(enum trick trick, struct hello *peer)
{
	unsigned access =
		trick == NO_WRITES ? IBV_ACCESS_LOCAL_WRITE : RC_ALL_ACCESS;
	struct hello me;

	memset(memory, FILL, BYTES + 2 * BORDER);
	cq = ibv_create_cq(device.context, 4 * DEPTH, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, DEPTH, 1, 0);
	mr = ibv_reg_mr(device.pd, memory + BORDER, BYTES, access);
	must(mr, "ibv_reg_mr");
	me = (struct hello){ (uintptr_t)mr->addr, mr->rkey,
			     rc_address(&device, qp, 4711) };
	tcp_swap(tcp, &me, peer, sizeof(me));
	must(!rc_to_init(qp, trick == NO_RIGHTS ? 0 : RC_ALL_ACCESS),
	     "RESET to INIT");
	must(!rc_to_rtr(&device, qp, &peer->at), "INIT to RTR");
	must(!rc_to_rts(qp, &options, 4711), "RTR to RTS");
	tcp_barrier(tcp);
}

static void drop_ends(void)
{
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
}

static void post_receive(const struct one *c)
{
	struct ibv_mr *stale =
		ibv_reg_mr(device.pd, memory, BORDER, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)mr->addr, 6000, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (c->trick == STALE_RECEIVE) {
		stale = ibv_reg_mr(device.pd, memory, BORDER,
				   IBV_ACCESS_LOCAL_WRITE);
		must(stale, "ibv_reg_mr");
		sge = (struct ibv_sge){ (uintptr_t)memory, 64, stale->lkey };
		must(!ibv_dereg_mr(stale), "ibv_dereg_mr");
	}
	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Read all waiting asynchronous events, and store the name of the last one that
 * is not COMM_EST in @name; "none" if there is none. */
static void take_event(char *name, size_t size)
{
	struct ibv_async_event e;

	snprintf(name, size, "none");
	while (!ibv_get_async_event(device.context, &e)) {
		if (e.event_type != IBV_EVENT_COMM_EST)
			snprintf(name, size, "%s",
				 e.event_type == IBV_EVENT_QP_FATAL ? "QP_FATAL"
				 : e.event_type == IBV_EVENT_QP_REQ_ERR
					 ? "QP_REQ_ERR"
				 : e.event_type == IBV_EVENT_QP_ACCESS_ERR
					 ? "QP_ACCESS_ERR"
					 : "another");
		ibv_ack_async_event(&e);
	}
}

static const char *status_name(enum ibv_wc_status s)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	};

	return s < sizeof(names) / sizeof(*names) && names[s] ? names[s]
							      : "another";
}

static const char *state_name(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	must(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state == IBV_QPS_RTS   ? "RTS"
	       : attr.qp_state == IBV_QPS_ERR ? "ERR"
					      : "another";
}

static bool untouched(size_t from, size_t to)
{
	while (from < to && memory[from] == FILL)
		from++;
	return from == to;
}

/* Returns "changed" if the server's memory has changed where the request must
 * not change it, otherwise "intact". A SEND may fill the buffer of the RECV. */
static const char *memory_state(const struct one *c)
{
	bool may_fill = c->opcode == IBV_WR_SEND;

	return untouched(0, BORDER) &&
			       untouched(BORDER + BYTES, BYTES + 2 * BORDER) &&
			       (may_fill || untouched(BORDER, BORDER + BYTES))
		       ? "intact"
		       : "changed";
}

static void refuse(const struct one *c)
{
	struct outcome o = { "none", "", "", "" };
	struct hello peer;
	struct ibv_wc wc;

	make_ends(c->trick, &peer);
	if (c->receive)
		post_receive(c);
	tcp_barrier(tcp);
	if (c->trick == LEAVE)
		_exit(0);
	/* Wait until the client has the completion of its request. */
	tcp_barrier(tcp);
	if (rc_wait(cq, SETTLE, &wc))
		snprintf(o.receive, sizeof(o.receive), "%s",
			 status_name(wc.status));
	snprintf(o.state, sizeof(o.state), "%s", state_name());
	snprintf(o.memory, sizeof(o.memory), "%s", memory_state(c));
	take_event(o.event, sizeof(o.event));
	tcp_send(tcp, &o, sizeof(o));
	drop_ends();
}

/* Post the case's request. False: the library checked and refused it. */
static bool post(const struct one *c, const struct hello *peer)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, c->length, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = c->opcode,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr next = { .wr_id = 2,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_READ,
				    .send_flags = IBV_SEND_SIGNALED,
				    .wr.rdma = { peer->address, peer->rkey } };
	struct ibv_send_wr *bad = NULL;

	wr.wr.rdma.remote_addr = peer->address + (uint64_t)c->remote;
	wr.wr.rdma.rkey = peer->rkey + c->key_off;
	if (c->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->address + (uint64_t)c->remote;
		wr.wr.atomic.rkey = peer->rkey + c->key_off;
		wr.wr.atomic.compare_add = 1;
	}
	wr.next = &next;
	return !ibv_post_send(qp, &wr, &bad);
}

/* Returns the status of request @wr_id. Completions must come in the order of
 * posting; otherwise the printed line says so. */
static const char *await(uint64_t wr_id)
{
	struct ibv_wc wc;

	if (!rc_wait(cq, WAIT, &wc))
		return "none";
	return wc.wr_id == wr_id ? status_name(wc.status) : "out_of_order";
}

/* Wait until the server is ready for the request, or has ended. */
static void await_turn(const struct one *c)
{
	char drop;

	if (c == &gone) {
		printf("go\n");
		fflush(stdout);
		must(read(STDIN_FILENO, &drop, 1) >= 0, "read");
		return;
	}
	tcp_barrier(tcp);
	if (c->trick == LEAVE) {
		must(read(tcp, &drop, 1) <= 0, "the server leaves");
		/* The server's queue pair ends up to 200 ms after its exit. */
		usleep(200000);
	}
}

static void ask(const struct one *c)
{
	struct outcome o = { "none", "none", "none", "none" };
	struct hello peer;
	const char *first;

	make_ends(NOTHING, &peer);
	await_turn(c);
	if (post(c, &peer)) {
		first = await(1);
		printf("%s %s %s", c->name, first, await(2));
	} else {
		printf("%s not_posted none", c->name);
	}
	if (c != &gone && c->trick != LEAVE) {
		tcp_barrier(tcp);
		tcp_recv(tcp, &o, sizeof(o));
	}
	printf(" %s %s %s %s\n", o.receive, o.state, o.memory, o.event);
	fflush(stdout);
	drop_ends();
}

static bool read_options(int argc, char **argv)
{
	bool only_gone = false;
	int c;

	options.retry = 3;
	options.rnr_retry = 2;
	options.timeout = 16;
	while ((c = getopt(argc, argv, "d:6g")) != -1) {
		switch (c) {
		case 'd':
			options.device = optarg;
			break;
		case '6':
			options.family = 6;
			break;
		case 'g':
			only_gone = true;
			break;
		default:
			die("see the head of border_test.c");
		}
	}
	options.host = argv[optind];
	return only_gone;
}

int main(int argc, char **argv)
{
	bool only_gone = read_options(argc, argv);
	struct hello peer;
	int fd;

	memory = calloc(1, BYTES + 2 * BORDER);
	must(memory, "memory");
	rc_open(&device, &options);
	fd = device.context->async_fd;
	must(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), "fcntl");
	tcp = tcp_meet(&options);
	if (only_gone && options.host) {
		ask(&gone);
	} else if (only_gone) {
		make_ends(NOTHING, &peer);
		pause();
	}
	for (unsigned i = 0; !only_gone && i < CASES; i++)
		(options.host ? ask : refuse)(&cases[i]);
	rc_close(&device);
	return 0;
}
