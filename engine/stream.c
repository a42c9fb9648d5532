/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP sockets of iWARP's queue pairs: reading and writing. A program that
 * polls reads its sockets itself: up to four of them directly, more through an
 * epoll set, on which the engine thread sleeps. A poster writes in its own
 * thread; if a socket was full, the thread that finds room in it continues to
 * write. The stream of a peer on this host is read behind the peer's lane
 * (docs/NEAR.md, iWARP between two programs of one host).
 *
 * A stream is in one of three states. Open. Closing: its queue pair has nothing
 * more to send; the engine has sent FIN and throws away what still arrives,
 * because closing a socket with unread bytes would reset the connection before
 * the peer has read everything. Gone. When a queue pair is destroyed, its
 * stream stays and closes by itself.
 */
#include "engine/stream_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "iwarp/iwarp.h"

/* A process with at most this many streams reads them one by one, without
 * epoll. */
#define FEW	   4
#define EVENTS	   64
#define STEP_CALLS 8 /* the most batches in one step, as for packets */
/* The most reads of one stream before the next one has its turn. */
#define READS	  4
#define MSS_LASTS (100 * VB_MSEC)
/* The pause between reads of streams whose messages go by lanes. */
#define NEAR_LOOKS (100 * VB_USEC)

static __thread struct vb_iw_txq *thread_txq;
static pthread_key_t txq_key;
static bool have_txq_key;
static pthread_once_t txq_once = PTHREAD_ONCE_INIT;

static void eng_stream_drop_txq(void *q)
{
	thread_txq = NULL;
	free(q);
}

static void eng_stream_make_txq_key(void)
{
	have_txq_key = pthread_key_create(&txq_key, eng_stream_drop_txq) == 0;
	if (!have_txq_key)
		vb_log(LOG_WARN, "engine: no key for per-thread batches: they "
				 "stay until the process ends");
}

/* Returns the thread's own batch. Each thread has one, as for packets
 * (engine/drive.c). */
static struct vb_iw_txq *eng_stream_my_txq(void)
{
	if (VB_LIKELY(thread_txq))
		return thread_txq;
	pthread_once(&txq_once, eng_stream_make_txq_key);
	thread_txq = malloc(sizeof(*thread_txq));
	if (thread_txq && have_txq_key)
		pthread_setspecific(txq_key, thread_txq);
	return thread_txq;
}

static void tell_live(struct vb_stream *s, const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	if (s->live || !vb_iw_is_established(qp))
		return;
	s->live = true;
	vb_stream_tell(s, STREAM_LIVE);
}

static void follow_mss(struct vb_stream *s, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
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

static ssize_t eng_stream_put(const struct vb_stream *s, struct vb_iw_txq *q)
{
	struct msghdr m = { .msg_iov = q->iov, .msg_iovlen = q->count };

	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Fill one batch and send it. True: there is more to send, and the socket has
 * room. */
static bool eng_stream_send_batch(struct vb_engine *e, struct vb_stream *s,
				  struct vb_qp *qp, struct vb_iw_txq *q,
				  vb_time now) VB_REQUIRES(qp->drive)
{
	bool more = vb_iw_send(qp, now, q);
	size_t bytes = q->bytes;
	ssize_t n = q->count ? eng_stream_put(s, q) : 0;

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
	vb_stream_watch(e, s, (size_t)n < bytes, s->eof);
	if (n > 0)
		vb_poll_hint_sent(e, &vb_eq(qp)->await, now);
	return more && !s->blocked;
}

/* Record whether the queue pair's messages go by lanes, so that threads read
 * its socket rarely. A queue pair that only receives has no request that would
 * decide its path; there the peer's requests on lanes decide. */
static void note_way(struct vb_engine *e, struct vb_stream *s,
		     const struct vb_qp *qp) VB_REQUIRES(qp->drive)
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

/* Send requests by lanes if the peer is a program of this host. True: there is
 * more to send by lanes. */
static bool step_near(struct vb_engine *e, struct vb_stream *s,
		      struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_near *n = e->near;
	struct vb_rdmap_card card;
	enum vb_qp_way way = qp->way;
	bool more;

	if (!n || way == WAY_PACKETS)
		return false;
	if (VB_UNLIKELY(!s->met) && vb_iw_has_card(qp, &card)) {
		const struct vb_near_card peer = { card.number, card.life };

		s->slot = card.number >> VB_QPN_BITS;
		s->met = true;
		vb_near_recognize(n, qp, &peer);
	}
	more = vb_near_send(n, qp, now);
	if (vb_near_has_left(qp, way))
		vb_iw_take_over(qp);
	note_way(e, s, qp);
	return more;
}

bool vb_stream_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	struct vb_stream *s = vb_eq(qp)->stream;
	struct vb_iw_txq *q = eng_stream_my_txq();
	bool more, more_near;

	now = vb_qp_advance(qp, now);
	if (!s || !q || s->phase == CLOSING) {
		vb_qp_flush(qp);
		return q ? false : true;
	}
	if (!vb_iw_is_started(qp)) { /* the queue pair was moved to RESET */
		vb_stream_begin_close(e, s, now);
		return false;
	}
	more_near = step_near(e, s, qp, now);
	follow_mss(s, qp, now);
	more = !s->blocked && !vb_iw_is_idle(qp, now);
	for (unsigned i = 0; more && i < STEP_CALLS; i++)
		more = eng_stream_send_batch(e, s, qp, q, now);
	vb_qp_flush(qp);
	tell_live(s, qp);
	if (!vb_stream_is_up(qp))
		vb_stream_give_notice(e, s, now);
	if (vb_iw_wants_close(qp) && !s->blocked)
		vb_stream_begin_close(e, s, now);
	s->more = more && s->phase == OPEN;
	return s->more || more_near;
}

bool vb_stream_is_blocked(const struct vb_qp *qp)
{
	const struct vb_stream *s = vb_eq(qp)->stream;

	return s && s->blocked;
}

/* Read the socket once, at most *@left bytes. True: the socket has no more
 * bytes now. */
static bool read_some(struct vb_engine *e, struct vb_stream *s,
		      struct vb_qp *qp, size_t *left, vb_time now, bool *found)
	VB_REQUIRES(qp->drive)
{
	struct iovec iov[VB_IW_RX_IOV];
	struct msghdr m = { .msg_iov = iov };
	size_t room = 0;
	ssize_t n;

	m.msg_iovlen = vb_iw_want(qp, e->stream_rxq, iov);
	for (size_t i = 0; i < m.msg_iovlen; i++) {
		iov[i].iov_len = VB_MIN(iov[i].iov_len, *left - room);
		room += iov[i].iov_len;
	}
	n = recvmsg(s->fd, &m, MSG_DONTWAIT);
	if (n > 0) {
		*left -= (size_t)n;
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
	vb_stream_watch(e, s, s->blocked, true);
	if (n == 0)
		vb_iw_eof(qp, now);
	else
		vb_iw_lost(qp, now);
	return true;
}

/* Read at most @most bytes; SIZE_MAX: and the end. */
static void read_stream(struct vb_engine *e, struct vb_stream *s,
			struct vb_qp *qp, size_t most, vb_time now, bool *found)
	VB_REQUIRES(qp->drive)
{
	for (unsigned i = 0; i < READS && most && !s->eof; i++)
		if (read_some(e, s, qp, &most, now, found))
			break;
}

static bool serve_orphan(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx)
{
	bool found = false;

	vb_stream_throw_away(e, s, &found);
	if (vb_stream_is_done(s, now))
		vb_stream_end(e, s, now);
	return found;
}

/* Returns the number of bytes in the socket; SIZE_MAX: the end of the stream
 * has come as well, or the connection is gone, so nothing follows. */
static size_t look_at_socket(const struct vb_stream *s)
{
	struct pollfd p = { s->fd, POLLIN | POLLRDHUP, 0 };
	int bytes = 0;

	if (poll(&p, 1, 0) != 1)
		return 0;
	if (p.revents & ~POLLIN)
		return SIZE_MAX;
	/* FIONREAD counts nothing behind an urgent byte; reading skips it. */
	if (ioctl(s->fd, FIONREAD, &bytes) < 0 || bytes < 1)
		bytes = 1;
	return (size_t)bytes;
}

/*
 * Returns how many bytes of a stream this thread may read now; the peer is on
 * this host. The peer may have put messages on its lane before it sent bytes or
 * a FIN by the stream, and the engine must process all in that order. So this
 * function notes what the socket has, and takes a mark of the lane. When the
 * lane has been processed as far as the mark, a later call returns what was
 * noted. The thread does not process the lane here: it holds rx, and the lane
 * may wait for a page of the peer.
 */
static size_t readable_in_order(struct vb_engine *e, struct vb_stream *s,
				vb_time now, enum vb_drained *got)
	VB_REQUIRES(e->rx)
{
	if (s->waits && vb_near_is_past(e->near, &s->mark, now))
		return s->seen;
	*got = s->waits ? DRAINED_BUSY : DRAINED_NOTHING;
	if (s->waits || s->eof)
		return 0;
	s->seen = look_at_socket(s);
	if (s->seen == 0)
		return 0;
	vb_near_mark(e->near, s->slot, &s->mark);
	s->waits = true;
	atomic_fetch_add(&e->stream_waits, 1);
	*got = DRAINED_SOME;
	return 0;
}

void vb_stream_pass_lanes(struct vb_engine *e, vb_time now)
{
	if (VB_UNLIKELY(atomic_load_explicit(&e->stream_waits,
					     memory_order_relaxed)))
		(void)vb_near_poll(e->near, now);
}

/* Lock drive of @qp. If the peer is on this host, the thread that holds drive
 * may wait for memory of the peer; this thread, which holds rx, then serves the
 * stream another time. */
static bool eng_stream_take_drive(const struct vb_stream *s, struct vb_qp *qp)
	VB_TRY_ACQUIRE(true, qp->drive)
{
	if (s->met)
		return vb_mutex_trylock(&qp->drive);
	vb_mutex_lock(&qp->drive);
	return true;
}

/* Read at most @most bytes that arrived, write where there is room, and step
 * the queue pair. */
static bool serve_locked(struct vb_engine *e, struct vb_stream *s,
			 struct vb_qp *qp, uint32_t ready, size_t most,
			 vb_time now) VB_REQUIRES(e->rx) VB_REQUIRES(qp->drive)
{
	bool found = false, came = false;

	now = vb_qp_advance(qp, now);
	if (most)
		vb_stream_waits_no_more(e, s);
	if (most && (s->phase == CLOSING || !vb_iw_is_started(qp)))
		vb_stream_throw_away(e, s, &found);
	else
		read_stream(e, s, qp, most, now, &came);
	found |= came;
	if (s->blocked && ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		vb_stream_watch(e, s, false, s->eof);
		found = true;
	}
	if (came) /* the socket has received bytes */
		vb_poll_hint_came(e, &vb_eq(qp)->await, now);
	if (found || s->more)
		vb_drive_step_rx(e, qp, now);
	if (vb_stream_is_done(s, now))
		vb_stream_end(e, s, now);
	return found;
}

enum vb_drained vb_stream_serve(struct vb_engine *e, struct vb_stream *s,
				uint32_t ready, vb_time now)
{
	const bool met = s->met, ordered = met && now < s->close_at;
	enum vb_drained got = DRAINED_NOTHING;
	size_t most = ready & ~(uint32_t)EPOLLOUT ? SIZE_MAX : 0;
	struct vb_qp *qp = s->qp;

	if (!qp)
		return serve_orphan(e, s, now) ? DRAINED_SOME : DRAINED_NOTHING;
	if (ordered && most)
		most = readable_in_order(e, s, now, &got);
	if (ordered && !most && !s->more && !s->blocked && !s->eof)
		return got;
	if (!eng_stream_take_drive(s, qp))
		return DRAINED_BUSY;
	/* Another thread, which held drive until now, has found the peer's
	 * card, so the peer may use a lane from now on. Read no bytes in this
	 * call: the next one first takes a mark of the lane, which keeps the
	 * order of lane and stream. */
	if (VB_UNLIKELY(s->met != met))
		most = 0;
	if (serve_locked(e, s, qp, ready, most, now))
		got = DRAINED_SOME;
	vb_drive_release_rx(e, qp);
	return got;
}

/* Returns the events for which the socket is ready. A stream that is not
 * blocked needs no such question: reading it shows whether bytes have come. */
static uint32_t ready_for(const struct vb_stream *s)
{
	struct pollfd p = { s->fd, POLLIN | POLLOUT, 0 };

	if (!s->blocked)
		return EPOLLIN;
	return poll(&p, 1, 0) == 1 ? (uint32_t)p.revents : 0;
}

/* Returns what the drains of two streams have got together. */
static enum vb_drained both(enum vb_drained a, enum vb_drained b)
{
	return a == DRAINED_SOME || b == DRAINED_SOME ? DRAINED_SOME
						      : VB_MAX(a, b);
}

/* Serve all streams; @silent: also those whose messages go by lanes. */
static enum vb_drained serve_all(struct vb_engine *e, bool silent, vb_time now)
	VB_REQUIRES(e->rx)
{
	enum vb_drained got = DRAINED_NOTHING;
	struct vb_chain *next;

	for (struct vb_chain *l = e->streams; l; l = next) {
		struct vb_stream *s = vb_stream_of(l);

		next = l->next;
		if (silent || !s->near)
			got = both(got,
				   vb_stream_serve(e, s, ready_for(s), now));
	}
	return got;
}

/* Serve the streams that epoll reports. Each is reported once, and only serving
 * a stream can free it, so the others stay valid. */
static enum vb_drained serve_ready(struct vb_engine *e, vb_time now)
	VB_REQUIRES(e->rx)
{
	enum vb_drained got = DRAINED_NOTHING;
	struct epoll_event ready[EVENTS];
	int n = epoll_wait(atomic_load(&e->stream_fd), ready, EVENTS, 0);

	for (int i = 0; i < n; i++)
		got = both(got, vb_stream_serve(e, ready[i].data.ptr,
						ready[i].events, now));
	return got;
}

enum vb_drained vb_stream_drain(struct vb_engine *e, vb_time now)
{
	bool silent =
		now >= e->stream_look ||
		atomic_load_explicit(&e->stream_waits, memory_order_relaxed);

	if (silent)
		e->stream_look = now + vb_engine_span(e, NEAR_LOOKS);
	else if (atomic_load_explicit(&e->stream_near, memory_order_relaxed) ==
		 e->stream_count)
		return DRAINED_NOTHING;
	return e->stream_count <= FEW ? serve_all(e, silent, now)
				      : serve_ready(e, now);
}
