/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A large fat tree in virtual time: fab_scale [PODS]. Each pod has 9 leaves of
 * 18 adapters and 9 switches above them; 12 pods, the maximum, have 11,664
 * ports. Every adapter sends to one in another pod, then waits for the frames
 * of another. Prints the time that this needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/support/fabric.h"

#define PODS_MOST 12
/* number of leaf switches in a pod, and of switches above those */
#define LEAVES 9
#define HOSTS  18
/* number of core switches above each upper switch of a pod */
#define CORES  6
#define FRAMES 40
#define FRAME  (4096 + 48)

static struct vb_fab_node *leaf[PODS_MOST][LEAVES], *mid[PODS_MOST][LEAVES];
static struct vb_fab_node *core[LEAVES][CORES];
static struct vb_fab_node *host[PODS_MOST * LEAVES * HOSTS];

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct vb_fab_node *lean_switch(struct fabt *t)
{
	return fabt_add(t, &(struct vb_fab_node_spec){ .kind = FAB_SWITCH,
						       .ports = 36,
						       .linear_cap = 4096,
						       .mcast_cap = 64 });
}

/* Make a pod: two links from each leaf to each switch above, three from there
 * to each core of its group. */
static void build_pod(struct fabt *t, unsigned pod)
{
	for (unsigned i = 0; i < LEAVES; i++) {
		leaf[pod][i] = lean_switch(t);
		mid[pod][i] = lean_switch(t);
	}
	for (unsigned i = 0; i < LEAVES; i++) {
		for (unsigned h = 0; h < HOSTS; h++) {
			unsigned at = (pod * LEAVES + i) * HOSTS + h;

			host[at] = fabt_adapter(t);
			fabt_link(t, host[at], 1, leaf[pod][i], 1 + h, NULL);
		}
		for (unsigned k = 0; k < 2 * LEAVES; k++)
			fabt_link(t, leaf[pod][i], 19 + k, mid[pod][k / 2],
				  1 + 2 * i + k % 2, NULL);
		for (unsigned k = 0; k < 3 * CORES; k++)
			fabt_link(t, mid[pod][i], 19 + k, core[i][k / 3],
				  1 + 3 * pod + k % 3, NULL);
	}
}

static unsigned build(struct fabt *t, unsigned pods)
{
	for (unsigned i = 0; i < LEAVES; i++)
		for (unsigned k = 0; k < CORES; k++)
			core[i][k] = lean_switch(t);
	for (unsigned pod = 0; pod < pods; pod++)
		build_pod(t, pod);
	return pods * LEAVES * HOSTS;
}

static unsigned count_ports(const struct fabt *t)
{
	unsigned ports = 0;

	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++)
		ports += vb_fab_node(t->net, i)->ports;
	return ports;
}

/* Did every frame of every stream arrive, once and in order? */
static bool is_right(const struct fabt *t)
{
	for (uint32_t i = 0; i < t->streams; i++)
		if (t->stream[i].got != FRAMES || t->stream[i].lost)
			return false;
	return !t->disordered && !t->bad_icrc && !t->foreign &&
	       !fabt_sum(t, FAB_RCV_OVERRUN) && !fabt_sum(t, FAB_XMIT_DISCARDS) &&
	       !fabt_sum(t, FAB_RCV_ERRORS);
}

static void report(const struct fabt *t, double up, double ran, vb_time span)
{
	double hops = (double)fabt_sum(t, FAB_XMIT_PKTS);
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	printf("%u nodes, %u ports: brought up in %.2f s; %u streams, %.0f "
	       "frames over links in %.3f ms of virtual time, %.2f s of "
	       "processor, %.2f M a second; %ld MiB\n",
	       vb_fab_nodes(t->net), count_ports(t), up, t->streams, hops,
	       (double)span / VB_MSEC, ran, hops / ran / 1e6,
	       use.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	unsigned pods = argc > 1 ? (unsigned)atoi(argv[1]) : 2, hosts;
	double begun = seconds(), up;
	struct fabt t;
	vb_time from;
	bool right;

	if (pods < 2 || pods > PODS_MOST) {
		fprintf(stderr, "usage: %s [2..%d]\n", argv[0], PODS_MOST);
		return 2;
	}
	fabt_init(&t, 1);
	hosts = build(&t, pods);
	fabt_up(&t, FABT_SHORTEST, 4);
	up = seconds() - begun;
	from = t.now;
	for (unsigned i = 0; i < hosts; i++)
		fabt_stream(&t, host[i], host[(i + LEAVES * HOSTS) % hosts],
			    FRAME)
			->most = FRAMES;
	begun = seconds();
	while (vb_fab_next(t.net) != VB_NEVER || t.now == from)
		fabt_run(&t, t.now + 100 * VB_USEC);
	report(&t, up, seconds() - begun, t.now - from);
	right = is_right(&t);
	fabt_fini(&t);
	printf("%s\n", right ? "every frame arrived once, in order" : "WRONG");
	return !right;
}
