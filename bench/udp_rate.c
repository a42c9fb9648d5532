/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many datagrams a second plain UDP carries here, in batches of both
 * kinds (sendmmsg and UDP_SEGMENT; recvmmsg and UDP_GRO): what Verbena's
 * messages a second are measured against. As with messages, the bytes of each
 * datagram come from the sender's memory and go to the receiver's, copied one
 * by one; nothing is checked and nothing answered.
 *
 *	udp_rate [OPTIONS]		counts what arrives
 *	udp_rate [OPTIONS] ADDRESS	sends to it
 *
 * OPTIONS: -p PORT, -t SECONDS, -s BYTES of a datagram, -w COUNT.
 *
 * The receiver counts for the given time from the first datagram on, prints
 * one line and ends; the sender sends a little longer.
 *
 * With -w both do what perftest's default makes of any adapter: no more than
 * COUNT datagrams (128, say) are under way, each call's are answered with one
 * datagram, and the sender learns of them a hundred at a time. Both spin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/defs.h"

#define MSGS	  16
#define SEGMENTS  64
#define MSG_BYTES 65000
#define RX_QUEUE  (8 << 20)
#define SIGNALLED 100 /* perftest asks for each hundredth completion */

struct options {
	uint16_t port;
	/* @window: the most datagrams under way; 0: the receiver answers
	 * nothing */
	unsigned seconds, bytes, window;
	const char *address;
};

struct batch {
	struct mmsghdr headers[MSGS];
	struct iovec vectors[MSGS];
	_Alignas(struct cmsghdr) uint8_t control[MSGS][64];
	struct sockaddr_in from[MSGS];
	uint8_t bytes[MSGS][1 << 16];
};

/* the memory from which datagrams are sent, or into which they are copied */
static uint8_t memory[1 << 16];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) < 0)
		die("setsockopt");
}

static struct batch *make_batch(void)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		die("calloc");
	for (int i = 0; i < MSGS; i++) {
		b->vectors[i].iov_base = b->bytes[i];
		b->vectors[i].iov_len = sizeof(b->bytes[i]);
		b->headers[i].msg_hdr.msg_iov = &b->vectors[i];
		b->headers[i].msg_hdr.msg_iovlen = 1;
		b->headers[i].msg_hdr.msg_control = b->control[i];
		b->headers[i].msg_hdr.msg_name = &b->from[i];
	}
	return b;
}

static void lay_out(struct batch *b)
{
	for (int i = 0; i < MSGS; i++) {
		b->headers[i].msg_hdr.msg_controllen = sizeof(b->control[i]);
		b->headers[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
	}
}

static unsigned segment_of(struct mmsghdr *m)
{
	struct msghdr *h = &m->msg_hdr;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			return (unsigned)*(const int *)CMSG_DATA(c);
	return m->msg_len;
}

/* Separate the datagrams that the kernel joined into one message. Returns the
 * number of datagrams. */
static unsigned take(struct mmsghdr *m, uint8_t *to)
{
	const uint8_t *from = m->msg_hdr.msg_iov->iov_base;
	unsigned segment = VB_MAX(segment_of(m), 1u), count = 0;

	for (unsigned at = 0; at < m->msg_len; at += segment, count++)
		memcpy(to, from + at, VB_MIN(segment, m->msg_len - at));
	return count;
}

/* Send the sender the number of datagrams that have come so far. */
static void answer(int fd, const struct batch *b, uint64_t count)
{
	const struct msghdr *h = &b->headers[0].msg_hdr;

	if (sendto(fd, &count, sizeof(count), 0, h->msg_name, h->msg_namelen) <
	    0)
		die("sendto");
}

static void receive(const struct options *o)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_port = htons(o->port) };
	struct batch *b = make_batch();
	int flags = o->window ? MSG_DONTWAIT : MSG_WAITFORONE, n;
	double first = 0, took = 0, count = 0, bytes = 0;

	set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	set_option(fd, SOL_SOCKET, SO_RCVBUF, RX_QUEUE);
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0)
		die("bind");
	while (took < o->seconds) {
		lay_out(b);
		n = recvmmsg(fd, b->headers, MSGS, flags, NULL);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n < 0)
			die("recvmmsg");
		if (first == 0)
			first = now();
		for (int i = 0; i < n; i++) {
			count += take(&b->headers[i], memory);
			bytes += b->headers[i].msg_len;
		}
		if (o->window)
			answer(fd, b, (uint64_t)count);
		took = now() - first;
	}
	printf("%.0f datagrams/s %.3f GB/s\n", count / took,
	       bytes / took / 1e9);
}

/* Prepare messages of as many datagrams as one message may hold. */
static void begin(struct batch *b, const struct options *o)
{
	unsigned segments = VB_MIN(SEGMENTS, MSG_BYTES / o->bytes);
	uint16_t bytes = (uint16_t)o->bytes;

	for (int i = 0; i < MSGS; i++) {
		struct msghdr *h = &b->headers[i].msg_hdr;
		struct cmsghdr *c = (struct cmsghdr *)b->control[i];

		b->vectors[i].iov_len = segments * o->bytes;
		h->msg_controllen = CMSG_SPACE(sizeof(bytes));
		c->cmsg_len = CMSG_LEN(sizeof(bytes));
		c->cmsg_level = IPPROTO_UDP;
		c->cmsg_type = UDP_SEGMENT;
		memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
	}
}

static void fill(struct batch *b, const struct options *o)
{
	for (int i = 0; i < MSGS; i++)
		for (unsigned at = 0; at < b->vectors[i].iov_len;
		     at += o->bytes)
			memcpy(b->bytes[i] + at, memory, o->bytes);
}

/* Send @count datagrams as a train (UDP_SEGMENT), after copying each. */
static void send_some(int fd, struct batch *b, const struct options *o,
		      unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		memcpy(b->bytes[0] + i * o->bytes, memory, o->bytes);
	b->vectors[0].iov_len = count * o->bytes;
	if (sendmmsg(fd, b->headers, 1, 0) < 0)
		die("sendmmsg");
}

static void transmit_window(int fd, struct batch *b, const struct options *o,
			    double end)
{
	uint64_t sent = 0, known = 0, come = 0;

	while (now() < end) {
		uint64_t room = known + o->window - sent;

		if (room)
			send_some(fd, b, o, (unsigned)VB_MIN(room, SEGMENTS));
		sent += VB_MIN(room, SEGMENTS);
		if (recv(fd, &come, sizeof(come), MSG_DONTWAIT) > 0)
			known = come - come % SIGNALLED;
	}
}

static void transmit(const struct options *o)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(o->port) };
	struct batch *b = make_batch();
	double end = now() + o->seconds + 0.5;

	if (inet_pton(AF_INET, o->address, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	begin(b, o);
	if (o->window)
		transmit_window(fd, b, o, end);
	/* Send until the receiver is gone, or the time is over. */
	do
		fill(b, o);
	while (now() < end && sendmmsg(fd, b->headers, MSGS, 0) > 0);
}

int main(int argc, char **argv)
{
	struct options o = { .port = 4999, .seconds = 3, .bytes = 64 };
	int c;

	while ((c = getopt(argc, argv, "p:t:s:w:")) != -1) {
		if (c == 'p')
			o.port = (uint16_t)atoi(optarg);
		else if (c == 't')
			o.seconds = (unsigned)atoi(optarg);
		else if (c == 's')
			o.bytes = (unsigned)atoi(optarg);
		else if (c == 'w')
			o.window = (unsigned)atoi(optarg);
		else
			return 2;
	}
	if (o.bytes == 0 || o.bytes > MSG_BYTES)
		return 2;
	o.address = argv[optind];
	if (o.address)
		transmit(&o);
	else
		receive(&o);
	return 0;
}
