/* SPDX-License-Identifier: BSD-2-Clause */
/* A network: its nodes, its events in order of time, and frames that programs
 * and agents send. */
#include "fabric/net.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/adaptive.h"
#include "fabric/congest.h"
#include "fabric/hops.h"

/* the longest send queue of a VL, in blocks of 64 bytes */
#define SEND_BLOCKS_MOST 2048

static struct vb_timers *timers_of(struct vb_fab_net *net,
				   const struct alarm *a)
{
	return a->kind == TIMER_FLOW ? &net->flow_timers : &net->timers;
}

/* Set the alarm @a to the time @at. vb_timer_set() cannot fail, because
 * fab_reserve_alarms() has made room in the heap. */
void fab_arm(struct vb_fab_net *net, struct alarm *a, vb_time at)
{
	if (at != VB_NEVER)
		at = VB_MAX(at, net->now);
	if (vb_timer_set(timers_of(net, a), &a->timer, at))
		abort();
}

void fab_arm_by(struct vb_fab_net *net, struct alarm *a, vb_time at)
{
	if (at < a->timer.at)
		fab_arm(net, a, at);
}

void fab_disarm(struct vb_fab_net *net, struct alarm *a)
{
	vb_timer_cancel(timers_of(net, a), &a->timer);
}

int fab_reserve_alarms(struct vb_fab_net *net, uint32_t more)
{
	if (vb_timers_reserve(&net->timers, net->alarms + more) ||
	    vb_timers_reserve(&net->flow_timers, net->alarms + more))
		return -ENOMEM;
	net->alarms += more;
	return 0;
}

/* The random generator xorshift64*, which gives the same numbers on every
 * machine. */
uint32_t fab_random(struct vb_fab_net *net)
{
	uint64_t x = net->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	net->random = x;
	return (uint32_t)(x * 0x2545f4914f6cdd1dull >> 32);
}

bool fab_chance(struct vb_fab_net *net, uint32_t of_2_32)
{
	return of_2_32 && fab_random(net) < of_2_32;
}

void fab_event(struct vb_fab_end *e, const struct vb_fab_event_info *info)
{
	struct vb_fab_net *net = e->net;

	if (net->ops.on_event)
		net->ops.on_event(net->ops.arg, e->node, e->no, info, net->now);
}

void fab_count_drop(struct vb_fab_port *p, enum vb_fab_drop drop)
{
	const struct vb_fab_drop_row *row = &vb_fab_drops[drop];

	if (row->count != FAB_COUNTERS)
		vb_fab_count(p, row->count, 1);
	if (row->detail != FAB_COUNTERS)
		vb_fab_count(p, row->detail, 1);
}

struct vb_fab_net *vb_fab_net_create(const struct vb_fab_ops *ops,
				     uint64_t seed)
{
	struct vb_fab_net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	net->ops = *ops;
	net->random = seed * 0x9e3779b97f4a7c15ull | 1;
	vb_timers_init(&net->timers);
	vb_timers_init(&net->flow_timers);
	return net;
}

static void free_queue(struct vb_fab_net *net, struct fifo *q)
{
	struct item *it;

	while ((it = fab_pop(q)))
		fab_item_free(net, it);
}

/* Free the items in the queues of @e. A queue may hold charges of any end, so
 * the caller frees all queues before the first end. */
static void free_queues(struct vb_fab_net *net, struct vb_fab_end *e)
{
	e->port->phys = FAB_DISABLED;
	free_queue(net, &e->wire);
	fab_hops_free(e);
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++) {
		free_queue(net, &e->lane[vl].items);
		free_queue(net, &e->held[vl]);
	}
	fab_congest_fini(e);
	if (e->leaving)
		fab_charge_give(e->leaving);
	e->leaving = NULL;
}

void vb_fab_net_destroy(struct vb_fab_net *net)
{
	for (uint32_t i = 0; i < net->nodes; i++)
		for (unsigned p = 0; p <= net->node[i]->ports; p++)
			free_queues(net, &net->ends[i][p]);
	for (uint32_t i = 0; i < net->links; i++)
		fab_link_free(net, net->link[i]);
	for (uint32_t i = 0; i < net->nodes; i++) {
		free(net->ends[i]);
		fab_adaptive_free(net->node[i]);
		vb_fab_node_destroy(net->node[i]);
	}
	fab_pool_fini(net);
	vb_timers_fini(&net->timers);
	vb_timers_fini(&net->flow_timers);
	free(net->node);
	free(net->ends);
	free(net->link);
	free(net);
}

static void init_alarm(struct alarm *a, enum timer_kind kind, void *owner)
{
	a->kind = kind;
	a->owner = owner;
	vb_timer_init(&a->timer);
}

void fab_end_init(struct vb_fab_net *net, struct vb_fab_end *e,
		  struct vb_fab_node *node, struct vb_fab_port *port,
		  uint8_t no)
{
	e->net = net;
	e->node = node;
	e->port = port;
	e->no = no;
	e->wait_since = e->cong_since = VB_NEVER;
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++)
		e->lane[vl].wait_since = e->lane[vl].cong_since = VB_NEVER;
	init_alarm(&e->xmit, TIMER_XMIT, e);
	init_alarm(&e->recv, TIMER_RECV, e);
	init_alarm(&e->flow_alarm, TIMER_FLOW, e);
	e->port->end = e;
}

static int make_node_room(struct vb_fab_net *net)
{
	uint32_t room = VB_MAX(2 * net->node_room, 16u);
	struct vb_fab_node **nodes;
	struct vb_fab_end **ends;

	if (net->nodes < net->node_room)
		return 0;
	nodes = reallocarray(net->node, room, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	net->node = nodes;
	ends = reallocarray(net->ends, room, sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	net->ends = ends;
	net->node_room = room;
	return 0;
}

#define ALARMS_OF_END 3

int vb_fab_add(struct vb_fab_net *net, struct vb_fab_node *node)
{
	uint32_t count = node->ports + 1u;
	struct vb_fab_end *ends;

	if (make_node_room(net) ||
	    fab_reserve_alarms(net, ALARMS_OF_END * count))
		return -ENOMEM;
	ends = calloc(count, sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	for (unsigned p = 0; p < count; p++)
		fab_end_init(net, &ends[p], node, &node->port[p], (uint8_t)p);
	node->index = net->nodes;
	net->node[net->nodes] = node;
	net->ends[net->nodes++] = ends;
	return 0;
}

uint32_t vb_fab_nodes(const struct vb_fab_net *net)
{
	return net->nodes;
}

struct vb_fab_node *vb_fab_node(const struct vb_fab_net *net, uint32_t index)
{
	return net->node[index];
}

vb_time vb_fab_next(const struct vb_fab_net *net)
{
	return VB_MIN(vb_timers_next(&net->timers),
		      vb_timers_next(&net->flow_timers));
}

vb_time vb_fab_next_frame(const struct vb_fab_net *net)
{
	return vb_timers_next(&net->timers);
}

/* Fire the earliest alarm of flow control before its time. False: there is
 * none, or its link repeats link packets. */
static bool fire_flow_early(struct vb_fab_net *net)
{
	vb_time at = vb_timers_next(&net->flow_timers);
	struct vb_timer *t = vb_timers_pop(&net->flow_timers, at);
	struct vb_fab_end *e;

	if (!t)
		return false;
	e = VB_CONTAINER_OF(t, struct vb_fab_end, flow_alarm.timer);
	if (fab_is_noisy(e->link, net->now)) {
		fab_arm(net, &e->flow_alarm, at);
		return false;
	}
	fab_fc_fire(e, net->now);
	return true;
}

bool vb_fab_tell_early(struct vb_fab_net *net, vb_time now)
{
	bool some = false;

	net->now = VB_MAX(net->now, now);
	while (fire_flow_early(net))
		some = true;
	return some;
}

bool vb_fab_step(struct vb_fab_net *net, vb_time now)
{
	vb_time at = vb_fab_next(net);
	struct vb_timer *t;
	struct alarm *a;

	if (at > now)
		return false;
	t = vb_timers_pop(&net->timers, at);
	if (!t)
		t = vb_timers_pop(&net->flow_timers, at);
	a = VB_CONTAINER_OF(t, struct alarm, timer);
	net->now = VB_MAX(net->now, at);
	switch (a->kind) {
	case TIMER_XMIT:
		fab_xmit_fire(a->owner, net->now);
		break;
	case TIMER_RECV:
		fab_recv_fire(a->owner, net->now);
		break;
	case TIMER_FLOW:
		fab_fc_fire(a->owner, net->now);
		break;
	case TIMER_PACE:
		fab_congest_fire(a->owner, net->now);
		break;
	case TIMER_TRAIN:
		fab_train_fire(a->owner, net->now);
	}
	return true;
}

/* Make the item of a frame that a program sends. */
static struct item *new_item(struct vb_fab_net *net, const uint8_t *bytes,
			     size_t len)
{
	struct item *it = fab_item_new(net);

	if (!it)
		return NULL;
	it->frame = fab_frame_new(bytes, len);
	if (!it->frame) {
		fab_item_free(net, it);
		return NULL;
	}
	it->blocks = (uint16_t)vb_lrh_blocks(len);
	it->vl = bytes[0] >> 4;
	it->head = it->tail = net->now;
	return it;
}

/* May a program's frame leave by the external port of @e? Sets *@vl to the
 * virtual lane on which it leaves. Returns 0 or an error of vb_fab_send(). */
static int check_send(struct vb_fab_end *e, const struct vb_lrh *h, size_t len,
		      uint8_t *vl)
{
	const struct vb_fab_port *p = e->port;

	*vl = VB_VL_MGMT;
	if (h->vl == VB_VL_MGMT)
		return p->state < FAB_INIT ? -ENETDOWN : 0;
	if (p->state != FAB_ACTIVE)
		return -ENETDOWN;
	if (len > vb_fab_mtu_bytes(p->mtu) + VB_LRH_HDR_MAX)
		return -EMSGSIZE;
	*vl = e->node->kind == FAB_SWITCH
		      ? vb_fab_sl2vl(e->node, 0, e->no)[h->sl]
		      : p->sl2vl[h->sl];
	if (*vl >= vb_fab_vls(p->oper_vls))
		return -EHOSTUNREACH;
	if (e->lane[*vl].blocks < SEND_BLOCKS_MOST)
		return 0;
	e->lane[*vl].full = true;
	return -EAGAIN;
}

static int send_by_port(struct vb_fab_end *e, const struct vb_lrh *h,
			const uint8_t *bytes, size_t len)
{
	struct item *it;
	uint8_t vl;
	int err = check_send(e, h, len, &vl);

	if (!err && fab_congest_full(e, h))
		err = -EAGAIN;
	if (err)
		return err;
	it = new_item(e->net, bytes, len);
	if (!it)
		return -ENOMEM;
	it->vl = vl;
	if (!fab_congest_hold(e, it, e->net->now))
		fab_enqueue(e, it, e->net->now);
	return 0;
}

/* Send a frame from port 0 of a switch. This function looks up the output port
 * at once, so that the sender learns when that port's queue is full or its link
 * is down. */
static int send_by_route(struct vb_fab_end *e, const struct vb_lrh *h,
			 const uint8_t *bytes, size_t len)
{
	struct vb_fab_view v = { bytes, len, *h };
	struct vb_fab_route r;
	struct item *it;

	vb_fab_route(e->node, 0, &v, &r);
	if (r.drop != DROP_NOT)
		return -EHOSTUNREACH;
	if (!r.mcast && r.port)
		return send_by_port(e->node->port[r.port].end, h, bytes, len);
	it = new_item(e->net, bytes, len);
	if (!it)
		return -ENOMEM;
	fab_relay(e, it, e->net->now);
	return 0;
}

int vb_fab_send(struct vb_fab_net *net, struct vb_fab_node *node, uint8_t port,
		const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_lrh h;
	struct vb_fab_end *e;

	if (port > node->ports || (port == 0 && node->kind != FAB_SWITCH))
		return -EINVAL;
	if (len < VB_LRH_BYTES)
		return -EMSGSIZE;
	vb_lrh_get(bytes, &h);
	if (vb_lrh_check(&h, len, vb_fab_mtu_bytes(node->port[port].mtu_cap)) !=
	    LRH_GOOD)
		return -EMSGSIZE;
	net->now = VB_MAX(net->now, now);
	e = node->port[port].end;
	return port ? send_by_port(e, &h, bytes, len)
		    : send_by_route(e, &h, bytes, len);
}

int vb_fab_arrive(struct vb_fab_net *net, struct vb_fab_node *node,
		  uint8_t port, const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_fab_end *e;

	if (!port || port > node->ports)
		return -EINVAL;
	e = node->port[port].end;
	if (!e->link || e->port->phys != FAB_LINK_UP)
		return -EINVAL;
	net->now = VB_MAX(net->now, now);
	return fab_arrive(e, bytes, len, net->now);
}

void vb_fab_resume(struct vb_fab_net *net, struct vb_fab_node *node,
		   uint8_t port, vb_time now)
{
	net->now = VB_MAX(net->now, now);
	if (port <= node->ports)
		fab_resume(node->port[port].end, net->now);
}

vb_time vb_fab_mgmt_through(struct vb_fab_net *net,
			    const struct vb_fab_node *node, uint8_t port,
			    vb_time now)
{
	const struct vb_fab_end *e;

	net->now = VB_MAX(net->now, now);
	if (!port || port > node->ports)
		return net->now;
	e = node->port[port].end;
	return e->link && e->port->phys == FAB_LINK_UP
		       ? fab_mgmt_through(e, net->now)
		       : net->now;
}

void vb_fab_watch(struct vb_fab_node *node, uint8_t port, bool on)
{
	if (port >= 1 && port <= node->ports)
		node->port[port].end->watched = on;
}

void vb_fab_count_waits(struct vb_fab_net *net, struct vb_fab_node *node,
			uint8_t port, vb_time now)
{
	net->now = VB_MAX(net->now, now);
	if (port <= node->ports)
		fab_count_waits(node->port[port].end, net->now);
}
