/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/address.h"

static struct vb_ip_net net(const char *text)
{
	struct vb_ip_net a;

	assert_true(vb_ip_net_parse(text, &a));
	return a;
}

/* The address in @text, which ends in a prefix. */
static struct vb_gid ip(const char *text)
{
	return net(text).ip;
}

static void parse__both_families(void **state)
{
	struct vb_ip_net a = net("10.9.0.3/24");
	char text[VB_GID_TEXT];

	assert_string_equal(vb_gid_text(&a.ip, text), "::ffff:10.9.0.3");
	assert_int_equal(a.prefix, 96 + 24);
	a = net("fd09::3/64");
	assert_string_equal(vb_gid_text(&a.ip, text), "fd09::3");
	assert_int_equal(a.prefix, 64);
	assert_int_equal(net("10.9.0.3/0").prefix, 96);
	assert_int_equal(net("fd09::3/128").prefix, 128);
}

static void parse__what_is_no_address(void **state)
{
	static const char *const wrong[] = {
		"",
		"/",
		"10.9.0.3",
		"10.9.0.3/",
		"10.9.0.3/33",
		"10.9.0.3/24x",
		"10.9.0.3/-1",
		"10.9.0.3/ 24",
		"10.9.0/24",
		"fd09::3/129",
		"ff02::1/64",
		"::ffff:10.9.0.3/120",
		"fd09:fd09:fd09:fd09:fd09:fd09:fd09:fd09:fd09:fd09:fd09/64",
		"ib0/24",
	};
	struct vb_ip_net a;

	for (unsigned i = 0; i < VB_COUNT(wrong); i++)
		assert_false(vb_ip_net_parse(wrong[i], &a));
}

static struct vb_ip_nets some(void)
{
	return (struct vb_ip_nets){
		.list = { net("10.9.0.3/24"), net("10.9.8.1/30"),
			  net("10.7.0.1/31"), net("fe80::3/64"),
			  net("fd09::3/60") },
		.count = 5
	};
}

static void nets__broadcast_addresses(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ "10.9.0.255/24", true },
		{ "255.255.255.255/0", true },
		{ "10.9.8.3/30", true },
		{ "10.9.0.254/24", false },
		{ "10.9.8.2/30", false },
		{ "10.9.1.255/24", false },
		{ "10.7.0.1/31", false },
		{ "fd09::ffff/64", false },
		{ "fd09:0:0:f:ffff:ffff:ffff:ffff/64", false },
	};
	struct vb_ip_nets n = some(), none = { .count = 0 };

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct vb_gid gid = ip(cases[i].text);

		assert_true(vb_ip_nets_broadcast(&n, &gid) == cases[i].is);
		assert_true(vb_ip_nets_broadcast(&none, &gid) == (i == 1));
	}
}

static void nets__the_source_is_in_the_same_network(void **state)
{
	static const char *const cases[][2] = {
		{ "10.9.0.77/0", "10.9.0.3/0" },
		{ "10.9.8.2/0", "10.9.8.1/0" },
		{ "fe80::77/0", "fe80::3/0" },
		{ "fd09:0:0:f::1/0", "fd09::3/0" },
	};
	struct vb_ip_nets n = some();
	struct vb_gid far = ip("192.0.2.1/0"), far6 = ip("2001:db8::1/0");

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct vb_gid to = ip(cases[i][0]), from = ip(cases[i][1]);
		const struct vb_gid *got = vb_ip_nets_source(&n, &to);

		assert_non_null(got);
		assert_true(vb_gid_equal(got, &from));
		assert_true(vb_ip_nets_have(&n, &from));
		assert_false(vb_ip_nets_have(&n, &to));
	}
	assert_true(vb_gid_is_ipv4(vb_ip_nets_source(&n, &far)));
	assert_false(vb_gid_is_ipv4(vb_ip_nets_source(&n, &far6)));
	n.count = 3;
	assert_null(vb_ip_nets_source(&n, &far6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__both_families),
		cmocka_unit_test(parse__what_is_no_address),
		cmocka_unit_test(nets__broadcast_addresses),
		cmocka_unit_test(nets__the_source_is_in_the_same_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
