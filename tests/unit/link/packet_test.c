/* SPDX-License-Identifier: BSD-2-Clause */
/* The packet link on real sockets: a veth pair in namespaces of its own. */
#include "link/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>

#include "tests/unit/netns.h"

#define FRAME_BYTES 60

static struct {
	uint32_t ifindex;
	uint8_t mac[6];
} port;

static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
static const uint8_t away[6] = { 2, 9, 9, 9, 9, 9 };

static struct vb_link *open_link(void)
{
	struct vb_link *l;

	assert_int_equal(vb_packet_open(port.ifindex, port.mac, &l), 0);
	return l;
}

static struct vb_packet_want want(const uint8_t dst[6])
{
	struct vb_packet_want w = { 0 };

	memcpy(w.value.dst, dst, 6);
	memset(w.mask.dst, 0xff, 6);
	return w;
}

static void send_to(struct vb_link *l, const uint8_t dst[6], uint32_t len)
{
	static struct vb_txq q;
	uint8_t *f;

	vb_txq_reset(&q);
	f = vb_txq_begin(&q);
	memset(f, 0, len);
	memcpy(f, dst, 6);
	memcpy(f + 6, away, 6);
	f[12] = 0x88; /* an EtherType that no protocol uses */
	f[13] = 0xb5;
	vb_txq_commit(&q, len, NULL);
	l->ops->send(l, &q);
}

/* Returns how many frames of FRAME_BYTES bytes the link has received. */
static unsigned arrived(struct vb_link *l)
{
	static struct vb_rxq q;

	assert_int_equal(l->ops->recv(l, &q), 0);
	for (unsigned i = 0; i < q.count; i++)
		assert_int_equal(q.frames[i].len, FRAME_BYTES);
	return q.count;
}

/* Expect @count frames. A busy machine needs time until they come. */
static void expect(struct vb_link *l, unsigned count)
{
	struct pollfd p = { l->ops->fd(l), POLLIN, 0 };
	unsigned got = 0;

	while (got < count && poll(&p, 1, 2000) == 1)
		got += arrived(l);
	assert_int_equal(got, count);
	assert_int_equal(arrived(l), 0);
}

static void listen__nothing_before(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();
	struct vb_packet_want w = want(group);

	send_to(a, group, FRAME_BYTES);
	assert_int_equal(arrived(b), 0);
	assert_int_equal(vb_packet_listen(b, &w, 1, false), 0);
	send_to(a, group, FRAME_BYTES);
	expect(b, 1);
	assert_int_equal(vb_packet_listen(b, NULL, 0, false), 0);
	send_to(a, group, FRAME_BYTES);
	assert_int_equal(arrived(b), 0);
	a->ops->close(a);
	b->ops->close(b);
}

/* Frames that a raw packet link loops back to other sockets of its host. */
static void listen__what_an_adapter_loops_back(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();
	struct vb_packet_want any = { 0 };

	assert_int_equal(vb_packet_listen(a, &any, 1, false), 0);
	assert_int_equal(vb_packet_listen(b, &any, 1, false), 0);
	send_to(a, group, FRAME_BYTES);
	send_to(a, port.mac, FRAME_BYTES);
	send_to(a, away, FRAME_BYTES);
	assert_int_equal(arrived(a), 0);
	expect(b, 2);
	assert_int_equal(vb_packet_listen(b, NULL, 0, true), 0);
	send_to(a, away, FRAME_BYTES);
	expect(b, 1);
	a->ops->close(a);
	b->ops->close(b);
}

/* Each half of each address is compared, and the mask hides bits. */
static void listen__every_part_of_an_address(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();

	for (unsigned i = 0; i < 12; i++) {
		struct vb_packet_want w = { 0 };
		uint8_t *value = i < 6 ? &w.value.dst[i] : &w.value.src[i - 6];
		uint8_t *mask = i < 6 ? &w.mask.dst[i] : &w.mask.src[i - 6];

		*mask = 0xf0;
		*value = i < 6 ? group[i] | 0x0f : away[i - 6];
		assert_int_equal(vb_packet_listen(b, &w, 1, false), 0);
		send_to(a, group, FRAME_BYTES);
		expect(b, 1);
		*value ^= 0x10;
		assert_int_equal(vb_packet_listen(b, &w, 1, false), 0);
		send_to(a, group, FRAME_BYTES);
		assert_int_equal(arrived(b), 0);
	}
	a->ops->close(a);
	b->ops->close(b);
}

/* A frame arrives if it matches one of 64 wants, the most that a kernel filter
 * has, or one of 65. */
static void listen__many_wants(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();
	struct vb_packet_want w[65];

	for (unsigned i = 0; i < 65; i++) {
		uint8_t mac[6] = { 3, 0, 0, 0, 0, (uint8_t)i };

		w[i] = want(mac);
		memset(w[i].mask.src, 0xff, 6);
		memcpy(w[i].value.src, away, 6);
	}
	assert_int_equal(vb_packet_listen(b, w, 64, false), 0);
	send_to(a, group, FRAME_BYTES);
	send_to(a, w[63].value.dst, FRAME_BYTES);
	expect(b, 1);
	assert_int_equal(vb_packet_listen(b, w, 65, false), 0);
	send_to(a, group, FRAME_BYTES);
	expect(b, 1);
	a->ops->close(a);
	b->ops->close(b);
}

/* A frame that the kernel refuses is lost, and does not delay the others. */
static void send__too_long(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();
	struct vb_packet_want w = want(group);
	struct vb_link_stats s;

	assert_int_equal(vb_packet_listen(b, &w, 1, false), 0);
	send_to(a, group, 4000);
	send_to(a, group, FRAME_BYTES);
	a->ops->stats(a, &s);
	assert_int_equal(s.tx_lost, 1);
	expect(b, 1);
	a->ops->close(a);
	b->ops->close(b);
}

static void join__twice_and_leave(void **state)
{
	struct vb_link *a = open_link();

	for (int m = MEMBER_NONE; m <= MEMBER_ALL; m++) {
		assert_int_equal(vb_packet_join(a, m, group), 0);
		assert_int_equal(vb_packet_join(a, m, group), 0);
		vb_packet_leave(a, m, group);
		vb_packet_leave(a, m, group);
	}
	a->ops->close(a);
}

static void open__no_interface(void **state)
{
	struct vb_link *l;

	assert_int_equal(vb_packet_open(9999, port.mac, &l), -ENODEV);
}

/* Make a veth pair without IPv6, which would send frames of its own. */
static bool make_port(void)
{
	struct ifreq r = { .ifr_name = "one" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (system("ip link add one type veth peer name two && "
		   "ip link set one addrgenmode none && "
		   "ip link set two addrgenmode none && "
		   "ip link set one up && ip link set two up") != 0 ||
	    ioctl(fd, SIOCGIFHWADDR, &r) != 0)
		return false;
	memcpy(port.mac, r.ifr_hwaddr.sa_data, 6);
	port.ifindex = if_nametoindex("one");
	close(fd);
	return true;
}

/* Wait until the kernel has given a new port its queue, which takes a while. */
static int await_queue(void **state)
{
	struct vb_link *a = open_link(), *b = open_link();
	struct vb_packet_want w = want(group);
	struct pollfd p = { b->ops->fd(b), POLLIN, 0 };
	int tries = 0;

	assert_int_equal(vb_packet_listen(b, &w, 1, false), 0);
	do
		send_to(a, group, FRAME_BYTES);
	while (poll(&p, 1, 20) == 0 && ++tries < 250);
	a->ops->close(a);
	b->ops->close(b);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listen__nothing_before),
		cmocka_unit_test(listen__what_an_adapter_loops_back),
		cmocka_unit_test(listen__every_part_of_an_address),
		cmocka_unit_test(listen__many_wants),
		cmocka_unit_test(send__too_long),
		cmocka_unit_test(join__twice_and_leave),
		cmocka_unit_test(open__no_interface),
	};

	if (!netns_enter() || !make_port())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, await_queue, NULL);
}
