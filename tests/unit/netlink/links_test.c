/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of IPoIB interfaces in the kernel's messages about links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>

#include <cmocka.h>

#include "front/netlink/links.h"
#include "front/netlink/put.h"

static struct {
	uint8_t bytes[1024];
	size_t length;
	unsigned asked;
} b;

static bool address_of(const char name[IFNAMSIZ],
		       uint8_t address[VB_NL_IPOIB_ADDRESS])
{
	b.asked++;
	if (strcmp(name, "ib0") != 0)
		return false;
	for (unsigned i = 0; i < VB_NL_IPOIB_ADDRESS; i++)
		address[i] = (uint8_t)(0x80 + i);
	return true;
}

/* Append a message about a link, with an IFLA_MAP if @with_map, and with the
 * attribute behind it that the kernel puts there. */
static void add_link(uint16_t type, const char *name, bool with_map,
		     const uint8_t *address)
{
	static const struct rtnl_link_ifmap map;
	struct nlmsghdr h = { .nlmsg_type = RTM_NEWLINK };
	const struct ifinfomsg link = { .ifi_type = type };
	struct vb_nl_out o = { .bytes = b.bytes + b.length,
			       .room = (uint32_t)(sizeof(b.bytes) - b.length) };

	memcpy(vb_nl_room(&o, sizeof(h)), &h, sizeof(h));
	memcpy(vb_nl_room(&o, sizeof(link)), &link, sizeof(link));
	vb_nl_puts(&o, IFLA_IFNAME, name);
	if (with_map)
		vb_nl_put(&o, IFLA_MAP, &map, sizeof(map));
	if (address)
		vb_nl_put(&o, IFLA_ADDRESS, address, VB_NL_IPOIB_ADDRESS);
	vb_nl_put32(&o, IFLA_MTU, 2044);
	assert_false(o.full);
	h.nlmsg_len = o.used;
	memcpy(b.bytes + b.length, &h, sizeof(h));
	b.length += o.used;
}

/* Find an attribute in the message that begins at offset @at. NULL: the message
 * has no such attribute. */
static const uint8_t *find(size_t at, uint16_t type, size_t bytes)
{
	struct nlmsghdr h;
	struct nlattr a;

	memcpy(&h, b.bytes + at, sizeof(h));
	for (size_t i = sizeof(h) + sizeof(struct ifinfomsg); i < h.nlmsg_len;
	     i += NLA_ALIGN(a.nla_len)) {
		memcpy(&a, b.bytes + at + i, sizeof(a));
		assert_true(a.nla_len >= NLA_HDRLEN);
		if (a.nla_type == type && a.nla_len == NLA_HDRLEN + bytes)
			return b.bytes + at + i + NLA_HDRLEN;
	}
	return NULL;
}

static int clear(void **state)
{
	(void)state;
	memset(&b, 0, sizeof(b));
	return 0;
}

static void an_ipoib_interface_gets_its_address(void **state)
{
	const uint8_t *address;
	size_t second;

	(void)state;
	add_link(ARPHRD_ETHER, "eth0", true, NULL);
	second = b.length;
	add_link(ARPHRD_INFINIBAND, "ib0", true, NULL);
	assert_true(vb_nl_links_lack(b.bytes, b.length));
	vb_nl_links_complete(b.bytes, b.length, address_of);
	assert_int_equal(b.asked, 1);
	address = find(second, IFLA_ADDRESS, VB_NL_IPOIB_ADDRESS);
	assert_non_null(address);
	assert_int_equal(address[0], 0x80);
	assert_int_equal(address[19], 0x93);
	/* The attribute behind the map is unchanged, and the map has gone. */
	assert_int_equal(
		*(const uint16_t *)(const void *)find(second, IFLA_MTU, 4),
		2044);
	assert_null(find(second, IFLA_MAP, sizeof(struct rtnl_link_ifmap)));
	assert_null(find(0, IFLA_ADDRESS, VB_NL_IPOIB_ADDRESS));
	assert_false(vb_nl_links_lack(b.bytes, b.length));
}

static void others_stay_as_they_are(void **state)
{
	static const uint8_t own[VB_NL_IPOIB_ADDRESS] = { 1 };
	uint8_t before[sizeof(b.bytes)];

	(void)state;
	add_link(ARPHRD_INFINIBAND, "real", true, own);
	add_link(ARPHRD_INFINIBAND, "mapless", false, NULL);
	assert_false(vb_nl_links_lack(b.bytes, b.length));
	add_link(ARPHRD_INFINIBAND, "stranger", true, NULL);
	assert_true(vb_nl_links_lack(b.bytes, b.length));
	memcpy(before, b.bytes, sizeof(before));
	vb_nl_links_complete(b.bytes, b.length, address_of);
	assert_int_equal(b.asked, 1);
	assert_memory_equal(before, b.bytes, sizeof(before));
}

/* A message that is cut anywhere, or has any byte wrong, is read within its
 * bounds. */
static void damaged_messages_do_no_harm(void **state)
{
	size_t whole;

	(void)state;
	add_link(ARPHRD_INFINIBAND, "ib0", true, NULL);
	whole = b.length;
	for (size_t n = 0; n < whole; n++) {
		uint8_t *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, b.bytes, n);
		vb_nl_links_complete(copy, n, address_of);
		free(copy);
	}
	for (size_t i = 0; i < whole; i++) {
		uint8_t *copy = malloc(whole);

		assert_non_null(copy);
		memcpy(copy, b.bytes, whole);
		copy[i] ^= 0xff;
		vb_nl_links_complete(copy, whole, address_of);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_ipoib_interface_gets_its_address,
				       clear),
		cmocka_unit_test_setup(others_stay_as_they_are, clear),
		cmocka_unit_test_setup(damaged_messages_do_no_harm, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
