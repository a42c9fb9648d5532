/* SPDX-License-Identifier: BSD-2-Clause */
/* mgmt/paths: the requests that a router sends to the subnet administrator, and
 * the answers that it gives to the fabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "mgmt/nodes.h"
#include "wire/mad_frame.h"
#include "wire/sa.h"

#define SM_LID 9

static struct world {
	struct vb_mgmt *m;
	struct vb_fab_node *rt;
	/* the last frame that the router sent */
	struct vb_mad_frame last;
	uint8_t mad[VB_MAD_BYTES], port;
	unsigned sent, delivered;
	/* number of answers that the fabric got so far */
	unsigned answers;
	uint32_t question;
	enum vb_fab_answer answer;
	struct vb_fab_path path;
	vb_time now;
} w;

static int send_frame(void *arg, struct vb_fab_node *node, uint8_t port,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	const uint8_t *mad;

	assert_int_equal(vb_mad_frame_get(bytes, len, &w.last, &mad),
			 MAD_FRAME_GOOD);
	memcpy(w.mad, mad, VB_MAD_BYTES);
	w.port = port;
	w.sent++;
	return 0;
}

static void path_is(void *arg, struct vb_fab_node *node, uint32_t question,
		    enum vb_fab_answer answer, const struct vb_fab_path *path)
{
	assert_ptr_equal(node, w.rt);
	w.answers++;
	w.question = question;
	w.answer = answer;
	if (answer == PATH_KNOWN)
		w.path = *path;
}

static void deliver(void *arg, void *client, const struct vb_mad_delivery *d)
{
	assert_ptr_equal(client, &w);
	w.delivered++;
}

static int begin(void **state)
{
	const struct vb_mgmt_ops ops = { .send = send_frame,
					 .path_is = path_is,
					 .deliver = deliver };
	const struct vb_fab_node_spec spec = { .kind = FAB_ROUTER,
					       .ports = 2,
					       .guid = 0x700 };

	memset(&w, 0, sizeof(w));
	w.m = vb_mgmt_create(&ops);
	w.rt = vb_fab_node_create(&spec);
	assert_int_equal(vb_mgmt_add(w.m, w.rt), 0);
	w.rt->port[2].lid = 4;
	w.rt->port[2].sm_lid = SM_LID;
	w.rt->port[2].sm_sl = 3;
	w.rt->port[2].gid_prefix = 0xfec0000000000002;
	return 0;
}

static int end(void **state)
{
	vb_mgmt_destroy(w.m);
	vb_fab_node_destroy(w.rt);
	return 0;
}

static struct vb_gid gid(uint64_t prefix, uint64_t id)
{
	struct vb_gid g;

	vb_store_be(g.raw, prefix, 8);
	vb_store_be(g.raw + 8, id, 8);
	return g;
}

static void ask(uint8_t port, uint32_t question)
{
	struct vb_gid to = gid(0xfec0000000000002, 0xa);

	vb_mgmt_ask_path(w.m, w.rt, port, &to, question, w.now);
}

/* The subnet administrator answers the last question. */
static void answer(unsigned status, const struct vb_sa_path *path,
		   unsigned attr)
{
	struct vb_sa_hdr h;
	struct vb_mad_frame f = { .slid = w.last.dlid,
				  .dlid = w.last.slid,
				  .pkey = 0xffff,
				  .sqpn = 1,
				  .dqpn = 1,
				  .qkey = VB_GSI_QKEY };
	uint8_t bytes[VB_MAD_FRAME_MAX], mad[VB_MAD_BYTES];

	assert_true(vb_sa_hdr_get(w.mad, VB_MAD_BYTES, &h));
	h.method = SA_GET_RESP;
	h.status = (uint16_t)status;
	h.attr_id = (uint16_t)attr;
	vb_sa_path_put(mad, &h, path);
	assert_true(vb_mgmt_hear(w.m, w.rt, w.port, bytes,
				 vb_mad_frame_put(bytes, &f, mad), w.now));
}

static void ask__the_administrator_of_the_port(void **state)
{
	struct vb_gid to = gid(0xfec0000000000002, 0xa);
	struct vb_gid own = gid(0xfec0000000000002, 0x702);
	const struct vb_sa_path path = {
		.dlid = 0x21, .slid = 4, .sl = 5, .mtu_selector = 2, .mtu = 4
	};
	struct vb_sa_hdr h;

	ask(2, 77);
	assert_int_equal(w.sent, 1);
	assert_int_equal(w.answers, 0);
	assert_int_equal(w.port, 2);
	assert_int_equal(w.last.dlid, SM_LID);
	assert_int_equal(w.last.slid, 4);
	assert_int_equal(w.last.sl, 3);
	assert_int_equal(w.last.dqpn, 1);
	assert_int_equal(w.last.qkey, VB_GSI_QKEY);
	assert_true(vb_sa_hdr_get(w.mad, VB_MAD_BYTES, &h));
	assert_int_equal(h.method, SA_GET);
	assert_int_equal(h.attr_id, SA_PATH);
	assert_int_equal(h.mask, SA_PATH_DGID | SA_PATH_SGID |
					 SA_PATH_REVERSIBLE |
					 SA_PATH_NUMB_PATH);
	assert_memory_equal(w.mad + 56 + 8, to.raw, 16);
	assert_memory_equal(w.mad + 56 + 24, own.raw, 16);
	answer(0, &path, SA_PATH);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.question, 77);
	assert_int_equal(w.answer, PATH_KNOWN);
	assert_int_equal(w.path.dlid, 0x21);
	assert_int_equal(w.path.sl, 5);
	assert_int_equal(w.path.mtu, 4);
	answer(0, &path, SA_PATH);
	assert_int_equal(w.answers, 1);
}

static void answer__that_tells_no_path(void **state)
{
	const struct vb_sa_path path = { .dlid = 0x21, .slid = 4, .mtu = 4 };
	struct vb_sa_path bad = path;

	ask(2, 1);
	answer(SA_NO_RECORDS, &path, SA_PATH);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.question, 1);
	assert_int_equal(w.answer, PATH_NONE);
	ask(2, 2);
	answer(0, &path, SA_MCMEMBER);
	assert_int_equal(w.answers, 2);
	assert_int_equal(w.answer, PATH_UNANSWERED);
	/* an error from the administrator counts as no answer */
	ask(2, 2);
	answer(MAD_BAD_ATTRIBUTE, &path, SA_PATH);
	assert_int_equal(w.answers, 3);
	assert_int_equal(w.answer, PATH_UNANSWERED);
	ask(2, 3);
	bad.dlid = 0xc001;
	answer(0, &bad, SA_PATH);
	assert_int_equal(w.answers, 4);
	assert_int_equal(w.answer, PATH_NONE);
	ask(2, 4);
	bad = path;
	bad.mtu = 9;
	answer(0, &bad, SA_PATH);
	assert_int_equal(w.answers, 5);
	assert_int_equal(w.answer, PATH_NONE);
	ask(2, 5);
	answer(0, &path, SA_PATH);
	assert_int_equal(w.answer, PATH_KNOWN);
}

static void ask__nobody_answers(void **state)
{
	/* port 1 has no subnet manager to ask */
	ask(1, 5);
	assert_int_equal(w.sent, 0);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.question, 5);
	assert_int_equal(w.answer, PATH_UNANSWERED);
	ask(2, 6);
	for (unsigned i = 0; i < 20 && vb_mgmt_next(w.m) != VB_NEVER; i++) {
		w.now = VB_MAX(w.now, vb_mgmt_next(w.m));
		vb_mgmt_run(w.m, w.now);
	}
	assert_int_equal(w.sent, 4); /* the request and three repetitions */
	assert_int_equal(w.answers, 2);
	assert_int_equal(w.question, 6);
	assert_int_equal(w.answer, PATH_UNANSWERED);
	assert_int_equal(w.now, 2 * VB_SEC);
}

/* A program that registers at a router's port gets the answers to its own
 * requests. */
static void programs__get_what_is_theirs(void **state)
{
	const struct vb_agent_wish wish = { .class = MAD_CLASS_SA,
					    .class_version = 2 };
	const struct vb_sa_path path = { .dlid = 0x21, .slid = 4, .mtu = 4 };
	struct vb_agents *a = vb_mgmt_agents(w.m, w.rt, 2);
	uint8_t mad[VB_MAD_BYTES];
	const struct vb_sa_hdr h = { .method = SA_GET,
				     .attr_id = SA_PATH,
				     .tid = 77 };
	struct vb_mad_send s = {
		.to = { .qpn = 1, .qkey = VB_GSI_QKEY, .lid = SM_LID },
		.timeout_ms = 100,
		.bytes = mad,
		.len = VB_MAD_BYTES
	};

	ask(2, 77);
	s.agent = (uint32_t)vb_agents_register(a, &w, &wish);
	vb_sa_path_put(mad, &h, &path);
	assert_int_equal(vb_agents_send(a, &w, &s, w.now), 0);
	answer(0, &path, SA_PATH);
	assert_int_equal(w.delivered, 1);
	assert_int_equal(w.answers, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			ask__the_administrator_of_the_port, begin, end),
		cmocka_unit_test_setup_teardown(answer__that_tells_no_path,
						begin, end),
		cmocka_unit_test_setup_teardown(ask__nobody_answers, begin,
						end),
		cmocka_unit_test_setup_teardown(programs__get_what_is_theirs,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
