/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of transports: a state machine without I/O, which is given packets
 * and the time and fills batches. It reads no clock, socket or random source,
 * so that a simulation can replay it. Every function but settle() is called
 * with qp->drive held. */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

#include "core/qp.h"
#include "core/tag.h"
#include "core/xrc.h"
#include "link/link.h"
#include "wire/ib_hdr.h"

/* Of an adapter: the life of its queue pairs. */
struct vb_transport {
	const char *name;

	/* Allocate, or free, the protocol state of a queue pair
	 * (PRIV_TRANSPORT). attach() also sets qp->ops to the functions for
	 * the queue pair's type. 0 or -errno; -EOPNOTSUPP: no such type. */
	int (*attach)(struct vb_qp *qp);
	void (*detach)(struct vb_qp *qp);

	/* The queue pair has entered state @to, its attributes are set: reset
	 * or start accordingly. A move to RESET forgets everything. */
	void (*enter)(struct vb_qp *qp, enum vb_qp_state from,
		      enum vb_qp_state to, vb_time now);

	/* Optional. A queue pair with table index @index has entered RESET or
	 * ERR, or was detached: return when no peer's access through it is in
	 * progress. The caller does not hold drive. */
	void (*settle)(struct vb_adapter *a, uint32_t index);
};

enum vb_delayed_ack { ACK_NONE, ACK_NOW, ACK_DELAYED };

/* What a queue pair does with packets and requests (qp->ops). Each type has one
 * table; the engine has others for queue pairs whose peer is on this host, so
 * that a call goes straight to the function that does the work. */
struct vb_transport_ops {
	const char *name;

	/* A packet has arrived, a request at [false], a response at [true];
	 * @pkt is borrowed until return. The dispatcher has checked class,
	 * state, addresses and P_Key. Makes completions and records what to
	 * answer; sends nothing. Call vb_transport_recv(). */
	void (*recv[2])(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now);

	/* Put what may be sent now into @out while it has room: responses,
	 * requests, retransmissions. Acts on expired deadlines. True: more is
	 * to be sent, call again with an empty batch. Call
	 * vb_transport_send(). */
	bool (*send)(struct vb_qp *qp, vb_time now, struct vb_txq *out);

	/* Optional. Work was posted while a timer is queued: carry it out if
	 * that needs no look at the clock. False: nothing was done. */
	bool (*quick)(struct vb_qp *qp);
	/* Optional (NULL: never). Work was posted or packets were received.
	 * True: send() need not be called yet, since responses will arrive
	 * soon and what is posted until then can leave in one batch. The
	 * deadline of the last send() still holds. */
	bool (*can_wait)(const struct vb_qp *qp);

	/*
	 * Optional (NULL: never delays). Packets were received for a program
	 * that polls (@polls) or may spin on its memory. ACK_NONE: more than an
	 * acknowledgement is due, or nothing. ACK_NOW, ACK_DELAYED: only an
	 * acknowledgement is due, and the caller calls unreplied() when further
	 * packets arrive, or time passes, before the program posts.
	 * ACK_DELAYED: the program has replied promptly so far, so send() may
	 * wait for its reply.
	 */
	enum vb_delayed_ack (*delayed_ack)(struct vb_qp *qp, bool polls);
	/* Optional. The program has not replied. True: the acknowledgement is
	 * still due. */
	bool (*unreplied)(struct vb_qp *qp);

	/* When send() must be called if nothing arrives; VB_NEVER: never. Call
	 * vb_transport_deadline(). */
	vb_time (*deadline)(const struct vb_qp *qp);

	/* Optional. Called when can_wait() is true: it stays true for short
	 * work requests up to this send queue index, until the next recv(),
	 * send() or change of state. */
	uint32_t (*waits_until)(const struct vb_qp *qp);
};

/* What the caller of the seam calls; completions carry @now. */

static inline void vb_transport_recv(struct vb_qp *qp,
				     const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	qp->now = now;
	qp->ops->recv[pkt->op->response](qp, pkt, now);
}

static inline bool vb_transport_send(struct vb_qp *qp, vb_time now,
				     struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	qp->now = now;
	return qp->ops->send(qp, now, out);
}

static inline bool vb_transport_can_wait(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return qp->ops->can_wait && qp->ops->can_wait(qp);
}

/* Also when a work request on a window is to be tried again. */
static inline vb_time vb_transport_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return VB_MIN(qp->local_at, qp->ops->deadline(qp));
}

#endif
