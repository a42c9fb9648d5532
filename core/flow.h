/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow steering: rules that say which raw packet queue pair receives a frame,
 * and counters of the frames that matched. */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include "core/qp.h"
#include "wire/eth.h"

/* Kinds of rules: a frame is compared with the rules of the first kind first.
 * The values are not those of the ABI. */
enum vb_flow_kind {
	FLOW_NORMAL,
	/* matches multicast frames that no FLOW_NORMAL rule matches */
	FLOW_MC_DEFAULT,
	/* matches frames that no rule of the kinds above matches */
	FLOW_ALL_DEFAULT,
	/* matches every frame, received or sent: the queue pair gets a copy */
	FLOW_SNIFFER,
};

#define VB_COUNTER_POINTS 32

enum vb_counter_unit { COUNT_PACKETS, COUNT_BYTES };

struct vb_counters {
	/* frames or bytes counted, indexed by enum vb_counter_unit */
	_Atomic uint64_t seen[2];
	_Atomic uint32_t flows; /* number of rules that count in this set */
	/* Maps counters to indices of the array that the program reads. */
	struct vb_mutex lock;
	/* number of used entries of @point; protected by lock */
	uint32_t points;
	struct {
		enum vb_counter_unit unit;
		uint32_t index;
	} point[VB_COUNTER_POINTS]; /* protected by lock */
};

struct vb_flow_rule {
	enum vb_flow_kind kind;
	/* frames are compared with rules of lower values first */
	uint16_t priority;
	bool drop, dont_trap;
	uint32_t tag;
	struct vb_eth_key value, mask;
	/* the set of counters for matching frames; NULL: none */
	struct vb_counters *counters;
};

/* A rule in its adapter's list. The list is sorted: a frame is compared with
 * the rules in this order. */
struct vb_flow {
	struct vb_flow_rule rule;
	struct vb_qp *qp;
	struct vb_flow *next;
};

/* Check a rule and clear the bits of its value that are outside its mask.
 * -EINVAL: its parts contradict each other. */
VB_MUST_CHECK int vb_flow_check(struct vb_flow_rule *rule);

/* Insert @f behind the rules of equal rank, so that the oldest of these wins.
 * The caller holds the engine's receive lock, which protects the list. */
void vb_flow_insert(struct vb_flow **first, struct vb_flow *f);
/* Remove @f from the list. The caller holds the engine's receive lock. */
void vb_flow_remove(struct vb_flow **first, struct vb_flow *f);

/* Does a frame of @bytes bytes go to @qp? Counts the frame for the rules of @qp
 * that match. If different rules match, the first one decides; every queue pair
 * with an equal rule receives the frame. *@tag: the flow tag of the rule. */
bool vb_flow_steer(const struct vb_flow *first, const struct vb_qp *qp,
		   const struct vb_eth_key *key, uint32_t bytes, uint32_t *tag);

/* Allocate a set of counters, which the caller owns. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_counters_create(struct vb_counters **c);
/* Free the set @c. -EBUSY while a rule counts in @c. */
VB_MUST_CHECK int vb_counters_destroy(struct vb_counters *c);
/* From now on vb_counters_read() puts the counter of @unit into place @index of
 * its array. -EBUSY: a rule counts in @c already; -EINVAL: @index is too large,
 * or too many places are in use. */
VB_MUST_CHECK int vb_counters_attach(struct vb_counters *c,
				     enum vb_counter_unit unit, uint32_t index)
	VB_EXCLUDES(c->lock);
/* Fill the first @count entries of @values with the counters attached to these
 * indices. */
void vb_counters_read(struct vb_counters *c, uint64_t *values, uint32_t count)
	VB_EXCLUDES(c->lock);

#endif
