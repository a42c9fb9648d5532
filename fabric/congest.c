/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control of adapters: they answer frames that have met congestion
 * with notifications, and slow their own flows down when a notification
 * comes. */
#include "fabric/congest.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "fabric/cc.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"

#define BUCKETS 256 /* hash buckets for the flows of a port */
/* A port forgets its idle flows when it has FLOWS_FEW flows, and later when it
 * has twice as many as it kept the last time. It never has more than
 * FLOWS_MOST. */
#define FLOWS_FEW  64
#define FLOWS_MOST 4096
/* A flow accepts no more frames while this many blocks of 64 bytes wait in
 * it. */
#define BLOCKS_MOST 512
#define OPCODE_CN   0x80
#define CN_BYTES    (VB_LRH_BYTES + VB_BTH_BYTES + VB_ICRC_BYTES)
#define SERVICE_UD  3
#define DETH_SQPN   5
/* bit of Port_Control: a flow is a service level, not a queue pair */
#define BY_SL	    0x1
#define QPN_UNKNOWN 0xffffffu
/* the bits FECN and BECN in byte 4 of the BTH */
#define FECN_BECN 0xc0

/* What a port sends on one service level to one LID, or, with LID 0, all that
 * the port sends on that service level. */
struct flow {
	struct flow *next_in_bucket;
	/* the next flow on the port's list of waiting flows */
	struct flow *next_waiting;
	bool waits; /* the flow is on that list */
	uint8_t sl;
	uint16_t peer;
	struct vb_cc cc;
	vb_time next; /* the time at which the flow's next frame may leave */
	struct fifo items;
	uint32_t blocks; /* number of blocks of 64 bytes in @items */
	/* The flow has refused a frame; its sender waits for FAB_EV_ROOM. */
	bool full;
};

struct vb_fab_pacer {
	struct alarm alarm;
	struct flow *waiting; /* flows with items, and maybe others */
	/* @flows: number of flows; @crowd: the number at which idle flows are
	 * forgotten */
	unsigned flows, crowd;
	struct flow *bucket[BUCKETS];
};

/* Returns the BTH of an item, and sets *@h to its LRH; NULL: the item is raw or
 * of subnet management. */
static const uint8_t *bth_of(const struct item *it, struct vb_lrh *h)
{
	if (it->vl == VB_VL_MGMT)
		return NULL;
	vb_lrh_get(it->frame->bytes, h);
	return vb_lrh_bth(it->frame->bytes, h);
}

void fab_congest_log(struct vb_fab_cc_log *log,
		     const struct vb_fab_cc_event *event)
{
	log->event[log->count++ % VB_FAB_CC_EVENTS] = *event;
}

/* Functions for the flows of a port. */

/* Make the port's flows when the first one is needed. NULL: no memory, so that
 * nothing is held back. */
static struct vb_fab_pacer *pacer_of(struct vb_fab_end *e)
{
	struct vb_fab_pacer *p;

	if (e->pacer)
		return e->pacer;
	p = calloc(1, sizeof(*p));
	if (!p || fab_reserve_alarms(e->net, 1)) {
		free(p);
		return NULL;
	}
	p->alarm.kind = TIMER_PACE;
	p->alarm.owner = e;
	vb_timer_init(&p->alarm.timer);
	p->crowd = FLOWS_FEW;
	e->pacer = p;
	return p;
}

static struct flow **bucket_of(struct vb_fab_pacer *p, unsigned sl,
			       uint16_t peer)
{
	return &p->bucket[(peer + sl * 37u) % BUCKETS];
}

/* True if @f is in the state of a new flow, so that it can be forgotten. A flow
 * on the list of waiting flows is kept, because fab_congest_fire() may be at
 * it. */
static bool flow_is_idle(const struct vb_fab_cc *set, struct flow *f,
			 vb_time now)
{
	return !f->waits && f->next <= now &&
	       vb_cc_is_calm(&f->cc, set, f->sl, now);
}

/* Forget the flows that are idle. */
static void forget_idle(struct vb_fab_pacer *p, const struct vb_fab_cc *set,
			vb_time now)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct flow **at = &p->bucket[i];

		while (*at) {
			struct flow *f = *at;

			if (flow_is_idle(set, f, now)) {
				*at = f->next_in_bucket;
				free(f);
				p->flows--;
			} else {
				at = &f->next_in_bucket;
			}
		}
	}
	p->crowd = VB_MAX(2 * p->flows, (unsigned)FLOWS_FEW);
	p->crowd = VB_MIN(p->crowd, (unsigned)FLOWS_MOST);
}

/* Returns the flow to @peer on @sl; NULL: none is remembered. */
static struct flow *find_flow(const struct vb_fab_end *e, unsigned sl,
			      uint16_t peer)
{
	struct flow *f;

	if (!e->pacer)
		return NULL;
	if (e->port->cc->port_control & BY_SL)
		peer = 0;
	f = *bucket_of(e->pacer, sl, peer);
	while (f && (f->sl != sl || f->peer != peer))
		f = f->next_in_bucket;
	return f;
}

/* Returns the flow to @peer on @sl, which is made if it is not remembered.
 * NULL: no memory, or FLOWS_MOST flows are not idle; nothing of the flow is
 * held back then. */
static struct flow *make_flow(struct vb_fab_end *e, unsigned sl, uint16_t peer,
			      vb_time now)
{
	struct flow *f = find_flow(e, sl, peer), **at;
	struct vb_fab_pacer *p = pacer_of(e);

	if (f || !p)
		return f;
	if (p->flows >= p->crowd)
		forget_idle(p, e->port->cc, now);
	f = p->flows < FLOWS_MOST ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	f->sl = (uint8_t)sl;
	f->peer = e->port->cc->port_control & BY_SL ? 0 : peer;
	at = bucket_of(p, sl, f->peer);
	f->next_in_bucket = *at;
	*at = f;
	p->flows++;
	return f;
}

/* Returns the flow whose pace limits when a frame leaves. NULL: the frame need
 * not wait, because no notification came for its flow, or because make_flow()
 * has no room for the flow. */
static struct flow *flow_to_pace(struct vb_fab_end *e, unsigned sl,
				 uint16_t peer, vb_time now)
{
	return e->port->cc->sl[sl].min ? make_flow(e, sl, peer, now)
				       : find_flow(e, sl, peer);
}

/* The frame of @len bytes leaves its flow at @now: compute when the next frame
 * of the flow may leave. */
static void start_gap(struct vb_fab_end *e, struct flow *f, unsigned sl,
		      size_t len, vb_time now)
{
	vb_time frame = fab_wire_ns(e, len + VB_VCRC_BYTES);
	vb_time gap = vb_cc_gap(&f->cc, e->port->cc, sl, frame, now);

	f->next = gap ? now + frame + gap : now;
}

bool fab_congest_full(struct vb_fab_end *e, const struct vb_lrh *h)
{
	struct flow *f;

	if (!e->pacer || h->vl == VB_VL_MGMT ||
	    !(e->port->cc->control_map >> h->sl & 1))
		return false;
	f = find_flow(e, h->sl, h->dlid);
	if (!f || f->blocks < BLOCKS_MOST)
		return false;
	f->full = true;
	return true;
}

static void tell_flow_room(struct vb_fab_end *e, struct flow *f, uint8_t vl)
{
	struct vb_fab_event_info info = { .event = FAB_EV_ROOM, .vl = vl };

	if (!f->full || f->blocks > BLOCKS_MOST / 2)
		return;
	f->full = false;
	fab_event(e, &info);
}

/* Put the flow on the list of waiting flows, unless it is there. */
static void wait_in_list(struct vb_fab_pacer *p, struct flow *f)
{
	if (f->waits)
		return;
	f->waits = true;
	f->next_waiting = p->waiting;
	p->waiting = f;
}

bool fab_congest_hold(struct vb_fab_end *e, struct item *it, vb_time now)
{
	const struct vb_fab_cc *set = e->port->cc;
	struct vb_lrh h;
	const uint8_t *bth;
	struct flow *f;

	if (!set || !set->control_map)
		return false;
	bth = bth_of(it, &h);
	if (!bth || bth[0] == OPCODE_CN || !(set->control_map >> h.sl & 1))
		return false;
	f = flow_to_pace(e, h.sl, h.dlid, now);
	if (!f)
		return false;
	if (!f->items.first && f->next <= now) {
		start_gap(e, f, h.sl, it->frame->len, now);
		return false;
	}
	fab_push(&f->items, it);
	f->blocks += it->blocks;
	wait_in_list(e->pacer, f);
	fab_arm_by(e->net, &e->pacer->alarm, f->next);
	return true;
}

static void release_throttled(struct vb_fab_end *e, struct flow *f, vb_time now)
{
	struct item *it = fab_pop(&f->items);
	uint8_t vl = it->vl;

	f->blocks -= it->blocks;
	start_gap(e, f, it->frame->bytes[1] >> 4, it->frame->len, now);
	it->head = now;
	fab_enqueue(e, it, now);
	tell_flow_room(e, f, vl);
}

void fab_congest_fire(struct vb_fab_end *e, vb_time now)
{
	struct vb_fab_pacer *p = e->pacer;
	struct flow *rest = p->waiting, *f;
	vb_time next = VB_NEVER;

	/* handlers of FAB_EV_ROOM may add flows to p->waiting in the loop */
	p->waiting = NULL;
	while ((f = rest)) {
		rest = f->next_waiting;
		while (f->items.first && f->next <= now)
			release_throttled(e, f, now);
		f->waits = false;
		if (!f->items.first)
			continue;
		next = VB_MIN(next, f->next);
		wait_in_list(p, f);
	}
	/* Meanwhile FAB_EV_ROOM may have armed the alarm for another flow. */
	fab_arm_by(e->net, &p->alarm, next);
}

static void flush_flow(struct vb_fab_end *e, struct flow *f, bool by_link)
{
	struct item *it;

	while ((it = fab_pop(&f->items))) {
		uint8_t vl = it->vl;

		f->blocks -= it->blocks;
		if (by_link)
			fab_count_drop(e->port, DROP_INACTIVE);
		fab_item_free(e->net, it);
		if (by_link)
			tell_flow_room(e, f, vl);
	}
}

void fab_congest_flush(struct vb_fab_end *e, bool by_link)
{
	struct vb_fab_pacer *p = e->pacer;
	struct flow *f;

	if (!p)
		return;
	while ((f = p->waiting)) {
		flush_flow(e, f, by_link);
		p->waiting = f->next_waiting;
		f->waits = false;
	}
	fab_disarm(e->net, &p->alarm);
}

void fab_congest_fini(struct vb_fab_end *e)
{
	struct vb_fab_pacer *p = e->pacer;

	fab_congest_flush(e, false);
	for (unsigned i = 0; p && i < BUCKETS; i++)
		for (struct flow *f = p->bucket[i], *next; f; f = next) {
			next = f->next_in_bucket;
			free(f);
		}
	free(p);
	e->pacer = NULL;
}

/* Functions that notify sources of congestion, and log notifications. */

/* Returns the queue pair that sent the frame; QPN_UNKNOWN: the frame does not
 * say, as only datagrams do. */
static uint32_t sender_qpn(const uint8_t *bth, size_t behind)
{
	if (bth[0] >> 5 != SERVICE_UD || behind < VB_BTH_BYTES + DETH_SQPN + 3)
		return QPN_UNKNOWN;
	return (uint32_t)vb_load_be(bth + VB_BTH_BYTES + DETH_SQPN, 3);
}

/* Send a notification (CN packet) to the source of a frame with FECN. If the
 * lane has no room for the CN packet, it is dropped, since the next frame with
 * FECN causes another one. */
static void notify_source(struct vb_fab_end *e, const struct item *it,
			  const struct vb_lrh *h, const uint8_t *bth,
			  vb_time now)
{
	const struct vb_lrh back = { .sl = h->sl,
				     .lnh = LNH_LOCAL,
				     .dlid = h->slid,
				     .slid = h->dlid,
				     .words = CN_BYTES / 4 };
	size_t behind = (size_t)(it->frame->bytes + it->frame->len -
				 VB_ICRC_BYTES - bth);
	struct vb_bth b = { .opcode = OPCODE_CN,
			    .becn = true,
			    .pkey = (uint16_t)vb_load_be(bth + 2, 2),
			    .dqpn = sender_qpn(bth, behind) };
	uint8_t bytes[CN_BYTES];
	struct vb_writer w = { bytes + VB_LRH_BYTES };

	if (h->dlid >= VB_LID_MCAST)
		/* The frame was multicast, and multicast frames are not
		 * answered. */
		return;
	vb_lrh_put(bytes, &back);
	vb_bth_put(&w, &b);
	vb_lrh_put_icrc(bytes, sizeof(bytes));
	(void)!vb_fab_send(e->net, e->node, e->no, bytes, sizeof(bytes), now);
}

static void log_threshold(struct vb_fab_cc *set, const struct vb_lrh *h,
			  const uint8_t *bth, vb_time now)
{
	const struct vb_fab_cc_event event = {
		.at = now,
		.slid = h->slid,
		.dlid = h->dlid,
		.sl = h->sl,
		.service = bth[0] >> 5,
		.qpn = (uint32_t)vb_load_be(bth + 5, 3),
	};

	set->log.sls |= (uint16_t)(1u << h->sl);
	fab_congest_log(&set->log, &event);
}

/* Slows down this port's flow to the source of the frame. */
static void slow_down(struct vb_fab_end *e, const struct vb_lrh *h,
		      const uint8_t *bth, vb_time now)
{
	struct vb_fab_cc *set = e->port->cc;
	unsigned trigger = set->sl[h->sl].trigger, before;
	struct flow *f;

	if (!(set->control_map >> h->sl & 1))
		return;
	f = make_flow(e, h->sl, h->slid, now);
	if (!f)
		return;
	before = f->cc.index;
	vb_cc_notify(&f->cc, set, h->sl, now);
	if (trigger && before < trigger && f->cc.index >= trigger)
		log_threshold(set, h, bth, now);
}

static void count_congestion(struct vb_fab_port *p, const struct vb_bth *b,
			     unsigned sl)
{
	p->count[FAB_RCV_FECN] += b->fecn;
	p->count[FAB_RCV_BECN] += b->becn;
	p->sl[sl].rcv_fecn += b->fecn;
	p->sl[sl].rcv_becn += b->becn;
}

bool fab_congest_hear(struct vb_fab_end *e, const struct item *it, vb_time now)
{
	const struct frame *frame = it->frame;
	struct vb_reader r;
	const uint8_t *bth;
	struct vb_lrh h;
	struct vb_bth b;

	if (!e->port->cc)
		return false;
	bth = bth_of(it, &h);
	if (!bth || (!(bth[4] & FECN_BECN) && bth[0] != OPCODE_CN))
		return false;
	r = vb_reader(bth, VB_BTH_BYTES);
	if (!vb_bth_get(&r, &b) || !vb_lrh_icrc_good(frame->bytes, frame->len))
		return bth[0] == OPCODE_CN;
	count_congestion(e->port, &b, h.sl);
	/* A CN packet is not answered with a CN packet: otherwise two ports
	 * might answer each other for ever. */
	if (b.fecn && b.opcode != OPCODE_CN)
		notify_source(e, it, &h, bth, now);
	if (b.becn)
		slow_down(e, &h, bth, now);
	return b.opcode == OPCODE_CN;
}
