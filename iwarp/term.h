/* SPDX-License-Identifier: BSD-2-Clause */
/* The faults that end a stream, and the error that each side reports. */
#ifndef IWARP_TERM_H
#define IWARP_TERM_H

#include "core/adapter.h"
#include "core/types.h"
#include "wire/iwarp.h"

enum vb_iw_fault {
	IWF_NONE,
	/* Faults of RDMAP (RFC 5040 s8.2). */
	IWF_LOCAL, /* this side is at fault, and not the peer */
	IWF_RQE_LKEY,
	IWF_READ_STAG,
	IWF_READ_BOUNDS,
	IWF_RIGHTS,
	IWF_READ_DOMAIN,
	IWF_READ_WRAP,
	/* the key permits the access, but a page of the memory is missing */
	IWF_MEMORY,
	IWF_INVALIDATE,
	IWF_RDMAP_VERSION,
	IWF_OPCODE,
	IWF_STREAM,
	IWF_GLOBAL,
	/* a malformed message, or an atomic's address that is not aligned */
	IWF_UNSPECIFIED,
	/* Faults of DDP (RFC 5041 s8.2). */
	IWF_DDP,
	IWF_WRITE_STAG,
	IWF_WRITE_BOUNDS,
	IWF_WRITE_DOMAIN,
	IWF_WRITE_WRAP,
	IWF_TAGGED_VERSION,
	IWF_QUEUE,
	IWF_NO_BUFFER,
	IWF_TOO_MANY_READS,
	IWF_MSN,
	IWF_MO,
	IWF_TOO_LONG,
	IWF_UNTAGGED_VERSION,
	/* Faults of MPA (RFC 5044 s8, RFC 6581 s9.2). */
	IWF_LOST,
	IWF_CRC,
	IWF_MARKER,
	IWF_FRAME,
	IWF_MPA_LOCAL,
	IWF_IRD,
	IWF_RTR,
	IWF_COUNT,
};

struct vb_iw_fault_row {
	const char *name;
	/* the error in the Terminate that this side sends */
	uint8_t layer, etype, code;
	/* enum vb_wc_status of the WQE at fault at the receiver of the
	 * Terminate */
	uint8_t told;
	/* enum vb_wc_status of the receive in progress at this side */
	uint8_t status;
	/* the enum vb_event_type if no WQE can report the fault; -1: none */
	int8_t event;
	int8_t counter; /* the enum vb_counter to increment */
};
/* Returns the row of @fault in the table of iwarp/term.c. */
const struct vb_iw_fault_row *vb_iw_fault_row(enum vb_iw_fault fault);
/* Returns the completion status of the requester's WQE that the peer's
 * Terminate @t refers to. */
enum vb_wc_status vb_iw_told(const struct vb_term *t);

#endif
