/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves frames from the rings of programs into the fabric, and from the fabric
 * into the rings of programs. If the fabric has no room, a program's frames
 * wait in its ring. If the ring of a program is full, a frame for it stays in
 * the adapter's buffer and keeps its credits; but after STALL its frames are
 * dropped, so that a program that is stopped does not block others for ever.
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

/* how long after a program's last frame this process looks at its ring without
 * waiting for its bell */
#define LOOK_FOR (50 * VB_USEC)
/* most frames of one program that are sent before other programs have their
 * turn */
#define RUN   32
#define STALL (250 * VB_MSEC)
/* This process rings a program that sleeps when the program has got BELL_FRAMES
 * frames, or BELL_AFTER after the first one, or when this process has nothing
 * else to do. The kernel mostly gives the processor to a program that is rung,
 * and takes it back when the program has read its frames. With a bell for each
 * frame the two switched 5,000 to 26,000 times a GB, and now 2,000 to 5,000
 * times. */
#define BELL_FRAMES 64
#define BELL_AFTER  (50 * VB_USEC)
/* Once in so many reports of the watch this process reads the bells. The socket
 * has room for some hundreds. */
#define BELLS_HEARD 16

#define DETH_SQPN_AT (VB_BTH_BYTES + 5)
#define DETH_BYTES   8

/* --- bells --- */

static void ring(const struct verbs_program *p)
{
	/* If the socket has no room, the program has bells to read and will
	 * look at its ring. */
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

/* No frame has come for LOOK_FOR: ask the program to ring, and take it off the
 * list of busy programs, unless a frame comes just now. */
static void rest_program(struct verbs_program *p)
{
	if (!vb_shring_sleep(&p->from)) {
		vb_shring_wake(&p->from);
		return;
	}
	vb_chain_del(&p->busy);
}

/* Read bells, so that the socket has room for others. The watch of the socket
 * reports each new bell even if others were not read (EPOLLET), so this process
 * reads them only now and then. */
static void take_bells(const struct verbs_program *p)
{
	char bells[64];

	while (recv(p->bell.fd, bells, sizeof(bells), MSG_DONTWAIT) ==
	       sizeof(bells))
		;
}

/* True if the ring of received frames of @p has room for any frame. */
static bool ring_has_room(struct verbs_program *p)
{
	return vb_shring_begin(&p->to, VB_VERBS_FRAME) != NULL;
}

/* The ring of @p has room again: take the frames that waited for it from the
 * port's buffer and from programs of the same adapter. */
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
	if (++p->bells % BELLS_HEARD == 0)
		take_bells(p);
	if (p->full_at != VB_NEVER) {
		/* If other frames have filled the room by now, ask again for a
		 * bell. */
		if (ring_has_room(p) || !vb_shring_starve(&p->to))
			end_full(p, now);
	}
	if (!p->waits)
		vb_fabricd_verbs_busy(p, now);
	/* The other end of the bell is closed. The program's end is noticed at
	 * its connection, so stop watching the bell. */
	if (events & (uint32_t)~EPOLLIN)
		vb_fabricd_unwatch(p->f, w);
}

/* --- to programs --- */

/* The program @p, which is awake, has got a frame. If it answers soon, this
 * process finds the answer in the ring, and the program need not ring. */
static void await_answer(struct verbs_program *p, vb_time now)
{
	struct verbs_state *v = &p->f->verbs;

	v->given = p;
	vb_looks_gave(&v->looks, now);
	if (v->looks.waits && !p->waits)
		vb_fabricd_verbs_busy(p, now);
}

/* The program @p sleeps, and gets a frame: note that it must be rung soon. */
static void owe_bell(struct verbs_program *p, vb_time now)
{
	if (p->owed.at)
		return;
	p->owed_since = now;
	p->owed_frames = 0;
	vb_chain_add(&p->f->verbs.owed, &p->owed);
}

void vb_fabricd_verbs_ring(struct vb_fabricd *f, bool idle, vb_time now)
{
	struct vb_chain *c, *next;

	for (c = f->verbs.owed; c; c = next) {
		struct verbs_program *p =
			VB_CONTAINER_OF(c, struct verbs_program, owed);

		next = c->next;
		if (!idle && p->owed_frames < BELL_FRAMES &&
		    now - p->owed_since < BELL_AFTER)
			continue;
		vb_chain_del(c);
		ring(p);
	}
}

/* Let @p see the frame that was put into its ring. */
static void show_frame(struct verbs_program *p, vb_time now)
{
	if (vb_shring_publish(&p->to))
		owe_bell(p, now);
	else if (!p->owed.at)
		await_answer(p, now);
	p->owed_frames++;
}

/* Put a frame into the ring of @p. FAB_HELD: the ring has no room, and the
 * frame must wait; FAB_TAKEN: it is in the ring, or was dropped. */
static enum vb_fab_taken give_frame(struct verbs_program *p,
				    const uint8_t *bytes, size_t len,
				    vb_time now)
{
	uint8_t *to = vb_shring_begin(&p->to, (uint32_t)len);

	/* vb_shring_starve() asks the program to ring when it makes room. If
	 * the ring has room already, this need not wait for that. */
	if (!to && !p->stalled && !p->to.broken && !vb_shring_starve(&p->to)) {
		vb_shring_feed(&p->to);
		to = vb_shring_begin(&p->to, (uint32_t)len);
	}
	if (to) {
		memcpy(to, bytes, len);
		vb_shring_commit(&p->to, (uint32_t)len);
		p->stalled = false;
		show_frame(p, now);
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

/* Give a copy of a frame to each program that is a member of the group @mlid. A
 * member whose ring is full gets no copy: other members, and the sender, must
 * not wait for it. */
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

/* Give a frame that came to @port to the program that has its queue pair. A
 * frame for a queue pair that nobody has is dropped. FAB_HELD: the program's
 * ring has no room. */
static enum vb_fab_taken give_owner(struct vb_fabricd_verbs_adapter *a,
				    const struct vb_fab_port *port,
				    const uint8_t *bth, const uint8_t *bytes,
				    size_t len, vb_time now)
{
	uint32_t dqpn = (uint32_t)vb_load_be(bth + 5, 3);
	/* port 0 is a switch's, and has no programs */
	size_t number = (size_t)(port - a->node->port);
	struct verbs_program *p = a->slot[number - 1][dqpn >> VB_QPN_BITS];

	if (!p)
		return FAB_TAKEN;
	return give_frame(p, bytes, len, now);
}

/* True if a frame with this BTH may go to @dlid. Only datagrams go to a group,
 * and their destination is no single queue pair. */
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

/* True if @gid is one of the port's GIDs. */
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

/* True if the frame's GRH has a GID of the port as its source, and a length
 * that agrees with that of the LRH. */
static bool has_good_grh(const struct vb_fab_port *p, const uint8_t *bytes,
			 size_t len)
{
	struct vb_grh g;

	return vb_grh_get(bytes + VB_LRH_BYTES, &g) && g.iba &&
	       g.udp_bytes == len - VB_LRH_BYTES - VB_GRH_BYTES &&
	       is_own_gid(p, &g.sgid);
}

/* True if @p may send this frame; sets *@h to its LRH. A program chooses where
 * a frame goes, but source LID, source GID, P_Key, and the source queue pair of
 * a datagram must be its own. It cannot send to the queue pairs of
 * management. */
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

/* Give a frame to a queue pair at the sender's own port, which does not enter
 * the fabric: a switch drops a frame that would leave by the port where it came
 * in. False: the receiver's ring has no room, and the frame must wait. */
static bool send_home(struct verbs_program *p, const struct vb_lrh *h,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	return give_owner(p->adapter, p->port, vb_lrh_bth(bytes, h), bytes, len,
			  now) == FAB_TAKEN;
}

/* Send a frame into the fabric. False: the port's lane has no room, and the
 * frame must wait. */
static bool send_away(struct verbs_program *p, const struct vb_lrh *h,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	int rc = vb_fab_send(p->f->net, p->adapter->node, p->port_no, bytes,
			     len, now);

	if (rc == -EAGAIN)
		return false;
	/* The fabric does not return the frame to the port that sent it. So
	 * group members at this port get their copies here. */
	if (rc == 0 && h->dlid >= VB_LID_MCAST)
		give_group(p->adapter, p->port, h->dlid, bytes, len, now);
	return true;
}

/* Send one frame from the ring of @p. The program may change its bytes at any
 * time, so they are copied first. False: there is no room for it, and it must
 * wait. */
static bool forward_frame(struct verbs_program *p, const uint8_t *shared,
			  uint32_t len, vb_time now)
{
	/* static, because the process has only one thread */
	static uint8_t bytes[VB_VERBS_FRAME];
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

/* Send up to RUN frames from the ring of @p. True: at least one was sent. */
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
	p->stalled = true; /* frames for @p are dropped from now on */
	/* end_full() makes waiting programs of the adapter busy again. It must
	 * not find @p among them, because @p is freed soon. */
	vb_chain_del(&p->link);
	p->waits = false;
	end_full(p, now);
	if (p->busy.at)
		vb_chain_del(&p->busy);
	if (p->owed.at)
		vb_chain_del(&p->owed);
	if (p->f->verbs.given == p)
		p->f->verbs.given = NULL;
}

/* Send the frames of a program that was busy lately, and take it off the list
 * of busy programs if its frames must wait or if it has sent none for LOOK_FOR.
 * True: it has sent something. */
static bool serve_program(struct verbs_program *p, vb_time now)
{
	if (take_frames(p, now)) {
		if (p == p->f->verbs.given)
			vb_looks_answered(&p->f->verbs.looks);
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

/* If the ring of @p was full and now has room, let frames into it again. If @p
 * has read nothing for STALL, drop the frames for it from now on. */
static void look_at_full(struct verbs_program *p, vb_time now)
{
	if (p->full_at == VB_NEVER)
		return;
	if (ring_has_room(p)) {
		end_full(p, now);
	} else if (p->to.tail != p->full_tail) {
		/* The program reads, and other frames fill the room that it
		 * makes. */
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

bool vb_fabricd_verbs_share(const struct vb_fabricd *f, int processor)
{
	for (const struct vb_chain *c = f->verbs.busy; c; c = c->next)
		if (vb_shring_peer_runs_on(
			    &VB_CONTAINER_OF(c, struct verbs_program, busy)
				     ->from,
			    processor))
			return true;
	return false;
}

bool vb_fabricd_verbs_await(struct vb_fabricd *f, int processor, vb_time now)
{
	const struct verbs_program *p = f->verbs.given;

	return p &&
	       vb_looks_on(&f->verbs.looks,
			   !vb_shring_peer_runs_on(&p->from, processor), now);
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
