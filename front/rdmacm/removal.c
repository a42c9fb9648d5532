/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Removal of devices, which happens when their network interface goes away.
 * Each device is opened a second time, because the program itself reads the
 * asynchronous events of the first context. Every id that is bound to the
 * device gets one DEVICE_REMOVAL event, as in Linux's rdma_cm. A listener at
 * the wildcard address is bound to no device and gets none.
 */
#include "front/rdmacm/rdmacm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"

/* An epoll set with the event descriptor of each device's second context; -1:
 * it was not made yet. */
static int removals = -1;

int rcm_removals_fd(void)
{
	return removals;
}

/* Opens @d a second time, so that the thread that polls `removals` notices the
 * device's removal: the events of the first context are the program's. NULL: it could not be opened, and no thread will notice.
 * The caller holds rcm.lock. */
static struct ibv_context *open_watch(struct rcm_device *d)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = d };
	struct ibv_context *verbs = ibv_open_device(d->verbs->device);

	if (!verbs)
		return NULL;
	if (fcntl(verbs->async_fd, F_SETFL, O_NONBLOCK) == 0 &&
	    epoll_ctl(removals, EPOLL_CTL_ADD, verbs->async_fd, &e) == 0)
		return verbs;
	ibv_close_device(verbs);
	return NULL;
}

void rcm_removals_watch(void)
{
	if (removals < 0)
		removals = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < rcm.device_count; i++) {
		struct rcm_device *d = &rcm.devices[i];

		if (d->port > 1) /* the entry of port 1 watches the device */
			continue;
		d->watch = removals < 0 ? NULL : open_watch(d);
		if (!d->watch)
			vb_log(LOG_INFO,
			       "rdmacm: the removal of device %s cannot be "
			       "reported",
			       ibv_get_device_name(d->verbs->device));
	}
}

void rcm_removals_after_fork(void)
{
	removals = -1;
}

/* Queues DEVICE_REMOVAL for each id of the port @d. The caller holds
 * rcm.lock. */
static void tell_all_of(struct rcm_device *d)
{
	atomic_fetch_add(&d->removals, 1);
	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (struct rcm_id *id = rcm.ids[i]; id; id = id->next)
			if (id->device == d && id->pub.channel)
				rcm_event_removed(id);
}

static void removal_take(struct rcm_device *d)
{
	struct ibv_async_event e;

	while (ibv_get_async_event(d->watch, &e) == 0) {
		for (unsigned i = 0; i < rcm.device_count; i++)
			if (e.event_type == IBV_EVENT_DEVICE_FATAL &&
			    rcm.devices[i].verbs == d->verbs)
				tell_all_of(&rcm.devices[i]);
		ibv_ack_async_event(&e);
	}
}

void rcm_removals_take(void)
{
	struct epoll_event said[8];
	int n;

	pthread_mutex_lock(&rcm.lock);
	n = epoll_wait(removals, said, VB_COUNT(said), 0);
	for (int i = 0; i < n; i++)
		removal_take(said[i].data.ptr);
	pthread_mutex_unlock(&rcm.lock);
}
