/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable multi-packet protocol (IBA 13.6): one message as segments of 256
 * bytes, a window of them under way, acknowledged in order. Each direction of
 * an exchange is a transfer of its own. State machines without I/O: the owner
 * passes what came, sends what they say, and calls again when time is due.
 */
#ifndef MGMT_RMPP_H
#define MGMT_RMPP_H

#include "wire/rmpp.h"

#define VB_RMPP_WINDOW	  64
#define VB_RMPP_MOST	  (32u << 20) /* bytes of a message that is accepted */
#define VB_RMPP_RETRIES	  5
#define VB_RMPP_PATIENCE  (2 * VB_SEC)	/* for an ACK, then again */
#define VB_RMPP_ABANDONED (40 * VB_SEC) /* without a new segment */

enum vb_rmpp_verdict {
	RMPP_GOING,
	RMPP_DONE,   /* all is acknowledged, or all is here */
	RMPP_FAILED, /* stopped, aborted, or given up */
};

/* A transfer that this side sends. */
struct vb_rmpp_sender {
	uint8_t *message; /* MAD, RMPP and class headers, then all data */
	size_t len, data_at;
	uint32_t segments; /* of the message */
	uint32_t sent, acked, window;
	uint32_t highest; /* segment that has ever left */
	unsigned retries;
	vb_time due; /* when an ACK is overdue; VB_NEVER while none is due */
};

/*
 * Begin to send @message, of @len bytes, which the sender takes over (malloc);
 * its length is at least vb_rmpp_data_at() of its class, and at most
 * VB_RMPP_MOST. vb_rmpp_sender_fini() frees it.
 */
void vb_rmpp_sender_init(struct vb_rmpp_sender *s, uint8_t *message,
			 size_t len);
void vb_rmpp_sender_fini(struct vb_rmpp_sender *s);

/* Write the next segment that may leave to @mad. False: none may, before an ACK
 * comes or time passes. */
VB_MUST_CHECK bool vb_rmpp_sender_next(struct vb_rmpp_sender *s,
				       uint8_t mad[VB_MAD_BYTES], vb_time now);

/* An ACK, STOP or ABORT has come. *@answer: @reply is an ABORT to be sent,
 * because the peer broke the rules. */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_sender_hear(struct vb_rmpp_sender *s, const uint8_t mad[VB_MAD_BYTES],
		    uint8_t reply[VB_MAD_BYTES], bool *answer, vb_time now);

/* The time @s->due has come: what is not acknowledged is sent again, or the
 * transfer fails and @reply is an ABORT to be sent. */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_sender_expire(struct vb_rmpp_sender *s, uint8_t reply[VB_MAD_BYTES],
		      vb_time now);

/* A transfer that this side receives. */
struct vb_rmpp_receiver {
	uint8_t *message; /* as that of the sender */
	size_t len, room, data_at;
	uint32_t segment; /* the last that came in its turn */
	bool complete;
	vb_time due; /* when the transfer is given up */
};

void vb_rmpp_receiver_init(struct vb_rmpp_receiver *r, vb_time now);
/* Frees the message. A transfer that is complete still acknowledges. */
void vb_rmpp_receiver_fini(struct vb_rmpp_receiver *r);

/*
 * A segment has come. *@answer: @reply is an ACK, STOP or ABORT to be sent. Of
 * RMPP_DONE the whole message is in @r->message, @r->len bytes; a segment that
 * comes later is acknowledged again with RMPP_DONE. A segment that leaves a gap
 * is dropped, and acknowledged is what is here.
 */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_receiver_hear(struct vb_rmpp_receiver *r,
		      const uint8_t mad[VB_MAD_BYTES],
		      uint8_t reply[VB_MAD_BYTES], bool *answer, vb_time now);

/* Write an ABORT for the transfer of @mad. */
void vb_rmpp_abort(uint8_t reply[VB_MAD_BYTES], const uint8_t mad[VB_MAD_BYTES],
		   enum vb_rmpp_status status);

#endif
