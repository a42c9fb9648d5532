/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends the TCP sockets of iWARP's queue pairs; engine/stream.c reads
 * and writes them. */
#include "engine/stream_priv.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "iwarp/iwarp.h"

/* How long to wait for the peer's FIN after sending FIN. */
#define FIN_WAIT   (5 * VB_SEC)
#define SINK_BYTES (64u << 10)
/* The most reads of one closing stream before others have their turn. */
#define THROWS 16

void vb_stream_tell(struct vb_stream *s, enum vb_stream_event event)
{
	if (s->listener.tell)
		s->listener.tell(s->listener.arg, event);
}

void vb_stream_give_notice(struct vb_engine *e, struct vb_stream *s,
			   vb_time now)
{
	if (s->over)
		return;
	s->over = true;
	s->close_at = now + FIN_WAIT;
	vb_stream_tell(s, STREAM_OVER);
	if (atomic_fetch_add(&e->stream_ending, 1) == 0)
		vb_engine_wake(e);
}

void vb_stream_watch(struct vb_engine *e, struct vb_stream *s, bool blocked,
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
		vb_log(LOG_ERROR, "engine: cannot watch a stream: %s",
		       strerror(errno));
}

void vb_stream_begin_close(struct vb_engine *e, struct vb_stream *s,
			   vb_time now)
{
	vb_stream_give_notice(e, s, now);
	if (s->phase == CLOSING)
		return;
	s->phase = CLOSING;
	/* shutdown() fails because the peer has reset the connection. */
	if (shutdown(s->fd, SHUT_WR) < 0)
		s->close_at = now;
}

void vb_stream_throw_away(struct vb_engine *e, struct vb_stream *s, bool *found)
{
	static uint8_t sink[SINK_BYTES];
	ssize_t n = 1;

	/* With MSG_TRUNC, TCP counts the bytes and copies none. */
	for (unsigned i = 0; n > 0 && i < THROWS; i++)
		n = recv(s->fd, sink, SINK_BYTES, MSG_DONTWAIT | MSG_TRUNC);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		vb_stream_watch(e, s, s->blocked, true);
		*found = true;
	}
}

void vb_stream_waits_no_more(struct vb_engine *e, struct vb_stream *s)
{
	if (s->waits)
		atomic_fetch_sub(&e->stream_waits, 1);
	s->waits = false;
}

static void leave_list(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx)
{
	vb_chain_del(&s->link);
	e->stream_count--;
}

static void remove_stream(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx)
{
	leave_list(e, s);
	vb_stream_waits_no_more(e, s);
	/* Remove the socket explicitly: a child of fork may hold it open for a
	 * moment, and the epoll set would go on reporting it. */
	(void)epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_DEL, s->fd, NULL);
	if (s->over)
		atomic_fetch_sub(&e->stream_ending, 1);
	if (s->near)
		atomic_fetch_sub(&e->stream_near, 1);
	close(s->fd);
	free(s);
}

bool vb_stream_is_done(const struct vb_stream *s, vb_time now)
{
	return (s->phase == CLOSING && s->eof) || now >= s->close_at;
}

void vb_stream_end(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx)
{
	vb_stream_give_notice(e, s, now);
	if (s->qp) {
		vb_mutex_assert_held(&s->qp->drive);
		vb_poll_hint_begin(e, &vb_eq(s->qp)->await);
		vb_iw_closed(s->qp, now);
		vb_eq(s->qp)->stream = NULL;
	}
	remove_stream(e, s);
}

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
	/* from now on the engine thread sleeps on this descriptor as well */
	vb_engine_wake(e);
	return 0;
}

static int eng_stream_life_enter_stream(struct vb_engine *e,
					struct vb_stream *s) VB_REQUIRES(e->rx)
{
	struct epoll_event want = { .events = EPOLLIN, .data.ptr = s };
	int rc = open_set(e);

	if (rc)
		return rc;
	if (epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_ADD, s->fd, &want) <
	    0)
		return -errno;
	vb_chain_add(&e->streams, &s->link);
	e->stream_count++;
	return 0;
}

/* Detach the stream from @qp; the stream then closes by itself. */
static void leave_behind(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(e->rx) VB_REQUIRES(qp->drive)
{
	struct vb_stream *s = vb_eq(qp)->stream;
	bool found;

	vb_stream_watch(e, s, false, s->eof);
	vb_stream_begin_close(e, s, now);
	if (vb_iw_is_started(qp))
		vb_iw_closed(qp, now);
	vb_poll_hint_begin(e, &vb_eq(qp)->await);
	vb_stream_waits_no_more(e, s);
	s->qp = NULL;
	s->listener.tell = NULL;
	vb_eq(qp)->stream = NULL;
	vb_stream_throw_away(e, s, &found);
	if (vb_stream_is_done(s, now))
		remove_stream(e, s);
}

static void show_card(struct vb_near *n, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_card ours;

	if (vb_mux_expect(n, qp, &ours))
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
	/* the queue pair still has a stream from before the program's reset */
	if (vb_eq(qp)->stream)
		leave_behind(e, qp, now);
	rc = eng_stream_life_enter_stream(e, s);
	if (rc)
		return rc;
	rc = vb_iw_start(qp, terms, now);
	if (rc) {
		leave_list(e, s);
		epoll_ctl(atomic_load(&e->stream_fd), EPOLL_CTL_DEL, s->fd,
			  NULL);
		return rc;
	}
	vb_poll_hint_begin(e, &vb_eq(qp)->await);
	s->qp = qp;
	vb_eq(qp)->stream = s;
	if (terms->near && e->near)
		show_card(e->near, qp);
	vb_drive_step_rx(e, qp, now);
	return 0;
}

static struct vb_qp *find_qp(struct vb_engine *e, uint32_t qpn)
{
	return e ? vb_idtab_get(e->qps, qpn & ((1u << VB_QPN_BITS) - 1)) : NULL;
}

/* Is @qp still the queue pair @qpn of @a that the caller looked up? Its memory
 * may have been reused since. */
static bool is_it(const struct vb_qp *qp, const struct vb_adapter *a,
		  uint32_t qpn)
{
	return atomic_load(&qp->qpn) == qpn && qp->adapter == a;
}

int vb_stream_start(struct vb_adapter *a, uint32_t qpn, int fd,
		    const struct vb_mpa_terms *terms,
		    const struct vb_stream_listener *listener)
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
	vb_fork_closes(fd);
	s->close_at = VB_NEVER;
	s->listener = *listener;
	vb_mutex_lock(&e->rx);
	vb_mutex_lock(&qp->drive);
	if (is_it(qp, a, qpn))
		rc = bind_stream(e, qp, s, terms);
	vb_drive_release_rx(e, qp);
	vb_mutex_unlock(&e->rx);
	if (rc)
		free(s);
	return rc;
}

static bool hears(const struct vb_qp *qp, const void *arg)
{
	const struct vb_stream *s = vb_eq(qp)->stream;

	return s && s->listener.arg == arg;
}

void vb_stream_finish(struct vb_adapter *a, uint32_t qpn, void *arg)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_qp *qp = find_qp(e, qpn);

	if (!qp)
		return;
	vb_mutex_lock(&qp->drive);
	if (is_it(qp, a, qpn) && hears(qp, arg) && vb_stream_is_up(qp))
		vb_engine_fail(e, qp, vb_now());
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
		vb_eq(qp)->stream->listener.tell = NULL;
	vb_drive_release(e, qp);
}

/* @qp is about to be destroyed: detach its stream. Another thread may drive the
 * queue pair, and wait for memory of the peer, so this thread does not wait for
 * that one with rx. */
void vb_stream_orphan(struct vb_engine *e, struct vb_qp *qp)
{
	vb_mutex_lock(&e->rx);
	while (!vb_mutex_trylock(&qp->drive)) {
		vb_mutex_unlock(&e->rx);
		vb_mutex_lock(&qp->drive);
		vb_mutex_unlock(&qp->drive);
		vb_mutex_lock(&e->rx);
	}
	if (vb_eq(qp)->stream)
		leave_behind(e, qp, vb_now());
	vb_mutex_unlock(&qp->drive);
	vb_mutex_unlock(&e->rx);
}

/* Close streams whose deadline has passed: the engine does not wait longer for
 * a peer that does not close its side. */
void vb_stream_sweep(struct vb_engine *e, vb_time now)
{
	struct vb_chain *next;

	if (!vb_mutex_trylock(&e->rx))
		return;
	for (struct vb_chain *l = e->streams; l; l = next) {
		struct vb_stream *s = vb_stream_of(l);

		next = l->next;
		if (s->close_at <= now)
			(void)vb_stream_serve(e, s, EPOLLIN, now);
	}
	vb_mutex_unlock(&e->rx);
}

/* True if some stream has bytes that its peer's TCP has not acknowledged. */
static bool is_on_its_way(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	for (struct vb_chain *l = e->streams; l; l = l->next) {
		int bytes;

		if (ioctl(vb_stream_of(l)->fd, SIOCOUTQ, &bytes) == 0 &&
		    bytes > 0)
			return true;
	}
	return false;
}

/*
 * Wait at exit until peers have received everything. TCP resets a socket that
 * receives bytes after its process ended, or that was closed with unread bytes,
 * and the bytes still to be sent are lost. So a program that exits waits, while
 * the engine thread throws away what arrives.
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
		remove_stream(e, vb_stream_of(e->streams));
	vb_mutex_unlock(&e->rx);
	if (atomic_load(&e->stream_fd) >= 0)
		close(atomic_load(&e->stream_fd));
	free(e->stream_rxq);
}
