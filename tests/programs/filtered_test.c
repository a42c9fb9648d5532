/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seccomp filter that comes in the middle of a connection refuses the system
 * calls by which two programs of a host copy, with the errno that its author
 * chose. The connection goes on by other ways.
 *
 *	filtered_test [options]
 *
 * Two processes: the child's requests go to the parent. A line for each errno
 * and for each side that is filtered.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"

#define BYTES (256 * 1024)

struct side {
	struct rc_address address;
	uint64_t at;
	uint32_t rkey;
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;
static struct side peer;

static void refuse_copies(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]),
					    code };

	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	/* The filter must apply to the engine's thread, too. */
	must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		      SECCOMP_FILTER_FLAG_TSYNC, &program),
	     "seccomp");
}

static int begin(void)
{
	struct side mine;
	int wire;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, 8, 1, 0);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	must(memory != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(device.pd, memory, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	wire = tcp_meet(&options);
	mine = (struct side){ rc_address(&device, qp, 1), (uintptr_t)memory,
			      mr->rkey };
	tcp_swap(wire, &mine, &peer, sizeof(mine));
	rc_connect(&device, qp, &options, 1, &peer.address);
	return wire;
}

/* Post a request. Returns its status, or -1 if no completion came for 10 s. */
static int ask(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_send_wr *failed, wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { peer.at, peer.rkey },
	};
	struct ibv_wc wc;

	must(!ibv_post_send(qp, &wr, &failed), "ibv_post_send");
	return rc_wait(cq, 10, &wc) ? (int)wc.status : -1;
}

static void receive(unsigned count)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_recv_wr *failed, wr = { .sg_list = &sge, .num_sge = 1 };

	while (count--)
		must(!ibv_post_recv(qp, &wr, &failed), "ibv_post_recv");
}

static int asking(int error, enum ibv_wr_opcode opcode, bool here)
{
	int wire = begin(), before, after;

	tcp_barrier(wire); /* the peer has posted its RECVs */
	before = ask(opcode);
	tcp_barrier(wire);
	if (here)
		refuse_copies(error);
	tcp_barrier(wire);
	memory[BYTES - 1] = 7;
	after = ask(opcode);
	tcp_barrier(wire);
	return before || after;
}

static int serving(int error, enum ibv_wr_opcode opcode, bool here)
{
	int wire = begin();

	receive(2);
	tcp_barrier(wire);
	tcp_barrier(wire);
	if (!here)
		refuse_copies(error);
	tcp_barrier(wire);
	tcp_barrier(wire);
	return opcode != IBV_WR_RDMA_READ && memory[BYTES - 1] != 7;
}

/* Run each case in new processes, because a filter cannot be removed. */
static void judge(int error, enum ibv_wr_opcode opcode, bool here,
		  const char *what)
{
	int status = 0, served = 0;
	pid_t server, client;

	fflush(stdout);
	server = fork();
	if (server == 0)
		_exit(serving(error, opcode, here));
	client = fork();
	if (client == 0) {
		options.host = "127.0.0.1";
		_exit(asking(error, opcode, here));
	}
	waitpid(client, &status, 0);
	if (status)
		kill(server, SIGKILL);
	waitpid(server, &served, 0);
	printf("%s a filter says %s: %s\n", status || served ? "not ok" : "ok",
	       strerror(error), what);
}

int main(int argc, char **argv)
{
	static const int errors[] = { EPERM, EACCES, ENOSYS };

	rc_read_options(&options, argc, argv);
	for (unsigned i = 0; i < 3; i++) {
		judge(errors[i], IBV_WR_RDMA_WRITE, true, "WRITE from here");
		judge(errors[i], IBV_WR_RDMA_READ, true, "READ to here");
		judge(errors[i], IBV_WR_SEND, false, "SEND to here");
	}
	return 0;
}
