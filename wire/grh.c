/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the IPv4 or IPv6 header that stands in front of a received
 * datagram. */
#include "wire/grh.h"

#include "base/bytes.h"

#define UDP_BYTES  8
#define IPV4_BYTES 20
#define IPV4_AT	   (VB_GRH_BYTES - IPV4_BYTES)
/* version 4, a header of 20 bytes without options */
#define IPV4_HEAD 0x45
#define FLAG_DF	  0x4000
#define UDP_PROTO 17

/* Returns the checksum of RFC 1071. Over a header with a correct checksum the
 * result is 0. */
static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

static void wire_grh_put_ipv4(uint8_t *at, const struct vb_grh *h)
{
	struct vb_writer w = { at };
	uint16_t sum;

	vb_put_be(&w, IPV4_HEAD, 1);
	vb_put_be(&w, h->tclass, 1);
	vb_put_be(&w, IPV4_BYTES + UDP_BYTES + h->udp_bytes, 2);
	vb_put_be(&w, h->ip_id, 2);
	vb_put_be(&w, FLAG_DF, 2);
	vb_put_be(&w, h->hop_limit, 1);
	vb_put_be(&w, UDP_PROTO, 1);
	vb_put_be(&w, 0, 2);
	memcpy(w.at, h->sgid.raw + 12, 4);
	memcpy(w.at + 4, h->dgid.raw + 12, 4);
	sum = ip_checksum(at);
	at[10] = (uint8_t)(sum >> 8);
	at[11] = (uint8_t)sum;
}

static void wire_grh_put_ipv6(uint8_t *at, const struct vb_grh *h)
{
	struct vb_writer w = { at };

	vb_put_be(&w,
		  6u << 28 | (uint32_t)h->tclass << 20 |
			  (h->flow_label & 0xfffff),
		  4);
	vb_put_be(&w, (h->iba ? 0 : UDP_BYTES) + h->udp_bytes, 2);
	vb_put_be(&w, h->iba ? VB_GRH_IBA : UDP_PROTO, 1);
	vb_put_be(&w, h->hop_limit, 1);
	memcpy(w.at, h->sgid.raw, 16);
	memcpy(w.at + 16, h->dgid.raw, 16);
}

void vb_grh_put(uint8_t bytes[VB_GRH_BYTES], const struct vb_grh *h)
{
	if (h->iba || !vb_gid_is_ipv4(&h->dgid)) {
		wire_grh_put_ipv6(bytes, h);
		return;
	}
	memset(bytes, 0, IPV4_AT);
	wire_grh_put_ipv4(bytes + IPV4_AT, h);
}

static void wire_grh_get_ipv4(const uint8_t *at, struct vb_grh *h)
{
	uint32_t bytes = (uint32_t)vb_load_be(at + 2, 2);

	*h = (struct vb_grh){
		.sgid = vb_gid_from_ipv4(at + 12),
		.dgid = vb_gid_from_ipv4(at + 16),
		.tclass = at[1],
		.ip_id = (uint16_t)vb_load_be(at + 4, 2),
		.udp_bytes = (uint16_t)(bytes - IPV4_BYTES - UDP_BYTES),
		.hop_limit = at[8],
	};
}

static void wire_grh_get_ipv6(const uint8_t *at, struct vb_grh *h)
{
	uint32_t word = (uint32_t)vb_load_be(at, 4);

	*h = (struct vb_grh){
		.flow_label = word & 0xfffff,
		.tclass = (uint8_t)(word >> 20),
		.hop_limit = at[7],
		.iba = at[6] == VB_GRH_IBA,
	};
	h->udp_bytes =
		(uint16_t)(vb_load_be(at + 4, 2) - (h->iba ? 0 : UDP_BYTES));
	memcpy(h->sgid.raw, at + 8, 16);
	memcpy(h->dgid.raw, at + 24, 16);
}

/* The end of an IPv6 address may look like an IPv4 header, so the checksum must
 * also be right. */
bool vb_grh_get(const uint8_t bytes[VB_GRH_BYTES], struct vb_grh *h)
{
	const uint8_t *v4 = bytes + IPV4_AT;

	if (v4[0] == IPV4_HEAD && ip_checksum(v4) == 0)
		wire_grh_get_ipv4(v4, h);
	else if (bytes[0] >> 4 == 6)
		wire_grh_get_ipv6(bytes, h);
	else
		return false;
	return true;
}

bool vb_grh_get_iba(const uint8_t bytes[VB_GRH_BYTES], struct vb_grh *h)
{
	if (bytes[0] >> 4 != 6 || bytes[6] != VB_GRH_IBA)
		return false;
	wire_grh_get_ipv6(bytes, h);
	return true;
}
