/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/guard.h"
#include "tests/support/seeds.h"

static size_t page;

/* Install the guard's handlers in each test, since cmocka installs its own
 * before each. */
static void put_guard_back(void)
{
	assert_int_equal(vb_guard_install(), 0);
}

/* Map two pages, of which the second is missing. */
static uint8_t *page_before_hole(int prot)
{
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	if (prot == PROT_NONE)
		munmap(p + page, page);
	else
		mprotect(p + page, page, prot);
	return p;
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	while (len--)
		*p++ = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
}

typedef size_t copy_way(void *dst, const void *src, size_t len);

static void assert_copies(copy_way *copy, size_t lengths, unsigned seed)
{
	uint8_t src[400], dst[400], want[400];

	fill(src, sizeof(src), seed);
	for (size_t len = 0; len < lengths; len++)
		for (size_t at = 0; at < 256; at++) {
			size_t from = at % 16, to = at / 16;

			memset(dst, 0xa5, sizeof(dst));
			memset(want, 0xa5, sizeof(want));
			memcpy(want + 8 + to, src + from, len);
			assert_int_equal(copy(dst + 8 + to, src + from, len),
					 0);
			assert_memory_equal(dst, want, sizeof(dst));
		}
}

static void copy__every_length_and_alignment(void **state)
{
	assert_copies(vb_guard_copy, 330, 1);
}

static void copy_in__every_length_and_alignment(void **state)
{
	assert_copies(vb_guard_copy_in, 200, 2);
}

/* If either page is missing, the copy is not complete. */
static void copy_in__out_of_a_hole(void **state)
{
	uint8_t *p = page_before_hole(PROT_NONE), dst[300];

	put_guard_back();
	for (size_t len = 1; len < 200; len += seeds_stride())
		for (size_t have = 0; have <= len; have++) {
			bool whole = vb_guard_copy_in(dst, p + page - have,
						      len) == 0;

			assert_int_equal(whole, have == len);
		}
	munmap(p, page);
}

/* Copy @len bytes to the end of a page, where only the first @have bytes are
 * mapped. */
static void copy_into_hole(uint8_t *p, size_t len, size_t have)
{
	uint8_t src[600];
	size_t left;

	fill(src, sizeof(src), (unsigned)len);
	memset(p, 0, page);
	left = vb_guard_copy(p + page - have, src, len);
	assert_in_range(left, len - have, len);
	assert_memory_equal(p + page - have, src, len - left);

	memcpy(p + page - have, src, have);
	left = vb_guard_copy(src, p + page - have, len);
	assert_in_range(left, len - have, len);
}

static void copy__fails_at_an_unmapped_page(void **state)
{
	uint8_t *p = page_before_hole(PROT_NONE);

	put_guard_back();
	for (size_t len = 1; len < 300; len += seeds_stride())
		for (size_t have = 0; have < len; have++)
			copy_into_hole(p, len, have);
	assert_int_equal(vb_guard_copy(p, NULL, 5), 5);
	assert_int_equal(vb_guard_copy(NULL, p, 100), 100);
	assert_int_equal(vb_guard_copy((void *)(1ull << 63), p, 8), 8);
	assert_int_equal(vb_guard_copy(NULL, NULL, 0), 0);
	munmap(p, page);
}

static void copy__fails_at_a_read_only_page(void **state)
{
	uint8_t *p = page_before_hole(PROT_READ), src[64] = { 1 };

	put_guard_back();
	assert_int_equal(vb_guard_copy(src, p + page, 64), 0);
	assert_int_equal(vb_guard_copy(p + page, src, 64), 64);
	assert_int_equal(vb_guard_copy(p + page, src, 4), 4);
	munmap(p, 2 * page);
}

static size_t count_resident(uint8_t *p, size_t pages)
{
	unsigned char vec[64];
	size_t count = 0;

	assert_int_equal(mincore(p, pages * page, vec), 0);
	for (size_t i = 0; i < pages; i++)
		count += vec[i] & 1;
	return count;
}

/* After the touch the pages of the range are in memory and no other pages are,
 * and no byte has changed. */
static void touch__brings_every_page_and_no_other(void **state)
{
	const size_t pages = 40;
	uint8_t *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	put_guard_back();
	assert_true(p != MAP_FAILED);
	madvise(p, pages * page, MADV_NOHUGEPAGE);
	assert_true(vb_guard_touch(p + page - 1, 0, true));
	assert_int_equal(count_resident(p, pages), 0);
	/* the last byte of page 0, pages 1 to 37, the first byte of page 38 */
	assert_true(vb_guard_touch(p + page - 1, 37 * page + 2, true));
	assert_int_equal(count_resident(p, pages), 39);
	for (size_t i = 0; i < pages * page; i++)
		assert_int_equal(p[i], 0);
	munmap(p, pages * page);
}

static void touch__fails_where_a_copy_would(void **state)
{
	uint8_t *hole = page_before_hole(PROT_NONE);
	uint8_t *fixed = page_before_hole(PROT_READ);

	put_guard_back();
	assert_true(vb_guard_touch(hole, page, true));
	assert_false(vb_guard_touch(hole, page + 1, false));
	assert_false(vb_guard_touch(hole + page, 1, true));
	assert_true(vb_guard_touch(fixed, 2 * page, false));
	assert_false(vb_guard_touch(fixed + 1, page, true));
	munmap(hole, page);
	munmap(fixed, 2 * page);
}

static void copy__fails_behind_a_truncated_file(void **state)
{
	FILE *f = tmpfile();
	uint8_t *p, bytes[100] = { 0 };

	put_guard_back();
	assert_int_equal(ftruncate(fileno(f), (off_t)(2 * page)), 0);
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f),
		 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(vb_guard_copy(p + page - 50, bytes, 100), 0);
	assert_int_equal(ftruncate(fileno(f), (off_t)page), 0);
	assert_in_range(vb_guard_copy(p + page - 50, bytes, 100), 50, 100);
	assert_in_range(vb_guard_copy(bytes, p + page - 50, 100), 50, 100);
	assert_int_equal(vb_guard_copy(bytes, p + page - 50, 50), 0);
	munmap(p, 2 * page);
	fclose(f);
}

static void atomics__work_and_fail(void **state)
{
	uint8_t *p = page_before_hole(PROT_READ);
	uint64_t *good = (uint64_t *)p, *bad = (uint64_t *)(p + page), old;

	put_guard_back();
	*good = 5;
	assert_int_equal(vb_guard_cas64(good, 5, 9, &old), 0);
	assert_int_equal(old, 5);
	assert_int_equal(*good, 9);
	assert_int_equal(vb_guard_cas64(good, 5, 1, &old), 0);
	assert_int_equal(old, 9);
	assert_int_equal(*good, 9);
	assert_int_equal(vb_guard_add64(good, UINT64_MAX, &old), 0);
	assert_int_equal(old, 9);
	assert_int_equal(*good, 8);
	old = 77;
	assert_int_equal(vb_guard_cas64(bad, 0, 1, &old), -EFAULT);
	assert_int_equal(vb_guard_add64(bad, 1, &old), -EFAULT);
	assert_int_equal(vb_guard_add64(NULL, 1, &old), -EFAULT);
	assert_int_equal(old, 77);
	munmap(p, 2 * page);
}

static void *add_often(void *at)
{
	uint64_t old;

	for (int i = 0; i < 20000; i++)
		if (vb_guard_add64(at, 1, &old))
			return at;
	return NULL;
}

static void atomics__many_threads(void **state)
{
	uint64_t sum = 0;
	pthread_t t[4];
	void *wrong;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, add_often, &sum);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(sum, 80000);
}

static void *fault_often(void *arg)
{
	uint8_t *p = arg, bytes[128];

	for (int i = 0; i < 3000; i++) {
		if (vb_guard_copy(p + page - 64, bytes, 64) != 0)
			return p;
		if (vb_guard_copy(bytes, p + page - 64, 128) < 64)
			return p;
		if (vb_guard_install())
			return p;
	}
	return NULL;
}

static void copy__many_threads_fault_at_once(void **state)
{
	uint8_t *p = page_before_hole(PROT_READ);
	pthread_t t[8];
	void *wrong;

	/* A thread's memory, which AddressSanitizer maps, might be put into a
	 * hole where nothing is mapped. So the hole stays mapped, without
	 * access. */
	assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
	put_guard_back();
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, fault_often, p);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &wrong);
		assert_null(wrong);
	}
	munmap(p, 2 * page);
}

/* A thread that spins on the last byte of a copy must find all other bytes
 * written. */
static uint8_t *volatile mailbox;

static void *send_rounds(void *arg)
{
	uint8_t src[521];

	for (unsigned round = 1; round < 2000; round++) {
		uint8_t *last = mailbox + sizeof(src) - 1;

		memset(src, (int)(round & 0xff) | 1, sizeof(src));
		if (vb_guard_copy(mailbox, src, sizeof(src)))
			return arg;
		while (__atomic_load_n(last, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	return NULL;
}

static bool __attribute__((noinline)) receive_round(uint8_t *box, size_t len)
{
	uint8_t v;
	bool whole = true;

	while (!(v = __atomic_load_n(box + len - 1, __ATOMIC_ACQUIRE)))
		sched_yield();
	for (size_t i = 0; i < len; i++)
		whole = whole && box[i] == v;
	memset(box, 0, len - 1);
	__atomic_store_n(box + len - 1, 0, __ATOMIC_RELEASE);
	return whole;
}

static void copy__last_byte_comes_last(void **state)
{
	static uint8_t box[1024];
	pthread_t t;
	void *wrong;

	mailbox = box + 3;
	pthread_create(&t, NULL, send_rounds, box);
	for (unsigned round = 1; round < 2000; round++)
		assert_true(receive_round(mailbox, 521));
	pthread_join(t, &wrong);
	assert_null(wrong);
}

/*
 * Faults of the program itself, each in a child. A child ends with _exit(), or
 * by the signal if no handler caught it.
 */
static int child_ends(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		alarm(20);
		/* A sanitizer's handler is not the program's own handler, so it
		 * is removed. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		what();
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static volatile uintptr_t nowhere = 8;

static void __attribute__((no_sanitize("undefined"))) crash(void)
{
	*(volatile int *)nowhere = 1;
}

static void check_guard_works(void)
{
	int v;

	if (vb_guard_copy(&v, (void *)nowhere, 4) != 4)
		_exit(98);
}

static void install(void)
{
	if (vb_guard_install())
		_exit(97);
	check_guard_works();
}

static volatile int calls;
static struct sigaction displaced;

static void leave_with_7(int sig)
{
	_exit(7);
}

static void leave_if_address_is_8(int sig, siginfo_t *info, void *context)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	if (info->si_addr == (void *)8 && sigismember(&now, SIGSEGV) &&
	    sigismember(&now, SIGUSR2))
		_exit(8);
	_exit(1);
}

/* A handler as in a well-behaved library: it counts, and then calls the handler
 * that was installed before. */
static void call_displaced(int sig, siginfo_t *info, void *context)
{
	if (++calls > 3)
		_exit(2);
	if (displaced.sa_flags & SA_SIGINFO)
		displaced.sa_sigaction(sig, info, context);
	else if (displaced.sa_handler == SIG_DFL)
		signal(sig, SIG_DFL);
	else
		displaced.sa_handler(sig);
}

static void set_handler(void (*h)(int, siginfo_t *, void *), int flags,
			struct sigaction *was)
{
	struct sigaction sa = { .sa_sigaction = h,
				.sa_flags = flags | SA_SIGINFO };

	sigaddset(&sa.sa_mask, SIGUSR2);
	if (sigaction(SIGSEGV, &sa, was))
		_exit(96);
}

static void nobody_handles(void)
{
	install();
	crash();
}

static void plain_handler_before(void)
{
	signal(SIGSEGV, leave_with_7);
	install();
	crash();
}

static void siginfo_handler_after(void)
{
	install();
	set_handler(leave_if_address_is_8, 0, NULL);
	install();
	crash();
}

static void ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	install();
	kill(getpid(), SIGSEGV); /* a signal that was sent is ignored */
	check_guard_works();
	crash(); /* a real fault cannot be ignored */
}

static void sent_by_somebody(void)
{
	install();
	kill(getpid(), SIGSEGV);
}

static void handler_calls_us_back(void)
{
	signal(SIGSEGV, leave_with_7);
	install();
	set_handler(call_displaced, 0, &displaced);
	install();
	crash();
}

static void handler_calls_us_back_to_default(void)
{
	install();
	set_handler(call_displaced, 0, &displaced);
	install();
	crash();
}

static sigjmp_buf escape;

static void jump_out(int sig, siginfo_t *info, void *context)
{
	calls++;
	siglongjmp(escape, 1);
}

/* A handler leaves many faults by a jump, also on an alternate stack: the guard
 * must keep no state of a fault that was left. */
static void handler_jumps_out(void)
{
	stack_t alt = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&alt, NULL);
	install();
	set_handler(jump_out, SA_ONSTACK, NULL);
	install();
	for (volatile int i = 0; i < 5; i++) {
		if (!sigsetjmp(escape, 1))
			crash();
		check_guard_works();
	}
	_exit(calls == 5 ? 5 : 1);
}

static void handler_once(void)
{
	install();
	set_handler(jump_out, SA_RESETHAND, NULL);
	install();
	if (!sigsetjmp(escape, 1))
		crash();
	crash();
}

static void *touch_page = NULL;

static void mend(int sig, siginfo_t *info, void *context)
{
	calls++;
	mprotect(touch_page, page, PROT_READ | PROT_WRITE);
}

/* A handler of a program that repairs its faults and continues, as garbage
 * collectors do. */
static void handler_mends(void)
{
	touch_page =
		mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	install();
	set_handler(mend, 0, NULL);
	install();
	*(volatile int *)touch_page = 3;
	check_guard_works();
	_exit(calls == 1 && *(int *)touch_page == 3 ? 6 : 1);
}

static void reinstalled_often(void)
{
	signal(SIGSEGV, leave_with_7);
	for (int i = 0; i < 1000; i++) {
		set_handler(call_displaced, 0, &displaced);
		install();
		set_handler(mend, 0, NULL);
		install();
	}
	set_handler(call_displaced, 0, &displaced);
	install();
	calls = 0;
	set_handler(leave_if_address_is_8, 0, NULL);
	install();
	crash();
}

static void chain__to_what_the_program_had(void **state)
{
	int status = child_ends(nobody_handles);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	status = child_ends(ignored);
	assert_true(WIFSIGNALED(status));
	status = child_ends(sent_by_somebody);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WEXITSTATUS(child_ends(plain_handler_before)), 7);
	assert_int_equal(WEXITSTATUS(child_ends(siginfo_handler_after)), 8);
}

static void chain__without_going_round(void **state)
{
	int status = child_ends(handler_calls_us_back_to_default);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WEXITSTATUS(child_ends(handler_calls_us_back)), 7);
	assert_int_equal(WEXITSTATUS(child_ends(reinstalled_often)), 8);
}

static void chain__handlers_that_jump_mend_or_reset(void **state)
{
	int status = child_ends(handler_once);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WEXITSTATUS(child_ends(handler_jumps_out)), 5);
	assert_int_equal(WEXITSTATUS(child_ends(handler_mends)), 6);
}

static void install__keeps_errno(void **state)
{
	errno = 33;
	assert_int_equal(vb_guard_install(), 0);
	assert_int_equal(errno, 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__every_length_and_alignment),
		cmocka_unit_test(copy_in__every_length_and_alignment),
		cmocka_unit_test(copy_in__out_of_a_hole),
		cmocka_unit_test(copy__fails_at_an_unmapped_page),
		cmocka_unit_test(copy__fails_at_a_read_only_page),
		cmocka_unit_test(copy__fails_behind_a_truncated_file),
		cmocka_unit_test(touch__brings_every_page_and_no_other),
		cmocka_unit_test(touch__fails_where_a_copy_would),
		cmocka_unit_test(copy__many_threads_fault_at_once),
		cmocka_unit_test(copy__last_byte_comes_last),
		cmocka_unit_test(atomics__work_and_fail),
		cmocka_unit_test(atomics__many_threads),
		cmocka_unit_test(chain__to_what_the_program_had),
		cmocka_unit_test(chain__without_going_round),
		cmocka_unit_test(chain__handlers_that_jump_mend_or_reset),
		cmocka_unit_test(install__keeps_errno),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
