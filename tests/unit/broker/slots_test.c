/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks slots and their vault in a network namespace that the test makes. */
#include "broker/slots.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/fdmail.h"
#include "link/udp.h"
#include "tests/unit/netns.h"

static struct vb_slots slots;
static int names[VB_SLOTS_MADE];

static int fresh_slots(void **state)
{
	vb_slots_init(&slots);
	memset(names, -1, sizeof(names));
	return 0;
}

static int no_slots(void **state)
{
	vb_slots_fini(&slots);
	for (unsigned i = 0; i < VB_SLOTS_MADE; i++)
		if (names[i] >= 0)
			close(names[i]);
	return vb_udp_port_taken() ? -1 : 0;
}

static const struct vb_claimant root = { 0, true };

static void claim_as(const struct vb_claimant *who, unsigned expected)
{
	unsigned slot;

	assert_int_equal(vb_slots_claim(&slots, who, &slot, &names[expected]),
			 0);
	assert_int_equal(slot, expected);
}

static void claim(unsigned expected)
{
	claim_as(&root, expected);
}

static void give_up_name(unsigned slot)
{
	close(names[slot]);
	names[slot] = -1;
}

static void throw_at(unsigned slot)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(VB_ROCE_PORT) };
	int tx = socket(AF_INET6, SOCK_DGRAM, 0);
	uint8_t bytes[16] = { 0 };

	vb_store_be(bytes + 5, slot << VB_QPN_BITS, 3);
	assert_int_equal(sendto(tx, bytes, sizeof(bytes), 0,
				(struct sockaddr *)&to, sizeof(to)),
			 sizeof(bytes));
	close(tx);
}

/* Checks whether a packet for @slot arrives in its socket and in no other. */
static void check_steering(unsigned slot)
{
	char byte;

	throw_at(slot);
	for (unsigned i = 0; i < slots.count; i++)
		assert_int_equal(recv(slots.fds[i], &byte, 1, MSG_DONTWAIT),
				 i == slot ? 1 : -1);
}

static void slots_claim__lowest_first(void **state)
{
	assert_int_equal(vb_slots_create(&slots), 0);
	claim(1);
	claim(2);
	claim(3);
	assert_int_equal(vb_slots_taken(&slots), 3);
	give_up_name(2);
	assert_int_equal(vb_slots_taken(&slots), 2);
	claim(2);
	claim(4);
}

/* Programs that often ask for the number of slots in use do not make the broker
 * look at each name each time. */
static void slots_taken_lately__is_no_older_than_a_tenth_second(void **state)
{
	assert_int_equal(vb_slots_create(&slots), 0);
	claim(1);
	assert_int_equal(vb_slots_taken_lately(&slots, VB_SEC), 1);
	claim(2);
	assert_int_equal(vb_slots_taken_lately(&slots, VB_SEC), 2);
	give_up_name(1);
	assert_int_equal(vb_slots_taken_lately(&slots, VB_SEC + 99 * VB_MSEC),
			 2);
	assert_int_equal(vb_slots_taken_lately(&slots, VB_SEC + 100 * VB_MSEC),
			 1);
	give_up_name(2);
	assert_true(vb_slots_rest(&slots, 2));
	assert_int_equal(vb_slots_taken_lately(&slots, VB_SEC + 100 * VB_MSEC),
			 0);
}

static void slots_claim__all_of_them(void **state)
{
	struct rlimit old, usual = { 1024, 1024 };
	unsigned slot;
	int name;

	getrlimit(RLIMIT_NOFILE, &old);
	usual.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &usual);
	assert_int_equal(vb_slots_create(&slots), 0);
	for (unsigned i = 1; i <= VB_MAX_PROGRAMS; i++)
		claim(i);
	assert_int_equal(vb_slots_claim(&slots, &root, &slot, &name), -EUSERS);
	assert_int_equal(vb_slots_taken(&slots), VB_MAX_PROGRAMS);
	check_steering(0);
	check_steering(1);
	check_steering(16);
	check_steering(255);
	check_steering(256);
	give_up_name(77);
	claim(77);
	setrlimit(RLIMIT_NOFILE, &old);
}

static void slots_claim__stale_packets_are_gone(void **state)
{
	char byte;

	assert_int_equal(vb_slots_create(&slots), 0);
	claim(1);
	throw_at(1);
	throw_at(1);
	give_up_name(1);
	claim(1);
	assert_int_equal(recv(slots.fds[1], &byte, 1, MSG_DONTWAIT), -1);
	throw_at(1);
	give_up_name(1);
	vb_slots_rest(&slots, 1);
	assert_int_equal(recv(slots.fds[1], &byte, 1, MSG_DONTWAIT), -1);
}

static void slots_rest__not_while_taken(void **state)
{
	assert_int_equal(vb_slots_create(&slots), 0);
	claim(1);
	throw_at(1);
	vb_slots_rest(&slots, 1);
	vb_slots_rest(&slots, 0);
	vb_slots_rest(&slots, 5000);
	throw_at(1);
	assert_int_equal(recv(slots.fds[1], &(char){ 0 }, 1, MSG_DONTWAIT), 1);
	assert_int_equal(recv(slots.fds[1], &(char){ 0 }, 1, MSG_DONTWAIT), 1);
}

static void slots_create__port_taken(void **state)
{
	int fd;

	assert_int_equal(vb_udp_socket(&fd), 0);
	assert_int_equal(vb_slots_create(&slots), -EADDRINUSE);
	assert_int_equal(slots.vault, -1);
	close(fd);
	assert_int_equal(vb_slots_create(&slots), 0);
}

/* Ends the broker, and returns the vault of descriptors that a program would
 * still have. */
static int lose_broker(void)
{
	int vault = dup(slots.vault);

	vb_slots_fini(&slots);
	assert_true(vb_udp_port_taken());
	return vault;
}

static void slots_adopt__order_is_kept(void **state)
{
	int vault;

	assert_int_equal(vb_slots_create(&slots), 0);
	for (unsigned i = 1; i <= 40; i++)
		claim(i);
	for (int round = 0; round < 3; round++) {
		vault = lose_broker();
		assert_int_equal(vb_slots_adopt(&slots, vault), 0);
		assert_int_equal(slots.count, 48);
		assert_int_equal(vb_slots_taken(&slots), 40);
		for (unsigned i = 0; i < 48; i++)
			check_steering(i);
	}
	for (unsigned i = 41; i <= VB_MAX_PROGRAMS; i++)
		claim(i);
	vault = lose_broker();
	assert_int_equal(vb_slots_adopt(&slots, vault), 0);
	assert_int_equal(slots.count, VB_SLOTS_MADE);
	check_steering(17);
	check_steering(256);
}

static void slots_is_ours__same_socket(void **state)
{
	int other = socket(AF_UNIX, SOCK_DGRAM, 0), vault;

	assert_false(vb_slots_is_ours(&slots, other));
	assert_int_equal(vb_slots_create(&slots), 0);
	vault = dup(slots.vault);
	assert_true(vb_slots_is_ours(&slots, vault));
	assert_false(vb_slots_is_ours(&slots, other));
	assert_false(vb_slots_is_ours(&slots, -1));
	close(vault);
	close(other);
}

static void refuse_vault(int fd)
{
	assert_int_equal(vb_slots_adopt(&slots, fd), -EINVAL);
	assert_int_equal(slots.vault, -1);
	assert_int_equal(slots.count, 0);
	close(fd);
}

static int self_connected(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(a);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (void *)&a, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (void *)&a, &len), 0);
	assert_int_equal(connect(fd, (void *)&a, len), 0);
	return fd;
}

static void send_fds(int to, const uint8_t note[4], const int *fds,
		     unsigned count)
{
	assert_int_equal(vb_fdmail_send(to, note, 4, fds, count, 0), 0);
}

static void send_fd(int to, const uint8_t note[4], int fd)
{
	send_fds(to, note, &fd, 1);
}

/* Returns a RoCE socket of another network namespace, or -1. */
static int far_socket(void)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), roce = -1;
	bool made = netns_next() && vb_udp_socket(&roce) == 0;

	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	return made ? roce : -1;
}

static void slots_adopt__what_is_no_vault(void **state)
{
	static const uint8_t good[4] = { 0, 0, 0, 1 }, bad[4] = { 0, 1, 0, 1 };
	static const uint8_t many[4] = { 0, 0, 0, 9 }, two[4] = { 0, 0, 0, 2 };
	static const uint8_t three[4] = { 0, 3, 0, 1 };
	int pair[2], fd, roce;

	refuse_vault(open("/dev/null", O_RDONLY));
	refuse_vault(socket(AF_INET, SOCK_DGRAM, 0));
	refuse_vault(socket(AF_UNIX, SOCK_DGRAM, 0));
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	refuse_vault(pair[0]);
	close(pair[1]);

	refuse_vault(self_connected()); /* a vault with no message in its queue
					 */
	fd = self_connected();
	assert_int_equal(send(fd, "text", 4, 0), 4);
	refuse_vault(fd);
	fd = self_connected();
	send_fd(fd, good, STDERR_FILENO); /* the second descriptor is no RoCE
					   * socket */
	refuse_vault(fd);

	assert_int_equal(vb_udp_socket(&roce), 0);
	fd = self_connected();
	send_fd(fd, bad, roce);
	refuse_vault(fd);
	fd = self_connected();
	send_fd(fd, many, roce);
	refuse_vault(fd);
	fd = self_connected();
	send_fd(fd, good, roce);
	/* the vault has three messages, none of which is for slots 1 and 2 */
	send_fd(fd, three, roce);
	refuse_vault(fd);
	fd = self_connected();
	send_fds(fd, two, (int[]){ roce, roce }, 2);
	refuse_vault(fd);
	fd = self_connected();
	send_fd(fd, good, far_socket());
	refuse_vault(fd);
	fd = self_connected();
	send_fd(fd, good, roce);
	close(roce);
	assert_int_equal(vb_slots_adopt(&slots, fd), 0);
	assert_int_equal(slots.count, 1);
}

/*
 * Slots of users who do not trust each other.
 */

static const struct vb_claimant ann = { 64001, false }, ben = { 64002, false };

static uint64_t cookie(int fd)
{
	return vb_vault_cookie(fd, SO_COOKIE);
}

static void check_all_steering(void)
{
	for (unsigned i = 0; i < slots.count; i++)
		check_steering(i);
}

/* All slots are free, and Ann had their sockets before. */
static void give_all_to_ann(void)
{
	assert_int_equal(vb_slots_create(&slots), 0);
	for (unsigned i = 1; i <= VB_MAX_PROGRAMS; i++)
		claim_as(&ann, i);
	for (unsigned i = 1; i <= VB_MAX_PROGRAMS; i++)
		give_up_name(i);
}

static void slots_claim__each_user_has_sockets_of_its_own(void **state)
{
	assert_int_equal(vb_slots_create(&slots), 0);
	claim_as(&ann, 1);
	give_up_name(1);
	claim_as(&ben, 2);
	claim(3);
	give_up_name(3);
	give_up_name(2);
	claim_as(&ben, 2);
	claim_as(&ann, 1);
	claim_as(&ann, 3); /* only root had slot 3 */
	give_up_name(3);
	claim(4);
	claim_as(&ann, 3);
}

/* New users who come without end do not use up the slots: the sockets of free
 * slots are replaced. */
static void slots_claim__new_sockets_for_other_users(void **state)
{
	uint64_t before;

	give_all_to_ann();
	before = cookie(slots.fds[1]);
	for (unsigned round = 0; round < 50; round++) {
		const struct vb_claimant next = { 65000 + round, false };

		claim_as(&next, 1);
		assert_int_not_equal(cookie(slots.fds[1]), before);
		before = cookie(slots.fds[1]);
		give_up_name(1);
	}
	claim(1);
	assert_int_not_equal(cookie(slots.fds[1]), before);
	check_all_steering();
}

static void slots_claim__a_kept_socket_withholds_its_slot(void **state)
{
	int kept;

	give_all_to_ann();
	kept = dup(slots.fds[1]);
	claim_as(&ben, 2);
	check_all_steering();
	assert_int_equal(recv(kept, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	/* the slot is withheld from other users only, so its own user gets
	 * it */
	claim_as(&ann, 1);
	give_up_name(1);
	claim_as(&ben, 3);
	close(kept);
	claim_as(&ben, 1);
	check_all_steering();
}

static void slots_adopt__owners_and_replacements_are_kept(void **state)
{
	int kept;

	give_all_to_ann();
	kept = dup(slots.fds[1]);
	claim_as(&ben, 2);
	assert_int_equal(vb_slots_adopt(&slots, lose_broker()), 0);
	assert_int_equal(slots.count, VB_SLOTS_MADE);
	assert_true(slots.limited);
	check_all_steering();
	give_up_name(2);
	claim_as(&ben, 2);
	close(kept);
	claim_as(&ben, 3); /* not slot 1, which is withheld from other users */
	claim_as(&ann, 1);
}

/* The broker was killed while it replaced a socket. The next broker must finish
 * the replacement. */
static void slots_adopt__half_a_replacement(void **state)
{
	uint64_t before;
	int fresh, vault;

	assert_int_equal(vb_slots_create(&slots), 0);
	claim_as(&ann, 1);
	for (unsigned i = 2; i < 40; i++)
		claim_as(&ann, i);
	before = cookie(slots.fds[20]);
	assert_int_equal(vb_udp_socket(&fresh), 0);
	assert_int_equal(vb_vault_put(slots.vault, 20, &fresh, 1), 0);
	/* The vault has been rewritten only in part, too. */
	assert_int_equal(vb_vault_put(slots.vault, 0, slots.fds, 16), 0);
	vault = lose_broker();
	close(fresh);
	assert_int_equal(vb_slots_adopt(&slots, vault), 0);
	assert_int_equal(slots.count, 48);
	assert_int_equal(slots.messages, 3);
	assert_int_not_equal(cookie(slots.fds[20]), before);
	assert_int_equal(slots.owners[20].is, SLOT_WITHHELD);
	assert_int_equal(slots.owners[20].uid, ann.uid);
	check_all_steering();
	assert_int_equal(vb_slots_adopt(&slots, lose_broker()), 0);
	check_all_steering();
}

/* Whatever a slot's holder does with its socket, it must not receive packets
 * for other slots. */
static void slots_claim__a_holder_reads_its_own_packets_only(void **state)
{
	static const int on = 1, off = 0;
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 1);
	struct sock_fprog program = { 1, &all };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct pollfd ready = { .events = POLLIN };
	int fd;

	assert_int_equal(vb_slots_create(&slots), 0);
	claim_as(&ann, 1);
	claim_as(&ben, 2);
	fd = ready.fd = slots.fds[1];
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF,
				    &program, sizeof(program)),
			 -1);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
				    sizeof(program)),
			 -1);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &on, sizeof(on)),
		-1);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)),
		-1);
	/* The holder can detach the steering program; the broker attaches it
	 * again. */
	assert_int_equal(vb_udp_unsteer(fd), 0);
	assert_int_equal(vb_slots_steer(&slots), 0);
	check_all_steering();
	/* The holder can take its socket out of the group, into which the
	 * group's last socket then moves. */
	assert_int_equal(vb_udp_retire(fd), 0);
	assert_int_equal(connect(fd, &none, sizeof(none)), 0);
	for (unsigned slot = 2; slot < 16; slot++)
		throw_at(slot);
	assert_int_equal(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	throw_at(1);
	/* On a busy machine the kernel delivers the packet a moment later. */
	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT), 1);
}

static void slots_claim__not_one_that_left_the_group(void **state)
{
	give_all_to_ann();
	assert_int_equal(vb_udp_retire(slots.fds[1]), 0);
	claim_as(&ben, 2);
	assert_int_equal(slots.owners[1].is, SLOT_USERS);
	assert_int_equal(slots.owners[1].uid, ann.uid);
}

#define IN_GROUP(name)                                                         \
	cmocka_unit_test_setup_teardown(name, fresh_slots, no_slots)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_GROUP(slots_claim__lowest_first),
		IN_GROUP(slots_claim__all_of_them),
		IN_GROUP(slots_taken_lately__is_no_older_than_a_tenth_second),
		IN_GROUP(slots_claim__stale_packets_are_gone),
		IN_GROUP(slots_rest__not_while_taken),
		IN_GROUP(slots_create__port_taken),
		IN_GROUP(slots_adopt__order_is_kept),
		IN_GROUP(slots_is_ours__same_socket),
		IN_GROUP(slots_adopt__what_is_no_vault),
		IN_GROUP(slots_claim__each_user_has_sockets_of_its_own),
		IN_GROUP(slots_claim__new_sockets_for_other_users),
		IN_GROUP(slots_claim__a_kept_socket_withholds_its_slot),
		IN_GROUP(slots_adopt__owners_and_replacements_are_kept),
		IN_GROUP(slots_adopt__half_a_replacement),
		IN_GROUP(slots_claim__a_holder_reads_its_own_packets_only),
		IN_GROUP(slots_claim__not_one_that_left_the_group),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
