/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry: memory in which a program shows to the other programs of its
 * host which keys open which parts of its memory, and the attributes of its
 * queue pairs. Only its owner writes the registry; peers map it read-only.
 * Peers check their requests against the registry; the owner itself checks
 * struct vb_mr and struct vb_qp. A reader copies an entry, and copies it again
 * if the entry changed meanwhile (a sequence lock).
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

#define VB_NEAR_VERSION 12
/* The most devices in a registry; queue pairs of further devices use
 * packets. */
#define VB_REGISTRY_ADAPTERS 4
/* A value of struct vb_registry_qp.adapter: requests to this queue pair go by
 * packets. */
#define VB_REGISTRY_NO_ADAPTER VB_REGISTRY_ADAPTERS
/* The most keys of one device: max_mr and max_mw of struct vb_limits
 * together. */
#define VB_REGISTRY_KEYS (9u << 20)
#define VB_REGISTRY_QPS	 (1u << VB_QPN_BITS)

/* The entry of one key, for peers: struct vb_grant, in atomics. */
struct vb_registry_key {
	/* sequence number, odd while the owner writes the entry */
	_Atomic uint32_t seq;
	_Atomic uint32_t key; /* the key; 0: the entry is free */
	_Atomic uint32_t pd, access, qpn;
	_Atomic uint64_t base, iova, length;
} __attribute__((aligned(64)));

/* The entry of one queue pair, for peers. */
struct vb_registry_qp {
	_Atomic uint32_t seq;
	/* number of the queue pair; 0: it accepts no requests now */
	_Atomic uint32_t qpn;
	/* a random number, chosen anew each time the queue pair enters RTR */
	_Atomic uint32_t life;
	_Atomic uint32_t dest_qpn, access, pd, adapter, rq_psn, reads, rtr;
	_Atomic uint32_t pkey;	/* the P_Key at its index when it was shown */
	_Atomic uint32_t v1;	/* 1: the connection is one of RoCEv1 */
	_Atomic uint64_t place; /* of its adapter (struct vb_adapter) */
	_Atomic uint64_t sgid[2], dgid[2];
} __attribute__((aligned(64)));

struct vb_registry {
	uint32_t version;
	uint32_t slot;
	uint64_t nonce;
	uint64_t nonce_at; /* the address of @nonce in the owner's memory */
	/* A robust mutex that the owner's engine thread holds as long as the
	 * thread runs. When the thread ends, for whatever reason, the kernel
	 * marks the mutex, before another process can get the owner's number or
	 * memory. */
	pthread_mutex_t alive;
	/* 1: no thread of the owner polls its lanes, so a peer that writes to a
	 * lane has to wake one (vb_peer_ring()). */
	_Atomic uint32_t asleep __attribute__((aligned(64)));
	/* 1: a thread of the owner polls the lanes for streams of small
	 * messages. The thread uses a processor that no other thread wants. */
	_Atomic uint32_t attends;
	/* 1: no thread of the owner begins a copy after its permit has lapsed,
	 * however long the thread was stopped: vb_permit_is_exact(). */
	uint32_t is_exact;
	struct {
		/* arguments of vb_key_index() */
		_Atomic uint32_t key_mask, key_inv;
	} adapters[VB_REGISTRY_ADAPTERS] __attribute__((aligned(64)));
	struct vb_registry_qp qps[VB_REGISTRY_QPS]
		__attribute__((aligned(4096)));
	struct vb_registry_key keys[VB_REGISTRY_ADAPTERS][VB_REGISTRY_KEYS];
};

/* The numbers by which peers call a queue pair and the connected one, and the
 * life of the queue pair (struct vb_near_qp). */
struct vb_registry_name {
	uint32_t number, dest, life;
};

/* Create the registry of this program, which has @slot. The caller owns *@fd
 * and *@reg until vb_registry_destroy(). 0; -errno: there is no registry, and
 * peers will use packets. */
VB_MUST_CHECK int vb_registry_create(unsigned slot, struct vb_registry **reg,
				     int *fd);
void vb_registry_destroy(struct vb_registry *reg, int fd);

/* The engine thread calls these functions when it begins and before it ends. */
void vb_registry_live(struct vb_registry *reg);
void vb_registry_die(struct vb_registry *reg);

/* Map the registry of a peer, which has @slot, read-only. The caller still owns
 * @fd. -EPROTO: the file is not a registry, or is of another version or slot;
 * or another -errno. */
VB_MUST_CHECK int vb_registry_map(int fd, unsigned slot,
				  const struct vb_registry **reg);
/* Unmap the registry that vb_registry_map() mapped. */
void vb_registry_unmap(const struct vb_registry *reg);
/*
 * May this process read the memory of the process @owner, and is @reg the
 * registry of that process? vb_registry_is_open() reads the nonce in that
 * memory, and waits for as long as that process likes: the page may come from
 * its own userfaultfd or file system. So the registry of another process is
 * asked by another thread, which needs only vb_registry_proof().
 */
struct vb_registry_proof {
	uint64_t nonce, nonce_at;
	pid_t owner;
};
struct vb_registry_proof vb_registry_proof(const struct vb_registry *reg,
					   pid_t owner);
bool vb_registry_is_open(const struct vb_registry_proof *proof);
/* Does the engine thread of the registry's owner run? */
bool vb_registry_is_alive(const struct vb_registry *reg);

/* Show the key @g->key to peers. The call does nothing for a device or an index
 * beyond the limits above: peers use packets for these. */
void vb_registry_grant(struct vb_registry *reg, const struct vb_adapter *a,
		       const struct vb_grant *g);
/* Revoke a key: no access by it begins after this. Accesses that have begun may
 * still be under way: near/hazard.h and near/grace.h wait for them. */
void vb_registry_revoke(struct vb_registry *reg, const struct vb_adapter *a,
			uint32_t index);
/* Show @qp with its attributes, route and state to peers; name->number 0: @qp
 * accepts no requests. The caller holds qp->drive. */
void vb_registry_show(struct vb_registry *reg, const struct vb_qp *qp,
		      const struct vb_registry_name *name)
	VB_REQUIRES(qp->drive);
/* Clear the entry of the queue pair with @index: no access through it begins
 * after this, but some may be under way, as in vb_registry_revoke(). */
void vb_registry_hide(struct vb_registry *reg, uint32_t index);

/* A copy of a queue pair's entry, which is current while the entry's seq does
 * not change. */
struct vb_registry_view {
	uint32_t seq, qpn, life, dest_qpn, access, pd, adapter, rq_psn, reads;
	uint32_t rtr, pkey, v1;
	uint64_t place, sgid[2], dgid[2];
};
/* Copy the entry of the queue pair @qpn into *@v. False: there is no such queue
 * pair, or the entry changed during each of 1000 tries. */
bool vb_registry_view(const struct vb_registry *reg, uint32_t qpn,
		      struct vb_registry_view *v);
static inline bool vb_registry_is_current(const struct vb_registry *reg,
					  uint32_t qpn,
					  const struct vb_registry_view *v)
{
	/* Acquire: accesses that depend on this answer come after it. */
	return atomic_load_explicit(&reg->qps[qpn & (VB_REGISTRY_QPS - 1)].seq,
				    memory_order_acquire) == v->seq;
}

/* The owner's memory that one access needs. */
struct vb_remote_side {
	uint32_t adapter, pd, qpn;
	uint32_t key;
	uint64_t iova;
	uint32_t need; /* the rights that the key must grant, enum vb_access */
	/* The entry of the queue pair with number qpn, or NULL. */
	const struct vb_registry_view *view;
};

/* Describe an access to the owner's memory through the queue pair that the view
 * @v shows. */
static inline struct vb_remote_side
vb_remote_side_by(const struct vb_registry_view *v, uint32_t key, uint64_t iova,
		  uint32_t need)
{
	return (struct vb_remote_side){ .adapter = v->adapter,
					.pd = v->pd,
					.qpn = v->qpn,
					.key = key,
					.iova = iova,
					.need = need,
					.view = v };
}

/* Does the key grant the rights remote->need? Then *@g is the grant of the key,
 * and *@permit lapses when the key or the queue pair changes, or the owner
 * ends. The caller has announced the key before (vb_hazard_announce()), so the
 * owner, which revokes first and looks at the hazards afterwards, waits for
 * this access. */
bool vb_registry_open(const struct vb_registry *reg,
		      const struct vb_remote_side *remote, struct vb_grant *g,
		      struct vb_permit *permit);

/* Relaxed: the two words change once, from zero, before the first queue pair of
 * the adapter is shown. */
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

/* The key will be looked up soon: prefetch its entry, which is in no cache when
 * there are a million keys. */
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

/* Are @len bytes at @iova inside the region? Then *@at is their address in the
 * owner's memory. No sum can pass 2^64: with @iova below g->iova the unsigned
 * difference exceeds every length. */
static inline bool vb_registry_covers(const struct vb_grant *g, uint64_t iova,
				      uint64_t len, uint64_t *at)
{
	uint64_t offset = iova - g->iova;

	*at = g->base + offset;
	return offset <= g->length && len <= g->length - offset;
}

#endif
