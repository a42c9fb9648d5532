/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks, and lets the parent end when the child says so. */
#include "ipoib/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the exit status for a child that ended before it was ready. */
static int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status)
							: EXIT_FAILURE;
}

static void wait_for_child(int fd, pid_t pid)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	_exit(n == 1 ? EXIT_SUCCESS : status_of(pid));
}

int background_fork(void)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(fds[1]);
		wait_for_child(fds[0], pid);
	}
	close(fds[0]);
	setsid();
	return fds[1];
}

void background_ready(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (chdir("/") < 0)
		return;
	for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
		dup2(null, i);
	if (null > STDERR_FILENO)
		close(null);
	n = write(fd, "", 1);
	(void)n;
	close(fd);
}
