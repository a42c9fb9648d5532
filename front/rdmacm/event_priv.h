/* SPDX-License-Identifier: BSD-2-Clause */
/* What channel.c, event.c and event_take.c share. */
#ifndef FRONT_RDMACM_EVENT_PRIV_H
#define FRONT_RDMACM_EVENT_PRIV_H

#include "front/rdmacm/rdmacm.h"

static inline struct rcm_channel *rcm_channel_of(struct rdma_event_channel *c)
{
	return VB_CONTAINER_OF(c, struct rcm_channel, pub);
}

/* channel.c */

/* Appends @e, which the channel owns from now on, and wakes a thread that
 * waits. The caller holds rcm.lock. */
void rcm_channel_push(struct rcm_channel *c, struct rcm_event *e);
/*
 * Takes the oldest event into *@e, whose owner is then the caller, and counts
 * it as delivered to its id. The call takes rcm.lock itself. It sleeps with
 * cancellation set to @cancel, a value of vb_cancel_off(). 0; -EAGAIN: there is
 * no event and the channel's descriptor does not block; -EINTR.
 */
int rcm_channel_wait(struct rcm_channel *c, struct rcm_event **e, int cancel);
/* Between these two calls a thread uses @c: if the program destroys the channel
 * meanwhile, the last thread to leave frees it. Both functions take rcm.lock.
 * @channel is a struct rcm_channel; it is void for pthread_cleanup_push(). */
void rcm_channel_enter(struct rcm_channel *c);
void rcm_channel_leave(void *channel);

/* Frees @e and its private data. @e may be NULL; it must be in no queue and not
 * in rcm.unseen. */
void rcm_event_free(struct rcm_event *e);
/* Adds the connection request @e to rcm.unseen, the list of the requests that
 * have no id yet. If the broker ends, resume.c tells the next broker of these,
 * too. The caller holds rcm.lock. */
void rcm_unseen_add(struct rcm_event *e);
/* Removes @e from rcm.unseen, if it is in it. The caller holds rcm.lock. */
void rcm_unseen_remove(struct rcm_event *e);

/* event_take.c */

/* Applies @e to its id and fills @e->pub for the program. False: the program
 * gets no event for it. The caller holds no lock. */
bool rcm_event_take(struct rcm_event *e);

#endif
