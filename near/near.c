/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport as a whole: creation, destruction, sleep, keys and queue
 * pairs. */
#include "core/lock_order.h"
#include "near/near_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/shm.h"
#include "near/copy_helper.h"
#include "near/grace.h"
#include "near/session_priv.h"

/* Pause between checks whether the introduction has ended. */
#define DECIDE_EVERY (50 * VB_USEC)
/* How long the peer's registry may lack the connected queue pair. */
#define DECIDE_WITHIN (250 * VB_MSEC)
/* How long the introduction may take. Programs that start at the same time,
 * such as the ranks of an MPI job, make many introductions on few
 * processors. */
#define MEET_WITHIN VB_SEC
/* Pause between checks whether a peer has left a receive of a queue pair in
 * ERR (vb_serve_lane()). */
#define LENT_EVERY (5 * VB_MSEC)

/* Creating and destroying the transport. */

static int make_self(struct vb_near *n)
{
	struct vb_peer *p = vb_peer_create(n->c.slot, n->world, n->helper);
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
	p->registry = n->registry;
	p->wake_fd = n->c.wake_fd;
	vb_peer_join(p, lane, 0);
	atomic_store(&p->state, PEER_UP);
	n->self = p;
	return 0;
}

static int make_registry(struct vb_near *n)
{
	int fd, rc = vb_registry_create(n->c.slot, &n->registry, &fd);

	if (rc)
		return rc;
	rc = vb_shm_share_readable(fd, &n->registry_fd);
	if (rc) {
		vb_registry_destroy(n->registry, fd);
		return rc;
	}
	close(fd); /* the descriptor is closed, and the mapping stays */
	return 0;
}

static int make_parts(struct vb_near *n)
{
	int rc;

	rc = make_registry(n);
	if (rc)
		return rc;
	rc = make_self(n);
	if (rc) {
		vb_registry_destroy(n->registry, n->registry_fd);
		return rc;
	}
	vb_near_add(n, n->self);
	return 0;
}

static void destroy_parts(struct vb_near *n)
{
	vb_near_remove(n, n->self, 0);
	vb_near_remove_all(n);
	vb_peer_put(atomic_load(&n->creditor));
	vb_peer_put(n->self);
	vb_registry_destroy(n->registry, n->registry_fd);
}

/* Create the parts that only a real host has: the helper's thread, and
 * sessions. */
static int meet_host(struct vb_near *n)
{
	int rc;

	n->helper = vb_copy_helper_create();
	if (!n->helper)
		return -ENOMEM;
	rc = make_parts(n);
	if (rc)
		goto destroy_helper;
	rc = vb_session_init(n);
	if (rc)
		goto destroy_parts;
	return 0;

destroy_parts:
	destroy_parts(n);
destroy_helper:
	vb_copy_helper_destroy(n->helper);
	return rc;
}

int vb_near_create(const struct vb_near_config *c, struct vb_near **out)
{
	struct vb_near *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->c = *c;
	n->world = c->world ? c->world : &vb_near_host;
	vb_mutex_init(&n->lock, RANK_NEAR);
	vb_mutex_init(&n->lanes_lock, VB_RANK_LEAF);
	vb_mutex_init(&n->coalesce_lock, VB_RANK_LEAF);
	rc = c->world ? make_parts(n) : meet_host(n);
	if (rc) {
		vb_log(LOG_INFO,
		       "near: using packets to all programs of this host: %s",
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
	n->names[1].fd = name_fd;
	atomic_store(&n->also, slot);
	atomic_store(&n->self->also, slot);
	rc = vb_session_also(n);
	if (rc) {
		n->names[1].fd = -1;
		atomic_store(&n->self->also, 0);
		atomic_store(&n->also, 0);
	}
	return rc;
}

void vb_near_destroy(struct vb_near *n)
{
	if (!n->c.world)
		vb_session_fini(n, 0);
	vb_session_see_off(n, true);
	destroy_parts(n);
	if (n->helper)
		vb_copy_helper_destroy(n->helper);
	vb_mutex_fini(&n->lock);
	vb_mutex_fini(&n->lanes_lock);
	vb_mutex_fini(&n->coalesce_lock);
	free(n);
}

void vb_near_begin(struct vb_near *n)
{
	vb_registry_live(n->registry);
}

void vb_near_end(struct vb_near *n)
{
	vb_registry_die(n->registry);
}

int vb_near_fd(const struct vb_near *n)
{
	return n->epoll_fd;
}

/* Sleeping and waking. */

bool vb_near_sleep(struct vb_near *n)
{
	atomic_store_explicit(&n->registry->asleep, 1, memory_order_relaxed);
	/* Pairs with vb_peer_ring(), which writes to a lane and then reads
	 * @asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	return !vb_near_has_something(n);
}

void vb_near_awake(struct vb_near *n)
{
	atomic_store_explicit(&n->registry->asleep, 0, memory_order_relaxed);
}

void vb_near_stand_by(struct vb_near *n, bool yes)
{
	if (yes)
		vb_near_awake(n);
	atomic_store_explicit(&n->registry->attends, yes, memory_order_relaxed);
}

/* Granting and revoking keys. */

void vb_near_grant(struct vb_near *n, const struct vb_adapter *a,
		   const struct vb_grant *g)
{
	vb_registry_grant(n->registry, a, g);
}

/* Returns the @nth peer, if one of its hazards names @key and @qpn; or NULL.
 * The first VB_SLOTS are those of the table, by slot; slot 0 belongs to the
 * broker, which is no peer, so here slot 0 stands for this program itself. The
 * other VB_SLOTS are those that leave; a peer that goes from the table to those
 * that leave meanwhile is found there. */
static struct vb_peer *find_at(struct vb_near *n, unsigned nth, uint32_t key,
			       uint32_t qpn) VB_REQUIRES(n->lock)
{
	struct vb_peer *p = nth == 0	     ? n->self
			    : nth < VB_SLOTS ? n->peers[nth]
					     : n->leaving[nth - VB_SLOTS];

	return p && vb_grace_shows(p, key, qpn) ? p : NULL;
}

/* Returns the number of peers that find_at() knows. */
static unsigned count_all(const struct vb_near *n) VB_REQUIRES(n->lock)
{
	return n->leaving_count ? 2 * VB_SLOTS : VB_SLOTS;
}

static bool has_none(const struct vb_near *n, unsigned nth) VB_REQUIRES(n->lock)
{
	return nth && nth < VB_SLOTS && !(n->known[nth / 64] >> nth % 64);
}

/* Returns the first peer from number *@nth on that has a hazard which names
 * @key and @qpn, with a reference. *@nth becomes the next number to look at.
 * NULL: there is no such peer. */
static struct vb_peer *next_at(struct vb_near *n, unsigned *nth, uint32_t key,
			       uint32_t qpn)
{
	struct vb_peer *p = NULL;

	vb_mutex_lock(&n->lock);
	while (!p && *nth < count_all(n)) {
		if (has_none(n, *nth))
			*nth = (*nth / 64 + 1) * 64;
		else
			p = find_at(n, (*nth)++, key, qpn);
	}
	if (p)
		vb_peer_get(p);
	vb_mutex_unlock(&n->lock);
	return p;
}

/* Wait for accesses by @key, which the caller has revoked, so that no access by
 * it begins any more. This function waits for each peer once: a peer that
 * vb_grace_await() gave up on still shows its hazard. All peers have had the
 * same time to end, so the limits of near/grace.h are limits for the whole
 * wait.
 */
static void await_all(struct vb_near *n, uint32_t key, uint32_t qpn)
{
	struct vb_age age = { 0 };
	struct vb_peer *p;
	unsigned nth = 0;

	while ((p = next_at(n, &nth, key, qpn))) {
		vb_grace_await(p, key, qpn, &age);
		vb_peer_put(p);
	}
}

void vb_near_revoke(struct vb_near *n, const struct vb_adapter *a,
		    uint32_t index)
{
	vb_registry_revoke(n->registry, a, index);
}

void vb_near_await(struct vb_near *n, uint32_t key)
{
	await_all(n, key, 0);
}

bool vb_near_is_drained(struct vb_near *n, uint32_t key, struct vb_age *age)
{
	bool drained = true;
	struct vb_peer *p;
	unsigned nth = 0;

	while (drained && (p = next_at(n, &nth, key, 0))) {
		drained = vb_grace_is_over(
			p, key, 0,
			vb_age_look(age, n->world->now(n->world->arg)));
		vb_peer_put(p);
	}
	return drained;
}

/* Returns the peer that has @slot now, or a session with it that has ended, if
 * one shows an access by @key through the queue pair @number. */
static struct vb_peer *find_at_key(struct vb_near *n, unsigned slot,
				   uint32_t key, uint32_t number)
	VB_REQUIRES(n->lock)
{
	struct vb_peer *p = n->peers[slot], *before = n->leaving[slot];

	if (p && vb_grace_shows(p, key, number))
		return p;
	return before && vb_grace_shows(before, key, number) ? before : NULL;
}

/* An honest peer has withdrawn its hazard before it sends the request that
 * invalidates the key, whichever way that request goes: its requests are in
 * order. */
bool vb_near_lies(struct vb_near *n, struct vb_qp *qp, uint32_t key)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	struct vb_peer *p;

	if (!nq || !nq->life)
		return false;
	vb_mutex_lock(&n->lock);
	p = find_at_key(n, nq->remote_number >> VB_QPN_BITS, key, nq->number);
	if (p)
		vb_peer_get(p);
	vb_mutex_unlock(&n->lock);
	if (VB_LIKELY(!p))
		return false;
	vb_peer_expel(p, "invalidated a key and went on using it");
	vb_peer_put(p);
	return true;
}

/* Functions for queue pairs. */

int vb_near_attach(struct vb_qp *qp)
{
	/* This state is never freed while the memory of the queue pair lasts:
	 * threads that process a lane write to @awaited without drive
	 * (vb_near_lock_briefly()). */
	if (!vb_nq(qp))
		qp->priv[PRIV_NEAR] = calloc(1, sizeof(struct vb_near_qp));
	if (!vb_nq(qp))
		return -ENOMEM;
	vb_near_req_reset(qp);
	return 0;
}

void vb_near_hide(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (!nq->shown)
		return;
	nq->shown = false;
	vb_registry_hide(n->registry, qp->index);
}

static void near_show(struct vb_near *n, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_registry_name name = { nq->number, nq->remote_number,
					       nq->life };

	if (nq->life == 0 || nq->away ||
	    (qp->adapter->rnic && !nq->remote_number))
		return;
	nq->shown = true;
	vb_registry_show(n->registry, qp, &name);
}

static void near_forget_peer(struct vb_near *n, struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const size_t from = offsetof(struct vb_near_qp, life);

	if (n)
		vb_near_unlist(n, qp);
	vb_peer_put(nq->peer);
	memset((char *)nq + from, 0, sizeof(*nq) - from);
	vb_near_req_reset(qp);
}

void vb_near_detach(struct vb_near *n, struct vb_qp *qp)
{
	if (n)
		vb_near_hide(n, qp);
	near_forget_peer(n, qp);
}

/* Returns a random number for a connection: by chance only, an earlier
 * connection of the queue pair has had it. */
static uint32_t new_life(const struct vb_near *n)
{
	return n->world->random(n->world->arg) | 1;
}

/* Returns the number by which peers call the queue pair (struct vb_near_qp). */
static uint32_t near_number_of(const struct vb_near *n,
			       const struct vb_adapter *a, uint32_t index)
{
	return (a->rnic ? n->c.slot << VB_QPN_BITS : a->qpn_base) | index;
}

static void get_ready(struct vb_near *n, struct vb_qp *qp, bool here)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	near_forget_peer(n, qp);
	if (!here || qp->type != QPT_RC ||
	    qp->adapter->number >= VB_REGISTRY_ADAPTERS ||
	    !vb_near_is_own(n, qp->adapter->qpn_base >> VB_QPN_BITS))
		return;
	nq->life = new_life(n);
	nq->number = near_number_of(n, qp->adapter, qp->index);
	nq->remote_number = qp->attr.dest_qp_num;
	/* The keys of an imported domain open another process's memory, which
	 * is not reached near, but only by packets. */
	if (qp->pd->origin.is_imported)
		return;
	nq->session_since =
		vb_session_want(n, qp->attr.dest_qp_num >> VB_QPN_BITS);
	qp->way = WAY_OPEN;
}

bool vb_near_expect(struct vb_near *n, struct vb_qp *qp,
		    struct vb_near_card *card)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_near_hide(n, qp);
	near_forget_peer(n, qp);
	if (qp->adapter->number >= VB_REGISTRY_ADAPTERS ||
	    qp->pd->origin.is_imported)
		return false;
	nq->life = new_life(n);
	nq->number = near_number_of(n, qp->adapter, qp->index);
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
	nq->remote_number = peer->number;
	nq->peer_life = peer->life;
	nq->session_since = vb_session_want(n, slot);
	near_show(n, qp);
}

bool vb_near_may_be_here(const struct vb_qp *qp)
{
	return vb_nq(qp)->life != 0;
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
		vb_near_hide(n, qp);
	else
		near_show(n, qp);
	if (to == QPS_RESET)
		near_forget_peer(n, qp);
	if (to == QPS_SQD)
		vb_near_drain(qp);
}

static bool is_connected(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTR || s == QPS_RTS || s == QPS_SQD || s == QPS_SQE;
}

void vb_near_follow(struct vb_near *n, struct vb_qp *qp, bool reaches)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (nq->life == 0)
		return;
	nq->away = !reaches;
	nq->fits = false;
	if (nq->away)
		vb_near_hide(n, qp);
	else if (is_connected(qp))
		near_show(n, qp);
}

void vb_near_settle_qp(struct vb_near *n, const struct vb_adapter *a,
		       uint32_t index)
{
	uint32_t number = near_number_of(n, a, index);

	await_all(n, 0, number);
	vb_lanes_take_parts_back(n, number);
}

/* Deciding which way requests go. */

/* Find the peer's registry entry of the connected queue pair. The slot alone
 * does not prove who the peer is: if addresses are translated or streams
 * relayed on the way, the connected queue pair can be on another host, while a
 * program here has an equal slot. So the registry must show that queue pair. */
static enum vb_session find_end(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (vb_near_is_there(qp))
		return SESSION_UP;
	vb_peer_put(nq->peer);
	nq->peer = NULL;
	return SESSION_PENDING;
}

/* Look for the session with the peer's program. *@meets: the introduction to
 * that program is still under way. */
static enum vb_session find_peer(struct vb_near *n, struct vb_qp *qp,
				 bool *meets) VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	enum vb_session found;

	*meets = false;
	if (qp->adapter->rnic && !nq->remote_number)
		return SESSION_PENDING;
	found = vb_session_find(n, nq->remote_number >> VB_QPN_BITS,
				nq->session_since, &nq->peer);
	*meets = found == SESSION_PENDING;
	return found == SESSION_UP ? find_end(qp) : found;
}

/* The way is not decided yet: set the time to look again, and the time by which
 * it must be decided. */
static void limit_decision(struct vb_near_qp *nq, bool meets, vb_time now)
{
	vb_time within = meets ? MEET_WITHIN : DECIDE_WITHIN;

	if (nq->decide_by == VB_NEVER || (nq->meets && !meets))
		nq->decide_by = VB_MIN(nq->decide_by, now + within);
	nq->meets = meets;
	nq->decide_at = now + DECIDE_EVERY;
}

static void decide(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	bool meets;

	switch (find_peer(n, qp, &meets)) {
	case SESSION_UP:
		qp->way = WAY_NEAR;
		vb_log(LOG_INFO, "qp 0x%x: no packets to slot %u",
		       atomic_load(&qp->qpn), nq->peer->slot);
		return;
	case SESSION_NO:
		qp->way = WAY_PACKETS;
		return;
	case SESSION_PENDING:
		break;
	}
	limit_decision(nq, meets, now);
	if (now >= nq->decide_by)
		qp->way = WAY_PACKETS;
}

bool vb_near_decide_by(struct vb_qp *qp, vb_time by)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (qp->way == WAY_OPEN)
		nq->decide_by = VB_MIN(nq->decide_by, by);
	return qp->way == WAY_OPEN;
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
		vb_near_hide(n, qp);
	return more;
}

vb_time vb_near_deadline(const struct vb_qp *qp)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	enum vb_qp_state s = vb_near_state(qp);

	if (s == QPS_ERR && VB_UNLIKELY(qp->recv_lent))
		return qp->now + LENT_EVERY;
	if (s != QPS_RTS && s != QPS_SQD)
		return VB_NEVER;
	if (qp->way == WAY_OPEN)
		return qp->sq.done == vb_sq_end(&qp->sq) ? VB_NEVER
							 : nq->decide_at;
	if (qp->way != WAY_NEAR)
		return VB_NEVER;
	return VB_MIN(VB_MIN(nq->rnr_at, nq->retry_at),
		      VB_MIN(nq->look_at, VB_MIN(nq->flush_at, nq->tick_at)));
}
