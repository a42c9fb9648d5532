/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of a lane copy one long SEND together: the receiver, which
 * fetches the message, offers a part to the sender, which most often polls for
 * the completion and has a processor of its own. There is one offer at a time,
 * in memory that both programs map; neither side trusts the other. The receiver
 * withdraws an offer that the sender has not accepted in time.
 */
#ifndef NEAR_SPLIT_COPY_H
#define NEAR_SPLIT_COPY_H

#include <stdatomic.h>

#include "base/age.h"
#include "core/wq.h"
#include "near/world.h"

/* The most bytes of one part, because the sender copies a part in one turn of
 * its lanes. */
#define VB_PART_MOST (1u << 20)

/* A part of a SEND, and the address to which it is copied. */
struct vb_copy_part {
	uint32_t qpn, life; /* number and life of the sender's queue pair */
	uint32_t seq;	    /* the sequence number of the message */
	uint32_t offset, len;
	uint32_t key; /* the key of the receiver's memory */
	uint64_t iova;
};

struct vb_offer {
	/* A running number, with an enum offer_state in the low bits. */
	_Atomic uint32_t word;
	struct vb_copy_part part;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct vb_offer) == 64, "one line");

/* The state of the offering side. */
struct vb_split_copy {
	struct vb_offer *offer;
	const struct vb_near_world *world;
	uint32_t word; /* the word of the last offer, as it was written */
	vb_time away_until, away;
	/* The sender was too slow: it still copies a part of the message, which
	 * stays the first on the lane; the receiver continues later. */
	bool waits;
	/* how long ago the receiver's queue pair failed */
	struct vb_age failed;
	/* when the receiver last asked whether the sender still copies */
	vb_time asked_at;
	uint32_t qpn, life; /* number and life of the receiver's queue pair */
	struct vb_recv_wqe recv; /* the receive that the message consumes */
	uint64_t at;		 /* number of bytes that are already copied */
	/* The next value of @at: if the sender copies its part, and if it does
	 * not. */
	uint64_t if_done, if_not;
};

/* Offer @part to the sender. False: no offer was made, because the sender was
 * slow recently. */
bool vb_split_copy_make(struct vb_split_copy *s,
			const struct vb_copy_part *part);

enum vb_split_copy_end {
	SPLIT_OURS, /* the sender has copied nothing, and will copy nothing */
	SPLIT_DONE,
	SPLIT_SLOW, /* the sender has accepted the part and is still copying */
};
/* Withdraw the offer; if the sender has accepted it, wait up to 200 us for the
 * end of its copy. After SPLIT_SLOW the sender wakes this program at the end
 * (vb_offer_end()). */
enum vb_split_copy_end vb_split_copy_end(struct vb_split_copy *s);
/* For use after SPLIT_SLOW: returns what vb_split_copy_end() would return now,
 * without waiting. */
enum vb_split_copy_end vb_split_copy_look(const struct vb_split_copy *s);

/* Give the offer up after SPLIT_SLOW. The caller knows that the sender has not
 * begun to copy and can no longer begin (its permit has lapsed). */
void vb_split_copy_drop(struct vb_split_copy *s);

/* Called by the sender: true if the receiver has made an offer. */
static inline bool vb_offer_is_there(const struct vb_offer *o)
{
	return VB_UNLIKELY(
		atomic_load_explicit(&o->word, memory_order_relaxed) & 1);
}
/* Is the offer in a state that an honest receiver leaves it in? */
bool vb_offer_is_possible(const struct vb_offer *o);
/* Accept the offer, and copy it to *@part. False: the receiver has withdrawn
 * the offer. *@word: an argument for vb_offer_end(). */
bool vb_offer_take(struct vb_offer *o, struct vb_copy_part *part,
		   uint32_t *word);
/* The sender has copied the part (@done) or could not. True: the receiver no
 * longer waits, so the caller must wake it. False: the receiver still waits, or
 * it has given the offer up. */
VB_MUST_CHECK bool vb_offer_end(struct vb_offer *o, uint32_t word, bool done);

#endif
