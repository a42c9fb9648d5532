/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPv4 and IPv6 addresses of datagram sockets, without I/O.
 *
 * An IPv6 socket may have IPv4 peers, under IPv4-mapped IPv6 addresses (RFC
 * 4291 s2.5.5.2). The headers on the wire have the IPv4 address, so a socket
 * stores plain IPv4 addresses, and uses mapped ones only where the program or
 * the UDP socket sees them.
 */
#ifndef FRONT_RSOCKETS_DGRAM_ADDR_H
#define FRONT_RSOCKETS_DGRAM_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Returns the length of @a in bytes, by its address family. */
socklen_t rs_addr_bytes(const struct sockaddr *a);
/* Returns the port of the address, in network byte order. */
uint16_t rs_addr_port(const struct sockaddr_storage *a);
void rs_addr_set_port(struct sockaddr_storage *a, uint16_t port);

/* Turns an IPv4-mapped address into the IPv4 address; other addresses do not
 * change. */
void rs_addr_unmap(struct sockaddr_storage *a);
/* Returns a copy of @a; of an IPv4-mapped address, the IPv4 address. */
struct sockaddr_storage rs_addr_plain(const struct sockaddr *a);
/* Returns the address as a socket of family @domain shows it: an IPv6 socket
 * shows an IPv4 address as a mapped one. */
struct sockaddr_storage rs_addr_mapped(int domain,
				       const struct sockaddr_storage *a);

/* True if @a and @b have equal addresses and ports. */
bool rs_addr_same(const struct sockaddr_storage *a,
		  const struct sockaddr_storage *b);
/* Returns a hash of address and port. */
uint32_t rs_addr_hash(const struct sockaddr_storage *a);
/* True if the address is the wildcard, whatever its port. */
bool rs_addr_is_any(const struct sockaddr_storage *a);

#endif
