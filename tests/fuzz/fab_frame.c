/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes a switch, and a router behind it, with frames. An input is a row of
 * (control, length, bytes): the lowest bit of control makes the VCRC right, the
 * next two choose the port where the bytes arrive, of the switch or of the
 * router, and the highest two what is answered to the router's questions. For
 * any input, frames that are handed out are whole, and buffers are not overrun
 * and are empty at the end.
 */
#include <string.h>

#include "fabric/router.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fab_run.h"
#include "tests/support/fab_star.h"

#define PORTS 3

static enum vb_fab_taken take(void *arg, struct vb_fab_node *node, uint8_t port,
			      const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_lrh h;

	MUST(len >= VB_LRH_BYTES);
	vb_lrh_get(bytes, &h);
	MUST(vb_lrh_check(&h, len, 4096) == LRH_GOOD);
	MUST(port <= node->ports);
	return len % 64 ? FAB_TAKEN : FAB_HELD;
}

/* how the router's next question is answered, an enum vb_fab_answer;
 * PATH_UNANSWERED + 1: not at all */
static unsigned next_answer;
static struct vb_fab_net *net;

static void happens(void *arg, struct vb_fab_node *node, uint8_t port,
		    const struct vb_fab_event_info *i, vb_time now)
{
	const struct vb_fab_path path = { .dlid = 1, .sl = 1, .mtu = 3 };

	if (i->event != FAB_EV_PATH || next_answer > PATH_UNANSWERED)
		return;
	MUST(node->kind == FAB_ROUTER && port >= 1 && port <= node->ports);
	vb_fab_path_is(net, node, i->question, (enum vb_fab_answer)next_answer,
		       &path);
}

static void see(void *arg, struct vb_fab_node *node, uint8_t port,
		enum vb_fab_direction direction, const uint8_t *bytes,
		size_t len, vb_time now)
{
	uint16_t crc;

	if (len <= VB_FC_WIDE_BYTES || direction == FAB_RECEIVED)
		return;
	crc = (uint16_t)(vb_vcrc(bytes, len - 2) ^
			 (bytes[len - 2] | bytes[len - 1] << 8));
	MUST(crc == 0 || crc == 0xffff);
}

/* A switch of LID 9, adapters of LIDs 1 and 2 and a router of LID 3 at its
 * ports, and an adapter of LID 1 behind the router; port 2 enforces
 * partitions. */
static struct vb_fab_node *build(struct vb_fab_node **router)
{
	struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_fab_node *sw = star_add(net, FAB_SWITCH, PORTS), *ca[PORTS];
	struct vb_fab_node *behind = star_add(net, FAB_CA, 1);

	for (uint8_t i = 0; i < PORTS; i++) {
		ca[i] = i < PORTS - 1 ? star_add(net, FAB_CA, 1)
				      : star_add(net, FAB_ROUTER, 2);
		MUST(!vb_fab_link(net, sw, i + 1, ca[i], 1, &link, 0));
		sw->sw.linear[i + 1] = i + 1;
		vb_fab_watch(sw, i + 1, true);
	}
	*router = ca[PORTS - 1];
	MUST(!vb_fab_link(net, *router, 2, behind, 1, &link, 0));
	fab_run(net, VB_SEC);
	star_activate(net, *router, 2, VB_SEC);
	star_activate(net, behind, 1, VB_SEC);
	for (uint8_t i = 0; i < PORTS; i++) {
		star_activate(net, sw, i + 1, VB_SEC);
		star_activate(net, ca[i], 1, VB_SEC);
	}
	sw->port[0].lid = 9;
	sw->sw.linear_top = 40;
	sw->sw.mcast[1].ports[0] = 0xf;
	(*router)->port[1].lid = 3;
	(*router)->router->routes = 1;
	(*router)->router->route[0] =
		(struct vb_fab_prefix){ .any = true, .port = 2 };
	sw->port[2].pkey_in = sw->port[2].pkey_out = sw->port[2].raw_in = true;
	return sw;
}

static void put_vcrc(uint8_t *bytes, size_t len)
{
	uint16_t crc = vb_vcrc(bytes, len - VB_VCRC_BYTES);

	bytes[len - 2] = (uint8_t)crc;
	bytes[len - 1] = (uint8_t)(crc >> 8);
}

static void check(const struct vb_fab_node *node)
{
	for (unsigned p = 1; p <= node->ports; p++) {
		struct vb_fab_end *e = node->port[p].end;

		/* Frames may stay in lanes, since a forged link packet can take
		 * the credits away. Buffers must not be overrun. */
		for (unsigned vl = 0; vl < DATA_VLS; vl++)
			MUST(e->flow[vl].used <= e->flow[vl].size);
		MUST(!e->wire.first);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static uint8_t frame[VB_LRH_FRAME_MAX + 600];
	struct vb_fab_ops ops = { .on_local = take,
				  .on_event = happens,
				  .on_wire = see };
	struct vb_fab_node *sw, *router;
	vb_time now = VB_SEC;

	net = vb_fab_net_create(&ops, 1);
	MUST(net);
	sw = build(&router);
	sw->sw.store_and_forward = len & 1;
	while (len >= 2) {
		uint8_t control = bytes[0];
		size_t n = (size_t)bytes[1] * 4 + (control >> 3 & 7);

		bytes += 2;
		len -= 2;
		n = VB_MIN(n, len);
		memcpy(frame, bytes, n);
		bytes += n;
		len -= n;
		if (control & 1 && n > VB_VCRC_BYTES)
			put_vcrc(frame, n);
		next_answer = control >> 6;
		if ((control >> 1 & 3) == PORTS
			    ? vb_fab_arrive(net, router, 1, frame, n, now)
			    : vb_fab_arrive(net, sw, 1 + (control >> 1 & 3),
					    frame, n, now))
			continue;
		now += VB_USEC;
		fab_run(net, now);
	}
	fab_run(net, now + VB_MSEC);
	check(sw);
	check(router);
	vb_fab_net_destroy(net);
	return 0;
}
