/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses memory of another process by way of a protection domain that was
 * imported from that process, whose registry says which memory a key opens.
 * Imports are rare, and an access is slow: a system call for each packet.
 */
#include <errno.h>

#include "near/near_priv.h"
#include "near/cma.h"

int vb_near_imported_pd_meet(struct vb_near *n, unsigned slot, uint32_t *since)
{
	struct vb_peer *p = NULL;

	if (slot == 0 || slot >= VB_SLOTS || vb_near_is_own(n, slot))
		return -EACCES;
	if (*since == 0)
		*since = vb_session_want(n, slot) + 1;
	switch (vb_session_find(n, slot, *since - 1, &p)) {
	case SESSION_UP:
		vb_peer_put(p);
		return 0;
	case SESSION_PENDING:
		return -EAGAIN;
	default:
		return -EACCES;
	}
}

static struct vb_remote_side origin_side(const struct vb_pd *pd,
					 const struct vb_mr_range *r)
{
	return (struct vb_remote_side){ .adapter = pd->origin.adapter,
					.pd = pd->id,
					.key = r->key,
					.iova = r->iova,
					.need = r->need };
}

/* Returns a reference to the process that made @pd. NULL: there is no such
 * process whose memory this process can access. */
static struct vb_peer *origin_of(struct vb_near *n, const struct vb_pd *pd)
{
	struct vb_peer *p = vb_session_peer(n, pd->origin.slot);

	if (!p || (vb_peer_is_up(p) && !p->is_self))
		return p;
	vb_peer_put(p);
	return NULL;
}

bool vb_near_imported_pd_find(struct vb_near *n, const struct vb_pd *pd,
			      uint32_t key, struct vb_grant *g)
{
	const struct vb_remote_side remote =
		origin_side(pd, &(struct vb_mr_range){ .key = key });
	struct vb_peer *p = origin_of(n, pd);
	struct vb_permit permit;
	bool found = p && vb_registry_open(p->registry, &remote, g, &permit);

	vb_peer_put(p);
	return found;
}

static enum vb_fault borrow(struct vb_peer *p,
			    const struct vb_remote_side *remote, uint64_t len,
			    void *bytes, bool put)
{
	const struct vb_local_side local = { .plain = bytes };
	struct vb_permit permit;
	struct vb_grant g;
	uint64_t at;

	if (!vb_registry_open(p->registry, remote, &g, &permit) ||
	    !vb_registry_covers(&g, remote->iova, len, &at))
		return FAULT_RKEY;
	if (!bytes || vb_cma(p, &local, remote, len, put) == CMA_OK)
		return FAULT_NONE;
	return FAULT_REMOTE_MEMORY;
}

enum vb_fault vb_near_imported_pd_copy(struct vb_near *n,
				       const struct vb_pd *pd,
				       const struct vb_mr_range *r, void *bytes,
				       bool put)
{
	const struct vb_remote_side remote = origin_side(pd, r);
	struct vb_peer *p = origin_of(n, pd);
	enum vb_fault fault =
		p ? borrow(p, &remote, r->len, bytes, put) : FAULT_RKEY;

	vb_peer_put(p);
	return fault;
}
