/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of tagged messages to a shared receive queue. */
#include "conformance.h"

/*
 * The table of messages to a shared receive queue with tag matching. Expected
 * results follow from infiniband/tm_types.h, from ibv_post_srq_ops(3), and,
 * where these leave a result open, from docs/VERBS.md. One tagged buffer of 64
 * bytes is in the list.
 */

#define TAG_BUFFER 64
#define TAG	   0x1122334455667788
#define EXACT	   UINT64_MAX
/* Offset in memory of the data that the receiver fetches by a READ. */
#define REST	(BYTES + 4096)
#define UNKNOWN 9 /* an opcode that no tag matching header has */

enum tag_wrong {
	ALL_RIGHT,
	NO_SPARE,     /* side b posts no untagged RECV */
	TAG_KEY,      /* the lkey of the tagged buffer does not exist */
	SPARE_KEY,    /* the lkey of the untagged RECV does not exist */
	NO_HEADER,    /* the message is shorter than its tag matching header */
	OWN_SENDS,    /* side b's queue pair has a send queue for its program */
	NO_SUCH_RKEY, /* the rkey in the rendezvous header does not exist */
};

// clang-format off
#define MATCHED	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH
#define WHOLE	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID
#define DATA	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_DATA_VALID
#define STRAY	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, 0
#define NO_TAG	  IBV_WC_TM_NO_TAG, IBV_WC_SUCCESS, 0
#define HALF	  IBV_WC_TM_RECV, IBV_WC_TM_RNDV_INCOMPLETE, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID
/* a completion with an error, of which only the status is checked */
#define BAD(s)	  -1, IBV_WC_##s, 0
#define NO_MORE	  -1, NO_STATUS, 0
static const struct tag_row {
	uint8_t op;	   /* opcode in the message's tag matching header */
	/* bytes behind the header, or bytes that a rendezvous fetches */
	uint32_t length;
	/* Tag and mask of side b's buffer; the message's tag is TAG. */
	uint64_t tag, mask;
	enum tag_wrong wrong;
	int a_status;
	struct {
		int opcode, status;
		unsigned flags;
	} b[2];
	int b_state;
	const char *name;
} tag_rows[] = {
/* header	  bytes	buffer's tag, mask	wrong		sender			its completions			  then */
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager" },
{ IBV_TMH_EAGER, 0,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, no data" },
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		NO_SPARE,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, needs no receive" },
{ IBV_TMH_EAGER, 64,	TAG & 0xff00, 0xff00,	ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, by its mask" },
{ IBV_TMH_EAGER, 64,	0, 0,			ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, any tag" },
{ IBV_TMH_EAGER, 64,	TAG, 0xff00,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "a tag beyond its mask meets nothing" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "eager, unexpected" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		NO_SPARE,	IBV_WC_RNR_RETRY_EXC_ERR, { { NO_MORE }, { NO_MORE } },	  IBV_QPS_RTS, "unexpected, no receive" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		SPARE_KEY,	IBV_WC_REM_OP_ERR,	{ { BAD(LOC_PROT_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "unexpected, receive without a key" },
{ IBV_TMH_EAGER, 65,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_REM_INV_REQ_ERR, { { BAD(LOC_LEN_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "eager, longer than the buffer" },
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		TAG_KEY,	IBV_WC_REM_OP_ERR,	{ { BAD(LOC_PROT_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "eager, buffer without a key" },
{ IBV_TMH_NO_TAG, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "without a tag" },
{ IBV_TMH_FIN, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "FIN of nothing" },
{ UNKNOWN, 64,		TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "unknown opcode" },
{ IBV_TMH_EAGER, 0,	TAG, EXACT,		NO_HEADER,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "less than a header" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { MATCHED }, { DATA } },	  IBV_QPS_RTS, "rendezvous" },
{ IBV_TMH_RNDV, 64,	TAG + 1, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, unexpected" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		OWN_SENDS,	IBV_WC_SUCCESS,		{ { HALF }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, the program's sends" },
{ IBV_TMH_RNDV, 65,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { HALF }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, longer than the buffer" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		NO_SUCH_RKEY,	IBV_WC_SUCCESS,		{ { MATCHED }, { BAD(REM_ACCESS_ERR) } }, IBV_QPS_ERR, "rendezvous, no such rkey" },
};
// clang-format on

static void make_tag_srq(const struct tag_row *r)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = device.pd,
		.cq = cq_b,
		.tm_cap = { .max_num_tags = 1, .max_ops = 1 },
	};
	struct ibv_sge sge = { (uintptr_t)memory, TAG_BUFFER,
			       r->wrong == TAG_KEY ? 0 : mr->lkey };
	struct ibv_sge spare = { (uintptr_t)memory + TAG_BUFFER, 1024,
				 r->wrong == SPARE_KEY ? 0 : mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &spare, .num_sge = 1 };
	struct ibv_ops_wr *bad_op, op = { .opcode = IBV_WR_TAG_ADD };

	op.tm.add.sg_list = &sge;
	op.tm.add.num_sge = 1;
	op.tm.add.tag = r->tag;
	op.tm.add.mask = r->mask;
	srq = ibv_create_srq_ex(device.context, &init);
	must(srq && !ibv_post_srq_ops(srq, &op, &bad_op), "a tag");
	must(r->wrong == NO_SPARE || !ibv_post_srq_recv(srq, &wr, &bad),
	     "a receive");
}

static struct ibv_qp *make_tag_qp(const struct tag_row *r)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = cq_a,
					 .recv_cq = cq_a,
					 .srq = srq,
					 .cap.max_send_wr =
						 r->wrong == OWN_SENDS };

	return ibv_create_qp(device.pd, &init);
}

static void send_tagged(struct ibv_qp *a, const struct tag_row *r)
{
	struct {
		struct ibv_tmh tmh;
		struct ibv_rvh rvh;
		uint8_t rest[TAG_BUFFER];
	} *m = (void *)(memory + BYTES);
	struct ibv_sge sge = { (uintptr_t)m, sizeof(m->tmh) + r->length,
			       mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 2,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	m->tmh = (struct ibv_tmh){ .opcode = r->op, .tag = htobe64(TAG) };
	if (r->op == IBV_TMH_RNDV) {
		sge.length = sizeof(m->tmh) + sizeof(m->rvh);
		m->rvh.va = htobe64((uintptr_t)memory + REST);
		m->rvh.rkey = htobe32(r->wrong == NO_SUCH_RKEY ? 0 : mr->rkey);
		m->rvh.len = htobe32(r->length);
	}
	if (r->wrong == NO_HEADER)
		sge.length = sizeof(m->tmh) - 1;
	must(!ibv_post_send(a, &wr, &bad), "ibv_post_send");
}

/* Check completion number @n at the shared queue, which the row may not
 * have. */
static void judge_tagged(const struct tag_row *r, unsigned nth)
{
	struct ibv_wc wc = { .status = 0 };
	int status = r->b[nth].status, got = NO_STATUS;

	if (rc_wait(cq_b, status == NO_STATUS ? QUIET : WAIT, &wc))
		got = (int)wc.status;
	verdict(got == status, "%s: completion %u: %s", r->name, nth,
		got < 0 ? "none" : ibv_wc_status_str(got));
	if (got == status && r->b[nth].opcode >= 0)
		verdict((int)wc.opcode == r->b[nth].opcode &&
				wc.wc_flags == r->b[nth].flags,
			"%s: completion %u: opcode %d, flags 0x%x", r->name,
			nth, (int)wc.opcode, wc.wc_flags);
}

static void judge_tag_row(const struct tag_row *r)
{
	struct ibv_qp *a = make_qp(IBV_QPT_RC, cq_a), *b;
	struct ibv_sge fin = { (uintptr_t)memory + 2048, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &fin, .num_sge = 1 };
	int status;

	make_tag_srq(r);
	b = make_tag_qp(r);
	must(a && b, "two queue pairs");
	connect_to(a, &types[0], good_values(b->qp_num));
	connect_to(b, &types[0], good_values(a->qp_num));
	must(!ibv_post_recv(a, &wr, &bad), "a receive");
	send_tagged(a, r);
	status = status_within(cq_a, WAIT);
	verdict(status == r->a_status, "%s: sender: %s", r->name,
		status < 0 ? "nothing" : ibv_wc_status_str(status));
	judge_tagged(r, 0);
	judge_tagged(r, 1);
	verdict(state_of(b) == r->b_state, "%s: in %s", r->name,
		state_names[state_of(b)]);
	must(!ibv_destroy_qp(a) && !ibv_destroy_qp(b), "ibv_destroy_qp");
	must(!ibv_destroy_srq(srq), "ibv_destroy_srq");
	while (status_within(cq_a, 0) >= 0)
		;
}

void judge_tags(void)
{
	for (size_t i = 0; i < COUNT(tag_rows); i++)
		judge_tag_row(&tag_rows[i]);
	line("messages to tags", "RC");
}
