/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises of rdma-core's manual pages (section 3) that no other test
 * checks. */
#include "tests/abi/front_bench.h"

static void pages__completion_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_init_attr_ex ex = { .cqe = 1, .channel = b->channel };
	struct ibv_poll_cq_attr poll = { .comp_mask = 1 };
	int vectors = b->context->num_comp_vectors;
	struct ibv_cq_ex *cq;
	struct ibv_cq *which;
	void *context;

	assert_null(ibv_create_cq(b->context, 1, NULL, NULL, vectors));
	assert_int_equal(errno, EINVAL);
	ex.comp_mask = 1u << 7;
	assert_null(ibv_create_cq_ex(b->context, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	ex.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	ex.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq = ibv_create_cq_ex(b->context, &ex);
	assert_non_null(cq);
	assert_true(cq->cqe >= 1);
	assert_int_equal(ibv_start_poll(cq, &poll), EINVAL);
	poll.comp_mask = 0;
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	/* On a non-blocking channel without an event the call returns -1. */
	assert_int_equal(fcntl(b->channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(b->channel, &which, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), EBUSY);
}

static void pages__queue_pairs_and_shared_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 3, 1, 77 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_qp_init_attr on_srq = { .send_cq = b->cq,
					   .recv_cq = b->cq,
					   .srq = srq,
					   .cap = { 1, 1u << 30, 1, 1000, 0 },
					   .qp_type = IBV_QPT_UC };
	struct ibv_srq_attr attr = { .srq_limit = 1, .max_wr = 1u << 30 };
	struct ibv_qp *qp;

	/* ibv_create_srq_ex() ignores srq_limit; sizes are the actual ones. */
	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 3 && init.attr.max_sge >= 1);
	/* Creating a UC queue pair with a shared receive queue is refused. */
	assert_null(ibv_create_qp(b->pd, &on_srq));
	assert_int_equal(errno, EINVAL);
	/* A UD queue pair with an SRQ ignores its receive queue's sizes. */
	on_srq.qp_type = IBV_QPT_UD;
	qp = ibv_create_qp(b->pd, &on_srq);
	assert_non_null(qp);
	assert_true(on_srq.cap.max_send_wr >= 1);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* One of the two SRQ attributes is invalid, so neither is changed. */
	assert_int_equal(
		ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		EINVAL);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void pages__windows_and_handles(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr of_ud = { .send_cq = b->cq,
					  .recv_cq = b->cq,
					  .cap = { 1, 1, 1, 1, 0 },
					  .qp_type = IBV_QPT_UD };
	struct ibv_qp *ud = ibv_create_qp(b->pd, &of_ud);
	struct ibv_mw *one = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	/* a bind of length 0 unbinds the window */
	struct ibv_mw_bind bind = { .send_flags = 0 };
	struct ibv_ah_attr no_grh = { .port_num = 1 };
	struct ibv_ah_attr out;
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .sgid = { .raw = { 1 } } };
	uint32_t key = one->rkey;

	put_in(b, QPS_RTS);
	atomic_store(&vb_front_qp(ud)->core->state, QPS_RTS);
	assert_int_equal(ibv_bind_mw(ud, one, &bind), EINVAL);
	assert_int_equal(ibv_bind_mw(b->qp, two, &bind), EINVAL);
	assert_int_equal(one->rkey, key);
	assert_int_equal(ibv_inc_rkey(key) & 0xffffff00, key & 0xffffff00);
	assert_int_not_equal(ibv_inc_rkey(key), key);
	put_in(b, QPS_RESET);
	atomic_store(&vb_front_qp(ud)->core->state, QPS_RESET);
	assert_null(ibv_create_ah(b->pd, &no_grh));
	assert_int_equal(errno, EINVAL);
	no_grh.is_global = 1;
	no_grh.port_num = 2;
	assert_null(ibv_create_ah(b->pd, &no_grh));
	assert_int_equal(errno, EINVAL);
	/* The received packet's destination GID is none of this port's GIDs. */
	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &wc, &grh, &out),
			 -1);
	assert_null(ibv_create_ah_from_wc(b->pd, &wc, &grh, 1));
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

static void pages__devices_and_names(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr odd = { .comp_mask = 1 };
	struct ibv_async_event e;

	/* ibv_fork_init() succeeds before and after memory was registered. */
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(0x1234)),
			 -1);
	assert_null(ibv_create_counters(b->context, &odd));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fcntl(b->context->async_fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_async_event(b->context, &e), -1);
	assert_int_equal(errno, EAGAIN);
	assert_non_null(ibv_event_type_str((enum ibv_event_type)1000));
	assert_non_null(ibv_node_type_str((enum ibv_node_type)1000));
	assert_non_null(ibv_port_state_str((enum ibv_port_state)1000));
}

static void pages__polling_and_posting(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 2, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	uint32_t room = init.attr.max_wr;
	struct ibv_qp_init_attr on_srq = { .send_cq = b->cq,
					   .recv_cq = b->cq,
					   .srq = srq,
					   .cap = { 1, 1, 1, 1, 0 },
					   .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &on_srq);
	struct ibv_recv_wr wr[2] = { { .next = &wr[1] }, { 0 } }, *bad = NULL;
	struct ibv_wc wc[2];

	push(b, 1);
	push(b, 2);
	assert_int_equal(ibv_poll_cq(b->cq, 0, wc), 0);
	assert_int_equal(ibv_poll_cq(b->cq, -1, wc), 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 1);
	/* A queue cannot become smaller than its waiting entries; it may get
	 * larger than requested. */
	assert_int_equal(ibv_resize_cq(b->cq, 0), EINVAL);
	push(b, 3);
	push(b, 4);
	assert_int_equal(ibv_resize_cq(b->cq, 2), EINVAL);
	assert_int_equal(b->cq->cqe >= 40, true);
	assert_int_equal(ibv_resize_cq(b->cq, 50), 0);
	assert_true(b->cq->cqe >= 50);
	while (ibv_poll_cq(b->cq, 2, wc))
		;
	/* A queue pair with a shared queue has no receive queue of its own. */
	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_recv(qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
	for (uint32_t i = 1; i < room; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr[1], &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	/* @bad points at the second request, as only the first was posted. */
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* The table of ibv_post_send(3), except that UC has no SEND with invalidate:
 * IBA has no such opcode (9.2.1). */
static void pages__operations_of_types(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		char ops[IBV_WR_TSO + 2];
	} rows[] = {
		/* columns: WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CAS, FAA,
		 * LOCAL_INV, BIND_MW, SEND_INV, TSO */
		{ IBV_QPT_UD, "--XX-------" },
		{ IBV_QPT_UC, "XXXX---X---" },
		{ IBV_QPT_RC, "XXXXXXXX-X-" },
		{ IBV_QPT_RAW_PACKET, "--X--------" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct ibv_qp_init_attr init = { .send_cq = b->cq,
						 .recv_cq = b->cq,
						 .cap = { 16, 1, 1, 1, 0 },
						 .qp_type = rows[i].type };
		struct ibv_qp *qp = ibv_create_qp(b->pd, &init);
		struct ibv_ah ah = { 0 };
		struct ibv_sge sge = { (uintptr_t)&ah, 8, 0 };

		assert_non_null(qp);
		atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
		for (unsigned op = 0; op <= IBV_WR_TSO; op++) {
			struct ibv_send_wr *bad, wr = {
				.opcode = (enum ibv_wr_opcode)op,
				.sg_list = &sge,
				.num_sge = 1,
				.send_flags =
					IBV_SEND_FENCE | IBV_SEND_SOLICITED,
			};
			bool taken;

			/* Binds need a window and datagrams an address
			 * handle; other tests post those. */
			if (op == IBV_WR_BIND_MW ||
			    (rows[i].type == IBV_QPT_UD &&
			     rows[i].ops[op] == 'X'))
				continue;
			taken = ibv_post_send(qp, &wr, &bad) == 0;
			assert_int_equal(taken, rows[i].ops[op] == 'X');
		}
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* Wrong uses of the ibv_wr_*() calls, such as setting the data of one request
 * twice: ibv_wr_complete() returns an error for each. */
static void pages__builder_mistakes(void **state)
{
	struct bench *b = *state;
	uint64_t word = 5;
	struct ibv_sge long_one = { 0x1000, 1u << 20, 9 };
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info nothing = { 0 };

	put_in(b, QPS_RTS);
	b->ex->wr_flags = 0;
#define MISTAKE(...)                                                           \
	do {                                                                   \
		ibv_wr_start(b->ex);                                           \
		__VA_ARGS__;                                                   \
		ibv_wr_send(b->ex); /* ignored: the first was wrong */         \
		assert_int_equal(ibv_wr_complete(b->ex), EINVAL);              \
	} while (0)
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_inline_data(b->ex, &word, 8);
		ibv_wr_set_sge_list(b->ex, 1, &long_one));
	MISTAKE(ibv_wr_local_inv(b->ex, 7);
		ibv_wr_set_sge_list(b->ex, 1, &long_one));
	MISTAKE(ibv_wr_bind_mw(b->ex, mw, mw->rkey, &nothing);
		ibv_wr_set_sge(b->ex, 9, 0, 8));
	MISTAKE(ibv_wr_atomic_write(b->ex, 1, 0, &word);
		ibv_wr_set_sge(b->ex, 9, 0, 8));
	MISTAKE(ibv_wr_rdma_read(b->ex, 1, 0);
		ibv_wr_set_inline_data(b->ex, &word, 8));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_inline_data_list(
			b->ex, 2,
			(struct ibv_data_buf[]){ { &word, 8 },
						 { &word, 1u << 30 } }));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_ud_addr(b->ex, NULL, 1, 1));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_xrc_srqn(b->ex, 1));
	MISTAKE(b->ex->wr_flags = IBV_SEND_IP_CSUM; ibv_wr_send(b->ex);
		b->ex->wr_flags = 0);
	/* Newer headers call FLUSH by this pointer; the device has no FLUSH. */
	MISTAKE(vb_front_qp(b->qp)->wr_flush(b->ex, 1, 0, 8, 1, 0));
#undef MISTAKE
	assert_int_equal(posted(b), 0);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* The flags of FLUSH, which Debian 12's headers do not have, as numbers:
 * IBV_QP_EX_WITH_FLUSH, IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT, and the bits
 * of device_cap_flags_ex and of on-demand paging. */
static void pages__flush_is_refused(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr_ex init = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.pd = b->pd,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | 1u << 11,
	};
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)14 }, *bad;
	struct ibv_device_attr_ex a;
	char bytes[8];

	assert_null(ibv_create_qp_ex(b->context, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	for (int bit = 8; bit <= 9; bit++) {
		assert_null(ibv_reg_mr(b->pd, bytes, 8,
				       IBV_ACCESS_LOCAL_WRITE | 1 << bit));
		assert_int_equal(errno, EINVAL);
	}
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_query_device_ex(b->context, NULL, &a), 0);
	assert_true((a.device_cap_flags_ex & 3ull << 38) == 0);
	assert_int_equal(a.odp_caps.per_transport_caps.rc_odp_caps & 1u << 6,
			 0);
}

static void pages__queries(void **state)
{
	struct bench *b = *state;
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK |
						  1u << 7 };
	struct ibv_query_device_ex_input odd = { .comp_mask = 1 };
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	uint64_t values[3] = { 7, 7, 7 };
	struct ibv_device_attr_ex a;
	struct ibv_gid_entry e;
	struct ibv_ece ece = { .vendor_id = 1 };
	char bytes[8];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, bytes, 8, 0);
	__be16 pkey;

	assert_int_equal(ibv_query_rt_values_ex(b->context, &now), 0);
	assert_int_equal(now.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	now.comp_mask = 0;
	assert_int_equal(ibv_query_rt_values_ex(b->context, &now), 0);
	assert_int_equal(now.comp_mask, 0);
	assert_int_equal(ibv_query_device_ex(b->context, &odd, &a), EINVAL);
	assert_int_equal(ibv_query_gid_ex(b->context, 2, 0, &e, 0), EINVAL);
	assert_int_equal(ibv_query_pkey(b->context, 2, 0, &pkey), -1);
	assert_int_equal(ibv_query_pkey(b->context, 1, -1, &pkey), -1);
	assert_int_equal(
		ibv_query_qp_data_in_order(b->qp, IBV_WR_RDMA_WRITE, 0), 0);
	/* A counter object to which no counter is attached reads as 0. */
	assert_int_equal(ibv_read_counters(c, values, 2, 0), 0);
	assert_true(!values[0] && !values[1] && values[2] == 7);
	/* Options of vendor 0 must fail with EOPNOTSUPP. ibv_query_ece()
	 * returns vendor 0; if setting them succeeded, UCX would set options of
	 * its own. */
	assert_int_equal(ibv_set_ece(b->qp, &ece), EINVAL);
	ece = (struct ibv_ece){ .options = 1 };
	assert_int_equal(ibv_set_ece(b->qp, &ece), EOPNOTSUPP);
	ece = (struct ibv_ece){ .comp_mask = 1 };
	assert_int_equal(ibv_query_ece(b->qp, &ece), 0);
	assert_true(!ece.vendor_id && !ece.options && !ece.comp_mask);
	assert_int_equal(ibv_set_ece(b->qp, &ece), EOPNOTSUPP);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      bytes, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void pages__counters_have_limits(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr odd = { .comp_mask = 1 };
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct ibv_counter_attach_attr at = { .counter_desc =
						      IBV_COUNTER_BYTES };

	assert_null(ibv_create_counters(b->context, &odd));
	assert_int_equal(errno, EINVAL);
	for (at.index = 0; at.index < 32; at.index++)
		assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL),
				 0);
	/* An index out of range, and one more counter than the set can have. */
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	at.index = 0;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	at.counter_desc = (enum ibv_counter_description)2;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), ENOTSUP);
	at.counter_desc = IBV_COUNTER_BYTES;
	at.comp_mask = 1;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void pages__parent_domains_need_both_allocators(void **state)
{
	struct bench *b = *state;
	struct ibv_parent_domain_init_attr attr = {
		.pd = b->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = take,
	};
	struct ibv_pd *pd;

	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.alloc = NULL;
	attr.free = give;
	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	/* With comp_mask 0 the parent domain's allocators are not called. */
	attr.comp_mask = 0;
	pd = ibv_alloc_parent_domain(b->context, &attr);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int front_pages_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(pages__completion_queues),
		ON_BENCH(pages__queue_pairs_and_shared_queues),
		ON_BENCH(pages__windows_and_handles),
		ON_BENCH(pages__devices_and_names),
		ON_BENCH(pages__polling_and_posting),
		ON_BENCH(pages__operations_of_types),
		ON_BENCH(pages__builder_mistakes),
		ON_BENCH(pages__flush_is_refused),
		ON_BENCH(pages__queries),
		ON_BENCH(pages__counters_have_limits),
		ON_BENCH(pages__parent_domains_need_both_allocators),
	};

	return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
