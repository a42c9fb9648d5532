/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SUPPORT_USER_HAS_H
#define TESTS_SUPPORT_USER_HAS_H

#include "broker/quota.c"

/* Returns how many units of the resource @what are counted for the user. */
static size_t user_has(const struct vb_user *u, enum vb_quota what)
{
	return u->has[what];
}

#endif
