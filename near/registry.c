/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of keys and queue pairs: one program writes it, its peers read
 * it. */
#include "near/registry.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "base/shm.h"

/* Tries to read an entry; a write lasts only nanoseconds. */
#define READ_TRIES 1000

static int init_alive(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return -rc;
	rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (rc == 0)
		rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (rc == 0)
		rc = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return -rc;
}

int vb_registry_create(unsigned slot, struct vb_registry **out, int *out_fd)
{
	struct vb_registry *reg;
	void *at;
	int fd, rc = vb_shm_create("verbena-registry", sizeof(*reg), &fd, &at);

	if (rc)
		return rc;
	reg = at;
	rc = init_alive(&reg->alive);
	if (rc) {
		vb_registry_destroy(reg, fd);
		return rc;
	}
	reg->version = VB_NEAR_VERSION;
	reg->is_exact = vb_permit_is_exact();
	reg->slot = slot;
	reg->nonce = (uint64_t)vb_rand32() << 32 | vb_rand32();
	reg->nonce_at = (uintptr_t)&reg->nonce;
	atomic_store(&reg->asleep, 1);
	*out = reg;
	*out_fd = fd;
	return 0;
}

void vb_registry_destroy(struct vb_registry *reg, int fd)
{
	vb_shm_unmap(reg, sizeof(*reg));
	close(fd);
}

void vb_registry_live(struct vb_registry *reg)
{
	if (pthread_mutex_lock(&reg->alive) != 0)
		vb_log(LOG_INFO,
		       "near: cannot lock a robust mutex: peers use packets");
}

void vb_registry_die(struct vb_registry *reg)
{
	pthread_mutex_unlock(&reg->alive);
}

int vb_registry_map(int fd, unsigned slot, const struct vb_registry **out)
{
	const struct vb_registry *reg;
	void *at;
	int rc = vb_shm_map(fd, sizeof(*reg), false, &at);

	if (rc)
		return rc;
	reg = at;
	if (reg->version != VB_NEAR_VERSION || reg->slot != slot) {
		vb_registry_unmap(reg);
		return -EPROTO;
	}
	*out = reg;
	return 0;
}

void vb_registry_unmap(const struct vb_registry *reg)
{
	vb_shm_unmap((void *)reg, sizeof(*reg));
}

struct vb_registry_proof vb_registry_proof(const struct vb_registry *reg,
					   pid_t owner)
{
	return (struct vb_registry_proof){ .nonce = reg->nonce,
					   .nonce_at = reg->nonce_at,
					   .owner = owner };
}

bool vb_registry_is_open(const struct vb_registry_proof *proof)
{
	uint64_t seen = 0;
	struct iovec here = { &seen, sizeof(seen) };
	struct iovec there = { (void *)(uintptr_t)proof->nonce_at,
			       sizeof(seen) };

	return process_vm_readv(proof->owner, &here, 1, &there, 1, 0) ==
		       (ssize_t)sizeof(seen) &&
	       seen == proof->nonce;
}

/*
 * Returns the word that shows whether the owner lives. The first word of a
 * mutex is a futex that contains the holder's thread number. When the holder of
 * a robust mutex ends, the kernel sets FUTEX_OWNER_DIED in it. No thread ever
 * waits for this mutex.
 */
static const _Atomic uint32_t *word_of_life(const struct vb_registry *reg)
{
	return (const _Atomic uint32_t *)&reg->alive;
}

static bool is_life(uint32_t holder)
{
	return holder & FUTEX_TID_MASK && !(holder & FUTEX_OWNER_DIED);
}

bool vb_registry_is_alive(const struct vb_registry *reg)
{
	return is_life(
		atomic_load_explicit(word_of_life(reg), memory_order_relaxed));
}

/* Let the permit lapse when the owner ends; if the owner has ended already, the
 * permit never holds. */
static void permit_while_alive(const struct vb_registry *reg,
			       struct vb_permit *permit)
{
	uint32_t holder =
		atomic_load_explicit(word_of_life(reg), memory_order_relaxed);

	permit->word[2] = word_of_life(reg);
	permit->is[2] = is_life(holder) ? holder : ~holder;
}

/*
 * Writing and reading an entry. An entry has one writer at a time: the thread
 * that holds the region or the queue pair.
 */

static void near_begin_write(_Atomic uint32_t *seq)
{
	atomic_fetch_add_explicit(seq, 1, memory_order_relaxed);
	/* Release: the odd number is visible before the writes that follow. */
	atomic_thread_fence(memory_order_release);
}

static void end_write(_Atomic uint32_t *seq)
{
	/* Sequentially consistent: if the caller looks at the hazards
	 * afterwards and finds none of a peer, that peer sees this change. */
	atomic_fetch_add(seq, 1);
}

static void near_put(_Atomic uint32_t *at, uint32_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void put_long(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static uint32_t near_get(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static uint64_t get_long(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static bool is_unchanged(const _Atomic uint32_t *seq, uint32_t before)
{
	/* Acquire: the entry was read before seq is read again. */
	atomic_thread_fence(memory_order_acquire);
	return near_get(seq) == before;
}

static void show_adapter(struct vb_registry *reg, const struct vb_adapter *a)
{
	/* Write this only once, because peers read its cache line at each
	 * access. */
	if (near_get(&reg->adapters[a->number].key_inv) == a->key_inv)
		return;
	near_put(&reg->adapters[a->number].key_mask, a->key_mask);
	near_put(&reg->adapters[a->number].key_inv, a->key_inv);
}

void vb_registry_grant(struct vb_registry *reg, const struct vb_adapter *a,
		       const struct vb_grant *g)
{
	struct vb_registry_key *k;

	if (a->number >= VB_REGISTRY_ADAPTERS || g->index >= VB_REGISTRY_KEYS)
		return;
	k = &reg->keys[a->number][g->index];
	show_adapter(reg, a);
	near_begin_write(&k->seq);
	near_put(&k->key, g->key);
	near_put(&k->pd, g->pd);
	near_put(&k->access, g->access);
	near_put(&k->qpn, g->qpn);
	put_long(&k->base, g->base);
	put_long(&k->iova, g->iova);
	put_long(&k->length, g->length);
	end_write(&k->seq);
}

void vb_registry_revoke(struct vb_registry *reg, const struct vb_adapter *a,
			uint32_t index)
{
	struct vb_registry_key *k;

	if (a->number >= VB_REGISTRY_ADAPTERS || index >= VB_REGISTRY_KEYS)
		return;
	k = &reg->keys[a->number][index];
	near_begin_write(&k->seq);
	near_put(&k->key, 0);
	end_write(&k->seq);
}

static bool copy_key(const struct vb_registry_key *k, struct vb_grant *g,
		     struct vb_permit *permit)
{
	for (unsigned i = 0; i < READ_TRIES; i++) {
		/* Sequentially consistent: this comes after the hazard was set.
		 */
		uint32_t seq = atomic_load(&k->seq);

		g->key = near_get(&k->key);
		g->pd = near_get(&k->pd);
		g->access = near_get(&k->access);
		g->qpn = near_get(&k->qpn);
		g->base = get_long(&k->base);
		g->iova = get_long(&k->iova);
		g->length = get_long(&k->length);
		permit->is[0] = permit->is[1] = seq;
		if (seq % 2 == 0 && is_unchanged(&k->seq, seq))
			return true;
	}
	return false;
}

bool vb_registry_open(const struct vb_registry *reg,
		      const struct vb_remote_side *remote, struct vb_grant *g,
		      struct vb_permit *permit)
{
	const struct vb_registry_key *k;
	uint32_t index;

	if (remote->adapter >= VB_REGISTRY_ADAPTERS || remote->key == 0)
		return false;
	index = vb_registry_index(reg, remote->adapter, remote->key);
	if (index >= VB_REGISTRY_KEYS)
		return false;
	k = &reg->keys[remote->adapter][index];
	if (!copy_key(k, g, permit))
		return false;
	permit->word[0] = permit->word[1] = &k->seq;
	permit_while_alive(reg, permit);
	if (remote->view) {
		permit->word[1] =
			&reg->qps[remote->view->qpn % VB_REGISTRY_QPS].seq;
		permit->is[1] = remote->view->seq;
	}
	return g->key == remote->key && g->pd == remote->pd &&
	       (g->access & remote->need) == remote->need &&
	       (g->qpn == 0 ||
		g->qpn % VB_REGISTRY_QPS == remote->qpn % VB_REGISTRY_QPS);
}

static void near_put_gid(_Atomic uint64_t at[2], const struct vb_gid *gid)
{
	uint64_t halves[2];

	memcpy(halves, gid->raw, sizeof(halves));
	put_long(&at[0], halves[0]);
	put_long(&at[1], halves[1]);
}

void vb_registry_show(struct vb_registry *reg, const struct vb_qp *qp,
		      const struct vb_registry_name *name)
{
	struct vb_registry_qp *e = &reg->qps[qp->index % VB_REGISTRY_QPS];
	unsigned adapter = qp->adapter->number;

	if (adapter >= VB_REGISTRY_ADAPTERS)
		return;
	near_begin_write(&e->seq);
	show_adapter(reg, qp->adapter);
	near_put(&e->qpn, name->number);
	near_put(&e->life, name->life);
	near_put(&e->dest_qpn, name->dest);
	near_put(&e->access, qp->attr.access_flags);
	near_put(&e->pd, qp->pd->id);
	near_put(&e->adapter,
		 qp->pd->origin.is_imported ? VB_REGISTRY_NO_ADAPTER : adapter);
	near_put(&e->rq_psn, qp->attr.rq_psn);
	near_put(&e->reads, qp->attr.max_dest_rd_atomic);
	near_put(&e->rtr, atomic_load_explicit(
				  &qp->state, memory_order_relaxed) == QPS_RTR);
	near_put(&e->pkey, vb_port_pkey(vb_qp_port(qp), qp->attr.pkey_index));
	put_long(&e->place, vb_qp_port(qp)->place);
	near_put(&e->v1, qp->route.v1);
	near_put_gid(e->sgid, &qp->route.sgid);
	near_put_gid(e->dgid, &qp->route.dgid);
	end_write(&e->seq);
}

void vb_registry_hide(struct vb_registry *reg, uint32_t index)
{
	struct vb_registry_qp *e = &reg->qps[index % VB_REGISTRY_QPS];

	near_begin_write(&e->seq);
	near_put(&e->qpn, 0);
	end_write(&e->seq);
}

bool vb_registry_view(const struct vb_registry *reg, uint32_t qpn,
		      struct vb_registry_view *v)
{
	const struct vb_registry_qp *e = &reg->qps[qpn % VB_REGISTRY_QPS];

	for (unsigned i = 0; i < READ_TRIES; i++) {
		v->seq = atomic_load(&e->seq);
		v->qpn = near_get(&e->qpn);
		v->life = near_get(&e->life);
		v->dest_qpn = near_get(&e->dest_qpn);
		v->access = near_get(&e->access);
		v->pd = near_get(&e->pd);
		v->adapter = near_get(&e->adapter);
		v->rq_psn = near_get(&e->rq_psn);
		v->reads = near_get(&e->reads);
		v->rtr = near_get(&e->rtr);
		v->pkey = near_get(&e->pkey);
		v->place = get_long(&e->place);
		v->v1 = near_get(&e->v1);
		for (unsigned half = 0; half < 2; half++) {
			v->sgid[half] = get_long(&e->sgid[half]);
			v->dgid[half] = get_long(&e->dgid[half]);
		}
		if (v->seq % 2 == 0 && is_unchanged(&e->seq, v->seq))
			return v->qpn == qpn;
	}
	return false;
}
