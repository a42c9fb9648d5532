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

/* The next function of a name. They are all looked up before the program runs,
 * as its first call may be in a signal handler, on a small stack; NEXT() looks
 * up only for constructors before ours. Two threads at it find the same. */
struct vb_next {
	const char *name;
	void *function;
} __attribute__((aligned(16)));

#define NEXT(name)                                                             \
	({                                                                     \
		static struct vb_next next                                     \
			__attribute__((section("vb_next"))) = { #name, NULL }; \
		void *known =                                                  \
			__atomic_load_n(&next.function, __ATOMIC_RELAXED);     \
		(__typeof__(&name))(known ? known : vb_files_look_up(&next));  \
	})

void *vb_files_look_up(struct vb_next *next);

/* @path is in the tree or passes by it. False for NULL. */
bool vb_files_is_ours(const char *path);

/* The name to use for @path, which is ours: one in the tree, or, when it only
 * passes by the tree, the one it comes to, written to @to; or @path itself,
 * where there is no tree or the name is too long. */
const char *vb_files_lead(const char *path, char to[PATH_MAX]);

/* The name to use for any @path. What it is written to is the stack of the
 * function that asks, and is taken for names of ours only: other names may
 * come from a signal handler on a small stack. */
#define LEAD(path)                                                             \
	(vb_files_is_ours(path)                                                \
		 ? vb_files_lead(path, (char *)__builtin_alloca(PATH_MAX))     \
		 : (path))

/* To open @path, which was led, with @flags would write to the tree, which is
 * no program's to change; errno is what sysfs would say. */
bool vb_files_forbids(const char *path, int flags);
bool vb_files_fopen_forbids(const char *path, const char *mode);

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
