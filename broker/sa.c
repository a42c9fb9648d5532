/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to subnet administrators, and the paths of the last second. */
#include "broker/sa.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rand.h"

#define RETRIES	    2 /* a request is sent once, and so many times more */
#define DEFAULT_MS  2000
#define LONGEST_MS  120000
#define SHORTEST_MS 10 /* the shortest time-out, of one sending */
/* How long after the last time-out of a request the fabric may report that no
 * answer came. */
#define GRACE  VB_SEC
#define FRESH  VB_SEC /* how long a path is kept */
#define MEMORY 64     /* the most paths that are kept */
#define TID_AT 8

struct known_path {
	unsigned place; /* 0: the entry is free */
	vb_time until;
	struct vb_sa_path want, path;
};

struct vb_sa {
	struct vb_places *places;
	struct vb_timers timers;
	struct vb_sa_request *requests;
	uint32_t next_tid;
	struct known_path known[MEMORY];
	unsigned next_known; /* the entry that is used next */
};

struct vb_sa *vb_sa_create(struct vb_places *places)
{
	struct vb_sa *sa = calloc(1, sizeof(*sa));

	if (!sa)
		return NULL;
	sa->places = places;
	sa->next_tid = vb_rand32();
	vb_timers_init(&sa->timers);
	return sa;
}

void vb_sa_destroy(struct vb_sa *sa)
{
	vb_timers_fini(&sa->timers);
	free(sa);
}

/* --- requests --- */

void vb_sa_cancel(struct vb_sa_request *r)
{
	if (!r->at)
		return;
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	r->at = NULL;
	vb_timer_cancel(&r->sa->timers, &r->timer);
}

static void finish_request(struct vb_sa_request *r, int error,
			   const uint8_t *mad, size_t len)
{
	vb_sa_cancel(r);
	r->done(r, error, mad, len);
}

static uint8_t answer_to(uint8_t method)
{
	if (method == SA_GET_TABLE)
		return SA_GET_TABLE_RESP;
	return method == SA_DELETE ? SA_DELETE_RESP : SA_GET_RESP;
}

static void sa_enter(struct vb_sa *sa, struct vb_sa_request *r, unsigned place,
		     const struct vb_sa_hdr *h)
{
	r->sa = sa;
	r->place = place;
	r->tid = sa->next_tid++;
	r->attr_id = h->attr_id;
	r->answer = answer_to(h->method);
	vb_timer_init(&r->timer);
	r->next = sa->requests;
	r->at = &sa->requests;
	if (r->next)
		r->next->at = &r->next;
	sa->requests = r;
}

/* A request that cannot be sent ends like one that nobody answers: at its
 * timer, since the caller does not expect the end yet. Without memory for the
 * timer only the answer ends the request. */
void vb_sa_ask(struct vb_sa *sa, struct vb_sa_request *r, unsigned place,
	       const struct vb_sa_hdr *h, uint8_t mad[VB_MAD_BYTES],
	       uint32_t timeout_ms, vb_time now)
{
	uint32_t all = VB_MIN(timeout_ms ? timeout_ms : DEFAULT_MS,
			      (uint32_t)LONGEST_MS);
	uint32_t one = VB_MAX(all / (RETRIES + 1), (uint32_t)SHORTEST_MS);
	int rc;

	sa_enter(sa, r, place, h);
	vb_store_be(mad + TID_AT, r->tid, 8);
	rc = vb_place_ask(sa->places, place, mad, one, RETRIES);
	(void)!vb_timer_set(
		&sa->timers, &r->timer,
		now + (rc ? 0 : (RETRIES + 1) * one * VB_MSEC + GRACE));
	r->error = rc;
}

void vb_sa_tell(struct vb_sa *sa, unsigned place, uint8_t mad[VB_MAD_BYTES])
{
	vb_store_be(mad + TID_AT, sa->next_tid++, 8);
	(void)!vb_place_ask(sa->places, place, mad, DEFAULT_MS / (RETRIES + 1),
			    RETRIES);
}

static struct vb_sa_request *sa_find_asked(const struct vb_sa *sa,
					   unsigned place, uint32_t tid)
{
	struct vb_sa_request *r = sa->requests;

	while (r && !(r->place == place && r->tid == tid))
		r = r->next;
	return r;
}

void vb_sa_hear(struct vb_sa *sa, unsigned place, bool silent,
		const uint8_t *bytes, size_t len)
{
	struct vb_sa_request *r;
	struct vb_sa_hdr h;
	uint64_t tid;

	if (len < VB_MAD_HDR_BYTES)
		return;
	tid = vb_load_be(bytes + TID_AT, 8);
	r = tid >> 32 ? NULL : sa_find_asked(sa, place, (uint32_t)tid);
	if (!r)
		return;
	if (silent) {
		finish_request(r, -ETIMEDOUT, NULL, 0);
		return;
	}
	if (!vb_sa_hdr_get(bytes, len, &h) || h.method != r->answer ||
	    h.attr_id != r->attr_id)
		return;
	finish_request(r, h.status ? -EINVAL : 0, h.status ? NULL : bytes, len);
}

vb_time vb_sa_deadline(const struct vb_sa *sa)
{
	return vb_timers_next(&sa->timers);
}

void vb_sa_tick(struct vb_sa *sa, vb_time now)
{
	struct vb_timer *t;

	while ((t = vb_timers_pop(&sa->timers, now))) {
		struct vb_sa_request *r =
			VB_CONTAINER_OF(t, struct vb_sa_request, timer);

		finish_request(r, r->error ? r->error : -ETIMEDOUT, NULL, 0);
	}
}

void vb_sa_end(struct vb_sa *sa, unsigned place)
{
	struct vb_sa_request *r = sa->requests;

	/* A request that ends may end others, so the search begins anew. */
	while (r) {
		if (r->place == place) {
			finish_request(r, -ENODEV, NULL, 0);
			r = sa->requests;
		} else {
			r = r->next;
		}
	}
}

/* --- paths --- */

bool vb_sa_recall(struct vb_sa *sa, unsigned place,
		  const struct vb_sa_path *want, struct vb_sa_path *path,
		  vb_time now)
{
	for (unsigned i = 0; i < MEMORY; i++) {
		const struct known_path *k = &sa->known[i];

		if (k->place != place || k->until <= now ||
		    memcmp(&k->want, want, sizeof(*want)) != 0)
			continue;
		*path = k->path;
		return true;
	}
	return false;
}

void vb_sa_keep(struct vb_sa *sa, unsigned place, const struct vb_sa_path *want,
		const struct vb_sa_path *path, vb_time now)
{
	struct known_path *k = &sa->known[sa->next_known++ % MEMORY];

	*k = (struct known_path){ place, now + FRESH, *want, *path };
}

void vb_sa_forget(struct vb_sa *sa, unsigned place)
{
	for (unsigned i = 0; i < MEMORY; i++)
		if (sa->known[i].place == place)
			sa->known[i].place = 0;
}
