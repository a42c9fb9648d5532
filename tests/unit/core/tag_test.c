/* SPDX-License-Identifier: BSD-2-Clause */
/* core/tag: the list, the order of matching, unexpected messages,
 * rendezvous. */
#include "base/bytes.h"
#include "qp_fixture.h"

#define MEM 4096

struct bed {
	struct fixture *f;
	struct vb_srq *srq;
	struct vb_qp *qp;
	struct vb_mr *mr;
	uint8_t mem[MEM];
	uint32_t skip;
};

static struct bed *VB_UNCHECKED open_as(struct fixture *f, uint32_t max,
					uint32_t sends)
{
	struct bed *t = calloc(1, sizeof(*t));
	struct vb_qp_init init = init_of(f);

	assert_non_null(t);
	t->f = f;
	assert_int_equal(vb_srq_create(f->pd, 8, 1, &f->async, NULL, &t->srq),
			 0);
	t->srq->owner = t->srq;
	assert_int_equal(vb_tag_join(t->srq, f->cq, max), 0);
	assert_int_equal(vb_mr_register(f->pd, t->mem, MEM, (uintptr_t)t->mem,
					ACCESS_LOCAL_WRITE, &t->mr),
			 0);
	init.srq = t->srq;
	init.max_send_wr = sends;
	t->qp = make(f, init);
	bring_to(t->qp, QPS_RTS);
	vb_mutex_lock(&t->qp->drive);
	return t;
}

static struct bed *open_tm(struct fixture *f)
{
	return open_as(f, 64, 0);
}

static void VB_UNCHECKED close_tm(struct bed *t)
{
	vb_mutex_unlock(&t->qp->drive);
	vb_qp_destroy(t->qp);
	assert_int_equal(vb_srq_destroy(t->srq), 0);
	assert_int_equal(vb_mr_deregister(t->mr), 0);
	free(t);
}

static struct vb_sge buffer(struct bed *t, uint32_t at, uint32_t len)
{
	return (struct vb_sge){ (uintptr_t)t->mem + at, len, t->mr->key };
}

static int add(struct bed *t, uint64_t wr_id, uint64_t tag, uint64_t mask,
	       uint32_t len, uint32_t *handle)
{
	const struct vb_sge sge = buffer(t, 0, len);
	struct vb_tag_op op = { .recv_wr_id = wr_id,
				.tag = tag,
				.mask = mask,
				.sge = &sge,
				.count = 1 };
	int rc = vb_tag_add(t->srq, &op);

	if (handle)
		*handle = op.handle;
	return rc;
}

static void add_ok(struct bed *t, uint64_t wr_id, uint64_t tag, uint64_t mask)
{
	assert_int_equal(add(t, wr_id, tag, mask, 100, NULL), 0);
}

static void sync_to(struct bed *t, uint32_t seen)
{
	vb_tag_sync(t->srq, &(struct vb_tag_op){ .sync = true, .seen = seen });
}

static void del_is(struct bed *t, uint32_t handle, enum vb_wc_status status)
{
	const struct vb_tag_op op = { .wr_id = 77,
				      .signaled = true,
				      .handle = handle };

	assert_int_equal(vb_tag_del(t->srq, &op), 0);
	assert_cqe(t->f->cq, 77, status, WC_OP_TM_DEL);
}

static enum vb_fault VB_UNCHECKED begin(struct bed *t, uint8_t op, uint64_t tag,
					uint32_t len, bool whole)
{
	uint8_t head[256] = { op };

	vb_store_be(head + 4, 0xabc, 4);
	vb_store_be(head + 8, tag, 8);
	return vb_tag_begin(t->qp, head, len, whole, &t->skip);
}

static enum vb_fault VB_UNCHECKED ask(struct bed *t, uint64_t tag,
				      uint32_t length)
{
	uint8_t head[VB_RNDV_BYTES] = { TM_OP_RNDV };

	vb_store_be(head + 4, 0xabc, 4);
	vb_store_be(head + 8, tag, 8);
	vb_store_be(head + 16, 0x1122334455667788, 8);
	vb_store_be(head + 24, 0x99aa, 4);
	vb_store_be(head + 28, length, 4);
	return vb_tag_begin(t->qp, head, sizeof(head), true, &t->skip);
}

static struct vb_cqe VB_UNCHECKED end(struct bed *t, enum vb_wc_status status)
{
	const struct vb_recv_done done = { .status = status,
					   .opcode = WC_OP_RECV };

	vb_qp_recv_done(t->qp, &done);
	return polled(t->f->cq);
}

/* Let a whole message arrive; returns the completion of the used buffer. */
static struct vb_cqe arrive(struct bed *t, uint64_t tag)
{
	assert_int_equal(begin(t, TM_OP_EAGER, tag, 20, true), FAULT_NONE);
	return end(t, WC_SUCCESS);
}

static void assert_meets(struct bed *t, uint64_t tag, uint64_t wr_id)
{
	struct vb_cqe e = arrive(t, tag);

	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	assert_int_equal(e.wc_flags, WC_TM_MATCH | WC_TM_DATA_VALID);
	assert_int_equal(e.tm_tag, tag);
	assert_int_equal(e.tm_app_ctx, 0xabc);
	assert_int_equal(t->skip, VB_TMH_BYTES);
}

static void assert_unexpected(struct bed *t, uint64_t tag)
{
	struct vb_cqe e;

	post_recv(t->qp, 500);
	e = arrive(t, tag);
	assert_int_equal(e.wr_id, 500);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	assert_int_equal(e.wc_flags, 0);
	assert_int_equal(e.tm_tag, 0);
	assert_int_equal(t->skip, 0);
}

static void join__refuses(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(f->pd, 8, 1, &f->async, NULL, &srq), 0);
	assert_int_equal(vb_tag_join(srq, f->cq, 0), -EINVAL);
	assert_int_equal(vb_tag_join(srq, f->cq, VB_TAG_MAX + 1), -EINVAL);
	assert_int_equal(vb_tag_join(srq, f->cq, VB_TAG_MAX), 0);
	assert_int_equal(vb_cq_destroy(f->cq), -EBUSY);
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void create_qp__of_another_type(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_qp_init init = init_of(t->f);
	struct vb_qp *qp;

	init.srq = t->srq;
	init.type = QPT_UC;
	assert_int_equal(vb_qp_create(&t->f->a, &init, &qp), -EINVAL);
	init.type = QPT_UD;
	assert_int_equal(vb_qp_create(&t->f->a, &init, &qp), -EINVAL);
	close_tm(t);
}

/* The program is told of no send queue, although the ring has slots. */
static void VB_UNCHECKED create_qp__no_send_queue_for_the_program(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_qp_init init = init_of(t->f);
	struct vb_qp *qp;

	init.srq = t->srq;
	init.max_send_wr = 0;
	vb_mutex_unlock(&t->qp->drive);
	assert_int_equal(vb_qp_create(&t->f->a, &init, &qp), 0);
	assert_int_equal(init.max_send_wr, 0);
	assert_int_equal(init.max_inline, 0);
	assert_null(vb_sq_begin(&qp->sq));
	assert_ptr_equal(qp->recv_cq, t->f->cq);
	vb_qp_destroy(qp);
	vb_mutex_lock(&t->qp->drive);
	close_tm(t);
}

static void match__the_first_posted(void **state)
{
	struct bed *t = open_tm(*state);

	add_ok(t, 1, 0x10, UINT64_MAX);
	add_ok(t, 2, 0x10, UINT64_MAX);
	add_ok(t, 3, 0x11, UINT64_MAX);
	assert_meets(t, 0x11, 3);
	assert_meets(t, 0x10, 1);
	assert_meets(t, 0x10, 2);
	assert_unexpected(t, 0x10);
	close_tm(t);
}

/* Of several tagged buffers that match, the first that was posted wins. */
static void match__masks_in_order_of_posting(void **state)
{
	struct bed *t = open_tm(*state);

	add_ok(t, 1, 0x0100, 0xff00);
	add_ok(t, 2, 0x0122, 0xffff);
	add_ok(t, 3, 0, 0);
	add_ok(t, 4, 0x0122, 0xffff);
	assert_meets(t, 0x990122, 1);
	assert_meets(t, 0x990122, 2);
	assert_meets(t, 0x990122, 3);
	assert_meets(t, 0x990122, 4);
	close_tm(t);
}

/* More masks than are hashed: the order of posting still holds. */
static void match__many_masks(void **state)
{
	struct bed *t = open_tm(*state);

	for (unsigned i = 0; i < 40; i++)
		add_ok(t, i, 7, 7 | (uint64_t)1 << (i + 3));
	add_ok(t, 40, 7, 7);
	for (unsigned i = 0; i < 41; i++)
		assert_meets(t, 7, i);
	assert_unexpected(t, 7);
	close_tm(t);
}

/* A buffer whose tag has bits outside its mask matches no message. */
static void match__bits_outside_the_mask(void **state)
{
	struct bed *t = open_tm(*state);

	add_ok(t, 1, 0x1ff, 0xff);
	assert_unexpected(t, 0x1ff);
	assert_unexpected(t, 0xff);
	close_tm(t);
}

/* Compare the tag list's answers with a linear search in a simple list. */
static void match__as_a_plain_list_would(void **state)
{
	static const uint64_t masks[] = { 3, 7, 1, 15, 6, 2, 4, 12, 8, 0, 14 };
	struct bed *t = open_tm(*state);
	struct {
		uint64_t tag, mask;
		bool used;
	} list[4000] = { 0 };
	uint32_t r = 1, count = 0, first;

	post_recv(t->qp, 500);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t tag = (r = r * 1664525 + 1013904223) >> 28;
		uint64_t mask = masks[(r >> 8) % VB_COUNT(masks)];
		bool adds = (r >> 20) % 2 && count < VB_COUNT(list);

		if (adds && add(t, count, tag & mask, mask, 100, NULL) == 0) {
			list[count].tag = tag & mask;
			list[count].mask = mask;
			list[count++].used = true;
			continue;
		}
		for (first = 0; first < count; first++)
			if (list[first].used &&
			    (tag & list[first].mask) == list[first].tag)
				break;
		if (first == count)
			continue;
		list[first].used = false;
		assert_meets(t, tag, first);
	}
	close_tm(t);
}

static void add__full(void **state)
{
	struct bed *t = open_as(*state, 2, 0);
	uint32_t handle;

	add_ok(t, 1, 1, 1);
	assert_int_equal(add(t, 2, 1, 1, 100, &handle), 0);
	assert_int_equal(add(t, 3, 1, 1, 100, NULL), -ENOMEM);
	del_is(t, handle, WC_SUCCESS);
	add_ok(t, 3, 1, 1);
	assert_meets(t, 1, 1);
	add_ok(t, 4, 1, 1);
	assert_meets(t, 1, 3);
	assert_meets(t, 1, 4);
	close_tm(t);
}

static void add__too_many_entries(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_sge sge[VB_TAG_MAX_SGE + 1] = { 0 };
	struct vb_tag_op op = { .sge = sge, .count = VB_COUNT(sge) };

	assert_int_equal(vb_tag_add(t->srq, &op), -EINVAL);
	op.count = (unsigned)-1;
	assert_int_equal(vb_tag_add(t->srq, &op), -EINVAL);
	close_tm(t);
}

static void add__tells_before_it_is_met(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_tag_op op = { .wr_id = 9, .signaled = true, .now = 5 };

	assert_int_equal(vb_tag_add(t->srq, &op), 0);
	assert_cqe(t->f->cq, 9, WC_SUCCESS, WC_OP_TM_ADD);
	assert_empty(t->f->cq);
	close_tm(t);
}

static void del__taken_and_made_up(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_tag_op op = { .handle = 64 };
	uint32_t handle;

	assert_int_equal(add(t, 1, 5, UINT64_MAX, 100, &handle), 0);
	assert_meets(t, 5, 1);
	del_is(t, handle, WC_TM_ERR);
	add_ok(t, 2, 5, UINT64_MAX); /* in the deleted buffer's entry */
	del_is(t, handle, WC_TM_ERR);
	assert_meets(t, 5, 2);
	del_is(t, 63, WC_TM_ERR);
	assert_int_equal(vb_tag_del(t->srq, &op), -EINVAL);
	close_tm(t);
}

static void phase__new_buffers_wait(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_tag_op op = { .wr_id = 3,
				.signaled = true,
				.recv_wr_id = 3,
				.tag = 6,
				.mask = UINT64_MAX };
	struct vb_cqe e;

	add_ok(t, 1, 5, UINT64_MAX);
	assert_unexpected(t, 6);
	add_ok(t, 2, 6, UINT64_MAX);
	/* buffer 2 is not used: the first message was not counted yet */
	assert_unexpected(t, 6);
	assert_meets(t, 5, 1); /* posted before the unexpected message */
	sync_to(t, 1);	       /* the program counts one of two messages */
	assert_unexpected(t, 6);
	sync_to(t, 3);
	assert_meets(t, 6, 2);
	assert_unexpected(t, 6);
	assert_int_equal(vb_tag_add(t->srq, &op), 0);
	e = polled(t->f->cq);
	assert_int_equal(e.opcode, WC_OP_TM_ADD);
	assert_int_equal(e.wc_flags, WC_TM_SYNC_REQ);
	op.sync = true; /* an ADD that counts messages as well */
	op.seen = 0x10004;
	op.recv_wr_id = 4;
	assert_int_equal(vb_tag_add(t->srq, &op), 0);
	e = polled(t->f->cq);
	assert_int_equal(e.wc_flags, 0);
	assert_meets(t, 6, 3);
	assert_meets(t, 6, 4);
	close_tm(t);
}

static void phase__lag_is_told(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_cqe e;

	for (unsigned i = 0; i < 0x3fff; i++)
		assert_unexpected(t, 6);
	post_recv(t->qp, 500);
	e = arrive(t, 6);
	assert_int_equal(e.wc_flags, WC_TM_SYNC_REQ);
	sync_to(t, 0x4000);
	assert_unexpected(t, 6);
	close_tm(t);
}

/* The program need not count an unexpected message that breaks off. */
static void phase__broken_message(void **state)
{
	struct bed *t = open_tm(*state);

	post_recv(t->qp, 500);
	assert_int_equal(begin(t, TM_OP_EAGER, 6, 200, false), FAULT_NONE);
	add_ok(t, 1, 6, UINT64_MAX);
	assert_int_equal(end(t, WC_FLUSH_ERR).status, WC_FLUSH_ERR);
	assert_meets(t, 6, 1);
	close_tm(t);
}

/* The sender's data could not be read (near/), so the sender begins again. */
static void begin__behind_one_that_never_came(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_cqe e;

	add_ok(t, 1, 6, UINT64_MAX);
	add_ok(t, 2, 6, UINT64_MAX);
	assert_int_equal(begin(t, TM_OP_EAGER, 6, 20, true), FAULT_NONE);
	assert_int_equal(begin(t, TM_OP_EAGER, 6, 20, true), FAULT_NONE);
	e = polled(t->f->cq);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.status, WC_FLUSH_ERR);
	assert_int_equal(end(t, WC_SUCCESS).wr_id, 2);
	/* An unexpected message that breaks off does not increase the count. */
	post_recv(t->qp, 500);
	assert_int_equal(begin(t, TM_OP_EAGER, 7, 20, true), FAULT_NONE);
	add_ok(t, 3, 7, UINT64_MAX);
	assert_int_equal(begin(t, TM_OP_EAGER, 7, 20, true), FAULT_NONE);
	e = polled(t->f->cq);
	assert_int_equal(e.wr_id, 500);
	assert_int_equal(e.status, WC_FLUSH_ERR);
	assert_int_equal(end(t, WC_SUCCESS).wr_id, 3);
	close_tm(t);
}

static void begin__what_is_for_no_list(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t len;
		bool whole;
		enum vb_wc_op opcode;
	} rows[] = {
		{ TM_OP_NO_TAG, 16, true, WC_OP_TM_NO_TAG },
		{ TM_OP_NO_TAG, 0, true, WC_OP_TM_NO_TAG },
		{ TM_OP_FIN, 32, true, WC_OP_TM_NO_TAG },
		{ 0x77, 100, true, WC_OP_TM_NO_TAG },
		{ TM_OP_EAGER, 15, true, WC_OP_TM_NO_TAG },
		{ TM_OP_RNDV, 15, true, WC_OP_TM_NO_TAG },
		{ TM_OP_RNDV, 31, true, WC_OP_TM_RECV },
		{ TM_OP_RNDV, VB_TAG_RNDV_MAX + 1, true, WC_OP_TM_RECV },
		{ TM_OP_RNDV, 256, false, WC_OP_TM_RECV },
	};
	struct bed *t = open_tm(*state);

	add_ok(t, 1, 0, 0); /* mask 0: this buffer matches every tag */
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_cqe e;

		assert_int_equal(
			begin(t, rows[i].op, 5, rows[i].len, rows[i].whole),
			FAULT_NO_RQE);
		post_recv(t->qp, 500);
		assert_int_equal(
			begin(t, rows[i].op, 5, rows[i].len, rows[i].whole),
			FAULT_NONE);
		e = end(t, WC_SUCCESS);
		assert_int_equal(e.opcode, rows[i].opcode);
		assert_int_equal(e.wr_id, 500);
		assert_int_equal(t->skip, 0);
	}
	assert_meets(t, 5, 1);
	close_tm(t);
}

static void eager__long_tells_twice(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_cqe e;

	add_ok(t, 1, 5, UINT64_MAX);
	assert_int_equal(begin(t, TM_OP_EAGER, 5, 256, false), FAULT_NONE);
	e = polled(t->f->cq);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.wc_flags, WC_TM_MATCH);
	assert_int_equal(e.tm_tag, 5);
	e = end(t, WC_SUCCESS);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	assert_int_equal(e.wc_flags, WC_TM_DATA_VALID);
	close_tm(t);
}

static void VB_UNCHECKED rndv__reads_and_says_so(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_send_wqe *wqe;
	struct vb_cqe e;

	add_ok(t, 1, 5, UINT64_MAX);
	assert_int_equal(ask(t, 5, 100), FAULT_NONE);
	assert_int_equal(t->skip, VB_RNDV_BYTES);
	assert_false(t->qp->recv_busy);
	e = polled(t->f->cq);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.wc_flags, WC_TM_MATCH);
	assert_int_equal(e.byte_len, 100);
	assert_int_equal(vb_sq_end(&t->qp->sq) - t->qp->sq.done, 2);
	wqe = vb_sq_at(&t->qp->sq, t->qp->sq.done);
	assert_int_equal(wqe->op, WR_READ);
	assert_int_equal(wqe->remote_addr, 0x1122334455667788);
	assert_int_equal(wqe->rkey, 0x99aa);
	assert_int_equal(wqe->length, 100);
	wqe = vb_sq_at(&t->qp->sq, t->qp->sq.done + 1);
	assert_int_equal(wqe->op, WR_SEND);
	assert_int_equal(wqe->flags, SEND_INLINE | SEND_FENCE);
	assert_int_equal(wqe->length, VB_RNDV_BYTES);
	assert_int_equal(wqe->inline_data[0], TM_OP_FIN);
	assert_int_equal(vb_load_be(wqe->inline_data + 8, 8), 5);
	assert_int_equal(vb_load_be(wqe->inline_data + 28, 4), 100);
	vb_qp_send_done(t->qp, WC_SUCCESS);
	e = polled(t->f->cq);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	assert_int_equal(e.wc_flags, WC_TM_DATA_VALID);
	assert_int_equal(e.byte_len, 100);
	vb_qp_send_done(t->qp, WC_SUCCESS);
	assert_empty(t->f->cq);
	close_tm(t);
}

/* Expect rendezvous headers: the program must do the rendezvous itself. */
static void expect_headers(struct bed *t, uint32_t length)
{
	struct vb_cqe e;

	assert_int_equal(ask(t, 5, length), FAULT_NONE);
	e = polled(t->f->cq);
	assert_int_equal(e.status, WC_TM_RNDV_INCOMPLETE);
	assert_int_equal(e.wr_id, 1);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	assert_int_equal(e.byte_len, VB_RNDV_BYTES);
	assert_int_equal(t->mem[0], TM_OP_RNDV);
	assert_int_equal(vb_load_be(t->mem + 28, 4), length);
	assert_false(t->qp->recv_busy);
	assert_int_equal(vb_sq_end(&t->qp->sq), t->qp->sq.done);
	assert_int_equal(t->skip, VB_RNDV_BYTES);
}

static void rndv__too_long_for_the_buffer(void **state)
{
	struct bed *t = open_tm(*state);

	add_ok(t, 1, 5, UINT64_MAX);
	expect_headers(t, 101);
	add_ok(t, 1, 5, UINT64_MAX);
	expect_headers(t, UINT32_MAX);
	close_tm(t);
}

static void rndv__queue_pair_sends_for_its_program(void **state)
{
	struct bed *t = open_as(*state, 4, 4);

	add_ok(t, 1, 5, UINT64_MAX);
	expect_headers(t, 100);
	close_tm(t);
}

static void rndv__no_key(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_sge sge = buffer(t, 0, 40);
	struct vb_tag_op op = { .recv_wr_id = 1, .sge = &sge, .count = 1 };

	sge.lkey ^= 1;
	assert_int_equal(vb_tag_add(t->srq, &op), 0);
	assert_int_equal(ask(t, 5, 100), FAULT_RQE_LKEY);
	assert_true(t->qp->recv_busy);
	close_tm(t);
}

/* With no free rendezvous slot the message is refused; no buffer is lost. */
static void VB_UNCHECKED rndv__as_many_as_there_are_slots(void **state)
{
	struct bed *t = open_as(*state, 128, 0);
	unsigned most = VB_TAG_SEND_SLOTS / 2;

	for (unsigned i = 0; i <= most; i++)
		add_ok(t, i, 5, UINT64_MAX);
	for (unsigned i = 0; i < most; i++) {
		assert_int_equal(ask(t, 5, 10), FAULT_NONE);
		assert_int_equal(polled(t->f->cq).wr_id, i);
	}
	assert_int_equal(ask(t, 5, 10), FAULT_NO_RQE);
	assert_empty(t->f->cq);
	vb_qp_send_done(t->qp, WC_SUCCESS);
	assert_int_equal(polled(t->f->cq).wr_id, 0);
	assert_int_equal(ask(t, 5, 10), FAULT_NO_RQE);
	vb_qp_send_done(t->qp, WC_SUCCESS);
	assert_int_equal(ask(t, 5, 10), FAULT_NONE);
	assert_int_equal(polled(t->f->cq).wr_id, most);
	vb_mutex_unlock(&t->qp->drive);
	assert_int_equal(modify(t->qp, QPS_ERR, QPM_STATE), 0);
	vb_mutex_lock(&t->qp->drive);
	for (unsigned i = 1; i <= most; i++)
		assert_cqe(t->f->cq, i, WC_FLUSH_ERR, WC_OP_TM_RECV);
	assert_empty(t->f->cq);
	close_tm(t);
}

static void VB_UNCHECKED rndv__queue_pair_goes(void **state)
{
	struct bed *t = open_tm(*state);
	struct vb_qp_init init = init_of(t->f);

	add_ok(t, 1, 5, UINT64_MAX);
	add_ok(t, 2, 6, UINT64_MAX);
	assert_int_equal(ask(t, 5, 10), FAULT_NONE);
	assert_int_equal(begin(t, TM_OP_EAGER, 6, 200, false), FAULT_NONE);
	vb_mutex_unlock(&t->qp->drive);
	vb_qp_destroy(t->qp);
	assert_cqe(t->f->cq, 1, WC_SUCCESS, WC_OP_TM_RECV);
	assert_cqe(t->f->cq, 2, WC_SUCCESS, WC_OP_TM_RECV);
	assert_cqe(t->f->cq, 1, WC_FLUSH_ERR, WC_OP_TM_RECV);
	assert_cqe(t->f->cq, 2, WC_FLUSH_ERR, WC_OP_TM_RECV);
	assert_empty(t->f->cq);
	init.srq = t->srq;
	init.max_send_wr = 0;
	t->qp = make(t->f, init);
	bring_to(t->qp, QPS_RTS);
	vb_mutex_lock(&t->qp->drive);
	add_ok(t, 3, 5, UINT64_MAX);
	assert_int_equal(ask(t, 5, 10), FAULT_NONE);
	vb_mutex_unlock(&t->qp->drive);
	assert_int_equal(modify(t->qp, QPS_RESET, QPM_STATE), 0);
	vb_mutex_lock(&t->qp->drive);
	assert_cqe(t->f->cq, 3, WC_SUCCESS, WC_OP_TM_RECV);
	assert_cqe(t->f->cq, 3, WC_FLUSH_ERR, WC_OP_TM_RECV);
	assert_empty(t->f->cq);
	close_tm(t);
}

/* A message whose match cannot be reported (CQ full) writes no byte. */
static void begin__cq_is_full(void **state)
{
	struct bed *t = open_tm(*state);

	for (unsigned i = 0; i < 63; i++)
		add_ok(t, i, 9, UINT64_MAX);
	for (unsigned i = 0; i < 64; i++) {
		const struct vb_tag_op op = { .signaled = true };

		vb_tag_sync(t->srq, &op);
	}
	assert_int_equal(begin(t, TM_OP_EAGER, 9, 200, false), FAULT_RQE_LKEY);
	assert_int_equal(atomic_load(&t->qp->state), QPS_ERR);
	close_tm(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(join__refuses),
		TEST(create_qp__of_another_type),
		TEST(create_qp__no_send_queue_for_the_program),
		TEST(match__the_first_posted),
		TEST(match__masks_in_order_of_posting),
		TEST(match__many_masks),
		TEST(match__bits_outside_the_mask),
		TEST(match__as_a_plain_list_would),
		TEST(add__full),
		TEST(add__too_many_entries),
		TEST(add__tells_before_it_is_met),
		TEST(del__taken_and_made_up),
		TEST(phase__new_buffers_wait),
		TEST(phase__lag_is_told),
		TEST(phase__broken_message),
		TEST(begin__behind_one_that_never_came),
		TEST(begin__what_is_for_no_list),
		TEST(eager__long_tells_twice),
		TEST(rndv__reads_and_says_so),
		TEST(rndv__too_long_for_the_buffer),
		TEST(rndv__queue_pair_sends_for_its_program),
		TEST(rndv__no_key),
		TEST(rndv__as_many_as_there_are_slots),
		TEST(rndv__queue_pair_goes),
		TEST(begin__cq_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
