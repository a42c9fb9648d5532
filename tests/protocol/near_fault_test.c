/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fault ends a request between two programs of one host as it does with
 * packets, and both follow the table of faults (core/fault.c). Each case is
 * played over shared memory and over packets: a good WRITE, the faulty request,
 * another WRITE.
 */
#include "core/fault.h"
#include "tests/protocol/near_fixture.h"
#include "tests/support/seeds.h"

#define EVENTS 8
/* Value of @fault if the requester itself detects the fault, with @status. */
#define LOCAL FAULT_COUNT

struct fault_case {
	const char *name;
	enum vb_wr_op op;
	uint32_t len;
	/* the expected fault; FAULT_NONE: the request succeeds */
	int fault;
	/* expected completion status of the request, if @fault is LOCAL */
	enum vb_wc_status status;
	bool bad_rkey, bad_lkey, misaligned, beyond;
	/* the access rights that side 1's queue pair lacks */
	bool no_access, no_reads;
	/* bytes of the RECV that side 1 posts; 0: side 1 posts none */
	uint32_t room;
	bool bad_recv;
	uint8_t rnr_retry;
};

/* What the programs of both sides see: completions, states and events. */
struct outcome {
	struct ends ends[SIM_SIDES];
	enum vb_qp_state state[SIM_SIDES];
	int events[SIM_SIDES][EVENTS];
	uint8_t target[64];
};

#define RKEY(op, len)                                                          \
	{                                                                      \
#op " " #len " by a bad rkey", WR_##op, len, FAULT_RKEY,       \
			.bad_rkey = true, .room = 1                            \
	}
#define BEYOND(op, len)                                                        \
	{                                                                      \
#op " " #len " beyond the region", WR_##op, len, FAULT_RKEY,   \
			.beyond = true, .room = 1                              \
	}
#define NO_ACCESS(op, len)                                                     \
	{                                                                      \
#op " " #len " without the right", WR_##op, len,               \
			FAULT_ACCESS_FLAGS, .no_access = true, .room = 1       \
	}
#define SMALL(op, len)                                                         \
	{                                                                      \
#op " " #len " into too small a receive", WR_##op, len,        \
			FAULT_RQE_TOO_SMALL, .room = (len)-1                   \
	}
#define BAD_RECV(op, len)                                                      \
	{                                                                      \
#op " " #len " into a receive with a bad lkey", WR_##op, len,  \
			FAULT_RQE_LKEY, .room = len, .bad_recv = true          \
	}
#define BAD_LKEY(op, len)                                                      \
	{                                                                      \
#op " " #len " with a bad lkey", WR_##op, len, LOCAL,          \
			WC_LOC_PROT_ERR, .bad_lkey = true, .room = len         \
	}
#define NO_RECV(op, len, retry)                                                \
	{                                                                      \
#op " " #len " without a receive, " #retry " retries",         \
			WR_##op, len, LOCAL, WC_RNR_RETRY_EXC_ERR,             \
			.rnr_retry = retry                                     \
	}
#define GOOD(op, len)                                                          \
	{                                                                      \
#op " " #len, WR_##op, len, FAULT_NONE, .room = len ? len : 1  \
	}

// clang-format off
static const struct fault_case cases[] = {
	GOOD(WRITE, 1), GOOD(WRITE, 5000), GOOD(WRITE, 300000), GOOD(WRITE, 0),
	GOOD(WRITE_IMM, 0), GOOD(WRITE_IMM, 73), GOOD(WRITE_IMM, 5000),
	GOOD(SEND, 0), GOOD(SEND, 72), GOOD(SEND, 73), GOOD(SEND, 4096),
	GOOD(SEND, 4097), GOOD(SEND_IMM, 300000),
	GOOD(READ, 0), GOOD(READ, 17), GOOD(READ, 300000),
	GOOD(FETCH_ADD, 8), GOOD(CMP_SWAP, 8), GOOD(ATOMIC_WRITE, 8),
	RKEY(WRITE, 1), RKEY(WRITE, 4096), RKEY(WRITE, 4097), RKEY(WRITE, 300000),
	RKEY(WRITE_IMM, 10), RKEY(WRITE_IMM, 4097), RKEY(READ, 1),
	RKEY(READ, 300000), RKEY(FETCH_ADD, 8), RKEY(CMP_SWAP, 8),
	RKEY(ATOMIC_WRITE, 8),
	BEYOND(WRITE, 100), BEYOND(WRITE, 300000), BEYOND(READ, 100),
	BEYOND(FETCH_ADD, 8),
	NO_ACCESS(WRITE, 0), NO_ACCESS(WRITE, 100), NO_ACCESS(WRITE_IMM, 100),
	NO_ACCESS(READ, 100), NO_ACCESS(READ, 0), NO_ACCESS(FETCH_ADD, 8),
	NO_ACCESS(CMP_SWAP, 8), NO_ACCESS(ATOMIC_WRITE, 8),
	SMALL(SEND, 2), SMALL(SEND, 4096), SMALL(SEND, 4097), SMALL(SEND, 300000),
	BAD_RECV(SEND, 2), BAD_RECV(SEND_IMM, 4096), BAD_RECV(SEND, 4097),
	BAD_RECV(SEND, 300000),
	BAD_LKEY(SEND, 2), BAD_LKEY(SEND, 4097), BAD_LKEY(WRITE, 2),
	BAD_LKEY(WRITE, 300000), BAD_LKEY(READ, 2), BAD_LKEY(FETCH_ADD, 8),
	NO_RECV(SEND, 2, 0), NO_RECV(SEND, 2, 3), NO_RECV(SEND, 300000, 1),
	NO_RECV(WRITE_IMM, 2, 2),
	{ "FETCH_ADD of no word", WR_FETCH_ADD, 8, FAULT_ALIGNMENT,
	  .misaligned = true },
	{ "CMP_SWAP of no word", WR_CMP_SWAP, 8, FAULT_ALIGNMENT,
	  .misaligned = true },
	{ "ATOMIC WRITE of no word", WR_ATOMIC_WRITE, 8, FAULT_ALIGNMENT,
	  .misaligned = true },
	{ "ATOMIC WRITE of 4 bytes", WR_ATOMIC_WRITE, 4, LOCAL, WC_LOC_LEN_ERR },
	{ "FETCH_ADD into 4 bytes", WR_FETCH_ADD, 4, LOCAL, WC_LOC_LEN_ERR },
	{ "READ of a peer that serves none", WR_READ, 10, FAULT_TOO_MANY_READS,
	  .no_reads = true },
	{ "FETCH_ADD to a peer that serves none", WR_FETCH_ADD, 8,
	  FAULT_TOO_MANY_READS, .no_reads = true },
	{ "SEND that invalidates a region", WR_SEND_INV, 10, FAULT_INV_RKEY,
	  .room = 10 },
	{ "SEND of 5000 that invalidates a region", WR_SEND_INV, 5000,
	  FAULT_INV_RKEY, .room = 5000 },
	{ "no operation", 12, 10, LOCAL, WC_LOC_QP_OP_ERR },
};
// clang-format on

static struct vb_qp_attr attr_of(const struct fault_case *c)
{
	struct vb_qp_attr attr = sim_attr;

	attr.timeout = 12;
	attr.retry_cnt = 3;
	attr.rnr_retry = c->rnr_retry ? c->rnr_retry : 0;
	/* path MTU code of 4096 bytes: the longest record is one packet */
	attr.path_mtu = 5;
	if (c->no_access)
		attr.access_flags = ACCESS_LOCAL_WRITE;
	if (c->no_reads)
		attr.max_dest_rd_atomic = 0;
	return attr;
}

static void post_case(struct stage *t, const struct fault_case *c)
{
	uint32_t at = 4096 + c->misaligned;
	struct vb_send_wqe wqe = stage_wqe(t, c->op, at, c->len);

	if (c->bad_rkey)
		wqe.rkey = NO_KEY;
	if (c->beyond)
		wqe.remote_addr = (uintptr_t)t->mem[1] + STAGE_MEM -
				  (c->op == WR_FETCH_ADD ? 0 : 4);
	if (c->op == WR_SEND_INV)
		wqe.imm = t->mr[1]->key;
	stage_post(t, &wqe, at, c->bad_lkey ? NO_KEY : t->mr[0]->key);
}

/* Post the good WRITE, the faulty request and the last WRITE. @apart: the first
 * request ends before the second is posted. A responder that ends without a NAK
 * does not send the ACKs that are still due. */
static void post_all(struct stage *t, const struct fault_case *c, bool apart)
{
	struct vb_send_wqe good = stage_wqe(t, WR_SEND, 0, 20);

	stage_recv(t, 0, 64, t->mr[1]->key);
	if (c->room)
		stage_recv(t, 500000, c->room,
			   c->bad_recv ? NO_KEY : t->mr[1]->key);
	stage_post(t, &good, 0, t->mr[0]->key);
	if (apart)
		sim_settle(&t->sim, t->sim.now + VB_SEC);
	post_case(t, c);
	good = stage_wqe(t, WR_READ, 100, 20);
	stage_post(t, &good, 100, t->mr[0]->key);
}

static void play_case(const struct fault_case *c, const struct sim_path *path,
		      uint64_t seed, struct outcome *out)
{
	const struct vb_qp_attr attr = attr_of(c);
	struct stage *t = stage_open(path, seed, &attr);

	memset(out, 0, sizeof(*out));
	post_all(t, c, !path || seed % 2);
	assert_true(sim_settle(&t->sim, t->sim.now + 30 * VB_SEC));
	if (path)
		assert_int_equal(t->sim.sent, 0);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		stage_poll(t, i, &out->ends[i]);
		out->state[i] = atomic_load(&t->pair.qp[i]->state);
		for (unsigned e = 0; e < EVENTS; e++)
			out->events[i][e] = sim_event(&t->sim, i);
	}
	memcpy(out->target, t->mem[1] + 4096, sizeof(out->target));
	stage_close(t);
}

/* Returns the status of the requester's completion by the table of faults. */
static enum vb_wc_status status_of(const struct fault_case *c)
{
	const struct vb_fault_row *row;

	if (c->fault == FAULT_NONE)
		return WC_SUCCESS;
	if (c->fault == LOCAL)
		return c->status;
	row = vb_fault_rc((enum vb_fault)c->fault);
	return row->action == ACT_DIE ? WC_RETRY_EXC_ERR
				      : vb_fault_nak_status(row->syndrome);
}

/* Check the responder by the table of faults: the receive that the request
 * consumed, or an event. */
static void check_responder(const struct fault_case *c,
			    const struct outcome *out)
{
	const struct vb_fault_row *row;
	bool told = false;

	if (c->fault == FAULT_NONE || c->fault == LOCAL)
		return;
	row = vb_fault_rc((enum vb_fault)c->fault);
	assert_int_equal(out->state[1], QPS_ERR);
	for (unsigned i = 0; i < out->ends[1].recvs; i++)
		told |= out->ends[1].recv[i] == row->status;
	for (unsigned i = 0; i < EVENTS; i++)
		told |= out->events[1][i] == row->event && row->event >= 0;
	assert_true(told);
}

static void check_case(const struct fault_case *c, const struct outcome *out)
{
	enum vb_wc_status status = status_of(c);

	assert_int_equal(out->ends[0].sends, 3);
	assert_int_equal(out->ends[0].send[0], WC_SUCCESS);
	if (out->ends[0].send[1] != status)
		fail_msg("%s: status %u, the table says %u", c->name,
			 out->ends[0].send[1], status);
	if (!c->no_access && !c->no_reads)
		assert_int_equal(out->ends[0].send[2],
				 status ? WC_FLUSH_ERR : WC_SUCCESS);
	check_responder(c, out);
}

static void fault__ends_as_with_packets(void **state)
{
	/* With odd and even seeds the requests are posted together and apart.
	 */
	const uint64_t seeds = VB_MAX(4 / seeds_divisor(), 2u);

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct outcome wire, near;

		play_case(&cases[i], NULL, i, &wire);
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			play_case(&cases[i], &near_sim_path, seed, &near);
			if (memcmp(&wire, &near, sizeof(near)))
				fail_msg("%s: statuses %u %u, with packets %u "
					 "%u; receive %u, with packets %u; "
					 "event %d, with packets %d",
					 cases[i].name, near.ends[0].send[1],
					 near.ends[0].send[2],
					 wire.ends[0].send[1],
					 wire.ends[0].send[2],
					 near.ends[1].recv[1],
					 wire.ends[1].recv[1],
					 near.events[1][0], wire.events[1][0]);
			check_case(&cases[i], &near);
		}
	}
}

/* The kernel refuses the first copy. Requests that were done earlier in this
 * step must not be sent again as packets. */
static void denied__goes_on_by_packets(void **state)
{
	const struct near_plan plan = { HARM_DENY, 0, 0, 0 };

	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct stage *t = stage_open(&near_sim_path, seed, NULL);
		const uint32_t lens[] = { 0, 45, 7000 };
		struct ends e = { 0 };

		near_sim_plan(&t->sim, &plan);
		for (unsigned i = 0; i < VB_COUNT(lens); i++) {
			struct vb_send_wqe wqe =
				stage_wqe(t, WR_READ, 8192 * i, lens[i]);

			stage_post(t, &wqe, 8192 * i, t->mr[0]->key);
		}
		assert_true(sim_settle(&t->sim, t->sim.now + 30 * VB_SEC));
		assert_true(t->sim.sent > 0);
		stage_poll(t, 0, &e);
		assert_int_equal(e.sends, VB_COUNT(lens));
		for (unsigned i = 0; i < VB_COUNT(lens); i++) {
			assert_int_equal(e.send[i], WC_SUCCESS);
			assert_memory_equal(t->mem[0] + 8192 * i,
					    t->mem[1] + 8192 * i, lens[i]);
		}
		stage_close(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault__ends_as_with_packets),
		cmocka_unit_test(denied__goes_on_by_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
