/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy to or from another program's memory that begins only while its permit
 * holds. A permit names three words of the owner's registry (near/registry.h),
 * and the values that they must still have: the sequence numbers of a key and
 * of a queue pair, and the word that says that the owner still runs. The third
 * word is needed because the process number of an owner that has ended can
 * belong to another process.
 *
 * The copying thread may be stopped for hours between its check of the words
 * and the system call, and the owner may revoke the key meanwhile. Therefore
 * check and call are one restartable sequence (rseq(2)): a thread that lost its
 * processor in between checks again. A copy that has begun is inside the
 * kernel, where the owner can see it (near/grace.h).
 */
#ifndef NEAR_PERMIT_H
#define NEAR_PERMIT_H

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"

struct vb_permit {
	const _Atomic uint32_t *word[3];
	uint32_t is[3];
};

/* Are check and call one restartable sequence in this thread? False with a C
 * library older than glibc 2.35 and on processors other than x86-64: then a
 * thread that was stopped can begin a copy after its permit has lapsed. */
bool vb_permit_is_exact(void);

/*
 * Call process_vm_writev(2) (@put) or process_vm_readv(2) between @count pieces
 * of this program's memory, @local, and @remote_count pieces of the memory of
 * process @pid, @remote. Returns the bytes copied, which may be fewer than
 * asked for, or -errno. -ECANCELED: the permit had lapsed, and nothing was
 * copied.
 */
ssize_t vb_permit_copy(const struct vb_permit *permit, pid_t pid, bool put,
		       const struct iovec *local, unsigned count,
		       const struct iovec *remote, unsigned remote_count);

#endif
