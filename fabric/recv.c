/* SPDX-License-Identifier: BSD-2-Clause */
/* What arrives at an end: link packets, and frames, which are checked, routed
 * and put into lanes, or handed out. */
#include <errno.h>
#include <string.h>

#include "fabric/adaptive.h"
#include "fabric/congest.h"
#include "fabric/hops.h"

static bool cuts_through(const struct vb_fab_node *n)
{
	return n && n->kind == FAB_SWITCH && !n->sw.store_and_forward;
}

vb_time fab_due(const struct vb_fab_end *e, const struct item *it)
{
	return it->frame && cuts_through(e->node) ? it->head : it->tail;
}

/* Count an arrived packet towards the threshold of damaged ones. */
static void count_damage(struct vb_fab_end *e, enum vb_fab_packet kind,
			 bool damaged)
{
	struct vb_fab_event_info info = { .event = FAB_EV_INTEGRITY };

	if (!vb_fab_errors_packet(&e->errors, kind, damaged,
				  e->port->local_phy_errors))
		return;
	vb_fab_count(e->port, FAB_LINK_INTEGRITY, 1);
	fab_event(e, &info);
}

static void recv_flow(struct vb_fab_end *e, struct item *it, vb_time now)
{
	struct vb_fc_pkt p;
	enum vb_fc_verdict got;

	vb_fab_count(e->port, FAB_RCV_FLOW_PKTS, 1);
	got = vb_fc_get(it->flow, it->flow_len, &p);
	count_damage(e, FAB_LINK_PACKET, got == FC_CRC);
	switch (got) {
	case FC_CRC:
		vb_fab_count(e->port, FAB_SYMBOL_ERRORS, 1);
		break;
	case FC_OP:
		fab_count_drop(e->port, DROP_MALFORMED);
		break;
	case FC_GOOD:
		e->heard[p.vl] = now;
		if (vb_fc_hear(&e->flow[p.vl], &p) && (e->waiting >> p.vl & 1))
			fab_kick(e, now);
	}
	fab_item_free(e->net, it);
}

/* Is the frame's VCRC wrong? This function computes a CRC only if a link has
 * changed bytes of the frame. */
static bool is_damaged(const struct frame *f)
{
	return f->altered && vb_vcrc(f->bytes, f->len) != f->vcrc;
}

/* Count the frame at the port, and set it->bad if it is damaged. */
static void count_arrival(struct vb_fab_end *e, struct item *it)
{
	struct vb_fab_port *p = e->port;
	uint32_t words = it->frame->len / 4u;

	p->count[FAB_RCV_PKTS]++;
	p->count[FAB_RCV_WORDS] += words;
	p->vl[it->vl].rcv_pkts++;
	p->vl[it->vl].rcv_words += words;
	if (it->vl != VB_VL_MGMT)
		p->sl[it->frame->bytes[1] >> 4].rcv_words += words;
	if (it->ends) {
		p->count[FAB_RCV_REMOTE_PHYSICAL]++;
		it->bad = true;
	} else if (is_damaged(it->frame)) {
		p->count[FAB_RCV_ERRORS]++;
		p->count[FAB_RCV_LOCAL_PHYSICAL]++;
		it->bad = true;
	} else {
		it->frame->altered = false;
	}
	if (!it->ends)
		count_damage(e, FAB_FRAME, it->bad);
}

/* A frame has overrun the buffer of @vl. */
static void count_overrun(struct vb_fab_end *e, uint8_t vl, vb_time now)
{
	struct vb_fab_event_info info = { .event = FAB_EV_OVERRUN, .vl = vl };

	vb_fab_count(e->port, FAB_RCV_ERRORS, 1);
	vb_fab_count(e->port, FAB_RCV_OVERRUN, 1);
	if (!vb_fab_errors_overrun(&e->errors, fab_fc_period_number(e, now),
				   e->port->overrun_errors))
		return;
	vb_fab_count(e->port, FAB_OVERRUNS, 1);
	fab_event(e, &info);
}

/* Charge the frame to the buffer of the VL on which the peer sent it. False:
 * the buffer has no room, because the peer sent more than its credits; or
 * memory is exhausted. */
static bool charge_item(struct vb_fab_end *e, struct item *it, vb_time now)
{
	struct charge *c;

	if (it->vl == VB_VL_MGMT)
		return true;
	c = fab_charge_new(e->net);
	if (c && vb_fc_take(&e->flow[it->vl], it->blocks)) {
		*c = (struct charge){
			.end = e, .refs = 1, .blocks = it->blocks, .vl = it->vl
		};
		it->charge = c;
		return true;
	}
	if (c)
		fab_charge_free(e->net, c);
	count_overrun(e, it->vl, now);
	return false;
}

static enum vb_fab_taken hand_out_item(struct vb_fab_end *e, struct item *it,
				       vb_time now)
{
	struct vb_fab_net *net = e->net;
	struct frame *f = it->frame;

	if (!net->ops.on_local)
		return FAB_TAKEN;
	if (!f->altered)
		vb_lrh_set_vl(f->bytes, it->vl);
	return net->ops.on_local(net->ops.arg, e->node, e->no, f->bytes, f->len,
				 now);
}

static void hold_item(struct vb_fab_end *e, struct item *it)
{
	if (it->vl == VB_VL_MGMT) {
		vb_fab_count(e->port, FAB_VL15_DROPPED, 1);
		fab_item_free(e->net, it);
		return;
	}
	e->holding |= (uint16_t)(1u << it->vl);
	fab_push(&e->held[it->vl], it);
}

/* Hand out a frame whose way ends at @e, where it came in, or at port 0. */
static void deliver(struct vb_fab_end *e, struct item *it, vb_time now)
{
	if (it->bad || fab_congest_hear(e, it, now))
		fab_item_free(e->net, it);
	else if (e->holding >> it->vl & 1 ||
		 hand_out_item(e, it, now) == FAB_HELD)
		hold_item(e, it);
	else
		fab_item_free(e->net, it);
}

void fab_resume(struct vb_fab_end *e, vb_time now)
{
	for (unsigned vl = 0; vl < DATA_VLS; vl++) {
		struct fifo *q = &e->held[vl];

		while (q->first && hand_out_item(e, q->first, now) == FAB_TAKEN)
			fab_item_free(e->net, fab_pop(q));
		if (!q->first)
			e->holding &= (uint16_t) ~(1u << vl);
	}
}

static struct vb_fab_end *end_of(struct vb_fab_end *e, unsigned port)
{
	return e->node->port[port].end;
}

/* Returns when the frame may begin to leave by @out. If @out is faster than
 * @in, the whole frame must be here first: a frame cut through would run out of
 * bytes. */
static vb_time ready_at(const struct vb_fab_end *in,
			const struct vb_fab_end *out, const struct item *it,
			vb_time now)
{
	vb_time from = now;

	if (in->link && out->byte_time < in->byte_time)
		from = VB_MAX(now, it->tail);
	return from + in->node->sw.latency_ns;
}

/* Send the item out of the external port @port of the switch. */
static enum vb_fab_drop forward(struct vb_fab_end *in, struct item *it,
				const struct vb_fab_view *v, unsigned port,
				vb_time now)
{
	struct vb_fab_end *out = end_of(in, port);
	enum vb_fab_drop drop;
	uint8_t vl = 0;

	drop = vb_fab_check_out(in->node, in->no, (uint8_t)port, v, &vl);
	if (drop != DROP_NOT) {
		struct vb_fab_event_info info = { .event = FAB_EV_PKEY,
						  .frame = v->bytes,
						  .len = v->len };

		fab_count_drop(drop < DROP_PKEY_OUT ? in->port : out->port,
			       drop);
		if (drop == DROP_PKEY_OUT)
			fab_event(out, &info);
		fab_item_free(in->net, it);
		return drop;
	}
	it->vl = vl;
	it->head = ready_at(in, out, it, now);
	fab_enqueue(out, it, now);
	return DROP_NOT;
}

/* Make another item for the frame and charge of @it. NULL: no memory. */
static struct item *twin(struct vb_fab_net *net, const struct item *it)
{
	struct item *copy = fab_item_new(net);

	if (!copy)
		return NULL;
	*copy = *it;
	copy->frame->refs++;
	if (copy->charge)
		copy->charge->refs++;
	return copy;
}

static void forward_mcast(struct vb_fab_end *in, struct item *it,
			  const struct vb_fab_view *v,
			  const struct vb_fab_mcast *mask, vb_time now)
{
	for (unsigned port = 0; port <= in->node->ports; port++) {
		struct item *copy;

		if (!(mask->ports[port / 64] >> port % 64 & 1))
			continue;
		copy = twin(in->net, it);
		if (!copy)
			vb_fab_count(end_of(in, port)->port, FAB_XMIT_DISCARDS,
				     1);
		else if (port)
			forward(in, copy, v, port, now);
		else
			deliver(end_of(in, 0), copy, now);
	}
	fab_item_free(in->net, it);
}

/* Handle a frame for the switch itself: a frame on VL15 is handed out at the
 * port where it came in, any other frame at port 0. */
static void deliver_in_switch(struct vb_fab_end *in, struct item *it,
			      vb_time now)
{
	deliver(it->vl == VB_VL_MGMT ? in : end_of(in, 0), it, now);
}

enum vb_fab_drop fab_relay(struct vb_fab_end *in, struct item *it, vb_time now)
{
	struct vb_fab_route r;
	struct vb_fab_view v;

	fab_view(it, &v);
	vb_fab_route(in->node, in->no, &v, &r);
	if (r.drop != DROP_NOT) {
		fab_count_drop(in->port, r.drop);
		fab_item_free(in->net, it);
		return r.drop;
	}
	if (r.mcast)
		forward_mcast(in, it, &v, &r.mask, now);
	else if (r.port == 0)
		deliver_in_switch(in, it, now);
	else
		return forward(in, it, &v,
			       in->node->sw.adaptive
				       ? fab_adaptive_port(in, &v, r.port, now)
				       : r.port,
			       now);
	return DROP_NOT;
}

/* Handle a frame that has passed the checks of the port. */
static void accept_frame(struct vb_fab_end *e, struct item *it, vb_time now)
{
	if (it->vl != VB_VL_MGMT && e->port->state == FAB_ARMED)
		fab_state_by_link(e, FAB_ACTIVE);
	if (e->node->kind == FAB_SWITCH)
		fab_relay(e, it, now);
	else if (e->node->kind == FAB_CA || !fab_router_take(e, it, now))
		deliver(e, it, now);
}

static void recv_frame(struct vb_fab_end *e, struct item *it, vb_time now)
{
	struct vb_fab_event_info info = { .event = FAB_EV_PKEY };
	struct vb_fab_view v;
	enum vb_fab_drop drop;

	count_arrival(e, it);
	/* Charge before any drop: the peer has counted this frame as sent, so
	 * it must count as arrived. */
	if (!charge_item(e, it, now) || (it->bad && !cuts_through(e->node))) {
		fab_item_free(e->net, it);
		return;
	}
	fab_view(it, &v);
	drop = vb_fab_check_in(e->node, e->no, &v);
	if (drop == DROP_NOT) {
		e->port->count[FAB_RCV_MCAST_PKTS] +=
			vb_lid_is_mcast(v.lrh.dlid);
		accept_frame(e, it, now);
		return;
	}
	fab_count_drop(e->port, drop);
	if (drop == DROP_PKEY_IN) {
		info.frame = v.bytes;
		info.len = v.len;
		fab_event(e, &info);
	}
	fab_item_free(e->net, it);
}

/* Make the item for a frame that its VCRC follows; an inverted VCRC means
 * EBP. */
static struct item *item_of_frame(struct vb_fab_net *net, const uint8_t *bytes,
				  size_t len)
{
	struct item *it = fab_item_new(net);
	struct frame *f = fab_frame_new(bytes, len);

	if (!it || !f) {
		fab_frame_drop(f);
		if (it)
			fab_item_free(net, it);
		return NULL;
	}
	f->vcrc = (uint16_t)(bytes[len] | bytes[len + 1] << 8);
	f->altered = true;
	it->frame = f;
	it->blocks = (uint16_t)vb_lrh_blocks(len);
	it->vl = bytes[0] >> 4;
	it->ends = (vb_vcrc(bytes, len) ^ f->vcrc) == 0xffff;
	return it;
}

static struct item *item_of_flow(struct vb_fab_net *net, const uint8_t *bytes,
				 size_t len)
{
	struct item *it = fab_item_new(net);

	if (!it)
		return NULL;
	it->flow_len = (uint8_t)len;
	memcpy(it->flow, bytes, len);
	return it;
}

int fab_arrive(struct vb_fab_end *e, const uint8_t *bytes, size_t len,
	       vb_time now)
{
	bool flow = len == VB_FC_BYTES || len == VB_FC_WIDE_BYTES;
	struct item *it;

	if (!flow && (len < VB_LRH_BYTES + VB_VCRC_BYTES + 1 ||
		      len > VB_LRH_FRAME_MAX + VB_VCRC_BYTES))
		return -EMSGSIZE;
	it = flow ? item_of_flow(e->net, bytes, len)
		  : item_of_frame(e->net, bytes, len - VB_VCRC_BYTES);
	if (!it)
		return -ENOMEM;
	it->head = it->tail = now;
	if (it->frame)
		fab_stir(e, now);
	fab_push(&e->wire, it);
	if (e->wire.first == it)
		fab_arm(e->net, &e->recv, now);
	return 0;
}

void fab_recv_fire(struct vb_fab_end *e, vb_time now)
{
	struct item *it;

	while ((it = e->wire.first) && fab_due(e, it) <= now) {
		fab_pop(&e->wire);
		fab_show(e, it, FAB_RECEIVED, now);
		if (!e->node)
			fab_far_deliver(e, it, now);
		else if (it->frame)
			recv_frame(e, it, now);
		else
			recv_flow(e, it, now);
	}
	if (it)
		fab_arm(e->net, &e->recv, fab_due(e, it));
}
