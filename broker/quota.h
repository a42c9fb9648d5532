/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quota limits how much of the broker's resources the programs of one user
 * hold together, so that one user cannot take them from all others. Root and
 * the broker's own user have no quota, and the broker keeps the last free
 * sessions and slots for these two. A person with several user numbers, such as
 * the subordinate ones of subuid(5), counts as several users: such a person can
 * take all that is not kept for root, but the broker's memory stays bounded.
 */
#ifndef BROKER_QUOTA_H
#define BROKER_QUOTA_H

#include <sys/types.h>

#include "base/defs.h"

enum vb_quota {
	VB_QUOTA_SESSIONS,
	VB_QUOTA_SLOTS,
	VB_QUOTA_IDS,	/* ids of librdmacm: listeners, connections, requests */
	VB_QUOTA_PORTS, /* bound ports of librdmacm */
	/* bytes of messages that wait for programs that do not read */
	VB_QUOTA_BYTES,
	VB_QUOTAS
};

struct vb_user;

struct vb_users {
	struct vb_user *first;
	/* what all users have together, except trusted ones */
	size_t has[VB_QUOTAS];
};

/* Finds or makes the user and returns a reference to it. NULL: no memory. */
VB_MUST_CHECK struct vb_user *vb_user_enter(struct vb_users *all, uid_t uid,
					    bool trusted);
/* Releases a reference; the last one frees the user. */
void vb_user_leave(struct vb_user *u);

/* Returns whether the user can have @amount more within the quota. */
bool vb_user_may_have(const struct vb_user *u, enum vb_quota what,
		      size_t amount);
/* Counts @amount more for the user. False: that exceeds the quota, and nothing
 * was counted. */
VB_MUST_CHECK bool vb_user_take(struct vb_user *u, enum vb_quota what,
				size_t amount);
/* Counts @amount that the user has already, even beyond the quota. */
void vb_user_count(struct vb_user *u, enum vb_quota what, size_t amount);
/* Counts @amount less for the user. */
void vb_user_give(struct vb_user *u, enum vb_quota what, size_t amount);
/* Returns whether the user can have one of the last @left free ones. */
bool vb_user_may_have_last(const struct vb_user *u, enum vb_quota what,
			   size_t left);

/* Write to @text, of @size bytes, the sentence that explains why @what was
 * refused: the first function says that the user's quota is used up, the second
 * that the last free objects are reserved for root. */
void vb_user_word_quota(const struct vb_user *u, enum vb_quota what, char *text,
			size_t size);
void vb_user_word_reserve(enum vb_quota what, char *text, size_t size);

#endif
