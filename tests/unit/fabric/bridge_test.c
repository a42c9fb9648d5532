/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "fabric/bridge.h"

#define PORTS 4
#define SENT  4096

/* The bridge under test, which has four ports, and the frames that have left
 * it. */
static struct bed {
	struct vb_bridge *b;
	vb_time now;
	bool full[PORTS + 1]; /* @mark of each frame that has left, by port */
	bool gone[PORTS + 1]; /* the port loses every frame */
	unsigned sent[PORTS + 1];
	uint32_t mark[PORTS + 1][SENT]; /* mark of each frame that has left, by
					 * port */
	uint8_t last[VB_BRIDGE_MOST];
	size_t last_len;
} t;

static int on_send(void *arg, unsigned port, const uint8_t *frame, size_t len)
{
	assert_in_range(port, 1, PORTS);
	if (t.full[port])
		return -EAGAIN;
	if (t.gone[port])
		return -EIO;
	assert_in_range(t.sent[port], 0, SENT - 1);
	t.mark[port][t.sent[port]++] = (uint32_t)vb_load_be(frame + 14, 4);
	memcpy(t.last, frame, len);
	t.last_len = len;
	return 0;
}

static int make_bed(void **state)
{
	static const struct vb_bridge_ops ops = { on_send };

	memset(&t, 0, sizeof(t));
	t.now = 1000 * VB_SEC;
	t.b = vb_bridge_create(&ops, NULL, PORTS, 0x1234);
	for (unsigned port = 1; t.b && port <= PORTS; port++)
		vb_bridge_set_up(t.b, port, true);
	return t.b ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_bridge_destroy(t.b);
	return 0;
}

#define ALL 0xffffffffffffu

static void make_frame(uint8_t *frame, uint64_t to, uint64_t from,
		       uint32_t mark)
{
	memset(frame, 0, 64);
	vb_store_be(frame, to, 6);
	vb_store_be(frame + 6, from, 6);
	vb_store_be(frame + 12, 0x0800, 2);
	vb_store_be(frame + 14, mark, 4);
}

/* Let the frame @mark arrive at @port, with the addresses @to and @from. */
static void come(unsigned port, uint64_t to, uint64_t from, uint32_t mark)
{
	uint8_t frame[64];

	make_frame(frame, to, from, mark);
	vb_bridge_take(t.b, port, frame, sizeof(frame), t.now);
}

/* How many frames have left by each port since the last call? */
static void assert_sent(unsigned a, unsigned b, unsigned c, unsigned d)
{
	assert_int_equal(t.sent[1], a);
	assert_int_equal(t.sent[2], b);
	assert_int_equal(t.sent[3], c);
	assert_int_equal(t.sent[4], d);
	memset(t.sent, 0, sizeof(t.sent));
}

static void frame__to_an_unknown_address_leaves_by_all_others(void **state)
{
	come(1, 0x020000000002, 0x020000000001, 1);
	assert_sent(0, 1, 1, 1);
	come(2, ALL, 0x020000000002, 2);
	assert_sent(1, 0, 1, 1);
	assert_int_equal(vb_bridge_counters(t.b, 1)->flooded, 1);
}

static void frame__goes_where_its_address_was_heard(void **state)
{
	come(2, ALL, 0x020000000002, 1);
	assert_sent(1, 0, 1, 1);
	come(1, 0x020000000002, 0x020000000001, 2);
	assert_sent(0, 1, 0, 0);
	come(2, 0x020000000001, 0x020000000002, 3);
	assert_sent(1, 0, 0, 0);
	/* the station with address 2 moves to port 3 */
	come(3, ALL, 0x020000000002, 4);
	assert_sent(1, 1, 0, 1);
	come(1, 0x020000000002, 0x020000000001, 5);
	assert_sent(0, 0, 1, 0);
}

static void frame__to_its_own_port_goes_nowhere(void **state)
{
	come(1, ALL, 0x020000000001, 1);
	come(1, ALL, 0x020000000002, 2);
	assert_sent(0, 2, 2, 2);
	come(1, 0x020000000002, 0x020000000001, 3);
	assert_sent(0, 0, 0, 0);
	assert_int_equal(vb_bridge_counters(t.b, 1)->filtered, 1);
}

static void address__is_forgotten_with_time_and_cable(void **state)
{
	come(2, ALL, 0x020000000002, 1);
	assert_sent(1, 0, 1, 1);
	t.now += VB_MAC_AGE - 1;
	come(1, 0x020000000002, 0x020000000001, 2);
	assert_sent(0, 1, 0, 0);
	t.now += 1;
	come(1, 0x020000000002, 0x020000000001, 3);
	assert_sent(0, 1, 1, 1);
	come(2, ALL, 0x020000000002, 4);
	assert_sent(1, 0, 1, 1);
	vb_bridge_set_up(t.b, 2, false);
	come(1, 0x020000000002, 0x020000000001, 5);
	assert_sent(0, 0, 1, 1);
	/* a frame from a port without a cable is ignored */
	come(2, ALL, 0x020000000002, 6);
	assert_sent(0, 0, 0, 0);
}

/* The bridge does not change VLAN tags, be it one or two. */
static void frame__keeps_its_bytes(void **state)
{
	uint8_t frame[VB_BRIDGE_MOST];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7);
	vb_store_be(frame, 0x020000000002, 6);
	vb_store_be(frame + 6, 0x020000000001, 6);
	vb_store_be(frame + 12, 0x88a80064, 4);
	vb_store_be(frame + 16, 0x8100a007, 4);
	vb_bridge_take(t.b, 1, frame, sizeof(frame), t.now);
	assert_sent(0, 1, 1, 1);
	assert_int_equal(t.last_len, sizeof(frame));
	assert_memory_equal(t.last, frame, sizeof(frame));
}

static void frame__of_a_wrong_length_or_source_is_dropped(void **state)
{
	static uint8_t frame[VB_BRIDGE_MOST + 1];

	make_frame(frame, ALL, 0x020000000001, 1);
	vb_bridge_take(t.b, 1, frame, 13, t.now);
	vb_bridge_take(t.b, 1, frame, 0, t.now);
	vb_bridge_take(t.b, 1, frame, sizeof(frame), t.now);
	come(1, ALL, 0x010000000001, 2);
	come(1, ALL, ALL, 3);
	assert_sent(0, 0, 0, 0);
	assert_int_equal(vb_bridge_counters(t.b, 1)->errors, 5);
	assert_int_equal(vb_bridge_counters(t.b, 1)->rcv_frames, 0);
	vb_bridge_take(t.b, 1, frame, 14, t.now);
	assert_sent(0, 1, 1, 1);
}

static void frame__for_a_bridge_ends_here(void **state)
{
	for (unsigned i = 0; i <= 0x0f; i++)
		come(1, 0x0180c2000000 + i, 0x020000000001, i);
	assert_sent(0, 0, 0, 0);
	assert_int_equal(vb_bridge_counters(t.b, 1)->filtered, 16);
	come(1, 0x0180c2000010, 0x020000000001, 16);
	assert_sent(0, 1, 1, 1);
}

static void
port__that_is_full_gets_all_in_order_and_the_rest_is_dropped(void **state)
{
	t.full[2] = true;
	come(2, ALL, 0x020000000002, 0);
	memset(t.sent, 0, sizeof(t.sent));
	for (unsigned i = 0; i < VB_BRIDGE_QUEUE + 10; i++)
		come(1, 0x020000000002, 0x020000000001, i);
	assert_int_equal(vb_bridge_waiting(t.b, 2), VB_BRIDGE_QUEUE);
	assert_int_equal(vb_bridge_counters(t.b, 2)->discards, 10);
	assert_true(vb_bridge_ready(t.b, 2));
	t.full[2] = false;
	/* a later frame does not overtake those that wait: it is dropped, as
	 * the queue is full */
	come(1, 0x020000000002, 0x020000000001, 999);
	assert_int_equal(t.sent[2], 0);
	assert_false(vb_bridge_ready(t.b, 2));
	assert_int_equal(t.sent[2], VB_BRIDGE_QUEUE);
	for (unsigned i = 0; i < VB_BRIDGE_QUEUE; i++)
		assert_int_equal(t.mark[2][i], i);
	assert_int_equal(vb_bridge_counters(t.b, 2)->xmit_frames,
			 VB_BRIDGE_QUEUE);
}

/* The queue is bounded in bytes, too, and a pulled cable empties it. */
static void queue__is_bounded_in_bytes(void **state)
{
	static uint8_t frame[VB_BRIDGE_MOST];
	unsigned most = VB_BRIDGE_BYTES / sizeof(frame);

	come(2, ALL, 0x020000000002, 0);
	t.full[2] = true;
	make_frame(frame, 0x020000000002, 0x020000000001, 1);
	for (unsigned i = 0; i < most + 3; i++)
		vb_bridge_take(t.b, 1, frame, sizeof(frame), t.now);
	assert_int_equal(vb_bridge_waiting(t.b, 2), most);
	assert_int_equal(vb_bridge_counters(t.b, 2)->discards, 3);
	vb_bridge_set_up(t.b, 2, false);
	assert_int_equal(vb_bridge_waiting(t.b, 2), 0);
	assert_false(vb_bridge_ready(t.b, 2));
}

static void frame__that_a_port_loses_is_counted(void **state)
{
	t.gone[3] = true;
	come(1, ALL, 0x020000000001, 1);
	assert_sent(0, 1, 0, 1);
	assert_int_equal(vb_bridge_counters(t.b, 3)->discards, 1);
	assert_int_equal(vb_bridge_waiting(t.b, 3), 0);
}

/* A sender of random addresses uses entries of the table, but no further
 * memory, and does not displace a station that sends all the time. */
static void sender__of_many_addresses_costs_others_little(void **state)
{
	unsigned flooded = 0;

	for (unsigned i = 0; i < 40000; i++) {
		t.now += VB_USEC;
		come(1, ALL, 0x060000000000 | i, i);
		come(2, ALL, 0x020000000002, i);
		memset(t.sent, 0, sizeof(t.sent));
		come(3, 0x020000000002, 0x020000000003, i);
		flooded += t.sent[1] != 0;
		memset(t.sent, 0, sizeof(t.sent));
	}
	assert_int_equal(flooded, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frame__to_an_unknown_address_leaves_by_all_others),
		TEST(frame__goes_where_its_address_was_heard),
		TEST(frame__to_its_own_port_goes_nowhere),
		TEST(address__is_forgotten_with_time_and_cable),
		TEST(frame__keeps_its_bytes),
		TEST(frame__of_a_wrong_length_or_source_is_dropped),
		TEST(frame__for_a_bridge_ends_here),
		TEST(port__that_is_full_gets_all_in_order_and_the_rest_is_dropped),
		TEST(queue__is_bounded_in_bytes),
		TEST(frame__that_a_port_loses_is_counted),
		TEST(sender__of_many_addresses_costs_others_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
