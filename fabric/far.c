/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of a link between two processes.
 *
 *     phase        means                        leaves it
 *     FAR_DOWN     this end is not willing      it is plugged in, enabled
 *     FAR_TRAIN    this end waits               a hello with its nonce
 *     FAR_UP       a session                    silence; the link goes down;
 *                                               a new nonce of the other end
 *
 * An end that leaves FAR_UP takes a new nonce, so it is in at most one session
 * with each nonce of its own.
 */
#include "fabric/far.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Least time between two hellos that answer a message, since a forger may send
 * many. */
#define LEAST_GAP (10 * VB_MSEC)
/* The greatest jump of message numbers that is accepted: before so many
 * messages in a row are lost, VB_FAR_SILENCE ends the session. */
#define JUMP_MOST (1u << 24)

struct vb_far {
	struct vb_far_spec spec;
	enum vb_far_phase phase;
	/* nonces of this end and of the other end; @theirs 0: unknown */
	uint64_t mine, theirs;
	/* numbers of the last message sent and taken in this session */
	uint64_t sent, got;
	vb_time heard; /* the time of the last message that proved its sender */
	vb_time said;  /* the time of the last hello sent */
	vb_time next;  /* the time of the next hello */
	vb_time asked; /* the time of the last FAR_ASK sent */
	struct vb_far_status status;
	size_t len; /* number of bytes in @out */
	uint8_t out[VB_FAR_MESSAGE];
};

static void say(struct vb_far *f, enum vb_far_phase phase, uint64_t to)
{
	const struct vb_far_spec *s = &f->spec;
	uint8_t bytes[VB_FAR_HELLO_BYTES];
	struct vb_fab_far_port offer;
	struct vb_far_hello h = {
		.to = to,
		.mine = f->mine,
		.from = { s->node->guid, s->port },
		.want = s->far,
		.phase = (uint8_t)phase,
		.extended = vb_fab_far_is_extended(s->node, s->port),
	};

	vb_fab_far_offer(s->node, s->port, &offer);
	h.width = offer.width;
	h.speed = offer.speed;
	h.speed_ext = offer.speed_ext;
	vb_far_hello_put(bytes, &h);
	s->send(s->arg, bytes, sizeof(bytes));
}

static void say_hello(struct vb_far *f, vb_time now)
{
	say(f, f->phase, f->theirs);
	f->said = now;
	f->next = now + VB_FAR_HELLO_NS;
}

/* Moves the next hello to now, or to LEAST_GAP after the last one if that is
 * later. */
static void hasten(struct vb_far *f, vb_time now)
{
	f->next = VB_MIN(f->next, VB_MAX(now, f->said + LEAST_GAP));
}

/* Leaves the session and chooses a new nonce, which no message under way
 * has. */
static void restart_session(struct vb_far *f, vb_time now)
{
	const struct vb_far_spec *s = &f->spec;

	do
		f->mine = s->random(s->arg);
	while (!f->mine);
	f->phase =
		vb_fab_far_is_willing(s->node, s->port) ? FAR_TRAIN : FAR_DOWN;
	f->sent = f->got = 0;
	f->len = 0;
	if (f->phase == FAR_DOWN)
		f->status.state = FAR_IS_DOWN;
	else if (f->status.state == FAR_IS_UP)
		f->status.state = FAR_IS_SILENT;
	hasten(f, now);
}

struct vb_far *vb_far_create(const struct vb_far_spec *spec, vb_time now)
{
	struct vb_far *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->spec = *spec;
	f->next = now;
	f->heard = now;
	restart_session(f, now);
	return f;
}

void vb_far_destroy(struct vb_far *f)
{
	free(f);
}

void vb_far_changed(struct vb_far *f, vb_time now)
{
	restart_session(f, now);
}

const struct vb_far_status *vb_far_status(const struct vb_far *f)
{
	return &f->status;
}

/* Functions that send frames to the other end. */

void vb_far_flush(struct vb_far *f)
{
	const struct vb_far_data d = { f->theirs, f->sent + 1 };

	if (!f->len)
		return;
	vb_far_data_put(f->out, &d);
	f->sent++;
	f->status.sent++;
	f->spec.send(f->spec.arg, f->out, f->len);
	f->len = 0;
}

void vb_far_carry(struct vb_far *f, const uint8_t *bytes, size_t len)
{
	size_t need = VB_FAR_REC_BYTES + len;

	if (f->phase != FAR_UP || VB_FAR_DATA_BYTES + need > sizeof(f->out))
		return;
	if (f->len && f->len + need > f->spec.room)
		vb_far_flush(f);
	if (!f->len)
		f->len = VB_FAR_DATA_BYTES;
	vb_store_be(f->out + f->len, len, VB_FAR_REC_BYTES);
	memcpy(f->out + f->len + VB_FAR_REC_BYTES, bytes, len);
	f->len += need;
}

/* Functions for hellos. */

static bool is_same_end(const struct vb_far_id *a, const struct vb_far_id *b)
{
	return a->guid == b->guid && a->port == b->port;
}

/* Does the hello @h come from the end to which this link leads, with credits of
 * the same width? If not, and outside a session, store the reason in the link's
 * status. */
static bool agrees(struct vb_far *f, const struct vb_far_hello *h, vb_time now)
{
	const struct vb_far_spec *s = &f->spec;
	const struct vb_far_id near = { s->node->guid, s->port };
	enum vb_far_state wrong;

	if (!is_same_end(&h->from, &s->far) || !is_same_end(&h->want, &near))
		wrong = FAR_IS_OTHER;
	else if (h->extended != vb_fab_far_is_extended(s->node, s->port))
		wrong = FAR_IS_CREDITS;
	else
		return true;
	if (f->phase != FAR_UP) {
		f->heard = now;
		f->status.state = wrong;
		f->status.hello = *h;
	}
	return false;
}

/* Answer a hello that shows no nonce of this end, or an old one: tell the
 * sender this end's present nonce. During a session nothing else changes before
 * the sender has shown the present nonce. */
static void answer_stranger(struct vb_far *f, const struct vb_far_hello *h,
			    vb_time now)
{
	if (h->phase == FAR_ASK)
		return;
	if (f->phase != FAR_UP) {
		f->theirs = h->mine;
		hasten(f, now);
	} else if (now >= f->asked + LEAST_GAP) {
		f->asked = now;
		say(f, FAR_ASK, h->mine);
	}
}

/* Begins a session, because each end now knows both nonces. */
static void start_session(struct vb_far *f, const struct vb_far_hello *h,
			  vb_time now)
{
	const struct vb_far_spec *s = &f->spec;
	const struct vb_fab_far_port offer = { h->width, h->speed,
					       h->speed_ext };

	f->phase = FAR_UP;
	f->status.state = FAR_IS_UP;
	say_hello(f, now);
	vb_fab_far_ready(s->net, s->node, s->port, &offer, now);
}

/* Handles a hello that repeats this end's nonce, which proves its sender. */
static void hear_known(struct vb_far *f, const struct vb_far_hello *h,
		       vb_time now)
{
	bool known = h->mine == f->theirs;

	f->heard = now;
	if (f->phase == FAR_UP && known && h->phase != FAR_DOWN)
		return;
	f->theirs = h->mine;
	if (f->phase == FAR_UP) {
		/* The other end has left the session, so the link goes down. */
		vb_fab_far_gone(f->spec.net, f->spec.node, f->spec.port, now);
		return;
	}
	if (f->phase == FAR_TRAIN &&
	    (h->phase == FAR_TRAIN || h->phase == FAR_UP)) {
		start_session(f, h, now);
		return;
	}
	if (h->phase == FAR_DOWN)
		f->status.state = FAR_IS_DOWN;
	if (!known || h->phase == FAR_ASK)
		hasten(f, now);
}

static void hear_hello(struct vb_far *f, const uint8_t *bytes, vb_time now)
{
	struct vb_far_hello h;

	if (!vb_far_hello_get(bytes, &h))
		f->status.forged++;
	else if (!agrees(f, &h, now))
		return;
	else if (h.to == f->mine)
		hear_known(f, &h, now);
	else
		answer_stranger(f, &h, now);
}

/* Functions for messages that carry frames. */

static void take_records(struct vb_far *f, const uint8_t *bytes, size_t len,
			 vb_time now)
{
	struct vb_reader r = vb_reader(bytes, len);

	while (vb_reader_left(&r)) {
		const uint8_t *head = vb_take(&r, VB_FAR_REC_BYTES);
		size_t n = head ? vb_load_be(head, VB_FAR_REC_BYTES) : 0;
		const uint8_t *frame = vb_take(&r, n);

		if (r.overrun) {
			f->status.forged++;
			return;
		}
		/* While the port is down or in training, the frame is lost. */
		(void)!vb_fab_arrive(f->spec.net, f->spec.node, f->spec.port,
				     frame, n, now);
	}
}

static void hear_data(struct vb_far *f, const uint8_t *bytes, size_t len,
		      vb_time now)
{
	struct vb_far_status *s = &f->status;
	struct vb_far_data d;
	uint64_t missing;

	vb_far_data_get(bytes, &d);
	if (f->phase != FAR_UP || d.to != f->mine ||
	    d.seq > f->got + JUMP_MOST) {
		s->forged += f->phase == FAR_UP;
		return;
	}
	f->heard = now;
	if (d.seq <= f->got) {
		s->late++;
		return;
	}
	missing = d.seq - f->got - 1;
	f->got = d.seq;
	s->got++;
	s->lost += missing;
	if (missing)
		vb_fab_count(&f->spec.node->port[f->spec.port],
			     FAB_SYMBOL_ERRORS, 1);
	take_records(f, bytes + VB_FAR_DATA_BYTES, len - VB_FAR_DATA_BYTES,
		     now);
}

void vb_far_hear(struct vb_far *f, const uint8_t *bytes, size_t len,
		 vb_time now)
{
	enum vb_far_kind kind;
	unsigned version;

	switch (vb_far_look(bytes, len, &kind, &version)) {
	case FAR_ALIEN:
		f->status.forged++;
		return;
	case FAR_VERSION:
		if (f->phase != FAR_UP) {
			f->status.state = FAR_IS_VERSION;
			f->status.version = version;
		}
		return;
	case FAR_GOOD:
		if (kind == FAR_HELLO)
			hear_hello(f, bytes, now);
		else
			hear_data(f, bytes, len, now);
	}
}

/* Functions for time-outs. */

vb_time vb_far_next(const struct vb_far *f)
{
	return f->phase == FAR_UP ? VB_MIN(f->next, f->heard + VB_FAR_SILENCE)
				  : f->next;
}

void vb_far_run(struct vb_far *f, vb_time now)
{
	if (now >= f->heard + VB_FAR_SILENCE) {
		if (f->phase != FAR_DOWN)
			f->status.state = FAR_IS_SILENT;
		f->heard = now;
		if (f->phase == FAR_UP)
			vb_fab_far_gone(f->spec.net, f->spec.node, f->spec.port,
					now);
	}
	if (now >= f->next)
		say_hello(f, now);
}
