/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The abstract names at which a process with a slot takes the XRC requests of
 * other processes (engine/xrc_forward.c), and the sockets that listen there. One
 * thread uses a listener.
 */
#ifndef ENGINE_XRC_LISTENER_H
#define ENGINE_XRC_LISTENER_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/defs.h"

struct vb_xrc_listener {
	/* Sockets at the names of the process's slots, which are two if the
	 * first RoCE device was opened later; -1: none. */
	int fd[2];
	/* A timer, set while callers wait that could not be accepted. */
	int again_fd;
	int epoll_fd; /* the owner's set, which has all of them */
};

/* The address at which the process with @slot takes requests; its length. */
socklen_t vb_xrc_name(uint32_t slot, struct sockaddr_un *a);

/* @epoll_fd: a set in which each event of the listener has NULL as its data. It
 * must exist longer than the listener. 0 or -errno. */
VB_MUST_CHECK int vb_xrc_listener_init(struct vb_xrc_listener *l, int epoll_fd);
/* Listen at the name of @slot with the socket @i, 0 or 1. 0 or -errno. */
VB_MUST_CHECK int vb_xrc_listener_add(struct vb_xrc_listener *l, unsigned i,
				      uint32_t slot);
/* The listener had an event: returns the connection of a caller, which does not
 * block and which the caller of this function owns, or -1. Call it until it
 * returns -1. If callers are left because this process lacks descriptors,
 * memory or threads, the listener has an event again after 10 ms. */
int vb_xrc_listener_accept(struct vb_xrc_listener *l);
void vb_xrc_listener_fini(struct vb_xrc_listener *l);

#endif
