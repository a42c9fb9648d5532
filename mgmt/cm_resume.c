/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that an earlier manager made. The programs that own them report
 * their numbers to this manager. The numbers must not change, because the peer
 * knows them. This manager's own local IDs contain an index into a table. The
 * IDs of an earlier manager do not, so separate hash chains contain its
 * connections.
 */
#include <errno.h>

#include "mgmt/cm_inside.h"

static struct vb_cm_conn **chain(struct vb_cm *cm, uint32_t local_id)
{
	return &cm->resumed[vb_cm_bucket(cm, 0, local_id)];
}

struct vb_cm_conn *vb_cm_find_resumed(struct vb_cm *cm,
				      const struct vb_mad_path *path,
				      uint32_t local_id)
{
	struct vb_cm_conn *c = *chain(cm, local_id);

	while (c && !(c->local_id == local_id && vb_cm_is_on(c, path)))
		c = c->next_resumed;
	return c;
}

void vb_cm_forget_resumed(struct vb_cm_conn *c)
{
	struct vb_cm_conn **at = chain(c->cm, c->local_id);

	if (!c->resumed)
		return;
	while (*at != c)
		at = &(*at)->next_resumed;
	*at = c->next_resumed;
}

static void remember(struct vb_cm_conn *c)
{
	struct vb_cm_conn **at = chain(c->cm, c->local_id);

	c->resumed = true;
	c->next_resumed = *at;
	*at = c;
}

static bool is_resumable(enum vb_cm_state s)
{
	return s == CM_ESTABLISHED || s == CM_REQ_RCVD || s == CM_REP_RCVD;
}

int vb_cm_resume(struct vb_cm *cm, const struct vb_cm_ticket *t,
		 const struct vb_mad_path *path, void *owner,
		 struct vb_cm_conn **conn)
{
	struct vb_cm_conn *c;
	int rc;

	if (!is_resumable(t->state) || vb_cm_find_ours(cm, path, t->local_id))
		return -EINVAL;
	rc = vb_cm_begin(cm, path, owner, &c);
	if (rc)
		return rc;
	c->local_id = t->local_id;
	c->remote_id = t->remote_id;
	c->local_qpn = t->local_qpn & VB_CM_QPN_MASK;
	c->remote_qpn = t->remote_qpn & VB_CM_QPN_MASK;
	c->remote_guid = t->remote_guid;
	c->tid = t->tid;
	c->passive = t->passive;
	c->max_tries = VB_CM_RETRIES;
	c->patience = vb_cm_code_ns(VB_CM_TIMEOUT_CODE) +
		      2 * vb_cm_code_ns(VB_CM_LIFE_CODE);
	remember(c);
	vb_cm_link(c);
	vb_cm_enter(c, t->state);
	*conn = c;
	return 0;
}

void vb_cm_insist(struct vb_cm_conn *c)
{
	c->insists = true;
}
