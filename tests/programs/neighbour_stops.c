/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: B is stopped, or A is stopped, or the processors are busy. */
#include "neighbour_test.h"

void take(struct side *a, enum taken what, struct ibv_mw *window)
{
	switch (what) {
	case TAKE_REGION:
		must(!ibv_dereg_mr(a->mr), "ibv_dereg_mr");
		a->mr = NULL;
		break;
	case TAKE_WINDOW:
		must(!ibv_dealloc_mw(window), "ibv_dealloc_mw");
		break;
	case TO_ERR:
		to_err(a->qp);
		break;
	case TAKE_QP:
		must(!ibv_destroy_qp(a->qp), "ibv_destroy_qp");
		a->qp = NULL;
		break;
	}
}

/* Bind a window, which needs a connected queue pair: it is connected to
 * itself. */
static struct ibv_mw *open_window(struct side *a)
{
	struct ibv_mw *mw = ibv_alloc_mw(a->device.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { a->mr, (uintptr_t)a->memory, LONG,
			       IBV_ACCESS_REMOTE_WRITE },
	};
	struct ibv_qp *qp = rc_qp(&a->device, a->cq, 4, 1, 0);
	const struct rc_address self = rc_address(&a->device, qp, 5);
	struct ibv_wc wc;

	must(mw, "ibv_alloc_mw");
	rc_connect(&a->device, qp, &options, 5, &self);
	must(!ibv_bind_mw(qp, mw, &bind), "ibv_bind_mw");
	must(rc_wait(a->cq, 5, &wc) && !wc.status, "bind");
	ibv_destroy_qp(qp);
	return mw;
}

static void take_from_stopped(enum taken what, unsigned round)
{
	struct side a = { 0 };
	struct ibv_mw *window = NULL;
	double then;

	begin(&a, BYTES, write_on);
	if (what == TAKE_WINDOW)
		window = open_window(&a);
	meet(&a, window ? window->rkey : a.mr->rkey);
	await_fire(a.memory + LONG - 1);
	nap(round * 211);
	stop(&a);
	then = seconds();
	take(&a, what, window);
	expect(seconds() - then < SOON, "it took %.2f s", seconds() - then);
	stays_ours(&a);
	end(&a);
}

void region_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_REGION, i);
}

void window_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_WINDOW, i);
}

void error_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TO_ERR, i);
}

void qp_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_QP, i);
}

void open_loop(struct side *a, struct loop *l)
{
	struct rc_address from, to;

	l->cq = ibv_create_cq(a->device.context, 64, NULL, NULL, 0);
	must(l->cq, "ibv_create_cq");
	l->from = rc_qp(&a->device, l->cq, DEPTH, 1, 0);
	l->to = rc_qp(&a->device, l->cq, DEPTH, 1, 0);
	from = rc_address(&a->device, l->from, 5);
	to = rc_address(&a->device, l->to, 5);
	rc_connect(&a->device, l->from, &options, 5, &to);
	rc_connect(&a->device, l->to, &options, 5, &from);
}

void close_loop(struct loop *l)
{
	ibv_destroy_qp(l->from);
	ibv_destroy_qp(l->to);
	ibv_destroy_cq(l->cq);
}

/* Send a message and wait for its two completions. Returns the duration in
 * seconds. */
double go_round(struct side *a, struct loop *l)
{
	struct ibv_sge sge = { (uintptr_t)a->memory, SMALL, a->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc = { 0 };
	double then;

	post_recv(a, l->to, SMALL);
	then = seconds();
	must(!ibv_post_send(l->from, &wr, &bad), "ibv_post_send");
	for (unsigned i = 0; i < 2 && !is_broken; i++) {
		expect(rc_wait(l->cq, 5, &wc),
		       "a connection of A's own: no completion");
		expect(!wc.status, "a connection of A's own: %s after %.2f s",
		       ibv_wc_status_str(wc.status), seconds() - then);
	}
	return seconds() - then;
}

static void receive_for(struct side *a, double time)
{
	double then = seconds();
	struct ibv_wc wc;

	while (seconds() - then < time)
		if (ibv_poll_cq(a->cq, 1, &wc) > 0)
			post_recv(a, a->qp, LONG);
}

void receives_of_stopped(void)
{
	for (unsigned round = 0; round < 2 * ROUNDS && !is_broken; round++) {
		struct side a = { 0 };
		struct ibv_wc wc;
		struct loop l;
		unsigned back = 0;
		double then;

		begin(&a, BYTES, send_on);
		for (unsigned i = 0; i < 8; i++)
			post_recv(&a, a.qp, LONG);
		open_loop(&a, &l);
		meet(&a, 0);
		receive_for(&a, 0.02 + round * 37e-6);
		stop(&a);
		receive_for(&a, 0.02);
		then = seconds();
		to_err(a.qp);
		expect(seconds() - then < SOON, "ERR took %.2f s",
		       seconds() - then);
		(void)go_round(&a, &l);
		while (back < 8 && rc_wait(a.cq, SOON, &wc))
			back++;
		expect(back == 8, "%u of 8 receives came back", back);
		stays_ours(&a);
		close_loop(&l);
		end(&a);
	}
}

/*
 * One queue pair has a long queue while small messages come back on it: other
 * queue pairs must still have their turn.
 */

static void chat(struct side *b)
{
	struct ibv_wc wc;

	while (!post(b, IBV_WR_SEND, SMALL) && rc_wait(b->cq, 100, &wc) &&
	       !wc.status)
		nap(2000);
	pause();
}

struct side *busy;
static volatile bool is_over;

static void *write_much(void *arg)
{
	struct ibv_wc wc;

	while (!is_over && !post(busy, IBV_WR_RDMA_WRITE, HOARD))
		while (!is_over)
			if (ibv_poll_cq(busy->cq, 1, &wc) <= 0)
				nap(200);
			else if (wc.opcode == IBV_WC_RDMA_WRITE)
				break;
	return NULL;
}

void turns_beside_much(void)
{
	double then, sum = 0, worst = 0;
	struct side a = { 0 };
	pthread_t writer;
	unsigned rounds = 0;
	struct loop l;

	begin(&a, HOARD, chat);
	ibv_destroy_qp(a.qp);
	a.qp = open_qp(&a, 2048);
	for (unsigned i = 0; i < 2000; i++)
		post_recv(&a, a.qp, SMALL);
	open_loop(&a, &l);
	meet(&a, 0);
	busy = &a;
	is_over = false;
	must(!pthread_create(&writer, NULL, write_much, NULL), "thread");
	for (then = seconds(); seconds() - then < 3 && !is_broken; nap(500)) {
		double took = go_round(&a, &l);

		sum += took;
		worst = took > worst ? took : worst;
		rounds++;
	}
	is_over = true;
	pthread_join(writer, NULL);
	/* On a quiet machine: 2 ms in the mean, 50 ms at worst. */
	expect(worst < 1 && rounds > 100,
	       "%u round trips, %.1f ms in the mean, %.0f ms at worst", rounds,
	       1e3 * sum / rounds, 1e3 * worst);
	remark("%u round trips, %.2f ms in the mean, %.0f ms at worst; ",
	       rounds, 1e3 * sum / rounds, 1e3 * worst);
	close_loop(&l);
	end(&a);
}

/* A itself is stopped for longer than all its retries last. */

static void receive_on(struct side *b)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < DEPTH; i++)
		post_recv(b, b->qp, SENDS);
	tcp_barrier(b->tcp);
	while (rc_wait(b->cq, 100, &wc) && !wc.status)
		post_recv(b, b->qp, SENDS);
	pause();
}

static pid_t stop_us(unsigned times)
{
	pid_t us = getpid(), stopper = fork();

	must(stopper >= 0, "fork");
	if (stopper)
		return stopper;
	for (; times; times--) {
		nap(150000 + times * 777);
		kill(us, SIGSTOP);
		nap(3000000);
		kill(us, SIGCONT);
	}
	_exit(0);
}

void we_are_stopped(void)
{
	struct side a = { 0 };
	unsigned under_way = 0;
	struct ibv_wc wc;
	pid_t stopper;

	begin(&a, BYTES, receive_on);
	meet(&a, 0);
	tcp_barrier(a.tcp);
	stopper = stop_us(2);
	while (!is_broken && waitpid(stopper, NULL, WNOHANG) == 0) {
		for (; under_way < 8; under_way++)
			expect(!post(&a, IBV_WR_SEND, SENDS), "post");
		expect(rc_wait(a.cq, 5, &wc), "no completion");
		expect(is_broken || !wc.status, "%s",
		       ibv_wc_status_str(wc.status));
		under_way--;
	}
	kill(stopper, SIGKILL);
	waitpid(stopper, NULL, 0);
	end(&a);
}

/*
 * Other threads use the processors all the time, and the retries of A's own
 * connection end before A gets a processor.
 */

#define OTHERS 16

static void begin_others(pid_t pids[OTHERS])
{
	for (unsigned i = 0; i < OTHERS; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "fork");
		while (pids[i] == 0)
			if (getppid() == 1)
				_exit(0);
	}
}

static void idle(struct side *b)
{
	pause();
}

void retries_are_short(void)
{
	const unsigned timeout = options.timeout, retry = options.retry;
	struct side a = { 0 };
	pid_t others[OTHERS];
	struct loop l;
	double then;

	options.timeout = 4; /* 66 us */
	options.retry = 1;
	begin(&a, BYTES, idle);
	meet(&a, 0);
	open_loop(&a, &l);
	begin_others(others);
	for (then = seconds(); seconds() - then < 4 && !is_broken;)
		(void)go_round(&a, &l);
	for (unsigned i = 0; i < OTHERS; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	close_loop(&l);
	end(&a);
	options.timeout = timeout;
	options.retry = retry;
}
