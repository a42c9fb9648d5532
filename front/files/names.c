/* SPDX-License-Identifier: BSD-2-Clause */
/* The file calls that return a path: readlink(), realpath(), getcwd(). The
 * program gets the path that it knows, in /sys or /dev, and not the path in the
 * tree. */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES "/dev/infiniband/"

/* Remove the tree's root from the beginning of @path. */
static void hide_tree(char *path)
{
	static const char *const below[] = { "/sys/", "/dev/" };

	for (unsigned i = 0; i < 2; i++) {
		const char *inside = vb_files_inside(path, below[i]);

		if (!inside)
			continue;
		inside -= strlen(below[i]);
		memmove(path, inside, strlen(inside) + 1);
		return;
	}
}

/* Calls that return the target of a link. */

/* Define a function like readlink(). In the tree a device node is a link, which
 * the program must not see: it gets EINVAL, as for every file that is not a
 * link. */
#define READS_LINK(name, parameters, at, ...)                                  \
	ssize_t name parameters;                                               \
	EXPORTED ssize_t name parameters                                       \
	{                                                                      \
		path = REDIRECT(path);                                         \
		if (vb_files_node(at, path) &&                                 \
		    faccessat(at, path, F_OK, 0) == 0)                         \
			return errno = EINVAL, -1;                             \
		return NEXT(name)(__VA_ARGS__);                                \
	}

// clang-format off
READS_LINK(readlink, (const char *path, char *out, size_t size), AT_FDCWD,
	   path, out, size)
READS_LINK(readlinkat, (int at, const char *path, char *out, size_t size), at,
	   at, path, out, size)
READS_LINK(__readlink_chk, (const char *path, char *out, size_t size,
			    size_t room), AT_FDCWD, path, out, size, room)
READS_LINK(__readlinkat_chk, (int at, const char *path, char *out, size_t size,
			      size_t room), at, at, path, out, size, room)
// clang-format on

/* Calls that return a path without links. */

/* realpath() with @path redirected. Returns @out, or, if that is NULL, memory
 * that the caller frees. */
static char *resolve(const char *path, char *out)
{
	const char *node = vb_files_node(AT_FDCWD, path);
	char name[sizeof(NODES) + NAME_MAX];
	char *found;

	found = NEXT(realpath)(path, out);
	if (!found)
		return NULL;
	if (!node) {
		hide_tree(found);
		return found;
	}
	snprintf(name, sizeof(name), NODES "%s", node);
	if (out)
		/* the program's buffer has PATH_MAX bytes: realpath(3) */
		return strcpy(out, name);
	free(found);
	return strdup(name);
}

EXPORTED char *realpath(const char *path, char *out)
{
	path = REDIRECT(path);
	return resolve(path, out);
}

EXPORTED char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

char *__realpath_chk(const char *path, char *out, size_t room);
EXPORTED char *__realpath_chk(const char *path, char *out, size_t room)
{
	if (room < PATH_MAX)
		/* the buffer is too small: the C library ends the program */
		return NEXT(__realpath_chk)(path, out, room);
	return realpath(path, out);
}

/*
 * Calls that return the working directory, which chdir() may have redirected.
 */

EXPORTED char *getcwd(char *out, size_t size)
{
	char *found = NEXT(getcwd)(out, size);

	if (found)
		hide_tree(found);
	return found;
}

char *__getcwd_chk(char *out, size_t size, size_t room);
EXPORTED char *__getcwd_chk(char *out, size_t size, size_t room)
{
	char *found = NEXT(__getcwd_chk)(out, size, room);

	if (found)
		hide_tree(found);
	return found;
}
