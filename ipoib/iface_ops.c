/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions by which the tables of neighbours and groups act: they send
 * requests and packets, make address handles, and attach the queue pair to
 * groups. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "ipoib/iface_priv.h"

/* the QPN to which multicast datagrams are sent (IBA 9.6.1) */
#define GROUP_QPN 0xffffff
/* No repetitions by libibumad: the table of neighbours repeats its requests for
 * paths itself. */
#define PATH_RETRIES  0
#define GROUP_RETRIES 2

/* --- neighbours --- */

static void nbr_ask(void *arg, const struct vb_gid *ip)
{
	iface_ask(arg, ip);
}

static void nbr_find_path(void *arg, const struct vb_nbr *n)
{
	uint8_t mad[VB_MAD_BYTES];
	struct iface *f = arg;

	ipoib_sa_put_path(mad, n->query, &f->port.gid, &n->hw.gid, f->pkey);
	ipoib_sa_ask(&f->port, mad, PATH_RETRIES);
}

static bool nbr_prepare(void *arg, struct vb_nbr *n)
{
	struct iface *f = arg;

	n->handle = ipoib_port_aim(&f->port, &n->path, &n->hw.gid);
	return n->handle;
}

static void nbr_release(void *arg, struct vb_nbr *n)
{
	struct iface *f = arg;

	ipoib_port_forget(&f->port, n->handle);
}

static void nbr_send(void *arg, const struct vb_nbr *n, const void *frame,
		     size_t len)
{
	struct iface *f = arg;

	iface_send_to(f, &n->hw, n->handle, frame, len);
}

static void nbr_told(void *arg, const struct vb_gid *ip,
		     const struct vb_ipoib_hw *hw)
{
	struct iface *f = arg;

	f->kind->told(f, ip, hw);
}

const struct vb_nbr_ops iface_nbr_ops = {
	.ask = nbr_ask,
	.find_path = nbr_find_path,
	.prepare = nbr_prepare,
	.release = nbr_release,
	.send = nbr_send,
	.told = nbr_told,
};

/* --- groups --- */

static void group_join(void *arg, const struct vb_group *g,
		       const struct vb_sa_mcmember *as)
{
	uint8_t mad[VB_MAD_BYTES];
	struct iface *f = arg;

	/* Another process is leaving the group: send no request. The table asks
	 * again, since it gets no answer. */
	if (!ipoib_share_hold(f->shared, &g->record))
		return;
	/* A join for sending only does not create a missing group, since the
	 * group would have no receiver. */
	ipoib_sa_put_join(mad, g->query, &g->record, g->member ? as : NULL);
	ipoib_sa_ask(&f->port, mad, GROUP_RETRIES);
}

static void group_leave(void *arg, const struct vb_group *g)
{
	struct vb_sa_mcmember last = g->record;
	uint8_t mad[VB_MAD_BYTES];
	struct iface *f = arg;

	last.join_state = ipoib_share_release(f->shared, &g->record);
	if (last.join_state) {
		ipoib_sa_put_leave(mad, 0, &last);
		ipoib_sa_ask(&f->port, mad, 0);
	}
	ipoib_share_end(f->shared, &g->record);
}

static void group_refused(void *arg, const struct vb_group *g)
{
	struct iface *f = arg;

	ipoib_share_end(f->shared, &g->record);
}

static union ibv_gid verbs_gid(const struct vb_gid *gid)
{
	union ibv_gid to;

	memcpy(to.raw, gid->raw, 16);
	return to;
}

/* Is @g a group whose packets the interface does not receive? An Ethernet
 * interface joins IPoIB's broadcast group only for its record, whose parameters
 * its own group gets. */
static bool is_only_read(const struct iface *f, const struct vb_group *g)
{
	struct vb_gid all = vb_ip_broadcast();
	struct vb_gid mgid = vb_ip_mgid(&all, f->pkey);

	return f->kind->hears_no_broadcast && vb_gid_equal(&g->mgid, &mgid);
}

/* The broadcast group is joined first, and then the queue pair is started with
 * the Q_Key of that group. The record of each further group must have the same
 * Q_Key (RFC 4391 section 5). Any program of the subnet can create a group with
 * another Q_Key: such a group is refused, and the interface goes on without
 * it. */
static int begin_or_check(struct iface *f, const struct vb_group *g)
{
	const struct vb_gid all = vb_ip_broadcast();
	const struct vb_gid first = vb_ip_mgid(&all, f->pkey);

	if (f->port.started && !vb_gid_equal(&g->mgid, &first))
		return g->record.qkey == f->port.qkey ? 0 : -EPERM;
	return ipoib_port_start(&f->port, g->record.qkey);
}

static bool group_attach(void *arg, struct vb_group *g)
{
	const struct vb_sa_mcmember *r = &g->record;
	const struct vb_ipoib_path path = { .dlid = r->mlid,
					    .sl = r->sl,
					    .rate = r->rate,
					    .hop_limit = r->hop_limit,
					    .tclass = r->tclass,
					    .flow_label = r->flow_label,
					    .global = true };
	union ibv_gid mgid = verbs_gid(&g->mgid);
	struct iface *f = arg;
	int rc = begin_or_check(f, g);

	if (rc == -EPERM) {
		vb_log(LOG_WARN,
		       "%s: group %#x has Q_Key %#x, and the broadcast group "
		       "%#x: no packets of it",
		       f->tun.name, r->mlid, r->qkey, f->port.qkey);
		return false;
	}
	if (rc) {
		vb_log(LOG_ERROR, "%s: the queue pair cannot be started: %s",
		       f->tun.name, strerror(-rc));
		return false;
	}
	g->handle = ipoib_port_aim(&f->port, &path, &g->mgid);
	if (g->handle && g->member && !is_only_read(f, g) &&
	    ibv_attach_mcast(f->port.qp, &mgid, r->mlid)) {
		ipoib_port_forget(&f->port, g->handle);
		g->handle = NULL;
	}
	return g->handle;
}

/* The result of ibv_detach_mcast() is ignored: after a reset the queue pair is
 * attached to no group any more. */
static void group_detach_port(void *arg, struct vb_group *g)
{
	union ibv_gid mgid = verbs_gid(&g->mgid);
	struct iface *f = arg;

	if (g->record.join_state & SA_FULL_MEMBER && !is_only_read(f, g))
		(void)ibv_detach_mcast(f->port.qp, &mgid, g->record.mlid);
	ipoib_port_forget(&f->port, g->handle);
}

static void group_send(void *arg, const struct vb_group *g, const void *frame,
		       size_t len)
{
	struct iface *f = arg;

	ipoib_port_send(&f->port, g->handle, GROUP_QPN, frame, len);
}

static void group_begun(void *arg, const struct vb_sa_mcmember *broadcast)
{
	struct iface *f = arg;

	f->begun = true;
}

const struct vb_group_ops iface_group_ops = {
	.join = group_join,
	.leave = group_leave,
	.refused = group_refused,
	.attach = group_attach,
	.detach = group_detach_port,
	.send = group_send,
	.begun = group_begun,
};
