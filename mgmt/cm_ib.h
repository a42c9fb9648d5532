/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand communication manager (IBA 12): two ends agree on a connection
 * and on its end. It is a state machine without I/O: the caller hands in
 * messages and the time, messages leave through mgmt/mad_out.h, and struct
 * vb_cm_ops tells a connection's owner what happened. One thread calls all of
 * it; nothing is locked. Times are in ns, those named @now of one monotonic
 * clock. "We" is this communication manager, "the peer" that of another host,
 * or another connection of this one.
 *
 * The manager answers a DREQ at once and tells the owner afterwards, because
 * the connection managers of operating systems give programs no choice either.
 */
#ifndef MGMT_CM_IB_H
#define MGMT_CM_IB_H

#include "base/timer.h"
#include "mgmt/mad_out.h"

/* The values that Linux's rdma_cm announces. Peers are tuned to them, so
 * Verbena uses the same. */
#define VB_CM_TIMEOUT_CODE 20 /* timeout code: a peer responds within 4.3 s */
#define VB_CM_RETRIES	   15
/* timeout code: the longest time that a packet is in the network */
#define VB_CM_LIFE_CODE	  18
#define VB_CM_ACK_TIMEOUT 19
#define VB_CM_MAX_CONNS	  (1u << 17)
/* How many connections may wait for nothing but an RTU or the passing of time.
 * Above that number the manager gives up the oldest, so that a flood of
 * requests does not fill the memory. */
#define VB_CM_MAX_FADING (1u << 14)

enum vb_cm_state {
	CM_CLOSED,   /* the connection has ended; its owner must release it */
	CM_REQ_SENT, /* active: waits for the REP */
	CM_REQ_RCVD, /* passive: the owner must accept or reject */
	CM_REP_SENT, /* passive: waits for the RTU */
	CM_REP_RCVD, /* active: the owner must establish or reject */
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	/* late packets die out; a DREQ of the peer is still answered */
	CM_TIMEWAIT,
	CM_HELD, /* passive: waits for a listener (cm_held.c) */
	/* States of a look-up of a datagram queue pair (IBA 12.11). */
	CM_SIDR_SENT,
	/* passive: the owner must answer or reject the SIDR REQ */
	CM_SIDR_RCVD,
	/* passive: the look-up is answered; the answer stays for repeated
	 * requests */
	CM_SIDR_DONE,
	CM_STATES
};

enum vb_cm_happening {
	CM_HAS_REPLY, /* a REP came: the owner must establish or reject */
	/* an RTU or data came: the connection is established */
	CM_IS_ESTABLISHED,
	CM_IS_REJECTED, /* the peer sent a REJ */
	/* the peer did not answer; @c->returned may hold the reason */
	CM_IS_UNREACHABLE,
	CM_IS_DISCONNECTED, /* this side or the peer ended the connection */
	/* the time wait of the connection (CM_TIMEWAIT) has ended */
	CM_IS_OVER,
	/* a SIDR REP came, with the queue pair's address or a refusal */
	CM_HAS_ADDRESS,
};

struct vb_cm_conn {
	/* Pointer that belongs to the owner of the connection; NULL: the owner
	 * has released @c, which then frees itself at its end. */
	void *owner;
	/* The owner of the connection may read these fields. */
	enum vb_cm_state state;
	bool passive, sidr;
	bool resumed, insists;
	uint32_t local_id, remote_id;
	uint64_t remote_guid;
	uint32_t local_qpn, remote_qpn;
	/* path MTU code of a second REQ, sent because the peer accepts only
	 * less; else 0 */
	uint8_t mtu;
	/* Only the communication manager uses the fields below. */
	struct vb_cm *cm;
	/* @alternate: another path to the peer (vb_cm_add_path()); place 0:
	 * there is none */
	struct vb_mad_path path, alternate;
	uint64_t tid, disconnect_tid;
	uint32_t index;
	unsigned tries_left, max_tries;
	/* number of sendings of the last message that the network returned by
	 * ICMP */
	unsigned returns;
	bool came_back; /* the network returned the last message by ICMP */
	/* errno of the ICMP returns; 0: too few returns to decide */
	int returned;
	vb_time pause, patience, linger;
	/* the times of the first and the last sending of the message */
	vb_time begun_at, sent_at;
	vb_time returns_since;
	struct vb_timer timer;
	struct vb_cm_conn *next_by_id, *next_by_qpn, *next_held;
	struct vb_cm_conn *next_fading, **prev_fading_at, *next_resumed;
	/* The message to repeat (REQ, REP, DREQ, SIDR), or the request that
	 * waits in CM_HELD. */
	uint8_t mad[VB_MAD_BYTES];
};

/* result of the request function that ignores the REQ; no reason of IBA
 * 12.6.7.2 has this value */
#define VB_CM_LATER (1u << 16)

struct vb_cm_ops {
	/*
	 * A peer asks to connect or, with @c->sidr, for a queue pair. Return
	 * 0 after setting @c->owner: the owner must then accept, answer or
	 * reject. Return a reason (enum vb_cm_reason) to refuse; after
	 * CM_REJ_INVALID_SERVICE_ID the function may be called again for the
	 * same request. Return VB_CM_LATER to ignore the request, which the
	 * peer will repeat.
	 */
	unsigned (*request)(void *arg, struct vb_cm_conn *c,
			    const struct vb_cm_msg *req);
	/* Tells the owner that @what happened to @c. @m is the REP, REJ or SIDR
	 * REP that came, else NULL. The function may call any function of this
	 * header, vb_cm_release() included. */
	void (*happen)(void *arg, struct vb_cm_conn *c,
		       enum vb_cm_happening what, const struct vb_cm_msg *m);
	void *arg;
	struct vb_mad_out out;
	uint32_t (*random)(void);
};

struct vb_cm;
VB_MUST_CHECK struct vb_cm *vb_cm_create(const struct vb_cm_ops *ops);
void vb_cm_destroy(struct vb_cm *cm);

/* Takes a MAD of @len bytes that arrived at queue pair 1. @path leads back to
 * its sender. Nothing of it is trusted. */
void vb_cm_recv(struct vb_cm *cm, const struct vb_mad_path *path,
		const uint8_t *bytes, size_t len, vb_time now);
/*
 * The network returned a MAD that we sent @to a host, with an ICMP @error:
 * ECONNREFUSED says that the host takes no MADs; EHOSTUNREACH, ENETUNREACH,
 * EHOSTDOWN and EACCES, that it cannot be reached. Others are ignored. The
 * bytes may be forged. A request that waits for an answer ends only after
 * several returns, since a program may be just starting there.
 */
void vb_cm_returned(struct vb_cm *cm, const struct vb_gid *to,
		    const uint8_t *bytes, size_t len, int error, vb_time now);
/* Returns the time at which the owner must call vb_cm_tick(); VB_NEVER: no
 * timer runs. */
vb_time vb_cm_deadline(const struct vb_cm *cm);
void vb_cm_tick(struct vb_cm *cm, vb_time now);
/* Returns the number of connections that are being made, established or ending,
 * without those in time wait. */
unsigned vb_cm_busy(const struct vb_cm *cm);
/* Returns the number of connections, those in time wait included. */
unsigned vb_cm_count(const struct vb_cm *cm);

/*
 * Sends @req, a REQ, to which this function adds transaction and communication
 * IDs, and repeats it until an answer comes. *@conn is the new connection,
 * which the caller must release. -ENOMEM; -EAGAIN: VB_CM_MAX_CONNS exist.
 */
VB_MUST_CHECK int vb_cm_connect(struct vb_cm *cm, struct vb_cm_msg *req,
				const struct vb_mad_path *path, void *owner,
				vb_time now, struct vb_cm_conn **conn);
/* A program began to listen: calls the request function again for each request
 * that waits for a listener. */
void vb_cm_listens(struct vb_cm *cm);
/* Sends @req, a SIDR REQ, as vb_cm_connect() sends a REQ. CM_HAS_ADDRESS or
 * CM_IS_UNREACHABLE follows. */
VB_MUST_CHECK int vb_cm_look_up(struct vb_cm *cm, struct vb_cm_msg *req,
				const struct vb_mad_path *path, void *owner,
				vb_time now, struct vb_cm_conn **conn);
/* Returns whether this manager itself sent @m, a REQ or SIDR REQ that came, and
 * waits for its answer. Other hosts cannot forge such a request, because they
 * do not know its random transaction ID. */
bool vb_cm_is_own(struct vb_cm *cm, const struct vb_cm_msg *m);
/* Sends @rep, a SIDR REP, as the answer to a request. -EINVAL: @c is not in
 * CM_SIDR_RCVD. */
VB_MUST_CHECK int vb_cm_answer(struct vb_cm_conn *c, struct vb_cm_msg *rep,
			       vb_time now);
/* Sends @rep, a REP, and repeats it until an RTU comes. -EINVAL: @c is not in
 * CM_REQ_RCVD. */
VB_MUST_CHECK int vb_cm_accept(struct vb_cm_conn *c, struct vb_cm_msg *rep,
			       vb_time now);
/* A connection that an earlier manager made, as the program that owns it
 * describes it to a new manager. */
struct vb_cm_ticket {
	/* the connection's state: CM_ESTABLISHED, CM_REQ_RCVD or CM_REP_RCVD */
	enum vb_cm_state state;
	bool passive;
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint64_t remote_guid, tid;
};
/* Takes over the connection that @t describes; *@conn is the caller's to
 * release. -EINVAL: @t has another state, or the connection exists already;
 * else as vb_cm_connect(). */
VB_MUST_CHECK int vb_cm_resume(struct vb_cm *cm, const struct vb_cm_ticket *t,
			       const struct vb_mad_path *path, void *owner,
			       struct vb_cm_conn **conn);
/* The connection has an alternate path on InfiniBand: messages of the peer may
 * come by @path as well, which is then the one that this side answers by. A
 * DREQ that is not answered is repeated by the two paths in turn. */
void vb_cm_add_path(struct vb_cm_conn *c, const struct vb_mad_path *path);
/* The queue pair has migrated: messages go by the other path from now on.
 * -EINVAL: there is none. */
VB_MUST_CHECK int vb_cm_migrate(struct vb_cm_conn *c);
/* Lets the REQ of @c survive a REJ "stale connection": the peer may still have
 * an earlier connection of the same queue pair, so the REQ is repeated until
 * the peer has ended that. */
void vb_cm_insist(struct vb_cm_conn *c);
/* Active, after CM_HAS_REPLY: sends the RTU. Passive: data came, which proves
 * the connection, though the RTU was lost. -EINVAL: another state. */
VB_MUST_CHECK int vb_cm_establish(struct vb_cm_conn *c, vb_time now);
/* Rejects a request or a reply for @reason, with @bytes of private data, and
 * closes @c. For CM_REJ_INVALID_MTU the data is one byte, the largest path MTU
 * (enum ibv_mtu) that is accepted; a Verbena peer asks again with that.
 * -EINVAL: no request or reply waits for an answer. */
VB_MUST_CHECK int vb_cm_reject(struct vb_cm_conn *c, unsigned reason,
			       const void *private_data, unsigned bytes);
/* Sends a DREQ; CM_IS_DISCONNECTED follows. -EINVAL: @c is neither established
 * nor in CM_REP_SENT. */
VB_MUST_CHECK int vb_cm_disconnect(struct vb_cm_conn *c, vb_time now);
/* The owner gives up @c, in any state, and must not use it again. The manager
 * sends the peer the REJ or DREQ that the state demands. */
void vb_cm_release(struct vb_cm_conn *c, vb_time now);

/* Returns the nanoseconds that a 5-bit timeout code of the protocol (4.096 us *
 * 2^@code) means to Linux, which counts 2^(@code - 8) ms, at least 1. Codes
 * above 24 count as 24. */
vb_time vb_cm_code_ns(unsigned code);

#endif
