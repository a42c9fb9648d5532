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
	ROSTER_NONE, /* the row is unused */
	ROSTER_CTX,
	ROSTER_PD,
	ROSTER_CQ,
	ROSTER_MR,
	ROSTER_QP,
	ROSTER_SRQ,
	ROSTER_KINDS,
};

/* The contents of a row of the roster. A row's number is its index plus 1; 0
 * names no row. */
struct vb_roster_row {
	/* Odd while the row is being written, so that readers notice. */
	_Atomic uint32_t version;
	uint8_t kind;	 /* kind of the object, an enum vb_roster_kind */
	uint8_t type;	 /* of a QP: enum vb_qp_type; of an SRQ: IBV_SRQT_* */
	uint8_t state;	 /* of a QP: the enum vb_qp_state */
	uint8_t port;	 /* of a QP: its port; 0 before the port is known */
	uint32_t number; /* of a QP: its number; of an MR: its key */
	uint32_t peer;	 /* of a connected QP: the QPN of the peer */
	/* of a QP: the PSNs as the program last set them */
	uint32_t sq_psn, rq_psn;
	/* row numbers of the objects that this object uses */
	uint32_t pd, ctx, send_cq, recv_cq, srq;
	uint64_t size; /* of a CQ: its entries; of an MR: its length in bytes */
	uint64_t iova; /* of an MR: its first address as peers name it */
};
_Static_assert(sizeof(struct vb_roster_row) == 64, "a cache line");

/* number of rows of one adapter in one process */
#define VB_ROSTER_ROWS 32768

/* The shared memory; all zero is an empty table. Readers validate everything,
 * since the writer may be any program. */
struct vb_roster_sheet {
	/* Objects alive per kind, including those that got no row. */
	_Atomic uint32_t alive[ROSTER_KINDS];
	/* the index of the first row that was never written */
	_Atomic uint32_t end;
	_Alignas(64) struct vb_roster_row rows[VB_ROSTER_ROWS];
};

struct vb_roster {
	struct vb_mutex lock;
	/* The fields below are protected by lock. */

	/* the table in shared memory; NULL: there is none */
	struct vb_roster_sheet *sheet;
	/* words of the bitmap before this one have no free row */
	uint32_t first;
	uint64_t taken[VB_ROSTER_ROWS / 64];
};

/* From now on write rows to @sheet, which outlives the roster; NULL: from now
 * on write none. Objects that were made earlier get no row. */
void vb_roster_use(struct vb_roster *r, struct vb_roster_sheet *sheet)
	VB_EXCLUDES(r->lock);

/* Add a row. Returns its number (from 1), or 0: the roster is full, or it has
 * no shared memory (vb_roster_use()). */
uint32_t vb_roster_add(struct vb_roster *r, const struct vb_roster_row *what)
	VB_EXCLUDES(r->lock);
/* Rewrite the row with number @row; number 0 does nothing. */
void vb_roster_set(struct vb_roster *r, uint32_t row,
		   const struct vb_roster_row *what) VB_EXCLUDES(r->lock);
/* Change only the size in row @row. */
void vb_roster_resize(struct vb_roster *r, uint32_t row, uint64_t size)
	VB_EXCLUDES(r->lock);
/* Set the context that the object of row @row belongs to. */
void vb_roster_own(struct vb_roster *r, uint32_t row, uint32_t ctx)
	VB_EXCLUDES(r->lock);
/* Free row @row. Number 0 stands for an object that got no row and is only
 * counted. */
void vb_roster_del(struct vb_roster *r, enum vb_roster_kind kind, uint32_t row)
	VB_EXCLUDES(r->lock);

#endif
