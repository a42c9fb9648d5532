/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds FPDUs in batches. The socket may accept only a part of a batch. If it
 * accepts a part of an FPDU, the sender keeps a copy of the rest; it builds
 * later FPDUs again from the cursor. So no copy of the program's data waits in
 * a buffer while the program may change or withdraw the data.
 *
 * With CRCs the sender copies the payload: otherwise the memory may change
 * between the computation of the CRC and the socket's copy, and the peer would
 * end the stream. Without CRCs it sends long payloads straight from the
 * program's memory.
 */
#include <stdlib.h>

#include "base/guard.h"
#include "core/sge.h"
#include "iwarp/stream.h"

/* The least bytes of a batch. A batch is not much longer than what the socket
 * accepted last time, because the sender would have to build the rest again. */
#define APPETITE_MIN (16u << 10)

/* Payloads shorter than this are copied, which is faster. */
#define DIRECT_BYTES 1024u

/* iovec entries of one FPDU: header, payload, trailer. */
#define FPDU_IOV (VB_MAX_SGE + 2)

bool vb_iw_has_room(const struct vb_iw_txq *out)
{
	return out->bytes < out->most && out->used < VB_IW_TX_BYTES &&
	       out->marks < VB_IW_TX_FPDUS &&
	       out->count + FPDU_IOV <= VB_IW_TX_IOV &&
	       out->held + VB_MAX_SGE <= VB_IW_TX_IOV;
}

static void add_iov(struct vb_iw_txq *out, const void *at, size_t len)
{
	struct iovec *last = out->count ? &out->iov[out->count - 1] : NULL;

	out->bytes += len;
	if (last && (uint8_t *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
		return;
	}
	/* struct iovec has no const, but sendmsg() only reads the bytes. */
	out->iov[out->count++] = (struct iovec){ (void *)(uintptr_t)at, len };
}

struct vb_writer vb_iw_fpdu_begin(struct vb_iw_txq *out)
{
	return (struct vb_writer){ out->room + out->used + VB_MPA_LEN_BYTES };
}

static enum vb_fault copy_payload(struct vb_qp *qp,
				  const struct vb_iw_source *src, uint8_t *to)
	VB_REQUIRES(qp->drive)
{
	const struct vb_send_wqe *wqe = src->wqe;

	if (src->answer)
		return vb_mr_read(qp->adapter, qp->pd, vb_iw_qpn(qp),
				  src->answer->stag,
				  src->answer->to + src->offset, to, src->len);
	if (wqe->flags & SEND_INLINE) {
		memcpy(to, wqe->inline_data + src->offset, src->len);
		return FAULT_NONE;
	}
	return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, src->offset, to,
			     src->len);
}

static enum vb_fault copied(struct vb_qp *qp, struct vb_iw_txq *out,
			    struct vb_writer hdr,
			    const struct vb_iw_source *src)
	VB_REQUIRES(qp->drive)
{
	const struct vb_iw *s = vb_iw(qp);
	uint8_t *fpdu = out->room + out->used;
	uint32_t ulpdu = (uint32_t)(hdr.at - fpdu) - VB_MPA_LEN_BYTES;
	enum vb_fault fault = FAULT_NONE;
	uint32_t len;

	if (src && src->len)
		fault = copy_payload(qp, src, hdr.at);
	if (fault)
		return fault;
	ulpdu += src ? src->len : 0;
	len = vb_mpa_seal(fpdu, ulpdu, s->terms.crc && !s->terms.tx_markers);
	if (s->terms.tx_markers)
		len = vb_mark(fpdu, s->tx.marker, len, s->terms.crc);
	add_iov(out, fpdu, len);
	out->used += len;
	return FAULT_NONE;
}

/* Functions that send payload straight from the program's memory. */

static bool goes_direct(const struct vb_iw *s, const struct vb_iw_source *src)
{
	if (!src || src->len < DIRECT_BYTES || s->copies || s->terms.crc ||
	    s->terms.tx_markers)
		return false;
	return src->answer || !(src->wqe->flags & SEND_INLINE);
}

static enum vb_fault add_use(struct vb_qp *qp, struct vb_iw_txq *out,
			     uint32_t key, uint64_t at, uint32_t len,
			     uint32_t need) VB_REQUIRES(qp->drive)
{
	struct vb_mr_use *use = &out->use[out->held];
	enum vb_fault fault = vb_mr_begin(qp->adapter, qp->pd, vb_iw_qpn(qp),
					  key, at, len, need, use);

	if (fault)
		return fault;
	out->held++;
	add_iov(out, use->at, len);
	return FAULT_NONE;
}

static enum vb_fault add_list(struct vb_qp *qp, struct vb_iw_txq *out,
			      const struct vb_iw_source *src)
	VB_REQUIRES(qp->drive)
{
	uint64_t offset = src->offset;
	enum vb_fault fault = FAULT_NONE;
	uint32_t left = src->len;

	for (unsigned i = 0; left && !fault; i++) {
		const struct vb_sge *sge = &src->wqe->sge[i];
		uint32_t len;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		len = (uint32_t)VB_MIN(left, sge->length - offset);
		fault = add_use(qp, out, sge->lkey, sge->addr + offset, len, 0);
		left -= len;
		offset = 0;
	}
	return fault ? FAULT_LKEY : FAULT_NONE;
}

static enum vb_fault add_payload(struct vb_qp *qp, struct vb_iw_txq *out,
				 const struct vb_iw_source *src)
	VB_REQUIRES(qp->drive)
{
	if (src->answer)
		return add_use(qp, out, src->answer->stag,
			       src->answer->to + src->offset, src->len,
			       ACCESS_REMOTE_READ);
	return add_list(qp, out, src);
}

static enum vb_fault direct(struct vb_qp *qp, struct vb_iw_txq *out,
			    struct vb_writer hdr,
			    const struct vb_iw_source *src)
	VB_REQUIRES(qp->drive)
{
	uint8_t *fpdu = out->room + out->used;
	uint32_t head = (uint32_t)(hdr.at - fpdu);
	uint32_t ulpdu = head - VB_MPA_LEN_BYTES + src->len;
	uint32_t tail = vb_mpa_pad(ulpdu) + VB_MPA_CRC_BYTES;
	const struct vb_iw_txq was = { .count = out->count,
				       .bytes = out->bytes };
	size_t last = was.count ? out->iov[was.count - 1].iov_len : 0;
	enum vb_fault fault;

	vb_store_be(fpdu, ulpdu, VB_MPA_LEN_BYTES);
	add_iov(out, fpdu, head);
	fault = add_payload(qp, out, src);
	if (fault) {
		out->count = was.count;
		out->bytes = was.bytes;
		if (was.count)
			out->iov[was.count - 1].iov_len = last;
		return fault;
	}
	memset(hdr.at, 0, tail);
	add_iov(out, hdr.at, tail);
	out->used += head + tail;
	return FAULT_NONE;
}

enum vb_fault vb_iw_fpdu_end(struct vb_qp *qp, struct vb_iw_txq *out,
			     struct vb_writer hdr,
			     const struct vb_iw_source *src)
{
	return goes_direct(vb_iw(qp), src) ? direct(qp, out, hdr, src)
					   : copied(qp, out, hdr, src);
}

void vb_iw_fpdu_mark(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	size_t begin = out->marks ? out->mark[out->marks - 1].end : out->lead;

	s->tx.marker = (uint16_t)((s->tx.marker + (out->bytes - begin)) %
				  VB_MPA_MARKER_INTERVAL);
	out->mark[out->marks++] = (struct vb_iw_mark){ out->bytes, s->tx };
}

/* Functions that fill a batch and take the result of the socket's call. */

/* May this side send yet? The initiator sends the first FPDU (RFC 5044 s7.1.2).
 * Without peer-to-peer mode the responder may nevertheless send first, once the
 * initiator has had time to read the MPA reply; other implementations permit
 * this as well. */
static bool may_speak(const struct vb_iw *s, vb_time now)
{
	return s->terms.initiator || s->in.heard ||
	       (s->terms.rtr == RTR_NONE && now >= s->patient_until);
}

static bool card_is_due(const struct vb_iw *s)
{
	return s->has_card && !s->tx.carded && s->tx.stage == STAGE_NONE;
}

bool vb_iw_is_idle(const struct vb_qp *qp, vb_time now)
{
	const struct vb_iw *s = vb_iw(qp);

	return s->phase == IW_OPEN && vb_iw_state(qp) != QPS_ERR &&
	       qp->way != WAY_PACKETS && s->tx.stage == STAGE_NONE &&
	       !card_is_due(s) && !vb_iw_has_answers(s) &&
	       s->cut_at == s->cut_end &&
	       !(s->terms.initiator && now >= vb_iw_nudge_time(s));
}

/* Put the next FPDU into @out. A message is finished before another begins, and
 * then requests and responses alternate. False: there is no FPDU to send. */
static bool put_next(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	if (s->tx.stage == STAGE_RTR)
		return vb_iw_put_rtr(qp, out);
	if (s->tx.stage == STAGE_NONE && s->terms.initiator &&
	    qp->now >= vb_iw_nudge_time(s)) {
		vb_iw_put_nudge(qp, out);
		return true;
	}
	if (card_is_due(s)) {
		vb_iw_put_card(qp, out);
		return true;
	}
	if (s->tx.stage == STAGE_ANSWER)
		return vb_iw_put_answer(qp, out);
	if (s->tx.stage == STAGE_NONE && vb_iw_has_answers(s) &&
	    !s->tx.answered)
		return vb_iw_put_answer(qp, out);
	if (vb_iw_put_request(qp, out))
		return true;
	return s->phase == IW_OPEN && s->tx.stage == STAGE_NONE &&
	       vb_iw_has_answers(s) && vb_iw_put_answer(qp, out);
}

/* Put the remaining FPDUs of a stream that ends into @out: responses, then the
 * Terminate. A request of this side that was sent in part is not finished,
 * since its WQE has failed. */
static bool put_last(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	if (s->tx.stage == STAGE_LAST)
		return false;
	if (vb_iw_has_answers(s))
		return vb_iw_put_answer(qp, out);
	vb_iw_put_term(qp, out);
	return true;
}

static bool put_one(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive)
{
	switch (vb_iw(qp)->phase) {
	case IW_OPEN:
		return put_next(qp, out);
	case IW_DYING:
		return put_last(qp, out);
	default:
		return false;
	}
}

static void begin_batch(struct vb_iw *s, struct vb_iw_txq *out)
{
	out->count = out->marks = out->held = 0;
	out->bytes = 0;
	out->used = 0;
	out->most = s->appetite;
	out->lead = s->cut_end - s->cut_at;
	out->before = s->tx;
	if (out->lead)
		add_iov(out, s->cut + s->cut_at, out->lead);
}

/* The socket has accepted all bytes before the cursor @c: complete their
 * WQEs. */
static void note_taken(struct vb_qp *qp, const struct vb_iw_cursor *c)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	s->taken = *c;
	if (s->phase == IW_DYING && c->stage == STAGE_LAST)
		s->phase = IW_ENDING;
	vb_iw_retire(qp);
}

bool vb_iw_lives(struct vb_qp *qp)
{
	if (vb_iw_state(qp) == QPS_ERR) {
		vb_qp_flush(qp);
		vb_iw_give_up(qp);
	}
	return vb_iw(qp)->phase == IW_OPEN;
}

bool vb_iw_send(struct vb_qp *qp, vb_time now, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	bool more = true;

	now = vb_qp_advance(qp, now);
	if (now - s->sent_at >= VB_IW_GATHER_LASTS)
		s->unheard = 0;
	begin_batch(s, out);
	if (vb_iw_lives(qp) && !may_speak(s, now)) {
		vb_iw_run_local(qp);
		more = false;
	}
	while (more && vb_iw_has_room(out))
		more = put_one(qp, out);
	if (out->marks)
		vb_count(qp->adapter, CNT_SENT_PKTS, out->marks);
	else if (!out->lead)
		note_taken(qp, &s->tx);
	return more;
}

static bool iw_grow(uint8_t **at, uint32_t *room, uint32_t need)
{
	uint8_t *more;

	if (*room >= need)
		return true;
	more = realloc(*at, need);
	if (!more)
		return false;
	*at = more;
	*room = need;
	return true;
}

/* Copy the batch's bytes from @from up to @to, because they may be in the
 * program's memory. False: no memory. */
static bool keep_cut(struct vb_iw *s, const struct vb_iw_txq *out, size_t from,
		     size_t to)
{
	uint32_t len = (uint32_t)(to - from);
	uint8_t *at;

	if (!iw_grow(&s->cut, &s->cut_room, len))
		return false;
	s->cut_at = 0;
	s->cut_end = len;
	at = s->cut;
	for (unsigned i = 0; i < out->count && len; i++) {
		const struct iovec *v = &out->iov[i];
		size_t part;

		if (from >= v->iov_len) {
			from -= v->iov_len;
			continue;
		}
		part = VB_MIN(len, v->iov_len - from);
		if (vb_guard_copy(at, (uint8_t *)v->iov_base + from, part))
			return false;
		at += part;
		len -= (uint32_t)part;
		from = 0;
	}
	return true;
}

static void end_uses(struct vb_iw_txq *out)
{
	for (unsigned i = 0; i < out->held; i++)
		vb_mr_end(&out->use[i]);
	out->held = 0;
}

/* The socket has accepted @bytes bytes of the batch, @lead included. Moves the
 * cursor behind the last FPDU of which it accepted a part, and keeps the rest
 * of that FPDU. False: no memory for the rest. */
static bool iw_keep_rest(struct vb_qp *qp, struct vb_iw_txq *out, size_t bytes)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	unsigned whole = 0;
	size_t begin;
	const struct vb_iw_cursor *c;

	s->cut_at = s->cut_end = 0;
	while (whole < out->marks && out->mark[whole].end <= bytes)
		whole++;
	if (whole == out->marks) {
		note_taken(qp, &s->tx);
		return true;
	}
	begin = whole ? out->mark[whole - 1].end : out->lead;
	c = whole ? &out->mark[whole - 1].after : &out->before;
	if (bytes == begin) {
		s->tx = *c;
		note_taken(qp, c);
		return true;
	}
	if (!keep_cut(s, out, bytes, out->mark[whole].end))
		return false;
	s->tx = out->mark[whole].after;
	note_taken(qp, c);
	return true;
}

static void learn_appetite(struct vb_iw *s, size_t had, size_t taken)
{
	if (taken < had)
		s->appetite = VB_MAX((uint32_t)taken, APPETITE_MIN);
	else if (had >= s->appetite)
		s->appetite = VB_MIN(2 * s->appetite, VB_IW_TX_BYTES);
}

bool vb_iw_sent(struct vb_qp *qp, struct vb_iw_txq *out, size_t bytes,
		vb_time now)
{
	struct vb_iw *s = vb_iw(qp);

	now = vb_qp_advance(qp, now);
	learn_appetite(s, out->bytes, bytes);
	if (bytes) {
		s->unheard += bytes < VB_IW_GATHER_BYTES;
		s->sent_at = now;
	}
	if (bytes < out->lead) {
		s->cut_at += (uint32_t)bytes;
		s->tx = out->before;
	} else if (!iw_keep_rest(qp, out, bytes)) {
		/* There is no memory for the rest of an FPDU that was sent in
		 * part. */
		vb_iw_lost(qp, now);
	}
	end_uses(out);
	return s->phase == IW_DYING;
}

void vb_iw_send_fault(struct vb_qp *qp, struct vb_iw_txq *out, vb_time now)
{
	vb_iw(qp)->copies = true;
	(void)vb_iw_sent(qp, out, 0, now);
}
