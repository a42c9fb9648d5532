/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport headers: from bytes to structs in host byte order and back (IBA
 * 9.2, 9.3). */
#ifndef WIRE_IB_HDR_H
#define WIRE_IB_HDR_H

#include "base/bytes.h"
#include "wire/ib_op.h"

#define VB_BTH_BYTES  12
#define VB_RETH_BYTES 16
/* The most bytes that the BTH and all extended headers of one packet take. */
#define VB_IB_MAX_HDR_BYTES 64
#define VB_ICRC_BYTES	    4
#define VB_QPN_MULTICAST    0xffffffu

struct vb_bth {
	uint8_t opcode;
	bool solicited, migrated, fecn, becn, ack_req;
	/* A reserved bit of the BTH, the lowest beside ack_req, that Verbena
	 * uses for selective repetition (ib/rc.h). */
	bool selective;
	uint8_t pad; /* number of pad bytes, 0..3 */
	uint16_t pkey;
	uint32_t dqpn; /* destination QPN, 24 bits */
	uint32_t psn;  /* packet sequence number, 24 bits */
};

struct vb_reth {
	uint64_t va;
	uint32_t rkey, length;
};

struct vb_atomic_eth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add, compare;
};

struct vb_aeth {
	uint8_t syndrome;
	uint32_t msn; /* message sequence number, 24 bits */
};

struct vb_grh;
struct vb_wc_from;
struct vb_deth {
	uint32_t qkey, sqpn;
};

/* AETH syndromes (IBA 9.7.5.2.1). */
/* ACK (0x00) with credit code 31: Verbena uses no credits. */
#define VB_SYN_ACK 0x1f
/* RNR NAK (0x20), to which the timer code is added */
#define VB_SYN_RNR	   0x20
#define VB_SYN_NAK_PSN	   0x60
#define VB_SYN_NAK_INVALID 0x61
#define VB_SYN_NAK_ACCESS  0x62
#define VB_SYN_NAK_OP	   0x63
#define VB_SYN_NAK_INV_RD  0x64
/* bits 6:5 of a syndrome */
enum vb_syn_type { SYN_ACK = 0, SYN_RNR = 1, SYN_NAK = 3 };
static inline unsigned vb_syn_type(uint8_t syndrome)
{
	return syndrome >> 5;
}

/* One parsed packet, from BTH to pad. @op is never NULL in a valid packet. The
 * comment at a field names the header that has the field; in a packet without
 * this header the field is 0. */
struct vb_ib_pkt {
	const struct vb_ib_op *op;
	struct vb_bth bth;
	struct vb_reth reth;	     /* present in packets with HDR_RETH */
	struct vb_atomic_eth atomic; /* present in packets with HDR_ATOMIC */
	struct vb_aeth aeth;	     /* present in packets with HDR_AETH */
	/* in packets with HDR_ATOMIC_ACK: the value before the operation */
	uint64_t atomic_ack;
	/* in packets with HDR_IMM: immediate data in network byte order, like
	 * ibv's imm_data */
	uint32_t imm;
	/* in packets with HDR_IETH: the rkey to invalidate */
	uint32_t ieth_rkey;
	struct vb_deth deth; /* present in packets of CLASS_UD */
	/* In received packets of CLASS_UD: the network header, which the caller
	 * of vb_ib_parse() sets. */
	const struct vb_grh *grh;
	/* In received packets of CLASS_UD: struct vb_wc_from of core/types.h,
	 * which the caller of vb_ib_parse() sets; or NULL. */
	const struct vb_wc_from *from;
	uint32_t xrc_srqn; /* in requests of CLASS_XRC: the number of the SRQ */
	/* the payload, which is within the frame's memory */
	const uint8_t *payload;
	uint32_t payload_bytes;
};

enum vb_parse {
	PARSE_OK,
	/* The headers or the pad are cut off, or the length is no multiple of 4
	 * bytes. */
	PARSE_SHORT,
	PARSE_VERSION, /* TVer, the version of the transport header, is not 0 */
	PARSE_OPCODE, /* the class has no such operation, which includes CNPs */
};

/* Parse a packet. @len: bytes from the BTH to the last pad byte, without the
 * ICRC. @pkt points into @bytes. */
enum vb_parse vb_ib_parse(const uint8_t *bytes, size_t len,
			  struct vb_ib_pkt *pkt);

/*
 * Write the BTH and the extended headers of the opcode in @pkt->bth; @pkt->op
 * need not be set. @bytes has room for VB_IB_MAX_HDR_BYTES. Returns the length
 * in bytes.
 */
size_t vb_ib_put_headers(uint8_t *bytes, const struct vb_ib_pkt *pkt);

/* A faster vb_ib_put_headers() for a packet that has only a BTH and, unless
 * @reth is NULL, a RETH. */
size_t vb_ib_put_fast(uint8_t *bytes, const struct vb_bth *bth,
		      const struct vb_reth *reth);

/* Functions for single headers. A getter returns false when bytes are missing;
 * vb_bth_get() also when TVer is not 0. */
bool vb_bth_get(struct vb_reader *r, struct vb_bth *h);
void vb_bth_put(struct vb_writer *w, const struct vb_bth *h);
bool vb_reth_get(struct vb_reader *r, struct vb_reth *h);
void vb_reth_put(struct vb_writer *w, const struct vb_reth *h);
bool vb_atomic_eth_get(struct vb_reader *r, struct vb_atomic_eth *h);
void vb_atomic_eth_put(struct vb_writer *w, const struct vb_atomic_eth *h);
bool vb_aeth_get(struct vb_reader *r, struct vb_aeth *h);
void vb_aeth_put(struct vb_writer *w, const struct vb_aeth *h);
bool vb_deth_get(struct vb_reader *r, struct vb_deth *h);
void vb_deth_put(struct vb_writer *w, const struct vb_deth *h);

/* Arithmetic of packet sequence numbers (PSNs) in 24 bits (IBA 9.7.2). */
#define VB_PSN_MASK 0xffffffu
static inline uint32_t vb_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & VB_PSN_MASK;
}

/* Returns the signed distance a - b of two PSNs, in [-2^23, 2^23). */
static inline int32_t vb_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* Returns the nanoseconds of an RNR timer code, 0..31 (IBA table 45). */
vb_time vb_rnr_ns(uint8_t code);
/* Returns the nanoseconds of an ACK timeout code, 0..31: 4.096 us * 2^code, and
 * VB_NEVER for code 0 (IBA 9.7.6.1.3). */
vb_time vb_ack_timeout_ns(uint8_t code);

#endif
