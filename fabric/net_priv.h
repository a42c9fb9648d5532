/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a network keeps its frames. A port is an *end* of a link. A frame waits
 * in a *lane* (an output queue for each VL) of the end by which it will leave,
 * and is then on the *wire* of the other end until it arrives there. A frame in
 * a switch is also a *charge*: it occupies the buffer of the end where it came
 * in, which credits count. When its last copy has left, the charge is given
 * back.
 */
#ifndef FABRIC_NET_PRIV_H
#define FABRIC_NET_PRIV_H

#include "base/timer.h"
#include "fabric/arb.h"
#include "fabric/flow.h"
#include "fabric/net.h"
#include "fabric/switch.h"
#include "fabric/threshold.h"

#define DATA_VLS 15
#define FRACTION 20 /* bits of a nanosecond in byte_time */

/* The bytes of a frame; all copies of the frame share them. The copies may have
 * different VLs, so a function must write the VL of its copy into the bytes
 * before it reads them. The bytes of an altered frame are not changed. */
struct frame {
	uint32_t refs;
	/* bytes from LRH to ICRC; @bytes has room for the VCRC behind them */
	uint16_t len;
	/* valid if @altered: the VCRC of the bytes before a link changed
	 * them */
	uint16_t vcrc;
	bool altered; /* a link has changed bits of @bytes */
	uint8_t bytes[];
};

/* What a frame occupies in the buffer of @end. */
struct charge {
	union {
		struct vb_fab_end *end;
		/* the next charge on the network's list of free charges */
		struct charge *next;
	};
	uint32_t refs; /* copies of the frame that have not left the node yet */
	uint16_t blocks;
	uint8_t vl;
};

/* One copy of a frame, or a link packet, in a lane or on a wire. */
struct item {
	struct item *next;
	/* the frame that the item carries; NULL: the item is a link packet */
	struct frame *frame;
	/* the buffer space of the frame; NULL: the item is on a wire, or this
	 * node itself sent the frame */
	struct charge *charge;
	/* On a wire: the times at which the frame's first and last byte arrive.
	 * In a lane: @head is the earliest time at which the frame may start to
	 * leave. */
	vb_time head, tail;
	vb_time entered; /* the time at which the item came into the lane */
	uint16_t blocks;
	uint8_t vl;
	bool bad; /* the frame's VCRC is known to be wrong */
	/* the frame ends in EBP, because an earlier node found it damaged */
	bool ends;
	uint8_t flow_len;
	uint8_t flow[VB_FC_WIDE_BYTES];
};

struct fifo {
	struct item *first, *last;
};

struct lane {
	struct fifo items;
	uint32_t blocks;
	/* the time since which the lane's first item has been the first */
	vb_time since;
	/* until this time a stalled lane discards all its items */
	vb_time stalled;
	/* the time since which the lane has waited for credits; VB_NEVER: it
	 * does not wait */
	vb_time wait_since;
	/* the time since which the lane has been congested; VB_NEVER: it is
	 * not */
	vb_time cong_since;
	/* how many items in a row the lane discarded for the head-of-queue
	 * limit (HOQLife) */
	uint8_t hoq_drops;
	/* vb_fab_send() has returned -EAGAIN for this lane, so FAB_EV_ROOM is
	 * due later */
	bool full;
};

enum timer_kind { TIMER_XMIT, TIMER_RECV, TIMER_FLOW, TIMER_TRAIN, TIMER_PACE };

struct alarm {
	struct vb_timer timer;
	enum timer_kind kind;
	/* the struct vb_fab_end of the alarm; of TIMER_TRAIN the struct link */
	void *owner;
};

struct vb_fab_end {
	struct vb_fab_net *net;
	/* the node of this end; NULL: the end is in another process */
	struct vb_fab_node *node;
	struct vb_fab_port *port;
	struct link *link; /* the link of this port; NULL: the port has none */
	/* the other end of the link; NULL: the port has no link */
	struct vb_fab_end *peer;
	uint8_t no;
	/* on_wire() is called for each frame and link packet that passes this
	 * end */
	bool watched;

	/* The sending side of the end. */
	uint16_t waiting; /* mask of the lanes that have items */
	/* mask of the VLs for which this end owes the peer a link packet */
	uint16_t tell;
	/* of @tell: mask of the VLs whose next link packet has the operand
	 * "initialize" */
	uint16_t init;
	/* the time at which the frame that is being sent has left */
	vb_time busy;
	/* the time since which no lane has been able to send because credits
	 * lack */
	vb_time wait_since;
	/* time on the wire of one byte, in units of 2^-20 ns; 0: frames take no
	 * time */
	uint64_t byte_time;
	/* the fraction of a nanosecond, in units of 2^-20 ns, left over from
	 * earlier frames */
	uint32_t carry;
	/* frames sent since the last one that was marked with FECN */
	uint32_t unmarked;
	/* the charge of the frame that is being sent, given back at time
	 * @busy */
	struct charge *leaving;
	struct vb_arb arb;
	struct lane lane[VB_FAB_VLS];
	struct alarm xmit;
	/* mask of the lanes with more blocks than the threshold of
	 * congestion */
	uint16_t congested;
	/* the time since which some lane is in @congested */
	vb_time cong_since;
	/* Flows of an adapter that congestion control holds back; NULL: none
	 * was ever (fabric/congest.h). */
	struct vb_fab_pacer *pacer;

	/* The receiving side of the end. */
	struct fifo wire;
	/* frames that on_local() refused with FAB_HELD, for each VL */
	struct fifo held[VB_FAB_VLS];
	uint16_t holding;
	struct alarm recv;

	/* what counts towards the error thresholds of the port */
	struct vb_fab_errors errors;

	/* credits of both directions */
	struct vb_fc flow[DATA_VLS];
	/* the time of each VL's last link packet; VB_NEVER: none has come
	 * yet */
	vb_time heard[DATA_VLS];
	struct alarm flow_alarm;
};

/*
 * The end of a link that is in another process. This network keeps it like an
 * end of its own, so that training, rate, delay and errors are those of any
 * link. It never sends: what comes from the other process arrives at the near
 * end. What arrives here leaves by on_far(). Its port is Disabled as long as
 * the other process is not ready.
 */
struct far_end {
	struct vb_fab_end end;
	struct vb_fab_port port;
};

struct link {
	struct vb_fab_end *a, *b;
	/* contains @b if that end is in another process; NULL: both ends are in
	 * this network */
	struct far_end *far;
	struct vb_fab_link_spec spec;
	bool plugged, training;
	/* until this time both ends repeat link packets, because the link loses
	 * packets */
	vb_time noisy_until;
	/* until this time the ends of a link to another process repeat link
	 * packets more often */
	vb_time busy_until;
	struct alarm train;
};

struct vb_fab_net {
	struct vb_fab_ops ops;
	struct vb_timers timers;
	/* the alarms of kind TIMER_FLOW, which vb_fab_next_frame() ignores */
	struct vb_timers flow_timers;
	vb_time now;
	uint32_t changes; /* number of changes of ports' states so far */
	uint64_t random;
	struct vb_fab_node **node;
	/* the ends of each node: one for each port 0..ports */
	struct vb_fab_end **ends;
	uint32_t nodes, node_room;
	struct link **link;
	uint32_t links, link_room, alarms;
	/* Free lists, from which new items and charges come. */
	struct item *free_items;
	struct charge *free_charges;
};

/* pool.c. Functions that return a pointer return NULL when memory is
 * exhausted. */
struct frame *fab_frame_new(const uint8_t *bytes, size_t len);
struct frame *fab_frame_copy(const struct frame *f);
void fab_frame_drop(struct frame *f);
struct item *fab_item_new(struct vb_fab_net *net);
/* Free the item, its reference to the frame, and its charge. */
void fab_item_free(struct vb_fab_net *net, struct item *it);
struct charge *fab_charge_new(struct vb_fab_net *net);
void fab_charge_free(struct vb_fab_net *net, struct charge *c);
void fab_pool_fini(struct vb_fab_net *net);
void fab_push(struct fifo *q, struct item *it);
struct item *fab_pop(struct fifo *q);
/* Returns the bytes of an item as they are on the wire: a link packet, or a
 * frame with its VL and VCRC, which this function writes into it. Behind a
 * frame that an earlier node has found bad the VCRC is inverted (IBA 7.8.3). */
const uint8_t *fab_wire_bytes(struct item *it, size_t *len);
/* Write to @v the header of an item's frame, with the VL of the item. If a link
 * altered the frame's bytes, the VL comes from the bytes as well. */
void fab_view(const struct item *it, struct vb_fab_view *v);

/* Functions of net.c. */
/* Make @e an end of a link: the port @port, number @no of @node. */
void fab_end_init(struct vb_fab_net *net, struct vb_fab_end *e,
		  struct vb_fab_node *node, struct vb_fab_port *port,
		  uint8_t no);
void fab_arm(struct vb_fab_net *net, struct alarm *a, vb_time at);
void fab_disarm(struct vb_fab_net *net, struct alarm *a);
/* Make room for @more alarms in the heap, so that fab_arm() cannot fail. 0;
 * -ENOMEM. */
VB_MUST_CHECK int fab_reserve_alarms(struct vb_fab_net *net, uint32_t more);
/* Set the alarm to @at, unless it is set to an earlier time. */
void fab_arm_by(struct vb_fab_net *net, struct alarm *a, vb_time at);
bool fab_chance(struct vb_fab_net *net, uint32_t of_2_32);
uint32_t fab_random(struct vb_fab_net *net);
void fab_event(struct vb_fab_end *e, const struct vb_fab_event_info *info);
/* Count a dropped frame at port @p, in the counters that @drop demands. */
void fab_count_drop(struct vb_fab_port *p, enum vb_fab_drop drop);

/* Functions of xmit.c. */
void fab_xmit_fire(struct vb_fab_end *e, vb_time now);
/* Show on_wire() the item, if the end is watched. */
void fab_show(struct vb_fab_end *e, struct item *it,
	      enum vb_fab_direction direction, vb_time now);
/* Put an item into a lane; @it->head says when it may leave. */
void fab_enqueue(struct vb_fab_end *e, struct item *it, vb_time now);
/* Call after a change that lets the end send more: it sends what it can at @at,
 * or when the frame being sent has left. */
void fab_kick(struct vb_fab_end *e, vb_time at);
/* One copy of the frame has left the node. After the last copy the buffer space
 * of the charge is free, and the peer gets its credits back. */
void fab_charge_give(struct charge *c);
/* Discard the items that wait in the lanes of @e. */
void fab_flush_lanes(struct vb_fab_end *e);
/* Discard the items on the wire to @e, and the charge of the frame it sends. */
void fab_flush_wire(struct vb_fab_end *e);
/* Count waits for credits, and congestion, that still last, up to @now. */
void fab_count_waits(struct vb_fab_end *e, vb_time now);
/* Returns the result of vb_fab_mgmt_through() for an end whose link is up. */
vb_time fab_mgmt_through(const struct vb_fab_end *e, vb_time now);
/* Returns how long @bytes are on the wire of the link. */
vb_time fab_wire_ns(const struct vb_fab_end *e, size_t bytes);

/* Functions of recv.c. */
void fab_recv_fire(struct vb_fab_end *e, vb_time now);
/* Route a frame in a switch: it came in at @in, or port 0 sent it. Takes over
 * the item. Returns why the frame was dropped, or DROP_NOT. */
enum vb_fab_drop fab_relay(struct vb_fab_end *in, struct item *it, vb_time now);
void fab_resume(struct vb_fab_end *e, vb_time now);
/* Do what vb_fab_arrive() does after its checks: hand @bytes to the end, whose
 * link is up. */
int fab_arrive(struct vb_fab_end *e, const uint8_t *bytes, size_t len,
	       vb_time now);
/* Returns the time at which end @e handles the item, which is on its wire. */
vb_time fab_due(const struct vb_fab_end *e, const struct item *it);

/* Functions of train.c. */
void fab_train_fire(struct link *l, vb_time now);
void fab_fc_fire(struct vb_fab_end *e, vb_time now);
/* Do the ends of the link repeat link packets? */
bool fab_is_noisy(const struct link *l, vb_time now);
/* Change a port's state because of its link, not of management, and raise
 * FAB_EV_STATE. */
void fab_state_by_link(struct vb_fab_end *e, enum vb_fab_state state);
vb_time fab_fc_period(const struct vb_fab_end *e);
/* Returns the number of the period of flow control updates in which @now is. */
vb_time fab_fc_period_number(const struct vb_fab_end *e, vb_time now);
/* Call this when a frame passes @e, or when buffer space of a frame became
 * free: if the link leads to another process, both ends repeat link packets
 * more often for some time. */
void fab_stir(struct vb_fab_end *e, vb_time now);
void fab_link_free(struct vb_fab_net *net, struct link *l);
/* Make a link between the ends @a and @b, and set *@made to it. Arguments and
 * result are those of vb_fab_link(). */
VB_MUST_CHECK int fab_link_make(struct vb_fab_end *a, struct vb_fab_end *b,
				const struct vb_fab_link_spec *spec,
				vb_time now, struct link **made);
/* Begin to train the link if both of its ends are willing to. */
void fab_try_train(struct link *l, vb_time now);
/* Take both ends of the link down. @by: the end at which management asked for
 * it; NULL: management did not ask. */
void fab_take_down(struct link *l, const struct vb_fab_end *by);

/* Functions of far_end.c. */
/* Pass an item that has arrived at the end @e, which is in another process, to
 * that process. Frees the item. */
void fab_far_deliver(struct vb_fab_end *e, struct item *it, vb_time now);
/* Raise FAB_EV_FAR, if the link ends in another process. */
void fab_far_tell(struct link *l);

#endif
