/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration on InfiniBand (IBA 17.2.8): a connected queue pair
 * has a primary path and perhaps an alternate one, and moves to the alternate
 * path when the primary one is broken or the program says so.
 *
 * The bit MigReq of each packet's BTH tells the peer: it is set in state
 * Migrated and clear in Rearm and Armed. Both programs load an alternate path
 * and set Rearm; a queue pair in Rearm that gets a packet without MigReq is
 * Armed. A queue pair that migrates sends MigReq by its new path, and so the
 * peer follows.
 */
#ifndef CORE_MIGRATE_H
#define CORE_MIGRATE_H

#include "core/qp.h"

/* Values of IBV_MIG_*. */
enum vb_mig_state { MIG_MIGRATED, MIG_REARM, MIG_ARMED, MIG_STATES };

/* Which of a queue pair's paths a packet came by. */
enum vb_mig_path {
	BY_STRANGER, /* the packet is not from the peer's port */
	BY_PEER,     /* from the peer's port, by no path that was loaded */
	BY_PRIMARY,
	BY_ALTERNATE, /* by the alternate path, which is not the primary one */
	BY_COUNT,
};

enum vb_mig_act {
	MIG_REFUSE, /* drop the packet */
	MIG_ERROR,  /* drop the packet, and raise PATH_MIG_ERR */
	MIG_TAKE,
	MIG_SWITCH, /* move to the alternate path, then take the packet */
};

struct vb_mig_row {
	enum vb_mig_act act;
	enum vb_mig_state next;
};

/* A packet has arrived by @path, with MigReq or without, at a queue pair in
 * @state. Returns what to do with the packet, and the next state; after
 * MIG_SWITCH this is the state if the switch succeeds. No side effect. */
struct vb_mig_row vb_mig_hear(enum vb_mig_state state, bool requested,
			      enum vb_mig_path path);

/* Has the program loaded an alternate path that the queue pair did not use
 * yet? */
static inline bool vb_mig_is_loaded(const struct vb_qp_attr *a)
{
	return a->alt_port_num != 0;
}

/* Returns the port of the alternate path, which may be another one than that of
 * the primary path; NULL: no path is loaded. */
static inline struct vb_port *vb_mig_port(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return vb_adapter_port(qp->adapter, qp->attr.alt_port_num);
}

/* Makes qp->alt_port follow the attributes: packets come by the alternate path
 * in Rearm and Armed only. */
static inline void vb_mig_note_port(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	atomic_store(&qp->alt_port, qp->attr.path_mig_state == MIG_MIGRATED
					    ? NULL
					    : vb_mig_port(qp));
}

/* Unload the alternate path of @a: the state is Migrated, and the program must
 * load a path before it can set Rearm. */
void vb_mig_unload(struct vb_qp_attr *a);

/* The attributes of ibv_modify_qp() that concern paths: in @attr, which has the
 * new attributes of @qp except these, set what @asked and @mask say, with the
 * effect on the state. @alt: the route of the alternate path. *@switches: the
 * program has forced the queue pair to its alternate path, so @attr has that
 * path as the primary one, and the caller calls vb_mig_switched(). Returns
 * NULL, or a static English sentence that says what is wrong; then the move
 * fails with EINVAL. */
const char *vb_mig_modify(struct vb_qp *qp, const struct vb_qp_attr *asked,
			  uint32_t mask, struct vb_qp_attr *attr,
			  struct vb_route *alt, bool *switches)
	VB_REQUIRES(qp->drive);

/* The queue pair has moved to the alternate path by order of the program: raise
 * PATH_MIG, and let the transport begin anew there. */
void vb_mig_switched(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* The packet @f with P_Key @pkey has arrived on @link, the link of one of the
 * adapter's ports, with MigReq (@requested) or without: advance the state. The
 * state is not MIG_MIGRATED.
 * Returns CNT_COUNT if the queue pair takes the packet; otherwise the counter
 * of the reason why it does not.
 */
enum vb_counter vb_mig_arrive(struct vb_qp *qp, const struct vb_link *link,
			      const struct vb_frame *f, bool requested,
			      uint16_t pkey) VB_REQUIRES(qp->drive);

/* The peer does not answer by the primary path, although requests were repeated
 * as often as the program permits: move to the alternate path, if the queue
 * pair is armed. False: there is no other path, so the connection has failed.
 */
bool vb_mig_fail_over(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* core/ah_ib.c: returns the path, primary or alternate, by which the packet @f
 * has arrived on @link. */
enum vb_mig_path vb_ib_path_of(const struct vb_qp *qp,
			       const struct vb_link *link,
			       const struct vb_frame *f) VB_REQUIRES(qp->drive);

#endif
