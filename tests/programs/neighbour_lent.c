/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: A copies to or from memory of B whose pages come late (userfaultfd),
 * and B is stopped before it supplies them. One thread of A waits in the
 * kernel; A's other connections, keys and queue pairs go on. */
#include "neighbour_test.h"

#include <dirent.h>
#include <sys/syscall.h>

#define TIMES	   20
#define VAIN_POLLS 100
/* Seconds within which a verb returns on a machine that is full of other work,
 * although it first waits for another thread in many short naps. */
#define AT_LAST 10

static enum ibv_wr_opcode lent_op;
/* true: B's requests use packets, while A's requests use lanes. */
static bool by_packets;

/* B sends a message, which A must receive on the queue pair whose request
 * waits. */
static void send_small(struct side *b)
{
	struct ibv_mr *late = b->mr;
	uint8_t *at = b->memory;

	b->memory = malloc(SMALL);
	must(b->memory, "malloc");
	b->mr = ibv_reg_mr(b->device.pd, b->memory, SMALL, 0);
	must(b->mr && !post(b, IBV_WR_SEND, SMALL), "small SEND");
	b->memory = at;
	b->mr = late;
}

/* B posts a SEND, and its pages become late again while the SEND is on the
 * lane. A has no receive for it yet. */
static void send_from(struct side *b, struct late *l)
{
	memset(l->at, 1, LATE);
	must(!post(b, IBV_WR_SEND, LATE), "SEND");
}

/* B reads memory of A's that B can reach only by packets; from then on B's
 * queue pair uses packets. */
static void leave_lanes(struct side *b)
{
	const struct hello before = b->peer;
	struct ibv_wc wc = { 0 };

	tcp_recv(b->tcp, &b->peer, sizeof(b->peer));
	must(!post(b, IBV_WR_RDMA_READ, SMALL) && rc_wait(b->cq, 30, &wc) &&
		     !wc.status,
	     "READ by packets");
	b->peer = before;
}

static struct ibv_mr *let_leave_lanes(struct side *a)
{
	void *at = find_unreached();
	struct hello told = { .address = (uintptr_t)at };
	struct ibv_mr *mr =
		ibv_reg_mr(a->device.pd, at, SMALL, IBV_ACCESS_REMOTE_READ);

	must(mr, "memory for packets only");
	told.rkey = mr->rkey;
	tcp_send(a->tcp, &told, sizeof(told));
	return mr;
}

static void lend_late(struct side *b)
{
	struct late l = { 0 };
	struct hello told = { 0 };
	struct ibv_wc wc;

	/* This request makes sure that later ones go near, without packets. */
	must(!post(b, IBV_WR_RDMA_WRITE, SMALL) && rc_wait(b->cq, 30, &wc),
	     "first");
	if (by_packets)
		leave_lanes(b);
	map_late(&l);
	b->memory = l.at;
	b->mr = ibv_reg_mr(b->device.pd, l.at, LATE, RC_ALL_ACCESS);
	must(b->mr, "ibv_reg_mr");
	if (lent_op == IBV_WR_SEND)
		send_from(b, &l);
	else
		l.when_asked = send_small;
	if (open_late(&l, b)) {
		told.address = (uintptr_t)l.at;
		told.rkey = b->mr->rkey;
	}
	tcp_send(b->tcp, &told, sizeof(told));
	pause();
}

/* The thread of A whose request waits for a page of B. */
struct waiter {
	struct side *a;
	int status;
};

static void *wait_for_page(void *arg)
{
	struct waiter *w = arg;
	struct ibv_wc wc = { 0 };

	w->status = -1;
	if (lent_op == IBV_WR_SEND)
		post_recv(w->a, w->a->qp, LATE);
	else
		must(!post(w->a, lent_op, LATE), "post");
	while (rc_wait(w->a->cq, 60, &wc))
		if (wc.byte_len == LATE || wc.opcode == IBV_WC_RDMA_WRITE ||
		    wc.status) {
			w->status = wc.status;
			break;
		}
	return NULL;
}

static void expect_soon(double *then, const char *what)
{
	expect(seconds() - *then < AT_LAST, "%s took %.2f s", what,
	       seconds() - *then);
	*then = seconds();
}

/* While B is stopped and a thread of A waits for B's page, A's other
 * connections go on. */
static void others_go_on(struct side *a, struct loop *second,
			 struct loop *third)
{
	uint8_t unrelated[SMALL];
	struct ibv_mr *mr;
	struct ibv_wc wc;
	double then;

	for (unsigned i = 0; i < TIMES && !is_broken; i++)
		(void)go_round(a, second);
	then = seconds();
	for (unsigned i = 0; i < VAIN_POLLS; i++, nap(1000))
		must(!ibv_poll_cq(second->cq, 1, &wc), "a poll in vain");
	expect_soon(&then, "polling in vain");
	to_err(third->from);
	expect_soon(&then, "ERR of another queue pair");
	close_loop(third);
	expect_soon(&then, "ibv_destroy_qp of another queue pair");
	mr = ibv_reg_mr(a->device.pd, unrelated, SMALL, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	expect_soon(&then, "ibv_dereg_mr of other memory");
}

static void borrow_late(struct side *a, struct loop *second, struct loop *third)
{
	struct waiter w = { .a = a };
	pthread_t thread;
	uint8_t go;

	must(!pthread_create(&thread, NULL, wait_for_page, &w), "thread");
	tcp_recv(a->tcp, &go, 1); /* wait until A waits for B's page */
	nap(20000);
	stop(a);
	others_go_on(a, second, third);
	if (is_broken) {
		kill(a->other, SIGKILL);
	} else {
		kill(a->other, SIGCONT);
		tcp_send(a->tcp, &go, 1);
	}
	pthread_join(thread, NULL);
	expect(w.status == IBV_WC_SUCCESS, "the request that waited: %s",
	       w.status < 0 ? "no completion"
			    : ibv_wc_status_str((enum ibv_wc_status)w.status));
}

static void play_lent(enum ibv_wr_opcode op)
{
	struct ibv_mr *unreached = NULL;
	struct loop second, third;
	struct side a = { 0 };
	struct ibv_wc wc;

	lent_op = op;
	begin(&a, BYTES, lend_late);
	open_loop(&a, &second);
	open_loop(&a, &third);
	if (op != IBV_WR_SEND)
		post_recv(&a, a.qp, SMALL);
	meet(&a, a.mr->rkey);
	must(!post(&a, IBV_WR_RDMA_READ, SMALL) && rc_wait(a.cq, 30, &wc),
	     "first");
	if (by_packets)
		unreached = let_leave_lanes(&a);
	tcp_recv(a.tcp, &a.peer, sizeof(a.peer));
	if (a.peer.rkey) {
		borrow_late(&a, &second, &third);
	} else {
		skip("userfaultfd is not permitted");
		close_loop(&third);
	}
	close_loop(&second);
	if (unreached)
		must(!ibv_dereg_mr(unreached), "ibv_dereg_mr");
	end(&a);
}

/*
 * If B's pages are late before B posts its SEND, B itself waits for them, and A
 * does not.
 */

static void send_late(struct side *b)
{
	struct late l = { 0 };
	struct ibv_wc wc;
	uint8_t allowed;

	must(!post(b, IBV_WR_RDMA_WRITE, SMALL) && rc_wait(b->cq, 30, &wc),
	     "first");
	map_late(&l);
	b->memory = l.at;
	b->mr = ibv_reg_mr(b->device.pd, l.at, LATE, RC_ALL_ACCESS);
	must(b->mr, "ibv_reg_mr");
	allowed = open_late(&l, b);
	tcp_send(b->tcp, &allowed, 1);
	if (allowed)
		must(!post(b, IBV_WR_SEND, LATE), "SEND");
	pause();
}

/* Returns how many threads of this process are inside a copy to or from another
 * process. */
static unsigned count_copies(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned count = 0;

	must(tasks, "/proc/self/task");
	while ((e = readdir(tasks))) {
		char path[300];
		long number = -1;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall",
			 e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%ld", &number) == 1)
			count += number == SYS_process_vm_readv;
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return count;
}

static void receive_late(struct side *a, struct loop *second)
{
	struct ibv_wc wc = { 0 };
	uint8_t go;

	/* wait until a thread of A waits for B's page */
	tcp_recv(a->tcp, &go, 1);
	nap(20000);
	stop(a);
	expect(count_copies() == 0, "A waits for B's page");
	for (unsigned i = 0; i < TIMES && !is_broken; i++)
		(void)go_round(a, second);
	kill(a->other, is_broken ? SIGKILL : SIGCONT);
	tcp_send(a->tcp, &go, 1);
	if (!is_broken)
		expect(rc_wait(a->cq, 30, &wc) && !wc.status &&
			       wc.byte_len == LATE,
		       "the SEND: %s", ibv_wc_status_str(wc.status));
}

void sender_waits_for_its_memory(void)
{
	struct side a = { 0 };
	struct loop second;
	uint8_t allowed;

	begin(&a, BYTES, send_late);
	open_loop(&a, &second);
	post_recv(&a, a.qp, LATE);
	meet(&a, a.mr->rkey);
	tcp_recv(a.tcp, &allowed, 1);
	if (allowed)
		receive_late(&a, &second);
	else
		skip("userfaultfd is not permitted");
	close_loop(&second);
	end(&a);
}

void write_to_lent_memory(void)
{
	play_lent(IBV_WR_RDMA_WRITE);
}

void packets_beside_lent_memory(void)
{
	by_packets = true;
	play_lent(IBV_WR_RDMA_WRITE);
	by_packets = false;
}

void read_from_lent_memory(void)
{
	play_lent(IBV_WR_RDMA_READ);
}

void send_from_lent_memory(void)
{
	play_lent(IBV_WR_SEND);
}
