/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links of a fabric to other processes: the sockets that carry the messages of
 * fabric/far.h. Each link has a socket of its own, which takes messages only
 * from the address that the topology gives for the link.
 */
#ifndef FABRICD_REMOTE_H
#define FABRICD_REMOTE_H

#include <sys/socket.h>

#include "fabric/far.h"
#include "fabricd/fabricd_priv.h"

/* bytes in front of each message on a TCP stream, which have the message's
 * length */
#define VB_STREAM_HEAD 2

struct remote {
	struct vb_chain link;
	struct vb_fabricd *f;
	struct vb_far *far;
	struct vb_fab_node *node;
	uint8_t port;
	const struct vb_topo_far *where;
	struct sockaddr_storage peer;
	socklen_t peer_len;
	/* the state of the other end when the log was last written */
	enum vb_far_state told;
	/* the socket that carries the link's messages; fd -1: there is none
	 * now */
	struct fd_watch watch;
	/* For TCP: the end with the lower GUID listens at this socket, and the
	 * other end connects to it. */
	struct fd_watch listener;
	bool connected;
	vb_time call_at;
	struct stream *in, *out;
};

/* Functions of fabricd/remote_tcp.c. */
int vb_fabricd_tcp_open(struct remote *r, vb_time now);
void vb_fabricd_tcp_send(struct remote *r, const uint8_t *bytes, size_t len);
/* Connect to the peer if that is this end's part and it is time for it. Returns
 * when to call this again. */
vb_time vb_fabricd_tcp_run(struct remote *r, vb_time now);
void vb_fabricd_tcp_close(struct remote *r);
/* Make a socket of this family and type, and bind it to @port. Returns a
 * descriptor or -errno. */
int vb_fabricd_bind(int family, int type, uint16_t port);

#endif
