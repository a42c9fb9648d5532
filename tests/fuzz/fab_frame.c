/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes a switch with frames. An input is a row of (control, length, bytes):
 * the lowest bit of control makes the VCRC right, the next two choose the port
 * where the bytes arrive. For any input, frames that are handed out are whole,
 * and buffers are not overrun and are empty at the end.
 */
#include <string.h>

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

/* A switch of LID 9 and adapters of LIDs 1 to 3 at its ports; port 2 enforces
 * partitions. */
static struct vb_fab_node *build(struct vb_fab_net *net)
{
	struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_fab_node *sw = star_add(net, FAB_SWITCH, PORTS), *ca[PORTS];

	for (uint8_t i = 0; i < PORTS; i++) {
		ca[i] = star_add(net, FAB_CA, 1);
		MUST(!vb_fab_link(net, sw, i + 1, ca[i], 1, &link, 0));
		sw->sw.linear[i + 1] = i + 1;
		vb_fab_watch(sw, i + 1, true);
	}
	fab_run(net, VB_SEC);
	for (uint8_t i = 0; i < PORTS; i++) {
		star_activate(net, sw, i + 1, VB_SEC);
		star_activate(net, ca[i], 1, VB_SEC);
	}
	sw->port[0].lid = 9;
	sw->sw.linear_top = 40;
	sw->sw.mcast[1].ports[0] = 0xf;
	sw->port[2].pkey_in = sw->port[2].pkey_out = sw->port[2].raw_in = true;
	return sw;
}

static void put_vcrc(uint8_t *bytes, size_t len)
{
	uint16_t crc = vb_vcrc(bytes, len - VB_VCRC_BYTES);

	bytes[len - 2] = (uint8_t)crc;
	bytes[len - 1] = (uint8_t)(crc >> 8);
}

static void check(struct vb_fab_net *net, struct vb_fab_node *sw)
{
	for (unsigned p = 1; p <= PORTS; p++) {
		struct vb_fab_end *e = sw->port[p].end;

		/* Without credits, which a false link packet can take away,
		 * frames stay in their lanes. */
		for (unsigned vl = 0; vl < DATA_VLS; vl++)
			MUST(e->flow[vl].used <= e->flow[vl].size);
		MUST(!e->wire.first);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static uint8_t frame[VB_LRH_FRAME_MAX + 600];
	struct vb_fab_ops ops = { .on_local = take, .on_wire = see };
	struct vb_fab_net *net = vb_fab_net_create(&ops, 1);
	struct vb_fab_node *sw;
	vb_time now = VB_SEC;

	MUST(net);
	sw = build(net);
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
		if (vb_fab_arrive(net, sw, 1 + (control >> 1 & 3) % PORTS,
				  frame, n, now))
			continue;
		now += VB_USEC;
		fab_run(net, now);
	}
	fab_run(net, now + VB_MSEC);
	check(net, sw);
	vb_fab_net_destroy(net);
	return 0;
}
