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
	/* headers of a recorded packet, without its payload */
	struct vb_ib_pkt pkt;
};

struct bench {
	struct sim sim;
	struct sim_pair pair;
	struct vb_qp_attr attr;
	uint8_t mem[SIM_SIDES][BENCH_MEM] __attribute__((aligned(64)));
	struct vb_mr *mr[SIM_SIDES];
	struct bench_packet log[BENCH_LOG];
	/* number of packets in @log, and index of the next for bench_next() */
	unsigned logged, read;
	/* A function that may lose a packet; @lost counts the packets that it
	 * lost. */
	bool (*lose)(struct bench *b, unsigned from,
		     const struct vb_ib_pkt *pkt);
	unsigned lost;
};

struct bench *bench_open(void);
struct bench *bench_open_as(const struct vb_qp_attr *attr,
			    const struct sim_caps *caps);
void bench_close(struct bench *b);

/* Let @us microseconds of virtual time pass. */
void bench_wait(struct bench *b, unsigned us);
/* Returns the next recorded packet that side @from sent, or NULL. */
const struct vb_ib_pkt *bench_next(struct bench *b, unsigned from);
/* Returns how many packets with opcode @code (without class) side @from
 * sent. */
unsigned bench_count(const struct bench *b, unsigned from, uint8_t code);

/* Returns a packet from side 0's queue pair to side 1's: request @nth counted
 * from the first PSN, AckReq set, RETH for all of side 1's memory start. */
struct vb_ib_pkt bench_request(const struct bench *b, uint8_t code, int nth);
/* Returns a packet in the other direction: a response to request @nth of side
 * 0. */
struct vb_ib_pkt bench_response(const struct bench *b, uint8_t code, int nth,
				uint8_t syndrome);
/* Send the packet @pkt to side @to, with @len bytes of payload that all have
 * the value @fill, and let it arrive. */
void bench_inject(struct bench *b, unsigned to, struct vb_ib_pkt *pkt,
		  uint32_t len, uint8_t fill);
/* Expect that side @from answers with an AETH for the PSN of request @nth. */
void bench_expect_aeth(struct bench *b, unsigned from, uint8_t syndrome,
		       int nth);
void bench_expect_silence(struct bench *b, unsigned from);

/* Side @from posts a signalled request for @len bytes of its memory at @at.
 * wr_id counts the calls of this function. */
void bench_post(struct bench *b, unsigned from, enum vb_wr_op op, uint32_t at,
		uint32_t len, uint8_t flags);
void bench_post_recv(struct bench *b, unsigned side, uint64_t wr_id,
		     uint32_t at, uint32_t len);
/* Assert that the next completion in @cq has this wr_id and status. */
void bench_expect_wc(struct vb_cq *cq, uint64_t wr_id,
		     enum vb_wc_status status);
void bench_expect_no_wc(struct vb_cq *cq);

#endif
