/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that a child of fork resets, closes and unmaps, and the state that
 * it keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/sync.h"

static struct vb_mutex lock = VB_MUTEX_INITIALIZER(VB_RANK_LEAF);
static int begun;

static void begin_anew(void)
{
	vb_mutex_init(&lock, VB_RANK_LEAF);
	begun++;
}
VB_FORGET_AT_FORK(begin_anew)

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_mapped(void *at)
{
	unsigned char resident;

	return mincore(at, 1, &resident) == 0 || errno != ENOMEM;
}

/* End the child; its exit status is whether @is_right returned true. */
static void child_says(bool (*is_right)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(10);
		_exit(is_right(arg) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Returns whether the lock is held. Unchecked: the analysis of locks does not
 * understand a look at the lock's word. */
static bool has_lock(void *arg) VB_UNCHECKED
{
	bool got = vb_mutex_trylock(&lock);

	if (got)
		vb_mutex_unlock(&lock);
	return got && begun == 1;
}

static void forget__a_lock_is_free_in_the_child(void **state)
{
	vb_mutex_lock(&lock);
	child_says(has_lock, NULL);
	vb_mutex_unlock(&lock);
	assert_int_equal(begun, 0);
}

static bool is_closed(void *arg)
{
	return !is_open(*(int *)arg);
}

static bool is_kept(void *arg)
{
	return is_open(*(int *)arg);
}

static void close__what_was_entered(void **state)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	vb_fork_closes(fd);
	child_says(is_closed, &fd);
	assert_true(is_open(fd));
	close(fd);
}

static void close__not_what_the_program_put_in_its_place(void **state)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	int other = socket(AF_UNIX, SOCK_DGRAM, 0);

	vb_fork_closes(fd);
	assert_int_equal(dup2(other, fd), fd);
	child_says(is_kept, &fd);
	close(fd);
	close(other);
}

static void close__what_stands_there_next(void **state)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), next;

	vb_fork_closes(fd);
	close(fd);
	next = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(next, fd);
	child_says(is_kept, &fd);
	vb_fork_closes(fd);
	child_says(is_closed, &fd);
	close(fd);
}

static void close__nothing_where_there_is_nothing(void **state)
{
	vb_fork_closes(-1);
	vb_fork_closes(1 << 30);
	vb_fork_closes(1000);
	child_says(has_lock, NULL);
}

/* The parent has closed a descriptor. A grandchild has a file of its own at
 * that descriptor's number, which must stay open. */
static bool grandchild_keeps(void *arg)
{
	int fd = *(int *)arg, mine;

	if (is_open(fd))
		return false;
	mine = socket(AF_UNIX, SOCK_DGRAM, 0);
	child_says(is_kept, &mine);
	return true;
}

static void close__once(void **state)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	vb_fork_closes(fd);
	child_says(grandchild_keeps, &fd);
	close(fd);
}

static bool is_gone(void *arg)
{
	return !is_mapped(arg);
}

static bool is_there(void *arg)
{
	return is_mapped(arg);
}

static void *page(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void unmap__what_was_entered(void **state)
{
	void *first = page(), *second = page();

	vb_fork_unmaps(first, 4096);
	vb_fork_unmaps(second, 4096);
	child_says(is_gone, first);
	child_says(is_gone, second);
	assert_true(is_mapped(first));
	vb_fork_keeps(first);
	child_says(is_there, first);
	child_says(is_gone, second);
	/* The entry of the unmapped range in the table of ranges can be used
	 * again. */
	vb_fork_unmaps(first, 4096);
	child_says(is_gone, first);
	vb_fork_keeps(first);
	vb_fork_keeps(second);
	munmap(first, 4096);
	munmap(second, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forget__a_lock_is_free_in_the_child),
		cmocka_unit_test(close__what_was_entered),
		cmocka_unit_test(close__not_what_the_program_put_in_its_place),
		cmocka_unit_test(close__what_stands_there_next),
		cmocka_unit_test(close__nothing_where_there_is_nothing),
		cmocka_unit_test(close__once),
		cmocka_unit_test(unmap__what_was_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
