/* SPDX-License-Identifier: BSD-2-Clause */
/* near/permit: nothing is copied under a lapsed permit, wherever the copying
 * thread was stopped. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "near/permit.h"

#define BYTES 512
#define FIRE  0xc3
#define MARK  0x5a

static _Atomic uint32_t words[3];

static ssize_t copy(const struct vb_permit *permit, bool put, void *here,
		    const void *there, size_t len)
{
	const struct iovec local = { here, len };
	const struct iovec remote = { (void *)(uintptr_t)there, len };

	return vb_permit_copy(permit, getpid(), put, &local, 1, &remote, 1);
}

static void permit__that_holds_copies(void **state)
{
	const struct vb_permit permit = { { &words[0], &words[1], &words[2] },
					  { 4, 6, 8 } };
	char from[] = "some bytes", to[sizeof(from)] = "";

	atomic_store(&words[0], 4);
	atomic_store(&words[1], 6);
	atomic_store(&words[2], 8);
	assert_int_equal(copy(&permit, true, from, to, sizeof(from)),
			 sizeof(from));
	assert_string_equal(from, to);
	memset(to, 0, sizeof(to));
	assert_int_equal(copy(&permit, false, to, from, sizeof(from)),
			 sizeof(from));
	assert_string_equal(from, to);
	assert_int_equal(copy(&permit, true, from, NULL, 1), -EFAULT);
}

static void permit__that_has_lapsed_copies_nothing(void **state)
{
	char from[] = "some bytes", to[sizeof(from)] = "";

	atomic_store(&words[0], 4);
	atomic_store(&words[1], 6);
	atomic_store(&words[2], 8);
	for (unsigned i = 0; i < 3; i++) {
		struct vb_permit permit = { { &words[0], &words[1], &words[2] },
					    { 4, 6, 8 } };

		permit.is[i] += 2;

		assert_int_equal(copy(&permit, true, from, to, sizeof(from)),
				 -ECANCELED);
		assert_string_equal(to, "");
	}
}

#ifdef __x86_64__
/*
 * Another process has checked its permit and is stopped in front of the system
 * call, its very next instruction. Then the permit lapses, and the owner marks
 * the memory. When the process goes on, the mark must stay.
 */
struct sequence { /* struct rseq_cs of linux/rseq.h */
	uint32_t version, flags;
	uint64_t start, length, on_abort;
};
extern const struct sequence __start___rseq_cs[];

struct field {
	_Atomic uint32_t word;
	_Atomic int64_t result;
	uint8_t memory[BYTES] __attribute__((aligned(64)));
};

/* Returns the address of the system call, the last instruction of the
 * restartable sequence (rseq). */
static uint64_t call_at(void)
{
	return __start___rseq_cs->start + __start___rseq_cs->length - 2;
}

static void write_once(struct field *f, pid_t owner)
{
	const struct vb_permit permit = { { &f->word, &f->word, &f->word },
					  { 4, 4, 4 } };
	const struct iovec remote = { f->memory, BYTES };
	uint8_t fire[BYTES];
	const struct iovec local = { fire, BYTES };

	memset(fire, FIRE, sizeof(fire));
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(1);
	raise(SIGSTOP);
	atomic_store(&f->result, vb_permit_copy(&permit, owner, true, &local, 1,
						&remote, 1));
	_exit(0);
}

/* Let the traced process run up to the system call, by a breakpoint that is
 * removed again. False: it cannot be traced. */
static bool go_to_call(pid_t pid)
{
	void *at = (void *)(uintptr_t)call_at();
	struct user_regs_struct regs;
	int status;
	long code;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	code = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);
	/* the bytes of the instruction syscall */
	assert_int_equal(code & 0xffff, 0x050f);
	ptrace(PTRACE_POKETEXT, pid, at, (code & ~0xffL) | 0xcc);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	ptrace(PTRACE_POKETEXT, pid, at, code);
	ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	assert_int_equal(regs.rip, call_at() + 1);
	regs.rip--;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	return true;
}

static void permit__lapses_before_the_very_call(void **state)
{
	struct field *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t owner = getpid(), other;

	if (!vb_permit_is_exact())
		skip();
	assert_ptr_not_equal(f, MAP_FAILED);
	atomic_store(&f->word, 4);
	other = fork();
	assert_true(other >= 0);
	if (other == 0)
		write_once(f, owner);
	if (!go_to_call(other))
		skip(); /* skipped where tracing is forbidden */
	atomic_store(&f->word, 6);
	memset(f->memory, MARK, BYTES);
	ptrace(PTRACE_DETACH, other, NULL, NULL);
	waitpid(other, NULL, 0);
	assert_int_equal(atomic_load(&f->result), -ECANCELED);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(f->memory[i], MARK);
	munmap(f, sizeof(*f));
}
#else
static void permit__lapses_before_the_very_call(void **state)
{
	skip(); /* skipped without restartable sequences: near/permit.c */
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permit__that_holds_copies),
		cmocka_unit_test(permit__that_has_lapsed_copies_nothing),
		cmocka_unit_test(permit__lapses_before_the_very_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
