/* SPDX-License-Identifier: BSD-2-Clause */
/* Accesses through a memory key: the check, and the copy, of one piece or of a
 * scatter/gather list. The life of a region is in core/mr.c. */
#include "core/mr.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "core/mr_priv.h"
#include "core/sge.h"

#define REMOTE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

struct vb_mr *vb_mr_find(const struct vb_adapter *a, uint32_t key)
{
	return vb_rows_get(a->mrs, vb_key_index(a->key_mask, a->key_inv, key));
}

/* vb_mr_hold() increments the users and then reads the key; vb_mr_shut() clears
 * the key and then reads the users. All four accesses are sequentially
 * consistent, so of two threads that race at least one sees the other's store.
 * Acquire and release would not suffice, since each thread stores one variable
 * and then loads the other. */
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

/* Are all @len bytes at @iova in the region? No sum can overflow, since for an
 * address below mr->iova the difference is huge. */
static bool core_mr_is_inside(const struct vb_mr *mr, uint64_t iova,
			      uint64_t len)
{
	uint64_t offset = iova - mr->iova;

	return offset <= mr->length && len <= mr->length - offset;
}

/* Is the entry of a kind that permits this access? A window permits only remote
 * accesses, and a window that one queue pair has bound permits only accesses by
 * that queue pair. */
static bool may_come_by(const struct vb_mr *mr, uint32_t need, uint32_t qpn)
{
	return mr->kind <= MR_NULL ||
	       ((need & REMOTE) && (mr->qpn == 0 || mr->qpn == qpn));
}

/* Reads of a null region return `zeros`. Writes to it go to `drain`, which is
 * never read. Pages that no thread has touched use no memory. */
static uint8_t zeros[VB_MR_NULL_BYTES], drain[VB_MR_NULL_BYTES];

/* Returns the address of @iova in this process. Computed as an integer, because
 * a region of the whole address space begins at NULL. */
static uint8_t *at_iova(const struct vb_mr *mr, uint64_t iova, uint32_t need)
{
	if (VB_UNLIKELY(mr->kind == MR_NULL))
		return need & ACCESS_LOCAL_WRITE ? drain : zeros;
	return (uint8_t *)((uintptr_t)mr->base + (iova - mr->iova));
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
	/* an access of 0 bytes needs no key check (IBA 9.7.4.1.1) */
	if (len == 0)
		return FAULT_NONE;
	mr = vb_mr_hold(a, key);
	if (VB_LIKELY(mr && opens(mr, pd, qpn, iova, len, need))) {
		*use = (struct vb_mr_use){ mr, at_iova(mr, iova, need) };
		return FAULT_NONE;
	}
	if (mr)
		vb_mr_drop(mr);
	return FAULT_RKEY;
}

/* @use keeps the region's fields valid, but not its key: after a revocation,
 * later accesses of the run must be refused, so each access compares the key
 * again. Key 0 names no region. */
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

	if (VB_LIKELY(!pd->origin.is_imported) || !ops)
		return FAULT_RKEY;
	return ops->reach(pd, r, bytes, put);
}

bool vb_mr_find_imported(const struct vb_pd *pd, uint32_t key,
			 struct vb_grant *g)
{
	const struct vb_key_ops *ops = pd->adapter->key_ops;

	return pd->origin.is_imported && ops && ops->find(pd, key, g);
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
	if (mr->pd != pd)
		return REFUSED_DOMAIN;
	if (!may_come_by(mr, need, qpn))
		return REFUSED_WINDOW;
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

const char *vb_access_text(uint32_t access, char text[VB_ACCESS_TEXT])
{
	static const char *const names[] = { "LOCAL_WRITE", "REMOTE_WRITE",
					     "REMOTE_READ", "REMOTE_ATOMIC",
					     "MW_BIND" };
	size_t used = 0;

	snprintf(text, VB_ACCESS_TEXT, "none");
	for (unsigned i = 0; i < VB_COUNT(names); i++)
		if (access & 1u << i)
			used += (size_t)snprintf(
				text + used, VB_ACCESS_TEXT - used, "%s%s",
				used ? ", " : "", names[i]);
	return text;
}

/* Write to @text in which way the range @r lies outside the region @mr. */
static void put_bounds(const struct vb_mr *mr, const struct vb_mr_range *r,
		       const char *key, char *text, size_t room)
{
	uint64_t offset = r->iova - mr->iova;
	unsigned long long bytes = mr->length, at = mr->iova;

	if (offset <= mr->length)
		snprintf(text, room,
			 "%llu bytes at 0x%llx end %llu bytes past the region "
			 "of %llu bytes at 0x%llx (%s 0x%x)",
			 (unsigned long long)r->len,
			 (unsigned long long)r->iova,
			 (unsigned long long)(offset + r->len - mr->length),
			 bytes, at, key, r->key);
	else
		snprintf(text, room,
			 "%llu bytes at 0x%llx lie outside the region of %llu "
			 "bytes at 0x%llx (%s 0x%x)",
			 (unsigned long long)r->len,
			 (unsigned long long)r->iova, bytes, at, key, r->key);
}

static void put_reason(const struct vb_mr *mr, enum vb_refusal why,
		       const struct vb_mr_range *r, bool local, char *text,
		       size_t room)
{
	const char *key = local ? "lkey" : "rkey";
	char need[VB_ACCESS_TEXT], has[VB_ACCESS_TEXT];

	switch (why) {
	case REFUSED_NOT:
		snprintf(text, room, "%s 0x%x permits it", key, r->key);
		break;
	case REFUSED_KEY:
		snprintf(text, room, "no region has %s 0x%x", key, r->key);
		break;
	case REFUSED_DOMAIN:
		snprintf(text, room, "%s 0x%x is of another protection domain",
			 key, r->key);
		break;
	case REFUSED_WINDOW:
		snprintf(text, room, "%s 0x%x is a memory window that %s", key,
			 r->key,
			 local ? "is for remote access only"
			       : "another queue pair bound");
		break;
	case REFUSED_BOUNDS:
		put_bounds(mr, r, key, text, room);
		break;
	case REFUSED_RIGHTS:
		snprintf(text, room,
			 "%s 0x%x permits %s, but %s is needed", key, r->key,
			 vb_access_text(mr->access, has),
			 vb_access_text(r->need, need));
		break;
	}
}

enum vb_refusal vb_mr_explain(const struct vb_pd *pd, uint32_t qpn,
			      const struct vb_mr_range *r, char *text,
			      size_t room)
{
	struct vb_mr *mr = vb_mr_hold(pd->adapter, r->key);
	enum vb_refusal why = REFUSED_KEY;

	if (mr)
		why = classify(mr, pd, qpn, r->iova, r->len, r->need);
	put_reason(mr, why, r, qpn == 0, text, room);
	if (mr)
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
	/* the address may be misaligned; the function then returns before it
	 * uses @at */
	uint64_t *at = (uint64_t *)use.at;
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

/* Bring the pages into memory with MADV_POPULATE_READ or _WRITE (Linux 5.14).
 * An older kernel brings each page in when it is first used. */
static int populate(uint8_t *at, uint64_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)at & ~(page - 1);
	size_t bytes = (uintptr_t)at + len - first;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (madvise((void *)first, bytes, advice) == 0)
		return 0;
	/* The kernel reports EINVAL if it is too old for this advice, or if the
	 * pages do not permit the access: a call for 0 bytes tells the two
	 * apart. */
	if (errno == EINVAL)
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

/*
 * Scatter/gather lists (core/sge.h).
 */

/* A contiguous part of a scatter/gather list, with its address and key. */
struct piece {
	uint64_t addr;
	uint32_t len, lkey;
};

/* The position of a walk through a scatter/gather list: an entry and an offset
 * in it. */
struct walk {
	const struct vb_sge *at;
	unsigned left;	 /* number of entries from @at on; 0: @at may be NULL */
	uint64_t offset; /* offset of the position in the entry @at, in bytes */
};

/* Find the next piece of the list, of at most @most bytes. False: the list has
 * ended. */
static bool next_piece(struct walk *w, uint32_t most, struct piece *p)
{
	while (w->left && w->offset >= w->at->length) {
		w->offset -= w->at->length;
		w->at++;
		w->left--;
	}
	if (!w->left)
		return false;
	p->addr = w->at->addr + w->offset;
	p->lkey = w->at->lkey;
	p->len = (uint32_t)VB_MIN(most, w->at->length - w->offset);
	w->offset += p->len;
	return true;
}

/* Are all the bytes of the access in the first entry of the list? */
static bool is_one_piece(const struct vb_sge *sge, unsigned count,
			 uint64_t offset, uint32_t len)
{
	return count && len && offset <= sge->length &&
	       len <= sge->length - offset;
}

static enum vb_fault begin_piece(struct vb_pd *pd, const struct piece *p,
				 uint32_t need, struct vb_mr_use *use)
{
	return vb_mr_begin(pd->adapter, pd, 0, p->lkey, p->addr, p->len, need,
			   use) == FAULT_NONE
		       ? FAULT_NONE
		       : FAULT_LKEY;
}

/* Access memory of the process that made the imported domain @pd, if the key is
 * known only there. */
static enum vb_fault reach_piece(const struct vb_pd *pd, const struct piece *p,
				 uint32_t need, void *bytes, bool put)
{
	const struct vb_mr_range r = { p->lkey, need, p->addr, p->len };

	switch (vb_mr_reach(pd, &r, bytes, put)) {
	case FAULT_NONE:
		return FAULT_NONE;
	case FAULT_RKEY:
		return FAULT_LKEY;
	default:
		return FAULT_LOCAL_MEMORY;
	}
}

static enum vb_fault gather_piece(struct vb_pd *pd, const struct piece *p,
				  void *dst)
{
	struct vb_mr_use use;
	size_t missing;

	if (begin_piece(pd, p, 0, &use))
		return reach_piece(pd, p, 0, dst, false);
	missing = vb_guard_copy(dst, use.at, p->len);
	vb_mr_end(&use);
	return missing ? FAULT_LOCAL_MEMORY : FAULT_NONE;
}

static enum vb_fault place_piece(struct vb_pd *pd, const struct piece *p,
				 const void *src)
{
	struct vb_mr_use use;
	size_t missing;

	if (begin_piece(pd, p, ACCESS_LOCAL_WRITE, &use))
		return reach_piece(pd, p, ACCESS_LOCAL_WRITE, (void *)src,
				   true);
	missing = vb_guard_copy(use.at, src, p->len);
	vb_mr_end(&use);
	return missing ? FAULT_LOCAL_MEMORY : FAULT_NONE;
}

enum vb_fault vb_sge_gather(struct vb_pd *pd, const struct vb_sge *sge,
			    unsigned count, uint64_t offset, void *dst,
			    uint32_t len)
{
	struct walk w = { sge, count, offset };
	enum vb_fault fault = FAULT_NONE;
	uint8_t *to = dst;
	struct piece p;

	if (VB_LIKELY(is_one_piece(sge, count, offset, len))) {
		p = (struct piece){ sge->addr + offset, len, sge->lkey };
		return gather_piece(pd, &p, dst);
	}
	for (; len && !fault; len -= p.len, to += p.len) {
		if (!next_piece(&w, len, &p))
			/* the list is shorter than the total that the caller
			 * assumed */
			return FAULT_LKEY;
		fault = gather_piece(pd, &p, to);
	}
	return fault;
}

enum vb_fault vb_sge_place(struct vb_pd *pd, const struct vb_sge *sge,
			   unsigned count, uint64_t offset, const void *src,
			   uint32_t len)
{
	struct walk w = { sge, count, offset };
	enum vb_fault fault = FAULT_NONE;
	const uint8_t *from = src;
	struct piece p;

	if (VB_LIKELY(is_one_piece(sge, count, offset, len))) {
		p = (struct piece){ sge->addr + offset, len, sge->lkey };
		return place_piece(pd, &p, src);
	}
	for (; len && !fault; len -= p.len, from += p.len) {
		if (!next_piece(&w, len, &p))
			/* the list is shorter than the total that the caller
			 * assumed */
			return FAULT_LKEY;
		fault = place_piece(pd, &p, from);
	}
	return fault;
}

bool vb_sge_is_allowed(const struct vb_pd *pd, const struct vb_sge *sge,
		       unsigned count, uint32_t need)
{
	for (unsigned i = 0; i < count; i++)
		if (sge[i].length &&
		    vb_mr_check(pd->adapter, pd, 0, sge[i].lkey, sge[i].addr,
				sge[i].length, need) != FAULT_NONE)
			return false;
	return true;
}

uint64_t vb_sge_total(const struct vb_sge *sge, unsigned count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < count; i++)
		total += sge[i].length;
	return total;
}
