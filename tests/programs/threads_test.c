// SPDX-License-Identifier: BSD-2-Clause
/*
 * Everything at the same time: threads that make and destroy objects of every
 * kind, threads that post to shared queue pairs, and threads that poll the one
 * completion queue, some of them by events. The test is for ThreadSanitizer; it
 * also checks that every request has one completion and that every counter is
 * right at the end.
 *
 *	threads_test [-d DEVICE] [-4|-6]
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

#define POSTERS 3
#define MAKERS	2
#define POLLERS 2
#define PAIRS	4
#define POSTS	1600 /* number of requests that each posting thread posts */
/* number of rounds of each thread that makes and destroys objects */
#define ROUNDS 40
#define DEPTH  64

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *from[PAIRS], *to[PAIRS];
static uint64_t words[POSTERS][PAIRS];
static _Atomic uint64_t *target;
static uint8_t *bytes;
static struct ibv_mr *mr;
static _Atomic unsigned posted, done, received, refused;
static _Atomic bool over;

static void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	struct rc_address at_a = rc_address(&device, a, 1);
	struct rc_address at_b = rc_address(&device, b, 1);

	rc_connect(&device, a, &options, 1, &at_b);
	rc_connect(&device, b, &options, 1, &at_a);
}

static void give_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)bytes, 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr_id = (uintptr_t)qp;
	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Post one request: in turn a SEND, a WRITE, a READ or an atomic. */
static void post(unsigned poster, unsigned nth)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						  IBV_WR_SEND,
						  IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	unsigned pair = nth % PAIRS;
	enum ibv_wr_opcode op = ops[nth / PAIRS % 4];
	struct ibv_sge sge = { (uintptr_t)&words[poster][pair], 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = op,
					.send_flags = IBV_SEND_SIGNALED };
	uint64_t there = (uintptr_t)(bytes + 4096 + 64 * poster + 8 * pair);

	sge.addr = (uintptr_t)(bytes + 8192 + 64 * poster + 8 * pair);
	wr.wr.rdma.remote_addr = there;
	wr.wr.rdma.rkey = mr->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)target;
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	while (ibv_post_send(from[pair], &wr, &bad)) {
		/* refused: the send queue is full */
		atomic_fetch_add(&refused, 1);
		sched_yield();
	}
	atomic_fetch_add(&posted, 1);
}

static void *poster(void *arg)
{
	for (unsigned i = 0; i < POSTS; i++)
		post((unsigned)(uintptr_t)arg, i);
	return NULL;
}

static void take(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		die("%s", ibv_wc_status_str(wc->status));
	if (wc->opcode & IBV_WC_RECV) {
		atomic_fetch_add(&received, 1);
		give_receive((struct ibv_qp *)(uintptr_t)wc->wr_id);
	} else {
		atomic_fetch_add(&done, 1);
	}
}

static void take_all(void)
{
	struct ibv_wc wc[8];
	int n;

	while ((n = ibv_poll_cq(cq, 8, wc)) > 0)
		for (int i = 0; i < n; i++)
			take(&wc[i]);
	must(n == 0, "ibv_poll_cq");
}

static void wait_for_event(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *which;
	void *context;

	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	take_all();
	if (poll(&p, 1, 5) <= 0 || ibv_get_cq_event(channel, &which, &context))
		return;
	ibv_ack_cq_events(which, 1);
}

static void *poller(void *arg)
{
	while (!atomic_load(&over)) {
		take_all();
		if (arg)
			wait_for_event();
	}
	return NULL;
}

/* Make a new connection and send one message on it while other threads use
 * theirs. */
static void live_once(unsigned maker)
{
	static uint64_t mine[MAKERS][8];
	struct ibv_cq *own = ibv_create_cq(device.context, 8, NULL, NULL, 0);
	struct ibv_mr *m =
		ibv_reg_mr(device.pd, mine[maker], 64, RC_ALL_ACCESS);
	struct ibv_qp *a = rc_qp(&device, own, 4, 1, 0);
	struct ibv_qp *b = rc_qp(&device, own, 4, 1, 0);
	struct ibv_sge sge = { (uintptr_t)mine[maker], 8, m->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	connect_pair(a, b);
	wr.wr.rdma.remote_addr = (uintptr_t)&mine[maker][4];
	wr.wr.rdma.rkey = m->rkey;
	must(!ibv_post_send(a, &wr, &bad), "ibv_post_send");
	must(rc_wait(own, 20, &wc) && wc.status == IBV_WC_SUCCESS, "WRITE");
	must(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(m) &&
		     !ibv_destroy_cq(own),
	     "destroy");
}

static void *maker(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		live_once((unsigned)(uintptr_t)arg);
	return NULL;
}

static void set_up(void)
{
	bytes = aligned_alloc(4096, 16384);
	must(bytes, "memory");
	memset(bytes, 0, 16384);
	target = (_Atomic uint64_t *)(bytes + 12288);
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, bytes, 16384, RC_ALL_ACCESS);
	channel = ibv_create_comp_channel(device.context);
	must(mr && channel, "a region and a channel");
	must(!fcntl(channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
	cq = ibv_create_cq(device.context, 4 * PAIRS * DEPTH, NULL, channel, 0);
	must(cq, "ibv_create_cq");
	for (unsigned i = 0; i < PAIRS; i++) {
		from[i] = rc_qp(&device, cq, DEPTH, 1, 0);
		to[i] = rc_qp(&device, cq, DEPTH, 1, 0);
		connect_pair(from[i], to[i]);
		for (unsigned k = 0; k < DEPTH; k++)
			give_receive(to[i]);
	}
}

static pthread_t start(void *(*what)(void *), uintptr_t arg)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, what, (void *)arg), "pthread_create");
	return t;
}

static void run(void)
{
	pthread_t posters[POSTERS], makers[MAKERS], pollers[POLLERS];

	for (unsigned i = 0; i < POLLERS; i++)
		pollers[i] = start(poller, i);
	for (unsigned i = 0; i < MAKERS; i++)
		makers[i] = start(maker, i);
	for (unsigned i = 0; i < POSTERS; i++)
		posters[i] = start(poster, i);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(posters[i], NULL);
	for (unsigned i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
	for (double until = seconds() + 30;
	     atomic_load(&done) < POSTERS * POSTS && seconds() < until;)
		sched_yield();
	atomic_store(&over, true);
	for (unsigned i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	take_all();
}

int main(int argc, char **argv)
{
	unsigned each = POSTERS * POSTS / 4, moment;

	rc_read_options(&options, argc, argv);
	set_up();
	run();
	moment = atomic_load(&done);
	if (moment != POSTERS * POSTS || atomic_load(target) != each ||
	    atomic_load(&received) != each)
		die("%u of %u done, %u of %u received, %u of %u counted",
		    moment, POSTERS * POSTS, atomic_load(&received), each,
		    (unsigned)atomic_load(target), each);
	for (unsigned i = 0; i < PAIRS; i++)
		must(!ibv_destroy_qp(from[i]) && !ibv_destroy_qp(to[i]),
		     "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel) &&
		     !ibv_dereg_mr(mr),
	     "destroy");
	rc_close(&device);
	printf("%u requests by %d threads, each done once; "
	       "%d connections meanwhile\n",
	       moment, POSTERS, MAKERS * ROUNDS);
	return 0;
}
