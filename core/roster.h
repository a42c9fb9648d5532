/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The roster of an adapter: a row for each object alive, in memory that the
 * engine may share with readers in other processes (engine/census.h). Rows are
 * written when objects are made, changed and destroyed, and never on a data
 * path. Without that memory every call here does nothing.
 */
#ifndef CORE_ROSTER_H
#define CORE_ROSTER_H

#include <stdatomic.h>

#include "base/sync.h"

enum vb_roster_kind {
	ROSTER_NONE, /* a row that is free */
	ROSTER_CTX,
	ROSTER_PD,
	ROSTER_CQ,
	ROSTER_MR,
	ROSTER_QP,
	ROSTER_SRQ,
	ROSTER_KINDS,
};

/* What a row tells; names of other rows begin with 1, 0 is none. */
struct vb_roster_row {
	/* Odd while the row is being written. */
	_Atomic uint32_t version;
	uint8_t kind;		 /* enum vb_roster_kind */
	uint8_t type;		 /* QP: enum vb_qp_type; SRQ: as IBV_SRQT_* */
	uint8_t state;		 /* QP: enum vb_qp_state */
	uint8_t port;		 /* QP: 0 before it has one */
	uint32_t number;	 /* QP: its number; MR: its key */
	uint32_t peer;		 /* QP of a connection: the peer's number */
	uint32_t sq_psn, rq_psn; /* QP: as they were last set */
	uint32_t pd, ctx, send_cq, recv_cq, srq; /* rows */
	uint64_t size;				 /* CQ: entries; MR: bytes */
	uint64_t iova;				 /* MR */
};
_Static_assert(sizeof(struct vb_roster_row) == 64, "a cache line");

#define VB_ROSTER_ROWS 32768 /* of one adapter in one process */

/* The memory: zeros are an empty one. Readers take nothing in it on trust. */
struct vb_roster_sheet {
	/* Objects alive, also of those for which there was no row. */
	_Atomic uint32_t alive[ROSTER_KINDS];
	_Atomic uint32_t end; /* rows from here on were never written */
	_Alignas(64) struct vb_roster_row rows[VB_ROSTER_ROWS];
};

struct vb_roster {
	struct vb_mutex lock;
	/* lock */
	struct vb_roster_sheet *sheet; /* or NULL */
	uint32_t first;		       /* words before it have no free row */
	uint64_t taken[VB_ROSTER_ROWS / 64];
};

/* @sheet outlives the roster's last call; NULL: none any more. Objects made
 * before are not in it. */
void vb_roster_use(struct vb_roster *r, struct vb_roster_sheet *sheet);

/* The new row's name; 0: there is no room for it, or no sheet. */
uint32_t vb_roster_add(struct vb_roster *r, const struct vb_roster_row *what);
/* @row: 0 does nothing. */
void vb_roster_set(struct vb_roster *r, uint32_t row,
		   const struct vb_roster_row *what);
/* Only its size. */
void vb_roster_resize(struct vb_roster *r, uint32_t row, uint64_t size);
/* Which context's it is. */
void vb_roster_own(struct vb_roster *r, uint32_t row, uint32_t ctx);
/* @row: 0 is an object without a row, which is counted all the same. */
void vb_roster_del(struct vb_roster *r, enum vb_roster_kind kind, uint32_t row);

#endif
