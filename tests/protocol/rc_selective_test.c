/* SPDX-License-Identifier: BSD-2-Clause */
/* Selective repeat: how two Verbenas detect each other, what is then repeated,
 * and that other implementations notice nothing. */
#include "tests/support/bench.h"

#include <string.h>

#define MTU   1024 /* path MTU of sim_attr in bytes */
#define PKTS  32
#define BYTES (PKTS * MTU)

/* The packets to lose: the @nth packet of @code (0: any) from @from, @times
 * times. */
static struct {
	unsigned from, nth, times, seen;
	uint32_t psn;
	bool by_psn;
} loss;

static bool lose(struct bench *b, unsigned from, const struct vb_ib_pkt *pkt)
{
	if (from != loss.from || loss.times == 0)
		return false;
	if (loss.by_psn ? pkt->bth.psn != loss.psn : loss.seen++ != loss.nth)
		return false;
	loss.psn = pkt->bth.psn;
	loss.by_psn = true;
	loss.times--;
	return true;
}

static void lose_nth(struct bench *b, unsigned from, unsigned nth,
		     unsigned times)
{
	memset(&loss, 0, sizeof(loss));
	loss.from = from;
	loss.nth = nth;
	loss.times = times;
	b->lose = lose;
}

static uint64_t repeats(const struct bench *b)
{
	return atomic_load(&b->sim.side[0].adapter.counters[CNT_RETRANSMITS]);
}

static uint64_t kept_bytes(const struct bench *b, unsigned side)
{
	return atomic_load(&b->sim.side[side].adapter.ooo_bytes);
}

static unsigned marked(const struct bench *b, unsigned from)
{
	unsigned count = 0;

	for (unsigned i = 0; i < b->logged; i++)
		count += b->log[i].from == from && b->log[i].pkt.bth.selective;
	return count;
}

/* Transfer one message of PKTS packets. Returns the number of
 * retransmissions. */
static uint64_t transfer(struct bench *b, enum vb_wr_op op)
{
	uint64_t before = repeats(b);
	unsigned to = op == WR_READ ? 0 : 1;
	struct vb_cqe e;

	memset(b->mem[to], (int)b->logged & 0xff, BYTES);
	bench_post(b, 0, op, 0, BYTES, 0);
	/* 1.5 ms: less than the 2 ms after which the requester would send a
	 * probe */
	bench_wait(b, 1500);
	assert_true(sim_poll(b->pair.send_cq[0], &e));
	assert_int_equal(e.status, WC_SUCCESS);
	assert_memory_equal(b->mem[0], b->mem[1], BYTES);
	assert_int_equal(kept_bytes(b, 0) + kept_bytes(b, 1), 0);
	return repeats(b) - before;
}

/* Open a connection whose sides have detected each other by a loss. */
static struct bench *open_known(void)
{
	struct bench *b = bench_open();

	lose_nth(b, 0, 3, 1);
	(void)transfer(b, WR_WRITE);
	return b;
}

static void selective__is_found_out_by_a_loss(void **state)
{
	struct bench *b = bench_open();

	assert_int_equal(transfer(b, WR_WRITE), 0);
	assert_int_equal(transfer(b, WR_READ), 0);
	assert_int_equal(marked(b, 0) + marked(b, 1), 0);
	lose_nth(b, 0, 3, 1);
	/* go-back-N repeats all packets from the lost one */
	assert_int_equal(transfer(b, WR_WRITE), PKTS - 3);
	assert_true(marked(b, 0) > 0 && marked(b, 1) > 0);
	lose_nth(b, 0, 3, 1);
	assert_int_equal(transfer(b, WR_WRITE), 1);
	bench_close(b);
}

static bool lose_every_fifth(struct bench *b, unsigned from,
			     const struct vb_ib_pkt *pkt)
{
	return from == 0 && ++loss.seen <= PKTS && loss.seen % 5 == 0;
}

static void selective__sends_only_what_is_missing(void **state)
{
	struct bench *b = open_known();

	loss.seen = 0;
	b->lose = lose_every_fifth;
	assert_int_equal(transfer(b, WR_WRITE), PKTS / 5);
	bench_close(b);
}

static void selective__a_lost_repeat_is_repeated(void **state)
{
	struct bench *b = open_known();

	/* Packets behind the lost one reveal the loss, without a timeout. */
	lose_nth(b, 0, 3, 2);
	for (unsigned i = 0; i < 3; i++)
		bench_post(b, 0, WR_WRITE, 0, BYTES, 0);
	bench_wait(b, 1500);
	for (unsigned i = 0; i < 3; i++)
		bench_expect_wc(b->pair.send_cq[0], 1 + i, WC_SUCCESS);
	assert_int_equal(loss.times, 0);
	bench_close(b);
}

static unsigned responses(const struct bench *b)
{
	unsigned count = 0;

	for (uint8_t c = CODE_READ_RESP_FIRST; c <= CODE_READ_RESP_ONLY; c++)
		count += bench_count(b, 1, c);
	return count;
}

/* A tap that loses all responses until the requester repeats a packet. */
static bool lose_answers(struct bench *b, unsigned from,
			 const struct vb_ib_pkt *pkt)
{
	return from == 1 && repeats(b) == loss.seen;
}

/* One ACK may acknowledge a whole window: on a path with losses the requester
 * does not wait 2 ms for a lost ACK. */
static void selective__a_lost_answer_is_asked_for_soon(void **state)
{
	struct bench *b = open_known();

	lose_nth(b, 0, 3, 1);
	assert_int_equal(transfer(b, WR_WRITE), 1);
	b->lose = NULL; /* lose nothing, to measure the time without a loss */
	assert_int_equal(transfer(b, WR_WRITE), 0);
	loss.seen = (unsigned)repeats(b);
	b->lose = lose_answers;
	assert_int_equal(transfer(b, WR_WRITE), 1);
	bench_close(b);
}

static void selective__reads_ask_for_what_is_missing(void **state)
{
	struct bench *b = open_known();
	unsigned before = responses(b);

	lose_nth(b, 1, 7, 1);
	assert_int_equal(transfer(b, WR_READ), 1);
	assert_int_equal(responses(b) - before, PKTS + 1);
	bench_close(b);
}

static bool lose_third_always(struct bench *b, unsigned from,
			      const struct vb_ib_pkt *pkt)
{
	uint32_t first = b->attr.sq_psn + PKTS;

	return from == 0 && pkt->bth.psn == vb_psn_add(first, 3);
}

/* Programs spin on a message's last byte: it must not arrive first. */
static void selective__places_in_order(void **state)
{
	struct bench *b = open_known();

	b->lose = lose_third_always;
	memset(b->mem[1], 0x55, BYTES);
	memset(b->mem[0], 0xaa, BYTES);
	bench_post(b, 0, WR_WRITE, 0, BYTES, 0);
	bench_wait(b, 500);
	assert_true(kept_bytes(b, 1) > (PKTS - 4) * MTU);
	assert_int_equal(b->mem[1][3 * MTU - 1], 0xaa);
	assert_int_equal(b->mem[1][3 * MTU], 0x55);
	assert_int_equal(b->mem[1][BYTES - 1], 0x55);
	b->lose = NULL;
	bench_wait(b, 20000);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_SUCCESS);
	assert_int_equal(b->mem[1][BYTES - 1], 0xaa);
	assert_int_equal(kept_bytes(b, 1), 0);
	bench_close(b);
}

/* A requester that has not announced selective repeat gets the NAK that the IBA
 * specifies. */
static void selective__others_get_plain_naks(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_WRITE_ONLY, 1);
	const struct vb_ib_pkt *nak;

	pkt.reth.length = 8;
	bench_inject(b, 1, &pkt, 8, 0);
	nak = bench_next(b, 1);
	assert_non_null(nak);
	assert_int_equal(nak->aeth.syndrome, VB_SYN_NAK_PSN);
	assert_int_equal(nak->payload_bytes, 0);
	assert_int_equal(kept_bytes(b, 1), 0);
	bench_inject(b, 1, &pkt, 8, 0);
	bench_expect_silence(b, 1);
	bench_close(b);
}

static void selective__keeps_once_the_peer_has_announced_it(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_WRITE_ONLY, 2);
	const struct vb_ib_pkt *nak;

	pkt.reth.length = 8;
	pkt.bth.selective = true;
	bench_inject(b, 1, &pkt, 8, 7);
	nak = bench_next(b, 1);
	assert_int_equal(nak->aeth.syndrome, VB_SYN_NAK_PSN);
	assert_int_equal(nak->bth.psn, b->attr.rq_psn);
	assert_int_equal(nak->payload_bytes, 4);
	assert_true(kept_bytes(b, 1) > 0);
	for (int nth = 0; nth < 2; nth++) {
		pkt = bench_request(b, CODE_WRITE_ONLY, nth);
		pkt.reth.length = 8;
		pkt.bth.ack_req = nth == 1;
		bench_inject(b, 1, &pkt, 8, 1);
	}
	nak = bench_next(b, 1);
	assert_int_equal(nak->bth.psn, vb_psn_add(b->attr.rq_psn, 1));
	bench_expect_aeth(b, 1, VB_SYN_ACK, 2);
	assert_int_equal(b->mem[1][0], 7);
	assert_int_equal(kept_bytes(b, 1), 0);
	bench_close(b);
}

/* When a further gap appears, the responder reports it without being asked. */
static void selective__tells_of_a_further_hole(void **state)
{
	static const int nths[] = { 1, 2, 4, 5 };
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt;

	for (unsigned i = 0; i < VB_COUNT(nths); i++) {
		pkt = bench_request(b, CODE_WRITE_ONLY, nths[i]);
		pkt.reth.length = 8;
		pkt.bth.selective = true;
		pkt.bth.ack_req = false;
		bench_inject(b, 1, &pkt, 8, 0);
		if (nths[i] == 1 || nths[i] == 4)
			bench_expect_aeth(b, 1, VB_SYN_NAK_PSN, 0);
		bench_expect_silence(b, 1);
	}
	bench_close(b);
}

/* After an RNR NAK the requester sends everything again, so the responder drops
 * the packets that it has kept. */
static void selective__a_missing_receive_empties_it(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_SEND_ONLY, 1);

	pkt.bth.selective = true;
	bench_inject(b, 1, &pkt, 8, 0);
	assert_true(kept_bytes(b, 1) > 0);
	pkt = bench_request(b, CODE_SEND_ONLY, 0);
	pkt.bth.selective = true;
	bench_inject(b, 1, &pkt, 8, 0);
	assert_int_equal(kept_bytes(b, 1), 0);
	bench_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selective__is_found_out_by_a_loss),
		cmocka_unit_test(selective__sends_only_what_is_missing),
		cmocka_unit_test(selective__a_lost_repeat_is_repeated),
		cmocka_unit_test(selective__a_lost_answer_is_asked_for_soon),
		cmocka_unit_test(selective__reads_ask_for_what_is_missing),
		cmocka_unit_test(selective__places_in_order),
		cmocka_unit_test(selective__others_get_plain_naks),
		cmocka_unit_test(
			selective__keeps_once_the_peer_has_announced_it),
		cmocka_unit_test(selective__tells_of_a_further_hole),
		cmocka_unit_test(selective__a_missing_receive_empties_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
