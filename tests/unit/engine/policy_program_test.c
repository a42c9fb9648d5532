/* SPDX-License-Identifier: BSD-2-Clause */
/* The policy of threads, rule by rule, in virtual time: the words that a
 * program publishes, and the actions of a program that polls, or waits for an
 * event or an answer (engine/policy_program.c). */
#include "tests/unit/engine/policy_fixture.h"

static struct vb_poll_policy p;
static struct vb_wait_policy w;

static int set_up(void **state)
{
	memset(&p, 0, sizeof(p));
	vb_poll_init(&p, 1);
	memset(&w, 0, sizeof(w));
	return 0;
}

static void word__has_time_state_and_spinning(void **state)
{
	uint64_t a = vb_program_word(START, PROGRAM_AWAITS, 0), b;

	assert_true(vb_program_at(a) == START);
	assert_int_equal(vb_program_does(a), PROGRAM_AWAITS);
	assert_false(vb_program_spins(a));
	b = vb_program_word(START + 31, PROGRAM_TOOK, SPINS | START);
	assert_true(vb_program_at(b) == START + 16);
	assert_int_equal(vb_program_does(b), PROGRAM_TOOK);
	assert_true(vb_program_spins(b));
	b = vb_program_at_work(b, START + US(500));
	assert_true(vb_program_at(b) == ((START + US(500)) & ~(vb_time)15));
	assert_int_equal(vb_program_does(b), PROGRAM_TOOK);
	assert_true(vb_program_spins(b));
}

static void word__who_loops(void **state)
{
	static const bool loops_in[] = { [PROGRAM_AWAY] = false,
					 [PROGRAM_WORKS] = false,
					 [PROGRAM_TOOK] = false,
					 [PROGRAM_LOOPS] = true,
					 [PROGRAM_AWAITS] = true };

	for (unsigned i = 0; i < VB_COUNT(loops_in); i++) {
		uint64_t word =
			vb_program_word(START, (enum vb_program)i, SPINS);

		assert_int_equal(vb_program_loops(word), loops_in[i]);
	}
}

static void poll__yields_after_30_us(void **state)
{
	vb_time now = START;

	assert_int_equal(vb_poll_ends(&p, true, 0, now), POLL_RETURNS);
	assert_int_equal(vb_poll_ends(&p, false, 0, now + US(30)),
			 POLL_RETURNS);
	assert_int_equal(vb_poll_ends(&p, false, 0, now + US(30) + 1),
			 POLL_YIELDS);
}

static void poll__yields_sooner_where_that_helps(void **state)
{
	static const unsigned ns[] = { 15000, 7500, 3750, 2000, 2000 };
	vb_time now = START;

	(void)vb_poll_ends(&p, true, 0, now);
	for (unsigned i = 0; i < VB_COUNT(ns); i++) {
		assert_int_equal(vb_poll_ends(&p, false, 0, now += US(31)),
				 POLL_YIELDS);
		assert_int_equal(vb_poll_ends(&p, true, 0, now), POLL_RETURNS);
		assert_int_equal(p.patience, ns[i]);
	}
	/* Without a result: the next yield comes after twice the time, up to 30
	 * us. */
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(vb_poll_ends(&p, false, 0, now += US(31)),
				 POLL_YIELDS);
	assert_int_equal(p.patience, US(30));
}

/* A poll that ends at the time @at finds nothing; the last yield lasted @took.
 * Returns what the poll does next. */
static enum vb_poll_next in_vain(vb_time took, vb_time at)
{
	return vb_poll_ends(&p, false, took, at);
}

static void poll__waits_where_others_want_the_processor(void **state)
{
	vb_time now = START, crowd = MS(100);

	p.streak = 1;
	(void)vb_poll_ends(&p, true, 0, now);
	assert_int_equal(in_vain(0, now += US(31)), POLL_YIELDS);
	/* The program has run for longer than the other threads did. */
	assert_int_equal(in_vain(US(101), now += US(101)), POLL_YIELDS);
	assert_int_equal(in_vain(US(101), now += US(203)), POLL_YIELDS);
	now += US(101);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(in_vain(US(101), now += US(101)), POLL_WAITS);
		/* of polls that find nothing, the second one in a row waits */
		assert_int_equal(vb_poll_ends(&p, true, 0, now), POLL_RETURNS);
		assert_int_equal(in_vain(0, now), POLL_RETURNS);
		assert_int_equal(in_vain(0, now), POLL_WAITS);
		/* After that time a poll yields, to see whether the others are
		 * still there. */
		assert_int_equal(in_vain(0, now + crowd - 1), POLL_WAITS);
		assert_int_equal(in_vain(0, now += crowd), POLL_YIELDS);
		crowd = VB_MIN(2 * crowd, MS(640));
	}
	/* the other threads no longer want the processor */
	assert_int_equal(in_vain(US(100), now), POLL_YIELDS);
	assert_int_equal(p.crowd, MS(320));
}

/* A program that sleeps between two polls must not wait in a poll: 200 such
 * programs used two whole processors when each second poll waited. */
static void poll__of_a_program_that_sleeps_does_not_wait(void **state)
{
	vb_time now = START;

	p.crowded_until = now + MS(100);
	for (unsigned i = 0; i < 8; i++) {
		now += US(500);
		(void)vb_poll_spins(&p, PROGRAM_LOOPS, now, 0, now);
		assert_int_equal(in_vain(0, now), POLL_RETURNS);
	}
	now += US(19);
	(void)vb_poll_spins(&p, PROGRAM_LOOPS, now, 0, now);
	assert_int_equal(in_vain(0, now), POLL_WAITS);
}

/* A poll that cannot wait yields as late as a poll that may. */
static void poll__yields_where_it_cannot_wait(void **state)
{
	vb_time now = START;

	p.streak = 1;
	(void)vb_poll_ends(&p, true, 0, now);
	p.crowded_until = now + MS(100);
	assert_int_equal(in_vain(0, now += US(1)), POLL_RETURNS);
	assert_int_equal(in_vain(0, now += US(1)), POLL_WAITS);
	assert_int_equal(vb_poll_cannot_wait(&p, now), POLL_RETURNS);
	assert_int_equal(in_vain(0, now += US(28)), POLL_RETURNS);
	assert_int_equal(in_vain(0, now += US(1)), POLL_YIELDS);
}

static void poll__finds_the_link_taken(void **state)
{
	assert_int_equal(vb_poll_found_taken(1, US(3) - 1), POLL_RETURNS);
	assert_int_equal(vb_poll_found_taken(1, US(3)), POLL_SLEEPS);
}

/* Make @times polls, @apart from each other. True: the program spins. */
static bool polls(unsigned times, vb_time apart, vb_time *now)
{
	bool spins = false;

	while (times--) {
		*now += apart;
		spins = vb_poll_spins(&p, PROGRAM_LOOPS, *now, 0, *now);
	}
	return spins;
}

static void poll__32_close_ones_are_spinning(void **state)
{
	vb_time now = START;

	p.ended_at = now;
	assert_false(polls(31, US(20) - 1, &now));
	assert_true(polls(1, US(20) - 1, &now));
	assert_false(polls(1, US(20), &now));
	assert_false(polls(31, 0, &now));
	/* A poll behind one that was not recorded has no effect on the
	 * streak. */
	assert_false(vb_poll_spins(&p, PROGRAM_TOOK, now, 0, now));
	assert_int_equal(p.streak, 31);
	/* The time for which the program yielded does not count. */
	now += MS(1);
	assert_true(
		vb_poll_spins(&p, PROGRAM_LOOPS, now, now - US(20) + 1, now));
	/* A program that has armed its queue polls once more, and sleeps. */
	assert_false(vb_poll_spins(&p, PROGRAM_AWAY, now, 0, now));
	assert_false(polls(31, 0, &now));
	assert_true(polls(1, 0, &now));
}

static void poll__looks_less_while_peers_send(void **state)
{
	assert_true(vb_poll_looks(&p, START));
	assert_true(vb_poll_looks(&p, START));
	vb_poll_near(&p, START);
	assert_false(vb_poll_looks(&p, START + US(4) - 1));
	assert_true(vb_poll_looks(&p, START + US(4)));
	assert_false(vb_poll_looks(&p, START + US(8) - 1));
	(void)vb_poll_looks(&p, START + US(99));
	assert_true(vb_poll_looks(&p, START + US(100)));
}

static void wait__is_prompt_after_8_returns(void **state)
{
	vb_time now = START;

	for (unsigned i = 0; i < 8; i++) {
		assert_false(vb_wait_is_prompt(&w));
		vb_wait_ends(&w, now);
		vb_wait_begins(&w, 1, now += US(50));
	}
	assert_true(vb_wait_is_prompt(&w));
	vb_wait_ends(&w, now);
	vb_wait_begins(&w, 1, now + US(50) + 1);
	assert_false(vb_wait_is_prompt(&w));
	w.prompt = 8;
	vb_wait_is_elsewhere(&w);
	assert_false(vb_wait_is_prompt(&w));
}

static void wait__looks_after_4_short_sleeps(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		assert_false(vb_wait_looks(&w));
		vb_wait_slept(&w, 1, US(100) - 1);
	}
	assert_true(vb_wait_looks(&w));
	vb_wait_slept(&w, 1, US(100));
	assert_false(vb_wait_looks(&w));
}

static void wait__looks_in_vain(void **state)
{
	static const unsigned wanted[] = { 8, 16, 32, 64, 128, 256, 256 };

	for (unsigned i = 0; i < VB_COUNT(wanted); i++) {
		vb_wait_looked(&w, false);
		for (unsigned k = 0; k < wanted[i]; k++) {
			assert_false(vb_wait_looks(&w));
			vb_wait_slept(&w, 1, 0);
		}
		assert_true(vb_wait_looks(&w));
	}
	vb_wait_looked(&w, true);
	assert_int_equal(w.wary, 128);
}

static void wait__how_long_it_looks(void **state)
{
	assert_true(vb_wait_looks_on(1, START, US(3) - 1, START + US(30) - 1));
	assert_false(vb_wait_looks_on(1, START, US(3), START));
	assert_false(vb_wait_looks_on(1, START, 0, START + US(30)));
	assert_true(vb_wait_owes_already(1, START, START + US(500) - 1));
	assert_false(vb_wait_owes_already(1, START, START + US(500)));
}

static void wait__holds_an_early_event(void **state)
{
	assert_int_equal(vb_wait_holds(49, START, START), HELD_YIELDS);
	assert_int_equal(vb_wait_holds(50, START, START), HELD_NAPS);
	assert_int_equal(vb_wait_holds(50, START, START + MS(100)), HELD_NAPS);
	assert_int_equal(vb_wait_holds(0, START, START + MS(100) + 1),
			 HELD_GIVES_UP);
}

static void wait__by_the_link_after_2_events_of_packets(void **state)
{
	unsigned score = 0;

	assert_false(vb_wait_by_link(score));
	score = vb_wait_came(score, CAME_BY_OTHERS);
	assert_false(vb_wait_by_link(score));
	score = vb_wait_came(score, CAME_BY_OTHERS);
	assert_true(vb_wait_by_link(score));
	/* one event that came in another way ends the waits by the link */
	assert_false(vb_wait_by_link(vb_wait_came(score, CAME_BY_OTHERS)));
	assert_false(vb_wait_by_link(vb_wait_came(score, CAME_IN_VAIN)));
	/* after many events by the link, it takes 5 events that came in another
	 * way */
	score = vb_wait_came(score, CAME_BY_LINK);
	for (unsigned i = 0; i < 4; i++) {
		score = vb_wait_came(score,
				     i % 2 ? CAME_BY_OTHERS : CAME_IN_VAIN);
		assert_true(vb_wait_by_link(score));
	}
	assert_false(vb_wait_by_link(vb_wait_came(score, CAME_BY_OTHERS)));
	/* a message on a lane ends the waits by the link at once */
	assert_int_equal(vb_wait_came(VB_BY_LINK_MOST, CAME_BY_LANE), 0);
	assert_int_equal(vb_wait_came(0, CAME_IN_VAIN), 0);
}

static void wait__how_long_the_link_is_left(void **state)
{
	assert_int_equal(vb_wait_is_back_in(&w), US(200));
	w.prompt = 8;
	assert_int_equal(vb_wait_is_back_in(&w), MS(2));
}

static void lend__not_to_who_lets_packets_wait(void **state)
{
	struct vb_lend_policy l = { 0 };
	vb_time now = START, pause = MS(10);

	assert_true(vb_lend_may(&l, now));
	/* the program takes each packet that the thread has left to it */
	for (unsigned i = 0; i < 3; i++) {
		assert_false(vb_lend_neglected(&l, now));
		vb_lend_comes(&l);
	}
	assert_true(vb_lend_may(&l, now));
	/* the program leaves packets untaken, again and again: the pauses
	 * double */
	for (unsigned i = 0; i < 9; i++) {
		assert_false(vb_lend_neglected(&l, now));
		assert_true(vb_lend_neglected(&l, now));
		assert_false(vb_lend_may(&l, now + pause - 1));
		now += pause;
		assert_true(vb_lend_may(&l, now));
		pause = pause < MS(640) ? 2 * pause : pause;
	}
	/* after the program has taken a packet, the next pause is no longer
	 * than the last */
	assert_false(vb_lend_neglected(&l, now));
	vb_lend_comes(&l);
	vb_lend_comes(&l);
	assert_int_equal(l.pause, MS(320));
}

static void lend__who_answers_each_message(void **state)
{
	struct vb_lend_policy l = { 0 };
	uint32_t sent = 0;

	/* the program answers the first 8 messages */
	for (unsigned i = 0; i < 8; i++) {
		assert_false(vb_lend_answers(&l));
		vb_lend_took(&l, ++sent);
	}
	assert_true(vb_lend_answers(&l));
	vb_lend_took(&l, sent += 2);
	assert_true(vb_lend_answers(&l));
	/* the program does not answer the last message */
	vb_lend_took(&l, sent);
	assert_false(vb_lend_answers(&l));
	assert_int_equal(l.answers, 0);
}

static void answers__4_soon_are_worth_a_look(void **state)
{
	assert_int_equal(vb_answer_counts(1, START, START + US(200), 6), 7);
	assert_int_equal(vb_answer_counts(1, START, START + US(200) + 1, 6), 0);
	assert_false(vb_answer_is_worth(3, 0));
	assert_true(vb_answer_is_worth(4, 0));
	assert_false(vb_answer_is_worth(7, 8));
	assert_true(vb_answer_is_worth(8, 8));
	assert_int_equal(vb_answer_wary(0, false), 8);
	assert_int_equal(vb_answer_wary(200, false), 256);
	assert_int_equal(vb_answer_wary(8, true), 7);
	assert_int_equal(vb_answer_wary(0, true), 0);
}

static void answers__are_looked_for_200_us(void **state)
{
	assert_true(vb_answer_looks_on(1, START, START + US(200) - 1));
	assert_false(vb_answer_looks_on(1, START, START + US(200)));
	assert_false(vb_answer_yields(1, START, START + US(30)));
	assert_true(vb_answer_yields(1, START, START + US(30) + 1));
}

/* Limits that callers of the policy use directly (the table in
 * engine/policy.h).
 */
static void table__of_callers(void **state)
{
	assert_int_equal(VB_WORK_LASTS, US(500));
	assert_int_equal(VB_OWED_LASTS, MS(2));
	assert_int_equal(VB_LOOKS, 64);
	assert_int_equal(VB_STAND_LOOKS, 16);
	assert_int_equal(VB_DUE_A_POLL, 4);
	assert_int_equal(VB_DRAIN_BATCHES, 16);
	assert_int_equal(VB_EARLY_SLEEP, US(50));
	assert_int_equal(VB_EARLY_SPARED, 64);
}

/* On a machine that is ten times slower, all times of the rules are ten times
 * as long. */
static void slowdown__scales_the_rules_of_the_program(void **state)
{
	vb_poll_init(&p, 10);
	(void)vb_poll_ends(&p, true, 0, START);
	assert_int_equal(vb_poll_ends(&p, false, 0, START + US(300)),
			 POLL_RETURNS);
	assert_int_equal(vb_poll_ends(&p, false, 0, START + US(300) + 1),
			 POLL_YIELDS);
	assert_int_equal(vb_poll_found_taken(10, US(29)), POLL_RETURNS);
	assert_true(vb_wait_looks_on(10, START, US(29), START + US(299)));
	assert_true(vb_answer_looks_on(10, START, START + US(1999)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(word__has_time_state_and_spinning),
		TEST(word__who_loops),
		TEST(poll__yields_after_30_us),
		TEST(poll__yields_sooner_where_that_helps),
		TEST(poll__waits_where_others_want_the_processor),
		TEST(poll__of_a_program_that_sleeps_does_not_wait),
		TEST(poll__yields_where_it_cannot_wait),
		TEST(poll__finds_the_link_taken),
		TEST(poll__32_close_ones_are_spinning),
		TEST(poll__looks_less_while_peers_send),
		TEST(wait__is_prompt_after_8_returns),
		TEST(wait__looks_after_4_short_sleeps),
		TEST(wait__looks_in_vain),
		TEST(wait__how_long_it_looks),
		TEST(wait__holds_an_early_event),
		TEST(wait__by_the_link_after_2_events_of_packets),
		TEST(wait__how_long_the_link_is_left),
		TEST(lend__not_to_who_lets_packets_wait),
		TEST(lend__who_answers_each_message),
		TEST(answers__4_soon_are_worth_a_look),
		TEST(answers__are_looked_for_200_us),
		TEST(table__of_callers),
		TEST(slowdown__scales_the_rules_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
