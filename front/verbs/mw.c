/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: allocation. Windows are bound by work requests (post.c). */
#include "front/verbs/front.h"

#include <stdlib.h>

#include "base/log.h"

struct ibv_mw *vb_front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vb_front_mw *mw;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return vb_front_null(-ENOMEM);
	rc = vb_mw_alloc(vb_front_pd(pd)->core, (unsigned)type, &mw->core,
			 &mw->ibv.rkey);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_CREATE, pd,
		       "pd %u: cannot allocate a memory window of type %d: %s",
		       pd->handle, (int)type, strerror(-rc));
		free(mw);
		return vb_front_null(rc);
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.handle = vb_front_handle();
	mw->ibv.type = type;
	vb_front_live_add(&mw->live, FRONT_MW, &mw->ibv, &mw->ibv.handle);
	vb_front_context_get(pd->context);
	return &mw->ibv;
}

int vb_front_dealloc_mw(struct ibv_mw *ibv)
{
	struct vb_front_mw *mw = VB_CONTAINER_OF(ibv, struct vb_front_mw, ibv);
	int cancel, rc = vb_front_claim(FRONT_MW, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&mw->live, 0);
	vb_front_live_del(&mw->live);
	cancel = vb_cancel_off();
	vb_mw_free(mw->core);
	vb_cancel_back(cancel);
	vb_front_context_put(ibv->context);
	free(mw);
	return 0;
}
