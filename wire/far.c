/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of a link between two processes:
 *
 *      0  magic (3), version (1), kind (1), check (3)
 *      8  the receiver's nonce (8)
 * a hello:
 *     16  the sender's nonce (8), its GUID (8), the receiver's GUID (8)
 *     40  the two ports (2), phase (1), extended (1), width, speed, extended
 *         speed (3), 0 (1)
 * data:
 *     16  sequence number (8)
 *     24  records: length (2), bytes
 */
#include "wire/far.h"

#include "base/bytes.h"
#include "base/crc.h"

#define AT_VERSION 3
#define AT_KIND	   4
#define AT_CHECK   5
#define CHECK_LEN  3
#define AT_TO	   8
#define AT_MINE	   16
#define AT_SEQ	   16
#define AT_FROM	   24
#define AT_WANT	   32
#define AT_PORTS   40
#define AT_PHASE   42

/* Returns the low 24 bits of the CRC-32 of the header's @len bytes, with the
 * check's own bytes as zeros. */
static uint32_t header_check(const uint8_t *bytes, size_t len)
{
	static const uint8_t zeros[CHECK_LEN];
	uint32_t crc = vb_crc32(0, bytes, AT_CHECK);

	crc = vb_crc32(crc, zeros, CHECK_LEN);
	crc = vb_crc32(crc, bytes + AT_TO, len - AT_TO);
	return crc & 0xffffff;
}

static bool is_header_whole(const uint8_t *bytes, size_t len)
{
	return vb_load_be(bytes + AT_CHECK, CHECK_LEN) ==
	       header_check(bytes, len);
}

void vb_far_check_put(uint8_t *bytes, size_t len)
{
	vb_store_be(bytes + AT_CHECK, header_check(bytes, len), CHECK_LEN);
}

enum vb_far_verdict vb_far_look(const uint8_t *bytes, size_t len,
				enum vb_far_kind *kind, unsigned *version)
{
	if (len < VB_FAR_DATA_BYTES || vb_load_be(bytes, 3) != VB_FAR_MAGIC)
		return FAR_ALIEN;
	*version = bytes[AT_VERSION];
	if (*version != VB_FAR_VERSION)
		return FAR_VERSION;
	*kind = bytes[AT_KIND];
	if (*kind == FAR_HELLO)
		return len == VB_FAR_HELLO_BYTES && is_header_whole(bytes, len)
			       ? FAR_GOOD
			       : FAR_ALIEN;
	return *kind == FAR_DATA && is_header_whole(bytes, VB_FAR_DATA_BYTES)
		       ? FAR_GOOD
		       : FAR_ALIEN;
}

static void put_head(uint8_t *bytes, enum vb_far_kind kind, uint64_t to)
{
	vb_store_be(bytes, VB_FAR_MAGIC, 3);
	bytes[AT_VERSION] = VB_FAR_VERSION;
	vb_store_be(bytes + AT_KIND, (uint64_t)kind << 24, 4);
	vb_store_be(bytes + AT_TO, to, 8);
}

bool vb_far_hello_get(const uint8_t *bytes, struct vb_far_hello *h)
{
	*h = (struct vb_far_hello){
		.to = vb_load_be(bytes + AT_TO, 8),
		.mine = vb_load_be(bytes + AT_MINE, 8),
		.from = { vb_load_be(bytes + AT_FROM, 8), bytes[AT_PORTS] },
		.want = { vb_load_be(bytes + AT_WANT, 8), bytes[AT_PORTS + 1] },
		.phase = bytes[AT_PHASE],
		.extended = bytes[AT_PHASE + 1],
		.width = bytes[AT_PHASE + 2],
		.speed = bytes[AT_PHASE + 3],
		.speed_ext = bytes[AT_PHASE + 4],
	};
	return h->mine && h->phase <= FAR_ASK;
}

void vb_far_hello_put(uint8_t *bytes, const struct vb_far_hello *h)
{
	put_head(bytes, FAR_HELLO, h->to);
	vb_store_be(bytes + AT_MINE, h->mine, 8);
	vb_store_be(bytes + AT_FROM, h->from.guid, 8);
	vb_store_be(bytes + AT_WANT, h->want.guid, 8);
	bytes[AT_PORTS] = h->from.port;
	bytes[AT_PORTS + 1] = h->want.port;
	bytes[AT_PHASE] = h->phase;
	bytes[AT_PHASE + 1] = h->extended;
	bytes[AT_PHASE + 2] = h->width;
	bytes[AT_PHASE + 3] = h->speed;
	bytes[AT_PHASE + 4] = h->speed_ext;
	bytes[AT_PHASE + 5] = 0;
	vb_far_check_put(bytes, VB_FAR_HELLO_BYTES);
}

void vb_far_data_get(const uint8_t *bytes, struct vb_far_data *d)
{
	d->to = vb_load_be(bytes + AT_TO, 8);
	d->seq = vb_load_be(bytes + AT_SEQ, 8);
}

void vb_far_data_put(uint8_t *bytes, const struct vb_far_data *d)
{
	put_head(bytes, FAR_DATA, d->to);
	vb_store_be(bytes + AT_SEQ, d->seq, 8);
	vb_far_check_put(bytes, VB_FAR_DATA_BYTES);
}
