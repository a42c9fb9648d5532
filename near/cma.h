/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between this program's memory and another's, straight: announced, checked,
 * copied by the kernel, the last bytes last.
 */
#ifndef NEAR_CMA_H
#define NEAR_CMA_H

#include "core/mr.h"
#include "near/peer.h"

enum vb_cma {
	CMA_OK,
	CMA_LOCAL,  /* our key or our page */
	CMA_REMOTE, /* theirs */
	CMA_GONE,   /* there is nobody any more */
	CMA_LAPSED, /* the queue pair there has changed meanwhile */
	CMA_DENIED, /* we may not: one of us has become another user */
	CMA_UNSEEN, /* their page, which is not there, or is memory that only
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
enum vb_cma vb_cma(struct vb_peer *p, const struct vb_near_side *near,
		   const struct vb_far_side *far, uint64_t len, bool put);

#endif
