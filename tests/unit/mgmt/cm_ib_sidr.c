/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of SIDR, by which a host asks for the queue pair that receives a
 * service's datagrams. */
#include "cm_ib_fixture.h"

static void look_up(uint32_t id)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REQ, .tid = 9, .local_id = id };

	m.sidr.service_id = 0x01110005;
	deliver(&m);
}

static void answer_it(void)
{
	struct vb_cm_msg rep = { 0 };

	rep.sidr.qpn = OUR_QPN;
	rep.sidr.qkey = 0x01234567;
	rep.private_data[0] = 'x';
	sent_count = 0;
	assert_int_equal(vb_cm_answer(conn, &rep, now), 0);
	expect_sent(CM_SIDR_REP);
}

void sidr__answers_and_repeats_its_answer(void **state)
{
	look_up(PEER_ID);
	assert_int_equal(requests, 1);
	assert_int_equal(sent_count, 0);
	look_up(PEER_ID);
	assert_int_equal(requests, 1);
	assert_int_equal(sent_count, 0);
	answer_it();
	assert_int_equal(sent.local_id, PEER_ID);
	assert_int_equal(sent.tid, 9);
	assert_int_equal(sent.sidr.qpn, OUR_QPN);
	look_up(PEER_ID);
	expect_sent(CM_SIDR_REP);
	assert_int_equal(sent.private_data[0], 'x');
	assert_int_equal(vb_cm_busy(cm), 0);
	run_timer();
	assert_int_equal(happened, -1);
	/* The first SIDR look-up has ended, so the same ID begins a new one. */
	look_up(PEER_ID);
	assert_int_equal(requests, 2);
}

void sidr__refuses(void **state)
{
	look_up(PEER_ID);
	assert_int_equal(vb_cm_reject(conn, CM_REJ_CONSUMER, "no", 2), 0);
	expect_sent(CM_SIDR_REP);
	assert_int_equal(sent.sidr.status, CM_SIDR_REJECTED);
	assert_memory_equal(sent.private_data, "no", 2);
	vb_cm_release(conn, now);
	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	look_up(PEER_ID + 1);
	assert_int_equal(sent_count, 0);
	run_timer();
	expect_sent(CM_SIDR_REP);
	assert_int_equal(sent.sidr.status, CM_SIDR_UNSUPPORTED);
	assert_int_equal(vb_cm_busy(cm), 0);
}

void sidr__owner_dies(void **state)
{
	look_up(PEER_ID);
	sent_count = 0;
	vb_cm_release(conn, now);
	expect_sent(CM_SIDR_REP);
	assert_int_equal(sent.sidr.status, CM_SIDR_REJECTED);
	look_up(PEER_ID);
	answer_it();
	sent_count = 0;
	vb_cm_release(conn, now);
	assert_int_equal(sent_count, 0);
	look_up(PEER_ID);
	expect_sent(CM_SIDR_REP);
	run_timer();
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
}

void look_it_up(void)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REQ };

	m.sidr.service_id = 0x01110005;
	sent_count = 0;
	assert_int_equal(vb_cm_look_up(cm, &m, &path, &owner, now, &conn), 0);
	expect_sent(CM_SIDR_REQ);
}

void sidr__asks_again_and_gives_up(void **state)
{
	look_it_up();
	expect_repeats(CM_SIDR_REQ, VB_CM_RETRIES);
	assert_int_equal(sent_count, 0);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_busy(cm), 0);
}

void sidr__is_answered_once(void **state)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REP };

	look_it_up();
	m.local_id = sent.local_id;
	/* a SIDR reply of another transaction is ignored */
	m.tid = sent.tid + 1;
	deliver(&m);
	assert_int_equal(happened, -1);
	m.tid = sent.tid;
	deliver(&m);
	assert_int_equal(happened, CM_HAS_ADDRESS);
	deliver(&m);
	assert_int_equal(happened, -1);
	assert_int_equal(vb_cm_answer(conn, &m, now), -EINVAL);
	vb_cm_release(conn, now);
	deliver(&m);
	assert_int_equal(happened, -1);
}
