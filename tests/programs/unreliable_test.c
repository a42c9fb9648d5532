/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An unreliable connection over links that damage or lose packets: a message
 * arrives whole and in order, or not at all.
 *
 *	unreliable_test [options]		receives
 *	unreliable_test [options] HOST		sends, and says how it went
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

#define MESSAGES 2000u
#define BYTES	 16384u
#define DEPTH	 64u
/* seconds without a message after which no other will come */
#define QUIET 2.0
#define LIMIT 30.0 /* seconds to wait for a completion */

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *memory; /* a slot of BYTES for each message */
static int tcp;

static struct ibv_qp *connect_peer(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = MESSAGES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = ibv_create_qp(device.pd, &init);
	struct rc_address mine, peer;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	must(qp, "ibv_create_qp");
	mine = rc_address(&device, qp, 7);
	tcp_swap(tcp, &mine, &peer, sizeof(mine));
	must(!rc_to_init(qp, IBV_ACCESS_LOCAL_WRITE), "RESET to INIT");
	attr.path_mtu = peer.mtu < mine.mtu ? peer.mtu : mine.mtu;
	attr.dest_qp_num = peer.qpn;
	attr.rq_psn = peer.psn;
	attr.ah_attr = rc_path(&device, &peer.gid, peer.lid);
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
	     "INIT to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = mine.psn;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
	     "RTR to RTS");
	return qp;
}

/* Fill in the bytes of message number @number. */
static void fill(uint8_t *to, uint64_t number)
{
	struct rng rng = { number };

	rng_fill(&rng, to, BYTES);
	memcpy(to, &number, sizeof(number));
}

static void send_all(struct ibv_qp *qp)
{
	unsigned posted = 0, done = 0;
	struct ibv_wc wc;

	while (done < MESSAGES) {
		uint8_t *at = memory + posted % DEPTH * BYTES;
		struct ibv_sge sge = { (uintptr_t)at, BYTES, mr->lkey };
		struct ibv_send_wr *bad,
			wr = { .sg_list = &sge,
			       .num_sge = 1,
			       .opcode = IBV_WR_SEND,
			       .send_flags = IBV_SEND_SIGNALED };

		if (posted < MESSAGES && posted - done < DEPTH) {
			fill(at, posted++);
			must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
			continue;
		}
		if (!rc_wait(cq, LIMIT, &wc) || wc.status != IBV_WC_SUCCESS)
			die("a SEND did not complete");
		done++;
	}
}

static void post_receives(struct ibv_qp *qp)
{
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = { (uintptr_t)memory + i * BYTES, BYTES,
				       mr->lkey };
		struct ibv_recv_wr *bad,
			wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	}
}

struct result {
	uint32_t got, wrong;
};

/* Is the message of @wc whole, and later than message *@last? */
static bool is_good(const struct ibv_wc *wc, int64_t *last)
{
	static uint8_t want[BYTES];
	const uint8_t *at = memory + wc->wr_id * BYTES;
	uint64_t number;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != BYTES)
		return false;
	memcpy(&number, at, sizeof(number));
	if (number >= MESSAGES || (int64_t)number <= *last)
		return false;
	*last = (int64_t)number;
	fill(want, number);
	return memcmp(at, want, BYTES) == 0;
}

static struct result receive_all(void)
{
	struct result r = { 0 };
	int64_t last = -1;
	struct ibv_wc wc;

	while (r.got < MESSAGES && rc_wait(cq, QUIET, &wc)) {
		r.got++;
		r.wrong += !is_good(&wc, &last);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct result r = { 0 }, there;
	struct ibv_qp *qp;
	bool good;

	options.host = rc_read_options(&options, argc, argv)[0];
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, MESSAGES + DEPTH, NULL, NULL, 0);
	memory = calloc(MESSAGES, BYTES);
	must(cq && memory, "memory");
	mr = ibv_reg_mr(device.pd, memory, (size_t)MESSAGES * BYTES,
			IBV_ACCESS_LOCAL_WRITE);
	must(mr, "ibv_reg_mr");
	tcp = tcp_meet(&options);
	qp = connect_peer();
	if (!options.host)
		post_receives(qp);
	tcp_barrier(tcp);
	if (options.host)
		send_all(qp);
	else
		r = receive_all();
	tcp_swap(tcp, &r, &there, sizeof(r));
	if (!options.host)
		return 0;
	good = !there.wrong && there.got < MESSAGES && there.got > MESSAGES / 2;
	printf("%sok UC: %u of %u messages came, %u of them wrong\n",
	       good ? "" : "not ", there.got, MESSAGES, there.wrong);
	return !good;
}
