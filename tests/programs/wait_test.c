/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that waits in ibv_get_cq_event() serves its peers of this host
 * meanwhile. Here the peer is the program itself: it has two queue pairs, and
 * one thread waits for what another sends. However the waiting call ends, the
 * next message must be noticed.
 *
 *	wait_test [options]
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define BYTES  20000
#define ROUNDS 40

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *from, *to;
static struct ibv_mr *mr, *nothing;
/* memory[0] is sent, memory[1] is where messages arrive */
static uint8_t memory[2][BYTES];
static _Atomic unsigned heard;

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[1], BYTES, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(to, &wr, &bad), "ibv_post_recv");
}

static void send_list(struct ibv_sge *list, int count)
{
	struct ibv_send_wr *bad, wr = { .sg_list = list,
					.num_sge = count,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	must(!ibv_post_send(from, &wr, &bad), "ibv_post_send");
}

/* Wait for the SEND's completion. The tests call this only after the message
 * has arrived, because a thread that polls a CQ serves the lanes as well. */
static void was_sent(void)
{
	struct ibv_wc wc;

	must(rc_wait(send_cq, 10, &wc), "a completion of the SEND");
	must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

static void arm(void)
{
	must(!ibv_req_notify_cq(recv_cq, 0), "ibv_req_notify_cq");
}

static void send_one(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], 8, mr->lkey };

	send_list(&sge, 1);
}

/* The program has read the event: check its message and post the next
 * receive. */
static void take_message(void)
{
	struct ibv_wc wc;

	ibv_ack_cq_events(recv_cq, 1);
	arm();
	must(ibv_poll_cq(recv_cq, 1, &wc) == 1, "a message");
	must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	post_receive();
	heard++;
}

/* Wait for an event of the channel. Returns 0 or an errno. */
static int wait_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		return errno;
	must(cq == recv_cq, "the event's queue");
	return 0;
}

static void *waiter(void *rounds)
{
	for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
		int err = wait_event();

		if (err)
			return (void *)(intptr_t)err;
		take_message();
	}
	return NULL;
}

static pthread_t start_waiter(intptr_t rounds)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, waiter, (void *)rounds), "a thread");
	usleep(20000); /* time for the new thread to fall asleep */
	return t;
}

static intptr_t end_of(pthread_t t)
{
	void *result;

	pthread_join(t, &result);
	return (intptr_t)result;
}

/* Expect a message while the program waits only in poll(2). */
static void expect_message(const char *when)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	must(poll(&p, 1, 0) == 0, "an event too many");
	send_one();
	if (poll(&p, 1, 1000) != 1)
		die("%s: not heard of a message", when);
	must(wait_event() == 0, "ibv_get_cq_event");
	take_message();
	was_sent();
}

static void on_signal(int number)
{
	(void)number;
}

/* Send a signal to the waiter until it ends: a signal that comes before it
 * sleeps interrupts nothing. */
static intptr_t interrupt(pthread_t t)
{
	double since = seconds();
	void *result;
	int err;

	do {
		pthread_kill(t, SIGUSR1);
		usleep(1000);
		err = pthread_tryjoin_np(t, &result);
	} while (err == EBUSY && seconds() - since < 10);
	must(!err, "the end of the waiter");
	return (intptr_t)result;
}

static void wait_and_be_woken(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	pthread_t t = start_waiter(1);

	send_one();
	must(end_of(t) == 0, "the waiter");
	was_sent();
	expect_message("woken");
	sigaction(SIGUSR1, &a, NULL);
	must(interrupt(start_waiter(1)) == EINTR, "EINTR");
	expect_message("interrupted");
	t = start_waiter(1);
	pthread_cancel(t);
	must(end_of(t) == (intptr_t)PTHREAD_CANCELED, "cancellation");
	expect_message("cancelled");
	t = start_waiter(ROUNDS);
	for (unsigned i = 0, before = heard; i < ROUNDS; i++) {
		send_one();
		while (heard - before <= i)
			sched_yield();
		was_sent();
	}
	must(end_of(t) == 0, "many rounds");
	expect_message("many rounds");
}

static void *send_later(void *arg)
{
	usleep(20000);
	send_one();
	return arg;
}

/*
 * The program has already polled the message when it reads the event: the event
 * must come with the next message, or soon without one.
 */
static void event_of_what_was_taken(void)
{
	struct ibv_wc wc;
	pthread_t t;
	double since;

	for (unsigned i = 0; i < 3; i++) {
		send_one();
		was_sent();
		must(rc_wait(recv_cq, 10, &wc), "a message");
		post_receive();
		must(!pthread_create(&t, NULL, send_later, NULL), "a thread");
		must(wait_event() == 0, "ibv_get_cq_event");
		take_message();
		pthread_join(t, NULL);
		was_sent();
	}
	send_one();
	was_sent();
	must(rc_wait(recv_cq, 10, &wc), "a message");
	post_receive();
	since = seconds();
	must(wait_event() == 0, "ibv_get_cq_event");
	must(seconds() - since < 2, "an event that was kept");
	ibv_ack_cq_events(recv_cq, 1);
	arm();
	must(ibv_poll_cq(recv_cq, 1, &wc) == 0, "no message");
}

/* A second connection, whose events have a channel of their own. */
static struct {
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *from, *to;
} second;

static void post_second_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[1], BYTES, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(second.to, &wr, &bad), "ibv_post_recv");
}

static void open_second(void)
{
	struct rc_address a, b;

	second.channel = ibv_create_comp_channel(device.context);
	must(second.channel, "ibv_create_comp_channel");
	second.send_cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	second.recv_cq =
		ibv_create_cq(device.context, 16, NULL, second.channel, 0);
	must(second.send_cq && second.recv_cq, "ibv_create_cq");
	second.from = rc_qp(&device, second.send_cq, 8, 1, 0);
	second.to = rc_qp(&device, second.recv_cq, 8, 1, 0);
	a = rc_address(&device, second.from, 9);
	b = rc_address(&device, second.to, 10);
	rc_connect(&device, second.from, &options, 9, &b);
	rc_connect(&device, second.to, &options, 10, &a);
	post_second_receive();
	must(!ibv_req_notify_cq(second.recv_cq, 0), "ibv_req_notify_cq");
}

static void close_second(void)
{
	must(!ibv_destroy_qp(second.from) && !ibv_destroy_qp(second.to),
	     "ibv_destroy_qp");
	must(!ibv_destroy_cq(second.send_cq) && !ibv_destroy_cq(second.recv_cq),
	     "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(second.channel),
	     "ibv_destroy_comp_channel");
}

static void *wait_for_second(void *arg)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	must(!ibv_get_cq_event(second.channel, &cq, &context) &&
		     cq == second.recv_cq,
	     "an event of the second connection");
	ibv_ack_cq_events(cq, 1);
	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	must(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
	     "a message of the second connection");
	post_second_receive();
	return arg;
}

static void send_on_second(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	must(!ibv_post_send(second.from, &wr, &bad), "ibv_post_send");
}

/* Two threads sleep, each waiting for its own connection. Only one of them
 * serves the lanes, also for the other. When that thread has ended, the other
 * one must still notice messages. */
static void two_sleep(void)
{
	pthread_t first, other;
	struct ibv_wc wc;

	open_second();
	for (unsigned i = 0; i < 4; i++) {
		first = start_waiter(1);
		must(!pthread_create(&other, NULL, wait_for_second, NULL),
		     "a thread");
		usleep(20000);
		if (i % 2) {
			send_one();
			must(end_of(first) == 0, "the first waiter");
			was_sent();
		}
		send_on_second();
		(void)end_of(other);
		must(rc_wait(second.send_cq, 10, &wc) && !wc.status,
		     "the second SEND");
		if (i % 2 == 0) {
			send_one();
			must(end_of(first) == 0, "the first waiter");
			was_sent();
		}
	}
	close_second();
}

/* Send a long message of which one SGE lies in a null region, which reads as
 * zeros. */
static void send_nothing(void)
{
	const uint32_t third = BYTES / 3;
	struct ibv_sge list[] = {
		{ (uintptr_t)memory[0], third, mr->lkey },
		{ 0, third, nothing->lkey },
		{ (uintptr_t)memory[0], third, mr->lkey },
	};

	memset(memory[0], 0x55, BYTES);
	memset(memory[1], 0xaa, BYTES);
	send_list(list, 3);
	must(wait_event() == 0, "ibv_get_cq_event");
	take_message();
	was_sent();
	for (uint32_t i = 0; i < 3 * third; i++)
		must(memory[1][i] == (i / third == 1 ? 0 : 0x55), "the bytes");
}

static void set_up(void)
{
	struct rc_address a, b;

	rc_open(&device, &options);
	channel = ibv_create_comp_channel(device.context);
	must(channel, "ibv_create_comp_channel");
	send_cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	recv_cq = ibv_create_cq(device.context, 16, NULL, channel, 0);
	must(send_cq && recv_cq, "ibv_create_cq");
	from = rc_qp(&device, send_cq, 8, 3, 0);
	to = rc_qp(&device, recv_cq, 8, 3, 0);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	nothing = ibv_alloc_null_mr(device.pd);
	must(mr && nothing, "regions");
	a = rc_address(&device, from, 7);
	b = rc_address(&device, to, 8);
	rc_connect(&device, from, &options, 7, &b);
	rc_connect(&device, to, &options, 8, &a);
	for (unsigned i = 0; i < 4; i++)
		post_receive();
	arm();
}

int main(int argc, char **argv)
{
	rc_read_options(&options, argc, argv);
	alarm(50); /* a thread that nobody wakes ends here */
	set_up();
	wait_and_be_woken();
	event_of_what_was_taken();
	two_sleep();
	send_nothing();
	must(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "ibv_destroy_qp");
	must(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq),
	     "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
	must(!ibv_dereg_mr(nothing) && !ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	puts("all heard of");
	return 0;
}
