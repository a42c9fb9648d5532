/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/types.h"
#include "ib/window.h"

static struct vb_window w;

static void acked(uint32_t count, uint32_t una)
{
	w.limited = true;
	vb_window_acked(&w, count, una, 0);
}

static void window__fits_a_small_socket_buffer(void **state)
{
	for (unsigned code = 1; code <= 5; code++) {
		uint32_t mtu = vb_mtu_bytes(code);

		vb_window_init(&w, mtu, 0);
		assert_true(w.pkts * mtu <= 128u << 10);
		assert_true(w.max * mtu <= 512u << 10);
		assert_true(w.pkts >= 2);
		for (unsigned i = 0; i < 1000; i++)
			acked(w.pkts, 0);
		assert_int_equal(w.pkts, w.max);
	}
}

/* Where receivers make senders wait, a window may fill a long link. */
static void window__grows_as_the_link_says(void **state)
{
	vb_window_init(&w, 4096, 2u << 20);
	assert_true(w.pkts * 4096 <= 128u << 10);
	for (unsigned i = 0; i < 1000; i++)
		acked(w.pkts, 0);
	assert_int_equal(w.pkts * 4096, 2u << 20);
}

static void window__doubles_then_adds(void **state)
{
	uint32_t start;

	vb_window_init(&w, 4096, 0);
	start = w.pkts;
	acked(start, 0);
	assert_int_equal(w.pkts, 2 * start);
	vb_window_lost(&w, 100);
	assert_int_equal(w.pkts, start);
	acked(start, 100);
	assert_int_equal(w.pkts, start + 1);
}

/* The receiving thread may have read the clock before the sending thread: such
 * a sample is no round trip. */
static void window__an_answer_before_its_time(void **state)
{
	vb_time unknown;

	vb_window_init(&w, 4096, 0);
	unknown = vb_window_patience(&w, 0);
	vb_window_time(&w, 7, 1000);
	vb_window_acked(&w, 1, 8, 999);
	assert_int_equal(vb_window_patience(&w, 0), unknown);
	vb_window_time(&w, 9, 2000);
	vb_window_acked(&w, 1, 10, 2500);
	assert_int_equal(w.srtt, 500);
	vb_window_time(&w, 11, 4000);
	vb_window_acked(&w, 1, 12, 3000);
	assert_int_equal(w.srtt, 500);
	assert_int_equal(w.best_rtt, 500);
}

static void window__does_not_grow_unused(void **state)
{
	uint32_t start;

	vb_window_init(&w, 4096, 0);
	start = w.pkts;
	vb_window_acked(&w, start, 0, 0);
	assert_int_equal(w.pkts, start);
}

static void window__one_loss_is_paid_for_once(void **state)
{
	uint32_t start;

	vb_window_init(&w, 4096, 0);
	start = w.pkts;
	vb_window_lost(&w, 50);
	vb_window_lost(&w, 50);
	assert_int_equal(w.pkts, start / 2);
	vb_window_acked(&w, 1, 49, 0);
	vb_window_lost(&w, 60);
	assert_int_equal(w.pkts, start / 2);
	vb_window_acked(&w, 1, 50, 0);
	vb_window_lost(&w, 60);
	assert_int_equal(w.pkts, start / 4);
}

static void window__never_below_two(void **state)
{
	vb_window_init(&w, 4096, 0);
	for (uint32_t i = 0; i < 20; i++) {
		vb_window_acked(&w, 0, i, 0);
		vb_window_lost(&w, i);
	}
	assert_int_equal(w.pkts, 2);
	vb_window_collapse(&w, 30);
	assert_int_equal(w.pkts, 2);
	assert_int_equal(vb_window_ack_every(&w), 1);
	assert_int_equal(vb_window_chunk(&w, 4096), 1);
}

static void window__learns_the_round_trip(void **state)
{
	vb_window_init(&w, 4096, 0);
	assert_true(vb_window_patience(&w, 0) == 10 * VB_MSEC);
	vb_window_time(&w, 7, 1000);
	vb_window_time(&w, 9, 2000); /* only one sample is measured at a time */
	vb_window_acked(&w, 1, 7, 3000);
	assert_true(w.srtt == 0);
	vb_window_acked(&w, 1, 8, 1000 + VB_MSEC);
	assert_true(w.srtt == VB_MSEC);
	assert_true(vb_window_patience(&w, 0) == 4 * VB_MSEC);
	assert_true(vb_window_patience(&w, 3) == 32 * VB_MSEC);
	assert_true(vb_window_patience(&w, 200) == 4096 * VB_MSEC);
	vb_window_time(&w, 10, 0);
	vb_window_untime(&w);
	vb_window_acked(&w, 1, 20, VB_SEC);
	assert_true(w.srtt == VB_MSEC);
}

/* Losses on a path without a queue are not caused by the sender. */
static void window__shrinks_less_without_a_queue(void **state)
{
	vb_window_init(&w, 4096, 0);
	w.pkts = w.threshold = 64;
	vb_window_time(&w, 0, 0);
	vb_window_acked(&w, 1, 1, 100 * VB_USEC);
	vb_window_lost(&w, 10);
	assert_int_equal(w.pkts, 56);
	acked(56, 10);
	assert_int_equal(w.pkts, 60);
	/* The round trip time grows to six times its value: a queue builds
	 * up. */
	for (uint32_t i = 0; i < 12; i++) {
		vb_window_time(&w, 20 + i, 0);
		vb_window_acked(&w, 1, 21 + i, 600 * VB_USEC);
	}
	vb_window_lost(&w, 50);
	assert_int_equal(w.pkts, 30);
}

/* Single losses are not caused by the sender either; the loss of a whole train
 * is. */
static void window__shrinks_little_for_few(void **state)
{
	uint32_t start;

	vb_window_init(&w, 4096, 0);
	start = w.pkts;
	w.pkts = w.threshold = w.max;
	vb_window_lost_some(&w, 2, 10);
	assert_int_equal(w.pkts, w.max - w.max / 32);
	/* The window was already reduced because of this loss. */
	vb_window_lost_some(&w, 2, 10);
	assert_int_equal(w.pkts, w.max - w.max / 32);
	for (uint32_t i = 0; i < 100; i++) {
		vb_window_acked(&w, 1, 10 + i, 0);
		vb_window_lost_some(&w, 1, 11 + i);
	}
	assert_int_equal(w.pkts, start);
	acked(start, 200);
	assert_int_equal(w.pkts, start + 4);
	vb_window_lost_some(&w, 15, 210);
	assert_int_equal(w.pkts, (start + 4) / 2);
}

/* If the only answer may be lost as well, the requester sends a probe
 * sooner. */
static void window__asks_sooner_where_packets_get_lost(void **state)
{
	vb_window_init(&w, 4096, 0);
	vb_window_time(&w, 0, 0);
	vb_window_acked(&w, 1, 1, 100 * VB_USEC);
	assert_true(vb_window_patience(&w, 0) == 2 * VB_MSEC);
	vb_window_lost_some(&w, 1, 10);
	assert_true(vb_window_patience(&w, 0) == 250 * VB_USEC);
	assert_true(vb_window_patience(&w, 2) == VB_MSEC);
	assert_true(vb_window_grace(&w) == 125 * VB_USEC);
	vb_window_acked(&w, 8192, 10, 0);
	assert_true(vb_window_patience(&w, 0) == 2 * VB_MSEC);
	vb_window_lost_some(&w, 1, 20);
	vb_window_acked(&w, 1, 20, 0);
	vb_window_lost(&w, 30); /* many packets, or an unknown number */
	assert_true(vb_window_patience(&w, 0) == 2 * VB_MSEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__fits_a_small_socket_buffer),
		cmocka_unit_test(window__grows_as_the_link_says),
		cmocka_unit_test(window__doubles_then_adds),
		cmocka_unit_test(window__an_answer_before_its_time),
		cmocka_unit_test(window__does_not_grow_unused),
		cmocka_unit_test(window__one_loss_is_paid_for_once),
		cmocka_unit_test(window__never_below_two),
		cmocka_unit_test(window__learns_the_round_trip),
		cmocka_unit_test(window__shrinks_less_without_a_queue),
		cmocka_unit_test(window__shrinks_little_for_few),
		cmocka_unit_test(window__asks_sooner_where_packets_get_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
