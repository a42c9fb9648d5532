/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the C library's calls report about the files of an RDMA device under
 * `verbena run`: files_test UVERBS DEVICE, such as "uverbs1 roce_lo". Prints
 * "ok NAME" or "not ok NAME" for each call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"
#define NODES "/dev/infiniband"

static const char *verb, *device;
/* path of the node, /dev/infiniband/uverbs and its number */
static char node[128];
static bool failed;

__attribute__((format(printf, 2, 3))) static const char *
put(char to[PATH_MAX], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(to, PATH_MAX, format, ap);
	va_end(ap);
	return to;
}

static bool same(const char *got, const char *want)
{
	bool is = got && strcmp(got, want) == 0;

	if (!is)
		printf("    | %s, not %s\n", got ? got : strerror(errno), want);
	return is;
}

/* Returns the device number in the file "dev" of the device's sysfs
 * directory. */
static dev_t stated(void)
{
	unsigned major = 0, minor = 0;
	char path[PATH_MAX];
	FILE *f = fopen(put(path, "/sys/class/infiniband_verbs/%s/dev", verb),
			"r");

	if (!f || fscanf(f, "%u:%u", &major, &minor) != 2)
		major = 0;
	if (f)
		fclose(f);
	return makedev(major, minor);
}

static bool is_node(const struct stat *s)
{
	return s->st_mode == (S_IFCHR | 0666) && s->st_rdev == stated() &&
	       major(s->st_rdev) == 231 && s->st_size == 0;
}

static bool tells_of_the_node(void)
{
	struct stat by_name = { 0 }, of_link = { 0 }, from = { 0 };
	struct statx x = { 0 };

	return stat(node, &by_name) == 0 && lstat(node, &of_link) == 0 &&
	       fstatat(AT_FDCWD, node, &from, AT_SYMLINK_NOFOLLOW) == 0 &&
	       statx(AT_FDCWD, node, AT_SYMLINK_NOFOLLOW, STATX_ALL, &x) == 0 &&
	       is_node(&by_name) && is_node(&of_link) && is_node(&from) &&
	       x.stx_mode == (S_IFCHR | 0666) &&
	       makedev(x.stx_rdev_major, x.stx_rdev_minor) == stated();
}

#ifdef __x86_64__
int __xstat(int version, const char *path, struct stat *s);
int __lxstat(int version, const char *path, struct stat *s);
#pragma weak __xstat
#pragma weak __lxstat
#endif

static bool tells_old_programs(void)
{
#ifdef __x86_64__
	struct stat s = { 0 }, l = { 0 };

	return __xstat(1, node, &s) == 0 && __lxstat(1, node, &l) == 0 &&
	       is_node(&s) && is_node(&l);
#else
	return true;
#endif
}

static bool tells_from_a_directory(void)
{
	int fd = open(NODES, O_RDONLY | O_DIRECTORY), opened;
	struct stat s = { 0 }, l = { 0 };
	char link[64];
	bool told;

	if (fd < 0)
		return false;
	opened = openat(fd, verb, O_RDWR | O_NOFOLLOW);
	told = opened >= 0 && fstatat(fd, verb, &s, 0) == 0 &&
	       fstatat(fd, verb, &l, AT_SYMLINK_NOFOLLOW) == 0 && is_node(&s) &&
	       is_node(&l) && readlinkat(fd, verb, link, sizeof(link)) == -1 &&
	       errno == EINVAL && faccessat(fd, verb, R_OK | W_OK, 0) == 0;
	close(opened);
	close(fd);
	return told;
}

static bool tells_from_the_working_directory(void)
{
	struct stat s = { 0 };
	char cwd[PATH_MAX], real[PATH_MAX];
	bool told = chdir(NODES) == 0 && lstat(verb, &s) == 0 && is_node(&s) &&
		    same(getcwd(cwd, sizeof(cwd)), NODES) &&
		    same(realpath(verb, real), node) && chdir("/") == 0;

	return told && lstat(verb, &s) == -1;
}

static bool may_be_used(void)
{
	return access(node, R_OK | W_OK) == 0 &&
	       eaccess(node, R_OK | W_OK) == 0 &&
	       euidaccess(node, R_OK | W_OK) == 0 &&
	       faccessat(AT_FDCWD, node, R_OK | W_OK, AT_EACCESS) == 0 &&
	       access(node, X_OK) == -1 && errno == EACCES;
}

static bool opens(void)
{
	int fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	char bytes[16];
	int number;
	bool worked = fd >= 0 && write(fd, "command", 7) == 7 &&
		      read(fd, bytes, sizeof(bytes)) == 0 &&
		      poll(&p, 1, 0) == 1 && p.revents == POLLOUT &&
		      ioctl(fd, FIONREAD, &number) == -1 && errno == ENOTTY;

	close(fd);
	return worked;
}

static bool is_no_link(void)
{
	char link[64], real[PATH_MAX], *made = canonicalize_file_name(node);
	bool is = readlink(node, link, sizeof(link)) == -1 && errno == EINVAL &&
		  same(realpath(node, real), node) && same(made, node);

	free(made);
	return is;
}

static bool has_entry(const char *directory, const char *name, int type)
{
	DIR *d = opendir(directory);
	struct dirent *e;
	bool has = false;

	while (d && (e = readdir(d)))
		has |= strcmp(e->d_name, name) == 0 && e->d_type == type;
	if (d)
		closedir(d);
	return has;
}

static bool is_listed(void)
{
	struct dirent **list = NULL;
	int n = scandir(NODES, &list, NULL, alphasort);
	unsigned found = 0;

	for (int i = 0; i < n; i++) {
		found += strcmp(list[i]->d_name, verb) == 0 &&
			 list[i]->d_type == DT_CHR;
		free(list[i]);
	}
	free(list);
	return found == 1 && has_entry(NODES, verb, DT_CHR) &&
	       has_entry(NODES, "rdma_cm", DT_CHR) &&
	       has_entry(CLASS, device, DT_LNK);
}

static bool is_globbed(void)
{
	glob_t g = { 0 };
	bool found = glob(NODES "/uverbs*", 0, NULL, &g) == 0 && g.gl_pathc;
	bool ours = false;

	for (size_t i = 0; found && i < g.gl_pathc; i++)
		ours |= strcmp(g.gl_pathv[i], node) == 0;
	globfree(&g);
	found = glob(CLASS "/*/ports/1/state", 0, NULL, &g) == 0 && g.gl_pathc;
	globfree(&g);
	return ours && found;
}

static bool leads_to(const char *tail, const char *want)
{
	char path[PATH_MAX], real[PATH_MAX];

	return same(realpath(put(path, CLASS "/%s/%s", device, tail), real),
		    want);
}

/* realpath() of a path in the device's files returns a path below /sys, and
 * that path can be opened again. */
static bool has_real_names(void)
{
	static const char driver[] = "../../../../bus/verbena/drivers/verbena";
	char parent[PATH_MAX], path[PATH_MAX], link[PATH_MAX];
	ssize_t n;

	put(parent, "/sys/devices/virtual/verbena/%s", device);
	put(path, CLASS "/%s/device/driver", device);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	if (!same(link, driver) || !leads_to("device", parent) ||
	    !leads_to("device/driver", "/sys/bus/verbena/drivers/verbena") ||
	    !leads_to("device/subsystem", "/sys/bus/verbena") ||
	    !leads_to("subsystem", CLASS) ||
	    access(put(path, "%s/numa_node", parent), R_OK) < 0)
		return false;
	put(path, "%s/infiniband/%s", parent, device);
	if (!leads_to(".", path))
		return false;
	put(link, "%s/ports/1/gids/0", path);
	return access(link, R_OK) == 0;
}

/* All spellings of a path to the device's files lead to these files; paths that
 * only look similar do not. */
static bool reads_names(void)
{
	static const char *const ways[] = {
		"//sys/class/infiniband",
		"/sys//class/./infiniband/",
		"/sys/class/infiniband/.",
		"/sys/../sys/class/infiniband",
		"/sys/class/infiniband/../infiniband",
		"/sys/class/infiniband_verbs/../infiniband//",
		"/sys/class/infiniband_mad/.././infiniband",
		"/dev/infiniband/../../sys/class/infiniband",
	};
	static const char *const others[] = {
		"/sys/class/infiniband_foo", "/sys/class/infinibandx/..",
		"/dev/infinibandx",	     "/sys/bus/verbenas",
		"/dev/infiniband/uverbs",    "/dev/infiniband/uverbs1x",
		"/dev/infiniband/rdma_cm/",  "/dev/infiniband/..x",
	};
	char path[PATH_MAX];
	bool right = true;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (access(put(path, "%s/%s/node_type", ways[i], device),
			   R_OK) < 0)
			right = same(NULL, ways[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (access(others[i], F_OK) == 0)
			right = same("there", others[i]);
	return right;
}

/* A path that enters the directory of the device's files and leaves it by ".."
 * names a file of the host. */
static bool passes_by(void)
{
	struct stat a, b;

	return stat("/sys/class/infiniband/../net", &a) == 0 &&
	       stat("/sys/class/net", &b) == 0 && a.st_ino == b.st_ino &&
	       stat("/dev/infiniband/..", &a) == 0 && stat("/dev", &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev &&
	       stat("/dev/infiniband/../..", &a) == 0 && stat("/", &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev &&
	       stat("/dev/null", &a) == 0 && a.st_rdev == makedev(1, 3);
}

static bool is_watched(void)
{
	int fd = inotify_init1(IN_CLOEXEC);
	bool watched = inotify_add_watch(fd, NODES, IN_CREATE) >= 0;

	close(fd);
	return watched;
}

/* Calls of programs that were compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);

static bool refused(long result, const char *call)
{
	return (result == -1 && errno == EACCES) || same(NULL, call);
}

static bool refuses_descriptors(const char *path)
{
	bool right = refused(open(path, O_WRONLY), "O_WRONLY");

	right &= refused(open(path, O_RDWR | O_CLOEXEC), "O_RDWR");
	right &= refused(open(path, O_RDONLY | O_TRUNC), "O_TRUNC");
	right &= refused(open(path, O_WRONLY | O_CREAT, 0600), "O_CREAT");
	right &= refused(openat(-1, path, O_WRONLY | O_APPEND), "openat");
	right &= refused(__open_2(path, O_WRONLY | O_TRUNC), "__open_2");
	return right & refused(__openat_2(-1, path, O_RDWR), "__openat_2");
}

static bool refuses_streams(const char *path)
{
	static const char *const modes[] = { "w", "a", "r+", "we", "a+b" };
	bool right = true;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		right &= refused(fopen(path, modes[i]) ? 0 : -1, modes[i]);
	return right;
}

/* The tree cannot be written to, because all programs would see the change. */
static bool is_read_only(void)
{
	char path[PATH_MAX], none[PATH_MAX], text[8];
	int fd;
	bool right;

	put(path, CLASS "/%s/node_type", device);
	put(none, NODES "/%sx", verb);
	right = refuses_descriptors(path) && refuses_streams(path) &&
		refused(open(none, O_WRONLY | O_CREAT, 0600), none) &&
		refused(open(NODES, O_RDWR | O_TMPFILE, 0600), "O_TMPFILE") &&
		open(none, O_WRONLY) == -1 && errno == ENOENT &&
		access(none, F_OK) == -1;
	fd = open(path, O_RDONLY | O_CREAT, 0600);
	right &= read(fd, text, sizeof(text)) == 6 &&
		 memcmp(text, "1: CA\n", 6) == 0;
	close(fd);
	fd = open(node, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	right &= fd >= 0;
	close(fd);
	return right;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*is_right)(void);
	} cases[] = {
		{ "stat, lstat, fstatat, statx", tells_of_the_node },
		{ "__xstat, __lxstat", tells_old_programs },
		{ "a node from a directory", tells_from_a_directory },
		{ "a node from the working directory",
		  tells_from_the_working_directory },
		{ "access, eaccess, euidaccess, faccessat", may_be_used },
		{ "open, read, write, poll, ioctl", opens },
		{ "readlink, realpath, canonicalize_file_name", is_no_link },
		{ "readdir, scandir", is_listed },
		{ "glob", is_globbed },
		{ "realpath in sysfs", has_real_names },
		{ "names that are ours, and not", reads_names },
		{ "names that pass by", passes_by },
		{ "inotify_add_watch", is_watched },
		{ "the tree is read-only", is_read_only },
	};

	if (argc != 3)
		return 2;
	verb = argv[1];
	device = argv[2];
	snprintf(node, sizeof(node), NODES "/%s", verb);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool right = cases[i].is_right();

		printf("%s %s\n", right ? "ok" : "not ok", cases[i].name);
		failed |= !right;
	}
	return failed;
}
