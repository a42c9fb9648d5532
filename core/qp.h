/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, modify, complete, flush, destroy.
 *
 * The memory of a destroyed queue pair is recycled, never freed: a thread that
 * found it in the table a moment ago can still lock it and compare its qpn.
 */
#ifndef CORE_QP_H
#define CORE_QP_H

#include "core/ah.h"
#include "core/cq.h"
#include "core/mr.h"
#include "core/wq.h"

/* The IBV_QP_* mask bits of ibv_modify_qp(), with the same values. */
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
	/* code of the path MTU (enum ibv_mtu), as the program set it */
	uint8_t path_mtu;
	uint8_t path_mig_state; /* an enum vb_mig_state (core/migrate.h) */
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	uint32_t access_flags;
	struct vb_av av, alt_av;
	uint16_t pkey_index;
	uint8_t port_num, max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	/* The alternate path's P_Key index, port and timeout; alt_port_num 0:
	 * no alternate path is loaded. */
	uint16_t alt_pkey_index;
	uint8_t alt_port_num, alt_timeout;
	bool sqd_async_notify;
	/* The queue pair is on its way to state SQD. The transport clears this
	 * flag when every request that had begun is complete
	 * (vb_qp_drained). */
	bool sq_draining;
	uint32_t rate_limit;
};

/* How the requests of a queue pair reach the peer. The way is decided at the
 * first request, and kept until RESET. */
enum vb_qp_way {
	WAY_PACKETS,
	/* Not decided yet: the peer may be a process of this host
	 * (near/near.h). */
	WAY_OPEN,
	WAY_NEAR,
};

/* The parameters of vb_qp_create(). An XRC sending queue pair has no receiving
 * side; an XRC receiving one has only @share, which is its first handle. */
struct vb_qp_init {
	enum vb_qp_type type;
	struct vb_pd *pd;
	struct vb_cq *send_cq, *recv_cq;
	struct vb_srq *srq; /* the shared receive queue, or NULL */
	struct vb_qp_share *share;
	/* allocator of the work queues' memory; NULL: the heap */
	struct vb_memory *memory;
	/* the link of a queue pair for raw packets, which no other queue pair
	 * uses */
	struct vb_link *link;
	/* receive-side scaling of the received frames to other queues; or
	 * NULL */
	struct vb_rss *rss;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool sig_all;
	struct vb_async *async;
	void *owner;
};

/* Pointers of upper rooms in a queue pair: each room has one, to a struct that
 * core does not know. attach() sets the pointer; detach() frees the struct and
 * sets NULL, or keeps both. Core never changes these pointers, even when it
 * recycles the memory. Protected by drive; PRIV_ENGINE, which is set only once,
 * is also read without a lock. */
enum vb_qp_priv {
	PRIV_TRANSPORT, /* the pointer of ib/ or iwarp/ */
	PRIV_NEAR,
	PRIV_ENGINE,
	PRIV_COUNT,
};

/* Tag matching of the message that is being received (core/tag.h). */
struct vb_tag_note {
	uint8_t kind; /* the state of the message, an enum vb_tag_kind */
	/* number of messages that have begun on the queue pair */
	uint32_t serial;
	uint32_t app_ctx;
	uint64_t tag;
};

struct vb_transport_ops;

struct vb_qp {
	/* Immutable while the queue pair lives. Exception: an XRC target's pd,
	 * recv_cq and srq are those of the packet in progress, under drive
	 * (core/xrc.h). */
	struct vb_adapter *adapter;
	struct vb_pd *pd;
	struct vb_cq *send_cq, *recv_cq;
	struct vb_srq *srq;
	struct vb_xrc_domain *xrc_domain;
	struct vb_async *async;
	/* a link that only this queue pair uses; NULL: the adapter's link */
	struct vb_link *link;
	/* receive-side scaling of the received frames to other queues; or
	 * NULL */
	struct vb_rss *rss;
	void *owner;
	/* The port by which packets come and go: port 1 in RESET, then the one
	 * that the program chooses. Written under drive; read without by
	 * threads that post or look at a frame. */
	struct vb_port *_Atomic port;
	/* the port of the alternate path while packets may come by it
	 * (core/migrate.h), or NULL; written and read as @port */
	struct vb_port *_Atomic alt_port;
	enum vb_qp_type type;
	uint32_t index; /* index of this queue pair in adapter->qps */

	/* The lock of the protocol state: all work on the queue pair is done
	 * under this lock. The lock stays valid after the queue pair is
	 * destroyed. */
	struct vb_mutex drive;
	/* the state, an enum vb_qp_state; written under drive */
	_Atomic uint8_t state;
	/* the queue pair number; 0: not in use; written under drive */
	_Atomic uint32_t qpn;

	/* The fields below are protected by drive. */

	/* the time of the last call of the transport, which completions
	 * carry: vb_qp_advance() sets it */
	vb_time now;
	struct vb_qp_attr attr;
	/* the route to the peer, resolved from the address vector and the GID
	 * table */
	struct vb_route route;
	/* the route of the alternate path, if one is loaded */
	struct vb_route alt_route;
	/* How often the queue pair has moved to its alternate path. The
	 * transport compares this number with the one that it saw last. */
	uint32_t migrations;
	uint32_t mtu; /* the smaller of path MTU and port MTU, in bytes */
	bool comm_est_sent, last_wqe_sent;
	/* the enum vb_why of the error that was told first; 0: none
	 * (core/why_qp.h) */
	uint16_t why;
	struct vb_sq sq;
	struct vb_rq rq;
	/* the receive WQE of the message in progress */
	struct vb_recv_wqe recv;
	bool recv_busy; /* @recv holds a receive WQE */
	/* While this is set, vb_qp_flush() flushes no receive, since receives
	 * complete in order: a transport has taken the WQE out of @recv,
	 * because a peer may still write into its memory. The transport brings
	 * the WQE back, clears this and calls vb_qp_flush(). */
	bool recv_lent;
	struct vb_tag_note tagged; /* tag matching of the message in progress */
	/* with XRC: the number of the SRQ from which @recv was taken */
	uint32_t recv_srqn;
	/* with XRC: the `life` of that SRQ, which shows whether the number was
	 * reused */
	uint64_t recv_life;
	/* with XRC: the list of the handles that share a target queue
	 * pair */
	struct vb_qp_share *shares;
	/* The transport's functions for this queue pair. attach() sets the
	 * pointer. The engine changes it when the peer turns out to be on this
	 * host (core/transport.h). */
	const struct vb_transport_ops *ops;
	/* pointers of the upper rooms, indexed by enum vb_qp_priv */
	void *priv[PRIV_COUNT];
	/* How requests reach the peer, an enum vb_qp_way. Core sets WAY_PACKETS
	 * in RESET; the transports, which do not see each other, read here what
	 * one of them has decided. */
	uint8_t way;
	uint32_t row; /* number of this queue pair's row in the roster */

	/* Under adapter->mr_lock: the windows of type 2 that this queue pair
	 * has bound (vb_mr.link). */
	struct vb_chain *windows;
	/* Under drive: when to try a work request on a window again; or
	 * VB_NEVER. */
	vb_time local_at;
	struct vb_qp *next_free;
};

static inline struct vb_port *vb_qp_port(const struct vb_qp *qp)
{
	/* Relaxed: ports live as long as their adapter. */
	return atomic_load_explicit(&qp->port, memory_order_relaxed);
}

/* Create a queue pair in RESET; the caller owns it. 0; -EINVAL: capacities
 * beyond vb_limits, or objects of different adapters; -ENOMEM; -EOPNOTSUPP: the
 * adapter does not have this type. On success @init has the real capacities,
 * which are at least those requested. */
VB_MUST_CHECK int vb_qp_create(struct vb_adapter *a, struct vb_qp_init *init,
			       struct vb_qp **qp);
/* Remove the queue pair from the table and its entries from the completion
 * queues, and free its queues. When it returns no peer's access through it is
 * in progress. Takes drive, and waits without it. */
void vb_qp_destroy(struct vb_qp *qp) VB_EXCLUDES(qp->drive);

/* core/qp_state.c: move to another state (IBA 10.3.1). 0; -EINVAL or
 * an error of the link's route(), with the reason in the log: then nothing has
 * changed. Takes drive. After a move to RESET or ERR no peer's access through
 * the queue pair is in progress: the call waits for that without drive. */
VB_MUST_CHECK int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr,
			       uint32_t mask, vb_time now)
	VB_EXCLUDES(qp->drive);
/* Copy the queue pair's state to @attr, and the other attributes as the program
 * last set them. Takes drive. */
void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr)
	VB_EXCLUDES(qp->drive);

/* Advance the queue pair's time to @now, for its next step, and return it. It
 * never goes back: if another thread drove the queue pair meanwhile, with a
 * later time, that stays. Timers and the timestamps of completions rest on it,
 * so nothing else sets @qp->now. */
static inline vb_time vb_qp_advance(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	qp->now = VB_MAX(now, qp->now);
	return qp->now;
}

/* Functions that transports call, under drive. */

/* Complete the oldest WQE of the send queue (sq.done) and advance past it; an
 * empty queue stays as it is. A successful WQE makes a completion entry only if
 * it is signaled. If vb_qp_send_done() or vb_qp_recv_done() finds the
 * completion queue full, the queue pair is in ERR and flushed when the function
 * returns. */
void vb_qp_send_done(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);

/* Copy the next receive of the receive queue to qp->recv. False: no receive is
 * posted. */
bool vb_qp_recv_begin(struct vb_qp *qp) VB_REQUIRES(qp->drive);

struct vb_recv_done {
	enum vb_wc_status status;
	enum vb_wc_op opcode;
	uint32_t byte_len, imm, src_qp;
	uint8_t wc_flags;
	struct vb_wc_from from; /* where a datagram came from; otherwise 0 */
	bool solicited;
	union {
		uint32_t flow_tag;
		/* with an error: the cause, qp->why */
		uint32_t why;
	};
};
/* Complete the receive WQE that is in qp->recv. */
void vb_qp_recv_done(struct vb_qp *qp, const struct vb_recv_done *d)
	VB_REQUIRES(qp->drive);

/*
 * Move to ERR: the requests in progress and those queued complete with
 * FLUSH_ERR (IBA 10.3.1), and with an SRQ this raises LAST_WQE. @event is an
 * enum vb_event_type to raise, or -1. The transport first completes the WQE at
 * fault with its own status. Does nothing if the queue pair is in ERR. Does not
 * call the transport's enter(), since the transport is the caller.
 */
void vb_qp_fail(struct vb_qp *qp, int event) VB_REQUIRES(qp->drive);
/* Move to SQE: queued sends complete with FLUSH_ERR, but the queue pair still
 * receives (IBA 10.3.1.7; UC and UD). Does not call the transport's enter(). */
void vb_qp_stop_sends(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* In ERR or SQE: flush the requests that were posted since the state was
 * entered. Costs little if there are none. */
void vb_qp_flush(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Raise an asynchronous event for the queue pair's owner and for every XRC
 * handle. */
void vb_qp_event(struct vb_qp *qp, enum vb_event_type type)
	VB_REQUIRES(qp->drive);
/* In SQD, when every request that had begun is complete: raise SQ_DRAINED if
 * the program has asked for it. Once per stay in SQD. */
void vb_qp_drained(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Update the queue pair's row in the roster. The caller holds drive. */
void vb_qp_note(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Return queues, completions and attributes to their state after create (for
 * core/qp_state.c). */
void vb_qp_clear(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Returns the name of a state, for messages; a static string. */
const char *vb_qp_state_name(enum vb_qp_state s);

#endif
