/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes on one host, each talking to each: every process has a queue
 * pair to every other, and in each round sends 8 bytes by all of them and
 * receives from all. Runs with any libibverbs.
 *
 *	all_to_all [-d DEVICE] [-n PROCESSES] [-r ROUNDS]
 *
 * Checks every message, and prints thousands a second over all processes.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/rc.h"

#define MAX 250
/* rounds that a peer can be ahead of this process, and one for this round */
#define AHEAD 2

enum barrier { CREATED, CONNECTED, DONE, BARRIERS };

struct message {
	int from, round;
};

/* The memory that all processes share. */
struct board {
	atomic_int arrived[BARRIERS];
	atomic_bool failed;
	double began, ended;
	/* address of the queue pair of process [of] that leads to process
	 * [towards] */
	struct rc_address addresses[MAX][MAX];
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct board *board;
static struct ibv_cq *cq;
static struct ibv_qp *qps[MAX];
static struct ibv_mr *mr;
static struct message out, in[MAX][AHEAD];
static int count = 100, rounds = 20, me;
static int sent, received[MAX], received_in[AHEAD];

static void meet(enum barrier at)
{
	atomic_fetch_add(&board->arrived[at], 1);
	while (atomic_load(&board->arrived[at]) < count) {
		if (atomic_load(&board->failed))
			die("another process failed");
		usleep(1000);
	}
}

static void post_receive(int peer, int round)
{
	struct message *to = &in[peer][round % AHEAD];
	struct ibv_sge sge = { (uintptr_t)to, sizeof(*to), mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = (uint64_t)peer, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qps[peer], &wr, &bad), "ibv_post_recv");
}

static void post_send(int peer)
{
	struct ibv_sge sge = { (uintptr_t)&out, sizeof(out), 0 };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = IBV_WR_SEND,
		       .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };

	must(!ibv_post_send(qps[peer], &wr, &bad), "ibv_post_send");
}

static void accept_message(int peer)
{
	int round = received[peer]++;
	const struct message *m = &in[peer][round % AHEAD];

	if (m->from != peer || m->round != round)
		die("%d: round %d of %d came as round %d of %d", me, round,
		    peer, m->round, m->from);
	received_in[round % AHEAD]++;
	post_receive(peer, round + AHEAD);
}

/* Poll the completion queue once. If it is empty, this process yields its
 * processor, since the benchmark runs more processes than processors. */
static void take_completions(void)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	must(n >= 0, "ibv_poll_cq");
	if (n == 0)
		sched_yield();
	for (int i = 0; i < n; i++) {
		if (wc[i].status)
			die("%d: %s", me, ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode & IBV_WC_RECV)
			accept_message((int)wc[i].wr_id);
		else
			sent++;
	}
}

static void talk(int round)
{
	double until = seconds() + 60;

	out = (struct message){ me, round };
	sent = 0;
	for (int peer = 0; peer < count; peer++)
		if (peer != me)
			post_send(peer);
	while (sent < count - 1 || received_in[round % AHEAD] < count - 1) {
		take_completions();
		if (seconds() > until)
			die("%d: round %d does not end", me, round);
	}
	received_in[round % AHEAD] = 0;
}

static void set_up(void)
{
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 4 * MAX, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	mr = ibv_reg_mr(device.pd, in, sizeof(in), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	for (int peer = 0; peer < count; peer++) {
		if (peer == me)
			continue;
		qps[peer] = rc_qp(&device, cq, 4, 1, sizeof(out));
		board->addresses[me][peer] = rc_address(&device, qps[peer], 99);
	}
	meet(CREATED);
	for (int peer = 0; peer < count; peer++) {
		if (peer == me)
			continue;
		rc_connect(&device, qps[peer], &options, 99,
			   &board->addresses[peer][me]);
		for (int i = 0; i < AHEAD; i++)
			post_receive(peer, i);
	}
}

static void child(void)
{
	set_up();
	meet(CONNECTED);
	if (me == 0)
		board->began = seconds();
	for (int round = 0; round < rounds; round++)
		talk(round);
	meet(DONE);
	if (me == 0)
		board->ended = seconds();
	exit(0);
}

static bool all_ended_well(void)
{
	int status;

	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			atomic_store(&board->failed, true);
	return !atomic_load(&board->failed);
}

static void tell(void)
{
	double messages = (double)count * (count - 1) * rounds;

	printf("%.3f\n", messages / (board->ended - board->began) / 1e3);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:n:r:")) != -1) {
		if (c == 'd')
			options.device = optarg;
		else if (c == 'n')
			count = atoi(optarg);
		else if (c == 'r')
			rounds = atoi(optarg);
		else
			return 2;
	}
	if (count < 2 || count > MAX || rounds < 1)
		return 2;
	/* timeout code 18 is 1 s, because a process may wait long for a
	 * processor */
	options.timeout = 18;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(board != MAP_FAILED, "mmap");
	for (me = 0; me < count; me++)
		if (fork() == 0)
			child();
	if (!all_ended_well())
		return 1;
	tell();
	return 0;
}
