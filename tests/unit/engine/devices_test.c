/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices from interfaces, in a network namespace of the test's own. */
#include "engine/devices.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>

#include <linux/if_tun.h>
#include <net/if_arp.h>

#include "tests/unit/netns.h"

static bool has_eth;

static int add_interfaces(void **state)
{
	has_eth = system("ip link add eth0 address 02:11:22:33:44:55 "
			 "type veth peer name no-address && "
			 "ip link set no-address up addrgenmode none && "
			 "ip link set eth0 up && "
			 "ip addr add 10.1.2.3/24 dev eth0 && "
			 "ip link add is_down type veth peer name b1 && "
			 "ip addr add 10.1.2.4/24 dev is_down") == 0;
	if (!has_eth)
		print_message("loopback only: is there no ip(8)?\n");
	return 0;
}

static void expect(const char *specs, const char *first, const char *second)
{
	unsigned wanted = !!first + !!second, count = 99;
	struct vb_device *list;

	assert_int_equal(vb_devices_list(specs, &list, &count), 0);
	assert_int_equal(count, wanted);
	if (first)
		assert_string_equal(list[0].name, first);
	if (second)
		assert_string_equal(list[1].name, second);
	free(list);
}

static void devices_list__all(void **state)
{
	expect(NULL, has_eth ? "roce_eth0" : "roce_lo", NULL);
	expect("", has_eth ? "roce_eth0" : "roce_lo", NULL);
}

static void devices_list__specs(void **state)
{
	expect("lo", "roce_lo", NULL);
	expect("roce:lo", "roce_lo", NULL);
	expect("roce_lo", "roce_lo", NULL);
	expect("lo,roce_lo,roce:lo", "roce_lo", NULL);
	expect("iwarp:lo", "iw_lo", NULL);
	expect("iw_lo", "iw_lo", NULL);
	expect("iwarp:lo,lo,iw_lo", "iw_lo", "roce_lo");
	expect("rocev1:lo", "rocev1_lo", NULL);
	expect("rocev1_lo,rocev1:lo,roce:lo", "rocev1_lo", "roce_lo");
	if (!has_eth)
		skip();
	expect("lo,eth0", "roce_lo", "roce_eth0");
	expect("roce_eth0,lo", "roce_eth0", "roce_lo");
}

static void devices_list__names_that_collide(void **state)
{
	struct vb_device *list;
	unsigned count;
	char second[64];

	if (!has_eth || system("ip link add a@b type veth peer name a#b && "
			       "ip addr add 10.9.1.1/24 dev a@b && "
			       "ip addr add 10.9.2.1/24 dev a#b && "
			       "ip link set a@b up && ip link set a#b up"))
		skip();
	/* The kernel sets the interface's carrier a moment later. */
	for (count = 0; count != 3; free(list)) {
		usleep(10000);
		assert_int_equal(vb_devices_list(NULL, &list, &count), 0);
	}
	snprintf(second, sizeof(second), "roce_a_b_%u",
		 VB_MAX(if_nametoindex("a@b"), if_nametoindex("a#b")));
	assert_int_equal(vb_devices_list("a@b,a#b", &list, &count), 0);
	assert_int_equal(count, 2);
	assert_string_not_equal(list[0].name, list[1].name);
	free(list);
	expect(second, second, NULL);
	expect("roce_a_b", "roce_a_b", NULL);
	assert_int_equal(system("ip link del a@b"), 0);
}

/* A TUN of the type that IPoIB's interfaces have. */
static int open_ipoib(void)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI,
			   .ifr_name = "ib7" };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (ioctl(fd, TUNSETIFF, &r) == 0 &&
	    ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND) == 0 &&
	    system("ip addr add 10.9.8.7/24 dev ib7 && ip link set ib7 up") ==
		    0)
		return fd;
	close(fd);
	return -1;
}

/* An IPoIB interface belongs to an adapter of a fabric, so it is no device of
 * its own. */
static void devices_list__not_ipoib(void **state)
{
	struct vb_device *list = NULL;
	unsigned count;
	int fd = open_ipoib();

	if (fd < 0)
		skip();
	expect(NULL, has_eth ? "roce_eth0" : "roce_lo", NULL);
	assert_int_equal(vb_devices_list("ib7", &list, &count), -ENODEV);
	assert_int_equal(vb_devices_list("iwarp:ib7", &list, &count), -ENODEV);
	close(fd);
}

static void devices_list__specs_that_name_nothing(void **state)
{
	struct vb_device *list = NULL;
	unsigned count;

	assert_int_equal(vb_devices_list("nosuch", &list, &count), -ENODEV);
	assert_int_equal(vb_devices_list("lo,nosuch", &list, &count), -ENODEV);
	if (has_eth) {
		assert_int_equal(vb_devices_list("is_down", &list, &count),
				 -ENODEV);
		assert_int_equal(vb_devices_list("no-address", &list, &count),
				 -ENODEV);
	}
	assert_null(list);
}

static void devices_list__specs_that_cannot_be_read(void **state)
{
	static const char *const specs[] = {
		",",   "lo,",	",lo",	  "roce:",	   "iwarp:", "rocev1:",
		"a b", "../lo", "ibx:lo", "iwarp:roce:lo", "\x1b[m"
	};
	struct vb_device *list = NULL;
	char longest[300];
	unsigned count;

	for (unsigned i = 0; i < VB_COUNT(specs); i++)
		assert_int_equal(vb_devices_list(specs[i], &list, &count),
				 -EINVAL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(vb_devices_list(longest, &list, &count), -EINVAL);
	assert_null(list);
}

/* A device that is a place in a fabric is listed only while that fabric runs
 * (tests/programs/ib_verbs.sh). */
static void devices_list__a_place_without_a_fabric(void **state)
{
	static const char *const specs[] = { "ib:no-fabric-of-that-name/Hca1",
					     "lo,ib:no-fabric-of-that-name/x" };
	struct vb_device *list = NULL;
	unsigned count;

	for (unsigned i = 0; i < VB_COUNT(specs); i++)
		assert_int_equal(vb_devices_list(specs[i], &list, &count),
				 -ENODEV);
	assert_int_equal(vb_devices_list("ib:/Hca1", &list, &count), -EINVAL);
	assert_int_equal(vb_devices_list("ib:", &list, &count), -EINVAL);
	assert_null(list);
}

static void devices_list__guids(void **state)
{
	struct vb_device *a, *b;
	unsigned count;

	assert_int_equal(vb_devices_list("lo", &a, &count), 0);
	assert_int_equal(vb_devices_list("lo", &b, &count), 0);
	assert_true(a->guid != 0);
	assert_true(a->guid == b->guid);
	assert_int_equal(a->ifindex, 1);
	assert_string_equal(a->port[0].netdev, "lo");
	free(a);
	free(b);
	if (!has_eth)
		skip();
	assert_int_equal(vb_devices_list("eth0", &a, &count), 0);
	assert_true(a->guid == 0x001122fffe334455ull);
	free(a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_list__all),
		cmocka_unit_test(devices_list__specs),
		cmocka_unit_test(devices_list__names_that_collide),
		cmocka_unit_test(devices_list__not_ipoib),
		cmocka_unit_test(devices_list__specs_that_name_nothing),
		cmocka_unit_test(devices_list__specs_that_cannot_be_read),
		cmocka_unit_test(devices_list__a_place_without_a_fabric),
		cmocka_unit_test(devices_list__guids),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, add_interfaces, NULL);
}
