/* SPDX-License-Identifier: BSD-2-Clause */
/* How VPI adapters are written: good specs, wrong ones with their sentences,
 * and lists of devices with VPI adapters in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fabric_places.h"

static void get__each_kind_of_port(void **state)
{
	/* @put: what vb_vpi_put() makes of the spec */
	static const struct {
		const char *spec, *put;
	} rows[] = {
		{ "vpi:ib,eth=eth0", "vpi:ib+eth=eth0" },
		{ "vpi:eth=eth0,ib", "vpi:eth=eth0+ib" },
		{ "vpi:ib,ib", "vpi:ib+ib" },
		{ "vpi:eth=eth0,eth=eth1", "vpi:eth=eth0+eth=eth1" },
		{ "vpi:roce=eth0,rocev1=eth1", "vpi:eth=eth0+rocev1=eth1" },
		{ "vpi:ib:Hca3,eth=eth0", "vpi:ib:default/Hca3/1+eth=eth0" },
		{ "vpi:ib:f/Hca3,eth=eth0", "vpi:ib:f/Hca3/1+eth=eth0" },
		{ "vpi:ib:f/Hca3/1,ib:f/Hca3/2",
		  "vpi:ib:f/Hca3/1+ib:f/Hca3/2" },
		{ "vpi:ib:f/a/b/2,ib:f/a/b", "vpi:ib:f/a/b/2+ib:f/a/b/1" },
		{ "vpi:ib+eth=a.1", "vpi:ib+eth=a.1" },
		/* here "f" is the name of a fabric, and 2 that of a node */
		{ "vpi:ib:f/2,ib:f/2/2", "vpi:ib:f/2/1+ib:f/2/2" },
	};
	char put[400], why[VB_VPI_WHY];
	struct vb_vpi vpi;

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const char *spec = rows[i].spec;

		assert_true(vb_vpi_is(spec, strlen(spec)));
		assert_true(vb_vpi_get(spec, strlen(spec), &vpi, why));
		assert_true(vb_vpi_put(&vpi, put, sizeof(put)));
		assert_string_equal(put, rows[i].put);
		/* reading the written form gives the same adapter */
		assert_true(vb_vpi_get(put, strlen(put), &vpi, why));
		assert_false(vb_vpi_put(&vpi, put, 8));
	}
}

static void get__each_fault_has_its_sentence(void **state)
{
	static const struct {
		const char *spec, *why;
	} rows[] = {
		{ "vpi:ib", "two ports (vpi:ib,eth=eth0), and this one has 1" },
		{ "vpi:ib,eth=a,eth=b", "has 3" },
		{ "vpi:ib+eth=a+eth=b+ib", "has 4" },
		{ "vpi:", "\"\" is no kind of port" },
		{ "vpi:ib,", "\"\" is no kind of port" },
		{ "vpi:,ib", "\"\" is no kind of port" },
		{ "vpi:ib,eth0", "\"eth0\" is no kind of port" },
		{ "vpi:ib,token=eth0", "\"token=eth0\" is no kind of port" },
		{ "vpi:ib,eth=", "\"eth=\" names no interface" },
		{ "vpi:ib,eth=a/b", "names no interface" },
		{ "vpi:ib,eth=a b", "names no interface" },
		{ "vpi:ib,eth=sixteen-letters-", "names no interface" },
		{ "vpi:ib,iwarp=eth0", "iWARP's queue pairs are TCP" },
		{ "vpi:ib,iwarp:eth0", "iWARP's queue pairs are TCP" },
		{ "vpi:ib:,eth=a", "\"ib:\" is no place" },
		{ "vpi:ib:/x,eth=a", "is no place" },
		{ "vpi:ib:f/x/0,eth=a", "is no place" },
		{ "vpi:ib:f/x/255,eth=a", "is no place" },
		{ "vpi:ib:f/x/99999999999999999999,eth=a", "is no place" },
		{ "vpi:eth=a,eth=a", "\"eth=a\" is one port" },
		{ "vpi:eth=a,rocev1=a", "\"rocev1=a\" is one port" },
		{ "vpi:ib:x,ib:default/x/1", "is one port" },
	};
	char why[VB_VPI_WHY];
	struct vb_vpi vpi;

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const char *spec = rows[i].spec;

		assert_false(vb_vpi_get(spec, strlen(spec), &vpi, why));
		if (!strstr(why, rows[i].why))
			fail_msg("%s: %s (wanted: %s)", spec, why, rows[i].why);
	}
}

static void get__reads_no_further_than_its_length(void **state)
{
	char text[] = "vpi:eth=a,eth=b", why[VB_VPI_WHY];
	struct vb_vpi vpi;

	for (size_t len = strlen(VB_VPI_PREFIX); len < strlen(text); len++)
		assert_false(vb_vpi_get(text, len, &vpi, why));
	assert_true(vb_vpi_get(text, strlen(text), &vpi, why));
}

static void list__where_an_adapter_ends(void **state)
{
	static const struct {
		const char *specs, *first;
	} rows[] = {
		{ "eth0,eth1", "eth0" },
		{ "vpi:ib,eth=eth0", "vpi:ib,eth=eth0" },
		{ "vpi:ib,eth=eth0,eth1", "vpi:ib,eth=eth0" },
		{ "vpi:ib,eth=eth0,iwarp:eth1", "vpi:ib,eth=eth0" },
		{ "vpi:ib,nonsense,eth1", "vpi:ib,nonsense" },
		/* too many ports: the list stays as it is, and the user gets a
		 * message */
		{ "vpi:ib,eth=a,eth=b", "vpi:ib,eth=a,eth=b" },
		{ "vpi:ib,eth=a,ib:x", "vpi:ib,eth=a,ib:x" },
		{ "vpi:ib+eth=a,ib:x", "vpi:ib+eth=a" },
		{ "vpi:ib", "vpi:ib" },
		{ "", "" },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		assert_int_equal(vb_spec_length(rows[i].specs),
				 strlen(rows[i].first));
}

/* libibumad and the files in /sys know adapters by their names. */
static void adapters__with_a_port_in_a_fabric(void **state)
{
	const char *specs = "ib:Hca1,eth0,vpi:eth=a+eth=b,vpi:eth=a+ib:f/x/2,"
			    "ib:f/Switch1,vpi:wrong";
	struct vb_fabric_adapter a;
	struct vb_fabric_place p;
	unsigned count;

	assert_true(vb_fabric_adapter_nth(specs, 0, &a, &count));
	assert_string_equal(a.name, "ib0");
	assert_int_equal(a.ports, 0);
	assert_true(vb_fabric_adapter_port(&a, 2, &p));
	assert_string_equal(p.node, "Hca1");
	assert_int_equal(p.port, 2);
	assert_true(vb_fabric_adapter_nth(specs, 1, &a, &count));
	/* the second VPI adapter of the list; the first has no port in a
	 * fabric */
	assert_string_equal(a.name, "vpi1");
	assert_int_equal(a.number, 1);
	assert_int_equal(a.ports, 2);
	assert_false(vb_fabric_adapter_port(&a, 0, &p));
	assert_false(vb_fabric_adapter_port(&a, 1, &p));
	assert_false(vb_fabric_adapter_port(&a, 3, &p));
	assert_true(vb_fabric_adapter_port(&a, 2, &p));
	assert_string_equal(p.fabric, "f");
	assert_string_equal(p.node, "x");
	assert_int_equal(p.port, 2);
	assert_true(vb_fabric_adapter_nth(specs, 2, &a, &count));
	assert_string_equal(a.name, "ib1");
	assert_string_equal(a.place[0].node, "Switch1");
	assert_false(vb_fabric_adapter_nth(specs, 3, &a, &count));
	assert_int_equal(count, 3);
	assert_true(vb_fabric_adapter_find(specs, "vpi1", &a));
	assert_false(vb_fabric_adapter_find(specs, "vpi0", &a));
	assert_false(vb_fabric_adapter_find(NULL, "ib0", &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__each_kind_of_port),
		cmocka_unit_test(get__each_fault_has_its_sentence),
		cmocka_unit_test(get__reads_no_further_than_its_length),
		cmocka_unit_test(list__where_an_adapter_ends),
		cmocka_unit_test(adapters__with_a_port_in_a_fabric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
