/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting to a fabric that does not accept: how long it takes, and the
 * error. A step that hangs ends the test by SIGALRM. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

/* A fake setsockopt() that makes waiting times shorter in this test. */
static int set_short(int fd, int level, int option, const void *value,
		     socklen_t len);
#define setsockopt set_short
#include "engine/fabric_path.c"
#undef setsockopt

#define MOST (BACKLOG + 8)

static int set_short(int fd, int level, int option, const void *value,
		     socklen_t len)
{
	const struct timeval brief = { .tv_usec = 300000 };

	if (level == SOL_SOCKET && option == SO_SNDTIMEO)
		return setsockopt(fd, level, option, &brief, sizeof(brief));
	return setsockopt(fd, level, option, value, len);
}

static char name[VB_FABRIC_NAME], dir[PATH_MAX];
static int listener;

static int begin(void **state)
{
	(void)state;
	alarm(20);
	snprintf(name, sizeof(name), "unit-%d", getpid());
	listener = vb_fabric_listen(name, dir);
	return listener < 0 ? -1 : 0;
}

static int end(void **state)
{
	(void)state;
	alarm(0);
	vb_fabric_remove(dir);
	close(listener);
	return 0;
}

/* Connect until that fails, and return the error; the kernel queues BACKLOG
 * connections or one more. */
static int connect_until_full(void)
{
	int fds[MOST], count = 0, rc = 0;

	while (rc >= 0 && count < MOST) {
		rc = vb_fabric_connect(name);
		if (rc >= 0)
			fds[count++] = rc;
	}
	while (count > 0)
		close(fds[--count]);
	return rc;
}

static void a_full_backlog_is_a_timeout(void **state)
{
	(void)state;
	assert_int_equal(connect_until_full(), -ETIMEDOUT);
}

static void nothing(int signal)
{
	(void)signal;
}

static void *interrupt(void *thread)
{
	for (int i = 0; i < 20; i++) {
		usleep(10000);
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	}
	return NULL;
}

static void signals_do_not_end_connecting(void **state)
{
	const struct sigaction act = { .sa_handler = nothing,
				       .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), thread;

	(void)state;
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, interrupt, &self);
	assert_int_equal(connect_until_full(), -ETIMEDOUT);
	pthread_join(thread, NULL);
}

static void nobody_listens(void **state)
{
	(void)state;
	assert_int_equal(vb_fabric_connect("unit-nobody"), -ECONNREFUSED);
	assert_int_equal(vb_fabric_connect("a/b"), -EINVAL);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_backlog_is_a_timeout),
		CASE(signals_do_not_end_connecting),
		CASE(nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
