/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that a program would write to. The tree is shared by the user's
 * programs, none of which heeds or mends what another writes there, so it is
 * read-only, as sysfs' attributes are. */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A node is a link to a device and an interface's directory one to the host's:
 * what is behind links is on another file system than the tree. */
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
		error = EACCES; /* of other directories the kernel's EISDIR */
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
