/* SPDX-License-Identifier: BSD-2-Clause */
/* The policy of threads, rule by rule, in virtual time: the actions of the
 * engine's thread, and the work that it leaves to a program
 * (engine/policy_thread.c). */
#include "tests/unit/engine/policy_fixture.h"

static struct vb_thread_policy t;

static int set_up(void **state)
{
	vb_thread_init(&t, 1);
	return 0;
}

/* the word in which a program says what it does; 0: it never polled */
static const uint64_t nobody;

/* Does the thread leave packets to a program with this word and trust? */
static bool leaves_to(uint64_t program, unsigned trust, vb_time now)
{
	vb_thread_init(&t, 1);
	t.trust = trust;
	return !vb_thread_on_packets(&t, program, now);
}

static void packets__who_is_believed_to_come(void **state)
{
	uint64_t at_work = vb_program_at_work(works(0), START + US(500));

	assert_false(leaves_to(nobody, 8, START));
	assert_true(leaves_to(loops(START), 1, START + MS(1) - 1));
	assert_false(leaves_to(loops(START), 1, START + MS(1)));
	assert_true(leaves_to(loops(START), 0, START + US(50) - 1));
	assert_false(leaves_to(loops(START), 0, START + US(50)));
	assert_true(leaves_to(works(START), 1, START + US(50) - 1));
	assert_false(leaves_to(works(START), 1, START + US(50)));
	assert_false(leaves_to(works(START), 0, START));
	/* A program inside a poll or a long send gets packets for 500 us. */
	assert_true(leaves_to(at_work, 0, START + US(499)));
	assert_false(leaves_to(at_work, 0, START + US(500)));
}

static void packets__a_nap_of_20_us(void **state)
{
	assert_true(vb_thread_watches(&t));
	assert_false(vb_thread_on_packets(&t, loops(START), START));
	assert_int_equal(t.does, THREAD_NAPS);
	assert_false(vb_thread_watches(&t));
	assert_true(t.left_until == START + US(20));
}

static void packets__the_program_came_during_a_nap(void **state)
{
	t.trust = 7;
	for (unsigned i = 0; i < 2; i++) {
		(void)vb_thread_on_packets(&t, loops(START), START);
		assert_false(vb_thread_on_time(&t, works(START + 16),
					       START + US(20)));
		assert_int_equal(t.does, THREAD_WATCHES);
		assert_int_equal(t.trust, 8);
	}
	assert_int_equal(t.needless, 2);
}

static void packets__the_program_did_not_come(void **state)
{
	t.trust = 5;
	(void)vb_thread_on_packets(&t, loops(START), START);
	assert_true(vb_thread_on_time(&t, loops(START), START + US(20)));
	vb_thread_drained(&t, DRAINED_SOME, loops(START), START + US(20));
	assert_int_equal(t.trust, 1);
	assert_int_equal(t.needless, 0);
	assert_int_equal(t.does, THREAD_WATCHES);
	/* Trust does not fall below 0; it is unknown which thread took the
	 * packets. */
	(void)vb_thread_on_packets(&t, loops(START), START);
	assert_true(vb_thread_on_time(&t, loops(START), START + US(20)));
	vb_thread_drained(&t, DRAINED_NOTHING, loops(START), START + US(20));
	assert_int_equal(t.trust, 0);
	assert_int_equal(t.needless, 1);
}

static void packets__that_somebody_took(void **state)
{
	t.trust = 0;
	assert_true(vb_thread_on_packets(&t, nobody, START));
	vb_thread_drained(&t, DRAINED_NOTHING, nobody, START);
	assert_int_equal(t.trust, 1);
	assert_int_equal(t.needless, 1);
	assert_int_equal(t.does, THREAD_WATCHES);
	vb_thread_drained(&t, DRAINED_BUSY, nobody, START);
	assert_int_equal(t.trust, 2);
	assert_int_equal(t.needless, 2);
	/* The packets are still in the socket, and would end each sleep at
	 * once. */
	assert_int_equal(t.does, THREAD_NAPS);
	vb_thread_called_back(&t);
	vb_thread_drained(&t, DRAINED_SOME, nobody, START);
	assert_int_equal(t.needless, 0);
}

/* Cause @times needless wake-ups, each of which a poll of the program ends, and
 * then one more. */
static void wake_needlessly(unsigned times, vb_time now)
{
	for (unsigned i = 0; i < times; i++) {
		assert_int_equal(t.does, THREAD_WATCHES);
		(void)vb_thread_on_packets(&t, loops(now), now);
		if (t.does == THREAD_NAPS)
			(void)vb_thread_on_time(&t, loops(now + 16), now);
	}
}

static vb_time rest_length(void)
{
	assert_int_equal(t.does, THREAD_RESTS);
	return t.left_until - t.left_at;
}

static void rest__after_8_needless_wakeups(void **state)
{
	vb_time now = START, length = US(50);

	wake_needlessly(7, now);
	assert_int_equal(t.does, THREAD_WATCHES);
	wake_needlessly(1, now);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(rest_length(), length);
		now += length;
		assert_false(vb_thread_on_time(&t, works(now), now));
		length = VB_MIN(2 * length, MS(1));
	}
	assert_int_equal(length, MS(1));
	/* A program that polled less than 50 us ago counts as polling. */
	assert_false(vb_thread_on_time(&t, works(now - US(50) + 16), now));
	assert_int_equal(rest_length(), MS(1));
	assert_true(vb_thread_on_time(&t, works(now - US(50)), now));
}

static void rest__was_too_early(void **state)
{
	static const unsigned wanted[] = { 16, 32, 64, 64 };

	for (unsigned i = 0; i < VB_COUNT(wanted); i++) {
		wake_needlessly(t.rest_after, START);
		assert_true(vb_thread_on_time(&t, nobody, START + US(50)));
		vb_thread_drained(&t, DRAINED_SOME, nobody, START + US(50));
		assert_int_equal(t.does, THREAD_WATCHES);
		assert_int_equal(t.needless, 0);
		assert_int_equal(t.rest_after, wanted[i]);
	}
	/* The rest was right, and the next one needs half as many wake-ups. */
	wake_needlessly(64, START);
	assert_true(vb_thread_on_time(&t, nobody, START + US(50)));
	vb_thread_drained(&t, DRAINED_NOTHING, nobody, START + US(50));
	assert_int_equal(t.rest_after, 32);
	wake_needlessly(32, START);
	for (unsigned i = 0; i < 5; i++)
		assert_false(vb_thread_on_time(&t, loops(START), START));
	assert_int_equal(t.rest_after, 8);
}

static void rest__ends_when_called(void **state)
{
	wake_needlessly(8, START);
	assert_int_equal(t.does, THREAD_RESTS);
	vb_thread_called_back(&t);
	assert_int_equal(t.does, THREAD_WATCHES);
	assert_true(vb_thread_watches(&t));
	assert_int_equal(t.needless, 0);
}

/* Rule 6: wake-ups out of ppoll() for nothing make the thread rest. */
static void rest__by_wakeups_unheard(void **state)
{
	uint64_t spins = works(START) | SPINS;

	vb_thread_slept(&t, 0);
	/* no count: the program stopped spinning during the sleep */
	vb_thread_slept(&t, -5);
	vb_thread_slept(&t, 1);
	assert_int_equal(t.needless, 0);
	vb_thread_slept(&t, 8);
	vb_thread_will_sleep(&t, spins, START);
	assert_int_equal(t.does, THREAD_WATCHES);
	vb_thread_slept(&t, 2);
	/* Beside a program that does not spin the thread takes no rest. */
	vb_thread_will_sleep(&t, works(START), START);
	assert_int_equal(t.does, THREAD_WATCHES);
	/* A program that polled 50 us ago does not count as spinning. */
	vb_thread_will_sleep(&t, spins, START + US(50));
	assert_int_equal(t.does, THREAD_WATCHES);
	vb_thread_will_sleep(&t, spins, START + US(50) - 1);
	assert_int_equal(rest_length(), US(50));
}

/* Packets came @after the thread went to sleep, and the thread has served
 * them. */
static void came(vb_time after, vb_time now)
{
	vb_thread_woke(&t, now - after, now);
	assert_true(vb_thread_on_packets(&t, nobody, now));
	vb_thread_drained(&t, DRAINED_SOME, nobody, now);
}

/* Returns the word of a program that spins. Rule 12: the thread rests sooner if
 * its wake-ups are costly. */
static uint64_t spinning(vb_time at)
{
	return loops(at) | SPINS;
}

static void rest__early_beside_a_program_that_polls(void **state)
{
	vb_thread_will_sleep(&t, spinning(START), START);
	assert_int_equal(t.does, THREAD_WATCHES); /* wake-ups are not costly */
	t.dear = true;
	vb_thread_will_sleep(&t, nobody, START);
	assert_int_equal(t.does, THREAD_WATCHES);
	vb_thread_will_sleep(&t, spinning(START), START + US(50));
	assert_int_equal(t.does, THREAD_WATCHES);
	vb_thread_will_sleep(&t, spinning(START), START + US(49));
	assert_int_equal(t.does, THREAD_RESTS);
	assert_true(t.left_until == START + US(99));
	/* The rest goes on while the program loops, or works. */
	assert_false(vb_thread_on_time(&t, spinning(START), START + US(999)));
	assert_int_equal(t.does, THREAD_RESTS);
	assert_true(vb_thread_on_time(&t, works(START), START + US(999)));
}

static void rest__early_pauses_if_it_was_wrong(void **state)
{
	vb_time now = START;

	t.dear = true;
	for (unsigned pause = 1; pause <= 128; pause *= 2) {
		vb_time end = now + MS(VB_MIN(pause, 64u));

		vb_thread_will_sleep(&t, spinning(now), now);
		assert_int_equal(t.does, THREAD_RESTS);
		vb_thread_drained(&t, DRAINED_SOME, nobody, now);
		vb_thread_will_sleep(&t, spinning(end - 1), end - 1);
		assert_int_equal(t.does, THREAD_WATCHES);
		now = end;
	}
	/* A rest that goes on makes the next pause shorter. */
	vb_thread_will_sleep(&t, spinning(now), now);
	assert_false(vb_thread_on_time(&t, spinning(now), now + US(50)));
	vb_thread_drained(&t, DRAINED_SOME, nobody, now);
	assert_true(t.early_at == now + MS(64));
	assert_false(t.early > MS(64));
}

static void linger__if_packets_come_within_30_us(void **state)
{
	came(US(30), START);
	assert_int_equal(t.does, THREAD_WATCHES);
	came(US(30) - 1, START);
	assert_int_equal(t.does, THREAD_LINGERS);
	assert_int_equal(t.eager, 1);
	t.does = THREAD_WATCHES;
	for (unsigned i = 0; i < 20; i++)
		vb_thread_woke(&t, START, START);
	assert_int_equal(t.eager, 8);
}

/* The thread looks once in a microsecond, finds nothing, and gives up. */
static vb_time lingers_in_vain(vb_time now)
{
	vb_time from = now;

	while (t.does == THREAD_LINGERS) {
		now += US(1);
		if (vb_thread_yielded(&t, US(1), now))
			vb_thread_drained(&t, DRAINED_NOTHING, nobody, now);
	}
	return now - from;
}

static void linger__for_30_us_after_the_last(void **state)
{
	vb_time now = START;

	came(US(1), now);
	assert_int_equal(lingers_in_vain(now), US(30));
	/* 0: the last time of looking for more found nothing */
	assert_int_equal(t.eager, 0);
	came(US(1), now);
	now += US(29);
	assert_true(vb_thread_yielded(&t, US(1), now));
	vb_thread_drained(&t, DRAINED_SOME, nobody, now);
	assert_int_equal(lingers_in_vain(now), US(30));
	assert_int_equal(t.eager, 1);
}

static void linger__for_200_us_in_all(void **state)
{
	vb_time now = START;

	came(US(1), now);
	while (t.does == THREAD_LINGERS) {
		now += US(20);
		assert_true(vb_thread_yielded(&t, US(1), now));
		vb_thread_drained(&t, DRAINED_SOME, nobody, now);
	}
	assert_int_equal(now - START, US(200));
	assert_int_equal(t.eager, 1);
}

static void linger__not_beside_a_program_that_polls(void **state)
{
	came(US(1), START);
	assert_true(vb_thread_yielded(&t, US(1), START));
	vb_thread_drained(&t, DRAINED_BUSY, nobody, START);
	assert_int_equal(t.does, THREAD_WATCHES);
	came(US(1), START);
	vb_thread_drained(&t, DRAINED_NOTHING, works(START - US(50) + 16),
			  START);
	assert_int_equal(t.does, THREAD_WATCHES);
	came(US(1), START);
	vb_thread_drained(&t, DRAINED_NOTHING, works(START - US(50)), START);
	assert_int_equal(t.does, THREAD_LINGERS);
}

/* The thread looks for more work; its yield lasts @took. True: it looks on. */
static bool lingers_on(vb_time took, vb_time now)
{
	t.eager = 8;
	t.does = THREAD_WATCHES;
	vb_thread_drained(&t, DRAINED_SOME, nobody, now);
	if (t.does != THREAD_LINGERS)
		return false;
	return vb_thread_yielded(&t, took, now);
}

static void linger__somebody_wants_the_processor(void **state)
{
	assert_true(lingers_on(US(3), START));
	assert_false(lingers_on(US(3) + 1, START));
	assert_int_equal(t.does, THREAD_WATCHES);
	assert_int_equal(t.eager, 7);
	/* The yield ran only an interrupt, so the thread lingers the next
	 * time. */
	assert_false(lingers_on(US(100), START));
	assert_true(lingers_on(US(3), START));
	assert_int_equal(t.crowd, 0);
}

static void linger__a_crowd_pauses_it(void **state)
{
	static const unsigned pauses[] = { 10, 20, 40, 80, 160, 320, 640, 640 };
	vb_time now = START;

	for (unsigned i = 0; i < VB_COUNT(pauses); i++) {
		assert_false(lingers_on(US(100) + 1, now));
		assert_int_equal(t.crowd, MS(pauses[i]));
		assert_false(lingers_on(0, now + MS(pauses[i]) - 1));
		now += MS(pauses[i]);
	}
	/* A thread that found its processor free halves its next pause. */
	assert_true(lingers_on(0, now));
	(void)lingers_in_vain(now);
	assert_false(lingers_on(US(200), now));
	assert_int_equal(t.crowd, MS(640));
	assert_true(lingers_on(0, now += MS(640)));
	(void)lingers_in_vain(now);
	assert_true(lingers_on(0, now));
	(void)lingers_in_vain(now);
	assert_false(lingers_on(US(200), now));
	assert_int_equal(t.crowd, MS(320));
}

static void timers__whose_they_are(void **state)
{
	vb_time soon = START + 1, later = START + 2;

	assert_false(vb_program_gets_timer(loops(START), false, later, START));
	assert_true(vb_program_gets_timer(works(START), true, later, START));
	assert_false(vb_program_gets_timer(works(START), true, soon, START));
	assert_true(vb_program_gets_timer(loops(START), true, soon, START));
	assert_true(vb_program_gets_timer(loops(START), true, START,
					  START + US(200) - 1));
	assert_false(vb_program_gets_timer(loops(START), true, START,
					   START + US(200)));
}

static void timers__until_when_the_thread_sleeps(void **state)
{
	vb_time due = START + MS(30);

	assert_true(vb_thread_sleeps(&t, nobody, false, VB_NEVER, START) ==
		    VB_NEVER);
	assert_true(vb_thread_sleeps(&t, nobody, false, due, START) == due);
	/* The thread looks within a millisecond whether the polls continue. */
	assert_true(vb_thread_sleeps(&t, works(START), true, due, START) ==
		    START + MS(1));
	assert_true(vb_thread_sleeps(&t, works(START), true, START, START) ==
		    START);
	assert_true(vb_thread_sleeps(&t, loops(START), true, START, START) ==
		    START + MS(1));
	/* The thread wakes for the end of its rest before the timer. */
	wake_needlessly(8, START);
	assert_true(vb_thread_sleeps(&t, works(START), true, due, START) ==
		    START + US(50));
}

static void attentive__for_a_millisecond(void **state)
{
	assert_true(
		vb_thread_is_attentive(&t, works(START), START + MS(1) - 1));
	assert_false(vb_thread_is_attentive(&t, works(START), START + MS(1)));
	assert_false(vb_thread_sends_ack(&t, START, START + US(20)));
	assert_true(vb_thread_sends_ack(&t, START, START + US(20) + 1));
	assert_true(vb_thread_soon(&t, START) == START + US(20));
}

/* If others keep the program from its processor, its ACKs wait for its
 * reply. */
static void acks__wait_where_others_want_the_processor(void **state)
{
	/* Few waits are no reason for the thread to wake each millisecond. */
	vb_thread_sees_waits(&t, 7, START);
	assert_false(t.busy);
	vb_thread_sees_waits(&t, 8, START);
	vb_thread_sees_waits(&t, 8, START + MS(100) - 1);
	assert_true(
		vb_thread_is_attentive(&t, works(START), START + MS(20) - 1));
	assert_false(vb_thread_is_attentive(&t, works(START), START + MS(20)));
	assert_false(vb_thread_sends_ack(&t, START, START + MS(20)));
	assert_true(vb_thread_sends_ack(&t, START, START + MS(20) + 1));
	vb_thread_sees_waits(&t, 15, START + MS(100));
	assert_false(vb_thread_is_attentive(&t, works(START), START + MS(1)));
}

static enum vb_lanes lanes(uint64_t program, bool waiter, vb_time now,
			   vb_time *slept)
{
	vb_time until = now + MS(5);
	enum vb_lanes who = vb_thread_lanes(&t, program, waiter, &until, now);

	*slept = until - now;
	return who;
}

static void lanes__of_a_program_that_spins(void **state)
{
	static const unsigned us[] = { 50, 100, 200, 400, 800, 1000, 1000 };
	vb_time slept;

	for (unsigned i = 0; i < VB_COUNT(us); i++) {
		assert_int_equal(lanes(works(START) | SPINS, true,
				       START + US(50) - 1, &slept),
				 LANES_PROGRAM);
		assert_int_equal(slept, US(us[i]));
	}
	assert_int_equal(
		lanes(works(START) | SPINS, false, START + US(50), &slept),
		LANES_RING);
	assert_int_equal(slept, MS(5));
	assert_int_equal(lanes(works(START), true, START, &slept),
			 LANES_WAITER);
	assert_int_equal(slept, MS(5));
	/* The interval starts again at 50 us; also after a rest without a
	 * result. */
	(void)lanes(works(START) | SPINS, false, START, &slept);
	assert_int_equal(slept, US(50));
	wake_needlessly(8, START);
	(void)vb_thread_on_time(&t, nobody, START + US(50));
	(void)lanes(works(START) | SPINS, false, START, &slept);
	assert_int_equal(slept, US(50));
}

static void stand_by__does_not_sleep(void **state)
{
	vb_time slept;

	assert_false(vb_thread_stands_by(&t, true, START));
	assert_true(vb_thread_stands_by(&t, false, START));
	assert_int_equal(lanes(nobody, false, START, &slept), LANES_THREAD);
	assert_int_equal(slept, 0);
	assert_int_equal(lanes(works(START) | SPINS, false, START, &slept),
			 LANES_PROGRAM);
}

/* One turn of looking at the lanes; @took is how long the yield took. */
static bool turn(bool found, bool served, vb_time took, vb_time now)
{
	if (t.does != THREAD_STANDS_BY)
		assert_true(vb_thread_stands_by(&t, false, now));
	vb_thread_turn_begins(&t, now);
	assert_true(vb_thread_looks_on(&t, false, now + US(100) - 1));
	assert_false(vb_thread_looks_on(&t, true, now));
	assert_false(vb_thread_looks_on(&t, false, now + US(100)));
	return vb_thread_turn_ends(&t, found, served, took, now + US(100));
}

static void stand_by__as_long_as_something_comes(void **state)
{
	assert_true(turn(true, false, 0, START));
	assert_true(turn(true, false, US(100) - 1, START));
	assert_false(turn(false, false, 0, START));
	assert_int_equal(t.does, THREAD_WATCHES);
	assert_false(turn(true, true, 0, START));
	/* A fast yield that found work gives no reason to pause. */
	assert_true(turn(true, false, 0, START));
}

static void stand_by__pauses(void **state)
{
	static const unsigned ms[] = { 4,   8,	 16,  32,   64,
				       128, 256, 512, 1000, 1000 };
	vb_time now = START;

	for (unsigned i = 0; i < VB_COUNT(ms); i++) {
		assert_false(turn(true, false, US(100), now));
		now += US(100);
		assert_false(
			vb_thread_stands_by(&t, false, now + MS(ms[i]) - 1));
		now += MS(ms[i]);
	}
	now += MS(20);
	assert_false(turn(true, false, US(100), now));
	assert_int_equal(t.pause, MS(4));
}

/* A thread that stands by does not sleep, so that it need not rest or linger;
 * the packets that it leaves to a program get a nap. */
static void stand_by__and_packets(void **state)
{
	t.needless = 100;
	t.eager = 7;
	assert_true(vb_thread_stands_by(&t, false, START));
	assert_false(vb_thread_on_packets(&t, loops(START), START));
	assert_int_equal(t.does, THREAD_STANDS_BY);
	assert_false(vb_thread_watches(&t));
	assert_true(t.left_until == START + US(20));
	assert_true(vb_thread_on_time(&t, loops(START), START + US(20)));
	vb_thread_drained(&t, DRAINED_SOME, loops(START), START + US(20));
	assert_int_equal(t.trust, 0);
	assert_int_equal(t.needless, 0);
	assert_true(vb_thread_watches(&t));
	vb_thread_drained(&t, DRAINED_SOME, nobody, START);
	assert_int_equal(t.does, THREAD_STANDS_BY);
	vb_thread_woke(&t, START, START);
	assert_int_equal(t.eager, 7);
	/* The thread stopped watching lanes; only a nap of 20 us follows. */
	t.trust = 1;
	assert_false(vb_thread_on_packets(&t, loops(START), START));
	assert_false(turn(false, false, 0, START));
	assert_int_equal(t.does, THREAD_NAPS);
	assert_true(t.left_until == START + US(20));
}

static void stand_by__ends_a_rest(void **state)
{
	wake_needlessly(8, START);
	assert_true(vb_thread_stands_by(&t, false, START));
	assert_true(vb_thread_watches(&t));
}

/* On a machine that is ten times slower, all times of the rules are ten times
 * as long. */
static void slowdown__scales_the_rules_of_the_thread(void **state)
{
	vb_thread_init(&t, 10);
	assert_false(vb_thread_on_packets(&t, loops(START), START + MS(9)));
	assert_int_equal(t.left_until - t.left_at, US(200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets__who_is_believed_to_come),
		TEST(packets__a_nap_of_20_us),
		TEST(packets__the_program_came_during_a_nap),
		TEST(packets__the_program_did_not_come),
		TEST(packets__that_somebody_took),
		TEST(rest__after_8_needless_wakeups),
		TEST(rest__was_too_early),
		TEST(rest__ends_when_called),
		TEST(rest__by_wakeups_unheard),
		TEST(rest__early_beside_a_program_that_polls),
		TEST(rest__early_pauses_if_it_was_wrong),
		TEST(linger__if_packets_come_within_30_us),
		TEST(linger__for_30_us_after_the_last),
		TEST(linger__for_200_us_in_all),
		TEST(linger__not_beside_a_program_that_polls),
		TEST(linger__somebody_wants_the_processor),
		TEST(linger__a_crowd_pauses_it),
		TEST(timers__whose_they_are),
		TEST(timers__until_when_the_thread_sleeps),
		TEST(attentive__for_a_millisecond),
		TEST(lanes__of_a_program_that_spins),
		TEST(stand_by__does_not_sleep),
		TEST(stand_by__as_long_as_something_comes),
		TEST(stand_by__pauses),
		TEST(stand_by__and_packets),
		TEST(stand_by__ends_a_rest),
		TEST(slowdown__scales_the_rules_of_the_thread),
		TEST(acks__wait_where_others_want_the_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
