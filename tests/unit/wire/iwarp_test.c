/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP headers: written, read again, and read when cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wire/iwarp.h"

static uint8_t bytes[256];

static uint32_t written(const struct vb_writer *w)
{
	return (uint32_t)(w->at - bytes);
}

static struct vb_writer writer(void)
{
	memset(bytes, 0xee, sizeof(bytes));
	return (struct vb_writer){ bytes };
}

/* A function that parses a header refuses fewer bytes than the header has. */
#define EXPECT_WHOLE(get, value, len)                                          \
	do {                                                                   \
		for (uint32_t n = 0; n < (len); n++) {                         \
			struct vb_reader cut = vb_reader(bytes, n);            \
			assert_false(get(&cut, (value)));                      \
		}                                                              \
	} while (0)

static void iwarp__mpa_frames(void **state)
{
	uint8_t again[VB_MPA_HDR_BYTES];

	for (unsigned bits = 0; bits < 64; bits++) {
		const struct vb_mpa_frame f = { .reply = bits & 1,
						.markers = bits & 2,
						.crc = bits & 4,
						.reject = bits & 8,
						.enhanced = bits & 16,
						.near = bits & 32,
						.revision = 2,
						.private_bytes = 300 };
		struct vb_writer w = writer();
		struct vb_reader r;
		struct vb_mpa_frame got;

		vb_mpa_frame_put(&w, &f);
		assert_int_equal(written(&w), VB_MPA_HDR_BYTES);
		EXPECT_WHOLE(vb_mpa_frame_get, &got, VB_MPA_HDR_BYTES);
		r = vb_reader(bytes, written(&w));
		assert_true(vb_mpa_frame_get(&r, &got));
		assert_int_equal(got.near, f.near);
		assert_int_equal(got.private_bytes, f.private_bytes);
		w = (struct vb_writer){ again };
		vb_mpa_frame_put(&w, &got);
		assert_memory_equal(again, bytes, VB_MPA_HDR_BYTES);
		bytes[3] ^= 1;
		r = vb_reader(bytes, written(&w));
		assert_false(vb_mpa_frame_get(&r, &got));
	}
}

static void iwarp__depths(void **state)
{
	for (unsigned bits = 0; bits < 16; bits++) {
		const struct vb_mpa_depths d = { bits & 1, bits & 2, bits & 4,
						 bits & 8, 0x1234,   0x3fff };
		struct vb_writer w = writer();
		struct vb_mpa_depths got;
		struct vb_reader r;

		vb_mpa_depths_put(&w, &d);
		assert_int_equal(written(&w), VB_MPA_DEPTH_BYTES);
		EXPECT_WHOLE(vb_mpa_depths_get, &got, VB_MPA_DEPTH_BYTES);
		r = vb_reader(bytes, VB_MPA_DEPTH_BYTES);
		assert_true(vb_mpa_depths_get(&r, &got));
		assert_memory_equal(&got, &d, sizeof(d));
	}
}

/* DDP and RDMAP control bytes of usual segments. */
static void iwarp__segments(void **state)
{
	static const struct {
		struct vb_ddp_seg seg;
		uint16_t control;
	} rows[] = {
		{ { .tagged = true,
		    .last = true,
		    .opcode = RDMAP_WRITE,
		    .stag = 0x01020304,
		    .to = 0x1112131415161718 },
		  0xc140 },
		{ { .tagged = true, .opcode = RDMAP_WRITE }, 0x8140 },
		{ { .tagged = true,
		    .last = true,
		    .opcode = RDMAP_READ_RESPONSE },
		  0xc142 },
		{ { .last = true,
		    .opcode = RDMAP_SEND,
		    .word = 1,
		    .queue = 2,
		    .msn = 3,
		    .mo = 4 },
		  0x4143 },
		{ { .last = true, .opcode = RDMAP_READ_REQUEST }, 0x4141 },
		{ { .opcode = RDMAP_SEND_SE_INV }, 0x0146 },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_ddp_seg seg = rows[i].seg, got;
		struct vb_writer w = writer();
		struct vb_reader r;

		seg.ddp_version = seg.rdmap_version = 1;
		vb_ddp_seg_put(&w, &seg);
		assert_int_equal(written(&w), seg.tagged
						      ? VB_DDP_TAGGED_BYTES
						      : VB_DDP_UNTAGGED_BYTES);
		assert_int_equal(vb_load_be(bytes, 2), rows[i].control);
		EXPECT_WHOLE(vb_ddp_seg_get, &got, written(&w));
		r = vb_reader(bytes, written(&w) + 5);
		assert_true(vb_ddp_seg_get(&r, &got));
		assert_ptr_equal(got.payload, bytes + written(&w));
		assert_int_equal(got.payload_bytes, 5);
		got.payload = NULL;
		got.payload_bytes = 0;
		assert_memory_equal(&got, &seg, sizeof(seg));
	}
}

static void iwarp__requests(void **state)
{
	const struct vb_rdmap_read q = { 1, 2, 3, 0x0102030405060708,
					 0x1112131415161718 };
	const struct vb_rdmap_atomic a = {
		ATOMIC_CMP_SWAP, 1, 2, 3, 4, 5, 6, 7
	};
	const struct vb_rdmap_atomic_rsp rsp = { 9, 0x0102030405060708 };
	struct vb_rdmap_atomic_rsp rsp_got;
	struct vb_rdmap_atomic a_got;
	struct vb_rdmap_read q_got;
	struct vb_writer w = writer();
	struct vb_reader r;

	vb_rdmap_read_put(&w, &q);
	assert_int_equal(written(&w), VB_RDMAP_READ_BYTES);
	EXPECT_WHOLE(vb_rdmap_read_get, &q_got, VB_RDMAP_READ_BYTES);
	r = vb_reader(bytes, VB_RDMAP_READ_BYTES);
	assert_true(vb_rdmap_read_get(&r, &q_got));
	assert_true(q_got.sink_stag == 1 && q_got.length == 2 &&
		    q_got.source_stag == 3 && q_got.sink_to == q.sink_to &&
		    q_got.source_to == q.source_to);
	/* Bytes 12 to 15 of a READ request are its length, here 2. */
	assert_int_equal(vb_load_be(bytes + 12, 4), 2);

	w = writer();
	vb_rdmap_atomic_put(&w, &a);
	assert_int_equal(written(&w), VB_RDMAP_ATOMIC_BYTES);
	EXPECT_WHOLE(vb_rdmap_atomic_get, &a_got, VB_RDMAP_ATOMIC_BYTES);
	r = vb_reader(bytes, VB_RDMAP_ATOMIC_BYTES);
	assert_true(vb_rdmap_atomic_get(&r, &a_got));
	assert_int_equal(a_got.op, a.op);
	assert_true(a_got.to == 3 && a_got.add_swap == 4 &&
		    a_got.add_swap_mask == 5 && a_got.compare == 6 &&
		    a_got.compare_mask == 7);

	w = writer();
	vb_rdmap_atomic_rsp_put(&w, &rsp);
	assert_int_equal(written(&w), VB_RDMAP_ATOMIC_RSP_BYTES);
	EXPECT_WHOLE(vb_rdmap_atomic_rsp_get, &rsp_got,
		     VB_RDMAP_ATOMIC_RSP_BYTES);
	r = vb_reader(bytes, VB_RDMAP_ATOMIC_RSP_BYTES);
	assert_true(vb_rdmap_atomic_rsp_get(&r, &rsp_got));
	assert_true(rsp_got.id == 9 && rsp_got.value == rsp.value);
}

/* A Terminate in the RFC's order and in siw's: 12 05 80 and 21 05 01. */
static void iwarp__terminate_in_both_orders(void **state)
{
	static const uint8_t rfc[] = { 0x12, 5, 0x80, 0, 0x01, 0x00 };
	static const uint8_t siw[] = { 0x21, 5, 0x01, 0, 0x01, 0x00 };
	static const uint8_t plain[] = { 0x12, 5, 0, 0 };
	struct vb_reader r = vb_reader(rfc, sizeof(rfc));
	struct vb_term t;

	assert_true(vb_term_get(&r, &t));
	assert_true(t.layer == 1 && t.etype == 2 && t.code == 5);
	assert_true(!t.mirrored && t.segment_bytes == 256);
	r = vb_reader(siw, sizeof(siw));
	assert_true(vb_term_get(&r, &t));
	assert_true(t.layer == 1 && t.etype == 2 && t.code == 5);
	assert_true(t.mirrored && t.segment_bytes == 256);
	r = vb_reader(plain, sizeof(plain));
	assert_true(vb_term_get(&r, &t));
	assert_true(t.layer == 1 && t.etype == 2 && !t.mirrored);
	r = vb_reader(plain, 3);
	assert_false(vb_term_get(&r, &t));
}

static void iwarp__terminate_with_its_offender(void **state)
{
	const struct vb_term t = {
		.layer = TERM_RDMAP,
		.etype = 1,
		.code = 2,
		.has_segment = true,
		.has_read = true,
		.segment_bytes = 46,
		.segment = { .last = true,
			     .ddp_version = 1,
			     .rdmap_version = 1,
			     .opcode = 1,
			     .queue = 1,
			     .msn = 7 },
		.read = { 1, 2, 3, 4, 5 },
	};
	struct vb_writer w = writer();
	struct vb_term got;
	struct vb_reader r;

	vb_term_put(&w, &t);
	assert_int_equal(written(&w), VB_TERM_BYTES_MAX);
	assert_int_equal(bytes[2], 0xe0);
	for (uint32_t n = 4; n <= written(&w); n++) {
		r = vb_reader(bytes, n);
		assert_true(vb_term_get(&r, &got));
		assert_int_equal(got.has_segment, n >= 4 + 2 + 18);
		assert_int_equal(got.has_read, n == written(&w));
	}
	assert_int_equal(got.segment.msn, 7);
	assert_int_equal(got.read.source_stag, t.read.source_stag);
}

/* RFC 5044 s4.1; with markers, MULPDU leaves room for these as well. */
static void iwarp__mulpdu(void **state)
{
	for (uint32_t mss = 256; mss < 65536; mss++) {
		uint32_t u = vb_mpa_mulpdu(mss, false);

		assert_true(vb_mpa_fpdu_bytes(u) <= mss);
		assert_true(mss > 65520 || vb_mpa_fpdu_bytes(u) + 4 > mss);
		u = vb_mpa_mulpdu(mss, true);
		assert_true(vb_mpa_fpdu_bytes(u) + 4 * ((mss + 511) / 512) <=
			    mss);
	}
	assert_int_equal(vb_mpa_mulpdu(1460, false), 1454);
	assert_int_equal(vb_mpa_mulpdu(0, false), 128);
	assert_int_equal(vb_mpa_mulpdu(UINT32_MAX, false), 65532);
}

/* An FPDU is length, ULPDU, pad of zeros, and the CRC of all that, low byte
 * first. */
static void iwarp__an_fpdu(void **state)
{
	static const uint8_t want[] = { 0, 3, 'a',  'b',  'c',	0,
					0, 0, 0x59, 0x23, 0x97, 0x12 };

	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes + 2, "abc", 3);
	assert_int_equal(vb_mpa_seal(bytes, 3, false), 12);
	assert_memory_equal(bytes, want, 8);
	assert_int_equal(vb_load_le32(bytes + 8), 0);
	assert_int_equal(vb_mpa_seal(bytes, 3, true), 12);
	assert_memory_equal(bytes, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iwarp__mpa_frames),
		cmocka_unit_test(iwarp__depths),
		cmocka_unit_test(iwarp__segments),
		cmocka_unit_test(iwarp__requests),
		cmocka_unit_test(iwarp__terminate_in_both_orders),
		cmocka_unit_test(iwarp__terminate_with_its_offender),
		cmocka_unit_test(iwarp__mulpdu),
		cmocka_unit_test(iwarp__an_fpdu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
