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
/* Bytes at both ends of an arena that are not registered. */
#define GUARD	   (64u << 10)
#define LONGEST	   (200u << 10)
#define IOVA	   0x123456789000u
#define TIME_LIMIT (600 * VB_SEC)

struct pieces {
	unsigned count;
	uint32_t total;
	/* offsets and lengths in the arena */
	uint32_t at[MAX_PIECES], len[MAX_PIECES];
};

struct op {
	vb_time post_at;
	uint8_t op, flags;
	uint32_t imm;
	struct pieces local;
	uint32_t remote_at;
	uint64_t compare_add, swap;
	int recv; /* number of the receive that the operation consumes, or -1 */
};

struct receive {
	vb_time post_at;
	struct pieces room;
	uint32_t len; /* length of the message that will come */
	bool write, has_imm;
	uint32_t imm;
};

/* One direction: requests from side @from to the other side. */
struct flow {
	unsigned from;
	struct op ops[MAX_OPS];
	struct receive recvs[MAX_OPS];
	unsigned op_count, recv_count;
	unsigned op_posted, recv_posted;
	/* all operations and receives before these have been reported */
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
	/* In chaos: the state to which a side is taken, and when; RTS: none. */
	enum vb_qp_state doom[SIM_SIDES];
	vb_time doom_at[SIM_SIDES];
	bool streams; /* the flow has streams of small WRITEs */
	vb_time busy; /* the time of the last completion */
	bool failed;
};

/* Returns the bytes from which a side's operations are drawn. */
uint8_t *scenario_arena(const struct play *p, unsigned side);
/* The play has failed: print @what with @a and @b. */
void scenario_fail(struct play *p, const char *what, long a, long b);
/* Gather the bytes of @pcs from the arena @from. */
void scenario_copy_out(const uint8_t *from, const struct pieces *pcs,
		       uint8_t *to);
/* Returns the first @len bytes of @from. */
struct pieces scenario_cut(const struct pieces *from, uint32_t len);
extern uint8_t scenario_scratch[LONGEST + 8];

/* Can a connection of play @p end so that only a timeout detects the end? */
bool scenario_ends_soon(const struct play *p);

/* Draw everything that happens in @p. */
void scenario_draw(struct play *p);

#endif
