/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast one core moves frames from an adapter through a switch to another
 * adapter: fabric_switch [SECONDS]. Links are unpaced; each frame is copied in
 * by vb_fab_send(), waits for credits, is routed, arbitrated, counted, and
 * handed out. The best of several turns is printed, for each size; and what a
 * further switch costs a frame, without its VCRC, which nobody looks at within
 * one process, and with it, as in a capture.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/net.h"
#include "tests/support/fab_run.h"
#include "wire/lrh.h"

#define TURNS	 5
#define CHAIN	 5 /* switches in a row, to measure a hop */
#define BTH_PKEY 10

static uint64_t arrived;

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static enum vb_fab_taken take(void *arg, struct vb_fab_node *node, uint8_t port,
			      const uint8_t *bytes, size_t len, vb_time now)
{
	arrived++;
	return FAB_TAKEN;
}

static void look(void *arg, struct vb_fab_node *node, uint8_t port,
		 enum vb_fab_direction direction, const uint8_t *bytes,
		 size_t len, vb_time now)
{
}

static void must(int err)
{
	if (err) {
		fprintf(stderr, "fabric_switch: %s\n", strerror(-err));
		exit(1);
	}
}

static struct vb_fab_node *add(struct vb_fab_net *net, uint8_t kind,
			       uint8_t ports, uint64_t guid)
{
	struct vb_fab_node_spec spec = { .kind = kind,
					 .ports = ports,
					 .guid = guid };
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	must(n ? vb_fab_add(net, n) : -ENOMEM);
	return n;
}

static void activate(struct vb_fab_net *net, struct vb_fab_node *n,
		     uint8_t port, uint16_t lid)
{
	n->port[port].lid = lid;
	n->port[port].mtu = 5;
	n->port[port].oper_vls = 4;
	must(vb_fab_set_state(net, n, port, FAB_ARMED, VB_SEC));
	must(vb_fab_set_state(net, n, port, FAB_ACTIVE, VB_SEC));
}

/* Two adapters, LIDs 1 and 2, at the ends of a row of switches, which lead LID
 * 1 to their port 1 and LID 2 to port 2. */
static struct vb_fab_net *build(unsigned switches, bool vcrc,
				struct vb_fab_node *ca[2])
{
	struct vb_fab_ops ops = { .on_local = take,
				  .on_wire = vcrc ? look : NULL };
	struct vb_fab_link_spec link = { .unpaced = true };
	struct vb_fab_net *net = vb_fab_net_create(&ops, 1);
	struct vb_fab_node *sw[CHAIN];

	must(net ? 0 : -ENOMEM);
	for (unsigned i = 0; i < switches; i++)
		sw[i] = add(net, FAB_SWITCH, 36, 100 + i);
	for (uint8_t i = 0; i < 2; i++)
		ca[i] = add(net, FAB_CA, 1, 200 + i);
	must(vb_fab_link(net, ca[0], 1, sw[0], 1, &link, 0));
	must(vb_fab_link(net, ca[1], 1, sw[switches - 1], 2, &link, 0));
	for (unsigned i = 1; i < switches; i++)
		must(vb_fab_link(net, sw[i - 1], 2, sw[i], 1, &link, 0));
	fab_run(net, VB_SEC);
	for (uint8_t i = 0; i < 2; i++)
		activate(net, ca[i], 1, i + 1);
	for (unsigned i = 0; i < 2 * switches; i++) {
		uint8_t port = (uint8_t)(i % 2 + 1);

		activate(net, sw[i / 2], port, 0);
		sw[i / 2]->sw.linear[port] = port;
		sw[i / 2]->sw.linear_top = 2;
		vb_fab_watch(sw[i / 2], port, vcrc);
	}
	return net;
}

/* Returns how many frames pass in one second of processor time. */
static double turn(size_t len, double seconds, unsigned switches, bool vcrc)
{
	struct vb_lrh h = { .lnh = LNH_LOCAL,
			    .dlid = 2,
			    .slid = 1,
			    .words = (uint16_t)(len / 4) };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct vb_fab_node *ca[2];
	struct vb_fab_net *net = build(switches, vcrc, ca);
	double begun = now_seconds(), spent;
	vb_time now = VB_SEC;

	vb_lrh_put(bytes, &h);
	bytes[BTH_PKEY] = bytes[BTH_PKEY + 1] = 0xff;
	arrived = 0;
	do {
		for (int i = 0; i < 1000; i++) {
			while (vb_fab_send(net, ca[0], 1, bytes, len, now) == 0)
				;
			now += VB_USEC;
			fab_run(net, now);
		}
		spent = now_seconds() - begun;
	} while (spent < seconds);
	vb_fab_net_destroy(net);
	return (double)arrived / spent;
}

static double best_of(size_t len, double seconds, unsigned switches, bool vcrc)
{
	double best = 0;

	for (int k = 0; k < TURNS; k++) {
		double rate = turn(len, seconds, switches, vcrc);

		best = VB_MAX(best, rate);
	}
	return best;
}

/* Returns how many ns of processor time one more switch costs a frame. */
static double hop(size_t len, double seconds, bool vcrc)
{
	double one = 1e9 / best_of(len, seconds, 1, vcrc);
	double row = 1e9 / best_of(len, seconds, CHAIN, vcrc);

	return (row - one) / (CHAIN - 1);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 256, 4096 };
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;

	for (unsigned i = 0; i < VB_COUNT(lens); i++) {
		double best = best_of(lens[i], seconds, 1, false);

		printf("frames of %4zu bytes: %.2f M/s, %.2f GB/s\n", lens[i],
		       best / 1e6, best * (double)lens[i] / 1e9);
		printf("a hop of %4zu bytes: %.0f ns, with VCRC %.0f ns\n",
		       lens[i], hop(lens[i], seconds, false),
		       hop(lens[i], seconds, true));
	}
	return 0;
}
