/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of two programs of one host: one connection, memory on
 * both sides, and the result of each request. */
#ifndef PROTOCOL_NEAR_FIXTURE_H
#define PROTOCOL_NEAR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/mr.h"
#include "tests/support/near_sim.h"

#define STAGE_MEM (1u << 20)
#define MOST_WC	  160
#define NO_KEY	  0x77777777u

struct stage {
	struct sim sim;
	struct sim_pair pair;
	uint8_t mem[SIM_SIDES][STAGE_MEM] __attribute__((aligned(64)));
	struct vb_mr *mr[SIM_SIDES];
	uint64_t posted, recvs;
};

/* The statuses of all completions of one side, in their order. */
struct ends {
	unsigned sends, recvs;
	uint8_t send[MOST_WC], recv[MOST_WC];
};

static inline struct stage *stage_open(const struct sim_path *path,
				       uint64_t seed,
				       const struct vb_qp_attr *attr)
{
	const uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			     ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	struct stage *t = aligned_alloc(64, (sizeof(*t) + 63) & ~63ul);
	struct sim_caps caps = sim_caps;

	assert_non_null(t);
	memset(t, 0, sizeof(*t));
	caps.wr = 128;
	sim_open_as(&t->sim, seed, path);
	sim_connect(&t->sim, &t->pair, attr ? attr : &sim_attr, &caps);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		for (uint32_t at = 0; at < STAGE_MEM; at++)
			t->mem[i][at] = (uint8_t)(at * 31 + at / 251 + 97 * i);
		assert_int_equal(vb_mr_register(t->sim.side[i].pd, t->mem[i],
						STAGE_MEM, (uintptr_t)t->mem[i],
						all, &t->mr[i]),
				 0);
	}
	return t;
}

static inline void stage_close(struct stage *t)
{
	const char *crime = t->sim.path && t->sim.path->crime
				    ? t->sim.path->crime(&t->sim)
				    : NULL;

	if (crime)
		fail_msg("%s", crime);
	sim_disconnect(&t->sim, &t->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (t->mr[i])
			assert_int_equal(vb_mr_deregister(t->mr[i]), 0);
	sim_close(&t->sim);
	free(t);
}

/* Returns a request of @len bytes, from offset @at of side 0's memory to the
 * same offset of side 1's. */
static inline struct vb_send_wqe stage_wqe(struct stage *t, enum vb_wr_op op,
					   uint32_t at, uint32_t len)
{
	return (struct vb_send_wqe){
		.wr_id = t->posted,
		.op = (uint8_t)op,
		.flags = SEND_SIGNALED,
		.length = len,
		.num_sge = 1,
		.imm = 0x1234,
		.remote_addr = (uintptr_t)t->mem[1] + at,
		.rkey = t->mr[1] ? t->mr[1]->key : NO_KEY,
		.compare_add = 1,
	};
}

static inline void stage_post(struct stage *t, const struct vb_send_wqe *wqe,
			      uint32_t at, uint32_t lkey)
{
	const struct vb_sge sge = { (uintptr_t)t->mem[0] + at, wqe->length,
				    lkey };

	sim_post_send(t->pair.qp[0], wqe, &sge);
	t->posted++;
}

static inline void stage_recv(struct stage *t, uint32_t at, uint32_t len,
			      uint32_t lkey)
{
	const struct vb_sge sge = { (uintptr_t)t->mem[1] + at, len, lkey };

	sim_post_recv(t->pair.qp[1], t->recvs++, &sge, 1);
}

/* Poll the completion queues of @side and append the statuses to @e. */
static inline void stage_poll(struct stage *t, unsigned side, struct ends *e)
{
	struct vb_cqe wc;

	while (sim_poll(t->pair.send_cq[side], &wc)) {
		assert_true(e->sends < MOST_WC);
		assert_int_equal(wc.wr_id, e->sends);
		e->send[e->sends++] = wc.status;
	}
	while (sim_poll(t->pair.recv_cq[side], &wc)) {
		assert_true(e->recvs < MOST_WC);
		assert_int_equal(wc.wr_id, e->recvs);
		e->recv[e->recvs++] = wc.status;
	}
}

#endif
