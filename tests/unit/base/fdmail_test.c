/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two processes, with and without descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"

struct pair {
	int ours, theirs;
};

static struct pair open_pair(void)
{
	int fds[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	return (struct pair){ fds[0], fds[1] };
}

static void send_word(int fd, const char *word, int with)
{
	assert_int_equal(
		vb_fdmail_send(fd, word, strlen(word), &with, with >= 0, 0), 0);
}

/* Receive one message into @word, and at most one descriptor into *@fd. */
static ssize_t hear(int from, char word[16], int *fd)
{
	unsigned count = 1;
	ssize_t n = vb_fdmail_recv(from, word, 15, fd, &count, 0);

	if (count == 0)
		*fd = -1;
	if (n >= 0)
		word[n] = '\0';
	return n;
}

static void fdmail__the_last_words_of_a_closed_peer_are_heard(void **state)
{
	struct pair p = open_pair();
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;
	char word[16];

	(void)state;
	send_word(p.ours, "never read", -1);
	send_word(p.theirs, "refused", null);
	send_word(p.theirs, "and more", -1);
	close(p.theirs);
	close(null);
	assert_int_equal(hear(p.ours, word, &fd), 7);
	assert_string_equal(word, "refused");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hear(p.ours, word, &fd), 8);
	assert_string_equal(word, "and more");
	close(p.ours);
}

static void fdmail__a_peer_that_closes_without_a_word_is_econnreset(void **s)
{
	struct pair p = open_pair();
	char word[16];
	int fd;

	(void)s;
	send_word(p.ours, "never read", -1);
	close(p.theirs);
	assert_int_equal(hear(p.ours, word, &fd), -ECONNRESET);
	assert_int_equal(hear(p.ours, word, &fd), 0);
	close(p.ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			fdmail__the_last_words_of_a_closed_peer_are_heard),
		cmocka_unit_test(
			fdmail__a_peer_that_closes_without_a_word_is_econnreset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
