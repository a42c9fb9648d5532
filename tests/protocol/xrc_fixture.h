/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC objects for tests: side 1 has a second SRQ, and a third one in another
 * XRC domain. */
#ifndef PROTOCOL_XRC_FIXTURE_H
#define PROTOCOL_XRC_FIXTURE_H

#include "ib/xrc_forward.h"
#include "tests/support/bench.h"

#include <string.h>

struct xrc {
	struct bench *b;
	/* a second protection domain of side 1, besides the bench's */
	struct vb_pd *pd;
	struct vb_mr *mr; /* a region of side 1's memory in the domain @pd */
	/* an SRQ of side 1's first XRC domain, with the domain @pd */
	struct vb_srq *srq;
	struct vb_cq *cq;	/* completion queue of @srq */
	struct vb_xrcd *far;	/* a second XRC domain of side 1 */
	struct vb_srq *strange; /* an SRQ in the XRC domain @far */
};

static inline struct vb_srq *make_srq(struct sim_side *side, struct vb_pd *pd,
				      struct vb_xrcd *x, struct vb_cq *cq)
{
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(pd, 64, 2, &side->async, NULL, &srq), 0);
	srq->owner = srq;
	assert_int_equal(vb_xrc_srq_join(srq, x, cq), 0);
	return srq;
}

static inline void open_xrc_as(struct xrc *t, const struct vb_qp_attr *attr)
{
	struct sim_caps caps = sim_caps;
	struct sim_side *side;

	caps.type = QPT_XRC_SEND;
	*t = (struct xrc){ .b = bench_open_as(attr, &caps) };
	side = &t->b->sim.side[1];
	assert_int_equal(vb_pd_create(&side->adapter, &t->pd), 0);
	assert_int_equal(
		vb_mr_register(
			t->pd, t->b->mem[1], BENCH_MEM, (uintptr_t)t->b->mem[1],
			ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
				ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
			&t->mr),
		0);
	assert_int_equal(vb_cq_create_in(&side->adapter, 64, NULL, &side->async,
					 NULL, &t->cq),
			 0);
	t->srq = make_srq(side, t->pd, t->b->pair.xrcd, t->cq);
	assert_int_equal(vb_xrcd_open(&side->adapter, NULL, 0, &t->far), 0);
	t->strange = make_srq(side, t->pd, t->far, t->cq);
}

static inline void open_xrc(struct xrc *t)
{
	open_xrc_as(t, &sim_attr);
}

static inline void close_xrc(struct xrc *t)
{
	if (t->srq)
		assert_int_equal(vb_srq_destroy(t->srq), 0);
	assert_int_equal(vb_srq_destroy(t->strange), 0);
	assert_int_equal(vb_cq_destroy(t->cq), 0);
	assert_int_equal(vb_xrcd_close(t->far), 0);
	assert_int_equal(vb_mr_deregister(t->mr), 0);
	assert_int_equal(vb_pd_destroy(t->pd), 0);
	bench_close(t->b);
}

static inline void post_recv(struct xrc *t, uint64_t wr_id, uint32_t at,
			     uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)t->b->mem[1] + at, len, t->mr->key };

	assert_int_equal(vb_rq_post(&t->srq->rq, wr_id, &sge, 1), 0);
}

/* Post a request to the SRQ @t->srq instead of the bench's own SRQ. */
static inline void post(struct xrc *t, uint64_t wr_id, enum vb_wr_op op,
			uint32_t from, uint32_t to, uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)t->b->mem[0] + from, len,
			      t->b->mr[0]->key };
	struct vb_send_wqe wqe = {
		.wr_id = wr_id,
		.op = (uint8_t)op,
		.flags = SEND_SIGNALED,
		.imm = 0x11223344,
		.length = len,
		.num_sge = 1,
		.remote_addr = (uintptr_t)t->b->mem[1] + to,
		.rkey = t->mr->key,
		.compare_add = 1,
		.srqn = t->srq->number,
	};

	sim_post_send(t->b->pair.qp[0], &wqe, &sge);
}

#endif
