/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from a fault (enum vb_fault): the one table that says which NAK,
 * completion status, event and counter it leads to. */
#ifndef CORE_FAULT_H
#define CORE_FAULT_H

#include "core/types.h"
#include "core/adapter.h"

enum vb_fault_action {
	/* Drop the packet, or its message; send nothing. */
	ACT_DROP,
	/* Send the NAK; the requester tries again. */
	ACT_NAK_ONCE,
	/* Send the NAK, then move the queue pair to ERR. */
	ACT_NAK_AND_DIE,
	/* Move the queue pair to ERR; send nothing. */
	ACT_DIE,
};

struct vb_fault_row {
	uint8_t action;	  /* enum vb_fault_action */
	uint8_t syndrome; /* of the NAK's AETH */
	uint8_t status;	  /* enum vb_wc_status of the WQE in progress */
	/* the enum vb_event_type if no WQE can report the fault; -1: none */
	int8_t event;
	int8_t counter; /* enum vb_counter to increment; -1: none */
};

/* The row of @fault for RC and XRC (IBA 9.9.3). @fault is one that a
 * request can cause: FAULT_RKEY or a later one. */
const struct vb_fault_row *vb_fault_rc(enum vb_fault fault);

/* The row of @fault for UC and UD, which send no answers (IBA 9.8.2). */
const struct vb_fault_row *vb_fault_unreliable(enum vb_fault fault);

/* The status of a request that a NAK with @syndrome ends. Not for the NAK of a
 * PSN sequence error, nor RNR: these are retried. */
enum vb_wc_status vb_fault_nak_status(uint8_t syndrome);

#endif
