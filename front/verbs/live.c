/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of objects that exist. A program may pass an object that it has
 * destroyed, a wrong pointer, or an object whose handle it has overwritten.
 * With a hardware adapter the kernel looks the handle up and returns ENOENT.
 * Here the calls that create, change and destroy objects look up the object's
 * address before they read anything there. Posting and polling do not, for
 * speed.
 */
#include "front/verbs/front.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

#define SHARDS	  32
#define FIRST_FEW 16 /* number of buckets that a shard has at first */

struct shard {
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_chain **buckets; /* the buckets; NULL: they are in few[] */
	size_t mask;		   /* the number of buckets, minus 1 */
	size_t count;		   /* number of objects in the shard */
	struct vb_chain *few[FIRST_FEW];
};
static struct shard shards[SHARDS] = {
	[0 ... SHARDS - 1] = { .mask = FIRST_FEW - 1 },
};

static const char *const names[] = {
	[FRONT_CONTEXT] = "context",	 [FRONT_PD] = "protection domain",
	[FRONT_TD] = "thread domain",	 [FRONT_MR] = "memory region",
	[FRONT_MW] = "memory window",	 [FRONT_DM] = "device memory",
	[FRONT_AH] = "address handle",	 [FRONT_CHANNEL] = "completion channel",
	[FRONT_CQ] = "completion queue", [FRONT_SRQ] = "shared receive queue",
	[FRONT_XRCD] = "XRC domain",	 [FRONT_QP] = "queue pair",
	[FRONT_WQ] = "work queue",	 [FRONT_TABLE] = "table of work queues",
	[FRONT_FLOW] = "flow",		 [FRONT_COUNTERS] = "set of counters",
};

/* Lock all shards for a fork(), so that the child's copy of the set is not one
 * that another thread of the parent has half changed. */
static void lock_all(void) VB_UNCHECKED
{
	for (unsigned i = 0; i < SHARDS; i++)
		vb_mutex_lock_next(&shards[i].lock);
}

static void unlock_all(void) VB_UNCHECKED
{
	for (unsigned i = 0; i < SHARDS; i++)
		vb_mutex_unlock(&shards[i].lock);
}

/* Register the fork handlers. Libraries on top of this one (librdmacm) register
 * theirs later, so theirs run first: fork() locks the locks of librdmacm before
 * the shards. A thread that holds a lock of librdmacm and waits for a shard has
 * this order as well; the other order could deadlock. */
static void __attribute__((constructor)) live_watch_forks(void)
{
	pthread_atfork(lock_all, unlock_all, unlock_all);
}

static uint64_t hash_of(const void *object)
{
	/* Fibonacci hashing: the upper bits are well distributed. */
	return ((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u;
}

static struct shard *shard_of(const void *object)
{
	return &shards[hash_of(object) >> 59];
}
_Static_assert(SHARDS == 1u << (64 - 59), "5 bits of the hash choose a shard");

static struct vb_chain **front_live_bucket_of(struct shard *s,
					      const void *object)
	VB_REQUIRES(s->lock)
{
	size_t nth = (size_t)(hash_of(object) >> 24) & s->mask;

	return s->buckets ? &s->buckets[nth] : &s->few[nth];
}

static struct vb_front_live *live_at(struct vb_chain *c)
{
	return VB_CONTAINER_OF(c, struct vb_front_live, chain);
}

/* Double the number of buckets. If there is no memory, the shard stays as it is
 * and is only slower. */
static void grow(struct shard *s) VB_REQUIRES(s->lock)
{
	struct vb_chain **old = s->buckets ? s->buckets : s->few, *c;
	size_t was = s->mask + 1;
	struct vb_chain **buckets = calloc(2 * was, sizeof(*buckets));

	if (!buckets)
		return;
	s->buckets = buckets;
	s->mask = 2 * was - 1;
	for (size_t i = 0; i < was; i++) {
		while ((c = old[i])) {
			vb_chain_del(c);
			vb_chain_add(
				front_live_bucket_of(s, live_at(c)->object), c);
		}
	}
	if (old != s->few)
		free(old);
}

void vb_front_live_add(struct vb_front_live *l, enum vb_front_kind kind,
		       const void *object, const uint32_t *handle)
{
	struct shard *s = shard_of(object);

	l->object = object;
	l->kind = kind;
	l->shown = handle;
	l->handle = handle ? *handle : 0;
	l->claim = 0;
	vb_mutex_lock(&s->lock);
	if (s->count++ > s->mask)
		grow(s);
	vb_chain_add(front_live_bucket_of(s, object), &l->chain);
	vb_mutex_unlock(&s->lock);
}

void vb_front_live_del(struct vb_front_live *l)
{
	struct shard *s = shard_of(l->object);

	vb_mutex_lock(&s->lock);
	vb_chain_del(&l->chain);
	s->count--;
	vb_mutex_unlock(&s->lock);
}

static int judge(struct shard *s, enum vb_front_kind kind, const void *object,
		 struct vb_front_live **found) VB_REQUIRES(s->lock)
{
	struct vb_chain *c = *front_live_bucket_of(s, object);
	struct vb_front_live *l;

	while (c && live_at(c)->object != object)
		c = c->next;
	if (!c)
		return -ENOENT;
	*found = l = live_at(c);
	if (l->kind != kind)
		return -EINVAL;
	return l->shown && *l->shown != l->handle ? -ENOENT : 0;
}

static void tell_unknown(enum vb_front_kind kind, const void *object)
{
	if (!object)
		vb_why(WHY_HANDLE, (uintptr_t)names[kind],
		       "NULL was given in place of a %s", names[kind]);
	else
		vb_why(WHY_HANDLE, (uintptr_t)object,
		       "%p is no %s of this process, or was destroyed, or its handle was overwritten",
		       object, names[kind]);
}

int vb_front_live(enum vb_front_kind kind, const void *object)
{
	struct shard *s = shard_of(object);
	struct vb_front_live *l;
	int rc;

	vb_mutex_lock(&s->lock);
	rc = judge(s, kind, object, &l);
	vb_mutex_unlock(&s->lock);
	if (VB_UNLIKELY(rc))
		tell_unknown(kind, object);
	return rc;
}

/* Returns the value by which threads of this process claim an object. Another
 * value in a claim was copied by fork: the thread that made that claim exists
 * only in the parent. */
static unsigned own_claim(void)
{
	return vb_engine_forks() + 1;
}

int vb_front_live_claim(enum vb_front_kind kind, const void *object)
{
	struct shard *s = shard_of(object);
	struct vb_front_live *l;
	int rc;

	vb_mutex_lock(&s->lock);
	rc = judge(s, kind, object, &l);
	if (rc == 0 && l->claim == own_claim())
		rc = -ENOENT;
	if (rc == 0)
		l->claim = own_claim();
	vb_mutex_unlock(&s->lock);
	if (VB_UNLIKELY(rc))
		tell_unknown(kind, object);
	return rc;
}

void vb_front_live_keep(struct vb_front_live *l)
{
	struct shard *s = shard_of(l->object);

	vb_mutex_lock(&s->lock);
	l->claim = 0;
	vb_mutex_unlock(&s->lock);
}

/* Unlike an address, a handle is not reused, so handles are simply counted. */
uint32_t vb_front_handle(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add(&last, 1) + 1;
}
