/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wire/gid.h"

static struct vb_gid gid(const char *text)
{
	struct vb_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static void gid__kinds(void **state)
{
	static const struct {
		const char *text;
		bool zero, ipv4, link_local, multicast;
	} rows[] = {
		{ "::", true, false, false, false },
		{ "::1", false, false, false, false },
		{ "::ffff:0.0.0.0", false, true, false, false },
		{ "::ffff:10.1.2.3", false, true, false, false },
		{ "::ffff:223.255.255.255", false, true, false, false },
		{ "::ffff:224.0.0.1", false, true, false, true },
		{ "::ffff:239.255.255.255", false, true, false, true },
		{ "::ffff:240.0.0.1", false, true, false, false },
		{ "::fffe:224.0.0.1", false, false, false, false },
		{ "fe80::1", false, false, true, false },
		{ "fe80:0:0:1::1", false, false, false, false },
		{ "fec0::1", false, false, false, false },
		{ "ff02::1", false, false, false, true },
		{ "2001:db8::1", false, false, false, false },
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_gid g = gid(rows[i].text);

		assert_int_equal(vb_gid_is_zero(&g), rows[i].zero);
		assert_int_equal(vb_gid_is_ipv4(&g), rows[i].ipv4);
		assert_int_equal(vb_gid_is_link_local(&g), rows[i].link_local);
		assert_int_equal(vb_gid_is_multicast(&g), rows[i].multicast);
	}
}

static void gid__made_from_addresses(void **state)
{
	static const uint8_t v4[4] = { 192, 0, 2, 33 };
	static const uint8_t mac[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	static const uint8_t mac2[6] = { 0xec, 0x0d, 0x9a, 1, 2, 3 };
	struct vb_gid a = vb_gid_from_ipv4(v4), b = vb_gid_from_mac(mac);
	struct vb_gid c = vb_gid_from_mac(mac2);
	char text[VB_GID_TEXT];

	assert_string_equal(vb_gid_text(&a, text), "::ffff:192.0.2.33");
	assert_string_equal(vb_gid_text(&b, text), "fe80::11:22ff:fe33:4455");
	assert_string_equal(vb_gid_text(&c, text), "fe80::ee0d:9aff:fe01:203");
	assert_true(vb_gid_is_link_local(&b));
	assert_true(vb_gid_equal(&b, &b));
	assert_false(vb_gid_equal(&b, &c));
}

static void gid__longest_text_fits(void **state)
{
	struct vb_gid g = gid("2001:1db8:1111:2222:3333:4444:5555:6666");
	char text[VB_GID_TEXT];

	assert_string_equal(vb_gid_text(&g, text),
			    "2001:1db8:1111:2222:3333:4444:5555:6666");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid__kinds),
		cmocka_unit_test(gid__made_from_addresses),
		cmocka_unit_test(gid__longest_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
