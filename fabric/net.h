/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric: nodes, the links between them, and the frames on their way, moved
 * by a heap of events. It does no I/O and reads no clock: the caller says what
 * time it is (a simulated one, or the real one), so a run with the same calls
 * is the same run. One thread owns it.
 *
 * The seam to management and to programs: on_local() hands out every frame that
 * ends at a node, and vb_fab_send() takes a frame in.
 */
#ifndef FABRIC_NET_H
#define FABRIC_NET_H

#include "fabric/node.h"
#include "wire/gid.h"

struct vb_fab_net;

/* LRH to ICRC of the longest frame: LRH, GRH, all headers, 4096 bytes, ICRC. */
#define VB_FAB_FRAME_MAX 4224

enum vb_fab_taken {
	FAB_TAKEN,
	/* The receiver has no room. The frame, and later ones of its VL, stay
	 * in the port's buffer until the receiver calls vb_fab_resume(). A
	 * frame on VL15 is dropped, for VL15 has no flow control (IBA
	 * 7.6.4). */
	FAB_HELD,
};

enum vb_fab_event {
	FAB_EV_STATE, /* the port's state (port->state) has changed */
	/* trap 129 is due: the damaged packets that came exceed the good ones
	 * by more than LocalPhyErrors (fabric/threshold.h) */
	FAB_EV_INTEGRITY,
	/* trap 130 is due: frames came for which the buffer had no room, in
	 * OverrunErrors periods of flow control updates in a row */
	FAB_EV_OVERRUN,
	FAB_EV_WATCHDOG, /* trap 131: no link packets came; the link retrains */
	/* trap 259 is due: P_Key enforcement of a switch port discarded a
	 * frame */
	FAB_EV_PKEY,
	/* vb_fab_send(), which had returned -EAGAIN, takes frames of the VL
	 * again */
	FAB_EV_ROOM,
	/* The port's link to another process went down here, or is plugged in
	 * again. The owner tells the other process; nothing leaves by on_far()
	 * before vb_fab_far_ready(). */
	FAB_EV_FAR,
	/* A router needs the path from this port to the GID @dgid. The owner
	 * asks the port's subnet administrator and ends with vb_fab_path_is().
	 */
	FAB_EV_PATH,
};

struct vb_fab_event_info {
	enum vb_fab_event event;
	uint8_t vl; /* the virtual lane of FAB_EV_ROOM and FAB_EV_OVERRUN */
	/* Of FAB_EV_STATE: a call of vb_fab_set_state() or vb_fab_set_phys()
	 * for this very port made the change. For such a change nothing sets
	 * PortStateChange or sends trap 128 (IBA 14.2.5.4). */
	bool by_management;
	/* of FAB_EV_PKEY: the discarded frame, LRH to ICRC */
	const uint8_t *frame;
	size_t len;
	/* of FAB_EV_PATH: the destination, and the number of the question */
	struct vb_gid dgid;
	uint32_t question;
};

/* The direction of a frame that on_wire() reports. */
enum vb_fab_direction { FAB_SENT, FAB_RECEIVED };

struct vb_fab_ops {
	/*
	 * A frame has reached its end at @node. @port is where it came in; 0:
	 * it is for a switch's own LID, whatever that port was, and not on
	 * VL15. An adapter gets every frame that comes in. A switch gets: on
	 * VL15, frames with the permissive LID (directed routes) or its own
	 * LID; and frames to its LID, or to a multicast LID whose mask has port
	 * 0. @bytes: @len bytes, LRH to ICRC, as many as the LRH says and at
	 * least 20 (LRH, BTH... unless raw); valid until this returns. Nobody
	 * has checked the ICRC. This function may call vb_fab_send().
	 */
	enum vb_fab_taken (*on_local)(void *arg, struct vb_fab_node *node,
				      uint8_t port, const uint8_t *bytes,
				      size_t len, vb_time now);
	/* Tells the owner of an event at @port of @node, which @info describes.
	 * May be NULL. */
	void (*on_event)(void *arg, struct vb_fab_node *node, uint8_t port,
			 const struct vb_fab_event_info *info, vb_time now);
	/* For captures: @port, which vb_fab_watch() named, begins to send or
	 * has received this frame, LRH to VCRC, or this link packet (6 or 10
	 * bytes). May be NULL. */
	void (*on_wire)(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_direction direction, const uint8_t *bytes,
			size_t len, vb_time now);
	/* The link of @port ends in another process, and carries these bytes
	 * there: LRH to VCRC, or a link packet. NULL: there is no such link. */
	void (*on_far)(void *arg, struct vb_fab_node *node, uint8_t port,
		       const uint8_t *bytes, size_t len, vb_time now);
	void *arg;
};

/* Create an empty network. @seed starts the random numbers that decide which
 * frames a link loses or damages. NULL: no memory. */
struct vb_fab_net *vb_fab_net_create(const struct vb_fab_ops *ops,
				     uint64_t seed);
/* Free the network and all nodes that vb_fab_add() gave to it. */
void vb_fab_net_destroy(struct vb_fab_net *net);

/* Give @node to the network, which may be running, and which frees @node at its
 * end. 0; -ENOMEM: the caller still owns @node. */
VB_MUST_CHECK int vb_fab_add(struct vb_fab_net *net, struct vb_fab_node *node);
uint32_t vb_fab_nodes(const struct vb_fab_net *net);
/* Returns the node that the (@index + 1)-th vb_fab_add() added; @index is in
 * 0..vb_fab_nodes() - 1. */
struct vb_fab_node *vb_fab_node(const struct vb_fab_net *net, uint32_t index);

/* The properties of one link. Both directions of the link have the same. */
struct vb_fab_link_spec {
	/* data rate in bytes a second; 0: the rate of the ports' width and
	 * speed */
	uint64_t bytes_per_sec;
	bool unpaced; /* a frame takes no time on the wire */
	/* the time that a signal needs from one end to the other */
	vb_time delay;
	/* the receiver's buffer for each VL, in blocks of 64 bytes; 0: the 2048
	 * blocks that a 12-bit credit limit can use, or, if @extended, as many
	 * as a round trip takes */
	uint32_t buffer;
	/* both ends have range extenders, which count credits in 24 bits */
	bool extended;
	/* Probabilities in units of 2^-32. @lose, @lose_flow: the receiver does
	 * not see the start of a frame, or of a link packet, and so loses it.
	 * @corrupt, @corrupt_flow: some bits of it change on the way. */
	uint32_t lose, corrupt, lose_flow, corrupt_flow;
};

/*
 * Connect two external ports by a link and begin to train it: unless a port is
 * disabled, both ports are in Init after VB_FAB_TRAIN_NS. 0; -EINVAL: no such
 * port; -EEXIST: a port has a link already; -ENOMEM.
 */
#define VB_FAB_TRAIN_NS (100 * VB_USEC)
VB_MUST_CHECK int vb_fab_link(struct vb_fab_net *net, struct vb_fab_node *a,
			      uint8_t a_port, struct vb_fab_node *b,
			      uint8_t b_port,
			      const struct vb_fab_link_spec *spec, vb_time now);
/* Returns the node at the other end of the link of @port; NULL: @port has no
 * link, or one whose other end is in another process. */
struct vb_fab_node *vb_fab_peer(const struct vb_fab_node *node, uint8_t port,
				uint8_t *peer_port);
/* Change rate, delay and errors of a running link, named by either of its
 * ports. A change of @buffer or @extended waits for the next training. 0;
 * -EINVAL: no link. */
VB_MUST_CHECK int vb_fab_tune(struct vb_fab_net *net, struct vb_fab_node *node,
			      uint8_t port, const struct vb_fab_link_spec *spec,
			      vb_time now);
/*
 * Let a switch spread flows over all shortest paths (fabric/adaptive.h), or
 * stop that. Flows that are under way may be reordered once when this changes.
 * 0; -EINVAL: no switch, or it has no linear table; -ENOMEM.
 */
VB_MUST_CHECK int vb_fab_set_adaptive(struct vb_fab_node *node, bool on);
/* Pull the cable (@in false) or plug it in. 0; -EINVAL: @port has no link. */
VB_MUST_CHECK int vb_fab_plug(struct vb_fab_net *net, struct vb_fab_node *node,
			      uint8_t port, bool in, vb_time now);

/*
 * Set the logical state of a port, as a Set of PortInfo does. Allowed are the
 * state that the port has, FAB_ARMED from Init, FAB_ACTIVE from Armed, and
 * FAB_DOWN, after which the link trains again. 0; -EINVAL: not allowed from the
 * present state, or no external port.
 */
VB_MUST_CHECK int vb_fab_set_state(struct vb_fab_net *net,
				   struct vb_fab_node *node, uint8_t port,
				   enum vb_fab_state state, vb_time now);
/* Set the physical state of a port: FAB_DISABLED, FAB_POLLING (train again) or
 * FAB_SLEEP (treated as Polling). 0; -EINVAL: another state, or no such
 * port. */
VB_MUST_CHECK int vb_fab_set_phys(struct vb_fab_net *net,
				  struct vb_fab_node *node, uint8_t port,
				  enum vb_fab_phys phys, vb_time now);

/*
 * Send a frame of @len bytes, LRH to ICRC, from @port. The bytes are copied. A
 * frame whose LRH says VL 15 leaves on VL15; other frames leave on the VL of
 * their SL (SL2VL). At a switch, port 0 routes the frame by its DLID as if it
 * had come in there; another port sends it without a look at the DLID (directed
 * routes). on_local() may call this. 0; -EAGAIN: the queue of that VL is full,
 * and FAB_EV_ROOM comes when it has room (on VL15 the frame is dropped and
 * counted instead); -ENETDOWN: the port is not Active (VL15: not in Init or
 * above); -EMSGSIZE: @len does not fit the LRH, or the MTU; -EINVAL: no such
 * port; -EHOSTUNREACH: no route, or no VL for that SL; -ENOMEM.
 */
VB_MUST_CHECK int vb_fab_send(struct vb_fab_net *net, struct vb_fab_node *node,
			      uint8_t port, const uint8_t *bytes, size_t len,
			      vb_time now);
/*
 * What the port at the other end of a link is able to do, if that end is in
 * another process. fabric/far.h is the protocol between the two processes.
 */
struct vb_fab_far_port {
	/* masks of the link widths and speeds that the port supports and has
	 * enabled */
	uint8_t width, speed, speed_ext;
};

/* Connect an external port to another process. The link is down until
 * vb_fab_far_ready(). Arguments and result are as those of vb_fab_link(). */
VB_MUST_CHECK int vb_fab_link_far(struct vb_fab_net *net,
				  struct vb_fab_node *node, uint8_t port,
				  const struct vb_fab_link_spec *spec,
				  vb_time now);
/* May the link of @port train, as far as this end is concerned? False: the
 * cable is out, or management has disabled the port. */
bool vb_fab_far_is_willing(const struct vb_fab_node *node, uint8_t port);
/* True if this end counts credits with 24 bits. The other end must then do so,
 * too. */
bool vb_fab_far_is_extended(const struct vb_fab_node *node, uint8_t port);
/* Set *@offer to the widths and speeds that this port offers to the other end
 * of its link. */
void vb_fab_far_offer(const struct vb_fab_node *node, uint8_t port,
		      struct vb_fab_far_port *offer);
/* The process at the other end is ready, and its port offers the widths and
 * speeds @offer: the link trains. */
void vb_fab_far_ready(struct vb_fab_net *net, struct vb_fab_node *node,
		      uint8_t port, const struct vb_fab_far_port *offer,
		      vb_time now);
/* The other end is silent, or begins anew: the link goes down. Raises
 * FAB_EV_FAR. */
void vb_fab_far_gone(struct vb_fab_net *net, struct vb_fab_node *node,
		     uint8_t port, vb_time now);
/*
 * Bytes arrive from the link of an external port whose other end is in another
 * process: a frame, LRH to VCRC, or a link packet (6 or 10 bytes; no frame is
 * that short). The port checks them as it checks what comes from any peer, and
 * counts what is wrong. 0; -EINVAL: no link, or it is down; -EMSGSIZE: no frame
 * has that length; -ENOMEM.
 */
VB_MUST_CHECK int vb_fab_arrive(struct vb_fab_net *net,
				struct vb_fab_node *node, uint8_t port,
				const uint8_t *bytes, size_t len, vb_time now);
/* Begin (@on) or stop to call on_wire() for each frame and link packet that
 * passes the external port @port. */
void vb_fab_watch(struct vb_fab_node *node, uint8_t port, bool on);
/* The receiver at @port of an adapter, or port 0 of a switch, has room again:
 * hand out the frames to which on_local() said FAB_HELD. */
void vb_fab_resume(struct vb_fab_net *net, struct vb_fab_node *node,
		   uint8_t port, vb_time now);

/* Answer the question @question of the router @node, which FAB_EV_PATH asked.
 * @path counts if @answer is PATH_KNOWN. The frames that wait for the answer
 * leave, or are dropped, at the time of the network's latest event. Without an
 * answer a path that the router knows stays as it is. Does nothing if the
 * question is answered already. Callbacks may call this. */
void vb_fab_path_is(struct vb_fab_net *net, struct vb_fab_node *node,
		    uint32_t question, enum vb_fab_answer answer,
		    const struct vb_fab_path *path);

/* Count the waits of a port that still last, up to @now, in its XmitWait
 * counters. Otherwise a wait is counted only when it ends. */
void vb_fab_count_waits(struct vb_fab_net *net, struct vb_fab_node *node,
			uint8_t port, vb_time now);

/*
 * Returns the time at which all frames on VL15 that wait at @port now will have
 * arrived at the other end, behind the frame that is being sent, and with link
 * packets between them. @now or less: all have arrived; or the link is down,
 * and the frames are lost.
 */
vb_time vb_fab_mgmt_through(struct vb_fab_net *net,
			    const struct vb_fab_node *node, uint8_t port,
			    vb_time now);

/* Returns the time of the earliest event; VB_NEVER: no event is due at any
 * time. */
vb_time vb_fab_next(const struct vb_fab_net *net);
/* Returns the time of the earliest event that is not the sending of a link
 * packet; VB_NEVER: there is none. */
vb_time vb_fab_next_frame(const struct vb_fab_net *net);
/* Send the link packets now that are due later: IBA 7.9.4 says how seldom they
 * may be sent, and not how often. A caller that is about to sleep then need not
 * set a timer for them. Links that lose packets, and those to other processes,
 * repeat link packets, so they keep their time. False: there was none to
 * send. */
bool vb_fab_tell_early(struct vb_fab_net *net, vb_time now);
/* Handle the earliest event, if it is due at @now or before. Callbacks get the
 * time of the event that caused them. False: no event is due. */
bool vb_fab_step(struct vb_fab_net *net, vb_time now);

#endif
