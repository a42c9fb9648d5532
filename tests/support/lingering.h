/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket whose close() waits, for tests with cmocka. */
#ifndef TESTS_SUPPORT_LINGERING_H
#define TESTS_SUPPORT_LINGERING_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns a TCP socket whose close() waits for 20 s, because its peer *@reader
 * does not read. */
static inline int make_lingering(int *reader)
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

#endif
