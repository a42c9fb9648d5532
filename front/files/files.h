/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the calls of the preload share. It allocates nothing, takes no lock and
 * starts no thread, since it is in every program that is run, whatever that is.
 */
#ifndef FRONT_FILES_H
#define FRONT_FILES_H

/* Both kinds of names are wanted, each as itself. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

/* The next function of that name; each is looked up once. Two threads that do
 * so at a time find the same. */
#define NEXT(name)                                                             \
	({                                                                     \
		static __typeof__(&name) next;                                 \
		if (!__atomic_load_n(&next, __ATOMIC_RELAXED))                 \
			__atomic_store_n(                                      \
				&next,                                         \
				(__typeof__(&name))dlsym(RTLD_NEXT, #name),    \
				__ATOMIC_RELAXED);                             \
		next;                                                          \
	})

/* The name to use for @path: itself, or one in the tree, or, when @path only
 * passes by the tree, the one it comes to; written to @to. NULL for NULL. */
const char *vb_files_lead(const char *path, char to[PATH_MAX]);

/* What follows VERBENA_TREE and @below in @path; NULL: it is elsewhere. */
const char *vb_files_inside(const char *path, const char *below);

/* @path, led already, as seen from the directory @at: the name of a node in
 * /dev/infiniband, or NULL. Its last component says so, and is returned. */
const char *vb_files_node(int at, const char *path);

/* The same of a name @name in the directory @fd. */
bool vb_files_is_node_in(int fd, const char *name);

/* The number that sysfs states of a node. False: none. */
bool vb_files_number(const char *node, unsigned *major, unsigned *minor);

/* A descriptor that reads as the counter's file @path, led already, would; -1:
 * it is no counter, or is to be written, and is the C library's. */
int vb_files_open_counter(const char *path, int flags);
FILE *vb_files_fopen_counter(const char *path, const char *mode);

#endif
