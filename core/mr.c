/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: keys, the one check of an access, and the access itself. */
#include "core/mr.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/rand.h"
#include "core/mr_priv.h"

/*
 * Regions that must lie unused before one of them is used again. A region's
 * key comes back after 256 lives of it, so a program that registers and
 * deregisters one buffer all the time meets a key again after 2^18 others.
 */
#define REST_COUNT 1024

/* Bits 29:20 are the ABI's optional ones: unknown ones mean nothing. */
#define ACCESS_OPTIONAL 0x3ff00000u
#define ACCESS_KNOWN                                                           \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND | ACCESS_ZERO_BASED |           \
	 ACCESS_ON_DEMAND | ACCESS_HUGETLB | ACCESS_OPTIONAL)

#define REMOTE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

/* An index and 24 scrambled bits are one-to-one: the multiplier is odd. The way
 * back is vb_key_index(). */
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
	} while (key == 0); /* means: not registered */
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

/* A new object, with key 0: peers may look at it already. */
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

/* @length bytes from @first go past the last address, 2^64 - 1. */
static bool core_wraps(uint64_t first, uint64_t length)
{
	return length > 0 && first > UINT64_MAX - (length - 1);
}

/* The whole address space, page by page when it is touched. */
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
	/* IBA 11.2.8.2: who lets others change memory may do so himself. */
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
	/* Pairs with vb_mr_hold(): who sees the key sees the fields. */
	atomic_store(&mr->key, key);
	if (mr->kind != MR_NULL) /* which no peer sees */
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

/* A new region's first opening. */
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

struct vb_mr *vb_mr_find(const struct vb_adapter *a, uint32_t key)
{
	return vb_rows_get(a->mrs, vb_key_index(a->key_mask, a->key_inv, key));
}

/*
 * vb_mr_hold() counts itself, then looks at the key; deregister clears the key,
 * then looks at the count. All four are sequentially consistent, so that at
 * least one of two that meet sees the other (a store and a later load of
 * another variable: acquire and release would not be enough).
 */
struct vb_mr *vb_mr_hold(const struct vb_adapter *a, uint32_t key)
{
	struct vb_mr *mr = vb_mr_find(a, key);

	if (!mr || key == 0)
		return NULL;
	atomic_fetch_add(&mr->users, 1);
	if (VB_LIKELY(atomic_load(&mr->key) == key))
		return mr;
	atomic_fetch_sub(&mr->users, 1);
	return NULL;
}

void vb_mr_drop(struct vb_mr *mr)
{
	/* Release: the access is over for deregister's load. */
	atomic_fetch_sub_explicit(&mr->users, 1, memory_order_release);
}

struct vb_mr *vb_mr_of(const struct vb_pd *pd, uint32_t key)
{
	struct vb_mr *mr = vb_mr_hold(pd->adapter, key);
	bool is_its = mr && mr->pd == pd && mr->kind <= MR_NULL;

	if (mr)
		vb_mr_drop(mr);
	return is_its ? mr : NULL;
}

bool vb_mr_is_null(const struct vb_pd *pd, uint32_t key)
{
	struct vb_mr *mr = vb_mr_hold(pd->adapter, key);
	bool is_null = mr && mr->pd == pd && mr->kind == MR_NULL;

	if (mr)
		vb_mr_drop(mr);
	return is_null;
}

uint32_t vb_mr_shut(struct vb_mr *mr)
{
	uint32_t key = atomic_exchange(&mr->key, 0);

	if (key)
		withdraw(mr, key);
	return key;
}

bool vb_mr_is_quiet(const struct vb_mr *mr, uint32_t key, vb_time age)
{
	struct vb_adapter *a = mr->pd->adapter;

	return atomic_load(&mr->users) == 0 &&
	       (!a->key_ops || a->key_ops->is_quiet(a, key, age));
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
	/* An access is a copy, no more: it is over soon. */
	for (unsigned turn = 0; atomic_load(&mr->users); turn++) {
		if (turn < 100)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
}

/* Nobody has it in use, and no window will: binding one holds the region. */
static int close_region(struct vb_mr *mr)
{
	uint32_t key = atomic_load(&mr->key);

	if (atomic_load(&mr->windows))
		return -EBUSY;
	vb_mr_await(mr, vb_mr_shut(mr));
	if (VB_LIKELY(atomic_load(&mr->windows) == 0))
		return 0;
	vb_mr_open(mr, key); /* one was bound meanwhile */
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

/* No sum that could pass 2^64: below iova, the difference is enormous. */
static bool core_mr_is_inside(const struct vb_mr *mr, uint64_t iova,
			      uint64_t len)
{
	uint64_t offset = iova - mr->iova;

	return offset <= mr->length && len <= mr->length - offset;
}

/* A window is for peers, and perhaps those of one queue pair only. */
static bool may_come_by(const struct vb_mr *mr, uint32_t need, uint32_t qpn)
{
	return mr->kind <= MR_NULL ||
	       ((need & REMOTE) && (mr->qpn == 0 || mr->qpn == qpn));
}

/* Where MR_NULL is read, and written. Untouched pages cost nothing; what the
 * second holds is nobody's. */
static uint8_t zeros[VB_MR_NULL_BYTES], drain[VB_MR_NULL_BYTES];

/* In numbers, as a region of the whole address space begins at NULL. */
static uint8_t *at_iova(const struct vb_mr *mr, uint64_t iova, uint32_t need)
{
	if (VB_UNLIKELY(mr->kind == MR_NULL))
		return need & ACCESS_LOCAL_WRITE ? drain : zeros;
	return (uint8_t *)((uintptr_t)mr->base + (iova - mr->iova));
}

/* For people: a key is refused at most once in a queue pair's life. */
static void explain(const struct vb_mr *mr, const struct vb_pd *pd,
		    uint32_t qpn, uint32_t key, uint64_t iova, uint64_t len,
		    uint32_t need)
{
	if (!vb_log_wants(LOG_INFO))
		return;
	if (!mr)
		vb_log(LOG_INFO, "key 0x%x: not registered", key);
	else if (mr->pd != pd)
		vb_log(LOG_INFO, "key 0x%x: of another protection domain", key);
	else if (!may_come_by(mr, need, qpn))
		vb_log(LOG_INFO, "key 0x%x: a window that %s", key,
		       need & REMOTE ? "another queue pair bound"
				     : "is for remote access only");
	else if (!core_mr_is_inside(mr, iova, len))
		vb_log(LOG_INFO,
		       "key 0x%x: %llu bytes at 0x%llx are not inside the "
		       "region of %llu bytes at 0x%llx",
		       key, (unsigned long long)len, (unsigned long long)iova,
		       (unsigned long long)mr->length,
		       (unsigned long long)mr->iova);
	else
		vb_log(LOG_INFO, "key 0x%x: access 0x%x needed, 0x%x granted",
		       key, need, mr->access);
}

static bool opens(const struct vb_mr *mr, const struct vb_pd *pd, uint32_t qpn,
		  uint64_t iova, uint64_t len, uint32_t need)
{
	return mr->pd == pd && core_mr_is_inside(mr, iova, len) &&
	       (mr->access & need) == need && may_come_by(mr, need, qpn);
}

enum vb_fault vb_mr_begin(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need, struct vb_mr_use *use)
{
	struct vb_mr *mr;

	*use = (struct vb_mr_use){ NULL, NULL };
	if (len == 0) /* IBA 9.7.4.1.1 */
		return FAULT_NONE;
	mr = vb_mr_hold(a, key);
	if (VB_LIKELY(mr && opens(mr, pd, qpn, iova, len, need))) {
		*use = (struct vb_mr_use){ mr, at_iova(mr, iova, need) };
		return FAULT_NONE;
	}
	if (!pd->origin.is_far)
		explain(mr, pd, qpn, key, iova, len, need);
	if (mr)
		vb_mr_drop(mr);
	return FAULT_RKEY;
}

void vb_mr_end(struct vb_mr_use *use)
{
	if (use->mr)
		vb_mr_drop(use->mr);
	use->mr = NULL;
}

/* While it is held its fields stay as they are, but its key may be taken away:
 * what comes after that is refused. 0 is the key of none. */
bool vb_mr_begin_next(const struct vb_adapter *a, const struct vb_pd *pd,
		      uint32_t qpn, uint32_t key, uint64_t iova, uint64_t len,
		      uint32_t need, struct vb_mr_use *use)
{
	if (!use->mr || key == 0 ||
	    atomic_load_explicit(&use->mr->key, memory_order_relaxed) != key) {
		vb_mr_end(use);
		use->mr = vb_mr_hold(a, key);
	}
	if (!use->mr || !opens(use->mr, pd, qpn, iova, len, need))
		return false;
	use->at = at_iova(use->mr, iova, need);
	return true;
}

enum vb_fault vb_mr_reach(const struct vb_pd *pd, const struct vb_mr_range *r,
			  void *bytes, bool put)
{
	const struct vb_key_ops *ops = pd->adapter->key_ops;

	if (VB_LIKELY(!pd->origin.is_far) || !ops)
		return FAULT_RKEY;
	return ops->reach(pd, r, bytes, put);
}

bool vb_mr_find_far(const struct vb_pd *pd, uint32_t key, struct vb_grant *g)
{
	const struct vb_key_ops *ops = pd->adapter->key_ops;

	return pd->origin.is_far && ops && ops->find(pd, key, g);
}

enum vb_fault vb_mr_check(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need)
{
	struct vb_mr_use use;
	enum vb_fault fault =
		vb_mr_begin(a, pd, qpn, key, iova, len, need, &use);

	vb_mr_end(&use);
	if (VB_UNLIKELY(fault))
		return vb_mr_reach(
			pd, &(struct vb_mr_range){ key, need, iova, len }, NULL,
			false);
	return fault;
}

static enum vb_refusal classify(const struct vb_mr *mr, const struct vb_pd *pd,
				uint32_t qpn, uint64_t iova, uint64_t len,
				uint32_t need)
{
	if (mr->pd != pd || !may_come_by(mr, need, qpn))
		return REFUSED_DOMAIN;
	if (!core_mr_is_inside(mr, iova, len))
		return REFUSED_BOUNDS;
	return (mr->access & need) == need ? REFUSED_NOT : REFUSED_RIGHTS;
}

enum vb_refusal vb_mr_refusal(struct vb_adapter *a, const struct vb_pd *pd,
			      uint32_t qpn, uint32_t key, uint64_t iova,
			      uint64_t len, uint32_t need)
{
	struct vb_mr *mr = vb_mr_hold(a, key);
	enum vb_refusal why;

	if (!mr)
		return REFUSED_KEY;
	why = classify(mr, pd, qpn, iova, len, need);
	vb_mr_drop(mr);
	return why;
}

enum vb_fault vb_mr_write(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t rkey, uint64_t iova,
			  const void *src, uint32_t len)
{
	struct vb_mr_use use;
	enum vb_fault fault = vb_mr_begin(a, pd, qpn, rkey, iova, len,
					  ACCESS_REMOTE_WRITE, &use);

	if (fault)
		return vb_mr_reach(pd,
				   &(struct vb_mr_range){ rkey,
							  ACCESS_REMOTE_WRITE,
							  iova, len },
				   (void *)src, true);
	if (len && vb_guard_copy(use.at, src, len))
		fault = FAULT_REMOTE_MEMORY;
	vb_mr_end(&use);
	return fault;
}

enum vb_fault vb_mr_read(struct vb_adapter *a, const struct vb_pd *pd,
			 uint32_t qpn, uint32_t rkey, uint64_t iova, void *dst,
			 uint32_t len)
{
	struct vb_mr_use use;
	enum vb_fault fault = vb_mr_begin(a, pd, qpn, rkey, iova, len,
					  ACCESS_REMOTE_READ, &use);

	if (fault)
		return vb_mr_reach(pd,
				   &(struct vb_mr_range){ rkey,
							  ACCESS_REMOTE_READ,
							  iova, len },
				   dst, false);
	if (len && vb_guard_copy(dst, use.at, len))
		fault = FAULT_REMOTE_MEMORY;
	vb_mr_end(&use);
	return fault;
}

enum vb_fault vb_mr_store64(struct vb_adapter *a, const struct vb_pd *pd,
			    uint32_t qpn, uint32_t rkey, uint64_t va,
			    const void *bytes)
{
	struct vb_mr_use use;
	enum vb_fault fault =
		vb_mr_begin(a, pd, qpn, rkey, va, 8, ACCESS_REMOTE_WRITE, &use);

	if (fault)
		return fault;
	if ((uintptr_t)use.at % 8)
		fault = FAULT_ALIGNMENT;
	else if (vb_guard_copy(use.at, bytes, 8))
		fault = FAULT_REMOTE_MEMORY;
	vb_mr_end(&use);
	return fault;
}

enum vb_fault vb_mr_atomic(struct vb_adapter *a, const struct vb_pd *pd,
			   uint32_t qpn, uint32_t rkey, uint64_t va, bool swap,
			   uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	struct vb_mr_use use;
	enum vb_fault fault = vb_mr_begin(a, pd, qpn, rkey, va, 8,
					  ACCESS_REMOTE_ATOMIC, &use);
	uint64_t *at = (uint64_t *)use.at; /* aligned, or not used */
	int rc;

	if (fault)
		return fault;
	if ((uintptr_t)at % 8) {
		vb_mr_end(&use);
		return FAULT_ALIGNMENT;
	}
	rc = swap ? vb_guard_cas64(at, compare, swap_add, old)
		  : vb_guard_add64(at, swap_add, old);
	vb_mr_end(&use);
	return rc ? FAULT_REMOTE_MEMORY : FAULT_NONE;
}

/* Linux 5.14 has this; before it, pages come when they are touched. */
static int populate(uint8_t *at, uint64_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)at & ~(page - 1);
	size_t bytes = (uintptr_t)at + len - first;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (madvise((void *)first, bytes, advice) == 0)
		return 0;
	if (errno == EINVAL) /* an old kernel, or pages without the right */
		return madvise((void *)first, 0, advice) ? 0 : -EFAULT;
	return errno == EFAULT || errno == ENOMEM ? -EFAULT : -errno;
}

static int judge_prefetch(const struct vb_mr *mr, const struct vb_pd *pd,
			  const struct vb_sge *range, bool write)
{
	if (mr->kind == MR_WINDOW_1 || mr->kind == MR_WINDOW_2)
		return -EINVAL;
	if (!(mr->access & ACCESS_ON_DEMAND))
		return -ENOENT;
	if (mr->pd != pd || (write && !(mr->access & ACCESS_LOCAL_WRITE)))
		return -EPERM;
	return core_mr_is_inside(mr, range->addr, range->length) ? 0 : -EFAULT;
}

int vb_mr_prefetch(const struct vb_pd *pd, const struct vb_sge *range,
		   bool write, bool touch)
{
	struct vb_mr *mr = vb_mr_hold(pd->adapter, range->lkey);
	int rc;

	if (!mr)
		return -ENOENT;
	rc = judge_prefetch(mr, pd, range, write);
	if (rc == 0 && touch && range->length)
		rc = populate(at_iova(mr, range->addr, 0), range->length,
			      write);
	vb_mr_drop(mr);
	return rc;
}
