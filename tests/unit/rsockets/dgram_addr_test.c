/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of datagram sockets: mapped and plain, equal and different. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/defs.h"
#include "front/rsockets/dgram_addr.h"

static struct sockaddr_storage ip(const char *text, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return a;
	}
	memset(&a, 0, sizeof(a));
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	return a;
}

static void check_same(const struct sockaddr_storage *a, const char *text,
		       uint16_t port)
{
	const struct sockaddr_storage want = ip(text, port);

	assert_memory_equal(a, &want,
			    rs_addr_bytes((const struct sockaddr *)&want));
}

static void test_unmap(void **state)
{
	struct sockaddr_storage a = ip("::ffff:10.77.0.1", 7);

	rs_addr_unmap(&a);
	check_same(&a, "10.77.0.1", 7);
	a = ip("fd77::1", 7);
	rs_addr_unmap(&a);
	check_same(&a, "fd77::1", 7);
	a = ip("10.77.0.1", 7);
	rs_addr_unmap(&a);
	check_same(&a, "10.77.0.1", 7);
}

static void test_plain(void **state)
{
	const struct sockaddr_storage mapped = ip("::ffff:10.77.0.1", 7);
	const struct sockaddr_storage four = ip("10.77.0.1", 7);
	struct sockaddr_storage a;

	a = rs_addr_plain((const struct sockaddr *)&mapped);
	check_same(&a, "10.77.0.1", 7);
	a = rs_addr_plain((const struct sockaddr *)&four);
	check_same(&a, "10.77.0.1", 7);
}

/* Only an IPv6 socket shows an IPv4 address in its mapped form. */
static void test_mapped(void **state)
{
	const struct sockaddr_storage four = ip("10.77.0.1", 7);
	const struct sockaddr_storage six = ip("fd77::1", 7);
	struct sockaddr_storage a = rs_addr_mapped(AF_INET6, &four);

	check_same(&a, "::ffff:10.77.0.1", 7);
	a = rs_addr_mapped(AF_INET, &four);
	check_same(&a, "10.77.0.1", 7);
	a = rs_addr_mapped(AF_INET6, &six);
	check_same(&a, "fd77::1", 7);
}

static void test_port(void **state)
{
	struct sockaddr_storage a[] = { ip("10.77.0.1", 7), ip("fd77::1", 7) };

	for (unsigned i = 0; i < VB_COUNT(a); i++) {
		assert_int_equal(rs_addr_port(&a[i]), htons(7));
		rs_addr_set_port(&a[i], htons(9));
		assert_int_equal(rs_addr_port(&a[i]), htons(9));
	}
	check_same(&a[0], "10.77.0.1", 9);
	check_same(&a[1], "fd77::1", 9);
}

/* Two addresses are equal if IP address and port are equal. */
static void test_same_and_hash(void **state)
{
	const struct sockaddr_storage all[] = {
		ip("10.77.0.1", 7), ip("10.77.0.1", 8), ip("10.77.0.2", 7),
		ip("fd77::1", 7),   ip("fd77::1", 8),	ip("fd77::2", 7),
	};
	struct sockaddr_storage scoped = all[3];

	for (unsigned i = 0; i < VB_COUNT(all); i++)
		for (unsigned k = 0; k < VB_COUNT(all); k++) {
			assert_int_equal(rs_addr_same(&all[i], &all[k]),
					 i == k);
			assert_int_equal(rs_addr_hash(&all[i]) ==
						 rs_addr_hash(&all[k]),
					 i == k);
		}
	((struct sockaddr_in6 *)&scoped)->sin6_flowinfo = 5;
	assert_true(rs_addr_same(&all[3], &scoped));
	assert_int_equal(rs_addr_hash(&all[3]), rs_addr_hash(&scoped));
}

static void test_any(void **state)
{
	static const struct {
		const char *text;
		bool any;
	} cases[] = {
		{ "0.0.0.0", true },
		{ "::", true },
		{ "10.77.0.1", false },
		{ "::1", false },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		const struct sockaddr_storage a = ip(cases[i].text, 7);

		assert_int_equal(rs_addr_is_any(&a), cases[i].any);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_same_and_hash),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
