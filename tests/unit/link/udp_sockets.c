/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the UDP link: the port's sockets, and routes. */
#include "udp_fixture.h"

#include <signal.h>
#include <sys/wait.h>

void udp_socket__shares_the_port(void **state)
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

void udp_socket__port_of_another_program(void **state)
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

void udp_is_roce__everything_else(void **state)
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

/* Returns the index of the socket to which the kernel gave the packet. */
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

void udp_steer__top_bits_pick_the_socket(void **state)
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

void udp_route__a_port_for_each_slot(void **state)
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

void udp_route__address_of_nobody(void **state)
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
		/* GID 0 of loopback, whose MAC address is all zeros */
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

void udp_route__out_of_descriptors(void **state)
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

/* Fork a child that lives until it is killed. */
static pid_t fork_child(void)
{
	pid_t child;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

/* How many times does the file list a group whose address is printed as @hex?
 */
static unsigned count_groups(const char *file, const char *hex)
{
	FILE *f = fopen(file, "r");
	unsigned count = 0;
	char line[200];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count += strcasestr(line, hex) != NULL;
	fclose(f);
	return count;
}

/* A child of fork does not keep the parent's groups: they are left when the
 * parent leaves them. */
void udp_join__is_not_inherited(void **state)
{
	static const struct {
		const char *group, *file, *hex;
	} rows[] = {
		{ "::ffff:239.1.2.3", "/proc/net/igmp", "030201EF" },
		{ "ff0e::102:304", "/proc/net/igmp6",
		  "ff0e0000000000000000000001020304" },
	};
	struct vb_link *l = open_link();

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const struct vb_link_group g = { .gid = gid_of(rows[i].group),
						 .ifindex = 1 };
		int member = l->ops->join(l, &g);
		unsigned left;
		pid_t child;

		assert_true(member >= 0);
		assert_int_equal(count_groups(rows[i].file, rows[i].hex), 1);
		child = fork_child();
		l->ops->leave(l, member);
		left = count_groups(rows[i].file, rows[i].hex);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(left, 0);
	}
	close_link(l);
}
