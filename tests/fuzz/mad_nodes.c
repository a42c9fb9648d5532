/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the agents of an adapter and a switch with MADs in any order, while
 * programs send and time passes: each frame causes a bounded number of others,
 * and at the end no object is left. Input: in pieces, a byte of what to do, and
 * up to 256 bytes of a MAD.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "mgmt/nodes.h"
#include "wire/mad_frame.h"
#include "wire/smp.h"

static struct vb_mgmt *m;
/* the nodes that get the fuzzer's MADs: an adapter and a switch */
static struct vb_fab_node *nodes[2];
static unsigned sent, client;

static int count_frame(void *arg, struct vb_fab_node *node, uint8_t port,
		       const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_mad_frame f;
	const uint8_t *mad;

	MUST(vb_mad_frame_get(bytes, len, &f, &mad) == MAD_FRAME_GOOD);
	MUST(port <= node->ports);
	sent++;
	return 0;
}

static int accept_state(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_state state, vb_time now)
{
	MUST(port >= 1 && port <= node->ports);
	return 0;
}

static int accept_phys(void *arg, struct vb_fab_node *node, uint8_t port,
		       enum vb_fab_phys phys, vb_time now)
{
	MUST(port >= 1 && port <= node->ports);
	return 0;
}

static vb_time passed(void *arg, struct vb_fab_node *node, uint8_t port,
		      vb_time now)
{
	MUST(port >= 1 && port <= node->ports);
	return now + VB_USEC;
}

static void take(void *arg, void *who, const struct vb_mad_delivery *d)
{
	uint8_t sum = 0;

	MUST(who == &client);
	/* Read all bytes of the MAD, so that a sanitizer checks the buffer. */
	for (size_t i = 0; i < d->len; i++)
		sum ^= d->bytes[i];
	client += sum;
}

static struct vb_fab_node *add(uint8_t kind, uint8_t ports, uint16_t lid)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = 0x100u * kind };
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	MUST(n && vb_mgmt_add(m, n) == 0);
	n->port[kind == FAB_SWITCH ? 0 : 1].lid = lid;
	n->port[kind == FAB_SWITCH ? 0 : 1].sm_lid = 1;
	return n;
}

static void register_agents(void)
{
	static const struct vb_agent_wish wishes[] = {
		{ MAD_CLASS_SMP, 1, 0, 0, { 0xa6, 0 } },
		{ MAD_CLASS_SMP_DIRECTED, 1, 0, 0, { 0xa6, 0 } },
		{ MAD_CLASS_SA, 2, 1, 0, { 0x340006, 0 } },
		{ 0x33, 1, 1, 0x001405, { 2, 0 } },
	};

	for (unsigned i = 0; i < VB_COUNT(wishes); i++)
		MUST(vb_agents_register(vb_mgmt_agents(m, nodes[0], 1), &client,
					&wishes[i]) == (int)i);
}

/* Make the adapter an I/O unit with two controllers, one of which has
 * services. */
static void make_target(void)
{
	struct vb_iou_unit u = { .controllers = 2, .entries = 6 };

	for (unsigned i = 0; i < u.entries; i++) {
		u.entry[i].slot = 2;
		u.entry[i].service.name[0] = 'n';
		u.entry[i].service.id = i;
	}
	MUST(vb_mgmt_set_unit(m, nodes[0], &u, VB_SEC) == 0);
}

static void hear(unsigned what, const uint8_t *mad, vb_time now)
{
	struct vb_fab_node *n = nodes[what & 1];
	const struct vb_mad_frame f = {
		.vl = what & 2 ? 15 : 0,
		.slid = what & 4 ? VB_LID_PERMISSIVE : 7,
		.dlid = n->port[n->kind == FAB_SWITCH ? 0 : 1].lid,
		.pkey = 0xffff,
		.sqpn = what & 2 ? 0 : 1,
		.dqpn = what & 2 ? 0 : 1,
		.qkey = VB_GSI_QKEY,
	};
	uint8_t bytes[VB_MAD_FRAME_MAX];
	size_t len = vb_mad_frame_put(bytes, &f, mad);
	uint8_t port = n->kind == FAB_CA || what & 2 ? 1 : 0;

	MUST(vb_mgmt_hear(m, n, port, bytes, len, now));
}

static void say(unsigned what, const uint8_t *mad, size_t len, vb_time now)
{
	const struct vb_mad_send s = {
		.agent = what & 3,
		.to = { .lid = what & 4 ? 5 : 7,
			.qpn = 1,
			.qkey = VB_GSI_QKEY },
		.timeout_ms = what & 8 ? 100 : 0,
		.retries = 1,
		.bytes = mad,
		.len = len,
	};

	(void)!vb_agents_send(vb_mgmt_agents(m, nodes[0], 1), &client, &s, now);
}

/* Let time pass until no trap, request, sample or change of a link is under way
 * any more. */
static void settle(vb_time now)
{
	unsigned steps = 0;

	for (; vb_mgmt_next(m) != VB_NEVER; steps++) {
		MUST(steps < 100000);
		now = VB_MAX(now, vb_mgmt_next(m));
		vb_mgmt_run(m, now);
	}
}

/* Check the port's attributes, on whose ranges the data plane relies, whatever
 * a subnet manager has written to them. */
static void check_port(const struct vb_fab_node *n, const struct vb_fab_port *p)
{
	MUST(p->lid < VB_FAB_LIDS && p->sm_lid < VB_FAB_LIDS);
	MUST(p->lmc <= 7 && p->mkey_protect <= 3);
	MUST(p->mtu <= p->mtu_cap && p->oper_vls <= p->vl_cap);
	MUST((p->width_enabled & ~p->width_supported) == 0);
	MUST((p->speed_enabled & ~p->speed_supported) == 0);
	MUST((p->speed_ext_enabled & ~p->speed_ext_supported) == 0);
	MUST(p->guids[0] == p->guid);
	for (unsigned i = 0; i < VB_FAB_VLARB_MAX; i++)
		MUST(p->arb_low[i].vl < 15 && p->arb_high[i].vl < 15);
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl++)
		MUST(p->sl2vl[sl] <= 15);
	MUST(p->marking.threshold < 2048);
	MUST(!p->cc || p->cc->limit < VB_FAB_CCT);
	MUST(p->cc || n->kind != FAB_CA);
}

static void check_ports(const struct vb_fab_node *n)
{
	const struct vb_fab_switch *sw = &n->sw;

	for (unsigned i = n->kind == FAB_SWITCH ? 0 : 1; i <= n->ports; i++)
		check_port(n, &n->port[i]);
	MUST(sw->linear_top < VB_FAB_LIDS);
	MUST(!sw->linear_cap || sw->linear_top <= sw->linear_cap);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct vb_mgmt_ops ops = { .send = count_frame,
					 .set_state = accept_state,
					 .set_phys = accept_phys,
					 .through = passed,
					 .deliver = take };
	vb_time now = VB_SEC;

	m = vb_mgmt_create(&ops);
	MUST(m);
	nodes[0] = add(FAB_CA, 1, 5);
	nodes[1] = add(FAB_SWITCH, 4, 9);
	register_agents();
	make_target();
	while (len > 0) {
		uint8_t mad[VB_MAD_BYTES] = { 0 };
		unsigned what = *bytes++;
		size_t part;

		len--;
		part = VB_MIN(len, sizeof(mad));
		memcpy(mad, bytes, part);
		bytes += part;
		len -= part;
		sent = 0;
		if (what & 16)
			say(what, mad, sizeof(mad), now);
		else
			hear(what, mad, now);
		MUST(sent < 100);
		now += what & 32 ? 50 * VB_MSEC : 0;
		vb_mgmt_run(m, now);
	}
	settle(now);
	check_ports(nodes[0]);
	check_ports(nodes[1]);
	vb_mgmt_destroy(m);
	vb_fab_node_destroy(nodes[0]);
	vb_fab_node_destroy(nodes[1]);
	return 0;
}
