/* SPDX-License-Identifier: BSD-2-Clause */
/* The RoCEv1 link: frames field by field, on a veth pair of a namespace of its
 * own, whose other end is a plain packet socket. */
#include "link/roce1_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/link/roce1_frames.h"
#include "tests/unit/netns.h"

#define GROUPQPN 0xffffff
#define PATIENCE 5000 /* milliseconds */

static struct {
	uint32_t one, two, vlan; /* interfaces */
	int peer;		 /* packet socket on the far end */
	struct vb_link *link;
} t;
static struct vb_txq txq;
static struct vb_rxq rxq;

/* --- routes --- */

static struct vb_route route_to(const char *to, uint32_t ifindex)
{
	return (struct vb_route){ .sgid = gid("192.0.2.1"),
				  .dgid = gid(to),
				  .ifindex = ifindex,
				  .v1 = true,
				  .priority = 5,
				  .tclass = 0xa4,
				  .flow_label = 0x12345,
				  .dqpn = DQPN };
}

static void route__to_a_neighbour(void **state)
{
	struct vb_route r = route_to("192.0.2.2", t.one);

	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, t.one);
	assert_memory_equal(r.hop.dst, peer_mac, 6);
	assert_memory_equal(r.hop.src, own_mac, 6);
	assert_int_equal(r.hop.tpid, 0);
}

static void route__refusals(void **state)
{
	struct vb_route r = route_to("198.51.100.1", t.one);

	assert_int_equal(t.link->ops->route(t.link, &r), -ENETUNREACH);
	r = route_to("8.8.8.8", t.one);
	assert_int_equal(t.link->ops->route(t.link, &r), -EHOSTUNREACH);
	r = route_to("fd00::1", t.one);
	assert_int_equal(t.link->ops->route(t.link, &r), -EAFNOSUPPORT);
	r = route_to("192.0.2.2", 9999);
	assert_int_equal(t.link->ops->route(t.link, &r), -ENODEV);
	r = route_to("192.0.2.2", 0);
	assert_int_equal(t.link->ops->route(t.link, &r), -ENODEV);
}

/* A GID that is made of a MAC address needs no neighbour discovery. */
static void route__a_gid_that_says_its_mac(void **state)
{
	static const uint8_t mac[6] = { 0x52, 0x54, 0, 1, 2, 3 };
	struct vb_route r = route_to("fe80::5054:ff:fe01:203", t.one);

	r.sgid = gid("fe80::ff:fe00:1");
	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_memory_equal(r.hop.dst, mac, 6);
	assert_int_equal(r.hop.ifindex, t.one);
	r.dgid = r.sgid;
	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, VB_ROCE1_LOOPBACK);
}

/* An answer goes where the frame came from, without asking the kernel. */
static void aim__an_answer(void **state)
{
	struct vb_route r = route_to("203.0.113.99", t.one);

	assert_int_equal(vb_roce1_learn(t.link, t.one), 0);
	memcpy(r.hop.dst, peer_mac, 6);
	assert_int_equal(t.link->ops->aim(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, t.one);
	assert_memory_equal(r.hop.dst, peer_mac, 6);
	assert_memory_equal(r.hop.src, own_mac, 6);
	r = route_to("203.0.113.99", t.one);
	assert_int_equal(t.link->ops->aim(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, VB_ROCE1_LOOPBACK);
	r = route_to("203.0.113.99", 9999);
	assert_int_equal(t.link->ops->aim(t.link, &r), -EHOSTUNREACH);
}

static void learn__more_interfaces_than_the_table_has(void **state)
{
	struct vb_route r = route_to("203.0.113.99", t.one);

	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(vb_roce1_learn(t.link, i % 2 ? t.one : t.two),
				 0);
	assert_int_equal(t.link->ops->aim(t.link, &r), 0);
	assert_int_equal(vb_roce1_learn(t.link, 9999), -ENODEV);
}

/* --- sending --- */

static void put(const struct vb_route *r, uint8_t mark)
{
	uint8_t *at = vb_txq_begin(&txq);

	memset(at, 0, LEN);
	at[0] = 0x04;
	vb_store_be(at + 4, r->dqpn, 4);
	memset(at + 12, mark, PAYLOAD);
	vb_txq_commit(&txq, LEN, r);
}

/* The next frame at the peer; returns its length. */
static size_t peer_gets(uint8_t *frame, size_t room)
{
	struct pollfd p = { t.peer, POLLIN, 0 };
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	ssize_t n;

	do {
		assert_int_equal(poll(&p, 1, PATIENCE), 1);
		n = recvfrom(t.peer, frame, room, 0, (struct sockaddr *)&from,
			     &len);
		assert_true(n > 0);
	} while (from.sll_pkttype == PACKET_OUTGOING);
	return (size_t)n;
}

static bool peer_gets_nothing(void)
{
	uint8_t byte;

	return recv(t.peer, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void send__field_by_field(void **state)
{
	struct vb_route r = route_to("192.0.2.2", t.one);
	uint8_t frame[2048], want[FRAME];
	size_t len;

	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	make_frame(want, DQPN);
	memcpy(want, peer_mac, 6);
	memcpy(want + 6, own_mac, 6);
	memcpy(want + 22, r.sgid.raw, 16);
	memcpy(want + 38, r.dgid.raw, 16);
	vb_store_be(want + 14, 0x6a412345, 4);
	want[21] = 64; /* hop limit */
	memset(want + 66, 0x77, PAYLOAD);
	seal(want, FRAME);
	put(&r, 0x77);
	assert_true(t.link->ops->send(t.link, &txq));
	assert_int_equal(txq.count, 0);
	len = peer_gets(frame, sizeof(frame));
	assert_int_equal(len, FRAME);
	assert_memory_equal(frame, want, FRAME);
	r.hop_limit = 9;
	put(&r, 0x77);
	assert_true(t.link->ops->send(t.link, &txq));
	(void)peer_gets(frame, sizeof(frame));
	assert_int_equal(frame[21], 9);
	assert_int_equal(slow_icrc(frame, FRAME),
			 vb_load_le32(frame + FRAME - 4));
}

/* A batch of more frames than one sendmmsg() takes: all are sent, in order. */
static void send__a_whole_batch(void **state)
{
	struct vb_route r = route_to("192.0.2.2", t.one);
	uint8_t frame[2048];

	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	for (unsigned i = 0; i < VB_TXQ_FRAMES; i++)
		put(&r, (uint8_t)i);
	assert_true(t.link->ops->send(t.link, &txq));
	for (unsigned i = 0; i < VB_TXQ_FRAMES; i++) {
		assert_int_equal(peer_gets(frame, sizeof(frame)), FRAME);
		assert_int_equal(frame[66], (uint8_t)i);
	}
	assert_true(peer_gets_nothing());
}

/* A frame longer than the interface's MTU is lost, and the others are sent. */
static void send__too_long_is_lost(void **state)
{
	struct vb_route r = route_to("192.0.2.2", t.one);
	struct vb_link_stats before, after;
	uint8_t frame[2048];

	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	t.link->ops->stats(t.link, &before);
	memset(vb_txq_begin(&txq), 0, 4096);
	vb_txq_commit(&txq, 4096, &r);
	put(&r, 3);
	assert_true(t.link->ops->send(t.link, &txq));
	assert_int_equal(peer_gets(frame, sizeof(frame)), FRAME);
	t.link->ops->stats(t.link, &after);
	assert_int_equal(after.tx_lost - before.tx_lost, 1);
	put(&r, 3);
	put(&r, 3);
	t.link->ops->drop(t.link, &txq);
	assert_int_equal(txq.count, 0);
	t.link->ops->stats(t.link, &after);
	assert_int_equal(after.tx_lost - before.tx_lost, 3);
}

/* Open a socket that sees all frames of the far end, and the tags that the
 * kernel removes from them. */
static int open_tap(void)
{
	static const int on = 1;
	const struct sockaddr_ll a = { .sll_family = AF_PACKET,
				       .sll_ifindex = (int)t.two,
				       .sll_protocol = htons(ETH_P_ALL) };
	int tap = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_int_equal(
		setsockopt(tap, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)),
		0);
	assert_int_equal(bind(tap, (const struct sockaddr *)&a, sizeof(a)), 0);
	return tap;
}

/* Receive the next frame that has a tag, with the tag in its place. Returns its
 * length. */
static size_t tap_gets(int tap, uint8_t *frame, size_t room)
{
	const struct tpacket_auxdata *aux;
	_Alignas(struct cmsghdr) char control[256];
	ssize_t n;

	do {
		struct iovec v = { frame + 4, room - 4 };
		struct pollfd p = { tap, POLLIN, 0 };
		struct msghdr h = { .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };

		assert_int_equal(poll(&p, 1, PATIENCE), 1);
		n = recvmsg(tap, &h, 0);
		assert_true(n > 14);
		assert_non_null(CMSG_FIRSTHDR(&h));
		aux = (const void *)CMSG_DATA(CMSG_FIRSTHDR(&h));
	} while (!(aux->tp_status & TP_STATUS_VLAN_VALID));
	memmove(frame, frame + 4, 12);
	vb_store_be(frame + 12, aux->tp_vlan_tpid, 2);
	vb_store_be(frame + 14, aux->tp_vlan_tci, 2);
	return (size_t)n + 4;
}

/* Send a frame by @r, which leads to VLAN 5 above t.one, with each priority. */
static void send_to_vlan(struct vb_route *r,
			 int (*aim)(struct vb_link *l, struct vb_route *r))
{
	uint8_t frame[2048];
	int tap = open_tap();

	for (unsigned priority = 0; priority < 8; priority++) {
		memset(&r->hop, 0, sizeof(r->hop));
		memcpy(r->hop.dst, peer_mac, 6);
		r->priority = (uint8_t)priority;
		assert_int_equal(aim(t.link, r), 0);
		assert_int_equal(r->hop.ifindex, t.one);
		put(r, 1);
		assert_true(t.link->ops->send(t.link, &txq));
		assert_int_equal(tap_gets(tap, frame, sizeof(frame)),
				 FRAME + 4);
		assert_memory_equal(frame, peer_mac, 6);
		assert_memory_equal(frame + 6, own_mac, 6);
		assert_int_equal(vb_load_be(frame + 12, 2), 0x8100);
		assert_int_equal(vb_load_be(frame + 14, 2), priority << 13 | 5);
		assert_int_equal(vb_load_be(frame + 16, 2), 0x8915);
		memmove(frame + 4, frame, 12);
		assert_int_equal(slow_icrc(frame + 4, FRAME),
				 vb_load_le32(frame + FRAME));
	}
	close(tap);
}

static void send__a_vlan_and_its_priority(void **state)
{
	struct vb_route r = route_to("203.0.113.8", t.vlan);

	if (!t.vlan)
		skip(); /* a kernel without VLANs */
	r.sgid = gid("203.0.113.1");
	send_to_vlan(&r, t.link->ops->route);
}

/* As the test above, on a kernel without VLANs: the test enters the VLAN into
 * the link's table by hand. */
static void send__a_vlan_of_the_table(void **state)
{
	struct vb_roce1 *r1 = vb_roce1_of(t.link);
	struct vb_route r = route_to("203.0.113.8", 77);
	struct vb_neigh_port vlan = { .tpid = 0x8100,
				      .vlan = 5,
				      .below = t.one };

	memcpy(vlan.mac, own_mac, 6);
	vb_mutex_lock(&r1->lock);
	r1->ports[3] = (struct vb_roce1_port){ 77, vlan };
	vb_mutex_unlock(&r1->lock);
	send_to_vlan(&r, t.link->ops->aim);
	/* If the interface below the VLAN is in another namespace, the frame
	 * goes to the VLAN's own interface, which adds the tag. */
	vb_mutex_lock(&r1->lock);
	r1->ports[3].is.below = 0;
	vb_mutex_unlock(&r1->lock);
	memset(&r.hop, 0, sizeof(r.hop));
	memcpy(r.hop.dst, peer_mac, 6);
	assert_int_equal(t.link->ops->aim(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, 77);
	assert_int_equal(r.hop.tpid, 0);
}

/* --- receiving --- */

static void peer_sends(const uint8_t *frame, size_t len)
{
	assert_int_equal(send(t.peer, frame, len, 0), len);
}

/* Wait for exactly @count frames. */
static void expect(unsigned count)
{
	struct pollfd p = { t.link->ops->fd(t.link), POLLIN, 0 };
	unsigned got = 0;

	while (got < count) {
		assert_int_equal(poll(&p, 1, PATIENCE), 1);
		assert_int_equal(t.link->ops->recv(t.link, &rxq), 0);
		got += rxq.count;
	}
	assert_int_equal(got, count);
}

static void recv__what_the_filter_lets_in(void **state)
{
	uint8_t bytes[FRAME];
	struct vb_link_stats before, after;

	t.link->ops->stats(t.link, &before);
	make_frame(bytes, (SLOT + 1) << 15); /* a frame for another slot */
	peer_sends(bytes, FRAME);
	make_frame(bytes, GROUPQPN); /* no group is joined yet */
	peer_sends(bytes, FRAME);
	make_frame(bytes, DQPN); /* a frame for another host */
	bytes[5] = 0x99;
	peer_sends(bytes, FRAME);
	make_frame(bytes, DQPN); /* a frame with UDP behind the GRH */
	bytes[20] = 17;
	peer_sends(bytes, FRAME);
	make_frame(bytes, DQPN); /* too short for a QPN */
	peer_sends(bytes, 60);
	make_frame(bytes, DQPN);
	peer_sends(bytes, FRAME);
	expect(1);
	assert_int_equal(rxq.frames[0].ifindex, t.one);
	t.link->ops->stats(t.link, &after);
	assert_int_equal(after.rx_frames - before.rx_frames, 1);
	assert_int_equal(after.rx_malformed, before.rx_malformed);
}

/* Put a VLAN tag into a frame of FRAME bytes. */
static void tag_frame(uint8_t *frame, unsigned tci)
{
	memmove(frame + 16, frame + 12, FRAME - 12);
	vb_store_be(frame + 12, 0x8100, 2);
	vb_store_be(frame + 14, tci, 2);
}

/* The kernel removes a tag with VLAN 0, which has only a priority. It reports
 * frames with the tag of a VLAN that this host does not have as frames for
 * another host. */
static void recv__tags(void **state)
{
	uint8_t bytes[FRAME + 4];

	make_frame(bytes, DQPN);
	tag_frame(bytes, 9);
	peer_sends(bytes, FRAME + 4);
	make_frame(bytes, DQPN);
	tag_frame(bytes, 5 << 13);
	peer_sends(bytes, FRAME + 4);
	expect(1);
	assert_int_equal(rxq.frames[0].len, LEN);
	assert_int_equal(t.link->ops->recv(t.link, &rxq), 0);
	assert_int_equal(rxq.count, 0);
}

static void recv__counts_what_it_refuses(void **state)
{
	struct vb_link_stats before, after;
	uint8_t bytes[FRAME];

	t.link->ops->stats(t.link, &before);
	make_frame(bytes, DQPN);
	bytes[70] ^= 1;
	peer_sends(bytes, FRAME);
	make_frame(bytes, DQPN);
	bytes[19] ^= 1;
	peer_sends(bytes, FRAME);
	make_frame(bytes, DQPN);
	peer_sends(bytes, FRAME);
	expect(1);
	t.link->ops->stats(t.link, &after);
	assert_int_equal(after.rx_icrc_errors - before.rx_icrc_errors, 1);
	assert_int_equal(after.rx_malformed - before.rx_malformed, 1);
}

static void recv__more_than_a_buffer_is_cut_short(void **state)
{
	static uint8_t bytes[1514];

	make_frame(bytes, DQPN);
	memset(bytes + FRAME, 1, sizeof(bytes) - FRAME);
	for (unsigned i = 0; i < 300; i++)
		peer_sends(bytes, i % 2 ? FRAME : sizeof(bytes));
	expect(300);
}

/* A frame to an address of this host goes over the loopback interface, and its
 * source is this host. */
static void local__to_itself(void **state)
{
	struct vb_route r = route_to("192.0.2.1", t.one);

	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_int_equal(r.hop.ifindex, VB_ROCE1_LOOPBACK);
	put(&r, 9);
	assert_true(t.link->ops->send(t.link, &txq));
	expect(1);
	assert_int_equal(rxq.frames[0].ifindex, t.one);
	assert_null(rxq.frames[0].mac);
	assert_int_equal(rxq.frames[0].bytes[12], 9);
	assert_true(peer_gets_nothing());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#ifndef SANITIZED
#define STACK	  (256u << 10)
#define LITTLE	  (4u << 10)
#define UNTOUCHED 0xa5

static void *do_nothing(void *arg)
{
	return NULL;
}

static void *send_all(void *arg)
{
	return t.link->ops->send(t.link, &txq) ? NULL : arg;
}

/* Returns the bytes of its stack that a thread uses which calls @what. */
static size_t stack_of(void *(*what)(void *))
{
	uint8_t *stack = aligned_alloc(4096, STACK);
	pthread_attr_t attr;
	pthread_t thread;
	size_t left = 0;
	void *failed;

	memset(stack, UNTOUCHED, STACK);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, what, stack), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
	while (stack[left] == UNTOUCHED)
		left++;
	pthread_attr_destroy(&attr);
	free(stack);
	return STACK - left;
}

/* A program's thread may have a stack of 16 KiB. */
static void send__needs_little_stack(void **state)
{
	struct vb_route r = route_to("ff0e::102:304", t.one);

	r.dqpn = GROUPQPN;
	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	for (unsigned i = 0; i < 70; i++)
		put(&r, 4);
	assert_true(stack_of(send_all) < stack_of(do_nothing) + LITTLE);
}
#endif

static bool is_closed_in_child(int fd)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

/* A frame to a group goes to the network and to members on this host, and
 * arrives as one of the interface that sent it. */
static void group__here_and_there(void **state)
{
	static const uint8_t mac[6] = { 0x33, 0x33, 1, 2, 3, 4 };
	const struct vb_link_group g = { .gid = gid("ff0e::102:304"),
					 .ifindex = t.one };
	struct vb_route r = route_to("ff0e::102:304", t.one);
	int member = t.link->ops->join(t.link, &g);
	uint8_t frame[2048];

	assert_true(member >= 0);
	assert_true(is_closed_in_child(member));
	r.dqpn = GROUPQPN;
	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_memory_equal(r.hop.dst, mac, 6);
	for (unsigned i = 0; i < 70; i++)
		put(&r, 4);
	assert_true(t.link->ops->send(t.link, &txq));
	/* The peer's end of the veth pair is on this host, too, so each frame
	 * arrives from the network as well. */
	expect(140);
	for (unsigned i = 0; i < 70; i++) {
		assert_int_equal(peer_gets(frame, sizeof(frame)), FRAME);
		assert_memory_equal(frame, mac, 6);
	}
	t.link->ops->leave(t.link, member);
}

static void group__ipv4(void **state)
{
	static const uint8_t mac[6] = { 1, 0, 0x5e, 1, 2, 3 };
	struct vb_route r = route_to("239.129.2.3", t.one);

	r.dqpn = GROUPQPN;
	assert_int_equal(t.link->ops->route(t.link, &r), 0);
	assert_memory_equal(r.hop.dst, mac, 6);
}

static void group__no_interface(void **state)
{
	const struct vb_link_group g = { .gid = gid("ff0e::1"),
					 .ifindex = 9999 };

	assert_int_equal(t.link->ops->join(t.link, &g), -ENODEV);
}

/* --- the interfaces of the tests --- */

static int fresh(void **state)
{
	uint8_t drop[64];

	while (recv(t.peer, drop, sizeof(drop), MSG_DONTWAIT) >= 0)
		;
	vb_txq_reset(&txq);
	return vb_roce1_open(SLOT, true, &t.link);
}

static int gone(void **state)
{
	t.link->ops->close(t.link);
	return 0;
}

static bool make_ports(void)
{
	return system("ip link add one address 02:00:00:00:00:01 type veth "
		      "peer name two address 02:00:00:00:00:02 && "
		      "ip link set one addrgenmode none && "
		      "ip link set two addrgenmode none && "
		      "ip link set one up && ip link set two up && "
		      "ip addr add 192.0.2.1/24 dev one && "
		      "ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev one "
		      "&& ip route add 198.51.100.0/24 via 192.0.2.2 || exit; "
		      "ip link add link one name v5 type vlan id 5 "
		      "2>/dev/null && ip link set v5 addrgenmode none && "
		      "ip link set v5 up && ip addr add 203.0.113.1/24 dev v5 "
		      "&& ip neigh add 203.0.113.8 lladdr 02:00:00:00:00:02 "
		      "dev v5; exit 0") == 0;
}

static bool open_peer(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(0x8915) };

	t.one = if_nametoindex("one");
	t.two = if_nametoindex("two");
	t.vlan = if_nametoindex("v5");
	a.sll_ifindex = (int)t.two;
	t.peer = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return t.peer >= 0 &&
	       bind(t.peer, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* Wait until the kernel has given the new interface its queue: until frames
 * pass. */
static int await_queue(void **state)
{
	struct pollfd p = { t.peer, POLLIN, 0 };
	struct vb_route r = route_to("192.0.2.2", t.one);
	int tries = 0;

	if (fresh(state) || t.link->ops->route(t.link, &r))
		return -1;
	do {
		put(&r, 0);
		(void)t.link->ops->send(t.link, &txq);
	} while (poll(&p, 1, 20) == 0 && ++tries < 250);
	return gone(state);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, gone)
	const struct CMUnitTest tests[] = {
		CASE(route__to_a_neighbour),
		CASE(route__refusals),
		CASE(route__a_gid_that_says_its_mac),
		CASE(aim__an_answer),
		CASE(learn__more_interfaces_than_the_table_has),
		CASE(send__field_by_field),
		CASE(send__a_whole_batch),
		CASE(send__too_long_is_lost),
		CASE(send__a_vlan_and_its_priority),
		CASE(recv__what_the_filter_lets_in),
		CASE(send__a_vlan_of_the_table),
		CASE(recv__tags),
		CASE(recv__counts_what_it_refuses),
		CASE(recv__more_than_a_buffer_is_cut_short),
		CASE(local__to_itself),
#ifndef SANITIZED /* sanitizers need stack of their own */
		CASE(send__needs_little_stack),
#endif
		CASE(group__here_and_there),
		CASE(group__ipv4),
		CASE(group__no_interface),
	};

	if (!netns_enter() || !make_ports() || !open_peer())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, await_queue, NULL);
}
