/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of messages to a program that does not read. The test is that
 * program, at the other end of a socket pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fabricd/fabricd_priv.h"

/* A fake of vb_fabricd_do(): commands whose answers the test chooses. */
static int say_much(struct vb_fabricd *f, const char *text, int fd, FILE *to,
		    char error[VB_TOPO_ERROR], vb_time now);
#define vb_fabricd_do say_much
#include "fabricd/client.c"
#undef vb_fabricd_do

#define MIB	 ((size_t)1 << 20)
#define MOST_MIB (OUTBOX_MOST / MIB)

static size_t answer_bytes;

static struct world {
	struct vb_fabricd f;
	struct client c;
	int program;
	uint8_t *data; /* a buffer of 1 MiB */
} w;

static int say_much(struct vb_fabricd *f, const char *text, int fd, FILE *to,
		    char error[VB_TOPO_ERROR], vb_time now)
{
	for (size_t left = answer_bytes; left > 0;) {
		size_t n = VB_MIN(left, MIB);

		assert_int_equal(fwrite(w.data, 1, n, to), n);
		left -= n;
	}
	return 0;
}

static int start(void **state)
{
	int pair[2];

	alarm(60);
	memset(&w, 0, sizeof(w));
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	w.program = pair[1];
	w.data = calloc(1, MIB);
	w.f.epoll = epoll_create1(EPOLL_CLOEXEC);
	w.c.f = &w.f;
	w.c.last = &w.c.first;
	w.c.watch.fd = pair[0];
	assert_int_equal(vb_fabricd_watch(&w.f, &w.c.watch, EPOLLIN, false), 0);
	return 0;
}

static int finish(void **state)
{
	alarm(0);
	while (w.c.first) {
		struct queued_message *l = w.c.first;

		w.c.first = l->next;
		vb_queued_message_free(l);
	}
	close(w.c.watch.fd);
	close(w.program);
	close(w.f.epoll);
	free(w.data);
	return 0;
}

/* Deliver one message of 1 MiB to the program. */
static void deliver_one(void)
{
	const struct vb_mad_addr from = { .lid = 1 };
	const struct vb_mad_delivery d = { .addr = &from,
					   .bytes = w.data,
					   .len = MIB };

	vb_fabricd_deliver(&w.f, &w.c, &d);
}

/* Read one message, and close its descriptor. Returns its length; 0: there is
 * none. */
static size_t read_one(uint8_t *bytes, size_t room)
{
	unsigned count = 1;
	int memory;
	ssize_t n = vb_fdmail_recv(w.program, bytes, room, &memory, &count,
				   MSG_DONTWAIT);

	if (n == -EAGAIN)
		return 0;
	assert_true(n > 0);
	if (count)
		close(memory);
	return (size_t)n;
}

/* Let the process send all that it can. Returns how many messages have come. */
static unsigned count_messages(void)
{
	uint8_t bytes[sizeof(struct vb_umad_mad)];
	unsigned count = 0;

	while (read_one(bytes, sizeof(bytes))) {
		count++;
		send_queued(&w.c);
	}
	return count;
}

/* The memory of long messages is bounded, also of those that lie in the
 * socket's queue. */
static void outbox__memory_of_long_messages_is_bounded(void **state)
{
	unsigned count;

	for (unsigned i = 0; i < 3 * MOST_MIB; i++)
		deliver_one();
	count = count_messages();
	assert_in_range(count, MOST_MIB / 2, MOST_MIB);
	/* A program that has read its messages gets later ones. */
	for (unsigned i = 0; i < MOST_MIB / 2; i++)
		deliver_one();
	assert_int_equal(count_messages(), MOST_MIB / 2);
	assert_int_equal(w.c.waiting, 0);
	assert_false(w.c.gone);
}

/* Read the answer to a command. Returns its result; *@len: length of its
 * text. */
static int read_answer_of(size_t *len)
{
	static struct {
		struct vb_umad_head head;
		char text[VB_UMAD_INLINE];
	} m;

	*len = 0;
	for (;;) {
		size_t n = read_one((uint8_t *)&m, sizeof(m));

		if (!n) {
			send_queued(&w.c);
			continue;
		}
		assert_int_equal(n, sizeof(m.head) + m.head.length);
		if (m.head.result || !m.head.length)
			return m.head.result;
		*len += m.head.length;
	}
}

static void outbox__answer_is_whole_or_an_error(void **state)
{
	size_t len;

	answer_bytes = OUTBOX_MOST - MIB;
	run_client_command(&w.c, "show", -1, 0);
	assert_int_equal(read_answer_of(&len), 0);
	assert_int_equal(len, answer_bytes);
	answer_bytes = OUTBOX_MOST + MIB;
	run_client_command(&w.c, "show", -1, 0);
	assert_int_equal(read_answer_of(&len), -EMSGSIZE);
	assert_int_equal(len, 0);
	assert_false(w.c.gone);
}

/* If the socket has no room even for the error, the connection ends. */
static void outbox__no_room_for_an_error_ends_it(void **state)
{
	answer_bytes = OUTBOX_MOST - MIB;
	run_client_command(&w.c, "show", -1, 0);
	assert_false(w.c.gone);
	w.c.waiting = OUTBOX_MOST;
	run_client_command(&w.c, "show", -1, 0);
	assert_true(w.c.gone);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(outbox__memory_of_long_messages_is_bounded),
		CASE(outbox__answer_is_whole_or_an_error),
		CASE(outbox__no_room_for_an_error_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
