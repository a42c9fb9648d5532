/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses on InfiniBand. An IPoIB interface is a network interface whose
 * process (`verbena ipoib`) knows the adapter and the GIDs of neighbours
 * (wire/ipoib.h). This file asks it, so that rdma_cm resolves IP addresses to
 * GIDs of the fabric.
 */
#include "front/rdmacm/rdmacm.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/thread.h"
#include "engine/fabric_path.h"
#include "engine/ipoib_path.h"
#include "wire/ipoib.h"

/* How long to wait for an answer about the interface itself. The interface's
 * process already knows this answer. */
#define OWN_WAIT VB_SEC
/* How long to wait for an answer about a neighbour before a thread waits
 * instead. The process already knows most neighbours, so most answers come in
 * this time. */
#define SHORT_WAIT (2 * VB_MSEC)
#define DEFAULT_MS 2000
/* pause between two questions, when the process has no place for one more
 * program */
#define NAP (5 * VB_MSEC)

struct rcm_asker {
	struct rcm_id *id;
	rcm_ipoib_take *take;
	char name[IF_NAMESIZE]; /* name of the interface */
	struct vb_ipoib m;	/* the question, later the answer */
	vb_time due;		/* when to give up */
	pthread_t thread;
	bool started; /* @thread was started */
	/* protects @fd and @ends */
	pthread_mutex_t lock;
	int fd;	   /* the connection to the process; -1: none */
	bool ends; /* @take must not be called any more */
};

static bool ipoib_is_at(const struct ifaddrs *i, const struct vb_gid *ip)
{
	struct vb_gid gid;

	if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET &&
			     i->ifa_addr->sa_family != AF_INET6))
		return false;
	gid = rcm_gid_of(i->ifa_addr);
	return vb_gid_equal(&gid, ip);
}

/* Finds the name of the interface that has the address @ip. */
static bool ipoib_interface(const struct vb_gid *ip, char name[IF_NAMESIZE])
{
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (ipoib_is_at(i, ip))
			break;
	if (i)
		snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(list);
	return i;
}

int rcm_ipoib_choose(struct rcm_id *id, const struct vb_gid *ip)
{
	char name[IF_NAMESIZE];
	struct vb_ipoib own;
	int rc;

	if (!rcm.has_ib || !ipoib_interface(ip, name))
		return -ENODEV;
	rc = vb_ipoib_own(name, OWN_WAIT, &own);
	if (rc)
		return rc == -EAGAIN || rc == -ETIMEDOUT ? rc : -ENODEV;
	rc = rcm_device_choose(id, &own.gid, RCM_IB);
	if (rc)
		return rc;
	id->path.pkey = own.pkey;
	id->path.ifindex = if_nametoindex(name);
	if (id->pub.ps == RDMA_PS_IPOIB && own.qkey)
		id->qkey = own.qkey;
	return 0;
}

/* --- neighbours --- */

/* Connects, and sends the question. -EPIPE: the process has no place for one
 * more program. */
static int asker_begin(struct rcm_asker *a)
{
	int fd = vb_ipoib_reach(a->name), rc = fd;

	if (fd == -EAGAIN)
		return -EPIPE;
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&a->lock);
	if (a->ends)
		rc = -ECANCELED;
	else
		a->fd = fd;
	pthread_mutex_unlock(&a->lock);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	rc = vb_ipoib_say(fd, &a->m, a->due);
	return rc == -ECONNRESET ? -EPIPE : rc;
}

static void asker_hang_up(struct rcm_asker *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	pthread_mutex_unlock(&a->lock);
}

/* Waits for the answer until @due. If the process has closed the connection,
 * because it serves many others, asks it again. */
static int asker_wait(struct rcm_asker *a, vb_time due)
{
	const struct vb_ipoib question = a->m;
	int rc;

	for (;;) {
		rc = a->fd >= 0 ? vb_ipoib_hear(a->fd, &a->m, due) : -EPIPE;
		if (rc != -EPIPE)
			return rc;
		asker_hang_up(a);
		if (vb_clock_read() + NAP >= due)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ 0, (long)NAP }, NULL);
		a->m = question;
		rc = asker_begin(a);
		if (rc && rc != -EPIPE)
			return rc;
	}
}

static void asker_tell(struct rcm_asker *a, int rc)
{
	bool ends;

	asker_hang_up(a);
	pthread_mutex_lock(&a->lock);
	ends = a->ends;
	pthread_mutex_unlock(&a->lock);
	/* rcm_ipoib_forget() waits for this thread, so the id is still there */
	if (!ends)
		a->take(a->id, rc, &a->m.gid);
}

static void *asker_run(void *arg)
{
	struct rcm_asker *a = arg;

	asker_tell(a, asker_wait(a, a->due));
	return NULL;
}

/* Starts the thread, which receives no signal that the program waits for. */
static int asker_start(struct rcm_asker *a)
{
	int rc;

	rc = vb_thread_start(&a->thread, NULL, asker_run, a);
	a->started = rc == 0;
	return -rc;
}

static struct rcm_asker *make_asker(struct rcm_id *id, int timeout_ms,
				    rcm_ipoib_take *take)
{
	struct rcm_asker *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->id = id;
	a->take = take;
	a->fd = -1;
	a->due = vb_clock_read() +
		 (timeout_ms > 0 ? (unsigned)timeout_ms : DEFAULT_MS) * VB_MSEC;
	pthread_mutex_init(&a->lock, NULL);
	return a;
}

/* Fills in the question for @ip. If @ip is an address of this host, no host on
 * the network answers for it, so the question goes to the process of the IPoIB
 * interface that has @ip, which knows the interface's GID. False: no interface
 * has @from. */
static bool fill_question(struct rcm_asker *a, const struct vb_gid *from,
			  const struct vb_gid *ip)
{
	char own[IF_NAMESIZE];

	a->m = (struct vb_ipoib){ .op = IPOIB_ASK,
				  .version = VB_IPOIB_VERSION,
				  .ip = *ip };
	if (!ipoib_interface(from, a->name))
		return false;
	if (ipoib_interface(ip, own)) {
		a->m.op = IPOIB_OWN;
		memcpy(a->name, own, sizeof(own));
	}
	return true;
}

void rcm_ipoib_forget(struct rcm_id *id)
{
	struct rcm_asker *a = id->asker;

	id->asker = NULL;
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	if (a->fd >= 0)
		shutdown(a->fd, SHUT_RDWR);
	pthread_mutex_unlock(&a->lock);
	/* a child of fork() has no copy of the thread */
	if (a->started && id->forks == rcm.forks)
		pthread_join(a->thread, NULL);
	asker_hang_up(a);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int rcm_ipoib_ask(struct rcm_id *id, const struct vb_gid *from,
		  const struct vb_gid *ip, int timeout_ms, rcm_ipoib_take *take)
{
	struct rcm_asker *a;
	int rc;

	rcm_ipoib_forget(id);
	a = id->asker = make_asker(id, timeout_ms, take);
	if (!a)
		return -ENOMEM;
	if (!fill_question(a, from, ip))
		return -ENODEV;
	rc = asker_begin(a);
	if (rc == 0)
		rc = vb_ipoib_hear(
			a->fd, &a->m,
			VB_MIN(a->due, vb_clock_read() + SHORT_WAIT));
	if (rc != -ETIMEDOUT && rc != -EPIPE) {
		asker_tell(a, rc);
		return 0;
	}
	return asker_start(a);
}
