/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between this program's memory and another's, straight: announced, checked,
 * copied by the kernel, the last bytes last.
 */
#ifndef NEAR_REACH_H
#define NEAR_REACH_H

#include "core/mr.h"
#include "near/peer.h"

enum vb_reach {
	REACH_OK,
	REACH_LOCAL,  /* our key or our page */
	REACH_REMOTE, /* theirs */
	REACH_GONE,   /* there is nobody any more */
	REACH_LAPSED, /* the queue pair there has changed meanwhile */
	REACH_DENIED, /* we may not: one of us has become another user */
	REACH_UNSEEN, /* their page, which is not there, or is memory that only
		       * its owner's processor touches: a device's */
};

/* Our side: a list of the program's memory from @offset on, or bytes of our
 * own. */
struct vb_near_side {
	struct vb_pd *pd;
	const struct vb_sge *sge;
	unsigned count;
	uint64_t offset;
	void *plain; /* instead of the list, unless NULL */
	bool helped; /* another copies a part already: no second hand */
};

/* Copy @len bytes: @put: from our side to theirs. A part may have been copied
 * when it fails. */
enum vb_reach vb_reach(struct vb_peer *p, const struct vb_near_side *near,
		       const struct vb_far_side *far, uint64_t len, bool put);

#endif
