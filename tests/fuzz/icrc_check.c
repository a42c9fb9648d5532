/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the ICRC check: a verdict of good must be true for the whole IP
 * packet, and a packet that this test sealed must be good.
 *
 * Input: 1 byte of flags and guess, 32 of addresses, 4 of ports, then the
 * packet with its ICRC.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/support/icrc.h"

#include "wire/ib_hdr.h"
#include "wire/icrc.h"

#define PATH_BYTES 37
#define MAX_BYTES  4096

/* Write IP and UDP headers for @len bytes. Returns the length of the
 * headers. */
static size_t put_ip_udp(uint8_t *ip, const struct vb_icrc_path *path,
			 size_t len, uint16_t ip_id, uint16_t flags)
{
	bool v4 = vb_gid_is_ipv4(&path->dst);
	size_t udp = v4 ? 20 : 40;

	memset(ip, 0, udp + 8);
	if (v4) {
		ip[0] = 0x45;
		vb_store_be(ip + 2, 28 + len + VB_ICRC_BYTES, 2);
		vb_store_be(ip + 4, ip_id, 2);
		vb_store_be(ip + 6, flags, 2);
		ip[9] = 17;
		memcpy(ip + 12, path->src.raw + 12, 4);
		memcpy(ip + 16, path->dst.raw + 12, 4);
	} else {
		ip[0] = 0x60;
		vb_store_be(ip + 4, 8 + len + VB_ICRC_BYTES, 2);
		ip[6] = 17;
		memcpy(ip + 8, path->src.raw, 16);
		memcpy(ip + 24, path->dst.raw, 16);
	}
	vb_store_be(ip + udp, path->src_port, 2);
	vb_store_be(ip + udp + 2, path->dst_port, 2);
	vb_store_be(ip + udp + 4, 8 + len + VB_ICRC_BYTES, 2);
	return udp + 8;
}

static bool is_true(const struct vb_icrc_path *path, const uint8_t *bytes,
		    size_t len, uint16_t ip_id, uint16_t flags)
{
	uint8_t ip[48 + MAX_BYTES];
	size_t head = put_ip_udp(ip, path, len, ip_id, flags);

	memcpy(ip + head, bytes, len);
	return icrc_of_ip(ip, head + len) == vb_load_le32(bytes + len);
}

static void check_verdict(const struct vb_icrc_prefix *p,
			  const struct vb_icrc_path *path, const uint8_t *bytes,
			  unsigned guess)
{
	uint16_t ip_id = 0;

	switch (vb_icrc_check(p, bytes, guess, &ip_id)) {
	case ICRC_GOOD:
		MUST(is_true(path, bytes, p->len, (uint16_t)guess, 0x4000));
		break;
	case ICRC_GOOD_IF_ID:
		MUST(vb_gid_is_ipv4(&path->dst));
		MUST(is_true(path, bytes, p->len, ip_id, 0x4000) ||
		     is_true(path, bytes, p->len, ip_id, 0));
		break;
	case ICRC_BAD:
		MUST(p->len < VB_BTH_BYTES ||
		     !is_true(path, bytes, p->len, (uint16_t)guess, 0x4000));
		break;
	}
}

static void check_sealed(const struct vb_icrc_prefix *p, const uint8_t *bytes,
			 unsigned guess)
{
	uint8_t sealed[MAX_BYTES];
	uint16_t ip_id;

	if (p->len < VB_BTH_BYTES)
		return;
	memcpy(sealed, bytes, p->len);
	vb_store_le32(sealed + p->len, vb_icrc(p, bytes, guess));
	MUST(vb_icrc_check(p, sealed, guess, &ip_id) == ICRC_GOOD);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct vb_reader r = vb_reader(bytes, len);
	unsigned first = vb_get_u8(&r), guess = first & 63;
	struct vb_icrc_path path;
	struct vb_icrc_prefix p;

	if (len < PATH_BYTES + VB_ICRC_BYTES || len > MAX_BYTES)
		return 0;
	memcpy(path.src.raw, vb_take(&r, 16), 16);
	memcpy(path.dst.raw, vb_take(&r, 16), 16);
	if (first & 64) {
		path.src = vb_gid_from_ipv4(path.src.raw);
		path.dst = vb_gid_from_ipv4(path.dst.raw);
	}
	path.src_port = vb_get_be16(&r);
	path.dst_port = vb_get_be16(&r);
	vb_icrc_prefix_init(&p, &path,
			    (uint32_t)(vb_reader_left(&r) - VB_ICRC_BYTES));
	check_verdict(&p, &path, r.at, guess);
	check_sealed(&p, r.at, guess);
	return 0;
}
