/* SPDX-License-Identifier: BSD-2-Clause */
/* The link of an InfiniBand adapter: sends and receives frames through rings in
 * shared memory. */
#include "link/ib.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/log.h"
#include "base/shring.h"
#include "base/sync.h"
#include "wire/grh.h"
#include "wire/lrh.h"
#include "wire/verbs_ipc.h"

#define BELLS 64 /* bells that are read in one call */
/* Bytes that may be under way. On a link of 8 Gbit/s and 500 us one way, a
 * round trip carries 1 MB, and more accumulates while a process waits for its
 * processor. */
#define IN_FLIGHT (4u << 20)

struct vb_ib {
	struct vb_link link;
	int bell, control;
	int (*call)(int control, const void *bytes, size_t len);
	/* the port's LID; bits 16 and above have the LMC */
	_Atomic uint32_t lid;
	struct vb_mutex lock;
	struct vb_shring_out out; /* ring of sent frames; protected by @lock */
	/* ring of received frames; protected by the receive lock of the link's
	 * caller */
	struct vb_shring_in in;
	/* this side has asked the fabric's process to ring when @out has room;
	 * protected by @lock */
	bool starving;
	/* the fabric's process has broken the rules of a ring, and the link has
	 * shut @control down */
	atomic_bool ended; /* the fabric's process has ended */
	atomic_bool given_up;
	struct {
		_Atomic uint64_t frames, calls, bytes, lost;
	} tx;
	/* written with the receive lock of the link's caller; any thread may
	 * read them */
	struct {
		_Atomic uint64_t frames, calls, bytes, icrc_errors, malformed;
	} rx;
};

static struct vb_ib *ib_of(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct vb_ib, link);
}

static void ib_link_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void link_ring(const struct vb_ib *ib)
{
	/* If the socket has no room, the fabric's process has bells to read and
	 * will look at the ring. */
	(void)!send(ib->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Give the link up, because the fabric's process has written an impossible
 * value to a ring. The link shuts down the connection to that process, so that
 * the engine fails the adapter as if the process had ended. */
static void link_give_up(struct vb_ib *ib)
{
	if (atomic_exchange(&ib->given_up, true))
		return;
	vb_log(LOG_ERROR, "ib: the fabric has broken the ring of frames");
	(void)shutdown(ib->control, SHUT_RDWR);
}

/* A route needs no completion: the fabric's switches forward each frame by its
 * LID. */
static int ib_route(struct vb_link *l, struct vb_route *r)
{
	return 0;
}

/* Functions that send frames. */

static void link_put_grh(uint8_t *to, const struct vb_route *r, uint32_t bytes)
{
	const struct vb_grh h = {
		.sgid = r->sgid,
		.dgid = r->dgid,
		.flow_label = r->flow_label,
		.udp_bytes = (uint16_t)bytes,
		.tclass = r->tclass,
		.hop_limit = r->hop_limit,
		.iba = true,
	};

	vb_grh_put(to, &h);
}

static uint32_t head_bytes(const struct vb_route *r)
{
	return VB_LRH_BYTES + (r->ib.global ? VB_GRH_BYTES : 0);
}

/* Write the frame of @len bytes to @to: the headers, the packet of @f with the
 * bytes @bytes, and the ICRC. */
static void link_put_frame(uint8_t *to, uint32_t len,
			   const struct vb_tx_frame *f, const uint8_t *bytes,
			   uint32_t lid)
{
	const struct vb_route *r = f->route;
	uint32_t mask = (1u << (lid >> 16)) - 1;
	const struct vb_lrh h = {
		.sl = r->ib.sl,
		.lnh = r->ib.global ? LNH_GLOBAL : LNH_LOCAL,
		.dlid = r->ib.dlid,
		.slid = (uint16_t)(lid | (r->ib.path_bits & mask)),
		.words = (uint16_t)(len / 4),
	};

	vb_lrh_put(to, &h);
	if (r->ib.global)
		link_put_grh(to + VB_LRH_BYTES, r, f->len + VB_ICRC_BYTES);
	memcpy(to + head_bytes(r), bytes, f->len);
	vb_lrh_put_icrc(to, len);
}

/* Ask the fabric's process to ring when it has made room in the ring of sent
 * frames. False: the ring has room now. */
static bool ib_starve(struct vb_ib *ib) VB_REQUIRES(ib->lock)
{
	if (!vb_shring_starve(&ib->out)) {
		vb_shring_feed(&ib->out);
		return false;
	}
	ib->starving = true;
	return true;
}

/* Put the frame @f into the ring of sent frames. False: the ring has no
 * room. */
static bool link_ib_put(struct vb_ib *ib, const struct vb_tx_frame *f,
			const uint8_t *bytes, uint32_t lid)
	VB_REQUIRES(ib->lock)
{
	uint32_t len = head_bytes(f->route) + f->len + VB_ICRC_BYTES;
	uint8_t *to = vb_shring_begin(&ib->out, len);

	if (!to && !ib->out.broken && !ib_starve(ib))
		to = vb_shring_begin(&ib->out, len);
	if (!to)
		return false;
	link_put_frame(to, len, f, bytes, lid);
	vb_shring_commit(&ib->out, len);
	return true;
}

/* Put frames of @q into the ring of sent frames until it is full. Returns how
 * many frames. */
static unsigned ib_put_all(struct vb_ib *ib, struct vb_txq *q)
	VB_REQUIRES(ib->lock)
{
	uint32_t lid = atomic_load_explicit(&ib->lid, memory_order_relaxed);
	unsigned first = q->first;

	while (q->first < q->count) {
		const struct vb_tx_frame *f = &q->frames[q->first];

		if (!link_ib_put(ib, f, q->bytes + f->at, lid))
			break;
		q->first++;
	}
	if (q->first == q->count && ib->starving) {
		vb_shring_feed(&ib->out);
		ib->starving = false;
	}
	return q->first - first;
}

static void link_ib_drop(struct vb_link *l, struct vb_txq *q)
{
	ib_link_add(&ib_of(l)->tx.lost, q->count - q->first);
	vb_txq_reset(q);
}

static uint64_t ib_sent(const struct vb_link *l)
{
	return vb_shring_published(&ib_of(l)->out);
}

static bool ib_has_carried(const struct vb_link *l, uint64_t position)
{
	const struct vb_ib *ib = ib_of(l);

	return atomic_load_explicit(&ib->ended, memory_order_relaxed) ||
	       vb_shring_has_released(&ib->out, position);
}

static bool ib_send(struct vb_link *l, struct vb_txq *q)
{
	struct vb_ib *ib = ib_of(l);
	bool rings, broken;
	unsigned sent;

	vb_mutex_lock(&ib->lock);
	sent = ib_put_all(ib, q);
	rings = vb_shring_publish(&ib->out);
	broken = ib->out.broken;
	vb_mutex_unlock(&ib->lock);
	if (rings)
		link_ring(ib);
	ib_link_add(&ib->tx.frames, sent);
	ib_link_add(&ib->tx.calls, 1);
	if (broken)
		link_give_up(ib);
	else if (q->first < q->count)
		return false;
	link_ib_drop(l, q);
	return true;
}

/* Functions that receive frames. */

/* Describe the frame of @len bytes at @bytes in *@f. False: an adapter does not
 * accept such a frame. The fabric's process can change the bytes at any time,
 * so this checks and uses a copy of the headers. */
static bool read_frame(struct vb_ib *ib, const uint8_t *bytes, uint32_t len,
		       struct vb_frame *f)
{
	uint8_t copy[VB_LRH_BYTES + VB_GRH_BYTES];
	uint32_t head = VB_LRH_BYTES;
	struct vb_lrh h;

	if (len < VB_LRH_BYTES)
		return false;
	memcpy(copy, bytes, VB_MIN(len, sizeof(copy)));
	vb_lrh_get(copy, &h);
	if (vb_lrh_check(&h, len, 4096) != LRH_GOOD || h.lnh < LNH_LOCAL)
		return false;
	*f = (struct vb_frame){
		.if_ip_id = -1,
		.sl = h.sl,
		.slid = h.slid,
		.dlid = h.dlid,
	};
	if (h.lnh == LNH_GLOBAL) {
		struct vb_grh g;

		if (!vb_grh_get(copy + VB_LRH_BYTES, &g) || !g.iba)
			return false;
		f->src = (const void *)(bytes + VB_LRH_BYTES + 8);
		f->dst = (const void *)(bytes + VB_LRH_BYTES + 24);
		f->tclass = g.tclass;
		f->ttl = g.hop_limit;
		f->flow_label = g.flow_label;
		head += VB_GRH_BYTES;
	}
	f->bytes = bytes + head;
	f->len = len - head - VB_ICRC_BYTES;
	return true;
}

static void take_frame(struct vb_ib *ib, const uint8_t *bytes, uint32_t len,
		       struct vb_rxq *q)
{
	if (!read_frame(ib, bytes, len, &q->frames[q->count])) {
		ib_link_add(&ib->rx.malformed, 1);
	} else if (!vb_lrh_icrc_good(bytes, len)) {
		ib_link_add(&ib->rx.icrc_errors, 1);
	} else {
		q->count++;
		ib_link_add(&ib->rx.bytes, len);
	}
}

static int ib_recv(struct vb_link *l, struct vb_rxq *q)
{
	struct vb_ib *ib = ib_of(l);
	const uint8_t *bytes;
	uint32_t len = 0;

	q->count = 0;
	vb_shring_runs_here(&ib->in);
	/* The caller no longer uses the frames of the last call: give their
	 * room back. */
	if (vb_shring_release(&ib->in))
		link_ring(ib);
	while (q->count < VB_RXQ_FRAMES &&
	       (bytes = vb_shring_next(&ib->in, &len)))
		take_frame(ib, bytes, len, q);
	if (q->count) {
		ib_link_add(&ib->rx.frames, q->count);
		ib_link_add(&ib->rx.calls, 1);
	} else if (len) {
		link_give_up(ib);
	}
	return 0;
}

/* Functions for a thread that sleeps until frames come. */

bool vb_ib_sleep(struct vb_link *l)
{
	return vb_shring_sleep(&ib_of(l)->in);
}

void vb_ib_wake(struct vb_link *l, bool rung)
{
	struct vb_ib *ib = ib_of(l);
	char bells[BELLS];

	vb_shring_wake(&ib->in);
	while (rung && recv(ib->bell, bells, sizeof(bells), MSG_DONTWAIT) ==
			       sizeof(bells))
		;
}

static int ib_fd(const struct vb_link *l)
{
	return ib_of(l)->bell;
}

/* Functions that join and leave multicast groups. */

static struct vb_verbs_group make_request(enum vb_verbs_kind kind,
					  uint16_t mlid)
{
	return (struct vb_verbs_group){
		.head = { .magic = VB_UMAD_MAGIC, .kind = (uint32_t)kind },
		.mlid = mlid,
	};
}

static int ib_join(struct vb_link *l, const struct vb_link_group *group)
{
	const struct vb_verbs_group g = make_request(VERBS_JOIN, group->mlid);
	struct vb_ib *ib = ib_of(l);
	int rc;

	if (!vb_lid_is_mcast(group->mlid))
		return -EINVAL;
	rc = ib->call(ib->control, &g, sizeof(g));
	if (rc > 0)
		return -EPROTO;
	return rc ? rc : group->mlid;
}

/* Leave a group. This does not wait for an answer: a frame that still comes
 * finds no queue pair that is a member. */
static void ib_leave(struct vb_link *l, int member)
{
	const struct vb_verbs_group g =
		make_request(VERBS_LEAVE, (uint16_t)member);

	(void)!vb_fdmail_send(ib_of(l)->control, &g, sizeof(g), NULL, 0,
			      MSG_DONTWAIT);
}

/* Functions that open and close the link. */

bool vb_ib_has_ended(const struct vb_link *l)
{
	return atomic_load(&ib_of(l)->ended);
}

void vb_ib_end(struct vb_link *l)
{
	atomic_store(&ib_of(l)->ended, true);
}

void vb_ib_set_lid(struct vb_link *l, uint16_t lid, uint8_t lmc)
{
	uint32_t base = lid & ~((1u << lmc) - 1);

	atomic_store_explicit(&ib_of(l)->lid, base | (uint32_t)lmc << 16,
			      memory_order_relaxed);
}

bool vb_ib_owns(const struct vb_link *l, uint16_t lid)
{
	uint32_t own =
		atomic_load_explicit(&ib_of(l)->lid, memory_order_relaxed);
	unsigned lmc = own >> 16;

	return (uint16_t)own && lid >> lmc == (uint16_t)own >> lmc;
}

static void ib_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	struct vb_ib *ib = ib_of(l);

	*out = (struct vb_link_stats){
		.tx_frames = atomic_load(&ib->tx.frames),
		.tx_calls = atomic_load(&ib->tx.calls),
		.tx_bytes = atomic_load(&ib->tx.bytes),
		.tx_lost = atomic_load(&ib->tx.lost),
		.rx_frames = atomic_load(&ib->rx.frames),
		.rx_calls = atomic_load(&ib->rx.calls),
		.rx_bytes = atomic_load(&ib->rx.bytes),
		.rx_icrc_errors = atomic_load(&ib->rx.icrc_errors),
		.rx_malformed = atomic_load(&ib->rx.malformed),
	};
}

static void ib_close(struct vb_link *l)
{
	struct vb_ib *ib = ib_of(l);

	close(ib->bell);
	vb_mutex_fini(&ib->lock);
	free(ib);
}

static const struct vb_link_ops ib_ops = {
	.name = "ib",
	.in_flight = IN_FLIGHT,
	.route = ib_route,
	.aim = ib_route,
	.join = ib_join,
	.leave = ib_leave,
	.send = ib_send,
	.sent = ib_sent,
	.has_carried = ib_has_carried,
	.drop = link_ib_drop,
	.recv = ib_recv,
	.fd = ib_fd,
	.stats = ib_stats,
	.close = ib_close,
};

int vb_ib_open(void *own, const void *peer, int bell, int control,
	       int (*call)(int control, const void *bytes, size_t len),
	       struct vb_link **link)
{
	struct vb_ib *ib = calloc(1, sizeof(*ib));

	if (!ib)
		return -ENOMEM;
	ib->link.ops = &ib_ops;
	ib->bell = bell;
	ib->control = control;
	ib->call = call;
	vb_mutex_init(&ib->lock, VB_RANK_LEAF);
	vb_shring_open(&ib->out, &ib->in, own, peer, VB_VERBS_RING);
	*link = &ib->link;
	return 0;
}
