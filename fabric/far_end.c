/* SPDX-License-Identifier: BSD-2-Clause */
/* Links whose other end is in another process, as the network sees them. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/net_priv.h"

#define ALARMS_OF_END 3

/* Returns this network's end of the link at @port to another process; NULL:
 * @port has no such link. */
static struct vb_fab_end *near_end(const struct vb_fab_node *node, uint8_t port)
{
	struct vb_fab_end *e;

	if (!port || port > node->ports)
		return NULL;
	e = node->port[port].end;
	return e->link && e->link->far ? e : NULL;
}

void fab_far_tell(struct link *l)
{
	struct vb_fab_event_info info = { .event = FAB_EV_FAR };

	if (l->far)
		fab_event(l->a, &info);
}

void fab_far_deliver(struct vb_fab_end *e, struct item *it, vb_time now)
{
	const struct vb_fab_ops *ops = &e->net->ops;
	const uint8_t *bytes;
	size_t len;

	bytes = fab_wire_bytes(it, &len);
	if (ops->on_far)
		ops->on_far(ops->arg, e->peer->node, e->peer->no, bytes, len,
			    now);
	fab_item_free(e->net, it);
}

int vb_fab_link_far(struct vb_fab_net *net, struct vb_fab_node *node,
		    uint8_t port, const struct vb_fab_link_spec *spec,
		    vb_time now)
{
	struct far_end *far;
	struct link *l;
	int rc;

	if (!port || port > node->ports)
		return -EINVAL;
	far = calloc(1, sizeof(*far));
	if (!far)
		return -ENOMEM;
	fab_end_init(net, &far->end, NULL, &far->port, 0);
	far->port.state = FAB_DOWN;
	far->port.phys = FAB_DISABLED;
	rc = fab_reserve_alarms(net, ALARMS_OF_END);
	if (!rc)
		rc = fab_link_make(node->port[port].end, &far->end, spec, now,
				   &l);
	if (rc) {
		free(far);
		return rc;
	}
	l->far = far;
	return 0;
}

bool vb_fab_far_is_willing(const struct vb_fab_node *node, uint8_t port)
{
	const struct vb_fab_end *e = near_end(node, port);

	return e && e->link->plugged && e->port->phys != FAB_DISABLED;
}

bool vb_fab_far_is_extended(const struct vb_fab_node *node, uint8_t port)
{
	const struct vb_fab_end *e = near_end(node, port);

	return e && e->link->spec.extended;
}

void vb_fab_far_offer(const struct vb_fab_node *node, uint8_t port,
		      struct vb_fab_far_port *offer)
{
	const struct vb_fab_port *p = &node->port[port];

	offer->width = p->width_supported & p->width_enabled;
	offer->speed = p->speed_supported & p->speed_enabled;
	offer->speed_ext = p->speed_ext_supported & p->speed_ext_enabled;
}

void vb_fab_far_ready(struct vb_fab_net *net, struct vb_fab_node *node,
		      uint8_t port, const struct vb_fab_far_port *offer,
		      vb_time now)
{
	struct vb_fab_end *e = near_end(node, port);
	struct vb_fab_port *p;

	if (!e)
		return;
	net->now = VB_MAX(net->now, now);
	p = &e->link->far->port;
	p->width_supported = p->width_enabled = offer->width;
	p->speed_supported = p->speed_enabled = offer->speed;
	p->speed_ext_supported = p->speed_ext_enabled = offer->speed_ext;
	p->phys = FAB_POLLING;
	fab_try_train(e->link, net->now);
}

void vb_fab_far_gone(struct vb_fab_net *net, struct vb_fab_node *node,
		     uint8_t port, vb_time now)
{
	struct vb_fab_end *e = near_end(node, port);

	if (!e)
		return;
	net->now = VB_MAX(net->now, now);
	fab_take_down(e->link, NULL);
}
