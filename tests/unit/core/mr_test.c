/* SPDX-License-Identifier: BSD-2-Clause */
/* core/mr: which accesses are permitted, keys, and deregistration. */
#include "fixture.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALL                                                                    \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC)

static struct vb_mr *reg(struct fixture *f, void *base, uint64_t len,
			 uint64_t iova, uint32_t access)
{
	struct vb_mr *mr = NULL;

	assert_int_equal(vb_mr_register(f->pd, base, len, iova, access, &mr),
			 0);
	assert_int_not_equal(mr->key, 0);
	return mr;
}

static enum vb_fault check(struct fixture *f, const struct vb_mr *mr,
			   uint64_t iova, uint64_t len, uint32_t need)
{
	return vb_mr_check(&f->a, f->pd, 0, mr->key, iova, len, need);
}

static void register__access_rules(void **state)
{
	static const struct {
		uint32_t access;
		int rc;
	} rows[] = {
		{ 0, 0 },
		{ ACCESS_REMOTE_READ, 0 },
		{ ACCESS_REMOTE_WRITE, -EINVAL },
		{ ACCESS_REMOTE_ATOMIC, -EINVAL },
		{ ALL, 0 },
		{ ALL | ACCESS_ON_DEMAND | ACCESS_HUGETLB | ACCESS_MW_BIND |
			  ACCESS_ZERO_BASED | ACCESS_RELAXED_ORDERING,
		  0 },
		/* registration ignores an unknown optional access bit */
		{ 1u << 29, 0 },
		{ 1u << 8, -EINVAL },
		{ 1u << 30, -EINVAL },
		{ 1u << 31, -EINVAL },
	};
	struct fixture *f = *state;
	struct vb_mr *mr;
	char byte;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		int rc =
			vb_mr_register(f->pd, &byte, 1, 0, rows[i].access, &mr);

		assert_int_equal(rc, rows[i].rc);
		if (rc == 0)
			assert_int_equal(vb_mr_deregister(mr), 0);
	}
}

static void register__range_may_end_at_2_64_and_not_after(void **state)
{
	struct fixture *f = *state;
	struct vb_mr *mr;
	char buf[16];

	mr = reg(f, buf, 16, UINT64_MAX - 15, 0);
	assert_int_equal(check(f, mr, UINT64_MAX - 15, 16, 0), FAULT_NONE);
	assert_int_equal(check(f, mr, UINT64_MAX, 1, 0), FAULT_NONE);
	assert_int_equal(check(f, mr, UINT64_MAX, 2, 0), FAULT_RKEY);
	assert_int_equal(check(f, mr, UINT64_MAX - 15, 17, 0), FAULT_RKEY);
	assert_int_equal(check(f, mr, UINT64_MAX - 15, UINT64_MAX, 0),
			 FAULT_RKEY);
	assert_int_equal(check(f, mr, 0, 1, 0), FAULT_RKEY);
	assert_int_equal(check(f, mr, 0, 16, 0), FAULT_RKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);

	assert_int_equal(
		vb_mr_register(f->pd, buf, 16, UINT64_MAX - 14, 0, &mr),
		-EINVAL);
	assert_int_equal(vb_mr_register(f->pd, (void *)(UINTPTR_MAX - 14), 16,
					0, 0, &mr),
			 -EINVAL);
	assert_int_equal(vb_mr_register(f->pd, NULL, 1ull << 63, 0, 0, &mr),
			 -EINVAL);
	mr = reg(f, NULL, INT64_MAX, 0, 0);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void register__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct vb_mr *mr;
	char byte;

	atomic_store(&f->a.n_mr, vb_limits.max_mr);
	assert_int_equal(vb_mr_register(f->pd, &byte, 1, 0, 0, &mr), -ENOSPC);
	atomic_store(&f->a.n_mr, 0);
}

static void check__every_byte_around_a_region(void **state)
{
	struct fixture *f = *state;
	char buf[8];
	struct vb_mr *mr = reg(f, buf, 8, 1000, 0);

	for (uint64_t at = 990; at < 1020; at++)
		for (uint64_t len = 1; len < 20; len++)
			assert_int_equal(check(f, mr, at, len, 0),
					 at >= 1000 && at + len <= 1008
						 ? FAULT_NONE
						 : FAULT_RKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void check__needs_all_rights(void **state)
{
	struct fixture *f = *state;
	char buf[8];

	for (uint32_t access = 0; access < 16; access++) {
		struct vb_mr *mr;

		if (access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) &&
		    !(access & ACCESS_LOCAL_WRITE))
			continue;
		mr = reg(f, buf, 8, 0, access);
		for (uint32_t need = 0; need < 16; need++)
			assert_int_equal(check(f, mr, 0, 8, need),
					 (access & need) == need ? FAULT_NONE
								 : FAULT_RKEY);
		assert_int_equal(vb_mr_deregister(mr), 0);
	}
}

static void check__zero_length_checks_nothing(void **state)
{
	struct fixture *f = *state;
	struct vb_mr_use use;

	assert_int_equal(vb_mr_begin(&f->a, f->pd, 0, 0x1234, 99, 0, ALL, &use),
			 FAULT_NONE);
	assert_null(use.mr);
	vb_mr_end(&use);
	assert_int_equal(vb_mr_write(&f->a, f->pd, 0, 7, 1, NULL, 0),
			 FAULT_NONE);
	assert_int_equal(vb_mr_read(&f->a, f->pd, 0, 7, 1, NULL, 0),
			 FAULT_NONE);
}

static void check__empty_region_allows_no_byte(void **state)
{
	struct fixture *f = *state;
	char byte;
	struct vb_mr *mr = reg(f, &byte, 0, 500, ALL);

	assert_int_equal(check(f, mr, 500, 0, ALL), FAULT_NONE);
	assert_int_equal(check(f, mr, 500, 1, 0), FAULT_RKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void check__another_pd(void **state)
{
	struct fixture *f = *state;
	struct vb_pd *other;
	char byte;
	struct vb_mr *mr = reg(f, &byte, 1, 0, ALL);

	assert_int_equal(vb_pd_create(&f->a, &other), 0);
	assert_int_equal(vb_mr_check(&f->a, other, 0, mr->key, 0, 1, 0),
			 FAULT_RKEY);
	assert_int_equal(mr->users, 0);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

static void key__wrong_in_one_bit(void **state)
{
	struct fixture *f = *state;
	char byte;
	struct vb_mr *mr = reg(f, &byte, 1, 0, ALL);

	for (int bit = 0; bit < 32; bit++)
		assert_int_equal(vb_mr_check(&f->a, f->pd, 0,
					     mr->key ^ 1u << bit, 0, 1, 0),
				 FAULT_RKEY);
	assert_int_equal(vb_mr_check(&f->a, f->pd, 0, 0, 0, 1, 0), FAULT_RKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void key__unique_among_many(void **state)
{
	enum { N = 20000 };
	struct fixture *f = *state;
	struct vb_mr **mrs = malloc(N * sizeof(struct vb_mr *));
	uint32_t *keys = malloc(N * sizeof(uint32_t));
	char byte;

	for (int i = 0; i < N; i++) {
		mrs[i] = reg(f, &byte, 1, i, 0);
		keys[i] = mrs[i]->key;
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(vb_mr_check(&f->a, f->pd, 0, keys[i], i, 1, 0),
				 FAULT_NONE);
		assert_int_equal(vb_mr_deregister(mrs[i]), 0);
	}
	qsort(keys, N, sizeof(*keys), compare);
	for (int i = 1; i < N; i++)
		assert_true(keys[i - 1] >> 8 != keys[i] >> 8);
	free(keys);
	free(mrs);
}

/* One buffer is registered again and again. The key of an earlier registration
 * stays invalid for a long time, although the objects are reused. */
static void key__stale_one_does_not_come_back(void **state)
{
	enum { N = 100000 };
	struct fixture *f = *state;
	uint32_t *keys = malloc(N * sizeof(uint32_t));
	char byte;

	for (int i = 0; i < N; i++) {
		struct vb_mr *mr = reg(f, &byte, 1, 0, ALL);

		keys[i] = mr->key;
		if (i)
			assert_int_equal(vb_mr_check(&f->a, f->pd, 0,
						     keys[i - 1], 0, 1, 0),
					 FAULT_RKEY);
		assert_int_equal(vb_mr_deregister(mr), 0);
		assert_int_equal(vb_mr_check(&f->a, f->pd, 0, keys[i], 0, 1, 0),
				 FAULT_RKEY);
	}
	assert_true(vb_rows_count(f->a.mrs) < 2000);
	qsort(keys, N, sizeof(*keys), compare);
	for (int i = 1; i < N; i++)
		assert_true(keys[i - 1] != keys[i]);
	free(keys);
}

static void copy__both_ways_at_iova(void **state)
{
	struct fixture *f = *state;
	char buf[] = "0123456789", out[4];
	struct vb_mr *mr = reg(f, buf, 10, 1ull << 40, ALL);
	uint32_t key = mr->key;

	assert_int_equal(
		vb_mr_read(&f->a, f->pd, 0, key, (1ull << 40) + 3, out, 4),
		FAULT_NONE);
	assert_memory_equal(out, "3456", 4);
	assert_int_equal(
		vb_mr_write(&f->a, f->pd, 0, key, (1ull << 40) + 8, "xy", 2),
		FAULT_NONE);
	assert_string_equal(buf, "01234567xy");
	assert_int_equal(
		vb_mr_write(&f->a, f->pd, 0, key, (1ull << 40) + 9, "zz", 2),
		FAULT_RKEY);
	assert_string_equal(buf, "01234567xy");
	assert_int_equal(mr->users, 0);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void copy__rights(void **state)
{
	struct fixture *f = *state;
	uint64_t word = 5, old;
	struct vb_mr *mr =
		reg(f, &word, 8, 0, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ);
	struct vb_mr *w =
		reg(f, &word, 8, 0, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);

	assert_int_equal(vb_mr_write(&f->a, f->pd, 0, mr->key, 0, &old, 8),
			 FAULT_RKEY);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, mr->key, 0, false, 1, 0, &old),
		FAULT_RKEY);
	assert_int_equal(vb_mr_read(&f->a, f->pd, 0, w->key, 0, &old, 8),
			 FAULT_RKEY);
	assert_int_equal(word, 5);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_mr_deregister(w), 0);
}

static void copy__missing_page_is_a_fault(void **state)
{
	struct fixture *f = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[64] = { 0 };
	uint64_t old;
	struct vb_mr *mr;

	assert_ptr_not_equal(map, MAP_FAILED);
	mr = reg(f, map, 2 * page, 0, ALL);
	assert_int_equal(munmap(map + page, page), 0);
	assert_int_equal(
		vb_mr_write(&f->a, f->pd, 0, mr->key, page - 32, buf, 64),
		FAULT_REMOTE_MEMORY);
	assert_int_equal(
		vb_mr_read(&f->a, f->pd, 0, mr->key, page - 32, buf, 64),
		FAULT_REMOTE_MEMORY);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, mr->key, page, true, 1, 0, &old),
		FAULT_REMOTE_MEMORY);
	assert_int_equal(
		vb_mr_write(&f->a, f->pd, 0, mr->key, page - 64, buf, 64),
		FAULT_NONE);
	assert_int_equal(mr->users, 0);
	assert_int_equal(vb_mr_deregister(mr), 0);
	munmap(map, page);
}

static void atomic__both_kinds(void **state)
{
	struct fixture *f = *state;
	uint64_t words[2] = { 10, 20 }, old = 0;
	struct vb_mr *mr = reg(f, words, 16, 4096, ALL);

	assert_int_equal(vb_mr_atomic(&f->a, f->pd, 0, mr->key, 4104, false,
				      UINT64_MAX, 0, &old),
			 FAULT_NONE);
	assert_int_equal(old, 20);
	assert_int_equal(words[1], 19);
	assert_int_equal(vb_mr_atomic(&f->a, f->pd, 0, mr->key, 4096, true, 77,
				      10, &old),
			 FAULT_NONE);
	assert_int_equal(old, 10);
	assert_int_equal(words[0], 77);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, mr->key, 4096, true, 1, 10, &old),
		FAULT_NONE);
	assert_int_equal(old, 77);
	assert_int_equal(words[0], 77);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void atomic__alignment_and_bounds(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3] = { 0 }, old;
	struct vb_mr *mr = reg(f, words, 24, 0, ALL);
	/* The peer's address is aligned, but the memory that it stands for is
	 * not. */
	struct vb_mr *odd = reg(f, (char *)words + 4, 16, 0, ALL);

	for (uint64_t va = 1; va < 8; va++)
		assert_int_equal(vb_mr_atomic(&f->a, f->pd, 0, mr->key, va,
					      false, 1, 0, &old),
				 FAULT_ALIGNMENT);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, odd->key, 0, false, 1, 0, &old),
		FAULT_ALIGNMENT);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, mr->key, 17, false, 1, 0, &old),
		FAULT_RKEY);
	assert_int_equal(
		vb_mr_atomic(&f->a, f->pd, 0, mr->key, 24, false, 1, 0, &old),
		FAULT_RKEY);
	assert_int_equal(words[0] | words[1] | words[2], 0);
	assert_int_equal(mr->users, 0);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_mr_deregister(odd), 0);
}

/* Peers write without pause. After each deregistration the memory must not
 * change any more, and before it no permitted write may be lost. */
struct race {
	struct fixture *f;
	_Atomic uint32_t key;
	_Atomic bool stop;
	_Atomic uint64_t writes;
};

static void *keep_writing(void *arg)
{
	struct race *r = arg;
	char ones[256];

	memset(ones, 1, sizeof(ones));
	while (!atomic_load(&r->stop))
		if (vb_mr_write(&r->f->a, r->f->pd, 0, atomic_load(&r->key), 0,
				ones, sizeof(ones)) == FAULT_NONE)
			atomic_fetch_add(&r->writes, 1);
	return NULL;
}

static void deregister__waits_for_a_thread_that_copies(void **state)
{
	struct race r = { .f = *state };
	static char buf[256];
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, keep_writing, &r), 0);
	for (int i = 0; i < 300; i++) {
		struct vb_mr *mr = reg(r.f, buf, sizeof(buf), 0, ALL);
		uint64_t seen = atomic_load(&r.writes);

		atomic_store(&r.key, mr->key);
		for (int n = 0; n < 10000 && atomic_load(&r.writes) < seen + 3;
		     n++)
			sched_yield();
		assert_int_equal(vb_mr_deregister(mr), 0);
		/* If a write were still in progress, it would change the buffer
		 * after this. */
		memset(buf, 0, sizeof(buf));
		sched_yield();
		for (size_t n = 0; n < sizeof(buf); n++)
			assert_int_equal(buf[n], 0);
	}
	atomic_store(&r.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(atomic_load(&r.writes) > 0);
}

static void *deregister_it(void *arg)
{
	assert_int_equal(vb_mr_deregister(arg), 0);
	return NULL;
}

static void deregister__not_before_the_use_ends(void **state)
{
	struct fixture *f = *state;
	struct vb_mr_use use, late;
	char byte;
	struct vb_mr *mr = reg(f, &byte, 1, 0, 0);
	uint32_t key = mr->key;
	pthread_t thread;

	assert_int_equal(vb_mr_begin(&f->a, f->pd, 0, key, 0, 1, 0, &use),
			 FAULT_NONE);
	assert_ptr_equal(use.at, &byte);
	assert_int_equal(pthread_create(&thread, NULL, deregister_it, mr), 0);
	while (atomic_load(&mr->key))
		sched_yield();
	usleep(2000);
	/* Deregistration waits for the access that has begun. */
	assert_int_equal(atomic_load(&f->a.n_mr), 1);
	assert_int_equal(vb_mr_begin(&f->a, f->pd, 0, key, 0, 1, 0, &late),
			 FAULT_RKEY);
	vb_mr_end(&use);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&f->a.n_mr), 0);
}

/* Each access of a run is checked with its own key, also if the access before
 * it had another key. */
static void begin_next__as_begin_each_time(void **state)
{
	struct fixture *f = *state;
	struct vb_mr_use use = { 0 };
	uint8_t bytes[64], other[64];
	struct vb_mr *all = reg(f, bytes, 64, 0, ALL);
	struct vb_mr *half = reg(f, bytes + 16, 32, 16, 0);
	struct vb_mr *elsewhere = reg(f, other, 64, 0, ALL);
	const struct {
		uint32_t key;
		uint64_t iova, len;
		uint32_t need;
		/* address of the access; NULL: the access is refused */
		uint8_t *at;
	} rows[] = {
		{ all->key, 0, 64, ACCESS_REMOTE_WRITE, bytes },
		{ all->key, 60, 4, ACCESS_REMOTE_WRITE, bytes + 60 },
		{ all->key, 60, 5, ACCESS_REMOTE_WRITE, NULL },
		{ half->key, 16, 8, 0, bytes + 16 },
		{ half->key, 15, 8, 0, NULL },
		{ half->key, 16, 8, ACCESS_REMOTE_WRITE, NULL },
		{ all->key, 15, 8, ACCESS_REMOTE_WRITE, bytes + 15 },
		{ elsewhere->key, 15, 8, ACCESS_REMOTE_WRITE, other + 15 },
		{ 0, 15, 8, 0, NULL },
		{ half->key, 47, 1, 0, bytes + 47 },
		{ half->key ^ 1, 47, 1, 0, NULL },
		{ half->key, 47, 2, 0, NULL },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		bool opens = vb_mr_begin_next(&f->a, f->pd, 0, rows[i].key,
					      rows[i].iova, rows[i].len,
					      rows[i].need, &use);

		assert_int_equal(opens, rows[i].at != NULL);
		if (opens)
			assert_ptr_equal(use.at, rows[i].at);
	}
	vb_mr_end(&use);
	assert_int_equal(vb_mr_deregister(elsewhere), 0);
	assert_int_equal(vb_mr_deregister(half), 0);
	assert_int_equal(vb_mr_deregister(all), 0);
}

static void begin_next__of_a_region_that_is_about_to_go(void **state)
{
	struct fixture *f = *state;
	struct vb_mr_use use = { 0 };
	char byte;
	struct vb_mr *mr = reg(f, &byte, 1, 0, 0);
	uint32_t key = mr->key;
	pthread_t thread;

	assert_true(vb_mr_begin_next(&f->a, f->pd, 0, key, 0, 1, 0, &use));
	assert_int_equal(pthread_create(&thread, NULL, deregister_it, mr), 0);
	while (atomic_load(&mr->key))
		sched_yield();
	/* Deregistration waits for the access that has begun. */
	assert_int_equal(atomic_load(&f->a.n_mr), 1);
	assert_false(vb_mr_begin_next(&f->a, f->pd, 0, 0, 0, 1, 0, &use));
	/* Deregistration ends, as the run of accesses has left the region. */
	pthread_join(thread, NULL);
	assert_false(vb_mr_begin_next(&f->a, f->pd, 0, key, 0, 1, 0, &use));
	vb_mr_end(&use);
}

static struct {
	struct vb_grant granted;
	uint32_t revoked_index, revoked_key;
	uint32_t key_when_revoked, awaited_key;
	bool is_locked;
	const struct vb_mr *mr;
} watched;

static void note_grant(struct vb_adapter *a, const struct vb_grant *g)
{
	watched.granted = *g;
}

static void note_revoke(struct vb_adapter *a, uint32_t index, uint32_t key)
{
	watched.revoked_index = index;
	watched.revoked_key = key;
	watched.key_when_revoked = atomic_load(&watched.mr->key);
}

/* A fake key_ops.await(), which deregistration calls to wait for accesses:
 * checks that the caller holds no lock that other threads need. */
static void note_await(struct vb_adapter *a, uint32_t key)
{
	watched.awaited_key = key;
	watched.is_locked = true;
	if (vb_mutex_trylock(&a->mr_lock)) {
		watched.is_locked = false;
		vb_mutex_unlock(&a->mr_lock);
	}
}

/* Each key_ops function is called at its time: one when a key becomes valid,
 * and one when it is revoked, after this process refuses the key and before
 * deregistration returns. */
static void key_ops__hear_of_a_life(void **state)
{
	static const struct vb_key_ops ops = { .grant = note_grant,
					       .revoke = note_revoke,
					       .await = note_await };
	struct fixture *f = *state;
	uint32_t key, index;
	struct vb_mr *mr;
	char bytes[16];

	f->a.key_ops = &ops;
	mr = reg(f, bytes, 16, 0x1000, ALL);
	key = mr->key;
	index = vb_key_index(f->a.key_mask, f->a.key_inv, key);
	assert_ptr_equal(vb_rows_get(f->a.mrs, index), mr);
	assert_int_equal(watched.granted.key, key);
	assert_int_equal(watched.granted.index, index);
	assert_int_equal(watched.granted.pd, f->pd->id);
	assert_int_equal(watched.granted.access, ALL);
	assert_int_equal(watched.granted.qpn, 0);
	assert_int_equal(watched.granted.base, (uintptr_t)bytes);
	assert_int_equal(watched.granted.iova, 0x1000);
	assert_int_equal(watched.granted.length, 16);
	watched.mr = mr;
	watched.key_when_revoked = 1;
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(watched.revoked_index, index);
	assert_int_equal(watched.revoked_key, key);
	assert_int_equal(watched.key_when_revoked, 0);
	assert_int_equal(watched.awaited_key, key);
	assert_false(watched.is_locked);
}

static void change__everything_but_the_key(void **state)
{
	struct fixture *f = *state;
	struct vb_mr_change to = { .place = true };
	char before[8] = "before", after[16] = "after";
	struct vb_mr *mr = reg(f, before, 8, 0x100, ALL);
	uint32_t key = mr->key;
	struct vb_pd *other;
	char out[5];

	to.base = after;
	to.length = 16;
	to.iova = 0x200;
	assert_int_equal(vb_mr_change(mr, &to), 0);
	assert_int_equal(mr->key, key);
	assert_int_equal(check(f, mr, 0x100, 1, 0), FAULT_RKEY);
	assert_int_equal(vb_mr_read(&f->a, f->pd, 0, key, 0x200, out, 5),
			 FAULT_NONE);
	assert_memory_equal(out, "after", 5);

	to = (struct vb_mr_change){ .rights = true,
				    .access = ACCESS_REMOTE_WRITE };
	assert_int_equal(vb_mr_change(mr, &to), -EINVAL);
	assert_int_equal(check(f, mr, 0x200, 16, ALL), FAULT_NONE);
	to.access = ACCESS_REMOTE_READ;
	assert_int_equal(vb_mr_change(mr, &to), 0);
	assert_int_equal(check(f, mr, 0x200, 16, ACCESS_LOCAL_WRITE),
			 FAULT_RKEY);
	assert_int_equal(check(f, mr, 0x200, 16, ACCESS_REMOTE_READ),
			 FAULT_NONE);

	assert_int_equal(vb_pd_create(&f->a, &other), 0);
	to = (struct vb_mr_change){ .pd = other };
	assert_int_equal(vb_mr_change(mr, &to), 0);
	assert_int_equal(check(f, mr, 0x200, 1, 0), FAULT_RKEY);
	assert_int_equal(vb_mr_check(&f->a, other, 0, key, 0x200, 16, 0),
			 FAULT_NONE);
	assert_int_equal(vb_pd_destroy(other), -EBUSY);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(register__access_rules),
		TEST(register__range_may_end_at_2_64_and_not_after),
		TEST(register__as_many_as_promised),
		TEST(check__every_byte_around_a_region),
		TEST(check__needs_all_rights),
		TEST(check__zero_length_checks_nothing),
		TEST(check__empty_region_allows_no_byte),
		TEST(check__another_pd),
		TEST(key__wrong_in_one_bit),
		TEST(key__unique_among_many),
		TEST(key__stale_one_does_not_come_back),
		TEST(copy__both_ways_at_iova),
		TEST(copy__rights),
		TEST(copy__missing_page_is_a_fault),
		TEST(atomic__both_kinds),
		TEST(atomic__alignment_and_bounds),
		TEST(deregister__waits_for_a_thread_that_copies),
		TEST(deregister__not_before_the_use_ends),
		TEST(begin_next__as_begin_each_time),
		TEST(begin_next__of_a_region_that_is_about_to_go),
		TEST(key_ops__hear_of_a_life),
		TEST(change__everything_but_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
