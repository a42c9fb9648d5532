/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of iWARP's queue pairs: one connected TCP socket each, on which
 * MPA's request and reply have been exchanged (RFC 5044). The caller that made
 * the connection (front/rdmacm) hands the socket over, and the engine tells it
 * what becomes of the stream.
 */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include <sys/socket.h>

#include "core/adapter.h"
#include "iwarp/setup.h"

enum vb_stream_event {
	STREAM_LIVE, /* the peer has shown that it uses the stream */
	STREAM_OVER, /* the queue pair has no stream any more */
};

/* The engine calls @tell with qp->drive held, and perhaps rx, so @tell must
 * call no function of the engine. */
struct vb_stream_listener {
	void (*tell)(void *arg, enum vb_stream_event news);
	void *arg;
};

/*
 * Give the queue pair @qpn, which must be in INIT, the connected socket @fd; it
 * moves to RTS. On success the engine owns @fd. -EINVAL: there is no such queue
 * pair, or not in INIT; else -errno; then @fd stays the caller's. The caller
 * owns what @listener->arg points to until vb_stream_forget() or STREAM_OVER.
 */
VB_MUST_CHECK int vb_stream_start(struct vb_adapter *a, uint32_t qpn, int fd,
				  const struct vb_mpa_terms *terms,
				  const struct vb_stream_listener *listener);

/* Is @peer an address of this host, so that it makes sense to offer
 * terms.near? */
bool vb_stream_may_be_near(const struct sockaddr *peer);

/* End the stream of @qpn, if @arg is its listener's: the engine flushes the
 * posted requests; bytes already sent still arrive. */
void vb_stream_finish(struct vb_adapter *a, uint32_t qpn, void *arg);

/* When this returns, the engine calls the listener with @arg no more. */
void vb_stream_forget(struct vb_adapter *a, uint32_t qpn, void *arg);

#endif
