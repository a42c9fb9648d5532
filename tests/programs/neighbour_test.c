/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A neighbour on the same host that stops, lies, or has much to do: what that
 * costs us. Prints a line a case, as the tests' shell scripts do.
 *
 *	neighbour_test [options] [WORD]		cases with WORD in their name
 *
 * We are A; B is forked, and connected to us. Both open the device themselves.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define BYTES	  (8u << 20)
#define LONG	  (4u << 20)
#define SMALL	  64u
#define SENDS	  (64u << 10)
#define HOARD	  (256u << 20) /* what one WRITE of the busy case moves */
#define DEPTH	  16
#define ROUNDS	  6
#define MARK	  0x5a
#define FIRE	  0xc3
#define SOON	  1.5	   /* s: a verb returns within, on any machine */
#define AFTER	  100000   /* us: what B still does shows until then */
#define UNREACHED "[vvar]" /* memory that only its own processor touches */

static struct rc_options options = RC_OPTIONS;
static int port;

struct hello {
	struct rc_address at;
	uint64_t address;
	uint32_t rkey;
};

/* One of the two. */
struct side {
	struct rc_device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t bytes;
	int tcp;
	pid_t other; /* B, in A */
	struct hello peer;
};

static bool is_broken;

/* The first thing that is not so ends the case. */
static void expect(bool truth, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void expect(bool truth, const char *format, ...)
{
	va_list args;

	if (truth || is_broken)
		return;
	is_broken = true;
	printf("    | ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static void nap(unsigned us)
{
	usleep(us);
}

static uint8_t *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

/* Receives may be posted. */
static struct ibv_qp *open_qp(struct side *s, unsigned depth)
{
	struct ibv_qp *qp = rc_qp(&s->device, s->cq, depth, 1, 0);

	must(!rc_to_init(qp, RC_ALL_ACCESS), "INIT");
	return qp;
}

static void open_side(struct side *s, size_t bytes)
{
	rc_open(&s->device, &options);
	s->cq = ibv_create_cq(s->device.context, 256, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->qp = open_qp(s, DEPTH);
	s->bytes = bytes;
	s->memory = map(bytes);
	s->mr = ibv_reg_mr(s->device.pd, s->memory, bytes,
			   RC_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	must(s->mr, "ibv_reg_mr");
}

static void meet(struct side *s, uint32_t key)
{
	const struct hello me = { rc_address(&s->device, s->qp, 77),
				  (uintptr_t)s->memory, key };

	s->tcp = tcp_meet(&options);
	tcp_swap(s->tcp, &me, &s->peer, sizeof(me));
	rc_connect(&s->device, s->qp, &options, 77, &s->peer.at);
	tcp_barrier(s->tcp);
}

/* B does @what until it is killed; A goes on. */
static void begin(struct side *a, size_t bytes, void (*what)(struct side *b))
{
	struct side b = { 0 };

	options.port = port++;
	options.host = NULL;
	fflush(stdout);
	a->other = fork();
	must(a->other >= 0, "fork");
	if (a->other == 0) {
		options.host = "127.0.0.1";
		open_side(&b, bytes);
		meet(&b, b.mr->rkey);
		what(&b);
		_exit(0);
	}
	open_side(a, bytes);
}

static void end(struct side *a)
{
	if (a->tcp)
		close(a->tcp);
	kill(a->other, SIGKILL);
	waitpid(a->other, NULL, 0);
	if (a->qp)
		ibv_destroy_qp(a->qp);
	if (a->mr)
		ibv_dereg_mr(a->mr);
	ibv_destroy_cq(a->cq);
	munmap(a->memory, a->bytes);
	rc_close(&a->device);
}

static int post(struct side *s, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { s->peer.address, s->peer.rkey },
	};

	return ibv_post_send(s->qp, &wr, &bad);
}

static void post_recv(struct side *s, struct ibv_qp *qp, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Until one fails. */
static void repeat(struct side *b, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_wc wc;

	memset(b->memory, FIRE, bytes);
	while (!post(b, op, bytes) && rc_wait(b->cq, 100, &wc) && !wc.status)
		;
	pause();
}

static void write_on(struct side *b)
{
	repeat(b, IBV_WR_RDMA_WRITE, LONG);
}

static void send_on(struct side *b)
{
	repeat(b, IBV_WR_SEND, LONG);
}

static void stop(struct side *a)
{
	int status;

	must(!kill(a->other, SIGSTOP), "kill");
	must(waitpid(a->other, &status, WUNTRACED) == a->other, "waitpid");
}

static void await_fire(const volatile uint8_t *at)
{
	double then = seconds();

	while (*at != FIRE && seconds() - then < 20)
		;
	expect(*at == FIRE, "nothing was written");
}

/* It is ours: nobody writes there any more, whatever B does when it goes on. */
static void stays_ours(struct side *a)
{
	size_t changed = 0;

	memset(a->memory, MARK, LONG);
	kill(a->other, SIGCONT);
	nap(AFTER);
	for (size_t i = 0; i < LONG; i++)
		changed += a->memory[i] != MARK;
	expect(changed == 0, "%zu bytes were written too late", changed);
}

static void to_err(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

/*
 * B is stopped somewhere in a WRITE, or before or behind it; A takes away what
 * that needs.
 */

enum taken { TAKE_REGION, TAKE_WINDOW, TO_ERR, TAKE_QP };

static void take(struct side *a, enum taken what, struct ibv_mw *window)
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

/* A window, which needs a queue pair that is connected: to itself. */
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

static void region_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_REGION, i);
}

static void window_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_WINDOW, i);
}

static void error_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TO_ERR, i);
}

static void qp_of_stopped(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_from_stopped(TAKE_QP, i);
}

/*
 * Long SENDs, which both ends copy. Every receive comes back, though B has one
 * in hand, and connections of A's own go on.
 */

/* Two queue pairs of A's, connected to each other. */
struct loop {
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
};

static void open_loop(struct side *a, struct loop *l)
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

static void close_loop(struct loop *l)
{
	ibv_destroy_qp(l->from);
	ibv_destroy_qp(l->to);
	ibv_destroy_cq(l->cq);
}

/* A message and its two completions. Returns how long that took. */
static double go_round(struct side *a, struct loop *l)
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

static void receives_of_stopped(void)
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
 * Much is queued on one queue pair, and small messages come back on it: others
 * have their turn.
 */

static void chat(struct side *b)
{
	struct ibv_wc wc;

	while (!post(b, IBV_WR_SEND, SMALL) && rc_wait(b->cq, 100, &wc) &&
	       !wc.status)
		nap(2000);
	pause();
}

static struct side *busy;
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

static void turns_beside_much(void)
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
	/* A quiet machine: 2 ms in the mean, 50 ms at worst. */
	expect(worst < 1 && rounds > 100,
	       "%u round trips, %.1f ms in the mean, %.0f ms at worst", rounds,
	       1e3 * sum / rounds, 1e3 * worst);
	printf("    | %u round trips, %.2f ms in the mean, %.0f ms at worst\n",
	       rounds, 1e3 * sum / rounds, 1e3 * worst);
	close_loop(&l);
	end(&a);
}

/*
 * A itself is stopped for longer than its retries last.
 */

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

static void we_are_stopped(void)
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
 * Others want the processors all the time, and the retries of A's own
 * connection are over before it has one.
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

static void retries_are_short(void)
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

/*
 * B writes anything into the memory that it shares with A.
 */

static uint8_t *find_lane(size_t *len)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[8];
	uint8_t *found = NULL;
	uintptr_t from, to;

	while (maps && !found && fgets(line, sizeof(line), maps))
		if (strstr(line, "verbena-lane") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 &&
		    rights[1] == 'w') {
			found = (uint8_t *)from;
			*len = to - from;
		}
	if (maps)
		fclose(maps);
	return found;
}

static void scribble(struct side *b)
{
	struct rng r = { 11 };
	struct ibv_wc wc;
	uint8_t *lane;
	size_t len = 0;

	(void)post(b, IBV_WR_RDMA_WRITE, SMALL); /* it is there then */
	(void)rc_wait(b->cq, 5, &wc);
	lane = find_lane(&len);
	if (lane)
		memset(lane, 0xff, len);
	tcp_barrier(b->tcp);
	if (!lane)
		pause();
	for (unsigned i = 0;; i++) {
		size_t at = rng_below(&r, len - SMALL) & ~(size_t)7;

		if (i % 64)
			rng_fill(&r, lane + at, SMALL);
		else
			memset(lane, i % 128 ? 0xff : 0, len);
	}
}

static void much_is_tried(struct side *a)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,
						  IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	double then = seconds();
	struct rng r = { 5 };
	struct ibv_wc wc;

	while (seconds() - then < 2) {
		(void)post(a, ops[rng_below(&r, 3)],
			   1 + (uint32_t)rng_below(&r, SENDS));
		while (ibv_poll_cq(a->cq, 1, &wc) > 0)
			;
		nap(100);
	}
}

static void memory_is_scribbled_on(void)
{
	struct side a = { 0 };
	struct loop l;
	double then;

	begin(&a, BYTES, scribble);
	open_loop(&a, &l);
	meet(&a, a.mr->rkey);
	tcp_barrier(a.tcp);
	much_is_tried(&a);
	(void)go_round(&a, &l);
	then = seconds();
	take(&a, TAKE_QP, NULL);
	close_loop(&l);
	take(&a, TAKE_REGION, NULL);
	expect(seconds() - then < 25, "to end took %.1f s", seconds() - then);
	end(&a);
}

/*
 * Memory that its own processor reaches, and no system call of another's: as
 * an adapter's or a graphics card's, whose pages the kernel does not have.
 */

static void *find_unreached(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uintptr_t at = 0;

	while (maps && !at && fgets(line, sizeof(line), maps))
		if (strstr(line, UNREACHED))
			sscanf(line, "%lx", &at);
	if (maps)
		fclose(maps);
	return (void *)at;
}

static void lend_unreached(struct side *b)
{
	void *at = find_unreached();
	struct ibv_mr *mr =
		at ? ibv_reg_mr(b->device.pd, at, SMALL, IBV_ACCESS_REMOTE_READ)
		   : NULL;
	struct hello told = { .address = (uintptr_t)at,
			      .rkey = mr ? mr->rkey : 0 };

	tcp_send(b->tcp, &told, sizeof(told));
	if (mr) {
		b->memory = at;
		b->mr = mr;
		(void)post(b, IBV_WR_SEND, SMALL);
	}
	pause();
}

static void memory_of_a_device(void)
{
	struct side a = { 0 };
	struct ibv_wc wc = { 0 };

	begin(&a, BYTES, lend_unreached);
	post_recv(&a, a.qp, SMALL);
	meet(&a, 0);
	tcp_recv(a.tcp, &a.peer, sizeof(a.peer));
	expect(a.peer.rkey, "no memory of this kind here");
	if (!is_broken)
		expect(rc_wait(a.cq, 5, &wc), "no completion");
	expect(!wc.status, "SEND: %s", ibv_wc_status_str(wc.status));
	if (!is_broken)
		must(!post(&a, IBV_WR_RDMA_READ, SMALL), "post");
	if (!is_broken)
		expect(rc_wait(a.cq, 5, &wc), "no completion");
	expect(!wc.status, "READ: %s", ibv_wc_status_str(wc.status));
	end(&a);
}

static const char *wanted;

static void try(const char *name, void (*what)(void))
{
	double then = seconds();

	if (wanted && !strstr(name, wanted))
		return;
	is_broken = false;
	what();
	printf("%sok neighbour: %s (%.1f s)\n", is_broken ? "not " : "", name,
	       seconds() - then);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	wanted = *rc_read_options(&options, argc, argv);
	port = options.port;
	alarm(300); /* what hangs for ever ends here */
	try("ibv_dereg_mr of what a stopped one writes to", region_of_stopped);
	try("ibv_dealloc_mw of the same", window_of_stopped);
	try("ibv_modify_qp to ERR of the same", error_of_stopped);
	try("ibv_destroy_qp of the same", qp_of_stopped);
	try("receives that a stopped one has in hand", receives_of_stopped);
	try("others' turns while 256 MiB are written", turns_beside_much);
	try("stopped ourselves for longer than our retries", we_are_stopped);
	try("short retries on a full machine", retries_are_short);
	try("a neighbour that writes anything", memory_is_scribbled_on);
	try("memory that only its owner's processor reaches",
	    memory_of_a_device);
	return 0;
}
