/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets. Each has a UDP socket, which gives it its address and port,
 * and a queue pair for each local address that it has sent from. A datagram to
 * a peer whose queue pair is unknown goes over UDP; the peer answers with the
 * number of its queue pair, and later datagrams go from queue pair to queue
 * pair. A datagram that is longer than the device's MTU goes over UDP as well.
 *
 * No thread serves the sockets: a call of the program on the socket also reads
 * the UDP socket and answers peers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "front/rsockets/dgram_addr.h"
#include "front/rsockets/dgram_header.h"
#include "front/rsockets/rs.h"
#include "front/rsockets/ud.h"

enum {
	BUCKETS = 64,
	/* destinations in a hash bucket, a limit against a flood of senders */
	DESTS_PER_BUCKET = 64,
	/* the most datagrams received over UDP that a socket keeps unread */
	UDP_KEPT = 256,
	/* the most buffers (iovec) of one message of the program */
	PIECES = 16,
};

/*
 * Nanoseconds. A peer may end and another program get its address. So a
 * destination that the socket has not used for IDLE, and any destination every
 * OLD, is sent one datagram over UDP, and the answer tells its queue pair
 * again.
 */
#define IDLE ((uint64_t)1000000000)
#define OLD  (10 * IDLE)

struct dest {
	struct dest *next;
	struct sockaddr_storage to;
	struct rs_ud *ud;
	/* address handle; NULL: the peer's queue pair is not known */
	struct ibv_ah *ah;
	uint32_t qpn;
	/* times in ns: when a datagram was last sent over UDP, and when one
	 * was last sent either way */
	uint64_t asked, used;
};

struct rs_dgram {
	int udp;
	bool connected;
	struct sockaddr_storage peer;
	struct rs_ud *uds;
	struct dest *dests[BUCKETS];
	struct rs_dgram_header *first, **last;
	/* number of unread datagrams, and how many of them came over UDP */
	unsigned waiting, by_udp;
};

/* Returns the local address and port of datagrams to @to. First binds a socket
 * that has no port to one. 0 or -errno. */
static int own_address(struct rs_sock *rs, const struct sockaddr *to,
		       struct sockaddr_storage *own)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain };
	socklen_t n = sizeof(*own);
	uint16_t port;
	int fd, rc = 0;

	if (getsockname(rs->dgram->udp, (struct sockaddr *)own, &n))
		return -errno;
	if (rs_addr_port(own) == 0) {
		n = rs_addr_bytes((struct sockaddr *)&any);
		if (bind(rs->dgram->udp, (struct sockaddr *)&any, n) ||
		    getsockname(rs->dgram->udp, (struct sockaddr *)own, &n))
			return -errno;
	}
	rs_addr_unmap(own);
	if (!rs_addr_is_any(own))
		return 0;
	port = rs_addr_port(own);
	n = sizeof(*own);
	fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, to, rs_addr_bytes(to)) ||
	    getsockname(fd, (struct sockaddr *)own, &n))
		rc = -errno;
	close(fd);
	rs_addr_set_port(own, port);
	return rc;
}

/* Functions that find and drop destinations. */

static void drop_dest(struct dest **at)
{
	struct dest *dest = *at;

	*at = dest->next;
	if (dest->ah)
		ibv_destroy_ah(dest->ah);
	free(dest);
}

static struct rs_ud *find_ud(struct rs_sock *rs,
			     const struct sockaddr_storage *own)
{
	struct rs_ud *ud;

	for (ud = rs->dgram->uds; ud; ud = ud->next)
		if (rs_addr_same(&ud->own, own))
			return ud;
	ud = rs_ud_open(rs, (const struct sockaddr *)own);
	if (!ud)
		return NULL;
	ud->next = rs->dgram->uds;
	rs->dgram->uds = ud;
	return ud;
}

static struct dest *new_dest(struct rs_sock *rs, const struct sockaddr *to)
{
	struct dest *dest = calloc(1, sizeof(*dest));
	struct sockaddr_storage own;
	int rc;

	if (!dest)
		return NULL;
	rc = own_address(rs, to, &own);
	if (rc == 0) {
		memcpy(&dest->to, to, rs_addr_bytes(to));
		dest->ud = find_ud(rs, &own);
		if (dest->ud)
			return dest;
		rc = -errno;
	}
	free(dest);
	errno = -rc;
	return NULL;
}

/* Finds or makes the destination and moves it to the front of its bucket; a
 * full bucket loses the one that was used least recently. NULL: failed, with
 * errno. */
static struct dest *find_dest(struct rs_sock *rs, const struct sockaddr *to)
{
	const struct sockaddr_storage *key = (const void *)to;
	struct dest **bucket = &rs->dgram->dests[rs_addr_hash(key) % BUCKETS],
		    **at, *dest;
	unsigned count = 0;

	for (at = bucket; *at; at = &(*at)->next) {
		if (rs_addr_same(&(*at)->to, key))
			break;
		if (++count == DESTS_PER_BUCKET) {
			drop_dest(at);
			break;
		}
	}
	dest = *at;
	if (dest)
		*at = dest->next;
	else
		dest = new_dest(rs, to);
	if (!dest)
		return NULL;
	dest->next = *bucket;
	*bucket = dest;
	return dest;
}

static void learn(struct dest *dest, uint32_t qpn)
{
	if (!dest->ah)
		dest->ah = rs_ud_way(dest->ud, (struct sockaddr *)&dest->to);
	dest->qpn = qpn;
}

/* Functions that send and receive over UDP. */

static ssize_t send_udp(const struct rs_sock *rs, const struct dest *dest,
			enum rs_dgram_header_op op, const struct iovec *iov,
			unsigned count, int flags)
{
	struct sockaddr_storage to = rs_addr_mapped(rs->domain, &dest->to);
	const struct rs_dgram_header_udp h = { op, dest->ud->id->qp->qp_num };
	uint8_t header[RS_DGRAM_UDP_MOST];
	struct iovec all[PIECES + 1] = { { .iov_base = header } };
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = rs_addr_bytes((const struct sockaddr *)&to),
		.msg_iov = all,
		.msg_iovlen = count + 1,
	};

	all[0].iov_len = rs_dgram_header_put_udp(
		header, &h, (struct sockaddr *)&dest->ud->own);
	if (count)
		memcpy(&all[1], iov, count * sizeof(*iov));
	return sendmsg(rs->dgram->udp, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno
								       : 0;
}

static void enqueue(struct rs_dgram *d, struct rs_dgram_header *dg)
{
	dg->next = NULL;
	*d->last = dg;
	d->last = &dg->next;
	d->waiting++;
	if (!dg->ud)
		d->by_udp++;
}

static void keep_udp(struct rs_dgram *d, const struct sockaddr_storage *from,
		     const uint8_t *bytes, size_t n)
{
	struct rs_dgram_header *dg;

	if (d->by_udp == UDP_KEPT)
		return;
	dg = calloc(1, sizeof(*dg) + n);
	if (!dg)
		return;
	dg->from = *from;
	dg->bytes = (uint8_t *)(dg + 1);
	dg->length = (uint32_t)n;
	memcpy(dg->bytes, bytes, n);
	enqueue(d, dg);
}

static void take_udp(struct rs_sock *rs, const struct sockaddr_storage *from,
		     const uint8_t *bytes, size_t n)
{
	struct rs_dgram_header_udp h;
	int header = rs_dgram_header_get_udp(bytes, n, from->ss_family, &h);
	struct dest *dest;

	if (header < 0)
		return;
	dest = find_dest(rs, (const struct sockaddr *)from);
	if (!dest)
		return;
	learn(dest, h.qpn);
	if (h.op != RS_DGRAM_DATA)
		return;
	(void)send_udp(rs, dest, RS_DGRAM_CONTROL, NULL, 0, MSG_DONTWAIT);
	keep_udp(rs->dgram, from, bytes + header, n - (size_t)header);
}

static void drain_udp(struct rs_sock *rs)
{
	enum { AT_ONCE = 64 };
	uint8_t bytes[RS_DGRAM_BYTES];
	struct sockaddr_storage from;
	socklen_t length;
	ssize_t n;

	for (unsigned i = 0; i < AT_ONCE; i++) {
		length = sizeof(from);
		n = recvfrom(rs->dgram->udp, bytes, sizeof(bytes),
			     MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from,
			     &length);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			rs->error = errno;
		if (n < 0)
			return;
		rs_addr_unmap(&from);
		if ((size_t)n <= sizeof(bytes))
			take_udp(rs, &from, bytes, (size_t)n);
	}
}

static bool is_wanted(const struct rs_dgram *d,
		      const struct rs_dgram_header *dg)
{
	return !d->connected || rs_addr_same(&d->peer, &dg->from);
}

static void drain_ud(struct rs_dgram *d, struct rs_ud *ud)
{
	struct rs_dgram_header *dg;

	while ((dg = rs_ud_next(ud))) {
		rs_addr_unmap(&dg->from);
		if (is_wanted(d, dg))
			enqueue(d, dg);
		else
			rs_ud_give_back(dg);
	}
}

/* Handles what has arrived. The UDP socket wakes a thread that sleeps, which
 * then sets rs->looked to 0, so that this function reads the UDP socket. For a
 * thread that polls, it reads that socket only every LOOK_NS, because each read
 * is a system call. */
void rs_dgram_work(struct rs_sock *rs)
{
	enum { LOOK_NS = 200000 };
	struct rs_dgram *d = rs->dgram;
	uint64_t now = vb_clock_read();

	for (struct rs_ud *ud = d->uds; ud; ud = ud->next)
		drain_ud(d, ud);
	if (now - rs->looked < LOOK_NS)
		return;
	rs->looked = now;
	drain_udp(rs);
}

bool rs_dgram_arm(struct rs_dgram *d)
{
	bool armed = false;

	for (struct rs_ud *ud = d->uds; ud; ud = ud->next)
		armed |= rs_queue_arm(&ud->queue);
	return armed;
}

bool rs_dgram_woken(struct rs_dgram *d)
{
	bool came = false;

	for (struct rs_ud *ud = d->uds; ud; ud = ud->next)
		came |= rs_queue_woken(&ud->queue);
	return came;
}

unsigned rs_dgram_waiting(const struct rs_dgram *d)
{
	return d->waiting;
}

unsigned rs_dgram_leaving(const struct rs_dgram *d)
{
	unsigned leaving = 0;

	for (const struct rs_ud *ud = d->uds; ud; ud = ud->next)
		leaving += ud->sends - ud->frees;
	return leaving;
}

bool rs_dgram_can_write(struct rs_sock *rs)
{
	for (const struct rs_ud *ud = rs->dgram->uds; ud; ud = ud->next)
		if (ud->frees == 0)
			return false;
	return true;
}

static bool can_read(struct rs_sock *rs)
{
	return rs->dgram->waiting || rs->error || !rs->reads;
}

/* Functions that send and receive for the program. */

static int dgram_take_error(struct rs_sock *rs)
{
	int error = rs->error;

	rs->error = 0;
	return -error;
}

/* True: the datagram goes to @dest from queue pair to queue pair. False: it
 * goes over UDP. */
static bool by_ud(struct dest *dest, uint32_t bytes)
{
	uint64_t now = vb_clock_read();
	bool fresh = now - dest->used < IDLE && now - dest->asked < OLD;

	dest->used = now;
	if (dest->ah && fresh && rs_ud_fits(dest->ud, bytes))
		return true;
	dest->asked = now;
	return false;
}

/* Sends one datagram with @bytes of payload to @dest. 0 or -errno. */
static int send_datagram(struct rs_sock *rs, struct dest *dest,
			 const struct msghdr *msg, uint32_t bytes, int flags,
			 int timeout)
{
	unsigned count = (unsigned)msg->msg_iovlen;
	int rc;

	if (!by_ud(dest, bytes))
		return (int)send_udp(rs, dest, RS_DGRAM_DATA, msg->msg_iov,
				     count, timeout ? 0 : MSG_DONTWAIT);
	for (;;) {
		rc = rs_ud_send(dest->ud, dest->ah, dest->qpn, msg->msg_iov,
				count, bytes);
		if (rc != -EAGAIN)
			return rc;
		/* rs_wait() has released the lock, so another thread may have
		 * dropped the destination. */
		rc = rs_wait(rs, rs_dgram_can_write, timeout);
		if (rc)
			return rc;
		dest = find_dest(rs, msg->msg_name);
		if (!dest || !dest->ah)
			return -ENOBUFS;
	}
}

/* Returns the length of all pieces of @msg together. -EMSGSIZE: this is more
 * than fits in a datagram, or the pieces are more than PIECES. */
static ssize_t measure(const struct msghdr *msg)
{
	size_t total = 0;

	if (msg->msg_iovlen > PIECES)
		return -EMSGSIZE;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > RS_DGRAM_BYTES)
			return -EMSGSIZE;
		total += msg->msg_iov[i].iov_len;
	}
	return total > RS_DGRAM_BYTES - RS_DGRAM_UDP_MOST ? -EMSGSIZE
							  : (ssize_t)total;
}

ssize_t rs_dgram_send(struct rs_sock *rs, const struct msghdr *asked, int flags,
		      int timeout)
{
	struct rs_dgram *d = rs->dgram;
	ssize_t bytes = measure(asked);
	struct msghdr msg = *asked;
	struct sockaddr_storage to = d->peer;
	struct dest *dest;
	int rc;

	if (bytes < 0)
		return bytes;
	if (!rs->writes)
		return -EPIPE;
	if (msg.msg_name && msg.msg_namelen) {
		if (((struct sockaddr *)msg.msg_name)->sa_family !=
			    rs->domain ||
		    msg.msg_namelen < rs_addr_bytes(msg.msg_name))
			return -EAFNOSUPPORT;
		to = rs_addr_plain(msg.msg_name);
	} else if (!d->connected) {
		return -EDESTADDRREQ;
	}
	msg.msg_name = &to;
	rs_look(rs);
	rc = dgram_take_error(rs);
	if (rc)
		return rc;
	dest = find_dest(rs, msg.msg_name);
	if (!dest)
		return -errno;
	rc = send_datagram(rs, dest, &msg, (uint32_t)bytes, flags, timeout);
	return rc ? rc : bytes;
}

static void dequeue(struct rs_dgram *d)
{
	struct rs_dgram_header *dg = d->first;

	d->first = dg->next;
	if (!d->first)
		d->last = &d->first;
	d->waiting--;
	if (!dg->ud)
		d->by_udp--;
	rs_ud_give_back(dg);
}

static size_t dgram_copy_out(const struct rs_sock *rs,
			     const struct rs_dgram_header *dg,
			     struct msghdr *msg)
{
	const struct sockaddr_storage from =
		rs_addr_mapped(rs->domain, &dg->from);
	size_t done = 0, n;

	for (size_t i = 0; i < msg->msg_iovlen && done < dg->length; i++) {
		n = VB_MIN(msg->msg_iov[i].iov_len, dg->length - done);
		memcpy(msg->msg_iov[i].iov_base, dg->bytes + done, n);
		done += n;
	}
	msg->msg_flags = done < dg->length ? MSG_TRUNC : 0;
	msg->msg_controllen = 0;
	if (msg->msg_name) {
		socklen_t all = rs_addr_bytes((const struct sockaddr *)&from);

		memcpy(msg->msg_name, &from, VB_MIN(msg->msg_namelen, all));
		msg->msg_namelen = all;
	}
	return done;
}

ssize_t rs_dgram_receive(struct rs_sock *rs, struct msghdr *msg, int flags,
			 int timeout)
{
	struct rs_dgram *d = rs->dgram;
	int rc = rs_wait(rs, can_read, timeout);
	ssize_t got;

	if (rc == 0)
		rc = dgram_take_error(rs);
	if (rc)
		return rc;
	if (!d->first) /* the program has shut down the reading side */
		return 0;
	got = (ssize_t)dgram_copy_out(rs, d->first, msg);
	if (flags & MSG_TRUNC)
		got = d->first->length;
	if (!(flags & MSG_PEEK))
		dequeue(d);
	return got;
}

/* Functions that create sockets, set their addresses and shut them down. */

int rs_dgram_make(struct rs_sock *rs)
{
	struct rs_dgram *d = calloc(1, sizeof(*d));
	struct epoll_event event = { .events = EPOLLIN };

	if (!d)
		return -ENOMEM;
	rs->dgram = d;
	d->last = &d->first;
	d->udp = socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rs->reads = rs->writes = true;
	if (d->udp < 0)
		return -errno;
	if (epoll_ctl(rs->fd, EPOLL_CTL_ADD, d->udp, &event))
		return -errno;
	return 0;
}

void rs_dgram_unmake(struct rs_sock *rs)
{
	struct rs_dgram *d = rs->dgram;
	struct rs_ud *ud;

	if (!d)
		return;
	while (d->first)
		dequeue(d);
	for (unsigned i = 0; i < BUCKETS; i++)
		while (d->dests[i])
			drop_dest(&d->dests[i]);
	while ((ud = d->uds)) {
		d->uds = ud->next;
		rs_ud_close(ud);
	}
	if (d->udp >= 0)
		close(d->udp);
	free(d);
	rs->dgram = NULL;
}

int rs_dgram_bind(struct rs_sock *rs, const struct sockaddr *a, socklen_t n)
{
	return bind(rs->dgram->udp, a, n) ? -errno : 0;
}

int rs_dgram_connect(struct rs_sock *rs, const struct sockaddr *a, socklen_t n)
{
	struct rs_dgram *d = rs->dgram;

	if (connect(d->udp, a, n))
		return -errno;
	d->connected = a->sa_family != AF_UNSPEC;
	memset(&d->peer, 0, sizeof(d->peer));
	if (!d->connected)
		return 0;
	/* connect() has checked the address's length */
	d->peer = rs_addr_plain(a);
	return find_dest(rs, (struct sockaddr *)&d->peer) ? 0 : -errno;
}

int rs_dgram_shut(struct rs_sock *rs, int how)
{
	if (!rs->dgram->connected)
		return -ENOTCONN;
	if (how != SHUT_WR)
		rs->reads = false;
	if (how != SHUT_RD)
		rs->writes = false;
	return 0;
}

int rs_dgram_option(struct rs_sock *rs, int level, int name, int value)
{
	return setsockopt(rs->dgram->udp, level, name, &value, sizeof(value))
		       ? -errno
		       : 0;
}

int rs_dgram_name(struct rs_sock *rs, bool peer, struct sockaddr *a,
		  socklen_t *n)
{
	int rc = peer ? getpeername(rs->dgram->udp, a, n)
		      : getsockname(rs->dgram->udp, a, n);

	return rc ? -errno : 0;
}
