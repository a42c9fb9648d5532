/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case: one queue pair has a long queue while small messages come back on it.
 * Other queue pairs must still have their turn.
 */
#include <stdatomic.h>

#include "neighbour_test.h"

/* A round trip of another queue pair, in seconds, on a machine where each
 * thread has a processor as soon as it wants one. */
#define MEAN_MOST  2e-3
#define WORST_MOST 50e-3
/* Two threads of A take part in a round trip. Each of them may have to wait
 * for a processor as long as the witness does. */
#define WAITS 2

static void chat(struct side *b)
{
	struct ibv_wc wc;

	while (!post(b, IBV_WR_SEND, SMALL) && rc_wait(b->cq, 100, &wc) &&
	       !wc.status)
		nap(2000);
	pause();
}

static struct side *busy;
static atomic_bool is_over;

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

/* Measured durations, in seconds. */
struct times {
	double sum, worst;
	unsigned count;
};

static void add_time(struct times *t, double took)
{
	t->sum += took;
	t->worst = took > t->worst ? took : t->worst;
	t->count++;
}

static double mean_of(const struct times *t)
{
	return t->count ? t->sum / t->count : 0;
}

/* A process without RDMA that sleeps and measures how late it continues: that
 * is how long this machine lets a thread wait for a processor. Returns its
 * times, which it goes on writing until it is killed. */
static struct times *begin_witness(pid_t *pid)
{
	struct times *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(t != MAP_FAILED, "mmap");
	*pid = fork();
	must(*pid >= 0, "fork");
	while (*pid == 0) {
		double then = seconds();

		nap(500);
		add_time(t, seconds() - then - 500e-6);
		if (getppid() == 1)
			_exit(0);
	}
	return t;
}

static struct times end_witness(struct times *t, pid_t pid)
{
	struct times last;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	last = *t;
	munmap(t, sizeof(*t));
	return last;
}

static void judge_times(const struct times *t, const struct times *witness)
{
	double mean = MEAN_MOST + WAITS * mean_of(witness);
	double worst = WORST_MOST + WAITS * witness->worst;

	expect(t->count > 100, "%u round trips", t->count);
	expect(mean_of(t) <= mean && t->worst <= worst,
	       "%u round trips, %.2f ms in the mean, %.0f ms at worst; "
	       "at most %.2f and %.0f, since a process that sleeps is %.2f ms "
	       "late in the mean, %.0f ms at worst",
	       t->count, 1e3 * mean_of(t), 1e3 * t->worst, 1e3 * mean,
	       1e3 * worst, 1e3 * mean_of(witness), 1e3 * witness->worst);
	remark("%u of %.2f, %.0f ms at worst; a sleep %.2f, %.0f; ", t->count,
	       1e3 * mean_of(t), 1e3 * t->worst, 1e3 * mean_of(witness),
	       1e3 * witness->worst);
}

void turns_beside_much(void)
{
	struct times took = { 0 }, late, *seen;
	struct side a = { 0 };
	pthread_t writer;
	pid_t witness;
	struct loop l;
	double then;

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
	seen = begin_witness(&witness);
	for (then = seconds(); seconds() - then < 3 && !is_broken; nap(500))
		add_time(&took, go_round(&a, &l));
	late = end_witness(seen, witness);
	is_over = true;
	pthread_join(writer, NULL);
	judge_times(&took, &late);
	close_loop(&l);
	end(&a);
}
