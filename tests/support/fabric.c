/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/support/fab_run.h"
#include "wire/lrh.h"

#define MTU_4096       5
#define OPCODE_UD_SEND 0x64
#define BTH	       8
/* offset of a test frame's data: stream index, sequence number, time */
#define DATA	  20
#define UNREACHED 255

static void fail(const char *what)
{
	fprintf(stderr, "fabric for tests: %s\n", what);
	abort();
}

uint32_t fabt_random(struct fabt *t)
{
	t->random ^= t->random >> 12;
	t->random ^= t->random << 25;
	t->random ^= t->random >> 27;
	return (uint32_t)(t->random * 0x2545f4914f6cdd1dull >> 32);
}

static void take_seq(struct fabt *t, struct stream *s, uint64_t seq)
{
	if (seq < s->next_seq) {
		t->disordered++;
		return;
	}
	s->lost += seq - s->next_seq;
	s->next_seq = seq + 1;
}

static void take(struct fabt *t, const uint8_t *bytes, size_t len, vb_time now)
{
	uint32_t index = (uint32_t)vb_load_be(bytes + DATA, 4);
	struct stream *s;

	if (index >= t->streams) {
		t->foreign++;
		return;
	}
	s = &t->stream[index];
	if (!s->got++)
		s->first_at = now;
	s->got_bytes += len;
	s->marked += bytes[BTH + 4] >> 7;
	s->last_latency = now - vb_load_be(bytes + DATA + 12, 8);
	s->worst = VB_MAX(s->worst, s->last_latency);
	s->last_at = now;
	take_seq(t, s, vb_load_be(bytes + DATA + 4, 8));
}

static enum vb_fab_taken on_local(void *arg, struct vb_fab_node *node,
				  uint8_t port, const uint8_t *bytes,
				  size_t len, vb_time now)
{
	struct fabt *t = arg;

	if (t->on_local && t->on_local(t, node, port, bytes, len))
		return FAB_TAKEN;
	if (bytes[0] >> 4 == VB_VL_MGMT) {
		t->local_vl15++;
		return FAB_TAKEN;
	}
	if (t->hold_of_2_32 && fabt_random(t) < t->hold_of_2_32)
		return FAB_HELD;
	if (!vb_lrh_icrc_good(bytes, len))
		t->bad_icrc++;
	else if (len < 48)
		t->foreign++;
	else
		take(t, bytes, len, now);
	return FAB_TAKEN;
}

/* A node has room again: the streams that waited for room there may try
 * again. */
static void wake(struct fabt *t, const struct vb_fab_node *node, vb_time now)
{
	for (uint32_t i = 0; i < t->streams; i++) {
		struct stream *s = &t->stream[i];

		if (s->from == node && s->next == VB_NEVER && s->sent < s->most)
			s->next = now;
	}
	t->woken = true;
}

static void on_event(void *arg, struct vb_fab_node *node, uint8_t port,
		     const struct vb_fab_event_info *info, vb_time now)
{
	struct fabt *t = arg;

	t->events[info->event]++;
	if (info->event == FAB_EV_ROOM)
		wake(t, node, now);
	if (info->event == FAB_EV_FAR && t->on_far_event)
		t->on_far_event(t, node, now);
}

static void on_wire(void *arg, struct vb_fab_node *node, uint8_t port,
		    enum vb_fab_direction direction, const uint8_t *bytes,
		    size_t len, vb_time now)
{
	struct fabt *t = arg;

	if (t->on_wire && direction == FAB_SENT)
		t->on_wire(t, node, port, bytes, len);
}

static void on_far(void *arg, struct vb_fab_node *node, uint8_t port,
		   const uint8_t *bytes, size_t len, vb_time now)
{
	struct fabt *t = arg;

	if (t->on_far)
		t->on_far(t, node, bytes, len);
}

void fabt_init(struct fabt *t, uint64_t seed)
{
	struct vb_fab_ops ops = { .on_local = on_local,
				  .on_event = on_event,
				  .on_wire = on_wire,
				  .on_far = on_far,
				  .arg = t };

	*t = (struct fabt){ .random = seed * 0x9e3779b97f4a7c15ull | 1 };
	t->net = vb_fab_net_create(&ops, seed);
	t->by_lid = calloc(VB_FAB_LIDS, sizeof(struct vb_fab_node *));
	if (!t->net || !t->by_lid)
		fail("no memory");
}

void fabt_watch(struct fabt *t, fabt_look *look)
{
	t->on_wire = look;
	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++) {
		struct vb_fab_node *n = vb_fab_node(t->net, i);

		for (unsigned p = 1; p <= n->ports; p++)
			vb_fab_watch(n, (uint8_t)p, true);
	}
}

void fabt_fini(struct fabt *t)
{
	vb_fab_net_destroy(t->net);
	free(t->by_lid);
	free(t->stream);
}

struct vb_fab_node *fabt_add(struct fabt *t, const struct vb_fab_node_spec *s)
{
	struct vb_fab_node_spec spec = *s;
	struct vb_fab_node *n;

	spec.guid = 0x100000ull * (vb_fab_nodes(t->net) + 1);
	n = vb_fab_node_create(&spec);
	if (!n || vb_fab_add(t->net, n))
		fail("no node");
	return n;
}

struct vb_fab_node *fabt_switch(struct fabt *t, unsigned ports)
{
	return fabt_add(t, &(struct vb_fab_node_spec){
				   .kind = FAB_SWITCH,
				   .ports = (uint8_t)ports,
			   });
}

struct vb_fab_node *fabt_adapter(struct fabt *t)
{
	return fabt_add(
		t, &(struct vb_fab_node_spec){ .kind = FAB_CA, .ports = 1 });
}

void fabt_link(struct fabt *t, struct vb_fab_node *a, unsigned a_port,
	       struct vb_fab_node *b, unsigned b_port,
	       const struct vb_fab_link_spec *spec)
{
	static const struct vb_fab_link_spec plain;

	if (vb_fab_link(t->net, a, (uint8_t)a_port, b, (uint8_t)b_port,
			spec ? spec : &plain, t->now))
		fail("no link");
}

uint16_t fabt_lid(const struct vb_fab_node *n)
{
	return n->port[n->kind == FAB_SWITCH ? 0 : 1].lid;
}

static bool is_up(const struct vb_fab_node *n, unsigned port)
{
	return n->port[port].phys == FAB_LINK_UP;
}

/* Compute the number of hops from every switch to the node @to, in @hops by the
 * switch's index. With @rank, count only routes that go from each switch to one
 * of lower rank (the second half of up/down routing). */
static void measure(const struct fabt *t, const struct vb_fab_node *to,
		    const uint8_t *rank, uint8_t *hops)
{
	uint32_t nodes = vb_fab_nodes(t->net), tail = 0, head = 0;
	const struct vb_fab_node **queue = calloc(nodes, sizeof(*queue));

	memset(hops, UNREACHED, nodes);
	hops[to->index] = 0;
	queue[tail++] = to;
	while (head < tail) {
		const struct vb_fab_node *n = queue[head++];

		for (unsigned p = 1; p <= n->ports; p++) {
			uint8_t at;
			struct vb_fab_node *m = vb_fab_peer(n, (uint8_t)p, &at);

			if (!m || !is_up(n, p) || m->kind != FAB_SWITCH ||
			    hops[m->index] != UNREACHED)
				continue;
			if (rank && n->kind == FAB_SWITCH &&
			    rank[m->index] >= rank[n->index])
				continue;
			hops[m->index] = (uint8_t)(hops[n->index] + 1);
			queue[tail++] = m;
		}
	}
	free(queue);
}

/* Does port @p of switch @sw lead to a switch that has @want hops left
 * (@hops)? */
static bool leads(const struct vb_fab_node *sw, unsigned p, const uint8_t *hops,
		  uint8_t want)
{
	uint8_t at;
	struct vb_fab_node *m = vb_fab_peer(sw, (uint8_t)p, &at);

	return m && is_up(sw, p) && hops[m->index] == want;
}

/* Returns the port to a neighbour that is nearer to the destination. If there
 * are several, the LID decides, so that routes are spread. */
static uint8_t best_port(const struct vb_fab_node *sw, const uint8_t *hops,
			 unsigned lid)
{
	uint8_t want = (uint8_t)(hops[sw->index] - 1);
	unsigned choice = 0;

	if (hops[sw->index] == UNREACHED)
		return VB_FAB_NO_PORT;
	for (unsigned p = 1; p <= sw->ports; p++)
		choice += leads(sw, p, hops, want);
	choice = choice ? lid % choice : 0;
	for (unsigned p = 1; p <= sw->ports; p++)
		if (leads(sw, p, hops, want) && choice-- == 0)
			return (uint8_t)p;
	return VB_FAB_NO_PORT;
}

/* Give each switch a unique rank, so that routes which go up by rank have no
 * cycle: switch 0 is the highest, the others follow by their hops from switch 0
 * and then by index. */
static void rank_switches(const struct fabt *t, uint8_t *rank)
{
	uint32_t nodes = vb_fab_nodes(t->net);
	uint8_t *hops = calloc(nodes, 1);
	uint8_t next = 0;

	measure(t, vb_fab_node(t->net, 0), NULL, hops);
	for (unsigned far = 0; far < UNREACHED; far++)
		for (uint32_t i = 0; i < nodes; i++)
			if (vb_fab_node(t->net, i)->kind == FAB_SWITCH &&
			    hops[i] == far)
				rank[i] = next++;
	free(hops);
}

/* Returns a port to a lower switch if that leads to @to; otherwise a port to
 * the highest neighbour from which up/down routing leads there. */
static uint8_t up_down_port(const struct vb_fab_node *sw, const uint8_t *down,
			    const uint8_t *rank, unsigned lid)
{
	uint8_t best = VB_FAB_NO_PORT, highest = rank[sw->index];

	if (down[sw->index] != UNREACHED)
		return best_port(sw, down, lid);
	for (unsigned p = 1; p <= sw->ports; p++) {
		uint8_t at;
		struct vb_fab_node *m = vb_fab_peer(sw, (uint8_t)p, &at);

		if (m && is_up(sw, p) && m->kind == FAB_SWITCH &&
		    rank[m->index] < highest) {
			highest = rank[m->index];
			best = (uint8_t)p;
		}
	}
	return best;
}

static void route_to(struct fabt *t, struct vb_fab_node *to,
		     enum fabt_routes routes, const uint8_t *rank,
		     uint8_t *hops)
{
	measure(t, to, routes == FABT_UP_DOWN ? rank : NULL, hops);
	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++) {
		struct vb_fab_node *sw = vb_fab_node(t->net, i);
		uint8_t port;

		if (sw->kind != FAB_SWITCH || sw == to)
			continue;
		port = routes == FABT_UP_DOWN
			       ? up_down_port(sw, hops, rank, fabt_lid(to))
			       : best_port(sw, hops, fabt_lid(to));
		sw->sw.linear[fabt_lid(to)] = port;
		sw->sw.linear_top = VB_MAX(sw->sw.linear_top, t->lids);
	}
}

void fabt_route(struct fabt *t, enum fabt_routes routes)
{
	uint32_t nodes = vb_fab_nodes(t->net);
	uint8_t *rank = calloc(nodes, 1), *hops = calloc(nodes, 1);

	if (routes == FABT_UP_DOWN)
		rank_switches(t, rank);
	for (uint32_t i = 0; i < nodes; i++)
		route_to(t, vb_fab_node(t->net, i), routes, rank, hops);
	free(rank);
	free(hops);
}

static void activate(struct fabt *t, struct vb_fab_node *n, uint8_t port)
{
	static const enum vb_fab_state steps[] = { FAB_ARMED, FAB_ACTIVE };

	if (n->port[port].state != FAB_INIT)
		return;
	for (unsigned i = 0; i < VB_COUNT(steps); i++)
		if (vb_fab_set_state(t->net, n, port, steps[i], t->now))
			fail("a port does not become Active");
}

void fabt_activate(struct fabt *t)
{
	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++) {
		struct vb_fab_node *n = vb_fab_node(t->net, i);

		for (unsigned p = 1; p <= n->ports; p++)
			activate(t, n, (uint8_t)p);
	}
}

static void set_up_port(struct vb_fab_port *p, uint8_t vls)
{
	p->oper_vls = vls;
	p->mtu = MTU_4096;
}

void fabt_up(struct fabt *t, enum fabt_routes routes, uint8_t vls)
{
	uint32_t nodes = vb_fab_nodes(t->net);

	fabt_run(t, t->now + 2 * VB_FAB_TRAIN_NS);
	for (uint32_t i = 0; i < nodes; i++) {
		struct vb_fab_node *n = vb_fab_node(t->net, i);

		n->port[n->kind == FAB_SWITCH ? 0 : 1].lid = ++t->lids;
		t->by_lid[t->lids] = n;
		for (unsigned p = 0; p <= n->ports; p++)
			set_up_port(&n->port[p], vls);
	}
	fabt_route(t, routes);
	fabt_activate(t);
}

struct stream *fabt_stream(struct fabt *t, struct vb_fab_node *from,
			   struct vb_fab_node *to, uint32_t len)
{
	if (t->streams == t->stream_room) {
		t->stream_room = 2 * t->stream_room + 16;
		t->stream = reallocarray(t->stream, t->stream_room,
					 sizeof(*t->stream));
		if (!t->stream)
			fail("no memory");
	}
	t->stream[t->streams] = (struct stream){
		.from = from,
		.slid = fabt_lid(from),
		.dlid = fabt_lid(to),
		.len = len,
		.next = t->now,
		.most = UINT64_MAX,
	};
	return &t->stream[t->streams++];
}

void fabt_frame(const struct stream *s, uint32_t index, vb_time now,
		uint8_t *bytes)
{
	struct vb_lrh h = {
		.sl = s->sl,
		.lnh = LNH_LOCAL,
		.dlid = s->dlid,
		.slid = s->slid,
		.words = (uint16_t)(s->len / 4),
	};

	memset(bytes, (int)s->sent, s->len);
	memset(bytes + BTH, 0, 12);
	vb_lrh_put(bytes, &h);
	bytes[BTH] = OPCODE_UD_SEND;
	vb_store_be(bytes + BTH + 2, 0xffff, 2);
	vb_store_be(bytes + DATA, index, 4);
	vb_store_be(bytes + DATA + 4, s->sent, 8);
	vb_store_be(bytes + DATA + 12, now, 8);
	vb_lrh_put_icrc(bytes, s->len);
}

static void pump(struct fabt *t, uint32_t index, vb_time now)
{
	struct stream *s = &t->stream[index];
	uint8_t bytes[VB_FAB_FRAME_MAX];
	uint8_t port = s->from->kind == FAB_SWITCH ? 0 : 1;

	while (s->next <= now) {
		if (s->sent >= s->most) {
			s->next = VB_NEVER;
			return;
		}
		fabt_frame(s, index, now, bytes);
		/* While the port is down, the stream tries again soon. */
		switch (vb_fab_send(t->net, s->from, port, bytes, s->len,
				    now)) {
		case 0:
			s->sent++;
			s->next += s->period;
			break;
		case -EAGAIN:
			s->next = VB_NEVER;
			break;
		default:
			s->next = now + 10 * VB_USEC;
		}
	}
}

static vb_time next_stream(const struct fabt *t)
{
	vb_time next = VB_NEVER;

	for (uint32_t i = 0; i < t->streams; i++)
		next = VB_MIN(next, t->stream[i].next);
	return next;
}

/* Receivers that refused frames take frames again after some time. */
static void resume_all(struct fabt *t)
{
	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++) {
		struct vb_fab_node *n = vb_fab_node(t->net, i);

		for (unsigned p = 0; p <= n->ports; p++)
			vb_fab_resume(t->net, n, (uint8_t)p, t->now);
	}
}

#define RESUME_PERIOD (5 * VB_USEC)

/* Handle the network's events that are due before the next stream or
 * receiver. */
static void run_net(struct fabt *t, vb_time until)
{
	t->woken = false;
	while (!t->woken && vb_fab_next(t->net) <= until) {
		t->now = VB_MAX(t->now, vb_fab_next(t->net));
		vb_fab_step(t->net, t->now);
	}
	if (!t->woken)
		t->now = VB_MAX(t->now, until);
}

void fabt_run(struct fabt *t, vb_time until)
{
	vb_time resume = t->hold_of_2_32 ? t->now + RESUME_PERIOD : VB_NEVER;

	for (;;) {
		vb_time feed = next_stream(t);

		run_net(t, VB_MIN(VB_MIN(feed, resume), until));
		if (t->woken)
			continue;
		if (VB_MIN(feed, resume) > until)
			break;
		if (resume <= t->now) {
			resume_all(t);
			resume = t->now + RESUME_PERIOD;
		}
		for (uint32_t i = 0; feed <= t->now && i < t->streams; i++)
			pump(t, i, t->now);
	}
	fab_run(t->net, until);
}

uint64_t fabt_sum(const struct fabt *t, enum vb_fab_counter which)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < vb_fab_nodes(t->net); i++) {
		const struct vb_fab_node *n = vb_fab_node(t->net, i);

		for (unsigned p = 0; p <= n->ports; p++)
			sum += n->port[p].count[which];
	}
	return sum;
}
