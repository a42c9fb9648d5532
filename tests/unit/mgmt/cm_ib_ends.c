/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: how connections end, and what hosts without a connection can cause. */
#include "cm_ib_fixture.h"

void both__disconnect_at_once(void **state)
{
	make_active();
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	say(CM_DREQ, 5);
	expect_sent(CM_DREP);
	assert_int_equal(sent.tid, 5);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	assert_int_equal(vb_cm_disconnect(conn, now), -EINVAL);
	say(CM_DREQ, 5); /* the peer repeats its DREQ, as the DREP was lost */
	expect_sent(CM_DREP);
	assert_int_equal(happened, -1);
	run_timer();
	assert_int_equal(happened, CM_IS_OVER);
	vb_cm_release(conn, now);
}

void both__disconnect_without_an_answer(void **state)
{
	make_passive();
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	expect_repeats(CM_DREQ, 15);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_busy(cm), 0);
	run_timer();
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
}

void dreq__for_nobody_is_answered(void **state)
{
	struct vb_cm_msg m = {
		.attr = CM_DREQ, .tid = 3, .local_id = 4, .remote_id = 5
	};

	deliver(&m);
	expect_sent(CM_DREP);
	assert_int_equal(sent.local_id, 5);
	assert_int_equal(sent.remote_id, 4);
}

void dreq__for_another_queue_pair_is_not_ours(void **state)
{
	struct vb_cm_msg m = { .attr = CM_DREQ, .local_id = PEER_ID };

	make_passive();
	m.remote_id = conn->local_id;
	m.remote_qpn = OUR_QPN + 1;
	deliver(&m);
	assert_int_equal(sent_count, 0);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	vb_cm_release(conn, now);
}

/* Delivers a LAP for our connection @id and the queue pair @qpn, and returns
 * the status of the APR. */
static unsigned lap(uint32_t peer_id, uint32_t id, uint32_t qpn)
{
	struct vb_cm_msg m = { .attr = CM_LAP,
			       .tid = 0x1122334455667788,
			       .local_id = peer_id,
			       .remote_id = id,
			       .lap.remote_qpn = qpn };

	deliver(&m);
	expect_sent(CM_APR);
	assert_int_equal(sent.tid, 0x1122334455667788);
	assert_int_equal(sent.local_id, id);
	assert_int_equal(sent.remote_id, peer_id);
	return sent.apr.status;
}

void lap__is_answered(void **state)
{
	struct vb_cm_msg m = { .attr = CM_LAP, .local_id = PEER_ID };

	assert_int_equal(lap(4, 5, 6), CM_APR_INVALID_COMM_ID);
	make_passive();
	assert_int_equal(lap(PEER_ID, conn->local_id, OUR_QPN),
			 CM_APR_UNSUPPORTED);
	assert_int_equal(lap(PEER_ID, conn->local_id, OUR_QPN + 1),
			 CM_APR_INVALID_QPN);
	/* The LAP names another connection of the peer than ours. */
	assert_int_equal(lap(PEER_ID + 1, conn->local_id, OUR_QPN),
			 CM_APR_INVALID_COMM_ID);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	assert_int_equal(happened, -1);
	/* An APR without a LAP before it changes nothing. */
	m.attr = CM_APR;
	m.remote_id = conn->local_id;
	deliver(&m);
	m.remote_id = 5;
	deliver(&m);
	assert_int_equal(sent_count, 0);
	/* A connection that is ending ignores a LAP. */
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	expect_sent(CM_DREQ);
	m.attr = CM_LAP;
	m.remote_id = conn->local_id;
	deliver(&m);
	assert_int_equal(sent_count, 0);
	vb_cm_release(conn, now);
}

/* The REP of an XRC target has its number in another field (IBA annex A14), and
 * a DREQ for it must still match. */
void xrc__target_is_disconnected(void **state)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	request(PEER_ID, PEER_QPN);
	rep.rep.eecn = OUR_QPN;
	assert_int_equal(vb_cm_accept(conn, &rep, now), 0);
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
	say(CM_DREQ, 5);
	expect_sent(CM_DREP);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	vb_cm_release(conn, now);
}

void xrc__target_is_named_in_a_disconnect(void **state)
{
	struct vb_cm_msg rep = { .attr = CM_REP, .local_id = PEER_ID };

	connect_it();
	rep.tid = sent.tid;
	rep.remote_id = conn->local_id;
	rep.rep.eecn = PEER_QPN;
	rep.rep.ca_guid = PEER_GUID;
	deliver(&rep);
	assert_int_equal(happened, CM_HAS_REPLY);
	assert_int_equal(vb_cm_establish(conn, now), 0);
	sent_count = 0;
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	expect_sent(CM_DREQ);
	assert_int_equal(sent.remote_qpn, PEER_QPN);
	vb_cm_release(conn, now);
}

void stale__peer_came_back(void **state)
{
	make_passive();
	request(PEER_ID + 1, PEER_QPN);
	assert_int_equal(requests, 1);
	assert_int_equal(sent_count, 2); /* sent: a REJ and a DREQ */
	assert_int_equal(happened, -1);
	say(CM_DREP, sent.tid);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	assert_int_equal(conn->state, CM_TIMEWAIT);
	vb_cm_release(conn, now);
	/* The old connection of the peer's queue pair is still in time wait. */
	request(PEER_ID + 1, PEER_QPN);
	assert_int_equal(requests, 2);
	vb_cm_release(conn, now);
}

void stranger__reaches_nothing(void **state)
{
	struct vb_gid real;

	make_passive();
	real = path.dgid;
	path.dgid.raw[0] = 0xaa;
	say(CM_DREQ, 1);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	assert_int_equal(happened, -1);
	request(PEER_ID + 1, PEER_QPN);
	expect_sent(CM_REJ);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	path.dgid = real;
	vb_cm_release(conn, now);
}

void doors__refuse_at_the_wrong_time(void **state)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	connect_it();
	assert_int_equal(vb_cm_accept(conn, &rep, now), -EINVAL);
	assert_int_equal(vb_cm_establish(conn, now), -EINVAL);
	assert_int_equal(vb_cm_disconnect(conn, now), -EINVAL);
	assert_int_equal(vb_cm_reject(conn, 28, NULL, 0), -EINVAL);
	vb_cm_release(conn, now);
}
