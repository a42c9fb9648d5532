/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing what another process made waits for nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/fdmail.h"
#include "tests/support/lingering.h"
#include "tests/support/slow_file.h"

static void limit__a_lingering_socket_closes_soon(void **state)
{
	int reader, fd = make_lingering(&reader);
	vb_time then = vb_clock_read();

	(void)state;
	vb_apart_limit(true);
	vb_apart_close(&fd, 1, VB_APART_TRUSTED);
	vb_apart_limit(false);
	assert_true(vb_clock_read() - then < 5 * VB_SEC);
	close(reader);
}

static void limit__so_does_one_that_waits_unread(void **state)
{
	int pair[2], reader, fd = make_lingering(&reader);
	vb_time then;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(vb_fdmail_send(pair[0], "x", 1, &fd, 1, 0), 0);
	close(fd);
	then = vb_clock_read();
	vb_apart_limit(true);
	vb_apart_close(&pair[1], 1, VB_APART_TRUSTED);
	vb_apart_limit(false);
	assert_true(vb_clock_read() - then < 5 * VB_SEC);
	close(pair[0]);
	close(reader);
}

static void close__a_file_closes_in_another_thread(void **state)
{
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	vb_apart_close(&fds[1], 1, 5);
	/* The end of file comes when the other end of the pipe has been
	 * closed. */
	assert_int_equal(read(fds[0], &byte, 1), 0);
	assert_true(vb_apart_has_room(5));
	close(fds[0]);
}

static bool becomes_roomy(uint64_t owner)
{
	vb_time then = vb_clock_read();

	while (!vb_apart_has_room(owner) &&
	       vb_clock_read() - then < 20 * VB_SEC)
		usleep(1000);
	return vb_apart_has_room(owner);
}

static void close_slowly(const struct slow_file *s, uint64_t owner,
			 unsigned count)
{
	while (count--) {
		int fd = slow_open(s);

		assert_true(fd >= 0);
		vb_apart_close(&fd, 1, owner);
	}
}

/* The close() of some files waits. Such files of one user must not use up the
 * room for other users, and those of all users together must leave room for
 * root. */
static void close__is_fair_among_users(void **state)
{
	struct slow_file s;

	(void)state;
	if (!slow_begin(&s))
		skip();
	close_slowly(&s, 5, 8);
	assert_false(vb_apart_has_room(5));
	assert_true(vb_apart_has_room(6));
	for (uint64_t user = 6; user < 13; user++)
		close_slowly(&s, user, 8);
	assert_false(vb_apart_has_room(20));
	assert_true(vb_apart_has_room(VB_APART_TRUSTED));
	close_slowly(&s, VB_APART_TRUSTED, 64);
	assert_false(vb_apart_has_room(VB_APART_TRUSTED));
	slow_end(&s);
	assert_true(becomes_roomy(5));
	assert_true(becomes_roomy(VB_APART_TRUSTED));
}

/* A library closes descriptors that it did not ask for, without waiting for
 * their close(). */
static void drop__waits_for_nothing(void **state)
{
	int pair[2], fds[2], reader, linger = make_lingering(&reader);
	vb_time then = vb_clock_read();
	struct slow_file s;

	(void)state;
	if (!slow_begin(&s))
		skip();
	fds[0] = slow_open(&s);
	fds[1] = linger;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(vb_fdmail_send(pair[0], "x", 1, &linger, 1, 0), 0);
	vb_apart_drop(fds, 2);
	vb_apart_hang_up(pair[1]);
	assert_true(vb_apart_may_drop());
	assert_true(vb_clock_read() - then < 10 * VB_SEC);
	close(pair[0]);
	close(reader);
	slow_end(&s);
}

static unsigned threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* A peer may leave bytes (bells) unread in its socket. Closing the socket then
 * needs no thread. */
static void hang_up__of_plain_messages_starts_no_thread(void **state)
{
	unsigned before = threads();
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(send(pair[0], "bell", i % 5, 0), i % 5);
	vb_apart_hang_up(pair[1]);
	/* Threads of earlier cases may end meanwhile. */
	assert_true(threads() <= before);
	assert_int_equal(send(pair[0], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	close(pair[0]);
}

/* A hostile peer hides a descriptor in a message of no bytes, behind others of
 * no bytes. */
static void hang_up__of_hidden_descriptors_waits_for_nothing(void **state)
{
	int pair[2], reader, linger = make_lingering(&reader);
	vb_time then = vb_clock_read();

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(send(pair[0], "", 0, 0), 0);
	assert_int_equal(vb_fdmail_send(pair[0], "", 0, &linger, 1, 0), 0);
	close(linger);
	vb_apart_hang_up(pair[1]);
	assert_true(vb_clock_read() - then < 5 * VB_SEC);
	close(pair[0]);
	close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit__a_lingering_socket_closes_soon),
		cmocka_unit_test(limit__so_does_one_that_waits_unread),
		cmocka_unit_test(close__a_file_closes_in_another_thread),
		cmocka_unit_test(close__is_fair_among_users),
		cmocka_unit_test(drop__waits_for_nothing),
		cmocka_unit_test(hang_up__of_plain_messages_starts_no_thread),
		cmocka_unit_test(
			hang_up__of_hidden_descriptors_waits_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
