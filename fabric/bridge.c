/* SPDX-License-Identifier: BSD-2-Clause */
/* Forwards Ethernet frames between a switch's Ethernet ports. */
#include "fabric/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_AT 6 /* offset of the source address in a frame */

/* A copy of a frame that waits for room at a port of the bridge. */
struct waiting_frame {
	uint8_t *bytes;
	size_t len;
};

struct bridge_port {
	bool up;
	struct vb_bridge_counters count;
	/* a ring of the frames that wait */
	struct waiting_frame queue[VB_BRIDGE_QUEUE];
	unsigned first, waiting;
	size_t bytes; /* the number of bytes of all frames in @queue */
};

struct vb_bridge {
	struct vb_bridge_ops ops;
	void *arg;
	unsigned ports;
	struct vb_macs *macs;
	struct bridge_port port[]; /* [0] is unused */
};

/* Functions for the frames that wait at a port. */

static struct waiting_frame *oldest_of(struct bridge_port *p)
{
	return &p->queue[p->first];
}

static void unqueue_oldest(struct bridge_port *p)
{
	p->bytes -= oldest_of(p)->len;
	free(oldest_of(p)->bytes);
	p->first = (p->first + 1) % VB_BRIDGE_QUEUE;
	p->waiting--;
}

static bool keep_frame(struct bridge_port *p, const uint8_t *frame, size_t len)
{
	uint8_t *copy;

	if (p->waiting == VB_BRIDGE_QUEUE || p->bytes + len > VB_BRIDGE_BYTES)
		return false;
	copy = malloc(len);
	if (!copy)
		return false;
	memcpy(copy, frame, len);
	p->queue[(p->first + p->waiting) % VB_BRIDGE_QUEUE] =
		(struct waiting_frame){ copy, len };
	p->waiting++;
	p->bytes += len;
	return true;
}

/* Functions that send frames by a port. */

/* Send a frame, and count it. -EAGAIN: the port accepts no frame now. */
static int try_port(struct vb_bridge *b, unsigned port, const uint8_t *frame,
		    size_t len)
{
	struct vb_bridge_counters *c = &b->port[port].count;
	int rc = b->ops.send(b->arg, port, frame, len);

	if (rc == -EAGAIN)
		return rc;
	if (rc) {
		c->discards++;
		return rc;
	}
	c->xmit_frames++;
	c->xmit_bytes += len;
	return 0;
}

/* Send a frame by a port, or queue it: while other frames wait at the port, the
 * frame must not overtake them. */
static void depart(struct vb_bridge *b, unsigned port, const uint8_t *frame,
		   size_t len)
{
	struct bridge_port *p = &b->port[port];

	if (!p->waiting && try_port(b, port, frame, len) != -EAGAIN)
		return;
	if (!keep_frame(p, frame, len))
		p->count.discards++;
}

bool vb_bridge_ready(struct vb_bridge *b, unsigned port)
{
	struct bridge_port *p = &b->port[port];

	while (p->waiting) {
		const struct waiting_frame *w = oldest_of(p);

		if (try_port(b, port, w->bytes, w->len) == -EAGAIN)
			return true;
		unqueue_oldest(p);
	}
	return false;
}

/* Functions for a frame that has come to a port. */

/* Addresses that every bridge keeps for itself (IEEE 802.1D, 7.12.6). */
static bool ends_here(const uint8_t *mac)
{
	static const uint8_t first[5] = { 0x01, 0x80, 0xc2, 0x00, 0x00 };

	return memcmp(mac, first, sizeof(first)) == 0 && mac[5] <= 0x0f;
}

static void flood_frame(struct vb_bridge *b, unsigned from,
			const uint8_t *frame, size_t len)
{
	b->port[from].count.flooded++;
	for (unsigned port = 1; port <= b->ports; port++)
		if (port != from && b->port[port].up)
			depart(b, port, frame, len);
}

void vb_bridge_take(struct vb_bridge *b, unsigned port, const uint8_t *frame,
		    size_t len, vb_time now)
{
	struct vb_bridge_counters *c = &b->port[port].count;
	const struct vb_mac *to;

	if (!b->port[port].up)
		return;
	/* No station sends from a group's address. */
	if (len < VB_BRIDGE_LEAST || len > VB_BRIDGE_MOST ||
	    frame[SOURCE_AT] & 1) {
		c->errors++;
		return;
	}
	c->rcv_frames++;
	c->rcv_bytes += len;
	vb_macs_learn(b->macs, frame + SOURCE_AT, port, now);
	to = frame[0] & 1 ? NULL : vb_macs_find(b->macs, frame, now);
	if (ends_here(frame) || (to && to->at == port))
		c->filtered++;
	else if (to)
		depart(b, (unsigned)to->at, frame, len);
	else
		flood_frame(b, port, frame, len);
}

/* Functions that change or return the state of a port. */

void vb_bridge_set_up(struct vb_bridge *b, unsigned port, bool up)
{
	struct bridge_port *p = &b->port[port];

	p->up = up;
	if (up)
		return;
	vb_macs_forget_at(b->macs, port);
	while (p->waiting)
		unqueue_oldest(p);
}

bool vb_bridge_is_up(const struct vb_bridge *b, unsigned port)
{
	return b->port[port].up;
}

unsigned vb_bridge_waiting(const struct vb_bridge *b, unsigned port)
{
	return b->port[port].waiting;
}

const struct vb_bridge_counters *vb_bridge_counters(const struct vb_bridge *b,
						    unsigned port)
{
	return &b->port[port].count;
}

const struct vb_macs *vb_bridge_macs(const struct vb_bridge *b)
{
	return b->macs;
}

/* Functions that create and destroy a bridge. */

struct vb_bridge *vb_bridge_create(const struct vb_bridge_ops *ops, void *arg,
				   unsigned ports, uint64_t seed)
{
	struct vb_bridge *b =
		calloc(1, sizeof(*b) + (ports + 1) * sizeof(*b->port));

	if (!b)
		return NULL;
	b->macs = vb_macs_create(NULL, NULL, seed);
	if (!b->macs) {
		free(b);
		return NULL;
	}
	b->ops = *ops;
	b->arg = arg;
	b->ports = ports;
	return b;
}

void vb_bridge_destroy(struct vb_bridge *b)
{
	for (unsigned port = 1; port <= b->ports; port++)
		vb_bridge_set_up(b, port, false);
	vb_macs_destroy(b->macs);
	free(b);
}
