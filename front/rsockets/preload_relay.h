/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of a parent that a child of fork() uses. The connection stays
 * with the parent, which has the adapter. The child gets one end of a UNIX
 * socket pair, and a thread of the parent copies the bytes between the other
 * end and the connection. So the child can call exec() or pass the descriptor
 * on, as with a TCP socket.
 *
 * The child asks for a connection over a control socket pair, which is made
 * before the fork.
 */
#ifndef FRONT_RSOCKETS_PRELOAD_RELAY_H
#define FRONT_RSOCKETS_PRELOAD_RELAY_H

#include <netinet/in.h>

#include "front/rsockets/preload.h"

enum rsp_request_kind {
	/* asks for a connection; the answer has a descriptor, or none */
	RSP_CLAIM,
	/* asks for a connection to which the child has only written so far */
	RSP_CLAIM_TO_WRITE,
	/* tells the parent that the child does not need the connection; the
	 * parent does not answer */
	RSP_DROP,
};

struct rsp_request {
	int32_t kind, target;
};

/* The abstract name to which the parent binds its end of the pair, so that the
 * child finds the connection's addresses by getpeername(). */
struct rsp_name {
	char mark[16]; /* the value RSP_MARK */
	/* process ID and a running number, which make the name unique */
	uint32_t pid, number;
	/* addresses of the peer and of this end, either of IPv6 or of IPv4 */
	struct sockaddr_in6 peer, own;
};
#define RSP_MARK "\0verbena-relay"

/* A socket that a child may claim. name: its number at the time of the fork, by
 * which the child asks; now: its present number. */
struct rsp_target {
	int name, now;
};

/*
 * Serves a new child over @control, the parent's end of the pair. The child may
 * claim any of the @count sockets of @targets; the caller has called rsp_hold()
 * for each. The relay then owns @control and @targets, which is from malloc().
 * The caller has called rsp_relay_stop().
 */
void rsp_relay_child(int control, struct rsp_target *targets, unsigned count);

/* A socket's number changed from @from to @to. The caller has called
 * rsp_relay_stop(). */
void rsp_relay_moved(int from, int to);

/* Take (rsp_relay_stop()) and release (rsp_relay_go_on()) the relay's lock. The
 * preload holds it during fork() and while the number of a socket changes. */
void rsp_relay_stop(void);
void rsp_relay_go_on(void);
/* Runs in a child of fork(): closes the parent's ends of all pairs, so that the
 * child begins without relays. */
void rsp_relay_forget(void);

#endif
