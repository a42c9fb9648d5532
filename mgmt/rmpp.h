/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable multi-packet protocol (IBA 13.6): a message travels as segments
 * of 256 bytes; a window of them may be under way, and the receiver
 * acknowledges them in order. Each direction of an exchange is a transfer of
 * its own. State machines without I/O: the owner passes in what came, sends
 * what they return, and calls again at the time `due`.
 */
#ifndef MGMT_RMPP_H
#define MGMT_RMPP_H

#include "wire/rmpp.h"

#define VB_RMPP_WINDOW 64
/* longest message that a receiver accepts, in bytes */
#define VB_RMPP_MOST	 (32u << 20)
#define VB_RMPP_RETRIES	 5
#define VB_RMPP_PATIENCE (2 * VB_SEC) /* how long a sender waits for an ACK */
/* how long a receiver waits for a segment */
#define VB_RMPP_ABANDONED (40 * VB_SEC)

enum vb_rmpp_verdict {
	RMPP_GOING,
	RMPP_DONE,   /* all segments have reached the receiver */
	RMPP_FAILED, /* a side has stopped, aborted or given up the transfer */
};

/* A transfer that this side sends. */
struct vb_rmpp_sender {
	uint8_t *message; /* MAD, RMPP and class headers, then all data */
	size_t len, data_at;
	uint32_t segments; /* the number of the message's segments */
	uint32_t sent, acked, window;
	uint32_t highest; /* the highest number of a segment sent so far */
	unsigned retries;
	/* the time at which an ACK is overdue; VB_NEVER: no segment was sent
	 * yet */
	vb_time due;
};

/*
 * Begin to send @message, of @len bytes: at least vb_rmpp_data_at() of its
 * class and at most VB_RMPP_MOST. The sender owns it (malloc) from now on, and
 * vb_rmpp_sender_fini() frees it.
 */
void vb_rmpp_sender_init(struct vb_rmpp_sender *s, uint8_t *message,
			 size_t len);
void vb_rmpp_sender_fini(struct vb_rmpp_sender *s);

/* Write the next segment to @mad. False: the window allows none, until an ACK
 * comes or time passes. */
VB_MUST_CHECK bool vb_rmpp_sender_next(struct vb_rmpp_sender *s,
				       uint8_t mad[VB_MAD_BYTES], vb_time now);

/* Handle an ACK, STOP or ABORT that has come. *@answer true: the peer broke the
 * rules, and the caller sends it the ABORT in @reply. */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_sender_hear(struct vb_rmpp_sender *s, const uint8_t mad[VB_MAD_BYTES],
		    uint8_t reply[VB_MAD_BYTES], bool *answer, vb_time now);

/* Call this when the time s->due has passed without an ACK. RMPP_GOING:
 * vb_rmpp_sender_next() returns once more the segments that no ACK has named.
 * RMPP_FAILED: the caller sends the ABORT in @reply. */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_sender_expire(struct vb_rmpp_sender *s, uint8_t reply[VB_MAD_BYTES],
		      vb_time now);

/* A transfer that this side receives. */
struct vb_rmpp_receiver {
	/* the headers and the data received so far, in the sender's layout */
	uint8_t *message;
	size_t len, room, data_at;
	/* the number of the last segment that came in order */
	uint32_t segment;
	bool complete;
	vb_time due; /* the time at which this side gives up the transfer */
};

void vb_rmpp_receiver_init(struct vb_rmpp_receiver *r, vb_time now);
/* Free the memory of the message. A complete transfer still acknowledges
 * repeated segments afterwards. */
void vb_rmpp_receiver_fini(struct vb_rmpp_receiver *r);

/*
 * Handle a segment that has come. *@answer true: the caller sends the ACK, STOP
 * or ABORT in @reply. RMPP_DONE: the whole message is in @r->message, @r->len
 * bytes; for each segment that is repeated later this function writes an ACK
 * and again returns RMPP_DONE. A segment after a gap is dropped, and the
 * segments before the gap are acknowledged.
 */
VB_MUST_CHECK enum vb_rmpp_verdict
vb_rmpp_receiver_hear(struct vb_rmpp_receiver *r,
		      const uint8_t mad[VB_MAD_BYTES],
		      uint8_t reply[VB_MAD_BYTES], bool *answer, vb_time now);

#endif
