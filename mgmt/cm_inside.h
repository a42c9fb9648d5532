/* SPDX-License-Identifier: BSD-2-Clause */
/* The state and functions that the files of mgmt/ share; no other room includes
 * this header. One thread calls all of it. */
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
	uint32_t secret, generation; /* make local IDs hard to guess */
	uint64_t keys[2];	     /* secret: hash keys of the buckets */
	unsigned busy;
	struct vb_cm_conn *by_id[VB_CM_BUCKETS], *by_qpn[VB_CM_BUCKETS];
	struct vb_cm_conn *resumed[VB_CM_BUCKETS];
	struct vb_cm_conn *held, **last_held;
	unsigned held_count;
	/* CM_REP_SENT, CM_TIMEWAIT and CM_SIDR_DONE, the oldest first. */
	struct vb_cm_conn *fading, **last_fading;
	unsigned fading_count;
};

/* cm_conns.c: connections and their numbers. */
/* A new connection with a local ID and no owner; NULL: no memory, or no ID. */
struct vb_cm_conn *vb_cm_make(struct vb_cm *cm, const struct vb_mad_path *path);
/* The same for the side that asks: with an owner and a new transaction ID.
 * -EAGAIN: VB_CM_MAX_CONNS exist; -ENOMEM. */
int vb_cm_begin(struct vb_cm *cm, const struct vb_mad_path *path, void *owner,
		struct vb_cm_conn **conn);
void vb_cm_free(struct vb_cm_conn *c);
unsigned vb_cm_bucket(const struct vb_cm *cm, uint64_t guid, uint32_t number);
/* Ends @c without a message or an event, and frees it if it has no owner. */
void vb_cm_close(struct vb_cm_conn *c);
/* Changes the state, with the counts and the list that depend on it. */
void vb_cm_enter(struct vb_cm_conn *c, enum vb_cm_state to);
void vb_cm_set_timer(struct vb_cm_conn *c, vb_time at);
/* Adds @c to the tables that find a connection by its peer's numbers, or
 * removes it from them. Do not change those numbers while @c is in the
 * tables. */
void vb_cm_link(struct vb_cm_conn *c);
void vb_cm_unlink(struct vb_cm_conn *c);
/* Whether the GIDs of @c's path are those of @path. */
bool vb_cm_is_on(const struct vb_cm_conn *c, const struct vb_mad_path *path);
/* Finds a connection by our ID, but only if @path leads to its peer. */
struct vb_cm_conn *vb_cm_find_ours(struct vb_cm *cm,
				   const struct vb_mad_path *path,
				   uint32_t local_id);
/* Finds a connection by our ID alone, but no resumed one. */
struct vb_cm_conn *vb_cm_find_number(struct vb_cm *cm, uint32_t local_id);
/* Finds a passive connection by the peer's GUID and ID, which identify a
 * repeated REQ. */
struct vb_cm_conn *vb_cm_find_peers(struct vb_cm *cm, uint64_t guid,
				    uint32_t id);
/* Finds a connection by the peer's queue pair; none in time wait. */
struct vb_cm_conn *vb_cm_find_qpn(struct vb_cm *cm, uint64_t guid,
				  uint32_t qpn);
/* Sends @mad on @c's path, once. */
void vb_cm_send_mad(struct vb_cm_conn *c, const uint8_t mad[VB_MAD_BYTES]);
/* Fills in the IDs of @m and sends it on @c's path, once. */
void vb_cm_send(struct vb_cm_conn *c, struct vb_cm_msg *m, uint64_t tid);
/* A transaction ID whose lower half is random, so that a host that knows others
 * of ours cannot guess it. */
uint64_t vb_cm_new_tid(const struct vb_cm_conn *c);
/* Sends @m, keeps it in c->mad and starts the timer that repeats it. */
void vb_cm_send_until_answered(struct vb_cm_conn *c, struct vb_cm_msg *m,
			       uint64_t tid, vb_time now);
/* Whether the next repetition is one of the early ones, which do not count as
 * tries; doubles the pause before the one after it. */
bool vb_cm_is_pausing(struct vb_cm_conn *c);
/* Tells the owner, if @c has one. */
void vb_cm_tell(struct vb_cm_conn *c, enum vb_cm_happening what,
		const struct vb_cm_msg *m);
/* Closes @c and tells the owner as the last step, because the owner may release
 * @c, which frees it. */
void vb_cm_end(struct vb_cm_conn *c, enum vb_cm_happening what,
	       const struct vb_cm_msg *m);

/* cm_held.c: requests that wait for a listener. */
/* Asks the request function about @c, which @m made. It may free @c. */
void vb_cm_introduce(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		     vb_time now);
/* Takes @c off the list of waiting requests, if it is on it. */
void vb_cm_unhold(struct vb_cm_conn *c);
/* Refuses the request: no listener came in time. May free @c. */
void vb_cm_turn_away(struct vb_cm_conn *c);

/* cm_resume.c: connections whose local IDs an earlier manager chose. */
struct vb_cm_conn *vb_cm_find_resumed(struct vb_cm *cm,
				      const struct vb_mad_path *path,
				      uint32_t local_id);
void vb_cm_forget_resumed(struct vb_cm_conn *c);

/* cm_ib.c: sends a REJ and closes @c, which may free it. */
void vb_cm_refuse_req(struct vb_cm_conn *c, unsigned reason, const void *data,
		      unsigned bytes);

/* cm_time.c */
/* Enters time wait for c->linger ns: answers DREQs, and then ends @c. */
void vb_cm_wait_out(struct vb_cm_conn *c, vb_time now);
/* Sends the REJ "timeout" for the REQ or REP of @c, which the peer has not
 * answered. A peer that got only the REQ may not know our number, so the REJ
 * names our GUID (IBA 12.6.7.2). */
void vb_cm_abandon(struct vb_cm_conn *c);
/* The time that @c may be in its state, or the last try, is over: repeats the
 * message or ends @c, which may free it. */
void vb_cm_run_out(struct vb_cm_conn *c, vb_time now);

/* cm_sidr.c: looking up queue pairs for datagrams (IBA 12.11). */
/* Answers "no" with @bytes of private data and closes @c, which may free it. */
void vb_cm_sidr_refuse(struct vb_cm_conn *c, unsigned reason, const void *data,
		       unsigned bytes);
/* Takes a SIDR REQ, and a SIDR REP, that came on @path. */
void vb_cm_sidr_request(struct vb_cm *cm, const struct vb_mad_path *path,
			const struct vb_cm_msg *m, vb_time now);
void vb_cm_sidr_reply(struct vb_cm *cm, const struct vb_mad_path *path,
		      const struct vb_cm_msg *m);

#endif
