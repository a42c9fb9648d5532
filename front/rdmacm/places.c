/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives the broker the adapters of InfiniBand fabrics that this process has.
 * The process connects to the fabric, which serves only programs of its own
 * user, and passes the connection to the broker; from then on the broker is the
 * connection manager of the adapter for all programs of the host. Only one
 * broker can be the manager.
 */
#include "front/rdmacm/rdmacm.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "engine/fabric_path.h"
#include "engine/fabric_places.h"
#include "wire/mad.h"
#include "wire/sa.h"

#define DEVICES "VERBENA_DEVICES"
/* How long to wait for another program that has registered with the fabric and
 * has not told the broker yet; or for a broker that has just ended. */
#define PATIENCE (2 * VB_SEC)
#define NAP	 (5 * VB_MSEC)

/* Finds the node and port of the fabric (the place) where the device's port is.
 */
static bool places_find(const struct rcm_device *d,
			struct vb_fabric_place *place)
{
	const char *name = ibv_get_device_name(d->verbs->device);
	struct vb_fabric_adapter adapter;

	return vb_fabric_adapter_find(getenv(DEVICES), name, &adapter) &&
	       vb_fabric_adapter_port(&adapter, d->port, place);
}

/* Reads the GUID of the node, by which the broker knows the place. This GUID is
 * also the device's, unless the device has ports in two nodes. */
static int read_guid(struct rcm_device *d, const struct vb_fabric_place *place)
{
	struct vb_umad_info info;
	int rc = vb_fabric_query(place, place->port, &info);

	if (rc == 0)
		d->guid = info.guid;
	return rc;
}

/* Asks the fabric for the state of the port, and for each later change. When
 * this function returns, the answer waits unread in the socket, since the
 * broker is to read it. */
static int watch_port(int umad)
{
	const struct vb_umad_head watch = { .magic = VB_UMAD_MAGIC,
					    .kind = UMAD_WATCH };
	const vb_time due = vb_fabric_due();
	int rc = vb_fabric_post(umad, &watch, sizeof(watch), NULL, due);

	return rc ? rc : vb_fabric_wait(umad, POLLIN, due);
}

/* Registers the agents of a connection manager and of a client of the subnet
 * administrator, and puts their numbers into @m. -EPERM: the adapter has a
 * connection manager already. */
static int register_agents(int umad, struct vb_ipc_cm *m)
{
	const struct vb_umad_head head = { .magic = VB_UMAD_MAGIC,
					   .kind = UMAD_REGISTER };
	const struct vb_umad_wish cm = { .head = head,
					 .class = VB_MAD_CLASS_CM,
					 .class_version = 2,
					 .methods = { 1u << MAD_SEND } };
	const struct vb_umad_wish sa = { .head = head,
					 .class = MAD_CLASS_SA,
					 .class_version = VB_SA_CLASS_VERSION,
					 .rmpp_version = 1 };
	int rc = vb_fabric_call(umad, &cm, sizeof(cm));

	if (rc < 0)
		return rc;
	m->backlog = (uint32_t)rc;
	rc = vb_fabric_call(umad, &sa, sizeof(sa));
	if (rc < 0)
		return rc;
	m->listener = (uint32_t)rc;
	m->flags |= IPC_CM_AGENTS;
	return 0;
}

/* Sends @m with the descriptor @umad, and waits for the answer *@done. -errno:
 * the session failed. */
static int say_place(int fd, const struct vb_ipc_cm *m, int umad,
		     struct vb_ipc_cm *done)
{
	const vb_time due = vb_fabric_due();
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	int rc = vb_fabric_post(fd, bytes, len, &umad, due);

	*done = (struct vb_ipc_cm){ 0 };
	while (rc == 0 && !(done->kind && rcm_is_answer(m, done))) {
		rc = vb_fabric_wait(fd, POLLIN, due);
		if (rc == 0)
			rc = rcm_session_hear(fd, done);
	}
	return rc;
}

/* Asks the broker for its number of the place; gives the broker the place if it
 * has none. Returns the number, 0 and *@error (a positive errno), or -errno:
 * the session failed. */
static int give_place(int fd, const struct rcm_device *d, uint8_t port,
		      int umad, int *error)
{
	const vb_time until = vb_clock_read() + PATIENCE;
	struct vb_ipc_cm m = { .kind = IPC_CM_PLACE,
			       .version = VB_IPC_CM_VERSION,
			       .guid = d->guid,
			       .dst_port = port,
			       .place = d->place };
	bool watched = false;
	struct vb_ipc_cm done;
	int rc;

	if (!rcm.has_roce)
		m.flags |= IPC_CM_ONLY_PLACES;
	for (;;) {
		m.tid++;
		rc = say_place(fd, &m, umad, &done);
		if (rc)
			return rc;
		*error = done.status;
		if (done.status != ENOENT || m.flags & IPC_CM_AGENTS)
			return done.status ? 0 : done.place;
		rc = watched ? 0 : watch_port(umad);
		watched = true;
		if (rc == 0)
			rc = register_agents(umad, &m);
		if (rc != -EPERM || vb_clock_read() > until) {
			*error = rc == -EPERM ? EBUSY : -rc;
			if (rc)
				return 0;
			continue;
		}
		nanosleep(&(struct timespec){ 0, (long)NAP }, NULL);
	}
}

static void log_unusable(const struct rcm_device *d,
			 const struct vb_fabric_place *place, int error)
{
	const char *name = ibv_get_device_name(d->verbs->device);

	if (error == EBUSY)
		vb_log(LOG_WARN,
		       "rdmacm: %s makes no connections: node %s has another "
		       "connection manager, of another network namespace",
		       name, place->node);
	else
		vb_log(LOG_WARN,
		       "rdmacm: %s makes no connections: the broker cannot use "
		       "node %s of the fabric \"%s\": %s",
		       name, place->node, place->fabric, strerror(error));
}

static int tell_place(int fd, struct rcm_device *d)
{
	struct vb_fabric_place place;
	int umad, error = 0, rc = 0;

	if (!places_find(d, &place))
		return 0;
	umad = read_guid(d, &place);
	if (umad == 0)
		umad = vb_fabric_attach(&place, place.port);
	if (umad < 0)
		error = -umad;
	else
		rc = give_place(fd, d, place.port, umad, &error);
	if (umad >= 0)
		close(umad);
	if (error)
		log_unusable(d, &place, error);
	/* If the session failed, d->place stays, so that this process asks the
	 * next broker for the same number. */
	if (rc < 0)
		return rc;
	d->place = (uint8_t)rc;
	return 0;
}

int rcm_places_tell(int fd)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < rcm.device_count; i++)
		if (rcm.devices[i].ib)
			rc = tell_place(fd, &rcm.devices[i]);
	return rc;
}

/* Returns a place number that none of this process's devices has. The broker
 * refuses the requests of an id with this number, because it cannot use the
 * id's adapter. */
static uint8_t no_place(void)
{
	uint64_t taken = 0;
	uint8_t n = 1;

	for (unsigned i = 0; i < rcm.device_count; i++)
		taken |= UINT64_C(1) << rcm.devices[i].place % VB_IPC_CM_PLACES;
	while (n < VB_IPC_CM_PLACES && taken & UINT64_C(1) << n)
		n++;
	return n;
}

static void put_place(struct vb_ipc_cm *m, uint8_t place)
{
	if (m->place)
		m->place = place;
}

/* Replaces the number of the alternate path's port, which may belong to another
 * port than the id's, by the one that the new broker has given. @was: the old
 * numbers, indexed like rcm.devices. */
static void follow_alternate(struct vb_ipc_cm *m, const uint8_t *was)
{
	uint8_t *place = &m->alternate.place;

	for (unsigned i = 0; *place && i < rcm.device_count; i++) {
		const struct rcm_device *d = &rcm.devices[i];

		if (!d->ib || was[i] != *place)
			continue;
		*place = d->place ? d->place : no_place();
		return;
	}
}

static void follow_id(struct rcm_id *id, const uint8_t *was)
{
	uint8_t place;

	if (!rcm_is_ib(id))
		return;
	follow_alternate(&id->path, was);
	follow_alternate(&id->record.said, was);
	place = id->device->place ? id->device->place : no_place();
	put_place(&id->path, place);
	put_place(&id->peer, place);
	put_place(&id->record.bound, place);
	put_place(&id->record.said, place);
	put_place(&id->record.ticket, place);
	put_place(&id->record.path, place);
	rcm_groups_move(id, place);
}

/* Replaces the numbers in a request that the program has not read. Such a
 * request has no device yet, so its old number tells which port it came by. */
static void follow_request(struct rcm_event *e, const uint8_t *was)
{
	follow_alternate(&e->m, was);
	for (unsigned i = 0; i < rcm.device_count; i++) {
		const struct rcm_device *d = &rcm.devices[i];

		if (!d->ib || !e->m.place || was[i] != e->m.place)
			continue;
		e->m.place = d->place ? d->place : no_place();
		return;
	}
}

void rcm_places_follow(const uint8_t *was)
{
	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (struct rcm_id *id = rcm.ids[i]; id; id = id->next)
			follow_id(id, was);
	for (struct rcm_event *e = rcm.unseen; e; e = e->next_unseen)
		follow_request(e, was);
}
