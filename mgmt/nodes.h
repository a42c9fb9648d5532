/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management of a fabric: queue pairs 0 and 1 of every node, with the
 * agents behind them. Between the data plane (fabric/net.h) and programs, each
 * of which the owner connects by functions; without I/O or clock.
 */
#ifndef MGMT_NODES_H
#define MGMT_NODES_H

#include "fabric/node.h"
#include "mgmt/agents.h"
#include "mgmt/trap.h"

struct vb_mgmt;

struct vb_mgmt_ops {
	/* As vb_fab_send(), vb_fab_set_state() and vb_fab_set_phys(). They may
	 * not call any function of this header. */
	int (*send)(void *arg, struct vb_fab_node *node, uint8_t port,
		    const uint8_t *bytes, size_t len, vb_time now);
	int (*set_state)(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_state state, vb_time now);
	int (*set_phys)(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_phys phys, vb_time now);
	/* As vb_fab_settle(), before counters are read. May be NULL. */
	void (*settle)(void *arg, struct vb_fab_node *node, uint8_t port,
		       vb_time now);
	/* As in struct vb_agents_ops. */
	void (*deliver)(void *arg, void *client,
			const struct vb_mad_delivery *d);
	/* As in struct vb_sma_ops. */
	void (*configured)(void *arg, struct vb_fab_node *node, uint8_t port);
	void *arg;
};

/* NULL: no memory. */
struct vb_mgmt *vb_mgmt_create(const struct vb_mgmt_ops *ops);
/* Before the nodes are destroyed. */
void vb_mgmt_destroy(struct vb_mgmt *m);

/* Take care of @node, whose field mgmt it uses. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_mgmt_add(struct vb_mgmt *m, struct vb_fab_node *node);

/* A frame ended at @node, as on_local() of fabric/net.h says. False: it is for
 * another queue pair, or none, and is not looked at. */
VB_MUST_CHECK bool vb_mgmt_hear(struct vb_mgmt *m, struct vb_fab_node *node,
				uint8_t port, const uint8_t *bytes, size_t len,
				vb_time now);

/* The state of @port changed. */
void vb_mgmt_state_changed(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, vb_time now);
/* Trap 129, 130 or 131 of @port. */
void vb_mgmt_link_error(struct vb_mgmt *m, struct vb_fab_node *node,
			uint8_t port, enum vb_trap_number number, vb_time now);
/* Trap 259: the switch @node discarded a frame at @port. */
void vb_mgmt_pkey_violated(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, const uint8_t *bytes, size_t len,
			   vb_time now);
/* send() would no longer say -EAGAIN at @port. */
void vb_mgmt_room(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		  vb_time now);

/* Set or clear bits of a port's capabilities; the subnet manager is told. */
void vb_mgmt_set_caps(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		      uint32_t bits, bool on, vb_time now);

/* The agents of @port: of an adapter 1..ports, of a switch 0. NULL: no such
 * port, or no memory. Call vb_mgmt_run() after a function of theirs. */
struct vb_agents *vb_mgmt_agents(struct vb_mgmt *m, struct vb_fab_node *node,
				 uint8_t port);

/* When vb_mgmt_run() is to be called; 0: at once; VB_NEVER. */
vb_time vb_mgmt_next(const struct vb_mgmt *m);
/* What is due, and what a node has sent to itself. */
void vb_mgmt_run(struct vb_mgmt *m, vb_time now);

#endif
