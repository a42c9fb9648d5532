/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, and ids that are made in one call. */
#include "front/rdmacm/rdmacm.h"

#include <netdb.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

static int copy_address(const struct addrinfo *from, struct sockaddr **to,
			socklen_t *len)
{
	*to = calloc(1, sizeof(struct sockaddr_storage));
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from->ai_addr, from->ai_addrlen);
	*len = from->ai_addrlen;
	return 0;
}

static bool is_passive(const struct rdma_addrinfo *hints)
{
	return hints && hints->ai_flags & RAI_PASSIVE;
}

/* Either says so, and what the other says then follows from it. */
static bool wants_datagrams(const struct rdma_addrinfo *hints)
{
	if (!hints)
		return false;
	if (hints->ai_qp_type)
		return hints->ai_qp_type == IBV_QPT_UD;
	return hints->ai_port_space == RDMA_PS_UDP ||
	       hints->ai_port_space == RDMA_PS_IPOIB;
}

/* As getaddrinfo() says: 0, or an EAI_ number. */
static int look_up(const char *node, const char *service,
		   const struct rdma_addrinfo *hints, struct addrinfo **found)
{
	struct addrinfo h = { .ai_socktype = wants_datagrams(hints)
						     ? SOCK_DGRAM
						     : SOCK_STREAM };

	if (is_passive(hints))
		h.ai_flags |= AI_PASSIVE;
	if (hints && hints->ai_flags & RAI_NUMERICHOST)
		h.ai_flags |= AI_NUMERICHOST;
	if (hints &&
	    (hints->ai_flags & RAI_FAMILY || hints->ai_family == AF_INET ||
	     hints->ai_family == AF_INET6))
		h.ai_family = hints->ai_family;
	return getaddrinfo(node, service, &h, found);
}

VB_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_connect);
		free(res->ai_route);
		free(res);
		res = next;
	}
}

static int copy_source(struct rdma_addrinfo *r,
		       const struct rdma_addrinfo *hints)
{
	const struct addrinfo src = { .ai_addr = hints->ai_src_addr,
				      .ai_addrlen = hints->ai_src_len };

	if (!hints->ai_src_addr ||
	    hints->ai_src_len > sizeof(struct sockaddr_storage))
		return 0;
	return copy_address(&src, &r->ai_src_addr, &r->ai_src_len);
}

/* @a: who was looked up; NULL: nobody, the hints are all there is. */
static struct rdma_addrinfo *convert(const struct addrinfo *a,
				     const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	bool ud = wants_datagrams(hints);
	int rc = 0;

	if (!r)
		return NULL;
	r->ai_flags = hints ? hints->ai_flags : 0;
	r->ai_family = a ? a->ai_family : hints->ai_family;
	r->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space
			   : ud				 ? RDMA_PS_UDP
							 : RDMA_PS_TCP;
	r->ai_qp_type = hints && hints->ai_qp_type ? hints->ai_qp_type
			: ud			   ? IBV_QPT_UD
						   : IBV_QPT_RC;
	if (a && is_passive(hints))
		rc = copy_address(a, &r->ai_src_addr, &r->ai_src_len);
	else if (a)
		rc = copy_address(a, &r->ai_dst_addr, &r->ai_dst_len);
	if (rc == 0 && hints && !(a && is_passive(hints)))
		rc = copy_source(r, hints);
	if (rc) {
		rdma_freeaddrinfo(r);
		return NULL;
	}
	return r;
}

VB_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	struct rdma_addrinfo **last = res;
	struct addrinfo *found;
	int rc;

	if (!res || (!node && !service && !hints))
		return rcm_fail(EINVAL);
	if (!node && !service) {
		*res = convert(NULL, hints);
		return *res ? 0 : rcm_fail(ENOMEM);
	}
	rc = look_up(node, service, hints, &found);
	if (rc)
		return rc;
	*res = NULL;
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		*last = convert(a, hints);
		if (!*last)
			break;
		last = &(*last)->ai_next;
	}
	freeaddrinfo(found);
	return *res ? 0 : rcm_fail(ENOMEM);
}

static int keep_attributes(struct rcm_id *id, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	id->ep_attr = malloc(sizeof(*id->ep_attr));
	if (!id->ep_attr)
		return -1;
	*id->ep_attr = *attr;
	id->ep_attr->qp_type = id->pub.qp_type;
	id->ep_pd = pd;
	return 0;
}

static int make_active(struct rcm_id *id, const struct rdma_addrinfo *res,
		       struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr,
			      2000) ||
	    rdma_resolve_route(&id->pub, 2000))
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
		return rcm_fail(EINVAL);
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
		return rcm_fail(error);
	}
	return 0;
}

VB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	(void)rdma_destroy_id(id);
}

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
		return rcm_fail(EINVAL);
	if (listen->event) {
		(void)rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &e))
		return -1;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		(void)rdma_ack_cm_event(e);
		return rcm_fail(EINVAL);
	}
	if (equip(l, e->id)) {
		int error = errno;

		rdma_destroy_ep(e->id);
		(void)rdma_ack_cm_event(e);
		return rcm_fail(error);
	}
	*pub = e->id;
	(*pub)->event = e;
	return 0;
}
