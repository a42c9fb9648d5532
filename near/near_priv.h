/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that only the files of near/ share. docs/LOCKING.md has the lock
 * order. Only the engine thread takes near->lock to change the table of peers.
 */
#ifndef NEAR_NEAR_PRIV_H
#define NEAR_NEAR_PRIV_H

#include "base/errand.h"
#include "near/near.h"
#include "near/outlaws.h"
#include "near/peer.h"

enum vb_near_op {
	NEAR_SEND, /* the data of the SEND follows the request */
	/* A SEND of more than VB_REQUEST_MAX bytes, whose data the responder
	 * fetches; a struct vb_sge for each piece follows the request. */
	NEAR_PULL,
	NEAR_WRITE, /* the data of the WRITE follows the request */
	/* A WRITE with immediate whose data the requester has already
	 * placed. */
	NEAR_PLACED,
	NEAR_CMP_SWAP,
	NEAR_FETCH_ADD,
	NEAR_STORE, /* an ATOMIC WRITE; its 8 bytes follow the request */
	/* The requester has found that it has no right to make this request:
	 * imm is the right that the request needs (enum vb_access), shifted
	 * left by 8, and the enum vb_fault with which the responder's queue
	 * pair fails. */
	NEAR_FAULT,
	/* A message without a request: it tells the peer's program that the
	 * requester works, so the connection is established. */
	NEAR_ESTABLISH,
	/* several small WRITEs: for each a struct vb_near_write and its
	 * bytes */
	NEAR_MANY,
	NEAR_OPS,
};

enum vb_request_flags {
	REQUEST_IMM = 1,
	REQUEST_SOLICITED = 2,
	REQUEST_INV = 4, /* the field imm is the key to invalidate */
};

enum vb_answer_kind {
	ANSWER_DONE,
	/* an atomic is complete; value: the word before the operation */
	ANSWER_VALUE,
	/* the responder has no receive posted; syndrome: how long the requester
	 * waits before it repeats the request */
	ANSWER_RNR,
	ANSWER_NAK, /* the request is refused; syndrome: the reason */
	/* There is no such queue pair, or it is in a state that accepts no
	 * requests, or it is connected to another queue pair. */
	ANSWER_NOBODY,
	/* the request was not executed, because an earlier one was not */
	ANSWER_PASSED,
	ANSWER_SOURCE, /* the memory of the requester itself cannot be read */
	/* For NEAR_MANY: the WRITEs up to seq are complete, the later ones are
	 * not. */
	ANSWER_PART,
	/* The kernel does not let the responder access the requester's memory.
	 */
	ANSWER_DENIED,
	/* Never sent: the responder leaves the request on the lane, and carries
	 * it out later. */
	ANSWER_LATER,
};

/* The key of a piece of a null region, which consists of zeros. */
#define NEAR_ZEROS 0

/* The operands of an atomic, behind a NEAR_CMP_SWAP or NEAR_FETCH_ADD. */
struct vb_near_atomic {
	uint64_t swap_add, compare;
};

/* The header of each WRITE in a NEAR_MANY, in front of its bytes; the next
 * header begins at a multiple of 8 bytes. */
struct vb_near_write {
	uint64_t va;
	uint32_t rkey, length;
};

static inline uint32_t vb_near_write_size(uint32_t length)
{
	return (uint32_t)sizeof(struct vb_near_write) + ((length + 7) & ~7u);
}

struct vb_near_qp {
	/* The number of threads that process a lane and wait for drive. They
	 * count themselves without drive, so near_forget_peer() keeps it. It
	 * clears the fields from @life on. */
	_Atomic unsigned awaited;
	/* The thread that holds drive copies to or from a peer's memory, or
	 * waits for pages of its own. Others read this without drive
	 * (vb_near_copies()). */
	_Atomic bool copies;
	/* A random number, chosen anew each time the queue pair enters RTR, so
	 * that peers tell its connections apart; 0: it is in no state from RTR
	 * on. */
	uint32_t life;
	/* The numbers by which peers call this queue pair and the connected
	 * one; remote_number is 0 while it is unknown (iWARP). They are QPNs,
	 * except that queue pairs of iWARP devices have the program's slot in
	 * the upper bits, which are unused in their QPN. */
	uint32_t number, remote_number;
	/* The registry of this program has an entry for this queue pair. */
	bool shown;
	/* Packets of the peer do not reach this queue pair, or its own not the
	 * peer, because of its port: so requests do not either
	 * (vb_near_follow()). */
	bool away;
	/* The fields of the requester. */
	struct vb_peer *peer;
	/* A copy of the registry entry of the connected queue pair. view.life
	 * is 0 before the first copy. */
	struct vb_registry_view view;
	/* The life of the peer's queue pair to which requests were sent; 0:
	 * none was sent yet. */
	uint32_t peer_life;
	/* The view is of the queue pair that is connected to this one. */
	bool fits;
	bool establish_sent;
	/* Send queue indices, with sq.done <= sent <= begun. Work requests from
	 * done to sent are on the lane; their sequence numbers begin at
	 * @acked. */
	uint32_t sent, begun;
	/* number of requests that have begun since the last vb_near_count(),
	 * which adds them to the adapter's counters; and the sum of their
	 * lengths */
	uint32_t noted;
	uint64_t noted_bytes;
	uint32_t acked;
	/* The index behind the last long SEND whose memory this program has
	 * begun to touch before it tells the peer to fetch the message, and how
	 * many bytes of the message it has touched. */
	uint32_t touched, touched_bytes;
	/* The last message of which the peer has offered parts, and how many
	 * bytes of the message this program has copied as parts. */
	uint32_t part_seq, part_bytes;
	uint32_t atomics; /* number of atomics among the requests on the lane */
	uint32_t session_since; /* the value that vb_session_want() returned */
	uint8_t rnr_retries, silences;
	/* The kernel denied access to the peer's memory. Once no request is
	 * under way, later requests go by packets. */
	bool denied;
	/* vb_near_quick() has left the start of the clock to a later step */
	bool clock_owed;
	/* While qp->way is WAY_OPEN: when to look for a session again, and when
	 * to give up and use packets. */
	vb_time decide_at, decide_by;
	/* when the requester last looked, the introduction was under way */
	bool meets;
	/* Times to retry after RNR, to retry after silence, and to check that
	 * the peer's program, which owes an answer, still runs. */
	vb_time rnr_at, retry_at, look_at;
	/* The time of the last try that the peer did not accept, and how long
	 * it has accepted none. */
	vb_time silent_at, silent_for;
	/* How many bytes of the next work request the requester has already
	 * copied itself, and how many this step may still copy. */
	uint32_t placed, step_left;
	vb_time step_at;
	/* how much each of the next steps may copy, an enum vb_near_limit */
	uint8_t limit;
	/* Small WRITEs that gather for one system call: the index up to which
	 * they were checked, and the latest time at which they are copied.
	 * VB_NEVER: none gather. */
	uint32_t gathered;
	vb_time flush_at, burst_until, tick_at;
	/* the queue pair is in near->coalescing; guarded by
	 * near->coalesce_lock */
	bool listed;
	/* The number of batches in a row that the requester placed itself, and
	 * the time to ask the peer again to stand by and place them. */
	uint32_t streak;
	vb_time streak_at, call_at, call_gap;
	struct vb_qp *coalesce_next;
	/* The fields of the responder. */
	/* The life of the requester's queue pair, and the sequence number of
	 * its next request. */
	uint32_t src_life;
	uint32_t expected;
	/* Of a message that matched a receive by its tag and is on the lane
	 * still: @tag_waits: its rest is copied in a later turn; @tag_serial:
	 * the message's vb_tag_note.serial; @tag_skip: the bytes of its header,
	 * which are not placed. */
	bool tag_waits;
	uint32_t tag_serial, tag_skip;
};

/* A name on which other programs call this one. Only the engine thread uses
 * it. */
struct vb_near_name {
	int fd;	      /* -1: this program does not have the name */
	bool listens; /* @fd is in the epoll set */
	/* accepts a caller; NULL: none calls */
	struct vb_errand *accepts;
};

/* A proof that goes on although its session has ended (near/proof.c). */
struct vb_near_left {
	struct vb_errand *proof; /* NULL: there is none here */
	pid_t pid;		 /* of the peer, and its birth */
	uint64_t born;
};

struct vb_near {
	struct vb_near_config c;
	/* the kernel's functions; never NULL */
	const struct vb_near_world *world;
	/* The second slot of this program; 0: none. Peers know this program by
	 * its first slot, and find it by either one: the answer to a call of
	 * the second slot names the first. */
	_Atomic unsigned also;
	struct vb_registry *registry;
	/* a read-only descriptor of the registry, which peers get */
	int registry_fd;
	int epoll_fd;
	struct vb_peer *self;
	struct vb_copy_helper *helper;

	struct vb_mutex lock;
	/* The fields below are guarded by lock. */
	struct vb_peer *peers[VB_SLOTS];
	/* One bit for each slot that has a peer. */
	uint64_t known[VB_SLOTS / 64];
	struct {
		bool wanted;
		/* How many introductions to the program of this slot have
		 * failed. */
		uint32_t refusals;
		/* The program that this one called by slot @sent_from has
		 * answered that this slot is its first one; 0: no such
		 * answer. */
		uint16_t sent_from;
	} calls[VB_SLOTS];
	bool any_wanted;
	/* By slot: peers whose session has ended, but whose copies have not,
	 * with a reference to each; and their number. */
	struct vb_peer *leaving[VB_SLOTS];
	unsigned leaving_count;
	/* Fields that only the engine thread uses. */

	/* programs that have connected and not sent HELLO yet */
	struct vb_peer *callers;
	unsigned sessions, max_sessions;
	unsigned shut_out; /* number of peers with vb_peer.shut_out */
	/* the names of the first and the second slot */
	struct vb_near_name names[2];
	struct vb_errands *errands;
	struct vb_outlaws outlaws;
	struct vb_near_left left[VB_ERRANDS_MOST];
	unsigned proofs_waiting; /* number of peers with vb_peer.proof_due */

	/* A leaf lock: no lock is taken while it is held. */
	struct vb_mutex coalesce_lock;
	/* List of the queue pairs with small WRITEs that gather. Writers hold
	 * coalesce_lock. */
	struct vb_qp *_Atomic coalescing;

	/* A leaf lock. It guards the fields below, and the claims of lanes. */
	struct vb_mutex lanes_lock;
	struct vb_peer *active[VB_SLOTS];
	unsigned active_count;
	uint64_t passes; /* number of passes over the lanes that have begun */

	/* Fields of the thread that watches the lanes (near/watch.c): the peers
	 * whose bells it has set, with a reference to each, and those bells. */
	struct {
		struct vb_peer *peers[VB_BELLS_MOST];
		struct vb_bell_waiter bells[VB_BELLS_MOST];
		unsigned count;
	} watch;

	/* The creditor is the peer that has answers for which it was not woken,
	 * if peer->owed is still true. There is one at most: before another
	 * peer becomes the creditor, this one is woken. A reference. */
	struct vb_peer *_Atomic creditor;
};

static inline struct vb_near_qp *vb_nq(const struct vb_qp *qp)
{
	return qp->priv[PRIV_NEAR];
}

/* Call this with true before a copy, and with false after it. */
static inline void vb_near_set_copies(struct vb_qp *qp, bool copies)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: readers take it for a hint. */
	atomic_store_explicit(&vb_nq(qp)->copies, copies, memory_order_relaxed);
}

static inline enum vb_qp_state vb_near_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: the state is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* Is @slot one of this program's slots? */
static inline bool vb_near_is_own(const struct vb_near *n, unsigned slot)
{
	return slot == n->c.slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&n->also, memory_order_relaxed));
}

/* Do peers call the queue pair @qp by the number @number? */
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

/* Release qp->drive. (Unchecked: the engine does this behind a function
 * pointer.) */
static inline void VB_UNCHECKED vb_near_release(struct vb_near *n,
						struct vb_qp *qp)
	VB_RELEASE(qp->drive)
{
	n->c.release(n->c.arg, qp);
}

/* Functions of near/session.c and near/session_table.c. */
/* The engine thread does not run during the next three calls. */
/* Listen on the name of the first slot. 0 or -errno. */
VB_MUST_CHECK int vb_session_init(struct vb_near *n);
/* Listen on the name of the second slot, n->also, and tell all peers. 0 or
 * -errno. */
VB_MUST_CHECK int vb_session_also(struct vb_near *n);
/* End all sessions and stop listening. */
void vb_session_fini(struct vb_near *n, vb_time now);
/* Ask the engine thread to open a session with the program that has @slot,
 * because a queue pair will need it. Returns the number of failures so far, for
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
/* Returns the peer that has @slot, whatever state its session is in: the peer
 * may already access this program's memory. The caller releases the reference.
 * NULL: there is none. Takes near->lock. */
struct vb_peer *vb_session_peer(struct vb_near *n, unsigned slot)
	VB_EXCLUDES(n->lock);

/* A function of near/near.c. Remove @qp from the registry: no peer's access
 * through @qp begins after this. */
void vb_near_hide(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of near/serve.c. */
/* Returns the queue pair that peers call by the number @qpn. Another thread can
 * destroy it at any time, so the caller locks drive and then asks
 * vb_near_is_called(). NULL: there is none. */
struct vb_qp *vb_near_find_qp(struct vb_near *n, uint32_t qpn);
/* Functions for the engine thread. vb_near_add(): from now on the lane of @p is
 * processed. vb_near_remove(): the rest of that lane is processed, and then the
 * lane no more. A peer that still copies its part of a message keeps the
 * receive of that message until it has ended. Neither waits for a
 * thread that processes the lane; that thread does the rest. */
void vb_near_add(struct vb_near *n, struct vb_peer *p)
	VB_EXCLUDES(n->lanes_lock);
void vb_near_remove(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_EXCLUDES(n->lanes_lock);
/* Process no lane any more. All queue pairs are destroyed, and no other thread
 * uses @n. */
void vb_near_remove_all(struct vb_near *n) VB_EXCLUDES(n->lanes_lock);

/* Functions of near/lanes.c. */
/* Process each lane once that no other thread processes. True: a lane had a
 * request or an answer. @unhurried: see vb_near_attend(). */
bool vb_lanes_serve(struct vb_near *n, vb_time now, bool unhurried)
	VB_EXCLUDES(n->lanes_lock);
/* Withdraw the part of a message for queue pair @number that a peer was going
 * to copy. The queue pair is hidden and no hazard names it, so the peer has not
 * begun to copy, and its permit has lapsed. If another thread processes the
 * lane for longer than 100 ms, that thread withdraws the part later. */
void vb_lanes_take_parts_back(struct vb_near *n, uint32_t number)
	VB_EXCLUDES(n->lanes_lock);

/* Functions of near/serve.c; the caller has claimed the lane of @p. */
enum vb_lane_state {
	LANE_GOES_ON,
	/* The session is over, but a thread of the peer may still write to a
	 * receive that this program has lent to it: call vb_serve_last(). */
	LANE_LEAVES,
	LANE_IS_OVER,
};
/* Process the lane of @p once. @found: it had a request, an answer or an
 * offer. */
enum vb_lane_state vb_serve_lane(struct vb_near *n, struct vb_peer *p,
				 vb_time now, bool *found)
	VB_REQUIRES(p->claim);
/* The session of @p is over: process the rest of its lane. */
enum vb_lane_state vb_serve_last(struct vb_near *n, struct vb_peer *p,
				 vb_time now) VB_REQUIRES(p->claim);
/* Has the lane of @p a request or an answer that can be processed now? */
bool vb_serve_has_something(const struct vb_peer *p) VB_REQUIRES(p->claim);
/* Give up the message of which @p was copying a part, if there is one: see
 * vb_pull_abandon(). False: another thread holds the lock of that queue pair
 * for long. */
VB_MUST_CHECK bool vb_serve_abandon(struct vb_near *n, struct vb_peer *p)
	VB_REQUIRES(p->claim);

/* Functions of near/req.c; the caller holds qp->drive. */
/* Reset the requester: no request of @qp is on the lane, and no timer runs. */
void vb_near_req_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Carry out the next work requests. True: another step has more to do. */
bool vb_near_run(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive);
/* In state SQD: if all work requests that had begun are complete, tell the
 * program that the send queue is drained. */
void vb_near_drain(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* A function of near/answer.c: process the answer @a to requests of @qp. */
void vb_near_answered(struct vb_near *n, struct vb_qp *qp,
		      const struct vb_answer_note *a, vb_time now)
	VB_REQUIRES(qp->drive);

/* A function of near/here.c: if @p, which fetches a long SEND of this program,
 * offers a part of the copy (near/split_copy.h), copy that part. 1: there was
 * an offer; 0: there was none; -EPROTO: the part is longer than VB_PART_MOST.
 * The caller has claimed the lane of @p. */
int vb_near_help(struct vb_near *n, struct vb_peer *p) VB_REQUIRES(p->claim);
/* A function of near/req.c: does the peer's registry show the queue pair that
 * @qp is connected to? If so, nq->view is a current copy of that entry. Sets
 * qp->way to WAY_PACKETS if that queue pair accepts only packets. */
bool vb_near_is_there(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of near/coalesce.c. Copy the small WRITEs, from index nq->sent on,
 * into the peer's memory with one system call. Returns the number of WRITEs
 * copied. 0: the caller must try only the first one, to find the error. */
unsigned vb_near_coalesce(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Is @wqe a WRITE so small that it is copied together with others? */
bool vb_near_is_small(const struct vb_send_wqe *wqe);
/* Pack the small WRITEs, from index nq->sent on, into @data, which has @room
 * bytes, as a NEAR_MANY record. Returns the number of WRITEs; *@bytes: the
 * bytes used. */
unsigned vb_near_pack(struct vb_qp *qp, uint8_t *data, uint32_t room,
		      uint32_t *bytes) VB_REQUIRES(qp->drive);

/* The list of queue pairs with small WRITEs that gather. */
/* Add @qp to the list; remove @qp from it. If @qp is there already, or is not
 * there, the call does nothing. Both functions take near->coalesce_lock. */
void vb_near_list(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive)
	VB_EXCLUDES(n->coalesce_lock);
void vb_near_unlist(struct vb_near *n, struct vb_qp *qp) VB_REQUIRES(qp->drive)
	VB_EXCLUDES(n->coalesce_lock);
/* Carry out the gathered WRITEs of the listed queue pairs. True: there were
 * some. */
bool vb_near_flush(struct vb_near *n, vb_time now);

/* A function of near/resp.c: if @qp is the queue pair that the request @r is
 * for, carry out @r, with @data behind it; fills in @a, the answer. The caller
 * has claimed the lane of @p, and holds qp->drive. */
void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a) VB_REQUIRES(p->claim, qp->drive);
/* Functions of near/pull.c; the caller has claimed the lane of @p, and holds
 * qp->drive unless @qp is NULL. */
/* If @p no longer copies its part of a message, return the receive to @qp, the
 * queue pair with number p->split.qpn, so that the caller can continue with the
 * message. False: @p still copies. */
bool vb_pull_resume(struct vb_peer *p, struct vb_qp *qp)
	VB_REQUIRES(p->claim, qp->drive);
/* Give the message up: withdraw the part from @p, which can no longer begin to
 * copy it, and return the receive to @qp. */
void vb_pull_abandon(struct vb_peer *p, struct vb_qp *qp)
	VB_REQUIRES(p->claim, qp->drive);

#endif
