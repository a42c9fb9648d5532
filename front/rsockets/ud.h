/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs of a datagram socket: one for each local address that the
 * socket has sent from, so a socket bound to the wildcard address may have
 * several. The caller of each function holds the socket's lock.
 */
#ifndef FRONT_RSOCKETS_UD_H
#define FRONT_RSOCKETS_UD_H

#include <sys/uio.h>

#include "front/rsockets/dgram_header.h"
#include "front/rsockets/rs.h"

/* A received datagram. */
struct rs_dgram_header {
	struct rs_dgram_header *next;
	struct rs_ud *ud; /* owns the receive buffer; NULL: the datagram came
			     over UDP and malloc() made this */
	struct sockaddr_storage from;
	uint8_t *bytes;	 /* the payload, behind the header */
	uint32_t length; /* of the payload */
	uint32_t slot;	 /* number of the receive buffer */
};

struct rs_ud {
	struct rs_ud *next;
	struct sockaddr_storage own;
	struct rdma_cm_id *id;
	struct rs_queue queue;
	uint8_t gid_index;
	uint32_t mtu; /* of the device, in bytes */
	uint8_t header[RS_DGRAM_UD_MOST];
	unsigned header_bytes;
	unsigned sends, receives; /* numbers of buffers */
	size_t bytes;		  /* length of memory */
	uint8_t *memory;	  /* send buffers, then receive buffers */
	struct ibv_mr *mr;
	struct rs_dgram_header *headers; /* one for each receive buffer */
	uint16_t *free;			 /* a stack of free send buffers */
	unsigned frees;
};

/* A queue pair at the local address @own. NULL: errno. */
struct rs_ud *rs_ud_open(struct rs_sock *rs, const struct sockaddr *own);
void rs_ud_close(struct rs_ud *ud);
/* An address handle that leads to @to. NULL: errno. */
struct ibv_ah *rs_ud_way(struct rs_ud *ud, const struct sockaddr *to);
/* Copies the @count pieces, @bytes together, and sends them. -EAGAIN: no send
 * buffer is free; -errno. */
int rs_ud_send(struct rs_ud *ud, struct ibv_ah *ah, uint32_t qpn,
	       const struct iovec *iov, unsigned count, uint32_t bytes);
/* The next datagram that came; NULL: there is none. The caller returns it with
 * rs_ud_give_back(), which posts its buffer again. */
struct rs_dgram_header *rs_ud_next(struct rs_ud *ud);
void rs_ud_give_back(struct rs_dgram_header *header);

static inline bool rs_ud_fits(const struct rs_ud *ud, uint32_t bytes)
{
	return ud->header_bytes + bytes <= ud->mtu;
}

#endif
