/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair of a datagram socket at one of the host's addresses: a
 * socket that is bound to none has as many as it has used. All with the
 * socket's lock.
 */
#ifndef FRONT_RSOCKETS_UD_H
#define FRONT_RSOCKETS_UD_H

#include <sys/uio.h>

#include "front/rsockets/dgram_header.h"
#include "front/rsockets/rs.h"

/* A datagram that came. */
struct rs_dgram_header {
	struct rs_dgram_header *next;
	struct rs_ud *ud; /* whose buffer it is in; NULL: malloc's */
	struct sockaddr_storage from;
	uint8_t *bytes; /* behind the header */
	uint32_t length;
	uint32_t slot;
};

struct rs_ud {
	struct rs_ud *next;
	struct sockaddr_storage own;
	struct rdma_cm_id *id;
	struct rs_queue queue;
	uint8_t gid_index;
	uint32_t mtu; /* bytes */
	uint8_t header[RS_DGRAM_UD_MOST];
	unsigned header_bytes;
	unsigned sends, receives; /* slots */
	size_t bytes;		  /* of memory */
	uint8_t *memory;	  /* sends, then receives */
	struct ibv_mr *mr;
	struct rs_dgram_header *headers; /* of the receives */
	uint16_t *free;			 /* stack of slots to send from */
	unsigned frees;
};

/* NULL: errno. */
struct rs_ud *rs_ud_open(struct rs_sock *rs, const struct sockaddr *own);
void rs_ud_close(struct rs_ud *ud);
/* NULL: errno. */
struct ibv_ah *rs_ud_way(struct rs_ud *ud, const struct sockaddr *to);
/* -errno; -EAGAIN: no slot is free. @bytes: of all pieces. */
int rs_ud_send(struct rs_ud *ud, struct ibv_ah *ah, uint32_t qpn,
	       const struct iovec *iov, unsigned count, uint32_t bytes);
/* What has come, one after the other; NULL: no more. */
struct rs_dgram_header *rs_ud_next(struct rs_ud *ud);
void rs_ud_give_back(struct rs_dgram_header *header);

static inline bool rs_ud_fits(const struct rs_ud *ud, uint32_t bytes)
{
	return ud->header_bytes + bytes <= ud->mtu;
}

#endif
