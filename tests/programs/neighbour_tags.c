/* SPDX-License-Identifier: BSD-2-Clause */
/* Case: long messages that A receives by their tags, beside a connection of its
 * own. */
#include "neighbour_test.h"

#include <endian.h>
#include <infiniband/tm_types.h>

#define TAG	 7u
#define MIB	 (1u << 20)
#define MESSAGES 3
/* The tagged buffer lies behind the bytes of A's own connection. */
#define BUFFER_AT 4096u
/* The least number of round trips of A's own connection while one message
 * arrives. There would be none if the message were copied in one piece; on a
 * busy machine there are few. */
#define ROUNDS_LEAST 4

/* Each MiB of a message begins with the number of its first byte. */
static void send_tagged(struct side *b)
{
	const struct ibv_tmh tmh = { .opcode = IBV_TMH_EAGER,
				     .tag = htobe64(TAG) };
	struct ibv_wc wc;
	uint8_t go;

	memcpy(b->memory, &tmh, sizeof(tmh));
	for (uint64_t at = MIB; at < HOARD; at += MIB)
		memcpy(b->memory + at, &at, sizeof(at));
	for (unsigned i = 0; i < MESSAGES; i++) {
		tcp_recv(b->tcp, &go, 1);
		must(!post(b, IBV_WR_SEND, HOARD), "post");
		must(rc_wait(b->cq, 30, &wc) && !wc.status, "SEND");
	}
	pause();
}

struct tagged {
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
};

static void open_tagged(struct side *a, struct tagged *t)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = a->device.pd,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
	};
	struct ibv_qp_init_attr qp = { .send_cq = a->cq,
				       .recv_cq = a->cq,
				       .qp_type = IBV_QPT_RC };

	t->cq = ibv_create_cq_ex(a->device.context, &cq);
	must(t->cq, "ibv_create_cq_ex");
	srq.cq = ibv_cq_ex_to_cq(t->cq);
	t->srq = ibv_create_srq_ex(a->device.context, &srq);
	must(t->srq, "ibv_create_srq_ex");
	ibv_destroy_qp(a->qp);
	qp.srq = t->srq;
	a->qp = ibv_create_qp(a->device.pd, &qp);
	must(a->qp && !rc_to_init(a->qp, RC_ALL_ACCESS), "queue pair");
}

static void close_tagged(struct side *a, struct tagged *t)
{
	must(!ibv_destroy_qp(a->qp), "ibv_destroy_qp");
	a->qp = NULL;
	must(!ibv_destroy_srq(t->srq), "ibv_destroy_srq");
	must(!ibv_destroy_cq(ibv_cq_ex_to_cq(t->cq)), "ibv_destroy_cq");
}

static void add_buffer(const struct side *a, struct tagged *t)
{
	struct ibv_sge sge = { (uintptr_t)a->memory + BUFFER_AT, HOARD,
			       a->mr->lkey };
	struct ibv_ops_wr *bad, wr = {
		.opcode = IBV_WR_TAG_ADD,
		.tm.add = { .sg_list = &sge,
			    .num_sge = 1,
			    .tag = TAG,
			    .mask = UINT64_MAX },
	};

	must(!ibv_post_srq_ops(t->srq, &wr, &bad), "ibv_post_srq_ops");
}

/* Returns whether the tagged message has arrived, and checks its completion. */
static bool poll_tagged(struct tagged *t)
{
	struct ibv_poll_cq_attr attr = { 0 };

	if (ibv_start_poll(t->cq, &attr))
		return false;
	expect(!t->cq->status, "%s", ibv_wc_status_str(t->cq->status));
	expect(ibv_wc_read_opcode(t->cq) == IBV_WC_TM_RECV, "opcode %d",
	       ibv_wc_read_opcode(t->cq));
	expect(ibv_wc_read_byte_len(t->cq) == HOARD - sizeof(struct ibv_tmh),
	       "%u bytes", ibv_wc_read_byte_len(t->cq));
	ibv_end_poll(t->cq);
	return true;
}

static uint64_t word_at(const struct side *a, uint64_t at)
{
	const uint8_t *to = a->memory + BUFFER_AT - sizeof(struct ibv_tmh);
	uint64_t word;

	memcpy(&word, to + at, sizeof(word));
	return word;
}

/* Returns the number of round trips that ended after the first MiB of the
 * message had come, and before the last. */
static unsigned receive_tagged(struct side *a, struct tagged *t, struct loop *l)
{
	unsigned rounds = 0;
	uint8_t go = 0;

	memset(a->memory + BUFFER_AT, 0, HOARD);
	add_buffer(a, t);
	tcp_send(a->tcp, &go, 1);
	while (!poll_tagged(t) && !is_broken) {
		(void)go_round(a, l);
		rounds += word_at(a, MIB) && !word_at(a, HOARD - MIB);
	}
	for (uint64_t at = MIB; at < HOARD; at += MIB)
		expect(word_at(a, at) == at, "MiB %u is wrong",
		       (unsigned)(at / MIB));
	return rounds;
}

void turns_beside_tagged(void)
{
	struct side a = { 0 };
	struct tagged t;
	struct loop l;

	begin(&a, HOARD + BUFFER_AT, send_tagged);
	open_tagged(&a, &t);
	open_loop(&a, &l);
	meet(&a, 0);
	for (unsigned i = 0; i < MESSAGES && !is_broken; i++) {
		unsigned rounds = receive_tagged(&a, &t, &l);

		expect(rounds >= ROUNDS_LEAST, "%u round trips in 256 MiB",
		       rounds);
	}
	close_loop(&l);
	close_tagged(&a, &t);
	end(&a);
}
