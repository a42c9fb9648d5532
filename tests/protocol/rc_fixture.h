/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects and helpers of the tests of RC queue pairs. */
#ifndef PROTOCOL_RC_FIXTURE_H
#define PROTOCOL_RC_FIXTURE_H

#include "ib/rc.h"
#include "tests/support/bench.h"

#include <string.h>

#define MTU	    1024 /* path MTU of sim_attr in bytes */
#define NOT_OUR_KEY 0x77777777u

static inline enum vb_qp_state state_of(const struct bench *b, unsigned side)
{
	return atomic_load(&b->pair.qp[side]->state);
}

static inline uint64_t counter(const struct bench *b, unsigned side,
			       enum vb_counter c)
{
	return atomic_load(&b->sim.side[side].adapter.counters[c]);
}

static inline void inject_aeth(struct bench *b, uint8_t syndrome, int nth)
{
	struct vb_ib_pkt pkt = bench_response(b, CODE_ACK, nth, syndrome);

	bench_inject(b, 0, &pkt, 0, 0);
}

/* Lose every packet of side 1, because the test sends its responses. */
static inline bool lose_answers(struct bench *b, unsigned from,
				const struct vb_ib_pkt *pkt)
{
	return from == 1;
}

static inline bool lose_all(struct bench *b, unsigned from,
			    const struct vb_ib_pkt *pkt)
{
	return true;
}

static inline struct bench *open_alone(void)
{
	struct bench *b = bench_open();

	b->lose = lose_all;
	return b;
}

static inline void inject_code(struct bench *b, uint8_t code, int nth,
			       uint32_t length, uint32_t payload)
{
	struct vb_ib_pkt pkt = bench_request(b, code, nth);

	pkt.reth.length = length;
	bench_inject(b, 1, &pkt, payload, 0xee);
}

#endif
