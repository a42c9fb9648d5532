/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that sleeps until a message comes, between two hosts or on one
 * host: in ibv_get_cq_event(), or in epoll on the descriptor of a completion
 * channel. A packet, or the peer, wakes the program once, and does not wake the
 * library's own thread. A sleeping program uses no processor time. If the link
 * is lent to a program that then does something else, no peer suffers.
 *
 *	sleep_test [options] [-s] [HOST]
 *
 * -s: the program is slow, as with ThreadSanitizer. The library's thread then
 * looks after it between two messages, and its wake-ups are not judged.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"

#define ROUNDS	 2000
#define CHANNELS 24
#define READS	 40
#define RECEIVES 8

struct line { /* a connection with a channel of its own */
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	unsigned arrived, under_way;
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct line lines[CHANNELS];
static struct ibv_mr *mr;
static uint64_t memory[4];
static struct {
	uint64_t addr;
	uint32_t rkey;
} mine, theirs;
static int tcp;
static __thread int epoll;
static bool is_server, edges, slow;
/* true: the program takes one event each time the channel is readable, as gloo
 * does. It is not prepared for EAGAIN, and must never get it. */
static bool trusting;

static void ok(const char *what)
{
	if (is_server)
		printf("ok %s\n", what);
}

static void post_receive(struct line *l)
{
	struct ibv_sge sge = { (uintptr_t)&memory[0], 8, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(l->qp, &wr, &bad), "ibv_post_recv");
}

static void arm(struct line *l)
{
	must(!ibv_req_notify_cq(l->recv_cq, 0), "ibv_req_notify_cq");
}

static void open_line(struct line *l)
{
	struct ibv_qp_init_attr attr = {
		.cap = { 16, RECEIVES, 1, 1, 8 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rc_address ours, peers;

	l->channel = ibv_create_comp_channel(device.context);
	must(l->channel, "ibv_create_comp_channel");
	attr.recv_cq = l->recv_cq =
		ibv_create_cq(device.context, 64, NULL, l->channel, 0);
	attr.send_cq = l->send_cq =
		ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(l->recv_cq && l->send_cq, "ibv_create_cq");
	l->qp = ibv_create_qp(device.pd, &attr);
	must(l->qp, "ibv_create_qp");
	ours = rc_address(&device, l->qp, 1);
	tcp_swap(tcp, &ours, &peers, sizeof(ours));
	rc_connect(&device, l->qp, &options, 1, &peers);
	for (unsigned i = 0; i < RECEIVES / 2; i++)
		post_receive(l);
	arm(l);
}

static void close_line(struct line *l)
{
	must(!ibv_destroy_qp(l->qp) && !ibv_destroy_cq(l->recv_cq) &&
		     !ibv_destroy_cq(l->send_cq) &&
		     !ibv_destroy_comp_channel(l->channel),
	     "the end of a line");
}

/* Take completions of the sender's own until fewer than @most are under way. */
static void clear_sends(struct line *l, unsigned most)
{
	struct ibv_wc wc;

	while (l->under_way >= most) {
		must(rc_wait(l->send_cq, 20, &wc), "a completion");
		must(wc.status == IBV_WC_SUCCESS,
		     ibv_wc_status_str(wc.status));
		l->under_way--;
	}
}

static void post(struct line *l, enum ibv_wr_opcode op, uint64_t *at)
{
	struct ibv_sge sge = { (uintptr_t)at, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = op,
					.wr.rdma = { theirs.addr,
						     theirs.rkey } };

	clear_sends(l, 8);
	must(!ibv_post_send(l->qp, &wr, &bad), "ibv_post_send");
	l->under_way++;
}

static void send_one(struct line *l)
{
	post(l, IBV_WR_SEND, &memory[1]);
}

/* Returns false if the channel has no event and does not block. */
static bool take_event(struct line *l)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int got;

	if (ibv_get_cq_event(l->channel, &cq, &context)) {
		must(errno == EAGAIN && !trusting, "ibv_get_cq_event");
		return false;
	}
	must(cq == l->recv_cq, "the event's queue");
	ibv_ack_cq_events(cq, 1);
	arm(l);
	while ((got = ibv_poll_cq(cq, 1, &wc)) > 0) {
		must(wc.status == IBV_WC_SUCCESS,
		     ibv_wc_status_str(wc.status));
		post_receive(l);
		l->arrived++;
	}
	must(got == 0, "ibv_poll_cq");
	return true;
}

static void set_blocking(struct line *l, bool yes)
{
	int flags = fcntl(l->channel->fd, F_GETFL);

	must(!fcntl(l->channel->fd, F_SETFL,
		    yes ? flags & ~O_NONBLOCK : flags | O_NONBLOCK),
	     "O_NONBLOCK");
}

static void watch(struct line *l)
{
	struct epoll_event event = { .events = EPOLLIN | (edges ? EPOLLET : 0),
				     .data.ptr = l };

	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, l->channel->fd, &event),
	     "epoll_ctl");
}

static void forget(struct line *l)
{
	must(!epoll_ctl(epoll, EPOLL_CTL_DEL, l->channel->fd, NULL),
	     "epoll_ctl");
}

/* Sleep in epoll until some channel is readable, and take its events. */
static void serve_epoll(void)
{
	struct epoll_event event;
	struct line *l;

	must(epoll_wait(epoll, &event, 1, 20000) == 1,
	     "a message within 20 s");
	l = event.data.ptr;
	while (take_event(l) && !trusting)
		;
}

static void receive(struct line *l, bool by_epoll)
{
	while (!l->arrived) {
		if (by_epoll)
			serve_epoll();
		else
			take_event(l);
	}
	l->arrived--;
}

/* The client sends a message on each of @count lines in turn, and the server
 * answers. */
static void play(unsigned rounds, unsigned count, bool by_epoll)
{
	for (unsigned i = 0; i < rounds; i++) {
		struct line *l = &lines[i % count];

		if (!is_server)
			send_one(l);
		receive(l, by_epoll);
		if (is_server)
			send_one(l);
	}
}

/* Returns how often the library's own thread has gone to sleep so far. */
static unsigned long engine_sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long sleeps = 0, n;
	char path[300], text[80];
	struct dirent *task;
	bool is_engine;
	FILE *f;

	must(tasks, "/proc/self/task");
	while ((task = readdir(tasks))) {
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			       task->d_name);
		is_engine = false;
		f = fopen(path, "r");
		while (f && fgets(text, sizeof(text), f)) {
			is_engine |= !strcmp(text, "Name:\tverbena\n");
			if (is_engine &&
			    sscanf(text, "voluntary_ctxt_switches: %lu", &n))
				sleeps += n;
		}
		if (f)
			(void)fclose(f);
	}
	closedir(tasks);
	return sleeps;
}

/* Packets wake the program itself, so the library's thread has no work for them
 * and only looks from time to time. */
static void wakes_once(const char *how, bool by_epoll)
{
	unsigned long before;

	play(ROUNDS / 4, 1, by_epoll);
	before = engine_sleeps();
	play(ROUNDS, 1, by_epoll);
	before = engine_sleeps() - before;
	if (before > ROUNDS / 2 && !slow)
		die("%s: the library's thread woke %lu times for %d messages",
		    how, before, ROUNDS);
	ok(how);
}

static double used(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* The server sleeps for half a second, during which the client sends
 * nothing. */
static void sleeps(const char *how, bool by_epoll)
{
	double before;

	tcp_barrier(tcp);
	if (!is_server) {
		usleep(500000);
		send_one(&lines[0]);
		receive(&lines[0], by_epoll);
		return;
	}
	before = used();
	receive(&lines[0], by_epoll);
	before = used() - before;
	send_one(&lines[0]);
	if (before > 0.05 && !slow)
		die("%s: used %.3f s of a processor", how, before);
	ok(how);
}

/* The server computes and calls no verb, while the client reads from its
 * memory. The library's own thread must serve the READs, although the link is
 * lent to the server's channel. */
static void computes(void)
{
	double longest = 0, begin;
	char over;

	play(ROUNDS / 4, 1, true);
	tcp_barrier(tcp);
	if (is_server) {
		tcp_recv(tcp, &over, 1);
		ok("who is lent the link and computes is read from");
		return;
	}
	for (unsigned i = 0; i < READS; i++) {
		begin = seconds();
		post(&lines[0], IBV_WR_RDMA_READ, &memory[2]);
		clear_sends(&lines[0], 1);
		begin = seconds() - begin;
		longest = begin > longest ? begin : longest;
		usleep(i % 4 * 1500);
	}
	/* A READ that the library's thread does not serve is repeated after
	 * each timeout of 67 ms, and then fails. */
	if (longest > 1)
		die("a READ took %.3f s", longest);
	tcp_send(tcp, "", 1);
}

/* The channel must be readable only if it has an event, even though packets
 * come that cause none (the client's READs). */
static void readable_for_events(const char *how, bool by_epoll)
{
	struct line *l = &lines[0];
	struct pollfd p = { .fd = l->channel->fd, .events = POLLIN };
	char over;

	play(ROUNDS, 1, by_epoll);
	tcp_barrier(tcp);
	if (is_server) {
		must(poll(&p, 1, 200) == 0, "no event");
		tcp_send(tcp, "", 1);
		must(poll(&p, 1, 10000) == 1, "an event");
		receive(l, by_epoll);
		send_one(l);
		ok(how);
		return;
	}
	for (unsigned i = 0; i < READS; i++) {
		post(l, IBV_WR_RDMA_READ, &memory[2]);
		clear_sends(l, 1);
	}
	tcp_recv(tcp, &over, 1);
	send_one(l);
	receive(l, by_epoll);
}

static void trusts(void)
{
	trusting = true;
	readable_for_events("who never met EAGAIN finds an event each time",
			    true);
	trusting = false;
}

static void blocks(void)
{
	forget(&lines[0]);
	set_blocking(&lines[0], true);
	readable_for_events("a channel that blocks is readable for events only",
			    false);
}

static void many(void)
{
	set_blocking(&lines[0], false);
	watch(&lines[0]);
	for (unsigned i = 1; i < CHANNELS; i++) {
		open_line(&lines[i]);
		set_blocking(&lines[i], false);
		watch(&lines[i]);
	}
	tcp_barrier(tcp);
	play(ROUNDS, CHANNELS, true);
	ok("many channels in one set");
	/* Close the channels one by one; the link is lent to one of them. */
	for (unsigned i = CHANNELS; --i > 0;) {
		tcp_barrier(tcp);
		clear_sends(&lines[i], 1);
		forget(&lines[i]);
		close_line(&lines[i]);
		play(20, i, true);
	}
	ok("channels are closed one after the other");
}

/* Fork a child, which inherits the descriptors and ends. The parent's channel
 * must still work. */
static void forks(void)
{
	pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		usleep(50000);
		_exit(0);
	}
	play(ROUNDS / 4, 1, true);
	must(waitpid(child, NULL, 0) == child, "waitpid");
	play(ROUNDS / 4, 1, true);
	ok("a child of fork does no harm");
}

static void open_epoll(void)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	must(epoll >= 0, "epoll_create1");
}

static void receive_polling(struct line *l)
{
	struct ibv_wc wc;

	must(rc_wait(l->recv_cq, 20, &wc) && wc.status == IBV_WC_SUCCESS,
	     "a message");
	post_receive(l);
}

/* The ways in which a thread of together() receives. */
enum { BY_EVENT, BY_EPOLL, BY_EPOLL_TOO, BY_POLLING, WAYS };

static void *plays_alone(void *arg)
{
	intptr_t way = (intptr_t)arg;
	struct line *l = &lines[1 + way];

	open_epoll();
	set_blocking(l, way == BY_EVENT);
	watch(l);
	for (unsigned i = 0; i < ROUNDS / 2; i++) {
		if (!is_server)
			send_one(l);
		if (way == BY_POLLING)
			receive_polling(l);
		else
			receive(l, way != BY_EVENT);
		if (is_server)
			send_one(l);
		if (i % 64 == 0)
			usleep(3000);
	}
	close(epoll);
	return NULL;
}

/* Threads wait in all of these ways, each for its own peer. */
static void together(void)
{
	pthread_t threads[WAYS];

	for (intptr_t way = 0; way < WAYS; way++)
		open_line(&lines[1 + way]);
	tcp_barrier(tcp);
	for (intptr_t way = 0; way < WAYS; way++)
		must(!pthread_create(&threads[way], NULL, plays_alone,
				     (void *)way),
		     "a thread");
	for (intptr_t way = 0; way < WAYS; way++)
		pthread_join(threads[way], NULL);
	tcp_barrier(tcp);
	for (intptr_t way = 0; way < WAYS; way++) {
		clear_sends(&lines[1 + way], 1);
		tcp_barrier(tcp);
		close_line(&lines[1 + way]);
		memset(&lines[1 + way], 0, sizeof(lines[0]));
	}
	ok("threads that wait in all ways");
}

static void set_up(void)
{
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	mine.addr = (uintptr_t)&memory[3];
	mine.rkey = mr->rkey;
	tcp_swap(tcp, &mine, &theirs, sizeof(mine));
	open_line(&lines[0]);
	tcp_barrier(tcp);
	open_epoll();
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS "s")) != -1) {
		if (c == 's')
			slow = true;
		else
			rc_read_option(&options, c);
	}
	options.host = argv[optind];
	is_server = !options.host;
	tcp = tcp_meet(&options);
	set_up();
	wakes_once("a packet wakes ibv_get_cq_event alone", false);
	sleeps("who sleeps in ibv_get_cq_event uses no processor", false);
	set_blocking(&lines[0], false);
	watch(&lines[0]);
	trusts();
	wakes_once("a packet wakes epoll alone", true);
	sleeps("who sleeps in epoll uses no processor", true);
	forget(&lines[0]);
	edges = true;
	watch(&lines[0]);
	wakes_once("a packet wakes edge-triggered epoll alone", true);
	computes();
	forks();
	together();
	blocks();
	many();
	tcp_barrier(tcp);
	clear_sends(&lines[0], 1);
	tcp_barrier(tcp);
	close_line(&lines[0]);
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}
