/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow steering: rules that say which raw packet queue pair receives a frame,
 * and counters of the frames that matched. */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include "core/qp.h"
#include "wire/eth.h"

/* Kinds of rules in the order in which they are consulted. The ABI has other
 * values. */
enum vb_flow_kind {
	FLOW_NORMAL,
	/* multicast frames that no FLOW_NORMAL rule matches */
	FLOW_MC_DEFAULT,
	/* frames that no rule above matches */
	FLOW_ALL_DEFAULT,
	/* a copy of every frame, received and sent */
	FLOW_SNIFFER,
};

#define VB_COUNTER_POINTS 32

enum vb_counter_unit { COUNT_PACKETS, COUNT_BYTES };

struct vb_counters {
	_Atomic uint64_t seen[2]; /* indexed by enum vb_counter_unit */
	_Atomic uint32_t flows;	  /* flows that count here */
	/* The places of the program's array into which the values are read. */
	struct vb_mutex lock;
	uint32_t points; /* under lock */
	struct {
		enum vb_counter_unit unit;
		uint32_t index;
	} point[VB_COUNTER_POINTS]; /* under lock */
};

struct vb_flow_rule {
	enum vb_flow_kind kind;
	uint16_t priority; /* rules with lower values are consulted first */
	bool drop, dont_trap;
	uint32_t tag;
	struct vb_eth_key value, mask;
	struct vb_counters *counters; /* counts matching frames; or NULL */
};

/* A rule in the list of its adapter, which is sorted in the order of
 * consultation. */
struct vb_flow {
	struct vb_flow_rule rule;
	struct vb_qp *qp;
	struct vb_flow *next;
};

/* Check and normalize a rule: bits of the value outside the mask are cleared.
 * -EINVAL: the rule contradicts itself. */
VB_MUST_CHECK int vb_flow_check(struct vb_flow_rule *rule);

/* Insert @f behind the rules of equal rank, so that the oldest rule is
 * consulted first. The list is under the engine's receive lock. */
void vb_flow_insert(struct vb_flow **first, struct vb_flow *f);
/* Remove @f from the list, under the same lock. */
void vb_flow_remove(struct vb_flow **first, struct vb_flow *f);

/* Does a frame of @bytes bytes go to @qp? Increments the counters of @qp's
 * rules. All queue pairs with the same rule receive the frame; among
 * overlapping rules the first one wins. *@tag is the rule's. */
bool vb_flow_steer(const struct vb_flow *first, const struct vb_qp *qp,
		   const struct vb_eth_key *key, uint32_t bytes, uint32_t *tag);

/* Allocate a set of counters, which the caller owns. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_counters_create(struct vb_counters **c);
/* Free it. -EBUSY while a flow counts there. */
VB_MUST_CHECK int vb_counters_destroy(struct vb_counters *c);
/* Read the counter of @unit into place @index of the array. -EBUSY: a flow
 * counts there already; -EINVAL: no such place, or too many places. */
VB_MUST_CHECK int vb_counters_attach(struct vb_counters *c,
				     enum vb_counter_unit unit, uint32_t index)
	VB_EXCLUDES(c->lock);
/* Fill the @count places of @values. */
void vb_counters_read(struct vb_counters *c, uint64_t *values, uint32_t count)
	VB_EXCLUDES(c->lock);

#endif
