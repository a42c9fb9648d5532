/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded by `verbena run`: calls of the C library that name a file in
 * /sys/class/infiniband* or below get the one in our tree (engine/mirror.h),
 * whose place is in VERBENA_SYSFS. All other names pass untouched. It stays
 * over exec, for it is in the environment; it allocates nothing, takes no lock
 * and starts no thread, since it is in every program that is run, whatever that
 * is.
 */
/* Both kinds of names are wanted, each as itself. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

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
                                                                               \
		va_start(ap, flags);                                           \
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)       \
			mode = va_arg(ap, mode_t);                             \
		va_end(ap);                                                    \
		path = lead(path, to);                                         \
		return NEXT(name)(__VA_ARGS__, flags, mode);                   \
	}

// clang-format off
OPENS(open, (const char *path, int flags, ...), path)
OPENS(open64, (const char *path, int flags, ...), path)
OPENS(openat, (int at, const char *path, int flags, ...), at, path)
OPENS(openat64, (int at, const char *path, int flags, ...), at, path)

LED(FILE *, fopen, (const char *path, const char *mode), path, path, mode)
LED(FILE *, fopen64, (const char *path, const char *mode), path, path, mode)
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

/* What programs call that were compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);
int __openat64_2(int at, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room);
LED(int, __open_2, (const char *path, int flags), path, path, flags)
LED(int, __open64_2, (const char *path, int flags), path, path, flags)
LED(int, __openat_2, (int at, const char *path, int flags),
    path, at, path, flags)
LED(int, __openat64_2, (int at, const char *path, int flags),
    path, at, path, flags)
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
