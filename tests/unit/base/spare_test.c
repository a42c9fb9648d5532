/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"
#include "base/spare.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 8192

/* Maps a new file of BYTES bytes. */
static char *map(int *fd)
{
	char path[] = "/tmp/verbena-spare-XXXXXX";
	char *at;

	*fd = mkstemp(path);
	assert_true(*fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(*fd, BYTES), 0);
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static void spare__takes_the_place_of_what_was_cut_off(void **state)
{
	int fd;
	volatile char *at = map(&fd);

	assert_int_equal(vb_spare_add((char *)at, BYTES), 0);
	at[0] = 1;
	assert_int_equal(ftruncate(fd, 0), 0);
	errno = EDOM;
	at[BYTES - 1] = 2;
	assert_int_equal(errno, EDOM);
	assert_int_equal(at[BYTES - 1], 2);
	assert_int_equal(at[0], 0);
	vb_spare_drop((char *)at);
	assert_int_equal(munmap((char *)at, BYTES), 0);
	close(fd);
}

/* A fault outside of mappings of this kind ends the program, as without
 * base/spare. */
static void spare__only_there(void **state)
{
	int fd, other, status;
	char *at = map(&fd);
	volatile char *bare = map(&other);
	pid_t child;

	assert_int_equal(vb_spare_add(at, BYTES), 0);
	assert_int_equal(ftruncate(other, 0), 0);
	child = fork();
	if (child == 0) {
		/* Remove cmocka's handler, which the guard's handler would
		 * call. */
		signal(SIGBUS, SIG_DFL);
		assert_int_equal(vb_guard_install(), 0);
		bare[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	vb_spare_drop(at);
	munmap(at, BYTES);
	munmap((char *)bare, BYTES);
	close(fd);
	close(other);
}

static void spare__so_many(void **state)
{
	char *at = (char *)4096;
	int rc = 0, count = 0;

	while (rc == 0 && count < 1000)
		rc = vb_spare_add(at + 4096 * count++, 4096);
	assert_int_equal(rc, -ENOSPC);
	while (count-- > 0)
		vb_spare_drop(at + 4096 * count);
	assert_int_equal(vb_spare_add(at, 4096), 0);
	vb_spare_drop(at);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(spare__takes_the_place_of_what_was_cut_off),
		cmocka_unit_test(spare__only_there),
		cmocka_unit_test(spare__so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
