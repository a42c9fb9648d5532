/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions: the results of finished work requests, and the queue where the
 * program polls them: a ring of entries under one lock. */
#include "core/lock_order.h"
#include "core/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "core/qp.h"
#include "core/tag.h"
#include "core/why_qp.h"
#include "core/xrc.h"

#define FEW 16 /* the most entries that vb_cq_sender() looks through */

// clang-format off
static const uint8_t wc_ops[] = {
	[WR_WRITE]     = WC_OP_WRITE,
	[WR_WRITE_IMM] = WC_OP_WRITE,
	[WR_SEND]      = WC_OP_SEND,
	[WR_SEND_IMM]  = WC_OP_SEND,
	[WR_READ]      = WC_OP_READ,
	[WR_CMP_SWAP]  = WC_OP_CMP_SWAP,
	[WR_FETCH_ADD] = WC_OP_FETCH_ADD,
	[WR_LOCAL_INV] = WC_OP_LOCAL_INV,
	[WR_BIND_MW]   = WC_OP_BIND_MW,
	[WR_SEND_INV]  = WC_OP_SEND,
	[WR_ATOMIC_WRITE] = WC_OP_ATOMIC_WRITE,
};
// clang-format on

static uint32_t ring_cap(uint32_t asked)
{
	return asked <= 1 ? 1 : 1u << (32 - __builtin_clz(asked - 1));
}

static struct vb_cqe *entry(const struct vb_cq *cq, uint32_t i)
{
	return &cq->ring[(cq->head + i) & (cq->cap - 1)];
}

/* Returns the number of entries in the queue. The value is exact if the caller
 * holds the lock, and only a hint otherwise. */
static uint32_t core_waiting(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed);
}

static void set_waiting(struct vb_cq *cq, uint32_t n)
{
	if (n == 0)
		cq->untold = cq->strongest = CQ_UNARMED;
	/* Relaxed: readers without the lock use the count only as a hint. */
	atomic_store_explicit(&cq->count, n, memory_order_relaxed);
}

int vb_cq_create_in(struct vb_adapter *a, uint32_t cap, struct vb_channel *ch,
		    struct vb_async *async, struct vb_memory *m,
		    struct vb_cq **out)
{
	struct vb_cq *cq;

	if (cap == 0 || cap > vb_limits.max_cqe)
		return -EINVAL;
	if (!vb_limit_take(&a->n_cq, vb_limits.max_cq))
		return -ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto give_back;
	cq->cap = ring_cap(cap);
	cq->memory = m;
	cq->ring = vb_memory_take(&cq->memory, cq->cap, sizeof(*cq->ring));
	if (!cq->ring)
		goto free_cq;
	cq->adapter = a;
	cq->channel = ch;
	cq->async = async;
	vb_mutex_init(&cq->lock, RANK_CQ);
	vb_timer_init(&cq->timer);
	cq->row = vb_roster_add(
		&a->roster,
		&(struct vb_roster_row){ .kind = ROSTER_CQ, .size = cq->cap });
	*out = cq;
	return 0;

free_cq:
	free(cq);
give_back:
	vb_limit_give(&a->n_cq);
	return -ENOMEM;
}

int vb_cq_destroy(struct vb_cq *cq)
{
	if (atomic_load(&cq->refs))
		return -EBUSY;
	if (cq->channel)
		vb_channel_forget(cq->channel, cq);
	if (cq->async && cq->owner)
		vb_async_forget(cq->async, cq->owner);
	vb_roster_del(&cq->adapter->roster, ROSTER_CQ, cq->row);
	vb_limit_give(&cq->adapter->n_cq);
	vb_mutex_fini(&cq->lock);
	vb_memory_give(cq->memory, cq->ring);
	free(cq);
	return 0;
}

/* Move the entries to another ring, oldest first, and swap the rings. The
 * caller holds the lock. */
static int move_to(struct vb_cq *cq, struct vb_cqe **ring, uint32_t cap)
	VB_REQUIRES(cq->lock)
{
	struct vb_cqe *old = cq->ring;
	uint32_t n = core_waiting(cq);

	if (n > cap)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		(*ring)[i] = *entry(cq, i);
	cq->ring = *ring;
	cq->cap = cap;
	cq->head = 0;
	*ring = old;
	return 0;
}

int vb_cq_resize(struct vb_cq *cq, uint32_t asked)
{
	uint32_t cap = ring_cap(asked);
	struct vb_memory *m = cq->memory, *was = m;
	struct vb_cqe *ring;
	int rc;

	if (asked == 0 || asked > vb_limits.max_cqe)
		return -EINVAL;
	ring = vb_memory_take(&m, cap, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	vb_mutex_lock(&cq->lock);
	rc = move_to(cq, &ring, cap);
	if (rc == 0) {
		cq->memory = m;
		vb_roster_resize(&cq->adapter->roster, cq->row, cap);
	}
	vb_mutex_unlock(&cq->lock);
	/* Free the ring that is no longer used: after success the old ring,
	 * after an error the new one, which was too small. */
	vb_memory_give(rc ? m : was, ring);
	return rc;
}

/* Signal the completion channel and disarm the queue (IBA 11.4.2.2). The caller
 * holds the lock. */
static void signal_now(struct vb_cq *cq) VB_REQUIRES(cq->lock)
{
	cq->armed = CQ_UNARMED;
	cq->untold = CQ_UNARMED;
	cq->held = 0;
	if (cq->channel)
		vb_channel_signal(cq->channel, cq);
}

static bool wants_event(const struct vb_cq *cq, bool noteworthy)
{
	return cq->armed == CQ_ARMED_ANY ||
	       (cq->armed == CQ_ARMED_SOLICITED && noteworthy);
}

/* Returns the new value of `strongest` or `untold` after one more entry.
 * @noteworthy: the entry is solicited or an error. */
static enum vb_cq_arm least(enum vb_cq_arm before, bool noteworthy)
{
	if (noteworthy)
		return CQ_ARMED_SOLICITED;
	return before == CQ_UNARMED ? CQ_ARMED_ANY : before;
}

/* May the event of this entry wait for further entries, because the program
 * asked for moderation? If so, this function counts the entry in cq->held. The
 * caller holds the lock. */
static bool can_be_put_off(struct vb_cq *cq, const struct vb_cqe *e)
	VB_REQUIRES(cq->lock)
{
	if (VB_LIKELY(cq->per_event <= 1) || e->status != WC_SUCCESS ||
	    cq->held + 1 >= cq->per_event)
		return false;
	if (cq->held == 0 && !cq->alarm(cq, e->timestamp + cq->patience))
		return false;
	cq->held++;
	return true;
}

/* Record that the queue overran. Returns true for the first entry that is lost.
 * The caller holds the lock. */
static bool note_overrun(struct vb_cq *cq) VB_REQUIRES(cq->lock)
{
	if (atomic_load(&cq->overrun))
		return false;
	atomic_store(&cq->overrun, true);
	/* Wake a program that waits on the channel, so that it sees the
	 * error. */
	if (wants_event(cq, true))
		signal_now(cq);
	return true;
}

bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *e, bool solicited)
{
	bool noteworthy = solicited || e->status != WC_SUCCESS;
	bool room, first_loss = false;
	uint32_t n;

	vb_mutex_lock(&cq->lock);
	n = core_waiting(cq);
	/* After the first lost entry the queue takes no more: the program could
	 * not tell which completion is missing. */
	room = n < cq->cap && !atomic_load(&cq->overrun);
	if (VB_LIKELY(room)) {
		*entry(cq, n) = *e;
		set_waiting(cq, n + 1);
		cq->strongest = least(cq->strongest, noteworthy);
		if (!wants_event(cq, noteworthy))
			cq->untold = least(cq->untold, noteworthy);
		else if (!can_be_put_off(cq, e))
			signal_now(cq);
	} else {
		first_loss = note_overrun(cq);
	}
	vb_mutex_unlock(&cq->lock);
	if (first_loss) {
		vb_why(WHY_CQ_FULL, e->qpn,
		       "qp 0x%x: its completion queue of %u entries is full, "
		       "and a completion is lost",
		       e->qpn, cq->cap);
		if (cq->async)
			vb_async_post(cq->async, EVENT_CQ_ERR, cq->owner);
	}
	return room;
}

/* Completions of a queue pair's work requests (core/qp.h). */

/* Push an entry for the queue pair. If the completion queue has no room, move
 * the queue pair to ERR: an unaffiliated error alone would leave the program
 * waiting for a completion that never comes (IBA 10.10.2.3). */
static void core_complete(struct vb_qp *qp, struct vb_cq *cq, struct vb_cqe *e,
			  bool solicited) VB_REQUIRES(qp->drive)
{
	bool stays = qp->type == QPT_XRC_RECV ||
		     (vb_cqe_is_recv(e) && qp->srq && qp->srq->tags);

	/* With XRC and tag matching the receive came from the shared queue, so
	 * the entry must outlive the queue pair and frees no slot of it. */
	e->qp = stays ? NULL : qp;
	e->qpn = atomic_load_explicit(&qp->qpn, memory_order_relaxed);
	e->timestamp = qp->now;
	if (!vb_cq_push(cq, e, solicited))
		vb_qp_fail(qp, EVENT_QP_FATAL);
}

static uint8_t wc_op(const struct vb_send_wqe *wqe)
{
	return wqe->op < VB_COUNT(wc_ops) ? wc_ops[wqe->op] : WC_OP_SEND;
}

/* Complete a request that failed, and report the cause. For flushed requests no
 * cause is reported, since the failure that caused the flush was reported. */
static void send_failed(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			enum vb_wc_status status) VB_REQUIRES(qp->drive)
{
	struct vb_cqe e = {
		.wr_id = wqe->wr_id,
		.status = (uint8_t)status,
		.opcode = wc_op(wqe),
		.byte_len = wqe->length,
		.release = qp->sq.done,
	};

	if (status != WC_FLUSH_ERR)
		vb_qp_why_send(qp, wqe, status);
	if (qp->sq.open == 0) {
		vb_tag_sent(qp, wqe, status);
		return;
	}
	e.why = qp->why;
	core_complete(qp, qp->send_cq, &e, false);
}

void vb_qp_send_done(struct vb_qp *qp, enum vb_wc_status status)
{
	const struct vb_send_wqe *wqe;
	struct vb_cqe e;

	/* The queue was flushed because an earlier completion met a full
	 * completion queue. */
	if (qp->sq.done == vb_sq_end(&qp->sq))
		return;
	wqe = vb_sq_at(&qp->sq, qp->sq.done++);
	if (VB_UNLIKELY(status != WC_SUCCESS)) {
		send_failed(qp, wqe, status);
		return;
	}
	if (VB_UNLIKELY(qp->sq.open == 0)) {
		vb_tag_sent(qp, wqe, status);
		return;
	}
	if (!vb_sq_signals(&qp->sq, wqe))
		return;
	e = (struct vb_cqe){
		.wr_id = wqe->wr_id,
		.status = WC_SUCCESS,
		.opcode = wc_op(wqe),
		.byte_len = wqe->length,
		/* a poll of this entry also frees the slots of the unsignaled
		 * WQEs before it */
		.release = qp->sq.done,
	};
	core_complete(qp, qp->send_cq, &e, false);
}

bool vb_qp_recv_begin(struct vb_qp *qp)
{
	qp->recv_busy = qp->srq ? vb_srq_take(qp->srq, &qp->recv)
				: vb_rq_take(&qp->rq, &qp->recv);
	if (qp->type == QPT_XRC_RECV && qp->recv_busy) {
		qp->recv_srqn = qp->srq->number;
		qp->recv_life = qp->srq->life;
	}
	return qp->recv_busy;
}

static void finish_recv(struct vb_qp *qp, const struct vb_recv_done *d)
	VB_REQUIRES(qp->drive)
{
	struct vb_cqe e = {
		.wr_id = qp->recv.wr_id,
		.status = (uint8_t)d->status,
		.opcode = (uint8_t)d->opcode | WC_OP_RECV,
		.wc_flags = d->wc_flags,
		.path_bits = d->from.path_bits,
		.sl = d->from.sl,
		.pkey_index = d->from.pkey_index,
		.slid = d->from.slid,
		.byte_len = d->byte_len,
		.imm = d->imm,
		.src_qp = d->src_qp,
		.flow_tag = d->flow_tag,
		.release = qp->recv.index + 1,
	};

	if (!qp->recv_busy) /* a full CQ has flushed the queue pair meanwhile */
		return;
	qp->recv_busy = false;
	if (VB_UNLIKELY(qp->srq && qp->srq->tags) &&
	    d->opcode != WC_OP_RECV_WRITE_IMM)
		vb_tag_fill(qp, &e);
	if (qp->recv_cq) /* recv_cq is NULL if the XRC SRQ was destroyed */
		core_complete(qp, qp->recv_cq, &e, d->solicited);
}

void vb_qp_recv_done(struct vb_qp *qp, const struct vb_recv_done *d)
{
	bool enters = qp->type == QPT_XRC_RECV && qp->recv_busy && !qp->srq &&
		      vb_xrc_enter_home(qp);

	finish_recv(qp, d);
	if (enters)
		vb_xrc_leave(qp);
}

/* Functions that poll. */

/* Free the work queue slots that the poll of @e releases. The queue pair is
 * still alive, since its destroyer first purges its entries. The caller holds
 * the lock. */
static void release_slots(const struct vb_cqe *e)
{
	struct vb_qp *qp = e->qp;

	if (!qp)
		return;
	/* Release: pairs with the acquire by which a poster in core/wq.c reads
	 * the freed index. */
	if (!vb_cqe_is_recv(e))
		atomic_store_explicit(&qp->sq.released, e->release,
				      memory_order_release);
	else if (!qp->srq)
		atomic_store_explicit(&qp->rq.released, e->release,
				      memory_order_release);
}

static uint32_t poll_locked(struct vb_cq *cq, uint32_t most, struct vb_cqe *out)
	VB_REQUIRES(cq->lock)
{
	uint32_t have = core_waiting(cq), n = VB_MIN(most, have);

	for (uint32_t i = 0; i < n; i++) {
		out[i] = *entry(cq, i);
		release_slots(&out[i]);
	}
	cq->head += n;
	set_waiting(cq, have - n);
	/* For the entries that stay, an event has been raised already, but the
	 * program has answered that event with this poll. So the next arming
	 * raises another event for them at once. */
	if (have > n)
		cq->untold = cq->strongest;
	return n;
}

static struct vb_qp *sender_locked(struct vb_cq *cq) VB_REQUIRES(cq->lock)
{
	struct vb_qp *qp = NULL;
	uint32_t n = core_waiting(cq);

	if (n > FEW)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		if (vb_cqe_is_recv(entry(cq, i)) || (qp && entry(cq, i)->qp != qp))
			return NULL;
		qp = entry(cq, i)->qp;
	}
	return qp;
}

struct vb_qp *vb_cq_sender(struct vb_cq *cq)
{
	struct vb_qp *qp;

	vb_mutex_lock(&cq->lock);
	qp = sender_locked(cq);
	vb_mutex_unlock(&cq->lock);
	return qp;
}

int vb_cq_poll(struct vb_cq *cq, int n, struct vb_cqe *out)
{
	uint32_t got = 0;

	if (n <= 0)
		return 0;
	if (core_waiting(cq)) {
		vb_mutex_lock(&cq->lock);
		got = poll_locked(cq, (uint32_t)n, out);
		vb_mutex_unlock(&cq->lock);
	}
	if (VB_UNLIKELY(got == 0 && atomic_load(&cq->overrun) &&
			!core_waiting(cq)))
		return -EIO;
	return (int)got;
}

void vb_cq_arm(struct vb_cq *cq, bool solicited_only)
{
	enum vb_cq_arm arm = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;

	vb_mutex_lock(&cq->lock);
	cq->armed = VB_MAX(cq->armed, arm);
	if (cq->untold != CQ_UNARMED && cq->untold <= cq->armed)
		signal_now(cq);
	vb_mutex_unlock(&cq->lock);
}

void vb_cq_moderate(struct vb_cq *cq, uint32_t count, vb_time period,
		    bool (*alarm)(struct vb_cq *cq, vb_time at))
{
	vb_mutex_lock(&cq->lock);
	/* deliver the delayed event according to the old setting */
	if (cq->held)
		signal_now(cq);
	cq->per_event = period ? count : 0;
	cq->patience = period;
	cq->alarm = alarm;
	vb_mutex_unlock(&cq->lock);
}

void vb_cq_due(struct vb_cq *cq)
{
	vb_mutex_lock(&cq->lock);
	if (cq->held)
		signal_now(cq);
	vb_mutex_unlock(&cq->lock);
}

void vb_cq_purge(struct vb_cq *cq, const struct vb_qp *qp)
{
	uint32_t n, kept = 0;

	vb_mutex_lock(&cq->lock);
	n = core_waiting(cq);
	for (uint32_t i = 0; i < n; i++)
		if (entry(cq, i)->qp != qp)
			*entry(cq, kept++) = *entry(cq, i);
	set_waiting(cq, kept);
	vb_mutex_unlock(&cq->lock);
}
