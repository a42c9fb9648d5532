/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the requester: near/req.c handles work requests in order,
 * near/lane.c puts requests on the lane, near/here.c copies to and from the
 * peer's memory, near/answer.c processes answers. The caller of every function
 * holds qp->drive.
 */
#ifndef NEAR_REQ_PRIV_H
#define NEAR_REQ_PRIV_H

#include "near/near_priv.h"

enum rule_traits {
	ASKS = 1 << 0, /* the operation needs max_rd_atomic to be above 0 */
	HAS_IMM = 1 << 1,
	HAS_INV = 1 << 2,
	WRITES = 1 << 3, /* the operation places data in the peer's memory */
	ATOMIC = 1 << 4,
	/* the operation changes only this program's windows and keys */
	LOCAL = 1 << 5,
	/* the operation places data in this program's memory */
	FETCHES = 1 << 6,
};

struct vb_near_rule {
	bool valid;
	/* an enum vb_near_op, used when the data fits on the lane */
	uint8_t op;
	uint8_t traits; /* bits of enum rule_traits */
	/* The rights (enum vb_access) that the peer's queue pair and key must
	 * grant. */
	uint8_t need;
};

/* The rules of work requests, indexed by enum vb_wr_op. Operations that near/
 * does not carry out have a row of zeros. */
extern const struct vb_near_rule vb_near_rules[];
extern const unsigned vb_near_rule_count;

/* The result of trying the next work request. */
enum vb_next {
	/* the request is complete or on the lane: continue with the next one */
	NEXT_GOES,
	NEXT_WAITS,
	NEXT_LATER, /* this step has copied enough: continue in another step */
};

static inline const struct vb_near_rule *
vb_near_rule(const struct vb_send_wqe *wqe)
{
	return &vb_near_rules[wqe->op];
}

/* Is @qp in a state in which it may send? */
static inline bool vb_near_sends(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* The request @wqe has begun, for the first time: vb_near_count() will count
 * it. */
static inline void vb_near_note(struct vb_near_qp *nq,
				const struct vb_send_wqe *wqe)
{
	nq->noted++;
	nq->noted_bytes += wqe->length;
}

/* Returns the number of requests on the lane that are not complete. */
static inline uint32_t vb_near_outstanding(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return vb_nq(qp)->sent - qp->sq.done;
}

/* Functions of near/req.c. */
/* Add what was noted to the adapter's counters: once for each step and each
 * answer, because atomic additions for each request would take longer. */
void vb_near_count(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Requests stand on the lane: start to check from time to time that the peer
 * still runs. */
void vb_near_start_clock(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The peer has carried out a request of @qp: set the counts of silences and of
 * RNR retries back to 0. */
void vb_near_progress(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Send all requests that stand on the lane again, because the peer will answer
 * them as not executed. */
void vb_near_go_back(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Retry after a pause that doubles each time, up to 10 ms. */
void vb_near_back_off(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The peer did not accept the request: retry as vb_near_back_off() does, or
 * fail the oldest work request when the peer has been silent for too long (IBA
 * 9.7.6.1.3). */
void vb_near_be_silent(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Complete the oldest work request with @status, and move @qp to ERR. */
void vb_near_fail_oldest(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);
/* Fail the next work request on this side if all earlier ones have ended;
 * otherwise a later step does so. Returns NEXT_WAITS. */
enum vb_next vb_near_fail_here(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);
/* The next work request is complete. Returns NEXT_GOES. */
enum vb_next vb_near_finish_here(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of near/lane.c. */
/* Put the work request on the lane as @op. @fault: with NEAR_FAULT, the reason
 * why the requester has no right to make the request. NEXT_WAITS: the lane is
 * full, or the work request's own memory cannot be read. */
enum vb_next vb_lane_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 enum vb_near_op op, enum vb_fault fault, vb_time now)
	VB_REQUIRES(qp->drive);
/* Put a SEND on the lane without reading the clock. False: this is not possible
 * now. */
bool vb_lane_put_quick(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive);
/* Put the small WRITEs that begin at index nq->sent on the lane, as one
 * NEAR_MANY record. False: this is not possible now. */
bool vb_lane_put_many(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Tell the peer's program that the connection is established: that program may
 * be waiting for the event, and accesses to its memory do not show it. */
void vb_lane_establish(struct vb_qp *qp) VB_REQUIRES(qp->drive);
#define VB_MANY_LEAST 8 /* the fewest WRITEs for which a record pays */

/* Functions of near/here.c. */
/* Carry out a READ or WRITE by copying, at most nq->step_left bytes in this
 * call. NEXT_WAITS: the request failed, and this call has done what follows: a
 * completion, a message to the peer, or a timer. NEXT_LATER: this step has
 * copied enough bytes. */
enum vb_next vb_here_do(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
	VB_REQUIRES(qp->drive);
/* Carry out several small WRITEs with one system call. False: none was carried
 * out. */
bool vb_here_do_many(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

#endif
