/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder fetches long SENDs: the request brings the addresses and keys
 * of the message's pieces, and the responder copies the bytes from the
 * requester's memory into the posted receive. With messages of SPLIT_LEAST
 * bytes and more the requester may copy a part (near/split_copy.h).
 */
#include "core/sge.h"
#include "near/cma.h"
#include "near/resp_priv.h"
#include "wire/ib_hdr.h"

/* bytes; the receiver copies a shorter message without the sender's help */
#define SPLIT_LEAST (128u * 1024)
/* bytes of one message that are copied before the other lanes have their
 * turn */
#define SLAB (1u << 20)
_Static_assert(SLAB / 2 <= VB_PART_MOST, "the sender copies one half");

static enum vb_cma place_zeros(const struct vb_local_side *local, uint64_t len)
{
	static const uint8_t zeros[4096];

	for (uint64_t done = 0, part; done < len; done += part) {
		part = VB_MIN(len - done, sizeof(zeros));
		if (vb_sge_place(local->pd, local->sge, local->count,
				 local->offset + done, zeros, (uint32_t)part))
			return CMA_LOCAL;
	}
	return CMA_OK;
}

/* The pieces of a message's data, as the requester describes them. */
struct source {
	struct vb_sge pieces[VB_MAX_SGE];
	unsigned count;
	/* registry entry of the requester's queue pair */
	struct vb_registry_view view;
};

static enum vb_cma pull_piece(const struct vb_near_job *j,
			      const struct source *s,
			      const struct vb_local_side *local, unsigned i,
			      uint64_t skip, uint64_t len)
{
	const struct vb_remote_side remote = vb_remote_side_by(
		&s->view, s->pieces[i].lkey, s->pieces[i].addr + skip, 0);

	if (remote.key != NEAR_ZEROS)
		return vb_cma(j->peer, local, &remote, len, false);
	if (!local->plain)
		return place_zeros(local, len);
	memset(local->plain, 0, len);
	return CMA_OK;
}

/* Copy the bytes from @from up to @end of the message out of the requester's
 * memory, by the requester's own keys. */
static enum vb_cma pull(const struct vb_near_job *j, const struct source *s,
			struct vb_local_side local, uint64_t from, uint64_t end)
{
	enum vb_cma result = CMA_OK;
	uint64_t at = 0;

	for (unsigned i = 0; i < s->count && result == CMA_OK; i++) {
		uint64_t first = VB_MAX(at, from);
		uint64_t behind = VB_MIN(at + s->pieces[i].length, end);

		if (first < behind) {
			result = pull_piece(j, s, &local, i, first - at,
					    behind - first);
			local.offset += behind - first;
		}
		at += s->pieces[i].length;
	}
	return result;
}

/* Copy the first bytes of the message, by which a tag-matching queue finds the
 * receive. */
static enum vb_cma pull_head(const struct vb_near_job *j,
			     const struct source *s, uint8_t *head)
{
	uint32_t len = VB_MIN(j->r->length, VB_RNDV_BYTES), done = 0;
	enum vb_cma result = CMA_OK;

	for (unsigned i = 0; i < s->count && done < len && !result; i++) {
		uint32_t part = VB_MIN(len - done, s->pieces[i].length);

		result = pull_piece(
			j, s, &(struct vb_local_side){ .plain = head + done },
			i, 0, part);
		done += part;
	}
	return result;
}

/* Copying a message together with its sender (near/split_copy.h). */

static bool is_shareable(const struct vb_near_job *j) VB_REQUIRES(j->qp->drive)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;

	return j->r->length >= SPLIT_LEAST && recv->num_sge == 1 &&
	       !vb_resp_is_tagged(j->qp) &&
	       vb_resp_recv_pd(j->qp) == j->qp->pd && !j->peer->is_self;
}

/* Remember that the sender still copies its part. When it ends, the copy
 * continues at @if_done if the sender has copied the part, and at @if_not
 * otherwise. */
static void go_on_later(const struct vb_near_job *j, uint64_t if_done,
			uint64_t if_not)
{
	struct vb_split_copy *split = &j->peer->split;
	struct vb_qp *qp = j->qp;

	split->waits = true;
	atomic_store(&j->peer->lent_by, j->r->dqpn);
	split->failed = (struct vb_age){ 0 };
	split->qpn = j->r->dqpn;
	split->life = vb_nq(qp)->life;
	split->if_done = if_done;
	split->if_not = if_not;
	/* Remove the receive from the queue pair: while the sender can write
	 * into it, nothing may complete the receive, not even a queue pair that
	 * fails. */
	split->recv = qp->recv;
	qp->recv_busy = false;
	qp->recv_lent = true;
	j->a->kind = ANSWER_LATER;
}

/* Copy the bytes from @from up to @end, and offer one half to the sender. */
static enum vb_cma pull_half(const struct vb_near_job *j,
			     const struct source *s, struct vb_local_side local,
			     uint64_t from, uint64_t end)
{
	uint64_t middle = from + (end - from) / 2;
	const struct vb_copy_part part = {
		.qpn = j->r->sqpn,
		.life = j->r->src_life,
		.seq = j->r->seq,
		.offset = (uint32_t)middle,
		.len = (uint32_t)(end - middle),
		.key = local.sge->lkey,
		.iova = local.sge->addr + middle,
	};
	bool shared = vb_split_copy_make(&j->peer->split, &part);
	enum vb_cma result;

	local.helped = shared;
	local.offset = from;
	result = pull(j, s, local, from, shared ? middle : end);
	if (!shared)
		return result;
	switch (vb_split_copy_end(&j->peer->split)) {
	case SPLIT_DONE:
		return result;
	case SPLIT_OURS:
		local.offset = middle;
		return result ? result : pull(j, s, local, middle, end);
	default:
		go_on_later(j, result ? from : end, result ? from : middle);
		return result;
	}
}

/* Leave the request on the lane and continue at byte @at after the other lanes
 * had a turn. No copy is under way meanwhile, and the receive stays in the
 * queue pair. A receive that was found by its tag cannot be found again, so
 * remember the message to which the receive belongs. */
static void put_off(const struct vb_near_job *j, uint64_t at, uint32_t skip)
	VB_REQUIRES(j->qp->drive)
{
	struct vb_near_qp *nq = vb_nq(j->qp);

	nq->tag_waits = vb_resp_is_tagged(j->qp);
	nq->tag_serial = j->qp->tagged.serial;
	nq->tag_skip = skip;
	j->peer->split.at = at;
	j->a->kind = ANSWER_LATER;
}

static enum vb_cma pull_slab(const struct vb_near_job *j,
			     const struct source *s, struct vb_local_side local,
			     uint64_t from, uint64_t end, uint32_t skip)
	VB_REQUIRES(j->qp->drive)
{
	if (is_shareable(j))
		return pull_half(j, s, local, from, end);
	local.offset = from - skip;
	return pull(j, s, local, from, end);
}

/* Continue the copy at the byte that was reached before, as far as this turn
 * allows. The first @skip bytes of the message are not placed. */
static enum vb_cma pull_slabs(const struct vb_near_job *j,
			      const struct source *s,
			      const struct vb_local_side *local, uint32_t skip)
	VB_REQUIRES(j->qp->drive)
{
	uint32_t *left = &j->peer->pull_left;
	enum vb_cma result = CMA_OK;
	uint64_t at = VB_MAX(j->peer->split.at, skip), end;

	for (; at < j->r->length && !result && j->a->kind != ANSWER_LATER;
	     at = end) {
		end = VB_MIN(at + SLAB, j->r->length);
		if (*left == 0) {
			put_off(j, at, skip);
			break;
		}
		result = pull_slab(j, s, *local, at, end, skip);
		*left -= VB_MIN(*left, end - at);
	}
	return result;
}

/* Return the receive to the queue pair. If the queue pair failed meanwhile,
 * flush that receive and those behind it. */
static void give_back_recv(const struct vb_split_copy *split, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* The program has since reset or destroyed the queue pair, and the
	 * queue pair's receives no longer exist. */
	if (!qp || !vb_near_is_called(qp, split->qpn) ||
	    vb_nq(qp)->life != split->life)
		return;
	qp->recv_lent = false;
	if (qp->recv_busy)
		vb_qp_fail(qp, -1);
	qp->recv = split->recv;
	qp->recv_busy = true;
	vb_qp_flush(qp);
}

void vb_pull_abandon(struct vb_peer *p, struct vb_qp *qp)
{
	vb_split_copy_drop(&p->split);
	p->split.waits = false;
	atomic_store(&p->lent_by, 0);
	give_back_recv(&p->split, qp);
}

bool vb_pull_resume(struct vb_peer *p, struct vb_qp *qp)
{
	struct vb_split_copy *split = &p->split;
	enum vb_split_copy_end end = vb_split_copy_look(split);

	if (end == SPLIT_SLOW)
		return false;
	split->waits = false;
	atomic_store(&p->lent_by, 0);
	split->at = end == SPLIT_DONE ? split->if_done : split->if_not;
	give_back_recv(split, qp);
	return true;
}

/* Copy the message into the posted receive. */
static enum vb_cma pull_message(const struct vb_near_job *j,
				const struct source *s, uint32_t skip)
	VB_REQUIRES(j->qp->drive)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	const struct vb_local_side local = { .pd = vb_resp_recv_pd(j->qp),
					     .sge = recv->sge,
					     .count = recv->num_sge };

	return pull_slabs(j, s, &local, skip);
}

/* Was the rest of this message put off after the message had matched a receive
 * by its tag, and does the queue pair still have that receive for it? */
static bool is_matched(const struct vb_near_job *j) VB_REQUIRES(j->qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(j->qp);

	return nq->tag_waits && j->qp->recv_busy &&
	       nq->tag_serial == j->qp->tagged.serial;
}

/* Find the receive of the message, or continue with the one that was found
 * before. The peer can have changed the request since, so the lengths are
 * checked again. *@result: whether the tag could be read. */
static enum vb_fault find_recv(const struct vb_near_job *j,
			       const struct source *s, uint32_t *skip,
			       enum vb_cma *result)
	VB_REQUIRES(j->peer->claim, j->qp->drive)
{
	bool matched = is_matched(j);
	uint8_t head[VB_RNDV_BYTES];

	vb_nq(j->qp)->tag_waits = false;
	*result = CMA_OK;
	*skip = vb_nq(j->qp)->tag_skip;
	if (matched)
		return vb_resp_check_recv(j, *skip);
	if (vb_resp_is_tagged(j->qp)) {
		j->peer->split.at = 0;
		*result = pull_head(j, s, head);
	}
	return *result ? FAULT_NONE : vb_resp_begin_recv(j, head, skip);
}

static enum vb_fault end_pull(const struct vb_near_job *j, enum vb_cma result,
			      uint32_t byte_len)
	VB_REQUIRES(j->peer->claim, j->qp->drive)
{
	if (VB_UNLIKELY(j->a->kind == ANSWER_LATER))
		return FAULT_NONE;
	switch (result) {
	case CMA_OK:
		j->a->kind = ANSWER_DONE;
		return vb_resp_end_send(j, byte_len);
	case CMA_LOCAL:
		return FAULT_RQE_LKEY;
	case CMA_REMOTE:
		j->a->kind = ANSWER_SOURCE;
		return FAULT_NONE;
	case CMA_UNSEEN:
		j->a->kind =
			j->qp->adapter->rnic ? ANSWER_SOURCE : ANSWER_DENIED;
		return FAULT_NONE;
	case CMA_DENIED:
		j->a->kind = ANSWER_DENIED;
		return FAULT_NONE;
	case CMA_GONE:
	case CMA_LAPSED:
		return FAULT_NONE; /* the requester gets ANSWER_NOBODY */
	}
	return FAULT_NONE;
}

static enum vb_fault read_pieces(const struct vb_near_job *j, struct source *s)
{
	s->count = j->r->bytes / sizeof(struct vb_sge);
	if (s->count > VB_MAX_SGE)
		return FAULT_LENGTH;
	memcpy(s->pieces, j->data, s->count * sizeof(s->pieces[0]));
	/* A compiler barrier: the peer's bytes must not be read again after the
	 * check, because they may have changed since. */
	__asm__ volatile("" : : "r"(s->pieces) : "memory");
	return vb_sge_total(s->pieces, s->count) == j->r->length ? FAULT_NONE
								 : FAULT_LENGTH;
}

enum vb_fault vb_pull_take(const struct vb_near_job *j)
{
	enum vb_cma result;
	struct source s;
	enum vb_fault fault = read_pieces(j, &s);
	uint32_t skip;

	if (fault)
		return fault;
	if (!vb_registry_view(j->peer->registry, j->r->sqpn, &s.view) ||
	    s.view.life != j->r->src_life)
		return FAULT_NONE; /* the requester gets ANSWER_NOBODY */
	fault = find_recv(j, &s, &skip, &result);
	if (fault)
		return fault;
	if (result != CMA_OK)
		return end_pull(j, result, 0);
	return end_pull(j, pull_message(j, &s, skip), j->r->length - skip);
}
