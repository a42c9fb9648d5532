/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/cm_ports.h"

#define TCP 0x106
#define IB  0x13f

static struct vb_cm_ports table;

static struct vb_gid ipv4(uint8_t last)
{
	return vb_gid_from_ipv4((const uint8_t[4]){ 10, 0, 0, last });
}

static struct vb_gid any4(void)
{
	return vb_gid_from_ipv4((const uint8_t[4]){ 0 });
}

static struct vb_cm_port port(uint16_t number, struct vb_gid address,
			      uint8_t flags)
{
	return (struct vb_cm_port){ .space = TCP,
				    .number = number,
				    .address = address,
				    .flags = flags };
}

/* The kernel's files, in files of ours. */
static int begin(void **state)
{
	vb_cm_ports_init(&table);
	vb_cm_ports_close(&table);
	table.range_fd = memfd_create("range", MFD_CLOEXEC);
	table.reserved_fd = memfd_create("reserved", MFD_CLOEXEC);
	return table.range_fd < 0 || table.reserved_fd < 0;
}

static int end(void **state)
{
	vb_cm_ports_close(&table);
	return 0;
}

static void setting(int fd, const char *text)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
}

static void ports__addresses_that_meet(void **state)
{
	static const struct vb_gid zero, v6 = { { 0xfd, 1 } };
	// clang-format off
	const struct { struct vb_gid a, b; uint8_t flags; bool meet; } cases[] = {
		{ ipv4(1), ipv4(1), 0, true },
		{ ipv4(1), ipv4(2), 0, false },
		{ any4(),  ipv4(2), 0, true },
		{ any4(),  v6,	    0, false },
		{ zero,	   v6,	    0, true },
		{ zero,	   ipv4(1), 0, true },
		{ zero,	   any4(),  0, true },
		{ zero,	   ipv4(1), IPC_CM_V6ONLY, false },
		{ zero,	   v6,	    IPC_CM_V6ONLY, true },
	};
	// clang-format on

	for (unsigned i = 0; i < VB_COUNT(cases); i++)
		for (unsigned turned = 0; turned < 2; turned++) {
			struct vb_cm_port p =
				port(7471, cases[i].a, cases[i].flags);
			struct vb_cm_port q = port(7471, cases[i].b, 0);
			struct vb_cm_port *first = turned ? &q : &p;
			struct vb_cm_port *second = turned ? &p : &q;

			assert_int_equal(vb_cm_ports_bind(&table, first), 0);
			assert_int_equal(vb_cm_ports_bind(&table, second),
					 cases[i].meet ? -EADDRINUSE : 0);
			vb_cm_ports_free(&table, second);
			vb_cm_ports_free(&table, first);
		}
}

static void ports__spaces_are_apart(void **state)
{
	struct vb_cm_port p = port(1, ipv4(1), 0), q = p;

	q.space = IB;
	assert_int_equal(vb_cm_ports_bind(&table, &p), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &q), 0);
}

static void ports__reuse_until_one_listens(void **state)
{
	struct vb_cm_port p = port(1, any4(), IPC_CM_REUSE), q = p, r = p;

	assert_int_equal(vb_cm_ports_bind(&table, &p), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &q), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &p), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &q), -EADDRINUSE);
	assert_int_equal(vb_cm_ports_bind(&table, &r), -EADDRINUSE);
	vb_cm_ports_free(&table, &p);
	assert_int_equal(vb_cm_ports_listen(&table, &q), 0);
}

static void ports__the_nearer_listener_is_found(void **state)
{
	struct vb_cm_port any = port(1, any4(), IPC_CM_REUSE);
	struct vb_cm_port one = port(1, ipv4(1), IPC_CM_REUSE);
	struct vb_gid a = ipv4(1), b = ipv4(2);

	assert_int_equal(vb_cm_ports_bind(&table, &one), 0);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &a, false));
	one.listening = true;
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &one);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &b, false));
	one.listening = false;
	assert_int_equal(vb_cm_ports_bind(&table, &any), 0);
	any.listening = one.listening = true;
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &one);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &b, false), &any);
	assert_null(vb_cm_ports_find(&table, IB, 1, &a, false));
}

static void ports__who_has_the_ticket_joins(void **state)
{
	struct vb_cm_port parent = port(80, ipv4(1), 0);
	struct vb_cm_port one = port(80, ipv4(1), IPC_CM_JOIN), two = one;
	struct vb_cm_port thief = one, early = one;
	struct vb_gid a = ipv4(1);

	early.ticket = one.ticket = two.ticket = parent.ticket = 7;
	assert_int_equal(vb_cm_ports_bind(&table, &early), -EACCES);
	assert_int_equal(vb_cm_ports_bind(&table, &parent), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &parent), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &thief), -EACCES);
	thief.ticket = 8;
	assert_int_equal(vb_cm_ports_bind(&table, &thief), -EACCES);
	assert_int_equal(vb_cm_ports_bind(&table, &one), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &two), 0);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 80, &a, false), &parent);
	assert_int_equal(vb_cm_ports_listen(&table, &one), 0);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 80, &a, false), &one);
	assert_int_equal(vb_cm_ports_listen(&table, &two), 0);
	for (unsigned turn = 0; turn < 2; turn++)
		assert_ptr_not_equal(
			vb_cm_ports_find(&table, TCP, 80, &a, false),
			vb_cm_ports_find(&table, TCP, 80, &a, false));
	vb_cm_ports_free(&table, &one);
	vb_cm_ports_free(&table, &two);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 80, &a, false), &parent);
}

static void ports__any_number(void **state)
{
	struct vb_cm_port p[3];

	setting(table.range_fd, "40000\t40003\n");
	setting(table.reserved_fd, "80,40001-40002,50000\n");
	for (unsigned i = 0; i < 3; i++) {
		p[i] = port(0, any4(), 0);
		assert_int_equal(vb_cm_ports_bind(&table, &p[i]),
				 i < 2 ? 0 : -EADDRINUSE);
	}
	assert_int_equal(p[0].number ^ p[1].number, 40000 ^ 40003);
	assert_int_equal(p[2].number, 0);
	/* Of these nobody has read before. */
	setting(table.range_fd, "50000\t50001\n");
	assert_int_equal(vb_cm_ports_bind(&table, &p[2]), 0);
	assert_int_equal(p[2].number, 50001);
}

/* A program may take what is reserved, if it says so. */
static void ports__reserved_for_who_asks(void **state)
{
	struct vb_cm_port p = port(40001, any4(), 0);

	setting(table.reserved_fd, "40001\n");
	assert_int_equal(vb_cm_ports_bind(&table, &p), 0);
}

/* By AF_IB and by IP: one set of numbers, and two kinds of requests. */
static void ports__of_gids(void **state)
{
	struct vb_gid a = ipv4(1), b = ipv4(2);
	struct vb_cm_port ip = port(1, a, 0), gid = port(1, b, IPC_CM_PLAIN),
			  same = port(1, a, IPC_CM_PLAIN);

	assert_int_equal(vb_cm_ports_bind(&table, &ip), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &gid), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &same), -EADDRINUSE);
	ip.listening = gid.listening = true;
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &ip);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &a, true));
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &b, true), &gid);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &b, false));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ports__addresses_that_meet),
		CASE(ports__spaces_are_apart),
		CASE(ports__reuse_until_one_listens),
		CASE(ports__the_nearer_listener_is_found),
		CASE(ports__who_has_the_ticket_joins),
		CASE(ports__any_number),
		CASE(ports__reserved_for_who_asks),
		CASE(ports__of_gids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
