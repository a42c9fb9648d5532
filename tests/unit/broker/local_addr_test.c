/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks local addresses on an interface that the test makes, while it adds and
 * removes addresses. */
#include "broker/local_addr.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>

#include "tests/unit/netns.h"

static struct vb_local_addrs places;

static int end(void **state)
{
	vb_local_addrs_fini(&places);
	return 0;
}

static bool has(const char *address)
{
	struct vb_gid gid = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, address, gid.raw), 1);
	return vb_local_addrs_has(&places, &gid, 0);
}

static void place__any_and_loopback(void **state)
{
	assert_true(has("0.0.0.0"));
	assert_true(has("::"));
	assert_true(has("127.0.0.1"));
	assert_true(has("127.200.3.4"));
	assert_true(has("::1"));
	assert_false(has("192.0.2.1"));
	assert_false(has("224.0.0.1"));
	assert_false(has("ff02::1"));
	assert_false(has("2001:db8::1"));
}

static void place__comes_and_goes(void **state)
{
	if (system("ip address add 192.0.2.1/24 dev lo"))
		skip();
	for (unsigned i = 0; i < 3; i++) {
		assert_true(has("192.0.2.1"));
		assert_true(has("192.0.2.1"));
		assert_false(has("192.0.2.2"));
		assert_int_equal(system("ip address del 192.0.2.1/24 dev lo"),
				 0);
		assert_false(has("192.0.2.1"));
		assert_int_equal(system("ip address add 192.0.2.1/24 dev lo"),
				 0);
	}
	netns_write("/proc/sys/net/ipv4/ip_nonlocal_bind", "1");
	assert_false(has("192.0.3.2"));
	assert_int_equal(system("ip address del 192.0.2.1/24 dev lo"), 0);
	assert_false(has("192.0.2.1"));
}

/* GID 0 is made from the MAC address. It may differ from all addresses of the
 * interface. */
static void place__first_gid(void **state)
{
	if (system("ip link add near7 type veth peer name near8 && "
		   "ip link set near7 addrgenmode none && "
		   "ip link set near7 address 02:00:00:00:00:07 up"))
		skip();
	assert_true(has("fe80::ff:fe00:7"));
	assert_false(has("fe80::ff:fe00:9"));
}

/* An address in another routing table also belongs to the host. */
static void place__of_another_table(void **state)
{
	if (system("ip link add vrf7 type vrf table 9 2>/dev/null && "
		   "ip link set vrf7 up && ip link set near7 master vrf7 && "
		   "ip address add 198.51.100.1/24 dev near7"))
		skip();
	assert_true(has("198.51.100.1"));
	assert_false(has("198.51.100.2"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(place__any_and_loopback, end),
		cmocka_unit_test_teardown(place__comes_and_goes, end),
		cmocka_unit_test_teardown(place__first_gid, end),
		cmocka_unit_test_teardown(place__of_another_table, end),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
