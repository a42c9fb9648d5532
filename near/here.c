/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester carries out work requests itself, by copying bytes to or from
 * the peer's memory. */
#include <errno.h>

#include "near/cma.h"
#include "near/req_priv.h"

/* Batches in quick succession after which a thread of the peer is asked to
 * stand by. */
#define CALL_AFTER    16
#define IS_CLOSE      (300 * VB_USEC)
#define CALL_GAP      (1 * VB_MSEC)
#define CALL_GAP_MOST (4 * VB_MSEC)

static enum vb_fault may_reach(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	const struct vb_registry_view *v = &vb_nq(qp)->view;
	uint32_t need = vb_near_rule(wqe)->need;

	/* iWARP streams begin with an empty WRITE or READ, which needs no right
	 * (RFC 6581 s5) */
	if (qp->adapter->rnic && wqe->length == 0)
		return FAULT_NONE;
	if ((v->access & need) != need)
		return FAULT_ACCESS_FLAGS;
	if (wqe->op == WR_READ && v->reads == 0)
		return FAULT_TOO_MANY_READS;
	return FAULT_NONE;
}

/* Returns this program's memory of @wqe, from byte @offset on. */
static struct vb_local_side own_side(const struct vb_qp *qp,
				     struct vb_send_wqe *wqe, uint32_t offset)
{
	bool plain = wqe->flags & SEND_INLINE;

	return (struct vb_local_side){
		.pd = qp->pd,
		.sge = wqe->sge,
		.count = wqe->num_sge,
		.offset = plain ? 0 : offset,
		.plain = plain ? wqe->inline_data + offset : NULL,
	};
}

static struct vb_remote_side target_side(const struct vb_qp *qp,
					 const struct vb_send_wqe *wqe,
					 uint32_t offset) VB_REQUIRES(qp->drive)
{
	return vb_remote_side_by(&vb_nq(qp)->view, wqe->rkey,
				 wqe->remote_addr + offset,
				 vb_near_rule(wqe)->need);
}

/* Copy @len bytes between @local and the peer's @remote: to the peer if @write.
 * Threads that want drive of @qp meanwhile find vb_near_copies() true. */
static enum vb_cma here_copy(struct vb_qp *qp,
			     const struct vb_local_side *local,
			     const struct vb_remote_side *remote, uint32_t len,
			     bool write) VB_REQUIRES(qp->drive)
{
	enum vb_cma result;

	vb_near_set_copies(qp, true);
	result = vb_cma(vb_nq(qp)->peer, local, remote, len, write);
	vb_near_set_copies(qp, false);
	return result;
}

/* Copy the next @len bytes of @wqe, to or from the peer's memory. */
static enum vb_cma near_reach(struct vb_qp *qp, struct vb_send_wqe *wqe,
			      uint32_t len) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_local_side local = own_side(qp, wqe, nq->placed);
	const struct vb_remote_side remote = target_side(qp, wqe, nq->placed);

	return here_copy(qp, &local, &remote, len, wqe->op != WR_READ);
}

/* Check the whole range of a request that is copied in several steps, so that
 * nothing is copied when a part of the range is not allowed. */
static enum vb_fault covers_all(const struct vb_qp *qp,
				const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	const struct vb_remote_side remote = target_side(qp, wqe, 0);
	struct vb_permit permit;
	struct vb_grant g;
	uint64_t at;

	return vb_registry_open(vb_nq(qp)->peer->registry, &remote, &g,
				&permit) &&
			       vb_registry_covers(&g, wqe->remote_addr,
						  wqe->length, &at)
		       ? FAULT_NONE
		       : FAULT_RKEY;
}

/* Tell the peer that its key permits no access: its queue pair then fails, as
 * it would with packets. */
static enum vb_next fail_there(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			       vb_time now) VB_REQUIRES(qp->drive)
{
	(void)vb_lane_put(qp, wqe, NEAR_FAULT, FAULT_RKEY, now);
	return NEXT_WAITS;
}

static enum vb_next go_elsewhere(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_nq(qp)->denied = true;
	return NEXT_WAITS;
}

/* Do what the @result of one part demands: continue, fail, tell the peer, leave
 * near/, or retry later. */
static enum vb_next end_part(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			     enum vb_cma result, vb_time now)
	VB_REQUIRES(qp->drive)
{
	switch (result) {
	case CMA_OK:
		return NEXT_GOES;
	case CMA_LOCAL:
		return vb_near_fail_here(qp, WC_LOC_PROT_ERR);
	case CMA_REMOTE:
		return fail_there(qp, wqe, now);
	case CMA_UNSEEN:
		/* From now on the requests go by packets, which either
		 * transport the data or are refused. iWARP's requests cannot
		 * change over: a WRITE over the stream completes before the
		 * peer has checked it, so it is refused here. */
		return qp->adapter->rnic ? fail_there(qp, wqe, now)
					 : go_elsewhere(qp);
	case CMA_DENIED:
		return go_elsewhere(qp);
	case CMA_LAPSED:
	case CMA_GONE:
		vb_near_be_silent(qp, now);
		return NEXT_WAITS;
	}
	return NEXT_WAITS;
}

/* Carry out a READ or WRITE by copying, at most nq->step_left bytes in this
 * call. NEXT_WAITS: the request failed, and this call has already completed it,
 * told the peer, or set a timer. NEXT_LATER: this step has copied enough
 * bytes. */
enum vb_next vb_here_do(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	enum vb_fault fault = may_reach(qp, wqe);
	enum vb_next next;
	uint32_t part;

	if (!fault && nq->placed == 0 && wqe->length > nq->step_left)
		fault = covers_all(qp, wqe);
	if (fault) {
		(void)vb_lane_put(qp, wqe, NEAR_FAULT, fault, now);
		return NEXT_WAITS;
	}
	while (nq->placed < wqe->length) {
		if (nq->step_left == 0)
			return NEXT_LATER;
		part = VB_MIN(wqe->length - nq->placed, nq->step_left);
		next = end_part(qp, wqe, near_reach(qp, wqe, part), now);
		if (next != NEXT_GOES)
			return next;
		nq->placed += part;
		nq->step_left -= part;
	}
	vb_lane_establish(qp);
	return NEXT_GOES;
}

/*
 * Ask the peer to stand by while small WRITEs stream. Most of the cost of a
 * small WRITE is the kernel's lookup of each page, which the peer's own threads
 * do not need. So the requester asks that a thread of the peer stands by and
 * places the WRITEs; for that the peer uses a processor that no other thread
 * wants. Until such a thread stands by, the requester copies the WRITEs itself.
 */
static void note_batch(struct vb_qp *qp, unsigned done, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	bool close = now - nq->streak_at < IS_CLOSE;

	nq->streak_at = now;
	nq->streak = close ? nq->streak + (done >= VB_MANY_LEAST) : 0;
	if (nq->streak < CALL_AFTER || now < nq->call_at || nq->peer->is_self)
		return;
	nq->call_gap =
		VB_MIN(VB_MAX(2 * nq->call_gap, CALL_GAP), CALL_GAP_MOST);
	nq->call_at = now + nq->call_gap;
	vb_peer_call(nq->peer);
}

/* Subtract @bytes bytes, which were copied, from the limit of this step. */
static void take_off(struct vb_near_qp *nq, uint32_t bytes)
{
	nq->step_left -= VB_MIN(bytes, nq->step_left);
}

/* Carry out several small WRITEs with one system call. False: none was carried
 * out. */
bool vb_here_do_many(struct vb_qp *qp, vb_time now)
{
	unsigned done;

	vb_near_set_copies(qp, true);
	done = vb_near_coalesce(qp);
	vb_near_set_copies(qp, false);
	if (done == 0)
		return false;
	note_batch(qp, done, now);
	vb_lane_establish(qp);
	vb_near_progress(qp);
	while (done-- && vb_near_sends(qp)) {
		take_off(vb_nq(qp), vb_sq_at(&qp->sq, vb_nq(qp)->sent)->length);
		vb_near_finish_here(qp);
	}
	return true;
}

/*
 * Copying a part that the peer offers: a peer that fetches a long SEND of this
 * program can offer it a part of the copy (near/split_copy.h).
 */

/* Find the work request to which @part belongs. NULL: the request is not on the
 * lane, or is shorter than @part demands. */
static struct vb_send_wqe *find_asked(const struct vb_qp *qp,
				      const struct vb_copy_part *part)
	VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	uint32_t nth = part->seq - nq->acked;
	struct vb_send_wqe *wqe;

	if (qp->way != WAY_NEAR || part->life != nq->life ||
	    !vb_near_sends(qp) || nth >= vb_near_outstanding(qp))
		return NULL;
	wqe = vb_sq_at(&qp->sq, qp->sq.done + nth);
	if (vb_near_rule(wqe)->op != NEAR_SEND || part->offset > wqe->length ||
	    part->len > wqe->length - part->offset)
		return NULL;
	return wqe;
}

/* May this program copy one more part of that message? The receiver offers the
 * messages in their order, and each byte once. A receiver that offers more than
 * that is refused, because it would keep this program's thread busy for ever.
 */
static bool count_part(struct vb_near_qp *nq, uint32_t length,
		       const struct vb_copy_part *part)
{
	if ((int32_t)(part->seq - nq->part_seq) < 0)
		return false;
	if (part->seq != nq->part_seq) {
		nq->part_seq = part->seq;
		nq->part_bytes = 0;
	}
	if (part->len > length - nq->part_bytes)
		return false;
	nq->part_bytes += part->len;
	return true;
}

static bool copy_part(struct vb_qp *qp, struct vb_send_wqe *wqe,
		      const struct vb_copy_part *part) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_remote_side remote = vb_remote_side_by(
		&nq->view, part->key, part->iova, ACCESS_LOCAL_WRITE);
	struct vb_local_side local = own_side(qp, wqe, part->offset);

	local.helped = true;
	return here_copy(qp, &local, &remote, part->len, true) == CMA_OK;
}

/* Copy @part into the peer's receive. The peer waits for this copy before its
 * queue pair leaves RTS. So @qp must be connected to that queue pair, and the
 * permit lapses when that queue pair changes. */
static bool lend_hand(struct vb_qp *qp, const struct vb_copy_part *part)
	VB_REQUIRES(qp->drive)
{
	struct vb_send_wqe *wqe = find_asked(qp, part);

	return wqe && vb_near_is_there(qp) &&
	       count_part(vb_nq(qp), wqe->length, part) &&
	       copy_part(qp, wqe, part);
}

int vb_near_help(struct vb_near *n, struct vb_peer *p)
{
	struct vb_copy_part part;
	struct vb_qp *qp;
	uint32_t word;
	bool done;

	if (!vb_offer_take(p->offered, &part, &word))
		return 0;
	if (part.len > VB_PART_MOST)
		return -EPROTO;
	qp = vb_near_find_qp(n, part.qpn);
	done = false;
	if (qp && vb_mutex_trylock(&qp->drive)) {
		done = vb_near_is_called(qp, part.qpn) &&
		       vb_nq(qp)->peer == p && lend_hand(qp, &part);
		vb_near_release(n, qp);
	}
	/* True: the peer no longer waits, and may sleep while the SEND is still
	 * on the lane, so ring its bell. */
	if (vb_offer_end(p->offered, word, done))
		vb_peer_ring(p);
	return 1;
}
