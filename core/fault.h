/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from a fault: the one place where faults become answers. */
#ifndef CORE_FAULT_H
#define CORE_FAULT_H

#include "core/types.h"
#include "core/adapter.h"

enum vb_fault_action {
	ACT_DROP,	 /* what arrived, or its message; nobody is told */
	ACT_NAK_ONCE,	 /* answer; the requester will try again */
	ACT_NAK_AND_DIE, /* answer, then ERR */
	ACT_DIE,	 /* ERR without an answer */
};

struct vb_fault_row {
	uint8_t action;	  /* enum vb_fault_action */
	uint8_t syndrome; /* of the NAK */
	uint8_t status;	  /* enum vb_wc_status of the local WQE under way */
	int8_t event;	  /* enum vb_event_type when no WQE can tell; -1 none */
	int8_t counter;	  /* enum vb_counter of the NAK or drop; -1 none */
};

/* @fault is what a request can be at fault for: FAULT_RKEY and after. */
const struct vb_fault_row *vb_fault_rc(enum vb_fault fault);

/* The same for UC and UD, which answer nothing. */
const struct vb_fault_row *vb_fault_unreliable(enum vb_fault fault);

/* The requester's status for a NAK that ends a request (not PSN, not RNR). */
enum vb_wc_status vb_fault_nak_status(uint8_t syndrome);

#endif
