/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of iWARP's queue pairs: one connected TCP socket each, on which
 * MPA's request and reply have been exchanged (RFC 5044). The caller that made
 * the connection (front/rdmacm) passes the socket to the engine, which reports
 * the stream's events to it.
 */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include <sys/socket.h>

#include "core/adapter.h"
#include "iwarp/setup.h"

enum vb_stream_event {
	STREAM_LIVE, /* the connection is established:
			vb_iw_is_established() */
	STREAM_OVER, /* the queue pair no longer has a stream */
};

/* The function that gets a stream's events. The engine calls @tell with
 * qp->drive held, and perhaps rx, so @tell must call no function of the
 * engine. */
struct vb_stream_listener {
	void (*tell)(void *arg, enum vb_stream_event event);
	void *arg;
};

/*
 * Give the queue pair @qpn, which must be in INIT, the connected socket @fd; it
 * moves to RTS. On success the engine owns @fd. -EINVAL: there is no such queue
 * pair, or it is not in INIT; else -errno; then the caller still owns @fd. The
 * caller owns the object of @listener->arg until vb_stream_forget() or
 * STREAM_OVER.
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

/* When this returns, the engine no longer calls the listener with @arg. */
void vb_stream_forget(struct vb_adapter *a, uint32_t qpn, void *arg);

#endif
