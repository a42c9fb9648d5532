/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of two programs that exchange messages of every kind; one of them may
 * change its user in between, as daemons do:
 *
 *	users_test [options] [-m MODE]		one
 *	users_test [options] [-m MODE] HOST	the other
 *
 * Prints "done". Exit status: 0, or 1 for a failure.
 */
#include <errno.h>
#include <grp.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"
#include "wire/ipc.h"

#define NOBODY	 65534
#define ROOM	 (1 << 20)
#define PATIENCE 20

/* The modes: when a program changes its user, and what it does then. */
static const char *const modes[] = {
	"none", /* the program stays the same user */
	/* the program changes its user before it looks for devices */
	"drop-first",
	/* the program changes its user while a device is open */
	"drop-opened",
	/* the program changes its user after the first exchange */
	"drop-connected",
	/* as drop-opened, and the test kills the host's broker */
	"drop-broker",
	/* a child of fork does the work; its parent has a device open */
	"fork",
	/* chroot to an empty directory while a device is open */
	"chroot-opened",
	"close-first", /* the program closes all file descriptors first */
};
static const char *mode = "none";

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static int tcp;

static bool is_mode(const char *name)
{
	return strcmp(mode, name) == 0;
}

static void drop(void)
{
	must(!setgroups(0, NULL), "setgroups");
	must(!setresgid(NOBODY, NOBODY, NOBODY), "setresgid");
	must(!setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
}

/* Returns the process id of the host's broker, as the broker reports. */
static pid_t broker(void)
{
	struct vb_ipc m = { .kind = IPC_STATUS, .version = VB_IPC_VERSION };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint8_t bytes[VB_IPC_BYTES];
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);

	must(!connect(fd, (struct sockaddr *)&a, len), "connect");
	vb_ipc_put(bytes, &m);
	must(send(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
		     recv(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
		     vb_ipc_get(bytes, sizeof(bytes), &m),
	     "the broker's status");
	close(fd);
	return (pid_t)m.pid;
}

/* Socket to a process that has kept its privileges. It kills the broker for
 * this process, which may have lost the right to do so. */
static int killer = -1;

static void hire_killer(void)
{
	pid_t victim = broker();
	int ends[2];
	char byte;

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
	     "socketpair");
	if (fork() == 0) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 1 && victim > 1 &&
		    kill(victim, SIGKILL) == 0)
			(void)!write(ends[0], "", 1);
		_exit(0);
	}
	close(ends[0]);
	killer = ends[1];
}

static void kill_broker(void)
{
	char byte;

	must(write(killer, "", 1) == 1 && read(killer, &byte, 1) == 1,
	     "the broker is killed");
}

static void lock_up(void)
{
	char empty[] = "/tmp/users_test.XXXXXX";

	must(mkdtemp(empty), "mkdtemp");
	must(!chdir(empty) && !rmdir(empty) && !chroot("."), "chroot");
}

/* Let a child continue. The parent has a device open and ends with the child's
 * status. */
static void let_child(void)
{
	struct rc_device parents;
	int status;
	pid_t pid;

	rc_open(&parents, &options);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0)
		return;
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	rc_close(&parents);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A reliable connection: set up over TCP, or by the connection manager. */

struct line {
	/* the connection's rdma_cm id; NULL: connected over TCP */
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	/* the channel for events of @recv_cq */
	struct ibv_comp_channel *channel;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	/* Three parts: memory to send, to receive, and for the peer's
	 * WRITEs. */
	uint8_t *memory;
	struct side {
		uint64_t addr;
		uint64_t key;
	} theirs;
};

static void show_memory(struct line *l)
{
	struct side mine;

	l->memory = calloc(3, ROOM);
	must(l->memory, "calloc");
	l->mr = ibv_reg_mr(l->pd, l->memory, (size_t)3 * ROOM, RC_ALL_ACCESS);
	must(l->mr, "ibv_reg_mr");
	mine = (struct side){ (uintptr_t)l->memory, l->mr->rkey };
	tcp_swap(tcp, &mine, &l->theirs, sizeof(mine));
}

static void agree(struct line *l)
{
	struct rc_address me, peer;

	*l = (struct line){ .pd = device.pd };
	l->channel = ibv_create_comp_channel(device.context);
	must(l->channel, "ibv_create_comp_channel");
	l->send_cq = ibv_create_cq(device.context, 16, NULL, l->channel, 0);
	must(l->send_cq, "ibv_create_cq");
	l->recv_cq = l->send_cq;
	l->qp = rc_qp(&device, l->send_cq, 8, 1, 0);
	me = rc_address(&device, l->qp, 99);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	rc_connect(&device, l->qp, &options, 99, &peer);
	show_memory(l);
}

static struct rdma_cm_id *take_call(struct rdma_addrinfo *at,
				    struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *listener, *id;

	must(!rdma_create_ep(&listener, at, NULL, attr), "rdma_create_ep");
	must(!rdma_listen(listener, 4), "rdma_listen");
	tcp_barrier(tcp);
	must(!rdma_get_request(listener, &id), "rdma_get_request");
	must(!rdma_accept(id, NULL), "rdma_accept");
	rdma_destroy_ep(listener);
	return id;
}

static struct rdma_cm_id *call(struct rdma_addrinfo *at,
			       struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;

	tcp_barrier(tcp);
	must(!rdma_create_ep(&id, at, NULL, attr), "rdma_create_ep");
	must(!rdma_connect(id, NULL), "rdma_connect");
	return id;
}

static void meet(struct line *l)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *at;
	struct ibv_qp_init_attr attr = { .cap = { 8, 8, 1, 1, 0 } };
	struct rdma_cm_id *id;
	char service[16];

	snprintf(service, sizeof(service), "%d", options.port + 1);
	hints.ai_flags = options.host ? 0 : RAI_PASSIVE;
	must(!rdma_getaddrinfo(options.host, service, &hints, &at),
	     "rdma_getaddrinfo");
	id = options.host ? call(at, &attr) : take_call(at, &attr);
	rdma_freeaddrinfo(at);
	*l = (struct line){ .id = id,
			    .pd = id->pd,
			    .send_cq = id->send_cq,
			    .recv_cq = id->recv_cq,
			    .channel = id->recv_cq_channel,
			    .qp = id->qp };
	show_memory(l);
}

static bool is_rnic(void)
{
	return device.context->device->transport_type == IBV_TRANSPORT_IWARP;
}

static void begin_line(struct line *l)
{
	if (is_rnic())
		meet(l);
	else
		agree(l);
}

static void end_line(struct line *l)
{
	tcp_barrier(tcp);
	must(!ibv_dereg_mr(l->mr), "ibv_dereg_mr");
	free(l->memory);
	if (l->id) {
		/* fails if the peer has disconnected first */
		(void)rdma_disconnect(l->id);
		rdma_destroy_ep(l->id);
		return;
	}
	must(!ibv_destroy_qp(l->qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(l->send_cq), "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(l->channel), "ibv_destroy_comp_channel");
}

static void take(struct line *l, const char *what)
{
	struct ibv_wc wc;

	if (!rc_wait(l->send_cq, PATIENCE, &wc))
		die("%s: no completion", what);
	if (wc.status)
		die("%s: %s", what, ibv_wc_status_str(wc.status));
}

/* Sleep until the channel has an event, as a daemon does. */
static void sleep_for(struct line *l, const char *what)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	alarm(PATIENCE);
	must(!ibv_get_cq_event(l->channel, &cq, &context), "ibv_get_cq_event");
	alarm(0);
	ibv_ack_cq_events(cq, 1);
	must(ibv_poll_cq(cq, 1, &wc) == 1, what);
	if (wc.status)
		die("%s: %s", what, ibv_wc_status_str(wc.status));
}

static void post(struct line *l, enum ibv_wr_opcode opcode, unsigned length)
{
	struct ibv_sge sge = { (uintptr_t)l->memory, length, l->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = opcode,
					.send_flags = IBV_SEND_SIGNALED };

	if (opcode == IBV_WR_RDMA_READ)
		sge.addr += ROOM;
	wr.wr.rdma.remote_addr =
		l->theirs.addr + (opcode == IBV_WR_RDMA_READ ? 0 : 2 * ROOM);
	wr.wr.rdma.rkey = (uint32_t)l->theirs.key;
	must(!ibv_post_send(l->qp, &wr, &bad), "ibv_post_send");
}

static void post_receive(struct line *l)
{
	struct ibv_sge sge = { (uintptr_t)l->memory + ROOM, ROOM, l->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(l->qp, &wr, &bad), "ibv_post_recv");
}

static void compare(const struct line *l, unsigned part, unsigned length,
		    uint8_t value, const char *what)
{
	const uint8_t *at = l->memory + (size_t)part * ROOM;

	for (unsigned i = 0; i < length; i++)
		if (at[i] != value)
			die("%s of %u bytes: byte %u is %u, must be %u", what,
			    length, i, at[i], value);
}

/* The calling side sends, the other sleeps until it receives; both write and
 * read. */
static void exchange(struct line *l, unsigned length)
{
	static uint8_t value;

	memset(l->memory, ++value, length);
	if (options.host) {
		tcp_barrier(tcp);
		post(l, IBV_WR_SEND, length);
		take(l, "SEND");
	} else {
		post_receive(l);
		must(!ibv_req_notify_cq(l->recv_cq, 0), "ibv_req_notify_cq");
		tcp_barrier(tcp);
		sleep_for(l, "receive");
		compare(l, 1, length, value, "SEND");
	}
	post(l, IBV_WR_RDMA_WRITE, length);
	take(l, "WRITE");
	post(l, IBV_WR_RDMA_READ, length);
	take(l, "READ");
	tcp_barrier(tcp);
	compare(l, 2, length, value, "WRITE");
	compare(l, 1, length, value, "READ");
	tcp_barrier(tcp);
}

static void read_options(int argc, char **argv)
{
	bool known = false;
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS "m:")) != -1)
		if (c == 'm')
			mode = optarg;
		else
			rc_read_option(&options, c);
	options.host = argv[optind];
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		known = known || is_mode(modes[i]);
	if (!known)
		die("there is no mode %s", mode);
}

static void exchange_on(struct line *l)
{
	exchange(l, 8);
	exchange(l, 4000);
	exchange(l, 60000);
	exchange(l, ROOM);
}

/* Exchange messages before the change of user, after it on the old connection,
 * on a new one, and by the connection manager. */
static void work(void)
{
	struct line first, second, met, again;

	begin_line(&first);
	exchange_on(&first);
	if (is_mode("drop-connected"))
		drop();
	tcp_barrier(tcp);
	exchange_on(&first);
	begin_line(&second);
	exchange_on(&second);
	meet(&met);
	exchange_on(&met);
	if (killer >= 0)
		kill_broker();
	meet(&again);
	exchange_on(&again);
	end_line(&again);
	end_line(&met);
	end_line(&second);
	end_line(&first);
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	if (is_mode("close-first"))
		must(!syscall(SYS_close_range, 3, ~0u, 0), "close_range");
	if (is_mode("drop-first"))
		drop();
	if (is_mode("fork"))
		let_child();
	rc_open(&device, &options);
	if (is_mode("drop-broker"))
		hire_killer();
	if (is_mode("drop-opened") || is_mode("drop-broker"))
		drop();
	if (is_mode("chroot-opened"))
		lock_up();
	tcp = tcp_meet(&options);
	work();
	rc_close(&device);
	puts("done");
	return 0;
}
