/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the connection manager share, and nobody else sees. */
#ifndef MGMT_CM_INSIDE_H
#define MGMT_CM_INSIDE_H

#include "base/idtab.h"
#include "mgmt/cm_ib.h"

#define VB_CM_BUCKETS  8192
#define VB_CM_QPN_MASK 0xffffffu

struct vb_cm {
	struct vb_cm_ops ops;
	struct vb_timers timers;
	struct vb_idtab *ids;
	uint32_t secret, generation; /* numbers are hard to guess */
	uint64_t keys[2];	     /* and who shares a bucket */
	unsigned busy;
	struct vb_cm_conn *by_id[VB_CM_BUCKETS], *by_qpn[VB_CM_BUCKETS];
	struct vb_cm_conn *resumed[VB_CM_BUCKETS];
	struct vb_cm_conn *held, **last_held;
	unsigned held_count;
	/* oldest first */
	struct vb_cm_conn *fading, **last_fading;
	unsigned fading_count;
};

/* cm_conns.c: connections and their numbers. */
struct vb_cm_conn *vb_cm_make(struct vb_cm *cm, const struct vb_mad_path *path);
/* The same for an owner who will ask something. -EAGAIN: too many, -ENOMEM. */
int vb_cm_begin(struct vb_cm *cm, const struct vb_mad_path *path, void *owner,
		struct vb_cm_conn **conn);
void vb_cm_free(struct vb_cm_conn *c);
unsigned vb_cm_bucket(const struct vb_cm *cm, uint64_t guid, uint32_t number);
/* Freed, unless an owner has it. */
void vb_cm_close(struct vb_cm_conn *c);
void vb_cm_enter(struct vb_cm_conn *c, enum vb_cm_state to);
void vb_cm_set_timer(struct vb_cm_conn *c, vb_time at);
/* Its peer's numbers are known, and no longer. */
void vb_cm_link(struct vb_cm_conn *c);
void vb_cm_unlink(struct vb_cm_conn *c);
bool vb_cm_is_on(const struct vb_cm_conn *c, const struct vb_mad_path *path);
/* By our number, if it is that peer that says it. */
struct vb_cm_conn *vb_cm_find_ours(struct vb_cm *cm,
				   const struct vb_mad_path *path,
				   uint32_t local_id);
struct vb_cm_conn *vb_cm_find_number(struct vb_cm *cm, uint32_t local_id);
/* By the peer's: passive ones. */
struct vb_cm_conn *vb_cm_find_peers(struct vb_cm *cm, uint64_t guid,
				    uint32_t id);
struct vb_cm_conn *vb_cm_find_qpn(struct vb_cm *cm, uint64_t guid,
				  uint32_t qpn);
void vb_cm_send_mad(struct vb_cm_conn *c, const uint8_t mad[VB_MAD_BYTES]);
void vb_cm_send(struct vb_cm_conn *c, struct vb_cm_msg *m, uint64_t tid);
/* A transaction that who knows of another of ours cannot guess. */
uint64_t vb_cm_new_tid(const struct vb_cm_conn *c);
/* Send, and again until something comes. */
void vb_cm_send_until_answered(struct vb_cm_conn *c, struct vb_cm_msg *m,
			       uint64_t tid, vb_time now);
/* The next repetition is one of the early ones; later each time. */
bool vb_cm_is_pausing(struct vb_cm_conn *c);
void vb_cm_tell(struct vb_cm_conn *c, enum vb_cm_happening what,
		const struct vb_cm_msg *m);
/* Told last: the owner may release it, and then it is gone. */
void vb_cm_end(struct vb_cm_conn *c, enum vb_cm_happening what,
	       const struct vb_cm_msg *m);

/* cm_held.c: requests that nobody listens to yet. */
/* @c is new; @m made it. Asks who listens; @c may be gone afterwards. */
void vb_cm_introduce(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		     vb_time now);
void vb_cm_unhold(struct vb_cm_conn *c);
/* Nobody came. */
void vb_cm_turn_away(struct vb_cm_conn *c);

/* cm_resume.c: those whose numbers another manager drew. */
struct vb_cm_conn *vb_cm_find_resumed(struct vb_cm *cm,
				      const struct vb_mad_path *path,
				      uint32_t local_id);
void vb_cm_forget_resumed(struct vb_cm_conn *c);

/* cm_ib.c */
void vb_cm_refuse_req(struct vb_cm_conn *c, unsigned reason, const void *data,
		      unsigned bytes);

/* cm_time.c */
/* Enters time wait for c->linger ns: DREQs are answered, then @c is over. */
void vb_cm_wait_out(struct vb_cm_conn *c, vb_time now);
/* Sends the REJ "timeout" of a REQ or REP that was not answered. The receiver
 * of a REQ may not know our number, so the REJ names our GUID (IBA 12.6.7.2).
 */
void vb_cm_abandon(struct vb_cm_conn *c);
/* The time of @c's state is up, or its tries are. @c may be freed. */
void vb_cm_run_out(struct vb_cm_conn *c, vb_time now);

/* cm_sidr.c */
void vb_cm_sidr_refuse(struct vb_cm_conn *c, unsigned reason, const void *data,
		       unsigned bytes);
void vb_cm_sidr_request(struct vb_cm *cm, const struct vb_mad_path *path,
			const struct vb_cm_msg *m, vb_time now);
void vb_cm_sidr_reply(struct vb_cm *cm, const struct vb_mad_path *path,
		      const struct vb_cm_msg *m);

#endif
