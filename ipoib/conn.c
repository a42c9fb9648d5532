/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of connections, and the table that holds them. */
#include "ipoib/conn.h"

#include <stdlib.h>

/* The number of a call (vb_conn.query): its low bits are the index of the
 * connection in the table, the bits above them count the calls. */
#define PLACE_BITS 7
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

_Static_assert(VB_CONNS == 1 << PLACE_BITS, "a place has 7 bits");

struct vb_conns {
	struct vb_conn_ops ops;
	void *arg;
	uint32_t queries; /* number of calls made so far */
	unsigned full;	  /* connections with VB_CONN_DEPTH frames under way */
	vb_time next;	  /* no connection is due before this time */
	struct vb_conn list[VB_CONNS];
};

/* --- the table --- */

static struct vb_conn *conn_find(const struct vb_conns *t,
				 const struct vb_ipoib_hw *peer)
{
	for (unsigned i = 0; i < VB_CONNS; i++)
		if (t->list[i].state != CONN_NONE &&
		    t->list[i].peer.qpn == peer->qpn &&
		    vb_gid_equal(&t->list[i].peer.gid, &peer->gid))
			return (struct vb_conn *)&t->list[i];
	return NULL;
}

static struct vb_conn *conn_of(struct vb_conns *t, uint32_t query,
			       enum vb_conn_state state)
{
	struct vb_conn *c = &t->list[query & PLACE_MASK];

	return c->state == state && c->query == query ? c : NULL;
}

static void conn_due(struct vb_conns *t, struct vb_conn *c, vb_time due)
{
	c->due = due;
	t->next = VB_MIN(t->next, due);
}

static void release_conn(struct vb_conns *t, struct vb_conn *c)
{
	if (c->state == CONN_CALLING || c->state == CONN_UP)
		t->ops.end(t->arg, c);
	t->full -= c->under_way == VB_CONN_DEPTH;
	c->under_way = 0;
	c->handle = NULL;
	vb_waiting_drop(&c->waiting);
}

static void remove_conn(struct vb_conns *t, struct vb_conn *c)
{
	release_conn(t, c);
	*c = (struct vb_conn){ .state = CONN_NONE };
}

/* Returns a free entry. If the table is full, the connection that was used
 * longest ago ends, and its entry is returned; NULL: that connection was used
 * within VB_CONN_FRESH. */
static struct vb_conn *conn_place(struct vb_conns *t, vb_time now)
{
	struct vb_conn *oldest = t->list;

	for (unsigned i = 0; i < VB_CONNS; i++) {
		if (t->list[i].state == CONN_NONE)
			return &t->list[i];
		if (t->list[i].used < oldest->used)
			oldest = &t->list[i];
	}
	if (oldest->used + VB_CONN_FRESH > now)
		return NULL;
	remove_conn(t, oldest);
	return oldest;
}

/* --- states --- */

static void enter_backoff(struct vb_conns *t, struct vb_conn *c, vb_time now)
{
	unsigned doublings = VB_MIN(c->failures, 5u);

	release_conn(t, c);
	c->state = CONN_BACKOFF;
	c->failures++;
	conn_due(t, c, now + VB_MIN(VB_CONN_FIRST << doublings, VB_CONN_LAST));
}

static void enter_calling(struct vb_conns *t, struct vb_conn *c, vb_time now)
{
	c->query = ++t->queries << PLACE_BITS | (uint32_t)(c - t->list);
	if (!t->ops.call(t->arg, c)) {
		enter_backoff(t, c, now);
		return;
	}
	c->state = CONN_CALLING;
	conn_due(t, c, now + VB_CONN_ANSWER);
}

/* Send a frame; it is dropped if VB_CONN_DEPTH frames of the connection are
 * under way already. */
static void put_frame(struct vb_conns *t, struct vb_conn *c, const void *frame,
		      size_t len, vb_time now)
{
	if (c->under_way == VB_CONN_DEPTH ||
	    !t->ops.send(t->arg, c, frame, len))
		return;
	if (c->under_way++ == 0)
		c->progress = now;
	if (c->under_way == VB_CONN_DEPTH)
		t->full++;
}

/* --- events of a connection --- */

static enum vb_conn_way send_up(struct vb_conns *t, struct vb_conn *c,
				const void *frame, size_t len,
				unsigned datagram, vb_time now, unsigned *most)
{
	if (len <= c->mtu) {
		put_frame(t, c, frame, len, now);
		return CONN_TAKEN;
	}
	*most = VB_MAX(c->mtu, datagram);
	return len <= datagram ? CONN_DATAGRAM : CONN_TOO_LONG;
}

enum vb_conn_way vb_conns_send(struct vb_conns *t,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most)
{
	struct vb_conn *c = conn_find(t, peer);

	if (!c) {
		c = conn_place(t, now);
		if (c) {
			*c = (struct vb_conn){ .peer = *peer };
			enter_calling(t, c, now);
		}
	}
	if (c)
		c->used = now;
	if (c && c->state == CONN_UP)
		return send_up(t, c, frame, len, datagram, now, most);
	if (len <= datagram)
		return CONN_DATAGRAM;
	*most = datagram;
	if (!c || c->failures >= VB_CONN_HOPELESS)
		return CONN_TOO_LONG;
	if (c->state == CONN_CALLING)
		vb_waiting_add(&c->waiting, frame, len);
	return CONN_TAKEN;
}

void vb_conns_up(struct vb_conns *t, uint32_t query, unsigned mtu, vb_time now)
{
	struct vb_conn *c = conn_of(t, query, CONN_CALLING);

	if (!c)
		return;
	c->state = CONN_UP;
	c->mtu = mtu;
	/* Until the connection has carried a frame, it counts as a failure. */
	c->failures = VB_MAX(c->failures, 1u);
	c->used = now;
	conn_due(t, c, now + VB_CONN_DEAD);
	for (unsigned i = 0; i < c->waiting.count; i++)
		if (c->waiting.packets[i].len <= mtu)
			put_frame(t, c, c->waiting.packets[i].bytes,
				  c->waiting.packets[i].len, now);
	vb_waiting_drop(&c->waiting);
}

void vb_conns_failed(struct vb_conns *t, uint32_t query, vb_time now)
{
	struct vb_conn *c = conn_of(t, query, CONN_UP);

	if (!c)
		c = conn_of(t, query, CONN_CALLING);
	if (!c)
		return;
	if (c->state == CONN_UP && c->failures == 0)
		remove_conn(t, c);
	else
		enter_backoff(t, c, now);
}

void vb_conns_done(struct vb_conns *t, uint32_t query, vb_time now)
{
	struct vb_conn *c = conn_of(t, query, CONN_UP);

	if (!c || c->under_way == 0)
		return;
	t->full -= c->under_way == VB_CONN_DEPTH;
	c->under_way--;
	c->progress = now;
	c->failures = 0;
}

void vb_conns_forget(struct vb_conns *t)
{
	for (unsigned i = 0; i < VB_CONNS; i++)
		if (t->list[i].state != CONN_NONE)
			remove_conn(t, &t->list[i]);
}

/* --- timers --- */

static bool conn_holds_up(const struct vb_conn *c, vb_time now)
{
	return c->state == CONN_UP && c->under_way == VB_CONN_DEPTH &&
	       c->progress + VB_CONN_STALL > now;
}

bool vb_conns_is_full(const struct vb_conns *t, vb_time now)
{
	for (unsigned i = 0; t->full && i < VB_CONNS; i++)
		if (conn_holds_up(&t->list[i], now))
			return true;
	return false;
}

static void tick_up(struct vb_conns *t, struct vb_conn *c, vb_time now)
{
	if (c->under_way && c->progress + VB_CONN_DEAD <= now)
		enter_backoff(t, c, now);
	else if (!c->under_way && c->used + VB_CONN_IDLE <= now)
		remove_conn(t, c);
	else
		conn_due(t, c,
			 c->under_way ? c->progress + VB_CONN_DEAD
				      : VB_MIN(c->used + VB_CONN_IDLE,
					       now + VB_CONN_DEAD));
}

/* A connection in BACKOFF is tried again only if the host has sent to the peer
 * within VB_CONN_LAST. */
static void tick_waiting(struct vb_conns *t, struct vb_conn *c, vb_time now)
{
	if (c->used + VB_CONN_LAST > now)
		enter_calling(t, c, now);
	else
		remove_conn(t, c);
}

static void conn_tick(struct vb_conns *t, struct vb_conn *c, vb_time now)
{
	if (c->state == CONN_UP)
		tick_up(t, c, now);
	else if (c->state == CONN_CALLING)
		enter_backoff(t, c, now);
	else
		tick_waiting(t, c, now);
}

void vb_conns_tick(struct vb_conns *t, vb_time now)
{
	if (t->next > now)
		return;
	for (unsigned i = 0; i < VB_CONNS; i++)
		if (t->list[i].state != CONN_NONE && t->list[i].due <= now)
			conn_tick(t, &t->list[i], now);
	t->next = VB_NEVER;
	for (unsigned i = 0; i < VB_CONNS; i++)
		if (t->list[i].state != CONN_NONE)
			t->next = VB_MIN(t->next, t->list[i].due);
}

vb_time vb_conns_next(const struct vb_conns *t, vb_time now)
{
	vb_time next = t->next;

	for (unsigned i = 0; t->full && i < VB_CONNS; i++)
		if (conn_holds_up(&t->list[i], now))
			next = VB_MIN(next,
				      t->list[i].progress + VB_CONN_STALL);
	return next;
}

/* --- creation and end --- */

struct vb_conns *vb_conns_create(const struct vb_conn_ops *ops, void *arg)
{
	struct vb_conns *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = *ops;
	t->arg = arg;
	t->next = VB_NEVER;
	return t;
}

void vb_conns_destroy(struct vb_conns *t)
{
	vb_conns_forget(t);
	free(t);
}

const struct vb_conn *vb_conns_find(const struct vb_conns *t,
				    const struct vb_ipoib_hw *peer)
{
	return conn_find(t, peer);
}
