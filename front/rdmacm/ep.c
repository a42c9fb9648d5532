/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_ep(), rdma_destroy_ep() and rdma_get_request(): an id, its
 * addresses and its queue pair in one synchronous call. */
#include "front/rdmacm/rdmacm.h"

#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

/* Stores a copy of @attr at the listener @id: rdma_get_request() makes the
 * queue pair of each request with it and @pd. */
static int keep_attributes(struct rcm_id *id, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	id->ep_attr = malloc(sizeof(*id->ep_attr));
	if (!id->ep_attr)
		return rcm_fail_of(ENOMEM, "rdma_create_ep");
	*id->ep_attr = *attr;
	id->ep_attr->qp_type = id->pub.qp_type;
	id->ep_pd = pd;
	return 0;
}

/* Stores the bytes of ai_connect, with which the private data of every later
 * request begins. */
static int keep_connect(struct rcm_id *id, const struct rdma_addrinfo *res)
{
	if (res->ai_connect_len == 0)
		return 0;
	if (res->ai_connect_len > sizeof(id->connect) || !res->ai_connect)
		return rcm_why_refuse(id, "rdma_create_ep",
				      "ai_connect_len is too large");
	memcpy(id->connect, res->ai_connect, res->ai_connect_len);
	id->connect_bytes = (unsigned)res->ai_connect_len;
	return 0;
}

/* Finds the route of @id, from the path record that came with the addresses if
 * there is one. */
static int find_route(struct rcm_id *id, const struct rdma_addrinfo *res)
{
	if (res->ai_route_len == 0)
		return rdma_resolve_route(&id->pub, 2000);
	if (rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			    res->ai_route, res->ai_route_len))
		return -1;
	return rcm_event_complete(id);
}

static int make_active(struct rcm_id *id, const struct rdma_addrinfo *res,
		       struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr,
			      2000) ||
	    find_route(id, res) || keep_connect(id, res))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = id->pub.qp_type;
	return rdma_create_qp(&id->pub, pd, attr);
}

VB_EXPORT int rdma_create_ep(struct rdma_cm_id **pub, struct rdma_addrinfo *res,
			     struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rcm_id *id;
	int rc;

	if (!res)
		return rcm_why_refuse(NULL, __func__, "there is no address");
	rc = rcm_id_make(NULL, pub, NULL,
			 (enum rdma_port_space)res->ai_port_space,
			 (enum ibv_qp_type)res->ai_qp_type);
	if (rc)
		return rcm_fail(-rc);
	id = rcm_id_of(*pub);
	if (res->ai_flags & RAI_PASSIVE)
		rc = rdma_bind_addr(*pub, res->ai_src_addr) ||
				     keep_attributes(id, pd, attr)
			     ? -1
			     : 0;
	else
		rc = make_active(id, res, pd, attr);
	if (rc) {
		int error = errno;

		rdma_destroy_ep(*pub);
		return rcm_pass(error);
	}
	return 0;
}

VB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	(void)rdma_destroy_id(id);
}

/* Makes a request's id synchronous, and gives it the queue pair that the
 * listener's attributes describe. */
static int equip(struct rcm_id *listener, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;

	if (rdma_migrate_id(id, NULL))
		return -1;
	if (!listener->ep_attr)
		return 0;
	attr = *listener->ep_attr;
	return rdma_create_qp(id, listener->ep_pd, &attr);
}

VB_EXPORT int rdma_get_request(struct rdma_cm_id *listen,
			       struct rdma_cm_id **pub)
{
	struct rcm_id *l = rcm_id_of(listen);
	struct rdma_cm_event *e;

	if (!l->sync)
		return rcm_why_refuse(
			l, __func__,
			"the listener has an event channel, whose "
			"events rdma_get_cm_event reads");
	if (listen->event) {
		(void)rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &e))
		return -1;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		listen->event = e;
		vb_why(WHY_CM_CALL, (uintptr_t)l,
		       "rdmacm: rdma_get_request: the listener got %s, status "
		       "%d, instead of a request",
		       rdma_event_str(e->event), e->status);
		return rcm_fail(e->status < 0 ? -e->status : EINVAL);
	}
	if (equip(l, e->id)) {
		int error = errno;

		rdma_destroy_ep(e->id);
		(void)rdma_ack_cm_event(e);
		return rcm_pass(error);
	}
	*pub = e->id;
	(*pub)->event = e;
	return 0;
}
