/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's client: claim a slot, keep it, rejoin a new broker. */
#ifndef ENGINE_LEASE_H
#define ENGINE_LEASE_H

#include "engine/spawn.h"
#include "wire/ipc.h"

struct vb_lease {
	unsigned slot;
	int rx_fd;     /* the 4791 socket; the link has a duplicate */
	int name_fd;   /* bound to the slot's abstract name: we live */
	int vault_fd;  /* keeps every slot's socket open (broker/broker.h);
			* -1: the broker is root's, and we are not */
	int broker_fd; /* the session; end of file: the broker is gone */

	/* vb_lease_rejoin()'s own */
	bool asked; /* on broker_fd, to be rejoined; no answer yet */
	enum { TURN_NONE, TURN_WAITED, TURN_SPAWNED } turn;
	unsigned failures;
	struct vb_spawn spawn;
	vb_time retry_at; /* VB_NEVER: there is a session */
};

/* Starts a broker when there is none. -errno, the reason logged. */
VB_MUST_CHECK int vb_lease_claim(struct vb_lease *l);

/*
 * The broker went away: a step towards finding or starting another, and
 * rejoining it. Never blocks. -EAGAIN: call again when broker_fd (unless it is
 * -1) is readable, or it is l->retry_at. 0: there is a session again.
 */
VB_MUST_CHECK int vb_lease_rejoin(struct vb_lease *l);

void vb_lease_release(struct vb_lease *l);

/* Ask the broker how it is. -ECONNREFUSED: none is running here; -EPERM: it
 * is another user's (logged). */
VB_MUST_CHECK int vb_lease_status(struct vb_ipc *report);

#endif
