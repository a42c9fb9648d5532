/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the key of a received frame: Ethernet, VLAN tags, IPv4, IPv6, ports. */
#include "wire/eth.h"

#include "base/bytes.h"

#define TYPE_VLAN   0x8100
#define TYPE_S_VLAN 0x88a8
#define TYPE_IPV4   0x0800
#define TYPE_IPV6   0x86dd

#define PROTO_TCP 6
#define PROTO_UDP 17

#define MAX_TAGS       4
#define MAX_EXTENSIONS 8

static bool take_into(struct vb_reader *r, uint8_t *to, size_t len)
{
	const uint8_t *from = vb_take(r, len);

	if (from)
		memcpy(to, from, len);
	return from;
}

/* VLAN tags (IEEE 802.1Q), of which several may follow each other. Returns the
 * EtherType behind them. */
static uint16_t get_tags(struct vb_reader *r, uint16_t type,
			 struct vb_eth_key *key)
{
	for (unsigned i = 0; i < MAX_TAGS; i++) {
		uint16_t tag;

		if (type != TYPE_VLAN && type != TYPE_S_VLAN)
			return type;
		tag = vb_get_be16(r);
		type = vb_get_be16(r);
		if (r->overrun)
			return 0;
		if (i == 0)
			vb_store_be(key->vlan_tag, tag, 2);
		key->layers |= LAYER_VLAN;
	}
	return type;
}

static void get_ports(struct vb_reader *r, uint8_t proto,
		      struct vb_eth_key *key)
{
	const uint8_t *ports;

	if (proto != PROTO_TCP && proto != PROTO_UDP)
		return;
	ports = vb_take(r, 4);
	if (!ports)
		return;
	memcpy(key->sport, ports, 2);
	memcpy(key->dport, ports + 2, 2);
	key->layers |= proto == PROTO_TCP ? LAYER_TCP : LAYER_UDP;
}

/* RFC 791, 3.1. Only the first fragment of a datagram has ports. */
static void wire_eth_get_ipv4(struct vb_reader *r, struct vb_eth_key *key)
{
	const uint8_t *h = vb_take(r, 20);
	unsigned bytes;

	if (!h || h[0] >> 4 != 4)
		return;
	bytes = (h[0] & 0x0fu) * 4;
	if (bytes < 20)
		return;
	key->layers |= LAYER_IPV4;
	key->tos = h[1];
	key->ttl = h[8];
	key->proto = h[9];
	key->ip_flags =
		(h[6] & 0x40 ? VB_IPV4_DF : 0) | (h[6] & 0x20 ? VB_IPV4_MF : 0);
	memcpy(key->sip, h + 12, 4);
	memcpy(key->dip, h + 16, 4);
	if (!vb_take(r, bytes - 20) || vb_load_be(h + 6, 2) & 0x1fff)
		return;
	get_ports(r, key->proto, key);
}

static bool is_extension(uint8_t next)
{
	/* hop-by-hop options, routing, destination options (RFC 8200, 4) */
	return next == 0 || next == 43 || next == 60;
}

/* Skip IPv6 extension headers. Returns the protocol behind them; 59 (No Next
 * Header): there are no ports. */
static uint8_t skip_extensions(struct vb_reader *r, uint8_t next)
{
	for (unsigned i = 0; i < MAX_EXTENSIONS; i++) {
		const uint8_t *h;

		if (next != 44 && !is_extension(next))
			return next;
		h = vb_take(r, 8);
		/* A fragment header (44): only the first fragment has ports. */
		if (!h || (next == 44 && vb_load_be(h + 2, 2) >> 3))
			return 59;
		if (next != 44 && !vb_take(r, h[1] * 8u))
			return 59;
		next = h[0];
	}
	return 59;
}

static void wire_eth_get_ipv6(struct vb_reader *r, struct vb_eth_key *key)
{
	const uint8_t *h = vb_take(r, 40);

	if (!h || h[0] >> 4 != 6)
		return;
	key->layers |= LAYER_IPV6;
	key->tos = (uint8_t)(vb_load_be(h, 2) >> 4);
	vb_store_be(key->flow_label, vb_load_be(h, 4) & 0xfffff, 4);
	key->proto = h[6];
	key->ttl = h[7];
	memcpy(key->sip, h + 8, 16);
	memcpy(key->dip, h + 24, 16);
	get_ports(r, skip_extensions(r, key->proto), key);
}

void vb_eth_key_get(const uint8_t *frame, size_t len, struct vb_eth_key *key)
{
	struct vb_reader r = vb_reader(frame, len);
	uint16_t type;

	memset(key, 0, sizeof(*key));
	if (len < VB_ETH_BYTES || !take_into(&r, key->dst, 6) ||
	    !take_into(&r, key->src, 6))
		return;
	key->layers = LAYER_ETH;
	type = get_tags(&r, vb_get_be16(&r), key);
	vb_store_be(key->ether_type, type, 2);
	if (type == TYPE_IPV4)
		wire_eth_get_ipv4(&r, key);
	else if (type == TYPE_IPV6)
		wire_eth_get_ipv6(&r, key);
}

bool vb_eth_key_matches(const struct vb_eth_key *key,
			const struct vb_eth_key *value,
			const struct vb_eth_key *mask)
{
	uint64_t k[VB_ETH_KEY_BYTES / 8], v[VB_ETH_KEY_BYTES / 8],
		m[VB_ETH_KEY_BYTES / 8], differ = 0;

	memcpy(k, key, sizeof(k));
	memcpy(v, value, sizeof(v));
	memcpy(m, mask, sizeof(m));
	for (size_t i = 0; i < VB_COUNT(k); i++)
		differ |= (k[i] ^ v[i]) & m[i];
	return differ == 0;
}
