/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repoll_create(), repoll_ctl(), repoll_wait(): epoll for sets that may contain
 * rsockets as well as other descriptors.
 *
 * All descriptors of a set are in one epoll set of the kernel. For an rsocket
 * the kernel only reports that it needs attention. An rsocket that the kernel
 * reported, or that another thread rang for, becomes hot, and repoll_wait()
 * examines the hot members only. A member that is not ready, or that is
 * edge-triggered and was reported, cools down: repoll_wait() arms it, and it
 * becomes hot when the kernel or a thread reports it again. So the cost of a
 * wait depends on the number of hot members, not on the size of the set.
 */
#include "front/rsockets/rs.h"

#include <rdma/rsocket.h>
#include <stdatomic.h>
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
	uint32_t serial;
	/* the rsocket; NULL: the descriptor is not an rsocket */
	struct rs_sock *rs;
	/* the events that the program gave to repoll_ctl() */
	struct epoll_event asked;
	struct rs_waiter waiter;
	bool hot;
	/* links in set->hot: the members to look at for events */
	struct member *next, **link;
};

struct set {
	int fd; /* the kernel's epoll set, which the program sees */
	/* an eventfd in the kernel's set, where its epoll data is 0 */
	int bell;
	_Atomic unsigned refs;
	struct set *next; /* guarded by sets_lock */
	/* a stack of waiters whose sockets have changed; see drain_rung() */
	_Atomic(struct rs_waiter *) rung;
	pthread_mutex_t lock;
	/* `lock` guards the fields below. */
	struct member **members; /* members, indexed by descriptor */
	unsigned size;
	uint32_t serial;
	/* list of the members to look at for events; *last is its end */
	struct member *hot, **last;
};

/* List of all sets, guarded by sets_lock; programs have few of them. */
static struct set *sets;
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

static void heat(struct set *s, struct member *m)
{
	if (m->hot)
		return;
	m->hot = true;
	m->next = NULL;
	m->link = s->last;
	*s->last = m;
	s->last = &m->next;
}

static void cool(struct set *s, struct member *m)
{
	if (!m->hot)
		return;
	m->hot = false;
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
	else
		s->last = m->link;
}

/* Makes the members hot whose waiters rs_ring() has pushed to s->rung;
 * rs_ring() holds the socket's lock then, but not the set's. The caller holds
 * the set's lock. */
static void drain_rung(struct set *s)
{
	struct rs_waiter *waiter = atomic_exchange(&s->rung, NULL), *next;

	for (; waiter; waiter = next) {
		next = waiter->rung_next;
		atomic_store(&waiter->rung, false);
		heat(s, VB_CONTAINER_OF(waiter, struct member, waiter));
	}
}

static struct member *find_member(const struct set *s, int fd)
{
	return fd >= 0 && (unsigned)fd < s->size ? s->members[fd] : NULL;
}

static void epoll_take_out(struct set *s, struct member *m)
{
	if (m->rs) {
		rs_lock(m->rs);
		rs_waiter_remove(&m->waiter);
		pthread_mutex_unlock(&m->rs->lock);
		drain_rung(s);
		rs_put(m->rs);
	}
	cool(s, m);
	s->members[m->fd] = NULL;
	free(m);
}

static void put_set(struct set *s)
{
	if (--s->refs)
		return;
	for (unsigned i = 0; i < s->size; i++)
		if (s->members[i])
			epoll_take_out(s, s->members[i]);
	close(s->bell);
	if (s->fd >= 0)
		close(s->fd);
	free(s->members);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

bool rs_close_set(int fd, bool number)
{
	struct set **at, *s;

	pthread_mutex_lock(&sets_lock);
	for (at = &sets; *at && (*at)->fd != fd; at = &(*at)->next)
		;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&sets_lock);
	if (s && !number) {
		pthread_mutex_lock(&s->lock);
		s->fd = -1;
		pthread_mutex_unlock(&s->lock);
	}
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
	s->last = &s->hot;
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

/* Returns the name under which the kernel reports the member. Its serial number
 * distinguishes a member from an earlier one with an equal descriptor. */
static uint64_t epoll_name_of(const struct member *m)
{
	return (uint64_t)m->serial << 32 | (uint32_t)m->fd;
}

static struct member *named(const struct set *s, uint64_t name)
{
	struct member *m = find_member(s, (int)(uint32_t)name);

	return m && m->serial == name >> 32 ? m : NULL;
}

/* Returns the events that the kernel's epoll set watches for the member. */
static struct epoll_event watched(struct member *m)
{
	struct epoll_event e = { .events = m->asked.events,
				 .data.u64 = epoll_name_of(m) };

	if (m->rs)
		e.events = m->asked.events ? EPOLLIN : 0;
	return e;
}

static int epoll_make_room(struct set *s, int fd)
{
	unsigned size = VB_MAX((unsigned)fd + 1, 2 * s->size);
	struct member **more;

	if (fd < 0)
		return -EBADF;
	if ((unsigned)fd < s->size)
		return 0;
	more = realloc(s->members, size * sizeof(struct member *));
	if (!more)
		return -ENOMEM;
	memset(more + s->size, 0, (size - s->size) * sizeof(struct member *));
	s->members = more;
	s->size = size;
	return 0;
}

/* Returns the serial number of a new member. It is never 0, because the name 0
 * belongs to the bell. */
static uint32_t next_serial(struct set *s)
{
	if (++s->serial == 0)
		s->serial = 1;
	return s->serial;
}

/* Adds a member. The kernel decides whether its set has @fd: if it accepts @fd,
 * an old member with that number stands for a descriptor that the program has
 * closed, and this function removes that member. NULL: failed, with errno. */
static struct member *epoll_enter(struct set *s, int fd, struct rs_sock *rs,
				  const struct epoll_event *asked)
{
	struct member *m = calloc(1, sizeof(*m)), *old;
	struct epoll_event e;
	int rc = m ? epoll_make_room(s, fd) : -ENOMEM;

	if (rc == 0) {
		*m = (struct member){ .fd = fd,
				      .serial = next_serial(s),
				      .rs = rs,
				      .asked = *asked };
		e = watched(m);
		rc = epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
	}
	if (rc) {
		free(m);
		errno = -rc;
		return NULL;
	}
	old = find_member(s, fd);
	if (old)
		epoll_take_out(s, old);
	s->members[fd] = m;
	return m;
}

static int epoll_add(struct set *s, int fd, const struct epoll_event *event)
{
	struct rs_sock *rs = rs_find(fd);
	struct member *m = epoll_enter(s, fd, rs, event);

	if (!m) {
		int error = errno;

		if (rs)
			rs_put(rs);
		return -error;
	}
	if (!rs)
		return 0;
	heat(s, m);
	rs_lock(rs);
	rs_waiter_add(rs, &m->waiter, s->bell, &s->rung);
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
		heat(s, m);
		(void)eventfd_write(s->bell, 1);
	}
	return watch_again(s, m);
}

static int epoll_control(struct set *s, int op, int fd,
			 const struct epoll_event *event)
{
	struct member *m = find_member(s, fd);

	if (op == EPOLL_CTL_ADD)
		return event ? epoll_add(s, fd, event) : -EFAULT;
	if (!m)
		return -ENOENT;
	if (op == EPOLL_CTL_MOD)
		return event ? modify(s, m, event) : -EFAULT;
	if (op != EPOLL_CTL_DEL)
		return -EINVAL;
	(void)epoll_ctl(s->fd, EPOLL_CTL_DEL, fd, NULL);
	epoll_take_out(s, m);
	return 0;
}

RS_EXPORT int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct set *s = find_set(epfd);
	int rc;

	if (!s)
		return rs_fail(EBADF);
	pthread_mutex_lock(&s->lock);
	rc = epoll_control(s, op, fd, event);
	pthread_mutex_unlock(&s->lock);
	put_set(s);
	return rc ? rs_fail(-rc) : 0;
}

static void leave_set(struct set *s, int fd)
{
	struct member *m;

	pthread_mutex_lock(&s->lock);
	m = find_member(s, fd);
	if (m) {
		(void)epoll_ctl(s->fd, EPOLL_CTL_DEL, fd, NULL);
		epoll_take_out(s, m);
	}
	pthread_mutex_unlock(&s->lock);
}

void rs_leave_sets(int fd)
{
	pthread_mutex_lock(&sets_lock);
	for (struct set *s = sets; s; s = s->next)
		leave_set(s, fd);
	pthread_mutex_unlock(&sets_lock);
}

/* Returns the events that the program waits for and that are true now. The
 * events of poll(2) have equal bits in epoll; 0x7fff masks the flags that only
 * epoll has. */
static uint32_t ready_now(struct member *m)
{
	struct rs_sock *rs = m->rs;
	const short asked = (short)(m->asked.events & 0x7fff);
	uint32_t ready;

	rs_lock(rs);
	rs_qp_woken(rs);
	rs->looked = 0;
	rs_look(rs);
	ready = (uint16_t)rs_ready(rs, asked);
	/* A completion that came before the arming raises no event, so examine
	 * the socket once more after arming. */
	if ((!ready || m->asked.events & EPOLLET) && rs_qp_arm(rs)) {
		rs_look(rs);
		ready = (uint16_t)rs_ready(rs, asked);
	}
	pthread_mutex_unlock(&rs->lock);
	return ready;
}

/* If the member is ready, fills in @event and returns true. */
static bool report(struct set *s, struct member *m, struct epoll_event *event)
{
	uint32_t ready = m->asked.events ? ready_now(m) : 0;

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

/* Reports up to @room hot members. A level-triggered member then moves behind
 * the other hot ones, so that these get their turn if @room is short. */
static int report_hot(struct set *s, struct epoll_event *events, int room)
{
	struct member *m, *end = NULL;
	uint32_t asked;
	int n = 0;

	while (n < room && (m = s->hot) && m != end) {
		cool(s, m);
		asked = m->asked.events;
		if (!report(s, m, &events[n]))
			continue;
		n++;
		if (asked & (EPOLLET | EPOLLONESHOT))
			continue;
		heat(s, m);
		end = end ? end : m;
	}
	return n;
}

/* Handles the kernel's reports: makes rsockets hot, and copies the reports of
 * other descriptors to @events. Returns the number of copied reports. */
static int sort(struct set *s, const struct epoll_event *said, int count,
		struct epoll_event *events)
{
	eventfd_t rings;
	int n = 0;

	for (int i = 0; i < count; i++) {
		struct member *m = named(s, said[i].data.u64);

		if (said[i].data.u64 == 0) {
			(void)eventfd_read(s->bell, &rings);
		} else if (m && m->rs) {
			heat(s, m);
		} else if (m) {
			events[n].events = said[i].events;
			events[n++].data = m->asked.data;
		}
	}
	drain_rung(s);
	return n;
}

/* Waits for events of the set. The caller holds the set's lock; this function
 * releases it while the thread sleeps. Returns the number of events, or
 * -errno. */
static int wait_in_set(struct set *s, struct epoll_event *events, int max,
		       uint64_t deadline)
{
	struct epoll_event said[AT_ONCE];
	int n, timeout, room = VB_MIN(max, AT_ONCE);

	for (;;) {
		timeout = s->hot ? 0 : rs_until(deadline);
		pthread_mutex_unlock(&s->lock);
		n = epoll_wait(s->fd, said, room, timeout);
		pthread_mutex_lock(&s->lock);
		if (n < 0)
			return -errno;
		n = sort(s, said, n, events);
		n += report_hot(s, events + n, max - n);
		if (n || (!s->hot && rs_until(deadline) == 0))
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
