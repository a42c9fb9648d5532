/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that ask the process of an IPoIB interface. The test plays the
 * programs and the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the headers above
#include <cmocka.h>

#include <stdio.h>

#include "ipoib/lookup.c"

#define PROGRAMS (LOOKUP_WAITING + 8)

static struct lookup l;
static unsigned wanted;

static void own(void *arg, struct vb_ipoib *answer)
{
	(void)arg;
	*answer = (struct vb_ipoib){ .op = IPOIB_OWN,
				     .version = VB_IPOIB_VERSION,
				     .pkey = 0x8002 };
}

static void want(void *arg, const struct vb_gid *ip)
{
	(void)arg;
	(void)ip;
	wanted++;
}

/* Let the process handle everything that has come. */
static void serve(void)
{
	struct pollfd fds[LOOKUP_FDS];
	unsigned count = lookup_poll(&l, fds);

	while (poll(fds, count, 0) > 0) {
		lookup_serve(&l, fds, count);
		count = lookup_poll(&l, fds);
	}
}

static int ask(enum vb_ipoib_op op)
{
	const struct vb_ipoib m = {
		.op = (uint8_t)op,
		.version = VB_IPOIB_VERSION,
		.ip = { { [10] = 0xff, 0xff, 10, 9, 0, 7 } }
	};
	uint8_t bytes[VB_IPOIB_BYTES];
	int fd = vb_ipoib_connect(l.name);

	assert_true(fd >= 0);
	assert_int_equal(
		vb_fdmail_send(fd, bytes, vb_ipoib_put(bytes, &m), NULL, 0, 0),
		0);
	serve();
	return fd;
}

/* Returns the length of the answer; 0: the process has closed the connection;
 * -1: no answer yet. */
static ssize_t answer(int fd, struct vb_ipoib *m)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		assert_true(vb_ipoib_get(bytes, (size_t)n, m));
	return n;
}

static int setup(void **state)
{
	static char name[16];

	(void)state;
	snprintf(name, sizeof(name), "t%u", (unsigned)getpid());
	l = (struct lookup){ .listener = -1, .own = own, .want = want };
	wanted = 0;
	return lookup_open(&l, name);
}

static int teardown(void **state)
{
	(void)state;
	lookup_close(&l);
	return 0;
}

/* However many programs wait for neighbours, another program is told the
 * adapter. */
static void adapter__is_told_while_many_wait(void **state)
{
	int fds[PROGRAMS], fd;
	struct vb_ipoib m;

	(void)state;
	for (unsigned i = 0; i < PROGRAMS; i++)
		fds[i] = ask(IPOIB_ASK);
	assert_int_equal(wanted, LOOKUP_WAITING);
	fd = ask(IPOIB_OWN);
	assert_true(answer(fd, &m) > 0);
	assert_int_equal(m.pkey, 0x8002);
	close(fd);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		assert_int_equal(answer(fds[i], &m),
				 i < LOOKUP_WAITING ? -1 : 0);
		close(fds[i]);
	}
}

/* A program whose connection was closed because too many wait can ask again
 * once others have their answer. */
static void neighbour__is_told_to_later_programs(void **state)
{
	const struct vb_gid ip = { { [10] = 0xff, 0xff, 10, 9, 0, 7 } };
	int fds[LOOKUP_WAITING], fd;
	struct vb_ipoib m;

	(void)state;
	for (unsigned i = 0; i < LOOKUP_WAITING; i++)
		fds[i] = ask(IPOIB_ASK);
	lookup_told(&l, &ip, NULL);
	for (unsigned i = 0; i < LOOKUP_WAITING; i++) {
		assert_true(answer(fds[i], &m) > 0);
		assert_int_equal(m.error, -EHOSTUNREACH);
	}
	fd = ask(IPOIB_ASK);
	assert_int_equal(wanted, LOOKUP_WAITING + 1);
	assert_int_equal(answer(fd, &m), -1);
	close(fd);
	for (unsigned i = 0; i < LOOKUP_WAITING; i++)
		close(fds[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(adapter__is_told_while_many_wait),
		TEST(neighbour__is_told_to_later_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
