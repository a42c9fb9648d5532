/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast one core moves frames from an adapter through a switch to another
 * adapter: fabric_switch [SECONDS]. Links are unpaced; each frame is copied in
 * by vb_fab_send(), waits for credits, is routed, arbitrated, counted, and
 * handed out. The best of several turns is printed, for each size.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/net.h"
#include "wire/lrh.h"

#define TURNS	 5
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

/* Two adapters, LIDs 1 and 2, on ports 1 and 2 of a switch. */
static struct vb_fab_net *build(struct vb_fab_node *ca[2])
{
	struct vb_fab_ops ops = { .on_local = take };
	struct vb_fab_link_spec link = { .unpaced = true };
	struct vb_fab_net *net = vb_fab_net_create(&ops, 1);
	struct vb_fab_node *sw;

	must(net ? 0 : -ENOMEM);
	sw = add(net, FAB_SWITCH, 36, 100);
	for (uint8_t i = 0; i < 2; i++) {
		ca[i] = add(net, FAB_CA, 1, 200 + i);
		must(vb_fab_link(net, ca[i], 1, sw, i + 1, &link, 0));
	}
	vb_fab_run(net, VB_SEC);
	for (uint8_t i = 0; i < 2; i++) {
		activate(net, ca[i], 1, i + 1);
		activate(net, sw, i + 1, 0);
		sw->sw.linear[i + 1] = i + 1;
	}
	sw->sw.linear_top = 2;
	return net;
}

/* Returns the frames that pass in a second of processor time. */
static double turn(size_t len, double seconds)
{
	struct vb_lrh h = { .lnh = LNH_LOCAL,
			    .dlid = 2,
			    .slid = 1,
			    .words = (uint16_t)(len / 4) };
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct vb_fab_node *ca[2];
	struct vb_fab_net *net = build(ca);
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
			vb_fab_run(net, now);
		}
		spent = now_seconds() - begun;
	} while (spent < seconds);
	vb_fab_net_destroy(net);
	return (double)arrived / spent;
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 256, 4096 };
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;

	for (unsigned i = 0; i < VB_COUNT(lens); i++) {
		double best = 0;

		for (int k = 0; k < TURNS; k++) {
			double rate = turn(lens[i], seconds);

			best = VB_MAX(best, rate);
		}
		printf("frames of %4zu bytes: %.2f M/s, %.2f GB/s\n", lens[i],
		       best / 1e6, best * (double)lens[i] / 1e9);
	}
	return 0;
}
