/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two files of a scenario: operations, flows, and the play. */
#ifndef TESTS_SUPPORT_SCENARIO_PRIV_H
#define TESTS_SUPPORT_SCENARIO_PRIV_H

#include "tests/support/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mr.h"
#include "tests/support/sim.h"

#define MAX_OPS	   48
#define MAX_PIECES 8
#define ARENA	   (3u << 20)
/* Bytes at each end of an arena that no region covers, to see overruns. */
#define GUARD	   (64u << 10)
#define LONGEST	   (200u << 10)
#define IOVA	   0x123456789000u
#define TIME_LIMIT (600 * VB_SEC)

struct pieces {
	unsigned count;
	uint32_t total;
	/* offset in the arena and length of each piece, in bytes */
	uint32_t at[MAX_PIECES], len[MAX_PIECES];
};

struct op {
	vb_time post_at;
	uint8_t op, flags;
	uint32_t imm;
	struct pieces local;
	uint32_t remote_at;
	uint64_t compare_add, swap;
	int recv; /* index of the RECV that this request consumes, or -1 */
};

struct receive {
	vb_time post_at;
	struct pieces room;
	/* length in bytes of the message that will consume this RECV */
	uint32_t len;
	bool write, has_imm;
	uint32_t imm;
};

/* The requests that side @from sends to the other side. */
struct flow {
	unsigned from;
	struct op ops[MAX_OPS];
	struct receive recvs[MAX_OPS];
	unsigned op_count, recv_count;
	unsigned op_posted, recv_posted;
	/* All requests and RECVs with a lower index have completed. */
	unsigned op_seen, recv_seen;
	bool op_failed, recv_failed;
	uint32_t counter_at;
};

struct play {
	uint64_t seed;
	const struct scenario *what;
	enum scenario_kind kind;
	struct sim_rand rand;
	struct sim sim;
	struct sim_pair pair;
	struct flow flow[SIM_SIDES];
	uint8_t *mem[SIM_SIDES], *want[SIM_SIDES];
	uint32_t used[SIM_SIDES];
	struct vb_mr *local[SIM_SIDES], *remote[SIM_SIDES];
	uint32_t mtu;
	/* In chaos: the state to which each side is moved, and when. RTS: the
	 * side is not moved. */
	enum vb_qp_state doom[SIM_SIDES];
	vb_time doom_at[SIM_SIDES];
	bool streams; /* true: the play has streams of small WRITEs */
	vb_time busy; /* virtual time of the last completion */
	bool failed;
};

/* Returns the side's memory, in which its requests have their buffers. */
uint8_t *scenario_arena(const struct play *p, unsigned side);
/* Mark the play as failed, and print @what with the numbers @a and @b. */
void scenario_fail(struct play *p, const char *what, long a, long b);
/* Copy the bytes of the pieces @pcs of the arena @from to @to. */
void scenario_copy_out(const uint8_t *from, const struct pieces *pcs,
		       uint8_t *to);
/* Returns the pieces that cover the first @len bytes of @from. */
struct pieces scenario_cut(const struct pieces *from, uint32_t len);
extern uint8_t scenario_scratch[LONGEST + 8];

/* Returns whether a connection of play @p can end in such a way that only a
 * timeout detects the end. */
bool scenario_ends_soon(const struct play *p);

/* Draw all requests, RECVs and disturbances of the play @p. */
void scenario_draw(struct play *p);

#endif
