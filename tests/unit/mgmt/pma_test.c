/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mgmt/pma.h"
#include "wire/smp.h"

#define DATA_AT	 64
#define COUNTERS 0x12
#define EXTENDED 0x1d

struct bench {
	struct vb_fab_node *node;
	struct vb_pma *pma;
	uint8_t mad[VB_MAD_BYTES];
};

static void start(struct bench *b, uint8_t kind, uint8_t ports)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = 0x100 };

	b->node = vb_fab_node_create(&spec);
	b->pma = vb_pma_create(b->node);
	assert_non_null(b->pma);
}

static void finish(struct bench *b)
{
	vb_pma_destroy(b->pma);
	vb_fab_node_destroy(b->node);
}

static unsigned ask(struct bench *b, unsigned method, unsigned attr,
		    unsigned port, unsigned select)
{
	const struct vb_mad_hdr h = {
		1,  MAD_CLASS_PERF, 1, (uint8_t)method, 0, 0,
		77, (uint16_t)attr, 0
	};
	struct vb_writer w = { b->mad };

	memset(b->mad, 0, sizeof(b->mad));
	vb_mad_hdr_put(&w, &h);
	b->mad[DATA_AT + 1] = (uint8_t)port;
	vb_store_be(b->mad + DATA_AT + 2, select & 0xffff, 2);
	b->mad[DATA_AT + 18] = (uint8_t)(select >> 16);
	assert_true(vb_pma_hear(b->pma, b->node, b->mad));
	assert_int_equal(b->mad[3], MAD_GET_RESP);
	return (unsigned)vb_load_be(b->mad + 4, 2);
}

static uint64_t field(const struct bench *b, unsigned byte, unsigned bytes)
{
	return vb_load_be(b->mad + DATA_AT + byte, bytes);
}

static void pma__counters_stand_where_they_belong(void **state)
{
	struct bench b;

	start(&b, FAB_CA, 2);
	b.node->port[2].count[FAB_SYMBOL_ERRORS] = 0x102;
	b.node->port[2].count[FAB_LINK_DOWNED] = 3;
	b.node->port[2].count[FAB_LINK_INTEGRITY] = 4;
	b.node->port[2].count[FAB_OVERRUNS] = 5;
	b.node->port[2].count[FAB_VL15_DROPPED] = 6;
	b.node->port[2].count[FAB_XMIT_WORDS] = 0x7000008;
	b.node->port[2].count[FAB_RCV_PKTS] = 9;
	b.node->port[2].count[FAB_RCV_MCAST_PKTS] = 2;
	b.node->port[2].count[FAB_XMIT_WAIT] = 10;
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 2, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 2), 0x102);
	assert_int_equal(field(&b, 7, 1), 3);
	assert_int_equal(field(&b, 19, 1), 0x45);
	assert_int_equal(field(&b, 22, 2), 6);
	assert_int_equal(field(&b, 24, 4), 0x7000008);
	assert_int_equal(field(&b, 36, 4), 9);
	assert_int_equal(field(&b, 40, 4), 10);
	assert_int_equal(ask(&b, MAD_GET, EXTENDED, 2, 0), MAD_OK);
	assert_int_equal(field(&b, 8, 8), 0x7000008);
	assert_int_equal(field(&b, 32, 8), 9);
	/* the count of unicast packets */
	assert_int_equal(field(&b, 48, 8), 7);
	assert_int_equal(field(&b, 64, 8), 2);
	finish(&b);
}

static void pma__small_counters_stay_at_their_largest(void **state)
{
	struct bench b;

	start(&b, FAB_CA, 1);
	for (unsigned i = 0; i < FAB_COUNTERS; i++)
		b.node->port[1].count[i] = 1ull << 40;
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 1, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 2), 0xffff);
	assert_int_equal(field(&b, 6, 2), 0xffff);
	assert_int_equal(field(&b, 19, 1), 0xff);
	assert_int_equal(field(&b, 24, 4), 0xffffffff);
	finish(&b);
}

static void pma__reset_of_what_is_selected(void **state)
{
	struct bench b;
	uint64_t *count;

	start(&b, FAB_CA, 1);
	count = b.node->port[1].count;
	count[FAB_SYMBOL_ERRORS] = 100;
	count[FAB_RCV_ERRORS] = 100;
	count[FAB_XMIT_WAIT] = 100;
	count[FAB_XMIT_WORDS] = 100;
	assert_int_equal(ask(&b, MAD_SET, COUNTERS, 1, 1 | 1 << 16), MAD_OK);
	count[FAB_SYMBOL_ERRORS] += 7;
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 1, 0xffff), MAD_OK);
	assert_int_equal(field(&b, 4, 2), 7);
	/* this counter was not selected */
	assert_int_equal(field(&b, 8, 2), 100);
	assert_int_equal(field(&b, 40, 4), 0);
	/* The extended counters are reset separately. */
	assert_int_equal(ask(&b, MAD_SET, EXTENDED, 1, 1), MAD_OK);
	assert_int_equal(field(&b, 8, 8), 0);
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 1, 0), MAD_OK);
	assert_int_equal(field(&b, 24, 4), 100);
	finish(&b);
}

static void pma__all_ports_of_a_switch(void **state)
{
	struct bench b;

	start(&b, FAB_SWITCH, 4);
	for (unsigned p = 0; p <= 4; p++)
		b.node->port[p].count[FAB_RCV_PKTS] = p + 1;
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 0xff, 0), MAD_OK);
	assert_int_equal(field(&b, 36, 4), 15);
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 0, 0), MAD_OK);
	assert_int_equal(field(&b, 36, 4), 1);
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 5, 0), MAD_BAD_FIELD);
	finish(&b);
	start(&b, FAB_CA, 1);
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 0xff, 0), MAD_BAD_FIELD);
	assert_int_equal(ask(&b, MAD_GET, COUNTERS, 0, 0), MAD_BAD_FIELD);
	finish(&b);
}

static void pma__class_port_info_and_refusals(void **state)
{
	struct bench b;

	start(&b, FAB_SWITCH, 4);
	assert_int_equal(ask(&b, MAD_GET, 1, 0, 0), MAD_OK);
	assert_int_equal(field(&b, 2, 2), 0x1300);
	assert_int_equal(ask(&b, MAD_SET, 1, 0, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, MAD_GET, 0x10, 1, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, MAD_GET, 0x112, 1, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, 0x15, COUNTERS, 1, 0), MAD_BAD_METHOD);
	b.mad[3] = MAD_GET_RESP;
	assert_false(vb_pma_hear(b.pma, b.node, b.mad));
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pma__counters_stand_where_they_belong),
		cmocka_unit_test(pma__small_counters_stay_at_their_largest),
		cmocka_unit_test(pma__reset_of_what_is_selected),
		cmocka_unit_test(pma__all_ports_of_a_switch),
		cmocka_unit_test(pma__class_port_info_and_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
