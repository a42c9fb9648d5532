/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a target served that calls no verb after it has given its key to the peer?
 *
 *	passive_test pause|spin [options]	the target
 *	passive_test pause|spin [options] HOST	writes to it, reads, adds
 *
 * "pause": the target sleeps in pause() until the peer closes its TCP
 * connection; "spin": the target reads one word of its memory until the peer
 * has written it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define BYTES  (1u << 20)
#define ROUNDS 200
/* offset in memory of the word that atomics change */
#define COUNTER BYTES
/* offset in memory of the word that the target polls */
#define FLAG (BYTES + 64)
#define ALL  (BYTES + 128)

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;

struct hello {
	uint64_t address;
	uint32_t rkey;
	struct rc_address at;
};

static int set_up(struct hello *peer)
{
	struct hello me;
	int tcp;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, 8, 1, 64);
	memory = calloc(1, ALL);
	must(memory, "memory");
	mr = ibv_reg_mr(device.pd, memory, ALL, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	me = (struct hello){ (uintptr_t)memory, mr->rkey,
			     rc_address(&device, qp, 4711) };
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, peer, sizeof(me));
	rc_connect(&device, qp, &options, 4711, &peer->at);
	tcp_barrier(tcp);
	return tcp;
}

static void tear_down(void)
{
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
}

/* Compute the bytes that round @n must leave in the target's memory. */
static void content(unsigned n, uint8_t *bytes)
{
	struct rng r = { n };

	rng_fill(&r, bytes, BYTES);
}

static uint64_t word_at(uint32_t offset)
{
	/* The peer's process changes this word, so read memory each time. */
	return atomic_load((_Atomic uint64_t *)(void *)(memory + offset));
}

static void on_io(int number)
{
}

/* Sleep until SIGIO, which comes when the other side closes its connection. */
static void sleep_until_closed(int tcp)
{
	sigset_t io, old;
	char byte;

	sigemptyset(&io);
	sigaddset(&io, SIGIO);
	sigprocmask(SIG_BLOCK, &io, &old);
	signal(SIGIO, on_io);
	must(!fcntl(tcp, F_SETOWN, getpid()), "F_SETOWN");
	must(!fcntl(tcp, F_SETFL, O_ASYNC | O_NONBLOCK), "O_ASYNC");
	while (read(tcp, &byte, 1) != 0)
		/* sleep for the signal; pause() would miss an early one */
		sigsuspend(&old);
}

static void target(bool spins)
{
	static uint8_t must_be[BYTES];
	struct hello peer;
	int tcp = set_up(&peer);

	if (spins)
		while (!word_at(FLAG))
			;
	else
		sleep_until_closed(tcp);
	content(ROUNDS - 1, must_be);
	if (memcmp(memory, must_be, BYTES))
		die("the data is wrong");
	if (word_at(COUNTER) != ROUNDS)
		die("the counter is %llu",
		    (unsigned long long)word_at(COUNTER));
}

static void act(struct ibv_send_wr *wr, const char *what)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	must(!ibv_post_send(qp, wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, 20, &wc))
		die("%s: the target is not served", what);
	if (wc.status)
		die("%s: %s", what, ibv_wc_status_str(wc.status));
}

static void move(enum ibv_wr_opcode opcode, uint32_t offset, uint32_t len,
		 const struct hello *peer)
{
	struct ibv_sge sge = { (uintptr_t)memory + offset, len, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .opcode = opcode };

	wr.wr.rdma.remote_addr = peer->address + offset;
	wr.wr.rdma.rkey = peer->rkey;
	act(&wr, opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE");
}

static void add_one(unsigned n, const struct hello *peer)
{
	struct ibv_sge sge = { (uintptr_t)memory + COUNTER, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

	wr.wr.atomic.remote_addr = peer->address + COUNTER;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = peer->rkey;
	act(&wr, "FETCH_ADD");
	if (word_at(COUNTER) != n)
		die("fetched %llu, must be %u",
		    (unsigned long long)word_at(COUNTER), n);
}

static void initiator(bool spins)
{
	static uint8_t must_be[BYTES];
	struct hello peer;
	double slowest = 0, start;
	int tcp = set_up(&peer);

	for (unsigned n = 0; n < ROUNDS; n++) {
		start = seconds();
		content(n, must_be);
		memcpy(memory, must_be, BYTES);
		move(IBV_WR_RDMA_WRITE, 0, BYTES, &peer);
		add_one(n, &peer);
		memset(memory, 0, BYTES);
		move(IBV_WR_RDMA_READ, 0, BYTES, &peer);
		if (memcmp(memory, must_be, BYTES))
			die("round %u: read back wrong", n);
		if (seconds() - start > slowest)
			slowest = seconds() - start;
	}
	printf("%u rounds, the slowest %.1f ms\n", ROUNDS, slowest * 1e3);
	if (spins) {
		memset(memory + FLAG, 1, 8);
		move(IBV_WR_RDMA_WRITE, FLAG, 8, &peer);
	}
	close(tcp);
}

int main(int argc, char **argv)
{
	char **words = rc_read_options(&options, argc, argv);
	bool spins;

	if (!words[0])
		return 2;
	spins = !strcmp(words[0], "spin");
	options.host = words[1];
	if (options.host)
		initiator(spins);
	else
		target(spins);
	tear_down();
	return 0;
}
