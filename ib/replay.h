/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder remembers of READ and atomic requests: enough to answer
 * them, and to answer duplicates (IBA 9.7.5.1.3-4). A ring in the order of the
 * requests; the answers to be sent are a part of it. */
#ifndef IB_REPLAY_H
#define IB_REPLAY_H

#include "core/types.h"
#include "wire/ib_op.h"

enum vb_answer_due {
	DUE_NOT,
	DUE_NEW, /* not yet answered completely */
	/* A duplicate: the requester may not need the answer any more. */
	DUE_AGAIN,
};

struct vb_answer {
	uint8_t due;  /* enum vb_answer_due */
	uint8_t kind; /* enum vb_ib_kind of the request */
	/* the request as it first arrived: */
	uint32_t psn, count;
	uint32_t msn;	/* the MSN after the request */
	uint64_t value; /* atomic: the value before it */
	uint64_t va;
	uint32_t rkey, length;
	uint32_t srqn; /* XRC: the SRQ whose protection domain the key is of */
	/* READ: the current or the last run of responses: */
	uint64_t run_va;
	uint32_t run_length;
	uint32_t run_psn, run_count;
	uint32_t sent; /* packets of the run */
};

struct vb_replay {
	uint32_t slots; /* capacity; 0: no READs or atomics */
	uint32_t held;	/* entries in use, at most slots */
	uint32_t end;	/* free-running index behind the newest */
	uint32_t due;	/* index of the oldest to be sent; end: none */
	/* Allocated when a request first needs it: most queue pairs never
	 * do. */
	uint32_t cap; /* entries of ring; a power of two, or 0 */
	struct vb_answer *ring;
};

/* Forget everything and keep up to @max_dest_rd_atomic requests. @r is zeroed,
 * or was reset before. vb_replay_fini() frees the ring. */
void vb_replay_reset(struct vb_replay *r, unsigned max_dest_rd_atomic);
void vb_replay_fini(struct vb_replay *r);
/* Change the capacity; the newest entries stay. */
void vb_replay_resize(struct vb_replay *r, unsigned max_dest_rd_atomic);
/* Is there room for one more request without dropping one never answered? False
 * also when memory is exhausted. */
bool vb_replay_has_room(struct vb_replay *r);
/* Add a cleared entry, due as DUE_NEW; the oldest entry is dropped if the ring
 * is full. Only after vb_replay_has_room() was true. */
struct vb_answer *vb_replay_add(struct vb_replay *r);
/* The entry whose PSNs include @psn, or NULL. */
struct vb_answer *vb_replay_find(struct vb_replay *r, uint32_t psn);
/* Schedule @a to be sent again from the start of its run. An entry that is
 * DUE_NEW stays so. */
void vb_replay_again(struct vb_replay *r, struct vb_answer *a);
/* The oldest entry that is to be sent, or NULL. */
struct vb_answer *vb_replay_due(struct vb_replay *r);
/* That entry was sent, or cannot be sent. */
void vb_replay_done(struct vb_replay *r);
/* Send nothing any more. */
void vb_replay_cancel(struct vb_replay *r);

#endif
