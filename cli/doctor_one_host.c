/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena doctor`: may a program of this host copy to and from the memory of
 * another one of the same user? Two children of this process try it: neither is
 * the other's parent, as with programs that a user starts.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/finding.h"

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

static int sample = 1;

/* Fork a child that waits until it is killed. */
static pid_t start_target(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (;;)
		pause();
}

/* Fork a child that reads the memory of @target. Returns 0 or an errno. */
static int try_copy(pid_t target)
{
	struct iovec here = { &sample, sizeof(sample) }, there = here;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(process_vm_readv(target, &here, 1, &there, 1, 0) < 0
			      ? errno & 0x7f
			      : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return EAGAIN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

/* Returns the value of a line "NAME:<tab>VALUE" of /proc/self/status; -1: there
 * is none. */
static int status_value(const char *name)
{
	char text[4096], *at;

	if (!vb_doctor_read("/proc/self/status", text, sizeof(text)))
		return -1;
	at = strstr(text, name);
	return at ? atoi(at + strlen(name) + 1) : -1;
}

static void say_refused(int error)
{
	char scope[16] = "";
	bool yama =
		vb_doctor_read(YAMA, scope, sizeof(scope)) && atoi(scope) > 0;

	if (error == EPERM && yama)
		vb_finding_add("one-host", FINDING_WARNING,
			       "sudo sysctl kernel.yama.ptrace_scope=0",
			       "ptrace_scope is %d, so a program may not copy "
			       "to another one's memory: programs of this host "
			       "exchange packets over loopback, which is "
			       "slower",
			       atoi(scope));
	else if (status_value("\nSeccomp") == 2)
		vb_finding_add("one-host", FINDING_WARNING,
			       "docker run --cap-add SYS_PTRACE ...",
			       "a seccomp profile (of a container) refuses "
			       "process_vm_readv (%s): programs of this host "
			       "exchange packets over loopback, which is "
			       "slower",
			       strerror(error));
	else
		vb_finding_add("one-host", FINDING_WARNING, NULL,
			       "the kernel refuses process_vm_readv between "
			       "programs of one user (%s): programs of this "
			       "host exchange packets over loopback, which is "
			       "slower",
			       strerror(error));
}

void vb_doctor_one_host(void)
{
	const char *wanted = getenv("VERBENA_NEAR");
	pid_t target;
	int error;

	if (wanted && strcmp(wanted, "off") == 0) {
		vb_finding_add("one-host", FINDING_NOTE, "unset VERBENA_NEAR",
			       "VERBENA_NEAR is off: programs of this host "
			       "exchange packets");
		return;
	}
	target = start_target();
	if (target < 0)
		return;
	error = try_copy(target);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	if (error)
		say_refused(error);
	else
		vb_finding_add("one-host", FINDING_OK, NULL,
			       "two programs of one user copy directly "
			       "(process_vm_writev), without packets");
}
