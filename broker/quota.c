/* SPDX-License-Identifier: BSD-2-Clause */
/* The users of the broker, and the resources that each of them uses. */
#include "broker/quota.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/ipc.h"
#include "wire/ipc_cm.h"

/* The most programs of one user. Each has two sessions; a command that asks for
 * the status has one. */
#define PROGRAMS (VB_MAX_PROGRAMS / 2)

static const struct {
	size_t most; /* the most of this resource that one user may have */
	/* The most that all users together may have, except trusted ones; 0:
	 * the broker has a limited number of them. A person may have many user
	 * numbers (subuid(5)), so this bounds the broker's memory. */
	size_t most_of_all;
	/* number of the last free units that are kept for trusted users */
	size_t reserve;
	const char *what;
} quotas[VB_QUOTAS] = {
	[VB_QUOTA_SESSIONS] = { 2 * PROGRAMS + 64, 0, 64, "sessions" },
	[VB_QUOTA_SLOTS] = { PROGRAMS, 0, 16, "programs with devices" },
	[VB_QUOTA_IDS] = { VB_IPC_CM_USER_IDS, 4 * VB_IPC_CM_USER_IDS, 0,
			   "connections" },
	[VB_QUOTA_PORTS] = { VB_IPC_CM_USER_PORTS, 4 * VB_IPC_CM_USER_PORTS, 0,
			     "ports" },
	[VB_QUOTA_BYTES] = { 64 << 20, 256 << 20, 0,
			     "bytes that wait to be read" },
};

struct vb_user {
	uid_t uid;
	bool trusted;
	unsigned references;
	size_t has[VB_QUOTAS];
	struct vb_users *all;
	struct vb_user *next, **at;
};

static struct vb_user *find_user(const struct vb_users *all, uid_t uid,
				 bool trusted)
{
	struct vb_user *u = all->first;

	while (u && !(u->uid == uid && u->trusted == trusted))
		u = u->next;
	return u;
}

static struct vb_user *make_user(struct vb_users *all, uid_t uid, bool trusted)
{
	struct vb_user *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->uid = uid;
	u->trusted = trusted;
	u->all = all;
	u->at = &all->first;
	u->next = all->first;
	if (u->next)
		u->next->at = &u->next;
	all->first = u;
	return u;
}

struct vb_user *vb_user_enter(struct vb_users *all, uid_t uid, bool trusted)
{
	struct vb_user *u = find_user(all, uid, trusted);

	if (!u)
		u = make_user(all, uid, trusted);
	if (u)
		u->references++;
	return u;
}

void vb_user_leave(struct vb_user *u)
{
	if (--u->references)
		return;
	/* Objects that the user has left behind no longer count for all users
	 * together, as they no longer count for the user. */
	for (unsigned q = 0; q < VB_QUOTAS && !u->trusted; q++)
		u->all->has[q] -= u->has[q];
	*u->at = u->next;
	if (u->next)
		u->next->at = u->at;
	free(u);
}

/* Returns whether all users together may have @amount more. */
static bool may_all_have(const struct vb_users *all, enum vb_quota what,
			 size_t amount)
{
	const size_t most = quotas[what].most_of_all;

	return most == 0 || (amount <= most && all->has[what] <= most - amount);
}

bool vb_user_may_have(const struct vb_user *u, enum vb_quota what,
		      size_t amount)
{
	return u->trusted || (u->has[what] + amount <= quotas[what].most &&
			      may_all_have(u->all, what, amount));
}

bool vb_user_take(struct vb_user *u, enum vb_quota what, size_t amount)
{
	if (!vb_user_may_have(u, what, amount))
		return false;
	vb_user_count(u, what, amount);
	return true;
}

void vb_user_count(struct vb_user *u, enum vb_quota what, size_t amount)
{
	u->has[what] += amount;
	if (!u->trusted)
		u->all->has[what] += amount;
}

void vb_user_give(struct vb_user *u, enum vb_quota what, size_t amount)
{
	u->has[what] -= amount;
	if (!u->trusted)
		u->all->has[what] -= amount;
}

bool vb_user_may_have_last(const struct vb_user *u, enum vb_quota what,
			   size_t left)
{
	return left > (u->trusted ? 0 : quotas[what].reserve);
}

void vb_user_word_quota(const struct vb_user *u, enum vb_quota what, char *text,
			size_t size)
{
	if (!may_all_have(u->all, what, 1))
		snprintf(
			text, size,
			"users other than root have %zu %s here, which is all that they may have",
			u->all->has[what], quotas[what].what);
	else
		snprintf(
			text, size,
			"user %u has %zu %s here already; one user may have %zu",
			(unsigned)u->uid, u->has[what], quotas[what].what,
			quotas[what].most);
}

void vb_user_word_reserve(enum vb_quota what, char *text, size_t size)
{
	snprintf(text, size, "the last %zu %s here are kept for root",
		 quotas[what].reserve, quotas[what].what);
}
