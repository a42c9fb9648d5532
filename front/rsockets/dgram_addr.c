/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of datagram sockets: see dgram_addr.h. */
#include "front/rsockets/dgram_addr.h"

#include <netinet/in.h>
#include <string.h>

socklen_t rs_addr_bytes(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					: sizeof(struct sockaddr_in);
}

uint16_t rs_addr_port(const struct sockaddr_storage *a)
{
	return ((const struct sockaddr_in *)a)->sin_port;
}

void rs_addr_set_port(struct sockaddr_storage *a, uint16_t port)
{
	((struct sockaddr_in *)a)->sin_port = port;
}

void rs_addr_unmap(struct sockaddr_storage *a)
{
	const struct sockaddr_in6 six = *(struct sockaddr_in6 *)a;
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = six.sin6_port };

	if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
	memset(a, 0, sizeof(*a));
	memcpy(a, &four, sizeof(four));
}

struct sockaddr_storage rs_addr_plain(const struct sockaddr *a)
{
	struct sockaddr_storage p = {};

	memcpy(&p, a, rs_addr_bytes(a));
	rs_addr_unmap(&p);
	return p;
}

struct sockaddr_storage rs_addr_mapped(int domain,
				       const struct sockaddr_storage *a)
{
	const struct sockaddr_in four = *(const struct sockaddr_in *)a;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = four.sin_port };
	struct sockaddr_storage seen = *a;

	if (a->ss_family != AF_INET || domain != AF_INET6)
		return seen;
	memset(six.sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(six.sin6_addr.s6_addr + 12, &four.sin_addr, 4);
	memset(&seen, 0, sizeof(seen));
	memcpy(&seen, &six, sizeof(six));
	return seen;
}

/* Port and address of a peer; an IPv4 address is in the last 4 bytes. */
struct peer_key {
	uint8_t bytes[18];
};

static struct peer_key key_of(const struct sockaddr_storage *a)
{
	struct peer_key p = {};
	uint16_t port = rs_addr_port(a);

	memcpy(p.bytes, &port, 2);
	if (a->ss_family == AF_INET6)
		memcpy(p.bytes + 2,
		       &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	else
		memcpy(p.bytes + 14, &((const struct sockaddr_in *)a)->sin_addr,
		       4);
	return p;
}

bool rs_addr_same(const struct sockaddr_storage *a,
		  const struct sockaddr_storage *b)
{
	struct peer_key p = key_of(a), q = key_of(b);

	return memcmp(&p, &q, sizeof(p)) == 0;
}

uint32_t rs_addr_hash(const struct sockaddr_storage *a)
{
	struct peer_key p = key_of(a);
	uint32_t hash = 2166136261u; /* the hash function FNV-1a */

	for (unsigned i = 0; i < sizeof(p.bytes); i++)
		hash = (hash ^ p.bytes[i]) * 16777619u;
	return hash;
}

bool rs_addr_is_any(const struct sockaddr_storage *a)
{
	static const uint8_t zero[16];
	struct peer_key p = key_of(a);

	return memcmp(p.bytes + 2, zero, sizeof(zero)) == 0;
}
