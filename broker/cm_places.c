/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs ask about adapters of fabrics: their use for connections, paths
 * and groups of the subnet administrator. */
#include "broker/cm_priv.h"

#include <errno.h>
#include <stdlib.h>

/* How long an adapter that no program uses stays while connections end. */
#define STAY (5 * VB_SEC)
/* The Local ACK Timeout, a code of 5 bits, follows from the life time of a
 * packet (IBA 15.2.5.16): it covers a round trip. opensm gives a port's path to
 * itself no life time, which would mean 8 us; but the peer is a process, and
 * may have to wait for a processor. */
#define LEAST_ACK_TIMEOUT 17
#define MOST_ACK_TIMEOUT  31

/* A path for which a program has asked. */
struct vb_cm_route {
	struct vb_sa_request request;
	struct vb_cm_id *id;
	unsigned place;
	struct vb_sa_path want;
};

/* --- places of programs --- */

bool vb_cm_client_has_gid(const struct vb_cm_client *c,
			  const struct vb_gid *gid)
{
	for (unsigned i = 1; i <= VB_IPC_CM_PLACES; i++)
		if (vb_cm_client_has_place(c, i) &&
		    vb_place_has_gid(c->cm->adapters, i, gid))
			return true;
	return false;
}

/* The fabric's process gives each program its own queue pairs, and lets no
 * program send by a queue pair of another one. So this function need not check
 * which program has @qpn. It checks that @qpn is not a queue pair of
 * management. */
bool vb_cm_client_owns(const struct vb_cm_client *c, unsigned place,
		       uint32_t qpn)
{
	if (place)
		return vb_cm_client_has_place(c, place) &&
		       qpn >> VB_QPN_BITS != 0;
	return c->cm->owns(c->cm->owns_arg, &c->who, qpn);
}

static int take_claim(struct vb_cm_client *c, const struct vb_ipc_cm *m,
		      int *fd)
{
	const struct vb_place_claim claim = {
		.node_guid = m->guid,
		.port = (uint8_t)m->dst_port,
		.cm_agent = m->backlog,
		.sa_agent = m->listener,
		.wanted = m->place,
	};
	int rc = vb_place_find(c->cm->adapters, *fd, c->who.uid, &claim);

	if (rc != -ENOENT || !(m->flags & IPC_CM_AGENTS))
		return rc;
	rc = vb_place_add(c->cm->adapters, *fd, c->who.uid, &claim);
	if (rc > 0)
		*fd = -1;
	return rc;
}

int vb_cm_on_place(struct vb_cm_client *c, const struct vb_ipc_cm *m, int *fd)
{
	struct vb_ipc_cm done = { .kind = IPC_CM_DONE,
				  .version = VB_IPC_CM_VERSION,
				  .id = m->id,
				  .tid = m->tid };
	int rc;

	if (m->flags & IPC_CM_ONLY_PLACES)
		c->only_places = true;
	if (*fd < 0 || m->dst_port < 1 || m->dst_port > UINT8_MAX)
		return -EPROTO;
	rc = take_claim(c, m, fd);
	if (rc < 0) {
		done.status = -rc;
	} else {
		done.place = (uint8_t)rc;
		if (!vb_cm_client_has_place(c, done.place))
			vb_place_hold(c->cm->adapters, done.place);
		c->places |= UINT64_C(1) << (done.place - 1);
	}
	vb_cm_client_tell(c, &done);
	return 0;
}

void vb_cm_client_drop_places(struct vb_cm_client *c)
{
	for (unsigned i = 1; i <= VB_IPC_CM_PLACES; i++)
		if (vb_cm_client_has_place(c, i))
			vb_place_drop(c->cm->adapters, i);
	c->places = 0;
}

/* --- paths --- */

static uint8_t ack_timeout_of(const struct vb_sa_path *p)
{
	return (uint8_t)VB_MIN(VB_MAX(p->life + 1, LEAST_ACK_TIMEOUT),
			       MOST_ACK_TIMEOUT);
}

static void tell_route(const struct vb_cm_id *id, unsigned place, int error,
		       const struct vb_sa_path *p)
{
	struct vb_ipc_cm e = vb_cm_id_event(id, IPC_CM_ROUTE);

	e.status = -error;
	e.place = (uint8_t)place;
	if (error == 0) {
		e.src = p->sgid;
		e.dst = p->dgid;
		e.dlid = p->dlid;
		(void)vb_place_has_lid(id->client->cm->adapters, place, p->slid,
				       &e.path_bits);
		e.sl = p->sl;
		e.rate = p->rate;
		e.mtu = p->mtu;
		e.pkey = p->pkey;
		e.tclass = p->tclass;
		e.hop_limit = p->hop_limit;
		e.flow_label = p->flow_label;
		e.ack_timeout = ack_timeout_of(p);
	}
	vb_cm_client_tell(id->client, &e);
}

/* Does @path, which the subnet administrator has answered, lead between the
 * ports that @want names, in the partition that @want names? */
static bool is_wanted(const struct vb_host_cm *cm, unsigned place,
		      const struct vb_sa_path *want,
		      const struct vb_sa_path *path)
{
	uint8_t bits;

	return vb_gid_equal(&want->dgid, &path->dgid) &&
	       vb_gid_equal(&want->sgid, &path->sgid) &&
	       !((want->pkey ^ path->pkey) & VB_PKEY_NUMBER) &&
	       vb_place_has_lid(cm->adapters, place, path->slid, &bits);
}

static void take_path(struct vb_sa_request *r, int error, const uint8_t *mad,
		      size_t len)
{
	struct vb_cm_route *route =
		VB_CONTAINER_OF(r, struct vb_cm_route, request);
	struct vb_cm_id *id = route->id;
	struct vb_host_cm *cm = id->client->cm;
	struct vb_sa_path path;

	if (error == 0 && (!vb_sa_path_get(mad, &path) ||
			   !is_wanted(cm, route->place, &route->want, &path)))
		error = -EINVAL;
	if (error == 0)
		vb_sa_keep(cm->sa, route->place, &route->want, &path, cm->now);
	tell_route(id, route->place, error, &path);
	id->route = NULL;
	free(route);
}

/* Begins a request of @id about its place, which @done ends. NULL: no memory.
 */
static struct vb_cm_route *begin_route(struct vb_cm_id *id, unsigned place,
				       void (*done)(struct vb_sa_request *, int,
						    const uint8_t *, size_t))
{
	struct vb_cm_route *route = calloc(1, sizeof(*route));

	if (!route)
		return NULL;
	route->id = id;
	route->place = place;
	route->request.done = done;
	id->route = route;
	return route;
}

/* Asks the subnet administrator for the path of @id, by the same components as
 * Linux's rdma_cm. */
static int ask_path(struct vb_cm_id *id, const struct vb_ipc_cm *m,
		    const struct vb_sa_path *want)
{
	const struct vb_sa_hdr h = {
		.method = SA_GET,
		.attr_id = SA_PATH,
		.mask = SA_PATH_DGID | SA_PATH_SGID | SA_PATH_PKEY |
			SA_PATH_NUMB_PATH | SA_PATH_REVERSIBLE |
			SA_PATH_SERVICE_ID |
			(m->flags & IPC_CM_QOS_CLASS ? SA_PATH_QOS_CLASS
						     : SA_PATH_TCLASS),
	};
	struct vb_host_cm *cm = id->client->cm;
	struct vb_cm_route *route = begin_route(id, m->place, take_path);
	uint8_t mad[VB_MAD_BYTES];

	if (!route)
		return -ENOMEM;
	route->want = *want;
	vb_sa_path_put(mad, &h, want);
	vb_sa_ask(cm->sa, &route->request, m->place, &h, mad, m->timeout_ms,
		  cm->now);
	return 0;
}

static int cm_places_check(const struct vb_cm_client *c,
			   const struct vb_ipc_cm *m)
{
	if (!vb_cm_client_has_place(c, m->place))
		return -EPERM;
	if (!vb_place_has_gid(c->cm->adapters, m->place, &m->src))
		return -EADDRNOTAVAIL;
	return vb_place_pkey_index(c->cm->adapters, m->place, m->pkey) < 0
		       ? -EINVAL
		       : 0;
}

int vb_cm_on_path(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);
	struct vb_sa_path want, path;
	int rc;

	if (!id || id->route)
		return -EPROTO;
	memset(&want, 0, sizeof(want));
	want.service_id = vb_ipc_cm_service(m->space, m->dst_port);
	want.dgid = m->dst;
	want.sgid = m->src;
	if (m->flags & IPC_CM_QOS_CLASS)
		want.qos_class = m->tclass;
	else
		want.tclass = m->tclass;
	want.pkey = m->pkey;
	want.reversible = 1;
	want.numb_path = 1;
	rc = cm_places_check(c, m);
	if (rc == 0 &&
	    vb_sa_recall(c->cm->sa, m->place, &want, &path, c->cm->now)) {
		tell_route(id, m->place, 0, &path);
		return 0;
	}
	if (rc == 0)
		rc = ask_path(id, m, &want);
	if (rc)
		tell_route(id, m->place, rc, NULL);
	return 0;
}

/* --- services --- */

/* Puts the services of the answer into the event, as many as there is room
 * for. */
static void pack_services(struct vb_ipc_cm *e, const uint8_t *mad, size_t len)
{
	struct vb_writer w = { e->private_data };
	struct vb_sa_service s;
	struct vb_sa_hdr h;
	unsigned count;

	if (!vb_sa_hdr_get(mad, len, &h))
		return;
	count = VB_MIN(vb_sa_service_count(&h, len), VB_IPC_CM_SERVICES);
	for (unsigned i = 0; i < count; i++) {
		if (!vb_sa_service_get(mad, &h, i, &s))
			continue;
		vb_put_be(&w, s.id, 8);
		vb_put_be(&w, s.pkey, 2);
		memcpy(w.at, s.gid.raw, sizeof(s.gid.raw));
		w.at += sizeof(s.gid.raw);
	}
	e->private_bytes = (uint8_t)(w.at - e->private_data);
}

static void tell_services(const struct vb_cm_id *id, int error,
			  const uint8_t *mad, size_t len)
{
	struct vb_ipc_cm e = vb_cm_id_event(id, IPC_CM_SERVICES);

	if (error == 0)
		pack_services(&e, mad, len);
	e.status = error == 0 && !e.private_bytes ? EINVAL : -error;
	vb_cm_client_tell(id->client, &e);
}

static void take_services(struct vb_sa_request *r, int error,
			  const uint8_t *mad, size_t len)
{
	struct vb_cm_route *route =
		VB_CONTAINER_OF(r, struct vb_cm_route, request);

	route->id->route = NULL;
	tell_services(route->id, error, mad, len);
	free(route);
}

int vb_cm_on_service(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	const bool named = m->private_bytes != 0;
	const struct vb_sa_hdr h = {
		.method = SA_GET_TABLE,
		.attr_id = SA_SERVICE,
		.mask = named ? SA_SERVICE_NAME : SA_SERVICE_ID,
	};
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);
	struct vb_sa_service want = { .id = m->guid };
	uint8_t mad[VB_MAD_BYTES];
	struct vb_cm_route *route;

	if (!id || id->route || m->private_bytes >= sizeof(want.name))
		return -EPROTO;
	if (!vb_cm_client_has_place(c, m->place)) {
		tell_services(id, -EPERM, NULL, 0);
		return 0;
	}
	route = begin_route(id, m->place, take_services);
	if (!route) {
		tell_services(id, -ENOMEM, NULL, 0);
		return 0;
	}
	memcpy(want.name, m->private_data, m->private_bytes);
	vb_sa_service_put(mad, &h, &want);
	vb_sa_ask(c->cm->sa, &route->request, m->place, &h, mad, m->timeout_ms,
		  c->cm->now);
	return 0;
}

/* --- groups --- */

static void tell_group(const struct vb_cm_id *id, const struct vb_gid *asked,
		       int error, const struct vb_sa_mcmember *g)
{
	struct vb_ipc_cm e = vb_cm_id_event(id, IPC_CM_GROUP);

	e.status = -error;
	e.src = e.dst = *asked;
	if (error == 0 || error == -ENETRESET) {
		e.dst = g->mgid;
		e.dlid = g->mlid;
		e.qkey = g->qkey;
		e.pkey = g->pkey;
		e.sl = g->sl;
		e.rate = g->rate;
		e.mtu = g->mtu;
		e.tclass = g->tclass;
		e.hop_limit = g->hop_limit;
		e.flow_label = g->flow_label;
	}
	vb_cm_client_tell(id->client, &e);
}

static void take_joined(void *arg, void *owner, const struct vb_gid *asked,
			int error, const struct vb_sa_mcmember *m)
{
	(void)arg;
	tell_group(owner, asked, error, m);
}

/* The components that Linux's rdma_cm gives, which suffice to make a group; in
 * the port space IPoIB they are those of the broadcast group. */
int vb_cm_on_group_join(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	uint64_t mask =
		SA_MC_MGID | SA_MC_PORT_GID | SA_MC_JOIN_STATE | SA_MC_PKEY;
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);
	struct vb_sa_mcmember want;
	int rc;

	if (!id)
		return -EPROTO;
	if (m->space != VB_IPC_CM_IPOIB)
		mask |= SA_MC_QKEY | SA_MC_SL | SA_MC_FLOW_LABEL | SA_MC_TCLASS;
	memset(&want, 0, sizeof(want));
	want.mgid = m->dst;
	want.port_gid = m->src;
	want.qkey = m->qkey;
	want.pkey = m->pkey;
	want.tclass = m->tclass;
	want.join_state = m->flags & IPC_CM_SENDS_ONLY
				  ? SA_SEND_ONLY_FULL_MEMBER
				  : SA_FULL_MEMBER;
	rc = cm_places_check(c, m);
	if (rc == 0)
		rc = vb_sa_group_join(c->cm->groups, id, m->place, &want, mask,
				      m->timeout_ms, c->cm->now);
	if (rc)
		tell_group(id, &m->dst, rc, NULL);
	return 0;
}

int vb_cm_on_group_leave(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);

	if (id)
		vb_sa_group_leave(c->cm->groups, id, m->place, &m->dst);
	return 0;
}

void vb_cm_id_leave_places(struct vb_cm_id *id)
{
	if (id->route) {
		vb_sa_cancel(&id->route->request);
		free(id->route);
		id->route = NULL;
	}
	if (id->client->places)
		vb_sa_groups_forget(id->client->cm->groups, id);
}

/* --- messages from fabrics --- */

static void take_cm(void *arg, const struct vb_mad_path *back,
		    const uint8_t *bytes, size_t len)
{
	struct vb_host_cm *cm = arg;

	vb_cm_recv(cm->engine, back, bytes, len, cm->now);
}

static void take_sa(void *arg, unsigned place, bool silent,
		    const uint8_t *bytes, size_t len)
{
	const struct vb_host_cm *cm = arg;

	vb_sa_hear(cm->sa, place, silent, bytes, len);
}

static void take_change(void *arg, unsigned place, unsigned what)
{
	const struct vb_host_cm *cm = arg;

	vb_sa_forget(cm->sa, place);
	if (what & PLACE_ENDED)
		vb_sa_end(cm->sa, place);
	else
		vb_sa_groups_rejoin(cm->groups, place, cm->now);
}

/* --- creation and end --- */

int vb_host_cm_open_places(struct vb_host_cm *cm)
{
	const struct vb_place_ops ops = { take_cm, take_sa, take_change, cm };
	int rc = vb_places_create(&ops, &cm->adapters);

	if (rc)
		return rc;
	cm->adapters_until = VB_NEVER;
	cm->sa = vb_sa_create(cm->adapters);
	if (cm->sa)
		cm->groups = vb_sa_groups_create(cm->sa, take_joined, cm);
	return cm->groups ? 0 : -ENOMEM;
}

void vb_host_cm_close_places(struct vb_host_cm *cm)
{
	if (cm->groups)
		vb_sa_groups_destroy(cm->groups);
	if (cm->sa)
		vb_sa_destroy(cm->sa);
	if (cm->adapters)
		vb_places_destroy(cm->adapters);
}

vb_time vb_host_cm_places_deadline(const struct vb_host_cm *cm)
{
	return VB_MIN(vb_sa_deadline(cm->sa), cm->adapters_until);
}

/* Gives up the adapters that no program uses, because a fabric ends only when
 * nobody uses it any more. While connections still tell their ends to their
 * peers, the adapters are kept, but for STAY at most. */
static void reap_places(struct vb_host_cm *cm)
{
	if (!vb_place_is_idle(cm->adapters)) {
		cm->adapters_until = VB_NEVER;
		return;
	}
	if (cm->adapters_until == VB_NEVER)
		cm->adapters_until = cm->now + STAY;
	if (vb_cm_busy(cm->engine) && cm->now < cm->adapters_until)
		return;
	vb_place_reap(cm->adapters);
	cm->adapters_until = VB_NEVER;
}

void vb_host_cm_tick_places(struct vb_host_cm *cm)
{
	vb_sa_tick(cm->sa, cm->now);
	reap_places(cm);
}
