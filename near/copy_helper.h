/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy helper: a thread that copies one part of a large copy while the
 * posting thread copies the other, as an adapter's DMA engine would. It starts
 * when large copies follow each other closely, polls for the next one for a
 * while, and then sleeps. When another thread wants the helper's processor, the
 * helper pauses, each time for longer.
 */
#ifndef NEAR_COPY_HELPER_H
#define NEAR_COPY_HELPER_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"
#include "near/permit.h"

struct vb_copy_helper;

/* A copy between pieces of this program's memory (@local) and one range of
 * another program's (@remote). */
struct vb_copy {
	pid_t pid;
	bool put; /* direction: true: from this program to the other one */
	const struct iovec *local;
	unsigned count;
	uint64_t remote, len;
	struct vb_permit permit;
};

/* Create a copy helper, whose thread starts when it is first needed. NULL: no
 * memory. */
struct vb_copy_helper *vb_copy_helper_create(void);
void vb_copy_helper_destroy(struct vb_copy_helper *h);

/*
 * Copy @c together with the helper's thread, its last 256 bytes last, because
 * programs poll the last byte. False: the thread does not help now, or the
 * kernel did not copy all bytes. Then no copy is under way any more, some bytes
 * may already be copied, and the caller copies all of @c without the helper, to
 * find the error.
 */
bool vb_copy_helper_copy(struct vb_copy_helper *h, const struct vb_copy *c);

#endif
