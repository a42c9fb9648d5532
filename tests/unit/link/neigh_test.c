/* SPDX-License-Identifier: BSD-2-Clause */
/* link/neigh: neighbours, gateways, VLANs, in a network namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/neigh.h"
#include "tests/unit/netns.h"

static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };

static int resolve(const char *dev, const char *to, uint8_t mac[6],
		   uint16_t *vlan)
{
	struct vb_neigh_from from = { .ifindex = if_nametoindex(dev) };
	struct vb_gid gid;
	uint8_t v4[4];

	memcpy(from.mac, own, 6);
	if (inet_pton(AF_INET, to, v4) == 1)
		gid = vb_gid_from_ipv4(v4);
	else
		assert_int_equal(inet_pton(AF_INET6, to, gid.raw), 1);
	memset(mac, 0, 6);
	*vlan = 1;
	return vb_neigh_resolve(&from, &gid, mac, vlan);
}

static void neigh__known_gateways_and_vlans(void **state)
{
	static const struct {
		const char *dev, *to;
		uint8_t mac[6];
		uint16_t vlan;
	} rows[] = {
		{ "p0", "192.0.2.7", { 2, 0, 0, 0, 0, 7 }, VB_NO_VLAN },
		{ "p0", "198.51.100.1", { 2, 0, 0, 0, 0, 7 }, VB_NO_VLAN },
		{ "p0", "fe80::9", { 2, 0, 0, 0, 0, 9 }, VB_NO_VLAN },
		{ "p0", "192.0.2.1", { 2, 0, 0, 0, 0, 1 }, VB_NO_VLAN },
		{ "p0", "239.129.2.3", { 1, 0, 0x5e, 1, 2, 3 }, VB_NO_VLAN },
		{ "p0", "ff0e::1:2", { 0x33, 0x33, 0, 1, 0, 2 }, VB_NO_VLAN },
		{ "v5", "203.0.113.8", { 2, 0, 0, 0, 0, 8 }, 5 },
		/* The kernel does not know this neighbour yet, and asks it; the
		 * peer of p0 answers. */
		{ "p0", "192.0.2.2", { 2, 0, 0, 0, 0, 2 }, VB_NO_VLAN },
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		uint8_t mac[6];
		uint16_t vlan;

		if (if_nametoindex(rows[i].dev) == 0)
			continue;
		assert_int_equal(resolve(rows[i].dev, rows[i].to, mac, &vlan),
				 0);
		assert_memory_equal(mac, rows[i].mac, 6);
		assert_int_equal(vlan, rows[i].vlan);
	}
}

static void neigh__nobody_there(void **state)
{
	uint8_t mac[6];
	uint16_t vlan;

	assert_int_equal(resolve("p0", "8.8.8.8", mac, &vlan), -EHOSTUNREACH);
	assert_int_equal(resolve("p0", "192.0.2.66", mac, &vlan),
			 -EHOSTUNREACH);
	assert_int_equal(resolve("p0", "198.51.101.1", mac, &vlan),
			 -EHOSTUNREACH);
}

/* With a protocol that routers do not forward, only neighbours can be
 * reached. */
static void neigh__not_over_a_router(void **state)
{
	static const struct {
		const uint8_t to[4];
		int rc;
	} rows[] = {
		{ { 192, 0, 2, 7 }, 0 },
		{ { 192, 0, 2, 1 }, 0 },
		{ { 239, 1, 2, 3 }, 0 },
		{ { 198, 51, 100, 1 }, -ENETUNREACH },
	};
	struct vb_neigh_from from = { .ifindex = if_nametoindex("p0"),
				      .no_router = true };
	uint8_t mac[6];
	uint16_t vlan;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_gid to = vb_gid_from_ipv4(rows[i].to);

		assert_int_equal(vb_neigh_resolve(&from, &to, mac, &vlan),
				 rows[i].rc);
	}
}

/* A caller that must not wait gets -EAGAIN at once, and the address soon. */
static void neigh__without_waiting(void **state)
{
	static const uint8_t to_mac[6] = { 2, 0, 0, 0, 0, 2 };
	const struct vb_gid nobody =
		vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 77 });
	const struct vb_gid peer =
		vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 2 });
	struct vb_neigh_from from = { .ifindex = if_nametoindex("p0"),
				      .no_wait = true };
	uint8_t mac[6];
	uint16_t vlan;
	int rc, tries = 0;

	assert_int_equal(vb_neigh_resolve(&from, &nobody, mac, &vlan), -EAGAIN);
	assert_int_equal(system("ip neigh flush dev p0 to 192.0.2.2"), 0);
	while ((rc = vb_neigh_resolve(&from, &peer, mac, &vlan)) == -EAGAIN &&
	       ++tries < 500)
		usleep(10000);
	assert_int_equal(rc, 0);
	assert_memory_equal(mac, to_mac, 6);
}

static void port__what_the_kernel_says(void **state)
{
	static const uint8_t zero[6];
	struct vb_neigh_port p;

	assert_int_equal(vb_neigh_port(if_nametoindex("p0"), &p), 0);
	assert_memory_equal(p.mac, own, 6);
	assert_int_equal(p.vlan, VB_NO_VLAN);
	assert_int_equal(p.below, 0);
	assert_int_equal(vb_neigh_port(if_nametoindex("lo"), &p), 0);
	assert_memory_equal(p.mac, zero, 6);
	assert_int_equal(vb_neigh_port(9999, &p), -ENODEV);
	if (if_nametoindex("v5") == 0)
		return;
	assert_int_equal(vb_neigh_port(if_nametoindex("v5"), &p), 0);
	assert_memory_equal(p.mac, own, 6);
	assert_int_equal(p.vlan, 5);
	assert_int_equal(p.tpid, 0x8100);
	assert_int_equal(p.below, if_nametoindex("p0"));
}

static pid_t far;

/* The other end of p1 is in another namespace, so that requests go out. Not
 * every kernel has VLANs. */
static int set_up(void **state)
{
	FILE *p = popen("unshare -n sleep 60 >/dev/null 2>&1 & echo $!", "r");
	char pid[16];

	if (!p || fscanf(p, "%d", &far) != 1 || pclose(p) < 0)
		return -1;
	snprintf(pid, sizeof(pid), "%d", far);
	setenv("far", pid, 1);
	return system(
		"ip link add p0 address 02:00:00:00:00:01 type veth "
		"peer name p1 address 02:00:00:00:00:02 && "
		"ip link set p0 up && ip addr add 192.0.2.1/24 dev p0 && "
		"sleep 0.3 && ip link set p1 netns $far && "
		"nsenter -t $far -n sh -c 'ip link set p1 up && "
		"ip addr add 192.0.2.2/24 dev p1' && "
		"ip neigh add 192.0.2.7 lladdr 02:00:00:00:00:07 dev p0 && "
		"ip neigh add fe80::9 lladdr 02:00:00:00:00:09 dev p0 && "
		"ip route add 198.51.100.0/24 via 192.0.2.7 && "
		"ip route add blackhole 198.51.101.0/24 || exit; "
		"ip link add link p0 name v5 type vlan id 5 2>/dev/null && "
		"ip link set v5 up && ip addr add 203.0.113.1/24 dev v5 && "
		"ip neigh add 203.0.113.8 lladdr 02:00:00:00:00:08 dev v5; "
		"exit 0");
}

static int tear_down(void **state)
{
	return kill(far, SIGKILL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(neigh__known_gateways_and_vlans),
		cmocka_unit_test(neigh__nobody_there),
		cmocka_unit_test(neigh__not_over_a_router),
		cmocka_unit_test(neigh__without_waiting),
		cmocka_unit_test(port__what_the_kernel_says),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
