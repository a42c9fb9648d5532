/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of a network namespace, which the names of counters' files have:
 * no other namespace ever gets it, also one that gets the inode again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/counters.h"
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
		cmocka_unit_test(counts__in_a_file_that_is_cut),
		cmocka_unit_test(space__names_the_totals),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
