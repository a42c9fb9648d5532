/* SPDX-License-Identifier: BSD-2-Clause */
/* A router's questions to the subnet administrators of its ports
 * (IBA 15.2.5.16): by which path does it reach a destination in that subnet? */
#include "mgmt/nodes_priv.h"
#include "wire/sa.h"

#define PATIENCE_MS 500
#define RETRIES	    3

/* Returns the agent of the port that asks for paths; -1: no memory. */
static int path_agent_of(struct mgmt_port *p, struct vb_agents *a)
{
	const struct vb_agent_wish wish = {
		.class = MAD_CLASS_SA,
		.class_version = VB_SA_CLASS_VERSION,
	};

	if (p->path_agent < 0)
		p->path_agent = vb_agents_register(a, p, &wish);
	return p->path_agent;
}

static void put_path_question(const struct vb_fab_port *p,
			      const struct vb_gid *dgid, uint32_t question,
			      uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_sa_hdr h = {
		.method = SA_GET,
		.attr_id = SA_PATH,
		.tid = question,
		.mask = SA_PATH_DGID | SA_PATH_SGID | SA_PATH_REVERSIBLE |
			SA_PATH_NUMB_PATH,
	};
	struct vb_sa_path path = { .dgid = *dgid,
				   .reversible = 1,
				   .numb_path = 1 };

	vb_store_be(path.sgid.raw, p->gid_prefix, 8);
	vb_store_be(path.sgid.raw + 8, p->guid, 8);
	vb_sa_path_put(mad, &h, &path);
}

/* True: the subnet administrator will be asked, and its answer or a time-out
 * comes to vb_mgmt_deliver(). */
static bool ask_sa(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		   const struct vb_gid *dgid, uint32_t question, vb_time now)
{
	const struct vb_fab_port *p = &node->port[port];
	struct vb_agents *a = vb_mgmt_agents(m, node, port);
	struct mgmt_node *n = node->mgmt;
	int agent = a ? path_agent_of(&n->port[port], a) : -1;
	uint8_t mad[VB_MAD_BYTES];
	const struct vb_mad_send s = {
		.agent = (uint32_t)agent,
		.to = { .qpn = VB_GSI_QPN,
			.qkey = VB_GSI_QKEY,
			.lid = p->sm_lid,
			.sl = p->sm_sl },
		.timeout_ms = PATIENCE_MS,
		.retries = RETRIES,
		.bytes = mad,
		.len = VB_MAD_BYTES,
	};

	if (agent < 0 || !p->sm_lid)
		return false;
	put_path_question(p, dgid, question, mad);
	return vb_agents_send(a, &n->port[port], &s, now) == 0;
}

void vb_mgmt_ask_path(struct vb_mgmt *m, struct vb_fab_node *node, uint8_t port,
		      const struct vb_gid *dgid, uint32_t question, vb_time now)
{
	if (!ask_sa(m, node, port, dgid, question, now))
		m->ops.path_is(m->ops.arg, node, question, PATH_UNANSWERED,
			       NULL);
}

/* Read the answer @d to a question about a path; if the path is known, store it
 * in *@to. Only a status of the subnet administrator's class says that there is
 * no path; a general one, such as "unsupported", leaves the question
 * unanswered. */
static enum vb_fab_answer read_path_answer(const struct vb_mad_delivery *d,
					   struct vb_fab_path *to)
{
	struct vb_sa_path path;
	struct vb_sa_hdr h;

	if (d->status || !vb_sa_hdr_get(d->bytes, d->len, &h) ||
	    h.method != SA_GET_RESP || h.attr_id != SA_PATH)
		return PATH_UNANSWERED;
	if (h.status)
		return h.status >> 8 ? PATH_NONE : PATH_UNANSWERED;
	if (!vb_sa_path_get(d->bytes, &path))
		return PATH_NONE;
	*to = (struct vb_fab_path){ .dlid = path.dlid,
				    .sl = path.sl,
				    .mtu = path.mtu };
	return PATH_KNOWN;
}

void vb_mgmt_deliver(void *arg, void *client, const struct vb_mad_delivery *d)
{
	struct mgmt_port *p = arg;
	const struct vb_mgmt_ops *o = &p->owner->m->ops;
	enum vb_fab_answer answer;
	struct vb_fab_path path;

	if (client != p) {
		o->deliver(o->arg, client, d);
		return;
	}
	if (d->len < VB_MAD_HDR_BYTES)
		return;
	answer = read_path_answer(d, &path);
	/* The lower half of the transaction ID is the question's number. */
	o->path_is(o->arg, p->owner->node,
		   (uint32_t)vb_load_be(d->bytes + 12, 4), answer, &path);
}
