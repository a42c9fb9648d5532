/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that channel.c, event.c and event_take.c share. */
#ifndef FRONT_RDMACM_EVENT_PRIV_H
#define FRONT_RDMACM_EVENT_PRIV_H

#include "front/rdmacm/rdmacm.h"

static inline struct rcm_channel *rcm_channel_of(struct rdma_event_channel *c)
{
	return VB_CONTAINER_OF(c, struct rcm_channel, pub);
}

/* Functions of channel.c. */

/* Appends @e, which the channel owns from now on, and wakes a thread that waits
 * for an event. The caller holds rcm.lock. */
void rcm_channel_push(struct rcm_channel *c, struct rcm_event *e);
/*
 * Removes the oldest event and stores it in *@e; the caller then owns it.
 * Counts it as delivered to its id. The call takes rcm.lock itself. It sleeps
 * with cancellation set to @cancel, a value of vb_cancel_off(). 0; -EAGAIN:
 * there is no event and the channel's descriptor does not block; -EINTR.
 */
int rcm_channel_wait(struct rcm_channel *c, struct rcm_event **e, int cancel);
/* A thread uses @c between rcm_channel_enter() and rcm_channel_leave(): if the
 * program destroys the channel meanwhile, the last thread to leave frees it.
 * Both functions take rcm.lock. @channel is a struct rcm_channel; it is void
 * for pthread_cleanup_push(). */
void rcm_channel_enter(struct rcm_channel *c);
void rcm_channel_leave(void *channel);

/* Frees @e and its private data. @e may be NULL; it must be in no queue and not
 * in rcm.unseen. */
void rcm_event_free(struct rcm_event *e);
/* Adds the connection request @e to rcm.unseen, the list of the requests that
 * have no id yet. If the broker ends, resume.c reports these to the next
 * broker. The caller holds rcm.lock. */
void rcm_unseen_add(struct rcm_event *e);
/* Removes @e from rcm.unseen, if it is there. The caller holds rcm.lock. */
void rcm_unseen_remove(struct rcm_event *e);

/* A function of event_take.c. */

/* Applies @e to its id and fills in @e->pub for the program. False: the program
 * gets no event. The caller holds no lock. */
bool rcm_event_take(struct rcm_event *e);

#endif
