/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of rdma_connect(), accept, reject and disconnect: private data,
 * depths and states. */
#include "tests/unit/rdmacm/fake.h"

#include <string.h>

static struct rdma_event_channel *channel;
static uint8_t bytes[256];

static int setup(void **state)
{
	(void)fake_setup(state);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	channel = fake_channel();
	return 0;
}

static int teardown(void **state)
{
	rdma_destroy_event_channel(channel);
	return 0;
}

static struct rdma_conn_param with_private(uint8_t length)
{
	return (struct rdma_conn_param){ .private_data = bytes,
					 .private_data_len = length,
					 .qp_num = 0xff000042 };
}

static struct rcm_id *routed(enum rdma_port_space ps, enum ibv_qp_type type)
{
	return fake_id(channel, ps, type, RCM_ROUTED);
}

/* The limits in bytes: IBA 12.6 less the 36 bytes of rdma_cm's header, which
 * requests of AF_IB addresses do not have. */
static void connect__private_data_limits(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		enum ibv_qp_type type;
		uint8_t flags;
		uint8_t most;
	} cases[] = {
		{ RDMA_PS_TCP, IBV_QPT_RC, 0, 56 },
		{ RDMA_PS_IB, IBV_QPT_RC, IPC_CM_PLAIN, 92 },
		{ RDMA_PS_UDP, IBV_QPT_UD, 0, 180 },
		{ RDMA_PS_IB, IBV_QPT_UD, IPC_CM_PLAIN, 216 },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct rcm_id *id = routed(cases[i].ps, cases[i].type);
		struct rdma_conn_param p = with_private(cases[i].most + 1);

		fake.tells = 0;
		id->path.flags = cases[i].flags;
		assert_int_equal(rdma_connect(&id->pub, &p), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(id->state, RCM_ROUTED);
		assert_int_equal(fake.tells, 0);
		p.private_data_len = cases[i].most;
		assert_int_equal(rdma_connect(&id->pub, &p), 0);
		assert_int_equal(id->state, RCM_CONNECTING);
		assert_int_equal(fake.tells, 1);
		assert_int_equal(fake.told[0].kind, IPC_CM_CONNECT);
		assert_int_equal(fake.told[0].private_bytes, cases[i].most);
		assert_memory_equal(fake.told[0].private_data, bytes,
				    cases[i].most);
		rdma_destroy_id(&id->pub);
	}
}

/* The bytes of rdma_addrinfo's ai_connect come first and count. */
static void connect__prefix_of_the_addrinfo(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(53);

	memcpy(id->connect, "\xaa\xbb\xcc\xdd", 4);
	id->connect_bytes = 4;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	p.private_data_len = 52;
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	assert_int_equal(fake.told[0].private_bytes, 56);
	assert_memory_equal(fake.told[0].private_data, id->connect, 4);
	assert_memory_equal(fake.told[0].private_data + 4, bytes, 52);
	rdma_destroy_id(&id->pub);
}

static void connect__length_without_data(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(1);

	p.private_data = NULL;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(&id->pub);
}

static void connect__describes_the_queue_pair(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);
	const struct vb_ipc_cm *m = fake.told;

	p.responder_resources = RDMA_MAX_RESP_RES;
	p.initiator_depth = 5;
	p.retry_count = 200;
	p.rnr_retry_count = 3;
	p.flow_control = 1;
	p.srq = 1;
	id->psn = 0x123456;
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	assert_int_equal(m->id, id->number);
	/* the QPN that the program gave, cut to 24 bits */
	assert_int_equal(m->qpn, 0x42);
	assert_int_equal(m->psn, 0x123456);
	assert_true(m->guid == fake_device.guid);
	assert_int_equal(m->responder_resources, 16);
	assert_int_equal(m->initiator_depth, 5);
	assert_int_equal(m->retry_count, 7);
	assert_int_equal(m->rnr_retry, 3);
	assert_true(m->flow_control);
	assert_true(m->srq);
	rdma_destroy_id(&id->pub);
}

static void connect__own_queue_pair_comes_first(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);

	p.srq = 1;
	id->pub.qp = &fake_qp;
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	assert_int_equal(fake.told[0].qpn, 0x1234);
	assert_false(fake.told[0].srq);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

/* Refused in port space TCP: greater depths than the device has, or no queue
 * pair. */
static void connect__what_is_impossible(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);

	assert_int_equal(rdma_connect(&id->pub, NULL), -1);
	p.responder_resources = 17;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	p.responder_resources = 16;
	p.initiator_depth = 13;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	p.initiator_depth = 12;
	id->state = RCM_RESOLVED;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	id->state = RCM_ROUTED;
	assert_int_equal(fake.tells, 0);
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	rdma_destroy_id(&id->pub);
}

static void connect__a_lost_session_leaves_it_routed(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);

	fake.tell_rc = -ECONNRESET;
	assert_int_equal(rdma_connect(&id->pub, &p), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(id->state, RCM_ROUTED);
	fake.tell_rc = 0;
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	rdma_destroy_id(&id->pub);
}

static struct rcm_id *requested(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rcm_id *id = fake_id(channel, ps, type, RCM_CONNECTING);

	id->peer.responder_resources = 3;
	id->peer.initiator_depth = 2;
	return id;
}

static void accept__private_data_limits(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		enum ibv_qp_type type;
		uint8_t most;
	} cases[] = {
		{ RDMA_PS_TCP, IBV_QPT_RC, 196 },
		{ RDMA_PS_UDP, IBV_QPT_UD, 136 },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct rcm_id *id = requested(cases[i].ps, cases[i].type);
		struct rdma_conn_param p = with_private(cases[i].most + 1);

		fake.tells = 0;
		assert_int_equal(rdma_accept(&id->pub, &p), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(fake.tells, 0);
		p.private_data_len = cases[i].most;
		assert_int_equal(rdma_accept(&id->pub, &p), 0);
		assert_int_equal(fake.told[0].kind, IPC_CM_ACCEPT);
		assert_int_equal(fake.told[0].private_bytes, cases[i].most);
		rdma_destroy_id(&id->pub);
	}
}

static void accept__depths_of_the_peer(void **state)
{
	struct rcm_id *id = requested(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);

	p.responder_resources = RDMA_MAX_RESP_RES;
	p.initiator_depth = RDMA_MAX_INIT_DEPTH;
	assert_int_equal(rdma_accept(&id->pub, &p), 0);
	assert_int_equal(fake.told[0].responder_resources, 3);
	assert_int_equal(fake.told[0].initiator_depth, 2);
	rdma_destroy_id(&id->pub);
}

/* A queue pair that cannot change its state ends in the error state, and the
 * peer gets no message. */
static void accept__a_failing_move(void **state)
{
	struct rcm_id *id = requested(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);

	id->pub.qp = &fake_qp;
	fake.modify_rc = ENOMEM;
	assert_int_equal(rdma_accept(&id->pub, &p), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fake.tells, 0);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void reject__reasons_and_limits(void **state)
{
	struct rcm_id *id = requested(RDMA_PS_TCP, IBV_QPT_RC);

	assert_int_equal(rdma_reject(&id->pub, bytes, 149), -1);
	assert_int_equal(rdma_reject(&id->pub, bytes, 148), 0);
	assert_int_equal(rdma_reject_ece(&id->pub, bytes, 1), 0);
	assert_int_equal(fake.tells, 2);
	assert_int_equal(fake.told[0].kind, IPC_CM_REJECT);
	assert_int_equal(fake.told[0].status, 0);
	assert_int_equal(fake.told[0].private_bytes, 148);
	assert_int_equal(fake.told[1].status, 35);
	id->state = RCM_ROUTED;
	assert_int_equal(rdma_reject(&id->pub, NULL, 0), -1);
	rdma_destroy_id(&id->pub);
}

static void disconnect__fails_the_queue_pair_first(void **state)
{
	struct rcm_id *id = requested(RDMA_PS_TCP, IBV_QPT_RC);

	id->pub.qp = &fake_qp;
	assert_int_equal(rdma_disconnect(&id->pub), 0);
	assert_int_equal(fake.move_count, 1);
	assert_int_equal(fake.moves[0].attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(fake.tells, 1);
	assert_int_equal(fake.told[0].kind, IPC_CM_DISCONNECT);
	id->pub.qp = NULL;
	id->state = RCM_ROUTED;
	assert_int_equal(rdma_disconnect(&id->pub), -1);
	rdma_destroy_id(&id->pub);
}

static void establish__only_without_an_own_queue_pair(void **state)
{
	struct rcm_id *id = requested(RDMA_PS_TCP, IBV_QPT_RC);

	assert_int_equal(rdma_establish(&id->pub), 0);
	assert_int_equal(fake.told[0].kind, IPC_CM_ESTABLISH);
	id->pub.qp = &fake_qp;
	assert_int_equal(rdma_establish(&id->pub), -1);
	assert_int_equal(rdma_notify(&id->pub, IBV_EVENT_COMM_EST), 0);
	assert_int_equal(rdma_notify(&id->pub, IBV_EVENT_QP_FATAL), -1);
	assert_int_equal(fake.tells, 2);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void ece__goes_with_the_request(void **state)
{
	struct rcm_id *id = routed(RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_conn_param p = with_private(0);
	struct ibv_ece ece = { .vendor_id = 0x1000000, .options = 7 }, peer;

	assert_int_equal(rdma_set_local_ece(&id->pub, &ece), -1);
	ece.vendor_id = 0xffffff;
	assert_int_equal(rdma_set_local_ece(&id->pub, &ece), 0);
	assert_int_equal(rdma_connect(&id->pub, &p), 0);
	assert_int_equal(fake.told[0].vendor_id, 0xffffff);
	assert_int_equal(fake.told[0].vendor_options, 7);
	id->peer.vendor_id = 5;
	id->peer.vendor_options = 6;
	assert_int_equal(rdma_get_remote_ece(&id->pub, &peer), 0);
	assert_int_equal(peer.vendor_id, 5);
	assert_int_equal(peer.options, 6);
	rdma_destroy_id(&id->pub);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connect__private_data_limits),
		TEST(connect__prefix_of_the_addrinfo),
		TEST(connect__length_without_data),
		TEST(connect__describes_the_queue_pair),
		TEST(connect__own_queue_pair_comes_first),
		TEST(connect__what_is_impossible),
		TEST(connect__a_lost_session_leaves_it_routed),
		TEST(accept__private_data_limits),
		TEST(accept__depths_of_the_peer),
		TEST(accept__a_failing_move),
		TEST(reject__reasons_and_limits),
		TEST(disconnect__fails_the_queue_pair_first),
		TEST(establish__only_without_an_own_queue_pair),
		TEST(ece__goes_with_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
