/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices, opening and closing, queries, names and rates. */
#include "tests/abi/front_bench.h"

static void get_device_list__nothing_there(void **state)
{
	struct ibv_device **list;
	int n = -1;

	fake = (struct fake_engine){ 0 };
	errno = 5;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_null(list[0]);
	assert_int_equal(n, 0);
	assert_int_equal(errno, 0);
	ibv_free_device_list(list);
}

static void get_device_list__bad_spec(void **state)
{
	int n = -1;

	setenv("VERBENA_DEVICES", "nonsense", 1);
	assert_null(ibv_get_device_list(&n));
	unsetenv("VERBENA_DEVICES");
	assert_int_equal(errno, ENODEV);
	assert_int_equal(n, 0);
}

static void get_device_list__same_pointers_again(void **state)
{
	struct ibv_device **a, **b;
	int n;

	fake = (struct fake_engine){ .devices = 2 };
	a = ibv_get_device_list(&n);
	b = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	assert_ptr_equal(a[0], b[0]);
	assert_ptr_equal(a[1], b[1]);
	assert_null(a[2]);
	assert_string_equal(ibv_get_device_name(a[1]), "roce_fake1");
	assert_int_equal(ibv_get_device_index(a[1]), 2);
	assert_true(be64toh(ibv_get_device_guid(a[1])) == 0x0200000000000002u);
	assert_string_equal(a[1]->ibdev_path,
			    "/sys/class/infiniband/roce_fake1");
	ibv_free_device_list(a);
	ibv_free_device_list(b);
}

static void query_port__only_port_1(void **state)
{
	struct bench *b = *state;
	struct ibv_port_attr a;

	assert_int_equal(ibv_query_port(b->context, 1, &a), 0);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.max_msg_sz, 1u << 30);
	assert_int_equal(a.gid_tbl_len, VB_MAX_GIDS);
	assert_int_equal(ibv_query_port(b->context, 2, &a), EINVAL);
	assert_int_equal(ibv_query_port(b->context, 0, &a), EINVAL);
}

static void query_port__old_struct_ends_early(void **state)
{
	struct bench *b = *state;
	struct ibv_port_attr a;

	memset(&a, 0xa5, sizeof(a));
	assert_int_equal((ibv_query_port)(b->context, 1, (void *)&a), 0);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.port_cap_flags2, 0xa5a5);
}

static void query_device_ex__longer_and_shorter_structs(void **state)
{
	struct bench *b = *state;
	struct {
		struct ibv_device_attr_ex a;
		uint64_t newer;
	} big = { .newer = 7 };
	struct verbs_context *v = verbs_get_ctx(b->context);

	assert_non_null(v);
	assert_int_equal(
		v->query_device_ex(b->context, NULL, &big.a, sizeof(big)), 0);
	assert_int_equal(big.newer, 0);
	assert_int_equal(big.a.orig_attr.phys_port_cnt, 1);
	assert_true(big.a.orig_attr.max_qp > 0);
	assert_int_equal(v->query_device_ex(b->context, NULL, &big.a, 8),
			 EINVAL);
}

static void query_gid__index_out_of_table(void **state)
{
	struct bench *b = *state;
	struct ibv_gid_entry e[2];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(b->context, 1, VB_MAX_GIDS, &gid), -1);
	assert_int_equal(ibv_query_gid(b->context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(b->context, 1, 9, &gid), 0);
	assert_true(gid.global.interface_id == 0);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, 9, e, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, VB_MAX_GIDS, e, 0),
			 EINVAL);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, 0, e, 1), EINVAL);
}

static void query_gid_table__too_small_an_array(void **state)
{
	struct bench *b = *state;
	struct vb_port *p = &vb_front_context(b->context)->adapter->ports[0];
	struct ibv_gid_entry e[2];

	vb_mutex_lock(&p->lock);
	p->gids[0].gid.raw[0] = 0xfe;
	p->gids[2].gid.raw[0] = 0xfd;
	p->gids[2].ifindex = 7;
	p->gids[0].type = GID_ROCE_V1;
	p->gids[2].type = GID_ROCE_V2;
	p->gid_count = 3;
	vb_mutex_unlock(&p->lock);
	assert_int_equal(ibv_query_gid_table(b->context, e, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 2, 1), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 2, 0), 2);
	assert_int_equal(e[0].gid_type, IBV_GID_TYPE_ROCE_V1);
	assert_int_equal(e[1].gid_index, 2);
	assert_int_equal(e[1].gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(e[1].ndev_ifindex, 7);
}

static void query_pkey__one_entry(void **state)
{
	struct bench *b = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(b->context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(b->context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, pkey), 0);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(1)), -1);
}

static void close_device__objects_left(void **state)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	fake = (struct fake_engine){ .devices = 1 };
	context = open_first();
	pd = ibv_alloc_pd(context);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(fake.opens, 0);
}

static void resolve__asks_for_the_gid_s_interface(void **state)
{
	struct bench *b = *state;
	struct vb_port *p = &vb_front_context(b->context)->adapter->ports[0];
	struct ibv_ah_attr ah = { .grh.dgid.raw = { 0xfe, 0x80, [15] = 9 } };
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vlan = 1;

	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		EINVAL);
	ah.port_num = 1;
	ah.grh.sgid_index = 200;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		ENODATA);
	vb_mutex_lock(&p->lock);
	p->gids[0].gid.raw[0] = 0xfe;
	p->gids[0].ifindex = 7;
	p->gid_count = 1;
	vb_mutex_unlock(&p->lock);
	ah.grh.sgid_index = 0;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan), 0);
	/* 7 is the interface's index, which the fake engine writes to @vlan */
	assert_int_equal(vlan, 7);
	assert_int_equal(mac[5], 9);
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, NULL), 0);
	ah.grh.dgid.raw[15] = 0;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		EHOSTUNREACH);
}

/* The table in docs/VERBS.md says EOPNOTSUPP or EINVAL for these calls. */
static void verbs__refused_as_the_table_says(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_rate_limit_attr rate = { 0 };
	struct ibv_flow_attr flow = { .port = 1 };
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_ops_wr *bad;

	assert_int_equal(ibv_modify_qp_rate_limit(b->qp, &rate), EOPNOTSUPP);
	assert_int_equal(ibv_post_srq_ops(srq, NULL, &bad), EINVAL);
#define REFUSED(call)                                                          \
	do {                                                                   \
		errno = 0;                                                     \
		assert_null(call);                                             \
		assert_int_equal(errno, EOPNOTSUPP);                           \
	} while (0)
	REFUSED(ibv_create_flow(b->qp, &flow));
	REFUSED(ibv_create_flow_action_esp(b->context, NULL));
#undef REFUSED
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void names__in_and_out_of_range(void **state)
{
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)99),
			    "unknown");
	assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	assert_string_equal(ibv_event_type_str(IBV_EVENT_GID_CHANGE),
			    "GID table change");
}

static void rates__both_ways(void **state)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
	assert_int_equal(mult_to_ibv_rate(16), IBV_RATE_40_GBPS);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
	assert_int_equal(mbps_to_ibv_rate(103125), IBV_RATE_100_GBPS);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
}

int front_device_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_device_list__nothing_there),
		cmocka_unit_test(get_device_list__bad_spec),
		cmocka_unit_test(get_device_list__same_pointers_again),
		ON_BENCH(query_port__only_port_1),
		ON_BENCH(query_port__old_struct_ends_early),
		ON_BENCH(query_device_ex__longer_and_shorter_structs),
		ON_BENCH(query_gid__index_out_of_table),
		ON_BENCH(query_gid_table__too_small_an_array),
		ON_BENCH(query_pkey__one_entry),
		cmocka_unit_test(close_device__objects_left),
		ON_BENCH(resolve__asks_for_the_gid_s_interface),
		ON_BENCH(verbs__refused_as_the_table_says),
		cmocka_unit_test(names__in_and_out_of_range),
		cmocka_unit_test(rates__both_ways),
	};

	return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
