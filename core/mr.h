/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and their keys: the only place that permits or refuses an
 * access. Nothing is pinned; pages may come and go (base/guard.h).
 *
 * A key is a scrambled table index in bits 31:8 and a random variant in bits
 * 7:0, so that a stale or guessed key opens nothing. lkey and rkey are equal.
 */
#ifndef CORE_MR_H
#define CORE_MR_H

#include "base/age.h"
#include "base/chain.h"
#include "core/adapter.h"
#include "core/types.h"

struct vb_qp;

enum vb_mr_kind {
	MR_REGION,
	/* the null region: covers every address and has no memory; reads give
	 * 0, and written bytes are dropped */
	MR_NULL,
	MR_WINDOW_1, /* memory window of type 1 */
	/* memory window of type 2B: only the queue pair that bound it may use
	 * it */
	MR_WINDOW_2,
};

/* A region, or a memory window onto a part of one (core/mw.h). The object is
 * recycled, but never freed while its adapter lives, so a peer's access may
 * look at it without a lock. The fields that an access needs share the first
 * cache line: with a million regions each further line is a cache miss. */
struct vb_mr {
	/* the region's key; 0: the region is not registered, or the window is
	 * not bound */
	_Atomic uint32_t key;
	/* number of accesses in progress; a deregistration waits until it is
	 * 0 */
	_Atomic uint32_t users;
	/* number of windows that are bound to this region now */
	_Atomic uint32_t windows;
	/* Written under adapter->mr_lock, while the entry has no key. */
	enum vb_mr_kind kind;
	/* The fields below do not change while key is not 0. */
	struct vb_pd *pd;
	uint8_t *base; /* the address in this process that @iova stands for */
	uint64_t iova;
	uint64_t length;
	uint32_t access; /* rights that the key permits, enum vb_access */
	/* the only queue pair that may use the key; 0: any queue pair */
	uint32_t qpn;
	/* Of a window, protected by adapter->mr_lock: the region that it is
	 * bound to, or NULL; its link in vb_qp.windows; how long accesses by
	 * its revoked key have been in progress; and that key, or 0 if no
	 * access by it can be in progress. */
	_Alignas(64) struct vb_mr *region;
	struct vb_chain link;
	struct vb_age closed_for;
	uint32_t closing;
	/* The fields below never change after the object was made, except as
	 * noted. */
	uint32_t index;	 /* index of this entry in adapter->mrs */
	uint32_t row;	 /* number of a region's row in the roster */
	uint8_t variant; /* the latest key's bits 7:0 */
	/* What each registration of the entry adds to @variant; odd, so that
	 * 256 registrations have 256 different keys. */
	uint8_t step;
	/* the next entry of the free list; protected by adapter->mr_lock */
	struct vb_mr *next_free;
};
_Static_assert(sizeof(struct vb_mr) == 128, "two lines");

/* The rights of a key. An implementation of struct vb_key_ops keeps copies of
 * grants, for other processes of this host that copy data directly. A key
 * without a grant, or with a revoked one, permits them nothing. */
struct vb_grant {
	uint32_t key;
	/* index of the key's entry in adapter->mrs; only one key at a time has
	 * it */
	uint32_t index;
	uint32_t pd; /* id of the protection domain (vb_pd.id) */
	uint32_t access;
	/* the only queue pair that may use the key; 0: any of the domain */
	uint32_t qpn;
	/* @base: the address of @iova in the process that registered the
	 * region */
	uint64_t base, iova, length;
};

/* The access that a caller wants: @len bytes at @iova through @key, with the
 * rights @need. */
struct vb_mr_range {
	/* @need: the rights that the access needs, enum vb_access */
	uint32_t key, need;
	uint64_t iova, len;
};

struct vb_key_ops {
	void (*grant)(struct vb_adapter *a, const struct vb_grant *g);
	/* Revokes the grant of @key: after the return no access by @key begins
	 * in another process. */
	void (*revoke)(struct vb_adapter *a, uint32_t index, uint32_t key);
	/* Has every access by @key, which was revoked, ended in other
	 * processes? @age is how long the caller has been asking: the caller
	 * sets it to zero when it revokes the key, and each call of this
	 * function advances it. Never waits. */
	bool (*is_drained)(struct vb_adapter *a, uint32_t key,
			   struct vb_age *age);
	/* Waits until other processes have ended every access by @key. The
	 * caller holds no lock. */
	void (*await)(struct vb_adapter *a, uint32_t key);
	/* Does the process to which @qp is connected still access memory by
	 * @key through @qp? @key was revoked; an honest peer that invalidates
	 * it does not. If so, that process loses the right to access this
	 * one's memory. The caller holds qp->drive. Never waits. */
	bool (*lies)(struct vb_qp *qp, uint32_t key);
	/* Looks up @key in the process from which @pd was imported. False: @key
	 * permits nothing there. */
	bool (*find)(const struct vb_pd *pd, uint32_t key, struct vb_grant *g);
	/* Copies r->len bytes between @bytes and memory of the process from
	 * which @pd was imported; @put: to that process. @bytes NULL: this
	 * function only checks whether the access is permitted. */
	enum vb_fault (*reach)(const struct vb_pd *pd,
			       const struct vb_mr_range *r, void *bytes,
			       bool put);
};

/* Returns the table index that @key names in the adapter with this key_mask and
 * key_inv. The entry at that index may be unused. */
static inline uint32_t vb_key_index(uint32_t key_mask, uint32_t key_inv,
				    uint32_t key)
{
	return ((key >> 8 ^ key_mask) * key_inv) & 0xffffff;
}

/*
 * Register @length bytes at @base, which peers address as @iova. The region may
 * be empty; with ACCESS_ON_DEMAND it may be the whole address space (@base
 * NULL, @length UINT64_MAX, @iova 0). 0, or -EINVAL: unknown access bits,
 * remote write or atomic without local write (IBA 11.2.8.2), the range wraps
 * around or is longer than max_mr_size; -ENOSPC: max_mr regions are registered;
 * -ENOMEM. Takes mr_lock.
 */
VB_MUST_CHECK int vb_mr_register(struct vb_pd *pd, void *base, uint64_t length,
				 uint64_t iova, uint32_t access,
				 struct vb_mr **mr)
	VB_EXCLUDES(pd->adapter->mr_lock);

/* Register a region of kind MR_NULL. Errors as of vb_mr_register(). Takes
 * mr_lock. */
VB_MUST_CHECK int vb_mr_register_null(struct vb_pd *pd, struct vb_mr **mr)
	VB_EXCLUDES(pd->adapter->mr_lock);

/* Returns the region of domain @pd that has @key, or NULL. The caller makes
 * sure that no thread deregisters the region meanwhile. */
struct vb_mr *vb_mr_of(const struct vb_pd *pd, uint32_t key);

/* Does @key name a region of kind MR_NULL in @pd? */
bool vb_mr_is_null(const struct vb_pd *pd, uint32_t key);

/* Deregister a region. When this returns 0, no access to its memory is in
 * progress and none begins. -EBUSY: a window is bound to it. Waits for accesses
 * to end; the caller holds no lock. */
VB_MUST_CHECK int vb_mr_deregister(struct vb_mr *mr)
	VB_EXCLUDES(mr->pd->adapter->mr_lock);

/* The changes that vb_mr_change() makes to a region (ibv_rereg_mr); the key
 * stays. */
struct vb_mr_change {
	bool place, rights;
	/* the new protection domain; NULL: the present one stays */
	struct vb_pd *pd;
	/* @base, @length, @iova: the new address range; valid if `place` is
	 * set */
	void *base;
	uint64_t length, iova;
	uint32_t access; /* the new rights; valid if `rights` is set */
};
/* Deregister and register in one step; on an error nothing changes. -EBUSY, or
 * an error of vb_mr_register(). */
VB_MUST_CHECK int vb_mr_change(struct vb_mr *mr, const struct vb_mr_change *to)
	VB_EXCLUDES(mr->pd->adapter->mr_lock);

#define VB_MR_NULL_BYTES (1u << 20)

/* An access in progress. Deregistration waits for it, so the caller keeps it
 * short: between begin and end it takes no lock and waits for no packet. */
struct vb_mr_use {
	struct vb_mr *mr;
	uint8_t *at;
};

/*
 * Begin an access: may @pd touch @len bytes at @iova through @key with all the
 * rights @need (0: local read)? @qpn is the queue pair of a remote access.
 * FAULT_NONE: @use is filled in, and the caller calls vb_mr_end() after the
 * copy. Otherwise FAULT_RKEY.
 *
 * An access of 0 bytes is always permitted and the key is not looked at (IBA
 * 9.7.4.1.1); use->mr is NULL then. The address given for a region of kind
 * MR_NULL is good for VB_MR_NULL_BYTES bytes.
 */
enum vb_fault vb_mr_begin(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need, struct vb_mr_use *use);
/* End the use of @mr that vb_mr_begin() or vb_mr_hold() began. */
static inline void vb_mr_drop(struct vb_mr *mr)
{
	/* Release: the access has ended before deregistration sees the
	 * count. */
	atomic_fetch_sub_explicit(&mr->users, 1, memory_order_release);
}

/* End the access @use, so that a deregistration of the region may return. */
static inline void vb_mr_end(struct vb_mr_use *use)
{
	if (use->mr)
		vb_mr_drop(use->mr);
	use->mr = NULL;
}

/*
 * Begin the next of several accesses, most of which use one key. Before the
 * first call the caller zeroes @use, and passes @use unchanged to each later
 * call. Between two calls @use may still hold the region of another key, so the
 * caller must not wait for a deregistration. After the last access the caller
 * calls vb_mr_end(), whatever this function returned. False: the access is not
 * permitted; no reason is logged. @len is not 0.
 */
bool vb_mr_begin_next(const struct vb_adapter *a, const struct vb_pd *pd,
		      uint32_t qpn, uint32_t key, uint64_t iova, uint64_t len,
		      uint32_t need, struct vb_mr_use *use);

/* Make an access by a key that vb_mr_begin() refused, if @pd was imported from
 * another process: the kernel copies the bytes, so no operation is atomic.
 * FAULT_RKEY: the access is not permitted, or @pd was not imported.
 * vb_mr_find_imported() fills in what @key permits in that process; it returns
 * false if @key permits nothing. */
enum vb_fault vb_mr_reach(const struct vb_pd *pd, const struct vb_mr_range *r,
			  void *bytes, bool put);
bool vb_mr_find_imported(const struct vb_pd *pd, uint32_t key,
			 struct vb_grant *g);

/* Check an access without making it. FAULT_NONE or FAULT_RKEY. */
enum vb_fault vb_mr_check(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need);

/* The reason why an access was refused, for an iWARP responder that tells the
 * peer. REFUSED_NOT: the access has become permitted meanwhile. */
enum vb_refusal {
	REFUSED_NOT,
	REFUSED_KEY, /* no region or window has the key */
	REFUSED_DOMAIN, /* the key belongs to another protection domain */
	/* the key is a window that another queue pair bound, or is used as an
	 * lkey */
	REFUSED_WINDOW,
	REFUSED_BOUNDS,
	REFUSED_RIGHTS,
};
enum vb_refusal vb_mr_refusal(struct vb_adapter *a, const struct vb_pd *pd,
			      uint32_t qpn, uint32_t key, uint64_t iova,
			      uint64_t len, uint32_t need);

/* Find out why an access by queue pair @qpn (0: by this program, with an lkey)
 * is refused, and write that for a reader to @text, of @room bytes. */
enum vb_refusal vb_mr_explain(const struct vb_pd *pd, uint32_t qpn,
			      const struct vb_mr_range *range, char *text,
			      size_t room);

/* Write the names of access flags to @text, as "LOCAL_WRITE, REMOTE_READ". */
#define VB_ACCESS_TEXT 120
const char *vb_access_text(uint32_t access, char text[VB_ACCESS_TEXT]);

/* Bring the pages of @range into memory before they are read, or with @write
 * before they are written (ibv_advise_mr). @touch false: only check. -EINVAL: a
 * window; -ENOENT: no on-demand region has that key; -EPERM: another domain's
 * region, or not writable; -EFAULT: outside the region, or not mapped. */
VB_MUST_CHECK int vb_mr_prefetch(const struct vb_pd *pd,
				 const struct vb_sge *range, bool write,
				 bool touch);

/* Copy @len bytes into, or out of, the memory that @rkey opens at @iova.
 * FAULT_NONE; FAULT_RKEY: not permitted; FAULT_REMOTE_MEMORY: a page is
 * missing. */
enum vb_fault vb_mr_write(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t rkey, uint64_t iova,
			  const void *src, uint32_t len);
enum vb_fault vb_mr_read(struct vb_adapter *a, const struct vb_pd *pd,
			 uint32_t qpn, uint32_t rkey, uint64_t iova, void *dst,
			 uint32_t len);
/* Store 8 bytes as one word (ATOMIC WRITE). @va is 8-byte aligned in this
 * process, else FAULT_ALIGNMENT. */
enum vb_fault vb_mr_store64(struct vb_adapter *a, const struct vb_pd *pd,
			    uint32_t qpn, uint32_t rkey, uint64_t va,
			    const void *bytes);
/* Compare-and-swap (@swap) or fetch-and-add on the 8-byte word at @va (IBA
 * 9.4.5), atomic against the processors of this host. *@old receives the value
 * before, in host order. FAULT_ALIGNMENT: the word is not 8-byte aligned in
 * this process. */
enum vb_fault vb_mr_atomic(struct vb_adapter *a, const struct vb_pd *pd,
			   uint32_t qpn, uint32_t rkey, uint64_t va, bool swap,
			   uint64_t swap_add, uint64_t compare, uint64_t *old);

#endif
