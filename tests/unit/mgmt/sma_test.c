/* SPDX-License-Identifier: BSD-2-Clause */
/* Directed routes, and the subnet management agent of a switch and an adapter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>

#include "mgmt/sma.h"
#include "mgmt/smi.h"

#define TID 0x1122334455667788

static struct vb_fab_node *make(uint8_t kind, uint8_t ports)
{
	const struct vb_fab_node_spec spec = {
		.kind = kind, .ports = ports, .guid = 0x100, .desc = "node"
	};
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	assert_non_null(n);
	return n;
}

static void directed(uint8_t mad[VB_MAD_BYTES], unsigned count,
		     const uint8_t *path)
{
	const struct vb_smp_hdr h = {
		.base_version = 1,
		.class = MAD_CLASS_SMP_DIRECTED,
		.class_version = 1,
		.method = MAD_GET,
		.hop_count = (uint8_t)count,
		.tid = TID,
		.attr_id = SMP_NODE_INFO,
		.dr_slid = VB_LID_PERMISSIVE,
		.dr_dlid = VB_LID_PERMISSIVE,
	};

	memset(mad, 0, VB_MAD_BYTES);
	vb_smp_hdr_put(mad, &h);
	for (unsigned i = 1; i <= count; i++)
		mad[VB_SMP_INITIAL_PATH_AT + i] = path[i];
}

static void goes(struct vb_smi_verdict v, enum vb_smi_action action,
		 unsigned port)
{
	assert_int_equal(v.action, action);
	assert_int_equal(v.port, port);
}

/* The SMP goes from an adapter through two switches to another adapter, and
 * back. */
static void smi__out_and_back(void **state)
{
	static const uint8_t path[] = { 0, 1, 5, 3 };
	struct vb_fab_node *ca = make(FAB_CA, 1), *sw = make(FAB_SWITCH, 8);
	uint8_t mad[VB_MAD_BYTES];
	struct vb_smp_hdr h;

	directed(mad, 3, path);
	goes(vb_smi_step(ca, 0, mad), SMI_OUT, 1);
	goes(vb_smi_step(sw, 2, mad), SMI_OUT, 5);
	goes(vb_smi_step(sw, 7, mad), SMI_OUT, 3);
	goes(vb_smi_step(ca, 1, mad), SMI_HERE, 0);
	/* 4: the hop pointer after the SMP has reached its last node */
	assert_int_equal(mad[6], 4);
	assert_int_equal(mad[VB_SMP_RETURN_PATH_AT + 1], 2);
	assert_int_equal(mad[VB_SMP_RETURN_PATH_AT + 2], 7);
	assert_int_equal(mad[VB_SMP_RETURN_PATH_AT + 3], 1);
	vb_smp_hdr_get(mad, &h);
	h.status = VB_SMP_DIRECTION;
	h.method = MAD_GET_RESP;
	vb_smp_hdr_put(mad, &h);
	goes(vb_smi_step(ca, 0, mad), SMI_OUT, 1);
	goes(vb_smi_step(sw, 3, mad), SMI_OUT, 7);
	goes(vb_smi_step(sw, 5, mad), SMI_OUT, 2);
	goes(vb_smi_step(ca, 1, mad), SMI_HERE, 0);
	assert_int_equal(mad[6], 0);
	vb_fab_node_destroy(ca);
	vb_fab_node_destroy(sw);
}

/* A route by LID to the switch, then by one hop; and the answer in the other
 * direction. */
static void smi__combined_route(void **state)
{
	static const uint8_t path[] = { 0, 4 };
	struct vb_fab_node *ca = make(FAB_CA, 1), *sw = make(FAB_SWITCH, 8);
	struct vb_smi_verdict v;
	uint8_t mad[VB_MAD_BYTES];
	struct vb_smp_hdr h;

	directed(mad, 1, path);
	/* DrSLID, the LID at which the directed part of the route begins */
	vb_store_be(mad + 32, 9, 2);
	goes(vb_smi_step(sw, 2, mad), SMI_OUT, 4);
	goes(vb_smi_step(ca, 1, mad), SMI_HERE, 0);
	vb_smp_hdr_get(mad, &h);
	h.status = VB_SMP_DIRECTION;
	vb_smp_hdr_put(mad, &h);
	goes(vb_smi_step(ca, 0, mad), SMI_OUT, 1);
	v = vb_smi_step(sw, 4, mad);
	assert_int_equal(v.action, SMI_ROUTE);
	assert_int_equal(v.dlid, 9);
	vb_fab_node_destroy(ca);
	vb_fab_node_destroy(sw);
}

static void smi__hop_count_0_is_the_node_itself(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 1);
	uint8_t mad[VB_MAD_BYTES];

	directed(mad, 0, NULL);
	goes(vb_smi_step(ca, 0, mad), SMI_HERE, 0);
	mad[4] = 0x80;
	goes(vb_smi_step(ca, 0, mad), SMI_HERE, 0);
	vb_fab_node_destroy(ca);
}

static void smi__refuses(void **state)
{
	static const uint8_t path[] = { 0, 1, 9, 1 };
	struct vb_fab_node *ca = make(FAB_CA, 1), *sw = make(FAB_SWITCH, 8);
	uint8_t mad[VB_MAD_BYTES];

	directed(mad, 3, path);
	/* the route would pass the node, but an adapter lets no SMP pass */
	mad[6] = 1;
	goes(vb_smi_step(ca, 1, mad), SMI_DROP, 0);
	/* Hop 1 names port 9, which the switch does not have. */
	goes(vb_smi_step(sw, 1, mad), SMI_DROP, 0);
	directed(mad, 3, path);
	mad[6] = 5; /* 5: the hop pointer is beyond the path's three hops */
	goes(vb_smi_step(sw, 1, mad), SMI_DROP, 0);
	mad[4] = 0x80;
	goes(vb_smi_step(sw, 1, mad), SMI_DROP, 0);
	directed(mad, 3, path);
	mad[7] = 64; /* 64: more hops than a path can have */
	goes(vb_smi_step(sw, 1, mad), SMI_DROP, 0);
	vb_fab_node_destroy(ca);
	vb_fab_node_destroy(sw);
}

struct asked {
	uint8_t port;
	unsigned state, phys, configured;
	int rc;
};

static int note_state(void *arg, struct vb_fab_node *node, uint8_t port,
		      enum vb_fab_state to, vb_time now)
{
	struct asked *a = arg;

	a->port = port;
	a->state = to;
	return a->rc;
}

static int note_phys(void *arg, struct vb_fab_node *node, uint8_t port,
		     enum vb_fab_phys to, vb_time now)
{
	struct asked *a = arg;

	a->port = port;
	a->phys = to;
	return a->rc;
}

static void note_configured(void *arg, struct vb_fab_node *node, uint8_t port)
{
	struct asked *a = arg;

	a->configured++;
}

struct request {
	struct asked asked;
	uint64_t mkey;
	vb_time now;
	uint8_t in;
	uint8_t mad[VB_MAD_BYTES];
	enum vb_sma_verdict verdict;
};

/* Pass a request to the agent. Returns the status of the answer, whose data is
 * in @q->mad. */
static unsigned ask(struct request *q, struct vb_fab_node *n, unsigned method,
		    unsigned attr, uint32_t mod, const uint8_t *data)
{
	const struct vb_sma_ops ops = { note_state, note_phys, note_configured,
					&q->asked };
	struct vb_smp_hdr h = {
		.base_version = 1,
		.class = MAD_CLASS_SMP,
		.class_version = 1,
		.method = (uint8_t)method,
		.tid = TID,
		.attr_id = (uint16_t)attr,
		.attr_mod = mod,
		.mkey = q->mkey,
	};

	memset(q->mad, 0xee, sizeof(q->mad));
	vb_smp_hdr_put(q->mad, &h);
	if (data)
		memcpy(q->mad + VB_SMP_DATA_AT, data, VB_SMP_DATA_BYTES);
	q->verdict = vb_sma_hear(&ops, n, q->in, q->mad, q->now);
	vb_smp_hdr_get(q->mad, &h);
	if (q->verdict == SMA_ANSWERED) {
		assert_int_equal(h.method, MAD_GET_RESP);
		assert_int_equal(h.tid, TID);
	}
	return h.status;
}

static struct vb_port_info port_info(struct request *q, struct vb_fab_node *n,
				     uint32_t mod)
{
	struct vb_port_info p;

	assert_int_equal(ask(q, n, MAD_GET, SMP_PORT_INFO, mod, NULL), MAD_OK);
	vb_port_info_get(q->mad + VB_SMP_DATA_AT, &p);
	return p;
}

static unsigned set_port_info(struct request *q, struct vb_fab_node *n,
			      uint32_t mod, const struct vb_port_info *p)
{
	uint8_t data[VB_SMP_DATA_BYTES] = { 0 };

	vb_port_info_put(data, p);
	return ask(q, n, MAD_SET, SMP_PORT_INFO, mod, data);
}

static void sma__what_it_does_not_know_is_answered(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 2);
	struct request q = { .in = 1 };

	assert_int_equal(ask(&q, ca, MAD_GET, 0x31, 0, NULL),
			 MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&q, ca, MAD_GET, 0xff90, 0, NULL),
			 MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&q, ca, MAD_GET, SMP_SWITCH_INFO, 0, NULL),
			 MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&q, ca, MAD_SET, SMP_NODE_INFO, 0, NULL),
			 MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(&q, ca, 0x15, SMP_NODE_INFO, 0, NULL),
			 MAD_BAD_METHOD);
	ask(&q, ca, MAD_GET, SMP_SM_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_NOT_MINE);
	ask(&q, ca, MAD_TRAP, SMP_NOTICE, 0, NULL);
	assert_int_equal(q.verdict, SMA_NOT_MINE);
	ask(&q, ca, MAD_GET_RESP, SMP_NODE_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_NOT_MINE);
	vb_fab_node_destroy(ca);
}

static void sma__node_info(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 2), *sw = make(FAB_SWITCH, 8);
	struct request q = { .in = 2 };
	struct vb_node_info i;

	assert_int_equal(ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL), MAD_OK);
	vb_node_info_get(q.mad + VB_SMP_DATA_AT, &i);
	assert_int_equal(i.node_type, NODE_CA);
	assert_int_equal(i.num_ports, 2);
	assert_int_equal(i.node_guid, 0x100);
	assert_int_equal(i.port_guid, 0x102);
	assert_int_equal(i.local_port, 2);
	assert_int_equal(ask(&q, sw, MAD_GET, SMP_NODE_INFO, 0, NULL), MAD_OK);
	vb_node_info_get(q.mad + VB_SMP_DATA_AT, &i);
	assert_int_equal(i.node_type, NODE_SWITCH);
	assert_int_equal(i.port_guid, 0x100);
	assert_int_equal(i.local_port, 2);
	vb_fab_node_destroy(ca);
	vb_fab_node_destroy(sw);
}

static void sma__port_info_set_and_got(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 2);
	struct request q = { .in = 1 };
	struct vb_port_info p = port_info(&q, ca, 0);

	p.lid = 0x40;
	p.lmc = 2;
	p.sm_lid = 7;
	p.sm_sl = 3;
	p.state = 0;
	p.phys_state = 0;
	p.neighbor_mtu = 4;
	p.oper_vls = 3;
	p.width_enabled = 0xff;
	p.speed_enabled = 0;
	p.subnet_timeout = 18;
	p.client_reregister = 1;
	p.gid_prefix = 0xfe80000000000001;
	assert_int_equal(set_port_info(&q, ca, 1, &p), MAD_OK);
	/* The response to the Set has the contents after the change. */
	vb_port_info_get(q.mad + VB_SMP_DATA_AT, &p);
	assert_int_equal(p.lid, 0x40);
	assert_int_equal(p.state, FAB_DOWN);
	assert_int_equal(ca->port[1].lmc, 2);
	assert_int_equal(ca->port[1].mtu, 4);
	assert_int_equal(ca->port[1].oper_vls, 3);
	assert_int_equal(ca->port[1].width_enabled,
			 ca->port[1].width_supported);
	assert_int_equal(ca->port[1].speed_enabled,
			 ca->port[1].speed_supported);
	assert_int_equal(ca->port[1].gid_prefix, 0xfe80000000000001);
	assert_int_equal(q.asked.configured, 1);
	assert_int_equal(q.asked.state, 0);
	/* Bit 31 of the modifier: the manager knows extended link speeds. */
	assert_int_equal(set_port_info(&q, ca, 0x80000001, &p), MAD_OK);
	vb_fab_node_destroy(ca);
}

static void sma__port_info_that_is_wrong_changes_nothing(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 2), *sw = make(FAB_SWITCH, 8);
	struct request q = { .in = 1 };
	const struct vb_port_info none = { 0 };
	struct vb_port_info p;

#define BAD(node, mod, field, value)                                           \
	do {                                                                   \
		p = none;                                                      \
		p.sm_lid = 0x77;                                               \
		p.field = (value);                                             \
		assert_int_equal(set_port_info(&q, node, mod, &p),             \
				 MAD_BAD_FIELD);                               \
		assert_int_equal(                                              \
			(node)->port[vb_sma_own_port(node, 1)].sm_lid, 0);     \
	} while (0)
	BAD(ca, 1, lid, 0xc000);
	BAD(ca, 1, sm_lid, 0xffff);
	BAD(ca, 1, neighbor_mtu, 6);
	BAD(ca, 1, oper_vls, 5);
	BAD(ca, 1, width_enabled, FAB_12X);
	BAD(ca, 1, ext_speed_enabled, FAB_NDR);
	BAD(ca, 1, state, FAB_INIT);
	/* refused: the port is Down, so it cannot become Armed */
	BAD(ca, 1, state, FAB_ARMED);
	BAD(ca, 1, state, FAB_ACTIVE);
	BAD(ca, 1, state, 9);
	BAD(ca, 1, phys_state, FAB_LINK_UP);
	/* refused: an adapter's SMA sets no port but the one it is asked by */
	BAD(ca, 2, local_port, 0);
	BAD(ca, 3, local_port, 0); /* refused: the adapter has no port 3 */
	BAD(sw, 9, local_port, 0);
	p = none;
	p.lid = 0x41;
	p.lmc = 1;
	assert_int_equal(set_port_info(&q, ca, 1, &p), MAD_BAD_FIELD);
	assert_int_equal(q.asked.configured, 0);
	vb_fab_node_destroy(ca);
	vb_fab_node_destroy(sw);
}

static void sma__states_are_asked_of_the_link(void **state)
{
	struct vb_fab_node *sw = make(FAB_SWITCH, 8);
	struct request q = { .in = 1 };
	struct vb_port_info p = { .state = FAB_ARMED };

	sw->port[3].state = FAB_INIT;
	assert_int_equal(set_port_info(&q, sw, 3, &p), MAD_OK);
	assert_int_equal(q.asked.port, 3);
	assert_int_equal(q.asked.state, FAB_ARMED);
	p.state = FAB_DOWN;
	p.phys_state = FAB_DISABLED;
	q.asked.state = 0;
	assert_int_equal(set_port_info(&q, sw, 3, &p), MAD_OK);
	assert_int_equal(q.asked.phys, FAB_DISABLED);
	/* Disabling a port asks for no separate change of the port state. */
	assert_int_equal(q.asked.state, 0);
	q.asked.rc = -EINVAL;
	assert_int_equal(set_port_info(&q, sw, 3, &p), MAD_BAD_FIELD);
	/* Port 0 of a switch has no link, so its state stays. */
	q.asked = (struct asked){ 0 };
	p = (struct vb_port_info){ .state = FAB_ACTIVE, .lid = 5 };
	assert_int_equal(set_port_info(&q, sw, 0, &p), MAD_OK);
	assert_int_equal(q.asked.state, 0);
	assert_int_equal(sw->port[0].lid, 5);
	/* External ports of a switch have no LID of their own. */
	p = port_info(&q, sw, 3);
	assert_int_equal(p.lid, 0);
	vb_fab_node_destroy(sw);
}

static void sma__tables(void **state)
{
	static const struct {
		unsigned attr;
		uint32_t mod, bad;
	} cases[] = {
		{ SMP_PKEY_TABLE, 3 << 16, 3 << 16 | 1 },
		{ SMP_PKEY_TABLE, 0, 9 << 16 },
		{ SMP_SL2VL, 2 << 8 | 8, 9 << 8 },
		{ SMP_LINEAR_TABLE, 767, 768 },
		{ SMP_MULTICAST_TABLE, 31, 32 },
		{ SMP_MULTICAST_TABLE, 3, 1u << 28 },
	};
	struct vb_fab_node *sw = make(FAB_SWITCH, 8);
	struct request q = { .in = 1 };

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		uint8_t data[VB_SMP_DATA_BYTES];

		for (unsigned k = 0; k < sizeof(data); k++)
			data[k] = (uint8_t)(k * 5 + i);
		assert_int_equal(
			ask(&q, sw, MAD_SET, cases[i].attr, cases[i].mod, data),
			MAD_OK);
		assert_int_equal(
			ask(&q, sw, MAD_GET, cases[i].attr, cases[i].mod, NULL),
			MAD_OK);
		assert_memory_equal(q.mad + VB_SMP_DATA_AT, data,
				    cases[i].attr == SMP_SL2VL ? 8 : 64);
		assert_int_equal(
			ask(&q, sw, MAD_GET, cases[i].attr, cases[i].bad, NULL),
			MAD_BAD_FIELD);
		assert_int_equal(
			ask(&q, sw, MAD_SET, cases[i].attr, cases[i].bad, data),
			MAD_BAD_FIELD);
	}
	vb_fab_node_destroy(sw);
}

/* The tables that a Set writes are those that the data plane reads. */
static void sma__tables_are_those_of_the_data_plane(void **state)
{
	uint8_t data[VB_SMP_DATA_BYTES] = { 0 };
	struct vb_fab_node *sw = make(FAB_SWITCH, 40);
	struct request q = { .in = 1 };

	data[5] = 7;
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_LINEAR_TABLE, 2, data),
			 MAD_OK);
	assert_int_equal(sw->sw.linear[2 * 64 + 5], 7);
	memset(data, 0, sizeof(data));
	/* MLID 1 of the block: bits 1 and 4 of its port mask, position 2. */
	data[3] = 0x12;
	assert_int_equal(
		ask(&q, sw, MAD_SET, SMP_MULTICAST_TABLE, 2u << 28 | 1, data),
		MAD_OK);
	assert_int_equal(sw->sw.mcast[33].ports[0], 0x12ull << 32);
	memset(data, 0, sizeof(data));
	data[1] = 0x9a; /* SL 2 is mapped to VL 9, and SL 3 to VL 10 */
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_SL2VL, 3 << 8 | 4, data),
			 MAD_OK);
	assert_int_equal(vb_fab_sl2vl(sw, 3, 4)[2], 9);
	assert_int_equal(vb_fab_sl2vl(sw, 3, 4)[3], 10);
	data[0] = 15;
	data[1] = 99;
	data[2] = 3;
	data[3] = 8;
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_VLARB, 3 << 16 | 6, data),
			 MAD_OK);
	/* The table skips the entry for VL15, which carries no data. */
	assert_int_equal(sw->port[6].arb_high[0].weight, 0);
	assert_int_equal(sw->port[6].arb_high[1].vl, 3);
	assert_int_equal(sw->port[6].arb_high[1].weight, 8);
	assert_int_equal(ask(&q, sw, MAD_GET, SMP_VLARB, 5 << 16 | 6, NULL),
			 MAD_BAD_FIELD);
	assert_int_equal(ask(&q, sw, MAD_GET, SMP_VLARB, 6, NULL),
			 MAD_BAD_FIELD);
	vb_fab_node_destroy(sw);
}

static void sma__port_state_change_is_cleared_by_1(void **state)
{
	uint8_t data[VB_SMP_DATA_BYTES] = { 0 };
	struct vb_fab_node *sw = make(FAB_SWITCH, 8);
	struct vb_switch_info s = { .linear_top = 100, .life_time = 12 };
	struct request q = { .in = 1 };

	sw->sw.state_change = true;
	vb_switch_info_put(data, &s);
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_SWITCH_INFO, 0, data),
			 MAD_OK);
	assert_true(sw->sw.state_change);
	assert_int_equal(sw->sw.linear_top, 100);
	assert_int_equal(sw->sw.life, 12);
	s.port_state_change = 1;
	vb_switch_info_put(data, &s);
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_SWITCH_INFO, 0, data),
			 MAD_OK);
	assert_false(sw->sw.state_change);
	s.linear_top = 0xc000;
	vb_switch_info_put(data, &s);
	assert_int_equal(ask(&q, sw, MAD_SET, SMP_SWITCH_INFO, 0, data),
			 MAD_BAD_FIELD);
	vb_fab_node_destroy(sw);
}

static void sma__mkey(void **state)
{
	struct vb_fab_node *ca = make(FAB_CA, 1);
	struct request q = { .in = 1 };
	struct vb_port_info p = { .mkey = 0x5ec4e7,
				  .mkey_protect = 1,
				  .mkey_lease = 3 };

	assert_int_equal(set_port_info(&q, ca, 1, &p), MAD_OK);
	/* Protection level 1: every node may read, but does not see the key. */
	p = port_info(&q, ca, 1);
	assert_int_equal(p.mkey, 0);
	q.mkey = 0x5ec4e7;
	p = port_info(&q, ca, 1);
	assert_int_equal(p.mkey, 0x5ec4e7);
	q.mkey = 1;
	set_port_info(&q, ca, 1, &p);
	assert_int_equal(q.verdict, SMA_BAD_MKEY);
	assert_int_equal(ca->port[1].mkey_violations, 1);
	/* M_KeyProtectBits 2: without the M_Key a node answers no Get. */
	ca->port[1].mkey_protect = 2;
	ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_BAD_MKEY);
	/* The lease began with the first violation; its end removes the
	 * protection. */
	q.now = 3 * VB_SEC - 1;
	ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_BAD_MKEY);
	q.now = 3 * VB_SEC;
	ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_ANSWERED);
	assert_int_equal(ca->port[1].mkey_protect, 0);
	/* A request with the right M_Key stops the lease timer. */
	ca->port[1].mkey_protect = 2;
	ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL);
	assert_int_equal(q.verdict, SMA_BAD_MKEY);
	q.mkey = 0x5ec4e7;
	ask(&q, ca, MAD_GET, SMP_NODE_INFO, 0, NULL);
	q.mkey = 1;
	q.now = 4 * VB_SEC;
	assert_int_equal(ca->port[1].mkey_lease_end, VB_NEVER);
	vb_fab_node_destroy(ca);
}

/* The agent answers or drops requests of random bytes. */
static void sma__random_requests(void **state)
{
	struct vb_fab_node *nodes[] = { make(FAB_CA, 2), make(FAB_SWITCH, 36),
					make(FAB_ROUTER, 3) };
	struct request q = { .in = 1 };
	uint32_t dice = 1;

	for (unsigned i = 0; i < 60000; i++) {
		uint8_t data[VB_SMP_DATA_BYTES];

		for (unsigned k = 0; k < sizeof(data); k++) {
			dice = dice * 1664525 + 1013904223;
			data[k] = (uint8_t)(dice >> 24);
		}
		ask(&q, nodes[i % 3], 1 + i / 3 % 2, 0x10 + (dice >> 9) % 0x12,
		    dice >> (dice & 31), data);
		for (unsigned n = 0; n < 3; n++)
			for (unsigned p = 0; p <= nodes[n]->ports; p++)
				nodes[n]->port[p].mkey = 0;
	}
	for (unsigned i = 0; i < 3; i++)
		vb_fab_node_destroy(nodes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smi__out_and_back),
		cmocka_unit_test(smi__combined_route),
		cmocka_unit_test(smi__hop_count_0_is_the_node_itself),
		cmocka_unit_test(smi__refuses),
		cmocka_unit_test(sma__what_it_does_not_know_is_answered),
		cmocka_unit_test(sma__node_info),
		cmocka_unit_test(sma__port_info_set_and_got),
		cmocka_unit_test(sma__port_info_that_is_wrong_changes_nothing),
		cmocka_unit_test(sma__states_are_asked_of_the_link),
		cmocka_unit_test(sma__tables),
		cmocka_unit_test(sma__tables_are_those_of_the_data_plane),
		cmocka_unit_test(sma__port_state_change_is_cleared_by_1),
		cmocka_unit_test(sma__mkey),
		cmocka_unit_test(sma__random_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
