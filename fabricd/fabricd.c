/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main loop of a fabric's process. It makes the network of a topology,
 * connects data plane and management with each other, and calls them when time
 * passes or a descriptor is ready.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/prompt.h"
#include "base/rand.h"
#include "engine/fabric_path.h"
#include "fabric/router.h"
#include "fabricd/capture.h"
#include "wire/smp.h"

#ifndef SYS_epoll_pwait2 /* in headers since Linux 5.11 */
#define SYS_epoll_pwait2 441
#endif

#define EVENTS 32
/* The process does not sleep if the next event is due within this time. */
#define SPIN (20 * VB_USEC)
/* The process does not sleep if the next event is due within this time, and a
 * program shares its processor. */
#define SPIN_SHARED (3 * VB_USEC)
/* how long the process waits for the subnet manager to end after asking it
 * to */
#define MANAGER_ENDS (2 * VB_SEC)
/* most events that are handled before descriptors are looked at again */
#define STEPS_RUN 4096
/* a look at the rings of idle programs counts as this many events */
#define IDLE_TURN 256

/* The CapabilityMask bits of ports of CAs and routers, and those of
 * switches. */
#define CAPS_CA	    (CAPS_SWITCH | VB_CAP_REREGISTER | VB_CAP_CM)
#define CAPS_SWITCH (VB_CAP_TRAP | VB_CAP_SL_MAP | VB_CAP_SYSTEM_GUID)

/* --- data plane and management --- */

static enum vb_fab_taken on_local(void *arg, struct vb_fab_node *node,
				  uint8_t port, const uint8_t *bytes,
				  size_t len, vb_time now)
{
	struct vb_fabricd *f = arg;

	if (vb_mgmt_hear(f->mgmt, node, port, bytes, len, now))
		return FAB_TAKEN;
	return vb_fabricd_verbs_hear(f, node, port, bytes, len, now);
}

static void on_event(void *arg, struct vb_fab_node *node, uint8_t port,
		     const struct vb_fab_event_info *i, vb_time now)
{
	struct vb_fabricd *f = arg;

	switch (i->event) {
	case FAB_EV_STATE:
		if (!i->by_management)
			vb_mgmt_state_changed(f->mgmt, node, port, now);
		vb_fabricd_verbs_changed(f, node, port);
		break;
	case FAB_EV_INTEGRITY:
		vb_mgmt_link_error(f->mgmt, node, port, TRAP_INTEGRITY, now);
		break;
	case FAB_EV_OVERRUN:
		vb_mgmt_link_error(f->mgmt, node, port, TRAP_OVERRUN, now);
		break;
	case FAB_EV_WATCHDOG:
		vb_mgmt_link_error(f->mgmt, node, port, TRAP_WATCHDOG, now);
		break;
	case FAB_EV_PKEY:
		vb_mgmt_pkey_violated(f->mgmt, node, port, i->frame, i->len,
				      now);
		break;
	case FAB_EV_FAR:
		vb_fabricd_far_changed(f, node, port, now);
		break;
	case FAB_EV_PATH:
		vb_mgmt_ask_path(f->mgmt, node, port, &i->dgid, i->question,
				 now);
		break;
	case FAB_EV_ROOM:
		vb_mgmt_room(f->mgmt, node, port, now);
		vb_fabricd_verbs_room(f, node, port, now);
		break;
	}
}

static int send_from_node(void *arg, struct vb_fab_node *node, uint8_t port,
			  const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_fabricd *f = arg;

	return vb_fab_send(f->net, node, port, bytes, len, now);
}

static int set_net_state(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_state state, vb_time now)
{
	struct vb_fabricd *f = arg;

	return vb_fab_set_state(f->net, node, port, state, now);
}

static int set_net_phys(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_phys phys, vb_time now)
{
	struct vb_fabricd *f = arg;

	return vb_fab_set_phys(f->net, node, port, phys, now);
}

static vb_time through(void *arg, struct vb_fab_node *node, uint8_t port,
		       vb_time now)
{
	struct vb_fabricd *f = arg;

	return vb_fab_mgmt_through(f->net, node, port, now);
}

static void port_configured(void *arg, struct vb_fab_node *node, uint8_t port)
{
	vb_fabricd_verbs_changed(arg, node, port);
}

static void path_is(void *arg, struct vb_fab_node *node, uint32_t question,
		    enum vb_fab_answer answer, const struct vb_fab_path *path)
{
	struct vb_fabricd *f = arg;

	vb_fab_path_is(f->net, node, question, answer, path);
}

static void count_port_waits(void *arg, struct vb_fab_node *node, uint8_t port,
			     vb_time now)
{
	struct vb_fabricd *f = arg;

	vb_fab_count_waits(f->net, node, port, now);
}

/* --- the network of a topology --- */

static void fill_node(struct vb_fab_node *n, const struct vb_topo_node *t)
{
	n->sys_guid = t->sys_guid;
	n->vendor_id = t->vendor_id;
	n->device_id = t->device_id;
	for (unsigned i = 0; i <= n->ports; i++) {
		struct vb_fab_port *p = &n->port[i];
		const struct vb_topo_port *from = &t->port[i];

		p->cap_mask = n->kind == FAB_SWITCH ? CAPS_SWITCH : CAPS_CA;
		/* MTU and VLs start at the largest supported value, as firmware
		 * leaves them: a subnet manager that had to raise them would
		 * first take each link down. */
		p->mtu = p->mtu_cap;
		p->oper_vls = p->vl_cap;
		if (from->width)
			p->width_supported = p->width_enabled = from->width;
		if (from->speed) {
			p->speed_supported = p->speed_enabled = from->speed;
			p->speed_ext_supported = p->speed_ext_enabled =
				from->speed_ext;
		}
		if (p->speed_ext_supported)
			p->cap_mask |= VB_CAP_EXTENDED_SPEEDS;
		/* Managers look at port 0 for what a switch's ports can do. */
		if (p->speed_ext_supported && n->kind == FAB_SWITCH)
			n->port[0].cap_mask |= VB_CAP_EXTENDED_SPEEDS;
		if (from->guid && n->kind != FAB_SWITCH && i > 0)
			p->guid = p->guids[0] = from->guid;
	}
}

void vb_fabricd_set_routes(struct vb_fab_node *n, const struct vb_topo_spec *s)
{
	if (!n->router || !s->routes)
		return;
	n->router->routes = s->routes->count;
	memcpy(n->router->route, s->routes->route, sizeof(n->router->route));
}

int vb_fabricd_add_node(struct vb_fabricd *f, const struct vb_topo_node *t)
{
	const struct vb_fab_node_spec spec = {
		.kind = t->kind,
		.ports = t->ports,
		.guid = t->guid,
		.desc = t->desc,
		.mtu_cap = t->spec.mtu_cap,
		.vl_cap = t->spec.vl_cap,
		.pkeys = t->spec.pkeys,
		.linear_cap = t->spec.linear_cap,
		.random_cap = t->spec.random_cap,
		.mcast_cap = t->spec.mcast_cap,
		.latency_ns = t->spec.latency_ns,
		.store_and_forward = t->spec.store_and_forward,
	};
	struct vb_fab_node *n = vb_fab_node_create(&spec);

	if (!n)
		return -ENOMEM;
	fill_node(n, t);
	vb_fabricd_set_routes(n, &t->spec);
	if (vb_mgmt_add(f->mgmt, n)) {
		vb_fab_node_destroy(n);
		return -ENOMEM;
	}
	if ((t->spec.unit &&
	     vb_mgmt_set_unit(f->mgmt, n, t->spec.unit, vb_clock_read())) ||
	    (t->spec.adaptive && vb_fab_set_adaptive(n, true)) ||
	    vb_fab_add(f->net, n)) {
		vb_mgmt_remove(f->mgmt, n);
		vb_fab_node_destroy(n);
		return -ENOMEM;
	}
	return 0;
}

/* Make the links of the node @index to nodes with higher indices, so that each
 * link is made once. Of a link within the node, the end with the lower port
 * makes it. */
static int add_links(struct vb_fabricd *f, uint32_t index, vb_time now)
{
	const struct vb_topo_node *t = &f->topo->nodes[index];

	for (unsigned i = 1; i <= t->ports; i++) {
		const struct vb_topo_port *p = &t->port[i];
		int rc;

		if (!p->linked || p->peer < index ||
		    (p->peer == index && p->peer_port < i))
			continue;
		rc = vb_fab_link(f->net, vb_fab_node(f->net, index), (uint8_t)i,
				 vb_fab_node(f->net, p->peer), p->peer_port,
				 &p->spec, now);
		if (rc)
			return rc;
	}
	return 0;
}

static int build(struct vb_fabricd *f)
{
	const struct vb_fab_ops fab_ops = { .on_local = on_local,
					    .on_event = on_event,
					    .on_far = vb_fabricd_carry,
					    .on_wire = vb_fabricd_see_wire,
					    .arg = f };
	const struct vb_mgmt_ops mgmt_ops = {
		.send = send_from_node,
		.set_state = set_net_state,
		.set_phys = set_net_phys,
		.through = through,
		.count_waits = count_port_waits,
		.deliver = vb_fabricd_deliver,
		.configured = port_configured,
		.path_is = path_is,
		.arg = f,
	};
	vb_time now = vb_clock_read();
	int rc = 0;

	f->net = vb_fab_net_create(&fab_ops, vb_rand32());
	f->mgmt = vb_mgmt_create(&mgmt_ops);
	if (!f->net || !f->mgmt)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->topo->count && !rc; i++)
		rc = vb_fabricd_add_node(f, &f->topo->nodes[i]);
	for (uint32_t i = 0; i < f->topo->count && !rc; i++)
		rc = add_links(f, i, now);
	for (uint32_t i = 0; i < f->topo->count && !rc; i++)
		if (f->topo->nodes[i].spec.ethernet)
			rc = vb_fabricd_ether_add(
				f, i, f->topo->nodes[i].spec.ethernet);
	return rc;
}

struct vb_fab_node *vb_fabricd_node(const struct vb_fabricd *f,
				    const char *name)
{
	const struct vb_topo_node *t = vb_topo_find(f->topo, name);

	return t ? vb_fab_node(f->net, (uint32_t)(t - f->topo->nodes)) : NULL;
}

/* --- descriptors and time --- */

int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (epoll_ctl(f->epoll, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd,
		      &e) < 0)
		return -errno;
	return 0;
}

void vb_fabricd_unwatch(struct vb_fabricd *f, struct fd_watch *w)
{
	(void)epoll_ctl(f->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

static int open_listener(struct vb_fabricd *f, const char *name)
{
	int rc;

	f->listener.fd = vb_fabric_listen(name, f->dir);
	if (f->listener.fd < 0)
		return f->listener.fd;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->listener.ready = vb_fabricd_accept;
	f->clients_most = vb_fabricd_clients_most();
	rc = vb_fabricd_issm_open(f);
	return rc ? rc : vb_fabricd_watch(f, &f->listener, EPOLLIN, false);
}

static void word_error(char *error, const char *name, int rc)
{
	if (rc == -EADDRINUSE)
		snprintf(error, VB_TOPO_ERROR,
			 "a fabric \"%s\" runs already; choose another --name, "
			 "or end that one (--device ib starts one, which ends "
			 "soon after its last program)",
			 name);
	else if (rc == -EINVAL)
		snprintf(
			error, VB_TOPO_ERROR,
			"a fabric cannot be called \"%.80s\": 1 to 63 letters, "
			"digits, '-', '_' and '.', which does not begin it",
			name);
	else
		snprintf(error, VB_TOPO_ERROR, "fabric \"%.80s\": %s", name,
			 strerror(-rc));
}

static void end_idle(struct fd_later *l, vb_time now)
{
	struct vb_fabricd *f = VB_CONTAINER_OF(l, struct vb_fabricd, idle);

	f->ended = true;
}

void vb_fabricd_linger(struct vb_fabricd *f, vb_time linger)
{
	f->linger = linger;
	vb_fabricd_later(f, &f->idle, vb_clock_read() + linger);
}

static int init_due(struct vb_fabricd *f)
{
	f->linger = VB_NEVER;
	vb_timers_init(&f->due);
	vb_fabricd_later_init(&f->accept_on, vb_fabricd_accept_again);
	vb_fabricd_later_init(&f->idle, end_idle);
	return vb_timers_reserve(&f->due, VB_FABRICD_LATERS);
}

struct vb_fabricd *vb_fabricd_create(struct vb_topo *topo, const char *name,
				     char error[VB_TOPO_ERROR])
{
	struct vb_fabricd *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;

	error[0] = '\0';
	if (!f) {
		word_error(error, name, rc);
		return NULL;
	}
	f->topo = topo;
	f->listener.fd = f->inotify.fd = -1;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = f->epoll < 0 ? -errno : init_due(f);
	if (!rc)
		rc = build(f);
	if (!rc)
		rc = vb_fabricd_remotes_open(f, error, vb_clock_read());
	if (!rc)
		rc = open_listener(f, name);
	if (!rc)
		return f;
	if (!error[0])
		word_error(error, name, rc);
	vb_fabricd_destroy(f);
	return NULL;
}

void vb_fabricd_destroy(struct vb_fabricd *f)
{
	vb_fabricd_end_managers(f);
	vb_fabricd_close_clients(f);
	vb_fabricd_issm_close(f);
	vb_fabricd_verbs_free(f);
	vb_fabricd_remotes_close(f);
	vb_fabricd_ethers_close(f);
	vb_fabricd_free_hosts(f);
	vb_mgmt_destroy(f->mgmt);
	if (f->net)
		vb_fab_net_destroy(f->net);
	if (f->listener.fd >= 0) {
		vb_fabric_remove(f->dir);
		close(f->listener.fd);
	}
	if (f->epoll >= 0)
		close(f->epoll);
	vb_timers_fini(&f->due);
	free(f->marks);
	free(f);
}

/* Let links to other processes and captures send what they have gathered.
 * Returns when the next event is due, link packets not counted. */
static vb_time next_of(struct vb_fabricd *f, vb_time now)
{
	vb_time next = vb_fabricd_remotes_run(f, now);

	next = VB_MIN(next, vb_fabricd_captures_run(f, now));
	next = VB_MIN(next, vb_fab_next_frame(f->net));
	next = VB_MIN(next, vb_mgmt_next(f->mgmt));
	return VB_MIN(next, vb_fabricd_verbs_next(f));
}

/* Decide whether to look at the programs' rings again soon, since some programs
 * were busy lately. False: a program shares this processor, so this process
 * sleeps until a program rings its bell: if it went on looking, it would delay
 * the program whose frames it waits for. */
static bool look_again(struct vb_fabricd *f, vb_time now)
{
	int processor = sched_getcpu();

	f->verbs.shares = vb_fabricd_verbs_share(f, processor);
	if (!f->verbs.shares)
		return true;
	return vb_fabricd_verbs_await(f, processor, now) ||
	       vb_fabricd_verbs_rest(f);
}

/* Returns how soon the next event must be due for the process not to sleep. */
static vb_time spin_of(const struct vb_fabricd *f)
{
	return f->verbs.shares ? SPIN_SHARED : SPIN;
}

/* Handle all events that are due, but stop after STEPS_RUN, so that descriptors
 * are served: a frame in a routing loop may make events faster than this
 * function handles them. Returns the time until the next event; 0: more events
 * are due now. */
static vb_time run_fabric(struct vb_fabricd *f)
{
	for (unsigned left = STEPS_RUN; left > 0; left--) {
		vb_time now = vb_clock_read(), next;
		bool soon = vb_fabricd_verbs_run(f, now);

		while (left > 1 && vb_fab_step(f->net, now))
			left--;
		vb_mgmt_run(f->mgmt, now);
		next = next_of(f, now);
		soon |= next <= now + spin_of(f);
		vb_fabricd_verbs_ring(f, !soon, now);
		if (soon)
			continue;
		if (f->verbs.busy && look_again(f, now)) {
			left = left > IDLE_TURN ? left - IDLE_TURN : 1;
			continue;
		}
		/* Before this process sleeps, send link packets early: to set a
		 * timer for them at each sleep costs more. */
		if (vb_fab_tell_early(f->net, now))
			continue;
		next = VB_MIN(next, vb_fab_next(f->net));
		if (next <= now + spin_of(f))
			continue;
		return next == VB_NEVER ? VB_NEVER : next - now;
	}
	return 0;
}

/* Wait until descriptors are ready, for at most @wait. Returns the number of
 * ready descriptors, or -errno. It makes one system call, since programs wait
 * for this process to wake; on kernels before Linux 5.11, which lack
 * epoll_pwait2(), it makes two. */
static int await_events(struct vb_fabricd *f, struct epoll_event *events,
			vb_time wait)
{
	struct pollfd fd = { f->epoll, POLLIN, 0 };
	struct timespec t = { (time_t)(wait / VB_SEC), (long)(wait % VB_SEC) };
	const struct timespec *most = wait == VB_NEVER ? NULL : &t;
	long n = syscall(SYS_epoll_pwait2, f->epoll, events, EVENTS, most, NULL,
			 (size_t)0);

	if (n < 0 && errno != EINTR) {
		n = ppoll(&fd, 1, most, NULL);
		if (n > 0)
			n = epoll_wait(f->epoll, events, EVENTS, 0);
	}
	return n < 0 ? -errno : (int)n;
}

static void serve_descriptors(const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		struct fd_watch *w = events[i].data.ptr;

		w->ready(w, events[i].events, vb_clock_read());
	}
}

/* The descriptor that ends serve_until(). */
struct stop_watch {
	struct fd_watch watch;
	bool seen;
};

static void note_stop(struct fd_watch *w, uint32_t events, vb_time now)
{
	VB_CONTAINER_OF(w, struct stop_watch, watch)->seen = true;
}

/* Run the fabric until @stop has been seen, the fabric has ended, or the time
 * is @until. Returns 0 or -errno. */
static int serve_until(struct vb_fabricd *f, const struct stop_watch *stop,
		       vb_time until)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		vb_time now = vb_clock_read();
		vb_time due = vb_fabricd_fire(f, now);
		vb_time wait = VB_MIN(run_fabric(f), due);
		int n;

		if (f->ended)
			return 0;
		if (until != VB_NEVER)
			wait = VB_MIN(wait, until - VB_MIN(now, until));
		n = await_events(f, events, wait);
		if (n < 0 && n != -EINTR)
			return n;
		if (n > 0)
			serve_descriptors(events, n);
		if (now >= until || stop->seen)
			return 0;
	}
}

/* Ask the subnet manager to end, and run the fabric for it until then: opensm
 * still wants answers to its MADs for some milliseconds. No program can find
 * the fabric from now on. */
static int see_manager_off(struct vb_fabricd *f)
{
	const struct stop_watch nothing = { .seen = false };

	f->ended = false;
	if (!vb_fabricd_stop_managers(f))
		return 0;
	vb_fabric_remove(f->dir);
	return serve_until(f, &nothing, vb_clock_read() + MANAGER_ENDS);
}

int vb_fabricd_run(struct vb_fabricd *f, int stop)
{
	struct stop_watch s = { .watch = { stop, note_stop } };
	int rc = vb_fabricd_watch(f, &s.watch, EPOLLIN, false);

	if (rc)
		return rc;
	vb_prompt_thread();
	rc = serve_until(f, &s, VB_NEVER);
	vb_fabricd_unwatch(f, &s.watch);
	return rc ? rc : see_manager_off(f);
}
