/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection on a test bench: a clean wire, memory on both sides, and a
 * record of every packet. For cmocka tests.
 */
#ifndef TESTS_SUPPORT_BENCH_H
#define TESTS_SUPPORT_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/mr.h"
#include "tests/support/sim.h"

#define BENCH_MEM (1u << 20)
#define BENCH_LOG 8192

struct bench_packet {
	unsigned from;
	vb_time at;
	struct vb_ib_pkt pkt; /* its payload is gone */
};

struct bench {
	struct sim sim;
	struct sim_pair pair;
	struct vb_qp_attr attr;
	uint8_t mem[SIM_SIDES][BENCH_MEM];
	struct vb_mr *mr[SIM_SIDES];
	struct bench_packet log[BENCH_LOG];
	unsigned logged, read; /* read: where bench_next() stands */
	/* May lose a packet; counts how often it said so. */
	bool (*lose)(struct bench *b, unsigned from,
		     const struct vb_ib_pkt *pkt);
	unsigned lost;
};

struct bench *bench_open(void);
struct bench *bench_open_as(const struct vb_qp_attr *attr,
			    const struct sim_caps *caps);
void bench_close(struct bench *b);

/* Let @us microseconds pass. */
void bench_wait(struct bench *b, unsigned us);
/* The next packet recorded that @from sent, or NULL. */
const struct vb_ib_pkt *bench_next(struct bench *b, unsigned from);
/* How many of @code (without class) did @from send? */
unsigned bench_count(const struct bench *b, unsigned from, uint8_t code);

/* A packet from side 0's queue pair to side 1's: request @nth counted from
 * the first PSN, AckReq set, RETH for all of side 1's memory start. */
struct vb_ib_pkt bench_request(const struct bench *b, uint8_t code, int nth);
/* The other way: a response to side 0's request @nth. */
struct vb_ib_pkt bench_response(const struct bench *b, uint8_t code, int nth,
				uint8_t syndrome);
/* Send it, with @len bytes of @fill, and let it arrive. */
void bench_inject(struct bench *b, unsigned to, struct vb_ib_pkt *pkt,
		  uint32_t len, uint8_t fill);
/* @from answers with an AETH: the PSN of request @nth. */
void bench_expect_aeth(struct bench *b, unsigned from, uint8_t syndrome,
		       int nth);
void bench_expect_silence(struct bench *b, unsigned from);

/* Side @from posts, signalled, @len bytes of its memory at @at. wr_id counts
 * from the posts of this door. */
void bench_post(struct bench *b, unsigned from, enum vb_wr_op op, uint32_t at,
		uint32_t len, uint8_t flags);
void bench_post_recv(struct bench *b, unsigned side, uint64_t wr_id,
		     uint32_t at, uint32_t len);
/* One completion is there, and says this. */
void bench_expect_wc(struct vb_cq *cq, uint64_t wr_id,
		     enum vb_wc_status status);
void bench_expect_no_wc(struct vb_cq *cq);

#endif
