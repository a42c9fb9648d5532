/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of iWARP's queue pairs. Who polls reads his sockets himself: one or
 * a few directly, many through an epoll set, which the thread sleeps on.
 * Writing is the poster's, or of whoever reads what makes room.
 *
 * A stream lives in three steps: open; closing, when its queue pair has no
 * more to say: FIN is sent and what still comes is thrown away, so that the
 * peer is not reset before it has read all; and gone. A queue pair that is
 * destroyed leaves its stream behind to close.
 */
#include "engine/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/engine_priv.h"
#include "iwarp/iwarp.h"

#define FEW	   4 /* streams: a system call each, and none for epoll */
#define EVENTS	   64
#define STEP_CALLS 8 /* batches in one step, as of packets */
#define READS	   4 /* of one stream before the next has its turn */
#define MSS_LASTS  (100 * VB_MSEC)
#define FIN_WAIT   (5 * VB_SEC) /* for the peer's, after ours */
#define SINK_BYTES (64u << 10)
#define THROWS	   16 /* of so much before others have their turn */
#define NEAR_LOOKS (100 * VB_USEC) /* how often at streams that are silent */

enum phase { OPEN, CLOSING };

struct vb_stream {
	int fd;
	/* rx and, while it has a queue pair, its drive */
	struct vb_qp *qp; /* NULL: it was destroyed */
	/* drive, or rx when there is no queue pair */
	enum phase phase;
	vb_time mss_until;
	/* These two are looked at by who has rx alone: a hint. */
	_Atomic vb_time close_at; /* whatever is left to do; VB_NEVER */
	_Atomic bool blocked;	  /* until the socket has room: it is not tried
				   * before, as a batch is much work */
	bool more;		  /* was left for the next turn */
	bool eof, over, live;
	_Atomic bool met;  /* the peer's card has been looked at */
	_Atomic bool near; /* requests go another way: little comes here */
	struct vb_stream_ear ear;     /* drive */
	struct vb_stream *next, **at; /* rx */
};

static __thread struct vb_iw_txq *thread_txq;
static pthread_key_t txq_key;
static pthread_once_t txq_once = PTHREAD_ONCE_INIT;

static void drop_txq(void *q)
{
	thread_txq = NULL;
	free(q);
}

static void make_txq_key(void)
{
	if (pthread_key_create(&txq_key, drop_txq) != 0)
		vb_log(LOG_WARN, "engine: no key for per-thread batches");
}

/* As of packets (engine/drive.c): each thread has its own. */
static struct vb_iw_txq *my_txq(void)
{
	if (VB_LIKELY(thread_txq))
		return thread_txq;
	pthread_once(&txq_once, make_txq_key);
	thread_txq = malloc(sizeof(*thread_txq));
	if (thread_txq)
		pthread_setspecific(txq_key, thread_txq);
	return thread_txq;
}

static void tell(struct vb_stream *s, enum vb_stream_news news)
{
	if (s->ear.tell)
		s->ear.tell(s->ear.arg, news);
}

static void tell_live(struct vb_stream *s, const struct vb_qp *qp)
{
	if (s->live || !vb_iw_is_established(qp))
		return;
	s->live = true;
	tell(s, STREAM_LIVE);
}

/* From now on it is only to end, and does in a while. */
static void give_notice(struct vb_engine *e, struct vb_stream *s, vb_time now)
{
	if (s->over)
		return;
	s->over = true;
	s->close_at = now + FIN_WAIT;
	tell(s, STREAM_OVER);
	if (atomic_fetch_add(&e->stream_ending, 1) == 0)
		vb_engine_wake(e);
}

static void watch(struct vb_engine *e, struct vb_stream *s, bool blocked,
		  bool eof)
{
	struct epoll_event want = { .data.ptr = s };

	if (s->blocked == blocked && s->eof == eof)
		return;
	s->blocked = blocked;
	s->eof = eof;
	want.events = (blocked ? EPOLLOUT : 0) | (eof ? 0 : EPOLLIN);
	if (epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_MOD, s->fd, &want) <
	    0)
		vb_log(LOG_ERROR, "engine: a stream is not watched: %s",
		       strerror(errno));
}

static void follow_mss(struct vb_stream *s, struct vb_qp *qp, vb_time now)
{
	socklen_t len = sizeof(int);
	int mss;

	if (now < s->mss_until)
		return;
	s->mss_until = now + MSS_LASTS;
	if (getsockopt(s->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) == 0 &&
	    mss > 0)
		vb_iw_set_mss(qp, (uint32_t)mss);
}

/*
 * Out.
 */

static ssize_t put(const struct vb_stream *s, struct vb_iw_txq *q)
{
	struct msghdr m = { .msg_iov = q->iov, .msg_iovlen = q->count };

	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* True: go on. */
static bool send_batch(struct vb_engine *e, struct vb_stream *s,
		       struct vb_qp *qp, struct vb_iw_txq *q, vb_time now)
{
	bool more = vb_iw_send(qp, now, q);
	size_t bytes = q->bytes;
	ssize_t n = q->count ? put(s, q) : 0;

	if (n < 0 && errno == EFAULT) {
		vb_iw_send_fault(qp, q, now);
		return true;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
		(void)vb_iw_sent(qp, q, 0, now);
		vb_iw_lost(qp, now);
		return false;
	}
	n = VB_MAX(n, 0);
	more |= vb_iw_sent(qp, q, (size_t)n, now);
	watch(e, s, (size_t)n < bytes, s->eof);
	if (n > 0)
		vb_await_sent(e, &qp->await, now);
	return more && !s->blocked;
}

/* FIN: the peer reads what was sent, and then that this was all. */
static void begin_close(struct vb_engine *e, struct vb_stream *s, vb_time now)
{
	give_notice(e, s, now);
	if (s->phase == CLOSING)
		return;
	s->phase = CLOSING;
	if (shutdown(s->fd, SHUT_WR) < 0) /* reset meanwhile */
		s->close_at = now;
}

static bool is_up(const struct vb_qp *qp)
{
	enum vb_qp_state state = atomic_load(&qp->state);

	return state == QPS_RTS || state == QPS_SQD;
}

/* Who only receives has no request to find a way for: the peer's are heard. */
static void note_way(struct vb_engine *e, struct vb_stream *s,
		     const struct vb_qp *qp)
{
	bool near = qp->way == WAY_NEAR ||
		    (qp->way == WAY_OPEN && vb_near_is_heard(qp));

	if (VB_LIKELY(near == s->near))
		return;
	s->near = near;
	if (near)
		atomic_fetch_add(&e->stream_near, 1);
	else
		atomic_fetch_sub(&e->stream_near, 1);
}

/* The peer may be a program of this host: then there is a better way. */
static void step_near(struct vb_engine *e, struct vb_stream *s,
		      struct vb_qp *qp, vb_time now)
{
	struct vb_near *n = e->near;
	struct vb_rdmap_card card;
	enum vb_qp_way way = qp->way;

	if (!n || way == WAY_PACKETS)
		return;
	if (VB_UNLIKELY(!s->met) && vb_iw_has_card(qp, &card)) {
		const struct vb_near_card peer = { card.number, card.life };

		s->met = true;
		vb_near_recognize(n, qp, &peer);
	}
	(void)vb_near_send(n, qp, now);
	if (VB_UNLIKELY(way == WAY_NEAR && qp->way == WAY_PACKETS))
		vb_iw_take_over(qp);
	note_way(e, s, qp);
}

bool vb_stream_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	struct vb_stream *s = qp->stream;
	struct vb_iw_txq *q = my_txq();
	bool more = true;

	qp->now = now;
	if (!s || !q || s->phase == CLOSING) {
		vb_qp_flush(qp);
		return q ? false : true;
	}
	if (!vb_iw_is_started(qp)) { /* RESET */
		begin_close(e, s, now);
		return false;
	}
	step_near(e, s, qp, now);
	follow_mss(s, qp, now);
	more = !s->blocked && !vb_iw_is_quiet(qp, now);
	for (unsigned i = 0; more && i < STEP_CALLS; i++)
		more = send_batch(e, s, qp, q, now);
	vb_qp_flush(qp);
	tell_live(s, qp);
	if (!is_up(qp))
		give_notice(e, s, now);
	if (vb_iw_wants_close(qp) && !s->blocked)
		begin_close(e, s, now);
	s->more = more && s->phase == OPEN;
	return s->more;
}

bool vb_stream_is_blocked(const struct vb_qp *qp)
{
	const struct vb_stream *s = qp->stream;

	return s && s->blocked;
}

/*
 * In.
 */

/* True: it was all there is; or what came is thrown away. */
static bool read_some(struct vb_engine *e, struct vb_stream *s,
		      struct vb_qp *qp, vb_time now, bool *found)
{
	struct iovec iov[VB_IW_RX_IOV];
	struct msghdr m = { .msg_iov = iov };
	size_t room = 0;
	ssize_t n;

	m.msg_iovlen = vb_iw_want(qp, e->stream_rxq, iov);
	for (size_t i = 0; i < m.msg_iovlen; i++)
		room += iov[i].iov_len;
	n = recvmsg(s->fd, &m, MSG_DONTWAIT);
	if (n > 0) {
		*found = true;
		vb_iw_got(qp, e->stream_rxq, (size_t)n, now);
		return (size_t)n < room;
	}
	if (n < 0 && errno == EFAULT) {
		*found = true;
		vb_iw_recv_fault(qp, e->stream_rxq, now);
		return false;
	}
	vb_iw_got(qp, e->stream_rxq, 0, now);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	*found = true;
	watch(e, s, s->blocked, true);
	if (n == 0)
		vb_iw_eof(qp, now);
	else
		vb_iw_lost(qp, now);
	return true;
}

static void read_stream(struct vb_engine *e, struct vb_stream *s,
			struct vb_qp *qp, vb_time now, bool *found)
{
	for (unsigned i = 0; i < READS && !s->eof; i++)
		if (read_some(e, s, qp, now, found))
			break;
}

static void throw_away(struct vb_engine *e, struct vb_stream *s, bool *found)
{
	static uint8_t sink[SINK_BYTES];
	ssize_t n = 1;

	/* MSG_TRUNC: TCP counts the bytes and copies none. */
	for (unsigned i = 0; n > 0 && i < THROWS; i++)
		n = recv(s->fd, sink, SINK_BYTES, MSG_DONTWAIT | MSG_TRUNC);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		watch(e, s, s->blocked, true);
		*found = true;
	}
}

static void leave_list(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx)
{
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	e->stream_count--;
}

static void remove_stream(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx)
{
	leave_list(e, s);
	if (s->over)
		atomic_fetch_sub(&e->stream_ending, 1);
	if (s->near)
		atomic_fetch_sub(&e->stream_near, 1);
	close(s->fd);
	free(s);
}

static bool is_done(const struct vb_stream *s, vb_time now)
{
	return (s->phase == CLOSING && s->eof) || now >= s->close_at;
}

/* The socket is left; its queue pair, if any, may be reset and start anew. */
static void end_stream(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx)
{
	give_notice(e, s, now);
	if (s->qp) {
		vb_await_begin(e, &s->qp->await);
		vb_iw_closed(s->qp, now);
		s->qp->stream = NULL;
	}
	remove_stream(e, s);
}

static bool serve_orphan(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx)
{
	bool found = false;

	throw_away(e, s, &found);
	if (is_done(s, now))
		end_stream(e, s, now);
	return found;
}

/*
 * Of one whose peer may be of this host: is there anything? What the peer put
 * on its lane before it ended the stream, or said something here, comes first:
 * also where we have asked it for nothing yet.
 */
static bool is_its_turn(struct vb_engine *e, const struct vb_stream *s,
			vb_time now)
{
	struct pollfd p = { s->fd, POLLIN | POLLRDHUP, 0 };

	if (s->more || s->blocked || now >= s->close_at)
		return true;
	return poll(&p, 1, 0) == 1 && vb_near_catch_up(e->near, now);
}

/* What has come, or the room that there is, and what it makes due. */
static bool serve(struct vb_engine *e, struct vb_stream *s, uint32_t ready,
		  vb_time now) VB_REQUIRES(e->rx)
{
	struct vb_qp *qp = s->qp;
	bool found = false, came = false;

	if (!qp)
		return serve_orphan(e, s, now);
	if (s->met && !is_its_turn(e, s, now))
		return false;
	vb_mutex_lock(&qp->drive);
	now = vb_engine_time(qp, now);
	qp->now = now;
	if (s->phase == CLOSING || !vb_iw_is_started(qp))
		throw_away(e, s, &found);
	else if (ready & ~(uint32_t)EPOLLOUT)
		read_stream(e, s, qp, now, &came);
	found |= came;
	if (s->blocked && ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		watch(e, s, false, s->eof);
		found = true;
	}
	if (came) /* and not only room */
		vb_await_came(e, &qp->await, now);
	if (found || s->more)
		vb_drive_step(e, qp, now);
	if (is_done(s, now))
		end_stream(e, s, now);
	vb_drive_release(e, qp);
	return found;
}

/* One that is not blocked is just read: that says whether there is anything. */
static uint32_t ready_for(const struct vb_stream *s)
{
	struct pollfd p = { s->fd, POLLIN | POLLOUT, 0 };

	if (!s->blocked)
		return EPOLLIN;
	return poll(&p, 1, 0) == 1 ? (uint32_t)p.revents : 0;
}

/* @silent: also those where hardly anything comes. */
static bool serve_all(struct vb_engine *e, bool silent, vb_time now)
	VB_REQUIRES(e->rx)
{
	struct vb_stream *next;
	bool found = false;

	for (struct vb_stream *s = e->streams; s; s = next) {
		next = s->next;
		if (silent || !s->near)
			found |= serve(e, s, ready_for(s), now);
	}
	return found;
}

/* Nothing but the call itself takes a stream away: each is there once. */
static bool serve_ready(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	struct epoll_event ready[EVENTS];
	bool found = false;
	int n = epoll_wait(atomic_load(&e->stream_fd), ready, EVENTS, 0);

	for (int i = 0; i < n; i++)
		found |= serve(e, ready[i].data.ptr, ready[i].events, now);
	return found;
}

bool vb_stream_drain(struct vb_engine *e, vb_time now)
{
	bool silent = now >= e->stream_look;

	if (silent)
		e->stream_look = now + vb_engine_span(e, NEAR_LOOKS);
	else if (atomic_load_explicit(&e->stream_near, memory_order_relaxed) ==
		 e->stream_count)
		return false;
	return e->stream_count <= FEW ? serve_all(e, silent, now)
				      : serve_ready(e, now);
}

/*
 * Birth, and end.
 */

static int open_set(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	int fd;

	if (!e->stream_rxq)
		e->stream_rxq = malloc(sizeof(*e->stream_rxq));
	if (!e->stream_rxq)
		return -ENOMEM;
	if (atomic_load(&e->stream_fd) >= 0)
		return 0;
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -errno;
	atomic_store(&e->stream_fd, fd);
	vb_engine_wake(e); /* it is to sleep on this */
	return 0;
}

static int enter_stream(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx)
{
	struct epoll_event want = { .events = EPOLLIN, .data.ptr = s };
	int rc = open_set(e);

	if (rc)
		return rc;
	if (epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_ADD, s->fd, &want) <
	    0)
		return -errno;
	s->next = e->streams;
	s->at = &e->streams;
	if (s->next)
		s->next->at = &s->next;
	e->streams = s;
	e->stream_count++;
	return 0;
}

/* It closes by itself. */
static void leave_behind(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(e->rx)
{
	struct vb_stream *s = qp->stream;
	bool found;

	watch(e, s, false, s->eof);
	begin_close(e, s, now);
	if (vb_iw_is_started(qp))
		vb_iw_closed(qp, now);
	vb_await_begin(e, &qp->await);
	s->qp = NULL;
	s->ear.tell = NULL;
	qp->stream = NULL;
	throw_away(e, s, &found);
	if (is_done(s, now))
		remove_stream(e, s);
}

static void show_card(struct vb_near *n, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_card ours;

	if (vb_near_expect(n, qp, &ours))
		vb_iw_show_card(
			qp, &(struct vb_rdmap_card){ ours.number, ours.life });
}

static int bind_stream(struct vb_engine *e, struct vb_qp *qp,
		       struct vb_stream *s, const struct vb_mpa_terms *terms)
	VB_REQUIRES(e->rx) VB_REQUIRES(qp->drive)
{
	vb_time now = vb_now();
	int rc;

	if (atomic_load(&qp->state) != QPS_INIT)
		return -EINVAL;
	if (qp->stream) /* of before it was reset */
		leave_behind(e, qp, now);
	rc = enter_stream(e, s);
	if (rc)
		return rc;
	rc = vb_iw_start(qp, terms, now);
	if (rc) {
		leave_list(e, s);
		epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_DEL, s->fd,
			  NULL);
		return rc;
	}
	vb_await_begin(e, &qp->await);
	s->qp = qp;
	qp->stream = s;
	if (terms->near && e->near)
		show_card(e->near, qp);
	vb_drive_step(e, qp, now);
	return 0;
}

static struct vb_qp *find_qp(struct vb_engine *e, uint32_t qpn)
{
	return e ? vb_idtab_get(e->qps, qpn & ((1u << VB_QPN_BITS) - 1)) : NULL;
}

/* Its memory may be another's by now. */
static bool is_it(const struct vb_qp *qp, const struct vb_adapter *a,
		  uint32_t qpn)
{
	return atomic_load(&qp->qpn) == qpn && qp->adapter == a;
}

int vb_stream_start(struct vb_adapter *a, uint32_t qpn, int fd,
		    const struct vb_mpa_terms *terms,
		    const struct vb_stream_ear *ear)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_qp *qp = find_qp(e, qpn);
	struct vb_stream *s = calloc(1, sizeof(*s));
	int rc = -EINVAL;

	if (!s || !qp) {
		free(s);
		return qp ? -ENOMEM : -EINVAL;
	}
	s->fd = fd;
	s->close_at = VB_NEVER;
	s->ear = *ear;
	vb_mutex_lock(&e->rx);
	vb_mutex_lock(&qp->drive);
	if (is_it(qp, a, qpn))
		rc = bind_stream(e, qp, s, terms);
	vb_drive_release(e, qp);
	vb_mutex_unlock(&e->rx);
	if (rc)
		free(s);
	return rc;
}

static bool hears(const struct vb_qp *qp, const void *arg)
{
	const struct vb_stream *s = qp->stream;

	return s && s->ear.arg == arg;
}

/* As by ibv_modify_qp(). */
static void fail(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_qp_state from = atomic_load(&qp->state);

	atomic_store(&qp->state, QPS_ERR);
	vb_qp_note(qp);
	qp->now = now;
	qp->adapter->transport->enter(qp, from, QPS_ERR, now);
	vb_qp_flush(qp);
	vb_drive_step(e, qp, now);
}

void vb_stream_finish(struct vb_adapter *a, uint32_t qpn, void *arg)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_qp *qp = find_qp(e, qpn);

	if (!qp)
		return;
	vb_mutex_lock(&qp->drive);
	if (is_it(qp, a, qpn) && hears(qp, arg) && is_up(qp))
		fail(e, qp, vb_now());
	vb_drive_release(e, qp);
}

void vb_stream_forget(struct vb_adapter *a, uint32_t qpn, void *arg)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_qp *qp = find_qp(e, qpn);

	if (!qp)
		return;
	vb_mutex_lock(&qp->drive);
	if (is_it(qp, a, qpn) && hears(qp, arg))
		((struct vb_stream *)qp->stream)->ear.tell = NULL;
	vb_drive_release(e, qp);
}

/* @qp is about to go. */
void vb_stream_orphan(struct vb_engine *e, struct vb_qp *qp)
{
	vb_mutex_lock(&e->rx);
	vb_mutex_lock(&qp->drive);
	if (qp->stream)
		leave_behind(e, qp, vb_now());
	vb_mutex_unlock(&qp->drive);
	vb_mutex_unlock(&e->rx);
}

/* Peers that do not close their side are not waited for for ever. */
void vb_stream_sweep(struct vb_engine *e, vb_time now)
{
	struct vb_stream *next;

	if (!vb_mutex_trylock(&e->rx))
		return;
	for (struct vb_stream *s = e->streams; s; s = next) {
		next = s->next;
		if (s->close_at <= now)
			serve(e, s, EPOLLIN, now);
	}
	vb_mutex_unlock(&e->rx);
}

/* Is there something that a peer's TCP has not said it has? */
static bool is_on_its_way(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	for (const struct vb_stream *s = e->streams; s; s = s->next) {
		int bytes;

		if (ioctl(s->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0)
			return true;
	}
	return false;
}

/*
 * A socket that hears something after its process is gone, or was left with
 * something unread, is reset, and what was still to be sent is lost. So who
 * exits stays until the peers have it all, while the thread throws away what
 * comes.
 */
void vb_stream_settle(struct vb_engine *e)
{
	vb_time until = vb_now() + FIN_WAIT;
	bool left = true;

	while (left && vb_now() < until) {
		if (vb_mutex_trylock(&e->rx)) {
			left = is_on_its_way(e);
			vb_mutex_unlock(&e->rx);
		}
		if (left)
			nanosleep(&(struct timespec){ .tv_nsec = 200000 },
				  NULL);
	}
}

void vb_stream_close_all(struct vb_engine *e)
{
	vb_mutex_lock(&e->rx);
	while (e->streams)
		remove_stream(e, e->streams);
	vb_mutex_unlock(&e->rx);
	if (atomic_load(&e->stream_fd) >= 0)
		close(atomic_load(&e->stream_fd));
	free(e->stream_rxq);
}

void vb_stream_after_fork(struct vb_engine *e)
{
	for (const struct vb_stream *s = e->streams; s; s = s->next)
		close(s->fd);
	if (atomic_load(&e->stream_fd) >= 0)
		close(atomic_load(&e->stream_fd));
}
