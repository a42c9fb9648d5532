/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the UDP link: two hosts, and hosts that lack a feature. */
#include "udp_fixture.h"

/* The other host: a network namespace at the far end of a veth pair. */
static struct {
	int near_ns, far_ns, capture;
	bool there;
} far = { -1, -1, -1, false };

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

int setup_far(void **state)
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

/* Captures the next RoCEv2 packet on the far wire, from its IP header on. */
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

/* Check a captured packet, the @index-th of its batch. */
static void check_wire(const uint8_t *ip, size_t len, unsigned index)
{
	if (ip[0] == 0x45) {
		assert_int_equal(vb_load_be(ip + 4, 2), index);
		/* 0x4000: the flag DF is set, the fragment offset is 0 */
		assert_int_equal(vb_load_be(ip + 6, 2), 0x4000);
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

void udp_send__identification_on_the_wire(void **state)
{
	need_far();
	cross("10.77.0.1", "10.77.0.2");
	cross("fd77::1", "fd77::2");
	cross("fe80::77:1", "fe80::77:2");
}

void udp_send__larger_than_the_mtu(void **state)
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
	/* A packet longer than its interface's MTU arrives in fragments. */
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).tx_frames, 2);
	calls = stats_of(l).tx_calls;
	/* After fragments the link still joins packets into one datagram. */
	for (unsigned i = 0; i < 8; i++)
		add_frame(q, &r, i, 1040);
	l->ops->send(l, q);
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).tx_frames, 10);
	assert_int_equal(stats_of(l).tx_calls, calls + 1);
	close_link(l);
	assert_true(run("ip link set v0 mtu 5000"));
}

/* If the interface has no room, the frames stay in the caller's batch, and the
 * call returns at once. */
void udp_send__a_congested_interface(void **state)
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
	/* Each later try to send also returns at once. */
	for (int round = 0; round < 1000; round++)
		assert_false(l->ops->send(l, q));
	assert_in_range(q->count - q->first, 1, left);
	left = q->count - q->first;
	l->ops->drop(l, q);
	assert_int_equal(stats_of(l).tx_lost, left);
	assert_int_equal(q->count, 0);
	/* A full socket does not stop the other sockets of the link. */
	add_frame(q, &fast, 0, 16);
	assert_true(l->ops->send(l, q));
	l->ops->close(l);
	assert_true(run("tc qdisc del dev v0 root"));
}

/* Switch UDP checksums off: such a socket refuses joined messages, as some
 * devices do. */
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

void udp_send__joined_is_refused(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, "127.0.0.1", "127.0.0.1", qpn_in(0));
	unsigned got = 0;

	refuse_joined(r.src_port, 1);
	send_twenty(l, &r, 0);
	send_twenty(l, &r, 20);
	assert_int_equal(stats_of(l).tx_lost, 0);
	/* Expected calls: one joined call that failed, one for each packet,
	 * then joined ones. */
	assert_int_equal(stats_of(l).tx_calls, 1 + 20 + 2);
	/* The refusal lasted only for a moment: after a further one packets are
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

/* Test: the link opens on a host without IPv6. */
void udp_open__ipv4_only(void **state)
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

/* Test: the link sends IPv4 when the kernel has IPv6 switched off. */
void udp_send__ipv6_switched_off(void **state)
{
	netns_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	exchange("127.0.0.1", "127.0.0.1", (uint32_t[]){ 64, 64, 64 }, 3);
	netns_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
	assert_true(netns_loopback_up());
}

/* Tests which addresses count as the host's own, even where programs may bind
 * any address. */
void udp_owns__what_is_ours(void **state)
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
