/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of tag matching, which a program writes at the beginning of a
 * SEND's data (their layout is in infiniband/tm_types.h).
 */
#ifndef WIRE_TM_H
#define WIRE_TM_H

#include "base/defs.h"

#define VB_TMH_BYTES  16u
#define VB_RVH_BYTES  16u
#define VB_RNDV_BYTES (VB_TMH_BYTES + VB_RVH_BYTES)

enum vb_tm_op { TM_OP_NO_TAG, TM_OP_RNDV, TM_OP_FIN, TM_OP_EAGER };

struct vb_tmh {
	uint8_t op; /* the operation, an enum vb_tm_op or any other value */
	uint32_t app_ctx;
	uint64_t tag;
};

/* The rendezvous header: where the data of a rendezvous message is. */
struct vb_rvh {
	uint64_t va;
	uint32_t rkey, length;
};

/* Read a tag matching header (TMH). False: @len is too short. */
VB_MUST_CHECK bool vb_tmh_get(const void *bytes, size_t len, struct vb_tmh *h);
/* Read the rendezvous header (RVH) behind a TMH; @bytes begin with the TMH.
 * False: @len is too short. */
VB_MUST_CHECK bool vb_rvh_get(const void *bytes, size_t len, struct vb_rvh *h);

#endif
