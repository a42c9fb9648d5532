/* SPDX-License-Identifier: BSD-2-Clause */
/* Links to other processes: making them, and carrying their messages over UDP.
 * (fabricd/remote_tcp.c carries messages over TCP.) */
#include "fabricd/remote.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "fabricd/topology_priv.h"

#define RECEIVE_AT_ONCE 16
/* most calls of recvmmsg() for one link before other descriptors are served */
#define TURNS 4
/* size of the socket's buffers, if the kernel permits it */
#define SOCKET_BYTES (4 << 20)
#define LEAST_ROOM   1200
/* bytes of the IPv6 and UDP headers; those of IPv4 are shorter */
#define UDP_HEADERS 48

/* --- messages --- */

static void send_far(void *arg, const uint8_t *bytes, size_t len)
{
	struct remote *r = arg;

	if (r->where->via == VIA_TCP)
		vb_fabricd_tcp_send(r, bytes, len);
	else
		/* A message that the socket does not take is lost, just as a
		 * message may be lost in the network. */
		(void)!send(r->watch.fd, bytes, len,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
}

static uint64_t draw_nonce(void *arg)
{
	return (uint64_t)vb_rand32() << 32 | vb_rand32();
}

/* Receive up to RECEIVE_AT_ONCE messages and hand them to the link. False: the
 * socket has no more. */
static bool receive_some(struct remote *r, vb_time now)
{
	static uint8_t bytes[RECEIVE_AT_ONCE][VB_FAR_MESSAGE];
	struct mmsghdr m[RECEIVE_AT_ONCE] = { 0 };
	struct iovec v[RECEIVE_AT_ONCE];
	int n;

	for (unsigned i = 0; i < RECEIVE_AT_ONCE; i++) {
		v[i] = (struct iovec){ bytes[i], VB_FAR_MESSAGE };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(r->watch.fd, m, RECEIVE_AT_ONCE, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		if (!(m[i].msg_hdr.msg_flags & MSG_TRUNC))
			vb_far_hear(r->far, bytes[i], m[i].msg_len, now);
	/* A socket returns an ICMP error about an earlier message in place of
	 * messages, so more may follow it. */
	return n == RECEIVE_AT_ONCE || (n < 0 && errno != EAGAIN);
}

static void receive_udp(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct remote *r = VB_CONTAINER_OF(w, struct remote, watch);

	for (unsigned i = 0; i < TURNS; i++)
		if (!receive_some(r, now))
			return;
}

/* --- making a link --- */

static int resolve(struct remote *r, char *error)
{
	const struct addrinfo want = {
		.ai_socktype =
			r->where->via == VIA_UDP ? SOCK_DGRAM : SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	struct addrinfo *found;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", r->where->port);
	rc = getaddrinfo(r->where->host, port, &want, &found);
	if (rc)
		return vb_topo_fail(error, "the address %.80s: %s",
				    r->where->host, gai_strerror(rc));
	memcpy(&r->peer, found->ai_addr, found->ai_addrlen);
	r->peer_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int vb_fabricd_bind(int family, int type, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { .any.sa_family = (sa_family_t)family };
	socklen_t len = family == AF_INET6 ? sizeof(a.v6) : sizeof(a.v4);
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6) {
		a.v6.sin6_port = htons(port);
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
				 sizeof(on));
	} else {
		a.v4.sin_port = htons(port);
	}
	if (type == SOCK_STREAM)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a.any, len) == 0)
		return fd;
	on = -errno;
	close(fd);
	return on;
}

/* Let the kernel cut datagrams into fragments, because a frame may be longer
 * than the path's MTU. Make the socket's buffers larger, too. */
static void permit_fragments(const struct remote *r)
{
	bool v6 = r->peer.ss_family == AF_INET6;
	int no = v6 ? IPV6_PMTUDISC_DONT : IP_PMTUDISC_DONT;
	int bytes = SOCKET_BYTES;

	(void)setsockopt(r->watch.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			 v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &no,
			 sizeof(no));
	(void)setsockopt(r->watch.fd, SOL_SOCKET, SO_RCVBUF, &bytes,
			 sizeof(bytes));
	(void)setsockopt(r->watch.fd, SOL_SOCKET, SO_SNDBUF, &bytes,
			 sizeof(bytes));
}

/* Open the link's UDP socket and connect it: the kernel then hands out only
 * datagrams from the peer's address. */
static int open_far_udp(struct remote *r)
{
	r->watch.fd =
		vb_fabricd_bind(r->peer.ss_family, SOCK_DGRAM, r->where->local);
	r->watch.ready = receive_udp;
	if (r->watch.fd < 0)
		return r->watch.fd;
	permit_fragments(r);
	if (connect(r->watch.fd, (struct sockaddr *)&r->peer, r->peer_len) < 0)
		return -errno;
	return vb_fabricd_watch(r->f, &r->watch, EPOLLIN, false);
}

/* Returns how many bytes a message may have into which the link gathers several
 * frames. */
static size_t room_of(const struct remote *r)
{
	bool v6 = r->peer.ss_family == AF_INET6;
	int mtu = 0;
	socklen_t len = sizeof(mtu);

	if (r->where->via == VIA_TCP)
		return VB_FAR_MESSAGE;
	if (getsockopt(r->watch.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		       v6 ? IPV6_MTU : IP_MTU, &mtu, &len) < 0 ||
	    mtu < LEAST_ROOM + UDP_HEADERS)
		return LEAST_ROOM;
	return VB_MIN((size_t)mtu - UDP_HEADERS, (size_t)VB_FAR_MESSAGE);
}

static int open_sockets(struct remote *r, vb_time now, char *error)
{
	int rc = resolve(r, error);

	if (rc)
		return rc;
	rc = r->where->via == VIA_TCP ? vb_fabricd_tcp_open(r, now)
				      : open_far_udp(r);
	if (rc)
		vb_topo_fail(error, "port %u here, %.80s port %u there: %s",
			     r->where->local, r->where->host, r->where->port,
			     strerror(-rc));
	return rc;
}

static int open_remote(struct remote *r, vb_time now, char *error)
{
	struct vb_far_spec spec = {
		.net = r->f->net,
		.node = r->node,
		.port = r->port,
		.far = { r->where->guid, r->where->peer_port },
		.send = send_far,
		.random = draw_nonce,
		.arg = r,
	};
	int rc = open_sockets(r, now, error);

	if (rc)
		return rc;
	spec.room = room_of(r);
	r->far = vb_far_create(&spec, now);
	return r->far ? 0 : -ENOMEM;
}

static int add_remote(struct vb_fabricd *f, uint32_t index, unsigned port,
		      vb_time now, char *error)
{
	const struct vb_topo_node *t = &f->topo->nodes[index];
	struct remote *r = calloc(1, sizeof(*r));
	char why[VB_TOPO_ERROR] = "no memory";
	int rc;

	if (!r)
		return -ENOMEM;
	r->f = f;
	r->node = vb_fab_node(f->net, index);
	r->port = (uint8_t)port;
	r->where = t->port[port].far;
	r->watch.fd = r->listener.fd = -1;
	vb_chain_add(&f->remotes, &r->link);
	rc = vb_fab_link_far(f->net, r->node, r->port, &t->port[port].spec,
			     now);
	if (!rc)
		rc = open_remote(r, now, why);
	if (rc)
		vb_topo_fail(error, "the link of \"%s\" at port %u: %.800s",
			     t->id, port, why);
	return rc;
}

int vb_fabricd_remotes_open(struct vb_fabricd *f, char error[VB_TOPO_ERROR],
			    vb_time now)
{
	for (uint32_t i = 0; i < f->topo->count; i++) {
		const struct vb_topo_node *t = &f->topo->nodes[i];

		for (unsigned p = 1; p <= t->ports; p++) {
			int rc = 0;

			if (!t->port[p].linked && t->port[p].far)
				rc = add_remote(f, i, p, now, error);
			if (rc)
				return rc;
		}
	}
	return 0;
}

void vb_fabricd_remotes_close(struct vb_fabricd *f)
{
	while (f->remotes) {
		struct remote *r =
			VB_CONTAINER_OF(f->remotes, struct remote, link);

		vb_chain_del(&r->link);
		vb_fabricd_tcp_close(r);
		if (r->watch.fd >= 0)
			close(r->watch.fd);
		vb_far_destroy(r->far);
		free(r);
	}
}

/* --- what the network calls, and time --- */

/* Returns the link to another process at @port of @node; a search through the
 * list, since a fabric has few such links. NULL: there is none, or it is not
 * open yet. */
static struct remote *remote_at(const struct vb_fabricd *f,
				const struct vb_fab_node *node, uint8_t port)
{
	for (struct vb_chain *l = f->remotes; l; l = l->next) {
		struct remote *r = VB_CONTAINER_OF(l, struct remote, link);

		if (r->node == node && r->port == port)
			return r->far ? r : NULL;
	}
	return NULL;
}

void vb_fabricd_carry(void *arg, struct vb_fab_node *node, uint8_t port,
		      const uint8_t *bytes, size_t len, vb_time now)
{
	struct remote *r = remote_at(arg, node, port);

	if (r)
		vb_far_carry(r->far, bytes, len);
}

void vb_fabricd_far_changed(struct vb_fabricd *f, struct vb_fab_node *node,
			    uint8_t port, vb_time now)
{
	struct remote *r = remote_at(f, node, port);

	if (r)
		vb_far_changed(r->far, now);
}

static void word_state(const struct vb_far_status *s, char *text, size_t room)
{
	static const char *const words[] = {
		[FAR_IS_SILENT] = "silent",
		[FAR_IS_UP] = "up",
		[FAR_IS_DOWN] = "unplugged or disabled",
		[FAR_IS_CREDITS] = "refused: only one end has credits=ext",
	};
	const struct vb_far_hello *h = &s->hello;

	if (s->state == FAR_IS_VERSION)
		snprintf(text, room, "refused: it speaks version %u, not %u",
			 s->version, VB_FAR_VERSION);
	else if (s->state == FAR_IS_OTHER)
		snprintf(text, room,
			 "refused: it is port %u of %#jx and wants port %u of "
			 "%#jx",
			 h->from.port, (uintmax_t)h->from.guid, h->want.port,
			 (uintmax_t)h->want.guid);
	else
		snprintf(text, room, "%s", words[s->state]);
}

bool vb_fabricd_remote_text(const struct vb_fabricd *f,
			    const struct vb_fab_node *node, uint8_t port,
			    char text[VB_REMOTE_TEXT])
{
	const struct remote *r = remote_at(f, node, port);
	char state[128];

	if (!r)
		return false;
	word_state(vb_far_status(r->far), state, sizeof(state));
	snprintf(text, VB_REMOTE_TEXT, "%s %s:%u, %s",
		 r->where->via == VIA_UDP ? "udp" : "tcp", r->where->host,
		 r->where->port, state);
	return true;
}

const struct vb_far_status *
vb_fabricd_remote_status(const struct vb_fabricd *f,
			 const struct vb_fab_node *node, uint8_t port)
{
	const struct remote *r = remote_at(f, node, port);

	return r ? vb_far_status(r->far) : NULL;
}

/* Write a line to the log when the link's other end is refused, and when it no
 * longer is. */
static void tell_log(struct remote *r)
{
	enum vb_far_state now = vb_far_status(r->far)->state;
	char text[VB_REMOTE_TEXT];
	bool refused = now >= FAR_IS_OTHER;

	if (now == r->told || now == FAR_IS_SILENT)
		return;
	if ((refused || r->told >= FAR_IS_OTHER) &&
	    vb_fabricd_remote_text(r->f, r->node, r->port, text))
		vb_log(LOG_WARN, "fabric: \"%.64s\" port %u: %s", r->node->desc,
		       r->port, text);
	r->told = now;
}

vb_time vb_fabricd_remotes_run(struct vb_fabricd *f, vb_time now)
{
	vb_time next = VB_NEVER;

	for (struct vb_chain *l = f->remotes; l; l = l->next) {
		struct remote *r = VB_CONTAINER_OF(l, struct remote, link);

		if (r->where->via == VIA_TCP)
			next = VB_MIN(next, vb_fabricd_tcp_run(r, now));
		vb_far_run(r->far, now);
		vb_far_flush(r->far);
		tell_log(r);
		next = VB_MIN(next, vb_far_next(r->far));
	}
	return next;
}
