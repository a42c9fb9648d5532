/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm has to ask the host's connection manager, and waits for: the
 * path to a neighbour, and the place at which neighbours call. A thread asks,
 * so that packets go on while that process is late, or stopped. All else of
 * librdmacm is told and not waited for, and the interface's own thread calls
 * it.
 */
#ifndef IPOIB_CM_ASK_H
#define IPOIB_CM_ASK_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#include "base/defs.h"

/* the most questions that wait, so that a stopped process costs no more */
#define CM_QUESTIONS 128

enum cm_question_kind { CM_ASK_PATH, CM_ASK_LISTEN };

struct cm_question {
	enum cm_question_kind kind;
	uint32_t query;		 /* of CM_ASK_PATH, the caller's number */
	struct sockaddr_ib from; /* this port; of CM_ASK_LISTEN all */
	struct sockaddr_ib to;	 /* of CM_ASK_PATH */
	/* The answer: an id, which the caller destroys, with the route to @to,
	 * or that listens at @from; or NULL, and why not. */
	struct rdma_cm_id *id;
	int error; /* errno */
};

struct cm_asker;

/* Start the thread; its ids get events by @channel. NULL and errno. */
struct cm_asker *ipoib_asker_start(struct rdma_event_channel *channel);
/* End the thread. False: it still waits for the connection manager, and uses
 * the channel until the process ends. */
bool ipoib_asker_end(struct cm_asker *a);
/* A descriptor that is readable while answers wait. */
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
