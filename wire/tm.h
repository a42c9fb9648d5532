/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of tag matching: they begin a SEND's data, where a program wrote
 * them (infiniband/tm_types.h says how they lie).
 */
#ifndef WIRE_TM_H
#define WIRE_TM_H

#include "base/defs.h"

#define VB_TMH_BYTES  16u
#define VB_RVH_BYTES  16u
#define VB_RNDV_BYTES (VB_TMH_BYTES + VB_RVH_BYTES)

enum vb_tm_op { TM_OP_NO_TAG, TM_OP_RNDV, TM_OP_FIN, TM_OP_EAGER };

struct vb_tmh {
	uint8_t op; /* enum vb_tm_op, or anything */
	uint32_t app_ctx;
	uint64_t tag;
};

/* Where the data of a rendezvous is. */
struct vb_rvh {
	uint64_t va;
	uint32_t rkey, length;
};

/* False: @len is too short for it. */
VB_MUST_CHECK bool vb_tmh_get(const void *bytes, size_t len, struct vb_tmh *h);
/* The one that follows a TMH; @bytes begin with that. */
VB_MUST_CHECK bool vb_rvh_get(const void *bytes, size_t len, struct vb_rvh *h);

#endif
