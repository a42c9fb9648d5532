/* SPDX-License-Identifier: BSD-2-Clause */
/* The management of two nodes, joined by a wire that the test simulates: an
 * adapter's port 1 and a switch's port 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>

#include "mgmt/nodes.h"

#define MOST 64

struct frame {
	struct vb_fab_node *to;
	uint8_t port;
	size_t len;
	uint8_t bytes[VB_MAD_FRAME_MAX];
};

static struct world {
	struct vb_mgmt *m;
	struct vb_fab_node *ca, *sw;
	struct frame queue[MOST];
	unsigned first, count;
	/* headers of the last frame that the nodes sent */
	struct vb_mad_frame last;
	uint8_t last_mad[VB_MAD_BYTES];
	unsigned sent, delivered;
	uint8_t got[VB_MAD_BYTES];
	uint32_t status;
	unsigned state, phys;
	vb_time moved;
	/* true: the network has no room for frames of data VLs */
	bool full;
	vb_time passes; /* virtual time that a frame takes to pass the link */
	vb_time now;
} w;

static int send_frame(void *arg, struct vb_fab_node *node, uint8_t port,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	struct frame *f = &w.queue[(w.first + w.count) % MOST];
	const uint8_t *mad;

	assert_int_equal(vb_mad_frame_get(bytes, len, &w.last, &mad),
			 MAD_FRAME_GOOD);
	if (w.full && w.last.vl != 15)
		return -EAGAIN;
	memcpy(w.last_mad, mad, VB_MAD_BYTES);
	w.sent++;
	f->to = node == w.ca ? w.sw : w.ca;
	/* A switch receives GMPs at port 0, and SMPs where they come in. */
	f->port = node == w.ca ? (w.last.dqpn ? 0 : 3) : 1;
	f->len = len;
	memcpy(f->bytes, bytes, len);
	w.count++;
	return 0;
}

static int set_state(void *arg, struct vb_fab_node *node, uint8_t port,
		     enum vb_fab_state to, vb_time now)
{
	w.state = to;
	w.moved = now;
	return 0;
}

static int set_phys(void *arg, struct vb_fab_node *node, uint8_t port,
		    enum vb_fab_phys to, vb_time now)
{
	w.phys = to;
	w.moved = now;
	return 0;
}

static vb_time through(void *arg, struct vb_fab_node *node, uint8_t port,
		       vb_time now)
{
	return now + w.passes;
}

static void deliver(void *arg, void *client, const struct vb_mad_delivery *d)
{
	w.delivered++;
	w.status = d->status;
	memcpy(w.got, d->bytes, VB_MIN(d->len, sizeof(w.got)));
}

static struct vb_fab_node *add(uint8_t kind, uint8_t ports, uint64_t guid)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = guid };
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	assert_int_equal(vb_mgmt_add(w.m, n), 0);
	return n;
}

static int start(void **state)
{
	const struct vb_mgmt_ops ops = { .send = send_frame,
					 .set_state = set_state,
					 .set_phys = set_phys,
					 .through = through,
					 .deliver = deliver };

	memset(&w, 0, sizeof(w));
	w.m = vb_mgmt_create(&ops);
	w.ca = add(FAB_CA, 2, 0x100);
	w.sw = add(FAB_SWITCH, 8, 0x200);
	w.ca->port[1].lid = 5;
	w.sw->port[0].lid = 9;
	return 0;
}

static int finish(void **state)
{
	vb_mgmt_destroy(w.m);
	vb_fab_node_destroy(w.ca);
	vb_fab_node_destroy(w.sw);
	return 0;
}

/* Deliver frames and let timers expire, until nothing more happens. */
static void run(vb_time until)
{
	for (;;) {
		if (w.count > 0) {
			struct frame f = w.queue[w.first];

			w.first = (w.first + 1) % MOST;
			w.count--;
			assert_true(vb_mgmt_hear(w.m, f.to, f.port, f.bytes,
						 f.len, w.now));
		} else if (vb_mgmt_next(w.m) <= until) {
			w.now = VB_MAX(w.now, vb_mgmt_next(w.m));
			vb_mgmt_run(w.m, w.now);
		} else {
			break;
		}
	}
}

static uint32_t register_at(struct vb_fab_node *node, uint8_t port,
			    uint8_t class, uint64_t methods)
{
	const struct vb_agent_wish wish = { .class = class,
					    .class_version = 1,
					    .methods = { methods } };
	int id = vb_agents_register(vb_mgmt_agents(w.m, node, port), &w, &wish);

	assert_true(id >= 0);
	return (uint32_t)id;
}

/* The adapter's program sends a request with a time-out of 100 ms. */
static void ask(uint32_t agent, uint16_t lid, const uint8_t *mad)
{
	const struct vb_mad_send s = {
		.agent = agent,
		.to = { .lid = lid,
			.qpn = mad[1] & 0x7e ? 1 : 0,
			.qkey = VB_GSI_QKEY },
		.timeout_ms = 100,
		.bytes = mad,
		.len = VB_MAD_BYTES,
	};

	assert_int_equal(
		vb_agents_send(vb_mgmt_agents(w.m, w.ca, 1), &w, &s, w.now), 0);
	run(w.now + VB_SEC);
}

static void smp(uint8_t mad[VB_MAD_BYTES], uint8_t class, unsigned method,
		unsigned attr)
{
	const struct vb_smp_hdr h = {
		.base_version = 1,
		.class = class,
		.class_version = 1,
		.method = (uint8_t)method,
		.tid = 7,
		.attr_id = (uint16_t)attr,
		.dr_slid = VB_LID_PERMISSIVE,
		.dr_dlid = VB_LID_PERMISSIVE,
	};

	memset(mad, 0, VB_MAD_BYTES);
	vb_smp_hdr_put(mad, &h);
}

static unsigned status_of(const uint8_t *mad)
{
	return (unsigned)vb_load_be(mad + 4, 2) & 0x7fff;
}

static void nodes__smp_by_each_kind_of_route(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct vb_node_info i;
	uint32_t directed = register_at(w.ca, 1, MAD_CLASS_SMP_DIRECTED, 0);
	uint32_t by_lid = register_at(w.ca, 1, MAD_CLASS_SMP, 0);

	smp(mad, MAD_CLASS_SMP_DIRECTED, MAD_GET, SMP_NODE_INFO);
	mad[7] = 1; /* hop count 1: a directed route of one hop */
	mad[VB_SMP_INITIAL_PATH_AT + 1] = 1;
	ask(directed, VB_LID_PERMISSIVE, mad);
	assert_int_equal(w.delivered, 1);
	assert_int_equal(w.status, 0);
	vb_node_info_get(w.got + VB_SMP_DATA_AT, &i);
	assert_int_equal(i.node_guid, 0x200);
	assert_int_equal(i.local_port, 3);
	mad[7] = 0; /* hop count 0: a directed route to the sender itself */
	ask(directed, VB_LID_PERMISSIVE, mad);
	vb_node_info_get(w.got + VB_SMP_DATA_AT, &i);
	assert_int_equal(w.delivered, 2);
	assert_int_equal(i.node_guid, 0x100);
	smp(mad, MAD_CLASS_SMP, MAD_GET, SMP_NODE_INFO);
	ask(by_lid, 9, mad); /* a request by the switch's LID 9 */
	vb_node_info_get(w.got + VB_SMP_DATA_AT, &i);
	assert_int_equal(w.delivered, 3);
	assert_int_equal(i.node_guid, 0x200);
	ask(by_lid, 5, mad); /* a request to the adapter's own LID 5 */
	vb_node_info_get(w.got + VB_SMP_DATA_AT, &i);
	assert_int_equal(w.delivered, 4);
	assert_int_equal(i.node_guid, 0x100);
	/* Requests of a node to itself sent no frame. */
	assert_int_equal(w.sent, 4);
}

static void nodes__nobody_there_is_said(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	uint32_t dm = register_at(w.ca, 1, MAD_CLASS_DEVICE, 0);
	uint32_t sm = register_at(w.ca, 1, MAD_CLASS_SMP, 0);
	uint32_t cm = register_at(w.ca, 1, VB_MAD_CLASS_CM, 0);

	smp(mad, MAD_CLASS_DEVICE, MAD_GET, 0x11);
	ask(dm, 9, mad);
	assert_int_equal(w.status, 0);
	assert_int_equal(w.got[3], MAD_GET_RESP);
	assert_int_equal(status_of(w.got), MAD_BAD_ATTRIBUTE);
	smp(mad, MAD_CLASS_SMP, MAD_GET, SMP_SM_INFO);
	ask(sm, 9, mad);
	assert_int_equal(w.status, 0);
	assert_int_equal(status_of(w.got), MAD_BAD_ATTRIBUTE);
	/* The request's method Send asks for no answer, so none comes. */
	smp(mad, VB_MAD_CLASS_CM, MAD_SEND, 0x10);
	ask(cm, 9, mad);
	assert_int_equal(w.status, VB_AGENT_TIMEOUT);
}

static void nodes__performance_agent(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_PERF, 0);

	w.sw->port[3].count[FAB_RCV_PKTS] = 77;
	smp(mad, MAD_CLASS_PERF, MAD_GET, 0x12);
	mad[64 + 1] = 3;
	ask(agent, 9, mad);
	assert_int_equal(status_of(w.got), MAD_OK);
	assert_int_equal(vb_load_be(w.got + 64 + 36, 4), 77);
	assert_int_equal(w.last.sqpn, 1);
	assert_int_equal(w.last.qkey, VB_GSI_QKEY);
}

/* The agent for congestion control, its trap, and a sample's timer. */
static void nodes__congestion_control(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	const struct vb_agent_wish wish = { .class = MAD_CLASS_CC,
					    .class_version = 2 };
	uint32_t agent = (uint32_t)vb_agents_register(
		vb_mgmt_agents(w.m, w.ca, 1), &w, &wish);

	smp(mad, MAD_CLASS_CC, MAD_SET, 0x14);
	mad[2] = 2;
	memset(mad + 24, 0,
	       /* the CC_Key is at bytes 24 to 31, where SMPs have the M_Key */
	       8 + 4);
	mad[64 + 3] = 4;
	mad[64 + 68] = 0xf0;
	ask(agent, 9, mad);
	assert_int_equal(w.status, 0);
	assert_int_equal(status_of(w.got), MAD_OK);
	assert_int_equal(w.sw->port[3].marking.threshold, 128);
	smp(mad, MAD_CLASS_CC, MAD_SET, 0x12);
	mad[2] = 2;
	memset(mad + 24, 0, 8 + 4);
	mad[64 + 7] = 1; /* the new CC_Key is 1 */
	ask(agent, 9, mad);
	assert_int_equal(status_of(w.got), MAD_OK);
	/* Set ClassPortInfo, which says to which LID traps go */
	smp(mad, MAD_CLASS_CC, MAD_SET, 1);
	mad[2] = 2;
	memset(mad + 24, 0, 8 + 4);
	mad[24 + 7] = 1;
	mad[64 + 61] = 5;
	mad[64 + 62] = mad[64 + 63] = 0xff;
	ask(agent, 9, mad);
	assert_int_equal(status_of(w.got), MAD_OK);
	mad[24 + 7] = 2;
	ask(agent, 9, mad);
	assert_int_equal(w.status, VB_AGENT_TIMEOUT);
	assert_int_equal(w.last_mad[1], MAD_CLASS_CC);
	assert_int_equal(w.last_mad[3], MAD_TRAP);
	assert_int_equal(w.last.dlid, 5);
	assert_int_equal(w.last.slid, 9);
	assert_int_equal(w.last.dqpn, 1);
}

/* An adapter becomes a target, and stops being one. Both change its agent, the
 * capability mask of both ports, and send a trap. */
static void nodes__target(void **state)
{
	const struct vb_iou_unit two = { .controllers = 2 }, none = { 0 };
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.sw, 0, MAD_CLASS_DEVICE, 0);
	const struct vb_mad_send s = {
		.agent = agent,
		.to = { .lid = 5, .qpn = 1, .qkey = VB_GSI_QKEY },
		.timeout_ms = 100,
		.bytes = mad,
		.len = VB_MAD_BYTES,
	};
	struct vb_agents *asks = vb_mgmt_agents(w.m, w.sw, 0);

	assert_int_equal(vb_mgmt_set_unit(w.m, w.sw, &two, w.now), -EINVAL);
	assert_int_equal(vb_mgmt_set_unit(w.m, w.ca, &none, w.now), 0);
	w.ca->port[1].sm_lid = 9;
	assert_int_equal(vb_mgmt_set_unit(w.m, w.ca, &two, w.now), 0);
	assert_int_equal(w.sent, 1);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_CAPABILITIES);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 16, 4), VB_CAP_DEVICE);
	assert_int_equal(w.ca->port[1].cap_mask, VB_CAP_DEVICE);
	assert_int_equal(w.ca->port[2].cap_mask, VB_CAP_DEVICE);
	smp(mad, MAD_CLASS_DEVICE, MAD_GET, IOU_UNIT_INFO);
	assert_int_equal(vb_agents_send(asks, &w, &s, w.now), 0);
	run(w.now + VB_SEC);
	assert_int_equal(w.status, 0);
	assert_int_equal(status_of(w.got), MAD_OK);
	assert_int_equal(vb_load_be(w.got + 64, 5), 0x0001100011);
	assert_int_equal(vb_mgmt_set_unit(w.m, w.ca, &none, w.now), 0);
	assert_int_equal(w.ca->port[1].cap_mask, 0);
	assert_int_equal(w.ca->port[2].cap_mask, 0);
	assert_int_equal(vb_agents_send(asks, &w, &s, w.now), 0);
	run(w.now + VB_SEC);
	assert_int_equal(status_of(w.got), MAD_BAD_ATTRIBUTE);
}

/* A program can register at a target for some methods of the agent's class. It
 * then gets these requests instead of the agent, until it ends. */
static void nodes__target_of_a_program(void **state)
{
	const struct vb_iou_unit one = { .controllers = 1 };
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_PERF, 0);
	uint32_t program;

	assert_int_equal(vb_mgmt_set_unit(w.m, w.ca, &one, w.now), 0);
	program = register_at(w.ca, 1, MAD_CLASS_DEVICE, 1u << MAD_GET);
	smp(mad, MAD_CLASS_DEVICE, MAD_GET, IOU_UNIT_INFO);
	ask(agent, 5, mad);
	/* the program got the request and did not answer */
	assert_int_equal(w.delivered, 2);
	assert_int_equal(w.status, VB_AGENT_TIMEOUT);
	mad[3] = MAD_SET;
	ask(agent, 5, mad);
	assert_int_equal(w.status, 0);
	assert_int_equal(status_of(w.got), MAD_BAD_ATTRIBUTE);
	assert_int_equal(
		vb_agents_unregister(vb_mgmt_agents(w.m, w.ca, 1), &w, program),
		0);
	mad[3] = MAD_GET;
	ask(agent, 5, mad);
	assert_int_equal(w.status, 0);
	assert_int_equal(status_of(w.got), MAD_OK);
}

static void nodes__keys_of_queue_pair_1(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_PERF, 0);

	w.sw->port[0].sm_lid = 5;
	/* two limited members of a partition do not match */
	w.sw->port[0].pkey[0] = 0x7fff;
	w.ca->port[1].pkey[0] = 0x7fff;
	smp(mad, MAD_CLASS_PERF, MAD_GET, 0x12);
	ask(agent, 9, mad);
	assert_int_equal(w.status, VB_AGENT_TIMEOUT);
	assert_int_equal(w.sw->port[0].pkey_violations, 1);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_BAD_PKEY);
	w.sw->port[0].pkey[0] = 0xffff;
	ask(agent, 9, mad);
	assert_int_equal(w.status, 0);
}

/* Errors of links, at a switch and an adapter, and a P_Key that a switch has
 * dropped: each is a trap to the subnet manager. */
static void nodes__errors_are_told(void **state)
{
	const uint8_t frame[] = { 0, 2, 0, 5, 0, 1, 0, 7 }; /* LID 7 to 5 */

	w.sw->port[0].sm_lid = 5;
	w.ca->port[1].sm_lid = 9;
	for (unsigned n = TRAP_INTEGRITY; n <= TRAP_WATCHDOG; n++) {
		vb_mgmt_link_error(w.m, w.sw, 3, (enum vb_trap_number)n, w.now);
		assert_int_equal(w.last_mad[3], MAD_TRAP);
		assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), n);
		assert_int_equal(w.last.slid, 9);
		assert_int_equal(w.last.dlid, 5);
		vb_mgmt_link_error(w.m, w.ca, 1, (enum vb_trap_number)n, w.now);
		assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), n);
		assert_int_equal(w.last.slid, 5);
		assert_int_equal(w.last.dlid, 9);
	}
	vb_mgmt_pkey_violated(w.m, w.sw, 3, frame, sizeof(frame), w.now);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_SWITCH_PKEY);
	assert_int_equal(w.last.slid, 9);
	assert_int_equal(w.sent, 7);
}

static void nodes__trap_until_it_is_repressed(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	struct vb_smp_hdr h;

	w.sw->port[3].state = FAB_DOWN;
	vb_mgmt_state_changed(w.m, w.sw, 3, 0);
	/* Without a subnet manager's LID the switch sends no trap. */
	assert_int_equal(w.sent, 0);
	w.sw->port[0].sm_lid = 5;
	vb_mgmt_state_changed(w.m, w.sw, 3, 0);
	assert_int_equal(w.sent, 1);
	assert_int_equal(w.last.dlid, 5);
	assert_int_equal(w.last.slid, 9);
	assert_int_equal(w.last.vl, 15);
	assert_int_equal(w.last_mad[3], MAD_TRAP);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_LINK_STATE);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 10, 2), 9);
	run(VB_SEC);
	/* 9 to 12 traps: one each 100 ms until the manager answers */
	assert_in_range(w.sent, 9, 12);
	smp(mad, MAD_CLASS_SMP, MAD_TRAP_REPRESS, SMP_NOTICE);
	vb_smp_hdr_get(w.last_mad, &h);
	vb_store_be(mad + 8, h.tid, 8);
	ask(register_at(w.ca, 1, MAD_CLASS_SMP, 0), 9, mad);
	w.sent = 0;
	run(w.now + 10 * VB_SEC);
	assert_int_equal(w.sent, 0);
	/* A change that the subnet manager makes itself causes no trap. */
	w.sw->port[3].state = FAB_ACTIVE;
	vb_mgmt_state_changed(w.m, w.sw, 3, w.now);
	assert_int_equal(w.sent, 0);
}

static void nodes__capabilities_are_told(void **state)
{
	w.ca->port[1].sm_lid = 9;
	vb_mgmt_set_caps(w.m, w.ca, 1, VB_CAP_SM, true, 0);
	assert_int_equal(w.sent, 1);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_CAPABILITIES);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 16, 4), VB_CAP_SM);
	vb_mgmt_set_caps(w.m, w.ca, 1, VB_CAP_SM, true, 0);
	assert_int_equal(w.sent, 1);
}

static void nodes__bad_mkey_is_a_trap_and_silence(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_SMP, 0);

	w.sw->port[0].sm_lid = 5;
	w.sw->port[0].mkey = 1;
	w.sw->port[0].mkey_protect = 2;
	smp(mad, MAD_CLASS_SMP, MAD_GET, SMP_NODE_INFO);
	ask(agent, 9, mad);
	assert_int_equal(w.status, VB_AGENT_TIMEOUT);
	assert_int_equal(vb_load_be(w.last_mad + 64 + 4, 2), TRAP_BAD_MKEY);
	assert_int_equal(w.last_mad[64 + 16], MAD_GET);
}

/* A link that a Set takes down transports the answer first, however long that
 * takes. */
static void nodes__answer_passes_before_the_link_goes_down(void **state)
{
	static const vb_time passes[] = { 0, VB_USEC, 3 * VB_MSEC };
	const struct vb_port_info p = { .state = FAB_DOWN };
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_SMP, 0);

	for (unsigned i = 0; i < VB_COUNT(passes); i++) {
		w.passes = passes[i];
		w.sw->port[3].state = FAB_ACTIVE;
		smp(mad, MAD_CLASS_SMP, MAD_SET, SMP_PORT_INFO);
		mad[23] = 3;
		vb_port_info_put(mad + VB_SMP_DATA_AT, &p);
		w.now = (i + 1) * VB_SEC;
		w.state = 0;
		ask(agent, 9, mad);
		assert_int_equal(w.status, 0);
		assert_int_equal(status_of(w.got), MAD_OK);
		assert_int_equal(w.state, FAB_DOWN);
		assert_int_equal(w.moved, (i + 1) * VB_SEC + passes[i]);
	}
}

/* Frames wait in order while the network has no room for them. */
static void nodes__gmps_wait_for_room(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	uint32_t agent = register_at(w.ca, 1, MAD_CLASS_PERF, 0);

	smp(mad, MAD_CLASS_PERF, MAD_GET, 0x12);
	mad[65] = 3;
	w.full = true;
	for (unsigned i = 0; i < 4; i++) {
		const struct vb_mad_send s = {
			.agent = agent,
			.to = { .lid = 9, .qpn = 1, .qkey = VB_GSI_QKEY },
			.bytes = mad,
			.len = VB_MAD_BYTES,
		};

		mad[200] = (uint8_t)i;
		/* only the last frame finds room, and must wait */
		w.full = i < 3;
		assert_int_equal(
			vb_agents_send(vb_mgmt_agents(w.m, w.ca, 1), &w, &s, 0),
			0);
	}
	assert_int_equal(w.sent, 0);
	vb_mgmt_room(w.m, w.ca, 1, 0);
	assert_int_equal(w.sent, 4);
	assert_int_equal(w.last_mad[200], 3);
}

/* Frames of a switch wait at port 0, while the event of room names the port by
 * which they leave. */
static void nodes__gmps_of_a_switch_wait_for_room(void **state)
{
	uint8_t mad[VB_MAD_BYTES];
	const struct vb_mad_send s = {
		.agent = register_at(w.sw, 0, MAD_CLASS_PERF, 0),
		.to = { .lid = 5, .qpn = 1, .qkey = VB_GSI_QKEY },
		.bytes = mad,
		.len = VB_MAD_BYTES,
	};

	smp(mad, MAD_CLASS_PERF, MAD_GET, 0x12);
	w.full = true;
	assert_int_equal(
		vb_agents_send(vb_mgmt_agents(w.m, w.sw, 0), &w, &s, 0), 0);
	vb_mgmt_room(w.m, w.sw, 3, 0);
	assert_int_equal(w.sent, 0);
	w.full = false;
	vb_mgmt_room(w.m, w.sw, 3, 0);
	assert_int_equal(w.sent, 1);
	assert_int_equal(w.last.dlid, 5);
}

static void nodes__ports_that_programs_may_have(void **state)
{
	assert_non_null(vb_mgmt_agents(w.m, w.ca, 2));
	assert_null(vb_mgmt_agents(w.m, w.ca, 0));
	assert_null(vb_mgmt_agents(w.m, w.ca, 3));
	assert_non_null(vb_mgmt_agents(w.m, w.sw, 0));
	assert_null(vb_mgmt_agents(w.m, w.sw, 1));
}

/* A node that is removed at once leaves the others as they are. */
static void nodes__one_that_is_removed(void **state)
{
	struct vb_fab_node *n = add(FAB_SWITCH, 4, 0x300);

	assert_non_null(n->mgmt);
	vb_mgmt_remove(w.m, n);
	assert_null(n->mgmt);
	vb_fab_node_destroy(n);
	n = add(FAB_CA, 1, 0x400);
	vb_mgmt_remove(w.m, n);
	vb_fab_node_destroy(n);
	assert_non_null(w.ca->mgmt);
	assert_non_null(vb_mgmt_agents(w.m, w.sw, 0));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nodes__smp_by_each_kind_of_route),
		CASE(nodes__nobody_there_is_said),
		CASE(nodes__performance_agent),
		CASE(nodes__congestion_control),
		CASE(nodes__target),
		CASE(nodes__target_of_a_program),
		CASE(nodes__keys_of_queue_pair_1),
		CASE(nodes__errors_are_told),
		CASE(nodes__trap_until_it_is_repressed),
		CASE(nodes__capabilities_are_told),
		CASE(nodes__bad_mkey_is_a_trap_and_silence),
		CASE(nodes__answer_passes_before_the_link_goes_down),
		CASE(nodes__gmps_wait_for_room),
		CASE(nodes__gmps_of_a_switch_wait_for_room),
		CASE(nodes__ports_that_programs_may_have),
		CASE(nodes__one_that_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
