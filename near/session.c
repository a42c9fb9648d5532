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

#include "base/apart.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "base/shm.h"

#define SESSION_MAGIC 0x76626e72 /* the text "vbnr" */
/* Each program of the host may call at once, as the ranks of an MPI job do. */
#define BACKLOG	      VB_SLOTS
#define HELLO_FDS     2
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

/* A message as it was received. What takes a descriptor closes it, and stores
 * -1; drop_rest() closes the others. */
struct parcel {
	struct session_msg m;
	int fds[VB_FDMAIL_MOST];
	unsigned count;
};

static bool is_asked_for(const struct parcel *in)
{
	return in->count == 0 ||
	       (in->m.kind == SESSION_HELLO && in->count == HELLO_FDS) ||
	       (in->m.kind == SESSION_WELCOME && in->count == 1);
}

/* Close the descriptors that nothing took, so they may be of any kind. True:
 * there were some. */
static bool drop_rest(struct parcel *in)
{
	unsigned rest = 0;

	for (unsigned i = 0; i < in->count; i++)
		if (in->fds[i] >= 0)
			in->fds[rest++] = in->fds[i];
	vb_apart_drop(in->fds, rest);
	in->count = 0;
	return rest > 0;
}

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
static int get_parcel(struct vb_peer *p, struct parcel *in)
{
	ssize_t n;

	in->count = VB_COUNT(in->fds);
	vb_mutex_lock(&p->ears);
	n = vb_fdmail_take(p->session, &in->m, sizeof(in->m), in->fds,
			   &in->count, MSG_DONTWAIT);
	vb_mutex_unlock(&p->ears);
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
	return -EPROTO;
}

/* End the session with @p, and release the reference that the table of peers or
 * the list of programs without HELLO (near->callers) has. */
static void near_drop(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	n->shut_out -= p->shut_out;
	vb_callers_forget(n, p);
	if (atomic_load(&p->expelled))
		vb_session_outlaw(n, p);
	vb_proof_leave(n, p);
	vb_session_end(n, p, now);
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, p->session, NULL) == 0)
		n->sessions--;
	n->world->hang_up(n->world->arg, p);
	vb_peer_put(p);
	vb_callers_listen(n);
}

/*
 * Calling another program.
 */

static int offer_session(struct vb_near *n, struct vb_peer *p)
{
	int fds[HELLO_FDS] = { n->registry_fd, -1 };
	void *lane;
	int rc = vb_shm_create("verbena-lane", sizeof(struct vb_lane), &fds[1],
			       &lane);

	if (rc)
		return rc;
	vb_peer_join(p, lane, 0);
	rc = send_session_msg(n, p, SESSION_HELLO, false, fds, HELLO_FDS);
	close(fds[1]);
	return rc;
}

static int call_peer(struct vb_near *n, struct vb_peer *p)
{
	int rc = vb_session_connect(p->slot, &p->session);

	if (rc == 0)
		rc = vb_session_identify(n, p);
	if (rc == 0)
		rc = offer_session(n, p);
	return rc ? rc : vb_session_watch(n, p);
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

/* Memory that could be mapped is a memfd, whose close() waits for nobody. */
static void close_memory(struct parcel *in, unsigned i)
{
	close(in->fds[i]);
	in->fds[i] = -1;
}

/* -EBADMSG: the descriptor is no memory of the kind that programs send. */
static int take_registry(struct vb_peer *p, struct parcel *in)
{
	int rc = vb_registry_map(in->fds[0], p->slot, &p->registry);

	if (rc == 0)
		close_memory(in, 0);
	return rc == -EPROTO ? -EBADMSG : rc;
}

static int take_lane(struct vb_peer *p, struct parcel *in)
{
	void *lane;
	int rc = vb_shm_map(in->fds[1], sizeof(struct vb_lane), true, &lane);

	if (rc)
		return rc == -EPROTO ? -EBADMSG : rc;
	vb_peer_join(p, lane, 1);
	close_memory(in, 1);
	return 0;
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

/* May @p reach this program's memory, as far as this program can tell? Not a
 * process that was expelled, and not while an earlier session with
 * the same slot has a copy under way: so there are never more such sessions
 * than slots. When that copy has ended, the session with @p ends, too
 * (let_in_anew()). */
static bool near_lets_in(struct vb_near *n, struct vb_peer *p)
{
	vb_session_see_off(n, false);
	p->shut_out = n->leaving[p->slot] != NULL;
	n->shut_out += p->shut_out;
	return !p->shut_out && !vb_session_is_outlaw(n, p);
}

static int on_hello(struct vb_near *n, struct vb_peer *p, struct parcel *in,
		    vb_time now)
{
	int rc;

	if (in->m.kind != SESSION_HELLO || in->count != HELLO_FDS ||
	    in->m.slot == 0 || in->m.slot >= VB_SLOTS ||
	    vb_near_is_own(n, in->m.slot))
		return -EPROTO;
	if (p->strayed) {
		(void)send_session_msg(n, p, SESSION_ELSEWHERE, false, NULL, 0);
		return -EXDEV;
	}
	/* A process could otherwise take the connections of another one. */
	if (!vb_session_has_slot(p, in->m.slot))
		return -EPERM;
	p->slot = in->m.slot;
	p->claims_also = in->m.also;
	rc = take_registry(p, in);
	if (rc == 0)
		rc = take_lane(p, in);
	return rc ? rc : vb_proof_begin(n, p, now);
}

/* The caller @p is known: enter it into the table and send WELCOME. */
static int admit_caller(struct vb_near *n, struct vb_peer *p, bool reach,
			vb_time now)
{
	if (!takes_its_slot(n, p, now))
		return -EALREADY;
	vb_callers_forget(n, p);
	reach = near_lets_in(n, p) && reach;
	/* Enter the table before WELCOME is sent: from then on the peer can
	 * access this program's memory, and vb_near_await() must find the
	 * peer. */
	vb_session_enter(n, p);
	vb_session_note_also(n, p, p->claims_also);
	(void)note_reach(n, p, reach, PEER_MET);
	return send_session_msg(n, p, SESSION_WELCOME, reach, &n->registry_fd,
				1);
}

/* The caller has added the lane of @p to those that are processed, if @reach.
 */
static int come_up(struct vb_near *n, struct vb_peer *p, bool reach)
{
	int rc = note_reach(n, p, reach, PEER_UP);

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

/* The called program @p is known: send READY. */
static int join_called(struct vb_near *n, struct vb_peer *p, bool reach)
{
	int rc;

	reach = near_lets_in(n, p) && reach;
	/* From READY on the peer writes to the lane, and perhaps to its stream
	 * after that (vb_near_is_past()). */
	if (reach)
		vb_near_add(n, p);
	rc = send_session_msg(n, p, SESSION_READY, reach, NULL, 0);
	return rc ? rc : come_up(n, p, reach);
}

static int on_welcome(struct vb_near *n, struct vb_peer *p, struct parcel *in,
		      vb_time now)
{
	unsigned first = p->slot;
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
	rc = take_registry(p, in);
	if (rc)
		return rc;
	vb_session_note_also(n, p, in->m.also);
	return in->m.reaches ? vb_proof_begin(n, p, now)
			     : join_called(n, p, false);
}

static int on_ready(struct vb_near *n, struct vb_peer *p, struct parcel *in)
{
	if (in->m.kind != SESSION_READY || in->m.slot != p->slot)
		return -EPROTO;
	vb_session_note_also(n, p, in->m.also);
	if (in->m.reaches)
		vb_near_add(n, p);
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
	if (vb_proof_is_open(p))
		return -EPROTO;
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

/* The session with @p has ended, with the -errno @rc. */
static void end_badly(struct vb_near *n, struct vb_peer *p, int rc, vb_time now)
{
	bool ours = atomic_load(&p->state) == PEER_CALLED;
	unsigned slot = p->slot;

	vb_log(LOG_DEBUG, "near: slot %u: the session has ended: %s", slot,
	       strerror(-rc));
	near_drop(n, p, now);
	if (ours)
		vb_session_note_refusal(n, slot);
}

static void hear(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	struct vb_peer *held = vb_peer_get(p);
	struct parcel in;
	int rc = get_parcel(p, &in);

	if (rc > 0)
		rc = is_asked_for(&in) ? on_parcel(n, p, &in, now) : -EBADMSG;
	/* No honest program of this version sends other descriptors, each of
	 * which may cost a thread. */
	if (drop_rest(&in) && rc == -EBADMSG)
		vb_session_outlaw(n, held);
	vb_peer_put(held);
	if (rc)
		end_badly(n, p, rc, now);
}

/* The proof of @p may have ended. */
static void on_proof(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	bool open;
	int rc;

	if (!vb_proof_end(p, &open))
		return;
	rc = atomic_load(&p->state) == PEER_CALLING
		     ? admit_caller(n, p, open, now)
		     : join_called(n, p, open);
	if (rc)
		end_badly(n, p, rc, now);
}

/* Call @visit, which may end the session, for each session. */
static void visit_sessions(struct vb_near *n, vb_time now,
			   void (*visit)(struct vb_near *n, struct vb_peer *p,
					 vb_time now))
{
	for (struct vb_peer *p = n->callers, *next; p; p = next) {
		next = p->next;
		visit(n, p, now);
	}
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i] && n->peers[i]->slot == i)
			visit(n, n->peers[i], now);
}

static void hear_errands(struct vb_near *n, vb_time now)
{
	vb_errands_hear(n->errands);
	vb_callers_hear(n);
	vb_proof_see_off(n);
	visit_sessions(n, now, on_proof);
}

/* A proof of @p may wait. If it has found no thread for long, the session ends as
 * after a refusal: the queue pairs use packets, and a later connection calls
 * again. */
static void on_waiting_proof(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	int rc = vb_proof_begin_waiting(n, p, now);

	if (rc)
		end_badly(n, p, rc, now);
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

/* No lock is needed: only this thread changes what is read here. */
bool VB_UNCHECKED vb_near_sees_off(const struct vb_near *n)
{
	return n->leaving_count || n->shut_out || n->proofs_waiting ||
	       vb_callers_are_unheard(n);
}

static bool is_listening_name(const struct vb_near *n, const void *what)
{
	return what == &n->names[0] || what == &n->names[1];
}

void vb_near_meet(struct vb_near *n, vb_time now)
{
	struct epoll_event ev;
	unsigned slot;

	vb_session_see_off(n, false);
	let_in_anew(n, now);
	if (VB_UNLIKELY(n->proofs_waiting))
		visit_sessions(n, now, on_waiting_proof);
	if (vb_callers_are_unheard(n))
		vb_callers_listen(n);
	for (unsigned i = 0; i < MEET_EVENTS; i++) {
		/* Fetch one event at a time: serving one session can end
		 * another, whose event would then point to freed memory. */
		if (epoll_wait(n->epoll_fd, &ev, 1, 0) != 1)
			break;
		if (ev.data.ptr == &n->errands)
			hear_errands(n, now);
		else if (is_listening_name(n, ev.data.ptr))
			vb_callers_accept(n, ev.data.ptr);
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
	int rc = begin_listening(n->names[1].fd);

	if (rc)
		return rc;
	vb_callers_listen(n);
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i] && n->peers[i]->slot == i &&
		    atomic_load(&n->peers[i]->state) != PEER_CALLED)
			(void)send_session_msg(n, n->peers[i], SESSION_ALSO,
					       false, NULL, 0);
	return 0;
}

/* Can this program's own memory be read? If not, so cannot that of others. */
static bool own_memory_opens(const struct vb_near *n)
{
	const struct vb_registry_proof own =
		vb_registry_proof(n->registry, getpid());

	return vb_registry_is_open(&own);
}

/* A session needs a descriptor; most descriptors are left to the program. */
static unsigned count_sessions(void)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return (unsigned)VB_MIN(limit.rlim_cur / 8, VB_SLOTS);
}

static int watch_errands(struct vb_near *n)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &n->errands };

	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, vb_errands_fd(n->errands),
			 &ev) < 0
		       ? -errno
		       : 0;
}

int vb_session_init(struct vb_near *n)
{
	int rc;

	if (!own_memory_opens(n))
		return -EPERM;
	n->max_sessions = count_sessions();
	n->names[0].fd = n->c.name_fd;
	n->names[1].fd = -1;
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->epoll_fd < 0)
		return -errno;
	rc = -ENOMEM;
	n->errands = vb_errands_create();
	if (n->errands)
		rc = watch_errands(n);
	if (rc == 0)
		rc = begin_listening(n->c.name_fd);
	if (rc == 0) {
		vb_callers_listen(n);
		return 0;
	}
	if (n->errands)
		vb_errands_release(n->errands);
	close(n->epoll_fd);
	return rc;
}

void vb_session_fini(struct vb_near *n, vb_time now)
{
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i])
			near_drop(n, n->peers[i], now);
	while (n->callers)
		near_drop(n, n->callers, now);
	vb_callers_fini(n);
	vb_proof_fini(n);
	vb_errands_release(n->errands);
	vb_outlaws_fini(&n->outlaws);
	close(n->epoll_fd);
}
