/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of transports. A transport is a state machine without I/O: the
 * caller gives it packets and the time, and it fills batches. It reads no
 * clock, socket or random source, so that a simulation can replay it. The
 * caller holds qp->drive for every function but settle(). */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

#include "core/qp.h"
#include "core/tag.h"
#include "core/xrc.h"
#include "link/link.h"
#include "wire/ib_hdr.h"

/* The functions of a transport that run when queue pairs of an adapter begin,
 * change state and end. */
struct vb_transport {
	const char *name;

	/* Allocate, or free, the protocol state of a queue pair
	 * (PRIV_TRANSPORT). attach() also sets qp->ops to the functions for
	 * the queue pair's type. 0 or -errno; -EOPNOTSUPP: no such type. */
	int (*attach)(struct vb_qp *qp);
	void (*detach)(struct vb_qp *qp);

	/* The queue pair has moved to state @to and its attributes are set:
	 * reset or start the protocol state. A move to RESET clears all of
	 * it. */
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

	/* A packet has arrived; a request goes to [false], a response to
	 * [true]. @pkt is valid until the return. The dispatcher has checked
	 * class, state, addresses and P_Key. The function makes completions and
	 * records what to answer, but sends nothing. Callers use
	 * vb_transport_recv(). */
	void (*recv[2])(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now);

	/* Optional. Several packets come in a row: called before the first
	 * (@begins) and after the last. In between the transport may keep an
	 * access to memory open (vb_mr_begin_next()). */
	void (*run)(struct vb_qp *qp, bool begins);

	/* Put into @out, while it has room, the packets that may be sent now:
	 * responses, requests, retransmissions. Acts on expired deadlines.
	 * True: more packets may be sent, so the caller calls again with an
	 * empty batch. Callers use vb_transport_send(). */
	bool (*send)(struct vb_qp *qp, vb_time now, struct vb_txq *out);

	/* Optional. The program has posted work while a timer runs: carry the
	 * work out if that needs no clock. False: the function did nothing. */
	bool (*quick)(struct vb_qp *qp);
	/* Optional (NULL: never). The program has posted work, or packets have
	 * come. True: the caller need not call send() yet, since responses will
	 * come soon, and what is posted until then can leave in one batch. The
	 * deadline of the last send() still holds. */
	bool (*can_wait)(const struct vb_qp *qp);

	/*
	 * Optional (NULL: never delays). Packets came for a program that polls
	 * (@polls) or may spin on its memory. ACK_NONE: nothing is due, or more
	 * than an acknowledgement. ACK_NOW, ACK_DELAYED: only an
	 * acknowledgement is due; if further packets come, or time passes,
	 * before the program posts, the caller calls unreplied(). ACK_DELAYED:
	 * the program has replied promptly so far, so the caller may wait for
	 * its reply before it calls send().
	 */
	enum vb_delayed_ack (*delayed_ack)(struct vb_qp *qp, bool polls);
	/* Optional. Called when the program has not replied in time to the
	 * packets for which delayed_ack() returned ACK_NOW or ACK_DELAYED.
	 * True: the acknowledgement is still due. */
	bool (*unreplied)(struct vb_qp *qp);

	/* Optional. Are there posted requests of which send() has not put a
	 * packet yet? */
	bool (*has_unsent)(const struct vb_qp *qp);
	/* Optional, both or neither. From widen() to narrow() send() puts at
	 * least @least packets, though the congestion window may be smaller.
	 * @before: what widen() has returned. */
	uint32_t (*widen)(struct vb_qp *qp, uint32_t least);
	void (*narrow)(struct vb_qp *qp, uint32_t before);

	/* Returns the time at which the caller must call send() even if no
	 * packet arrives; VB_NEVER: no such time. Callers use
	 * vb_transport_deadline(). */
	vb_time (*deadline)(const struct vb_qp *qp);

	/* Optional, called only while can_wait() is true. Returns the send
	 * queue index up to which short work requests leave can_wait() true,
	 * until the next recv(), send() or change of state. */
	uint32_t (*waits_until)(const struct vb_qp *qp);
};

/* The engine calls these functions instead of the table's. They advance the
 * queue pair's time, which completions carry. */

static inline void vb_transport_recv(struct vb_qp *qp,
				     const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	now = vb_qp_advance(qp, now);
	qp->ops->recv[pkt->op->response](qp, pkt, now);
}

static inline bool vb_transport_send(struct vb_qp *qp, vb_time now,
				     struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	return qp->ops->send(qp, vb_qp_advance(qp, now), out);
}

static inline bool vb_transport_can_wait(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return qp->ops->can_wait && qp->ops->can_wait(qp);
}

/* The deadline includes the time at which a work request on a window is tried
 * again. */
static inline vb_time vb_transport_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return VB_MIN(qp->local_at, qp->ops->deadline(qp));
}

#endif
