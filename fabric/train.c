/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: how they come up, go down and recover, and when their ends repeat link
 * packets.
 *
 *     Polling -> Training -> LinkUp       physical, both ends together
 *     Down -> Init -> Armed -> Active     logical; Init by training, the others
 *                                         by management, Active also by data
 *
 * A link whose watchdog sees no link packets for too long goes to Recovery: its
 * ends keep the logical state and the queues, but lose what is on the wire.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/net_priv.h"

#define STANDARD_BLOCKS 2048
/* blocks of 64 bytes in one frame of 4096 bytes with all headers */
#define LEAST_BLOCKS 66
#define MOST_BLOCKS  (1u << 23) /* half the range of a 24-bit credit count */

/* The ends of a link to another process repeat link packets each FAR_PERIOD
 * until FAR_BUSY after the last frame, and each FAR_IDLE later: a packet costs
 * more there than within a process. Their watchdog is longer, too, for the
 * other process may have to wait for a processor. */
#define FAR_PERIOD   VB_MSEC
#define FAR_BUSY     (20 * VB_MSEC)
#define FAR_IDLE     (100 * VB_MSEC)
#define FAR_WATCHDOG (3 * VB_SEC)

static struct vb_fab_end *end_at(const struct vb_fab_node *node, uint8_t port)
{
	if (port > node->ports || (port == 0 && node->kind == FAB_CA))
		return NULL;
	return node->port[port].end;
}

/* Returns the end of the external port @port; NULL: the port has no link. */
static struct vb_fab_end *linked_end(const struct vb_fab_node *node,
				     uint8_t port)
{
	struct vb_fab_end *e = end_at(node, port);

	return e && e->link ? e : NULL;
}

/* Returns the nanoseconds of a symbol: the time of ten bits at the rate of one
 * lane (IBA 5.6). */
static vb_time symbol_ns(const struct vb_fab_port *p)
{
	if (p->speed_ext_active || p->speed_active >= FAB_QDR)
		return 1;
	return p->speed_active == FAB_DDR ? 2 : 4;
}

vb_time fab_fc_period(const struct vb_fab_end *e)
{
	const struct link *l = e->link;

	if (l && l->far)
		return e->net->now < l->busy_until ? FAR_PERIOD : FAR_IDLE;
	return VB_FC_PERIOD * symbol_ns(e->port);
}

vb_time fab_fc_period_number(const struct vb_fab_end *e, vb_time now)
{
	return now / (e->link && e->link->far
			      ? FAR_PERIOD
			      : VB_FC_PERIOD * symbol_ns(e->port));
}

void fab_stir(struct vb_fab_end *e, vb_time now)
{
	struct link *l = e->link;

	if (!l || !l->far || e->port->phys != FAB_LINK_UP)
		return;
	l->busy_until = now + FAR_BUSY;
	fab_arm_by(e->net, &l->a->flow_alarm, now + FAR_PERIOD);
}

bool fab_is_noisy(const struct link *l, vb_time now)
{
	const struct vb_fab_link_spec *s = &l->spec;

	return s->lose | s->corrupt | s->lose_flow | s->corrupt_flow ||
	       l->far || now < l->noisy_until;
}

static void tell_state(struct vb_fab_end *e, bool by_management)
{
	struct vb_fab_event_info info = { .event = FAB_EV_STATE,
					  .by_management = by_management };

	e->net->changes++;
	fab_event(e, &info);
}

void fab_state_by_link(struct vb_fab_end *e, enum vb_fab_state state)
{
	bool counts = state == FAB_DOWN || e->port->state == FAB_DOWN;

	if (e->port->state == state)
		return;
	e->port->state = (uint8_t)state;
	/* A switch notes a change to or from Down, not Armed to Active (IBA
	 * 14.2.5.4). */
	if (counts && e->node->kind == FAB_SWITCH)
		e->node->sw.state_change = true;
	tell_state(e, false);
}

/* Set the link's rate: the rate that vb_fab_connect()'s caller chose, or else
 * the rate of the ports' width and speed. */
static void set_rate(struct vb_fab_end *e)
{
	const struct vb_fab_link_spec *s = &e->link->spec;
	uint64_t rate = s->bytes_per_sec ? s->bytes_per_sec
					 : vb_fab_bytes_per_sec(e->port);

	e->byte_time = 0;
	if (!s->unpaced && rate)
		e->byte_time = (VB_SEC << FRACTION) / rate;
}

/* Returns the highest bit that is set in both @a and @b. */
static uint8_t best(uint8_t a, uint8_t b)
{
	unsigned both = a & b;

	return both ? (uint8_t)(1u << (31 - __builtin_clz(both))) : 0;
}

/* Lanes are compared by number, since the bit of 2x is above that of 12x. */
static uint8_t best_width(uint8_t a, uint8_t b)
{
	uint8_t both = a & b, wide = both & (FAB_4X | FAB_8X | FAB_12X);

	if (wide)
		return best(wide, wide);
	return both & FAB_2X ? FAB_2X : both & FAB_1X;
}

static bool negotiate(struct link *l)
{
	struct vb_fab_port *a = l->a->port, *b = l->b->port;
	uint8_t width = best_width(a->width_enabled & a->width_supported,
				   b->width_enabled & b->width_supported);
	uint8_t speed = best(a->speed_enabled & a->speed_supported,
			     b->speed_enabled & b->speed_supported);
	uint8_t ext = best(a->speed_ext_enabled & a->speed_ext_supported,
			   b->speed_ext_enabled & b->speed_ext_supported);

	if (!width || !(speed | ext))
		return false;
	a->width_active = b->width_active = width;
	a->speed_active = b->speed_active = speed;
	a->speed_ext_active = b->speed_ext_active = ext;
	return true;
}

/* Returns a buffer's size for a long link: the blocks that arrive in a round
 * trip, a quarter more because a receiver gathers some before it sends a link
 * packet, and the standard buffer; at most what 24 bits count. */
static uint32_t blocks_of_length(const struct vb_fab_end *e)
{
	const struct vb_fab_link_spec *s = &e->link->spec;
	double rate =
		(double)(s->bytes_per_sec ? s->bytes_per_sec
					  : vb_fab_bytes_per_sec(e->port));
	double blocks = 2. * (double)s->delay * rate / VB_SEC / VB_BLOCK_BYTES;

	blocks = blocks * 5 / 4 + STANDARD_BLOCKS;
	return blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS;
}

static uint32_t buffer_blocks(const struct vb_fab_end *e)
{
	const struct vb_fab_link_spec *s = &e->link->spec;

	if (s->buffer)
		return VB_MAX(s->buffer, (uint32_t)LEAST_BLOCKS);
	return s->extended ? blocks_of_length(e) : STANDARD_BLOCKS;
}

static void start_flow(struct vb_fab_end *e, vb_time now)
{
	const struct vb_fab_link_spec *s = &e->link->spec;
	unsigned vls = vb_fab_vls(e->port->vl_cap);

	for (unsigned vl = 0; vl < DATA_VLS; vl++) {
		vb_fc_init(&e->flow[vl], s->extended, buffer_blocks(e));
		e->heard[vl] = vl ? VB_NEVER : now;
	}
	e->tell = e->init = (uint16_t)((1u << vls) - 1);
	e->arb = (struct vb_arb){ 0 };
	e->errors = (struct vb_fab_errors){ 0 };
	e->busy = now;
	e->carry = 0;
	set_rate(e);
	fab_kick(e, now);
	fab_stir(e, now);
	if (fab_is_noisy(e->link, now))
		fab_arm_by(e->net, &e->flow_alarm, now + fab_fc_period(e));
}

static void lose_link(struct vb_fab_end *e, bool by_management)
{
	struct vb_fab_port *p = e->port;
	bool was_up = p->state != FAB_DOWN;

	if (p->phys != FAB_DISABLED)
		p->phys = FAB_POLLING;
	fab_flush_wire(e);
	fab_disarm(e->net, &e->flow_alarm);
	if (was_up && !by_management)
		vb_fab_count(p, FAB_LINK_DOWNED, 1);
	p->width_active = p->speed_active = p->speed_ext_active = 0;
	if (!was_up)
		return;
	p->state = FAB_DOWN;
	if (!by_management && e->node->kind == FAB_SWITCH)
		e->node->sw.state_change = true;
	fab_flush_lanes(e);
}

void fab_take_down(struct link *l, const struct vb_fab_end *by)
{
	bool up_a = l->a->port->state != FAB_DOWN;
	bool up_b = l->b->port->state != FAB_DOWN;

	if (l->far)
		l->far->port.phys = FAB_DISABLED;
	l->training = false;
	fab_disarm(l->a->net, &l->train);
	lose_link(l->a, l->a == by);
	lose_link(l->b, l->b == by);
	if (up_a)
		tell_state(l->a, l->a == by);
	if (up_b)
		tell_state(l->b, l->b == by);
	fab_far_tell(l);
}

/* Begin to train if the cable is plugged in and neither end is disabled. */
void fab_try_train(struct link *l, vb_time now)
{
	struct vb_fab_port *a = l->a->port, *b = l->b->port;

	if (!l->plugged || l->training || a->phys == FAB_DISABLED ||
	    b->phys == FAB_DISABLED || a->phys == FAB_LINK_UP)
		return;
	l->training = true;
	if (a->phys != FAB_RECOVERY)
		a->phys = b->phys = FAB_TRAINING;
	fab_arm(l->a->net, &l->train, now + VB_FAB_TRAIN_NS);
}

void fab_train_fire(struct link *l, vb_time now)
{
	struct vb_fab_end *ends[2] = { l->a, l->b };

	l->training = false;
	if (!negotiate(l)) {
		fab_take_down(l, NULL);
		return;
	}
	for (int i = 0; i < 2; i++)
		ends[i]->port->phys = FAB_LINK_UP;
	for (int i = 0; i < 2; i++)
		if (ends[i]->node)
			start_flow(ends[i], now);
	for (int i = 0; i < 2; i++)
		if (ends[i]->node && ends[i]->port->state == FAB_DOWN)
			fab_state_by_link(ends[i], FAB_INIT);
}

/* Retrain, because the flow control watchdog expired at @e (IBA 7.9.4.1). With
 * another process the ends agree anew, so there the link goes down. */
static void retrain_stuck(struct vb_fab_end *e, vb_time now)
{
	struct vb_fab_event_info info = { .event = FAB_EV_WATCHDOG };
	struct link *l = e->link;
	struct vb_fab_end *ends[2] = { l->a, l->b };

	if (l->far) {
		fab_event(e, &info);
		fab_take_down(l, NULL);
		return;
	}
	for (int i = 0; i < 2; i++) {
		fab_flush_wire(ends[i]);
		fab_disarm(e->net, &ends[i]->flow_alarm);
		ends[i]->port->phys = FAB_RECOVERY;
		vb_fab_count(ends[i]->port, FAB_LINK_RECOVERIES, 1);
	}
	fab_try_train(l, now);
	fab_event(e, &info);
}

/* Has any VL waited too long for a link packet? VL0 counts always; another VL
 * counts only if the peer has sent a link packet for it since training, because
 * the peer may have fewer VLs. */
static bool watchdog_bites(const struct vb_fab_end *e, vb_time now)
{
	vb_time most = e->link->far ? FAR_WATCHDOG
				    : VB_FC_WATCHDOG * symbol_ns(e->port);

	most += 2 * e->link->spec.delay;

	for (unsigned vl = 0; vl < DATA_VLS; vl++)
		if (e->heard[vl] != VB_NEVER && now - e->heard[vl] > most)
			return true;
	return false;
}

/* The time to repeat link packets has come. On a link that loses nothing the
 * ends send only what changed: so thousands of idle links cost nothing. */
void fab_fc_fire(struct vb_fab_end *e, vb_time now)
{
	bool noisy = fab_is_noisy(e->link, now);
	unsigned vls = vb_fab_vls(e->port->vl_cap);

	if (!e->node || e->port->phys != FAB_LINK_UP)
		return;
	if (noisy && watchdog_bites(e, now)) {
		retrain_stuck(e, now);
		return;
	}
	/* Send a link packet for every VL that the port has: the subnet manager
	 * makes only some VLs operational, and this code does not learn
	 * which. */
	for (unsigned vl = 0; vl < vls; vl++)
		if (noisy || !vb_fc_is_told(&e->flow[vl]))
			e->tell |= (uint16_t)(1u << vl);
	fab_kick(e, now);
	if (noisy)
		fab_arm_by(e->net, &e->flow_alarm, now + fab_fc_period(e));
}

static int add_link(struct vb_fab_net *net, struct link *l)
{
	if (net->links == net->link_room) {
		uint32_t room = VB_MAX(2 * net->link_room, 16u);
		struct link **more =
			reallocarray(net->link, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		net->link = more;
		net->link_room = room;
	}
	net->link[net->links++] = l;
	return 0;
}

static void join_ends(struct vb_fab_end *e, struct vb_fab_end *peer,
		      struct link *l)
{
	e->link = l;
	e->peer = peer;
	e->port->connected = true;
}

int fab_link_make(struct vb_fab_end *a, struct vb_fab_end *b,
		  const struct vb_fab_link_spec *spec, vb_time now,
		  struct link **made)
{
	struct vb_fab_net *net = a->net;
	struct link *l;

	if (a->link || b->link)
		return -EEXIST;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct link){ .a = a, .b = b, .spec = *spec, .plugged = true };
	l->train.kind = TIMER_TRAIN;
	l->train.owner = l;
	vb_timer_init(&l->train.timer);
	if (fab_reserve_alarms(net, 1) || add_link(net, l)) {
		free(l);
		return -ENOMEM;
	}
	net->now = VB_MAX(net->now, now);
	join_ends(a, b, l);
	join_ends(b, a, l);
	*made = l;
	return 0;
}

int vb_fab_link(struct vb_fab_net *net, struct vb_fab_node *a, uint8_t a_port,
		struct vb_fab_node *b, uint8_t b_port,
		const struct vb_fab_link_spec *spec, vb_time now)
{
	struct vb_fab_end *ea = a_port ? end_at(a, a_port) : NULL;
	struct vb_fab_end *eb = b_port ? end_at(b, b_port) : NULL;
	struct link *l;
	int rc;

	if (!ea || !eb || ea == eb)
		return -EINVAL;
	rc = fab_link_make(ea, eb, spec, now, &l);
	if (!rc)
		fab_try_train(l, net->now);
	return rc;
}

struct vb_fab_node *vb_fab_peer(const struct vb_fab_node *node, uint8_t port,
				uint8_t *peer_port)
{
	struct vb_fab_end *e = linked_end(node, port);

	if (!e)
		return NULL;
	*peer_port = e->peer->no;
	return e->peer->node;
}

/* Restart the watchdog of each VL, because on a link without losses the peer
 * did not repeat its link packets. */
static void hear_afresh(struct vb_fab_end *e, vb_time now)
{
	for (unsigned vl = 0; vl < DATA_VLS; vl++)
		if (e->heard[vl] != VB_NEVER)
			e->heard[vl] = now;
}

int vb_fab_tune(struct vb_fab_net *net, struct vb_fab_node *node, uint8_t port,
		const struct vb_fab_link_spec *spec, vb_time now)
{
	struct vb_fab_end *e = linked_end(node, port);
	struct link *l;

	if (!e)
		return -EINVAL;
	l = e->link;
	net->now = VB_MAX(net->now, now);
	/* The link lost packets until now, so credits may be lost: repeat the
	 * link packets a few times more, so that the peer learns the present
	 * totals. */
	if (fab_is_noisy(l, net->now))
		l->noisy_until = net->now + 3 * VB_FC_PERIOD * 4 +
				 2 * (l->spec.delay + spec->delay);
	l->spec = *spec;
	set_rate(l->a);
	set_rate(l->b);
	if (l->a->port->phys != FAB_LINK_UP || !fab_is_noisy(l, net->now))
		return 0;
	hear_afresh(l->a, net->now);
	hear_afresh(l->b, net->now);
	fab_arm_by(net, &l->a->flow_alarm, net->now);
	fab_arm_by(net, &l->b->flow_alarm, net->now);
	return 0;
}

int vb_fab_plug(struct vb_fab_net *net, struct vb_fab_node *node, uint8_t port,
		bool in, vb_time now)
{
	struct vb_fab_end *e = linked_end(node, port);

	if (!e)
		return -EINVAL;
	net->now = VB_MAX(net->now, now);
	if (e->link->plugged == in)
		return 0;
	e->link->plugged = in;
	if (!in)
		fab_take_down(e->link, NULL);
	else if (e->link->far)
		fab_far_tell(e->link);
	else
		fab_try_train(e->link, net->now);
	return 0;
}

int vb_fab_set_state(struct vb_fab_net *net, struct vb_fab_node *node,
		     uint8_t port, enum vb_fab_state state, vb_time now)
{
	struct vb_fab_end *e = port ? end_at(node, port) : NULL;

	if (!e)
		return -EINVAL;
	net->now = VB_MAX(net->now, now);
	if (state == FAB_DOWN) {
		if (e->link) {
			fab_take_down(e->link, e);
			fab_try_train(e->link, net->now);
		}
		return 0;
	}
	if (state == e->port->state)
		return 0;
	if (state != FAB_ARMED && state != FAB_ACTIVE)
		return -EINVAL;
	if (e->port->state + 1 != (int)state)
		return -EINVAL;
	e->port->state = (uint8_t)state;
	tell_state(e, true);
	return 0;
}

int vb_fab_set_phys(struct vb_fab_net *net, struct vb_fab_node *node,
		    uint8_t port, enum vb_fab_phys phys, vb_time now)
{
	struct vb_fab_end *e = port ? end_at(node, port) : NULL;

	if (!e ||
	    (phys != FAB_DISABLED && phys != FAB_POLLING && phys != FAB_SLEEP))
		return -EINVAL;
	net->now = VB_MAX(net->now, now);
	e->port->phys = phys == FAB_DISABLED ? FAB_DISABLED : FAB_POLLING;
	if (!e->link)
		return 0;
	fab_take_down(e->link, e);
	fab_try_train(e->link, net->now);
	return 0;
}

void fab_link_free(struct vb_fab_net *net, struct link *l)
{
	fab_disarm(net, &l->train);
	if (l->far) {
		fab_flush_wire(&l->far->end);
		fab_disarm(net, &l->far->end.flow_alarm);
	}
	free(l->far);
	free(l);
}
