/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that only the files of near/ share. docs/LOCKING.md has the lock
 * order. Only the engine thread takes near->lock to change the table of peers.
 */
#ifndef NEAR_NEAR_PRIV_H
#define NEAR_NEAR_PRIV_H

#include "near/near.h"
#include "near/peer.h"

enum vb_near_op {
	NEAR_SEND, /* the data follows the request */
	/* A SEND of more than VB_REQUEST_MAX bytes: the responder fetches the
	 * data; a struct vb_sge for each piece follows the request. */
	NEAR_PULL,
	NEAR_WRITE, /* the data follows the request */
	/* A WRITE with immediate whose data the requester has placed already.
	 */
	NEAR_PLACED,
	NEAR_CMP_SWAP,
	NEAR_FETCH_ADD,
	NEAR_STORE, /* ATOMIC WRITE: the 8 bytes follow */
	/* The requester has found that it has no right to do this request: imm
	 * is the enum vb_fault that the responder's queue pair fails with. */
	NEAR_FAULT,
	/* Asks for nothing: tells the peer's program that the requester works,
	 * so the connection is established. */
	NEAR_NEWS,
	NEAR_MANY, /* small WRITEs: each a struct vb_near_write and bytes */
	NEAR_OPS,
};

enum vb_request_flags {
	REQUEST_IMM = 1,
	REQUEST_SOLICITED = 2,
	REQUEST_INV = 4, /* imm is the key to invalidate */
};

enum vb_answer_kind {
	ANSWER_DONE,
	ANSWER_VALUE, /* an atomic is done: value is the old value */
	ANSWER_RNR,   /* no receive is posted; syndrome: how long to wait */
	ANSWER_NAK,   /* refused; syndrome: the reason */
	/* No such queue pair, not in a state that takes requests, or connected
	 * to another one. */
	ANSWER_NOBODY,
	ANSWER_PASSED, /* not executed, because an earlier one was not */
	ANSWER_SOURCE, /* the requester's own memory cannot be read */
	/* NEAR_MANY: the WRITEs up to seq are done, the following ones are not.
	 */
	ANSWER_PART,
	/* The kernel does not let the responder access the requester's memory.
	 */
	ANSWER_DENIED,
	/* Never sent: the responder leaves the request on the lane, and carries
	 * it out later. */
	ANSWER_LATER,
};

#define NEAR_ZEROS 0 /* the key of a piece that consists of zeros (null MR) */

/* Follows a NEAR_CMP_SWAP or NEAR_FETCH_ADD. */
struct vb_near_atomic {
	uint64_t swap_add, compare;
};

/* NEAR_MANY: stands before the bytes of each WRITE; the next one begins at a
 * multiple of 8 bytes. */
struct vb_near_write {
	uint64_t va;
	uint32_t rkey, length;
};

static inline uint32_t vb_near_write_size(uint32_t length)
{
	return (uint32_t)sizeof(struct vb_near_write) + ((length + 7) & ~7u);
}

struct vb_near_qp {
	/* A random number, drawn anew each time the queue pair gets to RTR, so
	 * that peers tell its connections apart; 0: not in RTR or later. */
	uint32_t life;
	/* The numbers that peers call this queue pair and the connected one by;
	 * far_number is 0 while it is unknown (iWARP). They are QPNs, except
	 * that queue pairs of iWARP devices have the program's slot in the
	 * upper bits, where their QPN has none. */
	uint32_t number, far_number;
	/* This program's registry has an entry for this queue pair. */
	bool shown;
	/* Requester: */
	struct vb_peer *peer;
	/* The copied registry entry of the connected queue pair. view.life is 0
	 * before the first copy. */
	struct vb_registry_view view;
	/* The life of the queue pair that requests are for; 0: none was sent
	 * yet. */
	uint32_t peer_life;
	/* The view shows the queue pair that is connected to this one. */
	bool fits;
	bool told_news;
	/* Send queue indices, with sq.done <= sent <= begun. Work requests from
	 * done to sent are on the lane; their sequence numbers begin at acked.
	 */
	uint32_t sent, begun;
	uint32_t acked;
	uint32_t atomics; /* how many of those on the lane are atomic */
	uint32_t intro;	  /* what vb_session_want() returned */
	uint8_t rnr_retries, silences;
	/* The kernel denied access to the peer's memory. Once no request is
	 * under way, the next ones go by packets. */
	bool denied;
	bool clock_owed; /* vb_near_quick() did not start the clock */
	/* While qp->way is WAY_OPEN: when to look for a session again, and when
	 * to give up and use packets. */
	vb_time decide_at, decide_by;
	/* When to try again after RNR, when to try again after silence, and
	 * when to check that the peer's program, which has to answer, lives. */
	vb_time rnr_at, retry_at, look_at;
	/* The time of the last try that the peer did not take, and for how long
	 * it has taken none. */
	vb_time silent_at, silent_for;
	/* How many bytes of the next work request the requester has copied
	 * itself already, and how many this step may still copy. */
	uint32_t placed, step_left;
	vb_time step_at;
	/* The caller holds near->rx, so that a step must be short. */
	bool light;
	/* Small WRITEs that gather to go with one system call: the index up to
	 * which they were checked, and the latest time when they go. VB_NEVER:
	 * none gather. */
	uint32_t gathered;
	vb_time flush_at, stream_until, tick_at;
	bool listed; /* in near->coalescing; near->coalesce_lock */
	/* The number of batches in a row that the requester placed itself, and
	 * when to ask the peer again to stand by and place them. */
	uint32_t streak;
	vb_time streak_at, call_at, call_gap;
	struct vb_qp *coalesce_next;
	/* Responder: */
	/* The life of the requester's queue pair, and the sequence number of
	 * the request that is next. */
	uint32_t src_life;
	uint32_t expected;
};

struct vb_near {
	struct vb_near_config c;
	const struct vb_near_world *world; /* never NULL */
	/* The second slot of this program; 0: none. Peers know this program by
	 * its first slot, and find it by either: the answer to a caller of the
	 * second slot names the first. */
	_Atomic unsigned also;
	int also_fd;
	struct vb_registry *registry;
	int registry_fd; /* a read-only descriptor, for peers */
	struct vb_bell *bell;
	int bell_fd;
	int epoll_fd;
	struct vb_peer *self;
	struct vb_copy_helper *helper;

	struct vb_mutex lock;
	/* Guarded by lock: */
	struct vb_peer *peers[VB_SLOTS];
	/* One bit for each slot that has a peer. */
	uint64_t known[VB_SLOTS / 64];
	struct {
		bool wanted;
		/* How many introductions to this slot have failed. */
		uint32_t refusals;
		/* The program that this one called by slot sent_from has
		 * answered that this slot is its first; 0: no such answer. */
		uint16_t sent_from;
	} calls[VB_SLOTS];
	bool any_wanted;
	/* For the engine thread only: */
	struct vb_peer *callers; /* programs that have not sent HELLO yet */
	unsigned sessions, max_sessions;
	bool listens, also_listens;

	/* A leaf lock: nothing is taken under it. */
	struct vb_mutex coalesce_lock;
	/* The queue pairs where small WRITEs gather. Writers hold
	 * coalesce_lock. */
	struct vb_qp *_Atomic coalescing;

	struct vb_mutex rx;
	/* The holder of rx waits for this queue pair's drive lock. */
	struct vb_qp *_Atomic awaits;
	/* Guarded by rx: */
	struct vb_peer *active[VB_SLOTS];
	unsigned active_count;
	/* The thread that processes the lanes returns to its program at once,
	 * so peers need not be woken for answers yet. */
	bool unhurried;
	/* How many more bytes the responder fetches in this peer's turn at
	 * most. */
	uint32_t pull_left;

	/* A reference to the one peer that has answers it was not woken for, if
	 * peer->owed is still true. */
	struct vb_peer *_Atomic creditor;
};

static inline struct vb_near_qp *vb_nq(const struct vb_qp *qp)
{
	return qp->priv[PRIV_NEAR];
}

static inline enum vb_qp_state vb_near_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: the caller holds drive, under which the state is written. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* Is @slot one of this program's slots? */
static inline bool vb_near_is_own(const struct vb_near *n, unsigned slot)
{
	return slot == n->c.slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&n->also, memory_order_relaxed));
}

/* Is @number the number that peers call @qp by? */
static inline bool vb_near_is_called(const struct vb_qp *qp, uint32_t number)
	VB_REQUIRES(qp->drive)
{
	return atomic_load(&qp->qpn) && vb_nq(qp) &&
	       vb_nq(qp)->number == number;
}

/* Call the engine's step() (struct vb_near_config), which needs qp->drive. */
static inline void vb_near_step(struct vb_near *n, struct vb_qp *qp,
				vb_time now) VB_REQUIRES(qp->drive)
{
	n->c.step(n->c.arg, qp, now);
}

/* (Unchecked: the engine releases qp->drive behind a function pointer.) */
static inline void VB_UNCHECKED vb_near_release(struct vb_near *n,
						struct vb_qp *qp)
	VB_RELEASE(qp->drive)
{
	n->c.release(n->c.arg, qp);
}

/* near/session.c and near/session_table.c */
/* The engine thread does not run during these three calls. */
/* Listen on the name of the first slot. -errno. */
VB_MUST_CHECK int vb_session_init(struct vb_near *n);
/* Listen on the name of the second slot, n->also, and tell all peers. -errno.
 */
VB_MUST_CHECK int vb_session_also(struct vb_near *n);
/* End all sessions and stop listening. */
void vb_session_fini(struct vb_near *n, vb_time now);
/* A queue pair will need a session with the program that has @slot: the engine
 * thread opens it. Returns the number of failures so far, for
 * vb_session_find(). Takes near->lock. */
uint32_t vb_session_want(struct vb_near *n, unsigned slot) VB_EXCLUDES(n->lock);
enum vb_session { SESSION_UP, SESSION_PENDING, SESSION_NO };
/* Is there a session with the program that has @slot? SESSION_UP: *@p is a
 * reference that the caller releases with vb_peer_put(). SESSION_NO: the
 * introduction has failed since vb_session_want() returned @since, or one
 * program cannot access the memory of the other. Takes near->lock. */
enum vb_session vb_session_find(struct vb_near *n, unsigned slot,
				uint32_t since, struct vb_peer **p)
	VB_EXCLUDES(n->lock);
/* The peer that has @slot, in whatever state its session is: it may already
 * access this program's memory. The caller releases the reference. NULL: none.
 * Takes near->lock. */
struct vb_peer *vb_session_peer(struct vb_near *n, unsigned slot)
	VB_EXCLUDES(n->lock);

/* near/serve.c */
/* The queue pair that peers call @qpn, which another thread can destroy at any
 * time: so the caller locks drive, then asks vb_near_is_called(). NULL:
 * none. */
struct vb_qp *vb_near_find_qp(struct vb_near *n, uint32_t qpn);
/* For the engine thread. vb_near_add(): from now on the lane of @p is
 * processed. vb_near_remove(): process the rest of that lane, then no more.
 * Both take near->rx. */
void vb_near_add(struct vb_near *n, struct vb_peer *p) VB_EXCLUDES(n->rx);
void vb_near_remove(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_EXCLUDES(n->rx);

/* near/serve.c; the caller holds near->rx */
/* Process each lane once. True: there was something. */
bool vb_serve_all(struct vb_near *n, vb_time now) VB_REQUIRES(n->rx);
/* Has the lane of @p something that can be processed now? */
bool vb_serve_has_something(const struct vb_near *n, const struct vb_peer *p)
	VB_REQUIRES(n->rx);
/* Give up the message of which @p has taken a part to copy, if there is one:
 * see vb_pull_abandon(). */
void vb_serve_abandon(struct vb_near *n, struct vb_peer *p) VB_REQUIRES(n->rx);

/* near/req.c; the caller holds qp->drive */
/* Begin anew: no request of @qp is on the lane, and no timer runs. */
void vb_near_req_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Carry out the next work requests. True: there is more to do in another step.
 */
bool vb_near_run(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* In state SQD: if all work requests that had begun are complete, tell the
 * program that the send queue is drained. */
void vb_near_drain(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* near/answer.c: process the answer @a to requests of @qp. */
void vb_near_answered(struct vb_near *n, struct vb_qp *qp,
		      const struct vb_answer_note *a, vb_time now)
	VB_REQUIRES(qp->drive);

/* near/here.c: if @p, which fetches a long SEND of this program, offers a part
 * of it (near/split_copy.h), copy that part. True: there was an offer. The
 * caller holds near->rx. */
bool vb_near_help(struct vb_near *n, struct vb_peer *p) VB_REQUIRES(n->rx);
/* near/req.c: does the peer's registry show the queue pair that @qp is
 * connected to? Then nq->view is a current copy. Sets qp->way to WAY_PACKETS if
 * that queue pair takes packets only. */
bool vb_near_is_there(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* near/coalesce.c: copy the small WRITEs, from index nq->sent onward, into the
 * peer's memory with one system call. Returns how many were done. 0: the caller
 * must try the first one alone, which finds the error. */
unsigned vb_near_coalesce(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Is this a WRITE so small that it is copied together with others? */
bool vb_near_is_small(const struct vb_send_wqe *wqe);
/* Pack the small WRITEs, from index nq->sent onward, into @data, which has
 * @room bytes, as a NEAR_MANY record. Returns how many; *@bytes: the bytes
 * used. */
unsigned vb_near_pack(struct vb_qp *qp, uint8_t *data, uint32_t room,
		      uint32_t *bytes) VB_REQUIRES(qp->drive);

/* The list of queue pairs where small WRITEs gather. */
/* Enter @qp in the list; take it out. Nothing happens if it is there already,
 * or is not there. Both take near->coalesce_lock. */
void vb_near_list(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive)
	VB_EXCLUDES(n->coalesce_lock);
void vb_near_unlist(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive)
	VB_EXCLUDES(n->coalesce_lock);
/* Carry out the gathered WRITEs of the listed queue pairs. True: some were. */
bool vb_near_flush(struct vb_near *n, vb_time now);

/* near/resp.c: carry out the request @r, with @data behind it, if @qp is the
 * queue pair that it is for; fills in @a, the answer. The caller holds near->rx
 * and qp->drive. */
void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a) VB_REQUIRES(n->rx, qp->drive);
/* near/pull.c; the caller holds near->rx, and qp->drive unless @qp is NULL */
/* If @p no longer copies its part of a message, give @qp its receive back, so
 * that the caller can go on with the message. False: @p still copies. */
bool vb_pull_resume(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp)
	VB_REQUIRES(n->rx, qp->drive);
/* Give the message up: take the part back from @p, which can no longer begin to
 * copy it, and give @qp its receive back. */
void vb_pull_abandon(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp)
	VB_REQUIRES(n->rx, qp->drive);

#endif
