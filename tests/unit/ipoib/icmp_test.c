/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "ipoib/icmp.h"
#include "ipoib/packet_priv.h"

static uint8_t p[9216], sent[9216];
static struct {
	uint8_t bytes[2048];
	size_t len;
} cut[200];
static unsigned pieces;

static void keep_piece(void *arg, const uint8_t *fragment, size_t len)
{
	assert_in_range(pieces, 0, 199);
	memcpy(cut[pieces].bytes, fragment, len);
	cut[pieces++].len = len;
}

/* Make an IPv4 packet of @len bytes with options in its header; its payload
 * counts up. */
static void put_packet(size_t head, size_t len, unsigned field)
{
	memset(p, 0, head);
	for (size_t i = head; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 256);
	p[0] = (uint8_t)(0x40 | head / 4);
	vb_store_be(p + 2, len, 2);
	vb_store_be(p + 6, field, 2);
	p[8] = 9;
	p[9] = 17;
	vb_ip_seal(p);
	memcpy(sent, p, len);
	pieces = 0;
}

/* Check that the fragments, when joined, are the original packet. */
static void assert_whole(size_t head, size_t len, unsigned mtu, unsigned field)
{
	size_t at = head;

	for (unsigned i = 0; i < pieces; i++) {
		const uint8_t *f = cut[i].bytes;
		unsigned got = (unsigned)vb_load_be(f + 6, 2);
		bool more = i + 1 < pieces || field & 0x2000;

		assert_in_range(cut[i].len, head + 1, mtu);
		assert_int_equal(vb_load_be(f + 2, 2), cut[i].len);
		assert_int_equal(got, (more ? 0x2000 : 0) | ((field & 0x1fff) +
							     (at - head) / 8));
		assert_int_equal(ipoib_sum(0, f, head), 0xffff);
		assert_memory_equal(f + head, sent + at, cut[i].len - head);
		at += cut[i].len - head;
	}
	assert_int_equal(at, len);
}

static void fragments__are_the_packet(void **state)
{
	static const unsigned mtus[] = { 68, 576, 1280, 1500, 2044 };

	for (unsigned m = 0; m < VB_COUNT(mtus); m++)
		for (size_t len = mtus[m] + 1; len < 9216; len += 611) {
			put_packet(20, len, 0);
			vb_ip_cut(p, len, mtus[m], keep_piece, NULL);
			assert_whole(20, len, mtus[m], 0);
			if (len / mtus[m] > 100)
				break;
		}
	/* a packet that is a fragment itself is cut in the same way */
	put_packet(20, 2044, 0x2000 | 100);
	vb_ip_cut(p, 2044, 1500, keep_piece, NULL);
	assert_whole(20, 2044, 1500, 0x2000 | 100);
	put_packet(20, 2044, 100);
	vb_ip_cut(p, 2044, 1500, keep_piece, NULL);
	assert_whole(20, 2044, 1500, 100);
}

/* RFC 791, 3.1: the highest bit of an option says whether later fragments have
 * it. */
static void fragments__have_the_options_that_are_copied(void **state)
{
	static const uint8_t options[12] = { 0x94, 4, 1, 2, 0x07, 7,
					     4,	   0, 0, 0, 0,	  1 };

	put_packet(32, 3000, 0);
	memcpy(p + 20, options, sizeof(options));
	memcpy(sent, p, 32);
	vb_ip_cut(p, 3000, 1500, keep_piece, NULL);
	assert_whole(32, 3000, 1500, 0);
	assert_memory_equal(cut[0].bytes + 20, options, 12);
	assert_memory_equal(cut[1].bytes + 20, options, 4);
	for (unsigned i = 24; i < 31; i++)
		assert_int_equal(cut[1].bytes[i], 1);
}

/* An option with an impossible length stays in the header as it is. */
static void options__of_any_bytes_do_no_harm(void **state)
{
	for (unsigned first = 0; first < 256; first++)
		for (unsigned second = 0; second < 256; second += 5) {
			put_packet(60, 1600, 0);
			memset(p + 20, (int)second, 40);
			p[20] = (uint8_t)first;
			vb_ip_cut(p, 1600, 1500, keep_piece, NULL);
			assert_whole(60, 1600, 1500, 0);
		}
}

/* --- ICMP errors about packets that are too long --- */

#define LEN 3000

static uint8_t packet[LEN], answer[VB_ICMP_MOST];

static void make_ipv4(uint8_t protocol)
{
	static const uint8_t head[20] = { 0x45, 0,    LEN >> 8, LEN & 0xff, 1,
					  2,	0x40, 0,	64,	    0,
					  0,	0,    10,	9,	    0,
					  3,	10,   9,	0,	    4 };

	memset(packet, 0x5a, sizeof(packet));
	memcpy(packet, head, sizeof(head));
	packet[9] = protocol;
}

static void make_ipv6(uint8_t protocol)
{
	memset(packet, 0x5a, sizeof(packet));
	memset(packet, 0, 40);
	packet[0] = 0x60;
	vb_store_be(packet + 4, LEN - 40, 2);
	packet[6] = protocol;
	packet[7] = 64;
	packet[8] = packet[24] = 0xfd;
	packet[23] = 3;
	packet[39] = 4;
}

static size_t ask(void)
{
	struct vb_ip ip;

	if (!vb_ip_get(packet, LEN, &ip))
		return 0;
	return vb_icmp_too_big(answer, &ip.dst, packet, LEN, 2044);
}

static void ipv4__needs_fragments(void **state)
{
	make_ipv4(6);
	assert_int_equal(ask(), 576);
	assert_int_equal(ipoib_sum(0, answer, 20), 0xffff);
	assert_int_equal(ipoib_sum(0, answer + 20, 556), 0xffff);
	assert_int_equal(vb_load_be(answer + 2, 2), 576);
	assert_int_equal(answer[9], 1);
	/* the error goes from the packet's destination to its source */
	assert_memory_equal(answer + 12, packet + 16, 4);
	assert_memory_equal(answer + 16, packet + 12, 4);
	assert_int_equal(answer[20], 3);
	assert_int_equal(answer[21], 4);
	assert_int_equal(vb_load_be(answer + 24, 4), 2044);
	assert_memory_equal(answer + 28, packet, 548);
}

static void ipv6__is_too_big(void **state)
{
	struct vb_gid src, dst;

	make_ipv6(17);
	assert_int_equal(ask(), 1280);
	memcpy(src.raw, answer + 8, 16);
	memcpy(dst.raw, answer + 24, 16);
	assert_memory_equal(src.raw, packet + 24, 16);
	assert_memory_equal(dst.raw, packet + 8, 16);
	assert_int_equal(ipoib_sum(ipoib_pseudo_sum(&src, &dst, 1240),
				   answer + 40, 1240),
			 0xffff);
	assert_int_equal(vb_load_be(answer + 4, 2), 1240);
	assert_int_equal(answer[40], 2);
	assert_int_equal(vb_load_be(answer + 44, 4), 2044);
	assert_memory_equal(answer + 48, packet, 1232);
}

/* No ICMP error is sent about some packets (RFC 1122, 3.2.2; RFC 4443, 2.4). */
static void no_answer__where_none_may_be(void **state)
{
	make_ipv4(1);
	packet[20] = 8; /* an echo request may cause an ICMP error */
	assert_int_equal(ask(), 576);
	packet[20] = 11; /* an ICMP error causes no ICMP error */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	packet[16] = 239; /* a packet to a group causes no ICMP error */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	packet[7] = 1; /* a later fragment causes no ICMP error */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	/* a packet without a source address causes no ICMP error */
	memset(packet + 12, 0, 4);
	assert_int_equal(ask(), 0);
	make_ipv6(58);
	packet[40] = 128;
	assert_int_equal(ask(), 1280);
	packet[40] = 1;
	assert_int_equal(ask(), 0);
	make_ipv6(17);
	packet[24] = 0xff;
	assert_int_equal(ask(), 0);
	packet[0] = 0;
	assert_int_equal(ask(), 0);
}

/* --- echo --- */

static void echo__is_answered_if_it_is_whole(void **state)
{
	put_packet(20, 84, 0);
	p[9] = 1;
	vb_store_be(p + 12, 0x0a000001, 4);
	vb_store_be(p + 16, 0x0a000002, 4);
	vb_store_be(p + 20, 0x08000000, 4);
	vb_store_be(p + 22, ~ipoib_sum(0, p + 20, 64) & 0xffff, 2);
	memcpy(sent, p, 84);
	p[50] ^= 1;
	assert_false(vb_icmp_echo(p, 84));
	p[50] ^= 1;
	assert_false(vb_icmp_echo(p, 24));
	assert_true(vb_icmp_echo(p, 84));
	assert_int_equal(vb_load_be(p + 12, 4), 0x0a000002);
	assert_int_equal(vb_load_be(p + 16, 4), 0x0a000001);
	assert_int_equal(p[20], 0);
	assert_int_equal(ipoib_sum(0, p, 20), 0xffff);
	assert_int_equal(ipoib_sum(0, p + 20, 64), 0xffff);
	assert_memory_equal(p + 24, sent + 24, 60);
	/* an echo reply is not answered */
	assert_false(vb_icmp_echo(p, 84));
}

static void echo__of_ipv6_is_answered(void **state)
{
	const struct vb_gid a = { { 0xfd, [15] = 1 } };
	const struct vb_gid c = { { 0xfd, [15] = 2 } };
	uint32_t pseudo = ipoib_pseudo_sum(&a, &c, 16);

	memset(p, 0, 56);
	p[0] = 0x60;
	p[5] = 16;
	p[6] = 58;
	memcpy(p + 8, a.raw, 16);
	memcpy(p + 24, c.raw, 16);
	p[40] = 128;
	p[55] = 42;
	assert_false(vb_icmp_echo(p, 56));
	vb_store_be(p + 42, ~ipoib_sum(pseudo, p + 40, 16) & 0xffff, 2);
	assert_false(vb_icmp_echo(p, 44));
	assert_true(vb_icmp_echo(p, 56));
	assert_int_equal(p[40], 129);
	assert_memory_equal(p + 8, c.raw, 16);
	assert_memory_equal(p + 24, a.raw, 16);
	assert_int_equal(ipoib_sum(ipoib_pseudo_sum(&c, &a, 16), p + 40, 16),
			 0xffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments__are_the_packet),
		cmocka_unit_test(fragments__have_the_options_that_are_copied),
		cmocka_unit_test(options__of_any_bytes_do_no_harm),
		cmocka_unit_test(ipv4__needs_fragments),
		cmocka_unit_test(ipv6__is_too_big),
		cmocka_unit_test(no_answer__where_none_may_be),
		cmocka_unit_test(echo__is_answered_if_it_is_whole),
		cmocka_unit_test(echo__of_ipv6_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
