/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two iWARP queue pairs and the stream between them, which moves as many bytes
 * at a time as the test decides. For cmocka tests and others.
 */
#ifndef TESTS_SUPPORT_PIPE_H
#define TESTS_SUPPORT_PIPE_H

#include "core/mr.h"
#include "iwarp/iwarp.h"
#include "tests/support/sim.h"

#define PIPE_MEM (1u << 18)

struct pipe_stream {
	/* all bytes that one side has sent since the stream was opened */
	uint8_t *bytes;
	size_t put, got, room;
};

struct pipe {
	struct sim sim;
	struct sim_pair pair;
	struct pipe_stream wire[SIM_SIDES]; /* the bytes that each side sends */
	uint8_t mem[SIM_SIDES][PIPE_MEM];
	struct vb_mr *mr[SIM_SIDES];
	uint32_t key[SIM_SIDES];
	struct vb_iw_txq tx;
	struct vb_iw_rxq rx;
	uint64_t wr_ids;
	/* Returns how many of @have bytes the fake socket accepts (@sends) or
	 * returns. If this is NULL, it is all bytes. It must not return 0 for
	 * ever. */
	size_t (*cut)(struct pipe *p, unsigned side, bool sends, size_t have);
	void *arg;
	/* Number of bytes sent by each side that may reach the other side. */
	size_t limit[SIM_SIDES];
	size_t largest; /* the largest number of bytes in one batch of a queue
			 * pair */
	/* True: the queue pair must be asked for bytes, because bytes have
	 * come, work was posted, or work is left. */
	bool due[SIM_SIDES];
};

/* MPA terms of side 0, the initiator */
extern const struct vb_mpa_terms pipe_terms;

/* Side 0 is the initiator; the terms of side 1 follow from those of side 0. */
struct pipe *pipe_open(const struct vb_mpa_terms *terms);
struct pipe *pipe_open_as(const struct vb_mpa_terms *terms, bool srq);
void pipe_close(struct pipe *p);

/* Let each side that has something to do send and receive once. Returns true if
 * bytes were moved. */
bool pipe_turn(struct pipe *p);
/* Let both sides send and receive until no more bytes move. */
void pipe_settle(struct pipe *p);
/* Send @len bytes that the test made, as if @side had sent them. */
void pipe_inject(struct pipe *p, unsigned side, const void *bytes, size_t len);
/* Frame a ULPDU that the test made as an FPDU, and send it as @side. */
void pipe_inject_ulpdu(struct pipe *p, unsigned side, const void *ulpdu,
		       uint32_t len);

/* Post @len bytes of the side's memory at @at, in @pieces; remote: those of the
 * other side. */
void pipe_post(struct pipe *p, unsigned side, struct vb_send_wqe wqe,
	       uint32_t at, unsigned pieces);
void pipe_post_recv(struct pipe *p, unsigned side, uint32_t at, uint32_t len);

#endif
