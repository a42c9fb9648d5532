/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process has one engine. It joins links (frames) to transports (protocols),
 * owns the engine thread and the clock, and holds the slot of port 4791 that
 * the broker granted.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/clock.h"
#include "core/flow.h"
#include "engine/devices.h"

/*
 * Open a device. The first call of a process claims a slot and starts the
 * engine thread. All callers that open one device share its adapter, which
 * stays until the last of them calls vb_engine_close(). The caller owns @async;
 * the engine posts the port's events to it until the caller passes it to
 * vb_engine_close(). Returns 0, or -errno after logging the reason. May block:
 * the broker has to answer.
 */
VB_MUST_CHECK int vb_engine_open(const struct vb_device *device,
				 struct vb_async *async,
				 struct vb_adapter **adapter);
void vb_engine_close(struct vb_adapter *adapter, struct vb_async *async);

/*
 * Returns the number of forks between the process that loaded this library and
 * the calling one. Objects made before the last fork belong to the parent
 * process: its locks, threads and sockets do not exist here.
 */
unsigned vb_engine_forks(void);

/*
 * Start the work on @qp: a request was posted, or its state changed. The
 * calling thread sends what may be sent; if another thread drives the queue
 * pair now, that thread sends. The caller must not hold qp->drive.
 */
void vb_drive(struct vb_qp *qp) VB_EXCLUDES(qp->drive);
/* Like vb_drive(), after one post of at most VB_DEFER_BYTES: while the send
 * queue defers its doorbell (vb_sq_defer_doorbell()), the post is only
 * recorded, without qp->drive. */
void vb_drive_short(struct vb_qp *qp) VB_EXCLUDES(qp->drive);
/*
 * Call this before a memory region is deregistered: requests that this thread
 * posted lately, and that another thread was to send or that wait to be sent in
 * one batch, begin now as far as the protocol permits. Takes qp->drive of each
 * such queue pair; may wait 4 ms for a peer of this host to introduce itself.
 */
void vb_engine_begin_posted(void);

/* @qp is about to be destroyed: send its delayed ACK, wait up to 20 ms for a
 * batch that the kernel had no room for, and forget its timer and its stream.
 * Takes qp->drive. */
void vb_drive_forget(struct vb_qp *qp) VB_EXCLUDES(qp->drive);
/* Send the delayed ACK of @qp at once, without waiting for the program's next
 * reply. Takes qp->drive. */
void vb_drive_settle(struct vb_qp *qp) VB_EXCLUDES(qp->drive);

/*
 * Multicast, for UD (IBA 10.5). Attaching joins the group on the port's
 * interface (IGMP, MLD); on InfiniBand the program has joined it, and @mlid is
 * its LID. The port is the one that the queue pair has at that time. Attaching
 * a second time does nothing. -EINVAL: not UD, no multicast GID or LID, in
 * RESET on an adapter with several ports, or, when detaching, not attached;
 * otherwise the system's -errno. The caller detaches a queue pair from all
 * groups before destroying it.
 */
VB_MUST_CHECK int vb_engine_attach(struct vb_qp *qp, const struct vb_gid *gid,
				   uint16_t mlid) VB_EXCLUDES(qp->drive);
VB_MUST_CHECK int vb_engine_detach(struct vb_qp *qp, const struct vb_gid *gid,
				   uint16_t mlid) VB_EXCLUDES(qp->drive);
bool vb_engine_is_attached(struct vb_qp *qp) VB_EXCLUDES(qp->drive);

/*
 * Create or destroy a raw packet queue pair, which has a packet socket of its
 * own. Otherwise as vb_qp_create() and vb_qp_destroy(). -EPERM: the program
 * lacks CAP_NET_RAW, which is logged. -EBUSY: flow rules still refer to the
 * queue pair, which then stays.
 */
VB_MUST_CHECK int vb_engine_raw_create(struct vb_adapter *a,
				       struct vb_qp_init *init,
				       struct vb_qp **qp);
VB_MUST_CHECK int vb_engine_raw_destroy(struct vb_qp *qp)
	VB_EXCLUDES(qp->drive);

/* Make a rule that steers frames to @qp; the caller frees *@flow with
 * vb_engine_flow_destroy(). -EOPNOTSUPP: not a raw packet queue pair; -EINVAL:
 * the rule makes no sense; -ENOMEM; the system's -errno. */
VB_MUST_CHECK int vb_engine_flow_create(struct vb_qp *qp,
					const struct vb_flow_rule *rule,
					struct vb_flow **flow)
	VB_EXCLUDES(qp->drive);
/* Destroy a rule. When this returns, the rule neither counts nor steers frames
 * any more, and its memory is freed. */
void vb_engine_flow_destroy(struct vb_flow *flow);

/* A program opened an XRC domain that belongs to an inode: from now on other
 * processes of this host may forward requests to its shared receive queues. A
 * failure is logged, and the domain then serves this process alone. */
void vb_engine_share_xrc(void);

/* Open a session with the process of this host that has @slot, so that its
 * protection domain can be imported. Blocks for 2 s at most. -EOPNOTSUPP: this
 * process has no path to others' memory (VERBENA_NEAR=off); -EACCES: the system
 * denies access to that process's memory; -EAGAIN: that process did not
 * answer. */
VB_MUST_CHECK int vb_engine_meet(unsigned slot);

/* A program polls: read the frames that have arrived, serve them, and return.
 * Never blocks, except to yield the processor (engine/poll.c). */
void vb_engine_poll(void);

/* Call this before a poll removes completions that are already in @cq. If the
 * peer's answer is about to arrive and no other thread would look for it, this
 * function looks for it first (engine/poll_hint.c), for at most 200 us. */
void vb_engine_poll_hint(struct vb_cq *cq);

/* Wait for a completion event, like vb_channel_take(). While the caller sleeps
 * here, peers of this host wake it directly, and it serves their messages in
 * place of the engine thread. A cancellation point. 0 and *@cq, or -errno as
 * vb_channel_take(). */
VB_MUST_CHECK int vb_engine_wait(struct vb_channel *ch, struct vb_cq **cq);

/* A program armed a completion queue and is about to sleep: the engine thread
 * resumes watching the sockets, or packets wake the program by @ch, the queue's
 * channel, or NULL. */
void vb_engine_armed(struct vb_channel *ch);
/* Call this before @ch is destroyed. */
void vb_engine_forget_channel(struct vb_channel *ch);

/* Signal one event for every @count entries of @cq, or @period ns after the
 * first of them (ibv_modify_cq()). The caller calls vb_engine_forget_cq()
 * before it destroys @cq. */
void vb_engine_moderate(struct vb_cq *cq, uint32_t count, vb_time period);
void vb_engine_forget_cq(struct vb_cq *cq);

/* Returns the monotonic clock in nanoseconds, which all code uses; only the
 * engine reads it. */
static inline vb_time vb_now(void)
{
	return vb_clock_read();
}

#endif
