/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks queue pair 1 on a real socket: which packets count as management
 * datagrams (MADs), and by which path an answer goes back to the sender. */
#include "broker/gsi.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/resource.h>

#include "link/udp.h"
#include "tests/unit/netns.h"

static struct vb_gsi *gsi;
static struct vb_link *stranger; /* a link that sends arbitrary packets */
static unsigned heard;
static struct vb_mad_path way_back;
static uint8_t last[VB_MAD_BYTES];

static struct vb_gid host(uint8_t number)
{
	return vb_gid_from_ipv4((const uint8_t[]){ 127, 0, 0, number });
}

static int begin(void **state)
{
	int fd;

	if (vb_udp_socket(&fd) || vb_gsi_open(fd, &gsi))
		return -1;
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	heard = 0;
	return vb_udp_open(fd, &stranger);
}

static int end(void **state)
{
	stranger->ops->close(stranger);
	vb_gsi_close(gsi);
	return vb_udp_port_taken();
}

static void take(void *arg, const struct vb_mad_path *back,
		 const uint8_t *bytes, size_t len)
{
	assert_int_equal(len, VB_MAD_BYTES);
	assert_ptr_equal(arg, &heard);
	memcpy(last, bytes, len);
	way_back = *back;
	heard++;
}

/* Receives until no packet has come for 100 ms. */
static void hear(void)
{
	struct pollfd p = { vb_gsi_fd(gsi), POLLIN, 0 };

	while (poll(&p, 1, 100) == 1)
		vb_gsi_recv(gsi, take, &heard);
}

static void fill(uint8_t mad[VB_MAD_BYTES], uint8_t with)
{
	for (unsigned i = 0; i < VB_MAD_BYTES; i++)
		mad[i] = (uint8_t)(i * 3 + with);
}

static void gsi__a_datagram_and_its_answer(void **state)
{
	struct vb_mad_path path = { .sgid = host(1), .dgid = host(2) };
	const struct vb_gid a = host(1), b = host(2);
	uint8_t mad[VB_MAD_BYTES];

	fill(mad, 1);
	vb_gsi_send(gsi, &path, mad);
	hear();
	assert_int_equal(heard, 1);
	assert_memory_equal(last, mad, sizeof(mad));
	assert_true(vb_gid_equal(&way_back.sgid, &b));
	assert_true(vb_gid_equal(&way_back.dgid, &a));
	assert_int_equal(way_back.ifindex, if_nametoindex("lo"));

	fill(mad, 2);
	path = way_back;
	vb_gsi_send(gsi, &path, mad);
	hear();
	assert_int_equal(heard, 2);
	assert_memory_equal(last, mad, sizeof(mad));
	assert_true(vb_gid_equal(&way_back.sgid, &a));
}

/* An answer goes by the version of RoCE by which the datagram came. */
static void gsi__by_roce_v1(void **state)
{
	const struct vb_gid lo = host(1);
	struct vb_mad_path path = { .sgid = lo,
				    .dgid = lo,
				    .ifindex = if_nametoindex("lo"),
				    .v1 = true };
	uint8_t mad[VB_MAD_BYTES];

	assert_true(vb_gsi_has_v1(gsi));
	for (unsigned i = 1; i <= 2; i++) {
		fill(mad, (uint8_t)(70 + i));
		vb_gsi_send(gsi, &path, mad);
		hear();
		assert_int_equal(heard, i);
		assert_memory_equal(last, mad, sizeof(mad));
		assert_true(way_back.v1);
		assert_int_equal(way_back.ifindex, path.ifindex);
		path = way_back;
	}
	path.v1 = false;
	vb_gsi_send(gsi, &path, mad);
	hear();
	assert_int_equal(heard, 3);
	assert_false(way_back.v1);
}

static void gsi__ipv6(void **state)
{
	const struct vb_gid lo = { { [15] = 1 } };
	const struct vb_mad_path path = { .sgid = lo, .dgid = lo };
	uint8_t mad[VB_MAD_BYTES];

	fill(mad, 3);
	vb_gsi_send(gsi, &path, mad);
	hear();
	assert_int_equal(heard, 1);
	assert_true(vb_gid_equal(&way_back.dgid, &lo));
}

/* A MAD to a host that does not exist, or to which no route leads, is lost. */
static void gsi__no_way(void **state)
{
	const struct vb_mad_path path = {
		.sgid = host(1),
		.dgid = vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 1 }),
	};
	uint8_t mad[VB_MAD_BYTES];

	fill(mad, 4);
	vb_gsi_send(gsi, &path, mad);
	hear();
	assert_int_equal(heard, 0);
}

static unsigned returned;
static int why;
static struct vb_gid from;

static void take_back(void *arg, const struct vb_gid *to, const uint8_t *bytes,
		      size_t len, int error)
{
	assert_int_equal(len, VB_MAD_BYTES);
	assert_ptr_equal(arg, &returned);
	memcpy(last, bytes, len);
	why = error;
	from = *to;
	returned++;
}

/* Waits until the network returns a MAD as undeliverable. */
static void await_return(struct vb_gsi *g)
{
	returned = 0;
	why = 0;
	for (unsigned i = 0; i < 100 && returned == 0; i++) {
		poll(NULL, 0, 10);
		vb_gsi_returns(g, take_back, &returned);
	}
}

static struct vb_gsi *open_without_port(void)
{
	struct vb_gsi *g = NULL;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(vb_gsi_open(fd, &g), 0);
	return g;
}

static void gsi__hears_that_nobody_is_there(void **state)
{
	const struct vb_gid lo = { { [15] = 1 } };
	const struct vb_mad_path paths[] = {
		{ .sgid = host(1), .dgid = host(2) },
		{ .sgid = lo, .dgid = lo },
	};
	struct vb_gsi *g = open_without_port();
	uint8_t mad[VB_MAD_BYTES];

	for (unsigned i = 0; i < VB_COUNT(paths); i++) {
		fill(mad, (uint8_t)(7 + i));
		vb_gsi_send(g, &paths[i], mad);
		await_return(g);
		assert_int_equal(returned, 1);
		assert_int_equal(why, ECONNREFUSED);
		assert_true(vb_gid_equal(&from, &paths[i].dgid));
		assert_memory_equal(last, mad, sizeof(mad));
		vb_gsi_returns(g, take_back, &returned);
		assert_int_equal(returned, 1);
	}
	vb_gsi_close(g);
}

/* A returned MAD must not make the next send fail. */
static void gsi__sends_after_a_return(void **state)
{
	const struct vb_mad_path path = { .sgid = host(1), .dgid = host(2) };
	struct vb_gsi *g = open_without_port();
	uint8_t mad[VB_MAD_BYTES];
	int fd;

	fill(mad, 9);
	vb_gsi_send(g, &path, mad);
	poll(NULL, 0, 50);
	assert_int_equal(vb_udp_socket(&fd), 0);
	assert_int_equal(vb_gsi_open(fd, &gsi), 0);
	heard = 0;
	vb_gsi_send(g, &path, mad);
	hear();
	assert_int_equal(heard, 1);
	vb_gsi_close(gsi);
	vb_gsi_close(g);
}

static uint16_t sum(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	uint32_t s = 0;

	for (size_t i = 0; i < len; i += 2)
		s += (uint32_t)b[i] << 8 | b[i + 1];
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

/* Host 2 sends an ICMP error with @code for the packet that host 1 sent from
 * @port. */
static void say_why(uint16_t port, uint8_t code)
{
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} m = {
		.icmp = { .type = ICMP_DEST_UNREACH, .code = code },
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(m.ip) + sizeof(m.udp)),
			.saddr = htonl(0x7f000001),
			.daddr = htonl(0x7f000002) },
		.udp = { .source = htons(port),
			 .dest = htons(4791),
			 .len = htons(sizeof(m.udp)) },
	};
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = m.ip.saddr };
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	m.icmp.checksum = htons(sum(&m, sizeof(m)));
	assert_int_equal(sendto(fd, &m, sizeof(m), 0,
				(const struct sockaddr *)&to, sizeof(to)),
			 sizeof(m));
	close(fd);
}

static int open_host2(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(4791),
					.sin_addr.s_addr = htonl(0x7f000002) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Returns the source port of a datagram; 0: none came within 200 ms. */
static uint16_t take_datagram(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	char byte;

	if (poll(&p, 1, 200) != 1 ||
	    recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&who, &len) < 0)
		return 0;
	return ntohs(who.sin_port);
}

/* ICMP errors of any code, which any host can provoke, must not make the next
 * send fail. */
static void gsi__sends_after_returns_of_any_kind(void **state)
{
	const struct vb_mad_path path = { .sgid = host(1), .dgid = host(2) };
	struct vb_gsi *g = open_without_port();
	int fd = open_host2();
	uint8_t mad[VB_MAD_BYTES];
	uint16_t port;

	fill(mad, 10);
	vb_gsi_send(g, &path, mad);
	port = take_datagram(fd);
	assert_int_not_equal(port, 0);
	for (uint8_t code = 0; code <= ICMP_PREC_CUTOFF; code++) {
		say_why(port, ICMP_HOST_UNREACH);
		say_why(port, code);
		vb_gsi_send(g, &path, mad);
		if (take_datagram(fd) != port)
			fail_msg("lost after code %u", code);
	}
	vb_gsi_close(g);
	close(fd);
}

static void gsi__what_is_no_datagram_of_ours(void **state)
{
	static struct vb_txq q;
	// clang-format off
	static const struct {
		uint8_t opcode;
		uint16_t pkey;
		uint32_t dqpn, sqpn, qkey, bytes;
		unsigned taken;
	} cases[] = {
		{ 0x64, 0xffff, 1, 1, VB_GSI_QKEY, 256, 1 },
		/* a P_Key of a limited member */
		{ 0x64, 0x7fff, 1, 1, VB_GSI_QKEY, 256, 1 },
		{ 0x64, 0x8001, 1, 1, VB_GSI_QKEY, 256, 0 },
		{ 0x64, 0xffff, 2, 1, VB_GSI_QKEY, 256, 0 },
		{ 0x64, 0xffff, 0, 1, VB_GSI_QKEY, 256, 0 },
		{ 0x64, 0xffff, 1, 2, VB_GSI_QKEY, 256, 0 },
		{ 0x64, 0xffff, 1, 1, 0x11111111,  256, 0 },
		{ 0x64, 0xffff, 1, 1, VB_GSI_QKEY, 252, 0 },
		{ 0x64, 0xffff, 1, 1, VB_GSI_QKEY, 260, 0 },
		{ 0x64, 0xffff, 1, 1, VB_GSI_QKEY, 0,   0 },
		/* a SEND with immediate */
		{ 0x65, 0xffff, 1, 1, VB_GSI_QKEY, 256, 0 },
		/* an opcode of RC */
		{ 0x04, 0xffff, 1, 1, VB_GSI_QKEY, 256, 0 },
	};
	// clang-format on
	struct vb_route r = { .sgid = host(1), .dgid = host(1), .dqpn = 1 };

	assert_int_equal(stranger->ops->route(stranger, &r), 0);
	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		const struct vb_ib_pkt pkt = {
			.bth = { .opcode = cases[i].opcode,
				 .pkey = cases[i].pkey,
				 .dqpn = cases[i].dqpn },
			.deth = { cases[i].qkey, cases[i].sqpn },
		};
		uint8_t *at;
		size_t head;

		vb_txq_reset(&q);
		at = vb_txq_begin(&q);
		head = vb_ib_put_headers(at, &pkt);
		memset(at + head, 0, cases[i].bytes);
		vb_txq_commit(&q, (uint32_t)head + cases[i].bytes, &r);
		stranger->ops->send(stranger, &q);
		heard = 0;
		hear();
		if (heard != cases[i].taken)
			print_error("case %u\n", i);
		assert_int_equal(heard, cases[i].taken);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

static unsigned open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* If the host has no descriptor left at any step of opening, the call fails and
 * leaves no descriptor open. */
static void open__without_descriptors(void **state)
{
	const unsigned before = open_descriptors();
	struct rlimit all, few;
	bool opened = false;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	for (unsigned more = 0; !opened; more++) {
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		struct vb_gsi *g;

		assert_true(fd >= 0 && more < 32);
		few.rlim_cur = (rlim_t)fd + 1 + more;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		opened = vb_gsi_open(fd, &g) == 0;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
		if (opened)
			vb_gsi_close(g);
		assert_int_equal(open_descriptors(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gsi__a_datagram_and_its_answer),
		CASE(gsi__by_roce_v1),
		CASE(gsi__ipv6),
		CASE(gsi__no_way),
		CASE(gsi__what_is_no_datagram_of_ours),
		cmocka_unit_test(gsi__hears_that_nobody_is_there),
		cmocka_unit_test(gsi__sends_after_a_return),
		cmocka_unit_test(gsi__sends_after_returns_of_any_kind),
		cmocka_unit_test(open__without_descriptors),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
