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
	uint8_t *bytes; /* all bytes that were ever sent in this direction */
	size_t put, got, room;
};

struct pipe {
	struct sim sim;
	struct sim_pair pair;
	struct pipe_stream wire[SIM_SIDES]; /* the stream from each side */
	uint8_t mem[SIM_SIDES][PIPE_MEM];
	struct vb_mr *mr[SIM_SIDES];
	uint32_t key[SIM_SIDES];
	struct vb_iw_txq tx;
	struct vb_iw_rxq rx;
	uint64_t wr_ids;
	/* Returns how many of @have bytes the socket accepts or returns; NULL:
	 * all. It must not be 0 for ever. */
	size_t (*cut)(struct pipe *p, unsigned side, bool sends, size_t have);
	void *arg;
	/* Number of bytes of each direction that may be delivered. */
	size_t limit[SIM_SIDES];
	size_t largest; /* size of the largest batch */
	/* Bytes have come, work was posted, or work is left: only then a queue
	 * pair is asked for bytes. */
	bool due[SIM_SIDES];
};

extern const struct vb_mpa_terms pipe_terms; /* terms of the initiator */

/* Side 0 is the initiator; the terms of side 1 follow from those of side 0. */
struct pipe *pipe_open(const struct vb_mpa_terms *terms);
struct pipe *pipe_open_as(const struct vb_mpa_terms *terms, bool srq);
void pipe_close(struct pipe *p);

/* Let each side that has a reason send and receive once. True: bytes were
 * moved. */
bool pipe_turn(struct pipe *p);
/* Let both sides receive and send until no more bytes move. */
void pipe_settle(struct pipe *p);
/* Send bytes of the test from @side. */
void pipe_inject(struct pipe *p, unsigned side, const void *bytes, size_t len);
/* Send a ULPDU of the test, framed as an FPDU. */
void pipe_inject_ulpdu(struct pipe *p, unsigned side, const void *ulpdu,
		       uint32_t len);

/* Post @len bytes of the side's memory at @at, in @pieces; remote: those of the
 * other side. */
void pipe_post(struct pipe *p, unsigned side, struct vb_send_wqe wqe,
	       uint32_t at, unsigned pieces);
void pipe_post_recv(struct pipe *p, unsigned side, uint32_t at, uint32_t len);

#endif
