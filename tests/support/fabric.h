/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric for tests: nodes with links, a subnet manager that does its work in
 * no time (LIDs, routes, states), and streams of frames between adapters that
 * are counted and checked where they arrive.
 */
#ifndef TESTS_SUPPORT_FABRIC_H
#define TESTS_SUPPORT_FABRIC_H

#include "fabric/cc.h"
#include "fabric/net.h"

struct stream {
	struct vb_fab_node *from;
	uint16_t slid, dlid;
	uint8_t sl;
	uint32_t len;	/* LRH to ICRC, a multiple of 4, at least 48 */
	vb_time period; /* between two frames; 0: as fast as it can */
	uint64_t most;	/* frames; UINT64_MAX: for ever */
	/* It slows down for congestion, as its port's settings say: the
	 * receiver of a frame with FECN sends a CNP, which is a frame of its
	 * own. */
	bool controlled;
	struct vb_cc cc;
	vb_time frame_ns; /* of a frame on its link */

	vb_time next; /* VB_NEVER: waits for room, or is done */
	uint64_t sent, got, got_bytes, marked, lost;
	uint64_t next_seq; /* to come */
	vb_time worst, last_latency, first_at, last_at;
};

struct fabt;
/* Sees what @port sends. */
typedef void fabt_look(struct fabt *t, struct vb_fab_node *node, uint8_t port,
		       const uint8_t *bytes, size_t len);

struct fabt {
	struct vb_fab_net *net;
	struct stream *stream;
	uint32_t streams, stream_room;
	vb_time now;
	uint16_t lids; /* given out */
	struct vb_fab_node **by_lid;
	/* seen */
	uint64_t foreign, disordered, bad_icrc, local_vl15, cnps, events[8];
	bool woken; /* a stream has room again */
	/* What on_local() answers now and then: a slow receiver. */
	uint32_t hold_of_2_32;
	uint64_t random;
	bool (*on_local)(struct fabt *t, struct vb_fab_node *node, uint8_t port,
			 const uint8_t *bytes, size_t len);
	fabt_look *on_wire;
	/* Links to another process. */
	void (*on_far)(struct fabt *t, struct vb_fab_node *node,
		       const uint8_t *bytes, size_t len);
	void (*on_far_event)(struct fabt *t, struct vb_fab_node *node,
			     vb_time now);
};

void fabt_init(struct fabt *t, uint64_t seed);
void fabt_fini(struct fabt *t);
struct vb_fab_node *fabt_switch(struct fabt *t, unsigned ports);
struct vb_fab_node *fabt_adapter(struct fabt *t);
struct vb_fab_node *fabt_add(struct fabt *t, const struct vb_fab_node_spec *s);
void fabt_link(struct fabt *t, struct vb_fab_node *a, unsigned a_port,
	       struct vb_fab_node *b, unsigned b_port,
	       const struct vb_fab_link_spec *spec);

enum fabt_routes {
	FABT_SHORTEST,	/* by hops, the lowest port first */
	FABT_CLOCKWISE, /* port 1 of each switch unless the adapter is its own:
			   a ring that can deadlock */
	FABT_UP_DOWN,	/* never up again after down; ranks from switch 0 */
};

/* Train, give LIDs, write tables, and bring all ports to Active, with @vls as
 * OperVLs (a code). */
void fabt_up(struct fabt *t, enum fabt_routes routes, uint8_t vls);
/* Write the linear tables again, for the links that are up. */
void fabt_route(struct fabt *t, enum fabt_routes routes);
/* @look at what all ports send, from now on. */
void fabt_watch(struct fabt *t, fabt_look *look);
/* Init to Active for ports whose link came up again. */
void fabt_activate(struct fabt *t);

/* Begin a stream at @t->now; the pointer is valid until the next is added. */
struct stream *fabt_stream(struct fabt *t, struct vb_fab_node *from,
			   struct vb_fab_node *to, uint32_t len);
void fabt_run(struct fabt *t, vb_time until);
/* The LID of an adapter's port 1, or of a switch. */
uint16_t fabt_lid(const struct vb_fab_node *n);
/* A frame for @s, in @bytes of @s->len. */
void fabt_frame(const struct stream *s, uint32_t index, vb_time now,
		uint8_t *bytes);
uint32_t fabt_random(struct fabt *t);
/* Sum a counter over all ports of all nodes. */
uint64_t fabt_sum(const struct fabt *t, enum vb_fab_counter which);

#endif
