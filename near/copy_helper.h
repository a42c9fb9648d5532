/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy helper: a thread that copies one part of a large copy while the
 * posting thread copies the other, as an adapter's DMA engine would. It starts
 * when large copies follow each other closely, polls for the next one for a
 * while, and then sleeps. When another thread wants its processor it pauses,
 * each time for longer.
 */
#ifndef NEAR_COPY_HELPER_H
#define NEAR_COPY_HELPER_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"
#include "near/permit.h"

struct vb_copy_helper;

/* A copy between a list of our memory and one range of another program's. */
struct vb_copy {
	pid_t pid;
	bool put; /* from our memory to the other program's */
	const struct iovec *near;
	unsigned count;
	uint64_t far, len;
	struct vb_permit permit;
};

/* NULL: no memory. The thread starts when it is first needed. */
struct vb_copy_helper *vb_copy_helper_create(void);
void vb_copy_helper_destroy(struct vb_copy_helper *h);

/*
 * Copy with the thread's help; the last 256 bytes are copied last, because
 * programs poll the last byte. False: the thread does not help now, or
 * something could not be copied. Then no copy is under way any more, a part may
 * have been copied, and the caller copies everything alone to learn the error.
 */
bool vb_copy_helper_copy(struct vb_copy_helper *h, const struct vb_copy *c);

#endif
