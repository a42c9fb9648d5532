/* SPDX-License-Identifier: BSD-2-Clause */
/* The READ and atomic requests that a responder remembers, so that it can
 * answer them, and duplicates of them (IBA 9.7.5.1.3-4). The entries are a ring
 * in the order of the requests; the answers that are still to be sent are a
 * part of the ring. */
#ifndef IB_REPLAY_H
#define IB_REPLAY_H

#include "core/types.h"
#include "wire/ib_op.h"

enum vb_answer_due {
	DUE_NOT,
	DUE_NEW, /* the request is not yet answered completely */
	/* The requester has repeated the request; it may have received the
	 * answer meanwhile. */
	DUE_AGAIN,
};

struct vb_answer {
	/* whether the answer is to be sent, an enum vb_answer_due */
	uint8_t due;
	uint8_t kind; /* kind of the request, an enum vb_ib_kind */
	/* first PSN and number of PSNs of the request as it first came */
	uint32_t psn, count;
	uint32_t msn; /* message sequence number after the request */
	/* of an atomic: the value of the word before the operation */
	uint64_t value;
	uint64_t va;
	uint32_t rkey, length;
	/* with XRC: the SRQ whose protection domain has the key */
	uint32_t srqn;
	/* The run of a READ: the responses for which the requester has asked
	 * last, which are all responses of the READ or a part of them. */
	uint64_t run_va;
	uint32_t run_length;
	uint32_t run_psn, run_count;
	uint32_t sent; /* number of packets of these responses that were sent */
};

struct vb_replay {
	/* the most entries; 0: no READs or atomics are permitted */
	uint32_t slots;
	uint32_t held; /* number of entries in use, at most @slots */
	uint32_t end;  /* free-running index behind the newest entry */
	/* index of the oldest entry whose answer is to be sent; @end: there is
	 * none */
	uint32_t due;
	/* The ring, allocated when a request first needs it: most queue pairs
	 * never do. */
	uint32_t cap; /* entries of @ring; a power of two, or 0 */
	struct vb_answer *ring;
};

/* Drop all requests, and keep up to @max_dest_rd_atomic from now on. @r is all
 * zero, or was reset before. vb_replay_fini() frees the ring. */
void vb_replay_reset(struct vb_replay *r, unsigned max_dest_rd_atomic);
void vb_replay_fini(struct vb_replay *r);
/* Change the capacity; the newest entries are kept. */
void vb_replay_resize(struct vb_replay *r, unsigned max_dest_rd_atomic);
/* Is there room for one more request without dropping one that was never
 * answered? False also if memory is exhausted. */
bool vb_replay_has_room(struct vb_replay *r);
/* Add a zeroed entry in state DUE_NEW, and drop the oldest entry if the ring is
 * full. Only after vb_replay_has_room() was true. */
struct vb_answer *vb_replay_add(struct vb_replay *r);
/* Returns the entry whose PSNs include @psn, or NULL. */
struct vb_answer *vb_replay_find(struct vb_replay *r, uint32_t psn);
/* Schedule the answer @a to be sent again from the start of its run. An entry
 * in state DUE_NEW keeps that state. */
void vb_replay_again(struct vb_replay *r, struct vb_answer *a);
/* Returns the oldest entry whose answer is to be sent, or NULL. */
struct vb_answer *vb_replay_due(struct vb_replay *r);
/* The answer of the entry that vb_replay_due() returned was sent, or cannot be
 * sent: go on to the next one. */
void vb_replay_done(struct vb_replay *r);
/* Let no answer be sent any more; the entries stay. */
void vb_replay_cancel(struct vb_replay *r);

#endif
