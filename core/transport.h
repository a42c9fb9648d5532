/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport seam. A transport is a state machine without I/O: it is
 * handed frames and the time, and fills batches. It reads no clock, no
 * socket, no random source. Every function but settle() is called with
 * qp->drive held.
 */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

#include "core/qp.h"
#include "link/link.h"

enum vb_delayed_ack { ACK_NONE, ACK_NOW, ACK_DELAYED };

struct vb_transport_ops {
	const char *name;

	/* Protocol state for a new queue pair (qp->tp). -errno. */
	int (*attach)(struct vb_qp *qp);
	void (*detach)(struct vb_qp *qp);

	/* It has just entered @to (attributes are set): reset or start what
	 * that means. From any state to RESET forgets everything. */
	void (*enter)(struct vb_qp *qp, enum vb_qp_state from,
		      enum vb_qp_state to, vb_time now);

	/*
	 * One arrived packet, parsed; borrowed until return. Class, state,
	 * addresses and P_Key have been checked by the dispatcher. Makes
	 * completions and notes what to answer; sends nothing.
	 */
	void (*recv)(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		     vb_time now);
	/*
	 * NULL, or: a queue pair that had @index has entered RESET or ERR, or
	 * was detached. Returns when no peer accesses memory by way of it any
	 * more. Called without drive.
	 */
	void (*settle)(struct vb_adapter *a, uint32_t index);

	/*
	 * Put what may be sent now into @out while it has room: answers,
	 * requests, repeats. True: there is more, call again with an empty
	 * batch. Handles deadlines that have come.
	 */
	bool (*send)(struct vb_qp *qp, vb_time now, struct vb_txq *out);

	/* NULL, or: after work was posted, while a timer is queued; do it, if
	 * that takes no look at the time. False: nothing was done. */
	bool (*quick)(struct vb_qp *qp);
	/*
	 * After work was posted, or packets were received. True: send() need
	 * not be called yet, since answers to what is under way will soon
	 * come, and what is posted until then can leave in the same batch. An
	 * earlier send() has said when it must be called anyway.
	 */
	bool (*can_wait)(const struct vb_qp *qp);

	/*
	 * Packets were received, by a program that @polls or for one that may
	 * spin on its memory. Other than ACK_NONE: nothing is due but an
	 * acknowledgement, and unreplied() is to tell when more is received,
	 * or time has passed, without the program having posted. ACK_DELAYED:
	 * it has replied each time lately, so send() may wait for that. NULL:
	 * never.
	 */
	enum vb_delayed_ack (*delayed_ack)(struct vb_qp *qp, bool polls);
	/* True: the acknowledgement is still due. */
	bool (*unreplied)(struct vb_qp *qp);

	/* When send() must be called though nothing arrives; VB_NEVER. */
	vb_time (*deadline)(const struct vb_qp *qp);

	/*
	 * NULL, or, when can_wait() is true: it will be for short work requests
	 * up to this index of the send queue as well, until the next recv() or
	 * send(), or state.
	 */
	uint32_t (*waits_until)(const struct vb_qp *qp);
};

#endif
