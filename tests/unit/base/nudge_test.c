/* SPDX-License-Identifier: BSD-2-Clause */
/* Nudges: pipes stand for the descriptors that become readable. Where the host
 * denies asynchronous I/O there are no nudges, and the test is skipped. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/nudge.h"

static struct {
	struct vb_nudge nudge;
	int pipe[2], event_fd;
} rig;

static int set_up(void **state)
{
	assert_return_code(pipe(rig.pipe), 0);
	rig.event_fd = eventfd(0, EFD_SEMAPHORE);
	assert_return_code(rig.event_fd, 0);
	rig.nudge = (struct vb_nudge){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	vb_nudge_close(&rig.nudge);
	close(rig.pipe[0]);
	close(rig.pipe[1]);
	close(rig.event_fd);
	return 0;
}

static void begin(void)
{
	if (vb_nudge_open(&rig.nudge))
		skip();
}

static void ask(void)
{
	assert_int_equal(
		vb_nudge_ask(&rig.nudge, rig.pipe[0], rig.event_fd), 0);
}

static bool has_count(int wait)
{
	struct pollfd p = { rig.event_fd, POLLIN, 0 };

	return poll(&p, 1, wait) == 1;
}

static void take_count(void)
{
	uint64_t one;

	assert_int_equal(read(rig.event_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(one, 1);
}

static void give(void)
{
	assert_int_equal(write(rig.pipe[1], "x", 1), 1);
}

static void take(void)
{
	char c;

	assert_int_equal(read(rig.pipe[0], &c, 1), 1);
}

static void nudge__comes_once_for_each_asking(void **state)
{
	begin();
	assert_false(vb_nudge_came(&rig.nudge));
	for (unsigned i = 0; i < 100; i++) {
		ask();
		assert_false(vb_nudge_came(&rig.nudge));
		assert_false(has_count(0));
		give();
		assert_true(has_count(1000));
		take_count();
		assert_true(vb_nudge_came(&rig.nudge));
		assert_false(vb_nudge_came(&rig.nudge));
		give(); /* give a descriptor a byte: the caller has asked for no
			 * further nudge */
		assert_false(has_count(0));
		take();
		take();
	}
}

static void nudge__comes_at_once(void **state)
{
	begin();
	give();
	ask();
	assert_true(has_count(1000));
	take_count();
	assert_true(vb_nudge_came(&rig.nudge));
}

/* After vb_nudge_call_off() the nudge counts as having come, and its count is
 * in the eventfd. */
static void nudge__can_be_called_off(void **state)
{
	begin();
	vb_nudge_call_off(&rig.nudge);
	assert_false(has_count(0));
	for (unsigned i = 0; i < 100; i++) {
		ask();
		if (i % 2)
			give();
		vb_nudge_call_off(&rig.nudge);
		assert_false(vb_nudge_came(&rig.nudge));
		assert_true(has_count(1000));
		take_count();
		if (i % 2)
			take();
	}
	ask();
	give();
	take_count();
	assert_true(vb_nudge_came(&rig.nudge));
}

static void nudge__needs_a_descriptor(void **state)
{
	begin();
	assert_true(vb_nudge_ask(&rig.nudge, -1, rig.event_fd) < 0);
	assert_true(vb_nudge_ask(&rig.nudge, rig.pipe[0], -1) < 0);
	assert_false(rig.nudge.awaited);
	ask();
	vb_nudge_close(&rig.nudge); /* close the nudge while it is still awaited
				     */
	assert_true(has_count(1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nudge__comes_once_for_each_asking, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nudge__comes_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nudge__can_be_called_off,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(nudge__needs_a_descriptor,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
