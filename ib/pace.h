/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast UC and UD send. Programs that use them were written for networks
 * that lose next to nothing, as adapters hold each other back there (PFC).
 * Here the socket of a receiver that falls behind overflows within a
 * millisecond, and only it knows.
 *
 * So a sender keeps to a window, and asks now and then (AckReq, which has no
 * meaning on UC and UD) whether a packet has arrived. A peer of our kind says
 * so, by an opcode from the range that is the manufacturer's (IBA 9.2); any
 * other ignores the bit. Nobody is waited for for long: what is unreliable
 * stays so, and after some silences the sender stops to wait.
 */
#ifndef IB_PACE_H
#define IB_PACE_H

#include "wire/ib_hdr.h"

struct vb_pace {
	uint32_t next;	  /* PSN to send */
	uint32_t heard;	  /* all before have arrived, or are given up */
	uint32_t window;  /* packets */
	uint32_t unasked; /* sent since the last that asked */
	uint8_t silences; /* in a row */
	bool known;	  /* it is of our kind, and alive */
	bool held;	  /* next may not go before an answer, or the time */
	vb_time since;	  /* when heard was next, or moved last */
};

/* @sharers: queue pairs that may be sending to the same peer. */
void vb_pace_init(struct vb_pace *p, uint32_t psn, uint32_t mtu,
		  uint32_t sharers);
/* May packet @p->next go now? */
bool vb_pace_may_send(struct vb_pace *p, vb_time now);
/* Should it ask? */
bool vb_pace_asks(const struct vb_pace *p);
/* It is gone. */
void vb_pace_sent(struct vb_pace *p, vb_time now);
/* The peer has @psn. */
void vb_pace_heard(struct vb_pace *p, uint32_t psn, vb_time now);
/* When vb_pace_may_send() will say yes again; VB_NEVER: it does. */
vb_time vb_pace_deadline(const struct vb_pace *p);

#endif
