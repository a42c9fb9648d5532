/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded by `verbena run`: calls of the C library that name a file in
 * /sys/class/infiniband* or below get the one in our tree (engine/mirror.h),
 * whose place is in VERBENA_SYSFS. All other names pass untouched. It stays
 * over exec, for it is in the environment; it allocates nothing, takes no lock
 * and starts no thread, since it is in every program that is run, whatever that
 * is.
 *
 * The files of hw_counters are empty in the tree. Who opens one by its whole
 * name gets the number of that moment, as text in a file of its own.
 */
/* Both kinds of names are wanted, each as itself. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "engine/tally.h"

#define OURS	 "/sys/class/infiniband"
#define EXPORTED __attribute__((visibility("default")))

/* The name to use for @path; @to is room for another one. */
static const char *lead(const char *path, char to[PATH_MAX])
{
	const char *root;
	int n;

	/* Callers' NULL is the C library's to judge, hence the test. */
	if (!path || strncmp(path, OURS, sizeof(OURS) - 1) != 0)
		return path;
	root = getenv("VERBENA_SYSFS");
	if (!root)
		return path;
	n = snprintf(to, PATH_MAX, "%s%s", root, path + strlen("/sys/class"));
	return n < PATH_MAX ? to : path;
}

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

/*
 * Counters.
 */

/* "DEVICE/ports/1/hw_counters/NAME": the counter, or -1. */
static int counter_of(const char *path, char device[64])
{
	char name[64];
	int end = 0;

	if (!path || strncmp(path, OURS "/", sizeof(OURS)) != 0 ||
	    !getenv("VERBENA_SYSFS"))
		return -1;
	path += sizeof(OURS);
	if (sscanf(path, "%63[^/]/ports/1/hw_counters/%63[^/]%n", device, name,
		   &end) != 2 ||
	    path[end])
		return -1;
	for (int i = 0; i < CNT_COUNT; i++)
		if (strcmp(vb_counter_name((enum vb_counter)i), name) == 0)
			return i;
	return -1;
}

static uint64_t read_counter(int counter, const char *device)
{
	struct vb_tally *rows = NULL;
	unsigned count = 0;
	uint64_t value = 0;

	if (vb_tally_read(&rows, &count))
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(rows[i].device, device) == 0)
			value = rows[i].counts[counter];
	free(rows);
	return value;
}

/* A descriptor that reads as @path would in sysfs; -1: it is no counter, or is
 * to be written, and is the C library's. */
static int open_counter(const char *path, int flags)
{
	char device[64], text[32];
	int counter = counter_of(path, device), n, fd;

	if (counter < 0 || (flags & O_ACCMODE) != O_RDONLY ||
	    flags & O_DIRECTORY)
		return -1;
	n = snprintf(text, sizeof(text), "%" PRIu64 "\n",
		     read_counter(counter, device));
	fd = memfd_create("hw_counters", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && pwrite(fd, text, (size_t)n, 0) == n)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static FILE *fopen_counter(const char *path, const char *mode)
{
	int fd = mode && mode[0] == 'r' && !strchr(mode, '+')
			 ? open_counter(path, strchr(mode, 'e') ? O_CLOEXEC : 0)
			 : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* A function whose argument @path is a name: the same with the name led. */
#define LED(type, name, parameters, path, ...)                                 \
	EXPORTED type name parameters                                          \
	{                                                                      \
		char to[PATH_MAX];                                             \
                                                                               \
		path = lead(path, to);                                         \
		return NEXT(name)(__VA_ARGS__);                                \
	}

/* open() and its like have a mode only when they make a file. */
#define OPENS(name, parameters, ...)                                           \
	EXPORTED int name parameters                                           \
	{                                                                      \
		char to[PATH_MAX];                                             \
		mode_t mode = 0;                                               \
		va_list ap;                                                    \
		int fd = open_counter(path, flags);                            \
                                                                               \
		if (fd >= 0)                                                   \
			return fd;                                             \
		va_start(ap, flags);                                           \
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)       \
			mode = va_arg(ap, mode_t);                             \
		va_end(ap);                                                    \
		path = lead(path, to);                                         \
		return NEXT(name)(__VA_ARGS__, flags, mode);                   \
	}

#define FOPENS(name)                                                           \
	EXPORTED FILE *name(const char *path, const char *mode)                \
	{                                                                      \
		FILE *f = fopen_counter(path, mode);                           \
		char to[PATH_MAX];                                             \
                                                                               \
		return f ? f : NEXT(name)(lead(path, to), mode);               \
	}

/* What programs call that were compiled with _FORTIFY_SOURCE. */
#define OPENS_2(name, parameters, ...)                                         \
	int name parameters;                                                   \
	EXPORTED int name parameters                                           \
	{                                                                      \
		int fd = open_counter(path, flags);                            \
		char to[PATH_MAX];                                             \
                                                                               \
		path = lead(path, to);                                         \
		return fd >= 0 ? fd : NEXT(name)(__VA_ARGS__);                 \
	}

// clang-format off
OPENS(open, (const char *path, int flags, ...), path)
OPENS(open64, (const char *path, int flags, ...), path)
OPENS(openat, (int at, const char *path, int flags, ...), at, path)
OPENS(openat64, (int at, const char *path, int flags, ...), at, path)

FOPENS(fopen)
FOPENS(fopen64)
LED(DIR *, opendir, (const char *path), path, path)
LED(int, scandir, (const char *path, struct dirent ***list,
		   int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **,
				  const struct dirent **)),
    path, path, list, filter, compare)
LED(int, scandir64, (const char *path, struct dirent64 ***list,
		     int (*filter)(const struct dirent64 *),
		     int (*compare)(const struct dirent64 **,
				    const struct dirent64 **)),
    path, path, list, filter, compare)
LED(int, chdir, (const char *path), path, path)
LED(char *, realpath, (const char *path, char *out), path, path, out)
LED(int, access, (const char *path, int mode), path, path, mode)
LED(int, faccessat, (int at, const char *path, int mode, int flags),
    path, at, path, mode, flags)
LED(ssize_t, readlink, (const char *path, char *out, size_t size),
    path, path, out, size)
LED(ssize_t, readlinkat, (int at, const char *path, char *out, size_t size),
    path, at, path, out, size)
LED(int, stat, (const char *path, struct stat *s), path, path, s)
LED(int, stat64, (const char *path, struct stat64 *s), path, path, s)
LED(int, lstat, (const char *path, struct stat *s), path, path, s)
LED(int, lstat64, (const char *path, struct stat64 *s), path, path, s)
LED(int, fstatat, (int at, const char *path, struct stat *s, int flags),
    path, at, path, s, flags)
LED(int, fstatat64, (int at, const char *path, struct stat64 *s, int flags),
    path, at, path, s, flags)
LED(int, statx, (int at, const char *path, int flags, unsigned mask,
		 struct statx *s), path, at, path, flags, mask, s)

/* ls(1) asks */
LED(ssize_t, getxattr, (const char *path, const char *name, void *out,
			size_t size), path, path, name, out, size)
LED(ssize_t, lgetxattr, (const char *path, const char *name, void *out,
			 size_t size), path, path, name, out, size)

OPENS_2(__open_2, (const char *path, int flags), path, flags)
OPENS_2(__open64_2, (const char *path, int flags), path, flags)
OPENS_2(__openat_2, (int at, const char *path, int flags), at, path, flags)
OPENS_2(__openat64_2, (int at, const char *path, int flags), at, path, flags)
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room);
LED(ssize_t, __readlink_chk, (const char *path, char *out, size_t size,
			      size_t room), path, path, out, size, room)
LED(char *, __realpath_chk, (const char *path, char *out, size_t room),
    path, path, out, room)

/* What programs call that were linked before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *s);
int __xstat64(int version, const char *path, struct stat64 *s);
int __lxstat(int version, const char *path, struct stat *s);
int __lxstat64(int version, const char *path, struct stat64 *s);
LED(int, __xstat, (int version, const char *path, struct stat *s),
    path, version, path, s)
LED(int, __xstat64, (int version, const char *path, struct stat64 *s),
    path, version, path, s)
LED(int, __lxstat, (int version, const char *path, struct stat *s),
    path, version, path, s)
LED(int, __lxstat64, (int version, const char *path, struct stat64 *s),
    path, version, path, s)
// clang-format on
