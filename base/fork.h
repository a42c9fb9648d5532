/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a child of fork must forget of its parent. The threads that held locks
 * are not there to give them up, and may have been in the midst of changing
 * what the locks guard; descriptors and mappings are the parent's. Everything
 * of this kind that belongs to the whole process is entered here.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_forget {
	void (*begin_anew)(void);
	struct vb_forget *next;
};

/* The child calls @f->begin_anew, which takes no lock that is not its own, and
 * relies on no other's having been called. @f stays the registry's. */
void vb_fork_forget(struct vb_forget *f);

/* In the file that has the lock or the list: enters @function when the program
 * or the library is loaded, before a thread can hold the lock. */
#define VB_FORGET_AT_FORK(function)                                            \
	static struct vb_forget forget_by_##function = { function, NULL };     \
	static void __attribute__((constructor)) enter_##function(void)        \
	{                                                                      \
		vb_fork_forget(&forget_by_##function);                         \
	}

/*
 * The child closes @fd, if that is still the same file: the program may have
 * closed it, or put another in its place. So nobody takes back what he entered
 * when he closes it himself. For files with an inode of their own: sockets,
 * memfds and directories, and not events, timers and epoll sets. A descriptor
 * that does not exist, or that there is no memory for, is passed over.
 */
void vb_fork_closes(int fd);

/* The child unmaps @bytes at @at, unless they are taken back, which is to be
 * done before they are unmapped. */
void vb_fork_unmaps(void *at, size_t bytes);
void vb_fork_keeps(void *at);

#endif
