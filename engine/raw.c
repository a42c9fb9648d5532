/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packet queue pairs. Each has a packet socket of its own, so that it does
 * not receive its own frames but does receive those of others. Flow rules of
 * the whole adapter decide which of the arriving frames it gets (core/flow.h).
 */
#include "engine/engine_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "core/flow.h"
#include "core/rss.h"
#include "ib/raw.h"
#include "link/packet.h"

struct vb_raw {
	struct vb_qp *qp;
	struct vb_link *link;
	unsigned flows; /* guarded by rx: number of flow rules */
	struct vb_raw *next;
};

static void give(struct vb_engine *e, struct vb_qp *qp,
		 const struct vb_raw_frame *f, vb_time now)
{
	vb_mutex_lock(&qp->drive);
	vb_raw_recv(qp, f, now);
	vb_drive_release(e, qp);
}

static void steer(struct vb_engine *e, struct vb_qp *qp,
		  const struct vb_frame *f, vb_time now) VB_REQUIRES(e->rx)
{
	struct vb_raw_frame frame = { .bytes = f->bytes, .len = f->len };
	struct vb_eth_key key;

	vb_eth_key_get(f->bytes, f->len, &key);
	if (!vb_flow_steer(qp->adapter->flows, qp, &key, f->len, &frame.tag))
		return;
	give(e, qp->rss ? vb_rss_pick(qp->rss, &key) : qp, &frame, now);
}

bool vb_raw_drain(struct vb_engine *e, vb_time now)
{
	bool found = false;

	for (const struct vb_raw *r = e->raws; r; r = r->next) {
		/* Sockets without rules are read as well: frames that came
		 * before the last rule was removed would keep the engine thread
		 * awake. */
		if (r->link->ops->recv(r->link, &e->rxq) < 0)
			continue;
		found |= e->rxq.count != 0;
		for (unsigned i = 0; i < e->rxq.count; i++)
			steer(e, r->qp, &e->rxq.frames[i], now);
	}
	e->rxq.count = 0;
	return found;
}

static int no_socket(const struct vb_adapter *a, int rc)
{
	if (rc == -EPERM || rc == -EACCES)
		vb_log(LOG_WARN,
		       "%s: no raw packets: they need CAP_NET_RAW, which this "
		       "program does not have in its network namespace",
		       a->name);
	else
		vb_log(LOG_INFO, "%s: no packet socket: %s", a->name,
		       strerror(-rc));
	return rc == -EACCES ? -EPERM : rc;
}

static int eng_raw_open_link(struct vb_adapter *a, struct vb_link **link)
{
	struct vb_port *p = vb_adapter_ethernet(a);
	uint8_t mac[sizeof(p->mac)];
	uint32_t ifindex;
	int rc;

	vb_mutex_lock(&p->lock);
	ifindex = p->ifindex;
	memcpy(mac, p->mac, sizeof(mac));
	vb_mutex_unlock(&p->lock);
	rc = vb_packet_open(ifindex, mac, link);
	if (rc)
		return no_socket(a, rc);
	vb_fork_closes((*link)->ops->fd(*link));
	return 0;
}

/* Watch the packet socket. The engine thread sleeps on one epoll descriptor for
 * all packet sockets, which is made with the first of them and stays. */
static int eng_raw_watch(struct vb_engine *e, const struct vb_link *l)
	VB_REQUIRES(e->rx)
{
	struct epoll_event readable = { .events = EPOLLIN };
	int fd = atomic_load(&e->raw_fd);

	if (fd < 0) {
		fd = epoll_create1(EPOLL_CLOEXEC);
		if (fd < 0)
			return -errno;
		atomic_store(&e->raw_fd, fd);
	}
	return epoll_ctl(fd, EPOLL_CTL_ADD, l->ops->fd(l), &readable) < 0
		       ? -errno
		       : 0;
}

static int eng_raw_enter(struct vb_engine *e, struct vb_raw *r)
{
	int rc;

	vb_mutex_lock(&e->rx);
	rc = eng_raw_watch(e, r->link);
	if (rc == 0) {
		r->next = e->raws;
		e->raws = r;
	}
	vb_mutex_unlock(&e->rx);
	vb_engine_wake(e);
	return rc;
}

int vb_engine_raw_create(struct vb_adapter *a, struct vb_qp_init *init,
			 struct vb_qp **qp)
{
	struct vb_raw *r;
	int rc;

	if (!vb_adapter_ethernet(a)) /* a fabric has no Ethernet frames */
		return -EOPNOTSUPP;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	rc = eng_raw_open_link(a, &r->link);
	if (rc)
		goto free_raw;
	init->link = r->link;
	rc = vb_qp_create(a, init, &r->qp);
	if (rc)
		goto close_link;
	rc = eng_raw_enter(vb_engine_running(), r);
	if (rc)
		goto destroy_qp;
	*qp = r->qp;
	return 0;

destroy_qp:
	vb_qp_destroy(r->qp);
close_link:
	r->link->ops->close(r->link);
free_raw:
	free(r);
	return rc;
}

static struct vb_raw **eng_raw_find(struct vb_engine *e, const struct vb_qp *qp)
	VB_REQUIRES(e->rx)
{
	struct vb_raw **at = &e->raws;

	while ((*at)->qp != qp)
		at = &(*at)->next;
	return at;
}

int vb_engine_raw_destroy(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_raw **at, *r;
	unsigned flows;

	vb_mutex_lock(&e->rx);
	at = eng_raw_find(e, qp);
	r = *at;
	flows = r->flows;
	if (flows == 0)
		*at = r->next;
	vb_mutex_unlock(&e->rx);
	if (flows)
		return -EBUSY;
	vb_drive_forget(qp);
	vb_qp_destroy(qp);
	/* Remove the socket explicitly: a child of fork may hold it open for a
	 * moment, and the epoll set would go on reporting it. */
	(void)epoll_ctl(atomic_load(&e->raw_fd), EPOLL_CTL_DEL,
			r->link->ops->fd(r->link), NULL);
	/* No thread sends by the socket any more: each sender holds qp->drive
	 * and checks that the queue pair exists. */
	r->link->ops->close(r->link);
	free(r);
	return 0;
}

static enum vb_packet_member member_of(const struct vb_flow_rule *rule)
{
	static const uint8_t whole[6] = { 255, 255, 255, 255, 255, 255 };

	switch (rule->kind) {
	case FLOW_MC_DEFAULT:
		return MEMBER_ALL_MULTICAST;
	case FLOW_ALL_DEFAULT:
	case FLOW_SNIFFER:
		return MEMBER_ALL;
	case FLOW_NORMAL:
		break;
	}
	if (memcmp(rule->mask.dst, whole, sizeof(whole)) != 0)
		return MEMBER_NONE;
	return rule->value.dst[0] & 1 ? MEMBER_MULTICAST : MEMBER_UNICAST;
}

static struct vb_packet_want want_of(const struct vb_flow_rule *rule)
{
	struct vb_packet_want w;

	memcpy(w.value.dst, rule->value.dst, sizeof(w.value.dst));
	memcpy(w.value.src, rule->value.src, sizeof(w.value.src));
	memcpy(w.mask.dst, rule->mask.dst, sizeof(w.mask.dst));
	memcpy(w.mask.src, rule->mask.src, sizeof(w.mask.src));
	if (rule->kind == FLOW_MC_DEFAULT)
		w.value.dst[0] = w.mask.dst[0] = 1;
	return w;
}

/* Set the socket's filter to the frames that the rules of @r ask for. */
static int listen_to(const struct vb_raw *r)
{
	/* If there are more rules than a filter can have, let all frames in. */
	struct vb_packet_want wants[VB_PACKET_WANTS + 1];
	bool both_ways = false;
	unsigned n = 0;

	for (const struct vb_flow *f = r->qp->adapter->flows; f; f = f->next) {
		if (f->qp != r->qp)
			continue;
		both_ways |= f->rule.kind == FLOW_SNIFFER;
		if (n < VB_COUNT(wants))
			wants[n++] = want_of(&f->rule);
	}
	return vb_packet_listen(r->link, wants, n, both_ways);
}

static int add_flow(struct vb_raw *r, struct vb_flow *f)
{
	struct vb_flow **first = &r->qp->adapter->flows;
	enum vb_packet_member m = member_of(&f->rule);
	int rc = vb_packet_join(r->link, m, f->rule.value.dst);

	if (rc)
		return rc;
	vb_flow_insert(first, f);
	rc = listen_to(r);
	if (rc) {
		vb_flow_remove(first, f);
		vb_packet_leave(r->link, m, f->rule.value.dst);
		return rc;
	}
	r->flows++;
	return 0;
}

int vb_engine_flow_create(struct vb_qp *qp, const struct vb_flow_rule *rule,
			  struct vb_flow **out)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_flow *f;
	int rc;

	if (qp->type != QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct vb_flow){ .rule = *rule, .qp = qp };
	rc = vb_flow_check(&f->rule);
	if (rc == 0) {
		vb_mutex_lock(&e->rx);
		rc = add_flow(*eng_raw_find(e, qp), f);
		vb_mutex_unlock(&e->rx);
	}
	if (rc) {
		free(f);
		return rc;
	}
	if (f->rule.counters)
		atomic_fetch_add(&f->rule.counters->flows, 1);
	*out = f;
	return 0;
}

void vb_engine_flow_destroy(struct vb_flow *f)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_raw *r;

	vb_mutex_lock(&e->rx);
	r = *eng_raw_find(e, f->qp);
	r->flows--;
	vb_flow_remove(&f->qp->adapter->flows, f);
	vb_packet_leave(r->link, member_of(&f->rule), f->rule.value.dst);
	if (listen_to(r))
		vb_log(LOG_DEBUG, "qp 0x%x: its socket keeps the old filter",
		       atomic_load(&f->qp->qpn));
	vb_mutex_unlock(&e->rx);
	if (f->rule.counters)
		atomic_fetch_sub(&f->rule.counters->flows, 1);
	free(f);
}

void vb_raw_close(struct vb_engine *e)
{
	if (atomic_load(&e->raw_fd) >= 0)
		close(atomic_load(&e->raw_fd));
}
