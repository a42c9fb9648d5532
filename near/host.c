/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of near/world.h for the kernel of this host. */
#include "near/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "near/peer.h"

static vb_time host_now(void *arg)
{
	return vb_clock_read();
}

static void host_pause(void *arg, vb_time ns)
{
	const struct timespec moment = { .tv_nsec = (long)ns };

	if (ns == 0)
		sched_yield();
	else
		nanosleep(&moment, NULL);
}

static uint32_t host_random(void *arg)
{
	return vb_rand32();
}

static ssize_t host_copy(void *arg, const struct vb_permit *permit, pid_t pid,
			 bool put, const struct iovec *local, unsigned count,
			 const struct iovec *remote, unsigned remote_count)
{
	return vb_permit_copy(permit, pid, put, local, count, remote,
			      remote_count);
}

/* Reading /proc. */

/* Read the first bytes of a file as text, at most @room - 1. Returns 0 or
 * -errno. */
static int read_text(int dir, const char *name, char *text, size_t room)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

/* Does this line of /proc/PID/task/TID/syscall show a copy of this process's
 * memory? A line "311 0x4d2 ..." has a system call and its arguments, the first
 * of which is the process whose memory is copied; "running" or "-1 ..." means
 * no system call. */
static bool is_in_copy(const char *call)
{
	char *end;
	long number = strtol(call, &end, 10);

	return end != call &&
	       (number == SYS_process_vm_readv ||
		number == SYS_process_vm_writev) &&
	       strtol(end, NULL, 16) == getpid();
}

/* Returns the thread's state in a line of /proc/PID/task/TID/stat, "311 (name)
 * S ...". The name may contain any character, parentheses included. */
static char state_in(const char *stat)
{
	const char *behind = strrchr(stat, ')');

	return behind && behind[1] == ' ' ? behind[2] : '?';
}

/* Has a freezer of control groups caught the thread? The kernel names the
 * function in which a thread sleeps. Frozen threads have the state S, or D with
 * freezers of version 1, like threads that wait inside a copy. */
static bool is_frozen(const char *wchan)
{
	return strcmp(wchan, "__refrigerator") == 0 ||
	       strcmp(wchan, "do_freezer_trap") == 0;
}

/* A thread is stopped (T) or frozen only on its way out of the kernel, so it is
 * not in a copy, although its system call still shows. */
static enum vb_whereabouts host_judge(const char *call, char state,
				      const char *wchan)
{
	if (strncmp(call, "running", 7) == 0)
		return MAY_COPY;
	if (!is_in_copy(call) || state == 'T' || is_frozen(wchan))
		return IS_ELSEWHERE;
	return state == 'R' || state == 'D' ? MAY_COPY : IS_UNSEEN;
}

static bool is_none(int rc)
{
	return rc == -ENOENT || rc == -ESRCH;
}

static enum vb_whereabouts find_thread(int tasks, const char *tid)
{
	char name[64], call[256], stat[512], wchan[64] = "";
	int rc;

	snprintf(name, sizeof(name), "%.20s/syscall", tid);
	rc = read_text(tasks, name, call, sizeof(call));
	snprintf(name, sizeof(name), "%.20s/stat", tid);
	if (is_none(read_text(tasks, name, stat, sizeof(stat))))
		/* the thread has ended, so it is in no copy */
		return IS_ELSEWHERE;
	if (rc)
		return IS_UNSEEN;
	snprintf(name, sizeof(name), "%.20s/wchan", tid);
	if (is_in_copy(call))
		(void)!read_text(tasks, name, wchan, sizeof(wchan));
	return host_judge(call, state_in(stat), wchan);
}

/* Is /proc mounted for this process's PID namespace, so that its process
 * numbers are those that this process uses? */
static bool shows_our_numbers(void)
{
	char text[24];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return strtol(text, NULL, 10) == getpid();
}

static enum vb_whereabouts host_find(void *arg, pid_t pid)
{
	enum vb_whereabouts found = IS_ELSEWHERE;
	const struct dirent *e;
	char path[40];
	DIR *tasks;

	if (!shows_our_numbers())
		return IS_UNSEEN;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		/* A process that has ended is in no copy. Its session may still
		 * be open: a child of it may have kept the socket. */
		return is_none(-errno) ? IS_ELSEWHERE : IS_UNSEEN;
	while (found != MAY_COPY && (e = readdir(tasks)))
		if (e->d_name[0] != '.')
			found = VB_MAX(found,
				       find_thread(dirfd(tasks), e->d_name));
	closedir(tasks);
	return found;
}

/* Sessions with peers, by which this program also wakes them. */

static bool host_has_hung_up(void *arg, const struct vb_peer *p)
{
	struct pollfd session = { .fd = p->session, .events = POLLRDHUP };

	return p->session >= 0 && poll(&session, 1, 0) == 1 &&
	       session.revents & (POLLHUP | POLLRDHUP | POLLERR);
}

static void host_hang_up(void *arg, const struct vb_peer *p)
{
	shutdown(p->session, SHUT_RDWR);
}

/* send() and write() are no cancellation points here, because the caller may
 * hold locks. */
static void host_wake(void *arg, const struct vb_peer *p)
{
	const uint64_t one = 1;
	int cancel = vb_cancel_off();

	/* A write to a full eventfd fails, and so does a message to a full
	 * socket, but both are readable anyway. No peer can make the message
	 * wait, since MSG_DONTWAIT belongs to this call. */
	if (p->is_self)
		(void)!write(p->wake_fd, &one, sizeof(one));
	else
		(void)send(p->session, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	vb_cancel_back(cancel);
}

const struct vb_near_world vb_near_host = {
	.now = host_now,
	.pause = host_pause,
	.random = host_random,
	.copy = host_copy,
	.find = host_find,
	.has_hung_up = host_has_hung_up,
	.hang_up = host_hang_up,
	.wake = host_wake,
};
