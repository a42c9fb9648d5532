/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes and checks the ICRC of RoCE, also when the IPv4 Identification,
 * which the ICRC of RoCEv2 covers, is not known. */
#include "wire/icrc.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"

#define UDP_BYTES  8
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_PROTO  17
#define FLAG_DF	   0x4000

#define SHORT_BYTES 256

/* Bytes from the end of IPv4's Identification to the end of the UDP header. */
#define TAIL_OF_ID    (IPV4_BYTES - 6 + UDP_BYTES)
#define TAIL_OF_FLAGS (IPV4_BYTES - 8 + UDP_BYTES)

/* The CRC of eight bytes of ones, which stand for the masked LRH (IBA
 * 7.8.1). */
#define CRC_OF_LRH 0x2144df1cu

/* Write the headers as the sender sends them; fields that the ICRC masks may
 * have any value. */
static size_t wire_icrc_put_ipv4(struct vb_writer *w,
				 const struct vb_icrc_path *path, uint32_t len)
{
	vb_put_be(w, 0x4500, 2);
	vb_put_be(w, IPV4_BYTES + UDP_BYTES + len + VB_ICRC_BYTES, 2);
	vb_put_be(w, 0, 2); /* the field Identification */
	vb_put_be(w, FLAG_DF, 2);
	vb_put_be(w, UDP_PROTO, 2); /* TTL 0, protocol UDP */
	vb_put_be(w, 0, 2);
	memcpy(w->at, path->src.raw + 12, 4);
	memcpy(w->at + 4, path->dst.raw + 12, 4);
	w->at += 8;
	return IPV4_BYTES;
}

static size_t wire_icrc_put_ipv6(struct vb_writer *w,
				 const struct vb_icrc_path *path, uint32_t len)
{
	vb_put_be(w, 0x60000000, 4);
	vb_put_be(w, UDP_BYTES + len + VB_ICRC_BYTES, 2);
	vb_put_be(w, UDP_PROTO << 8, 2); /* hop limit 0, next header UDP */
	memcpy(w->at, path->src.raw, 16);
	memcpy(w->at + 16, path->dst.raw, 16);
	w->at += 32;
	return IPV6_BYTES;
}

static void put_udp(struct vb_writer *w, const struct vb_icrc_path *path,
		    uint32_t len)
{
	vb_put_be(w, path->src_port, 2);
	vb_put_be(w, path->dst_port, 2);
	vb_put_be(w, UDP_BYTES + len + VB_ICRC_BYTES, 2);
	vb_put_be(w, 0, 2);
}

/* Overwrite the fields that routers change with ones (Annex A17.3.3). */
static void mask_ip_udp(uint8_t *head, size_t ip_bytes)
{
	if (ip_bytes == IPV4_BYTES) {
		head[1] = 0xff;		    /* mask the type of service */
		head[8] = 0xff;		    /* mask the time to live */
		memset(head + 10, 0xff, 2); /* mask the header checksum */
	} else {
		/* mask the traffic class and the flow label */
		head[0] |= 0x0f;
		memset(head + 1, 0xff, 3);
		head[7] = 0xff; /* mask the hop limit */
	}
	memset(head + ip_bytes + 6, 0xff, 2); /* mask the UDP checksum */
}

static uint32_t crc_of_ip_udp(uint8_t *head, size_t ip_bytes)
{
	mask_ip_udp(head, ip_bytes);
	return vb_crc32(CRC_OF_LRH, head, ip_bytes + UDP_BYTES);
}

/* Mask a short packet in a copy: a separate CRC of its first twelve bytes takes
 * as many instructions as the CRC of a hundred bytes. */
static uint32_t crc_of_short(uint32_t crc, const uint8_t *bytes, size_t len)
{
	_Alignas(16) uint8_t copy[SHORT_BYTES];

	memcpy(copy, bytes, len);
	copy[4] = 0xff;
	return vb_crc32(crc, copy, len);
}

/* Mask byte 4 of the BTH as well, because it carries congestion marks. */
static uint32_t crc_of_packet(uint32_t crc, const uint8_t *bytes, size_t len)
{
	uint8_t bth[VB_BTH_BYTES];

	if (len <= SHORT_BYTES)
		return crc_of_short(crc, bytes, len);
	memcpy(bth, bytes, sizeof(bth));
	bth[4] = 0xff;
	crc = vb_crc32(crc, bth, sizeof(bth));
	return vb_crc32(crc, bytes + sizeof(bth), len - sizeof(bth));
}

/* Returns the change of the prefix's CRC that the Identification @ip_id, a
 * segment's index, causes. The change is a sum over the bits of @ip_id, since a
 * CRC is linear and the distance to the UDP header's end is constant. Three
 * bits at a time: @low[i] is vb_crc32_diff16(i, TAIL_OF_ID), and @high[i] that
 * of 8 * i. */
static uint32_t crc_of_id(unsigned ip_id)
{
	static const uint32_t low[8] = {
		0x00000000, 0x9b73ead4, 0xed96d3e9, 0x76e5393d,
		0x005ca193, 0x9b2f4b47, 0xedca727a, 0x76b998ae,
	};
	static const uint32_t high[8] = {
		0x00000000, 0x00b94326, 0x0172864c, 0x01cbc56a,
		0x02e50c98, 0x025c4fbe, 0x03978ad4, 0x032ec9f2,
	};

	return low[ip_id & 7] ^ high[ip_id >> 3 & 7];
}

void vb_icrc_prefix_init(struct vb_icrc_prefix *p,
			 const struct vb_icrc_path *path, uint32_t len)
{
	uint8_t head[IPV6_BYTES + UDP_BYTES];
	struct vb_writer w = { head };
	size_t ip_bytes;

	p->len = len;
	p->ipv6 = !vb_gid_is_ipv4(&path->dst);
	ip_bytes = p->ipv6 ? wire_icrc_put_ipv6(&w, path, len)
			   : wire_icrc_put_ipv4(&w, path, len);
	put_udp(&w, path, len);
	p->crc = crc_of_ip_udp(head, ip_bytes);
}

void vb_icrc_prefix_grh(struct vb_icrc_prefix *p, const struct vb_gid *src,
			const struct vb_gid *dst, uint32_t len)
{
	/* The fields that routers change are ones: traffic class, flow label
	 * and hop limit (IBA 7.8.1). */
	const struct vb_grh grh = {
		.sgid = *src,
		.dgid = *dst,
		.flow_label = 0xfffff,
		.udp_bytes = (uint16_t)(len + VB_ICRC_BYTES),
		.iba = true,
		.tclass = 0xff,
		.hop_limit = 0xff,
	};
	uint8_t head[VB_GRH_BYTES];

	vb_grh_put(head, &grh);
	p->len = len;
	p->ipv6 = true;
	p->crc = vb_crc32(CRC_OF_LRH, head, sizeof(head));
}

uint32_t vb_icrc(const struct vb_icrc_prefix *p, const uint8_t *bytes,
		 unsigned ip_id)
{
	uint32_t crc = p->ipv6 ? p->crc : p->crc ^ crc_of_id(ip_id);

	return crc_of_packet(crc, bytes, p->len);
}

enum vb_icrc_verdict vb_icrc_check(const struct vb_icrc_prefix *p,
				   const uint8_t *bytes, unsigned guess,
				   uint16_t *ip_id)
{
	uint32_t diff;
	uint16_t d;

	if (p->len < VB_BTH_BYTES)
		return ICRC_BAD;
	diff = vb_icrc(p, bytes, guess) ^ vb_load_le32(bytes + p->len);
	if (!diff)
		return ICRC_GOOD;
	if (p->ipv6)
		return ICRC_BAD;
	if (!vb_crc32_solve16(diff, TAIL_OF_ID + p->len, &d)) {
		diff ^= vb_crc32_diff16(FLAG_DF, TAIL_OF_FLAGS + p->len);
		if (!vb_crc32_solve16(diff, TAIL_OF_ID + p->len, &d))
			return ICRC_BAD;
	}
	*ip_id = (uint16_t)(guess ^ d);
	return ICRC_GOOD_IF_ID;
}
