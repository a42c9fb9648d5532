/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of an RNIC's queue pairs: a TCP socket each, connected, past MPA's
 * request and reply. Who made the connection (front/rdmacm) gives the socket
 * away and is told what becomes of it.
 */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include <sys/socket.h>

#include "core/adapter.h"
#include "iwarp/setup.h"

enum vb_stream_event {
	STREAM_LIVE, /* the peer is there: it may be used */
	STREAM_OVER, /* the queue pair has none any more */
};

/* Who is told, with locks held: it calls nothing of the engine's. */
struct vb_stream_listener {
	void (*tell)(void *arg, enum vb_stream_event news);
	void *arg;
};

/*
 * The queue pair @qpn, which is in INIT, gets the socket @fd, and is in RTS.
 * -EINVAL: there is none in that state; -errno. Then @fd stays the caller's.
 */
VB_MUST_CHECK int vb_stream_start(struct vb_adapter *a, uint32_t qpn, int fd,
				  const struct vb_mpa_terms *terms,
				  const struct vb_stream_listener *listener);

/* Is @peer an address of this host, so that terms.near makes sense? */
bool vb_stream_may_be_near(const struct sockaddr *peer);

/* Ends it, if @arg hears of it: what was posted is flushed, what was sent
 * arrives. */
void vb_stream_finish(struct vb_adapter *a, uint32_t qpn, void *arg);

/* @arg hears nothing any more after the return. */
void vb_stream_forget(struct vb_adapter *a, uint32_t qpn, void *arg);

#endif
