/* SPDX-License-Identifier: BSD-2-Clause */
/* Time in the connection manager: repetitions, time-outs, time wait (IBA 12.9),
 * and requests that the network returned. */
#include <errno.h>

#include "mgmt/cm_inside.h"

/* A request ends after RETURNS_MEAN returns within at least RETURNS_SPAN, since
 * a program at the peer may be just starting. A kernel that fails to find a
 * host returns all packets that waited for it together, so each sending counts
 * at most once. */
#define RETURNS_MEAN 3
#define RETURNS_LAST VB_SEC

void vb_cm_wait_out(struct vb_cm_conn *c, vb_time now)
{
	vb_cm_enter(c, CM_TIMEWAIT);
	vb_cm_set_timer(c, now + c->linger);
}

void vb_cm_abandon(struct vb_cm_conn *c)
{
	struct vb_cm_msg req, m = { .attr = CM_REJ };

	m.answer.reason = CM_REJ_TIMEOUT;
	m.answer.message = CM_ANSWERS_OTHER;
	if (c->state == CM_REQ_SENT && vb_cm_get(c->mad, VB_MAD_BYTES, &req)) {
		m.answer.message = CM_ANSWERS_REQ;
		m.answer.info_bytes = 8;
		vb_store_be(m.answer.info, req.req.ca_guid, 8);
	}
	vb_cm_send(c, &m, c->tid);
}

void vb_cm_run_out(struct vb_cm_conn *c, vb_time now)
{
	switch (c->state) {
	case CM_HELD:
		vb_cm_turn_away(c);
		break;
	case CM_SIDR_SENT:
		vb_cm_end(c, CM_IS_UNREACHABLE, NULL);
		break;
	case CM_SIDR_DONE:
		vb_cm_close(c);
		break;
	case CM_REQ_SENT:
	case CM_REP_SENT:
		vb_cm_abandon(c);
		vb_cm_end(c, CM_IS_UNREACHABLE, NULL);
		break;
	case CM_DREQ_SENT:
		vb_cm_wait_out(c, now);
		vb_cm_tell(c, CM_IS_DISCONNECTED, NULL);
		break;
	case CM_TIMEWAIT:
		vb_cm_end(c, CM_IS_OVER, NULL);
		break;
	default:
		break;
	}
}

/* Returns whether @m is the request for which @c awaits an answer. A forged
 * return would need the request's random transaction ID, which only hosts that
 * see our packets know; such hosts could forge a refusal as well. */
static bool is_what_we_ask(const struct vb_cm_conn *c, const struct vb_gid *to,
			   const struct vb_cm_msg *m)
{
	return m->tid == c->tid && vb_gid_equal(to, &c->path.dgid) &&
	       ((m->attr == CM_REQ && c->state == CM_REQ_SENT) ||
		(m->attr == CM_SIDR_REQ && c->state == CM_SIDR_SENT));
}

static bool is_no_such_host(int error)
{
	return error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == EHOSTDOWN ||
	       /* EACCES comes from ICMPv6: prohibited, or no route */
	       error == EACCES;
}

/* Counts a request that the network returned. True: the peer counts as
 * unreachable. */
static bool count_return(struct vb_cm_conn *c, vb_time now)
{
	if (c->came_back)
		return false;
	c->came_back = true;
	if (c->returns++ == 0)
		c->returns_since = now;
	return c->returns >= RETURNS_MEAN &&
	       now - c->returns_since >= RETURNS_LAST;
}

void vb_cm_returned(struct vb_cm *cm, const struct vb_gid *to,
		    const uint8_t *bytes, size_t len, int error, vb_time now)
{
	bool host = is_no_such_host(error);
	struct vb_cm_conn *c;
	struct vb_cm_msg m;

	if ((error != ECONNREFUSED && !host) || !vb_cm_get(bytes, len, &m))
		return;
	c = vb_cm_find_number(cm, m.local_id);
	if (!c || !is_what_we_ask(c, to, &m) || !count_return(c, now))
		return;
	c->returned = host ? EHOSTUNREACH : error;
	vb_cm_run_out(c, now);
}

static void expire(struct vb_cm_conn *c, vb_time now)
{
	bool repeats = c->state == CM_REQ_SENT || c->state == CM_REP_SENT ||
		       c->state == CM_DREQ_SENT || c->state == CM_SIDR_SENT;

	if (repeats && !vb_cm_is_pausing(c)) {
		repeats = c->tries_left > 0;
		c->tries_left -= repeats;
	}
	if (!repeats) {
		vb_cm_run_out(c, now);
		return;
	}
	c->sent_at = now;
	c->came_back = false;
	if (c->state == CM_DREQ_SENT)
		/* The connection may have migrated away from a broken path. */
		(void)!vb_cm_migrate(c);
	vb_cm_send_mad(c, c->mad);
	vb_cm_set_timer(c, now + c->pause);
}

vb_time vb_cm_deadline(const struct vb_cm *cm)
{
	return vb_timers_next(&cm->timers);
}

void vb_cm_tick(struct vb_cm *cm, vb_time now)
{
	struct vb_timer *t;

	while ((t = vb_timers_pop(&cm->timers, now)))
		expire(VB_CONTAINER_OF(t, struct vb_cm_conn, timer), now);
}

unsigned vb_cm_busy(const struct vb_cm *cm)
{
	return cm->busy;
}

unsigned vb_cm_count(const struct vb_cm *cm)
{
	return vb_idtab_used(cm->ids);
}
