/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm tells on standard error (core/why.h): why a connection was not
 * made, and that a peer has not answered for ANSWER_LATE. A timer, which
 * the thread of the session watches, finds the latter: until the connection
 * manager gives up, a minute may pass.
 */
#include "front/rdmacm/rdmacm.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "wire/mad.h"

#define ANSWER_LATE (4 * VB_SEC)
/* the most late ids whose paths find_late() copies in one call */
#define LATE_MOST 8

/* A timer that expires when a request may be late; -1: not made yet. Under
 * rcm.lock; the thread of the session reads it without. */
static _Atomic int late = -1;

int rcm_why_fd(void)
{
	return late;
}

/*
 * Whether the program bound an id to an address of this host that no device
 * has. Some programs (libfabric) bind an id to each address to find those of
 * devices. So such a bind counts as a mistake only when the process ends, has
 * tried no other address that no device has, and no id has got a device. The
 * fields are atomic, because the thread that ends the process may not wait for
 * a lock.
 */
enum { NOTHING_ASKED, ADDRESS_REFUSED, ALL_TRIED, DEVICE_FOUND };
static struct {
	_Atomic int what;
	_Atomic uint64_t gid[2]; /* the first address that was refused */
} asked;

void rcm_why_served(void)
{
	asked.what = DEVICE_FOUND;
}

static void refuse_later(const struct sockaddr *to)
{
	const struct vb_gid gid = rcm_gid_of(to);
	int was = NOTHING_ASKED;
	uint64_t half[2];

	memcpy(half, gid.raw, sizeof(half));
	if (atomic_compare_exchange_strong(&asked.what, &was,
					   ADDRESS_REFUSED)) {
		asked.gid[0] = half[0];
		asked.gid[1] = half[1];
	} else if (was == ADDRESS_REFUSED &&
		   (asked.gid[0] != half[0] || asked.gid[1] != half[1])) {
		atomic_compare_exchange_strong(&asked.what, &was,
					       ALL_TRIED);
	}
}

void rcm_why_after_fork(void)
{
	late = -1;
	asked.what = NOTHING_ASKED;
}

void rcm_why_begin(void)
{
	if (late >= 0)
		return;
	late = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (late >= 0)
		vb_fork_closes(late);
}

/* Let the timer expire after @wait, unless it runs. The caller holds
 * rcm.lock. */
static void arm(vb_time wait)
{
	const struct itimerspec at = {
		.it_value = { (time_t)(wait / VB_SEC), (long)(wait % VB_SEC) },
	};
	struct itimerspec runs;

	if (late < 0 || timerfd_gettime(late, &runs) < 0 ||
	    runs.it_value.tv_sec || runs.it_value.tv_nsec)
		return;
	(void)timerfd_settime(late, 0, &at, NULL);
}

void rcm_why_asks(struct rcm_id *id)
{
	pthread_mutex_lock(&rcm.lock);
	id->asked_at = vb_clock_read();
	arm(ANSWER_LATE);
	pthread_mutex_unlock(&rcm.lock);
}

/* Returns a number for the peer and port to which @path leads. What the user is
 * told is counted by this number and not by the id, because a program that
 * tries to connect again makes a new id. */
static uint64_t object_of(const struct vb_ipc_cm *path)
{
	uint64_t h = path->dst_port;

	for (unsigned i = 0; i < sizeof(path->dst.raw); i++)
		h = h * 31 + path->dst.raw[i];
	return h;
}

static const struct vb_gid *name_of(const struct vb_ipc_cm *path)
{
	return vb_gid_is_zero(&path->dst_name) ? &path->dst : &path->dst_name;
}

static void tell_late(const struct vb_ipc_cm *path, const char *how)
{
	char text[VB_GID_TEXT];

	vb_why(path->place ? WHY_CM_SILENCE_IB : WHY_CM_SILENCE,
	       object_of(path),
	       "rdmacm: asked %s port %u for a connection, no answer %s",
	       vb_gid_address(name_of(path), text), path->dst_port, how);
}

/* Copy the paths of ids that wait for too long to @paths, LATE_MOST at most,
 * and set *@count to their number. Returns for how long the next id may still
 * wait, or VB_NEVER. The caller holds rcm.lock. */
static vb_time find_late(vb_time now, struct vb_ipc_cm paths[LATE_MOST],
			 unsigned *count)
{
	vb_time next = VB_NEVER;

	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (struct rcm_id *id = rcm.ids[i]; id; id = id->next) {
			vb_time waited = now - id->asked_at;

			if (!id->asked_at)
				continue;
			if (waited < ANSWER_LATE) {
				next = VB_MIN(next, ANSWER_LATE - waited);
				continue;
			}
			if (*count == LATE_MOST)
				continue;
			paths[(*count)++] = id->path;
			id->asked_at = 0;
		}
	return next;
}

/* Tells the user of late answers without rcm.lock: standard error may be a pipe
 * that nobody reads, and the program's other calls must go on meanwhile. */
void rcm_why_take(void)
{
	struct vb_ipc_cm paths[LATE_MOST];
	unsigned count;
	uint64_t times;
	vb_time next;

	(void)!read(late, &times, sizeof(times));
	do {
		count = 0;
		pthread_mutex_lock(&rcm.lock);
		next = find_late(vb_clock_read(), paths, &count);
		if (next != VB_NEVER)
			arm(next);
		pthread_mutex_unlock(&rcm.lock);
		for (unsigned i = 0; i < count; i++)
			tell_late(&paths[i], "for 4 s");
	} while (count == LATE_MOST);
}

void rcm_why_rejected(const struct rcm_id *id, int status)
{
	char text[VB_GID_TEXT];

	/* If the peer's program rejects a connection, that is no mistake. */
	if (status == CM_REJ_CONSUMER || id->state != RCM_CONNECTING)
		return;
	vb_gid_address(name_of(&id->path), text);
	if (status == CM_REJ_INVALID_SERVICE_ID || status == -ECONNREFUSED)
		vb_why(WHY_CM_NOBODY, object_of(&id->path),
		       "rdmacm: %s port %u refuses a connection: no program "
		       "listens there",
		       text, id->path.dst_port);
	else if (status > 0)
		vb_why(WHY_CM_PEER, object_of(&id->path),
		       "rdmacm: %s port %u rejects a connection with reason %d "
		       "of the connection manager",
		       text, id->path.dst_port, status);
}

void rcm_why_unreachable(const struct rcm_id *id, int status)
{
	if (status == -ETIMEDOUT)
		tell_late(&id->path, "to any try");
	else if (status == -ECONNREFUSED && id->state == RCM_CONNECTING)
		tell_late(&id->path,
			  "(heard nothing: its UDP port 4791 is closed)");
}

int rcm_why_call(const struct rcm_id *id, const char *call, int error)
{
	static const char *const states[] = {
		[RCM_NEW] = "new",
		[RCM_BOUND] = "bound",
		[RCM_RESOLVED] = "resolved to an address",
		[RCM_ROUTED] = "resolved to a route",
		[RCM_CONNECTING] = "connecting or connected",
	};

	if (error == EINVAL && (unsigned)id->state < VB_COUNT(states) &&
	    states[id->state])
		vb_why(WHY_CM_CALL, (uintptr_t)id,
		       "rdmacm: %s refused: the id is %s, or an argument is "
		       "out of range",
		       call, states[id->state]);
	else if (error == EADDRINUSE)
		vb_why(WHY_CM_PORT, (uintptr_t)id,
		       "rdmacm: %s refused: another id has the port", call);
	return rcm_fail_of(error, call);
}

int rcm_why_refuse(const struct rcm_id *id, const char *call, const char *why)
{
	vb_why(WHY_CM_CALL, (uintptr_t)id ^ (uintptr_t)why,
	       "rdmacm: %s refused: %s", call, why);
	return rcm_fail_of(EINVAL, call);
}

/* Returns what the errno @error means for an address that was not resolved or
 * not bound. */
static const char *address_reason(int error)
{
	switch (error) {
	case EADDRNOTAVAIL:
		return "this host does not have the address";
	case ENODEV:
		return "no RDMA device of this process has the address";
	case EINVAL:
		return "the address families of the two ends differ, or the "
		       "port space does not fit the address";
	case EPROTONOSUPPORT:
		return "the port space does not fit the address";
	default:
		return strerror(error);
	}
}

static void tell_address(const struct vb_gid *gid, int rc)
{
	char text[VB_GID_TEXT];
	uint64_t object = 0;

	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		object = object * 31 + gid->raw[i];
	vb_why(WHY_CM_ADDRESS, object,
	       "rdmacm: %s is not resolved to a device: %s",
	       vb_gid_address(gid, text), address_reason(-rc));
}

void rcm_why_address(const struct sockaddr *to, int rc)
{
	const struct vb_gid gid = rcm_gid_of(to);

	tell_address(&gid, rc);
}

void rcm_why_bind(const struct sockaddr *to, int rc)
{
	if (rc != -ENODEV) {
		rcm_why_address(to, rc);
		return;
	}
	vb_why_quietly("rdmacm: rdma_bind_addr to an address that no device "
		       "has");
	refuse_later(to);
}

__attribute__((destructor)) static void tell_refused(void)
{
	uint64_t half[2] = { asked.gid[0], asked.gid[1] };
	struct vb_gid gid;

	if (asked.what != ADDRESS_REFUSED)
		return;
	memcpy(gid.raw, half, sizeof(gid.raw));
	tell_address(&gid, -ENODEV);
}
