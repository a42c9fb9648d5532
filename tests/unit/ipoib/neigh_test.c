/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of neighbours. The test sets the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/neigh.h"

static struct bed {
	struct vb_nbrs *t;
	vb_time now;
	unsigned asked, paths, prepared, released, sent, found, failed;
	struct vb_gid last_asked;
	uint32_t query;
	struct vb_ipoib_hw sent_to, told_hw;
	uint8_t sent_bytes[16];
	/* true: prepare() fails, as when no address handle can be made */
	bool unfit;
} b;

static void on_ask(void *arg, const struct vb_gid *ip)
{
	b.asked++;
	b.last_asked = *ip;
}

static void on_find_path(void *arg, const struct vb_nbr *n)
{
	b.paths++;
	b.query = n->query;
}

static bool on_prepare(void *arg, struct vb_nbr *n)
{
	b.prepared += !b.unfit;
	n->handle = b.unfit ? NULL : &b;
	return !b.unfit;
}

static void on_release(void *arg, struct vb_nbr *n)
{
	assert_ptr_equal(n->handle, &b);
	b.released++;
}

static void on_send(void *arg, const struct vb_nbr *n, const void *packet,
		    size_t len)
{
	assert_ptr_equal(n->handle, &b);
	b.sent_to = n->hw;
	if (b.sent < sizeof(b.sent_bytes))
		b.sent_bytes[b.sent] = *(const uint8_t *)packet;
	b.sent++;
}

static void on_told(void *arg, const struct vb_gid *ip,
		    const struct vb_ipoib_hw *hw)
{
	if (hw) {
		b.found++;
		b.told_hw = *hw;
	} else {
		b.failed++;
	}
}

static const struct vb_nbr_ops ops = {
	.ask = on_ask,
	.find_path = on_find_path,
	.prepare = on_prepare,
	.release = on_release,
	.send = on_send,
	.told = on_told,
};

static const struct vb_ipoib_path path = { .dlid = 6 };

static struct vb_gid ip_of(unsigned i)
{
	const uint8_t bytes[4] = { 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
				   (uint8_t)i };

	return vb_gid_from_ipv4(bytes);
}

static struct vb_ipoib_hw hw_of(uint32_t qpn)
{
	return (struct vb_ipoib_hw){ .qpn = qpn, .gid = { { 0xfe, 0x80 } } };
}

static int make_bed(void **state)
{
	memset(&b, 0, sizeof(b));
	b.now = 100 * VB_SEC;
	b.t = vb_nbrs_create(&ops, NULL, 0x1234);
	return b.t ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_nbrs_destroy(b.t);
	return b.prepared == b.released ? 0 : -1;
}

static void wait_for(vb_time time)
{
	for (vb_time end = b.now + time; b.now < end; b.now += VB_SEC / 4)
		vb_nbrs_tick(b.t, b.now);
	vb_nbrs_tick(b.t, b.now);
}

static void send_one(unsigned i, uint8_t first)
{
	struct vb_gid ip = ip_of(i);

	vb_nbrs_send(b.t, &ip, &first, 1, b.now);
}

static void learn(unsigned i, uint32_t qpn, bool solicited, bool create)
{
	struct vb_gid ip = ip_of(i);
	struct vb_ipoib_hw hw = hw_of(qpn);

	vb_nbrs_learn(b.t, &ip, &hw, solicited, create, b.now);
}

static enum vb_nbr_state state_of(unsigned i)
{
	struct vb_gid ip = ip_of(i);
	const struct vb_nbr *n = vb_nbrs_find(b.t, &ip);

	return n ? n->state : NBR_NONE;
}

static void make_ready(unsigned i, uint32_t qpn)
{
	send_one(i, 1);
	learn(i, qpn, true, false);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	assert_int_equal(state_of(i), NBR_READY);
}

static void packets__wait_until_the_path_is_known(void **state)
{
	struct vb_gid ip = ip_of(1);

	for (uint8_t p = 1; p <= 5; p++)
		send_one(1, p);
	assert_int_equal(b.asked, 1);
	assert_true(vb_gid_equal(&b.last_asked, &ip));
	assert_int_equal(state_of(1), NBR_ASKED);
	learn(1, 0x48, true, false);
	assert_int_equal(state_of(1), NBR_KNOWN);
	assert_int_equal(b.paths, 1);
	assert_int_equal(b.sent, 0);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	/* three packets were kept, the last ones of five */
	assert_int_equal(b.sent, 3);
	assert_memory_equal(b.sent_bytes, "\3\4\5", 3);
	assert_int_equal(b.sent_to.qpn, 0x48);
	send_one(1, 6);
	assert_int_equal(b.sent, 4);
}

static void asked__three_times_a_second_apart(void **state)
{
	send_one(1, 1);
	wait_for(VB_SEC / 2);
	assert_int_equal(b.asked, 1);
	wait_for(VB_SEC);
	assert_int_equal(b.asked, 2);
	wait_for(VB_SEC);
	assert_int_equal(b.asked, 3);
	assert_int_equal(b.failed, 0);
	wait_for(VB_SEC);
	assert_int_equal(b.asked, 3);
	assert_int_equal(b.failed, 1);
	assert_int_equal(state_of(1), NBR_NONE);
	assert_true(vb_nbrs_next(b.t) == VB_NEVER);
	/* The next packet to the neighbour begins a new search. */
	send_one(1, 1);
	assert_int_equal(b.asked, 4);
}

static void path__without_an_answer_is_asked_three_times(void **state)
{
	send_one(1, 1);
	learn(1, 0x48, true, false);
	vb_nbrs_path(b.t, b.query, NULL, b.now);
	assert_int_equal(state_of(1), NBR_KNOWN);
	wait_for(5 * VB_SEC);
	assert_int_equal(b.paths, 3);
	assert_int_equal(state_of(1), NBR_NONE);
}

static void path__late_answers_are_ignored(void **state)
{
	uint32_t first;

	send_one(1, 1);
	learn(1, 0x48, true, false);
	first = b.query;
	learn(1, 0x50, true, false);
	assert_int_not_equal(first, b.query);
	vb_nbrs_path(b.t, first, &path, b.now);
	assert_int_equal(state_of(1), NBR_KNOWN);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	assert_int_equal(state_of(1), NBR_READY);
	assert_int_equal(b.sent_to.qpn, 0x50);
	vb_nbrs_path(b.t, 0xffffffff, &path, b.now);
}

static void path__that_gives_no_handle_is_asked_again(void **state)
{
	b.unfit = true;
	send_one(1, 1);
	learn(1, 0x48, true, false);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	assert_int_equal(state_of(1), NBR_KNOWN);
	b.unfit = false;
	wait_for(VB_SEC + VB_SEC / 4);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	assert_int_equal(b.sent, 1);
}

/* A neighbour that gets packets and sends none is asked for its address;
 * meanwhile it still gets packets. */
static void ready__becomes_stale_and_ends(void **state)
{
	make_ready(1, 0x48);
	wait_for(VB_NBR_FRESH + VB_SEC / 2);
	assert_int_equal(state_of(1), NBR_STALE);
	assert_int_equal(b.asked, 2);
	b.sent = 0;
	send_one(1, 1);
	assert_int_equal(b.sent, 1);
	wait_for(3 * VB_SEC);
	assert_int_equal(b.asked, 4);
	assert_int_equal(state_of(1), NBR_NONE);
	assert_int_equal(b.released, 1);
}

static void stale__is_confirmed_by_an_answer(void **state)
{
	make_ready(1, 0x48);
	wait_for(VB_NBR_FRESH + VB_SEC / 2);
	learn(1, 0x48, true, false);
	assert_int_equal(state_of(1), NBR_READY);
	assert_int_equal(b.paths, 1);
}

static void ready__stays_while_packets_come_from_it(void **state)
{
	struct vb_gid ip = ip_of(1);

	make_ready(1, 0x48);
	for (unsigned i = 0; i < 30; i++) {
		wait_for(VB_SEC);
		send_one(1, 1);
		vb_nbrs_heard(b.t, &ip, 0x48, b.now);
	}
	assert_int_equal(state_of(1), NBR_READY);
	assert_int_equal(b.asked, 1);
}

static void ready__that_nobody_uses_is_not_asked(void **state)
{
	struct vb_gid ip = ip_of(1);

	make_ready(1, 0x48);
	vb_nbrs_heard(b.t, &ip, 0x48, b.now);
	wait_for(10 * VB_NBR_FRESH);
	assert_int_equal(state_of(1), NBR_READY);
	assert_int_equal(b.asked, 1);
	send_one(1, 1);
	wait_for(VB_NBR_FRESH + VB_SEC / 4);
	assert_int_equal(state_of(1), NBR_STALE);
}

/* The peer's process was killed and came back with another queue pair. */
static void heard__from_another_queue_pair_is_asked_at_once(void **state)
{
	struct vb_gid ip = ip_of(1);

	make_ready(1, 0x48);
	vb_nbrs_heard(b.t, &ip, 0x77, b.now);
	assert_int_equal(state_of(1), NBR_STALE);
	assert_int_equal(b.asked, 2);
	/* A flood of packets from the other queue pair causes no further
	 * request. */
	for (unsigned i = 0; i < 100; i++)
		vb_nbrs_heard(b.t, &ip, 0x77, b.now);
	assert_int_equal(b.asked, 2);
	learn(1, 0x77, true, false);
	assert_int_equal(state_of(1), NBR_KNOWN);
	assert_int_equal(b.released, 1);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	send_one(1, 1);
	assert_int_equal(b.sent_to.qpn, 0x77);
}

static void learn__changes_what_is_there_and_creates_if_asked(void **state)
{
	learn(1, 0x48, false, false);
	assert_int_equal(vb_nbrs_count(b.t), 0);
	learn(1, 0x48, false, true);
	assert_int_equal(state_of(1), NBR_KNOWN);
	vb_nbrs_path(b.t, b.query, &path, b.now);
	/* The neighbour announces another link-layer address. */
	learn(1, 0x50, false, false);
	assert_int_equal(state_of(1), NBR_KNOWN);
	assert_int_equal(b.paths, 2);
	assert_int_equal(b.asked, 0);
}

static void want__tells(void **state)
{
	struct vb_gid ip = ip_of(1), other = ip_of(2);

	vb_nbrs_want(b.t, &ip, b.now);
	vb_nbrs_want(b.t, &ip, b.now);
	assert_int_equal(b.asked, 1);
	learn(1, 0x48, true, false);
	assert_int_equal(b.found, 1);
	assert_int_equal(b.told_hw.qpn, 0x48);
	vb_nbrs_want(b.t, &ip, b.now);
	assert_int_equal(b.found, 2);
	vb_nbrs_want(b.t, &other, b.now);
	wait_for(4 * VB_SEC);
	assert_int_equal(b.failed, 2); /* one more failure: there was no path */
}

static void paths__are_asked_anew(void **state)
{
	make_ready(1, 0x48);
	make_ready(2, 0x49);
	send_one(3, 1);
	b.paths = b.sent = 0;
	vb_nbrs_forget_paths(b.t, b.now);
	assert_int_equal(b.paths, 2);
	assert_int_equal(b.released, 2);
	assert_int_equal(state_of(1), NBR_KNOWN);
	assert_int_equal(state_of(3), NBR_ASKED);
	send_one(1, 1);
	assert_int_equal(b.sent, 0);
}

/* In a flood of addresses the new ones displace those that were used longest
 * ago. */
static void table__is_bounded(void **state)
{
	make_ready(1, 0x48);
	for (unsigned i = 2; i <= VB_NBR_TABLE; i++)
		send_one(i, 1);
	assert_int_equal(vb_nbrs_count(b.t), VB_NBR_TABLE);
	send_one(1, 1);
	for (unsigned i = 0; i < VB_NBR_TABLE - 1; i++)
		send_one(10000 + i, 1);
	assert_int_equal(vb_nbrs_count(b.t), VB_NBR_TABLE);
	assert_int_equal(state_of(1), NBR_READY);
	assert_int_equal(state_of(2), NBR_NONE);
	assert_int_equal(b.failed, VB_NBR_TABLE - 1);
	send_one(50000, 1);
	assert_int_equal(state_of(1), NBR_NONE);
	assert_int_equal(b.released, 1);
	wait_for(5 * VB_SEC);
	assert_int_equal(vb_nbrs_count(b.t), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets__wait_until_the_path_is_known),
		TEST(asked__three_times_a_second_apart),
		TEST(path__without_an_answer_is_asked_three_times),
		TEST(path__late_answers_are_ignored),
		TEST(path__that_gives_no_handle_is_asked_again),
		TEST(ready__becomes_stale_and_ends),
		TEST(stale__is_confirmed_by_an_answer),
		TEST(ready__stays_while_packets_come_from_it),
		TEST(ready__that_nobody_uses_is_not_asked),
		TEST(heard__from_another_queue_pair_is_asked_at_once),
		TEST(learn__changes_what_is_there_and_creates_if_asked),
		TEST(want__tells),
		TEST(paths__are_asked_anew),
		TEST(table__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
