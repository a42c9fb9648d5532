/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of requests and of answers, in memory that two programs map. Each ring
 * has one writer and one reader, in different processes, and neither trusts the
 * other: the reader copies an entry before it checks it, and the writer reads
 * nothing but how far the reader says it has come, and checks that.
 *
 * The stamp of a slot says that the slot is filled, so a waiting reader polls
 * one cache line, the same that brings the message. Each request is answered;
 * one answer may stand for several requests. A writer leaves at most
 * VB_RING_SLOTS requests unanswered, so there is always room for the answers.
 */
#ifndef NEAR_RING_H
#define NEAR_RING_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_RING_SLOTS 256u /* a power of two */
/* Bytes for data that is too long for a slot. */
#define VB_RING_DATA	(64u * 1024)
#define VB_REQUEST_ROOM 72u
#define VB_REQUEST_MAX                                                         \
	4096u /* the most bytes of data that follow one request */
#define VB_CACHE_LINE 64

struct vb_request {
	uint8_t op;    /* enum vb_near_op */
	uint8_t flags; /* enum vb_request_flags */
	/* The length of the data that follows, as the writer says it. */
	uint16_t bytes;
	uint32_t dqpn, sqpn;
	/* The lives of both queue pairs (struct vb_registry_qp): a request to
	 * or from an earlier connection of the same queue pair is not carried
	 * out. */
	uint32_t life, src_life;
	uint32_t seq;
	uint32_t length; /* of the whole message */
	uint32_t imm;
	uint32_t rkey;
	uint64_t va;
};

struct vb_request_slot {
	_Atomic uint32_t stamp; /* once filled: the slot's running index + 1 */
	/* Where the data begins in vb_ring.data, if it is longer than room. */
	uint32_t data_at;
	struct vb_request r;
	uint8_t room[VB_REQUEST_ROOM];
} __attribute__((aligned(VB_CACHE_LINE)));
_Static_assert(sizeof(struct vb_request_slot) == 128, "two lines");
_Static_assert(offsetof(struct vb_request_slot, room) == 56,
	       "eight bytes of data come in the first line");

struct vb_answer_note {
	uint32_t qpn, life; /* the requester's queue pair */
	/* With ANSWER_DONE: all requests up to this one are done. */
	uint32_t seq;
	uint16_t count;	  /* the number of requests that it answers */
	uint8_t kind;	  /* enum vb_answer_kind */
	uint8_t syndrome; /* of an AETH (IBA 9.7.5.1.1) */
	uint64_t value;	  /* the old value that an atomic returns */
};

struct vb_answer_slot {
	_Atomic uint32_t stamp;
	struct vb_answer_note a;
} __attribute__((aligned(VB_CACHE_LINE)));

/* One direction of a lane. Expect the other program to write anything anywhere
 * in it at any time. */
struct vb_ring {
	struct vb_request_slot requests[VB_RING_SLOTS];
	struct vb_answer_slot answers[VB_RING_SLOTS];
	/* Written by the reader: the number of requests it is done with. */
	_Atomic uint32_t head __attribute__((aligned(VB_CACHE_LINE)));
	uint8_t data[VB_RING_DATA] __attribute__((aligned(VB_CACHE_LINE)));
};

struct vb_ring_writer {
	struct vb_ring *ring;
	_Atomic uint32_t tail;
	/* The number of answered requests. Written by the thread that reads the
	 * answers. */
	_Atomic uint32_t answered;
	uint32_t head; /* the ring's head, as last seen and believed */
	uint32_t answer_tail;
	uint32_t data_head, data_tail; /* running byte counts of vb_ring.data */
	uint32_t data_end[VB_RING_SLOTS]; /* data_tail after each request */
};

struct vb_ring_reader {
	struct vb_ring *ring;
	uint32_t head, answer_head;
};

/* The number of unanswered requests. Two threads call this: the writer of
 * requests may see too many, the reader of answers too few, but never fewer
 * than there are answers left to read. */
static inline uint32_t vb_ring_unanswered(const struct vb_ring_writer *w)
{
	return atomic_load_explicit(&w->tail, memory_order_relaxed) -
	       atomic_load_explicit(&w->answered, memory_order_relaxed);
}

/* By the thread that reads answers: @count more requests are answered. False:
 * fewer requests than that are unanswered, so the peer's answer is invalid. */
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
 * vb_ring_commit(); without that call nothing is sent. NULL: there is no room
 * now. The caller holds peer->tx.
 */
struct vb_request *vb_ring_begin(struct vb_ring_writer *w, uint32_t bytes,
				 uint8_t **data);
/* Send the request that vb_ring_begin() returned last. */
void vb_ring_commit(struct vb_ring_writer *w);

/* 1: *@r is a copy of the oldest request, whose data is at *@data until
 * vb_ring_done(); the peer may still change the data. 0: there is none.
 * -EPROTO: the lengths are invalid. */
VB_MUST_CHECK int vb_ring_look(const struct vb_ring_reader *rd,
			       struct vb_request *r, const uint8_t **data);
/* The caller has processed the oldest request: free its slot and data. */
void vb_ring_done(struct vb_ring_reader *rd);

/* Fetch the cache line of the next answer for writing ahead of time. The peer
 * polls that line, so it is in the peer's cache, and the next locked
 * instruction would wait for it. A hint. */
static inline void vb_ring_expect_answer(const struct vb_ring_writer *w)
{
	const struct vb_answer_slot *slot =
		&w->ring->answers[w->answer_tail % VB_RING_SLOTS];

#ifdef __x86_64__ /* __builtin_prefetch() fetches for reading only here */
	__asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
	__builtin_prefetch(slot, 1);
#endif
}

/* Put an answer on the ring. There is room, since unanswered requests are
 * limited. The caller holds peer->tx. */
void vb_ring_answer(struct vb_ring_writer *w, const struct vb_answer_note *a);
/* 1: *@a is a copy of the oldest answer, which is removed. 0: there is none. */
VB_MUST_CHECK int vb_ring_hear(struct vb_ring_reader *rd,
			       struct vb_answer_note *a);

/* Is there anything for vb_ring_look() or vb_ring_hear() to return? */
static inline bool vb_ring_has_request(const struct vb_ring_reader *rd)
{
	/* Acquire pairs with the release in vb_ring_commit(). */
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

#endif
