/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of memory regions: register, change, deregister; and their keys. */
#include "core/mr.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/guard.h"
#include "base/rand.h"
#include "core/mr_priv.h"

/* A new region reuses the entry that was deregistered longest ago, but only
 * while at least this many other such entries wait, or when no new entry can be
 * made. A region's variant has 256 values, so a program that registers and
 * deregisters one buffer in a loop sees a key again only after 2^18 other
 * keys. */
#define REST_COUNT 1024

/* Map an index one-to-one to 24 scrambled bits. The mapping is invertible
 * because the multiplier is odd; vb_key_index() is the inverse. */
static uint32_t scramble(const struct vb_adapter *a, uint32_t index)
{
	return ((index * a->key_mul) ^ a->key_mask) & 0xffffff;
}

uint32_t vb_mr_next_key(const struct vb_adapter *a, struct vb_mr *mr)
{
	uint32_t key;

	do {
		mr->variant = (uint8_t)(mr->variant + mr->step);
		key = scramble(a, mr->index) << 8 | mr->variant;
	} while (key == 0); /* a key of 0 would mean: not registered */
	return key;
}

static struct vb_mr *pop_free(struct vb_adapter *a, uint32_t keep)
{
	struct vb_mr *mr = NULL;

	vb_mutex_lock(&a->mr_lock);
	if (a->mr_free_count > keep) {
		mr = a->mr_free;
		a->mr_free = mr->next_free;
		a->mr_free_count--;
	}
	vb_mutex_unlock(&a->mr_lock);
	return mr;
}

static void push_free(struct vb_adapter *a, struct vb_mr *mr)
{
	mr->next_free = NULL;
	vb_mutex_lock(&a->mr_lock);
	if (a->mr_free_count++ == 0)
		a->mr_free = mr;
	else
		a->mr_free_last->next_free = mr;
	a->mr_free_last = mr;
	vb_mutex_unlock(&a->mr_lock);
}

/* Allocate an entry with key 0. A peer's access may read the entry at once. */
static int make_mr(struct vb_adapter *a, struct vb_mr **out)
{
	uint32_t random = vb_rand32(), index;
	struct vb_mr *mr;
	void *row;
	int rc;

	vb_mutex_lock(&a->mr_lock);
	rc = vb_rows_add(a->mrs, &index, &row);
	vb_mutex_unlock(&a->mr_lock);
	if (rc)
		return rc;
	mr = row;
	mr->index = index;
	mr->variant = (uint8_t)random;
	mr->step = (uint8_t)(random >> 8) | 1;
	*out = mr;
	return 0;
}

static int take_mr(struct vb_adapter *a, struct vb_mr **out)
{
	int rc;

	*out = pop_free(a, REST_COUNT);
	if (*out)
		return 0;
	rc = make_mr(a, out);
	if (rc == 0)
		return 0;
	*out = pop_free(a, 0);
	return *out ? 0 : rc;
}

/* Do @length bytes from address @first on extend past address 2^64 - 1? */
static bool core_wraps(uint64_t first, uint64_t length)
{
	return length > 0 && first > UINT64_MAX - (length - 1);
}

/* Does the program ask for an implicit on-demand region, the whole address
 * space? */
static bool is_implicit(const void *base, uint64_t length, uint64_t iova,
			uint32_t access)
{
	return !base && length == UINT64_MAX && iova == 0 &&
	       access & ACCESS_ON_DEMAND;
}

static int check_register(const void *base, uint64_t length, uint64_t iova,
			  uint32_t access)
{
	if (access & ~ACCESS_KNOWN)
		return -EINVAL;
	/* Remote write and remote atomic rights require local write (IBA
	 * 11.2.8.2). */
	if (access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) &&
	    !(access & ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (is_implicit(base, length, iova, access))
		return 0;
	if (length > vb_limits.max_mr_size || core_wraps(iova, length) ||
	    core_wraps((uintptr_t)base, length))
		return -EINVAL;
	return 0;
}

static void announce(const struct vb_mr *mr, uint32_t key)
{
	struct vb_adapter *a = mr->pd->adapter;
	const struct vb_grant g = {
		.key = key,
		.index = mr->index,
		.pd = mr->pd->id,
		.access = mr->access,
		.qpn = mr->qpn,
		.base = (uintptr_t)mr->base,
		.iova = mr->iova,
		.length = mr->length,
	};

	if (a->key_ops)
		a->key_ops->grant(a, &g);
}

static void withdraw(const struct vb_mr *mr, uint32_t key)
{
	struct vb_adapter *a = mr->pd->adapter;

	if (a->key_ops)
		a->key_ops->revoke(a, mr->index, key);
}

void vb_mr_open(struct vb_mr *mr, uint32_t key)
{
	/* Sequentially consistent: a thread in vb_mr_hold() that reads the new
	 * key also reads the new fields. */
	atomic_store(&mr->key, key);
	/* No peer may use a null region, so its key is granted to none. */
	if (mr->kind != MR_NULL)
		announce(mr, key);
}

static void core_fill(struct vb_mr *mr, struct vb_pd *pd, void *base,
		      uint64_t length, uint64_t iova, uint32_t access)
{
	mr->pd = pd;
	mr->base = base;
	mr->length = length;
	mr->iova = iova;
	mr->access = access;
}

int vb_mr_take(struct vb_pd *pd, struct vb_mr **mr)
{
	int rc = vb_guard_install();

	if (rc == 0)
		rc = take_mr(pd->adapter, mr);
	if (rc == 0)
		vb_pd_get(pd);
	return rc;
}

static int take_region(struct vb_pd *pd, struct vb_mr **mr)
{
	struct vb_adapter *a = pd->adapter;
	int rc;

	if (!vb_limit_take(&a->n_mr, vb_limits.max_mr))
		return -ENOSPC;
	rc = vb_mr_take(pd, mr);
	if (rc)
		vb_limit_give(&a->n_mr);
	return rc;
}

static struct vb_roster_row core_mr_row_of(const struct vb_mr *mr, uint32_t key)
{
	return (struct vb_roster_row){
		.kind = ROSTER_MR,
		.number = key,
		.pd = mr->pd->row,
		.size = mr->length,
		.iova = mr->iova,
	};
}

/* Give a new region its first key and a row in the roster. */
static void begin_region(struct vb_mr *mr)
{
	uint32_t key = vb_mr_next_key(mr->pd->adapter, mr);
	struct vb_roster_row row = core_mr_row_of(mr, key);

	mr->row = vb_roster_add(&mr->pd->adapter->roster, &row);
	vb_mr_open(mr, key);
}

int vb_mr_register(struct vb_pd *pd, void *base, uint64_t length, uint64_t iova,
		   uint32_t access, struct vb_mr **out)
{
	int rc = check_register(base, length, iova, access);
	struct vb_mr *mr;

	if (rc == 0)
		rc = take_region(pd, &mr);
	if (rc)
		return rc;
	core_fill(mr, pd, base, length, iova, access);
	begin_region(mr);
	*out = mr;
	return 0;
}

void vb_mr_become(struct vb_mr *mr, enum vb_mr_kind kind)
{
	struct vb_adapter *a = mr->pd->adapter;

	vb_mutex_lock(&a->mr_lock);
	mr->kind = kind;
	vb_mutex_unlock(&a->mr_lock);
}

int vb_mr_register_null(struct vb_pd *pd, struct vb_mr **out)
{
	struct vb_mr *mr;
	int rc = take_region(pd, &mr);

	if (rc)
		return rc;
	core_fill(mr, pd, NULL, UINT64_MAX, 0, ACCESS_LOCAL_WRITE);
	vb_mr_become(mr, MR_NULL);
	begin_region(mr);
	*out = mr;
	return 0;
}

uint32_t vb_mr_shut(struct vb_mr *mr)
{
	uint32_t key = atomic_exchange(&mr->key, 0);

	if (key)
		withdraw(mr, key);
	return key;
}

bool vb_mr_is_drained(const struct vb_mr *mr, uint32_t key, struct vb_age *age)
{
	struct vb_adapter *a = mr->pd->adapter;

	return atomic_load(&mr->users) == 0 &&
	       (!a->key_ops || a->key_ops->is_drained(a, key, age));
}

void vb_mr_await(const struct vb_mr *mr, uint32_t key)
{
	struct vb_adapter *a = mr->pd->adapter;

	if (key && a->key_ops)
		a->key_ops->await(a, key);
	vb_mr_await_users(mr);
}

void vb_mr_await_users(const struct vb_mr *mr)
{
	/* An access is a copy and takes no lock, so it ends soon. */
	for (unsigned turn = 0; atomic_load(&mr->users); turn++) {
		if (turn < 100)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
}

/* Revoke the key and wait until accesses have ended. -EBUSY: a window is bound.
 * A thread that binds a window counts as an access to the region, so no window
 * is bound after the wait. */
static int close_region(struct vb_mr *mr)
{
	uint32_t key = atomic_load(&mr->key);

	if (atomic_load(&mr->windows))
		return -EBUSY;
	vb_mr_await(mr, vb_mr_shut(mr));
	if (VB_LIKELY(atomic_load(&mr->windows) == 0))
		return 0;
	/* a thread has bound a window meanwhile, so the key becomes valid
	 * again */
	vb_mr_open(mr, key);
	return -EBUSY;
}

void vb_mr_give(struct vb_mr *mr)
{
	struct vb_pd *pd = mr->pd;

	push_free(pd->adapter, mr);
	vb_pd_put(pd);
}

int vb_mr_deregister(struct vb_mr *mr)
{
	struct vb_adapter *a = mr->pd->adapter;
	int rc = close_region(mr);

	if (rc)
		return rc;
	if (mr->kind != MR_REGION)
		vb_mr_become(mr, MR_REGION);
	vb_roster_del(&a->roster, ROSTER_MR, mr->row);
	vb_mr_give(mr);
	vb_limit_give(&a->n_mr);
	return 0;
}

static void move_to_pd(struct vb_mr *mr, struct vb_pd *pd)
{
	vb_pd_get(pd);
	vb_pd_put(mr->pd);
	mr->pd = pd;
}

int vb_mr_change(struct vb_mr *mr, const struct vb_mr_change *to)
{
	void *base = to->place ? to->base : mr->base;
	uint64_t length = to->place ? to->length : mr->length;
	uint64_t iova = to->place ? to->iova : mr->iova;
	uint32_t access = to->rights ? to->access : mr->access;
	uint32_t key = atomic_load(&mr->key);
	struct vb_roster_row row;
	int rc = check_register(base, length, iova, access);

	if (rc == 0)
		rc = close_region(mr);
	if (rc)
		return rc;
	if (to->pd)
		move_to_pd(mr, to->pd);
	core_fill(mr, mr->pd, base, length, iova, access);
	row = core_mr_row_of(mr, key);
	vb_roster_set(&mr->pd->adapter->roster, mr->row, &row);
	vb_mr_open(mr, key);
	return 0;
}
