/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file calls that `verbena run` preloads. A path that names a file of an
 * RDMA device in /sys or /dev/infiniband is redirected to Verbena's tree of
 * such files (engine/sysfs_tree.h), whose root is in VERBENA_TREE. Other paths
 * pass unchanged. The preload is set in the environment, so it persists over
 * exec.
 *
 * This file has the calls that take a path and return nothing about the file
 * that the program could compare with the path it asked for.
 */
#include "front/files/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Define the function @name, which redirects its argument @path. */
#define REDIRECTED(type, name, parameters, path, ...)                          \
	EXPORTED type name parameters                                          \
	{                                                                      \
		path = REDIRECT(path);                                         \
		return NEXT(name)(__VA_ARGS__);                                \
	}

/* Remove O_NOFOLLOW from the flags for a device node. In the tree a device node
 * is a link to /dev/null, but the program takes it for a node, so O_NOFOLLOW
 * must not make its open() fail. */
static int see_through(int at, const char *path, int flags)
{
	return flags & O_NOFOLLOW && vb_files_node(at, path)
		       ? flags & ~O_NOFOLLOW
		       : flags;
}

/* Define a function like open(), which has a mode only when it creates a
 * file. */
#define OPENS(name, parameters, at, ...)                                       \
	EXPORTED int name parameters                                           \
	{                                                                      \
		const char *asked = path;                                      \
		mode_t mode = 0;                                               \
		va_list ap;                                                    \
		int fd;                                                        \
                                                                               \
		va_start(ap, flags);                                           \
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)       \
			mode = va_arg(ap, mode_t);                             \
		va_end(ap);                                                    \
		path = REDIRECT(path);                                         \
		if (path != asked && vb_files_forbids(path, flags))            \
			return -1;                                             \
		fd = vb_files_open_counter(path, flags);                       \
		if (fd >= 0)                                                   \
			return fd;                                             \
		flags = see_through(at, path, flags);                          \
		return NEXT(name)(__VA_ARGS__, flags, mode);                   \
	}

/* Define a function as OPENS does, for the calls of programs that were compiled
 * with _FORTIFY_SOURCE. */
#define OPENS_2(name, parameters, at, ...)                                     \
	int name parameters;                                                   \
	EXPORTED int name parameters                                           \
	{                                                                      \
		const char *asked = path;                                      \
		int fd;                                                        \
                                                                               \
		path = REDIRECT(path);                                         \
		if (path != asked && vb_files_forbids(path, flags))            \
			return -1;                                             \
		fd = vb_files_open_counter(path, flags);                       \
		if (fd >= 0)                                                   \
			return fd;                                             \
		flags = see_through(at, path, flags);                          \
		return NEXT(name)(__VA_ARGS__);                                \
	}

#define FOPENS(name)                                                           \
	EXPORTED FILE *name(const char *path, const char *mode)                \
	{                                                                      \
		const char *asked = path;                                      \
		FILE *f;                                                       \
                                                                               \
		path = REDIRECT(path);                                         \
		if (path != asked && vb_files_fopen_forbids(path, mode))       \
			return NULL;                                           \
		f = vb_files_fopen_counter(path, mode);                        \
		return f ? f : NEXT(name)(path, mode);                         \
	}

// clang-format off
OPENS(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPENS(openat, (int at, const char *path, int flags, ...), at, at, path)
OPENS(openat64, (int at, const char *path, int flags, ...), at, at, path)
OPENS_2(__open_2, (const char *path, int flags), AT_FDCWD, path, flags)
OPENS_2(__open64_2, (const char *path, int flags), AT_FDCWD, path, flags)
OPENS_2(__openat_2, (int at, const char *path, int flags), at, at, path, flags)
OPENS_2(__openat64_2, (int at, const char *path, int flags), at, at, path,
	flags)

FOPENS(fopen)
FOPENS(fopen64)

REDIRECTED(int, chdir, (const char *path), path, path)
REDIRECTED(int, access, (const char *path, int mode), path, path, mode)
int eaccess(const char *path, int mode);
int euidaccess(const char *path, int mode);
REDIRECTED(int, eaccess, (const char *path, int mode), path, path, mode)
REDIRECTED(int, euidaccess, (const char *path, int mode), path, path, mode)
REDIRECTED(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), path,
    fd, path, mask)

/* ls(1) calls getxattr() and its like for each name that it lists. */
REDIRECTED(ssize_t, getxattr, (const char *path, const char *name, void *out,
			size_t size), path, path, name, out, size)
REDIRECTED(ssize_t, lgetxattr, (const char *path, const char *name, void *out,
			 size_t size), path, path, name, out, size)
REDIRECTED(ssize_t, listxattr, (const char *path, char *out, size_t size), path, path,
    out, size)
REDIRECTED(ssize_t, llistxattr, (const char *path, char *out, size_t size), path,
    path, out, size)
// clang-format on

EXPORTED int faccessat(int at, const char *path, int mode, int flags)
{
	path = REDIRECT(path);
	if (vb_files_node(at, path))
		flags &= ~AT_SYMLINK_NOFOLLOW;
	return NEXT(faccessat)(at, path, mode, flags);
}
