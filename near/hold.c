/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a peer still access our memory? Asks the kernel by /proc. */
#include "core/lock_order.h"
#include "near/hold.h"

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
#include "base/log.h"

#define ASK_AFTER                                                              \
	(2 * VB_MSEC) /* earlier, the peer is just about to finish             \
		       */
#define LATE_MOST                                                              \
	(10 * VB_MSEC) /* a late look counts for this much at most             \
			*/
#define YIELDS 100

/* What the kernel says about a thread. For a process the greatest value of its
 * threads counts. */
enum whereabouts {
	IS_ELSEWHERE, /* in no copy of our memory */
	IS_UNSEEN, /* maybe in a copy but stopped there, or /proc is closed */
	MAY_COPY,  /* it runs, or waits for a page inside a copy */
};

/*
 * What /proc says.
 */

/* Read the first bytes of a file as text, at most @room - 1. -errno. */
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

/* Does this line of /proc/PID/task/TID/syscall show a copy of our memory? "311
 * 0x4d2 ..." is a system call and its arguments, the first of which is the
 * process whose memory is copied; "running" or "-1 ..." is no system call. */
static bool is_in_copy(const char *call)
{
	char *end;
	long number = strtol(call, &end, 10);

	return end != call &&
	       (number == SYS_process_vm_readv ||
		number == SYS_process_vm_writev) &&
	       strtol(end, NULL, 16) == getpid();
}

/* The state in a line of /proc/PID/task/TID/stat, "311 (name) S ...". The name
 * may contain anything, also parentheses. */
static char state_in(const char *stat)
{
	const char *behind = strrchr(stat, ')');

	return behind && behind[1] == ' ' ? behind[2] : '?';
}

/* A thread stops (T) only on its way out of the kernel, so it is not in a copy.
 */
static enum whereabouts near_hold_judge(const char *call, char state)
{
	if (strncmp(call, "running", 7) == 0)
		return MAY_COPY;
	if (!is_in_copy(call) || state == 'T')
		return IS_ELSEWHERE;
	return state == 'R' || state == 'D' ? MAY_COPY : IS_UNSEEN;
}

static bool is_none(int rc)
{
	return rc == -ENOENT || rc == -ESRCH;
}

static enum whereabouts find_thread(int tasks, const char *tid)
{
	char name[64], call[256], stat[512];
	int rc;

	snprintf(name, sizeof(name), "%.20s/syscall", tid);
	rc = read_text(tasks, name, call, sizeof(call));
	snprintf(name, sizeof(name), "%.20s/stat", tid);
	if (is_none(read_text(tasks, name, stat, sizeof(stat))))
		return IS_ELSEWHERE; /* the thread has ended */
	return rc ? IS_UNSEEN : near_hold_judge(call, state_in(stat));
}

/* Is /proc mounted for our own PID namespace, so that process numbers mean the
 * same there? */
static bool shows_our_numbers(void)
{
	char text[24];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return strtol(text, NULL, 10) == getpid();
}

static enum whereabouts find_process(pid_t pid)
{
	enum whereabouts found = IS_ELSEWHERE;
	const struct dirent *e;
	char path[40];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = shows_our_numbers() ? opendir(path) : NULL;
	if (!tasks)
		return IS_UNSEEN;
	while (found != MAY_COPY && (e = readdir(tasks)))
		if (e->d_name[0] != '.')
			found = VB_MAX(found,
				       find_thread(dirfd(tasks), e->d_name));
	closedir(tasks);
	return found;
}

/*
 * How long to wait.
 */

/* Has the peer's last thread ended, or has it executed another program? */
static bool has_hung_up(const struct vb_peer *p)
{
	struct pollfd session = { .fd = p->session, .events = POLLRDHUP };

	return p->session >= 0 && poll(&session, 1, 0) == 1 &&
	       session.revents & (POLLHUP | POLLRDHUP | POLLERR);
}

static void near_hold_expel(const struct vb_peer *p)
{
	vb_log(LOG_WARN,
	       "near: slot %u: process %d still accesses memory whose key "
	       "was revoked %llu s ago: the session ends, using packets",
	       p->slot, p->pid, (unsigned long long)(VB_HOLD_RUNS / VB_SEC));
	shutdown(p->session, SHUT_RDWR);
}

static bool is_too_long(const struct vb_peer *p, enum whereabouts where,
			vb_time age)
{
	if (where == IS_ELSEWHERE && p->registry->is_exact)
		return true;
	if (where == IS_UNSEEN && p->registry->is_exact &&
	    age >= VB_HOLD_UNSEEN) {
		vb_log(LOG_INFO,
		       "near: slot %u: process %d may be stopped inside a copy: "
		       "not waiting for it",
		       p->slot, p->pid);
		return true;
	}
	if (age < VB_HOLD_RUNS)
		return false;
	near_hold_expel(p);
	return true;
}

static bool is_at(const struct vb_peer *p, uint32_t key, uint32_t qpn)
{
	return p->peer_hazards && atomic_load(&p->state) != PEER_GONE &&
	       vb_hazards_name(p->peer_hazards, key, qpn);
}

bool vb_hold_is_over(struct vb_peer *p, uint32_t key, uint32_t qpn, vb_time age)
{
	if (VB_LIKELY(!is_at(p, key, qpn)))
		return true;
	/* An access by a thread of this process ends within microseconds, so
	 * wait for it without a bound and without asking the kernel. */
	if (p->is_self || age < ASK_AFTER)
		return false;
	return has_hung_up(p) || is_too_long(p, find_process(p->pid), age);
}

void vb_hold_await(struct vb_peer *p, uint32_t key, uint32_t qpn)
{
	static const struct timespec moment = { .tv_nsec = 20000 },
				     longer = { .tv_nsec = 1000000 };
	vb_time last = vb_clock_read(), age = 0, now;

	vb_may_wait();
	for (unsigned turn = 0; !vb_hold_is_over(p, key, qpn, age); turn++) {
		if (turn < YIELDS)
			sched_yield();
		else
			nanosleep(age < ASK_AFTER ? &moment : &longer, NULL);
		/* Time in which this thread itself was stopped does not count
		 * against the peer. */
		now = vb_clock_read();
		age += VB_MIN(now - last, LATE_MOST);
		last = now;
	}
}
