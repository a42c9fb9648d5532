/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs of a datagram socket: one for each local address that the
 * socket has sent from, so a socket bound to the wildcard address may have
 * several. The caller of each function holds the socket's lock. Errors are
 * returned as a negative errno, or as NULL with errno set. The wire format is
 * in dgram_header.h.
 */
#ifndef FRONT_RSOCKETS_UD_H
#define FRONT_RSOCKETS_UD_H

#include <sys/uio.h>

#include "front/rsockets/dgram_header.h"
#include "front/rsockets/rs.h"

/* A received datagram: its header's fields and the place of its bytes. */
struct rs_dgram_header {
	struct rs_dgram_header *next; /* the next one in the socket's queue */
	/* owner of the receive buffer; NULL: the datagram came over UDP and
	 * malloc() made this */
	struct rs_ud *ud;
	struct sockaddr_storage from;
	/* the payload, which follows the header in the receive buffer */
	uint8_t *bytes;
	uint32_t length; /* length of the payload in bytes */
	uint32_t slot; /* number of the receive buffer that has the datagram */
};

struct rs_ud {
	struct rs_ud *next;
	struct sockaddr_storage own;
	struct rdma_cm_id *id;
	struct rs_queue queue;
	uint8_t gid_index;
	uint32_t mtu; /* MTU of the device in bytes */
	uint8_t header[RS_DGRAM_UD_MOST];
	unsigned header_bytes;
	unsigned sends, receives; /* number of buffers in each direction */
	size_t bytes;		  /* length of @memory in bytes */
	uint8_t *memory; /* the send buffers, then the receive buffers */
	struct ibv_mr *mr;
	/* one header for each receive buffer */
	struct rs_dgram_header *headers;
	uint16_t *free; /* a stack of the numbers of free send buffers */
	unsigned frees;
};

/* Opens a queue pair at the local address @own, which is IPv4 or IPv6, with
 * buffers for the socket's SO_SNDBUF and SO_RCVBUF. */
struct rs_ud *rs_ud_open(struct rs_sock *rs, const struct sockaddr *own);
/* Frees @ud with its buffers. The datagrams of rs_ud_next() become invalid. */
void rs_ud_close(struct rs_ud *ud);
/* Makes an address handle for the address @to. The caller destroys it before it
 * closes @ud. */
struct ibv_ah *rs_ud_way(struct rs_ud *ud, const struct sockaddr *to);
/* Copies the @count pieces, @bytes together, and sends them to the queue pair
 * @qpn. The caller has checked rs_ud_fits() and that @bytes fit in a datagram.
 * -EAGAIN: no send buffer is free; -EIO: the queue pair takes no request. */
int rs_ud_send(struct rs_ud *ud, struct ibv_ah *ah, uint32_t qpn,
	       const struct iovec *iov, unsigned count, uint32_t bytes);
/* Returns the next datagram that has arrived. NULL: there is none. The call
 * also frees the buffers of completed sends. The caller returns the datagram
 * with rs_ud_give_back(). */
struct rs_dgram_header *rs_ud_next(struct rs_ud *ud);
/* Posts the receive buffer of the datagram again, or frees the datagram if it
 * came over UDP. */
void rs_ud_give_back(struct rs_dgram_header *header);

/* True if a datagram with @bytes of payload fits in one packet. */
static inline bool rs_ud_fits(const struct rs_ud *ud, uint32_t bytes)
{
	return ud->header_bytes + bytes <= ud->mtu;
}

#endif
