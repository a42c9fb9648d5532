/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of an Ethernet frame that flow steering compares: addresses, tags
 * and ports, as bytes that can be compared under a mask.
 */
#ifndef WIRE_ETH_H
#define WIRE_ETH_H

#include "base/defs.h"

#define VB_ETH_BYTES  14
#define VB_VLAN_BYTES 4

enum vb_eth_layer {
	LAYER_ETH = 1 << 0,
	LAYER_VLAN = 1 << 1,
	LAYER_IPV4 = 1 << 2,
	LAYER_IPV6 = 1 << 3,
	LAYER_TCP = 1 << 4,
	LAYER_UDP = 1 << 5,
};

/* The fields as they are on the wire; 0 where a frame has no such field. */
struct vb_eth_key {
	/* the layers that the frame has, enum vb_eth_layer, in host order */
	uint16_t layers;
	uint8_t dst[6], src[6];
	/* The EtherType behind the last VLAN tag (ibv_create_flow(3)). */
	uint8_t ether_type[2];
	uint8_t vlan_tag[2]; /* the first VLAN tag: priority, CFI, number */
	uint8_t sport[2], dport[2];
	/* IPv4: the field Protocol; IPv6: the first Next Header */
	uint8_t proto;
	uint8_t tos;
	/* addresses; those of IPv4 are in the first four bytes */
	uint8_t sip[16], dip[16];
	uint8_t flow_label[4]; /* IPv6 flow label, 20 bits */
	uint8_t ttl;
	uint8_t ip_flags; /* flags of the IPv4 header: VB_IPV4_DF, VB_IPV4_MF */
	uint8_t zero[2];
};
#define VB_ETH_KEY_BYTES 64
_Static_assert(sizeof(struct vb_eth_key) == VB_ETH_KEY_BYTES, "no holes");

#define VB_IPV4_DF 2
#define VB_IPV4_MF 4

/* Fill @key from the @len bytes of a frame. A layer that @len cuts short counts
 * as missing, and so do all layers behind it. */
void vb_eth_key_get(const uint8_t *frame, size_t len, struct vb_eth_key *key);

/* Does @key equal @value in all bits that are set in @mask? */
bool vb_eth_key_matches(const struct vb_eth_key *key,
			const struct vb_eth_key *value,
			const struct vb_eth_key *mask);

#endif
