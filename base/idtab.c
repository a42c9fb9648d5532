/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of two levels: a root of pointers to leaves, and leaves, which
 * vb_idtab_add() allocates when it first assigns one of their indices, and
 * which stay while the table lives. So a reader needs two loads and no lock.
 * Free indices form a queue that is linked through the leaves.
 */
#include "base/idtab.h"

#include "base/sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEAF_BITS  10
#define LEAF_SLOTS (1u << LEAF_BITS)
#define LEAF_MASK  (LEAF_SLOTS - 1)
#define MAX_COUNT  (1u << 24)
#define NO_INDEX   UINT32_MAX

struct leaf {
	_Atomic(void *) obj[LEAF_SLOTS];
	/* links of the queue of free indices; guarded by the table's lock */
	uint32_t next_free[LEAF_SLOTS];
};

struct vb_idtab {
	/* The fields below do not change after vb_idtab_create(). */
	uint32_t count, first;
	struct vb_mutex lock;
	/* The fields below are guarded by lock. */
	uint32_t fresh; /* number of indices that were ever assigned */
	uint32_t oldest_free, newest_free;
	/* The fields below are atomic, so readers need no lock. */
	atomic_uint used;
	_Atomic(struct leaf *) root[];
};

static uint32_t leaves(uint32_t count)
{
	return (count + LEAF_MASK) >> LEAF_BITS;
}

struct vb_idtab *vb_idtab_create(uint32_t count, uint32_t first)
{
	struct vb_idtab *t;

	if (count == 0 || count > MAX_COUNT)
		return NULL;
	t = calloc(1, sizeof(*t) + leaves(count) * sizeof(t->root[0]));
	if (!t)
		return NULL;
	vb_mutex_init(&t->lock, VB_RANK_LEAF);
	t->count = count;
	t->first = first % count;
	t->oldest_free = NO_INDEX;
	t->newest_free = NO_INDEX;
	return t;
}

void vb_idtab_destroy(struct vb_idtab *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < leaves(t->count); i++)
		free(atomic_load_explicit(&t->root[i], memory_order_relaxed));
	vb_mutex_fini(&t->lock);
	free(t);
}

/* Acquire: pairs with the release by which add published the leaf. */
static struct leaf *leaf_of(const struct vb_idtab *t, uint32_t index)
{
	return atomic_load_explicit(&t->root[index >> LEAF_BITS],
				    memory_order_acquire);
}

static int pick_fresh(struct vb_idtab *t, uint32_t *index)
{
	uint32_t i = (t->first + t->fresh) % t->count;

	if (!leaf_of(t, i)) {
		struct leaf *leaf = calloc(1, sizeof(*leaf));

		if (!leaf)
			return -ENOMEM;
		/* Release: a thread that sees the leaf must find its slots
		 * empty. */
		atomic_store_explicit(&t->root[i >> LEAF_BITS], leaf,
				      memory_order_release);
	}
	t->fresh++;
	*index = i;
	return 0;
}

static int pick_freed(struct vb_idtab *t, uint32_t *index)
{
	uint32_t i = t->oldest_free;

	if (i == NO_INDEX)
		return -ENOSPC;
	t->oldest_free = leaf_of(t, i)->next_free[i & LEAF_MASK];
	if (t->oldest_free == NO_INDEX)
		t->newest_free = NO_INDEX;
	*index = i;
	return 0;
}

static void queue_freed(struct vb_idtab *t, uint32_t index)
{
	uint32_t last = t->newest_free;

	leaf_of(t, index)->next_free[index & LEAF_MASK] = NO_INDEX;
	if (last == NO_INDEX)
		t->oldest_free = index;
	else
		leaf_of(t, last)->next_free[last & LEAF_MASK] = index;
	t->newest_free = index;
}

int vb_idtab_add(struct vb_idtab *t, void *obj, uint32_t *index)
{
	uint32_t i;
	int err;

	vb_mutex_lock(&t->lock);
	err = t->fresh < t->count ? pick_fresh(t, &i) : pick_freed(t, &i);
	if (!err) {
		/* Set *@index before the store below, since a reader can use
		 * the index at once. */
		*index = i;
		/* Release: a thread that finds @obj must see the initialized
		 * object. */
		atomic_store_explicit(&leaf_of(t, i)->obj[i & LEAF_MASK], obj,
				      memory_order_release);
		atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
	}
	vb_mutex_unlock(&t->lock);
	return err;
}

void *vb_idtab_get(const struct vb_idtab *t, uint32_t index)
{
	struct leaf *leaf;

	if (index >= t->count)
		return NULL;
	leaf = leaf_of(t, index);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf->obj[index & LEAF_MASK],
				    memory_order_acquire);
}

void vb_idtab_del(struct vb_idtab *t, uint32_t index)
{
	vb_mutex_lock(&t->lock);
	if (vb_idtab_get(t, index)) {
		atomic_store_explicit(
			&leaf_of(t, index)->obj[index & LEAF_MASK], NULL,
			memory_order_release);
		queue_freed(t, index);
		atomic_fetch_sub_explicit(&t->used, 1, memory_order_relaxed);
	}
	vb_mutex_unlock(&t->lock);
}

uint32_t vb_idtab_used(const struct vb_idtab *t)
{
	return atomic_load_explicit(&t->used, memory_order_relaxed);
}
