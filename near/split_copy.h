/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of a lane copy one long SEND together: the receiver, which
 * fetches it, offers a part to the sender, which most often polls for the
 * completion and has a processor of its own. There is one offer at a time, in
 * memory that both map; neither side trusts the other. The receiver takes back
 * an offer that the sender has not taken in time.
 */
#ifndef NEAR_SPLIT_COPY_H
#define NEAR_SPLIT_COPY_H

#include <stdatomic.h>

#include "core/wq.h"
#include "near/world.h"

/* A part of a SEND, and its destination. */
struct vb_copy_part {
	uint32_t qpn, life; /* the sender's queue pair */
	uint32_t seq;	    /* the sequence number of the message */
	uint32_t offset, len;
	uint32_t key; /* for the receiver's memory */
	uint64_t iova;
};

struct vb_offer {
	/* A running number, with enum offer_state in the low bits. */
	_Atomic uint32_t word;
	struct vb_copy_part part;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct vb_offer) == 64, "one line");

/* What the offering side remembers. */
struct vb_split_copy {
	struct vb_offer *offer;
	const struct vb_near_world *world;
	uint32_t word; /* the word of the last offer */
	vb_time away_until, away;
	/* The sender was too slow: it still has a part of the message, which
	 * stays the first on the lane; the receiver goes on later. */
	bool waits;
	vb_time since;
	uint32_t qpn, life;	 /* the receiver's queue pair */
	struct vb_recv_wqe recv; /* the receive that the message takes */
	uint64_t at;		 /* how many bytes are copied already */
	/* The next value of `at`: if the sender copies its part, and if not. */
	uint64_t if_done, if_not;
};

/* Offer @part to the sender. False: not done, because the sender was slow not
 * long ago. */
bool vb_split_copy_make(struct vb_split_copy *s,
			const struct vb_copy_part *part);

enum vb_split_copy_end {
	SPLIT_OURS, /* the sender has copied nothing, and will not */
	SPLIT_DONE,
	SPLIT_SLOW, /* the sender has taken it and is still copying */
};
/* Take the offer back; if the sender has taken it, wait up to 200 us for its
 * end. After SPLIT_SLOW the sender wakes this program at the end
 * (vb_offer_end()). */
enum vb_split_copy_end vb_split_copy_end(struct vb_split_copy *s);
/* After SPLIT_SLOW: what vb_split_copy_end() would say now, without waiting. */
enum vb_split_copy_end vb_split_copy_look(const struct vb_split_copy *s);

/* Give the offer up after SPLIT_SLOW. The caller knows that the sender has not
 * begun to copy and cannot begin any more (its permit has lapsed). */
void vb_split_copy_drop(struct vb_split_copy *s);

/* For the sender: is there an offer? */
static inline bool vb_offer_is_there(const struct vb_offer *o)
{
	return VB_UNLIKELY(
		atomic_load_explicit(&o->word, memory_order_relaxed) & 1);
}
/* Take the offer, and copy it to *@part. False: it was taken back. *@word: for
 * vb_offer_end(). */
bool vb_offer_take(struct vb_offer *o, struct vb_copy_part *part,
		   uint32_t *word);
/* The sender has copied the part (@done) or could not. True: the receiver no
 * longer waits, so the caller must wake it. False: it still waits, or it has
 * given the offer up. */
VB_MUST_CHECK bool vb_offer_end(struct vb_offer *o, uint32_t word, bool done);

#endif
