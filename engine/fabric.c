/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters of InfiniBand fabrics. For each adapter this process attaches to the
 * fabric's process, which gives it a link and a slot and tells it how the port
 * changes. This file checks everything that the fabric's process says.
 */
#include "core/lock_order.h"
#include "engine/engine_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/shm.h"
#include "base/shring.h"
#include "engine/fabric_path.h"
#include "link/ib.h"
#include "wire/verbs_ipc.h"

#define RING_BYTES VB_SHRING_BYTES(VB_VERBS_RING)
/* The range of PortInfo's MTU codes, and the largest LMC. */
#define MTU_MIN 1
#define MTU_MAX 5
#define LMC_MAX 7
/* the highest LID of a single port; higher ones are those of groups (IBA
 * 4.1.1) */
#define LID_MAX 0xbfff
/* The range of PortPhysicalState, the largest VLCap, and the largest bit of
 * LinkWidthActive (2x). */
#define PHYS_MIN   1
#define PHYS_MAX   7
#define VL_CAP_MAX 5
#define WIDTH_MAX  16

/* An open adapter's port in a fabric. */
struct vb_fabric {
	/* next in e->fabrics; changed with both rx and fabric_lock held */
	struct vb_fabric *next;
	struct vb_open_adapter *oa;
	struct vb_port *port;		     /* the port of @oa */
	const struct vb_fabric_place *place; /* of @port */
	struct vb_link *link;
	unsigned slot;
	/* the connection to the fabric's process; -1: there is none */
	int control;
	/* The fabric's process has ended. Changed with both list_lock and
	 * fabric_lock held. */
	bool ended;
	void *own, *theirs;
};

/* --- the port --- */

/* True if @width is one bit of LinkWidthActive, or 0, which means that the port
 * has no link. */
static bool width_is_sane(uint8_t width)
{
	return (width & (width - 1)) == 0 && width <= WIDTH_MAX;
}

static bool port_is_sane(const struct vb_verbs_port *p)
{
	return p->state >= PORT_DOWN && p->state <= PORT_ACTIVE &&
	       p->phys >= PHYS_MIN && p->phys <= PHYS_MAX &&
	       width_is_sane(p->width) && p->vl_cap >= 1 &&
	       p->vl_cap <= VL_CAP_MAX && p->lid <= LID_MAX &&
	       p->sm_lid <= LID_MAX && p->lmc <= LMC_MAX && p->mtu >= MTU_MIN &&
	       p->mtu <= MTU_MAX && p->mtu_cap >= MTU_MIN &&
	       p->mtu_cap <= MTU_MAX && p->sm_sl <= 15 &&
	       p->pkeys <= VB_VERBS_PKEYS && p->guids <= VB_VERBS_GUIDS &&
	       p->slot > 0 && p->slot < VB_SLOTS;
}

static struct vb_gid port_gid_of(uint64_t prefix, uint64_t guid)
{
	struct vb_gid gid = { { 0 } };

	if (guid) {
		vb_store_be(gid.raw, prefix, 8);
		vb_store_be(gid.raw + 8, guid, 8);
	}
	return gid;
}

_Static_assert(VB_VERBS_PKEYS == VB_MAX_PKEYS, "one table of P_Keys");

static void read_port(const struct vb_verbs_port *p,
		      struct vb_port_ib_update *update)
{
	*update = (struct vb_port_ib_update){
		.state = (enum vb_port_state)p->state,
		.active_mtu = p->mtu,
		.max_mtu = p->mtu_cap,
		.pkeys = p->pkeys,
		.gids = p->guids,
		.ib = { .present = true,
			.phys = p->phys,
			.lmc = p->lmc,
			.sm_sl = p->sm_sl,
			.vls = p->vl_cap,
			.init_type = p->init_type,
			.subnet_timeout = p->subnet_timeout,
			.width = p->width,
			.speed = p->speed,
			.lid = p->lid,
			.sm_lid = p->sm_lid,
			.gid_room = p->guids,
			.pkey_violations = p->pkey_violations,
			.qkey_violations = p->qkey_violations,
			.caps = p->cap_mask,
			.reregisters = p->reregisters },
	};
	memcpy(update->pkey, p->pkey, p->pkeys * sizeof(*p->pkey));
	for (unsigned i = 0; i < p->guids; i++)
		update->gid[i] = port_gid_of(p->gid_prefix, p->guid[i]);
}

/* Update the adapter's port by what the fabric's process tells. Returns what
 * has changed, bits of enum vb_port_change. */
static unsigned apply_port(struct vb_fabric *f, const struct vb_verbs_port *p)
{
	struct vb_port_ib_update update;

	read_port(p, &update);
	vb_ib_set_lid(f->link, p->lid, p->lmc);
	return vb_port_ib_update(f->port, &update);
}

/* Fail an adapter whose fabric's process has ended: its port stays down, and
 * its requests fail, since no frame will come. The bell and the connection
 * would stay readable for ever, so they are no longer polled. */
static void lose_fabric(struct vb_engine *e, struct vb_fabric *f)
	VB_REQUIRES(e->list_lock)
{
	vb_log(LOG_WARN, "%s, port %u: its fabric has ended",
	       f->oa->device.name, f->port->number);
	(void)epoll_ctl(e->control_fd, EPOLL_CTL_DEL, f->control, NULL);
	(void)epoll_ctl(atomic_load(&e->fabric_fd), EPOLL_CTL_DEL,
			f->link->ops->fd(f->link), NULL);
	vb_mutex_lock(&e->fabric_lock);
	f->ended = true;
	vb_mutex_unlock(&e->fabric_lock);
	vb_ib_end(f->link);
	vb_ports_tell(f->oa, f->port, vb_port_ib_end(f->port));
	vb_port_walk(e, &f->oa->adapter, FABRIC_HAS_ENDED, vb_now());
}

/* Read one message of the fabric's process and apply it. False: no message has
 * come, or none will come any more. */
static bool take_fabric_update(struct vb_engine *e, struct vb_fabric *f)
	VB_REQUIRES(e->list_lock)
{
	struct vb_verbs_port p;
	unsigned none = 0, changes;
	ssize_t n = vb_fdmail_recv(f->control, &p, sizeof(p), NULL, &none,
				   MSG_DONTWAIT);

	if (n == -EAGAIN)
		return false;
	if (n != sizeof(p) || p.head.magic != VB_UMAD_MAGIC ||
	    p.head.kind != VERBS_PORT || !port_is_sane(&p)) {
		lose_fabric(e, f);
		return false;
	}
	changes = apply_port(f, &p);
	if (changes & (PORT_UP | PORT_WENT_DOWN | PORT_LID | PORT_PKEYS))
		vb_port_walk(e, &f->oa->adapter, PORT_HAS_CHANGED, vb_now());
	vb_ports_tell(f->oa, f->port, changes);
	return true;
}

void vb_fabric_take_updates(struct vb_engine *e)
{
	vb_mutex_lock(&e->list_lock);
	for (struct vb_fabric *f = e->fabrics; f; f = f->next)
		while (!f->ended && take_fabric_update(e, f))
			;
	vb_mutex_unlock(&e->list_lock);
}

/* --- frames --- */

bool vb_fabric_drain(struct vb_engine *e)
{
	bool found = false;

	for (struct vb_fabric *f = e->fabrics; f; f = f->next) {
		if (f->link->ops->recv(f->link, &e->rxq) < 0 ||
		    e->rxq.count == 0)
			continue;
		found = true;
		/* Read the clock again for each link, since handling the frames
		 * of the last link took time. */
		vb_dispatch_from(e, f->link, f->slot, vb_now());
	}
	return found;
}

bool vb_fabric_sleep(struct vb_engine *e)
{
	bool sleeps = true;

	vb_mutex_lock(&e->fabric_lock);
	for (struct vb_fabric *f = e->fabrics; f; f = f->next)
		sleeps &= f->ended || vb_ib_sleep(f->link);
	vb_mutex_unlock(&e->fabric_lock);
	return sleeps;
}

void vb_fabric_wake(struct vb_engine *e, bool rung)
{
	vb_mutex_lock(&e->fabric_lock);
	for (struct vb_fabric *f = e->fabrics; f; f = f->next)
		if (!f->ended)
			vb_ib_wake(f->link, rung);
	vb_mutex_unlock(&e->fabric_lock);
}

/* --- life --- */

static int watch_fd(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Make the two epoll descriptors that the engine thread polls for all fabrics:
 * one for bells, one for connections. */
static int open_polls(struct vb_engine *e)
{
	int frames, control;

	if (atomic_load(&e->fabric_fd) >= 0)
		return 0;
	frames = epoll_create1(EPOLL_CLOEXEC);
	if (frames < 0)
		return -errno;
	control = epoll_create1(EPOLL_CLOEXEC);
	if (control < 0) {
		close(frames);
		return -errno;
	}
	e->control_fd = control;
	/* Release order: a thread that sees fabric_fd also sees control_fd. */
	atomic_store(&e->fabric_fd, frames);
	return 0;
}

static int map_rings(struct vb_fabric *f, const int fds[VERBS_FDS])
{
	int rc = vb_shm_map(fds[VERBS_FD_PROGRAM], RING_BYTES, true, &f->own);

	if (rc == 0)
		rc = vb_shm_map(fds[VERBS_FD_FABRIC], RING_BYTES, false,
				&f->theirs);
	return rc;
}

/* Map the rings and open the adapter's link, which then owns the bell. */
static int make_link(struct vb_fabric *f, int fds[VERBS_FDS])
{
	int rc = map_rings(f, fds);

	if (rc == 0)
		rc = vb_ib_open(f->own, f->theirs, fds[VERBS_FD_BELL],
				f->control, vb_fabric_call, &f->link);
	if (rc == 0) {
		vb_fork_closes(fds[VERBS_FD_BELL]);
		fds[VERBS_FD_BELL] = -1;
	}
	return rc;
}

/* Attach, with the slot @slot; 0: any. -EADDRINUSE: another program of the
 * adapter has it. */
static int attach_with(struct vb_fabric *f, unsigned slot,
		       struct vb_verbs_port *p)
{
	const struct vb_fabric_place *place = f->place;
	struct vb_umad_where w =
		vb_fabric_where(VERBS_ATTACH, place, place->port);
	int fds[VERBS_FDS] = { -1, -1, -1 };
	unsigned count = VERBS_FDS;
	int rc;

	w.slot = (uint16_t)slot;
	f->control = vb_fabric_reach(place);
	if (f->control < 0)
		return f->control;
	vb_fork_closes(f->control);
	rc = vb_fabric_ask(f->control, &w, p, sizeof(*p), fds, &count);
	if (rc == 0 && (count != VERBS_FDS || !port_is_sane(p)))
		rc = -EPROTO;
	if (rc == 0)
		rc = make_link(f, fds);
	for (unsigned i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

/* Programs of this host find each other by the upper bits of queue pair
 * numbers, so the slot at the adapter should be this process's slot of the
 * host. A program of another network namespace, where slots are others, may
 * have that one at the adapter. Then this process gets another one there, and
 * programs of this host send it packets. */
static int attach_to_fabric(struct vb_fabric *f, unsigned slot,
			    struct vb_verbs_port *p)
{
	int rc = attach_with(f, slot, p);

	if (rc != -EADDRINUSE)
		return rc;
	if (f->oa->adapter.port_count > 1) {
		vb_log(LOG_ERROR,
		       "%s: port %u: another program of node %s has slot %u, and the ports of this adapter must have the same slot; take a node that no other network namespace uses",
		       f->oa->device.name, f->port->number, f->place->node,
		       slot);
		return rc;
	}
	close(f->control);
	vb_log(LOG_INFO,
	       "%s: a program of another host has slot %u, so programs of this host get packets",
	       f->oa->device.name, slot);
	return attach_with(f, 0, p);
}

static void free_fabric(struct vb_fabric *f)
{
	if (f->link)
		f->link->ops->close(f->link);
	if (f->control >= 0)
		close(f->control);
	if (f->own)
		vb_shm_unmap(f->own, RING_BYTES);
	if (f->theirs)
		vb_shm_unmap(f->theirs, RING_BYTES);
	free(f);
}

/* Take a port of @oa off the list. NULL: there is none any more. Every call
 * takes rx, also for an adapter without a fabric: a thread that holds rx may
 * have found a queue pair of @oa before the program destroyed it, and still
 * read its port (engine/dispatch.c). */
static struct vb_fabric *take_fabric(struct vb_engine *e,
				     const struct vb_open_adapter *oa)
{
	struct vb_fabric **at = &e->fabrics, *f;

	vb_mutex_lock(&e->rx);
	vb_mutex_lock(&e->fabric_lock);
	while (*at && (*at)->oa != oa)
		at = &(*at)->next;
	f = *at;
	if (f)
		*at = f->next;
	vb_mutex_unlock(&e->fabric_lock);
	vb_mutex_unlock(&e->rx);
	return f;
}

static void enter_fabric(struct vb_engine *e, struct vb_fabric *f)
{
	vb_mutex_lock(&e->rx);
	vb_mutex_lock(&e->fabric_lock);
	f->next = e->fabrics;
	e->fabrics = f;
	vb_mutex_unlock(&e->fabric_lock);
	vb_mutex_unlock(&e->rx);
	vb_engine_wake(e);
}

/* Is @f the adapter's first port in a fabric? */
static bool is_first_place(const struct vb_fabric *f)
{
	const struct vb_device *d = &f->oa->device;
	unsigned i = 0;

	while (d->port[i].kind != DEVICE_IB)
		i++;
	return i + 1u == f->port->number;
}

/* Returns the slot that the port should have. All ports of an adapter have one
 * slot, because a queue pair has its number before it has a port. 0: any. */
static unsigned wanted_slot(struct vb_engine *e, const struct vb_fabric *f)
{
	const struct vb_open_adapter *oa = f->oa;
	int slot;

	for (unsigned i = 0; i < oa->device.port_count; i++)
		if (oa->device.port[i].kind != DEVICE_IB)
			return e->lease.slot;
	if (!is_first_place(f))
		return oa->adapter.qpn_base >> VB_QPN_BITS;
	slot = vb_host_slot(e);
	return slot < 0 ? 0 : (unsigned)slot;
}

/* Set what the adapter has from its first place. */
static void become_node(struct vb_adapter *a, const struct vb_verbs_port *p)
{
	a->guid = p->node_guid;
	a->sys_guid = p->sys_guid;
	a->vendor_id = p->vendor_id;
	a->device_id = p->device_id;
	a->revision = p->revision;
}

/* Set what the adapter and its port have from the fabric. */
static void become_place(struct vb_engine *e, struct vb_fabric *f,
			 const struct vb_verbs_port *p)
{
	struct vb_adapter *a = &f->oa->adapter;
	bool found = vb_host_slot_is_own(e, p->slot);

	f->slot = p->slot;
	(void)apply_port(f, p);
	f->port->link = f->link;
	f->port->addressing = &vb_addressing_ib;
	/* the ports of a node have different numbers */
	f->port->place = p->place + f->place->port;
	a->qpn_base = p->slot << VB_QPN_BITS;
	a->host_slot = found ? p->slot : 0;
	if (is_first_place(f))
		become_node(a, p);
	if (!found)
		a->forward_ops = NULL;
}

int vb_fabric_open(struct vb_engine *e, struct vb_open_adapter *oa, unsigned i)
{
	struct vb_fabric *f = calloc(1, sizeof(*f));
	struct vb_verbs_port p;
	int rc;

	if (!f)
		return -ENOMEM;
	f->oa = oa;
	f->port = &oa->adapter.ports[i];
	f->place = &oa->device.port[i].place;
	f->control = -1;
	rc = open_polls(e);
	if (rc == 0)
		rc = attach_to_fabric(f, wanted_slot(e, f), &p);
	if (rc == 0)
		rc = watch_fd(e->control_fd, f->control);
	if (rc == 0)
		rc = watch_fd(atomic_load(&e->fabric_fd),
			      f->link->ops->fd(f->link));
	if (rc) {
		vb_log(LOG_ERROR,
		       "device %s: no place in the fabric \"%s\": %s",
		       oa->device.name, f->place->fabric, strerror(-rc));
		free_fabric(f);
		return rc;
	}
	become_place(e, f, &p);
	enter_fabric(e, f);
	return 0;
}

void vb_fabric_close(struct vb_engine *e, const struct vb_open_adapter *oa)
{
	struct vb_fabric *f;

	while ((f = take_fabric(e, oa)))
		free_fabric(f);
}
