/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the facts of devices from the text of the file tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "front/netlink/facts.h"

#define AT   "sys/devices/virtual/verbena/roce_e/"
#define FILE AT "infiniband/roce_e/"

static void tells_a_device(void **state)
{
	static const char text[] =
		"sys/class/infiniband/\n" FILE "node_type\t1: CA\n" FILE
		"fw_ver\t7.8\n" FILE "node_guid\t0011:2233:4455:6677\n" FILE
		"sys_image_guid\t8899:aabb:ccdd:eeff\n" FILE
		"ports/1/state\t4: ACTIVE\n" FILE
		"ports/1/phys_state\t5: LinkUp\n" AT "net/e/ifindex\t42\n" AT
		"net/e/dev_port\t0\n" AT
		"infiniband_verbs/uverbs42/dev\t231:234\n" AT
		"infiniband_mad/umad0/port\t1\n" AT
		"infiniband_mad/umad0/dev\t231:0\n";
	struct vb_nl_facts f = { 0 };
	const struct vb_nl_device *d;

	assert_int_equal(vb_nl_read(text, &f), 0);
	assert_int_equal(f.count, 1);
	d = f.devices;
	assert_string_equal(d->name, "roce_e");
	assert_int_equal(d->ports, 1);
	assert_string_equal(d->firmware, "7.8");
	assert_int_equal(d->node_type, 1);
	assert_true(d->guid == 0x0011223344556677);
	assert_true(d->image_guid == 0x8899aabbccddeeff);
	assert_int_equal(d->port[0].state, 4);
	assert_int_equal(d->port[0].phys_state, 5);
	assert_string_equal(d->port[0].netdev, "e");
	assert_int_equal(d->port[0].ifindex, 42);
	assert_int_equal(d->index, 42);
	assert_string_equal(d->verbs.name, "uverbs42");
	assert_true(d->verbs.number == makedev(231, 234));
	assert_string_equal(d->port[0].mad.name, "umad0");
	free(f.devices);
}

/* An adapter with two ports: the first in a fabric, the second an interface's.
 */
static void tells_two_ports(void **state)
{
#define VPI "sys/devices/virtual/verbena/vpi0/"
#define OF  VPI "infiniband/vpi0/ports/"
	static const char text[] =
		OF "1/lid\t0x5\n" OF "1/lid_mask_count\t2\n" OF
		   "1/sm_lid\t0x7\n" OF "1/state\t4: ACTIVE\n" OF
		   "1/cap_mask\t0x02514868\n" OF "1/link_layer\tInfiniBand\n" OF
		   "1/gids/0\tfe80:0000:0000:0001:0000:0000:0000:0002\n" VPI
		   "infiniband_mad/umad3/port\t1\n" VPI
		   "infiniband_mad/umad3/dev\t231:3\n" VPI
		   "net/eth0/ifindex\t9\n" VPI "net/eth0/dev_port\t1\n" OF
		   "2/state\t1: DOWN\n" OF "2/link_layer\tEthernet\n" OF
		   "17/state\t4: ACTIVE\n" OF "0/state\t4: ACTIVE\n";
	struct vb_nl_facts f = { 0 };
	const struct vb_nl_port *p;

	assert_int_equal(vb_nl_read(text, &f), 0);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.devices->ports, 2);
	p = f.devices->port;
	assert_true(p[0].infiniband && !p[1].infiniband);
	assert_int_equal(p[0].lid, 5);
	assert_int_equal(p[0].lmc, 2);
	assert_int_equal(p[0].sm_lid, 7);
	assert_int_equal(p[0].caps, 0x02514868);
	assert_true(p[0].prefix == 0xfe80000000000001);
	assert_string_equal(p[0].netdev, "");
	assert_string_equal(p[0].mad.name, "umad3");
	assert_string_equal(p[1].mad.name, "");
	assert_string_equal(p[1].netdev, "eth0");
	assert_int_equal(p[1].ifindex, 9);
	assert_int_equal(p[0].state, 4);
	assert_int_equal(p[1].state, 1);
	free(f.devices);
}

static void passes_over_the_rest(void **state)
{
	static const char text[] =
		"\n\t\nno tab\nsys/devices/virtual/verbena/\tx\n"
		"sys/devices/virtual/verbena/a\tx\n"
		"sys/devices/virtual/verbena//x\ty\n" AT
		"infiniband/other/node_type\t3\n" AT
		"net/far_too_long_a_name_for_one/ifindex\t3\n" AT
		"net/e/ifindex/more\t3\nlast line";
	struct vb_nl_facts f = { 0 };

	assert_int_equal(vb_nl_read(text, &f), 0);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.devices->node_type, 0);
	assert_int_equal(f.devices->ifindex, 0);
	free(f.devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_a_device),
		cmocka_unit_test(tells_two_ports),
		cmocka_unit_test(passes_over_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
