/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of the reliable multi-packet protocol (RMPP, IBA 13.6.2), and the
 * offset at which the data of each management class begins. */
#ifndef WIRE_RMPP_H
#define WIRE_RMPP_H

#include "base/bytes.h"
#include "wire/mad.h"

/* offset of the RMPP header, which follows the MAD header */
#define VB_RMPP_AT    24
#define VB_RMPP_BYTES 12
/* bytes of data in a segment, with the header of the class */
#define VB_RMPP_DATA_BYTES 220
#define VB_RMPP_VERSION	   1

enum vb_rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };

/* Flags of the RMPP header. */
#define VB_RMPP_ACTIVE 1
#define VB_RMPP_FIRST  2
#define VB_RMPP_LAST   4

/* Status codes of STOP and ABORT (IBA 13.6.2.1). */
enum vb_rmpp_status {
	RMPP_OK = 0,
	RMPP_NO_RESOURCES = 1, /* out of resources; sent in a STOP */
	RMPP_TOO_LONG = 118,   /* the total time of the transfer is exceeded */
	/* the length in the first segment and in the last one contradict */
	RMPP_BAD_LENGTH = 119,
	RMPP_BAD_FIRST = 120, /* first flag and segment number contradict */
	RMPP_BAD_TYPE = 121,
	/* the end of the new window is below the acknowledged segment */
	RMPP_WINDOW_TOO_SMALL = 122,
	RMPP_BAD_SEGMENT = 123, /* an ACK names a segment that was not sent */
	RMPP_BAD_STATUS = 124,
	RMPP_BAD_RMPP_VERSION = 125,
	RMPP_TOO_MANY_RETRIES = 126,
	RMPP_UNSPECIFIED = 127,
};

struct vb_rmpp {
	uint8_t version, type;
	uint8_t resp_time; /* response time code, 5 bits; 31: none given */
	uint8_t flags;	   /* VB_RMPP_ACTIVE and others, 3 bits */
	uint8_t status;
	/* number of the segment, from 1; in an ACK the last one received */
	uint32_t segment;
	/* in DATA the payload's bytes; in an ACK the last segment of the new
	 * window */
	uint32_t length;
};

void vb_rmpp_get(const uint8_t mad[VB_MAD_BYTES], struct vb_rmpp *h);
void vb_rmpp_put(uint8_t mad[VB_MAD_BYTES], const struct vb_rmpp *h);

/* Can MADs of the management class @class have an RMPP header? */
bool vb_rmpp_has_header(uint8_t class);
/* Returns the bytes in front of a segment's data: MAD header, RMPP header, and
 * the header of @class. */
unsigned vb_rmpp_data_at(uint8_t class);

#endif
