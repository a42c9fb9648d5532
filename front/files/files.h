/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the calls of the preload. The preload is loaded into every program
 * that is run, and its calls may come from signal handlers. So, except for
 * counters.c and realpath(), it allocates nothing, takes no lock and starts no
 * thread.
 */
#ifndef FRONT_FILES_H
#define FRONT_FILES_H

/* The preload defines open() and open64() and so on as separate functions, so
 * the headers must not rename or replace any of them. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

/* The C library's function (or that of another preload) that the preload's
 * function hides. This library's constructor looks all of them up before
 * main(), since the first call may come from a signal handler on a small stack.
 * A constructor that runs earlier looks up its own with NEXT(); if two threads
 * do so at a time, both find equal addresses. */
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

/* Does @path name a file that the tree has, or pass through a directory of the
 * tree (by "..")? False for NULL. */
bool vb_files_is_ours(const char *path);

/* Redirect @path, for which vb_files_is_ours() is true. Returns @to with the
 * path in the tree, or, if @path leaves the tree by "..", with the path that it
 * ends at; returns @path itself if there is no tree or the new path is too
 * long. */
const char *vb_files_redirect(const char *path, char to[PATH_MAX]);

/* The path to use for any @path. A redirected path is on the stack of the
 * calling function. That space is used only when it is needed, since a signal
 * handler on a small stack may open other files. */
#define REDIRECT(path)                                                         \
	(vb_files_is_ours(path)                                                \
		 ? vb_files_redirect(path, (char *)__builtin_alloca(PATH_MAX)) \
		 : (path))

/* Would opening @path, which was redirected, with @flags write to the tree? No
 * program has the right to write there; errno is then that of sysfs. */
bool vb_files_forbids(const char *path, int flags);
bool vb_files_fopen_forbids(const char *path, const char *mode);

/* Returns the part of @path behind the tree's root and @below; NULL: @path is
 * not there. */
const char *vb_files_inside(const char *path, const char *below);

/* Returns the last component of @path, which is redirected already and relative
 * to the directory @at, if it names a device node in /dev/infiniband; otherwise
 * NULL. Keeps errno. */
const char *vb_files_node(int at, const char *path);

/* Is @name a device node in the directory @fd? Only if that is
 * /dev/infiniband. */
bool vb_files_is_node_in(int fd, const char *name);

/* Read a node's device number from the tree's sysfs. False: the node has
 * none. */
bool vb_files_number(const char *node, unsigned *major, unsigned *minor);

/* If @path, redirected already, is the file of a counter or of a port in a
 * fabric, and is opened for reading, return a descriptor with the present
 * value, which the caller owns. Returns -1, or NULL for
 * vb_files_fopen_counter(), if
 * @path is no such file; then open the file itself. */
int vb_files_open_counter(const char *path, int flags);
FILE *vb_files_fopen_counter(const char *path, const char *mode);

/* If @path names a file of /sys/class/net/IF that an IPoIB interface of Linux
 * has and Verbena's TUN lacks, write the file's contents to @text. Returns the
 * length of @text; 0: @path is no such file. */
size_t vb_files_say_ipoib(const char *path, char *text, size_t room);
/* Find the link-layer address (RFC 4391, 9.1.1) of the interface @name. False:
 * it is no IPoIB interface of this user. May wait for 1 s for a process that
 * is stopped. */
bool vb_files_ipoib_address(const char name[IFNAMSIZ], uint8_t address[20]);

#endif
