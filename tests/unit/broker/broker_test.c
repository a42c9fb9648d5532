/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a broker in a child process and checks its answers to programs. */
#include "tests/unit/broker/broker_bed.h"

#include <sys/resource.h>

#include "wire/ipc_cm.h"

/* Returns the number of programs that the broker reports. The broker counts
 * them at most once in 100 ms, so this waits. */
static unsigned programs(void)
{
	int fd = connect_to_broker();
	struct answer a;

	nap_ms(110);

	say(fd, IPC_STATUS, 0, -1);
	assert_true(hear(fd, &a));
	assert_int_equal(a.m.kind, IPC_REPORT);
	close(fd);
	return a.m.programs;
}

static void broker_run__slots_come_and_go(void **state)
{
	struct answer a, b;
	int first, second;

	start_broker(60 * VB_SEC);
	assert_int_equal(vb_broker_listen(), -EADDRINUSE);
	assert_int_equal(programs(), 0);
	first = claim_slot(&a, 1);
	second = claim_slot(&b, 2);
	assert_int_equal(programs(), 2);
	close(first); /* the name is still bound, so the slot is still taken */
	assert_int_equal(programs(), 2);
	close_answer(&a);
	assert_int_equal(programs(), 1);
	first = claim_slot(&a, 1);
	close(first);
	close(second);
	close_answer(&a);
	close_answer(&b);
	kill_broker();
	assert_false(vb_udp_port_taken());
}

static void broker_run__all_slots(void **state)
{
	static struct answer a[VB_MAX_PROGRAMS + 1];
	int fds[VB_MAX_PROGRAMS + 1];
	struct rlimit limit;

	/* This process plays all programs and has the descriptors of all of
	 * them, so it needs a higher limit. */
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	start_broker(60 * VB_SEC);
	for (unsigned i = 0; i < VB_MAX_PROGRAMS; i++)
		fds[i] = claim_slot(&a[i], i + 1);
	fds[VB_MAX_PROGRAMS] = claim(&a[VB_MAX_PROGRAMS]);
	assert_int_equal(a[VB_MAX_PROGRAMS].m.kind, IPC_REFUSE);
	assert_int_equal(a[VB_MAX_PROGRAMS].m.error, EUSERS);
	assert_non_null(strstr(a[VB_MAX_PROGRAMS].m.text, "256 programs"));
	/* After a limited number of refused claims the broker ends the
	 * session. */
	for (unsigned i = 1; i < 8; i++) {
		say(fds[VB_MAX_PROGRAMS], IPC_CLAIM, 0, -1);
		assert_true(hear(fds[VB_MAX_PROGRAMS], &a[VB_MAX_PROGRAMS]));
		assert_int_equal(a[VB_MAX_PROGRAMS].m.kind, IPC_REFUSE);
	}
	expect_end(fds[VB_MAX_PROGRAMS]);
	for (unsigned i = 0; i <= VB_MAX_PROGRAMS; i++) {
		close(fds[i]);
		close_answer(&a[i]);
	}
	kill_broker();
}

/* A message with more descriptors than the protocol allows ends the session. */
static void too_many_descriptors(unsigned count)
{
	struct vb_ipc m = { .kind = IPC_REJOIN,
			    .version = VB_IPC_VERSION,
			    .slot = 3 };
	uint8_t bytes[VB_IPC_BYTES];
	int fds[VB_FDMAIL_FDS], fd = connect_to_broker();

	for (unsigned i = 0; i < count; i++)
		fds[i] = STDERR_FILENO;
	vb_ipc_put(bytes, &m);
	assert_int_equal(
		vb_fdmail_send(fd, bytes, sizeof(bytes), fds, count, 0), 0);
	expect_end(fd);
	close(fd);
}

static void broker_run__nonsense_ends_a_session(void **state)
{
	static const uint8_t junk[4096];
	struct answer a;
	int fd;

	start_broker(60 * VB_SEC);
	for (size_t len = 1; len <= sizeof(junk); len *= 4) {
		fd = connect_to_broker();
		assert_int_equal(send(fd, junk, len, 0), len);
		expect_end(fd);
		close(fd);
	}
	for (unsigned kind = 0; kind < 256; kind++) {
		if (kind == IPC_CLAIM || kind == IPC_STATUS)
			continue;
		fd = connect_to_broker();
		say(fd, kind, 3, STDERR_FILENO);
		expect_end(fd);
		close(fd);
	}
	for (unsigned count = IPC_FDS + 1; count <= VB_FDMAIL_FDS; count++)
		too_many_descriptors(count);
	fd = claim_slot(&a, 1);
	close_answer(&a);
	/* a second claim in one session is refused */
	say(fd, IPC_CLAIM, 0, -1);
	expect_end(fd);
	close(fd);
	assert_int_equal(programs(), 0);
	kill_broker();
}

/* When the program closes the name after the session, the broker still empties
 * the queue of the slot. */
static void broker_run__name_outlives_session(void **state)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(VB_ROCE_PORT) };
	int fd, tx = socket(AF_INET6, SOCK_DGRAM, 0);
	uint8_t bytes[16] = { 0 };
	struct answer a;

	start_broker(60 * VB_SEC);
	fd = claim_slot(&a, 1);
	vb_store_be(bytes + 5, 1u << VB_QPN_BITS, 3);
	assert_int_equal(
		sendto(tx, bytes, sizeof(bytes), 0, (void *)&to, sizeof(to)),
		sizeof(bytes));
	close(fd);
	nap_ms(50);
	assert_int_equal(recv(a.fds[0], bytes, 1, MSG_PEEK | MSG_DONTWAIT), 1);
	close(a.fds[1]);
	nap_ms(400);
	assert_int_equal(recv(a.fds[0], bytes, 1, MSG_DONTWAIT), -1);
	close(a.fds[0]);
	close(a.fds[2]);
	close(tx);
	kill_broker();
}

/* Asks to bind port @port; the answer is read later. */
static void ask_to_bind(int fd, uint16_t port)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_BIND,
				     .version = VB_IPC_CM_VERSION,
				     .id = port,
				     .tid = port,
				     .space = 0x106,
				     .src_port = port };
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, &m);

	assert_int_equal(vb_fdmail_send(fd, bytes, len, NULL, 0, 0), 0);
}

/* Returns the status that is the answer. */
static int hear_bound(int fd)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
	struct vb_ipc_cm done;

	assert_true(n > 0 && vb_ipc_cm_get(bytes, (size_t)n, &done));
	assert_int_equal(done.kind, IPC_CM_DONE);
	return done.status;
}

/* A program ends. The broker got no processor time meanwhile, so it has not
 * read all of that program's messages when the next program asks for the same
 * port. */
static void broker_run__ports_of_an_ended_program(void **state)
{
	int ended, next;

	start_broker(60 * VB_SEC);
	ended = connect_to_broker();
	ask_to_bind(ended, 7471);
	assert_int_equal(hear_bound(ended), 0);
	kill(broker, SIGSTOP);
	for (uint16_t i = 0; i < 20; i++)
		ask_to_bind(ended, 8000 + i);
	close(ended);
	next = connect_to_broker();
	ask_to_bind(next, 7471);
	kill(broker, SIGCONT);
	assert_int_equal(hear_bound(next), 0);
	close(next);
	kill_broker();
}

static void broker_run__port_of_another_program(void **state)
{
	struct answer a;
	int other, fd;

	start_broker(60 * VB_SEC);
	assert_int_equal(vb_udp_socket(&other), 0);
	fd = claim(&a);
	assert_int_equal(a.m.kind, IPC_REFUSE);
	assert_int_equal(a.m.error, EADDRINUSE);
	assert_non_null(strstr(a.m.text, "4791"));
	close(other);
	/* A session whose claim was refused may claim again, and gets the slot
	 * that is free now. */
	say(fd, IPC_CLAIM, 0, -1);
	assert_true(hear(fd, &a));
	assert_int_equal(a.m.kind, IPC_GRANT);
	close(fd);
	close_answer(&a);
	kill_broker();
}

static void broker_run__the_next_one_takes_over(void **state)
{
	struct answer a, b, c;
	int first, second, third;

	start_broker(60 * VB_SEC);
	first = claim_slot(&a, 1);
	second = claim_slot(&b, 2);
	kill_broker();
	assert_false(hear(first, &c));
	assert_true(vb_udp_port_taken());
	close(first);
	close(second);

	start_broker(60 * VB_SEC);
	/* this claim is not answered at once: the broker gives earlier programs
	 * time to rejoin */
	third = connect_to_broker();
	say(third, IPC_CLAIM, 0, -1);
	nap_ms(50);
	first = connect_to_broker();
	say_with(first, IPC_REJOIN, 1, a.fds, IPC_FDS);
	assert_true(hear(first, &c));
	assert_int_equal(c.m.kind, IPC_WELCOME);
	second = connect_to_broker();
	say_with(second, IPC_REJOIN, 2, b.fds, IPC_FDS);
	assert_true(hear(second, &c));
	assert_int_equal(c.m.kind, IPC_WELCOME);
	assert_true(hear(third, &c));
	assert_int_equal(c.m.kind, IPC_GRANT);
	assert_int_equal(c.m.slot, 3);
	assert_int_equal(programs(), 3);
	close(first);
	close(second);
	close(third);
	close_answer(&a);
	close_answer(&b);
	close_answer(&c);
	kill_broker();
	assert_false(vb_udp_port_taken());
}

/* Returns 0 if the broker lets the program rejoin, else the errno in its
 * answer. */
static int rejoin(unsigned slot, int socket, int name, int vault)
{
	const int fds[IPC_FDS] = { socket, name, vault };
	int fd = connect_to_broker();
	struct answer a;

	say_with(fd, IPC_REJOIN, slot, fds, vault >= 0 ? IPC_FDS : IPC_FDS - 1);
	assert_true(hear(fd, &a));
	close(fd);
	return a.m.kind == IPC_WELCOME ? 0 : a.m.error;
}

/* A program can rejoin only with the socket and the name of that slot. */
static void broker_run__rejoin_needs_proof(void **state)
{
	struct answer a, b;
	int first, second;

	start_broker(60 * VB_SEC);
	first = claim_slot(&a, 1);
	second = claim_slot(&b, 2);
	assert_int_equal(rejoin(1, STDERR_FILENO, STDERR_FILENO, -1), EPERM);
	assert_int_equal(rejoin(1, b.fds[0], b.fds[1], b.fds[2]), EPERM);
	assert_int_equal(rejoin(1, a.fds[0], b.fds[1], b.fds[2]), EPERM);
	assert_int_equal(rejoin(1, b.fds[0], a.fds[1], b.fds[2]), EPERM);
	assert_int_equal(rejoin(0, a.fds[0], a.fds[1], -1), EPERM);
	assert_int_equal(rejoin(300, a.fds[0], a.fds[1], -1), EPERM);
	assert_int_equal(rejoin(1, a.fds[0], a.fds[1], -1), 0);
	close(first);
	close(second);
	close_answer(&a);
	close_answer(&b);
	kill_broker();
}

/* Runs @child in a child process and returns its result. */
static int in_child(int (*child)(const struct answer *a),
		    const struct answer *a)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(child(a));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Rejoins with a name that is bound in another network namespace. */
static int bring_name_from_elsewhere(const struct answer *a)
{
	int fds[IPC_FDS] = { a->fds[0], -1, a->fds[2] };
	int fd = connect_to_broker();
	struct sockaddr_un name;
	struct answer got;
	socklen_t len;

	if (!netns_next())
		return 0;
	len = vb_ipc_slot_address(&name, 1);
	fds[IPC_FD_NAME] = vb_fdmail_bind(&name, len);
	say_with(fd, IPC_REJOIN, 1, fds, IPC_FDS);
	return hear(fd, &got) && got.m.error == EPERM;
}

static int bring_the_parents(const struct answer *a)
{
	return rejoin(1, a->fds[0], a->fds[1], a->fds[2]);
}

static void broker_run__rejoin_of_others(void **state)
{
	struct answer a;
	int fd;

	start_broker(60 * VB_SEC);
	fd = claim_slot(&a, 1);
	assert_int_equal(in_child(bring_the_parents, &a), EPERM);
	assert_int_equal(in_child(bring_name_from_elsewhere, &a), 1);
	/* There is no session, so only the process that listens at the name can
	 * be the owner of the slot. */
	assert_int_equal(listen(a.fds[IPC_FD_NAME], 1), 0);
	close(fd);
	nap_ms(50);
	assert_int_equal(in_child(bring_the_parents, &a), EPERM);
	assert_int_equal(rejoin(1, a.fds[0], a.fds[1], a.fds[2]), 0);
	close_answer(&a);
	kill_broker();
}

/* Returns whether the broker accepts this process's messages about a queue pair
 * of slot 1. */
static bool speaks_for_slot_1(void)
{
	const struct vb_ipc_cm hello = { .kind = IPC_CM_HELLO,
					 .version = VB_IPC_CM_VERSION,
					 .qpn = 1u << VB_QPN_BITS | 5 };
	uint8_t bytes[VB_IPC_CM_BYTES];
	struct vb_ipc_cm answer;
	int fd = connect_to_broker();

	vb_ipc_cm_put(bytes, &hello);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_true(vb_ipc_cm_get(bytes, sizeof(bytes), &answer));
	close(fd);
	return answer.status == 0;
}

/* A process closes the name of its slot but keeps its session. The broker must
 * not take it for the next program that gets the slot. */
static int keep_session(int told, int tell)
{
	struct answer a;
	bool before;
	char byte;

	(void)claim_slot(&a, 1);
	before = speaks_for_slot_1();
	close_answer(&a);
	if (write(tell, "", 1) != 1 || read(told, &byte, 1) != 1)
		return 2;
	return before && !speaks_for_slot_1() ? 0 : 1;
}

static void broker_run__a_slot_has_one_holder(void **state)
{
	int status, fd, told[2], tell[2];
	struct answer a;
	pid_t child;
	char byte;

	start_broker(60 * VB_SEC);
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(tell), 0);
	child = fork();
	if (child == 0)
		_exit(keep_session(told[0], tell[1]));
	assert_int_equal(read(tell[0], &byte, 1), 1);
	fd = claim_slot(&a, 1);
	assert_int_equal(write(told[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(speaks_for_slot_1());
	close(fd);
	close_answer(&a);
	kill_broker();
}

static void broker_run__leaves_when_idle(void **state)
{
	struct answer a;
	int status, fd;

	start_broker(200 * VB_MSEC);
	fd = claim_slot(&a, 1);
	nap_ms(400);
	assert_int_equal(waitpid(broker, NULL, WNOHANG), 0);
	close(fd); /* the name of the slot is still bound */
	nap_ms(500);
	assert_int_equal(waitpid(broker, NULL, WNOHANG), 0);
	close_answer(&a);
	assert_int_equal(waitpid(broker, &status, 0), broker);
	assert_int_equal(status, 0);
	assert_false(vb_udp_port_taken());
	assert_int_equal(connect_to_broker(), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(broker_run__slots_come_and_go),
		cmocka_unit_test(broker_run__all_slots),
		cmocka_unit_test(broker_run__nonsense_ends_a_session),
		cmocka_unit_test(broker_run__name_outlives_session),
		cmocka_unit_test(broker_run__ports_of_an_ended_program),
		cmocka_unit_test(broker_run__port_of_another_program),
		cmocka_unit_test(broker_run__the_next_one_takes_over),
		cmocka_unit_test(broker_run__rejoin_needs_proof),
		cmocka_unit_test(broker_run__rejoin_of_others),
		cmocka_unit_test(broker_run__a_slot_has_one_holder),
		cmocka_unit_test(broker_run__leaves_when_idle),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
