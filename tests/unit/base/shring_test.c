/* SPDX-License-Identifier: BSD-2-Clause */
/* base/shring: records in order, full and empty rings, sleeping and waiting for
 * room, and a peer that writes anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/shring.h"

#define SIZE 4096u
#define MANY 100000u

static struct pair {
	_Alignas(64) uint8_t a[VB_SHRING_BYTES(SIZE)];
	_Alignas(64) uint8_t b[VB_SHRING_BYTES(SIZE)];
	struct vb_shring_out out, unused_out;
	struct vb_shring_in in, unused_in;
} p;

static int set_up(void **state)
{
	memset(&p, 0, sizeof(p));
	vb_shring_open(&p.out, &p.unused_in, p.a, p.b, SIZE);
	vb_shring_open(&p.unused_out, &p.in, p.b, p.a, SIZE);
	return 0;
}

static struct vb_shring_side *producer(void)
{
	return (struct vb_shring_side *)p.a;
}

static struct vb_shring_side *consumer(void)
{
	return (struct vb_shring_side *)p.b;
}

static bool put(uint32_t len, uint8_t value)
{
	uint8_t *to = vb_shring_begin(&p.out, len);

	if (!to)
		return false;
	memset(to, value, len);
	vb_shring_commit(&p.out, len);
	return true;
}

/* Check that the next record has @len bytes of @value. */
static void expect(uint32_t len, uint8_t value)
{
	uint32_t got;
	const uint8_t *bytes = vb_shring_next(&p.in, &got);

	assert_non_null(bytes);
	assert_int_equal(got, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], value);
}

static void expect_none(void)
{
	uint32_t len;

	assert_null(vb_shring_next(&p.in, &len));
	assert_int_equal(len, 0);
}

/* The producer counts a position as released when all records before it were
 * released, even if records behind it were not. */
static void shring__knows_what_was_released(void **state)
{
	uint64_t first;

	assert_true(vb_shring_has_released(&p.out, 0));
	assert_true(put(8, 1));
	assert_int_equal(vb_shring_published(&p.out), 0);
	assert_false(vb_shring_publish(&p.out));
	first = vb_shring_published(&p.out);
	assert_false(vb_shring_has_released(&p.out, first));
	expect(8, 1);
	assert_false(vb_shring_has_released(&p.out, first));
	assert_true(put(8, 2));
	assert_false(vb_shring_publish(&p.out));
	assert_false(vb_shring_release(&p.in));
	assert_true(vb_shring_has_released(&p.out, first));
	assert_false(
		vb_shring_has_released(&p.out, vb_shring_published(&p.out)));
}

/* Records of all lengths pass the ring many times, and keep their order. */
static void shring__records_keep_their_order(void **state)
{
	uint32_t put_at = 0, got_at = 0;

	while (got_at < MANY) {
		while (put_at < MANY &&
		       put(1 + put_at * 37 % (SIZE / 4), (uint8_t)put_at))
			put_at++;
		assert_false(vb_shring_publish(&p.out));
		assert_true(put_at > got_at);
		for (unsigned i = 0; i < 3 && got_at < put_at; i++, got_at++)
			expect(1 + got_at * 37 % (SIZE / 4), (uint8_t)got_at);
		assert_false(vb_shring_release(&p.in));
	}
	expect_none();
}

static void shring__unpublished_is_unseen(void **state)
{
	assert_true(put(8, 1));
	expect_none();
	assert_false(vb_shring_publish(&p.out));
	expect(8, 1);
	expect_none();
}

/* A record that was begun and not committed is never read. */
static void shring__begun_in_vain(void **state)
{
	for (unsigned i = 0; i < 200; i++) {
		assert_non_null(vb_shring_begin(&p.out, 1 + i * 5));
		assert_true(put(100 + i, (uint8_t)i));
		assert_false(vb_shring_publish(&p.out));
		expect(100 + i, (uint8_t)i);
		assert_false(vb_shring_release(&p.in));
		assert_true(vb_shring_is_empty(&p.in));
	}
}

static void shring__taken_back(void **state)
{
	const uint8_t *bytes;
	uint32_t len;

	for (unsigned i = 0; i < 100; i++) {
		assert_true(put(900, (uint8_t)i));
		assert_false(vb_shring_publish(&p.out));
		bytes = vb_shring_next(&p.in, &len);
		assert_non_null(bytes);
		vb_shring_unget(&p.in, bytes);
		expect(900, (uint8_t)i);
		assert_false(vb_shring_release(&p.in));
	}
}

static void shring__a_full_ring_waits_for_half(void **state)
{
	unsigned count = 0;

	while (put(56, 1))
		count++;
	assert_int_equal(count, SIZE / 64);
	assert_false(p.out.broken);
	assert_false(vb_shring_publish(&p.out));
	assert_true(vb_shring_starve(&p.out));
	for (unsigned i = 0; i < count / 2 - 1; i++)
		expect(56, 1);
	/* less than half of the ring is free */
	assert_false(vb_shring_release(&p.in));
	expect(56, 1);
	assert_true(vb_shring_release(&p.in));
	assert_false(vb_shring_release(&p.in)); /* the bell rings only once */
	vb_shring_feed(&p.out);
	assert_true(put(56, 1));
	/* Less than half of the ring is in use, so the producer need not wait
	 * for room, and no bell rings. */
	expect(56, 1);
	assert_false(vb_shring_release(&p.in));
	assert_false(vb_shring_starve(&p.out));
}

/* If the ring is full again when the producer hears the bell, the next release
 * of room rings again. */
static void shring__one_that_starves_anew_is_rung_anew(void **state)
{
	for (unsigned round = 0; round < 3; round++) {
		while (put(56, 1))
			;
		assert_false(vb_shring_publish(&p.out));
		assert_true(vb_shring_starve(&p.out));
		for (unsigned i = 0; i < SIZE / 64 / 2; i++)
			expect(56, 1);
		assert_true(vb_shring_release(&p.in));
	}
}

static void shring__a_sleeper_is_rung_once(void **state)
{
	assert_true(vb_shring_sleep(&p.in));
	assert_true(put(8, 1));
	assert_true(vb_shring_publish(&p.out));
	assert_true(put(8, 2));
	assert_false(vb_shring_publish(&p.out));
	vb_shring_wake(&p.in);
	/* a record waits, so the consumer must not sleep */
	assert_false(vb_shring_sleep(&p.in));
	vb_shring_wake(&p.in);
	expect(8, 1);
	expect(8, 2);
	assert_false(vb_shring_release(&p.in));
	assert_true(vb_shring_sleep(&p.in));
	assert_true(put(8, 3));
	assert_true(vb_shring_publish(&p.out));
}

/* --- a peer that lies --- */

static void is_broken(void)
{
	uint32_t len;

	assert_null(vb_shring_next(&p.in, &len));
	assert_int_not_equal(len, 0);
}

static void shring__hostile_heads(void **state)
{
	static const uint64_t heads[] = { 1,	      SIZE + 64,  SIZE + 1,
					  UINT64_MAX, 1ull << 63, 63 };

	for (unsigned i = 0; i < VB_COUNT(heads); i++) {
		set_up(state);
		atomic_store(&producer()->head, heads[i]);
		is_broken();
	}
}

static void shring__hostile_lengths(void **state)
{
	static const uint64_t words[] = {
		SIZE,	    SIZE - 7,	    65,		 UINT32_MAX, UINT64_MAX,
		1ull << 32, UINT32_MAX - 6, 0xfffffff8u,
	};

	for (unsigned i = 0; i < VB_COUNT(words); i++) {
		set_up(state);
		memcpy(p.a + VB_SHRING_RING_AT, &words[i], 8);
		atomic_store(&producer()->head, 64);
		is_broken();
	}
}

static void shring__hostile_tails(void **state)
{
	static const uint64_t tails[] = { 64 * 65, UINT64_MAX, 1ull << 63 };

	for (unsigned i = 0; i < VB_COUNT(tails); i++) {
		set_up(state);
		while (put(56, 1))
			;
		assert_false(vb_shring_publish(&p.out));
		atomic_store(&consumer()->tail, tails[i]);
		assert_false(put(56, 1));
		assert_true(p.out.broken);
		atomic_store(&consumer()->tail, 0);
		assert_false(put(56, 1)); /* a broken ring stays broken */
	}
}

/* Whatever the memory that the producer can write contains, the bytes of each
 * record that is read lie within the ring. */
static void shring__random_memory(void **state)
{
	srandom(1);
	for (unsigned round = 0; round < 20000; round++) {
		uint32_t len;
		const uint8_t *bytes;

		set_up(state);
		for (unsigned i = 0; i < SIZE; i += 64) {
			uint64_t word =
				(uint64_t)random() % (round % 2 ? 300 : 5000);

			if (random() % 8 == 0)
				word = UINT32_MAX;
			memcpy(p.a + VB_SHRING_RING_AT + i, &word, 8);
		}
		atomic_store(&producer()->head,
			     (uint64_t)(random() % (SIZE / 64 + 2)) * 64);
		while ((bytes = vb_shring_next(&p.in, &len))) {
			assert_true(bytes >= p.a + VB_SHRING_RING_AT);
			assert_true(bytes + len <= p.a + sizeof(p.a));
		}
		assert_true(p.in.tail <= SIZE);
	}
}

/* Each side announces on which processor it runs. A side that has announced
 * nothing might run on any processor, and a false announcement does no harm. */
static void shring__says_where_a_side_runs(void **state)
{
	assert_true(vb_shring_peer_runs_on(&p.in, 0));
	assert_true(vb_shring_peer_runs_on(&p.in, 7));
	/* stands for the producer's process */
	vb_shring_runs_here(&p.unused_in);
	assert_int_not_equal(atomic_load(&producer()->processor), 0);
	assert_int_equal(atomic_load(&consumer()->processor), 0);
	atomic_store(&producer()->processor, 8);
	assert_true(vb_shring_peer_runs_on(&p.in, 7));
	assert_false(vb_shring_peer_runs_on(&p.in, 0));
	atomic_store(&producer()->processor, UINT32_MAX);
	assert_false(vb_shring_peer_runs_on(&p.in, 7));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
	const struct CMUnitTest tests[] = {
		TEST(shring__records_keep_their_order),
		TEST(shring__unpublished_is_unseen),
		TEST(shring__knows_what_was_released),
		TEST(shring__begun_in_vain),
		TEST(shring__taken_back),
		TEST(shring__a_full_ring_waits_for_half),
		TEST(shring__one_that_starves_anew_is_rung_anew),
		TEST(shring__a_sleeper_is_rung_once),
		TEST(shring__says_where_a_side_runs),
		TEST(shring__hostile_heads),
		TEST(shring__hostile_lengths),
		TEST(shring__hostile_tails),
		TEST(shring__random_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
