/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a responder remembers of READ and atomic requests: enough to answer
 * them, and to answer them again (IBA 9.7.5.1.3-4). A ring in the order of
 * requests, with the answers that are still to be sent somewhere in it.
 */
#ifndef IB_REPLAY_H
#define IB_REPLAY_H

#include "core/types.h"
#include "wire/ib_op.h"

enum vb_answer_due {
	DUE_NOT,
	DUE_NEW,   /* never yet answered to the end */
	DUE_AGAIN, /* a repeat: the requester may not need it any more */
};

struct vb_answer {
	uint8_t due;  /* enum vb_answer_due */
	uint8_t kind; /* enum vb_ib_kind of the request */
	/* the request as it first came */
	uint32_t psn, count;
	uint32_t msn;	/* after it */
	uint64_t value; /* atomic: the result */
	uint64_t va;
	uint32_t rkey, length;
	uint32_t srqn; /* XRC: in whose protection domain the key is */
	/* READ: the run of responses under way, or the last one */
	uint64_t run_va;
	uint32_t run_length;
	uint32_t run_psn, run_count;
	uint32_t sent; /* packets of it */
};

struct vb_replay {
	uint32_t slots; /* how many it keeps; 0: takes none */
	uint32_t held;	/* entries of use, at most slots */
	uint32_t end;	/* free-running index after the newest */
	uint32_t due;	/* index of the oldest to be sent; end: none is */
	/* Made when a request first needs it: most queue pairs get none. */
	uint32_t cap; /* of ring; a power of two, or 0 */
	struct vb_answer *ring;
};

/* @r is zeroed, or was reset before. */
void vb_replay_reset(struct vb_replay *r, unsigned max_dest_rd_atomic);
void vb_replay_fini(struct vb_replay *r);
/* Keeps the newest. */
void vb_replay_resize(struct vb_replay *r, unsigned max_dest_rd_atomic);
/* May another request come in, without one never answered being lost? Not
 * without memory for it. */
bool vb_replay_has_room(struct vb_replay *r);
/* A place for it, cleared, due as new; the oldest is forgotten. */
struct vb_answer *vb_replay_add(struct vb_replay *r);
/* The entry that holds @psn, or NULL. */
struct vb_answer *vb_replay_find(struct vb_replay *r, uint32_t psn);
/* @a shall be sent again, from its run's start. One still new stays so. */
void vb_replay_again(struct vb_replay *r, struct vb_answer *a);
/* The oldest that is to be sent, or NULL. */
struct vb_answer *vb_replay_due(struct vb_replay *r);
/* It is sent, or cannot be. */
void vb_replay_done(struct vb_replay *r);
/* Nothing is to be sent any more. */
void vb_replay_cancel(struct vb_replay *r);

#endif
