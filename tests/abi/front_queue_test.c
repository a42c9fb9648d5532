/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, shared receive queues, events and queue pairs. */
#include "tests/abi/front_bench.h"

static void create_cq__bad_arguments(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_init_attr_ex a = { .cqe = 1,
					 .wc_flags = IBV_WC_EX_WITH_CVLAN };

	assert_null(ibv_create_cq(b->context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(b->context, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(b->context, 1, NULL, NULL, -1));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq_ex(b->context, &a));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void modify_cq__moderation(void **state)
{
	struct bench *b = *state;
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 7, 20 } };
	struct ibv_device_attr_ex device;

	assert_int_equal(ibv_modify_cq(b->cq, &attr), 0);
	assert_int_equal(fake.moderate_count, 7);
	assert_int_equal(fake.moderate_period, 20 * VB_USEC);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(b->cq, &attr), EINVAL);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(b->cq, &attr), EINVAL);
	assert_int_equal(ibv_query_device_ex(b->context, NULL, &device), 0);
	assert_int_equal(device.cq_mod_caps.max_cq_count, 65535);
	assert_int_equal(device.cq_mod_caps.max_cq_period, 65535);
}

static void destroy__in_use(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), EBUSY);
}

static _Atomic int acked;

static void *ack_later(void *cq)
{
	sleep_ms(30);
	acked = 1;
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void destroy_cq__waits_for_acknowledgement(void **state)
{
	struct bench *b = *state;
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	b->qp = NULL;
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	push(b, 1);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
	assert_ptr_equal(cq, b->cq);
	assert_ptr_equal(context, b);
	acked = 0;
	pthread_create(&t, NULL, ack_later, b->cq);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
	b->cq = ibv_create_cq(b->context, 1, NULL, NULL, 0);
}

static void destroy_cq__forgets_events_not_taken(void **state)
{
	struct bench *b = *state;
	struct pollfd p = { .fd = b->channel->fd, .events = POLLIN };

	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	b->qp = NULL;
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	push(b, 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	b->cq = ibv_create_cq(b->context, 1, NULL, NULL, 0);
}

static void *ack_qp_later(void *arg)
{
	sleep_ms(30);
	acked = 1;
	ibv_ack_async_event(arg);
	return NULL;
}

static void destroy_qp__waits_for_acknowledgement(void **state)
{
	struct bench *b = *state;
	struct vb_async *async = &vb_front_context(b->context)->async;
	struct ibv_async_event e;
	pthread_t t;

	vb_async_post(async, EVENT_COMM_EST, b->core->owner);
	vb_async_post_port(async, EVENT_PORT_ACTIVE, 1);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(e.element.qp, b->qp);
	acked = 0;
	pthread_create(&t, NULL, ack_qp_later, &e);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
	b->qp = NULL;
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(e.element.port_num, 1);
	ibv_ack_async_event(&e);
}

static void srq__limit_and_size(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 10, 2, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_srq_attr a = { .srq_limit = 3 };
	struct ibv_sge sge[3] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;

	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 10);
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &a), 0);
	assert_int_equal(a.srq_limit, 3);
	a.srq_limit = 100000;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	a.max_wr = 0;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &a, 1 << 5), EINVAL);
	wr.num_sge = (int)init.attr.max_sge + 1;
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void create_qp__what_is_not_supported(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_DRIVER };

	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	init.send_cq = NULL;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
	init.send_cq = b->cq;
	init.cap.max_send_wr = 1u << 30;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
}

static void create_qp__plain_has_no_builder(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_true(init.cap.max_send_wr >= 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_query_qp__round_trip(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_ACCESS_FLAGS;

	assert_int_equal(ibv_modify_qp(b->qp, &a, IBV_QP_STATE), EINVAL);
	assert_int_equal(b->qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(b->qp, &a, mask), 0);
	assert_int_equal(b->qp->state, IBV_QPS_INIT);
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(ibv_query_qp(b->qp, &a, 0, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_INIT);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_true(a.cap.max_send_wr >= DEPTH);
	assert_ptr_equal(init.send_cq, b->cq);
}

int front_queue_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(create_cq__bad_arguments),
		ON_BENCH(modify_cq__moderation),
		ON_BENCH(destroy__in_use),
		ON_BENCH(destroy_cq__waits_for_acknowledgement),
		ON_BENCH(destroy_cq__forgets_events_not_taken),
		ON_BENCH(destroy_qp__waits_for_acknowledgement),
		ON_BENCH(srq__limit_and_size),
		ON_BENCH(create_qp__what_is_not_supported),
		ON_BENCH(create_qp__plain_has_no_builder),
		ON_BENCH(modify_query_qp__round_trip),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
