/* SPDX-License-Identifier: BSD-2-Clause */
/* The consequences of a fault (enum vb_fault): one table that says which NAK,
 * completion status, event and counter a fault leads to. */
#ifndef CORE_FAULT_H
#define CORE_FAULT_H

#include "core/types.h"
#include "core/adapter.h"

enum vb_fault_action {
	/* Drop the packet, or its message; send nothing. */
	ACT_DROP,
	/* Send the NAK; the requester then repeats the request. */
	ACT_NAK_ONCE,
	/* Send the NAK, then move the queue pair to ERR. */
	ACT_NAK_AND_DIE,
	/* Move the queue pair to ERR; send nothing. */
	ACT_DIE,
};

struct vb_fault_row {
	uint8_t action;	  /* what to do, an enum vb_fault_action */
	uint8_t syndrome; /* the syndrome in the AETH of the NAK */
	/* the enum vb_wc_status with which the WQE in progress completes */
	uint8_t status;
	/* the enum vb_event_type to raise if no WQE can report the fault; -1:
	 * none */
	int8_t event;
	int8_t counter; /* the enum vb_counter to increment; -1: none */
};

/* Returns the row of @fault for RC and XRC (IBA 9.9.3). @fault is FAULT_RKEY or
 * a later value, since only these can be caused by a request. */
const struct vb_fault_row *vb_fault_rc(enum vb_fault fault);

/* Returns the row of @fault for UC and UD, which send no answers (IBA
 * 9.8.2). */
const struct vb_fault_row *vb_fault_unreliable(enum vb_fault fault);

/* Returns the completion status of a request that a NAK with @syndrome ends.
 * The syndrome must not be a PSN sequence error or RNR, after which the request
 * is repeated. */
enum vb_wc_status vb_fault_nak_status(uint8_t syndrome);

#endif
