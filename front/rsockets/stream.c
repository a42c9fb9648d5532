/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol of stream sockets, without I/O: see stream.h. */
#include "front/rsockets/stream.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/defs.h"

static uint32_t half(const struct rs_stream *s)
{
	return s->ring.length / 2;
}

void rs_stream_init(struct rs_stream *s, const struct rs_room *room)
{
	memset(s, 0, sizeof(*s));
	s->slots = room->slots;
	s->ring = room->ring;
	s->out_size = room->out_size;
	s->credits = room->credits;
	s->by_send = room->by_send;
	s->sends_max = room->sends;
	/* The private data gives the peer the first half of the ring, and the
	 * first rs_stream_give() gives it the second. */
	s->in_promised = half(s);
	s->in_free = half(s);
	s->in_give = half(s);
	memset(room->slots, 0, RS_SLOTS * sizeof(*room->slots));
}

uint8_t rs_scale(unsigned value)
{
	if (value <= 0x80)
		return (uint8_t)value;
	return (uint8_t)(0x80 | (VB_MIN(value, 0x7fffu) >> 8));
}

unsigned rs_unscale(uint8_t scale)
{
	return scale <= 0x80 ? scale : (scale & 0x7fu) << 8;
}

static struct rs_area area_to_net(uint64_t addr, uint32_t key, uint32_t length)
{
	return (struct rs_area){ .addr = htobe64(addr),
				 .key = htobe32(key),
				 .length = htobe32(length) };
}

static struct rs_area area_from_net(struct rs_area a)
{
	return (struct rs_area){ .addr = be64toh(a.addr),
				 .key = be32toh(a.key),
				 .length = be32toh(a.length) };
}

void rs_stream_hello(const struct rs_stream *s, const struct rs_room *room,
		     struct rs_hello *h)
{
	memset(h, 0, sizeof(*h));
	h->version = RS_VERSION;
	h->flags = RS_HELLO_IOMAPS;
#if __BYTE_ORDER == __BIG_ENDIAN
	h->flags |= RS_HELLO_NET;
#endif
	h->credits = htobe16(s->credits);
	h->iomaps = rs_scale(room->iomaps);
	h->slots =
		area_to_net((uintptr_t)room->slots, room->slots_key, RS_SLOTS);
	h->data = area_to_net(s->ring.addr, s->ring.key, half(s));
}

int rs_stream_meet(struct rs_stream *s, const struct rs_hello *h,
		   unsigned length)
{
	bool net = __BYTE_ORDER == __BIG_ENDIAN;

	if (length < sizeof(*h) || h->version != RS_VERSION)
		return -EPROTO;
	s->peer_slots = area_from_net(h->slots);
	if (s->peer_slots.length == 0)
		return -EPROTO;
	s->swap = net != !!(h->flags & RS_HELLO_NET);
	if (h->flags & RS_HELLO_IOMAPS) {
		s->peer_iomaps = s->peer_slots;
		s->peer_iomaps.addr +=
			sizeof(struct rs_area) * (uint64_t)s->peer_slots.length;
		s->peer_iomaps.length = rs_unscale(h->iomaps);
	}
	/* The private data already had the half ring of the first slot, so the
	 * peer writes slot 1 first. */
	s->target = area_from_net(h->data);
	s->slot = 1;
	s->peer_slot = 1 % s->peer_slots.length;
	s->may_send = be16toh(h->credits);
	return 0;
}

/*
 * Reads the half ring from a slot, only after the message about the slot has
 * come: before that, the peer's WRITE may have placed only a part of the slot,
 * or a retransmission may write it again.
 */
static int take_slot(struct rs_stream *s)
{
	if (s->nexts == RS_SLOTS)
		return -EPROTO;
	s->next[s->nexts++] = s->slots[s->slot];
	s->slots[s->slot].length = 0;
	s->slot = (s->slot + 1) % RS_SLOTS;
	return 0;
}

/* True if the peer wrote the next slot before this RS_CREDITS message. With
 * immediate data the WRITE's length tells. Over iWARP a Verbena peer sets a
 * flag; for other peers the slot's length field tells, which is the last of the
 * slot's bytes. */
static bool is_slot_new(const struct rs_stream *s, uint32_t value,
			uint32_t length)
{
	const uint32_t *came = &s->slots[s->slot].length;

	if (!s->by_send)
		return length;
	if (value & RS_SLOT_SAID)
		return value & RS_SLOT_NEW;
	return s->nexts < RS_SLOTS && __atomic_load_n(came, __ATOMIC_ACQUIRE);
}

static void next_target(struct rs_stream *s)
{
	if (s->target.length || s->nexts == 0)
		return;
	s->target = s->next[0];
	s->next[0] = s->next[--s->nexts];
}

bool rs_stream_may_send(const struct rs_stream *s)
{
	return s->sent != s->may_send && s->sends < s->sends_max;
}

uint32_t rs_stream_room(struct rs_stream *s)
{
	uint32_t room;

	if (!rs_stream_may_send(s))
		return 0;
	next_target(s);
	room = VB_MIN(s->target.length, s->out_size - s->out_used);
	return VB_MIN(room, RS_MESSAGE);
}

struct rs_write rs_stream_send(struct rs_stream *s, uint32_t length, bool kept)
{
	struct rs_write w = { .addr = s->target.addr,
			      .key = s->target.key,
			      .message = rs_message(RS_DATA, length) };

	s->sent++;
	s->sends++;
	s->target.addr += length;
	s->target.length -= length;
	if (kept) {
		s->out_at = (s->out_at + length) % s->out_size;
		s->out_used += length;
	}
	return w;
}

void rs_stream_sent(struct rs_stream *s, uint32_t kept)
{
	s->sends--;
	s->out_used -= kept;
}

struct rs_write rs_stream_send_iomap(struct rs_stream *s, unsigned i)
{
	s->sent++;
	s->sends++;
	return (struct rs_write){ .addr = s->peer_iomaps.addr +
					  i * sizeof(struct rs_iomap),
				  .key = s->peer_iomaps.key,
				  .message = rs_message(RS_IOMAP, i) };
}

int rs_stream_arrived(struct rs_stream *s, uint32_t message, uint32_t length)
{
	uint32_t value = rs_message_value(message);

	switch (rs_message_kind(message)) {
	case RS_DATA:
		if (value > s->in_promised || (value != length && !s->by_send))
			return -EPROTO;
		s->in_promised -= value;
		s->in_ready += value;
		s->received++;
		return 0;
	case RS_CREDITS:
		s->may_send = (uint16_t)value;
		return is_slot_new(s, value, length) ? take_slot(s) : 0;
	case RS_IOMAP:
		s->received++;
		return 0;
	case RS_CONTROL:
		return 0;
	default:
		return -EPROTO;
	}
}

void rs_stream_read(struct rs_stream *s, uint32_t bytes)
{
	s->in_at = (s->in_at + bytes) % s->ring.length;
	s->in_ready -= bytes;
	s->in_free += bytes;
}

static struct rs_area next_half(struct rs_stream *s)
{
	struct rs_area a = { .addr = s->ring.addr + s->in_give,
			     .key = s->ring.key,
			     .length = half(s) };

	s->in_free -= half(s);
	s->in_promised += half(s);
	s->in_give = (s->in_give + half(s)) % s->ring.length;
	if (s->swap)
		return (struct rs_area){ .addr = __builtin_bswap64(a.addr),
					 .key = __builtin_bswap32(a.key),
					 .length =
						 __builtin_bswap32(a.length) };
	return a;
}

/*
 * Fills in a message of credits or ring space. Message numbers have 16 bits and
 * wrap. If this end has no free half ring to give, a message is due only after
 * the peer has used half of its credits.
 */
bool rs_stream_give(struct rs_stream *s, struct rs_area *area,
		    struct rs_write *w)
{
	bool space = s->in_free >= half(s);

	if (s->controls == RS_CONTROLS)
		return false;
	if (!space && (uint16_t)(s->received - s->told) < s->credits / 2)
		return false;
	s->controls++;
	s->told = s->received;
	*w = (struct rs_write){
		.message = rs_message(RS_CREDITS,
				      (uint16_t)(s->received + s->credits)),
	};
	if (s->by_send)
		w->message |= RS_SLOT_SAID | (space ? RS_SLOT_NEW : 0);
	*area = (struct rs_area){};
	if (!space)
		return true;
	*area = next_half(s);
	w->addr = s->peer_slots.addr +
		  s->peer_slot * (uint64_t)sizeof(struct rs_area);
	w->key = s->peer_slots.key;
	s->peer_slot = (s->peer_slot + 1) % s->peer_slots.length;
	return true;
}
