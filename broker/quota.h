/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of the broker one user may have, so that none can take it from all
 * others. Root, and the user whose broker it is, are trusted: they have no
 * quota, and what is left at last is theirs.
 */
#ifndef BROKER_QUOTA_H
#define BROKER_QUOTA_H

#include <sys/types.h>

#include "base/defs.h"

enum vb_quota {
	VB_QUOTA_SESSIONS,
	VB_QUOTA_SLOTS,
	VB_QUOTA_IDS,	/* of rdma_cm: listeners, connections, requests */
	VB_QUOTA_PORTS, /* of rdma_cm, bound */
	VB_QUOTA_BYTES, /* that wait for programs which do not read */
	VB_QUOTAS
};

struct vb_user;

struct vb_users {
	struct vb_user *first;
};

/* One reference more to the user, who is new, perhaps. NULL: no memory. */
VB_MUST_CHECK struct vb_user *vb_user_enter(struct vb_users *all, uid_t uid,
					    bool trusted);
void vb_user_leave(struct vb_user *u);

/* False: the user would have more than the quota. */
bool vb_user_may_have(const struct vb_user *u, enum vb_quota what,
		      size_t amount);
/* False, and nothing is taken: the same. */
VB_MUST_CHECK bool vb_user_take(struct vb_user *u, enum vb_quota what,
				size_t amount);
/* The user has it already, quota or not. */
void vb_user_count(struct vb_user *u, enum vb_quota what, size_t amount);
void vb_user_give(struct vb_user *u, enum vb_quota what, size_t amount);
size_t vb_user_has(const struct vb_user *u, enum vb_quota what);
/* May the user have one of the @left ones that nobody has? */
bool vb_user_may_have_last(const struct vb_user *u, enum vb_quota what,
			   size_t left);

/* A sentence that says so, as long as @size allows. */
void vb_user_word_quota(const struct vb_user *u, enum vb_quota what, char *text,
			size_t size);
void vb_user_word_reserve(enum vb_quota what, char *text, size_t size);

#endif
