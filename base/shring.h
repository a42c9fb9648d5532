/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of records in memory that two processes map, from a producer to a
 * consumer. Neither trusts the other: each keeps its own positions in private
 * memory, writes only its own side, and checks whatever it reads of the other
 * side. One thread at a time uses an end of the ring.
 *
 * A side that is about to sleep, or that waits for room, says so by making its
 * counter odd. The other side then rings it once by means of its own (a
 * socket); it needs no write to the sleeper's memory for that.
 */
#ifndef BASE_SHRING_H
#define BASE_SHRING_H

#include <stdatomic.h>

#include "base/defs.h"

/* What one process writes of a pair of rings, one in each direction. */
struct vb_shring_side {
	/* bytes that it has put into its outgoing ring so far */
	_Alignas(64) _Atomic uint64_t head;
	/* bytes of the incoming ring that it has done with */
	_Alignas(64) _Atomic uint64_t tail;
	/* odd: it sleeps until a record comes */
	_Alignas(64) _Atomic uint32_t sleeps;
	/* odd: it waits until its outgoing ring has room */
	_Atomic uint32_t starves;
};

#define VB_SHRING_ALIGN 64 /* of records */

/* The bytes of memory that one process writes: its side, and its ring of @size
 * bytes, a power of two. */
#define VB_SHRING_BYTES(size) (VB_SHRING_RING_AT + (size_t)(size))
#define VB_SHRING_RING_AT     4096

/* The producer's end of a ring. */
struct vb_shring_out {
	struct vb_shring_side *own;
	const struct vb_shring_side *peer;
	uint8_t *ring;
	uint32_t size;
	uint64_t head, tail; /* tail: the consumer's, when last looked at */
	uint64_t at;	     /* of the record that vb_shring_begin() began */
	uint32_t rung;	     /* the value of peer->sleeps that was rung for */
	bool broken;	     /* the consumer claims what cannot be */
};

/* The consumer's end. */
struct vb_shring_in {
	struct vb_shring_side *own;
	const struct vb_shring_side *peer;
	const uint8_t *ring;
	uint32_t size;
	uint64_t tail, head; /* head: the producer's, when last looked at */
	uint32_t rung;	     /* the value of peer->starves that was rung for */
};

/* Make the ends of a process: @own is VB_SHRING_BYTES(@size) of zeros that it
 * may write, @peer is the other process's, which it need not. */
void vb_shring_open(struct vb_shring_out *out, struct vb_shring_in *in,
		    void *own, const void *peer, uint32_t size);

/* Returns where to write a record of @len bytes; NULL: there is no room now,
 * and the ring may have to be published, or @out->broken. @len is at most a
 * quarter of the ring. */
uint8_t *vb_shring_begin(struct vb_shring_out *o, uint32_t len);
/* The record is written; @len is at most that of vb_shring_begin(). */
void vb_shring_commit(struct vb_shring_out *o, uint32_t len);
/* Show the consumer all that was committed. True: the consumer sleeps, and the
 * caller must ring it. */
VB_MUST_CHECK bool vb_shring_publish(struct vb_shring_out *o);

/* The next record: returns its bytes and sets *@len; they stay until
 * vb_shring_release(). NULL: there is none, and *@len is 0, or else the
 * producer has broken the ring. */
const uint8_t *vb_shring_next(struct vb_shring_in *i, uint32_t *len);
/* Take back the last vb_shring_next(), which returned @record. */
void vb_shring_unget(struct vb_shring_in *i, const uint8_t *record);
/* Give back the memory of the records that were taken. True: the producer
 * waits for room, of which there is plenty now, so the caller must ring it. */
VB_MUST_CHECK bool vb_shring_release(struct vb_shring_in *i);
/* Were all records released? Any thread may ask. */
bool vb_shring_is_empty(const struct vb_shring_in *i);

/* Announce that the consumer sleeps, or does not sleep any more. One thread at
 * a time, which may be another than the one that takes records. False: there
 * are records that were not released, so it must not sleep. */
VB_MUST_CHECK bool vb_shring_sleep(struct vb_shring_in *i);
void vb_shring_wake(struct vb_shring_in *i);
/* Announce that the producer waits for room, or does not any more. Each call
 * asks for one ring of its own. False: half of the ring is free, so the
 * producer need not wait. */
VB_MUST_CHECK bool vb_shring_starve(struct vb_shring_out *o);
void vb_shring_feed(struct vb_shring_out *o);

#endif
