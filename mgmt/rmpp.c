/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP: sender and receiver of one message each. A sender begins with a window
 * of one segment (IBA 13.6.6.2.1), since it does not know the receiver's; each
 * ACK names the last segment of the next window.
 */
#include "mgmt/rmpp.h"

#include <stdlib.h>

#define METHOD_AT     3
#define CLASS_AT      1
#define NO_RESP_TIME  31
#define SEGMENT_BYTES (VB_MAD_BYTES - VB_RMPP_AT - VB_RMPP_BYTES)

/* Write an ACK, STOP or ABORT: it has the header of the segment @mad that it
 * answers, with the method's response bit inverted (IBA 13.6.2.3). */
static void answer_with(uint8_t reply[VB_MAD_BYTES], const uint8_t *mad,
			const struct vb_rmpp *h)
{
	memset(reply, 0, VB_MAD_BYTES);
	/* Keep the class's own header: the OUI in it says which agent is
	 * meant. */
	memcpy(reply, mad, vb_rmpp_data_at(mad[CLASS_AT]));
	reply[METHOD_AT] ^= 0x80;
	vb_rmpp_put(reply, h);
}

static void write_end(uint8_t *reply, const uint8_t *mad,
		      enum vb_rmpp_type type, enum vb_rmpp_status status)
{
	const struct vb_rmpp h = {
		.version = VB_RMPP_VERSION,
		.type = (uint8_t)type,
		.flags = VB_RMPP_ACTIVE,
		.resp_time = NO_RESP_TIME,
		.status = (uint8_t)status,
	};

	answer_with(reply, mad, &h);
}

/* Functions of the sender. */

static size_t data_in_segment(const struct vb_rmpp_sender *s)
{
	return VB_MAD_BYTES - s->data_at;
}

void vb_rmpp_sender_init(struct vb_rmpp_sender *s, uint8_t *message, size_t len)
{
	size_t data;

	*s = (struct vb_rmpp_sender){
		.message = message,
		.len = len,
		.data_at = vb_rmpp_data_at(message[CLASS_AT]),
		.window = 1,
		.due = VB_NEVER,
	};
	data = len - s->data_at;
	s->segments = (uint32_t)((data + data_in_segment(s) - 1) /
				 data_in_segment(s));
	if (s->segments == 0)
		s->segments = 1; /* a message without data has one segment */
}

void vb_rmpp_sender_fini(struct vb_rmpp_sender *s)
{
	free(s->message);
	s->message = NULL;
}

/* The payload's length includes the class's header of each segment, but not the
 * padding of the last segment (IBA 13.6.2.2). */
static uint32_t payload_length(const struct vb_rmpp_sender *s, uint32_t segment)
{
	size_t per = data_in_segment(s);
	uint32_t pad = (uint32_t)(s->segments * per - (s->len - s->data_at));

	if (segment == 1)
		return s->segments * SEGMENT_BYTES - pad;
	return segment == s->segments ? SEGMENT_BYTES - pad : 0;
}

static void write_segment(const struct vb_rmpp_sender *s, uint32_t segment,
			  uint8_t mad[VB_MAD_BYTES])
{
	size_t per = data_in_segment(s);
	size_t from = s->data_at + (size_t)(segment - 1) * per;
	struct vb_rmpp h;

	vb_rmpp_get(s->message, &h);
	h.version = VB_RMPP_VERSION;
	h.type = RMPP_DATA;
	h.flags = VB_RMPP_ACTIVE | (segment == 1 ? VB_RMPP_FIRST : 0) |
		  (segment == s->segments ? VB_RMPP_LAST : 0);
	h.status = RMPP_OK;
	h.segment = segment;
	h.length = payload_length(s, segment);
	memset(mad, 0, VB_MAD_BYTES);
	memcpy(mad, s->message, s->data_at);
	memcpy(mad + s->data_at, s->message + from, VB_MIN(per, s->len - from));
	vb_rmpp_put(mad, &h);
}

bool vb_rmpp_sender_next(struct vb_rmpp_sender *s, uint8_t mad[VB_MAD_BYTES],
			 vb_time now)
{
	if (s->sent == s->segments || s->sent >= s->window)
		return false;
	write_segment(s, ++s->sent, mad);
	s->highest = VB_MAX(s->highest, s->sent);
	s->due = now + VB_RMPP_PATIENCE;
	return true;
}

static enum vb_rmpp_verdict rmpp_refuse(const uint8_t *mad, uint8_t *reply,
					bool *answer,
					enum vb_rmpp_status status)
{
	write_end(reply, mad, RMPP_ABORT, status);
	*answer = true;
	return RMPP_FAILED;
}

static enum vb_rmpp_verdict rmpp_take_ack(struct vb_rmpp_sender *s,
					  const uint8_t *mad,
					  const struct vb_rmpp *h,
					  uint8_t *reply, bool *answer,
					  vb_time now)
{
	if (h->segment > s->highest)
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_SEGMENT);
	if (h->length < h->segment)
		return rmpp_refuse(mad, reply, answer, RMPP_WINDOW_TOO_SMALL);
	if (h->segment < s->acked)
		/* This ACK was overtaken by a later one. */
		return RMPP_GOING;
	if (h->segment > s->acked) {
		s->acked = h->segment;
		s->sent = VB_MAX(s->sent, s->acked);
		s->retries = 0;
		s->due = now + VB_RMPP_PATIENCE;
	}
	if (h->length > s->window)
		s->window = h->length;
	return s->acked == s->segments ? RMPP_DONE : RMPP_GOING;
}

enum vb_rmpp_verdict vb_rmpp_sender_hear(struct vb_rmpp_sender *s,
					 const uint8_t mad[VB_MAD_BYTES],
					 uint8_t reply[VB_MAD_BYTES],
					 bool *answer, vb_time now)
{
	struct vb_rmpp h;

	*answer = false;
	vb_rmpp_get(mad, &h);
	if (h.type == RMPP_STOP || h.type == RMPP_ABORT)
		return RMPP_FAILED;
	if (h.version != VB_RMPP_VERSION)
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_RMPP_VERSION);
	if (h.type != RMPP_ACK)
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_TYPE);
	if (h.status != RMPP_OK)
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_STATUS);
	return rmpp_take_ack(s, mad, &h, reply, answer, now);
}

enum vb_rmpp_verdict vb_rmpp_sender_expire(struct vb_rmpp_sender *s,
					   uint8_t reply[VB_MAD_BYTES],
					   vb_time now)
{
	if (s->retries++ == VB_RMPP_RETRIES) {
		write_end(reply, s->message, RMPP_ABORT, RMPP_TOO_MANY_RETRIES);
		/* The ABORT goes to the receiver, so its method has the
		 * response bit that the data have. */
		reply[METHOD_AT] ^= 0x80;
		return RMPP_FAILED;
	}
	s->sent = s->acked;
	s->due = now + VB_RMPP_PATIENCE;
	return RMPP_GOING;
}

/* Functions of the receiver. */

void vb_rmpp_receiver_init(struct vb_rmpp_receiver *r, vb_time now)
{
	*r = (struct vb_rmpp_receiver){ .due = now + VB_RMPP_ABANDONED };
}

void vb_rmpp_receiver_fini(struct vb_rmpp_receiver *r)
{
	free(r->message);
	r->message = NULL;
}

/* Make room for @more bytes. The room grows with the bytes that come, because a
 * peer may lie about the length in its first segment. */
static bool rmpp_make_room(struct vb_rmpp_receiver *r, size_t more)
{
	size_t room = r->room ? r->room : 1024;
	uint8_t *bigger;

	if (r->len + more > VB_RMPP_MOST)
		return false;
	while (room < r->len + more)
		room *= 2;
	if (room == r->room)
		return true;
	bigger = realloc(r->message, room);
	if (!bigger)
		return false;
	r->message = bigger;
	r->room = room;
	return true;
}

/* Bytes of data in a segment: all are full but the last, which says how
 * many. */
static size_t data_of(const struct vb_rmpp *h, size_t data_at)
{
	size_t class_header = data_at - VB_RMPP_AT - VB_RMPP_BYTES;
	size_t full = VB_MAD_BYTES - data_at;

	if (!(h->flags & VB_RMPP_LAST))
		return full;
	/* The field length of a FIRST segment is the length of the whole
	 * message; 0: unknown. */
	if (h->flags & VB_RMPP_FIRST && h->length == 0)
		return full;
	if (h->length < class_header || h->length > SEGMENT_BYTES)
		return full;
	return h->length - class_header;
}

static bool rmpp_append(struct vb_rmpp_receiver *r, const uint8_t *mad,
			const struct vb_rmpp *h)
{
	size_t bytes;

	if (h->segment == 1)
		r->data_at = vb_rmpp_data_at(mad[CLASS_AT]);
	bytes = data_of(h, r->data_at);
	if (!rmpp_make_room(r, bytes + (h->segment == 1 ? r->data_at : 0)))
		return false;
	if (h->segment == 1) {
		memcpy(r->message, mad, r->data_at);
		r->len = r->data_at;
	}
	memcpy(r->message + r->len, mad + r->data_at, bytes);
	r->len += bytes;
	r->segment = h->segment;
	return true;
}

static void rmpp_acknowledge(const struct vb_rmpp_receiver *r,
			     const uint8_t *mad, uint8_t *reply, bool *answer)
{
	const struct vb_rmpp h = {
		.version = VB_RMPP_VERSION,
		.type = RMPP_ACK,
		.flags = VB_RMPP_ACTIVE,
		.resp_time = NO_RESP_TIME,
		.segment = r->segment,
		.length = r->segment + VB_RMPP_WINDOW,
	};

	answer_with(reply, mad, &h);
	*answer = true;
}

/* Handles a segment. The receiver acknowledges the first and the last segment,
 * each segment out of order, and one in every half window, so that the sender
 * need not stop. */
static enum vb_rmpp_verdict
take_segment(struct vb_rmpp_receiver *r, const uint8_t *mad,
	     const struct vb_rmpp *h, uint8_t *reply, bool *answer, vb_time now)
{
	if (r->complete || h->segment != r->segment + 1) {
		rmpp_acknowledge(r, mad, reply, answer);
		return r->complete ? RMPP_DONE : RMPP_GOING;
	}
	if (!rmpp_append(r, mad, h)) {
		write_end(reply, mad, RMPP_STOP, RMPP_NO_RESOURCES);
		*answer = true;
		return RMPP_FAILED;
	}
	r->complete = h->flags & VB_RMPP_LAST;
	r->due = now + VB_RMPP_ABANDONED;
	if (h->flags & VB_RMPP_LAST || h->segment == 1 ||
	    h->segment % (VB_RMPP_WINDOW / 2) == 0)
		rmpp_acknowledge(r, mad, reply, answer);
	return r->complete ? RMPP_DONE : RMPP_GOING;
}

enum vb_rmpp_verdict vb_rmpp_receiver_hear(struct vb_rmpp_receiver *r,
					   const uint8_t mad[VB_MAD_BYTES],
					   uint8_t reply[VB_MAD_BYTES],
					   bool *answer, vb_time now)
{
	struct vb_rmpp h;

	*answer = false;
	vb_rmpp_get(mad, &h);
	if (h.type == RMPP_STOP || h.type == RMPP_ABORT)
		return RMPP_FAILED;
	if (h.version != VB_RMPP_VERSION)
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_RMPP_VERSION);
	if (h.type != RMPP_DATA || !vb_rmpp_has_header(mad[CLASS_AT]))
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_TYPE);
	if (h.segment == 0 || !(h.flags & VB_RMPP_FIRST) != (h.segment != 1))
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_FIRST);
	if (r->data_at && r->data_at != vb_rmpp_data_at(mad[CLASS_AT]))
		return rmpp_refuse(mad, reply, answer, RMPP_BAD_TYPE);
	return take_segment(r, mad, &h, reply, answer, now);
}
