/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads addresses with the length of their prefix, and finds addresses in
 * networks. */
#include "ipoib/address.h"

#include <arpa/inet.h>
#include <stdlib.h>

bool vb_ip_net_parse(const char *text, struct vb_ip_net *a)
{
	const char *slash = strchr(text, '/');
	char ip[INET6_ADDRSTRLEN], *end;
	uint8_t v4[4];
	unsigned long bits;

	if (!slash || (size_t)(slash - text) >= sizeof(ip) || slash[1] < '0' ||
	    slash[1] > '9')
		return false;
	memcpy(ip, text, (size_t)(slash - text));
	ip[slash - text] = '\0';
	bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > 128)
		return false;
	if (inet_pton(AF_INET, ip, v4) == 1) {
		a->ip = vb_gid_from_ipv4(v4);
		a->prefix = VB_IPV4_PREFIX + (unsigned)bits;
		return bits <= 32;
	}
	a->prefix = (unsigned)bits;
	return inet_pton(AF_INET6, ip, a->ip.raw) == 1 &&
	       !vb_gid_is_multicast(&a->ip) && !vb_gid_is_ipv4(&a->ip);
}

bool vb_ip_nets_have(const struct vb_ip_nets *n, const struct vb_gid *ip)
{
	for (unsigned i = 0; i < n->count; i++)
		if (vb_gid_equal(&n->list[i].ip, ip))
			return true;
	return false;
}

/* Are @a and @b equal in their first @bits bits? */
static bool same_network(const struct vb_gid *a, const struct vb_gid *b,
			 unsigned bits)
{
	if (memcmp(a->raw, b->raw, bits / 8) != 0)
		return false;
	return bits % 8 == 0 ||
	       (a->raw[bits / 8] ^ b->raw[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool host_bits_set(const struct vb_gid *ip, unsigned prefix)
{
	for (unsigned bit = prefix; bit < 128; bit++)
		if (!(ip->raw[bit / 8] & 0x80 >> bit % 8))
			return false;
	return true;
}

bool vb_ip_nets_broadcast(const struct vb_ip_nets *n, const struct vb_gid *ip)
{
	if (!vb_gid_is_ipv4(ip))
		return false;
	/* a network with a prefix of 31 or 32 bits has no broadcast address
	 * (RFC 3021) */
	for (unsigned i = 0; i < n->count; i++)
		if (n->list[i].prefix < 127 &&
		    same_network(ip, &n->list[i].ip, n->list[i].prefix) &&
		    host_bits_set(ip, n->list[i].prefix))
			return true;
	return host_bits_set(ip, VB_IPV4_PREFIX);
}

bool vb_ip_nets_near(const struct vb_ip_nets *n, const struct vb_gid *ip)
{
	for (unsigned i = 0; i < n->count; i++)
		if (same_network(ip, &n->list[i].ip, n->list[i].prefix))
			return true;
	return false;
}

const struct vb_gid *vb_ip_nets_source(const struct vb_ip_nets *n,
				       const struct vb_gid *ip)
{
	const struct vb_gid *any = NULL;

	for (unsigned i = 0; i < n->count; i++) {
		const struct vb_ip_net *a = &n->list[i];

		if (vb_gid_is_ipv4(&a->ip) != vb_gid_is_ipv4(ip))
			continue;
		if (same_network(ip, &a->ip, a->prefix))
			return &a->ip;
		any = &a->ip;
	}
	return any;
}
