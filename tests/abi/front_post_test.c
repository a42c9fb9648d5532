/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting requests, the ibv_wr_* calls, and polling for completions. */
#include "tests/abi/front_bench.h"

static void post_send__wrong_state(void **state)
{
	struct bench *b = *state;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;

	for (int s = QPS_RESET; s <= QPS_RTR; s++) {
		put_in(b, (enum vb_qp_state)s);
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
	}
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

static void post_send__list_with_a_bad_one(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[VB_MAX_SGE + 1] = { { 0x1000, 7, 1 },
					       { 0x2000, 8, 2 } };
	struct ibv_send_wr wr[3] = { 0 }, *bad = NULL;
	const struct vb_send_wqe *wqe;

	put_in(b, QPS_RTS);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i + 70,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .opcode = IBV_WR_SEND_WITH_IMM,
					      .imm_data = 0xaabbccdd,
					      .sg_list = sge,
					      .num_sge = 2 };
	wr[1].num_sge = (int)b->core->sq.max_sge + 1;
	assert_int_equal(ibv_post_send(b->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(posted(b), 1);
	assert_int_equal(fake.drives, 1);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->wr_id, 70);
	assert_int_equal(wqe->length, 15);
	assert_int_equal(wqe->num_sge, 2);
	assert_int_equal(wqe->sge[1].lkey, 2);
	assert_int_equal(wqe->imm, 0xaabbccdd);
	put_in(b, QPS_RESET);
}

static void post_send__queue_full(void **state)
{
	struct bench *b = *state;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	uint32_t n = b->core->sq.cap;

	put_in(b, QPS_RTS);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(posted(b), n);
	put_in(b, QPS_RESET);
}

static void post_send__inline(void **state)
{
	struct bench *b = *state;
	uint8_t bytes[VB_MAX_INLINE + 1];
	struct ibv_sge sge[2] = { { (uintptr_t)bytes, 3, 0 },
				  { (uintptr_t)bytes + 10, 5, 0 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = sge,
				  .num_sge = 2,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;
	const struct vb_send_wqe *wqe;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	wr.wr.rdma.remote_addr = 0x12345678;
	wr.wr.rdma.rkey = 0x77;
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->length, 8);
	assert_int_equal(wqe->rkey, 0x77);
	assert_true(wqe->remote_addr == 0x12345678);
	assert_memory_equal(wqe->inline_data, "\0\1\2\12\13\14\15\16", 8);
	sge[0].length = b->core->sq.max_inline;
	sge[1].length = 1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	sge[0].length = 1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 1);
	put_in(b, QPS_RESET);
}

static void post_send__inline_from_nowhere(void **state)
{
	struct bench *b = *state;
	void *hole =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = { (uintptr_t)hole, 8, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	assert_int_equal(vb_guard_install(), 0);
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EFAULT);
	put_in(b, QPS_RESET);
	munmap(hole, 4096);
}

static void post_send__refused_requests(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[2] = { { 0, 1u << 30, 0 }, { 0, 1, 0 } };
	struct ibv_sge four = { 0, 4, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = sge,
				  .num_sge = 2 },
			   *bad;

	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	for (int op = IBV_WR_SEND_WITH_INV + 1; op < 40; op++) {
		wr.opcode = (enum ibv_wr_opcode)op;
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	}
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				   .sg_list = &four,
				   .num_sge = 1 };
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

static void post_recv__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[VB_MAX_SGE + 1] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad = NULL;

	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	put_in(b, QPS_INIT);
	for (uint32_t i = 0; i < b->core->rq.cap; i++)
		assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), ENOMEM);
	wr.num_sge = (int)b->core->rq.max_sge + 1;
	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_ERR);
	(void)ibv_post_recv(b->qp, &wr, &bad);
	assert_int_equal(fake.drives, 1);
	put_in(b, QPS_RESET);
}

static struct bench *arriving;

static void arrive(void)
{
	push(arriving, 44);
	fake.on_poll = NULL;
}

static void poll_cq__link_only_when_empty(void **state)
{
	struct bench *b = *state;
	struct ibv_wc wc[40];

	for (uint64_t i = 0; i < 40; i++)
		push(b, i);
	assert_int_equal(ibv_poll_cq(b->cq, 37, wc), 37);
	assert_int_equal(fake.polls, 0);
	assert_int_equal(wc[36].wr_id, 36);
	assert_int_equal(wc[0].imm_data, 0x01020304);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV);
	assert_int_equal(wc[0].byte_len, 99);
	assert_int_equal(wc[0].qp_num, 5);
	assert_int_equal(wc[0].src_qp, 6);
	assert_int_equal(ibv_poll_cq(b->cq, 40, wc), 3);
	assert_int_equal(fake.polls, 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 0);
	assert_int_equal(fake.polls, 1);
	arriving = b;
	fake.on_poll = arrive;
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 1);
	assert_int_equal(wc[0].wr_id, 44);
	assert_int_equal(ibv_poll_cq(b->cq, 0, wc), 0);
}

static void poll_cq__overrun(void **state)
{
	struct bench *b = *state;
	struct vb_cq *core = vb_front_cq(b->cq)->core;
	struct ibv_async_event e;
	struct vb_cqe entry = { 0 };
	struct ibv_wc wc;
	uint32_t n = 0;

	while (vb_cq_push(core, &entry, false))
		n++;
	assert_true(n >= 40);
	while (n--)
		assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
	assert_true(ibv_poll_cq(b->cq, 1, &wc) < 0);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(e.element.cq, b->cq);
	ibv_ack_async_event(&e);
}

static void cq_ex__walks_entries(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_ex *ex = &vb_front_cq(b->cq)->ex;
	struct ibv_poll_cq_attr attr = { 0 };

	assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
	push(b, 8);
	push(b, 9);
	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(ex->wr_id, 8);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_imm_data(ex), 0x01020304);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 9);
	assert_int_equal(ibv_wc_read_byte_len(ex), 99);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &attr), EINVAL);
}

/* The cause of an error and the application context of a tagged message share a
 * field of the completion. */
static void vendor_err__of_errors_only(void **state)
{
	static const struct {
		enum vb_wc_status status;
		uint32_t vendor_err, app_ctx;
	} rows[] = {
		{ WC_SUCCESS, 0, 108 },
		{ WC_TM_RNDV_INCOMPLETE, 0, 108 },
		{ WC_LOC_LEN_ERR, 108, 0 },
	};
	struct bench *b = *state;
	struct ibv_cq_ex *ex = &vb_front_cq(b->cq)->ex;
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc_tm_info info;
	struct ibv_wc wc;

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_cqe e = { .status = (uint8_t)rows[i].status,
				    .opcode = WC_OP_TM_RECV,
				    .why = 108 };

		assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, false));
		assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
		assert_int_equal(wc.vendor_err, rows[i].vendor_err);
		assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, false));
		assert_int_equal(ibv_start_poll(ex, &attr), 0);
		assert_int_equal(ibv_wc_read_vendor_err(ex),
				 rows[i].vendor_err);
		ibv_wc_read_tm_info(ex, &info);
		assert_int_equal(info.priv, rows[i].app_ctx);
		ibv_end_poll(ex);
	}
}

/* Two completions are as far apart by the wall clock as by the raw clock. */
static void cq_ex__wallclock_keeps_distances(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_ex *ex = &vb_front_cq(b->cq)->ex;
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t first = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		struct vb_cqe e = { .timestamp = VB_SEC + i };

		assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, false));
		assert_int_equal(ibv_start_poll(ex, &attr), 0);
		if (i == 0)
			first = ibv_wc_read_completion_wallclock_ns(ex);
		assert_int_equal(ibv_wc_read_completion_ts(ex), VB_SEC + i);
		assert_int_equal(ibv_wc_read_completion_wallclock_ns(ex),
				 first + i);
		ibv_end_poll(ex);
	}
}

static void wr__nothing_before_complete(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[2] = { { 0x10, 4, 9 }, { 0x20, 5, 9 } };
	const struct vb_send_wqe *wqe;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	b->ex->wr_id = 1;
	b->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(b->ex, 0x55, 0x1000);
	ibv_wr_set_sge_list(b->ex, 2, sge);
	b->ex->wr_id = 2;
	b->ex->wr_flags = 0;
	ibv_wr_send(b->ex);
	ibv_wr_set_inline_data(b->ex, (char[]){ "hello" }, 5);
	b->ex->wr_id = 3;
	ibv_wr_atomic_fetch_add(b->ex, 0x66, 0x2000, 7);
	ibv_wr_set_sge(b->ex, 9, 0x30, 8);
	assert_int_equal(posted(b), 0);
	assert_int_equal(ibv_wr_complete(b->ex), 0);
	assert_int_equal(posted(b), 3);
	assert_int_equal(fake.drives, 1);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->op, WR_WRITE);
	assert_int_equal(wqe->length, 9);
	assert_int_equal(wqe->flags, SEND_SIGNALED);
	wqe = vb_sq_at(&b->core->sq, 1);
	assert_int_equal(wqe->wr_id, 2);
	assert_int_equal(wqe->flags, SEND_INLINE);
	assert_memory_equal(wqe->inline_data, "hello", 5);
	wqe = vb_sq_at(&b->core->sq, 2);
	assert_int_equal(wqe->length, 8);
	assert_true(wqe->compare_add == 7);
	put_in(b, QPS_RESET);
}

static void wr__atomic_write_takes_the_word_along(void **state)
{
	struct bench *b = *state;
	uint64_t word = 0x1122334455667788;
	struct ibv_sge sge = { (uintptr_t)&word, 8, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	ibv_wr_atomic_write(b->ex, 0x55, 0x1000, &word);
	assert_int_equal(ibv_wr_complete(b->ex), 0);
	assert_true(vb_sq_at(&b->core->sq, 0)->swap == word);
	assert_int_equal(vb_sq_at(&b->core->sq, 0)->length, 8);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	assert_true(vb_sq_at(&b->core->sq, 1)->swap == word);
	sge.length = 4;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 2);
	put_in(b, QPS_RESET);
}

static void wr__abort_and_mistakes_post_nothing(void **state)
{
	struct bench *b = *state;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	ibv_wr_abort(b->ex);

	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	ibv_wr_set_sge_list(b->ex, 1000, NULL);
	ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	ibv_wr_atomic_fetch_add(b->ex, 1, 0, 1);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	ibv_wr_send_tso(b->ex, NULL, 0, 0);
	ibv_wr_set_sge(b->ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	for (uint32_t i = 0; i <= b->core->sq.cap; i++)
		ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), ENOMEM);

	put_in(b, QPS_INIT);
	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

int front_post_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(post_send__wrong_state),
		ON_BENCH(post_send__list_with_a_bad_one),
		ON_BENCH(post_send__queue_full),
		ON_BENCH(post_send__inline),
		ON_BENCH(post_send__inline_from_nowhere),
		ON_BENCH(post_send__refused_requests),
		ON_BENCH(post_recv__refusals),
		ON_BENCH(poll_cq__link_only_when_empty),
		ON_BENCH(poll_cq__overrun),
		ON_BENCH(cq_ex__walks_entries),
		ON_BENCH(vendor_err__of_errors_only),
		ON_BENCH(cq_ex__wallclock_keeps_distances),
		ON_BENCH(wr__nothing_before_complete),
		ON_BENCH(wr__atomic_write_takes_the_word_along),
		ON_BENCH(wr__abort_and_mistakes_post_nothing),
	};

	return cmocka_run_group_tests_name("post", tests, NULL, NULL);
}
