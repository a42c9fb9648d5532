/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP behind core/transport.h: RDMAP, DDP and MPA (RFC 5040, 5041, 5044,
 * 7306) over a TCP connection that the engine owns. No I/O and no clock: the
 * engine hands over bytes and the time. The caller of each function holds
 * qp->drive, and keeps it from want to got and from send to sent.
 *
 * 	vb_iw_start()
 * 	loop:	vb_iw_want()  -> readv() -> vb_iw_got()
 * 		vb_iw_send()  -> sendmsg() -> vb_iw_sent()
 * 	until vb_iw_wants_close(), after vb_iw_send() has no more.
 *
 * A queue pair in ERR is served in the same way: it may have a Terminate to
 * send, and what the peer still sends is read and dropped, so that closing does
 * not reset the connection before the peer has read the Terminate.
 */
#ifndef IWARP_IWARP_H
#define IWARP_IWARP_H

#include <sys/uio.h>

#include "core/mr.h"
#include "core/transport.h"
#include "iwarp/setup.h"

/* The transport. A stream has no packets: recv() drops what a RoCE peer sends
 * to this number, and send() only flushes. */
extern const struct vb_transport vb_iwarp_transport;
extern const struct vb_transport_ops vb_iwarp_ops;
/* Its functions (core/transport.h). */
void vb_iw_recv_packet(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		       vb_time now) VB_REQUIRES(qp->drive);
bool vb_iw_send_packets(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);
bool vb_iw_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
vb_time vb_iw_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Move from INIT, RTR or RTS to RTS on a new connection. max_rd_atomic and
 * max_dest_rd_atomic become those of @terms. 0; -EINVAL: another state, or
 * started already; -ENOMEM. */
VB_MUST_CHECK int vb_iw_start(struct vb_qp *qp,
			      const struct vb_mpa_terms *terms, vb_time now)
	VB_REQUIRES(qp->drive);
/* Was vb_iw_start() called since the last RESET? */
bool vb_iw_is_started(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* With terms.near both sides first exchange cards, which identify their
 * processes. While qp->way is not WAY_PACKETS, requests travel by shared memory
 * and not by the stream; everything else stays with the stream: its beginning,
 * its end, and requests of the peer. */
void vb_iw_show_card(struct vb_qp *qp, const struct vb_rdmap_card *card)
	VB_REQUIRES(qp->drive);
/* Requests travelled by shared memory until now, and none is in progress: the
 * stream carries those not done. */
void vb_iw_take_over(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Copy out the peer's card. False: it has not arrived. */
bool vb_iw_has_card(const struct vb_qp *qp, struct vb_rdmap_card *card)
	VB_REQUIRES(qp->drive);
/* Has vb_iw_send() nothing to send? */
bool vb_iw_is_quiet(const struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

/* The MSS of the TCP connection has changed to @mss bytes. */
void vb_iw_set_mss(struct vb_qp *qp, uint32_t mss) VB_REQUIRES(qp->drive);
/* May the program be told that the connection is established? The initiator's
 * at once; the responder's, in peer-to-peer mode, with the first FPDU (RFC
 * 6581). */
bool vb_iw_is_established(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Sending. The batch belongs to the caller, one per thread; it holds nothing
 * between vb_iw_sent() and the next vb_iw_send(). */
#define VB_IW_TX_IOV   512
#define VB_IW_TX_FPDUS 256
/* A batch begins no FPDU after this many bytes, so that they stay in the
 * processor's caches until the socket has copied them. */
#define VB_IW_TX_BYTES (64u << 10)
#define VB_IW_FPDU_MAX (65536 + 1024)

/* Where the sender stands between two FPDUs. What the socket did not take is
 * built again from here. */
struct vb_iw_cursor {
	uint32_t cur;	 /* send queue index of the current WQE */
	uint32_t offset; /* bytes of its message sent */
	uint32_t send_msn, ask_msn, atomic_msn; /* next MSN of queues 0, 1, 3 */
	uint32_t asked;	 /* READs and atomics sent, free-running */
	uint32_t answer; /* current response, free-running */
	uint32_t answer_offset;
	uint16_t marker; /* bytes since the last marker began; 0: one is due */
	uint8_t stage;	 /* enum vb_iw_stage */
	bool carded;	 /* our card was sent */
	bool answered;	 /* a response was sent last: a request comes next */
};

struct vb_iw_mark {
	size_t end; /* bytes of the batch up to the end of this FPDU */
	struct vb_iw_cursor after;
};

struct vb_iw_txq {
	/* For the caller: the arguments of one sendmsg(). */
	unsigned count;
	size_t bytes;
	struct iovec iov[VB_IW_TX_IOV];
	/* for iwarp/ only: */
	unsigned marks, held;
	uint32_t used;
	uint32_t most; /* bytes at which to stop */
	uint32_t lead; /* bytes of an FPDU whose beginning was sent before */
	struct vb_iw_cursor before;
	struct vb_iw_mark mark[VB_IW_TX_FPDUS];
	struct vb_mr_use use[VB_IW_TX_IOV];
	uint8_t room[VB_IW_TX_BYTES + VB_IW_FPDU_MAX];
};

/* Fill @out with what may be sent now; out->count is 0 if there is nothing.
 * True: more follows. */
bool vb_iw_send(struct vb_qp *qp, vb_time now, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* The socket took @bytes bytes, possibly not all; the rest is sent by the next
 * vb_iw_send(). Makes completions. Call it after each vb_iw_send(). True: a
 * Terminate is to be sent, whatever vb_iw_send() returned. */
bool vb_iw_sent(struct vb_qp *qp, struct vb_iw_txq *out, size_t bytes,
		vb_time now) VB_REQUIRES(qp->drive);
/* Instead of vb_iw_sent(): sendmsg() failed with EFAULT, because memory of the
 * program is missing. The next batch is copied, which finds the WQE at fault.
 */
void vb_iw_send_fault(struct vb_qp *qp, struct vb_iw_txq *out, vb_time now)
	VB_REQUIRES(qp->drive);

/* Receiving. The buffer belongs to the caller, one per thread; it holds nothing
 * between vb_iw_got() and the next vb_iw_want(). */
#define VB_IW_RX_IOV   4
#define VB_IW_RX_BYTES (128u << 10)

struct vb_iw_rxq {
	/* for iwarp/ only: */
	uint32_t carried; /* bytes at the start of room from the last time */
	uint8_t room[VB_IW_RX_BYTES + VB_IW_FPDU_MAX];
};

/* Fill in @iov for one readv() of at least 128 KiB. Returns the entries
 * used. */
unsigned vb_iw_want(struct vb_qp *qp, struct vb_iw_rxq *in,
		    struct iovec iov[VB_IW_RX_IOV]) VB_REQUIRES(qp->drive);
/* @bytes bytes have arrived, any number. Makes completions; vb_iw_send() says
 * what is to be sent. Call it after each vb_iw_want(). */
void vb_iw_got(struct vb_qp *qp, struct vb_iw_rxq *in, size_t bytes,
	       vb_time now) VB_REQUIRES(qp->drive);
/* Instead of vb_iw_got(): readv() failed with EFAULT. */
void vb_iw_recv_fault(struct vb_qp *qp, struct vb_iw_rxq *in, vb_time now)
	VB_REQUIRES(qp->drive);

/* The peer has sent a FIN; or, vb_iw_lost(), the connection is gone (reset,
 * timed out). */
void vb_iw_eof(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
void vb_iw_lost(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Nothing more is to be sent: the engine shuts the connection down (FIN), and
 * closes it when the peer has done so, too, or after a while. */
bool vb_iw_wants_close(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The engine has closed the connection. It makes no further call for @qp until
 * the queue pair was reset and started again. */
void vb_iw_closed(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

#endif
