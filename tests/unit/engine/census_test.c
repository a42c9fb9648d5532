/* SPDX-License-Identifier: BSD-2-Clause */
/* A census finds the objects of all programs, this program's included, in the
 * programs' shared memory. It ignores files that only look like such memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cq.h"
#include "core/mr.h"
#include "engine/census.h"
#include "engine/counters.h"

#define NAME "census_test"

static struct vb_adapter *adapter;

static int set_up(void **state)
{
	char dir[] = "/tmp/verbena-census-XXXXXX";

	assert_non_null(mkdtemp(dir));
	*state = strdup(dir);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	adapter = calloc(1, sizeof(*adapter));
	assert_non_null(adapter);
	assert_int_equal(vb_adapter_init(adapter, NAME), 0);
	vb_counter_file_open(adapter);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	vb_counter_file_close(adapter);
	vb_adapter_fini(adapter);
	free(adapter);
	snprintf(command, sizeof(command), "rm -r '%s'", (char *)*state);
	free(*state);
	return system(command);
}

static const struct vb_census_row *find(const struct vb_census *c,
					enum vb_roster_kind kind)
{
	for (unsigned i = 0; i < c->count; i++)
		if (strcmp(c->rows[i].device, NAME) == 0 &&
		    c->rows[i].kind == kind)
			return &c->rows[i];
	return NULL;
}

static uint64_t alive(const struct vb_census *c, enum vb_roster_kind kind)
{
	for (unsigned i = 0; i < c->sum_count; i++)
		if (strcmp(c->sums[i].device, NAME) == 0)
			return c->sums[i].alive[kind];
	return 0;
}

static void finds_what_there_is(void **state)
{
	const struct vb_census_row *pd, *mr;
	static char memory[4096];
	struct vb_census c;
	struct vb_pd *core;
	struct vb_mr *region;

	assert_int_equal(vb_pd_create(adapter, &core), 0);
	assert_int_equal(
		vb_mr_register(core, memory, sizeof(memory), 0, 0, &region), 0);
	assert_int_equal(vb_census_take(&c, true), 0);
	pd = find(&c, ROSTER_PD);
	mr = find(&c, ROSTER_MR);
	assert_non_null(pd);
	assert_non_null(mr);
	assert_int_equal(pd->pid, getpid());
	assert_int_equal(pd->users, 1);
	assert_int_equal(mr->pd, pd->id);
	assert_int_equal(mr->number, region->key);
	assert_int_equal(mr->size, sizeof(memory));
	assert_int_equal(alive(&c, ROSTER_MR), 1);
	vb_census_free(&c);

	assert_int_equal(vb_mr_deregister(region), 0);
	assert_int_equal(vb_pd_destroy(core), 0);
	assert_int_equal(vb_census_take(&c, true), 0);
	assert_null(find(&c, ROSTER_PD));
	assert_null(find(&c, ROSTER_MR));
	assert_int_equal(alive(&c, ROSTER_MR), 0);
	vb_census_free(&c);
}

/* Objects belong to the process that made them, and not to its forked child. */
static void objects_are_their_makers(void **state)
{
	struct vb_census c;
	struct vb_pd *pd;
	int ends[2], pid;
	char byte;

	assert_int_equal(vb_pd_create(adapter, &pd), 0);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	assert_int_equal(vb_census_take(&c, true), 0);
	assert_int_equal(alive(&c, ROSTER_PD), 1);
	assert_int_equal(find(&c, ROSTER_PD)->pid, getpid());
	vb_census_free(&c);
	close(ends[1]);
	close(ends[0]);
	waitpid(pid, NULL, 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

/* The census ignores rows that do not end, rows of an unknown kind, and
 * references to rows that do not exist. */
static void believes_nothing(void **state)
{
	struct vb_census c;
	int fd = memfd_create("verbena-counters", MFD_CLOEXEC);
	uint8_t *bytes;
	char head[512];
	off_t size = lseek(adapter->counters_fd, 0, SEEK_END);

	assert_int_equal(ftruncate(fd, size), 0);
	bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		     0);
	assert_true(bytes != MAP_FAILED);
	memset(bytes, 0xfe, (size_t)size);
	assert_int_equal(pread(adapter->counters_fd, head, sizeof(head), 0),
			 sizeof(head));
	memcpy(bytes, head, sizeof(head));
	assert_int_equal(vb_census_take(&c, true), 0);
	assert_null(find(&c, ROSTER_PD));
	vb_census_free(&c);
	/* Make all rows of the roster completion queues; cut off the last. */
	for (off_t i = 4096; i < size; i++)
		bytes[i] = ROSTER_CQ;
	assert_int_equal(ftruncate(fd, size - 100), 0);
	assert_int_equal(vb_census_take(&c, true), 0);
	assert_true(c.count <= VB_ROSTER_ROWS);
	vb_census_free(&c);
	munmap(bytes, (size_t)size);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_there_is),
		cmocka_unit_test(objects_are_their_makers),
		cmocka_unit_test(believes_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
