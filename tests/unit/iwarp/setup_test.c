/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA request and reply frames, in revisions 1 and 2. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/crc.h"
#include "iwarp/setup.h"

static struct vb_mpa_setup active, passive;
static const char hello[] = "hello", welcome[] = "welcome";

/* Pass the output of one side to the other, @step bytes at a time. */
static enum vb_mpa_state carry(const struct vb_mpa_setup *from,
			       struct vb_mpa_setup *to, unsigned step)
{
	unsigned at = 0;

	while (at < from->out_bytes && vb_mpa_want(to)) {
		unsigned n = VB_MIN(step, vb_mpa_want(to));

		n = VB_MIN(n, from->out_bytes - at);
		vb_mpa_got(to, from->out + at, n);
		at += n;
	}
	return to->state;
}

static void connect_as(const struct vb_mpa_offer *a,
		       const struct vb_mpa_offer *b, unsigned step)
{
	assert_int_equal(vb_mpa_connect(&active, a, hello, sizeof(hello)), 0);
	vb_mpa_listen(&passive, b);
	assert_int_equal(carry(&active, &passive, step), MPA_ASKED);
	assert_int_equal(passive.private_bytes, sizeof(hello));
	assert_memory_equal(passive.private_data, hello, sizeof(hello));
	assert_int_equal(vb_mpa_want(&passive), 0);
	assert_int_equal(vb_mpa_accept(&passive, b->ird, b->ord, welcome,
				       sizeof(welcome)),
			 0);
	assert_int_equal(passive.state, MPA_OPEN);
	carry(&passive, &active, step);
	assert_int_equal(active.private_bytes, sizeof(welcome));
	assert_memory_equal(active.private_data, welcome, sizeof(welcome));
}

static void setup__cut_at_every_byte(void **state)
{
	for (unsigned revision = 1; revision <= 2; revision++)
		for (unsigned step = 1; step < 60; step++) {
			struct vb_mpa_offer o = vb_mpa_usual;

			o.revision = (uint8_t)revision;
			connect_as(&o, &vb_mpa_usual, step);
			assert_int_equal(active.state, MPA_OPEN);
			assert_int_equal(passive.peer.revision, revision);
			assert_true(active.terms.crc && passive.terms.crc);
			assert_true(active.terms.initiator);
			assert_false(passive.terms.initiator);
			assert_int_equal(active.terms.rtr,
					 revision == 2 ? RTR_WRITE : RTR_NONE);
			assert_int_equal(passive.terms.rtr, active.terms.rtr);
		}
}

/* The example frames of RFC 5044 figure 8 and RFC 6581 figure 3. */
static void setup__bytes_on_the_wire(void **state)
{
	static const uint8_t request[] = "MPA ID Req Frame\x40\x01\0\x06hello";
	static const uint8_t enhanced[] =
		"MPA ID Req Frame\x50\x02\0\x0a\x80\x03\xc0\x05hello";
	struct vb_mpa_offer o = { .revision = 1,
				  .crc = true,
				  .rtr = RTR_WRITE | RTR_READ,
				  .ird = 3,
				  .ord = 5 };

	assert_int_equal(vb_mpa_connect(&active, &o, hello, sizeof(hello)), 0);
	assert_int_equal(active.out_bytes, sizeof(request));
	assert_memory_equal(active.out, request, sizeof(request));
	o.revision = 2;
	assert_int_equal(vb_mpa_connect(&active, &o, hello, sizeof(hello)), 0);
	assert_int_equal(active.out_bytes, sizeof(enhanced));
	assert_memory_equal(active.out, enhanced, sizeof(enhanced));
}

static void setup__depths_are_the_lesser(void **state)
{
	struct vb_mpa_offer a = vb_mpa_usual, b = vb_mpa_usual;

	a.ird = 3;
	a.ord = 50;
	b.ird = 20;
	b.ord = 7;
	connect_as(&a, &b, 1000);
	assert_int_equal(passive.peer_ird, 3);
	assert_int_equal(passive.peer_ord, 20);
	assert_int_equal(passive.terms.ird, 20);
	assert_int_equal(passive.terms.ord, 3);
	assert_int_equal(active.terms.ird, 3);
	assert_int_equal(active.terms.ord, 20);
	/* The depths are not negotiated: each side keeps its own values. */
	a.ird = a.ord = VB_MPA_DEPTH_MAX;
	connect_as(&a, &b, 1000);
	assert_int_equal(passive.terms.ird, 20);
	assert_int_equal(passive.terms.ord, 7);
}

static void setup__more_reads_than_can_be_held(void **state)
{
	struct vb_mpa_offer o = vb_mpa_usual;
	struct vb_reader r;
	struct vb_ddp_seg seg;
	struct vb_term t;

	o.ird = 200;
	connect_as(&o, &(struct vb_mpa_offer){ .revision = 2, .ord = 200 },
		   1000);
	assert_int_equal(active.state, MPA_BROKEN);
	assert_int_equal(active.code, 6);
	r = vb_reader(active.out + 2, active.out_bytes - 6);
	assert_true(vb_ddp_seg_get(&r, &seg));
	assert_int_equal(seg.opcode, RDMAP_TERMINATE);
	r = vb_reader(seg.payload, seg.payload_bytes);
	assert_true(vb_term_get(&r, &t));
	assert_int_equal(t.layer, TERM_LLP);
	assert_int_equal(t.code, 6);
	assert_int_equal(vb_load_le32(active.out + active.out_bytes - 4),
			 vb_crc32c(0, active.out, active.out_bytes - 4));
}

static void setup__each_way_to_begin(void **state)
{
	for (unsigned ours = 0; ours <= RTR_ANY; ours++)
		for (unsigned theirs = 0; theirs <= RTR_ANY; theirs++) {
			struct vb_mpa_offer a = vb_mpa_usual, b = vb_mpa_usual;

			a.rtr = (uint8_t)ours;
			b.rtr = (uint8_t)theirs;
			connect_as(&a, &b, 1000);
			if (ours && theirs && !(ours & theirs)) {
				assert_int_equal(active.state, MPA_BROKEN);
				assert_int_equal(active.code, 7);
				continue;
			}
			assert_int_equal(active.state, MPA_OPEN);
			assert_int_equal(active.terms.rtr, passive.terms.rtr);
			assert_int_equal(active.terms.rtr != 0,
					 (ours & theirs) != 0);
			assert_int_equal(active.terms.rtr & ~(ours & theirs),
					 0);
		}
}

/* CRCs are used if one side asks for them; markers are each receiver's choice
 * (RFC 5044 s7.1.1). */
static void setup__crc_and_markers(void **state)
{
	for (unsigned bits = 0; bits < 16; bits++) {
		struct vb_mpa_offer a = vb_mpa_usual, b = vb_mpa_usual;

		a.crc = bits & 1;
		b.crc = bits & 2;
		a.markers = bits & 4;
		b.markers = bits & 8;
		connect_as(&a, &b, 1000);
		assert_int_equal(active.terms.crc, a.crc || b.crc);
		assert_int_equal(passive.terms.crc, a.crc || b.crc);
		assert_int_equal(active.terms.rx_markers, a.markers);
		assert_int_equal(active.terms.tx_markers, b.markers);
		assert_int_equal(passive.terms.rx_markers, b.markers);
		assert_int_equal(passive.terms.tx_markers, a.markers);
	}
}

static void setup__refused(void **state)
{
	for (unsigned revision = 1; revision <= 2; revision++) {
		struct vb_mpa_offer o = vb_mpa_usual;

		o.revision = (uint8_t)revision;
		assert_int_equal(vb_mpa_connect(&active, &o, NULL, 0), 0);
		vb_mpa_listen(&passive, &vb_mpa_usual);
		assert_int_equal(carry(&active, &passive, 7), MPA_ASKED);
		assert_int_equal(passive.private_bytes, 0);
		assert_int_equal(vb_mpa_reject(&passive, "no", 2), 0);
		assert_int_equal(passive.state, MPA_SHUT);
		assert_int_equal(carry(&passive, &active, 7), MPA_REFUSED);
		assert_int_equal(active.private_bytes, 2);
		assert_memory_equal(active.private_data, "no", 2);
	}
}

static void setup__private_data_has_its_bounds(void **state)
{
	static const uint8_t much[600];
	struct vb_mpa_offer o = vb_mpa_usual;

	assert_int_equal(vb_mpa_connect(&active, &o, much, 508), 0);
	assert_int_equal(active.out_bytes, VB_MPA_FRAME_MAX);
	vb_mpa_listen(&passive, &o);
	assert_int_equal(carry(&active, &passive, 1000), MPA_ASKED);
	assert_int_equal(passive.private_bytes, 508);
	assert_int_equal(vb_mpa_connect(&active, &o, much, 509), -EINVAL);
	assert_int_equal(vb_mpa_accept(&passive, 1, 1, much, 509), -EINVAL);
	assert_int_equal(passive.state, MPA_ASKED);
	o.revision = 1;
	assert_int_equal(vb_mpa_connect(&active, &o, much, 512), 0);
	assert_int_equal(vb_mpa_connect(&active, &o, much, 513), -EINVAL);
	o.revision = 3;
	assert_int_equal(vb_mpa_connect(&active, &o, much, 1), -EINVAL);
}

static void expect_broken(struct vb_mpa_setup *m, const char *frame,
			  unsigned len)
{
	for (unsigned at = 0; at < len && vb_mpa_want(m); at++)
		vb_mpa_got(m, frame + at, 1);
	assert_int_equal(m->state, MPA_BROKEN);
	assert_int_equal(m->code, 4);
	assert_int_equal(m->out_bytes, 0);
	assert_int_equal(vb_mpa_want(m), 0);
}

static void setup__not_mpa(void **state)
{
	static const struct {
		bool listens;
		char frame[40];
	} rows[] = {
		{ true, "GET / HTTP/1.1\r\nHost: x" },
		{ true, "MPA ID Rep Frame\x50\x02\0\x04\0\0\0\0" },
		{ true, "MPA ID Req Frame\x50\x03\0\x04\0\0\0\0" },
		{ true, "MPA ID Req Frame\x50\x02\0\x03\0\0\0\0" },
		{ true, "MPA ID Req Frame\x40\x01\x02\x01\0\0\0\0" },
		{ true, "MPA ID Req Frame\x60\x01\0\0\0\0\0\0" },
		/* A request instead of a reply: two initiators meet. */
		{ false, "MPA ID Req Frame\x50\x02\0\x04\0\0\0\0" },
		/* An enhanced request, but a plain reply, or one that is too
		 * short. */
		{ false, "MPA ID Rep Frame\x40\x01\0\0\0\0\0\0" },
		{ false, "MPA ID Rep Frame\x40\x02\0\x04\0\0\0\0" },
		{ false, "MPA ID Rep Frame\x50\x02\0\0\0\0\0\0" },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_mpa_setup *m = rows[i].listens ? &passive : &active;

		assert_int_equal(
			vb_mpa_connect(&active, &vb_mpa_usual, NULL, 0), 0);
		vb_mpa_listen(&passive, &vb_mpa_usual);
		expect_broken(m, rows[i].frame, 24);
	}
}

/* Reading a set-up frame never asks for bytes behind the frame. */
static void setup__wants_no_more_than_the_frame(void **state)
{
	uint8_t more[VB_MPA_FRAME_MAX + 1] = { 0 };

	vb_mpa_listen(&passive, &vb_mpa_usual);
	assert_int_equal(vb_mpa_want(&passive), VB_MPA_HDR_BYTES);
	assert_int_equal(vb_mpa_got(&passive, more, sizeof(more)), MPA_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setup__cut_at_every_byte),
		cmocka_unit_test(setup__bytes_on_the_wire),
		cmocka_unit_test(setup__depths_are_the_lesser),
		cmocka_unit_test(setup__more_reads_than_can_be_held),
		cmocka_unit_test(setup__each_way_to_begin),
		cmocka_unit_test(setup__crc_and_markers),
		cmocka_unit_test(setup__refused),
		cmocka_unit_test(setup__private_data_has_its_bounds),
		cmocka_unit_test(setup__not_mpa),
		cmocka_unit_test(setup__wants_no_more_than_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
