/* SPDX-License-Identifier: BSD-2-Clause */
/* What core/mr.c and core/mw.c share: entries of the table of keys. */
#ifndef CORE_MR_PRIV_H
#define CORE_MR_PRIV_H

#include "core/mr.h"

/* An entry without a key, and a reference to @pd for it. -errno. */
VB_MUST_CHECK int vb_mr_take(struct vb_pd *pd, struct vb_mr **mr);
/* It has no key any more. */
void vb_mr_give(struct vb_mr *mr);
/* From a region to something else, without a key, and back. */
void vb_mr_become(struct vb_mr *mr, enum vb_mr_kind kind);
/* The entry that @key names, whatever its state and its key; or NULL. */
struct vb_mr *vb_mr_find(const struct vb_adapter *a, uint32_t key);
/* Count a user of the region or window that has @key now; or NULL. */
struct vb_mr *vb_mr_hold(const struct vb_adapter *a, uint32_t key);
void vb_mr_drop(struct vb_mr *mr);
/* Its fields are filled in: give it a key. */
void vb_mr_open(struct vb_mr *mr, uint32_t key);
/* Take its key away: no access begins through it. Returns that key; 0: it had
 * none. */
uint32_t vb_mr_shut(struct vb_mr *mr);
/* Is no access by @key under way any more, @age after it was taken away? */
bool vb_mr_is_quiet(const struct vb_mr *mr, uint32_t key, vb_time age);
/* Wait for that; mr_lock and drive are not held. */
void vb_mr_await(const struct vb_mr *mr, uint32_t key);
/* The same for accesses by threads of this program alone, which are copies and
 * wait for no lock. */
void vb_mr_await_users(const struct vb_mr *mr);
/* A key that it did not have for long. */
uint32_t vb_mr_next_key(const struct vb_adapter *a, struct vb_mr *mr);

#endif
