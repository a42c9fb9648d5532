/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pair a queue pair takes for its peer, and at what time it
 * processes the peer's messages on the lane.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "core/mw.h"
#include "near/near_priv.h"
#include "tests/protocol/near_fixture.h"

#define AT  4096u
#define LEN 100u

/* A field of the registry entry of side 1's queue pair. */
struct field {
	const char *what;
	size_t at;
	uint8_t bytes;
	uint64_t flip; /* the bits that differ; 0: the entry is right */
	enum vb_qp_way way;
};
#define FIELD(f)                                                               \
	offsetof(struct vb_registry_qp, f),                                    \
		sizeof(((struct vb_registry_qp *)0)->f)

// clang-format off
static const struct field fields[] = {
	{ "nothing", FIELD(qpn), 0, WAY_NEAR },
	{ "another connected queue pair", FIELD(dest_qpn), 1, WAY_PACKETS },
	{ "another first PSN", FIELD(rq_psn), 1, WAY_PACKETS },
	{ "another address, first half", FIELD(sgid[0]), 1, WAY_PACKETS },
	{ "another address, second half", FIELD(sgid[1]), 1ull << 63, WAY_PACKETS },
	{ "another peer's address, first half", FIELD(dgid[0]), 1ull << 63, WAY_PACKETS },
	{ "another peer's address, second half", FIELD(dgid[1]), 1, WAY_PACKETS },
	{ "the same partition, a limited member", FIELD(pkey), 0x8000, WAY_NEAR },
	{ "another partition", FIELD(pkey), 1, WAY_PACKETS },
	{ "an adapter of a fabric", FIELD(place), 1, WAY_PACKETS },
};
// clang-format on

static void flip_field(struct stage *t, const struct field *f)
{
	struct vb_registry_qp *e =
		&near_sim_near(&t->sim, 1)->registry->qps[t->pair.qp[1]->index];
	uint8_t *at = (uint8_t *)e + f->at;
	uint64_t value = 0;

	memcpy(&value, at, f->bytes);
	value ^= f->flip;
	memcpy(at, &value, f->bytes);
}

/* On a busy machine an introduction takes long, and the requests wait for it,
 * but not for ever. */
static void way__waits_for_an_introduction(void **state)
{
	for (int ends = 0; ends < 2; ends++) {
		struct stage *t = stage_open(&near_sim_path, 1, NULL);
		struct vb_send_wqe wqe = stage_wqe(t, WR_WRITE, AT, LEN);
		const struct vb_qp *qp = t->pair.qp[0];
		struct vb_peer *p = near_sim_peer(&t->sim, 0);

		atomic_store(&p->state, PEER_CALLED);
		stage_post(t, &wqe, 0, t->mr[0]->key);
		sim_run(&t->sim, t->sim.now + 800 * VB_MSEC);
		assert_int_equal(qp->way, WAY_OPEN);
		if (ends)
			atomic_store(&p->state, PEER_UP);
		sim_run(&t->sim, t->sim.now + 300 * VB_MSEC);
		assert_int_equal(qp->way, ends ? WAY_NEAR : WAY_PACKETS);
		atomic_store(&p->state, PEER_UP);
		stage_close(t);
	}
}

/* Behind a relay or an address translation the connected queue pair can be on
 * another host, while a program of this host has a slot with the same
 * number. */
static void peer__is_the_one_that_is_connected(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(fields); i++) {
		const struct field *f = &fields[i];
		struct stage *t = stage_open(&near_sim_path, 1, NULL);
		struct vb_send_wqe wqe = stage_wqe(t, WR_WRITE, AT, LEN);

		flip_field(t, f);
		stage_post(t, &wqe, AT, t->mr[0]->key);
		sim_settle(&t->sim, t->sim.now + VB_SEC);
		if (t->pair.qp[0]->way != f->way)
			fail_msg("%s: way %u", f->what, t->pair.qp[0]->way);
		assert_memory_equal(t->mem[1] + AT, t->mem[0] + AT, LEN);
		stage_close(t);
	}
}

/* One thread processes a lane and waits; it is counted as a user of the queue
 * pair. Another thread destroys the queue pair meanwhile. */
static void detach__keeps_what_a_waiting_thread_uses(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_near *n = near_sim_near(&t->sim, 1);
	struct vb_qp *qp = t->pair.qp[1];
	struct vb_near_qp *nq = vb_nq(qp);

	atomic_fetch_add(&nq->awaited, 1);
	vb_mutex_lock(&qp->drive);
	vb_near_detach(n, qp);
	assert_ptr_equal(vb_nq(qp), nq);
	assert_int_equal(atomic_load(&nq->awaited), 1);
	assert_int_equal(vb_near_attach(qp), 0);
	vb_mutex_unlock(&qp->drive);
	assert_ptr_equal(vb_nq(qp), nq);
	atomic_fetch_sub(&nq->awaited, 1);
	stage_close(t);
}

/* Tell near/ whether the port of @side still reaches the other side's port
 * (@reaches). */
static void follow(struct stage *t, unsigned side, bool reaches)
{
	vb_mutex_lock(&t->pair.qp[side]->drive);
	vb_near_follow(near_sim_near(&t->sim, side), t->pair.qp[side], reaches);
	vb_mutex_unlock(&t->pair.qp[side]->drive);
}

/* Post a WRITE and wait for up to @wait for its completion. Returns the
 * completion's status, or -1 if there is none. */
static int write_for(struct stage *t, uint32_t at, vb_time wait)
{
	struct vb_send_wqe wqe = stage_wqe(t, WR_WRITE, at, LEN);
	struct vb_cqe wc;

	stage_post(t, &wqe, at, t->mr[0]->key);
	sim_settle(&t->sim, t->sim.now + wait);
	return sim_poll(t->pair.send_cq[0], &wc) ? wc.status : -1;
}

/* A port of either side changes its LID or goes down: requests wait. They
 * continue if the port is back in time, and fail as packets do otherwise. */
static void follow__a_port_that_reaches_nobody(void **state)
{
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		struct stage *t = stage_open(&near_sim_path, 1, NULL);
		struct vb_cqe wc;

		assert_int_equal(write_for(t, AT, VB_SEC), WC_SUCCESS);
		follow(t, side, false);
		assert_int_equal(write_for(t, 2 * AT, 20 * VB_MSEC), -1);
		assert_memory_not_equal(t->mem[1] + 2 * AT, t->mem[0] + 2 * AT,
					LEN);
		follow(t, side, true);
		sim_settle(&t->sim, t->sim.now + VB_SEC);
		assert_true(sim_poll(t->pair.send_cq[0], &wc));
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_memory_equal(t->mem[1] + 2 * AT, t->mem[0] + 2 * AT,
				    LEN);
		follow(t, side, false);
		assert_int_equal(write_for(t, 3 * AT, 100 * VB_SEC),
				 WC_RETRY_EXC_ERR);
		assert_int_equal(t->pair.qp[0]->way, WAY_NEAR);
		stage_close(t);
	}
}

/* A SEND that is on the lane when the receiver's port goes away. */
static void follow__a_request_that_is_on_the_lane(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, AT, LEN);
	struct ends e = { 0 };

	assert_int_equal(write_for(t, AT, VB_SEC), WC_SUCCESS);
	stage_recv(t, 2 * AT, LEN, t->mr[1]->key);
	near_sim_stop(&t->sim, 1);
	wqe.wr_id = 0;
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_drive(&t->sim);
	follow(t, 1, false);
	near_sim_go_on(&t->sim, 1);
	sim_settle(&t->sim, t->sim.now + 20 * VB_MSEC);
	stage_poll(t, 1, &e);
	assert_int_equal(e.recvs, 0);
	follow(t, 1, true);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 1, &e);
	assert_int_equal(e.recvs, 1);
	assert_int_equal(e.recv[0], WC_SUCCESS);
	stage_close(t);
}

/* The subnet manager removes the P_Key of the queue pair from the port's
 * table. */
static void follow__a_partition_that_it_leaves(void **state)
{
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		struct stage *t = stage_open(&near_sim_path, 1, NULL);
		struct vb_port *p = &t->sim.side[side].adapter.ports[0];

		assert_int_equal(write_for(t, AT, VB_SEC), WC_SUCCESS);
		atomic_store(&p->pkeys[0], (uint16_t)0x8002);
		follow(t, side, true);
		assert_int_equal(write_for(t, 2 * AT, 100 * VB_SEC),
				 WC_RETRY_EXC_ERR);
		stage_close(t);
	}
}

/* The requester's program is stopped for longer than all its retries last, and
 * the peer answers only some time after it continues: the time for which it was
 * stopped does not count as the peer's silence. */
static void silence__of_the_peer_while_this_program_is_stopped(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_cqe wc;

	assert_int_equal(write_for(t, AT, VB_SEC), WC_SUCCESS);
	follow(t, 1, false);
	assert_int_equal(write_for(t, 2 * AT, 20 * VB_MSEC), -1);
	near_sim_stop(&t->sim, 0);
	t->sim.now += 100 * VB_SEC;
	near_sim_go_on(&t->sim, 0);
	sim_settle(&t->sim, t->sim.now + 20 * VB_MSEC);
	assert_false(sim_poll(t->pair.send_cq[0], &wc));
	follow(t, 1, true);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	assert_true(sim_poll(t->pair.send_cq[0], &wc));
	assert_int_equal(wc.status, WC_SUCCESS);
	stage_close(t);
}

/* Set the queue pair's time to @at, as if another thread had driven it then. */
static void drive_at(struct stage *t, unsigned side, vb_time at)
{
	vb_mutex_lock(&t->pair.qp[side]->drive);
	t->pair.qp[side]->now = at;
	vb_mutex_unlock(&t->pair.qp[side]->drive);
}

/* Process the lanes of @side with a clock that was read too early, and return
 * the time of the completion. */
static vb_time serve_late(struct stage *t, unsigned side, struct vb_cq *cq,
			  vb_time driven)
{
	struct vb_cqe wc;

	near_sim_stop(&t->sim, side);
	drive_at(t, side, driven);
	assert_true(vb_near_poll(near_sim_near(&t->sim, side), t->sim.now));
	assert_true(sim_poll(cq, &wc));
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(t->pair.qp[side]->now, driven);
	near_sim_go_on(&t->sim, side);
	return wc.timestamp;
}

/* The time of a queue pair never goes back, neither for a request nor for an
 * answer, since timers and the order of completions depend on it. */
static void clock__of_a_queue_pair_never_goes_back(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, AT, LEN);
	vb_time later = t->sim.now + VB_SEC;

	near_sim_stand_by(&t->sim, 1, false);
	stage_recv(t, AT, LEN, t->mr[1]->key);
	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_drive(&t->sim);
	near_sim_stop(&t->sim, 0);
	near_sim_go_on(&t->sim, 1);
	assert_int_equal(serve_late(t, 1, t->pair.recv_cq[1], later), later);
	near_sim_go_on(&t->sim, 0);
	assert_int_equal(serve_late(t, 0, t->pair.send_cq[0], later + 7),
			 later + 7);
	stage_close(t);
}

/* An RNR NAK is processed by a thread whose time is older than the queue
 * pair's. The RNR wait must begin at the queue pair's time, or the retries
 * would be used up too soon. */
static void clock__rnr_waits_from_the_queue_pairs_time(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, AT, LEN);
	vb_time later = t->sim.now + VB_SEC;

	near_sim_stand_by(&t->sim, 1, false);
	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_drive(&t->sim);
	near_sim_stop(&t->sim, 0);
	near_sim_go_on(&t->sim, 1);
	/* No receive is posted. */
	assert_true(vb_near_poll(near_sim_near(&t->sim, 1), t->sim.now));
	drive_at(t, 0, later);
	assert_true(vb_near_poll(near_sim_near(&t->sim, 0), t->sim.now));
	assert_int_not_equal(vb_nq(t->pair.qp[0])->rnr_at, VB_NEVER);
	assert_true(vb_nq(t->pair.qp[0])->rnr_at > later);
	near_sim_go_on(&t->sim, 0);
	stage_close(t);
}

/* A thread that keeps the queue pair's lock until @release is set. */
struct holder {
	struct vb_qp *qp;
	sem_t holds, release;
};

static void *hold_drive(void *arg)
{
	struct holder *h = arg;

	vb_mutex_lock(&h->qp->drive);
	sem_post(&h->holds);
	sem_wait(&h->release);
	vb_mutex_unlock(&h->qp->drive);
	return NULL;
}

/* The peer sends a message and ends its process, while another thread holds the
 * lock of the queue pair that the message is for. The message is received
 * later. */
static void peer__that_ended_is_still_heard(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, AT, LEN);
	struct vb_near *n = near_sim_near(&t->sim, 1);
	struct holder h = { .qp = t->pair.qp[1] };
	struct vb_peer *p;
	struct vb_cqe wc;
	pthread_t thread;
	unsigned before;

	near_sim_stand_by(&t->sim, 1, false);
	stage_recv(t, AT, LEN, t->mr[1]->key);
	near_sim_stop(&t->sim, 1);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_drive(&t->sim);
	near_sim_stop(&t->sim, 0);
	p = vb_peer_get(n->active[n->active[0] == n->self]);
	before = n->active_count;
	assert_int_equal(sem_init(&h.holds, 0, 0), 0);
	assert_int_equal(sem_init(&h.release, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_drive, &h), 0);
	sem_wait(&h.holds);
	vb_near_remove(n, p, t->sim.now);
	assert_false(sim_poll(t->pair.recv_cq[1], &wc));
	sem_post(&h.release);
	pthread_join(thread, NULL);
	(void)vb_near_poll(n, t->sim.now);
	assert_true(sim_poll(t->pair.recv_cq[1], &wc));
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(n->active_count, before - 1);
	vb_peer_put(p);
	near_sim_go_on(&t->sim, 1);
	near_sim_go_on(&t->sim, 0);
	stage_close(t);
}

/* A thread that processes a lane waits for the queue pair's lock, while the
 * program moves the queue pair to RESET. The count of such waiting threads must
 * stay right. If it stayed too high, each thread that posts would release the
 * lock at each step. */
static void enter__reset_keeps_the_count_of_threads_that_wait(void **state)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_near *n = near_sim_near(&t->sim, 1);
	struct vb_qp *qp = t->pair.qp[1];

	vb_mutex_lock(&qp->drive);
	atomic_fetch_add(&vb_nq(qp)->awaited, 1);
	vb_near_enter(n, qp, QPS_ERR, QPS_RESET, true);
	assert_true(vb_near_is_awaited(qp));
	atomic_fetch_sub(&vb_nq(qp)->awaited, 1);
	assert_false(vb_near_is_awaited(qp));
	vb_mutex_unlock(&qp->drive);
	stage_close(t);
}

/* Side 1 binds a window of type 2 to a part of @region. */
static struct vb_mr *open_window(struct stage *t, struct vb_mr *region,
				 uint32_t *key)
{
	struct vb_qp *qp = t->pair.qp[1];
	struct vb_mw_bind bind = { .region = region->key,
				   .addr = region->iova,
				   .length = region->length,
				   .access = ACCESS_REMOTE_WRITE };
	struct vb_mr *mw;

	assert_int_equal(vb_mw_alloc(t->sim.side[1].pd, 2, &mw, key), 0);
	*key = bind.key = vb_mw_key(*key, 1);
	vb_mutex_lock(&qp->drive);
	assert_int_equal(vb_mw_bind(qp, &bind), MW_DONE);
	vb_mutex_unlock(&qp->drive);
	return mw;
}

/* Side 0 invalidates a window by a SEND, over shared memory (@near) or as
 * packets, while another thread of side 0 still accesses the window, which no
 * honest program does. @shows: that access is announced in a hazard. Returns
 * the status of side 1's receive. */
static int invalidate(bool near, bool shows)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND_INV, AT, LEN);
	struct vb_peer *p = near_sim_peer(&t->sim, 1);
	struct vb_mr *region, *mw;
	struct ends e = { 0 };

	assert_int_equal(vb_mr_register(t->sim.side[1].pd, t->mem[1], LEN,
					(uintptr_t)t->mem[1],
					ACCESS_LOCAL_WRITE | ACCESS_MW_BIND,
					&region),
			 0);
	mw = open_window(t, region, &wqe.imm);
	if (!near)
		t->pair.qp[0]->way = WAY_PACKETS;
	if (shows)
		atomic_store(&p->peer_hazards[0].what,
			     (uint64_t)wqe.imm << 32 |
				     vb_nq(t->pair.qp[1])->number);
	stage_recv(t, 2 * AT, LEN, t->mr[1]->key);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	sim_settle(&t->sim, t->sim.now + VB_SEC);
	stage_poll(t, 1, &e);
	assert_int_equal(e.recvs, 1);
	assert_int_equal(near_sim_is_expelled(&t->sim, 0), shows);
	/* Deregistration must be refused while the announced access lasts. */
	assert_int_equal(vb_mr_deregister(region), shows ? -EBUSY : 0);
	atomic_store(&p->peer_hazards[0].what, 0);
	vb_mw_free(mw);
	if (shows)
		assert_int_equal(vb_mr_deregister(region), 0);
	stage_close(t);
	return e.recv[0];
}

static void invalidate__by_a_peer_that_still_writes(void **state)
{
	for (unsigned near = 0; near < 2; near++) {
		assert_int_equal(invalidate(near, false), WC_SUCCESS);
		assert_int_not_equal(invalidate(near, true), WC_SUCCESS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(way__waits_for_an_introduction),
		cmocka_unit_test(peer__is_the_one_that_is_connected),
		cmocka_unit_test(detach__keeps_what_a_waiting_thread_uses),
		cmocka_unit_test(follow__a_port_that_reaches_nobody),
		cmocka_unit_test(follow__a_request_that_is_on_the_lane),
		cmocka_unit_test(follow__a_partition_that_it_leaves),
		cmocka_unit_test(
			silence__of_the_peer_while_this_program_is_stopped),
		cmocka_unit_test(peer__that_ended_is_still_heard),
		cmocka_unit_test(
			enter__reset_keeps_the_count_of_threads_that_wait),
		cmocka_unit_test(invalidate__by_a_peer_that_still_writes),
		cmocka_unit_test(clock__of_a_queue_pair_never_goes_back),
		cmocka_unit_test(clock__rnr_waits_from_the_queue_pairs_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
