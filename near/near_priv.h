/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of near/, shared by its files only. docs/LOCKING.md has the lock
 * order. Only the engine's thread changes the table of peers.
 */
#ifndef NEAR_NEAR_PRIV_H
#define NEAR_NEAR_PRIV_H

#include "near/near.h"
#include "near/peer.h"

enum vb_near_op {
	NEAR_SEND,   /* the data goes along */
	NEAR_PULL,   /* a SEND whose data is to be fetched: pieces go along */
	NEAR_WRITE,  /* the data goes along */
	NEAR_PLACED, /* a WRITE with immediate, whose data is there */
	NEAR_CMP_SWAP,
	NEAR_FETCH_ADD,
	NEAR_STORE, /* a word, written at once */
	NEAR_FAULT, /* what the requester may not do: imm names the fault */
	NEAR_NEWS,  /* it is at work: the connection is established */
	NEAR_MANY,  /* small WRITEs in a row: struct vb_near_write each */
	NEAR_OPS,
};

enum vb_request_flags {
	REQUEST_IMM = 1,
	REQUEST_SOLICITED = 2,
	REQUEST_INV = 4, /* imm is the key to invalidate */
};

enum vb_answer_kind {
	ANSWER_DONE,
	ANSWER_VALUE,  /* an atomic is done */
	ANSWER_RNR,    /* syndrome: for how long */
	ANSWER_NAK,    /* syndrome: why */
	ANSWER_NOBODY, /* no such queue pair, or not in a state, or not with us
			*/
	ANSWER_PASSED, /* not executed, since one before it was not */
	ANSWER_SOURCE, /* the requester's own memory cannot be read */
	ANSWER_PART,   /* of NEAR_MANY: done up to here, what follows is not */
	ANSWER_DENIED, /* the requester's memory is out of reach by now */
	ANSWER_LATER,  /* never sent: it is not carried out yet */
};

#define NEAR_ZEROS 0 /* the key of a piece that is nothing but zeros */

/* What an atomic brings along. */
struct vb_near_atomic {
	uint64_t swap_add, compare;
};

/* One of many WRITEs, before its bytes; the next begins at a multiple of 8. */
struct vb_near_write {
	uint64_t va;
	uint32_t rkey, length;
};

static inline uint32_t vb_near_write_size(uint32_t length)
{
	return (uint32_t)sizeof(struct vb_near_write) + ((length + 7) & ~7u);
}

struct vb_near_qp {
	uint32_t life; /* since RTR; 0: not there */
	/* What peers call this queue pair, and it calls the one it is
	 * connected to (0: not known yet): QPNs. Of a program that has no slot
	 * from the broker a number has the slot here, and the QPN has none. */
	uint32_t number, far_number;
	bool shown; /* in the registry */
	/* requester */
	struct vb_peer *peer;
	struct vb_registry_view
		view;	    /* of who we talk to; life 0: not seen yet */
	uint32_t peer_life; /* whom our requests are for; 0: nothing sent yet */
	bool fits;	    /* the view is of who is connected to us */
	bool told_news;
	/* Send queue indices, sq.done <= sent <= begun; what is between done
	 * and sent stands in the ring, as requests from acked on. */
	uint32_t sent, begun;
	uint32_t acked;
	uint32_t atomics; /* among them */
	uint32_t intro;	  /* vb_session_want() */
	uint8_t rnr_retries, silences;
	bool denied; /* packets from now on, which nothing must be under way for
		      */
	bool clock_owed; /* vb_near_quick() has not looked at the time */
	vb_time decide_at, decide_by; /* way is open: look again; packets */
	/* Try again; and look whether the peer lives that is to answer. */
	vb_time rnr_at, retry_at, look_at;
	/* The last try that nobody took, and how long that goes on. */
	vb_time silent_at, silent_for;
	/* Of the request that is copied from here, so much is done; of this
	 * step, so much may still be; light: the lanes are locked meanwhile. */
	uint32_t placed, step_left;
	vb_time step_at;
	bool light;
	/* Small WRITEs that gather, to go with one call: up to this index;
	 * when they go at the latest, VB_NEVER: none gather. */
	uint32_t gathered;
	vb_time flush_at, stream_until, tick_at;
	bool listed; /* near->coalesce_lock */
	/* Batches in a row that we placed, and when to ask the peer again to
	 * do so itself. */
	uint32_t streak;
	vb_time streak_at, call_at, call_gap;
	struct vb_qp *coalesce_next;
	/* responder */
	uint32_t src_life; /* of whose requests, and which is next */
	uint32_t expected;
};

struct vb_near {
	struct vb_near_config c;
	/* Another slot; 0: none. Peers are known by the first, and found by
	 * either: who calls the other is sent there. */
	_Atomic unsigned also;
	int also_fd;
	struct vb_registry *registry;
	int registry_fd; /* for reading only */
	struct vb_bell *bell;
	int bell_fd;
	int epoll_fd;
	struct vb_peer *self;
	struct vb_copy_helper *helper;

	struct vb_mutex lock;
	/* lock */
	struct vb_peer *peers[VB_SLOTS];
	uint64_t known[VB_SLOTS / 64]; /* a bit for each that is there */
	struct {
		bool wanted;
		uint32_t refusals;  /* of our calls */
		uint16_t sent_from; /* the slot that sent us there, or 0 */
	} calls[VB_SLOTS];
	bool any_wanted;
	/* the thread's */
	struct vb_peer *callers; /* who connected, and has not said who it is */
	unsigned sessions, max_sessions;
	bool listens, also_listens;

	struct vb_mutex coalesce_lock; /* leaf */
	struct vb_qp *_Atomic
		coalescing; /* coalesce_lock to write: where WRITEs gather */

	struct vb_mutex rx;
	struct vb_qp *_Atomic awaits; /* who has rx waits for its drive */
	/* rx */
	struct vb_peer *active[VB_SLOTS];
	unsigned active_count;
	bool unhurried;	    /* who serves will return to his program at once */
	uint32_t pull_left; /* bytes that this peer's turn may still fetch */

	/* Who is to be rung soon, or has been since; a reference. */
	struct vb_peer *_Atomic creditor;
};

static inline struct vb_near_qp *vb_nq(const struct vb_qp *qp)
{
	return qp->near;
}

static inline enum vb_qp_state vb_near_state(const struct vb_qp *qp)
{
	/* Written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline bool vb_near_is_own(const struct vb_near *n, unsigned slot)
{
	return slot == n->c.slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&n->also, memory_order_relaxed));
}

/* Is it what peers call @number? */
static inline bool vb_near_is_called(const struct vb_qp *qp, uint32_t number)
{
	return atomic_load(&qp->qpn) && qp->near && vb_nq(qp)->number == number;
}

/* near/session.c */
VB_MUST_CHECK int vb_session_init(struct vb_near *n);
VB_MUST_CHECK int vb_session_also(struct vb_near *n);
void vb_session_fini(struct vb_near *n, vb_time now);
/* We shall want to talk to who has @slot. Returns what tells whether a later
 * refusal came after this. */
uint32_t vb_session_want(struct vb_near *n, unsigned slot);
enum vb_session { SESSION_UP, SESSION_PENDING, SESSION_NO };
/* SESSION_UP: *@p is a reference to it. */
enum vb_session vb_session_find(struct vb_near *n, unsigned slot,
				uint32_t since, struct vb_peer **p);
/* A reference to whoever has @slot and may be at our memory; or NULL. */
struct vb_peer *vb_session_peer(struct vb_near *n, unsigned slot);

/* near/near.c */
struct vb_qp *vb_near_find_qp(struct vb_near *n, uint32_t qpn); /* or NULL */
/* The thread: serve the lane's rest, and no more. */
void vb_near_add(struct vb_near *n, struct vb_peer *p);
void vb_near_remove(struct vb_near *n, struct vb_peer *p, vb_time now);

/* near/serve.c; rx is held */
/* Serve each lane once. True: there was something. */
bool vb_serve_all(struct vb_near *n, vb_time now);
bool vb_serve_has_something(const struct vb_peer *p);
/* @p has a part of a message in hand that it cannot go on with. */
void vb_serve_abandon(struct vb_near *n, struct vb_peer *p);

/* near/req.c */
void vb_near_req_reset(struct vb_qp *qp);
/* True: there is more to do. */
bool vb_near_run(struct vb_near *n, struct vb_qp *qp, vb_time now);
/* SQD: say so when what had begun is finished. */
void vb_near_drain(struct vb_qp *qp);
void vb_near_answered(struct vb_near *n, struct vb_qp *qp,
		      const struct vb_answer_note *a, vb_time now);

/* Copy a part of a message of ours that @p fetches, if it offers one. */
bool vb_near_help(struct vb_near *n, struct vb_peer *p);
/* Whom we are connected to is in the registry that we see. */
bool vb_near_is_there(struct vb_qp *qp);

/* near/coalesce.c: small WRITEs from nq->sent on, with one call. How many were
 * done; with 0 it must be seen singly what is wrong with the first. */
unsigned vb_near_coalesce(struct vb_qp *qp);
/* A WRITE that may be one of them. */
bool vb_near_is_small(const struct vb_send_wqe *wqe);
/* The same, to be placed by @r's reader: fills in @data, of @room bytes.
 * Returns how many; *@bytes: so many bytes. */
unsigned vb_near_pack(struct vb_qp *qp, uint8_t *data, uint32_t room,
		      uint32_t *bytes);

/* near/coalesce_list.c: whose WRITEs gather. */
void vb_near_list(struct vb_near *n, struct vb_qp *qp);
void vb_near_unlist(struct vb_near *n, struct vb_qp *qp);
/* They go now. True: some did. */
bool vb_near_flush(struct vb_near *n, vb_time now);

/* near/resp.c: carry out @r, if it is for @qp now; fills in what @a says. */
void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a);
/* @p had a part of what is first on its lane, for @qp, or NULL, and was slow.
 * False: it still has. */
bool vb_pull_resume(struct vb_peer *p, struct vb_qp *qp);
/* Nobody is at it any more. */
void vb_pull_abandon(struct vb_peer *p, struct vb_qp *qp);

#endif
