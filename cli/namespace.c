/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run --namespace`: a mount namespace in which our tree of files is
 * at the real paths, for programs that make system calls themselves and so
 * pass by the preload.
 *
 * What is there is a copy, of the moment of the start: the tree is replaced as
 * a whole when the host changes, and a mount would go on showing the old one,
 * empty. A program that becomes another user, and may not enter the tree, can
 * read the copy, too.
 *
 * Directories are missing that nobody can make: sysfs has none of ours, and
 * /dev is the whole host's. So a file system in memory takes the place of the
 * directory above, with everything of the old one mounted in it.
 *
 * Nothing has to be undone: what is mounted goes with the process that fails.
 */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "engine/spawn.h"

#define MOST_TEXT (64 * 1024) /* of one file of the tree */
#define DEEPEST	  16
#define WHOLE	  ".host"
#define SELF	  "verbena run: --namespace: "

/* What is ours of each directory of the host. */
static const struct place {
	const char *above, *ours[3];
	bool may_lack; /* the host need not have that directory */
} places[] = {
	{ "/sys/class",
	  { "infiniband", "infiniband_verbs", "infiniband_mad" } },
	{ "/sys/devices/virtual", { "verbena" } },
	{ "/sys/bus", { "verbena" } },
	{ "/sys/class/misc", { "rdma_cm" }, true },
	{ "/sys/devices/virtual/misc", { "rdma_cm" }, true },
	{ "/dev", { "infiniband" } },
};

/* A call that failed, with errno, told on stderr. */
static bool refuse(const char *call, const char *about)
{
	fprintf(stderr, SELF "%s %s: %s\n", call, about, strerror(errno));
	return false;
}

/*
 * Entering.
 */

static const char *what_to_do(int error)
{
	if (error == ENOSPC || error == EUSERS)
		return "there are as many namespaces as "
		       "/proc/sys/user/max_user_namespaces and "
		       "max_mnt_namespaces allow";
	if (error == ENOSYS || error == EINVAL)
		return "this kernel has no user namespaces: run it as root";
	return "run it as root with CAP_SYS_ADMIN, or allow user namespaces "
	       "(the sysctls kernel.unprivileged_userns_clone=1 and "
	       "kernel.apparmor_restrict_unprivileged_userns=0; a container's "
	       "seccomp profile)";
}

static bool refuse_entry(const char *call)
{
	int error = errno;

	fprintf(stderr, SELF "%s: %s; %s\n", call, strerror(error),
		what_to_do(error));
	return false;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t length = strlen(text);
	bool wrote = fd >= 0 && write(fd, text, length) == (ssize_t)length;

	if (fd >= 0) {
		int error = errno;

		close(fd);
		errno = error;
	}
	return wrote;
}

static bool map_self(const char *path, unsigned id)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1", id, id);
	return write_text(path, text) || refuse_entry(path);
}

/* A new user namespace has all capabilities; the program gets none that it
 * would not have got outside. (exec() takes them from anybody but root.) */
static void keep_bounds(uint64_t bounds)
{
	for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
		if (!(bounds & UINT64_C(1) << c))
			(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
}

static uint64_t capability_bounds(void)
{
	uint64_t bounds = 0;

	for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1)
			bounds |= UINT64_C(1) << c;
	return bounds;
}

/* The numbers stay what they are; groups that the user is in besides count
 * still, but have no number. */
static bool enter_as_user(void)
{
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refuse_entry("unshare(CLONE_NEWUSER | CLONE_NEWNS)");
	/* Older kernels have no such file, and ask for nothing. */
	if (!write_text("/proc/self/setgroups", "deny") && errno != ENOENT)
		return refuse_entry("/proc/self/setgroups");
	return map_self("/proc/self/gid_map", gid) &&
	       map_self("/proc/self/uid_map", uid);
}

static bool enter(bool *as_user)
{
	*as_user = unshare(CLONE_NEWNS) < 0;
	if (*as_user && !enter_as_user())
		return false;
	/* From here on nothing that is mounted is seen outside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return true;
	if (errno != EINVAL)
		return refuse_entry("mount(\"/\", MS_SLAVE)");
	fprintf(stderr, SELF "/ is not a mount point (a chroot?), so mounts "
			     "cannot be kept from others; bind-mount it on "
			     "itself before chroot\n");
	return false;
}

/*
 * Copying the tree.
 */

static int enter_directory(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool write_copy(int to, const char *name, const char *text, size_t size)
{
	int fd =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	bool wrote =
		fd >= 0 && vb_file_write(fd, text, size, -1) == (ssize_t)size;

	if (fd >= 0)
		close(fd);
	return wrote || refuse("write", name);
}

static bool copy_file(int from, int to, const char *name)
{
	int fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = malloc(MOST_TEXT);
	ssize_t n = fd >= 0 && text ? read(fd, text, MOST_TEXT) : -1;
	bool copied = n >= 0 ? write_copy(to, name, text, (size_t)n)
			     : refuse("read", name);

	free(text);
	if (fd >= 0)
		close(fd);
	return copied;
}

/* The node of a device: /dev/null under another name. */
static bool make_node(int to, const char *name)
{
	int fd =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return refuse("create", name);
	close(fd);
	if (fchdir(to) < 0 || mount("/dev/null", name, NULL, MS_BIND, NULL) < 0)
		return refuse("mount(\"/dev/null\", MS_BIND) on", name);
	return true;
}

static bool copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return refuse("readlink", name);
	target[n] = '\0';
	if (strcmp(target, "/dev/null") == 0)
		return make_node(to, name);
	return symlinkat(target, to, name) == 0 || refuse("symlink", name);
}

static bool copy_entries(int from, int to, unsigned depth);

static bool copy_directory(int from, int to, const char *name, unsigned depth)
{
	int old = -1, new = -1;
	bool copied;

	if (depth == DEEPEST) {
		errno = ELOOP;
		return refuse("copy", name);
	}
	if (mkdirat(to, name, 0755) == 0 || errno == EEXIST) {
		old = enter_directory(from, name);
		new = enter_directory(to, name);
	}
	copied = old >= 0 && new >= 0 ? copy_entries(old, new, depth + 1)
				      : refuse("copy", name);
	if (old >= 0)
		close(old);
	if (new >= 0)
		close(new);
	return copied;
}

static bool copy_entry(int from, int to, const char *name, unsigned depth)
{
	struct stat s;

	if (fstatat(from, name, &s, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse("stat", name);
	if (S_ISDIR(s.st_mode))
		return copy_directory(from, to, name, depth);
	if (S_ISLNK(s.st_mode))
		return copy_link(from, to, name);
	return copy_file(from, to, name);
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool copy_entries(int from, int to, unsigned depth)
{
	int fd = dup(from);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool copied = true;

	if (!d)
		return refuse("opendir", "the tree");
	while (copied && (e = readdir(d)))
		if (!is_dot(e->d_name))
			copied = copy_entry(from, to, e->d_name, depth);
	closedir(d);
	return copied;
}

/*
 * Taking the host's directories' place.
 */

static bool cover(const char *path, unsigned mode)
{
	char options[32];

	snprintf(options, sizeof(options), "mode=%o", mode & 07777);
	return mount("verbena", path, "tmpfs", MS_NOSUID, options) == 0 ||
	       refuse("mount(tmpfs) on", path);
}

static bool is_ours(const struct place *p, const char *name)
{
	for (unsigned i = 0; i < VB_COUNT(p->ours) && p->ours[i]; i++)
		if (strcmp(p->ours[i], name) == 0)
			return true;
	return false;
}

/* One directory that is covered: what it was, also with all that is mounted
 * in it, and what it is now. */
struct shadow {
	const struct place *place;
	int old, whole, new;
};

static bool keep_link(const struct shadow *s, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(s->old, name, target, sizeof(target) - 1);

	if (n < 0)
		return refuse("readlink", name);
	target[n] = '\0';
	return symlinkat(target, s->new, name) == 0 || refuse("symlink", name);
}

static bool make_mount_point(int new, const char *name, const struct stat *s)
{
	int fd;

	if (S_ISDIR(s->st_mode))
		return mkdirat(new, name, s->st_mode & 07777) == 0;
	fd = openat(new, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Opened, it looks for pts beside itself, by the mount that it is on: not by
 * one of its own. So the covered directory is there once more as a whole. */
static bool keep_multiplexer(const struct shadow *s, const char *name)
{
	char target[PATH_MAX];

	if (mkdirat(s->new, WHOLE, 0755) < 0)
		return refuse("create", WHOLE);
	if (syscall(SYS_move_mount, s->whole, "", s->new, WHOLE,
		    MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return refuse("move_mount to", WHOLE);
	snprintf(target, sizeof(target), "%s/%s", WHOLE, name);
	return symlinkat(target, s->new, name) == 0 || refuse("symlink", name);
}

static bool is_multiplexer(const struct stat *s)
{
	return S_ISCHR(s->st_mode) && s->st_rdev == makedev(5, 2);
}

/* @name of the covered directory, which is the working directory, comes back
 * into the one that covers it. */
static bool keep_entry(const struct shadow *s, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (fstatat(s->old, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true; /* it has just gone */
	if (S_ISLNK(st.st_mode))
		return keep_link(s, name);
	if (is_multiplexer(&st))
		return keep_multiplexer(s, name);
	snprintf(path, sizeof(path), "%s/%s", s->place->above, name);
	if (!make_mount_point(s->new, name, &st))
		return refuse("create", path);
	return mount(name, path, NULL, MS_BIND | MS_REC, NULL) == 0 ||
	       refuse("mount(MS_BIND | MS_REC) on", path);
}

static bool keep_entries(const struct shadow *s)
{
	int fd = dup(s->old);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool kept = d && fchdir(s->old) == 0;

	if (!kept)
		(void)refuse("opendir", s->place->above);
	while (kept && (e = readdir(d)))
		if (!is_dot(e->d_name) && !is_ours(s->place, e->d_name))
			kept = keep_entry(s, e->d_name);
	if (d)
		closedir(d);
	return kept;
}

static bool fill_shadow(struct shadow *s)
{
	const char *above = s->place->above;
	struct stat st;
	bool filled;

	if (s->old < 0 || fstat(s->old, &st) < 0)
		return refuse("open", above);
	s->whole = (int)syscall(SYS_open_tree, AT_FDCWD, above,
				OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					AT_RECURSIVE);
	if (s->whole < 0)
		return refuse("open_tree", above);
	if (!cover(above, st.st_mode))
		return false;
	s->new = enter_directory(AT_FDCWD, above);
	filled = s->new >= 0 ? keep_entries(s) : refuse("open", above);
	if (s->new >= 0)
		close(s->new);
	return filled;
}

/* The host's directory, covered by one of the same entries that we may add
 * to. */
static bool shadow(const struct place *p)
{
	struct shadow s = { p, enter_directory(AT_FDCWD, p->above), -1, -1 };
	bool filled = fill_shadow(&s);

	if (s.whole >= 0)
		close(s.whole);
	if (s.old >= 0)
		close(s.old);
	return filled;
}

/* All there, as where the kernel has RDMA devices: each is covered. */
static bool have_all(const struct place *p)
{
	char path[PATH_MAX];
	struct stat s;

	for (unsigned i = 0; i < VB_COUNT(p->ours) && p->ours[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", p->above, p->ours[i]);
		if (lstat(path, &s) < 0 || !S_ISDIR(s.st_mode))
			return false;
	}
	return true;
}

static bool cover_all(const struct place *p)
{
	char path[PATH_MAX];
	bool covered = true;

	for (unsigned i = 0; i < VB_COUNT(p->ours) && p->ours[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", p->above, p->ours[i]);
		covered = covered && cover(path, 0755);
	}
	return covered;
}

static bool fill(int tree, const struct place *p)
{
	int from = enter_directory(tree, p->above + 1),
	    to = enter_directory(AT_FDCWD, p->above);
	bool filled = to >= 0 || refuse("open", p->above);

	for (unsigned i = 0; i < VB_COUNT(p->ours) && p->ours[i]; i++)
		if (filled && from >= 0 &&
		    faccessat(from, p->ours[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			filled = copy_entry(from, to, p->ours[i], 0);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return filled;
}

static bool show_place(int tree, const struct place *p)
{
	if (p->may_lack && access(p->above, F_OK) < 0)
		return true;
	return (have_all(p) ? cover_all(p) : shadow(p)) && fill(tree, p);
}

static bool show(int tree)
{
	bool shown = true;

	for (unsigned i = 0; shown && i < VB_COUNT(places); i++)
		shown = show_place(tree, &places[i]);
	return shown;
}

/*
 * All of it.
 */

/* A process that replaces the tree holds a lock on the directory above it. */
static int lock_tree(const char *root)
{
	char above[PATH_MAX], *slash;
	int fd;

	snprintf(above, sizeof(above), "%s", root);
	slash = strrchr(above, '/');
	if (slash)
		*slash = '\0';
	fd = enter_directory(AT_FDCWD, above);
	while (fd >= 0 && flock(fd, LOCK_SH) < 0 && errno == EINTR)
		;
	return fd;
}

static bool show_tree(const char *root)
{
	int lock = lock_tree(root), tree = enter_directory(AT_FDCWD, root);
	bool shown = tree >= 0 ? show(tree) : refuse("open", root);

	if (tree >= 0)
		close(tree);
	if (lock >= 0)
		close(lock);
	return shown;
}

/* Where we were: by its name if that may be covered now, else the directory
 * itself, which may have no name, or one that we may not walk. */
static bool go_back(int here, const char *name)
{
	bool covered =
		strncmp(name, "/sys/", 5) == 0 || strncmp(name, "/dev", 4) == 0;

	if (covered && chdir(name) == 0)
		return true;
	return here < 0 || fchdir(here) == 0 || refuse("fchdir", name);
}

/* A broker that the program started would be in the namespace, and everybody
 * else a stranger to it: there is one already when it needs it. */
static void have_broker(void)
{
	int rc = vb_spawn_broker();

	if (rc)
		vb_log(LOG_INFO, "run: no broker before the namespace: %s",
		       strerror(-rc));
}

bool vb_cli_enter_namespace(const char *root, bool *as_user)
{
	uint64_t bounds = capability_bounds();
	char name[PATH_MAX] = "";
	mode_t mask;
	bool shown;
	int here;

	have_broker();
	if (!enter(as_user))
		return false;
	here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!getcwd(name, sizeof(name)))
		name[0] = '\0';
	mask = umask(0);
	shown = show_tree(root);
	umask(mask);
	shown = shown && go_back(here, name);
	if (here >= 0)
		close(here);
	if (*as_user)
		keep_bounds(bounds);
	return shown;
}
