/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: B is stopped, or A is stopped, or the processors are busy. */
#include "near/peer.h"
#include "neighbour_test.h"

/* Values of enum offer_state in near/split_copy.c that mean that B copies a
 * part of the message. */
#define OFFER_TAKEN   2
#define OFFER_AWAITED 8

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

/* Bind a memory window. That needs a connected queue pair, so one is made that
 * is connected to itself. */
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

/* Returns whether B copies a part of a message now, according to the offer of
 * that part in the shared memory (near/split_copy.h). */
static bool b_has_a_part(void)
{
	size_t len = 0;
	const struct vb_lane *lane = (void *)find_lane(&len);
	bool has = false;

	for (unsigned i = 0; i < 2 && lane && len >= sizeof(*lane); i++) {
		uint32_t word = atomic_load(&lane->half[i].offer.word);

		has |= word % 16 == OFFER_TAKEN || word % 16 == OFFER_AWAITED;
	}
	return has;
}

/* Stop B while it copies a part, or after two seconds. */
static void *stop_in_copy(void *arg)
{
	const struct side *a = arg;
	double then = seconds();

	while (!b_has_a_part() && seconds() - then < 2)
		nap(20);
	kill(a->other, SIGSTOP);
	return NULL;
}

/* Another thread than the one that receives stops B, at any point of a copy
 * that A and B share. (The thread that receives would stop B only between two
 * copies.) */
static void stop_while_receiving(struct side *a)
{
	pthread_t stopper;
	int status;

	must(!pthread_create(&stopper, NULL, stop_in_copy, a), "thread");
	while (waitpid(a->other, &status, WUNTRACED | WNOHANG) == 0)
		receive_for(a, 1e-3);
	pthread_join(stopper, NULL);
	receive_for(a, 0.02);
}

/* Move the queue pair that is connected to the stopped B to ERR, and check that
 * all receives come back. True: B was copying a part. */
static bool receives_come_back(void)
{
	struct side a = { 0 };
	struct ibv_wc wc;
	struct loop l;
	unsigned back = 0;
	double then;
	bool hit;

	begin(&a, BYTES, send_on);
	for (unsigned i = 0; i < 8; i++)
		post_recv(&a, a.qp, LONG);
	open_loop(&a, &l);
	meet(&a, 0);
	stop_while_receiving(&a);
	hit = b_has_a_part();
	then = seconds();
	to_err(a.qp);
	expect(seconds() - then < SOON, "ERR took %.2f s", seconds() - then);
	(void)go_round(&a, &l);
	while (back < 8 && rc_wait(a.cq, SOON, &wc))
		back++;
	expect(back == 8, "%u of 8 receives came back", back);
	stays_ours(&a);
	close_loop(&l);
	end(&a);
	return hit;
}

/* B copies a part of a message only if A and B run at the same time, which is
 * rare on a busy machine. So the test repeats until it has stopped B during
 * such a copy, for LONGEST seconds at most. */
#define USUAL	10
#define LONGEST 60

/* Stop B while B copies its part of a message. This is repeated until it has
 * succeeded three times, or until the time is over. */
void receives_of_stopped(void)
{
	double then = seconds();
	unsigned hits = 0, rounds = 0;

	for (; !is_broken && hits < 3 &&
	       seconds() - then < (hits ? USUAL : LONGEST);
	     rounds++)
		hits += receives_come_back();
	expect(hits > 0 || sysconf(_SC_NPROCESSORS_ONLN) == 1,
	       "no part in hand in %u rounds", rounds);
	remark("in hand in %u of %u rounds; ", hits, rounds);
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

static void end_others(const pid_t pids[OTHERS])
{
	for (unsigned i = 0; i < OTHERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* One connection that exchanges messages for @time seconds. */
static void stay_connected(struct side *a, double time)
{
	double then = seconds();
	struct loop l;

	open_loop(a, &l);
	while (seconds() - then < time && !is_broken)
		(void)go_round(a, &l);
	close_loop(&l);
}

/* For some time, make connections one after the other and exchange a few
 * messages on each. Returns the number of connections. */
static unsigned connect_anew(struct side *a, double time)
{
	double then = seconds();
	unsigned count = 0;
	struct loop l;

	for (; seconds() - then < time && !is_broken; count++) {
		open_loop(a, &l);
		for (unsigned i = 0; i < 10 && !is_broken; i++)
			(void)go_round(a, &l);
		close_loop(&l);
	}
	return count;
}

void retries_are_short(void)
{
	const unsigned timeout = options.timeout, retry = options.retry;
	struct side a = { 0 };
	pid_t others[OTHERS];

	options.timeout = 4; /* 66 us */
	options.retry = 1;
	begin(&a, BYTES, idle);
	meet(&a, 0);
	begin_others(others);
	stay_connected(&a, 2);
	options.timeout = 10; /* 4.2 ms */
	options.retry = 3;
	remark("%u connections; ", connect_anew(&a, 3));
	end_others(others);
	end(&a);
	options.timeout = timeout;
	options.retry = retry;
}
