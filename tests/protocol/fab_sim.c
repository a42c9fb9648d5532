/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random fabrics that lose and damage link packets and frames, with receivers
 * that stop now and then, cables that are pulled, and congestion control.
 *
 *     fab_sim SEED             one run, with its numbers
 *     fab_sim [-n COUNT [FIRST]]   many
 *
 * While a fabric is disturbed, no buffer overflows, no frame is dropped for
 * lack of a buffer, and none arrives twice, damaged or out of order. When the
 * disturbance ends, all credits come back, and every frame arrives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/net_priv.h"
#include "tests/support/fabric.h"
#include "tests/support/seeds.h"

#define SWITCHES_MOST 6
#define DEFAULT_COUNT 300
#define PERCENT	      42949672u
#define DISTURBED     (1500 * VB_USEC)
/* the longest virtual time for all frames to arrive or to be dropped */
#define DRAINED (3 * VB_SEC)
/* Frames that each stream sends after the disturbance, and that must arrive. */
#define MORE 40

enum disturbance {
	LOSE_FLOW = 1,
	LOSE_DATA = 2,
	HOLD = 4,
	PULL = 8,
	CONTROL = 16, /* switch congestion control on */
	DISTURBANCES = 32
};

struct run {
	struct fabt t;
	/* kinds of disturbance of the run, bits of enum disturbance */
	unsigned what;
	unsigned switches;
	struct vb_fab_node *sw[SWITCHES_MOST];
	/* number of ports of each switch that have a link */
	uint8_t used[SWITCHES_MOST];
	struct vb_fab_node *ca[2 * SWITCHES_MOST];
	unsigned cas;
	uint8_t vls;
	const char *wrong;
};

static unsigned below(struct run *r, unsigned bound)
{
	return fabt_random(&r->t) % bound;
}

static void expect(struct run *r, bool holds, const char *what)
{
	if (!holds && !r->wrong)
		r->wrong = what;
}

static struct vb_fab_link_spec random_link(struct run *r)
{
	static const uint64_t rates[] = { 250000000u, 1000000000u, 4000000000u,
					  0 };
	struct vb_fab_link_spec s = {
		.bytes_per_sec = rates[below(r, 4)],
		.delay = below(r, 3) ? below(r, 500) : below(r, 40000),
		.buffer = 66 + below(r, 4) * below(r, 300),
		.extended = below(r, 5) == 0,
		/* Lose almost nothing, but enough that both ends repeat link
		 * packets. */
		.lose_flow = below(r, 2),
	};

	if (r->what & LOSE_FLOW && below(r, 3)) {
		s.lose_flow = below(r, 25) * PERCENT;
		s.corrupt_flow = below(r, 25) * PERCENT;
	}
	if (r->what & LOSE_DATA && below(r, 2)) {
		s.lose = below(r, 10) * PERCENT;
		s.corrupt = below(r, 10) * PERCENT;
	}
	return s;
}

static void join(struct run *r, unsigned a, struct vb_fab_node *b, unsigned bp)
{
	struct vb_fab_link_spec s = random_link(r);

	fabt_link(&r->t, r->sw[a], ++r->used[a], b, bp, &s);
}

/* Make a random tree of switches with some additional links, and adapters. */
static void build(struct run *r)
{
	/* a local variable, so that the compiler knows the upper bound of the
	 * loop */
	const unsigned switches = 1 + below(r, SWITCHES_MOST);

	r->switches = switches;
	for (unsigned i = 0; i < switches; i++) {
		r->sw[i] = fabt_switch(&r->t, 12);
		r->sw[i]->sw.store_and_forward = below(r, 2);
	}
	for (unsigned i = 1; i < switches; i++) {
		unsigned up = below(r, i);

		join(r, up, r->sw[i], ++r->used[i]);
	}
	for (unsigned i = 0; switches > 2 && i < below(r, 3); i++) {
		unsigned a = below(r, switches), b = below(r, switches);

		if (a != b)
			join(r, a, r->sw[b], ++r->used[b]);
	}
	r->cas = r->switches + 1;
	for (unsigned i = 0; i < r->cas; i++) {
		r->ca[i] = fabt_adapter(&r->t);
		join(r, i % r->switches, r->ca[i], 1);
	}
}

static void start(struct run *r)
{
	for (unsigned i = 0; i < 2 * r->cas; i++) {
		unsigned from = below(r, r->cas), to = below(r, r->cas);
		struct stream *s;

		if (from == to)
			continue;
		s = fabt_stream(
			&r->t, r->ca[from], r->ca[to],
			48 + 4 * (below(r, 2) ? below(r, 30) : below(r, 1030)));
		s->sl = (uint8_t)below(r, vb_fab_vls(r->vls));
		s->period = below(r, 3) ? below(r, 20000) : 0;
	}
}

/* Pull a cable between switches or to an adapter, and plug it in again. */
static void pull(struct run *r)
{
	unsigned i = below(r, r->switches);
	uint8_t port = (uint8_t)(1 + below(r, r->used[i]));

	if (vb_fab_plug(r->t.net, r->sw[i], port, false, r->t.now))
		return;
	fabt_run(&r->t, r->t.now + below(r, 200) * VB_USEC);
	if (vb_fab_plug(r->t.net, r->sw[i], port, true, r->t.now))
		return;
	fabt_run(&r->t, r->t.now + 2 * VB_FAB_TRAIN_NS);
	fabt_activate(&r->t);
}

/* Settings of congestion control such as any manager may write. */
static void control(struct run *r)
{
	for (unsigned i = 0; i < r->switches; i++)
		for (unsigned p = 1; p <= r->used[i]; p++)
			r->sw[i]->port[p].marking = (struct vb_fab_marking){
				.threshold = below(r, 200),
				.rate = (uint16_t)below(r, 4),
				.packet_size = (uint8_t)below(r, 8),
				.victim = below(r, 2),
			};
	for (unsigned i = 0; i < r->cas; i++) {
		struct vb_fab_cc *cc = r->ca[i]->port[1].cc;

		cc->port_control = (uint16_t)below(r, 2);
		cc->control_map = (uint16_t)below(r, 65536);
		cc->limit = (uint16_t)below(r, VB_FAB_CCT);
		for (unsigned sl = 0; sl < VB_FAB_SLS; sl++)
			cc->sl[sl] = (struct vb_fab_cc_sl){
				.increase = (uint8_t)below(r, 4),
				.trigger = (uint8_t)below(r, 4),
				.min = (uint8_t)below(r, 3),
				.timer = (uint16_t)(1 + below(r, 100)),
			};
		for (unsigned k = 0; k < VB_FAB_CCT; k++)
			cc->cct[k] = (uint16_t)(below(r, 4) << 14 | k);
	}
}

static void disturb(struct run *r)
{
	if (r->what & CONTROL)
		control(r);
	if (r->what & HOLD)
		r->t.hold_of_2_32 = (1 + below(r, 20)) * PERCENT;
	fabt_run(&r->t, r->t.now + DISTURBED);
	for (unsigned i = 0; r->what & PULL && i < 3; i++)
		pull(r);
}

/* End all disturbances: links without errors, receivers that accept
 * everything. */
static void heal(struct run *r)
{
	for (uint32_t i = 0; i < r->t.net->links; i++) {
		struct link *l = r->t.net->link[i];
		struct vb_fab_link_spec s = l->spec;

		s.lose = s.corrupt = s.lose_flow = s.corrupt_flow = 0;
		if (vb_fab_tune(r->t.net, l->a->node, l->a->no, &s, r->t.now))
			abort();
	}
	r->t.hold_of_2_32 = 0;
	for (unsigned i = 0; i < r->cas; i++)
		vb_fab_resume(r->t.net, r->ca[i], 1, r->t.now);
}

/* Let the fabric run until it has no event left, or until a time limit. */
static void run_out(struct run *r)
{
	vb_time end = r->t.now + DRAINED;

	do
		fabt_run(&r->t, r->t.now + VB_MSEC);
	while (vb_fab_next(r->t.net) != VB_NEVER && r->t.now < end);
}

static void drain(struct run *r)
{
	for (uint32_t i = 0; i < r->t.streams; i++)
		r->t.stream[i].most = r->t.stream[i].sent;
	/* A link that is still training again when the errors end comes up as
	 * well. */
	fabt_run(&r->t, r->t.now + 2 * VB_FAB_TRAIN_NS);
	fabt_activate(&r->t);
	run_out(r);
}

static void check_credits(struct run *r, const struct vb_fab_end *e)
{
	for (unsigned vl = 0; vl < vb_fab_vls(r->vls); vl++) {
		const struct vb_fc *f = &e->flow[vl], *p = &e->peer->flow[vl];
		uint32_t window = VB_MIN(p->size, (p->mask + 1) / 2);

		expect(r, f->used == 0, "a buffer is not empty");
		expect(r, ((f->limit - f->sent) & f->mask) == window,
		       "credits did not come back");
		expect(r, p->arrived == f->sent, "the totals differ");
	}
	expect(r, e->waiting == 0, "a lane is not empty");
	expect(r, e->port->state == FAB_ACTIVE, "a port is not Active");
}

static void check_quiet(struct run *r)
{
	for (uint32_t i = 0; i < r->t.net->links; i++) {
		check_credits(r, r->t.net->link[i]->a);
		check_credits(r, r->t.net->link[i]->b);
	}
	expect(r, vb_fab_next(r->t.net) == VB_NEVER, "events without end");
}

static void check_always(struct run *r)
{
	bool clean = !(r->what & (LOSE_DATA | PULL)) &&
		     !fabt_sum(&r->t, FAB_LINK_RECOVERIES);

	expect(r, fabt_sum(&r->t, FAB_RCV_OVERRUN) == 0, "a buffer was overrun");
	expect(r,
	       fabt_sum(&r->t, FAB_XMIT_DISCARDS) ==
		       fabt_sum(&r->t, FAB_XMIT_INACTIVE),
	       "a frame was discarded");
	expect(r, r->what & PULL || !fabt_sum(&r->t, FAB_XMIT_DISCARDS),
	       "a frame was discarded without a pull");
	expect(r, !r->t.foreign && !r->t.bad_icrc, "a damaged frame arrived");
	expect(r, !r->t.disordered, "a frame arrived twice or late");
	for (uint32_t i = 0; clean && i < r->t.streams; i++)
		expect(r, r->t.stream[i].lost == 0, "a frame was lost");
	for (uint32_t i = 0; clean && i < r->t.streams; i++)
		expect(r, r->t.stream[i].got == r->t.stream[i].sent,
		       "not all frames arrived");
}

/* Check that after the disturbance every stream works without a loss. */
static void check_life(struct run *r)
{
	uint64_t *want = calloc(r->t.streams + 1, sizeof(*want));

	for (uint32_t i = 0; i < r->t.streams; i++) {
		struct stream *s = &r->t.stream[i];

		want[i] = s->got + MORE;
		s->most = s->sent + MORE;
		s->next = r->t.now;
	}
	run_out(r);
	for (uint32_t i = 0; i < r->t.streams; i++)
		expect(r, r->t.stream[i].got == want[i],
		       "a stream did not recover");
	free(want);
}

static void report(struct run *r, unsigned long seed)
{
	uint64_t sent = 0, got = 0;

	for (uint32_t i = 0; i < r->t.streams; i++) {
		sent += r->t.stream[i].sent;
		got += r->t.stream[i].got;
	}
	printf("seed %lu: %u switches, %u adapters, disturbance %u, %llu sent, "
	       "%llu arrived, %llu recoveries, %llu held back ticks, %llu BECN%s%s\n",
	       seed, r->switches, r->cas, r->what, (unsigned long long)sent,
	       (unsigned long long)got,
	       (unsigned long long)fabt_sum(&r->t, FAB_LINK_RECOVERIES) / 2,
	       (unsigned long long)fabt_sum(&r->t, FAB_XMIT_WAIT),
	       (unsigned long long)fabt_sum(&r->t, FAB_RCV_BECN),
	       r->wrong ? ": " : "", r->wrong ? r->wrong : "");
}

static bool play(unsigned long seed, bool loud)
{
	struct run r = { 0 };

	fabt_init(&r.t, seed);
	r.what = below(&r, DISTURBANCES);
	r.vls = (uint8_t)(1 + below(&r, 4));
	build(&r);
	fabt_up(&r.t, FABT_UP_DOWN, r.vls);
	start(&r);
	disturb(&r);
	heal(&r);
	drain(&r);
	check_always(&r);
	check_quiet(&r);
	check_life(&r);
	check_always(&r);
	check_quiet(&r);
	if (loud || r.wrong)
		report(&r, seed);
	fabt_fini(&r.t);
	return !r.wrong;
}

int main(int argc, char **argv)
{
	unsigned long count = DEFAULT_COUNT / seeds_divisor();
	unsigned long first = 1, failed = 0;

	if (argc == 2)
		return !play(strtoul(argv[1], NULL, 0), true);
	if (argc > 2)
		count = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		first = strtoul(argv[3], NULL, 0);
	for (unsigned long seed = first; seed < first + count; seed++)
		failed += !play(seed, false);
	printf("%lu seeds, %lu failed\n", count, failed);
	return failed != 0;
}
