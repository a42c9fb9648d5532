/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a child of fork must forget of its parent. Threads that held locks do
 * not exist in the child, so these locks are never released, and what they
 * guard may be half changed. Descriptors and mappings belong to the parent. All
 * files that have such state register it here, and the child drops it.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_forget {
	void (*begin_anew)(void);
	struct vb_forget *next;
};

/* Have each child call @f->begin_anew(), which resets one lock or list.
 * begin_anew() must take no other lock, and must not rely on the order of these
 * calls. @f must exist for ever. */
void vb_fork_forget(struct vb_forget *f);

/* Registers @function when the program or library is loaded, before any thread
 * can hold the lock. Use it in the file that has the lock or the list. */
#define VB_FORGET_AT_FORK(function)                                            \
	static struct vb_forget forget_by_##function = { function, NULL };     \
	static void __attribute__((constructor)) enter_##function(void)        \
	{                                                                      \
		vb_fork_forget(&forget_by_##function);                         \
	}

/*
 * The child closes @fd, if it still is the same file: the program may have
 * closed it or put another file in its place, so a caller that closes @fd
 * itself need not take this back. Only for files with an inode of their own:
 * sockets, memfds and directories, but not event, timer and epoll descriptors.
 * It ignores a descriptor that does not exist, or for which there is no memory.
 */
void vb_fork_closes(int fd);

/* The child unmaps @bytes bytes at @at, unless the caller takes that back by
 * vb_fork_keeps(), as it must before it unmaps them itself. */
void vb_fork_unmaps(void *at, size_t bytes);
void vb_fork_keeps(void *at);

#endif
