/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One management datagram as it crosses an InfiniBand link: LRH, perhaps GRH,
 * BTH and DETH of an unreliable datagram, 256 bytes, ICRC (IBA 7, 8, 9). The
 * VCRC belongs to the link, so these functions leave it out.
 */
#ifndef WIRE_MAD_FRAME_H
#define WIRE_MAD_FRAME_H

#include "wire/gid.h"
#include "wire/mad.h"

#define VB_MAD_FRAME_MAX (8 + 40 + 12 + 8 + VB_MAD_BYTES + 4)

/* The addresses of a MAD, from the headers of its frame. */
struct vb_mad_frame {
	uint8_t vl, sl; /* fields of 4 bits; SMPs use VL 15 */
	uint16_t slid, dlid;
	bool global; /* the frame has a GRH */
	struct vb_gid sgid, dgid;
	uint8_t tclass, hop_limit;
	uint32_t flow_label; /* flow label, 20 bits */
	uint16_t pkey;
	uint32_t sqpn, dqpn, psn; /* numbers of 24 bits */
	uint32_t qkey;
};

/* Write LRH to ICRC around @mad. Returns the length in bytes, at most
 * VB_MAD_FRAME_MAX. */
size_t vb_mad_frame_put(uint8_t *bytes, const struct vb_mad_frame *f,
			const uint8_t mad[VB_MAD_BYTES]);

enum vb_mad_frame_fault {
	MAD_FRAME_GOOD,
	/* the frame is too short, or its lengths contradict each other */
	MAD_FRAME_SHORT,
	/* the frame is no unreliable datagram of InfiniBand, or has no MAD */
	MAD_FRAME_OTHER,
	MAD_FRAME_ICRC,
};

/* Parse a frame of @len bytes, LRH to ICRC. *@mad is the address of the MAD
 * within the frame. */
enum vb_mad_frame_fault vb_mad_frame_get(const uint8_t *bytes, size_t len,
					 struct vb_mad_frame *f,
					 const uint8_t **mad);

#endif
