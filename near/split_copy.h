/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of a lane copy one long message: who fetches it offers a part to
 * who sent it, who most often spins meanwhile on a processor of its own. One
 * offer at a time, in memory that both map; neither believes the other. Who
 * does not take it in time finds it taken back.
 */
#ifndef NEAR_SPLIT_COPY_H
#define NEAR_SPLIT_COPY_H

#include <stdatomic.h>

#include "core/wq.h"

/* A part of a SEND, and where it goes. */
struct vb_copy_part {
	uint32_t qpn, life; /* the sender's queue pair */
	uint32_t seq;	    /* which of its messages */
	uint32_t offset, len;
	uint32_t key; /* of the receiver's memory */
	uint64_t iova;
};

struct vb_offer {
	_Atomic uint32_t word; /* its number, and enum offer_state */
	struct vb_copy_part part;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct vb_offer) == 64, "one line");

/* What who offers remembers. */
struct vb_split_copy {
	struct vb_offer *offer;
	uint32_t word; /* when it was made */
	vb_time away_until, away;
	/* The other was slow: it has a part of the message that stands first
	 * on the lane, and we shall go on later. */
	bool waits;
	vb_time since;
	uint32_t qpn, life;	  /* our queue pair, ... */
	struct vb_recv_wqe recv;  /* ... and what it received into */
	uint64_t at;		  /* go on from here, ... */
	uint64_t if_done, if_not; /* ... which is one of these */
};

/* False: not now. */
bool vb_split_copy_make(struct vb_split_copy *s,
			const struct vb_copy_part *part);

enum vb_split_copy_end {
	SPLIT_OURS, /* not copied; nobody is at it */
	SPLIT_DONE,
	SPLIT_SLOW, /* the other is at it, and has been for long */
};
/* Take it back, or wait for a moment until it is done. After SPLIT_SLOW the
 * other tells when it is. */
enum vb_split_copy_end vb_split_copy_end(struct vb_split_copy *s);
/* The same after SPLIT_SLOW, without waiting. */
enum vb_split_copy_end vb_split_copy_look(const struct vb_split_copy *s);

/* After SPLIT_SLOW: the other cannot begin any more, and has not begun. */
void vb_split_copy_drop(struct vb_split_copy *s);

/* Who may take it. */
static inline bool vb_offer_is_there(const struct vb_offer *o)
{
	return VB_UNLIKELY(
		atomic_load_explicit(&o->word, memory_order_relaxed) & 1);
}
/* False: it was taken back. *@word is for vb_offer_end(). */
bool vb_offer_take(struct vb_offer *o, struct vb_copy_part *part,
		   uint32_t *word);
/* True: who made it did not wait so long, and is to be told. False also where
 * it was dropped. */
VB_MUST_CHECK bool vb_offer_end(struct vb_offer *o, uint32_t word, bool done);

#endif
