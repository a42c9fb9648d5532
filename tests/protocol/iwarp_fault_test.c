/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: faults of either side, the Terminate for each, and missing memory. */
#include <sys/mman.h>

#include "tests/protocol/iwarp_fixture.h"

/* A request with a wrong key, range or access right, and its Terminate. */

struct bad_key {
	enum vb_wr_op op;
	/* distance of the request's address from the remote memory, in bytes */
	int32_t offset;
	uint32_t len;
	bool no_key, other_domain, no_right;
	uint8_t layer, etype, code;
};

static const struct bad_key bad_keys[] = {
	{ WR_WRITE, 0, 64, true, false, false, 1, 1, 0 },
	{ WR_WRITE, -1, 64, false, false, false, 1, 1, 1 },
	{ WR_WRITE, PIPE_MEM, 1, false, false, false, 1, 1, 1 },
	{ WR_WRITE, PIPE_MEM - 63, 64, false, false, false, 1, 1, 1 },
	{ WR_WRITE, 0, 64, false, true, false, 1, 1, 2 },
	{ WR_WRITE, 0, 64, false, false, true, 0, 1, 2 },
	{ WR_READ, 0, 64, true, false, false, 0, 1, 0 },
	{ WR_READ, PIPE_MEM - 63, 64, false, false, false, 0, 1, 1 },
	{ WR_READ, 0, 64, false, true, false, 0, 1, 3 },
	{ WR_READ, 0, 64, false, false, true, 0, 1, 2 },
	{ WR_FETCH_ADD, 0, 8, true, false, false, 0, 1, 0 },
	{ WR_CMP_SWAP, 0, 8, false, false, true, 0, 1, 2 },
	{ WR_FETCH_ADD, 4, 8, false, false, false, 0, 2, 0xff },
};

static void try_key(const struct bad_key *k)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe w = wr(k->op, k->len);
	bool asks = k->op != WR_WRITE;
	struct vb_mr *other = NULL;
	struct vb_pd *pd;

	assert_int_equal(vb_pd_create(&p->sim.side[1].adapter, &pd), 0);
	assert_int_equal(
		vb_mr_register(k->other_domain ? pd : p->sim.side[1].pd,
			       p->mem[1], PIPE_MEM, (uintptr_t)p->mem[1],
			       k->no_right ? 0
					   : ACCESS_LOCAL_WRITE |
						     ACCESS_REMOTE_WRITE |
						     ACCESS_REMOTE_READ |
						     ACCESS_REMOTE_ATOMIC,
			       &other),
		0);
	w.rkey = k->no_key ? 0x77777777 : atomic_load(&other->key);
	w.remote_addr = (uintptr_t)p->mem[1] + (int64_t)k->offset;
	/* The valid READ that was posted before the faulty request
	 * completes. */
	pipe_post(p, 0, wr(WR_READ, 5000), HALF, 1);
	pipe_post_recv(p, 1, 0, 10);
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	if (asks)
		expect_sent(p, 0,
			    k->code == 0xff ? WC_REM_INV_REQ_ERR
					    : WC_REM_ACCESS_ERR);
	else
		expect_sent(p, 0, WC_SUCCESS);
	expect_recv(p, 1, WC_FLUSH_ERR);
	expect_idle(p);
	expect_term(p, k->layer, k->etype, k->code);
	/* HdrCt bits of the Terminate (RFC 5040, 4.8): M, D, for READs R. */
	assert_int_equal(term_of(p, 1)[2], k->op == WR_READ ? 0xe0 : 0xc0);
	assert_int_equal(sim_event(&p->sim, 1), k->code == 0xff
							? EVENT_QP_REQ_ERR
							: EVENT_QP_ACCESS_ERR);
	assert_int_equal(vb_mr_deregister(other), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	pipe_close(p);
}

static void iwarp__a_wrong_key_is_named(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(bad_keys); i++)
		try_key(&bad_keys[i]);
}

static void iwarp__no_receive_ends_it(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_term(p, 1, 2, 2);
	assert_int_equal(sim_event(&p->sim, 1), EVENT_QP_REQ_ERR);
	assert_int_equal(sim_event(&p->sim, 0), EVENT_QP_FATAL);
	pipe_close(p);
}

static void iwarp__too_long_for_the_receive(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	pipe_post_recv(p, 1, 0, 2999);
	pipe_post(p, 0, wr(WR_SEND, 3000), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_LOC_LEN_ERR);
	expect_term(p, 1, 2, 5);
	pipe_close(p);
}

static void iwarp__a_receive_without_memory(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	const struct vb_sge sge = { (uintptr_t)p->mem[1], 100, 0x1234 };

	sim_post_recv(p->pair.qp[1], 0, &sge, 1);
	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_LOC_PROT_ERR);
	expect_term(p, 0, 0, 0);
	pipe_close(p);
}

/* A local fault: earlier requests complete, and a Terminate tells the peer. */
static void iwarp__a_bad_local_key(void **state)
{
	static const struct vb_sge bad = { 0x1000, 8, 0x1234 };
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe w = wr(WR_WRITE, 8);

	pipe_post(p, 0, wr(WR_READ, 5000), HALF, 1);
	w.num_sge = 1;
	w.rkey = p->key[1];
	w.remote_addr = (uintptr_t)p->mem[1];
	sim_post_send(p->pair.qp[0], &w, &bad);
	pipe_post(p, 0, wr(WR_WRITE, 5), 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_sent(p, 0, WC_LOC_PROT_ERR);
	expect_sent(p, 0, WC_FLUSH_ERR);
	assert_int_equal(term_of(p, 0)[0], 0);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	pipe_close(p);
}

static void iwarp__rights_of_the_queue_pair(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	p->pair.qp[1]->attr.access_flags = ACCESS_REMOTE_READ;
	pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_term(p, 0, 1, 2);
	pipe_close(p);
}

/* Registered memory that is unmapped: no signal kills the process. */

#define GONE_BYTES (64u << 10)

struct gone {
	struct pipe *p;
	void *at;
	struct vb_mr *mr;
	struct vb_sge sge;
};

static struct gone take_away(unsigned side, bool crc)
{
	const uint32_t all =
		ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
	struct vb_mpa_terms terms = pipe_terms;
	struct gone g;

	terms.crc = crc;
	g.p = pipe_open(&terms);
	g.at = mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(g.at, MAP_FAILED);
	assert_int_equal(vb_mr_register(g.p->sim.side[side].pd, g.at,
					GONE_BYTES, (uintptr_t)g.at, all,
					&g.mr),
			 0);
	g.sge = (struct vb_sge){ (uintptr_t)g.at, GONE_BYTES,
				 atomic_load(&g.mr->key) };
	assert_int_equal(munmap(g.at, GONE_BYTES), 0);
	return g;
}

static void give_back(struct gone *g)
{
	assert_int_equal(vb_mr_deregister(g->mr), 0);
	pipe_close(g->p);
}

static void iwarp__memory_to_send_is_gone(void **state)
{
	struct gone g = take_away(0, true);
	struct vb_send_wqe w = wr_at(g.p, WR_WRITE, GONE_BYTES, 0);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	sim_post_send(g.p->pair.qp[0], &w, &g.sge);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	assert_int_equal(state_of(g.p, 1), QPS_ERR);
	give_back(&g);
}

/* Without CRCs nothing reads the memory before the socket sends the bytes. */
static void iwarp__memory_for_the_socket_is_gone(void **state)
{
	struct gone g = take_away(0, false);
	struct vb_qp *qp = g.p->pair.qp[0];
	struct vb_send_wqe w = wr_at(g.p, WR_WRITE, GONE_BYTES, 0);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	sim_post_send(qp, &w, &g.sge);
	vb_mutex_lock(&qp->drive);
	vb_iw_send(qp, g.p->sim.now, &g.p->tx);
	assert_true(g.p->tx.count > 2);
	vb_iw_send_fault(qp, &g.p->tx, g.p->sim.now);
	vb_mutex_unlock(&qp->drive);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	give_back(&g);
}

static void iwarp__remote_memory_is_gone(void **state)
{
	static const enum vb_wr_op ops[] = { WR_WRITE, WR_READ };

	for (unsigned i = 0; i < VB_COUNT(ops); i++) {
		struct gone g = take_away(1, true);
		struct vb_send_wqe w = wr(ops[i], 1000);

		w.remote_addr = g.sge.addr;
		w.rkey = g.sge.lkey;
		pipe_post(g.p, 0, w, 0, 1);
		pipe_settle(g.p);
		expect_sent(g.p, 0, i ? WC_REM_ACCESS_ERR : WC_SUCCESS);
		expect_term(g.p, 0, 1, 0xff);
		give_back(&g);
	}
}

static void iwarp__memory_for_an_answer_is_gone(void **state)
{
	struct gone g = take_away(0, true);
	struct vb_send_wqe w = wr(WR_READ, 1000);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	w.remote_addr = (uintptr_t)g.p->mem[1];
	g.sge.length = 1000;
	sim_post_send(g.p->pair.qp[0], &w, &g.sge);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	assert_int_equal(term_of(g.p, 0)[0], 0);
	give_back(&g);
}

static void iwarp__a_receive_is_gone(void **state)
{
	struct gone g = take_away(1, true);

	sim_post_recv(g.p->pair.qp[1], 0, &g.sge, 1);
	pipe_post(g.p, 0, wr(WR_SEND, 1000), 0, 1);
	pipe_settle(g.p);
	expect_recv(g.p, 1, WC_LOC_PROT_ERR);
	expect_term(g.p, 0, 0, 0);
	give_back(&g);
}

/* A program that changes a message's memory while it is sent, so that its CRC
 * may not match, does not end the stream. */
static size_t change_it(struct pipe *p, unsigned side, bool sends, size_t have)
{
	if (sends)
		for (uint32_t at = 0; at < PIPE_MEM; at += 64)
			p->mem[1][at]++;
	return have;
}

static void iwarp__memory_that_changes_meanwhile(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	p->cut = change_it;
	for (unsigned i = 0; i < 4; i++)
		pipe_post(p, 0, wr(WR_READ, 50000), 0, 1);
	pipe_settle(p);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(p, 0, WC_SUCCESS);
	pipe_close(p);
}

/* A ULPDU that no correct requester sends, and the code of the Terminate that
 * answers it. */

struct bad_ulpdu {
	const char *what;
	uint8_t head[24];
	uint32_t len;
	uint8_t layer, etype, code;
};

#define U(ddp, op, word, queue, msn, mo)                                       \
	{                                                                      \
		ddp, op, 0, 0, 0, word, 0, 0, 0, queue, 0, 0, 0, msn, 0, 0, 0, \
			mo                                                     \
	}

static const struct bad_ulpdu bad_ulpdus[] = {
	{ "DDP version, tagged", { 0xc2, 0x40 }, 20, 1, 1, 4 },
	{ "DDP version, untagged", U(0x40, 0x43, 0, 0, 1, 0), 18, 1, 2, 6 },
	{ "RDMAP version", U(0x41, 0x03, 0, 0, 1, 0), 18, 0, 2, 5 },
	{ "queue", U(0x41, 0x43, 0, 4, 1, 0), 18, 1, 2, 1 },
	{ "another's queue", U(0x41, 0x43, 0, 1, 1, 0), 18, 1, 2, 1 },
	{ "opcode", U(0x41, 0x4e, 0, 0, 1, 0), 18, 0, 2, 6 },
	{ "a tagged SEND", { 0xc1, 0x43 }, 20, 0, 2, 6 },
	{ "an untagged WRITE", U(0x41, 0x40, 0, 0, 1, 0), 18, 0, 2, 6 },
	{ "MSN 0", U(0x41, 0x43, 0, 0, 0, 0), 18, 1, 2, 3 },
	{ "MSN 2", U(0x41, 0x43, 0, 0, 2, 0), 18, 1, 2, 3 },
	{ "MO", U(0x41, 0x43, 0, 0, 1, 1), 18, 1, 2, 4 },
	{ "READ's MSN", U(0x41, 0x41, 0, 1, 2, 0), 46, 1, 2, 3 },
	{ "a short READ", U(0x41, 0x41, 0, 1, 1, 0), 45, 0, 2, 0xff },
	{ "a long READ", U(0x41, 0x41, 0, 1, 1, 0), 47, 0, 2, 0xff },
	{ "a READ in two", U(0x01, 0x41, 0, 1, 1, 0), 46, 1, 2, 5 },
	{ "a short atomic", U(0x41, 0x4a, 0, 1, 1, 0), 69, 0, 2, 0xff },
	{ "short immediate data", U(0x41, 0x48, 0, 0, 1, 0), 25, 0, 2, 0xff },
	{ "an answer to nothing", { 0xc1, 0x42 }, 20, 1, 1, 0 },
	{ "an atomic's to nothing", U(0x41, 0x4b, 0, 3, 1, 0), 30, 0, 2, 6 },
	{ "no header", { 0xc1 }, 1, 1, 0, 0 },
	{ "half a header", U(0x41, 0x43, 0, 0, 1, 0), 17, 1, 0, 0 },
	{ "TO wraps",
	  { 0xc1, 0x40, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xff },
	  20,
	  1,
	  1,
	  3 },
	{ "TO's last bytes are the last there are",
	  { 0xc1, 0x40, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xfa },
	  20,
	  1,
	  1,
	  0 },
};

static void iwarp__nonsense_is_named(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(bad_ulpdus); i++) {
		const struct bad_ulpdu *bad = &bad_ulpdus[i];
		struct pipe *p = pipe_open(&pipe_terms);
		uint8_t ulpdu[128] = { 0 };
		const uint8_t *t;

		memcpy(ulpdu, bad->head, sizeof(bad->head));
		pipe_post_recv(p, 1, 0, 100);
		pipe_inject_ulpdu(p, 0, ulpdu, bad->len);
		pipe_settle(p);
		t = term_of(p, 1);
		if (t[0] != (bad->layer << 4 | bad->etype) || t[1] != bad->code)
			fail_msg("%s: layer %u, type %u, code %u", bad->what,
				 t[0] >> 4, t[0] & 15, t[1]);
		assert_int_equal(state_of(p, 1), QPS_ERR);
		assert_int_equal(state_of(p, 0), QPS_ERR);
		pipe_close(p);
	}
}

/* Segments of one message must all have the opcode of the first. */
static void iwarp__a_message_that_changes(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t first[20] = U(0x01, 0x43, 0, 0, 1, 0);
	uint8_t last[20] = U(0x41, 0x45, 0, 0, 1, 2);

	pipe_post_recv(p, 1, 0, 100);
	pipe_inject_ulpdu(p, 0, first, sizeof(first));
	pipe_inject_ulpdu(p, 0, last, sizeof(last));
	pipe_settle(p);
	assert_int_equal(term_of(p, 1)[0], 0x02);
	assert_int_equal(term_of(p, 1)[1], 6);
	expect_recv(p, 1, WC_REM_INV_REQ_ERR);
	pipe_close(p);
}

/* Immediate data that does not directly follow a WRITE is a separate
 * message. */
static void iwarp__immediate_data_alone(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t imm[26] = U(0x41, 0x48, 0, 0, 1, 0);

	for (unsigned i = 0; i < 4; i++)
		pipe_post_recv(p, 1, HALF, 100);
	pipe_post(p, 0, wr_at(p, WR_WRITE, 50, 0), 0, 1);
	pipe_settle(p);
	pipe_inject_ulpdu(p, 0, imm, sizeof(imm));
	imm[13] = 2;
	pipe_inject_ulpdu(p, 0, imm, sizeof(imm));
	pipe_settle(p);
	assert_int_equal(expect_recv(p, 1, WC_SUCCESS).byte_len, 50);
	assert_int_equal(expect_recv(p, 1, WC_SUCCESS).byte_len, 0);
	pipe_close(p);
}

/* The responder refuses more READs than it agreed to (IRD). */
static void iwarp__too_many_reads(void **state)
{
	static const uint8_t read[46] = U(0x41, 0x41, 0, 1, 1, 0);
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t ulpdu[46];

	for (unsigned i = 0; i < 5; i++) {
		memcpy(ulpdu, read, sizeof(read));
		ulpdu[13] = (uint8_t)(i + 1);
		pipe_inject_ulpdu(p, 0, ulpdu, sizeof(ulpdu));
	}
	pipe_settle(p);
	assert_int_equal(term_of(p, 1)[0], 0x12);
	assert_int_equal(term_of(p, 1)[1], 2);
	pipe_close(p);
}

/* A response that does not match its READ must end the stream. */
static void iwarp__a_wrong_answer(void **state)
{
	static const struct {
		int stag, to, len;
		bool last;
		uint8_t code;
	} rows[] = {
		{ 1, 0, 100, true, 0 },	 { 0, 1, 100, true, 1 },
		{ 0, -1, 100, true, 1 }, { 0, 0, 101, true, 1 },
		{ 0, 0, 99, true, 1 },	 { 0, 0, 100, false, 1 },
		{ 0, 0, 101, false, 1 },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct pipe *p = pipe_open(&pipe_terms);
		struct vb_ddp_seg seg = {
			.tagged = true,
			.last = rows[i].last,
			.ddp_version = 1,
			.rdmap_version = 1,
			.opcode = RDMAP_READ_RESPONSE,
			.stag = p->key[0] + (uint32_t)rows[i].stag,
			.to = (uintptr_t)p->mem[0] + (uint64_t)rows[i].to,
		};
		uint8_t ulpdu[200] = { 0 };
		struct vb_writer w = { ulpdu };

		/* The READ does not reach side 1; the test sends answers. */
		p->limit[0] = 0;
		pipe_post(p, 0, wr(WR_READ, 100), 0, 1);
		pipe_settle(p);
		vb_ddp_seg_put(&w, &seg);
		pipe_inject_ulpdu(p, 1, ulpdu, 14 + (uint32_t)rows[i].len);
		pipe_settle(p);
		assert_int_equal(state_of(p, 0), QPS_ERR);
		expect_sent(p, 0, WC_FLUSH_ERR);
		assert_int_equal(term_of(p, 0)[0], 0x11);
		assert_int_equal(term_of(p, 0)[1], rows[i].code);
		pipe_close(p);
	}
}

/* Terminates from the peer, with the codes of the RFC and those of siw. */
static void VB_UNCHECKED iwarp__terminates_are_read(void **state)
{
	static const struct {
		uint8_t bytes[4];
		enum vb_wc_status status;
	} rows[] = {
		{ { 0x11, 0, 0, 0 }, WC_REM_ACCESS_ERR },
		{ { 0x01, 2, 0x80, 0 }, WC_REM_ACCESS_ERR },
		/* the same error in the form in which siw sends it */
		{ { 0x10, 2, 1, 0 }, WC_REM_ACCESS_ERR },
		{ { 0x12, 2, 0xc0, 0 }, WC_RNR_RETRY_EXC_ERR },
		{ { 0x21, 2, 3, 0 },
		  /* the same error in the form in which siw sends it */
		  WC_RNR_RETRY_EXC_ERR },
		{ { 0x21, 5, 1, 0 }, WC_REM_INV_REQ_ERR },
		{ { 0x02, 6, 0, 0 }, WC_REM_INV_REQ_ERR },
		{ { 0x20, 2, 0, 0 }, WC_RETRY_EXC_ERR },
		{ { 0x77, 1, 0, 0 }, WC_REM_OP_ERR },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct pipe *p = pipe_open(&pipe_terms);
		uint8_t ulpdu[22] = U(0x41, 0x47, 0, 2, 1, 0);

		memcpy(ulpdu + 18, rows[i].bytes, 4);
		p->limit[0] = 0;
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
		pipe_settle(p);
		pipe_inject_ulpdu(p, 1, ulpdu, sizeof(ulpdu));
		pipe_settle(p);
		expect_sent(p, 0, rows[i].status);
		expect_sent(p, 0, WC_FLUSH_ERR);
		assert_true(vb_iw_wants_close(p->pair.qp[0]));
		pipe_close(p);
	}
}

/* RFC 7306: in a masked FETCH_ADD no carry leaves its field; masked SWAP and
 * CMP_SWAP do not change the bits outside the mask. */
static void iwarp__masked_atomics(void **state)
{
	static const struct {
		uint8_t op;
		uint64_t word, data, data_mask, compare, compare_mask, result;
	} rows[] = {
		{ ATOMIC_FETCH_ADD, 0xffull, 1, 0, 0, 0, 0x100 },
		{ ATOMIC_FETCH_ADD, 0xffull, 1, 0x80, 0, 0, 0 },
		{ ATOMIC_FETCH_ADD, 0x7f7full, 0x0101, 0x8080, 0, 0, 0x8080 },
		{ ATOMIC_FETCH_ADD, UINT64_MAX, 1, 1ull << 63, 0, 0, 0 },
		{ ATOMIC_SWAP, 0x1234, 0xabcd, 0xff00, 0, 0, 0xab34 },
		{ ATOMIC_CMP_SWAP, 0x1234, 0xabcd, 0xff, 0x1200, 0xff00,
		  0x12cd },
		{ ATOMIC_CMP_SWAP, 0x1234, 0xabcd, 0xff, 0x1300, 0xff00,
		  0x1234 },
	};
	struct pipe *p = pipe_open(&pipe_terms);

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const struct vb_rdmap_atomic a = {
			.op = rows[i].op,
			.stag = p->key[1],
			.to = (uintptr_t)p->mem[1],
			.add_swap = rows[i].data,
			.add_swap_mask = rows[i].data_mask,
			.compare = rows[i].compare,
			.compare_mask = rows[i].compare_mask,
		};
		uint8_t ulpdu[128] = U(0x41, 0x4a, 0, 1, 0, 0);
		struct vb_writer w = { ulpdu + VB_DDP_UNTAGGED_BYTES };
		struct vb_rdmap_atomic_rsp rsp;
		struct vb_reader r;

		memcpy(p->mem[1], &rows[i].word, 8);
		ulpdu[13] = (uint8_t)(i + 1);
		vb_rdmap_atomic_put(&w, &a);
		p->limit[1] = 0;
		p->wire[1].put = 0;
		pipe_inject_ulpdu(p, 0, ulpdu, (uint32_t)(w.at - ulpdu));
		pipe_settle(p);
		assert_true(word_at(p, 1, 0) == rows[i].result);
		r = vb_reader(p->wire[1].bytes + 20, 12);
		assert_true(vb_rdmap_atomic_rsp_get(&r, &rsp));
		assert_true(rsp.value == rows[i].word);
	}
	pipe_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iwarp__a_wrong_key_is_named),
		cmocka_unit_test(iwarp__no_receive_ends_it),
		cmocka_unit_test(iwarp__too_long_for_the_receive),
		cmocka_unit_test(iwarp__a_receive_without_memory),
		cmocka_unit_test(iwarp__a_bad_local_key),
		cmocka_unit_test(iwarp__rights_of_the_queue_pair),
		cmocka_unit_test(iwarp__memory_to_send_is_gone),
		cmocka_unit_test(iwarp__memory_for_the_socket_is_gone),
		cmocka_unit_test(iwarp__remote_memory_is_gone),
		cmocka_unit_test(iwarp__memory_for_an_answer_is_gone),
		cmocka_unit_test(iwarp__a_receive_is_gone),
		cmocka_unit_test(iwarp__memory_that_changes_meanwhile),
		cmocka_unit_test(iwarp__nonsense_is_named),
		cmocka_unit_test(iwarp__a_message_that_changes),
		cmocka_unit_test(iwarp__immediate_data_alone),
		cmocka_unit_test(iwarp__too_many_reads),
		cmocka_unit_test(iwarp__a_wrong_answer),
		cmocka_unit_test(iwarp__terminates_are_read),
		cmocka_unit_test(iwarp__masked_atomics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
