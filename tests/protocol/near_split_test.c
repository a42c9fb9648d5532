/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long SENDs of which sender and receiver each copy a part. The sender is
 * stopped, dies, or writes false values at each step; the receiver then goes on
 * without it, and finishes the message later (near/split_copy.h, SPLIT_SLOW).
 * Every request completes once, and every byte is right.
 */
#include "tests/protocol/near_fixture.h"
#include "tests/support/seeds.h"

#define MESSAGES   4u
#define LONG	   200000u
#define SHORT	   300u
#define MOST_STEPS 3000

static uint32_t length_of(unsigned i)
{
	return i == 2 ? SHORT : LONG;
}

static uint32_t place_of(unsigned i)
{
	return 64 + i * (LONG + 64);
}

/* Begin with side 0, the sender, polling, so that it finds the offered
 * parts. */
static struct stage *begin(uint64_t seed)
{
	struct vb_qp_attr attr = sim_attr;
	struct stage *t;

	attr.timeout = 12;
	attr.retry_cnt = 3;
	t = stage_open(&near_sim_path, seed, &attr);
	near_sim_stand_by(&t->sim, 0, true);
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct vb_send_wqe wqe =
			stage_wqe(t, WR_SEND, place_of(i), length_of(i));

		stage_recv(t, place_of(i), length_of(i), t->mr[1]->key);
		stage_post(t, &wqe, place_of(i), t->mr[0]->key);
	}
	return t;
}

static bool sender_is_slow(const struct stage *t)
{
	return near_sim_peer(&t->sim, 1)->split.waits;
}

static void check_bytes(const struct stage *t, unsigned i, uint64_t step)
{
	uint32_t at = place_of(i);

	if (memcmp(t->mem[0] + at, t->mem[1] + at, length_of(i)))
		fail_msg("message %u differs, step %llu", i,
			 (unsigned long long)step);
}

static void check_all_came(struct stage *t, uint64_t step)
{
	struct ends e[SIM_SIDES] = { 0 };

	stage_poll(t, 0, &e[0]);
	stage_poll(t, 1, &e[1]);
	assert_int_equal(e[0].sends, MESSAGES);
	assert_int_equal(e[1].recvs, MESSAGES);
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(e[0].send[i], WC_SUCCESS);
		assert_int_equal(e[1].recv[i], WC_SUCCESS);
		check_bytes(t, i, step);
	}
}

/* Move the receiver's queue pair to ERR and check that all its receives
 * complete, first those whose message is complete. */
static void check_all_end(struct stage *t, uint64_t step, bool are_right)
{
	struct ends e = { 0 };
	vb_time then = t->sim.now;
	unsigned full = 0;

	sim_modify(&t->sim, t->pair.qp[1], QPS_ERR, 0, NULL);
	assert_true(t->sim.now - then < 20 * VB_MSEC);
	stage_poll(t, 1, &e);
	assert_int_equal(e.recvs, MESSAGES);
	while (full < MESSAGES && e.recv[full] == WC_SUCCESS)
		full++;
	for (unsigned i = 0; i < MESSAGES && are_right; i++)
		if (i < full)
			check_bytes(t, i, step);
		else
			assert_int_equal(e.recv[i], WC_FLUSH_ERR);
}

/* The checks that follow the sender's harm at step @step. */
typedef void (*sequel)(struct stage *t, uint64_t step);

static void goes_on(struct stage *t, uint64_t step)
{
	sim_settle(&t->sim, t->sim.now + 2 * VB_SEC);
	check_all_came(t, step);
}

static void fails(struct stage *t, uint64_t step)
{
	check_all_end(t, step, true);
	near_sim_go_on(&t->sim, 0);
	sim_settle(&t->sim, t->sim.now + 2 * VB_SEC);
}

static void is_dead(struct stage *t, uint64_t step)
{
	sim_settle(&t->sim, t->sim.now + 2 * VB_SEC);
	check_all_end(t, step, true);
}

/* The sender was stopped, and from now on writes false values into the shared
 * memory. */
static void lies(struct stage *t, uint64_t step)
{
	const struct near_plan plan = { .harm = HARM_SCRIBBLE };

	near_sim_plan(&t->sim, &plan);
	near_sim_go_on(&t->sim, 0);
	sim_settle(&t->sim, t->sim.now + 2 * VB_SEC);
	check_all_end(t, step, false);
}

/* The sender was stopped. Now it changes only the queue pair number in the
 * request of which it copies a part. The receiver ends the session, and gets
 * all its receives back. */
static void redirects(struct stage *t, uint64_t step)
{
	const struct vb_peer *sender = near_sim_peer(&t->sim, 1);
	const struct vb_ring_reader *rd = &sender->reader;
	bool is_lent = sender_is_slow(t);

	rd->ring->requests[rd->head % VB_RING_SLOTS].r.dqpn ^= 1;
	near_sim_go_on(&t->sim, 0);
	sim_settle(&t->sim, t->sim.now + 2 * VB_SEC);
	assert_true(!is_lent || near_sim_is_expelled(&t->sim, 0));
	check_all_end(t, step, true);
}

/* Play the harm at each step, and then run the checks @what. At least once the
 * receiver must have found that the sender is slow. */
static void play(enum near_harm harm, vb_time stop_for, sequel what)
{
	unsigned stride = seeds_divisor(), slow = 0;
	bool harmed = true;

	for (uint64_t step = 1; step < MOST_STEPS && harmed; step += stride) {
		const struct near_plan plan = { harm, 0, step, stop_for };
		struct stage *t = begin(1 + step % 5);

		near_sim_plan(&t->sim, &plan);
		sim_drive(&t->sim);
		harmed = near_sim_is_harmed(&t->sim);
		slow += sender_is_slow(t);
		if (harmed)
			what(t, step);
		stage_close(t);
	}
	print_message("the sender was slow in %u runs\n", slow);
	assert_true(slow > 0);
}

static void split__sender_stops_and_goes_on(void **state)
{
	play(HARM_STOP, 3 * VB_MSEC, goes_on);
}

static void split__sender_freezes_and_goes_on(void **state)
{
	play(HARM_FREEZE, 3 * VB_MSEC, goes_on);
}

static void split__sender_stops_and_receiver_fails(void **state)
{
	play(HARM_STOP, VB_NEVER, fails);
}

static void split__sender_dies(void **state)
{
	play(HARM_DIE, VB_NEVER, is_dead);
}

static void split__sender_lies(void **state)
{
	play(HARM_STOP, VB_NEVER, lies);
}

static void split__sender_redirects_its_request(void **state)
{
	play(HARM_STOP, VB_NEVER, redirects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split__sender_stops_and_goes_on),
		cmocka_unit_test(split__sender_freezes_and_goes_on),
		cmocka_unit_test(split__sender_stops_and_receiver_fails),
		cmocka_unit_test(split__sender_dies),
		cmocka_unit_test(split__sender_lies),
		cmocka_unit_test(split__sender_redirects_its_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
