/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and stops the process's one engine: the first vb_engine_open() starts
 * it, the last vb_engine_close() stops it. */
#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/rand.h"
#include "link/udp.h"

/* A look at a link without frames takes at most this time on a processor of
 * usual speed. */
#define LOOK ((vb_time)300)
/* The longest time of such a look that counts. */
#define LOOK_MOST (10 * VB_USEC)
#define LOOKS	  32

static struct vb_mutex open_lock = VB_MUTEX_INITIALIZER(RANK_OPEN);
/* The engine of this process; written under open_lock. */
struct vb_engine *_Atomic vb_engine_now;
/* The number of forks between the process that loaded this library and this
 * one. */
static _Atomic unsigned forks;

unsigned vb_engine_forks(void)
{
	return atomic_load(&forks);
}

/*
 * Runs in the child of a fork, which has none of its parent's threads, and RDMA
 * objects do not survive a fork. The child forgets the engine, so that it may
 * open devices of its own. It closes the slot's sockets (base/fork.h), so that
 * the slot is free once the parent has ended.
 */
static void begin_anew(void)
{
	atomic_fetch_add(&forks, 1);
	atomic_store(&vb_engine_now, NULL);
	vb_mutex_init(&open_lock, RANK_OPEN);
}
VB_FORGET_AT_FORK(begin_anew)

/* Runs when the program exits: send delayed ACKs and batches that wait for
 * room. */
static void at_exit(void)
{
	struct vb_engine *e = vb_engine_running();

	if (!e || !vb_mutex_trylock(&e->rx))
		return;
	vb_drive_last(e);
	vb_mutex_unlock(&e->rx);
	vb_held_settle_all(e);
	vb_stream_settle(e);
}

static void watch_program(void)
{
	static bool watching;

	if (!watching)
		watching = atexit(at_exit) == 0;
}

/*
 * Functions for an engine without a RoCE device, which has no slot from the
 * broker: iWARP needs only TCP's ports.
 */

static int no_fd(const struct vb_link *l)
{
	return -1;
}

static int no_frames(struct vb_link *l, struct vb_rxq *q)
{
	q->count = 0;
	return 0;
}

static void eng_drop_frames(struct vb_link *l, struct vb_txq *q)
{
	vb_txq_reset(q);
}

static bool send_nowhere(struct vb_link *l, struct vb_txq *q)
{
	vb_txq_reset(q);
	return true;
}

static void close_nothing(struct vb_link *l)
{
}

static const struct vb_link_ops no_link_ops = {
	.name = "none",
	.send = send_nowhere,
	.drop = eng_drop_frames,
	.recv = no_frames,
	.fd = no_fd,
	.close = close_nothing,
};
static struct vb_link no_link = { &no_link_ops };

static void stand_alone(struct vb_engine *e)
{
	e->lease = (struct vb_lease){
		.rx_fd = -1,
		.name_fd = -1,
		.vault_fd = -1,
		.broker_fd = -1,
		.retry_at = VB_NEVER,
	};
	e->link = &no_link;
	atomic_init(&e->link_fd, -1);
	e->soon.fd = e->back.fd = e->slot_fd = -1;
	atomic_init(&e->slowdown, 1);
	vb_poll_init(&e->poll, 1);
}

/* Returns a socket at which no frame arrives. Without a link,
 * measure_slowdown() reads from this socket. */
static int a_socket(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 ? fd : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static vb_time time_look(struct vb_engine *e, int alone) VB_REQUIRES(e->rx)
{
	vb_time from = vb_now();
	char byte;

	if (alone >= 0)
		(void)!recv(alone, &byte, sizeof(byte), MSG_DONTWAIT);
	else if (e->link->ops->recv(e->link, &e->rxq) < 0)
		return LOOK_MOST;
	return vb_now() - from;
}

/*
 * Measures how slow this machine is, by empty looks at the link: on a slow or
 * emulated processor everything takes many times as long, so "recent", "close"
 * and "soon" must last longer as well. The fastest of several looks counts,
 * since a disturbance can only lengthen a look.
 */
static unsigned measure_slowdown(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	int alone = e->link == &no_link ? a_socket() : -1;
	vb_time best = LOOK_MOST;

	for (unsigned i = 0; i < LOOKS; i++)
		best = VB_MIN(best, time_look(e, alone));
	if (alone >= 0)
		close(alone);
	return (unsigned)VB_MAX(best / LOOK, 1u);
}

static void set_slowdown(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	unsigned slowdown = measure_slowdown(e);

	atomic_store_explicit(&e->slowdown, slowdown, memory_order_relaxed);
	vb_poll_init(&e->poll, slowdown);
	if (slowdown > 1)
		vb_log(LOG_INFO,
		       "engine: this machine is %u times slower than usual",
		       slowdown);
}

/* Open the UDP link. The link and the lease each close a descriptor of their
 * own; the lease shows its descriptor to a new broker, to prove which slot it
 * has. */
static int open_udp(int rx_fd, struct vb_link **link)
{
	int fd = fcntl(rx_fd, F_DUPFD_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	vb_fork_closes(fd);
	rc = vb_udp_open(fd, link);
	if (rc)
		close(fd);
	return rc;
}

static int eng_open_link(struct vb_engine *e)
{
	struct vb_lease lease;
	struct vb_link *link;
	int rc = vb_lease_claim(&lease);

	if (rc)
		return rc;
	rc = open_udp(lease.rx_fd, &link);
	if (rc) {
		vb_lease_release(&lease);
		return rc;
	}
	/* Hold rx, because the program can be polling an iWARP device. */
	vb_mutex_lock(&e->rx);
	e->lease = lease;
	e->link = link;
	atomic_store(&e->link_fd, link->ops->fd(link));
	set_slowdown(e);
	vb_mutex_unlock(&e->rx);
	return 0;
}

static void close_link(struct vb_engine *e)
{
	e->link->ops->close(e->link);
	vb_lease_release(&e->lease);
}

/* The first RoCE device opens while the engine runs without a link. The engine
 * thread is restarted, because it reads the link's descriptors only when it
 * starts. */
static int join_network(struct vb_engine *e)
{
	int rc, again;

	vb_service_stop(e);
	atomic_store(&e->stop, false);
	rc = eng_open_link(e);
	if (rc == 0)
		vb_mux_join(e);
	if (rc == 0 && atomic_load(&e->forward))
		vb_forward_join(atomic_load(&e->forward));
	again = vb_service_start(e);
	return rc ? rc : again;
}

static int start_engine(bool in_network)
{
	struct vb_engine *e = calloc(1, sizeof(*e));
	int rc = -ENOMEM;

	if (!e)
		return -ENOMEM;
	/* QPN 0 and 1 are the management queue pairs, but they are in slot 0,
	 * so any first index is permitted here. A random one keeps a restarted
	 * program from getting packets that peers still send to its
	 * predecessor. */
	e->qps = vb_idtab_create(1u << VB_QPN_BITS,
				 vb_rand32() & ((1u << VB_QPN_BITS) - 1));
	if (!e->qps)
		goto free_engine;
	atomic_init(&e->raw_fd, -1);
	atomic_init(&e->stream_fd, -1);
	atomic_init(&e->fabric_fd, -1);
	atomic_init(&e->roce.fd, -1);
	e->control_fd = -1;
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake_fd < 0) {
		rc = -errno;
		goto destroy_qps;
	}
	vb_mutex_init(&e->list_lock, RANK_LIST);
	vb_mutex_init(&e->group_lock, RANK_GROUPS);
	vb_mutex_init(&e->rx, RANK_RX);
	vb_mutex_init(&e->fabric_lock, VB_RANK_LEAF);
	vb_mutex_init(&e->timer_lock, VB_RANK_LEAF);
	vb_lend_init(e);
	vb_timers_init(&e->timers);
	atomic_init(&e->due, VB_NEVER);
	vb_mutex_init(&e->moderation, RANK_MODERATION);
	vb_timers_init(&e->cq_timers);
	stand_alone(e);
	if (in_network) {
		rc = eng_open_link(e);
	} else {
		vb_mutex_lock(&e->rx);
		set_slowdown(e);
		vb_mutex_unlock(&e->rx);
		rc = 0;
	}
	if (rc)
		goto close_wake;
	vb_wait_open(e);
	vb_mux_open(e);
	rc = vb_service_start(e);
	if (rc)
		goto close_paths;
	watch_program();
	atomic_store_explicit(&vb_engine_now, e, memory_order_release);
	return 0;

close_paths:
	vb_mux_close(e);
	vb_wait_close(e);
	vb_host_slot_close(e);
	close_link(e);
close_wake:
	close(e->wake_fd);
destroy_qps:
	vb_idtab_destroy(e->qps);
free_engine:
	free(e);
	return rc;
}

/* Stop the engine after the program has destroyed all objects. The timers can
 * still hold one of a queue pair that a thread stepped while it was being
 * destroyed (engine/drive.c). */
static void stop_engine(struct vb_engine *e)
{
	vb_service_stop(e);
	vb_wait_stop(e);
	atomic_store(&vb_engine_now, NULL);
	vb_log(LOG_INFO,
	       "engine: %llu frames arrived for no queue pair of this process",
	       (unsigned long long)e->strays);
	if (atomic_load(&e->forward))
		vb_forward_destroy(atomic_load(&e->forward));
	vb_mux_close(e);
	vb_wait_close(e);
	vb_host_slot_close(e);
	vb_engine_roce1_close(e);
	close_link(e);
	vb_raw_close(e);
	vb_stream_close_all(e);
	if (e->control_fd >= 0) {
		close(e->control_fd);
		close(atomic_load(&e->fabric_fd));
	}
	close(e->wake_fd);
	while (vb_timers_pop(&e->timers, VB_NEVER - 1))
		;
	vb_timers_fini(&e->timers);
	vb_timers_fini(&e->cq_timers);
	vb_idtab_destroy(e->qps);
	vb_mutex_fini(&e->list_lock);
	vb_mutex_fini(&e->rx);
	vb_mutex_fini(&e->fabric_lock);
	vb_mutex_fini(&e->timer_lock);
	vb_mutex_fini(&e->moderation);
	vb_mutex_fini(&e->lend.lock);
	free(e);
}

static void stop_if_idle(void)
{
	struct vb_engine *e = vb_engine_running();

	if (e && !e->adapters)
		stop_engine(e);
}

/* Does a port of the device need the socket of port 4791? */
static bool is_in_network(const struct vb_device *d)
{
	for (unsigned i = 0; i < d->port_count; i++)
		if (d->port[i].kind == DEVICE_ROCE ||
		    d->port[i].kind == DEVICE_ROCEV1)
			return true;
	return false;
}

int vb_engine_open(const struct vb_device *device, struct vb_async *async,
		   struct vb_adapter **adapter)
{
	bool in_network = is_in_network(device);
	int rc = 0;

	vb_mutex_lock(&open_lock);
	if (!vb_engine_running())
		rc = start_engine(in_network);
	else if (in_network && vb_engine_running()->link == &no_link)
		rc = join_network(vb_engine_running());
	if (rc == 0) {
		struct vb_engine *e = vb_engine_running();

		vb_mutex_lock(&e->list_lock);
		rc = vb_adapters_open(e, device, async, adapter);
		vb_mutex_unlock(&e->list_lock);
	}
	if (rc)
		stop_if_idle();
	vb_mutex_unlock(&open_lock);
	return rc;
}

void vb_engine_share_xrc(void)
{
	struct vb_engine *e;
	struct vb_forward *forward;
	int rc;

	vb_mutex_lock(&open_lock);
	e = vb_engine_running();
	if (e && !atomic_load(&e->forward)) {
		rc = vb_forward_create(e, &forward);
		if (rc)
			vb_log(LOG_INFO,
			       "xrc: cannot share domains with other processes: %s",
			       strerror(-rc));
		else
			atomic_store(&e->forward, forward);
		vb_engine_wake(e);
	}
	vb_mutex_unlock(&open_lock);
}

void vb_engine_close(struct vb_adapter *adapter, struct vb_async *async)
{
	struct vb_engine *e;

	vb_mutex_lock(&open_lock);
	e = vb_engine_running();
	vb_mutex_lock(&e->list_lock);
	vb_adapters_close(e, adapter, async);
	vb_mutex_unlock(&e->list_lock);
	stop_if_idle();
	vb_mutex_unlock(&open_lock);
}

void vb_engine_wake(struct vb_engine *e)
{
	const uint64_t one = 1;

	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_DEBUG, "engine: cannot wake the engine thread");
}
