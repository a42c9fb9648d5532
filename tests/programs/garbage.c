/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends garbage to port 4791 as fast as it can: random bytes, packets that are
 * right except for some fields, and hostile packets with a right ICRC.
 *
 *	garbage [-n COUNT] [-s SEED] [-m FILE...] FROM TO
 *
 * FROM and TO are two IPv4 or two IPv6 addresses. -m, given once for each file:
 * sends datagrams to queue pair 1 instead, made from these captured MADs:
 * repeated, damaged, cut short, with another attribute, or as a new request.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"
#include "roce.h"

#define BATCH	64
#define ROOM	1400
#define HEADERS 48 /* bytes of the IPv6 and UDP headers of a packet */
#define MAD	256
#define MADS	32

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static struct rng rng;
static union address from, to;
static int fd;
static uint8_t captured[MADS][MAD];
static unsigned mads;

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* Write the headers that the kernel will send, as far as the ICRC covers
 * them. */
static size_t put_ip(uint8_t *packet, size_t payload)
{
	bool v4 = from.any.sa_family == AF_INET;
	size_t ip = v4 ? 20 : 40;

	memset(packet, 0, ip + 8);
	if (v4) {
		packet[0] = 0x45;
		put(packet + 2, 2, 28 + payload);
		/* flag DF in the IPv4 header; identification 0 */
		packet[6] = 0x40;
		packet[9] = 17;
		memcpy(packet + 12, &from.v4.sin_addr, 4);
		memcpy(packet + 16, &to.v4.sin_addr, 4);
		memcpy(packet + 20, &from.v4.sin_port, 2);
	} else {
		packet[0] = 0x60;
		put(packet + 4, 2, 8 + payload);
		packet[6] = 17;
		memcpy(packet + 8, &from.v6.sin6_addr, 16);
		memcpy(packet + 24, &to.v6.sin6_addr, 16);
		memcpy(packet + 40, &from.v6.sin6_port, 2);
	}
	put(packet + ip + 2, 2, ROCE_PORT);
	put(packet + ip + 4, 2, 8 + payload);
	return ip + 8;
}

static void seal(uint8_t *payload, size_t len)
{
	uint8_t packet[HEADERS + ROOM];
	size_t head = put_ip(packet, len);
	uint32_t crc;

	memcpy(packet + head, payload, len - 4);
	crc = roce_icrc(packet, head + len - 4);
	for (int i = 0; i < 4; i++)
		payload[len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

/* Returns a QPN: one that a program may have, any number, or a special one. */
static uint32_t pick_qpn(void)
{
	static const uint32_t special[] = { 0,	      1,      2,      0xffffff,
					    0xfffffe, 0x7fff, 0x8000, 0x8001 };

	switch (rng_below(&rng, 4)) {
	case 0:
		return rng_next(&rng) & 0xffffff;
	case 1:
		return special[rng_below(&rng, 8)];
	default:
		return (uint32_t)(rng_below(&rng, 8) << 15 |
				  rng_below(&rng, 1 << 15));
	}
}

static size_t headers(unsigned operation)
{
	static const uint8_t bytes[32] = {
		[3] = 4,   [5] = 4,   [6] = 16, [9] = 4,  [10] = 16, [11] = 20,
		[12] = 16, [13] = 4,  [15] = 4, [16] = 4, [17] = 4,  [18] = 12,
		[19] = 28, [20] = 28, [22] = 4, [23] = 4,
	};

	return bytes[operation];
}

/* Write a well-formed packet: any RC operation, with any values in its
 * headers. */
static size_t well_formed(uint8_t *p)
{
	unsigned operation = (unsigned)rng_below(&rng, 24);
	size_t data = rng_below(&rng, 3) ? rng_below(&rng, 1100) & ~3u : 0;
	size_t len = 12 + headers(operation) + data;

	rng_fill(&rng, p, len);
	p[0] = (uint8_t)operation;
	if (!rng_below(&rng, 8))
		p[0] |= (uint8_t)(rng_below(&rng, 8) << 5);
	p[1] = rng_next(&rng) & 0x80;
	put(p + 2, 2, 0xffff);
	p[4] = 0;
	put(p + 5, 3, pick_qpn());
	if (headers(operation) >= 16)
		put(p + 24, 4, rng_below(&rng, 2) ? data : rng_next(&rng));
	return len + 4;
}

static void flip_some(uint8_t *p, size_t len)
{
	for (uint64_t n = 1 + rng_below(&rng, 4); n; n--)
		p[rng_below(&rng, len)] ^= (uint8_t)(1 << rng_below(&rng, 8));
}

/* Change the sender's numbers, and the queue pair of a request, so that the MAD
 * is new. */
static void renew(uint8_t *mad)
{
	put(mad + 8, 8, rng_next(&rng));
	put(mad + 24, 4, rng_next(&rng));
	put(mad + 40, 8, rng_below(&rng, 4));
	put(mad + 56, 3, rng_next(&rng));
}

static size_t change_mad(uint8_t *mad)
{
	size_t at = rng_below(&rng, MAD - 16);

	switch (rng_below(&rng, 8)) {
	case 0:
	case 1:
		return MAD; /* send the captured MAD again as it is */
	case 2:
		renew(mad);
		return MAD;
	/* change the MAD's attribute, and thus the kind of CM message */
	case 3:
		put(mad + 16, 2, 0x0f + rng_below(&rng, 12));
		return MAD;
	case 4:
		return rng_below(&rng, MAD) & ~3u;
	case 5: /* replace 16 bytes by those of another captured MAD */
		memcpy(mad + at, captured[rng_below(&rng, mads)] + at, 16);
		return MAD;
	default:
		flip_some(mad, MAD);
		return MAD;
	}
}

static size_t management(uint8_t *p)
{
	static const uint8_t head[20] = {
		0x64, 0x40, 0xff, 0xff, 0, 0, 0, 1, 0, 0,
		0,    0,    0x80, 1,	0, 0, 0, 0, 0, 1,
	};
	size_t len;

	memcpy(p, head, sizeof(head));
	memcpy(p + sizeof(head), captured[rng_below(&rng, mads)], MAD);
	len = sizeof(head) + change_mad(p + sizeof(head)) + 4;
	seal(p, len);
	return len;
}

static size_t datagram(uint8_t *p)
{
	size_t len;

	if (mads)
		return management(p);
	switch (rng_below(&rng, 5)) {
	case 0: /* a packet of random bytes */
		len = rng_below(&rng, ROOM);
		rng_fill(&rng, p, len);
		return len;
	case 1: /* a well-formed packet with a wrong ICRC */
		len = well_formed(p);
		rng_fill(&rng, p + len - 4, 4);
		return len;
	/* a well-formed packet with a right ICRC and random field values */
	case 2:
		len = well_formed(p);
		break;
	case 3: /* flip bits of a packet, then compute its ICRC */
		len = well_formed(p);
		flip_some(p, len - 4);
		break;
	default: /* a packet that is cut short, with a right ICRC */
		len = 16 + rng_below(&rng, well_formed(p) - 15);
		break;
	}
	seal(p, len);
	return len;
}

static void read_address(const char *text, union address *a)
{
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1)
		a->v4.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1)
		a->v6.sin6_family = AF_INET6;
	else
		die("no address: %s", text);
}

static void read_mad(const char *name)
{
	FILE *f = fopen(name, "rb");

	must(f && mads < MADS && fread(captured[mads], MAD, 1, f) == 1, name);
	fclose(f);
	mads++;
}

static socklen_t length(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static void open_socket(void)
{
	int probe = IP_PMTUDISC_PROBE;
	socklen_t len = length(&from);

	fd = socket(from.any.sa_family, SOCK_DGRAM, 0);
	must(fd >= 0, "socket");
	/* With IP_MTU_DISCOVER, an unconnected socket sends Identification
	 * 0. */
	if (from.any.sa_family == AF_INET)
		must(!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe,
				 sizeof(probe)),
		     "IP_MTU_DISCOVER");
	must(!bind(fd, &from.any, len), "bind");
	must(!getsockname(fd, &from.any, &len), "getsockname");
	/* sin_port and sin6_port are at the same offset of their structs. */
	to.v4.sin_port = htons(ROCE_PORT);
}

static void send_batch(unsigned count)
{
	static uint8_t bytes[BATCH][ROOM + 64];
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec pieces[BATCH];
	int sent;

	for (unsigned i = 0; i < count; i++) {
		pieces[i].iov_base = bytes[i];
		pieces[i].iov_len = datagram(bytes[i]);
		messages[i].msg_hdr.msg_iov = &pieces[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &to;
		messages[i].msg_hdr.msg_namelen = length(&to);
	}
	for (unsigned done = 0; done < count; done += (unsigned)sent) {
		sent = sendmmsg(fd, messages + done, count - done, 0);
		must(sent > 0, "sendmmsg");
	}
}

int main(int argc, char **argv)
{
	unsigned long count = 100000, left;
	double start = seconds();
	int c;

	rng.state = (uint64_t)(start * 1e9);
	while ((c = getopt(argc, argv, "n:s:m:")) != -1) {
		if (c == 'n')
			count = strtoul(optarg, NULL, 0);
		else if (c == 's')
			rng.state = strtoull(optarg, NULL, 0);
		else if (c == 'm')
			read_mad(optarg);
		else
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	read_address(argv[optind], &from);
	read_address(argv[optind + 1], &to);
	printf("seed %#llx\n", (unsigned long long)rng.state);
	open_socket();
	for (left = count; left; left -= left < BATCH ? left : BATCH)
		send_batch(left < BATCH ? (unsigned)left : BATCH);
	printf("%lu datagrams, %.0f a second\n", count,
	       (double)count / (seconds() - start));
	return 0;
}
