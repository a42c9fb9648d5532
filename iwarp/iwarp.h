/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP behind core/transport.h: RDMAP, DDP and MPA (RFC 5040, 5041, 5044,
 * 7306) over a TCP connection that the engine owns. This room does no I/O and
 * reads no clock: the engine passes in bytes and the time. The caller of each
 * function holds qp->drive, and keeps it from vb_iw_want() to vb_iw_got() and
 * from vb_iw_send() to vb_iw_sent().
 *
 * 	vb_iw_start()
 * 	loop:	vb_iw_want()  -> readv() -> vb_iw_got()
 * 		vb_iw_send()  -> sendmsg() -> vb_iw_sent()
 * 	until vb_iw_wants_close(), after vb_iw_send() has no more.
 *
 * A queue pair in ERR is served in this way as well: it may have a Terminate to
 * send, and what the peer still sends is read and dropped, so that closing does
 * not reset the connection before the peer has read the Terminate.
 */
#ifndef IWARP_IWARP_H
#define IWARP_IWARP_H

#include <sys/uio.h>

#include "core/mr.h"
#include "core/transport.h"
#include "iwarp/setup.h"

/* The transport of iWARP queue pairs. A stream has no packets: recv() drops
 * what a RoCE peer sends to this queue pair's number, and send() only flushes
 * work requests in ERR. */
extern const struct vb_transport vb_iwarp_transport;
extern const struct vb_transport_ops vb_iwarp_ops;
/* The functions of vb_iwarp_ops (core/transport.h). */
void vb_iw_recv_packet(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		       vb_time now) VB_REQUIRES(qp->drive);
bool vb_iw_send_packets(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);
bool vb_iw_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
vb_time vb_iw_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Move the queue pair from INIT, RTR or RTS to RTS on a new connection. The
 * depths in @terms become its max_rd_atomic and max_dest_rd_atomic. 0; -EINVAL:
 * the queue pair is in another state, or was started already. */
VB_MUST_CHECK int vb_iw_start(struct vb_qp *qp,
			      const struct vb_mpa_terms *terms, vb_time now)
	VB_REQUIRES(qp->drive);
/* Was vb_iw_start() called since the last RESET? */
bool vb_iw_is_started(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* With terms.near both sides first exchange cards, which identify their
 * processes; this function gives the stream the card to send. While qp->way is
 * not WAY_PACKETS, this side's requests go by shared memory. The stream still
 * has its beginning, its end, and requests of the peer. */
void vb_iw_show_card(struct vb_qp *qp, const struct vb_rdmap_card *card)
	VB_REQUIRES(qp->drive);
/* From now on the stream transports the requests, beginning with the oldest one
 * that is not complete. Until now they went by shared memory, where no request
 * is in progress any more. */
void vb_iw_take_over(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Copy out the card that the peer has sent. False: the peer has sent none
 * yet. */
bool vb_iw_has_card(const struct vb_qp *qp, struct vb_rdmap_card *card)
	VB_REQUIRES(qp->drive);
/* Has vb_iw_send() nothing to send, while requests go by shared memory? */
bool vb_iw_is_idle(const struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

/* The MSS of the TCP connection has changed to @mss bytes. */
void vb_iw_set_mss(struct vb_qp *qp, uint32_t mss) VB_REQUIRES(qp->drive);
/* Is the connection established, so that the program can be told? The
 * initiator's is established at once; the responder's, in peer-to-peer mode,
 * when the first FPDU has come (RFC 6581). */
bool vb_iw_is_established(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Definitions for sending. The caller owns the batch, one for each thread;
 * between vb_iw_sent() and the next vb_iw_send() the batch is empty. */
#define VB_IW_TX_IOV   512
#define VB_IW_TX_FPDUS 256
/* After this many bytes a batch begins no further FPDU, so that its bytes are
 * still in the processor's caches when the socket copies them. */
#define VB_IW_TX_BYTES (64u << 10)
#define VB_IW_FPDU_MAX (65536 + 1024)

/* The position of the sender between two FPDUs. If the socket did not accept
 * all bytes, the sender builds the rest again from here. */
struct vb_iw_cursor {
	uint32_t cur;	 /* send queue index of the current WQE */
	uint32_t offset; /* bytes of the current WQE's message that were sent */
	/* next message numbers (MSN) of queues 0, 1 and 3 */
	uint32_t send_msn, ask_msn, atomic_msn;
	/* free-running number of READs and atomics sent so far */
	uint32_t asked;
	uint32_t answer; /* free-running number of the current response */
	uint32_t answer_offset;
	/* bytes since the last marker began; 0: a marker is due now */
	uint16_t marker;
	uint8_t stage; /* the unfinished item, an enum vb_iw_stage */
	/* this side has sent its card, by which the two queue pairs of one host
	 * find each other */
	bool carded;
	/* the last FPDU was a response, so a request is sent next */
	bool answered;
};

struct vb_iw_mark {
	size_t end; /* bytes of the batch up to the end of this FPDU */
	struct vb_iw_cursor after;
};

struct vb_iw_txq {
	/* The fields below are for the caller: the arguments of sendmsg(). */
	unsigned count;
	size_t bytes;
	struct iovec iov[VB_IW_TX_IOV];
	/* The fields below are for iwarp/ only. */
	unsigned marks, held;
	uint32_t used;
	/* when @bytes has reached this number, no further FPDU begins */
	uint32_t most;
	/* bytes at the batch's start: the rest of an FPDU sent in part */
	uint32_t lead;
	struct vb_iw_cursor before;
	struct vb_iw_mark mark[VB_IW_TX_FPDUS];
	struct vb_mr_use use[VB_IW_TX_IOV];
	uint8_t room[VB_IW_TX_BYTES + VB_IW_FPDU_MAX];
};

/* Fill @out with the bytes that may be sent now; out->count is 0 if there are
 * none. True: more bytes follow. */
bool vb_iw_send(struct vb_qp *qp, vb_time now, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* The socket has accepted @bytes bytes, perhaps not all; the next vb_iw_send()
 * builds the rest. Makes completions. The caller calls this after each
 * vb_iw_send(). True: this side must send a Terminate, so call vb_iw_send()
 * again. */
bool vb_iw_sent(struct vb_qp *qp, struct vb_iw_txq *out, size_t bytes,
		vb_time now) VB_REQUIRES(qp->drive);
/* Call this instead of vb_iw_sent() if sendmsg() failed with EFAULT, because
 * memory of the program is missing. The next vb_iw_send() copies the payloads,
 * and so finds the WQE at fault. */
void vb_iw_send_fault(struct vb_qp *qp, struct vb_iw_txq *out, vb_time now)
	VB_REQUIRES(qp->drive);

/* Definitions for receiving. The caller owns the buffer, one for each thread;
 * between vb_iw_got() and the next vb_iw_want() the buffer is empty. */
#define VB_IW_RX_IOV   4
#define VB_IW_RX_BYTES (128u << 10)

struct vb_iw_rxq {
	/* The fields below are for iwarp/ only. */

	/* bytes of an incomplete FPDU at the start of @room */
	uint32_t carried;
	uint8_t room[VB_IW_RX_BYTES + VB_IW_FPDU_MAX];
};

/* Fill in @iov for one readv() of at least 128 KiB. Returns the number of used
 * entries of @iov. */
unsigned vb_iw_want(struct vb_qp *qp, struct vb_iw_rxq *in,
		    struct iovec iov[VB_IW_RX_IOV]) VB_REQUIRES(qp->drive);
/* readv() has returned @bytes bytes, any number. Makes completions; then
 * vb_iw_send() may have something to send. The caller calls this after each
 * vb_iw_want(). */
void vb_iw_got(struct vb_qp *qp, struct vb_iw_rxq *in, size_t bytes,
	       vb_time now) VB_REQUIRES(qp->drive);
/* Call this instead of vb_iw_got() if readv() failed with EFAULT. */
void vb_iw_recv_fault(struct vb_qp *qp, struct vb_iw_rxq *in, vb_time now)
	VB_REQUIRES(qp->drive);

/* vb_iw_eof(): the peer has sent a FIN. vb_iw_lost(): the connection is gone
 * (reset, timed out). */
void vb_iw_eof(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
void vb_iw_lost(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Has this side nothing more to send? Then the engine shuts the connection down
 * (FIN), and closes it when the peer has shut it down as well, or after a
 * while. */
bool vb_iw_wants_close(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The engine has closed the connection. It makes no further call for @qp until
 * the queue pair has been reset and started again. */
void vb_iw_closed(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

#endif
