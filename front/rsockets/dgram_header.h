/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two headers of datagram sockets, in the format of rdma-core's document
 * librdmacm/docs/rsocket. A sender that does not know its peer's queue pair yet
 * sends over UDP, and the header names the sender's queue pair. Between queue
 * pairs a shorter header names the sender's address and port. All functions
 * check every field, because the bytes come from the network.
 */
#ifndef FRONT_RSOCKETS_DGRAM_HEADER_H
#define FRONT_RSOCKETS_DGRAM_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum rs_dgram_header_op {
	/* a payload follows; the receiver answers with CONTROL */
	RS_DGRAM_DATA = 0,
	RS_DGRAM_CONTROL = 7, /* the answer, a header without payload */
};

/* The longest datagram in bytes, header included. */
#define RS_DGRAM_BYTES	  2048
#define RS_DGRAM_UDP_MOST 28
#define RS_DGRAM_UD_MOST  24

struct rs_dgram_header_udp {
	enum rs_dgram_header_op op;
	uint32_t qpn; /* number of the sender's queue pair, 24 bits */
};

/* Write a header and return its length in bytes. @own: the IPv4 or IPv6
 * address and port that the datagram is sent from. */
unsigned rs_dgram_header_put_udp(uint8_t to[RS_DGRAM_UDP_MOST],
				 const struct rs_dgram_header_udp *h,
				 const struct sockaddr *own);
unsigned rs_dgram_header_put_ud(uint8_t to[RS_DGRAM_UD_MOST],
				const struct sockaddr *own);

/* Read the header of a datagram of @n bytes and return the header's length.
 * -EPROTO: the datagram has no such header. @family: AF_INET or AF_INET6, of
 * the sender's address. */
int rs_dgram_header_get_udp(const uint8_t *bytes, size_t n, int family,
			    struct rs_dgram_header_udp *h);
int rs_dgram_header_get_ud(const uint8_t *bytes, size_t n,
			   struct sockaddr_storage *from);

#endif
