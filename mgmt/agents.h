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

/* The address of the peer of a MAD. */
struct vb_mad_addr {
	uint32_t qpn, qkey;
	uint16_t lid;
	uint8_t sl, path_bits;
	bool global; /* the MAD has a GRH, whose fields follow */
	uint8_t gid_index, hop_limit, tclass;
	uint32_t flow_label;
	struct vb_gid gid;
	uint16_t pkey_index;
};

/* the value of ETIMEDOUT on Linux, as user_mad's interface has it */
#define VB_AGENT_TIMEOUT 110

/* A message that the table of agents gives to a program's agent. */
struct vb_mad_delivery {
	uint32_t agent;
	/* 0: a message has come. VB_AGENT_TIMEOUT: no answer came to the
	 * request whose MAD header is in @bytes */
	uint32_t status;
	const struct vb_mad_addr *addr;
	const uint8_t *bytes;
	/* 256 bytes of a MAD, or the length of a whole RMPP message */
	size_t len;
};

struct vb_agents_ops {
	/* Send a MAD by queue pair 0 or 1; the network may lose it. Neither
	 * transmit() nor deliver() may call a function of this header. */
	void (*transmit)(void *arg, unsigned qpn, const struct vb_mad_addr *to,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now);
	/* Give the message @d to the program @client. @d is valid until this
	 * function returns. */
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
	/* 1: the table of agents does RMPP for the program; 0: the program
	 * does */
	uint8_t rmpp_version;
	uint32_t oui; /* the vendor's OUI (24 bits), for classes 0x30-0x4f */
	/* mask of request methods that the agent gets: method m is bit m */
	uint64_t methods[2];
};

/* Register a management agent of the program @client. Returns the agent's
 * number, 0..31 for each client. -EPERM: another agent has such a method;
 * -EINVAL: a class 0x30-0x4f without an OUI of 24 bits, an RMPP version above
 * 1, or RMPP of a class that has none; -ENOSPC: all numbers are taken;
 * -ENOMEM. */
VB_MUST_CHECK int vb_agents_register(struct vb_agents *a, void *client,
				     const struct vb_agent_wish *wish);
/* Remove an agent, and drop its requests that wait for an answer. 0; -EINVAL:
 * there is no such agent. */
int vb_agents_unregister(struct vb_agents *a, void *client, uint32_t agent);
/* The program @client has ended: remove all its agents. */
void vb_agents_forget(struct vb_agents *a, void *client);

/* A message that a program sends. */
struct vb_mad_send {
	uint32_t agent;
	struct vb_mad_addr to;
	/* how long to wait for an answer, and how often to repeat; both 0: no
	 * answer is expected */
	uint32_t timeout_ms, retries;
	const uint8_t *bytes;
	size_t len; /* bytes of a MAD, or of a whole RMPP message */
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

/* The owner calls this when the timer @t in its heap has expired. */
void vb_agents_expire(struct vb_timer *t, vb_time now);

#endif
