/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and their keys: the one place that says yes or no to an
 * access. Nothing is pinned; pages may come and go (base/guard.h).
 *
 * A key is a scrambled table index in bits 31:8 and a random variant in 7:0,
 * so that a stale or guessed key does not hit. lkey and rkey are equal.
 */
#ifndef CORE_MR_H
#define CORE_MR_H

#include "base/chain.h"
#include "core/adapter.h"
#include "core/types.h"

enum vb_mr_kind {
	MR_REGION,
	MR_NULL,     /* every address, no memory: reads 0, forgets writes */
	MR_WINDOW_1, /* of type 1: any queue pair of its PD */
	MR_WINDOW_2, /* of type 2B: the queue pair that bound it */
};

/*
 * A region, or a window onto part of one (core/mw.h). Type-stable: recycled,
 * never freed while its adapter lives. What an access looks at is in the first
 * cache line: among a million regions none of it is near.
 */
struct vb_mr {
	_Atomic uint32_t key;	/* 0: not registered now; a window: not bound */
	_Atomic uint32_t users; /* accesses under way; dereg waits for 0 */
	_Atomic uint32_t windows; /* a region: bound to it now */
	/* adapter->mr_lock to become, or no longer to be, a window */
	enum vb_mr_kind kind;
	/* immutable while there is a key */
	struct vb_pd *pd;
	uint8_t *base; /* where iova begins in this process */
	uint64_t iova;
	uint64_t length;
	uint32_t access; /* enum vb_access */
	uint32_t qpn;	 /* only through this queue pair; 0: any */
	/* a window's, adapter->mr_lock: what it is on, NULL: not bound; its
	 * place in vb_qp.windows; the key that was taken away while it may
	 * still be in use, 0: none, and when */
	_Alignas(64) struct vb_mr *region;
	struct vb_chain link;
	uint32_t closing;
	vb_time closed_at;
	/* for the object's life */
	uint32_t index;		 /* in adapter->mrs */
	uint32_t row;		 /* a region's in the roster */
	uint8_t variant;	 /* of the last key */
	uint8_t step;		 /* odd: the variant's, at each registration */
	struct vb_mr *next_free; /* adapter->mr_lock */
};
_Static_assert(sizeof(struct vb_mr) == 128, "two lines");

/*
 * What a key opens, for those who keep a copy of the table that others read
 * (another process that places directly, say). A key that is not granted, or
 * was revoked, opens nothing there.
 */
struct vb_grant {
	uint32_t key;
	uint32_t index; /* in adapter->mrs: one key at a time has it */
	uint32_t pd;	/* vb_pd.id */
	uint32_t access;
	uint32_t qpn; /* only through this queue pair; 0: any of the domain */
	uint64_t base, iova, length; /* base: address in this process */
};

/* What an access asks of a key. */
struct vb_mr_range {
	uint32_t key, need; /* enum vb_access */
	uint64_t iova, len;
};

struct vb_key_ops {
	void (*grant)(struct vb_adapter *a, const struct vb_grant *g);
	/* No access through it begins there from now on. */
	void (*revoke)(struct vb_adapter *a, uint32_t index, uint32_t key);
	/* Is none under way any more, @age after that? Does not wait. */
	bool (*is_quiet)(struct vb_adapter *a, uint32_t key, vb_time age);
	/* Returns when none is. No lock is held. */
	void (*await)(struct vb_adapter *a, uint32_t key);
	/* What a key opens in the process that made the domain @pd, which is
	 * far. False: nothing. */
	bool (*find)(const struct vb_pd *pd, uint32_t key, struct vb_grant *g);
	/* Copy @len of @bytes there, @put, or from there; NULL: only ask. */
	enum vb_fault (*reach)(const struct vb_pd *pd,
			       const struct vb_mr_range *r, void *bytes,
			       bool put);
};

/* The index that a key names in the table of the adapter with this key_mask and
 * key_inv; there may be nothing. */
static inline uint32_t vb_key_index(uint32_t key_mask, uint32_t key_inv,
				    uint32_t key)
{
	return ((key >> 8 ^ key_mask) * key_inv) & 0xffffff;
}

/*
 * Register @length bytes at @base, addressed by peers as @iova. A region may
 * be empty; or, on demand, the whole address space: from NULL, UINT64_MAX
 * bytes, @iova 0. -EINVAL: unknown access bits, remote write or atomic without
 * local write, or the range wraps or passes max_mr_size. -ENOSPC/-ENOMEM.
 */
VB_MUST_CHECK int vb_mr_register(struct vb_pd *pd, void *base, uint64_t length,
				 uint64_t iova, uint32_t access,
				 struct vb_mr **mr);

/* The same for a region of MR_NULL. */
VB_MUST_CHECK int vb_mr_register_null(struct vb_pd *pd, struct vb_mr **mr);

/* The region that has @key, when it is of @pd; or NULL. For who knows that it
 * is not deregistered meanwhile. */
struct vb_mr *vb_mr_of(const struct vb_pd *pd, uint32_t key);

/* Is it the key of a region of MR_NULL? */
bool vb_mr_is_null(const struct vb_pd *pd, uint32_t key);

/* After the return nobody touches the memory. -EBUSY: a window is bound. */
VB_MUST_CHECK int vb_mr_deregister(struct vb_mr *mr);

/* What a region is to become; the key stays. */
struct vb_mr_change {
	bool place, rights;
	struct vb_pd *pd; /* NULL: as it is */
	void *base;	  /* place */
	uint64_t length, iova;
	uint32_t access; /* rights */
};
/* As deregister and register at once; nothing changes when it fails. -EBUSY,
 * or what vb_mr_register() says. */
VB_MUST_CHECK int vb_mr_change(struct vb_mr *mr, const struct vb_mr_change *to);

#define VB_MR_NULL_BYTES (1u << 20)

/* An access under way. Short: no lock waits inside, no packet is awaited. */
struct vb_mr_use {
	struct vb_mr *mr;
	uint8_t *at;
};

/*
 * May @pd touch @len bytes at @iova through @key, with all of the rights
 * @need (0: local read)? An access of 0 bytes checks nothing and is allowed
 * (IBA 9.7.4.1.1: R_Key is not checked), with use->mr NULL. @qpn: of the
 * queue pair that a remote access comes by.
 * FAULT_NONE and @use filled: end it with vb_mr_end(). Else FAULT_RKEY.
 * What a region of MR_NULL gives is good for VB_MR_NULL_BYTES, no more.
 */
enum vb_fault vb_mr_begin(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need, struct vb_mr_use *use);
void vb_mr_end(struct vb_mr_use *use);

/*
 * The same for a run of accesses, which mostly go by one key: @use is what the
 * last call left, or zeros, and may hold another key's region, so that nothing
 * in between may wait for one to go. False: not allowed, and nobody is told.
 * To be ended either way. @len is not 0.
 */
bool vb_mr_begin_next(const struct vb_adapter *a, const struct vb_pd *pd,
		      uint32_t qpn, uint32_t key, uint64_t iova, uint64_t len,
		      uint32_t need, struct vb_mr_use *use);

/*
 * A key of a domain that is far, which vb_mr_begin() did not know: copied
 * through the kernel. FAULT_RKEY also where the domain is not far. For what
 * needs whole words there is no such way.
 */
enum vb_fault vb_mr_reach(const struct vb_pd *pd, const struct vb_mr_range *r,
			  void *bytes, bool put);
bool vb_mr_find_far(const struct vb_pd *pd, uint32_t key, struct vb_grant *g);

/* Only the answer. */
enum vb_fault vb_mr_check(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t key, uint64_t iova,
			  uint64_t len, uint32_t need);

/* Why not, for who must tell the peer; REFUSED_NOT when it would be allowed
 * by now. */
enum vb_refusal {
	REFUSED_NOT,
	REFUSED_KEY,	/* there is no such key */
	REFUSED_DOMAIN, /* of another protection domain, or queue pair */
	REFUSED_BOUNDS,
	REFUSED_RIGHTS,
};
enum vb_refusal vb_mr_refusal(struct vb_adapter *a, const struct vb_pd *pd,
			      uint32_t qpn, uint32_t key, uint64_t iova,
			      uint64_t len, uint32_t need);

/*
 * Bring the pages into memory, as if they were to be read, or written. What
 * ibv_advise_mr() says: -EINVAL a window; -ENOENT no region on demand has that
 * key; -EPERM another domain's, or it is not writable; -EFAULT outside the
 * region, or not mapped. @touch: false does no more than to check that.
 */
VB_MUST_CHECK int vb_mr_prefetch(const struct vb_pd *pd,
				 const struct vb_sge *range, bool write,
				 bool touch);

/* begin + guarded copy + end. FAULT_RKEY or FAULT_REMOTE_MEMORY. */
enum vb_fault vb_mr_write(struct vb_adapter *a, const struct vb_pd *pd,
			  uint32_t qpn, uint32_t rkey, uint64_t iova,
			  const void *src, uint32_t len);
enum vb_fault vb_mr_read(struct vb_adapter *a, const struct vb_pd *pd,
			 uint32_t qpn, uint32_t rkey, uint64_t iova, void *dst,
			 uint32_t len);
/* A word, whole: FAULT_ALIGNMENT as below. @bytes: as they are in memory. */
enum vb_fault vb_mr_store64(struct vb_adapter *a, const struct vb_pd *pd,
			    uint32_t qpn, uint32_t rkey, uint64_t va,
			    const void *bytes);
/* @swap: compare-and-swap; else add. @va 8-byte aligned in our memory, else
 * FAULT_ALIGNMENT. *@old gets the value before, host order. */
enum vb_fault vb_mr_atomic(struct vb_adapter *a, const struct vb_pd *pd,
			   uint32_t qpn, uint32_t rkey, uint64_t va, bool swap,
			   uint64_t swap_add, uint64_t compare, uint64_t *old);

#endif
