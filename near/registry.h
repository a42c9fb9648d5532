/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program shows to the others of its host: which keys open which
 * memory, and what its queue pairs are. It alone writes; struct vb_mr and
 * struct vb_qp stay what decides for the program itself. Readers copy an
 * entry, and copy again when it changed meanwhile.
 */
#ifndef NEAR_REGISTRY_H
#define NEAR_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/mr.h"
#include "core/qp.h"
#include "near/permit.h"
#include "wire/ipc.h"

#define VB_NEAR_VERSION	     7
#define VB_REGISTRY_ADAPTERS 4 /* more devices than that: packets */
#define VB_REGISTRY_NO_ADAPTER                                                 \
	VB_REGISTRY_ADAPTERS	    /* a queue pair's: packets */
#define VB_REGISTRY_KEYS (9u << 20) /* max_mr and max_mw of vb_limits */
#define VB_REGISTRY_QPS	 (1u << VB_QPN_BITS)

/* What peers read of one key: vb_grant, in atomics. */
struct vb_registry_key {
	_Atomic uint32_t seq; /* odd: it is being written */
	_Atomic uint32_t key; /* 0: none */
	_Atomic uint32_t pd, access, qpn;
	_Atomic uint64_t base, iova, length;
} __attribute__((aligned(64)));

/* And of one queue pair. */
struct vb_registry_qp {
	_Atomic uint32_t seq;
	_Atomic uint32_t qpn;  /* 0: takes no requests now */
	_Atomic uint32_t life; /* differs each time it gets to RTR */
	_Atomic uint32_t dest_qpn, access, pd, adapter, rq_psn, reads, rtr;
	_Atomic uint64_t sgid[2], dgid[2];
} __attribute__((aligned(64)));

struct vb_registry {
	uint32_t version;
	uint32_t slot;
	uint64_t nonce, nonce_at; /* its address in the owner's memory */
	/* Held by the owner's engine thread. When that ends, for whatever
	 * reason, the kernel says so here, and before another process can
	 * have its number or its memory. */
	pthread_mutex_t alive;
	/* Nobody polls: who has something for us rings (near/peer.h). */
	_Atomic uint32_t asleep __attribute__((aligned(64)));
	/* A thread stands by for streams of small messages, on a processor
	 * that nobody else wants. */
	_Atomic uint32_t attends;
	/* No thread of the owner begins a copy after its permit has lapsed,
	 * however long it was stopped: vb_permit_is_exact(). */
	uint32_t is_exact;
	struct {
		_Atomic uint32_t key_mask, key_inv; /* vb_key_index() */
	} adapters[VB_REGISTRY_ADAPTERS] __attribute__((aligned(64)));
	struct vb_registry_qp qps[VB_REGISTRY_QPS]
		__attribute__((aligned(4096)));
	struct vb_registry_key keys[VB_REGISTRY_ADAPTERS][VB_REGISTRY_KEYS];
};

/* A queue pair's number, its peer's, and its life. */
struct vb_registry_name {
	uint32_t number, dest, life;
};

/* A program's own. -errno: peers will talk packets. */
VB_MUST_CHECK int vb_registry_create(unsigned slot, struct vb_registry **reg,
				     int *fd);
void vb_registry_destroy(struct vb_registry *reg, int fd);
/* By the engine's thread. */
void vb_registry_live(struct vb_registry *reg);
void vb_registry_die(struct vb_registry *reg);

/* A peer's, read-only; -EPROTO: of another version, or none. */
VB_MUST_CHECK int vb_registry_map(int fd, unsigned slot,
				  const struct vb_registry **reg);
void vb_registry_unmap(const struct vb_registry *reg);
/* Can we read the owner's memory? */
bool vb_registry_is_open(const struct vb_registry *reg, pid_t owner);
bool vb_registry_is_alive(const struct vb_registry *reg);

void vb_registry_grant(struct vb_registry *reg, const struct vb_adapter *a,
		       const struct vb_grant *g);
/* Only says so: who may be at it still is near/hazard.h's. */
void vb_registry_revoke(struct vb_registry *reg, const struct vb_adapter *a,
			uint32_t index);
/* One that takes no requests has no number there. */
void vb_registry_show(struct vb_registry *reg, const struct vb_qp *qp,
		      const struct vb_registry_name *name);
void vb_registry_hide(struct vb_registry *reg, uint32_t index);

/* A copy of a queue pair's entry, that need not be taken again while its seq
 * stays. */
struct vb_registry_view {
	uint32_t seq, qpn, life, dest_qpn, access, pd, adapter, rq_psn, reads;
	uint32_t rtr;
	uint64_t sgid[2], dgid[2];
};
/* False: not to be had now. */
bool vb_registry_view(const struct vb_registry *reg, uint32_t qpn,
		      struct vb_registry_view *v);
static inline bool vb_registry_is_current(const struct vb_registry *reg,
					  uint32_t qpn,
					  const struct vb_registry_view *v)
{
	/* Acquire: what is done for its sake comes after. */
	return atomic_load_explicit(&reg->qps[qpn & (VB_REGISTRY_QPS - 1)].seq,
				    memory_order_acquire) == v->seq;
}

/* Memory of the owner: by which key, of which domain, by way of which of its
 * queue pairs. */
struct vb_far_side {
	uint32_t adapter, pd, qpn;
	uint32_t key;
	uint64_t iova;
	uint32_t need;			     /* enum vb_access */
	const struct vb_registry_view *view; /* of that queue pair; or NULL */
};

/* By way of the queue pair that @v shows, which is where it is. */
static inline struct vb_far_side
vb_far_side_by(const struct vb_registry_view *v, uint32_t key, uint64_t iova,
	       uint32_t need)
{
	return (struct vb_far_side){ .adapter = v->adapter,
				     .pd = v->pd,
				     .qpn = v->qpn,
				     .key = key,
				     .iova = iova,
				     .need = need,
				     .view = v };
}

/* Does the key open it? Announced before (near/hazard.h), so that the answer
 * holds as long as the permit, and the owner waits for who has begun. */
bool vb_registry_open(const struct vb_registry *reg,
		      const struct vb_far_side *far, struct vb_grant *g,
		      struct vb_permit *permit);

/* They change once, from nothing, before the first queue pair is shown. */
static inline uint32_t vb_registry_index(const struct vb_registry *reg,
					 uint32_t adapter, uint32_t key)
{
	return vb_key_index(
		atomic_load_explicit(&reg->adapters[adapter].key_mask,
				     memory_order_relaxed),
		atomic_load_explicit(&reg->adapters[adapter].key_inv,
				     memory_order_relaxed),
		key);
}

/* The key will be asked for: among a million its entry is nowhere near. */
static inline void vb_registry_expect(const struct vb_registry *reg,
				      uint32_t adapter, uint32_t key)
{
	uint32_t index;

	if (adapter >= VB_REGISTRY_ADAPTERS)
		return;
	index = vb_registry_index(reg, adapter, key);
	if (index < VB_REGISTRY_KEYS)
		__builtin_prefetch(&reg->keys[adapter][index]);
}

/* Are @len bytes at @iova inside? *@at: where they are in the owner's memory.
 * No sum that could pass 2^64: below iova, the difference is enormous. */
static inline bool vb_registry_covers(const struct vb_grant *g, uint64_t iova,
				      uint64_t len, uint64_t *at)
{
	uint64_t offset = iova - g->iova;

	*at = g->base + offset;
	return offset <= g->length && len <= g->length - offset;
}

#endif
