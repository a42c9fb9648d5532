/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O of a stream socket: its queue pair, its completion queue, and the
 * memory that both ends write. One receive is posted for each credit. Receives
 * have no buffer, because messages are immediate data; only over iWARP each has
 * one of 4 bytes. A receive is posted again as soon as its message has been
 * handled.
 */
#include "front/rsockets/rs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"

enum {
	/* Kinds of work requests, which are stored in the upper half of
	 * wr_id. */
	DONE_WRITE,
	DONE_CONTROL,
	DONE_RECEIVE,
	DONE_PROBE,
	/* over iWARP: a WRITE, which precedes its message's SEND */
	DONE_PLACED,
	/* Control messages consume receives without credits. If the peer finds
	 * no receive, InfiniBand repeats the message (RNR), but an iWARP
	 * connection ends. So over iWARP this end posts as many additional
	 * receives as a peer can send control messages before this end handles
	 * them. */
	SPARE = 2 * RS_CONTROLS,
	/* number of completions, and of receives, that are handled at a time */
	AT_ONCE = 16,
	PIECES = 3, /* the most scatter/gather elements of a send */
	WORD = 8,
};

/* Returns a wr_id. @kept: bytes in the out ring, or the number of a receive. */
static uint64_t rs_qp_work_id(unsigned what, uint32_t kept)
{
	return (uint64_t)what << 32 | kept;
}

/* Returns the length of the memory that the peer writes: slots, then
 * mappings. */
static size_t shared_bytes(const struct rs_room *room)
{
	return RS_SLOTS * sizeof(struct rs_area) +
	       room->iomaps * sizeof(struct rs_iomap);
}

static void *rs_qp_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void rs_qp_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* Returns the next receive to post. Receives complete in the order in which
 * they were posted, so each uses the next buffer in turn. */
static struct ibv_recv_wr next_receive(struct rs_sock *rs, struct ibv_sge *sge)
{
	unsigned i = rs->next_receive;

	rs->next_receive = (i + 1) % rs->receives;
	if (rs->room.by_send)
		*sge = (struct ibv_sge){ (uintptr_t)&rs->words[i],
					 sizeof(rs->words[i]),
					 rs->words_mr->lkey };
	return (struct ibv_recv_wr){ .wr_id = rs_qp_work_id(DONE_RECEIVE, i),
				     .sg_list = sge,
				     .num_sge = rs->room.by_send };
}

static int post_receives(struct rs_sock *rs, unsigned count)
{
	struct ibv_recv_wr wr[AT_ONCE], *bad;
	struct ibv_sge sge[AT_ONCE];
	unsigned n, i;

	for (; count; count -= n) {
		n = VB_MIN(count, (unsigned)AT_ONCE);
		for (i = 0; i < n; i++) {
			wr[i] = next_receive(rs, &sge[i]);
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		}
		if (ibv_post_recv(rs->id->qp, wr, &bad))
			return -EIO;
	}
	return 0;
}

static int rs_qp_open_queues(struct rs_sock *rs)
{
	const struct rs_wishes *w = &rs->wishes;
	unsigned sends = rs->room.by_send ? 2u * w->sends : w->sends;
	struct ibv_qp_init_attr init = {
		.qp_context = rs,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = sends,
			 .max_recv_wr = rs->receives,
			 .max_send_sge = PIECES,
			 .max_recv_sge = 1,
			 .max_inline_data = w->inline_bytes },
	};
	int rc = rs_queue_open(&rs->queue, rs->fd, rs->id->verbs,
			       (int)(sends + rs->receives));

	if (rc)
		return rc;
	init.send_cq = init.recv_cq = rs->queue.cq;
	if (rdma_create_qp(rs->id, NULL, &init))
		return -errno;
	rs->wishes.inline_bytes =
		(uint16_t)VB_MIN(init.cap.max_inline_data, UINT16_MAX);
	return 0;
}

static size_t words_bytes(const struct rs_sock *rs)
{
	return rs->receives * sizeof(*rs->words);
}

static int rs_qp_open_memory(struct rs_sock *rs)
{
	struct rs_room *room = &rs->room;
	struct ibv_pd *pd = rs->id->qp->pd;
	const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint8_t *ring;

	room->iomaps = rs_unscale(rs_scale(rs->wishes.iomaps));
	room->out_size = rs->wishes.send_bytes;
	room->credits = rs->wishes.receives;
	room->sends = rs->wishes.sends - RS_CONTROLS;
	room->ring.length = rs->wishes.receive_bytes & ~1u;
	room->slots = rs_qp_map(shared_bytes(room));
	ring = rs_qp_map(room->ring.length);
	room->ring.addr = (uintptr_t)ring;
	rs->out = rs_qp_map(room->out_size);
	if (room->by_send)
		rs->words = rs_qp_map(words_bytes(rs));
	if (!room->slots || !ring || !rs->out || (room->by_send && !rs->words))
		return -ENOMEM;
	rs->slots_mr = ibv_reg_mr(pd, room->slots, shared_bytes(room), remote);
	rs->in_mr = ibv_reg_mr(pd, ring, room->ring.length, remote);
	rs->out_mr = ibv_reg_mr(pd, rs->out, room->out_size, 0);
	if (!rs->slots_mr || !rs->in_mr || !rs->out_mr)
		return -errno;
	if (room->by_send)
		rs->words_mr = ibv_reg_mr(pd, rs->words, words_bytes(rs),
					  IBV_ACCESS_LOCAL_WRITE);
	if (room->by_send && !rs->words_mr)
		return -errno;
	room->slots_key = rs->slots_mr->rkey;
	room->ring.key = rs->in_mr->rkey;
	return 0;
}

int rs_qp_open(struct rs_sock *rs)
{
	int rc;

	rs->room.by_send =
		rs->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	rs->receives = rs->wishes.receives + (rs->room.by_send ? SPARE : 0);
	rs->next_receive = 0;
	rc = rs_qp_open_queues(rs);
	if (rc == 0)
		rc = rs_qp_open_memory(rs);
	if (rc == 0)
		rc = post_receives(rs, rs->receives);
	if (rc)
		return rc;
	rs_stream_init(&rs->stream, &rs->room);
	return 0;
}

static void dereg(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

void rs_qp_close(struct rs_sock *rs)
{
	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	rs_iomaps_forget(rs);
	dereg(&rs->slots_mr);
	dereg(&rs->in_mr);
	dereg(&rs->out_mr);
	dereg(&rs->words_mr);
	rs_qp_unmap(rs->room.slots, shared_bytes(&rs->room));
	rs_qp_unmap((void *)(uintptr_t)rs->room.ring.addr,
		    rs->room.ring.length);
	rs_qp_unmap(rs->out, rs->room.out_size);
	rs_qp_unmap(rs->words, words_bytes(rs));
	rs->out = NULL;
	rs->words = NULL;
	rs->room = (struct rs_room){};
	rs_queue_close(&rs->queue);
}

/* Over iWARP: posts the WRITE, unless @count is 0, and then the message as a
 * SEND. */
static int post_both(struct rs_sock *rs, const struct rs_write *w, uint64_t id,
		     struct ibv_sge *sge, int count, unsigned flags)
{
	uint32_t word = w->message;
	struct ibv_sge said = { (uintptr_t)&word, sizeof(word), 0 };
	struct ibv_send_wr send = {
		.wr_id = id,
		.sg_list = &said,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	struct ibv_send_wr write = {
		.wr_id = rs_qp_work_id(DONE_PLACED, 0),
		.next = &send,
		.sg_list = sge,
		.num_sge = count,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma = { .remote_addr = w->addr, .rkey = w->key },
	}, *bad;

	return ibv_post_send(rs->id->qp, count ? &write : &send, &bad) ? -EIO
								       : 0;
}

/* Posts a WRITE of the @count pieces with its message. 0 or -errno. */
static int post(struct rs_sock *rs, const struct rs_write *w, uint64_t id,
		struct ibv_sge *sge, int count, unsigned flags)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = sge,
		.num_sge = count,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = flags | IBV_SEND_SIGNALED,
		.imm_data = htobe32(w->message),
		.wr.rdma = { .remote_addr = w->addr, .rkey = w->key },
	}, *bad;

	if (rs->room.by_send)
		return post_both(rs, w, id, sge, count, flags);
	return ibv_post_send(rs->id->qp, &wr, &bad) ? -EIO : 0;
}

/* Copies @bytes to the out ring, wrapping at its end, and describes the copy in
 * @sge. Returns the number of used elements of @sge. */
static int rs_qp_keep(struct rs_sock *rs, const uint8_t *bytes, uint32_t length,
		      struct ibv_sge sge[2])
{
	uint32_t at = rs->stream.out_at;
	uint32_t first = VB_MIN(length, rs->room.out_size - at);

	memcpy(rs->out + at, bytes, first);
	memcpy(rs->out, bytes + first, length - first);
	sge[0] = (struct ibv_sge){ (uintptr_t)rs->out + at, first,
				   rs->out_mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)rs->out, length - first,
				   rs->out_mr->lkey };
	return first == length ? 1 : 2;
}

int rs_qp_send(struct rs_sock *rs, const void *bytes, uint32_t length)
{
	bool kept = length > rs->wishes.inline_bytes;
	struct ibv_sge sge[2] = { { (uintptr_t)bytes, length, 0 } };
	int count = kept ? rs_qp_keep(rs, bytes, length, sge) : 1;
	struct rs_write w = rs_stream_send(&rs->stream, length, kept);

	return post(rs, &w, rs_qp_work_id(DONE_WRITE, kept ? length : 0), sge,
		    count, kept ? 0 : IBV_SEND_INLINE);
}

/*
 * Makes the last byte of a riowrite() a separate piece. A program that receives
 * it may spin on that byte and then write its answer over it. When the kernel
 * copies the bytes, an interrupt makes some processors store the end of a short
 * copy a second time, which would overwrite the answer; a copy of a single byte
 * is not stored twice. Up to WORD bytes stay one piece, because programs expect
 * a word to arrive whole.
 */
static int cut_last(struct ibv_sge sge[PIECES], int count, uint32_t length)
{
	struct ibv_sge *end = &sge[count - 1];

	if (length <= WORD || end->length == 1)
		return count;
	end->length--;
	sge[count] = (struct ibv_sge){ end->addr + end->length, 1, end->lkey };
	return count + 1;
}

/* Does riowrite() by a plain WRITE, which has no message and consumes no credit
 * of the peer. */
int rs_qp_place(struct rs_sock *rs, const void *bytes, uint32_t length,
		uint64_t addr, uint32_t key)
{
	struct rs_stream *s = &rs->stream;
	struct ibv_sge sge[PIECES];
	int count = rs_qp_keep(rs, bytes, length, sge);
	struct ibv_send_wr wr = {
		.wr_id = rs_qp_work_id(DONE_WRITE, length),
		.sg_list = sge,
		.num_sge = cut_last(sge, count, length),
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	}, *bad;

	s->sends++;
	s->out_at = (s->out_at + length) % s->out_size;
	s->out_used += length;
	return ibv_post_send(rs->id->qp, &wr, &bad) ? -EIO : 0;
}

int rs_qp_control(struct rs_sock *rs, enum rs_control what)
{
	struct rs_write w = { .message = rs_message(RS_CONTROL, what) };

	rs->stream.controls++;
	return post(rs, &w, rs_qp_work_id(DONE_CONTROL, 0), NULL, 0, 0);
}

/*
 * Makes the peer show that it lives. Over iWARP, the completion of a SEND does
 * not show this; the completion of a READ does, even of no bytes. A client of
 * rdma-core grants no READs: then an empty WRITE makes TCP send a segment, and
 * TCP notices if the peer is gone.
 */
int rs_qp_probe(struct rs_sock *rs)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr = { .wr_id = rs_qp_work_id(DONE_PROBE, 0),
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (!rs->room.by_send)
		return rs_qp_control(rs, RS_KEEPALIVE);
	if (ibv_query_qp(rs->id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init))
		return -EIO;
	if (attr.max_rd_atomic == 0)
		wr.opcode = IBV_WR_RDMA_WRITE;
	rs->stream.controls++;
	return ibv_post_send(rs->id->qp, &wr, &bad) ? -EIO : 0;
}

int rs_qp_iomap(struct rs_sock *rs, unsigned i, const struct rs_iomap *entry)
{
	struct ibv_sge sge = { (uintptr_t)entry, sizeof(*entry), 0 };
	struct rs_write w = rs_stream_send_iomap(&rs->stream, i);

	return post(rs, &w, rs_qp_work_id(DONE_WRITE, 0), &sge, 1,
		    IBV_SEND_INLINE);
}

/* Ends the connection, because both directions are closed. */
static void peer_left(struct rs_sock *rs)
{
	rs->reads = rs->writes = false;
	rs->state = RS_GONE;
}

static void control_arrived(struct rs_sock *rs, uint32_t what)
{
	if (what == RS_DISCONNECT || (what == RS_SHUTDOWN && !rs->writes))
		peer_left(rs);
	else if (what == RS_SHUTDOWN)
		rs->reads = false;
}

/* Reads the message of a completed receive into *@message. False: the receive
 * has none. */
static bool read_message(const struct rs_sock *rs, const struct ibv_wc *wc,
			 uint32_t *message)
{
	if (!rs->room.by_send) {
		*message = be32toh(wc->imm_data);
		return wc->wc_flags & IBV_WC_WITH_IMM;
	}
	*message = rs->words[(uint32_t)wc->wr_id];
	if (rs->stream.swap)
		*message = __builtin_bswap32(*message);
	return wc->opcode == IBV_WC_RECV && wc->byte_len == sizeof(*message);
}

static int received(struct rs_sock *rs, const struct ibv_wc *wc)
{
	uint32_t message;

	if (!read_message(rs, wc, &message))
		return -EPROTO;
	if (rs_message_kind(message) == RS_CONTROL)
		control_arrived(rs, rs_message_value(message));
	return rs_stream_arrived(&rs->stream, message, wc->byte_len);
}

/* Records that the peer has shown life. Reads the clock only if keepalive.c has
 * started to watch the socket. */
static void note_heard(struct rs_sock *rs)
{
	if (rs->heard == 0)
		return;
	rs->heard = vb_clock_read();
	rs->probes = 0;
}

/* Handles one completion. Ignores a flushed receive: the failed send or the
 * disconnect that flushed it is reported separately. 0; -errno: the connection
 * failed. */
static int completed(struct rs_sock *rs, const struct ibv_wc *wc,
		     unsigned *receives)
{
	unsigned what = wc->wr_id >> 32;

	if (what == DONE_RECEIVE) {
		if (wc->status != IBV_WC_SUCCESS)
			return 0;
		++*receives;
		note_heard(rs);
		return received(rs, wc);
	}
	if (wc->status == IBV_WC_SUCCESS &&
	    (what == DONE_PROBE || !rs->room.by_send))
		note_heard(rs);
	if (what == DONE_CONTROL || what == DONE_PROBE)
		rs->stream.controls--;
	else if (what == DONE_WRITE)
		rs_stream_sent(&rs->stream, (uint32_t)wc->wr_id);
	if (wc->status == IBV_WC_RETRY_EXC_ERR)
		return -ETIMEDOUT;
	return wc->status == IBV_WC_SUCCESS ? 0 : -EIO;
}

/* Handles all completions and posts the receives again. 0 or -errno. */
static int drain(struct rs_sock *rs)
{
	struct ibv_wc wc[AT_ONCE];
	unsigned receives = 0;
	int n, rc = 0;

	do {
		n = ibv_poll_cq(rs->queue.cq, AT_ONCE, wc);
		for (int i = 0; i < n && rc == 0; i++)
			rc = completed(rs, &wc[i], &receives);
	} while (n == AT_ONCE && rc == 0);
	if (rc == 0 && rs->state == RS_CONNECTED)
		rc = post_receives(rs, receives);
	return rc;
}

/* Tells the peer of credits and free half rings. 0 or -errno. */
static int give(struct rs_sock *rs)
{
	struct rs_area area;
	struct rs_write w;
	struct ibv_sge sge = { (uintptr_t)&area, sizeof(area), 0 };
	int rc = 0;

	while (rc == 0 && rs_stream_give(&rs->stream, &area, &w)) {
		bool place = area.length != 0;

		rc = post(rs, &w, rs_qp_work_id(DONE_CONTROL, 0),
			  place ? &sge : NULL, place,
			  place ? IBV_SEND_INLINE : 0);
	}
	return rc;
}

void rs_qp_work(struct rs_sock *rs)
{
	int rc;

	if (!rs->queue.cq || rs->state < RS_CONNECTED)
		return;
	rc = drain(rs);
	if (rc == 0 && rs->state == RS_CONNECTED)
		rc = give(rs);
	if (rc && rs->state == RS_CONNECTED)
		rs_connection_end(rs, -rc);
}

bool rs_qp_arm(struct rs_sock *rs)
{
	return rs->dgram ? rs_dgram_arm(rs->dgram) : rs_queue_arm(&rs->queue);
}

/* Arms the queue again. The event that woke this thread disarmed the queue, but
 * other waiters of the socket depend on the next event. The caller looks for
 * completions afterwards. */
void rs_qp_woken(struct rs_sock *rs)
{
	bool came = rs->dgram ? rs_dgram_woken(rs->dgram)
			      : rs_queue_woken(&rs->queue);

	if (came && rs->waiters)
		(void)rs_qp_arm(rs);
}
