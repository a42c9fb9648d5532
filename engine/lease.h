/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's client: claim a slot, keep it, rejoin a new broker. */
#ifndef ENGINE_LEASE_H
#define ENGINE_LEASE_H

#include "wire/ipc.h"

struct vb_lease {
	unsigned slot;
	int rx_fd;     /* the 4791 socket; -1 once the link took it over */
	int name_fd;   /* bound to the slot's abstract name: we live */
	int vault_fd;  /* keeps every slot's socket open (broker/broker.h) */
	int broker_fd; /* the session; end of file: the broker is gone */
};

/* Starts a broker when there is none. -errno, the reason logged. */
VB_MUST_CHECK int vb_lease_claim(struct vb_lease *l);

/* The broker went away: find or start another and rejoin. Never blocks for
 * long; -EAGAIN: try again later. */
VB_MUST_CHECK int vb_lease_rejoin(struct vb_lease *l);

void vb_lease_release(struct vb_lease *l);

/* Ask the broker how it is. -ECONNREFUSED: none is running here. */
VB_MUST_CHECK int vb_lease_status(struct vb_ipc *report);

#endif
