/* SPDX-License-Identifier: BSD-2-Clause */
/* Agents and their exchanges: what agents.c and exchange.c share. */
#ifndef MGMT_AGENTS_PRIV_H
#define MGMT_AGENTS_PRIV_H

#include "base/chain.h"
#include "mgmt/agents.h"
#include "mgmt/rmpp.h"

#define AGENTS_MOST    1024 /* agents at one port */
#define AGENTS_CLIENT  32   /* agents of one program */
#define EXCHANGES_MOST 8192 /* exchanges at one port */
#define TRANSFERS_MOST 64   /* exchanges that are requests coming by RMPP */

struct agent {
	void *client;
	uint32_t id;	 /* the number that the client knows */
	uint32_t serial; /* the upper half of its transaction IDs; never 0 */
	struct vb_agent_wish wish;
};

enum exchange_state {
	EXCHANGE_SENDING,   /* this side sends segments of RMPP */
	EXCHANGE_WAITING,   /* a request was sent; its answer has not come */
	EXCHANGE_RECEIVING, /* the peer sends segments of RMPP */
	EXCHANGE_LINGERING, /* all came, but the peer may lack the last ACK */
};

/* A request or message that has not ended, of one agent. */
struct exchange {
	struct vb_agents *agents;
	uint32_t serial; /* of its agent; 0: a request of the peer */
	enum exchange_state state;
	struct vb_mad_addr peer;
	uint8_t *message; /* WAITING: the request, to send it again */
	size_t len;
	uint8_t header[VB_MAD_HDR_BYTES]; /* as the program gave it */
	uint64_t tid;			  /* on the wire */
	uint8_t class, method;		  /* of the message sent or received */
	vb_time patience;
	uint32_t retries;
	struct vb_rmpp_sender sender;
	struct vb_rmpp_receiver receiver;
	struct vb_timer timer;
	struct exchange *next, **link;
};

struct vb_agents {
	struct vb_agents_ops ops;
	struct vb_timers *timers;
	struct agent *list;
	unsigned count, room;
	uint32_t last_serial;
	struct exchange *exchanges;
	unsigned exchange_count, transfer_count;
};

struct agent *vb_agent_by_serial(struct vb_agents *a, uint32_t serial);
void vb_agent_deliver(struct vb_agents *a, const struct agent *g,
		      uint32_t status, const struct vb_mad_addr *addr,
		      const uint8_t *bytes, size_t len);

/* mgmt/exchange.c */
void vb_exchange_end(struct exchange *e);
/* Send @s, and begin the exchange if an answer or RMPP is to follow. Returns
 * what vb_agents_send() returns. */
int vb_exchange_begin(struct vb_agents *a, const struct agent *g,
		      const struct vb_mad_send *s, vb_time now);
/* A response or an RMPP packet has come. False: it belongs to no exchange. */
bool vb_exchange_hear(struct vb_agents *a, const struct vb_mad_addr *from,
		      const uint8_t mad[VB_MAD_BYTES], vb_time now);
/* A segment of a request for agent @g has come: the first one, or a later. */
void vb_exchange_receive(struct vb_agents *a, struct agent *g,
			 const struct vb_mad_addr *from,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now);

static inline bool vb_mad_is_response(const uint8_t *mad)
{
	return mad[3] & 0x80 || mad[3] == 0x07; /* TrapRepress */
}

static inline unsigned vb_mad_qpn(uint8_t class)
{
	return class == 0x01 || class == 0x81 ? 0 : 1;
}

#endif
