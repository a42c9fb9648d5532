/* SPDX-License-Identifier: BSD-2-Clause */
/* When another process calls it for XRC, a process may lack descriptors. It
 * accepts the caller when it has some again, although nobody else calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/xrc_listener.h"

static struct vb_xrc_listener listener;
static int epoll_fd;
static uint32_t slot;

static int begin(void **state)
{
	/* Names are shared by the whole host: this one must not be a process's
	 * slot, nor another test's name. */
	slot = 0x20000u | ((unsigned)getpid() & 0xffff);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return vb_xrc_listener_init(&listener, epoll_fd) ||
	       vb_xrc_listener_add(&listener, 0, slot);
}

static int finish(void **state)
{
	vb_xrc_listener_fini(&listener);
	return close(epoll_fd);
}

static int call(void)
{
	struct sockaddr_un a;
	socklen_t len = vb_xrc_name(slot, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
	return fd;
}

/* True: the listener has an event within @ms. */
static bool has_event(int ms)
{
	struct epoll_event ev;

	return epoll_wait(epoll_fd, &ev, 1, ms) == 1;
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* The listener has an event, and accepts one caller and no more. */
static void accept_one(void)
{
	int at;

	assert_true(has_event(1000));
	at = vb_xrc_listener_accept(&listener);
	assert_true(at >= 0);
	assert_int_equal(vb_xrc_listener_accept(&listener), -1);
	assert_false(has_event(50));
	close(at);
}

static void caller__is_accepted(void **state)
{
	int fd = call();

	accept_one();
	close(fd);
}

static void caller__is_accepted_after_a_shortage(void **state)
{
	int fd = call();

	limit_descriptors((rlim_t)fd);
	assert_true(has_event(1000));
	assert_int_equal(vb_xrc_listener_accept(&listener), -1);
	/* there are still too few descriptors */
	assert_true(has_event(1000));
	assert_int_equal(vb_xrc_listener_accept(&listener), -1);
	limit_descriptors((rlim_t)fd + 16);
	accept_one();
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(caller__is_accepted, begin,
						finish),
		cmocka_unit_test_setup_teardown(
			caller__is_accepted_after_a_shortage, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
