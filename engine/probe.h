/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends packets to the broker of another host, which sends them back
 * (wire/echo.h), by a slot of this host as programs do: what `verbena doctor`
 * asks the network. One thread. */
#ifndef ENGINE_PROBE_H
#define ENGINE_PROBE_H

#include "wire/gid.h"

struct vb_probe;

/* Does any socket of this network namespace use UDP port 4791? */
bool vb_probe_port_taken(void);

/* Claim a slot, starting a broker if none runs, and open the link. 0, and the
 * caller ends with vb_probe_close(); or -errno: -EADDRINUSE: another program
 * has port 4791. May block for several seconds. */
VB_MUST_CHECK int vb_probe_open(struct vb_probe **p);
void vb_probe_close(struct vb_probe *p);

/* Send question @number with a payload of @bytes from the address @from to the
 * address @to, and ask for an answer of @back bytes, at most @bytes. @ifindex:
 * the interface with @from. 0 or -errno, for example -ENETUNREACH. */
VB_MUST_CHECK int vb_probe_ask(struct vb_probe *p, const struct vb_gid *from,
			       const struct vb_gid *to, uint32_t ifindex,
			       uint32_t number, uint32_t bytes, uint32_t back);

struct vb_probe_answer {
	uint32_t number;
	uint32_t mtu; /* of the peer's interface; 0: not known */
	/* 0; or an errno by which a host said that a question did not arrive:
	 * ECONNREFUSED, EHOSTUNREACH, EMSGSIZE. @number is not set then. */
	int error;
};

/* Wait for the next answer until @until of vb_clock_read(). False: none
 * came. */
VB_MUST_CHECK bool vb_probe_hear(struct vb_probe *p, vb_time until,
				 struct vb_probe_answer *a);

#endif
