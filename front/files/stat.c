/* SPDX-License-Identifier: BSD-2-Clause */
/* stat() and its like. In the tree a node of /dev/infiniband is a link to
 * /dev/null (engine/sysfs_text.c). Programs are told that it is a character
 * device, readable and writable by all, with the number that sysfs states. */
#include "front/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MODE (S_IFCHR | 0666)

/* If @path is a device node, change @s so that it describes a character device.
 * @s is a struct stat or a struct stat64. */
#define DISGUISE(at, path, s)                                                  \
	do {                                                                   \
		const char *node = vb_files_node(at, path);                    \
		unsigned major, minor;                                         \
                                                                               \
		if (!node || !vb_files_number(node, &major, &minor))           \
			break;                                                 \
		(s)->st_mode = MODE;                                           \
		(s)->st_rdev = makedev(major, minor);                          \
		(s)->st_nlink = 1;                                             \
		(s)->st_size = 0;                                              \
		(s)->st_blocks = 0;                                            \
	} while (0)

/* Define a function that describes the file @path, relative to @at, in @s. */
#define STATS(name, parameters, at, ...)                                       \
	int name parameters;                                                   \
	EXPORTED int name parameters                                           \
	{                                                                      \
		int rc;                                                        \
                                                                               \
		path = REDIRECT(path);                                         \
		rc = NEXT(name)(__VA_ARGS__);                                  \
		if (rc == 0)                                                   \
			DISGUISE(at, path, s);                                 \
		return rc;                                                     \
	}

// clang-format off
STATS(stat, (const char *path, struct stat *s), AT_FDCWD, path, s)
STATS(stat64, (const char *path, struct stat64 *s), AT_FDCWD, path, s)
STATS(lstat, (const char *path, struct stat *s), AT_FDCWD, path, s)
STATS(lstat64, (const char *path, struct stat64 *s), AT_FDCWD, path, s)
STATS(fstatat, (int at, const char *path, struct stat *s, int flags),
      at, at, path, s, flags)
STATS(fstatat64, (int at, const char *path, struct stat64 *s, int flags),
      at, at, path, s, flags)

/* Programs that were linked with a glibc before 2.33 call these functions. */
STATS(__xstat, (int version, const char *path, struct stat *s),
      AT_FDCWD, version, path, s)
STATS(__xstat64, (int version, const char *path, struct stat64 *s),
      AT_FDCWD, version, path, s)
STATS(__lxstat, (int version, const char *path, struct stat *s),
      AT_FDCWD, version, path, s)
STATS(__lxstat64, (int version, const char *path, struct stat64 *s),
      AT_FDCWD, version, path, s)
STATS(__fxstatat, (int version, int at, const char *path, struct stat *s,
		   int flags), at, version, at, path, s, flags)
STATS(__fxstatat64, (int version, int at, const char *path, struct stat64 *s,
		     int flags), at, version, at, path, s, flags)
// clang-format on

EXPORTED int statx(int at, const char *path, int flags, unsigned mask,
		   struct statx *s)
{
	unsigned major, minor;
	const char *node;
	int rc;

	path = REDIRECT(path);
	rc = NEXT(statx)(at, path, flags, mask, s);
	if (rc)
		return rc;
	node = vb_files_node(at, path);
	if (node && vb_files_number(node, &major, &minor)) {
		s->stx_mode = MODE;
		s->stx_rdev_major = major;
		s->stx_rdev_minor = minor;
		s->stx_nlink = 1;
		s->stx_size = 0;
		s->stx_blocks = 0;
	}
	return 0;
}
