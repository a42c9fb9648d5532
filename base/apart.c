/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/apart.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/sync.h"
#include "base/thread.h"

#define TICK_NS 1000000
/* How many calls of close() may wait at a time: for files of one untrusted
 * owner, of all untrusted owners together, and, counted apart, of trusted
 * owners. */
#define MOST_OF_ONE	8
#define MOST_OF_ALL	64
#define MOST_OF_TRUSTED 64
/* Number of entries of @places. It exceeds the sum of the limits above: while
 * the limits allow one more close, the process receives a message, and the
 * message may bring several descriptors. */
#define PLACES 160
/* the most threads of vb_apart_drop() that may wait at a time */
#define MOST_DROPS 32
/* the most unread messages that are looked at when a socket is closed; a local
 * socket's buffer holds some 280 */
#define MOST_MAIL 512

/* Each thread has a timer of its own. The timer's signals interrupt the system
 * calls in which the thread waits, which then return EINTR. */
static _Thread_local struct {
	timer_t timer;
	bool made;
} ticks;
/* One entry for each close() that waits: its owner, plus 1; 0: the entry is
 * free. */
static _Atomic uint64_t places[PLACES];
static _Atomic unsigned drops;

/* In a child of fork, count no close() as waiting: the threads that called
 * close() do not exist in the child. */
static void apart_begin_anew(void)
{
	for (unsigned i = 0; i < PLACES; i++)
		atomic_store(&places[i], 0);
	atomic_store(&drops, 0);
}
VB_FORGET_AT_FORK(apart_begin_anew)

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

int vb_apart_run(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = vb_thread_start(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -rc;
}

/* Descriptors that a thread closes. */
struct load {
	_Atomic uint64_t *place;
	unsigned count;
	int fds[];
};

static void *close_load(void *arg)
{
	struct load *load = arg;

	while (load->count-- > 0)
		close(load->fds[load->count]);
	if (load->place)
		atomic_store(load->place, 0);
	else
		atomic_fetch_sub(&drops, 1);
	free(load);
	return NULL;
}

/* If no thread can start, the descriptors stay open, and count as a close that
 * waits for ever. So the limits hold for these, too. */
static void close_in_thread(_Atomic uint64_t *place, const int *fds,
			    unsigned count)
{
	struct load *load = malloc(sizeof(*load) + count * sizeof(fds[0]));

	if (load) {
		load->place = place;
		load->count = count;
		memcpy(load->fds, fds, count * sizeof(fds[0]));
	}
	if (load && vb_apart_run(close_load, load) == 0)
		return;
	free(load);
	vb_log(LOG_WARN, "no thread to close a file that another program sent");
}

/* Is @fd a socket? This calls getsockopt(), because fstat() would ask the file
 * system of @fd, which may never answer. */
static bool is_socket(int fd)
{
	socklen_t len = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

static _Atomic uint64_t *take_apart_place(uint64_t owner)
{
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&places[i], &none,
						   owner + UINT64_C(1)))
			return &places[i];
	}
	return NULL;
}

void vb_apart_close(const int *fds, unsigned count, uint64_t owner)
{
	while (count-- > 0) {
		_Atomic uint64_t *place;

		if (is_socket(fds[count])) {
			close(fds[count]);
			continue;
		}
		place = take_apart_place(owner);
		/* NULL only if the caller has ignored vb_apart_has_room(). */
		if (place)
			close_in_thread(place, &fds[count], 1);
	}
}

bool vb_apart_has_room(uint64_t owner)
{
	const uint64_t trusted = VB_APART_TRUSTED + UINT64_C(1);
	unsigned own = 0, all = 0, of_trusted = 0;

	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t has = atomic_load(&places[i]);

		own += has == owner + UINT64_C(1);
		of_trusted += has == trusted;
		all += has && has != trusted;
	}
	if (owner == VB_APART_TRUSTED)
		return of_trusted < MOST_OF_TRUSTED;
	return own < MOST_OF_ONE && all < MOST_OF_ALL;
}

void vb_apart_drop(const int *fds, unsigned count)
{
	if (count == 0)
		return;
	atomic_fetch_add(&drops, 1);
	close_in_thread(NULL, fds, count);
}

bool vb_apart_may_drop(void)
{
	return atomic_load(&drops) < MOST_DROPS;
}

/* What recvmsg() tells of the next unread message of a socket: there is none;
 * it has no descriptors; it may have some. */
enum mail { MAIL_NONE, MAIL_PLAIN, MAIL_UNKNOWN };

/*
 * Look at the next unread message of @fd, which has SO_PASSCRED: so each message
 * has control data, and the end of file has none. There is room for credentials
 * only, so MSG_CTRUNC reports descriptors, and none is received.
 */
static enum mail next_mail(int fd)
{
	char control[CMSG_SPACE(sizeof(struct ucred))], byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 || m.msg_flags & MSG_CTRUNC)
		return MAIL_UNKNOWN;
	return n > 0 || m.msg_controllen > 0 ? MAIL_PLAIN : MAIL_NONE;
}

/*
 * Take the messages of @fd that have no descriptors, which is no work that can
 * wait. True: the socket is empty. @fd was shut down, so no message comes any
 * more.
 */
static bool is_emptied(int fd)
{
	static const int on = 1;
	enum mail mail;
	char byte;

	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return false;
	mail = next_mail(fd);
	/* Linux may report once that the peer has closed with unread
	 * messages. */
	if (mail == MAIL_UNKNOWN && errno == ECONNRESET)
		mail = next_mail(fd);
	for (unsigned i = 0; i < MOST_MAIL && mail == MAIL_PLAIN; i++) {
		if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0)
			return false;
		mail = next_mail(fd);
	}
	return mail == MAIL_NONE;
}

/* The caller may hold a lock, so no call here is a cancellation point. */
void vb_apart_hang_up(int fd)
{
	int cancel = vb_cancel_off();

	/* No message comes after this. */
	shutdown(fd, SHUT_RDWR);
	if (is_emptied(fd))
		close(fd);
	else
		vb_apart_drop(&fd, 1);
	vb_cancel_back(cancel);
}
