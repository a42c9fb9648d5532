/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which paths are redirected to the tree, and to where. A path is
 * followed as text, component by component, as long as it is above the tree's
 * directories or names one of them. */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"

#define NODES "/dev/infiniband"

/* The tops: directories of the host that are replaced by directories of the
 * tree. */
static const struct top {
	const char *name;
	/* true: redirect only if the host lacks this directory, because
	 * programs read there what the host's own drivers show */
	bool if_missing;
} tops[] = {
	{ "/sys/class/infiniband", false },
	{ "/sys/class/infiniband_verbs", false },
	{ "/sys/class/infiniband_mad", false },
	{ "/sys/class/misc/rdma_cm", false },
	{ "/sys/class/scsi_host", true },
	{ "/sys/bus/verbena", false },
	{ "/sys/devices/virtual/verbena", false },
	{ "/sys/devices/virtual/misc/rdma_cm", false },
	{ NODES, false },
};

/* The position of a path relative to the replaced directories (tops): not
 * related to any of them, above one of them, or at one. */
enum { ELSEWHERE, ABOVE, TOP };

/* A path without ".", ".." and double slashes. The buffer has room for the path
 * of every replaced directory (tops[]). */
struct name {
	size_t length;
	char text[64];
};

static bool is_replaced(const struct top *t)
{
	int saved = errno;
	bool replaced = !t->if_missing || NEXT(access)(t->name, F_OK) != 0;

	errno = saved;
	return replaced;
}

static int place_of(const struct name *n)
{
	int place = ELSEWHERE;

	for (unsigned i = 0; i < VB_COUNT(tops); i++) {
		const char *name = tops[i].name;

		if (strncmp(name, n->text, n->length) != 0)
			continue;
		if (!name[n->length])
			return is_replaced(&tops[i]) ? TOP : ELSEWHERE;
		if (name[n->length] == '/')
			place = ABOVE;
	}
	return place;
}

/* Advance *path past slashes and components "." to the next component. Returns
 * its length; 0: there is none. */
static size_t next_component(const char **path)
{
	size_t length;

	do {
		*path += strspn(*path, "/");
		length = strcspn(*path, "/");
		if (length != 1 || **path != '.')
			return length;
		*path += 1;
	} while (true);
}

static bool redirect_is_up(const char *component, size_t length)
{
	return length == 2 && memcmp(component, "..", 2) == 0;
}

static void drop_last(struct name *n)
{
	while (n->length && n->text[--n->length] != '/')
		;
	n->text[n->length] = '\0';
}

static bool append(struct name *n, const char *component, size_t length)
{
	if (n->length + 1 + length >= sizeof(n->text))
		return false;
	n->text[n->length++] = '/';
	memcpy(n->text + n->length, component, length);
	n->length += length;
	n->text[n->length] = '\0';
	return true;
}

/*
 * Follow @path while it is above a replaced directory (a top) or at one. The
 * directories above the tops are not symbolic links, and neither are the tops
 * (except rdma_cm in class/misc), so ".." there can be resolved as text.
 * Everywhere else only the kernel can resolve it.
 *
 * Returns the position of @path then. @rest: the part that was not followed,
 * from the beginning of a component, or the end. @turned: @path has left a top
 * by "..".
 */
static int follow(const char *path, struct name *n, const char **rest,
		  bool *turned)
{
	int place = ABOVE;
	size_t length;

	*turned = false;
	while ((length = next_component(&path))) {
		if (place == ELSEWHERE)
			break;
		if (redirect_is_up(path, length)) {
			drop_last(n);
			*turned |= place == TOP;
		} else if (place == TOP || !append(n, path, length)) {
			break;
		}
		path += length;
		place = n->length ? place_of(n) : ABOVE;
	}
	*rest = path;
	return place;
}

/* Append the components of @rest to @to, which has @used bytes. A slash at the
 * end is kept, because it demands a directory. False: the path is too long. */
static bool copy_rest(char to[PATH_MAX], size_t used, const char *rest,
		      bool slash)
{
	size_t length;

	while ((length = next_component(&rest))) {
		if (used + 1 + length >= PATH_MAX)
			return false;
		to[used++] = '/';
		memcpy(to + used, rest, length);
		used += length;
		rest += length;
	}
	if ((slash || !used) && used + 1 < PATH_MAX)
		to[used++] = '/';
	to[used] = '\0';
	return used < PATH_MAX - 1;
}

static bool ends_in_slash(const char *path)
{
	size_t n = strlen(path);

	return path[n - 1] == '/' || (n > 1 && strcmp(path + n - 2, "/.") == 0);
}

bool vb_files_is_ours(const char *path)
{
	struct name n = { 0 };
	const char *rest;
	bool turned;

	/* If the program passes NULL, the C library gets it and sets EFAULT. */
	return path && path[0] == '/' &&
	       (follow(path, &n, &rest, &turned) == TOP || turned);
}

const char *vb_files_redirect(const char *path, char to[PATH_MAX])
{
	struct name n = { 0 };
	const char *rest, *root;
	bool turned;
	int place, used;

	place = follow(path, &n, &rest, &turned);
	root = getenv("VERBENA_TREE");
	if (!root)
		return path;
	used = snprintf(to, PATH_MAX, "%s%s", place == TOP ? root : "", n.text);
	if (used >= PATH_MAX ||
	    !copy_rest(to, (size_t)used, rest, ends_in_slash(path)))
		return path;
	return to;
}

const char *vb_files_inside(const char *path, const char *below)
{
	const char *root = getenv("VERBENA_TREE");
	size_t length = root ? strlen(root) : 0;

	if (!length || !path || strncmp(path, root, length) != 0 ||
	    strncmp(path + length, below, strlen(below)) != 0)
		return NULL;
	return path + length + strlen(below);
}

/* Device nodes in /dev/infiniband. */

static const struct node_class {
	const char *prefix, *class;
} node_classes[] = {
	{ "uverbs", "infiniband_verbs" },
	{ "umad", "infiniband_mad" },
	{ "rdma_cm", "misc" },
};

/* Returns the sysfs class of a node of that name; NULL: no node has such a
 * name. */
static const char *class_of(const char *name)
{
	for (unsigned i = 0; i < VB_COUNT(node_classes); i++)
		if (strncmp(name, node_classes[i].prefix,
			    strlen(node_classes[i].prefix)) == 0)
			return node_classes[i].class;
	return NULL;
}

static __attribute__((noinline)) bool is_nodes_directory(const struct stat *s)
{
	const char *root = getenv("VERBENA_TREE");
	char path[PATH_MAX];
	struct stat ours;

	if (!root || snprintf(path, sizeof(path), "%s" NODES, root) >= PATH_MAX)
		return false;
	return NEXT(stat)(path, &ours) == 0 && ours.st_ino == s->st_ino &&
	       ours.st_dev == s->st_dev;
}

/* Is the directory part of the relative path @path, which ends before @name,
 * the tree's /dev/infiniband? Not inlined, so that callers with other names do
 * not need stack for a path. */
static __attribute__((noinline)) bool is_in_nodes(int at, const char *path,
						  const char *name)
{
	size_t length = (size_t)(name - path);
	char directory[PATH_MAX] = ".";
	struct stat s;

	if (length >= PATH_MAX)
		return false;
	if (length)
		snprintf(directory, sizeof(directory), "%.*s", (int)length,
			 path);
	return NEXT(fstatat)(at, directory, &s, 0) == 0 &&
	       is_nodes_directory(&s);
}

const char *vb_files_node(int at, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;
	int error = errno;
	bool ours;

	/* Most paths do not end like the name of a node, so the search ends
	 * without a system call. */
	if (!name || !class_of(name))
		return NULL;
	if (path[0] == '/')
		ours = vb_files_inside(path, NODES "/") == name;
	else
		ours = is_in_nodes(at, path, name);
	errno = error;
	return ours ? name : NULL;
}

bool vb_files_is_node_in(int fd, const char *name)
{
	int error = errno;
	struct stat s;
	bool ours = class_of(name) && NEXT(fstat)(fd, &s) == 0 &&
		    is_nodes_directory(&s);

	errno = error;
	return ours;
}

bool vb_files_number(const char *node, unsigned *major, unsigned *minor)
{
	const char *root = getenv("VERBENA_TREE"), *class = class_of(node);
	char path[PATH_MAX], text[32];
	int error = errno, fd;
	ssize_t n = -1;

	if (!root || !class ||
	    snprintf(path, sizeof(path), "%s/sys/class/%s/%s/dev", root, class,
		     node) >= PATH_MAX)
		return false;
	fd = NEXT(open)(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	errno = error;
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%u:%u", major, minor) == 2;
}
