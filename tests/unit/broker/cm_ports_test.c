/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
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

/* The test's files replace the kernel's settings of port numbers. */
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
			if (!cases[i].meet)
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
	assert_int_equal(vb_cm_ports_listen(&table, &one), 0);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &one);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &b, false));
	vb_cm_ports_free(&table, &one);
	one.secret = any.secret = 7;
	any.flags = IPC_CM_JOIN;
	assert_int_equal(vb_cm_ports_bind(&table, &one), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &any), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &one), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &any), 0);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &one);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &b, false), &any);
	assert_null(vb_cm_ports_find(&table, IB, 1, &a, false));
}

static void ports__who_has_the_secret_joins(void **state)
{
	struct vb_cm_port parent = port(80, ipv4(1), 0);
	struct vb_cm_port one = port(80, ipv4(1), IPC_CM_JOIN), two = one;
	struct vb_cm_port thief = one, early = one;
	struct vb_gid a = ipv4(1);

	early.secret = one.secret = two.secret = parent.secret = 7;
	assert_int_equal(vb_cm_ports_bind(&table, &early), -EACCES);
	assert_int_equal(vb_cm_ports_bind(&table, &parent), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &parent), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &thief), -EACCES);
	thief.secret = 8;
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
	/* The table must read the setting again for each bind. */
	setting(table.range_fd, "50000\t50001\n");
	assert_int_equal(vb_cm_ports_bind(&table, &p[2]), 0);
	assert_int_equal(p[2].number, 50001);
}

/* A program gets a port that the kernel reserves if it names the number. */
static void ports__reserved_for_who_asks(void **state)
{
	struct vb_cm_port p = port(40001, any4(), 0);

	setting(table.reserved_fd, "40001\n");
	assert_int_equal(vb_cm_ports_bind(&table, &p), 0);
}

/* AF_IB and IP ids cannot have one port number at one address, but each id gets
 * only the requests of its own kind. */
static void ports__of_gids(void **state)
{
	struct vb_gid a = ipv4(1), b = ipv4(2);
	struct vb_cm_port ip = port(1, a, 0), gid = port(1, b, IPC_CM_PLAIN),
			  same = port(1, a, IPC_CM_PLAIN);

	assert_int_equal(vb_cm_ports_bind(&table, &ip), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &gid), 0);
	assert_int_equal(vb_cm_ports_bind(&table, &same), -EADDRINUSE);
	assert_int_equal(vb_cm_ports_listen(&table, &ip), 0);
	assert_int_equal(vb_cm_ports_listen(&table, &gid), 0);
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &a, false), &ip);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &a, true));
	assert_ptr_equal(vb_cm_ports_find(&table, TCP, 1, &b, true), &gid);
	assert_null(vb_cm_ports_find(&table, TCP, 1, &b, false));
}

/* A model that compares ports pair by pair, to check the table's counters. */
static bool is_any4(const struct vb_gid *a)
{
	return vb_gid_is_ipv4(a) && vb_load_be(a->raw + 12, 4) == 0;
}

static bool covers(const struct vb_cm_port *p, const struct vb_gid *address)
{
	if (vb_gid_is_zero(&p->address))
		return !(p->flags & IPC_CM_V6ONLY) || !vb_gid_is_ipv4(address);
	if (is_any4(&p->address))
		return vb_gid_is_ipv4(address);
	return vb_gid_equal(&p->address, address);
}

static bool joins(const struct vb_cm_port *p, const struct vb_cm_port *q)
{
	return p->flags & IPC_CM_JOIN && p->secret && p->secret == q->secret;
}

static int expected_bind(const struct vb_cm_port *all, unsigned count,
			 const struct vb_cm_port *p)
{
	bool host = false, taken = false;

	for (const struct vb_cm_port *q = all; q < all + count; q++) {
		if (!q->number || q == p || q->number != p->number ||
		    q->space != p->space ||
		    !(covers(p, &q->address) || covers(q, &p->address)))
			continue;
		host |= joins(p, q);
		taken |= !joins(p, q) &&
			 !(p->flags & q->flags & IPC_CM_REUSE && !q->listening);
	}
	if (p->flags & IPC_CM_JOIN && !host)
		return -EACCES;
	return taken ? -EADDRINUSE : 0;
}

static int expected_listen(const struct vb_cm_port *all, unsigned count,
			   const struct vb_cm_port *p)
{
	for (const struct vb_cm_port *q = all; q < all + count; q++)
		if (q != p && q->listening && q->number == p->number &&
		    q->space == p->space &&
		    (covers(p, &q->address) || covers(q, &p->address)) &&
		    !joins(p, q) && !joins(q, p))
			return -EADDRINUSE;
	return 0;
}

static void begin_port(struct vb_cm_port *p)
{
	static const uint8_t flags[] = { 0, IPC_CM_REUSE, IPC_CM_V6ONLY,
					 IPC_CM_JOIN,
					 IPC_CM_JOIN | IPC_CM_REUSE };
	const struct vb_gid addresses[] = { ipv4(1),	     ipv4(2),
					    any4(),	     { { 0 } },
					    { { 0xfd, 1 } }, { { 0xfd, 2 } } };

	*p = port((uint16_t)(1 + rand() % 2),
		  addresses[(unsigned)rand() % VB_COUNT(addresses)],
		  flags[(unsigned)rand() % VB_COUNT(flags)]);
	p->secret = (uint64_t)rand() % 3;
}

static void ports__sums_say_what_pairs_do(void **state)
{
	static struct vb_cm_port all[12];
	unsigned bound = 0, listening = 0;

	srand(16);
	memset(all, 0, sizeof(all));
	for (unsigned step = 0; step < 200000; step++) {
		struct vb_cm_port *p = &all[(unsigned)rand() % VB_COUNT(all)];
		int rc, expected;

		if (p->number && !p->listening && rand() % 2) {
			expected = expected_listen(all, VB_COUNT(all), p);
			rc = vb_cm_ports_listen(&table, p);
			listening += rc == 0;
		} else if (p->number) {
			vb_cm_ports_free(&table, p);
			memset(p, 0, sizeof(*p));
			continue;
		} else {
			begin_port(p);
			expected = expected_bind(all, VB_COUNT(all), p);
			rc = vb_cm_ports_bind(&table, p);
			bound += rc == 0;
			if (rc)
				memset(p, 0, sizeof(*p));
		}
		assert_int_equal(rc, expected);
	}
	assert_in_range(bound, 10000, 200000);
	assert_in_range(listening, 1000, 200000);
	for (unsigned i = 0; i < VB_COUNT(all); i++)
		if (all[i].number)
			vb_cm_ports_free(&table, &all[i]);
	for (unsigned i = 0; i < VB_PORT_BUCKETS; i++)
		assert_null(table.buckets[i]);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A bind takes no longer when there are 65,000 binds of one port number,
 * whether at as many addresses or at one. */
static void ports__many_at_one_number(void **state)
{
	static struct vb_cm_port all[65000];
	const struct vb_gid one = ipv4(1);
	double begun = seconds();

	for (unsigned turn = 0; turn < 3; turn++) {
		for (unsigned i = 0; i < VB_COUNT(all); i++) {
			const uint8_t a[] = { 127, 1, (uint8_t)(i >> 8),
					      (uint8_t)i };

			all[i] = port(7, turn < 2 ? vb_gid_from_ipv4(a) : one,
				      turn ? IPC_CM_REUSE : 0);
			assert_int_equal(vb_cm_ports_bind(&table, &all[i]), 0);
		}
		for (unsigned i = 0; i < VB_COUNT(all); i++) {
			struct vb_cm_port wide = port(7, any4(), IPC_CM_REUSE);

			assert_int_equal(vb_cm_ports_bind(&table, &wide),
					 turn ? 0 : -EADDRINUSE);
			if (turn)
				vb_cm_ports_free(&table, &wide);
		}
		for (unsigned i = 0; i < VB_COUNT(all); i++)
			vb_cm_ports_free(&table, &all[i]);
	}
	assert_true(seconds() - begun < 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ports__addresses_that_meet),
		CASE(ports__spaces_are_apart),
		CASE(ports__reuse_until_one_listens),
		CASE(ports__the_nearer_listener_is_found),
		CASE(ports__who_has_the_secret_joins),
		CASE(ports__any_number),
		CASE(ports__reserved_for_who_asks),
		CASE(ports__of_gids),
		CASE(ports__sums_say_what_pairs_do),
		CASE(ports__many_at_one_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
