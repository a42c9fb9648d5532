/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of an adapter with both versions of RoCE: each route says by which
 * of two links its frames leave. It receives nothing itself, since the owner of
 * the two links reads each of them.
 */
#ifndef LINK_ROCE_H
#define LINK_ROCE_H

#include "link/link.h"

/* Make the link of the links @v1 and @v2. The caller still owns both, and
 * closes them after this one. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_roce_open(struct vb_link *v1, struct vb_link *v2,
			       struct vb_link **link);

#endif
