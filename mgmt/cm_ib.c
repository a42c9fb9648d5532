/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine of connections (IBA 12.9): the effect of each message in
 * each state, and the functions that the owner calls. */
#include <errno.h>
#include <stdlib.h>

#include "mgmt/cm_inside.h"

/* timeout code in an MRA: 68 s, the value that Linux announces */
#define MRA_CODE     24
#define DREQ_RETRIES 15
/* A peer that rejects our REQ with "invalid service ID" within RASH may have a
 * program that listens a moment later: this side sends the REQ again after
 * DOUBT_PAUSE, until DOUBT after the first REQ. */
#define RASH	    (150 * VB_MSEC)
#define DOUBT	    (500 * VB_MSEC)
#define DOUBT_PAUSE (100 * VB_MSEC)

static void send_plain(struct vb_cm_conn *c, enum vb_cm_attr attr, uint64_t tid)
{
	struct vb_cm_msg m = { .attr = (uint16_t)attr };

	vb_cm_send(c, &m, tid);
}

static void send_mra(struct vb_cm_conn *c, enum vb_cm_answered message)
{
	struct vb_cm_msg m = { .attr = CM_MRA };

	m.answer.message = (uint8_t)message;
	m.answer.timeout = MRA_CODE;
	vb_cm_send(c, &m, c->tid);
}

static enum vb_cm_answered what_is_rejected(const struct vb_cm_conn *c)
{
	if (c->state == CM_REQ_RCVD)
		return CM_ANSWERS_REQ;
	return c->state == CM_REP_RCVD ? CM_ANSWERS_REP : CM_ANSWERS_OTHER;
}

/* Rejects the REQ or REP that @c received (IBA 12.6.7). */
static void send_rej(struct vb_cm_conn *c, unsigned reason, const void *data,
		     unsigned bytes)
{
	struct vb_cm_msg m = { .attr = CM_REJ };

	m.answer.message = (uint8_t)what_is_rejected(c);
	m.answer.reason = (uint16_t)reason;
	if (reason == CM_REJ_INVALID_MTU) {
		m.answer.info_bytes = 1;
		m.answer.info[0] = *(const uint8_t *)data;
	} else if (bytes)
		memcpy(m.private_data, data,
		       VB_MIN(bytes, vb_cm_private_bytes(CM_REJ)));
	vb_cm_send(c, &m, c->tid);
}

static void send_dreq(struct vb_cm_conn *c, vb_time now)
{
	struct vb_cm_msg m = { .attr = CM_DREQ, .remote_qpn = c->remote_qpn };

	vb_cm_enter(c, CM_DREQ_SENT);
	c->max_tries = DREQ_RETRIES;
	c->patience = vb_cm_code_ns(VB_CM_TIMEOUT_CODE);
	c->disconnect_tid = vb_cm_new_tid(c);
	vb_cm_send_until_answered(c, &m, c->disconnect_tid, now);
}

void vb_cm_refuse_req(struct vb_cm_conn *c, unsigned reason, const void *data,
		      unsigned bytes)
{
	send_rej(c, reason, data, bytes);
	vb_cm_close(c);
}

/* Functions that answer messages of no known connection. */

static void refuse_req(struct vb_cm *cm, const struct vb_mad_path *path,
		       const struct vb_cm_msg *req, unsigned reason)
{
	struct vb_cm_msg m = { .attr = CM_REJ,
			       .tid = req->tid,
			       .remote_id = req->local_id };
	uint8_t mad[VB_MAD_BYTES];

	m.answer.message = CM_ANSWERS_REQ;
	m.answer.reason = (uint16_t)reason;
	vb_cm_put(mad, &m);
	cm->ops.out.send(cm->ops.out.arg, path, mad);
}

/* Answers a DREQ for a connection that this side no longer has, so that the
 * peer can end its own (IBA 12.9.8.3.1). */
static void answer_unknown_dreq(struct vb_cm *cm,
				const struct vb_mad_path *path,
				const struct vb_cm_msg *dreq)
{
	struct vb_cm_msg m = { .attr = CM_DREP,
			       .tid = dreq->tid,
			       .local_id = dreq->remote_id,
			       .remote_id = dreq->local_id };
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_put(mad, &m);
	cm->ops.out.send(cm->ops.out.arg, path, mad);
}

/* Answers a LAP that loads no path (IBA 12.8.2). */
static void refuse_lap(struct vb_cm *cm, const struct vb_mad_path *path,
		       const struct vb_cm_msg *lap,
		       enum vb_cm_apr_status status)
{
	struct vb_cm_msg m = { .attr = CM_APR,
			       .tid = lap->tid,
			       .local_id = lap->remote_id,
			       .remote_id = lap->local_id,
			       .apr = { .status = (uint8_t)status } };
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_put(mad, &m);
	cm->ops.out.send(cm->ops.out.arg, path, mad);
}

/*
 * The peer asks to connect with a queue pair that is connected here, so it must
 * have lost that connection. The caller refuses the new request and this
 * function ends the old connection, so that the peer's next try succeeds
 * (IBA 12.9.8.3.1).
 */
static void clear_stale(struct vb_cm_conn *old, vb_time now)
{
	if (old->state == CM_ESTABLISHED || old->state == CM_REP_SENT)
		send_dreq(old, now);
}

static void keep_request(struct vb_cm_conn *c, const struct vb_cm_msg *m)
{
	const struct vb_cm_req *q = &m->req;

	c->passive = true;
	c->tid = m->tid;
	c->remote_id = m->local_id;
	c->remote_guid = q->ca_guid;
	c->remote_qpn = q->qpn;
	c->max_tries = q->max_cm_retries;
	c->patience = vb_cm_code_ns(q->local_timeout) +
		      2 * vb_cm_code_ns(VB_CM_LIFE_CODE);
	c->linger = vb_cm_code_ns(VB_MAX(q->path.ack_timeout, 8));
}

static void meet(struct vb_cm *cm, const struct vb_mad_path *path,
		 const struct vb_cm_msg *m, vb_time now)
{
	struct vb_cm_conn *c = vb_cm_make(cm, path);

	if (!c) {
		refuse_req(cm, path, m, CM_REJ_NO_RESOURCES);
		return;
	}
	keep_request(c, m);
	vb_cm_link(c);
	vb_cm_introduce(c, m, now);
}

/* Answers a repeated REQ: the owner has not answered it yet, or our REP was
 * lost. */
static void repeat_answer(struct vb_cm_conn *c)
{
	if (c->state == CM_REQ_RCVD)
		send_mra(c, CM_ANSWERS_REQ);
	else if (c->state == CM_REP_SENT)
		vb_cm_send_mad(c, c->mad);
}

static void on_req(struct vb_cm *cm, const struct vb_mad_path *path,
		   const struct vb_cm_msg *m, vb_time now)
{
	struct vb_cm_conn *c =
		vb_cm_find_peers(cm, m->req.ca_guid, m->local_id);

	if (c && !c->sidr && vb_cm_is_on(c, path) &&
	    c->remote_qpn == m->req.qpn) {
		repeat_answer(c);
		return;
	}
	if (!c)
		c = vb_cm_find_qpn(cm, m->req.ca_guid, m->req.qpn);
	if (!c) {
		meet(cm, path, m, now);
		return;
	}
	refuse_req(cm, path, m, CM_REJ_STALE_CONN);
	/* A host that only claims the GUID of another must not end the other's
	 * connection. */
	if (vb_cm_is_same_peer(&c->path, path))
		clear_stale(c, now);
}

/* Functions for messages from the peer of a connection. */

static void cm_ib_take_reply(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			     vb_time now)
{
	if (m->tid != c->tid)
		return;
	vb_timer_cancel(&c->cm->timers, &c->timer);
	vb_cm_unlink(c);
	c->remote_id = m->local_id;
	c->remote_guid = m->rep.ca_guid;
	c->remote_qpn = vb_cm_rep_qpn(&m->rep);
	vb_cm_link(c);
	vb_cm_enter(c, CM_REP_RCVD);
	vb_cm_tell(c, CM_HAS_REPLY, m);
}

/* The peer has repeated its REP, but the owner has not answered yet: asks the
 * peer to wait (MRA). */
static void ask_patience(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			 vb_time now)
{
	if (m->local_id == c->remote_id)
		send_mra(c, CM_ANSWERS_REP);
}

/* Sends the RTU again, because the peer repeated its REP. */
static void repeat_rtu(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		       vb_time now)
{
	if (!c->passive && m->local_id == c->remote_id)
		send_plain(c, CM_RTU, c->tid);
}

static void extend(struct vb_cm_conn *c, const struct vb_cm_msg *m, vb_time now)
{
	static const enum vb_cm_answered answers[CM_STATES] = {
		[CM_REQ_SENT] = CM_ANSWERS_REQ,
		[CM_REP_SENT] = CM_ANSWERS_REP,
	};

	if (m->answer.message == answers[c->state])
		vb_cm_set_timer(c, now + vb_cm_code_ns(m->answer.timeout) +
					   vb_cm_code_ns(VB_CM_LIFE_CODE));
}

static void take_ready(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		       vb_time now)
{
	vb_timer_cancel(&c->cm->timers, &c->timer);
	vb_cm_enter(c, CM_ESTABLISHED);
	vb_cm_tell(c, CM_IS_ESTABLISHED, NULL);
}

/*
 * Is the REJ @m so early that a program may still begin to listen at the peer?
 * A peer that does not hold requests for a while (cm_held.c) rejects at once
 * when no program listens. A peer that answers late has held the request
 * already.
 */
static bool is_rash(const struct vb_cm_conn *c, const struct vb_cm_msg *m,
		    vb_time now)
{
	return c->state == CM_REQ_SENT &&
	       m->answer.reason == CM_REJ_INVALID_SERVICE_ID &&
	       now - c->sent_at < RASH && now - c->begun_at < DOUBT;
}

/*
 * The peer rejected our path MTU and named the largest that it accepts: sends
 * the REQ again with that. False: the REJ names no smaller one, and ends the
 * connection. A REJ that names the MTU of our second REQ answers the first REQ,
 * and is ignored.
 */
static bool ask_for_less(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			 vb_time now)
{
	struct vb_cm_msg req;
	uint8_t most = m->answer.info[0];

	if (c->state != CM_REQ_SENT || m->answer.reason != CM_REJ_INVALID_MTU ||
	    !m->answer.info_bytes || most == 0 ||
	    !vb_cm_get(c->mad, sizeof(c->mad), &req) || most > req.req.mtu)
		return false;
	if (most == req.req.mtu)
		return c->mtu != 0;
	c->mtu = req.req.mtu = most;
	vb_cm_send_until_answered(c, &req, c->tid, now);
	return true;
}

static void take_rejection(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			   vb_time now)
{
	if (ask_for_less(c, m, now))
		return;
	if (is_rash(c, m, now)) {
		vb_cm_set_timer(c, now + DOUBT_PAUSE);
		return;
	}
	if (c->insists && m->answer.reason == CM_REJ_STALE_CONN)
		/* The request stays, and its timer will repeat the REQ. */
		return;
	vb_cm_end(c, CM_IS_REJECTED, m);
}

/* The peer rejects an established connection: it sent the REJ before it got our
 * RTU, or believes that the connection has ended. */
static void take_late_rejection(struct vb_cm_conn *c, const struct vb_cm_msg *m,
				vb_time now)
{
	vb_cm_wait_out(c, now);
	vb_cm_tell(c, CM_IS_DISCONNECTED, NULL);
}

static void take_dreq(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		      vb_time now)
{
	if (m->remote_qpn != c->local_qpn)
		return;
	c->disconnect_tid = m->tid;
	send_plain(c, CM_DREP, m->tid);
	vb_cm_wait_out(c, now);
	vb_cm_tell(c, CM_IS_DISCONNECTED, NULL);
}

static void repeat_drep(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			vb_time now)
{
	send_plain(c, CM_DREP, m->tid);
}

static void take_drep(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		      vb_time now)
{
	if (m->tid != c->disconnect_tid)
		return;
	vb_cm_wait_out(c, now);
	vb_cm_tell(c, CM_IS_DISCONNECTED, NULL);
}

/*
 * Answer a LAP, by which the peer offers another alternate path, with a
 * refusal, since IBA 12.8 demands an answer. Only the program may change its
 * queue pair, and rdma_cm has no event that could tell the program of the path.
 * (Linux's rdma_cm does not answer a LAP.)
 */
static void answer_lap(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		       vb_time now)
{
	refuse_lap(c->cm, &c->path, m,
		   m->lap.remote_qpn == c->local_qpn ? CM_APR_UNSUPPORTED
						     : CM_APR_INVALID_QPN);
}

typedef void (*handler)(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			vb_time now);

/* The handler of each message (column) in each state (row). Without a handler
 * the message is late, early or wrong in that state, and is ignored. */
// clang-format off
#define COLUMN(message) [CM_##message - CM_REQ]
static const handler handlers[CM_STATES][CM_LAST - CM_REQ + 1] = {
	[CM_REQ_SENT] = {
		COLUMN(REP)  = cm_ib_take_reply,
		COLUMN(MRA)  = extend,
		COLUMN(REJ)  = take_rejection,
	},
	[CM_HELD] = {
		COLUMN(REJ)  = take_rejection,
	},
	[CM_REQ_RCVD] = {
		COLUMN(REJ)  = take_rejection,
	},
	[CM_REP_SENT] = {
		COLUMN(RTU)  = take_ready,
		COLUMN(MRA)  = extend,
		COLUMN(REJ)  = take_rejection,
		COLUMN(DREQ) = take_dreq,
	},
	[CM_REP_RCVD] = {
		COLUMN(REP)  = ask_patience,
		COLUMN(REJ)  = take_rejection,
		COLUMN(DREQ) = take_dreq,
	},
	[CM_ESTABLISHED] = {
		COLUMN(REP)  = repeat_rtu,
		COLUMN(REJ)  = take_late_rejection,
		COLUMN(DREQ) = take_dreq,
		COLUMN(LAP)  = answer_lap,
	},
	[CM_DREQ_SENT] = {
		COLUMN(REJ)  = take_late_rejection,
		COLUMN(DREQ) = take_dreq,
		COLUMN(DREP) = take_drep,
	},
	[CM_TIMEWAIT] = {
		COLUMN(DREQ) = repeat_drep,
	},
};
#undef COLUMN
// clang-format on

/* Returns whether @m came from the peer of @c. In CM_REQ_SENT the peer's ID is
 * not known yet, and the sender of a REJ may not know our ID, so the
 * transaction ID of the REQ decides (IBA 12.6.7). */
static bool is_from_peer(const struct vb_cm_conn *c, const struct vb_cm_msg *m)
{
	if (m->attr == CM_REP || m->attr == CM_MRA || m->attr == CM_REJ)
		if (c->state == CM_REQ_SENT)
			return m->tid == c->tid;
	return m->local_id == c->remote_id ||
	       (m->attr == CM_REJ && m->tid == c->tid);
}

static void on_other(struct vb_cm *cm, const struct vb_mad_path *path,
		     const struct vb_cm_msg *m, vb_time now)
{
	struct vb_cm_conn *c = vb_cm_find_ours(cm, path, m->remote_id);
	handler h = NULL;

	if (c && is_from_peer(c, m)) {
		vb_cm_follow(c, path);
		h = handlers[c->state][m->attr - CM_REQ];
	} else {
		c = NULL;
	}
	if (h)
		h(c, m, now);
	else if (m->attr == CM_DREQ && !c)
		answer_unknown_dreq(cm, path, m);
	else if (m->attr == CM_LAP && !c)
		refuse_lap(cm, path, m, CM_APR_INVALID_COMM_ID);
}

/* Finds the connection that a REJ "timeout" ends, by the GUID of the peer in
 * the REJ: a peer that gave up before our REP came does not know our ID. */
static struct vb_cm_conn *find_abandoned(struct vb_cm *cm,
					 const struct vb_mad_path *path,
					 const struct vb_cm_msg *m)
{
	struct vb_cm_conn *c;

	if (m->attr != CM_REJ || m->remote_id != 0 ||
	    m->answer.reason != CM_REJ_TIMEOUT || m->answer.info_bytes < 8)
		return NULL;
	c = vb_cm_find_peers(cm, vb_load_be(m->answer.info, 8), m->local_id);
	return c && vb_cm_is_on(c, path) ? c : NULL;
}

/* Gives up the oldest connections above VB_CM_MAX_FADING, so that peers cannot
 * fill the memory with requests. A peer that answers in time is not
 * affected. */
static void give_up_oldest(struct vb_cm *cm, vb_time now)
{
	while (cm->fading_count > VB_CM_MAX_FADING)
		vb_cm_run_out(cm->fading, now);
}

void vb_cm_recv(struct vb_cm *cm, const struct vb_mad_path *path,
		const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_cm_conn *c;
	struct vb_cm_msg m;

	if (!vb_cm_get(bytes, len, &m))
		return;
	give_up_oldest(cm, now);
	switch (m.attr) {
	case CM_REQ:
		on_req(cm, path, &m, now);
		return;
	case CM_SIDR_REQ:
		vb_cm_sidr_request(cm, path, &m, now);
		return;
	case CM_SIDR_REP:
		vb_cm_sidr_reply(cm, path, &m);
		return;
	default:
		break;
	}
	c = find_abandoned(cm, path, &m);
	if (c)
		m.remote_id = c->local_id;
	on_other(cm, path, &m, now);
}

/* Functions that the owner calls. */

int vb_cm_connect(struct vb_cm *cm, struct vb_cm_msg *req,
		  const struct vb_mad_path *path, void *owner, vb_time now,
		  struct vb_cm_conn **conn)
{
	struct vb_cm_conn *c;
	int rc = vb_cm_begin(cm, path, owner, &c);

	if (rc)
		return rc;
	c->local_qpn = req->req.qpn & VB_CM_QPN_MASK;
	c->max_tries = req->req.max_cm_retries;
	c->patience = vb_cm_code_ns(req->req.remote_timeout) +
		      2 * vb_cm_code_ns(VB_CM_LIFE_CODE);
	/* the peer's ID and queue pair are unknown until its REP comes */
	vb_cm_enter(c, CM_REQ_SENT);
	*conn = c;
	vb_cm_send_until_answered(c, req, c->tid, now);
	return 0;
}

int vb_cm_accept(struct vb_cm_conn *c, struct vb_cm_msg *rep, vb_time now)
{
	if (c->state != CM_REQ_RCVD)
		return -EINVAL;
	c->local_qpn = vb_cm_rep_qpn(&rep->rep) & VB_CM_QPN_MASK;
	vb_cm_enter(c, CM_REP_SENT);
	vb_cm_send_until_answered(c, rep, c->tid, now);
	return 0;
}

int vb_cm_establish(struct vb_cm_conn *c, vb_time now)
{
	if (c->state == CM_REP_SENT) {
		take_ready(c, NULL, now);
		return 0;
	}
	if (c->state != CM_REP_RCVD)
		return -EINVAL;
	vb_cm_enter(c, CM_ESTABLISHED);
	send_plain(c, CM_RTU, c->tid);
	return 0;
}

int vb_cm_reject(struct vb_cm_conn *c, unsigned reason,
		 const void *private_data, unsigned bytes)
{
	if (c->state == CM_SIDR_RCVD)
		vb_cm_sidr_refuse(c, reason, private_data, bytes);
	else if (c->state == CM_REQ_RCVD || c->state == CM_REP_RCVD)
		vb_cm_refuse_req(c, reason, private_data, bytes);
	else
		return -EINVAL;
	return 0;
}

int vb_cm_disconnect(struct vb_cm_conn *c, vb_time now)
{
	if (c->state != CM_ESTABLISHED && c->state != CM_REP_SENT)
		return -EINVAL;
	send_dreq(c, now);
	return 0;
}

void vb_cm_release(struct vb_cm_conn *c, vb_time now)
{
	c->owner = NULL;
	switch (c->state) {
	case CM_CLOSED:
		vb_cm_free(c);
		break;
	case CM_REQ_SENT:
		vb_cm_abandon(c);
		vb_cm_close(c);
		break;
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
		vb_cm_refuse_req(c, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_SIDR_RCVD:
		vb_cm_sidr_refuse(c, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_SIDR_SENT:
		vb_cm_close(c);
		break;
	case CM_REP_SENT:
	case CM_ESTABLISHED:
		send_dreq(c, now);
		break;
	default: /* In any other state the connection ends without a message. */
		break;
	}
}

struct vb_cm *vb_cm_create(const struct vb_cm_ops *ops)
{
	struct vb_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->ids = vb_idtab_create(VB_CM_MAX_CONNS, 0);
	if (!cm->ids) {
		free(cm);
		return NULL;
	}
	cm->ops = *ops;
	cm->last_fading = &cm->fading;
	for (unsigned i = 0; i < VB_COUNT(cm->keys); i++)
		cm->keys[i] = (uint64_t)ops->random() << 32 | ops->random();
	cm->secret = ops->random();
	cm->generation = ops->random();
	cm->last_held = &cm->held;
	vb_timers_init(&cm->timers);
	return cm;
}

void vb_cm_destroy(struct vb_cm *cm)
{
	struct vb_cm_conn *c;

	for (uint32_t i = 0; i < VB_CM_MAX_CONNS && vb_idtab_used(cm->ids); i++)
		if ((c = vb_idtab_get(cm->ids, i)))
			vb_cm_free(c);
	vb_idtab_destroy(cm->ids);
	vb_timers_fini(&cm->timers);
	free(cm);
}
