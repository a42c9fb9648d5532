/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket that a child of fork uses stays with its parent, where its adapter
 * is. The child has the other end of a UNIX socket, and a thread of the
 * parent's carries the bytes between. So the child may also exec, or pass it
 * on, as it may a TCP socket.
 *
 * Parent and child talk over a pair of their own, made before the fork.
 */
#ifndef FRONT_RSOCKETS_PRELOAD_RELAY_H
#define FRONT_RSOCKETS_PRELOAD_RELAY_H

#include <netinet/in.h>

#include "front/rsockets/preload.h"

enum rsp_request_kind {
	RSP_CLAIM, /* answered with a descriptor, or none */
	RSP_CLAIM_TO_WRITE,
	RSP_DROP, /* not answered */
};

struct rsp_request {
	int32_t kind, target;
};

/* A UNIX socket's name that says whom its other end stands for. */
struct rsp_name {
	char mark[16]; /* begins with 0: abstract */
	uint32_t pid, number;
	struct sockaddr_in6 peer, own; /* or IPv4's */
};
#define RSP_MARK "\0verbena-relay"

/* A socket that a child may claim: by the number it had at the fork. */
struct rsp_target {
	int name, now;
};

/*
 * For a child with which the parent shares @control, and which may want
 * @count of its sockets; each is held for it already. @targets is malloc's,
 * and taken.
 */
void rsp_relay_child(int control, struct rsp_target *targets, unsigned count);

/* Between stop and go_on: a socket's number is another. */
void rsp_relay_moved(int from, int to);

/* Around fork(): nothing changes meanwhile; and in the child, nothing of it is
 * left. */
void rsp_relay_stop(void);
void rsp_relay_go_on(void);
void rsp_relay_forget(void);

#endif
