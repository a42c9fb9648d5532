/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects alive of the user's programs in this network namespace: what
 * their rosters tell (core/roster.h), read without asking any of them.
 */
#ifndef ENGINE_CENSUS_H
#define ENGINE_CENSUS_H

#include "core/roster.h"

/* One object. Numbers are the device's, among all programs: a row's own is
 * made of its program's memory and its place there. 0: none. */
struct vb_census_row {
	char device[64];
	int pid;
	uint32_t id;
	uint8_t kind, type, state, port;
	uint32_t number, peer, sq_psn, rq_psn;	 /* as in the roster */
	uint32_t pd, ctx, send_cq, recv_cq, srq; /* ids */
	uint32_t users; /* PD, CQ: objects that stand on it */
	uint64_t size, iova;
};

struct vb_census_sum {
	char device[64];
	uint64_t alive[ROSTER_KINDS];
};

struct vb_census {
	/* By kind, and then by id; for queue pairs by number. */
	struct vb_census_row *rows;
	unsigned count;
	/* A device each; they count also what had no room in a roster. */
	struct vb_census_sum *sums;
	unsigned sum_count;
};

/* @rows: false leaves them out. To vb_census_free(). -errno. */
VB_MUST_CHECK int vb_census_take(struct vb_census *c, bool rows);
void vb_census_free(struct vb_census *c);

#endif
