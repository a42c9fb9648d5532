/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy into another program's memory, or out of it, that begins only while
 * its permit holds. A permit is two words of the owner's registry
 * (near/registry.h) that must still be what they were: the versions of a key
 * and of a queue pair.
 *
 * The copying thread may be stopped between its look at the words and the
 * system call, for hours, and the owner may have taken the key away meanwhile.
 * So look and call are one restartable sequence (rseq(2)): a thread that lost
 * its processor in between looks again. What has begun is in the kernel, where
 * the owner can see it (near/hold.h).
 */
#ifndef NEAR_PERMIT_H
#define NEAR_PERMIT_H

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"

struct vb_permit {
	const _Atomic uint32_t *word[2];
	uint32_t is[2];
};

/* Does look and call being one hold for the threads of this process? Not
 * where the C library or the processor has no restartable sequences. */
bool vb_permit_is_exact(void);

/*
 * process_vm_writev(2) (@put) or process_vm_readv(2) between @count pieces of
 * our memory, @near, and @far_count of @pid's, @far. Returns the bytes copied
 * or -errno; -ECANCELED: the permit no longer held, and nothing was copied.
 */
ssize_t vb_permit_copy(const struct vb_permit *permit, pid_t pid, bool put,
		       const struct iovec *near, unsigned count,
		       const struct iovec *far, unsigned far_count);

#endif
