/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two programs that sleep in epoll until a message of 8 bytes comes, and answer
 * it: with verbs by the descriptor of a completion channel, which does not
 * block, or with TCP by the socket. The client prints half of a round trip, in
 * microseconds: the median, the 99th percentile and the mean.
 *
 *	sleeper [options] [-t] [-e] [-n TIMES] [HOST]
 *
 * -t: TCP; -e: edge-triggered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/programs/rc.h"

#define RECEIVES 4
#define SENDS	 16

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_comp_channel *channel;
/* completions of receives, which raise events, and of SENDs, which do not */
static struct ibv_cq *cq, *send_cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint64_t memory[2];
static int tcp, epoll;
/* @arrived: messages received; @under_way: SENDs without a completion yet */
static unsigned arrived, under_way;

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)&memory[0], 8, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static struct ibv_qp *open_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = SENDS,
			 .max_recv_wr = RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 8 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *made = ibv_create_qp(device.pd, &attr);

	must(made, "ibv_create_qp");
	return made;
}

static void open_verbs(void)
{
	struct rc_address mine, theirs;

	rc_open(&device, &options);
	channel = ibv_create_comp_channel(device.context);
	must(channel, "ibv_create_comp_channel");
	must(!fcntl(channel->fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
	cq = ibv_create_cq(device.context, 64, NULL, channel, 0);
	send_cq = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(cq && send_cq, "ibv_create_cq");
	qp = open_qp();
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	mine = rc_address(&device, qp, 1);
	tcp_swap(tcp, &mine, &theirs, sizeof(mine));
	rc_connect(&device, qp, &options, 1, &theirs);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive();
	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	tcp_barrier(tcp);
}

/* Poll completions of SENDs until at most half of the send queue is in use. */
static void clear_sends(void)
{
	struct ibv_wc wc[SENDS];
	int got;

	do {
		got = ibv_poll_cq(send_cq, SENDS, wc);
		must(got >= 0, "ibv_poll_cq");
		for (int i = 0; i < got; i++)
			must(wc[i].status == IBV_WC_SUCCESS,
			     ibv_wc_status_str(wc[i].status));
		under_way -= (unsigned)got;
	} while (under_way > SENDS / 2);
}

static void send_verbs(void)
{
	struct ibv_sge sge = { (uintptr_t)&memory[1], 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_INLINE };

	if (under_way >= SENDS / 2)
		clear_sends();
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	under_way++;
}

/* The channel is readable: read one event. Returns false if there was none. */
static bool take_event(void)
{
	struct ibv_cq *of;
	void *context;
	struct ibv_wc wc;
	int got;

	if (ibv_get_cq_event(channel, &of, &context)) {
		must(errno == EAGAIN, "ibv_get_cq_event");
		return false;
	}
	ibv_ack_cq_events(of, 1);
	must(!ibv_req_notify_cq(of, 0), "ibv_req_notify_cq");
	while ((got = ibv_poll_cq(of, 1, &wc)) > 0) {
		must(wc.status == IBV_WC_SUCCESS,
		     ibv_wc_status_str(wc.status));
		post_receive();
		arrived++;
	}
	must(got == 0, "ibv_poll_cq");
	return true;
}

static void sleep_by(int fd, uint32_t how)
{
	struct epoll_event event = { .events = EPOLLIN | how };

	epoll = epoll_create1(0);
	must(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event),
	     "epoll");
}

static void await_epoll(void)
{
	struct epoll_event event;
	int n = epoll_wait(epoll, &event, 1, 20000);

	must(n == 1, "a message within 20 s");
}

static void receive_verbs(void)
{
	while (!arrived) {
		await_epoll();
		while (take_event())
			;
	}
	arrived--;
}

static void receive_tcp(void)
{
	uint64_t message;
	ssize_t n;

	do {
		await_epoll();
		n = recv(tcp, &message, sizeof(message), MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	must(n == sizeof(message), "a whole message");
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(double *took, int times)
{
	double all = 0;

	for (int i = 0; i < times; i++)
		all += took[i];
	qsort(took, (size_t)times, sizeof(*took), by_size);
	printf("%.3f %.3f %.3f\n", took[times / 2] * 5e5,
	       took[times * 99L / 100] * 5e5, all / times * 5e5);
}

int main(int argc, char **argv)
{
	bool with_tcp = false, edges = false;
	int c, times = 10000;
	double *took, begin;

	while ((c = getopt(argc, argv, RC_LETTERS "ten:")) != -1) {
		if (c == 't')
			with_tcp = true;
		else if (c == 'e')
			edges = true;
		else if (c == 'n')
			times = atoi(optarg);
		else
			rc_read_option(&options, c);
	}
	options.host = argv[optind];
	took = times > 0 ? calloc((size_t)times, sizeof(*took)) : NULL;
	must(took, "a number of times");
	tcp = tcp_meet(&options);
	if (!with_tcp)
		open_verbs();
	sleep_by(with_tcp ? tcp : channel->fd, edges ? EPOLLET : 0);
	for (int i = 0; i < times; i++) {
		begin = seconds();
		for (int turn = 0; turn < 2; turn++) {
			if (turn == (options.host ? 1 : 0)) {
				with_tcp ? receive_tcp()
					 : receive_verbs();
			} else if (with_tcp) {
				tcp_send(tcp, &memory[1], 8);
			} else {
				send_verbs();
			}
		}
		took[i] = seconds() - begin;
	}
	if (options.host)
		report(took, times);
	free(took);
	if (with_tcp)
		return 0;
	tcp_barrier(tcp);
	must(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr), "the end");
	must(!ibv_destroy_cq(cq) && !ibv_destroy_cq(send_cq) && !ibv_destroy_comp_channel(channel),
	     "the end");
	rc_close(&device);
	return 0;
}
