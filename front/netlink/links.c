/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the addresses of IPoIB interfaces into the kernel's messages. */
#include "front/netlink/links.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <string.h>

#include "front/netlink/put.h"

#define HEAD (NLMSG_ALIGN(sizeof(struct nlmsghdr)))
#define LINK (NLMSG_ALIGN(sizeof(struct ifinfomsg)))

#define MAP (NLA_HDRLEN + sizeof(struct rtnl_link_ifmap))
#define OWN (NLA_HDRLEN + VB_NL_IPOIB_ADDRESS)

/* An address is shorter than the IFLA_MAP whose place it takes; a padding
 * attribute fills the rest. */
_Static_assert(MAP >= OWN + NLA_HDRLEN, "an address has room in a map");

/* The parts of a message about a link: its interface, and the offsets of two
 * attributes in the message; 0: the message lacks that attribute. */
struct said {
	size_t address, map;
	char name[IFNAMSIZ];
};

/* Returns the length of the message at @bytes; 0: there is no whole one. */
static size_t message_length(const uint8_t *bytes, size_t room)
{
	struct nlmsghdr h;

	if (room < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	return h.nlmsg_len < sizeof(h) || h.nlmsg_len > room ? 0 : h.nlmsg_len;
}

/* Is the message, a whole one, about a link of IPoIB's type? */
static bool is_infiniband(const uint8_t *bytes, size_t length)
{
	struct ifinfomsg link;
	struct nlmsghdr h;

	memcpy(&h, bytes, sizeof(h));
	if (h.nlmsg_type != RTM_NEWLINK || length < HEAD + LINK)
		return false;
	memcpy(&link, bytes + HEAD, sizeof(link));
	return link.ifi_type == ARPHRD_INFINIBAND;
}

static void note_link_attribute(struct said *s, const struct nlattr *a,
				const uint8_t *bytes, size_t at)
{
	size_t length = a->nla_len - (size_t)NLA_HDRLEN;

	if (a->nla_type == IFLA_ADDRESS)
		s->address = at;
	if (a->nla_type == IFLA_IFNAME && length && length <= IFNAMSIZ)
		memcpy(s->name, bytes + at + NLA_HDRLEN, length);
	if (a->nla_type == IFLA_MAP && a->nla_len == MAP)
		s->map = at;
}

static struct said read_ipoib_link(const uint8_t *bytes, size_t length)
{
	struct said s = { 0 };
	struct nlattr a;

	for (size_t at = HEAD + LINK; at + sizeof(a) <= length;
	     at += NLA_ALIGN(a.nla_len)) {
		memcpy(&a, bytes + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > length - at)
			break;
		note_link_attribute(&s, &a, bytes, at);
	}
	s.name[IFNAMSIZ - 1] = '\0';
	return s;
}

static bool lacks_address(const struct said *s)
{
	return !s->address && s->name[0] && s->map;
}

static void put_ipoib_address(uint8_t *bytes, const struct said *s,
			      const uint8_t address[VB_NL_IPOIB_ADDRESS])
{
	static const uint8_t zeros[MAP - OWN - NLA_HDRLEN];
	struct vb_nl_out o = { .bytes = bytes + s->map, .room = MAP };

	vb_nl_put(&o, IFLA_ADDRESS, address, VB_NL_IPOIB_ADDRESS);
	vb_nl_put(&o, IFLA_PAD, zeros, sizeof(zeros));
}

/* Find the next message, from offset *@at on, that lacks an address; set *@at
 * to its offset and *@s to its parts. False: there is none. */
static bool next_lacking(const uint8_t *bytes, size_t length, size_t *at,
			 struct said *s)
{
	size_t n;

	while (*at < length &&
	       (n = message_length(bytes + *at, length - *at))) {
		if (is_infiniband(bytes + *at, n)) {
			*s = read_ipoib_link(bytes + *at, n);
			if (lacks_address(s))
				return true;
		}
		*at += NLMSG_ALIGN(n);
	}
	return false;
}

bool vb_nl_links_lack(const uint8_t *bytes, size_t length)
{
	struct said s;
	size_t at = 0;

	return next_lacking(bytes, length, &at, &s);
}

void vb_nl_links_complete(uint8_t *bytes, size_t length,
			  vb_nl_address_of *address_of)
{
	uint8_t address[VB_NL_IPOIB_ADDRESS];
	struct said s;

	for (size_t at = 0; next_lacking(bytes, length, &at, &s);
	     at += NLMSG_ALIGN(message_length(bytes + at, length - at)))
		if (address_of(s.name, address))
			put_ipoib_address(bytes + at, &s, address);
}
