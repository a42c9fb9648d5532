/* SPDX-License-Identifier: BSD-2-Clause */
/* Two switches and the link between them, as if each switch were in a process
 * of its own. */
#include "tests/support/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* shortest time between two runs of the fabric's events */
#define LOOK (20 * VB_USEC)
#define PORT 3

static void farw_fail(const char *what)
{
	fprintf(stderr, "far: %s\n", what);
	exit(1);
}

static bool odds(struct far_world *w, uint32_t of_2_32)
{
	return of_2_32 && fabt_random(&w->t) < of_2_32;
}

static void post(struct far_world *w, unsigned to, const uint8_t *bytes,
		 size_t len)
{
	struct far_message l = { .at = w->t.now + w->delay, .to = to, .len = len };

	if (w->jitter)
		l.at += fabt_random(&w->t) % w->jitter;
	if (w->messages == w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->message =
			reallocarray(w->message, w->room, sizeof(*w->message));
	}
	l.bytes = malloc(len + 1);
	if (!w->message || !l.bytes)
		farw_fail("no memory");
	memcpy(l.bytes, bytes, len);
	if (odds(w, w->wrong))
		l.bytes[fabt_random(&w->t) % len] ^=
			(uint8_t)(1u << fabt_random(&w->t) % 8);
	w->message[w->messages++] = l;
}

static void send_message(void *arg, const uint8_t *bytes, size_t len)
{
	struct side *s = arg;
	struct far_world *w = s->w;
	unsigned to = s == &w->side[0];

	s->sent++;
	if (w->cut || odds(w, w->lose))
		return;
	w->last_len = VB_MIN(len, sizeof(w->last));
	memcpy(w->last, bytes, w->last_len);
	post(w, to, bytes, len);
	if (odds(w, w->twice))
		post(w, to, bytes, len);
}

static uint64_t draw(void *arg)
{
	const struct side *s = arg;

	return (uint64_t)fabt_random(&s->w->t) << 32 | fabt_random(&s->w->t);
}

void farw_start(struct far_world *w, unsigned side)
{
	struct side *s = &w->side[side];
	struct vb_far_spec spec = {
		.net = w->t.net,
		.node = s->sw,
		.port = PORT,
		.far = { w->side[!side].sw->guid, PORT },
		.room = 1400,
		.send = send_message,
		.random = draw,
		.arg = s,
	};

	s->far = vb_far_create(&spec, w->t.now);
	if (!s->far)
		farw_fail("no memory");
}

void farw_kill(struct far_world *w, unsigned side)
{
	struct vb_far *far = w->side[side].far;

	w->side[side].far = NULL;
	vb_far_destroy(far);
	vb_fab_far_gone(w->t.net, w->side[side].sw, PORT, w->t.now);
}

static struct side *side_of(struct far_world *w, const struct vb_fab_node *n)
{
	return &w->side[n == w->side[1].sw];
}

static void carry(struct fabt *t, struct vb_fab_node *node,
		  const uint8_t *bytes, size_t len)
{
	struct side *s = side_of(VB_CONTAINER_OF(t, struct far_world, t), node);

	if (s->far)
		vb_far_carry(s->far, bytes, len);
}

static void changed(struct fabt *t, struct vb_fab_node *node, vb_time now)
{
	struct side *s = side_of(VB_CONTAINER_OF(t, struct far_world, t), node);

	if (s->far)
		vb_far_changed(s->far, now);
}

void farw_init(struct far_world *w, uint64_t seed,
	       const struct vb_fab_link_spec *spec, uint64_t edge_rate)
{
	const struct vb_fab_link_spec edge = { .bytes_per_sec = edge_rate };

	*w = (struct far_world){ .delay = 30 * VB_USEC };
	fabt_init(&w->t, seed);
	w->t.on_far = carry;
	w->t.on_far_event = changed;
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &w->side[i];

		s->w = w;
		s->sw = fabt_switch(&w->t, 4);
		s->ca = fabt_adapter(&w->t);
		fabt_link(&w->t, s->ca, 1, s->sw, 1, &edge);
		if (vb_fab_link_far(w->t.net, s->sw, PORT, spec, w->t.now))
			farw_fail("no link");
	}
	fabt_up(&w->t, FABT_SHORTEST, 3);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_fab_switch *sw = &w->side[i].sw->sw;

		sw->linear[fabt_lid(w->side[!i].ca)] = PORT;
		sw->linear_top = 16;
	}
}

void farw_fini(struct far_world *w)
{
	for (unsigned i = 0; i < 2; i++)
		vb_far_destroy(w->side[i].far);
	for (size_t i = 0; i < w->messages; i++)
		free(w->message[i].bytes);
	free(w->message);
	fabt_fini(&w->t);
}

void farw_forge(struct far_world *w, unsigned to, const uint8_t *bytes,
		size_t len)
{
	if (w->side[to].far)
		vb_far_hear(w->side[to].far, bytes, len, w->t.now);
}

/* Deliver the messages that are due. Of two with the same time, the one sent
 * first comes first. */
static void deliver_messages(struct far_world *w)
{
	for (size_t i = 0; i < w->messages; i++) {
		struct far_message l = w->message[i];

		if (l.at > w->t.now)
			continue;
		w->messages--;
		memmove(w->message + i, w->message + i + 1,
			(w->messages - i) * sizeof(l));
		i--;
		farw_forge(w, l.to, l.bytes, l.len);
		free(l.bytes);
	}
}

static vb_time next_look(const struct far_world *w, vb_time end)
{
	vb_time at = VB_MAX(vb_fab_next(w->t.net), w->t.now + LOOK);

	for (unsigned i = 0; i < 2; i++)
		if (w->side[i].far)
			at = VB_MIN(at, vb_far_next(w->side[i].far));
	for (size_t i = 0; i < w->messages; i++)
		at = VB_MIN(at, w->message[i].at);
	for (uint32_t i = 0; i < w->t.streams; i++)
		at = VB_MIN(at, VB_MAX(w->t.stream[i].next, w->t.now + LOOK));
	return VB_MIN(end, VB_MAX(at, w->t.now + 1));
}

void farw_run(struct far_world *w, vb_time span)
{
	vb_time end = w->t.now + span;

	while (w->t.now < end) {
		fabt_run(&w->t, next_look(w, end));
		deliver_messages(w);
		for (unsigned i = 0; i < 2; i++) {
			if (!w->side[i].far)
				continue;
			vb_far_run(w->side[i].far, w->t.now);
			vb_far_flush(w->side[i].far);
		}
	}
}

void farw_activate(struct far_world *w)
{
	for (enum vb_fab_state state = FAB_ARMED; state <= FAB_ACTIVE; state++)
		for (unsigned i = 0; i < 2; i++) {
			struct vb_fab_port *p = &w->side[i].sw->port[PORT];

			p->mtu = 5;
			p->oper_vls = 3;
			(void)!vb_fab_set_state(w->t.net, w->side[i].sw, PORT,
						state, w->t.now);
		}
}

bool farw_is_up(const struct far_world *w)
{
	return w->side[0].sw->port[PORT].state >= FAB_INIT &&
	       w->side[1].sw->port[PORT].state >= FAB_INIT;
}
