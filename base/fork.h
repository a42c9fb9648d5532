/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers the state that a child of fork must reset or drop. Threads that
 * held locks do not exist in the child, so these locks are never released, and
 * the data they guard may be half changed. Descriptors and mappings belong to
 * the parent. Every file that has such state registers it here.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_forget {
	void (*begin_anew)(void);
	struct vb_forget *next;
};

/* Make each child call @f->begin_anew(), which resets one lock or list.
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
 * Make the child close @fd, if @fd still refers to the present file: the
 * program may have closed @fd or replaced its file, so a caller that closes @fd
 * itself need not cancel this registration. Only for files with an inode of
 * their own: sockets, memfds and directories, but not event, timer and epoll
 * descriptors. The call does nothing if @fd does not exist, or without memory.
 */
void vb_fork_closes(int fd);

/* Make the child unmap @bytes bytes at @at. The caller cancels this by
 * vb_fork_keeps() before it unmaps them itself. */
void vb_fork_unmaps(void *at, size_t bytes);
void vb_fork_keeps(void *at);

#endif
