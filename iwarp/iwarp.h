/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP behind core's seam: RDMAP, DDP and MPA over a stream of bytes that
 * somebody else has (RFC 5040, 5041, 5044, 7306). No I/O, no clock: bytes come
 * in, bytes go out, time is told. All is called with qp->drive held, and
 * between a call and the one that ends it drive is kept.
 *
 *	vb_iw_start()
 *	loop:	vb_iw_want()  -> readv() -> vb_iw_got()
 *		vb_iw_send()  -> sendmsg() -> vb_iw_sent()
 *	until vb_iw_wants_close(), after vb_iw_send() has no more.
 *
 * A queue pair that is in ERR goes on being served like that: it may have a
 * Terminate to send, and what the peer still sends is read and thrown away, so
 * that closing does not reset the connection before the peer has read it.
 */
#ifndef IWARP_IWARP_H
#define IWARP_IWARP_H

#include <sys/uio.h>

#include "core/mr.h"
#include "core/transport.h"
#include "iwarp/setup.h"

/* The seam; its recv() and send() are for packets and do nothing. */
extern const struct vb_transport_ops vb_iwarp_transport;

/*
 * From INIT (RTR, RTS) to RTS, on a new stream. max_rd_atomic and
 * max_dest_rd_atomic become what @terms say. -EINVAL: another state, or it has
 * been started; -ENOMEM.
 */
VB_MUST_CHECK int vb_iw_start(struct vb_qp *qp,
			      const struct vb_mpa_terms *terms, vb_time now);
bool vb_iw_is_started(const struct vb_qp *qp);

/*
 * With terms.near: cards go first, and while qp->way is not WAY_PACKETS,
 * requests do not come this way: they have another, or will. Everything else
 * that a stream is for stays: how it begins, ends, and what the peer asks for.
 */
void vb_iw_show_card(struct vb_qp *qp, const struct vb_rdmap_card *card);
/* Requests went another way until now, and none of them is under way: the
 * stream has those that are not done. */
void vb_iw_take_over(struct vb_qp *qp);
/* True: the peer's has come. */
bool vb_iw_has_card(const struct vb_qp *qp, struct vb_rdmap_card *card);
/* There is nothing to vb_iw_send(). */
bool vb_iw_is_quiet(const struct vb_qp *qp, vb_time now);

/* The connection's MSS is another now. */
void vb_iw_set_mss(struct vb_qp *qp, uint32_t mss);
/* May the program be told that the connection stands? The initiator's does at
 * once, the responder's with the first FPDU when it is peer-to-peer. */
bool vb_iw_is_established(const struct vb_qp *qp);

/*
 * Bytes out. The batch is its caller's, one a thread; nothing stays in it
 * between vb_iw_sent() and the next vb_iw_send().
 */
#define VB_IW_TX_IOV   512
#define VB_IW_TX_FPDUS 256
/* A batch begins no FPDU behind them: few enough to stay in the processor's
 * nearest caches until the socket has copied them, as what is received. */
#define VB_IW_TX_BYTES (64u << 10)
#define VB_IW_FPDU_MAX (65536 + 1024)

/* Where a sender stands between two FPDUs: what is not taken by the socket is
 * made again from here. */
struct vb_iw_cursor {
	uint32_t cur;	 /* send queue index: the next to go on with */
	uint32_t offset; /* of its message, bytes sent */
	uint32_t send_msn, ask_msn, atomic_msn; /* the next: queues 0, 1, 3 */
	uint32_t asked;	 /* requests that were asked for, free-running */
	uint32_t answer; /* the next to go on with, free-running */
	uint32_t answer_offset;
	uint16_t marker; /* bytes since the last marker began; 0: one is due */
	uint8_t stage;	 /* of what is sent: enum in iwarp/stream.h */
	bool carded;	 /* our card is behind us */
	bool answered;	 /* last: a request's turn comes before an answer's */
};

struct vb_iw_mark {
	size_t end; /* bytes of the batch before and with this FPDU */
	struct vb_iw_cursor after;
};

struct vb_iw_txq {
	/* For the caller: one sendmsg(). */
	unsigned count;
	size_t bytes;
	struct iovec iov[VB_IW_TX_IOV];
	/* the room's */
	unsigned marks, held;
	uint32_t used;
	uint32_t most; /* bytes to stop at */
	uint32_t lead; /* bytes of an FPDU whose beginning left before */
	struct vb_iw_cursor before;
	struct vb_iw_mark mark[VB_IW_TX_FPDUS];
	struct vb_mr_use use[VB_IW_TX_IOV];
	uint8_t room[VB_IW_TX_BYTES + VB_IW_FPDU_MAX];
};

/* Fill @out with what may go out now: out->count 0: nothing. True: there is
 * more behind it. */
bool vb_iw_send(struct vb_qp *qp, vb_time now, struct vb_iw_txq *out);
/* The socket took so many of them, any number; the rest is sent again in the
 * next vb_iw_send(). Makes completions. Always after vb_iw_send(). True: there
 * is more, a Terminate, whatever that said. */
bool vb_iw_sent(struct vb_qp *qp, struct vb_iw_txq *out, size_t bytes,
		vb_time now);
/* The same when sendmsg() said EFAULT (0 bytes taken): the program's memory is
 * not there. The next batch is copied, and finds out where. */
void vb_iw_send_fault(struct vb_qp *qp, struct vb_iw_txq *out, vb_time now);

/*
 * Bytes in. The buffer is its caller's, too; between vb_iw_got() and the next
 * vb_iw_want() nothing stays in it.
 */
#define VB_IW_RX_IOV   4
#define VB_IW_RX_BYTES (128u << 10)

struct vb_iw_rxq {
	/* the room's */
	uint32_t carried; /* bytes at its beginning that came before */
	uint8_t room[VB_IW_RX_BYTES + VB_IW_FPDU_MAX];
};

/* Where the next bytes go: an iovec for one readv(), at least 128 KiB. Returns
 * its entries. */
unsigned vb_iw_want(struct vb_qp *qp, struct vb_iw_rxq *in,
		    struct iovec iov[VB_IW_RX_IOV]);
/* So many came, any number. Makes completions; what is to be sent now,
 * vb_iw_send() says. Always after vb_iw_want(). */
void vb_iw_got(struct vb_qp *qp, struct vb_iw_rxq *in, size_t bytes,
	       vb_time now);
/* Instead of vb_iw_got(): readv() said EFAULT. */
void vb_iw_recv_fault(struct vb_qp *qp, struct vb_iw_rxq *in, vb_time now);
/* Both, for who has the bytes already. */
void vb_iw_recv(struct vb_qp *qp, struct vb_iw_rxq *in, const void *bytes,
		size_t len, vb_time now);

/* The peer's FIN; and: the stream is gone (reset, timed out). */
void vb_iw_eof(struct vb_qp *qp, vb_time now);
void vb_iw_lost(struct vb_qp *qp, vb_time now);
/* No more is to be sent: shut the stream down (FIN), and close it once the
 * peer has, too, or after a while. */
bool vb_iw_wants_close(const struct vb_qp *qp);
/* The engine has closed it: nothing is called for it any more until the queue
 * pair was reset and started again. */
void vb_iw_closed(struct vb_qp *qp, vb_time now);

#endif
