/* SPDX-License-Identifier: BSD-2-Clause */
/* The reliable multi-packet protocol's header (RMPP, IBA 13.6.2), and where the
 * data of each management class begins. */
#ifndef WIRE_RMPP_H
#define WIRE_RMPP_H

#include "base/bytes.h"
#include "wire/mad.h"

#define VB_RMPP_AT	   24 /* the header, behind that of the MAD */
#define VB_RMPP_BYTES	   12
#define VB_RMPP_DATA_BYTES 220 /* of a segment, class header included */
#define VB_RMPP_VERSION	   1

enum vb_rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };

/* Flags. */
#define VB_RMPP_ACTIVE 1
#define VB_RMPP_FIRST  2
#define VB_RMPP_LAST   4

/* Status of STOP and ABORT (IBA 13.6.2.1). */
enum vb_rmpp_status {
	RMPP_OK = 0,
	RMPP_NO_RESOURCES = 1, /* STOP */
	RMPP_TOO_LONG = 118,   /* total time exceeded */
	RMPP_BAD_LENGTH = 119, /* inconsistent first and last */
	RMPP_BAD_FIRST = 120,  /* inconsistent first and segment */
	RMPP_BAD_TYPE = 121,
	RMPP_WINDOW_TOO_SMALL = 122, /* new window below the acknowledged */
	RMPP_BAD_SEGMENT = 123,	     /* acknowledged what was not sent */
	RMPP_BAD_STATUS = 124,
	RMPP_BAD_RMPP_VERSION = 125,
	RMPP_TOO_MANY_RETRIES = 126,
	RMPP_UNSPECIFIED = 127,
};

struct vb_rmpp {
	uint8_t version, type;
	uint8_t resp_time; /* 5 bits; 31: none given */
	uint8_t flags;	   /* 3 bits */
	uint8_t status;
	uint32_t segment; /* from 1; in an ACK the last one received */
	uint32_t length;  /* DATA: payload bytes; ACK: last of the new window */
};

void vb_rmpp_get(const uint8_t mad[VB_MAD_BYTES], struct vb_rmpp *h);
void vb_rmpp_put(uint8_t mad[VB_MAD_BYTES], const struct vb_rmpp *h);

/* Can MADs of @class carry an RMPP header? */
bool vb_rmpp_has_header(uint8_t class);
/* Returns the bytes in front of the data: MAD header, RMPP header, and the
 * header of @class. */
unsigned vb_rmpp_data_at(uint8_t class);

#endif
