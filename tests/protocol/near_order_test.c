/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer sends messages on its lane (a ring of requests in shared memory) and
 * others by another way. vb_near_is_past() says whether all that was on the
 * lane when a mark was set has been processed. Side 1 receives; the test's
 * thread processes its lanes, one turn (64 requests) at a time.
 */
#include "near/near_priv.h"
#include "tests/protocol/near_fixture.h"

#define LEN  8u
#define MANY 100u /* more requests than one turn processes */
#define TURN 64u

static void let_run(struct stage *t, unsigned side, bool runs)
{
	bool ran = !near_sim_is_away(&t->sim, side);

	if (runs && !ran)
		near_sim_go_on(&t->sim, side);
	else if (!runs && ran)
		near_sim_stop(&t->sim, side);
}

static unsigned count_done(struct vb_cq *cq)
{
	unsigned count = 0;
	struct vb_cqe wc;

	while (sim_poll(cq, &wc)) {
		assert_int_equal(wc.status, WC_SUCCESS);
		count++;
	}
	return count;
}

/* Side 0 puts @count SENDs on its lane. Side 1 posts receives for them, but
 * does not process them yet. */
static void fill_lane(struct stage *t, unsigned count)
{
	struct vb_send_wqe wqe = stage_wqe(t, WR_SEND, 0, LEN);

	let_run(t, 1, false);
	let_run(t, 0, true);
	/* side 0 processes answers, so that its lane has room again */
	sim_drive(&t->sim);
	(void)count_done(t->pair.send_cq[0]);
	for (unsigned i = 0; i < count; i++) {
		stage_recv(t, 0, LEN, t->mr[1]->key);
		stage_post(t, &wqe, 0, t->mr[0]->key);
	}
	sim_drive(&t->sim);
	let_run(t, 0, false);
}

static struct stage *begin(struct vb_near **n)
{
	struct stage *t = stage_open(&near_sim_path, 1, NULL);

	near_sim_stand_by(&t->sim, 1, false);
	*n = near_sim_near(&t->sim, 1);
	return t;
}

static void end(struct stage *t)
{
	let_run(t, 0, true);
	let_run(t, 1, true);
	stage_close(t);
}

static unsigned peer_slot(struct stage *t)
{
	return near_sim_peer(&t->sim, 1)->slot;
}

/* vb_near_is_past() is true when all that was on the lane before the mark is
 * processed, also if this takes several turns. */
static void past__means_that_all_is_processed(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);

	fill_lane(t, MANY);
	vb_near_mark(n, peer_slot(t), &m);
	assert_false(vb_near_is_past(n, &m, t->sim.now));
	assert_true(vb_near_poll(n, t->sim.now));
	assert_int_equal(count_done(t->pair.recv_cq[1]), TURN);
	assert_false(vb_near_is_past(n, &m, t->sim.now));
	assert_true(vb_near_poll(n, t->sim.now));
	assert_int_equal(count_done(t->pair.recv_cq[1]), MANY - TURN);
	assert_true(vb_near_is_past(n, &m, t->sim.now));
	end(t);
}

/* This program has let the peer in, and has not received READY: the peer may
 * write to the lane already, and this program does not process it yet. */
static void past__not_a_lane_that_comes_up(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);
	struct vb_peer *p = near_sim_peer(&t->sim, 1);
	struct vb_near_mark other = { .slot = VB_SLOTS - 1 };

	let_run(t, 1, false);
	vb_near_mark(n, p->slot, &m);
	(void)vb_near_poll(n, t->sim.now);
	assert_true(vb_near_is_past(n, &m, t->sim.now));
	vb_near_remove(n, p, t->sim.now);
	vb_near_mark(n, p->slot, &m);
	atomic_store(&p->state, PEER_MET);
	assert_false(vb_near_is_past(n, &m, t->sim.now));
	assert_true(vb_near_is_past(n, &other, t->sim.now));
	p->leaves = false;
	vb_near_add(n, p);
	atomic_store(&p->state, PEER_UP);
	assert_false(vb_near_is_past(n, &m, t->sim.now));
	(void)vb_near_poll(n, t->sim.now);
	assert_true(vb_near_is_past(n, &m, t->sim.now));
	end(t);
}

/* A lane that was empty may have got messages before the mark was set, so it
 * must be looked at once more after the mark. */
static void past__needs_a_look_behind_the_mark(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);

	let_run(t, 1, false);
	(void)vb_near_poll(n, t->sim.now);
	vb_near_mark(n, peer_slot(t), &m);
	assert_false(vb_near_is_past(n, &m, t->sim.now));
	(void)vb_near_poll(n, t->sim.now);
	assert_true(vb_near_is_past(n, &m, t->sim.now));
	end(t);
}

/* A lane that is never empty, because its peer sends without pause, does not
 * delay the end of that peer's stream. */
static void past__comes_although_the_lane_is_never_empty(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);
	unsigned turns = 0;

	fill_lane(t, MANY);
	vb_near_mark(n, peer_slot(t), &m);
	while (!vb_near_is_past(n, &m, t->sim.now)) {
		assert_true(vb_near_poll(n, t->sim.now));
		assert_int_equal(count_done(t->pair.recv_cq[1]), TURN);
		fill_lane(t, TURN);
		assert_true(++turns <= 2 * VB_RING_SLOTS / TURN);
	}
	assert_true(turns >= MANY / TURN);
	end(t);
}

/* Another thread processes the lane, and waits for a page of the peer's memory.
 * After a second the stream of that peer is read all the same. */
static void past__does_not_wait_for_a_late_page_for_ever(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);
	struct vb_peer *p = near_sim_peer(&t->sim, 1);
	unsigned looks = 0;

	fill_lane(t, MANY);
	vb_near_mark(n, p->slot, &m);
	vb_mutex_lock(&n->lanes_lock);
	p->claim.taken = true;
	vb_mutex_unlock(&n->lanes_lock);
	for (; !vb_near_is_past(n, &m, t->sim.now); looks++) {
		(void)vb_near_poll(n, t->sim.now);
		t->sim.now += VB_AGE_STEP;
	}
	assert_int_equal(looks, VB_SEC / VB_AGE_STEP);
	vb_mutex_lock(&n->lanes_lock);
	p->claim.taken = false;
	vb_mutex_unlock(&n->lanes_lock);
	end(t);
}

/* A mark for another peer's lane does not wait for this lane. */
static void past__needs_no_other_lane(void **state)
{
	struct vb_near_mark m;
	struct vb_near *n;
	struct stage *t = begin(&n);

	fill_lane(t, MANY);
	vb_near_mark(n, peer_slot(t) + 100, &m);
	assert_true(vb_near_is_past(n, &m, t->sim.now));
	end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(past__means_that_all_is_processed),
		cmocka_unit_test(past__not_a_lane_that_comes_up),
		cmocka_unit_test(past__needs_a_look_behind_the_mark),
		cmocka_unit_test(past__comes_although_the_lane_is_never_empty),
		cmocka_unit_test(past__does_not_wait_for_a_late_page_for_ever),
		cmocka_unit_test(past__needs_no_other_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
