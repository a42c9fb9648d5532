/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run --namespace`: a mount namespace in which Verbena's tree of
 * device files is at the real paths. It is for programs that make system calls
 * without the C library, which the preload (front/files) does not see.
 *
 * The files are a copy of the tree at the moment of the start. A bind mount of
 * the tree would not do: when the host's devices change, the library replaces
 * the whole tree, and the mount would go on showing the old one, which is
 * emptied. And a program that becomes another user can read the copy, but
 * perhaps not enter the tree.
 *
 * This command cannot make directories for the copy, since sysfs allows no
 * mkdir and /dev belongs to the whole host. So it mounts a tmpfs over the
 * directory above, and mounts each of the old directory's entries into that.
 *
 * After a failure nothing has to be undone: the mounts end with the process.
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

/* the most levels of nested directories that are copied */
#define DEEPEST 16
#define WHOLE	".host"
#define SELF	"verbena run: --namespace: "

/* The host's directories, and the entries of the tree that are put into each.
 */
static const struct place {
	const char *above, *ours[3];
	/* the row is skipped when the host has no such directory */
	bool may_lack;
} places[] = {
	{ "/sys/class",
	  { "infiniband", "infiniband_verbs", "infiniband_mad" } },
	{ "/sys/devices/virtual", { "verbena" } },
	{ "/sys/bus", { "verbena" } },
	{ "/sys/class/misc", { "rdma_cm" }, true },
	{ "/sys/devices/virtual/misc", { "rdma_cm" }, true },
	{ "/dev", { "infiniband" } },
};

/* Report on stderr that @call on @about has failed with errno. Returns false.
 */
static bool namespace_refuse(const char *call, const char *about)
{
	fprintf(stderr,
		SELF "cannot put the devices' files in place: %s %s: %s\n",
		call, about, strerror(errno));
	return false;
}

/* Functions that enter the namespaces. */

/* Returns what the user can do when the kernel refuses the namespace with
 * @error. */
static const char *what_to_do(int error)
{
	if (error == ENOSPC || error == EUSERS)
		return "a limit on namespaces is reached: raise "
		       "/proc/sys/user/max_user_namespaces or "
		       "/proc/sys/user/max_mnt_namespaces";
	if (error == ENOSYS || error == EINVAL)
		return "this kernel has no user namespaces: run it as root";
	return "run it as root with CAP_SYS_ADMIN, or allow user namespaces: "
	       "set the sysctls kernel.unprivileged_userns_clone=1 and "
	       "kernel.apparmor_restrict_unprivileged_userns=0, and let a "
	       "container's seccomp profile permit unshare and mount";
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

/* In a new user namespace the process has all capabilities. Drop those from the
 * bounding set that were not in it before, so that the program gets no
 * capability that it would not have outside. (Those that remain are lost at
 * exec(), except for root.) */
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

/* Enter a user namespace that maps the user and the group to themselves. The
 * supplementary groups keep their effect, but appear as nogroup. */
static bool enter_as_user(void)
{
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refuse_entry("unshare(CLONE_NEWUSER | CLONE_NEWNS)");
	/* Linux before 3.19 has no such file and does not need it. */
	if (!write_text("/proc/self/setgroups", "deny") && errno != ENOENT)
		return refuse_entry("/proc/self/setgroups");
	return map_self("/proc/self/gid_map", gid) &&
	       map_self("/proc/self/uid_map", uid);
}

static bool namespace_enter(bool *as_user)
{
	*as_user = unshare(CLONE_NEWNS) < 0;
	if (*as_user && !enter_as_user())
		return false;
	/* From now on, mounts of this process do not reach other processes'
	 * namespaces. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return true;
	if (errno != EINVAL)
		return refuse_entry("mount(\"/\", MS_SLAVE)");
	fprintf(stderr, SELF "the root directory is not a mount point "
			     "(probably a chroot), so other programs would see "
			     "the mounts; bind-mount the directory on itself "
			     "before chroot\n");
	return false;
}

/* Functions that copy the tree of /sys and /dev files. */

static int enter_directory(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Copy the bytes of the file @in that are not read yet to the file @out. False
 * and errno: not all of them were copied. */
static bool copy_contents(int in, int out)
{
	char bytes[8192];
	ssize_t n;

	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (vb_file_write(out, bytes, (size_t)n, -1) != n)
			return false;
	return n == 0;
}

static bool copy_file(int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out =
		in < 0 ? -1
		       : openat(to, name,
				O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	bool copied = out >= 0 && copy_contents(in, out);

	if (!copied)
		namespace_refuse("copy", name);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return copied;
}

/* Make the device file @name, onto which /dev/null is mounted. */
static bool make_node(int to, const char *name)
{
	int fd =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return namespace_refuse("create", name);
	close(fd);
	if (fchdir(to) < 0 || mount("/dev/null", name, NULL, MS_BIND, NULL) < 0)
		return namespace_refuse("mount(\"/dev/null\", MS_BIND) on",
					name);
	return true;
}

static bool copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return namespace_refuse("readlink", name);
	target[n] = '\0';
	if (strcmp(target, "/dev/null") == 0)
		return make_node(to, name);
	return symlinkat(target, to, name) == 0 ||
	       namespace_refuse("symlink", name);
}

static bool copy_entries(int from, int to, unsigned depth);

static bool copy_directory(int from, int to, const char *name, unsigned depth)
{
	int old = -1, new = -1;
	bool copied;

	if (depth == DEEPEST) {
		errno = ELOOP;
		return namespace_refuse("copy", name);
	}
	if (mkdirat(to, name, 0755) == 0 || errno == EEXIST) {
		old = enter_directory(from, name);
		new = enter_directory(to, name);
	}
	copied = old >= 0 && new >= 0 ? copy_entries(old, new, depth + 1)
				      : namespace_refuse("copy", name);
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
		return namespace_refuse("stat", name);
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
		return namespace_refuse("opendir", "the tree");
	while (copied && (e = readdir(d)))
		if (!is_dot(e->d_name))
			copied = copy_entry(from, to, e->d_name, depth);
	closedir(d);
	return copied;
}

/* Functions that cover the host's directories. */

static bool cover(const char *path, unsigned mode)
{
	char options[32];

	snprintf(options, sizeof(options), "mode=%o", mode & 07777);
	return mount("verbena", path, "tmpfs", MS_NOSUID, options) == 0 ||
	       namespace_refuse("mount(tmpfs) on", path);
}

static bool namespace_is_ours(const struct place *p, const char *name)
{
	for (unsigned i = 0; i < VB_COUNT(p->ours) && p->ours[i]; i++)
		if (strcmp(p->ours[i], name) == 0)
			return true;
	return false;
}

/* A directory that is covered. The descriptors: the old directory, a copy of it
 * with everything that is mounted in it, and the tmpfs that covers it. */
struct shadow {
	const struct place *place;
	int old, whole, new;
};

static bool keep_link(const struct shadow *s, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(s->old, name, target, sizeof(target) - 1);

	if (n < 0)
		return namespace_refuse("readlink", name);
	target[n] = '\0';
	return symlinkat(target, s->new, name) == 0 ||
	       namespace_refuse("symlink", name);
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

/* /dev/ptmx, the terminal multiplexer. When a program opens it, the kernel
 * looks for the directory pts beside it, in the mount that it is on, so a mount
 * of ptmx alone would not work. So mount the whole old directory as .host, and
 * make ptmx a link into that. */
static bool keep_multiplexer(const struct shadow *s, const char *name)
{
	char target[PATH_MAX];

	if (mkdirat(s->new, WHOLE, 0755) < 0)
		return namespace_refuse("create", WHOLE);
	if (syscall(SYS_move_mount, s->whole, "", s->new, WHOLE,
		    MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return namespace_refuse("move_mount to", WHOLE);
	snprintf(target, sizeof(target), "%s/%s", WHOLE, name);
	return symlinkat(target, s->new, name) == 0 ||
	       namespace_refuse("symlink", name);
}

static bool is_multiplexer(const struct stat *s)
{
	return S_ISCHR(s->st_mode) && s->st_rdev == makedev(5, 2);
}

/* Mount the entry @name of the old directory, which is the working directory,
 * into the new one. */
static bool keep_entry(const struct shadow *s, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (fstatat(s->old, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		/* the entry was removed after readdir() had returned it */
		return true;
	if (S_ISLNK(st.st_mode))
		return keep_link(s, name);
	if (is_multiplexer(&st))
		return keep_multiplexer(s, name);
	snprintf(path, sizeof(path), "%s/%s", s->place->above, name);
	if (!make_mount_point(s->new, name, &st))
		return namespace_refuse("create", path);
	return mount(name, path, NULL, MS_BIND | MS_REC, NULL) == 0 ||
	       namespace_refuse("mount(MS_BIND | MS_REC) on", path);
}

static bool keep_entries(const struct shadow *s)
{
	int fd = dup(s->old);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool kept = d && fchdir(s->old) == 0;

	if (!kept)
		(void)namespace_refuse("opendir", s->place->above);
	while (kept && (e = readdir(d)))
		if (!is_dot(e->d_name) &&
		    !namespace_is_ours(s->place, e->d_name))
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
		return namespace_refuse("open", above);
	s->whole = (int)syscall(SYS_open_tree, AT_FDCWD, above,
				OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					AT_RECURSIVE);
	if (s->whole < 0)
		return namespace_refuse("open_tree", above);
	if (!cover(above, st.st_mode))
		return false;
	s->new = enter_directory(AT_FDCWD, above);
	filled =
		s->new >= 0 ? keep_entries(s) : namespace_refuse("open", above);
	if (s->new >= 0)
		close(s->new);
	return filled;
}

/* Cover the host's directory by a tmpfs with the same entries, to which entries
 * can be added. */
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

/* Does the host have each directory of @p->ours (because its kernel has RDMA
 * devices)? Then this command mounts over these directories, and not over
 * @p->above. */
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
	bool filled = to >= 0 || namespace_refuse("open", p->above);

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

/* The steps of --namespace, in order. */

/* Keep other processes from replacing the tree. A process that replaces the
 * tree locks the directory above it, so this function locks that directory.
 * Returns the descriptor that holds the lock, or -1. */
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
	bool shown = tree >= 0 ? show(tree) : namespace_refuse("open", root);

	if (tree >= 0)
		close(tree);
	if (lock >= 0)
		close(lock);
	return shown;
}

/* Return to the former working directory. If it may be covered now, enter it by
 * its path, so that the program sees the new files. Otherwise use its
 * descriptor, since its path may be unknown or not accessible. */
static bool go_back(int here, const char *name)
{
	bool covered =
		strncmp(name, "/sys/", 5) == 0 || strncmp(name, "/dev", 4) == 0;

	if (covered && chdir(name) == 0)
		return true;
	return here < 0 || fchdir(here) == 0 ||
	       namespace_refuse("fchdir", name);
}

/* Start the broker before the namespace is entered. A broker that the program
 * started in a user namespace would see all other users as one user, nobody. */
static void have_broker(void)
{
	int rc = vb_spawn_broker();

	if (rc)
		vb_log(LOG_INFO,
		       "run: cannot start the broker outside the namespace: %s",
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
	if (!namespace_enter(as_user))
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
