/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management of a fabric: queue pairs 0 and 1 of every node, with the
 * agents behind them. It lies between the data plane (fabric/net.h) and
 * programs; the owner connects it to both by functions. It does no I/O and
 * reads no clock.
 */
#ifndef MGMT_NODES_H
#define MGMT_NODES_H

#include "fabric/node.h"
#include "mgmt/agents.h"
#include "mgmt/iou.h"
#include "mgmt/trap.h"

struct vb_mgmt;

struct vb_mgmt_ops {
	/*
	 * Functions of the data plane, like vb_fab_send(), vb_fab_set_state()
	 * and vb_fab_set_phys(). Before they return, these functions may call
	 * functions of this header: set_state() and set_phys() call
	 * vb_mgmt_state_changed() for the other end of the link, and
	 * vb_mgmt_room() for both ends, since the frames that wait there are
	 * thrown away; send() may call vb_mgmt_pkey_violated(), for a multicast
	 * frame of a switch. So the management keeps no pointer to a waiting
	 * frame across set_state() and set_phys(), nor to a pending trap across
	 * any.
	 */
	int (*send)(void *arg, struct vb_fab_node *node, uint8_t port,
		    const uint8_t *bytes, size_t len, vb_time now);
	int (*set_state)(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_state state, vb_time now);
	int (*set_phys)(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_phys phys, vb_time now);
	/* Returns when the management frames that wait at the port will have
	 * arrived at the other end, like vb_fab_mgmt_through() (fabric/net.h).
	 */
	vb_time (*through)(void *arg, struct vb_fab_node *node, uint8_t port,
			   vb_time now);
	/* Counts the waits that still last, before counters are read, like
	 * vb_fab_count_waits(). May be NULL. */
	void (*count_waits)(void *arg, struct vb_fab_node *node, uint8_t port,
			    vb_time now);
	/* Gives a message to a program, like deliver() of struct
	 * vb_agents_ops. */
	void (*deliver)(void *arg, void *client,
			const struct vb_mad_delivery *d);
	/* Tells of a change of a port's settings, like configured() of struct
	 * vb_sma_ops. */
	void (*configured)(void *arg, struct vb_fab_node *node, uint8_t port);
	/* Answers a question of a router, like vb_fab_path_is(). */
	void (*path_is)(void *arg, struct vb_fab_node *node, uint32_t question,
			enum vb_fab_answer answer,
			const struct vb_fab_path *path);
	void *arg;
};

/* Create the management of a fabric without nodes. NULL: no memory. */
struct vb_mgmt *vb_mgmt_create(const struct vb_mgmt_ops *ops);
/* Free the management of a fabric. The caller does this before it destroys the
 * nodes. */
void vb_mgmt_destroy(struct vb_mgmt *m);

/* Manage @node from now on; the management uses the field node->mgmt. 0 or
 * -ENOMEM. */
VB_MUST_CHECK int vb_mgmt_add(struct vb_mgmt *m, struct vb_fab_node *node);
/* Ends the management of @node, which has received and sent nothing yet. */
void vb_mgmt_remove(struct vb_mgmt *m, struct vb_fab_node *node);

/* Handle a frame for queue pair 0 or 1 of @node, which on_local()
 * (fabric/net.h) passes on. False: the frame is for another queue pair, or for
 * none, and this function did nothing. */
VB_MUST_CHECK bool vb_mgmt_hear(struct vb_mgmt *m, struct vb_fab_node *node,
				uint8_t port, const uint8_t *bytes, size_t len,
				vb_time now);

/* Handle a change of the state of @port: a switch sends trap 128 if management
 * did not make the change. */
void vb_mgmt_state_changed(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, vb_time now);
/* Send trap 129, 130 or 131, because of an error at @port. */
void vb_mgmt_link_error(struct vb_mgmt *m, struct vb_fab_node *node,
			uint8_t port, enum vb_trap_number number, vb_time now);
/* Send trap 259: the switch @node has discarded a frame at @port. */
void vb_mgmt_pkey_violated(struct vb_mgmt *m, struct vb_fab_node *node,
			   uint8_t port, const uint8_t *bytes, size_t len,
			   vb_time now);
/* Port @port has room for frames again, after send() had returned -EAGAIN. */
void vb_mgmt_room(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		  vb_time now);

/*
 * The router @node needs the path from @port to @dgid (FAB_EV_PATH): ask the
 * port's subnet administrator. path_is() gets the answer; that may be before
 * this returns, if nobody can be asked.
 */
void vb_mgmt_ask_path(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		      const struct vb_gid *dgid, uint32_t question,
		      vb_time now);

/* Change bits of a port's CapabilityMask, and tell the subnet manager by a
 * trap. */
void vb_mgmt_set_caps(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		      uint32_t bits, bool on, vb_time now);

/*
 * Make the adapter @node a target that consists of @unit, or none if @unit has
 * no controller. The change shows in IOUnitInfo, and in the CapabilityMask of
 * all ports, of which a trap tells the subnet manager. An agent for device
 * management that a program registers at a port takes precedence there. 0;
 * -EINVAL: the node is no adapter; -ENOMEM.
 */
VB_MUST_CHECK int vb_mgmt_set_unit(struct vb_mgmt *m, struct vb_fab_node *node,
				   const struct vb_iou_unit *unit, vb_time now);

/* Returns the agents of @port, which is 1..ports of an adapter or 0 of a
 * switch. NULL: no such port, or no memory. After a function of mgmt/agents.h
 * call vb_mgmt_run(). */
struct vb_agents *vb_mgmt_agents(struct vb_mgmt *m, struct vb_fab_node *node,
				 uint8_t port);

/* Returns the time at which the owner must call vb_mgmt_run(); 0: at once;
 * VB_NEVER: no call is needed. */
vb_time vb_mgmt_next(const struct vb_mgmt *m);
/* Act on the timers that have expired, and on MADs of nodes to themselves. */
void vb_mgmt_run(struct vb_mgmt *m, vb_time now);

#endif
