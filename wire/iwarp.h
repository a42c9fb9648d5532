/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP's bytes: MPA's frames and framing (RFC 5044, 6581), the headers of DDP
 * segments (RFC 5041) and of RDMAP messages (RFC 5040, 7306). A function whose
 * name ends in _get returns false when bytes are missing or wrong.
 */
#ifndef WIRE_IWARP_H
#define WIRE_IWARP_H

#include "base/bytes.h"

/* The definitions below are for the request and the reply frames of MPA. */

#define VB_MPA_HDR_BYTES   20
#define VB_MPA_PRIVATE_MAX 512
/* Bytes of the depths (IRD and ORD) in front of the private data of an enhanced
 * frame (RFC 6581). */
#define VB_MPA_DEPTH_BYTES 4
#define VB_MPA_FRAME_MAX   (VB_MPA_HDR_BYTES + VB_MPA_PRIVATE_MAX)

struct vb_mpa_frame {
	bool reply;
	bool markers, crc, reject, enhanced;
	bool near; /* the reserved bit of VB_MPA_NEAR_ASKED is set */
	uint8_t revision;
	uint16_t private_bytes;
};
/* Read the header of a frame, VB_MPA_HDR_BYTES. False: the frame is neither a
 * request nor a reply. */
bool vb_mpa_frame_get(struct vb_reader *r, struct vb_mpa_frame *f);
void vb_mpa_frame_put(struct vb_writer *w, const struct vb_mpa_frame *f);

/*
 * Two Verbenas of one host recognize each other by a reserved bit, which other
 * implementations send as 0 and ignore (RFC 5044 s7.1.1). Verbena sends the bit
 * only to an address of this host. The reply uses another bit than the request,
 * since Linux's siw copies the request's bits into its reply.
 */
#define VB_MPA_NEAR_ASKED 0x01
#define VB_MPA_NEAR_GIVEN 0x02

/* RFC 6581 s9.1: this value of a depth means that none is negotiated. */
#define VB_MPA_DEPTH_MAX 0x3fff
struct vb_mpa_depths {
	bool peer_to_peer, rtr_send, rtr_write, rtr_read;
	uint16_t ird, ord;
};
bool vb_mpa_depths_get(struct vb_reader *r, struct vb_mpa_depths *d);
void vb_mpa_depths_put(struct vb_writer *w, const struct vb_mpa_depths *d);

/*
 * FPDUs: length, ULPDU, pad, CRC; and a marker every 512 bytes of the stream.
 */

#define VB_MPA_LEN_BYTES       2
#define VB_MPA_CRC_BYTES       4
#define VB_MPA_MARKER_BYTES    4
#define VB_MPA_MARKER_INTERVAL 512
#define VB_MPA_ULPDU_MAX       0xffff

static inline uint32_t vb_mpa_pad(uint32_t ulpdu)
{
	return -(VB_MPA_LEN_BYTES + ulpdu) & 3;
}

/* Returns the length in bytes of an FPDU without markers. */
static inline uint32_t vb_mpa_fpdu_bytes(uint32_t ulpdu)
{
	return VB_MPA_LEN_BYTES + ulpdu + vb_mpa_pad(ulpdu) + VB_MPA_CRC_BYTES;
}

/* Write the length, the pad and the CRC of the FPDU at @fpdu, whose ULPDU of
 * @ulpdu bytes is in place. Without @crc the CRC field is 0. Returns the FPDU's
 * length in bytes. Writes no markers. */
uint32_t vb_mpa_seal(uint8_t *fpdu, uint32_t ulpdu, bool crc);

/* Returns the MULPDU: the longest ULPDU whose FPDU fits a TCP segment of @mss
 * bytes (RFC 5044 s4.1). */
uint32_t vb_mpa_mulpdu(uint32_t mss, bool markers);

/* The definitions below are for DDP segments, whose headers have RDMAP's
 * control byte. */

enum vb_rdmap_op {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMM = 8, /* immediate data, RFC 7306 s6 */
	RDMAP_IMM_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
	/*
	 * Verbena's own opcode, which no RFC assigns: a SEND with immediate
	 * data, in the place where SEND with Invalidate has its STag. Verbs
	 * have this operation and RFC 7306 has not; other implementations end
	 * the stream when they receive it (unexpected opcode).
	 */
	RDMAP_SEND_IMM = 12,
	RDMAP_SEND_IMM_SE = 13,
	/* Verbena's own opcode as well: two Verbenas of one host send it once
	 * in each direction to find each other. */
	RDMAP_CARD = 14,
	RDMAP_OP_COUNT = 15,
};

enum vb_ddp_queue {
	DDP_QUEUE_SEND = 0,
	DDP_QUEUE_REQUEST = 1, /* requests for READs and atomics */
	DDP_QUEUE_TERMINATE = 2,
	DDP_QUEUE_ATOMIC = 3, /* responses to atomics */
	DDP_QUEUE_CARD = 4,
	DDP_QUEUE_COUNT,
};

#define VB_DDP_TAGGED_BYTES   14
#define VB_DDP_UNTAGGED_BYTES 18
#define VB_DDP_VERSION	      1
#define VB_RDMAP_VERSION      1

struct vb_ddp_seg {
	bool tagged, last;
	uint8_t ddp_version, rdmap_version, opcode;
	/* The fields of a tagged segment. */
	uint32_t stag;
	uint64_t to;
	/* The fields of an untagged segment; @word: the STag to invalidate, or
	 * immediate data. */
	uint32_t word, queue, msn, mo;
	/* Fields that only vb_ddp_seg_get() sets. */
	const uint8_t *payload;
	uint32_t payload_bytes;
};
/* Parse a ULPDU. False: the ULPDU is too short for its header. */
bool vb_ddp_seg_get(struct vb_reader *r, struct vb_ddp_seg *s);
/* Write the header of the segment @s. */
void vb_ddp_seg_put(struct vb_writer *w, const struct vb_ddp_seg *s);

/* Lengths in bytes of the contents of untagged messages. */

#define VB_RDMAP_READ_BYTES	  28
#define VB_RDMAP_IMM_BYTES	  8
#define VB_RDMAP_ATOMIC_BYTES	  52
#define VB_RDMAP_ATOMIC_RSP_BYTES 12

struct vb_rdmap_read {
	uint32_t sink_stag, length, source_stag;
	uint64_t sink_to, source_to;
};
bool vb_rdmap_read_get(struct vb_reader *r, struct vb_rdmap_read *q);
void vb_rdmap_read_put(struct vb_writer *w, const struct vb_rdmap_read *q);

enum vb_rdmap_atomic_op {
	ATOMIC_FETCH_ADD = 0,
	ATOMIC_SWAP = 1,
	ATOMIC_CMP_SWAP = 2,
};

/* An atomic request (RFC 7306 s5.2.1). In add_swap_mask of a FETCH_ADD a set
 * bit marks the top of a field, out of which no carry goes. In the other masks
 * a set bit selects the bit for the operation. */
struct vb_rdmap_atomic {
	uint8_t op; /* operation code, 4 bits */
	uint32_t id, stag;
	uint64_t to;
	uint64_t add_swap, add_swap_mask, compare, compare_mask;
};
bool vb_rdmap_atomic_get(struct vb_reader *r, struct vb_rdmap_atomic *a);
void vb_rdmap_atomic_put(struct vb_writer *w, const struct vb_rdmap_atomic *a);

struct vb_rdmap_atomic_rsp {
	uint32_t id;
	uint64_t value;
};
bool vb_rdmap_atomic_rsp_get(struct vb_reader *r,
			     struct vb_rdmap_atomic_rsp *a);
void vb_rdmap_atomic_rsp_put(struct vb_writer *w,
			     const struct vb_rdmap_atomic_rsp *a);

/* The identity of a program among the programs of its host (near/). */
#define VB_RDMAP_CARD_BYTES 8
struct vb_rdmap_card {
	uint32_t number, life;
};
bool vb_rdmap_card_get(struct vb_reader *r, struct vb_rdmap_card *c);
void vb_rdmap_card_put(struct vb_writer *w, const struct vb_rdmap_card *c);

/*
 * Terminate messages (RFC 5040 s4.8). Linux's Soft-iWARP swaps the nibbles of
 * the first byte and mirrors the three bits of the third; vb_term_get() reads
 * both forms.
 */

enum vb_term_layer { TERM_RDMAP = 0, TERM_DDP = 1, TERM_LLP = 2 };

#define VB_TERM_BYTES_MAX (4 + 2 + VB_DDP_UNTAGGED_BYTES + VB_RDMAP_READ_BYTES)

struct vb_term {
	uint8_t layer, etype, code;
	/* set by vb_term_get(): the message had Soft-iWARP's form */
	bool mirrored;
	/* the segment that the message is about: its length, its header, and
	 * RDMAP's header */
	bool has_segment, has_read;
	uint16_t segment_bytes;
	struct vb_ddp_seg segment;
	struct vb_rdmap_read read;
};
bool vb_term_get(struct vb_reader *r, struct vb_term *t);
void vb_term_put(struct vb_writer *w, const struct vb_term *t);

#endif
