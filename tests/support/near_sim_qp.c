/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys and queue pairs of a program of a simulation. Its queue pairs can
 * use packets and shared memory. */
#include "tests/support/near_sim_priv.h"

#include "core/mr.h"
#include "ib/ib.h"
#include "tests/support/must.h"

static void grant_key(struct vb_adapter *a, const struct vb_grant *g)
{
	struct near_end *e = end_of(a);

	MUST(e->grant_count < GRANTS);
	e->grants[e->grant_count++] =
		(struct granted){ g->key, g->base, g->length, true };
	vb_near_grant(e->near, a, g);
}

static void revoke_key(struct vb_adapter *a, uint32_t index, uint32_t key)
{
	vb_near_revoke(end_of(a)->near, a, index);
}

static bool key_is_drained(struct vb_adapter *a, uint32_t key,
			   struct vb_age *age)
{
	return vb_near_is_drained(end_of(a)->near, key, age);
}

static void await_key(struct vb_adapter *a, uint32_t key)
{
	struct near_end *e = end_of(a);

	vb_near_await(e->near, key);
	for (unsigned i = 0; i < e->grant_count; i++)
		if (e->grants[i].key == key)
			e->grants[i].live = false;
}

static bool key_lies(struct vb_qp *qp, uint32_t key) VB_REQUIRES(qp->drive)
{
	return vb_near_lies(end_of(qp->adapter)->near, qp, key);
}

const struct vb_key_ops near_sim_keys = {
	.grant = grant_key,
	.revoke = revoke_key,
	.is_drained = key_is_drained,
	.await = await_key,
	.lies = key_lies,
};

static int attach_both(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	MUST(vb_ib_transport.attach(qp) == 0);
	return vb_near_attach(qp);
}

static void detach_both(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_near_detach(end_of(qp->adapter)->near, qp);
	vb_ib_transport.detach(qp);
}

static bool send_both_ways(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct near_end *e = end_of(qp->adapter);
	enum vb_qp_way way = qp->way;
	bool more = vb_near_send(e->near, qp, now);

	if (vb_near_has_left(qp, way))
		vb_ib_transport.enter(qp, QPS_RTR, QPS_RTS, now);
	return vb_rc_ops.send(qp, now, out) || more;
}

static bool can_wait_near(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return vb_near_can_wait(qp);
	return qp->way == WAY_PACKETS && vb_rc_ops.can_wait(qp);
}

static vb_time deadline_near(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return VB_MIN(vb_rc_ops.deadline(qp), vb_near_deadline(qp));
}

static void recv_request(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			 vb_time now) VB_REQUIRES(qp->drive)
{
	vb_rc_ops.recv[false](qp, pkt, now);
}

static void recv_response(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			  vb_time now) VB_REQUIRES(qp->drive)
{
	vb_rc_ops.recv[true](qp, pkt, now);
}

static const struct vb_transport_ops near_sim_ops = {
	.name = "near",
	.recv = { recv_request, recv_response },
	.send = send_both_ways,
	.can_wait = can_wait_near,
	.deadline = deadline_near,
};

static void enter_both(struct vb_qp *qp, enum vb_qp_state from,
		       enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	vb_ib_transport.enter(qp, from, to, now);
	vb_near_enter(end_of(qp->adapter)->near, qp, from, to, true);
	qp->ops = &near_sim_ops;
}

static void settle_near(struct vb_adapter *a, uint32_t index)
{
	vb_near_settle_qp(end_of(a)->near, a, index);
}

const struct vb_transport near_sim_transport = {
	.name = "near",
	.attach = attach_both,
	.detach = detach_both,
	.enter = enter_both,
	.settle = settle_near,
};
