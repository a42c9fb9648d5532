/* SPDX-License-Identifier: BSD-2-Clause */
/* near/session: introductions between two programs; this process plays both. */
#include "tests/unit/near/session_bed.h"

/* The caller may use the lane, and ring, before the called program has read
 * READY. A thread of the called program that was woken by that ring found no
 * lane, so coming up must wake it again. */
static void session__comes_up_and_wakes_a_waiting_thread(void **state)
{
	struct program caller, called;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	go(&caller); /* the HELLO arrives */
	go(&called); /* the WELCOME arrives */
	go(&caller); /* the READY arrives */
	assert_true(vb_peer_is_up(caller.near->peers[2]));
	assert_false(vb_peer_is_up(called.near->peers[1]));
	if (!vb_near_set_bells(called.near))
		skip();
	go(&called);
	assert_true(vb_peer_is_up(called.near->peers[1]));
	assert_int_equal(vb_near_wait(called.near), 0);
	vb_near_clear_bells(called.near);
	end(&caller);
	end(&called);
}

/* A process that has the socket of the name cannot make the engine thread
 * wait: the thread sets O_NONBLOCK again before it accepts a caller. */
static void session__does_not_rely_on_a_shared_flag(void **state)
{
	struct program caller, called;

	begin(&caller, 1);
	begin(&called, 2);
	assert_int_equal(fcntl(called.name_fd, F_SETFL, 0), 0);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	assert_true(fcntl(called.name_fd, F_GETFL) & O_NONBLOCK);
	assert_true(vb_peer_is_up(called.near->peers[1]));
	end(&caller);
	end(&called);
}

static void session__wakes_a_peer_by_the_session(void **state)
{
	struct program caller, called;
	struct vb_peer *p;
	struct pollfd ready;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	p = caller.near->peers[2];
	ready = (struct pollfd){ vb_near_fd(called.near), POLLIN, 0 };
	assert_int_equal(poll(&ready, 1, 0), 0);
	/* A called program that is stopped reads nothing: the caller goes on.
	 */
	for (int i = 0; i < 5000; i++)
		p->world->wake(p->world->arg, p);
	assert_int_equal(poll(&ready, 1, 0), 1);
	for (int i = 0; i < 5000 && poll(&ready, 1, 0) == 1; i++)
		vb_near_meet(called.near, 0);
	assert_int_equal(poll(&ready, 1, 0), 0);
	assert_true(vb_peer_is_up(called.near->peers[1]));
	assert_true(vb_peer_is_up(p));
	end(&caller);
	end(&called);
}

/* The peer holds the bell at 1, as if a thread slept on it: a ring still wakes
 * the engine thread, which has said that it sleeps. */
static void session__wakes_a_thread_beside_a_spoiled_bell(void **state)
{
	struct program caller, called;
	struct pollfd ready;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	ready = (struct pollfd){ vb_near_fd(called.near), POLLIN, 0 };
	assert_int_equal(poll(&ready, 1, 0), 0);
	assert_true(vb_near_sleep(called.near));
	vb_bell_set(caller.near->peers[2]->bell);
	vb_peer_ring(caller.near->peers[2]);
	assert_int_equal(poll(&ready, 1, 0), 1);
	end(&caller);
	end(&called);
}

static void *sleep_by_bells(void *arg)
{
	return (void *)(intptr_t)vb_near_wait(arg);
}

/* One peer writes to all words that it can write: another peer still wakes the
 * thread that sleeps. */
static void session__no_peer_silences_another(void **state)
{
	struct program called, honest, hostile;
	pthread_t sleeper;
	void *result;

	begin(&called, 1);
	begin(&honest, 2);
	begin(&hostile, 3);
	(void)vb_session_want(honest.near, 1);
	meet(&honest, &called);
	(void)vb_session_want(hostile.near, 1);
	meet(&hostile, &called);
	if (!vb_near_set_bells(called.near))
		skip();
	assert_int_equal(
		pthread_create(&sleeper, NULL, sleep_by_bells, called.near), 0);
	usleep(20000);
	vb_bell_clear(hostile.near->peers[1]->bell);
	assert_true(vb_bell_ring(honest.near->peers[1]->bell));
	pthread_join(sleeper, &result);
	assert_null(result);
	vb_near_clear_bells(called.near);
	end(&called);
	end(&honest);
	end(&hostile);
}

/* A peer ends while a thread sleeps by its bell, too: the thread wakes, and
 * gives up its reference to the peer. */
static void session__that_ends_wakes_a_sleeping_thread(void **state)
{
	struct program caller, called;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	if (!vb_near_set_bells(called.near))
		skip();
	end(&caller);
	go(&called);
	assert_null(called.near->peers[1]);
	assert_int_equal(vb_near_wait(called.near), 0);
	assert_int_equal(called.near->watch.count, 2);
	vb_near_clear_bells(called.near);
	end(&called);
}

/* A program that was called has the lane before this program knows anything of
 * it, and can write to the lane. */
static void session__called_program_has_no_copy_under_way(void **state)
{
	struct program caller, called;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	go(&caller); /* the HELLO arrives */
	atomic_store(&caller.near->peers[2]->peer_hazards[0].what,
		     UINT64_C(0xabc) << 32);
	vb_near_await(caller.near, 0xabc);
	end(&caller);
	end(&called);
}

/* A session ends while a thread of the peer, which lives, copies: whoever takes
 * memory away still finds that copy, and a new session of that peer is told
 * to use packets until the copy has ended. */
static void session__that_has_ended_is_kept_while_a_copy_lasts(void **state)
{
	struct program caller, called;
	struct vb_peer *p;

	begin(&caller, 1);
	begin(&called, 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	p = vb_peer_get(called.near->peers[1]);
	atomic_store(&p->peer_hazards[0].what, UINT64_C(0xabc) << 32);
	vb_peer_disown(p);
	p->world->hang_up(p->world->arg, p);
	meet(&called, &caller);
	assert_null(called.near->peers[1]);
	assert_true(called.near->leaving[1] == p);
	assert_true(vb_near_sees_off(called.near));
	assert_false(
		vb_near_is_drained(called.near, 0xabc, &(struct vb_age){ 0 }));
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	assert_int_equal(atomic_load(&called.near->peers[1]->state),
			 PEER_DENIED);
	atomic_store(&p->peer_hazards[0].what, 0);
	assert_true(
		vb_near_is_drained(called.near, 0xabc, &(struct vb_age){ 0 }));
	go(&called);
	assert_null(called.near->leaving[1]);
	/* The copy has ended, so the next connection may go near. */
	meet(&caller, &called);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	assert_non_null(caller.near->peers[2]);
	assert_true(vb_peer_is_up(caller.near->peers[2]));
	assert_true(vb_peer_is_up(called.near->peers[1]));
	assert_false(vb_near_sees_off(called.near));
	vb_peer_put(p);
	end(&caller);
	end(&called);
}

static unsigned count_eventfds(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++) {
		char path[40], what[40];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what));
		count += n == sizeof("anon_inode:[eventfd]") - 1 &&
			 memcmp(what, "anon_inode:[eventfd]", (size_t)n) == 0;
	}
	return count;
}

/* A program that had the eventfd of another one could empty it after clearing
 * O_NONBLOCK, or fill it: the other one would wait in read() or write(). */
static void session__gives_no_eventfd_away(void **state)
{
	struct program caller, called;
	unsigned own;

	begin(&caller, 1);
	begin(&called, 2);
	own = count_eventfds();
	assert_true(own >= 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	assert_true(vb_peer_is_up(caller.near->peers[2]));
	assert_int_equal(count_eventfds(), own);
	end(&caller);
	end(&called);
}

/* Check that both slots of a program lead to one session. */
static void assert_one_session(struct program *p, unsigned slot, unsigned also)
{
	struct vb_peer *one = vb_session_peer(p->near, slot),
		       *other = vb_session_peer(p->near, also);

	assert_non_null(one);
	assert_true(one == other);
	assert_true(vb_peer_is_up(one));
	assert_true(vb_peer_has(one, slot) && vb_peer_has(one, also));
	vb_peer_put(one);
	vb_peer_put(other);
}

static void session__program_with_two_slots_is_found_by_the_second(void **state)
{
	struct program caller, called;

	begin(&caller, 1);
	begin(&called, 300);
	begin_also(&called, 2);
	(void)vb_session_want(caller.near, 2);
	meet(&caller, &called);
	assert_one_session(&caller, 300, 2);
	assert_int_equal(caller.near->sessions, 1);
	assert_int_equal(called.near->sessions, 1);
	end(&called);
	/* the program hung up, so it is removed from both slots */
	meet(&caller, &caller);
	assert_null(vb_session_peer(caller.near, 300));
	assert_null(vb_session_peer(caller.near, 2));
	end(&caller);
}

/* A program that called gets its second slot when there is already a session,
 * and tells its peer. */
static void session__hears_of_a_second_slot(void **state)
{
	struct program a, b;

	begin(&a, 1);
	begin(&b, 300);
	(void)vb_session_want(b.near, 1);
	meet(&a, &b);
	begin_also(&b, 2);
	assert_int_equal(vb_near_also(b.near, 3, b.also_fd), -EEXIST);
	assert_true(vb_near_is_own(b.near, 2) && !vb_near_is_own(b.near, 3));
	meet(&a, &b);
	assert_one_session(&a, 300, 2);
	assert_true(vb_session_peer(b.near, 2) == b.near->self);
	vb_peer_put(b.near->self);
	end(&a);
	end(&b);
}

/* Two programs call each other by their second slots at the same time. */
static void session__two_slots_at_once(void **state)
{
	struct program a, b;

	begin(&a, 300);
	begin_also(&a, 2);
	begin(&b, 301);
	begin_also(&b, 3);
	(void)vb_session_want(a.near, 3);
	(void)vb_session_want(b.near, 2);
	meet(&a, &b);
	meet(&b, &a);
	assert_one_session(&a, 301, 3);
	assert_one_session(&b, 300, 2);
	assert_int_equal(a.near->sessions, 1);
	assert_int_equal(b.near->sessions, 1);
	end(&a);
	end(&b);
}

/* When all sessions were taken and one ends, both slots accept calls again. */
static void session__one_more_when_another_has_ended(void **state)
{
	struct program called, one, more;

	begin(&called, 300);
	begin_also(&called, 2);
	begin(&one, 1);
	begin(&more, 3);
	called.near->max_sessions = 1;
	(void)vb_session_want(one.near, 300);
	meet(&one, &called);
	(void)vb_session_want(more.near, 2);
	meet(&more, &called);
	assert_null(vb_session_peer(called.near, 3));
	end(&one);
	meet(&called, &more);
	assert_one_session(&more, 300, 2);
	end(&called);
	end(&more);
}

/* A queue pair that waits for a second slot learns that the first slot, to
 * which the call was redirected, cannot be called. */
static void session__redirected_call_fails_for_both_slots(void **state)
{
	struct program caller, called;
	struct vb_peer *p;
	uint32_t since;

	begin(&caller, 1);
	begin(&called, 300);
	begin_also(&called, 2);
	since = vb_session_want(caller.near, 2);
	go(&caller); /* the HELLO arrives */
	go(&called); /* the answer is ELSEWHERE */
	caller.near->max_sessions = 0;
	assert_int_equal(vb_session_find(caller.near, 2, since, &p),
			 SESSION_PENDING);
	go(&caller);
	assert_int_equal(vb_session_find(caller.near, 2, since, &p),
			 SESSION_NO);
	end(&caller);
	end(&called);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session__comes_up_and_wakes_a_waiting_thread),
		cmocka_unit_test(session__does_not_rely_on_a_shared_flag),
		cmocka_unit_test(session__wakes_a_peer_by_the_session),
		cmocka_unit_test(session__wakes_a_thread_beside_a_spoiled_bell),
		cmocka_unit_test(session__no_peer_silences_another),
		cmocka_unit_test(session__that_ends_wakes_a_sleeping_thread),
		cmocka_unit_test(session__gives_no_eventfd_away),
		cmocka_unit_test(session__called_program_has_no_copy_under_way),
		cmocka_unit_test(
			session__that_has_ended_is_kept_while_a_copy_lasts),
		cmocka_unit_test(
			session__program_with_two_slots_is_found_by_the_second),
		cmocka_unit_test(session__hears_of_a_second_slot),
		cmocka_unit_test(session__two_slots_at_once),
		cmocka_unit_test(session__one_more_when_another_has_ended),
		cmocka_unit_test(session__redirected_call_fails_for_both_slots),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
