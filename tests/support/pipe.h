/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two iWARP queue pairs and the stream between them, which takes and gives as
 * many bytes at a time as the test likes. For cmocka tests and others.
 */
#ifndef TESTS_SUPPORT_PIPE_H
#define TESTS_SUPPORT_PIPE_H

#include "core/mr.h"
#include "iwarp/iwarp.h"
#include "tests/support/sim.h"

#define PIPE_MEM (1u << 18)

struct pipe_stream {
	uint8_t *bytes; /* all that was ever sent this way */
	size_t put, got, room;
};

struct pipe {
	struct sim sim;
	struct sim_pair pair;
	struct pipe_stream wire[SIM_SIDES]; /* from that side */
	uint8_t mem[SIM_SIDES][PIPE_MEM];
	struct vb_mr *mr[SIM_SIDES];
	uint32_t key[SIM_SIDES];
	struct vb_iw_txq tx;
	struct vb_iw_rxq rx;
	uint64_t wr_ids;
	/* How many of @have bytes the socket takes or gives; NULL: all. Never
	 * 0 for long. */
	size_t (*cut)(struct pipe *p, unsigned side, bool sends, size_t have);
	void *arg;
	/* Bytes that are not delivered, of each direction. */
	size_t limit[SIM_SIDES];
	size_t largest; /* batch */
	/* Something has come, was posted, or is left: nobody asks a queue pair
	 * for bytes at other times. */
	bool due[SIM_SIDES];
};

extern const struct vb_mpa_terms pipe_terms; /* of the initiator */

/* Side 0 is the initiator; side 1's terms follow from it. */
struct pipe *pipe_open(const struct vb_mpa_terms *terms);
struct pipe *pipe_open_as(const struct vb_mpa_terms *terms, bool srq);
void pipe_close(struct pipe *p);

/* One send and one receive a side, of those that have a reason to. True:
 * something happened. */
bool pipe_turn(struct pipe *p);
/* Both look once, then until nothing happens. */
void pipe_settle(struct pipe *p);
/* Bytes of the test's own, from @side. */
void pipe_inject(struct pipe *p, unsigned side, const void *bytes, size_t len);
/* A ULPDU, framed. */
void pipe_inject_ulpdu(struct pipe *p, unsigned side, const void *ulpdu,
		       uint32_t len);

/* @len bytes of the side's memory at @at, in @pieces; remote: the other's. */
void pipe_post(struct pipe *p, unsigned side, struct vb_send_wqe wqe,
	       uint32_t at, unsigned pieces);
void pipe_post_recv(struct pipe *p, unsigned side, uint32_t at, uint32_t len);

#endif
