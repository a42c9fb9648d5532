/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of the table of keys, as core/mr.c, core/mr_access.c and core/mw.c
 * use them. */
#ifndef CORE_MR_PRIV_H
#define CORE_MR_PRIV_H

#include "core/mr.h"

/* Allocate an entry without a key, and take a reference to @pd. 0 or -errno. */
VB_MUST_CHECK int vb_mr_take(struct vb_pd *pd, struct vb_mr **mr)
	VB_EXCLUDES(pd->adapter->mr_lock);
/* Put an entry that has no key on the free list, and drop its reference to its
 * protection domain. Takes mr_lock. */
void vb_mr_give(struct vb_mr *mr) VB_EXCLUDES(mr->pd->adapter->mr_lock);
/* Change the kind of an entry that has no key. Takes mr_lock. */
void vb_mr_become(struct vb_mr *mr, enum vb_mr_kind kind)
	VB_EXCLUDES(mr->pd->adapter->mr_lock);
/* Returns the entry at the index that @key names, whatever key the entry has
 * now; NULL: no such entry. */
struct vb_mr *vb_mr_find(const struct vb_adapter *a, uint32_t key);
/* Find the entry whose present key is @key, and increment its number of users:
 * until the caller calls vb_mr_drop(), the entry's fields stay valid and
 * deregistration waits. NULL: no entry has @key. */
struct vb_mr *vb_mr_hold(const struct vb_adapter *a, uint32_t key);
/* Publish @key for the entry @mr, whose fields the caller has filled in. */
void vb_mr_open(struct vb_mr *mr, uint32_t key);
/* Revoke the entry's key: from now on no access by the key begins. Returns the
 * key; 0: the entry had none. */
uint32_t vb_mr_shut(struct vb_mr *mr);
/* Has every access by @key, which was revoked, ended? @age is as is_drained()
 * of struct vb_key_ops says. */
bool vb_mr_is_drained(const struct vb_mr *mr, uint32_t key, struct vb_age *age);
/* Wait until every access by the revoked @key has ended. The caller holds
 * neither mr_lock nor drive. */
void vb_mr_await(const struct vb_mr *mr, uint32_t key)
	VB_EXCLUDES(mr->pd->adapter->mr_lock);
/* Like vb_mr_await(), but wait only for accesses by threads of this process.
 * Each access is a copy that takes no lock, so the caller may hold locks. */
void vb_mr_await_users(const struct vb_mr *mr);
/* Returns a new key for the entry; 255 other keys come before a key is
 * repeated. */
uint32_t vb_mr_next_key(const struct vb_adapter *a, struct vb_mr *mr);

#endif
