/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending side of an end: its lanes, their order, their time limits, and
 * the errors that the link makes. */
#include <string.h>

#include "fabric/congest.h"

/* blocks of 64 bytes in the queue of VL15, which has no credits */
#define VL15_BLOCKS_MOST 1024
/* blocks of 64 bytes in a lane at or below which FAB_EV_ROOM comes */
#define ROOM_BLOCKS 1024
/* a stalled lane discards its items for this many HOQ lifetimes */
#define STALL_TIMES 8
/* On the wire a packet has a start and an end delimiter of a byte each. */
#define DELIMITERS 2
#define BTH_FECN   0x80
/* longest burst of wrong bits; a 16-bit CRC detects every such burst */
#define BURST_BITS 16

static bool can_send_data(const struct vb_fab_end *e)
{
	return e->port->state == FAB_ACTIVE;
}

void fab_kick(struct vb_fab_end *e, vb_time at)
{
	if (e->link && e->port->phys == FAB_LINK_UP)
		fab_arm_by(e->net, &e->xmit, VB_MAX(at, e->busy));
}

/* Adds to *@ticks the ticks of a wait that began at *@since and ends now. */
static void end_wait(uint64_t *ticks, vb_time *since, vb_time now)
{
	if (*since == VB_NEVER)
		return;
	*ticks += (now - *since) / VB_FAB_TICK_NS;
	*since = VB_NEVER;
}

/* Add the ticks of a wait up to @now to *@ticks, and let the wait go on. */
static void count_wait(uint64_t *ticks, vb_time *since, vb_time now)
{
	if (*since == VB_NEVER || now < *since)
		return;
	end_wait(ticks, since, now);
	*since = now;
}

void fab_count_waits(struct vb_fab_end *e, vb_time now)
{
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++) {
		struct vb_fab_vl_counters *c = &e->port->vl[vl];

		count_wait(&c->xmit_wait, &e->lane[vl].wait_since, now);
		count_wait(&c->time_cong, &e->lane[vl].cong_since, now);
	}
	count_wait(&e->port->count[FAB_XMIT_WAIT], &e->wait_since, now);
	count_wait(&e->port->count[FAB_XMIT_TIME_CONG], &e->cong_since, now);
}

void fab_charge_give(struct charge *c)
{
	struct vb_fab_end *e = c->end;
	struct vb_fab_net *net = e->net;

	if (--c->refs)
		return;
	fab_stir(e, net->now);
	if (vb_fc_give(&e->flow[c->vl], c->blocks)) {
		e->tell |= (uint16_t)(1u << c->vl);
		fab_kick(e, net->now);
	} else if (!vb_fc_is_told(&e->flow[c->vl]) &&
		   e->port->phys == FAB_LINK_UP) {
		fab_arm_by(net, &e->flow_alarm, net->now + fab_fc_period(e));
	}
	fab_charge_free(net, c);
}

/* Ends the congestion of lane @vl, and counts how long it lasted. */
static void end_congestion(struct vb_fab_end *e, unsigned vl, vb_time now)
{
	end_wait(&e->port->vl[vl].time_cong, &e->lane[vl].cong_since, now);
	e->congested &= (uint16_t) ~(1u << vl);
	if (!e->congested)
		end_wait(&e->port->count[FAB_XMIT_TIME_CONG], &e->cong_since,
			 now);
}

/* Take the first item out of a lane. */
static struct item *lane_pop(struct vb_fab_end *e, unsigned vl, vb_time now)
{
	struct lane *l = &e->lane[vl];
	struct item *it = fab_pop(&l->items);

	l->blocks -= it->blocks;
	l->since = now;
	end_wait(&e->port->vl[vl].xmit_wait, &l->wait_since, now);
	if (l->cong_since != VB_NEVER &&
	    l->blocks <= e->port->marking.threshold)
		end_congestion(e, vl, now);
	if (!l->items.first)
		e->waiting &= (uint16_t) ~(1u << vl);
	return it;
}

static void discard(struct vb_fab_end *e, unsigned vl, enum vb_fab_counter why,
		    vb_time now)
{
	vb_fab_count(e->port, FAB_XMIT_DISCARDS, 1);
	vb_fab_count(e->port, why, 1);
	e->port->vl[vl].xmit_late +=
		why == FAB_XMIT_HOQ || why == FAB_XMIT_LIFETIME;
	fab_item_free(e->net, lane_pop(e, vl, now));
}

void fab_flush_wire(struct vb_fab_end *e)
{
	struct item *it;

	while ((it = fab_pop(&e->wire)))
		fab_item_free(e->net, it);
	fab_disarm(e->net, &e->recv);
	if (e->leaving)
		fab_charge_give(e->leaving);
	e->leaving = NULL;
	e->busy = e->net->now;
	e->tell = e->init = 0;
	fab_disarm(e->net, &e->xmit);
}

static vb_time later(vb_time t, vb_time span)
{
	return span == VB_NEVER ? VB_NEVER : t + span;
}

/* Returns the time at which the lane must discard its first item as too old,
 * and the counter that grows then. Only switches have these limits (IBA
 * 18.2.5.4), routers have that of HOQLife, and VL15 has none. */
static vb_time deadline(const struct vb_fab_end *e, unsigned vl,
			enum vb_fab_counter *why)
{
	const struct lane *l = &e->lane[vl];
	const struct item *it = l->items.first;
	vb_time life, hoq;

	*why = FAB_XMIT_HOQ;
	if (e->node->kind == FAB_CA || vl == VB_VL_MGMT)
		return VB_NEVER;
	if (l->stalled > l->since)
		return l->since;
	life = e->node->kind == FAB_SWITCH
		       ? later(it->entered, vb_fab_life_ns(e->node->sw.life))
		       : VB_NEVER;
	hoq = later(VB_MAX(l->since, it->head),
		    vb_fab_life_ns(e->port->hoq_life));
	if (life <= hoq)
		*why = FAB_XMIT_LIFETIME;
	return VB_MIN(life, hoq);
}

/* The lane has lost an item to the HOQ limit. After VLStallCount in a row it
 * stalls. */
static void note_hoq(struct vb_fab_end *e, struct lane *l, vb_time now)
{
	vb_time life = vb_fab_life_ns(e->port->hoq_life);

	if (!e->port->vl_stall || l->stalled > now)
		return;
	if (++l->hoq_drops < e->port->vl_stall)
		return;
	l->hoq_drops = 0;
	l->stalled = now + STALL_TIMES * life;
}

static void tell_room(struct vb_fab_end *e, unsigned vl)
{
	struct vb_fab_event_info info = { .event = FAB_EV_ROOM,
					  .vl = (uint8_t)vl };

	if (!e->lane[vl].full || e->lane[vl].blocks > ROOM_BLOCKS)
		return;
	e->lane[vl].full = false;
	fab_event(e, &info);
}

void fab_flush_lanes(struct vb_fab_end *e)
{
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++) {
		while (e->lane[vl].items.first)
			discard(e, vl, FAB_XMIT_INACTIVE, e->net->now);
		e->lane[vl].stalled = 0;
	}
	fab_congest_flush(e, true);
	end_wait(&e->port->count[FAB_XMIT_WAIT], &e->wait_since, e->net->now);
	/* Raise FAB_EV_ROOM for the lanes that are empty now: no later frame
	 * leaves them, so their waiting senders would otherwise never get the
	 * event. */
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++)
		tell_room(e, vl);
}

/* Discard the lane's first items if they are too old, or if they were found
 * damaged before they began to leave. */
static void prune(struct vb_fab_end *e, unsigned vl, vb_time now)
{
	struct lane *l = &e->lane[vl];
	enum vb_fab_counter why;
	struct item *it;

	while ((it = l->items.first)) {
		if (it->bad && it->tail <= now) {
			fab_item_free(e->net, lane_pop(e, vl, now));
			continue;
		}
		if (deadline(e, vl, &why) > now)
			return;
		discard(e, vl, why, now);
		if (why == FAB_XMIT_HOQ)
			note_hoq(e, l, now);
		tell_room(e, vl);
	}
}

/* Returns the lanes whose first item may leave now. For a lane that lacks only
 * credits, its wait begins. */
static uint16_t able_lanes(struct vb_fab_end *e, vb_time now)
{
	uint16_t able = 0;

	for (unsigned rest = e->waiting; rest; rest &= rest - 1) {
		unsigned vl = (unsigned)__builtin_ctz(rest);
		struct lane *l = &e->lane[vl];

		prune(e, vl, now);
		if (!l->items.first || l->items.first->head > now)
			continue;
		if (vl == VB_VL_MGMT ||
		    (can_send_data(e) &&
		     vb_fc_may_send(&e->flow[vl], l->items.first->blocks)))
			able |= (uint16_t)(1u << vl);
		else if (l->wait_since == VB_NEVER)
			l->wait_since = now;
	}
	return able;
}

vb_time fab_wire_ns(const struct vb_fab_end *e, size_t bytes)
{
	return (bytes + DELIMITERS) * e->byte_time >> FRACTION;
}

/* Returns the time by which the waiting VL15 frames have arrived at the peer,
 * if each data lane sends a link packet in front of each of them. */
vb_time fab_mgmt_through(const struct vb_fab_end *e, vb_time now)
{
	const struct item *it = e->lane[VB_VL_MGMT].items.first;
	vb_time at = it ? VB_MAX(now, e->busy) : e->busy;

	for (; it; it = it->next)
		at = VB_MAX(at, it->head) + 1 +
		     fab_wire_ns(e, it->frame->len + VB_VCRC_BYTES) +
		     DATA_VLS * fab_wire_ns(e, VB_FC_WIDE_BYTES);
	return at + e->link->spec.delay + 1;
}

/* Returns how long @bytes are on the wire. Keeps the fraction of a nanosecond
 * for the next frame, so that frames in a row take their exact time
 * together. */
static vb_time wire_time(struct vb_fab_end *e, size_t bytes, vb_time now)
{
	uint64_t t = (bytes + DELIMITERS) * e->byte_time;

	if (e->busy == now)
		t += e->carry;
	e->carry = t & ((1u << FRACTION) - 1);
	return t >> FRACTION;
}

void fab_show(struct vb_fab_end *e, struct item *it,
	      enum vb_fab_direction direction, vb_time now)
{
	struct vb_fab_net *net = e->net;
	const uint8_t *bytes;
	size_t len;

	if (!e->watched || !net->ops.on_wire)
		return;
	bytes = fab_wire_bytes(it, &len);
	net->ops.on_wire(net->ops.arg, e->node, e->no, direction, bytes, len,
			 now);
}

/* Change up to BURST_BITS bits, one after the other. */
static void flip_bits(struct vb_fab_net *net, uint8_t *bytes, size_t len)
{
	uint32_t burst = (fab_random(net) & ((1u << BURST_BITS) - 1)) | 1;
	size_t at = fab_random(net) % (len * 8);

	for (unsigned i = 0; i < BURST_BITS && at + i < len * 8; i++)
		bytes[(at + i) / 8] ^=
			(uint8_t)((burst >> i & 1) << (at + i) % 8);
}

/* Change bits of the frame in a copy, since other items share the frame.
 * Without memory for the copy the frame stays as it was. */
static void corrupt(struct vb_fab_net *net, struct item *it)
{
	struct frame *f;

	if (!it->frame) {
		flip_bits(net, it->flow, it->flow_len);
		return;
	}
	f = fab_frame_copy(it->frame);
	if (!f)
		return;
	if (!f->altered) {
		vb_lrh_set_vl(f->bytes, it->vl);
		f->vcrc = vb_vcrc(f->bytes, f->len);
		f->altered = true;
	}
	flip_bits(net, f->bytes, f->len);
	fab_frame_drop(it->frame);
	it->frame = f;
}

/* Put the item on the wire to the peer, or drop it if the random generator
 * decides that the link loses it. */
static void put_on_wire(struct vb_fab_end *e, struct item *it, size_t bytes,
			vb_time now)
{
	const struct vb_fab_link_spec *s = &e->link->spec;
	struct vb_fab_net *net = e->net;
	struct vb_fab_end *to = e->peer;

	fab_show(e, it, FAB_SENT, now);
	if (it->frame)
		fab_stir(e, now);
	e->busy = now + wire_time(e, bytes, now);
	it->head = now + s->delay;
	it->tail = e->busy + s->delay;
	if (fab_chance(net, it->frame ? s->lose : s->lose_flow)) {
		vb_fab_count(to->port, FAB_SYMBOL_ERRORS, 1);
		fab_item_free(net, it);
		return;
	}
	if (fab_chance(net, it->frame ? s->corrupt : s->corrupt_flow))
		corrupt(net, it);
	fab_push(&to->wire, it);
	if (to->wire.first == it)
		fab_arm(net, &to->recv, fab_due(to, it));
}

/* Send a link packet for the lowest VL that owes the peer one. */
static void send_flow(struct vb_fab_end *e, vb_time now)
{
	unsigned vl = (unsigned)__builtin_ctz(e->tell);
	uint16_t bit = (uint16_t)(1u << vl);
	struct item *it = fab_item_new(e->net);
	struct vb_fc_pkt p;

	e->tell &= (uint16_t)~bit;
	if (!it) {
		fab_arm_by(e->net, &e->flow_alarm, now + fab_fc_period(e));
		return;
	}
	vb_fc_tell(&e->flow[vl], e->init & bit ? FC_INIT : FC_NORMAL,
		   (uint8_t)vl, &p);
	e->init &= (uint16_t)~bit;
	it->vl = (uint8_t)vl;
	it->flow_len = (uint8_t)vb_fc_put(it->flow, &p);
	vb_fab_count(e->port, FAB_XMIT_FLOW_PKTS, 1);
	put_on_wire(e, it, it->flow_len, now);
}

static void count_sent(struct vb_fab_end *e, const struct item *it)
{
	struct vb_fab_port *p = e->port;
	uint32_t words = it->frame->len / 4u;

	p->count[FAB_XMIT_PKTS]++;
	p->count[FAB_XMIT_WORDS] += words;
	p->count[FAB_XMIT_MCAST_PKTS] += vb_lid_is_mcast(
		(uint16_t)(it->frame->bytes[2] << 8 | it->frame->bytes[3]));
	p->vl[it->vl].xmit_pkts++;
	p->vl[it->vl].xmit_words += words;
	if (it->vl != VB_VL_MGMT)
		p->sl[it->frame->bytes[1] >> 4].xmit_words += words;
}

static void send_frame(struct vb_fab_end *e, unsigned vl, vb_time now)
{
	struct item *it = lane_pop(e, vl, now);
	size_t len = it->frame->len;

	e->lane[vl].hoq_drops = 0;
	end_wait(&e->port->count[FAB_XMIT_WAIT], &e->wait_since, now);
	e->leaving = it->charge;
	it->charge = NULL;
	it->ends = it->bad;
	if (vl != VB_VL_MGMT) {
		vb_fc_sent(&e->flow[vl], it->blocks);
		vb_arb_sent(&e->arb, len);
	}
	count_sent(e, it);
	put_on_wire(e, it, len + VB_VCRC_BYTES, now);
	tell_room(e, vl);
}

/* Send one link packet or frame. False: no packet may leave now. */
static bool xmit_one(struct vb_fab_end *e, vb_time now)
{
	uint16_t able;
	int vl;

	if (e->tell) {
		send_flow(e, now);
		return true;
	}
	able = able_lanes(e, now);
	if (able & 1u << VB_VL_MGMT) {
		send_frame(e, VB_VL_MGMT, now);
		return true;
	}
	vl = vb_arb_pick(&e->arb, e->port, able);
	if (vl == VB_ARB_NONE)
		return false;
	send_frame(e, (unsigned)vl, now);
	return true;
}

/* Nothing can leave now: set the alarm to the time at which the next frame may
 * leave, or at which a time limit ends, whichever is earlier. When credits
 * come, fab_kick() ends the wait. */
static void rest_end(struct vb_fab_end *e, vb_time now)
{
	vb_time next = VB_NEVER;

	for (unsigned left = e->waiting; left; left &= left - 1) {
		unsigned vl = (unsigned)__builtin_ctz(left);
		enum vb_fab_counter why;
		const struct item *it = e->lane[vl].items.first;
		vb_time at = deadline(e, vl, &why);

		if (it->head > now)
			at = VB_MIN(at, it->head);
		else if (e->wait_since == VB_NEVER)
			e->wait_since = now;
		if (it->bad)
			at = VB_MIN(at, it->tail);
		next = VB_MIN(next, at);
	}
	fab_arm(e->net, &e->xmit, next);
}

void fab_xmit_fire(struct vb_fab_end *e, vb_time now)
{
	/* Read the port's state in each turn, because a callback may take the
	 * link down. */
	while (e->port->phys == FAB_LINK_UP) {
		if (now < e->busy) {
			fab_arm(e->net, &e->xmit, e->busy);
			return;
		}
		if (e->leaving) {
			struct charge *c = e->leaving;

			e->leaving = NULL;
			fab_charge_give(c);
		}
		if (!xmit_one(e, now)) {
			rest_end(e, now);
			return;
		}
	}
}

/* Begins the congestion of lane @vl, which the frame of @v causes. */
static void begin_congestion(struct vb_fab_end *e, unsigned vl,
			     const struct vb_fab_view *v, vb_time now)
{
	const struct vb_fab_cc_event event = { .at = now,
					       .slid = v->lrh.slid,
					       .dlid = v->lrh.dlid,
					       .sl = v->lrh.sl };
	struct vb_fab_cc_log *log = &e->node->sw.cc_log;

	e->lane[vl].cong_since = now;
	if (!e->congested)
		e->cong_since = now;
	e->congested |= (uint16_t)(1u << vl);
	log->ports[e->no / 64] |= 1ull << e->no % 64;
	fab_congest_log(log, &event);
}

/* Set FECN in a frame when the lane's queue is long and this port has credits:
 * then this port and not the next node is the cause of the congestion (IBA
 * annex A10). */
static void mark(struct vb_fab_end *e, struct item *it, vb_time now)
{
	const struct vb_fab_marking *m = &e->port->marking;
	struct lane *l = &e->lane[it->vl];
	struct vb_fab_view v;
	uint8_t *bth;

	if (!m->threshold || l->blocks <= m->threshold)
		return;
	if (!m->victim && !vb_fc_may_send(&e->flow[it->vl], it->blocks))
		return;
	fab_view(it, &v);
	if (l->cong_since == VB_NEVER)
		begin_congestion(e, it->vl, &v, now);
	if (it->bad || it->blocks < m->packet_size || it->frame->refs > 1)
		return;
	bth = (uint8_t *)vb_lrh_bth(it->frame->bytes, &v.lrh);
	if (!bth || e->unmarked++ < m->rate)
		return;
	e->unmarked = 0;
	bth[4] |= BTH_FECN;
	vb_fab_count(e->port, FAB_XMIT_FECN, 1);
	e->port->vl[it->vl].xmit_fecn++;
}

void fab_enqueue(struct vb_fab_end *e, struct item *it, vb_time now)
{
	struct lane *l = &e->lane[it->vl];

	if (it->vl == VB_VL_MGMT && l->blocks + it->blocks > VL15_BLOCKS_MOST) {
		vb_fab_count(e->port, FAB_VL15_DROPPED, 1);
		fab_item_free(e->net, it);
		return;
	}
	it->entered = now;
	l->blocks += it->blocks;
	fab_push(&l->items, it);
	e->waiting |= (uint16_t)(1u << it->vl);
	if (it->vl != VB_VL_MGMT && e->node->kind == FAB_SWITCH)
		mark(e, it, now);
	if (l->items.first == it) {
		l->since = now;
		fab_kick(e, it->head);
	}
}
