/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of records in shared memory. In front of each record is a word with the
 * record's length. A record begins at a multiple of VB_SHRING_ALIGN. A record
 * that does not fit before the end of the ring is put at the ring's start, and
 * the word SKIP takes its place. */
#include "base/shring.h"

#include <sched.h>
#include <string.h>

/* bytes of the word in front of a record, which has the record's length */
#define WORD 8
/* in place of a length: the next record is at the ring's start */
#define SKIP UINT32_MAX
/* The initial value of @rung (base/shring.h). It is even, so this side rings
 * when it first sees an odd value in the other side's counter. */
#define NO_RUNG 0

static uint32_t space_of(uint32_t len)
{
	return (len + WORD + VB_SHRING_ALIGN - 1) &
	       ~(uint32_t)(VB_SHRING_ALIGN - 1);
}

void vb_shring_open(struct vb_shring_out *out, struct vb_shring_in *in,
		    void *own, const void *peer, uint32_t size)
{
	*out = (struct vb_shring_out){
		.own = own,
		.peer = peer,
		.ring = (uint8_t *)own + VB_SHRING_RING_AT,
		.size = size,
		.rung = NO_RUNG,
	};
	*in = (struct vb_shring_in){
		.own = own,
		.peer = peer,
		.ring = (const uint8_t *)peer + VB_SHRING_RING_AT,
		.size = size,
		.rung = NO_RUNG,
	};
}

/* Read how far the consumer has read. Its position cannot go back, nor be ahead
 * of the producer's; if it claims that, the ring is broken. */
static void look_at_tail(struct vb_shring_out *o)
{
	uint64_t tail =
		atomic_load_explicit(&o->peer->tail, memory_order_acquire);

	if (tail - o->tail > o->head - o->tail)
		o->broken = true;
	else
		o->tail = tail;
}

static bool has_space(struct vb_shring_out *o, uint32_t space)
{
	if (VB_LIKELY(o->size - (o->head - o->tail) >= space))
		return true;
	look_at_tail(o);
	return !o->broken && o->size - (o->head - o->tail) >= space;
}

static void put_word(uint8_t *at, uint32_t value)
{
	const uint64_t word = value;

	memcpy(at, &word, sizeof(word));
}

uint8_t *vb_shring_begin(struct vb_shring_out *o, uint32_t len)
{
	uint32_t space = space_of(len);
	uint32_t at = (uint32_t)o->head & (o->size - 1);
	uint32_t left = o->size - at;

	if (o->broken || !has_space(o, space > left ? left + space : space))
		return NULL;
	o->at = o->head;
	if (space > left) {
		put_word(o->ring + at, SKIP);
		o->at += left;
		at = 0;
	}
	return o->ring + at + WORD;
}

void vb_shring_commit(struct vb_shring_out *o, uint32_t len)
{
	put_word(o->ring + ((uint32_t)o->at & (o->size - 1)), len);
	o->head = o->at + space_of(len);
}

/* True if this side must ring the other side's bell. The other side stores an
 * odd value in @counter before it sleeps or starves. This side rings once for
 * each such value, and keeps the value in *@rung. */
static bool must_ring(const _Atomic uint32_t *counter, uint32_t *rung)
{
	uint32_t now;

	/* Pairs with the fence of announce_side(): either this side sees the
	 * odd value, or the other one sees what this side has stored before. */
	atomic_thread_fence(memory_order_seq_cst);
	now = atomic_load_explicit(counter, memory_order_relaxed);
	if (!(now & 1) || now == *rung)
		return false;
	*rung = now;
	return true;
}

bool vb_shring_publish(struct vb_shring_out *o)
{
	atomic_store_explicit(&o->own->head, o->head, memory_order_release);
	return must_ring(&o->peer->sleeps, &o->rung);
}

uint64_t vb_shring_published(const struct vb_shring_out *o)
{
	return atomic_load_explicit(&o->own->head, memory_order_relaxed);
}

bool vb_shring_has_released(const struct vb_shring_out *o, uint64_t position)
{
	uint64_t tail =
		atomic_load_explicit(&o->peer->tail, memory_order_relaxed);

	return (int64_t)(position - tail) <= 0;
}

/* Read how far the producer has written. False: it claims more than the ring
 * holds. */
static bool look_at_head(struct vb_shring_in *i)
{
	uint64_t head =
		atomic_load_explicit(&i->peer->head, memory_order_acquire);

	if (head - i->tail > i->size || head % VB_SHRING_ALIGN)
		return false;
	i->head = head;
	return true;
}

/* Returns the word at @at. The producer may change it at any time, so it is
 * loaded once: the checks then see the value that is used. */
static uint64_t get_word(const uint8_t *at)
{
	return atomic_load_explicit((const _Atomic uint64_t *)(const void *)at,
				    memory_order_relaxed);
}

const uint8_t *vb_shring_next(struct vb_shring_in *i, uint32_t *len)
{
	uint64_t word;

	*len = 0;
	for (;;) {
		uint32_t at = (uint32_t)i->tail & (i->size - 1);
		uint32_t left = i->size - at;

		if (i->head == i->tail && !look_at_head(i))
			break;
		if (i->head == i->tail)
			return NULL;
		word = get_word(i->ring + at);
		if (word == SKIP && left <= i->head - i->tail && at) {
			i->tail += left;
			continue;
		}
		if (word > left - WORD ||
		    space_of((uint32_t)word) > i->head - i->tail)
			break;
		*len = (uint32_t)word;
		i->tail += space_of(*len);
		return i->ring + at + WORD;
	}
	*len = UINT32_MAX;
	return NULL;
}

void vb_shring_unget(struct vb_shring_in *i, const uint8_t *record)
{
	uint32_t at = (uint32_t)(record - WORD - i->ring);

	i->tail -= ((uint32_t)i->tail - at) & (i->size - 1);
}

bool vb_shring_release(struct vb_shring_in *i)
{
	atomic_store_explicit(&i->own->tail, i->tail, memory_order_release);
	if (i->head - i->tail > i->size / 2)
		return false;
	return must_ring(&i->peer->starves, &i->rung);
}

bool vb_shring_is_empty(const struct vb_shring_in *i)
{
	return atomic_load_explicit(&i->peer->head, memory_order_acquire) ==
	       atomic_load_explicit(&i->own->tail, memory_order_relaxed);
}

/* Make this side's counter odd (@on: it sleeps or starves) or even. */
static void announce_side(_Atomic uint32_t *counter, bool on)
{
	uint32_t now = atomic_load_explicit(counter, memory_order_relaxed);

	if ((now & 1) != on)
		atomic_store_explicit(counter, now + 1, memory_order_relaxed);
	/* Pairs with the fence of must_ring(). */
	if (on)
		atomic_thread_fence(memory_order_seq_cst);
}

bool vb_shring_sleep(struct vb_shring_in *i)
{
	announce_side(&i->own->sleeps, true);
	return vb_shring_is_empty(i);
}

void vb_shring_wake(struct vb_shring_in *i)
{
	announce_side(&i->own->sleeps, false);
}

bool vb_shring_starve(struct vb_shring_out *o)
{
	/* Store a new odd value: the consumer may have rung for the last one,
	 * and the ring may have become full again since. */
	announce_side(&o->own->starves, false);
	announce_side(&o->own->starves, true);
	look_at_tail(o);
	return o->head - o->tail > o->size / 2;
}

void vb_shring_feed(struct vb_shring_out *o)
{
	announce_side(&o->own->starves, false);
}

void vb_shring_runs_here(struct vb_shring_in *i)
{
	uint32_t now = (uint32_t)sched_getcpu() + 1;

	/* The other process reads this line often, so write it seldom. */
	if (atomic_load_explicit(&i->own->processor, memory_order_relaxed) !=
	    now)
		atomic_store_explicit(&i->own->processor, now,
				      memory_order_relaxed);
}

bool vb_shring_peer_runs_on(const struct vb_shring_in *i, int processor)
{
	uint32_t peer =
		atomic_load_explicit(&i->peer->processor, memory_order_relaxed);

	return !peer || peer == (uint32_t)processor + 1;
}
