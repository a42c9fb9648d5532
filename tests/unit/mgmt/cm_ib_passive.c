/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: requests that come, wait for a listener, and are answered. */
#include "cm_ib_fixture.h"

void passive__asks_patience_then_repeats_its_reply(void **state)
{
	request(PEER_ID, PEER_QPN);
	assert_int_equal(requests, 1);
	assert_int_equal(sent_count, 0);
	request(PEER_ID, PEER_QPN);
	expect_sent(CM_MRA);
	assert_int_equal(requests, 1);
	accept_it();
	request(PEER_ID, PEER_QPN);
	expect_sent(CM_REP);
	run_timer();
	expect_sent(CM_REP);
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
	request(PEER_ID, PEER_QPN);
	assert_int_equal(sent_count, 0);
	vb_cm_release(conn, now);
	expect_sent(CM_DREQ);
}

void passive__gives_up(void **state)
{
	request(PEER_ID, PEER_QPN);
	accept_it();
	expect_repeats(CM_REP, 2);
	expect_sent(CM_REJ);
	assert_int_equal(sent.answer.reason, CM_REJ_TIMEOUT);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	assert_int_equal(vb_cm_busy(cm), 0);
	vb_cm_release(conn, now);
}

static void go_by_lids(void)
{
	memset(&path, 0, sizeof(path));
	path.place = 2;
	path.dlid = 6;
}

void lids__identify_a_peer_without_gids(void **state)
{
	go_by_lids();
	request(PEER_ID, PEER_QPN);
	accept_it();
	path.dlid = 7;
	say(CM_RTU, 9);
	assert_int_equal(happened, -1);
	path.dlid = 6;
	path.place = 1;
	say(CM_RTU, 9);
	assert_int_equal(happened, -1);
	path.place = 2;
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
	/* a host that only claims the peer's GUID ends nothing */
	path.dlid = 7;
	request(PEER_ID + 1, PEER_QPN);
	expect_sent(CM_REJ);
	assert_int_equal(conn->state, CM_ESTABLISHED);
	path.dlid = 6;
	vb_cm_release(conn, now);
}

/* A connection from port 2 to LID 6, with an alternate path from port 3 to LID
 * 9. */
static void make_two_ways(struct vb_mad_path *first, struct vb_mad_path *second)
{
	go_by_lids();
	make_passive();
	*first = *second = path;
	second->place = 3;
	second->dlid = 9;
	assert_int_equal(vb_cm_migrate(conn), -EINVAL);
	vb_cm_add_path(conn, second);
}

void alternate__a_dreq_goes_by_both_paths(void **state)
{
	struct vb_mad_path first, second;

	make_two_ways(&first, &second);
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	assert_int_equal(sent_by.dlid, 6);
	for (unsigned i = 0; i < 3; i++) {
		run_timer();
		expect_sent(CM_DREQ);
		assert_int_equal(sent_by.dlid, i & 1 ? 6 : 9);
		assert_int_equal(sent_by.place, i & 1 ? 2 : 3);
	}
	path = second;
	say(CM_DREP, sent.tid);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	vb_cm_release(conn, now);
}

void alternate__answers_go_the_peers_way(void **state)
{
	struct vb_mad_path first, second;

	make_two_ways(&first, &second);
	/* port 2 has no path to LID 9 */
	path.dlid = 9;
	say(CM_DREQ, 5);
	assert_int_equal(happened, -1);
	path = second;
	say(CM_DREQ, 5);
	expect_sent(CM_DREP);
	assert_int_equal(sent_by.dlid, 9);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	path = first;
	say(CM_DREQ, 5);
	expect_sent(CM_DREP);
	assert_int_equal(sent_by.dlid, 6);
	/* the program says that its queue pair has migrated */
	assert_int_equal(vb_cm_migrate(conn), 0);
	assert_int_equal(conn->path.dlid, 9);
	vb_cm_release(conn, now);
}

static void ask_by_id(void)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REQ, .tid = 9, .local_id = 5 };

	deliver(&m);
}

void lids__identify_who_looks_up(void **state)
{
	go_by_lids();
	ask_by_id();
	assert_int_equal(requests, 1);
	ask_by_id();
	assert_int_equal(requests, 1);
	path.dlid = 7;
	ask_by_id();
	assert_int_equal(requests, 2);
}

void flood__gives_up_the_oldest(void **state)
{
	struct vb_cm_conn *first = NULL;

	for (uint32_t i = 0; i <= VB_CM_MAX_FADING + 1; i++) {
		request(PEER_ID + i, PEER_QPN + i);
		first = first ? first : conn;
		if (i <= VB_CM_MAX_FADING)
			assert_int_equal(happened, -1);
		else
			assert_int_equal(happened, CM_IS_UNREACHABLE);
		if (i <= VB_CM_MAX_FADING) {
			struct vb_cm_msg rep = { .attr = CM_REP };

			assert_int_equal(vb_cm_accept(conn, &rep, now), 0);
		}
	}
	assert_int_equal(first->state, CM_CLOSED);
	/* The latest request is not among the oldest, which were given up, so
	 * it still works. */
	say(CM_REJ, 9);
	assert_int_equal(happened, CM_IS_REJECTED);
}

void flood__what_comes_later_is_as_if_lost(void **state)
{
	refuse_with = VB_CM_LATER;
	request(PEER_ID, PEER_QPN);
	assert_int_equal(sent_count, 0);
	assert_int_equal(vb_cm_count(cm), 0);
	refuse_with = 0;
	request(PEER_ID, PEER_QPN);
	assert_int_equal(requests, 2);
	assert_int_equal(conn->state, CM_REQ_RCVD);
}

void resume__knows_its_peer(void **state)
{
	struct vb_cm_ticket t = { .state = CM_ESTABLISHED,
				  .local_id = 0xabcdef01,
				  .remote_id = PEER_ID,
				  .local_qpn = OUR_QPN,
				  .remote_qpn = PEER_QPN,
				  .remote_guid = PEER_GUID };

	assert_int_equal(vb_cm_resume(cm, &t, &path, &owner, &conn), 0);
	assert_int_equal(conn->local_id, t.local_id);
	assert_int_equal(vb_cm_resume(cm, &t, &path, &owner, &conn), -EINVAL);
	t.local_id++;
	t.state = CM_TIMEWAIT;
	assert_int_equal(vb_cm_resume(cm, &t, &path, &owner, &conn), -EINVAL);
	say(CM_DREQ, 77);
	expect_sent(CM_DREP);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	vb_cm_release(conn, now);
	run_timer();
	assert_int_equal(vb_cm_count(cm), 0);
}

/* A request that an earlier manager received can be accepted at the new one. */
void resume__answers_a_request(void **state)
{
	const struct vb_cm_ticket t = { .state = CM_REQ_RCVD,
					.passive = true,
					.local_id = 0xabcdef01,
					.remote_id = PEER_ID,
					.remote_qpn = PEER_QPN,
					.remote_guid = PEER_GUID,
					.tid = 9 };

	assert_int_equal(vb_cm_resume(cm, &t, &path, &owner, &conn), 0);
	request(PEER_ID, PEER_QPN);
	expect_sent(CM_MRA);
	accept_it();
	assert_int_equal(sent.local_id, 0xabcdef01);
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
}

void passive__says_how_much(void **state)
{
	static const uint8_t most = 3;

	request(PEER_ID, PEER_QPN);
	sent_count = 0;
	assert_int_equal(vb_cm_reject(conn, CM_REJ_INVALID_MTU, &most, 1), 0);
	expect_sent(CM_REJ);
	assert_int_equal(sent.answer.reason, CM_REJ_INVALID_MTU);
	assert_int_equal(sent.answer.info_bytes, 1);
	assert_int_equal(sent.answer.info[0], 3);
	vb_cm_release(conn, now);
	/* the peer repeats its REQ, which is handled again */
	request(PEER_ID, PEER_QPN);
	assert_int_equal(conn->state, CM_REQ_RCVD);
	vb_cm_release(conn, now);
}

void resume__insists(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .local_id = PEER_ID };

	connect_it();
	vb_cm_insist(conn);
	m.tid = conn->tid;
	m.remote_id = conn->local_id;
	m.answer.reason = CM_REJ_STALE_CONN;
	deliver(&m);
	assert_int_equal(happened, -1);
	run_timer();
	expect_sent(CM_REQ);
	m.answer.reason = CM_REJ_CONSUMER;
	deliver(&m);
	assert_int_equal(happened, CM_IS_REJECTED);
	vb_cm_release(conn, now);
}

void passive__refuses(void **state)
{
	refuse_with = CM_REJ_NO_RESOURCES;
	request(PEER_ID, PEER_QPN);
	expect_sent(CM_REJ);
	assert_int_equal(sent.answer.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(sent.remote_id, PEER_ID);
	assert_int_equal(vb_cm_busy(cm), 0);
}

void held__nobody_comes(void **state)
{
	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	request(PEER_ID, PEER_QPN);
	assert_int_equal(sent_count, 0);
	/* the peer repeats a REQ that waits for a program to listen */
	request(PEER_ID, PEER_QPN);
	assert_int_equal(sent_count, 0);
	assert_int_equal(requests, 1);
	vb_cm_listens(cm);
	assert_int_equal(requests, 2);
	assert_true(vb_cm_deadline(cm) - now <= VB_SEC / 2);
	run_timer();
	expect_sent(CM_REJ);
	assert_int_equal(sent.answer.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(sent.answer.message, CM_ANSWERS_REQ);
	assert_int_equal(vb_cm_busy(cm), 0);
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
}

void held__somebody_comes(void **state)
{
	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	request(PEER_ID, PEER_QPN);
	request(PEER_ID + 1, PEER_QPN + 1);
	refuse_with = 0;
	vb_cm_listens(cm);
	assert_int_equal(requests, 4);
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
	vb_cm_listens(cm);
	assert_int_equal(requests, 4);
	conn = NULL; /* the teardown of the test frees both connections */
}

void held__the_peer_gives_up(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .tid = 9, .local_id = PEER_ID };

	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	request(PEER_ID, PEER_QPN);
	m.answer.reason = CM_REJ_TIMEOUT;
	m.answer.info_bytes = 8;
	vb_store_be(m.answer.info, PEER_GUID, 8);
	deliver(&m);
	assert_int_equal(vb_cm_busy(cm), 0);
	assert_int_equal(vb_cm_deadline(cm), VB_NEVER);
	vb_cm_listens(cm);
	assert_int_equal(requests, 1);
}

/* The number of requests that wait is limited, and one peer may have only a
 * part of them. */
void held__are_few(void **state)
{
	unsigned held[2] = { 0, 0 };

	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	for (unsigned peer = 0; peer < 2; peer++) {
		path.dgid.raw[0] = (uint8_t)peer;
		for (unsigned i = 0; i < 500; i++) {
			request(PEER_ID + 1000 * peer + i,
				PEER_QPN + 1000 * peer + i);
			held[peer] += sent_count == 0;
		}
	}
	assert_in_range(held[0], 1, 499);
	assert_int_equal(held[0], held[1]);
}

void passive__hears_that_the_peer_gave_up(void **state)
{
	struct vb_cm_msg m = { .attr = CM_REJ, .tid = 9, .local_id = PEER_ID };

	request(PEER_ID, PEER_QPN);
	m.answer.reason = CM_REJ_TIMEOUT;
	m.answer.info_bytes = 8;
	vb_store_be(m.answer.info, PEER_GUID, 8);
	deliver(&m);
	assert_int_equal(happened, CM_IS_REJECTED);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_busy(cm), 0);
}
