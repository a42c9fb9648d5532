/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repoll: epoll's calls for sets in which there are sockets of ours as well.
 *
 * All descriptors of a set are in one epoll of the kernel's. What that says
 * of one of ours is only that it wants attention; such a member, or one that
 * another thread rang for, is hot and is looked at. A member that turns out
 * to be quiet, or is edge-triggered and has been reported, is armed and is
 * looked at no more until one of the two happens.
 */
#include "front/rsockets/rs.h"

#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"

enum { AT_ONCE = 64 };

struct member {
	int fd;
	struct rs_sock *rs; /* NULL: a descriptor like any other */
	struct epoll_event asked;
	struct rs_sleeper bed;
	bool hot;
	struct member *next;
};

struct set {
	int fd;	  /* the program's, and the kernel's */
	int bell; /* in it too, with no member */
	_Atomic unsigned refs;
	struct set *next; /* sets_lock */
	pthread_mutex_t lock;
	struct member *members; /* lock; who was reported last stands last */
};

static struct set *sets; /* sets_lock; a program has one or two */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

static struct set *find_set(int fd)
{
	struct set *s;

	pthread_mutex_lock(&sets_lock);
	for (s = sets; s && s->fd != fd; s = s->next)
		;
	if (s)
		s->refs++;
	pthread_mutex_unlock(&sets_lock);
	return s;
}

void rs_forget_sets(void)
{
	pthread_mutex_init(&sets_lock, NULL);
	sets = NULL;
}

static void take_out(struct set *s, struct member **at)
{
	struct member *m = *at;

	*at = m->next;
	if (m->rs) {
		pthread_mutex_lock(&m->rs->lock);
		rs_get_up(&m->bed);
		pthread_mutex_unlock(&m->rs->lock);
		rs_put(m->rs);
	}
	free(m);
}

static void put_set(struct set *s)
{
	if (--s->refs)
		return;
	while (s->members)
		take_out(s, &s->members);
	close(s->bell);
	close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

bool rs_close_set(int fd)
{
	struct set **at, *s;

	pthread_mutex_lock(&sets_lock);
	for (at = &sets; *at && (*at)->fd != fd; at = &(*at)->next)
		;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&sets_lock);
	if (s)
		put_set(s);
	return s != NULL;
}

static int open_set(struct set *s, int flags)
{
	struct epoll_event bell = { .events = EPOLLIN };

	s->fd = epoll_create1(flags);
	s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0 || s->bell < 0 ||
	    epoll_ctl(s->fd, EPOLL_CTL_ADD, s->bell, &bell))
		return -errno;
	return 0;
}

RS_EXPORT int repoll_create(int flags)
{
	struct set *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return rs_fail(ENOMEM);
	s->refs = 1;
	pthread_mutex_init(&s->lock, NULL);
	rc = open_set(s, flags);
	if (rc) {
		put_set(s);
		return rs_fail(-rc);
	}
	pthread_mutex_lock(&sets_lock);
	s->next = sets;
	sets = s;
	pthread_mutex_unlock(&sets_lock);
	return s->fd;
}

static struct member **find_member(struct set *s, int fd)
{
	struct member **at = &s->members;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	return at;
}

/* What the kernel watches for it. */
static struct epoll_event watched(struct member *m)
{
	struct epoll_event e = { .events = m->asked.events, .data.ptr = m };

	if (m->rs)
		e.events = m->asked.events ? EPOLLIN : 0;
	return e;
}

/* NULL: errno. A descriptor that was closed may have left a member behind:
 * the kernel knows better who is in its set. */
static struct member *enter(struct set *s, int fd, struct rs_sock *rs,
			    const struct epoll_event *asked)
{
	struct member *m = calloc(1, sizeof(*m)), **old;
	struct epoll_event e;

	if (!m)
		return NULL;
	*m = (struct member){ .fd = fd, .rs = rs, .asked = *asked };
	e = watched(m);
	if (epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &e)) {
		free(m);
		return NULL;
	}
	old = find_member(s, fd);
	if (*old)
		take_out(s, old);
	m->next = s->members;
	s->members = m;
	return m;
}

static int add(struct set *s, int fd, const struct epoll_event *event)
{
	struct rs_sock *rs = rs_find(fd);
	struct member *m = enter(s, fd, rs, event);

	if (!m) {
		int error = errno;

		if (rs)
			rs_put(rs);
		return -error;
	}
	if (!rs)
		return 0;
	m->hot = true;
	pthread_mutex_lock(&rs->lock);
	rs_lie_down(rs, &m->bed, s->bell);
	pthread_mutex_unlock(&rs->lock);
	(void)eventfd_write(s->bell, 1);
	return 0;
}

static int watch_again(struct set *s, struct member *m)
{
	struct epoll_event e = watched(m);

	return epoll_ctl(s->fd, EPOLL_CTL_MOD, m->fd, &e) ? -errno : 0;
}

static int modify(struct set *s, struct member *m,
		  const struct epoll_event *event)
{
	m->asked = *event;
	if (m->rs) {
		m->hot = true;
		(void)eventfd_write(s->bell, 1);
	}
	return watch_again(s, m);
}

static int control(struct set *s, int op, int fd,
		   const struct epoll_event *event)
{
	struct member **at = find_member(s, fd);

	if (op == EPOLL_CTL_ADD)
		return event ? add(s, fd, event) : -EFAULT;
	if (!*at)
		return -ENOENT;
	if (op == EPOLL_CTL_MOD)
		return event ? modify(s, *at, event) : -EFAULT;
	if (op != EPOLL_CTL_DEL)
		return -EINVAL;
	(void)epoll_ctl(s->fd, EPOLL_CTL_DEL, fd, NULL);
	take_out(s, at);
	return 0;
}

RS_EXPORT int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct set *s = find_set(epfd);
	int rc;

	if (!s)
		return rs_fail(EBADF);
	pthread_mutex_lock(&s->lock);
	rc = control(s, op, fd, event);
	pthread_mutex_unlock(&s->lock);
	put_set(s);
	return rc ? rs_fail(-rc) : 0;
}

static void leave_set(struct set *s, int fd)
{
	struct member **at;

	pthread_mutex_lock(&s->lock);
	at = find_member(s, fd);
	if (*at) {
		(void)epoll_ctl(s->fd, EPOLL_CTL_DEL, fd, NULL);
		take_out(s, at);
	}
	pthread_mutex_unlock(&s->lock);
}

/* A socket that the program has closed leaves its sets. */
void rs_leave_sets(int fd)
{
	pthread_mutex_lock(&sets_lock);
	for (struct set *s = sets; s; s = s->next)
		leave_set(s, fd);
	pthread_mutex_unlock(&sets_lock);
}

/* poll's bits are epoll's, but for those that only epoll has. */
static uint32_t ready_now(struct member *m)
{
	struct rs_sock *rs = m->rs;
	uint32_t ready;

	pthread_mutex_lock(&rs->lock);
	rs_conduit_woken(rs);
	rs->looked = 0;
	m->bed.rung = false;
	rs_look(rs);
	ready = (uint16_t)rs_ready(rs, (short)(m->asked.events & 0x7fff));
	if (!ready && rs_conduit_arm(rs)) {
		rs_look(rs);
		ready = (uint16_t)rs_ready(rs,
					   (short)(m->asked.events & 0x7fff));
	}
	if (ready && (m->asked.events & EPOLLET))
		(void)rs_conduit_arm(rs);
	pthread_mutex_unlock(&rs->lock);
	return ready;
}

/* One that is to be reported, or not hot any more. */
static bool report(struct set *s, struct member *m, struct epoll_event *event)
{
	uint32_t ready = m->asked.events ? ready_now(m) : 0;

	if (!ready || (m->asked.events & (EPOLLET | EPOLLONESHOT)))
		m->hot = false;
	if (!ready)
		return false;
	event->events = ready;
	event->data = m->asked.data;
	if (m->asked.events & EPOLLONESHOT) {
		m->asked.events = 0;
		(void)watch_again(s, m);
	}
	return true;
}

/* Who was reported goes behind the others, or they might never be. */
static int report_hot(struct set *s, struct epoll_event *events, int room)
{
	struct member **at = &s->members, *m, *told = NULL, **last = &told;
	int n = 0;

	while ((m = *at)) {
		if (n == room || !m->hot || !report(s, m, &events[n])) {
			at = &m->next;
			continue;
		}
		n++;
		*at = m->next;
		m->next = NULL;
		*last = m;
		last = &m->next;
	}
	*at = told;
	return n;
}

static void mark_rung(struct set *s)
{
	eventfd_t count;

	(void)eventfd_read(s->bell, &count);
	for (struct member *m = s->members; m; m = m->next)
		if (m->rs && m->bed.rung)
			m->hot = true;
}

/* A member may have gone since the kernel named it. */
static bool is_member(const struct set *s, const struct member *m)
{
	for (const struct member *i = s->members; i; i = i->next)
		if (i == m)
			return true;
	return false;
}

/* Sorts what the kernel said; returns how many are the program's. */
static int sort(struct set *s, const struct epoll_event *said, int count,
		struct epoll_event *events)
{
	int n = 0;

	for (int i = 0; i < count; i++) {
		struct member *m = said[i].data.ptr;

		if (!m) {
			mark_rung(s);
		} else if (is_member(s, m) && m->rs) {
			m->hot = true;
		} else if (is_member(s, m)) {
			events[n].events = said[i].events;
			events[n++].data = m->asked.data;
		}
	}
	return n;
}

static bool any_hot(const struct set *s)
{
	for (const struct member *m = s->members; m; m = m->next)
		if (m->hot)
			return true;
	return false;
}

/* With the set's lock, which is given up while asleep; -errno. */
static int wait_in_set(struct set *s, struct epoll_event *events, int max,
		       uint64_t deadline)
{
	struct epoll_event said[AT_ONCE];
	int n, timeout, room = VB_MIN(max, AT_ONCE);

	for (;;) {
		timeout = any_hot(s) ? 0 : rs_until(deadline);
		pthread_mutex_unlock(&s->lock);
		n = epoll_wait(s->fd, said, room, timeout);
		pthread_mutex_lock(&s->lock);
		if (n < 0)
			return -errno;
		n = sort(s, said, n, events);
		n += report_hot(s, events + n, max - n);
		if (n || (!any_hot(s) && rs_until(deadline) == 0))
			return n;
	}
}

RS_EXPORT int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
			  int timeout)
{
	struct set *s = find_set(epfd);
	uint64_t deadline = UINT64_MAX;
	int n;

	if (!s)
		return rs_fail(EBADF);
	if (timeout >= 0)
		deadline = vb_clock_read() + (uint64_t)timeout * VB_MSEC;
	pthread_mutex_lock(&s->lock);
	n = maxevents > 0 ? wait_in_set(s, events, maxevents, deadline)
			  : -EINVAL;
	pthread_mutex_unlock(&s->lock);
	put_set(s);
	return n < 0 ? rs_fail(-n) : n;
}
