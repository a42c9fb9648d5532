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
	/* random values that make local communication IDs hard to guess */
	uint32_t secret, generation;
	uint64_t keys[2]; /* secret keys of the hash that chooses a bucket */
	unsigned busy;
	struct vb_cm_conn *by_id[VB_CM_BUCKETS], *by_qpn[VB_CM_BUCKETS];
	struct vb_cm_conn *resumed[VB_CM_BUCKETS];
	struct vb_cm_conn *held, **last_held;
	unsigned held_count;
	/* Chain of the connections in CM_REP_SENT, CM_TIMEWAIT and
	 * CM_SIDR_DONE, the oldest first. */
	struct vb_cm_conn *fading, **last_fading;
	unsigned fading_count;
};

/* Functions of cm_conns.c: connections and their numbers. */
/* Makes a connection with a local ID and without an owner. NULL: no memory, or
 * all IDs are in use. */
struct vb_cm_conn *vb_cm_make(struct vb_cm *cm, const struct vb_mad_path *path);
/* Makes a connection for the side that asks, with an owner, a local ID and a
 * new transaction ID. -EAGAIN: VB_CM_MAX_CONNS exist; -ENOMEM. */
int vb_cm_begin(struct vb_cm *cm, const struct vb_mad_path *path, void *owner,
		struct vb_cm_conn **conn);
void vb_cm_free(struct vb_cm_conn *c);
unsigned vb_cm_bucket(const struct vb_cm *cm, uint64_t guid, uint32_t number);
/* Ends @c without a message or an event, and frees it if it has no owner. */
void vb_cm_close(struct vb_cm_conn *c);
/* Changes the state of @c to @to, and the counts and the list that depend on
 * the state. */
void vb_cm_enter(struct vb_cm_conn *c, enum vb_cm_state to);
void vb_cm_set_timer(struct vb_cm_conn *c, vb_time at);
/* Adds @c to the tables that find a connection by its peer's numbers, or
 * removes it from them. Do not change those numbers while @c is in the
 * tables. */
void vb_cm_link(struct vb_cm_conn *c);
void vb_cm_unlink(struct vb_cm_conn *c);
/* True if both paths lead to one peer, by the same port on InfiniBand. */
bool vb_cm_is_same_peer(const struct vb_mad_path *a,
			const struct vb_mad_path *b);
/* True if @path leads between the same two ports as the primary or the
 * alternate path of @c: it has the same GIDs, or on InfiniBand the same
 * LIDs. */
bool vb_cm_is_on(const struct vb_cm_conn *c, const struct vb_mad_path *path);
/* A message of the peer has come by @path, the primary or the alternate path of
 * @c: from now on @c sends by that path. */
void vb_cm_follow(struct vb_cm_conn *c, const struct vb_mad_path *path);
/* Finds a connection by our communication ID, but only if @path leads to the
 * connection's peer. */
struct vb_cm_conn *vb_cm_find_ours(struct vb_cm *cm,
				   const struct vb_mad_path *path,
				   uint32_t local_id);
/* Finds a connection by this side's communication ID, whatever its path is.
 * Resumed connections are not found. */
struct vb_cm_conn *vb_cm_find_number(struct vb_cm *cm, uint32_t local_id);
/* Finds a passive connection by the peer's GUID and communication ID, which
 * identify a repeated REQ. */
struct vb_cm_conn *vb_cm_find_peers(struct vb_cm *cm, uint64_t guid,
				    uint32_t id);
/* Finds a connection by the peer's queue pair; connections in time wait are not
 * found. */
struct vb_cm_conn *vb_cm_find_qpn(struct vb_cm *cm, uint64_t guid,
				  uint32_t qpn);
/* Sends @mad once, on the path of @c. */
void vb_cm_send_mad(struct vb_cm_conn *c, const uint8_t mad[VB_MAD_BYTES]);
/* Fills in the IDs of @m and sends it once, on the path of @c. */
void vb_cm_send(struct vb_cm_conn *c, struct vb_cm_msg *m, uint64_t tid);
/* Makes a transaction ID whose lower half is random, so that a host that knows
 * other IDs of this manager cannot guess this one. */
uint64_t vb_cm_new_tid(const struct vb_cm_conn *c);
/* Sends @m, keeps it in c->mad and starts the timer that repeats it. */
void vb_cm_send_until_answered(struct vb_cm_conn *c, struct vb_cm_msg *m,
			       uint64_t tid, vb_time now);
/* Called before a repetition of the message of @c. True: it is an early
 * repetition, which does not count as a try; the pause after it is then twice
 * as long. */
bool vb_cm_is_pausing(struct vb_cm_conn *c);
/* Tells the owner of @c, if there is one, that @what happened. */
void vb_cm_tell(struct vb_cm_conn *c, enum vb_cm_happening what,
		const struct vb_cm_msg *m);
/* Closes @c and tells the owner as the last step, because the owner may release
 * @c, which frees it. */
void vb_cm_end(struct vb_cm_conn *c, enum vb_cm_happening what,
	       const struct vb_cm_msg *m);

/* Functions of cm_held.c: requests that wait for a listener. */
/* Asks the request function of struct vb_cm_ops about @c, which the request @m
 * made. This call may free @c. */
void vb_cm_introduce(struct vb_cm_conn *c, const struct vb_cm_msg *m,
		     vb_time now);
/* Takes @c off the list of waiting requests, if it is on it. */
void vb_cm_unhold(struct vb_cm_conn *c);
/* Refuses the request: no listener came in time. May free @c. */
void vb_cm_turn_away(struct vb_cm_conn *c);

/* A function of cm_resume.c: connections whose local IDs an earlier manager
 * chose. */
struct vb_cm_conn *vb_cm_find_resumed(struct vb_cm *cm,
				      const struct vb_mad_path *path,
				      uint32_t local_id);
void vb_cm_forget_resumed(struct vb_cm_conn *c);

/* A function of cm_ib.c: sends a REJ and closes @c, which may free @c. */
void vb_cm_refuse_req(struct vb_cm_conn *c, unsigned reason, const void *data,
		      unsigned bytes);

/* Functions of cm_time.c. */
/* Begins the time wait of @c, which lasts c->linger ns: a DREQ is still
 * answered meanwhile, and then @c ends. */
void vb_cm_wait_out(struct vb_cm_conn *c, vb_time now);
/* Sends the REJ "timeout" for the REQ or REP of @c, which the peer has not
 * answered. A peer that got only the REQ may not know our number, so the REJ
 * names our GUID (IBA 12.6.7.2). */
void vb_cm_abandon(struct vb_cm_conn *c);
/* The time limit of the present state or of the last try has passed: repeats
 * the message of @c or ends @c, which may free @c. */
void vb_cm_run_out(struct vb_cm_conn *c, vb_time now);

/* Functions of cm_sidr.c: looking up queue pairs for datagrams (IBA 12.11). */
/* Refuses a look-up with @bytes of private data and closes @c, which may free
 * @c. */
void vb_cm_sidr_refuse(struct vb_cm_conn *c, unsigned reason, const void *data,
		       unsigned bytes);
/* Handle a SIDR REQ or a SIDR REP that came on @path. */
void vb_cm_sidr_request(struct vb_cm *cm, const struct vb_mad_path *path,
			const struct vb_cm_msg *m, vb_time now);
void vb_cm_sidr_reply(struct vb_cm *cm, const struct vb_mad_path *path,
		      const struct vb_cm_msg *m);

#endif
