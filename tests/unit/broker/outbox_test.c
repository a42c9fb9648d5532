/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the queue of messages to a program that reads late or never. */
#include "broker/outbox.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/user_has.h"

#define BYTES 352

static struct vb_users users;
static struct vb_user *user;
static struct vb_outbox boxes[4];
static int ends[4][2];

static int begin(void **state)
{
	user = vb_user_enter(&users, 5, false);
	for (unsigned i = 0; i < VB_COUNT(boxes); i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends[i]))
			return -1;
		vb_outbox_init(&boxes[i], ends[i][0], user);
	}
	return user ? 0 : -1;
}

static int end(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(boxes); i++) {
		vb_outbox_fini(&boxes[i]);
		close(ends[i][0]);
		close(ends[i][1]);
	}
	assert_int_equal(user_has(user, VB_QUOTA_BYTES), 0);
	vb_user_leave(user);
	return 0;
}

static void put(struct vb_outbox *o, uint32_t number)
{
	uint8_t bytes[BYTES] = { 0 };

	memcpy(bytes, &number, sizeof(number));
	vb_outbox_put(o, bytes, sizeof(bytes));
}

static void outbox__keeps_the_order(void **state)
{
	uint8_t bytes[BYTES];
	uint32_t number;

	for (uint32_t i = 0; i < 5000; i++)
		put(&boxes[0], i);
	assert_non_null(boxes[0].first);
	for (uint32_t i = 0; i < 5000; i++) {
		if (i % 7 == 0)
			vb_outbox_flush(&boxes[0]);
		assert_int_equal(recv(ends[0][1], bytes, BYTES, MSG_DONTWAIT),
				 BYTES);
		memcpy(&number, bytes, sizeof(number));
		assert_int_equal(number, i);
	}
	assert_null(boxes[0].first);
	assert_int_equal(boxes[0].bytes, 0);
	assert_int_equal(boxes[0].error, 0);
}

/* The first message that exceeds the limit sets the error, without another
 * write to the socket. */
static void outbox__of_one_that_does_not_read(void **state)
{
	uint32_t i;

	for (i = 0; !boxes[0].error && i < 1000000; i++)
		put(&boxes[0], i);
	assert_int_equal(boxes[0].error, -ENOBUFS);
	assert_in_range(boxes[0].bytes, VB_OUTBOX_BYTES - 1000,
			VB_OUTBOX_BYTES);
	assert_int_equal(boxes[1].error, 0);
}

static void outbox__of_many_of_one_user(void **state)
{
	size_t waiting = 0;

	for (unsigned i = 0; i < VB_COUNT(boxes); i++)
		for (uint32_t n = 0; !boxes[i].error && n < 1000000; n++)
			put(&boxes[i], n);
	for (unsigned i = 0; i < VB_COUNT(boxes); i++) {
		assert_int_equal(boxes[i].error, -ENOBUFS);
		waiting += boxes[i].bytes;
	}
	assert_in_range(waiting, (64 << 20) - 1000, 64 << 20);
}

static void outbox__of_one_that_is_gone(void **state)
{
	close(ends[0][1]);
	ends[0][1] = -1;
	put(&boxes[0], 1);
	assert_int_equal(boxes[0].error, -EPIPE);
	put(&boxes[0], 2);
	vb_outbox_flush(&boxes[0]);
	assert_null(boxes[0].first);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(outbox__keeps_the_order),
		TEST(outbox__of_one_that_does_not_read),
		TEST(outbox__of_many_of_one_user),
		TEST(outbox__of_one_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
