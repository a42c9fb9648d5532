/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's client: claims a slot of port 4791, keeps it, and rejoins a new
 * broker. Not thread-safe: the engine starts and stops it under open_lock, and
 * only the engine thread calls vb_lease_rejoin(). */
#ifndef ENGINE_LEASE_H
#define ENGINE_LEASE_H

#include <stdatomic.h>

#include "engine/spawn.h"
#include "wire/ipc.h"

struct vb_lease {
	/* 0: none yet. Other threads read it while a device is opened. */
	_Atomic unsigned slot;
	int rx_fd; /* the socket of port 4791; the link has a duplicate */
	/* A socket bound to the slot's abstract name, which shows that this
	 * program lives. */
	int name_fd;
	/* The vault: a socket. The broker keeps the sockets of all slots in its
	 * queue, so that they stay open (broker/broker.h). -1: the broker
	 * did not give it, because this program belongs neither to the broker's
	 * user nor to root. */
	int vault_fd;
	/* the session with the broker; end of file: the broker has ended */
	int broker_fd;

	/* The state of vb_lease_rejoin(). */

	/* this program has asked to rejoin on broker_fd and awaits the
	 * answer */
	bool asked;
	enum { TURN_NONE, TURN_WAITED, TURN_SPAWNED } turn;
	unsigned failures;
	struct vb_spawn spawn;
	/* the time of the next step; VB_NEVER: there is a session */
	vb_time retry_at;
};

/* Claim a slot. Starts a broker when none is running; may block for
 * several seconds. 0, and the caller ends with vb_lease_release(); or -errno
 * after logging the reason. */
VB_MUST_CHECK int vb_lease_claim(struct vb_lease *l);

/*
 * The broker ended: do one step to find or start another one and rejoin it.
 * Never blocks. 0: there is a session again. -EAGAIN: call again when broker_fd
 * (unless it is -1) is readable, or at l->retry_at.
 */
VB_MUST_CHECK int vb_lease_rejoin(struct vb_lease *l);

void vb_lease_release(struct vb_lease *l);

/* Ask the broker for its status; blocks for at most 1 s. -ECONNREFUSED: no
 * broker is running; else -errno. */
VB_MUST_CHECK int vb_lease_status(struct vb_ipc *report);

#endif
