/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/sysfs_tree: the contents of the tree, when it changes, and which user
 * must own it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/sysfs_tree.h"
#include "tests/unit/netns.h"

static char run_dir[64];

/* Root's tree is in another directory: these tests run as another user. */
#define NOBODY 65534

static int set_up(void **state)
{
	char root[PATH_MAX];

	strcpy(run_dir, "/tmp/verbena-test-XXXXXX");
	assert_non_null(mkdtemp(run_dir));
	if (geteuid() == 0 &&
	    (chown(run_dir, NOBODY, NOBODY) < 0 || seteuid(NOBODY) < 0))
		skip();
	setenv("XDG_RUNTIME_DIR", run_dir, 1);
	setenv("VERBENA_DEVICES", "lo", 1);
	if (!vb_sysfs_tree_write(root))
		skip();
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", run_dir);
	return system(command);
}

static void read_file(const char *root, const char *name, char text[128])
{
	char path[PATH_MAX + 128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, 128, f));
	fclose(f);
}

static void tree__as_the_kernel_has_it(void **state)
{
	static const char *const files[][2] = {
		{ "sys/class/infiniband/roce_lo/node_type", "1: CA\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/state", "4: ACTIVE\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/link_layer",
		  "Ethernet\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/pkeys/0", "0xffff\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/gids/1",
		  "0000:0000:0000:0000:0000:ffff:7f00:0001\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/gid_attrs/types/1",
		  "RoCE v2\n" },
		{ "sys/class/infiniband/roce_lo/ports/1/gid_attrs/ndevs/1",
		  "lo\n" },
		{ "sys/class/infiniband_verbs/uverbs1/ibdev", "roce_lo\n" },
		{ "sys/class/infiniband_verbs/abi_version", "6\n" },
		{ "sys/class/infiniband_verbs/uverbs1/dev", "231:193\n" },
		{ "sys/class/infiniband_verbs/uverbs1/uevent", "MAJOR=231\n" },
		{ "sys/class/infiniband_mad/abi_version", "5\n" },
		{ "sys/class/infiniband_mad/umad0/ibdev", "roce_lo\n" },
		{ "sys/class/infiniband_mad/umad0/port", "1\n" },
		{ "sys/class/infiniband_mad/umad0/dev", "231:0\n" },
		{ "sys/class/misc/rdma_cm/abi_version", "4\n" },
		{ "sys/class/infiniband/roce_lo/uevent", "NAME=roce_lo\n" },
		{ "sys/class/infiniband/roce_lo/device/numa_node", "-1\n" },
	};
	char root[PATH_MAX], text[128], path[PATH_MAX + 64];

	assert_true(vb_sysfs_tree_write(root));
	assert_int_equal(strncmp(root, run_dir, strlen(run_dir)), 0);
	for (size_t i = 0; i < VB_COUNT(files); i++) {
		read_file(root, files[i][0], text);
		assert_string_equal(text, files[i][1]);
	}
	snprintf(path, sizeof(path),
		 "%s/sys/class/infiniband/roce_lo/device/net/lo", root);
	assert_int_equal(access(path, F_OK), 0);
}

static ino_t inode_of(const char *path)
{
	struct stat s;

	assert_int_equal(stat(path, &s), 0);
	return s.st_ino;
}

static void tree__made_once_for_each_choice(void **state)
{
	char one[PATH_MAX], again[PATH_MAX], other[PATH_MAX];
	char contents[PATH_MAX + 16];
	ino_t was;

	assert_true(vb_sysfs_tree_write(one));
	was = inode_of(one);
	assert_true(vb_sysfs_tree_write(again));
	assert_string_equal(one, again);
	assert_int_equal(inode_of(again), was);
	/* A tree whose file .contents differs from the expected one is replaced
	 * as a whole. */
	snprintf(contents, sizeof(contents), "%s/.contents", one);
	assert_int_equal(truncate(contents, 3), 0);
	assert_true(vb_sysfs_tree_write(again));
	assert_int_not_equal(inode_of(again), was);
	unsetenv("VERBENA_DEVICES");
	assert_true(vb_sysfs_tree_write(other));
	assert_string_not_equal(one, other);
}

static mode_t mode_of(const char *root, const char *name)
{
	char path[PATH_MAX + 128];
	struct stat s;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(lstat(path, &s), 0);
	return s.st_mode;
}

static void tree__read_by_others(void **state)
{
	mode_t umasked = umask(077);
	char root[PATH_MAX];

	/* The device list changes, so the tree must be written again. */
	unsetenv("VERBENA_DEVICES");
	assert_true(vb_sysfs_tree_write(root));
	umask(umasked);
	assert_int_equal(mode_of(root, "../.."), S_IFDIR | 0711);
	assert_int_equal(mode_of(root, ".."), S_IFDIR | 0755);
	assert_int_equal(mode_of(root, "sys/class/infiniband"), S_IFDIR | 0755);
	assert_int_equal(
		mode_of(root, "sys/class/infiniband_verbs/abi_version"),
		S_IFREG | 0644);
	assert_int_equal(mode_of(root, "dev/infiniband/rdma_cm"),
			 S_IFLNK | 0777);
}

/* Links are relative, as on Linux, so that they are right wherever the tree
 * is. */
static void tree__links_stay_in_it(void **state)
{
	static const char *const links[][2] = {
		{ "class/infiniband/roce_lo",
		  "devices/virtual/verbena/roce_lo/infiniband/roce_lo" },
		{ "class/infiniband/roce_lo/device",
		  "devices/virtual/verbena/roce_lo" },
		{ "class/infiniband/roce_lo/subsystem", "class/infiniband" },
		{ "class/infiniband/roce_lo/device/driver",
		  "bus/verbena/drivers/verbena" },
		{ "class/infiniband/roce_lo/device/subsystem", "bus/verbena" },
		{ "class/infiniband_verbs/uverbs1/device",
		  "devices/virtual/verbena/roce_lo" },
		{ "class/infiniband_mad/umad0/subsystem",
		  "class/infiniband_mad" },
		{ "bus/verbena/devices/roce_lo",
		  "devices/virtual/verbena/roce_lo" },
		{ "class/misc/rdma_cm", "devices/virtual/misc/rdma_cm" },
	};
	char root[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];

	assert_true(vb_sysfs_tree_write(root));
	for (size_t i = 0; i < VB_COUNT(links); i++) {
		snprintf(path, sizeof(path), "%s/sys/%s", root, links[i][0]);
		assert_non_null(realpath(path, real));
		assert_string_equal(real + strlen(root) + strlen("/sys/"),
				    links[i][1]);
	}
}

/* A program that root starts may change to a user that cannot enter any
 * directory of root's session. */
static void base__of_root(void **state)
{
	char root[PATH_MAX];

	if (getuid() != 0 || seteuid(0) < 0 || access("/run", W_OK) < 0)
		skip();
	assert_true(vb_sysfs_tree_write(root));
	assert_int_equal(strncmp(root, "/run/verbena/", 13), 0);
	assert_int_equal(mode_of(root, "../.."), S_IFDIR | 0711);
}

static void base__not_ours_alone(void **state)
{
	char root[PATH_MAX], path[128];

	/* If other users may enter the run directory, the tree is not there. */
	assert_int_equal(chmod(run_dir, 0755), 0);
	if (vb_sysfs_tree_write(root))
		assert_int_not_equal(strncmp(root, run_dir, strlen(run_dir)),
				     0);
	assert_int_equal(chmod(run_dir, 0700), 0);
	/* If other users may write to the user's directory, the tree is not
	 * there. */
	snprintf(path, sizeof(path), "%s/verbena", run_dir);
	assert_int_equal(chmod(path, 0775), 0);
	if (vb_sysfs_tree_write(root))
		assert_int_not_equal(strncmp(root, run_dir, strlen(run_dir)),
				     0);
	/* A symbolic link at the place of the run directory is not followed. */
	snprintf(path, sizeof(path), "rm -rf %s/verbena", run_dir);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/verbena", run_dir);
	assert_int_equal(symlink("/tmp", path), 0);
	if (vb_sysfs_tree_write(root))
		assert_int_not_equal(strncmp(root, run_dir, strlen(run_dir)),
				     0);
}

static bool is_in_first(const char *link, const char *first)
{
	char is[64] = "";

	return readlink(link, is, sizeof(is) - 1) > 0 && strcmp(is, first) == 0;
}

/* Returns whether this process is in the first PID and user namespaces, to
 * which Linux gives these numbers. */
static bool sees_all_processes(void)
{
	return is_in_first("/proc/self/ns/pid", "pid:[4026531836]") &&
	       is_in_first("/proc/self/ns/user", "user:[4026531837]");
}

/* In a container, which does not show all processes, a tree is removed after a
 * day. */
static void sweep__namespaces_that_are_gone(void **state)
{
	const struct timespec before[2] = { { time(NULL) - 100000, 0 },
					    { time(NULL) - 100000, 0 } };
	char root[PATH_MAX], gone[128], in[160];

	/* 17 is too small to be the number of a network namespace. */
	snprintf(gone, sizeof(gone), "%s/verbena/17.aa", run_dir);
	snprintf(in, sizeof(in), "%s/tree", gone);
	assert_int_equal(mkdir(gone, 0700), 0);
	assert_int_equal(mkdir(in, 0700), 0);
	assert_true(vb_sysfs_tree_write(root));
	/* The old tree stays, as no tree was written anew. */
	assert_int_equal(access(gone, F_OK), 0);
	unsetenv("VERBENA_DEVICES");
	assert_true(vb_sysfs_tree_write(root));
	assert_int_equal(access(gone, F_OK), sees_all_processes() ? -1 : 0);
	(void)mkdir(gone, 0700);
	assert_int_equal(utimensat(AT_FDCWD, gone, before, 0), 0);
	/* The next call makes a tree that does not exist yet. */
	setenv("VERBENA_DEVICES", "roce:lo", 1);
	assert_true(vb_sysfs_tree_write(root));
	assert_int_equal(access(gone, F_OK), -1);
}

/* Start a process in user and network namespaces of its own. It writes its tree,
 * and its path to @tell, and lives until @ends is closed. */
static pid_t start_container(int tell, int ends)
{
	char root[PATH_MAX] = "";
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (unshare(CLONE_NEWUSER) < 0 || !netns_next() ||
	    !vb_sysfs_tree_write(root))
		root[0] = '\0';
	if (write(tell, root, sizeof(root)) == sizeof(root) && ends >= 0)
		(void)!read(ends, root, 1);
	_exit(0);
}

/* A container of the same user, whose processes another one cannot see, keeps
 * its tree when the other makes one. */
static void sweep__not_of_a_sibling_container(void **state)
{
	char first[PATH_MAX], second[PATH_MAX];
	int tell[2], ends[2], status;
	pid_t living, sweeper;

	assert_int_equal(pipe(tell), 0);
	assert_int_equal(pipe(ends), 0);
	living = start_container(tell[1], ends[0]);
	assert_int_equal(read(tell[0], first, sizeof(first)), sizeof(first));
	sweeper = start_container(tell[1], -1);
	assert_int_equal(read(tell[0], second, sizeof(second)), sizeof(second));
	assert_int_equal(waitpid(sweeper, &status, 0), sweeper);
	status = access(first, F_OK);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(waitpid(living, NULL, 0), living);
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(ends[i]);
	}
	if (!*first || !*second)
		skip(); /* this system permits no user namespaces */
	assert_string_not_equal(first, second);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tree__as_the_kernel_has_it),
		TEST(tree__made_once_for_each_choice),
		TEST(tree__read_by_others),
		TEST(tree__links_stay_in_it),
		TEST(base__of_root),
		TEST(base__not_ours_alone),
		TEST(sweep__namespaces_that_are_gone),
		TEST(sweep__not_of_a_sibling_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
