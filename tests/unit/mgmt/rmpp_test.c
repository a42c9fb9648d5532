/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mgmt/rmpp.h"
#include "wire/smp.h"

#define GET_TABLE_RESP 0x92

/* Make a message of @class with @data bytes behind the class's headers. */
static uint8_t *make_message(uint8_t class, size_t data, size_t *len)
{
	size_t at = vb_rmpp_data_at(class);
	uint8_t *m = calloc(1, at + data);

	m[0] = 1;
	m[1] = class;
	m[3] = GET_TABLE_RESP;
	/* the last byte of the class's header, which is not data */
	m[at - 1] = 0x77;
	for (size_t i = 0; i < data; i++)
		m[at + i] = (uint8_t)(i * 7 + i / 251);
	*len = at + data;
	return m;
}

struct pair {
	struct vb_rmpp_sender s;
	struct vb_rmpp_receiver r;
	uint8_t *want;
	size_t len;
	uint32_t dice;
	unsigned loss; /* percentage of packets that the network loses */
	vb_time now;
	enum vb_rmpp_verdict sent, got;
	/* the most segments that were on their way without an ACK */
	unsigned under_way;
};

static bool is_lost(struct pair *p)
{
	p->dice = p->dice * 1664525 + 1013904223;
	return (p->dice >> 16) % 100 < p->loss;
}

static void start(struct pair *p, uint8_t class, size_t data)
{
	uint8_t *copy;

	p->want = make_message(class, data, &p->len);
	copy = malloc(p->len);
	memcpy(copy, p->want, p->len);
	vb_rmpp_sender_init(&p->s, copy, p->len);
	vb_rmpp_receiver_init(&p->r, p->now);
}

static void hear_segment(struct pair *p, const uint8_t *mad)
{
	uint8_t reply[VB_MAD_BYTES], end[VB_MAD_BYTES];
	bool answer;

	p->got = vb_rmpp_receiver_hear(&p->r, mad, reply, &answer, p->now);
	assert_int_not_equal(p->got, RMPP_FAILED);
	if (!answer || is_lost(p))
		return;
	assert_int_equal(reply[3], GET_TABLE_RESP ^ 0x80);
	p->sent = vb_rmpp_sender_hear(&p->s, reply, end, &answer, p->now);
	assert_false(answer);
}

static void run(struct pair *p)
{
	uint8_t mad[VB_MAD_BYTES];

	while (p->sent == RMPP_GOING) {
		while (p->sent == RMPP_GOING &&
		       vb_rmpp_sender_next(&p->s, mad, p->now)) {
			p->under_way =
				VB_MAX(p->under_way, p->s.sent - p->s.acked);
			if (!is_lost(p))
				hear_segment(p, mad);
		}
		if (p->sent != RMPP_GOING)
			break;
		p->now = p->s.due;
		p->sent = vb_rmpp_sender_expire(&p->s, mad, p->now);
	}
}

static void finish(struct pair *p)
{
	vb_rmpp_sender_fini(&p->s);
	vb_rmpp_receiver_fini(&p->r);
	free(p->want);
}

static void rmpp__every_length_arrives_whole(void **state)
{
	const uint8_t classes[] = { MAD_CLASS_SA, MAD_CLASS_VENDOR2, 0x06 };

	for (unsigned c = 0; c < VB_COUNT(classes); c++)
		for (size_t data = 0; data < 1400; data++) {
			struct pair p = { 0 };

			start(&p, classes[c], data);
			run(&p);
			assert_int_equal(p.sent, RMPP_DONE);
			assert_int_equal(p.got, RMPP_DONE);
			assert_int_equal(p.r.len, p.len);
			/* Compare all bytes but the RMPP header, which differs
			 * in each segment. */
			assert_memory_equal(p.r.message, p.want, VB_RMPP_AT);
			assert_memory_equal(p.r.message + VB_RMPP_AT +
						    VB_RMPP_BYTES,
					    p.want + VB_RMPP_AT + VB_RMPP_BYTES,
					    p.len - VB_RMPP_AT - VB_RMPP_BYTES);
			finish(&p);
		}
}

static void rmpp__losses_cost_time_only(void **state)
{
	unsigned done = 0;

	for (unsigned seed = 0; seed < 400; seed++) {
		struct pair p = { .dice = seed, .loss = 4 };

		start(&p, MAD_CLASS_SA, 200 * 300);
		run(&p);
		if (p.sent == RMPP_DONE) {
			assert_int_equal(p.r.len, p.len);
			assert_memory_equal(p.r.message + 36, p.want + 36,
					    p.len - 36);
			done++;
		}
		finish(&p);
	}
	/* A transfer fails after five losses in a row. */
	assert_true(done > 390);
}

static void rmpp__window_is_kept(void **state)
{
	struct pair p = { 0 };
	uint8_t mad[VB_MAD_BYTES];
	struct vb_rmpp h;

	start(&p, MAD_CLASS_SA, 200 * 1000);
	/* The sender sends only one segment before the first ACK. */
	assert_true(vb_rmpp_sender_next(&p.s, mad, 0));
	vb_rmpp_get(mad, &h);
	assert_int_equal(h.flags, VB_RMPP_ACTIVE | VB_RMPP_FIRST);
	assert_int_equal(h.length, 1000 * 220);
	assert_false(vb_rmpp_sender_next(&p.s, mad, 0));
	hear_segment(&p, mad);
	run(&p);
	assert_int_equal(p.sent, RMPP_DONE);
	assert_true(p.under_way <= VB_RMPP_WINDOW);
	finish(&p);
}

static void rmpp__silence_ends_in_an_abort(void **state)
{
	struct pair p = { .loss = 100 };
	uint8_t abort[VB_MAD_BYTES];
	enum vb_rmpp_verdict v = RMPP_GOING;
	struct vb_rmpp h;
	unsigned tries = 0;

	start(&p, MAD_CLASS_SA, 1000);
	while (v == RMPP_GOING) {
		assert_true(vb_rmpp_sender_next(&p.s, abort, p.now));
		p.now = p.s.due;
		v = vb_rmpp_sender_expire(&p.s, abort, p.now);
		tries++;
	}
	assert_int_equal(tries, VB_RMPP_RETRIES + 1);
	vb_rmpp_get(abort, &h);
	assert_int_equal(h.type, RMPP_ABORT);
	assert_int_equal(h.status, RMPP_TOO_MANY_RETRIES);
	assert_int_equal(abort[3], GET_TABLE_RESP);
	finish(&p);
}

/* Write an ACK of @segment and @window, and pass it to the sender. Returns the
 * sender's verdict. */
static enum vb_rmpp_verdict ack(struct vb_rmpp_sender *s, unsigned segment,
				unsigned window, uint8_t *status)
{
	const struct vb_rmpp h = { .version = 1,
				   .type = RMPP_ACK,
				   .flags = VB_RMPP_ACTIVE,
				   .segment = segment,
				   .length = window };
	uint8_t mad[VB_MAD_BYTES] = { 1, MAD_CLASS_SA }, reply[VB_MAD_BYTES];
	enum vb_rmpp_verdict v;
	struct vb_rmpp said;
	bool answer;

	vb_rmpp_put(mad, &h);
	v = vb_rmpp_sender_hear(s, mad, reply, &answer, 0);
	assert_true(answer == (v == RMPP_FAILED));
	if (answer) {
		vb_rmpp_get(reply, &said);
		assert_int_equal(said.type, RMPP_ABORT);
		*status = said.status;
	}
	return v;
}

static void rmpp__forged_acks_are_refused(void **state)
{
	struct pair p = { 0 };
	uint8_t mad[VB_MAD_BYTES], status = 0;

	start(&p, MAD_CLASS_SA, 200 * 10);
	assert_true(vb_rmpp_sender_next(&p.s, mad, 0));
	assert_int_equal(ack(&p.s, 2, 9, &status), RMPP_FAILED);
	assert_int_equal(status, RMPP_BAD_SEGMENT);
	assert_int_equal(ack(&p.s, 1, 0, &status), RMPP_FAILED);
	assert_int_equal(status, RMPP_WINDOW_TOO_SMALL);
	assert_int_equal(ack(&p.s, 1, 0xffffffff, &status), RMPP_GOING);
	for (unsigned i = 2; i <= 10; i++)
		assert_true(vb_rmpp_sender_next(&p.s, mad, 0));
	assert_false(vb_rmpp_sender_next(&p.s, mad, 0));
	finish(&p);
}

static void rmpp__a_segment_too_many_finds_the_message_complete(void **state)
{
	struct pair p = { 0 };
	uint8_t mad[VB_MAD_BYTES], reply[VB_MAD_BYTES];
	bool answer;

	start(&p, MAD_CLASS_SA, 100);
	assert_true(vb_rmpp_sender_next(&p.s, mad, 0));
	hear_segment(&p, mad);
	assert_int_equal(p.got, RMPP_DONE);
	/* The receiver repeats its last ACK, which was lost. */
	assert_int_equal(vb_rmpp_receiver_hear(&p.r, mad, reply, &answer, 0),
			 RMPP_DONE);
	assert_true(answer);
	assert_int_equal(p.r.len, p.len);
	finish(&p);
}

static void rmpp__first_segment_must_say_so(void **state)
{
	struct vb_rmpp h = { .version = 1,
			     .type = RMPP_DATA,
			     .flags = VB_RMPP_ACTIVE,
			     .segment = 1 };
	uint8_t mad[VB_MAD_BYTES] = { 1, MAD_CLASS_SA }, reply[VB_MAD_BYTES];
	struct vb_rmpp_receiver r;
	bool answer;

	vb_rmpp_receiver_init(&r, 0);
	vb_rmpp_put(mad, &h);
	assert_int_equal(vb_rmpp_receiver_hear(&r, mad, reply, &answer, 0),
			 RMPP_FAILED);
	assert_true(answer);
	vb_rmpp_get(reply, &h);
	assert_int_equal(h.status, RMPP_BAD_FIRST);
	vb_rmpp_receiver_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rmpp__every_length_arrives_whole),
		cmocka_unit_test(rmpp__losses_cost_time_only),
		cmocka_unit_test(rmpp__window_is_kept),
		cmocka_unit_test(rmpp__silence_ends_in_an_abort),
		cmocka_unit_test(rmpp__forged_acks_are_refused),
		cmocka_unit_test(
			rmpp__a_segment_too_many_finds_the_message_complete),
		cmocka_unit_test(rmpp__first_segment_must_say_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
