/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's one engine: joins links to transports, owns the thread, the
 * time, and the lease of a slot from the broker.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/flow.h"
#include "engine/devices.h"

/*
 * Open a device: the first call of a process claims a slot and starts the
 * thread. An adapter is shared by all who open the same device; @async gets
 * its port's events until vb_engine_close(). -errno, the reason logged.
 */
VB_MUST_CHECK int vb_engine_open(const struct vb_device *device,
				 struct vb_async *async,
				 struct vb_adapter **adapter);
void vb_engine_close(struct vb_adapter *adapter, struct vb_async *async);

/*
 * How many times this process has been forked since an ancestor first opened
 * a device. Objects made before the last time belong to the parent: its
 * locks, threads and sockets are not here.
 */
unsigned vb_engine_forks(void);

/*
 * Work entrance: there is work on @qp (posted, or its state changed). Sends
 * what may be sent right here, or leaves it to the thread that is driving the
 * queue pair now. Call without qp->drive.
 */
void vb_drive(struct vb_qp *qp);
/* The same after a single post of at most VB_QUIET_BYTES. */
void vb_drive_short(struct vb_qp *qp);
/*
 * Before a region is taken away: what this thread has posted lately, and left
 * to another that drives, or to gather, begins now, as far as it may. Takes
 * drive of each such queue pair.
 */
void vb_engine_begin_posted(void);

/* @qp is about to be destroyed: forget its timer. */
void vb_drive_forget(struct vb_qp *qp);
/* An ACK that waits for the program's next reply goes now. */
void vb_drive_settle(struct vb_qp *qp);

/*
 * Multicast, for UD. Attaching joins the group on the port's interface (IGMP,
 * MLD); twice is once. -EINVAL: no such type, group or (detach) attachment;
 * else -errno of the system. A queue pair is to be detached before its end.
 */
VB_MUST_CHECK int vb_engine_attach(struct vb_qp *qp, const struct vb_gid *gid);
VB_MUST_CHECK int vb_engine_detach(struct vb_qp *qp, const struct vb_gid *gid);
bool vb_engine_is_attached(struct vb_qp *qp);

/*
 * Raw packets: as vb_qp_create() and vb_qp_destroy(), with a packet socket.
 * -EPERM: CAP_NET_RAW is missing, and the log says so. -EBUSY: it has rules.
 */
VB_MUST_CHECK int vb_engine_raw_create(struct vb_adapter *a,
				       struct vb_qp_init *init,
				       struct vb_qp **qp);
VB_MUST_CHECK int vb_engine_raw_destroy(struct vb_qp *qp);

/* -EOPNOTSUPP: of another type; -EINVAL, -ENOMEM, the system's -errno. */
VB_MUST_CHECK int vb_engine_flow_create(struct vb_qp *qp,
					const struct vb_flow_rule *rule,
					struct vb_flow **flow);
/* After the return nothing is counted for it, or comes by it. */
void vb_engine_flow_destroy(struct vb_flow *flow);

/* An XRC domain of an inode was opened: other processes of the host may hand
 * requests over to its shared queues from now on. */
void vb_engine_share_xrc(void);

/* Another process of the host, whose domain is to be imported. -EOPNOTSUPP: no
 * way to others' memory here (VERBENA_NEAR=off); -EACCES: none to its; -EAGAIN:
 * it did not answer. */
VB_MUST_CHECK int vb_engine_meet(unsigned slot);

/* Frame entrance for pollers: take what has arrived, serve it, return. */
void vb_engine_poll(void);

/* Before a poll takes completions that are there: is an answer to come at once,
 * which nobody would look for (engine/poll_hint.c)? */
void vb_engine_poll_hint(struct vb_cq *cq);

/* vb_channel_take(), but who sleeps there is woken by peers of this host
 * themselves, and serves them. */
VB_MUST_CHECK int vb_engine_wait(struct vb_channel *ch, struct vb_cq **cq);

/* A completion queue was armed: the program will sleep. */
void vb_engine_armed(void);

/* One event for @count entries of @cq, or @period after the first of them
 * (vb_cq_moderate). A queue that goes is to be forgotten first. */
void vb_engine_moderate(struct vb_cq *cq, uint32_t count, vb_time period);
void vb_engine_forget_cq(struct vb_cq *cq);

/* The clock that everything here runs by. */
vb_time vb_now(void);

#endif
