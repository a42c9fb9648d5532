/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, modify, complete, flush, destroy.
 *
 * Type-stable: a destroyed queue pair's memory is recycled, so that a thread
 * that found it in the table a moment ago can still lock it and look at qpn.
 */
#ifndef CORE_QP_H
#define CORE_QP_H

#include "base/timer.h"
#include "core/ah.h"
#include "core/cq.h"
#include "core/mr.h"
#include "core/tag.h"
#include "core/wq.h"
#include "core/xrc.h"

/* IBV_QP_* mask bits of ibv_modify_qp, same values. */
enum vb_qp_mask {
	QPM_STATE = 1 << 0,
	QPM_CUR_STATE = 1 << 1,
	QPM_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QPM_ACCESS_FLAGS = 1 << 3,
	QPM_PKEY_INDEX = 1 << 4,
	QPM_PORT = 1 << 5,
	QPM_QKEY = 1 << 6,
	QPM_AV = 1 << 7,
	QPM_PATH_MTU = 1 << 8,
	QPM_TIMEOUT = 1 << 9,
	QPM_RETRY_CNT = 1 << 10,
	QPM_RNR_RETRY = 1 << 11,
	QPM_RQ_PSN = 1 << 12,
	QPM_MAX_QP_RD_ATOMIC = 1 << 13,
	QPM_ALT_PATH = 1 << 14,
	QPM_MIN_RNR_TIMER = 1 << 15,
	QPM_SQ_PSN = 1 << 16,
	QPM_MAX_DEST_RD_ATOMIC = 1 << 17,
	QPM_PATH_MIG_STATE = 1 << 18,
	QPM_CAP = 1 << 19,
	QPM_DEST_QPN = 1 << 20,
	QPM_RATE_LIMIT = 1 << 25,
};

struct vb_qp_attr {
	enum vb_qp_state qp_state, cur_qp_state;
	uint8_t path_mtu; /* enum ibv_mtu, as the program set it */
	uint8_t path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	uint32_t access_flags;
	struct vb_av av, alt_av;
	uint16_t pkey_index;
	uint8_t port_num, max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	bool sqd_async_notify;
	bool sq_draining; /* set on the way to SQD; the transport clears it when
			   * what had begun is complete (vb_qp_drained) */
	uint32_t rate_limit;
};

/* Which way the requests of a queue pair go, from its first until RESET. */
enum vb_qp_way {
	WAY_PACKETS,
	WAY_OPEN, /* to another program of this host, perhaps: see near/near.h
		   */
	WAY_NEAR,
};

/* XRC: what sends has no receiving side, and what receives has only @share,
 * for its first holder. */
struct vb_qp_init {
	enum vb_qp_type type;
	struct vb_pd *pd;
	struct vb_cq *send_cq, *recv_cq;
	struct vb_srq *srq; /* or NULL */
	struct vb_qp_share *share;
	struct vb_memory *memory; /* of its queues, or NULL */
	struct vb_link *link;	  /* raw packets: its own */
	struct vb_rss *rss;	  /* and where they go; or NULL */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool sig_all;
	struct vb_async *async;
	void *owner;
};

/* The dispatcher's memory of a peer's IPv4 Identification. */
struct vb_peer_id {
	uint16_t last, rejected;
	uint8_t doubts; /* up with each refused, down with each good */
	vb_time at;
	bool known, has_rejected, any;
};

/* When something was last sent and came on a stream; whether a poll that has
 * completions looks for an answer first; answers in a row that came soon, and
 * how many must have (engine/poll_hint.c). Outlives the queue pair. */
struct vb_poll_hint {
	_Atomic vb_time sent, came;
	_Atomic bool looks;
	_Atomic unsigned answers, wary;
};

struct vb_qp {
	/* immutable while it lives; of an XRC target pd, recv_cq and srq are
	 * those of the packet being taken (core/xrc.h), drive */
	struct vb_adapter *adapter;
	struct vb_pd *pd;
	struct vb_cq *send_cq, *recv_cq;
	struct vb_srq *srq;
	struct vb_xrc_domain *xrc_domain;
	struct vb_async *async;
	struct vb_link *link; /* of its own, or NULL: the adapter's */
	struct vb_rss *rss;   /* receives go to other queues, or NULL */
	void *owner;
	enum vb_qp_type type;
	uint32_t index; /* in adapter->qps */

	struct vb_mutex drive; /* outlives the queue pair */
	_Atomic uint32_t kick; /* work came while another thread drove */
	_Atomic uint8_t state; /* enum vb_qp_state; drive to write */
	_Atomic uint32_t qpn;  /* 0: free; drive to write */

	/* drive */
	vb_time now; /* when it was last entered: completions carry it */
	struct vb_qp_attr attr;
	struct vb_route route; /* from AV and GID table */
	uint32_t mtu;	       /* bytes; min of path MTU and port's MTU */
	bool comm_est_sent, last_wqe_sent;
	struct vb_sq sq;
	struct vb_rq rq;
	struct vb_recv_wqe recv; /* the message being received into */
	bool recv_busy;		 /* recv holds one */
	bool in_run; /* packets are taken in a row, and at its end... */
	struct vb_mr_use run;	    /* ...this region is let go */
	struct vb_tag_note tagged;  /* with tags: the message */
	uint32_t recv_srqn;	    /* XRC: from here... */
	uint64_t recv_life;	    /* ...if it still is the same */
	struct vb_qp_share *shares; /* XRC: its holders */
	void *tp;		    /* the transport's state */
	void *near;		    /* what it needs to do without packets */
	void *stream;		   /* RNIC: the engine's, to send on; rx, too */
	struct vb_poll_hint await; /* RNIC: the engine's */
	uint8_t way;		   /* enum vb_qp_way */
	uint32_t row;		   /* in the roster */
	/* drive: the peer's, of a connection */
	struct vb_peer_id peer_id;

	/* adapter->mr_lock: of type 2, that it has bound: vb_mr.link */
	struct vb_chain *windows;
	/* drive: when a work request on a window asks again; VB_NEVER */
	vb_time local_at;
	void *held;	       /* drive: the engine's, what has no room yet */
	vb_time timer_at;      /* drive: what the engine queued; VB_NEVER */
	struct vb_timer timer; /* the engine's timer lock; initialised once */
	struct vb_qp *next_free;
};

/* -EINVAL, -ENOMEM, -EOPNOTSUPP (type); caps beyond vb_limits are -EINVAL.
 * On success init's caps hold what was given (at least what was asked). */
VB_MUST_CHECK int vb_qp_create(struct vb_adapter *a, struct vb_qp_init *init,
			       struct vb_qp **qp);
/* Leaves the table, its completion queues and its slots' memory. When it
 * returns no peer accesses memory by way of it. Takes drive, and waits without
 * it. */
void vb_qp_destroy(struct vb_qp *qp);

/* core/qp_state.c: the transition table. -EINVAL, or what the link's route()
 * says, with a logged reason; changes nothing when it fails. Takes drive. After
 * a move to RESET or ERR no peer accesses memory by way of it: that is waited
 * for, without drive. */
VB_MUST_CHECK int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr,
			       uint32_t mask, vb_time now);
void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr);

/*
 * What transports call, under drive.
 */

/*
 * Complete the oldest send WQE (sq.done) and step past it. A successful one
 * makes an entry only when signalled. byte_len is for READ and atomics.
 * This and vb_qp_recv_done() may find the completion queue full: then the
 * queue pair is in ERR, all is flushed, when they return. With none to
 * complete they do nothing.
 */
void vb_qp_send_done(struct vb_qp *qp, enum vb_wc_status status);

/* Take the next receive into qp->recv. False: none. */
bool vb_qp_recv_begin(struct vb_qp *qp);

struct vb_recv_done {
	enum vb_wc_status status;
	enum vb_wc_op opcode;
	uint32_t byte_len, imm, src_qp;
	uint8_t wc_flags;
	uint8_t sl; /* enum vb_wc_l3, of a datagram; else 0 */
	bool solicited;
	uint32_t flow_tag;
};
/* Complete the receive that qp->recv holds. */
void vb_qp_recv_done(struct vb_qp *qp, const struct vb_recv_done *d);

/*
 * Into ERR: what is in progress and all that is queued completes with
 * FLUSH_ERR (IBA 10.3.1), LAST_WQE is raised with an SRQ. @event: an
 * enum vb_event_type to post, or -1. The transport completes the WQE that is
 * at fault with its own status first. In ERR already: nothing. The
 * transport's enter() is not called: it is the transport that asks.
 */
void vb_qp_fail(struct vb_qp *qp, int event);
/* Into SQE: what is queued for sending completes with FLUSH_ERR, receiving
 * goes on (IBA 10.3.1.7: UC and UD). As above, but for enter(). */
void vb_qp_stop_sends(struct vb_qp *qp);
/* Flush what was posted since, when in ERR or SQE. Cheap when there is none. */
void vb_qp_flush(struct vb_qp *qp);
void vb_qp_event(struct vb_qp *qp, enum vb_event_type type);
/* In SQD, all that had begun is complete: SQ_DRAINED, when asked for. Once. */
void vb_qp_drained(struct vb_qp *qp);
/* With drive held: the roster is to tell the state, and what was last set. */
void vb_qp_note(const struct vb_qp *qp);
/* Queues, completions and attributes as after create: core/qp_state.c's. */
void vb_qp_clear(struct vb_qp *qp);

/* Names for messages. */
const char *vb_qp_state_name(enum vb_qp_state s);

#endif
