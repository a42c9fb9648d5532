/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses to open files of the tree for writing. The user's programs share the
 * tree, and nothing in it has an effect or would be repaired, so it is
 * read-only, as most attributes of sysfs are. */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is the file that @s describes in the tree of device files? The tree's links
 * to device nodes and to directories of network interfaces lead out of it, to
 * files on another file system. */
static bool is_of_tree(const struct stat *s)
{
	const char *root = getenv("VERBENA_TREE");
	struct stat tree;

	return root && NEXT(stat)(root, &tree) == 0 && tree.st_dev == s->st_dev;
}

bool vb_files_forbids(const char *path, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	bool makes = flags & O_CREAT;
	int before = errno, error = 0;
	struct stat s;

	if (flags & O_PATH || !(writes || makes) || !vb_files_inside(path, "/"))
		return false;
	if (NEXT(stat)(path, &s) < 0)
		error = makes && errno == ENOENT ? EACCES : errno;
	else if (makes && flags & O_EXCL)
		error = EEXIST;
	else if (writes && is_of_tree(&s) &&
		 (S_ISREG(s.st_mode) || (flags & O_TMPFILE) == O_TMPFILE))
		/* the kernel itself refuses to open a directory for writing
		 * (EISDIR) */
		error = EACCES;
	errno = error ? error : before;
	return error;
}

bool vb_files_fopen_forbids(const char *path, const char *mode)
{
	int flags;

	if (!mode)
		return false;
	flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
	if (*mode == 'w' || *mode == 'a')
		flags |= O_CREAT;
	if (*mode == 'w')
		flags |= O_TRUNC;
	if (strchr(mode, 'x'))
		flags |= O_EXCL;
	return vb_files_forbids(path, flags);
}
