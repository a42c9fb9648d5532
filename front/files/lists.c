/* SPDX-License-Identifier: BSD-2-Clause */
/* The file calls that list directories: opendir(), readdir(), scandir(),
 * glob().
 */
#include "front/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

EXPORTED DIR *opendir(const char *path)
{
	path = REDIRECT(path);
	return NEXT(opendir)(path);
}

/* Define a function that reads a directory. In the tree a device node is a
 * symbolic link; report it as a device. */
#define READS(name, entry)                                                     \
	EXPORTED struct entry *name(DIR *d)                                    \
	{                                                                      \
		struct entry *e = NEXT(name)(d);                               \
                                                                               \
		if (e && e->d_type == DT_LNK &&                                \
		    vb_files_is_node_in(dirfd(d), e->d_name))                  \
			e->d_type = DT_CHR;                                    \
		return e;                                                      \
	}

READS(readdir, dirent)
READS(readdir64, dirent64)

#define SCANS(name, entry)                                                     \
	EXPORTED int name(                                                     \
		const char *path, struct entry ***list,                        \
		int (*filter)(const struct entry *),                           \
		int (*compare)(const struct entry **, const struct entry **))  \
	{                                                                      \
		int n;                                                         \
                                                                               \
		path = REDIRECT(path);                                         \
		n = NEXT(name)(path, list, filter, compare);                   \
		mark_##entry(path, n < 0 ? NULL : *list, n);                   \
		return n;                                                      \
	}

#define MARKS(entry)                                                           \
	static void mark_##entry(const char *path, struct entry **list, int n) \
	{                                                                      \
		const char *rest = vb_files_inside(path, "/dev/infiniband");   \
                                                                               \
		if (!rest || rest[strspn(rest, "/")])                          \
			return;                                                \
		for (int i = 0; i < n; i++)                                    \
			if (list[i]->d_type == DT_LNK)                         \
				list[i]->d_type = DT_CHR;                      \
	}

MARKS(dirent)
SCANS(scandir, dirent)
MARKS(dirent64)
SCANS(scandir64, dirent64)

/* Can the pattern match a path in the tree? Then the pattern contains one of
 * these words. A wildcard in place of the word cannot match: the directories of
 * the host do not list those of the tree. */
static bool may_be_ours(const char *pattern)
{
	return pattern &&
	       (strstr(pattern, "infiniband") || strstr(pattern, "verbena") ||
		strstr(pattern, "rdma_cm"));
}

/* Define a function like glob(). The C library's glob() calls its own opendir()
 * and stat(), unless the caller passes functions with GLOB_ALTDIRFUNC: pass
 * those of the preload. */
#define GLOBS(name, type, reads, state, lstate)                                \
	static void *opens_for_##name(const char *path)                        \
	{                                                                      \
		return opendir(path);                                          \
	}                                                                      \
	static void closes_for_##name(void *d)                                 \
	{                                                                      \
		closedir(d);                                                   \
	}                                                                      \
	EXPORTED int name(const char *pattern, int flags,                      \
			  int (*fails)(const char *, int), type *g)            \
	{                                                                      \
		if (!(flags & GLOB_ALTDIRFUNC) && may_be_ours(pattern)) {      \
			flags |= GLOB_ALTDIRFUNC;                              \
			g->gl_opendir = opens_for_##name;                      \
			g->gl_closedir = closes_for_##name;                    \
			g->gl_readdir = (__typeof__(g->gl_readdir))reads;      \
			g->gl_stat = state;                                    \
			g->gl_lstat = lstate;                                  \
		}                                                              \
		return NEXT(name)(pattern, flags, fails, g);                   \
	}

GLOBS(glob, glob_t, readdir, stat, lstat)
GLOBS(glob64, glob64_t, readdir64, stat64, lstat64)
