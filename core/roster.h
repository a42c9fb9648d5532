/* SPDX-License-Identifier: BSD-2-Clause */
/* The roster of an adapter: a table with one row per object alive, in memory
 * that the engine may share with other processes (engine/census.h). core/
 * writes rows when objects are made, modified and destroyed, never on a data
 * path. Without shared memory every call here does nothing. */
#ifndef CORE_ROSTER_H
#define CORE_ROSTER_H

#include <stdatomic.h>

#include "base/sync.h"

enum vb_roster_kind {
	ROSTER_NONE, /* an unused row */
	ROSTER_CTX,
	ROSTER_PD,
	ROSTER_CQ,
	ROSTER_MR,
	ROSTER_QP,
	ROSTER_SRQ,
	ROSTER_KINDS,
};

/* What a row says. A row's name is its index plus 1; 0 names no row. */
struct vb_roster_row {
	/* Odd while the row is being written, so that readers notice. */
	_Atomic uint32_t version;
	uint8_t kind;		 /* enum vb_roster_kind */
	uint8_t type;		 /* QP: enum vb_qp_type; SRQ: IBV_SRQT_* */
	uint8_t state;		 /* QP: enum vb_qp_state */
	uint8_t port;		 /* QP: 0 before it has a port */
	uint32_t number;	 /* QP: its number; MR: its key */
	uint32_t peer;		 /* connected QP: the peer's QPN */
	uint32_t sq_psn, rq_psn; /* QP: as the program last set them */
	uint32_t pd, ctx, send_cq, recv_cq, srq; /* names of other rows */
	uint64_t size;				 /* CQ: entries; MR: bytes */
	uint64_t iova;				 /* MR */
};
_Static_assert(sizeof(struct vb_roster_row) == 64, "a cache line");

#define VB_ROSTER_ROWS 32768 /* per adapter and process */

/* The shared memory; all zero is an empty table. Readers validate everything,
 * since the writer may be any program. */
struct vb_roster_sheet {
	/* Objects alive per kind, including those that got no row. */
	_Atomic uint32_t alive[ROSTER_KINDS];
	_Atomic uint32_t end; /* rows from here on were never written */
	_Alignas(64) struct vb_roster_row rows[VB_ROSTER_ROWS];
};

struct vb_roster {
	struct vb_mutex lock;
	/* Under lock: */
	struct vb_roster_sheet *sheet; /* NULL: no shared memory */
	uint32_t first; /* words before this one have no free row */
	uint64_t taken[VB_ROSTER_ROWS / 64];
};

/* From now on write to @sheet, which outlives the roster; NULL: write no more.
 * Objects made earlier get no row. */
void vb_roster_use(struct vb_roster *r, struct vb_roster_sheet *sheet)
	VB_EXCLUDES(r->lock);

/* Add a row. Returns its number (from 1), or 0: the roster is full, or it has
 * no shared memory (vb_roster_use()). */
uint32_t vb_roster_add(struct vb_roster *r, const struct vb_roster_row *what)
	VB_EXCLUDES(r->lock);
/* Rewrite row @row; 0 does nothing. */
void vb_roster_set(struct vb_roster *r, uint32_t row,
		   const struct vb_roster_row *what) VB_EXCLUDES(r->lock);
/* Change only the size of row @row. */
void vb_roster_resize(struct vb_roster *r, uint32_t row, uint64_t size)
	VB_EXCLUDES(r->lock);
/* Set the context that row @row belongs to. */
void vb_roster_own(struct vb_roster *r, uint32_t row, uint32_t ctx)
	VB_EXCLUDES(r->lock);
/* Free row @row. 0 stands for an object that got no row: it is only counted. */
void vb_roster_del(struct vb_roster *r, enum vb_roster_kind kind, uint32_t row)
	VB_EXCLUDES(r->lock);

#endif
