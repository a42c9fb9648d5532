/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists the live objects of all programs of this user in this network
 * namespace. It reads the programs' rosters (core/roster.h) and asks no
 * program.
 */
#ifndef ENGINE_CENSUS_H
#define ENGINE_CENSUS_H

#include "core/roster.h"

/* One object of a program. Ids are unique for each device among all programs:
 * an id is made of the inode number of the program's memory and the number of
 * the row. 0: no object. */
struct vb_census_row {
	char device[64];
	int pid;
	uint32_t id;
	uint8_t kind, type, state, port;
	/* Values of the row in the roster, as in struct vb_roster_row. */
	uint32_t number, peer, sq_psn, rq_psn;
	/* ids of the objects that this object uses */
	uint32_t pd, ctx, send_cq, recv_cq, srq;
	uint32_t users; /* of a PD or CQ: the number of objects that use it */
	uint64_t size, iova;
};

struct vb_census_sum {
	char device[64];
	uint64_t alive[ROSTER_KINDS];
};

struct vb_census {
	/* sorted by kind, then by id; queue pairs are sorted by number */
	struct vb_census_row *rows;
	unsigned count;
	/* one sum for each device; it includes objects that had no room in a
	 * roster */
	struct vb_census_sum *sums;
	unsigned sum_count;
};

/* Take a census; with @rows false, only the sums. The caller frees the result
 * with vb_census_free(). 0, or -errno and then there is no result to free. */
VB_MUST_CHECK int vb_census_take(struct vb_census *c, bool rows);
void vb_census_free(struct vb_census *c);

#endif
