/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a child of fork must forget of its parent. Threads that held locks do
 * not exist in the child, so these locks are never released, and what they
 * guard may be half changed. Descriptors and mappings belong to the parent. All
 * such state of the whole process is registered here, and the child drops it.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_forget {
	void (*begin_anew)(void);
	struct vb_forget *next;
};

/* Have each child call @f->begin_anew(), which resets one lock or list. It must
 * take no other lock, and must not rely on the order of these calls. @f must
 * exist for ever. */
void vb_fork_forget(struct vb_forget *f);

/* Registers @function when the program or library is loaded, before any thread
 * can hold the lock. It belongs into the file that has the lock or the list. */
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
 * A descriptor that does not exist, or for which there is no memory, is
 * ignored.
 */
void vb_fork_closes(int fd);

/* The child unmaps @bytes bytes at @at, unless vb_fork_keeps() takes that back,
 * which a caller does before it unmaps them itself. */
void vb_fork_unmaps(void *at, size_t bytes);
void vb_fork_keeps(void *at);

#endif
