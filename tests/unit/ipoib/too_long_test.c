/* SPDX-License-Identifier: BSD-2-Clause */
/* The ICMP messages about packets that are too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "ipoib/packet_priv.h"

#define LEN 3000

static uint8_t packet[LEN], answer[VB_TOO_LONG_BYTES];

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
	return vb_ip_too_long(answer, packet, LEN, 2044);
}

static void ipv4__needs_fragments(void **state)
{
	make_ipv4(6);
	assert_int_equal(ask(), 576);
	assert_int_equal(ipoib_sum(0, answer, 20), 0xffff);
	assert_int_equal(ipoib_sum(0, answer + 20, 556), 0xffff);
	assert_int_equal(vb_load_be(answer + 2, 2), 576);
	assert_int_equal(answer[9], 1);
	/* from the peer to the sender */
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

/* RFC 1122, 3.2.2 and RFC 4443, 2.4. */
static void no_answer__where_none_may_be(void **state)
{
	make_ipv4(1);
	packet[20] = 8; /* an echo request has one */
	assert_int_equal(ask(), 576);
	packet[20] = 11; /* an error has none, */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	packet[16] = 239; /* a group, */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	packet[7] = 1; /* a later fragment, */
	assert_int_equal(ask(), 0);
	make_ipv4(6);
	memset(packet + 12, 0, 4); /* and nobody */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4__needs_fragments),
		cmocka_unit_test(ipv6__is_too_big),
		cmocka_unit_test(no_answer__where_none_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
