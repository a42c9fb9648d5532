/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transport of core/transport.h: creating, changing and
 * destroying the state of reliable connections, and the functions of each type
 * of queue pair. */
#include <errno.h>
#include <stdlib.h>

#include "ib/raw.h"
#include "ib/rc.h"
#include "ib/unrel.h"

const uint8_t vb_ib_classes[] = {
	[QPT_RC] = CLASS_RC,	    [QPT_UC] = CLASS_UC,
	[QPT_UD] = CLASS_UD,	    [QPT_XRC_SEND] = CLASS_XRC,
	[QPT_XRC_RECV] = CLASS_XRC, [QPT_RAW_PACKET] = CLASS_NONE,
	[QPT_WQ] = CLASS_NONE,
};

/* Functions of RC and of XRC, each of whose queue pairs is one half of an RC
 * queue pair. */

static int rc_attach(struct vb_qp *qp)
{
	qp->ops = &vb_rc_ops;
	qp->priv[PRIV_TRANSPORT] = calloc(1, sizeof(struct vb_rc));
	return qp->priv[PRIV_TRANSPORT] ? 0 : -ENOMEM;
}

static void rc_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_ooo_clear(qp->adapter, &vb_rc(qp)->req.ooo);
	vb_ooo_clear(qp->adapter, &vb_rc(qp)->resp.ooo);
	vb_replay_fini(&vb_rc(qp)->resp.replay);
	vb_xrc_read_reset(qp);
	free(vb_rc(qp));
	qp->priv[PRIV_TRANSPORT] = NULL;
}

static void rc_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	if (to == QPS_RTR && from == QPS_INIT) {
		vb_rc(qp)->offers = vb_rc(qp)->selective = false;
		vb_resp_reset(qp);
		vb_req_reset(qp);
	} else if (to == QPS_RTS && from == QPS_RTR) {
		vb_req_reset(qp);
	} else if (to == QPS_SQD) {
		vb_replay_resize(&vb_rc(qp)->resp.replay,
				 qp->attr.max_dest_rd_atomic);
		vb_req_drain(qp);
	}
	/* In RESET and INIT no packet is sent, and the move to RTR resets
	 * everything. For ERR see vb_rc_send(). */
}

static const struct vb_transport rc_transport = {
	.name = "rc",
	.attach = rc_attach,
	.detach = rc_detach,
	.enter = rc_enter,
};

void vb_rc_run(struct vb_qp *qp, bool begins) VB_REQUIRES(qp->drive)
{
	vb_inbound_run(&vb_rc(qp)->resp.in, begins);
}

const struct vb_transport_ops vb_rc_ops = {
	.name = "rc",
	.recv = { vb_resp_recv, vb_comp_recv },
	.run = vb_rc_run,
	.send = vb_rc_send,
	.can_wait = vb_rc_can_wait,
	.delayed_ack = vb_rc_delayed_ack,
	.unreplied = vb_rc_unreplied,
	.has_unsent = vb_rc_has_unsent,
	.widen = vb_rc_widen,
	.narrow = vb_rc_narrow,
	.deadline = vb_rc_deadline,
	.waits_until = vb_req_waits_until,
};

/* XRC: the program replies by another queue pair, so an ACK need not wait. */
const struct vb_transport_ops vb_xrc_ops = {
	.name = "xrc",
	.recv = { vb_resp_recv, vb_comp_recv },
	.run = vb_rc_run,
	.send = vb_rc_send,
	.can_wait = vb_rc_can_wait,
	.deadline = vb_rc_deadline,
	.waits_until = vb_req_waits_until,
};

static int xrc_attach(struct vb_qp *qp)
{
	int rc = rc_attach(qp);

	qp->ops = &vb_xrc_ops;
	return rc;
}

static const struct vb_transport xrc_transport = {
	.name = "xrc",
	.attach = xrc_attach,
	.detach = rc_detach,
	.enter = rc_enter,
};

static const struct vb_transport *const by_type[] = {
	[QPT_RC] = &rc_transport,	 [QPT_UC] = &vb_uc_transport,
	[QPT_UD] = &vb_ud_transport,	 [QPT_XRC_SEND] = &xrc_transport,
	[QPT_XRC_RECV] = &xrc_transport, [QPT_RAW_PACKET] = &vb_raw_transport,
	[QPT_WQ] = &vb_raw_transport,
};

static int ib_attach(struct vb_qp *qp)
{
	if (qp->type >= VB_COUNT(by_type) || !by_type[qp->type])
		return -EOPNOTSUPP;
	return by_type[qp->type]->attach(qp);
}

static void ib_detach(struct vb_qp *qp)
{
	by_type[qp->type]->detach(qp);
}

static void ib_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now)
{
	by_type[qp->type]->enter(qp, from, to, now);
}

const struct vb_transport vb_ib_transport = {
	.name = "ib",
	.attach = ib_attach,
	.detach = ib_detach,
	.enter = ib_enter,
};
