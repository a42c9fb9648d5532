/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists the live objects of all programs of this user in this network
 * namespace. It reads the programs' rosters (core/roster.h) and asks no
 * program.
 */
#ifndef ENGINE_CENSUS_H
#define ENGINE_CENSUS_H

#include "core/roster.h"

/* One object. Ids are unique per device among all programs: each is made of the
 * inode number of the program's memory and the row's place in it. 0: none. */
struct vb_census_row {
	char device[64];
	int pid;
	uint32_t id;
	uint8_t kind, type, state, port;
	/* As in struct vb_roster_row. */
	uint32_t number, peer, sq_psn, rq_psn;
	uint32_t pd, ctx, send_cq, recv_cq, srq; /* ids of other rows */
	uint32_t users; /* PD, CQ: how many objects use it */
	uint64_t size, iova;
};

struct vb_census_sum {
	char device[64];
	uint64_t alive[ROSTER_KINDS];
};

struct vb_census {
	/* sorted by kind, then by id; queue pairs by number */
	struct vb_census_row *rows;
	unsigned count;
	/* one for each device; they also count objects that had no room in a
	 * roster */
	struct vb_census_sum *sums;
	unsigned sum_count;
};

/* Take a census; @rows false: only the sums. The caller frees it with
 * vb_census_free(). -errno, and then there is nothing to free. */
VB_MUST_CHECK int vb_census_take(struct vb_census *c, bool rows);
void vb_census_free(struct vb_census *c);

#endif
