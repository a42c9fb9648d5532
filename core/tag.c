/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching (core/tag.h). Programs use few masks, so buffers are found by
 * hash: one lookup for each mask in use, with the message's tag under that
 * mask. Among the buffers found, the one posted first wins. Buffers with
 * further masks are in one list, which is searched from its beginning. */
#include "core/tag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/qp.h"
#include "core/sge.h"

/* The number of masks that are found by hash; class MASKS is the list of the
 * buffers with other masks. */
#define MASKS 8
/* The number of unhandled unexpected messages at which the program is asked to
 * report. */
#define MOST_BEHIND 0x3fff
#define INDEX_BITS  14

_Static_assert(VB_TAG_MAX <= 1u << INDEX_BITS, "an index fits a handle");

struct entry {
	uint64_t tag, mask, wr_id;
	/* serial number of the buffer, in the order of posting */
	uint64_t serial;
	/* neighbours in a chain; @next also links the list of free entries */
	uint32_t next, prev;
	uint32_t life; /* the high bits of the buffer's handle */
	uint8_t class, count;
	bool used;
	struct vb_sge sge[VB_TAG_MAX_SGE];
};

/* A chain of entries. An entry is named by its index + 1; 0 names none. */
struct chain {
	uint32_t first, last;
};

struct mask_class {
	uint64_t mask;
	uint32_t count;
};

/* A queue's list of tagged buffers and its hash chains; protected by
 * rq.lock. */
struct vb_tags {
	uint32_t max, fresh,
		/* @free: first entry of the free list; @fresh: entries from
		 * this one on were never used */
		free;
	/* number of hash buckets, a power of two; one more chain serves
	 * MASKS */
	uint32_t buckets;
	struct entry *entries;
	struct chain *chains;
	struct mask_class classes[MASKS];
	uint64_t serial; /* serial number for the next buffer that is posted */
	/* buffers with serials below this one may receive messages */
	uint64_t enabled;
	/* numbers of unexpected messages that arrived, and that the program has
	 * handled */
	uint16_t arrived, seen;
};

/* A copy of the first bytes of a message. */
struct message {
	uint8_t bytes[VB_RNDV_BYTES];
	uint32_t len;
	bool whole, matches, counts;
	struct vb_tmh tmh;
	struct vb_rvh rvh;
};

/* The list of buffers: find, add, remove. */

static struct entry *entry_at(const struct vb_tags *t, uint32_t name)
{
	return name ? &t->entries[name - 1] : NULL;
}

static uint32_t core_name_of(const struct vb_tags *t, const struct entry *e)
{
	return (uint32_t)(e - t->entries) + 1;
}

static struct chain *chain_of(const struct vb_tags *t, uint64_t tag,
			      unsigned class)
{
	uint64_t h = (tag + class) * 0x9e3779b97f4a7c15u;

	if (class == MASKS)
		return &t->chains[t->buckets];
	return &t->chains[(h >> 32) & (t->buckets - 1)];
}

static unsigned enter_class(struct vb_tags *t, uint64_t mask)
{
	unsigned vacant = MASKS;

	for (unsigned i = 0; i < MASKS; i++) {
		if (t->classes[i].count && t->classes[i].mask == mask) {
			t->classes[i].count++;
			return i;
		}
		if (!t->classes[i].count && vacant == MASKS)
			vacant = i;
	}
	if (vacant < MASKS)
		t->classes[vacant] = (struct mask_class){ mask, 1 };
	return vacant;
}

static struct entry *take_free(struct vb_tags *t)
{
	struct entry *e = entry_at(t, t->free);

	if (e)
		t->free = e->next;
	else if (t->fresh < t->max)
		e = &t->entries[t->fresh++];
	return e;
}

static void link_last(struct vb_tags *t, struct entry *e)
{
	struct chain *c = chain_of(t, e->tag, e->class);
	struct entry *last = entry_at(t, c->last);

	e->next = 0;
	e->prev = c->last;
	c->last = core_name_of(t, e);
	if (last)
		last->next = c->last;
	else
		c->first = c->last;
}

static void unlink_entry(struct vb_tags *t, struct entry *e)
{
	struct chain *c = chain_of(t, e->tag, e->class);
	struct entry *next = entry_at(t, e->next), *prev = entry_at(t, e->prev);

	if (next)
		next->prev = e->prev;
	else
		c->last = e->prev;
	if (prev)
		prev->next = e->next;
	else
		c->first = e->next;
}

static void drop_entry(struct vb_tags *t, struct entry *e)
{
	unlink_entry(t, e);
	if (e->class < MASKS)
		t->classes[e->class].count--;
	e->used = false;
	e->life++;
	e->next = t->free;
	t->free = core_name_of(t, e);
}

static struct entry *find_in_class(const struct vb_tags *t, uint64_t tag,
				   unsigned class)
{
	const struct mask_class *m = &t->classes[class];
	uint64_t key = tag & m->mask;
	struct entry *e = NULL;

	if (m->count)
		e = entry_at(t, chain_of(t, key, class)->first);
	while (e && (e->tag != key || e->class != class))
		e = entry_at(t, e->next);
	return e;
}

/* Returns the buffer that was posted first among those that match @tag; NULL:
 * no buffer matches. */
static struct entry *find_entry(const struct vb_tags *t, uint64_t tag)
{
	struct entry *first = NULL, *e;

	for (unsigned i = 0; i < MASKS; i++) {
		e = find_in_class(t, tag, i);
		if (e && (!first || e->serial < first->serial))
			first = e;
	}
	e = entry_at(t, t->chains[t->buckets].first);
	for (; e && (!first || e->serial < first->serial);
	     e = entry_at(t, e->next))
		if ((tag & e->mask) == e->tag)
			first = e;
	return first && first->serial < t->enabled ? first : NULL;
}

static bool in_step(const struct vb_tags *t)
{
	return t->arrived == t->seen;
}

/* If the program has handled every unexpected message so far, let all buffers
 * that are in the list now receive messages. */
static void enable(struct vb_tags *t)
{
	if (in_step(t))
		t->enabled = t->serial;
}

/* Creating and destroying a list. */

static struct vb_tags *make_tags(uint32_t max)
{
	struct vb_tags *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->max = max;
	t->buckets = max <= 1 ? 1 : 1u << (32 - __builtin_clz(max - 1));
	/* calloc: entries that are never used take no memory. */
	t->entries = calloc(max, sizeof(*t->entries));
	t->chains = calloc((size_t)t->buckets + 1, sizeof(*t->chains));
	if (t->entries && t->chains)
		return t;
	free(t->entries);
	free(t->chains);
	free(t);
	return NULL;
}

int vb_tag_join(struct vb_srq *srq, struct vb_cq *cq, uint32_t max)
{
	if (max == 0 || max > VB_TAG_MAX || srq->pd->adapter != cq->adapter)
		return -EINVAL;
	srq->tags = make_tags(max);
	if (!srq->tags)
		return -ENOMEM;
	srq->cq = cq;
	atomic_fetch_add(&cq->refs, 1);
	vb_srq_note(srq);
	return 0;
}

void vb_tag_leave(struct vb_srq *srq)
{
	free(srq->tags->entries);
	free(srq->tags->chains);
	free(srq->tags);
	atomic_fetch_sub(&srq->cq->refs, 1);
}

/* Operations on the list. */

static void take_count(struct vb_tags *t, const struct vb_tag_op *op)
{
	if (!op->sync)
		return;
	t->seen = (uint16_t)op->seen;
	enable(t);
}

/* Complete a list operation. The caller holds rq.lock, so that no message's
 * completion overtakes this one. If the completion queue is full, its owner has
 * got an event. */
static void complete_op(struct vb_srq *srq, const struct vb_tag_op *op,
			enum vb_wc_op opcode, enum vb_wc_status status)
	VB_REQUIRES(srq->rq.lock)
{
	const struct vb_cqe e = {
		.wr_id = op->wr_id,
		.status = (uint8_t)status,
		.opcode = (uint8_t)opcode,
		.wc_flags = in_step(srq->tags) ? 0 : WC_TM_SYNC_REQ,
		.timestamp = op->now,
	};

	if (op->signaled)
		(void)!vb_cq_push(srq->cq, &e, false);
}

static int add_entry(struct vb_tags *t, struct vb_tag_op *op)
{
	struct entry *e = take_free(t);

	if (!e)
		return -ENOMEM;
	e->tag = op->tag;
	e->mask = op->mask;
	e->wr_id = op->recv_wr_id;
	e->serial = t->serial++;
	e->class = (uint8_t)enter_class(t, op->mask);
	e->used = true;
	e->count = (uint8_t)op->count;
	if (op->count)
		memcpy(e->sge, op->sge, op->count * sizeof(e->sge[0]));
	link_last(t, e);
	op->handle = e->life << INDEX_BITS | (core_name_of(t, e) - 1);
	return 0;
}

int vb_tag_add(struct vb_srq *srq, struct vb_tag_op *op)
{
	struct vb_tags *t = srq->tags;
	int rc;

	if (op->count > VB_TAG_MAX_SGE)
		return -EINVAL;
	vb_mutex_lock(&srq->rq.lock);
	rc = add_entry(t, op);
	if (rc == 0) {
		take_count(t, op);
		enable(t);
		complete_op(srq, op, WC_OP_TM_ADD, WC_SUCCESS);
	}
	vb_mutex_unlock(&srq->rq.lock);
	return rc;
}

int vb_tag_del(struct vb_srq *srq, const struct vb_tag_op *op)
{
	uint32_t index = op->handle & ((1u << INDEX_BITS) - 1);
	struct vb_tags *t = srq->tags;
	struct entry *e;
	bool there;

	if (index >= t->max)
		return -EINVAL;
	vb_mutex_lock(&srq->rq.lock);
	e = &t->entries[index];
	there = e->used && (e->life << INDEX_BITS) >> INDEX_BITS ==
				   op->handle >> INDEX_BITS;
	if (there)
		drop_entry(t, e);
	take_count(t, op);
	complete_op(srq, op, WC_OP_TM_DEL, there ? WC_SUCCESS : WC_TM_ERR);
	vb_mutex_unlock(&srq->rq.lock);
	return 0;
}

void vb_tag_sync(struct vb_srq *srq, const struct vb_tag_op *op)
{
	vb_mutex_lock(&srq->rq.lock);
	take_count(srq->tags, op);
	complete_op(srq, op, WC_OP_TM_SYNC, WC_SUCCESS);
	vb_mutex_unlock(&srq->rq.lock);
}

/* Completions of messages. */

/* Push a completion. False: the completion is lost, and the caller moves the
 * queue pair to ERR. The entry outlives the queue pair, because the buffer
 * belongs to the shared queue. */
static bool core_tell(struct vb_qp *qp, struct vb_cqe e)
{
	e.opcode = WC_OP_TM_RECV;
	e.qpn = atomic_load_explicit(&qp->qpn, memory_order_relaxed);
	e.src_qp = qp->attr.dest_qp_num;
	e.timestamp = qp->now;
	return vb_cq_push(qp->srq->cq, &e, false);
}

static bool tell_match(struct vb_qp *qp, const struct message *m,
		       uint64_t wr_id)
{
	bool rndv = m->tmh.op == TM_OP_RNDV;

	return core_tell(qp, (struct vb_cqe){
				     .wr_id = wr_id,
				     .wc_flags = WC_TM_MATCH,
				     .byte_len = rndv ? m->rvh.length : 0,
				     .tm_tag = m->tmh.tag,
				     .tm_app_ctx = m->tmh.app_ctx,
			     });
}

/* Undo the count of an unexpected message that will not arrive, so that the
 * program need not handle it. */
static void uncount(struct vb_srq *srq)
{
	vb_mutex_lock(&srq->rq.lock);
	srq->tags->arrived--;
	enable(srq->tags);
	vb_mutex_unlock(&srq->rq.lock);
}

static bool is_behind(struct vb_srq *srq)
{
	const struct vb_tags *t = srq->tags;
	bool behind;

	vb_mutex_lock(&srq->rq.lock);
	behind = (uint16_t)(t->arrived - t->seen) > MOST_BEHIND;
	vb_mutex_unlock(&srq->rq.lock);
	return behind;
}

static void fill_unexpected(const struct vb_qp *qp, struct vb_cqe *e)
{
	e->opcode = WC_OP_TM_RECV;
	if (e->status != WC_SUCCESS)
		uncount(qp->srq);
	else if (is_behind(qp->srq))
		e->wc_flags |= WC_TM_SYNC_REQ;
}

void vb_tag_fill(struct vb_qp *qp, struct vb_cqe *e)
{
	const struct vb_tag_note *note = &qp->tagged;

	switch (note->kind) {
	case TAG_UNEXPECTED:
		fill_unexpected(qp, e);
		break;
	case TAG_WHOLE:
		e->opcode = WC_OP_TM_RECV;
		e->wc_flags |= WC_TM_MATCH | WC_TM_DATA_VALID;
		e->tm_tag = note->tag;
		/* The entry of a failed message has the cause of the failure
		 * (@why), which must not be overwritten. */
		if (!vb_cqe_failed(e))
			e->tm_app_ctx = note->app_ctx;
		break;
	case TAG_LONG:
		e->opcode = WC_OP_TM_RECV;
		e->wc_flags |= WC_TM_DATA_VALID;
		break;
	default:
		e->opcode = WC_OP_TM_NO_TAG;
	}
	qp->tagged.kind = TAG_NO_TAG;
}

/* Flush the message being received, since its rest will not come. */
static void give_up_message(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_cqe e = { .wr_id = qp->recv.wr_id, .status = WC_FLUSH_ERR };

	if (!qp->recv_busy)
		return;
	qp->recv_busy = false;
	vb_tag_fill(qp, &e);
	(void)!core_tell(qp, e);
}

void vb_tag_cancel(struct vb_qp *qp)
{
	struct vb_sq *sq = &qp->sq;

	while (sq->open == 0 && sq->done != vb_sq_end(sq)) {
		const struct vb_send_wqe *wqe = vb_sq_at(sq, sq->done++);

		if (wqe->op == WR_READ)
			(void)!core_tell(
				qp, (struct vb_cqe){ .wr_id = wqe->wr_id,
						     .status = WC_FLUSH_ERR });
	}
	give_up_message(qp);
}

/* Rendezvous: read the data of a message, then report the end to the sender
 * (FIN). */

bool vb_tag_owns_sends(const struct vb_srq *srq, const struct vb_pd *pd,
		       uint32_t max_send_wr)
{
	return srq && srq->tags && srq->pd == pd && max_send_wr == 0;
}

static bool has_send_slots(const struct vb_sq *sq)
{
	return vb_sq_end(sq) + 2 - sq->done <= sq->cap;
}

static struct vb_send_wqe *fresh_slot(struct vb_sq *sq, uint64_t wr_id,
				      enum vb_wr_op op, uint8_t flags)
{
	struct vb_send_wqe *wqe = vb_sq_at(sq, vb_sq_end(sq));

	*wqe = (struct vb_send_wqe){ .wr_id = wr_id, .op = op, .flags = flags };
	return wqe;
}

/* Post the READ of the data, and behind it (fenced) the FIN: the header as it
 * arrived, except for its first byte. (Unchecked: a program cannot post to this
 * send queue, so its lock is not taken; rq.lock has the same rank.) */
static void VB_UNCHECKED post_read_and_fin(struct vb_qp *qp,
					   const struct message *m,
					   const struct entry *e)
{
	struct vb_sq *sq = &qp->sq;
	struct vb_send_wqe *wqe = fresh_slot(sq, e->wr_id, WR_READ, 0);

	wqe->remote_addr = m->rvh.va;
	wqe->rkey = m->rvh.rkey;
	wqe->length = m->rvh.length;
	wqe->num_sge = e->count;
	memcpy(wqe->sge, e->sge, e->count * sizeof(e->sge[0]));
	vb_sq_commit(sq);
	wqe = fresh_slot(sq, e->wr_id, WR_SEND, SEND_FENCE | SEND_INLINE);
	wqe->length = VB_RNDV_BYTES;
	memcpy(wqe->inline_data, m->bytes, VB_RNDV_BYTES);
	wqe->inline_data[0] = TM_OP_FIN;
	vb_sq_commit(sq);
}

void vb_tag_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		 enum vb_wc_status status)
{
	bool good = status == WC_SUCCESS;

	/* Free the slots of the send queue here, because the program neither
	 * posts to this queue nor polls completions of it. */
	atomic_store_explicit(&qp->sq.released, qp->sq.done,
			      memory_order_relaxed);
	if (wqe->op == WR_READ &&
	    !core_tell(qp,
		       (struct vb_cqe){ .wr_id = wqe->wr_id,
					.status = (uint8_t)status,
					.wc_flags = good ? WC_TM_DATA_VALID : 0,
					.byte_len = wqe->length }))
		vb_qp_fail(qp, EVENT_QP_FATAL);
}

/* The beginning of a message: finding its buffer. */

static void read_message(const void *head, uint32_t len, bool whole,
			 struct message *m)
{
	uint32_t have = VB_MIN(len, VB_RNDV_BYTES);

	memcpy(m->bytes, head, have);
	/* A compiler barrier: from here on read the copy, and not the sender's
	 * memory, which may change. */
	__asm__ volatile("" : : "r"(m->bytes) : "memory");
	m->len = len;
	m->whole = whole;
	m->matches = m->counts = false;
	if (!vb_tmh_get(m->bytes, have, &m->tmh))
		return;
	m->counts = m->tmh.op == TM_OP_EAGER || m->tmh.op == TM_OP_RNDV;
	m->matches =
		m->tmh.op == TM_OP_EAGER ||
		(m->tmh.op == TM_OP_RNDV && whole && len <= VB_TAG_RNDV_MAX &&
		 vb_rvh_get(m->bytes, have, &m->rvh));
}

/* Make qp->recv the receive of the matched buffer, and remove the buffer from
 * the list. */
static void take_buffer(struct vb_qp *qp, struct vb_tags *t, struct entry *e)
{
	qp->recv.wr_id = e->wr_id;
	qp->recv.num_sge = e->count;
	qp->recv.index = 0;
	memcpy(qp->recv.sge, e->sge, e->count * sizeof(e->sge[0]));
	qp->recv.length = vb_sge_total(e->sge, e->count);
	qp->recv_busy = true;
	drop_entry(t, e);
}

static enum vb_fault meet_eager(struct vb_qp *qp, const struct message *m,
				struct entry *e)
{
	qp->tagged.kind = m->whole ? TAG_WHOLE : TAG_LONG;
	take_buffer(qp, qp->srq->tags, e);
	return m->whole || tell_match(qp, m, qp->recv.wr_id) ? FAULT_NONE
							     : FAULT_RQE_LKEY;
}

/* The rendezvous message @m matches buffer @e: read its data here if possible;
 * otherwise the program reads the data. */
static enum vb_fault meet_rndv(struct vb_qp *qp, const struct message *m,
			       struct entry *e)
{
	uint64_t room = vb_sge_total(e->sge, e->count);
	bool told;

	if (qp->sq.open || !qp->sq.cap || m->rvh.length > room ||
	    m->rvh.length > VB_MAX_MSG) {
		qp->tagged.kind = TAG_WHOLE;
		take_buffer(qp, qp->srq->tags, e);
		return FAULT_NONE;
	}
	if (!has_send_slots(&qp->sq))
		return FAULT_NO_RQE;
	qp->tagged.kind = TAG_RNDV;
	told = tell_match(qp, m, e->wr_id);
	post_read_and_fin(qp, m, e);
	drop_entry(qp->srq->tags, e);
	return told ? FAULT_NONE : FAULT_RQE_LKEY;
}

static enum vb_fault take_untagged(struct vb_qp *qp, const struct message *m,
				   bool *event) VB_REQUIRES(qp->srq->rq.lock)
{
	if (!vb_srq_take_locked(qp->srq, &qp->recv, event))
		return FAULT_NO_RQE;
	qp->recv_busy = true;
	qp->tagged.kind = m->counts ? TAG_UNEXPECTED : TAG_NO_TAG;
	qp->srq->tags->arrived += m->counts;
	return FAULT_NONE;
}

/* Find the destination of a message: a tagged buffer or an ordinary receive.
 * The caller holds rq.lock. */
static enum vb_fault sort_message(struct vb_qp *qp, const struct message *m,
				  bool *event) VB_REQUIRES(qp->srq->rq.lock)
{
	struct entry *e =
		m->matches ? find_entry(qp->srq->tags, m->tmh.tag) : NULL;

	if (!e)
		return take_untagged(qp, m, event);
	qp->tagged.tag = m->tmh.tag;
	qp->tagged.app_ctx = m->tmh.app_ctx;
	return m->tmh.op == TM_OP_RNDV ? meet_rndv(qp, m, e)
				       : meet_eager(qp, m, e);
}

/* Deliver the headers to the program, which then reads the data itself. */
static enum vb_fault leave_to_program(struct vb_qp *qp, const struct message *m)
	VB_REQUIRES(qp->drive)
{
	uint32_t len = (uint32_t)VB_MIN(VB_RNDV_BYTES, qp->recv.length);
	const struct vb_recv_done done = {
		.status = WC_TM_RNDV_INCOMPLETE,
		.opcode = WC_OP_RECV,
		.byte_len = len,
		.src_qp = qp->attr.dest_qp_num,
	};

	if (vb_sge_place(qp->srq->pd, qp->recv.sge, qp->recv.num_sge, 0,
			 m->bytes, len))
		return FAULT_RQE_LKEY;
	vb_qp_recv_done(qp, &done);
	return FAULT_NONE;
}

enum vb_fault vb_tag_begin(struct vb_qp *qp, const void *head, uint32_t len,
			   bool whole, uint32_t *skip)
{
	struct vb_srq *srq = qp->srq;
	enum vb_fault fault;
	bool event = false;
	struct message m;

	/* A near sender whose own memory is missing begins its message anew, so
	 * give up the part that it has already sent. */
	give_up_message(qp);
	qp->tagged.serial++;
	read_message(head, len, whole, &m);
	vb_mutex_lock(&qp->srq->rq.lock);
	fault = sort_message(qp, &m, &event);
	vb_mutex_unlock(&qp->srq->rq.lock);
	if (event && srq->async)
		vb_async_post(srq->async, EVENT_SRQ_LIMIT, srq->owner);
	/* a full completion queue has lost a completion */
	if (fault == FAULT_RQE_LKEY)
		vb_qp_fail(qp, EVENT_QP_FATAL);
	*skip = 0;
	if (fault || qp->tagged.kind == TAG_NO_TAG ||
	    qp->tagged.kind == TAG_UNEXPECTED)
		return fault;
	*skip = m.tmh.op == TM_OP_RNDV ? len : VB_TMH_BYTES;
	return m.tmh.op == TM_OP_RNDV && qp->recv_busy
		       ? leave_to_program(qp, &m)
		       : FAULT_NONE;
}
