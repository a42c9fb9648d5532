/* SPDX-License-Identifier: BSD-2-Clause */
/* The near path as a whole: its birth and end, and what peers have put on
 * their lanes. */
#include "near/near_priv.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "near/hand.h"
#include "near/shm.h"

#define TURN_REQUESTS 64 /* of one peer, before others have theirs */
#define MOST_ANSWERED 32 /* by one answer */
#define DECIDE_EVERY  (50 * VB_USEC) /* while being introduced */
#define DECIDE_WITHIN (250 * VB_MSEC)

/*
 * Birth and end.
 */

static int make_self(struct vb_near *n)
{
	struct vb_peer *p = vb_peer_create(n->c.slot, n->hand);
	void *lane;

	if (!p)
		return -ENOMEM;
	lane = mmap(NULL, sizeof(struct vb_lane), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (lane == MAP_FAILED) {
		vb_peer_put(p);
		return -ENOMEM;
	}
	p->is_self = true;
	p->pid = getpid();
	p->yard = n->yard;
	p->alarm = n->c.wake_fd;
	p->bell = n->bell;
	vb_peer_join(p, lane, 0);
	atomic_store(&p->state, PEER_UP);
	n->self = p;
	return 0;
}

static int make_yard(struct vb_near *n)
{
	int fd, rc = vb_yard_create(n->c.slot, &n->yard, &fd);

	if (rc)
		return rc;
	rc = vb_shm_share_readable(fd, &n->yard_fd);
	if (rc == 0 && !vb_yard_is_open(n->yard, getpid())) {
		close(n->yard_fd);
		rc = -EPERM;
	}
	if (rc) {
		vb_yard_destroy(n->yard, fd);
		return rc;
	}
	close(fd); /* mapped */
	return 0;
}

static int make_bell(struct vb_near *n)
{
	void *at;
	int rc = vb_shm_create("verbena-bell", sizeof(*n->bell), &n->bell_fd,
			       &at);

	if (rc == 0)
		n->bell = at;
	return rc;
}

static void destroy_bell(struct vb_near *n)
{
	vb_shm_unmap(n->bell, sizeof(*n->bell));
	close(n->bell_fd);
}

static int make_parts(struct vb_near *n)
{
	int rc;

	n->hand = vb_hand_create();
	if (!n->hand)
		return -ENOMEM;
	rc = make_yard(n);
	if (rc)
		goto destroy_hand;
	rc = make_bell(n);
	if (rc)
		goto destroy_yard;
	rc = make_self(n);
	if (rc)
		goto destroy_bell;
	rc = vb_intro_init(n);
	if (rc)
		goto put_self;
	vb_near_add(n, n->self);
	return 0;

put_self:
	vb_peer_put(n->self);
destroy_bell:
	destroy_bell(n);
destroy_yard:
	vb_yard_destroy(n->yard, n->yard_fd);
destroy_hand:
	vb_hand_destroy(n->hand);
	return rc;
}

int vb_near_create(const struct vb_near_config *c, struct vb_near **out)
{
	struct vb_near *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->c = *c;
	vb_mutex_init(&n->lock);
	vb_mutex_init(&n->rx);
	vb_mutex_init(&n->lazy_lock);
	rc = make_parts(n);
	if (rc) {
		vb_log(LOG_INFO, "near: packets to everybody: %s",
		       strerror(-rc));
		free(n);
		return rc;
	}
	*out = n;
	return 0;
}

int vb_near_also(struct vb_near *n, unsigned slot, int name_fd)
{
	int rc;

	if (atomic_load(&n->also))
		return -EEXIST;
	n->also_fd = name_fd;
	atomic_store(&n->also, slot);
	atomic_store(&n->self->also, slot);
	rc = vb_intro_also(n);
	if (rc) {
		atomic_store(&n->self->also, 0);
		atomic_store(&n->also, 0);
	}
	return rc;
}

void vb_near_destroy(struct vb_near *n)
{
	vb_intro_fini(n, 0);
	vb_near_remove(n, n->self, 0);
	vb_peer_put(atomic_load(&n->creditor));
	vb_peer_put(n->self);
	destroy_bell(n);
	vb_yard_destroy(n->yard, n->yard_fd);
	vb_hand_destroy(n->hand);
	vb_mutex_fini(&n->lock);
	vb_mutex_fini(&n->rx);
	vb_mutex_fini(&n->lazy_lock);
	free(n);
}

/* By number only: locks may be held by threads that are not here. */
static void close_peer(const struct vb_peer *p)
{
	close(p->session);
	if (p->alarm >= 0)
		close(p->alarm);
}

void vb_near_after_fork(struct vb_near *n)
{
	for (unsigned i = 0; i < VB_SLOTS; i++)
		if (n->peers[i] && n->peers[i]->slot == i)
			close_peer(n->peers[i]);
	for (struct vb_peer *p = n->callers; p; p = p->next)
		close_peer(p);
	close(n->epoll_fd);
	close(n->yard_fd);
	close(n->bell_fd);
}

void vb_near_begin(struct vb_near *n)
{
	vb_yard_live(n->yard);
}

void vb_near_end(struct vb_near *n)
{
	vb_yard_die(n->yard);
}

int vb_near_fd(const struct vb_near *n)
{
	return n->epoll_fd;
}

/*
 * Requests and answers.
 */

struct vb_qp *vb_near_find_qp(struct vb_near *n, uint32_t qpn)
{
	if (!vb_near_is_own(n, qpn >> VB_QPN_BITS))
		return NULL;
	return vb_idtab_get(n->c.qps, qpn & ((1u << VB_QPN_BITS) - 1));
}

static void send_answer(struct vb_peer *p, const struct vb_answer_note *a)
{
	vb_mutex_lock(&p->tx);
	vb_ring_answer(&p->writer, a);
	vb_mutex_unlock(&p->tx);
}

/*
 * A program that is told of a message most often answers it, and its answer
 * rings, too: one wake instead of two. Until then, but not for long, the peer
 * need not hear that its message has arrived.
 */
static void owe(struct vb_near *n, struct vb_peer *p)
{
	struct vb_peer *before;

	atomic_store(&p->owed, true);
	n->c.soon(n->c.arg);
	before = atomic_load(&n->creditor);
	if (before == p)
		return;
	before = atomic_exchange(&n->creditor, vb_peer_get(p));
	if (before && atomic_exchange(&before->owed, false))
		vb_peer_ring(before);
	vb_peer_put(before);
}

void vb_near_settle(struct vb_near *n)
{
	struct vb_peer *p;

	if (VB_LIKELY(
		    !atomic_load_explicit(&n->creditor, memory_order_relaxed)))
		return;
	p = atomic_exchange(&n->creditor, NULL);
	if (p && atomic_exchange(&p->owed, false))
		vb_peer_ring(p);
	vb_peer_put(p);
}

/* @next says the same of one request more. False: it does not. */
static bool join_answers(struct vb_answer_note *a,
			 const struct vb_answer_note *next)
{
	if (a->kind != ANSWER_DONE || next->kind != ANSWER_DONE ||
	    a->qpn != next->qpn || a->life != next->life ||
	    a->count >= MOST_ANSWERED)
		return false;
	a->seq = next->seq;
	a->count++;
	return true;
}

static void carry_out(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		      const struct vb_request *r, const uint8_t *data,
		      struct vb_answer_note *a)
{
	*a = (struct vb_answer_note){ .qpn = r->sqpn,
				      .life = r->src_life,
				      .seq = r->seq,
				      .count = 1,
				      .kind = ANSWER_NOBODY };
	if (VB_UNLIKELY(p->share.waits) && !vb_near_resume(p, qp)) {
		a->kind = ANSWER_LATER;
		return;
	}
	if (qp && vb_near_is_called(qp, r->dqpn))
		vb_near_request(n, p, qp, r, data, a);
	/* What was half fetched may be refused by now; the next message on the
	 * lane is another, and begins at 0. */
	if (VB_LIKELY(a->kind != ANSWER_LATER))
		p->share.at = 0;
}

/* What a peer said may have made something due. */
static void step_if_due(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	enum vb_qp_state s = vb_near_state(qp);
	bool is_well = s == QPS_RTS || s == QPS_RTR;

	if (!is_well || qp->adapter->rnic || qp->sq.done != vb_sq_end(&qp->sq))
		n->c.step(n->c.arg, qp, now);
}

/* The last of a run of answers. */
static void tell(struct vb_near *n, struct vb_peer *p,
		 const struct vb_answer_note *a)
{
	send_answer(p, a);
	if (n->unhurried)
		owe(n, p);
	else
		vb_peer_ring(p);
}

/* Requests in a row for one queue pair: one lock, one step. *@left: how many
 * more there may be in this turn. (Unchecked: the lock is given up behind a
 * function pointer.) */
static int serve_run(struct vb_near *n, struct vb_peer *p, unsigned *left,
		     vb_time now) VB_UNCHECKED
{
	struct vb_answer_note a, next;
	struct vb_request r;
	const uint8_t *data;
	int rc = vb_ring_look(&p->reader, &r, &data);
	struct vb_qp *qp;
	uint32_t dqpn;

	if (rc <= 0)
		return rc;
	vb_ring_expect_answer(&p->writer);
	dqpn = r.dqpn;
	qp = vb_near_find_qp(n, dqpn);
	if (qp) {
		vb_mutex_lock(&qp->drive);
		qp->now = now;
	}
	a.count = 0;
	do {
		carry_out(n, p, qp, &r, data, &next);
		if (VB_UNLIKELY(next.kind == ANSWER_LATER)) {
			rc = 0;
			break;
		}
		vb_ring_done(&p->reader);
		if (a.count == 0) {
			a = next;
		} else if (!join_answers(&a, &next)) {
			send_answer(p, &a);
			a = next;
		}
		rc = vb_ring_look(&p->reader, &r, &data);
	} while (--*left && rc > 0 && r.dqpn == dqpn &&
		 !vb_ring_has_answer(&p->reader));
	if (VB_LIKELY(a.count))
		tell(n, p, &a);
	if (qp) {
		/* Between finding and locking it, it may have been destroyed.
		 */
		if (vb_near_is_called(qp, dqpn))
			step_if_due(n, qp, now);
		n->c.release(n->c.arg, qp);
	}
	return rc < 0 ? rc : a.count > 0;
}

static int hear_answer(struct vb_near *n, struct vb_peer *p,
		       vb_time now) VB_UNCHECKED /* as above */
{
	struct vb_answer_note a;
	struct vb_qp *qp;
	int rc = vb_ring_hear(&p->reader, &a);

	if (rc <= 0)
		return rc;
	/* It answers what it was never asked. */
	if (!vb_ring_discount(&p->writer, a.count))
		return -EPROTO;
	qp = vb_near_find_qp(n, a.qpn);
	if (!qp)
		return 1;
	vb_mutex_lock(&qp->drive);
	qp->now = now;
	if (vb_near_is_called(qp, a.qpn)) {
		vb_near_answered(n, qp, &a, now);
		step_if_due(n, qp, now);
	}
	n->c.release(n->c.arg, qp);
	return 1;
}

static int hear_answers(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	int rc, found = 0;

	while ((rc = hear_answer(n, p, now)) > 0)
		found = 1;
	return rc < 0 ? rc : found;
}

/*
 * One turn. 1: there was something; 0; -EPROTO: nonsense. The peer answers
 * before it asks for more, so answers are heard after a request was seen and
 * before it is carried out: a program that hears back from its peer finds its
 * own request complete.
 */
static int serve_peer(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	unsigned left = TURN_REQUESTS;
	int found = 0, rc = 1;

	while (left && rc > 0) {
		bool asked = vb_ring_has_request(&p->reader);

		rc = hear_answers(n, p, now);
		found |= rc > 0;
		if (rc >= 0 && asked)
			rc = serve_run(n, p, &left, now);
		found |= rc > 0;
	}
	return rc < 0 ? rc : found;
}

/* It writes nonsense: its session ends, by its thread's own doing when that
 * sees the end of it. */
static void expel(struct vb_near *n, unsigned at)
{
	struct vb_peer *p = n->active[at];

	vb_log(LOG_WARN, "near: slot %u writes nonsense: packets", p->slot);
	n->active[at] = n->active[--n->active_count];
	shutdown(p->session, SHUT_RDWR);
	vb_peer_put(p);
}

static bool has_something(const struct vb_peer *p)
{
	return vb_ring_has_answer(&p->reader) ||
	       vb_ring_has_request(&p->reader);
}

static bool serve_all(struct vb_near *n, vb_time now)
{
	bool found = false;

	for (unsigned i = n->active_count; i-- > 0;) {
		int rc;

		if (vb_offer_is_there(n->active[i]->offered))
			found |= vb_near_help(n, n->active[i]);
		if (!has_something(n->active[i]))
			continue;
		rc = serve_peer(n, n->active[i], now);
		if (rc < 0)
			expel(n, i);
		found |= rc != 0;
	}
	return found;
}

bool vb_near_poll(struct vb_near *n, vb_time now)
{
	bool found = vb_near_flush(n, now);

	vb_near_settle(n);
	if (!vb_mutex_trylock(&n->rx))
		return found;
	found |= serve_all(n, now);
	vb_mutex_unlock(&n->rx);
	return found;
}

bool vb_near_catch_up(struct vb_near *n, vb_time now)
{
	if (!vb_mutex_trylock(&n->rx))
		return false;
	(void)serve_all(n, now);
	vb_mutex_unlock(&n->rx);
	return true;
}

void vb_near_add(struct vb_near *n, struct vb_peer *p)
{
	vb_mutex_lock(&n->rx);
	if (n->active_count < VB_COUNT(n->active))
		n->active[n->active_count++] = vb_peer_get(p);
	vb_mutex_unlock(&n->rx);
}

/* What it said before it ended stands, as what a dead host sent stands. */
static void serve_rest(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	unsigned turns = 2 * VB_RING_SLOTS / TURN_REQUESTS;

	while (turns-- && serve_peer(n, p, now) > 0)
		;
}

/* It is gone with a part of a message in hand. (Unchecked: as above.) */
static void abandon(struct vb_near *n, struct vb_peer *p) VB_UNCHECKED
{
	struct vb_qp *qp = vb_near_find_qp(n, p->share.qpn);

	if (!p->share.waits)
		return;
	if (qp)
		vb_mutex_lock(&qp->drive);
	vb_near_abandon(p, qp);
	if (qp)
		n->c.release(n->c.arg, qp);
}

void vb_near_remove(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	unsigned i = 0;

	vb_mutex_lock(&n->rx);
	while (i < n->active_count && n->active[i] != p)
		i++;
	if (i < n->active_count) {
		n->active[i] = n->active[--n->active_count];
		serve_rest(n, p, now);
		vb_peer_put(p);
	}
	abandon(n, p);
	vb_mutex_unlock(&n->rx);
}

/*
 * Sleep.
 */

bool vb_near_has_something(struct vb_near *n)
{
	bool found = false;

	vb_mutex_lock(&n->rx);
	for (unsigned i = 0; i < n->active_count && !found; i++)
		found = has_something(n->active[i]);
	vb_mutex_unlock(&n->rx);
	return found;
}

bool vb_near_sleep(struct vb_near *n)
{
	atomic_store_explicit(&n->yard->asleep, 1, memory_order_relaxed);
	/* Pairs with vb_peer_ring(). */
	atomic_thread_fence(memory_order_seq_cst);
	return !vb_near_has_something(n);
}

void vb_near_awake(struct vb_near *n)
{
	atomic_store_explicit(&n->yard->asleep, 0, memory_order_relaxed);
}

bool vb_near_is_wanted(struct vb_near *n)
{
	bool called = false;

	vb_mutex_lock(&n->rx);
	for (unsigned i = 0; i < n->active_count; i++)
		if (atomic_load_explicit(n->active[i]->their_calls,
					 memory_order_relaxed))
			called |= atomic_exchange(n->active[i]->their_calls, 0);
	vb_mutex_unlock(&n->rx);
	return called;
}

void vb_near_stand_by(struct vb_near *n, bool yes)
{
	if (yes)
		vb_near_awake(n);
	atomic_store_explicit(&n->yard->attends, yes, memory_order_relaxed);
}

struct vb_bell *vb_near_bell(const struct vb_near *n)
{
	return n->bell;
}

bool vb_near_attend(struct vb_near *n, vb_time now, bool unhurried)
{
	bool found;

	(void)vb_near_flush(n, now);
	vb_mutex_lock(&n->rx);
	n->unhurried = unhurried;
	found = serve_all(n, now);
	n->unhurried = false;
	vb_mutex_unlock(&n->rx);
	return found;
}

/*
 * Keys.
 */

void vb_near_grant(struct vb_near *n, const struct vb_adapter *a,
		   const struct vb_grant *g)
{
	vb_yard_grant(n->yard, a, g);
}

/* An access is a copy of a bounded length, no more: it is over soon. */
static void await_cells(const struct vb_peer *p, uint32_t key, uint32_t qpn)
{
	for (unsigned turn = 0; atomic_load(&p->state) != PEER_GONE &&
				vb_cells_name(p->their_cells, key, qpn);
	     turn++) {
		if (turn < 100)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
}

static bool is_at(const struct vb_peer *p, uint32_t key, uint32_t qpn)
{
	return p->their_cells && vb_cells_name(p->their_cells, key, qpn);
}

/* Among the peers of 64 slots. */
static struct vb_peer *find_at(struct vb_near *n, unsigned word, uint32_t key,
			       uint32_t qpn) VB_REQUIRES(n->lock)
{
	for (uint64_t left = n->known[word]; left; left &= left - 1) {
		unsigned slot = word * 64 + (unsigned)__builtin_ctzll(left);

		if (is_at(n->peers[slot], key, qpn))
			return n->peers[slot];
	}
	return NULL;
}

/* A reference to who is at @key by way of @qpn; or NULL. */
static struct vb_peer *who_is_at(struct vb_near *n, uint32_t key, uint32_t qpn)
{
	struct vb_peer *found = is_at(n->self, key, qpn) ? n->self : NULL;

	vb_mutex_lock(&n->lock);
	for (unsigned i = 0; i < VB_COUNT(n->known) && !found; i++)
		found = find_at(n, i, key, qpn);
	if (found)
		vb_peer_get(found);
	vb_mutex_unlock(&n->lock);
	return found;
}

static void await_all(struct vb_near *n, uint32_t key, uint32_t qpn)
{
	struct vb_peer *p;

	while ((p = who_is_at(n, key, qpn))) {
		await_cells(p, key, qpn);
		vb_peer_put(p);
	}
}

void vb_near_revoke(struct vb_near *n, const struct vb_adapter *a,
		    uint32_t index, uint32_t key)
{
	vb_yard_revoke(n->yard, a, index);
	await_all(n, key, 0);
}

/*
 * Queue pairs.
 */

int vb_near_attach(struct vb_qp *qp)
{
	qp->near = calloc(1, sizeof(struct vb_near_qp));
	if (!qp->near)
		return -ENOMEM;
	vb_near_req_reset(qp);
	return 0;
}

/* @wait: until no peer is at our memory by way of it. */
static void hide(struct vb_near *n, struct vb_qp *qp, bool wait)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (!nq->shown)
		return;
	nq->shown = false;
	vb_yard_hide(n->yard, qp->index);
	if (wait)
		await_all(n, 0, nq->number);
}

static void show(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_yard_name name = { nq->number, nq->far_number,
					   nq->life };

	if (nq->life == 0 || (qp->adapter->rnic && !nq->far_number))
		return;
	nq->shown = true;
	vb_yard_show(n->yard, qp, &name);
}

static void forget_peer(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_near_unlist(n, qp);
	vb_peer_put(nq->peer);
	*nq = (struct vb_near_qp){ .life = 0 };
	vb_near_req_reset(qp);
}

void vb_near_detach(struct vb_near *n, struct vb_qp *qp)
{
	if (n) {
		hide(n, qp, true);
		forget_peer(n, qp);
	}
	free(qp->near);
	qp->near = NULL;
}

/* A number that no earlier connection of this queue pair had, but by chance. */
static uint32_t new_life(void)
{
	return vb_rand32() | 1;
}

static void get_ready(struct vb_near *n, struct vb_qp *qp, bool here)
{
	struct vb_near_qp *nq = vb_nq(qp);

	forget_peer(n, qp);
	if (!here || qp->type != QPT_RC ||
	    qp->adapter->number >= VB_YARD_ADAPTERS ||
	    !vb_near_is_own(n, qp->adapter->qpn_base >> VB_QPN_BITS))
		return;
	nq->life = new_life();
	nq->number = atomic_load(&qp->qpn);
	nq->far_number = qp->attr.dest_qp_num;
	/* Of an imported domain: what its keys open is another's, which only
	 * packets get to. */
	if (qp->pd->origin.is_far)
		return;
	nq->intro = vb_intro_want(n, qp->attr.dest_qp_num >> VB_QPN_BITS);
	qp->way = WAY_OPEN;
}

bool vb_near_expect(struct vb_near *n, struct vb_qp *qp,
		    struct vb_near_card *card)
{
	struct vb_near_qp *nq = vb_nq(qp);

	hide(n, qp, true);
	forget_peer(n, qp);
	if (qp->adapter->number >= VB_YARD_ADAPTERS || qp->pd->origin.is_far)
		return false;
	nq->life = new_life();
	nq->number = n->c.slot << VB_QPN_BITS | qp->index;
	qp->way = WAY_OPEN;
	*card = (struct vb_near_card){ nq->number, nq->life };
	return true;
}

void vb_near_recognize(struct vb_near *n, struct vb_qp *qp,
		       const struct vb_near_card *peer)
{
	unsigned slot = peer->number >> VB_QPN_BITS;
	struct vb_near_qp *nq = vb_nq(qp);

	if (nq->life == 0 || slot == 0 || slot >= VB_SLOTS || !peer->life)
		return;
	nq->far_number = peer->number;
	nq->peer_life = peer->life;
	nq->intro = vb_intro_want(n, slot);
	show(n, qp);
}

bool vb_near_is_heard(const struct vb_qp *qp)
{
	return vb_nq(qp)->src_life != 0;
}

void vb_near_enter(struct vb_near *n, struct vb_qp *qp, enum vb_qp_state from,
		   enum vb_qp_state to, bool here)
{
	if (to == QPS_RTR && from == QPS_INIT)
		get_ready(n, qp, here);
	if (to == QPS_RTS && from == QPS_RTR)
		vb_near_req_reset(qp);
	if (to == QPS_RESET || to == QPS_INIT || to == QPS_ERR)
		hide(n, qp, true);
	else
		show(n, qp);
	if (to == QPS_RESET)
		forget_peer(n, qp);
	if (to == QPS_SQD)
		vb_near_drain(qp);
}

/*
 * Which way.
 */

/* A card may be of another host's program, where streams are relayed: one of
 * ours may have its slot, but not its queue pair. */
static enum vb_intro find_end(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (vb_near_is_there(qp))
		return INTRO_UP;
	vb_peer_put(nq->peer);
	nq->peer = NULL;
	return INTRO_PENDING;
}

static enum vb_intro find_peer(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	enum vb_intro found;

	if (qp->adapter->rnic && !nq->far_number)
		return INTRO_PENDING;
	found = vb_intro_find(n, nq->far_number >> VB_QPN_BITS, nq->intro,
			      &nq->peer);
	return found == INTRO_UP && qp->adapter->rnic ? find_end(qp) : found;
}

static void decide(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	switch (find_peer(n, qp)) {
	case INTRO_UP:
		qp->way = WAY_NEAR;
		vb_log(LOG_INFO, "qp 0x%x: no packets to slot %u",
		       atomic_load(&qp->qpn), nq->peer->slot);
		return;
	case INTRO_NO:
		qp->way = WAY_PACKETS;
		return;
	case INTRO_PENDING:
		break;
	}
	if (nq->decide_by == VB_NEVER)
		nq->decide_by = now + DECIDE_WITHIN;
	nq->decide_at = now + DECIDE_EVERY;
	if (now >= nq->decide_by)
		qp->way = WAY_PACKETS;
}

bool vb_near_send(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	bool sends = vb_near_state(qp) == QPS_RTS ||
		     vb_near_state(qp) == QPS_SQD,
	     more = false;

	if (VB_UNLIKELY(qp->way == WAY_OPEN) && sends &&
	    qp->sq.done != vb_sq_end(&qp->sq))
		decide(n, qp, now);
	if (qp->way == WAY_NEAR && sends)
		more = vb_near_run(n, qp, now);
	if (VB_UNLIKELY(vb_near_state(qp) == QPS_ERR))
		hide(n, qp, false);
	return more;
}

vb_time vb_near_deadline(const struct vb_qp *qp)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	enum vb_qp_state s = vb_near_state(qp);

	if (s != QPS_RTS && s != QPS_SQD)
		return VB_NEVER;
	if (qp->way == WAY_OPEN)
		return qp->sq.done == vb_sq_end(&qp->sq) ? VB_NEVER
							 : nq->decide_at;
	if (qp->way != WAY_NEAR)
		return VB_NEVER;
	return VB_MIN(
		VB_MIN(nq->rnr_at, nq->retry_at),
		VB_MIN(nq->give_up_at, VB_MIN(nq->flush_at, nq->tick_at)));
}
