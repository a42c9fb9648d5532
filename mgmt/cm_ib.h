/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand communication manager (IBA 12): how two ends agree on a
 * connection, and that it is over. A state machine without I/O: messages and
 * the time are handed in, messages go out through mgmt/mad_out.h, and what a
 * connection's owner should know through struct vb_cm_ops. Not locked: one
 * thread.
 *
 * A DREQ is answered at once; its owner is told, not asked (the connection
 * managers of operating systems give programs no say in it either).
 */
#ifndef MGMT_CM_IB_H
#define MGMT_CM_IB_H

#include "base/timer.h"
#include "mgmt/mad_out.h"

/* What Linux's rdma_cm announces and so what peers expect. */
#define VB_CM_TIMEOUT_CODE 20 /* of a response: 4.3 s */
#define VB_CM_RETRIES	   15
#define VB_CM_LIFE_CODE	   18 /* of a packet */
#define VB_CM_ACK_TIMEOUT  19
#define VB_CM_MAX_CONNS	   (1u << 17)
/* Those that only wait for a peer's last word, or for time to pass: above
 * that many the oldest are given up. */
#define VB_CM_MAX_FADING (1u << 14)

enum vb_cm_state {
	CM_CLOSED,   /* nothing more comes of it; waits for its owner */
	CM_REQ_SENT, /* active: waits for REP */
	CM_REQ_RCVD, /* passive: the owner is to accept or reject */
	CM_REP_SENT, /* passive: waits for RTU */
	CM_REP_RCVD, /* active: the owner is to establish or reject */
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT, /* late packets die out; DREQ is still answered */
	CM_HELD,     /* passive: nobody listens; somebody may, in a moment */
	/* A queue pair for datagrams is looked up: */
	CM_SIDR_SENT,
	CM_SIDR_RCVD, /* passive: the owner is to answer or reject */
	CM_SIDR_DONE, /* passive: the answer is kept; it may be lost */
	CM_STATES
};

enum vb_cm_happening {
	CM_HAS_REPLY,	    /* REP: establish or reject it */
	CM_IS_ESTABLISHED,  /* RTU */
	CM_IS_REJECTED,	    /* REJ */
	CM_IS_UNREACHABLE,  /* no answer; @c->returned: and how we know */
	CM_IS_DISCONNECTED, /* by either side, DREP or no DREP */
	CM_IS_OVER,	    /* time wait has ended */
	CM_HAS_ADDRESS,	    /* SIDR REP: says yes or no; closed */
};

struct vb_cm_conn {
	/* the owner's; NULL: it has none any more, and ends by itself */
	void *owner;
	/* for reading */
	enum vb_cm_state state;
	bool passive, sidr;
	bool resumed, insists;
	uint32_t local_id, remote_id;
	uint64_t remote_guid;
	uint32_t local_qpn, remote_qpn;
	uint8_t mtu; /* of our REQ, after the peer wanted less; 0: as asked */
	/* its own */
	struct vb_cm *cm;
	struct vb_mad_path path;
	uint64_t tid, disconnect_tid;
	uint32_t index;
	unsigned tries_left, max_tries;
	unsigned returns; /* of what is sent now: at most one each time */
	bool came_back;	  /* what was sent last did */
	int returned;	  /* errno; 0: none was, or too few */
	vb_time pause, patience, linger;
	vb_time begun_at, sent_at; /* REQ */
	vb_time returns_since;
	struct vb_timer timer;
	struct vb_cm_conn *next_by_id, *next_by_qpn, *next_held;
	struct vb_cm_conn *next_fading, **prev_fading_at, *next_resumed;
	/* What is sent again: REQ, REP, DREQ, SIDR; or a REQ that is held. */
	uint8_t mad[VB_MAD_BYTES];
};

#define VB_CM_LATER (1u << 16) /* no reason of IBA's */

struct vb_cm_ops {
	/*
	 * Somebody wants to connect, or, @c->sidr, to know a queue pair.
	 * 0: @c is kept, its owner set, and to be accepted, answered or
	 * rejected; or why not (enum vb_cm_reason). Of a service that is not
	 * there, it may be asked again. VB_CM_LATER: as if it had been lost.
	 */
	unsigned (*request)(void *arg, struct vb_cm_conn *c,
			    const struct vb_cm_msg *req);
	/* @m: REP or REJ where one came, else NULL. May call any door. */
	void (*happen)(void *arg, struct vb_cm_conn *c,
		       enum vb_cm_happening what, const struct vb_cm_msg *m);
	void *arg;
	struct vb_mad_out out;
	uint32_t (*random)(void);
};

struct vb_cm;
VB_MUST_CHECK struct vb_cm *vb_cm_create(const struct vb_cm_ops *ops);
void vb_cm_destroy(struct vb_cm *cm);

/* A MAD to queue pair 1; @path: the way back. Anything may be in it. */
void vb_cm_recv(struct vb_cm *cm, const struct vb_mad_path *path,
		const uint8_t *bytes, size_t len, vb_time now);
/*
 * A MAD of ours @to somebody came back: ECONNREFUSED, nobody there takes any,
 * EHOSTUNREACH and its like, there is no such host. Anything may be in it.
 * Connections that are being made heed it, when it comes again.
 */
void vb_cm_returned(struct vb_cm *cm, const struct vb_gid *to,
		    const uint8_t *bytes, size_t len, int error, vb_time now);
/* When vb_cm_tick() has something to do. */
vb_time vb_cm_deadline(const struct vb_cm *cm);
void vb_cm_tick(struct vb_cm *cm, vb_time now);
/* Connections under way or up. Those in time wait do not count. */
unsigned vb_cm_busy(const struct vb_cm *cm);
/* All there are. */
unsigned vb_cm_count(const struct vb_cm *cm);

/*
 * Send @req, its numbers filled in. -ENOMEM; -EAGAIN: all numbers are taken.
 * *@conn is the caller's to release.
 */
VB_MUST_CHECK int vb_cm_connect(struct vb_cm *cm, struct vb_cm_msg *req,
				const struct vb_mad_path *path, void *owner,
				vb_time now, struct vb_cm_conn **conn);
/* Somebody listens now: those whose service was not there are asked for
 * again. */
void vb_cm_listens(struct vb_cm *cm);
/* Send @req, a SIDR REQ; as vb_cm_connect(). CM_HAS_ADDRESS follows. */
VB_MUST_CHECK int vb_cm_look_up(struct vb_cm *cm, struct vb_cm_msg *req,
				const struct vb_mad_path *path, void *owner,
				vb_time now, struct vb_cm_conn **conn);
/* Is @m, a REQ or SIDR REQ that came, one of those that we have sent and that
 * wait for an answer? No other host can know the numbers of one that is. */
bool vb_cm_is_own(struct vb_cm *cm, const struct vb_cm_msg *m);
/* The owner's answer, a SIDR REP. -EINVAL: it is not the time for it. */
VB_MUST_CHECK int vb_cm_answer(struct vb_cm_conn *c, struct vb_cm_msg *rep,
			       vb_time now);
/* The owner's answer to a request. -EINVAL: it is not the time for it. */
VB_MUST_CHECK int vb_cm_accept(struct vb_cm_conn *c, struct vb_cm_msg *rep,
			       vb_time now);
/* What is left of a connection when its manager is gone, said to another. */
struct vb_cm_ticket {
	enum vb_cm_state state; /* ESTABLISHED, REQ_RCVD, REP_RCVD */
	bool passive;
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint64_t remote_guid, tid;
};
/* -EINVAL: no such state, or it is there; as vb_cm_connect(). */
VB_MUST_CHECK int vb_cm_resume(struct vb_cm *cm, const struct vb_cm_ticket *t,
			       const struct vb_mad_path *path, void *owner,
			       struct vb_cm_conn **conn);
/* @c's REQ may find its peer at an earlier one of ours: it is repeated until
 * the peer has given that up. */
void vb_cm_insist(struct vb_cm_conn *c);
/* After CM_HAS_REPLY; or, passive, data came though no RTU did. -EINVAL. */
VB_MUST_CHECK int vb_cm_establish(struct vb_cm_conn *c, vb_time now);
/* A request or a reply; @c is closed then. -EINVAL: neither was to answer. */
/* CM_REJ_INVALID_MTU: its one byte is the largest path MTU (enum ibv_mtu) that
 * would do, with which one of our kind asks again. */
VB_MUST_CHECK int vb_cm_reject(struct vb_cm_conn *c, unsigned reason,
			       const void *private_data, unsigned bytes);
/* -EINVAL: it is not established. CM_IS_DISCONNECTED follows. */
VB_MUST_CHECK int vb_cm_disconnect(struct vb_cm_conn *c, vb_time now);
/* The owner forgets it, in whatever state: the peer is told what is due. */
void vb_cm_release(struct vb_cm_conn *c, vb_time now);

/* Milliseconds that a timeout code means to those who count them, in ns. */
vb_time vb_cm_code_ns(unsigned code);

#endif
