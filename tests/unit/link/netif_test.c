/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces and addresses, in a network namespace of the test's own. */
#include "link/netif_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>

#include "tests/unit/netns.h"

static void add_device(void)
{
	if (system("ip link add d0 address 02:11:22:33:44:55 mtu 1400 "
		   "type veth peer name d1 && ip link set d1 up && "
		   "ip link set d0 up addrgenmode none && "
		   "ip addr add 10.1.2.3/24 dev d0 && "
		   "ip addr add fd11::1/64 dev d0 nodad && "
		   "ip addr add 10.1.2.3/8 dev d0")) {
		print_message("no second interface: is there no ip(8)?\n");
		skip();
	}
}

static bool has(const struct vb_netif *n, const char *text)
{
	char got[VB_GID_TEXT];

	for (unsigned i = 0; i < n->count; i++)
		if (strcmp(vb_gid_text(&n->addresses[i], got), text) == 0)
			return true;
	return false;
}

static const struct vb_netif *find(const struct vb_netif *list, unsigned count,
				   const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

/* Compares the two ways of listing: they report equal values of interfaces that
 * have an address. */
static void compare_with_ioctl(const struct vb_netif *list, unsigned count)
{
	struct vb_netif *other;
	unsigned others;

	assert_int_equal(vb_netif_list_by_ioctl(&other, &others), 0);
	assert_string_equal(other[others - 1].name, "lo");
	for (unsigned i = 0; i < others; i++) {
		const struct vb_netif *a = &other[i];
		const struct vb_netif *b = find(list, count, a->name);

		assert_non_null(b);
		assert_memory_equal(a->mac, b->mac, 6);
		assert_int_equal(a->ifindex, b->ifindex);
		assert_int_equal(a->mtu, b->mtu);
		assert_int_equal(a->mbits, b->mbits);
		assert_int_equal(a->up, b->up);
		assert_int_equal(a->loopback, b->loopback);
		assert_int_equal(a->count, b->count);
		for (unsigned k = 0; k < a->count; k++)
			assert_memory_equal(&a->addresses[k], &b->addresses[k],
					    sizeof(struct vb_gid));
	}
	vb_netif_free(other, others);
}

static void netif_list__loopback_alone(void **state)
{
	struct vb_netif *list;
	unsigned count;

	assert_int_equal(vb_netif_list(&list, &count), 0);
	assert_true(count >= 1);
	assert_string_equal(list[count - 1].name, "lo");
	assert_true(list[count - 1].loopback);
	assert_true(list[count - 1].up);
	assert_true(list[count - 1].mtu >= 16384);
	assert_int_equal(list[count - 1].ifindex, 1);
	assert_true(has(&list[count - 1], "::ffff:127.0.0.1"));
	assert_true(vb_gid_is_ipv4(&list[count - 1].addresses[0]));
	compare_with_ioctl(list, count);
	vb_netif_free(list, count);
}

static void netif_list__a_device_comes_and_goes(void **state)
{
	static const uint8_t mac[6] = { 2, 0x11, 0x22, 0x33, 0x44, 0x55 };
	const struct vb_netif *d;
	struct vb_netif_watch *w;
	struct vb_netif *list;
	unsigned count;

	assert_int_equal(vb_netif_watch_open(&w), 0);
	assert_false(vb_netif_watch_drain(w));
	add_device();
	assert_true(vb_netif_watch_drain(w));
	assert_false(vb_netif_watch_drain(w));

	assert_int_equal(vb_netif_list(&list, &count), 0);
	assert_string_equal(list[count - 1].name, "lo");
	d = find(list, count, "d0");
	assert_non_null(d);
	assert_true(d->up);
	assert_false(d->loopback);
	assert_int_equal(d->mtu, 1400);
	assert_memory_equal(d->mac, mac, 6);
	assert_true(has(d, "::ffff:10.1.2.3"));
	assert_true(has(d, "fd11::1"));
	assert_true(vb_gid_is_ipv4(&d->addresses[0]));
	/* 2: each address of the interface is listed once */
	assert_int_equal(d->count, 2);
	compare_with_ioctl(list, count);
	vb_netif_free(list, count);

	assert_int_equal(system("ip link set d0 down"), 0);
	assert_true(vb_netif_watch_drain(w));
	assert_int_equal(vb_netif_list(&list, &count), 0);
	assert_false(find(list, count, "d0")->up);
	vb_netif_free(list, count);
	assert_int_equal(system("ip link del d0"), 0);
	vb_netif_watch_close(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(netif_list__loopback_alone),
		cmocka_unit_test(netif_list__a_device_comes_and_goes),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
