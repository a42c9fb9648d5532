/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a network keeps its frames. A port is an *end* of a link. A frame waits
 * in a *lane* of the end by which it will leave (an output queue for each VL),
 * and is then on the *wire* of the other end until it arrives there. As long as
 * it waits in a switch it is a *charge* on the buffer of the end where it came
 * in, which is what credits count; the last copy that has left gives it back.
 */
#ifndef FABRIC_NET_PRIV_H
#define FABRIC_NET_PRIV_H

#include "base/timer.h"
#include "fabric/arb.h"
#include "fabric/flow.h"
#include "fabric/net.h"
#include "fabric/switch.h"

#define DATA_VLS 15

/* Bytes that copies share. The VL in them is set whenever somebody looks. */
struct frame {
	uint32_t refs;
	uint16_t len;  /* LRH to ICRC; there is room for the VCRC behind it */
	uint16_t vcrc; /* @altered: of the bytes as they were sent */
	bool altered;  /* a link changed bits */
	uint8_t bytes[];
};

/* Room in the buffer of @end. */
struct charge {
	union {
		struct vb_fab_end *end;
		struct charge *next; /* on the free list */
	};
	uint32_t refs; /* copies */
	uint16_t blocks;
	uint8_t vl;
};

/* One copy of a frame, or a link packet, in a lane or on a wire. */
struct item {
	struct item *next;
	struct frame *frame;   /* NULL: a link packet */
	struct charge *charge; /* NULL: on a wire, or from this very node */
	/* When the first and the last byte arrive. In a lane @head is when the
	 * frame may start to leave. */
	vb_time head, tail;
	vb_time entered; /* into the lane */
	uint16_t blocks;
	uint8_t vl;
	bool bad;  /* its VCRC is known to be wrong */
	bool ends; /* it ends in EBP: somebody before has found it bad */
	uint8_t flow_len;
	uint8_t flow[VB_FLOW_WIDE_BYTES];
};

struct fifo {
	struct item *first, *last;
};

struct lane {
	struct fifo items;
	uint32_t blocks;
	vb_time since;	    /* its first item is the first since then */
	vb_time stalled;    /* until then everything is discarded */
	vb_time wait_since; /* VB_NEVER: it does not wait for credits */
	uint8_t hoq_drops;  /* in a row */
	bool full;	    /* a sender was told -EAGAIN */
};

enum timer_kind { TIMER_XMIT, TIMER_RECV, TIMER_FLOW, TIMER_TRAIN };

struct alarm {
	struct vb_timer timer;
	enum timer_kind kind;
	void *owner; /* struct vb_fab_end; TIMER_TRAIN: struct link */
};

struct vb_fab_end {
	struct vb_fab_net *net;
	struct vb_fab_node *node;
	struct vb_fab_port *port;
	struct link *link;	 /* NULL: none */
	struct vb_fab_end *peer; /* NULL: none */
	uint8_t no;

	/* sending */
	uint16_t waiting;	/* lanes with items */
	uint16_t tell;		/* VLs that owe the peer a link packet */
	uint16_t init;		/* those of them that say "init" */
	vb_time busy;		/* until then a frame is leaving */
	vb_time wait_since;	/* lanes wait for credits, and nothing leaves */
	uint64_t byte_time;	/* 2^-20 ns a byte; 0: unpaced */
	uint32_t carry;		/* the fraction of a ns that is owed */
	uint32_t unmarked;	/* frames since the last FECN */
	struct charge *leaving; /* given back when @busy has come */
	struct vb_arb arb;
	struct lane lane[VB_FAB_VLS];
	struct alarm xmit;

	/* receiving */
	struct fifo wire;
	struct fifo held[VB_FAB_VLS]; /* for on_local(), which has no room */
	uint16_t holding;
	struct alarm recv;

	/* credits of both directions */
	struct vb_flow flow[DATA_VLS];
	vb_time heard[DATA_VLS]; /* VB_NEVER: nothing since training */
	struct alarm flow_alarm;
};

struct link {
	struct vb_fab_end *a, *b;
	struct vb_fab_link_spec spec;
	bool plugged, training;
	vb_time noisy_until; /* link packets repeat until then */
	struct alarm train;
};

struct vb_fab_net {
	struct vb_fab_ops ops;
	struct vb_timers timers;
	vb_time now;
	uint64_t random;
	struct vb_fab_node **node;
	struct vb_fab_end **ends; /* of each node, ports + 1 of them */
	uint32_t nodes, node_room;
	struct link **link;
	uint32_t links, link_room, alarms;
	/* free lists */
	struct item *free_items;
	struct charge *free_charges;
};

/* pool.c. The getters return NULL without memory. */
struct frame *fab_frame_new(const uint8_t *bytes, size_t len);
struct frame *fab_frame_copy(const struct frame *f);
void fab_frame_drop(struct frame *f);
struct item *fab_item_new(struct vb_fab_net *net);
/* Frees the frame's reference and the charge, too. */
void fab_item_free(struct vb_fab_net *net, struct item *it);
struct charge *fab_charge_new(struct vb_fab_net *net);
void fab_charge_free(struct vb_fab_net *net, struct charge *c);
void fab_pool_fini(struct vb_fab_net *net);
void fab_push(struct fifo *q, struct item *it);
struct item *fab_pop(struct fifo *q);
/* The header of a frame, its VL replaced by @vl unless the bits of the frame
 * were changed, when what is in them counts. */
void fab_view(const struct item *it, struct vb_fab_view *v);

/* net.c */
void fab_arm(struct vb_fab_net *net, struct alarm *a, vb_time at);
void fab_disarm(struct vb_fab_net *net, struct alarm *a);
/* Room for that many more alarms, so that arming one cannot fail. 0; -ENOMEM.
 */
VB_MUST_CHECK int fab_reserve_alarms(struct vb_fab_net *net, uint32_t more);
/* No later than @at. */
void fab_arm_by(struct vb_fab_net *net, struct alarm *a, vb_time at);
bool fab_chance(struct vb_fab_net *net, uint32_t of_2_32);
uint32_t fab_random(struct vb_fab_net *net);
void fab_event(struct vb_fab_end *e, const struct vb_fab_event_info *info);
/* Count a drop at a port. */
void fab_count_drop(struct vb_fab_port *p, enum vb_fab_drop drop);

/* xmit.c */
void fab_xmit_fire(struct vb_fab_end *e, vb_time now);
/* Put an item into a lane; @it->head says when it may leave. */
void fab_enqueue(struct vb_fab_end *e, struct item *it, vb_time now);
/* Something changed: send what can be sent, at @at or when the end is free. */
void fab_kick(struct vb_fab_end *e, vb_time at);
/* A copy has left a buffer. */
void fab_charge_give(struct charge *c);
/* Throw away what waits in the lanes. */
void fab_flush_lanes(struct vb_fab_end *e);
/* Throw away what is on the wires, and what is leaving. */
void fab_flush_wire(struct vb_fab_end *e);
/* Bring the XmitWait counters up to @now. */
void fab_settle_wait(struct vb_fab_end *e, vb_time now);

/* recv.c */
void fab_recv_fire(struct vb_fab_end *e, vb_time now);
/* Route what came in at port @in of a switch, or began there. Returns why it
 * went nowhere. Takes the item. */
enum vb_fab_drop fab_relay(struct vb_fab_end *in, struct item *it, vb_time now);
void fab_resume(struct vb_fab_end *e, vb_time now);
/* vb_fab_arrive() at an end that is up. */
int fab_arrive(struct vb_fab_end *e, const uint8_t *bytes, size_t len,
	       vb_time now);
/* When this end handles what arrives. */
vb_time fab_due(const struct vb_fab_end *e, const struct item *it);

/* train.c */
void fab_train_fire(struct link *l, vb_time now);
void fab_flow_fire(struct vb_fab_end *e, vb_time now);
/* The link, not management, changes a port's state; it tells. */
void fab_state_by_link(struct vb_fab_end *e, enum vb_fab_state state);
vb_time fab_flow_period(const struct vb_fab_end *e);
void fab_link_free(struct vb_fab_net *net, struct link *l);

#endif
