/* SPDX-License-Identifier: BSD-2-Clause */
/* core/mw: which binds and which accesses are permitted, and until when. */
#include "fixture.h"

#include "core/mw.h"

#define MEM  64u
#define IOVA 0x1000u
#define QP   7u /* arbitrary queue pair numbers */
#define PEER 8u

#define RW (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)

struct window {
	struct fixture *f;
	struct vb_qp qp;
	uint8_t mem[MEM];
	struct vb_mr *region, *mw;
	uint32_t key; /* the window's key before its first bind */
};

static void open_window(struct window *w, struct fixture *f, unsigned type,
			uint32_t access)
{
	*w = (struct window){ .f = f };
	w->qp.adapter = &f->a;
	w->qp.pd = f->pd;
	atomic_store(&w->qp.qpn, QP);
	assert_int_equal(
		vb_mr_register(f->pd, w->mem, MEM, IOVA, access, &w->region),
		0);
	assert_int_equal(vb_mw_alloc(f->pd, type, &w->mw, &w->key), 0);
}

static void close_window(struct window *w)
{
	vb_mw_free(w->mw);
	assert_int_equal(vb_mr_deregister(w->region), 0);
}

static struct vb_mw_bind bind_of(const struct window *w, uint64_t addr,
				 uint64_t length, uint32_t access)
{
	return (struct vb_mw_bind){ w->key, w->region->key, addr, length,
				    access };
}

static bool VB_UNCHECKED bind(struct window *w, uint64_t addr, uint64_t length,
			      uint32_t access)
{
	struct vb_mw_bind b = bind_of(w, addr, length, access);

	return vb_mw_bind(&w->qp, &b) == MW_DONE;
}

static enum vb_fault check(struct window *w, uint32_t qp, uint64_t at,
			   uint64_t len, uint32_t need)
{
	return vb_mr_check(&w->f->a, w->f->pd, qp, w->key, at, len, need);
}

static void bind__rules(void **state)
{
	static const struct {
		unsigned type;
		uint32_t region, access;
		uint64_t addr, length;
		bool ok;
	} rows[] = {
		/* Columns: type, rights of the region, rights of the window,
		 * range, result. */
		{ 1, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, RW, IOVA, MEM, true },
		{ 2, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, RW, IOVA, MEM, true },
		{ 1, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, 0, IOVA + 8, 8,
		  true },
		/* Ranges one byte outside of the region, or that wrap: */
		{ 2, ACCESS_MW_BIND, 0, IOVA - 1, 8, false },
		{ 2, ACCESS_MW_BIND, 0, IOVA + 1, MEM, false },
		{ 2, ACCESS_MW_BIND, 0, IOVA + 8, UINT64_MAX, false },
		{ 2, ACCESS_MW_BIND, 0, 0, UINT64_MAX, false },
		/* Windows of a region without the MW_BIND right: */
		{ 1, ACCESS_LOCAL_WRITE, RW, IOVA, 8, false },
		/* Remote write by a window needs LOCAL_WRITE of the region: */
		{ 1, ACCESS_MW_BIND, ACCESS_REMOTE_READ, IOVA, 8, true },
		{ 1, ACCESS_MW_BIND, ACCESS_REMOTE_WRITE, IOVA, 8, false },
		{ 2, ACCESS_MW_BIND, ACCESS_REMOTE_ATOMIC, IOVA, 8, false },
		/* Zero-based windows: only type 2, and only if the region is
		 * not zero-based. */
		{ 1, ACCESS_MW_BIND, ACCESS_ZERO_BASED, IOVA, 8, false },
		{ 2, ACCESS_MW_BIND, ACCESS_ZERO_BASED, IOVA, 8, true },
		{ 2, ACCESS_MW_BIND | ACCESS_ZERO_BASED, 0, IOVA, 8, false },
		/* An empty bind closes a window of type 1, and is forbidden for
		 * type 2. */
		{ 1, ACCESS_MW_BIND, 0, 0, 0, true },
		{ 2, ACCESS_MW_BIND, 0, IOVA, 0, false },
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct window w;

		open_window(&w, *state, rows[i].type, rows[i].region);
		if (bind(&w, rows[i].addr, rows[i].length, rows[i].access) !=
		    rows[i].ok)
			fail_msg("row %zu", i);
		assert_int_equal(w.mw->key,
				 rows[i].ok && rows[i].length ? w.key : 0);
		close_window(&w);
	}
}

static void VB_UNCHECKED bind__names_that_are_none(void **state)
{
	struct fixture *f = *state;
	struct window w;
	struct vb_mw_bind b;
	struct vb_pd *other;

	assert_int_equal(vb_pd_create(&f->a, &other), 0);
	open_window(&w, f, 2, ACCESS_MW_BIND);
	b = bind_of(&w, IOVA, 8, 0);
	w.qp.pd = other;
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	w.qp.pd = f->pd;
	b.key = w.region->key; /* the key names a region instead of a window */
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	b.key = w.key ^ 1u << 31;
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	b = bind_of(&w, IOVA, 8, 0);
	b.region ^= 1;
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	b.region = 0;
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	close_window(&w);
	assert_int_equal(vb_pd_destroy(other), 0);
}

static void VB_UNCHECKED bind__windows_are_no_regions(void **state)
{
	struct fixture *f = *state;
	struct window w, on;
	struct vb_mw_bind b;

	open_window(&w, f, 2, ACCESS_MW_BIND);
	open_window(&on, f, 2, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, MEM, ACCESS_MW_BIND));
	b = bind_of(&on, IOVA, 8, 0);
	b.region = w.key;
	assert_int_equal(vb_mw_bind(&w.qp, &b), MW_REFUSED);
	close_window(&on);
	close_window(&w);
}

static void check__every_byte_around_a_window(void **state)
{
	struct window w;

	open_window(&w, *state, 2, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA + 8, 8, RW));
	for (uint64_t at = IOVA; at < IOVA + 20; at++)
		for (uint64_t len = 1; len < 20; len++)
			assert_int_equal(
				check(&w, QP, at, len, ACCESS_REMOTE_WRITE),
				at >= IOVA + 8 && at + len <= IOVA + 16
					? FAULT_NONE
					: FAULT_RKEY);
	close_window(&w);
}

static void check__who_and_what(void **state)
{
	struct window w;

	/* A window may grant remote access rights that its region does not
	 * have. */
	open_window(&w, *state, 2, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_WRITE),
			 FAULT_RKEY);
	assert_int_equal(check(&w, PEER, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	/* A window's key is refused where an lkey is needed. */
	assert_int_equal(check(&w, QP, IOVA, 8, 0), FAULT_RKEY);
	assert_int_equal(check(&w, 0, IOVA, 8, ACCESS_LOCAL_WRITE), FAULT_RKEY);
	close_window(&w);

	open_window(&w, *state, 1, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	assert_int_equal(check(&w, PEER, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	close_window(&w);
}

static void check__zero_based(void **state)
{
	struct window w;
	uint8_t out[8];

	open_window(&w, *state, 2, ACCESS_MW_BIND);
	memcpy(w.mem + 16, "windowed", 8);
	assert_true(
		bind(&w, IOVA + 16, 8, ACCESS_ZERO_BASED | ACCESS_REMOTE_READ));
	assert_int_equal(vb_mr_read(&w.f->a, w.f->pd, QP, w.key, 0, out, 8),
			 FAULT_NONE);
	assert_memory_equal(out, "windowed", 8);
	assert_int_equal(check(&w, QP, 1, 8, ACCESS_REMOTE_READ), FAULT_RKEY);
	assert_int_equal(check(&w, QP, IOVA + 16, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	close_window(&w);
}

static void rebind__type_1_at_any_time(void **state)
{
	struct window w;
	uint32_t old;

	open_window(&w, *state, 1, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	old = w.key;
	w.key = vb_mw_key(old, old + 1);
	assert_int_equal(w.key >> 8, old >> 8);
	assert_int_not_equal(w.key, old);
	assert_true(bind(&w, IOVA + 8, 8, ACCESS_REMOTE_READ));
	assert_int_equal(check(&w, QP, IOVA + 8, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	assert_int_equal(vb_mr_check(&w.f->a, w.f->pd, QP, old, IOVA, 8,
				     ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	/* A refused bind leaves the window as it was. */
	assert_false(bind(&w, IOVA + 1, MEM, ACCESS_REMOTE_READ));
	assert_int_equal(check(&w, QP, IOVA + 8, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	/* A bind of length 0 takes the window's range away. */
	assert_true(bind(&w, 0, 0, 0));
	assert_int_equal(check(&w, QP, IOVA + 8, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	close_window(&w);
}

static void VB_UNCHECKED invalidate__rules(void **state)
{
	struct fixture *f = *state;
	struct window w;
	struct vb_pd *other;

	assert_int_equal(vb_pd_create(&f->a, &other), 0);
	open_window(&w, f, 2, ACCESS_MW_BIND);
	/* Refused: a window that is not bound; a region; no key at all. */
	assert_false(vb_mw_invalidate(&w.qp, w.key));
	assert_false(vb_mw_invalidate(&w.qp, w.region->key));
	assert_false(vb_mw_invalidate(&w.qp, 0));
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	/* A bound window of type 2 cannot be bound again, by any queue pair. */
	assert_false(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	w.qp.pd = other;
	assert_false(vb_mw_invalidate(&w.qp, w.key));
	w.qp.pd = f->pd;
	atomic_store(&w.qp.qpn, PEER);
	assert_false(vb_mw_invalidate(&w.qp, w.key));
	atomic_store(&w.qp.qpn, QP);
	assert_false(vb_mw_invalidate(&w.qp, w.key ^ 1));
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	assert_true(vb_mw_invalidate(&w.qp, w.key));
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	assert_false(vb_mw_invalidate(&w.qp, w.key));
	/* After the invalidation another queue pair may bind the window. */
	w.key ^= 0x55;
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	close_window(&w);

	open_window(&w, f, 1, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	assert_false(vb_mw_invalidate(&w.qp, w.key));
	close_window(&w);
	assert_int_equal(vb_pd_destroy(other), 0);
}

static void region__stays_while_a_window_is_bound(void **state)
{
	const struct vb_mr_change to = { .rights = true };
	struct window w;

	open_window(&w, *state, 2, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	assert_int_equal(vb_mr_deregister(w.region), -EBUSY);
	assert_int_equal(vb_mr_change(w.region, &to), -EBUSY);
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	/* After the window is closed, its region can be deregistered. */
	close_window(&w);
}

/* Simulates an access of another process that is in progress: later work
 * requests wait for its end, and no lock is held meanwhile. */
static struct {
	uint32_t key;
	bool is_drained, is_locked;
	vb_time now; /* the time by the clock of the fake key_ops */
	/* the age of the revocation at the last call of is_drained() */
	vb_time age;
} other;

static void note_grant(struct vb_adapter *a, const struct vb_grant *g)
{
}

static void note_revoke(struct vb_adapter *a, uint32_t index, uint32_t key)
{
	other.key = key;
}

static bool is_drained(struct vb_adapter *a, uint32_t key, struct vb_age *age)
{
	other.age = vb_age_look(age, other.now);
	return other.is_drained || key != other.key;
}

static void await(struct vb_adapter *a, uint32_t key)
{
	other.is_locked = true;
	if (vb_mutex_trylock(&a->mr_lock)) {
		other.is_locked = false;
		vb_mutex_unlock(&a->mr_lock);
	}
	other.is_drained = true;
}

static const struct vb_key_ops others_ops = {
	.grant = note_grant,
	.revoke = note_revoke,
	.is_drained = is_drained,
	.await = await,
};

static void VB_UNCHECKED
window__that_is_in_use_makes_its_work_request_wait(void **state)
{
	struct fixture *f = *state;
	struct vb_send_wqe inv = { .op = WR_LOCAL_INV };
	struct window w;

	f->a.key_ops = &others_ops;
	other.is_drained = false;
	open_window(&w, f, 2, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	inv.imm = w.key;
	w.qp.now = 1000;
	assert_int_equal(vb_mw_run(&w.qp, &inv), MW_BUSY);
	assert_true(w.qp.local_at > 1000 && w.qp.local_at != VB_NEVER);
	/* The window is closed at once, but its region cannot be deregistered
	 * before the access ends. */
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	assert_int_equal(vb_mr_deregister(w.region), -EBUSY);
	assert_int_equal(vb_mw_run(&w.qp, &inv), MW_BUSY);
	other.is_drained = true;
	assert_int_equal(vb_mw_run(&w.qp, &inv), MW_DONE);
	assert_int_equal(w.qp.local_at, VB_NEVER);
	assert_int_equal(vb_mw_run(&w.qp, &inv), MW_REFUSED);
	close_window(&w);
	/* A type 1 window is bound again, and freed, during an access. */
	other.is_drained = false;
	open_window(&w, f, 1, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	w.key = vb_mw_key(w.key, w.key + 1);
	assert_false(bind(&w, IOVA, 16, ACCESS_REMOTE_READ));
	other.is_drained = true;
	assert_true(bind(&w, IOVA, 16, ACCESS_REMOTE_READ));
	other.is_drained = false;
	other.is_locked = true;
	vb_mw_free(w.mw);
	assert_false(other.is_locked);
	assert_int_equal(vb_mr_deregister(w.region), 0);
	f->a.key_ops = NULL;
}

/* The age of a revocation begins with that revocation, by the clock of the
 * process that waits. The time at which a queue pair was driven last must not
 * count. */
static void VB_UNCHECKED
window__that_is_closed_again_is_as_young_as_before(void **state)
{
	struct fixture *f = *state;
	struct vb_send_wqe inv = { .op = WR_LOCAL_INV };
	struct window w;

	f->a.key_ops = &others_ops;
	other.now = VB_SEC;
	for (unsigned round = 0; round < 2; round++) {
		other.is_drained = false;
		open_window(&w, f, 2, ACCESS_MW_BIND);
		w.qp.now = 1; /* the queue pair was driven long ago for the last
			       * time */
		assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
		inv.imm = w.key;
		w.qp.now = 100 * VB_SEC;
		assert_int_equal(vb_mw_run(&w.qp, &inv), MW_BUSY);
		assert_int_equal(other.age, 0);
		other.now += 1000;
		assert_int_equal(vb_mw_run(&w.qp, &inv), MW_BUSY);
		assert_int_equal(other.age, 1000);
		other.now += 100 * VB_SEC;
		assert_int_equal(vb_mw_run(&w.qp, &inv), MW_BUSY);
		assert_int_equal(other.age, 1000 + VB_AGE_STEP);
		assert_true(w.qp.local_at - w.qp.now < VB_AGE_STEP);
		other.is_drained = true;
		assert_int_equal(vb_mw_run(&w.qp, &inv), MW_DONE);
		close_window(&w);
	}
	f->a.key_ops = NULL;
}

/* A destroyed queue pair's windows become invalid, because its number may be
 * reused. */
static void VB_UNCHECKED queue_pair__takes_its_windows_along(void **state)
{
	struct window w, v;

	open_window(&w, *state, 2, ACCESS_MW_BIND);
	open_window(&v, *state, 2, ACCESS_MW_BIND);
	assert_true(bind(&w, IOVA, 8, ACCESS_REMOTE_READ));
	assert_true(bind(&v, IOVA, 8, ACCESS_REMOTE_READ));
	vb_mw_shut_all(&w.qp);
	assert_int_equal(check(&w, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	assert_int_equal(check(&v, QP, IOVA, 8, ACCESS_REMOTE_READ),
			 FAULT_NONE);
	close_window(&w);
	close_window(&v);
}

static void alloc__types_and_number(void **state)
{
	struct fixture *f = *state;
	struct vb_mr *mw;
	uint32_t key;

	assert_int_equal(vb_mw_alloc(f->pd, 0, &mw, &key), -EINVAL);
	assert_int_equal(vb_mw_alloc(f->pd, 3, &mw, &key), -EINVAL);
	atomic_store(&f->a.n_mw, vb_limits.max_mw);
	assert_int_equal(vb_mw_alloc(f->pd, 1, &mw, &key), -ENOSPC);
	atomic_store(&f->a.n_mw, 0);
	assert_int_equal(vb_mw_alloc(f->pd, 1, &mw, &key), 0);
	assert_int_equal(vb_pd_destroy(f->pd), -EBUSY);
	vb_mw_free(mw);
}

static void next_key__is_never_0(void **state)
{
	uint32_t key = 0x80;

	for (int i = 0; i < 1000; i++) {
		key = vb_mw_key(key, key + 1);
		assert_int_not_equal(key, 0);
		assert_int_equal(key >> 8, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bind__rules),
		TEST(bind__names_that_are_none),
		TEST(bind__windows_are_no_regions),
		TEST(check__every_byte_around_a_window),
		TEST(check__who_and_what),
		TEST(check__zero_based),
		TEST(rebind__type_1_at_any_time),
		TEST(invalidate__rules),
		TEST(region__stays_while_a_window_is_bound),
		TEST(window__that_is_closed_again_is_as_young_as_before),
		TEST(window__that_is_in_use_makes_its_work_request_wait),
		TEST(queue_pair__takes_its_windows_along),
		TEST(alloc__types_and_number),
		TEST(next_key__is_never_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
