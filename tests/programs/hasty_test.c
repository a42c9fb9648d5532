/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that posts a WRITE and deregisters its memory at once, before the
 * WRITE is complete, as Gloo does. With a hardware adapter this works, since
 * the adapter has read the memory by then. Meanwhile two other threads poll, so
 * that most often one of them holds the queue pair's lock.
 *
 *	hasty_test [options] [rounds]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

#define POLLERS 2
#define ROUNDS	10000
/* the test stops after so many seconds, even before ROUNDS */
#define LASTS	8.0
#define AT_ONCE 3
#define BYTES	4
/* The local ACK timeout, 4.096 us * 2^21: longer than a busy machine leaves all
 * threads of this program without a processor. After a timeout a requester
 * reads the memory again, which is gone by then: a hardware adapter fails here,
 * too. */
#define ACK_TIMEOUT 21

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static atomic_uint completed;
/* first completion status that is not IBV_WC_SUCCESS; 0: none */
static atomic_int bad;
static atomic_bool over;

static void *poll_on(void *arg)
{
	struct ibv_wc wc;

	while (!atomic_load(&over)) {
		if (ibv_poll_cq(cq, 1, &wc) != 1)
			continue;
		if (wc.status)
			atomic_store(&bad, (int)wc.status);
		atomic_fetch_add(&completed, 1);
	}
	return NULL;
}

static struct ibv_qp *connect_to_self(void)
{
	struct ibv_qp *qp = rc_qp(&device, cq, 16, 1, 0);
	const struct rc_address self = rc_address(&device, qp, 1);

	rc_connect(&device, qp, &options, 1, &self);
	return qp;
}

static void write_from(struct ibv_qp *qp, const struct ibv_mr *from,
		       const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, BYTES, from->lkey };
	struct ibv_send_wr *failed, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to->addr, to->rkey },
	};

	must(!ibv_post_send(qp, &wr, &failed), "ibv_post_send");
}

static struct ibv_mr *lend(void *at, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(device.pd, at, BYTES, access);

	must(mr, "ibv_reg_mr");
	return mr;
}

int main(int argc, char **argv)
{
	static uint32_t here, there;
	pthread_t pollers[POLLERS];
	struct ibv_mr *kept, *target;
	struct ibv_qp *qp;
	unsigned posted = 0, rounds = 0, most = ROUNDS;
	double then = seconds();
	char **args = rc_read_options(&options, argc, argv);

	options.timeout = ACK_TIMEOUT;
	if (args[0])
		most = (unsigned)strtoul(args[0], NULL, 0);
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = connect_to_self();
	kept = lend(&here, IBV_ACCESS_LOCAL_WRITE);
	target = lend(&there, RC_ALL_ACCESS);
	for (unsigned i = 0; i < POLLERS; i++)
		must(!pthread_create(&pollers[i], NULL, poll_on, NULL),
		     "pthread_create");
	for (; rounds < most && !atomic_load(&bad) && seconds() - then < LASTS;
	     rounds++) {
		struct ibv_mr *hasty = lend(&here, IBV_ACCESS_LOCAL_WRITE);

		for (unsigned i = 0; i < AT_ONCE; i++, posted++)
			write_from(qp, i < AT_ONCE - 1 ? kept : hasty, target);
		must(!ibv_dereg_mr(hasty), "ibv_dereg_mr");
		while (atomic_load(&completed) < posted && !atomic_load(&bad) &&
		       seconds() - then < 3 * LASTS)
			;
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	printf("%u rounds: %s\n", rounds,
	       ibv_wc_status_str((enum ibv_wc_status)atomic_load(&bad)));
	return atomic_load(&bad) || atomic_load(&completed) != posted;
}
