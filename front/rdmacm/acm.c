/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to ibacm, a daemon that knows to which port of InfiniBand an IP
 * address leads, and the path there (ibacm(7)). It answers on a socket of this
 * host. The daemon serves all programs of the host, and may serve other
 * adapters than this process has; so only paths from this process's adapters
 * count. Nothing of an answer is trusted.
 */
#include "front/rdmacm/rdmacm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

/* The daemon listens at the TCP port that this file contains, or, if the file
 * does not exist, at the UNIX socket. */
#define PORT_FILE "/run/ibacm.port"
#define SOCKET	  "/run/ibacm.sock"
/* The longest time that a question may take. The daemon knows most answers; it
 * asks the daemon of another host, or the subnet administrator, for up to 2 s
 * at a time. Without an answer rdma_resolve_addr() finds the address itself. */
#define PATIENCE (3 * VB_SEC)

/* The messages, in the byte order of the host; addresses and paths in that of
 * the network. */
#define VERSION	     1
#define RESOLVE	     0x01
#define OPERATION    0x0f /* bits of @opcode that tell the kind of request */
#define MOST_ENTRIES 8
#define NO_DELAY     (1u << 30) /* flag: answer without asking others */

enum acm_type { ACM_IPV4 = 2, ACM_IPV6 = 3, ACM_PATH = 0x10 };
enum acm_end { ACM_SOURCE = 1, ACM_DESTINATION = 2 };

struct acm_header {
	uint8_t version, opcode, status, reserved[3];
	uint16_t length; /* length of the whole message, in bytes */
	uint64_t tid;
};

struct acm_entry {
	/* of an address: an enum acm_end; of a path in an answer: bits
	 * IBV_PATH_FLAG_* */
	uint32_t flags;
	uint16_t type, reserved;
	union {
		uint8_t address[64];
		struct ibv_path_record path;
	};
};

struct acm_message {
	struct acm_header header;
	struct acm_entry entries[MOST_ENTRIES];
};

_Static_assert(sizeof(struct acm_header) == 16, "as the daemon has it");
_Static_assert(sizeof(struct acm_entry) == sizeof(struct ibv_path_data),
	       "an entry becomes a struct ibv_path_data");

static unsigned entry_count(const struct acm_message *m)
{
	return (unsigned)((m->header.length - sizeof(m->header)) /
			  sizeof(*m->entries));
}

/* --- the socket --- */

static int connect_to(const struct sockaddr *a, socklen_t len)
{
	int fd = socket(a->sa_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* A connection to this host is made, or refused, at once; the daemon's
	 * queue may be full (EAGAIN). */
	if (fd >= 0 && connect(fd, a, len) && errno != EINPROGRESS) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static uint16_t tcp_port(void)
{
	FILE *f = fopen(PORT_FILE, "re");
	unsigned port = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%5u", &port) != 1 || port > UINT16_MAX)
		port = 0;
	fclose(f);
	return (uint16_t)port;
}

/* Returns a socket that is connected to the daemon, which the caller closes;
 * -1: there is no daemon. */
static int connect_daemon(void)
{
	const uint16_t port = tcp_port();
	const struct sockaddr_in tcp = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	const struct sockaddr_un local = { .sun_family = AF_UNIX,
					   .sun_path = SOCKET };

	return port ? connect_to((const struct sockaddr *)&tcp, sizeof(tcp))
		    : connect_to((const struct sockaddr *)&local,
				 sizeof(local));
}

static bool await(int fd, short events, vb_time until)
{
	struct pollfd p = { .fd = fd, .events = events };
	vb_time now = vb_clock_read();
	int ms;

	do {
		if (now >= until)
			return false;
		ms = poll(&p, 1, (int)((until - now) / VB_MSEC) + 1);
		now = vb_clock_read();
	} while (ms < 0 && errno == EINTR);
	return ms > 0;
}

/* Sends the @len bytes at @bytes, or, if @in, receives that many, before the
 * time @until. False: that was not possible. */
static bool transfer(int fd, void *bytes, size_t len, bool in, vb_time until)
{
	uint8_t *at = bytes;

	while (len) {
		ssize_t n = in ? recv(fd, at, len, 0)
			       : send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (!await(fd, in ? POLLIN : POLLOUT, until))
				return false;
			continue;
		}
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* Sends the question @m to the daemon, and replaces @m by the daemon's answer.
 * False: there is no answer in time, or none that has the form of one. */
static bool ask_daemon(int fd, struct acm_message *m)
{
	const vb_time until = vb_clock_read() + PATIENCE;
	const uint64_t tid = m->header.tid;
	size_t rest;

	if (!transfer(fd, m, m->header.length, false, until) ||
	    !transfer(fd, &m->header, sizeof(m->header), true, until))
		return false;
	rest = m->header.length - sizeof(m->header);
	return m->header.version == VERSION &&
	       (m->header.opcode & OPERATION) == RESOLVE &&
	       m->header.tid == tid && m->header.length >= sizeof(m->header) &&
	       rest <= sizeof(m->entries) && rest % sizeof(*m->entries) == 0 &&
	       transfer(fd, m->entries, rest, true, until);
}

/* --- the question --- */

static struct acm_entry *add_entry(struct acm_message *m)
{
	struct acm_entry *e = &m->entries[entry_count(m)];

	m->header.length += sizeof(*e);
	return e;
}

static bool is_ip(const struct sockaddr *a)
{
	return a && (a->sa_family == AF_INET || a->sa_family == AF_INET6);
}

static void add_ip(struct acm_message *m, const struct sockaddr *a,
		   uint32_t flags)
{
	const struct vb_gid gid = rcm_gid_of(a);
	struct acm_entry *e;

	if (!is_ip(a))
		return;
	e = add_entry(m);
	e->flags = flags;
	e->type = a->sa_family == AF_INET ? ACM_IPV4 : ACM_IPV6;
	if (a->sa_family == AF_INET)
		memcpy(e->address, gid.raw + 12, 4);
	else
		memcpy(e->address, gid.raw, sizeof(gid.raw));
}

/* Adds to @m a path that is filled in as far as the program knows it: from the
 * route in its hints, and with the GIDs of its AF_IB addresses. */
static void add_path(struct acm_message *m, const struct rdma_addrinfo *r,
		     const struct rdma_addrinfo *hints)
{
	const struct sockaddr *src = r->ai_src_addr, *dst = r->ai_dst_addr;
	const bool from = src && src->sa_family == AF_IB;
	const bool to = dst && dst->sa_family == AF_IB;
	struct ibv_path_data d = { 0 };
	struct acm_entry *e;

	if (!from && !to)
		return;
	if (hints && hints->ai_route &&
	    hints->ai_route_len == sizeof(struct ibv_path_data))
		memcpy(&d, hints->ai_route, sizeof(d));
	e = add_entry(m);
	e->type = ACM_PATH;
	e->path = d.path;
	if (from)
		memcpy(e->path.sgid.raw, rcm_gid_of(src).raw, 16);
	if (to)
		memcpy(e->path.dgid.raw, rcm_gid_of(dst).raw, 16);
}

static struct acm_message question(const struct rdma_addrinfo *r,
				   const struct rdma_addrinfo *hints)
{
	struct acm_message m = { .header = { .version = VERSION,
					     .opcode = RESOLVE,
					     .length = sizeof(m.header),
					     .tid = vb_clock_read() } };
	uint32_t hurry = 0;

	if (hints && hints->ai_flags & (RAI_NUMERICHOST | RAI_NOROUTE))
		hurry = NO_DELAY;
	if (is_ip(r->ai_src_addr))
		add_ip(&m, r->ai_src_addr, ACM_SOURCE);
	if (is_ip(r->ai_dst_addr))
		add_ip(&m, r->ai_dst_addr, ACM_DESTINATION | hurry);
	add_path(&m, r, hints);
	return m;
}

/* --- the answer --- */

/* Gives @r those paths of the answer @m that lead from an adapter of this
 * process. False: there are none, or there is no memory. */
static bool take_paths(struct rdma_addrinfo *r, const struct acm_message *m)
{
	struct ibv_path_data *list = calloc(MOST_ENTRIES, sizeof(*list));
	unsigned count = 0;

	for (unsigned i = 0; list && i < entry_count(m); i++) {
		const struct acm_entry *e = &m->entries[i];
		struct vb_gid sgid;

		memcpy(sgid.raw, e->path.sgid.raw, sizeof(sgid.raw));
		if (e->type != ACM_PATH || !rcm_device_is_ib(&sgid))
			continue;
		list[count].flags = e->flags;
		list[count++].path = e->path;
	}
	if (!count) {
		free(list);
		return false;
	}
	free(r->ai_route);
	r->ai_route = list;
	r->ai_route_len = count * sizeof(*list);
	return true;
}

/* Gives @r the source address that the daemon has chosen, unless @r has one. */
static void take_source(struct rdma_addrinfo *r, const struct acm_message *m)
{
	for (unsigned i = 0; i < entry_count(m) && !r->ai_src_addr; i++) {
		const struct acm_entry *e = &m->entries[i];
		struct vb_gid gid;

		if (!(e->flags & ACM_SOURCE) ||
		    (e->type != ACM_IPV4 && e->type != ACM_IPV6))
			continue;
		memcpy(gid.raw, e->address, sizeof(gid.raw));
		if (e->type == ACM_IPV4)
			gid = vb_gid_from_ipv4(e->address);
		r->ai_src_addr = calloc(1, sizeof(struct sockaddr_in6));
		if (!r->ai_src_addr)
			return;
		rcm_address_of(r->ai_src_addr, &gid, 0, 0);
		r->ai_src_len = rcm_address_bytes(r->ai_src_addr);
	}
}

static struct sockaddr *gid_address(const struct rdma_addrinfo *r,
				    const struct ibv_path_record *path,
				    const union ibv_gid *gid,
				    const struct sockaddr *ip)
{
	struct sockaddr_ib *sib = calloc(1, sizeof(*sib));
	struct vb_gid raw;

	if (!sib)
		return NULL;
	memcpy(raw.raw, gid->raw, sizeof(raw.raw));
	rcm_address_of_ib((struct sockaddr *)sib, &raw,
			  (uint16_t)r->ai_port_space, ip ? rcm_port_of(ip) : 0);
	sib->sib_pkey = path->pkey;
	sib->sib_flowinfo =
		htobe32(be32toh(path->flowlabel_hoplimit) >> 8 & 0xfffff);
	return (struct sockaddr *)sib;
}

/* Makes the header of rdma_cm, by which a listener at an IP address knows both
 * ends of a request that comes between GIDs (IBA annex A11). */
#define HEADER_BYTES 36
static void *connect_header(const struct rdma_addrinfo *r)
{
	const bool v4 = r->ai_family == AF_INET;
	const unsigned from = v4 ? 12 : 0;
	uint8_t *h = calloc(1, HEADER_BYTES);
	struct vb_gid gid;

	if (!h)
		return NULL;
	h[1] = (uint8_t)((v4 ? 4 : 6) << 4);
	if (is_ip(r->ai_src_addr)) {
		gid = rcm_gid_of(r->ai_src_addr);
		memcpy(h + 4 + from, gid.raw + from, 16 - from);
	}
	gid = rcm_gid_of(r->ai_dst_addr);
	memcpy(h + 20 + from, gid.raw + from, 16 - from);
	return h;
}

static struct rdma_addrinfo *by_gids(const struct rdma_addrinfo *r)
{
	const struct ibv_path_data *d = r->ai_route;
	struct rdma_addrinfo *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->ai_flags = r->ai_flags;
	n->ai_family = AF_IB;
	n->ai_qp_type = r->ai_qp_type;
	n->ai_port_space = r->ai_port_space;
	n->ai_src_len = n->ai_dst_len = sizeof(struct sockaddr_ib);
	n->ai_src_addr =
		gid_address(n, &d->path, &d->path.sgid, r->ai_src_addr);
	n->ai_dst_addr =
		gid_address(n, &d->path, &d->path.dgid, r->ai_dst_addr);
	n->ai_route_len = r->ai_route_len;
	n->ai_route = malloc(n->ai_route_len);
	if (n->ai_route)
		memcpy(n->ai_route, d, n->ai_route_len);
	if (r->ai_family != AF_IB) {
		n->ai_connect_len = HEADER_BYTES;
		n->ai_connect = connect_header(r);
	}
	if (n->ai_src_addr && n->ai_dst_addr && n->ai_route &&
	    (n->ai_connect || !n->ai_connect_len))
		return n;
	rdma_freeaddrinfo(n);
	return NULL;
}

/* Asks the daemon by the socket @fd for the path to the address of the first
 * result in *@list, and puts a result with GID addresses before *@list. */
static void resolve_at(int fd, struct rdma_addrinfo **list,
		       const struct rdma_addrinfo *hints)
{
	struct acm_message m = question(*list, hints);
	struct rdma_addrinfo *n;

	if (!entry_count(&m))
		return;
	if (!ask_daemon(fd, &m)) {
		vb_log(LOG_INFO, "rdmacm: ibacm does not answer");
		return;
	}
	if (m.header.status || !take_paths(*list, &m))
		return;
	take_source(*list, &m);
	n = by_gids(*list);
	if (!n)
		return;
	n->ai_next = *list;
	*list = n;
}

void rcm_acm_resolve(struct rdma_addrinfo **list,
		     const struct rdma_addrinfo *hints)
{
	int fd = connect_daemon();

	if (fd < 0)
		return;
	if (rcm_session_start() == 0 && rcm.has_ib)
		resolve_at(fd, list, hints);
	close(fd);
}
