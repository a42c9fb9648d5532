/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of IPoIB (RFC 4391): the header of 4 bytes before each packet,
 * link-layer addresses of 20 bytes, ARP, IPv6 neighbour discovery, and what
 * hosts say about the groups that they are members of (IGMP, MLD). An IP
 * address is a GID here, an IPv4 one mapped into it.
 */
#ifndef IPOIB_PACKET_H
#define IPOIB_PACKET_H

#include "wire/gid.h"

#define VB_IPOIB_HEADER 4
#define VB_IPOIB_HW	20

enum vb_ipoib_type {
	IPOIB_IPV4 = 0x0800,
	IPOIB_ARP = 0x0806,
	IPOIB_IPV6 = 0x86dd,
};

/* Write the header of a packet of @type. */
void vb_ipoib_header_put(uint8_t bytes[VB_IPOIB_HEADER],
			 enum vb_ipoib_type type);
/* Returns the type in the header of @len bytes, 0 if they are too few. */
unsigned vb_ipoib_header_get(const uint8_t *bytes, size_t len);

/* What a link-layer address says that its owner accepts, besides datagrams (RFC
 * 4755, 3.1). */
enum vb_ipoib_hw_flag {
	IPOIB_HW_RC = 0x80, /* reliable connections */
	/* unreliable connections, which Verbena does not make */
	IPOIB_HW_UC = 0x40,
};

/* The kinds of links. InfiniBand is 0, so that a message filled with zeros is
 * one of InfiniBand. */
enum vb_link { LINK_INFINIBAND, LINK_ETHERNET };

#define VB_MAC_BYTES 6

/* A link-layer address: a queue pair of datagrams, at a port. On an Ethernet
 * the first bytes of @gid are the MAC address, and @qpn its last 24 bits. */
struct vb_ipoib_hw {
	uint32_t qpn;
	struct vb_gid gid;
	uint8_t flags; /* bits of enum vb_ipoib_hw_flag */
};

/* What an IP packet is to IPoIB. */
enum vb_ip_kind {
	IP_PLAIN,
	IP_SOLICIT,   /* an IPv6 neighbour solicitation */
	IP_ADVERTISE, /* an IPv6 neighbour advertisement */
	IP_REPORT,    /* an IGMP or MLD message of a host about its groups */
};

struct vb_ip {
	enum vb_ip_kind kind;
	enum vb_ipoib_type type;
	struct vb_gid src, dst;
	/* the message of ICMPv6 or IGMP, for kinds other than IP_PLAIN */
	const uint8_t *body;
	size_t body_bytes;
};

struct vb_ipoib_hw vb_hw_of_mac(const uint8_t mac[VB_MAC_BYTES]);

/* Parse an IP packet of @len bytes. False: it is no IPv4 or IPv6 packet, or
 * shorter than it says. An ICMPv6 message with a wrong checksum is IP_PLAIN. */
bool vb_ip_get(const uint8_t *packet, size_t len, struct vb_ip *ip);

/* --- ARP (RFC 826; RFC 4391, 9.1) --- */

#define VB_ARP_BYTES	 56 /* on InfiniBand, where it is longest */
#define VB_ARP_ETH_BYTES 28

struct vb_arp {
	enum vb_link link;
	bool reply;
	struct vb_ipoib_hw from_hw, to_hw;
	struct vb_gid from_ip, to_ip; /* IPv4-mapped addresses */
};

/* Write an ARP message. Returns its length in bytes. */
size_t vb_arp_put(uint8_t bytes[VB_ARP_BYTES], const struct vb_arp *arp);
/* Parse an ARP packet of @len bytes. False: it is no request or reply for IPv4
 * over InfiniBand or Ethernet. arp->link says over which of the two; the caller
 * checks that it is the link from which the packet came. */
bool vb_arp_get(const uint8_t *bytes, size_t len, struct vb_arp *arp);

/* --- IPv6 neighbour discovery (RFC 4861, RFC 4391, 9.3) --- */

/* an IPv6 header, a message, and one option with a link-layer address */
#define VB_ND_BYTES (40 + 24 + 24)

struct vb_nd {
	/* the kind of link to which the address @hw in the option belongs */
	enum vb_link link;
	bool advertise; /* true: an advertisement; false: a solicitation */
	/* flags of an advertisement */
	bool router, solicited, override;
	struct vb_gid src, dst; /* addresses of the IPv6 packet */
	struct vb_gid target;
	/* the message has an option with the link-layer address @hw */
	bool has_hw;
	struct vb_ipoib_hw hw;
};

/* Write the whole IPv6 packet. Returns its length, at most VB_ND_BYTES. */
size_t vb_nd_put(uint8_t bytes[VB_ND_BYTES], const struct vb_nd *nd);
/* Read the message of @ip, which is IP_SOLICIT or IP_ADVERTISE. False: it is
 * too short, an option has no length, or the hop limit was not 255. */
bool vb_nd_get(const struct vb_ip *ip, struct vb_nd *nd);

/* Returns the group to which a neighbour solicitation for @ip is sent: the
 * solicited-node address of @ip (RFC 4291, 2.7.1). */
struct vb_gid vb_ip_solicited_node(const struct vb_gid *ip);

/* --- groups --- */

/* Returns the multicast GID of the IP group @ip in the partition @pkey (RFC
 * 4391, 4). That of 255.255.255.255 is the broadcast group's. */
struct vb_gid vb_ip_mgid(const struct vb_gid *ip, uint16_t pkey);
/* Returns 255.255.255.255. */
struct vb_gid vb_ip_broadcast(void);

/* Call @each for every group that the message of @ip, which is IP_REPORT, is
 * about: @joins or the sender leaves it. */
void vb_ip_report_read(const struct vb_ip *ip,
		       void (*each)(void *arg, const struct vb_gid *group,
				    bool joins),
		       void *arg);

#endif
