/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of a router on their way through it, and its table of next
 * hops. */
#include "fabric/hops.h"

#include <stdlib.h>

#include "fabric/router.h"

/* The table of destinations is set-associative: a destination can be in one of
 * the WAYS entries of its set. */
#define WAYS	4
#define SETS	256
#define PLACES	(SETS * WAYS)
#define SERIALS (1u << 22) /* a question's number has PLACES * SERIALS values  \
			    */
/* the most frames that wait for one answer, and for all answers; the most
 * questions without an answer */
#define WAIT_MOST     1024
#define WAIT_MOST_ALL 4096
#define ASK_MOST      64
/* A path in use is asked for again after this time: the LID may have moved. */
#define FRESH (4 * VB_SEC)
/* how long a destination counts as unknown before it is asked for again */
#define UNKNOWN VB_SEC

enum hop_state {
	HOP_FREE,
	HOP_ASKED, /* the first question has no answer yet; frames wait */
	HOP_KNOWN,
	HOP_RENEWED, /* the path is known; its renewal is asked for */
	HOP_NONE,    /* there is no path */
};

struct hop {
	enum hop_state state;
	uint8_t port; /* the port by which frames to @gid leave */
	struct vb_gid gid;
	uint32_t question; /* number of the latest question */
	struct vb_fab_path path;
	vb_time answered, used;
	/* in HOP_ASKED: frames, each with the number of its port in `vl` */
	struct fifo waiting;
	unsigned waits;
};

struct vb_fab_hops {
	struct hop hop[PLACES];
	uint32_t serial;
	unsigned asked; /* open questions */
	unsigned waits; /* number of all frames that wait for answers */
};

static bool is_hop_open(const struct hop *h)
{
	return h->state == HOP_ASKED || h->state == HOP_RENEWED;
}

static struct vb_fab_hops *hops_of(struct vb_fab_router *r)
{
	if (!r->hops)
		r->hops = calloc(1, sizeof(*r->hops));
	return r->hops;
}

static struct hop *set_of(struct vb_fab_hops *all, uint8_t port,
			  const struct vb_gid *gid)
{
	uint32_t h = 2166136261u ^ port; /* hash by FNV-1a */

	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		h = (h ^ gid->raw[i]) * 16777619u;
	return &all->hop[(h ^ h >> 16) % SETS * WAYS];
}

/* Returns the entry of a destination. If there is none, makes one in the
 * destination's set: in a free entry, or in place of the destination used
 * longest ago, but not in place of one that waits for an answer. NULL: all
 * entries of the set wait for answers. */
static struct hop *hop_of(struct vb_fab_hops *all, uint8_t port,
			  const struct vb_gid *gid)
{
	struct hop *set = set_of(all, port, gid), *best = NULL;

	for (unsigned i = 0; i < WAYS; i++) {
		struct hop *h = &set[i];

		if (h->state != HOP_FREE && h->port == port &&
		    vb_gid_equal(&h->gid, gid))
			return h;
		if (!is_hop_open(h) && (!best || h->used < best->used))
			best = h;
	}
	if (best)
		*best = (struct hop){ .port = port, .gid = *gid };
	return best;
}

static void drop_routed(struct vb_fab_end *in, struct item *it,
			enum vb_fab_drop why)
{
	fab_count_drop(in->port, why);
	in->node->router->dropped[why]++;
	fab_item_free(in->net, it);
}

/* Give the item a copy of its frame's bytes if other items share them, as
 * copies of a multicast frame do. False: no memory. */
static bool own_bytes(struct item *it)
{
	struct frame *f = it->frame;

	if (f->refs == 1)
		return true;
	f = fab_frame_copy(f);
	if (!f)
		return false;
	fab_frame_drop(it->frame);
	it->frame = f;
	return true;
}

/* Send the frame, which came in at @in, on the path of @h. */
static void send_on(struct vb_fab_end *in, struct item *it, const struct hop *h,
		    vb_time now)
{
	struct vb_fab_node *node = in->node;
	struct vb_fab_end *out = node->port[h->port].end;
	enum vb_fab_drop drop;
	struct vb_fab_view v;
	uint8_t vl = 0;

	fab_view(it, &v);
	drop = vb_fab_router_out(node, h->port, &h->path, &v, &vl);
	if (drop == DROP_NOT && !own_bytes(it))
		drop = DROP_UNASKED;
	if (drop != DROP_NOT) {
		drop_routed(drop < DROP_PKEY_OUT ? in : out, it, drop);
		return;
	}
	vb_fab_router_rewrite(node, h->port, &h->path, it->frame->bytes);
	node->router->routed++;
	it->vl = vl;
	it->head = VB_MAX(now, it->tail) + node->router->latency_ns;
	fab_enqueue(out, it, now);
}

static void ask_hop(struct vb_fab_end *in, struct hop *h, enum hop_state state)
{
	struct vb_fab_hops *all = in->node->router->hops;
	struct vb_fab_end *out = in->node->port[h->port].end;
	struct vb_fab_event_info info = { .event = FAB_EV_PATH,
					  .dgid = h->gid };

	h->state = state;
	h->question =
		(all->serial++ % SERIALS) * PLACES + (uint32_t)(h - all->hop);
	all->asked++;
	info.question = h->question;
	fab_event(out, &info);
}

/* Let a frame wait for the path of @h. The buffer of the port where it came in
 * has its room back from now on. */
static void let_wait(struct vb_fab_end *in, struct hop *h, struct item *it)
{
	struct vb_fab_hops *all = in->node->router->hops;

	if (h->waits == WAIT_MOST || all->waits == WAIT_MOST_ALL) {
		drop_routed(in, it, DROP_UNASKED);
		return;
	}
	if (it->charge)
		fab_charge_give(it->charge);
	it->charge = NULL;
	it->vl = in->no;
	h->waits++;
	all->waits++;
	fab_push(&h->waiting, it);
}

/* A frame has come for a destination without a path: ask for one, unless the
 * answer was "none" a short time ago. */
static void ask_first(struct vb_fab_end *in, struct hop *h, struct item *it,
		      vb_time now)
{
	bool settled = h->state == HOP_NONE && now < h->answered + UNKNOWN;

	if (settled || in->node->router->hops->asked == ASK_MOST) {
		drop_routed(in, it, settled ? DROP_NO_PATH : DROP_UNASKED);
		return;
	}
	let_wait(in, h, it);
	ask_hop(in, h, HOP_ASKED);
}

static void go_by(struct vb_fab_end *in, struct hop *h, struct item *it,
		  vb_time now)
{
	bool may_ask = in->node->router->hops->asked < ASK_MOST;

	h->used = now;
	switch (h->state) {
	case HOP_FREE:
	case HOP_NONE:
		ask_first(in, h, it, now);
		break;
	case HOP_ASKED:
		let_wait(in, h, it);
		break;
	case HOP_KNOWN:
		send_on(in, it, h, now);
		if (may_ask && now >= h->answered + FRESH)
			ask_hop(in, h, HOP_RENEWED);
		break;
	case HOP_RENEWED:
		send_on(in, it, h, now);
		break;
	}
}

bool fab_router_take(struct vb_fab_end *e, struct item *it, vb_time now)
{
	struct vb_fab_hops *all;
	struct vb_fab_view v;
	struct vb_fab_way w;
	struct hop *h;

	fab_view(it, &v);
	vb_fab_router_way(e->node, e->no, &v, &w);
	if (w.here)
		return false;
	if (w.drop != DROP_NOT) {
		drop_routed(e, it, w.drop);
		return true;
	}
	all = hops_of(e->node->router);
	h = all ? hop_of(all, w.port, &w.dgid) : NULL;
	if (h)
		go_by(e, h, it, now);
	else
		drop_routed(e, it, DROP_UNASKED);
	return true;
}

/* Send the frames that waited for the path of @h, or drop them if there is
 * none. */
static void release_hop(struct vb_fab_net *net, struct vb_fab_node *node,
			struct hop *h)
{
	struct item *it;

	while ((it = fab_pop(&h->waiting))) {
		struct vb_fab_end *in = node->port[it->vl].end;

		h->waits--;
		node->router->hops->waits--;
		if (h->state == HOP_KNOWN)
			send_on(in, it, h, net->now);
		else
			drop_routed(in, it, DROP_NO_PATH);
	}
}

/* Returns the state of @h after an answer. */
static enum hop_state state_by(const struct hop *h, enum vb_fab_answer answer)
{
	if (answer == PATH_KNOWN ||
	    (answer == PATH_UNANSWERED && h->state == HOP_RENEWED))
		return HOP_KNOWN;
	return HOP_NONE;
}

void vb_fab_path_is(struct vb_fab_net *net, struct vb_fab_node *node,
		    uint32_t question, enum vb_fab_answer answer,
		    const struct vb_fab_path *path)
{
	struct vb_fab_hops *all = node->router ? node->router->hops : NULL;
	struct hop *h = all ? &all->hop[question % PLACES] : NULL;

	if (!h || !is_hop_open(h) || h->question != question)
		return;
	all->asked--;
	h->answered = net->now;
	h->state = state_by(h, answer);
	if (answer == PATH_KNOWN)
		h->path = *path;
	release_hop(net, node, h);
}

void fab_hops_free(struct vb_fab_end *e)
{
	struct vb_fab_router *r = e->node ? e->node->router : NULL;
	struct item *it;

	if (!r || !r->hops)
		return;
	for (unsigned i = 0; i < PLACES; i++)
		while ((it = fab_pop(&r->hops->hop[i].waiting)))
			fab_item_free(e->net, it);
	free(r->hops);
	r->hops = NULL;
}
