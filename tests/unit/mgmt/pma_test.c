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
	struct vb_timers timers;
	vb_time now;
	uint8_t mad[VB_MAD_BYTES];
};

static void start(struct bench *b, uint8_t kind, uint8_t ports)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = 0x100 };

	b->node = vb_fab_node_create(&spec);
	vb_timers_init(&b->timers);
	b->now = VB_SEC;
	b->pma = vb_pma_create(b->node, &b->timers);
	assert_non_null(b->pma);
}

static void finish(struct bench *b)
{
	vb_pma_destroy(b->pma);
	vb_timers_fini(&b->timers);
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
	assert_true(vb_pma_hear(b->pma, b->mad, b->now));
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
	/* 7: the count of unicast packets */
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
	/* The Set's CounterSelect does not name this counter. */
	assert_int_equal(field(&b, 8, 2), 100);
	assert_int_equal(field(&b, 40, 4), 0);
	/* A Set of the extended counters resets only those. */
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
	assert_int_equal(field(&b, 2, 2), 0x9300);
	assert_int_equal(ask(&b, MAD_SET, 1, 0, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, MAD_GET, 0x17, 1, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, MAD_GET, 0x112, 1, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&b, 0x15, COUNTERS, 1, 0), MAD_BAD_METHOD);
	b.mad[3] = MAD_GET_RESP;
	assert_false(vb_pma_hear(b.pma, b.mad, b.now));
	finish(&b);
}

/* Counters of lanes and service levels: perfquery's options, by attribute. */
static void pma__lanes_and_service_levels(void **state)
{
	struct bench b;
	struct vb_fab_port *p;

	start(&b, FAB_SWITCH, 4);
	p = &b.node->port[2];
	for (unsigned i = 0; i < 16; i++) {
		p->vl[i].xmit_wait = 0x100 + i;
		p->vl[i].xmit_late = 0x200 + i;
		p->vl[i].time_cong = 0x30000 + i;
		p->sl[i].xmit_words = 0x40000 + i;
		p->sl[i].rcv_words = 0x50000 + i;
		p->sl[i].rcv_fecn = 0x600 + i;
		p->sl[i].rcv_becn = 0x700 + i;
	}
	p->count[FAB_RCV_FECN] = 0x801;
	p->count[FAB_RCV_BECN] = 0x802;
	p->count[FAB_XMIT_TIME_CONG] = 0x803;
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(ask(&b, MAD_GET, 0x1c, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 2 * i, 2), 0x100 + i);
		assert_int_equal(ask(&b, MAD_GET, 0x30, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 2 * i, 2), 0x200 + i);
		assert_int_equal(ask(&b, MAD_GET, 0x35, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 4 * i, 4),
				 i < 15 ? 0x30000 + i : 0);
		assert_int_equal(ask(&b, MAD_GET, 0x36, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 4 * i, 4), 0x40000 + i);
		assert_int_equal(ask(&b, MAD_GET, 0x37, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 4 * i, 4), 0x50000 + i);
		assert_int_equal(ask(&b, MAD_GET, 0x32, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 4 * i, 4), 0x600 + i);
		assert_int_equal(ask(&b, MAD_GET, 0x33, 2, 0), MAD_OK);
		assert_int_equal(field(&b, 4 + 4 * i, 4), 0x700 + i);
	}
	assert_int_equal(ask(&b, MAD_GET, 0x31, 2, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 8), 0x80100000802);
	assert_int_equal(ask(&b, MAD_GET, 0x34, 2, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 4), 0x803);
	/* Reset the counters of service levels 0 and 15 in attribute 0x36. */
	assert_int_equal(ask(&b, MAD_SET, 0x36, 2, 0x8001), MAD_OK);
	assert_int_equal(field(&b, 4, 4), 0);
	assert_int_equal(field(&b, 8, 4), 0x40001);
	assert_int_equal(field(&b, 4 + 4 * 15, 4), 0);
	assert_int_equal(ask(&b, MAD_GET, 0x37, 2, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 4), 0x50000);
	/* Attributes that no port counts, or only a switch's ports. */
	for (unsigned attr = 0x17; attr <= 0x1f; attr++)
		assert_int_equal(ask(&b, MAD_GET, attr, 2, 0),
				 attr == 0x18 || attr == 0x1c || attr == 0x1d
					 ? MAD_OK
					 : MAD_BAD_ATTRIBUTE);
	finish(&b);
	start(&b, FAB_CA, 1);
	assert_int_equal(ask(&b, MAD_GET, 0x30, 1, 0), MAD_BAD_ATTRIBUTE);
	finish(&b);
}

/* The errors of PortCountersExtended, with a CounterSelect2 of their own. */
static void pma__errors_of_64_bits(void **state)
{
	struct bench b;

	start(&b, FAB_CA, 1);
	b.node->port[1].count[FAB_SYMBOL_ERRORS] = 1ull << 40;
	b.node->port[1].count[FAB_QP1_DROPPED] = 5;
	assert_int_equal(ask(&b, MAD_GET, 1, 1, 0), MAD_OK);
	assert_int_equal(field(&b, 4, 4) >> 5, 2);
	assert_int_equal(ask(&b, MAD_GET, EXTENDED, 1, 0), MAD_OK);
	assert_int_equal(field(&b, 72, 8), 1ull << 40);
	assert_int_equal(field(&b, 176, 8), 5);
	ask(&b, MAD_GET, EXTENDED, 1, 0);
	b.mad[3] = MAD_SET;
	memset(b.mad + DATA_AT + 72, 0, 120);
	vb_store_be(b.mad + DATA_AT + 4, 1, 4);
	b.mad[4] = b.mad[5] = 0;
	assert_true(vb_pma_hear(b.pma, b.mad, b.now));
	assert_int_equal(field(&b, 72, 8), 0);
	assert_int_equal(field(&b, 176, 8), 5);
	finish(&b);
}

/* Let the timers of the samples run until @until. */
static void pass(struct bench *b, vb_time until)
{
	struct vb_timer *t;

	b->now = until;
	while ((t = vb_timers_pop(&b->timers, until)))
		vb_pma_expire(vb_pma_of(t), until);
}

static unsigned control(struct bench *b, unsigned port, uint32_t begin,
			uint32_t interval, uint16_t first, uint16_t second)
{
	ask(b, MAD_GET, 0x10, port, 0);
	b->mad[3] = MAD_SET;
	vb_store_be(b->mad + DATA_AT + 28, begin, 4);
	vb_store_be(b->mad + DATA_AT + 32, interval, 4);
	vb_store_be(b->mad + DATA_AT + 36, 0x77, 2);
	vb_store_be(b->mad + DATA_AT + 38, first, 2);
	vb_store_be(b->mad + DATA_AT + 40, second, 2);
	b->mad[DATA_AT + 1] = (uint8_t)port;
	assert_true(vb_pma_hear(b->pma, b->mad, b->now));
	return (unsigned)vb_load_be(b->mad + 4, 2);
}

static unsigned sample_status(struct bench *b)
{
	assert_int_equal(ask(b, MAD_GET, 0x11, 0, 0), MAD_OK);
	assert_int_equal(field(b, 0, 2), 0x77);
	return (unsigned)field(b, 3, 1);
}

/* Sample PortXmitDataVL[3] and PortRcvPkts for 8 us, beginning in 4 us. */
static void pma__sample(void **state)
{
	struct bench b;
	struct vb_fab_port *p;

	start(&b, FAB_SWITCH, 4);
	p = &b.node->port[2];
	p->vl[3].xmit_words = 1000;
	assert_int_equal(control(&b, 2, 1000, 2000, 0x4301, 0x0004), MAD_OK);
	assert_int_equal(field(&b, 3, 1), 4);
	assert_int_equal(field(&b, 4, 4), 033333333333);
	assert_int_equal(field(&b, 12, 8), 0x01ff0000008cfffc);
	assert_int_equal(sample_status(&b), 1);
	/* before the sampling interval, so not counted */
	p->vl[3].xmit_words += 10;
	pass(&b, b.now + 4 * VB_USEC);
	assert_int_equal(sample_status(&b), 2);
	assert_int_equal(field(&b, 4, 4), 0);
	p->vl[3].xmit_words += 500;
	p->count[FAB_RCV_PKTS] += 7;
	/* A Set of PortSamplesControl during the sampling changes nothing. */
	assert_int_equal(control(&b, 3, 5, 5, 1, 1), MAD_OK);
	assert_int_equal(field(&b, 28, 4), 1000);
	pass(&b, b.now + 8 * VB_USEC);
	/* after the sampling interval, so not counted */
	p->vl[3].xmit_words += 90;
	assert_int_equal(sample_status(&b), 0);
	assert_int_equal(field(&b, 4, 4), 500);
	assert_int_equal(field(&b, 8, 4), 7);
	assert_int_equal(field(&b, 12, 4), 0);
	assert_int_equal(control(&b, 2, 0, 1, 0x4013, 0), MAD_BAD_FIELD);
	assert_int_equal(control(&b, 5, 0, 1, 1, 0), MAD_BAD_FIELD);
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
		cmocka_unit_test(pma__lanes_and_service_levels),
		cmocka_unit_test(pma__errors_of_64_bits),
		cmocka_unit_test(pma__sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
