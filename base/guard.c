/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handlers of SIGSEGV and SIGBUS. They handle a fault that a guarded
 * routine raised, and pass any other fault to the program's handler, which runs
 * as the kernel would have run it.
 *
 * This file keeps every action that its handler has displaced, each with the
 * action below it at that time. So when the program's handler in turn calls the
 * handler that it displaced, which is the one of this file, the signal is
 * passed one step down and does not go round in circles.
 */
#include "base/guard.h"

#include "base/fork.h"
#include "base/guard_copy.h"
#include "base/spare.h"
#include "base/sync.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* bytes; the smallest page of any processor */
#define PAGE ((uintptr_t)4096)
#define LINE ((uintptr_t)64)
/* The number of pages that are touched together: one cache line of each is
 * prefetched. */
#define AT_ONCE 16

struct action {
	struct sigaction sa;
	/* the action that this one displaced; NULL: the system's default */
	const struct action *below;
	/* the next one in the list @kept; guarded by lock */
	struct action *next;
};

struct watched {
	int sig;
	/* List of all displaced actions, guarded by lock. An action is never
	 * freed, because a handler can be reading it. */
	struct action *kept;
	_Atomic(const struct action *) top;
};

static struct vb_mutex lock = VB_MUTEX_INITIALIZER(VB_RANK_LEAF);
static struct watched watched[] = { { SIGSEGV }, { SIGBUS } };
/* the action SIG_DFL, which is all zero */
static const struct action system_default;

/* Runs in the child of a fork. The list of displaced actions is complete at any
 * time, so only the lock needs a reset. */
static void forget_lock(void)
{
	vb_mutex_init(&lock, VB_RANK_LEAF);
}
VB_FORGET_AT_FORK(forget_lock)

/* The program's handler that runs in this thread now, and the signal that this
 * file passed to that handler. The TLS model allocates at load time, because a
 * signal handler must not allocate. */
struct passing {
	const struct action *to;
	const void *context;
	uintptr_t frame;
};
static _Thread_local struct passing passing
	__attribute__((tls_model("initial-exec")));

static void handle(int sig, siginfo_t *info, void *context);

static bool is_ours(const struct sigaction *sa)
{
	return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == handle;
}

/* Was the signal raised by the instruction at the program counter? Not if a
 * process sent it, or if it reports a bad page elsewhere (BUS_MCEERR_AO). */
static bool is_fault(int sig, const siginfo_t *info)
{
	return info->si_code > 0 &&
	       !(sig == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static struct watched *watched_of(int sig)
{
	return &watched[sig == SIGBUS];
}

static void end_by_default(int sig, bool fault)
{
	sigaction(sig, &system_default.sa, NULL);
	/* The fault happens again when this handler returns, so that the core
	 * dump shows the faulting instruction. */
	if (!fault)
		raise(sig);
}

static void run(const struct action *a, int sig, siginfo_t *info, void *context)
{
	const struct action *expect = a;
	sigset_t block = a->sa.sa_mask, before;

	if (a->sa.sa_flags & SA_RESETHAND)
		atomic_compare_exchange_strong(&watched_of(sig)->top, &expect,
					       &system_default);
	if (!(a->sa.sa_flags & SA_NODEFER))
		sigaddset(&block, sig);
	pthread_sigmask(SIG_BLOCK, &block, &before);
	if (a->sa.sa_flags & SA_SIGINFO)
		a->sa.sa_sigaction(sig, info, context);
	else
		a->sa.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * Returns the action that gets the signal. If the program's handler, to which
 * this file passed the signal, calls this handler, the context is unchanged and
 * the stack frame deeper: then the next action below gets the signal. (If a
 * handler was left by longjmp(), @passing is stale; but a new signal never has
 * the stale context at a deeper frame.)
 */
static const struct action *next_action(int sig, const void *context,
					uintptr_t frame)
{
	const struct action *a;

	if (passing.to && passing.context == context && frame < passing.frame)
		a = passing.to->below;
	else
		/* Acquire: pairs with the release in keep(). */
		a = atomic_load_explicit(&watched_of(sig)->top,
					 memory_order_acquire);
	return a ? a : &system_default;
}

static void pass_on(int sig, siginfo_t *info, void *context, uintptr_t frame)
{
	const struct action *a = next_action(sig, context, frame);
	struct passing before = passing;
	bool fault = is_fault(sig, info);

	/* An ignored fault would repeat for ever, so end the program, as the
	 * kernel does for such a signal. */
	if (a->sa.sa_handler == SIG_DFL ||
	    (a->sa.sa_handler == SIG_IGN && fault)) {
		end_by_default(sig, fault);
		return;
	}
	if (a->sa.sa_handler == SIG_IGN)
		return;
	passing = (struct passing){ a, context, frame };
	run(a, sig, info, context);
	passing = before;
}

static void handle(int sig, siginfo_t *info, void *context)
{
	if (is_fault(sig, info) && vb_guard_resume(context))
		return;
	if (sig == SIGBUS && is_fault(sig, info) &&
	    vb_spare_fill(info->si_addr))
		return;
	pass_on(sig, info, context, (uintptr_t)__builtin_frame_address(0));
}

/* Compare the masks signal by signal, because the C library leaves the rest of
 * a mask undefined. */
static bool is_same_mask(const sigset_t *a, const sigset_t *b)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(a, sig) != sigismember(b, sig))
			return false;
	return true;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_sigaction == b->sa_sigaction &&
	       a->sa_flags == b->sa_flags &&
	       is_same_mask(&a->sa_mask, &b->sa_mask);
}

/* Make @sa the action that gets the faults that this file does not handle. Each
 * distinct action has one record, however often the program installs it. */
static int keep(struct watched *w, const struct sigaction *sa)
{
	struct action *a = w->kept;

	while (a && !is_same(&a->sa, sa))
		a = a->next;
	if (!a) {
		a = malloc(sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->sa = *sa;
		a->below = atomic_load_explicit(&w->top, memory_order_relaxed);
		a->next = w->kept;
		w->kept = a;
	}
	/* Release: the signal handler reads the pointer without a lock. */
	atomic_store_explicit(&w->top, a, memory_order_release);
	return 0;
}

static bool touch_one(uintptr_t at, bool write)
{
	uint64_t drop;

	if (!write)
		return vb_guard_copy(&drop, (const void *)at, 1) == 0;
	/* Adding 0 is atomic, so another thread may write there at the same
	 * time. */
	return vb_guard_add64((uint64_t *)(at & ~(uintptr_t)7), 0, &drop) == 0;
}

/* Returns the address of a byte of the page that begins at @page and is in the
 * range up to @end. Neighbouring pages get different lines, because the first
 * lines of all pages compete for a few places of the processor's cache. */
static uintptr_t touched_at(uintptr_t page, uintptr_t end)
{
	uintptr_t at = page + page / PAGE * LINE % PAGE;

	return at < end ? at : page;
}

/* Touch the pages from @page on. The prefetches fetch several lines at a time,
 * because an atomic addition waits for its own line and lets no other load
 * begin. */
static bool touch_some(uintptr_t page, uintptr_t end, bool write)
{
	for (uintptr_t at = page; write && at < end; at += PAGE)
		__builtin_prefetch((const void *)touched_at(at, end), 1);
	for (; page < end; page += PAGE)
		if (!touch_one(touched_at(page, end), write))
			return false;
	return true;
}

bool vb_guard_touch(void *at, size_t len, bool write)
{
	uintptr_t from = (uintptr_t)at, end = from + len;

	if (VB_UNLIKELY(len == 0))
		return true;
	if (!touch_one(from, write))
		return false;
	for (from = (from | (PAGE - 1)) + 1; from < end; from += AT_ONCE * PAGE)
		if (!touch_some(from, VB_MIN(end, from + AT_ONCE * PAGE),
				write))
			return false;
	return true;
}

static int base_take_over(struct watched *w)
{
	struct sigaction ours = { 0 }, now = { 0 }, was = { 0 };
	int err;

	if (sigaction(w->sig, NULL, &now) < 0)
		return -errno;
	if (is_ours(&now))
		return 0;
	err = keep(w, &now);
	if (err)
		return err;
	ours.sa_sigaction = handle;
	ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER |
			(now.sa_flags & SA_RESTART);
	if (sigaction(w->sig, &ours, &was) < 0)
		return -errno;
	/* Another thread may have installed its own action in between. */
	return is_ours(&was) ? 0 : keep(w, &was);
}

int vb_guard_install(void)
{
	int saved = errno, err = 0;

	vb_mutex_lock(&lock);
	for (size_t i = 0; i < VB_COUNT(watched) && !err; i++)
		err = base_take_over(&watched[i]);
	vb_mutex_unlock(&lock);
	errno = saved;
	return err;
}
