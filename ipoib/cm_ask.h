/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two questions to the host's connection manager for whose answers
 * librdmacm waits: the path to a neighbour, and listening for neighbours. A
 * thread of its own asks them, so that the interface passes packets even while
 * the connection manager is late or stopped. No other call of librdmacm waits,
 * so the interface's own thread makes them.
 */
#ifndef IPOIB_CM_ASK_H
#define IPOIB_CM_ASK_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#include "base/defs.h"

/* the most questions that wait, so that a stopped connection manager costs no
 * more memory */
#define CM_QUESTIONS 128

enum cm_question_kind { CM_ASK_PATH, CM_ASK_LISTEN };

struct cm_question {
	enum cm_question_kind kind;
	/* with CM_ASK_PATH: a number that the caller chooses */
	uint32_t query;
	struct sockaddr_ib from; /* the address of this port */
	/* with CM_ASK_PATH: the address of the neighbour */
	struct sockaddr_ib to;
	/* The answer: an id that has the route to @to, or that listens at
	 * @from; the caller destroys it. NULL: @error says why there is
	 * none. */
	struct rdma_cm_id *id;
	int error; /* a positive errno */
};

struct cm_asker;

/* Start the thread; events of its ids go to @channel. NULL: failed, with
 * errno. */
struct cm_asker *ipoib_asker_start(struct rdma_event_channel *channel);
/* End the thread. False: it still waits for the connection manager, and uses
 * the channel until the process ends. */
bool ipoib_asker_end(struct cm_asker *a);
/* Returns a descriptor that is readable while answers wait. */
int ipoib_asker_fd(const struct cm_asker *a);

/* Ask @q, which is copied. False: too many questions wait. */
VB_MUST_CHECK bool ipoib_asker_ask(struct cm_asker *a,
				   const struct cm_question *q);
/* Withdraw the question CM_ASK_PATH with the number @query, if it has not been
 * asked yet. */
void ipoib_asker_withdraw(struct cm_asker *a, uint32_t query);
/* Take the next answer. False: there is none. */
VB_MUST_CHECK bool ipoib_asker_take(struct cm_asker *a, struct cm_question *q);

#endif
