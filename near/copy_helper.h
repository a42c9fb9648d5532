/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second hand for large copies, as an adapter's engine would be: a thread
 * that copies one part while who posts copies the other, as long as it has a
 * processor to itself. It is called when large copies follow each other
 * closely, looks for more for a moment, and then sleeps. Where anybody else
 * wants its processor it leaves, and stays away for longer each time.
 */
#ifndef NEAR_COPY_HELPER_H
#define NEAR_COPY_HELPER_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"
#include "near/permit.h"

struct vb_copy_helper;

/* Between a list of our memory and one stretch of another program's. */
struct vb_copy {
	pid_t pid;
	bool put; /* from ours to theirs */
	const struct iovec *near;
	unsigned count;
	uint64_t far, len;
	struct vb_permit permit;
};

/* NULL: no memory. The thread is started when it is first called. */
struct vb_copy_helper *vb_copy_helper_create(void);
void vb_copy_helper_destroy(struct vb_copy_helper *h);

/*
 * Copy with its help; the last bytes go last, for who spins on them. False: it
 * does not help now, or not all could be copied; then nothing is under way any
 * more, and copying alone will tell.
 */
bool vb_copy_helper_copy(struct vb_copy_helper *h, const struct vb_copy *c);

/* How many parts it has copied. */
uint64_t vb_copy_helper_parts(const struct vb_copy_helper *h);

#endif
