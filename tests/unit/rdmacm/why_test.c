/* SPDX-License-Identifier: BSD-2-Clause */
/* What librdmacm writes to standard error about peers that do not answer. */
#include "tests/unit/rdmacm/fake.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LATE 20

static struct rdma_event_channel *channel;
static struct rcm_id *ids[LATE];
static int from, to, screen;

/* Standard error becomes a pipe that is full and that nobody reads. */
static int setup(void **state)
{
	char block[4096] = { 0 };
	int ends[2];

	(void)fake_setup(state);
	channel = fake_channel();
	for (unsigned i = 0; i < LATE; i++) {
		ids[i] = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC,
				 RCM_CONNECTING);
		ids[i]->path.dst_port = (uint16_t)(9000 + i);
		ids[i]->asked_at = 1;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	from = ends[0];
	to = ends[1];
	fcntl(to, F_SETFL, O_NONBLOCK);
	while (write(to, block, sizeof(block)) > 0)
		;
	fcntl(to, F_SETFL, 0);
	screen = dup(STDERR_FILENO);
	return dup2(to, STDERR_FILENO) < 0;
}

static int teardown(void **state)
{
	dup2(screen, STDERR_FILENO);
	close(screen);
	close(from);
	close(to);
	for (unsigned i = 0; i < LATE; i++)
		rdma_destroy_id(&ids[i]->pub);
	rdma_destroy_event_channel(channel);
	return 0;
}

static void *look(void *arg)
{
	rcm_why_take();
	return arg;
}

/* Returns how many late ids the thread has found; waits for the first one, for
 * 5 s at most. */
static unsigned count_seen(void)
{
	unsigned count = 0;

	for (unsigned n = 0; n < 500 && count == 0; n++) {
		nanosleep(&(struct timespec){ 0, 10 * VB_MSEC }, NULL);
		if (pthread_mutex_trylock(&rcm.lock) != 0)
			continue;
		for (unsigned i = 0; i < LATE; i++)
			count += ids[i]->asked_at == 0;
		pthread_mutex_unlock(&rcm.lock);
	}
	return count;
}

/* Returns the number of lines that were written, up to that of the last id. */
static unsigned count_lines(void)
{
	unsigned lines = 0;
	char block[4096];
	ssize_t n;

	while (lines < LATE && (n = read(from, block, sizeof(block))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += block[i] == '\n';
	return lines;
}

/* While the thread waits for room in the pipe, other threads can take rcm.lock.
 * The thread reports all late ids, more than it copies in one call. */
static void late_ids__are_told_without_the_lock(void **state)
{
	pthread_t thread;
	unsigned seen;

	rcm_why_begin();
	assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
	seen = count_seen();
	alarm(30);
	assert_int_equal(count_lines(), LATE);
	pthread_join(thread, NULL);
	alarm(0);
	assert_in_range(seen, 1, LATE);
	for (unsigned i = 0; i < LATE; i++)
		assert_int_equal(ids[i]->asked_at, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			late_ids__are_told_without_the_lock, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
