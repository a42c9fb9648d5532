/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes MPA's set-up of both sides with bytes in any pieces: the set-up ends,
 * reads no more than a frame, and sends nothing that it did not agree to. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "iwarp/setup.h"

/* Feed the input. The first byte chooses the side and the sizes of the
 * pieces. */
static void feed(struct vb_mpa_setup *m, const uint8_t *bytes, size_t len,
		 unsigned step)
{
	size_t at = 0;

	while (vb_mpa_want(m) && at < len) {
		unsigned n = VB_MIN(step, vb_mpa_want(m));

		MUST(vb_mpa_want(m) + m->in_bytes <= VB_MPA_FRAME_MAX);
		n = (unsigned)VB_MIN(n, len - at);
		vb_mpa_got(m, bytes + at, n);
		at += n;
	}
}

static void check(const struct vb_mpa_setup *m)
{
	const uint8_t *end = m->in + m->in_bytes;

	if (m->state == MPA_ASKING || m->state == MPA_WAITING ||
	    m->state == MPA_BROKEN)
		return;
	MUST(m->private_data >= m->in + VB_MPA_HDR_BYTES);
	MUST(m->private_data + m->private_bytes == end);
	MUST(m->terms.ird <= 128 || m->state != MPA_OPEN);
	MUST(m->terms.ord <= 128);
	MUST((m->terms.rtr & (m->terms.rtr - 1)) == 0);
	MUST(!m->offer.crc || m->terms.crc || m->state == MPA_REFUSED);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct vb_mpa_setup m;
	unsigned how;

	if (len < 1)
		return 0;
	how = bytes[0];
	if (how & 1)
		MUST(vb_mpa_connect(&m, &vb_mpa_usual, "x", 1) == 0);
	else
		vb_mpa_listen(&m, &vb_mpa_usual);
	feed(&m, bytes + 1, len - 1, 1 + (how >> 1));
	check(&m);
	if (m.state != MPA_ASKED)
		return 0;
	if (how & 2) {
		MUST(vb_mpa_accept(&m, 128, 128, "y", 1) == 0);
		MUST(m.terms.ird <= 128 && m.terms.ord <= 128);
	} else {
		MUST(vb_mpa_reject(&m, "y", 1) == 0);
	}
	MUST(m.out_bytes <= VB_MPA_FRAME_MAX);
	return 0;
}
