/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of connections. The test sets the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/conn.h"

#define DATAGRAM 2048
#define LONG	 60000

static struct bed {
	struct vb_conns *t;
	vb_time now;
	unsigned calls, ended, sent;
	size_t sent_bytes;
	uint32_t query; /* number of the last call */
	/* true: call() fails, as when connecting is not possible now */
	bool deaf;
	bool poor; /* true: send() fails, as without a free buffer */
	unsigned most;
} b;

static uint8_t frame[VB_CONN_LONGEST];

static bool on_call(void *arg, struct vb_conn *c)
{
	if (b.deaf)
		return false;
	b.calls++;
	b.query = c->query;
	c->handle = &b;
	return true;
}

static bool on_send(void *arg, const struct vb_conn *c, const void *bytes,
		    size_t len)
{
	assert_ptr_equal(c->handle, &b);
	if (b.poor)
		return false;
	b.sent++;
	b.sent_bytes = len;
	return true;
}

static void on_end(void *arg, struct vb_conn *c)
{
	assert_ptr_equal(c->handle, &b);
	b.ended++;
}

static const struct vb_conn_ops ops = {
	.call = on_call,
	.send = on_send,
	.end = on_end,
};

static int make_bed(void **state)
{
	memset(&b, 0, sizeof(b));
	b.now = 100 * VB_SEC;
	b.t = vb_conns_create(&ops, NULL);
	return b.t ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_conns_destroy(b.t);
	return b.calls == b.ended ? 0 : -1;
}

static struct vb_ipoib_hw hw_of(uint32_t qpn)
{
	return (struct vb_ipoib_hw){ .qpn = qpn,
				     .gid = { { 0xfe, 0x80 } },
				     .flags = IPOIB_HW_RC };
}

static enum vb_conn_way send_to(uint32_t qpn, size_t len)
{
	const struct vb_ipoib_hw hw = hw_of(qpn);

	return vb_conns_send(b.t, &hw, frame, len, DATAGRAM, b.now, &b.most);
}

static enum vb_conn_state state_of(uint32_t qpn)
{
	const struct vb_ipoib_hw hw = hw_of(qpn);
	const struct vb_conn *c = vb_conns_find(b.t, &hw);

	return c ? c->state : CONN_NONE;
}

static void wait_for(vb_time time)
{
	for (vb_time end = b.now + time; b.now < end; b.now += 50 * VB_MSEC)
		vb_conns_tick(b.t, b.now);
	vb_conns_tick(b.t, b.now);
}

static uint32_t make_up(uint32_t qpn)
{
	assert_int_equal(send_to(qpn, 100), CONN_DATAGRAM);
	vb_conns_up(b.t, b.query, VB_CONN_LONGEST, b.now);
	assert_int_equal(state_of(qpn), CONN_UP);
	return b.query;
}

/* Sends a frame to queue pair @qpn, which completes. */
static void serve(uint32_t qpn, uint32_t query)
{
	assert_int_equal(send_to(qpn, LONG), CONN_TAKEN);
	vb_conns_done(b.t, query, b.now);
}

static void call__short_frames_go_by_datagram_and_long_ones_wait(void **state)
{
	assert_int_equal(send_to(1, DATAGRAM), CONN_DATAGRAM);
	assert_int_equal(state_of(1), CONN_CALLING);
	for (unsigned i = 1; i <= 5; i++)
		assert_int_equal(send_to(1, LONG + i), CONN_TAKEN);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.sent, 0);
	vb_conns_up(b.t, b.query, VB_CONN_LONGEST, b.now);
	assert_int_equal(b.sent, VB_WAITING_MAX);
	assert_int_equal(b.sent_bytes, LONG + 5);
	assert_int_equal(send_to(1, 100), CONN_TAKEN);
	assert_int_equal(b.sent, VB_WAITING_MAX + 1);
}

static void up__a_peer_that_takes_less(void **state)
{
	(void)send_to(1, LONG);
	vb_conns_up(b.t, b.query, 4096, b.now);
	assert_int_equal(b.sent, 0);
	assert_int_equal(send_to(1, 4096), CONN_TAKEN);
	assert_int_equal(send_to(1, 4097), CONN_TOO_LONG);
	assert_int_equal(b.most, 4096);
	/* a peer that accepts less than a datagram may have */
	(void)send_to(2, 100);
	vb_conns_up(b.t, b.query, 100, b.now);
	assert_int_equal(send_to(2, 101), CONN_DATAGRAM);
	assert_int_equal(send_to(2, LONG), CONN_TOO_LONG);
	assert_int_equal(b.most, DATAGRAM);
}

/* The pauses between calls grow: 1, 2, 4 ... 32 s. Meanwhile senders are told
 * to send what fits into a datagram. */
static void call__that_fails_is_tried_ever_later(void **state)
{
	static const unsigned pauses[] = { 1, 2, 4, 8, 16, 32, 32 };

	(void)send_to(1, 100);
	for (unsigned i = 0; i < VB_COUNT(pauses); i++) {
		vb_conns_failed(b.t, b.query, b.now);
		assert_int_equal(state_of(1), CONN_BACKOFF);
		assert_int_equal(send_to(1, 100), CONN_DATAGRAM);
		assert_int_equal(send_to(1, LONG), i + 1 < VB_CONN_HOPELESS
							   ? CONN_TAKEN
							   : CONN_TOO_LONG);
		wait_for(pauses[i] * VB_SEC - 100 * VB_MSEC);
		assert_int_equal(b.calls, i + 1);
		(void)send_to(1, 100);
		wait_for(200 * VB_MSEC);
		assert_int_equal(b.calls, i + 2);
		assert_int_equal(state_of(1), CONN_CALLING);
	}
	/* the first frame that arrives ends the row of failures */
	vb_conns_up(b.t, b.query, VB_CONN_LONGEST, b.now);
	serve(1, b.query);
	vb_conns_failed(b.t, b.query, b.now);
	assert_int_equal(send_to(1, LONG), CONN_TAKEN);
	assert_int_equal(state_of(1), CONN_CALLING);
}

static void call__without_an_answer(void **state)
{
	(void)send_to(1, LONG);
	wait_for(VB_CONN_ANSWER - 100 * VB_MSEC);
	assert_int_equal(state_of(1), CONN_CALLING);
	wait_for(200 * VB_MSEC);
	assert_int_equal(state_of(1), CONN_BACKOFF);
	assert_int_equal(b.ended, 1);
	/* the peer's answer comes after the call has failed, and is ignored */
	vb_conns_up(b.t, b.query, VB_CONN_LONGEST, b.now);
	assert_int_equal(state_of(1), CONN_BACKOFF);
}

static void call__that_cannot_be_tried(void **state)
{
	b.deaf = true;
	assert_int_equal(send_to(1, 100), CONN_DATAGRAM);
	assert_int_equal(state_of(1), CONN_BACKOFF);
	b.deaf = false;
	wait_for(2 * VB_SEC);
	assert_int_equal(state_of(1), CONN_CALLING);
}

static void call__that_nobody_needs_any_more(void **state)
{
	(void)send_to(1, 100);
	for (unsigned i = 0; i < 40 && state_of(1) != CONN_NONE; i++) {
		vb_conns_failed(b.t, b.query, b.now);
		wait_for(VB_CONN_LAST);
	}
	assert_int_equal(state_of(1), CONN_NONE);
	assert_true(vb_conns_next(b.t, b.now) == VB_NEVER);
}

static void up__one_that_dies_is_made_anew_at_once(void **state)
{
	uint32_t query = make_up(1);

	serve(1, query);
	vb_conns_failed(b.t, query, b.now);
	assert_int_equal(state_of(1), CONN_NONE);
	assert_int_equal(send_to(1, LONG), CONN_TAKEN);
	assert_int_equal(b.calls, 2);
	/* reports about the old connection do not concern the new one */
	vb_conns_failed(b.t, query, b.now);
	vb_conns_done(b.t, query, b.now);
	assert_int_equal(state_of(1), CONN_CALLING);
}

/* A connection that is accepted and never carries a frame counts as a failure,
 * like one that is refused. */
static void up__one_that_carries_nothing_backs_off(void **state)
{
	uint32_t query = make_up(1);

	assert_int_equal(send_to(1, LONG), CONN_TAKEN);
	vb_conns_failed(b.t, query, b.now);
	assert_int_equal(state_of(1), CONN_BACKOFF);
	assert_int_equal(send_to(1, 100), CONN_DATAGRAM);
	assert_int_equal(b.calls, 1);
}

static void up__an_idle_one_ends(void **state)
{
	uint32_t query = make_up(1);

	serve(1, query);
	wait_for(VB_CONN_IDLE - VB_SEC);
	serve(1, query);
	wait_for(VB_CONN_IDLE - VB_SEC);
	assert_int_equal(state_of(1), CONN_UP);
	wait_for(VB_CONN_DEAD + VB_SEC);
	assert_int_equal(state_of(1), CONN_NONE);
	assert_int_equal(b.ended, 1);
}

static void up__frames_without_an_end_are_bounded(void **state)
{
	uint32_t query = make_up(1);

	for (unsigned i = 0; i < VB_CONN_DEPTH - 1; i++)
		assert_int_equal(send_to(1, 100), CONN_TAKEN);
	assert_false(vb_conns_is_full(b.t, b.now));
	(void)send_to(1, 100);
	assert_true(vb_conns_is_full(b.t, b.now));
	assert_true(vb_conns_next(b.t, b.now) == b.now + VB_CONN_STALL);
	assert_int_equal(send_to(1, 100), CONN_TAKEN);
	assert_int_equal(b.sent, VB_CONN_DEPTH);
	vb_conns_done(b.t, query, b.now);
	assert_false(vb_conns_is_full(b.t, b.now));
	(void)send_to(1, 100);
	assert_int_equal(b.sent, VB_CONN_DEPTH + 1);
}

/* A peer that completes no frame delays others for a moment only, and its
 * connection ends. */
static void up__a_stalled_one_does_not_hold_up_others(void **state)
{
	uint32_t other = make_up(2), query = make_up(1);

	serve(1, query);
	for (unsigned i = 0; i < VB_CONN_DEPTH; i++)
		(void)send_to(1, 100);
	assert_true(vb_conns_is_full(b.t, b.now));
	wait_for(VB_CONN_STALL);
	assert_false(vb_conns_is_full(b.t, b.now));
	serve(2, other);
	wait_for(VB_CONN_DEAD);
	assert_int_equal(state_of(1), CONN_BACKOFF);
	assert_int_equal(state_of(2), CONN_UP);
	assert_int_equal(b.ended, 1);
	assert_false(vb_conns_is_full(b.t, b.now));
}

static void up__without_a_buffer_a_frame_is_lost(void **state)
{
	uint32_t query = make_up(1);

	b.poor = true;
	assert_int_equal(send_to(1, 100), CONN_TAKEN);
	b.poor = false;
	/* the last frame completes, so the connection no longer counts as
	 * dead */
	vb_conns_done(b.t, query, b.now);
	wait_for(VB_CONN_DEAD + VB_SEC);
	assert_int_equal(state_of(1), CONN_UP);
}

static void table__the_one_used_longest_ago_makes_room(void **state)
{
	for (uint32_t i = 0; i < VB_CONNS; i++) {
		(void)make_up(1000 + i);
		b.now += VB_MSEC;
	}
	(void)send_to(1000, 100);
	/* the table is full of connections in use: none of them ends for a new
	 * peer */
	assert_int_equal(send_to(1, 100), CONN_DATAGRAM);
	assert_int_equal(send_to(1, LONG), CONN_TOO_LONG);
	assert_int_equal(b.most, DATAGRAM);
	assert_int_equal(state_of(1), CONN_NONE);
	b.now += VB_CONN_FRESH - 100 * VB_MSEC;
	(void)send_to(1, 100);
	assert_int_equal(state_of(1), CONN_CALLING);
	assert_int_equal(state_of(1000), CONN_UP);
	assert_int_equal(state_of(1001), CONN_NONE);
	assert_int_equal(b.ended, 1);
	vb_conns_forget(b.t);
	assert_int_equal(state_of(1000), CONN_NONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(call__short_frames_go_by_datagram_and_long_ones_wait),
		TEST(up__a_peer_that_takes_less),
		TEST(call__that_fails_is_tried_ever_later),
		TEST(call__without_an_answer),
		TEST(call__that_cannot_be_tried),
		TEST(call__that_nobody_needs_any_more),
		TEST(up__one_that_dies_is_made_anew_at_once),
		TEST(up__one_that_carries_nothing_backs_off),
		TEST(up__an_idle_one_ends),
		TEST(up__frames_without_an_end_are_bounded),
		TEST(up__a_stalled_one_does_not_hold_up_others),
		TEST(up__without_a_buffer_a_frame_is_lost),
		TEST(table__the_one_used_longest_ago_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
