/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 router discovery through a gateway. Router solicitations and
 * advertisements pass without the option that has the sender's link-layer
 * address, since the other side has link-layer addresses of another kind; hosts
 * there ask for the sender's address instead. A redirect does not pass, since
 * both sides are one link. The gateway sets the Proxy flag in each
 * advertisement that it passes. An advertisement that has this flag already
 * comes from the same router by way of another proxy, and does not pass (RFC
 * 4389, 4.1.3.3).
 */
#include "base/bytes.h"
#include "ipoib/gateway_priv.h"
#include "ipoib/packet_priv.h"

#define OPT_SOURCE   1
#define SOLICIT_BODY 8 /* bytes before the options */
#define ADVERT_BODY  16
#define FLAGS_AT     5
#define FLAG_PROXY   0x04
/* offset of the router's lifetime, in seconds; 0: the sender is no default
 * router any more */
#define LIFETIME_AT   6
#define ADVERT_TYPE   134
#define SOLICIT_TYPE  133
#define REDIRECT_TYPE 137

bool gw_is_of_routers(const struct vb_ip *ip, const uint8_t *packet, size_t len)
{
	uint8_t type;

	if (ip->type != IPOIB_IPV6 || len <= IPV6_BYTES ||
	    packet[6] != PROTO_ICMPV6 || packet[7] != ND_HOPS)
		return false;
	type = packet[IPV6_BYTES];
	return type == SOLICIT_TYPE || type == ADVERT_TYPE ||
	       type == REDIRECT_TYPE;
}

/* --- which neighbours are routers --- */

static struct gw_router *find_router(struct vb_gw *g, const struct vb_gid *ip)
{
	for (unsigned i = 0; i < VB_GW_ROUTERS; i++)
		if (vb_gid_equal(&g->routers[i].ip, ip))
			return &g->routers[i];
	return NULL;
}

static struct gw_router *first_to_end(struct vb_gw *g)
{
	struct gw_router *first = &g->routers[0];

	for (unsigned i = 1; i < VB_GW_ROUTERS; i++)
		if (g->routers[i].until < first->until)
			first = &g->routers[i];
	return first;
}

/* Remember the router @ip for @seconds, its advertised lifetime. If the table
 * is full, the router whose lifetime ends first is replaced. */
static void note_router(struct vb_gw *g, const struct vb_gid *ip,
			unsigned seconds)
{
	struct gw_router *at = find_router(g, ip);

	if (!at)
		at = first_to_end(g);
	at->ip = *ip;
	at->until = g->now + seconds * VB_SEC;
}

bool gw_is_router(const struct vb_gw *g, const struct vb_gid *ip)
{
	for (unsigned i = 0; i < VB_GW_ROUTERS; i++)
		if (vb_gid_equal(&g->routers[i].ip, ip))
			return g->routers[i].until > g->now;
	return false;
}

const struct vb_gid *gw_default_router(const struct vb_gw *g)
{
	const struct gw_router *best = NULL;

	for (unsigned i = 0; i < VB_GW_ROUTERS; i++)
		if (g->routers[i].until > g->now &&
		    (!best || g->routers[i].until > best->until))
			best = &g->routers[i];
	return best ? &best->ip : NULL;
}

/* --- messages --- */

/* Remove the options with the sender's link-layer address from the @len bytes
 * at @options; *@kept is the number of bytes that remain. False: the options
 * are malformed. */
static bool drop_source(uint8_t *options, size_t len, size_t *kept)
{
	*kept = 0;
	for (size_t at = 0; at < len;) {
		size_t bytes = at + 1 < len ? options[at + 1] * 8u : 0;

		if (!bytes || bytes > len - at)
			return false;
		if (options[at] != OPT_SOURCE) {
			memmove(options + *kept, options + at, bytes);
			*kept += bytes;
		}
		at += bytes;
	}
	return true;
}

/* Write the lengths and the checksum of an ICMPv6 message of @len bytes. */
static size_t seal_message(const struct vb_ip *ip, uint8_t *packet, size_t len)
{
	uint8_t *body = packet + IPV6_BYTES;
	uint32_t sum;

	vb_store_be(packet + 4, len, 2);
	vb_store_be(body + 2, 0, 2);
	sum = ipoib_sum(ipoib_pseudo_sum(&ip->src, &ip->dst, len), body, len);
	vb_store_be(body + 2, ~sum & 0xffff, 2);
	return IPV6_BYTES + len;
}

size_t gw_translate_discovery(struct vb_gw *g, const struct vb_ip *ip,
			      uint8_t *packet, size_t len)
{
	uint8_t *body = packet + IPV6_BYTES;
	size_t bytes = len - IPV6_BYTES;
	size_t head = body[0] == ADVERT_TYPE ? ADVERT_BODY : SOLICIT_BODY;
	uint32_t sum = ipoib_pseudo_sum(&ip->src, &ip->dst, bytes);
	size_t kept;

	if (body[0] == REDIRECT_TYPE || bytes < head ||
	    ipoib_sum(sum, body, bytes) != 0xffff)
		return 0;
	if (body[0] == ADVERT_TYPE) {
		if (!vb_gid_is_link_local(&ip->src) ||
		    body[FLAGS_AT] & FLAG_PROXY)
			return 0;
		body[FLAGS_AT] |= FLAG_PROXY;
	}
	if (!drop_source(body + head, bytes - head, &kept))
		return 0;
	if (body[0] == ADVERT_TYPE)
		note_router(g, &ip->src,
			    (unsigned)vb_load_be(body + LIFETIME_AT, 2));
	return seal_message(ip, packet, head + kept);
}
