/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections, found in two ways: by our communication ID, which the peer puts
 * in every message after the first; and by the peer's CA GUID with its
 * communication ID or its queue pair, which identify a repeated REQ.
 */
#include <stdlib.h>

#include "mgmt/cm_inside.h"

#include <errno.h>

#define INDEX_BITS   17
#define LONGEST_CODE 24
/* The pause before the first repetition. A message is lost more often than a
 * peer needs its whole time to answer, so early repetitions come sooner than
 * that, and do not count as tries. */
#define FIRST_PAUSE (250 * VB_MSEC)

_Static_assert(VB_CM_MAX_CONNS == 1u << INDEX_BITS, "a number has its bits");

/* Linux rounds 4.096 us * 2^code to a power of two of milliseconds, so this
 * function does the same. */
vb_time vb_cm_code_ns(unsigned code)
{
	code = VB_MIN(code, LONGEST_CODE);
	return VB_MSEC << (code > 8 ? code - 8 : 0);
}

static bool is_busy(enum vb_cm_state state)
{
	return state != CM_CLOSED && state != CM_TIMEWAIT &&
	       state != CM_SIDR_DONE;
}

/* Is @state one in which a connection waits only for a message of the peer or
 * for time to pass? Peers can bring many connections into these states and stay
 * silent, so the manager limits their number (VB_CM_MAX_FADING). */
static bool is_fading(enum vb_cm_state state)
{
	return state == CM_REP_SENT || state == CM_TIMEWAIT ||
	       state == CM_SIDR_DONE;
}

static void append_fading(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;

	c->next_fading = NULL;
	c->prev_fading_at = cm->last_fading;
	*cm->last_fading = c;
	cm->last_fading = &c->next_fading;
	cm->fading_count++;
}

static void remove_fading(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;

	*c->prev_fading_at = c->next_fading;
	if (c->next_fading)
		c->next_fading->prev_fading_at = c->prev_fading_at;
	else
		cm->last_fading = c->prev_fading_at;
	cm->fading_count--;
}

void vb_cm_enter(struct vb_cm_conn *c, enum vb_cm_state to)
{
	if (is_fading(c->state))
		remove_fading(c);
	if (is_fading(to))
		append_fading(c);
	c->cm->busy += is_busy(to);
	c->cm->busy -= is_busy(c->state);
	c->state = to;
}

/* The peer chooses @guid and @number, so the hash has secret keys: a peer
 * cannot choose values that share a bucket. */
unsigned vb_cm_bucket(const struct vb_cm *cm, uint64_t guid, uint32_t number)
{
	uint64_t h = (guid ^ cm->keys[0]) * 0x9e3779b97f4a7c15u;

	h = ((h ^ h >> 32) + (number ^ cm->keys[1])) * 0xbf58476d1ce4e5b9u;
	return (unsigned)((h ^ h >> 32) & (VB_CM_BUCKETS - 1));
}

/* Each connection is in two chains: one by the peer's communication ID and one
 * by its queue pair. */
void vb_cm_link(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;
	struct vb_cm_conn **id =
		&cm->by_id[vb_cm_bucket(cm, c->remote_guid, c->remote_id)];
	struct vb_cm_conn **qpn =
		&cm->by_qpn[vb_cm_bucket(cm, c->remote_guid, c->remote_qpn)];

	c->next_by_id = *id;
	*id = c;
	/* A SIDR REQ names no queue pair, so the chain by QPN lacks its
	 * connection. */
	if (c->sidr)
		return;
	c->next_by_qpn = *qpn;
	*qpn = c;
}

void vb_cm_unlink(struct vb_cm_conn *c)
{
	struct vb_cm *cm = c->cm;
	struct vb_cm_conn **p =
		&cm->by_id[vb_cm_bucket(cm, c->remote_guid, c->remote_id)];

	while (*p && *p != c)
		p = &(*p)->next_by_id;
	if (*p)
		*p = c->next_by_id;
	if (c->sidr)
		return;
	p = &cm->by_qpn[vb_cm_bucket(cm, c->remote_guid, c->remote_qpn)];
	while (*p && *p != c)
		p = &(*p)->next_by_qpn;
	if (*p)
		*p = c->next_by_qpn;
}

struct vb_cm_conn *vb_cm_find_peers(struct vb_cm *cm, uint64_t guid,
				    uint32_t id)
{
	struct vb_cm_conn *c = cm->by_id[vb_cm_bucket(cm, guid, id)];

	while (c &&
	       !(c->passive && c->remote_guid == guid && c->remote_id == id))
		c = c->next_by_id;
	return c;
}

/*
 * This search skips connections in time wait: by chance, programs of one
 * adapter may draw a queue pair number again, and the PSN then tells new
 * packets from late ones.
 */
struct vb_cm_conn *vb_cm_find_qpn(struct vb_cm *cm, uint64_t guid, uint32_t qpn)
{
	struct vb_cm_conn *c = cm->by_qpn[vb_cm_bucket(cm, guid, qpn)];

	while (c && !(c->remote_guid == guid && c->remote_qpn == qpn &&
		      c->state != CM_TIMEWAIT))
		c = c->next_by_qpn;
	return c;
}

/* On InfiniBand a MAD of the same subnet need not name GIDs, but the fabric
 * vouches for the LID of its sender. */
bool vb_cm_is_same_peer(const struct vb_mad_path *a,
			const struct vb_mad_path *b)
{
	if (a->place != b->place)
		return false;
	return a->place ? a->dlid == b->dlid : vb_gid_equal(&a->dgid, &b->dgid);
}

static bool is_same_path(const struct vb_mad_path *a,
			 const struct vb_mad_path *b)
{
	return vb_cm_is_same_peer(a, b) &&
	       (b->place ||
		(vb_gid_equal(&a->sgid, &b->sgid) && a->v1 == b->v1));
}

bool vb_cm_is_on(const struct vb_cm_conn *c, const struct vb_mad_path *path)
{
	return is_same_path(&c->path, path) ||
	       (c->alternate.place && is_same_path(&c->alternate, path));
}

void vb_cm_add_path(struct vb_cm_conn *c, const struct vb_mad_path *path)
{
	c->alternate = *path;
}

int vb_cm_migrate(struct vb_cm_conn *c)
{
	const struct vb_mad_path was = c->path;

	if (!c->alternate.place)
		return -EINVAL;
	c->path = c->alternate;
	c->alternate = was;
	return 0;
}

void vb_cm_follow(struct vb_cm_conn *c, const struct vb_mad_path *path)
{
	if (!is_same_path(&c->path, path))
		(void)!vb_cm_migrate(c);
}

bool vb_cm_is_pausing(struct vb_cm_conn *c)
{
	if (c->pause >= c->patience)
		return false;
	c->pause = VB_MIN(2 * c->pause, c->patience);
	return true;
}

/* A local communication ID is the index in the table and a generation, XORed
 * with a secret. */
struct vb_cm_conn *vb_cm_find_number(struct vb_cm *cm, uint32_t local_id)
{
	uint32_t index = (local_id ^ cm->secret) & (VB_CM_MAX_CONNS - 1);
	struct vb_cm_conn *c = vb_idtab_get(cm->ids, index);

	return c && c->local_id == local_id ? c : NULL;
}

/* The addressee of a request knows both its numbers and could use them in a
 * request of its own. So only a request on a path from an address to itself
 * counts, because its numbers never leave this host. */
bool vb_cm_is_own(struct vb_cm *cm, const struct vb_cm_msg *m)
{
	const struct vb_cm_conn *c = vb_cm_find_number(cm, m->local_id);

	return c && !c->passive && c->tid == m->tid &&
	       vb_gid_equal(&c->path.sgid, &c->path.dgid) &&
	       c->state == (m->attr == CM_REQ ? CM_REQ_SENT : CM_SIDR_SENT);
}

/* The path must match, so that no host can use the ID of a connection that
 * another host has with us. */
struct vb_cm_conn *vb_cm_find_ours(struct vb_cm *cm,
				   const struct vb_mad_path *path,
				   uint32_t local_id)
{
	struct vb_cm_conn *c = vb_cm_find_number(cm, local_id);

	if (c && vb_cm_is_on(c, path))
		return c;
	return vb_cm_find_resumed(cm, path, local_id);
}

struct vb_cm_conn *vb_cm_make(struct vb_cm *cm, const struct vb_mad_path *path)
{
	struct vb_cm_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (vb_idtab_add(cm->ids, c, &c->index)) {
		free(c);
		return NULL;
	}
	c->cm = cm;
	c->path = *path;
	c->local_id = (cm->generation++ << INDEX_BITS | c->index) ^ cm->secret;
	c->linger = vb_cm_code_ns(VB_CM_ACK_TIMEOUT);
	vb_timer_init(&c->timer);
	return c;
}

uint64_t vb_cm_new_tid(const struct vb_cm_conn *c)
{
	return (uint64_t)c->local_id << 32 | c->cm->ops.random();
}

int vb_cm_begin(struct vb_cm *cm, const struct vb_mad_path *path, void *owner,
		struct vb_cm_conn **conn)
{
	struct vb_cm_conn *c = vb_cm_make(cm, path);

	if (!c)
		return vb_idtab_used(cm->ids) == VB_CM_MAX_CONNS ? -EAGAIN
								 : -ENOMEM;
	c->owner = owner;
	c->tid = vb_cm_new_tid(c);
	*conn = c;
	return 0;
}

/* Without memory for the timer this acts as if the message were lost: the peer
 * times out. */
void vb_cm_set_timer(struct vb_cm_conn *c, vb_time at)
{
	if (vb_timer_set(&c->cm->timers, &c->timer, at))
		vb_timer_cancel(&c->cm->timers, &c->timer);
}

/* Closes @c and takes it out of the tables, so that the peer can use its
 * numbers for another connection. */
static void cm_conns_shut(struct vb_cm_conn *c)
{
	vb_cm_enter(c, CM_CLOSED);
	vb_timer_cancel(&c->cm->timers, &c->timer);
	vb_cm_unhold(c);
	vb_cm_unlink(c);
}

void vb_cm_free(struct vb_cm_conn *c)
{
	cm_conns_shut(c);
	vb_cm_forget_resumed(c);
	vb_idtab_del(c->cm->ids, c->index);
	free(c);
}

void vb_cm_close(struct vb_cm_conn *c)
{
	cm_conns_shut(c);
	if (!c->owner)
		vb_cm_free(c);
}

void vb_cm_send_mad(struct vb_cm_conn *c, const uint8_t mad[VB_MAD_BYTES])
{
	c->cm->ops.out.send(c->cm->ops.out.arg, &c->path, mad);
}

void vb_cm_send(struct vb_cm_conn *c, struct vb_cm_msg *m, uint64_t tid)
{
	uint8_t mad[VB_MAD_BYTES];

	m->tid = tid;
	m->local_id = c->local_id;
	m->remote_id = c->remote_id;
	vb_cm_put(mad, m);
	vb_cm_send_mad(c, mad);
}

void vb_cm_send_until_answered(struct vb_cm_conn *c, struct vb_cm_msg *m,
			       uint64_t tid, vb_time now)
{
	m->tid = tid;
	m->local_id = c->local_id;
	m->remote_id = c->remote_id;
	vb_cm_put(c->mad, m);
	c->tries_left = c->max_tries;
	c->pause = VB_MIN(FIRST_PAUSE, c->patience);
	c->begun_at = c->sent_at = now;
	c->returns = 0;
	c->came_back = false;
	vb_cm_send_mad(c, c->mad);
	vb_cm_set_timer(c, now + c->pause);
}

void vb_cm_tell(struct vb_cm_conn *c, enum vb_cm_happening what,
		const struct vb_cm_msg *m)
{
	if (c->owner)
		c->cm->ops.happen(c->cm->ops.arg, c, what, m);
}

void vb_cm_end(struct vb_cm_conn *c, enum vb_cm_happening what,
	       const struct vb_cm_msg *m)
{
	cm_conns_shut(c);
	if (c->owner)
		vb_cm_tell(c, what, m);
	else
		vb_cm_free(c);
}
