/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of a datagram socket, and their send and receive buffers. */
#include "front/rsockets/ud.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/defs.h"
#include "wire/gid.h"

enum {
	GRH = sizeof(struct ibv_grh),
	/* size of a buffer in bytes; a received datagram begins with a GRH */
	SLOT = RS_DGRAM_BYTES + 64,
	SEND = 0, /* upper half of a work request's wr_id: its direction */
	RECEIVE = 1,
	HOPS = 64,   /* the hop limit that datagrams are sent with */
	MOST = 4096, /* the most buffers of a socket in each direction */
	OPEN_MS = 2000,
};
_Static_assert(SLOT >= RS_DGRAM_BYTES + GRH, "room for a GRH");

/* Returns the wr_id of a work request: its direction and its buffer. */
static uint64_t ud_work_id(unsigned what, uint32_t slot)
{
	return (uint64_t)what << 32 | slot;
}

static uint8_t *send_slot(const struct rs_ud *ud, uint32_t i)
{
	return ud->memory + (size_t)i * SLOT;
}

static uint8_t *receive_slot(const struct rs_ud *ud, uint32_t i)
{
	return ud->memory + (size_t)(ud->sends + i) * SLOT;
}

static int post_receive(struct rs_ud *ud, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)receive_slot(ud, slot), SLOT,
			       ud->mr->lkey };
	struct ibv_recv_wr wr = {
		.wr_id = ud_work_id(RECEIVE, slot),
		.sg_list = &sge,
		.num_sge = 1,
	}, *bad;

	return ibv_post_recv(ud->id->qp, &wr, &bad) ? -EIO : 0;
}

/* Makes an id on the device that has the address ud->own, with any port of
 * rdma_cm. rdma_bind_addr() to a loopback address chooses no device, so this
 * function resolves the path from ud->own to itself instead, which always
 * chooses one. 0 or -errno. */
static int open_id(struct rs_ud *ud)
{
	struct sockaddr_storage a = ud->own;
	struct sockaddr *own = (struct sockaddr *)&a;

	/* The offset is right for IPv6 as well: sin6_port is where sin_port
	 * is. */
	((struct sockaddr_in *)&a)->sin_port = 0;
	if (rdma_create_id(NULL, &ud->id, NULL, RDMA_PS_UDP) ||
	    rdma_resolve_addr(ud->id, own, own, OPEN_MS))
		return -errno;
	return ud->id->verbs ? 0 : -ENODEV;
}

/* Makes a GID of an address; an IPv4 address becomes ::ffff:a.b.c.d. */
static void gid_of(const struct sockaddr_storage *a, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (a->ss_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
		return;
	}
	memcpy(gid->raw, mapped, sizeof(mapped));
	memcpy(gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
}

/* Returns the GID from which datagrams are sent. It differs from the socket's
 * own address if that is a loopback address. */
static union ibv_gid source(const struct rs_ud *ud)
{
	return ud->id->route.addr.addr.ibaddr.sgid;
}

/* Finds the index of the source GID and the path MTU. */
static int find_gid(struct rs_ud *ud)
{
	struct ibv_gid_entry e;
	struct ibv_port_attr port;
	const union ibv_gid own = source(ud);

	if (ibv_query_port(ud->id->verbs, 1, &port))
		return -ENODEV;
	ud->mtu = 128u << port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(ud->id->verbs, 1, (uint32_t)i, &e, 0) ||
		    e.gid_type == IBV_GID_TYPE_ROCE_V1 ||
		    memcmp(&e.gid, &own, sizeof(own)) != 0)
			continue;
		ud->gid_index = (uint8_t)i;
		return 0;
	}
	return -ENODEV;
}

/* Makes the queue pair, and the completion queue, whose channel is in the set
 * @epoll. 0 or -errno. */
static int ud_open_queues(struct rs_ud *ud, int epoll)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = ud->sends,
			 .max_recv_wr = ud->receives,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	int rc = rs_queue_open(&ud->queue, epoll, ud->id->verbs,
			       (int)(ud->sends + ud->receives));

	if (rc)
		return rc;
	init.send_cq = init.recv_cq = ud->queue.cq;
	return rdma_create_qp(ud->id, NULL, &init) ? -errno : 0;
}

static int ud_open_memory(struct rs_ud *ud)
{
	ud->bytes = (size_t)(ud->sends + ud->receives) * SLOT;
	ud->memory = mmap(NULL, ud->bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ud->memory == MAP_FAILED) {
		ud->memory = NULL;
		return -ENOMEM;
	}
	ud->headers = calloc(ud->receives, sizeof(*ud->headers));
	ud->free = calloc(ud->sends, sizeof(*ud->free));
	if (!ud->headers || !ud->free)
		return -ENOMEM;
	ud->mr = ibv_reg_mr(ud->id->pd, ud->memory, ud->bytes,
			    IBV_ACCESS_LOCAL_WRITE);
	return ud->mr ? 0 : -errno;
}

/* Makes all send buffers free and posts all receive buffers. */
static int fill(struct rs_ud *ud)
{
	int rc = 0;

	for (unsigned i = 0; i < ud->sends; i++)
		ud->free[ud->frees++] = (uint16_t)i;
	for (unsigned i = 0; rc == 0 && i < ud->receives; i++)
		rc = post_receive(ud, i);
	return rc;
}

struct rs_ud *rs_ud_open(struct rs_sock *rs, const struct sockaddr *own)
{
	struct rs_ud *ud = calloc(1, sizeof(*ud));
	int rc;

	if (!ud)
		return NULL;
	memcpy(&ud->own, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
	ud->header_bytes = rs_dgram_header_put_ud(ud->header, own);
	ud->sends = VB_MIN(rs->wishes.send_bytes / RS_DGRAM_BYTES, MOST);
	ud->receives = VB_MIN(rs->wishes.receive_bytes / RS_DGRAM_BYTES, MOST);
	rc = open_id(ud);
	if (rc == 0)
		rc = find_gid(ud);
	if (rc == 0)
		rc = ud_open_memory(ud);
	if (rc == 0)
		rc = ud_open_queues(ud, rs->fd);
	if (rc == 0)
		rc = fill(ud);
	if (rc == 0)
		return ud;
	rs_ud_close(ud);
	errno = -rc;
	return NULL;
}

void rs_ud_close(struct rs_ud *ud)
{
	if (ud->id)
		rdma_destroy_qp(ud->id);
	rs_queue_close(&ud->queue);
	if (ud->mr)
		ibv_dereg_mr(ud->mr);
	if (ud->memory)
		munmap(ud->memory, ud->bytes);
	if (ud->id)
		rdma_destroy_id(ud->id);
	free(ud->headers);
	free(ud->free);
	free(ud);
}

struct ibv_ah *rs_ud_way(struct rs_ud *ud, const struct sockaddr *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = ud->id->port_num,
		.grh = { .sgid_index = ud->gid_index, .hop_limit = HOPS },
	};
	struct vb_gid gid;

	gid_of((const struct sockaddr_storage *)to, &attr.grh.dgid);
	/* The device may not have the loopback address, so datagrams to it go
	 * to the device's own GID, which also belongs to this host. */
	memcpy(gid.raw, attr.grh.dgid.raw, sizeof(gid.raw));
	if (vb_gid_is_loopback(&gid))
		attr.grh.dgid = source(ud);
	return ibv_create_ah(ud->id->pd, &attr);
}

int rs_ud_send(struct rs_ud *ud, struct ibv_ah *ah, uint32_t qpn,
	       const struct iovec *iov, unsigned count, uint32_t bytes)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { ah, qpn, RDMA_UDP_QKEY },
	}, *bad;
	uint16_t slot;
	uint8_t *at;

	if (ud->frees == 0)
		return -EAGAIN;
	slot = ud->free[ud->frees - 1];
	wr.wr_id = ud_work_id(SEND, slot);
	at = send_slot(ud, slot);
	sge = (struct ibv_sge){ (uintptr_t)at, ud->header_bytes + bytes,
				ud->mr->lkey };
	memcpy(at, ud->header, ud->header_bytes);
	at += ud->header_bytes;
	for (unsigned i = 0; i < count; at += iov[i++].iov_len)
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
	if (ibv_post_send(ud->id->qp, &wr, &bad))
		return -EIO;
	ud->frees--;
	return 0;
}

/* Returns the datagram of a receive completion. NULL: the header is malformed
 * or the receive failed, and the buffer has been posted again; or the queue
 * pair has been flushed, and posting is pointless. */
static struct rs_dgram_header *open_datagram(struct rs_ud *ud,
					     const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;
	struct rs_dgram_header *dg = &ud->headers[slot];
	uint8_t *at = receive_slot(ud, slot) + GRH;
	uint32_t bytes = wc->byte_len;
	int header;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return NULL;
	bytes = bytes < GRH ? 0 : bytes - GRH;
	header = wc->status != IBV_WC_SUCCESS
			 ? -EIO
			 : rs_dgram_header_get_ud(at, bytes, &dg->from);
	dg->ud = ud;
	dg->slot = slot;
	if (header < 0) {
		rs_ud_give_back(dg);
		return NULL;
	}
	dg->bytes = at + header;
	dg->length = bytes - (uint32_t)header;
	return dg;
}

struct rs_dgram_header *rs_ud_next(struct rs_ud *ud)
{
	struct rs_dgram_header *dg = NULL;
	struct ibv_wc wc;

	while (!dg && ibv_poll_cq(ud->queue.cq, 1, &wc) > 0) {
		if (wc.wr_id >> 32 == RECEIVE)
			dg = open_datagram(ud, &wc);
		else
			ud->free[ud->frees++] = (uint16_t)wc.wr_id;
	}
	return dg;
}

void rs_ud_give_back(struct rs_dgram_header *header)
{
	if (header->ud)
		(void)post_receive(header->ud, header->slot);
	else
		free(header);
}
