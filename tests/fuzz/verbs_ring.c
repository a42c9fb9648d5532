/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the memory that a program shares with a fabric's process. Two programs
 * are at two adapters of a switch. The first one is hostile: an input is a row
 * of (control, length, bytes), of which each puts a frame into its ring, or
 * writes the bytes into its memory anywhere. For any input, what leaves its
 * adapter has a source LID and a P_Key of that adapter and is not for
 * management, and the second program gets whole frames for its own queue pairs.
 */
#include <string.h>

#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fab_run.h"
#include "tests/support/fab_star.h"
#include "tests/support/verbs_guest.h"
#include "wire/ib_hdr.h"
#include "wire/lrh.h"

#define UD_SEND 0x64
#define FRAME	(VB_LRH_BYTES + VB_BTH_BYTES + 8 + VB_ICRC_BYTES)

static bool expelled;

/* --- fakes of the rest of the fabric's process --- */

int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again)
{
	return 0;
}

void vb_fabricd_unwatch(struct vb_fabricd *f, struct fd_watch *w)
{
}

void vb_fabricd_mail(void *client, const void *bytes, size_t len)
{
}

void vb_fabricd_expel(void *client)
{
	expelled = true;
}

static enum vb_fab_taken take(void *arg, struct vb_fab_node *node, uint8_t port,
			      const uint8_t *bytes, size_t len, vb_time now)
{
	const uint8_t *bth;
	struct vb_lrh h;

	MUST(len >= VB_LRH_BYTES);
	vb_lrh_get(bytes, &h);
	MUST(vb_lrh_check(&h, len, 4096) == LRH_GOOD && h.slid == 1);
	bth = vb_lrh_bth(bytes, &h);
	MUST(bth && vb_load_be(bth + 5, 3) > 1);
	MUST(vb_load_be(bth + 2, 2) == 0xffff);
	return vb_fabricd_verbs_hear(arg, node, port, bytes, len, now);
}

/* --- the network --- */

/* A switch with adapters of LIDs 1 and 2 at its ports. */
static void build(struct vb_fab_net *net, struct vb_fab_node *ca[2])
{
	struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_fab_node *sw = star_add(net, FAB_SWITCH, 2);

	for (uint8_t i = 0; i < 2; i++) {
		ca[i] = star_add(net, FAB_CA, 1);
		MUST(!vb_fab_link(net, sw, i + 1, ca[i], 1, &link, 0));
		ca[i]->port[1].lid = i + 1;
		sw->sw.linear[i + 1] = i + 1;
	}
	fab_run(net, VB_SEC);
	for (uint8_t i = 0; i < 2; i++) {
		star_activate(net, sw, i + 1, VB_SEC);
		star_activate(net, ca[i], 1, VB_SEC);
	}
	sw->sw.linear_top = 2;
	sw->sw.mcast[1].ports[0] = 0x6;
}

/* --- the programs --- */

/* Check the frames that the second program gets. */
static void read_all(struct guest *g)
{
	const uint8_t *frame;
	struct vb_lrh h;
	uint32_t len, dqpn;

	while ((frame = vb_shring_next(&g->in, &len))) {
		MUST(len >= VB_LRH_BYTES);
		vb_lrh_get(frame, &h);
		MUST(vb_lrh_check(&h, len, 4096) == LRH_GOOD);
		dqpn = (uint32_t)vb_load_be(vb_lrh_bth(frame, &h) + 5, 3);
		MUST(dqpn >> VB_QPN_BITS == g->port.slot);
	}
	MUST(len == 0);
	(void)!vb_shring_release(&g->in);
}

/* Put a valid datagram into the ring, after changing bits of it as the input
 * says. */
static void send_like(struct guest *from, const struct guest *to,
		      const uint8_t *changes, size_t len)
{
	uint8_t *at = vb_shring_begin(&from->out, VB_VERBS_FRAME);
	uint8_t frame[VB_VERBS_FRAME] = { 0 };
	const struct vb_lrh h = { .lnh = LNH_LOCAL,
				  .dlid = 2,
				  .slid = 1,
				  .words = (uint16_t)VB_MAX(len, FRAME) / 4 };

	if (!at)
		return;
	vb_lrh_put(frame, &h);
	frame[VB_LRH_BYTES] = UD_SEND;
	vb_store_be(frame + VB_LRH_BYTES + 2, 0xffff, 2);
	vb_store_be(frame + VB_LRH_BYTES + 5, to->port.slot << VB_QPN_BITS, 3);
	vb_store_be(frame + VB_LRH_BYTES + VB_BTH_BYTES + 5,
		    from->port.slot << VB_QPN_BITS, 3);
	for (size_t i = 0; i < len; i++)
		frame[i] ^= changes[i];
	memcpy(at, frame, sizeof(frame));
	vb_shring_commit(&from->out, h.words * 4u);
	(void)!vb_shring_publish(&from->out);
}

/* Write into the memory of the first program: at the ring's start, at its end,
 * or into the side's counters. */
static void scribble(struct guest *g, unsigned where, const uint8_t *bytes,
		     size_t len)
{
	static const size_t starts[] = {
		offsetof(struct vb_shring_side, head),
		offsetof(struct vb_shring_side, tail),
		VB_SHRING_RING_AT,
		GUEST_BYTES - 1024,
	};

	memcpy((uint8_t *)g->own + starts[where % VB_COUNT(starts)], bytes,
	       VB_MIN(len, 1024u));
}

static void step(struct vb_fabricd *f, struct guest *to, vb_time now)
{
	while (vb_fabricd_verbs_run(f, now))
		;
	fab_run(f->net, now);
	read_all(to);
}

static void play(struct vb_fabricd *f, struct guest g[2], const uint8_t *bytes,
		 size_t len)
{
	vb_time now = VB_SEC;

	while (len >= 2 && !expelled) {
		uint8_t control = bytes[0];
		size_t n = VB_MIN((size_t)bytes[1], len - 2);

		if (control & 1)
			scribble(&g[0], control >> 1, bytes + 2, n);
		else
			send_like(&g[0], &g[1], bytes + 2, n);
		vb_fabricd_verbs_busy(g[0].p, now);
		now += 10 * VB_USEC;
		step(f, &g[1], now);
		bytes += 2 + n;
		len -= 2 + n;
	}
	step(f, &g[1], now + VB_MSEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct vb_fabricd f;
	struct vb_fab_ops ops = { .on_local = take, .arg = &f };
	struct vb_fab_node *ca[2];
	struct guest g[2];

	memset(&f, 0, sizeof(f));
	expelled = false;
	f.net = vb_fab_net_create(&ops, 1);
	MUST(f.net);
	build(f.net, ca);
	for (unsigned i = 0; i < 2; i++)
		guest_attach(&g[i], &f, ca[i]);
	play(&f, g, bytes, len);
	for (unsigned i = 0; i < 2; i++)
		guest_leave(&g[i]);
	vb_fabricd_verbs_free(&f);
	vb_fab_net_destroy(f.net);
	return 0;
}
