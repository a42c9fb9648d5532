/* SPDX-License-Identifier: BSD-2-Clause */
/* link/ib: an adapter's link while the fabric's process writes anything to the
 * rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/shring.h"
#include "link/ib.h"
#include "wire/lrh.h"
#include "wire/verbs_ipc.h"

#define BYTES VB_SHRING_BYTES(VB_VERBS_RING)

static struct {
	/* the positions of both sides, each with its ring behind */
	struct vb_shring_side *own, *peer;
	/* the fabric process's ends of the two sockets */
	int bell, control;
	/* the link's end of the control socket */
	int controlled;
	struct vb_link *link;
	struct vb_rxq *rxq;
	struct vb_txq *txq;
} t;

static void *zeros(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	assert_non_null(memory);
	return memset(memory, 0, bytes);
}

static int set_up(void **state)
{
	int bell[2], control[2];

	(void)state;
	t.own = zeros(BYTES);
	t.peer = zeros(BYTES);
	t.rxq = zeros(sizeof(*t.rxq));
	t.txq = zeros(sizeof(*t.txq));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bell), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control), 0);
	t.bell = bell[1];
	t.control = control[1];
	t.controlled = control[0];
	return vb_ib_open(t.own, t.peer, bell[0], control[0], NULL, &t.link);
}

static int tear_down(void **state)
{
	(void)state;
	t.link->ops->close(t.link);
	close(t.bell);
	close(t.control);
	close(t.controlled);
	free(t.own);
	free(t.peer);
	free(t.rxq);
	free(t.txq);
	return 0;
}

/* Has the link shut its end of the control socket down, so that the engine sees
 * the end of the fabric? */
static bool has_ended(void)
{
	char byte;
	ssize_t n = recv(t.controlled, &byte, 1, MSG_DONTWAIT);

	assert_true(n == 0 || (n < 0 && errno == EAGAIN));
	return n == 0;
}

static void ib__an_empty_ring_is_no_fault(void **state)
{
	(void)state;
	assert_int_equal(t.link->ops->recv(t.link, t.rxq), 0);
	assert_int_equal(t.rxq->count, 0);
	assert_true(vb_ib_sleep(t.link));
	vb_ib_wake(t.link, true);
	assert_false(has_ended());
}

/* The link announces on which processor the program polls (fabricd/looks.h). */
static void ib__a_poll_says_where_it_runs(void **state)
{
	(void)state;
	assert_int_equal(atomic_load(&t.own->processor), 0);
	assert_int_equal(t.link->ops->recv(t.link, t.rxq), 0);
	assert_int_not_equal(atomic_load(&t.own->processor), 0);
}

static void ib__a_broken_head_ends_the_connection(void **state)
{
	(void)state;
	atomic_store(&t.peer->head, 1);
	assert_int_equal(t.link->ops->recv(t.link, t.rxq), 0);
	assert_int_equal(t.rxq->count, 0);
	assert_true(has_ended());
	/* The link reads no more of a broken ring. */
	assert_int_equal(t.link->ops->recv(t.link, t.rxq), 0);
	assert_int_equal(t.rxq->count, 0);
}

static void ib__a_broken_length_ends_the_connection(void **state)
{
	const uint64_t length = 1u << 30;

	(void)state;
	memcpy((uint8_t *)t.peer + VB_SHRING_RING_AT, &length, sizeof(length));
	atomic_store(&t.peer->head, VB_SHRING_ALIGN);
	assert_int_equal(t.link->ops->recv(t.link, t.rxq), 0);
	assert_int_equal(t.rxq->count, 0);
	assert_true(has_ended());
}

/* Send frames until the ring is full, or until @most were sent. */
static bool send_frames(unsigned most)
{
	static const struct vb_route route = { .ib = { .dlid = 1 } };
	bool sent = true;

	for (unsigned i = 0; i < most && sent; i++) {
		memset(vb_txq_begin(t.txq), 0, 1024);
		vb_txq_commit(t.txq, 1024, &route);
		sent = t.link->ops->send(t.link, t.txq);
	}
	return sent;
}

static void ib__a_broken_tail_ends_the_connection(void **state)
{
	(void)state;
	assert_false(send_frames(VB_VERBS_RING / 1024));
	assert_false(has_ended());
	atomic_store(&t.peer->tail, 1ull << 63);
	/* The waiting frames are dropped, since a broken ring takes none. */
	assert_true(t.link->ops->send(t.link, t.txq));
	assert_true(has_ended());
	assert_true(send_frames(3));
}

/* Frames stay in the ring until the fabric's process takes them, and
 * has_carried() reports that. When the process has ended, has_carried() must be
 * true, so that timeouts are no longer postponed. */
static void ib__carries_frames_until_the_fabric_ends(void **state)
{
	const struct vb_link_ops *ops = t.link->ops;
	uint64_t before = ops->sent(t.link), behind;

	(void)state;
	assert_true(ops->has_carried(t.link, before));
	assert_true(send_frames(2));
	behind = ops->sent(t.link);
	assert_true(ops->has_carried(t.link, before));
	assert_false(ops->has_carried(t.link, behind));
	atomic_store(&t.peer->tail, behind);
	assert_true(ops->has_carried(t.link, behind));
	assert_true(send_frames(1));
	assert_false(ops->has_carried(t.link, ops->sent(t.link)));
	vb_ib_end(t.link);
	assert_true(ops->has_carried(t.link, ops->sent(t.link)));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(ib__an_empty_ring_is_no_fault),
		CASE(ib__a_poll_says_where_it_runs),
		CASE(ib__a_broken_head_ends_the_connection),
		CASE(ib__a_broken_length_ends_the_connection),
		CASE(ib__a_broken_tail_ends_the_connection),
		CASE(ib__carries_frames_until_the_fabric_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
