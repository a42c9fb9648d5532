/* SPDX-License-Identifier: BSD-2-Clause */
/* near/ring: requests and answers arrive in order, and impossible values of the
 * other side are refused. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "near/ring.h"

struct pair {
	struct vb_ring *ring;
	struct vb_ring_writer w;
	struct vb_ring_reader r;
};

static int set_up(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->ring = aligned_alloc(VB_CACHE_LINE, sizeof(*p->ring));
	memset(p->ring, 0, sizeof(*p->ring));
	p->w.ring = p->r.ring = p->ring;
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *p = *state;

	free(p->ring);
	free(p);
	return 0;
}

static bool put(struct pair *p, uint32_t seq, uint32_t bytes)
{
	uint8_t *data;
	struct vb_request *r = vb_ring_begin(&p->w, bytes, &data);

	if (!r)
		return false;
	r->seq = seq;
	memset(data, (int)(seq * 7), bytes);
	vb_ring_commit(&p->w);
	return true;
}

/* The reader consumes the oldest request, checks it, and counts it as
 * answered. */
static void take(struct pair *p, uint32_t seq, uint32_t bytes)
{
	const uint8_t *data;
	struct vb_request r;

	assert_int_equal(vb_ring_look(&p->r, &r, &data), 1);
	assert_int_equal(r.seq, seq);
	assert_int_equal(r.bytes, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], (uint8_t)(seq * 7));
	vb_ring_done(&p->r);
	assert_true(vb_ring_discount(&p->w, 1));
}

static void ring__empty_has_nothing(void **state)
{
	struct pair *p = *state;
	struct vb_answer_note a;
	const uint8_t *data;
	struct vb_request r;

	assert_false(vb_ring_has_request(&p->r));
	assert_int_equal(vb_ring_look(&p->r, &r, &data), 0);
	assert_int_equal(vb_ring_hear(&p->r, &a), 0);
}

static void ring__every_size_many_times_round(void **state)
{
	static const uint32_t sizes[] = { 0,
					  1,
					  8,
					  VB_REQUEST_ROOM,
					  VB_REQUEST_ROOM + 1,
					  1000,
					  4095,
					  VB_REQUEST_MAX };
	struct pair *p = *state;

	for (uint32_t i = 0; i < 5 * VB_RING_SLOTS; i++) {
		uint32_t bytes = sizes[i % VB_COUNT(sizes)];

		assert_true(put(p, i, bytes));
		take(p, i, bytes);
	}
}

static void ring__full_of_slots(void **state)
{
	struct pair *p = *state;
	uint32_t i;

	for (i = 0; put(p, i, 8); i++)
		;
	assert_int_equal(i, VB_RING_SLOTS);
	take(p, 0, 8);
	assert_true(put(p, i, 8));
	assert_false(put(p, i + 1, 8));
	for (uint32_t n = 1; n <= i; n++)
		take(p, n, 8);
	assert_false(vb_ring_has_request(&p->r));
}

static void ring__full_of_data(void **state)
{
	struct pair *p = *state;
	uint32_t head = 0, tail = 0;

	/* Write and read at different places, all round the ring. */
	for (unsigned turn = 0; turn < 50; turn++) {
		while (put(p, tail, 3000))
			tail++;
		assert_true(tail - head >= VB_RING_DATA / 3000 - 1);
		assert_true(tail - head <= VB_RING_DATA / 3000);
		for (unsigned n = 0; n < 1 + turn % 20; n++, head++)
			take(p, head, 3000);
	}
}

static void ring__answered_before_more_is_asked(void **state)
{
	struct pair *p = *state;
	const uint8_t *data;
	struct vb_request r;

	for (uint32_t i = 0; i < VB_RING_SLOTS; i++) {
		assert_true(put(p, i, 0));
		assert_int_equal(vb_ring_look(&p->r, &r, &data), 1);
		vb_ring_done(&p->r);
	}
	assert_false(put(p, 0, 0));
	assert_true(vb_ring_discount(&p->w, 2));
	assert_true(put(p, 0, 0));
}

static void ring__answers_in_order(void **state)
{
	struct pair *p = *state;
	struct vb_answer_note a;

	for (uint32_t i = 0; i < 3 * VB_RING_SLOTS; i++) {
		const struct vb_answer_note in = { .seq = i, .value = ~i };

		vb_ring_answer(&p->w, &in);
		assert_int_equal(vb_ring_hear(&p->r, &a), 1);
		assert_int_equal(a.seq, i);
		assert_int_equal(a.value, (uint64_t)~i);
		assert_int_equal(vb_ring_hear(&p->r, &a), 0);
	}
}

static void ring__invalid_values_of_the_writer(void **state)
{
	static const struct {
		uint32_t bytes, at;
		int rc;
	} rows[] = {
		{ VB_REQUEST_MAX, VB_RING_DATA - VB_REQUEST_MAX, 1 },
		{ VB_REQUEST_MAX, VB_RING_DATA - VB_REQUEST_MAX + 1, -EPROTO },
		{ VB_REQUEST_MAX + 1, 0, -EPROTO },
		{ 0xffff, 0, -EPROTO },
		{ 100, 0xffffffff, -EPROTO },
		{ 100, 0xffffffff - 50, -EPROTO },
		{ 8, 0xffffffff,
		  1 }, /* data in the slot, so data_at is not used */
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct pair *p = *state;
		const uint8_t *data;
		struct vb_request r;
		uint32_t at = p->r.head % VB_RING_SLOTS;

		assert_true(put(p, 0, 8));
		p->ring->requests[at].r.bytes = (uint16_t)rows[i].bytes;
		p->ring->requests[at].data_at = rows[i].at;
		assert_int_equal(vb_ring_look(&p->r, &r, &data), rows[i].rc);
		vb_ring_done(&p->r);
		assert_true(vb_ring_discount(&p->w, 1));
	}
}

/* A reader that claims to be ahead of the writer, or to have gone back, does
 * not make the writer overwrite anything. */
static void ring__invalid_values_of_the_reader(void **state)
{
	struct pair *p = *state;
	uint32_t i;

	for (i = 0; put(p, i, 8); i++)
		;
	(void)vb_ring_discount(&p->w, vb_ring_unanswered(&p->w));
	atomic_store(&p->ring->head, i + 1);
	assert_false(put(p, i, 8));
	atomic_store(&p->ring->head, 0x80000000);
	assert_false(put(p, i, 8));
	atomic_store(&p->ring->head, 1);
	assert_true(put(p, i, 8));
}

/* Is the stamp of the next request possible? */
static bool reads_well_with(struct pair *p, uint32_t stamp)
{
	atomic_store(&p->ring->requests[p->r.head % VB_RING_SLOTS].stamp,
		     stamp);
	return vb_ring_reads_well(&p->r);
}

static void ring__possible_stamps(void **state)
{
	struct pair *p = *state;
	const struct vb_answer_note note = { .seq = 1 };
	struct vb_answer_note a;

	for (uint32_t i = 0; i < 2 * VB_RING_SLOTS; i++) {
		assert_true(vb_ring_reads_well(&p->r));
		assert_true(reads_well_with(p, i + 1 - VB_RING_SLOTS));
		assert_int_equal(reads_well_with(p, 0), i < VB_RING_SLOTS);
		assert_false(reads_well_with(p, UINT32_MAX - VB_RING_SLOTS));
		assert_false(reads_well_with(p, i + 2));
		assert_false(reads_well_with(p, i + 1 + VB_RING_SLOTS));
		assert_true(put(p, i, 8));
		assert_true(vb_ring_reads_well(&p->r));
		take(p, i, 8);
		vb_ring_answer(&p->w, &note);
		assert_true(vb_ring_reads_well(&p->r));
		assert_int_equal(vb_ring_hear(&p->r, &a), 1);
	}
	assert_true(vb_ring_reads_well(&p->r));
	atomic_store(&p->ring->answers[p->r.answer_head % VB_RING_SLOTS].stamp,
		     UINT32_MAX);
	assert_false(vb_ring_reads_well(&p->r));
}

/* The writer detects that the reader has changed an unanswered request, or has
 * sent an impossible count of answers. */
static void ring__intact(void **state)
{
	struct pair *p = *state;
	uint32_t at = VB_RING_SLOTS - 2;

	for (uint32_t i = 0; i < at; i++) {
		assert_true(put(p, i, 8));
		take(p, i, 8);
	}
	assert_true(vb_ring_is_intact(&p->w));
	for (uint32_t i = 0; i < 4; i++)
		assert_true(put(p, at + i, 8));
	assert_true(vb_ring_is_intact(&p->w));
	for (uint32_t i = at; i < at + 4; i++) {
		struct vb_request_slot *slot =
			&p->ring->requests[i % VB_RING_SLOTS];

		atomic_store(&slot->stamp, 0);
		assert_false(vb_ring_is_intact(&p->w));
		atomic_store(&slot->stamp, i + 1);
	}
	atomic_store(&p->ring->head, at + 5);
	assert_false(vb_ring_is_intact(&p->w));
	atomic_store(&p->ring->head, UINT32_MAX);
	assert_false(vb_ring_is_intact(&p->w));
	atomic_store(&p->ring->head, at);
	assert_true(vb_ring_is_intact(&p->w));
	/* an answered request may have any stamp */
	take(p, at, 8);
	atomic_store(&p->ring->requests[at % VB_RING_SLOTS].stamp, 0);
	assert_true(vb_ring_is_intact(&p->w));
}

#define MANY 20000

static void *write_many(void *arg)
{
	struct pair *p = arg;

	for (uint32_t i = 0; i < MANY; i++)
		while (!put(p, i, i % 5 ? i % 70 : i % 4000)) {
			(void)vb_ring_discount(
				&p->w,
				vb_ring_unanswered(
					&p->w)); /* no answers in this test */
			sched_yield();
		}
	return NULL;
}

static void ring__two_threads(void **state)
{
	struct pair *p = *state;
	pthread_t writer;

	assert_int_equal(pthread_create(&writer, NULL, write_many, p), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t bytes = i % 5 ? i % 70 : i % 4000;
		const uint8_t *data;
		struct vb_request r;

		while (vb_ring_look(&p->r, &r, &data) == 0)
			sched_yield();
		assert_int_equal(r.seq, i);
		assert_int_equal(r.bytes, bytes);
		for (uint32_t n = 0; n < bytes; n++)
			if (data[n] != (uint8_t)(i * 7))
				fail();
		vb_ring_done(&p->r);
	}
	pthread_join(writer, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ring__empty_has_nothing),
		TEST(ring__every_size_many_times_round),
		TEST(ring__full_of_slots),
		TEST(ring__full_of_data),
		TEST(ring__answered_before_more_is_asked),
		TEST(ring__answers_in_order),
		TEST(ring__invalid_values_of_the_writer),
		TEST(ring__invalid_values_of_the_reader),
		TEST(ring__possible_stamps),
		TEST(ring__intact),
		TEST(ring__two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
