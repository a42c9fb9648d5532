/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes files within RLIMIT_FSIZE. */
#include "base/file_limit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

bool vb_file_may_have(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

static ssize_t write_at(int fd, const void *bytes, size_t count, off_t at)
{
	return at < 0 ? write(fd, bytes, count) : pwrite(fd, bytes, count, at);
}

/* The kernel has sent SIGXFSZ to this thread: remove the signal from the
 * pending ones, unless it was pending before. */
static void take_back(const sigset_t *set, const sigset_t *pending)
{
	static const struct timespec now;

	if (!sigismember(pending, SIGXFSZ))
		(void)sigtimedwait(set, NULL, &now);
}

ssize_t vb_file_write(int fd, const void *bytes, size_t count, off_t at)
{
	sigset_t set, before, pending;
	ssize_t n;
	int error;

	if (vb_file_may_have(RLIM_INFINITY))
		return write_at(fd, bytes, count, at);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	n = write_at(fd, bytes, count, at);
	error = errno;
	if (n < 0 && error == EFBIG)
		take_back(&set, &pending);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}
