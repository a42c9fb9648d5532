/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the state machine of connections; the test plays the peer, message by
 * message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>

#include "mgmt/cm_ib.h"

#define PEER_GUID 0x1111
#define PEER_ID	  0x77
#define PEER_QPN  0x1234
#define OUR_QPN	  0x4321

static struct vb_cm *cm;
static struct vb_mad_path path;
static vb_time now;
static struct vb_cm_msg sent; /* the last message */
static unsigned sent_count;
static int happened; /* the last event; -1: none */
static unsigned refuse_with, requests;
static struct vb_cm_conn *conn;
static int owner;

static void catch_mad(void *arg, const struct vb_mad_path *to,
		      const uint8_t mad[VB_MAD_BYTES])
{
	assert_true(vb_gid_equal(&to->dgid, &path.dgid));
	assert_true(vb_cm_get(mad, VB_MAD_BYTES, &sent));
	sent_count++;
}

static unsigned take_request(void *arg, struct vb_cm_conn *c,
			     const struct vb_cm_msg *req)
{
	requests++;
	if (refuse_with)
		return refuse_with;
	c->owner = &owner;
	conn = c;
	return 0;
}

static void note(void *arg, struct vb_cm_conn *c, enum vb_cm_happening what,
		 const struct vb_cm_msg *m)
{
	assert_ptr_equal(c->owner, &owner);
	happened = (int)what;
}

static uint32_t not_random(void)
{
	static uint32_t n = 0x12345;

	return n += 0x10001;
}

static int begin(void **state)
{
	const struct vb_cm_ops ops = { .request = take_request,
				       .happen = note,
				       .out = { catch_mad, NULL },
				       .random = not_random };

	memset(&path, 0, sizeof(path));
	path.dgid.raw[15] = 1;
	path.sgid.raw[15] = 2;
	now = VB_SEC;
	sent_count = requests = refuse_with = 0;
	happened = -1;
	conn = NULL;
	cm = vb_cm_create(&ops);
	return cm ? 0 : -1;
}

static int finish(void **state)
{
	vb_cm_destroy(cm);
	return 0;
}

static void deliver(struct vb_cm_msg *m)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_put(mad, m);
	sent_count = 0;
	happened = -1;
	vb_cm_recv(cm, &path, mad, sizeof(mad), now);
}

static void say(enum vb_cm_attr attr, uint64_t tid)
{
	struct vb_cm_msg m = { .attr = (uint16_t)attr,
			       .tid = tid,
			       .local_id = PEER_ID,
			       .remote_id = conn ? conn->local_id : 0 };

	if (attr == CM_REP) {
		m.rep.qpn = PEER_QPN;
		m.rep.ca_guid = PEER_GUID;
	} else if (attr == CM_DREQ) {
		m.remote_qpn = OUR_QPN;
	} else if (attr == CM_REJ) {
		m.answer.reason = CM_REJ_CONSUMER;
	}
	deliver(&m);
}

static void request(uint32_t id, uint32_t qpn)
{
	struct vb_cm_msg m = { .attr = CM_REQ, .tid = 9, .local_id = id };

	m.req.ca_guid = PEER_GUID;
	m.req.qpn = qpn;
	m.req.local_timeout = m.req.remote_timeout = VB_CM_TIMEOUT_CODE;
	m.req.max_cm_retries = 2;
	m.req.path.ack_timeout = VB_CM_ACK_TIMEOUT;
	deliver(&m);
}

static void run_timer(void)
{
	sent_count = 0;
	happened = -1;
	assert_true(vb_cm_deadline(cm) != VB_NEVER);
	now = vb_cm_deadline(cm);
	vb_cm_tick(cm, now);
}

static void expect_sent(enum vb_cm_attr attr)
{
	assert_int_equal(sent_count, 1);
	assert_int_equal(sent.attr, attr);
}

/* Expects the early repetitions, after 250 ms, 0.5 s, 1 s, and then @count
 * more. */
static void expect_repeats(enum vb_cm_attr attr, unsigned count)
{
	const vb_time first = now;

	for (unsigned i = 0; i < 5 + count; i++) {
		run_timer();
		expect_sent(attr);
		assert_int_equal(happened, -1);
		if (i == 0)
			assert_true(now - first <= VB_SEC / 4);
	}
	assert_true(now - first >= count * vb_cm_code_ns(VB_CM_TIMEOUT_CODE));
	run_timer();
}

static void accept_it(void)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	rep.rep.qpn = OUR_QPN;
	sent_count = 0;
	assert_int_equal(vb_cm_accept(conn, &rep, now), 0);
	expect_sent(CM_REP);
	assert_int_equal(sent.remote_id, PEER_ID);
	assert_int_equal(sent.tid, 9);
}

static void connect_it(void)
{
	struct vb_cm_msg m = { .attr = CM_REQ };

	m.req.qpn = OUR_QPN;
	m.req.ca_guid = 0x2222;
	m.req.remote_timeout = VB_CM_TIMEOUT_CODE;
	m.req.max_cm_retries = 2;
	m.req.mtu = 5;
	assert_int_equal(vb_cm_connect(cm, &m, &path, &owner, now, &conn), 0);
	expect_sent(CM_REQ);
}

static void make_passive(void)
{
	request(PEER_ID, PEER_QPN);
	accept_it();
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
}

static void make_active(void)
{
	connect_it();
	say(CM_REP, sent.tid);
	assert_int_equal(happened, CM_HAS_REPLY);
	assert_int_equal(vb_cm_establish(conn, now), 0);
	expect_sent(CM_RTU);
	assert_int_equal(conn->state, CM_ESTABLISHED);
}

static void passive__asks_patience_then_repeats_its_reply(void **state)
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

static void passive__gives_up(void **state)
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

static void flood__gives_up_the_oldest(void **state)
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
	/* The latest request is not among the oldest, so it still works. */
	say(CM_REJ, 9);
	assert_int_equal(happened, CM_IS_REJECTED);
}

static void flood__what_comes_later_is_as_if_lost(void **state)
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

static void resume__knows_its_peer(void **state)
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
static void resume__answers_a_request(void **state)
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

/* When a peer says at once that no program listens, the REQ is repeated for
 * half a second. */
static void refused__at_once(void **state)
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
static void refused__after_a_while(void **state)
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

static void active__asks_for_less(void **state)
{
	connect_it();
	assert_int_equal(sent.req.mtu, 5);
	refuse_mtu(1, 3);
	assert_int_equal(happened, -1);
	expect_sent(CM_REQ);
	assert_int_equal(sent.req.mtu, 3);
	assert_int_equal(sent.req.qpn, OUR_QPN);
	refuse_mtu(1, 3); /* a late copy of the REJ */
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

static void active__cannot_ask_for_less(void **state)
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

static void passive__says_how_much(void **state)
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
	request(PEER_ID, PEER_QPN); /* the peer repeats its REQ */
	assert_int_equal(conn->state, CM_REQ_RCVD);
	vb_cm_release(conn, now);
}

static void resume__insists(void **state)
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

static void passive__refuses(void **state)
{
	refuse_with = CM_REJ_NO_RESOURCES;
	request(PEER_ID, PEER_QPN);
	expect_sent(CM_REJ);
	assert_int_equal(sent.answer.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(sent.remote_id, PEER_ID);
	assert_int_equal(vb_cm_busy(cm), 0);
}

static void held__nobody_comes(void **state)
{
	refuse_with = CM_REJ_INVALID_SERVICE_ID;
	request(PEER_ID, PEER_QPN);
	assert_int_equal(sent_count, 0);
	request(PEER_ID, PEER_QPN); /* a repetition of a request that waits */
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

static void held__somebody_comes(void **state)
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
	conn = NULL; /* teardown frees both */
}

static void held__the_peer_gives_up(void **state)
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

/* The number of waiting requests is bounded, and one peer gets a part of it. */
static void held__are_few(void **state)
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

static void sidr__answers_and_repeats_its_answer(void **state)
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
	look_up(PEER_ID); /* the first is forgotten, so this is a new one */
	assert_int_equal(requests, 2);
}

static void sidr__refuses(void **state)
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

static void sidr__owner_dies(void **state)
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

static void look_it_up(void)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REQ };

	m.sidr.service_id = 0x01110005;
	sent_count = 0;
	assert_int_equal(vb_cm_look_up(cm, &m, &path, &owner, now, &conn), 0);
	expect_sent(CM_SIDR_REQ);
}

static void sidr__asks_again_and_gives_up(void **state)
{
	look_it_up();
	expect_repeats(CM_SIDR_REQ, VB_CM_RETRIES);
	assert_int_equal(sent_count, 0);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
	assert_int_equal(vb_cm_busy(cm), 0);
}

static void sidr__is_answered_once(void **state)
{
	struct vb_cm_msg m = { .attr = CM_SIDR_REP };

	look_it_up();
	m.local_id = sent.local_id;
	m.tid = sent.tid + 1; /* of another transaction */
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

static void passive__hears_that_the_peer_gave_up(void **state)
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

static void active__repeats_and_gives_up(void **state)
{
	connect_it();
	expect_repeats(CM_REQ, 2);
	expect_sent(CM_REJ);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
}

/* The network returns the last message. */
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

static void active__gives_up_soon_where_nobody_is(void **state)
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
static void active__outlasts_a_burst_of_returns(void **state)
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
static void active__outlasts_a_second_of_returns(void **state)
{
	connect_it();
	for (unsigned i = 0; i < 3; i++)
		run_timer();
	for (unsigned i = 0; i < 10; i++) {
		come_back(ECONNREFUSED);
		conn->came_back = false; /* as if it were sent again at once */
		assert_int_equal(happened, -1);
	}
	now += VB_SEC;
	come_back(ECONNREFUSED);
	assert_int_equal(happened, CM_IS_UNREACHABLE);
	vb_cm_release(conn, now);
}

/* A peer that sees one transaction ID cannot guess the next. */
static void active__transactions_are_no_sequence(void **state)
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

static void active__heeds_no_other_returns(void **state)
{
	uint8_t mad[VB_MAD_BYTES] = { 0 };
	struct vb_cm_msg req;

	connect_it();
	req = sent;
	now += 2 * VB_SEC;
	for (unsigned i = 0; i < 10; i++) {
		come_back(EMSGSIZE);
		sent.tid++; /* a guessed transaction ID */
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

static void active__knows_its_own_requests(void **state)
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

/* The addressee of our REQ on another host knows its numbers. */
static void active__does_not_own_what_a_host_reflects(void **state)
{
	struct vb_cm_msg m;

	connect_it();
	m = (struct vb_cm_msg){ .attr = CM_REQ,
				.tid = sent.tid,
				.local_id = sent.local_id };
	assert_false(vb_cm_is_own(cm, &m));
}

static void active__is_patient_when_asked(void **state)
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

static void active__repeats_its_rtu(void **state)
{
	uint64_t tid;

	make_active();
	tid = sent.tid;
	say(CM_REP, tid);
	expect_sent(CM_RTU);
	assert_int_equal(happened, -1);
	vb_cm_release(conn, now);
}

static void active__is_rejected(void **state)
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

static void both__disconnect_at_once(void **state)
{
	make_active();
	assert_int_equal(vb_cm_disconnect(conn, now), 0);
	say(CM_DREQ, 5);
	expect_sent(CM_DREP);
	assert_int_equal(sent.tid, 5);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	assert_int_equal(vb_cm_disconnect(conn, now), -EINVAL);
	say(CM_DREQ, 5); /* the DREP was lost */
	expect_sent(CM_DREP);
	assert_int_equal(happened, -1);
	run_timer();
	assert_int_equal(happened, CM_IS_OVER);
	vb_cm_release(conn, now);
}

static void both__disconnect_without_an_answer(void **state)
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

static void dreq__for_nobody_is_answered(void **state)
{
	struct vb_cm_msg m = {
		.attr = CM_DREQ, .tid = 3, .local_id = 4, .remote_id = 5
	};

	deliver(&m);
	expect_sent(CM_DREP);
	assert_int_equal(sent.local_id, 5);
	assert_int_equal(sent.remote_id, 4);
}

static void dreq__for_another_queue_pair_is_not_ours(void **state)
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

/* The REP of an XRC target has its number in another field (IBA annex A14), and
 * a DREQ for it must still match. */
static void xrc__target_is_disconnected(void **state)
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

static void xrc__target_is_named_in_a_disconnect(void **state)
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

static void stale__peer_came_back(void **state)
{
	make_passive();
	request(PEER_ID + 1, PEER_QPN);
	assert_int_equal(requests, 1);
	assert_int_equal(sent_count, 2); /* REJ, DREQ */
	assert_int_equal(happened, -1);
	say(CM_DREP, sent.tid);
	assert_int_equal(happened, CM_IS_DISCONNECTED);
	assert_int_equal(conn->state, CM_TIMEWAIT);
	vb_cm_release(conn, now);
	/* still in time wait */
	request(PEER_ID + 1, PEER_QPN);
	assert_int_equal(requests, 2);
	vb_cm_release(conn, now);
}

static void stranger__reaches_nothing(void **state)
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

static void doors__refuse_at_the_wrong_time(void **state)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	connect_it();
	assert_int_equal(vb_cm_accept(conn, &rep, now), -EINVAL);
	assert_int_equal(vb_cm_establish(conn, now), -EINVAL);
	assert_int_equal(vb_cm_disconnect(conn, now), -EINVAL);
	assert_int_equal(vb_cm_reject(conn, 28, NULL, 0), -EINVAL);
	vb_cm_release(conn, now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(passive__asks_patience_then_repeats_its_reply),
		TEST(passive__gives_up),
		TEST(resume__knows_its_peer),
		TEST(resume__answers_a_request),
		TEST(active__asks_for_less),
		TEST(active__cannot_ask_for_less),
		TEST(passive__says_how_much),
		TEST(resume__insists),
		TEST(refused__at_once),
		TEST(refused__after_a_while),
		TEST(flood__gives_up_the_oldest),
		TEST(flood__what_comes_later_is_as_if_lost),
		TEST(passive__refuses),
		TEST(held__nobody_comes),
		TEST(held__somebody_comes),
		TEST(held__the_peer_gives_up),
		TEST(held__are_few),
		TEST(sidr__answers_and_repeats_its_answer),
		TEST(sidr__refuses),
		TEST(sidr__owner_dies),
		TEST(sidr__asks_again_and_gives_up),
		TEST(sidr__is_answered_once),
		TEST(passive__hears_that_the_peer_gave_up),
		TEST(active__repeats_and_gives_up),
		TEST(active__gives_up_soon_where_nobody_is),
		TEST(active__outlasts_a_burst_of_returns),
		TEST(active__outlasts_a_second_of_returns),
		TEST(active__transactions_are_no_sequence),
		TEST(active__heeds_no_other_returns),
		TEST(active__is_patient_when_asked),
		TEST(active__knows_its_own_requests),
		TEST(active__does_not_own_what_a_host_reflects),
		TEST(active__repeats_its_rtu),
		TEST(active__is_rejected),
		TEST(both__disconnect_at_once),
		TEST(both__disconnect_without_an_answer),
		TEST(dreq__for_nobody_is_answered),
		TEST(dreq__for_another_queue_pair_is_not_ours),
		TEST(xrc__target_is_disconnected),
		TEST(xrc__target_is_named_in_a_disconnect),
		TEST(stale__peer_came_back),
		TEST(stranger__reaches_nothing),
		TEST(doors__refuse_at_the_wrong_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
