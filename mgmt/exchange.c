/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanges: a request that waits for its answer, and messages of RMPP in
 * either direction. On the wire the upper half of the transaction ID is the
 * agent's serial; the program gets back the ID that it gave.
 */
#include "mgmt/agents_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/smp.h"

#define METHOD_AT 3
#define TID_AT	  8
/* how long an ended exchange stays: longer than a peer repeats segments */
#define LINGER (6 * VB_RMPP_PATIENCE)

/* Functions for the list of exchanges. */

static struct exchange *new_exchange(struct vb_agents *a, uint32_t serial,
				     const struct vb_mad_addr *peer,
				     const uint8_t *mad)
{
	struct exchange *e;

	if (a->exchange_count >= EXCHANGES_MOST)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->agents = a;
	e->serial = serial;
	e->peer = *peer;
	e->class = mad[1];
	e->method = mad[METHOD_AT];
	e->tid = vb_load_be(mad + TID_AT, 8);
	vb_timer_init(&e->timer);
	e->next = a->exchanges;
	e->link = &a->exchanges;
	if (e->next)
		e->next->link = &e->next;
	a->exchanges = e;
	a->exchange_count++;
	return e;
}

void vb_exchange_end(struct exchange *e)
{
	struct vb_agents *a = e->agents;

	vb_timer_cancel(a->timers, &e->timer);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	a->exchange_count--;
	a->transfer_count -= e->state == EXCHANGE_RECEIVING && !e->serial;
	if (e->sender.message)
		vb_rmpp_sender_fini(&e->sender);
	vb_rmpp_receiver_fini(&e->receiver);
	free(e->message);
	free(e);
}

/* Set the exchange's timer. False: memory is exhausted, and this function has
 * ended the exchange. */
static bool set_timer(struct exchange *e, vb_time at)
{
	if (vb_timer_set(e->agents->timers, &e->timer, at) == 0)
		return true;
	vb_exchange_end(e);
	return false;
}

static void exchange_transmit(struct exchange *e, const uint8_t *mad,
			      vb_time now)
{
	struct vb_agents *a = e->agents;

	a->ops.transmit(a->ops.transmit_arg, vb_mad_qpn(e->class), &e->peer,
			mad, now);
}

/* Functions that send messages. */

static void send_again(struct exchange *e, vb_time now)
{
	if (set_timer(e, now + e->patience))
		exchange_transmit(e, e->message, now);
}

/* Send the segments that the window allows. A closed window allows none; the
 * timer then limits how long the peer may leave it closed. */
static void send_segments(struct exchange *e, vb_time now)
{
	uint8_t mad[VB_MAD_BYTES];

	while (vb_rmpp_sender_next(&e->sender, mad, now))
		exchange_transmit(e, mad, now);
	(void)set_timer(e, e->sender.due);
}

/* The peer has acknowledged the whole message. If the message is a request,
 * wait for the answer. */
static void finish_sending(struct exchange *e, vb_time now)
{
	if (!e->patience || vb_mad_is_response(e->header)) {
		vb_exchange_end(e);
		return;
	}
	vb_rmpp_sender_fini(&e->sender);
	e->state = EXCHANGE_WAITING;
	/* no repetition of the whole request: RMPP has repeated lost
	 * segments */
	e->retries = 0;
	(void)set_timer(e, now + e->patience);
}

static void report_timeout(struct exchange *e)
{
	struct vb_agents *a = e->agents;
	const struct agent *g = vb_agent_by_serial(a, e->serial);

	if (g)
		vb_agent_deliver(a, g, VB_AGENT_TIMEOUT, &e->peer, e->header,
				 VB_MAD_HDR_BYTES);
	vb_exchange_end(e);
}

static bool is_long(const struct agent *g, const struct vb_mad_send *s)
{
	struct vb_rmpp h;

	if (!g->wish.rmpp_version || s->len < vb_rmpp_data_at(s->bytes[1]))
		return false;
	vb_rmpp_get(s->bytes, &h);
	return h.flags & VB_RMPP_ACTIVE;
}

/* Returns a copy of the message to send, as long as a MAD or longer, in which
 * the upper half of the transaction ID is the agent's. Connection managers
 * answer with the method Send and the ID of the peer's message (IBA 12.6.2), so
 * theirs does not change. */
static uint8_t *copy_message(const struct agent *g, const struct vb_mad_send *s)
{
	uint8_t *m = calloc(1, VB_MAX(s->len, (size_t)VB_MAD_BYTES));

	if (!m)
		return NULL;
	memcpy(m, s->bytes, s->len);
	if (!vb_mad_is_response(m) && m[1] != VB_MAD_CLASS_CM)
		vb_store_be(m + TID_AT, g->serial, 4);
	return m;
}

static int begin_long(struct vb_agents *a, const struct agent *g,
		      const struct vb_mad_send *s, uint8_t *message,
		      vb_time now)
{
	struct exchange *e = new_exchange(a, g->serial, &s->to, message);

	if (!e) {
		free(message);
		return -ENOBUFS;
	}
	memcpy(e->header, s->bytes, VB_MAD_HDR_BYTES);
	e->patience = s->timeout_ms * VB_MSEC;
	e->state = EXCHANGE_SENDING;
	vb_rmpp_sender_init(&e->sender, message, s->len);
	send_segments(e, now);
	return 0;
}

static int begin_request(struct vb_agents *a, const struct agent *g,
			 const struct vb_mad_send *s, uint8_t *message,
			 vb_time now)
{
	struct exchange *e = new_exchange(a, g->serial, &s->to, message);

	if (!e) {
		free(message);
		return -ENOBUFS;
	}
	memcpy(e->header, s->bytes, VB_MAD_HDR_BYTES);
	e->message = message;
	e->patience = s->timeout_ms * VB_MSEC;
	e->retries = s->retries;
	e->state = EXCHANGE_WAITING;
	send_again(e, now);
	return 0;
}

int vb_exchange_begin(struct vb_agents *a, const struct agent *g,
		      const struct vb_mad_send *s, vb_time now)
{
	uint8_t *message;

	if (s->len > (is_long(g, s) ? VB_RMPP_MOST : VB_MAD_BYTES))
		return is_long(g, s) ? -EMSGSIZE : -EINVAL;
	message = copy_message(g, s);
	if (!message)
		return -ENOMEM;
	if (is_long(g, s))
		return begin_long(a, g, s, message, now);
	if (s->timeout_ms && !vb_mad_is_response(message))
		return begin_request(a, g, s, message, now);
	a->ops.transmit(a->ops.transmit_arg, vb_mad_qpn(message[1]), &s->to,
			message, now);
	free(message);
	return 0;
}

/* Functions that receive messages. */

/* Keep the exchange for a while after its last segment, to acknowledge segments
 * that the peer repeats. */
static void exchange_linger(struct exchange *e, vb_time now)
{
	e->agents->transfer_count -= !e->serial;
	e->state = EXCHANGE_LINGERING;
	vb_rmpp_receiver_fini(&e->receiver);
	(void)set_timer(e, now + LINGER);
}

/* The whole message has come: give it to the agent's program. */
static void deliver_message(struct exchange *e, struct agent *g, vb_time now)
{
	struct vb_agents *a = e->agents;

	if (e->serial)
		memcpy(e->receiver.message + TID_AT, e->header + TID_AT, 8);
	vb_agent_deliver(a, g, 0, &e->peer, e->receiver.message,
			 e->receiver.len);
	exchange_linger(e, now);
}

static void hear_segment(struct exchange *e, struct agent *g,
			 const uint8_t *mad, vb_time now)
{
	uint8_t reply[VB_MAD_BYTES];
	enum vb_rmpp_verdict v;
	bool answer;

	v = vb_rmpp_receiver_hear(&e->receiver, mad, reply, &answer, now);
	if (answer)
		exchange_transmit(e, reply, now);
	if (e->state == EXCHANGE_LINGERING)
		return;
	if (v == RMPP_DONE)
		deliver_message(e, g, now);
	else if (v == RMPP_FAILED && e->serial)
		report_timeout(e);
	else if (v == RMPP_FAILED)
		vb_exchange_end(e);
	else
		(void)set_timer(e, e->receiver.due);
}

/* Handles a MAD that belongs to the answer to a request. */
static void exchange_hear_answer(struct exchange *e,
				 const struct vb_mad_addr *from,
				 const uint8_t *mad, vb_time now)
{
	struct vb_agents *a = e->agents;
	struct agent *g = vb_agent_by_serial(a, e->serial);
	uint8_t copy[VB_MAD_BYTES];
	struct vb_rmpp h;

	vb_rmpp_get(mad, &h);
	if (g->wish.rmpp_version && h.flags & VB_RMPP_ACTIVE) {
		if (h.type == RMPP_ACK)
			/* The answer was repeated, and the program already has
			 * it. */
			return;
		if (e->state == EXCHANGE_WAITING) {
			e->state = EXCHANGE_RECEIVING;
			e->peer = *from;
			vb_rmpp_receiver_init(&e->receiver, now);
		}
		hear_segment(e, g, mad, now);
		return;
	}
	if (e->state != EXCHANGE_WAITING)
		return;
	memcpy(copy, mad, VB_MAD_BYTES);
	memcpy(copy + TID_AT, e->header + TID_AT, 8);
	vb_agent_deliver(a, g, 0, from, copy, VB_MAD_BYTES);
	vb_exchange_end(e);
}

static bool exchange_is_from_peer(const struct exchange *e,
				  const struct vb_mad_addr *from)
{
	return e->peer.lid == from->lid && e->peer.qpn == from->qpn;
}

/* Handle an ACK, STOP or ABORT for a message that this side sends. False: no
 * such message is under way; a STOP or ABORT may still concern a message that
 * this side receives. */
static bool hear_control(struct vb_agents *a, const struct vb_mad_addr *from,
			 const uint8_t *mad, vb_time now)
{
	uint64_t tid = vb_load_be(mad + TID_AT, 8);
	uint8_t reply[VB_MAD_BYTES];
	enum vb_rmpp_verdict v;
	struct exchange *e;
	bool answer = false;

	for (e = a->exchanges; e; e = e->next)
		if (e->state == EXCHANGE_SENDING && e->tid == tid &&
		    e->class == mad[1] &&
		    e->method == (mad[METHOD_AT] ^ 0x80) &&
		    exchange_is_from_peer(e, from))
			break;
	if (!e)
		return false;
	v = vb_rmpp_sender_hear(&e->sender, mad, reply, &answer, now);
	if (answer)
		exchange_transmit(e, reply, now);
	if (v == RMPP_DONE)
		finish_sending(e, now);
	else if (v == RMPP_FAILED)
		report_timeout(e);
	else
		send_segments(e, now);
	return true;
}

static struct exchange *find_receiving(struct vb_agents *a,
				       const struct vb_mad_addr *from,
				       const uint8_t *mad)
{
	uint64_t tid = vb_load_be(mad + TID_AT, 8);

	for (struct exchange *e = a->exchanges; e; e = e->next)
		if (!e->serial && e->tid == tid && e->class == mad[1] &&
		    exchange_is_from_peer(e, from))
			return e;
	return NULL;
}

/* Returns the exchange whose request @mad answers, by its transaction ID. A
 * peer that guesses the ID can answer in another's place, but do no other
 * harm. */
static struct exchange *exchange_find_asked(struct vb_agents *a,
					    const uint8_t *mad)
{
	uint64_t tid = vb_load_be(mad + TID_AT, 8);

	for (struct exchange *e = a->exchanges; e; e = e->next)
		if (e->serial && e->state != EXCHANGE_SENDING &&
		    e->tid == tid && e->class == mad[1])
			return e;
	return NULL;
}

bool vb_exchange_hear(struct vb_agents *a, const struct vb_mad_addr *from,
		      const uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct exchange *e;
	struct vb_rmpp h;

	vb_rmpp_get(mad, &h);
	if (vb_rmpp_has_header(mad[1]) && h.flags & VB_RMPP_ACTIVE &&
	    h.type != RMPP_DATA && hear_control(a, from, mad, now))
		return true;
	if (!vb_mad_is_response(mad))
		return false;
	e = exchange_find_asked(a, mad);
	if (e)
		exchange_hear_answer(e, from, mad, now);
	return e;
}

void vb_exchange_receive(struct vb_agents *a, struct agent *g,
			 const struct vb_mad_addr *from,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct exchange *e = find_receiving(a, from, mad);
	struct vb_rmpp h;

	vb_rmpp_get(mad, &h);
	if (h.type == RMPP_ACK)
		/* The segment repeats an answer that the program already
		 * has. */
		return;
	if (!e && (h.type != RMPP_DATA || h.segment != 1 ||
		   a->transfer_count == TRANSFERS_MOST))
		return;
	if (!e) {
		e = new_exchange(a, 0, from, mad);
		if (!e)
			return;
		e->state = EXCHANGE_RECEIVING;
		a->transfer_count++;
		vb_rmpp_receiver_init(&e->receiver, now);
	}
	hear_segment(e, g, mad, now);
}

/* Functions for time-outs. */

void vb_agents_expire(struct vb_timer *t, vb_time now)
{
	struct exchange *e = VB_CONTAINER_OF(t, struct exchange, timer);
	uint8_t abort[VB_MAD_BYTES];

	if (e->state == EXCHANGE_WAITING && e->message && e->retries > 0) {
		e->retries--;
		send_again(e, now);
	} else if (e->state == EXCHANGE_SENDING &&
		   vb_rmpp_sender_expire(&e->sender, abort, now) ==
			   RMPP_GOING) {
		send_segments(e, now);
	} else if (e->state == EXCHANGE_SENDING) {
		exchange_transmit(e, abort, now);
		report_timeout(e);
	} else if (e->state == EXCHANGE_LINGERING || !e->serial) {
		vb_exchange_end(e);
	} else {
		report_timeout(e);
	}
}
