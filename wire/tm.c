/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the headers of tag matching from the bytes of a message. */
#include "wire/tm.h"

#include "base/bytes.h"

bool vb_tmh_get(const void *bytes, size_t len, struct vb_tmh *h)
{
	struct vb_reader r = vb_reader(bytes, len);

	h->op = vb_get_u8(&r);
	(void)vb_take(&r, 3); /* three reserved bytes */
	h->app_ctx = vb_get_be32(&r);
	h->tag = vb_get_be64(&r);
	return !r.overrun;
}

bool vb_rvh_get(const void *bytes, size_t len, struct vb_rvh *h)
{
	struct vb_reader r = vb_reader(bytes, len);

	(void)vb_take(&r, VB_TMH_BYTES);
	h->va = vb_get_be64(&r);
	h->rkey = vb_get_be32(&r);
	h->length = vb_get_be32(&r);
	return !r.overrun;
}
