/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP queue pairs, for librdmacm: the functions of
 * engine/stream.h with contexts of the public ABI in place of adapters. */
#include "front/verbs/front.h"

#include "front/verbs/streams.h"

static int start(struct ibv_context *context, uint32_t qpn, int fd,
		 const struct vb_mpa_terms *terms,
		 const struct vb_stream_listener *listener)
{
	int cancel = vb_cancel_off(), rc;

	rc = vb_stream_start(vb_front_context(context)->adapter, qpn, fd, terms,
			     listener);
	vb_cancel_back(cancel);
	return rc;
}

static void front_finish(struct ibv_context *context, uint32_t qpn, void *arg)
{
	int cancel = vb_cancel_off();

	vb_stream_finish(vb_front_context(context)->adapter, qpn, arg);
	vb_cancel_back(cancel);
}

static void front_forget(struct ibv_context *context, uint32_t qpn, void *arg)
{
	int cancel = vb_cancel_off();

	vb_stream_forget(vb_front_context(context)->adapter, qpn, arg);
	vb_cancel_back(cancel);
}

const struct vb_verbs_streams vb_verbs_streams = { start, front_finish,
						   front_forget,
						   vb_stream_may_be_near };
