/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the middle of a connection between two programs of a host, the kernel
 * begins to refuse the system calls by which they copy (process_vm_readv and
 * process_vm_writev). The connection must go on by packets, and a new
 * connection must work, too.
 *
 *	denied_test [options]		a seccomp filter; PR_SET_DUMPABLE
 *	denied_test [options] yama	Yama's scope: set for the whole machine
 *
 * Two processes without capabilities: the child's requests go to the parent.
 * Prints a line for each cause and kind of request.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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

static void filter_copies(int error)
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

static void become_undumpable(int unused)
{
	must(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE");
}

/* Socket pair to a process that has kept its capabilities. That process
 * receives a value, writes it to Yama's ptrace_scope, and answers. */
static int yama[2];

static void set_scope(int scope)
{
	char byte = (char)('0' + scope);

	must(write(yama[0], &byte, 1) == 1 && read(yama[0], &byte, 1) == 1,
	     "the process that sets Yama's scope");
}

static void set_scopes(void)
{
	char byte;

	while (read(yama[1], &byte, 1) == 1) {
		int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_WRONLY);

		must(write(fd, &byte, 1) == 1, "ptrace_scope");
		close(fd);
		must(write(yama[1], &byte, 1) == 1, "answer");
	}
	_exit(0);
}

/* One way to make the kernel refuse the copies between the two processes. */
struct cause {
	const char *name;
	void (*arise)(int value);
	int value;
	/* true: @arise runs in the process that copies; false: it runs in the
	 * process that owns the memory */
	bool in_copier;
};

static const struct cause causes[] = {
	{ "a filter says EPERM", filter_copies, EPERM, true },
	{ "a filter says EACCES", filter_copies, EACCES, true },
	{ "a filter says ENOSYS", filter_copies, ENOSYS, true },
	{ "PR_SET_DUMPABLE is 0", become_undumpable, 0, false },
	{ "Yama's scope is 1", set_scope, 1, true },
	{ "Yama's scope is 2", set_scope, 2, true },
};
/* so many of the first causes work without the right to set Yama's scope */
#define CAUSES_ANYWHERE 4

/* Drop all capabilities, since the kernel always lets a process with them
 * copy. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { { 0 } };

	must(!syscall(SYS_capset, &head, none), "capset");
}

static void connect_qp(int wire)
{
	struct side mine;

	qp = rc_qp(&device, cq, 8, 1, 0);
	mine = (struct side){ rc_address(&device, qp, 1), (uintptr_t)memory,
			      mr->rkey };
	tcp_swap(wire, &mine, &peer, sizeof(mine));
	rc_connect(&device, qp, &options, 1, &peer.address);
}

static int begin(void)
{
	int wire;

	drop_capabilities();
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	must(memory != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(device.pd, memory, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	wire = tcp_meet(&options);
	connect_qp(wire);
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

/* The number of requests: before the denial, after it, and on a connection that
 * is made after it. */
#define REQUESTS 3

static bool arises_at_client(const struct cause *c, enum ibv_wr_opcode opcode)
{
	return c->in_copier == (opcode != IBV_WR_SEND);
}

static int asking(const struct cause *c, enum ibv_wr_opcode opcode)
{
	int wire = begin(), failures = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		if (i == 2)
			connect_qp(wire);
		tcp_barrier(wire); /* the peer has posted its RECV */
		memory[BYTES - 1] = (uint8_t)(7 + i);
		failures += ask(opcode) != 0;
		tcp_barrier(wire);
		if (i == 0 && arises_at_client(c, opcode))
			c->arise(c->value);
		tcp_barrier(wire);
	}
	return failures;
}

static int serving(const struct cause *c, enum ibv_wr_opcode opcode)
{
	int wire = begin(), failures = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		if (i == 2)
			connect_qp(wire);
		receive(1);
		tcp_barrier(wire);
		tcp_barrier(wire);
		failures += opcode != IBV_WR_RDMA_READ &&
			    memory[BYTES - 1] != 7 + i;
		if (i == 0 && !arises_at_client(c, opcode))
			c->arise(c->value);
		tcp_barrier(wire);
	}
	return failures;
}

/* Run each case in new processes, because a filter cannot be removed. */
static void judge(const struct cause *c, enum ibv_wr_opcode opcode,
		  const char *what)
{
	int status = 0, served = 0;
	pid_t server, client;

	fflush(stdout);
	server = fork();
	if (server == 0)
		_exit(serving(c, opcode));
	client = fork();
	if (client == 0) {
		options.host = "127.0.0.1";
		_exit(asking(c, opcode));
	}
	waitpid(client, &status, 0);
	if (status)
		kill(server, SIGKILL);
	waitpid(server, &served, 0);
	printf("%s denied: %s: %s\n", status || served ? "not ok" : "ok",
	       c->name, what);
}

static void judge_all(const struct cause *c)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *name;
	} kinds[] = {
		{ IBV_WR_RDMA_WRITE, "WRITE" },
		{ IBV_WR_RDMA_READ, "READ" },
		{ IBV_WR_SEND, "SEND" },
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (c->arise == set_scope)
			set_scope(0);
		judge(c, kinds[i].opcode, kinds[i].name);
	}
}

static void judge_yama(void)
{
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, yama), "socketpair");
	if (fork() == 0) {
		close(yama[0]);
		set_scopes();
	}
	close(yama[1]);
	for (unsigned i = CAUSES_ANYWHERE; i < sizeof(causes) / sizeof(*causes);
	     i++) {
		set_scope(0);
		judge_all(&causes[i]);
	}
	set_scope(0);
	close(yama[0]);
	wait(NULL);
}

int main(int argc, char **argv)
{
	const char *word = *rc_read_options(&options, argc, argv);

	if (word && strcmp(word, "yama") == 0) {
		judge_yama();
		return 0;
	}
	for (unsigned i = 0; i < CAUSES_ANYWHERE; i++)
		judge_all(&causes[i]);
	return 0;
}
