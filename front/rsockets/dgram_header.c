/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the headers of datagram sockets: see dgram_header.h. */
#include "front/rsockets/dgram_header.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"

#define TAG 0x55555555u

/* Lengths of the headers in bytes, by address family. */
enum { UDP4 = 16, UDP6 = 28, UD4 = 8, UD6 = 24, QPN_MASK = 0xffffff };

static const struct sockaddr_in *v4(const struct sockaddr *a)
{
	return (const struct sockaddr_in *)a;
}

static const struct sockaddr_in6 *v6(const struct sockaddr *a)
{
	return (const struct sockaddr_in6 *)a;
}

unsigned rs_dgram_header_put_udp(uint8_t to[RS_DGRAM_UDP_MOST],
				 const struct rs_dgram_header_udp *h,
				 const struct sockaddr *own)
{
	bool six = own->sa_family == AF_INET6;

	vb_store_be(to, TAG, 4);
	to[4] = six ? 6 : 4;
	to[5] = (uint8_t)h->op;
	to[6] = six ? UDP6 : UDP4;
	to[7] = 0;
	vb_store_be(to + 8, h->qpn & QPN_MASK, 4);
	if (six)
		memcpy(to + 12, &v6(own)->sin6_addr, 16);
	else
		memcpy(to + 12, &v4(own)->sin_addr, 4);
	return to[6];
}

int rs_dgram_header_get_udp(const uint8_t *bytes, size_t n, int family,
			    struct rs_dgram_header_udp *h)
{
	bool six = family == AF_INET6;
	unsigned length = six ? UDP6 : UDP4;

	if (n < length || vb_load_be(bytes, 4) != TAG ||
	    bytes[4] != (six ? 6 : 4) || bytes[6] != length)
		return -EPROTO;
	if (bytes[5] != RS_DGRAM_DATA && bytes[5] != RS_DGRAM_CONTROL)
		return -EPROTO;
	h->op = (enum rs_dgram_header_op)bytes[5];
	h->qpn = (uint32_t)vb_load_be(bytes + 8, 4) & QPN_MASK;
	return (int)length;
}

unsigned rs_dgram_header_put_ud(uint8_t to[RS_DGRAM_UD_MOST],
				const struct sockaddr *own)
{
	bool six = own->sa_family == AF_INET6;

	to[0] = six ? 6 : 4;
	to[1] = six ? UD6 : UD4;
	/* The offset is right for IPv6 as well: sin6_port is where sin_port
	 * is. */
	memcpy(to + 2, &v4(own)->sin_port, 2);
	if (six) {
		memcpy(to + 4, &v6(own)->sin6_flowinfo, 4);
		memcpy(to + 8, &v6(own)->sin6_addr, 16);
	} else {
		memcpy(to + 4, &v4(own)->sin_addr, 4);
	}
	return to[1];
}

int rs_dgram_header_get_ud(const uint8_t *bytes, size_t n,
			   struct sockaddr_storage *from)
{
	struct sockaddr_in *four = (struct sockaddr_in *)from;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)from;

	memset(from, 0, sizeof(*from));
	if (n >= UD4 && bytes[0] == 4 && bytes[1] == UD4) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_port, bytes + 2, 2);
		memcpy(&four->sin_addr, bytes + 4, 4);
		return UD4;
	}
	if (n >= UD6 && bytes[0] == 6 && bytes[1] == UD6) {
		six->sin6_family = AF_INET6;
		memcpy(&six->sin6_port, bytes + 2, 2);
		memcpy(&six->sin6_flowinfo, bytes + 4, 4);
		memcpy(&six->sin6_addr, bytes + 8, 16);
		return UD6;
	}
	return -EPROTO;
}
