/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering: rules that say which raw packet queue pair a frame is for,
 * and counters of what met them.
 */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include "core/qp.h"
#include "wire/eth.h"

/* Those asked first come first. Values do not matter to the ABI. */
enum vb_flow_kind {
	FLOW_NORMAL,
	FLOW_MC_DEFAULT,  /* groups' frames that no rule above is for */
	FLOW_ALL_DEFAULT, /* all that is for none above */
	FLOW_SNIFFER,	  /* a copy of everything, both ways */
};

#define VB_COUNTER_POINTS 32

enum vb_counter_unit { COUNT_PACKETS, COUNT_BYTES };

struct vb_counters {
	_Atomic uint64_t seen[2]; /* by enum vb_counter_unit */
	_Atomic uint32_t flows;	  /* that count here */
	/* the program's order: where a value is to be read */
	struct vb_mutex lock;
	uint32_t points; /* lock */
	struct {
		enum vb_counter_unit unit;
		uint32_t index;
	} point[VB_COUNTER_POINTS]; /* lock */
};

struct vb_flow_rule {
	enum vb_flow_kind kind;
	uint16_t priority; /* lower comes first */
	bool drop, dont_trap;
	uint32_t tag;
	struct vb_eth_key value, mask;
	struct vb_counters *counters; /* or NULL */
};

/* In the list of its adapter, those asked first first. */
struct vb_flow {
	struct vb_flow_rule rule;
	struct vb_qp *qp;
	struct vb_flow *next;
};

/* -EINVAL: a rule that contradicts itself. Clears what the mask hides. */
VB_MUST_CHECK int vb_flow_check(struct vb_flow_rule *rule);

/* Behind those of the same rank: the first one made is asked first. */
void vb_flow_insert(struct vb_flow **first, struct vb_flow *f);
void vb_flow_remove(struct vb_flow **first, struct vb_flow *f);

/*
 * Is a frame of @bytes bytes for @qp? Counts it for rules of @qp. All queue
 * pairs with the same rule get it; of rules that overlap the first has it.
 * *@tag: as its rule says.
 */
bool vb_flow_steer(const struct vb_flow *first, const struct vb_qp *qp,
		   const struct vb_eth_key *key, uint32_t bytes, uint32_t *tag);

/* -ENOMEM. */
VB_MUST_CHECK int vb_counters_create(struct vb_counters **c);
VB_MUST_CHECK int vb_counters_destroy(struct vb_counters *c); /* -EBUSY */
/* -EBUSY: in use; -EINVAL: no such place, or too many. */
VB_MUST_CHECK int vb_counters_attach(struct vb_counters *c,
				     enum vb_counter_unit unit, uint32_t index);
/* Every place of @values, of which there are @count. */
void vb_counters_read(struct vb_counters *c, uint64_t *values, uint32_t count);

#endif
