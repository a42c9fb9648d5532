/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of neighbours, and the table that holds them. */
#include "ipoib/neigh.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/hash.h"

#define BUCKETS 1024
#define NOBODY	0xffff
/* The number of a request for a path (vb_nbr.query): its low bits are the index
 * of the neighbour in the table, the bits above them count the requests. */
#define PLACE_BITS 10
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

_Static_assert(VB_NBR_TABLE == 1 << PLACE_BITS, "a place has 10 bits");

struct vb_nbrs {
	struct vb_nbr_ops ops;
	void *arg;
	uint64_t seed;
	vb_time next;	  /* no neighbour is due before this time */
	uint32_t queries; /* number of requests for paths so far */
	unsigned count;	  /* neighbours in the table */
	/* the first free entry; free entries are linked by @next */
	uint16_t free;
	/* the ends of the list of neighbours in the order of their last use */
	uint16_t newest, oldest;
	uint16_t buckets[BUCKETS];
	struct vb_nbr list[VB_NBR_TABLE];
};

/* --- the table --- */

static uint16_t *bucket_of(const struct vb_nbrs *t, const struct vb_gid *ip)
{
	uint64_t h = vb_hash(t->seed, vb_load_be(ip->raw, 8));

	h = vb_hash(h, vb_load_be(ip->raw + 8, 8));
	return (uint16_t *)&t->buckets[h % BUCKETS];
}

static uint16_t place_of(const struct vb_nbrs *t, const struct vb_nbr *n)
{
	return (uint16_t)(n - t->list);
}

static void leave_order(struct vb_nbrs *t, struct vb_nbr *n)
{
	*(n->newer == NOBODY ? &t->newest : &t->list[n->newer].older) =
		n->older;
	*(n->older == NOBODY ? &t->oldest : &t->list[n->older].newer) =
		n->newer;
}

static void become_newest(struct vb_nbrs *t, struct vb_nbr *n)
{
	n->newer = NOBODY;
	n->older = t->newest;
	*(t->newest == NOBODY ? &t->oldest : &t->list[t->newest].newer) =
		place_of(t, n);
	t->newest = place_of(t, n);
}

static struct vb_nbr *find_nbr(const struct vb_nbrs *t, const struct vb_gid *ip)
{
	for (uint16_t at = *bucket_of(t, ip); at != NOBODY;
	     at = t->list[at].next)
		if (vb_gid_equal(&t->list[at].ip, ip))
			return (struct vb_nbr *)&t->list[at];
	return NULL;
}

static void nbr_unready(struct vb_nbrs *t, struct vb_nbr *n)
{
	if (n->state == NBR_READY || n->state == NBR_STALE)
		t->ops.release(t->arg, n);
	n->handle = NULL;
}

static void remove_nbr(struct vb_nbrs *t, struct vb_nbr *n)
{
	uint16_t *at = bucket_of(t, &n->ip);

	nbr_unready(t, n);
	vb_waiting_drop(&n->waiting);
	while (*at != place_of(t, n))
		at = &t->list[*at].next;
	*at = n->next;
	leave_order(t, n);
	n->state = NBR_NONE;
	n->next = t->free;
	t->free = place_of(t, n);
	t->count--;
}

/* Add a neighbour, in state NONE. If the table is full, the neighbour that was
 * used longest ago is removed. */
static struct vb_nbr *enter_nbr(struct vb_nbrs *t, const struct vb_gid *ip)
{
	uint16_t *bucket = bucket_of(t, ip);
	struct vb_nbr *n;

	if (t->free == NOBODY) {
		n = &t->list[t->oldest];
		if (n->state == NBR_ASKED || n->state == NBR_KNOWN)
			t->ops.told(t->arg, &n->ip, NULL);
		remove_nbr(t, n);
	}
	n = &t->list[t->free];
	t->free = n->next;
	*n = (struct vb_nbr){ .ip = *ip, .next = *bucket, .due = VB_NEVER };
	*bucket = place_of(t, n);
	become_newest(t, n);
	t->count++;
	return n;
}

static void use_nbr(struct vb_nbrs *t, struct vb_nbr *n)
{
	if (t->newest == place_of(t, n))
		return;
	leave_order(t, n);
	become_newest(t, n);
}

/* --- states --- */

static void set_due(struct vb_nbrs *t, struct vb_nbr *n, vb_time due)
{
	n->due = due;
	t->next = VB_MIN(t->next, due);
}

/* Ask for the address once more; this counts as one of the VB_NBR_TRIES. */
static void ask_again(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->tries++;
	set_due(t, n, now + VB_NBR_RETRY);
	t->ops.ask(t->arg, &n->ip);
}

static void ask_path(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->query = ++t->queries << PLACE_BITS | place_of(t, n);
	n->tries++;
	set_due(t, n, now + VB_NBR_RETRY);
	t->ops.find_path(t->arg, n);
}

static void enter_asked(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->state = NBR_ASKED;
	n->tries = 0;
	ask_again(t, n, now);
}

static void enter_known(struct vb_nbrs *t, struct vb_nbr *n,
			const struct vb_ipoib_hw *hw, vb_time now)
{
	nbr_unready(t, n);
	n->hw = *hw;
	n->state = NBR_KNOWN;
	n->tries = 0;
	ask_path(t, n, now);
	t->ops.told(t->arg, &n->ip, &n->hw);
}

static void enter_ready(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->state = NBR_READY;
	n->tries = 0;
	n->used = n->waiting.count > 0;
	set_due(t, n, now + VB_NBR_FRESH);
	for (unsigned i = 0; i < n->waiting.count; i++)
		t->ops.send(t->arg, n, n->waiting.packets[i].bytes,
			    n->waiting.packets[i].len);
	vb_waiting_drop(&n->waiting);
}

static void enter_stale(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->state = NBR_STALE;
	n->tries = 0;
	ask_again(t, n, now);
}

static void confirm(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	n->confirmed = now;
	n->used = false;
	if (n->state == NBR_STALE) {
		n->state = NBR_READY;
		n->tries = 0;
		set_due(t, n, now + VB_NBR_FRESH);
	}
}

static void give_up(struct vb_nbrs *t, struct vb_nbr *n)
{
	if (n->state != NBR_STALE)
		t->ops.told(t->arg, &n->ip, NULL);
	remove_nbr(t, n);
}

/* The neighbour has not been confirmed for VB_NBR_FRESH: ask for its address
 * again, but only if a packet was sent to it since; else wait for another
 * VB_NBR_FRESH. */
static void check_fresh(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	if (n->confirmed + VB_NBR_FRESH > now)
		set_due(t, n, n->confirmed + VB_NBR_FRESH);
	else if (n->used)
		enter_stale(t, n, now);
	else
		set_due(t, n, now + VB_NBR_FRESH);
}

static void nbr_tick(struct vb_nbrs *t, struct vb_nbr *n, vb_time now)
{
	if (n->state == NBR_READY)
		check_fresh(t, n, now);
	else if (n->tries >= VB_NBR_TRIES)
		give_up(t, n);
	else if (n->state == NBR_KNOWN)
		ask_path(t, n, now);
	else
		ask_again(t, n, now);
}

/* --- events of a neighbour --- */

void vb_nbrs_send(struct vb_nbrs *t, const struct vb_gid *ip,
		  const void *packet, size_t len, vb_time now)
{
	struct vb_nbr *n = find_nbr(t, ip);

	if (!n)
		n = enter_nbr(t, ip);
	use_nbr(t, n);
	if (n->state == NBR_READY || n->state == NBR_STALE) {
		n->used = true;
		t->ops.send(t->arg, n, packet, len);
		return;
	}
	vb_waiting_add(&n->waiting, packet, len);
	if (n->state == NBR_NONE)
		enter_asked(t, n, now);
}

void vb_nbrs_want(struct vb_nbrs *t, const struct vb_gid *ip, vb_time now)
{
	struct vb_nbr *n = find_nbr(t, ip);

	if (n && n->state >= NBR_KNOWN) {
		t->ops.told(t->arg, ip, &n->hw);
		return;
	}
	if (!n)
		n = enter_nbr(t, ip);
	if (n->state == NBR_NONE)
		enter_asked(t, n, now);
}

static bool hw_equal(const struct vb_ipoib_hw *a, const struct vb_ipoib_hw *b)
{
	return a->qpn == b->qpn && a->flags == b->flags &&
	       vb_gid_equal(&a->gid, &b->gid);
}

void vb_nbrs_learn(struct vb_nbrs *t, const struct vb_gid *ip,
		   const struct vb_ipoib_hw *hw, bool solicited, bool create,
		   vb_time now)
{
	struct vb_nbr *n = find_nbr(t, ip);

	if (!n && create)
		n = enter_nbr(t, ip);
	if (!n)
		return;
	if (n->state >= NBR_KNOWN && hw_equal(&n->hw, hw)) {
		if (solicited)
			confirm(t, n, now);
		return;
	}
	n->confirmed = now;
	enter_known(t, n, hw, now);
}

void vb_nbrs_heard(struct vb_nbrs *t, const struct vb_gid *ip, uint32_t qpn,
		   vb_time now)
{
	struct vb_nbr *n = find_nbr(t, ip);

	if (!n || n->state < NBR_READY)
		return;
	if (n->hw.qpn == qpn)
		confirm(t, n, now);
	else if (n->state == NBR_READY)
		enter_stale(t, n, now);
}

void vb_nbrs_path(struct vb_nbrs *t, uint32_t query,
		  const struct vb_ipoib_path *path, vb_time now)
{
	struct vb_nbr *n = &t->list[query & PLACE_MASK];

	if (n->state != NBR_KNOWN || n->query != query)
		return;
	if (!path)
		return; /* the table asks for the path again at @due */
	n->path = *path;
	if (t->ops.prepare(t->arg, n))
		enter_ready(t, n, now);
}

void vb_nbrs_forget(struct vb_nbrs *t, const struct vb_gid *ip)
{
	struct vb_nbr *n = find_nbr(t, ip);

	if (n)
		remove_nbr(t, n);
}

void vb_nbrs_forget_paths(struct vb_nbrs *t, vb_time now)
{
	for (unsigned i = 0; i < VB_NBR_TABLE; i++) {
		struct vb_nbr *n = &t->list[i];

		if (n->state < NBR_KNOWN)
			continue;
		nbr_unready(t, n);
		n->state = NBR_KNOWN;
		n->tries = 0;
		ask_path(t, n, now);
	}
}

void vb_nbrs_tick(struct vb_nbrs *t, vb_time now)
{
	if (t->next > now)
		return;
	for (unsigned i = 0; i < VB_NBR_TABLE; i++) {
		struct vb_nbr *n = &t->list[i];

		if (n->state != NBR_NONE && n->due <= now)
			nbr_tick(t, n, now);
	}
	t->next = VB_NEVER;
	for (unsigned i = 0; i < VB_NBR_TABLE; i++)
		if (t->list[i].state != NBR_NONE)
			t->next = VB_MIN(t->next, t->list[i].due);
}

vb_time vb_nbrs_next(const struct vb_nbrs *t)
{
	return t->next;
}

/* --- creation and end --- */

struct vb_nbrs *vb_nbrs_create(const struct vb_nbr_ops *ops, void *arg,
			       uint64_t seed)
{
	struct vb_nbrs *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = *ops;
	t->arg = arg;
	t->seed = seed;
	t->next = VB_NEVER;
	t->newest = t->oldest = NOBODY;
	memset(t->buckets, 0xff, sizeof(t->buckets));
	for (unsigned i = 0; i < VB_NBR_TABLE; i++)
		t->list[i].next = (uint16_t)(i + 1);
	t->list[VB_NBR_TABLE - 1].next = NOBODY;
	return t;
}

void vb_nbrs_destroy(struct vb_nbrs *t)
{
	for (unsigned i = 0; i < VB_NBR_TABLE; i++)
		if (t->list[i].state != NBR_NONE)
			remove_nbr(t, &t->list[i]);
	free(t);
}

const struct vb_nbr *vb_nbrs_find(const struct vb_nbrs *t,
				  const struct vb_gid *ip)
{
	return find_nbr(t, ip);
}

unsigned vb_nbrs_count(const struct vb_nbrs *t)
{
	return t->count;
}
