/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link between two processes, whose carrier loses, repeats, reorders and
 * changes messages, with processes that die, cables that are pulled, and
 * receivers that stop now and then.
 *
 *     far_sim SEED             one run, with its numbers
 *     far_sim [-n COUNT [FIRST]]   many
 *
 * While the link is disturbed no buffer overflows, and nothing arrives twice,
 * damaged or out of order. When the disturbance ends the link comes up, all
 * credits come back, and every frame arrives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/net_priv.h"
#include "tests/support/far.h"
#include "tests/support/seeds.h"

#define DEFAULT_COUNT 40
#define PERCENT	      42949672u /* one percent of 2^32 */
#define PORT	      3
#define MORE	      60

struct run {
	struct far_world w;
	const char *wrong;
};

static unsigned far_below(struct run *r, unsigned bound)
{
	return fabt_random(&r->w.t) % bound;
}

static void must(struct run *r, bool holds, const char *what)
{
	if (!holds && !r->wrong)
		r->wrong = what;
}

static void draw_link(uint64_t seed, struct vb_fab_link_spec *s)
{
	static const uint64_t rates[] = { 250000000u, 1000000000u, 0 };

	*s = (struct vb_fab_link_spec){
		.bytes_per_sec = rates[seed % 3],
		.delay = seed / 3 % 3 * 20 * VB_USEC,
		.extended = seed / 9 % 2,
		.buffer = seed / 18 % 2 ? 70 + (uint32_t)(seed % 400) : 0,
	};
}

static void draw_carrier(struct run *r)
{
	struct far_world *w = &r->w;

	w->delay = far_below(r, 200) * VB_USEC;
	w->jitter = far_below(r, 2) * far_below(r, 100) * VB_USEC;
	w->lose = far_below(r, 2) * far_below(r, 10) * PERCENT;
	w->twice = far_below(r, 2) * far_below(r, 10) * PERCENT;
	w->wrong = far_below(r, 3) ? 0 : far_below(r, 3) * PERCENT;
	w->t.hold_of_2_32 = far_below(r, 2) * far_below(r, 10) * PERCENT;
}

static void add_streams(struct run *r)
{
	for (unsigned i = 0; i < 4; i++) {
		struct stream *s = fabt_stream(&r->w.t, r->w.side[i % 2].ca,
					       r->w.side[!(i % 2)].ca,
					       48 + 4 * far_below(r, 1010));

		s->sl = (uint8_t)far_below(r, 4);
		s->period = (5 + far_below(r, 60)) * VB_USEC;
	}
}

static void replay(struct run *r)
{
	uint8_t bytes[sizeof(r->w.last)];

	memcpy(bytes, r->w.last, sizeof(bytes));
	if (far_below(r, 2))
		bytes[far_below(r, sizeof(bytes))] ^= 1;
	if (r->w.last_len)
		farw_forge(&r->w, far_below(r, 2), bytes, r->w.last_len);
}

static void hit(struct run *r)
{
	struct far_world *w = &r->w;
	unsigned side = far_below(r, 2);

	switch (far_below(r, 6)) {
	case 0:
		farw_kill(w, side);
		farw_run(w, far_below(r, 3000) * VB_MSEC);
		farw_start(w, side);
		break;
	case 1:
		(void)!vb_fab_plug(w->t.net, w->side[side].sw, PORT, false,
				   w->t.now);
		farw_run(w, far_below(r, 50) * VB_MSEC);
		(void)!vb_fab_plug(w->t.net, w->side[side].sw, PORT, true,
				   w->t.now);
		break;
	case 2:
		w->cut = true;
		farw_run(w, far_below(r, 3000) * VB_MSEC);
		w->cut = false;
		break;
	case 3:
		(void)!vb_fab_set_state(w->t.net, w->side[side].sw, PORT,
					FAB_DOWN, w->t.now);
		break;
	default:
		for (unsigned i = 0; i < 20; i++)
			replay(r);
	}
}

static void check_harm(struct run *r)
{
	const struct fabt *t = &r->w.t;

	must(r, fabt_sum(t, FAB_RCV_OVERRUN) == 0 || r->w.wrong,
	     "a buffer was overrun");
	must(r, !t->foreign && !t->bad_icrc, "a damaged frame arrived");
	must(r, !t->disordered, "a frame arrived twice or late");
}

static void heal_carrier(struct run *r)
{
	struct far_world *w = &r->w;

	w->lose = w->twice = w->wrong = 0;
	w->jitter = 0;
	w->t.hold_of_2_32 = 0;
	for (unsigned i = 0; i < 2; i++)
		vb_fab_resume(w->t.net, w->side[i].ca, 1, w->t.now);
	for (uint32_t i = 0; i < w->t.streams; i++)
		w->t.stream[i].most = w->t.stream[i].sent;
	/* If the carrier changed a sequence number, an end may ignore all
	 * messages until the watchdog of flow control ends the session. */
	farw_run(w, VB_FAR_SILENCE + 2 * VB_SEC);
	must(r, farw_is_up(w), "the link did not come up");
	farw_activate(w);
	farw_run(w, VB_SEC);
}

static void check_ends(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct vb_fab_end *e = r->w.side[i].sw->port[PORT].end;
		const struct vb_fab_end *o = r->w.side[!i].sw->port[PORT].end;

		must(r, e->port->state == FAB_ACTIVE, "a port is not Active");
		must(r, e->waiting == 0, "a lane is not empty");
		for (unsigned vl = 0; vl < vb_fab_vls(e->port->vl_cap); vl++) {
			const struct vb_fc *f = &e->flow[vl];
			const struct vb_fc *p = &o->flow[vl];
			uint32_t window = VB_MIN(p->size, (p->mask + 1) / 2);

			must(r, f->used == 0, "a buffer is not empty");
			must(r, ((f->limit - f->sent) & f->mask) == window,
			     "credits did not come back");
			must(r, p->arrived == f->sent, "the totals differ");
		}
	}
}

static void check_streams(struct run *r)
{
	struct fabt *t = &r->w.t;
	uint64_t want[8];

	for (uint32_t i = 0; i < t->streams; i++) {
		struct stream *s = &t->stream[i];

		want[i] = s->got + MORE;
		s->most = s->sent + MORE;
		s->next = t->now;
	}
	farw_run(&r->w, 300 * VB_MSEC);
	for (uint32_t i = 0; i < t->streams; i++)
		must(r, t->stream[i].got == want[i],
		     "a stream did not recover");
}

static void tell(const struct run *r, unsigned long seed)
{
	const struct vb_far_status *a = vb_far_status(r->w.side[0].far);
	uint64_t got = 0;

	for (uint32_t i = 0; i < r->w.t.streams; i++)
		got += r->w.t.stream[i].got;
	printf("seed %lu: %llu frames arrived, %llu messages sent, %llu lost, "
	       "%llu late, %llu forged%s%s\n",
	       seed, (unsigned long long)got, (unsigned long long)a->sent,
	       (unsigned long long)a->lost, (unsigned long long)a->late,
	       (unsigned long long)a->forged, r->wrong ? ": " : "",
	       r->wrong ? r->wrong : "");
}

static bool play_far(unsigned long seed, bool loud)
{
	struct vb_fab_link_spec spec;
	struct run r = { 0 };

	draw_link(seed, &spec);
	farw_init(&r.w, seed, &spec, 0);
	draw_carrier(&r);
	farw_start(&r.w, 0);
	farw_start(&r.w, 1);
	add_streams(&r);
	for (unsigned i = 0; i < 6; i++) {
		farw_run(&r.w, 30 * VB_MSEC);
		farw_activate(&r.w);
		farw_run(&r.w, 30 * VB_MSEC);
		if (i)
			hit(&r);
	}
	check_harm(&r);
	heal_carrier(&r);
	check_ends(&r);
	check_streams(&r);
	check_ends(&r);
	check_harm(&r);
	if (loud || r.wrong)
		tell(&r, seed);
	farw_fini(&r.w);
	return !r.wrong;
}

int main(int argc, char **argv)
{
	unsigned long count = DEFAULT_COUNT / seeds_divisor(), first = 1;
	unsigned long failed = 0;

	if (argc == 2)
		return !play_far(strtoul(argv[1], NULL, 0), true);
	if (argc > 2)
		count = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		first = strtoul(argv[3], NULL, 0);
	for (unsigned long seed = first; seed < first + count; seed++)
		failed += !play_far(seed, false);
	printf("%lu seeds, %lu failed\n", count, failed);
	return failed != 0;
}
