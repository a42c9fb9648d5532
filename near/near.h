/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two programs of one host: their reliable connections exchange no packets.
 * Who writes or reads does it himself, in the other's memory, after the
 * checks; what consumes a receive or must be atomic goes through a ring that
 * both map, and the other carries it out. Whatever stands in the way of this
 * means packets, for that pair of programs.
 */
#ifndef NEAR_NEAR_H
#define NEAR_NEAR_H

#include "base/bell.h"
#include "core/mr.h"
#include "core/qp.h"

struct vb_near;

/* What the engine lends. */
struct vb_near_config {
	unsigned slot;
	int name_fd;	      /* bound to the slot's name: listened on */
	int wake_fd;	      /* an eventfd that wakes the thread */
	struct vb_idtab *qps; /* low QPN bits */
	/* After something happened to @qp, under drive: send, arm timers. */
	void (*step)(void *arg, struct vb_qp *qp, vb_time now);
	/* The thread is to call vb_near_settle() soon. */
	void (*soon)(void *arg);
	/* Gives up qp->drive; rx is held. */
	void (*release)(void *arg, struct vb_qp *qp);
	void *arg;
};

/* -errno, the reason logged: then all is packets. */
VB_MUST_CHECK int vb_near_create(const struct vb_near_config *c,
				 struct vb_near **n);
/* The program has another slot from now on, as well, for queue pairs made from
 * now on; @name_fd as above. There is no thread. A second time: -EEXIST. */
VB_MUST_CHECK int vb_near_also(struct vb_near *n, unsigned slot, int name_fd);
/* The thread is gone, and all queue pairs and keys. */
void vb_near_destroy(struct vb_near *n);

/*
 * The engine's thread.
 */
void vb_near_begin(struct vb_near *n);
void vb_near_end(struct vb_near *n);
int vb_near_fd(const struct vb_near *n); /* readable: sessions have news */
/* Serve the sessions, and call who is to be called. Never blocks. */
void vb_near_meet(struct vb_near *n, vb_time now);
/* Before sleeping: peers are to ring from now on. False: do not sleep, there
 * is something to do. */
bool vb_near_sleep(struct vb_near *n);
/* A thread polls, and will again: peers need not ring. */
void vb_near_awake(struct vb_near *n);

/* Does a peer that streams small messages ask for a thread that stands by? */
bool vb_near_is_wanted(struct vb_near *n);
/* It does from now on, or no longer: then vb_near_sleep() follows. */
void vb_near_stand_by(struct vb_near *n, bool yes);

/*
 * A program's thread that waits for a completion may do the thread's part: it
 * sets the bell, tells that peers need not ring the thread (vb_near_awake()),
 * attends, and sleeps by the bell; in the end vb_near_sleep() hands it back.
 */
struct vb_bell *vb_near_bell(const struct vb_near *n);
/* Serve the lanes once. @unhurried: peers that sleep are not rung for answers
 * alone, and vb_near_settle() will follow. False: there was nothing. */
bool vb_near_attend(struct vb_near *n, vb_time now, bool unhurried);
/* Is there anything to attend to? */
bool vb_near_has_something(struct vb_near *n);
/* They are rung now. */
void vb_near_settle(struct vb_near *n);

/* Serve what peers have put on their lanes. True: there was something. */
bool vb_near_poll(struct vb_near *n, vb_time now);

/*
 * Keys: vb_key_ops.
 */
void vb_near_grant(struct vb_near *n, const struct vb_adapter *a,
		   const struct vb_grant *g);
void vb_near_revoke(struct vb_near *n, const struct vb_adapter *a,
		    uint32_t index);
bool vb_near_is_quiet(struct vb_near *n, uint32_t key, vb_time age);
void vb_near_await(struct vb_near *n, uint32_t key);

/*
 * Domains of another process (vb_pd.origin), and vb_key_ops.
 */
/* Get to know who has @slot: 0: done; -EAGAIN: ask again, with the same
 * *@since, at first 0; -EACCES: we cannot reach its memory, or it is not. */
VB_MUST_CHECK int vb_near_imported_pd_meet(struct vb_near *n, unsigned slot,
					   uint32_t *since);
bool vb_near_imported_pd_find(struct vb_near *n, const struct vb_pd *pd,
			      uint32_t key, struct vb_grant *g);
enum vb_fault vb_near_imported_pd_copy(struct vb_near *n,
				       const struct vb_pd *pd,
				       const struct vb_mr_range *r, void *bytes,
				       bool put);

/*
 * Queue pairs: beside the transport for packets, under drive. The way a queue
 * pair's requests take is decided at its first, and stays until RESET:
 * qp->way.
 */
VB_MUST_CHECK int vb_near_attach(struct vb_qp *qp);
void vb_near_detach(struct vb_near *n, struct vb_qp *qp);
/* @here: its destination is an address of this host. */
void vb_near_enter(struct vb_near *n, struct vb_qp *qp, enum vb_qp_state from,
		   enum vb_qp_state to, bool here);
/* vb_transport_ops.settle. */
void vb_near_settle_qp(struct vb_near *n, const struct vb_adapter *a,
		       uint32_t index);
/*
 * The two ends of a stream (iWARP) do not know each other's numbers. Each shows
 * a card over it, and its requests wait for the peer's: then they go near, when
 * there is such a peer, or over the stream.
 */
struct vb_near_card {
	uint32_t number; /* a QPN with our slot: near_priv.h */
	uint32_t life;
};
/* @qp has just got its stream: the card to show. False: all goes over it. */
bool vb_near_expect(struct vb_near *n, struct vb_qp *qp,
		    struct vb_near_card *card);
void vb_near_recognize(struct vb_near *n, struct vb_qp *qp,
		       const struct vb_near_card *peer);
/* The peer's requests come this way, whatever becomes of ours. */
bool vb_near_is_heard(const struct vb_qp *qp);
/* Serve all lanes, so that what was put there before something else became
 * visible is done before that. False: another thread is at it. */
bool vb_near_catch_up(struct vb_near *n, vb_time now);

/* Its next steps are made with the lanes locked, and copy little. */
void vb_near_set_light(struct vb_qp *qp, bool yes);
/* Who serves the lanes waits for its drive, which the caller gives up. */
bool vb_near_is_awaited(struct vb_near *n, const struct vb_qp *qp);
/* True: there is more to do, at once. */
bool vb_near_send(struct vb_near *n, struct vb_qp *qp, vb_time now);
/* vb_transport_ops.quick, for one that goes near. */
bool vb_near_quick(struct vb_qp *qp);
/* What gathers goes with the next vb_near_send(). */
void vb_near_hurry(struct vb_qp *qp);
/* Under drive. While the introduction to the peer's program is under way, the
 * requests of @qp wait for it. They go by packets unless it ends before @by.
 * Returns whether they still wait. */
bool vb_near_decide_by(struct vb_qp *qp, vb_time by);
/* vb_transport_ops.can_wait, for one that goes near. */
bool vb_near_can_wait(const struct vb_qp *qp);
vb_time vb_near_deadline(const struct vb_qp *qp);

#endif
