/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes of each state move, and the moves that a connection makes. */
#include "tests/unit/rdmacm/fake.h"

#include <string.h>

#define RTR                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |        \
	 IBV_QP_RQ_PSN)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS	  (IBV_QP_STATE | IBV_QP_SQ_PSN)
#define REQUESTER                                                              \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define INIT                                                                   \
	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static struct rdma_event_channel *channel;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	return 0;
}

static int teardown(void **state)
{
	rdma_destroy_event_channel(channel);
	return 0;
}

static struct rcm_id *connecting(enum ibv_qp_type type)
{
	struct rcm_id *id = fake_id(channel, RDMA_PS_IB, type, RCM_CONNECTING);

	id->gid_index = 3;
	id->path.tclass = 0x20;
	id->path.flow_label = 0x12345;
	id->path.ack_timeout = 19;
	id->path.retry_count = 5;
	id->peer = (struct vb_ipc_cm){ .qpn = 0x777,
				       .psn = 0xabc,
				       .rnr_retry = 6 };
	id->psn = 0xdef;
	id->responder_resources = 4;
	id->initiator_depth = 3;
	return id;
}

static int mask_of(struct rcm_id *id, enum ibv_qp_state to,
		   struct ibv_qp_attr *a)
{
	int mask = -1;

	memset(a, 0xee, sizeof(*a));
	a->qp_state = to;
	assert_int_equal(rdma_init_qp_attr(&id->pub, a, &mask), 0);
	assert_int_equal(a->qp_state, to);
	return mask;
}

static void masks__of_each_type_and_state(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		int init, rtr, rts;
	} cases[] = {
		{ IBV_QPT_RC, INIT, RTR | RESPONDER, RTS | REQUESTER },
		{ IBV_QPT_UC, INIT, RTR, RTS },
		{ IBV_QPT_XRC_SEND, INIT, RTR, RTS | REQUESTER },
		{ IBV_QPT_XRC_RECV, INIT, RTR | RESPONDER,
		  RTS | IBV_QP_TIMEOUT },
		{ IBV_QPT_UD,
		  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		  IBV_QP_STATE, RTS },
	};
	struct ibv_qp_attr a;

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct rcm_id *id = connecting(cases[i].type);

		assert_int_equal(mask_of(id, IBV_QPS_INIT, &a), cases[i].init);
		assert_int_equal(mask_of(id, IBV_QPS_RTR, &a), cases[i].rtr);
		assert_int_equal(mask_of(id, IBV_QPS_RTS, &a), cases[i].rts);
		rdma_destroy_id(&id->pub);
	}
}

static void init__access_by_granted_depth(void **state)
{
	const int all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct rcm_id *rc = connecting(IBV_QPT_RC);
	struct rcm_id *uc = connecting(IBV_QPT_UC);
	struct ibv_qp_attr a;

	(void)mask_of(rc, IBV_QPS_INIT, &a);
	assert_int_equal(a.qp_access_flags, all);
	assert_int_equal(a.port_num, FAKE_PORT);
	rc->responder_resources = 0;
	(void)mask_of(rc, IBV_QPS_INIT, &a);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	(void)mask_of(uc, IBV_QPS_INIT, &a);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	rdma_destroy_id(&rc->pub);
	rdma_destroy_id(&uc->pub);
}

/* This side's PSN is where the peer starts: each end receives with its own PSN
 * and sends with the peer's. */
static void rtr_rts__values(void **state)
{
	struct rcm_id *id = connecting(IBV_QPT_RC);
	struct ibv_qp_attr a;

	(void)mask_of(id, IBV_QPS_RTR, &a);
	assert_int_equal(a.dest_qp_num, 0x777);
	assert_int_equal(a.rq_psn, 0xdef);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	assert_int_equal(a.max_dest_rd_atomic, 4);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.port_num, FAKE_PORT);
	assert_int_equal(a.ah_attr.grh.sgid_index, 3);
	assert_int_equal(a.ah_attr.grh.hop_limit, 64);
	assert_int_equal(a.ah_attr.grh.traffic_class, 0x20);
	assert_int_equal(a.ah_attr.grh.flow_label, 0x12345);
	assert_memory_equal(a.ah_attr.grh.dgid.raw, id->path.dst.raw, 16);
	(void)mask_of(id, IBV_QPS_RTS, &a);
	assert_int_equal(a.sq_psn, 0xabc);
	assert_int_equal(a.timeout, 19);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.rnr_retry, 6);
	assert_int_equal(a.max_rd_atomic, 3);
	id->ack_timeout = 0; /* the program set ack_timeout 0: no time-out */
	id->timeout_set = true;
	(void)mask_of(id, IBV_QPS_RTS, &a);
	assert_int_equal(a.timeout, 0);
	rdma_destroy_id(&id->pub);
}

static void iwarp__the_stream_moves_it(void **state)
{
	struct rcm_id *id = connecting(IBV_QPT_RC);
	struct ibv_qp_attr a;
	int mask;

	fake_device.iwarp = true;
	assert_int_equal(mask_of(id, IBV_QPS_INIT, &a),
			 IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT);
	assert_int_equal(mask_of(id, IBV_QPS_RTR, &a), 0);
	assert_int_equal(mask_of(id, IBV_QPS_RTS, &a), 0);
	a.qp_state = IBV_QPS_SQD;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), -1);
	fake_device.iwarp = false;
	rdma_destroy_id(&id->pub);
}

static void refused__before_a_peer_is_known(void **state)
{
	struct rcm_id *id = connecting(IBV_QPT_RC);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	int mask;

	id->state = RCM_ROUTED;
	errno = 0;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), -1);
	assert_int_equal(errno, EINVAL);
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	id->state = RCM_CONNECTING;
	a.qp_state = IBV_QPS_SQD;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), -1);
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(rdma_init_qp_attr(&id->pub, NULL, &mask), -1);
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, NULL), -1);
	id->device = NULL;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), -1);
	rdma_destroy_id(&id->pub);
}

static void check_moves(const enum ibv_qp_state *states, unsigned count)
{
	assert_int_equal(fake.move_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(fake.moves[i].attr.qp_state, states[i]);
}

/* The side that asked uses the depths that the peer grants, up to the device's
 * limits. */
static void connect__three_moves_with_the_peers_depths(void **state)
{
	static const enum ibv_qp_state moves[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS };
	struct rcm_id *id = connecting(IBV_QPT_RC);

	id->pub.qp = &fake_qp;
	id->peer.responder_resources = 200;
	id->peer.initiator_depth = 2;
	assert_int_equal(rcm_qp_connect(id), 0);
	check_moves(moves, VB_COUNT(moves));
	assert_int_equal(fake.moves[1].attr.max_dest_rd_atomic, 16);
	assert_int_equal(fake.moves[2].attr.max_rd_atomic, 2);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

/* An accepting id keeps the depths that its program has chosen. */
static void connect__accepting_side_keeps_its_depths(void **state)
{
	struct rcm_id *id = connecting(IBV_QPT_RC);

	rcm_id_renumber(id, VB_IPC_CM_INCOMING | 5);
	id->pub.qp = &fake_qp;
	id->peer.responder_resources = id->peer.initiator_depth = 1;
	assert_int_equal(rcm_qp_connect(id), 0);
	assert_int_equal(fake.moves[1].attr.max_dest_rd_atomic, 4);
	assert_int_equal(fake.moves[2].attr.max_rd_atomic, 3);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void connect__stops_at_the_first_failure(void **state)
{
	struct rcm_id *id = connecting(IBV_QPT_RC);

	id->pub.qp = &fake_qp;
	fake.modify_rc = ENOMEM;
	assert_int_equal(rcm_qp_connect(id), -ENOMEM);
	assert_int_equal(fake.move_count, 0);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void datagrams__ready_from_the_start(void **state)
{
	static const enum ibv_qp_state moves[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS };
	struct rcm_id *id = connecting(IBV_QPT_UD);

	id->pub.qp = &fake_qp;
	assert_int_equal(rcm_qp_init(id), 0);
	check_moves(moves, VB_COUNT(moves));
	assert_int_equal(fake.moves[0].attr.qkey, RDMA_UDP_QKEY);
	assert_int_equal(rcm_qp_connect(id), 0);
	assert_int_equal(fake.move_count, VB_COUNT(moves));
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void init__one_move_for_connections(void **state)
{
	static const enum ibv_qp_state move = IBV_QPS_INIT;
	struct rcm_id *id = connecting(IBV_QPT_RC);

	id->pub.qp = &fake_qp;
	assert_int_equal(rcm_qp_init(id), 0);
	check_moves(&move, 1);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

static void fail__moves_to_error_if_there_is_one(void **state)
{
	static const enum ibv_qp_state move = IBV_QPS_ERR;
	struct rcm_id *id = connecting(IBV_QPT_RC);

	rcm_qp_fail(id);
	assert_int_equal(fake.move_count, 0);
	id->pub.qp = &fake_qp;
	rcm_qp_fail(id);
	check_moves(&move, 1);
	assert_int_equal(fake.moves[0].mask, IBV_QP_STATE);
	id->pub.qp = NULL;
	rdma_destroy_id(&id->pub);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(masks__of_each_type_and_state),
		TEST(init__access_by_granted_depth),
		TEST(rtr_rts__values),
		TEST(iwarp__the_stream_moves_it),
		TEST(refused__before_a_peer_is_known),
		TEST(connect__three_moves_with_the_peers_depths),
		TEST(connect__accepting_side_keeps_its_depths),
		TEST(connect__stops_at_the_first_failure),
		TEST(datagrams__ready_from_the_start),
		TEST(init__one_move_for_connections),
		TEST(fail__moves_to_error_if_there_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
