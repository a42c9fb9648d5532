/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of datagrams over RDMA, as rdma-core's librdmacm/docs/rsocket
 * states them. Who does not know his peer's queue pair yet sends over UDP,
 * with a header that names his own; from one queue pair to another goes a
 * shorter one, which says whose datagram it is. Nothing in them is believed.
 */
#ifndef FRONT_RSOCKETS_DGRAM_HEADER_H
#define FRONT_RSOCKETS_DGRAM_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum rs_dgram_header_op {
	RS_DGRAM_DATA = 0,    /* the rest is the program's; to be answered */
	RS_DGRAM_CONTROL = 7, /* the answer: nothing but the header */
};

#define RS_DGRAM_BYTES	  2048 /* with its header, whichever way it goes */
#define RS_DGRAM_UDP_MOST 28
#define RS_DGRAM_UD_MOST  24

struct rs_dgram_header_udp {
	enum rs_dgram_header_op op;
	uint32_t qpn;
};

/* The header's length. @own: IPv4 or IPv6, where it is sent from. */
unsigned rs_dgram_header_put_udp(uint8_t to[RS_DGRAM_UDP_MOST],
				 const struct rs_dgram_header_udp *h,
				 const struct sockaddr *own);
unsigned rs_dgram_header_put_ud(uint8_t to[RS_DGRAM_UD_MOST],
				const struct sockaddr *own);

/* The header's length; -EPROTO: it is none. @family: of who sent it. */
int rs_dgram_header_get_udp(const uint8_t *bytes, size_t n, int family,
			    struct rs_dgram_header_udp *h);
int rs_dgram_header_get_ud(const uint8_t *bytes, size_t n,
			   struct sockaddr_storage *from);

#endif
