/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of records in memory that two processes map, one as the producer and
 * one as the consumer. Neither process trusts the other: each keeps its own
 * positions in private memory, writes only its own side, and checks whatever it
 * reads of the other side. One thread at a time uses an end of the ring.
 *
 * A side that is about to sleep, or that waits for room, says so by making its
 * counter odd. The other side then rings the sleeper's bell once, by means of
 * its own (a socket); it need not write to the sleeper's memory for that.
 */
#ifndef BASE_SHRING_H
#define BASE_SHRING_H

#include <stdatomic.h>

#include "base/defs.h"

/* The positions and counters that one process writes, and the other one reads,
 * for a pair of rings, one in each direction. */
struct vb_shring_side {
	/* bytes of records that this process has put into its outgoing ring so
	 * far */
	_Alignas(64) _Atomic uint64_t head;
	/* bytes of records of its incoming ring that this process has given
	 * back so far */
	_Alignas(64) _Atomic uint64_t tail;
	/* odd: this process sleeps until the other one puts a record into the
	 * ring */
	_Alignas(64) _Atomic uint32_t sleeps;
	/* odd: this process waits until its outgoing ring has room */
	_Atomic uint32_t starves;
	/* the number of the processor on which a thread of this process last
	 * used its rings, plus 1; 0: not known */
	_Alignas(64) _Atomic uint32_t processor;
};

#define VB_SHRING_ALIGN 64 /* records begin at multiples of this many bytes */

/* The size of the memory that one process writes: a struct vb_shring_side, and
 * at VB_SHRING_RING_AT its outgoing ring of @size bytes, a power of two. */
#define VB_SHRING_BYTES(size) (VB_SHRING_RING_AT + (size_t)(size))
#define VB_SHRING_RING_AT     4096

/* The producer's end of a ring. */
struct vb_shring_out {
	struct vb_shring_side *own;
	const struct vb_shring_side *peer;
	uint8_t *ring;
	uint32_t size;
	/* @head: bytes that this producer has written; @tail: bytes that the
	 * consumer had given back when the producer last looked */
	uint64_t head, tail;
	/* position of the record that vb_shring_begin() has begun */
	uint64_t at;
	/* the last value of peer->sleeps for which this side has rung */
	uint32_t rung;
	/* the consumer has claimed an impossible position */
	bool broken;
};

/* The consumer's end. */
struct vb_shring_in {
	struct vb_shring_side *own;
	const struct vb_shring_side *peer;
	const uint8_t *ring;
	uint32_t size;
	/* @tail: bytes that this consumer has read; @head: bytes that the
	 * producer had written when the consumer last looked */
	uint64_t tail, head;
	/* the last value of peer->starves for which this side has rung */
	uint32_t rung;
};

/* Set up a process's ends of its two rings: @out of the ring to the other
 * process, @in of the ring from it. @own: VB_SHRING_BYTES(@size) bytes of
 * zeros, which this process may write; @peer: as many bytes of the other
 * process, which this process only reads. */
void vb_shring_open(struct vb_shring_out *out, struct vb_shring_in *in,
		    void *own, const void *peer, uint32_t size);

/* Begin a record of @len bytes, at most a quarter of the ring. Returns where
 * the caller writes the record; NULL: the ring has no room now (the caller may
 * have records to publish), or @o->broken. */
uint8_t *vb_shring_begin(struct vb_shring_out *o, uint32_t len);
/* End the record that vb_shring_begin() began. @len: its length, at most that
 * of vb_shring_begin(). */
void vb_shring_commit(struct vb_shring_out *o, uint32_t len);
/* Let the consumer see all records that were ended. True: the consumer sleeps,
 * and the caller must ring its bell. */
VB_MUST_CHECK bool vb_shring_publish(struct vb_shring_out *o);

/* Returns the position in the stream of bytes behind the last published record.
 * Any thread may ask. */
uint64_t vb_shring_published(const struct vb_shring_out *o);
/* Has the consumer released all records before @position? Any thread may ask.
 * The answer is no better than what the consumer writes. */
bool vb_shring_has_released(const struct vb_shring_out *o, uint64_t position);

/* Take the next record. Returns its bytes, which stay until
 * vb_shring_release(), and sets *@len. NULL: with *@len 0 the ring is empty;
 * with any other value the producer has broken the ring. */
const uint8_t *vb_shring_next(struct vb_shring_in *i, uint32_t *len);
/* Undo the last vb_shring_next(), which returned @record: the next call returns
 * the same record again. */
void vb_shring_unget(struct vb_shring_in *i, const uint8_t *record);
/* Give the room of all records that were taken back to the producer. True: the
 * producer waits for room, and at least half of the ring is free now, so the
 * caller must ring its bell. */
VB_MUST_CHECK bool vb_shring_release(struct vb_shring_in *i);
/* True if all records were taken and released. Any thread may ask. */
bool vb_shring_is_empty(const struct vb_shring_in *i);

/* Announce that the consumer sleeps (vb_shring_sleep()), or no longer sleeps
 * (vb_shring_wake()). One thread at a time may do this; it need not be the
 * thread that takes records. False: some records were not released yet, so the
 * consumer must not sleep. */
VB_MUST_CHECK bool vb_shring_sleep(struct vb_shring_in *i);
void vb_shring_wake(struct vb_shring_in *i);
/* Announce that the producer waits for room (vb_shring_starve()), or no longer
 * waits (vb_shring_feed()). The consumer rings once for each call of
 * vb_shring_starve(). False: half of the ring is free, so the producer need not
 * wait. */
VB_MUST_CHECK bool vb_shring_starve(struct vb_shring_out *o);
void vb_shring_feed(struct vb_shring_out *o);

/* Let the other process know on which processor the calling thread runs. The
 * kernel may move the thread at any time, so this is a hint. */
void vb_shring_runs_here(struct vb_shring_in *i);
/* Is @processor, a number of sched_getcpu(), the one on which the other process
 * last used its rings? True also if the other process has not said. Nothing but
 * time may depend on the answer, since the other process can say anything. */
bool vb_shring_peer_runs_on(const struct vb_shring_in *i, int processor);

#endif
