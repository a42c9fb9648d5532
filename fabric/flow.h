/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits of one virtual lane at one port (IBA 7.9): what this port may send to
 * its peer, and what its own buffer lets the peer send. All counts are blocks
 * of 64 bytes since the link trained, modulo 4096, or modulo 2^24 between two
 * range extenders.
 *
 * The invariant that keeps buffers from being overrun: the total that a sender
 * has sent never passes the limit that its peer told it last, and that limit is
 * what has arrived at the peer plus what is free there. Blocks can be lost on
 * the way, but the next link packet carries the sender's total, which the
 * receiver takes over: so credits neither leak nor grow. If a link packet is
 * lost or damaged, this only happens later.
 */
#ifndef FABRIC_FLOW_H
#define FABRIC_FLOW_H

#include "wire/lrh.h"

/* In symbol times (IBA 7.9.4.1): a port sends a link packet for each lane at
 * least once in a PERIOD, and retrains the link after a WATCHDOG without
 * one. */
#define VB_FC_PERIOD   65536
#define VB_FC_WATCHDOG 400000

struct vb_fc {
	/* mask of the counts below: 4095 (12 bits) or 2^24 - 1 (24 bits) */
	uint32_t mask;
	/* The fields below are for sending on this lane. */
	uint32_t sent; /* FCTBS: total of blocks that this port has sent */
	/* the credit limit (FCCL) in the peer's last link packet */
	uint32_t limit;
	/* The fields below are for receiving on this lane. */
	/* ABR: total of blocks that have arrived at this port */
	uint32_t arrived;
	/* the buffer of this port for the lane, and the occupied part, both in
	 * blocks of 64 bytes */
	uint32_t size, used;
	/* the credit limit (FCCL) in this port's last link packet */
	uint32_t told;
};

/* Start after training: this port may send nothing before the first link packet
 * comes. @blocks: the size of its buffer, at least one frame. Frames that are
 * still in the buffer stay counted in f->used. */
void vb_fc_init(struct vb_fc *f, bool wide, uint32_t blocks);

/* Do the peer's credits allow this port to send a frame of @blocks (64 bytes
 * each)? */
static inline bool vb_fc_may_send(const struct vb_fc *f, uint32_t blocks)
{
	return ((f->limit - f->sent - blocks) & f->mask) <= (f->mask + 1) / 2;
}

static inline void vb_fc_sent(struct vb_fc *f, uint32_t blocks)
{
	f->sent = (f->sent + blocks) & f->mask;
}

/* A frame of @blocks (64 bytes each) has arrived: count them as occupied in the
 * buffer. False: the frame does not fit, because the peer sent more than its
 * credits; the caller drops the frame. */
bool vb_fc_take(struct vb_fc *f, uint32_t blocks);

/* A frame of @blocks (64 bytes each) has left the buffer. True: an eighth of
 * the buffer, or of the window, is free again, so this port should send the
 * peer a link packet now. */
bool vb_fc_give(struct vb_fc *f, uint32_t blocks);

/* Has a link packet of this port told the peer the present credit limit? */
bool vb_fc_is_told(const struct vb_fc *f);

/* Fill in a link packet with the present totals. The caller sends the packet
 * now, behind all frames that it counted as sent. */
void vb_fc_tell(struct vb_fc *f, enum vb_fc_op op, uint8_t vl,
		struct vb_fc_pkt *p);

/* A link packet with a right CRC has arrived: adopt the peer's total and credit
 * limit. False: its counts have the other width (12 or 24 bits), so this
 * function has ignored it. */
bool vb_fc_hear(struct vb_fc *f, const struct vb_fc_pkt *p);

#endif
