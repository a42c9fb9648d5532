/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet ports of switches: a bridge in each such switch
 * (fabric/bridge.h), and what is at the other end of each port's cable. That is
 * a descriptor that a program has passed: a TAP interface of its host, which
 * may be in another network namespace, or a socket of a program such as a
 * gateway. One read of it is one frame.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/rand.h"
#include "fabric/bridge.h"
#include "fabricd/fabricd_priv.h"
#include "fabricd/topology_priv.h"

/* frames of one port that are taken before other descriptors are served */
#define FRAMES_RUN 64

struct ether_port {
	struct ether_switch *of;
	unsigned number;
	/* fd -1: nothing is attached */
	struct fd_watch watch;
	bool is_tap;
	bool pulled; /* the cable is pulled; what is attached stays */
	bool waits;  /* frames wait until the descriptor takes some */
	char name[IFNAMSIZ];
};

struct ether_switch {
	struct vb_chain link;
	struct vb_fabricd *f;
	uint32_t node; /* the switch's index */
	struct vb_bridge *bridge;
	unsigned ports;
	struct ether_port port[]; /* [0] is unused */
};

static struct ether_switch *switch_of(const struct vb_fabricd *f, uint32_t node)
{
	for (struct vb_chain *l = f->ethers; l; l = l->next) {
		struct ether_switch *s =
			VB_CONTAINER_OF(l, struct ether_switch, link);

		if (s->node == node)
			return s;
	}
	return NULL;
}

/* --- frames --- */

static void watch_port_fd(struct ether_port *p, bool again)
{
	uint32_t events = EPOLLIN | (p->waits ? EPOLLOUT : 0u);

	(void)!vb_fabricd_watch(p->of->f, &p->watch, events, again);
}

static int write_ether(void *arg, unsigned port, const uint8_t *frame,
		       size_t len)
{
	struct ether_switch *s = arg;
	struct ether_port *p = &s->port[port];
	ssize_t n = p->is_tap ? write(p->watch.fd, frame, len)
			      : send(p->watch.fd, frame, len,
				     MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		return 0;
	if (errno != EAGAIN)
		return -errno;
	if (!p->waits) {
		p->waits = true;
		watch_port_fd(p, true);
	}
	return -EAGAIN;
}

/* Close what is attached to the port. A TAP interface disappears with that. */
static void release_port(struct ether_port *p)
{
	vb_bridge_set_up(p->of->bridge, p->number, false);
	vb_fabricd_unwatch(p->of->f, &p->watch);
	close(p->watch.fd);
	p->watch.fd = -1;
	p->waits = p->pulled = false;
}

/* Read a frame. Returns its length; -EAGAIN: no frame waits; 0 or another
 * -errno: what was attached is gone. */
static ssize_t read_ether(const struct ether_port *p, uint8_t *bytes,
			  size_t room)
{
	ssize_t n = p->is_tap ? read(p->watch.fd, bytes, room)
			      : recv(p->watch.fd, bytes, room,
				     MSG_DONTWAIT | MSG_TRUNC);

	return n < 0 ? -errno : n;
}

/* A frame that is longer than the bridge takes is passed on with a byte too
 * many, so that the bridge counts and drops it. */
static void serve_port(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct ether_port *p = VB_CONTAINER_OF(w, struct ether_port, watch);
	static uint8_t bytes[VB_BRIDGE_MOST + 1];

	if (events & EPOLLOUT && p->waits) {
		p->waits = vb_bridge_ready(p->of->bridge, p->number);
		watch_port_fd(p, true);
	}
	for (unsigned i = 0; i < FRAMES_RUN; i++) {
		ssize_t n = read_ether(p, bytes, sizeof(bytes));

		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			release_port(p);
			return;
		}
		vb_bridge_take(p->of->bridge, p->number, bytes,
			       VB_MIN((size_t)n, sizeof(bytes)), now);
	}
	if (events & (EPOLLERR | EPOLLHUP))
		release_port(p);
}

/* --- cables --- */

/* Is @fd a TAP interface that gives frames without a header of its own? Sets
 * @name to its name then. */
static bool is_tap(int fd, char name[IFNAMSIZ])
{
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	if (ioctl(fd, TUNGETIFF, &r) < 0 || !(r.ifr_flags & IFF_TAP) ||
	    !(r.ifr_flags & IFF_NO_PI) || r.ifr_flags & IFF_VNET_HDR)
		return false;
	memcpy(name, r.ifr_name, IFNAMSIZ);
	return true;
}

static bool is_frame_socket(int fd)
{
	return vb_fdmail_has_option(fd, SO_TYPE, SOCK_SEQPACKET) &&
	       vb_fdmail_has_option(fd, SO_DOMAIN, AF_UNIX);
}

static void set_carrier(const struct ether_port *p, bool on)
{
	int value = on;

	if (p->is_tap)
		(void)ioctl(p->watch.fd, TUNSETCARRIER, &value);
}

/* Attach a copy of @fd, which must not block this process. */
static int attach_fd(struct ether_port *p, int fd, const char *name,
		     char *error)
{
	char tap[IFNAMSIZ] = "";
	bool has_tap = is_tap(fd, tap);

	if (!has_tap && !is_frame_socket(fd))
		return vb_topo_fail(error,
				    "what was passed is no TAP interface "
				    "without headers and no socket of "
				    "packets");
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return vb_topo_fail(error, "%s", strerror(errno));
	p->watch = (struct fd_watch){ fd, serve_port };
	p->is_tap = has_tap;
	p->waits = p->pulled = false;
	snprintf(p->name, sizeof(p->name), "%.*s", IFNAMSIZ - 1,
		 has_tap ? tap : name);
	watch_port_fd(p, false);
	vb_bridge_set_up(p->of->bridge, p->number, true);
	set_carrier(p, true);
	return 0;
}

/* Find the port that @text names, "E2" or "2"; "" is the first free one. NULL,
 * and @error: there is none. */
static struct ether_port *find_ether(const struct vb_fabricd *f,
				     const struct vb_fab_node *node,
				     const char *text, char *error)
{
	struct ether_switch *s = switch_of(f, node->index);
	const char *digits = text + (*text == 'E');
	char *end;
	unsigned long number = strtoul(digits, &end, 10);

	if (!s) {
		vb_topo_fail(error,
			     "\"%.80s\" has no Ethernet ports; a line #! node "
			     "\"NODE\" ethernet=4 gives a switch some",
			     f->topo->nodes[node->index].desc);
		return NULL;
	}
	for (unsigned i = 1; !*text && i <= s->ports; i++)
		if (s->port[i].watch.fd < 0)
			return &s->port[i];
	if (!*text)
		vb_topo_fail(error, "all %u Ethernet ports are taken",
			     s->ports);
	else if (end == digits || *end || number < 1 || number > s->ports)
		vb_topo_fail(error,
			     "\"%.20s\" is no Ethernet port: E1 to E%u are",
			     text, s->ports);
	else
		return &s->port[number];
	return NULL;
}

int vb_fabricd_ether_attach(struct vb_fabricd *f,
			    const struct vb_fab_node *node, const char *port,
			    int fd, const char *name, FILE *to,
			    char error[VB_TOPO_ERROR])
{
	struct ether_port *p = find_ether(f, node, port, error);
	int rc;

	if (!p)
		return -EINVAL;
	if (p->watch.fd >= 0)
		return vb_topo_fail(error, "E%u is taken by %s", p->number,
				    p->name);
	rc = attach_fd(p, fd, name, error);
	if (!rc)
		fprintf(to, "E%u", p->number);
	return rc;
}

/* Returns the port, to which something is attached; NULL, and @error. */
static struct ether_port *find_attached(const struct vb_fabricd *f,
					const struct vb_fab_node *node,
					const char *port, char *error)
{
	struct ether_port *p = find_ether(f, node, port, error);

	if (p && p->watch.fd < 0) {
		vb_topo_fail(error, "nothing is attached to E%u", p->number);
		return NULL;
	}
	return p;
}

int vb_fabricd_ether_detach(struct vb_fabricd *f,
			    const struct vb_fab_node *node, const char *port,
			    char error[VB_TOPO_ERROR])
{
	struct ether_port *p = find_attached(f, node, port, error);

	if (!p)
		return -EINVAL;
	release_port(p);
	return 0;
}

int vb_fabricd_ether_plug(struct vb_fabricd *f, const struct vb_fab_node *node,
			  const char *port, bool in, char error[VB_TOPO_ERROR])
{
	struct ether_port *p = find_attached(f, node, port, error);

	if (!p)
		return -EINVAL;
	p->pulled = !in;
	vb_bridge_set_up(p->of->bridge, p->number, in);
	set_carrier(p, in);
	return 0;
}

/* --- show --- */

static const char *ether_state(const struct ether_port *p)
{
	if (p->watch.fd < 0)
		return "free";
	return p->pulled ? "unplugged" : "up";
}

struct mac_count {
	unsigned of[VB_BRIDGE_PORTS + 1];
};

static void count_mac(void *arg, const struct vb_mac *m)
{
	struct mac_count *c = arg;

	c->of[m->at]++;
}

static struct mac_count count_macs(const struct ether_switch *s, vb_time now)
{
	struct mac_count c = { { 0 } };

	vb_macs_each(vb_bridge_macs(s->bridge), now, count_mac, &c);
	return c;
}

void vb_fabricd_ether_text(const struct vb_fabricd *f,
			   const struct vb_fab_node *node, FILE *to,
			   vb_time now)
{
	const struct ether_switch *s = switch_of(f, node->index);
	struct mac_count macs;

	if (!s)
		return;
	macs = count_macs(s, now);
	for (unsigned i = 1; i <= s->ports; i++) {
		const struct ether_port *p = &s->port[i];

		if (p->watch.fd < 0)
			continue;
		fprintf(to, "  [E%u] ethernet, %s, %u MAC address%s - %s\n", i,
			ether_state(p), macs.of[i], macs.of[i] == 1 ? "" : "es",
			p->name);
	}
}

static void json_ether(const struct ether_switch *s, unsigned i, unsigned macs,
		       FILE *to)
{
	const struct vb_bridge_counters *c = vb_bridge_counters(s->bridge, i);
	const struct ether_port *p = &s->port[i];

	fprintf(to,
		"%s\n      {\"port\": %u, \"state\": \"%s\", \"interface\": ",
		i > 1 ? "," : "", i, ether_state(p));
	vb_fabricd_put_string(to, p->watch.fd < 0 ? "" : p->name);
	fprintf(to,
		", \"macs\": %u, \"waiting\": %u, \"rcv_frames\": %ju, "
		"\"rcv_bytes\": %ju, \"xmit_frames\": %ju, \"xmit_bytes\": "
		"%ju, \"flooded\": %ju, \"filtered\": %ju, \"errors\": %ju, "
		"\"discards\": %ju}",
		macs, vb_bridge_waiting(s->bridge, i), (uintmax_t)c->rcv_frames,
		(uintmax_t)c->rcv_bytes, (uintmax_t)c->xmit_frames,
		(uintmax_t)c->xmit_bytes, (uintmax_t)c->flooded,
		(uintmax_t)c->filtered, (uintmax_t)c->errors,
		(uintmax_t)c->discards);
}

void vb_fabricd_ether_json(const struct vb_fabricd *f,
			   const struct vb_fab_node *node, FILE *to,
			   vb_time now)
{
	const struct ether_switch *s = switch_of(f, node->index);
	struct mac_count macs;

	if (!s)
		return;
	macs = count_macs(s, now);
	fputs(", \"ethernet\": [", to);
	for (unsigned i = 1; i <= s->ports; i++)
		json_ether(s, i, macs.of[i], to);
	fputc(']', to);
}

struct mac_list {
	FILE *to;
	vb_time now;
};

static void print_mac(void *arg, const struct vb_mac *m)
{
	const struct mac_list *l = arg;

	for (unsigned i = 0; i < 6; i++)
		fprintf(l->to, "%s%02x", i ? ":" : "", m->mac[i]);
	fprintf(l->to, " E%u, heard %ju s ago\n", (unsigned)m->at,
		(uintmax_t)((l->now - m->seen) / VB_SEC));
}

int vb_fabricd_ether_macs(const struct vb_fabricd *f,
			  const struct vb_fab_node *node, FILE *to,
			  char error[VB_TOPO_ERROR], vb_time now)
{
	const struct ether_switch *s = switch_of(f, node->index);
	struct mac_list l = { to, now };

	if (!s)
		return vb_topo_fail(error, "\"%.80s\" has no Ethernet ports",
				    f->topo->nodes[node->index].desc);
	vb_macs_each(vb_bridge_macs(s->bridge), now, print_mac, &l);
	return 0;
}

/* --- life --- */

int vb_fabricd_ether_add(struct vb_fabricd *f, uint32_t node, unsigned ports)
{
	static const struct vb_bridge_ops ops = { write_ether };
	uint64_t seed = (uint64_t)vb_rand32() << 32 | vb_rand32();
	struct ether_switch *s =
		calloc(1, sizeof(*s) + (ports + 1) * sizeof(*s->port));

	if (!s)
		return -ENOMEM;
	s->bridge = vb_bridge_create(&ops, s, ports, seed);
	if (!s->bridge) {
		free(s);
		return -ENOMEM;
	}
	s->f = f;
	s->node = node;
	s->ports = ports;
	for (unsigned i = 0; i <= ports; i++) {
		s->port[i].of = s;
		s->port[i].number = i;
		s->port[i].watch.fd = -1;
	}
	vb_chain_add(&f->ethers, &s->link);
	return 0;
}

void vb_fabricd_ethers_close(struct vb_fabricd *f)
{
	while (f->ethers) {
		struct ether_switch *s =
			VB_CONTAINER_OF(f->ethers, struct ether_switch, link);

		for (unsigned i = 1; i <= s->ports; i++)
			if (s->port[i].watch.fd >= 0)
				release_port(&s->port[i]);
		vb_bridge_destroy(s->bridge);
		vb_chain_del(&s->link);
		free(s);
	}
}
