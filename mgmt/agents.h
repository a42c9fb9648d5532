/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agents that programs have registered at one port, as Linux's user MAD
 * device does: who gets a request is found by class, version, method and OUI; a
 * response by its transaction ID. Requests are repeated and time out; messages
 * of several packets go by RMPP. A state machine: what leaves and what arrives
 * passes through the owner's functions.
 */
#ifndef MGMT_AGENTS_H
#define MGMT_AGENTS_H

#include "base/timer.h"
#include "wire/gid.h"
#include "wire/mad.h"

/* The other end of a MAD. */
struct vb_mad_addr {
	uint32_t qpn, qkey;
	uint16_t lid;
	uint8_t sl, path_bits;
	bool global; /* with a GRH, of which the rest is */
	uint8_t gid_index, hop_limit, tclass;
	uint32_t flow_label;
	struct vb_gid gid;
	uint16_t pkey_index;
};

#define VB_AGENT_TIMEOUT 110 /* ETIMEDOUT, as the kernel's interface has it */

/* A message for a program's agent. */
struct vb_mad_delivery {
	uint32_t agent;
	uint32_t status; /* 0, or VB_AGENT_TIMEOUT: @bytes is the request's
			    MAD header, which got no answer */
	const struct vb_mad_addr *addr;
	const uint8_t *bytes;
	size_t len; /* 256, or all of a message that came by RMPP */
};

struct vb_agents_ops {
	/* A MAD leaves by queue pair 0 or 1. It may be lost. Neither function
	 * may call one of this header. */
	void (*transmit)(void *arg, unsigned qpn, const struct vb_mad_addr *to,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now);
	/* The program @client gets @d, which is valid until this returns. */
	void (*deliver)(void *arg, void *client,
			const struct vb_mad_delivery *d);
	void *transmit_arg, *deliver_arg;
};

struct vb_agents;

/* @timers: the owner's heap; vb_agents_expire() gets what comes out of it.
 * NULL: no memory. */
struct vb_agents *vb_agents_create(const struct vb_agents_ops *ops,
				   struct vb_timers *timers);
void vb_agents_destroy(struct vb_agents *a);

/* What a program registers. */
struct vb_agent_wish {
	uint8_t class, class_version;
	uint8_t rmpp_version; /* 1: RMPP is done here, not by the program */
	uint32_t oui;	      /* 24 bits; of classes 0x30-0x4f */
	uint64_t methods[2];  /* requests that it serves: method m is bit m */
};

/* The agent's number, 0..31 for each client. -EPERM: another agent has such a
 * method; -EINVAL: a class 0x30-0x4f without an OUI of 24 bits, an RMPP
 * version above 1, or RMPP of a class that has none; -ENOSPC: all numbers are
 * taken; -ENOMEM. */
VB_MUST_CHECK int vb_agents_register(struct vb_agents *a, void *client,
				     const struct vb_agent_wish *wish);
/* 0 or -EINVAL: there is no such agent. Its requests under way are forgotten.
 */
int vb_agents_unregister(struct vb_agents *a, void *client, uint32_t agent);
/* The program is gone. */
void vb_agents_forget(struct vb_agents *a, void *client);

/* What a program sends. */
struct vb_mad_send {
	uint32_t agent;
	struct vb_mad_addr to;
	uint32_t timeout_ms, retries; /* 0: no answer is expected */
	const uint8_t *bytes;
	size_t len; /* a MAD, or of RMPP the message */
};

/* 0; -EINVAL: no such agent, a class of the other queue pair, or a length
 * that is none of a MAD's; -EMSGSIZE: a message longer than VB_RMPP_MOST;
 * -ENOBUFS: too many requests are under way; -ENOMEM. */
VB_MUST_CHECK int vb_agents_send(struct vb_agents *a, void *client,
				 const struct vb_mad_send *s, vb_time now);

/* A MAD has arrived. False: nobody waits for it. */
VB_MUST_CHECK bool vb_agents_hear(struct vb_agents *a,
				  const struct vb_mad_addr *from,
				  const uint8_t mad[VB_MAD_BYTES], vb_time now);

/* @t came out of the heap of timers. */
void vb_agents_expire(struct vb_timer *t, vb_time now);

#endif
