/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of losses between two Verbenas, in virtual time: a stream of long
 * messages over a wire that takes one packet every 2 us and has a round trip of
 * 60 us. Computation takes no virtual time. */
#include "tests/support/bench.h"

#include <stdio.h>

#define MTU	 4096
#define PKTS	 64 /* number of packets in each message */
#define MESSAGES 600
#define UNDERWAY 8

#define PACE  (2 * VB_USEC)
#define DELAY (30 * VB_USEC)

struct run {
	/* chance in 10000 for each packet of both directions to be lost */
	unsigned lose;
	/* chance in 10000 that a packet overtakes the one before it */
	unsigned swap;
	unsigned room; /* the most packets that the wire's queue holds */
	/* bytes delivered, as a fraction of the wire's capacity */
	double goodput;
	uint64_t sent, lost, repeats, duplicates;
};

static uint64_t counter(const struct bench *b, unsigned side, enum vb_counter c)
{
	return atomic_load(&b->sim.side[side].adapter.counters[c]);
}

static void transfer(struct bench *b, const struct run *r)
{
	unsigned posted = 0, done = 0;
	struct vb_cqe e;

	while (done < MESSAGES) {
		for (; posted < MESSAGES && posted < done + UNDERWAY; posted++)
			bench_post(b, 0, WR_WRITE, 0, PKTS * MTU, 0);
		bench_wait(b, 10);
		for (; sim_poll(b->pair.send_cq[0], &e); done++)
			assert_int_equal(e.status, WC_SUCCESS);
	}
}

/* The run being recorded: its packets from sender to receiver, and those of
 * them that were lost. */
static struct run *tapped;
static struct sim_rand dice;
static enum sim_fate tap(void *arg, unsigned from, const struct vb_ib_pkt *pkt)
{
	bool data = from == 0;
	bool lost = sim_maybe(&dice, tapped->lose);

	tapped->sent += data;
	tapped->lost += data && lost;
	return lost ? SIM_DROP : SIM_PASS;
}

static void play(struct run *r)
{
	struct vb_qp_attr attr = sim_attr;
	struct bench *b;
	vb_time begin;

	attr.path_mtu = 5; /* path MTU code of 4096 bytes */
	b = bench_open_as(&attr, &sim_caps);
	begin = b->sim.now;
	tapped = r;
	dice.state = 7;
	b->sim.tap = tap;
	b->sim.wire = (struct sim_wire){ .delay = DELAY,
					 .pace = PACE,
					 .swap = r->swap,
					 .jitter = 2 * DELAY,
					 .room = r->room };
	transfer(b, r);
	r->goodput =
		(double)MESSAGES * PKTS * PACE / (double)(b->sim.now - begin);
	r->repeats = counter(b, 0, CNT_RETRANSMITS);
	r->duplicates = counter(b, 1, CNT_DUPLICATE_REQUEST);
	printf("%u of 10000 lost, %u overtaken: goodput %.3f; %llu packets, "
	       "%llu lost, %llu repeats, %llu for nothing\n",
	       r->lose, r->swap, r->goodput, (unsigned long long)r->sent,
	       (unsigned long long)r->lost, (unsigned long long)r->repeats,
	       (unsigned long long)r->duplicates);
	bench_close(b);
}

static void goodput__is_the_wires_without_losses(void **state)
{
	struct run r = { 0 };

	play(&r);
	assert_true(r.goodput > 0.95);
	assert_int_equal(r.repeats, 0);
}

/* Check that few packets are sent again. The first loss costs a whole window,
 * because the two sides have not yet found out that both do selective
 * repeat. */
static bool repeats_little_more(const struct run *r)
{
	return r->repeats <= r->lost + r->lost / 20 + 150;
}

static void goodput__hardly_suffers_from_few_losses(void **state)
{
	static const unsigned rows[] = { 10, 100, 500 };

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct run r = { .lose = rows[i] };

		play(&r);
		assert_true(r.goodput > 0.95);
		assert_true(repeats_little_more(&r));
		assert_true(r.duplicates <= r.lost / 20 + 2);
	}
}

/* If the queue of the wire overflows, the sender slows down until the queue
 * stays full and few packets are sent only to be lost. */
static void goodput__fills_a_short_queue(void **state)
{
	struct run r = { .room = 70 };

	play(&r);
	assert_true(r.goodput > 0.9);
	assert_true(r.repeats < r.sent / 12);
}

/* A packet that was overtaken looks lost: it is sent once more, but the packets
 * behind it are not. */
static void goodput__survives_some_that_are_overtaken(void **state)
{
	struct run r = { .swap = 100 };

	play(&r);
	assert_true(r.goodput > 0.9);
	assert_true(r.repeats < r.sent / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goodput__is_the_wires_without_losses),
		cmocka_unit_test(goodput__hardly_suffers_from_few_losses),
		cmocka_unit_test(goodput__fills_a_short_queue),
		cmocka_unit_test(goodput__survives_some_that_are_overtaken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
