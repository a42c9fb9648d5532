/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo() and its event-driven form rdma_resolve_addrinfo(): host
 * names, service names and numeric addresses to struct rdma_addrinfo. */
#include "front/rdmacm/rdmacm.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);

/* Returns whether the result is an AF_IB address. Such addresses are GIDs, and
 * GIDs have no names: as rdma_getaddrinfo(3) says, the caller gets AF_IB only
 * for RAI_FAMILY with RAI_NUMERICHOST. A caller that gives a name gets IP
 * addresses, which reach the same devices. */
static bool is_gid(const struct rdma_addrinfo *hints)
{
	const int both = RAI_FAMILY | RAI_NUMERICHOST;

	return hints && hints->ai_family == AF_IB &&
	       (hints->ai_flags & both) == both;
}

static int addrinfo_copy_address(const struct addrinfo *from,
				 struct sockaddr **to, socklen_t *len)
{
	*to = calloc(1, sizeof(struct sockaddr_storage));
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from->ai_addr, from->ai_addrlen);
	*len = from->ai_addrlen;
	return 0;
}

/* Makes an AF_IB address of the IPv6 address @a: its 16 bytes are the GID. */
static int copy_gid(const struct addrinfo *a, int space, struct sockaddr **to,
		    socklen_t *len)
{
	const struct sockaddr_in6 *from =
		(const struct sockaddr_in6 *)a->ai_addr;
	const struct vb_gid gid = rcm_gid_of(a->ai_addr);
	struct sockaddr_ib *sib = calloc(1, sizeof(struct sockaddr_storage));

	*to = (struct sockaddr *)sib;
	if (!sib)
		return -ENOMEM;
	rcm_address_of_ib(*to, &gid, (uint16_t)space, rcm_port_of(a->ai_addr));
	sib->sib_flowinfo = from->sin6_flowinfo;
	sib->sib_scope_id = from->sin6_scope_id;
	*len = sizeof(*sib);
	return 0;
}

static int copy_found(struct rdma_addrinfo *r, const struct addrinfo *a,
		      const struct rdma_addrinfo *hints)
{
	const bool passive = hints && hints->ai_flags & RAI_PASSIVE;
	struct sockaddr **to = passive ? &r->ai_src_addr : &r->ai_dst_addr;
	socklen_t *len = passive ? &r->ai_src_len : &r->ai_dst_len;

	if (!is_gid(hints))
		return addrinfo_copy_address(a, to, len);
	r->ai_family = AF_IB;
	return copy_gid(a, r->ai_port_space, to, len);
}

static bool is_passive(const struct rdma_addrinfo *hints)
{
	return hints && hints->ai_flags & RAI_PASSIVE;
}

/* True if the program wants datagrams. The queue pair type in @hints decides;
 * without one, their port space decides. */
static bool wants_datagrams(const struct rdma_addrinfo *hints)
{
	if (!hints)
		return false;
	if (hints->ai_qp_type)
		return hints->ai_qp_type == IBV_QPT_UD;
	return hints->ai_port_space == RDMA_PS_UDP ||
	       hints->ai_port_space == RDMA_PS_IPOIB;
}

/* Looks up names by getaddrinfo(), and returns its result: 0, or an EAI_*
 * number. */
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
	if (is_gid(hints)) {
		h.ai_family = AF_INET6;
		h.ai_flags |= AI_V4MAPPED;
	} else if (hints && hints->ai_family != AF_IB) {
		h.ai_family = hints->ai_family;
	}
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

static int copy_hint(struct sockaddr *hint, socklen_t bytes,
		     struct sockaddr **to, socklen_t *len)
{
	const struct addrinfo a = { .ai_addr = hint, .ai_addrlen = bytes };

	if (bytes > sizeof(struct sockaddr_storage))
		return -EINVAL;
	return addrinfo_copy_address(&a, to, len);
}

/* Makes one result. @a is an address that was found; if @a is NULL, the caller
 * gave neither node nor service, and the result is made only of @hints.
 * Returns NULL without memory, or if an address in @hints is too long. */
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
	if (a)
		rc = copy_found(r, a, hints);
	else if (hints->ai_dst_addr)
		rc = copy_hint(hints->ai_dst_addr, hints->ai_dst_len,
			       &r->ai_dst_addr, &r->ai_dst_len);
	if (rc == 0 && hints && hints->ai_src_addr && !r->ai_src_addr)
		rc = copy_hint(hints->ai_src_addr, hints->ai_src_len,
			       &r->ai_src_addr, &r->ai_src_len);
	if (rc) {
		rdma_freeaddrinfo(r);
		return NULL;
	}
	return r;
}

/* Makes the results for @node and @service; NULL, with 0: no memory. Returns 0,
 * or an EAI_* number. */
static int find_all(const char *node, const char *service,
		    const struct rdma_addrinfo *hints,
		    struct rdma_addrinfo **res)
{
	struct rdma_addrinfo **last = res;
	struct addrinfo *found;
	int rc;

	*res = NULL;
	if (!node && !service) {
		*res = convert(NULL, hints);
		return 0;
	}
	rc = look_up(node, service, hints, &found);
	if (rc) {
		vb_why(WHY_CM_ADDRESS, (unsigned)rc,
		       "rdmacm: rdma_getaddrinfo of %.100s, service %.40s: %s",
		       node ? node : "(none)", service ? service : "(none)",
		       rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return rc;
	}
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		*last = convert(a, hints);
		if (!*last)
			break;
		last = &(*last)->ai_next;
	}
	freeaddrinfo(found);
	return 0;
}

/* Does a request for a service of the subnet administrator have an argument
 * that makes no sense there? These are a node, because the administrator's
 * answer says which nodes have the service, and the flag for DNS, which does
 * not know such services. */
static bool asks_badly(const char *node, const struct rdma_addrinfo *hints)
{
	return node || hints->ai_flags & RCM_RAI_DNS;
}

/* Says why a service is not found; @rc is -errno. Returns what rcm_fail() does.
 */
static int refuse_service(const struct rcm_id *id, const char *call, int rc)
{
	vb_why(WHY_CM_CALL, (uintptr_t)id,
	       "rdmacm: %s of a service of an InfiniBand subnet: %s", call,
	       rc == -EOPNOTSUPP
		       ? "the id's port is of no such subnet, or the call has "
			 "a node or RAI_DNS"
	       : rc == -ENOENT ? "this program has no InfiniBand adapter"
	       : rc == -EINVAL ? "no port has the service, its name is too "
				 "long, or the id is not bound to a port"
			       : strerror(-rc));
	return rcm_pass(-rc);
}

VB_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	int rc;

	if (!res || (!node && !service && !hints))
		return rcm_why_refuse(NULL, __func__,
				      "it needs a place for the result, and "
				      "node, service or hints");
	if (hints && hints->ai_flags & RCM_RAI_SA) {
		rc = asks_badly(node, hints) ? -EOPNOTSUPP
					     : rcm_service_find(service, res);
		return rc ? refuse_service(NULL, __func__, rc) : 0;
	}
	rc = find_all(node, service, hints, res);
	if (rc)
		return rc;
	if (!*res)
		return rcm_fail(ENOMEM);
	if (!is_passive(hints))
		rcm_acm_resolve(res, hints);
	return 0;
}

/* Begins a resolution of @id. An id has one resolution at a time, which lasts
 * until the program collects the result with rdma_query_addrinfo(). -EBUSY: @id
 * has one already. */
static int begin_resolving(struct rcm_id *id)
{
	bool busy;

	pthread_mutex_lock(&rcm.lock);
	busy = id->resolving;
	id->resolving = true;
	pthread_mutex_unlock(&rcm.lock);
	return busy ? -EBUSY : 0;
}

static void end_resolving(struct rcm_id *id)
{
	struct rdma_addrinfo *info;

	pthread_mutex_lock(&rcm.lock);
	info = id->resolved;
	id->resolved = NULL;
	id->resolving = false;
	pthread_mutex_unlock(&rcm.lock);
	rdma_freeaddrinfo(info);
}

/* Does what rdma_getaddrinfo() does, but returns -errno: an EAI_* number other
 * than EAI_SYSTEM is no errno and becomes -ENODATA. */
static int look_up_for(const char *node, const char *service,
		       const struct rdma_addrinfo *hints,
		       struct rdma_addrinfo **info)
{
	int rc = rdma_getaddrinfo(node, service, hints, info);

	if (rc == 0)
		return 0;
	return rc == -1 || rc == EAI_SYSTEM ? -errno : -ENODATA;
}

/* Does the whole resolution in this call, and queues its event. */
static int resolve_here(struct rcm_id *id, const char *node,
			const char *service, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info;
	int rc = look_up_for(node, service, hints, &info);

	if (rc)
		return rc;
	pthread_mutex_lock(&rcm.lock);
	id->resolved = info;
	pthread_mutex_unlock(&rcm.lock);
	return rcm_event_local(
		id, (enum rdma_cm_event_type)RCM_EVENT_ADDRINFO_RESOLVED, 0);
}

VB_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node,
				    const char *service,
				    const struct rdma_addrinfo *hints)
{
	int rc;

	if (!pub)
		return rcm_why_refuse(NULL, __func__, "there is no id");
	rc = begin_resolving(rcm_id_of(pub));
	if (rc) {
		vb_why(WHY_CM_CALL, (uintptr_t)pub,
		       "rdmacm: rdma_resolve_addrinfo refused: the id resolves "
		       "already, and rdma_query_addrinfo has not collected the "
		       "result");
		return rcm_fail(-rc);
	}
	if (!hints || !(hints->ai_flags & RCM_RAI_SA))
		rc = resolve_here(rcm_id_of(pub), node, service, hints);
	else if (asks_badly(node, hints))
		rc = -EOPNOTSUPP;
	else
		rc = rcm_service_ask(rcm_id_of(pub), service);
	if (rc && hints && hints->ai_flags & RCM_RAI_SA) {
		end_resolving(rcm_id_of(pub));
		return refuse_service(rcm_id_of(pub), __func__, rc);
	}
	if (rc) {
		end_resolving(rcm_id_of(pub));
		return rcm_pass(-rc);
	}
	return rcm_event_complete(rcm_id_of(pub));
}

VB_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *pub,
				  struct rdma_addrinfo **info)
{
	struct rcm_id *id;

	if (!pub || !info)
		return rcm_why_refuse(NULL, __func__,
				      "there is no id, or no place for the "
				      "result");
	id = rcm_id_of(pub);
	pthread_mutex_lock(&rcm.lock);
	*info = id->resolved;
	id->resolved = NULL;
	if (*info)
		id->resolving = false;
	pthread_mutex_unlock(&rcm.lock);
	if (*info)
		return 0;
	vb_why(WHY_CM_CALL, (uintptr_t)id,
	       "rdmacm: rdma_query_addrinfo refused: the id has resolved "
	       "nothing, or the result is collected already");
	return rcm_fail(ENOENT);
}
