/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast UC and UD send. Programs that use them were written for networks
 * that hardly lose packets, because adapters there throttle each other (PFC).
 * Here the socket of a receiver that falls behind overflows within a
 * millisecond, and the sender does not notice.
 *
 * So a sender keeps to a window, and now and then asks whether a packet has
 * arrived: it sets AckReq, which means nothing on UC and UD. If the peer is a
 * Verbena, it answers with an opcode of the range reserved for manufacturers
 * (IBA 9.2); any other peer ignores the bit. The sender never waits long, since
 * the service is unreliable, and after several questions without an answer it
 * waits no more.
 */
#ifndef IB_PACE_H
#define IB_PACE_H

#include "wire/ib_hdr.h"

struct vb_pace {
	uint32_t next;	  /* PSN to send next */
	uint32_t heard;	  /* the sender waits for no packet before it */
	uint32_t window;  /* packets in flight, at most */
	uint32_t unasked; /* packets sent since the last AckReq */
	uint8_t silences; /* questions without an answer, in a row */
	bool known;	  /* the peer is a Verbena and answers */
	/* packet `next` waits for an answer, or for the deadline */
	bool held;
	/* when `heard` last moved, or the first packet after it was sent */
	vb_time since;
};

/* Begin with PSN @psn and packets of @mtu bytes. @sharers: how many queue pairs
 * may be sending to the same peer, and share its socket. */
void vb_pace_init(struct vb_pace *p, uint32_t psn, uint32_t mtu,
		  uint32_t sharers);
/* May packet p->next be sent now? */
bool vb_pace_may_send(struct vb_pace *p, vb_time now);
/* Should packet p->next ask for an answer (AckReq)? */
bool vb_pace_asks(const struct vb_pace *p);
/* Packet p->next was sent. */
void vb_pace_sent(struct vb_pace *p, vb_time now);
/* The peer has answered that it received @psn. */
void vb_pace_heard(struct vb_pace *p, uint32_t psn, vb_time now);
/* When vb_pace_may_send() becomes true without an answer; VB_NEVER: it was true
 * when last called. */
vb_time vb_pace_deadline(const struct vb_pace *p);

#endif
