/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of programs: from their rings into the fabric, and from the fabric
 * into their rings. Both directions push back. A program whose frames find no
 * room waits, with nothing lost. A frame whose program has a full ring keeps
 * its place, and its credits, at the adapter; so that a program that is stopped
 * does not block others for ever, its frames are dropped after STALL.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "fabricd/verbs_priv.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"
#include "wire/lrh.h"

#define LOOK_FOR (50 * VB_USEC) /* after its last frame, without a bell */
#define RUN	 32		/* frames of one program before others */
#define STALL	 (250 * VB_MSEC)

#define DETH_SQPN_AT (VB_BTH_BYTES + 5)
#define DETH_BYTES   8

/* --- bells --- */

static void ring(const struct verbs_program *p)
{
	/* If there is no room, bells that it has not heard wait for it. */
	(void)!send(p->bell.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void vb_fabricd_verbs_busy(struct verbs_program *p, vb_time now)
{
	p->busy_until = now + LOOK_FOR;
	if (p->busy.at)
		return;
	vb_shring_wake(&p->from);
	vb_chain_add(&p->f->verbs.busy, &p->busy);
}

/* Nothing has come for long: sleep until the program rings, unless a frame
 * comes just now. */
static void rest_program(struct verbs_program *p)
{
	if (!vb_shring_sleep(&p->from)) {
		vb_shring_wake(&p->from);
		return;
	}
	vb_chain_del(&p->busy);
}

static void take_bells(const struct verbs_program *p)
{
	char bells[64];

	while (recv(p->bell.fd, bells, sizeof(bells), MSG_DONTWAIT) ==
	       sizeof(bells))
		;
}

/* Is there room in its ring again? */
static bool ring_has_room(struct verbs_program *p)
{
	return vb_shring_begin(&p->to, VB_VERBS_FRAME) != NULL;
}

/* Frames wait that @p had no room for: in its port's buffer, and at other
 * programs of the adapter. */
static void resume_sources(struct verbs_program *p, vb_time now)
{
	struct vb_fabricd_verbs_adapter *a = p->adapter;

	for (struct vb_chain *c = a->programs; c; c = c->next) {
		struct verbs_program *o =
			VB_CONTAINER_OF(c, struct verbs_program, link);

		if (o->waits && o->port == p->port) {
			o->waits = false;
			vb_fabricd_verbs_busy(o, now);
		}
	}
	vb_fab_resume(p->f->net, a->node, p->port_no, now);
}

static void end_full(struct verbs_program *p, vb_time now)
{
	if (p->full_at == VB_NEVER)
		return;
	p->full_at = VB_NEVER;
	p->f->verbs.full--;
	vb_shring_feed(&p->to);
	resume_sources(p, now);
}

void vb_fabricd_verbs_bell(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct verbs_program *p =
		VB_CONTAINER_OF(w, struct verbs_program, bell);

	if (!p->client)
		return;
	take_bells(p);
	if (p->full_at != VB_NEVER) {
		/* If others have filled the room by now, ask again. */
		if (ring_has_room(p) || !vb_shring_starve(&p->to))
			end_full(p, now);
	}
	if (!p->waits)
		vb_fabricd_verbs_busy(p, now);
	/* A program that has ended is noticed at its connection. */
	if (events & (uint32_t)~EPOLLIN)
		vb_fabricd_unwatch(p->f, w);
}

/* --- to programs --- */

/* Put a frame into the ring of @p. FAB_HELD: there is no room. */
static enum vb_fab_taken give_frame(struct verbs_program *p,
				    const uint8_t *bytes, size_t len,
				    vb_time now)
{
	uint8_t *to = vb_shring_begin(&p->to, (uint32_t)len);

	/* If there is room by now, the program need not be waited for. */
	if (!to && !p->stalled && !p->to.broken && !vb_shring_starve(&p->to)) {
		vb_shring_feed(&p->to);
		to = vb_shring_begin(&p->to, (uint32_t)len);
	}
	if (to) {
		memcpy(to, bytes, len);
		vb_shring_commit(&p->to, (uint32_t)len);
		p->stalled = false;
		if (vb_shring_publish(&p->to))
			ring(p);
		return FAB_TAKEN;
	}
	if (p->stalled || p->to.broken) {
		p->dropped++;
		return FAB_TAKEN;
	}
	if (p->full_at == VB_NEVER) {
		p->full_at = now;
		p->full_tail = p->to.tail;
		p->f->verbs.full++;
	}
	return FAB_HELD;
}

static bool has_joined(const struct verbs_program *p, uint16_t mlid)
{
	const struct verbs_group *g = p->groups;

	while (g && g->mlid != mlid)
		g = g->next;
	return g;
}

/* Each member gets a copy. One that has no room gets none: the others, and the
 * sender, must not wait for it. */
static void give_group(struct vb_fabricd_verbs_adapter *a,
		       const struct vb_fab_port *port, uint16_t mlid,
		       const uint8_t *bytes, size_t len, vb_time now)
{
	for (struct vb_chain *c = a->programs; c; c = c->next) {
		struct verbs_program *p =
			VB_CONTAINER_OF(c, struct verbs_program, link);

		if (p->port != port || !has_joined(p, mlid))
			continue;
		if (give_frame(p, bytes, len, now) == FAB_HELD)
			p->dropped++;
	}
}

static bool is_own_lid(const struct vb_fab_port *p, uint16_t lid)
{
	return p->lid && lid >> p->lmc == p->lid >> p->lmc;
}

/* Give a frame that came to @port to the program that has its queue pair. */
static enum vb_fab_taken give_owner(struct vb_fabricd_verbs_adapter *a,
				    const struct vb_fab_port *port,
				    const uint8_t *bth, const uint8_t *bytes,
				    size_t len, vb_time now)
{
	uint32_t dqpn = (uint32_t)vb_load_be(bth + 5, 3);
	struct verbs_program *p = a->slot[dqpn >> VB_QPN_BITS];

	if (!p || p->port != port)
		return FAB_TAKEN;
	return give_frame(p, bytes, len, now);
}

/* May a frame with this BTH go to @dlid? A group has datagrams only, which are
 * for no single queue pair. */
static bool fits_dlid(uint16_t dlid, const uint8_t *bth)
{
	return !vb_lid_is_mcast(dlid) ||
	       vb_load_be(bth + 5, 3) == VB_QPN_MULTICAST;
}

enum vb_fab_taken vb_fabricd_verbs_hear(struct vb_fabricd *f,
					const struct vb_fab_node *node,
					uint8_t port, const uint8_t *bytes,
					size_t len, vb_time now)
{
	struct vb_fabricd_verbs_adapter *a = vb_fabricd_verbs_adapter(f, node);
	const struct vb_fab_port *p = &node->port[port];
	const uint8_t *bth;
	struct vb_lrh h;

	vb_lrh_get(bytes, &h);
	bth = vb_lrh_bth(bytes, &h);
	if (!a || !bth || h.vl == VB_VL_MGMT)
		return FAB_TAKEN;
	if (!fits_dlid(h.dlid, bth))
		return FAB_TAKEN;
	if (h.dlid >= VB_LID_MCAST) {
		give_group(a, p, h.dlid, bytes, len, now);
		return FAB_TAKEN;
	}
	if (!is_own_lid(p, h.dlid))
		return FAB_TAKEN;
	return give_owner(a, p, bth, bytes, len, now);
}

/* --- from programs --- */

static bool has_pkey(const struct vb_fab_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < p->pkeys; i++)
		if (p->pkey[i] == pkey && (pkey & 0x7fff))
			return true;
	return false;
}

/* Is @gid one of the port's? */
static bool is_own_gid(const struct vb_fab_port *p, const struct vb_gid *gid)
{
	uint64_t guid = vb_load_be(gid->raw + 8, 8);

	if (vb_load_be(gid->raw, 8) != p->gid_prefix || !guid)
		return false;
	for (unsigned i = 0; i < p->guid_cap; i++)
		if (p->guids[i] == guid)
			return true;
	return false;
}

/* The GRH says whose the frame is, and how long, as the LRH does. */
static bool has_good_grh(const struct vb_fab_port *p, const uint8_t *bytes,
			 size_t len)
{
	struct vb_grh g;

	return vb_grh_get(bytes + VB_LRH_BYTES, &g) && g.iba &&
	       g.udp_bytes == len - VB_LRH_BYTES - VB_GRH_BYTES &&
	       is_own_gid(p, &g.sgid);
}

/* May @p send this frame? A program chooses where a frame goes, but neither
 * whose it is nor its partition: source LID, source GID, P_Key, and a
 * datagram's source queue pair must be its own. Management's queue pairs get
 * nothing from it. */
static bool may_program_send(const struct verbs_program *p,
			     const uint8_t *bytes, size_t len, struct vb_lrh *h)
{
	const struct vb_fab_port *port = p->port;
	const uint8_t *bth;

	vb_lrh_get(bytes, h);
	if (vb_lrh_check(h, len, vb_fab_mtu_bytes(port->mtu_cap)) != LRH_GOOD ||
	    !is_own_lid(port, h->slid) || h->dlid == 0 ||
	    h->dlid == VB_LID_PERMISSIVE)
		return false;
	bth = vb_lrh_bth(bytes, h);
	if (!bth || vb_load_be(bth + 5, 3) <= 1 ||
	    !has_pkey(port, (uint16_t)vb_load_be(bth + 2, 2)) ||
	    !fits_dlid(h->dlid, bth))
		return false;
	if (h->lnh == LNH_GLOBAL && !has_good_grh(port, bytes, len))
		return false;
	if (bth[0] >> 5 != CLASS_UD)
		return true;
	return bth + VB_BTH_BYTES + DETH_BYTES + VB_ICRC_BYTES <= bytes + len &&
	       vb_load_be(bth + DETH_SQPN_AT, 3) >> VB_QPN_BITS == p->slot;
}

/* The switch does not return what leaves by the port where it came from, so
 * frames to the port's own LIDs do not enter the fabric. False: no room. */
static bool send_home(struct verbs_program *p, const struct vb_lrh *h,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	return give_owner(p->adapter, p->port, vb_lrh_bth(bytes, h), bytes, len,
			  now) == FAB_TAKEN;
}

/* False: the frame must wait. */
static bool send_away(struct verbs_program *p, const struct vb_lrh *h,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	int rc = vb_fab_send(p->f->net, p->adapter->node, p->port_no, bytes,
			     len, now);

	if (rc == -EAGAIN)
		return false;
	/* Members on this adapter get what others send them by its own port
	 * from here. */
	if (rc == 0 && h->dlid >= VB_LID_MCAST)
		give_group(p->adapter, p->port, h->dlid, bytes, len, now);
	return true;
}

/* Send one frame, of which the program may change the bytes at any time. False:
 * it must wait. */
static bool forward_frame(struct verbs_program *p, const uint8_t *shared,
			  uint32_t len, vb_time now)
{
	static uint8_t bytes[VB_VERBS_FRAME]; /* one thread */
	struct vb_lrh h;

	if (len > sizeof(bytes) || len < VB_LRH_BYTES) {
		p->refused++;
		return true;
	}
	memcpy(bytes, shared, len);
	vb_lrh_set_vl(bytes, 0);
	if (!may_program_send(p, bytes, len, &h)) {
		p->refused++;
		return true;
	}
	if (p->port->state != FAB_ACTIVE)
		return true;
	return is_own_lid(p->port, h.dlid) ? send_home(p, &h, bytes, len, now)
					   : send_away(p, &h, bytes, len, now);
}

/* True: the program has sent something. */
static bool take_frames(struct verbs_program *p, vb_time now)
{
	unsigned count = 0;

	while (count < RUN) {
		uint32_t len;
		const uint8_t *bytes = vb_shring_next(&p->from, &len);

		if (!bytes) {
			if (len)
				vb_fabricd_expel(p->client);
			break;
		}
		if (!forward_frame(p, bytes, len, now)) {
			vb_shring_unget(&p->from, bytes);
			p->waits = true;
			break;
		}
		count++;
	}
	if (count && vb_shring_release(&p->from))
		ring(p);
	return count;
}

void vb_fabricd_verbs_last(struct verbs_program *p, vb_time now)
{
	const uint32_t most = VB_VERBS_RING / VB_SHRING_ALIGN;

	for (uint32_t i = 0; p->bell.fd >= 0 && i < most / RUN; i++)
		if (p->waits || !take_frames(p, now))
			break;
	p->stalled = true; /* nobody takes what is for it */
	/* end_full() makes programs of the adapter busy again, and must not
	 * find @p among them: @p is freed soon. */
	vb_chain_del(&p->link);
	p->waits = false;
	end_full(p, now);
	if (p->busy.at)
		vb_chain_del(&p->busy);
}

/* Serve a program that was busy lately. True: it has sent something. */
static bool serve_program(struct verbs_program *p, vb_time now)
{
	if (take_frames(p, now)) {
		p->busy_until = now + LOOK_FOR;
		if (p->waits)
			vb_chain_del(&p->busy);
		return true;
	}
	if (p->waits)
		vb_chain_del(&p->busy);
	else if (now >= p->busy_until)
		rest_program(p);
	return false;
}

/* --- time --- */

/* A program that has room again, or that has read nothing for too long. */
static void look_at_full(struct verbs_program *p, vb_time now)
{
	if (p->full_at == VB_NEVER)
		return;
	if (ring_has_room(p)) {
		end_full(p, now);
	} else if (p->to.tail != p->full_tail) {
		/* It reads, and others fill the room that it makes. */
		p->full_at = now;
		p->full_tail = p->to.tail;
	} else if (now - p->full_at >= STALL) {
		p->stalled = true;
		end_full(p, now);
	}
}

static void look_at_all_full(struct vb_fabricd *f, vb_time now)
{
	for (uint32_t i = 0; i < f->verbs.adapters; i++) {
		struct vb_fabricd_verbs_adapter *a = f->verbs.adapter[i];

		for (struct vb_chain *c = a ? a->programs : NULL; c;
		     c = c->next)
			look_at_full(
				VB_CONTAINER_OF(c, struct verbs_program, link),
				now);
	}
}

bool vb_fabricd_verbs_run(struct vb_fabricd *f, vb_time now)
{
	struct vb_chain *c, *next;
	bool some = false;

	if (f->verbs.gone)
		vb_fabricd_verbs_reap(f);
	c = f->verbs.busy;
	for (; c; c = next) {
		next = c->next;
		some |= serve_program(
			VB_CONTAINER_OF(c, struct verbs_program, busy), now);
	}
	if (f->verbs.full && now >= f->verbs.look_at) {
		look_at_all_full(f, now);
		f->verbs.look_at = now + STALL / 8;
	}
	return some;
}

bool vb_fabricd_verbs_rest(struct vb_fabricd *f)
{
	struct vb_chain *c, *next;

	for (c = f->verbs.busy; c; c = next) {
		next = c->next;
		rest_program(VB_CONTAINER_OF(c, struct verbs_program, busy));
	}
	return f->verbs.busy;
}

vb_time vb_fabricd_verbs_next(const struct vb_fabricd *f)
{
	return f->verbs.full ? f->verbs.look_at : VB_NEVER;
}

void vb_fabricd_verbs_room(struct vb_fabricd *f, const struct vb_fab_node *node,
			   uint8_t port, vb_time now)
{
	struct vb_fabricd_verbs_adapter *a = vb_fabricd_verbs_adapter(f, node);

	for (struct vb_chain *c = a ? a->programs : NULL; c; c = c->next) {
		struct verbs_program *p =
			VB_CONTAINER_OF(c, struct verbs_program, link);

		if (!p->waits || p->port_no != port)
			continue;
		p->waits = false;
		vb_fabricd_verbs_busy(p, now);
	}
}
