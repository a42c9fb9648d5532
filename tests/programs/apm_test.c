/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration, as a program uses it: apm_test BITS0 BITS1, with
 * the devices ib0 and ib1, whose ports have two LIDs each (LMC 1). The path
 * bits BITS0 and BITS1 choose the first way; the other path bits choose the
 * second way, which shares no cable with the first. When the caller must do
 * something, the program prints "do WORD", and goes on when it reads a line.
 * The words: pull: pull the first way's cable; plug: plug it in again;
 * pull-other: pull the second way's cable. The program prints one line for each
 * case. With the argument "ports" the devices have two ports each; the first
 * way leads from port 1 to port 1, and the second one from port 2 to port 2.
 * With the argument "rate" the program tests static rates of datagrams; it
 * prints "busy" if other programs leave too little processor time to tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "rc.h"

#define BYTES 65536
#define SLOTS 8
#define SIDES 2
#define WAYS  2
/* @STALL_MOST: the longest pause, in seconds, that a broken path may cause;
 * @LONG: how many seconds a test waits for an expected change */
#define STALL_MOST 2.0
#define LONG	   20.0
/* On a busy machine, a pause may be this many times as long as the longest
 * pause without a fault. */
#define STALL_MORE 20
/* The ACK timeout is 4.096 us * 2^13, 34 ms: the fabric's process may have to
 * wait tens of milliseconds for a processor, and that must not count as a
 * broken way. */
#define TIMEOUT 13

static int failed;

static void result(int good, const char *name)
{
	printf("%s ib_apm: %s\n", good ? "ok" : "not ok", name);
	fflush(stdout);
	failed |= !good;
}

struct side {
	struct ibv_context *context;
	struct ibv_port_attr port[WAYS];
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned bits; /* path bits of the first way */
	/* messages posted, complete, and arrived at the other side */
	unsigned posted, done, came;
	unsigned migrated, migrate_errors, other_events;
	uint8_t out[SLOTS][BYTES], in[SLOTS][BYTES];
};
static struct side sides[SIDES];
static bool by_ports; /* the ways differ by their ports, not by path bits */
/* stall: the longest time without a completion; last: the time of the last
 * completion; usual: the longest time without a completion before any fault */
static double stall, last, usual;
static int wrong; /* messages with a wrong status or a wrong byte */

static uint8_t byte_of(unsigned side, unsigned number, unsigned at)
{
	return (uint8_t)(side * 91 + number * 13 + at + (at >> 8));
}

static void open_side(struct side *s, struct ibv_device *device)
{
	s->context = ibv_open_device(device);
	must(s->context != NULL, "open");
	for (uint8_t i = 0; i < (by_ports ? WAYS : 1); i++)
		must(!ibv_query_port(s->context, i + 1, &s->port[i]),
		     "query_port");
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 512, NULL, NULL, 0);
	must(s->pd && s->cq, "PD, CQ");
	s->mr = ibv_reg_mr(s->pd, s, sizeof(*s),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(s->mr != NULL, "MR");
	must(!fcntl(s->context->async_fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
}

static struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = type,
		.cap = { .max_send_wr = 2 * SLOTS,
			 .max_recv_wr = 2 * SLOTS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	must(qp != NULL, "QP");
	must(!rc_to_init(qp, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	     "INIT");
	return qp;
}

/* Returns the address of the other side by the first (0) or second (1) path. */
static struct ibv_ah_attr path_of(unsigned side, unsigned way)
{
	const struct side *mine = &sides[side], *peer = &sides[!side];

	if (by_ports)
		return (struct ibv_ah_attr){
			.dlid = peer->port[way].lid,
			.port_num = (uint8_t)(way + 1),
		};
	return (struct ibv_ah_attr){
		.dlid = (uint16_t)(peer->port[0].lid + (peer->bits ^ way)),
		.src_path_bits = (uint8_t)(mine->bits ^ way),
		.port_num = 1,
	};
}

static struct ibv_qp_attr alternate(unsigned side, unsigned way)
{
	return (struct ibv_qp_attr){
		.alt_ah_attr = path_of(side, way),
		.alt_port_num = path_of(side, way).port_num,
		.alt_timeout = TIMEOUT,
		.path_mig_state = IBV_MIG_REARM,
	};
}

/* Connect the two sides by the first way; @alt: with the second way as the
 * alternate path, as rdma_cm does it. */
static void connect_side(unsigned side, bool reliable, bool alt)
{
	struct ibv_qp_attr attr = alternate(side, 1);
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr = path_of(side, 0);
	attr.path_mtu = IBV_MTU_2048;
	attr.dest_qp_num = sides[!side].qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	if (reliable)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (alt)
		mask |= IBV_QP_ALT_PATH;
	must(!ibv_modify_qp(sides[side].qp, &attr, mask), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = TIMEOUT;
	attr.retry_cnt = 3;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (reliable)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (alt)
		mask |= IBV_QP_PATH_MIG_STATE;
	must(!ibv_modify_qp(sides[side].qp, &attr, mask), "RTS");
}

static void connect_all(enum ibv_qp_type type, bool alt)
{
	for (int i = 0; i < SIDES; i++)
		sides[i].qp = make_qp(&sides[i], type);
	for (unsigned i = 0; i < SIDES; i++)
		connect_side(i, type == IBV_QPT_RC, alt);
}

static void disconnect_all(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < SIDES; i++) {
		must(!ibv_destroy_qp(sides[i].qp), "destroy");
		while (ibv_poll_cq(sides[i].cq, 1, &wc) == 1)
			;
	}
}

/* --- messages --- */

static void post_recv(struct side *s)
{
	struct ibv_recv_wr wr = { .wr_id = 0 }, *bad;

	must(!ibv_post_recv(s->qp, &wr, &bad), "post_recv");
}

static void post(unsigned side)
{
	struct side *s = &sides[side], *peer = &sides[!side];
	unsigned number = s->posted++, slot = number % SLOTS;
	struct ibv_sge sge = { (uintptr_t)s->out[slot], BYTES, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = number },
			   *bad;

	for (unsigned i = 0; i < BYTES; i++)
		s->out[slot][i] = byte_of(side, number, i);
	wr.wr.rdma.remote_addr = (uintptr_t)peer->in[slot];
	wr.wr.rdma.rkey = peer->mr->rkey;
	must(!ibv_post_send(s->qp, &wr, &bad), "post_send");
}

/* Check that message number @number of side @from has arrived whole. */
static void check_arrival(unsigned from, unsigned number)
{
	struct side *to = &sides[!from];
	uint8_t *in = to->in[number % SLOTS];
	unsigned i = 0;

	while (i < BYTES && in[i] == byte_of(from, number, i))
		i++;
	wrong += i < BYTES || number != sides[from].came;
	sides[from].came++;
	memset(in, 0xee, BYTES);
	post_recv(to);
}

static void take_completion(unsigned side, const struct ibv_wc *wc)
{
	double now = seconds();

	if (wc->status != IBV_WC_SUCCESS) {
		if (!wrong++)
			printf("# side %u: %s\n", side,
			       ibv_wc_status_str(wc->status));
		return;
	}
	if (now - last > stall)
		stall = now - last;
	last = now;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		check_arrival(!side, wc->imm_data);
	else
		sides[side].done++;
}

static void take_events(struct side *s)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(s->context, &e)) {
		if (e.event_type == IBV_EVENT_PATH_MIG)
			s->migrated++;
		else if (e.event_type == IBV_EVENT_PATH_MIG_ERR)
			s->migrate_errors++;
		else if (e.event_type != IBV_EVENT_COMM_EST)
			s->other_events++;
		ibv_ack_async_event(&e);
	}
}

/* Let messages pass by both sides for a moment. */
static void talk(void)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < SIDES; i++) {
		struct side *s = &sides[i];

		if (s->posted - s->done < SLOTS &&
		    s->posted - s->came < SLOTS && !wrong)
			post(i);
		while (ibv_poll_cq(s->cq, 1, &wc) == 1)
			take_completion(i, &wc);
		take_events(s);
	}
}

static void begin_talk(void)
{
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &sides[i];

		s->posted = s->done = s->came = 0;
		s->migrated = s->migrate_errors = 0;
		for (int n = 0; n < SLOTS; n++)
			post_recv(s);
	}
	wrong = 0;
	stall = 0;
	last = seconds();
}

static bool drained(void)
{
	for (int i = 0; i < SIDES; i++)
		if (sides[i].done != sides[i].posted ||
		    sides[i].came != sides[i].posted)
			return false;
	return true;
}

/* Post no more messages, and wait until those under way are complete. */
static void end_talk(void)
{
	double end = seconds() + LONG;
	struct ibv_wc wc;

	while (!drained() && !wrong && seconds() < end)
		for (unsigned i = 0; i < SIDES; i++)
			while (ibv_poll_cq(sides[i].cq, 1, &wc) == 1)
				take_completion(i, &wc);
}

/* --- states --- */

static struct ibv_qp_attr query(unsigned side)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(sides[side].qp, &attr,
			   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_AV |
				   IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
			   &init),
	     "query");
	return attr;
}

static bool both(enum ibv_mig_state state)
{
	return query(0).path_mig_state == state &&
	       query(1).path_mig_state == state;
}

static bool armed(void)
{
	return both(IBV_MIG_ARMED);
}

static bool migrated(void)
{
	return sides[0].migrated && sides[1].migrated && both(IBV_MIG_MIGRATED);
}

static bool on_way(unsigned way)
{
	for (unsigned i = 0; i < SIDES; i++) {
		struct ibv_qp_attr attr = query(i);
		struct ibv_ah_attr want = path_of(i, way);

		if (attr.ah_attr.dlid != want.dlid ||
		    attr.port_num != want.port_num ||
		    attr.ah_attr.port_num != want.port_num ||
		    attr.ah_attr.src_path_bits != want.src_path_bits ||
		    attr.path_mig_state != IBV_MIG_MIGRATED)
			return false;
	}
	return true;
}

/* Exchange messages until @truth() is true. Returns false if that took longer
 * than LONG seconds, or if a message failed. */
static bool talk_until(bool (*truth)(void))
{
	double end = seconds() + LONG;

	while (!truth() && !wrong && seconds() < end)
		talk();
	return truth() && !wrong;
}

static void talk_for(double time)
{
	double end = seconds() + time;

	while (!wrong && seconds() < end)
		talk();
}

/* Print the word by which the caller is asked to do something, and wait for its
 * line. With @talking, messages pass meanwhile. */
static void ask(const char *word, bool talking)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char line[64];

	printf("do %s\n", word);
	fflush(stdout);
	while (talking && poll(&p, 1, 0) == 0)
		talk();
	must(fgets(line, sizeof(line), stdin) != NULL, "the caller's word");
}

/* --- cases --- */

static int modify(unsigned side, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(sides[side].qp, &attr, mask);
}

static int set_state(unsigned side, enum ibv_mig_state state)
{
	return modify(side, (struct ibv_qp_attr){ .path_mig_state = state },
		      IBV_QP_PATH_MIG_STATE);
}

static void rearm_all(unsigned way)
{
	for (unsigned i = 0; i < SIDES; i++)
		must(!modify(i, alternate(i, way),
			     IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
		     "rearm");
}

static void what_is_refused(void)
{
	struct ibv_qp_attr attr = alternate(0, 1);
	struct ibv_device_attr device;

	must(!ibv_query_device(sides[0].context, &device), "query_device");
	result(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG,
	       "the device says that it has path migration");
	connect_all(IBV_QPT_RC, false);
	result(set_state(0, IBV_MIG_REARM) == EINVAL,
	       "no Rearm without an alternate path");
	result(modify(0, attr, IBV_QP_ALT_PATH) == 0 &&
		       query(0).path_mig_state == IBV_MIG_MIGRATED &&
		       query(0).alt_ah_attr.dlid == attr.alt_ah_attr.dlid &&
		       query(0).alt_port_num == 1 &&
		       query(0).alt_timeout == TIMEOUT,
	       "an alternate path is given back");
	result(set_state(0, IBV_MIG_ARMED) == EINVAL, "no program sets Armed");
	attr.alt_port_num = 2;
	result(modify(0, attr, IBV_QP_ALT_PATH) == EINVAL,
	       "a port that does not exist");
	attr = alternate(0, 1);
	attr.alt_ah_attr.dlid = 0;
	result(modify(0, attr, IBV_QP_ALT_PATH) == EINVAL, "no DLID");
	disconnect_all();
}

static bool is_short(double pause)
{
	return pause < STALL_MOST + STALL_MORE * (usual < 0.15 ? usual : 0.15);
}

static void a_pulled_cable(void)
{
	connect_all(IBV_QPT_RC, true);
	begin_talk();
	result(talk_until(armed), "both ends are armed");
	talk_for(0.3);
	printf("# without a fault: the longest pause is %.3f s\n", stall);
	usual = stall;
	stall = 0;
	ask("pull", true);
	result(talk_until(migrated), "a pulled cable: PATH_MIG at both ends");
	talk_for(0.3);
	printf("# the pulled cable: the longest pause is %.3f s\n", stall);
	result(is_short(stall), "a pulled cable: a pause below 2 s");
	result(on_way(1), "a pulled cable: both are on the other way");
	result(sides[0].migrated == 1 && sides[1].migrated == 1 &&
		       !sides[0].migrate_errors && !sides[1].migrate_errors,
	       "a pulled cable: one event at each end");
}

static void back_by_hand(void)
{
	ask("plug", true);
	rearm_all(0);
	result(talk_until(armed), "both ends are armed again");
	sides[0].migrated = sides[1].migrated = 0;
	stall = 0;
	result(!set_state(1, IBV_MIG_MIGRATED), "the program forces one end");
	result(talk_until(migrated), "by hand: PATH_MIG at both ends");
	result(on_way(0), "by hand: both are on the first way");
	ask("pull-other", true);
	talk_for(0.5);
	printf("# by hand: the longest pause is %.3f s\n", stall);
	end_talk();
	result(!wrong && drained() && is_short(stall),
	       "every message arrived, with every byte right");
	printf("# %u and %u messages of %u bytes\n", sides[0].came,
	       sides[1].came, BYTES);
	disconnect_all();
	ask("plug", false);
}

static bool migrate_error(void)
{
	return sides[1].migrate_errors;
}

/* One end migrates to a path that the other end has not loaded. */
static void a_path_that_does_not_match(void)
{
	struct ibv_qp_attr attr = alternate(1, 1);

	connect_all(IBV_QPT_RC, false);
	begin_talk();
	attr.alt_ah_attr.src_path_bits ^= 1;
	must(!modify(1, attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
	     "rearm");
	must(!modify(0, alternate(0, 1),
		     IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
	     "rearm");
	result(talk_until(armed), "paths that do not match: armed");
	must(!set_state(0, IBV_MIG_MIGRATED), "migrate");
	result(talk_until(migrate_error) && !sides[1].migrated,
	       "paths that do not match: PATH_MIG_ERR");
	disconnect_all();
}

static void unreliable(void)
{
	connect_all(IBV_QPT_UC, true);
	begin_talk();
	result(talk_until(armed), "UC: both ends are armed");
	must(!set_state(0, IBV_MIG_MIGRATED), "migrate");
	result(talk_until(migrated) && on_way(1),
	       "UC: by hand: PATH_MIG at both ends");
	end_talk();
	disconnect_all();
}

/* --- datagrams with a static rate --- */

#define QKEY  0x1234
#define MTU   4096
#define DEPTH 128

static void post_datagram(const struct side *s, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)s->out, MTU, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = sides[1].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	must(!ibv_post_send(s->qp, &wr, &bad), "post_send");
}

static void post_room(const struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->in, MTU + 40, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(s->qp, &wr, &bad), "post_recv");
}

/* Send datagrams to @ah for a second. Returns Gbit/s of payload. */
static double datagrams_to(struct ibv_ah *ah)
{
	double begin = seconds(), now;
	unsigned under_way = 0, sent = 0;
	struct ibv_wc wc;

	while ((now = seconds()) < begin + 1) {
		for (; under_way < DEPTH; under_way++)
			post_datagram(&sides[0], ah);
		while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
			under_way--;
			sent++;
		}
		while (ibv_poll_cq(sides[1].cq, 1, &wc) == 1)
			post_room(&sides[1]);
	}
	for (double end = now + LONG; under_way && seconds() < end;)
		under_way -= ibv_poll_cq(sides[0].cq, 1, &wc) == 1;
	return sent * 8.0 * MTU / (now - begin) / 1e9;
}

static void rates_of_datagrams(void)
{
	struct ibv_ah_attr attr = path_of(0, 0);
	struct ibv_ah *fast, *slow;
	double free, got = 0;

	for (int i = 0; i < SIDES; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = sides[i].cq,
			.recv_cq = sides[i].cq,
			.qp_type = IBV_QPT_UD,
			.cap = { DEPTH, DEPTH, 1, 1, 0 },
		};

		sides[i].qp = ibv_create_qp(sides[i].pd, &init);
		must(sides[i].qp != NULL, "QP");
		rc_start_datagrams(sides[i].qp, QKEY);
		for (int n = 0; n < DEPTH; n++)
			post_room(&sides[i]);
	}
	attr.static_rate = 1;
	errno = 0;
	result(!ibv_create_ah(sides[0].pd, &attr) && errno == EINVAL,
	       "a static rate that does not exist");
	attr.static_rate = IBV_RATE_MAX;
	fast = ibv_create_ah(sides[0].pd, &attr);
	attr.static_rate = IBV_RATE_2_5_GBPS;
	slow = ibv_create_ah(sides[0].pd, &attr);
	must(fast && slow, "AH");
	free = datagrams_to(fast);
	/* Try again: other programs of this machine may have slowed both
	 * measurements down. */
	for (int try = 0; try < 4 && got < 2.2 && got < free / 3; try++) {
		if (try)
			free = datagrams_to(fast);
		got = datagrams_to(slow);
	}
	printf("# datagrams: %.2f Gbit/s, at 2.5 Gbit/s %.2f\n", free, got);
	result(got > 0 && got <= 2.6,
	       "datagrams: no faster than a static rate");
	if (free < 3)
		printf("busy\n");
	else
		result(got >= 2.2 || got >= free / 3,
		       "datagrams: no slower than a static rate");
	ibv_destroy_ah(fast);
	ibv_destroy_ah(slow);
	disconnect_all();
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	bool rates = argc > 1 && strcmp(argv[1], "rate") == 0;
	bool bits = argc > SIDES;

	by_ports = argc > 1 && strcmp(argv[1], "ports") == 0;
	must((rates || by_ports || bits) && list && list[0] && list[1],
	     "path bits, devices");
	for (int i = 0; i < SIDES; i++) {
		open_side(&sides[i], list[i]);
		sides[i].bits = bits ? (unsigned)atoi(argv[1 + i]) & 1 : 0;
	}
	if (rates) {
		rates_of_datagrams();
		return failed;
	}
	if (by_ports) {
		a_pulled_cable();
		back_by_hand();
		unreliable();
		return failed;
	}
	what_is_refused();
	a_pulled_cable();
	back_by_hand();
	a_path_that_does_not_match();
	unreliable();
	return failed;
}
