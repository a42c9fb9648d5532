/* SPDX-License-Identifier: BSD-2-Clause */
/* The UDP link on real sockets, in network namespaces of the test's own. */
#include "link/udp.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tests/support/icrc.h"
#include "tests/unit/netns.h"
#include "wire/icrc.h"
#include "wire/ipc.h"

#define FAR_MTU 5000

/* The far host: a namespace at the other end of a veth pair. */
static struct {
	int near_ns, far_ns, capture;
	bool there;
} far = { -1, -1, -1, false };

static struct vb_gid gid_of(const char *text)
{
	struct vb_gid gid;
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		return vb_gid_from_ipv4(v4);
	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static uint32_t qpn_in(unsigned slot)
{
	return slot << VB_QPN_BITS | 0x12;
}

static struct vb_link *open_link(void)
{
	struct vb_link *l;
	int fd;

	assert_int_equal(vb_udp_socket(&fd), 0);
	assert_int_equal(vb_udp_open(fd, &l), 0);
	return l;
}

static struct vb_route route_to(struct vb_link *l, const char *from,
				const char *to, uint32_t dqpn)
{
	struct vb_route r = { .sgid = gid_of(from),
			      .dgid = gid_of(to),
			      .dqpn = dqpn };

	assert_int_equal(l->ops->route(l, &r), 0);
	return r;
}

/* A SEND_ONLY-like packet whose bytes follow from @psn. */
static void add_frame(struct vb_txq *q, const struct vb_route *r, uint32_t psn,
		      uint32_t len)
{
	struct vb_writer w = { vb_txq_begin(q) };
	struct vb_bth bth = { .opcode = 4, .dqpn = r->dqpn, .psn = psn };

	assert_true(vb_txq_has_room(q));
	vb_bth_put(&w, &bth);
	for (uint32_t i = VB_BTH_BYTES; i < len; i++)
		vb_put_be(&w, (psn * 31 + i) & 0xff, 1);
	vb_txq_commit(q, len, r);
}

static void check_frame(const struct vb_frame *f, uint32_t psn, uint32_t len)
{
	assert_int_equal(f->len, len);
	assert_int_equal(vb_load_be(f->bytes + 9, 3), psn);
	for (uint32_t i = VB_BTH_BYTES; i < len; i++)
		assert_int_equal(f->bytes[i], (psn * 31 + i) & 0xff);
}

static struct vb_link_stats stats_of(struct vb_link *l)
{
	struct vb_link_stats s;

	l->ops->stats(l, &s);
	return s;
}

/* Results of the last exchange(). */
static uint64_t last_tx_calls;

static void wait_readable(struct vb_link *l)
{
	struct pollfd p = { l->ops->fd(l), POLLIN, 0 };

	assert_int_equal(poll(&p, 1, 2000), 1);
}

static struct vb_txq *txq(void)
{
	static struct vb_txq q;

	vb_txq_reset(&q);
	return &q;
}

static struct vb_rxq *rxq(void)
{
	static struct vb_rxq q;

	return &q;
}

static void close_link(struct vb_link *l)
{
	l->ops->close(l);
	assert_false(vb_udp_port_taken());
}

static void udp_socket__shares_the_port(void **state)
{
	int a, b;

	assert_false(vb_udp_port_taken());
	assert_int_equal(vb_udp_socket(&a), 0);
	assert_true(vb_udp_port_taken());
	assert_int_equal(vb_udp_socket(&b), 0);
	assert_true(vb_udp_is_roce(a));
	assert_true(vb_udp_is_roce(b));
	close(a);
	close(b);
	assert_false(vb_udp_port_taken());
}

static void udp_socket__port_of_another_program(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(VB_ROCE_PORT) };
	int other = socket(AF_INET, SOCK_DGRAM, 0), fd = -1;

	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	assert_int_equal(bind(other, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_true(vb_udp_port_taken());
	assert_int_equal(vb_udp_socket(&fd), -EADDRINUSE);
	close(other);
}

static void udp_is_roce__everything_else(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	int local = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_false(vb_udp_is_roce(tcp));
	assert_false(vb_udp_is_roce(udp));
	assert_false(vb_udp_is_roce(local));
	assert_false(vb_udp_is_roce(STDERR_FILENO));
	assert_false(vb_udp_is_roce(-1));
	close(tcp);
	close(udp);
	close(local);
}

/* Which of the sockets got it? */
static int receiver_of(const int *fds, unsigned count)
{
	struct pollfd p[8];
	char drop[64];

	for (unsigned i = 0; i < count; i++)
		p[i] = (struct pollfd){ fds[i], POLLIN, 0 };
	assert_int_equal(poll(p, count, 2000), 1);
	for (unsigned i = 0; i < count; i++)
		if (p[i].revents) {
			assert_true(recv(fds[i], drop, sizeof(drop), 0) >= 0);
			return (int)i;
		}
	return -1;
}

static void udp_steer__top_bits_pick_the_socket(void **state)
{
	// clang-format off
	static const struct { uint32_t dqpn; unsigned bytes; int slot; } rows[] = {
		{ 0x000001, 16, 0 },
		{ 1u << VB_QPN_BITS, 16, 1 },
		{ (2u << VB_QPN_BITS) - 1, 16, 1 },
		{ 3u << VB_QPN_BITS | 77, 16, 3 },
		{ 4u << VB_QPN_BITS, 16, 0 },
		{ 0xffffff, 16, 0 },
		{ 3u << VB_QPN_BITS, 8, 3 },
		{ 3u << VB_QPN_BITS, 7, 0 },
		{ 0, 0, 0 },
	};
	// clang-format on
	static const char *hosts[] = { "::1", "::ffff:127.0.0.1" };
	int tx = socket(AF_INET6, SOCK_DGRAM, 0), fds[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(vb_udp_socket(&fds[i]), 0);
	assert_int_equal(vb_udp_steer(fds[2], 4), 0);
	for (unsigned i = 0; i < VB_COUNT(rows) * 2; i++) {
		struct sockaddr_in6 to = { .sin6_family = AF_INET6,
					   .sin6_port = htons(VB_ROCE_PORT) };
		uint8_t bytes[16] = { 0 };

		inet_pton(AF_INET6, hosts[i & 1], &to.sin6_addr);
		vb_store_be(bytes + 4, rows[i / 2].dqpn, 4);
		assert_int_equal(sendto(tx, bytes, rows[i / 2].bytes, 0,
					(struct sockaddr *)&to, sizeof(to)),
				 rows[i / 2].bytes);
		assert_int_equal(receiver_of(fds, 4), rows[i / 2].slot);
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(tx);
}

static void udp_route__a_port_for_each_slot(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route a = route_to(l, "::1", "::1", qpn_in(1));
	struct vb_route b = route_to(l, "::1", "::1", qpn_in(2));
	struct vb_route c = route_to(l, "127.0.0.1", "127.0.0.1", qpn_in(2));
	struct vb_route m = { .sgid = a.sgid, .dgid = c.dgid };

	assert_true(a.src_port >= 0xc000 && b.src_port >= 0xc000);
	assert_int_not_equal(a.src_port, b.src_port);
	assert_int_equal(b.src_port, c.src_port);
	assert_int_equal(l->ops->route(l, &m), -EAFNOSUPPORT);
	close_link(l);
}

static void udp_route__address_of_nobody(void **state)
{
	static const struct {
		const char *from, *to;
		int rc;
	} rows[] = {
		{ "::1", "::1", 0 },
		{ "127.0.0.1", "127.0.0.1", 0 },
		{ "127.9.9.9", "127.0.0.1", 0 },
		{ "192.0.2.9", "127.0.0.1", -EADDRNOTAVAIL },
		{ "2001:db8::9", "::1", -EADDRNOTAVAIL },
		/* GID 0 of loopback, whose MAC is all zero */
		{ "fe80::200:ff:fe00:0", "::1", -EADDRNOTAVAIL },
	};
	struct vb_link *l = open_link();

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_route r = { .sgid = gid_of(rows[i].from),
				      .dgid = gid_of(rows[i].to),
				      .ifindex = 1 };

		assert_int_equal(l->ops->route(l, &r), rows[i].rc);
	}
	close_link(l);
}

static void udp_route__out_of_descriptors(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route zero = route_to(l, "::1", "::1", qpn_in(0)), r;
	struct rlimit old, none = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &old);
	none.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	r = zero;
	r.dqpn = qpn_in(9);
	assert_int_equal(l->ops->route(l, &r), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(l->ops->route(l, &r), 0);
	assert_int_not_equal(r.src_port, zero.src_port);
	close_link(l);
}

/* Frames there and back over loopback, in one flush. */
static void exchange(const char *from, const char *to, const uint32_t *lens,
		     unsigned count)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, from, to, qpn_in(0));
	struct vb_gid src = gid_of(from), dst = gid_of(to);
	struct vb_txq *q = txq();
	unsigned got = 0;

	r.tclass = 0x68;
	r.hop_limit = 7;
	for (unsigned i = 0; i < count; i++)
		add_frame(q, &r, i, lens[i]);
	l->ops->send(l, q);
	assert_int_equal(q->count, 0);
	assert_int_equal(q->used, 0);
	while (got < count) {
		wait_readable(l);
		assert_int_equal(l->ops->recv(l, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++, got++) {
			const struct vb_frame *f = &rxq()->frames[i];

			check_frame(f, got, lens[got]);
			assert_int_equal(f->if_ip_id, -1);
			assert_true(vb_gid_equal(f->src, &src));
			assert_true(vb_gid_equal(f->dst, &dst));
			assert_int_equal(f->src_port, r.src_port);
			assert_int_equal(f->tclass, 0x68);
			assert_int_equal(f->ttl, 7);
			assert_int_equal(f->ifindex, 1);
		}
	}
	last_tx_calls = stats_of(l).tx_calls;
	assert_int_equal(stats_of(l).tx_frames, count);
	assert_int_equal(stats_of(l).rx_frames, count);
	assert_int_equal(stats_of(l).rx_bytes, stats_of(l).tx_bytes);
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).rx_icrc_errors, 0);
	close_link(l);
}

static void exchange_both(const uint32_t *lens, unsigned count)
{
	exchange("127.0.0.2", "127.0.0.1", lens, count);
	exchange("::1", "::1", lens, count);
}

static void udp_send__one_frame(void **state)
{
	exchange_both((uint32_t[]){ VB_BTH_BYTES }, 1);
	exchange_both((uint32_t[]){ 1040 }, 1);
}

static void udp_send__a_batch_is_joined(void **state)
{
	uint32_t lens[VB_TXQ_FRAMES];

	for (unsigned i = 0; i < VB_COUNT(lens); i++)
		lens[i] = 64;
	exchange_both(lens, VB_COUNT(lens));
	assert_int_equal(last_tx_calls, 1);
	for (unsigned i = 0; i < 15; i++)
		lens[i] = 4096 + 16;
	lens[15] = 28;
	exchange_both(lens, 16);
	assert_int_equal(last_tx_calls, 1);
}

static void udp_send__lengths_that_go_up_and_down(void **state)
{
	exchange_both((uint32_t[]){ 100, 100, 60, 60, 200, 12, 12, 12, 4112, 16,
				    4112 },
		      11);
}

static void udp_send__two_slots_in_one_flush(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r[2] = { route_to(l, "::1", "::1", qpn_in(0)),
				 route_to(l, "::1", "::1", qpn_in(5)) };
	struct vb_txq *q = txq();
	unsigned got[2] = { 0 };

	for (unsigned i = 0; i < 40; i++)
		add_frame(q, &r[i & 1], i, 32);
	l->ops->send(l, q);
	while (got[0] + got[1] < 40) {
		wait_readable(l);
		assert_int_equal(l->ops->recv(l, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++) {
			const struct vb_frame *f = &rxq()->frames[i];
			bool second = f->src_port == r[1].src_port;

			check_frame(f, got[second]++ * 2 + second, 32);
		}
	}
	close_link(l);
}

static void udp_send__more_than_recv_takes_at_once(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, "::1", "::1", qpn_in(0));
	unsigned sent = 0, got = 0;

	for (int i = 0; i < 10; i++) {
		struct vb_txq *q = txq();

		while (vb_txq_has_room(q))
			add_frame(q, &r, sent++, 16);
		l->ops->send(l, q);
	}
	while (got < sent) {
		wait_readable(l);
		do {
			assert_int_equal(l->ops->recv(l, rxq()), 0);
			for (unsigned i = 0; i < rxq()->count; i++)
				check_frame(&rxq()->frames[i], got++, 16);
		} while (rxq()->count);
	}
	assert_int_equal(got, sent);
	close_link(l);
}

static void udp_send__no_way_there(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route there = route_to(l, "127.0.0.1", "192.0.2.9", 0);
	struct vb_route alien = route_to(l, "127.0.0.1", "127.0.0.1", 0);
	struct vb_route alien6 = route_to(l, "::1", "::1", 0);
	struct vb_txq *q = txq();

	/* An address that the host lost. */
	alien.sgid = gid_of("192.0.2.9");
	alien6.sgid = gid_of("2001:db8::9");
	add_frame(q, &there, 0, 16);
	add_frame(q, &alien, 0, 16);
	add_frame(q, &alien6, 0, 16);
	add_frame(q, &alien6, 1, 16);
	l->ops->send(l, q);
	assert_int_equal(stats_of(l).tx_lost, 4);
	assert_int_equal(stats_of(l).tx_frames, 0);
	close_link(l);
}

static void throw_at_port(const void *bytes, size_t len)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(VB_ROCE_PORT) };
	int tx = socket(AF_INET6, SOCK_DGRAM, 0);

	assert_int_equal(
		sendto(tx, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)),
		len);
	close(tx);
}

static void udp_recv__rubbish_is_counted(void **state)
{
	struct vb_link *l = open_link();
	static uint8_t zeros[60000];

	throw_at_port(zeros, 0);
	throw_at_port(zeros, 1);
	throw_at_port(zeros, 15);
	throw_at_port(zeros, 17);
	throw_at_port(zeros, 16);
	throw_at_port(zeros, sizeof(zeros));
	wait_readable(l);
	assert_int_equal(l->ops->recv(l, rxq()), 0);
	assert_int_equal(rxq()->count, 0);
	assert_int_equal(stats_of(l).rx_malformed, 4);
	assert_int_equal(stats_of(l).rx_icrc_errors, 2);
	assert_int_equal(l->ops->recv(l, rxq()), 0);
	assert_int_equal(rxq()->count, 0);
	close_link(l);
}

/* Between two hosts: what is really on the wire. */

static bool run(const char *command)
{
	return system(command) == 0;
}

static void go(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

static bool make_far_host(void)
{
	char command[160];

	far.near_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (far.near_ns < 0 || !netns_next())
		return false;
	far.far_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	snprintf(command, sizeof(command),
		 "ip link add v1 mtu %d type veth peer name v0 mtu %d "
		 "netns /proc/%d/fd/%d",
		 FAR_MTU, FAR_MTU, getpid(), far.near_ns);
	if (!run(command) || !run("ip link set v1 up") ||
	    !run("ip addr add 10.77.0.2/24 dev v1") ||
	    !run("ip addr add fd77::2/64 dev v1 nodad") ||
	    !run("ip addr add fe80::77:2/64 dev v1 nodad"))
		return false;
	far.capture =
		socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
	go(far.near_ns);
	return far.capture >= 0 && run("ip link set v0 up gso_max_segs 1") &&
	       run("ip addr add 10.77.0.1/24 dev v0") &&
	       run("ip addr add fd77::1/64 dev v0 nodad") &&
	       run("ip addr add fe80::77:1/64 dev v0 nodad");
}

static int setup_far(void **state)
{
	far.there = make_far_host();
	if (far.near_ns >= 0)
		go(far.near_ns);
	return 0;
}

static void need_far(void)
{
	if (!far.there) {
		print_message("no second host: is there no ip(8)?\n");
		skip();
	}
}

/* The next RoCEv2 packet on the far wire, from its IP header on. */
static size_t capture(uint8_t *ip, size_t room)
{
	struct pollfd p = { far.capture, POLLIN, 0 };

	for (;;) {
		ssize_t n;
		size_t head;

		assert_int_equal(poll(&p, 1, 2000), 1);
		n = recv(far.capture, ip, room, 0);
		assert_true(n > 0);
		head = ip[0] >> 4 == 4 ? 20 : 40;
		if ((ip[0] >> 4 == 4 ? ip[9] : ip[6]) == 17 &&
		    vb_load_be(ip + head + 2, 2) == VB_ROCE_PORT)
			return (size_t)n;
	}
}

/* Check a captured packet; @index: its place in its batch. */
static void check_wire(const uint8_t *ip, size_t len, unsigned index)
{
	if (ip[0] == 0x45) {
		assert_int_equal(vb_load_be(ip + 4, 2), index);
		assert_int_equal(vb_load_be(ip + 6, 2), 0x4000); /* DF */
	}
	assert_int_equal(icrc_of_ip(ip, len - 4), vb_load_le32(ip + len - 4));
}

static void cross(const char *from, const char *to)
{
	struct vb_link *near = open_link(), *there;
	struct vb_route r = { .sgid = gid_of(from),
			      .dgid = gid_of(to),
			      .ifindex = if_nametoindex("v0") };
	static uint8_t ip[70000];
	struct vb_txq *q = txq();
	unsigned got = 0;

	assert_int_equal(near->ops->route(near, &r), 0);
	go(far.far_ns);
	there = open_link();
	go(far.near_ns);
	for (unsigned i = 0; i < 14; i++)
		add_frame(q, &r, i, 4112);
	near->ops->send(near, q);
	add_frame(q, &r, 14, 4112);
	near->ops->send(near, q);
	assert_int_equal(stats_of(near).tx_lost, 0);
	assert_int_equal(stats_of(near).tx_calls, 2);
	for (unsigned i = 0; i < 15; i++)
		check_wire(ip, capture(ip, sizeof(ip)), i < 14 ? i : 0);
	while (got < 15) {
		wait_readable(there);
		assert_int_equal(there->ops->recv(there, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++, got++)
			check_frame(&rxq()->frames[i], got, 4112);
	}
	assert_int_equal(stats_of(there).rx_icrc_errors, 0);
	there->ops->close(there);
	close_link(near);
}

static void udp_send__identification_on_the_wire(void **state)
{
	need_far();
	cross("10.77.0.1", "10.77.0.2");
	cross("fd77::1", "fd77::2");
	cross("fe80::77:1", "fe80::77:2");
}

static void udp_send__larger_than_the_mtu(void **state)
{
	struct vb_link *l;
	struct vb_route r;
	struct vb_txq *q = txq();
	uint64_t calls;

	need_far();
	assert_true(run("ip link set v0 mtu 1500"));
	l = open_link();
	r = route_to(l, "10.77.0.1", "10.77.0.2", qpn_in(0));
	add_frame(q, &r, 0, 4112);
	add_frame(q, &r, 1, 4112);
	l->ops->send(l, q);
	/* A packet too long for its interface arrives in fragments. */
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).tx_frames, 2);
	calls = stats_of(l).tx_calls;
	/* and that must not have stopped joining */
	for (unsigned i = 0; i < 8; i++)
		add_frame(q, &r, i, 1040);
	l->ops->send(l, q);
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).tx_frames, 10);
	assert_int_equal(stats_of(l).tx_calls, calls + 1);
	close_link(l);
	assert_true(run("ip link set v0 mtu 5000"));
}

/* Frames without room are left to the sender, at once. */
static void udp_send__a_congested_interface(void **state)
{
	struct vb_route slow[4], fast;
	struct vb_link *l;
	struct vb_txq *q;
	unsigned left;
	bool sent = true;

	need_far();
	if (!run("tc qdisc add dev v0 root tbf rate 8kbit burst 6000 "
		 "limit 100000000 2>/dev/null"))
		skip();
	l = open_link();
	fast = route_to(l, "127.0.0.1", "127.0.0.1", qpn_in(9));
	for (unsigned i = 0; i < 4; i++)
		slow[i] = route_to(l, "10.77.0.1", "10.77.0.2", qpn_in(i));
	for (int round = 0; round < 1000 && sent; round++) {
		q = txq();
		while (q->count < 14)
			add_frame(q, &slow[q->count % 4], q->count, 4112);
		sent = l->ops->send(l, q);
	}
	assert_false(sent);
	assert_int_equal(stats_of(l).tx_lost, 0);
	left = q->count - q->first;
	assert_in_range(left, 1, 14);
	/* Each new try returns at once, too. */
	for (int round = 0; round < 1000; round++)
		assert_false(l->ops->send(l, q));
	assert_in_range(q->count - q->first, 1, left);
	left = q->count - q->first;
	l->ops->drop(l, q);
	assert_int_equal(stats_of(l).tx_lost, left);
	assert_int_equal(q->count, 0);
	/* Other sockets go on sending. */
	add_frame(q, &fast, 0, 16);
	assert_true(l->ops->send(l, q));
	l->ops->close(l);
	assert_true(run("tc qdisc del dev v0 root"));
}

/* A socket that sends no checksums refuses joined messages, as some devices
 * do: a way to see what happens then. */
static void refuse_joined(uint16_t port, int on)
{
	for (int fd = 3; fd < 64; fd++) {
		struct sockaddr_in6 a;
		socklen_t len = sizeof(a);

		if (getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
		    a.sin6_family == AF_INET6 && a.sin6_port == htons(port))
			assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_NO_CHECK,
						    &on, sizeof(on)),
					 0);
	}
}

static void send_twenty(struct vb_link *l, const struct vb_route *r,
			unsigned psn)
{
	struct vb_txq *q = txq();

	for (unsigned i = 0; i < 20; i++)
		add_frame(q, r, psn + i, 64);
	assert_true(l->ops->send(l, q));
}

static void udp_send__joined_is_refused(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, "127.0.0.1", "127.0.0.1", qpn_in(0));
	unsigned got = 0;

	refuse_joined(r.src_port, 1);
	send_twenty(l, &r, 0);
	send_twenty(l, &r, 20);
	assert_int_equal(stats_of(l).tx_lost, 0);
	/* one call in vain, then one for each packet, then full batches of
	 * packets */
	assert_int_equal(stats_of(l).tx_calls, 1 + 20 + 2);
	/* The refusal lasted for a moment only: after another one packets are
	 * joined again. */
	refuse_joined(r.src_port, 0);
	usleep(150000);
	send_twenty(l, &r, 40);
	send_twenty(l, &r, 60);
	assert_int_equal(stats_of(l).tx_calls, 1 + 20 + 2 + 2);
	while (got < 80) {
		wait_readable(l);
		assert_int_equal(l->ops->recv(l, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++, got++) {
			check_frame(&rxq()->frames[i], got, 64);
			if (got < 40)
				assert_int_equal(rxq()->frames[i].if_ip_id, -1);
		}
	}
	close_link(l);
}

/* As on a host without IPv6. */
static void udp_open__ipv4_only(void **state)
{
	static const int on = 1;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(VB_ROCE_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct vb_gid here = gid_of("127.0.0.1");
	struct vb_route r6 = { .sgid = gid_of("::1"), .dgid = gid_of("::1") };
	struct vb_txq *q = txq();
	struct vb_route r;
	struct vb_link *l;

	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(vb_udp_open(fd, &l), 0);
	assert_int_equal(l->ops->route(l, &r6), -EAFNOSUPPORT);
	r = route_to(l, "127.0.0.1", "127.0.0.1", qpn_in(3));
	r.tclass = 4;
	r.hop_limit = 9;
	for (unsigned i = 0; i < 10; i++)
		add_frame(q, &r, i, 64);
	l->ops->send(l, q);
	wait_readable(l);
	assert_int_equal(l->ops->recv(l, rxq()), 0);
	assert_int_equal(rxq()->count, 10);
	for (unsigned i = 0; i < 10; i++) {
		const struct vb_frame *f = &rxq()->frames[i];

		check_frame(f, i, 64);
		assert_int_equal(f->if_ip_id, -1);
		assert_true(vb_gid_equal(f->src, &here));
		assert_true(vb_gid_equal(f->dst, &here));
		assert_int_equal(f->tclass, 4);
		assert_int_equal(f->ttl, 9);
		assert_int_equal(f->ifindex, 1);
	}
	close_link(l);
}

/* Many hosts have IPv6 in the kernel and switched off. */
static void udp_send__ipv6_switched_off(void **state)
{
	netns_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	exchange("127.0.0.1", "127.0.0.1", (uint32_t[]){ 64, 64, 64 }, 3);
	netns_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
	assert_true(netns_loopback_up());
}

/* Even where every address can be bound to, some belong to no host. */
static void udp_owns__what_is_ours(void **state)
{
	static const char *const ours[] = { "::ffff:127.0.0.1",
					    "::ffff:127.0.0.2", "::1" },
				 *const others[] = {
					 "::ffff:10.9.8.7",  "::ffff:0.0.0.0",
					 "::ffff:239.1.1.1", "::",
					 "fd00::7",	     "ff02::1",
				 };
	struct vb_gid gid;

	netns_write("/proc/sys/net/ipv4/ip_nonlocal_bind", "1");
	netns_write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1");
	for (unsigned i = 0; i < VB_COUNT(ours); i++) {
		gid = gid_of(ours[i]);
		assert_true(vb_udp_owns(&gid, 0));
	}
	for (unsigned i = 0; i < VB_COUNT(others); i++) {
		gid = gid_of(others[i]);
		assert_false(vb_udp_owns(&gid, 0));
	}
	netns_write("/proc/sys/net/ipv4/ip_nonlocal_bind", "0");
	netns_write("/proc/sys/net/ipv6/ip_nonlocal_bind", "0");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(udp_owns__what_is_ours),
	cmocka_unit_test(udp_socket__shares_the_port),
	cmocka_unit_test(udp_socket__port_of_another_program),
	cmocka_unit_test(udp_is_roce__everything_else),
	cmocka_unit_test(udp_steer__top_bits_pick_the_socket),
	cmocka_unit_test(udp_route__a_port_for_each_slot),
	cmocka_unit_test(udp_route__address_of_nobody),
	cmocka_unit_test(udp_route__out_of_descriptors),
	cmocka_unit_test(udp_send__one_frame),
	cmocka_unit_test(udp_send__a_batch_is_joined),
	cmocka_unit_test(udp_send__lengths_that_go_up_and_down),
	cmocka_unit_test(udp_send__two_slots_in_one_flush),
	cmocka_unit_test(udp_send__more_than_recv_takes_at_once),
	cmocka_unit_test(udp_send__no_way_there),
	cmocka_unit_test(udp_recv__rubbish_is_counted),
	cmocka_unit_test(udp_send__identification_on_the_wire),
	cmocka_unit_test(udp_send__larger_than_the_mtu),
	cmocka_unit_test(udp_send__a_congested_interface),
	cmocka_unit_test(udp_send__joined_is_refused),
	cmocka_unit_test(udp_send__ipv6_switched_off),
	cmocka_unit_test(udp_open__ipv4_only),
};

int main(void)
{
	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, setup_far, NULL);
}
