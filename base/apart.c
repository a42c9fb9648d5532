/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/apart.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define TICK_NS	   1000000
#define MOST_WAITS 64
#define STACK	   (64u * 1024)

/* This thread's timer. */
static _Thread_local struct {
	timer_t timer;
	bool made;
} ticks;
/* The number of close() calls under way in the threads of start_close(). */
static _Atomic unsigned waits;

static void on_tick(int sig)
{
	(void)sig;
}

static int make_ticks(void)
{
	/* No SA_RESTART, so that a system call that waits returns EINTR after
	 * the signal. */
	const struct sigaction act = { .sa_handler = on_tick };
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID,
			       .sigev_signo = SIGVTALRM };
	sigset_t set;

	to._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGVTALRM, &act, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &to, &ticks.timer) < 0)
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, SIGVTALRM);
	return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void vb_apart_limit(bool on)
{
	const struct timespec tick = { .tv_nsec = on ? TICK_NS : 0 };
	const struct itimerspec each = { tick, tick };

	if (!ticks.made)
		ticks.made = make_ticks() == 0;
	if (ticks.made)
		(void)timer_settime(ticks.timer, 0, &each, NULL);
}

static void *close_one(void *arg)
{
	close((int)(intptr_t)arg);
	atomic_fetch_sub(&waits, 1);
	return NULL;
}

/* Start a thread that closes @fd, with all signals blocked. */
static int start_close(int fd)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, close_one, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* getsockopt() asks no file system, as fstat() would. */
static bool is_socket(int fd)
{
	socklen_t len = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

void vb_apart_close(const int *fds, unsigned count)
{
	while (count-- > 0) {
		if (is_socket(fds[count])) {
			close(fds[count]);
			continue;
		}
		/* If no thread can start, the file stays open and counts in
		 * @waits for ever, so at most MOST_WAITS files stay open. */
		atomic_fetch_add(&waits, 1);
		if (start_close(fds[count]))
			vb_log(LOG_WARN, "no thread to close a file that "
					 "another program sent");
	}
}

bool vb_apart_has_room(void)
{
	return atomic_load(&waits) < MOST_WAITS;
}
