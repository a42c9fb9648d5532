/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the tree. A program makes it from a text (engine/sysfs_text.h) and
 * keeps a copy of the text in it: a program that finds an equal text there
 * changes nothing. Otherwise a new tree replaces the old one as a whole, so
 * that no reader sees half of one.
 */
#include "engine/sysfs_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "engine/runtime_dir.h"
#include "engine/sysfs_text.h"

#define CONTENTS ".contents"
#define TREE	 "tree"

/* Seconds after which a program touches the tree again. */
#define TOUCH_AFTER  3600
#define UNSEEN_LASTS 86400
/* The longest time in which a program begins to remove trees. */
#define SWEEP_TIME (50 * VB_MSEC)

/* Make a tree's name from the network namespace and a hash of
 * VERBENA_DEVICES. */
static void name_tree(uint64_t space, char name[64])
{
	const char *specs = getenv("VERBENA_DEVICES");
	uint64_t hash = 0xcbf29ce484222325; /* the hash function FNV-1a */

	for (const char *c = specs ? specs : ""; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	snprintf(name, 64, specs ? "%llu.%016llx" : "%llu",
		 (unsigned long long)space, (unsigned long long)hash);
}

static void remove_entry(int at, const char *name, unsigned depth)
{
	struct dirent *e;
	DIR *d;

	if (unlinkat(at, name, 0) == 0 || depth == 0)
		return;
	d = vb_runtime_dir_list(at, name);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_entry(dirfd(d), e->d_name, depth - 1);
	if (d)
		closedir(d);
	unlinkat(at, name, AT_REMOVEDIR);
}

#define DEEPEST 16
static void remove_tree(int at, const char *name)
{
	remove_entry(at, name, DEEPEST);
}

/* Make a directory that other users can read, whatever the program's umask is:
 * a program that gives up root rights must find the files that it found
 * before. */
static int make_directory(int at, const char *path)
{
	if (mkdirat(at, path, 0755) == 0)
		return fchmodat(at, path, 0755, 0) < 0 ? -errno : 0;
	return errno == EEXIST ? 0 : -errno;
}

static int make_parents(int at, char *path)
{
	for (char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = make_directory(at, path);
		*slash = '/';
		if (rc)
			return rc;
	}
	return 0;
}

static int write_file(int at, const char *path, const char *text, size_t length)
{
	int fd = openat(at, path,
			O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			0644);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (vb_file_write(fd, text, length, -1) != (ssize_t)length)
		rc = -EIO;
	else if (fchmod(fd, 0644) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Make the entry for one line. A file's contents follow the tab, with their
 * newline, as in the kernel's files; a newline alone makes an empty file. */
static int make_entry(int at, const char *line, size_t length)
{
	char path[512], *tab, *link;
	size_t rest;
	int rc;

	if (length > sizeof(path))
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "%.*s", (int)length - 1, line);
	tab = strchr(path, '\t');
	link = strstr(path, SYSFS_TEXT_LINK);
	if (tab)
		*tab = '\0';
	else if (link)
		*link = '\0';
	rc = make_parents(at, path);
	if (rc)
		return rc;
	if (tab) {
		rest = length - (size_t)(tab + 1 - path);
		return write_file(at, path, line + length - rest,
				  rest == 1 ? 0 : rest);
	}
	if (link && symlinkat(link + strlen(SYSFS_TEXT_LINK), at, path) < 0)
		return -errno;
	return 0;
}

static int fill_tree(int tree, const char *text)
{
	int rc = 0;

	for (const char *line = text; !rc && *line;) {
		size_t length = (size_t)(strchr(line, '\n') + 1 - line);

		rc = make_entry(tree, line, length);
		line += length;
	}
	return rc ? rc : write_file(tree, CONTENTS, text, strlen(text));
}

static bool is_current(int space, const char *text)
{
	int fd = openat(space, TREE "/" CONTENTS, O_RDONLY | O_CLOEXEC);
	size_t size = strlen(text);
	char *have = malloc(size + 1);
	bool same = fd >= 0 && have &&
		    read(fd, have, size + 1) == (ssize_t)size &&
		    memcmp(have, text, size) == 0;

	free(have);
	if (fd >= 0)
		close(fd);
	return same;
}

/* Replace the tree. The caller holds the lock of the namespace's directory. */
static int replace_tree(int space, const char *text)
{
	int tree, rc;

	/* a program that was killed may have left this directory */
	remove_tree(space, "new");
	remove_tree(space, "old");
	rc = make_directory(space, "new");
	if (rc)
		return rc;
	tree = vb_runtime_dir_enter(space, "new");
	if (tree < 0)
		return tree;
	rc = fill_tree(tree, text);
	close(tree);
	if (rc)
		return rc;
	if (renameat2(space, "new", space, TREE, RENAME_EXCHANGE) == 0) {
		remove_tree(space, "new");
		return 0;
	}
	/* There is no old tree, or the file system cannot exchange names. */
	(void)renameat(space, TREE, space, "old");
	rc = renameat(space, "new", space, TREE) < 0 ? -errno : 0;
	remove_tree(space, "old");
	return rc;
}

static bool is_used(int proc, const char *tree)
{
	uint64_t space = strtoull(tree, NULL, 10);
	DIR *d = vb_runtime_dir_list(proc, ".");
	bool used = !d; /* without a list of processes, all trees are kept */
	struct dirent *e;

	while (!used && (e = readdir(d)))
		used = isdigit((unsigned char)e->d_name[0]) &&
		       vb_runtime_dir_namespace(proc, e->d_name) == space;
	if (d)
		closedir(d);
	return used;
}

/* Is this process in the first namespace of @type, to which Linux gives this
 * number? */
static bool is_in_first(int proc, const char *type, unsigned long number)
{
	char path[32], link[64], first[64];
	ssize_t n;

	snprintf(path, sizeof(path), "self/ns/%s", type);
	n = readlinkat(proc, path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	snprintf(first, sizeof(first), "%s:[%lu]", type, number);
	return strcmp(link, first) == 0;
}

/* Does this process see all processes of its user, and so all users of a tree?
 * A PID namespace hides other processes. A user namespace hides the network
 * namespaces of processes in a sibling of it, which may belong to the same
 * user. */
static bool sees_all_processes(int proc)
{
	return is_in_first(proc, "pid", 4026531836) &&
	       is_in_first(proc, "user", 4026531837);
}

/* Has no program touched the tree for @age? Each program that lists devices
 * touches it. */
static bool is_old(int base, const char *name, time_t age)
{
	struct stat s;

	return fstatat(base, name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - s.st_mtime > age;
}

/*
 * Remove the trees of network namespaces without a process of this user. If
 * some processes cannot be seen, remove only trees that no program has touched
 * in a day. Trees that remain after SWEEP_TIME are left to later programs,
 * because this program waits, and a tree of a slow disk takes long.
 */
static void sweep(int base, int proc)
{
	time_t age = sees_all_processes(proc) ? -1 : UNSEEN_LASTS;
	vb_time until = vb_clock_read() + SWEEP_TIME;
	DIR *d = vb_runtime_dir_list(base, ".");
	struct dirent *e;

	if (!d)
		return;
	while (vb_clock_read() < until && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    (age < 0 || is_old(base, e->d_name, age)) &&
		    !is_used(proc, e->d_name))
			remove_tree(base, e->d_name);
	closedir(d);
}

static int update_space(int base, int proc, const char *name, const char *text)
{
	int space, rc;

	if (faccessat(base, name, F_OK, 0) < 0)
		sweep(base, proc);
	rc = make_directory(base, name);
	if (rc)
		return rc;
	space = vb_runtime_dir_enter(base, name);
	if (space < 0)
		return space;
	if (!is_current(space, text)) {
		rc = vb_runtime_dir_lock(space);
		if (rc == 0 && !is_current(space, text))
			rc = replace_tree(space, text);
	} else if (is_old(space, ".", TOUCH_AFTER)) {
		(void)futimens(space, NULL);
	}
	close(space);
	return rc;
}

static int write_below(int proc, const char *text, char root[PATH_MAX])
{
	uint64_t space = vb_runtime_dir_namespace(proc, "self");
	char path[PATH_MAX], name[64], tree[PATH_MAX];
	int base, rc;

	if (!space)
		return -ENOENT;
	base = vb_runtime_dir_open(path);
	if (base < 0)
		return base;
	name_tree(space, name);
	rc = update_space(base, proc, name, text);
	close(base);
	if (rc)
		return rc;
	/* Resolve symbolic links, because front/files compares names with this
	 * path. */
	snprintf(tree, sizeof(tree), "%.200s/%s/" TREE, path, name);
	return realpath(tree, root) ? 0 : -errno;
}

static int write_for_us(const char *text, char root[PATH_MAX])
{
	int proc = vb_runtime_dir_enter(AT_FDCWD, "/proc"), rc;

	if (proc < 0)
		return proc;
	rc = write_below(proc, text, root);
	close(proc);
	return rc;
}

bool vb_sysfs_tree_write(char root[PATH_MAX])
{
	char *text = NULL;
	int rc = vb_sysfs_text(&text);

	if (rc == 0)
		rc = write_for_us(text, root);
	free(text);
	if (rc)
		vb_log(LOG_INFO,
		       "sysfs: cannot write the tree of device files: %s",
		       strerror(-rc));
	errno = -rc;
	return rc == 0;
}
