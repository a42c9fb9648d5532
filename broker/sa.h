/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the subnet administrators of places for paths, and keeps what they
 * answer for a moment. Only the broker's one thread calls these functions. @now
 * is the time of vb_clock_read(), in ns.
 */
#ifndef BROKER_SA_H
#define BROKER_SA_H

#include "base/timer.h"
#include "broker/place.h"
#include "wire/sa.h"

struct vb_sa;

/* Create a client of the subnet administrators of @places, which must outlive
 * it. NULL: no memory. */
VB_MUST_CHECK struct vb_sa *vb_sa_create(struct vb_places *places);
/* Frees @sa; no request is under way. */
void vb_sa_destroy(struct vb_sa *sa);

/* A request that waits for its answer: a member of the object that asks, with
 * all fields zero at first. */
struct vb_sa_request {
	struct vb_sa_request *next;
	/* the pointer to this request; NULL: the request is not under way */
	struct vb_sa_request **at;
	struct vb_sa *sa;
	unsigned place;
	uint32_t tid;
	uint16_t attr_id;
	uint8_t answer; /* the method of the answer, an enum vb_sa_method */
	int error; /* the -errno of sending it, which ends it at once; or 0 */
	struct vb_timer timer;
	/* The request has ended. @error: 0, and @mad is the answer, of @len
	 * bytes; -ETIMEDOUT:
	 * there was none; -EINVAL: the administrator refused; else as of
	 * vb_place_ask(). May free @r. */
	void (*done)(struct vb_sa_request *r, int error, const uint8_t *mad,
		     size_t len);
};

/* Sends @mad, a request for the record @h->attr_id, in which this function puts
 * the transaction ID. Afterwards it calls r->done once, not before it has
 * returned, unless vb_sa_cancel() is called. Up to @timeout_ms pass, 0 counts
 * as 2000. An error ends in r->done, too. */
void vb_sa_ask(struct vb_sa *sa, struct vb_sa_request *r, unsigned place,
	       const struct vb_sa_hdr *h, uint8_t mad[VB_MAD_BYTES],
	       uint32_t timeout_ms, vb_time now);
void vb_sa_cancel(struct vb_sa_request *r);
/* Sends @mad to the subnet administrator and does not wait for an answer. */
void vb_sa_tell(struct vb_sa *sa, unsigned place, uint8_t mad[VB_MAD_BYTES]);

/* Finds a path that an earlier answer to an equal question @want brought,
 * within the last second. False: there is none. */
VB_MUST_CHECK bool vb_sa_recall(struct vb_sa *sa, unsigned place,
				const struct vb_sa_path *want,
				struct vb_sa_path *path, vb_time now);
/* Keeps @path, the answer to @want. */
void vb_sa_keep(struct vb_sa *sa, unsigned place, const struct vb_sa_path *want,
		const struct vb_sa_path *path, vb_time now);
/* Forgets the stored paths of @place: call this when its port or its subnet
 * manager has changed. */
void vb_sa_forget(struct vb_sa *sa, unsigned place);
/* Ends all requests at @place with -ENODEV, because the place has ended. */
void vb_sa_end(struct vb_sa *sa, unsigned place);

/* Handles an answer of the subnet administrator, or the report that none came:
 * this is the work of the function sa() in struct vb_place_ops. */
void vb_sa_hear(struct vb_sa *sa, unsigned place, bool silent,
		const uint8_t *bytes, size_t len);
/* Returns the time at which to call vb_sa_tick(); VB_NEVER: no request is under
 * way. */
vb_time vb_sa_deadline(const struct vb_sa *sa);
void vb_sa_tick(struct vb_sa *sa, vb_time now);

#endif
