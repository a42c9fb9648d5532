/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of many programs on a host: it exchanges a small message with its partner
 * every few milliseconds until its standard input ends.
 *
 *	small_pair [options]		one of a pair
 *	small_pair [options] HOST	the other
 *
 * Prints "ready" after the first exchange. Exit status: 0, 1 for a failure,
 * 3 when the neighbour is gone.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"

#define BYTES 600

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
/* memory[0] is sent, memory[1] is where messages arrive */
static uint8_t memory[2][BYTES];
static int tcp;

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[1], BYTES, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], BYTES, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	memset(memory[0], value, BYTES);
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void gone(const char *how)
{
	fprintf(stderr, "the neighbour is gone: %s\n", how);
	exit(3);
}

/* Has the neighbour ended? The kernel has closed its connection then. */
static bool has_ended(void)
{
	uint8_t byte;

	return recv(tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Wait for a completion with sleeps between polls, because hundreds of these
 * programs share few processors. A neighbour that ends after it has acknowledged
 * a message and before it replies leaves nothing that could be repeated: five
 * seconds are enough for all retries of what it has not acknowledged. */
static void take_completion(void)
{
	double until = seconds() + 30;
	struct ibv_wc wc;
	bool ended = false;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && seconds() < until) {
		usleep(500);
		if (!ended && has_ended()) {
			ended = true;
			until = seconds() + 5;
		}
	}
	if (!n)
		gone("no completion");
	must(n > 0, "ibv_poll_cq");
	if (wc.status == IBV_WC_RETRY_EXC_ERR ||
	    wc.status == IBV_WC_RNR_RETRY_EXC_ERR)
		gone(ibv_wc_status_str(wc.status));
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

static void exchange(uint8_t value)
{
	post_send(value);
	take_completion();
	take_completion();
	for (int i = 0; i < BYTES; i++)
		if (memory[1][i] != value)
			die("byte %d is %#x, must be %#x", i, memory[1][i],
			    value);
}

static void set_up(void)
{
	struct rc_address me, peer;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 8, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, 4, 1, 0);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	me = rc_address(&device, qp, 99);
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	rc_connect(&device, qp, &options, 99, &peer);
	post_receive();
	tcp_barrier(tcp);
}

/* Both sides must agree to stop: the one that connected decides. */
static bool go_on(void)
{
	struct pollfd in = { 0, POLLIN, 0 };
	uint8_t more = 1;

	if (options.host) {
		more = poll(&in, 1, 20) == 0;
		if (send(tcp, &more, 1, MSG_NOSIGNAL) != 1)
			gone("its connection closed");
	} else if (recv(tcp, &more, 1, 0) != 1) {
		gone("its connection closed");
	}
	return more;
}

int main(int argc, char **argv)
{
	uint8_t value = 0;

	options.host = *rc_read_options(&options, argc, argv);
	/* time-out code for 134 ms: hundreds of programs share processors */
	options.timeout = 15;
	set_up();
	exchange(value++);
	puts("ready");
	fflush(stdout);
	post_receive();
	while (go_on()) {
		exchange(value++);
		post_receive();
	}
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}
