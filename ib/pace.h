/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate at which UC and UD send. Programs that use them were written for
 * networks that hardly lose packets, because adapters there throttle each other
 * (PFC). Here the socket of a receiver that falls behind overflows within a
 * millisecond, and the sender does not notice.
 *
 * So a sender keeps to a window, and now and then asks whether a packet has
 * arrived: it sets AckReq, which means nothing on UC and UD. If the peer is a
 * Verbena, it answers with an opcode of the range reserved for manufacturers
 * (IBA 9.2); any other peer ignores the bit. The sender never waits long, since
 * the service is unreliable, and after several questions without an answer it
 * no longer waits at all.
 */
#ifndef IB_PACE_H
#define IB_PACE_H

#include "wire/ib_hdr.h"

struct vb_pace {
	uint32_t next; /* the PSN to send next */
	/* all packets before this PSN have arrived, or the sender no longer
	 * waits for them */
	uint32_t heard;
	uint32_t window;  /* the most packets that may be in flight */
	uint32_t unasked; /* number of packets sent since the last AckReq */
	/* number of AckReq questions in a row without an answer */
	uint8_t silences;
	bool known; /* the peer is a Verbena, which answers AckReq */
	/* the packet with PSN `next` waits for an answer, or for the
	 * deadline */
	bool held;
	/* the time when `heard` last changed, or the first packet after it was
	 * sent */
	vb_time since;
};

/* Begin with PSN @psn and packets of @mtu bytes. @sharers: the number of queue
 * pairs that may send to this peer and so share its socket. */
void vb_pace_init(struct vb_pace *p, uint32_t psn, uint32_t mtu,
		  uint32_t sharers);
/* May packet p->next be sent now? */
bool vb_pace_may_send(struct vb_pace *p, vb_time now);
/* Should packet p->next ask for an answer (AckReq)? */
bool vb_pace_asks(const struct vb_pace *p);
/* The caller calls this after it has sent packet p->next. */
void vb_pace_sent(struct vb_pace *p, vb_time now);
/* Handles an answer: the peer has received the packet with PSN @psn. */
void vb_pace_heard(struct vb_pace *p, uint32_t psn, vb_time now);
/* Returns the time when vb_pace_may_send() becomes true without an answer;
 * VB_NEVER: it returned true the last time. */
vb_time vb_pace_deadline(const struct vb_pace *p);

#endif
