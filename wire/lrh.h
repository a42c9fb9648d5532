/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link layer of InfiniBand (IBA 7): the local route header, the CRCs of a
 * frame, and the link packets that carry credits. A frame on a link is
 *     LRH [GRH] BTH ... payload ICRC VCRC
 * and @len counts from the LRH to the ICRC, unless another meaning is given.
 */
#ifndef WIRE_LRH_H
#define WIRE_LRH_H

#include "base/defs.h"

#define VB_LRH_BYTES  8
#define VB_VCRC_BYTES 2
/* unit of credits: blocks of this many bytes (IBA 7.9.4.2) */
#define VB_BLOCK_BYTES	  64
#define VB_VL_MGMT	  15
#define VB_LID_MCAST	  0xc000u /* the lowest multicast LID (IBA 4.1.1) */
#define VB_LID_PERMISSIVE 0xffffu
/* The most bytes that a frame may have besides the payload, LRH to ICRC (IBA
 * 7.7.8). */
#define VB_LRH_HDR_MAX	 124
#define VB_LRH_FRAME_MAX (4096 + VB_LRH_HDR_MAX)

/* True if @dlid is the LID of a multicast group. */
static inline bool vb_lid_is_mcast(uint16_t dlid)
{
	return dlid >= VB_LID_MCAST && dlid != VB_LID_PERMISSIVE;
}

/* Values of LNH, which says which header follows the LRH. */
enum vb_lnh { LNH_RAW = 0, LNH_IP = 1, LNH_LOCAL = 2, LNH_GLOBAL = 3 };

struct vb_lrh {
	uint8_t vl, version, sl; /* fields of 4 bits each */
	/* kind of the header behind the LRH, an enum vb_lnh */
	uint8_t lnh;
	uint16_t dlid, slid;
	/* PktLen, 11 bits: length from LRH to ICRC, in units of 4 bytes */
	uint16_t words;
};

/* Read the 8 bytes of a LRH, and ignore its reserved bits. */
void vb_lrh_get(const uint8_t bytes[VB_LRH_BYTES], struct vb_lrh *h);
void vb_lrh_put(uint8_t bytes[VB_LRH_BYTES], const struct vb_lrh *h);

/* Set the VL in the LRH of a frame to @vl. */
static inline void vb_lrh_set_vl(uint8_t bytes[VB_LRH_BYTES], unsigned vl)
{
	bytes[0] = (uint8_t)(vl << 4 | (bytes[0] & 0x0f));
}

enum vb_lrh_verdict {
	LRH_GOOD,
	/* the frame has fewer bytes than the headers of its LNH need */
	LRH_SHORT,
	LRH_VERSION, /* LVer, the version of the link header, is not 0 */
	LRH_LENGTH,  /* the frame's length @len differs from PktLen */
	LRH_LONG,    /* the frame is longer than the MTU permits */
};

/* Make the packet checks of IBA 7.7: may a port whose MTU is @mtu bytes receive
 * a frame of @len bytes with the header @h? */
enum vb_lrh_verdict vb_lrh_check(const struct vb_lrh *h, size_t len,
				 unsigned mtu);

/* Returns the address of the BTH in a frame that vb_lrh_check() accepted; NULL:
 * the frame is raw. */
const uint8_t *vb_lrh_bth(const uint8_t *bytes, const struct vb_lrh *h);

/* Returns the blocks of credit that a frame of @len bytes needs, with its
 * VCRC. */
static inline unsigned vb_lrh_blocks(size_t len)
{
	return (unsigned)((len + VB_VCRC_BYTES + VB_BLOCK_BYTES - 1) /
			  VB_BLOCK_BYTES);
}

/*
 * Returns the variant CRC (IBA 7.8.2) over @len bytes: the polynomial 0x100b,
 * bits reflected, begun with ones and inverted. The VCRC stands behind the
 * ICRC, low byte first. The CRC of a link packet is computed by this function
 * as well.
 */
uint16_t vb_vcrc(const uint8_t *bytes, size_t len);

/* Returns the invariant CRC (IBA 7.8.1) of a frame that vb_lrh_check() accepted
 * and that is not raw: over LRH to the last byte before the ICRC, without the
 * fields that switches and routers change. A frame stores the ICRC low byte
 * first. Another process may change the bytes at any time, also after
 * vb_lrh_check(): these functions read no byte behind the @len bytes. */
uint32_t vb_lrh_icrc(const uint8_t *bytes, size_t len);
void vb_lrh_put_icrc(uint8_t *bytes, size_t len);
bool vb_lrh_icrc_good(const uint8_t *bytes, size_t len);

/* Link packets (IBA 7.9.4). The wide form is Verbena's own, for range
 * extenders: its counts have 24 bits, and its op is the usual op | 8. */
#define VB_FC_BYTES	 6
#define VB_FC_WIDE_BYTES 10

enum vb_fc_op { FC_NORMAL = 0, FC_INIT = 1 };

struct vb_fc_pkt {
	uint8_t op; /* operand of the link packet, an enum vb_fc_op */
	uint8_t vl;
	bool wide;
	/* FCTBS and FCCL: 12 bits each, or 24 bits in the wide form */
	uint32_t fctbs, fccl;
};

/* Write a link packet. Returns its length, VB_FC_BYTES or
 * VB_FC_WIDE_BYTES. */
size_t vb_fc_put(uint8_t bytes[VB_FC_WIDE_BYTES], const struct vb_fc_pkt *p);

enum vb_fc_verdict {
	FC_GOOD,
	FC_CRC, /* the link packet has a wrong length or a wrong CRC */
	/* the operand of the link packet is unknown, or its VL is 15 */
	FC_OP,
};

enum vb_fc_verdict vb_fc_get(const uint8_t *bytes, size_t len,
			     struct vb_fc_pkt *p);

#endif
