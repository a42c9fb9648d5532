/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the reading of RoCEv1 frames. The first byte of an input is a control,
 * the others are a frame as a packet socket reports it. For any frame, what the
 * link reports lies in the frame, whole, and is a packet's length.
 */
#include <string.h>

#include "link/roce1.h"
#include "tests/fuzz/fuzz.h"
#include "wire/icrc.h"

#define LOCAL 1 /* control: the frame came by the loopback interface */
#define SEAL  2 /* control: give the frame a right ICRC */

/* Give the frame a right ICRC, since random changes hardly ever produce one. */
static void seal(uint8_t *frame, const struct vb_frame *f)
{
	uint8_t *packet = frame + (f->bytes - frame);
	struct vb_icrc_prefix p;

	vb_icrc_prefix_grh(&p, f->src, f->dst, f->len);
	vb_store_le32(packet + f->len, vb_icrc(&p, packet, 0));
}

static void check_frame(const uint8_t *frame, uint32_t len, unsigned control,
			const struct vb_frame *f)
{
	struct vb_ib_pkt pkt;

	MUST(f->bytes == frame + VB_ROCE1_HEAD);
	MUST(f->len >= VB_BTH_BYTES && f->len % 4 == 0);
	MUST(f->len + VB_ICRC_BYTES <= len - VB_ROCE1_HEAD);
	MUST(f->src->raw == frame + 22 && f->dst->raw == frame + 38);
	MUST(f->v1 && f->if_ip_id == -1 && f->dlid == 0);
	MUST(vb_gid_is_multicast(f->dst) == (frame[0] & 1));
	MUST(control & LOCAL ? !f->mac : f->mac == frame + 6);
	MUST(control & LOCAL || f->ifindex == 2);
	(void)vb_ib_parse(f->bytes, f->len, &pkt);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned control = len ? bytes[0] : 0;
	enum vb_roce1_verdict v;
	struct vb_frame f;
	uint8_t *frame;

	if (len < 1)
		return 0;
	len--;
	frame = malloc(len ? len : 1);
	MUST(frame);
	memcpy(frame, bytes + 1, len);
	v = vb_roce1_read(frame, (uint32_t)len, control & LOCAL ? 1 : 2, &f);
	if (v == ROCE1_ICRC && control & SEAL) {
		seal(frame, &f);
		v = vb_roce1_read(frame, (uint32_t)len, control & LOCAL ? 1 : 2,
				  &f);
		MUST(v == ROCE1_GOOD);
	}
	if (v == ROCE1_GOOD)
		check_frame(frame, (uint32_t)len, control, &f);
	free(frame);
	return 0;
}
