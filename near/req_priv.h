/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's inside: near/req.c takes work requests in order, near/lane.c
 * puts them on the lane, near/here.c carries them out, near/answer.c hears what
 * became of them. All under drive.
 */
#ifndef NEAR_REQ_PRIV_H
#define NEAR_REQ_PRIV_H

#include "near/near_priv.h"

enum rule_traits {
	ASKS = 1 << 0, /* counts among max_rd_atomic */
	HAS_IMM = 1 << 1,
	HAS_INV = 1 << 2,
	WRITES = 1 << 3, /* places data there */
	ATOMIC = 1 << 4,
	LOCAL = 1 << 5,	  /* tells the peer nothing */
	FETCHES = 1 << 6, /* brings data here */
};

struct vb_near_rule {
	bool valid;
	uint8_t op;	/* enum vb_near_op, when its data goes along */
	uint8_t traits; /* enum rule_traits */
	uint8_t need;	/* enum vb_access of queue pair and key */
};

/* By enum vb_wr_op; what is not valid here is all zeros. */
extern const struct vb_near_rule vb_near_rules[];
extern const unsigned vb_near_rule_count;

/* What became of the next work request. */
enum vb_next {
	NEXT_GOES, /* on: done, or on the lane */
	NEXT_WAITS,
	NEXT_LATER, /* enough for this step */
};

static inline const struct vb_near_rule *
vb_near_rule(const struct vb_send_wqe *wqe)
{
	return &vb_near_rules[wqe->op];
}

static inline bool vb_near_sends(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

static inline uint32_t vb_near_outstanding(const struct vb_qp *qp)
{
	return vb_nq(qp)->sent - qp->sq.done;
}

/* near/req.c */
/* Requests stand on the lane: look now and then whether the peer lives. */
void vb_near_start_clock(struct vb_qp *qp, vb_time now);
/* The peer has done something for us. */
void vb_near_progress(struct vb_qp *qp);
/* All that is on the lane is to go again: it will be answered as not
 * executed. */
void vb_near_go_back(struct vb_qp *qp);
/* Try again, each time a little later. */
void vb_near_back_off(struct vb_qp *qp, vb_time now);
/* Tried in vain: the same, or it fails when that has gone on for too long. */
void vb_near_be_silent(struct vb_qp *qp, vb_time now);
void vb_near_fail_oldest(struct vb_qp *qp, enum vb_wc_status status);
/* The next one fails here, once all before it has ended. NEXT_WAITS. */
enum vb_next vb_near_fail_here(struct vb_qp *qp, enum vb_wc_status status);
/* The next one is done. NEXT_GOES. */
enum vb_next vb_near_finish_here(struct vb_qp *qp);

/* near/lane.c */
/* @fault: with NEAR_FAULT, what we may not do. */
enum vb_next vb_lane_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 enum vb_near_op op, enum vb_fault fault, vb_time now);
/* A SEND, without a look at the time. False: not now. */
bool vb_lane_put_quick(struct vb_qp *qp, const struct vb_send_wqe *wqe);
/* Small WRITEs by one record. False: not now. */
bool vb_lane_put_many(struct vb_qp *qp, vb_time now);
/* Tell the peer's program, which may wait for it, that the connection is
 * established. */
void vb_lane_tell_news(struct vb_qp *qp);
#define VB_MANY_LEAST 8 /* WRITEs that are worth a record of their own */

/* near/here.c */
/* Place or fetch it, so much in one step. NEXT_WAITS: it could not be done, and
 * what follows from that is done. */
enum vb_next vb_here_do(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now);
/* Several small WRITEs at once. False: not even one. */
bool vb_here_do_many(struct vb_qp *qp, vb_time now);

#endif
