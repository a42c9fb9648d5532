/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, changes and destroys the engine's part of queue pairs: each has a
 * packet transport (ib/) or a stream (iwarp/), perhaps a peer on this host
 * (near/), and the engine's own state. To core/ this is one transport.
 *
 * Most work does not pass this file. For a queue pair whose peer is on another
 * host, qp->ops has the functions of ib/ or iwarp/. Only if the peer may be on
 * this host, qp->ops has functions of this file, which choose between lanes and
 * packets. Only requests choose; answers to a peer's packets always leave as
 * packets.
 */
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "ib/rc.h"
#include "iwarp/iwarp.h"
#include "link/ib.h"
#include "link/udp.h"

static struct vb_near *running_near(void)
{
	struct vb_engine *e = vb_engine_running();

	return e ? e->near : NULL;
}

/* Functions for a queue pair whose peer may be on this host. */

static bool send_all(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_near *n = running_near();
	enum vb_qp_way way = qp->way;
	bool more = n && vb_near_send(n, qp, now);

	/* Entering RTS once more tells the packet transport which requests are
	 * already complete. */
	if (vb_near_has_left(qp, way))
		vb_ib_transport.enter(qp, QPS_RTR, QPS_RTS, now);
	return vb_rc_send(qp, now, out) || more;
}

static bool quick(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->way == WAY_NEAR && vb_near_quick(qp);
}

static bool mux_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return vb_near_can_wait(qp);
	return qp->way == WAY_PACKETS && vb_rc_can_wait(qp);
}

/* With lanes every post has to call vb_drive(). */
static uint32_t mux_waits_until(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->way == WAY_PACKETS ? vb_req_waits_until(qp) : qp->sq.done;
}

static enum vb_delayed_ack mux_delayed_ack(struct vb_qp *qp, bool polls)
	VB_REQUIRES(qp->drive)
{
	return qp->way == WAY_PACKETS ? vb_rc_delayed_ack(qp, polls) : ACK_NONE;
}

static bool mux_has_unsent(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->way == WAY_PACKETS && vb_rc_has_unsent(qp);
}

static vb_time mux_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return VB_MIN(vb_rc_deadline(qp), vb_near_deadline(qp));
}

static const struct vb_transport_ops near_or_packets = {
	.name = "near or packets",
	.recv = { vb_resp_recv, vb_comp_recv },
	.run = vb_rc_run,
	.send = send_all,
	.quick = quick,
	.can_wait = mux_can_wait,
	.delayed_ack = mux_delayed_ack,
	.unreplied = vb_rc_unreplied,
	.has_unsent = mux_has_unsent,
	.widen = vb_rc_widen,
	.narrow = vb_rc_narrow,
	.deadline = mux_deadline,
	.waits_until = mux_waits_until,
};

/* Functions for streams, which engine/stream.c drives; that file also calls
 * near/. */

static bool stream_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return vb_near_can_wait(qp);
	return qp->way == WAY_PACKETS && vb_iw_can_wait(qp);
}

static vb_time mux_stream_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return VB_MIN(vb_iw_deadline(qp), vb_near_deadline(qp));
}

static const struct vb_transport_ops near_or_stream = {
	.name = "near or stream",
	.recv = { vb_iw_recv_packet, vb_iw_recv_packet },
	.send = vb_iw_send_packets,
	.can_wait = stream_can_wait,
	.deadline = mux_stream_deadline,
};

/* Creating, changing and destroying queue pairs. */

static int attach_engine(struct vb_qp *qp)
{
	struct vb_engine_qp *eq = vb_eq(qp);

	if (!eq) {
		eq = calloc(1, sizeof(*eq));
		if (!eq)
			return -ENOMEM;
		vb_timer_init(&eq->timer);
		eq->qp = qp;
		qp->priv[PRIV_ENGINE] = eq;
	}
	eq->timer_at = VB_NEVER;
	atomic_store(&eq->port_news, 0);
	eq->rate_at = 0;
	eq->rate_credit = 0;
	eq->stream = NULL;
	eq->peer_id = (struct vb_peer_id){ .known = false };
	return 0;
}

static int attach_to(const struct vb_transport *t, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	int rc = attach_engine(qp);

	if (rc == 0)
		rc = t->attach(qp);
	if (rc)
		return rc;
	rc = vb_near_attach(qp);
	if (rc)
		t->detach(qp);
	return rc;
}

static int mux_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return attach_to(&vb_ib_transport, qp);
}

static int attach_stream(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return attach_to(&vb_iwarp_transport, qp);
}

static void mux_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_near_detach(running_near(), qp);
	vb_ib_transport.detach(qp);
}

static void detach_stream(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_near_detach(running_near(), qp);
	vb_iwarp_transport.detach(qp);
}

/* Forget the peer if the queue pair enters RESET. */
static void mux_forget_peer(struct vb_qp *qp, enum vb_qp_state to)
{
	if (to == QPS_RESET)
		vb_eq(qp)->peer_id = (struct vb_peer_id){ .known = false };
}

/* Is the peer at an address of this host, or, on InfiniBand, at a LID of the
 * queue pair's own port? Two adapters of one host are joined by switches. */
static bool is_own_address(const struct vb_qp *qp)
{
	const struct vb_route *r = &qp->route;

	const struct vb_port *p = vb_qp_port(qp);

	return vb_port_is_ib(p) ? vb_ib_owns(p->link, r->ib.dlid)
				: vb_udp_owns(&r->dgid, r->ifindex);
}

/* Packets to a LID that is the port's no more, or by a port that is not active,
 * reach nobody, so requests must not go near either. */
void vb_mux_follow(struct vb_near *n, struct vb_qp *qp)
{
	vb_near_follow(n, qp,
		       vb_port_is_active(vb_qp_port(qp)) && is_own_address(qp));
}

static void follow_port(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_engine *e = vb_engine_running();

	if (e)
		vb_held_follow(e, qp);
}

static void mux_enter(struct vb_qp *qp, enum vb_qp_state from,
		      enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_near *n = running_near();
	/* A queue pair with an alternate path sends packets: only these tell
	 * the peer the state of path migration. */
	bool here = n && to == QPS_RTR && from == QPS_INIT &&
		    qp->type == QPT_RC && is_own_address(qp) &&
		    !vb_mig_is_loaded(&qp->attr);

	mux_forget_peer(qp, to);
	follow_port(qp);
	vb_ib_transport.enter(qp, from, to, now);
	if (!n || qp->type != QPT_RC)
		return;
	vb_near_enter(n, qp, from, to, here);
	if (here && vb_port_is_ib(vb_qp_port(qp)))
		vb_mux_follow(n, qp);
	qp->ops = vb_near_may_be_here(qp) ? &near_or_packets : &vb_rc_ops;
}

static void mux_enter_stream(struct vb_qp *qp, enum vb_qp_state from,
			     enum vb_qp_state to, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near *n = running_near();

	mux_forget_peer(qp, to);
	vb_iwarp_transport.enter(qp, from, to, now);
	if (!n)
		return;
	vb_near_enter(n, qp, from, to, false);
	qp->ops = vb_near_may_be_here(qp) ? &near_or_stream : &vb_iwarp_ops;
}

bool vb_mux_expect(struct vb_near *n, struct vb_qp *qp,
		   struct vb_near_card *card)
{
	if (!vb_near_expect(n, qp, card))
		return false;
	qp->ops = &near_or_stream;
	return true;
}

static void mux_settle(struct vb_adapter *a, uint32_t index)
{
	struct vb_near *n = running_near();

	if (n)
		vb_near_settle_qp(n, a, index);
}

const struct vb_transport vb_mux_transport = {
	.name = "paths",
	.attach = mux_attach,
	.detach = mux_detach,
	.enter = mux_enter,
	.settle = mux_settle,
};

const struct vb_transport vb_mux_stream_transport = {
	.name = "streams",
	.attach = attach_stream,
	.detach = detach_stream,
	.enter = mux_enter_stream,
	.settle = mux_settle,
};

bool vb_stream_may_be_near(const struct sockaddr *peer)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	uint32_t ifindex = 0;
	struct vb_gid gid;

	if (!running_near())
		return false;
	if (peer->sa_family == AF_INET) {
		gid = vb_gid_from_ipv4((const uint8_t *)&v4->sin_addr);
	} else if (peer->sa_family == AF_INET6) {
		memcpy(gid.raw, &v6->sin6_addr, sizeof(gid.raw));
		ifindex = v6->sin6_scope_id;
	} else {
		return false;
	}
	return vb_udp_owns(&gid, ifindex);
}

static void grant_near(struct vb_adapter *a, const struct vb_grant *g)
{
	struct vb_near *n = running_near();

	if (n)
		vb_near_grant(n, a, g);
}

static void revoke_near(struct vb_adapter *a, uint32_t index, uint32_t key)
{
	struct vb_near *n = running_near();

	if (n)
		vb_near_revoke(n, a, index);
}

static bool is_drained_near(struct vb_adapter *a, uint32_t key,
			    struct vb_age *age)
{
	struct vb_near *n = running_near();

	return !n || vb_near_is_drained(n, key, age);
}

static void await_near(struct vb_adapter *a, uint32_t key)
{
	struct vb_near *n = running_near();

	if (n)
		vb_near_await(n, key);
}

static bool lies_near(struct vb_qp *qp, uint32_t key) VB_REQUIRES(qp->drive)
{
	struct vb_near *n = running_near();

	return n && vb_near_lies(n, qp, key);
}

static bool find_near(const struct vb_pd *pd, uint32_t key, struct vb_grant *g)
{
	struct vb_near *n = running_near();

	return n && vb_near_imported_pd_find(n, pd, key, g);
}

static enum vb_fault reach_near(const struct vb_pd *pd,
				const struct vb_mr_range *r, void *bytes,
				bool put)
{
	struct vb_near *n = running_near();

	return n ? vb_near_imported_pd_copy(n, pd, r, bytes, put) : FAULT_RKEY;
}

const struct vb_key_ops vb_mux_keys = {
	.grant = grant_near,
	.revoke = revoke_near,
	.is_drained = is_drained_near,
	.await = await_near,
	.lies = lies_near,
	.find = find_near,
	.reach = reach_near,
};

/* How long another program may take to introduce itself. */
#define MEET_WITHIN (2 * VB_SEC)

int vb_engine_meet(unsigned slot)
{
	struct vb_near *n = running_near();
	vb_time until = vb_now() + MEET_WITHIN;
	uint32_t since = 0;
	int rc = -EOPNOTSUPP;

	while (n &&
	       (rc = vb_near_imported_pd_meet(n, slot, &since)) == -EAGAIN &&
	       vb_now() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	return rc;
}

static void mux_step(void *arg, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	vb_drive_step(arg, qp, now);
}

static void release(void *arg, struct vb_qp *qp) VB_RELEASE(qp->drive)
{
	vb_drive_release_light(arg, qp);
}

static void soon(void *arg)
{
	vb_wait_soon(arg);
}

void vb_mux_open(struct vb_engine *e)
{
	struct vb_near_config c = {
		.wake_fd = e->wake_fd,
		.qps = e->qps,
		.step = mux_step,
		.release = release,
		.soon = soon,
		.arg = e,
	};
	const char *wanted = getenv("VERBENA_NEAR");
	struct vb_near *near;
	int slot;

	if (wanted && strcmp(wanted, "off") == 0)
		return;
	slot = vb_host_slot(e);
	if (slot < 0) {
		vb_log(LOG_INFO,
		       "near: no slot, so peers of this host get packets: %s",
		       strerror(-slot));
		return;
	}
	c.slot = (unsigned)slot;
	c.name_fd = e->slot ? e->slot_fd : e->lease.name_fd;
	/* vb_near_create() has logged the reason. Continue without it, because
	 * packets reach every peer. */
	if (vb_near_create(&c, &near))
		return;
	atomic_store(&e->near, near);
}

void vb_mux_join(struct vb_engine *e)
{
	int rc;

	if (!e->near)
		vb_mux_open(e);
	if (!e->near || !e->slot)
		return;
	rc = vb_near_also(e->near, e->lease.slot, e->lease.name_fd);
	if (rc)
		vb_log(LOG_INFO,
		       "near: peers of this host reach slot %u by packets: %s",
		       e->lease.slot, strerror(-rc));
}

void vb_mux_close(struct vb_engine *e)
{
	if (e->near)
		vb_near_destroy(e->near);
	e->near = NULL;
}
