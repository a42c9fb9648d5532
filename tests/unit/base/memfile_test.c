/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memfile.h"

static void memfile__has_the_bytes_and_keeps_them(void **state)
{
	static char bytes[100000], got[sizeof(bytes) + 1];
	int fd;

	memset(bytes, 'x', sizeof(bytes));
	bytes[99999] = 'y';
	fd = vb_memfile_make(bytes, sizeof(bytes));
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(bytes));
	assert_memory_equal(got, bytes, sizeof(bytes));
	assert_true(vb_memfile_is_sealed(fd));
	assert_int_equal(pwrite(fd, "z", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 10), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void memfile__that_may_still_change(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_false(vb_memfile_is_sealed(fd));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_false(vb_memfile_is_sealed(fd));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_true(vb_memfile_is_sealed(fd));
	close(fd);
	assert_false(vb_memfile_is_sealed(-1));
}

/* A file longer than RLIMIT_FSIZE is an error, and raises no signal. */
static void memfile__beyond_the_limit_of_files(void **state)
{
	struct rlimit old, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ 100, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(vb_memfile_make((char[101]){ 0 }, 101), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memfile__has_the_bytes_and_keeps_them),
		cmocka_unit_test(memfile__that_may_still_change),
		cmocka_unit_test(memfile__beyond_the_limit_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
