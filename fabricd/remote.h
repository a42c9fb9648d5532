/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links of a fabric to other processes: the sockets below fabric/far.h. Each
 * link has a socket of its own, which takes messages only from the address of
 * the topology.
 */
#ifndef FABRICD_REMOTE_H
#define FABRICD_REMOTE_H

#include <sys/socket.h>

#include "fabric/far.h"
#include "fabricd/fabricd_priv.h"

/* A message on a stream has its length before it. */
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
	enum vb_far_state told; /* of the log */
	struct fd_watch watch;	/* messages come here; fd -1: none */
	/* TCP: the end with the lower GUID listens, the other one calls. */
	struct fd_watch listener;
	bool connected;
	vb_time call_at;
	struct stream *in, *out;
};

/* fabricd/remote_tcp.c. *@r has its peer's address. 0 or -errno. */
int vb_fabricd_tcp_open(struct remote *r, vb_time now);
void vb_fabricd_tcp_send(struct remote *r, const uint8_t *bytes, size_t len);
/* Call again if it is time. Returns when to come back. */
vb_time vb_fabricd_tcp_run(struct remote *r, vb_time now);
void vb_fabricd_tcp_close(struct remote *r);
/* Bind a socket of this family and type to @port. A descriptor, or -errno. */
int vb_fabricd_bind(int family, int type, uint16_t port);

#endif
