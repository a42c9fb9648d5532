/* SPDX-License-Identifier: BSD-2-Clause */
/* Agents and their exchanges: what agents.c and exchange.c share. */
#ifndef MGMT_AGENTS_PRIV_H
#define MGMT_AGENTS_PRIV_H

#include "base/chain.h"
#include "mgmt/agents.h"
#include "mgmt/rmpp.h"

#define AGENTS_MOST    1024 /* the most agents that one port may have */
#define AGENTS_CLIENT  32   /* the most agents that one program may have */
#define EXCHANGES_MOST 8192 /* the most exchanges that one port may have */
/* the most exchanges at one port that receive a request by RMPP */
#define TRANSFERS_MOST 64

struct agent {
	void *client;
	uint32_t id; /* the agent's number, by which the client names it */
	/* the upper half of the transaction IDs on the wire; never 0 */
	uint32_t serial;
	struct vb_agent_wish wish;
};

enum exchange_state {
	/* this side is sending the segments of an RMPP message */
	EXCHANGE_SENDING,
	/* this side has sent a request and waits for the answer */
	EXCHANGE_WAITING,
	/* the peer is sending the segments of an RMPP message */
	EXCHANGE_RECEIVING,
	/* all segments have come; this side stays to repeat the last ACK */
	EXCHANGE_LINGERING,
};

/* An agent's request or message that is not complete: its answer, or some of
 * its RMPP segments, have not come yet. */
struct exchange {
	struct vb_agents *agents;
	/* the serial of the agent; 0: the peer sent the request */
	uint32_t serial;
	enum exchange_state state;
	struct vb_mad_addr peer;
	/* in EXCHANGE_WAITING: the request, kept to repeat it */
	uint8_t *message;
	size_t len;
	/* the message's MAD header as the program gave it */
	uint8_t header[VB_MAD_HDR_BYTES];
	uint64_t tid;	       /* the transaction ID on the wire */
	uint8_t class, method; /* management class and method of the message */
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

/* Functions of mgmt/exchange.c. */
void vb_exchange_end(struct exchange *e);
/* Send @s, and begin the exchange if an answer or RMPP is to follow. Returns
 * what vb_agents_send() returns. */
int vb_exchange_begin(struct vb_agents *a, const struct agent *g,
		      const struct vb_mad_send *s, vb_time now);
/* Handle a response or an RMPP packet. False: it belongs to no exchange. */
bool vb_exchange_hear(struct vb_agents *a, const struct vb_mad_addr *from,
		      const uint8_t mad[VB_MAD_BYTES], vb_time now);
/* Handle the first or a later segment of an RMPP request for agent @g. */
void vb_exchange_receive(struct vb_agents *a, struct agent *g,
			 const struct vb_mad_addr *from,
			 const uint8_t mad[VB_MAD_BYTES], vb_time now);

static inline bool vb_mad_is_response(const uint8_t *mad)
{
	/* the method TrapRepress is a response in spite of its bit 7 */
	return mad[3] & 0x80 || mad[3] == 0x07;
}

static inline unsigned vb_mad_qpn(uint8_t class)
{
	return class == 0x01 || class == 0x81 ? 0 : 1;
}

#endif
