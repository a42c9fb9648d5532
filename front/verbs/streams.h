/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between Verbena's librdmacm and libibverbs that programs do not
 * use: it gives a connection to the queue pair of an iWARP device. It is one
 * exported name with its own symbol version.
 */
#ifndef FRONT_VERBS_STREAMS_H
#define FRONT_VERBS_STREAMS_H

#include <infiniband/verbs.h>

#include "engine/stream.h"

/* Each member does what vb_stream_start(), vb_stream_finish(),
 * vb_stream_forget() and vb_stream_may_be_near() do (engine/stream.h). */
struct vb_verbs_streams {
	int (*start)(struct ibv_context *context, uint32_t qpn, int fd,
		     const struct vb_mpa_terms *terms,
		     const struct vb_stream_listener *listener);
	void (*finish)(struct ibv_context *context, uint32_t qpn, void *arg);
	void (*forget)(struct ibv_context *context, uint32_t qpn, void *arg);
	bool (*may_be_near)(const struct sockaddr *peer);
};

extern const struct vb_verbs_streams vb_verbs_streams
	__attribute__((visibility("default")));

#endif
