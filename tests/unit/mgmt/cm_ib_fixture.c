/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager whose peer the test plays, message by message. */
#include "cm_ib_fixture.h"

struct vb_cm *cm;
struct vb_mad_path path;
vb_time now;
/* the last message that the connection manager under test sent */
struct vb_cm_msg sent;
unsigned sent_count;
struct vb_mad_path sent_by; /* the path by which @sent was sent */
int happened;		    /* the last event that the program got; -1: none */
unsigned refuse_with, requests;
struct vb_cm_conn *conn;
int owner;

static void catch_mad(void *arg, const struct vb_mad_path *to,
		      const uint8_t mad[VB_MAD_BYTES])
{
	assert_true(vb_gid_equal(&to->dgid, &path.dgid));
	assert_true(vb_cm_get(mad, VB_MAD_BYTES, &sent));
	sent_by = *to;
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

int begin(void **state)
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

int finish(void **state)
{
	vb_cm_destroy(cm);
	return 0;
}

void deliver(struct vb_cm_msg *m)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_put(mad, m);
	sent_count = 0;
	happened = -1;
	vb_cm_recv(cm, &path, mad, sizeof(mad), now);
}

void say(enum vb_cm_attr attr, uint64_t tid)
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

void request(uint32_t id, uint32_t qpn)
{
	struct vb_cm_msg m = { .attr = CM_REQ, .tid = 9, .local_id = id };

	m.req.ca_guid = PEER_GUID;
	m.req.qpn = qpn;
	m.req.local_timeout = m.req.remote_timeout = VB_CM_TIMEOUT_CODE;
	m.req.max_cm_retries = 2;
	m.req.path.ack_timeout = VB_CM_ACK_TIMEOUT;
	deliver(&m);
}

void run_timer(void)
{
	sent_count = 0;
	happened = -1;
	assert_true(vb_cm_deadline(cm) != VB_NEVER);
	now = vb_cm_deadline(cm);
	vb_cm_tick(cm, now);
}

void expect_sent(enum vb_cm_attr attr)
{
	assert_int_equal(sent_count, 1);
	assert_int_equal(sent.attr, attr);
}

/* Expects the early repetitions, after 250 ms, 0.5 s, 1 s, and then @count
 * more. */
void expect_repeats(enum vb_cm_attr attr, unsigned count)
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

void accept_it(void)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	rep.rep.qpn = OUR_QPN;
	sent_count = 0;
	assert_int_equal(vb_cm_accept(conn, &rep, now), 0);
	expect_sent(CM_REP);
	assert_int_equal(sent.remote_id, PEER_ID);
	assert_int_equal(sent.tid, 9);
}

void connect_it(void)
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

void make_passive(void)
{
	request(PEER_ID, PEER_QPN);
	accept_it();
	say(CM_RTU, 9);
	assert_int_equal(happened, CM_IS_ESTABLISHED);
}

void make_active(void)
{
	connect_it();
	say(CM_REP, sent.tid);
	assert_int_equal(happened, CM_HAS_REPLY);
	assert_int_equal(vb_cm_establish(conn, now), 0);
	expect_sent(CM_RTU);
	assert_int_equal(conn->state, CM_ESTABLISHED);
}
