/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams' headers, byte by byte, and bytes that are no header. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/defs.h"
#include "front/rsockets/dgram_header.h"

static struct sockaddr_in four(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(0x1234) };

	inet_pton(AF_INET, "10.77.0.1", &a.sin_addr);
	return a;
}

static struct sockaddr_in6 six(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(0x1234),
				  .sin6_flowinfo = htonl(7) };

	inet_pton(AF_INET6, "fd77::1", &a.sin6_addr);
	return a;
}

static const uint8_t udp4[] = { 0x55, 0x55, 0x55, 0x55, 4,  7,	16, 0,
				0,    0x12, 0x34, 0x56, 10, 77, 0,  1 };
static const uint8_t udp6[] = { 0x55, 0x55, 0x55, 0x55, 6, 0, 28, 0, 0, 0x12,
				0x34, 0x56, 0xfd, 0x77, 0, 0, 0,  0, 0, 0,
				0,    0,    0,	  0,	0, 0, 0,  1 };
static const uint8_t ud4[] = { 4, 8, 0x12, 0x34, 10, 77, 0, 1 };
static const uint8_t ud6[] = {
	6, 24, 0x12, 0x34, 0, 0, 0, 7, 0xfd, 0x77, 0, 0,
	0, 0,  0,    0,	   0, 0, 0, 0, 0,    0,	   0, 1
};

static void test_over_udp(void **state)
{
	struct rs_dgram_header_udp h = { RS_DGRAM_CONTROL, 0xff123456 }, back;
	const struct sockaddr_in a = four();
	const struct sockaddr_in6 b = six();
	uint8_t bytes[RS_DGRAM_UDP_MOST];

	assert_int_equal(rs_dgram_header_put_udp(bytes, &h, (const void *)&a),
			 16);
	assert_memory_equal(bytes, udp4, sizeof(udp4));
	h.op = RS_DGRAM_DATA;
	assert_int_equal(rs_dgram_header_put_udp(bytes, &h, (const void *)&b),
			 28);
	assert_memory_equal(bytes, udp6, sizeof(udp6));
	assert_int_equal(rs_dgram_header_get_udp(udp4, 16, AF_INET, &back), 16);
	assert_int_equal(back.op, RS_DGRAM_CONTROL);
	assert_int_equal(back.qpn, 0x123456);
	assert_int_equal(rs_dgram_header_get_udp(udp6, 28, AF_INET6, &back),
			 28);
	assert_int_equal(back.op, RS_DGRAM_DATA);
}

static void test_from_queue_pairs(void **state)
{
	const struct sockaddr_in a = four();
	const struct sockaddr_in6 b = six();
	struct sockaddr_storage from;
	uint8_t bytes[RS_DGRAM_UD_MOST];

	assert_int_equal(rs_dgram_header_put_ud(bytes, (const void *)&a), 8);
	assert_memory_equal(bytes, ud4, sizeof(ud4));
	assert_int_equal(rs_dgram_header_put_ud(bytes, (const void *)&b), 24);
	assert_memory_equal(bytes, ud6, sizeof(ud6));
	assert_int_equal(rs_dgram_header_get_ud(ud4, 8, &from), 8);
	assert_memory_equal(&from, &a, sizeof(a));
	assert_int_equal(rs_dgram_header_get_ud(ud6, 24, &from), 24);
	assert_memory_equal(&from, &b, sizeof(b));
}

static void test_cut_short(void **state)
{
	struct rs_dgram_header_udp h;
	struct sockaddr_storage from;

	for (size_t n = 0; n < sizeof(udp6); n++)
		assert_int_equal(rs_dgram_header_get_udp(udp6, n, AF_INET6, &h),
				 -EPROTO);
	for (size_t n = 0; n < sizeof(udp4); n++)
		assert_int_equal(rs_dgram_header_get_udp(udp4, n, AF_INET, &h),
				 -EPROTO);
	for (size_t n = 0; n < sizeof(ud6); n++)
		assert_int_equal(rs_dgram_header_get_ud(ud6, n, &from),
				 -EPROTO);
	for (size_t n = 0; n < sizeof(ud4); n++)
		assert_int_equal(rs_dgram_header_get_ud(ud4, n, &from),
				 -EPROTO);
}

/* A change of any byte that identifies the header makes it invalid. */
static void test_what_is_none(void **state)
{
	static const unsigned saying[] = { 0, 1, 2, 3, 4, 5, 6 };
	uint8_t bytes[sizeof(udp4)], more[32] = { 4, 24 };
	struct sockaddr_storage from;
	struct rs_dgram_header_udp h;

	for (unsigned i = 0; i < VB_COUNT(saying); i++) {
		memcpy(bytes, udp4, sizeof(bytes));
		bytes[saying[i]] ^= 2;
		assert_int_equal(rs_dgram_header_get_udp(bytes, sizeof(bytes),
							 AF_INET, &h),
				 -EPROTO);
	}
	assert_int_equal(rs_dgram_header_get_udp(udp4, 16, AF_INET6, &h),
			 -EPROTO);
	assert_int_equal(rs_dgram_header_get_ud(more, sizeof(more), &from),
			 -EPROTO);
	more[0] = 6;
	more[1] = 8;
	assert_int_equal(rs_dgram_header_get_ud(more, sizeof(more), &from),
			 -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_udp),
		cmocka_unit_test(test_from_queue_pairs),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
