/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of requests and of answers, in memory that two programs map. Each ring
 * has one writer and one reader, in different processes, and neither trusts the
 * other: the reader copies an entry before it checks the entry; the writer
 * reads only the index that the reader reports, and checks that index.
 *
 * The stamp of a slot says that the slot is filled, so a waiting reader polls
 * one cache line, the one that also has the message. Each request is answered;
 * one answer may stand for several requests. A writer leaves at most
 * VB_RING_SLOTS requests unanswered, so the ring of answers always has room.
 */
#ifndef NEAR_RING_H
#define NEAR_RING_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_RING_SLOTS 256u /* number of slots, a power of two */
/* Size in bytes of the area for data that is too long for a slot. */
#define VB_RING_DATA	(64u * 1024)
#define VB_REQUEST_ROOM 72u
#define VB_REQUEST_MAX                                                         \
	4096u /* the most bytes of data that follow one request */
#define VB_CACHE_LINE 64

struct vb_request {
	uint8_t op;    /* the operation, an enum vb_near_op */
	uint8_t flags; /* bits of enum vb_request_flags */
	/* The length in bytes of the data that follows, as the writer reports
	 * it. */
	uint16_t bytes;
	uint32_t dqpn, sqpn;
	/* The lives of both queue pairs (struct vb_registry_qp): a request to
	 * or from an earlier connection of a queue pair is not carried out. */
	uint32_t life, src_life;
	uint32_t seq;
	uint32_t length; /* length of the whole message in bytes */
	uint32_t imm;
	uint32_t rkey;
	uint64_t va;
};

struct vb_request_slot {
	/* in a filled slot: the slot's running index + 1 */
	_Atomic uint32_t stamp;
	/* The offset of the data in vb_ring.data, if it is longer than
	 * @room. */
	uint32_t data_at;
	struct vb_request r;
	uint8_t room[VB_REQUEST_ROOM];
} __attribute__((aligned(VB_CACHE_LINE)));
_Static_assert(sizeof(struct vb_request_slot) == 128, "two lines");
_Static_assert(offsetof(struct vb_request_slot, room) == 56,
	       "eight bytes of data come in the first line");

struct vb_answer_note {
	uint32_t qpn, life; /* number and life of the requester's queue pair */
	/* With ANSWER_DONE: all requests up to this sequence number are
	 * complete. */
	uint32_t seq;
	uint16_t count;	  /* the number of requests that this answer covers */
	uint8_t kind;	  /* kind of the answer, an enum vb_answer_kind */
	uint8_t syndrome; /* a syndrome of an AETH (IBA 9.7.5.1.1) */
	uint64_t value;	  /* of an atomic: the value before the operation */
};

struct vb_answer_slot {
	_Atomic uint32_t stamp;
	struct vb_answer_note a;
} __attribute__((aligned(VB_CACHE_LINE)));

/* One direction of a lane. The other program may write any value to any place
 * in it at any time. */
struct vb_ring {
	struct vb_request_slot requests[VB_RING_SLOTS];
	struct vb_answer_slot answers[VB_RING_SLOTS];
	/* Written by the reader: the number of requests that it has
	 * processed. */
	_Atomic uint32_t head __attribute__((aligned(VB_CACHE_LINE)));
	uint8_t data[VB_RING_DATA] __attribute__((aligned(VB_CACHE_LINE)));
};

struct vb_ring_writer {
	struct vb_ring *ring;
	_Atomic uint32_t tail;
	/* The number of answered requests, written by the thread that reads the
	 * answers. */
	_Atomic uint32_t answered;
	/* the last valid value of the ring's head that was read */
	uint32_t head;
	uint32_t answer_tail;
	/* running counts of the bytes in vb_ring.data */
	uint32_t data_head, data_tail;
	/* the value of data_tail after each request */
	uint32_t data_end[VB_RING_SLOTS];
};

struct vb_ring_reader {
	struct vb_ring *ring;
	uint32_t head, answer_head;
};

/* Returns the number of unanswered requests. Two threads call this: for the
 * writer of requests the number may be too large, for the reader of answers too
 * small, but never smaller than the number of answers left to read. */
static inline uint32_t vb_ring_unanswered(const struct vb_ring_writer *w)
{
	return atomic_load_explicit(&w->tail, memory_order_relaxed) -
	       atomic_load_explicit(&w->answered, memory_order_relaxed);
}

/* For the thread that reads answers: count @count more requests as answered.
 * False: fewer requests than that are unanswered, so the peer's answer is
 * invalid. */
static inline bool vb_ring_discount(struct vb_ring_writer *w, uint32_t count)
{
	uint32_t answered =
		atomic_load_explicit(&w->answered, memory_order_relaxed);

	if (count > vb_ring_unanswered(w))
		return false;
	atomic_store_explicit(&w->answered, answered + count,
			      memory_order_relaxed);
	return true;
}

/*
 * Begin a request with @bytes of data, at most VB_REQUEST_MAX. The caller fills
 * in the returned request, except r.bytes, and *@data, and calls
 * vb_ring_commit(); without that call the request is not sent. NULL: there is
 * no room now. The caller holds peer->tx.
 */
struct vb_request *vb_ring_begin(struct vb_ring_writer *w, uint32_t bytes,
				 uint8_t **data);
/* Send the request that vb_ring_begin() returned last. */
void vb_ring_commit(struct vb_ring_writer *w);

/* Look at the oldest request. 1: *@r is a copy of it, and its data is at *@data
 * until vb_ring_done(); the peer may still change the data. 0: there is no
 * request. -EPROTO: the lengths are invalid. */
VB_MUST_CHECK int vb_ring_look(const struct vb_ring_reader *rd,
			       struct vb_request *r, const uint8_t **data);
/* The caller has processed the oldest request: free its slot and data. */
void vb_ring_done(struct vb_ring_reader *rd);

/* Prefetch the cache line of the next answer for writing. The peer polls that
 * line, so it is in the peer's cache, and the next locked instruction would
 * wait for it. This is only a hint. */
static inline void vb_ring_expect_answer(const struct vb_ring_writer *w)
{
	const struct vb_answer_slot *slot =
		&w->ring->answers[w->answer_tail % VB_RING_SLOTS];

/* Elsewhere __builtin_prefetch() fetches only for reading. */
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
	__builtin_prefetch(slot, 1);
#endif
}

/* Put an answer on the ring, which always has room, since the number of
 * unanswered requests is limited. The caller holds peer->tx. */
void vb_ring_answer(struct vb_ring_writer *w, const struct vb_answer_note *a);
/* Remove the oldest answer. 1: *@a is a copy of it. 0: there is no answer. */
VB_MUST_CHECK int vb_ring_hear(struct vb_ring_reader *rd,
			       struct vb_answer_note *a);

/* Put back the answer that vb_ring_hear() has returned last. */
static inline void vb_ring_unhear(struct vb_ring_reader *rd)
{
	rd->answer_head--;
}

/* Has the ring a request for vb_ring_look(), or an answer for
 * vb_ring_hear()? */
static inline bool vb_ring_has_request(const struct vb_ring_reader *rd)
{
	/* Acquire: pairs with the release in vb_ring_commit(). */
	return atomic_load_explicit(
		       &rd->ring->requests[rd->head % VB_RING_SLOTS].stamp,
		       memory_order_acquire) == rd->head + 1;
}

static inline bool vb_ring_has_answer(const struct vb_ring_reader *rd)
{
	return atomic_load_explicit(
		       &rd->ring->answers[rd->answer_head % VB_RING_SLOTS]
				.stamp,
		       memory_order_acquire) == rd->answer_head + 1;
}

/* Is @stamp possible in the slot that the reader expects next, with the running
 * index @i? The slot is filled, or has the stamp of the round before, or was
 * never filled. */
static inline bool vb_ring_is_stamp(uint32_t stamp, uint32_t i)
{
	return stamp == i + 1 - VB_RING_SLOTS || stamp == i + 1 ||
	       (stamp == 0 && i < VB_RING_SLOTS);
}

/* Are the stamps of the next request and of the next answer possible? A reader
 * waits for ever at an impossible one. */
static inline bool vb_ring_reads_well(const struct vb_ring_reader *rd)
{
	const struct vb_ring *ring = rd->ring;

	/* Relaxed: the caller reads no message by these stamps. */
	return vb_ring_is_stamp(
		       atomic_load_explicit(
			       &ring->requests[rd->head % VB_RING_SLOTS].stamp,
			       memory_order_relaxed),
		       rd->head) &&
	       vb_ring_is_stamp(
		       atomic_load_explicit(
			       &ring->answers[rd->answer_head % VB_RING_SLOTS]
					.stamp,
			       memory_order_relaxed),
		       rd->answer_head);
}

/* Are the stamps of the unanswered requests those that this program wrote, and
 * is the index of the reader possible? If not, the other program has changed
 * them, and the requests may never be answered. Nobody begins a request
 * meanwhile. */
bool vb_ring_is_intact(const struct vb_ring_writer *w);

#endif
