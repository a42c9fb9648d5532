/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: arrival from the broker, from an iWARP stream or from this library;
 * delivery to the program; acknowledgement; names.
 */
#include "front/rdmacm/event_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sync.h"

static struct rcm_event *event_of(struct rdma_cm_event *e)
{
	return VB_CONTAINER_OF(e, struct rcm_event, pub);
}

/* Is @e a connection request that this process must report to the next broker
 * if the present one ends? A datagram request (SIDR) is not, because its sender
 * repeats it, and neither is an iWARP request, which does not come from the
 * broker. */
static bool is_to_be_resumed(const struct rcm_event *e)
{
	return e->m.event == IPC_CM_REQUEST && !e->stream &&
	       e->m.type != IPC_CM_UD;
}

/* Puts the message @m into @e and queues @e for the id that @m names. Frees @e
 * if there is no such id or the id has no channel. @e is NULL when the caller
 * had no memory: then this function only updates the record of the id. */
static void put_arrived(const struct vb_ipc_cm *m, struct rcm_event *e)
{
	struct rcm_id *id;

	pthread_mutex_lock(&rcm.lock);
	id = rcm_id_find(m->event == IPC_CM_REQUEST ? m->listener : m->id);
	if (id && m->event != IPC_CM_REQUEST) {
		rcm_note_heard(id, m);
		id->asked_at = 0;
	}
	if (e && id && id->pub.channel) {
		e->id = id;
		e->m = *m;
		rcm_channel_push(rcm_channel_of(id->pub.channel), e);
		if (is_to_be_resumed(e))
			rcm_unseen_add(e);
		e = NULL;
	}
	pthread_mutex_unlock(&rcm.lock);
	rcm_event_free(e);
}

void rcm_event_arrived(const struct vb_ipc_cm *m)
{
	put_arrived(m, calloc(1, sizeof(struct rcm_event)));
}

void rcm_event_iwarp(const struct vb_ipc_cm *m, uint32_t stream,
		     struct rcm_private *more)
{
	struct rcm_event *e = calloc(1, sizeof(*e));

	if (e) {
		e->stream = stream;
		e->more = more;
	} else {
		free(more);
	}
	put_arrived(m, e);
}

/* Queues an event that this library made. The caller holds rcm.lock. -EINVAL:
 * the id has no channel; -ENOMEM. */
static int push_made(struct rcm_id *id, const struct rdma_cm_event *pub)
{
	struct rcm_event *e;

	if (!id->pub.channel)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->id = id;
	e->local = true;
	e->pub = *pub;
	rcm_channel_push(rcm_channel_of(id->pub.channel), e);
	return 0;
}

static int push_local(struct rcm_id *id, const struct rdma_cm_event *pub)
{
	int rc;

	pthread_mutex_lock(&rcm.lock);
	rc = push_made(id, pub);
	pthread_mutex_unlock(&rcm.lock);
	return rc;
}

void rcm_event_removed(struct rcm_id *id)
{
	const struct rdma_cm_event pub = {
		.event = RDMA_CM_EVENT_DEVICE_REMOVAL,
	};

	if (id->removed)
		return;
	id->removed = true;
	if (push_made(id, &pub))
		vb_log(LOG_WARN,
		       "rdmacm: a removal of a device was not reported: out of memory or no event channel");
}

int rcm_event_local(struct rcm_id *id, enum rdma_cm_event_type what, int status)
{
	const struct rdma_cm_event pub = { .event = what, .status = status };

	return push_local(id, &pub);
}

/* A function of the ABI since version RDMACM_1.4, which an older header does
 * not declare. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

VB_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id,
				  enum rdma_cm_event_type event, int status,
				  uint64_t arg)
{
	struct rdma_cm_event pub = { .event = event, .status = status };
	int rc = -EINVAL;

	memcpy(&pub.param, &arg, sizeof(arg));
	if (id && id->channel && (int)event == RCM_EVENT_USER)
		rc = push_local(rcm_id_of(id), &pub);
	if (rc == -EINVAL)
		return rcm_why_refuse(
			NULL, __func__,
			"it needs an id with an event channel, and "
			"the event RDMA_CM_EVENT_USER");
	return rc ? rcm_fail(-rc) : 0;
}

int rcm_event_group(struct rcm_id *id, const struct rdma_ud_param *ud)
{
	const struct rdma_cm_event pub = {
		.event = RDMA_CM_EVENT_MULTICAST_JOIN,
		.param.ud = *ud,
	};

	return push_local(id, &pub);
}

VB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct rcm_event *e;

	if (!event)
		return rcm_why_refuse(NULL, __func__, "there is no event");
	e = event_of(event);
	pthread_mutex_lock(&rcm.lock);
	e->id->acked++;
	pthread_cond_broadcast(&e->id->acks);
	pthread_mutex_unlock(&rcm.lock);
	rcm_event_free(e);
	return 0;
}

static int event_take_next(struct rcm_channel *c, struct rdma_cm_event **event)
{
	int cancel = vb_cancel_off(), rc;
	bool done = false;
	struct rcm_event *e;

	do {
		rc = rcm_channel_wait(c, &e, cancel);
		if (rc)
			break;
		e->pub.id = &e->id->pub;
		done = rcm_event_take(e);
		if (done)
			*event = &e->pub;
		else
			(void)rdma_ack_cm_event(&e->pub);
	} while (!done);
	vb_cancel_back(cancel);
	return rc;
}

/*
 * Waits for an event. A thread that waits here while another destroys the
 * channel sleeps for ever, as with the kernel's channel, which the blocked
 * read(2) keeps open. Programs rely on that: rping destroys its channel at its
 * end, and an error from this call would become its exit status.
 */
VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				struct rdma_cm_event **event)
{
	struct rcm_channel *c;
	int rc;

	if (!channel || !event)
		return rcm_why_refuse(
			NULL, __func__,
			"there is no channel, or no place for the "
			"event");
	c = rcm_channel_of(channel);
	rcm_channel_enter(c);
	pthread_cleanup_push(rcm_channel_leave, c);
	rc = event_take_next(c, event);
	pthread_cleanup_pop(1);
	return rc ? rcm_fail(-rc) : 0;
}

int rcm_event_complete(struct rcm_id *id)
{
	int status;

	if (!id->sync)
		return 0;
	if (id->pub.event) {
		(void)rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -1;
	status = id->pub.event->status;
	if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
		return rcm_pass(ECONNREFUSED);
	/* The device has been removed, so the operation that this call waits
	 * for will never complete. */
	if (id->pub.event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return rcm_fail_of(ENODEV,
				   "a call on an id whose device is gone");
	return status ? rcm_pass(status < 0 ? -status : status) : 0;
}

VB_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	// clang-format off
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED]	 = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR]	 = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED]	 = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR]	 = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST]	 = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR]	 = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE]	 = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED]	 = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED]	 = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED]	 = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL]	 = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN]	 = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR]	 = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE]	 = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT]	 = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
		[RCM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[RCM_EVENT_ADDRINFO_ERROR]	 = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[RCM_EVENT_USER]		 = "RDMA_CM_EVENT_USER",
	};
	// clang-format on

	return (unsigned)event < VB_COUNT(names) ? names[event]
						 : "UNKNOWN EVENT";
}
