/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service ID resolution (IBA 12.11): a sender of datagrams needs no connection,
 * only the peer's queue pair number and Q_Key. The sender's address and its
 * request ID identify a request. This side keeps the answer for a while,
 * because the answer may be lost, and the sender then repeats the request.
 */
#include <errno.h>

#include "mgmt/cm_inside.h"

/* How long an answer is kept to repeat it: longer than two pauses between the
 * repetitions of a peer. */
#define KEEP_ANSWER (10 * VB_SEC)

/* Returns a hash of the peer's GID, or of its LID on InfiniBand, in place of
 * the CA GUID, which a SIDR REQ lacks. */
static uint64_t cm_sidr_peer_of(const struct vb_mad_path *path)
{
	if (path->place)
		return (uint64_t)path->place << 16 | path->dlid;
	return vb_load_be(path->dgid.raw, 8) * 31 +
	       vb_load_be(path->dgid.raw + 8, 8);
}

/* Functions of the side that asks for a queue pair. */

int vb_cm_look_up(struct vb_cm *cm, struct vb_cm_msg *req,
		  const struct vb_mad_path *path, void *owner, vb_time now,
		  struct vb_cm_conn **conn)
{
	struct vb_cm_conn *c;
	int rc = vb_cm_begin(cm, path, owner, &c);

	if (rc)
		return rc;
	c->sidr = true;
	c->max_tries = VB_CM_RETRIES;
	c->patience = vb_cm_code_ns(VB_CM_TIMEOUT_CODE);
	vb_cm_enter(c, CM_SIDR_SENT);
	*conn = c;
	vb_cm_send_until_answered(c, req, c->tid, now);
	return 0;
}

void vb_cm_sidr_reply(struct vb_cm *cm, const struct vb_mad_path *path,
		      const struct vb_cm_msg *m)
{
	struct vb_cm_conn *c = vb_cm_find_ours(cm, path, m->local_id);

	if (c && c->state == CM_SIDR_SENT && m->tid == c->tid)
		vb_cm_end(c, CM_HAS_ADDRESS, m);
}

/* Functions of the side that answers a SIDR REQ. */

void vb_cm_sidr_request(struct vb_cm *cm, const struct vb_mad_path *path,
			const struct vb_cm_msg *m, vb_time now)
{
	uint64_t peer = cm_sidr_peer_of(path);
	struct vb_cm_conn *c = vb_cm_find_peers(cm, peer, m->local_id);

	if (c) {
		if (c->state == CM_SIDR_DONE && c->sidr && c->tid == m->tid &&
		    vb_cm_is_on(c, path))
			vb_cm_send_mad(c, c->mad);
		return;
	}
	c = vb_cm_make(cm, path);
	/* no memory: the request counts as lost, and the peer repeats it */
	if (!c)
		return;
	c->passive = c->sidr = true;
	c->tid = m->tid;
	c->remote_id = m->local_id;
	c->remote_guid = peer;
	vb_cm_link(c);
	vb_cm_introduce(c, m, now);
}

static void put_reply(struct vb_cm_conn *c, struct vb_cm_msg *rep)
{
	rep->attr = CM_SIDR_REP;
	rep->tid = c->tid;
	rep->local_id = c->remote_id; /* the request ID, which the peer chose */
	vb_cm_put(c->mad, rep);
	vb_cm_send_mad(c, c->mad);
}

int vb_cm_answer(struct vb_cm_conn *c, struct vb_cm_msg *rep, vb_time now)
{
	if (c->state != CM_SIDR_RCVD)
		return -EINVAL;
	put_reply(c, rep);
	vb_cm_enter(c, CM_SIDR_DONE);
	vb_cm_set_timer(c, now + KEEP_ANSWER);
	return 0;
}

void vb_cm_sidr_refuse(struct vb_cm_conn *c, unsigned reason, const void *data,
		       unsigned bytes)
{
	struct vb_cm_msg rep = { 0 };

	rep.sidr.status = reason == CM_REJ_INVALID_SERVICE_ID
				  ? CM_SIDR_UNSUPPORTED
				  : CM_SIDR_REJECTED;
	if (bytes)
		memcpy(rep.private_data, data,
		       VB_MIN(bytes, vb_cm_private_bytes(CM_SIDR_REP)));
	put_reply(c, &rep);
	vb_cm_close(c);
}
