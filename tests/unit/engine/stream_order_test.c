/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream whose peer is on this host is read behind the messages that the peer
 * has put on its lane before: with real TCP sockets, and with fakes of near/
 * and iwarp/.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lock_order.h"
#include "engine/stream_priv.h"
#include "iwarp/iwarp.h"

#define SLOT 5

static struct {
	struct vb_engine e;
	struct vb_qp qp;
	struct vb_engine_qp eq;
	struct vb_stream *s;
	int peer; /* the peer's end of the TCP connection */
	vb_time now;
	/* the peer's lane has been processed as far as the mark */
	bool is_past;
	unsigned marks, passes, eofs, losses, steps;
	size_t got;
} fake;

static void fake_mark(struct vb_near *n, unsigned slot, struct vb_near_mark *m)
{
	assert_int_equal(slot, SLOT);
	m->slot = slot;
	fake.marks++;
}

static bool fake_is_past(struct vb_near *n, struct vb_near_mark *m, vb_time now)
{
	assert_int_equal(m->slot, SLOT);
	return fake.is_past;
}

/* Another poll of the program can drain the link while a thread processes the
 * lanes, and perhaps waits for a page of a peer. */
static bool VB_UNCHECKED fake_poll(struct vb_near *n, vb_time now)
{
	assert_true(vb_mutex_trylock(&fake.e.rx));
	vb_mutex_unlock(&fake.e.rx);
	fake.passes++;
	return false;
}

static unsigned fake_want(struct vb_qp *qp, struct vb_iw_rxq *in,
			  struct iovec iov[VB_IW_RX_IOV])
{
	iov[0] = (struct iovec){ in->room, VB_IW_RX_BYTES };
	return 1;
}

static void fake_got(struct vb_qp *qp, struct vb_iw_rxq *in, size_t bytes,
		     vb_time now)
{
	fake.got += bytes;
}

static void fake_eof(struct vb_qp *qp, vb_time now)
{
	fake.eofs++;
}

static void fake_lost(struct vb_qp *qp, vb_time now)
{
	fake.losses++;
}

static bool fake_is_started(const struct vb_qp *qp)
{
	return true;
}

static void fake_step(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	fake.steps++;
}

static void VB_UNCHECKED fake_release(struct vb_engine *e, struct vb_qp *qp)
	VB_RELEASE(qp->drive)
{
	vb_mutex_unlock(&qp->drive);
}

#define vb_near_mark	    fake_mark
#define vb_near_is_past	    fake_is_past
#define vb_near_poll	    fake_poll
#define vb_iw_want	    fake_want
#define vb_iw_got	    fake_got
#define vb_iw_eof	    fake_eof
#define vb_iw_lost	    fake_lost
#define vb_iw_is_started    fake_is_started
#define vb_drive_step_rx    fake_step
#define vb_drive_release_rx fake_release
#include "engine/stream.c"

/* Returns a connected TCP socket, and the other end in *@peer. */
static int connect_pair(int *peer)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len),
			 0);
	*peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*peer, (struct sockaddr *)&at, len), 0);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	close(listener);
	return fd;
}

static int set_up(void **state)
{
	struct vb_engine *e = &fake.e;
	struct epoll_event want = { .events = EPOLLIN };

	memset(&fake, 0, sizeof(fake));
	fake.now = VB_SEC;
	fake.s = calloc(1, sizeof(*fake.s));
	e->stream_rxq = malloc(sizeof(*e->stream_rxq));
	assert_true(fake.s && e->stream_rxq);
	vb_mutex_init(&e->rx, RANK_RX);
	atomic_store(&e->slowdown, 1);
	vb_mutex_init(&fake.qp.drive, RANK_DRIVE);
	atomic_store(&e->near, (struct vb_near *)&fake);
	fake.qp.priv[PRIV_ENGINE] = &fake.eq;
	fake.eq.qp = &fake.qp;
	fake.s->fd = connect_pair(&fake.peer);
	fake.s->qp = &fake.qp;
	fake.s->close_at = VB_NEVER;
	fake.s->slot = SLOT;
	fake.s->met = true;
	e->stream_fd = epoll_create1(EPOLL_CLOEXEC);
	want.data.ptr = fake.s;
	assert_int_equal(
		epoll_ctl(e->stream_fd, EPOLL_CTL_ADD, fake.s->fd, &want), 0);
	vb_chain_add(&e->streams, &fake.s->link);
	e->stream_count = 1;
	return 0;
}

static int tear_down(void **state)
{
	vb_stream_close_all(&fake.e);
	assert_int_equal(atomic_load(&fake.e.stream_waits), 0);
	if (fake.peer >= 0)
		close(fake.peer);
	return 0;
}

static enum vb_drained drain(void)
{
	enum vb_drained got;

	vb_mutex_lock(&fake.e.rx);
	got = vb_stream_drain(&fake.e, fake.now += VB_MSEC);
	vb_mutex_unlock(&fake.e.rx);
	return got;
}

/* Process the lane, so that the stream is read as far as the mark. */
static void get_past(void)
{
	fake.is_past = true;
	assert_int_equal(drain(), DRAINED_SOME);
	fake.is_past = false;
}

static void say(size_t bytes)
{
	uint8_t what[1000] = { 0 };

	assert_int_equal(send(fake.peer, what, bytes, 0), bytes);
}

/* Bytes, or a FIN, that come after a mark was set are not covered by it and
 * wait for the next mark, since the peer may have put a message on its lane
 * before them. */
static void order__what_comes_later_waits(void **state)
{
	say(100);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.marks, 1);
	assert_int_equal(drain(), DRAINED_BUSY);
	assert_int_equal(fake.marks, 1);
	assert_int_equal(fake.got, 0);
	say(50);
	assert_int_equal(shutdown(fake.peer, SHUT_WR), 0);
	get_past();
	assert_int_equal(fake.got, 100);
	assert_int_equal(fake.eofs, 0);
	assert_int_equal(fake.steps, 1);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.marks, 2);
	assert_int_equal(fake.got, 100);
	get_past();
	assert_int_equal(fake.got, 150);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.eofs, 0);
	get_past();
	assert_int_equal(fake.eofs, 1);
}

static void order__a_fin_waits(void **state)
{
	assert_int_equal(shutdown(fake.peer, SHUT_WR), 0);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(drain(), DRAINED_BUSY);
	assert_int_equal(fake.eofs, 0);
	get_past();
	assert_int_equal(fake.eofs, 1);
	/* The end of the stream is reported only once. */
	assert_int_equal(drain(), DRAINED_NOTHING);
	assert_int_equal(fake.marks, 1);
}

static void order__a_reset_waits(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fake.peer, SOL_SOCKET, SO_LINGER, &at_once,
				    sizeof(at_once)),
			 0);
	close(fake.peer);
	fake.peer = -1;
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.losses, 0);
	get_past();
	assert_int_equal(fake.losses, 1);
}

/* A reset that comes after the mark does not end the stream early. */
static void order__a_reset_behind_bytes_waits(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };

	say(100);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(setsockopt(fake.peer, SOL_SOCKET, SO_LINGER, &at_once,
				    sizeof(at_once)),
			 0);
	close(fake.peer);
	fake.peer = -1;
	get_past();
	assert_int_equal(fake.got, 100);
	assert_int_equal(fake.losses, 0);
	assert_int_equal(drain(), DRAINED_SOME);
	get_past();
	assert_int_equal(fake.losses, 1);
}

/* An urgent byte, which no iWARP peer sends, does not stop the stream. */
static void order__an_urgent_byte_is_skipped(void **state)
{
	say(10);
	assert_int_equal(send(fake.peer, "!", 1, MSG_OOB), 1);
	say(10);
	for (unsigned i = 0; i < 4; i++) {
		fake.is_past = false;
		(void)drain();
		fake.is_past = true;
		(void)drain();
	}
	assert_int_equal(fake.got, 20);
	fake.is_past = false;
	assert_int_equal(drain(), DRAINED_NOTHING);
}

/* The stream of a peer on another host does not wait, because that peer has no
 * lane. */
static void order__others_do_not_wait(void **state)
{
	fake.s->met = false;
	say(100);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.got, 100);
	assert_int_equal(fake.marks, 0);
}

/* The thread that drives the queue pair may wait for a page of the peer: the
 * thread that holds rx does not wait for it. */
static void VB_UNCHECKED driven__is_left(void **state)
{
	say(100);
	assert_int_equal(drain(), DRAINED_SOME);
	fake.is_past = true;
	vb_mutex_lock(&fake.qp.drive);
	assert_true(vb_mutex_trylock(&fake.e.rx));
	assert_int_equal(vb_stream_drain(&fake.e, fake.now += VB_MSEC),
			 DRAINED_BUSY);
	vb_mutex_unlock(&fake.e.rx);
	vb_mutex_unlock(&fake.qp.drive);
	assert_int_equal(fake.got, 0);
	get_past();
	assert_int_equal(fake.got, 100);
	assert_int_equal(fake.marks, 1);
}

/* While a stream waits, the lanes are processed without holding the lock rx. */
static void pass__is_made_without_rx(void **state)
{
	vb_stream_pass_lanes(&fake.e, fake.now);
	assert_int_equal(fake.passes, 0);
	say(100);
	assert_int_equal(drain(), DRAINED_SOME);
	assert_int_equal(fake.passes, 0);
	vb_stream_pass_lanes(&fake.e, fake.now);
	assert_int_equal(fake.passes, 1);
	get_past();
	vb_stream_pass_lanes(&fake.e, fake.now);
	assert_int_equal(fake.passes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(order__what_comes_later_waits,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(order__a_fin_waits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(order__a_reset_waits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			order__a_reset_behind_bytes_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			order__an_urgent_byte_is_skipped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(order__others_do_not_wait,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(driven__is_left, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(pass__is_made_without_rx,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
