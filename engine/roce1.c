/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv1, for adapters with both versions of RoCE. All of them share one packet
 * socket, as they share the socket of port 4791; the slot of that port tells
 * the programs of a host apart here, too.
 */
#include "engine/engine_priv.h"

#include <errno.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "link/roce.h"
#include "link/roce1.h"

static int no_roce1(const struct vb_open_adapter *oa, unsigned i, int rc)
{
	if (rc == -EPERM)
		vb_log(LOG_ERROR,
		       "%s: no RoCEv1: it needs CAP_NET_RAW, which this "
		       "program does not have in its network namespace; "
		       "roce_%s has RoCEv2 without it",
		       oa->device.name, oa->device.port[i].netdev);
	else
		vb_log(LOG_ERROR, "%s: no packet socket for RoCEv1: %s",
		       oa->device.name, strerror(-rc));
	return rc;
}

/* The first adapter opens the links; they stay until the engine stops. */
static int open_links(struct vb_engine *e) VB_REQUIRES(e->list_lock)
{
	struct vb_link *v1, *both;
	int rc = vb_roce1_open(e->lease.slot, true, &v1);

	if (rc)
		return rc;
	vb_fork_closes(v1->ops->fd(v1));
	rc = vb_roce_open(v1, e->link, &both);
	if (rc) {
		v1->ops->close(v1);
		return rc;
	}
	vb_mutex_lock(&e->rx);
	e->roce.v1 = v1;
	e->roce.both = both;
	vb_mutex_unlock(&e->rx);
	atomic_store(&e->roce.fd, v1->ops->fd(v1));
	vb_engine_wake(e);
	return 0;
}

int vb_engine_roce1_enter(struct vb_engine *e, struct vb_open_adapter *oa,
			  unsigned i)
{
	int rc = e->roce.v1 ? 0 : open_links(e);

	if (rc)
		return no_roce1(oa, i, rc);
	oa->adapter.ports[i].link = e->roce.both;
	return 0;
}

void vb_engine_roce1_learn(struct vb_engine *e, struct vb_open_adapter *oa,
			   unsigned i)
{
	struct vb_port *p = &oa->adapter.ports[i];
	uint32_t ifindex;
	int rc;

	vb_mutex_lock(&p->lock);
	ifindex = p->ifindex;
	vb_mutex_unlock(&p->lock);
	rc = vb_roce1_learn(e->roce.v1, ifindex);
	if (rc)
		vb_log(LOG_DEBUG, "%s: interface %u: %s", oa->device.name,
		       ifindex, strerror(-rc));
}

bool vb_engine_roce1_drain(struct vb_engine *e)
{
	struct vb_link *v1 = e->roce.v1;

	if (v1->ops->recv(v1, &e->rxq) < 0 || e->rxq.count == 0)
		return false;
	/* Read the clock again: see eng_drain_link(). */
	vb_dispatch_from(e, v1, e->lease.slot, vb_now());
	return true;
}

void vb_engine_roce1_close(struct vb_engine *e)
{
	if (!e->roce.v1)
		return;
	e->roce.both->ops->close(e->roce.both);
	e->roce.v1->ops->close(e->roce.v1);
}
