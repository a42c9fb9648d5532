/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC between three programs of one host. The first one, the initiator, sends
 * requests to a target queue pair of the second one. The requests name a shared
 * receive queue of the third one, and write, read and change its memory.
 *
 *	xrc_forward_test [options]
 *
 * Prints "ok" or "not ok" for each thing seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"

#define BYTES 200000
#define PSN   77

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_xrcd *domain;
static char path[] = "/tmp/verbena-xrc-XXXXXX";
static uint8_t memory[BYTES];
static bool failed;

struct place {
	uint32_t srqn, rkey;
	uint64_t address;
};

static void enter_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT
	};

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	attr.fd = open(path, O_RDONLY);
	must(attr.fd >= 0, path);
	domain = ibv_open_xrcd(device.context, &attr);
	must(domain, "ibv_open_xrcd");
}

/* The second program: it owns the target queue pair, and exits when the test is
 * over. */
static void target(int fd)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask =
						    IBV_QP_INIT_ATTR_XRCD };
	struct rc_address mine, peer;
	struct ibv_qp *qp;

	enter_domain();
	init.xrcd = domain;
	qp = ibv_create_qp_ex(device.context, &init);
	must(qp, "a target queue pair");
	mine = rc_address(&device, qp, PSN);
	tcp_swap(fd, &mine, &peer, sizeof(mine));
	rc_connect(&device, qp, &options, PSN, &peer);
	tcp_barrier(fd);
	tcp_barrier(fd);
	exit(0);
}

/* The third program, which owns the SRQ and the memory of its RECVs. */
static void owner(int fd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
	};
	struct place at = { .address = (uintptr_t)memory };
	struct ibv_srq *srq;
	struct ibv_mr *mr;

	enter_domain();
	init.pd = device.pd;
	init.cq = cq;
	init.xrcd = domain;
	srq = ibv_create_srq_ex(device.context, &init);
	must(srq && !ibv_get_srq_num(srq, &at.srqn), "a shared queue");
	mr = ibv_reg_mr(device.pd, memory, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	at.rkey = mr->rkey;
	tcp_send(fd, &at, sizeof(at));
	tcp_barrier(fd);
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	tcp_barrier(fd);
	tcp_barrier(fd);
	exit(0);
}

static int start(void (*run)(int))
{
	int ends[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	fflush(stdout);
	if (fork() == 0) {
		close(ends[0]);
		run(ends[1]);
	}
	close(ends[1]);
	return ends[0];
}

static struct ibv_qp *initiator(int fd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = cq,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = device.pd,
	};
	struct rc_address mine, peer;
	struct ibv_qp *qp = ibv_create_qp_ex(device.context, &init);

	must(qp, "an initiator");
	mine = rc_address(&device, qp, PSN);
	tcp_swap(fd, &mine, &peer, sizeof(mine));
	rc_connect(&device, qp, &options, PSN, &peer);
	tcp_barrier(fd);
	return qp;
}

static enum ibv_wc_status run(struct ibv_qp *qp, const struct place *to,
			      enum ibv_wr_opcode op, struct ibv_mr *mr,
			      uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, len, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = op,
					.send_flags = IBV_SEND_SIGNALED,
					.qp_type.xrc.remote_srqn = to->srqn };
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = to->address;
	wr.wr.rdma.rkey = to->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to->address;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = to->rkey;
	}
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	must(rc_wait(cq, 20, &wc), "a completion");
	return wc.status;
}

static void expect(const char *name, bool truth, enum ibv_wc_status status)
{
	printf("%s %s (%s)\n", truth ? "ok" : "not ok", name,
	       ibv_wc_status_str(status));
	failed |= !truth;
}

static void talk(struct ibv_qp *qp, const struct place *to)
{
	static uint8_t there[BYTES], here[BYTES];
	struct ibv_mr *out = ibv_reg_mr(device.pd, there, BYTES, RC_ALL_ACCESS);
	struct ibv_mr *in = ibv_reg_mr(device.pd, here, BYTES, RC_ALL_ACCESS);
	struct rng rng = { 5 };
	enum ibv_wc_status s;
	uint64_t before, after;

	must(out && in, "ibv_reg_mr");
	rng_fill(&rng, there, BYTES);
	s = run(qp, to, IBV_WR_RDMA_WRITE, out, BYTES);
	expect("xrc far: WRITE", s == IBV_WC_SUCCESS, s);
	s = run(qp, to, IBV_WR_RDMA_READ, in, BYTES);
	expect("xrc far: READ",
	       s == IBV_WC_SUCCESS && !memcmp(here, there, BYTES), s);
	memcpy(&before, there, 8);
	s = run(qp, to, IBV_WR_ATOMIC_FETCH_AND_ADD, in, 8);
	expect("xrc far: atomic",
	       s == IBV_WC_SUCCESS && !memcmp(here, &before, 8), s);
	s = run(qp, to, IBV_WR_RDMA_READ, in, 8);
	memcpy(&after, here, 8);
	expect("xrc far: READ after it",
	       s == IBV_WC_SUCCESS && after == before + 1, s);
	s = run(qp, to, IBV_WR_RDMA_READ, in, 0);
	expect("xrc far: READ of nothing", s == IBV_WC_SUCCESS, s);
}

int main(int argc, char **argv)
{
	enum ibv_wc_status s;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct place at;
	int second, third, fd;

	rc_read_options(&options, argc, argv);
	fd = mkstemp(path);
	must(fd >= 0, path);
	close(fd);
	second = start(target);
	third = start(owner);
	enter_domain();
	tcp_recv(third, &at, sizeof(at));
	qp = initiator(second);
	talk(qp, &at);
	tcp_barrier(third);
	tcp_barrier(third);
	mr = ibv_reg_mr(device.pd, memory, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	s = run(qp, &at, IBV_WR_RDMA_READ, mr, BYTES);
	expect("xrc far: READ by a key that is gone",
	       s == IBV_WC_REM_ACCESS_ERR, s);
	tcp_barrier(second);
	tcp_barrier(third);
	while (wait(NULL) > 0)
		;
	unlink(path);
	return failed;
}
