#include <pthread.h>
#include <sched.h>
/* SPDX-License-Identifier: BSD-2-Clause */
/* core/wq: rings that fill, wrap and empty; shared receive queues. */
#include "fixture.h"

#include "core/wq.h"
#include "tests/support/seeds.h"

/* A queue index that wraps after six more requests. */
#define NEAR_WRAP 0xfffffffau

static struct vb_srq *make_srq(struct fixture *f, uint32_t cap)
{
	struct vb_srq *srq = NULL;

	assert_int_equal(vb_srq_create(f->pd, cap, 2, &f->async, NULL, &srq),
			 0);
	srq->owner = srq;
	return srq;
}

static void sq__slot_holds_list_or_inline(void **state)
{
	static const struct {
		uint32_t max_sge, max_inline, inline_given;
	} rows[] = {
		{ 0, 0, 0 },   { 1, 0, 16 },	 { 0, 1, 16 },
		{ 2, 33, 48 }, { 32, 100, 512 }, { 32, 1024, 1024 },
		{ 1, 17, 32 },
	};
	struct vb_sq sq;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		assert_int_equal(vb_sq_init(&sq, 4, rows[i].max_sge,
					    rows[i].max_inline, false, false,
					    NULL),
				 0);
		assert_int_equal(sq.max_inline, rows[i].inline_given);
		assert_int_equal(sq.max_sge, rows[i].max_sge);
		assert_int_equal(sq.stride, sizeof(struct vb_send_wqe) +
						    rows[i].inline_given);
		/* A request may use the last byte of its slot. */
		memset(vb_sq_at(&sq, 3), 0xff, sq.stride);
		vb_sq_fini(&sq);
	}
}

static void caps__rounded_up_to_powers_of_two(void **state)
{
	static const uint32_t rows[][2] = {
		{ 0, 0 },    { 1, 1 },	       { 2, 2 },	 { 3, 4 },
		{ 65, 128 }, { 32767, 32768 }, { 32768, 32768 },
	};
	struct vb_sq sq;
	struct vb_rq rq;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		assert_int_equal(
			vb_sq_init(&sq, rows[i][0], 1, 0, false, false, NULL),
			0);
		assert_int_equal(vb_rq_init(&rq, rows[i][0], 1, NULL), 0);
		assert_int_equal(sq.cap, rows[i][1]);
		assert_int_equal(rq.cap, rows[i][1]);
		vb_sq_fini(&sq);
		vb_rq_fini(&rq);
	}
}

static void VB_UNCHECKED sq__of_none_is_always_full(void **state)
{
	struct vb_recv_wqe w;
	struct vb_sq sq;
	struct vb_rq rq;

	assert_int_equal(vb_sq_init(&sq, 0, 0, 0, false, false, NULL), 0);
	assert_null(vb_sq_begin(&sq));
	vb_sq_fini(&sq);
	assert_int_equal(vb_rq_init(&rq, 0, 0, NULL), 0);
	assert_int_equal(vb_rq_post(&rq, 1, NULL, 0), -ENOMEM);
	assert_false(vb_rq_take(&rq, &w));
	vb_rq_fini(&rq);
}

static void VB_UNCHECKED sq__fills_and_frees_across_the_wrap(void **state)
{
	struct vb_sq sq;

	assert_int_equal(vb_sq_init(&sq, 4, 1, 0, false, false, NULL), 0);
	atomic_store(&sq.posted, NEAR_WRAP);
	atomic_store(&sq.released, NEAR_WRAP);
	for (uint64_t n = 0; n < 20; n += 4) {
		for (uint64_t i = 0; i < 4; i++) {
			struct vb_send_wqe *w = vb_sq_begin(&sq);

			assert_non_null(w);
			/* Until its commit each call returns this slot. */
			assert_ptr_equal(w, vb_sq_begin(&sq));
			w->wr_id = n + i;
			vb_sq_commit(&sq);
		}
		assert_null(vb_sq_begin(&sq));
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(
				vb_sq_at(&sq, vb_sq_end(&sq) - 4 + i)->wr_id,
				n + i);
		atomic_fetch_add(&sq.released, 1);
		assert_non_null(vb_sq_begin(&sq));
		atomic_fetch_add(&sq.released, 3);
	}
	vb_sq_fini(&sq);
}

static void sq__deferred_up_to_an_index(void **state)
{
	struct vb_sq sq;

	assert_int_equal(vb_sq_init(&sq, 8, 1, 0, false, false, NULL), 0);
	atomic_store(&sq.posted, 3);
	assert_false(vb_sq_is_deferred(&sq));
	vb_sq_defer_doorbell(&sq, 5);
	for (uint32_t posted = 3; posted < 9; posted++) {
		atomic_store(&sq.posted, posted);
		assert_int_equal(vb_sq_is_deferred(&sq), posted <= 5);
	}
	vb_sq_resume_doorbell(&sq);
	/* Doorbells are deferred across the index wrap and far beyond. */
	vb_sq_defer_doorbell(&sq, 1);
	atomic_store(&sq.posted, UINT32_MAX);
	assert_true(vb_sq_is_deferred(&sq));
	vb_sq_resume_doorbell(&sq);
	for (uint32_t i = 0; i < 32; i++) {
		atomic_store(&sq.posted, 1u << i);
		assert_false(vb_sq_is_deferred(&sq));
	}
	vb_sq_fini(&sq);
}

/* Some requests are posted without a doorbell. A thread that ends the
 * permission to do so must see every request that was posted in this way
 * before. */
#define DEFER_ROUNDS 3000
#define DEFER_POSTS  200
static struct {
	struct vb_sq sq;
	_Atomic unsigned round, done;
	/* index of the last request that was posted without a doorbell */
	_Atomic uint32_t left;
} deferral;

static void VB_UNCHECKED *post_deferred(void *arg)
{
	struct vb_sq *sq = &deferral.sq;

	for (unsigned round = 1; round <= DEFER_ROUNDS / seeds_divisor(); round++) {
		while (atomic_load(&deferral.round) != round)
			;
		for (uint32_t i = 1; i <= DEFER_POSTS; i++) {
			vb_sq_commit(sq);
			if (vb_sq_is_deferred(sq))
				atomic_store_explicit(&deferral.left, i,
						      memory_order_relaxed);
		}
		atomic_store(&deferral.done, round);
	}
	return NULL;
}

static void sq__what_is_left_alone_is_seen(void **state)
{
	struct vb_sq *sq = &deferral.sq;
	pthread_t thread;

	assert_int_equal(vb_sq_init(sq, 256, 1, 0, false, false, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, post_deferred, NULL), 0);
	for (unsigned round = 1; round <= DEFER_ROUNDS / seeds_divisor(); round++) {
		uint32_t end;

		atomic_store(&sq->posted, 0);
		atomic_store(&deferral.left, 0);
		vb_sq_defer_doorbell(sq, DEFER_POSTS);
		atomic_store(&deferral.round, round);
		for (unsigned i = 0; i < round % 64; i++)
			(void)vb_sq_end(sq);
		vb_sq_resume_doorbell(sq);
		end = vb_sq_end(sq);
		while (atomic_load(&deferral.done) != round)
			sched_yield();
		assert_true(atomic_load(&deferral.left) <= end);
	}
	pthread_join(thread, NULL);
	vb_sq_fini(sq);
}

static void rq__fills_and_frees_across_the_wrap(void **state)
{
	const struct vb_sge list[] = { { 1, UINT32_MAX, 3 },
				       { 4, UINT32_MAX, 6 } };
	struct vb_recv_wqe w;
	struct vb_rq rq;
	uint32_t next = NEAR_WRAP;

	assert_int_equal(vb_rq_init(&rq, 4, 2, NULL), 0);
	atomic_store(&rq.posted, next);
	atomic_store(&rq.released, next);
	atomic_store(&rq.taken, next);
	for (uint64_t n = 0; n < 20; n += 4) {
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(vb_rq_post(&rq, n + i, list, i % 3),
					 0);
		assert_int_equal(vb_rq_post(&rq, 9, list, 1), -ENOMEM);
		for (uint64_t i = 0; i < 4; i++) {
			assert_true(vb_rq_take(&rq, &w));
			assert_int_equal(w.wr_id, n + i);
			assert_int_equal(w.num_sge, i % 3);
			assert_int_equal(w.index, next++);
			assert_true(w.length == i % 3 * (uint64_t)UINT32_MAX);
			assert_memory_equal(w.sge, list,
					    i % 3 * sizeof(list[0]));
		}
		assert_false(vb_rq_take(&rq, &w));
		/* A consumed receive keeps its slot until the program has
		 * polled. */
		assert_int_equal(vb_rq_post(&rq, 9, list, 1), -ENOMEM);
		atomic_store(&rq.released, next);
	}
	vb_rq_fini(&rq);
}

static void rq__too_many_entries(void **state)
{
	struct vb_sge list[3] = { 0 };
	struct vb_rq rq;

	assert_int_equal(vb_rq_init(&rq, 1, 2, NULL), 0);
	assert_int_equal(vb_rq_post(&rq, 1, list, 3), -EINVAL);
	assert_int_equal(vb_rq_post(&rq, 1, list, UINT32_MAX), -EINVAL);
	assert_int_equal(vb_rq_post(&rq, 1, list, 2), 0);
	vb_rq_fini(&rq);
}

static void srq__create_checks(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(f->pd, 0, 1, NULL, NULL, &srq), -EINVAL);
	assert_int_equal(vb_srq_create(f->pd, vb_limits.max_srq_wr + 1, 1, NULL,
				       NULL, &srq),
			 -EINVAL);
	assert_int_equal(
		vb_srq_create(f->pd, 1, VB_MAX_SGE + 1, NULL, NULL, &srq),
		-EINVAL);
	atomic_store(&f->a.n_srq, vb_limits.max_srq);
	assert_int_equal(vb_srq_create(f->pd, 1, 1, NULL, NULL, &srq), -ENOMEM);
	atomic_store(&f->a.n_srq, 0);
	srq = make_srq(f, 5);
	assert_int_equal(srq->rq.cap, 8);
	assert_int_equal(vb_pd_destroy(f->pd), -EBUSY);
	atomic_fetch_add(&srq->refs, 1);
	assert_int_equal(vb_srq_destroy(srq), -EBUSY);
	atomic_fetch_sub(&srq->refs, 1);
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__slot_is_free_once_taken(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *srq = make_srq(f, 2);
	struct vb_recv_wqe w;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(vb_rq_post(&srq->rq, 1, NULL, 0), 0);
		assert_int_equal(vb_rq_post(&srq->rq, 2, NULL, 0), 0);
		assert_int_equal(vb_rq_post(&srq->rq, 3, NULL, 0), -ENOMEM);
		assert_true(vb_srq_take(srq, &w));
		assert_int_equal(w.wr_id, 1);
		assert_int_equal(vb_rq_post(&srq->rq, 3, NULL, 0), 0);
		assert_true(vb_srq_take(srq, &w));
		assert_true(vb_srq_take(srq, &w));
		assert_int_equal(w.wr_id, 3);
		assert_false(vb_srq_take(srq, &w));
	}
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__resize_keeps_what_waits(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *srq = make_srq(f, 4);
	struct vb_sge sge = { 1, 2, 3 };
	struct vb_recv_wqe w;
	uint64_t id = 0;

	/* Move the shared receive queue's indices past the end of its ring. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vb_rq_post(&srq->rq, 99, NULL, 0), 0);
		assert_true(vb_srq_take(srq, &w));
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(vb_rq_post(&srq->rq, id++, &sge, 1), 0);
	assert_int_equal(vb_srq_resize(srq, 0), -EINVAL);
	assert_int_equal(vb_srq_resize(srq, vb_limits.max_srq_wr + 1), -EINVAL);
	assert_int_equal(vb_srq_resize(srq, 2), -EINVAL);
	assert_int_equal(srq->rq.cap, 4);
	assert_int_equal(vb_srq_resize(srq, 9), 0);
	assert_int_equal(srq->rq.cap, 16);
	for (int i = 0; i < 12; i++)
		assert_int_equal(vb_rq_post(&srq->rq, id++, &sge, 1), 0);
	assert_int_equal(vb_rq_post(&srq->rq, id, &sge, 1), -ENOMEM);
	for (uint64_t i = 0; i < 14; i++) {
		assert_true(vb_srq_take(srq, &w));
		assert_int_equal(w.wr_id, i);
		assert_int_equal(w.sge[0].lkey, 3);
	}
	assert_int_equal(vb_srq_resize(srq, 2), 0);
	assert_true(vb_srq_take(srq, &w));
	assert_int_equal(w.wr_id, 14);
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__limit_once(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *srq = make_srq(f, 8);
	struct vb_recv_wqe w;
	struct vb_event e;

	for (int i = 0; i < 5; i++)
		assert_int_equal(vb_rq_post(&srq->rq, i, NULL, 0), 0);
	vb_srq_set_limit(srq, 3);
	assert_true(vb_srq_take(srq, &w));
	/* taken: only three receives are left */
	assert_true(vb_srq_take(srq, &w));
	assert_false(is_readable(f->async.fd));
	assert_true(vb_srq_take(srq, &w));
	assert_int_equal(vb_async_take(&f->async, &e), 0);
	assert_int_equal(e.type, EVENT_SRQ_LIMIT);
	assert_ptr_equal(e.object, srq);
	assert_true(vb_srq_take(srq, &w));
	/* The limit event came once, which disarmed the limit. */
	assert_false(is_readable(f->async.fd));
	vb_srq_set_limit(srq, 1);
	assert_true(vb_srq_take(srq, &w));
	assert_true(is_readable(f->async.fd));
	assert_int_equal(vb_srq_destroy(srq), 0);
	/* Destroying the shared receive queue dropped its pending event. */
	assert_false(is_readable(f->async.fd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sq__slot_holds_list_or_inline),
		cmocka_unit_test(caps__rounded_up_to_powers_of_two),
		cmocka_unit_test(sq__of_none_is_always_full),
		cmocka_unit_test(sq__fills_and_frees_across_the_wrap),
		cmocka_unit_test(sq__deferred_up_to_an_index),
		cmocka_unit_test(sq__what_is_left_alone_is_seen),
		cmocka_unit_test(rq__fills_and_frees_across_the_wrap),
		cmocka_unit_test(rq__too_many_entries),
		TEST(srq__create_checks),
		TEST(srq__slot_is_free_once_taken),
		TEST(srq__resize_keeps_what_waits),
		TEST(srq__limit_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
