/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines of queue pairs: which thread handles them, and how many at a time;
 * and packets that the kernel had no room to send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "near/near_priv.h"

#define QPS 3

static struct {
	vb_time now, deadline;
	vb_time stepped_at; /* the time of the last step */
	/* number of steps so far; number of batches to send */
	unsigned steps, batches;
	struct vb_engine e;
	struct vb_adapter adapter;
	struct vb_qp qp[QPS];
	struct vb_engine_qp eq[QPS];
	struct vb_link link;
	unsigned frames; /* number of frames in a batch */
	/* number of frames that the link accepts before it has no room */
	unsigned room;
	unsigned sent, lost;
	/* limit: how many requests to programs of this host a step may carry
	 * out now; steps_of_nothing: number of steps with the limit "none" */
	enum vb_near_limit limit;
	unsigned steps_of_nothing;
} fake;

static vb_time fake_now(void)
{
	return fake.now;
}

static void fake_limit(struct vb_qp *qp, enum vb_near_limit limit)
{
	fake.limit = limit;
}

#define vb_now	      fake_now
#define vb_near_limit fake_limit
#include "engine/drive.c"

static bool send_one(struct vb_qp *qp, vb_time now, struct vb_txq *q)
{
	static struct vb_route route;

	fake.steps++;
	fake.steps_of_nothing += fake.limit == NEAR_NOTHING;
	fake.stepped_at = now;
	fake.batches -= fake.batches > 0;
	for (unsigned i = 0; i < fake.frames; i++)
		vb_txq_commit(q, 16, &route);
	return fake.batches > 0;
}

static bool take_frames(struct vb_link *l, struct vb_txq *q)
{
	unsigned n = VB_MIN(fake.room, q->count - q->first);

	fake.room -= n;
	fake.sent += n;
	q->first += n;
	if (q->first < q->count)
		return false;
	vb_txq_reset(q);
	return true;
}

static void lose_frames(struct vb_link *l, struct vb_txq *q)
{
	fake.lost += q->count - q->first;
	vb_txq_reset(q);
}

static const struct vb_link_ops link_ops = { .send = take_frames,
					     .drop = lose_frames };

static vb_time deadline(const struct vb_qp *qp)
{
	return fake.deadline;
}

static const struct vb_transport_ops ops = { .send = send_one,
					     .deadline = deadline };

static int set_up(void **state)
{
	struct vb_engine *e = &fake.e;

	memset(&fake, 0, sizeof(fake));
	fake.now = VB_SEC;
	fake.deadline = VB_NEVER;
	fake.link.ops = &link_ops;
	fake.adapter.ports[0].link = e->link = &fake.link;
	for (unsigned i = 0; i < QPS; i++) {
		fake.qp[i].adapter = &fake.adapter;
		fake.qp[i].port = &fake.adapter.ports[0];
		fake.qp[i].ops = &ops;
		fake.qp[i].local_at = VB_NEVER;
		fake.qp[i].priv[PRIV_ENGINE] = &fake.eq[i];
		fake.eq[i].qp = &fake.qp[i];
		fake.eq[i].timer_at = VB_NEVER;
		atomic_store(&fake.qp[i].qpn, i + 1);
		vb_mutex_init(&fake.qp[i].drive, RANK_DRIVE);
		vb_timer_init(&fake.eq[i].timer);
	}
	atomic_store(&e->slowdown, 1);
	vb_mutex_init(&e->timer_lock, VB_RANK_LEAF);
	vb_timers_init(&e->timers);
	e->sleep_until = VB_NEVER;
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*state = e;
	return e->wake_fd < 0;
}

static int tear_down(void **state)
{
	struct vb_engine *e = *state;

	while (vb_timers_pop(&e->timers, VB_NEVER - 1))
		;
	vb_timers_fini(&e->timers);
	close(e->wake_fd);
	return 0;
}

/* Returns whether the engine thread was woken since the last call. */
static bool is_woken(void)
{
	uint64_t n;

	return read(fake.e.wake_fd, &n, sizeof(n)) == sizeof(n);
}

static bool wakes(vb_time at)
{
	fake.e.sleep_until = VB_NEVER;
	fake.eq[0].timer_at = VB_NEVER;
	arm_timer(&fake.e, &fake.qp[0], at, fake.now);
	assert_int_equal(fake.eq[0].timer_at, at);
	return is_woken();
}

static void timer__of_one_that_polls(void **state)
{
	struct vb_engine *e = *state;

	/* no program polls, so the engine thread must wake */
	assert_true(wakes(fake.now + VB_TIMER_SOON + 1));
	atomic_store(&e->attentive, true);
	assert_false(wakes(fake.now + VB_TIMER_SOON + 1));
	assert_false(wakes(fake.now + 2));
	/* The engine thread may be a millisecond late while a program polls. */
	assert_true(wakes(at_once(fake.now)));
	vb_engine_at_work(e, fake.now);
	/* The program has found a message, and may work on it for long without
	 * polling. */
	assert_true(wakes(at_once(fake.now)));
	vb_engine_note(e, fake.now, PROGRAM_LOOPS);
	assert_false(wakes(at_once(fake.now)));
	fake.now += VB_TIMER_SOON;
	assert_true(wakes(at_once(fake.now)));
	assert_false(wakes(fake.now + 2));
	atomic_store(&e->attentive, false);
	assert_true(wakes(fake.now + VB_TIMER_SOON + 1));
}

static void timer__the_thread_wakes_anyway(void **state)
{
	struct vb_engine *e = *state;

	e->sleep_until = fake.now + 5;
	arm_timer(e, &fake.qp[0], fake.now + 5, fake.now);
	assert_false(is_woken());
	arm_timer(e, &fake.qp[0], fake.now + 4, fake.now);
	assert_true(is_woken());
	assert_int_equal(e->sleep_until, fake.now + 4);
}

static void make_all_due(struct vb_engine *e)
{
	for (unsigned i = 0; i < QPS; i++)
		arm_timer(e, &fake.qp[i], fake.now, fake.now - 1);
}

static void due__so_many_at_most(void **state)
{
	struct vb_engine *e = *state;

	make_all_due(e);
	assert_true(vb_drive_is_due(e, fake.now));
	vb_drive_due(e, fake.now, QPS - 1);
	assert_int_equal(fake.steps, QPS - 1);
	assert_true(vb_drive_is_due(e, fake.now));
	vb_drive_due(e, fake.now, QPS);
	assert_int_equal(fake.steps, QPS);
	assert_false(vb_drive_is_due(e, fake.now));
}

/* A queue pair that has much to send does not occupy the thread that steps
 * it. */
static void due__others_get_a_turn(void **state)
{
	struct vb_engine *e = *state;

	fake.batches = 10 * STEP_BATCHES;
	arm_timer(e, &fake.qp[0], fake.now, fake.now - 1);
	vb_drive_due(e, fake.now, -1u);
	assert_int_equal(fake.steps, STEP_BATCHES);
	assert_false(vb_drive_is_due(e, fake.now));
	fake.now++;
	assert_true(vb_drive_is_due(e, fake.now));
	vb_drive_due(e, fake.now, -1u);
	assert_int_equal(fake.steps, 2 * STEP_BATCHES);
}

/* The lock rx guards receiving. A thread that holds rx carries out no request
 * to a program of this host, nor one whose path is not decided yet, not even
 * for a poster that found the queue pair locked. A timer makes another thread
 * carry it out without rx. */
static void step__carries_out_nothing_with_rx(void **state)
{
	static const enum vb_qp_way ways[] = { WAY_NEAR, WAY_OPEN };
	struct vb_engine *e = *state;

	vb_mutex_init(&e->rx, RANK_RX);
	for (unsigned i = 0; i < VB_COUNT(ways); i++) {
		struct vb_qp *qp = &fake.qp[i];

		vb_mutex_lock(&e->rx);
		vb_mutex_lock(&qp->drive);
		qp->way = ways[i];
		atomic_store(&vb_eq(qp)->kick, 1);
		vb_drive_step_rx(e, qp, fake.now);
		vb_drive_release_rx(e, qp);
		vb_mutex_unlock(&e->rx);
		assert_int_equal(fake.steps, 1);
		assert_int_equal(fake.steps_of_nothing, 1);
		assert_int_equal(fake.limit, NEAR_STEP);
		assert_int_equal(atomic_load(&vb_eq(qp)->kick), 0);
		fake.now++;
		assert_true(vb_drive_is_due(e, fake.now));
		vb_drive_due(e, fake.now, -1u);
		assert_int_equal(fake.steps, 2);
		assert_int_equal(fake.steps_of_nothing, 1);
		fake.steps = fake.steps_of_nothing = 0;
	}
}

/* A queue pair has messages that wait to be coalesced. A poll that waits steps
 * this queue pair, but only after it has released rx. */
static void gathered__carries_out_requests(void **state)
{
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];

	qp->way = WAY_NEAR;
	atomic_store(&e->gathered, qp);
	vb_drive_gathered(e, fake.now);
	assert_int_equal(fake.steps, 1);
	assert_int_equal(fake.steps_of_nothing, 0);
}

/* A queue pair that another thread is driving is tried again soon. */
static void VB_UNCHECKED due__one_that_is_driven(void **state)
{
	struct vb_engine *e = *state;

	make_all_due(e);
	assert_true(vb_mutex_trylock(&fake.qp[1].drive));
	vb_drive_due(e, fake.now, -1u);
	assert_int_equal(fake.steps, QPS - 1);
	assert_false(vb_drive_is_due(e, fake.now));
	vb_mutex_unlock(&fake.qp[1].drive);
	vb_drive_due(e, fake.now + BUSY, -1u);
	assert_int_equal(fake.steps, QPS);
}

static void step_now(struct vb_engine *e, struct vb_qp *qp)
{
	vb_mutex_lock(&qp->drive);
	vb_drive_step(e, qp, fake.now);
	vb_mutex_unlock(&qp->drive);
}

/* The clock that this thread has read is behind the queue pair's time, which
 * another thread has set. */
static void time__never_goes_back(void **state)
{
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];
	vb_time ahead = fake.now + 100;

	qp->now = ahead;
	step_now(e, qp);
	assert_int_equal(fake.stepped_at, ahead);
	assert_int_equal(qp->now, ahead);
	arm_timer(e, qp, fake.now, fake.now - 1);
	vb_drive_due(e, fake.now, -1u);
	assert_int_equal(fake.steps, 2);
	assert_int_equal(fake.stepped_at, ahead);
	fake.now = ahead + 1;
	step_now(e, qp);
	assert_int_equal(fake.stepped_at, ahead + 1);
}

/* A batch that the kernel had no room for waits, and no new batch is made
 * meanwhile. */
static void held__what_has_none_goes_first(void **state)
{
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];

	fake.frames = 8;
	fake.batches = 3;
	fake.room = 10;
	step_now(e, qp);
	assert_int_equal(fake.steps, 2);
	assert_int_equal(fake.sent, 10);
	assert_int_equal(atomic_load(&e->held), 1);
	assert_int_equal(vb_eq(qp)->timer_at, fake.now + VB_HELD_SOON);
	step_now(e, qp); /* this post makes no batch, which could not be sent */
	fake.now += VB_HELD_SOON;
	step_now(e, qp);
	assert_int_equal(fake.steps, 2);
	fake.room = 100;
	fake.now += 2 * VB_HELD_SOON;
	step_now(e, qp);
	assert_int_equal(fake.steps, 3);
	assert_int_equal(fake.sent, 24);
	assert_int_equal(fake.lost, 0);
	assert_int_equal(atomic_load(&e->held), 0);
}

/* A batch is lost if no packet of it could be sent for 20 ms. */
static void held__there_is_none(void **state)
{
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];
	vb_time since = fake.now;

	fake.frames = 8;
	while (fake.lost == 0 && fake.now < since + VB_SEC) {
		step_now(e, qp);
		fake.now += VB_HELD_SOON;
	}
	assert_int_equal(fake.lost, 8);
	assert_in_range(fake.now - since, VB_HELD_LASTS,
			VB_HELD_LASTS + 2 * VB_MSEC);
	assert_int_equal(fake.sent, 0);
	vb_mutex_lock(&qp->drive);
	vb_held_drop(e, qp);
	vb_mutex_unlock(&qp->drive);
	fake.lost = 0;
	fake.room = 100;
	step_now(e, qp);
	assert_int_equal(fake.sent, 8);
	assert_int_equal(fake.lost, 0);
}

static bool take_none(struct vb_link *l, struct vb_txq *q)
{
	fail_msg("a batch went to another port's link");
	return false;
}

static void lose_none(struct vb_link *l, struct vb_txq *q)
{
	fail_msg("another port's link dropped a batch");
}

/* RESET returns a queue pair to the adapter's first port. The batch that still
 * waits must leave by the link for which its routes were made. */
static void held__goes_by_the_old_port(void **state)
{
	static const struct vb_link_ops others = { .send = take_none,
						   .drop = lose_none };
	static struct vb_link other = { .ops = &others };
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];

	fake.adapter.ports[1].link = &other;
	for (int drops = 0; drops < 2; drops++) {
		fake.frames = 8;
		fake.room = fake.sent = fake.lost = 0;
		step_now(e, qp);
		assert_non_null(vb_eq(qp)->held);
		atomic_store(&qp->port, &fake.adapter.ports[1]);
		fake.frames = 0;
		fake.room = 100;
		fake.now += VB_HELD_SOON;
		vb_mutex_lock(&qp->drive);
		if (drops)
			vb_held_drop(e, qp);
		else
			assert_true(vb_held_send(e, qp, fake.now));
		vb_mutex_unlock(&qp->drive);
		assert_int_equal(fake.sent, drops ? 0 : 8);
		assert_int_equal(fake.lost, drops ? 8 : 0);
		atomic_store(&qp->port, &fake.adapter.ports[0]);
	}
}

/* A queue pair whose batch waits for room is destroyed. */
static void held__none_for_one_that_goes(void **state)
{
	struct vb_engine *e = *state;
	struct vb_qp *qp = &fake.qp[0];

	fake.frames = 8;
	step_now(e, qp);
	assert_non_null(vb_eq(qp)->held);
	vb_mutex_lock(&qp->drive);
	vb_held_drop(e, qp);
	vb_mutex_unlock(&qp->drive);
	assert_null(vb_eq(qp)->held);
	assert_int_equal(fake.lost, 8);
	assert_int_equal(atomic_load(&e->held), 0);
}

/* A thread's batch when no pthread key is left for it, because the program has
 * taken all keys: the program's own key 0 keeps its value. */
static void batch__without_a_key(void **state)
{
	struct vb_txq *q;
	int mine;

	pthread_once(&txq_once, eng_drive_make_txq_key);
	assert_true(have_txq_key);
	q = thread_txq;
	thread_txq = NULL;
	assert_int_equal(pthread_setspecific(txq_key, &mine), 0);
	have_txq_key = false;
	assert_non_null(eng_drive_my_txq());
	assert_ptr_equal(pthread_getspecific(txq_key), &mine);
	free(thread_txq);
	give_txq();
	assert_null(thread_txq);
	assert_ptr_equal(pthread_getspecific(txq_key), &mine);
	have_txq_key = true;
	thread_txq = q;
	assert_int_equal(pthread_setspecific(txq_key, q), 0);
}

/* Each batch that waits needs memory, so only a limited number waits, and
 * further ones are lost. */
static void held__for_so_many_batches(void **state)
{
	struct vb_engine *e = *state;

	atomic_store(&e->held, VB_HELD_MOST);
	fake.frames = 8;
	step_now(e, &fake.qp[0]);
	assert_null(fake.eq[0].held);
	assert_int_equal(fake.lost, 8);
	assert_int_equal(atomic_load(&e->held), VB_HELD_MOST);
}

/* --- static rates --- */

#define SLOW_PS	  4000 /* 2 Gbit/s of data */
#define SLOW_BYTE 1000 /* bytes of a frame, with its ICRC and link headers */

/* A fake transport that always has more frames to send. */
static bool send_full(struct vb_qp *qp, vb_time now, struct vb_txq *q)
{
	fake.steps++;
	while (vb_txq_has_room(q))
		vb_txq_commit(q, SLOW_BYTE - VB_ICRC_BYTES - VB_RATE_HEAD,
			      &qp->route);
	return true;
}

/* Step queue pair 0 whenever its timer is due, until @until. A thread that
 * slept runs @late ns too late. Returns how many bytes were sent. */
static uint64_t sent_until(vb_time until, vb_time late)
{
	struct vb_engine_qp *eq = &fake.eq[0];

	fake.sent = 0;
	while (fake.now < until) {
		if (eq->timer_at > at_once(fake.now))
			fake.now = eq->timer_at + late;
		fake.now = VB_MAX(fake.now, eq->timer_at);
		vb_drive_due(&fake.e, fake.now, 1);
	}
	return (uint64_t)fake.sent * SLOW_BYTE;
}

/* A static rate holds on average, also if the thread is late. Time in which
 * there was nothing to send is not made up for. */
static void rate__holds_on_average(void **state)
{
	static const struct vb_transport_ops full = { .send = send_full,
						      .deadline = deadline };
	static const vb_time late[] = { 0, 30 * VB_USEC, 5 * VB_MSEC };
	const uint64_t second = 1000000000000ull / SLOW_PS;

	fake.room = UINT32_MAX;
	fake.qp[0].ops = &full;
	fake.qp[0].route.ps_per_byte = SLOW_PS;
	for (unsigned i = 0; i < VB_COUNT(late); i++) {
		uint64_t bytes;

		fake.now += 5 * VB_SEC; /* nothing to send meanwhile */
		fake.eq[0].timer_at = VB_NEVER;
		fake.eq[0].rate_credit = 0;
		arm_timer(&fake.e, &fake.qp[0], fake.now, fake.now);
		bytes = sent_until(fake.now + VB_SEC, late[i]);
		assert_in_range(bytes, second - second / 50,
				second + second / 100);
	}
}

/* Batches to an address with a low static rate are short, so that packets leave
 * evenly. */
static void rate__batches_are_short(void **state)
{
	struct vb_txq *q = malloc(sizeof(*q));

	assert_non_null(q);
	vb_txq_reset(q);
	fake.qp[0].route.ps_per_byte = SLOW_PS;
	vb_mutex_lock(&fake.qp[0].drive);
	vb_rate_begin(&fake.qp[0], q);
	(void)send_full(&fake.qp[0], fake.now, q);
	assert_in_range(q->used, 24000, 26000);
	vb_rate_sent(&fake.qp[0], q, false, fake.now);
	assert_in_range(fake.eq[0].rate_at, fake.now + 96 * VB_USEC,
			fake.now + 106 * VB_USEC);
	assert_true(vb_rate_waits(&fake.qp[0], fake.now));
	vb_mutex_unlock(&fake.qp[0].drive);
	/* each datagram has an address, and rate, of its own */
	vb_txq_reset(q);
	vb_txq_commit(q, 2000, &fake.qp[0].route);
	vb_txq_slow(q, 2000, SLOW_PS);
	assert_true(vb_txq_has_room(q));
	vb_txq_slow(q, 24000, SLOW_PS);
	assert_false(vb_txq_has_room(q));
	free(q);
}

/* A thread that holds drive for half a second, because it has lost its
 * processor, or because it copies. */
static void *hold_drive(void *arg)
{
	atomic_bool *held = arg;

	vb_mutex_lock(&fake.qp[0].drive);
	atomic_store(held, true);
	usleep(500000);
	vb_mutex_unlock(&fake.qp[0].drive);
	return NULL;
}

/* ibv_dereg_mr() must not overtake posted requests. It waits for a driving
 * thread that has lost its processor, and not for one that waits for a page of
 * a peer's memory. */
static void begin__waits_for_the_thread_that_drives(void **state)
{
	struct vb_qp *qp = &fake.qp[0];
	struct vb_near_qp *nq = calloc(1, sizeof(*nq));

	assert_non_null(nq);
	qp->way = WAY_PACKETS;
	qp->priv[PRIV_NEAR] = nq;
	atomic_store(&qp->sq.posted, 1);
	for (unsigned copies = 0; copies < 2; copies++) {
		atomic_bool held = false;
		pthread_t thread;

		fake.steps = 0;
		atomic_store(&nq->copies, copies);
		assert_int_equal(
			pthread_create(&thread, NULL, hold_drive, &held), 0);
		while (!atomic_load(&held))
			usleep(100);
		assert_false(begin_by(*state, qp, fake.now));
		assert_int_equal(fake.steps, copies ? 0 : 1);
		pthread_join(thread, NULL);
	}
	free(nq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rate__holds_on_average, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(rate__batches_are_short, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(timer__of_one_that_polls,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(timer__the_thread_wakes_anyway,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(due__so_many_at_most, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(due__others_get_a_turn, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			step__carries_out_nothing_with_rx, set_up, tear_down),
		cmocka_unit_test_setup_teardown(gathered__carries_out_requests,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(due__one_that_is_driven, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(time__never_goes_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(held__what_has_none_goes_first,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(held__there_is_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(held__goes_by_the_old_port,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(held__none_for_one_that_goes,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(held__for_so_many_batches,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			begin__waits_for_the_thread_that_drives, set_up,
			tear_down),
		cmocka_unit_test(batch__without_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
