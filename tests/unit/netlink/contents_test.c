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
		"infiniband_verbs/uverbs42/dev\t231:234\n" AT
		"infiniband_mad/umad0/dev\t231:0\n";
	struct vb_nl_facts f = { 0 };
	const struct vb_nl_device *d;

	assert_int_equal(vb_nl_read(text, &f), 0);
	assert_int_equal(f.count, 1);
	d = f.devices;
	assert_string_equal(d->name, "roce_e");
	assert_string_equal(d->firmware, "7.8");
	assert_int_equal(d->node_type, 1);
	assert_true(d->guid == 0x0011223344556677);
	assert_true(d->image_guid == 0x8899aabbccddeeff);
	assert_int_equal(d->state, 4);
	assert_int_equal(d->phys_state, 5);
	assert_string_equal(d->netdev, "e");
	assert_int_equal(d->ifindex, 42);
	assert_int_equal(d->index, 42);
	assert_string_equal(d->verbs.name, "uverbs42");
	assert_true(d->verbs.number == makedev(231, 234));
	assert_string_equal(d->mad.name, "umad0");
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
		cmocka_unit_test(passes_over_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
