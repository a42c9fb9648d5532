/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm asks of libibverbs and no program does: a queue pair of an
 * iWARP device gets its connection. One name, of a version of its own.
 */
#ifndef FRONT_VERBS_STREAMS_H
#define FRONT_VERBS_STREAMS_H

#include <infiniband/verbs.h>

#include "engine/stream.h"

/* As in engine/stream.h. */
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
