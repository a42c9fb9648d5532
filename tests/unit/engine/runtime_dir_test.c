/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of a network namespace, which is part of the names of counters'
 * files. No later namespace gets it, even if that gets the same inode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/syscall.h>

#include "engine/counters.h"
#include "engine/ipoib_path.h"
#include "engine/runtime_dir.h"
#include "tests/unit/netns.h"

#define SPACES 20

static void space__of_each_namespace(void **state)
{
	uint64_t spaces[SPACES];

	for (unsigned i = 0; i < SPACES; i++) {
		spaces[i] = vb_runtime_dir_space();
		assert_int_not_equal(spaces[i], 0);
		assert_int_equal(vb_runtime_dir_space(), spaces[i]);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(spaces[k], spaces[i]);
		assert_true(netns_next());
	}
}

static void space__of_a_namespace_that_is_entered_again(void **state)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	uint64_t space = vb_runtime_dir_space();

	assert_true(netns_next());
	assert_int_not_equal(vb_runtime_dir_space(), space);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	assert_int_equal(vb_runtime_dir_space(), space);
	close(here);
}

/* Before Linux 5.14 there is no SO_NETNS_COOKIE. */
static bool kernel_is_old;
static bool proc_is_missing;

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	if (kernel_is_old && level == SOL_SOCKET && option == 71) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
}

ssize_t readlinkat(int at, const char *path, char *to, size_t room)
{
	if (proc_is_missing) {
		errno = ENOENT;
		return -1;
	}
	return syscall(SYS_readlinkat, at, path, to, room);
}

static int has_new_kernel(void **state)
{
	kernel_is_old = proc_is_missing = false;
	return 0;
}

/* Interfaces of one name in two namespaces have a process each. */
static void host__of_an_old_kernel(void **state)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), a, b, to;
	uint64_t host;

	kernel_is_old = true;
	assert_int_equal(vb_runtime_dir_space(), 0);
	host = vb_runtime_dir_host();
	assert_int_not_equal(host, 0);
	a = vb_ipoib_listen("t0", 1);
	assert_true(a >= 0);
	assert_true(netns_next());
	assert_int_not_equal(vb_runtime_dir_host(), host);
	assert_int_equal(vb_ipoib_connect("t0"), -ECONNREFUSED);
	b = vb_ipoib_listen("t0", 1);
	assert_true(b >= 0);
	close(b);
	vb_ipoib_remove("t0");
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	assert_int_equal(vb_runtime_dir_host(), host);
	to = vb_ipoib_connect("t0");
	assert_true(to >= 0);
	close(to);
	close(a);
	vb_ipoib_remove("t0");
	close(here);
}

/* Without any number, a name would belong to all namespaces. */
static void host__is_not_known(void **state)
{
	kernel_is_old = proc_is_missing = true;
	assert_int_equal(vb_runtime_dir_host(), 0);
	assert_int_equal(vb_ipoib_listen("t0", 1), -EOPNOTSUPP);
	assert_int_equal(vb_ipoib_connect("t0"), -EOPNOTSUPP);
	vb_ipoib_remove("t0");
}

/* The totals of this namespace are in the file that has both numbers, and the
 * number of counters, on which the layout depends. */
static void space__names_the_totals(void **state)
{
	struct vb_adapter *a = calloc(1, sizeof(*a));
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir;
	char path[PATH_MAX], name[64];

	assert_non_null(a);
	snprintf(name, sizeof(name), "%llu.%016llx.%u.totals",
		 (unsigned long long)vb_runtime_dir_namespace(proc, "self"),
		 (unsigned long long)vb_runtime_dir_space(), CNT_COUNT);
	assert_int_equal(vb_adapter_init(a, "life_test"), 0);
	vb_counter_file_open(a);
	vb_counter_file_close(a);
	vb_adapter_fini(a);
	dir = vb_runtime_dir_open(path);
	assert_true(dir >= 0);
	assert_int_equal(unlinkat(dir, name, 0), 0);
	close(dir);
	close(proc);
	free(a);
}

/* Cuts the files of counts that programs of this namespace have. Returns how
 * many there are. */
static unsigned cut_counts(void)
{
	char path[PATH_MAX], prefix[64];
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dir = vb_runtime_dir_open(path);
	DIR *d = vb_runtime_dir_list(dir, ".");
	const struct dirent *e;
	unsigned count = 0;

	snprintf(prefix, sizeof(prefix), "%llu.%016llx.",
		 (unsigned long long)vb_runtime_dir_namespace(proc, "self"),
		 (unsigned long long)vb_runtime_dir_space());
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
		    !strstr(e->d_name, ".counts"))
			continue;
		close(openat(dir, e->d_name, O_WRONLY | O_TRUNC | O_CLOEXEC));
		count++;
	}
	closedir(d);
	close(dir);
	close(proc);
	return count;
}

/* A program goes on when another one truncates the file of its counts. */
static void counts__in_a_file_that_is_cut(void **state)
{
	struct vb_adapter *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	assert_int_equal(vb_adapter_init(a, "cut_test"), 0);
	vb_counter_file_open(a);
	assert_int_equal(cut_counts(), 1);
	atomic_fetch_add(&a->counters[0], 5);
	assert_int_equal(atomic_load(&a->counters[0]), 5);
	vb_counter_file_close(a);
	vb_adapter_fini(a);
	free(a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(space__of_each_namespace),
		cmocka_unit_test(space__of_a_namespace_that_is_entered_again),
		cmocka_unit_test_teardown(host__of_an_old_kernel,
					  has_new_kernel),
		cmocka_unit_test_teardown(host__is_not_known, has_new_kernel),
		cmocka_unit_test(counts__in_a_file_that_is_cut),
		cmocka_unit_test(space__names_the_totals),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
