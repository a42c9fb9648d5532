/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of a small fabric that a test makes without a topology file. */
#ifndef TESTS_SUPPORT_FAB_STAR_H
#define TESTS_SUPPORT_FAB_STAR_H

#include "fabric/net_priv.h"
#include "tests/support/must.h"

/* Returns a new node of @kind with @ports ports, of MTU 4096 and three data
 * lanes. The net owns the node. */
static inline struct vb_fab_node *star_add(struct vb_fab_net *net, uint8_t kind,
					   uint8_t ports)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = 1,
					       .linear_cap = 64,
					       .mcast_cap = 4 };
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	MUST(n && vb_fab_add(net, n) == 0);
	for (unsigned p = 0; p <= ports; p++) {
		n->port[p].mtu = 5;
		n->port[p].oper_vls = 3;
	}
	return n;
}

/* Takes a port, whose link has been trained, to Armed and then to Active. */
static inline void star_activate(struct vb_fab_net *net, struct vb_fab_node *n,
				 uint8_t port, vb_time now)
{
	MUST(!vb_fab_set_state(net, n, port, FAB_ARMED, now));
	MUST(!vb_fab_set_state(net, n, port, FAB_ACTIVE, now));
}

#endif
