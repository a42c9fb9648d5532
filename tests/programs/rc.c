/* SPDX-License-Identifier: BSD-2-Clause */
/* A device, a reliable connection, and a TCP connection on which the two
 * programs agree on addresses and order. */
#include "rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void must(bool truth, const char *what)
{
	if (!truth)
		die("%s: %s", what, strerror(errno));
}

uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
	return bound ? rng_next(r) % bound : 0;
}

void rng_fill(struct rng *r, void *bytes, size_t len)
{
	uint8_t *to = bytes;
	uint64_t word;

	for (; len >= 8; to += 8, len -= 8) {
		word = rng_next(r);
		memcpy(to, &word, 8);
	}
	if (len) {
		word = rng_next(r);
		memcpy(to, &word, len);
	}
}

double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

void rc_read_option(struct rc_options *o, int letter)
{
	switch (letter) {
	case 'd':
		o->device = optarg;
		break;
	case 'p':
		o->port = atoi(optarg);
		break;
	case '4':
	case '6':
		o->family = letter - '0';
		break;
	default:
		/* getopt() has printed the unknown option */
		exit(2);
	}
}

char **rc_read_options(struct rc_options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS)) != -1)
		rc_read_option(o, c);
	return argv + optind;
}

static struct ibv_device *find_device(struct ibv_device **list,
				      const char *name)
{
	for (int i = 0; list[i]; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	die("no device %s", name ? name : "at all");
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* Find the first GID of the family that is an address which an administrator
 * assigned. An iWARP port has one GID, and the first of an InfiniBand port is
 * its own. */
static int find_gid(struct ibv_context *c, bool has_lid, int family, int count,
		    union ibv_gid *gid)
{
	static const union ibv_gid none;

	if (c->device->transport_type == IBV_TRANSPORT_IWARP || has_lid) {
		must(!ibv_query_gid(c, 1, 0, gid), "ibv_query_gid");
		return 0;
	}
	for (int i = 1; i < count; i++) {
		if (ibv_query_gid(c, 1, i, gid) ||
		    !memcmp(gid, &none, sizeof(none)))
			continue;
		if (is_ipv4(gid) == (family == 4) && gid->raw[0] != 0xfe)
			return i;
	}
	die("no IPv%d address on the device", family);
}

void rc_open(struct rc_device *d, const struct rc_options *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	must(list, "ibv_get_device_list");
	d->context = ibv_open_device(find_device(list, o->device));
	must(d->context, "ibv_open_device");
	ibv_free_device_list(list);
	must(!ibv_query_port(d->context, 1, &port), "ibv_query_port");
	if (port.state != IBV_PORT_ACTIVE)
		die("the port is not active");
	d->lid = port.lid;
	d->global = !d->lid || o->family == 6;
	d->gid_index = find_gid(d->context, d->lid, o->family, port.gid_tbl_len,
				&d->gid);
	d->mtu = o->mtu ? o->mtu : port.active_mtu;
	d->pd = ibv_alloc_pd(d->context);
	must(d->pd, "ibv_alloc_pd");
}

void rc_close(struct rc_device *d)
{
	must(!ibv_dealloc_pd(d->pd), "ibv_dealloc_pd");
	must(!ibv_close_device(d->context), "ibv_close_device");
}

struct ibv_qp *rc_qp(struct rc_device *d, struct ibv_cq *cq, unsigned wrs,
		     unsigned sges, unsigned inline_bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = wrs,
			 .max_recv_wr = wrs,
			 .max_send_sge = sges,
			 .max_recv_sge = sges,
			 .max_inline_data = inline_bytes },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &attr);

	must(qp, "ibv_create_qp");
	return qp;
}

struct rc_address rc_address(const struct rc_device *d, const struct ibv_qp *qp,
			     uint32_t psn)
{
	return (struct rc_address){ d->gid, d->lid, qp->qp_num, psn & 0xffffff,
				    d->mtu };
}

/* Returns the attribute mask for INIT; an RNIC has no P_Key. */
static int init_mask(const struct ibv_qp *qp)
{
	if (qp->context->device->transport_type == IBV_TRANSPORT_IWARP)
		return IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

int rc_to_init(struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = access };

	return ibv_modify_qp(qp, &attr, init_mask(qp));
}

struct ibv_ah_attr rc_path(const struct rc_device *d, const union ibv_gid *gid,
			   uint16_t lid)
{
	struct ibv_ah_attr to = { .dlid = lid, .port_num = 1 };

	if (!d->global)
		return to;
	to.is_global = 1;
	to.grh.dgid = *gid;
	to.grh.sgid_index = (uint8_t)d->gid_index;
	to.grh.hop_limit = 64;
	return to;
}

int rc_to_rtr(const struct rc_device *d, struct ibv_qp *qp,
	      const struct rc_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < d->mtu ? peer->mtu : d->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = rc_path(d, &peer->gid, peer->lid),
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

int rc_to_rts(struct ibv_qp *qp, const struct rc_options *o, uint32_t psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = (uint8_t)o->timeout,
				    .retry_cnt = (uint8_t)o->retry,
				    .rnr_retry = (uint8_t)o->rnr_retry,
				    .sq_psn = psn & 0xffffff,
				    .max_rd_atomic = 16 };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

void rc_start_datagrams(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = qkey };

	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY),
	     "RESET to INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "INIT to RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN),
	     "RTR to RTS");
}

void rc_connect(const struct rc_device *d, struct ibv_qp *qp,
		const struct rc_options *o, uint32_t psn,
		const struct rc_address *peer)
{
	must(!rc_to_init(qp, RC_ALL_ACCESS), "RESET to INIT");
	must(!rc_to_rtr(d, qp, peer), "INIT to RTR");
	must(!rc_to_rts(qp, o, psn), "RTR to RTS");
}

bool rc_wait(struct ibv_cq *cq, double limit, struct ibv_wc *wc)
{
	double until = seconds() + limit;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		must(n >= 0, "ibv_poll_cq");
		if (n)
			return true;
	} while (seconds() < until);
	return false;
}

static int tcp_listen(int port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	int one = 1, zero = 0, fd, listener;

	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(listener >= 0, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	must(!bind(listener, (void *)&any, sizeof(any)), "bind");
	must(!listen(listener, 1), "listen");
	fd = accept(listener, NULL, NULL);
	must(fd >= 0, "accept");
	close(listener);
	return fd;
}

static int tcp_call(const char *host, int port)
{
	struct addrinfo *to, hints = { .ai_socktype = SOCK_STREAM };
	char service[8];
	int fd = -1;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &to))
		die("no host %s", host);
	for (int tries = 0; tries < 100; tries++) {
		fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(fd >= 0, "socket");
		if (!connect(fd, to->ai_addr, to->ai_addrlen))
			break;
		close(fd);
		fd = -1;
		usleep(50000);
	}
	must(fd >= 0, "connect");
	freeaddrinfo(to);
	return fd;
}

int tcp_meet(const struct rc_options *o)
{
	int fd = o->host ? tcp_call(o->host, o->port) : tcp_listen(o->port);
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

void tcp_send(int fd, const void *bytes, size_t len)
{
	ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

	must(n == (ssize_t)len, "the other side is gone: send");
}

void tcp_recv(int fd, void *bytes, size_t len)
{
	ssize_t n = recv(fd, bytes, len, MSG_WAITALL);

	if (n >= 0 && n < (ssize_t)len)
		die("the other side is gone");
	must(n >= 0, "recv");
}

void tcp_swap(int fd, const void *mine, void *theirs, size_t len)
{
	tcp_send(fd, mine, len);
	tcp_recv(fd, theirs, len);
}

void tcp_barrier(int fd)
{
	char mine = 'b', theirs;

	tcp_swap(fd, &mine, &theirs, 1);
	if (theirs != mine)
		die("the sides no longer agree where they are");
}
