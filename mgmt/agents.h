/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agents that programs have registered at one port, as with Linux's user
 * MAD device. Class, version, method and OUI say which agent gets a request; a
 * response goes to the agent whose request had its transaction ID. This code
 * repeats requests and times them out; messages of several packets go by RMPP.
 * A state machine: the owner's functions send, and the owner passes in what
 * arrives.
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
	bool global; /* with a GRH, whose fields follow */
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
	size_t len; /* 256, or the length of a whole RMPP message */
};

struct vb_agents_ops {
	/* Send a MAD by queue pair 0 or 1. It may be lost. Neither this nor
	 * deliver() calls a function of this header. */
	void (*transmit)(void *arg, unsigned qpn, const struct vb_mad_addr *to,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now);
	/* Give @d, which is valid until this returns, to the program
	 * @client. */
	void (*deliver)(void *arg, void *client,
			const struct vb_mad_delivery *d);
	void *transmit_arg, *deliver_arg;
};

struct vb_agents;

/* Make the table of agents of a port. @timers: the owner's heap; for each timer
 * that expires there, the owner calls vb_agents_expire(). NULL: no memory. */
struct vb_agents *vb_agents_create(const struct vb_agents_ops *ops,
				   struct vb_timers *timers);
void vb_agents_destroy(struct vb_agents *a);

/* What a program asks for when it registers an agent. */
struct vb_agent_wish {
	uint8_t class, class_version;
	uint8_t rmpp_version; /* 1: this code does RMPP for the program */
	uint32_t oui;	      /* 24 bits; of classes 0x30-0x4f */
	uint64_t methods[2];  /* the requests it gets: method m is bit m */
};

/* The agent's number, 0..31 for each client. -EPERM: another agent has such a
 * method; -EINVAL: a class 0x30-0x4f without an OUI of 24 bits, an RMPP
 * version above 1, or RMPP of a class that has none; -ENOSPC: all numbers are
 * taken; -ENOMEM. */
VB_MUST_CHECK int vb_agents_register(struct vb_agents *a, void *client,
				     const struct vb_agent_wish *wish);
/* Remove an agent, and forget its requests that wait for an answer. 0; -EINVAL:
 * there is no such agent. */
int vb_agents_unregister(struct vb_agents *a, void *client, uint32_t agent);
/* The program has ended: remove its agents. */
void vb_agents_forget(struct vb_agents *a, void *client);

/* A message that a program sends. */
struct vb_mad_send {
	uint32_t agent;
	struct vb_mad_addr to;
	uint32_t timeout_ms, retries; /* both 0: no answer is expected */
	const uint8_t *bytes;
	size_t len; /* of a MAD, or of a whole RMPP message */
};

/* Send @s. 0; -EINVAL: no such agent, a class of the other queue pair, or a
 * length that no MAD has; -EMSGSIZE: longer than VB_RMPP_MOST; -ENOBUFS: too
 * many requests wait for answers; -ENOMEM. */
VB_MUST_CHECK int vb_agents_send(struct vb_agents *a, void *client,
				 const struct vb_mad_send *s, vb_time now);

/* A MAD has arrived from @from. False: no agent wants it. */
VB_MUST_CHECK bool vb_agents_hear(struct vb_agents *a,
				  const struct vb_mad_addr *from,
				  const uint8_t mad[VB_MAD_BYTES], vb_time now);

/* The timer @t of the owner's heap has expired. */
void vb_agents_expire(struct vb_timer *t, vb_time now);

#endif
