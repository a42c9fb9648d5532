/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a listener. Programs that connect twice (perftest -R)
 * listen again only after they have accepted the first connection; with
 * hardware, connecting takes milliseconds, which hides the gap. So a request
 * without a listener waits 200 ms before it is refused. The number of waiting
 * requests is bounded, and one peer can have only a part of them.
 */
#include "mgmt/cm_inside.h"

#define HOLD		(200 * VB_MSEC)
#define MAX_HELD	256
#define MAX_HELD_OF_ONE 64

static bool has_room(struct vb_cm *cm, const struct vb_cm_conn *c)
{
	unsigned same = 0;

	if (cm->held_count >= MAX_HELD)
		return false;
	for (const struct vb_cm_conn *h = cm->held; h; h = h->next_held)
		same += vb_cm_is_same_peer(&h->path, &c->path);
	return same < MAX_HELD_OF_ONE;
}

static void hold_message(struct vb_cm_conn *c, const struct vb_cm_msg *m,
			 vb_time now)
{
	struct vb_cm *cm = c->cm;

	vb_cm_enter(c, CM_HELD);
	vb_cm_put(c->mad, m);
	c->next_held = NULL;
	*cm->last_held = c;
	cm->last_held = &c->next_held;
	cm->held_count++;
	vb_cm_set_timer(c, now + HOLD);
}

void vb_cm_unhold(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;
	struct vb_cm_conn **at = &cm->held;

	while (*at && *at != c)
		at = &(*at)->next_held;
	if (!*at)
		return;
	*at = c->next_held;
	if (cm->last_held == &c->next_held)
		cm->last_held = at;
	cm->held_count--;
}

static void cm_held_refuse(struct vb_cm_conn *c, unsigned reason)
{
	vb_cm_enter(c, c->sidr ? CM_SIDR_RCVD : CM_REQ_RCVD);
	if (c->sidr)
		vb_cm_sidr_refuse(c, reason, NULL, 0);
	else
		vb_cm_refuse_req(c, reason, NULL, 0);
}

void vb_cm_turn_away(struct vb_cm_conn *c)
{
	cm_held_refuse(c, CM_REJ_INVALID_SERVICE_ID);
}

void vb_cm_introduce(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		     vb_time now)
{
	struct vb_cm *cm = c->cm;
	unsigned reason;

	vb_cm_enter(c, c->sidr ? CM_SIDR_RCVD : CM_REQ_RCVD);
	reason = cm->ops.request(cm->ops.arg, c, m);
	if (reason == CM_REJ_INVALID_SERVICE_ID && has_room(cm, c))
		hold_message(c, m, now);
	else if (reason == VB_CM_LATER)
		vb_cm_close(c);
	else if (reason)
		cm_held_refuse(c, reason);
}

/* If still no program listens, the request keeps waiting and its timer runs
 * on. */
static void ask_again(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;
	struct vb_cm_msg m;
	unsigned reason;

	if (!vb_cm_get(c->mad, VB_MAD_BYTES, &m))
		return;
	vb_cm_enter(c, c->sidr ? CM_SIDR_RCVD : CM_REQ_RCVD);
	reason = cm->ops.request(cm->ops.arg, c, &m);
	if (reason == CM_REJ_INVALID_SERVICE_ID || reason == VB_CM_LATER) {
		vb_cm_enter(c, CM_HELD);
		return;
	}
	vb_timer_cancel(&cm->timers, &c->timer);
	vb_cm_unhold(c);
	if (reason)
		cm_held_refuse(c, reason);
}

void vb_cm_listens(struct vb_cm *cm)
{
	struct vb_cm_conn *c, *next;

	for (c = cm->held; c; c = next) {
		next = c->next_held;
		ask_again(c);
	}
}
