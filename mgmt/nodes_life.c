/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys the management of a fabric, and delays changes of a
 * link's state until the answer to the manager that asked for them has left. */
#include "mgmt/nodes_priv.h"

#include <errno.h>
#include <stdlib.h>

/* The answer to a Set that takes the link down may go over that same link (IBA
 * 14.2.5.6: the response is sent first). The timer expires when it has been
 * given to the link, and again when it has passed (move_link()). */
static bool move_later(struct mgmt_port *p, vb_time now)
{
	p->answer_leaves = false;
	return vb_timer_set(&p->owner->m->moves, &p->move, now) == 0;
}

static int set_state(void *arg, struct vb_fab_node *node, uint8_t port,
		     enum vb_fab_state state, vb_time now)
{
	struct vb_mgmt *m = arg;
	struct mgmt_node *n = node->mgmt;
	struct mgmt_port *p = &n->port[port];

	if (state != FAB_DOWN || !move_later(p, now))
		return m->ops.set_state(m->ops.arg, node, port, state, now);
	p->move_state = (uint8_t)state;
	return 0;
}

static int set_phys(void *arg, struct vb_fab_node *node, uint8_t port,
		    enum vb_fab_phys phys, vb_time now)
{
	struct vb_mgmt *m = arg;
	struct mgmt_node *n = node->mgmt;
	struct mgmt_port *p = &n->port[port];

	if (!move_later(p, now))
		return m->ops.set_phys(m->ops.arg, node, port, phys, now);
	p->move_phys = (uint8_t)phys;
	return 0;
}

static void configured(void *arg, struct vb_fab_node *node, uint8_t port)
{
	struct vb_mgmt *m = arg;

	if (m->ops.configured)
		m->ops.configured(m->ops.arg, node, port);
}

struct vb_mgmt *vb_mgmt_create(const struct vb_mgmt_ops *ops)
{
	struct vb_mgmt *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->ops = *ops;
	m->sma = (struct vb_sma_ops){
		.set_state = set_state,
		.set_phys = set_phys,
		.configured = configured,
		.arg = m,
	};
	m->last = &m->first;
	vb_timers_init(&m->exchanges);
	vb_timers_init(&m->traps);
	vb_timers_init(&m->moves);
	vb_timers_init(&m->samples);
	return m;
}

static void free_node(struct mgmt_node *n)
{
	for (unsigned i = 0; n->port && i <= n->node->ports; i++) {
		struct mgmt_port *p = &n->port[i];

		vb_agents_destroy(p->agents);
		vb_timer_cancel(&n->m->moves, &p->move);
		while (p->first) {
			struct waiting *w = p->first;

			p->first = w->next;
			free(w);
		}
	}
	vb_traps_fini(&n->traps, &n->m->traps);
	vb_pma_destroy(n->pma);
	vb_cca_destroy(n->cca);
	vb_iou_destroy(n->iou);
	free(n->port);
	free(n);
}

void vb_mgmt_destroy(struct vb_mgmt *m)
{
	if (!m)
		return;
	while (m->first) {
		struct looped *l = m->first;

		m->first = l->next;
		free(l);
	}
	while (m->nodes) {
		struct mgmt_node *n = m->nodes;

		m->nodes = n->next;
		n->node->mgmt = NULL;
		free_node(n);
	}
	vb_timers_fini(&m->exchanges);
	vb_timers_fini(&m->traps);
	vb_timers_fini(&m->moves);
	vb_timers_fini(&m->samples);
	free(m);
}

int vb_mgmt_add(struct vb_mgmt *m, struct vb_fab_node *node)
{
	struct mgmt_node *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->m = m;
	n->node = node;
	vb_traps_init(&n->traps);
	n->pma = vb_pma_create(node, &m->samples);
	n->cca = vb_cca_create(node);
	n->port = calloc(node->ports + 1u, sizeof(*n->port));
	if (!n->pma || !n->cca || !n->port) {
		free_node(n);
		return -ENOMEM;
	}
	for (unsigned i = 0; i <= node->ports; i++) {
		n->port[i].owner = n;
		n->port[i].port = (uint8_t)i;
		n->port[i].path_agent = -1;
		n->port[i].last = &n->port[i].first;
		vb_timer_init(&n->port[i].move);
	}
	n->next = m->nodes;
	m->nodes = n;
	node->mgmt = n;
	return 0;
}

void vb_mgmt_remove(struct vb_mgmt *m, struct vb_fab_node *node)
{
	struct mgmt_node **at = &m->nodes, *n = node->mgmt;

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	node->mgmt = NULL;
	free_node(n);
}

struct vb_agents *vb_mgmt_agents(struct vb_mgmt *m, struct vb_fab_node *node,
				 uint8_t port)
{
	struct mgmt_node *n = node->mgmt;
	struct mgmt_port *p;

	if (port > node->ports || vb_sma_own_port(node, port) != port ||
	    (port == 0 && node->kind != FAB_SWITCH))
		return NULL;
	p = &n->port[port];
	if (!p->agents) {
		const struct vb_agents_ops ops = {
			.transmit = vb_mgmt_transmit,
			.deliver = vb_mgmt_deliver,
			.transmit_arg = p,
			.deliver_arg = p,
		};

		p->agents = vb_agents_create(&ops, &m->exchanges);
	}
	return p->agents;
}

int vb_mgmt_set_unit(struct vb_mgmt *m, struct vb_fab_node *node,
		     const struct vb_iou_unit *unit, vb_time now)
{
	struct mgmt_node *n = node->mgmt;

	if (node->kind != FAB_CA)
		return -EINVAL;
	if (!n->iou && unit->controllers)
		n->iou = vb_iou_create(node);
	if (!n->iou)
		return unit->controllers ? -ENOMEM : 0;
	vb_iou_set(n->iou, unit);
	for (unsigned p = 1; p <= node->ports; p++)
		vb_mgmt_set_caps(m, node, (uint8_t)p, VB_CAP_DEVICE,
				 unit->controllers, now);
	return 0;
}
