/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends of a stream, whose writes the test transports: every byte arrives in
 * order whatever the sizes, with rings that wrap, credits that run out and
 * wrap, and a peer of the other byte order; and impossible values from a peer
 * are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/defs.h"
#include "front/rsockets/stream.h"

enum { RING = 64, OUT = 48, CREDITS = 6, WRITES = 16 };

struct end {
	struct rs_stream s;
	struct rs_room room;
	struct rs_area slots[RS_SLOTS + 4];
	uint8_t ring[RING];
	/* WRITEs that the stream has posted, the oldest first. */
	struct {
		struct rs_write w;
		uint8_t bytes[RING];
		uint32_t length, kept;
		bool control;
	} posted[WRITES];
	unsigned count;
};

/* Messages are SENDs, and they have the flags that tell whether a slot was
 * written. */
static bool by_send, says;

static void open_end(struct end *e)
{
	memset(e, 0, sizeof(*e));
	e->room = (struct rs_room){
		.slots = e->slots,
		.slots_key = 1,
		.iomaps = 2,
		.ring = { (uintptr_t)e->ring, 2, RING },
		.out_size = OUT,
		.credits = CREDITS,
		.sends = WRITES - RS_CONTROLS,
		.by_send = by_send,
	};
	rs_stream_init(&e->s, &e->room);
}

static void greet(struct end *a, struct end *b)
{
	struct rs_hello h;

	rs_stream_hello(&a->s, &a->room, &h);
	assert_int_equal(rs_stream_meet(&b->s, &h, sizeof(h)), 0);
	rs_stream_hello(&b->s, &b->room, &h);
	assert_int_equal(rs_stream_meet(&a->s, &h, sizeof(h)), 0);
}

static bool inside(const void *area, size_t bytes, uint64_t at, uint32_t n)
{
	return at >= (uintptr_t)area && at + n <= (uintptr_t)area + bytes;
}

/* Pass the oldest write to the other end, and its completion back. */
static void carry(struct end *from, struct end *to)
{
	uint32_t message = from->posted[0].w.message;
	uint64_t at = from->posted[0].w.addr;
	uint32_t n = from->posted[0].length;

	if (n && from->posted[0].w.key == 1)
		assert_true(inside(to->slots, sizeof(to->slots), at, n));
	else if (n)
		assert_true(inside(to->ring, RING, at, n));
	if (n)
		memcpy((void *)(uintptr_t)at, from->posted[0].bytes, n);
	if (rs_message_kind(message) == RS_CREDITS && !says)
		message &= ~(RS_SLOT_SAID | RS_SLOT_NEW);
	if (by_send)
		n = sizeof(message);
	assert_int_equal(rs_stream_arrived(&to->s, message, n), 0);
	if (from->posted[0].control)
		from->s.controls--;
	else
		rs_stream_sent(&from->s, from->posted[0].kept);
	memmove(&from->posted[0], &from->posted[1],
		--from->count * sizeof(from->posted[0]));
}

static void give(struct end *e)
{
	struct rs_area area;
	struct rs_write w;

	while (rs_stream_give(&e->s, &area, &w)) {
		assert_in_range(e->count, 0, WRITES - 1);
		e->posted[e->count].w = w;
		e->posted[e->count].length = area.length ? sizeof(area) : 0;
		e->posted[e->count].control = true;
		memcpy(e->posted[e->count++].bytes, &area, sizeof(area));
	}
}

/* Post up to @n bytes, whose values count up from *@next. */
static void post(struct end *e, uint32_t n, uint8_t *next)
{
	uint32_t room = rs_stream_room(&e->s);
	bool kept = n % 2;

	n = VB_MIN(n, room);
	if (n == 0)
		return;
	assert_in_range(e->count, 0, WRITES - 1);
	for (uint32_t i = 0; i < n; i++)
		e->posted[e->count].bytes[i] = (*next)++;
	e->posted[e->count].length = n;
	e->posted[e->count].kept = kept ? n : 0;
	e->posted[e->count].control = false;
	e->posted[e->count++].w = rs_stream_send(&e->s, n, kept);
	assert_in_range(e->s.out_used, 0, OUT);
}

static uint32_t take(struct end *e, uint32_t n, uint8_t *next)
{
	n = VB_MIN(n, VB_MIN(e->s.in_ready, e->s.ring.length - e->s.in_at));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(e->ring[e->s.in_at + i], (*next)++);
	rs_stream_read(&e->s, n);
	return n;
}

static uint32_t seed;
static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % below;
}

/* Send in both directions at a time; 16-bit credits wrap a few times. */
static void every_byte_in_order(void)
{
	static struct end e[2];
	uint8_t sent[2] = {}, got[2] = {};
	uint64_t bytes = 0;

	open_end(&e[0]);
	open_end(&e[1]);
	greet(&e[0], &e[1]);
	for (seed = 1; bytes < 4000000;) {
		unsigned me = any(2);

		give(&e[me]);
		if (any(2))
			post(&e[me], 1 + any(RING), &sent[me]);
		if (e[me].count && any(2))
			carry(&e[me], &e[!me]);
		bytes += take(&e[me], 1 + any(RING), &got[me]);
	}
	assert_true(e[0].s.received < e[0].s.told + CREDITS);
}

static void test_every_byte_in_order(void **state)
{
	every_byte_in_order();
	by_send = true;
	every_byte_in_order();
	says = true;
	every_byte_in_order();
	by_send = says = false;
}

/* With SENDs a slot is read when its message says so, whatever it contains; if
 * the peer's messages do not say, a slot is read when it contains something,
 * and once. */
static void test_slots_by_send(void **state)
{
	const uint32_t credits = rs_message(RS_CREDITS, CREDITS);
	static struct end a;
	struct rs_hello h;

	by_send = true;
	open_end(&a);
	by_send = false;
	rs_stream_hello(&a.s, &a.room, &h);
	assert_int_equal(rs_stream_meet(&a.s, &h, sizeof(h)), 0);
	a.slots[1].length = 7;
	assert_int_equal(rs_stream_arrived(&a.s, credits | RS_SLOT_SAID, 4), 0);
	assert_int_equal(a.s.nexts, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rs_stream_arrived(&a.s, credits, 4), 0);
	assert_int_equal(a.s.nexts, 1);
	assert_int_equal(a.s.next[0].length, 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			rs_stream_arrived(
				&a.s, credits | RS_SLOT_SAID | RS_SLOT_NEW, 4),
			i ? -EPROTO : 0);
	a.slots[0].length = a.slots[1].length = 7;
	assert_int_equal(rs_stream_arrived(&a.s, credits, 4), 0);
	assert_int_equal(a.s.nexts, RS_SLOTS);
}

static void test_credits_run_out(void **state)
{
	static struct end a, b;
	uint8_t sent = 0, got = 0;

	open_end(&a);
	open_end(&b);
	greet(&a, &b);
	for (int i = 0; i < CREDITS; i++) {
		post(&a, 1, &sent);
		carry(&a, &b);
	}
	assert_int_equal(rs_stream_room(&a.s), 0);
	assert_int_equal(take(&b, CREDITS, &got), CREDITS);
	give(&b);
	assert_true(b.count > 0);
	while (b.count)
		carry(&b, &a);
	assert_true(rs_stream_room(&a.s) > 0);
}

static void test_no_more_than_was_promised(void **state)
{
	static struct end a;
	struct rs_hello h;

	open_end(&a);
	rs_stream_hello(&a.s, &a.room, &h);
	assert_int_equal(rs_stream_meet(&a.s, &h, sizeof(h)), 0);
	assert_int_equal(rs_stream_arrived(&a.s, rs_message(RS_DATA, RING / 2),
					   RING / 2),
			 0);
	assert_int_equal(rs_stream_arrived(&a.s, rs_message(RS_DATA, 1), 1),
			 -EPROTO);
	for (uint32_t kind = 0; kind < 8; kind++) {
		bool known = kind == RS_CREDITS || kind == RS_IOMAP ||
			     kind == RS_CONTROL;

		if (kind != RS_DATA)
			assert_int_equal(rs_stream_arrived(&a.s, kind << 29, 0),
					 known ? 0 : -EPROTO);
	}
}

static void test_hello_that_is_none(void **state)
{
	static struct end a;
	struct rs_hello h, bad;

	open_end(&a);
	rs_stream_hello(&a.s, &a.room, &h);
	assert_int_equal(rs_stream_meet(&a.s, &h, sizeof(h) - 1), -EPROTO);
	bad = h;
	bad.version = 2;
	assert_int_equal(rs_stream_meet(&a.s, &bad, sizeof(bad)), -EPROTO);
	bad = h;
	bad.slots.length = 0;
	assert_int_equal(rs_stream_meet(&a.s, &bad, sizeof(bad)), -EPROTO);
}

/* An end reads its slots in its own byte order: each number is converted. */
static void test_the_other_byte_order(void **state)
{
	static struct end a;
	struct rs_hello h;
	struct rs_area area;
	struct rs_write w;

	open_end(&a);
	rs_stream_hello(&a.s, &a.room, &h);
	h.flags ^= RS_HELLO_NET;
	assert_int_equal(rs_stream_meet(&a.s, &h, sizeof(h)), 0);
	assert_true(rs_stream_give(&a.s, &area, &w));
	assert_int_equal(__builtin_bswap32(area.length), RING / 2);
	assert_int_equal(__builtin_bswap64(area.addr),
			 (uintptr_t)a.ring + RING / 2);
	assert_int_equal(w.addr, (uintptr_t)&a.slots[1]);
}

static void test_hello_on_the_wire(void **state)
{
	static struct end a;
	uint8_t wire[40];
	struct rs_hello h;

	open_end(&a);
	rs_stream_hello(&a.s, &a.room, &h);
	memcpy(wire, &h, sizeof(wire));
	assert_int_equal(wire[0], 1);
	assert_int_equal(wire[1] & RS_HELLO_IOMAPS, RS_HELLO_IOMAPS);
	assert_int_equal(wire[2] << 8 | wire[3], CREDITS);
	assert_int_equal(wire[7], 2);
	assert_int_equal(wire[23], RS_SLOTS);
	assert_int_equal(wire[39], RING / 2);
}

static void test_scales(void **state)
{
	assert_int_equal(rs_unscale(rs_scale(0)), 0);
	assert_int_equal(rs_unscale(rs_scale(100)), 100);
	assert_int_equal(rs_unscale(rs_scale(128)), 128);
	assert_int_equal(rs_unscale(rs_scale(512)), 512);
	assert_int_equal(rs_unscale(rs_scale(1 << 20)), 0x7f00);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_in_order),
		cmocka_unit_test(test_slots_by_send),
		cmocka_unit_test(test_credits_run_out),
		cmocka_unit_test(test_no_more_than_was_promised),
		cmocka_unit_test(test_hello_that_is_none),
		cmocka_unit_test(test_the_other_byte_order),
		cmocka_unit_test(test_hello_on_the_wire),
		cmocka_unit_test(test_scales),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
