/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream over RDMA: the protocol that rdma-core's librdmacm/docs/rsocket
 * states, without I/O. Each end exposes a ring for the other's bytes, and
 * two slots in which the other says where its own next half ring is. Bytes
 * are written there by WRITE with immediate; the immediate is a message:
 * kind << 29 | value. A message uses up a receive, which a credit stands for.
 * iWARP has no WRITE with immediate in RFC 5040: there the message is a SEND of
 * its own behind the WRITE, in its sender's byte order (by_send).
 *
 * Whoever calls does what the functions here say: posts, completes, copies.
 * Nothing that comes from the peer is believed to be in range.
 */
#ifndef FRONT_RSOCKETS_STREAM_H
#define FRONT_RSOCKETS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum rs_kind {
	RS_DATA = 0,	/* bytes were written */
	RS_CREDITS = 4, /* may send up to this number; a slot may be new */
	RS_IOMAP = 6,	/* index of an entry that is new */
	RS_CONTROL = 7, /* enum rs_control */
};

enum rs_control {
	RS_DISCONNECT = 0,
	RS_KEEPALIVE = 1,
	RS_SHUTDOWN = 2, /* I write no more */
};

#define RS_SLOTS 2
#define RS_CONTROLS                                                            \
	4 /* control messages under way; the peer's RNR bears it               \
	   */
#define RS_MESSAGE 0x1fffffffu /* largest value */
/*
 * Of RS_CREDITS by SEND, which does not say by itself whether a slot was
 * written before it. Credits have 16 bits; rdma-core looks at no others, and
 * sets neither of these.
 */
#define RS_SLOT_SAID (1u << 28)
#define RS_SLOT_NEW  (1u << 27)
#define RS_VERSION   1

/* In memory both ends share: in the reader's byte order. */
struct rs_area {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

struct rs_iomap {
	uint64_t offset;
	struct rs_area area;
};

/* Private data of REQ and REP; numbers in network order. */
struct rs_hello {
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps; /* as a scale: rs_scale() */
	struct rs_area slots;
	struct rs_area data;
};
#define RS_HELLO_NET	1 /* the sender is big endian */
#define RS_HELLO_IOMAPS 2 /* iomaps says something */
_Static_assert(sizeof(struct rs_hello) == 40, "private data");

struct rs_stream {
	bool swap; /* the peer's byte order is the other one */
	bool by_send;
	/* Out: where the peer wants bytes, and how many messages. */
	struct rs_area *slots;	       /* RS_SLOTS; the peer writes them */
	unsigned slot;		       /* that it writes next */
	struct rs_area target;	       /* taken out of one */
	struct rs_area next[RS_SLOTS]; /* those taken out behind it */
	unsigned nexts;
	uint16_t sent, may_send;
	/* Our ring of bytes on their way. */
	uint32_t out_size, out_at, out_used;
	unsigned sends, sends_max; /* under way */
	unsigned controls;	   /* under way */
	/* In: our ring, of which the peer is given halves. */
	struct rs_area ring;
	uint32_t in_at, in_ready; /* unread: where, how many */
	uint32_t in_free;	  /* read, and not given back */
	uint32_t in_promised;	  /* given, and not written */
	uint32_t in_give;	  /* offset of the next half */
	uint16_t credits;	  /* receives we keep posted */
	uint16_t received, told;
	/* Where we say so. */
	struct rs_area peer_slots, peer_iomaps;
	unsigned peer_slot;
};

/*
 * @slots, @iomaps: memory under @key, for the peer to write; @ring: even
 * length. @sends: work requests there is room for, besides RS_CONTROLS.
 */
struct rs_room {
	struct rs_area *slots;
	uint32_t slots_key;
	unsigned iomaps;
	struct rs_area ring;
	uint32_t out_size;
	uint16_t credits;
	unsigned sends;
	bool by_send;
};
void rs_stream_init(struct rs_stream *s, const struct rs_room *room);

void rs_stream_hello(const struct rs_stream *s, const struct rs_room *room,
		     struct rs_hello *h);
/* The peer's. -EPROTO: no such protocol, or nothing to write to. */
int rs_stream_meet(struct rs_stream *s, const struct rs_hello *h,
		   unsigned length);

static inline uint32_t rs_message(enum rs_kind kind, uint32_t value)
{
	return (uint32_t)kind << 29 | (value & RS_MESSAGE);
}
static inline enum rs_kind rs_message_kind(uint32_t m)
{
	return (enum rs_kind)(m >> 29);
}
static inline uint32_t rs_message_value(uint32_t m)
{
	return m & RS_MESSAGE;
}

/* How many bytes may be sent at once now; 0: wait. */
uint32_t rs_stream_room(struct rs_stream *s);
/* Whether a message may go that carries no bytes of the stream. */
bool rs_stream_may_send(const struct rs_stream *s);

/* A write of @length bytes to the peer is to be posted. */
struct rs_write {
	uint64_t addr;
	uint32_t key;
	uint32_t message;
};
/*
 * @length <= rs_stream_room(). @kept: the bytes lie in our ring until done,
 * at out_at before this call, going on at its start behind its end.
 */
struct rs_write rs_stream_send(struct rs_stream *s, uint32_t length, bool kept);
/* It is done; @kept: as many bytes as that. */
void rs_stream_sent(struct rs_stream *s, uint32_t kept);
/* The peer's iomap number @i is to be written. */
struct rs_write rs_stream_send_iomap(struct rs_stream *s, unsigned i);

/*
 * A message came, with @length bytes written before it, which by_send nobody
 * knows. -EPROTO: it cannot be true.
 */
int rs_stream_arrived(struct rs_stream *s, uint32_t message, uint32_t length);
/* The program has read @bytes <= s->in_ready. */
void rs_stream_read(struct rs_stream *s, uint32_t bytes);

/*
 * Whether the peer should be told of credits or a half ring now; then @area
 * goes to w->addr (none if its length is 0). The control is counted.
 */
bool rs_stream_give(struct rs_stream *s, struct rs_area *area,
		    struct rs_write *w);

/* Counts of iomaps as hello carries them: five bits and a shift. */
uint8_t rs_scale(unsigned value);
unsigned rs_unscale(uint8_t scale);

#endif
