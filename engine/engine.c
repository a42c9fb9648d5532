/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's one engine: start and stop in order, adapters it serves. */
#include "core/lock_order.h"
#include "engine/engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/rand.h"
#include "engine/counters.h"
#include "link/udp.h"

/* A round trip on a good network: who waits for longer, waits for a while. */
#define SPIN_MOST  (30 * VB_USEC)
#define SPIN_LEAST (2 * VB_USEC)
#define ALONE	   (3 * VB_USEC) /* a yield to nobody takes less */

#define NEAR_IS_RECENT	(100 * VB_USEC)
#define LOOK_AT_LINK	(4 * VB_USEC)
#define POLLS_ARE_CLOSE (20 * VB_USEC)
#define SPINS		32 /* as many close polls */
#define DUE_A_POLL	4  /* queue pairs stepped by an empty one */

/* An empty look at the link takes at most this on today's processors... */
#define LOOK	  ((vb_time)300)
#define LOOK_MOST (10 * VB_USEC) /* ...and no more than this anywhere */
#define LOOKS	  32

static struct vb_mutex open_lock = VB_MUTEX_INITIALIZER(RANK_OPEN);
static struct vb_engine *_Atomic engine; /* open_lock to write */
static _Atomic unsigned forks;		 /* between the first process and us */

unsigned vb_engine_forks(void)
{
	return atomic_load(&forks);
}

struct vb_engine *vb_engine_running(void)
{
	/* Pairs with the release in start_engine(). */
	return atomic_load_explicit(&engine, memory_order_acquire);
}

/*
 * A child has none of its parent's threads, and RDMA objects do not cross a
 * fork. It forgets the engine, so that it may open devices of its own. The
 * slot's sockets are among the descriptors that it closes (base/fork.h), so
 * that the slot is free when the parent is gone.
 */
static void begin_anew(void)
{
	atomic_fetch_add(&forks, 1);
	atomic_store(&engine, NULL);
	vb_mutex_init(&open_lock, RANK_OPEN);
}
VB_FORGET_AT_FORK(begin_anew)

/* The program may not come back. */
static void eng_settle(struct vb_engine *e)
{
	if (!vb_mutex_trylock(&e->rx))
		return;
	vb_drive_owing(e, vb_now());
	vb_mutex_unlock(&e->rx);
}

/* Nobody comes back after this. */
static void at_exit(void)
{
	struct vb_engine *e = vb_engine_running();

	if (!e || !vb_mutex_trylock(&e->rx))
		return;
	vb_drive_last(e);
	vb_mutex_unlock(&e->rx);
	vb_room_settle_all(e);
	vb_stream_settle(e);
}

static void watch_program(void)
{
	static bool watching;

	if (!watching)
		watching = atexit(at_exit) == 0;
}

/*
 * Before the first RoCE device there is no slot and no broker: TCP's ports are
 * enough for iWARP. This stands in for the link.
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
	e->soon_fd = e->slot_fd = -1;
	atomic_init(&e->pace, 1);
	e->patience = SPIN_MOST;
}

/* Who has no link looks at a socket as a link's, that nobody sends to. */
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
 * How slow this machine is, in empty looks at the link: where processors are
 * interpreted, or slow, everything takes many times as long, and what is
 * "recent", "close" and "soon" must be too. The quickest of some, since what
 * disturbs one only makes it longer.
 */
static unsigned measure_pace(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	int alone = e->link == &no_link ? a_socket() : -1;
	vb_time best = LOOK_MOST;

	for (unsigned i = 0; i < LOOKS; i++)
		best = VB_MIN(best, time_look(e, alone));
	if (alone >= 0)
		close(alone);
	return (unsigned)VB_MAX(best / LOOK, 1u);
}

static void set_pace(struct vb_engine *e) VB_REQUIRES(e->rx)
{
	unsigned pace = measure_pace(e);

	atomic_store_explicit(&e->pace, pace, memory_order_relaxed);
	e->patience = vb_engine_span(e, SPIN_MOST);
	if (pace > 1)
		vb_log(LOG_INFO, "engine: %u times as slow as usual here",
		       pace);
}

/* The link closes its descriptor, the lease another: that shows a broker whose
 * slot it is. */
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
	vb_mutex_lock(&e->rx); /* a program may poll for its iWARP device */
	e->lease = lease;
	e->link = link;
	set_pace(e);
	vb_mutex_unlock(&e->rx);
	return 0;
}

static void close_link(struct vb_engine *e)
{
	e->link->ops->close(e->link);
	vb_lease_release(&e->lease);
}

/* The first RoCE device, and not the first device. The thread looks at the
 * link's descriptors when it starts. */
static int join_network(struct vb_engine *e)
{
	int rc, again;

	vb_service_stop(e);
	atomic_store(&e->stop, false);
	rc = eng_open_link(e);
	if (rc == 0)
		vb_mux_join(e);
	again = vb_service_start(e);
	return rc ? rc : again;
}

static int start_engine(bool in_network)
{
	struct vb_engine *e = calloc(1, sizeof(*e));
	int rc = -ENOMEM;

	if (!e)
		return -ENOMEM;
	/* QPN 0 and 1 are the specification's, in slot 0: any index will do
	 * here; a random first one keeps a restarted program from meeting its
	 * predecessor's packets. */
	e->qps = vb_idtab_create(1u << VB_QPN_BITS,
				 vb_rand32() & ((1u << VB_QPN_BITS) - 1));
	if (!e->qps)
		goto free_engine;
	atomic_init(&e->raw_fd, -1);
	atomic_init(&e->stream_fd, -1);
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake_fd < 0) {
		rc = -errno;
		goto destroy_qps;
	}
	vb_mutex_init(&e->list_lock, RANK_LIST);
	vb_mutex_init(&e->rx, RANK_RX);
	vb_mutex_init(&e->timer_lock, VB_RANK_LEAF);
	vb_timers_init(&e->timers);
	atomic_init(&e->due, VB_NEVER);
	vb_mutex_init(&e->moderation, RANK_MODERATION);
	vb_timers_init(&e->cq_timers);
	stand_alone(e);
	if (in_network) {
		rc = eng_open_link(e);
	} else {
		vb_mutex_lock(&e->rx);
		set_pace(e);
		vb_mutex_unlock(&e->rx);
		rc = 0;
	}
	if (rc)
		goto close_wake;
	vb_mux_open(e);
	rc = vb_service_start(e);
	if (rc)
		goto close_paths;
	watch_program();
	atomic_store_explicit(&engine, e, memory_order_release);
	return 0;

close_paths:
	vb_mux_close(e);
	close_link(e);
close_wake:
	close(e->wake_fd);
destroy_qps:
	vb_idtab_destroy(e->qps);
free_engine:
	free(e);
	return rc;
}

/* Everything made on it is gone; a timer may be left in the heap, of a queue
 * pair that was stepped while it was being destroyed (engine/drive.c). */
static void stop_engine(struct vb_engine *e)
{
	vb_service_stop(e);
	vb_wait_stop(e);
	atomic_store(&engine, NULL);
	vb_log(LOG_INFO, "engine: %llu frames came for no queue pair of ours",
	       (unsigned long long)e->strays);
	if (atomic_load(&e->forward))
		vb_forward_destroy(atomic_load(&e->forward));
	vb_mux_close(e);
	close_link(e);
	vb_raw_close(e);
	vb_stream_close_all(e);
	close(e->wake_fd);
	while (vb_timers_pop(&e->timers, VB_NEVER - 1))
		;
	vb_timers_fini(&e->timers);
	vb_timers_fini(&e->cq_timers);
	vb_idtab_destroy(e->qps);
	vb_mutex_fini(&e->list_lock);
	vb_mutex_fini(&e->rx);
	vb_mutex_fini(&e->timer_lock);
	vb_mutex_fini(&e->moderation);
	free(e);
}

static struct vb_open_adapter *find_adapter(struct vb_engine *e,
					    const char *name)
{
	struct vb_open_adapter *oa = e->adapters;

	while (oa && strcmp(oa->device.name, name) != 0)
		oa = oa->next;
	return oa;
}

static bool has_number(const struct vb_engine *e, unsigned number)
{
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		if (oa->adapter.number == number)
			return true;
	return false;
}

static unsigned free_number(const struct vb_engine *e)
{
	unsigned number = 0;

	while (has_number(e, number))
		number++;
	return number;
}

static int make_adapter(struct vb_engine *e, const struct vb_device *device,
			struct vb_open_adapter **out)
{
	struct vb_open_adapter *oa = calloc(1, sizeof(*oa));
	int rc;

	if (!oa)
		return -ENOMEM;
	rc = vb_adapter_init(&oa->adapter, device->name);
	if (rc)
		goto free_adapter;
	oa->device = *device;
	oa->adapter.guid = device->guid;
	oa->adapter.qps = e->qps;
	oa->adapter.qpn_base = e->lease.slot << VB_QPN_BITS;
	oa->adapter.rnic = device->kind == DEVICE_IWARP;
	oa->adapter.link = e->link;
	if (oa->adapter.rnic) {
		oa->adapter.transport = &vb_mux_stream_transport;
		oa->adapter.key_ops = &vb_mux_keys;
	} else {
		oa->adapter.transport = &vb_mux_transport;
		oa->adapter.key_ops = &vb_mux_keys;
		oa->adapter.forward_ops = &vb_engine_forward_ops;
	}
	oa->adapter.number = free_number(e);
	rc = vb_ports_setup(oa);
	if (rc)
		goto fini_adapter;
	vb_counter_file_open(&oa->adapter);
	if (oa->adapter.counters != oa->adapter.own_counters)
		vb_fork_closes(oa->adapter.counters_fd);
	oa->next = e->adapters;
	e->adapters = oa;
	*out = oa;
	return 0;

fini_adapter:
	vb_adapter_fini(&oa->adapter);
free_adapter:
	free(oa);
	return rc;
}

static void drop_adapter(struct vb_engine *e, struct vb_open_adapter *oa)
{
	struct vb_open_adapter **at = &e->adapters;

	while (*at != oa)
		at = &(*at)->next;
	*at = oa->next;
	vb_counter_file_close(&oa->adapter);
	vb_adapter_fini(&oa->adapter);
	free(oa);
}

static int open_adapter(struct vb_engine *e, const struct vb_device *device,
			struct vb_async *async, struct vb_adapter **adapter)
{
	struct vb_open_adapter *oa = find_adapter(e, device->name);
	struct vb_watcher *w = malloc(sizeof(*w));
	int rc = 0;

	if (!w)
		return -ENOMEM;
	if (!oa)
		rc = make_adapter(e, device, &oa);
	if (rc) {
		free(w);
		return rc;
	}
	*w = (struct vb_watcher){ async, oa->watchers };
	oa->watchers = w;
	oa->refs++;
	*adapter = &oa->adapter;
	return 0;
}

static void stop_if_idle(void)
{
	struct vb_engine *e = vb_engine_running();

	if (e && !e->adapters)
		stop_engine(e);
}

int vb_engine_open(const struct vb_device *device, struct vb_async *async,
		   struct vb_adapter **adapter)
{
	bool in_network = device->kind == DEVICE_ROCE;
	int rc = 0;

	vb_mutex_lock(&open_lock);
	if (!vb_engine_running())
		rc = start_engine(in_network);
	else if (in_network && vb_engine_running()->link == &no_link)
		rc = join_network(vb_engine_running());
	if (rc == 0) {
		struct vb_engine *e = vb_engine_running();

		vb_mutex_lock(&e->list_lock);
		rc = open_adapter(e, device, async, adapter);
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
			       "xrc: shared with no other process: %s",
			       strerror(-rc));
		else
			atomic_store(&e->forward, forward);
		vb_engine_wake(e);
	}
	vb_mutex_unlock(&open_lock);
}

static void stop_watching(struct vb_open_adapter *oa,
			  const struct vb_async *async)
{
	struct vb_watcher **at = &oa->watchers, *w;

	while ((*at)->async != async)
		at = &(*at)->next;
	w = *at;
	*at = w->next;
	free(w);
}

void vb_engine_close(struct vb_adapter *adapter, struct vb_async *async)
{
	struct vb_open_adapter *oa =
		VB_CONTAINER_OF(adapter, struct vb_open_adapter, adapter);
	struct vb_engine *e;

	vb_mutex_lock(&open_lock);
	e = vb_engine_running();
	vb_mutex_lock(&e->list_lock);
	stop_watching(oa, async);
	if (--oa->refs == 0)
		drop_adapter(e, oa);
	vb_mutex_unlock(&e->list_lock);
	stop_if_idle();
	vb_mutex_unlock(&open_lock);
}

/* Many programs exit without closing what they opened. Whoever has the lock
 * now may be a thread that is no more. */
static void __attribute__((destructor)) save_counts(void)
{
	struct vb_engine *e = vb_engine_running();

	if (!e || !vb_mutex_trylock(&e->list_lock))
		return;
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		vb_counter_file_save(&oa->adapter);
	vb_mutex_unlock(&e->list_lock);
}

void vb_engine_with_adapters(struct vb_engine *e,
			     void (*f)(struct vb_open_adapter *oa, void *arg),
			     void *arg)
{
	vb_mutex_lock(&e->list_lock);
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		f(oa, arg);
	vb_mutex_unlock(&e->list_lock);
}

/*
 * Nothing came for long: let others have the processor, such as the peer that
 * is to answer when there are more spinning programs than cores. Alone on its
 * core a program loses nothing by it. Where giving way brought what was waited
 * for, it is done sooner the next time.
 */
static bool has_spun_long(struct vb_engine *e, bool found, vb_time now)
{
	if (e->yielded)
		e->patience = found ? VB_MAX(e->patience / 2,
					     vb_engine_span(e, SPIN_LEAST))
				    : VB_MIN(e->patience * 2,
					     vb_engine_span(e, SPIN_MOST));
	if (found)
		e->found_at = now;
	e->yielded = now > e->found_at + e->patience;
	return e->yielded;
}

/* Peers of this host talk to us: the link, which costs a system call, is
 * looked at less often. */
static bool leaves_link_alone(const struct vb_engine *e, vb_time now)
{
	return now - e->near_at < vb_engine_span(e, NEAR_IS_RECENT) &&
	       now - e->looked_at < vb_engine_span(e, LOOK_AT_LINK);
}

/* As for packets: while it works, the thread stays away. */
static bool drain_streams(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	bool found;

	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	found = vb_stream_drain(e, now);
	if (found)
		e->near_at = now; /* the link can wait for a moment */
	return found;
}

static bool eng_drain_link(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	bool found = VB_UNLIKELY(e->raws != NULL) && vb_raw_drain(e, now);

	if (VB_UNLIKELY(e->streams != NULL) && drain_streams(e, now))
		found = true;
	if (leaves_link_alone(e, now))
		return found;
	e->looked_at = now;
	vb_drive_owing(e, now);
	if (e->link->ops->recv(e->link, &e->rxq) < 0 || e->rxq.count == 0)
		return found;
	vb_engine_at_work(e, now + vb_engine_span(e, VB_WORK_LASTS));
	e->polled = true;
	/* When it came, which is after what others have sent meanwhile. */
	vb_dispatch(e, vb_now());
	e->polled = false;
	return true;
}

/* Who polls all the time serves the lanes himself. */
static void note_spinning(struct vb_engine *e, bool found, vb_time from,
			  vb_time now, bool late)
{
	/* A moment in which others ran does not count. */
	vb_time back =
		VB_MAX(e->polled_at,
		       atomic_load_explicit(&e->back_at, memory_order_relaxed));
	bool close = from < back + vb_engine_span(e, POLLS_ARE_CLOSE);

	vb_engine_at_work(e, now);
	atomic_store_explicit(&e->looping, !found, memory_order_relaxed);
	if (!late) /* else one in between is not known of */
		e->streak = close ? e->streak + 1 : 0;
	e->polled_at = now;
	if (VB_LIKELY(e->streak < SPINS || !e->near ||
		      atomic_load_explicit(&e->spinning, memory_order_relaxed)))
		return;
	atomic_store(&e->spinning, true);
	vb_near_awake(e->near);
	vb_engine_wake(e);
}

/* What a peer of this host has sent, the program gets at once: the books are
 * kept by its next poll, which most often waits. */
static bool can_be_booked_later(struct vb_engine *e)
{
	if (atomic_load_explicit(&e->unbooked, memory_order_relaxed))
		return false;
	atomic_store_explicit(&e->unbooked, true, memory_order_relaxed);
	return true;
}

/* Who has found something may reply to it, and what is due would go before. */
static void wait_for_more(struct vb_engine *e, vb_time now) VB_REQUIRES(e->rx)
{
	vb_drive_gathered(e, now);
	if (VB_UNLIKELY(vb_drive_is_due(e, now)))
		vb_drive_due(e, now, DUE_A_POLL);
}

/* True: give way, as above. */
static bool drain_locked(struct vb_engine *e, bool near, vb_time from)
	VB_RELEASE(e->rx)
{
	vb_time now = from;
	bool late = atomic_load_explicit(&e->unbooked, memory_order_relaxed);
	bool found, yield;

	if (VB_UNLIKELY(late))
		atomic_store_explicit(&e->unbooked, false,
				      memory_order_relaxed);
	if (near || late)
		e->near_at = now;
	found = eng_drain_link(e, now) || near;
	if (found)
		now = vb_now();
	else
		wait_for_more(e, now);
	note_spinning(e, found, from, now, late);
	yield = has_spun_long(e, found || late, now);
	vb_mutex_unlock(&e->rx);
	return yield;
}

/*
 * Another thread drains, most often the engine's, which took over while others
 * had our processor. Spinning would keep it from them, and perhaps from that
 * very thread: so let them have it. If they want it, there are more threads
 * than processors here, and we sleep until that one has done with its batch.
 */
static bool await_turn(struct vb_engine *e, bool near, vb_time from)
{
	if (atomic_load_explicit(&e->looping, memory_order_relaxed))
		vb_engine_at_work(e, from);
	if (near)
		return false;
	sched_yield();
	if (vb_now() - from < vb_engine_span(e, ALONE))
		return false;
	atomic_store_explicit(&e->awaited, true, memory_order_relaxed);
	vb_mutex_lock(&e->rx);
	atomic_store_explicit(&e->awaited, false, memory_order_relaxed);
	return drain_locked(e, false, vb_now());
}

/* True: give way, as above. */
static bool drain_for_program(struct vb_engine *e)
{
	vb_time now = vb_now();
	bool near = e->near && vb_near_poll(e->near, now);

	if (near && can_be_booked_later(e)) {
		vb_engine_at_work(e, now);
		atomic_store_explicit(&e->looping, false, memory_order_relaxed);
		return false;
	}
	if (VB_UNLIKELY(!vb_mutex_trylock(&e->rx)))
		return await_turn(e, near, now);
	return drain_locked(e, near, now);
}

void vb_engine_wake(struct vb_engine *e)
{
	const uint64_t one = 1;

	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_DEBUG, "engine: wake refused");
}

static void armed(struct vb_engine *e)
{
	atomic_store_explicit(&e->looping, false, memory_order_relaxed);
	if (atomic_load_explicit(&e->attentive, memory_order_relaxed))
		eng_settle(e);
	/* Who is about to sleep polls no more. */
	if (atomic_load(&e->resting) && atomic_exchange(&e->resting, false))
		vb_engine_wake(e);
	if (!e->near || !atomic_load(&e->spinning))
		return;
	atomic_store(&e->spinning, false);
	(void)vb_near_sleep(e->near); /* who arms polls once more */
}

void vb_engine_armed(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e)
		return;
	cancel = vb_cancel_off();
	armed(e);
	vb_cancel_back(cancel);
}

static void let_others_run(struct vb_engine *e)
{
	sched_yield();
	atomic_store_explicit(&e->back_at, vb_now(), memory_order_relaxed);
}

void vb_engine_poll(void)
{
	struct vb_engine *e = vb_engine_running();
	int cancel = vb_cancel_off();

	if (e && drain_for_program(e))
		let_others_run(e);
	vb_cancel_back(cancel);
}
