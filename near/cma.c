/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies between the memories of two programs. */
#include "near/cma.h"

#include <errno.h>

#include "base/guard.h"
#include "near/copy_helper.h"

/* A copy fails after its permits have lapsed this many times. */
#define LAPSES_MOST 1000
/* The most bytes of one system call, because a program that revokes a key waits
 * until the call has ended. */
#define CHUNK (1u << 20)
_Static_assert(CHUNK <= VB_MR_NULL_BYTES, "so much may be read of nothing");

/* This program's memory for one copy: the pieces, and references that keep
 * their regions from being deregistered. */
struct hold {
	struct iovec iov[VB_MAX_SGE];
	struct vb_mr_use use[VB_MAX_SGE];
	unsigned count;
};

static void near_cma_let_go(struct hold *h)
{
	for (unsigned i = 0; i < h->count; i++)
		vb_mr_end(&h->use[i]);
}

static bool hold_piece(struct hold *h, struct vb_pd *pd, const struct vb_sge *s,
		       uint64_t skip, uint64_t len, uint32_t need)
{
	struct vb_mr_use *use = &h->use[h->count];

	if (vb_mr_begin(pd->adapter, pd, 0, s->lkey, s->addr + skip, len, need,
			use) != FAULT_NONE)
		return false;
	h->iov[h->count++] = (struct iovec){ use->at, len };
	return true;
}

static bool hold_list(struct hold *h, const struct vb_local_side *local,
		      uint64_t offset, uint64_t len, uint32_t need)
{
	uint64_t skip = local->offset + offset;

	for (unsigned i = 0; i < local->count && len; i++) {
		const struct vb_sge *s = &local->sge[i];
		uint64_t part;

		if (skip >= s->length) {
			skip -= s->length;
			continue;
		}
		part = VB_MIN(len, s->length - skip);
		if (!hold_piece(h, local->pd, s, skip, part, need))
			return false;
		len -= part;
		skip = 0;
	}
	return len == 0;
}

static bool hold_side(struct hold *h, const struct vb_local_side *local,
		      uint64_t offset, uint64_t len, bool put)
{
	h->count = 0;
	if (!local->plain)
		return hold_list(h, local, offset, len,
				 put ? 0 : ACCESS_LOCAL_WRITE);
	h->iov[0] = (struct iovec){ (char *)local->plain + offset, len };
	h->use[0] = (struct vb_mr_use){ NULL, NULL };
	h->count = 1;
	return true;
}

/*
 * Let the kernel supply the pages of this program before the copy begins. A
 * page can be slow to come (userfaultfd, FUSE, swap). A thread that waited for
 * it inside the system call would hold the peer's memory meanwhile, and the
 * peer can see that it does, but can neither end the copy nor wait for ever.
 */
static bool fault_in(const struct hold *h, bool put)
{
	for (unsigned i = 0; i < h->count; i++)
		if (!vb_guard_touch(h->iov[i].iov_base, h->iov[i].iov_len,
				    !put))
			return false;
	return true;
}

bool vb_cma_touch(const struct vb_local_side *local, uint64_t from,
		  uint64_t len)
{
	const uint64_t end = from + len;
	bool there = true;
	struct hold h;

	for (uint64_t at = from, part; at < end && there; at += part) {
		part = VB_MIN(end - at, CHUNK);
		there = hold_side(&h, local, at, part, true) &&
			fault_in(&h, true);
		near_cma_let_go(&h);
	}
	return there;
}

/* A copy ended after @done bytes. Is a page of this program the cause, because
 * the page is missing or cannot be written? */
static bool is_ours_missing(const struct hold *h, uint64_t done, bool put)
{
	uint64_t drop;
	unsigned i = 0;
	char *at;

	while (i < h->count && done >= h->iov[i].iov_len)
		done -= h->iov[i++].iov_len;
	if (i == h->count)
		return false;
	at = (char *)h->iov[i].iov_base + done;
	if (put)
		return vb_guard_copy(&drop, at, 1) != 0;
	/* Adding 0 tests for write permission without a change of the memory.
	 * The addition is atomic, so another thread may write there at the same
	 * time. */
	return vb_guard_add64((uint64_t *)((uintptr_t)at & ~(uintptr_t)7), 0,
			      &drop) != 0;
}

static enum vb_cma copy_alone(const struct vb_near_world *w,
			      const struct vb_copy *c, const struct hold *h)
{
	struct iovec there = { (void *)(uintptr_t)c->remote, c->len };
	ssize_t n = w->copy(w->arg, &c->permit, c->pid, c->put, c->local,
			    c->count, &there, 1);

	if (VB_LIKELY(n >= 0 && (uint64_t)n == c->len))
		return CMA_OK;
	if (n == -ECANCELED)
		return CMA_LAPSED;
	/* The kernel returns ESRCH for a process that has ended. Any other
	 * errno is a refusal: by the kernel, or by a seccomp filter, whose
	 * author chose the errno. */
	if (n < 0 && n != -EFAULT)
		return n == -ESRCH ? CMA_GONE : CMA_DENIED;
	return is_ours_missing(h, n < 0 ? 0 : (uint64_t)n, c->put) ? CMA_LOCAL
								   : CMA_UNSEEN;
}

static enum vb_cma near_cma_copy(const struct vb_peer *p,
				 const struct vb_copy *c, const struct hold *h,
				 bool helped)
{
	if (!helped && p->helper && vb_copy_helper_copy(p->helper, c))
		return CMA_OK;
	return copy_alone(p->world, c, h);
}

/* Copy @len bytes between the memory @h of this program, NULL if this program
 * may not use it, and the peer's from byte @offset on. The key of the peer is
 * announced. */
static enum vb_cma copy_announced(struct vb_peer *p, const struct hold *h,
				  const struct vb_remote_side *remote,
				  uint64_t offset, uint64_t len, bool put,
				  bool helped)
{
	struct vb_copy c = { .pid = p->pid, .put = put, .len = len };
	enum vb_cma result;
	struct vb_grant g;

	/* A program that has ended has no memory, and its process number may
	 * belong to another process by now. */
	if (!vb_peer_may_copy(p))
		return CMA_GONE;
	if (!vb_registry_open(p->registry, remote, &g, &c.permit) ||
	    !vb_registry_covers(&g, remote->iova + offset, len, &c.remote))
		return CMA_REMOTE;
	if (!h)
		return CMA_LOCAL;
	c.local = h->iov;
	c.count = h->count;
	result = near_cma_copy(p, &c, h, helped);
	return vb_peer_expels(p) ? CMA_GONE : result;
}

static enum vb_cma reach_chunk(struct vb_peer *p,
			       const struct vb_local_side *local,
			       const struct vb_remote_side *remote,
			       uint64_t offset, uint64_t len, bool put)
{
	struct vb_hazard *hazard;
	enum vb_cma result;
	struct hold h;
	bool ours = hold_side(&h, local, offset, len, put) && fault_in(&h, put);

	hazard = vb_hazard_announce(&p->ours, remote->key, remote->qpn);
	result = CMA_GONE;
	if (VB_LIKELY(hazard)) {
		result = copy_announced(p, ours ? &h : NULL, remote, offset,
					len, put, local->helped);
		vb_hazard_withdraw(&p->ours, hazard);
	}
	near_cma_let_go(&h);
	return result;
}

/* Has the peer's queue pair through which this access goes changed? */
static bool has_moved(const struct vb_peer *p,
		      const struct vb_remote_side *remote)
{
	return remote->view &&
	       !vb_registry_is_current(p->registry, remote->view->qpn,
				       remote->view);
}

enum vb_cma vb_cma(struct vb_peer *p, const struct vb_local_side *local,
		   const struct vb_remote_side *remote, uint64_t len, bool put)
{
	enum vb_cma result = CMA_OK;
	unsigned lapses = 0;
	uint64_t offset = 0;

	while (offset < len && result == CMA_OK) {
		uint64_t part = VB_MIN(len - offset, CHUNK);

		result = reach_chunk(p, local, remote, offset, part, put);
		/* The peer has changed its key: check the key again. If the
		 * peer changes it all the time, the key cannot be used. */
		if (result == CMA_LAPSED && !has_moved(p, remote))
			result = ++lapses < LAPSES_MOST ? CMA_OK : CMA_REMOTE;
		else
			offset += part;
	}
	return result;
}
