/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric for tests: nodes with links, a subnet manager that does its work in
 * no time (LIDs, routes, states), and streams of frames between adapters that
 * are counted and checked where they arrive.
 */
#ifndef TESTS_SUPPORT_FABRIC_H
#define TESTS_SUPPORT_FABRIC_H

#include "fabric/net.h"

struct stream {
	struct vb_fab_node *from;
	uint16_t slid, dlid;
	uint8_t sl;
	/* bytes of a frame from LRH to ICRC, a multiple of 4, at least 48 */
	uint32_t len;
	/* time from one frame to the next; 0: as fast as the link permits */
	vb_time period;
	uint64_t most; /* number of frames to send; UINT64_MAX: no limit */

	/* time of the next frame; VB_NEVER: the stream waits for room, or has
	 * sent all */
	vb_time next;
	uint64_t sent, got, got_bytes, marked, lost;
	/* sequence number of the stream's next frame to arrive */
	uint64_t next_seq;
	vb_time worst, last_latency, first_at, last_at;
};

struct fabt;
/* A callback for each frame that @port of @node sends. */
typedef void fabt_look(struct fabt *t, struct vb_fab_node *node, uint8_t port,
		       const uint8_t *bytes, size_t len);

struct fabt {
	struct vb_fab_net *net;
	struct stream *stream;
	uint32_t streams, stream_room;
	vb_time now;
	uint16_t lids; /* number of LIDs that fabt_up() assigned */
	struct vb_fab_node **by_lid;
	/* Numbers of frames with such an error, and of events by their kind. */
	uint64_t foreign, disordered, bad_icrc, local_vl15, events[8];
	/* true: a stream that waited may send again, because a node got room */
	bool woken;
	/* The probability, in units of 2^-32, that on_local() answers FAB_HELD,
	 * as a slow receiver does. */
	uint32_t hold_of_2_32;
	uint64_t random;
	bool (*on_local)(struct fabt *t, struct vb_fab_node *node, uint8_t port,
			 const uint8_t *bytes, size_t len);
	fabt_look *on_wire;
	/* Called for frames and for events of links to another process. */
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
	/* routes with the fewest hops; of equal ports the LID chooses one */
	FABT_SHORTEST,
	/* routes round a ring, which can deadlock: a switch sends by its port
	 * 1, unless the destination adapter is at that switch */
	FABT_CLOCKWISE,

	/* up/down routes, which never go up again after they went down; switch
	 * 0 is the highest */
	FABT_UP_DOWN,
};

/* Train links, assign LIDs, write forwarding tables, and bring all ports to
 * Active. @vls: the code for OperVLs. */
void fabt_up(struct fabt *t, enum fabt_routes routes, uint8_t vls);
/* Write the linear tables again, for the links that are up now. */
void fabt_route(struct fabt *t, enum fabt_routes routes);
/* Call @look for each frame that a port sends from now on. */
void fabt_watch(struct fabt *t, fabt_look *look);
/* Move ports whose link came up again from Init to Active. */
void fabt_activate(struct fabt *t);

/* Begin a stream at the time @t->now; the pointer is valid until the next
 * stream is added. */
struct stream *fabt_stream(struct fabt *t, struct vb_fab_node *from,
			   struct vb_fab_node *to, uint32_t len);
void fabt_run(struct fabt *t, vb_time until);
/* Returns the LID of an adapter's port 1, or of a switch. */
uint16_t fabt_lid(const struct vb_fab_node *n);
/* Write the frame @index of stream @s, of @s->len bytes, to @bytes. */
void fabt_frame(const struct stream *s, uint32_t index, vb_time now,
		uint8_t *bytes);
uint32_t fabt_random(struct fabt *t);
/* Returns the sum of the counter @which over all ports of all nodes. */
uint64_t fabt_sum(const struct fabt *t, enum vb_fab_counter which);

#endif
