/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs 0 and 1. A frame becomes a MAD and its addresses. SMPs pass the
 * SMI, then the agent of their class. A Get or Set that no agent takes gets the
 * answer "unsupported". A MAD from a node to itself goes into a queue, so that
 * no agent calls itself.
 */
#include "mgmt/nodes_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "mgmt/smi.h"

/* number of frames that may wait at one port for room in the network */
#define BACKLOG_MOST 4096
#define SMP_VL	     15
#define DEFAULT_PKEY 0xffff

/* Functions that send MADs. */

static void loop_back(struct mgmt_node *n, uint8_t port, bool arrived,
		      const struct vb_mad_frame *f, const uint8_t *mad)
{
	struct looped *l = malloc(sizeof(*l));

	if (!l)
		/* Without memory the MAD is lost, which the network allows. */
		return;
	l->next = NULL;
	l->node = n;
	l->port = port;
	l->arrived = arrived;
	l->frame = *f;
	memcpy(l->mad, mad, VB_MAD_BYTES);
	*n->m->last = l;
	n->m->last = &l->next;
}

static void send_later(struct mgmt_port *p, const uint8_t *bytes, size_t len)
{
	struct waiting *w;

	if (p->backlog == BACKLOG_MOST)
		return;
	w = malloc(sizeof(*w));
	if (!w)
		return;
	w->next = NULL;
	w->len = len;
	memcpy(w->bytes, bytes, len);
	*p->last = w;
	p->last = &w->next;
	p->backlog++;
}

static int send_now(struct mgmt_node *n, uint8_t port, const uint8_t *bytes,
		    size_t len, vb_time now)
{
	return n->m->ops.send(n->m->ops.arg, n->node, port, bytes, len, now);
}

static void send_mad_frame(struct mgmt_node *n, uint8_t port,
			   const struct vb_mad_frame *f, const uint8_t *mad,
			   vb_time now)
{
	struct mgmt_port *p = &n->port[port];
	uint8_t bytes[VB_MAD_FRAME_MAX];
	size_t len = vb_mad_frame_put(bytes, f, mad);

	if (f->vl != SMP_VL && p->backlog)
		send_later(p, bytes, len);
	else if (send_now(n, port, bytes, len, now) == -EAGAIN)
		send_later(p, bytes, len);
}

static void send_directed(struct mgmt_node *n, uint8_t port, const uint8_t *mad,
			  vb_time now)
{
	const struct vb_mad_frame f = {
		.vl = SMP_VL,
		.slid = VB_LID_PERMISSIVE,
		.dlid = VB_LID_PERMISSIVE,
		.pkey = DEFAULT_PKEY,
	};

	send_mad_frame(n, port, &f, mad, now);
}

/* Send a MAD to a LID, from the port that has this node's LID: at an adapter
 * @port; at a switch port 0, which routes the frame. */
static void send_by_lid(struct mgmt_node *n, uint8_t port,
			const struct vb_mad_frame *f, const uint8_t *mad,
			vb_time now)
{
	uint8_t own = vb_sma_own_port(n->node, port);

	if (vb_fab_is_own_lid(n->node, own, f->dlid))
		loop_back(n, own ? own : port, false, f, mad);
	else if (f->dlid == VB_LID_PERMISSIVE)
		send_mad_frame(n, port, f, mad, now);
	else
		send_mad_frame(n, own, f, mad, now);
}

static void send_smp_by_lid(struct mgmt_node *n, uint8_t port, uint16_t dlid,
			    uint8_t sl, const uint8_t *mad, vb_time now)
{
	const struct vb_mad_frame f = {
		.vl = SMP_VL,
		.sl = sl,
		.slid = n->node->port[vb_sma_own_port(n->node, port)].lid,
		.dlid = dlid,
		.pkey = DEFAULT_PKEY,
	};

	send_by_lid(n, port, &f, mad, now);
}

/* Functions that handle subnet management packets (SMPs). */

static void hear_arrived(struct mgmt_node *n, uint8_t port,
			 const struct vb_mad_frame *f, uint8_t *mad,
			 vb_time now);

/* Carry out what the subnet management interface (SMI) decides for the SMP
 * @mad: send it on, or hand it to an agent of this node. @in: the port by which
 * the SMP came; 0: the SMP begins at this node. */
static void step(struct mgmt_node *n, uint8_t in, uint8_t port,
		 const struct vb_mad_frame *f, uint8_t *mad, vb_time now)
{
	struct vb_smi_verdict v = vb_smi_step(n->node, in, mad);

	if (v.action == SMI_OUT)
		send_directed(n, v.port, mad, now);
	else if (v.action == SMI_ROUTE)
		send_smp_by_lid(n, port, v.dlid, f->sl, mad, now);
	else if (v.action == SMI_HERE && in != 0)
		hear_arrived(n, port, f, mad, now);
	else if (v.action == SMI_HERE)
		loop_back(n, port, true, f, mad);
}

/* Does the directed route of an SMP begin at this node? False: the SMP first
 * goes a part of its way by LID. */
static bool begins_here(const struct vb_smp_hdr *h)
{
	uint16_t first = h->status & VB_SMP_DIRECTION ? h->dr_dlid : h->dr_slid;

	return h->class == MAD_CLASS_SMP_DIRECTED && first == VB_LID_PERMISSIVE;
}

/* Send an SMP of this node: an answer, a trap, or an SMP of a program. */
static void send_smp(struct mgmt_node *n, uint8_t port, uint16_t dlid,
		     uint8_t sl, uint8_t *mad, vb_time now)
{
	const struct vb_mad_frame local = {
		.vl = SMP_VL,
		.slid = VB_LID_PERMISSIVE,
		.dlid = VB_LID_PERMISSIVE,
		.pkey = DEFAULT_PKEY,
	};
	struct vb_smp_hdr h;

	vb_smp_hdr_get(mad, &h);
	if (begins_here(&h))
		step(n, 0, port, &local, mad, now);
	else
		send_smp_by_lid(n, port, dlid, sl, mad, now);
}

static void tell(struct mgmt_node *n, uint8_t own, const struct vb_trap *t,
		 vb_time now)
{
	const struct vb_fab_port *p = &n->node->port[own];
	uint8_t mad[VB_MAD_BYTES];

	if (vb_traps_begin(&n->traps, &n->m->traps, n->node, own, t, mad, now))
		send_smp(n, own, p->sm_lid, p->sm_sl, mad, now);
}

static struct vb_mad_addr nodes_address_of(const struct mgmt_node *n,
					   uint8_t own,
					   const struct vb_mad_frame *f)
{
	const struct vb_fab_port *p = &n->node->port[own];
	int pkey = vb_fab_find_pkey(p, f->pkey);

	return (struct vb_mad_addr){
		.qpn = f->sqpn,
		.qkey = f->dqpn == VB_GSI_QPN ? VB_GSI_QKEY : 0,
		.lid = f->slid,
		.sl = f->sl,
		.path_bits = (uint8_t)(f->dlid & ((1u << p->lmc) - 1)),
		.global = f->global,
		.hop_limit = f->hop_limit,
		.tclass = f->tclass,
		.flow_label = f->flow_label,
		.gid = f->sgid,
		.pkey_index = (uint16_t)(pkey < 0 ? 0 : pkey),
	};
}

static bool is_get_or_set(const uint8_t *mad)
{
	return mad[3] == MAD_GET || mad[3] == MAD_SET;
}

/* Turn the request @mad into the answer "unsupported attribute". */
static void nodes_refuse(uint8_t *mad)
{
	unsigned status = MAD_BAD_ATTRIBUTE;

	if (mad[1] == MAD_CLASS_SMP_DIRECTED)
		status |= VB_SMP_DIRECTION;
	mad[3] = MAD_GET_RESP;
	vb_store_be(mad + 4, status, 2);
}

static bool for_agents(struct mgmt_node *n, uint8_t own,
		       const struct vb_mad_frame *f, const uint8_t *mad,
		       vb_time now)
{
	struct vb_mad_addr from = nodes_address_of(n, own, f);
	struct vb_agents *a = n->port[own].agents;

	return a && vb_agents_hear(a, &from, mad, now);
}

static void hear_for_program(struct mgmt_node *n, uint8_t port,
			     const struct vb_mad_frame *f, uint8_t *mad,
			     vb_time now)
{
	uint8_t own = vb_sma_own_port(n->node, port);

	if (mad[3] == MAD_TRAP_REPRESS &&
	    vb_traps_repress(&n->traps, &n->m->traps, vb_load_be(mad + 8, 8)))
		return;
	if (for_agents(n, own, f, mad, now) || !is_get_or_set(mad))
		return;
	nodes_refuse(mad);
	send_smp(n, port, f->slid, f->sl, mad, now);
}

/* Handles an SMP whose route ends at this node. */
static void hear_arrived(struct mgmt_node *n, uint8_t port,
			 const struct vb_mad_frame *f, uint8_t *mad,
			 vb_time now)
{
	struct vb_trap t;

	switch (vb_sma_hear(&n->m->sma, n->node, port, mad, now)) {
	case SMA_ANSWERED:
		send_smp(n, port, f->slid, f->sl, mad, now);
		break;
	case SMA_NOT_MINE:
		hear_for_program(n, port, f, mad, now);
		break;
	case SMA_BAD_MKEY:
		vb_trap_bad_mkey(&t, f->slid, mad);
		tell(n, vb_sma_own_port(n->node, port), &t, now);
		break;
	}
}

static void hear_smp(struct mgmt_node *n, uint8_t port,
		     const struct vb_mad_frame *f, uint8_t *mad, vb_time now)
{
	if (f->vl != SMP_VL || f->sqpn != 0)
		return;
	if (mad[1] == MAD_CLASS_SMP_DIRECTED)
		step(n, port, port, f, mad, now);
	else if (mad[1] == MAD_CLASS_SMP)
		hear_arrived(n, port, f, mad, now);
}

/* Functions that handle MADs to queue pair 1. */

static bool may_enter(struct mgmt_node *n, uint8_t own,
		      const struct vb_mad_frame *f, vb_time now)
{
	struct vb_fab_port *p = &n->node->port[own];
	struct vb_trap t;

	if (vb_fab_find_pkey(p, f->pkey) < 0) {
		vb_fab_count_violation(&p->pkey_violations);
		vb_trap_bad_key(&t, TRAP_BAD_PKEY, f);
	} else if (f->qkey != VB_GSI_QKEY) {
		vb_fab_count_violation(&p->qkey_violations);
		vb_trap_bad_key(&t, TRAP_BAD_QKEY, f);
	} else {
		return true;
	}
	tell(n, own, &t, now);
	return false;
}

/* Returns the headers of the frame that brings a MAD to the address @to. */
static struct vb_mad_frame frame_to(const struct mgmt_node *n, uint8_t own,
				    const struct vb_mad_addr *to)
{
	const struct vb_fab_port *p = &n->node->port[own];
	struct vb_mad_frame f = {
		.sl = to->sl & 15,
		.slid = (uint16_t)(p->lid |
				   (to->path_bits & ((1u << p->lmc) - 1))),
		.dlid = to->lid,
		.global = to->global,
		.dgid = to->gid,
		.tclass = to->tclass,
		.hop_limit = to->hop_limit,
		.flow_label = to->flow_label & 0xfffff,
		.pkey = p->pkey[to->pkey_index < p->pkeys ? to->pkey_index : 0],
		.sqpn = VB_GSI_QPN,
		.dqpn = to->qpn & 0xffffff,
		.qkey = to->qkey,
	};
	uint64_t guid =
		p->guids[to->gid_index < p->guid_cap ? to->gid_index : 0];

	if (to->global) {
		vb_store_be(f.sgid.raw, p->gid_prefix, 8);
		vb_store_be(f.sgid.raw + 8, guid, 8);
	}
	return f;
}

static void answer_gmp(struct mgmt_node *n, uint8_t own,
		       const struct vb_mad_frame *f, const uint8_t *mad,
		       vb_time now)
{
	struct vb_mad_addr to = nodes_address_of(n, own, f);
	struct vb_mad_frame answer = frame_to(n, own, &to);

	send_by_lid(n, own, &answer, mad, now);
}

static bool hear_perf(struct mgmt_node *n, uint8_t *mad, vb_time now)
{
	const struct vb_mgmt_ops *o = &n->m->ops;

	for (unsigned i = 0; o->count_waits && i <= n->node->ports; i++)
		o->count_waits(o->arg, n->node, (uint8_t)i, now);
	return vb_pma_hear(n->pma, mad, now);
}

/* Let the node's agent for congestion control handle @mad, and send its answer
 * or trap. True: the agent has handled @mad. */
static bool hear_congestion(struct mgmt_node *n, uint8_t own,
			    const struct vb_mad_frame *f, uint8_t *mad,
			    vb_time now)
{
	uint8_t trap[VB_MAD_BYTES];
	struct vb_mad_addr to;
	struct vb_mad_frame out;

	switch (vb_cca_hear(n->cca, own, mad, now)) {
	case CCA_ANSWERED:
		answer_gmp(n, own, f, mad, now);
		return true;
	case CCA_BAD_KEY:
		if (!vb_cca_trap(n->cca, own, f, mad, trap, &to, now))
			return true;
		out = frame_to(n, own, &to);
		send_by_lid(n, own, &out, trap, now);
		return true;
	case CCA_NOT_MINE:
		break;
	}
	return false;
}

/* True: the agent for device management has written the answer to @mad. */
static bool hear_device(struct mgmt_node *n, uint8_t own, uint8_t *mad)
{
	return mad[1] == MAD_CLASS_DEVICE && n->iou &&
	       vb_iou_hear(n->iou, own, mad);
}

/* Hand a MAD to queue pair 1 of the node to an agent. Programs' agents come
 * before the node's own agent for device management, since a program may play
 * the target. */
static void hear_gmp(struct mgmt_node *n, uint8_t port,
		     const struct vb_mad_frame *f, uint8_t *mad, vb_time now)
{
	uint8_t own = vb_sma_own_port(n->node, port);

	if (f->vl == SMP_VL || !may_enter(n, own, f, now))
		return;
	if (mad[1] == MAD_CLASS_PERF && hear_perf(n, mad, now)) {
		answer_gmp(n, own, f, mad, now);
		return;
	}
	if (mad[1] == MAD_CLASS_CC && hear_congestion(n, own, f, mad, now))
		return;
	if (for_agents(n, own, f, mad, now))
		return;
	if (!hear_device(n, own, mad)) {
		if (!is_get_or_set(mad))
			return;
		nodes_refuse(mad);
	}
	answer_gmp(n, own, f, mad, now);
}

/* Functions that take the frames and events of the network. */

bool vb_mgmt_hear(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		  const uint8_t *bytes, size_t len, vb_time now)
{
	struct mgmt_node *n = node->mgmt;
	uint8_t copy[VB_MAD_BYTES];
	enum vb_mad_frame_fault fault;
	struct vb_mad_frame f;
	const uint8_t *mad;

	fault = vb_mad_frame_get(bytes, len, &f, &mad);
	if (fault == MAD_FRAME_ICRC)
		/* the frame was for QP0 or QP1 and is dropped; no counter has
		 * such drops */
		return f.dqpn <= VB_GSI_QPN;
	if (fault != MAD_FRAME_GOOD || f.dqpn > VB_GSI_QPN)
		return false;
	memcpy(copy, mad, VB_MAD_BYTES);
	if (f.dqpn == 0)
		hear_smp(n, port, &f, copy, now);
	else
		hear_gmp(n, port, &f, copy, now);
	return true;
}

/* The transmit function of the agents of a port: send a MAD from the port
 * @arg. */
void vb_mgmt_transmit(void *arg, unsigned qpn, const struct vb_mad_addr *to,
		      const uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct mgmt_port *p = arg;
	struct mgmt_node *n = p->owner;
	uint8_t copy[VB_MAD_BYTES];
	struct vb_mad_frame f;

	memcpy(copy, mad, VB_MAD_BYTES);
	if (qpn == 0) {
		send_smp(n, p->port, to->lid, to->sl, copy, now);
		return;
	}
	f = frame_to(n, p->port, to);
	send_by_lid(n, p->port, &f, copy, now);
}

void vb_mgmt_state_changed(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, vb_time now)
{
	struct vb_trap t;

	/* No trap is sent: only the subnet manager itself makes a port Armed or
	 * Active. */
	if (node->kind != FAB_SWITCH || node->port[port].state > FAB_INIT)
		return;
	vb_trap_link_state(&t, node);
	tell(node->mgmt, 0, &t, now);
}

void vb_mgmt_link_error(struct vb_mgmt *m, struct vb_fab_node *node,
			uint8_t port, enum vb_trap_number number, vb_time now)
{
	uint8_t own = vb_sma_own_port(node, port);
	struct vb_trap t;

	vb_trap_link_error(&t, node, own, number, port);
	tell(node->mgmt, own, &t, now);
}

void vb_mgmt_pkey_violated(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, const uint8_t *bytes, size_t len,
			   vb_time now)
{
	struct vb_trap t;

	vb_trap_switch_pkey(&t, node, port, bytes, len);
	tell(node->mgmt, 0, &t, now);
}

static void send_backlog(struct mgmt_node *n, uint8_t port, vb_time now)
{
	struct mgmt_port *p = &n->port[port];

	while (p->first) {
		struct waiting *w = p->first;

		if (send_now(n, port, w->bytes, w->len, now) == -EAGAIN)
			return;
		p->first = w->next;
		if (!p->first)
			p->last = &p->first;
		p->backlog--;
		free(w);
	}
}

/* At a switch, frames that the switch itself sends wait at port 0, by whatever
 * port they will leave. */
void vb_mgmt_room(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		  vb_time now)
{
	uint8_t own = vb_sma_own_port(node, port);

	send_backlog(node->mgmt, port, now);
	if (own != port)
		send_backlog(node->mgmt, own, now);
}

void vb_mgmt_set_caps(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		      uint32_t bits, bool on, vb_time now)
{
	struct vb_fab_port *p = &node->port[port];
	uint32_t mask = on ? p->cap_mask | bits : p->cap_mask & ~bits;
	struct vb_trap t;

	if (mask == p->cap_mask)
		return;
	p->cap_mask = mask;
	vb_trap_capabilities(&t, node, port);
	tell(node->mgmt, port, &t, now);
}

/* Functions for time-outs and for MADs that a node sent to itself. */

static void hear_looped(struct looped *l, vb_time now)
{
	if (l->arrived)
		hear_arrived(l->node, l->port, &l->frame, l->mad, now);
	else if (l->frame.dqpn == 0)
		hear_smp(l->node, l->port, &l->frame, l->mad, now);
	else if (l->frame.dqpn == VB_GSI_QPN)
		hear_gmp(l->node, l->port, &l->frame, l->mad, now);
}

vb_time vb_mgmt_next(const struct vb_mgmt *m)
{
	if (m->first)
		return 0;
	return VB_MIN(
		VB_MIN(vb_timers_next(&m->moves), vb_timers_next(&m->samples)),
		VB_MIN(vb_timers_next(&m->exchanges),
		       vb_timers_next(&m->traps)));
}

static void repeat_trap(struct vb_timer *t, struct vb_mgmt *m, vb_time now)
{
	struct vb_trap_pending *p =
		VB_CONTAINER_OF(t, struct vb_trap_pending, timer);
	struct mgmt_node *n =
		VB_CONTAINER_OF(p->owner, struct mgmt_node, traps);
	const struct vb_fab_port *port = &n->node->port[p->own];
	uint8_t mad[VB_MAD_BYTES];

	if (!vb_traps_repeat(p, &m->traps, n->node, now))
		return;
	memcpy(mad, p->mad, VB_MAD_BYTES);
	send_smp(n, p->own, port->sm_lid, port->sm_sl, mad, now);
}

static void end_of_sample_time(struct vb_pma *pma, struct vb_mgmt *m,
			       vb_time now)
{
	if (m->ops.count_waits)
		m->ops.count_waits(m->ops.arg, vb_pma_node(pma),
				   vb_pma_sampled_port(pma), now);
	vb_pma_expire(pma, now);
}

/* A Set of PortInfo has been answered: change the states for which it asked as
 * soon as the answer has passed the link. */
static void move_link(struct vb_timer *t, struct vb_mgmt *m, vb_time now)
{
	struct mgmt_port *p = VB_CONTAINER_OF(t, struct mgmt_port, move);
	struct vb_fab_node *node = p->owner->node;
	const struct vb_mgmt_ops *o = &m->ops;

	if (!p->answer_leaves) {
		vb_time at = o->through(o->arg, node, p->port, now);

		p->answer_leaves = at > now;
		if (at > now && vb_timer_set(&m->moves, &p->move, at) == 0)
			return;
	}
	p->answer_leaves = false;
	if (p->move_phys)
		(void)!o->set_phys(o->arg, node, p->port,
				   (enum vb_fab_phys)p->move_phys, now);
	if (p->move_state)
		(void)!o->set_state(o->arg, node, p->port,
				    (enum vb_fab_state)p->move_state, now);
	p->move_phys = p->move_state = 0;
}

void vb_mgmt_run(struct vb_mgmt *m, vb_time now)
{
	struct vb_timer *t;

	while ((t = vb_timers_pop(&m->moves, now)))
		move_link(t, m, now);
	while ((t = vb_timers_pop(&m->samples, now)))
		end_of_sample_time(vb_pma_of(t), m, now);
	while ((t = vb_timers_pop(&m->exchanges, now)))
		vb_agents_expire(t, now);
	while ((t = vb_timers_pop(&m->traps, now)))
		repeat_trap(t, m, now);
	while (m->first) {
		struct looped *l = m->first;

		m->first = l->next;
		if (!m->first)
			m->last = &m->first;
		hear_looped(l, now);
		free(l);
	}
}
