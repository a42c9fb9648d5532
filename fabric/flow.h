/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits of one virtual lane at one port (IBA 7.9): what this port may send to
 * its peer, and what its own buffer lets the peer send. All counts are blocks
 * of 64 bytes since the link trained, modulo 4096, or modulo 2^24 between two
 * range extenders.
 *
 * The invariant that keeps buffers from being overrun: the sender never lets
 * the total it has sent pass the limit it was last told, and the limit is what
 * has arrived plus what is free. Blocks that were lost on the way are made up
 * for by the next link packet, which carries the sender's total (the receiver
 * takes it over), so credits neither leak nor grow. A link packet that was lost
 * or damaged only delays that.
 */
#ifndef FABRIC_FLOW_H
#define FABRIC_FLOW_H

#include "wire/lrh.h"

/* Symbol times (IBA 7.9.4.1): a link packet is sent for each lane at least that
 * often; and a port that has seen none for so long retrains the link. */
#define VB_FLOW_PERIOD	 65536
#define VB_FLOW_WATCHDOG 400000

struct vb_flow {
	uint32_t mask; /* 4095 or 2^24 - 1 */
	/* sending */
	uint32_t sent;	/* FCTBS: the total */
	uint32_t limit; /* FCCL from the peer */
	/* receiving */
	uint32_t arrived;    /* ABR */
	uint32_t size, used; /* of the buffer */
	uint32_t told;	     /* the FCCL that was sent last */
};

/* Begin anew after training: nothing may be sent before the first link packet.
 * @blocks: the size of the buffer, at least one frame; what is still in it from
 * before (@used) stays counted. */
void vb_flow_init(struct vb_flow *f, bool wide, uint32_t blocks);

/* May a frame of @blocks leave? */
static inline bool vb_flow_may_send(const struct vb_flow *f, uint32_t blocks)
{
	return ((f->limit - f->sent - blocks) & f->mask) <= (f->mask + 1) / 2;
}

static inline void vb_flow_sent(struct vb_flow *f, uint32_t blocks)
{
	f->sent = (f->sent + blocks) & f->mask;
}

/* A frame of @blocks arrived and wants room. False: it has none, and the caller
 * drops it; that happens only to a peer that breaks the rules. */
bool vb_flow_take(struct vb_flow *f, uint32_t blocks);

/* A frame left the buffer. True: so much is free that the peer should hear of
 * it at once, an eighth of the buffer or of the window. */
bool vb_flow_give(struct vb_flow *f, uint32_t blocks);

/* Does the peer know the limit? */
bool vb_flow_is_told(const struct vb_flow *f);

/* Make the link packet that leaves now, behind all that was sent. */
void vb_flow_tell(struct vb_flow *f, enum vb_flow_op op, uint8_t vl,
		  struct vb_flow_pkt *p);

/* A link packet arrived, with a good CRC. False: it has the other width, and
 * was ignored. */
bool vb_flow_hear(struct vb_flow *f, const struct vb_flow_pkt *p);

#endif
