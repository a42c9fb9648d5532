/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that this program has expelled, and that still live: it opens
 * no session with them again. */
#ifndef NEAR_OUTLAWS_H
#define NEAR_OUTLAWS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"

/* A process, whose number another one may get later. */
struct vb_outlaw {
	pid_t pid;
	uint64_t born; /* vb_birth_of() */
};

/* All zeros: there are none. Only the engine thread uses it. */
struct vb_outlaws {
	struct vb_outlaw *list;
	size_t count, room;
};

/* Remember @who, and forget those that have ended. Without memory the call does
 * nothing. */
void vb_outlaws_add(struct vb_outlaws *all, const struct vb_outlaw *who);
bool vb_outlaws_have(const struct vb_outlaws *all, const struct vb_outlaw *who);
void vb_outlaws_fini(struct vb_outlaws *all);

#endif
