/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of requests and answers between two programs that do not trust each
 * other. */
#include "near/ring.h"

#include <errno.h>
#include <string.h>

/* A compiler barrier: the source must not be read again after the copy was
 * checked, because the other program may have changed it. */
static void hide_from_optimizer(void *copy)
{
	__asm__ volatile("" : : "r"(copy) : "memory");
}

static struct vb_request_slot *request_at(struct vb_ring *r, uint32_t i)
{
	return &r->requests[i % VB_RING_SLOTS];
}

static uint32_t tail_of(const struct vb_ring_writer *w)
{
	return atomic_load_explicit(&w->tail, memory_order_relaxed);
}

/* Read the index up to which the reader has read. False: the value is
 * impossible, because the reader goes neither back nor beyond the requests. */
static bool read_head(const struct vb_ring_writer *w, uint32_t *head)
{
	/* Acquire: the reader does not read the slots that it has released any
	 * more. */
	*head = atomic_load_explicit(&w->ring->head, memory_order_acquire);
	return *head - w->head <= tail_of(w) - w->head;
}

/* Take note of how far the reader has read. An impossible value is ignored. */
static void look_at_reader(struct vb_ring_writer *w)
{
	uint32_t head;

	if (!read_head(w, &head) || head == w->head)
		return;
	w->head = head;
	w->data_head = w->data_end[(head - 1) % VB_RING_SLOTS];
}

/* Find room for @bytes bytes without wrapping at the end of the data area.
 * *@from: where they fit. False: there is no room now. */
static bool find_data(const struct vb_ring_writer *w, uint32_t bytes,
		      uint32_t *from)
{
	uint32_t at = w->data_tail % VB_RING_DATA;
	uint32_t skip = at + bytes > VB_RING_DATA ? VB_RING_DATA - at : 0;

	*from = w->data_tail + skip;
	return *from + bytes - w->data_head <= VB_RING_DATA;
}

static bool near_has_room(const struct vb_ring_writer *w, uint32_t bytes)
{
	uint32_t from;

	return tail_of(w) - w->head < VB_RING_SLOTS &&
	       (bytes <= VB_REQUEST_ROOM || find_data(w, bytes, &from));
}

struct vb_request *vb_ring_begin(struct vb_ring_writer *w, uint32_t bytes,
				 uint8_t **data)
{
	uint32_t tail = tail_of(w), from = w->data_tail;
	struct vb_request_slot *slot = request_at(w->ring, tail);

	if (bytes > VB_REQUEST_MAX || vb_ring_unanswered(w) >= VB_RING_SLOTS)
		return NULL;
	if (!near_has_room(w, bytes)) {
		look_at_reader(w);
		if (!near_has_room(w, bytes))
			return NULL;
	}
	*data = slot->room;
	w->data_end[tail % VB_RING_SLOTS] = w->data_tail;
	if (bytes > VB_REQUEST_ROOM) {
		(void)find_data(w, bytes, &from);
		*data = w->ring->data + from % VB_RING_DATA;
		w->data_end[tail % VB_RING_SLOTS] = from + bytes;
	}
	slot->data_at = from % VB_RING_DATA;
	slot->r.bytes = (uint16_t)bytes;
	return &slot->r;
}

void vb_ring_commit(struct vb_ring_writer *w)
{
	uint32_t tail = tail_of(w);

	w->data_tail = w->data_end[tail % VB_RING_SLOTS];
	/* Relaxed is enough: a thread that reads the answer to a request has
	 * seen all that was written before the request's stamp. */
	atomic_store_explicit(&w->tail, tail + 1, memory_order_relaxed);
	/* Release: a reader that sees the stamp also sees the contents of the
	 * slot. */
	atomic_store_explicit(&request_at(w->ring, tail)->stamp, tail + 1,
			      memory_order_release);
}

int vb_ring_look(const struct vb_ring_reader *rd, struct vb_request *r,
		 const uint8_t **data)
{
	struct vb_request_slot *slot = request_at(rd->ring, rd->head);
	uint32_t at;

	if (!vb_ring_has_request(rd))
		return 0;
	*r = slot->r;
	at = slot->data_at;
	hide_from_optimizer(r);
	hide_from_optimizer(&at);
	*data = slot->room;
	if (r->bytes <= VB_REQUEST_ROOM)
		return 1;
	if (r->bytes > VB_REQUEST_MAX || at > VB_RING_DATA - r->bytes)
		return -EPROTO;
	*data = rd->ring->data + at;
	return 1;
}

void vb_ring_done(struct vb_ring_reader *rd)
{
	rd->head++;
	/* Release: the reader does not read the slot after this store. */
	atomic_store_explicit(&rd->ring->head, rd->head, memory_order_release);
}

void vb_ring_answer(struct vb_ring_writer *w, const struct vb_answer_note *a)
{
	struct vb_answer_slot *slot =
		&w->ring->answers[w->answer_tail++ % VB_RING_SLOTS];

	slot->a = *a;
	atomic_store_explicit(&slot->stamp, w->answer_tail,
			      memory_order_release);
}

int vb_ring_hear(struct vb_ring_reader *rd, struct vb_answer_note *a)
{
	if (!vb_ring_has_answer(rd))
		return 0;
	*a = rd->ring->answers[rd->answer_head++ % VB_RING_SLOTS].a;
	hide_from_optimizer(a);
	return 1;
}

bool vb_ring_is_intact(const struct vb_ring_writer *w)
{
	uint32_t head, tail = tail_of(w);
	uint32_t i = atomic_load_explicit(&w->answered, memory_order_relaxed);

	for (; i != tail; i++)
		if (atomic_load_explicit(&request_at(w->ring, i)->stamp,
					 memory_order_relaxed) != i + 1)
			return false;
	return read_head(w, &head);
}
