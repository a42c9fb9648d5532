/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of stream sockets, without I/O, in the format of rdma-core's
 * document librdmacm/docs/rsocket.
 *
 * Each end has a ring buffer into which the peer writes the stream's bytes. The
 * reader gives the writer half a ring at a time: it writes address, key and
 * length of a free half into one of two slots in the writer's memory. The bytes
 * are sent by RDMA WRITE with immediate, and the immediate data is a message,
 * kind << 29 | value. Each message consumes a posted receive of the peer; the
 * peer announces its posted receives as credits. iWARP has no WRITE with
 * immediate (RFC 5040): there the message is a SEND behind the WRITE, in the
 * sender's byte order (by_send).
 *
 * The caller does the I/O: it posts the work requests that the functions
 * return, reports completions, and copies the bytes. The functions check every
 * number that comes from the peer.
 */
#ifndef FRONT_RSOCKETS_STREAM_H
#define FRONT_RSOCKETS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum rs_kind {
	RS_DATA = 0, /* value: the number of bytes that the WRITE placed */
	/* value: the number of the last message that may be sent, modulo 65536;
	 * a slot may have been written */
	RS_CREDITS = 4,
	/* value: the index of the entry that was written (iomap.c) */
	RS_IOMAP = 6,
	RS_CONTROL = 7, /* value: an enum rs_control */
};

enum rs_control {
	RS_DISCONNECT = 0,
	RS_KEEPALIVE = 1,
	RS_SHUTDOWN = 2, /* the sender will write no more */
};

#define RS_SLOTS 2
/* The most control messages under way. They consume no credits: a peer that has
 * no receive posted answers RNR, and the adapter repeats them. */
#define RS_CONTROLS 4
/* the largest value that fits the message's 29 bits */
#define RS_MESSAGE 0x1fffffffu
/*
 * Flags of RS_CREDITS over iWARP. A SEND does not show whether a WRITE of a
 * slot came before it, so Verbena sets RS_SLOT_SAID, and RS_SLOT_NEW if one
 * did. The credits are the low 16 bits; rdma-core ignores all others and sets
 * neither flag.
 */
#define RS_SLOT_SAID (1u << 28)
#define RS_SLOT_NEW  (1u << 27)
#define RS_VERSION   1

/* A piece of registered memory. In a slot its fields are in the byte order of
 * the end that reads the slot. length: bytes, or entries where a comment says
 * so. */
struct rs_area {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

struct rs_iomap {
	uint64_t offset;
	struct rs_area area;
};

/* The private data of REQ and REP, with numbers in network byte order. */
struct rs_hello {
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps;	      /* a count, coded by rs_scale() */
	struct rs_area slots; /* the slots; length is a count */
	struct rs_area data;  /* the first half ring that the peer may write */
};
#define RS_HELLO_NET	1 /* flag: the sender is big endian */
#define RS_HELLO_IOMAPS 2 /* flag: the field iomaps is valid */
_Static_assert(sizeof(struct rs_hello) == 40, "private data");

struct rs_stream {
	bool swap; /* the peer has the other byte order */
	bool by_send;
	/* State of sending: the address of the bytes in the peer's ring, and
	 * how many messages may be sent. */
	struct rs_area *slots; /* RS_SLOTS slots, which the peer writes */
	unsigned slot;	       /* index of the slot that the peer writes next */
	struct rs_area target; /* the half of the peer's ring that is in use */
	/* the halves that are used after @target */
	struct rs_area next[RS_SLOTS];
	unsigned nexts;
	uint16_t sent, may_send; /* message numbers, modulo 65536 */
	/* This end's ring of sent bytes, which the adapter may have to send
	 * again. */
	uint32_t out_size, out_at, out_used;
	/* number of work requests under way, and its limit */
	unsigned sends, sends_max;
	unsigned controls; /* number of control messages under way */
	/* State of receiving: this end's ring, of which the peer gets one half
	 * after the other. */
	struct rs_area ring;
	uint32_t in_at,
		in_ready; /* position in the ring of the bytes that the program
			   * has not read yet, and their number */
	/* number of bytes in the ring that the program has read, and that the
	 * peer may not write again yet */
	uint32_t in_free;
	/* number of bytes in the ring that the peer may write and has not
	 * written yet */
	uint32_t in_promised;
	uint32_t in_give; /* offset of the half to announce to the peer next */
	/* the number of receives that this end keeps posted for messages */
	uint16_t credits;
	uint16_t received, told; /* message numbers, modulo 65536 */
	/* The peer's slots and its table of mappings; length is the number of
	 * entries. */
	struct rs_area peer_slots, peer_iomaps;
	/* index of the peer's slot that this end writes next */
	unsigned peer_slot;
};

/* The memory and the queue lengths of one end of a connection. */
struct rs_room {
	/* RS_SLOTS slots, then the iomaps; the peer writes this memory under
	 * slots_key */
	struct rs_area *slots;
	uint32_t slots_key;
	unsigned iomaps;     /* number of struct rs_iomap */
	struct rs_area ring; /* the ring, which has an even length */
	uint32_t out_size;
	uint16_t credits;
	unsigned sends; /* entries of the send queue besides RS_CONTROLS */
	bool by_send;
};
/* Initializes a stream. @s keeps pointers to the memory that @room names. */
void rs_stream_init(struct rs_stream *s, const struct rs_room *room);

/* Fills in @h, the private data that this end sends to the peer. */
void rs_stream_hello(const struct rs_stream *s, const struct rs_room *room,
		     struct rs_hello *h);
/* Starts the stream with the peer's private data of @length bytes. -EPROTO:
 * they are too short, of another version, or without slots. */
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

/* Returns how many bytes one message may have now; 0: wait for the peer or for
 * completions. */
uint32_t rs_stream_room(struct rs_stream *s);
/* True if this end has the credits and the room to send a message without bytes
 * of the stream. */
bool rs_stream_may_send(const struct rs_stream *s);

/* A WRITE that the caller posts, and the message that goes with it. */
struct rs_write {
	uint64_t addr;
	uint32_t key;
	uint32_t message;
};
/*
 * Sends @length <= rs_stream_room() bytes. @kept: before this call the caller
 * has copied the bytes to the out ring, beginning at out_at and wrapping at
 * out_size; they stay there until rs_stream_sent(). Otherwise the work request
 * has the bytes inline.
 */
struct rs_write rs_stream_send(struct rs_stream *s, uint32_t length, bool kept);
/* Call this when a send has completed: frees the @kept bytes that the send kept
 * in the out ring. */
void rs_stream_sent(struct rs_stream *s, uint32_t kept);
/* Returns the WRITE of entry number @i in the peer's table of mappings. */
struct rs_write rs_stream_send_iomap(struct rs_stream *s, unsigned i);

/*
 * Handles a message that has come. @length: the bytes of its WRITE, from the
 * completion; unknown and ignored if by_send. -EPROTO: the message contradicts
 * the protocol.
 */
int rs_stream_arrived(struct rs_stream *s, uint32_t message, uint32_t length);
/* Call this when the program has read @bytes <= s->in_ready bytes of the ring.
 */
void rs_stream_read(struct rs_stream *s, uint32_t bytes);

/*
 * True: this end should tell the peer of credits or of a free half ring now.
 * The caller posts a WRITE of @area to w->addr with the message w->message, or
 * only the message if area->length is 0. The message counts in s->controls.
 */
bool rs_stream_give(struct rs_stream *s, struct rs_area *area,
		    struct rs_write *w);

/* Returns the code of a count in struct rs_hello: up to 128 the count itself;
 * above, units of 256, rounded down. */
uint8_t rs_scale(unsigned value);
unsigned rs_unscale(uint8_t scale);

#endif
