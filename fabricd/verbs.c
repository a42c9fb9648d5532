/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How programs attach to an adapter for verbs. A program gets a range of queue
 * pair numbers (a slot) and two rings of frames, and is told when the port
 * changes. Queue pairs 0 and 1 belong to management.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/shm.h"
#include "fabricd/verbs_priv.h"

#define GROUPS_MOST 512 /* most multicast LIDs that one program may join */

/* --- what programs know of a port --- */

static void fill_tables(struct vb_verbs_port *to, const struct vb_fab_port *p)
{
	to->pkeys = (uint16_t)VB_MIN(p->pkeys, VB_VERBS_PKEYS);
	memcpy(to->pkey, p->pkey, to->pkeys * sizeof(*to->pkey));
	to->guids = (uint16_t)VB_MIN(p->guid_cap, VB_VERBS_GUIDS);
	memcpy(to->guid, p->guids, to->guids * sizeof(*to->guid));
}

static void fill_link(struct vb_verbs_port *to, const struct vb_fab_port *p)
{
	to->state = p->state;
	to->phys = p->phys;
	to->mtu = p->mtu;
	to->mtu_cap = p->mtu_cap;
	to->vl_cap = p->vl_cap;
	to->init_type = p->init_type;
	to->width = p->width_active;
	to->speed = p->speed_ext_active ? (uint8_t)(p->speed_ext_active << 4)
					: p->speed_active;
}

/* Describe the port @from for a program. @slot: the slot of that program; 0: it
 * has none. */
static void describe(const struct vb_fabricd_verbs_adapter *a,
		     const struct vb_fab_port *from, unsigned slot,
		     struct vb_verbs_port *to)
{
	const struct vb_fab_node *n = a->node;

	*to = (struct vb_verbs_port){
		.head = { .magic = VB_UMAD_MAGIC, .kind = VERBS_PORT },
		.slot = slot,
		.reregisters = a->reregisters,
		.node_guid = n->guid,
		.sys_guid = n->sys_guid,
		.lmc = from->lmc,
		.sm_sl = from->sm_sl,
		.subnet_timeout = from->subnet_timeout,
		.lid = from->lid,
		.sm_lid = from->sm_lid,
		.pkey_violations = from->pkey_violations,
		.qkey_violations = from->qkey_violations,
		.cap_mask = from->cap_mask,
		.vendor_id = n->vendor_id,
		.device_id = n->device_id,
		.revision = n->revision,
		.gid_prefix = from->gid_prefix,
		.place = a->place,
	};
	fill_link(to, from);
	fill_tables(to, from);
}

static void send_port(void *client, const struct vb_verbs_port *now,
		      struct vb_verbs_port *told)
{
	if (memcmp(now, told, sizeof(*now)) == 0)
		return;
	*told = *now;
	vb_fabricd_mail(client, now, sizeof(*now));
}

static void send_watched_port(struct verbs_watch *w)
{
	struct vb_verbs_port now;

	describe(w->adapter, w->port, 0, &now);
	send_port(w->client, &now, &w->told);
}

static void send_port_update(struct verbs_program *p)
{
	struct vb_verbs_port now;

	describe(p->adapter, p->port, p->slot, &now);
	send_port(p->client, &now, &p->told);
}

void vb_fabricd_verbs_changed(struct vb_fabricd *f,
			      const struct vb_fab_node *node, uint8_t port)
{
	struct vb_fabricd_verbs_adapter *a = vb_fabricd_verbs_adapter(f, node);
	struct vb_fab_port *p = &node->port[port];

	if (!a)
		return;
	/* The subnet manager has set ClientReregister in PortInfo, which asks
	 * clients to register again. Programs are told once, and a later Get
	 * does not return the bit (IBA 14.2.5.6). */
	if (p->client_reregister) {
		p->client_reregister = false;
		a->reregisters++;
	}
	for (struct vb_chain *c = a->programs; c; c = c->next) {
		struct verbs_program *u =
			VB_CONTAINER_OF(c, struct verbs_program, link);

		if (u->port == p)
			send_port_update(u);
	}
	for (struct vb_chain *c = a->watches; c; c = c->next) {
		struct verbs_watch *w =
			VB_CONTAINER_OF(c, struct verbs_watch, link);

		if (w->port == p)
			send_watched_port(w);
	}
}

/* --- attaching --- */

struct vb_fabricd_verbs_adapter *
vb_fabricd_verbs_adapter(const struct vb_fabricd *f,
			 const struct vb_fab_node *node)
{
	return node->index < f->verbs.adapters ? f->verbs.adapter[node->index]
					       : NULL;
}

/* Make the table of adapters long enough for node @index: hosts join while the
 * fabric runs, so it may be shorter than the list of nodes. False: no
 * memory. */
static bool grow_table(struct vb_fabricd *f, uint32_t index)
{
	uint32_t count = vb_fab_nodes(f->net);
	void *more;

	if (index < f->verbs.adapters)
		return true;
	more = reallocarray(f->verbs.adapter, count, sizeof(*f->verbs.adapter));
	if (!more)
		return false;
	f->verbs.adapter = more;
	for (uint32_t i = f->verbs.adapters; i < count; i++)
		f->verbs.adapter[i] = NULL;
	f->verbs.adapters = count;
	return true;
}

/* Returns the entry of the adapter @node, which is made when its first program
 * attaches. NULL: no memory. */
static struct vb_fabricd_verbs_adapter *
verbs_adapter_of(struct vb_fabricd *f, struct vb_fab_node *node)
{
	struct vb_fabricd_verbs_adapter **at;

	if (!grow_table(f, node->index))
		return NULL;
	at = &f->verbs.adapter[node->index];
	if (!*at) {
		*at = calloc(1,
			     sizeof(**at) + node->ports * sizeof(*(*at)->slot));
		if (!*at)
			return NULL;
		(*at)->node = node;
		(*at)->next_slot = vb_rand32() % VB_SLOTS;
		(*at)->place = (uint64_t)vb_rand32() << 32 | vb_rand32() | 1;
	}
	return *at;
}

static bool verbs_is_taken(const struct vb_fabricd_verbs_adapter *a,
			   unsigned slot)
{
	for (unsigned i = 0; i < a->node->ports; i++)
		if (a->slot[i][slot])
			return true;
	return false;
}

/* Returns the next slot that is free at all ports, in turn, so that a slot that
 * became free stays unused for long: peers may still send to its last holder.
 * Returns slot 0, which has queue pairs 0 and 1, if no slot is free. */
static unsigned find_slot(struct vb_fabricd_verbs_adapter *a)
{
	for (unsigned i = 0; i < VB_SLOTS; i++) {
		unsigned slot = (a->next_slot + i) % VB_SLOTS;

		if (slot == 0 || verbs_is_taken(a, slot))
			continue;
		a->next_slot = slot + 1;
		return slot;
	}
	return 0;
}

/* Give the program the slot @wanted at its port; 0: any. */
static int take_program_slot(struct vb_fabricd_verbs_adapter *a,
			     struct verbs_program *p, unsigned wanted)
{
	unsigned slot = wanted ? wanted : find_slot(a);

	if (slot == 0)
		return -EUSERS;
	if (slot >= VB_SLOTS)
		return -EINVAL;
	if (a->slot[p->port_no - 1][slot])
		return -EADDRINUSE;
	a->slot[p->port_no - 1][slot] = p;
	p->slot = slot;
	return 0;
}

/* Make the shared memory that this process writes (@ours) or that the program
 * writes. *@fd: a descriptor by which the program maps it. Each side can only
 * read what the other side writes. */
static int make_memory(bool ours, void **at, int *fd)
{
	const size_t bytes = VB_SHRING_BYTES(VB_VERBS_RING);
	int rc = vb_shm_create("verbs", bytes, fd, at);

	if (rc == 0 && !ours && mprotect(*at, bytes, PROT_READ) < 0)
		return -errno;
	if (rc == 0 && ours && fcntl(*fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0)
		vb_log(LOG_DEBUG, "fabric: a ring cannot be sealed: %s",
		       strerror(errno));
	return rc;
}

static int make_rings(struct verbs_program *p, int fds[VERBS_FDS])
{
	int pair[2], rc;

	rc = make_memory(true, &p->own, &fds[VERBS_FD_FABRIC]);
	if (rc == 0)
		rc = make_memory(false, &p->theirs, &fds[VERBS_FD_PROGRAM]);
	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       pair) < 0)
		return -errno;
	p->bell.fd = pair[0];
	fds[VERBS_FD_BELL] = pair[1];
	vb_shring_open(&p->to, &p->from, p->own, p->theirs, VB_VERBS_RING);
	return vb_fabricd_watch(p->f, &p->bell, EPOLLIN | EPOLLET, false);
}

static int answer_with_fds(struct verbs_program *p, int client,
			   const int fds[VERBS_FDS])
{
	describe(p->adapter, p->port, p->slot, &p->told);
	p->told.head.kind = VERBS_ATTACH;
	return vb_fdmail_send(client, &p->told, sizeof(p->told), fds, VERBS_FDS,
			      MSG_DONTWAIT);
}

static int attach_program(struct verbs_program *p, int client)
{
	int fds[VERBS_FDS] = { -1, -1, -1 };
	int rc = make_rings(p, fds);

	if (rc == 0)
		rc = answer_with_fds(p, client, fds);
	p->told.head.kind = VERBS_PORT;
	for (unsigned i = 0; i < VERBS_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

static void free_groups(struct verbs_program *p)
{
	while (p->groups) {
		struct verbs_group *g = p->groups;

		p->groups = g->next;
		free(g);
	}
}

static void free_program(struct verbs_program *p)
{
	const size_t bytes = VB_SHRING_BYTES(VB_VERBS_RING);

	if (p->bell.fd >= 0)
		close(p->bell.fd);
	if (p->own)
		vb_shm_unmap(p->own, bytes);
	if (p->theirs)
		vb_shm_unmap(p->theirs, bytes);
	if (p->refused || p->dropped)
		vb_log(LOG_INFO,
		       "fabric: a program has left; %llu of its frames were "
		       "refused, %llu for it dropped",
		       (unsigned long long)p->refused,
		       (unsigned long long)p->dropped);
	free_groups(p);
	free(p);
}

/* Detach a program that has ended. Its memory is freed later, because an event
 * of its bell may be among those that the main loop has still to handle. */
void vb_fabricd_verbs_detach(struct verbs_program *p)
{
	vb_fabricd_verbs_last(p, vb_clock_read());
	p->adapter->slot[p->port_no - 1][p->slot] = NULL;
	p->client = NULL;
	if (p->bell.fd >= 0)
		vb_fabricd_unwatch(p->f, &p->bell);
	vb_chain_add(&p->f->verbs.gone, &p->link);
}

void vb_fabricd_verbs_reap(struct vb_fabricd *f)
{
	while (f->verbs.gone) {
		struct verbs_program *p = VB_CONTAINER_OF(
			f->verbs.gone, struct verbs_program, link);

		vb_chain_del(&p->link);
		free_program(p);
	}
}

int vb_fabricd_verbs_attach(struct vb_fabricd *f, void *client, int fd,
			    struct vb_fab_node *node,
			    const struct vb_umad_where *w,
			    struct verbs_program **out)
{
	struct vb_fabricd_verbs_adapter *a;
	struct verbs_program *p;
	uint8_t port = w->port;
	int rc;

	if (node->kind != FAB_CA || port < 1 || port > node->ports)
		return -ENODEV;
	a = verbs_adapter_of(f, node);
	p = calloc(1, sizeof(*p));
	if (!a || !p) {
		free(p);
		return -ENOMEM;
	}
	p->port_no = port;
	rc = take_program_slot(a, p, w->slot);
	if (rc) {
		free(p);
		return rc;
	}
	p->f = f;
	p->adapter = a;
	p->client = client;
	p->port = &node->port[port];
	p->bell.fd = -1;
	p->bell.ready = vb_fabricd_verbs_bell;
	p->full_at = VB_NEVER;
	vb_chain_add(&a->programs, &p->link);
	rc = attach_program(p, fd);
	if (rc) {
		vb_fabricd_verbs_detach(p);
		return rc;
	}
	vb_fabricd_verbs_busy(p, vb_clock_read());
	*out = p;
	return 0;
}

void vb_fabricd_verbs_free(struct vb_fabricd *f)
{
	vb_fabricd_verbs_reap(f);
	for (uint32_t i = 0; i < f->verbs.adapters; i++)
		free(f->verbs.adapter[i]);
	free(f->verbs.adapter);
}

/* --- clients without queue pairs --- */

struct verbs_watch *vb_fabricd_verbs_watch(struct vb_fabricd *f, void *client,
					   struct vb_fab_node *node,
					   uint8_t port)
{
	struct vb_fabricd_verbs_adapter *a = verbs_adapter_of(f, node);
	struct verbs_watch *w = calloc(1, sizeof(*w));

	if (!a || !w) {
		free(w);
		return NULL;
	}
	w->adapter = a;
	w->client = client;
	w->port = &node->port[port];
	vb_chain_add(&a->watches, &w->link);
	send_watched_port(w);
	return w;
}

void vb_fabricd_verbs_unwatch(struct verbs_watch *w)
{
	vb_chain_del(&w->link);
	free(w);
}

/* --- groups --- */

static struct verbs_group **find_verbs_group(struct verbs_program *p,
					     uint16_t mlid, unsigned *count)
{
	struct verbs_group **at = &p->groups;

	for (*count = 0; *at && (*at)->mlid != mlid; (*count)++)
		at = &(*at)->next;
	return at;
}

static int join_group(struct verbs_program *p, uint16_t mlid)
{
	unsigned count;
	struct verbs_group **at = find_verbs_group(p, mlid, &count);

	if (!*at && count == GROUPS_MOST)
		return -ENOSPC;
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return -ENOMEM;
		(*at)->mlid = mlid;
	}
	(*at)->times++;
	return 0;
}

static int leave_group(struct verbs_program *p, uint16_t mlid)
{
	unsigned count;
	struct verbs_group **at = find_verbs_group(p, mlid, &count), *g = *at;

	if (!g)
		return -EINVAL;
	if (--g->times == 0) {
		*at = g->next;
		free(g);
	}
	return 0;
}

int vb_fabricd_verbs_group(struct verbs_program *p,
			   const struct vb_verbs_group *g)
{
	if (!vb_lid_is_mcast(g->mlid))
		return -EINVAL;
	return g->head.kind == VERBS_JOIN ? join_group(p, g->mlid)
					  : leave_group(p, g->mlid);
}
