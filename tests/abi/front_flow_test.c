/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow steering rules, raw packet queue pairs, work queues and RSS tables. */
#include "tests/abi/front_bench.h"

struct flow_request {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4_ext ip;
	struct ibv_flow_spec_tcp_udp udp;
	struct ibv_flow_spec_action_tag tag;
	struct ibv_flow_spec_counter_action count;
} __attribute__((packed, aligned(8)));

static struct flow_request good_flow(struct ibv_counters *counters)
{
	struct flow_request r = {
		.attr = { .size = sizeof(r),
			  .priority = 3,
			  .num_of_specs = 5,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
		.ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(r.ip) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(r.udp) },
		.tag = { .type = IBV_FLOW_SPEC_ACTION_TAG,
			 .size = sizeof(r.tag),
			 .tag_id = 0x77 },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT,
			   .size = sizeof(r.count),
			   .counters = counters },
	};

	memset(r.eth.mask.dst_mac, 0xff, 6);
	r.eth.val.dst_mac[5] = 9;
	r.eth.mask.ether_type = 0xffff;
	r.eth.val.ether_type = htobe16(0x800);
	r.ip.val.dst_ip = htobe32(0x0a000001);
	r.ip.mask.dst_ip = UINT32_MAX;
	r.udp.val.dst_port = htobe16(4791);
	r.udp.mask.dst_port = UINT16_MAX;
	return r;
}

static struct ibv_qp *make_raw(struct bench *b)
{
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	return qp;
}

static void flow__specs_become_a_rule(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counter_attach_attr point = { .counter_desc =
							 IBV_COUNTER_BYTES };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct flow_request r = good_flow(c);
	struct ibv_qp *qp = make_raw(b);
	struct ibv_flow *flow;
	uint64_t value = 1;

	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL), 0);
	flow = ibv_create_flow(qp, &r.attr);
	assert_non_null(flow);
	assert_int_equal(fake.rule.kind, FLOW_NORMAL);
	assert_int_equal(fake.rule.priority, 3);
	assert_int_equal(fake.rule.tag, 0x77);
	assert_int_equal(fake.rule.value.dst[5], 9);
	assert_memory_equal(fake.rule.value.ether_type, "\x08\x00", 2);
	assert_memory_equal(fake.rule.value.dip, "\x0a\0\0\1", 4);
	assert_memory_equal(fake.rule.value.dport, "\x12\xb7", 2);
	assert_int_equal(fake.rule.mask.layers,
			 LAYER_ETH | LAYER_IPV4 | LAYER_UDP);
	/* While the flow exists, its queue pair and counters cannot be
	 * destroyed, and no further counters can be attached. */
	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL),
			 EBUSY);
	assert_int_equal(ibv_destroy_counters(c), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), EBUSY);
	assert_int_equal(ibv_read_counters(c, &value, 1, 0), 0);
	assert_int_equal(value, 0);
	assert_int_equal(ibv_read_counters(c, &value, 1, 8), EINVAL);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void flow__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct ibv_counter_attach_attr point = { .counter_desc = 77 };
	struct ibv_qp *qp = make_raw(b);
	struct flow_request r;

#define REFUSED(change, why)                                                   \
	do {                                                                   \
		r = good_flow(c);                                              \
		change;                                                        \
		assert_null(ibv_create_flow(qp, &r.attr));                     \
		assert_int_equal(errno, why);                                  \
	} while (0)
	REFUSED(r.attr.port = 2, EINVAL);
	REFUSED(r.attr.type = 4, EINVAL);
	REFUSED(r.attr.comp_mask = 1, EINVAL);
	REFUSED(r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS, EOPNOTSUPP);
	REFUSED(r.ip.size = 0, EINVAL);
	REFUSED(r.eth.size--, EINVAL);
	REFUSED(r.eth.type = 0x999, EINVAL);
	REFUSED(r.eth.type |= IBV_FLOW_SPEC_INNER, EOPNOTSUPP);
	/* For devices without flow steering, ibv_create_flow(3) names ENXIO. */
	REFUSED(r.eth.type = IBV_FLOW_SPEC_ESP, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_GRE, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_MPLS, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_ACTION_HANDLE, EOPNOTSUPP);
	/* refused: a flow rule with two IP specifications */
	REFUSED(r.udp.type = IBV_FLOW_SPEC_IPV4, EINVAL);
	REFUSED(r.count.counters = NULL, EINVAL);
#undef REFUSED
	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL),
			 ENOTSUP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void raw_qp__sends_and_nothing_else(void **state)
{
	struct bench *b = *state;
	struct ibv_qp *qp = make_raw(b);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	/* Raw packet queue pairs refuse sends with IBV_SEND_IP_CSUM. */
	wr.send_flags = IBV_SEND_IP_CSUM;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static struct ibv_wq *make_wq(struct bench *b)
{
	struct ibv_wq_init_attr init = {
		.pd = b->pd, .cq = b->cq, .max_wr = 3, .max_sge = 2
	};
	struct ibv_wq *wq = ibv_create_wq(b->context, &init);

	assert_non_null(wq);
	assert_true(init.max_wr >= 3);
	return wq;
}

static int move_wq(struct ibv_wq *wq, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE,
				    .wq_state = to };

	return ibv_modify_wq(wq, &attr);
}

static _Atomic int acked;

static void *ack_wq_later(void *arg)
{
	usleep(20000);
	atomic_store(&acked, 1);
	ibv_ack_async_event(arg);
	return NULL;
}

static void VB_UNCHECKED wq__fails_with_an_event(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wq = make_wq(b);
	struct vb_qp *core = vb_front_wq(wq)->core;
	struct ibv_async_event e;
	pthread_t t;

	assert_int_equal(move_wq(wq, IBV_WQS_RDY), 0);
	vb_mutex_lock(&core->drive);
	vb_qp_fail(core, EVENT_QP_FATAL);
	vb_mutex_unlock(&core->drive);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_WQ_FATAL);
	assert_ptr_equal(e.element.wq, wq);
	acked = 0;
	pthread_create(&t, NULL, ack_wq_later, &e);
	assert_int_equal(ibv_destroy_wq(wq), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
}

static void wq__states_and_receives(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wq = make_wq(b);
	struct ibv_recv_wr wr = { .wr_id = 5 }, *bad = NULL;
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE |
						 IBV_WQ_ATTR_CURR_STATE,
				    .wq_state = IBV_WQS_RDY,
				    .curr_wq_state = IBV_WQS_ERR };
	struct ibv_wc wc;

	assert_int_equal(wq->state, IBV_WQS_RESET);
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_modify_wq(wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	assert_int_equal(ibv_modify_wq(wq, &attr), 0);
	assert_int_equal(wq->state, IBV_WQS_RDY);
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(move_wq(wq, IBV_WQS_ERR), 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.qp_num, wq->wq_num);
	assert_int_equal(move_wq(wq, IBV_WQS_RDY), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_UNKNOWN), EINVAL);
	attr = (struct ibv_wq_attr){ .attr_mask = IBV_WQ_ATTR_FLAGS,
				     .flags_mask = 1 };
	assert_int_equal(ibv_modify_wq(wq, &attr), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void wq__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_wq_init_attr init;

#define REFUSED(change, why)                                                   \
	do {                                                                   \
		init = (struct ibv_wq_init_attr){ .pd = b->pd,                 \
						  .cq = b->cq,                 \
						  .max_wr = 1 };               \
		change;                                                        \
		assert_null(ibv_create_wq(b->context, &init));                 \
		assert_int_equal(errno, why);                                  \
	} while (0)
	REFUSED(init.max_wr = 0, EINVAL);
	REFUSED(init.max_wr = 1u << 30, EINVAL);
	REFUSED(init.max_sge = 1000, EINVAL);
	REFUSED(init.wq_type = 7, EINVAL);
	REFUSED(init.cq = NULL, EINVAL);
	REFUSED(init.comp_mask = 1u << 5, EINVAL);
	REFUSED((init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
		 init.create_flags = IBV_WQ_FLAGS_SCATTER_FCS),
		EOPNOTSUPP);
#undef REFUSED
}

static void rss__holds_what_it_stands_on(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wqs[2] = { make_wq(b), make_wq(b) };
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1,
						    .ind_tbl = wqs };
	struct ibv_rwq_ind_table *table =
		ibv_create_rwq_ind_table(b->context, &init);
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = b->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = 39,
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	assert_non_null(table);
	init.log_ind_tbl_size = 10;
	assert_null(ibv_create_rwq_ind_table(b->context, &init));
	assert_null(ibv_create_qp_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.rx_hash_conf.rx_hash_key_len = 40;
	attr.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_IPSEC_SPI;
	assert_null(ibv_create_qp_ex(b->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4;
	qp = ibv_create_qp_ex(b->context, &attr);
	assert_non_null(qp);
	assert_ptr_equal(vb_front_qp(qp)->core->rss->queues[1],
			 vb_front_wq(wqs[1])->core);
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT),
			 EOPNOTSUPP);
	assert_int_equal(ibv_destroy_rwq_ind_table(table), EBUSY);
	assert_int_equal(ibv_destroy_wq(wqs[0]), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
	assert_int_equal(ibv_destroy_wq(wqs[0]), 0);
	assert_int_equal(ibv_destroy_wq(wqs[1]), 0);
}

int front_flow_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(flow__specs_become_a_rule),
		ON_BENCH(flow__refusals),
		ON_BENCH(raw_qp__sends_and_nothing_else),
		ON_BENCH(wq__fails_with_an_event),
		ON_BENCH(wq__states_and_receives),
		ON_BENCH(wq__refusals),
		ON_BENCH(rss__holds_what_it_stands_on),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
