/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of iWARP: posting requests, and checking results. */
#ifndef PROTOCOL_IWARP_FIXTURE_H
#define PROTOCOL_IWARP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/support/pipe.h"

/* offset of the remote buffer in a side's memory */
#define HALF (PIPE_MEM / 2)

static inline enum vb_qp_state state_of(const struct pipe *p, unsigned side)
{
	return atomic_load(&p->pair.qp[side]->state);
}

static inline void fill(struct pipe *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++)
		for (uint32_t at = 0; at < PIPE_MEM; at++)
			p->mem[i][at] = (uint8_t)(at * 7 + at / 251 + i * 101);
}

static inline struct vb_send_wqe wr(enum vb_wr_op op, uint32_t len)
{
	return (struct vb_send_wqe){ .op = (uint8_t)op,
				     .length = len,
				     .flags = SEND_SIGNALED };
}

static inline struct vb_send_wqe wr_at(struct pipe *p, enum vb_wr_op op,
				       uint32_t len, uint32_t remote)
{
	struct vb_send_wqe w = wr(op, len);

	w.remote_addr = (uintptr_t)p->mem[1] + remote;
	return w;
}

static inline void expect_sent(struct pipe *p, unsigned side,
			       enum vb_wc_status status)
{
	struct vb_cqe e;

	assert_true(sim_poll(p->pair.send_cq[side], &e));
	assert_int_equal(e.status, status);
}

static inline struct vb_cqe expect_recv(struct pipe *p, unsigned side,
					enum vb_wc_status status)
{
	struct vb_cqe e;

	assert_true(sim_poll(p->pair.recv_cq[side], &e));
	assert_int_equal(e.status, status);
	return e;
}

static inline void expect_idle(struct pipe *p)
{
	struct vb_cqe e;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_false(sim_poll(p->pair.send_cq[i], &e));
		assert_false(sim_poll(p->pair.recv_cq[i], &e));
	}
}

static inline uint64_t word_at(struct pipe *p, unsigned side, uint32_t at)
{
	uint64_t v;

	memcpy(&v, p->mem[side] + at, sizeof(v));
	return v;
}

/* Returns the bytes of the last Terminate message that @side sent. */
static const uint8_t *term_of(const struct pipe *p, unsigned side)
{
	const uint8_t *last = NULL;

	for (size_t at = 0; at < p->wire[side].put;) {
		const uint8_t *fpdu = p->wire[side].bytes + at;

		if (vb_load_be(fpdu + 2, 2) == 0x4147)
			last = fpdu;
		at += vb_mpa_fpdu_bytes((uint32_t)vb_load_be(fpdu, 2));
	}
	assert_non_null(last);
	return last + 20;
}

static inline void VB_UNCHECKED expect_term(const struct pipe *p,
					    unsigned layer, unsigned etype,
					    unsigned code)
{
	const uint8_t *t = term_of(p, 1);

	assert_int_equal(t[0], layer << 4 | etype);
	assert_int_equal(t[1], code);
	assert_int_equal(state_of(p, 0), QPS_ERR);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		assert_true(vb_iw_wants_close(p->pair.qp[i]));
}

#endif
