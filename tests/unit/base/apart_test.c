/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing what another process made waits for nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/fdmail.h"

/* Returns a TCP socket whose close() waits for 20 s, because its peer *@reader
 * does not read. */
static int make_lingering(int *reader)
{
	const struct linger patience = { 1, 20 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char bytes[65536];

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
	*reader = accept(listener, NULL, NULL);
	assert_true(*reader >= 0);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &patience,
				    sizeof(patience)),
			 0);
	return fd;
}

static void limit__a_lingering_socket_closes_soon(void **state)
{
	int reader, fd = make_lingering(&reader);
	vb_time then = vb_clock_read();

	(void)state;
	vb_apart_limit(true);
	vb_apart_close(&fd, 1);
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
	vb_apart_close(&pair[1], 1);
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
	vb_apart_close(&fds[1], 1);
	/* The end of file comes when the other end has closed. */
	assert_int_equal(read(fds[0], &byte, 1), 0);
	assert_true(vb_apart_has_room());
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit__a_lingering_socket_closes_soon),
		cmocka_unit_test(limit__so_does_one_that_waits_unread),
		cmocka_unit_test(close__a_file_closes_in_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
