/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services of InfiniBand: the broker asks the subnet administrator which ports
 * have a service (IPC_CM_SERVICE), by its ID or its name. The ports arrive with
 * an event, and become the result of rdma_resolve_addrinfo().
 */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define ASK_MS	  2000 /* how long an administrator may take, as on Linux */
#define MOST_NAME 63

/* Puts the ID of the service into @m if @service is a number, else its name. */
static int name_service(struct vb_ipc_cm *m, const char *service)
{
	size_t len = strlen(service);
	char *end;

	errno = 0;
	m->guid = strtoull(service, &end, 0);
	if (!errno && end != service && !*end)
		return 0;
	m->guid = 0;
	if (len == 0 || len > MOST_NAME)
		return -EINVAL;
	m->private_bytes = (uint8_t)len;
	memcpy(m->private_data, service, len);
	return 0;
}

int rcm_service_ask(const struct rcm_id *id, const char *service)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_SERVICE);
	int rc;

	if (!service || !id->device || id->state != RCM_BOUND)
		return -EINVAL;
	if (!rcm_is_ib(id))
		return -EOPNOTSUPP;
	m.place = id->path.place;
	m.src = id->path.src;
	m.timeout_ms = ASK_MS;
	rc = name_service(&m, service);
	return rc ? rc : rcm_session_tell(&m);
}

/* Makes the result of one service: the AF_IB address of a port. NULL: no
 * memory. */
static struct rdma_addrinfo *result_of(struct vb_reader *r)
{
	struct rdma_addrinfo *n = calloc(1, sizeof(*n));
	struct sockaddr_ib *sib = calloc(1, sizeof(*sib));

	if (!n || !sib) {
		free(n);
		free(sib);
		return NULL;
	}
	sib->sib_family = AF_IB;
	sib->sib_sid = htobe64(vb_get_be64(r));
	sib->sib_sid_mask = htobe64(UINT64_MAX);
	sib->sib_pkey = htobe16(vb_get_be16(r));
	memcpy(sib->sib_addr.sib_raw, vb_take(r, 16), 16);
	n->ai_flags = RCM_RAI_SA;
	n->ai_family = AF_IB;
	n->ai_port_space = RDMA_PS_IB;
	n->ai_qp_type = IBV_QPT_RC;
	n->ai_dst_addr = (struct sockaddr *)sib;
	n->ai_dst_len = sizeof(*sib);
	return n;
}

static struct rdma_addrinfo *results_of(const struct vb_ipc_cm *m)
{
	struct vb_reader r = vb_reader(m->private_data, m->private_bytes);
	unsigned count = m->private_bytes / VB_IPC_CM_SERVICE_BYTES;
	struct rdma_addrinfo *first = NULL, **last = &first;

	for (unsigned i = 0; i < count; i++) {
		*last = result_of(&r);
		if (!*last)
			break;
		last = &(*last)->ai_next;
	}
	return first;
}

void rcm_service_take(struct rcm_id *id, const struct vb_ipc_cm *m,
		      struct rdma_cm_event *pub)
{
	struct rdma_addrinfo *found = m->status ? NULL : results_of(m), *was;

	pthread_mutex_lock(&rcm.lock);
	was = id->resolved;
	id->resolved = found;
	id->resolving = found;
	pthread_mutex_unlock(&rcm.lock);
	rdma_freeaddrinfo(was);
	pub->event = (enum rdma_cm_event_type)(
		found ? RCM_EVENT_ADDRINFO_RESOLVED : RCM_EVENT_ADDRINFO_ERROR);
	pub->status = m->status ? -m->status : found ? 0 : -ENOMEM;
}

/* Sets the source address of all results to the port by which they were found,
 * which has @gid. */
static void put_source(struct rdma_addrinfo *list, const struct vb_gid *gid)
{
	for (struct rdma_addrinfo *r = list; r; r = r->ai_next) {
		const struct sockaddr_ib *to =
			(const struct sockaddr_ib *)r->ai_dst_addr;
		struct sockaddr_ib *sib = calloc(1, sizeof(*sib));

		if (!sib)
			return;
		rcm_address_of_ib((struct sockaddr *)sib, gid, RDMA_PS_IB, 0);
		sib->sib_sid_mask = htobe64(UINT64_C(0xffff) << 16);
		sib->sib_pkey = to->sib_pkey;
		r->ai_src_addr = (struct sockaddr *)sib;
		r->ai_src_len = sizeof(*sib);
	}
}

/* Asks the administrator of the port that has @gid. */
static int find_at(const struct vb_gid *gid, const char *service,
		   struct rdma_addrinfo **res)
{
	struct sockaddr_storage own;
	struct rdma_cm_id *pub;
	struct rcm_id *id;
	int rc = rcm_id_make(NULL, &pub, NULL, RDMA_PS_IB, IBV_QPT_RC);

	if (rc)
		return rc;
	id = rcm_id_of(pub);
	rcm_address_of_ib((struct sockaddr *)&own, gid, RDMA_PS_IB, 0);
	rc = rdma_bind_addr(pub, (struct sockaddr *)&own)
		     ? -errno
		     : rcm_service_ask(id, service);
	if (rc == 0 && rcm_event_complete(id))
		rc = -errno;
	if (rc == 0) {
		*res = id->resolved;
		id->resolved = NULL;
		put_source(*res, gid);
	}
	(void)rdma_destroy_id(pub);
	return rc;
}

int rcm_service_find(const char *service, struct rdma_addrinfo **res)
{
	int rc = service ? rcm_session_start() : -EINVAL, last = -ENOENT;

	for (unsigned i = 0; rc == 0 && i < rcm.device_count; i++) {
		const struct rcm_device *d = &rcm.devices[i];
		struct ibv_gid_entry e;
		struct vb_gid gid;

		if (!d->ib || !d->place || !rcm_device_first_gid(d, &e))
			continue;
		memcpy(gid.raw, e.gid.raw, sizeof(gid.raw));
		last = find_at(&gid, service, res);
		if (last == 0)
			break;
	}
	return rc ? rc : last;
}
