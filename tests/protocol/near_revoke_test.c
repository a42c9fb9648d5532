/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program revokes memory while a peer that copies it is stopped at any step,
 * frozen or dead. The program waits as long as docs/NEAR.md says, and the
 * memory is not accessed afterwards, however the peer continues.
 */
#include "near/grace.h"
#include "tests/protocol/near_fixture.h"
#include "tests/support/seeds.h"

#define MOST_STEPS 400
#define AT	   4096u

/* A case: an operation, the side that owns the memory, and the side that
 * copies. */
struct victim {
	const char *name;
	enum vb_wr_op op;
	uint32_t len;
	/* the side that owns the memory; the other side copies */
	unsigned owner;
	unsigned stride; /* play only each @stride-th step */
};

static const struct victim victims[] = {
	{ "WRITE", WR_WRITE, 30000, 1, 1 },
	{ "READ", WR_READ, 30000, 1, 1 },
	{ "SEND, of its source", WR_SEND, 30000, 0, 1 },
	/* The sender copies one half of a message (near/split_copy.h). */
	{ "long SEND, of its target", WR_SEND, 150000, 1, 3 },
};

/* The ways in which the owner takes its memory back. */
enum taking { DEREGISTER, TO_ERR, TO_RESET, TAKINGS };

static void take_away(struct stage *t, unsigned owner, enum taking how)
{
	if (how == DEREGISTER) {
		assert_int_equal(vb_mr_deregister(t->mr[owner]), 0);
		t->mr[owner] = NULL;
	} else {
		sim_modify(&t->sim, t->pair.qp[owner],
			   how == TO_ERR ? QPS_ERR : QPS_RESET, 0, NULL);
	}
}

static struct stage *begin(const struct victim *v, uint64_t seed)
{
	struct vb_qp_attr attr = sim_attr;
	struct vb_send_wqe wqe;
	struct stage *t;

	attr.timeout = 12;
	attr.retry_cnt = 3;
	t = stage_open(&near_sim_path, seed, &attr);
	stage_recv(t, AT, v->len, t->mr[1]->key);
	wqe = stage_wqe(t, v->op, AT, v->len);
	stage_post(t, &wqe, AT, t->mr[0]->key);
	return t;
}

/* From now on the memory belongs to the owner alone: fill it with a mark, which
 * must not change. */
static void mark(struct stage *t, const struct victim *v)
{
	memset(t->mem[v->owner] + AT, 0xa5, v->len);
}

static void check_mark(const struct stage *t, const struct victim *v,
		       uint64_t step)
{
	for (uint32_t i = 0; i < v->len; i++)
		if (t->mem[v->owner][AT + i] != 0xa5)
			fail_msg("%s: byte %u was written after step %llu",
				 v->name, i, (unsigned long long)step);
}

/* Check that no bytes were delivered that were read after the memory was
 * revoked. */
static void check_source(const struct stage *t, const struct victim *v,
			 const struct ends *e)
{
	unsigned to = !v->owner;

	bool sent = e[0].sends && e[0].send[0] == WC_SUCCESS;
	bool came = e[1].recvs && e[1].recv[0] == WC_SUCCESS;

	if (v->op == WR_WRITE || (v->op == WR_SEND && v->owner == 1) ||
	    !(v->op == WR_SEND ? came : sent))
		return;
	for (uint32_t i = 0; i < v->len; i++)
		if (t->mem[to][AT + i] == 0xa5 &&
		    (uint8_t)((AT + i) * 31 + (AT + i) / 251 + 97 * v->owner) !=
			    0xa5)
			fail_msg("%s: byte %u was read too late", v->name, i);
}

/* What happens to the peer at the step that is played. */
struct peer_kind {
	enum near_harm harm;
	vb_time stop_for;
	vb_time bound; /* limit of the owner's wait */
	/* how long the owner runs on before it revokes the memory */
	vb_time goes_on;
};

/* Returns whether a copy after the revocation is allowed. docs/NEAR.md has one
 * such case: the peer was frozen inside the copy, and the owner has expelled
 * the peer. Then the copy must not count as done. */
static bool is_excused(const struct stage *t, const struct victim *v,
		       bool was_inside)
{
	bool expelled = near_sim_is_expelled(&t->sim, !v->owner);

	if (expelled != was_inside)
		fail_msg("%s: %s", v->name,
			 expelled ? "expelled outside of a copy"
				  : "not expelled inside a copy");
	return expelled;
}

/* Check that the program which copied too late does not complete the request
 * with success. */
static void check_status(const struct victim *v, const struct ends *e)
{
	unsigned to = !v->owner;
	bool done = to == 0 ? e[0].sends && e[0].send[0] == WC_SUCCESS
			    : e[1].recvs && e[1].recv[0] == WC_SUCCESS;

	if (done)
		fail_msg("%s: a late copy counts as done", v->name);
}

/* Play one case, with the harm at step @step. Returns false if the copy was
 * over before that step. */
static bool play(const struct victim *v, const struct peer_kind *k,
		 enum taking how, uint64_t step, uint64_t seed)
{
	struct stage *t = begin(v, seed);
	const struct near_plan plan = { k->harm, !v->owner, step, k->stop_for };
	struct ends e[SIM_SIDES] = { 0 };
	bool harmed, inside;
	vb_time then;

	near_sim_plan(&t->sim, &plan);
	sim_drive(&t->sim);
	harmed = near_sim_is_harmed(&t->sim);
	inside = k->stop_for == VB_NEVER && k->harm == HARM_FREEZE &&
		 near_sim_is_in_copy(&t->sim, !v->owner);
	if (k->goes_on)
		sim_settle(&t->sim, t->sim.now + k->goes_on);
	then = t->sim.now;
	take_away(t, v->owner, how);
	if (t->sim.now - then > k->bound)
		fail_msg("%s: waited %llu us at step %llu", v->name,
			 (unsigned long long)(t->sim.now - then) / 1000,
			 (unsigned long long)step);
	mark(t, v);
	if (near_sim_is_away(&t->sim, !v->owner) && k->harm != HARM_DIE)
		near_sim_go_on(&t->sim, !v->owner);
	sim_settle(&t->sim, t->sim.now + 10 * VB_SEC);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (!near_sim_is_away(&t->sim, i))
			stage_poll(t, i, &e[i]);
	if (is_excused(t, v, inside)) {
		check_status(v, e);
	} else {
		check_mark(t, v, step);
		check_source(t, v, e);
	}
	stage_close(t);
	return harmed;
}

static void play_steps(const struct victim *v, const struct peer_kind *k,
		       enum taking how)
{
	const unsigned stride = v->stride * seeds_stride();

	for (uint64_t step = 1; step < MOST_STEPS; step += stride)
		if (!play(v, k, how, step, 1 + step / stride % 3))
			break;
}

static void play_all(const struct peer_kind *k)
{
	for (unsigned i = 0; i < VB_COUNT(victims); i++)
		for (enum taking how = 0; how < TAKINGS; how++)
			play_steps(&victims[i], k, how);
}

/* The owner dies at step @step. A copy must not go to its process number, which
 * may belong to another process by then (stage_close()). Returns false if the
 * copy was over before that step. */
static bool play_death(const struct victim *v, uint64_t step)
{
	const struct near_plan plan = { HARM_DIE, v->owner, step, 0 };
	struct stage *t = begin(v, 1 + step % 3);
	struct ends e = { 0 };
	bool harmed;

	near_sim_plan(&t->sim, &plan);
	sim_drive(&t->sim);
	harmed = near_sim_is_harmed(&t->sim);
	sim_settle(&t->sim, t->sim.now + 10 * VB_SEC);
	if (v->owner == 1) {
		stage_poll(t, 0, &e);
		assert_int_equal(e.sends, 1);
		assert_true(e.send[0] == WC_SUCCESS ||
			    e.send[0] == WC_RETRY_EXC_ERR);
	}
	stage_close(t);
	return harmed;
}

static void death__of_the_owner_ends_copies(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(victims); i++)
		for (uint64_t step = 1; step < MOST_STEPS;
		     step += seeds_stride())
			if (!play_death(&victims[i], step))
				break;
}

static void revoke__from_a_stopped_peer(void **state)
{
	play_all(&(struct peer_kind){ HARM_STOP, VB_NEVER, 20 * VB_MSEC });
}

/* A peer that only lost its processor for a moment continues its copy. */
static void revoke__from_a_running_peer(void **state)
{
	play_all(&(struct peer_kind){ HARM_FREEZE, 100 * VB_USEC,
				      20 * VB_MSEC });
}

static void revoke__from_a_frozen_peer(void **state)
{
	play_all(&(struct peer_kind){ HARM_FREEZE, VB_NEVER,
				      VB_GRACE_UNSEEN + 100 * VB_MSEC });
}

/* One thread of the peer copies while another one ends the session. */
static void revoke__from_a_peer_that_leaves(void **state)
{
	play_all(&(struct peer_kind){ HARM_LEAVE, 6 * VB_MSEC, 20 * VB_MSEC });
}

/* The owner notices the end of the session before it revokes the memory. */
static void revoke__from_a_peer_that_has_left(void **state)
{
	play_all(&(struct peer_kind){ HARM_LEAVE, 6 * VB_MSEC, 20 * VB_MSEC,
				      3 * VB_MSEC });
}

static void revoke__from_a_peer_that_dies(void **state)
{
	play_all(&(struct peer_kind){ HARM_DIE, VB_NEVER, 20 * VB_MSEC });
}

/*
 * The receiver's queue pair fails when the sender has been copying its part of
 * a long SEND for long already. The limit of the wait must begin at the
 * failure.
 */

static void fail_qp(struct stage *t, unsigned side)
{
	struct vb_qp *qp = t->pair.qp[side];

	vb_mutex_lock(&qp->drive);
	vb_qp_fail(qp, -1);
	vb_mutex_unlock(&qp->drive);
}

/* Make the state in which side 0 has taken a part of a message that side 1
 * receives, and copies it. */
static void lend_part(struct stage *t)
{
	struct vb_split_copy *split = &near_sim_peer(&t->sim, 1)->split;
	struct vb_qp *qp = t->pair.qp[1];
	struct vb_near_qp *nq = qp->priv[PRIV_NEAR];
	struct vb_copy_part part = { 0 };
	uint32_t word;

	assert_true(vb_split_copy_make(split, &part));
	assert_true(vb_offer_take(near_sim_peer(&t->sim, 0)->offered, &part,
				  &word));
	vb_mutex_lock(&qp->drive);
	assert_true(vb_qp_recv_begin(qp));
	split->recv = qp->recv;
	qp->recv_busy = false;
	vb_mutex_unlock(&qp->drive);
	split->waits = true;
	split->qpn = nq->number;
	split->life = nq->life;
}

/* Poll every millisecond until all receives have completed. Returns how long
 * that took. */
static vb_time poll_until_back(struct stage *t, struct ends *e)
{
	vb_time then = t->sim.now;

	while (e->recvs == 0 && t->sim.now - then < 2 * VB_GRACE_RUNS) {
		(void)vb_near_poll(near_sim_near(&t->sim, 1), t->sim.now);
		t->sim.now += VB_MSEC;
		stage_poll(t, 1, e);
	}
	return t->sim.now - then;
}

static void failure__of_the_receiver_begins_a_new_wait(void **state)
{
	const struct near_plan plan = { HARM_FREEZE, 0, 10, VB_NEVER };
	struct stage *t = begin(&victims[0], 1);
	struct ends e = { 0 };

	near_sim_plan(&t->sim, &plan);
	sim_drive(&t->sim);
	assert_true(near_sim_is_in_copy(&t->sim, 0));
	lend_part(t);
	t->sim.now += 3 * VB_GRACE_RUNS;
	(void)vb_near_poll(near_sim_near(&t->sim, 1), t->sim.now);
	fail_qp(t, 1);
	(void)vb_near_poll(near_sim_near(&t->sim, 1), t->sim.now);
	assert_false(near_sim_is_expelled(&t->sim, 0));
	assert_true(poll_until_back(t, &e) >= VB_GRACE_UNSEEN);
	assert_true(near_sim_is_expelled(&t->sim, 0));
	assert_int_equal(e.recvs, 1);
	assert_int_equal(e.recv[0], WC_FLUSH_ERR);
	near_sim_go_on(&t->sim, 0);
	stage_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death__of_the_owner_ends_copies),
		cmocka_unit_test(revoke__from_a_stopped_peer),
		cmocka_unit_test(revoke__from_a_running_peer),
		cmocka_unit_test(revoke__from_a_frozen_peer),
		cmocka_unit_test(revoke__from_a_peer_that_leaves),
		cmocka_unit_test(revoke__from_a_peer_that_has_left),
		cmocka_unit_test(revoke__from_a_peer_that_dies),
		cmocka_unit_test(failure__of_the_receiver_begins_a_new_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
