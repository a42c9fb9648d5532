/* SPDX-License-Identifier: BSD-2-Clause */
/* Offers a part of a message to its sender, which copies that part. */
#include "near/split_copy.h"

#define IS_SLOW	  (200 * VB_USEC)
#define AWAY	  (4 * VB_MSEC)
#define AWAY_MOST (1 * VB_SEC)

/* The states in the low bits of an offer's word; the higher bits count the
 * offers. */
enum offer_state {
	OFFER_NONE = 0,
	/* the offer is open; the only odd state: vb_offer_is_there() */
	OFFER_MADE = 1,
	OFFER_TAKEN = 2,
	OFFER_DONE = 4,
	OFFER_FAILED = 6,
	/* the sender has accepted the part, and must wake the receiver at the
	 * end */
	OFFER_AWAITED = 8,
	OFFER_STATES = 16,
};

static uint32_t turned(uint32_t word, enum offer_state to)
{
	return (word & ~(uint32_t)(OFFER_STATES - 1)) | to;
}

static vb_time now_of(const struct vb_split_copy *s)
{
	return s->world->now(s->world->arg);
}

bool vb_split_copy_make(struct vb_split_copy *s,
			const struct vb_copy_part *part)
{
	if (s->away_until && now_of(s) < s->away_until)
		return false;
	s->word = turned(s->word + OFFER_STATES, OFFER_MADE);
	s->offer->part = *part;
	/* Release: a sender that sees the word also sees the part. */
	atomic_store_explicit(&s->offer->word, s->word, memory_order_release);
	return true;
}

static uint32_t word_of(const struct vb_split_copy *s)
{
	/* Acquire: the bytes that the sender has copied are visible
	 * afterwards. */
	return atomic_load_explicit(&s->offer->word, memory_order_acquire);
}

/* A word that is in none of the states taken, awaited and done means that the
 * sender has not copied the part. */
enum vb_split_copy_end vb_split_copy_look(const struct vb_split_copy *s)
{
	uint32_t word = word_of(s);

	if (word == turned(s->word, OFFER_TAKEN) ||
	    word == turned(s->word, OFFER_AWAITED))
		return SPLIT_SLOW;
	return word == turned(s->word, OFFER_DONE) ? SPLIT_DONE : SPLIT_OURS;
}

void vb_split_copy_drop(struct vb_split_copy *s)
{
	atomic_store(&s->offer->word, turned(s->word, OFFER_NONE));
}

/* The sender was slow, because another thread used its processor: make no
 * offers for a while, each time for longer. */
static void near_split_copy_stay_away(struct vb_split_copy *s)
{
	vb_time now = now_of(s);

	/* The last such pause was long ago: begin with the shortest pause
	 * again. */
	if (s->away_until && now - s->away_until > AWAY_MOST)
		s->away = 0;
	s->away = VB_MIN(VB_MAX(2 * s->away, AWAY), AWAY_MOST);
	s->away_until = now + s->away;
}

enum vb_split_copy_end vb_split_copy_end(struct vb_split_copy *s)
{
	uint32_t made = s->word, taken = turned(made, OFFER_TAKEN);
	enum vb_split_copy_end end;
	vb_time then;

	if (atomic_compare_exchange_strong(&s->offer->word, &made,
					   turned(s->word, OFFER_NONE)))
		return SPLIT_OURS;
	then = now_of(s);
	do
		end = vb_split_copy_look(s);
	while (end == SPLIT_SLOW && now_of(s) - then < IS_SLOW);
	if (end != SPLIT_SLOW)
		return end;
	near_split_copy_stay_away(s);
	return atomic_compare_exchange_strong(&s->offer->word, &taken,
					      turned(s->word, OFFER_AWAITED))
		       ? SPLIT_SLOW
		       : vb_split_copy_look(s);
}

bool vb_offer_is_possible(const struct vb_offer *o)
{
	switch (atomic_load_explicit(&o->word, memory_order_relaxed) %
		OFFER_STATES) {
	case OFFER_NONE:
	case OFFER_MADE:
	case OFFER_TAKEN:
	case OFFER_DONE:
	case OFFER_FAILED:
	case OFFER_AWAITED:
		return true;
	default:
		return false;
	}
}

bool vb_offer_take(struct vb_offer *o, struct vb_copy_part *part,
		   uint32_t *word)
{
	*word = atomic_load_explicit(&o->word, memory_order_relaxed);
	if (*word % OFFER_STATES != OFFER_MADE ||
	    !atomic_compare_exchange_strong(&o->word, word,
					    turned(*word, OFFER_TAKEN)))
		return false;
	*part = o->part;
	/* A compiler barrier: the offer must not be read again, because the
	 * other program may change it. */
	__asm__ volatile("" : : "r"(part) : "memory");
	return true;
}

bool vb_offer_end(struct vb_offer *o, uint32_t word, bool done)
{
	uint32_t end = turned(word, done ? OFFER_DONE : OFFER_FAILED);
	uint32_t taken = turned(word, OFFER_TAKEN);
	uint32_t awaited = turned(word, OFFER_AWAITED);

	return !atomic_compare_exchange_strong(&o->word, &taken, end) &&
	       atomic_compare_exchange_strong(&o->word, &awaited, end);
}
