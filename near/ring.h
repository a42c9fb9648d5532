/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of requests and of answers in memory that two programs map. Each has
 * one writer and one reader, in different processes, and neither believes the
 * other: the reader takes a private copy and then looks at it, the writer
 * asks only how far the reader has come.
 *
 * A slot says by its stamp that it is filled, so that who waits looks at one
 * cache line, the one that brings the message too. Every request is answered
 * by an answer (which may answer several), and a writer leaves no more than
 * VB_RING_SLOTS unanswered: so answers always find room.
 */
#ifndef NEAR_RING_H
#define NEAR_RING_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_RING_SLOTS	256u	     /* a power of two */
#define VB_RING_DATA	(64u * 1024) /* for what does not fit in slots */
#define VB_REQUEST_ROOM 72u
#define VB_REQUEST_MAX	4096u /* bytes that go along with one request */
#define VB_CACHE_LINE	64

struct vb_request {
	uint8_t op;	/* enum vb_near_op */
	uint8_t flags;	/* enum vb_request_flags */
	uint16_t bytes; /* that go along: data, or what it says it is */
	uint32_t dqpn, sqpn;
	uint32_t life, src_life; /* of the queue pairs: near/registry.h */
	uint32_t seq;
	uint32_t length; /* of the message */
	uint32_t imm;
	uint32_t rkey;
	uint64_t va;
};

struct vb_request_slot {
	_Atomic uint32_t stamp; /* its free-running index + 1, once filled */
	uint32_t data_at;	/* when its bytes are more than its room */
	struct vb_request r;
	uint8_t room[VB_REQUEST_ROOM];
} __attribute__((aligned(VB_CACHE_LINE)));
_Static_assert(sizeof(struct vb_request_slot) == 128, "two lines");
_Static_assert(offsetof(struct vb_request_slot, room) == 56,
	       "eight bytes of data come in the first line");

struct vb_answer_note {
	uint32_t qpn, life; /* of who asked */
	uint32_t seq;	    /* with DONE: all up to here */
	uint16_t count;	    /* requests that it answers */
	uint8_t kind;	    /* enum vb_answer_kind */
	uint8_t syndrome;   /* of an AETH: IBA 9.7.5.1.1 */
	uint64_t value;	    /* an atomic's */
};

struct vb_answer_slot {
	_Atomic uint32_t stamp;
	struct vb_answer_note a;
} __attribute__((aligned(VB_CACHE_LINE)));

/* One way of a lane. All of it may be filled with anything by the other
 * program. */
struct vb_ring {
	struct vb_request_slot requests[VB_RING_SLOTS];
	struct vb_answer_slot answers[VB_RING_SLOTS];
	/* the reader's: requests done with */
	_Atomic uint32_t head __attribute__((aligned(VB_CACHE_LINE)));
	uint8_t data[VB_RING_DATA] __attribute__((aligned(VB_CACHE_LINE)));
};

struct vb_ring_writer {
	struct vb_ring *ring;
	_Atomic uint32_t tail;
	_Atomic uint32_t answered; /* requests; who hears answers writes it */
	uint32_t head;		   /* the reader's, as last seen */
	uint32_t answer_tail;
	uint32_t data_head, data_tail;	  /* free-running bytes of data[] */
	uint32_t data_end[VB_RING_SLOTS]; /* data_tail after each request */
};

struct vb_ring_reader {
	struct vb_ring *ring;
	uint32_t head, answer_head;
};

/* By two threads: who writes may see too many, who hears too few, but never
 * fewer than there are answers for. */
static inline uint32_t vb_ring_unanswered(const struct vb_ring_writer *w)
{
	return atomic_load_explicit(&w->tail, memory_order_relaxed) -
	       atomic_load_explicit(&w->answered, memory_order_relaxed);
}

/* So many more are answered; by who hears. False: there are not so many. */
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
 * A place for a request with @bytes (at most VB_REQUEST_MAX) along with it.
 * *@data: where those go. NULL: no room now.
 */
struct vb_request *vb_ring_begin(struct vb_ring_writer *w, uint32_t bytes,
				 uint8_t **data);
/* What was begun last, filled in, goes. */
void vb_ring_commit(struct vb_ring_writer *w);

/* 1: *@r is the oldest request, its bytes are at *@data until vb_ring_done();
 * 0: none; -EPROTO: nonsense. */
VB_MUST_CHECK int vb_ring_look(const struct vb_ring_reader *rd,
			       struct vb_request *r, const uint8_t **data);
void vb_ring_done(struct vb_ring_reader *rd);

/* The other looks at the line all the time, so it is fetched while there is
 * other work: the next locked instruction would wait for it. A hint. */
static inline void vb_ring_expect_answer(const struct vb_ring_writer *w)
{
	const struct vb_answer_slot *slot =
		&w->ring->answers[w->answer_tail % VB_RING_SLOTS];

#ifdef __x86_64__ /* else for reading only, where not all have it */
	__asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
	__builtin_prefetch(slot, 1);
#endif
}

/* There is room: see above. */
void vb_ring_answer(struct vb_ring_writer *w, const struct vb_answer_note *a);
/* 1, 0. Takes it out. */
VB_MUST_CHECK int vb_ring_hear(struct vb_ring_reader *rd,
			       struct vb_answer_note *a);

/* Is there something to vb_ring_look() or vb_ring_hear()? */
static inline bool vb_ring_has_request(const struct vb_ring_reader *rd)
{
	/* Acquire pairs with vb_ring_commit(). */
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
