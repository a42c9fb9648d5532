/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder remembers of READ and atomic requests, so that it can answer
 * them, and duplicates of them (IBA 9.7.5.1.3-4). The entries are a ring in the
 * order of the requests; the answers that are still to be sent are a part of
 * it. */
#ifndef IB_REPLAY_H
#define IB_REPLAY_H

#include "core/types.h"
#include "wire/ib_op.h"

enum vb_answer_due {
	DUE_NOT,
	DUE_NEW, /* not yet answered completely */
	/* Asked again; the requester may have got the answer meanwhile. */
	DUE_AGAIN,
};

struct vb_answer {
	uint8_t due;  /* enum vb_answer_due */
	uint8_t kind; /* enum vb_ib_kind of the request */
	/* the request as it first arrived: */
	uint32_t psn, count;
	uint32_t msn;	/* the MSN after the request */
	uint64_t value; /* atomic: the word before it */
	uint64_t va;
	uint32_t rkey, length;
	uint32_t srqn; /* XRC: the SRQ whose protection domain the key is of */
	/* READ: the responses asked for last, all or a part: */
	uint64_t run_va;
	uint32_t run_length;
	uint32_t run_psn, run_count;
	uint32_t sent; /* packets of these that were sent */
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

/* Forget all requests, and keep up to @max_dest_rd_atomic from now on. The
 * caller has zeroed @r, or reset it before. vb_replay_fini() frees the ring. */
void vb_replay_reset(struct vb_replay *r, unsigned max_dest_rd_atomic);
void vb_replay_fini(struct vb_replay *r);
/* Change the capacity; the newest entries stay. */
void vb_replay_resize(struct vb_replay *r, unsigned max_dest_rd_atomic);
/* Is there room for one more request without dropping one that was never
 * answered? False also when memory is exhausted. */
bool vb_replay_has_room(struct vb_replay *r);
/* Add a zeroed entry that is DUE_NEW, and drop the oldest if the ring is full.
 * Only after vb_replay_has_room() was true. */
struct vb_answer *vb_replay_add(struct vb_replay *r);
/* The entry whose PSNs include @psn, or NULL. */
struct vb_answer *vb_replay_find(struct vb_replay *r, uint32_t psn);
/* Schedule @a to be sent again from the start of its run. An entry that is
 * DUE_NEW stays so. */
void vb_replay_again(struct vb_replay *r, struct vb_answer *a);
/* The oldest entry whose answer is to be sent, or NULL. */
struct vb_answer *vb_replay_due(struct vb_replay *r);
/* The answer of that entry was sent, or cannot be: go on to the next one. */
void vb_replay_done(struct vb_replay *r);
/* Forget which answers are to be sent. */
void vb_replay_cancel(struct vb_replay *r);

#endif
