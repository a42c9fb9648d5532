/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single records of a lane: the record of each work request, and the reaction
 * to a record or an answer with a wrong field. The program whose part the test
 * plays is stopped meanwhile.
 */
#include "tests/protocol/near_fixture.h"
#include "wire/ib_hdr.h"

#define AT   4096u /* offset in memory that crafted requests name */
#define WORD 64u

static struct vb_near_qp *near_of(struct stage *t, unsigned side)
{
	return t->pair.qp[side]->priv[PRIV_NEAR];
}

static enum vb_qp_state state_of(struct stage *t, unsigned side)
{
	return atomic_load(&t->pair.qp[side]->state);
}

/* Start with both queue pairs connected: the first request was answered. */
static struct stage *begin(void)
{
	struct vb_qp_attr attr = sim_attr;
	struct vb_send_wqe wqe;
	struct stage *t;
	struct ends e = { 0 };

	attr.timeout = 12;
	attr.retry_cnt = 3;
	t = stage_open(&near_sim_path, 1, &attr);
	near_sim_stand_by(&t->sim, 1, false);
	stage_recv(t, 0, 10, t->mr[1]->key);
	wqe = stage_wqe(t, WR_SEND, 0, 10);
	stage_post(t, &wqe, 0, t->mr[0]->key);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 0, &e);
	stage_poll(t, 1, &e);
	assert_int_equal(e.sends + e.recvs, 2);
	return t;
}

/* Requests that side 0 might have written. */

/* Returns a FETCH_ADD that is right in every field. */
static struct vb_request good_request(struct stage *t)
{
	const struct vb_near_qp *nq = near_of(t, 0);

	return (struct vb_request){
		.op = NEAR_FETCH_ADD,
		.bytes = sizeof(struct vb_near_atomic),
		.dqpn = nq->remote_number,
		.sqpn = nq->number,
		.life = nq->peer_life,
		.src_life = nq->life,
		.seq = near_of(t, 1)->expected,
		.length = 8,
		.rkey = t->mr[1]->key,
		.va = (uintptr_t)t->mem[1] + WORD,
	};
}

static void put_request(struct stage *t, const struct vb_request *r,
			const void *data, uint32_t bytes)
{
	struct vb_peer *p = near_sim_peer(&t->sim, 0);
	struct vb_request *to;
	uint8_t *at;

	vb_mutex_lock(&p->tx);
	to = vb_ring_begin(&p->writer, bytes, &at);
	assert_non_null(to);
	*to = *r;
	memcpy(at, data, bytes);
	vb_ring_commit(&p->writer);
	vb_mutex_unlock(&p->tx);
	vb_peer_ring(p);
}

/* Put the request on the lane with its data: @data, or if that is NULL the
 * operand of a FETCH_ADD of 1. Let side 1 process it. Returns the kind of side
 * 1's answer, or -1 when there is none. */
static int ask(struct stage *t, const struct vb_request *r, const void *data)
{
	static const struct vb_near_atomic one = { .swap_add = 1 };
	struct vb_peer *p = near_sim_peer(&t->sim, 0);
	struct vb_answer_note a = { .kind = 0xff };
	int found;

	near_sim_stop(&t->sim, 0);
	put_request(t, r, data ? data : &one, VB_MIN(r->bytes, VB_REQUEST_MAX));
	sim_drive(&t->sim);
	found = vb_ring_hear(&p->reader, &a);
	if (found)
		assert_true(vb_ring_discount(&p->writer, a.count));
	near_sim_go_on(&t->sim, 0);
	return found ? a.kind : -1;
}

static uint64_t word_of(const struct stage *t)
{
	uint64_t word;

	memcpy(&word, t->mem[1] + WORD, sizeof(word));
	return word;
}

static void request__is_carried_out_once(void **state)
{
	struct stage *t = begin();
	struct vb_request r = good_request(t);
	uint64_t before = word_of(t);

	assert_int_equal(ask(t, &r, NULL), ANSWER_VALUE);
	assert_int_equal(word_of(t), before + 1);
	/* Side 1 executes neither a request that it has processed before nor
	 * one that comes before its turn. */
	assert_int_equal(ask(t, &r, NULL), ANSWER_PASSED);
	r.seq += 2;
	assert_int_equal(ask(t, &r, NULL), ANSWER_PASSED);
	assert_int_equal(word_of(t), before + 1);
	r.seq -= 1;
	assert_int_equal(ask(t, &r, NULL), ANSWER_VALUE);
	assert_int_equal(word_of(t), before + 2);
	assert_int_equal(state_of(t, 1), QPS_RTS);
	stage_close(t);
}

struct wrong {
	const char *what;
	size_t at; /* offset of the field */
	uint8_t bytes;
	uint32_t value;
	int kind;  /* kind of the answer; -1: the session ends */
	bool dies; /* side 1's queue pair enters ERR */
};
#define FIELD(f)                                                               \
	offsetof(struct vb_request, f), sizeof(((struct vb_request *)0)->f)

// clang-format off
static const struct wrong wrongs[] = {
	{ "no operation", FIELD(op), NEAR_OPS, ANSWER_NAK, true },
	{ "no operation at all", FIELD(op), 255, ANSWER_NAK, true },
	{ "no queue pair", FIELD(dqpn), 0, ANSWER_NOBODY, false },
	{ "nobody's queue pair", FIELD(dqpn), 0xffffff, ANSWER_NOBODY, false },
	{ "more than 24 bits", FIELD(dqpn), 0xffffffff, ANSWER_NOBODY, false },
	{ "another sender", FIELD(sqpn), 3, ANSWER_NOBODY, false },
	{ "another program's", FIELD(sqpn), 7 << 15, ANSWER_NOBODY, false },
	{ "another life", FIELD(life), 2, ANSWER_NOBODY, false },
	{ "no life", FIELD(life), 0, ANSWER_NOBODY, false },
	{ "too late", FIELD(seq), 0xfffffff0, ANSWER_PASSED, false },
	{ "less data than the operation has", FIELD(bytes), 8, ANSWER_NAK, true },
	{ "no data", FIELD(bytes), 0, ANSWER_NAK, true },
	{ "more data than the operation has", FIELD(bytes), 17, ANSWER_NAK, true },
	{ "much more data", FIELD(bytes), 4096, ANSWER_NAK, true },
	{ "more data than a record has", FIELD(bytes), 4097, -1, false },
	{ "as much data as there can be", FIELD(bytes), 65535, -1, false },
	{ "no key", FIELD(rkey), 0, ANSWER_NAK, true },
	{ "a SEND of another length", FIELD(op), NEAR_SEND, ANSWER_NAK, true },
	{ "half a piece to fetch", FIELD(op), NEAR_PULL, ANSWER_NAK, true },
	{ "a store of two words", FIELD(op), NEAR_STORE, ANSWER_NAK, true },
	{ "WRITEs without an end", FIELD(op), NEAR_MANY, ANSWER_NAK, true },
	{ "a WRITE of another length", FIELD(op), NEAR_WRITE, ANSWER_NAK, true },
	{ "no fault", FIELD(op), NEAR_FAULT, ANSWER_NAK, true },
	{ "establish", FIELD(op), NEAR_ESTABLISH, ANSWER_PASSED, false },
};
// clang-format on

/* Put the request on the lane as it is, without the length that vb_ring_begin()
 * would set. */
static int ask_as_written(struct stage *t, const struct vb_request *r)
{
	struct vb_peer *p = near_sim_peer(&t->sim, 0);
	static const uint8_t data[VB_REQUEST_MAX] = { 1 };

	if (r->bytes <= VB_REQUEST_MAX)
		return ask(t, r, data);
	near_sim_stop(&t->sim, 0);
	put_request(t, r, data, 100);
	sim_drive(&t->sim);
	near_sim_go_on(&t->sim, 0);
	return vb_ring_has_answer(&p->reader) ? 0xff : -1;
}

static void play_wrong(const struct wrong *w)
{
	struct stage *t = begin();
	struct vb_request r = good_request(t);
	uint64_t before = word_of(t);
	int kind;

	memcpy((uint8_t *)&r + w->at, &w->value, w->bytes);
	kind = ask_as_written(t, &r);
	if (kind != w->kind)
		fail_msg("%s: answer %d", w->what, kind);
	if ((state_of(t, 1) == QPS_ERR) != w->dies)
		fail_msg("%s: queue pair in state %u", w->what, state_of(t, 1));
	if (near_sim_is_expelled(&t->sim, 0) != (w->kind < 0))
		fail_msg("%s: the session %s", w->what,
			 w->kind < 0 ? "goes on" : "has ended");
	assert_int_equal(word_of(t), before);
	stage_close(t);
}

static void request__with_a_wrong_field_is_not_carried_out(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(wrongs); i++)
		play_wrong(&wrongs[i]);
}

/* The data of a record must be within the lane's data area. */
static void request__with_data_elsewhere_ends_the_session(void **state)
{
	static const uint32_t places[] = { VB_RING_DATA - 99, VB_RING_DATA,
					   UINT32_MAX, UINT32_MAX - 99 };

	for (unsigned i = 0; i < VB_COUNT(places); i++) {
		static const uint8_t data[100] = { 1 };
		struct stage *t = begin();
		struct vb_request r = good_request(t);
		struct vb_ring_writer *w = &near_sim_peer(&t->sim, 0)->writer;

		stage_recv(t, AT, 100, t->mr[1]->key);
		r.op = NEAR_SEND;
		r.bytes = 100;
		r.length = 100;
		near_sim_stop(&t->sim, 0);
		put_request(t, &r, data, sizeof(data));
		w->ring->requests[(w->tail - 1) % VB_RING_SLOTS].data_at =
			places[i];
		sim_drive(&t->sim);
		assert_true(near_sim_is_expelled(&t->sim, 0));
		near_sim_go_on(&t->sim, 0);
		stage_close(t);
	}
}

/* A SEND that the responder fetches may have only as many pieces as a work
 * request. */
static void request__of_too_many_pieces_is_refused(void **state)
{
	for (unsigned more = 0; more < 2; more++) {
		struct stage *t = begin();
		struct vb_request r = good_request(t);
		struct vb_sge pieces[VB_MAX_SGE + 1];
		const unsigned count = VB_MAX_SGE + more;

		for (unsigned i = 0; i < count; i++)
			pieces[i] = (struct vb_sge){ (uintptr_t)t->mem[0] + i,
						     1, t->mr[0]->key };
		stage_recv(t, AT, count, t->mr[1]->key);
		r.op = NEAR_PULL;
		r.bytes = (uint16_t)(count * sizeof(pieces[0]));
		r.length = count;
		assert_int_equal(ask(t, &r, pieces),
				 more ? ANSWER_NAK : ANSWER_DONE);
		assert_int_equal(state_of(t, 1), more ? QPS_ERR : QPS_RTS);
		stage_close(t);
	}
}

/* Many WRITEs in one record: each is checked separately. */
static void request__of_many_ends_at_the_first_bad_one(void **state)
{
	static const struct {
		uint32_t length, key;
		int kind;
	} seconds[] = {
		{ 0, 0, ANSWER_PART },		{ 4097, 0, ANSWER_PART },
		{ 0xfffffff8, 0, ANSWER_PART }, { 0xffffffff, 0, ANSWER_PART },
		{ 17, 0, ANSWER_PART }, /* more bytes than the record has */
		{ 8, NO_KEY, ANSWER_PART },	{ 8, 0, ANSWER_DONE },
	};

	for (unsigned i = 0; i < VB_COUNT(seconds); i++) {
		struct stage *t = begin();
		struct vb_request r = good_request(t);
		const uint64_t va = (uintptr_t)t->mem[1] + AT;
		struct {
			struct vb_near_write head;
			uint64_t data;
		} many[2] = { { { va, r.rkey, 8 }, 0x1111111111111111 },
			      { { va + 8, r.rkey, 8 }, 0x2222222222222222 } };
		uint64_t word[2];

		many[1].head.length = seconds[i].length;
		if (seconds[i].key)
			many[1].head.rkey = seconds[i].key;
		r.op = NEAR_MANY;
		r.bytes = sizeof(many);
		memcpy(word, t->mem[1] + AT, sizeof(word));
		assert_int_equal(ask(t, &r, many), seconds[i].kind);
		if (seconds[i].kind == ANSWER_DONE)
			word[1] = many[1].data;
		word[0] = many[0].data;
		assert_memory_equal(t->mem[1] + AT, word, sizeof(word));
		assert_int_equal(near_of(t, 1)->expected,
				 r.seq + 1 + (seconds[i].kind == ANSWER_DONE));
		stage_close(t);
	}
}

/*
 * Answers that side 1 might have written.
 */

struct odd {
	const char *what;
	/* the answer; the test adds its qpn, life and seq to the right
	 * values */
	struct vb_answer_note a;
	int status; /* status of the FETCH_ADD; -1: it does not complete */
	bool expelled;
};

// clang-format off
static const struct odd odds[] = {
	{ "the value", { .kind = ANSWER_VALUE, .count = 1 }, WC_SUCCESS },
	{ "another queue pair", { .kind = ANSWER_VALUE, .count = 1, .qpn = 1 }, -1 },
	{ "another life", { .kind = ANSWER_VALUE, .count = 1, .life = 1 }, -1 },
	{ "a request that is not sent", { .kind = ANSWER_VALUE, .count = 1, .seq = 1 }, -1 },
	{ "one that is done", { .kind = ANSWER_VALUE, .count = 1, .seq = UINT32_MAX }, -1 },
	{ "passed over", { .kind = ANSWER_PASSED, .count = 1 }, -1 },
	{ "nothing", { .kind = ANSWER_VALUE, .count = 0 }, -1, true },
	{ "more than was asked", { .kind = ANSWER_VALUE, .count = 2 }, -1, true },
	{ "refused", { .kind = ANSWER_NAK, .count = 1, .syndrome = VB_SYN_NAK_ACCESS }, WC_REM_ACCESS_ERR },
	{ "refused for no reason", { .kind = ANSWER_NAK, .count = 1, .syndrome = 0xff }, WC_REM_OP_ERR },
	{ "its own memory", { .kind = ANSWER_SOURCE, .count = 1 }, WC_LOC_PROT_ERR },
	{ "nobody", { .kind = ANSWER_NOBODY, .count = 1 }, -1 },
	{ "no kind", { .kind = 200, .count = 1 }, -1 },
};
// clang-format on

static void play_odd(const struct odd *o)
{
	struct stage *t = begin();
	struct vb_peer *p = near_sim_peer(&t->sim, 1);
	struct vb_send_wqe wqe = stage_wqe(t, WR_FETCH_ADD, WORD, 8);
	struct vb_answer_note a = o->a;
	struct ends e = { .sends = 1 };

	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, WORD, t->mr[0]->key);
	sim_drive(&t->sim);
	a.qpn += near_of(t, 0)->number;
	a.life += near_of(t, 0)->life;
	a.seq += near_of(t, 0)->acked;
	vb_ring_answer(&p->writer, &a);
	vb_peer_ring(p);
	sim_drive(&t->sim);
	stage_poll(t, 0, &e);
	if (o->status < 0 ? e.sends != 1
			  : e.sends != 2 || e.send[1] != o->status)
		fail_msg("%s: %u completions, status %u", o->what, e.sends - 1,
			 e.send[1]);
	if (near_sim_is_expelled(&t->sim, 1) != o->expelled)
		fail_msg("%s: the session", o->what);
	if (o->expelled) {
		/* The queue pair is alive, but the peer's answers are no longer
		 * processed. */
		sim_settle(&t->sim, t->sim.now + VB_SEC);
		stage_poll(t, 0, &e);
		assert_int_equal(e.sends, 2);
		assert_int_equal(e.send[1], WC_RETRY_EXC_ERR);
	}
	near_sim_go_on(&t->sim, 1);
	stage_close(t);
}

static void answer__counts_only_for_what_was_asked(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(odds); i++)
		play_odd(&odds[i]);
}

/* Parts of a long SEND that side 1 might offer to side 0, its sender. */

#define LONG_SEND 30000u

/* Post a long SEND of side 0, and stop side 1 before side 1 processes it. */
static struct stage *begin_long_send(void)
{
	struct stage *t = begin();
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, AT, LONG_SEND);

	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_drive(&t->sim);
	memset(t->mem[1] + AT, 0, LONG_SEND);
	return t;
}

static enum vb_split_copy_end offer_part(struct stage *t, uint32_t seq,
					 uint32_t offset, uint32_t len)
{
	struct vb_split_copy *split = &near_sim_peer(&t->sim, 1)->split;
	const struct vb_copy_part part = {
		.qpn = near_of(t, 0)->number,
		.life = near_of(t, 0)->life,
		.seq = near_of(t, 0)->acked + seq,
		.offset = offset,
		.len = len,
		.key = t->mr[1]->key,
		.iova = (uintptr_t)t->mem[1] + AT + offset,
	};

	assert_true(vb_split_copy_make(split, &part));
	vb_peer_ring(near_sim_peer(&t->sim, 1));
	sim_drive(&t->sim);
	return vb_split_copy_look(split);
}

static void part__is_within_the_message(void **state)
{
	struct stage *t = begin_long_send();

	assert_int_equal(offer_part(t, 0, LONG_SEND, 1), SPLIT_OURS);
	assert_int_equal(offer_part(t, 0, 1, LONG_SEND), SPLIT_OURS);
	assert_int_equal(offer_part(t, 0, 0, VB_PART_MOST), SPLIT_OURS);
	assert_int_equal(offer_part(t, 1, 0, 1), SPLIT_OURS);
	assert_false(near_sim_is_expelled(&t->sim, 1));
	assert_int_equal(offer_part(t, 0, LONG_SEND - 1, 1), SPLIT_DONE);
	assert_int_equal(t->mem[1][AT + LONG_SEND - 1],
			 t->mem[0][AT + LONG_SEND - 1]);
	near_sim_go_on(&t->sim, 1);
	stage_close(t);
}

/* A receiver that offers the same part of a message again cannot make the
 * sender copy it again. */
static void part__of_each_byte_comes_once(void **state)
{
	struct stage *t = begin_long_send();

	assert_int_equal(offer_part(t, 0, 0, LONG_SEND / 2), SPLIT_DONE);
	assert_int_equal(offer_part(t, 0, LONG_SEND / 2, LONG_SEND / 2),
			 SPLIT_DONE);
	assert_memory_equal(t->mem[1] + AT, t->mem[0] + AT, LONG_SEND);
	memset(t->mem[1] + AT, 0, LONG_SEND);
	assert_int_equal(offer_part(t, 0, 0, 1), SPLIT_OURS);
	assert_int_equal(t->mem[1][AT], 0);
	assert_false(near_sim_is_expelled(&t->sim, 1));
	near_sim_go_on(&t->sim, 1);
	stage_close(t);
}

static void part__that_is_too_long_ends_the_session(void **state)
{
	static const uint32_t lens[] = { VB_PART_MOST + 1, 1u << 30,
					 UINT32_MAX };

	for (unsigned i = 0; i < VB_COUNT(lens); i++) {
		struct stage *t = begin_long_send();

		(void)offer_part(t, 0, 0, lens[i]);
		assert_true(near_sim_is_expelled(&t->sim, 1));
		near_sim_go_on(&t->sim, 1);
		stage_close(t);
	}
}

/* The records of a lane that work requests become. */

/* Returns the first record that side 1 has not processed, and moves @rd to the
 * next record. */
static struct vb_request take_record(struct stage *t, struct vb_ring_reader *rd)
{
	struct vb_request r;
	const uint8_t *data;

	assert_int_equal(vb_ring_look(rd, &r, &data), 1);
	rd->head++;
	return r;
}

static struct vb_request record_of(enum vb_wr_op op, uint32_t len,
				   unsigned pieces)
{
	struct stage *t = begin();
	struct vb_ring_reader rd = near_sim_peer(&t->sim, 1)->reader;
	struct vb_send_wqe wqe = stage_wqe(t, op, AT, len);
	struct vb_sge sge[8];
	struct vb_request r;

	wqe.num_sge = (uint8_t)pieces;
	for (unsigned i = 0; i < pieces; i++)
		sge[i] = (struct vb_sge){ (uintptr_t)t->mem[0] + AT + i,
					  i ? 1 : len - (pieces - 1),
					  t->mr[0]->key };
	near_sim_stop(&t->sim, 1);
	sim_post_send(t->pair.qp[0], &wqe, sge);
	sim_drive(&t->sim);
	r = take_record(t, &rd);
	assert_false(vb_ring_has_request(&rd));
	assert_int_equal(r.dqpn, near_of(t, 0)->remote_number);
	assert_int_equal(r.sqpn, near_of(t, 0)->number);
	assert_int_equal(r.seq, near_of(t, 1)->expected);
	assert_int_equal(r.length, len);
	near_sim_go_on(&t->sim, 1);
	stage_close(t);
	return r;
}

static void expect_record(enum vb_wr_op op, uint32_t len, unsigned pieces,
			  enum vb_near_op kind, uint32_t bytes, uint8_t flags)
{
	struct vb_request r = record_of(op, len, pieces);

	assert_int_equal(r.op, kind);
	assert_int_equal(r.bytes, bytes);
	assert_int_equal(r.flags, flags);
}

static void request__becomes_a_record(void **state)
{
	expect_record(WR_SEND, 1, 1, NEAR_SEND, 1, 0);
	expect_record(WR_SEND, 72, 2, NEAR_SEND, 72, 0);
	expect_record(WR_SEND_IMM, 73, 1, NEAR_SEND, 73, REQUEST_IMM);
	expect_record(WR_SEND, 4096, 3, NEAR_SEND, 4096, 0);
	expect_record(WR_SEND, 4097, 3, NEAR_PULL, 3 * sizeof(struct vb_sge),
		      0);
	expect_record(WR_SEND_INV, 1 << 19, 8, NEAR_PULL,
		      8 * sizeof(struct vb_sge), REQUEST_INV);
	expect_record(WR_WRITE_IMM, 4096, 1, NEAR_WRITE, 4096, REQUEST_IMM);
	expect_record(WR_WRITE_IMM, 4097, 1, NEAR_PLACED, 0, REQUEST_IMM);
	expect_record(WR_FETCH_ADD, 8, 1, NEAR_FETCH_ADD, 16, 0);
	expect_record(WR_CMP_SWAP, 8, 1, NEAR_CMP_SWAP, 16, 0);
	expect_record(WR_ATOMIC_WRITE, 8, 1, NEAR_STORE, 8, 0);
}

/* A WRITE behind a request that is not answered yet: a small WRITE goes on the
 * lane, and a longer one waits, so that the order of posting is kept. */
static void request__waits_for_what_is_before_it(void **state)
{
	struct stage *t = begin();
	struct vb_ring_reader rd = near_sim_peer(&t->sim, 1)->reader;
	const uint32_t lens[] = { 100, 5000, 100 };
	struct vb_send_wqe wqe = stage_wqe(t, WR_FETCH_ADD, WORD, 8);
	struct ends e = { .sends = 1 };
	uint8_t before[AT];

	memcpy(before, t->mem[1] + AT, sizeof(before));
	memset(t->mem[0] + AT, 0x5a, 8192);
	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, WORD, t->mr[0]->key);
	for (unsigned i = 0; i < VB_COUNT(lens); i++) {
		wqe = stage_wqe(t, WR_WRITE, AT, lens[i]);
		stage_post(t, &wqe, AT, t->mr[0]->key);
	}
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	assert_int_equal(take_record(t, &rd).op, NEAR_FETCH_ADD);
	assert_int_equal(take_record(t, &rd).op, NEAR_WRITE);
	assert_false(vb_ring_has_request(&rd));
	assert_memory_equal(t->mem[1] + AT, before, sizeof(before));
	stage_poll(t, 0, &e);
	/* the peer is only stopped, so its requests are not given up */
	assert_int_equal(e.sends, 1);
	near_sim_go_on(&t->sim, 1);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 0, &e);
	assert_int_equal(e.sends, 5);
	assert_memory_equal(t->mem[1] + AT, t->mem[0] + AT, 5000);
	stage_close(t);
}

/* Small WRITEs go in one record if the peer's engine thread stands by to
 * process the lane. */
static void request__of_many_small_writes(void **state)
{
	struct stage *t = begin();
	struct vb_ring_reader rd = near_sim_peer(&t->sim, 1)->reader;
	struct ends e = { .sends = 1 };
	struct vb_request r;

	near_sim_stand_by(&t->sim, 1, true);
	memset(t->mem[0] + AT, 0x5a, 8192);
	memset(t->mem[1] + AT, 0, 8192);
	near_sim_stop(&t->sim, 1);
	for (unsigned i = 0; i < 40; i++) {
		struct vb_send_wqe wqe = stage_wqe(t, WR_WRITE, AT + 20 * i, 9);

		stage_post(t, &wqe, AT + 20 * i, t->mr[0]->key);
	}
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	r = take_record(t, &rd);
	assert_int_equal(r.op, NEAR_MANY);
	assert_int_equal(r.bytes, 40 * (sizeof(struct vb_near_write) + 16));
	near_sim_go_on(&t->sim, 1);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 0, &e);
	assert_int_equal(e.sends, 41);
	for (unsigned i = 0; i < 40 * 20; i++)
		assert_int_equal(t->mem[1][AT + i] == 0x5a, i % 20 < 9);
	stage_close(t);
}

static uint64_t near_count(struct stage *t, unsigned side, enum vb_counter c)
{
	return atomic_load(&t->pair.qp[side]->adapter->counters[c]);
}

static void request__is_counted_by_its_requester(void **state)
{
	struct stage *t = begin();
	uint64_t requests = near_count(t, 0, CNT_NEAR_REQUESTS);
	uint64_t bytes = near_count(t, 0, CNT_NEAR_BYTES);
	const enum vb_wr_op ops[] = { WR_WRITE, WR_READ };
	struct ends e = { .sends = 1 };

	assert_int_equal(requests, 1); /* the SEND of begin() */
	assert_int_equal(bytes, 10);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_send_wqe wqe = stage_wqe(t, ops[i], 0, 300);

		wqe.remote_addr = (uintptr_t)t->mem[1] + AT;
		wqe.rkey = t->mr[1]->key;
		stage_post(t, &wqe, 0, t->mr[0]->key);
	}
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 0, &e);
	assert_int_equal(e.sends, 3);
	assert_int_equal(near_count(t, 0, CNT_NEAR_REQUESTS), requests + 2);
	assert_int_equal(near_count(t, 0, CNT_NEAR_BYTES), bytes + 600);
	assert_int_equal(near_count(t, 1, CNT_NEAR_REQUESTS), 0);
	stage_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__is_counted_by_its_requester),
		cmocka_unit_test(request__becomes_a_record),
		cmocka_unit_test(request__waits_for_what_is_before_it),
		cmocka_unit_test(request__of_many_small_writes),
		cmocka_unit_test(request__is_carried_out_once),
		cmocka_unit_test(
			request__with_a_wrong_field_is_not_carried_out),
		cmocka_unit_test(request__with_data_elsewhere_ends_the_session),
		cmocka_unit_test(request__of_too_many_pieces_is_refused),
		cmocka_unit_test(request__of_many_ends_at_the_first_bad_one),
		cmocka_unit_test(part__is_within_the_message),
		cmocka_unit_test(part__of_each_byte_comes_once),
		cmocka_unit_test(part__that_is_too_long_ends_the_session),
		cmocka_unit_test(answer__counts_only_for_what_was_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
