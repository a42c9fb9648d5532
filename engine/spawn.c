/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts `verbena broker --daemon`, which ends once the broker listens, from
 * within a program that must not notice the new processes.
 *
 * The child is made with CLONE_VM and without an exit signal: the program's
 * memory is not copied, its fork handlers do not run, and only a wait that asks
 * for such children sees the child. Since exec() restores the exit signal, this
 * child does not call exec(): it makes a child of its own that does, waits for
 * that child, and exits.
 */
#include "engine/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"

#define STACK_BYTES (64 * 1024)
/* The pause between two checks whether the child has ended. */
#define LOOK	 (1 * VB_MSEC)
#define LOOKS	 3000
#define LOG_NAME "VERBENA_LOG="

/* The path of `verbena`, relative to the directory of the library that holds
 * this code. */
static const char *const places[] = {
	"../../cli/verbena",	/* from build/front/verbs */
	"../../bin/verbena",	/* from PREFIX/lib/verbena */
	"../../../bin/verbena", /* from PREFIX/lib/x86_64-linux-gnu/verbena */
};

/* execve() takes pointers to writable strings, but does not change them. */
static char arg_verbena[] = "verbena", arg_broker[] = "broker",
	    arg_daemon[] = "--daemon";

/* Results of both children, which share the program's memory; the caller waits
 * for them. */
struct errand {
	const char *path;
	char *argv[4], *env[2];
	char *inner_stack;
	int error;  /* errno that explains why `verbena` does not run */
	int status; /* exit status of `verbena` */
};

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

static bool find_near_library(char path[PATH_MAX])
{
	Dl_info here;
	char real[PATH_MAX], *slash;

	if (!dladdr((void *)vb_spawn_broker, &here) || !here.dli_fname ||
	    !realpath(here.dli_fname, real))
		return false;
	slash = strrchr(real, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (unsigned i = 0; i < VB_COUNT(places); i++) {
		int n = snprintf(path, PATH_MAX, "%s/%s", real, places[i]);

		if (n > 0 && n < PATH_MAX && is_program(path))
			return true;
	}
	return false;
}

/* Find the program `verbena`. secure_getenv(): a program with raised privileges
 * must not run a program that its user names. */
static bool find_program(char path[PATH_MAX])
{
	const char *named = secure_getenv("VERBENA_BROKER");
	int n;

	if (!named)
		return find_near_library(path);
	n = snprintf(path, PATH_MAX, "%s", named);
	return n > 0 && n < PATH_MAX && is_program(path);
}

/*
 * The next three functions run in the children, each on a stack of its own, in
 * the program's memory: they make system calls and nothing else. (waitpid()
 * would also be a cancellation point of the program's thread. ThreadSanitizer
 * must not watch these functions: it takes the children for that thread, and a
 * function from which they do not return for one that runs for ever.) All
 * signals are blocked; `verbena` unblocks them.
 */
#define UNWATCHED __attribute__((no_sanitize("thread")))

/* clone() under a name that sanitizers do not intercept; they take clone() for
 * a fork. */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

static UNWATCHED int become_broker(void *arg)
{
	struct errand *e = arg;

	syscall(SYS_execve, e->path, e->argv, e->env);
	e->error = errno;
	syscall(SYS_exit_group, 127);
	return 0;
}

/* Wait for `verbena --daemon`, which ends in a moment. If it hangs, kill it, so
 * that the program does not hang as well. */
static UNWATCHED void await_broker(struct errand *e, pid_t pid)
{
	const struct timespec nap = { 0, LOOK };

	for (int i = 0; i < LOOKS; i++) {
		long rc = syscall(SYS_wait4, pid, &e->status, WNOHANG, NULL);

		/* There is no status if the program ignores SIGCHLD. */
		if (rc < 0)
			e->status = 0;
		if (rc != 0)
			return;
		syscall(SYS_nanosleep, &nap, NULL);
	}
	e->error = ETIMEDOUT;
	syscall(SYS_kill, pid, SIGKILL);
	syscall(SYS_wait4, pid, NULL, 0, NULL);
}

static UNWATCHED int stand_between(void *arg)
{
	struct errand *e = arg;
	pid_t pid = __clone(become_broker, e->inner_stack + STACK_BYTES,
			    CLONE_VM | CLONE_VFORK | SIGCHLD, e);

	if (pid < 0)
		e->error = errno;
	else
		await_broker(e, pid);
	syscall(SYS_exit_group, 0);
	return 0;
}

static int run_errand(struct errand *e, char *stack)
{
	sigset_t all, old;
	pid_t pid;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = __clone(stand_between, stack + STACK_BYTES,
		      CLONE_VM | CLONE_VFORK, e);
	if (pid < 0)
		rc = -errno;
	else /* the child has exited, so this call does not sleep */
		syscall(SYS_wait4, pid, NULL, __WALL, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return rc;
	if (e->error)
		return -e->error;
	return e->status ? -ECANCELED : 0;
}

static int run_on_new_stacks(struct errand *e)
{
	char *stacks = malloc(2 * STACK_BYTES);
	int rc;

	if (!stacks)
		return -ENOMEM;
	e->inner_stack = stacks + STACK_BYTES;
	rc = run_errand(e, stacks);
	free(stacks);
	return rc;
}

int vb_spawn_broker(void)
{
	char path[PATH_MAX], log[32] = LOG_NAME;
	const char *level = getenv("VERBENA_LOG");
	struct errand e = { .path = path,
			    .argv = { arg_verbena, arg_broker, arg_daemon } };
	int rc;

	if (!find_program(path))
		return -ENOENT;
	if (level) {
		snprintf(log, sizeof(log), LOG_NAME "%s", level);
		e.env[0] = log;
	}
	rc = run_on_new_stacks(&e);
	vb_log(LOG_DEBUG, "lease: broker %s: %s", path,
	       rc ? strerror(-rc) : "started");
	return rc;
}

static void *spawn_main(void *arg)
{
	struct vb_spawn *s = arg;

	atomic_store(&s->result, vb_spawn_broker());
	return NULL;
}

static int begin(struct vb_spawn *s)
{
	int rc;

	atomic_store(&s->result, 1);
	rc = vb_thread_start(&s->thread, NULL, spawn_main, s);
	s->busy = rc == 0;
	return rc ? -rc : -EAGAIN;
}

int vb_spawn_step(struct vb_spawn *s)
{
	int rc;

	if (!s->busy)
		return begin(s);
	rc = atomic_load(&s->result);
	if (rc > 0)
		return -EAGAIN;
	vb_spawn_finish(s);
	return rc;
}

void vb_spawn_finish(struct vb_spawn *s)
{
	if (s->busy)
		pthread_join(s->thread, NULL);
	s->busy = false;
}
