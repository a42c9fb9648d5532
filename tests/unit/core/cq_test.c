/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: order, overrun, resizing, arming and purging. */
#include "fixture.h"

#include <pthread.h>

static struct vb_cq *make_cq(struct fixture *f, uint32_t cap)
{
	struct vb_cq *cq = NULL;

	assert_int_equal(
		vb_cq_create_in(&f->a, cap, &f->channel, &f->async, NULL, &cq),
		0);
	cq->owner = cq;
	return cq;
}

static bool push(struct vb_cq *cq, uint64_t wr_id)
{
	const struct vb_cqe e = { .wr_id = wr_id, .timestamp = 5 };

	return vb_cq_push(cq, &e, false);
}

/* Remove one entry and return its wr_id; -1: the queue is empty. */
static int64_t poll_one(struct vb_cq *cq)
{
	struct vb_cqe e;
	int n = vb_cq_poll(cq, 1, &e);

	return n == 1 ? (int64_t)e.wr_id : -1;
}

static void create__caps(void **state)
{
	static const uint32_t rows[][2] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 4194304, 1u << 22 }
	};
	struct fixture *f = *state;
	struct vb_cq *cq;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		cq = make_cq(f, rows[i][0]);
		assert_int_equal(cq->cap, rows[i][1]);
		assert_int_equal(vb_cq_destroy(cq), 0);
	}
	assert_int_equal(vb_cq_create_in(&f->a, 0, NULL, NULL, NULL, &cq),
			 -EINVAL);
	assert_int_equal(vb_cq_create_in(&f->a, vb_limits.max_cqe + 1, NULL,
					 NULL, NULL, &cq),
			 -EINVAL);
	assert_int_equal(
		vb_cq_create_in(&f->a, UINT32_MAX, NULL, NULL, NULL, &cq),
		-EINVAL);
	atomic_store(&f->a.n_cq, vb_limits.max_cq);
	assert_int_equal(vb_cq_create_in(&f->a, 1, NULL, NULL, NULL, &cq),
			 -ENOMEM);
	atomic_store(&f->a.n_cq, 1);
}

static void destroy__busy(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 1);

	atomic_fetch_add(&cq->refs, 1);
	assert_int_equal(vb_cq_destroy(cq), -EBUSY);
	atomic_fetch_sub(&cq->refs, 1);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void destroy__takes_its_events_along(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 1);

	vb_cq_arm(cq, false);
	assert_true(push(cq, 1));
	assert_false(push(cq, 2));
	assert_true(is_readable(f->channel.fd));
	assert_true(is_readable(f->async.fd));
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_false(is_readable(f->channel.fd));
	assert_false(is_readable(f->async.fd));
}

static void poll__oldest_first_many_times_round(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 4);
	struct vb_cqe out[8];

	cq->head = UINT32_MAX - 5; /* near the wrap of the 32-bit index */
	for (uint64_t n = 0; n < 40; n += 4) {
		for (uint64_t i = 0; i < 4; i++)
			assert_true(push(cq, n + i));
		assert_int_equal(cq->count, 4);
		assert_int_equal(vb_cq_poll(cq, 3, out), 3);
		assert_int_equal(out[0].wr_id, n);
		assert_int_equal(out[0].timestamp, 5);
		assert_int_equal(out[2].wr_id, n + 2);
		assert_int_equal(vb_cq_poll(cq, 8, out), 1);
		assert_int_equal(out[0].wr_id, n + 3);
		assert_int_equal(vb_cq_poll(cq, 8, out), 0);
	}
	assert_int_equal(vb_cq_poll(cq, 0, out), 0);
	assert_int_equal(vb_cq_poll(cq, -1, out), 0);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void push_of(struct vb_cq *cq, struct vb_qp *qp, bool is_recv)
{
	const struct vb_cqe e = { .qp = qp, 
				  .opcode = is_recv ? WC_OP_RECV : 0 };

	assert_true(vb_cq_push(cq, &e, false));
}

static void sender__of_all_that_waits(void **state)
{
	struct fixture *f = *state;
	struct vb_qp one = { 0 }, other = { 0 };
	struct vb_cqe out[4];

	assert_null(vb_cq_sender(f->cq));
	push_of(f->cq, &one, false);
	push_of(f->cq, &one, false);
	assert_ptr_equal(vb_cq_sender(f->cq), &one);
	push_of(f->cq, &other, false);
	assert_null(vb_cq_sender(f->cq));
	assert_int_equal(vb_cq_poll(f->cq, 2, out), 2);
	assert_ptr_equal(vb_cq_sender(f->cq), &other);
	push_of(f->cq, &other, true);
	assert_null(vb_cq_sender(f->cq));
	assert_int_equal(vb_cq_poll(f->cq, 4, out), 2);
}

static void poll__releases_slots(void **state)
{
	struct fixture *f = *state;
	struct vb_qp qp = { 0 };
	const struct vb_cqe send = { .qp = &qp, .release = 7 };
	const struct vb_cqe recv = { .qp = &qp, .release = 9,
				     .opcode = WC_OP_RECV };
	struct vb_srq srq;
	struct vb_cqe out[2];

	assert_true(vb_cq_push(f->cq, &send, false));
	assert_true(vb_cq_push(f->cq, &recv, false));
	assert_int_equal(vb_cq_poll(f->cq, 2, out), 2);
	assert_int_equal(qp.sq.released, 7);
	assert_int_equal(qp.rq.released, 9);
	/* the completion belongs to an SRQ, which releases its slots itself */
	qp.srq = &srq;
	qp.rq.released = 0;
	assert_true(vb_cq_push(f->cq, &recv, false));
	assert_int_equal(vb_cq_poll(f->cq, 2, out), 1);
	assert_int_equal(qp.rq.released, 0);
}

static void overrun__once_told_then_dead(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 2);
	struct vb_cqe out[4];
	struct vb_event e;

	assert_true(push(cq, 1));
	assert_true(push(cq, 2));
	assert_false(push(cq, 3));
	assert_false(push(cq, 4));
	assert_int_equal(vb_async_take(&f->async, &e), 0);
	assert_int_equal(e.type, EVENT_CQ_ERR);
	assert_ptr_equal(e.object, cq);
	assert_false(is_readable(f->async.fd));
	assert_int_equal(vb_cq_poll(cq, 1, out), 1);
	assert_int_equal(out[0].wr_id, 1);
	/* The queue has room again, but it lost an entry before, so it stays in
	 * the overrun state. */
	assert_false(push(cq, 5));
	assert_int_equal(vb_cq_poll(cq, 4, out), 1);
	assert_int_equal(out[0].wr_id, 2);
	assert_int_equal(vb_cq_poll(cq, 4, out), -EIO);
	assert_int_equal(vb_cq_poll(cq, 4, out), -EIO);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void overrun__wakes_a_sleeper(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 1);

	assert_true(push(cq, 1));
	vb_cq_arm(cq, true);
	assert_false(is_readable(f->channel.fd));
	assert_false(push(cq, 2));
	assert_true(is_readable(f->channel.fd));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void overrun__nobody_to_tell(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create_in(&f->a, 1, NULL, NULL, NULL, &cq), 0);
	vb_cq_arm(cq, false);
	assert_true(push(cq, 1));
	assert_false(push(cq, 2));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void resize__keeps_what_waits(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 4);

	for (int i = 0; i < 4; i++)
		assert_true(push(cq, i));
	assert_int_equal(poll_one(cq), 0);
	/* This entry wraps to the start of the ring, which is resized next. */
	assert_true(push(cq, 4));
	assert_int_equal(vb_cq_resize(cq, 9), 0);
	assert_int_equal(cq->cap, 16);
	assert_true(push(cq, 5));
	for (int i = 1; i <= 3; i++)
		assert_int_equal(poll_one(cq), i);
	assert_int_equal(vb_cq_resize(cq, 1), -EINVAL);
	assert_int_equal(cq->cap, 16);
	assert_int_equal(vb_cq_resize(cq, 2), 0);
	assert_int_equal(poll_one(cq), 4);
	assert_int_equal(poll_one(cq), 5);
	assert_int_equal(poll_one(cq), -1);
	assert_int_equal(vb_cq_resize(cq, 0), -EINVAL);
	assert_int_equal(vb_cq_resize(cq, vb_limits.max_cqe + 1), -EINVAL);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static bool event_came(struct fixture *f)
{
	struct vb_cq *cq = NULL;

	if (!is_readable(f->channel.fd))
		return false;
	assert_int_equal(vb_channel_take(&f->channel, &cq), 0);
	assert_ptr_equal(cq, f->cq);
	return true;
}

static void arm__one_event(void **state)
{
	struct fixture *f = *state;

	vb_cq_arm(f->cq, false);
	assert_false(event_came(f));
	assert_true(push(f->cq, 1));
	assert_true(push(f->cq, 2));
	assert_true(event_came(f));
	assert_false(event_came(f));
	assert_true(push(f->cq, 3));
	assert_false(event_came(f));
}

/* As with mlx5, a program that arms and sleeps without polling again misses no
 * completion. */
static void arm__tells_of_what_waits(void **state)
{
	struct fixture *f = *state;
	struct vb_cqe out[4];

	assert_true(push(f->cq, 1));
	vb_cq_arm(f->cq, false);
	assert_true(event_came(f));
	vb_cq_arm(f->cq, false);
	/* The entry has already raised its event, so re-arming raises none. */
	assert_false(event_came(f));
	assert_true(push(f->cq, 2));
	assert_true(event_came(f));
	assert_true(push(f->cq, 3));
	assert_int_equal(vb_cq_poll(f->cq, 4, out), 3);
	vb_cq_arm(f->cq, false);
	/* no event: the program polled the entry before it armed the queue */
	assert_false(event_came(f));
}

/* UCX polls some entries, arms, polls some more, arms and sleeps. */
static void arm__tells_of_what_a_poll_left(void **state)
{
	struct fixture *f = *state;
	struct vb_cqe out[4];

	vb_cq_arm(f->cq, false);
	for (unsigned i = 0; i < 3; i++)
		assert_true(push(f->cq, i));
	assert_true(event_came(f));
	for (unsigned left = 2; left; left--) {
		assert_int_equal(vb_cq_poll(f->cq, 1, out), 1);
		vb_cq_arm(f->cq, false);
		assert_true(event_came(f));
	}
	assert_int_equal(vb_cq_poll(f->cq, 1, out), 1);
	vb_cq_arm(f->cq, false);
	assert_false(event_came(f));
}

static void arm__solicited_tells_of_what_is(void **state)
{
	const struct vb_cqe good = { 0 };
	struct fixture *f = *state;

	assert_true(vb_cq_push(f->cq, &good, false));
	vb_cq_arm(f->cq, true);
	assert_false(event_came(f));
	vb_cq_arm(f->cq, false);
	assert_true(event_came(f));
	assert_true(vb_cq_push(f->cq, &good, true));
	assert_true(vb_cq_push(f->cq, &good, false));
	vb_cq_arm(f->cq, true);
	assert_true(event_came(f));
}

static void arm__solicited(void **state)
{
	const struct vb_cqe good = { 0 }, bad = { .status = WC_FLUSH_ERR };
	struct fixture *f = *state;

	vb_cq_arm(f->cq, true);
	assert_true(vb_cq_push(f->cq, &good, false));
	assert_false(event_came(f));
	assert_true(vb_cq_push(f->cq, &good, true));
	assert_true(event_came(f));
	vb_cq_arm(f->cq, true);
	assert_true(vb_cq_push(f->cq, &bad, false));
	assert_true(event_came(f));
	vb_cq_arm(f->cq, true);
	/* arm for all completions, not only for solicited ones */
	vb_cq_arm(f->cq, false);
	assert_true(vb_cq_push(f->cq, &good, false));
	assert_true(event_came(f));
	vb_cq_arm(f->cq, false);
	/* The queue stays armed for all completions. */
	vb_cq_arm(f->cq, true);
	assert_true(vb_cq_push(f->cq, &good, false));
	assert_true(event_came(f));
}

static struct {
	unsigned calls;
	vb_time at;
	bool refuses;
} alarms;

static bool fake_alarm(struct vb_cq *cq, vb_time at)
{
	alarms.calls++;
	alarms.at = at;
	return !alarms.refuses;
}

static void moderate__count_period_error(void **state)
{
	const struct vb_cqe bad = { .status = WC_FLUSH_ERR };
	struct fixture *f = *state;
	struct vb_cqe out[8];

	alarms.calls = 0;
	vb_cq_moderate(f->cq, 3, 100, fake_alarm);
	/* Moderation does not count entries while the queue is not armed. */
	assert_true(push(f->cq, 0));
	assert_int_equal(vb_cq_poll(f->cq, 8, out), 1);
	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 1));
	assert_int_equal(alarms.calls, 1);
	assert_int_equal(alarms.at, 105);
	assert_true(push(f->cq, 2));
	assert_false(event_came(f));
	assert_true(push(f->cq, 3));
	assert_true(event_came(f));
	assert_int_equal(alarms.calls, 1);
	/* The timer expires after the event was raised: no second event. */
	vb_cq_due(f->cq);
	assert_false(event_came(f));

	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 4));
	assert_false(event_came(f));
	vb_cq_due(f->cq);
	assert_true(event_came(f));
	/* this entry comes while the queue is not armed */
	assert_true(push(f->cq, 5));
	vb_cq_due(f->cq);
	assert_false(event_came(f));
	assert_int_equal(vb_cq_poll(f->cq, 8, out), 5);

	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 6));
	assert_true(vb_cq_push(f->cq, &bad, false));
	assert_true(event_came(f));
	vb_cq_due(f->cq);
	assert_false(event_came(f));
}

static void moderate__off_again(void **state)
{
	struct fixture *f = *state;

	vb_cq_moderate(f->cq, 8, 100, fake_alarm);
	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 1));
	assert_false(event_came(f));
	vb_cq_moderate(f->cq, 8, 0, fake_alarm);
	/* A new setting raises the event that the old one delayed. */
	assert_true(event_came(f));
	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 2));
	assert_true(event_came(f));
	/* The queue is armed for solicited entries, so others are not
	 * counted. */
	vb_cq_moderate(f->cq, 2, 100, fake_alarm);
	vb_cq_arm(f->cq, true);
	assert_true(push(f->cq, 3));
	assert_true(push(f->cq, 4));
	assert_false(event_came(f));
	/* If no timer can be set, the event is raised at once. */
	alarms.refuses = true;
	vb_cq_arm(f->cq, false);
	assert_true(push(f->cq, 5));
	assert_true(event_came(f));
	alarms.refuses = false;
}

static void purge__one_of_two(void **state)
{
	struct fixture *f = *state;
	struct vb_cq *cq = make_cq(f, 8);
	struct vb_qp a = { 0 }, b = { 0 };

	cq->head = 6; /* the next entries wrap around the end of the ring */
	for (int i = 0; i < 8; i++) {
		const struct vb_cqe e = { .wr_id = i, .qp = i % 3 ? &b : &a };

		assert_true(vb_cq_push(cq, &e, false));
	}
	vb_cq_purge(cq, &b);
	assert_int_equal(cq->count, 3);
	for (int i = 0; i < 9; i += 3)
		assert_int_equal(poll_one(cq), i);
	assert_int_equal(poll_one(cq), -1);
	vb_cq_purge(cq, &a);
	assert_int_equal(b.sq.released, 0);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void *push_many(void *arg)
{
	struct vb_cq *cq = arg;

	for (uint64_t i = 1; i <= 20000; i++) {
		while (atomic_load(&cq->count) > 32)
			sched_yield();
		push(cq, i);
	}
	return NULL;
}

static void poll__beside_push_and_resize(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	int64_t last = 0;

	assert_int_equal(pthread_create(&thread, NULL, push_many, f->cq), 0);
	for (uint32_t turn = 0; last < 20000; turn++) {
		int64_t id = poll_one(f->cq);

		if (id < 0)
			sched_yield();
		else
			assert_int_equal(id, ++last);
		if (turn % 1000 == 0)
			assert_int_equal(vb_cq_resize(f->cq, 64 + turn % 3000),
					 0);
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(create__caps),
		TEST(destroy__busy),
		TEST(destroy__takes_its_events_along),
		TEST(poll__oldest_first_many_times_round),
		TEST(sender__of_all_that_waits),
		TEST(poll__releases_slots),
		TEST(overrun__once_told_then_dead),
		TEST(overrun__wakes_a_sleeper),
		TEST(overrun__nobody_to_tell),
		TEST(resize__keeps_what_waits),
		TEST(arm__one_event),
		TEST(arm__tells_of_what_waits),
		TEST(arm__tells_of_what_a_poll_left),
		TEST(arm__solicited_tells_of_what_is),
		TEST(arm__solicited),
		TEST(moderate__count_period_error),
		TEST(moderate__off_again),
		TEST(purge__one_of_two),
		TEST(poll__beside_push_and_resize),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
