/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: requests of this side, and MADs that the network returns. */
#include "cm_ib_fixture.h"

/* When a peer says at once that no program listens, the REQ is repeated for
 * half a second. */
void refused__at_once(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .local_id = PEER_ID };
	const vb_time begun = now;
	unsigned times = 0;

	connect_it();
	m.tid = conn->tid;
	m.remote_id = conn->local_id;
	m.answer.reason = CM_REJ_INVALID_SERVICE_ID;
	for (deliver(&m); happened == -1; deliver(&m), times++) {
		run_timer();
		expect_sent(CM_REQ);
	}
	assert_int_equal(happened, CM_IS_REJECTED);
	assert_true(times > 3 && now - begun < VB_SEC);
	vb_cm_release(conn, now);
}

/* A peer that refuses late has waited for a listener, so its REJ is final. */
void refused__after_a_while(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .local_id = PEER_ID };

	connect_it();
	m.tid = conn->tid;
	m.remote_id = conn->local_id;
	m.answer.reason = CM_REJ_INVALID_SERVICE_ID;
	now += VB_SEC / 5;
	deliver(&m);
	assert_int_equal(happened, CM_IS_REJECTED);
	vb_cm_release(conn, now);
}

/* Delivers REJ 26, which names the largest path MTU that the peer accepts. */
static void refuse_mtu(unsigned info_bytes, uint8_t most)
{
	struct vb_cm_msg m = { .attr = CM_REJ,
			       .tid = conn->tid,
			       .local_id = PEER_ID,
			       .remote_id = conn->local_id };

	m.answer.reason = CM_REJ_INVALID_MTU;
	m.answer.info_bytes = (uint8_t)info_bytes;
	m.answer.info[0] = most;
	deliver(&m);
}

void active__asks_for_less(void **state)
{
	connect_it();
	assert_int_equal(sent.req.mtu, 5);
	refuse_mtu(1, 3);
	assert_int_equal(happened, -1);
	expect_sent(CM_REQ);
	assert_int_equal(sent.req.mtu, 3);
	assert_int_equal(sent.req.qpn, OUR_QPN);
	/* a second copy of the REJ, which comes late, is ignored */
	refuse_mtu(1, 3);
	assert_int_equal(happened, -1);
	assert_int_equal(sent_count, 0);
	run_timer();
	expect_sent(CM_REQ);
	assert_int_equal(sent.req.mtu, 3);
	say(CM_REP, sent.tid);
	assert_int_equal(happened, CM_HAS_REPLY);
	assert_int_equal(conn->mtu, 3);
	vb_cm_release(conn, now);
}

void active__cannot_ask_for_less(void **state)
{
	static const uint8_t most[] = { 0, 5, 6, 3 };

	for (unsigned i = 0; i < VB_COUNT(most); i++) {
		connect_it();
		refuse_mtu(most[i] != 3, most[i]);
		assert_int_equal(happened, CM_IS_REJECTED);
		assert_int_equal(sent_count, 0);
		vb_cm_release(conn, now);
	}
}

void active__repeats_and_gives_up(void **state)
{
	connect_it();
	expect_repeats(CM_REQ, 2);
	expect_sent(CM_REJ);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
}

/* The network returns the last message of this side as undeliverable, with
 * @error. */
static void come_back(int error)
{
	uint8_t mad[VB_MAD_BYTES];

	happened = -1;
	vb_cm_put(mad, &sent);
	vb_cm_returned(cm, &path.dgid, mad, sizeof(mad), error, now);
}

static void expect_given_up(enum vb_cm_attr attr, int error, int told)
{
	const vb_time begun = now;

	for (unsigned i = 0; i < 3; i++) {
		come_back(error);
		assert_int_equal(happened, -1);
		run_timer();
		expect_sent(attr);
	}
	assert_true(now - begun > VB_SEC);
	come_back(error);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	assert_int_equal(conn->returned, told);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_count(cm), 0);
}

void active__gives_up_soon_where_nobody_is(void **state)
{
	static const int no_host[] = { EHOSTUNREACH, ENETUNREACH, EHOSTDOWN,
				       EACCES };

	connect_it();
	expect_given_up(CM_REQ, ECONNREFUSED, ECONNREFUSED);
	for (unsigned i = 0; i < VB_COUNT(no_host); i++) {
		sent_count = 0;
		connect_it();
		expect_given_up(CM_REQ, no_host[i], EHOSTUNREACH);
	}
	look_it_up();
	expect_given_up(CM_SIDR_REQ, ECONNREFUSED, ECONNREFUSED);
}

/* The kernel looks for a host for 3 s and then returns all packets to it. Such
 * a burst counts once. */
void active__outlasts_a_burst_of_returns(void **state)
{
	connect_it();
	for (unsigned burst = 0; burst < 2; burst++) {
		for (unsigned i = 0; i < 3; i++)
			run_timer();
		for (unsigned i = 0; i < 10; i++)
			come_back(EHOSTUNREACH);
		assert_int_equal(conn->state, CM_REQ_SENT);
		assert_int_equal(conn->returns, burst + 1);
	}
	run_timer();
	come_back(EHOSTUNREACH);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
}

/* A request ends when its returns last a second, however long it has waited. */
void active__outlasts_a_second_of_returns(void **state)
{
	connect_it();
	for (unsigned i = 0; i < 3; i++)
		run_timer();
	for (unsigned i = 0; i < 10; i++) {
		come_back(ECONNREFUSED);
		/* Pretend that the REQ was sent again: a return counts. */
		conn->came_back = false;
		assert_int_equal(happened, -1);
	}
	now += VB_SEC;
	come_back(ECONNREFUSED);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
}

/* Consecutive requests must not have consecutive transaction IDs. */
void active__transactions_are_no_sequence(void **state)
{
	uint32_t tids[3];

	for (unsigned i = 0; i < VB_COUNT(tids); i++) {
		sent_count = 0;
		connect_it();
		tids[i] = (uint32_t)conn->tid;
		vb_cm_release(conn, now);
	}
	assert_int_not_equal(tids[1], tids[0] + 1);
	assert_int_not_equal(tids[2], tids[1] + 1);
}

void active__heeds_no_other_returns(void **state)
{
	uint8_t mad[VB_MAD_BYTES] = { 0 };
	struct vb_cm_msg req;

	connect_it();
	req = sent;
	now += 2 * VB_SEC;
	for (unsigned i = 0; i < 10; i++) {
		come_back(EMSGSIZE);
		/* a return with a guessed transaction ID matches no request */
		sent.tid++;
		come_back(ECONNREFUSED);
		sent = req;
		sent.local_id++;
		come_back(ECONNREFUSED);
		sent = req;
		sent.attr = CM_SIDR_REQ;
		come_back(ECONNREFUSED);
		sent = req;
		vb_cm_put(mad, &req);
		vb_cm_returned(cm, &path.sgid, mad, sizeof(mad), ECONNREFUSED,
			       now);
		memset(mad, 0, sizeof(mad));
		vb_cm_returned(cm, &path.dgid, mad, sizeof(mad), ECONNREFUSED,
			       now);
		vb_cm_returned(cm, &path.dgid, mad, 8, ECONNREFUSED, now);
	}
	assert_int_equal(conn->returns, 0);
	assert_int_equal(conn->state, CM_REQ_SENT);
	say(CM_REP, req.tid);
	assert_int_equal(vb_cm_establish(conn, now), 0);
	sent = req;
	for (unsigned i = 0; i < 10; i++)
		come_back(ECONNREFUSED);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	assert_int_equal(happened, -1);
	vb_cm_release(conn, now);
}

static void expect_own(enum vb_cm_attr attr, bool own)
{
	struct vb_cm_msg m = { .attr = (uint16_t)attr,
			       .tid = sent.tid,
			       .local_id = sent.local_id };

	assert_int_equal(vb_cm_is_own(cm, &m), own);
	m.tid++;
	assert_false(vb_cm_is_own(cm, &m));
	m.tid--;
	m.local_id++;
	assert_false(vb_cm_is_own(cm, &m));
}

void active__knows_its_own_requests(void **state)
{
	path.sgid = path.dgid;
	connect_it();
	expect_own(CM_REQ, true);
	expect_own(CM_SIDR_REQ, false);
	say(CM_REP, sent.tid);
	expect_own(CM_REQ, false);
	vb_cm_release(conn, now);
	look_it_up();
	expect_own(CM_SIDR_REQ, true);
	expect_own(CM_REQ, false);
	vb_cm_release(conn, now);
	conn = NULL;
	request(PEER_ID, PEER_QPN);
	sent = (struct vb_cm_msg){ .tid = 9, .local_id = conn->local_id };
	expect_own(CM_REQ, false);
}

/* A host that got our REQ and sends our own IDs back is not taken for us. */
void active__does_not_own_what_a_host_reflects(void **state)
{
	struct vb_cm_msg m;

	connect_it();
	m = (struct vb_cm_msg){ .attr = CM_REQ,
				.tid = sent.tid,
				.local_id = sent.local_id };
	assert_false(vb_cm_is_own(cm, &m));
}

void active__is_patient_when_asked(void **state)
{
	struct vb_cm_msg m = { .attr = CM_MRA, .local_id = PEER_ID };
	vb_time before;

	connect_it();
	before = vb_cm_deadline(cm);
	m.tid = sent.tid;
	m.remote_id = conn->local_id;
	m.answer.timeout = 24;
	deliver(&m);
	assert_true(vb_cm_deadline(cm) > before + 60 * VB_SEC);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_busy(cm), 0);
}

void active__repeats_its_rtu(void **state)
{
	uint64_t tid;

	make_active();
	tid = sent.tid;
	say(CM_REP, tid);
	expect_sent(CM_RTU);
	assert_int_equal(happened, -1);
	vb_cm_release(conn, now);
}

void active__is_rejected(void **state)
{
	connect_it();
	say(CM_REJ, sent.tid + 1);
	assert_int_equal(happened, -1);
	say(CM_REJ, conn->tid);
	assert_int_equal(happened, CM_IS_REJECTED);
	say(CM_REP, conn->tid);
	assert_int_equal(happened, -1);
	vb_cm_release(conn, now);
}
