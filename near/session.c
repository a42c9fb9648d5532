/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Introductions: two programs open a session, a UNIX socket between their
 * engine threads, and exchange the descriptors that a lane needs. Each program
 * listens on the abstract name of its slot (broker/slots.c). The calling
 * program brings the lane:
 *
 * 	HELLO	from the caller: its registry and the lane
 * 	WELCOME	from the called program: its registry, and whether it can
 * 		access the caller's memory
 * 	READY	from the caller: whether it can access the called
 * 		program's memory
 *
 * When both call at once, the call from the lower slot counts, and the other
 * caller is answered with CROSSED. When one program cannot access the memory of
 * the other, both keep the session and use packets until it ends.
 *
 * A program whose peer's engine thread sleeps sends WAKE by the session. A
 * descriptor that several programs share would not do: each of them could drain
 * or fill it, or let it block the others, which may hold locks.
 *
 * A program whose first device is no RoCE one chooses a slot itself, and gets
 * a second one from the broker with its first RoCE device
 * (engine/transport_mux.c). Its sessions are those of the first slot. Each
 * message tells the sender's second slot; ALSO tells it to peers that have a
 * session already; and a call to the second slot is answered with ELSEWHERE,
 * upon which the caller calls the first slot.
 */
#include "near/session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/shm.h"

#define SESSION_MAGIC 0x76626e72 /* the text "vbnr" */
#define BACKLOG	      64
#define MOST_FDS      2
/* the most events in one vb_near_meet(), because the engine thread has other
 * work */
#define MEET_EVENTS 64

enum session_msg_kind {
	SESSION_HELLO,
	SESSION_WELCOME,
	SESSION_READY,
	SESSION_CROSSED,
	SESSION_ELSEWHERE,
	SESSION_ALSO,
	SESSION_WAKE, /* a message of one byte, which host_wake() sends */
};

struct session_msg {
	uint32_t magic;
	uint16_t version, kind;
	/* the slot of the sender, and its second slot or 0 */
	uint16_t slot, also;
	/* In WELCOME and READY: can the sender access the receiver's memory? */
	uint16_t reaches;
	uint16_t zero;
};

/* A message as it was received. The receiver closes the descriptors that are
 * not -1. */
struct parcel {
	struct session_msg m;
	int fds[MOST_FDS];
	unsigned count;
};

static int send_session_msg(struct vb_near *n, const struct vb_peer *p,
			    enum session_msg_kind kind, bool reaches,
			    const int *fds, unsigned count)
{
	const struct session_msg m = {
		.magic = SESSION_MAGIC,
		.version = VB_NEAR_VERSION,
		.kind = kind,
		.slot = (uint16_t)n->c.slot,
		.also = (uint16_t)atomic_load(&n->also),
		.reaches = reaches,
	};

	return vb_fdmail_send(p->session, &m, sizeof(m), fds, count,
			      MSG_DONTWAIT);
}

/* Receive a message. 1: *@in has a message; 0: none has come yet; -errno: the
 * session is over. */
static int get_parcel(const struct vb_peer *p, struct parcel *in)
{
	ssize_t n;

	in->count = MOST_FDS;
	n = vb_fdmail_recv(p->session, &in->m, sizeof(in->m), in->fds,
			   &in->count, MSG_DONTWAIT);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	if (n == 1) {
		in->m.kind = SESSION_WAKE;
		return 1;
	}
	if (n == (ssize_t)sizeof(in->m) && in->m.magic == SESSION_MAGIC &&
	    in->m.version == VB_NEAR_VERSION)
		return 1;
	vb_fdmail_close(in->fds, in->count);
	return -EPROTO;
}

/* Is the peer a process of this program's user, in this program's PID
 * namespace? Then *@pid is the peer's process number. */
static bool near_is_ours(int fd, pid_t *pid)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
	    who.uid != geteuid() || who.pid <= 0)
		return false;
	*pid = who.pid;
	return true;
}

static bool watch_name(struct vb_near *n, int fd, void *as)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = as };

	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void listen_again(struct vb_near *n)
{
	if (n->sessions >= n->max_sessions)
		return;
	if (!n->listens)
		n->listens = watch_name(n, n->c.name_fd, NULL);
	if (!n->also_listens && atomic_load(&n->also))
		n->also_listens = watch_name(n, n->also_fd, &n->also_fd);
}

/* Stop listening: there are enough sessions, or no descriptors are left.
 * Programs that call from now on use packets. */
static void listen_no_more(struct vb_near *n)
{
	if (n->listens)
		epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, n->c.name_fd, NULL);
	if (n->also_listens)
		epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, n->also_fd, NULL);
	n->listens = n->also_listens = false;
}

static int watch_session(struct vb_near *n, struct vb_peer *p)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP,
				  .data.ptr = p };

	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, p->session, &ev) < 0)
		return -errno;
	vb_fork_closes(p->session); /* a child of fork closes this descriptor */
	n->sessions++;
	return 0;
}

static void forget_caller(struct vb_near *n, struct vb_peer *p)
{
	struct vb_peer **at = &n->callers;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

/* End the session with @p, and release the reference that the table of peers or
 * the list of programs without HELLO (near->callers) has. */
static void near_drop(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	n->shut_out -= p->shut_out;
	forget_caller(n, p);
	vb_session_end(n, p, now);
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, p->session, NULL) == 0)
		n->sessions--;
	n->world->hang_up(n->world->arg, p);
	vb_peer_put(p);
	listen_again(n);
}

/*
 * Calling another program.
 */

static int connect_slot(unsigned slot, int *out)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	struct sockaddr_un a;
	socklen_t len = vb_ipc_slot_address(&a, slot);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

static int offer_session(struct vb_near *n, struct vb_peer *p)
{
	int fds[MOST_FDS] = { n->registry_fd, -1 };
	void *lane;
	int rc = vb_shm_create("verbena-lane", sizeof(struct vb_lane), &fds[1],
			       &lane);

	if (rc)
		return rc;
	vb_peer_join(p, lane, 0);
	rc = send_session_msg(n, p, SESSION_HELLO, false, fds, MOST_FDS);
	close(fds[1]);
	return rc;
}

static int call_peer(struct vb_near *n, struct vb_peer *p)
{
	int rc = connect_slot(p->slot, &p->session);

	if (rc == 0 && !near_is_ours(p->session, &p->pid))
		rc = -EPERM;
	if (rc == 0)
		rc = offer_session(n, p);
	return rc ? rc : watch_session(n, p);
}

static void call_slot(struct vb_near *n, unsigned slot)
{
	struct vb_peer *p = NULL;
	int rc = -EMFILE;

	if (n->sessions < n->max_sessions) {
		p = vb_peer_create(slot, n->world, n->helper);
		rc = p ? call_peer(n, p) : -ENOMEM;
	}
	if (rc == 0) {
		atomic_store(&p->state, PEER_CALLED);
		vb_session_enter(n, p);
		return;
	}
	vb_log(LOG_INFO, "near: using packets to slot %u: %s", slot,
	       strerror(-rc));
	vb_session_note_refusal(n, slot);
	vb_peer_put(p);
}

/*
 * Being called by another program.
 */

static void take_caller(struct vb_near *n, int fd, bool strayed)
{
	struct vb_peer *p = vb_peer_create(0, n->world, n->helper);

	if (!p) {
		close(fd);
		return;
	}
	p->session = fd;
	p->strayed = strayed;
	atomic_store(&p->state, PEER_CALLING);
	if (!near_is_ours(fd, &p->pid) || watch_session(n, p)) {
		vb_peer_put(p);
		return;
	}
	p->next = n->callers;
	n->callers = p;
}

/* Accept callers. @strayed: they connect to this program's second slot. */
static void accept_callers(struct vb_near *n, bool strayed)
{
	int name = strayed ? n->also_fd : n->c.name_fd, fd;

	if (n->sessions >= n->max_sessions) {
		listen_no_more(n);
		return;
	}
	/* The broker made the socket, and O_NONBLOCK belongs to all who have
	 * it: a process that has kept the socket can clear the flag and accept
	 * the caller first, and accept4() would wait for another caller. */
	if (fcntl(name, F_SETFL, O_NONBLOCK) < 0)
		return;
	fd = accept4(name, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		take_caller(n, fd, strayed);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		listen_no_more(n);
}

static int take_lane(struct vb_peer *p, int fd)
{
	void *lane;
	int rc = vb_shm_map(fd, sizeof(struct vb_lane), true, &lane);

	if (rc == 0)
		vb_peer_join(p, lane, 1);
	return rc;
}

/* Is the call of @p to be refused? Yes if this program's own call is under way
 * and its slot is lower, or if @other is a session with the program of @p,
 * which accepted this program's call before it called. */
static bool is_crossed(const struct vb_near *n, const struct vb_peer *p,
		       const struct vb_peer *other)
{
	if (atomic_load(&other->state) == PEER_CALLED)
		return n->c.slot < p->slot;
	return other->registry->nonce == p->registry->nonce;
}

/* Can @p enter the table by its slot? True: no other session is there (any
 * more). False: the other session stays, and @p was told so. */
static bool takes_its_slot(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	struct vb_peer *other = n->peers[p->slot];

	if (!other)
		return true;
	if (is_crossed(n, p, other)) {
		(void)send_session_msg(n, p, SESSION_CROSSED, false, NULL, 0);
		return false;
	}
	/* This program's own call does not count, or @other was an earlier
	 * program that had this slot. */
	near_drop(n, other, now);
	return true;
}

static int note_reach(struct vb_near *n, struct vb_peer *p, bool reach,
		      enum vb_peer_state if_so)
{
	if (!reach) {
		vb_log(LOG_INFO,
		       "near: using packets to slot %u: one of the two "
		       "programs may not access the memory of the other",
		       p->slot);
		vb_session_set_state(n, p, PEER_DENIED);
		return 0;
	}
	vb_session_set_state(n, p, if_so);
	return 0;
}

/* May @p reach this program's memory, as far as this program can tell? Not
 * while an earlier session with the same slot has a copy under way: so there
 * are never more such sessions than slots. When that copy has ended, the
 * session with @p ends, too (let_in_anew()). */
static bool near_lets_in(struct vb_near *n, struct vb_peer *p)
{
	vb_session_see_off(n, false);
	p->shut_out = n->leaving[p->slot] != NULL;
	n->shut_out += p->shut_out;
	return !p->shut_out && vb_registry_is_open(p->registry, p->pid);
}

static int on_hello(struct vb_near *n, struct vb_peer *p, struct parcel *in,
		    vb_time now)
{
	bool reach;
	int rc;

	if (in->m.kind != SESSION_HELLO || in->count != MOST_FDS ||
	    in->m.slot == 0 || in->m.slot >= VB_SLOTS ||
	    vb_near_is_own(n, in->m.slot))
		return -EPROTO;
	if (p->strayed) {
		(void)send_session_msg(n, p, SESSION_ELSEWHERE, false, NULL, 0);
		return -EXDEV;
	}
	p->slot = in->m.slot;
	rc = vb_registry_map(in->fds[0], p->slot, &p->registry);
	if (rc == 0)
		rc = take_lane(p, in->fds[1]);
	if (rc)
		return rc;
	if (!takes_its_slot(n, p, now))
		return -EALREADY;
	forget_caller(n, p);
	reach = near_lets_in(n, p);
	/* Enter the table before WELCOME is sent: from then on the peer can
	 * access this program's memory, and vb_near_await() must find the
	 * peer. */
	vb_session_enter(n, p);
	vb_session_note_also(n, p, in->m.also);
	(void)note_reach(n, p, reach, PEER_MET);
	return send_session_msg(n, p, SESSION_WELCOME, reach, &n->registry_fd,
				1);
}

static int come_up(struct vb_near *n, struct vb_peer *p, bool reach)
{
	int rc;

	if (reach)
		vb_near_add(n, p);
	rc = note_reach(n, p, reach, PEER_UP);
	/* The peer may have written to its lane, and rung the bell, before this
	 * program knew of the lane. A thread that woke up then saw an empty
	 * lane and sleeps again, so wake it once more. */
	vb_bell_wake(vb_near_bell(n));
	return rc;
}

/* The program that this one called by slot @first answers that it is known by
 * another slot. This is believed only if the program at that slot says that it
 * has both slots; then use the session by that slot, or call it. */
static void call_elsewhere(struct vb_near *n, unsigned first,
			   const struct session_msg *m)
{
	struct vb_peer *there = NULL;

	if (m->slot == 0 || m->slot >= VB_SLOTS || m->also != first ||
	    vb_near_is_own(n, m->slot)) {
		vb_session_note_refusal(n, first);
		return;
	}
	vb_mutex_lock(&n->lock);
	there = n->peers[m->slot];
	if (!there) {
		n->calls[m->slot].sent_from = (uint16_t)first;
		n->calls[m->slot].wanted = n->any_wanted = true;
	}
	vb_mutex_unlock(&n->lock);
	if (!there)
		return;
	/* No lock is needed: only this thread removes peers from the table. */
	vb_session_note_also(n, there, first);
	if (n->peers[first] != there)
		vb_session_note_refusal(n, first);
}

static int on_welcome(struct vb_near *n, struct vb_peer *p, struct parcel *in,
		      vb_time now)
{
	unsigned first = p->slot;
	bool reach;
	int rc;

	if (in->m.kind == SESSION_ELSEWHERE) {
		near_drop(n, p, now);
		call_elsewhere(n, first, &in->m);
		return 0;
	}
	if (in->m.kind == SESSION_CROSSED) {
		/* The peer's own call is on its way to this program. */
		near_drop(n, p, now);
		return 0;
	}
	if (in->m.kind != SESSION_WELCOME || in->count != 1 ||
	    in->m.slot != p->slot)
		return -EPROTO;
	rc = vb_registry_map(in->fds[0], p->slot, &p->registry);
	if (rc)
		return rc;
	vb_session_note_also(n, p, in->m.also);
	reach = in->m.reaches && near_lets_in(n, p);
	rc = send_session_msg(n, p, SESSION_READY, reach, NULL, 0);
	return rc ? rc : come_up(n, p, reach);
}

static int on_ready(struct vb_near *n, struct vb_peer *p, struct parcel *in)
{
	if (in->m.kind != SESSION_READY || in->m.slot != p->slot)
		return -EPROTO;
	vb_session_note_also(n, p, in->m.also);
	return come_up(n, p, in->m.reaches);
}

static int on_parcel(struct vb_near *n, struct vb_peer *p, struct parcel *in,
		     vb_time now)
{
	enum vb_peer_state state = atomic_load(&p->state);

	if (in->m.kind == SESSION_ALSO && in->m.slot == p->slot) {
		vb_session_note_also(n, p, in->m.also);
		return 0;
	}
	/* The engine thread has woken, and serves the lanes in any case. */
	if (in->m.kind == SESSION_WAKE)
		return 0;
	switch (state) {
	case PEER_CALLED:
		return on_welcome(n, p, in, now);
	case PEER_CALLING:
		return on_hello(n, p, in, now);
	case PEER_MET:
		return on_ready(n, p, in);
	/* This program cannot reach the caller, which sends READY all the
	 * same. */
	case PEER_DENIED:
		return in->m.kind == SESSION_READY ? 0 : -EPROTO;
	/* the introduction is over, so no further message is allowed */
	default:
		return -EPROTO;
	}
}

static void hear(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	bool ours = atomic_load(&p->state) == PEER_CALLED;
	unsigned slot = p->slot;
	struct parcel in;
	int rc = get_parcel(p, &in);

	if (rc > 0) {
		rc = on_parcel(n, p, &in, now);
		for (unsigned i = 0; i < in.count; i++)
			if (in.fds[i] >= 0)
				close(in.fds[i]);
	}
	if (rc == 0)
		return;
	vb_log(LOG_DEBUG, "near: slot %u: the session has ended: %s", slot,
	       strerror(-rc));
	near_drop(n, p, now);
	if (ours)
		vb_session_note_refusal(n, slot);
}

/* A session uses packets because the peer had a copy under way in an earlier
 * one. That copy has ended: end this session, so that the next connection
 * between the two programs opens another. Connections that use packets already
 * do not change. */
static void let_in_anew(struct vb_near *n, vb_time now)
{
	for (unsigned i = 0; n->shut_out && i < VB_SLOTS; i++) {
		struct vb_peer *p = n->peers[i];

		if (!p || p->slot != i || !p->shut_out || n->leaving[i])
			continue;
		near_drop(n, p, now);
		vb_session_note_refusal(n, i);
	}
}

/* No lock is needed: only this thread changes the two numbers. */
bool VB_UNCHECKED vb_near_sees_off(const struct vb_near *n)
{
	return n->leaving_count || n->shut_out;
}

void vb_near_meet(struct vb_near *n, vb_time now)
{
	struct epoll_event ev;
	unsigned slot;

	vb_session_see_off(n, false);
	let_in_anew(n, now);
	for (unsigned i = 0; i < MEET_EVENTS; i++) {
		/* Fetch one event at a time: serving one session can end
		 * another, whose event would then point to freed memory. */
		if (epoll_wait(n->epoll_fd, &ev, 1, 0) != 1)
			break;
		if (!ev.data.ptr)
			accept_callers(n, false);
		else if (ev.data.ptr == &n->also_fd)
			accept_callers(n, true);
		else
			hear(n, ev.data.ptr, now);
	}
	while (vb_session_next_wanted(n, &slot))
		call_slot(n, slot);
}

/*
 * Beginning and end.
 */

static int begin_listening(int fd)
{
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

/* The engine thread does not run, so the table is read without the lock. */
int vb_session_also(struct vb_near *n)
{
	int rc = begin_listening(n->also_fd);

	if (rc)
		return rc;
	listen_again(n);
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i] && n->peers[i]->slot == i &&
		    atomic_load(&n->peers[i]->state) != PEER_CALLED)
			(void)send_session_msg(n, n->peers[i], SESSION_ALSO,
					       false, NULL, 0);
	return 0;
}

int vb_session_init(struct vb_near *n)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	int rc;

	if (!vb_registry_is_open(n->registry, getpid()))
		/* the memory of another program would be closed as well */
		return -EPERM;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	/* A session needs a descriptor; most descriptors are left to the
	 * program. */
	n->max_sessions = (unsigned)VB_MIN(limit.rlim_cur / 8, VB_SLOTS);
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->epoll_fd < 0)
		return -errno;
	rc = begin_listening(n->c.name_fd);
	if (rc) {
		close(n->epoll_fd);
		return rc;
	}
	listen_again(n);
	return 0;
}

void vb_session_fini(struct vb_near *n, vb_time now)
{
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i])
			near_drop(n, n->peers[i], now);
	while (n->callers)
		near_drop(n, n->callers, now);
	close(n->epoll_fd);
}
