/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects and helpers of the front end's tests. */
#include "tests/abi/front_bench.h"

struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	return context;
}

int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	fake = (struct fake_engine){ .devices = 2 };
	b->context = open_first();
	b->pd = ibv_alloc_pd(b->context);
	b->channel = ibv_create_comp_channel(b->context);
	b->cq = ibv_create_cq(b->context, 40, b, b->channel, 0);
	assert_non_null(b->cq);
	init.pd = b->pd;
	init.send_cq = init.recv_cq = b->cq;
	b->qp = ibv_create_qp_ex(b->context, &init);
	assert_non_null(b->qp);
	b->ex = ibv_qp_to_qp_ex(b->qp);
	assert_non_null(b->ex);
	b->core = vb_front_qp(b->qp)->core;
	*state = b;
	return 0;
}

int tear_down(void **state)
{
	struct bench *b = *state;

	if (b->qp)
		assert_int_equal(ibv_destroy_qp(b->qp), 0);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), 0);
	assert_int_equal(ibv_dealloc_pd(b->pd), 0);
	assert_int_equal(ibv_close_device(b->context), 0);
	assert_int_equal(fake.opens, 0);
	free(b);
	return 0;
}

void put_in(struct bench *b, enum vb_qp_state s)
{
	atomic_store(&b->core->state, (uint8_t)s);
}

uint32_t posted(const struct bench *b)
{
	return atomic_load(&b->core->sq.posted);
}

void push(struct bench *b, uint64_t wr_id)
{
	struct vb_cqe e = { .wr_id = wr_id,
			    .opcode = WC_OP_RECV,
			    .wc_flags = WC_WITH_IMM,
			    .imm = 0x01020304,
			    .byte_len = 99,
			    .qpn = 5,
			    .src_qp = 6 };

	assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, true));
}

void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

struct allocator allocator;

void *take(struct ibv_pd *pd, void *context, size_t size, size_t align,
	   uint64_t type)
{
	void *at = NULL;

	assert_ptr_equal(context, &allocator);
	if (allocator.how != OWN)
		return allocator.how == NONE ? NULL : IBV_ALLOCATOR_USE_DEFAULT;
	allocator.taken++;
	assert_int_equal(posix_memalign(&at, align, size), 0);
	memset(at, 0, size);
	return at;
}

void give(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	assert_ptr_equal(context, &allocator);
	allocator.given++;
	free(at);
}
